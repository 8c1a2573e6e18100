#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 10-key-terms.t: limits of keys and workspaces, keys that expire, keys for some
# addresses (contract 14.5)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data qw(in_processes);
use JSON::PP ();
use POSIX qw(strftime);

my $database = database();
my $httpd = httpd(database => $database, modules => ["remoteip"],
    shows => ["server-status"], conf => <<'END');
CrmApiReadLimit 8
CrmApiWriteLimit 4
CrmApiRateLimitCeiling 900
CrmApiUnknownKeyLimit 30
RemoteIPHeader X-Client
END
# All requests on one connection: each is counted before the next one is read.
my $client = $httpd->client;

# Ask with KEY from ADDRESS.
sub ask {
    my ($key, $address, $method, $path, %more) = @_;
    return $client->request($method || "GET", $path || "/api/v1/agents", %more,
        headers => { Authorization => "Bearer $key",
            "X-Client" => $address || "192.0.2.1" });
}

# A new key of the workspace W with OPTIONS: the key and its id.
sub new_key {
    my ($w, @options) = @_;
    my $key = $w->ctl("key", "create", "--workspace", $w->id, "--name", "k",
        "--scopes", "read,write", @options);
    return ($key, ($w->key_ids)[-1]);
}

# What key list shows of the key ID of W.
sub shown {
    my ($w, $id) = @_;
    my ($row) = grep { $_->{id} eq $id } @{$w->ctl_json("key", "list",
        "--workspace", $w->id)};
    return $row;
}

