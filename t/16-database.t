# SPDX-License-Identifier: Apache-2.0
# 16-database.t: a database that is missing, slow, restarted, full (contract
# 3.2, 5.5, 10.5; specification: retry 5xx)
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Proxy;
use CrmTest::Session;
use IO::Select;
use Time::HiRes qw(time sleep);

my $database = database();
# What was answered is there after a crash of the server (the tests' server
# otherwise waits for no commit).
sql("postgres", "ALTER DATABASE $database SET synchronous_commit = on");
my $prefork = ($ENV{CRM_MPM} || "event") eq "prefork";
# What is said while there is no database: CRM1305 if a connection could not be
# made, which hangs on the moment. t/16-outage.t counts the lines.
my $AWAY = qr/CRM1305: the database cannot be used/;

sub admin { sql("postgres", $_[0]) }

sub stop_postgres { postgres()->halt(@_) }
sub start_postgres { postgres()->resume }

# Backends of the API in $database, but for CONDITION.
sub backends {
    my ($condition) = @_;
    return map { $_->[0] } sql("postgres", "SELECT pid FROM pg_stat_activity"
        . " WHERE datname = '$database' AND usename = 'crmapi_site'"
        . ($condition ? " AND $condition" : ""));
}

sub terminate {
    my (@pids) = @_;
    admin("SELECT pg_terminate_backend($_)") for @pids;
    wait_for(sub { !admin("SELECT count(*) FROM pg_stat_activity WHERE pid IN ("
        . join(",", @pids, 0) . ")") }) or die "CrmTest: they stay\n";
}

# Send a request and return a code that reads its answer, or, called with an
# argument, tells whether it is there.
sub begin {
    my ($w, $method, $path, $json) = @_;
    my $c = $w->client(timeout => 60)->ask($method, "/api/v1$path",
        defined $json ? (json => $json) : ());
    return sub {
        return scalar IO::Select->new($c->{socket})->can_read(0) if @_;
        my $r = $c->read_response($method);
        $r->{request} = { method => $method, path => "/api/v1$path",
            headers => {} };
        return $r;
    };
}

subtest "no database at all: 503" => sub {
    my $none = httpd(unlimited => 1, conf => <<'END');
DBDriver pgsql
DBDParams "host=/nonexistent dbname=none user=nobody"
DBDMin 0
END
    $none->expect_log($AWAY => 1);
    my $c = $none->client(key => "svc_live_" . "a" x 30);
    for my $n (1 .. 5) {
        unavailable_is($c->get("/api/v1/agents"), "request $n");
    }
    unavailable_is($c->post("/api/v1/contacts", {}), "a write");
    ok($none->log_lines(qr/$AWAY.*nonexistent/), "the log says why");
    error_is($none->client->get("/api/v1/agents"), 401, "unauthorized",
        "3.1 what no database is needed for is answered");
    status_is($none->client->options("/api/v1/agents"), 204, "OPTIONS, too");
    $none->stop;
};

my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $agent = $w->agent;

subtest "idle connections that are killed are noticed before use" => sub {
    my $rounds = $ENV{CRM_LONG} ? 10 : 4;
    for my $round (1 .. $rounds) {
        my @clients = map { $w->client } 1 .. 4;
        status_is($_->get("/api/v1/agents"), 200, "warm") for @clients;
        my @pids = backends();
        ok(scalar @pids, "round $round: " . @pids . " connections are killed");
        terminate(@pids);
        status_is($_->get("/api/v1/agents"), 200, "round $round: a read")
            for @clients;
        status_is($clients[0]->post("/api/v1/contacts",
            { bot_id => $agent, last_name => "round $round" }), 201,
            "round $round: a write");
    }
    is(sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
        . " last_name LIKE 'round %'"), $rounds, "each written once");
};

