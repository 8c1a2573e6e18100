#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 04-run.t: build/run: options, start and end
# plain build only
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Process qw(end_process);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use Time::HiRes qw(time);

my $top = $CrmTest::TOP;
plan(skip_all => "the source folder is read-only") unless -w $top;

# A folder that the servers' unprivileged users can reach.
my $scratch = tempdir("crm-runs-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $dir = "$scratch/var";

my %started;
END { end_process($_, "TERM", 60) for keys %started }

# Start build/run with ARGUMENTS; wait for DIR/env or its end. Returns its
# process id, or undef when it ended.
sub begin {
    my ($name, @arguments) = @_;
    my $pid = CrmTest::Process::spawn(log => "$scratch/$name.log",
        command => ["$top/build/run", "--dir", $dir, @arguments]);
    $started{$pid} = 1;
    my $gone;
    wait_for(sub {
        if (waitpid($pid, WNOHANG) != 0) {
            $gone = 1;
            delete $started{$pid};
        }
        return $gone || -e "$dir/env";
    }, 900);    # the first time it builds everything
    return $gone ? undef : $pid;
}

# The variables of DIR/env, as a shell reads them.
sub environment {
    my ($code, $out) = run_program(command => ["sh", "-c",
        '. "$1"; for v in URL DATABASE KEY WORKSPACE HTTPD_CONF HTTPD_PID '
        . 'ERROR_LOG PGDATA PID; do eval "printf \"%s\\n\" '
        . '\"\$CRMAPI_$v\""; done', "sh", "$dir/env"]);
    my %env;
    @env{qw(url database key workspace conf httpd_pid error_log pgdata pid)}
        = split /\n/, $out, -1;
    return %env;
}

# Processes that have the folder on their command line.
sub processes {
    return grep { read_file("/proc/$_/cmdline", "") =~ /\Q$dir\E/ && $_ != $$ }
        map { m{/proc/(\d+)$} } glob "/proc/[0-9]*";
}

# Run build/run until it ends: (exit code, lines of stderr, the last of them,
# stdout).
sub refused {
    my (@arguments) = @_;
    my ($code, $out, $err) = run_program(seconds => 300,
        command => ["$top/build/run", @arguments]);
    my @lines = split /\n/, $err;
    diag($err) if @lines > 1;
    return ($code, scalar @lines, $lines[-1] // "", $out);
}

subtest "options" => sub {
    my ($code, $n, $line, $out) = refused("--help");
    is($code, 0, "--help");
    like($out, qr/--$_\b/, "--help names --$_")
        for qw(port dir fresh no-demo conf
        worker-conf help);
    for my $case (
        [["--bogus"], qr/--bogus/], [["--port"], qr/--port/],
        [["--port", "x"], qr/--port x/], [["--port", "70000"], qr/70000/],
        [["--conf", "$scratch/none"], qr/none/],
        [["--dir", "/etc"], qr{/etc}]) {
        my ($code, $n, $line) = refused(@{$case->[0]});
        isnt($code, 0, "@{$case->[0]} is refused");
        is($n, 1, "in one line");
        like($line, $case->[1], "that says what is wrong");
    }
};

my $port = free_port();
# The id of the demo's template.
sub template {
    my (%env) = @_;
    my $lines = CrmTest::crmapictl_ok(undef, { env => {
        CRMAPI_DATABASE => $env{database} } }, "export", "--workspace",
        $env{workspace});
    my ($line) = grep { /"object":\s*"sequence_template"/ } split /\n/, $lines;
    return JSON::PP::decode_json($line)->{id};
}

my $first_took = time;
subtest "a first start with data" => sub {
    my $pid = begin("first", "--port", $port);
    $first_took = time - $first_took;
    ok($pid, "it starts") or diag(read_file("$scratch/first.log")), return;
    my %env = environment();
    is((stat "$dir/env")[2] & 07777, 0600, "DIR/env is nobody else's");
    is($env{url}, "http://127.0.0.1:$port", "CRMAPI_URL");
    is($env{pid}, $pid, "CRMAPI_PID");
    ok(kill(0, $env{httpd_pid}), "CRMAPI_HTTPD_PID");
    ok(-f $env{conf} && -f $env{error_log} && -d $env{pgdata},
        "configuration, log and data are where it says");
    cmp_ok(scalar(processes()), ">", 3, "its processes are seen");
    my ($code, $out) = run_program(command => [$CrmTest::BUILD{CTL},
        "--json", "workspace", "show", $env{workspace}],
        env => { CRMAPI_DATABASE => $env{database} });
    is($code, 0, "CRMAPI_DATABASE serves crmapictl");
    ($code, $out) = run_program(command => ["sh", "-euc", '. "$1"; crmapictl'
        . ' --json workspace show "$CRMAPI_WORKSPACE"', "sh", "$dir/env"]);
    is($code, 0, "which a shell finds after DIR/env");
    ($code, my $version) = run_program(command => ["sh", "-euc", '. "$1"; crmapictl'
        . ' migrate', "sh", "$dir/env"], env => { CRMAPI_SCHEMA_DIR => "" });
    like("$code $version", qr/^0 schema version \d+$/, "with its migrations");
    is((run_program(command => [$CrmTest::BUILD{CTL}, "status"],
        env => { CRMAPI_DATABASE => $env{database} }))[2], "",
        "crmapictl status warns of nothing");
    my $client = CrmTest::Client->new(port => $port, key => $env{key});
    for my $path (qw(agents contacts companies pipelines pipeline-cards
            conversations forms)) {
        my $r = $client->get("/api/v1/$path", query => { page_size => 1 });
        status_is($r, 200, "/$path");
        cmp_ok($r->json->{pagination}{total}, ">", 0, "has data");
    }
    my $said = read_file("$scratch/first.log");
    my ($docs) = $said =~ m{page: \Q$env{url}\E(\S+)$}m;
    my ($mcp) = $said =~ m{^MCP: +\Q$env{url}\E(\S+)$}m;
    status_is($client->get($docs), 200, "the documentation's address");
    status_is($client->post($mcp, { jsonrpc => "2.0", id => 1,
        method => "ping" }, headers => { "MCP-Protocol-Version" => "2025-11-25" }),
        200, "the address for agents");
    ok(wait_for(sub { CrmTest::crmapictl_ok(undef, { env => {
        CRMAPI_DATABASE => $env{database} } }, "status")
        =~ /^workers\t1$/m }), "the worker is there");
    my $r = $client->post("/api/v1/sequences/start", {
        template_id => template(%env), auto_approve => true,
        contact => { emails => ["first\@x.example"], first_name => "F" } });
    status_is($r, 202, "a sequence is started");
    my $url = $r->data->{status_url};
    ok(wait_for(sub { (($client->get($url)->data->{steps}[0] || {})->{status}
        // "") eq "sent" }, 20), "and its first step sent");
    my ($mail) = grep { /first\@x\.example/ } map { read_file($_) }
        glob "$dir/outbox/new/*";
    ok($mail, "which lies in the outbox");
    my ($path) = ($mail // "") =~ s/\n[ \t]+/ /gr
        =~ m{List-Unsubscribe: <http://[^/]+(/\S+)>};
    is($client->get($path // "/none")->status, 200,
        "and its link leads to a page");
    my @curls = grep { /^\s*curl / }
        split /\n/, read_file("$scratch/first.log");
    cmp_ok(scalar @curls, ">=", 2, "it prints commands to try");
    for my $command (@curls) {
        my ($code, $out) = run_program(command => ["sh", "-c", $command]);
        like($out, qr/"data":\s*\[\s*\{/, "pasted:$command");
    }
    my $error_log = read_file($env{error_log});
    like($error_log, qr/resuming normal operations/, "error_log is httpd's");
    unlike($error_log, qr/:(?:warn|error|crit|alert|emerg)\]/,
        "and has no complaint");
    my ($code2, undef, $line) = refused("--dir", $dir, "--port", $port);
    isnt($code2, 0, "a second one on the same folder is refused");
    like($line, qr/in use/, "and says why");

    my ($status, $killed) = end_process($pid, "TERM", 60);
    delete $started{$pid};
    is($status, 0, "SIGTERM ends it");
    is_deeply([processes()], [], "with all that it started");
    ok(!-e "$dir/env", "DIR/env is gone");
};

subtest "a second start is faster, and the data is still there" => sub {
    my $socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        LocalPort => 0, Listen => 1);
    my ($code, $n, $line) = refused("--dir", $dir, "--port",
        $socket->sockport);
    isnt($code, 0, "a port in use is refused");
    is($n, 1, "in one line");
    like($line, qr/port @{[$socket->sockport]}\b.*in use/, "that says so");
    is_deeply([processes()], [], "nothing is left running");

    write_file("$scratch/more.conf", "Header set X-More yes\n");
    write_file("$scratch/worker.conf", "name = mine\n");
    my $begun = time;
    my $pid = begin("second", "--port", $port, "--conf",
        "$scratch/more.conf", "--worker-conf", "$scratch/worker.conf");
    ok($pid, "it starts") or diag(read_file("$scratch/second.log")), return;
    cmp_ok(time - $begun, "<", $first_took, "in less time");
    my %env = environment();
    my $r = CrmTest::Client->new(port => $port, key => $env{key})
        ->get("/api/v1/contacts");
    status_is($r, 200, "the same key opens it");
    is($r->header("X-More"), "yes", "--conf is included");
    ok(wait_for(sub { CrmTest::crmapictl_ok(undef, { env => {
        CRMAPI_DATABASE => $env{database} } }, "--json", "worker", "list")
        =~ /"name":\s*"mine"/ }), "--worker-conf, too");
    my ($status) = end_process($pid, "INT", 60);
    delete $started{$pid};
    is($status, 0, "SIGINT ends it");
    is_deeply([processes()], [], "with all that it started");
};

subtest "when a server dies, or the script itself" => sub {
    my $pid = begin("third", "--port", $port);
    ok($pid, "it starts") or diag(read_file("$scratch/third.log")), return;
    my %env = environment();
    kill KILL => $env{httpd_pid};
    my $status;
    ok(wait_for(sub { my $r = waitpid($pid, WNOHANG);
        $status = $?; $r == $pid }, 60), "without httpd it ends");
    delete $started{$pid};
    isnt($status, 0, "and fails");
    is_deeply([processes()], [], "nothing is left running");

    $pid = begin("fourth", "--port", $port);
    ok($pid, "it starts again") or diag(read_file("$scratch/fourth.log")),
        return;
    cmp_ok(scalar(processes()), ">", 3, "its processes are there");
    # for the next subtest
    %env = environment();
    run_program(command => ["psql", "-X", "-d", $env{database}, "-c",
        "SET synchronous_commit = on; UPDATE crmapi.migration"
        . " SET sha256 = 'old' WHERE number = 1"]);
    kill KILL => $pid;
    waitpid($pid, 0);
    delete $started{$pid};
    ok(wait_for(sub { !processes() }, 60),
        "killed outright, its servers end by themselves");
};

subtest "--fresh and --no-demo" => sub {
    my ($code, $n, $line) = refused("--dir", $dir, "--port", $port);
    isnt($code, 0, "a database of another schema/ is refused");
    is($n, 1, "in one line");
    like($line, qr/\Q$dir\E .* another schema.*--fresh/,
        "that says what to do");
    is_deeply([processes()], [], "nothing is left running");
    unlink "$dir/ready";
    ($code, $n, $line) = refused("--dir", $dir, "--port", $port);
    isnt($code, 0, "a half-made folder is refused");
    is($n, 1, "in one line");
    like($line, qr/half-made.*--fresh/, "that says what to do");
    my $pid = begin("fresh", "--port", $port, "--fresh", "--no-demo");
    ok($pid, "--fresh mends it") or diag(read_file("$scratch/fresh.log")),
        return;
    my %env = environment();
    is($env{key} . $env{workspace}, "", "--no-demo: no key, no workspace");
    my ($rc, $out) = run_program(command => [$CrmTest::BUILD{CTL}, "--json",
        "workspace", "list"], env => { CRMAPI_DATABASE => $env{database} });
    is($out =~ s/\s//gr, "[]", "the database is empty");
    end_process($pid, "TERM", 60);
    delete $started{$pid};
    is_deeply([processes()], [], "nothing is left running");
};

done_testing;
