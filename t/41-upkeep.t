# SPDX-License-Identifier: Apache-2.0
# 41-upkeep.t: upkeep reads a few rows for each that it changes, though the
# statistics do not know the workspace yet; it ends with its daemon; it leaves rows
# of other workspaces alone that have the same ids and keys
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Session;

my ($BATCH, $ROWS) = (200, 2000);
my $old = "now() - interval '40 days'";

# What is trimmed: its table, the columns of a row that is due, of the workspace
# w, and the statement.
my @TASKS = (
    ["conversation", "(id, workspace_id, bot_id, type, active, created_at,
        last_active_at)", "gen_random_uuid(), w.id, w.id, 1, true, $old, $old",
        "conversation_idle(now() - interval '1 day', $BATCH)"],
    ["intake_event", "(workspace_id, event_id, created_at)",
        "w.id, n::text, $old",
        "intake_trim(now() - interval '30 days', $BATCH)"],
    ["idempotent_answer", "(workspace_id, key, request, status, body,
        created_at)",
        "w.id, sha256(n::text::bytea), sha256('r'), 200, 'x', $old",
        "idempotency_trim($BATCH)"],
    ["event", "(workspace_id, id, type, created_at, fields)",
        "w.id, gen_random_uuid(), 'contact.deleted', $old, '{}'",
        "event_trim(now() - interval '30 days', $BATCH)"],
);

my $database = database();
sql($database, <<'END');
INSERT INTO crmapi.workspace (id, name, slug)
SELECT gen_random_uuid(), 'W', 'w-' || n FROM generate_series(0, 200) n;
INSERT INTO crmapi.agent (id, workspace_id, name, slug)
SELECT id, id, 'A', 'a' FROM crmapi.workspace;
END