# The server says that it ends a session before it has answered: the statement
# was rolled back, so it may be sent again, once.
subtest "a backend killed in the middle: done once or not at all" => sub {
    $httpd->expect_log(qr/CRM2001: database: 57P01 /);
    my $id = $c->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
    my $lock = "SELECT FROM crmapi.contact WHERE id = '$id' FOR UPDATE";
    my $let_go = holding($database, $lock);
    my $answer = begin($w, "PATCH", "/contacts/$id", { notes => "again" });
    terminate(wait_blocked($database, 1));
    $let_go->();
    my $r = $answer->();
    ok($r->status == 200 || $r->status == 503, "killed once: 200 or 503")
        or diag($r->text);
    is($c->get("/api/v1/contacts/$id")->data->{notes},
        $r->status == 200 ? "again" : undef, "and what it says is so");

    $let_go = holding($database, $lock);
    $answer = begin($w, "PATCH", "/contacts/$id", { notes => "never" });
    kill_until_answered($answer);
    unavailable_is($answer->(), "killed again and again");
    $let_go->();
    my $after = $c->get("/api/v1/contacts/$id");
    status_is($after, 200, "the next works");
    isnt($after->data->{notes}, "never", "and what failed was not done");
    status_is($c->patch("/api/v1/contacts/$id", { notes => "now" }), 200,
        "and can be done");

    for my $times (1, 2) {
        $let_go = holding($database, "LOCK TABLE crmapi.company");
        $answer = begin($w, "POST", "/companies", { bot_id => $agent,
            name => "killed $times" });
        $times == 1 ? terminate(wait_blocked($database, 1))
            : kill_until_answered($answer);
        $let_go->();
        $r = $answer->();
        ok($r->status == 503 || ($r->status == 201 && $times == 1),
            "a create, killed: $times") or diag($r->text);
        is(sql($database, "SELECT count(*) FROM crmapi.company WHERE name ="
            . " 'killed $times'"), $r->status == 201 ? 1 : 0,
            "is done once or not at all");

        $let_go = holding($database, "LOCK TABLE crmapi.contact");
        $answer = begin($w, "POST", "/contacts/upsert", { bot_id => $agent,
            contacts => [map { { last_name => "batch $times" } } 1 .. 50] });
        $times == 1 ? terminate(wait_blocked($database, 1))
            : kill_until_answered($answer);
        $let_go->();
        $r = $answer->();
        ok($r->status == 503 || ($r->status == 200 && $times == 1),
            "10.5 an upsert, killed: $times") or diag($r->text);
        is(sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
            . " last_name = 'batch $times'"), $r->status == 200 ? 50 : 0,
            "10.5 all of it or nothing");
    }
};

# Kill whoever waits for a lock until ANSWER's response is there.
sub kill_until_answered {
    my ($answer) = @_;
    wait_for(sub {
        my @pids = backends("wait_event_type = 'Lock'");
        terminate(@pids) if @pids;
        return $answer->("there");
    }, 20) or die "CrmTest: no answer, however often it is killed\n";
}

subtest "a statement that is cancelled: 503, and the connection lives" => sub {
    $httpd->expect_log(qr/CRM2001: database: 57014 / => 1);
    my $id = $c->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
    for my $n (1 .. 3) {
        my $let_go = holding($database, "SELECT FROM crmapi.contact"
            . " WHERE id = '$id' FOR UPDATE");
        my $answer = begin($w, "PATCH", "/contacts/$id", { notes => "never" });
        my ($pid) = wait_blocked($database, 1);
        admin("SELECT pg_cancel_backend($pid)");
        unavailable_is($answer->(), "cancelled $n");
        $let_go->();
        ok((grep { $_ == $pid } backends()), "its connection is kept");
        status_is($c->get("/api/v1/contacts/$id"), 200, "and works");
    }
    is($c->get("/api/v1/contacts/$id")->data->{notes}, undef, "undone");
};

subtest "the role's lock_timeout: 503, and one line for all" => sub {
    my $role = $CrmTest::Postgres::API;
    my $id = $c->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
    $httpd->expect_log(qr/CRM2001: database: 55P03 / => 1);
    admin("ALTER ROLE $role SET lock_timeout = '1ms'");
    terminate(backends());
    my $let_go = holding($database, "SELECT FROM crmapi.contact"
        . " WHERE id = '$id' FOR UPDATE");
    unavailable_is($c->patch("/api/v1/contacts/$id", { notes => "no" }), "write $_")
        for 1 .. 3;
    $let_go->();
    admin("ALTER ROLE $role RESET lock_timeout");
    terminate(backends());
    status_is($c->patch("/api/v1/contacts/$id", { notes => "yes" }), 200, "after it");
};

