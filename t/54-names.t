# SPDX-License-Identifier: Apache-2.0
# 54-names.t: names of servers that lead to several addresses, of which the first
# does not answer, or to another address from now on, and a name service that is
# silent (contract 12.3, 15.2, 16.1, 19.4)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Process qw(end_process);
use CrmTest::Redis;
use CrmTest::Shared qw(is_back ask brief $LIMIT $PATIENT);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);

plan(skip_all => "plain builds only: a library of the test's own is preloaded")
    if sanitized() || valgrinded();

my $scratch = tempdir("crm-names-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my %env = (LD_PRELOAD => library("set_names", $scratch), CRM_NAMES => "$scratch/names");

# Have NAME lead to ADDRESSES, in their order.
sub lead {
    my ($name, @addresses) = @_;
    write_file("$scratch/names.new", "$name @addresses\n");
    rename "$scratch/names.new", "$scratch/names" or die "names: $!\n";
}

# A port of ADDRESS that takes no connection and refuses none: its queue is full.
sub silent {
    my ($address, $port) = @_;
    my $listen = IO::Socket::INET->new(LocalAddr => $address,
        LocalPort => $port, ReuseAddr => 1) or die "CrmTest: $!\n";
    listen($listen, 0) or die "CrmTest: $!\n";
    my $fill = IO::Socket::INET->new(PeerAddr => $address,
        PeerPort => $listen->sockport) or die "CrmTest: $!\n";
    return [$listen, $fill];
}

subtest "a database whose name leads to an address that is silent first" => sub {
    my $port = free_port();
    my $server = CrmTest::Postgres->start(port => $port,
        listen_addresses => "'127.0.0.2'");
    my $database = do { local $ENV{CRM_TEST_PG} = $server->host; database() };
    my $silent = silent("127.0.0.1", $port);
    lead("db.test", "127.0.0.1", "127.0.0.2");
    my $httpd = httpd(env => \%env, children => 1, database => $database,
        conninfo => "host=db.test port=$port dbname=$database"
            . " user=$CrmTest::Postgres::API connect_timeout=2 sslmode=disable"
            . " gssencmode=disable",
        shows => ["health"]);
    my $ctl = sub { crmapictl_ok(undef, { env => { CRMAPI_DATABASE =>
        $server->conninfo($database) } }, @_) };
    my ($w) = $ctl->("workspace", "create", "--name", "W");
    my $key = $ctl->("key", "create", "--workspace", $w, "--name", "k",
        "--scopes", "read,write");
    $ctl->("workspace", "set", $w, "--events", "on");
    my $c = $httpd->client(key => $key, timeout => 60);
    is($httpd->client->get("/health/ready")->body, "ready\n",
        "15.2 the health check finds the other address");
    status_is($c->get("/api/v1/agents"), 200, "requests are served");
    my $cursor = $c->get("/api/v1/events?cursor=end")
        ->json->{pagination}{next_cursor};
    $c->ask("GET", "/api/v1/events?wait=25&cursor=$cursor");
    ok(wait_for(sub { $server->sql("postgres", "SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory' AND mode = 'ShareLock'") }, 20),
        "19.4 somebody listens for a request that waits");
    my $began = time;
    my $agent = uuid();
    $server->sql($database, "INSERT INTO crmapi.agent (id, workspace_id, slug,
        name) VALUES ('$agent', '$w', 'ada', 'Ada')");
    status_is($httpd->client(key => $key, timeout => 60)->post(
        "/api/v1/contacts", { bot_id => $agent }), 201, "an event");
    is($c->read_response("GET")->json->{data}[0]{type}, "contact.created",
        "and tells it");
    cmp_ok(time - $began, "<", 15 * busy(), "when it happens");
    $httpd->stop;
};

subtest "5.5 a database whose name the name service is silent about" => sub {
    my $port = free_port();
    my $server = CrmTest::Postgres->start(port => $port,
        listen_addresses => "'127.0.0.1'");
    my $database = do { local $ENV{CRM_TEST_PG} = $server->host; database() };
    my $api = $CrmTest::Postgres::API;
    lead("db.test", "127.0.0.1");
    my $httpd = httpd(env => \%env, children => 1, database => $database,
        conninfo => "host=db.test port=$port dbname=$database user=$api"
            . " sslmode=disable gssencmode=disable",
        conf => "CrmApiDatabaseTimeout 3s\n", level => "debug", shows => ["health"],
        expect_log => [qr/translate host name .*: the name service gave no answer/]);
    # who notices first that a session has ended; counts of usage
    $httpd->may_log(qr/CRM2001: .* 57P01|CRM1109/);
    # with a key that nobody has: 401 comes from the database
    my $ask = sub { $httpd->client(key => "svc_live_" . "x" x 30, timeout => 300)
        ->get("/api/v1/agents")->status };
    is($ask->(), 401, "it is asked");
    lead("db.test", "silent");
    is($ask->(), 401, "the connections that there are serve");
    $server->sql("postgres", "SELECT pg_terminate_backend(pid, 20000) FROM"
        . " pg_stat_activity WHERE usename = '$api'");
    my @clients = map { CrmTest::Child->start($ask) } 1 .. 6;
    my $began = time;
    $httpd->client(timeout => 300)->get("/health/ready");
    cmp_ok(time - $began, "<", 5 * busy(), "15.2 the health check does not wait");
    is_deeply([map { $_->result } @clients], [(503) x 6], "otherwise it is 503");
    my @took = $httpd->log_text =~ /CRM1201: .*: 503, .* all (\d+) us/g;
    is(grep({ $_ < 12e6 * busy() } @took), 6, "after the time limit: @took us");
    lead("db.test", "127.0.0.1");
    ok(wait_for(sub { $ask->() == 401 }, 20), "then it is asked again");
    $httpd->stop;
};

# A server at 127.0.0.1 and its database; both, and the conninfo of crmapid with HOSTS.
sub server_at {
    my ($hosts) = @_;
    my $port = free_port();
    my $server = CrmTest::Postgres->start(port => $port,
        listen_addresses => "'127.0.0.1'");
    my $database = do { local $ENV{CRM_TEST_PG} = $server->host; database() };
    return ($server, $database, "host=$hosts port=$port dbname=$database"
        . " user=$CrmTest::Postgres::WORKER sslmode=disable gssencmode=disable");
}

# End all sessions of SERVER's crmapid.
sub end_sessions {
    $_[0]->sql("postgres", "SELECT pg_terminate_backend(pid, 20000) FROM"
        . " pg_stat_activity WHERE usename = '$CrmTest::Postgres::WORKER'");
}

subtest "crmapid and a name service that is silent about its database" => sub {
    my ($server, $database, $conninfo) = server_at("db.test");
    lead("db.test", "127.0.0.1");
    my $worker = worker(database => $database, env => \%env, conninfo => $conninfo,
        expect_log => [qr/translate host name .*: the name service gave no answer/,
            qr/CRM3003/]);
    # which thread notices first that its session has ended, and how
    $worker->may_log(qr/CRM2001: .* (?:57P01|server closed the connection)/);
    lead("db.test", "silent");
    end_sessions($server);
    ok(wait_for(sub { $worker->log_text =~ /the name service gave no/ }, 20),
        "it says so");
    lead("db.test", "127.0.0.1");
    ok(wait_for(sub { $worker->log_text =~ /CRM3004/ }, 20), "and goes on after it");
    lead("db.test", "silent");
    end_sessions($server);
    ok(wait_for(sub { $worker->log_text =~ /CRM3004.*CRM3003/s }, 20), "again");
    my $began = time;
    $worker->stop;
    cmp_ok(time - $began, "<", 6 * busy(), "it ends without an answer");
};

# How many sockets have, or try to get, a connection to PORT of 127.0.0.1.
sub connecting {
    my $to = sprintf "0100007F:%04X", $_[0];
    return scalar(() = read_file("/proc/net/tcp") =~ /: \S+ $to 0[12] /g);
}

# How crmapid is told to end, and the line that says that it has.
my %ends = (TERM => qr/CRM3009/, HUP => qr/CRM3001.*CRM3001/s);

subtest "crmapid ends, and its database's host says nothing" => sub {
    my ($server, $database, $conninfo) = server_at("127.0.0.1");
    my ($port) = $conninfo =~ /port=(\d+)/;
    for my $connects (0, 1) {
        for my $signal (sort keys %ends) {
            my $worker = worker(database => $database, conninfo => $conninfo
                . " connect_timeout=60", conf => { status_listen => "127.0.0.1:"
                . free_port() }, expect_log => [qr/CRM2001: /, qr/CRM3003/]);
            end_process(delete $server->{pid}, "INT", 20);
            # it takes no connection, or takes it and says nothing
            my $silent = $connects ? IO::Socket::INET->new(Listen => 128,
                LocalAddr => "127.0.0.1", LocalPort => $port, ReuseAddr => 1)
                : silent("127.0.0.1", $port);
            ok(wait_for(sub { $worker->log_text =~ /CRM3003/ }, 20), "it is away");
            # each thread tries twice a second
            ok(wait_for(sub { connecting($port) >= 8 }, 20), "all connect");
            my $began = time;
            kill $signal => $worker->pid;
            ok(wait_for(sub { $worker->log_text =~ $ends{$signal} }, 40), $signal);
            cmp_ok(time - $began, "<", 6 * busy(), "it does not wait for the host");
            $worker->stop;
            cmp_ok(time - $began, "<", 12 * busy(), "it ends");
            undef $silent;
            $server->launch;
        }
    }
};

subtest "crmapid waits for its database, whose host says nothing" => sub {
    my $silent = IO::Socket::INET->new(Listen => 128, LocalAddr => "127.0.0.1");
    my $worker = worker(no_start => 1, conninfo => "host=127.0.0.1 port="
        . $silent->sockport . " dbname=x connect_timeout=60");
    $worker->{no_wait} = 1;
    $worker->start;
    ok(wait_for(sub { IO::Select->new($silent)->can_read(0) }, 20), "it connects");
    my $began = time;
    $worker->stop;
    cmp_ok(time - $began, "<", 6 * busy(), "it ends at once");
};

subtest "several names, of which one has no answer" => sub {
    my ($server, $database, $conninfo) = server_at("db.test,127.0.0.1");
    lead("db.test", "silent");
    write_file("$scratch/service", "[crm]\n" . join("\n", split / /, $conninfo) . "\n");
    for my $from ($conninfo, "service=crm") {
        my $began = time;
        my $worker = worker(database => $database, conninfo => $from,
            env => { %env, PGSERVICEFILE => "$scratch/service" });
        ok(wait_for(sub { $server->sql($database, "SELECT count(*) FROM"
            . " crmapi.worker") }, 20), "the next one is used: $from");
        cmp_ok(time - $began, "<", 12 * busy(), "soon");
        $worker->stop;
    }
};

subtest "a database whose name leads to another address" => sub {
    my ($server, $database, $conninfo) = server_at("db.test");
    lead("db.test", "127.0.0.1");
    my $worker = worker(database => $database, env => \%env, conninfo => $conninfo,
        expect_log => [qr/CRM2001: /, qr/CRM3003/]);
    ok(wait_for(sub { $server->sql($database, "SELECT count(*) FROM"
        . " crmapi.worker") }, 20), "it is used");
    end_process(delete $server->{pid}, "INT", 20);
    $server->configure(listen_addresses => "'127.0.0.2'");
    $server->launch;
    lead("db.test", "127.0.0.2");
    ok(wait_for(sub { $worker->log_text =~ /CRM3004/ }, 30), "it is used there");
    $worker->stop;
};

subtest "crmapictl and a name service that is silent" => sub {
    my ($server, $database, $conninfo) = server_at("db.test");
    lead("db.test", "silent");
    my $began = time;
    my ($code, undef, $err) = crmapictl(undef, { env => { %env, CRMAPI_DATABASE =>
        $conninfo } }, "--timeout", 1, "status");
    is($code, 1, "it fails");
    like($err, qr/the name service gave no answer in time/, "and says why");
    cmp_ok(time - $began, "<", 6 * busy(), "after the time limit");
};

subtest "16.1 a store whose name moves to another server" => sub {
    my $port = free_port();
    my @redis = map { CrmTest::Redis->new(port => $port, address => $_) }
        "127.0.0.1", "127.0.0.2";
    lead("store.test", "127.0.0.1");
    my $host = CrmTest::Shared::host("redis://store.test:$port", $PATIENT,
        env => \%env, expect_log => [qr/CRM4002: .*: READONLY / => 1]);
    my $w = workspace($host);
    is(brief(ask($host, $w->key)), "200 19", "it counts");
    # the old primary follows the new one, as failover software has it
    $redis[0]->run("REPLICAOF", "127.0.0.2", $port);
    lead("store.test", "127.0.0.2");
    my $began = time;
    my $other = $w->make_key("read,write");
    ok(wait_for(sub { is_back($host, $other) }, 20), "it is used again");
    cmp_ok(time - $began, "<", 3 * busy(), "within two seconds");
    like($redis[1]->run("KEYS", "*"), qr/^crmapi:/, "at its new address");
    $host->stop;
};

subtest "16.1 a store whose name the name service is silent about" => sub {
    my $redis = CrmTest::Redis->new;
    lead("store.test", "silent");
    my $began = time;
    my $host = CrmTest::Shared::host("redis://store.test:" . $redis->port,
        "timeout=100ms", env => \%env, expect_log =>
        # the store itself may take longer than that on a busy machine
        [qr/CRM4002: .*: (?:the name service gave )?no answer in time/]);
    my $w = workspace($host);
    # each half second one of them asks for the name
    my $until = time + 1.5;
    my $slowest = 0;
    my %status;
    for (my $n = 0; $n < $LIMIT + 5 || time < $until; $n++) {
        my $asked = time;
        $status{ask($host, $w->key)->status}++;
        $slowest = time - $asked if time - $asked > $slowest;
    }
    is($status{200}, $LIMIT, "requests are served and counted");
    cmp_ok($slowest, "<", 5 * busy(), "and do not wait for it: $slowest s");
    $host->restart;
    cmp_ok(time - $began, "<", 20 * busy(), "nor does a start or a restart");
    lead("store.test", "127.0.0.1");
    my $other = $w->make_key("read,write");
    ok(wait_for(sub { is_back($host, $other) }, 20), "then it is used");
    $host->stop;
};

done_testing;
