# SPDX-License-Identifier: Apache-2.0
# 41-clock.t: the clock of a host is set while httpd and crmapid run: what waits
# ends when it should, and nothing ends early (contract 11, 19.4)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Outreach;
use CrmTest::Session;
use File::Temp qw(tempdir);
use IO::Socket::INET ();
use Time::HiRes qw(time);

plan(skip_all => "plain builds only: a library of the test's own is preloaded")
    if sanitized() || valgrinded();

my $scratch = tempdir("crm-clock-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $library = library("set_clock", $scratch);

# Set the clock of HOST by SECONDS, seen from the true time.
sub set_clock {
    my ($host, $seconds) = @_;
    write_file("$scratch/$host.new", "$seconds\n");
    rename "$scratch/$host.new", "$scratch/$host" or die "$host: $!\n";
}

# The environment of a program on HOST.
sub clock_of {
    my ($host) = @_;
    set_clock($host, 0);
    return { LD_PRELOAD => $library, CRM_CLOCK => "$scratch/$host" };
}

my $database = database();
my $httpd = httpd(database => $database, env => clock_of("web"),
    conf => "CrmApiDatabaseTimeout 5s\n"
    . "<Location /metrics>\nSetHandler crmapi-metrics\nRequire all granted\n"
    . "</Location>\n");
my $w = workspace($httpd);
$w->log_on;
my $contact = $w->contact->{id};

# Send METHOD PATH with BODY; a client that waits for the answer.
sub begin {
    my ($method, $path, $body) = @_;
    return $w->client(timeout => 60)->ask($method, "/api/v1$path",
        body => $body);
}

subtest "19.4 a request that waits, when the clock is set back an hour" => sub {
    my $end = $w->client->get("/api/v1/events?cursor=end")
        ->json->{pagination}{next_cursor};
    my $client = begin("GET", "/events?wait=3&cursor=$end");
    ok(wait_for(sub { sql($database, "SELECT count(*) FROM pg_stat_activity
        WHERE application_name LIKE 'crmapi bell%'
          AND datname = current_database()") }), "it waits");
    my $began = time;
    set_clock("web", -3600);
    my $r = $client->read_response("GET");
    status_is($r, 200, "is answered");
    cmp_ok(time - $began, "<", 5 * busy(), "when its time is over");
    set_clock("web", 0);
};

subtest "a read that waits for a lock, when the clock is set forward" => sub {
    my $let_go = holding($database, "LOCK TABLE crmapi.form");
    my $client = begin("GET", "/forms?search=x");
    wait_blocked($database, 1);
    set_clock("web", 3600);
    # the thread that waits looks at its clock each 50 milliseconds
    my $until = time + 1;
    my $gone = wait_for(sub { time > $until ? 1 : 2 * !sql("postgres", "SELECT
        count(*) FROM pg_stat_activity WHERE datname = '$database'
        AND wait_event_type = 'Lock'") });
    is($gone, 1, "it goes on waiting");
    $let_go->();
    status_is($client->read_response("GET"), 200, "it is answered");
    set_clock("web", 0);
};

subtest "a write that waits for a lock, when the clock is set back" => sub {
    my $let_go = holding($database, "SELECT 1 FROM crmapi.contact WHERE id ="
        . " '$contact' FOR UPDATE");
    my $client = begin("PATCH", "/contacts/$contact", "{\"last_name\":\"B\"}");
    wait_blocked($database, 1);
    my $began = time;
    set_clock("web", -3600);
    $httpd->expect_log(qr/CRM2005/);
    status_is($client->read_response("PATCH"), 503, "is given up");
    cmp_ok(time - $began, "<", 8 * busy(), "at its time limit");
    $let_go->();
    set_clock("web", 0);
};

subtest "how long these requests took" => sub {
    my ($seconds) = $httpd->client->get("/metrics")->body
        =~ /^crmapi_request_duration_seconds_sum\{.*mount="api"\} (\S+)$/m;
    cmp_ok($seconds, ">", 0, "is not what the clock was set back by");
    cmp_ok($seconds, "<", 3600, "nor what it was set forward by");
};

subtest "11 crmapid, when the clock is set back and forth" => sub {
    my $outreach = CrmTest::Outreach->new($w);
    my $worker = worker(database => $database, env => clock_of("work"),
        conf => { $outreach->relay, lease => "3s" });
    my $beat = sub { sql($database, "SELECT extract(epoch FROM max(heartbeat_at))
        FROM crmapi.worker") // 0 };
    wait_for($beat);
    for my $seconds (-3600, 7200) {
        set_clock("work", $seconds);
        my $before = $beat->();
        ok(wait_for(sub { $beat->() > $before + 2 }, 10), "$seconds seconds: its"
            . " heart beats");
        my ($n) = 1000 + $seconds / 100;
        $outreach->start($n);
        ok(wait_for(sub { $outreach->sent_of(1) }, 20), "it sends");
        # later than two seconds: nobody is notified of it
        wait_for(sub { sql($database, "WITH later AS (UPDATE crmapi.job j
            SET run_at = now() + interval '3 s' FROM crmapi.enrollment_step s
            WHERE j.state = 'ready' AND s.sort_order = 2 AND s.id =
                (j.payload ->> 'step_id')::uuid RETURNING 1)
            SELECT count(*) FROM later") });
        ok(wait_for(sub { $outreach->sent_of(2) }, 15), "and what becomes due");
        $outreach->{count} = {};
    }
    $worker->stop;
};

subtest "13 a webhook on its way, when the clock is set" => sub {
    my $listen = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1",
        Timeout => 30 * busy());
    my $worker = worker(database => $database, env => clock_of("work"),
        conf => { webhook_private => "on" });
    my $made = sub { sql($database, "SELECT count(*)"
        . " FROM crmapi.webhook_attempt WHERE duration_ms < 60000") };
    $w->webhook("http://127.0.0.1:" . $listen->sockport, "contact.created");
    for my $seconds (-3600, 60 * 86400) {
        my $before = $made->();
        $w->contact;
        my $client = $listen->accept or die "no webhook\n";
        set_clock("work", $seconds);
        sysread $client, my $request, 65536;
        syswrite $client, "HTTP/1.1 204 Done\r\nConnection: close\r\n\r\n";
        close $client;
        ok(wait_for(sub { $made->() == $before + 1 }, 20), "$seconds seconds:"
            . " its attempt took no longer than it did");
    }
    $worker->stop;
};

done_testing;
