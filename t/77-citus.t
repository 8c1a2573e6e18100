# SPDX-License-Identifier: Apache-2.0
# 77-citus.t: a database with data is distributed by Citus; its requests go to
# one server each; a server is lost, and one is added (contract 16.4)
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file's servers come and go, so it has its own.
BEGIN { delete $ENV{CRM_TEST_PG}; $ENV{CRM_CITUS} ||= 1 }
use CrmTest;
use CrmTest::Child;
use CrmTest::Citus;
use CrmTest::Data;
use CrmTest::Dump;
use CrmTest::Receiver;
use CrmTest::Upgrade;

plan(skip_all => "PostgreSQL has no extension citus")
    unless CrmTest::Citus::installed();

my $coordinator = postgres();
my @workers = CrmTest::Citus::workers();
my $database = database(template => undef);
crmapictl_ok($database, "migrate");
crmapictl_ok($database, "role", "create", @$_)
    for ["api", $CrmTest::Postgres::API],
        ["worker", $CrmTest::Postgres::WORKER];

my @w = map { workspace($database, twin => 0) } 1 .. 6;
my @before = map { export($_) } @w;

# All that crmapictl exports of the workspace W.
sub export {
    my ($w) = @_;
    return crmapictl_ok($database, "export", "--workspace", $w->id);
}

