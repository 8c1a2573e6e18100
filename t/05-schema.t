#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-schema.t: what the database itself guarantees, and the migrations
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data qw(triggers_kept_up);
use CrmTest::Functions;
use CrmTest::Process qw(spawn);
use CrmTest::Session;
use CrmTest::Spec;
use CrmTest::Upgrade qw(next_schema);
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex sha256_hex);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);

my $db = database();
my $api = $CrmTest::Postgres::API;

# The first value, or all rows, of SQL run by ROLE (default: the superuser).
sub as { my ($role, $sql) = @_; return postgres()->sql($db, $sql, $role) }

# SQL fails, and what PostgreSQL says of it is LIKE.
sub refused {
    my ($sql, $like, $name, $role) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $done = eval { scalar postgres()->sql($db, $sql, $role); 1 };
    return like($done ? "done" : $@, $like, $name);
}

# All of the SQLS are done, at the same moment.
sub done_at_once {
    my ($name, @sqls) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is(join("", at_once($db, @sqls)), "", $name);
}

# A row of each of CASES, [table, its other members, column, value, good value],
# is refused, and what PostgreSQL says is LIKE; with the good value it is taken.
sub refused_values {
    my ($like, @cases) = @_;
    for my $case (@cases) {
        my ($table, $with, $column, $value, $good) = @$case;
        my $named = "$table.$column: " . substr $value // "null", 0, 20;
        refused(row($table, id => uuid(), %$with, $column => $value), $like,
            $named);
        ok(eval { sql($db, "BEGIN;" . row($table, id => uuid(), %$with,
            $column => $good) . "ROLLBACK"); 1 }, "$named: it is the value")
            or diag($@);
    }
}

