#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-totals.t: the totals of lists
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Process qw(spawn);
use CrmTest::Schema;
use CrmTest::Session;
use File::Temp qw(tempdir);

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
    for my $kind ("company", "contact", "conversation") {
        sql($db, "UPDATE crmapi.$kind SET bot_id = '$bot'
            WHERE workspace_id = '$s->{id}'");
        counters_right("$kind: all are of another agent");
    }
    sql($db, "UPDATE crmapi.conversation SET bot_id = '$s->{bot}',
        deleted = deleted IS NOT TRUE WHERE workspace_id = '$s->{id}'");
    counters_right("deleted or restored, and of another agent, at once");
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

subtest "totals that are wrong are mended, and counters of nothing go" => sub {
    my $s = space();
    my $zero = "00000000-0000-0000-0000-000000000000";
    my $slot = 100;
    my $add = sub { sql($db, row("counter", %{$s->{in}}, kind => "company",
        parent => $zero, slot => ++$slot, n => $_[0])) };
    make("company", %{$s->{owned}}, name => "C$_") for 1 .. 3;
    for my $wrong (2, -1, 4) {
        $add->($wrong);
        is_deeply([sql($db, "SELECT kind, counted, actual
            FROM crmapi.counter_mend() WHERE workspace_id = '$s->{id}'")],
            [["company", 3 + $wrong, 3]], "$wrong: it is told");
        counters_right("and mended");
    }
    # counters that are gone, and counters of what is not there
    for my $case (["DELETE FROM crmapi.counter WHERE workspace_id = '$s->{id}'"
                . " AND kind = 'company'", map { ["company", $_, 0, 3] } $zero,
                $s->{bot}],
            [row("counter", %{$s->{in}}, kind => "contact", parent => $zero,
                slot => 99, n => 2), ["contact", $zero, 2, 0]]) {
        my ($does, @told) = @$case;
        sql($db, $does);
        is_deeply([sql($db, "SELECT kind, parent, counted, actual
            FROM crmapi.counter_mend() WHERE workspace_id = '$s->{id}'
            ORDER BY parent")], \@told, "$told[0][2], not $told[0][3]: it is told");
        counters_right("and mended");
    }
    $add->(0);
    cmp_ok(sql($db, "SELECT crmapi.counter_trim()"), ">", 0, "some are zero");
    is(sql($db, "SELECT count(*) FROM crmapi.counter WHERE n = 0"), 0,
        "none is zero");
    cmp_ok(sql($db, "SELECT count(*) FROM crmapi.counter WHERE n < 0
        AND workspace_id = '$s->{id}'"), ">", 0, "one is less");
    counters_right("which stays");
};

done_testing();
