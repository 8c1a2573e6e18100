#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-computed.t: columns that the database computes, and what finds by them
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Schema;

my $api = $CrmTest::Postgres::API;
my $w = space();

# ---- matching -----------------------------------------------------------------

subtest "what contacts are matched by (contract 9.2, 10.1)" => sub {
    my $keys = sub {
        my ($emails, $phones) = @_;
        my $id = make("contact", %{$w->{owned}}, emails => $emails,
            phone_numbers => $phones);
        return (sql($db, "SELECT email_key, phone_key,
            replace(phone_digits, chr(31), '|')
            FROM crmapi.contact WHERE id = '$id'"))[0];
    };
    is_deeply($keys->("[]", "[]"), [undef, undef, undef], "nobody");
    is_deeply($keys->('[{"email": "Ada@EXAMPLE.com", "is_primary": true}]',
        '[{"phone_number": " +49 (0)30 1-23/45", "is_primary": true}]'),
        ['ada@example.com', '+493012345', '4903012345|493012345'],
        "one of each");
    is_deeply($keys->('[{"email": "a@b", "is_primary": false},
        {"email": "C@D", "is_primary": true}]',
        '[{"phone_number": "030 1", "is_primary": false},
        {"phone_number": "+1 2", "is_primary": true}]'),
        ['c@d', '+1 2', '0301|12'], "the primary ones, and all digits");
    is_deeply($keys->('[{"email": "a@b"}, {"email": "C@D"}]', "[]"),
        ['a@b', undef, undef], "the first where none is primary");
    is_deeply($keys->("[{\"email\": \"\x{dc}BER\@\x{c9}T\x{c9}.fr\"}]", "[]"),
        ["\x{fc}ber\@xn--t-9fab.fr", undef, undef], "canonical forms (17.2)");
};

subtest "what a search looks at (contract 7.8)" => sub {
    my $search = "replace(search, chr(31), '|')";
    my $id = make("contact", %{$w->{owned}}, first_name => "Ada",
        last_name => "L\x{d6}VELACE", company => "ACME",
        emails => '[{"email": "a@b.c", "is_primary": true},
            {"email": "Second@B.c", "is_primary": false}]',
        phone_numbers => '[{"phone_number": "+49 30", "is_primary": true}]');
    is(value("contact", $id, $search), join("|",
        "ada l\x{f6}velace", "a\@b.c", "second\@b.c", "+49 30", "acme"),
        "names, e-mails, phones, company, apart from each other");
    $id = make("contact", %{$w->{owned}}, last_name => "Only");
    like(value("contact", $id, $search), qr/^only\|/,
        "one name has no blank before it");
    is(scalar sql($db, "SELECT crmapi.fold('\x{39f}\x{394}\x{39f}\x{3a3}') "
        . "= crmapi.fold('\x{3bf}\x{3b4}\x{3bf}\x{3c3}')"), "t",
        "final sigma is a sigma");
    $id = make("company", %{$w->{owned}}, name => "ACME", domain => "Acme.ORG",
        industry => "Food");
    is(value("company", $id, "domain_key || ' ' || $search"),
        "acme.org acme|acme.org|food", "companies");
    $id = make("conversation", %{$w->{owned}}, type => 1, human => "ADA",
        last_message => "Hi", email => "A\@b", phone_number => "+1");
    is(value("conversation", $id, $search),
        "hi|a\@b|+1|ada", "conversations");
};

# What the computed columns of contacts, companies and conversations are.
my $tag_keys = "(SELECT array_agg(hashtextextended(tag COLLATE \"C\",
        uuid_hash_extended(t.workspace_id, 0)) ORDER BY n)
    FROM unnest(t.tags) WITH ORDINALITY x(tag, n))";
my $indexed_fields = "CASE WHEN t.custom_fields <> '{}' THEN
    jsonb_build_object(t.workspace_id, t.custom_fields) END";
