# SPDX-License-Identifier: Apache-2.0
# 30-workspace.t: GET /workspace: a key's workspace and the key (contract 20.6)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $database = database();
my $httpd = httpd(database => $database, conf => "CrmApiReadLimit 700\n"
    . "CrmApiWriteLimit 0\nCrmApiRateLimitCeiling 5000\n");
my $w = workspace($httpd, plan => "pro");
my $c = $w->client;

# The workspace that CLIENT is told.
sub shown {
    my ($client) = @_;
    my $r = $client->get("/api/v1/workspace");

    status_is($r, 200, "GET /workspace");
    return $r->data;
}

subtest "20.6 the workspace" => sub {
    my $shown = shown($c);
    my ($name, $slug) = sql($database, "SELECT name || '|' || slug FROM"
        . " crmapi.workspace WHERE id = '" . $w->id . "'") =~ /^(.*)\|(.*)$/;

    is_deeply([@$shown{qw(id name slug plan time_zone currency events)}],
        [$w->id, $name, $slug, "pro", "UTC", undef, false], "as it is");
    $w->ctl("workspace", "set", $w->id, "--currency", "EUR", "--name",
        "Büro \"Nord\"", "--events", "on", "--time-zone", "Europe/Berlin");
    is_deeply([@{shown($c)}{qw(name time_zone currency events)}],
        ["Büro \"Nord\"", "Europe/Berlin", "EUR", true], "and as it is set");
    like($w->ctl("workspace", "show", $w->id), qr/^currency\s+EUR$/m,
        "workspace show");
    like($w->ctl("workspace", "show", $w->id), qr/^time_zone\s+Europe\/Berlin$/m,
        "with its time zone");
    for my $bad ("Mars/One", "europe/berlin", "UTC+1", "") {
        my ($code, undef, $err) = crmapictl($database, "workspace", "set",
            $w->id, "--time-zone", $bad);
        is($code, 2, "--time-zone '$bad'");
        like($err, qr/time zone such as Europe/, "and why");
    }
    $w->ctl("workspace", "set", $w->id, "--currency", "none");
    is(shown($c)->{currency}, undef, "none again");
    for my $bad ("eur", "EURO", "E1R", "") {
        my ($code) = crmapictl($database, "workspace", "set", $w->id,
            "--currency", $bad);
        is($code, $bad eq "" ? 0 : 2, "--currency '$bad'");
    }
};

subtest "20.6 the key, and its limits as X-RateLimit has them" => sub {
    my $key = $w->make_key("read");
    my $reader = $c->with_key($key);
    my $r = $reader->get("/api/v1/workspace");
    my $shown = $r->data;
    my $id = sql($database, "SELECT id FROM crmapi.api_key WHERE key_hash ="
        . " sha256('$key')");

    is_deeply([@{$shown->{key}}{qw(id scopes expires_at)}],
        [$id, ["read"], undef], "its id and scopes; it does not expire");
    is($shown->{key}{name}, sql($database, "SELECT name FROM crmapi.api_key"
        . " WHERE id = '$id'"), "and its name");
    is_deeply($shown->{limits}, { read => 700, write => undef },
        "the virtual host's limits; null: unlimited");
    is($r->header("X-RateLimit-Limit"), 700, "as the header says");
    $w->ctl("key", "set", $id, "--read-limit", 20, "--write-limit", 9000,
        "--expires", "2099-01-31T12:00:00Z");
    $r = $reader->get("/api/v1/workspace");
    is_deeply($r->data->{limits}, { read => 20, write => 5000 },
        "its own, never above the ceiling (14.6)");
    is($r->header("X-RateLimit-Limit"), 20, "as the header says");
    is($r->data->{key}{expires_at}, "2099-01-31T12:00:00.000Z", "its expiry");
    is_deeply(shown($c)->{key}{scopes}, ["read", "write"],
        "a key that writes");
    unlike($r->body, qr/\Q$key\E|hash|\Q@{[substr($key, -6)]}\E/,
        "9.3 nothing of the key itself");
};

subtest "a key sees its own workspace only" => sub {
    my $twin = $httpd->client(key => $w->twin->make_key("read"),
        headers => { "X-Crm-Twin" => 1 });

    is($twin->get("/api/v1/workspace")->data->{id}, $w->twin->id,
        "the other's");
    is(shown($c)->{id}, $w->id, "and this one's");
    error_is($c->get("/api/v1/workspace", key => undef), 401, "unauthorized",
        "without a key");
    error_is(workspace($httpd, plan => "starter", seed => 0)->client
        ->get("/api/v1/workspace"), 403, "forbidden", "a plan without API");
    error_is($c->post("/api/v1/workspace", {}), 405, "method_not_allowed",
        "it is read only");
};

$httpd->stop;
done_testing;
