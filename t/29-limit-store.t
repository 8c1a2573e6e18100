#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 29-limit-store.t: one budget for all hosts (contract 16.1). A host is an httpd
# with its own shared memory
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Redis;
use CrmTest::Shared qw(host url ask brief admitted $LIMIT $PATIENT);
use List::Util qw(max min);

my $redis = CrmTest::Redis->new;
my $driver = "$CrmTest::BUILD{DIR}/t/unit/store_driver";
my $INTAKE = "CrmApiIntake On\nCrmApiIntakeLimit 4\n";
my @hosts = map { host(@$_[0, 1], conf => $INTAKE, @$_[2 .. $#$_]) }
    [url($redis), $PATIENT], ["unix:" . $redis->socket, $PATIENT],
    [url($redis), $PATIENT, mpm => "prefork"];

subtest "4.1, 16.1 hosts share a budget" => sub {
    my $w = workspace($hosts[0]);
    my $key = $w->make_key("read,write");
    my @r = map { ask($hosts[$_ % 3], $key) } 0 .. $LIMIT;
    is_deeply([map { brief($_) } @r], [(map { "200 " . ($LIMIT - $_) }
        1 .. $LIMIT), "429 0"], "hosts in turn: remaining counts down");
    error_is($r[-1], 429, "rate_limited", "one more");
    my $wait = $r[-1]->header("Retry-After");
    ok($wait >= 50 && $wait <= 60, "4.3 Retry-After: $wait");
    my %reset = map { $_->header("X-RateLimit-Reset") => 1 } @r;
    cmp_ok(max(keys %reset) - min(keys %reset), "<=", 1,
        "4.2 the reset is that of the oldest request, wherever it was");
    is(ask($_, $key)->status, 429, "refused by each host") for @hosts;
    is($hosts[1]->client(key => $key)->delete("/api/v1/contacts/" . uuid())
        ->status, 404, "4.1 writes have a budget of their own");
    is(brief(ask($hosts[2], $w->make_key("read"))), "200 " . ($LIMIT - 1),
        "4.1 another key has a budget of its own");
};

subtest "16.1 hosts share the budget of an intake token" => sub {
    my $w = workspace($hosts[0]);
    my $token = $w->token("backend");
    my @status = map { $hosts[$_ % 3]->client(key => $token)
        ->post("/crmapi/intake/v1/events", [])->status } 0 .. 6;
    is_deeply([map { $_ == 429 ? 429 : "taken" } @status],
        [("taken") x 4, (429) x 3], "4 at three hosts") or diag("@status");
    ok(!grep({ $_ == 401 } @status), "the token is known");
};

subtest "4.1, 16.1 many clients at many hosts: exactly the limit" => sub {
    my $w = workspace($hosts[0]);
    my @jobs = map { my $host = $hosts[$_ % 3]; CrmTest::Child->start(sub {
        my $c = $host->client(key => $w->key);
        my %count;
        $count{$c->get("/api/v1/agents")->status}++ for 1 .. 20;
        return \%count;
    }) } 1 .. 9;
    my %sum;
    for my $job (@jobs) {
        my ($count) = $job->result;
        $sum{$_} += $count->{$_} for keys %$count;
    }
    is_deeply(\%sum, { 200 => $LIMIT, 429 => 180 - $LIMIT },
        "of 180 requests exactly $LIMIT are admitted");
};

subtest "16.1 clocks of hosts do not matter" => sub {
    plan(skip_all => "plain builds only: sanitizers are preloaded, too")
        if sanitized() || valgrinded();
    # a clock that is 10 minutes late
    my $library = library("set_clock", $redis->dir);
    write_file($redis->dir . "/clock", "-600\n");
    my $late = host(url($redis), $PATIENT, env => { LD_PRELOAD => $library,
        CRM_CLOCK => $redis->dir . "/clock" });
    my $w = workspace($hosts[0]);
    my @r = map { ask($_ % 2 ? $late : $hosts[0], $w->key) } 0 .. $LIMIT;
    is_deeply([map { brief($_) } @r], [(map { "200 " . ($LIMIT - $_) }
        1 .. $LIMIT), "429 0"], "one budget");
    unlike($r[1]->header("Date"), qr/^\Q@{[substr $r[0]->header("Date"), 0,
        22]}\E/, "the hosts have other times");
    my @reset = map { $_->header("X-RateLimit-Reset") } @r;
    cmp_ok(max(@reset) - min(@reset), "<=", 1,
        "4.2 they tell the same time of reset: that of the store");
    cmp_ok(abs($reset[1] - time - 60), "<=", 10, "which is right");
    is(ask($late, $w->key)->header("X-RateLimit-Reset"), $reset[-1],
        "also if the host knows by itself");
    $late->stop;
};

subtest "16.1 a host that knows of a used budget does not ask" => sub {
    my $w = workspace($hosts[0]);
    is(admitted($hosts[0], $w->key, $LIMIT), $LIMIT, "used at one host");
    my @before = map { $_->client->counter("StoreRequests") } @hosts;
    is(admitted($_, $w->key, 10), 0, "refused") for @hosts;
    my @asked = map { $hosts[$_]->client->counter("StoreRequests") - $before[$_] }
        0 .. 2;
    is_deeply(\@asked, [0, 1, 1], "each other host asked once")
        or diag("@asked");
    cmp_ok($hosts[1]->client->counter("ReadsRefused"), ">=", 10, "refusals count");
};

subtest "16.1 a read that the store refuses after it was served" => sub {
    my $w = workspace($hosts[0]);
    my $id = $w->client->post("/api/v1/contacts", { bot_id => $w->agent })
        ->data->{id};
    my %path = (GET => "/api/v1/contacts/$id", HEAD => "/api/v1/contacts/$id",
        "list" => "/api/v1/contacts?cursor=*&page_size=1",
        "unknown path" => "/api/v1/none", "bad parameter" =>
        "/api/v1/contacts?page_size=x");
    for my $what (sort keys %path) {
        my $key = $w->make_key("read");
        is(admitted($hosts[0], $key, $LIMIT), $LIMIT, "used at one host");
        my $c = $hosts[1]->client(key => $key);
        my $r = $what eq "HEAD" ? $c->head($path{$what})
            : $c->get($path{$what});
        status_is($r, 429, $what);
        is($r->header($_), undef, "$what: no $_ of what was read")
            for qw(ETag Link);
        is($r->header("X-RateLimit-Remaining"), 0, "the budget is used");
        unlike($r->body, qr/"data"/, "nothing of what was read");
    }
};

subtest "16.1 reads at once, of which the store refuses all" => sub {
    my $w = workspace($hosts[0]);
    my @clients = map { $hosts[1]->client(timeout => 60) } 1 .. 12;
    my %count;
    for (1 .. 10) {
        my $key = $w->make_key("read");
        admitted($hosts[0], $key, $LIMIT);
        $_->ask("GET", "/api/v1/contacts", key => $key) for @clients;
        $count{$_->read_response("GET")->status}++ for @clients;
    }
    is_deeply(\%count, { 429 => 120 }, "no one answers for another")
        or diag(explain(\%count));
};

subtest "16.1 a write that the store refuses is not done" => sub {
    my $w = workspace($hosts[0]);
    my $key = $w->make_key("read,write");
    $w->ctl("workspace", "set", $w->id, "--write-limit", 2);
    my $write = sub { $_[0]->client(key => $key)->post("/api/v1/contacts",
        { bot_id => $w->agent }) };
    my $before = count_rows($w, "contact");
    is_deeply([map { $write->($hosts[0])->status } 1 .. 2], [201, 201],
        "used at one host");
    is($write->($_)->status, 429, "refused by another") for @hosts[1, 2];
    is(count_rows($w, "contact") - $before, 2, "and two were written");
};

subtest "2.3, 16.1 a used budget of a revoked key" => sub {
    my $w = workspace($hosts[0]);
    is(ask($hosts[1], $w->key)->status, 200, "the other host knows the key");
    is(admitted($hosts[0], $w->key, $LIMIT), $LIMIT - 1, "used at one host");
    $w->ctl("key", "revoke", $w->key_ids);
    is(ask($hosts[1], $w->key)->status, 401, "401 goes before 429");
};

subtest "16.1 what is in the store" => sub {
    my $w = workspace($hosts[0]);
    $redis->run("FLUSHALL");
    ask($hosts[0], $w->key);
    my ($id) = $w->key_ids;
    is($redis->run("KEYS", "*"), "crmapi:r:$id",
        "the id of the key, and nothing of the key or the workspace");
    my $left = $redis->run("PTTL", "crmapi:r:$id");
    ok($left > 60_000 && $left <= 120_000, "it expires by itself: $left ms");
    my $script = read_file("$CrmTest::TOP/mod_crmapi/shared/crm_store.lua");
    my $charge = sub { $redis->run("EVAL", $script, 1, "k", $_[0], 1);
        $redis->run("PTTL", "k") };
    cmp_ok($charge->(5), ">", 60_000, "any window does");
    cmp_ok($charge->(50), ">", 60_000, "also one whose limit is raised");
    # a second before requests would be forgotten that still count
    for my $case ([60_500, 1], [70_000, ""]) {
        my ($ms, $renewed) = @$case;
        $redis->run("EVAL", "redis.call('SETRANGE', KEYS[1], 48, struct.pack('>d',"
            . " (redis.call('TIME')[1] * 1000 + ARGV[1]) * 1000)) redis.call("
            . "'PEXPIRE', KEYS[1], ARGV[1])", 1, "k", $ms);
        is($charge->(50) > 100_000, $renewed, "one that has $ms ms: renewed, or not");
    }
    $redis->run("DEL", "k");
    my $size = 0;
    for my $limit (120, 60) {
        my ($code, $out, $err) = run_program(command => [$driver, "load",
            url($redis), 1, 1, 4, 1, $limit, 1, 1000]);
        is($code, 0, "a window of $limit requests") or diag($out, $err);
        $size += $redis->run("MEMORY", "USAGE", "driver:r:0-0000-0000");
        $redis->run("DEL", "driver:r:0-0000-0000");
    }
    cmp_ok($size, "<=", 2048, "reads and writes at the default limits"
        . " together: at most 2 kB ($size)");
};

subtest "16.1 the script is loaded again" => sub {
    my $w = workspace($hosts[0]);
    is(brief(ask($hosts[0], $w->key)), "200 " . ($LIMIT - 1), "one");
    $redis->run("SCRIPT", "FLUSH");
    is(brief(ask($hosts[$_], $w->key)), "200 " . ($LIMIT - 2 - $_),
        "no request is lost") for 0 .. 2;
    is($hosts[0]->client->counter("StoreAway"), 0, "the store is used");
};

subtest "16.1 a flushed store: no host admits more than the limit" => sub {
    my $w = workspace($hosts[0]);
    is(admitted($hosts[0], $w->key, 15), 15, "15 of $LIMIT");
    $redis->run("FLUSHALL");
    is(admitted($hosts[0], $w->key, $LIMIT), $LIMIT - 15,
        "the host still counts them");
};

subtest "4.1 the window on the store is that of shared memory" => sub {
    my ($code, $out, $err) = run_program(command => [$driver, "script",
        $redis->socket, 20_000]);
    is($code, 0, "random requests: same decisions, remaining and reset; and a"
        . " clock that goes back forgives nothing") or diag($out, $err);
    note($out);
};

subtest "4.1, 16.1 3 hosts, 2 processes, 8 threads: exactly the limit" => sub {
    my ($code, $out, $err) = run_program(command => [$driver, "load",
        url($redis), 3, 2, 8, 10, 120, 4, 48_000]);
    is($code, 0, "the hosts end well") or diag($err);
    my %count;
    $count{$1}++ while $out =~ /^(\d+) \d+$/mg;
    is_deeply(\%count, { map { $_ => 120 } 0 .. 9 },
        "of 4,800 requests of each key in 4 s 120 are admitted");
    my %total = $out =~ /(\w+) (\d+)/g if $out =~ s/^.*totals //s;
    is($total{admitted}, 1200, "as the hosts say");
    is($total{alone}, 0, "all by the store");
    is($total{wrong}, 0, "no request is refused while there is room");
    cmp_ok($total{asked}, "<", 1200 + 10 * 3 * 16,
        "each host asks until it knows: $total{asked}");
    note($out);
};

# --- the directive ----------------------------------------------------------

subtest "the directive says what is wrong" => sub {
    my $dir = $redis->dir;
    write_file("$dir/open", "secret\n");
    chmod 0644, "$dir/open";
    write_file("$dir/empty.pem", "");
    for my $case (
            ["", qr/takes a URL and options/],
            ["http://one", qr/the URL: it must begin with redis:/],
            ["redis://::1:6379", qr/the URL: an IPv6 address must be in brackets/],
            ["redis://one:x", qr/the URL: the port must be a number/],
            ["redis://me:$dir/none\@one", qr/the password file: No such file/],
            ["redis://me:$dir/open\@one", qr/must not be accessible to other/],
            ["redis://one timeout=0", qr/timeout=0: it must be a time/],
            ["redis://one timeout=11s", qr/timeout=11s: it must be a time/],
            ["redis://one prefix=a/b", qr/prefix=a\/b: it must have 1 to 64/],
            ["redis://one ca=ca.pem", qr/ca=ca.pem: it needs a rediss:/],
            ["redis://one other=1", qr/other=1: options are ca=, prefix=/],
            ["rediss://127.0.0.1 ca=$dir/empty.pem",
                qr/CRM1408: .*the file has no certificates/],
            ["rediss://127.0.0.1 ca=$dir/none.pem", qr/CRM1408: .*none\.pem: No such file/]) {
        my ($text, $expected) = @$case;
        my $bad = httpd(no_start => 1, conf => "CrmApiRateLimitStore $text\n");
        my ($code, $words) = $bad->run("-t");
        isnt($code, 0, "httpd does not start: $text");
        like($words, $expected, "and says why");
    }
    my $bad = httpd(no_start => 1, conf => <<'END');
<VirtualHost *:1>
CrmApiRateLimitStore redis://one
</VirtualHost>
END
    like(($bad->run("-t"))[1], qr/cannot occur within <VirtualHost>/,
        "it is for the whole server");
};

done_testing;
