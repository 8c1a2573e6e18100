# SPDX-License-Identifier: Apache-2.0
# CrmTest/Shared.pm: hosts that share a store of budgets (contract 16.1). A host
# is an httpd with its own shared memory
package CrmTest::Shared;
use strict;
use warnings;
use Exporter qw(import);
use Test::More ();
use CrmTest ();

our @EXPORT_OK = qw(host url numbers_agree is_back ask brief admitted $LIMIT
    $PATIENT);

# Reads of a key.
our $LIMIT = 20;
# On a slow machine the store must not time out.
our $PATIENT = "timeout=10s";

my $database;   # of all hosts

# A host that uses the store at URL with OPTIONS.
sub host {
    my ($url, $options, %arg) = @_;
    $database //= CrmTest::database();
    return CrmTest::httpd(database => $database, modules => ["status"], %arg,
        conf => "CrmApiRateLimitStore $url $options\nCrmApiReadLimit $LIMIT\n"
        . "CrmApiWriteLimit 10000\nCrmApiRateLimitKeys 64\n"
        . ($arg{conf} // "") . "<Location /server-status>\n"
        . "SetHandler server-status\nRequire all granted\n</Location>\n"
        . "<Location /metrics>\nSetHandler crmapi-metrics\nRequire all granted\n"
        . "</Location>\n");
}

# The URL of a CrmTest::Redis.
sub url { "redis://127.0.0.1:" . $_[0]->port }

# The numbers of the store in mod_status and in the metrics of HOST are the same.
sub numbers_agree {
    my ($host) = @_;
    my $text = $host->client->get("/metrics")->body;
    my %name = (StoreAway => "away", StoreRequests => "requests_total",
        StoreRoundTrips => "round_trips_total", StoreAlone => "alone_total");
    Test::More::is_deeply({ map { $_ => $text =~ /^crmapi_store_$name{$_} (\d+)$/m
        ? $1 : undef } keys %name },
        { map { $_ => $host->client->counter($_) } keys %name },
        "mod_status and the metrics agree");
}

# Read once at HOST with KEY.
sub ask {
    my ($host, $key) = @_;
    return $host->client(key => $key)->get("/api/v1/agents");
}

# Whether HOST uses the store, after a write with KEY.
sub is_back {
    my ($host, $key) = @_;
    $host->client(key => $key)->delete("/api/v1/contacts/" . CrmTest::uuid());
    return !$host->client->counter("StoreAway");
}

# R in short: "200 19" is a 200 with 19 remaining.
sub brief {
    my ($r) = @_;
    return join " ", $r->status, $r->header("X-RateLimit-Remaining") // "-";
}

# Read COUNT times at HOST with KEY; how many were admitted.
sub admitted {
    my ($host, $key, $count) = @_;
    my %count;
    $count{ask($host, $key)->status}++ for 1 .. $count;
    Test::More::is_deeply([grep { $_ != 200 && $_ != 429 } keys %count], [],
        "only 200 and 429");
    return $count{200} // 0;
}

1;