subtest "a row that is locked: requests wait, then go on" => sub {
    my $id = $c->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
    my $let_go = holding($database, "SELECT FROM crmapi.contact"
        . " WHERE id = '$id' FOR UPDATE");
    my @answers = map { begin($w, "PATCH", "/contacts/$id",
        { tags => ["t$_"] }) } 1 .. 4;
    wait_blocked($database, 4);
    status_is($c->get("/api/v1/contacts/$id"), 200, "reads do not wait");
    $let_go->();
    my @responses = map { $_->() } @answers;
    status_is($_, 200, "a write that waited") for @responses;
    my %times = map { $_->data->{updated_at} => 1 } @responses;
    is(scalar keys %times, 4, "6.6 updated_at differs for each");
};

subtest "many writers of one row: all succeed, each once" => sub {
    my $id = $c->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
    my @writers = map { my $n = $_; CrmTest::Child->start(sub {
        my $own = $w->client;
        my %count;
        for my $i (1 .. 15) {
            $count{$own->patch("/api/v1/contacts/$id",
                { notes => "$n/$i" })->status}++;
        }
        return \%count;
    }) } 1 .. 6;
    is_deeply([map { $_->result } @writers], [({ 200 => 15 }) x 6],
        "90 changes of one row");
};

subtest "all connections busy: 503 after CrmApiDatabaseWait" => sub {
    plan(skip_all => "prefork has a connection for each process")
        if $prefork;
    my $tight = httpd(database => $database, children => 1,
        dbd => "DBDMin 1\nDBDKeep 2\nDBDMax 2\n",
        unlimited => 1, conf => "CrmApiDatabaseWait 2s\n"
            . "<Location /status>\nSetHandler server-status\n</Location>\n");
    $tight->expect_log(qr/CRM1303: none of the 2 connections of the process/);
    my $tw = workspace($tight);
    my $tc = $tw->client(timeout => 60);
    my @ids = map { $tc->post("/api/v1/contacts", { bot_id => $tw->agent })
        ->data->{id} } 1, 2;
    my $let_go = holding($database, "SELECT FROM crmapi.contact WHERE id IN ("
        . join(",", map { "'$_'" } @ids) . ") FOR UPDATE");
    my @busy = map { begin($tw, "PATCH", "/contacts/$_", { notes => "x" }) }
        @ids;
    wait_blocked($database, 2);
    my $start = time;
    my $r = $tc->get("/api/v1/agents");
    my $took = time - $start;
    unavailable_is($r, "the third");
    cmp_ok($took, ">=", 1.9, "after 2 s");
    cmp_ok($took, "<", busy() * ($ENV{CRM_VALGRIND} ? 20 : 5), "and not much more");
    error_is($tight->client->get("/api/v1/agents"), 401, "unauthorized",
        "what needs no connection does not wait");
    # five wait at once: all are told, none waits for ever
    $start = time;
    my @five = map { begin($tw, "GET", "/agents") } 1 .. 5;
    unavailable_is($_->(), "one of five") for @five;
    cmp_ok(time - $start, "<", busy() * ($ENV{CRM_VALGRIND} ? 40 : 6),
        "they wait side by side");
    # one that waits gets the connection that becomes free
    my $late = begin($tw, "GET", "/agents");
    ok(wait_for(sub { $tight->client->get("/status?auto")->body
        =~ /^BusyWorkers: 4$/m }), "two are served, one waits, one asks this");
    ok(!$late->("there"), "indeed it waits");
    $let_go->();
    status_is($late->(), 200, "who waited less gets one");
    status_is($_->(), 200, "who had them is served") for @busy;
    status_is($tc->get("/api/v1/agents"), 200, "and all is as before");
    $tight->stop;
};

subtest "a slow client does not hold a connection" => sub {
    plan(skip_all => "prefork has a connection for each process")
        if $prefork;
    my $one = httpd(database => $database, children => 1,
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n",
        unlimited => 1, conf => "CrmApiDatabaseWait 1s\n");
    my $ow = workspace($one);
    # an answer larger than all the buffers on its way
    $ow->client->post("/api/v1/contacts/upsert", { bot_id => $ow->agent,
        contacts => [map { { notes => "n" x 65000 } } 1 .. 25] })
        for 1 .. 4;
    my $slow = begin($ow, "GET", "/contacts?page_size=100");
    ok(wait_for(sub { $slow->("there") }), "an answer begins");
    for my $n (1 .. 5) {
        status_is($ow->client->get("/api/v1/agents"), 200,
            "others are served meanwhile");
    }
    unlike($one->access_log, qr/page_size=100/, "it has not ended yet");
    cmp_ok(length $slow->()->body, ">", 6_000_000,
        "the slow one gets all of it");
    ok(wait_for(sub { $one->access_log =~ /page_size=100/ }), "then it ends");
    $one->stop;
};

