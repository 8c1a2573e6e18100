# SPDX-License-Identifier: Apache-2.0
# 64-restore.t: an older state of the database is restored: crmapid notices it,
# sends nothing until the release, and nothing twice after it
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Outreach;
use CrmTest::Smtpd;
use File::Temp qw(tempdir);

CrmTest::Smtpd::needed();

my $PEOPLE = 100;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0);
my $outreach = CrmTest::Outreach->new($w);
my %conf = ($outreach->relay, lease => "2s");
my $worker = worker(database => $database, no_start => 1, conf => \%conf);
my $scratch = tempdir("crm-dump-XXXXXX", TMPDIR => 1, CLEANUP => 1);
$w->ctl(qw(admin add --workspace), $w->id, "--email", "boss\@x.example");

# Run PostgreSQL's NAME with ARGUMENTS; it must succeed.
sub tool {
    my ($name, @arguments) = @_;
    my ($code, $out, $err) = CrmTest::Process::run_program(command => [
        CrmTest::Postgres::bindir() . "/$name", @arguments]);
    die "$name: $err" if $code;
}

sub dump_of {
    my ($from, $file) = @_;
    tool("pg_dump", "-Fc", "-f", "$scratch/$file", postgres()->conninfo($from,
        CrmTest::Postgres::superuser()));
}

sub restore {
    my ($file, $to, @options) = @_;
    tool("pg_restore", @options, "-d", postgres()->conninfo($to,
        CrmTest::Postgres::superuser()), "$scratch/$file");
}

# What the server got, and how many people the step number STEP.
sub got { return $outreach->got }
sub sent_of { return $outreach->sent_of(@_) }

sub held {
    my ($db) = @_;
    return crmapictl_json($db, "status")->{held_reason};
}

subtest "a dump while sequences are sent, and what is sent after it" => sub {
    $outreach->start(1 .. $PEOPLE - 10);
    $worker->start;
    ok(wait_for(sub { sent_of(1) >= 20 }, 60), "some are sent");
    # the last people's steps are generated after the dump
    $worker->stop;
    $worker->configure({ generate_threads => 0 });
    $worker->start;
    $outreach->start($PEOPLE - 9 .. $PEOPLE);
    dump_of($database, "middle");
    my $while = sent_of(1);
    cmp_ok($while, "<", $PEOPLE - 1, "$while when the dump is complete");
    $worker->stop;
    $worker->configure({ generate_threads => 2 });
    $worker->start;
    ok(wait_for(sub { sent_of(1) == $PEOPLE - 1 }, 120), "then all others");
    ok(wait_for(sub { got()->{"boss Please"} }, 10), "an admin is asked");
    $outreach->hurry($database, 2, 40);
    ok(wait_for(sub { sent_of(2) == 39 }, 60), "and some second steps");
    $worker->stop;
    is(held($database), undef, "nothing is held");
};

my $before = got();
$httpd->stop;
restore("middle", $database, "--clean", "--if-exists");

subtest "the same daemon holds the restored database" => sub {
    my $scheduled = sql($database, "SELECT count(*) FROM"
        . " crmapi.enrollment_step WHERE sort_order = 1"
        . " AND status IN ('scheduled', 'sending')");
    my $generating = sql($database, "SELECT count(*) FROM crmapi.enrollment"
        . " WHERE status = 'generating'");
    note("in the dump: $generating generating, $scheduled first steps open");
    cmp_ok($scheduled, ">", 10, "it has first steps that were sent since");
    cmp_ok($generating, ">", 0, "and enrollments that were generated since");
    $worker->expect_log(qr/CRM3010: an older state of the database was /);
    $worker->may_log(qr/CRM3005/);      # the leases of before
    $worker->start;
    ok($worker->wait_log(qr/CRM3010: .*crmapictl release/), "says what to do");
    is(held($database), "an older state of the database was restored",
        "status says why");
    sql($database, "UPDATE crmapi.job SET run_at = now() WHERE state ="
        . " 'ready'");
    $worker->stop;
    $worker->once;
    is_deeply(got(), $before, "nothing is sent");
    $worker->start;
    ok($worker->wait_log(qr/CRM3001/), "nor when it is started again");
    $worker->stop;
    is_deeply(got(), $before, "nothing");
};

