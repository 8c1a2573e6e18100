# SPDX-License-Identifier: Apache-2.0
# 54-worker-status.t: crmapid's status_listen: its metrics equal what was done,
# its health is that of the database, and clients do not slow down its jobs
# (contract 15.3)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Metrics;
use CrmTest::Receiver;
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(time);

my $slow = valgrinded() || sanitized() ? 5 : 1;
my $database = database();
my $httpd = httpd(database => $database, conf => "CrmApiWriteLimit 0\n");
my $w = workspace($httpd, twin => 0);
my $receiver = CrmTest::Receiver->new;
my $port = free_port();
my %conf = (status_listen => "127.0.0.1:$port", webhook_private => "on",
    webhook_timeout => "4s", keep_jobs => "365d");
my $worker = worker(database => $database, no_start => 1, conf => \%conf);
$worker->start;

sub ask {
    my ($path, %more) = @_;
    return CrmTest::Client->new(port => $more{port} || $port, timeout => 20)
        ->request($more{method} || "GET", $path,
            headers => $more{headers} || {});
}
sub scrape { ask("/metrics", headers => {
    Accept => "application/openmetrics-text" }, @_) }
sub metrics { samples(scrape(@_)->body) }

# Wait until the metric NAME is VALUE. Return the last value.
sub becomes {
    my ($name, $value, %more) = @_;
    my $last;
    wait_for(sub { $last = metrics(%more)->{$name};
        defined $last && $last == $value }, 20);
    return $last;
}

# Make N jobs of KIND with more columns as SQL.
sub jobs {
    my ($n, $kind, $columns, $values) = @_;
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind$columns)
        SELECT '@{[$w->id]}', '$kind'$values FROM generate_series(1, $n)");
}

subtest "each series is there from the start, so that Prometheus sees the first"
    . " increase" => sub {
    my $is = metrics();
    is($is->{$_}, 0, $_) for
        'crmapid_job_duration_seconds_count{lane="webhook"}',
        'crmapid_relay_duration_seconds_count{relay="maildir"}',
        'crmapid_relay_duration_seconds_bucket{relay="smtp",le="0.1"}',
        'crmapid_steps_total{relay="smtp",result="sent"}',
        'crmapid_webhook_deliveries_total{result="delivered"}',
        "crmapid_webhook_duration_seconds_count";
};

subtest "what was sent is equal to the counters" => sub {
    my $hook = sub { $w->webhook($receiver->url($_[0]), "contact.created") };
    my $contact = sub { status_is($w->client->post("/api/v1/contacts",
        { bot_id => $w->agent }), 201, "a contact") };

    $hook->("good/200");
    $hook->("bad/500:3600");    # no second attempt while the test counts
    $contact->() for 1 .. 7;
    is(becomes('crmapid_webhook_deliveries_total{result="delivered"}', 7), 7,
        "webhooks that were delivered");
    is(becomes('crmapid_webhook_deliveries_total{result="retry"}', 7), 7,
        "that will be tried again");
    is(becomes("crmapid_webhook_duration_seconds_count", 14), 14, "times");
    is(becomes('crmapid_jobs{lane="webhook",state="waiting"}', 7), 7,
        "their jobs wait");
    # some attempts find no slot of the endpoint
    cmp_ok(metrics()->{'crmapid_job_duration_seconds_count{lane="webhook"}'},
        ">=", 14, "attempts at jobs");
    sql($database, "UPDATE crmapi.webhook_endpoint SET disabled_at = now()");
    $hook->("gone/410");
    $contact->();
    is(becomes('crmapid_webhook_deliveries_total{result="gone"}', 1), 1,
        "an endpoint that is gone");
    my $template = $w->template([map { { email_subject => "S",
        email_body => "B", delay => "0s" } } 1 .. 2]);
    $w->start($template, auto_approve => true, contact => {
        first_name => "C", emails => ["c$_\@x.org"] }) for 1 .. 3;
    is(becomes('crmapid_steps_total{relay="maildir",result="sent"}', 6), 6,
        "steps");
    is(becomes('crmapid_relay_duration_seconds_count{relay="maildir"}', 6), 6,
        "the relay's times");
    my $is = metrics();
    is($is->{"crmapid_steps_total{relay=\"maildir\",result=\"$_\"}"}, 0, $_)
        for qw(retry failed unknown);
    is(scalar(my @mails = $worker->mails), 6, "as many as there are mails");
};