# Make $database unreachable, and reachable again.
sub lose {
    admin("ALTER DATABASE $database ALLOW_CONNECTIONS false");
    # one that was being opened may come a moment later
    wait_for(sub {
        terminate(backends());
        return eval { admin("ALTER DATABASE $database RENAME TO "
            . "${database}_away"); 1 };
    }) or die "CrmTest: $@";
}
sub regain {
    admin("ALTER DATABASE ${database}_away RENAME TO $database");
    admin("ALTER DATABASE $database ALLOW_CONNECTIONS true");
}

# Whether SERVER's log says TIMES times that the database is away.
sub away_is {
    my ($server, $times, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    # Who notices first may see the moment before it is renamed; the line may be
    # another thread's, which is still writing it.
    my $cause = qr/does not exist|is not currently accepting|administrator/;
    my $line = qr/(?:CRM1305|CRM2001): .*$cause/;
    return ok(wait_for(sub {
        my $count = () = $server->log_lines($line);
        return $count >= $times;
    }), $name);
}

# Request from SERVER until its log has TIMES lines that say that the database
# is back.
sub back_is {
    my ($server, $times, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $client = $server->client(key => $w->key);
    return ok(wait_for(sub {
        $client->get("/api/v1/agents")->status == 200
            && $server->log_lines(qr/CRM1304: /) == $times;
    }), $name);
}

subtest "a database that goes away and comes back" => sub {
    $httpd->may_log($AWAY,
        qr/CRM2001: database: .* "$database" does not exist/);
    status_is($c->get("/api/v1/agents"), 200, "before");
    my $back = () = $httpd->log_lines(qr/CRM1304: /);
    lose();
    unavailable_is($c->get("/api/v1/agents"), "away: a read");
    unavailable_is($c->post("/api/v1/contacts", { bot_id => $agent }),
        "away: a write");
    away_is($httpd, 1, "which is logged");
    regain();
    status_is($c->get("/api/v1/agents"), 200, "back in the next request");
    status_is($c->post("/api/v1/contacts", { bot_id => $agent }), 201,
        "for writes, too");
    back_is($httpd, $back + 1, "and the log says so");
};

# The schema is trusted for five seconds. An outage that begins and ends within
# them must be logged as ended, or the next one is not logged.
subtest "two outages, one soon after the other, are both logged" => sub {
    plan(skip_all => "valgrind is too slow for it") if $ENV{CRM_VALGRIND};
    my $soon;
    for my $try (1 .. 10) {
        my $own = httpd(database => $database, unlimited => 1);
        $own->may_log($AWAY,
            qr/CRM2001: database: .* "$database" does not exist/);
        my $oc = $own->client(key => $w->key);
        my $start = time;
        status_is($oc->get("/api/v1/agents"), 200, "the schema is checked");
        for my $times (1, 2) {
            lose();
            unavailable_is($oc->get("/api/v1/agents"), "outage $times");
            away_is($own, $times, "it is logged");
            regain();
            back_is($own, $times, "its end is logged");
            $soon ||= $times == 1 && time - $start < 4.5;
        }
        $own->stop;
        last if $soon;          # else the machine was too slow
    }
    ok($soon, "before the schema is checked again in any case");
};

subtest "a server that takes no more connections" => sub {
    $httpd->expect_log(
        qr/(?:CRM1305|CRM2001): .*too many connections for role/ => 1);
    my $back = () = $httpd->log_lines(qr/CRM1304: /);
    admin("ALTER ROLE crmapi_site CONNECTION LIMIT 0");
    terminate(backends());
    unavailable_is($c->get("/api/v1/agents"), "none to be had");
    admin("ALTER ROLE crmapi_site CONNECTION LIMIT -1");
    status_is($c->get("/api/v1/agents"), 200, "and then again");
    back_is($httpd, $back + 1, "and the log says so");
};

subtest "a server that takes fewer connections than DBDMax" => sub {
    plan(skip_all => "prefork has a connection for each process")
        if ($ENV{CRM_MPM} || "event") eq "prefork";
    my $few = httpd(database => $database, children => 1, unlimited => 1,
        conf => "CrmApiDatabaseWait 30s\n"
        . "<Location /status>\nSetHandler server-status\n</Location>\n",
        dbd => "DBDMin 0\nDBDKeep 8\nDBDMax 8\n");
    my $own = sub { $few->client(key => $w->key, timeout => 60) };
    my $id = $own->()->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
    # a session that has not ended yet counts, too
    $few->expect_log(
        qr/CRM1306: the database gives no more .*: .*too many connections/ => 1);
    terminate(backends());
    admin("ALTER ROLE crmapi_site CONNECTION LIMIT 1");
    status_is($own->()->get("/api/v1/agents"), 200, "it takes one");
    my $let_go = holding($database, "SELECT FROM crmapi.contact"
        . " WHERE id = '$id' FOR UPDATE");
    my @waiting = (CrmTest::Child->start(sub { $own->()->patch(
        "/api/v1/contacts/$id", { notes => "x" })->status }));
    wait_blocked($database, 1);
    # several of each, so that they wait as leaders and behind one
    push @waiting, map { my $path = $_; CrmTest::Child->start(sub {
        $own->()->get("/api/v1/$path")->status }) } ("agents", "companies") x 3;
    ok(wait_for(sub { $few->client->get("/status?auto")->body
        =~ /^BusyWorkers: 8$/m }), "others wait for it");
    $let_go->();
    is_deeply([map { $_->result } @waiting], [(200) x 7], "all are served");
    is(scalar(() = $few->log_lines(qr/CRM1306: /)), 1, "one line says so");
    admin("ALTER ROLE crmapi_site CONNECTION LIMIT -1");
    $few->stop;
};

subtest "a session that has ended, though its socket is open" => sub {
    my $proxy = CrmTest::Proxy->new;
    my $slow = httpd(children => 1, unlimited => 1,
        conf => "CrmApiDatabaseTimeout 5\nDBDMin 2\nDBDKeep 2\nDBDMax 2\n"
        . "DBDriver pgsql\nDBDParams \""
        . $proxy->conninfo($database, $CrmTest::Postgres::API) . "\"\n");
    my $sc = $slow->client(key => $w->key);
    my $end = sub {             # one may just have begun
        ok(wait_for(sub { terminate(backends()); $proxy->sessions eq "0" }),
            "all sessions end");
    };
    status_is($sc->get("/api/v1/agents"), 200, "before");
    $proxy->linger;
    $end->();
    my $let_go = holding($database,
        "LOCK TABLE crmapi.contact IN ACCESS EXCLUSIVE MODE");
    my $write = CrmTest::Child->start(sub { $slow->client(key => $w->key)
        ->post("/api/v1/contacts", { bot_id => $agent })->status });
    wait_blocked($database, 1);
    status_is($sc->get("/api/v1/agents"), 200,
        "a read goes by a connection whose session ended before its first use");
    $let_go->();
    is(($write->result)[0], 201, "a write goes by a new connection");
    $end->();
    status_is($sc->get("/api/v1/agents"), 200, "and so does a read");
    $let_go = holding($database,
        "LOCK TABLE crmapi.contact IN ACCESS EXCLUSIVE MODE");
    my $read = CrmTest::Child->start(sub { $slow->client(key => $w->key)
        ->get("/api/v1/contacts")->status });
    wait_blocked($database, 1);
    my %ended = map { $_ => 1 } backends();
    terminate(sort keys %ended);
    ok(wait_for(sub { grep { !$ended{$_} } backends() }, 4),
        "a read whose session ends while it waits goes by a new connection");
    $let_go->();
    is(($read->result)[0], 200, "and is answered");
    $slow->stop;
};

for my $setting ("On", "Shared") {
    subtest "$setting: sessions whose prepared statements are gone" => sub {
        my $proxy = CrmTest::Proxy->new;
        my $pooled = httpd(unlimited => 1,
            conf => "DBDriver pgsql\nDBDParams \""
            . $proxy->conninfo($database, $CrmTest::Postgres::API) . "\"\n"
            . "CrmApiNamedStatements $setting\n");
        my $mark = "discarded $setting";
        my $pc = $pooled->client(key => $w->key);
        my $id = $pc->post("/api/v1/contacts", { bot_id => $agent })
            ->data->{id};
        my @asks = (
            [200, "a read", sub { $pc->get("/api/v1/contacts/$id") }],
            [200, "a list", sub { $pc->get("/api/v1/agents") }],
            [201, "a create", sub { $pc->post("/api/v1/contacts",
                { bot_id => $agent, last_name => $mark }) }],
            [200, "a change", sub { $pc->patch("/api/v1/contacts/$id",
                { notes => "n" . rand }) }],
            [200, "an upsert, a transaction", sub {
                $pc->post("/api/v1/contacts/upsert", { bot_id => $agent,
                    contacts => [{ last_name => $mark }] }) }],
            [404, "what is refused", sub {
                $pc->delete("/api/v1/contacts/" . uuid()) }]);
        for my $n (1 .. 3) {
            status_is($_->[2]->(), $_->[0], "$_->[1], $n") for @asks;
        }
        for my $ask (@asks) {
            my ($status, $name, $code) = @$ask;
            # as a pooler does between two clients
            cmp_ok($proxy->discard, ">", 0, "DISCARD ALL");
            status_is($code->(), $status, $name);
        }
        is(sql($database, "SELECT count(*) FROM crmapi.contact"
            . " WHERE last_name = '$mark'"), 8, "each was written once");
        $pooled->stop;
    };
}

subtest "CrmApiNamedStatements: On, Off, Shared" => sub {
    my %named;
    for my $setting ("On", "Off", "Shared") {
        my $own = database();
        sql("postgres", "ALTER DATABASE $own SET log_statement = 'all'");
        my $server = httpd(database => $own,
            unlimited => 1, conf => "CrmApiNamedStatements $setting\n");
        my $sw = workspace($server);
        my $sc = $sw->client;
        for my $n (1 .. 4) {
            status_is($sc->get("/api/v1/agents"), 200, "$setting: a read");
            status_is($sc->post("/api/v1/contacts", { bot_id => $sw->agent }),
                201, "a write");
        }
        $server->stop;
        my @names = read_file(postgres()->host . "/log")
            =~ / \Q$own\E crmapi_site LOG:  execute (\S+):/g;
        $named{$setting} = { map { $_ => 1 } @names };
    }
    is_deeply($named{Off}, { "<unnamed>" => 1 }, "Off");
    cmp_ok(scalar keys %{$named{On}}, ">", 1, "but with On");
    delete $named{Shared}{"<unnamed>"};
    is(scalar(grep { /^crm_[0-9a-f]{59}$/ } keys %{$named{Shared}}), 2,
        "Shared: those that are used often");
    is(scalar keys %{$named{Shared}}, 2, "and no others");
};

# Write without pause in N processes until told to stop; each remembers what it
# was answered. Returns a code that stops them: [name, status, begun, ended,
# Retry-After].
sub writers {
    my ($n, $round) = @_;
    my @jobs = map { my $who = $_; CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my @all;
        my $own = $w->client;
        for (my $i = 0; $go_on->(); $i++) {
            my $name = "$round-$who-$i";
            my $begun = time;
            my $r = eval { $own->post("/api/v1/contacts",
                { bot_id => $agent, last_name => $name }) };
            push @all, [$name, $r ? $r->status : "none: $@", $begun, time,
                $r ? scalar $r->header("Retry-After") : undef];
            sleep 0.005 if !$r || $r->status != 201;
        }
        return @all;
    }) } 1 .. $n;
    return sub {
        $_->stop for @jobs;
        return map { $_->result } @jobs;
    };
}