subtest "nothing is sent twice after the release" => sub {
    is(crmapictl_json($database, "release")->{released}, 1, "it is released");
    # what was being sent at the moment of the dump, and is not in the journal
    $worker->may_log(qr/CRM3104|CRM3122|CRM3123/);
    $worker->configure({ threads => 16, relay_concurrency => 16 });
    $worker->start;
    my $open = sub { $outreach->open_of($database, @_) };
    ok(wait_for(sub { $open->(1) eq "0 0" }, 60), "first steps are recorded")
        or diag($open->(1));
    is_deeply(got(), $before, "and not sent");
    for my $step (2, 3) {
        $outreach->hurry($database, $step, $PEOPLE);
        ok(wait_for(sub { sent_of($step) >= $PEOPLE - 1
            && $open->($step) eq "0 0" }, 120), "steps $step are done");
    }
    $worker->stop;
    $outreach->nothing_twice("nothing came twice");
    is(sent_of($_), $PEOPLE - 1, "each has come: step $_") for 1 .. 3;
    is(sql($database, "SELECT string_agg(DISTINCT status || coalesce(' ' ||"
        . " generation_error, ''), ', ') FROM crmapi.enrollment WHERE status"
        . " <> 'pending_approval'"), "completed", "every sequence is complete");
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment_step WHERE"
        . " status = 'sent' AND sent_at > now() + interval '1 min'"), 0,
        "none in the future");
    is(held($database), undef, "and it is not held again");
};

