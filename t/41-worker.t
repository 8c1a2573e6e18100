# SPDX-License-Identifier: Apache-2.0
# 41-worker.t: crmapid: its command line, start and end, jobs and leases (design
# 7)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Citus;
use CrmTest::Proxy;
use CrmTest::Session;
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

# NOTIFY comes neither through PgBouncer in this mode nor from the servers of Citus:
# docs/scaling.md.
my $citus = CrmTest::Citus::wanted();
my $deaf = $citus || ($ENV{CRM_POOLER} // "") eq "transaction";

# The milliseconds within which a job is begun: MS, or by poll, which is "2s".
sub soon { $deaf ? 2500 : $_[0] }

my $database = database();
my $workspace = crmapictl_ok($database, qw(workspace create --name W --slug w
    --plan pro));

# Rows of the job table that meet CONDITION, as hashes.
sub jobs {
    my ($condition) = @_;
    my @names = qw(id kind state attempts last_error leased_by);
    return map { my %job; @job{@names} = @$_; \%job } sql($database,
        "SELECT " . join(", ", @names) . " FROM crmapi.job WHERE $condition"
        . " ORDER BY id");
}

# Make a job of KIND with the JSON PAYLOAD; its id. One of an enrollment that
# is not there is done at once.
sub job {
    my ($kind, $payload, $more) = @_;
    return scalar sql($database, "INSERT INTO crmapi.job (workspace_id, kind,"
        . " payload" . ($more ? ", run_at" : "") . ") VALUES ('$workspace',"
        . " '$kind', '$payload'" . ($more ? ", $more" : "")
        . ") RETURNING id");
}
my $NOBODY = '{"enrollment_id": "00000000-0000-4000-8000-000000000000"}';

sub state_of {
    my ($id) = @_;
    return scalar sql($database,
        "SELECT state FROM crmapi.job WHERE id = $id");
}

subtest "the command line" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my ($code, $out, $err) = $worker->run("--help");
    is($code, 0, "--help");
    like($out, qr/$_/, "--help names $_") for "-c,", "-D,", "-1,", "-t,";
    ($code, $out) = $worker->run("--version");
    like($out, qr/^crmapid \d+\.\d+/, "--version");
    ($code, $out) = $worker->run("-t");
    is($code, 0, "-t");
    is($out, "the configuration is valid\n", "says so");
    for my $case ([["-x"], qr/-x|invalid/], [["-1", "-D"], qr/combined/],
            [["--now", "2026-01-01"], qr/combined/],
            [["-1", "--now", "noon"], qr/--now must be a time/],
            [["-D"], qr/log_file/], [["more"], qr/unexpected argument: more/]) {
        ($code, $out, $err) = $worker->run(@{$case->[0]});
        is($code, 2, "@{$case->[0]} is refused");
        like($err, $case->[1], "which says why");
    }
};