# An INSERT of a row of TABLE; values are quoted unless they are references to
# SQL.
sub row {
    my ($table, %value) = @_;
    my @names = sort keys %value;
    utf8::upgrade($_) for grep { defined && !ref } values %value;
    return "INSERT INTO crmapi.$table (" . join(", ", @names) . ") VALUES ("
        . join(", ", map {
            my $v = $value{$_};
            !defined $v ? "NULL" : ref $v ? $$v
                : "'" . ($v =~ s/'/''/gr) . "'"
        } @names) . ");\n";
}

# Make a row and return its id.
sub make {
    my ($table, %value) = @_;
    $value{id} //= uuid();
    sql($db, row($table, %value));
    return $value{id};
}

# A workspace with an agent, a pipeline and two stages.
sub space {
    my %s = (id => uuid());
    $s{slug} = "w-" . (substr($s{id}, 14) =~ tr/-//dr);
    sql($db, row("workspace", id => $s{id}, name => "W", plan => "pro",
        slug => $s{slug}));
    my %in = (workspace_id => $s{id});
    $s{bot} = make("agent", %in, name => "Ada");
    $s{pipeline} = make("pipeline", %in, bot_id => $s{bot}, name => "P");
    $s{stages} = [map { make("pipeline_stage", %in, bot_id => $s{bot},
        pipeline_id => $s{pipeline}, name => "S$_", order_index => $_) } 0, 1];
    $s{owned} = { %in, bot_id => $s{bot} };
    $s{in} = \%in;
    return \%s;
}

sub value {
    my ($table, $id, $column) = @_;
    return scalar sql($db, "SELECT $column FROM crmapi.$table "
        . "WHERE id = '$id'");
}

sub counters_right {
    my ($name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @wrong = sql($db, "SELECT * FROM crmapi.counter_verify()");
    is_deeply(\@wrong, [], $name);
}

sub total {
    my ($s, $kind, $parent) = @_;
    return scalar sql($db, "SELECT coalesce(sum(n), 0) FROM crmapi.counter "
        . "WHERE workspace_id = '$s->{id}' AND kind = '$kind' AND parent = '"
        . ($parent || "00000000-0000-0000-0000-000000000000") . "'");
}

# What every enrollment begins with.
my %start = (status => "generating", contact_action => "created");

# ---- what there is ------------------------------------------------------------

my %fields = (enrollment_step => [qw(id sort_order channel status
    scheduled_for sent_at to_identifier voice_objective voice_script
    email_subject)]);
for my $schema (grep { $_ ne "Pagination" } keys %CrmTest::Spec::FIELDS) {
    my %derived = map { $_ => 1 } CrmTest::Spec::names($schema, "derived");
    $fields{CrmTest::Spec::table_of($schema)}
        = [grep { !$derived{$_} } CrmTest::Spec::names($schema)];
}

subtest "every field of the specification that is stored has its column" => sub {
    for my $table (sort keys %fields) {
        my %there = map { $_->[0] => $_->[1] } sql($db, "SELECT attname,
            attnum FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped
            AND attrelid = 'crmapi.$table'::regclass");
        my @missing = grep { !$there{$_} } @{$fields{$table}};
        is("@missing", "", $table);
    }
};

subtest "nothing secret has a column (contract 9.3)" => sub {
    my @secret = map { "@$_" } sql($db, "SELECT attrelid::regclass, attname
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = 'crmapi'::regnamespace AND attnum > 0
          AND attname ~ 'personality|prompt|token|secret|password|match_'
          AND attname <> 'goal_prompt'");
    is("@secret", "", "no such column");
};

subtest "every foreign key has an index to look it up by" => sub {
    my @wrong = map { $_->[0] } sql($db, q{
        SELECT f.conrelid::regclass || ' (' || a.attname || ')'
        FROM pg_constraint f
        JOIN pg_attribute a ON a.attrelid = f.conrelid
          AND a.attnum = f.conkey[2]
        JOIN pg_class r ON r.oid = f.confrelid
        WHERE f.connamespace = 'crmapi'::regnamespace AND f.contype = 'f'
          -- few rows in a workspace: its primary key will do
          AND r.relname NOT IN ('agent', 'sequence_template')
          AND NOT EXISTS (SELECT FROM pg_index i
              WHERE i.indrelid = f.conrelid AND i.indkey[1] = a.attnum)});
    is_deeply(\@wrong, [], "all have");
};

# ---- tenancy ------------------------------------------------------------------

my ($w, $x) = (space(), space());

subtest "a reference to another workspace's row cannot exist (design 4)" => sub {
    my $company = make("company", %{$x->{owned}}, name => "X");
    my $contact = make("contact", %{$x->{owned}});
    my $talk = make("conversation", %{$x->{owned}}, type => 1);
    my $form = make("form", %{$x->{owned}}, name => "F");
    my $template = make("sequence_template", %{$x->{in}}, name => "T");
    my $sequence = make("sequence", %{$x->{owned}}, name => "S",
        template_id => $template);
    my $enrollment = make("enrollment", %{$x->{in}}, contact_id => $contact,
        sequence_id => $sequence, %start);
    my %mine = (id => uuid(), %{$w->{in}});
    my @rows = (
        [pipeline => bot_id => $x->{bot}, name => "P"],
        [pipeline_stage => bot_id => $w->{bot}, name => "S",
            pipeline_id => $x->{pipeline}],
        [company => bot_id => $x->{bot}, name => "C"],
        [company => bot_id => $w->{bot}, name => "C",
            pipeline_stage_id => $x->{stages}[0]],
        [contact => bot_id => $x->{bot}],
        [contact => bot_id => $w->{bot}, company_id => $company],
        [contact => bot_id => $w->{bot},
            pipeline_stage_id => $x->{stages}[0]],
        [pipeline_card => pipeline_stage_id => $x->{stages}[0],
            title => "T"],
        [pipeline_card => pipeline_stage_id => $w->{stages}[0],
            title => "T", contact_id => $contact],
        [activity => activity_type => "note", contact_id => $contact],
        [activity => activity_type => "note", company_id => $company],
        [conversation => bot_id => $x->{bot}, type => 1],
        [conversation => bot_id => $w->{bot}, type => 1,
            contact_id => $contact],
        [message => conversation_id => $talk, role => "user"],
        [form => bot_id => $x->{bot}, name => "F"],
        [submission => form_id => $form],
        [sequence_template => bot_id => $x->{bot}, name => "T"],
        [sequence => bot_id => $w->{bot}, name => "S",
            template_id => $template],
        [enrollment => sequence_id => $sequence, contact_id => $contact,
            %start],
        [enrollment_step => enrollment_id => $enrollment, sort_order => 1,
            channel => "sms"],
    );
    for my $row (@rows) {
        my ($table, %value) = @$row;
        refused(row($table, %mine, %value), qr/foreign key/,
            "$table: " . join ", ", sort keys %value);
    }
    refused("UPDATE crmapi.contact SET workspace_id = '$w->{id}' "
        . "WHERE id = '$contact'", qr/never changes/, "no row moves");
    refused("UPDATE crmapi.contact SET id = '$mine{id}' "
        . "WHERE id = '$contact'", qr/never changes/, "no id changes");
};

# ---- values -------------------------------------------------------------------

subtest "enumerations and states (specification)" => sub {
    refused_values(qr/check constraint/,
        [agent => $w->{in}, agent_type => "Internal", "internal"],
        [activity => { %{$w->{in}}, contact_id =>
            make("contact", %{$w->{owned}}) }, activity_type => "email",
            "note"],
        [conversation => $w->{owned}, type => 0, 1],
        [conversation => $w->{owned}, type => 6, 5],
        [conversation => { %{$w->{owned}}, type => 1 },
            sentiment_score => "1.0001", "1"],
        [sequence_template => { %{$w->{in}}, name => "T" },
            allowed_channels => "{email,fax}", "{email,sms,voice}"],
    );
    for my $type (qw(note call meeting video_call task todo reminder)) {
        ok(make("activity", %{$w->{in}}, activity_type => $type,
            contact_id => make("contact", %{$w->{owned}})), $type);
    }
    refused(row("activity", id => uuid(), %{$w->{in}},
        activity_type => "note"), qr/check constraint/,
        "an activity of nobody");
};

subtest "limits (contract 6.3, 6.4)" => sub {
    my %card = (%{$w->{in}}, title => "T",
        pipeline_stage_id => $w->{stages}[0]);
    refused_values(qr/check constraint|overflow/,
        [contact => $w->{owned}, first_name => "x" x 1001, "x" x 1000],
        [contact => $w->{owned}, notes => "x" x 65537, "x" x 65536],
        [contact => $w->{owned}, linkedin_url => "x" x 2049, "x" x 2048],
        [contact => $w->{owned}, deal_value => "1e15", "1e14"],
        [contact => $w->{owned}, deal_value => "NaN", "0"],
        [contact => $w->{owned}, custom_fields => "[]", "{}"],
        [contact => $w->{owned}, emails => "{}", "[]"],
        [contact => $w->{owned}, tags => "{" . join(",", 1 .. 101) . "}",
            "{" . join(",", 1 .. 100) . "}"],
        [contact => $w->{owned}, tags => "{NULL}", "{x}"],
        [company => $w->{owned}, name => "", "x"],
        [conversation => { %{$w->{owned}}, type => 1 },
            assigned_to => "x" x 256, "x" x 255],
        [pipeline_card => \%card, order_index => -1, 0],
        [workspace => { name => "N" }, slug => "Upper", "lower"],
        [workspace => { name => "N" }, slug => "x" x 64, "x" x 63]);
    refused_values(qr/null value in column "name"/,
        [company => $w->{owned}, name => undef, "x"]);
    refused_values(qr/time zone/, [workspace => { name => "N",
        slug => "zone" }, time_zone => "Mars/Olympus", "Europe/Berlin"]);
    my $id = make("contact", %{$w->{owned}}, first_name => "\x{1F600}" x 1000,
        deal_value => "999999999999999.9999");
    is(value("contact", $id, "char_length(first_name)"), 1000,
        "1,000 characters, not bytes");
    is(value("contact", $id, "deal_value"), "999999999999999.9999",
        "15 digits and 4 decimals are kept");
};

subtest "times are stored in milliseconds (contract 9.1)" => sub {
    my $id = make("contact", %{$w->{owned}});
    is(value("contact", $id, "created_at = date_trunc('milliseconds', "
        . "created_at) AND created_at = updated_at"), "t",
        "a new row's two times are one, in whole milliseconds");
    my $before = scalar sql($db, "SELECT clock_timestamp()");
    $id = make("contact", %{$w->{owned}});
    is(value("contact", $id, "created_at BETWEEN '$before'::timestamptz "
        . "- interval '1 ms' AND clock_timestamp()"), "t",
        "of the present, never of the future");
};

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
    FROM unnest(t.tags) WITH ORDINALITY x(tag, n))
    || (SELECT array_agg(hashtextextended(m.key COLLATE \"C\",
        jsonb_hash_extended(m.value, uuid_hash_extended(t.workspace_id, 1)))
        ORDER BY n) FROM jsonb_each(t.custom_fields) WITH ORDINALITY
            m(key, value, n)
    WHERE jsonb_typeof(m.value) IN ('string', 'number', 'boolean', 'null'))";
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
        tag_keys => $tag_keys,
        domain_key => "crmapi.fold(t.domain)",
        search => "crmapi.fold(concat(t.name, chr(31), t.domain, chr(31),
            t.industry))" },
    conversation => {
        search => "crmapi.fold(concat(t.last_message, chr(31), t.email,
            chr(31), t.phone_number, chr(31), t.human))" });

# No row of workspace S has a computed column that is not what it should be.
sub computed_right {
    my ($s, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @wrong = map { my $table = $_; map { my $column = $_;
        map { "$table.$column: $_->[0]" } sql($db, "SELECT concat(t.id, ' ',
                t.$column) FROM crmapi.$table t WHERE workspace_id = '$s->{id}'
            AND t.$column IS DISTINCT FROM $computed{$table}{$column}")
        } sort keys %{$computed{$table}} } sort keys %computed;
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
            my $forged = $column eq "tag_keys" ? "{1}" : "FORGED";
            sql($db, "UPDATE crmapi.$table SET $column = '$forged'
                WHERE workspace_id = '$s->{id}'");
            computed_right($s, "$table: nobody else sets $column");
        }
        next if $table eq "conversation";
        sql($db, "UPDATE crmapi.$table SET tags = '{}'
            WHERE id = '$ids{$table}[0]'");
        computed_right($s, "$table: no tags");
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
    is(total($s, "contact"), 31, "of all contacts");
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
              WHERE k.attrelid = c.oid AND k.attname = 'tag_keys') ORDER BY 1")],
        ["company.tag_keys", "contact.tag_keys"],
        "event_update has all columns but these");
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

# ---- keys ---------------------------------------------------------------------

subtest "keys (contract 1.2, 3.2, 3.3)" => sub {
    my $s = space();
    my $hash = sha256_hex("a key");
    my $id = make("api_key", %{$s->{in}}, name => "K", display => "svc_…",
        can_read => "t", can_write => "f", key_hash => "\\x$hash");
    my $live = sub {
        my @row = sql($db, "SELECT read, write, plan_api, plan_sequences
            FROM crmapi.live_key WHERE workspace_id = '$s->{id}'
            AND key_hash = '\\x$hash'");
        return @row ? join("", @{$row[0]}) : "dead";
    };
    is($live->(), "tftt", "a read-only key of plan pro");
    my %plans = (free => "tfff", starter => "tfff", standard => "tftf",
        pro => "tftt", enterprise => "tftt");
    for my $plan (sort keys %plans) {
        sql($db, "UPDATE crmapi.workspace SET plan = '$plan' "
            . "WHERE id = '$s->{id}'");
        is($live->(), $plans{$plan}, "plan $plan");
    }
    refused("UPDATE crmapi.api_key SET can_read = false, can_write = true
        WHERE id = '$id'", qr/check constraint/, "write implies read");
    refused("UPDATE crmapi.api_key SET workspace_id = '$w->{id}'
        WHERE id = '$id'", qr/never changes/, "a key cannot be moved");
    refused("UPDATE crmapi.api_key SET key_hash = sha256('other')
        WHERE id = '$id'", qr/never changes/, "nor become another");
    refused(row("api_key", id => uuid(), %{$w->{in}}, name => "K",
        display => "x", can_read => "t", can_write => "t",
        key_hash => "\\x$hash"), qr/unique/, "nor have two workspaces");
    refused(row("api_key", id => uuid(), %{$w->{in}}, name => "K",
        display => "x", can_read => "t", can_write => "t",
        key_hash => "\\x00"), qr/check constraint/, "a hash is SHA-256");
    sql($db, "UPDATE crmapi.api_key SET revoked_at = now() WHERE id = '$id'");
    is($live->(), "dead", "a revoked key is not live");
    refused("UPDATE crmapi.api_key SET revoked_at = NULL WHERE id = '$id'",
        qr/never changes/, "and stays revoked");
    refused("UPDATE crmapi.workspace SET slug = 'other' WHERE id = '$s->{id}'",
        qr/never changes/, "a slug stays what it is");
    my $plan = join "\n", map { $_->[0] } sql($db, "SET enable_seqscan = off;
        EXPLAIN (COSTS OFF) SELECT 1 WHERE (SELECT k.read AND k.plan_api
        FROM crmapi.live_key k WHERE k.workspace_id = '$s->{id}'
        AND k.key_id = '$id')");
    is(() = $plan =~ /Index (?:Only )?Scan/g, 1,
        "the check is one look-up in a unique index") or diag($plan);
};

subtest "a key has its plan's rights at every moment (contract 3.3)" => sub {
    my $s = space();
    my $plan = "plan " . uuid();
    my ($free, $pro) = map { [$_, "UPDATE crmapi.workspace SET plan = '$_'
        WHERE id = '$s->{id}'"] } "free", $plan;
    my $wrong = "SELECT count(*) FROM crmapi.api_key k
        JOIN crmapi.workspace w ON w.id = k.workspace_id
        JOIN crmapi.plan p ON p.name = w.plan
        WHERE (k.plan_api, k.plan_sequences)
            IS DISTINCT FROM (p.api, p.api AND p.sequences)";
    my $rights = sub { join "", @{(sql($db, "SELECT DISTINCT plan_api,
        plan_sequences FROM crmapi.live_key
        WHERE workspace_id = '$s->{id}'"))[0]} };
    my $key = sub { row("api_key", id => uuid(), %{$s->{in}}, name => "K",
        display => "x", can_read => "t", can_write => "t",
        key_hash => "\\x" . sha256_hex(uuid())) };

    sql($db, "INSERT INTO crmapi.plan VALUES ('$plan', true, false)");
    sql($db, $_) for $key->(), $key->();
    is($rights->(), "tt", "plan pro");
    sql($db, $pro->[1]);
    is($rights->(), "tf", "a plan without sequences");
    sql($db, "UPDATE crmapi.plan SET sequences = true WHERE name = '$plan'");
    is($rights->(), "tt", "the plan is given sequences");
    sql($db, "UPDATE crmapi.plan SET api = false WHERE name = '$plan'");
    is($rights->(), "ff", "no sequences without the API");
    sql($db, $key->());
    is($rights->(), "ff", "a new key, too");
    # each waits for the other, whichever comes first
    for my $case ([$key->(), $free->[1], "a key, then another plan"],
            [$free->[1], $key->(), "another plan, then a key"],
            [$pro->[1], "UPDATE crmapi.plan SET api = true
                WHERE name = '$plan'", "another plan, then that plan's rights"],
            ["UPDATE crmapi.plan SET api = false WHERE name = '$plan'",
                $key->(), "a plan's rights, then a key"]) {
        my ($first, $second, $name) = @$case;
        my $end = holding($db, $first);
        my $waits = CrmTest::Child->start(sub { sql($db, $second); 1 });
        wait_blocked($db, 1);
        $end->("COMMIT");
        is(($waits->result)[0], 1, "$name: done");
        is(sql($db, $wrong), 0, "$name: right") or last;
    }
    sql($db, $free->[1]);
    sql($db, "DELETE FROM crmapi.plan WHERE name = '$plan'");
};

# ---- cards --------------------------------------------------------------------

subtest "a card's place (contract 9.8)" => sub {
    my $s = space();
    my ($first, $second) = @{$s->{stages}};
    my %card = (%{$s->{in}}, pipeline_stage_id => $first, title => "T");
    my @cards = map { make("pipeline_card", %card) } 1 .. 3;
    is_deeply([map { value("pipeline_card", $_, "order_index") } @cards],
        [0, 1, 2], "the end of the stage, 0 in an empty one");
    make("pipeline_card", %card, order_index => 41);
    is(value("pipeline_card", make("pipeline_card", %card), "order_index"),
        42, "the highest + 1");
    sql($db, "UPDATE crmapi.pipeline_card SET pipeline_stage_id = '$second',
        order_index = NULL WHERE id = '$cards[1]'");
    is(value("pipeline_card", $cards[1], "order_index"), 0, "moved: the end");
    is(value("pipeline_card", $cards[2], "order_index"), 2,
        "others are not renumbered");
    sql($db, row("pipeline_card", %card, id => uuid(),
        order_index => 2147483647)
        . row("pipeline_card", %card, id => uuid()));
    is(scalar sql($db, "SELECT count(*) FROM crmapi.pipeline_card WHERE
        pipeline_stage_id = '$first' AND order_index = 2147483647"), 2,
        "the highest number there is is no end");
    sql($db, "INSERT INTO crmapi.pipeline_card (workspace_id, id,
        pipeline_stage_id, title) SELECT '$s->{id}', gen_random_uuid(),
        '$second', 'T' FROM generate_series(1, 5)");
    is(scalar sql($db, "SELECT string_agg(order_index::text, ' '
        ORDER BY order_index) FROM crmapi.pipeline_card
        WHERE pipeline_stage_id = '$second'"), "0 1 2 3 4 5",
        "many in one statement");
    my $third = make("pipeline_stage", %{$s->{owned}}, name => "S",
        pipeline_id => $s->{pipeline}, order_index => 2);
    done_at_once("sixty at once, by twelve", map { join "", map {
        row("pipeline_card", %card, id => uuid(),
        pipeline_stage_id => $third) } 1 .. 5 } 1 .. 12);
    is_deeply([map { $_->[0] } sql($db, "SELECT order_index
        FROM crmapi.pipeline_card WHERE pipeline_stage_id = '$third'
        ORDER BY 1")], [0 .. 59], "have sixty places");
};

# ---- deletes ------------------------------------------------------------------

subtest "deleting a contact (contract 9.6)" => sub {
    my $s = space();
    my ($contact, $other) = map { make("contact", %{$s->{owned}}) } 1, 2;
    my $company = make("company", %{$s->{owned}}, name => "C");
    my %of = (%{$s->{in}}, contact_id => $contact);
    my $card = make("pipeline_card", %of, title => "T",
        pipeline_stage_id => $s->{stages}[0],
        updated_at => "2026-01-01T00:00:00Z");
    my $talk = make("conversation", %{$s->{owned}}, %of, type => 1);
    my $form = make("form", %{$s->{owned}}, name => "F");
    my $sent = make("submission", %of, form_id => $form);
    my $alone = make("activity", %of, activity_type => "note");
    my $shared = make("activity", %of, activity_type => "note",
        company_id => $company, updated_at => "2026-01-01T00:00:00Z");
    my $theirs = make("activity", %{$s->{in}}, activity_type => "note",
        contact_id => $other);
    my $template = make("sequence_template", %{$s->{in}}, name => "T");
    my @enrollments = map { make("enrollment", %of, %start,
        sequence_id => make("sequence", %{$s->{owned}}, name => "S",
            template_id => $template)) } 1 .. 2;
    my @steps = map { make("enrollment_step", %{$s->{in}}, sort_order => $_,
        enrollment_id => $enrollments[0], channel => "sms",
        status => $_ == 1 ? "sent" : "scheduled") } 1 .. 2;
    for my $n (0, 1) {
        sql($db, row("job", %{$s->{in}}, kind => "sequence.generate",
            payload => qq({"enrollment_id": "$enrollments[$n]"})));
    }
    sql($db, row("job", %{$s->{in}}, kind => "other"));
    sql($db, "UPDATE crmapi.enrollment SET status = 'failed',
        generation_error = 'x' WHERE id = '$enrollments[1]'");

    as($api, "DELETE FROM crmapi.contact WHERE workspace_id = '$s->{id}'
        AND id = '$contact'");
    is(value("pipeline_card", $card, "contact_id IS NULL
        AND updated_at > '2026-01-02'"), "t", "cards stay, changed");
    is(value("conversation", $talk, "contact_id"), undef,
        "conversations stay");
    is(value("submission", $sent, "contact_id"), undef, "submissions stay");
    is(value("activity", $alone, "1"), undef, "its own activities go");
    is(value("activity", $shared, "contact_id IS NULL
        AND updated_at > '2026-01-02'"), "t", "those of a company lose it");
    is(value("activity", $theirs, "contact_id"), $other,
        "those of others do not");
    is(value("enrollment", $enrollments[0],
        "status || ' ' || stop_reason || ' ' || contact_id"),
        "stopped_user contact_deleted $contact",
        "a live enrollment stops and keeps the id");
    is(value("enrollment", $enrollments[1],
        "status || ' ' || (stop_reason IS NULL) || ' ' || contact_id"),
        "failed true $contact", "an ended one stays as it is");
    is(join(" ", map { value("enrollment_step", $_, "status") } @steps),
        "sent cancelled", "what was not sent never is");
    is_deeply([sql($db, "SELECT kind, state, count(*) FROM crmapi.job
        WHERE workspace_id = '$s->{id}' GROUP BY 1, 2 ORDER BY 1, 2")],
        [["other", "ready", 1], ["sequence.generate", "cancelled", 1],
            ["sequence.generate", "ready", 1]],
        "the live enrollment's job is cancelled, no other");
    counters_right("totals");
};

subtest "deleting a company (contract 9.6)" => sub {
    my $s = space();
    my $company = make("company", %{$s->{owned}}, name => "C");
    my $contact = make("contact", %{$s->{owned}}, company_id => $company,
        updated_at => "2026-01-01T00:00:00Z");
    my $alone = make("activity", %{$s->{in}}, activity_type => "note",
        company_id => $company);
    my $shared = make("activity", %{$s->{in}}, activity_type => "note",
        company_id => $company, contact_id => $contact,
        updated_at => "2026-01-01T00:00:00Z");
    as($api, "DELETE FROM crmapi.company WHERE workspace_id = '$s->{id}'
        AND id = '$company'");
    is(value("contact", $contact, "company_id IS NULL
        AND updated_at > '2026-01-02'"), "t", "contacts stay, changed");
    is(value("activity", $alone, "1"), undef, "its own activities go");
    is(value("activity", $shared, "company_id IS NULL AND contact_id = "
        . "'$contact' AND updated_at > '2026-01-02'"), "t",
        "those of a contact lose it");
};

subtest "both ends of an activity go at once" => sub {
    my $s = space();
    my @pairs = map { [make("company", %{$s->{owned}}, name => "C"),
        make("contact", %{$s->{owned}})] } 1 .. 15;
    for my $pair (@pairs) {
        make("activity", %{$s->{in}}, activity_type => "note",
            company_id => $pair->[0], contact_id => $pair->[1]) for 1, 2;
    }
    done_at_once("neither fails",
        join("", map { "DELETE FROM crmapi.company WHERE id = '$_->[0]';" }
            @pairs),
        join("", map { "DELETE FROM crmapi.contact WHERE id = '$_->[1]';" }
            @pairs));
    is(scalar sql($db, "SELECT count(*) FROM crmapi.activity
        WHERE workspace_id = '$s->{id}'"), 0, "nothing is left");
};

# ---- sequences ----------------------------------------------------------------

my @live = qw(generating pending_approval approved running);
my @ended = qw(stopped_reply stopped_user stopped_unsubscribed completed
    failed);
my @stops = qw(stopped_reply stopped_user stopped_unsubscribed failed);
my %moves = (
    generating => [qw(pending_approval approved), @stops],
    pending_approval => ["approved", @stops],
    approved => [qw(running completed), @stops],
    running => ["completed", @stops],
);

subtest "transitions (contract 11.7, 11.9)" => sub {
    my $s = space();
    my $template = make("sequence_template", %{$s->{in}}, name => "T");
    my $contact = make("contact", %{$s->{owned}});
    my %way = (generating => [], pending_approval => ["pending_approval"],
        approved => ["approved"], running => [qw(approved running)],
        completed => [qw(approved completed)],
        map { $_ => [$_] } @stops);
    my $move = "UPDATE crmapi.enrollment SET generation_error = 'x', status = ";
    for my $from (@live, @ended) {
        my %may = map { $_ => 1 } @{$moves{$from} || []};
        for my $to (@live, @ended) {
            next if $to eq $from;
            my $sequence = make("sequence", %{$s->{owned}}, name => "S",
                template_id => $template);
            my $id = make("enrollment", %{$s->{in}}, contact_id => $contact,
                sequence_id => $sequence, %start,
                updated_at => "2100-01-01T00:00:00Z");
            sql($db, "$move'$_' WHERE id = '$id'") for @{$way{$from}};
            my $before = value("enrollment", $id, "updated_at");
            if (!$may{$to}) {
                refused("$move'$to' WHERE id = '$id'",
                    qr/does not go from $from to $to/, "not $from to $to");
                next;
            }
            sql($db, "$move'$to' WHERE id = '$id'");
            is(value("sequence", $sequence, "status"), $to eq "completed"
                || $to eq "failed" ? $to : $to =~ /^stopped/ ? "stopped"
                : "active", "$from to $to");
            is(value("enrollment", $id, "updated_at > '$before'"), "t",
                "$from to $to: updated_at moves forward (6.6)");
        }
    }
    refused(row("enrollment", id => uuid(), %{$s->{in}}, status => "approved",
        contact_id => $contact, contact_action => "created",
        sequence_id => make("sequence", %{$s->{owned}}, name => "S",
            template_id => $template)), qr/begins as generating/,
        "none begins elsewhere");
};

subtest "one sequence for an idempotency key (contract 11.2)" => sub {
    my $s = space();
    my $template = make("sequence_template", %{$s->{in}}, name => "T");
    my %row = (%{$s->{owned}}, name => "S", template_id => $template);
    make("sequence", %row, idempotency_key => "K");
    refused(row("sequence", id => uuid(), %row, idempotency_key => "K"),
        qr/unique/, "not a second");
    ok(make("sequence", %row, idempotency_key => "k"), "case counts");
    ok(make("sequence", %row) && make("sequence", %row), "none: as many as you like");
    make("sequence_template", %{$x->{in}}, id => $template, name => "T");
    ok(make("sequence", %{$x->{owned}}, name => "S", template_id => $template,
        idempotency_key => "K"), "another workspace has its own");
    refused(row("sequence", id => uuid(), %row, idempotency_key => $_),
        qr/check constraint/, length($_) . " characters") for "", "x" x 256;
};

subtest "a job wakes whoever listens" => sub {
    my ($code, $out, $err) = run_program(command => ["psql", "-X", "-q", "-d",
        postgres()->conninfo($db, "postgres")], stdin => "LISTEN crmapi_job;\n"
        . row("job", %{$w->{in}}, kind => "k") . "SELECT 1;\n");
    like($out, qr/notification "crmapi_job"/, "notified") or diag($err);
};

# The table of channels in C and what SQL knows of them.
subtest "channels: C and SQL agree" => sub {
    my $source = read_file("$CrmTest::TOP/mod_crmapi/crm/crm_channel.c");
    my $header = read_file("$CrmTest::TOP/mod_crmapi/crm/crm_channel.h");
    my %code = $header =~ /^#define CRM_CODE_(\w+) "(\d+)"/mg;
    my %way = $header =~ /^#define CRM_WAY_(\w+) "(\w+)"/mg;
    my %rows = $source =~ /^    \[CRM_CHANNEL_(\w+)\] = \{(.*?)^    \},/msg;
    my %sent;

    is(keys %rows, 5, "five channels");
    is(join(" ", sort map { $rows{$_} =~ /\.code = CRM_CODE_$_,/ ? $code{$_} : () }
        keys %rows), "1 2 3 4 5", "each with its code");
    for my $name (sort keys %rows) {
        my ($by) = $rows{$name} =~ /\.answer = CRM_ANSWER_(SMS|EMAIL)/;
        my ($sends) = $rows{$name} =~ /\.way = CRM_WAY_(\w+)/;

        is(as(undef, "SELECT crmapi.answer_channel('$code{$name}')") || "",
            $by ? lc $by : "", "$name: what sends an answer");
        next unless $sends;
        $sent{$way{$sends}} = 1;
        is(as(undef, "SELECT crmapi.step_type('$way{$sends}')"), $code{$name},
            "$name: the type of a conversation by $way{$sends}");
    }
    for my $check (["enrollment_step", "channel"],
        ["sequence_template", "allowed_channels"]) {
        my $text = as(undef, "SELECT pg_get_constraintdef(oid) FROM pg_constraint
            WHERE conname = '$check->[0]_$check->[1]_check'");

        is_deeply([sort grep { $sent{$_} } $text =~ /(\w+)/g],
            [sort keys %sent], "$check->[0].$check->[1]: $text");
    }
};

# ---- totals -------------------------------------------------------------------

subtest "upkeep goes over workspaces, and waits for nobody" => sub {
    my @spaces = map { space() } 0 .. 1;
    my $mine = "workspace_id IN ('" . join("', '", map { $_->{id} } @spaces)
        . "')";
    # each of two workspaces has two rows of before 2000 and one of now
    my %rows = (
        intake_event => sub { (event_id => uuid()) },
        event => sub { (id => uuid(), type => "contact.created",
            body => "{}") },
        idempotent_answer => sub { (key => uuid(), request => "x",
            status => 200) },
        conversation => sub { (id => uuid(), type => 1,
            bot_id => $_[0]{bot}) });
    for my $table (sort keys %rows) {
        sql($db, join "", map { my $s = $_; map { row($table, %{$s->{in}},
            created_at => $_, $rows{$table}->($s)) } "1999-12-31",
            "1999-12-30", \"now()" } @spaces);
    }
    sql($db, row("job", %{$_->{in}}, kind => "x.y", state => "leased",
        leased_by => "ghost", leased_until => "1999-12-31") x 2
        . row("job", %{$_->{in}}, kind => "x.y", state => "leased",
            leased_by => "alive", leased_until => \"now() + '1 h'::interval"))
        for @spaces;
    my $old = "created_at < '2000-01-01'";
    postgres()->wait_reaping;
    for my $case (
            ["intake_event", $old, "intake_trim('2000-01-01', 100)"],
            ["event", $old, "event_trim('2000-01-01', 100)"],
            ["idempotent_answer", $old, "idempotency_trim(100)"],
            ["conversation", "active AND $old",
                "conversation_idle('2000-01-01', 100)"],
            ["job", "leased_by = 'ghost'", "job_reap()"]) {
        my ($table, $due, $call) = @$case;
        my $left = "SELECT count(*) FROM crmapi.$table WHERE $mine AND $due";
        my $let_go = holding($db, "SELECT FROM crmapi.$table WHERE $due
            AND workspace_id = '$spaces[0]{id}' LIMIT 1 FOR UPDATE");
        is(sql($db, "SET lock_timeout = '1s'; SELECT crmapi.$call"), 3,
            "$call: all but the one that is locked");
        is(sql($db, $left), 1, "it is left");
        $let_go->();
        is(sql($db, "SELECT crmapi.$call"), 1, "until the next run");
        is(sql($db, $left), 0, "nothing is due any more");
        is(sql($db, "SELECT count(*) FROM crmapi.$table WHERE $mine"),
            $table =~ /conversation|job/ ? 6 : 2, "what is not due stays");
    }
};

subtest "totals follow every change (contract 7.11)" => sub {
    my $s = space();
    my $bot = make("agent", %{$s->{in}}, name => "Bob");
    my @contacts = map { make("contact", %{$s->{owned}}) } 1 .. 3;
    make("contact", %{$s->{in}}, bot_id => $bot);
    is(total($s, "contact"), 4, "of the workspace");
    is(total($s, "contact", $bot), 1, "of an agent");
    sql($db, "UPDATE crmapi.contact SET bot_id = '$bot' "
        . "WHERE id = '$contacts[0]'");
    is(total($s, "contact", $bot), 2, "of an agent that gets another's");
    is(total($s, "contact", $s->{bot}), 2, "of the other");
    sql($db, "DELETE FROM crmapi.contact WHERE id = '$contacts[0]'");
    is(total($s, "contact"), 3, "after a delete");

    my @talks = map { make("conversation", %{$s->{owned}}, type => 1,
        deleted => (undef, "f", "t")[$_]) } 0 .. 2;
    is(total($s, "conversation"), 2, "conversations that are not deleted");
    for my $is (qw(t t f)) {
        sql($db, "UPDATE crmapi.conversation SET deleted = '$is' "
            . "WHERE id = '$talks[0]'");
        is(total($s, "conversation"), $is eq "t" ? 1 : 2, "deleted = $is");
    }
    my $card = make("pipeline_card", %{$s->{in}}, title => "T",
        pipeline_stage_id => $s->{stages}[0]);
    make("pipeline_card", %{$s->{in}}, title => "T", archived_at => "now",
        pipeline_stage_id => $s->{stages}[0]);
    is(total($s, "pipeline_card"), 1, "cards that are not archived");
    sql($db, "UPDATE crmapi.pipeline_card SET archived_at = now() "
        . "WHERE id = '$card'");
    is(total($s, "pipeline_card"), 0, "archived");
    sql($db, "UPDATE crmapi.pipeline_card SET archived_at = NULL "
        . "WHERE id = '$card'");
    is(total($s, "pipeline_card"), 1, "and not any more");
    make("company", %{$s->{owned}}, name => "C");
    is(total($s, "company"), 1, "companies");
    sql($db, "BEGIN; DELETE FROM crmapi.contact; ROLLBACK;");
    counters_right("all of them, after a rollback as well");
    is_deeply([sql($db, "BEGIN; UPDATE crmapi.counter SET n = n + 1
        WHERE workspace_id = '$s->{id}' AND kind = 'company';
        SELECT kind, counted - actual FROM crmapi.counter_verify()
        WHERE workspace_id = '$s->{id}'; ROLLBACK")], [["company", 1],
        ["company", 1]], "one that is wrong would be shown");
    refused("TRUNCATE crmapi.contact CASCADE", qr/counted/,
        "a TRUNCATE would be missed, so it is refused");
};

subtest "totals with many writers" => sub {
    my $s = space();
    my $insert = "INSERT INTO crmapi.contact (workspace_id, id, bot_id)
        SELECT '$s->{id}', gen_random_uuid(), '$s->{bot}'
        FROM generate_series(1, 7);";
    my $delete = "DELETE FROM crmapi.contact WHERE workspace_id = '$s->{id}'
        AND id = (SELECT id FROM crmapi.contact
            WHERE workspace_id = '$s->{id}' LIMIT 1 FOR UPDATE SKIP LOCKED);";
    done_at_once("none fails, none is deadlocked",
        ("$insert $delete" x 10) x 24);
    is(total($s, "contact"), scalar sql($db, "SELECT count(*)
        FROM crmapi.contact WHERE workspace_id = '$s->{id}'"), "are exact");
    counters_right("and so are all others");
};

subtest "a long import holds nobody up" => sub {
    my $s = space();
    my $contact = uuid();
    my $file = tempdir("crm-import-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    write_file("$file/lines", qq({"object":"contact","id":"$contact",)
        . qq("bot_id":"$s->{bot}"}\n{"object":"activity","contact_id":)
        . qq("$contact","activity_type":"note"}\n));
    # it has counted its contact, and waits for its activity
    my $let_go = holding($db,
        "LOCK TABLE crmapi.activity IN EXCLUSIVE MODE");
    my $pid = spawn(log => "$file/log", command => [$CrmTest::BUILD{CTL},
        "--database", postgres()->conninfo($db), "import", "--workspace",
        $s->{id}, "$file/lines"]);
    my ($importer) = wait_blocked($db, 1);
    for my $slot (0 .. 15) {
        ok(eval { sql($db, "SET lock_timeout = '1s';
            SET crmapi.counter_slot = '$slot'; "
            . row("contact", id => uuid(), %{$s->{owned}})); 1 },
            "who counts in slot $slot writes meanwhile") or diag($@);
    }
    is_deeply([wait_blocked($db, 1)], [$importer], "it is not yet done");
    is(total($s, "contact"), 16, "nor seen");
    $let_go->();
    waitpid $pid, 0;
    is($?, 0, "then it is done") or diag(read_file("$file/log"));
    is(total($s, "contact"), 17, "and all are counted");
};

subtest "what does not count costs no counter" => sub {
    my $s = space();
    my $id = make("contact", %{$s->{owned}});
    my $before = scalar sql($db, "SELECT array_agg(xmin::text ORDER BY ctid)
        FROM crmapi.counter WHERE workspace_id = '$s->{id}'");
    like($before, qr/\d/, "it is counted");
    sql($db, "UPDATE crmapi.contact SET notes = 'x', bot_id = bot_id "
        . "WHERE id = '$id'");
    is(scalar sql($db, "SELECT array_agg(xmin::text ORDER BY ctid)
        FROM crmapi.counter WHERE workspace_id = '$s->{id}'"), $before,
        "no row of it is written");
};

# ---- a workspace goes ---------------------------------------------------------

subtest "deleting a workspace takes all of it" => sub {
    my $s = space();
    my $company = make("company", %{$s->{owned}}, name => "C",
        pipeline_stage_id => $s->{stages}[0]);
    my $contact = make("contact", %{$s->{owned}}, company_id => $company,
        pipeline_stage_id => $s->{stages}[1]);
    my %of = (%{$s->{in}}, contact_id => $contact);
    make("pipeline_card", %of, title => "T",
        pipeline_stage_id => $s->{stages}[0]);
    make("activity", %of, activity_type => "note");
    make("activity", %{$s->{in}}, activity_type => "note",
        company_id => $company);
    my $talk = make("conversation", %{$s->{owned}}, %of, type => 1);
    my $said = make("message", %{$s->{in}}, conversation_id => $talk,
        role => "user");
    my $file = make("attachment", %{$s->{in}}, message_id => $said,
        number => 1, size => 1, stored => "true");
    sql($db, row("attachment_piece", %{$s->{in}}, attachment_id => $file,
        number => 1, bytes => "x"));
    sql($db, row("original", %{$s->{in}}, message_id => $said, number => 1,
        created_at => "now", bytes => "x"));
    sql($db, row("chat_unseen", %{$s->{in}}, since => "now",
        conversation_id => $talk));
    sql($db, row("message_html", %{$s->{in}}, message_id => $said,
        html => "x"));
    sql($db, row("intake_event", %{$s->{in}}, event_id => "e"));
    make("intake_key", %{$s->{in}}, name => "K", display => "x",
        key_hash => \"sha256('intake')");
    make("submission", %of, form_id => make("form", %{$s->{owned}},
        name => "F"));
    my $enrollment = make("enrollment", %of, %start,
        sequence_id => make("sequence", %{$s->{owned}}, name => "S",
            template_id => make("sequence_template", %{$s->{owned}},
                name => "T")));
    make("enrollment_step", %{$s->{in}}, enrollment_id => $enrollment,
        sort_order => 1, channel => "sms");
    make("suppression", %{$s->{in}}, email => "a\@b");
    sql($db, row("job", %{$s->{in}}, kind => "k"));
    sql($db, row("workspace_hold", %{$s->{in}}, reason => "R"));
    sql($db, row("step_bound", %{$s->{in}}, due_before => "now"));
    sql($db, row("past_send", %{$s->{in}}, enrollment_id => $enrollment,
        part => "1", state => "sent", sent_at => "now"));
    sql($db, row("past_answer", %{$s->{in}}, message_id => $said,
        state => "sent", sent_at => "now"));
    make("audit", %{$s->{in}}, at => "now", actor_kind => "system",
        actor => "a", login => "l", action => "a", object => "o",
        details => "{}");
    sql($db, row("usage", %{$s->{in}}, day => "2026-01-01"));
    make("contact_merged", %{$s->{in}}, merged_into => uuid());
    make("admin", %{$s->{in}}, email => "a\@b");
    sql($db, row("send_count", %{$s->{in}}, bot_id => $s->{bot},
        day => "2026-01-01", n => 1));
    my $hook = make("webhook_endpoint", %{$s->{in}}, url => "http://x.org",
        events => "{contact.created}", key => \"sha256('k')");
    my $event = make("event", %{$s->{in}}, type => "t", body => "b");
    my $delivery = make("webhook_delivery", %{$s->{in}}, event_id => $event,
        endpoint_id => $hook, job_id => 1);
    sql($db, row("webhook_attempt", %{$s->{in}}, delivery_id => $delivery,
        number => 1, started_at => "now", duration_ms => 1));
    make("api_key", %{$s->{in}}, name => "K", display => "x",
        can_read => "t", can_write => "t", key_hash => \"sha256('gone')");
    sql($db, row("idempotent_answer", %{$s->{in}}, key => \"sha256('k')",
        request => \"sha256('r')", status => 204));
    sql($db, row("erase_key", %{$s->{in}}, key => \"sha256('e')"));
    sql($db, row("erased_address", %{$s->{in}}, kind => "email",
        hash => \"sha256('a')"));
    my @tables = map { $_->[0] } sql($db, "SELECT attrelid::regclass
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
        WHERE attname = 'workspace_id' AND relkind = 'r'
          AND relnamespace = 'crmapi'::regnamespace
          AND c.relname <> 'erasure'    -- it outlives the workspace
        ORDER BY 1");
    cmp_ok(scalar @tables, ">", 18, "there are tables");
    my $left = join " UNION ALL ", map { "SELECT '$_' FROM $_ WHERE "
        . "workspace_id = '$s->{id}'" } @tables;
    my %full = map { $_->[0] => 1 } sql($db, $left);
    is(join(" ", grep { !$full{$_} } @tables), "", "all of them have rows");
    sql($db, "DELETE FROM crmapi.workspace WHERE id = '$s->{id}'");
    is_deeply([sql($db, $left)], [], "and now none has, nor a counter");
    counters_right("of other workspaces");
};

subtest "a workspace goes while others write to it" => sub {
    my $s = space();
    # each writes until it is refused; the workspace goes when all write
    my $writer = "DO \$\$ BEGIN LOOP
        BEGIN
            INSERT INTO crmapi.contact (workspace_id, id, bot_id, last_name)
            VALUES ('$s->{id}', gen_random_uuid(), '$s->{bot}',
                pg_backend_pid());
        EXCEPTION WHEN foreign_key_violation THEN EXIT;
        END;
        COMMIT;
        END LOOP; END \$\$";
    my $delete = "DO \$\$ BEGIN
        WHILE (SELECT count(DISTINCT last_name) FROM crmapi.contact
            WHERE workspace_id = '$s->{id}') < 8 LOOP
            COMMIT;
        END LOOP;
        DELETE FROM crmapi.workspace WHERE id = '$s->{id}'; END \$\$";
    done_at_once("they are told that it is gone", ($writer) x 8, $delete);
    is(scalar sql($db, "SELECT count(*) FROM crmapi.contact
        WHERE workspace_id = '$s->{id}'"), 0, "nothing is left");
    counters_right("and no counter comes back");
};

# ---- rights -------------------------------------------------------------------

subtest "the API's role may do what the API does and no more" => sub {
    my $s = space();
    my $c = "'$s->{id}', gen_random_uuid()";
    my $talk = make("conversation", %{$s->{owned}}, type => 1);
    make("api_key", %{$s->{in}}, name => "K", display => "x",
        can_read => "t", can_write => "t", key_hash => \"sha256('api')");
    my @may = (
        "INSERT INTO crmapi.contact (workspace_id, id, bot_id)
            VALUES ($c, '$s->{bot}')",
        "UPDATE crmapi.contact SET notes = 'x'",
        "INSERT INTO crmapi.pipeline_card (workspace_id, id,
            pipeline_stage_id, title) VALUES ($c, '$s->{stages}[0]', 'T')",
        "DELETE FROM crmapi.contact WHERE workspace_id = '$s->{id}'",
        "UPDATE crmapi.conversation SET deleted = true WHERE id = '$talk'
            RETURNING *",
        "UPDATE crmapi.api_key SET last_used_at = now()
            WHERE workspace_id = '$s->{id}' AND id = '$talk'",
        "SELECT read FROM crmapi.live_key",
        "SELECT max(number) FROM crmapi.migration",
        "SELECT sum(n) FROM crmapi.counter",
        "INSERT INTO crmapi.job (workspace_id, kind) VALUES ('$s->{id}', 'k')",
        "INSERT INTO crmapi.event (workspace_id, id, type, fields)
            VALUES ($c, 't', '{}')",
    );
    for my $sql (@may) {
        ok(eval { scalar as($api, $sql); 1 }, "may: " . substr $sql, 0, 50)
            or diag($@);
    }
    my @may_not = (
        "DELETE FROM crmapi.conversation", "TRUNCATE crmapi.contact",
        "UPDATE crmapi.conversation SET email = 'x'",
        "INSERT INTO crmapi.conversation (workspace_id, id, bot_id, type)
            VALUES ($c, '$s->{bot}', 1)",
        "SELECT key_hash FROM crmapi.api_key",
        "SELECT display FROM crmapi.api_key", "SELECT * FROM crmapi.api_key",
        "UPDATE crmapi.api_key SET revoked_at = NULL",
        "UPDATE crmapi.api_key SET can_write = true",
        "DELETE FROM crmapi.api_key",
        "UPDATE crmapi.workspace SET plan = 'pro'",
        "UPDATE crmapi.plan SET api = true", "UPDATE crmapi.counter SET n = 0",
        "UPDATE crmapi.agent SET name = 'x'",
        "UPDATE crmapi.activity SET contact_id = NULL",
        "UPDATE crmapi.activity SET activity_type = 'call'",
        "UPDATE crmapi.enrollment SET status = 'completed'",
        "DELETE FROM crmapi.migration",
        "INSERT INTO crmapi.migration (number, name, sha256)
            VALUES (99, 'x', 'x')",
        "UPDATE crmapi.suppression SET reason = 'x'",
        "INSERT INTO crmapi.suppression (workspace_id, id, email)
            VALUES ($c, 'x\@x.org')", "SELECT * FROM crmapi.job",
        "CREATE TABLE crmapi.mine ()", "DROP TABLE crmapi.contact",
        "SELECT crmapi.counter_verify()", "DELETE FROM crmapi.event",
        "UPDATE crmapi.event SET fields = '{}'",
        "DELETE FROM crmapi.contact_change",
        "UPDATE crmapi.contact_change SET id = gen_random_uuid()",
        "SELECT setval('crmapi.event_number', 1)",
        "UPDATE crmapi.event_feed SET log = false",
        "INSERT INTO crmapi.webhook_delivery (workspace_id, id, event_id,
            endpoint_id, job_id) VALUES ($c, '$talk', '$talk', 1)",
    );
    for my $sql (@may_not) {
        refused($sql, qr/permission denied|must be owner/,
            "may not: " . substr($sql, 0, 60), $api);
    }
};

# Columns that no role of a daemon selects (contract 9.3), and all others that
# hold bytes: a new one has to be here or there.
my %secret = map { $_ => 1 } qw(api_key.key_hash intake_key.key_hash
    link_key.key link_key.old_key live_intake.key_hash live_key.key_hash
    webhook_endpoint.key webhook_endpoint.old_key erase_key.key
    erased_address.hash erasure.key);
my %open = map { $_ => 1 } qw(attachment_piece.bytes
    idempotent_answer.key idempotent_answer.request original.bytes);
my @logins = ($api, $CrmTest::Postgres::WORKER);

subtest "9.3 no role of a daemon reads a secret" => sub {
    my @bytes = map { $_->[0] } sql($db, "SELECT c.relname || '.' || a.attname
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'crmapi'::regnamespace AND a.attnum > 0
          AND c.relkind IN ('r', 'v', 'm') AND EXISTS (SELECT FROM pg_type t
              WHERE t.oid = a.atttypid AND 'bytea'::regtype IN (t.oid,
                  t.typbasetype))");
    is_deeply([sort @bytes], [sort keys %secret, keys %open],
        "all columns of bytes are known");
    for my $column (sort keys %secret) {
        my ($table, $name) = split /\./, $column;
        for my $role (qw(crmapi_api crmapi_worker), @logins) {
            is(scalar sql($db, "SELECT has_column_privilege('$role',
                'crmapi.$table', '$name', 'SELECT')"), "f",
                "$role has no right to read $column");
        }
        for my $role (@logins) {
            refused("SELECT $name FROM crmapi.$table", qr/permission denied/,
                "$role does not read $column", $role);
            refused("SELECT FROM crmapi.$table WHERE $name = '\\x00'",
                qr/permission denied/, "nor asks for it", $role);
            refused("SELECT * FROM crmapi.$table", qr/permission denied/,
                "nor all of $table", $role);
        }
    }
};

subtest "functions with their owner's rights" => sub {
    my @defined = sql($db, "SELECT p.oid::regprocedure::text,
            p.proowner = n.nspowner,
            'search_path=pg_catalog, pg_temp' = ANY (p.proconfig),
            has_function_privilege('public', p.oid, 'EXECUTE'),
            p.prorettype = 'trigger'::regtype
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.prosecdef AND n.nspname = 'crmapi'");
    cmp_ok(scalar @defined, ">", 30, "there are some");
    for my $one (@defined) {
        my ($name, $owned, $path, $public, $trigger) = @$one;
        is("$owned$path", "tt", "$name: by the owner, with a safe path");
        is($public, "f", "$name: not for everybody") if $trigger eq "f";
    }
    my @allowed = map { "$_->[0] $_->[1]" } sql($db, "SELECT r.rolname,
            p.proname FROM pg_proc p, pg_roles r
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND r.rolname IN ('crmapi_api', 'crmapi_worker')
          AND p.proname IN ('intake_key_find', 'token_mac',
              'token_sign_link', 'token_sign_page', 'token_signed',
              'token_old_mac', 'link_key_rotate', 'link_key_drop',
              'key_look_up', 'key_roll', 'webhook_mac', 'webhook_sign')
          AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
        ORDER BY 1, 2");
    is_deeply(\@allowed, ["crmapi_api intake_key_find",
        "crmapi_api key_look_up", "crmapi_api key_roll",
        "crmapi_api token_sign_page", "crmapi_api token_signed",
        "crmapi_worker token_sign_link", "crmapi_worker webhook_sign"],
        "who may call those that use secrets");
};

subtest "a key and a token are found by their hashes" => sub {
    my $s = space();
    for my $case (["api_key", "key_look_up", can_read => "t",
                can_write => "t"], ["intake_key", "intake_key_find"]) {
        my ($table, $function, @members) = @$case;
        my $id = make($table, %{$s->{in}}, name => "K", display => "x",
            @members, key_hash => \"sha256('$s->{id}')");
        my $found = sub { join " ", map { @$_ } as($api, "SELECT key_id,
            workspace_id, slug FROM crmapi.$function(sha256('$_[0]'))") };
        is($found->($s->{id}), "$id $s->{id} $s->{slug}",
            "$function: whose it is");
        is($found->("x"), "", "nobody's");
        sql($db, "UPDATE crmapi.$table SET revoked_at = now()
            WHERE id = '$id'");
        is($found->($s->{id}), "", "nor when it is revoked");
    }
};

subtest "tokens are signed and compared, each for its purpose" => sub {
    my $s = space();
    my $key = pack "H*", scalar sql($db, "SELECT encode(key, 'hex')
        FROM crmapi.link_key WHERE workspace_id = '$s->{id}'");
    my $daemon = $CrmTest::Postgres::WORKER;
    my $head = sub {
        my ($purpose, $workspace) = @_;
        return unpack "H*", pack "C C (H32)3 Q>", 1, $purpose,
            map({ s/-//gr } $workspace // $s->{id}, uuid(), uuid()), 7;
    };
    my $call = sub { my ($role, $function, @hex) = @_;
        my $value = as($role, "SELECT crmapi.$function("
            . join(", ", map { "'\\x$_'" } @hex) . ")");
        return $value };
    for my $purpose (1 .. 5) {
        my $one = $head->($purpose);
        my $mac = hmac_sha256_hex(pack("H*", $one), $key);
        is($call->($daemon, "token_sign_link", $one),
            $purpose <= 2 ? "\\x$mac" : undef, "$purpose: the worker's");
        is($call->($api, "token_sign_page", $one),
            $purpose == 3 || $purpose == 4 ? "\\x$mac" : undef,
            "$purpose: the API's");
        is($call->($api, "token_signed", $one, $mac), "t",
            "$purpose: the right signature");
        is($call->($api, "token_signed", $one, $_), "f", "a wrong one")
            for $mac =~ s/^(.)/$1 eq "0" ? "1" : "0"/er, $mac . "00",
                substr($mac, 2), "";
        is($call->($api, "token_signed", $head->($purpose), $mac), "f",
            "that of another token");
    }
    is($call->($api, "token_sign_page", $head->(3, uuid())), undef,
        "no such workspace");
    is($call->($api, "token_signed", $head->(3, uuid()), "00" x 32), "f",
        "nor a comparison");
    is($call->($api, "token_sign_page", $_), undef, "no token: $_")
        for "", "01", "0103", $head->(3) . "00", substr($head->(3), 2);
};

subtest "12.2 webhooks are signed as Standard Webhooks has it" => sub {
    my $s = space();
    is(scalar sql($db, "SELECT crmapi.webhook_mac(
        'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}',
        decode('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'))"),
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "the vector of its reference libraries");
    my @keys = ("k" x 24, "o" x 64);
    my $hook = make("webhook_endpoint", %{$s->{in}}, url => "https://x.org",
        events => "{contact.created}", key => $keys[0], old_key => $keys[1],
        old_key_until => "2026-11-01T00:00:00Z");
    my $event = make("event", %{$s->{in}}, type => "t",
        body => "{\"a\":\"\x{fc}\"}");
    my $delivery = make("webhook_delivery", %{$s->{in}}, event_id => $event,
        endpoint_id => $hook, job_id => 1);
    my $signed = sub { join " ", map { @$_ } as($CrmTest::Postgres::WORKER,
        "SELECT * FROM crmapi.webhook_sign('$_[0]', '$_[1]', '1700000000',
        $_[2])") };
    my $id = "msg_" . ($event =~ s/-//gr);
    my $text = "$id.1700000000.{\"a\":\"\xc3\xbc\"}";
    my @right = map { "v1," . encode_base64(hmac_sha256($text, $_), "") }
        @keys;
    is($signed->($s->{id}, $delivery, "'2026-10-31T23:59:59Z'"), "$id @right",
        "by the new and the old key");
    is($signed->($s->{id}, $delivery, "'2026-11-01T00:00:00Z'"), "$id $right[0]",
        "when its time is over by the new one");
    sql($db, "UPDATE crmapi.webhook_endpoint SET old_key_until = now()
        + interval '1 hour' WHERE id = '$hook'");
    is($signed->($s->{id}, $delivery, "NULL"), "$id @right",
        "at this moment");
    is($signed->(uuid(), $delivery, "NULL"), "", "of another workspace");
    sql($db, "UPDATE crmapi.event SET body = NULL, fields = '{}'
        WHERE id = '$event'");
    is($signed->($s->{id}, $delivery, "NULL"), "", "without a body");
};

# ---- the files ----------------------------------------------------------------

# Who may call a function, by the last sentence of its comment.
my %CALLERS = (Internal => "", "For the owner" => "",
    "A trigger function" => "trigger",
    "For the API" => "crmapi_api", "For the worker" => "crmapi_worker",
    "For the API and the worker" => "crmapi_api crmapi_worker");

subtest "each function is short, and its comment says who may call it" => sub {
    my %callers = map { @$_ } sql($db, "SELECT p.proname,
            CASE WHEN p.prorettype = 'trigger'::regtype THEN 'trigger'
            ELSE coalesce((SELECT
                string_agg(r.rolname, ' ' ORDER BY r.rolname)
                FROM pg_roles r
                WHERE r.rolname IN ('crmapi_api', 'crmapi_worker')
                  AND has_function_privilege(r.oid, p.oid, 'EXECUTE')), '')
            END
        FROM pg_proc p WHERE p.pronamespace = 'crmapi'::regnamespace
          AND p.proname !~ '_fields\$'");       # migrate makes them
    my $functions = functions();
    is_deeply([sort keys %$functions], [sort keys %callers],
        "all are found in the files");
    for my $name (sort keys %$functions) {
        my ($lines, $comment) = @{$functions->{$name}}{qw(lines comment)};
        cmp_ok($lines, "<=", 60, "$functions->{$name}{file}: $name is short");
        my ($last) = ($comment // "")
            =~ /(Internal|A trigger function|For the [\w ]+)\.$/;
        is($callers{$name}, !defined $comment ? "a comment"
            : $CALLERS{$last // "For the API and the worker"},
            "$name: who may call it");
    }
};

# ---- migrations ---------------------------------------------------------------

# A copy of schema/ and an empty database.
sub fresh {
    my $dir = tempdir("crm-schema-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    write_file("$dir/$_", read_file("$CrmTest::TOP/schema/$_"))
        for files("$CrmTest::TOP/schema");
    symlink "$CrmTest::TOP/schema/repeat", "$dir/repeat" or die "$dir: $!\n";
    return ($dir, database(template => undef));
}

# Run "crmapictl migrate" with the files in DIR: (exit code, stderr).
sub migrate {
    my ($dir, $name) = @_;
    my ($code, $out, $err) = crmapictl($name,
        { env => { CRMAPI_SCHEMA_DIR => $dir } }, "migrate");
    return ($code, $err);
}

my $expected = (read_file("$CrmTest::TOP/mod_crmapi/database/crm_migrate.h")
    =~ /CRM_SCHEMA_VERSION (\d+)/)[0];

subtest "migrations are recorded, each with its checksum" => sub {
    my @files = files("$CrmTest::TOP/schema");
    is($expected, scalar @files, "CRM_SCHEMA_VERSION is the last file's");
    is_deeply([sql($db, "SELECT number, name, sha256 FROM crmapi.migration
        ORDER BY number")],
        [map { [0 + substr($_, 0, 4), $_, sha256_hex(do {
            open(my $in, "<:raw", "$CrmTest::TOP/schema/$_") or die; local $/;
            <$in> })] } @files], "all of them");
};

subtest "migrating" => sub {
    my ($dir, $name) = fresh();
    my ($code, $err) = migrate($dir, $name);
    is($code, 0, "an empty database") or diag($err);
    is((migrate($dir, $name))[0], 0, "a second time");
    is(scalar sql($name, "SELECT count(*) FROM crmapi.migration"), $expected,
        "does nothing");

    my $next = sprintf "%04d-more.sql", $expected + 1;
    write_file("$dir/$next", "CREATE TABLE crmapi.more ();\n"
        . "INSERT INTO crmapi.nowhere VALUES (1);\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a statement that fails");
    like($err, qr/\Q$next\E.*nowhere/, "is told with its file");
    is(scalar sql($name, "SELECT to_regclass('crmapi.more')"), undef,
        "and leaves nothing");

    write_file("$dir/$next", "CREATE TABLE crmapi.more ();\n");
    is((migrate($dir, $name))[0], 0, "mended");
    unlink "$dir/$next";
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a database newer than the files");
    like($err, qr/has migration @{[$expected + 1]}, newer than the last file/,
        "is told");
    like($err, qr/newer crmapictl; .*unreleased version must be created again/,
        "with what to do");

    write_file("$dir/$next", "CREATE TABLE crmapi.other ();\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a file that was changed after it had been applied");
    like($err, qr/\Q$next\E was changed/, "is told");
    like($err, qr/release's files; .*unreleased version must be created again/,
        "with what to do");

    write_file("$dir/$next", "CREATE TABLE crmapi.more ();\n");
    my $gap = sprintf "$dir/%04d-gap.sql", $expected + 3;
    write_file($gap, "SELECT 1;\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a gap");
    like($err, qr/\b@{[sprintf "%04d", $expected + 2]}\b/, "is told");
    unlink $gap;
    is((migrate($dir, $name))[0], 0, "without it all is well");
    write_file(sprintf("$dir/%04d-twin.sql", $expected + 1), "SELECT 1;\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a number twice");
    like($err, qr/\b@{[sprintf "%04d", $expected + 2]} comes next/, "is told");
};

subtest "two that migrate at once" => sub {
    my ($dir, $name) = fresh();
    my (undef, $second) = fresh();
    my @pids = map {
        my $to = $_;
        my $pid = fork // die;
        if (!$pid) {
            my ($code, $err) = migrate($dir, $to);
            warn $err if $code;
            require POSIX;
            POSIX::_exit($code);
        }
        $pid;
    } $name, $name, $name, $second, $second;
    is(scalar(grep { waitpid($_, 0); $? } @pids), 0, "nobody fails");
    is(scalar sql($_, "SELECT count(*) FROM crmapi.migration"), $expected,
        "each is applied once") for $name, $second;
};

subtest "a database that is filled is migrated" => sub {
    my ($dir, $name) = fresh();
    is((migrate($dir, $name))[0], 0, "schema $expected");
    my ($w, $bot, $hook, $event, $delivery, $talk) = map { uuid() } 1 .. 6;
    my %in = (workspace_id => $w);
    sql($name, join "", row("workspace", id => $w, name => "W", plan => "pro",
            slug => "w"), row("agent", %in, id => $bot, name => "A"),
        row("api_key", %in, id => uuid(), name => "K", display => "x",
            key_hash => \"sha256('k')"),
        row("webhook_endpoint", %in, id => $hook, url => "https://x.org",
            events => "{contact.created}", key => "k" x 24),
        row("event", %in, id => $event, type => "t", body => "b"),
        row("webhook_delivery", %in, id => $delivery, event_id => $event,
            endpoint_id => $hook, job_id => 1),
        row("conversation", %in, id => $talk, bot_id => $bot, type => 4));
    my ($key) = sql($name, "SELECT encode(key, 'hex') FROM crmapi.link_key");
    my $ask = sub { postgres()->sql($name, @_) };
    my $take = sub { $ask->("SELECT message_id FROM crmapi.intake('$w',
        sha256('i'), '[{\"event_id\": \"$_[0]\", \"conversation_id\":
        \"$talk\", \"content\": \"x\"}]')", $api) };
    my ($code, $err) = migrate(next_schema(), $name);
    is($code, 0, "migrated") or diag($err);
    $ask->(row("intake_key", %in, id => uuid(), name => "K", display => "x",
        key_hash => \"sha256('i')"));
    is(scalar(() = $take->("after")), 1,
        "a conversation that existed takes a message");
    is(scalar $ask->("SELECT workspace_id FROM crmapi.key_look_up(sha256('k'))",
        $api), $w, "its keys are found");
    my $head = "0102" . ($w =~ s/-//gr) . "00" x 40;
    is(scalar $ask->("SELECT crmapi.token_signed('\\x$head', '\\x"
        . hmac_sha256_hex(pack("H*", $head), pack "H*", $key->[0]) . "')",
        $api), "t", "links that were sent before are good");
    is(scalar $ask->("SELECT signatures FROM crmapi.webhook_sign('$w',
        '$delivery', '1', NULL)", $CrmTest::Postgres::WORKER), "v1,"
        . encode_base64(hmac_sha256("msg_" . ($event =~ s/-//gr) . ".1.b",
            "k" x 24), ""), "webhooks are signed by the secret that was told");
};

subtest "an UPDATE of a contact writes no index that lacks what it changes"
        => sub {
    my $id = make("contact", %{space()->{owned}});
    my %indexed = map { @$_, 1 } sql($db, "SELECT DISTINCT a.attname
        FROM pg_index i CROSS JOIN LATERAL pg_get_indexdef(i.indexrelid) d
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND d ~ ('\\m'
            || a.attname || '\\M')
        WHERE i.indrelid = 'crmapi.contact'::regclass");
    ok(!$indexed{updated_at}, "none has updated_at, which each UPDATE changes");
    my @plain = grep { !$indexed{$_->[0]} } sql($db, "SELECT attname,
            CASE atttypid::regtype::text WHEN 'crmapi.object' THEN '{\"a\": 1}'
                WHEN 'timestamp(3) with time zone' THEN '2027-01-01'
                ELSE 'text' END
        FROM pg_attribute WHERE attrelid = 'crmapi.contact'::regclass
            AND attnum > 0 AND NOT attisdropped
            AND attname ~ '^(job|address|city|state|postal|country|notes|custom
                |linkedin|contact_type)'");
    cmp_ok(scalar @plain, ">", 5, "there are such columns");
    for my $column (@plain) {
        my ($name, $value) = @$column;
        is_deeply([sql($db, "BEGIN; UPDATE crmapi.contact SET $name = '$value',
            updated_at = crmapi.now_ms() + interval '1 ms' WHERE id = '$id';
            SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
            WHERE relid = 'crmapi.contact'::regclass; COMMIT")], [[1, 1]], $name);
    }
};

subtest "extensions may be elsewhere" => sub {
    my ($dir, $name) = fresh();
    sql($name, "CREATE SCHEMA ext; GRANT USAGE ON SCHEMA ext TO PUBLIC;
        CREATE EXTENSION pg_trgm SCHEMA ext;
        CREATE EXTENSION btree_gin SCHEMA ext;
        CREATE EXTENSION pgcrypto SCHEMA ext");
    my ($code, $err) = migrate($dir, $name);
    is($code, 0, "found") or diag($err);
    is(scalar sql($name, "SELECT crmapi.webhook_mac('x', 'k')"), "v1,"
        . encode_base64(hmac_sha256("x", "k"), ""), "and used");
};

subtest "a database of another encoding is refused" => sub {
    my ($dir) = fresh();
    my $name = "latin1_$$";
    sql("postgres", "CREATE DATABASE $name OWNER $CrmTest::Postgres::OWNER
        ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    my ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "refused");
    like($err, qr/UTF8/, "with the reason");
    sql("postgres", "DROP DATABASE $name WITH (FORCE)");
};

done_testing;
