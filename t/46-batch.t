# SPDX-License-Identifier: Apache-2.0
# 46-batch.t: reads that come at the same time share a statement, and nobody can
# tell (contract 2.3, 5.5, 7.11)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Metrics;
use CrmTest::Samples;
use CrmTest::Session;
use IO::Select;
use List::Util qw(sum0);
use Time::HiRes qw(time);

my $prefork = ($ENV{CRM_MPM} || "event") eq "prefork";
my $CLIENTS = 16;
my $WAIT = 1;                   # seconds, CrmApiDatabaseWait
my $STOP_WAIT = 3;              # the same while httpd stops
my $slow = valgrinded() || sanitized() ? 10 : 1;

# One process, so that requests meet, with a thread for each client. For prefork
# a process for each.
my $database = database();
my %CONF = (database => $database, children => $prefork ? 36 : 1, threads => 40,
    unlimited => 1, shows => [qw(server-status metrics)]);
my $CONF = "MaxKeepAliveRequests 0\n";
my $httpd = httpd(%CONF, conf => $CONF);
# Each of its reads is a statement.
my $plain = httpd(%CONF, conf => "${CONF}CrmApiBatches Off\n");

my $w = workspace($httpd);
my $samples = CrmTest::Samples->new($w);
my @ids = $samples->ids("Contact");

# Clients of SERVER with each of KEYS, in turn.
sub clients {
    my ($server, @keys) = @_;
    return [map { $server->client(key => $keys[$_ % @keys], timeout => 60) }
        0 .. $CLIENTS - 1];
}

# Have CLIENTS ask for PATHS at the same time, each for one.
sub ask {
    my ($clients, @paths) = @_;

    $clients->[$_]->ask("GET", "/api/v1$paths[$_]") for 0 .. $#paths;
}

# The answers to the first COUNT of CLIENTS.
sub answers {
    my ($clients, $count) = @_;
    return map { $clients->[$_]->read_response("GET") } 0 .. $count - 1;
}

# The sum over virtual hosts of the counter NAME of SAMPLES.
sub total {
    my ($samples, $name) = @_;
    my $sum = 0;
    $sum += $samples->{$_} for grep { /^crmapi_${name}_total\b/ } keys %$samples;
    return $sum;
}

sub ask_all {
    my ($clients, @paths) = @_;
    ask($clients, @paths);
    return answers($clients, scalar @paths);
}

# Run CODE, and wait until N requests at SERVER use or wait for a connection.
sub waiting {
    my ($server, $n, $code) = @_;

    $code->();
    wait_for(sub { $n == sum0($server->client->get("/metrics")->body
        =~ /^crmapi_connections_(?:used|waiting) (\d+)$/mg) }, 30)
        or die "CrmTest: the requests do not come\n";
}

# Paths of reads of all kinds, with values that are at random.
sub pick { $_[rand @_] }
my @kinds = (
    sub { "/contacts/" . pick(@ids) },
    sub { "/contacts/" . pick(@ids, uuid()) },
    sub { "/contacts/not-an-id" },
    sub { "/contacts/by-email?email=" . pick("e\@e.example", "x\@y.example") },
    sub { "/contacts" },
    sub { "/contacts?page=" . pick(1 .. 12) . "&page_size=" . pick(1 .. 20) },
    sub { "/contacts?sort=" . pick(qw(created_at updated_at)) . "&order="
        . pick(qw(asc desc)) . "&page_size=" . pick(5 .. 20) },
    sub { "/contacts?page=1000000" },
    sub { "/contacts?search=" . pick(qw(a e abc)) },
    sub { "/contacts?tags=" . pick("a", "b", "c,d") },
    sub { "/contacts?created_after=" . pick(qw(2020-01-01T00:00:00Z
        2999-01-01T00:00:00Z 2026-06-01T00:00:00Z)) },
    sub { "/contacts/" . pick(@ids, uuid()) . "/activities" },
    sub { "/conversations?type=" . pick(qw(email sms call)) . "&page_size="
        . pick(1 .. 30) },
    sub { "/conversations/" . pick($samples->ids("Conversation")) },
    sub { "/conversations/" . pick($samples->ids("Conversation"), uuid())
        . "/messages" },
    sub { "/companies?page_size=" . pick(1 .. 60) },
    sub { "/agents" },
    sub { "/pipelines" },
    sub { "/pipelines/" . pick($samples->ids("Pipeline"), uuid()) . "/stages" },
    sub { "/contacts?page_size=0" },
);