subtest "a wrong configuration names file, line and rule" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my $file = $worker->conf_file;
    my $good = read_file($file);
    for my $case (
        ["threads", qr/must be: name = value/],
        ["thread = 1", qr/there is no setting "thread"/],
        (map { ["threads =$_", qr/threads must be a number from 1 to 64$/] }
            " 0", " 65", " 4x", " +4", ""),
        # links would lead nowhere, and each message would fail
        (map { ["$_ =", qr/$_ must not be empty/] } qw(name run_dir review_path
            unsubscribe_path twilio_url)),
        ["lease = 15", qr/lease must be a duration such as/],
        ["lease = 1ms", qr/lease must be a duration/],
        ["lease = -1s", qr/lease must be a duration/],
        ["email_relay = pigeon", qr/email_relay must be one of maildir\|/],
        ["email_relay = mail", qr/email_relay must be one of/],
        ["webhook_private = yes", qr/webhook_private must be on or off/],
        ["maildir = here", qr/maildir must begin with \//],
        ["public_url = https://example.org/?a=b", qr/public_url must .*without a query/],
        ["openai_url = https://example.org/v1#x", qr/openai_url must .*without a query/],
        (map { my ($name, $scheme) = @$_;
            ["$name = example.org", qr/$name must .* $scheme:\/\/ or ${scheme}s:\/\//],
            ["$name = ftp://example.org", qr/$name must .* that begins with $scheme:/],
            ["$name = ${scheme}x://example.org", qr/$name must .* that begins with/],
            ["$name = $scheme:///x", qr/$name must be a URL with a host/],
            ["$name = $scheme://:25", qr/$name must be a URL with a host/],
            ["$name = $scheme://[::1", qr/$name must be a URL with a host/],
            (map { ["$name = $scheme://x.example/${_}x",
                qr/$name must be a URL with a host/] } " ", "\"", "<"),
            (map { ["$name = $scheme://example.org:$_/x",
                qr/$name must .* whose port is from 1 to 65535$/] }
                "0", "65536", "70000", "", "-1"),
        } [smtp_url => "smtp"], map { [$_ => "http"] } qw(public_url openai_url
            provider_url twilio_url twilio_status_url)),
        # what would fail each mail, at the first step of each sequence
        ["mail_from = CRM <crm\@x.example>", qr/mail_from must be an address alone/],
        ["mail_from = crm", qr/mail_from must be an address/],
        ["mail_from = a\@x.example, b\@x.example", qr/mail_from must be an address/],
        ["mail_from_name = M\xfcller", qr/mail_from_name must be UTF-8/],
        ["name = a\x01b", qr/name must be UTF-8 without control/],
        ["threads = 2\nthreads = 3", qr/threads was set before/, 1],
        ["generate_threads = 2\nopenai_concurrency = 2",
            qr/openai_concurrency was set before/, 1],
        ["name = " . "x" x 5000, qr/is too long/]) {
        my ($line, $reason, $later) = @$case;
        my ($name) = $line =~ /^(\w+)/;
        my $others = $good =~ s/^$name = .*\n//mr;
        my $number = 1 + ($others =~ tr/\n//) + ($later || 0);
        write_file($file, "$others$line\n");
        my ($code, $out, $err) = $worker->run("-t");
        is($code, 2, substr($line, 0, 30) . ": refused");
        like($err, qr/^crmapid: \Q$file\E, line $number: /, "where it is");
        like($err, $reason, "and why");
    }
    for my $value ("a b", "", "x\@y.example", "x.example:25", "m\xc3\xbcller.example") {
        write_file($file, ($good =~ s/^mail_domain = .*\n//mr)
            . "mail_domain = $value\n");
        my ($code, $out, $err) = $worker->run("-t");
        is($code, 2, "mail_domain = $value: refused");
        like($err, qr/mail_domain must be a host name/, "and why");
    }
    # A daemon that polls without a pause uses a whole processor; one whose
    # requests have no time sends nothing.
    for my $case ([poll => "2s", "3s"], [webhook_timeout => "1m", "61s"],
            map { [$_ => "10m", "601s"] } qw(openai_timeout smtp_timeout
            provider_timeout)) {
        my ($name, $max, $more) = @$case;
        my $others = $good =~ s/^$name = .*\n//mr;
        for my $value ("0ms", "0s", "99ms", $more) {
            write_file($file, "$others$name = $value\n");
            my ($code, $out, $err) = $worker->run("-t");
            is($code, 2, "$name = $value: refused");
            like($err, qr/: $name must be a duration .*, from 100ms to $max$/,
                "and the limits are named");
        }
        for my $value ("100ms", $max) {
            write_file($file, "$others$name = $value\n");
            is(($worker->run("-t"))[0], 0, "$name = $value: accepted");
        }
    }
    write_file($file, "\xEF\xBB\xBF" . $good =~ s/\n/\r\n/gr);
    is(($worker->run("-t"))[0], 0, "what editors add is nothing");
    write_file($file, "$good# a remark\n\n  threads = 2  \n");
    is(($worker->run("-t"))[0], 0, "blanks and remarks are nothing");
    unlink $file;
    my ($code, $out, $err) = $worker->run("-t");
    is($code, 2, "no such file");
    like($err, qr/\Q$file\E: No such file/, "says so");
};

subtest "secrets" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my $secret = $worker->dir . "/secret";
    write_file($secret, "swordfish\n");
    chmod 0644, $secret;
    $worker->configure({ smtp_password_file => $secret });
    my ($code, $out, $err) = $worker->run("-t");
    is($code, 2, "a file that everybody may read is refused");
    like($err, qr/smtp_password_file: \Q$secret\E: it must not be acc/, "why");
    unlike($out . $err, qr/swordfish/, "without showing what is in it");
    chmod 0600, $secret;
    is(($worker->run("-t"))[0], 0, "a private one is not");
    for my $case (["", 2], [" \n\nswordfish\n", 2], ["swordfish" . "x" x 992, 2],
            ["swordfish" . "x" x 991, 0], [" swordfish \r\nmore\n", 0]) {
        write_file($secret, $case->[0]);
        ($code, $out, $err) = $worker->run("-t");
        is($code, $case->[1], "of its first line, 1 to 1,000 bytes count: "
            . length $case->[0]);
        like($err, $code ? qr/\Q$secret\E: its first line must have 1 to 1000 b/
            : qr/^$/, "what is wrong is said");
        unlike($out . $err, qr/swordfish/, "and no more");
    }
    $worker->configure({ smtp_password_file => undef });
    for my $name (qw(OPENAI_KEY SMTP_PASSWORD PROVIDER_TOKEN TWILIO_TOKEN)) {
        local $ENV{"CRMAPID_$name"} = "swordfish\r\nX: y";
        ($code, $out, $err) = $worker->run("-t");
        is($code, 2, "\$CRMAPID_$name with two lines is refused");
        like($err, qr/\$CRMAPID_$name has more than one line/, "and named");
        unlike($out . $err, qr/swordfish/, "and not shown");
    }
    $worker->configure({ smtp_password_file => "$secret.none" });
    like(($worker->run("-t"))[2], qr/No such file/, "a missing one is told");
    for my $open ("host=/x password=swordfish",
            "postgresql://me:swordfish\@host/db") {
        $worker->configure({ smtp_password_file => undef,
            database => $open });
        chmod 0644, $worker->conf_file;
        ($code, $out, $err) = $worker->run("-t");
        is($code, 2, "a password in a file that everybody may read");
        like($err, qr/must not be accessible to other users/, "is refused");
        unlike($out . $err, qr/swordfish/, "and not shown");
        chmod 0600, $worker->conf_file;
        is(($worker->run("-t"))[0], 0, "in a private one it is taken");
    }
    $worker->configure({ smtp_password_file => undef, database => "" });
    ($code, $out, $err) = $worker->run("-t");
    is($code, 2, "no database");
    like($err, qr/\$CRMAPI_DATABASE/, "says where it may be given");
};

subtest "-1 does what is due, and --now says when that is" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my $now = job("sequence.review", $NOBODY);
    my $later = job("sequence.review", $NOBODY,
        "now() + interval '4 days'");
    $worker->once;
    is(state_of($now), "done", "what is due is done");
    is(state_of($later), "ready", "what is not waits");
    my $then = sql($database, "SELECT to_char((now() + interval '5 days')"
        . " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
    $worker->once($then);
    is(state_of($later), "done", "until it is");
    my $strange = job("sequence.dance", "{}");
    $worker->expect_log(qr/CRM3102: .*does not know this kind/ => 1);
    $worker->once;
    is(state_of($strange), "dead", "what nobody knows is kept for somebody");
    like(crmapictl_ok($database, qw(job list)), qr/sequence\.dance/,
        "job list shows it");
    sql($database, "UPDATE crmapi.job SET kind = 'sequence.review',"
        . " payload = '$NOBODY' WHERE id = $strange");
    crmapictl_ok($database, qw(job retry), $strange);
    $worker->once;
    is(state_of($strange), "done", "job retry has it done");
    $worker->stop;
};

subtest "a job that the database refuses is given up at its 60th attempt" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my @ids = map { job("sequence.review", $NOBODY) } 1 .. 3;
    sql($database, "UPDATE crmapi.job SET attempts = 58 + array_position("
        . "'{" . join(",", @ids) . "}', id) - 1 WHERE id IN (" . join(",", @ids) . ")");
    $worker->expect_log(qr/warning: CRM3101: .*attempt 59: .*42P01/ => 1,
        qr/CRM3101: .*attempt 60: .*42P01/ => 1,
        qr/error: CRM3101: .*attempt 61: too many attempts: 61/ => 1,
        qr/CRM3102: .*42P01/ => 1, qr/CRM3102: .*too many attempts/ => 1);
    sql($database, "ALTER TABLE crmapi.enrollment RENAME TO away");
    $worker->once;
    sql($database, "ALTER TABLE crmapi.away RENAME TO enrollment");
    is_deeply([map { state_of($_) } @ids], [qw(ready dead dead)],
        "and no more is done after it");
    sql($database, "DELETE FROM crmapi.job WHERE id IN (" . join(",", @ids) . ")");
    $worker->stop;
};

subtest "the daemon: claims at once, says that it lives, ends in order" =>
    sub {
    my $worker = worker(database => $database, conf => { poll => "2s" });
    my @took;
    for (1 .. 40) {
        my $id = job("sequence.review", $NOBODY);
        my $start = time;
        wait_for(sub { state_of($id) eq "done" }) or last;
        push @took, scalar sql($database, "SELECT extract(epoch FROM"
            . " finished_at - created_at) * 1000 FROM crmapi.job"
            . " WHERE id = $id");
    }
    is(scalar @took, 40, "all are done");
    @took = sort { $a <=> $b } @took;
    diag(sprintf "from request to done: median %.0f ms, most %.0f ms",
        @took[20, -1]);
    # A busy machine makes most of them late. Poll alone takes two seconds for
    # each: a job is made just after a poll found the one before.
    my $slow = sanitized() || valgrinded() ? 20 : 1;
    cmp_ok($took[4], "<", $slow * busy() * soon(100),
        "from request to done: " . ($deaf ? "found by poll"
            : "under 100 ms, woken by NOTIFY"));
    my %list = map { $_->{id} => $_ } @{JSON::PP::decode_json(
        crmapictl_ok($database, qw(--json worker list)))};
    is(scalar keys %list, 1, "worker list shows it");
    is((values %list)[0]{threads}, 12, "with its threads");
    my $status = JSON::PP::decode_json(crmapictl_ok($database,
        qw(--json status)));
    is($status->{workers}, 1, "status counts it");
    cmp_ok($status->{heartbeat_seconds}, "<", 30, "and has heard of it");
    is($status->{jobs_due}, 0, "nothing is due");

    sql($database, "SET session_replication_role = replica;"
        . " INSERT INTO crmapi.job (workspace_id, kind, payload)"
        . " VALUES ('$workspace', 'sequence.review', '$NOBODY')");
    my $start = time;
    ok(wait_for(sub { !jobs("state <> 'done'") }),
        "NOTIFY lost: it looks by itself");
    # poll is 2 s; a busy machine may take its time
    cmp_ok(time - $start, "<", 6 * busy() * (valgrinded() ? 10 : 1),
        "within the time of poll");

    $worker->stop;
    is_deeply([sql($database, "SELECT id FROM crmapi.worker")], [],
        "it takes itself off the list");
    like($worker->log_text, qr/CRM3009/, "and says that it exits");
};

subtest "-D, pid_file, log_file, HUP" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my ($log, $pid_file) = map { $worker->dir . "/$_" } qw(my.log my.pid);
    $worker->configure({ log_file => $log, pid_file => $pid_file,
        lmtp_socket => $worker->dir . "/lmtp",
        status_listen => $worker->dir . "/status" });
    my ($code, $out, $err) = $worker->run("-D");
    is($code, 0, "-D returns when it works") or diag($err);
    my ($pid) = read_file($pid_file) =~ /^(\d+)$/;
    ok($pid && kill(0, $pid), "the process of pid_file is there") or return;
    like(read_file($log), qr/CRM3001/, "and has said so");
    ($code, $out, $err) = $worker->run("-D");
    isnt($code, 0, "a second one does not start");
    like($err, qr/pid_file: \Q$pid_file\E: another process has it/, "and says why");
    is(read_file($pid_file), "$pid\n", "pid_file is the first one's");
    my $file = sub { readlink("/proc/$pid/fd/$_[0]") // "" };
    is_deeply([map { $file->($_) } 0 .. 2], [("/dev/null") x 3],
        "it keeps nothing of who started it open");
    is((split / /, read_file("/proc/$pid/stat") =~ s/.*\) //sr)[3], $pid,
        "and is in a session of its own: a terminal that goes does not end it");
    # but for connections to the database, which threads open when they need one
    my $open = sub { return scalar grep { $file->(m{([^/]+)$}) !~ /^socket:/ }
        glob "/proc/$pid/fd/*" };
    my $files = $open->();
    rename $log, "$log.1";
    $worker->configure({ threads => "nine" });
    kill HUP => $pid;
    ok(wait_for(sub { read_file("$log.1") =~ /CRM3008/ }),
        "HUP with a wrong file changes nothing");
    like(read_file("$log.1"), qr/threads must be a number/, "and says why");
    $worker->configure({ threads => 9 });
    kill HUP => $pid;
    ok(wait_for(sub { read_file($log, "") =~ /CRM3001.*with 9 .* 4 for/ }),
        "HUP with a good one: new threads, a new log");
    for my $count (2, 3) {
        kill HUP => $pid;
        ok(wait_for(sub { (() = read_file($log) =~ /CRM3001/g) == $count }),
            "HUP again");
    }
    ok(wait_for(sub { $open->() <= $files }, 10),
        "a reload leaves no file, pipe or timer open")
        or diag(join "\n", map { $file->(m{([^/]+)$}) } glob "/proc/$pid/fd/*");
    my $ended = sub { wait_for(sub { !kill(0, $pid) || read_file(
        "/proc/$pid/status", "") =~ /State:\s+Z/ }, 20) };
    kill INT => $pid;
    ok($ended->(), "INT ends it, as TERM does");
    like(read_file($log), qr/CRM3009/, "in order");
    ok(!-e $worker->dir . "/$_", "no socket is left: $_") for qw(lmtp status);
    ok(!-e $pid_file, "pid_file is gone");
    is(($worker->run("-D"))[0], 0, "again");
    ($pid) = read_file($pid_file) =~ /^(\d+)$/;
    my $folder = $worker->dir . "/mail";
    my $taken = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1");
    for my $place ({ lmtp_socket => "/nowhere/lmtp" },
            { status_listen => "127.0.0.1:" . $taken->sockport }) {
        my ($name, $where) = %$place;
        my $before = (() = read_file($log) =~ /CRM3008/g);
        my $good = $worker->{conf}{$name};
        $worker->configure($place);
        kill HUP => $pid;
        ok(wait_for(sub { (() = read_file($log) =~ /CRM3008/g) > $before }, 20),
            "HUP with a $name that is not to be had changes nothing");
        like(read_file($log), qr/error: $name: \Q$where\E: /, "and says why");
        $worker->configure({ $name => $good });
    }
    ok(kill(0, $pid), "it is still there");
    mkdir $folder or die "mkdir: $!\n";
    my $count = (() = read_file($log) =~ /CRM3001/g);
    $worker->configure({ lmtp_socket => "$folder/lmtp" });
    kill HUP => $pid;
    ok(wait_for(sub { (() = read_file($log) =~ /CRM3001/g) > $count }, 20),
        "HUP with another one");
    ok(-S "$folder/lmtp", "is heeded");
    rename $folder, "$folder-away";
    kill HUP => $pid;
    ok(wait_for(sub { read_file($log) =~ /CRM3007/ }, 20), "HUP, and it cannot go on");
    like(read_file($log), qr{error: lmtp_socket: \Q$folder\E/lmtp: No such}, "why, is"
        . " in the log: nobody sees its standard error");
    kill TERM => $pid;
    ok($ended->(), "it can be ended");
    $worker->configure({ database => "host=/nowhere dbname=x" });
};

subtest "a reload without room for threads" => sub {
    plan(skip_all => "plain builds only: a library of the test's own is preloaded")
        if sanitized() || valgrinded();
    my $scratch = tempdir("crm-threads-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    my $worker = worker(database => $database, env => {
        LD_PRELOAD => library("no_threads", $scratch),
        CRM_NO_THREADS => "$scratch/none" }, conf => { threads => 3 },
        expect_log => [qr/CRM3008/ => 1, qr/CRM3007: waiting/ => 1,
            qr/error: a thread cannot be started: Resource/ => 2]);
    write_file("$scratch/none", "");
    $worker->configure({ threads => 5 });
    kill HUP => $worker->pid;
    ok(wait_for(sub { $worker->log_text =~ /CRM3007/ }, 20), "it waits for room");
    my $tries = -s "$scratch/none";
    ok(wait_for(sub { -s "$scratch/none" > $tries }, 20), "and tries again, in silence");
    unlink "$scratch/none";
    ok(wait_for(sub { $worker->log_text =~ /CRM3007.*CRM3001: .* 3 threads/s }, 20),
        "then it has its settings of before");
    kill HUP => $worker->pid;
    ok(wait_for(sub { $worker->log_text =~ /CRM3001: .* 5 threads/ }, 20),
        "and at the next reload the new ones");
    $worker->stop;
};