# R has the limit LIMIT and REMAINING requests.
sub budget_is {
    my ($r, $limit, $remaining, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_deeply([map { join ",", $r->header("X-RateLimit-$_") }
        qw(Limit Remaining)], [$limit, $remaining], $name)
        or diag($r->text);
}

# R is the 401 of contract 3.1, and says no more.
sub unauthorized_is {
    my ($r, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    error_is($r, 401, "unauthorized", $name);
    is($r->message, "API key is missing or invalid", "$name: the message");
    is($r->header("X-RateLimit-Limit"), undef, "$name: no headers of a budget");
}

my $w = workspace($httpd);

# A key that is used up, whose limit is raised: what shared memory refuses asks
# the database twice a minute. The end of this file looks at it.
my ($used_up, $used_up_id) = new_key($w);
ask($used_up) for 1 .. 8;
is(ask($used_up)->status, 429, "the ninth of eight");
$w->ctl("key", "set", $used_up_id, "--read-limit", "20");
my $raised = time;

subtest "a key's own limits go before the virtual host's" => sub {
    my ($key, $id) = new_key($w);
    budget_is(ask($key), 8, 7, "the virtual host's");
    $w->ctl("key", "set", $id, "--read-limit", "10", "--write-limit", "2");
    budget_is(ask($key), 10, 8, "the next request has the key's, and is"
        . " counted once");
    budget_is(ask($key, undef, "DELETE", "/api/v1/contacts/" . uuid()), 2, 1,
        "writes, too");
    is(shown($w, $id)->{read_limit}, 10, "key list shows it");
    is(shown($w, $id)->{write_limit}, 2, "both");
    budget_is(ask($key), 10, 7, "so it stays");
    $w->ctl("key", "set", $id, "--read-limit", "2");
    my $r = ask($key);
    budget_is($r, 2, 0, "lowered below what is counted");
    is($r->status, 200, "the request that the old limit admitted is served");
    is(ask($key)->status, 429, "the next is not");
    $w->ctl("key", "set", $id, "--read-limit", "default");
    is(shown($w, $id)->{read_limit}, undef, "default takes it away");
};

subtest "a limit holds exactly, above and below the virtual host's" => sub {
    for my $limit (3, 12, 40) {
        my ($key) = new_key($w, "--read-limit", $limit);
        my @status = map { ask($key)->status } 1 .. $limit + 2;
        is_deeply(\@status, [(200) x $limit, 429, 429], "limit $limit");
    }
};

subtest "a limit is never above CrmApiRateLimitCeiling" => sub {
    my ($key, $id) = new_key($w, "--read-limit", "5000");
    budget_is(ask($key), 900, 899, "900 of 5000");
    is(shown($w, $id)->{read_limit}, 5000, "the key keeps its own");
};

subtest "a workspace's limits hold for its keys, a key's go before them"
    => sub {
    my $other = workspace($httpd);
    my ($own) = new_key($other, "--read-limit", "7");
    my ($key) = new_key($other);
    budget_is(ask($key), 8, 7, "the virtual host's");
    $other->ctl("workspace", "set", $other->id, "--read-limit", "30",
        "--write-limit", "9");
    budget_is(ask($key), 30, 28, "the workspace's from the next request on");
    budget_is(ask($own), 7, 6, "but the key's own");
    budget_is(ask($own, undef, "DELETE", "/api/v1/contacts/" . uuid()), 9, 8,
        "of one class");
    my ($shown) = $other->ctl_json("workspace", "show", $other->id);
    is_deeply([@$shown{qw(read_limit write_limit)}], [30, 9],
        "workspace show shows them");
    $other->ctl("workspace", "set", $other->id, "--read-limit", "default");
    budget_is(ask($key), 8, 5, "default: the virtual host's again");
    budget_is(ask($own), 7, 5, "the key's own stays");
    $other->ctl("workspace", "set", $other->id, "--write-limit", "6");
    budget_is(ask($own, undef, "DELETE", "/api/v1/contacts/" . uuid()), 6, 4,
        "that of writes alone");
    my ($apart) = new_key($w);
    budget_is(ask($apart), 8, 7, "other workspaces have their own");
};

subtest "a change costs one look-up, and loses no write" => sub {
    my ($key, $id) = new_key($w);
    my $create = sub { ask($key, undef, "POST", "/api/v1/contacts", json =>
        { bot_id => $w->agent, first_name => "Once" }) };
    my $count = sub { sql($database, "SELECT count(*) FROM crmapi.contact"
        . " WHERE first_name = 'Once'") };
    my @before = ($create->()->status, scalar $count->());
    is_deeply(\@before, [201, 1], "a contact");
    for my $limit (20 .. 22) {
        $w->ctl("key", "set", $id, "--write-limit", $limit);
        my $r = $create->();
        is($r->status, 201, "created under a new limit");
        budget_is($r, $limit, $limit - ($limit - 18), "counted once");
    }
    is($count->(), 4, "each once");
    $w->ctl("key", "set", $id, "--write-limit", "30");
    my $r = ask($key, undef, "POST", "/api/v1/contacts/upsert", json =>
        { contacts => [map { { first_name => "Many", emails =>
            ["many$_\@example.org"] } } 1 .. 3], bot_id => $w->agent });
    is($r->status, 200, "a transaction is begun again");
    is(scalar @{$r->json->{data}{created}}, 3, "and done once");
    $w->ctl("key", "set", $id, "--write-limit", "31");
    $r = $client->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "Idempotent" }, headers => { "X-Client" => "192.0.2.1",
        Authorization => "Bearer $key", "Idempotency-Key" => "k1" });
    is($r->status, 201, "with an Idempotency-Key");
};

subtest "a key is replaced without a gap: both are valid until the first is"
    . " revoked" => sub {
    my $site = workspace($httpd);
    my ($first, $id) = new_key($site);
    budget_is(ask($first), 8, 7, "the first");
    my ($second) = new_key($site);
    budget_is(ask($second), 8, 7, "the second has limits of its own");
    budget_is(ask($first), 8, 6, "the first is valid beside it");
    $site->ctl("key", "set", $id, "--expires", "2999-01-01");
    is(ask($first)->status, 200, "and until it expires");
    ok(wait_for(sub { shown($site, $id)->{last_used_at} }), "key list shows its"
        . " use");
    $site->ctl("key", "revoke", $id);
    unauthorized_is(ask($first), "revoked");
    budget_is(ask($second), 8, 6, "which does not touch the second");
};