subtest "a lease that is lost" => sub {
    my $name = 'crmapid_leases_lost_total{lane="webhook"}';
    is(metrics()->{$name}, 0, "none before");
    $w->webhook($receiver->url("hang/hang"), "contact.created");
    $w->client->post("/api/v1/contacts", { bot_id => $w->agent });
    ok(wait_for(sub { grep { $_->{path} eq "/hang/hang" } $receiver->requests },
        10), "a thread waits for the endpoint");
    cmp_ok(metrics()->{'crmapid_threads_busy{lane="webhook"}'}, ">=", 1,
        "it is busy");
    sql($database, "UPDATE crmapi.job SET attempts = attempts + 1
        WHERE state = 'leased'");
    is(becomes($name, 1), 1, "is counted");
    is(becomes('crmapid_threads_busy{lane="webhook"}', 0), 0,
        "and the thread is free");
    sql($database, "UPDATE crmapi.webhook_endpoint SET disabled_at = now()");
    sql($database, "DELETE FROM crmapi.job");
};

subtest "jobs that fail, that are given up, and whose end is not recorded" => sub {
    my $is = sub { my ($name, $lane) = @_; qq(crmapid_${name}_total{lane="$lane"}) };
    my ($failed, $dead) = map { $is->($_, "generate") } qw(jobs_failed jobs_dead);
    my $before = metrics();
    $worker->expect_log(qr/ warning: .*CRM3102: .*webhook\.none/,
        qr/ warning: .*CRM3101: .*attempt 59: .*sequence_template/,
        qr/ warning: .*CRM3101: .*attempt 60: .*sequence_template/, qr/CRM3112: /);
    jobs(1, "webhook.none", "", "");
    is(becomes($is->("jobs_dead", "webhook"), 1), 1, "a job that nobody knows");
    my $template = $w->template([{ email_subject => "S", email_body => "B",
        delay => "0s" }]);
    $w->ctl("workspace", "hold", $w->id);
    my $id = $w->start($template, auto_approve => true, contact =>
        { first_name => "F", emails => ["f\@x.org"] })->{enrollment_id};
    sql($database, "ALTER TABLE crmapi.sequence_template RENAME TO away");
    for my $n (59, 60) {
        sql($database, "UPDATE crmapi.job SET attempts = $n - 1, run_at = now()
            WHERE state = 'ready' AND payload ->> 'enrollment_id' = '$id'");
        $w->ctl("workspace", "release", $w->id) if $n == 59;
        is(becomes($failed, $before->{$failed} + $n - 58), $before->{$failed}
            + $n - 58, "attempt $n: an error");
        ok(wait_for(sub { sql($database, "SELECT 1 FROM crmapi.job
            WHERE payload ->> 'enrollment_id' = '$id' AND state = 'ready'
              AND last_error ~ 'sequence_template'") }, 10),
            "which job list shows") if $n == 59;
    }
    is(becomes($dead, $before->{$dead} + 1), $before->{$dead} + 1,
        "the last one: given up");
    ok(wait_for(sub { !sql($database, "SELECT 1 FROM crmapi.job
        WHERE state = 'leased'") }, 10), "and ended");
    sql($database, "ALTER TABLE crmapi.away RENAME TO sequence_template;
        CREATE FUNCTION public.none() RETURNS trigger LANGUAGE plpgsql AS
            \$\$BEGIN RETURN NULL; END\$\$;
        CREATE TRIGGER a_none BEFORE UPDATE ON crmapi.job FOR EACH ROW
            WHEN (NEW.state = 'dead') EXECUTE FUNCTION public.none()");
    my $lost = $is->("leases_lost", "webhook");
    $worker->expect_log(qr/CRM3102: .*webhook\.nobody/);
    jobs(1, "webhook.nobody", "", "");
    is(becomes($lost, $before->{$lost} + 1), $before->{$lost} + 1,
        "a job that is not this worker's any more");
    sql($database, "DROP TRIGGER a_none ON crmapi.job; DELETE FROM crmapi.job");
};

subtest "a lease that is lost while its job is given up" => sub {
    my $lost = 'crmapid_leases_lost_total{lane="generate"}';
    my $before = metrics()->{$lost};
    my $template = $w->template([{ email_subject => "S", email_body => "B",
        delay => "0s" }]);
    $w->ctl("workspace", "hold", $w->id);
    my $id = $w->start($template, auto_approve => true, contact =>
        { first_name => "G", emails => ["g\@x.org"] })->{enrollment_id};
    # somebody else has it as soon as it was claimed
    sql($database, "CREATE FUNCTION public.steal() RETURNS trigger LANGUAGE plpgsql
            AS \$\$BEGIN UPDATE crmapi.job SET leased_by = 'other'
                WHERE id = NEW.id; RETURN NULL; END\$\$;
        CREATE TRIGGER a_steal AFTER UPDATE ON crmapi.job FOR EACH ROW
            WHEN (NEW.attempts > 60 AND NEW.leased_by <> 'other')
            EXECUTE FUNCTION public.steal();
        UPDATE crmapi.job SET attempts = 60, run_at = now()
            WHERE payload ->> 'enrollment_id' = '$id'");
    $worker->expect_log(qr/CRM3101: .*attempt 61: too many attempts/);
    $w->ctl("workspace", "release", $w->id);
    is(becomes($lost, $before + 1), $before + 1, "is counted");
    is(metrics()->{crmapid_database_errors_total}, 0, "and no fault of the database");
    sql($database, "DROP TRIGGER a_steal ON crmapi.job; DELETE FROM crmapi.job");
};

subtest "jobs by lane and state" => sub {
    $worker->stop;
    $worker->configure({ webhook_threads => 0 });
    jobs(5, "sequence.step", ", run_at", ", now() + interval '1 hour'");
    jobs(3, "webhook.deliver", ", run_at", ", now() + interval '2 hours'");
    # nobody has threads for this lane
    jobs(4, "webhook.deliver", ", run_at",
        ", now() - interval '500 seconds'
            - generate_series * interval '1 second'");
    jobs(2, "webhook.deliver", ", state, leased_by, leased_until",
        ", 'leased', 'somebody', now() + interval '1 hour'");
    jobs(6, "sequence.step", ", state, finished_at", ", 'dead', now()");
    jobs(9, "webhook.deliver", ", state, finished_at", ", 'done', now()");
    $worker->start;
    ok(wait_for(sub { exists metrics()->{
        'crmapid_jobs{lane="sequence",state="due"}'} }, 10), "are counted");
    my $is = metrics();
    my %want = (sequence => { due => 0, waiting => 5, leased => 0, dead => 6 },
        webhook => { due => 4, waiting => 3, leased => 2, dead => 0 });
    for my $lane (sort keys %want) {
        is($is->{qq(crmapid_jobs{lane="$lane",state="$_"})}, $want{$lane}{$_},
            "$lane: $_") for sort keys %{$want{$lane}};
    }
    my $oldest = $is->{'crmapid_oldest_due_seconds{lane="webhook"}'};
    cmp_ok($oldest, ">=", 504, "the oldest due job");
    cmp_ok($oldest, "<", 604, "and since when");
    is($is->{'crmapid_oldest_due_seconds{lane="sequence"}'} + 0, 0, "none is due");
    is($is->{'crmapid_threads{lane="webhook"}'}, 0, "threads of a lane");
    is($is->{'crmapid_threads{lane="sequence"}'}, 4, "and of the other");
    ok(wait_for(sub { $is = metrics(); $is->{crmapid_database_connections}
        == 12 }, 10), "connections: one for each thread");
    cmp_ok($is->{crmapid_database_connects_total}, ">=",
        $is->{crmapid_database_connections}, "were opened");
    is($is->{crmapid_database_errors_total}, 0, "without an error");
};

subtest "the oldest job of many workspaces" => sub {
    my ($late, $held) = map { workspace($httpd, twin => 0) } 1, 2;
    $held->ctl("workspace", "hold", $held->id);
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, run_at)
        VALUES ('@{[$late->id]}', 'webhook.deliver', now() - interval '2000 s'),
            ('@{[$held->id]}', 'webhook.deliver', now() - interval '5000 s')");
    is(becomes('crmapid_jobs{lane="webhook",state="held"}', 1), 1,
        "one is held");
    my $is = metrics();
    my $age = $is->{'crmapid_oldest_due_seconds{lane="webhook"}'};
    ok($age >= 2000 && $age < 2100, "another one's is found; what is held is"
        . " not late") or diag($age);
    is($is->{'crmapid_jobs{lane="webhook",state="due"}'}, 5, "nor due");
    $late->ctl("hold", "--all");
    is(becomes('crmapid_jobs{lane="webhook",state="held"}', 6), 6,
        "all are held");
    is(metrics()->{'crmapid_oldest_due_seconds{lane="webhook"}'} + 0, 0,
        "none is late");
    $late->ctl("release", "--all");
    is(becomes('crmapid_jobs{lane="webhook",state="due"}', 6), 6, "released");
};

subtest "scrapes do not load the database" => sub {
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, state,
        finished_at, run_at) SELECT '@{[$w->id]}', 'webhook.deliver',
        CASE WHEN n % 2 = 0 THEN 'done' ELSE 'ready' END,
        CASE WHEN n % 2 = 0 THEN now() END, now() + interval '1 day'
        FROM generate_series(1, 40000) n");
    my $rows = sub { scalar sql($database, "SELECT seq_scan || ' '
        || seq_tup_read FROM pg_stat_user_tables WHERE relname = 'job'") };
    my $commits = sub { scalar sql($database, "SELECT xact_commit
        FROM pg_stat_database WHERE datname = '$database'") };
    is(becomes('crmapid_jobs{lane="webhook",state="waiting"}', 20003), 20003,
        "a long queue is counted");
    my ($seq, $before, $start) = ($rows->(), $commits->(), time);
    metrics() for 1 .. 1000;
    jobs(1, "webhook.deliver", ", run_at", ", now() + interval '1 hour'");
    is(becomes('crmapid_jobs{lane="webhook",state="waiting"}', 20004), 20004,
        "it was counted again meanwhile");
    my $after = $commits->();
    # polls (5 a second), heartbeats, looks, this test's own statements, and
    # what sessions did before and PostgreSQL counts up to ten seconds later
    cmp_ok($after - $before, "<", 500 + 10 * (time - $start),
        "1,000 scrapes are not 1,000 statements");
    is($rows->(), $seq, "and the table of jobs was not read through");
};

subtest "the text" => sub {
    my $r = scrape();
    is($r->header("Content-Type"), "application/openmetrics-text; "
        . "version=1.0.0; charset=utf-8", "OpenMetrics");
    is($r->header("Cache-Control"), "no-store", "nobody keeps it");
    is_deeply([faults($r->body)], [], "its grammar");
    like($r->body, qr/^crmapid_build_info\{version="\d[\d.]*",schema="\d+"\} 1$/m,
        "versions");
    unlike($r->body, qr/[0-9a-f]{8}-[0-9a-f]{4}-|\@|\Q$w->{name}\E|svc_live/,
        "no workspace, key or contact");
    is(ask("/metrics")->header("Content-Type"), "text/plain; version=0.0.4; "
        . "charset=utf-8", "the older format");
    is(ask("/metrics", method => "HEAD")->body, "", "HEAD");
    my $post = ask("/metrics", method => "POST");
    status_is($post, 405, "POST");
    is($post->header("Allow"), "GET, HEAD", "Allow");
    status_is(ask($_), 404, $_) for "/", "/metrics/", "/other";
};

SKIP: {
    my ($none) = run_program(command => ["promtool", "--version"]);
    skip "no promtool: build/setup --tests installs it", 1 if $none;
    my ($code, $out, $err) = run_program(command => ["promtool", "check",
        "metrics"], stdin => ask("/metrics")->body);
    is("$code$out$err", "0", "promtool finds nothing");
}

# ---- health ----------------------------------------------------------------

subtest "a journal that cannot be written, in a folder that can" => sub {
    my $ready = sub { my $r = ask("/ready"); $r->status . " " . $r->body };
    my ($file) = reverse sort glob $worker->dir . "/sent.*";
    rename $file, "$file.away" or die $!;
    mkdir $file or die $!;
    $worker->expect_log(qr/CRM3122: .*\(will be retried\).* run_dir: /,
        qr/ error: run_dir: .*sent/ => 1, qr/CRM3013: / => 1);
    $w->start($w->template([{ email_subject => "S", email_body => "B",
        delay => "0h" }]), auto_approve => true, contact => {
            first_name => "J", emails => ["journal\@x.example"] });
    ok($worker->wait_log(qr/CRM3122: .* run_dir: /, 20), "nothing is sent");
    ok(wait_for(sub { $ready->() eq "503 run_dir\n" }, 20), "/ready says it");
    ok($worker->wait_log(qr/CRM3013: /, 20), "and the log");
    is($ready->(), "503 run_dir\n", "as long as it is so");
    sql($database, "UPDATE crmapi.job SET run_at = run_at + interval '1 hour'
        WHERE state = 'ready'");
    rmdir $file or die $!;
    rename "$file.away", $file or die $!;
    ok(wait_for(sub { $ready->() eq "200 ready\n" }, 20),
        "and that it can, before anything is sent");
    ok($worker->wait_log(qr/CRM3014: /, 20), "which is said");
    sql($database, "UPDATE crmapi.job SET run_at = now() WHERE state = 'ready'");
    ok(wait_for(sub { sql($database, "SELECT status FROM crmapi.enrollment_step
        WHERE to_identifier = 'journal\@x.example'") eq "sent" }, 20),
        "then it is sent");
};

# A server of our own, which is stopped.
my $server = CrmTest::Postgres->start;
my $away = do { local $ENV{CRM_TEST_PG} = $server->host; database() };
my $port2 = free_port();
my $run_dir = tempdir("crm-status-XXXXXX", TMPDIR => 1, CLEANUP => 1) . "/run";
my $second = worker(no_start => 1, database => $away,
    conninfo => $server->conninfo($away, $CrmTest::Postgres::WORKER),
    may_log => [qr/CRM3003: |CRM3007: |CRM2\d+: |connection to server|server closed|terminat|no connection/],
    conf => { status_listen => "127.0.0.1:$port2", run_dir => $run_dir,
        lease => "3s" });

# The answer to /ready is STATUS and WORD within SECONDS, and each answer takes
# less than one.
sub ready_is {
    my ($status, $word, $seconds, $name) = @_;
    my ($start, $longest, $got) = (time, 0, "");
    wait_for(sub {
        my $asked = time;
        my $r = ask("/ready", port => $port2);
        $got = $r->status . " " . $r->body;
        $longest = time - $asked if time - $asked > $longest;
        return $got eq "$status $word\n";
    }, 20);
    is($got, "$status $word\n", $name);
    cmp_ok(time - $start, "<", $seconds * $slow * busy(), "$name: in time");
    cmp_ok($longest, "<", $slow * busy(), "$name: no answer waits");
    is(ask("/live", port => $port2)->status, 200, "$name: it lives");
}

subtest "a database that is stopped" => sub {
    $second->start;
    ready_is(200, "ready", 2, "before");
    $server->halt;
    ready_is(503, "database", 1, "is noticed");
    ok(!exists metrics(port => $port2)
        ->{'crmapid_jobs{lane="sequence",state="due"}'}, "no old counts");
    ok(wait_for(sub { metrics(port => $port2)->{crmapid_database_errors_total}
        > 0 }, 10), "and counted");
    $server->resume;
    ready_is(200, "ready", 3, "and its return");
};

subtest "a database that hangs" => sub {
    kill STOP => $server->{pid};
    my @backends = split /\s+/, `ps -o pid= --ppid $server->{pid}`;
    kill STOP => grep { $_ } @backends;
    ready_is(503, "database", 3, "is noticed");
    kill CONT => grep { $_ } @backends, $server->{pid};
    ready_is(200, "ready", 10, "and its return");
};

subtest "a database that crmapid cannot use, though it answers" => sub {
    $server->sql($away, "ALTER FUNCTION crmapi.job_poll RENAME TO no_poll");
    ready_is(503, "database", 6, "is noticed");
    like(join("\n", $second->log_lines(qr/42883 function/)),
        qr/ \(host=\S+ .*dbname=$away user=\w+\)$/, "the log says where");
    $server->sql($away, "ALTER FUNCTION crmapi.no_poll RENAME TO job_poll");
    ready_is(200, "ready", 4, "and its end");
};

subtest "a database that takes no connection any more" => sub {
    $server->sql("postgres", "ALTER DATABASE $away ALLOW_CONNECTIONS false");
    $server->sql("postgres", "SELECT pg_terminate_backend(pid)"
        . " FROM pg_stat_activity WHERE datname = '$away'");
    ready_is(503, "database", 3, "is noticed");
    ok($second->wait_log(qr/ not currently accepting connections.* \(host=/, 30),
        "the log does not only say that a session ended");
    $server->sql("postgres", "ALTER DATABASE $away ALLOW_CONNECTIONS true");
    ready_is(200, "ready", 4, "and its end");
};

subtest "a folder run_dir that cannot be written" => sub {
    $second->expect_log(qr/ error: run_dir: /, qr/CRM3013: /);
    rename $run_dir, "$run_dir.away" or die $!;
    ready_is(503, "run_dir", 10, "is noticed");
    ok($second->wait_log(qr/CRM3013: /, 20), "and said");
    rename "$run_dir.away", $run_dir or die $!;
    ready_is(200, "ready", 10, "and that it is back");
    ok($second->wait_log(qr/CRM3014: run_dir can be written again/, 10),
        "and said, not of the database");
};

subtest "a folder that goes while the database is away" => sub {
    my @codes = (qr/CRM3003: /, qr/CRM3013: /, qr/CRM3004: /);
    my @said = map { scalar(() = $second->log_lines($_)) } @codes;
    my $says = sub {
        my ($i) = @_;
        ok(wait_for(sub { (() = $second->log_lines($codes[$i])) > $said[$i] },
            20), "the log has another $codes[$i]");
    };
    $server->halt;
    ready_is(503, "database", 3, "the database is away");
    $says->(0);         # a shorter outage than its threads notice has no line
    rename $run_dir, "$run_dir.away" or die $!;
    $server->resume;
    ready_is(503, "run_dir", 20, "the folder is away");
    $says->($_) for 1, 2;
    rename "$run_dir.away", $run_dir or die $!;
    ready_is(200, "ready", 10, "all is well");
};

subtest "another schema" => sub {
    # its other threads look at the schema now and then
    $second->may_log(qr/CRM3002: |CRM3003: /);
    $server->sql($away, "UPDATE crmapi.migration SET min_module = 9999
        WHERE number = (SELECT max(number) FROM crmapi.migration)");
    ready_is(503, "schema", 2, "is noticed");
    $server->sql($away, "UPDATE crmapi.migration SET min_module = 1
        WHERE number = (SELECT max(number) FROM crmapi.migration)");
    ready_is(200, "ready", 2, "and its end");
};

subtest "before the database is there" => sub {
    $second->stop;
    $server->halt;
    my $starting = worker(no_start => 1, database => $away, no_wait => 1,
        conninfo => $server->conninfo($away, $CrmTest::Postgres::WORKER),
        may_log => [qr/CRM3003: |CRM3007: |CRM2\d+: |connection to server/],
        conf => { status_listen => "127.0.0.1:$port2" });
    $starting->start;
    ok(wait_for(sub { eval { ask("/live", port => $port2)->status == 200 } },
        20), "it lives");
    ready_is(503, "database", 2, "and is not ready");
    $server->resume;
    ready_is(200, "ready", 3, "until it is there");
    ok($starting->wait_log(qr/CRM3001/), "and works");
    $starting->stop;
};

# ---- clients ---------------------------------------------------------------

sub connection { IO::Socket::INET->new(PeerAddr => "127.0.0.1",
    PeerPort => $port, Timeout => 5) }

# Read what SOCKET gives until it ends, at most for SECONDS.
sub rest_of {
    my ($socket, $seconds) = @_;
    my ($text, $end) = ("", time + $seconds);
    while ((my $left = $end - time) > 0) {
        IO::Select->new($socket)->can_read($left) or last;
        sysread($socket, $text, 65536, length $text) or return $text;
    }
    return undef;
}

subtest "clients that do harm" => sub {
    my $big = connection();
    local $SIG{PIPE} = "IGNORE";
    syswrite($big, "GET /live HTTP/1.1\r\nHost: x\r\n");
    syswrite($big, "X-More: " . "x" x 1000 . "\r\n") for 1 .. 100;
    my $answer = rest_of($big, 10);
    ok(!defined $answer || $answer eq "" || $answer =~ m{^HTTP/1\.1 4\d\d},
        "100 kB of headers get nothing but a refusal");
    my $bad = connection();
    syswrite($bad, "\0\1\2 nonsense\r\n\r\n");
    # the thread of the server can be woken, and its connections are limited
    my @many = map { connection() } 1 .. 60;
    syswrite($_, "GET /live HTTP/1.1\r\nHost: x\r\nX: ") for grep { $_ } @many;
    my ($start, $closed) = (time, 0);
    my $select = IO::Select->new(grep { $_ } @many);
    while ($select->count && time - $start < 20) {
        for my $socket ($select->can_read(0.5)) {
            next if sysread($socket, my $some, 4096);
            $select->remove($socket);
            $closed++;
        }
        # a byte now and then: never idle
        syswrite($_, "x") for $select->handles;
    }
    is($select->count, 0, "60 slow ones are ended");
    unlike(rest_of($bad, 10) // "", qr/ 200 /, "no HTTP");
    cmp_ok(time - $start, "<", 10 * $slow * busy(), "after a few seconds");
    is(ask("/live")->status, 200, "then others are served");
    jobs(1, "sequence.step", ", payload", ", '{\"enrollment_id\":"
        . " \"00000000-0000-4000-8000-000000000000\"}'");
    ok(wait_for(sub { !sql($database, "SELECT FROM crmapi.job
        WHERE state = 'ready' AND kind = 'sequence.step' AND is_due") }, 5),
        "and jobs are done");
};

subtest "slow clients do not keep others out" => sub {
    my @slow = map { connection() } 1 .. 3;
    syswrite($_, "GET /") for @slow;
    my $start = time;
    is(ask("/live")->status, 200, "/live") for 1 .. 20;
    cmp_ok(time - $start, "<", 2 * $slow * busy(), "at once");
};

subtest "a client waits while there is no descriptor for it, and costs nothing"
    => sub {
    plan(skip_all => "plain builds only: valgrind has descriptors of its own")
        if valgrinded();
    my $pid = $worker->pid;
    my $limit = sub {
        is(system("prlimit", "--pid", $pid, "--nofile=$_[0]:"), 0, "ulimit -n $_[0]");
    };
    my $used = sub {
        my ($user, $system) = (split / /, read_file("/proc/$pid/stat"))[13, 14];
        return ($user + $system) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
    };
    $worker->may_log(qr/Too many open files/, qr/CRM(?:2001|3013)/);
    $limit->(1);
    my $client = connection();
    syswrite($client, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n");
    my $before = $used->();
    is(rest_of($client, 2), undef, "no answer");
    cmp_ok($used->() - $before, "<", 0.7, "and no processor is kept busy");
    $limit->(1024);
    like(rest_of($client, 20), qr{^HTTP/1\.1 200 }, "then it is answered");
    ok(wait_for(sub { ask("/ready")->status == 200 }, 20), "and all is well");
};

subtest "a Unix socket, and settings that are refused" => sub {
    my $path = $worker->dir . "/status";
    $worker->configure({ status_listen => $path });
    kill HUP => $worker->pid;
    my $socket;
    ok(wait_for(sub { $socket = IO::Socket::UNIX->new(Peer => $path) }, 20),
        "after a reload");
    print $socket "GET /live HTTP/1.0\r\n\r\n";
    like(rest_of($socket, 10) // "", qr/ 200 .*\r\nlive\n\z/s, "it serves");
    ok(!connection(), "and the port no more");
    $worker->stop;
    ok(!-e $path, "its file is removed");
    my $taken = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1);
    for my $case (["80", qr/must be ADDRESS:PORT/],
            ["127.0.0.1:0", qr/must be ADDRESS:PORT/],
            (map { [$_, qr/must be ADDRESS:PORT/] } "127.0.0.1:65536",
                "127.0.0.1:+80", "127.0.0.1:80x", "::1:80", "[::1:80", ":80"),
            ["/" . "x" x 107, qr/the path is too long/],
            ["localhost.example:80", qr/status_listen: localhost/],
            ["127.0.0.1:" . $taken->sockport, qr/Address already in use/]) {
        $worker->configure({ status_listen => $case->[0] });
        my ($code, $err) = $worker->refuses;
        isnt($code, 0, "$case->[0]: refused");
        like($err, $case->[1], "$case->[0]: with the reason");
    }
};
done_testing;