subtest "systemd is told when it works, and when it ends" => sub {
    plan(skip_all => "no libsystemd in this build: build/setup installs it")
        unless `ldd $CrmTest::BUILD{WORKER} 2>/dev/null` =~ /libsystemd/;
    my $worker = worker(database => $database, no_start => 1);
    my $path = $worker->dir . "/notify";
    my $socket = IO::Socket::UNIX->new(Local => $path,
        Type => Socket::SOCK_DGRAM()) or die "$!\n";
    my $told = sub {
        $socket->recv(my $text, 4096) if IO::Select->new($socket)
            ->can_read(20 * (valgrinded() ? 10 : 1));
        return $text // "nothing";
    };
    local $ENV{NOTIFY_SOCKET} = $path;
    $worker->start;
    is($told->(), "READY=1", "READY=1 when it works");
    kill HUP => $worker->pid;
    is($told->(), "RELOADING=1", "HUP: RELOADING=1");
    is($told->(), "READY=1", "and ready again");
    $worker->stop;
    is($told->(), "STOPPING=1", "TERM: STOPPING=1");
    my $unit = read_file("$CrmTest::BUILD{DIR}/crmapid.service");
    like($unit, qr/^Type=notify$/m, "the unit waits for it");
    like($unit, qr/^$_=/m, "the unit has $_")
        for qw(User NoNewPrivileges ProtectSystem SystemCallFilter Restart);
    unlike($unit, qr/%\w+%/, "and no place that was not filled in");
};

