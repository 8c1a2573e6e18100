# SPDX-License-Identifier: Apache-2.0
# 54-health.t: the handler crmapi-health, for load balancers (contract 15.2)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use IO::Socket::INET;
use Time::HiRes qw(time);

my $slow = valgrinded() || sanitized() ? 5 : 1;

# Vhosts: the database of all tests, one of a server of our own, one without a
# schema, none that can be used.
my $good = database();
my $server = CrmTest::Postgres->start;
my $away = do { local $ENV{CRM_TEST_PG} = $server->host; database() };
my $empty = database(template => undef);
my %params = (
    away => $server->conninfo($away, $CrmTest::Postgres::API),
    empty => postgres()->conninfo($empty, $CrmTest::Postgres::API));
# a host that takes connections and answers none, before the good one
my $silent = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 50)
    or die "CrmTest: $!\n";
$params{pair} = "host=127.0.0.1," . postgres()->host . " port="
    . $silent->sockport . ",5432 dbname=$good user=$CrmTest::Postgres::API"
    . " target_session_attrs=read-write";
my $httpd = httpd(database => $good, dbd => "DBDMin 0\n", conf => <<"END");
ServerName good.example
<Location "/health">
    SetHandler crmapi-health
    Require local
</Location>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName good.example
</VirtualHost>
@{[map { <<"VHOST" } sort keys %params]}
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName $_.example
    DBDParams "$params{$_}"
</VirtualHost>
VHOST
END
workspace($httpd);

sub ask { $httpd->client(host => "$_[0].example")->request(
    $_[2] || "GET", "/health$_[1]") }

# The answer to /ready of VHOST is STATUS and WORD, and takes less than a
# second.
sub ready_is {
    my ($vhost, $status, $word, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $start = time;
    my $r = ask($vhost, "/ready");
    my $took = time - $start;

    is($r->status . " " . $r->body, "$status $word\n", $name);
    cmp_ok($took, "<", $slow * busy(), "$name: within a second");
}

# Wait until /ready of VHOST has STATUS. Return the seconds that took, or undef.
sub seconds_until {
    my ($vhost, $status) = @_;
    my $start = time;

    return wait_for(sub { ask($vhost, "/ready")->status == $status }, 20)
        ? time - $start : undef;
}

subtest "an answer" => sub {
    my $r = ask("good", "/live");
    status_is($r, 200, "/live, while httpd serves");
    is($r->body, "live\n", "a word");
    is($r->header("Content-Type"), "text/plain; charset=utf-8", "as text");
    is($r->header("Cache-Control"), "no-store", "that nobody keeps");
    ready_is("good", 200, "ready", "database and schema answer");
    $r = ask("good", "/ready", "HEAD");
    status_is($r, 200, "HEAD");
    is($r->body, "", "HEAD: no body");
    for my $method (qw(POST PUT DELETE)) {
        $r = ask("good", "/ready", $method);
        status_is($r, 405, $method);
        like($r->header("Allow"), qr/^(?=.*\bGET\b)(?=.*\bHEAD\b)(?!.*POST)/,
            "$method: Allow");
    }
    status_is(ask("good", "/other"), 404, "another name");
    status_is(ask("good", ""), 404, "none");
};

subtest "one of two hosts does not answer" => sub {
    # a check that a busy machine delays is told
    $httpd->may_log(qr/CRM130[45]: .*host=127\.0\.0\.1,/);
    ok(defined seconds_until("pair", 200), "the other one does");
};

subtest "a verdict is shared for 0.75 seconds" => sub {
    my $sessions = sub { postgres()->sql("postgres", "SELECT sessions
        FROM pg_stat_database WHERE datname = '$good'") };
    my ($before, $start) = ($sessions->(), time);

    # sessions are counted when they end
    ask("good", "/ready") for 1 .. 200;
    my $seconds = time - $start;
    my $after = $sessions->();
    cmp_ok($after - $before, "<=", 3 + $seconds / 0.75,
        "200 checks, few connections");
};

subtest "a database without a schema" => sub {
    $httpd->expect_log(qr/CRM1301: .*dbname=$empty/ => 1);
    ready_is("empty", 503, "schema", "is told of") for 1 .. 3;
    status_is(ask("empty", "/live"), 200, "while httpd is alive");
    my $client = $httpd->client(host => "empty.example", key => "svc_live_"
        . "x" x 30);
    status_is($client->get("/api/v1/agents"), 503, "and requests see the same");
    ready_is("good", 200, "ready", "the other vhost");
};

subtest "a database that was stopped" => sub {
    $httpd->may_log(qr/CRM1304: /);
    $httpd->expect_log(qr/CRM1305: .*\(.*dbname=$away/);
    ready_is("away", 200, "ready", "before");
    $server->halt;
    my $seconds = seconds_until("away", 503);
    cmp_ok($seconds // 99, "<", $slow * busy(), "is noticed within a second");
    ready_is("away", 503, "database", "the reason");
    ok($httpd->wait_log(qr/CRM1305: the database does not answer a check of it: /),
        "the log does not say that requests fail");
    status_is(ask("away", "/live"), 200, "/live");
    ready_is("good", 200, "ready", "the other vhost");
    $server->resume;
    cmp_ok(seconds_until("away", 200) // 99, "<", (1 + $slow) * busy(), "and its return");
    ok($httpd->wait_log(qr/CRM1304: .*dbname=$away/), "which is logged");
};

subtest "a database that hangs" => sub {
    ready_is("away", 200, "ready", "before");
    kill STOP => $server->{pid};
    ok(seconds_until("away", 503), "is noticed");
    ready_is("away", 503, "database", "the reason") for 1 .. 3;
    kill CONT => $server->{pid};
    ok(seconds_until("away", 200), "and its return");
};

subtest "a database that takes no more connections" => sub {
    # a new process has none, and is not ready
    plan(skip_all => "prefork has a connection for each process")
        if ($ENV{CRM_MPM} || "event") eq "prefork";
    my $sql = sub { $server->sql("postgres", @_) };
    my $client = $httpd->client(host => "away.example",
        key => "svc_live_" . "x" x 30);
    my $seen = sub {
        my ($seconds) = @_;
        my ($end, %seen) = time + $seconds;
        $seen{ask("away", "/ready")->status}++ while time < $end;
        return join ",", sort keys %seen;
    };
    # a connection for each process
    status_is($client->get("/api/v1/agents"), 401, "before") for 1 .. 20;
    $sql->("ALTER DATABASE $away CONNECTION LIMIT 0");
    is($seen->(12), 200, "is ready as long as it serves those that it has");
    $httpd->expect_log(qr/CRM1305: .*too many connections/);
    $sql->("SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = '$away'");
    ok(wait_for(sub { ask("away", "/ready")->body eq "connections\n" }, 30),
        "and not without any");
    is($seen->(2), 503, "which lasts");
    status_is($client->get("/api/v1/agents"), 503, "requests see the same");
    $httpd->may_log(qr/CRM1304: /);
    $sql->("ALTER DATABASE $away CONNECTION LIMIT -1");
    ok(seconds_until("away", 200), "until it takes some");
};
done_testing;