subtest "a dump that is restored elsewhere, for a daemon without a mark" => sub {
    dump_of($database, "end");
    my $copy = postgres()->create_database;
    restore("end", $copy);
    my $other = worker(database => $copy, no_start => 1, conf => \%conf);
    $other->expect_log(
        qr/CRM3010: the database was restored or copied from another one/);
    $other->start;
    ok($other->wait_log(qr/CRM3010/), "it holds it");
    like(held($copy), qr/copied from another/, "and says why");
    # as a test system that is made anew each night, which ends all sessions
    $other->may_log(qr/CRM2001: database: /, qr/administrator command/,
        qr/server closed/, qr/probably means/, qr/before or while/,
        qr/CRM30(?:03|07|05): /);
    sql($copy, "UPDATE crmapi.instance SET held_at = NULL, held_reason = NULL;
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()");
    ok(wait_for(sub { (held($copy) // "") =~ /copied from another/ }, 30),
        "it holds another copy, which is restored under it");
    $other->stop;
    crmapictl_ok($copy, "release");
    $other->start;
    $other->once;
    is(held($copy), undef, "once it is released, it is at home there");
    $other->stop;
    postgres()->drop_database($copy);
};

subtest "the commands of docs/backup.md" => sub {
    my $page = read_file("$CrmTest::TOP/docs/backup.md")
        =~ s/^## Base backups\n.*?(?=^## )//msr;           # 64-recovery.t
    my $commands = join "", map { s/^\$ //mgr } fenced($page, "console");
    my %name = (crmapi => $database, map { $_ => "${database}$_" }
        "_new", "_staging");
    $commands =~ s/\bcrmapi(_new|_staging)?(?![\w.])/$name{$1 \/\/ "crmapi"}/g;
    my $host = postgres()->host;
    $commands =~ s/--database (\S+)/--database "host=$host $1 user=$CrmTest::Postgres::OWNER"/g;
    my ($slug) = sql($database, "SELECT slug FROM crmapi.workspace WHERE id = '"
        . $w->id . "'");
    $commands =~ s/\bone\b(?!-)/@$slug/g;
    # PGUSER is the superuser here
    $commands = "sudo() { shift 2; \"\$@\"; }\n$commands";
    my ($code, $out, $err) = run_program(chdir => $scratch,
        command => ["sh", "-eu", "-c", $commands], env => {
            CRMAPI_DATABASE => postgres()->conninfo($database),
            CRMAPI_SCHEMA_DIR => "$CrmTest::TOP/schema",
            PATH => "$CrmTest::BUILD{DIR}:$ENV{PATH}", PGHOST => $host,
            PGUSER => CrmTest::Postgres::superuser() });
    is($code, 0, "they run") or diag("$commands$out$err");
    like($out, qr/^held_reason\s+restored$/m, "and the restored one is held");
    for my $copy ("_new", "_staging") {
        my $idle = worker(database => $name{$copy}, no_start => 1,
            conf => \%conf);
        my $was = got();
        $idle->expect_log(qr/CRM3010: /);
        $idle->start;
        ok($idle->wait_log(qr/CRM3010/), "$copy: crmapid notices it, too");
        $idle->stop;
        is_deeply(got(), $was, "$copy: nothing is sent");
        postgres()->drop_database($name{$copy});
    }
    is(held($database), undef, "the original is not held");
    like($out, qr/^slug\tone-before$/m, "a workspace is copied");
    crmapictl_ok($database, qw(workspace delete one-before --yes));
};

subtest "a daemon that runs on notices it" => sub {
    $worker->start;
    my $heard = sql($database, "SELECT sum(n) FROM crmapi.send_mark");
    ok(wait_for(sub { sql($database, "SELECT sum(n) FROM crmapi.send_mark")
        > $heard + 1 }, 30), "heartbeats are counted");
    $worker->expect_log(qr/CRM3010: an older state/);
    sql($database, "UPDATE crmapi.send_mark SET n = greatest(n - 100, 0)");
    ok(wait_for(sub { (held($database) // "") =~ /older state/ }, 30),
        "the next heartbeat holds the database");
    $worker->stop;
    crmapictl_ok($database, "release");
};

# How often the daemon has said that it holds the database. It says so after it has
# held it.
sub notices { return scalar(() = $worker->log_lines(qr/CRM3010: /)) }

# The sum of the numbers that the daemon knows: its mark of this database in run_dir.
sub known {
    my $mark = $worker->dir . "/mark." . sql($database, "SELECT id FROM"
        . " crmapi.instance");
    my $sum = 0;
    $sum += $_ for split " ", read_file($mark, "");
    return $sum;
}

# What happens to the database, as SQL, and what the daemon says of it.
my @LAST_MOMENT = (
    ["the database goes back", "UPDATE crmapi.send_mark SET n = n - 1 WHERE n > 0",
        qr/CRM3010: an older state/],
    ["another copy takes its place", "UPDATE crmapi.instance SET database_id ="
        . " (database_id::bigint + 1)::oid",
        qr/CRM3010: the database was restored or copied/],
);

$httpd->start;

for my $n (0 .. $#LAST_MOMENT) {
    my ($what, $change, $says) = @{$LAST_MOMENT[$n]};
subtest "the last moment: $what while a step is taken" => sub {
    my $said = notices();
    is(held($database), undef, "it is not held");
    # no heartbeat meanwhile, and no thread that connects
    $worker->configure({ lease => "300s", threads => 1 });
    $outreach->start(-$n);      # it is to be approved
    my $beat = sub { sql($database, "SELECT sum(n) FROM crmapi.send_mark") };
    my $before = $beat->();
    $worker->start;
    # It knows of the beat after the database does. If it learned after it has held
    # the database, its next start would hold it again.
    # A mail to the admin may count meanwhile: the journal has its number.
    ok(wait_for(sub { known() > $before }, 20), "the only heartbeat")
        or diag("of ", $beat->(), " it knows ", known(), ", before were $before");
    my $id;
    ok(wait_for(sub { $id = sql($database, "SELECT e.id FROM (SELECT * FROM"
        . " crmapi.enrollment ORDER BY created_at DESC LIMIT 1) e"
        . " WHERE e.status = 'pending_approval'") }, 30), "one waits");
    $worker->expect_log($says);
    sql($database, "$change; SELECT crmapi.enrollment_approve("
        . "(SELECT workspace_id FROM crmapi.enrollment WHERE id = '$id'), '$id', NULL)");
    my $was = sent_of(1);
    ok(wait_for(sub { held($database) }, 30), "it is held");
    ok(wait_for(sub { notices() > $said }), "and the daemon says so");
    $worker->stop;
    is(sent_of(1), $was, "and the step is not sent");
    is(sql($database, "SELECT status FROM crmapi.enrollment_step WHERE"
        . " enrollment_id = '$id' AND sort_order = 1"), "scheduled",
        "but waits");
    crmapictl_ok($database, "release");
    $worker->configure({ lease => "2s", threads => 16 });
    $worker->start;
    ok(wait_for(sub { sent_of(1) == $was + 1 }, 30), "released: it is sent")
        or diag(held($database) // "not held", "\n", map({ "@$_\n" } sql($database,
            "SELECT id, kind, state, is_due, run_at, leased_until, attempts,"
            . " last_error FROM crmapi.job WHERE state <> 'done'")),
            read_file($worker->log_file));
    $worker->stop;
};
}

subtest "the journal alone, and what a crash leaves of it" => sub {
    my $said = notices();
    my ($mark) = glob $worker->dir . "/mark.*";
    my ($file) = reverse sort glob $worker->dir . "/sent.*";
    ok($mark && $file, "mark and journal are files of run_dir") or return;
    unlike(read_file($file), qr/slow\d|x\.example/,
        "the journal has no address");
    is((stat $file)[2] & 077, 0, "and is nobody else's");
    unlink $mark;
    open(my $out, ">>", $file) or die $!;
    print $out "{\"mark\":x}\n{\"mark\":1,\"state\":\"se";    # torn
    close $out;
    sql($database, "UPDATE crmapi.send_mark SET n = 0");
    $worker->expect_log(qr/CRM3010: an older state/);
    $worker->start;
    ok(wait_for(sub { (held($database) // "") =~ /older state/ }, 30),
        "the numbers of its lines are a mark, too");
    ok(wait_for(sub { notices() > $said }), "and the daemon says so");
    $worker->stop;
    ok(-s $mark, "which is a file again");
    like(read_file($file), qr/"se\n/, "the torn line has an end");
    crmapictl_ok($database, "release");
    $worker->start;
    ok($worker->wait_log(qr/CRM3001/), "and it goes on");
    $worker->stop;
    is(held($database), undef, "without a hold");
};

subtest "lines that are damaged, or of somebody else" => sub {
    my $had = sent_of(1);
    $worker->start;
    $outreach->start(200);
    ok(wait_for(sub { sent_of(1) > $had }, 30), "a sequence that lives");
    $worker->stop;
    my ($file) = reverse sort glob $worker->dir . "/sent.*";
    my ($good) = reverse grep { /"state":"sent".*"enrollment_id"/ }
        split /\n/, read_file($file);
    my @bad = map { my ($from, $to) = @$_; (my $line = $good) =~ s/$from/$to/
            or die "CrmTest: $from\n"; $line }
        [qr/"workspace_id":"./, '"workspace_id":"x'], [qr/"at":"./, '"at":"x'],
        [qr/"state":"sent"/, '"state":"gone"'], [qr/"part":"[^"]*"/, '"part":7.5e'],
        [qr/"provider_id":"/, "\"provider_id\":\"\xff"],
        [qr/"provider_id":"/, '"provider_id":"\u0000'], [qr/$/, $good],
        [qr/^\{/, '1],[{'];
    open(my $out, ">>:raw", $file) or die $!;
    print $out map { "$_\n" } @bad, '{"of":"another"}', $good;
    close $out;
    sql($database, "UPDATE crmapi.send_mark SET n = 0; DELETE FROM crmapi.past_send");
    $worker->expect_log(qr/CRM3010: an older state .* and \d+ damaged lines$/m);
    $worker->start;
    ok($worker->wait_log(qr/CRM3010: .* has [1-9]\d* messages? .*, and @{[
        1 + @bad]} damaged lines$/m), "are counted, and it starts");
    ok(sql($database, "SELECT count(*) FROM crmapi.past_send"),
        "the others are taken");
    $worker->stop;
    crmapictl_ok($database, "release");
};

subtest "a state between two heartbeats, of a daemon that sends nothing" => sub {
    my $said = notices();
    my $sum = sub { sql($database, "SELECT sum(n) FROM crmapi.send_mark") };
    my $beats = sub { my $to = $sum->() + $_[0];
        wait_for(sub { $sum->() >= $to }, 60) };
    $worker->configure({ lease => "3s" });
    $worker->start;
    ok($beats->(3), "each raises a number");    # its threads have connected
    sql($database, "CREATE TABLE public.before AS SELECT * FROM crmapi.send_mark");
    ok($beats->(3), "and another one");
    $worker->kill;
    sql($database, "UPDATE crmapi.send_mark m SET n = b.n FROM public.before b
        WHERE b.slot = m.slot; DROP TABLE public.before");
    $worker->expect_log(qr/CRM3010: an older state/);
    $worker->start;
    ok(wait_for(sub { notices() > $said }, 30), "it is noticed");
    $worker->stop;
    crmapictl_ok($database, "release");
};

subtest "a folder that cannot be written" => sub {
    write_file("$scratch/file", "");
    my $bad = worker(database => $database, no_start => 1,
        conf => { run_dir => "$scratch/file/below" });
    my ($code, $out, $err) = $bad->run("-1");
    is($code, 2, "refused");
    like($err, qr/^crmapid: run_dir: \Q$scratch\E\/file\/below: /, "says why");
};

subtest "a folder that another daemon has" => sub {
    my $run_dir = "$scratch/shared";
    my @two = map { worker(database => $database, no_start => 1,
        conf => { run_dir => $run_dir }) } 1 .. 2;
    $two[0]->start;
    $two[1]->expect_log(qr/CRM3015: run_dir: \Q$run_dir\E: another crmapid has it/ => 1);
    $two[1]->start;
    ok($two[1]->wait_log(qr/CRM3015/), "the second one tells");
    $_->stop for @two;
};

subtest "a folder that cannot be written while it runs" => sub {
    my $run_dir = "$scratch/run";
    my $other = database();
    my $full = worker(database => $other,
        conf => { run_dir => $run_dir, lease => "3s" });
    my $beat = sub { sql($other, "SELECT heartbeat_at FROM crmapi.worker") };
    $full->expect_log(qr/ error: run_dir: \Q$run_dir\E\/mark/ => 1,
        qr/CRM3013: / => 1);
    wait_for($beat, 20) or die "no heartbeat\n";
    rename $run_dir, "$run_dir.away" or die $!;
    for (1 .. 4) {
        my $last = $beat->();
        wait_for(sub { $beat->() ne $last }, 20) or die "no heartbeat\n";
    }
    is(scalar($full->log_lines(qr/CRM3014/)), 0, "other threads, which need"
        . " no folder, do not say that all is well");
    rename "$run_dir.away", $run_dir or die $!;
    ok($full->wait_log(qr/CRM3014/, 20), "it is said when all is");
    $full->stop;
};

done_testing;