subtest "answers are those of statements of their own" => sub {
    my ($on, $off) = map { clients($_, $w->key) } $httpd, $plain;
    my (%status, $wrong);
    my $count = $httpd->shared_by(sub {
        for my $round (0 .. 5 * @kinds - 1) {
            # two kinds at a time, so that many have the same text
            my @kind = ($kinds[$round % @kinds], pick(@kinds));
            my @paths = map { pick(@kind)->() } 1 .. $CLIENTS;
            my @got = ask_all($on, @paths);
            my @expected = ask_all($off, @paths);
            for my $i (0 .. $#paths) {
                $status{$got[$i]->status}++;
                next if $got[$i]->status == $expected[$i]->status
                    && $got[$i]->body eq $expected[$i]->body;
                same_answer($got[$i], $expected[$i], $paths[$i])
                    if $wrong++ < 5;
            }
        }
    });
    is($wrong, undef, "the same to the byte");
    is_deeply([sort keys %status], [200, 404, 422], "of all kinds");
    is($plain->client->counter("BatchedRequests"), 0, "CrmApiBatches Off: none shared");
    plan(skip_all => "prefork: a process has one request") if $prefork;
    cmp_ok($count, ">", 0, "CrmApiBatches On: $count requests did");
    my $is;                     # a request is counted after its answer
    ok(wait_for(sub { $is = samples($httpd->client->get("/metrics")->body);
        total($is, "batched_requests") == $httpd->client->counter("BatchedRequests")
    }, 10), "the metrics count them, too");
    my ($shared, $batches, $answered) = map { total($is, $_) }
        qw(batched_requests batches batched_answers);
    cmp_ok($batches, ">", 0, "and $batches statements");
    cmp_ok(2 * $batches, "<=", $shared, "each of two requests or more");
    cmp_ok($answered, "<=", $shared - $batches, "one of them had the connection");
};

