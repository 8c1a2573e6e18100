# SPDX-License-Identifier: Apache-2.0
# 10-look-ups.t: keys that the memory does not know: a valid one is never refused
# for want of look-ups, an unknown one is (contract 2.4)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Session;
use Digest::SHA qw(sha256_hex);
use IO::Select;

my $database = database();
my $w = workspace($database, twin => 0);
my $prefork = ($ENV{CRM_MPM} || "event") eq "prefork";

# A fresh server, whose addresses may have LIMIT unknown keys looked up.
sub server {
    my ($limit, %arg) = @_;
    return httpd(database => $database, modules => ["remoteip"], %arg,
        unlimited => 1, intake => 1, shows => ["metrics"], conf => <<"END");
CrmApiDatabaseWait 20s
CrmApiUnknownKeyLimit $limit
RemoteIPHeader X-Client
END
}

# How many look-ups of SERVER had RESULT so far.
sub look_ups {
    my ($server, $result) = @_;
    my ($count) = $server->client->get("/metrics")->body
        =~ /^crmapi_key_look_ups_total\{[^}]*result="$result"\} (\d+)/m;
    return $count;
}

my $keys = 0;
sub stranger { return sprintf "svc_live_%030d", ++$keys }

# COUNT new keys of the workspace, which nobody has used.
sub new_keys {
    my ($count) = @_;
    my @new = map { sprintf "svc_live_%s%024d", "valid0", ++$keys }
        1 .. $count;
    sql($database, "INSERT INTO crmapi.api_key (id, workspace_id, name,"
        . " key_hash, display) VALUES " . join ", ", map { "('" . uuid()
            . "', '" . $w->id . "', 'k', '\\x" . sha256_hex($_) . "', 'k')" }
            @new);
    sql($database, "INSERT INTO crmapi.key_home (key_hash, workspace_id)
        SELECT k.key_hash, k.workspace_id FROM crmapi.api_key k
        ON CONFLICT DO NOTHING") if CrmTest::Citus::wanted();
    return @new;
}

# Ask with KEY from ADDRESS, by CLIENT, with more HEADERS; the answer comes by reply().
sub ask {
    my ($client, $key, $address, %headers) = @_;
    return $client->ask("GET", "/api/v1/agents", key => $key, headers => {
        "X-Client" => $address // "192.0.2.1", %headers });
}
# With the MPMs worker and prefork a connection that is kept keeps its thread.
my @CLOSE = (Connection => "close");
sub reply { return $_[0]->read_response("GET")->status }
sub asked { return reply(ask(@_)) }

# How often each status is among STATUSES: "200 401".
sub counted {
    my %count;
    $count{$_}++ for @_;
    return join " ", map { "$_:$count{$_}" } sort keys %count;
}

subtest "128 connections with a valid key: one look-up, no refusal" => sub {
    my $server = server(1);
    my ($key) = new_keys(1);
    my @clients = map { $server->client(timeout => 60) } 1 .. 128;
    ask($_, $key, undef, @CLOSE) for @clients;
    is(counted(map { reply($_) } @clients), "200:128", "all are served");
    is(look_ups($server, "known"), 1, "the key was looked up once");
    is(look_ups($server, "refused"), 0, "and never refused");
    is(asked($server->client, stranger()), 401, "it was not charged");
    is(asked($server->client, stranger()), 429, "as an unknown one is");
    $server->stop;
};

subtest "500 valid keys of one address, beside unknown ones" => sub {
    my $began = time;
    my $server = server(1);
    my %attack = map { $_ => CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my @statuses;
        # a connection each: httpd ends one that is idle or has had many
        push @statuses, asked($server->client(timeout => 60),
            sprintf("svc_live_%030s", $$ . "x" . @statuses)) while $go_on->();
        return @statuses;
    }) } 1, 2;
    ok(wait_for(sub { look_ups($server, "refused") > 5 }, 60),
        "the budget of the address is used up");
    my ($first, @keys) = new_keys(501);
    ok(wait_for(sub { asked($server->client(timeout => 60), $first) == 200 },
        60),
        "it is known soon that they exist");
    my @got = in_processes(8, sub {
        my ($n) = @_;
        return [map { asked($server->client(timeout => 60), $keys[$_]) }
            grep { $_ % 8 == $n - 1 } 0 .. $#keys];
    });
    $_->stop for values %attack;
    my @strangers = map { $_->result } values %attack;
    is(counted(map { @$_ } @got), "200:500", "all are served");
    my $minutes = 1 + int((time - $began) / 60);
    my $let = grep { $_ == 401 } @strangers;
    ok($let && $let <= $minutes, "one unknown key a minute was looked up")
        or diag("$let in $minutes");
    is(counted(grep { $_ != 401 && $_ != 429 } @strangers), "",
        "all others were refused");
    is(look_ups($server, "unknown"), $let, "without a look-up");
    $server->stop;
};

subtest "500 valid keys at once, on a fresh server" => sub {
    my $server = server(60);
    my @keys = new_keys(500);
    my @clients = map { $server->client(timeout => 60) } @keys;
    ask($clients[$_], $keys[$_], undef, @CLOSE) for 0 .. $#keys;
    is(counted(map { reply($_) } @clients), "200:500", "all are served");
    is(asked($server->client, stranger()), 401, "no look-up was charged: $_")
        for 1 .. 60;
    is(asked($server->client, stranger()), 429, "unknown ones are");
    $server->stop;
};

subtest "IPv6: unknown keys of a /64 take nothing from its valid ones" => sub {
    my $server = server(2);
    my @keys = new_keys(6);
    my $c = $server->client(timeout => 60);
    is(asked($c, stranger(), "2001:db8:1:1::$_"), $_ < 3 ? 401 : 429,
        "unknown key $_") for 1 .. 4;
    is(asked($c, $keys[$_], "2001:db8:1:1::1$_"), 200, "valid key $_")
        for 0 .. 5;
    is(asked($c, stranger(), "2001:db8:1:2::1"), 401, "another /64");
    $server->stop;
};

subtest "a database that is away is charged to nobody" => sub {
    my $server = server(2);
    $server->may_log(qr/CRM1305: the database cannot be used/,
        qr/CRM2001: database: /, qr/CRM130[467]: /);
    my @keys = new_keys(3);
    my $c = $server->client(timeout => 60);
    sql("postgres", "ALTER DATABASE $database ALLOW_CONNECTIONS false");
    sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        . " WHERE datname = '$database'");
    is(asked($c, $keys[$_ % 3]), 503, "away: request $_") for 1 .. 8;
    is(asked($c, stranger()), 503, "away: an unknown key");
    sql("postgres", "ALTER DATABASE $database ALLOW_CONNECTIONS true");
    is(asked($c, $_), 200, "back: a valid key") for @keys;
    is(asked($c, stranger()), $_, "back: an unknown key") for 401, 401, 429;
    $server->stop;
};

subtest "a revoked key is an unknown one" => sub {
    my $server = server(3);
    my ($key, $used, $late) = new_keys(3);
    my $revoke = sub { sql($database, "UPDATE crmapi.api_key SET revoked_at ="
        . " now() WHERE key_hash = '\\x" . sha256_hex($_[0]) . "'") };
    my $c = $server->client(timeout => 60);
    $revoke->($key);
    is(asked($c, $key), $_, "revoked before it was used") for (401) x 3, 429;
    is(asked($c, $used, "192.0.2.2"), 200, "a valid one");
    $revoke->($used);
    # the first is no look-up, and the last is of a key that is on the roll
    is(asked($c, $used, "192.0.2.2"), $_, "revoked in use")
        for (401) x 5, 429;
    is(look_ups($server, "unknown"), 7, "so many look-ups were charged");
    # it is on the roll, and is looked up in vain once
    $revoke->($late);
    is(asked($c, $late), $_, "revoked after the roll was read") for 401,
        (429) x 5;
    is(look_ups($server, "unknown"), 8, "one more");
    $server->stop;
};

subtest "what is in flight is waited for, equal keys share it" => sub {
    plan(skip_all => "prefork has one request a process") if $prefork;
    my $server = server(1);
    my ($valid) = new_keys(1);
    my $unknown = stranger();
    my $let_go = holding($database,
        "LOCK TABLE crmapi.api_key IN ACCESS EXCLUSIVE MODE");
    my @same = map { ask($server->client(timeout => 60), $unknown) } 1 .. 5;
    wait_blocked($database, 1);
    my @others = map { ask($server->client(timeout => 60), $_) } $valid,
        stranger();
    wait_blocked($database, 2);         # the roll is read
    is((grep { IO::Select->new($_->{socket})->can_read(0.2) } @same, @others),
        0, "all wait, none is refused");
    $let_go->();
    is(counted(map { reply($_) } @same), "401:5", "one unknown key");
    is(join(" ", map { reply($_) } @others), "200 429",
        "then a valid one, and another unknown one");
    is(look_ups($server, "unknown"), 1, "one look-up of five was charged");
    $server->stop;
};

subtest "intake tokens" => sub {
    my $server = server(1);
    my @tokens = map { $w->token("t$_") } 1 .. 3;
    my $post = sub { $server->client(key => $_[0])->post(
        "/crmapi/intake/v1/events", [])->status };
    is($post->(sprintf "svc_in_%030d", $_), $_ == 1 ? 401 : 429,
        "unknown token $_") for 1, 2;
    isnt($post->($_), 429, "a valid one") for @tokens;
    is($post->($tokens[0]), $post->($tokens[1]), "all get the same answer");
    $server->stop;
};

done_testing;