for my $how (["fast", "INT"], ["as after a crash", "QUIT"]) {
    subtest "the server restarted under load, $how->[0]" => sub {
        my ($name, $signal) = @$how;
        # whether a statement is cut, and whether the rest is news
        $httpd->may_log(qr/CRM200[16]: database: /, $AWAY);
        my $stop = writers(4, $signal);
        my $made = sub { sql($database, "SELECT count(*) FROM crmapi.contact"
            . " WHERE last_name LIKE '$signal-%'") };
        wait_for(sub { $made->() >= 20 }) or die "CrmTest: nobody writes\n";
        my $down = time;
        stop_postgres($signal);
        start_postgres();
        my $up = time;
        my $then = $made->();
        wait_for(sub { $made->() >= $then + 40 }, 30)
            or fail("they write again");
        my @all = $stop->();
        my %status;
        $status{$_->[1]}++ for @all;
        is_deeply([sort keys %status], $status{503} ? [201, 503] : [201],
            "201 and 503 only: " . join ", ", %status);
        is(scalar(grep { $_->[1] eq "503" && !$_->[4] } @all), 0,
            "every 503 with Retry-After");
        is(scalar(grep { $_->[1] ne "201" && $_->[3] < $down } @all), 0,
            "none failed before");
        is(scalar(grep { $_->[1] ne "201" && $_->[2] > $up } @all), 0,
            "none that began after the server was back");
        cmp_ok(scalar(grep { $_->[2] < $up && $_->[3] > $down } @all), ">", 0,
            "some fell into it");
        my %rows = map { @$_ } sql($database, "SELECT last_name, count(*) FROM"
            . " crmapi.contact WHERE last_name LIKE '$signal-%' GROUP BY 1");
        is(scalar(grep { $_ > 1 } values %rows), 0, "nothing is there twice");
        is(scalar(grep { $_->[1] eq "201" && !$rows{$_->[0]} } @all), 0,
            "everything that was answered 201 is there");
        is(sql($database, "SELECT (SELECT count(*) FROM crmapi.contact WHERE"
            . " workspace_id = '" . $w->id . "') = (SELECT sum(n) FROM"
            . " crmapi.counter WHERE workspace_id = '" . $w->id . "' AND"
            . " kind = 'contact' AND parent ="
            . " '00000000-0000-0000-0000-000000000000')"), "t",
            "7.11 the totals are right");
    };
}