# of contacts also those of addresses where there are several
my $address_keys = join "", map { my ($list, $keys) = @$_;
    "|| (SELECT array_agg(hashtextextended(key COLLATE \"C\",
        uuid_hash_extended(t.workspace_id, 2)) ORDER BY n)
    FROM unnest(crmapi.$keys(t.$list)) WITH ORDINALITY x(key, n)
    WHERE key IS NOT NULL AND jsonb_array_length(t.$list) > 1)" }
    ["emails", "email_keys"], ["phone_numbers", "phone_keys"];
my %computed = (
    contact => {
        tag_keys => "$tag_keys $address_keys",
        email_key => "crmapi.email_key((SELECT e ->> 'email' FROM
            jsonb_array_elements(t.emails) WITH ORDINALITY x(e, n)
            ORDER BY (e ->> 'is_primary')::boolean IS TRUE DESC, n LIMIT 1))",
        phone_key => "(SELECT crmapi.phone_key(e ->> 'phone_number')
            FROM jsonb_array_elements(t.phone_numbers) WITH ORDINALITY x(e, n)
            ORDER BY (e ->> 'is_primary')::boolean IS TRUE DESC, n LIMIT 1)",
        search => "crmapi.fold(coalesce(concat_ws(' ', t.first_name,
                t.last_name), '')
            || chr(31) || coalesce((SELECT string_agg(e ->> 'email', chr(31)
                ORDER BY n) FROM jsonb_array_elements(t.emails)
                WITH ORDINALITY x(e, n)), '')
            || chr(31) || coalesce((SELECT string_agg(e ->> 'phone_number',
                chr(31) ORDER BY n) FROM jsonb_array_elements(t.phone_numbers)
                WITH ORDINALITY x(e, n)), '')
            || chr(31) || coalesce(t.company, ''))
            || coalesce((SELECT chr(31) || string_agg(crmapi.email_key(
                    e ->> 'email'), chr(31) ORDER BY n)
                FROM jsonb_array_elements(t.emails) WITH ORDINALITY x(e, n)
                HAVING bool_or(e ->> 'email' ~ '[^ -~]|\"|[.]\$')), '')",
        phone_digits => "(SELECT string_agg(regexp_replace(crmapi.phone_plain(
                e ->> 'phone_number'), '[^0-9]', '', 'g'), chr(31) ORDER BY n)
            FROM jsonb_array_elements(t.phone_numbers)
                WITH ORDINALITY x(e, n))" },
    company => {
        tag_keys => $tag_keys, indexed_fields => $indexed_fields,
        domain_key => "crmapi.fold(t.domain)",
        search => "crmapi.fold(concat(t.name, chr(31), t.domain, chr(31),
            t.industry))" },
    conversation => {
        search => "crmapi.fold(concat(t.last_message, chr(31), t.email,
            chr(31), t.phone_number, chr(31), t.human))
            || CASE WHEN t.email ~ '[^ -~]|\"|[.]\$'
               THEN chr(31) || crmapi.email_key(t.email) ELSE '' END" });

