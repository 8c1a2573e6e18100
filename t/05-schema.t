#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-schema.t: what the database itself guarantees: columns, references, values, deletes
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Functions;
use CrmTest::Rows;
use CrmTest::Schema;
use CrmTest::Spec;

my $api = $CrmTest::Postgres::API;

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

# Indexes of an expression whose condition is in each statement that uses them, because
# PostgreSQL does not see that the expression says it.
my %SAYS_SO = (conversation_phone => "phone_number IS NOT NULL");

subtest "an index of an expression is used for it" => sub {
    my @indexes = sql($db, "SELECT i.indrelid::regclass, c.relname,
            pg_get_indexdef(i.indexrelid, k.n, true), i.indkey[0] <> 0,
            CASE WHEN e.text !~ ' IS NOT NULL\\)\$' THEN e.text END
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
        CROSS JOIN generate_series(1, i.indnkeyatts) k(n)
        CROSS JOIN pg_get_expr(i.indpred, i.indrelid) e(text)
        WHERE c.relnamespace = 'crmapi'::regnamespace AND i.indkey[k.n - 1] = 0");
    cmp_ok(scalar @indexes, ">=", 7, "there are some");
    for (@indexes) {
        my ($table, $name, $expression, $owned, $where) = @$_;
        my $plan = join "\n", map { $_->[0] } sql($db, "SET enable_seqscan = off;
            SET enable_bitmapscan = off; EXPLAIN SELECT FROM $table
            WHERE $expression = (SELECT $expression FROM $table LIMIT 1)"
            . join "", map { " AND $_" } $SAYS_SO{$name} // $where // (),
            $owned eq "t" ? "workspace_id = '" . uuid() . "'" : ());
        like($plan, qr/ using $name [^\n]*\n *Index Cond: /, "$name: $expression");
        unlike($plan, qr/Filter: /, "$name: it has all that is asked for");
    }
};

# What refers to rows of a table, by what becomes of it when such a row is deleted: it
# goes, too; it loses the reference, and nothing else; or it keeps the row.
my %DELETED = (
    agent => "keeps: company contact conversation form pipeline pipeline_stage sequence"
        . " sequence_template",
    attachment => "goes: attachment_piece", company => "loses: activity contact",
    contact => "loses: activity conversation pipeline_card submission",
    conversation => "goes: chat_unseen message", event => "goes: webhook_delivery",
    enrollment => "goes: enrollment_step past_send", form => "keeps: submission",
    message => "goes: attachment message_html original past_answer",
    pipeline => "keeps: pipeline_stage", plan => "keeps: workspace",
    pipeline_stage => "keeps: pipeline_card; loses: company contact",
    sequence => "goes: enrollment", sequence_template => "keeps: sequence",
    webhook_delivery => "goes: webhook_attempt",
    webhook_endpoint => "goes: webhook_delivery");

subtest "what becomes of that which refers to a row that is deleted" => sub {
    my $is = sub { sql($db, "SELECT r.relname::text, string_agg(r.does || ': '
            || r.names, '; ' ORDER BY r.does) FROM (
        SELECT r.relname, CASE f.confdeltype WHEN 'c' THEN 'goes' WHEN 'a' THEN
            'keeps' WHEN 'n' THEN CASE WHEN f.confdelsetcols = f.conkey[2:] THEN
            'loses' ELSE 'loses more' END ELSE 'other' END AS does,
            string_agg(c.relname, ' ' ORDER BY c.relname COLLATE \"C\") AS names
        FROM pg_constraint f JOIN pg_class r ON r.oid = f.confrelid
        JOIN pg_class c ON c.oid = f.conrelid
        WHERE f.connamespace = 'crmapi'::regnamespace AND f.contype = 'f'
          AND (r.relname = 'workspace') = ($_[0]) GROUP BY 1, 2) r GROUP BY 1") };
    is_deeply({ map { @$_ } $is->("false") }, \%DELETED, "as contract 9.6 says");
    like(join("; ", map { $_->[1] } $is->("true")), qr/^goes: [\w ]+\z/,
        "with a workspace all goes");
};

# The table of a list's path, where its name is another one.
my %listed = (companies => "company", activities => "activity",
    "sequences/enrollments" => "enrollment",
    "sequences/templates" => "sequence_template");
# The column of a parameter, where its name is another one.
my %column = (assigned => "assigned_to", due_after => "due_date", due_before => "due_date",
    domain => "domain_key", email => "email_key", phone => "phone_key",
    phone_number => "address");
# What has no index of its own, and why.
my %unindexed = (
    "conversation.active" => "others include it",
    "conversation.archived" => "others include it",
    "conversation.human_takeover" => "others include it",
    "contact.updated_at" => "contact_change has it",
    "sequence_template.bot_id" => "a workspace has few");

subtest "20.1 what a list is filtered or sorted by has an index" => sub {
    my %has = map { ("$_->[0].$_->[1]" => 1) } sql($db, q{
        SELECT substr(i.indrelid::regclass::text, 8), a.attname FROM pg_index i
        JOIN pg_attribute w ON w.attrelid = i.indrelid
            AND w.attnum = i.indkey[0] AND w.attname = 'workspace_id'
        JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am m ON m.oid = c.relam
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND (a.attnum = i.indkey[1]
            OR m.amname = 'gin' AND a.attnum = ANY (i.indkey)
            OR a.attname = pg_get_expr(i.indpred, i.indrelid))
        WHERE i.indrelid::regclass::text LIKE 'crmapi.%'});
    my %used;
    for my $operation (sort keys %CrmTest::Spec::PARAMETERS) {
        my ($path) = $operation =~ m{^GET /(?:\w+/\{id\}/)?([\w/-]+)$} or next;
        my $parameters = $CrmTest::Spec::PARAMETERS{$operation};
        my $table = $listed{$path} // $path =~ s{-}{_}r =~ s{s$}{}r;
        next if $table eq "agent" || !grep { $_ eq "page" } @$parameters;
        my %columns = map { $_->[0] => 1 } sql($db, "SELECT attname FROM
            pg_attribute WHERE attnum > 0 AND attrelid =
            to_regclass('crmapi.$table')") or next;
        for my $name (@$parameters) {
            my $column = $column{$name} // $name =~ s/_(?:after|before)$/_at/r;
            $column = "submitted_at" if "$table.$column" eq
                "submission.created_at";
            next unless $columns{$column};
            $used{"$table.$column"} = 1;
            is($has{"$table.$column"} // 0, $unindexed{"$table.$column"} ? 0 : 1,
                "$operation: $name");
        }
    }
    cmp_ok(scalar keys %used, ">", 30, "there are such columns");
    ok($used{$_}, "$_ is one") for sort keys %unindexed;
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
        sql($db, row("job", %{$s->{in}}, kind => "generate.steps",
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
        [["generate.steps", "cancelled", 1], ["generate.steps", "ready", 1],
            ["other", "ready", 1]],
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

# ---- a workspace goes ---------------------------------------------------------

# Changes of a row that a CHECK refuses, "", and those that it takes; if there is no
# "", it takes the last one. from() is for numbers from LOW to HIGH, long() for
# lengths, one() for values such as GOOD, both() for two columns that go together.
sub from { my ($column, @ends) = @_; return [map { length ? "$column = $_" : "" }
    $ends[0] - 1, (map { $_ + 1 } @ends[1 .. $#ends]), "", @ends] }
sub long { my ($column, $low, $high, $type) = @_; return [map { length ? "$column ="
    . " repeat('x', $_)::" . ($type // "text") : "" } $low ? $low - 1 : (),
    $high + 1, "", $low, $high] }
sub one { my ($column, $good, $with) = @_; return [map { "$column = '$_'"
    . ($with // "") } "other", $good] }
sub hash { my ($column) = @_; return long($column, 32, 32, "bytea") }
sub both { my ($first, $second) = @_; return [$first, $second, "$first, $second"] }
my $old = "old_key_until = now()";
my $key24 = "old_key = repeat('x', 24)::bytea";
my $ended = ", next_at = NULL, finished_at = now()";
my @limits = map { my $limit = $_; map { "$limit = $_" } 0, 1000001 }
    "read_limit", "write_limit";
my %CHECKS = (
    "activity.activity_type_check" => one(activity_type => "video_call"),
    "activity.check" => ["contact_id = NULL, company_id = NULL", "",
        "contact_id = NULL, company_id = id", "contact_id = id, company_id = NULL"],
    "agent.agent_type_check" => one(agent_type => "both"),
    "agent.chat_mail_fallback_check" => from(chat_mail_fallback => 1, 10080),
    "api_key.can_read_check" => ["can_read = false", "can_read = true"],
    "api_key.key_hash_check" => hash("key_hash"),
    "api_key.terms" => [@limits, "networks = '{}'", "networks = '{NULL}'",
        map { "networks = array_fill('::/0'::cidr, ARRAY[$_])" } 33, 32],
    "attachment.number_check" => from(number => 1),
    "attachment.size_check" => from(size => 0),
    "attachment_piece.number_check" => from(number => 1),
    "attachment_piece.piece_check" => long(bytes => 1, 131072, "bytea"),
    "audit.actor_kind_check" => one(actor_kind => "key"),
    "company.external_id_check" => long(external_id => 1, 255),
    "contact.addresses_check" => [map { "emails = to_jsonb(array_fill(1, ARRAY[$_]))" }
        51, 50],
    "contact.external_id_check" => long(external_id => 1, 255),
    "contact.line_check" => long(first_name => 0, 1000),
    "contact.object_check" => ["custom_fields = '[]'", "custom_fields = '{}'"],
    "contact.prose_check" => long(notes => 0, 65536),
    "contact.tags_check" => ["tags = '{NULL}'", map { "tags ="
        . " array_fill('x'::text, ARRAY[$_])" } 101, 100],
    "contact.url_check" => long(linkedin_url => 0, 2048),
    "conversation.assigned_to_check" => long(assigned_to => 0, 255),
    "conversation.sentiment_score_check" => ["sentiment_score = -1.0001",
        "sentiment_score = 1.0001", "", "sentiment_score = -1",
        "sentiment_score = 1"],
    "conversation.type_check" => from(type => 1, 5),
    "enrollment.check" => ["status = 'failed'",
        "status = 'failed', generation_error = 'x'"],
    "enrollment.contact_action_check" => one(contact_action => "updated"),
    "enrollment.status_check" => one(status => "running"),
    "enrollment_step.channel_check" => one(channel => "voice"),
    "enrollment_step.delay_seconds_check" => from(delay_seconds => 0),
    "enrollment_step.sort_order_check" => from(sort_order => 1),
    "enrollment_step.status_check" => one(status => "skipped"),
    "erase_key.key_check" => hash("key"),
    "erased_address.hash_check" => hash("hash"),
    "erased_address.kind_check" => one(kind => "phone"),
    "instance.check" => both("held_at = now()", "held_reason = 'x'"),
    "instance.one_check" => ["one = false", "one = true"],
    "intake_event.event_id_check" => long(event_id => 1, 255),
    "intake_key.key_hash_check" => hash("key_hash"),
    "job.attempts_check" => from(attempts => 0),
    "job.check" => ["state = 'leased'", "state = 'leased', leased_by = 'x'",
        "state = 'leased', leased_until = now()", "leased_by = 'x',"
        . " leased_until = now()", "state = 'leased', leased_by = 'x',"
        . " leased_until = now()"],
    "job.run_at_check" => [map { $_ && "run_at = '$_'" } "infinity", "-infinity", "",
        "294276-12-31"],
    "job.state_check" => one(state => "dead"),
    "link_key.key_check" => hash("key"),
    "link_key.old" => [$old, "$old, old_key = '\\x00'", "old_key = sha256('h')",
        "$old, old_key = sha256('h')"],
    "message_html.html_check" => long(html => 0, 1048576),
    "original.number_check" => from(number => 1),
    "past_answer.state_check" => one(state => "unknown"),
    "past_send.state_check" => one(state => "unknown"),
    "pipeline_card.order_index_check" => from(order_index => 0),
    "pipeline_stage.order_index_check" => from(order_index => 0),
    "send_mark.slot_check" => ["slot = slot - 16", "slot = slot + 16",
        "slot = slot"],
    "sequence.idempotency_key_check" => long(idempotency_key => 1, 255),
    "sequence.status_check" => one(status => "stopped"),
    "sequence_template.allowed_channels_check" => ["allowed_channels = '{email,fax}'",
        "allowed_channels = '{email,sms,voice}'"],
    "sequence_template.list_check" => ["steps = '{}'", "steps = '[]'"],
    "suppression.check" => ["phone_number = '+1'",
        "phone_number = '+1', email = NULL"],
    "suppression.phone_number_check" => ["email = NULL, phone_number = 'x'",
        "email = NULL, phone_number = '+1'"],
    "usage.check" => ["limited = -1", "limited = requests + 1", "limited = requests"],
    (map { ("usage.${_}_check" => from($_ => 0)) } qw(messages_in messages_out storage
        webhooks)),
    "webhook_attempt.duration_ms_check" => from(duration_ms => 0),
    "webhook_attempt.number_check" => from(number => 1),
    "webhook_delivery.attempts_check" => from(attempts => 0),
    "webhook_delivery.check" => ["base = -1", "base = attempts + 1",
        "base = attempts"],
    "webhook_delivery.check1" => ["next_at = NULL",
        "status = 'failed', finished_at = now()", "status = 'failed'$ended"],
    "webhook_delivery.check2" => ["finished_at = now()",
        "status = 'failed', next_at = NULL", "status = 'failed'$ended"],
    "webhook_delivery.status_check" => one(status => "cancelled", $ended),
    "webhook_endpoint.check" => both($old, $key24),
    "webhook_endpoint.check1" => ["disabled_reason = 'x'", "",
        "disabled_reason = 'x', disabled_at = now()", "disabled_at = now()"],
    "webhook_endpoint.events_check" => ["events = '{}'", "events = '{other}'",
        "events = '{form.submitted}'"],
    "webhook_endpoint.key_check" => long(key => 24, 64, "bytea"),
    "webhook_endpoint.old_key_check" => [map { length ? "$old, $_" : "" }
        @{long(old_key => 24, 64, "bytea")}],
    "webhook_endpoint.url_check" => [map { "url = '$_'" } "ftp://x.example",
        "http://a\@x.example", "http:///x", "http://x.example/ ",
        "HTTPS://x.example/?a#b"],
    "workspace.currency_check" => [map { "currency = '$_'" } "eur", "EU", "EURO",
        "CHF"],
    "workspace.limits" => [@limits, "read_limit = 1, write_limit = 1000000"],
    (map { ("workspace.retention_${_}_check" => from("retention_$_" => 1, 36500)) }
        qw(conversations events submissions)),
    "workspace.sender_domains_check" => [map { "sender_domains ="
        . " array_fill('x'::text, ARRAY[$_])" } 0, 101, 100],
    "workspace.slug_check" => [map { "slug = $_" } "''", "'Upper'", "'a_b'",
        "repeat('x', 64)", "repeat('x', 63)"],
    "workspace.title_check" => long(name => 1, 1000));
# What public.told() says of each of SQLS: "taken", or the constraint that refuses it.
# Triggers do not run, and all is undone.
sql($db, <<'SQL');
CREATE FUNCTION public.told(statement text) RETURNS text LANGUAGE plpgsql
SET session_replication_role = replica AS $$
DECLARE
    refused text;
    of text;
    n integer;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE EXCEPTION USING ERRCODE = 'YYYYY',
        MESSAGE = CASE n WHEN 0 THEN 'no row' ELSE 'taken' END;
EXCEPTION WHEN check_violation OR unique_violation THEN
    GET STACKED DIAGNOSTICS refused = CONSTRAINT_NAME, of = TABLE_NAME;
    RETURN CASE WHEN starts_with(refused, of || '_')
        THEN substr(refused, length(of) + 2) ELSE refused END;
WHEN OTHERS THEN RETURN SQLERRM;
END
$$
SQL
sub told {
    return map { $_->[0] } sql($db, "SELECT public.told(x.s) FROM unnest(ARRAY["
        . join(", ", map { quoted($_) } @_) . "]) WITH ORDINALITY x(s, n)"
        . " ORDER BY x.n");
}

# Of each CHECK there is a row in %CHECKS, and it refuses what the row says. ID is a
# workspace that has rows in all tables.
sub checks_refuse {
    my ($id) = @_;
    my (@sql, @expected);
    for my $check (sort keys %CHECKS) {
        my ($table, $name) = split /\./, $check;
        my ($to, @sets) = ($name, @{$CHECKS{$check}});
        my $where = $table =~ /^(?:instance|send_mark)$/ ? "true"
            : ($table eq "workspace" ? "id" : "workspace_id") . " = '$id'";
        splice @sets, -1, 0, "" unless grep { $_ eq "" } @sets;
        for my $set (@sets) {
            if ($set eq "") {
                $to = "taken";
                next;
            }
            push @sql, "UPDATE crmapi.$table SET $set WHERE $where";
            push @expected, "$check: $set: $to";
        }
    }
    my @told = told(@sql);
    is_deeply([map { $expected[$_] =~ s/[^ ]+\z/$told[$_]/r } 0 .. $#expected],
        \@expected, "each CHECK refuses what it is for, and nothing else");
    # a domain's CHECK is that of some column
    my $names = sub { join " ", sort map { s/^\w+\.(?=(?:addresses|line|list|object
        |piece|prose|tags|title|url)_check$)//xr } @_ };
    is($names->(map { $_->[0] } sql($db, "SELECT concat(r.relname || '.',
            CASE WHEN starts_with(c.conname, r.relname || '_')
            THEN substr(c.conname, length(r.relname) + 2) ELSE c.conname END)
        FROM pg_constraint c LEFT JOIN pg_class r ON r.oid = c.conrelid
        WHERE c.contype = 'c' AND c.connamespace = 'crmapi'::regnamespace")),
        # a column's type and usage.check say the same as these
        $names->("amount_check", "usage.requests_check", keys %CHECKS),
        "each has such a row");
}

# Members that a second row may share with no other one of the table, with what makes
# it another row otherwise; and SQL that goes before.
my %UNIQUE = (
    "admin.workspace_id_email_key_key" => ["email = upper(email)"],
    "agent.slug" => [\"slug = 'x'"],
    "attachment.workspace_id_message_id_number_key" => [],
    "api_key.by_terms" => ["key_hash = sha256('2')", "terms = coalesce(terms, id)"],
    "api_key.key_hash_key" => [],
    (map { ("$_.external" => [\"external_id = 'x'"]) } "company", "contact"),
    "enrollment.workspace_id_sequence_id_key" => [],
    "enrollment_step.workspace_id_enrollment_id_sort_order_key" => [],
    "intake_key.key_hash_key" => [],
    "sequence.workspace_id_idempotency_key_key" => [\"idempotency_key = 'x'"],
    "suppression.workspace_id_address_kind_key" => ["email = upper(email)"],
    "workspace.slug_key" => []);

# Each unique index is one of %UNIQUE, and refuses a copy of a row of ID.
sub copies_refused {
    my ($id) = @_;
    my %columns = map { @$_ } sql($db, "SELECT c.relname, string_agg(a.attname, ', ')
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'id'
        WHERE c.relnamespace = 'crmapi'::regnamespace GROUP BY 1");
    my @names = sort keys %UNIQUE;
    my @sql = map {
        my ($table) = /^(\w+)/;
        my $mine = ($table eq "workspace" ? "id" : "workspace_id") . " = '$id'";
        my ($before, $values) = ("", $columns{$table});
        for my $set (@{$UNIQUE{$_}}) {
            if (ref $set) {
                $before = "UPDATE crmapi.$table SET $$set WHERE $mine; ";
                next;
            }
            my ($column, $value) = split / = /, $set;
            $values =~ s/\b$column(?=,|\z)/$value/;
        }
        "${before}INSERT INTO crmapi.$table (id, $columns{$table}) SELECT"
            . " gen_random_uuid(), $values FROM crmapi.$table WHERE $mine" } @names;
    my @told = told(@sql);
    is_deeply([map { $names[$_] =~ s/\.\K.*/$told[$_]/r } 0 .. $#names], \@names,
        "each unique index refuses a second row");
    is_deeply([sort map { $_->[0] } sql($db, "SELECT c.relname || '.'
            || substr(x.relname, length(c.relname) + 2) FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
        WHERE c.relnamespace = 'crmapi'::regnamespace AND i.indisunique
          AND NOT i.indisprimary")], \@names, "there are no others");
}

# What rows of the workspace ID are called, and where they are, stays as it is: the
# module's cache, totals and jobs rely on it.
sub never_change {
    my ($id) = @_;
    my @both = ("workspace_id = gen_random_uuid()", "id = gen_random_uuid()");
    my @key = (@both, "key_hash = sha256('other')", "revoked_at = NULL");
    my %set = (job => [$both[0]], api_key => \@key, intake_key => \@key,
        workspace => [$both[1], "slug = 'other'"], map { $_ => \@both }
        qw(agent pipeline pipeline_stage company contact pipeline_card activity
        conversation message attachment form submission sequence_template
        sequence enrollment enrollment_step suppression));
    for my $table (sort keys %set) {
        my $mine = $table eq "workspace" ? "id" : "workspace_id";
        refused("BEGIN; " . ($table =~ /_key$/ ? "UPDATE crmapi.$table SET"
            . " revoked_at = now() WHERE $mine = '$id';" : "") . " UPDATE"
            . " crmapi.$table SET $_ WHERE $mine = '$id'; ROLLBACK",
            qr/never changes/, "$table: $_") for @{$set{$table}};
    }
}

subtest "deleting a workspace takes all of it" => sub {
    my $s = space();
    my $company = make("company", %{$s->{owned}}, name => "C",
        pipeline_stage_id => $s->{stages}[0]);
    my $contact = make("contact", %{$s->{owned}}, company_id => $company,
        pipeline_stage_id => $s->{stages}[1], custom_fields => '{"size": 4}');
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
    never_change($s->{id});
    checks_refuse($s->{id});
    copies_refused($s->{id});
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

# SQL functions that are parsed and planned in each statement: see the next test.
my %NOT_INLINED = (
    email_base => "an index needs it IMMUTABLE and STRICT",
    map({ $_ => "its caller may not read what it reads" } qw(enrollment_stop
        token_sign_link token_sign_page token_signed)),
    map({ $_ => "it is rarely called" } qw(dump_mark plan_rights retention_bound
        usage_day webhook_mac)),
);

subtest "SQL functions are inlined; others are PL/pgSQL, planned once a session" => sub {
    my @not;
    for (sql($db, "SELECT p.oid::regproc, p.proname, ARRAY(SELECT format('%s.a%s',
                'x', n) FROM generate_series(1, p.pronargs) n)::text, ARRAY(SELECT
                format('NULL::%s AS a%s', t, n) FROM unnest(p.proargtypes::regtype[])
                WITH ORDINALITY a(t, n))::text
            FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
            WHERE p.pronamespace = 'crmapi'::regnamespace AND NOT p.proretset
              AND l.lanname = 'sql' AND p.proname !~ '_fields\$'")) {
        my ($function, $name, $arguments, $columns) = map { tr/{}"//dr } @$_;
        my $plan = join "\n", map { $_->[0] } sql($db, "EXPLAIN (VERBOSE)"
            . " SELECT $function($arguments) FROM (SELECT "
            . join(", ", split(/,/, $columns), "n") . " FROM generate_series(1, 2) n"
            . " OFFSET 0) x");
        push @not, $name if $plan =~ /\b\Q$name\E\(/;
    }
    is_deeply([sort @not], [sort keys %NOT_INLINED], "but for the exceptions");
};

# The parts of the functions' bodies that LIKE finds, each as [function, text].
sub in_functions {
    my ($like) = @_;
    my $functions = functions();
    return map { my $name = $_; map { [$name, s/\s+/ /gr] }
        $functions->{$name}{body} =~ s/--.*//gr =~ /$like/g }
        sort keys %$functions;
}

subtest "each write by a function moves updated_at forward (contract 6.6)" => sub {
    my @tables = map { $_->[0] } sql($db, "SELECT c.relname, 1 FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'updated_at'
        WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r'
          AND c.relname <> 'contact_change' AND NOT EXISTS (
              SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid
                AND t.tgname IN ('touch', 'transition')) ORDER BY 1");
    my $of = join "|", @tables;
    my @writes = in_functions(qr/UPDATE\ crmapi\.(?:$of)\ \w+\ SET.*?;|
        DO\ UPDATE\ SET[^;]*\bupdated_at\b[^;]*;/sx);
    cmp_ok(@writes, ">", 8, "writes of $of");
    like($_->[1], qr/\bupdated_at = /, "$_->[0] sets it") for @writes;
    my @sets = in_functions(
        qr/(?:,\s*|\bSET\s|NEW\.)(updated_at\ (?::=|(?<!NEW\.updated_at\ )=\ (?!NEW))
        .*?)(?:;|WHERE|$)/sx);
    cmp_ok(@sets, ">", 10, "what it is set to");
    like($_->[1], qr/^updated_at\ :?=\ greatest\(\s?(?:NEW\.updated_at,\ )?
        crmapi\.now_ms\(\),\ (?:\w+|OLD)\.updated_at\ \+\ interval
        \ '1\ millisecond'\)/x, "$_->[0]: to a later time, whatever the clock says")
        for @sets;
};

subtest "several rows are locked in the order of their ids" => sub {
    my @locks = in_functions(qr/((?:PERFORM|SELECT)\b
        (?:(?!\bPERFORM\b|\bSELECT\b|;).)*?)
        \bFOR\ (?:NO\ KEY\ )?UPDATE(?!\ SKIP)/sx);
    cmp_ok(@locks, ">", 40, "locks");
    # one row is named by its key
    my $one = qr/ (?:\w\.id|u\.conversation_id) = (?!ANY)/;
    like($_->[1], qr/$one| ORDER BY \w\.(?:\w+_)?id $/,
        "$_->[0]: one row, or in this order") for @locks;
};

done_testing();