subtest "an expired key is refused as a revoked one, at once" => sub {
    my ($key, $id) = new_key($w, "--expires", "2999-01-01",
        "--read-limit", "900");
    is(ask($key)->status, 200, "before");
    is(shown($w, $id)->{expires_at}, "2999-01-01T00:00:00.000Z",
        "key list shows it");
    # the key is in shared memory, and the clock goes on
    sql($database, "UPDATE crmapi.api_key SET expires_at = now()"
        . " + interval '1 second' WHERE id = '$id'");
    ok(wait_for(sub { ask($key)->status == 401 }, 5), "it expires by itself");
    unauthorized_is(ask($key), "expired");
    my ($refused, undef, $why) = crmapictl($database, "key", "set", $id,
        "--expires", "never");
    is($refused, 1, "it does not come back");
    like($why, qr/has expired, for good/, "which is said");
    unauthorized_is(ask($key), "still expired");
    ($key, $id) = new_key($w, "--expires", "2999-01-01", "--read-limit", "900");
    $w->ctl("key", "set", $id, "--expires", "never");
    is(ask($key)->status, 200, "one that is alive may have more time");
    my $past = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time - 1));
    for ([set => $id], [create => "--workspace", $w->id, "--name", "late",
            "--scopes", "read"]) {
        my ($code, undef, $err) = crmapictl($database, "key", @$_, "--expires",
            $past);
        is($code, 2, "key $_->[0]: a time in the past is refused");
        like($err, qr/--expires must be in the future/, "and the rule is said");
    }
    is(ask($key)->status, 200, "and changes nothing");
};

subtest "a key is good for its addresses only" => sub {
    my ($key, $id) = new_key($w, "--address",
        "198.51.100.0/24,203.0.113.7,2001:db8:1::/48");
    is_deeply(shown($w, $id)->{addresses}, ["198.51.100.0/24",
        "203.0.113.7/32", "2001:db8:1::/48"], "key list shows them");
    is(ask($key, $_)->status, 200, $_) for qw(198.51.100.0 198.51.100.255
        203.0.113.7 2001:db8:1::1 2001:db8:1:ffff::);
    is(ask($key, $_)->status, 401, "not $_") for qw(198.51.101.0 198.51.99.255
        203.0.113.6 203.0.113.8 2001:db8:2::1 2001:db8::1);
    unauthorized_is(ask($key, "192.0.2.9"), "elsewhere");
    my $stranger = ask("svc_live_" . "0" x 30, "192.0.2.9");
    my $elsewhere = ask($key, "192.0.2.9");
    is($elsewhere->body, $stranger->body, "as a key that does not exist");
    is_deeply([sort map { $_->[0] } @{$elsewhere->{headers}}],
        [sort map { $_->[0] } @{$stranger->{headers}}], "in all headers");
    like($httpd->log_text, qr/CRM1009:\ the\ key\ $id\ of\ the\ workspace\ \S+\ is
        \ refused:\ its\ addresses\ do\ not\ have\ 192\.0\.2\.9\ /x, "the log says why");
    budget_is(ask($key, "203.0.113.7"), 8, 2, "what is refused is not charged"
        . " to the key");
};

subtest "what is refused for its address asks the database once a second"
    => sub {
    my ($key) = new_key($w, "--address", "198.51.100.1");
    is(ask($key, "198.51.100.1")->status, 200, "known");
    my ($before, $start) = ($client->counter("DatabaseRequests"), time);
    my @status = map { ask($key, "192.0.2.77")->status } 1 .. 40;
    my $asked = $client->counter("DatabaseRequests") - $before;
    is_deeply(\@status, [(401) x 30, (429) x 10], "2.4: and like unknown keys,"
        . " 30 times a minute for an address");
    cmp_ok($asked, "<=", 2 + time - $start, "$asked statements for 30");
    is(ask($key, "198.51.100.1")->status, 200, "the right address is not"
        . " refused by that");
};

subtest "a change of addresses takes effect at once" => sub {
    my ($key, $id) = new_key($w, "--address", "198.51.100.2",
        "--read-limit", "900");
    is(ask($key, "198.51.100.2")->status, 200, "known");
    $w->ctl("key", "set", $id, "--address", "198.51.100.3");
    unauthorized_is(ask($key, "198.51.100.2"), "the address of before");
    ok(wait_for(sub { ask($key, "198.51.100.3")->status == 200 }, 3),
        "the new one");
    $w->ctl("key", "set", $id, "--address", "any");
    ok(wait_for(sub { ask($key, "192.0.2.88")->status == 200 }, 3), "any");
    is(shown($w, $id)->{addresses}, undef, "key list shows none");
    my @many = map { "100.0.$_.0/24" } 1 .. 32;
    $w->ctl("key", "set", $id, "--address", join(",", @many));
    unauthorized_is(ask($key, "192.0.2.88"), "32 networks, none of them");
    is(ask($key, "100.0.$_.1")->status, 200, "network $_ of 32")
        for 1, 2, 3, 31, 32;
};