# CALL reads few rows of TABLE, planned as PLANS says, when only one workspace
# has any.
sub few_are_read {
    my ($table, $call, $plans) = @_;
    my ($row) = sql($database, "BEGIN;
        SET LOCAL enable_seqscan = off;
        SET LOCAL plan_cache_mode = $plans;
        DELETE FROM crmapi.$table WHERE workspace_id IN
            (SELECT id FROM crmapi.workspace WHERE slug <> 'w-0');
        CREATE TEMPORARY TABLE before ON COMMIT DROP AS
            SELECT seq_tup_read + idx_tup_fetch AS n
            FROM pg_stat_xact_user_tables
            WHERE relid = 'crmapi.$table'::regclass;
        CREATE TEMPORARY TABLE run ON COMMIT DROP AS
            SELECT crmapi.$call AS n;
        SELECT r.n, seq_tup_read + idx_tup_fetch - b.n
        FROM pg_stat_xact_user_tables, before b, run r
        WHERE relid = 'crmapi.$table'::regclass;
        ROLLBACK");
    my ($done, $read) = @$row;
    is($done, $BATCH, "$call, $plans: a batch");
    cmp_ok($read, ">=", $BATCH, "$call, $plans: what is read is counted");
    cmp_ok($read, "<=", 2 * $ROWS + 3 * $BATCH,
        "$call, $plans: few rows are read: $read");
}

subtest "few rows are read" => sub {
    plan(skip_all => "the servers of Citus count") if CrmTest::Citus::wanted();
    for my $task (@TASKS) {
        my ($table, $columns, $values, $call) = @$task;
        # one row of each workspace is known, and then one has many
        my $add = sub { "INSERT INTO crmapi.$table $columns SELECT $values
            FROM crmapi.workspace w, generate_series(1, $_[0]) n WHERE $_[1]" };
        sql($database, "ALTER TABLE crmapi.$table"
            . " SET (autovacuum_enabled = off)");
        sql($database, $add->(1, "w.slug <> 'w-0'"));
        sql($database, "ANALYZE crmapi.$table");
        sql($database, $add->($ROWS, "w.slug = 'w-0'"));
        few_are_read($table, $call, $_) for "auto", "force_generic_plan";
    }
};

subtest "a daemon that ends cancels what upkeep is doing" => sub {
    sql($database, "INSERT INTO crmapi.event (workspace_id, id, type,
            created_at, fields)
        SELECT w.id, gen_random_uuid(), 'contact.deleted', $old, '{}'
        FROM crmapi.workspace w");
    my $let_go = postgres()->hold($database,
        "LOCK TABLE crmapi.idempotent_answer");
    my $worker = worker(database => $database);
    postgres()->wait_locked($database, 1);
    my $begin = time;
    $worker->stop;
    cmp_ok(time - $begin, "<", 10 * busy(), "it does not wait for the lock");
    # a pooler keeps idle sessions
    my $left = CrmTest::Pooler->mode ? " AND state <> 'idle'" : "";
    ok(wait_for(sub { !sql($database, "SELECT count(*) FROM pg_stat_activity"
        . " WHERE datname = current_database()"
        . " AND usename = '$CrmTest::Postgres::WORKER'$left") }, 10),
        "and leaves no session");
    $let_go->();
    $worker->once;
    is(sql($database, "SELECT count(*) FROM crmapi.event WHERE created_at"
        . " < now() - interval '30 days'"), 0, "the next run goes on");
};

# A task looks for rows over all workspaces, and locks those of one after the other.
# The table, what the task does with a row, a row that is found (as above), the task,
# and what makes such a row one that it leaves alone.
my @FOUND = (
    ["conversation", "UPDATE", @{$TASKS[0]}[1 .. 3], "last_active_at = now()"],
    ["idempotent_answer", "DELETE", @{$TASKS[2]}[1 .. 3], "created_at = now()"],
    ["job", "UPDATE", "(workspace_id, kind, state, leased_by, leased_until,
        run_at)", "w.id, 'test.x', 'leased', 'x', $old, $old", "job_reap()",
        "leased_until = now() + interval '1 hour'"],
);

subtest "what changes between the look and the lock is left alone" => sub {
    plan(skip_all => "the servers of Citus do it") if CrmTest::Citus::wanted();
    my $own = database();
    sql($own, "INSERT INTO crmapi.workspace (id, name, slug)
            SELECT gen_random_uuid(), 'W', 'w-' || n FROM generate_series(1, 2) n;
        INSERT INTO crmapi.agent (id, workspace_id, name)
            SELECT id, id, 'A' FROM crmapi.workspace;
        CREATE FUNCTION public.waits() RETURNS trigger LANGUAGE plpgsql AS \$\$
        BEGIN
            IF current_setting('test.waits', true) = 'on' THEN
                PERFORM pg_advisory_xact_lock(471);
            END IF;
            RETURN coalesce(NEW, OLD);
        END
        \$\$");
    # job_reap() waits for the daemons after a start
    ok(wait_for(sub { sql($own, "SELECT pg_postmaster_start_time() <
        now() - interval '11 s'") eq "t" }, 30), "the server is up");
    for my $case (@FOUND) {
        my ($table, $does, $columns, $values, $call, $touch) = @$case;
        sql($own, "INSERT INTO crmapi.$table $columns SELECT $values
                FROM crmapi.workspace w, generate_series(1, 1) n;
            CREATE TRIGGER a_waits BEFORE $does ON crmapi.$table FOR EACH ROW
                EXECUTE FUNCTION public.waits()");
        my $let_go = holding($own, "SELECT pg_advisory_xact_lock(471)");
        my $task = CrmTest::Child->start(sub { scalar sql($own,
            "SET test.waits = 'on'; SELECT crmapi.$call") });
        wait_blocked($own, 1, "wait_event = 'advisory'");
        is(scalar(() = sql($own, "UPDATE crmapi.$table SET $touch WHERE ctid IN
            (SELECT ctid FROM crmapi.$table FOR UPDATE SKIP LOCKED)
            RETURNING 1")), 1, "$table: one is not locked yet");
        $let_go->("COMMIT");
        my ($n) = $task->result;
        is($n, 1, "$call takes the other one only");
    }
    is_deeply([sql($own, "SELECT run_at > $old, leased_by, leased_until,
        last_error FROM crmapi.job WHERE state = 'ready'")], [["t", undef, undef,
        "the worker x fell silent"]], "the job comes after those that wait");
};

subtest "what another session has locked is left to the next run" => sub {
    plan(skip_all => "the servers of Citus do it") if CrmTest::Citus::wanted();
    my $own = database();
    sql($own, "INSERT INTO crmapi.workspace (id, name, slug)
            SELECT gen_random_uuid(), 'W', 'w-' || n FROM generate_series(1, 2) n;
        INSERT INTO crmapi.agent (id, workspace_id, name)
            SELECT id, id, 'A' FROM crmapi.workspace");
    for my $case (@TASKS, [@{$FOUND[2]}[0, 2 .. 4]]) {
        my ($table, $columns, $values, $call) = @$case;
        sql($own, "INSERT INTO crmapi.$table $columns SELECT $values
            FROM crmapi.workspace w, generate_series(1, 1) n");
        my $let_go = holding($own, "SELECT FROM crmapi.$table LIMIT 1 FOR UPDATE");
        is(sql($own, "SET lock_timeout = '20 s'; SELECT crmapi.$call"), 1,
            "$call: the other one");
        $let_go->();
        is(sql($own, "SELECT crmapi.$call"), 1, "then that one");
    }
};

# Why a conversation that was created long ago is not closed by upkeep.
subtest "many conversations that stay open, or are closed, do not hide one" => sub {
    my $own = database();
    sql($own, "INSERT INTO crmapi.workspace (id, name, slug)
            SELECT gen_random_uuid(), 'W', 'w';
        INSERT INTO crmapi.agent (id, workspace_id, name)
            SELECT id, id, 'A' FROM crmapi.workspace");
    for my $case (map({ [100, "true, now()", $_] } qw(last_active_at
            last_message_at activated_at)), [100, "false, $old", "last_active_at"],
            [1, "true, $old", "last_active_at"]) {
        my ($rows, $values, $column) = @$case;
        sql($own, "INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type,
                created_at, active, $column)
            SELECT gen_random_uuid(), w.id, w.id, 1, $old, $values
            FROM crmapi.workspace w, generate_series(1, $rows)");
    }
    is(sql($own, "SELECT crmapi.conversation_idle(now() - interval '1 day', 90)"),
        1, "the one that is idle is closed");
};

# What a run deletes by its age: a table, the columns of a row, its values with the
# time AT, the column that has it, after how many hours it stays and goes, and how many
# rows more than two batches have.
my @AGED = (
    ["intake_event", "workspace_id, event_id, created_at", "w.id, n::text, AT",
        "created_at", 719, 721],
    ["idempotent_answer", "workspace_id, key, request, status, body, created_at",
        "w.id, sha256(n::text::bytea), sha256('r'), 200, 'x', AT", "created_at",
        23, 25],
    ["event", "workspace_id, id, type, created_at, fields",
        "w.id, gen_random_uuid(), 'contact.deleted', AT, '{}'", "created_at",
        719, 721],
    ["job", "workspace_id, kind, state, finished_at",
        "w.id, 'test.x', 'done', AT", "finished_at", 167, 169],
    ["job", "workspace_id, kind, state, finished_at",
        "w.id, 'test.x', 'cancelled', AT", "finished_at", 167, 169],
    ["audit", "workspace_id, id, at, actor_kind, actor, login, action, object,"
        . " details", "w.id, gen_random_uuid(), AT, 'system', 'x', 'x', 'x', 'x',"
        . " '{}'", "at", 1095 * 24 - 1, 1095 * 24 + 1],
    ["send_count", "workspace_id, bot_id, day, n",
        "w.id, gen_random_uuid(), (AT)::date, 1", "day", 216, 240],
    ["worker", "id, name, host, pid, version, threads, heartbeat_at",
        "'w' || n, 'w', 'h', 1, 'v', 1, AT", "heartbeat_at", 23, 25],
    # three pieces of each
    ["original", "workspace_id, message_id, number, created_at, bytes",
        "w.id, md5(((n + 2) / 3)::text)::uuid, (n + 2) % 3 + 1, AT, 'x'",
        "created_at", 90 * 24 - 1, 90 * 24 + 1, 41 * 3],
);

subtest "a run deletes all that is too old, however much it is, and no more" => sub {
    my $own = database();
    my $id = uuid();
    my $at = sub { "now() - interval '$_[0] h'" };
    sql($own, "INSERT INTO crmapi.workspace (id, name, slug) VALUES ('$id', 'W',
        'w'); INSERT INTO crmapi.agent (id, workspace_id, name) VALUES ('$id',
        '$id', 'A'); INSERT INTO crmapi.conversation (id, workspace_id, bot_id,
            type) VALUES ('$id', '$id', '$id', 4);
        INSERT INTO crmapi.message (workspace_id, id, conversation_id, role)
        SELECT '$id', md5(n::text)::uuid, '$id', 'user'
        FROM generate_series(1, 42) n");
    my @had = map { scalar sql($own, "SELECT count(*) FROM crmapi.$_->[0]") } @AGED;
    for my $one (@AGED) {
        my ($table, $columns, $values, undef, $stays, $goes, $rows) = @$one;
        $rows //= 2001;
        for my $case ([$goes, "n <= $rows"], [$stays, "n > $rows"]) {
            my $row = $values =~ s/\bAT\b/$at->($case->[0])/er;
            sql($own, "INSERT INTO crmapi.$table ($columns) SELECT $row"
                . " FROM crmapi.workspace w, generate_series(1, $rows + 1) n"
                . " WHERE $case->[1]");
        }
    }
    for my $call ("audit_trim(now() - interval '1095 d', 7)",
            "original_trim(now() - interval '90 d', 7)") {
        is(sql($own, "SELECT crmapi.$call"), 7, "$call: a batch");
    }
    worker(database => $own, no_start => 1)->once;
    for my $one (@AGED) {
        my ($table, undef, $values, $column, $stays, $goes) = @$one;
        my $had = shift @had;
        my $both = grep { $_->[0] eq $table } @AGED;
        is(sql($own, "SELECT count(*) - $had FROM crmapi.$table"), $both,
            "$table: one row stays");
        is(sql($own, "SELECT count(*) FROM crmapi.$table WHERE $column < "
            . $at->($goes)), 0, "the one that is young enough");
    }
};

# What upkeep deletes or changes: a table, the columns of a row of the workspace w
# that is not due, those in which a row that is due differs, and the condition for
# a row that upkeep has left as it was.
my $id = "00000000-0000-8000-8000-00000000000a";
my @SAME = (
    ["conversation", { id => "'$id'", bot_id => "w.id", type => 1,
        active => "true" }, { created_at => $old, last_active_at => $old,
        activated_at => $old }, "active"],
    ["intake_event", { event_id => "'e'" }, { created_at => $old }],
    ["idempotent_answer", { key => "'k'", request => "'r'", status => 200 },
        { created_at => $old }],
    ["event", { id => "'$id'", type => "'t'" }, { created_at => $old }],
    ["job", { id => 1000001, kind => "'test.x'", state => "'done'",
        finished_at => "now()" }, { finished_at => $old }],
    ["job", { id => 1000002, kind => "'test.x'", state => "'leased'",
        leased_by => "'me'", leased_until => "now() + interval '1 h'" },
        { leased_until => $old }, "leased_by = 'me'"],
    ["counter", { kind => "'contact'", parent => "'$id'", slot => -2, n => 1 },
        { n => 0 }, "slot = -2"],
    ["original", { message_id => "'$id'", number => 1, bytes => "'x'",
        created_at => "now()" }, { created_at => "now() - interval '91 days'" }],
    ["message_html", { message_id => "'$id'", html => "'x'" }, {}],     # goes with it
    ["audit", { id => "'$id'", actor_kind => "'system'", actor => "'x'",
        login => "'x'", action => "'x'", object => "'x'", details => "'{}'",
        at => "now()" }, { at => "now() - interval '4 years'" }],
);

subtest "the same ids and keys in another workspace" => sub {
    plan(skip_all => "ids of jobs are each server's")
        if CrmTest::Citus::wanted();
    postgres()->wait_reaping;
    my $own = database();
    my @ids = (uuid(), uuid());     # either may come first
    sql($own, join "", map { "INSERT INTO crmapi.workspace (id, name, slug) VALUES
        ('$_', 'W', '" . substr($_, -12) . "'); INSERT INTO crmapi.agent (id,
        workspace_id, name, slug) VALUES ('$_', '$_', 'A', 'a'); INSERT INTO
        crmapi.conversation (id, workspace_id, bot_id, type) VALUES ('$_', '$_',
        '$_', 1); INSERT INTO crmapi.message (workspace_id, id, conversation_id,
        role) VALUES ('$_', '$id', '$_', 'user');" } @ids);
    for my $due (0, 1) {
        my $rows = sub { my ($w, $table, $columns, $condition) = @_;
            my ($key) = grep { $columns->{$_} } qw(id event_id key parent
                message_id);
            return "FROM crmapi.$table WHERE workspace_id = '$w' AND $key ="
                . " $columns->{$key} AND " . ($condition // "true") };
        for my $n (0, 1) {
            for my $one (@SAME) {
                my ($table, $columns, $old_ones) = @$one;
                my %row = (%$columns, $n == $due ? %$old_ones : (),
                    workspace_id => "w.id");
                my @names = sort keys %row;
                sql($own, "DELETE " . $rows->($ids[$n], $table, $columns));
                sql($own, "INSERT INTO crmapi.$table (" . join(", ", @names)
                    . ") OVERRIDING SYSTEM VALUE SELECT "
                    . join(", ", @row{@names})
                    . " FROM crmapi.workspace w WHERE id = '$ids[$n]'");
            }
        }
        # the total that is not zero stays right
        sql($own, "DELETE FROM crmapi.upkeep; DELETE FROM crmapi.counter WHERE"
            . " slot = -1; INSERT INTO crmapi.counter (workspace_id, kind, parent,"
            . " slot, n) SELECT workspace_id, kind, parent, -1, -n FROM"
            . " crmapi.counter WHERE slot = -2 AND n <> 0");
        worker(database => $own, no_start => 1, expect_log =>
            [qr/CRM3005: 1 job of daemons/])->once;
        for my $one (@SAME) {
            my ($table, $columns, undef, $condition) = @$one;
            my @left = map { scalar sql($own, "SELECT count(*) "
                . $rows->($_, $table, $columns, $condition)) } @ids;
            is("@left[$due, 1 - $due]", "0 1", "$table: one is due, one stays");
        }
    }
};

subtest "a task that was begun before the clock was set back" => sub {
    my $begin = sub { sql($database, "SELECT crmapi.upkeep_begin('t',"
        . " interval '1 hour', now() $_[0])") };
    is($begin->("+ interval '2 hours'"), "t", "is begun");
    is($begin->(""), "t", "and again when there is no such time yet");
    sql($database, "UPDATE crmapi.upkeep SET ended_at = now() WHERE task = 't'");
    is($begin->(""), "f", "but once");
    is($begin->("+ interval '1 hour'"), "t", "and when its time has come");
    is(sql($database, "SELECT ended_at FROM crmapi.upkeep WHERE task = 't'"), undef,
        "it has not ended yet");
    # a daemon first asks whether any task is due
    my $worker = worker(database => $database, no_start => 1);
    $worker->once;
    sql($database, "UPDATE crmapi.upkeep SET begun_at = now() + interval '2 hours'");
    $worker->once;
    is(sql($database, "SELECT count(*) FROM crmapi.upkeep WHERE begun_at > now()
        AND task <> 't'"), 0, "by a daemon, too");
    is_deeply([map { scalar sql($database, "SELECT crmapi.upkeep_begin('exactly',"
        . " interval '1 hour', '2026-01-01T$_+00')") } "00:00", "00:59:59.999",
        "01:00"], [qw(t f t)], "a time has come exactly then");
};

subtest "each task runs when it is due, whatever becomes of the others" => sub {
    my $own = database();
    my $id = uuid();
    sql($own, "INSERT INTO crmapi.workspace (id, name, slug) VALUES ('$id', 'W',
        'w')");
    my $worker = worker(database => $own, no_start => 1);
    my $rows = sub { join " ", map { scalar sql($own, "SELECT count(*) FROM
        crmapi.$_ WHERE workspace_id = '$id'") } qw(intake_event event) };
    my $make = sub { sql($own, "DELETE FROM crmapi.$_->[0]; INSERT INTO
        crmapi.$_->[0] $_->[1] SELECT $_->[2] FROM crmapi.workspace w,
        generate_series(1, 1) n") for @TASKS[1, 3] };
    $make->();
    $worker->once;
    is($rows->(), "0 0", "the first time, all are");
    $make->();
    $worker->once;
    is($rows->(), "1 1", "then none is");
    sql($own, "DELETE FROM crmapi.upkeep WHERE task = 'deliveries'");
    $worker->once;
    is($rows->(), "1 0", "one is, and no other");
    sql($own, "DELETE FROM crmapi.upkeep; ALTER FUNCTION crmapi.event_trim"
        . " RENAME TO no_trim");
    $worker->expect_log(qr/ error: .*CRM3203: upkeep of deliveries: .*event_trim/);
    $make->();
    $worker->once;
    is($rows->(), "0 1", "one that fails keeps no other from it");
    like(scalar sql($own, "SELECT result FROM crmapi.upkeep WHERE task ="
        . " 'deliveries' AND ended_at IS NOT NULL"), qr/event_trim/,
        "and has ended with the reason");
    sql($own, "DELETE FROM crmapi.upkeep");
    my $outbox = $worker->outbox;
    mkdir $outbox or die "mkdir: $!\n";
    write_file("$outbox/new", "no folder");
    $worker->expect_log(qr/ error: .*CRM3203: upkeep of outbox: \Q$outbox\E\/new: Not a/,
        qr/CRM3203: upkeep of deliveries/);
    $worker->configure({ maildir => $outbox });
    $worker->once;
    like(scalar sql($own, "SELECT result FROM crmapi.upkeep WHERE task = 'outbox'"
        . " AND ended_at IS NOT NULL"), qr/Not a directory/, "nor does a folder that"
        . " cannot be read: the database is not to blame");
};

done_testing;