# A value that the computed column COLUMN never has.
sub forged { return { tag_keys => "{1}", indexed_fields => "{}" }->{$_[0]} // "FORGED" }

# No row of workspace S has a computed column that is not what it should be.
sub computed_right {
    my ($s, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @wrong = map { my $table = $_; map { my $column = $_;
        map { "$table.$column: $_->[0]" } sql($db, "SELECT concat(t.id, ' ',
                t.$column) FROM crmapi.$table t WHERE workspace_id = '$s->{id}'
            AND t.$column IS DISTINCT FROM $computed{$table}{$column}")
        } sort keys %{$computed{$table}} } sort keys %computed;
    push @wrong, map { "contact_change: $_->[0]" } sql($db, "SELECT t.id"
        . " FROM crmapi.contact t LEFT JOIN crmapi.contact_change k"
        . " ON (k.workspace_id, k.id) = (t.workspace_id, t.id) WHERE t.workspace_id"
        . " = '$s->{id}' AND k.indexed_fields IS DISTINCT FROM $indexed_fields");
    return is_deeply(\@wrong, [], $name);
}

subtest "computed columns are right however a row is written" => sub {
    my $s = space();
    my $mails = sub { my $n = 0; "[" . join(", ", map {
        qq({"email": "$_", "is_primary": @{[$n++ == 1 ? "true" : "false"]}})
        } @_) . "]" };
    my $phones = sub { $mails->(@_) =~ s/"email"/"phone_number"/gr };
    my @odd = ({}, { first_name => "", last_name => "", tags => "{a,A,\xd6}" },
        { first_name => "\x{130}\x{1e9e}", last_name => "\x{3a3}\x{3c2}" },
        { last_name => "\x{1F600}%_\\", company => "\x{df}" },
        { emails => '[{"email": "\u00dc@B"}]' },
        { emails => $mails->("a\@B", "a\@K\xd6LN.test", "\\\"a\\\"\@b") },
        { emails => $mails->("a\@b.test.", "A\@b.test") },
        { emails => '[{"is_primary": true}]', phone_numbers => '[{}, {}]' },
        { emails => '[{"email": null}, {"email": "a@b", "is_primary": null}]' },
        { emails => $mails->("A\@b", "C\@d", map { "n$_\@X.y" } 1 .. 48),
          phone_numbers => $phones->("030/1", " +49 (30) 123-45", "x", "4") },
        { phone_numbers => $phones->("no digit", "+", "\x{0661}") },
        { custom_fields => '{"a": 1, "b": "x", "c": null, "d": true,
            "e": {"f": 1}, "g": [1], "": "", "\u00d6.\u001f": 1.50}' });
    my %ids = (
        contact => [map { make("contact", %{$s->{owned}}, %$_) } @odd],
        company => [map { make("company", %{$s->{owned}}, name => "\x{130} C",
            %$_) } {}, { domain => "A.\x{dc}", tags => "{a,NULL b,\xdf}" },
            { industry => "Food", custom_fields => '{"a": 1.0, "b": [1]}' }],
        conversation => [map { make("conversation", %{$s->{owned}}, type => 1,
            %$_) } {}, { last_message => "\x{3a3}" }, { human => "H",
                email => "E\@f", phone_number => "+1" }]);
    computed_right($s, "rows of odd values");
    my %other = (emails => $mails->("Z\@z"), tags => "{b,\"c d\"}",
        custom_fields => '{"n": "new", "o": {}}',
        phone_numbers => $phones->("9", "8"));
    for my $set (["contact", qw(first_name last_name company emails
            phone_numbers tags custom_fields)],
            ["company", qw(name domain industry tags custom_fields)],
            ["conversation", qw(last_message email phone_number human)]) {
        my ($table, @columns) = @$set;
        for my $column (@columns) {
            my $value = $other{$column} // "N\x{118}W";
            sql($db, "UPDATE crmapi.$table SET $column = '$value'
                WHERE workspace_id = '$s->{id}'");
            computed_right($s, "$table: another $column");
            next if $column eq "name" || $other{$column};
            sql($db, "UPDATE crmapi.$table SET $column = NULL
                WHERE id = '$ids{$table}[0]'");
            computed_right($s, "$table: no $column");
        }
        for my $column (sort keys %{$computed{$table}}) {
            sql($db, "UPDATE crmapi.$table SET $column = '@{[forged($column)]}'
                WHERE workspace_id = '$s->{id}'");
            computed_right($s, "$table: nobody else sets $column");
        }
        next if $table eq "conversation";
        sql($db, "UPDATE crmapi.$table SET tags = '{}'
            WHERE id = '$ids{$table}[0]'");
        computed_right($s, "$table: no tags");
    }
    for my $table (sort keys %computed) {
        for my $column (sort keys %{$computed{$table}}) {
            make($table, %{$s->{owned}}, %{{ company => { name => "N" },
                conversation => { type => 1 } }->{$table} // {}},
                $column => forged($column));
            computed_right($s, "$table: nobody sets $column of a new one");
        }
    }
    as($api, row("contact", id => uuid(), %{$s->{owned}}, company => "ACME",
        search => "forged", email_key => "forged\@b", phone_key => "+1",
        phone_digits => "1", tags => "{x}", tag_keys => "{1}"));
    as($api, "UPDATE crmapi.contact SET search = 'forged', phone_key = '1',
            tag_keys = '{1}' WHERE workspace_id = '$s->{id}'");
    computed_right($s, "nor the API");
    sql($db, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails,
            search, tags, tag_keys) SELECT gen_random_uuid(), t.workspace_id,
            t.bot_id, t.emails, 'forged', t.tags, '{1}' FROM crmapi.contact t
        WHERE workspace_id = '$s->{id}'");
    computed_right($s, "many in one statement");
    sql($db, "COPY crmapi.contact (id, workspace_id, bot_id, first_name,
        emails, search) FROM STDIN;\n" . join("", map { join("\t", uuid(),
        $s->{id}, $s->{bot}, "N\x{118}$_", "[{\"email\": \"A\@$_\"}]",
        "forged") . "\n" } 1 .. 5) . "\\.\n");
    computed_right($s, "COPY");
    is(total($s, "contact"), scalar sql($db, "SELECT count(*) FROM crmapi.contact
        WHERE workspace_id = '$s->{id}'"), "of all contacts");
};

# Each write of the row would make an entry of the index for each member.
subtest "of large custom fields an index knows only that there are some" => sub {
    my $s = space();
    my $fields = sub { "jsonb_object('{a,b,c}', '{x,y," . "z" x $_[0] . "}')" };
    my $rest = sql($db, "SELECT pg_column_size(" . $fields->(7000) . ") - 7000");
    my ($small, $large) = map { $fields->($_ - $rest) } 8000, 8001;
    for (["contact", "first_name", "contact_change"], ["company", "name", "company"]) {
        my ($table, $name, $has) = @$_;
        my $indexed = sub { sql($db, "SELECT k.indexed_fields FROM crmapi.$has k"
            . " WHERE k.workspace_id = '$s->{id}' AND k.id = '$_[0]'") };
        my $id = make($table, %{$s->{owned}}, $name => "N");
        sql($db, "UPDATE crmapi.$table SET custom_fields = $small WHERE id = '$id'");
        like($indexed->($id), qr/"a": "x"/, "$table: small ones are there");
        sql($db, "UPDATE crmapi.$table SET custom_fields = $large WHERE id = '$id'");
        is($indexed->($id), qq({"$s->{id}": true}), "$table: large ones are not");
        sql($db, "UPDATE crmapi.$table SET custom_fields = '{}' WHERE id = '$id'");
        is($indexed->($id), undef, "$table: none");
    }
};

# A trigger without a list of columns is for all of them. Columns that a migration has
# added follow tag_keys: who changes such a field sets updated_at as well.
subtest "no event is made by a column that is no part of events" => sub {
    is_deeply([map { $_->[0] } sql($db, "SELECT c.relname || '.' || a.attname
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            AND NOT a.attisdropped
        WHERE t.tgname = 'event_update' AND cardinality(t.tgattr::int2[]) > 0
          AND a.attnum <> ALL (t.tgattr::int2[]) AND a.attnum <= (
              SELECT k.attnum FROM pg_attribute k
              WHERE k.attrelid = c.oid AND k.attname = (ARRAY['tag_keys',
                  'indexed_fields'])[1 + (c.relname = 'company')::integer]) ORDER BY 1")],
        ["company.indexed_fields", "company.tag_keys", "contact.tag_keys"],
        "event_update has all columns but these");
};

subtest "13.4 what an event tells, and what tells none" => sub {
    my $s = space();
    my $in = "workspace_id = '$s->{id}'";
    sql($db, "SELECT crmapi.event_log('$s->{id}', true)");
    # The types of the events that SQL makes, in their order.
    my $tells = sub {
        my ($sql) = @_;
        my $last = sql($db, "SELECT max(id::text) FROM crmapi.event WHERE $in");
        sql($db, $sql);
        return join " ", map { $_->[0] } sql($db, "SELECT type, 1 FROM crmapi.event
            WHERE $in AND id::text > '" . ($last // "") . "' ORDER BY id");
    };
    my $of = sub { my ($type, $field) = @_; return scalar sql($db, "SELECT fields ->>
        '$field' FROM crmapi.event WHERE $in AND type = '$type'
        ORDER BY id DESC LIMIT 1") };
    my %of = (%{$s->{in}}, contact_id => make("contact", %{$s->{owned}}));
    my ($flagged, $whole) = map { make("conversation", %{$s->{owned}}, type => 1) }
        1, 2;
    my $said = make("message", %{$s->{in}}, conversation_id => $whole,
        role => "human", status => "sent");
    make("activity", %of, activity_type => "note", title => "T");
    make("pipeline_card", %of, title => "T", pipeline_stage_id => $s->{stages}[0]);
    make("company", %{$s->{owned}}, name => "C");
    for (["conversation", "subject"], ["activity", "title"],
            ["pipeline_card", "title"], ["company", "name"],
            ["contact", "first_name"], ["message", "status"]) {
        my ($table, $column) = @$_;
        is($tells->("UPDATE crmapi.$table SET $column = $column WHERE $in"), "",
            "$table: nothing has changed");
    }
    is($tells->("UPDATE crmapi.message SET status = 'delivered' WHERE id =
        '$said'"), "message.updated", "another status");
    is($tells->("UPDATE crmapi.conversation SET deleted = true, deleted_at = now()
        WHERE id = '$flagged'"), "conversation.deleted", "a conversation is deleted");
    is($tells->("UPDATE crmapi.conversation SET subject = 'x', deleted = true
        WHERE id = '$flagged'; DELETE FROM crmapi.conversation WHERE id = '$flagged'"), "",
        "once: its row goes later");
    is($tells->("DELETE FROM crmapi.conversation WHERE id = '$whole'"),
        "conversation.deleted", "one that goes at once");
    my $e = enrolled($s, steps => [{}, {}, {}]);
    sql($db, "UPDATE crmapi.enrollment_step SET email_subject = 'later'
        WHERE id = '$e->{steps}[$_]'") for 1, 0;
    is($tells->("SET enable_indexscan = off; SET enable_bitmapscan = off;
        UPDATE crmapi.enrollment SET status = 'pending_approval'
        WHERE id = '$e->{id}'"), "enrollment.updated", "another state");
    is_deeply([map { $_->{sort_order} } @{JSON::PP->new->decode(
        $of->("enrollment.updated", "steps"))}], [1, 2, 3],
        "with its steps in their order, whichever was written last");
    sql($db, "SELECT crmapi.suppress('$s->{id}', $_, 'why')")
        for "'no\@x.example', NULL", "NULL, '+4930901820'";
    make("contact", %{$s->{owned}}, emails => [{ email => "No\@x.example",
        is_primary => true }], phone_numbers => [{ phone_number => "+49 30 901820",
        is_primary => true }]);
    is_deeply(JSON::PP->new->decode($of->("contact.created", "suppressed")),
        { email => "why", sms => "why" }, "a new contact: what is suppressed");
};

# The id of such an event is behind all that the log may have.
subtest "13.4 an event of webhook test that goes moves the log's beginning nowhere"
        => sub {
    my $s = space();
    my $in = "workspace_id = '$s->{id}'";
    sql($db, "SELECT crmapi.event_log('$s->{id}', true)");
    my $endpoint = make("webhook_endpoint", %{$s->{in}}, url => "https://x.example/",
        events => "{form.submitted}", key => \"sha256('k')");
    my $trim = sub {
        my ($by) = @_;
        for (["SELECT crmapi.webhook_test('$s->{id}', '$endpoint', '{}')", 1,
                "one that is to be delivered stays"],
            ["UPDATE crmapi.webhook_delivery SET status = 'delivered', next_at = NULL,"
                . " finished_at = now() WHERE $in", 0, "then all go"]) {
            my ($sql, $left, $name) = @$_;
            sql($db, "$sql; SELECT crmapi.$by");
            is(sql($db, "SELECT count(*) FROM crmapi.event WHERE $in"), $left, $name);
        }
        return scalar sql($db, "SELECT since FROM crmapi.event_feed WHERE $in");
    };
    for my $by ("event_trim(now() + interval '1 day', 1000)",
            "retention_events('$s->{id}', now() + interval '2 days', 1000)") {
        sql($db, "UPDATE crmapi.workspace SET retention_events = 1
            WHERE id = '$s->{id}'");
        my $was = sql($db, "SELECT since FROM crmapi.event_feed WHERE $in");
        is($trim->($by), $was, "it alone");
        make("contact", %{$s->{owned}});
        my $last = sql($db, "SELECT id FROM crmapi.event WHERE $in");
        is($trim->($by), $last, "and another one: that moves it");
    }
};

subtest "what refers to a contact moves when it is merged (contract 20.5)"
        => sub {
    my @tables = map { @$_ } sql($db, "SELECT c.relname::text FROM pg_class c JOIN"
        . " pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace ="
        . " 'crmapi'::regnamespace AND c.relkind = 'r' AND a.attname ="
        . " 'contact_id' UNION SELECT k.conrelid::regclass::text FROM"
        . " pg_constraint k WHERE k.contype = 'f' AND k.confrelid ="
        . " 'crmapi.contact'::regclass ORDER BY 1");
    s/^crmapi\.// for @tables;
    my %once = map { $_ => 1 } @tables;
    my $body = sql($db, "SELECT p.prosrc FROM pg_proc p WHERE p.oid ="
        . " 'crmapi.contact_move(uuid, uuid, uuid)'::regprocedure");
    cmp_ok(scalar keys %once, ">=", 5, "tables are found");
    is_deeply([sort $body =~ /UPDATE crmapi\.(\w+)/g], [sort keys %once],
        "each table with a contact_id is in contact_move()");
    my @columns = map { @$_ } sql($db, "SELECT a.attname::text FROM pg_constraint"
        . " k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum ="
        . " ANY (k.conkey) WHERE k.contype = 'f' AND k.confrelid ="
        . " 'crmapi.contact'::regclass AND a.attname NOT IN ('workspace_id',"
        . " 'contact_id')");
    is_deeply(\@columns, [], "and no other column refers to one");
    # what a contact has is united, filled or its own
    my $fill = sql($db, "SELECT p.prosrc FROM pg_proc p WHERE p.oid ="
        . " 'crmapi.contact_fill(crmapi.contact)'::regprocedure");
    my %own = map { $_ => 1 } qw(id workspace_id bot_id created_at updated_at
        email_key phone_key search phone_digits tag_keys);
    my @fields = grep { !$own{$_} } map { @$_ } sql($db, "SELECT"
        . " a.attname::text FROM pg_attribute a WHERE a.attrelid ="
        . " 'crmapi.contact'::regclass AND a.attnum > 0 AND NOT"
        . " a.attisdropped");
    is_deeply([grep { $fill !~ /\b$_ = filled\.$_\b/ } @fields], [],
        "each field of a contact is written");
    my $filled = sql($db, "SELECT p.prosrc FROM pg_proc p WHERE p.proname ="
        . " 'contact_filled'");
    is_deeply([grep { $filled !~ /[{,']$_[,}']|filled\.$_ :=/ } @fields], [],
        "and filled or united");
};

subtest "suppressed addresses (contract 11.6)" => sub {
    my $s = space();
    make("suppression", %{$s->{in}}, email => "Ada\@Example.com");
    make("suppression", %{$s->{in}}, phone_number => "+49 30 12345");
    is_deeply([sql($db, "SELECT kind, address FROM crmapi.suppression "
        . "WHERE workspace_id = '$s->{id}' ORDER BY 1")],
        [["email", "ada\@example.com"], ["phone", "+493012345"]],
        "are kept by what contacts are matched by");
    is(scalar sql($db, q{SELECT 'ada@example.com' = ANY (crmapi.email_keys(
        '[{"email": "x@y"}, {"email": "ADA@example.com"}]'))
        AND '+493012345' = ANY (crmapi.phone_keys(
        '[{"phone_number": "+49 (30) 12345"}]'))}), "t", "every address of a contact");
    refused(row("suppression", id => uuid(), %{$s->{in}},
        email => "ADA\@example.COM"), qr/unique/, "once");
    refused(row("suppression", id => uuid(), %{$s->{in}}),
        qr/constraint/, "something");
    refused(row("suppression", id => uuid(), %{$s->{in}}, email => "a\@b",
        phone_number => "+1"), qr/check constraint/, "one thing");
};

done_testing();