subtest "bad terms: an error that names the option, and nothing changes"
    => sub {
    my ($key, $id) = new_key($w, "--read-limit", "5");
    my $before = JSON::PP->new->canonical->encode(shown($w, $id));
    for my $case (["--read-limit", "0", "-1", "x", "1000001", "", "1e3"],
        ["--write-limit", "0", "99999999999999999999"],
        ["--expires", "soon", "2027-13-01", "", "12:00"],
        ["--address", "", "x", "1.2.3.4/33", "1.2.3", "1.2.3.4,", "::1/129",
            "1.2.3.4/x", "1.2.3.4 5.6.7.8",
            join(",", map { "10.0.0.$_" } 1 .. 33)]) {
        my ($option, @values) = @$case;
        for my $value (@values) {
            my ($code, undef, $error) = crmapictl($database, "key", "set", $id,
                $option, $value);
            is($code, 2, "$option \"$value\"");
            like($error, qr/$option/, "named");
        }
    }
    is((crmapictl($database, "key", "set", $id))[0], 2, "nothing to set");
    is(JSON::PP->new->canonical->encode(shown($w, $id)), $before,
        "nothing has changed");
};

subtest "14.6 rotate: a successor with the same rights, and no 401 meanwhile"
    => sub {
    my ($key, $id) = new_key($w, "--read-limit", 900, "--write-limit", 7,
        "--address", "192.0.2.0/24", "--expires", "2099-01-31");
    my $new;
    # clients ask with the old key while it is rotated, and then with both
    my @bad = in_processes(3, sub {
        my ($n) = @_;
        if ($n == 1) {
            return [$w->ctl("key", "rotate", $id, "--overlap", "1h")];
        }
        my $own = $httpd->client;
        return [grep { $_ != 200 } map { $own->get("/api/v1/agents", headers => {
            Authorization => "Bearer $key", "X-Client" => "192.0.2.1" })->status
            } 1 .. 60];
    });
    $new = $bad[0][0];
    is_deeply([@bad[1, 2]], [[], []], "the old key is never refused");
    is(ask($new)->status, 200, "the new one is valid");
    is(ask($new, "198.51.100.1")->status, 401, "from the same networks");
    my ($old, $successor) = (shown($w, $id), shown($w, ($w->key_ids)[-1]));
    is_deeply([@$successor{qw(name scopes read_limit write_limit addresses
        expires_at)}], [@$old{qw(name scopes read_limit write_limit addresses)},
        "2099-01-31T00:00:00.000Z"], "it has the rights of the old one");
    cmp_ok($old->{expires_at}, "lt", "2099", "which ends earlier now");
    my $last = $w->ctl("key", "rotate", $successor->{id}, "--overlap", "0s");
    ok(wait_for(sub { ask($new)->status == 401 }, 5), "without an overlap it"
        . " ends at once");
    is(ask($last)->status, 200, "its successor does not");
    my ($code, undef, $error) = crmapictl($database, "key", "rotate",
        $successor->{id});
    is($code, 1, "a key that has ended has no successor");
    like($error, qr/no valid key/, "it says so");
    ($code, undef, $error) = crmapictl($database, "key", "rotate", $id,
        "--overlap", "2w");
    is($code, 2, "--overlap 2w");
    like($error, qr/--overlap must be a time/, "named");
    my (undef, $soon) = new_key($w, "--expires", my $end = strftime(
        "%Y-%m-%dT%H:%M:%S.000Z", gmtime(time + 3600)));
    (undef, undef, $error) = crmapictl($database, "key", "rotate", $soon,
        "--overlap", "2h");
    is(shown($w, $soon)->{expires_at}, $end, "an overlap gives no key more time");
    like($error, qr/the new key expires at 20.*, as the old one would have/,
        "nor its successor, which is said");
};

# On a slow machine the tests in between take longer than this: then it must be
# so at once.
my $left = $raised + 35 - time;
ok(wait_for(sub { ask($used_up)->status == 200 }, $left > 0 ? $left : 0.001),
    "a raised limit reaches a key that was used up within half a minute");

$httpd->stop;
done_testing();