subtest "a daemon that is killed: its work goes to another" => sub {
    my $id = job("sequence.review", $NOBODY);
    # what it leaves behind: a lease nobody lengthens
    sql($database, "SELECT * FROM crmapi.job_claim('sequence', 'ghost',"
        . " '3 seconds', NULL)");
    is((jobs("id = $id"))[0]{leased_by}, "ghost", "it was somebody's");
    postgres()->wait_reaping;
    my $worker = worker(database => $database, conf => { lease => "3s" },
        expect_log => [qr/CRM3005: 1 job of daemons without a heartbeat/ => 1]);
    ok(wait_for(sub { state_of($id) eq "done" }, 20), "it is done");
    like((jobs("id = $id"))[0]{last_error}, qr/ghost fell silent/,
        "and one can see why that took longer");
    is((jobs("id = $id"))[0]{attempts}, 2, "at the second attempt");
    $worker->stop;
};

subtest "a job that takes longer than its lease stays the daemon's" => sub {
    my $worker = worker(database => $database, no_start => 1,
        conf => { lease => "5s" });
    for my $stops (0, 1) {
        my $when = $stops ? "at its end: " : "";
        postgres()->wait_reaping;
        my $let_go = postgres()->hold($database, "LOCK TABLE crmapi.enrollment");
        $worker->start if !$stops;
        my $id = job("sequence.review", $NOBODY);
        ok(wait_for(sub { state_of($id) eq "leased" }, 20),
            "${when}it works at it");
        kill TERM => $worker->pid if $stops;
        my $ends = sql($database, "SELECT leased_until FROM crmapi.job
            WHERE id = $id");
        ok(wait_for(sub { sql($database, "SELECT now() > '$ends'") eq "t" }, 20),
            "until the first lease is over");
        is(join(" ", @{(sql($database, "SELECT state, attempts,
            leased_until > '$ends' FROM crmapi.job WHERE id = $id"))[0]}),
            "leased 1 t", "it has lengthened it meanwhile, and nobody took it");
        is(sql($database, "SELECT stopping FROM crmapi.worker"),
            $stops ? "t" : "f", "it says whether it is about to end");
        $let_go->();
        ok(wait_for(sub { state_of($id) eq "done" }, 20), "it is done");
        is((jobs("id = $id"))[0]{attempts}, 1, "at the first attempt");
        # otherwise a job whose end could not be recorded were never another's
        ok(wait_for(sub { !sql($database, "SELECT busy FROM crmapi.worker") }, 20),
            "then it works at nothing") if !$stops;
    }
    $worker->stop;
};

subtest "a heartbeat lengthens the leases of what the daemon works at only" => sub {
    my %id = map { @$_ } sql($database, "INSERT INTO crmapi.job (workspace_id, kind,"
        . " payload, state, leased_by, leased_until) SELECT '$workspace', 'test.x',"
        . " jsonb_build_object('is', j.is), 'leased', j.owner, now() + interval"
        . " '1 min' FROM (VALUES ('its', 'me'), ('lost', 'me'), ('another', 'you'))"
        . " j(\"is\", owner) RETURNING payload ->> 'is', id");
    sql($database, "SELECT crmapi.worker_beat('me', 'n', 'h', 1, 'v', 1, 1, false,"
        . " '1 h', ARRAY[$id{its}, $id{another}])");
    my $of = "FROM crmapi.job WHERE kind = 'test.x'";
    my $list = sub { join " ", map { $_->[0] } sql($database, "SELECT payload ->>"
        . " 'is' $of AND $_[0] ORDER BY 1") };
    is($list->("leased_until > now() + interval '30 min'"), "its", "not that of a"
        . " claim whose answer was lost, nor another daemon's");
    sql($database, "UPDATE crmapi.job SET leased_until = now() - interval '1 s'"
        . " WHERE id IN ($id{lost}, $id{another})");
    postgres()->wait_reaping;
    is(sql($database, "SELECT crmapi.job_reap()"), 2, "those run out");
    is($list->("state = 'leased'"), "its", "and no other");
    sql($database, "DELETE $of; DELETE FROM crmapi.worker WHERE id = 'me'");
};

subtest "a lease that was lost changes nothing" => sub {
    my $id = job("sequence.review", $NOBODY);
    sql($database, "SELECT * FROM crmapi.job_claim('sequence', 'slow', '1h',"
        . " NULL)");
    sql($database, "UPDATE crmapi.job SET leased_until = now() - interval"
        . " '1 s' WHERE id = $id; SELECT crmapi.job_reap()");
    sql($database, "SELECT * FROM crmapi.job_claim('sequence', 'quick', '1h',"
        . " NULL)");
    is(sql($database, "SELECT crmapi.job_end('$workspace', $id, 'slow', 1,"
        . " 'done', NULL, NULL)"), "f", "the first one's result is refused");
    is(state_of($id), "leased", "the job is the second one's");
    eval { sql($database, "SELECT crmapi.job_hold('$workspace', $id, 'slow',"
        . " 1)") };
    like($@, qr/lease of job $id is lost/, "and job_hold() fails");
    is(sql($database, "SELECT crmapi.job_end('$workspace', $id, 'quick', 2,"
        . " 'done', NULL, NULL)"), "t", "whose result counts");
};

subtest "a lease is of one job of a workspace, of a daemon and an attempt" => sub {
    plan(skip_all => "ids of jobs are each server's") if $citus;
    my $other = crmapictl_ok($database, qw(workspace create --name O --slug o));
    my $in = "workspace_id IN ('$workspace', '$other') AND kind = 'test.x'";
    # the same in both
    my $make = sub { sql($database, "DELETE FROM crmapi.job WHERE $in;
        INSERT INTO crmapi.job (id, workspace_id, kind, run_at, state, attempts,
            leased_by, leased_until, last_error) OVERRIDING SYSTEM VALUE
        SELECT 5000001, w, 'test.x', now() - interval '2 h', 'leased', 2, 'me',
            now() + interval '1 h', 'before'
        FROM unnest(ARRAY['$workspace', '$other']::uuid[]) w") };
    my $shown = sub { join " ", map { $_ // "-" } @{(sql($database, "SELECT state,
        attempts, leased_by, length(last_error), round(extract(epoch FROM
            run_at - now()) / 3600), finished_at IS NOT NULL
        FROM crmapi.job WHERE workspace_id = '$_[0]' AND kind = 'test.x'"))[0]} };
    my $leased = "leased 2 me 6 -2 f";
    my $try = sub { eval { scalar sql($database, "SELECT crmapi.$_[0]") } // $@ };
    $make->();
    for my $wrong ("'00000000-0000-0000-0000-000000000000', 5000001, 'me', 2",
            "'$workspace', 5000002, 'me', 2", "'$workspace', 5000001, 'you', 2",
            "'$workspace', 5000001, 'me', 1") {
        like($try->("$_($wrong)"), qr/lease of job .* is lost/, "$_($wrong)")
            for qw(job_hold job_return);
        is($try->("job_end($wrong, 'done', NULL, NULL)"), "f", "job_end($wrong)");
    }
    is($shown->($_), $leased, "nothing is changed") for $workspace, $other;
    my $lease = "'$workspace', 5000001, 'me', 2";
    for my $case (["job_hold($lease)", $leased],
            ["job_return($lease)", "ready 1 - 6 -2 f"],
            ["job_end($lease, 'done', NULL, NULL)", "done 2 - 6 -2 t"],
            ["job_end($lease, 'dead', repeat('x', 3000), NULL)",
                "dead 2 - 2000 -2 t"],
            ["job_end($lease, 'ready', 'later', '3 h')", "ready 2 - 5 3 f"]) {
        my ($call, $becomes) = @$case;
        $make->();
        $try->($call);
        is($shown->($workspace), $becomes, $call);
        is($shown->($other), $leased, "not the other workspace's");
    }
    sql($database, "DELETE FROM crmapi.job WHERE $in");
};

subtest "workspaces take turns, each with its earliest job first" => sub {
    my @of = sort map { crmapictl_ok($database, qw(workspace create --name T),
        "--slug", $_) } qw(turn-1 turn-2);
    # in each: 1 h, 2 h ago, and in 1 h
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, run_at)
        SELECT w, 'test.x', now() + h * interval '1 h'
        FROM unnest('{@{[join ',', @of]}}'::uuid[]) w,
            unnest(ARRAY[-1, -2, 1]) WITH ORDINALITY h (h, n) ORDER BY w, n");
    my $claim = sub { my ($after, $at) = @_;
        my ($row) = sql($database, "SELECT c.workspace_id, c.attempts,
                round(extract(epoch FROM j.run_at - now()) / 3600),
                round(extract(epoch FROM c.taken_at - now()) / 3600)
            FROM crmapi.job_claim('test', 'me', '1 h', now() + $at, "
            . ($after ? "'$after'" : "NULL") . ") c JOIN crmapi.job j
            ON j.workspace_id = c.workspace_id AND j.id = c.id");
        return $row ? join " ", @$row : "none" };
    for my $case ([undef, "$of[0] 1 -2 0"], [$of[0], "$of[1] 1 -2 0"],
            [$of[1], "$of[0] 1 -1 0"], [$of[0], "$of[1] 1 -1 0"],
            [$of[1], "none"]) {
        my ($after, $is) = @$case;
        is($claim->($after, "interval '0'"), $is, "after " . ($after // "none"));
    }
    sql($database, "SELECT crmapi.job_poll('{test}', now() + interval '2 h')");
    is($claim->($of[0], "interval '2 h'"), "$of[1] 1 1 2", "what is due then");
    sql($database, "DELETE FROM crmapi.job WHERE kind = 'test.x'");
};

subtest "statistics of an empty queue: a claim takes one job, a poll a thousand" => sub {
    my $db = database();
    my ($w) = many_workspaces($db, "w", 1);
    sql($db, "INSERT INTO crmapi.job (workspace_id, kind, run_at)
        SELECT '$w', 'test.x', now() + n * interval '1 ms'
        FROM generate_series(1, 1500) n");
    sql($db, "UPDATE pg_class SET reltuples = 0, relpages = 1
        WHERE oid = 'crmapi.job'::regclass OR oid IN (SELECT i.indexrelid
            FROM pg_index i WHERE i.indrelid = 'crmapi.job'::regclass)");
    my $in = "now() + interval '1 h'";
    sql($db, "SELECT crmapi.job_poll('{test}', $in)");
    my $count = sub { scalar sql($db, "SELECT count(*) FROM crmapi.job WHERE $_[0]") };
    is($count->("is_due"), 1000, "due");
    for my $n (1, 2) {
        sql($db, "SELECT crmapi.job_claim('test', 'me', '1 h', $in)");
        is($count->("state = 'leased'"), $n, "claim $n");
    }
};

subtest "a poll says of each lane whether a job is due, and when the next is" => sub {
    my $poll = sub { join ", ", map { join " ", map { $_ // "-" } @$_ }
        sql($database, "SELECT lane, ready, round(wait / 1e6 / 3600) FROM
            crmapi.job_poll('{test,taste}', now() + $_[0]) ORDER BY lane") };
    is($poll->("interval '0'"), "taste f -, test f -", "no job");
    # the one that is next was made later
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, run_at)
        VALUES ('$workspace', 'test.x', now() + interval '5 h'),
            ('$workspace', 'test.x', now() + interval '2 h')");
    is($poll->("interval '0'"), "taste f -, test f 2", "two that wait");
    is($poll->("interval '3 h'"), "taste f -, test t 5", "one is due then");
    sql($database, "SET session_replication_role = replica; INSERT INTO crmapi.job
        (workspace_id, kind, run_at, is_due) VALUES ('$workspace', 'taste.x',
            now() - interval '1 h', false)");
    is($poll->("interval '-2 h'"), "taste f 0, test t 5", "none is due in the past");
    is($poll->("interval '0'"), "taste t -, test t 5", "what nobody saw come");
    sql($database, "DELETE FROM crmapi.job WHERE kind IN ('test.x', 'taste.x')");
};

subtest "the database goes away and comes back" => sub {
    my $worker = worker(database => $database, conf => { poll => "2s" });
    # A session that ended while it was idle is opened again without a word.
    $worker->may_log(qr/CRM2001: database: /,
        qr/CRM3003: the database is unavailable/);
    # whether a session ended in the midst of a job
    $worker->may_log(qr/CRM3101: .* CRM2001: /);
    for (1 .. 3) {
        # CRM3001 comes before the threads open their sessions
        ok(wait_for(sub { sql($database, "SELECT count(*) FILTER (WHERE"
            . " pg_terminate_backend(pid)) FROM pg_stat_activity"
            . " WHERE usename = 'crmapi_daemon'"
            . " AND datname = current_database()") > 0 }),
            "it has sessions, which end");
        my $id = job("sequence.review", $NOBODY);
        ok(wait_for(sub { state_of($id) eq "done" }, 20),
            "the job is done none the less");
    }
    # poll alone takes a second on average
    my @took = sort { $a <=> $b } map {
        my $id = job("sequence.review", $NOBODY);
        wait_for(sub { state_of($id) eq "done" }, 20);
        scalar sql($database, "SELECT extract(epoch FROM finished_at - created_at)
            * 1000 FROM crmapi.job WHERE id = $id") } 1 .. 9;
    cmp_ok($took[4], "<", soon(400), "NOTIFY wakes it as before");
    $worker->stop;
};

subtest "a connection that is there and says nothing" => sub {
    my $proxy = CrmTest::Proxy->new;
    my $worker = worker(database => $database, conninfo => $proxy->conninfo(
        $database, $CrmTest::Postgres::WORKER), conf => { answer_time => "1s",
            poll => "500ms", lease => "4s" });
    $worker->expect_log(qr/CRM3003: the database is unavailable/);
    # what it was at when nothing came through any more: a statement, or else a
    # connection
    $worker->may_log(qr/CRM2005: database: no answer within 1000 ms/,
        qr/CRM2001: database: /, qr/CRM3005: /, qr/CRM3101: /);
    my $id = job("sequence.review", $NOBODY);
    ok(wait_for(sub { state_of($id) eq "done" }, 20), "through the proxy");
    $proxy->swallow(1);
    ok($worker->wait_log($_, 60), "it gives up waiting, and says so")
        for qr/CRM200[15]: database: /, qr/CRM3003/;
    $id = job("sequence.review", $NOBODY);
    $proxy->swallow(0);
    ok(wait_for(sub { state_of($id) eq "done" }, 40),
        "what came meanwhile is done when the way is free again");
    $worker->stop;
};

# Wait until N threads of a daemon have made their connections to DB.
sub connected {
    my ($db, $n) = @_;
    return wait_for(sub { $n == sql($db, "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle'
        AND usename = '$CrmTest::Postgres::WORKER'
        AND query !~ 'instance|SET |set_config'") }, 20);
}

subtest "a stop does not wait for a database that says nothing" => sub {
    my $proxy = CrmTest::Proxy->new;
    my $worker = worker(database => $database, conninfo => $proxy->conninfo(
        $database, $CrmTest::Postgres::WORKER), conf => { answer_time => "10m",
            threads => 1, generate_threads => 0, answer_threads => 1,
            webhook_threads => 1 });
    ok(connected($database, 6), "all are connected");
    $proxy->swallow(1);
    # polls come five times a second
    my $until = time + 1;
    wait_for(sub { time > $until }, 10);
    # on a busy machine a call may have waited as long as it may
    $worker->may_log(qr/CRM2005: .* no answer within/, qr/CRM3003/);
    $worker->stop;
};

subtest "a thread that cannot connect delays no other" => sub {
    my $other = database();
    my $worker = worker(database => $other, no_start => 1);
    my $path = $worker->dir . "/lmtp";
    $worker->configure({ answer_time => "10m", lease => "3s", lmtp_socket => $path,
        threads => 1, generate_threads => 0, answer_threads => 1,
        webhook_threads => 1 });
    $worker->start;
    ok(connected($other, 6), "all are connected");
    my $beats = sub { scalar sql($other, "SELECT max(heartbeat_at) FROM crmapi.worker") };
    ok(wait_for($beats, 20), "it has a heartbeat");
    # the first statements of a connection wait; the daemon looks meanwhile
    sql($other, "BEGIN;
        ALTER FUNCTION crmapi.instance_look(bigint[]) RENAME TO really_look;
        CREATE FUNCTION crmapi.instance_look(known bigint[], OUT why text,
            OUT marks bigint[]) LANGUAGE plpgsql SECURITY DEFINER AS \$\$
        BEGIN
            PERFORM pg_advisory_xact_lock(47);
            SELECT l.why, l.marks INTO why, marks FROM crmapi.really_look(known) l;
        END \$\$; COMMIT");
    my $end = holding($other, "SELECT pg_advisory_xact_lock(47)");
    my $mail = IO::Socket::UNIX->new($path) or die "CrmTest: $!\n";
    print $mail "LHLO x\r\nMAIL FROM:<a\@x.org>\r\nRCPT TO:<b\@x.org>\r\n";
    wait_blocked($other, 1);
    my $beat = $beats->();
    ok(wait_for(sub { $beats->() ne $beat }, 20), "leases are extended");
    $end->();
    close $mail;
    $worker->stop;
};

subtest "an old or new schema is refused, and none waits" => sub {
    my $other = database();
    sql($other, "DELETE FROM crmapi.migration WHERE number ="
        . " (SELECT max(number) FROM crmapi.migration)");
    my $worker = worker(database => $other, no_start => 1);
    my ($code, $err) = $worker->refuses;
    is($code, 1, "an old one");
    like($err, qr/CRM3002.*run crmapictl migrate/, "says what to do");
    sql($other, "INSERT INTO crmapi.migration (number, name, sha256) SELECT"
        . " n, 'x', sha256('x') FROM generate_series((SELECT max(number) + 1"
        . " FROM crmapi.migration), 99) n");
    ($code, $err) = $worker->refuses;
    is($code, 1, "a new one");
    like($err, qr/CRM3002.*version 99 or later.*upgrade crmapid/,
        "says what to do");
    sql($other, "UPDATE crmapi.migration SET min_module ="
        . " (SELECT min(number) FROM crmapi.migration WHERE name = 'x')"
        . " WHERE name = 'x'");
    $worker->once;
    my $login = worker(database => $other, no_start => 1, conninfo =>
        CrmTest::Postgres->get->conninfo($other, $CrmTest::Postgres::API));
    ($code, $err) = $login->refuses;
    is($code, 1, "a login of httpd's");
    like($err, qr/CRM3002: the login has not the rights of crmapid.*role create/,
        "says what to do");
    like($err, qr/\bdbname=$other user=$CrmTest::Postgres::API\b/, "and where");
    pass("16.2 a new one that says that it is compatible is accepted");
    $worker = worker(no_start => 1, no_wait => 1,
        conninfo => "host=/nowhere dbname=x",
        expect_log => [qr/CRM2001: database: .*"\/nowhere/, qr/CRM3007: /,
            qr/threads must be a number/, qr/CRM3008: /]);
    $worker->start;
    ok($worker->wait_log(qr/CRM3007/), "no database at the start: it waits");
    $worker->configure({ threads => "nine" });
    kill HUP => $worker->pid;
    ok($worker->wait_log(qr/CRM3008/), "an invalid configuration is refused");
    sleep 2;
    unlike($worker->log_text, qr/CRM3001/, "and it still waits");
    $worker->configure({ threads => 1, database => CrmTest::postgres()
        ->conninfo($other, $CrmTest::Postgres::WORKER) });
    kill HUP => $worker->pid;
    ok($worker->wait_log(qr/CRM3001: .* with 1 threads/),
        "with a valid one it works on that one's database");
    $worker->stop;
};

subtest "16.2 a running crmapid takes no jobs from a schema that it cannot use" => sub {
    my $other = database();
    my $space = workspace(httpd(database => $other), twin => 0);
    my $worker = worker(database => $other, no_start => 1);
    my $job = sub {
        return scalar sql($other, "INSERT INTO crmapi.job (workspace_id, kind, payload)"
            . " VALUES ('" . $space->id . "', 'sequence.step', '{\"enrollment_id\":"
            . " \"00000000-0000-4000-8000-000000000000\"}') RETURNING id");
    };
    my $waits = sub {
        return sql($other, "SELECT count(*) FROM crmapi.job WHERE id = $_[0]"
            . " AND state = 'ready'");
    };
    $worker->start;
    my $first = $job->();
    ok(wait_for(sub { !$waits->($first) }, 20), "a job is done");
    sql($other, "INSERT INTO crmapi.migration (number, name, sha256)"
        . " VALUES (999, 'later', sha256('x'))");
    $worker->expect_log(qr/CRM3002: .*for programs of version 999 or later/ => 1,
        qr/CRM3003: / => 1);
    ok($worker->wait_log(qr/CRM3003: /, 20), "a later release has migrated: it is told");
    my $late = $job->();
    ok($waits->($late), "a job waits");
    sql($other, "DELETE FROM crmapi.migration WHERE number = 999");
    ok(wait_for(sub { !$waits->($late) }, 20), "until the schema can be used");
    ok($worker->wait_log(qr/CRM3004: /, 20), "which is told, too");
    $worker->stop;
};

# Workspaces of DATABASE with slugs that begin with PREFIX, COUNT of them: their
# ids, in order.
sub many_workspaces {
    my ($database, $prefix, $count) = @_;
    return map { $_->[0] } sql($database, "INSERT INTO crmapi.workspace (id,"
        . " name, slug) SELECT gen_random_uuid(), 'N', '$prefix-' || n FROM"
        . " generate_series(1, $count) n; SELECT id FROM crmapi.workspace"
        . " WHERE slug LIKE '$prefix-%' ORDER BY id");
}

# Jobs of DATABASE for each workspace that matches CONDITION, COUNT of each.
sub many_jobs {
    my ($database, $condition, $count) = @_;
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload)"
        . " SELECT w.id, 'sequence.review', '$NOBODY' FROM crmapi.workspace"
        . " w, generate_series(1, $count) WHERE $condition");
}

subtest "workspaces take turns" => sub {
    my $db = database();
    my %name;
    @name{many_workspaces($db, "w", 3)} = qw(A B C);
    my %id = reverse %name;
    for my $slot ("A -9", "A -8", "A -7", "B -5", "C -4", "C -1", "C 30") {
        my ($name, $after) = split / /, $slot;
        sql($db, "INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)"
            . " VALUES ('$id{$name}', 'sequence.review', '$NOBODY',"
            . " now() + interval '$after s')");
    }
    my ($after, @claimed, @run_at) = ("NULL");
    while (my ($job) = sql($db, "SELECT c.workspace_id, j.run_at FROM"
            . " crmapi.job_claim('sequence', 'me', '1 h', NULL, $after) c"
            . " JOIN crmapi.job j USING (workspace_id, id)")) {
        push @claimed, $name{$job->[0]};
        push @{$run_at[ord $claimed[-1]]}, $job->[1];
        $after = "'$job->[0]'";
    }
    is("@claimed", "A B C A C A", "each that has something due has a turn");
    is_deeply($_, [sort @$_], "its own in the order of their times")
        for grep { $_ } @run_at;
};

subtest "one workspace with much to do does not delay others" => sub {
    my $db = database();
    my $count = $ENV{CRM_LONG} ? 100_000 : 5_000;
    many_workspaces($db, "quiet", 50);
    many_workspaces($db, "noisy", 1);
    my $worker = worker(database => $db);
    # The time from request to done that one in a hundred jobs of the fifty
    # takes longer than, in ms.
    my $slowest = sub {
        sql($db, "DELETE FROM crmapi.job WHERE state = 'done'");
        for (1 .. 10) {
            many_jobs($db, "w.slug LIKE 'quiet%'", 1);
            wait_for(sub { !sql($db, "SELECT count(*) FROM crmapi.job j JOIN"
                . " crmapi.workspace w ON w.id = j.workspace_id WHERE"
                . " w.slug LIKE 'quiet%' AND j.state <> 'done'") }, 120)
                or return 1e9;
        }
        return sql($db, "SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY"
            . " extract(epoch FROM j.finished_at - j.created_at)) * 1000 FROM"
            . " crmapi.job j JOIN crmapi.workspace w ON w.id = j.workspace_id"
            . " WHERE w.slug LIKE 'quiet%'");
    };
    my $alone = $slowest->();
    many_jobs($db, "w.slug LIKE 'noisy%'", $count);
    my $beside = $slowest->();
    my $left = sql($db, "SELECT count(*) FROM crmapi.job WHERE state ="
        . " 'ready'");
    diag(sprintf "99 of 100 within %.0f ms alone, %.0f ms beside %d jobs of"
        . " another, of which %d are left", $alone, $beside, $count, $left);
    cmp_ok($left, ">", 0, "there was much to do all the time");
    # without turns it is the time that the others' jobs take: many seconds
    cmp_ok($beside, "<", 4 * $alone + 500 * (valgrinded() ? 10 : 1),
        "that hardly shows");
    $worker->stop;
};

subtest "an idle daemon hardly asks" => sub {
    my $db = database();
    sql("postgres", "ALTER DATABASE $db SET log_statement = 'all'");
    my $log = postgres()->host . "/log";
    my $start = -s $log;
    # what the daemon has asked so far: Citus makes a "statement" of its own
    # of what it has not prepared
    my $how = $citus ? "execute" : "(?:statement|execute)";
    my $statements = sub {
        return grep { / $db crmapi_daemon LOG:  $how/ }
            split /\n/, substr read_file($log), $start;
    };
    # settings as they are, but what is needed here
    my $worker = worker(database => $db, conf => { poll => undef });
    my $seconds = 12;
    # the last task of the first upkeep has ended
    ok(wait_for(sub { (grep { /counter_trim/ } $statements->())
        && !sql($db, "SELECT count(*) FROM crmapi.upkeep"
            . " WHERE ended_at IS NULL")
        # each thread has its connection, and has looked for a job
        && (() = join("\n", $statements->()) =~ /job_claim/g) >= 10 }, 60),
        "the daemon has begun");
    my @before = $statements->();
    my $began = time;
    wait_for(sub { time > $began + $seconds }, $seconds + 5);
    my @asked = $statements->();
    $seconds = time - $began;
    splice @asked, 0, scalar @before;
    cmp_ok(scalar @asked, ">", 3, "it looks for what is due, and says that it"
        . " lives");
    cmp_ok(@asked / $seconds, "<", 1, "less than one statement a second")
        or diag(map { s/.*?execute [^:]*: //r . "\n" } @asked);
    diag(sprintf "%.2f statements a second", @asked / $seconds);
    $worker->stop;
};

subtest "what becomes due is begun then" => sub {
    my $worker = worker(database => $database, conf => { poll => "2s" });
    my @ids = map { job("sequence.review", $NOBODY,
        "clock_timestamp() + interval '" . 200 * $_ . " ms'") } 1 .. 20;
    # like one that is tried again
    my $again = job("sequence.review", $NOBODY, "now() + interval '1 h'");
    sql($database, "UPDATE crmapi.job SET run_at = now() +"
        . " interval '700 ms' WHERE id = $again");
    my $ids = join ",", @ids, $again;
    ok(wait_for(sub { !jobs("id IN ($ids) AND state <> 'done'") }, 30),
        "all are done");
    my @late = sort { $a <=> $b } map { $_->[0] } sql($database, "SELECT"
        . " extract(epoch FROM finished_at - run_at) * 1000 FROM crmapi.job"
        . " WHERE id IN ($ids)");
    diag(sprintf "late: median %.0f ms, most %.0f ms", @late[10, -1]);
    cmp_ok($late[0], ">=", -1, "none before its time");
    # with poll alone it is a second
    cmp_ok($late[10], "<", soon(300) * (valgrinded() ? 10 : 1),
        "and at once then");
    my $dead = job("sequence.review", $NOBODY, "now() + interval '1 h'");
    sql($database, "UPDATE crmapi.job SET state = 'dead' WHERE id = $dead");
    crmapictl_ok($database, qw(job retry), $dead);
    ok(wait_for(sub { state_of($dead) eq "done" }), "job retry: it is done");
    my $late = sql($database, "SELECT extract(epoch FROM finished_at -"
        . " run_at) * 1000 FROM crmapi.job WHERE id = $dead");
    cmp_ok($late, "<", soon(600) * (valgrinded() ? 10 : 1), "and at once, too");
    $worker->stop;
};

subtest "the cost of a claim does not grow with what waits" => sub {
    plan(skip_all => "plain builds only: speed is measured there")
        if sanitized() || valgrinded();
    plan(skip_all => "Citus asks all servers") if $citus;
    my $db = database();
    many_workspaces($db, "many", 1000);
    many_workspaces($db, "one", 1);
    # $CRM_LONG has it go on to a million
    my @numbers = (1_000, $ENV{CRM_LONG} ? (100_000, 1_000_000) : 20_000);
    # what there is beside a thousand jobs that are due: of whom, and whether
    # their time has come
    my %others = ("of another workspace" => ["one-1", "true"],
        "of a thousand workspaces" => ["many-%", "true"],
        "for their time" => ["many-%", "false"]);
    my $measure = <<'SQL';
DO $$
DECLARE
    t timestamptz;
    turn uuid;
BEGIN
    CREATE TEMP TABLE took (claim float8, poll float8);
    COMMIT;
    FOR i IN 1 .. 300 LOOP
        t := clock_timestamp();
        SELECT c.workspace_id INTO turn
        FROM crmapi.job_claim('sequence', 'me', '15 s', NULL, turn) c;
        INSERT INTO took (claim) VALUES (extract(epoch FROM clock_timestamp()
            - t) * 1000);
        COMMIT;
        t := clock_timestamp();
        PERFORM FROM crmapi.job_poll('{sequence,webhook}', NULL);
        INSERT INTO took (poll) VALUES (extract(epoch FROM clock_timestamp()
            - t) * 1000);
        COMMIT;
    END LOOP;
END
$$;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY claim),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY poll) FROM took
SQL
    for my $which (sort keys %others) {
        my ($slug, $due) = @{$others{$which}};
        my %median;
        for my $n (@numbers) {
            sql($db, <<"SQL");
TRUNCATE crmapi.job;
SET session_replication_role = replica;
INSERT INTO crmapi.job (workspace_id, kind, payload)
SELECT w.id, 'sequence.review', '{}' FROM crmapi.workspace w
WHERE w.slug LIKE 'many-%';
INSERT INTO crmapi.job (workspace_id, kind, payload, is_due, run_at)
SELECT w.ids[1 + n % cardinality(w.ids)], 'sequence.review', '{}', $due,
    now() + CASE WHEN $due THEN interval '0' ELSE interval '1 day' END
FROM (SELECT array_agg(id) AS ids FROM crmapi.workspace
      WHERE slug LIKE '$slug') w, generate_series(1, $n) n
SQL
            my @runs = map { [sql($db, $measure)] } 1 .. 3;
            my @took = map { my $i = $_;
                (sort { $a <=> $b } map { $_->[0][$i] } @runs)[1] } 0, 1;
            $median{$n} = \@took;
            diag(sprintf "%d jobs wait %s: %.3f ms a claim, %.3f ms a look"
                . " (medians)", $n, $which, @took);
        }
        for my $n (@numbers[1 .. $#numbers]) {
            cmp_ok($median{$n}[$_], "<", 5 * $median{1_000}[$_] + 0.1,
                ("a claim", "a look")[$_] . " with $n waiting $which")
                for 0, 1;
        }
    }
};

done_testing;