# The worker, a number of @workers, that has the workspace W.
sub server_of {
    my ($w) = @_;
    my $port = sql($database, "SELECT n.nodeport FROM pg_dist_placement p
        JOIN pg_dist_node n USING (groupid) WHERE p.shardid =
        get_shard_id_for_distribution_column('crmapi.workspace', '"
        . $w->id . "')");
    my ($n) = grep { $workers[$_]{port} == $port } 0 .. $#workers;
    return $n;
}

# The statements that went to several servers.
sub over_all {
    return scalar sql($database, "SELECT sum(query_execution_multi_shard)
        FROM citus_stat_counters WHERE name = current_database()");
}

# Statements that went to one server.
sub to_one {
    return scalar sql($database, "SELECT sum(query_execution_single_shard)
        FROM citus_stat_counters WHERE name = current_database()");
}

subtest "a database with data is distributed" => sub {
    CrmTest::Citus->prepare($coordinator, $database);
    is(crmapictl_ok($database, "distribute"), "distributed over 2 servers",
        "over the workers");
    my ($code, undef, $err) = crmapictl($database, "distribute");
    is($code, 1, "and only once");
    like($err, qr/distributed already/, "as it says");
    CrmTest::Citus->make_logins($_) for @workers;
    is(export($w[$_]), $before[$_], "workspace $_ is as before") for 0 .. $#w;
    my %on = map { server_of($_) => 1 } @w;
    is(scalar keys %on, 2, "they are on both servers");
};

my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
$_->{port} = $httpd->port for @w;

subtest "each request goes to one server" => sub {
    my $w = $w[0];
    my $c = $w->client;
    my @named = (bot_id => $w->agent);
    my $id = $c->post("/api/v1/contacts", { @named })->data->{id};
    my @requests = (
        [GET => "/contacts/$id"], [PATCH => "/contacts/$id", { notes => "n" }],
        [GET => "/contacts/by-email?email=a\@x.example"],
        [POST => "/contacts", { @named, emails => ["a\@x.example"],
            tags => ["t"] }],
        [POST => "/contacts/upsert", { @named, contacts => [
            { emails => ["a\@x.example"], notes => "m", tags => ["u"] }] }],
        [POST => "/companies", { @named, name => "c" }],
        [POST => "/activities", { title => "a", activity_type => "note",
            contact_id => $id }],
        [POST => "/pipeline-cards", { title => "p",
            pipeline_stage_id => ($w->stages)[0] }],
        map({ [GET => "/$_"] } qw(agents contacts companies pipelines
            pipeline-cards conversations forms)),
        map({ [GET => "/contacts?$_"] } qw(search=a tags=t sort=updated_at
            updated_after=2026-01-01T00:00:00Z page=2 per_page=1)),
        [DELETE => "/contacts/$id"],
    );
    for my $request (@requests) {
        my ($method, $path, $body) = @$request;
        my ($over, $one) = (over_all(), to_one());
        my ($of, $query) = split /\?/, $path;
        my $r = $c->request($method, "/api/v1$of", json => $body,
            query => $query);
        cmp_ok($r->status, "<", 500, "$method $path") or diag($r->text);
        is(over_all() - $over, 0, "$method $path: nothing goes to several");
        cmp_ok(to_one(), ">", $one, "$method $path: it goes to one");
    }
    my $over = over_all();
    status_is($c->post("/api/v1/contacts", { @named },
        headers => { "Idempotency-Key" => "k" }), 201, "with a key") for 1, 2;
    is($httpd->client(key => "svc_live_" . "x" x 30)->get("/api/v1/agents")
        ->status, 401, "an unknown key");
    is(over_all() - $over, 0, "a key and an unknown API key: nothing, either");
};

subtest "GET of a contact is planned by Citus' fast path" => sub {
    my $c = $w[0]->client;
    my $id = $c->post("/api/v1/contacts", { bot_id => $w[0]->agent })
        ->data->{id};
    my $log = $coordinator->host . "/log";
    my $as_api = "ALTER ROLE $CrmTest::Postgres::API IN DATABASE $database";
    sql($database, "$as_api SET log_min_messages = debug2");
    $httpd->restart;
    my $before = -s $log;
    status_is($c->get("/api/v1/contacts/$id"), 200, "a contact");
    sql($database, "$as_api RESET log_min_messages");
    $httpd->restart;
    my $planned = qr{ parse \w+: SELECT t\.id, .*\n.* bind .*\n.* for a fast-path router query\n};
    ok(wait_for(sub { substr(read_file($log), $before) =~ $planned }, 10),
        "no sub-select is in its statement");
};

# The private memory of the sessions of worker N, in MB.
sub memory {
    my ($n) = @_;
    my $kb = 0;
    for ($workers[$n]->sql($database, "SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'citus%'"))
    {
        $kb += read_file("/proc/$_->[0]/status") =~ /^RssAnon:\s*(\d+)/m
            ? $1 : 0;
    }
    return $kb / 1024;
}

# Each of Citus' plans would be kept: 0.1 MB for a POST
# (schema/citus/repeat/0002-plans.sql).
subtest "a server's sessions do not grow from request to request" => sub {
    my $c = $w[0]->client;
    my $n = server_of($w[0]);
    my $write = sub {
        status_is($c->post("/api/v1/contacts", { bot_id => $w[0]->agent }),
            201, "a contact") for 1 .. $_[0];
    };
    $write->(50);
    my $before = memory($n);
    cmp_ok($before, ">", 1, "there is a session");
    $write->(250);
    cmp_ok(memory($n) - $before, "<", 8, "it grows by less than 8 MB");
};

subtest "the operator sees all servers, and changes plans" => sub {
    my $w = $w[0];
    my $status = JSON::PP::decode_json(crmapictl_ok($database, qw(--json status)));
    is($status->{workspaces}, @w, "workspaces of all servers");
    is($status->{live_keys}, @w, "and their keys");
    is(scalar @{JSON::PP::decode_json(crmapictl_ok($database,
        qw(--json workspace list)))}, scalar @w, "a list of them");
    crmapictl_ok($database, qw(plan create --name trial --api on
        --sequences off));
    crmapictl_ok($database, qw(workspace set), $w->id, qw(--plan trial));
    my @get = ("/api/v1/sequences/enrollments/" . uuid());
    error_is($w->client->get(@get), 403, "forbidden", "without sequences");
    crmapictl_ok($database, qw(plan set trial --sequences on));
    error_is($w->client->get(@get), 404, "not_found",
        "with them, from the next request on");
    ok(!eval { sql($database, "UPDATE crmapi.plan SET api = false"
        . " WHERE name = 'trial'"); 1 }, "by SQL a plan is not changed");
    like($@, qr/keys would not follow the plan trial\b.*crmapictl plan set/s,
        "as it says");
    error_is($w->client->get(@get), 404, "not_found", "and nothing is");
    crmapictl_ok($database, qw(plan set trial --api off));
    error_is($w->client->get(@get), 403, "forbidden", "without the API");
    error_is($w[1]->client->get(@get), 404, "not_found", "another plan's");
    crmapictl_ok($database, qw(workspace set), $w->id, qw(--plan pro));
    error_is($w->client->get(@get), 404, "not_found", "another plan");
};

my $EVENTS = "/crmapi/intake/v1/events";

# An event of the participant FROM with the id ID, for the workspace W.
sub event {
    my ($w, $id, %from) = @_;
    return { event_id => $id, channel => "sms", bot_id => $w->agent,
        from => \%from, message => { content => "x" } };
}

# A client of intake for the workspace W.
sub channel {
    my ($w) = @_;
    return $httpd->client(key => $w->token("t"));
}

subtest "an event is taken by one server" => sub {
    my $w = $w[0];
    my $channel = channel($w);
    status_is($channel->post($EVENTS, event($w, "e0",
        email => "z\@x.example")), 200, "the first");
    my ($over, $one) = (over_all(), to_one());
    status_is($channel->post($EVENTS, event($w, "e1",
        email => "z\@x.example")), 200, "another one");
    is(over_all() - $over, 0, "nothing goes to several");
    cmp_ok(to_one(), ">", $one, "it goes to one");
};

subtest "10.5 an upsert and an event of one person make one contact" => sub {
    for my $w ($w[0], (grep { server_of($_) != server_of($w[0]) } @w)[0]) {
        my ($client, $channel) = ($w->client, channel($w));
        my @people = map { "p$_\@x.example" } 1 .. 20;
        my @both = map { CrmTest::Child->start($_) } sub {
            map { $client->post("/api/v1/contacts/upsert", { bot_id =>
                $w->agent, contacts => [{ emails => [$_] }] })->status } @people
        }, sub {
            map { $channel->post($EVENTS, event($w, "b$_", email => $_))
                ->status } @people
        };
        is_deeply([$_->result], [(200) x @people], "all are taken") for @both;
        is(sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
            . " workspace_id = '" . $w->id . "' AND email_key LIKE 'p%'"), 20,
            "one for each person");
    }
};

subtest "14.2 a workspace moves to a database without Citus, and back" => sub {
    my $w = workspace($database, twin => 0);
    $w->ctl(qw(webhook add --workspace), $w->id, qw(--events contact.created
        --url http://127.0.0.1:9/));
    status_is($httpd->client(key => $w->key)->post("/api/v1/contacts",
        { bot_id => $w->agent }), 201, "a contact and a webhook");
    my $plain = database(template => undef);
    crmapictl_ok($plain, "migrate");
    my $dump = dump_of($database, $w->id);
    crmapictl_ok($plain, { stdin => $dump }, qw(workspace restore));
    same_dump(dump_of($plain, $w->id), $dump, "it is the same without Citus");
    crmapictl_ok($database, qw(workspace delete), $w->id, "--yes");
    crmapictl_ok($database, { stdin => $dump }, qw(workspace restore));
    same_dump(dump_of($database, $w->id), $dump, "and with it again");
    status_is($httpd->client(key => $w->key)->get("/api/v1/contacts"), 200,
        "its key leads to it");
};

subtest "16.2 a later version is migrated" => sub {
    my $later = database();
    my $w = workspace($later, twin => 0);
    my $own = httpd(database => $later, unlimited => 1, intake => 1);
    my $run = migrating($later);
    ok(wait_for(sub { ended($run) }, 60), "it ends");
    is($run->{status}, 0, "well") or diag(read_file("$run->{log}"));
    is(sql($later, "SELECT crmapi.key_look_up(NULL, 1)"), undef,
        "a function is there");
    is(sql($later, "SELECT count(*) FROM crmapi.contact WHERE name_length"
        . " IS NULL"), 0, "a column is filled");
    is(sql($later, "SELECT name FROM crmapi.region"), "all",
        "a table, with rows");
    is(sql($later, "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid"
        . " = 'crmapi.region'::regclass AND partmethod = 'h'"), 1,
        "which is distributed");
    is(sql($later, "SELECT min(p.proname) FROM pg_proc p
        JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND l.lanname = 'plpgsql' AND 'plan_cache_mode=force_custom_plan'
              = ANY (p.proconfig) IS NOT TRUE"), undef,
        "new functions plan as all do");
    my $client = $own->client(key => $w->key);
    status_is($client->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "Eve" }), 201, "programs of before write");
    is(sql($later, "SELECT name_length FROM crmapi.contact WHERE first_name"
        . " = 'Eve'"), 3, "what they do not know is filled");
    $own->stop;
};

subtest "all servers can be restored to one point" => sub {
    like(sql($database, "SELECT citus_create_restore_point('docs')"),
        qr{^[0-9A-F]+/[0-9A-F]+$}, "a point is made");
};

subtest "a workspace is deleted with all that leads to it" => sub {
    my $w = workspace($database, twin => 0);
    crmapictl_ok($database, qw(workspace delete), $w->id, "--yes");
    is(sql($database, "SELECT count(*) FROM crmapi.$_ WHERE workspace_id = '"
        . $w->id . "'"), 0, "nothing is left in $_")
        for qw(key_home slug_home api_key contact);
};

subtest "what one server has is away with it, and comes back" => sub {
    my ($lost) = grep { server_of($_) == 1 } @w;
    my ($kept) = grep { server_of($_) == 0 } @w;
    status_is($lost->client->get("/api/v1/agents"), 200, "before");
    my $receiver = CrmTest::Receiver->new;
    $_->ctl(qw(webhook add --workspace), $_->id, qw(--events contact.created
        --url), $receiver->url($_ == $lost ? "lost/200" : "kept/200"))
        for $lost, $kept;
    my $worker = worker(database => $database, conf => {
        webhook_private => "on" });
    $httpd->may_log(qr/CRM2001: database: /);
    $worker->may_log(qr/CRM\d+: /);
    $workers[1]->halt("QUIT");
    for my $try (1 .. 3) {
        my $r = $lost->client->get("/api/v1/agents");
        error_is($r, 503, "service_unavailable", "a read, $try");
        ok($r->header("Retry-After"), "says when to try again");
        error_is($lost->client->post("/api/v1/contacts",
            { bot_id => $lost->agent }), 503, "service_unavailable",
            "a write, $try");
        status_is($kept->client->get("/api/v1/agents"), 200,
            "the other workspace is read, $try");
        status_is($kept->client->post("/api/v1/contacts",
            { bot_id => $kept->agent }), 201, "and written, $try");
    }
    is(scalar $receiver->wait_requests("kept", 3, 60), 3,
        "crmapid sends what the other workspace has");
    $workers[1]->resume;
    status_is($lost->client->get("/api/v1/agents"), 200, "it is back");
    status_is($lost->client->post("/api/v1/contacts",
        { bot_id => $lost->agent }), 201, "for writes, too");
    is(scalar $receiver->wait_requests("lost", 1, 60), 1,
        "crmapid sends, too");
    $worker->stop;
    is(scalar $receiver->requests, 4, "each once");
};

# Create contacts in W until told to stop. Returns how many answers of each
# status there were.
sub creating {
    my ($w, $go_on) = @_;
    my $c = $w->client(timeout => 60);
    my %status;

    while ($go_on->()) {
        $status{$c->post("/api/v1/contacts", { bot_id => $w->agent })
            ->status}++;
    }
    return %status;
}

# The ids of the contacts that were created in W behind CURSOR, in the order of
# GET /events, and the last cursor.
sub log_of {
    my ($w, $cursor) = @_;
    my @ids;
    while (1) {
        my $page = $w->client->get("/api/v1/events?page_size=100&cursor=$cursor")
            ->json;
        push @ids, map { $_->{type} eq "contact.created" ? $_->{data}{id} : () }
            @{$page->{data}};
        $cursor = $page->{pagination}{next_cursor};
        return (\@ids, $cursor) if !$page->{pagination}{has_more};
    }
}

subtest "a server is added, and workspaces move to it, under load" => sub {
    my @ends = map { $_->log_on;
        (log_of($_, "end"))[1] } @w;
    my @before = map { total_of($_->client, "/contacts") } @w;
    my @writers = map { my $w = $_; CrmTest::Child->start(sub {
        creating($w, $_[0]) }) } @w;
    push @workers, CrmTest::Citus->start_worker($coordinator);
    $workers[2]->sql("postgres", "CREATE ROLE crmapi_api;
        CREATE ROLE crmapi_worker");
    CrmTest::Citus->make_logins($workers[2]);
    CrmTest::Citus->add_worker($coordinator, $database, $workers[2]);
    sql($database, "SELECT citus_rebalance_start()");
    sql($database, "SELECT citus_rebalance_wait()");
    cmp_ok(sql($database, "SELECT count(*) FROM pg_dist_placement p
        JOIN pg_dist_node n USING (groupid)
        WHERE n.nodeport = $workers[2]{port}"), ">", 0, "shards have moved");
    $_->stop for @writers;
    for my $n (0 .. $#w) {
        my %status = $writers[$n]->result;
        is(join(" ", grep { !/^(?:201|503)$/ } sort keys %status), "",
            "workspace $n: 201 and 503 only");
        is(total_of($w[$n]->client, "/contacts"), $before[$n] + ($status{201} // 0),
            "workspace $n: each contact that was answered 201 is there once");
        my ($ids, $end) = log_of($w[$n], $ends[$n]);
        is(scalar @$ids, $status{201} // 0, "workspace $n: GET /events has each");
        my $id = $w[$n]->client->post("/api/v1/contacts",
            { bot_id => $w[$n]->agent })->data->{id};
        is_deeply((log_of($w[$n], $end))[0], [$id],
            "workspace $n: what comes after the move is behind the cursor");
    }
    is(sql($database, "SELECT count(*) FROM crmapi.counter_verify()"), 0,
        "the totals are right");
};

done_testing();