subtest "crmapid goes on when its server was restarted" => sub {
    my $nobody = '{"enrollment_id": "00000000-0000-4000-8000-000000000000"}';
    # there may be jobs of tests before this one
    sql($database, "DELETE FROM crmapi.job");
    my $worker = worker(database => $database, conf => { lease => "2s" });
    $worker->expect_log(qr/CRM2001: database: /, qr/CRM3003: the database/);
    # what it was at when its sessions ended
    $worker->may_log(qr/CRM3005: /, qr/CRM3101: .* CRM2001: /,
        qr/CRM3203: /);
    for my $signal ("INT", "QUIT") {
        sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload)"
            . " SELECT '" . $w->id . "', 'generate.steps', '$nobody'"
            . " FROM generate_series(1, 400)");
        stop_postgres($signal);
        start_postgres();
        ok(wait_for(sub { !sql($database, "SELECT count(*) FROM crmapi.job"
            . " WHERE state <> 'done'") }, 60),
            "SIG$signal: all jobs are done")
            or diag($worker->log_text);
        my $id = sql($database, "INSERT INTO crmapi.job (workspace_id, kind,"
            . " payload) VALUES ('" . $w->id . "', 'generate.steps',"
            . " '$nobody') RETURNING id");
        ok(wait_for(sub { sql($database, "SELECT state FROM crmapi.job"
            . " WHERE id = $id") eq "done" }, 30), "and one made afterwards");
    }
    is(scalar($worker->log_lines(qr/CRM3001/)), 1, "by the same daemon");
    $worker->stop;
};

