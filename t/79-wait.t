# SPDX-License-Identifier: Apache-2.0
# 79-wait.t: requests that wait for something to happen (contract 19.4)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Process qw(wait_for);
use CrmTest::Session;
use Time::HiRes qw(time sleep);

my $mpm = $ENV{CRM_MPM} || "event";
my $suspends = $mpm eq "event";
my $MANY = $ENV{CRM_VALGRIND} ? 50 : 500;
my $CONF = <<"END";
CrmApiReadLimit 0
CrmApiWriteLimit 0
CrmApiIntake On
CrmApiIntakeLimit 0
END
my $database = database();
# one process, of ten threads with MPM event, and one connection
my $httpd = httpd(database => $database, children => $suspends ? 1 : 2,
    conf => $CONF . ($suspends ? "AsyncRequestWorkerFactor 100\n" : ""),
    $suspends ? (dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n") : ());

# A workspace with its log on, and a conversation.
sub logged {
    my $w = workspace($httpd, @_)->log_on;
    $w->{token} = $w->token("backend");
    return $w;
}

my $count = 0;
# A message to W by intake; its conversation.
sub talk {
    my ($w, %event) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $count++;
    my $r = $httpd->client(key => $w->{token})->post(
        "/crmapi/intake/v1/events", { event_id => "e-$count",
        channel => "sms", bot_id => $w->agent, message => { content =>
        "Message $count" }, from => { phone_number => "+4930123" }, %event });
    status_is($r, 200, "a message is taken");
    return $r->data->{accepted}[0]{conversation_id};
}

sub end_of {
    my ($w) = @_;
    return $w->client->get("/api/v1/events?cursor=end")
        ->json->{pagination}{next_cursor};
}

# Begin GET PATH on a connection of its own; the connection.
sub begin {
    my ($w, $path, %arg) = @_;
    my $client = $w->client->ask("GET", "/api/v1$path", %arg);
    $client->{began} = time;
    return $client;
}

# Its response, and the seconds that it took.
sub answer {
    my ($client) = @_;
    my $r = $client->read_response("GET") // die "no response";
    return ($r, time - $client->{began});
}

sub has_answer {
    my ($client, $seconds) = @_;
    my $in = "";
    vec($in, fileno($client->socket), 1) = 1;
    return scalar select($in, undef, undef, $seconds // 0);
}

# Wait until COUNT requests wait in WORKSPACEs' databases: the bell is on.
sub settled {
    my ($w, $name) = @_;
    return ok(wait_for(sub { sql($database, "SELECT count(*) FROM pg_locks l
        JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory'
        AND a.application_name LIKE 'crmapi bell%' AND l.granted
        AND l.objid::bigint = uuid_hash_extended('" . $w->id . "', 1)
            & 4294967295") }), $name // "somebody listens");
}

my $w = logged();

subtest "19.4 GET /events waits for an event" => sub {
    my $cursor = end_of($w);
    my $client = begin($w, "/events?wait=20&cursor=$cursor");
    settled($w);
    ok(!has_answer($client, 0.3), "there is nothing, and no response");
    my $id = $w->client->post("/api/v1/contacts", { first_name => "Ada",
        bot_id => $w->agent })->data->{id};
    my $began = time;
    my ($r, $took) = answer($client);
    status_is($r, 200, "then there is one");
    cmp_ok(time - $began, "<", 1 * busy(), "at once");
    is_deeply([map { $_->{data}{id} } @{$r->data}], [$id], "the event");
    is($r->header("Connection"), $suspends ? "close" : undef,
        "whether the connection is closed");
    my $next = $r->json->{pagination}{next_cursor};
    ($r, $took) = answer(begin($w, "/events?wait=1&cursor=$next"));
    status_is($r, 200, "nothing more");
    is_deeply([$r->data, $r->json->{pagination}{next_cursor}], [[], $next],
        "an empty page with the same cursor");
    cmp_ok($took, ">=", 0.9, "after the second");
    ($r, $took) = answer(begin($w, "/events?wait=20&cursor=$cursor"));
    is(@{$r->data}, 1, "what is there is shown");
    ($r, $took) = answer(begin($w, "/events?wait=20&cursor=end"));
    is_deeply($r->data, [], "the end of the log is known without waiting");
    for my $bad (qw(31 -1 x 1.0), "") {
        error_is($w->client->get("/api/v1/events?wait=$bad"), 422,
            "validation_error", "wait=$bad");
    }
    $client = begin($w, "/events?wait=20&type=company.created&cursor=*");
    settled($w);
    $w->client->post("/api/v1/contacts", { bot_id => $w->agent });
    ok(!has_answer($client, 0.5), "an event of another type is none");
    $w->client->post("/api/v1/companies", { name => "C",
        bot_id => $w->agent });
    ($r) = answer($client);
    is_deeply([map { $_->{type} } @{$r->data}], ["company.created"],
        "one of the type is");
};

subtest "13.4 who asks for the end of the log does not wait" => sub {
    my ($r, $took) = answer(begin($w, "/events?wait=30&cursor=end"));
    is_deeply([$r->status, $r->data], [200, []], "it is told");
    cmp_ok($took, "<", 25, "and not at the end of the 30 seconds");
    status_is($w->client->get("/api/v1/events", query => { wait => $_->[0],
        cursor => "end" }), $_->[1], "wait=$_->[0]") for [0, 200], [1, 200],
        [31, 422], ["00", 422];
};

subtest "19.4 a conversation's messages wait" => sub {
    my $quiet = workspace($httpd);      # its log is off
    $quiet->{token} = $quiet->token("backend");
    my $talk = talk($quiet);
    my $path = "/conversations/$talk/messages?wait=20";
    my ($r) = answer(begin($quiet, "$path&cursor=*"));
    is(@{$r->data}, 1, "the first message");
    my $page = $r->json->{pagination};
    ok(!$page->{has_more}, "it is the last one");
    my $cursor = $page->{next_cursor};
    ok($cursor, "there is a cursor behind it");
    my $client = begin($quiet, "$path&cursor=$cursor");
    settled($quiet);
    ok(!has_answer($client, 0.3), "nothing yet");
    is(talk($quiet), $talk, "a message of the conversation");
    ($r) = answer($client);
    is(@{$r->data}, 1, "it is shown");
    is($r->data->[0]{content}, "Message $count", "the new one");
    isnt($r->json->{pagination}{next_cursor}, $cursor, "the cursor moves");
    error_is($quiet->client->get("/api/v1/conversations/" . uuid()
        . "/messages?wait=5"), 404, "not_found", "of no conversation");
    is($quiet->client->get("/api/v1/conversations/$talk/messages?cursor=*")
        ->json->{pagination}{next_cursor}, undef,
        "13.3: without wait the last page has no cursor");
};

subtest "19.4 whoever writes: crmapictl, another session" => sub {
    my $client = begin($w, "/events?wait=20&cursor=" . end_of($w));
    settled($w);
    $w->import_objects([{ object => "contact", bot_id => $w->agent,
        first_name => "Imported" }]);
    my ($r) = answer($client);
    is($r->data->[0]{data}{first_name}, "Imported", "an import");
};

subtest "19.4 what began before somebody waited" => sub {
    my $other = logged();
    my $end = holding($database, "INSERT INTO crmapi.contact (id, workspace_id, bot_id,
        first_name) VALUES (gen_random_uuid(), '" . $other->id . "', '"
        . $other->agent . "', 'Late')");
    my $client = begin($other, "/events?wait=20&cursor=" . end_of($other));
    settled($other);
    ok(!has_answer($client, 0.5), "it is not committed");
    my $began = time;
    $end->("COMMIT");
    my ($r) = answer($client);
    is($r->data->[0]{data}{first_name}, "Late", "then it is shown");
    cmp_ok(time - $began, "<", 5 * busy(), "soon");
};

subtest "19.4 what was behind a transaction that is rolled back" => sub {
    my $other = logged();
    my $end = holding($database, "INSERT INTO crmapi.contact (id, workspace_id, bot_id,
        first_name) VALUES (gen_random_uuid(), '" . $other->id . "', '"
        . $other->agent . "', 'Never')");
    my $client = begin($other, "/events?wait=25&cursor=" . end_of($other));
    settled($other);
    status_is($other->client->post("/api/v1/contacts", { first_name => "Behind",
        bot_id => $other->agent }), 201, "an event behind it");
    ok(!has_answer($client, 0.5), "it is not shown yet");
    my $began = time;
    $end->("ROLLBACK");
    my ($r) = answer($client);
    is($r->data->[0]{data}{first_name}, "Behind", "then it is shown");
    cmp_ok(time - $began, "<", 5 * busy(), "soon, though nothing tells of it");
};

subtest "19.4 $MANY clients wait on one process, without a thread each" => sub {
    plan(skip_all => "MPM $mpm: a thread waits") unless $suspends;
    is(scalar $httpd->children, 1, "one process");
    my $cursor = end_of($w);
    my @clients = map { begin($w, "/events?wait=30&cursor=$cursor") }
        1 .. $MANY;
    # all are suspended when a request is served again in time
    settled($w);
    # the last statements of httpd's sessions; autovacuum has its own
    my $calls = "SELECT pid, query_start FROM pg_stat_activity
        WHERE datname = '$database' AND usename = 'crmapi_site'
        AND application_name <> 'crmapi health' ORDER BY pid";
    status_is($w->client->get("/api/v1/agents"), 200, "others are served");
    is(scalar(grep { has_answer($_) } @clients), 0, "all wait");
    # those of the requests' arrival
    my $before = [];
    wait_for(sub {
        my $last = $before;
        sleep 1;
        $before = [sql("postgres", $calls)];
        return eq_array($before, $last);
    }, 20);
    sleep 3;
    is_deeply([sql("postgres", $calls)], $before,
        "no statement while nothing happens");
    my $threads = () = glob "/proc/" . ($httpd->children)[0] . "/task/*";
    cmp_ok($threads, "<", 30, "$threads threads");
    my $id = $w->client->post("/api/v1/contacts", { first_name => "All",
        bot_id => $w->agent })->data->{id};
    my $began = time;
    my %seen;
    for my $client (@clients) {
        my ($r) = answer($client);
        $seen{$r->status . " " . join ",", map { $_->{data}{id} }
            @{$r->data}}++;
    }
    is_deeply(\%seen, { "200 $id" => $MANY }, "each gets the event");
    note(sprintf "all in %.2f s", time - $began);
    $_->close for @clients;
};

subtest "19.4 at most CrmApiWaiters, and a client that goes leaves its place"
    => sub {
    $httpd->write_conf($CONF . "CrmApiWaiters 2\n"
        . ($suspends ? "" : "MaxConnectionsPerChild 0\n"));
    $httpd->restart;
    my $path = "/events?wait=20&cursor=" . end_of($w);
    plan(skip_all => "MPM $mpm: each process counts its own") if !$suspends;
    my @clients = map { begin($w, $path) } 1 .. 2;
    settled($w);
    sleep 0.3;
    my ($r, $took) = answer(begin($w, $path));
    is_deeply([$r->status, $r->data], [200, []], "another one is answered");
    cmp_ok($took, "<", 2 * busy(), "at once");
    # clients that wait: so many as there are places
    my $fill = sub {
        return wait_for(sub {
            my $client = begin($w, $path);
            return push @clients, $client if !has_answer($client, 0.5);
            answer($client);
            return 0;
        });
    };
    (shift @clients)->close;
    ok($fill->(), "the place of one that has gone is free");
    for (1 .. 2) {
        $w->client->post("/api/v1/contacts", { bot_id => $w->agent });
        answer($_) for splice @clients;
        $path = "/events?wait=20&cursor=" . end_of($w);
        ok($fill->() && $fill->(), "so are those of two with an answer");
    }
    $_->close for @clients;
};

subtest "4 a request that waits is one of its budget" => sub {
    my $limited = logged();
    $httpd->write_conf($CONF =~ s/ReadLimit 0/ReadLimit 120/r);
    $httpd->restart;
    my $path = "/events?cursor=" . end_of($limited);
    my $before = $limited->client->get("/api/v1$path")
        ->header("X-RateLimit-Remaining");
    my $client = begin($limited, "$path&wait=20");
    settled($limited);
    $limited->client->post("/api/v1/contacts", { bot_id => $limited->agent });
    my ($r) = answer($client);
    is(@{$r->data}, 1, "it waited");
    is($r->header("X-RateLimit-Remaining"), $before - 1, "one request");
};

subtest "3.2 a key that is revoked meanwhile" => sub {
    my $key = $w->make_key("read");
    my $client = begin($w, "/events?wait=30&cursor=" . end_of($w),
        key => $key);
    settled($w);
    ok(!has_answer($client, 0.5), "waits");
    $w->ctl("key", "revoke", ($w->key_ids)[-1]);
    $w->client->post("/api/v1/contacts", { bot_id => $w->agent });
    my ($r) = answer($client);
    error_is($r, 401, "unauthorized", "sees nothing");
};

subtest "19.4 a long transaction of others has nobody ask again" => sub {
    plan(skip_all => "MPM $mpm: a client has a thread") if !$suspends;
    my $let_go = holding($database, "LOCK TABLE crmapi.event"
        . " IN ROW EXCLUSIVE MODE");
    my $wide = httpd(database => $database, children => 1, conf => $CONF
        . "AsyncRequestWorkerFactor 100\n");
    my $path = "/api/v1/events?wait=20&cursor=" . end_of($w);
    my @clients = map { $wide->client(key => $w->key)->ask("GET", $path) }
        1 .. 50;
    my $count = sub { scalar sql($database, "SELECT xact_commit
        FROM pg_stat_database WHERE datname = '$database'") };

    settled($w);
    sleep 1;                    # as often as sessions report
    my $before = $count->();
    sleep 2;
    cmp_ok($count->() - $before, "<", 200, "few transactions");
    $let_go->();
    $_->close for @clients;
};

# Who may connect may take any advisory lock, and see in pg_locks which there are.
subtest "19.4 a session that holds a workspace's lock delays nobody" => sub {
    $httpd->restart;
    my $other = logged();
    my $let_go = holding($database, "SELECT pg_advisory_xact_lock("
        . "uuid_hash_extended('" . $other->id . "', 1))");
    my %client = map { $_->id => begin($_, "/events?wait=20&cursor="
        . end_of($_)) } $other, $w;

    settled($w);
    sleep 0.3;
    for my $told ($w, $other) {
        $told->client->post("/api/v1/contacts", { bot_id => $told->agent });
        my $began = time;
        my ($r) = answer($client{$told->id});
        is(@{$r->data}, 1, "the event is there");
        cmp_ok(time - $began, "<", 1 * busy(), "at once");
    }
    $let_go->();
    settled($other, "then somebody listens there, too");
};

subtest "19.4 PostgreSQL is restarted while requests wait" => sub {
    my $client = begin($w, "/events?wait=30&cursor=" . end_of($w));
    settled($w);
    sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name LIKE 'crmapi bell%'");
    sleep 0.2;
    settled($w, "somebody listens again");
    $w->client->post("/api/v1/contacts", { first_name => "After",
        bot_id => $w->agent });
    my ($r) = answer($client);
    is($r->data->[0]{data}{first_name}, "After", "the event is there")
        or diag($r->status, " ", $r->body);
};

subtest "19.4 a graceful stop answers at once" => sub {
    my @clients = map { begin($w, "/events?wait=30&cursor=" . end_of($w)) }
        1 .. ($suspends ? 5 : 2);
    settled($w);
    sleep 0.3;
    my $began = time;
    $httpd->restart;
    for my $client (@clients) {
        my ($r) = answer($client);
        is_deeply([$r->status, $r->data], [200, []], "an empty page");
    }
    cmp_ok(time - $began, "<", 10 * busy(), "before the time is over");
};

done_testing();