subtest "a statement serves several workspaces, each with its own rows" => sub {
    my @w = ($w, map { workspace($httpd) } 1 .. 3);
    my @own = (\@ids, map { my $w = $_; [$w->import_objects([map { {
        object => "contact", bot_id => $w->agent, last_name => "Mine" } }
        1 .. 3])] } @w[1 .. 3]);
    my $clients = clients($httpd, map { $_->key } @w);
    my %owner = map { my $n = $_; map { $_ => $n } @{$own[$n]} } 0 .. $#w;
    my %bad;
    my $count = $httpd->shared_by(sub {
        for my $round (1 .. 30) {
            my @mine = map { $own[$_ % @w][$round % 3] } 0 .. $CLIENTS - 1;
            my @theirs = @mine[1 .. $#mine, 0];
            my @r = ask_all($clients, map { "/contacts/$_" } @mine);
            $bad{"own row"}++ for grep { $r[$_]->status != 200
                || $r[$_]->data->{id} ne $mine[$_] } 0 .. $#r;
            $bad{"another's row"}++ for grep { $_->status != 404 }
                ask_all($clients, map { "/contacts/$_" } @theirs);
            @r = ask_all($clients, ("/contacts?page_size=100") x $CLIENTS);
            $bad{"list"}++ for grep { my $n = $_ % @w;
                my @got = map { $_->{id} } @{$r[$_]->json->{data}};
                @got != $r[$_]->json->{pagination}{total} || !@got
                    || grep { ($owner{$_} // $n) != $n } @got } 0 .. $#r;
        }
    });
    is_deeply(\%bad, {}, "nobody sees another's row");
    cmp_ok($count, ">", 0, "$count requests shared statements")
        unless $prefork;
};

subtest "a revoked key is dead in the next request" => sub {
    my $key = $w->make_key("read", "to be revoked");
    my ($id) = ($w->key_ids)[-1];
    my $revoked = "$httpd->{dir}/revoked";
    my $child = CrmTest::Child->start(sub {
        my $clients = clients($httpd, $key);
        my %count;
        until (($count{"dead 401"} || 0) >= 50 * $CLIENTS) {
            my $dead = -e $revoked ? "dead " : "";
            $count{$dead . $_->status}++ for ask_all($clients,
                map { "/contacts/" . pick(@ids) } 1 .. $CLIENTS);
            last if ($count{"dead 200"} || 0) > 100;
            write_file("$revoked.begun", "") if ($count{200} || 0)
                > 20 * $CLIENTS && !-e "$revoked.begun";
        }
        return %count;
    });

    wait_for(sub { -e "$revoked.begun" }, 60);
    $w->ctl("key", "revoke", $id);
    write_file($revoked, "");
    my %count = $child->result;
    cmp_ok($count{200} || 0, ">", 0, "before: 200");
    is($count{"dead 401"}, 50 * $CLIENTS, "after: 401");
    is_deeply([grep { !/^(?:200|401|dead 401)$/ } keys %count], [],
        "and nothing else") or diag(explain(\%count));
};

my $LOCK = "LOCK TABLE crmapi.contact IN ACCESS EXCLUSIVE MODE";

subtest "one connection: who waits for it shares the next statement" => sub {
    plan(skip_all => "prefork: a process has one request") if $prefork;
    my $single = httpd(%CONF, conf => $CONF
        . "CrmApiDatabaseWait 60\n", dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
    my $c = $single->client(key => $w->key);
    status_is($c->get("/api/v1/contacts/$_"), 200, "warm") for @ids[0 .. 9];
    my $let_go = holding($database, $LOCK);
    my $clients = clients($single, $w->key);
    waiting($single, $CLIENTS, sub { ask($clients,
        map { "/contacts/$ids[$_]" } 0 .. $CLIENTS - 1) });
    my $count = $single->shared_by(sub {
        $let_go->();
        my @r = answers($clients, $CLIENTS);
        is_deeply([map { $_->status == 200 ? $_->data->{id} : $_->status } @r],
            [@ids[0 .. $CLIENTS - 1]], "each has its own answer");
    });
    cmp_ok($count, ">", 1, "$count of them shared statements");
    $single->stop;
};

subtest "no connection in time: 503, after no longer than the wait" => sub {
    plan(skip_all => "prefork: a process has one request") if $prefork;
    my $single = httpd(%CONF, conf => $CONF
        . "CrmApiDatabaseWait ${WAIT}s\n",
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
    $single->expect_log(qr/CRM1303: none of the 1 connections/);
    status_is($single->client(key => $w->key)->get("/api/v1/contacts/$ids[0]"),
        200, "warm");
    my $let_go = holding($database, $LOCK);
    my $first = clients($single, $w->key);
    ask($first, "/contacts/$ids[0]");
    wait_blocked($database, 1);
    my $start = time;
    my @r = ask_all(clients($single, $w->key), map { "/contacts/$_" }
        @ids[1 .. 12]);
    my $took = time - $start;
    is_deeply([map { $_->status } @r], [(503) x 12], "all get a 503");
    cmp_ok($took, ">=", $WAIT, "not before");
    cmp_ok($took, "<", $WAIT + 2 * $slow * busy(), "one wait, not one after the other");
    $let_go->();
    status_is((answers($first, 1))[0], 200, "the first is answered");
    status_is($single->client(key => $w->key)->get("/api/v1/contacts/$ids[1]"),
        200, "and the next");
    $single->stop;
};

subtest "a slow statement holds up nobody" => sub {
    plan(skip_all => "prefork: a process has one request") if $prefork;
    # only the first of these waits for the lock: the others want other tables
    my $let_go = holding($database, $LOCK);
    my $blocked = clients($httpd, $w->key);
    ask($blocked, map { "/contacts/$_" } @ids[0 .. 2]);
    wait_blocked($database, 1);
    status_is($w->client->get("/api/v1/agents"), 200, "another text");
    $let_go->();
    is_deeply([map { $_->status } answers($blocked, 3)], [(200) x 3],
        "and they are answered");
};

subtest "a backend is killed with a statement of several" => sub {
    plan(skip_all => "prefork: a process has one request") if $prefork;
    my $single = httpd(%CONF, conf => $CONF
        . "CrmApiDatabaseWait 60\n", dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
    $single->may_log(qr/CRM2001: database: (?:57P01|.*closed)/);
    my $c = $single->client(key => $w->key);
    status_is($c->get("/api/v1/contacts/$_"), 200, "warm") for @ids[0 .. 9];
    my $let_go = holding($database, $LOCK);
    my $clients = clients($single, $w->key);
    ask($clients, map { "/contacts/$ids[$_]" } 0 .. 9);
    for my $kill (1 .. 3) {
        my ($pid) = wait_blocked($database, 1);
        sql("postgres", "SELECT pg_terminate_backend($pid, 10000)");
    }
    $let_go->();
    my @r = answers($clients, 10);
    is(scalar(grep { $_->status == 200 || $_->status == 503 } @r), 10,
        "all are answered");
    my @wrong = grep { $r[$_]->status == 200 && $r[$_]->data->{id} ne $ids[$_] }
        0 .. 9;
    is_deeply(\@wrong, [], "with their own rows");
    cmp_ok(scalar(grep { $_->status == 200 } @r), ">=", 7,
        "the most with 200: each has tries of its own");
    $single->stop;
};

subtest "CrmApiRequestIdInDatabase On: each statement has its id" => sub {
    my $named = httpd(%CONF, conf => $CONF
        . "CrmApiRequestIdInDatabase On\n");
    my $clients = clients($named, $w->key);
    is($named->shared_by(sub {
        for my $round (1 .. 10) {
            ask_all($clients, map { "/contacts/" . pick(@ids) } 1 .. $CLIENTS);
        }
    }), 0, "none is shared");
    $named->stop;
};

subtest "httpd stops while requests wait" => sub {
    plan(skip_all => "prefork: a process has one request") if $prefork;
    my $single = httpd(%CONF, conf => $CONF
        . "CrmApiDatabaseWait ${STOP_WAIT}s\nGracefulShutdownTimeout 60\n",
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
    $single->expect_log(qr/CRM1303: none of the 1 connections/);
    my $clients = clients($single, $w->key);
    ask_all($clients, ("/agents") x $CLIENTS);
    my $let_go = holding($database, $LOCK);
    ask($clients, "/contacts/$ids[0]");
    wait_blocked($database, 1);
    waiting($single, $CLIENTS, sub { ask([@$clients[1 .. $CLIENTS - 1]],
        map { "/contacts/$ids[$_]" } 1 .. $CLIENTS - 1) });
    kill WINCH => $single->pid;
    my $sockets = IO::Select->new(map { $_->{socket} } @$clients);
    ok(wait_for(sub { my @r = $sockets->can_read(0); @r == $CLIENTS - 1 }, 30),
        "all but the one with the connection are answered");
    $let_go->();
    is_deeply([sort map { $_->status } answers($clients, $CLIENTS)],
        [200, (503) x ($CLIENTS - 1)], "and it, too");
    $single->stop;
};

$_->stop for $httpd, $plain;
done_testing;