subtest "httpd starts without a database and serves when there is one" => sub {
    stop_postgres();
    my $early = httpd(database => $database, unlimited => 1,
        expect_log => [$AWAY => 1]);
    my $ec = $early->client(key => $w->key);
    unavailable_is($ec->get("/api/v1/agents"), "too early");
    start_postgres();
    status_is($ec->get("/api/v1/agents"), 200, "in time");
    $early->stop;
};

subtest "a schema that is not there: 503 until it is migrated" => sub {
    my $empty = database(template => undef);
    my $fresh = httpd(database => $empty, unlimited => 1);
    $fresh->expect_log(qr/CRM1301: the database has no schema/ => 1);
    my $key = "svc_live_" . "b" x 30;
    my $fc = $fresh->client(key => $key);
    unavailable_is($fc->get("/api/v1/agents"), "not migrated") for 1 .. 3;
    my @lines = $fresh->log_lines(qr/CRM\d{4}/);
    is(scalar @lines, 1, "it is said once")
        or diag(join "\n", @lines);
    like(join("", @lines), qr/migrate/, "and how to mend it");
    crmapictl_ok($empty, "migrate");
    ok(wait_for(sub { $fc->get("/api/v1/agents")->status == 401 }, 15),
        "after crmapictl migrate it serves, without a restart");
    my $fw = workspace($fresh);
    status_is($fw->client->get("/api/v1/agents"), 200, "indeed");
    $fresh->stop;
};

done_testing;
