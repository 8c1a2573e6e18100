#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 19-deadlines.t: no statement runs for longer than its timeout (contract 8;
# specification: retry 5xx)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(time);

my $database = database();
my $httpd = httpd(database => $database, children => 1,
    unlimited => 1, conf => "CrmApiDatabaseTimeout 1s\n");
my $w = workspace($httpd);
my $c = $w->client(timeout => 60);
my $slack = $ENV{CRM_VALGRIND} ? 60 : 10;   # seconds: machines differ

# R is a 503 that came after the timeout.
sub timed_out {
    my ($r, $start, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $took = time - $start;
    unavailable_is($r, $name);
    cmp_ok($took, ">=", 0.95, "$name: not before the timeout");
    cmp_ok($took, "<", 1 + $slack, "$name: and soon after it");
}

# Sessions of the API's role in $database, but for CONDITION.
sub sessions {
    my ($condition) = @_;
    return map { $_->[0] } sql("postgres", "SELECT pid FROM pg_stat_activity"
        . " WHERE datname = '$database' AND usename = 'crmapi_site'"
        . " AND $condition ORDER BY pid");
}

# Hold what SQL locks in a session of its own; the code returned lets go.
sub holding {
    my ($sql) = @_;
    my $name = "t19-" . uuid();
    open(my $in, "|-", "psql", "-X", "-q", "-o", "/dev/null", "-v",
        "ON_ERROR_STOP=1", "-d", postgres()->conninfo($database, "postgres")
        . " application_name=$name") or die $!;
    $in->autoflush(1);
    print $in "BEGIN; $sql; SELECT 'held';\n";
    wait_for(sub { sql("postgres", "SELECT count(*) FROM pg_stat_activity"
        . " WHERE application_name = '$name'"
        . " AND state = 'idle in transaction' AND query LIKE '%held%'") })
        or die "CrmTest: no lock\n";
    return sub { close $in };
}

my $contact = $c->post("/api/v1/contacts", { bot_id => $w->agent,
    first_name => "Anna" })->data->{id};

subtest "a statement that waits for a lock" => sub {
    my $let_go = holding("LOCK TABLE crmapi.contact");
    $httpd->expect_log(qr/CRM2005: database: no answer within 1000 ms/);
    my $start = time;
    timed_out($c->get("/api/v1/contacts/$contact"), $start, "a read");
    ok(wait_for(sub { !sessions("state <> 'idle'") }),
        "the statement does not go on");
    $start = time;
    timed_out($c->patch("/api/v1/contacts/$contact", { notes => "lost" }),
        $start, "a write");
    $start = time;
    timed_out($c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ["never\@example.com"] }] }), $start,
        "two round trips in a transaction");
    ok(wait_for(sub { !sessions("state <> 'idle'") }),
        "nothing of them goes on");
    $let_go->();
    is($c->get("/api/v1/contacts/$contact")->data->{notes}, undef,
        "what was cancelled has changed nothing");
    is($c->get("/api/v1/contacts")->json->{pagination}{total}, 1,
        "and made nothing");
};

subtest "a server that is stopped" => sub {
    my ($pid) = sessions("true");
    kill STOP => sessions("true");
    my $start = time;
    my $r = $c->get("/api/v1/contacts/$contact");
    kill CONT => sessions("true");
    timed_out($r, $start, "a read");
    is($c->get("/api/v1/contacts/$contact")->data->{first_name}, "Anna",
        "it is served over a new connection");
    ok(wait_for(sub { !grep { $_ == $pid } sessions("true") }),
        "and the old one is gone");
};

subtest "a server that takes connections and never answers" => sub {
    my $mute = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 0,
        Listen => 16, Proto => "tcp") or die $!;
    my $start = time;
    my ($code, $out, $err) = crmapictl(undef, { env => { CRMAPI_DATABASE =>
        "host=127.0.0.1 port=" . $mute->sockport . " dbname=none user=none"
        . " connect_timeout=2" } }, "workspace", "list");
    is($code, 1, "crmapictl gives up");
    like($err, qr/CRM2001: database: .*timeout expired/, "and says why");
    cmp_ok(time - $start, "<", 2 + $slack, "after connect_timeout");
};

subtest "a client that has gone" => sub {
    # so long that a statement which ends was cancelled for another reason
    my $patient = httpd(database => $database, children => 1,
        conf => "CrmApiReadLimit 0\nCrmApiDatabaseTimeout 10min\n");
    my $path = "/api/v1/contacts/$contact";
    # Send a request, and return its client when the statement waits.
    my $ask = sub {
        my ($method, $body) = @_;
        my $client = $w->client(port => $patient->port)->ask($method, $path,
            body => $body);
        wait_for(sub { sessions("wait_event_type = 'Lock' AND query ~"
            . ($method eq "PATCH" ? "'UPDATE'" : "'^SELECT'")) })
            or die "no statement of $method\n";
        return $client;
    };
    for my $how ("closed", "reset") {
        my $let_go = holding("LOCK TABLE crmapi.contact");
        my $reader = $ask->("GET");
        setsockopt($reader->{socket}, SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))
            if $how eq "reset";
        $reader->close;
        ok(wait_for(sub { !sessions("state <> 'idle'") }),
            "$how: its read is cancelled");
        $let_go->();
    }
    ok($patient->wait_log(qr/CRM2008: database: nobody wants the answer/),
        "which is logged");
    my $let_go = holding("LOCK TABLE crmapi.contact");
    my $writer = $ask->("PATCH", '{"notes":"kept"}');
    my $reader = $ask->("GET");
    $_->close for $writer, $reader;
    ok(wait_for(sub { sessions("state <> 'idle'") == 1 }),
        "the read ends, the write goes on");
    $let_go->();
    ok(wait_for(sub { ($c->get($path)->data->{notes} // "") eq "kept" }),
        "and is done");
    status_is($w->client(port => $patient->port)->get($path), 200,
        "the connection is used again");
};

subtest "crmapictl" => sub {
    my $let_go = holding("LOCK TABLE crmapi.workspace");
    my $start = time;
    my ($code, $out, $err) = crmapictl($database, "workspace", "list",
        "--timeout", 1);
    is($code, 1, "--timeout ends a statement");
    like($err, qr/CRM2005: database: no answer within 1000 ms/,
        "with the reason");
    cmp_ok(time - $start, "<", 1 + $slack, "in time");
    $let_go->();
    for my $value ("-1", "x", "86401") {
        ($code, $out, $err) = crmapictl($database, "workspace", "list",
            "--timeout=$value");
        is($code, 2, "--timeout $value is refused");
        like($err, qr/--timeout must be a number from 0 to 86400/,
            "with the range");
    }
};

done_testing;
