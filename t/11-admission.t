#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 11-admission.t: refused requests cost the database nothing (contract 2.3, 2.4,
# 4.5)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;

my $database = database();
my $LIMIT = 5;                  # look-ups of an address
my $httpd = httpd(database => $database, modules => ["remoteip"],
    shows => ["server-status"], conf => <<"END");
CrmApiReadLimit 3
CrmApiMcp On
CrmApiUnknownKeyLimit $LIMIT
RemoteIPHeader X-Client
END

# All requests on one connection: each is counted before the next one is read.
my $client = $httpd->client;

# A key that nobody has.
my $keys = 0;
sub stranger { return sprintf "svc_live_%030d", ++$keys }

# Ask with KEY from ADDRESS.
sub ask {
    my ($key, $address, $path) = @_;
    return $client->get($path || "/api/v1/agents", headers => {
        Authorization => "Bearer $key", "X-Client" => $address });
}

# R is the 429 of contract 2.4.
sub too_many_look_ups {
    my ($r, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    error_is($r, 429, "rate_limited", $name);
    like($r->header("Retry-After") // "", qr/^([1-9]|[1-5]\d|60)$/,
        "$name: with Retry-After");
    is($r->header("X-RateLimit-Limit"), undef,
        "$name: without the headers of a key's budget");
}

subtest "2.3 429, and 404 and 405 of what does not exist, need no database"
    => sub {
    my $w = workspace($httpd);
    my $key = $w->make_key("read,write");
    my $ask = sub { ask($key, "192.0.2.1", @_) };
    status_is($ask->("/api/v1/agents"), 200, "the key becomes known");
    my $before = $client->counter("DatabaseRequests");
    error_is($ask->("/api/v1/none"), 404, "not_found", "no such path");
    error_is($client->request("PUT", "/api/v1/contacts", headers => {
        Authorization => "Bearer $key" }, json => {}), 405,
        "method_not_allowed", "no such method");
    status_is($ask->("/api/v1/agents"), 200, "the last one of the budget");
    error_is($ask->("/api/v1/agents"), 429, "rate_limited", "one too many")
        for 1 .. 5;
    is($client->counter("DatabaseRequests") - $before, 1,
        "the database saw the 200 only");
    status_is($ask->("/api/v1/none"), 429, "the budget goes before the path");
};

subtest "2.4 an address may have so many unknown keys looked up" => sub {
    my $w = workspace($httpd);
    my $known = $w->make_key("read");
    my $fresh = $w->make_key("read");
    status_is(ask($known, "192.0.2.2"), 200, "a key that becomes known");
    my $before = $client->counter("DatabaseRequests");
    for my $n (1 .. $LIMIT) {
        error_is(ask(stranger(), "192.0.2.2"), 401, "unauthorized",
            "look-up $n of $LIMIT");
    }
    too_many_look_ups(ask(stranger(), "192.0.2.2"), "one more") for 1 .. 5;
    is($client->counter("DatabaseRequests") - $before, $LIMIT,
        "the database saw no look-up beyond the limit");
    status_is(ask($fresh, "192.0.2.2"), 200, "a good key, not yet known, is"
        . " never refused by this");
    too_many_look_ups(ask(stranger(), "192.0.2.2"), "an unknown one still is");
    status_is(ask($known, "192.0.2.2"), 200,
        "a known key is not refused by this");
    error_is(ask("svc_live_malformed", "192.0.2.2"), 401, "unauthorized",
        "what cannot be a key needs no look-up");
    status_is(ask($fresh, "192.0.2.3"), 200, "another address has its own");
};

subtest "2.4 IPv6: a /64 is one address" => sub {
    error_is(ask(stranger(), "2001:db8:1:1::$_"), 401, "unauthorized",
        "look-up $_") for 1 .. $LIMIT;
    too_many_look_ups(ask(stranger(), "2001:db8:1:1:ffff::1"), "one more");
    error_is(ask(stranger(), "2001:db8:2:2::1"), 401, "unauthorized",
        "another /64");
};

subtest "2.3 a revoked key gets 401 within a minute, whatever it asks" => sub {
    my $w = workspace($httpd);
    my $mcp = CrmTest::Mcp->new($client);
    my %asks = (
        "more than it may" => [429, sub { ask($_[0], "192.0.2.4") }],
        "for no path" => [404, sub { ask($_[0], "192.0.2.4", "/api/v1/none") }],
        "by no method" => [405, sub { $client->request("PUT", "/api/v1/agents",
            body => "{}", key => $_[0]) }],
        "MCP by no method" => [404, sub { $mcp->call("none", {}, key => $_[0]) }],
        "MCP no JSON" => [400, sub { $mcp->call("ping", {}, body => "{",
            key => $_[0]) }],
        "MCP by a form" => [415, sub { $mcp->call("ping", {}, key => $_[0],
            headers => { "Content-Type" => "text/plain" }) }],
    );
    my (%key, %seen);
    my $addresses = 0;
    for my $name (sort keys %asks) {
        $key{$name} = $w->make_key("write", $name);
        sql($database, "UPDATE crmapi.api_key SET read_limit = 1000000,
            write_limit = 1000000 WHERE name = '$name'") if $asks{$name}[0] != 429;
        status_is(ask($key{$name}, "192.0.2.4"), 200, "$name: it lives") for 1 .. 3;
        $w->ctl("key", "revoke", scalar sql($database, "SELECT id FROM crmapi.api_key
            WHERE name = '$name'"));
    }
    ok(wait_for(sub {
        for my $name (grep { !$seen{$_}{401} } sort keys %asks) {
            $seen{$name}{$asks{$name}[1]->($key{$name})->status}++;
        }
        return !grep { !$seen{$_}{401} } keys %asks;
    }, 60), "401 after a while");
    for my $name (sort keys %asks) {
        is_deeply([sort keys %{$seen{$name}}], [sort 401, $asks{$name}[0]],
            "$name: and nothing else before");
        error_is(ask($key{$name}, "198.51.100." . ++$addresses), 401, "unauthorized",
            "for good");
    }
};

subtest "2.3 a database that is away: refusals stay what they are" => sub {
    my $w = workspace($httpd);
    my $key = $w->make_key("read");
    status_is(ask($key, "192.0.2.5"), 200, "request $_") for 1 .. 3;
    sql("postgres", "ALTER DATABASE $database ALLOW_CONNECTIONS false");
    sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        . " WHERE datname = '$database'");
    error_is(ask($key, "192.0.2.5"), 429, "rate_limited", "over the limit");
    sql("postgres", "ALTER DATABASE $database ALLOW_CONNECTIONS true");
    my $refused = sub { $client->counter("LookUpsRefused") };
    ok(wait_for(sub { $refused->() == 7 }),     # each after its answer
        "mod_status counts the look-ups that were refused") or diag($refused->());
};

done_testing;
