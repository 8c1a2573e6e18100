# SPDX-License-Identifier: Apache-2.0
# 16-outage.t: what error_log says of a database that is away, and when: one line
# with host, role and cause, one when it is back, none of mod_dbd; and the gauge
# in the metrics (contract 15.1)
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
use IO::Socket::INET ();
use Time::HiRes qw(time);

my $port = free_port();
# The 4096 rounds of SCRAM take valgrind a second of processor time for each connection,
# and who looks at a database that is away gives each two.
my $METHOD = valgrinded() ? "md5" : "scram-sha-256";
# A server that is killed has what was committed: otherwise crmapid finds that an older
# state was restored.
my $pg = CrmTest::Postgres->get(port => $port,
    listen_addresses => "'127.0.0.1'", synchronous_commit => "on",
    password_encryption => "'$METHOD'");
my $database = database();
my $ROLE = $CrmTest::Postgres::API;
my $PASSWORD = "geheim-Qx7";
my $CONF = <<'END';
CrmApiReadLimit 0
CrmApiWriteLimit 0
<Location "/metrics">
    SetHandler crmapi-metrics
    Require local
</Location>
END
my $AWAY = qr/CRM(?:1305|2001): /;
my $BACK = qr/CRM1304: the database is ready now/;

# Lines of the log of level warn and above, or of mod_dbd, or that say that the
# database is back.
sub told {
    my ($httpd) = @_;
    return grep { /$BACK|\[dbd:|AH0(?:06[23]|265)/
        || /\[\w*:(?:warn|error|crit|alert|emerg)\]/ }
        split /\n/, $httpd->log_text;
}

# LINE is ours, and names host, role and CAUSE.
sub is_outage {
    my ($line, $cause, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    like($line, qr/\[crmapi:error\].*$AWAY/, "$name: ours");
    like($line, $cause, "$name: it has the cause");
    like($line, qr/\bhost=\S*\Q@{[$pg->host]}\E|\bhost=127\.0\.0\.1/,
        "$name: the host");
    like($line, qr/\buser=$ROLE\b/, "$name: and the role");
}

# The gauge of HTTPD's database, undef if there is none.
sub usable {
    my ($httpd) = @_;
    my ($value) = $httpd->client->get("/metrics")->body
        =~ /^crmapi_database_usable\{vhost="[^"]*",database="[^"]*dbname=
            $database[^"]*"\}\ ([01])$/mx;
    return $value;
}

# Ask HTTPD from N clients at once, TIMES each. Return the statuses.
sub ask {
    my ($httpd, $key, $n, $times) = @_;
    my @clients = map { CrmTest::Child->start(sub {
        return map { $httpd->client(key => $key)->get("/api/v1/agents")
            ->status } 1 .. $times;
    }) } 1 .. $n;
    my %status;
    $status{$_}++ for map { $_->result } @clients;
    return \%status;
}

my $first = httpd(database => $database, conf => $CONF);
my $key = workspace($first)->key;
is(usable($first), 1, "15.1 the gauge of a database that can be used");
$first->stop;

# the others: build/test --all worker prefork
for my $mpm ($ENV{CRM_MPM} || "event") {
    subtest "$mpm: started without PostgreSQL" => sub {
        $pg->halt;
        my $httpd = httpd(database => $database, conf => $CONF, mpm => $mpm,
            expect_log => [$AWAY => 1]);
        is_deeply(ask($httpd, $key, 3, 5), { 503 => 15 }, "all are told 503");
        my @told = told($httpd);
        is(scalar @told, 1, "it is said once, by nobody else")
            or diag(join "\n", @told);
        is_outage($told[0], qr/No such file or directory|Connection refused/,
            "the line");
        is(usable($httpd), 0, "15.1 the gauge says so");
        $pg->resume;
        ok(wait_for(sub { (usable($httpd) // "") eq 1 }, 20),
            "15.1 and sees by itself that it is back");
        is_deeply(ask($httpd, $key, 3, 5), { 200 => 15 }, "it serves");
        @told = told($httpd);
        is(scalar(grep { /$BACK/ } @told), 1, "the end is said once");
        is(scalar @told, 2, "and nothing else") or diag(join "\n", @told);
        $httpd->stop;
    };

    subtest "$mpm: an outage in the middle" => sub {
        my $httpd = httpd(database => $database, conf => $CONF, mpm => $mpm);
        is_deeply(ask($httpd, $key, 3, 5), { 200 => 15 }, "before");
        for my $times (1, 2) {
            $httpd->expect_log($AWAY => 1);
            # Two have been sent, and get no answer. At the same time they could
            # share a statement.
            my $let_go = holding($database, "LOCK TABLE crmapi.contact");
            my @sent = map {
                my $child = CrmTest::Child->start(sub {
                    return $httpd->client(key => $key)->get("/api/v1/contacts")
                        ->status;
                });
                wait_blocked($database, $_);
                $child;
            } 1 .. 2;
            $pg->halt($times == 1 ? "INT" : "QUIT");
            eval { $let_go->() };
            # A fast shutdown may end the session that holds the lock first.
            my @got = map { $_->result } @sent;
            is(scalar(grep { $_ == 503 || ($times == 1 && $_ == 200) } @got), 2,
                "what was under way: 503, or its answer") or diag("@got");
            is_deeply(ask($httpd, $key, 4, 10), { 503 => 40 },
                "outage $times: 503");
            is(usable($httpd), 0, "15.1 the gauge says so");
            $pg->resume;
            ok(wait_for(sub { $httpd->client(key => $key)
                ->get("/api/v1/agents")->status == 200
                && (() = $httpd->log_lines($BACK)) == $times }, 20),
                "the end is said");
            is_deeply(ask($httpd, $key, 3, 5), { 200 => 15 }, "it serves");
            is(usable($httpd), 1, "15.1 the gauge says so");
            my @told = told($httpd);
            is(scalar @told, 2 * $times, "two lines for each outage")
                or diag(join "\n", @told);
            # what fails first is a statement, and the cause is what it is not
            is_outage($told[-2], qr/No\ such\ file|refused|shutting\ down
                |server\ closed\ the\ connection/x, "outage $times");
        }
        $httpd->stop;
    };

    subtest "$mpm: a wrong password" => sub {
        write_file($pg->host . "/data/pg_hba.conf", "local all all trust\n"
            . "host all all 127.0.0.1/32 $METHOD\n");
        sql("postgres", "SELECT pg_reload_conf()");
        sql("postgres", "ALTER ROLE $ROLE PASSWORD '$PASSWORD-other'");
        my $httpd = httpd(database => $database, conf => $CONF, mpm => $mpm,
            expect_log => [$AWAY => 1], conninfo => "host=127.0.0.1"
            . " port=$port dbname=$database user=$ROLE password=$PASSWORD");
        is_deeply(ask($httpd, $key, 3, 5), { 503 => 15 }, "all are told 503");
        my @told = told($httpd);
        is(scalar @told, 1, "it is said once") or diag(join "\n", @told);
        is_outage($told[0], qr/password authentication failed/, "the line");
        is(usable($httpd), 0, "15.1 the gauge says so");
        sql("postgres", "ALTER ROLE $ROLE PASSWORD '$PASSWORD'");
        is_deeply(ask($httpd, $key, 3, 5), { 200 => 15 },
            "with the right one it serves, without a restart");
        @told = told($httpd);
        is(scalar @told, 2, "which is said") or diag(join "\n", @told);
        unlike($httpd->log_text . $httpd->client->get("/metrics")->body,
            qr/\Q$PASSWORD\E/, "3.4 log and metrics have no password");
        $httpd->stop;
    };
}

# Lines of WORKER's log about the database of level warning and above, without other
# reasons of an outage that lasts for five seconds, as on a busy machine.
sub told_by {
    my ($worker) = @_;
    my ($begun, @told);

    for (split /\n/, $worker->log_text) {
        undef $begun if /CRM3004/;
        next unless /T(\d+):(\d+):([\d.]+)Z.*\] (?:error|warning): CRM(?:20|300)/;
        my $at = ($1 * 60 + $2) * 60 + $3;
        push @told, $_ unless defined $begun && /CRM2001/ && $at - $begun >= 5;
        $begun //= $at;
    }
    return @told;
}

subtest "crmapid: an outage in the middle" => sub {
    my $WORKER = $CrmTest::Postgres::WORKER;
    my $worker = worker(database => $database, conf => { log_level => "notice" });
    for my $signal ("INT", "QUIT", "KILL") {
        my $before = told_by($worker);
        ok(wait_for(sub { sql($database, "SELECT count(*) FROM pg_stat_activity
            WHERE usename = '$WORKER'") > 1 }, 20), "it has its sessions");
        $worker->expect_log(qr/error: CRM2001: database: /, qr/CRM3003: / => 1);
        $pg->halt($signal);
        ok(wait_for(sub { $worker->log_text =~ /CRM3003(?!.*CRM3004)/s }, 20),
            "SIG$signal: it is told");
        my @told = told_by($worker);
        # a busy server may accept three connections before it is away
        like($told[$before], qr/:\ (?:FATAL:\ +the\ database\ system\ is\ shutting\ down
            |No\ such\ file\ or\ directory|Connection\ refused
            @{[busy() > 1.5 ? "|server\\ closed\\ the\\ connection" : ""]})/x,
            "the first line has the cause");
        like($told[$before], qr/\buser=$WORKER\b/, "and the role");
        $pg->resume;
        ok(wait_for(sub { $worker->log_text =~ /CRM3004(?!.*CRM3003)/s }, 20),
            "and its end");
        is(scalar told_by($worker), $before + 2, "in two lines")
            or diag(join "\n", told_by($worker));
    }
    sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE usename = '$WORKER'");
    ok(wait_for(sub { sql($database, "SELECT count(*) FROM pg_stat_activity
        WHERE usename = '$WORKER'") > 1 }, 20), "a session that ends has a next one");
    is(scalar told_by($worker), 6, "which is no outage")
        or diag(join "\n", told_by($worker));
    $worker->stop;
};

subtest "crmapid: an upkeep task that an outage ends has not failed" => sub {
    sql($database, <<'END');
CREATE FUNCTION crmapi.nap() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
CREATE TRIGGER nap BEFORE DELETE ON crmapi.send_count
    FOR EACH STATEMENT EXECUTE FUNCTION crmapi.nap();
END
    for my $signal ("INT", "QUIT", "KILL") {
        sql($database, "DELETE FROM crmapi.upkeep");
        my $worker = worker(database => $database, expect_log => [
            qr/error: CRM2001: database: /, qr/CRM3003: / => 1]);
        ok(wait_for(sub { sql("postgres", "SELECT count(*) FROM pg_stat_activity
            WHERE wait_event = 'PgSleep'") }, 20), "a task is under way");
        $pg->halt($signal);
        ok(wait_for(sub { $worker->log_text =~ /CRM3003/ }, 20),
            "SIG$signal: the outage is told") or diag($worker->log_text);
        $pg->resume;
        ok(wait_for(sub { sql($database, "SELECT count(*) FROM pg_stat_activity
            WHERE usename = '$CrmTest::Postgres::WORKER'") > 1 }, 20),
            "and nothing else");
        $worker->stop;
    }
    sql($database, "DROP FUNCTION crmapi.nap CASCADE");
};

subtest "sessions that the server ends when they are idle" => sub {
    my @roles = ($ROLE, $CrmTest::Postgres::WORKER);
    my $idle = 0.1 * busy();            # a session needs less to begin
    sql("postgres", "ALTER ROLE $_ SET idle_session_timeout = '${idle}s'") for @roles;
    my $httpd = httpd(database => $database, conf => $CONF);
    my $worker = worker(database => $database, conf => { lease => "3s" });
    my $sessions = "SELECT string_agg(pid::text, ' ' ORDER BY pid)
        FROM pg_stat_activity WHERE usename = '$CrmTest::Postgres::WORKER'";
    is($httpd->client(key => $key)->get("/api/v1/agents")->status, 200, "it serves");
    ok(wait_for(sub { (() = sql($database, $sessions) =~ / /g) > 0 }, 20),
        "crmapid has its sessions");
    my @before = split / /, sql($database, $sessions);
    sleep 1 + 2 * $idle;
    my %now = map { $_ => 1 } split / /, sql($database, $sessions);
    is_deeply([grep { !$now{$_} } @before], [], "and keeps them");
    sql("postgres", "ALTER ROLE $_ RESET idle_session_timeout") for @roles;
    $_->stop for $worker, $httpd;
};

subtest "a login that has not the rights of the API" => sub {
    sql("postgres", "ALTER ROLE $CrmTest::Postgres::WORKER PASSWORD '$PASSWORD'");
    my $httpd = httpd(database => $database, conf => $CONF,
        expect_log => [qr/CRM1302: the login has not the rights of mod_crmapi/ => 1],
        conninfo => "host=127.0.0.1 port=$port dbname=$database user="
            . "$CrmTest::Postgres::WORKER password=$PASSWORD");
    is_deeply(ask($httpd, $key, 3, 5), { 503 => 15 }, "all are told 503");
    my @told = told($httpd);
    is(scalar @told, 1, "it is said once") or diag(join "\n", @told);
    like($told[0], qr/role create api.*\buser=$CrmTest::Postgres::WORKER\b/,
        "who has not, and what to do");
    is(usable($httpd), 0, "15.1 the gauge says so");
    $httpd->stop;
};

# Nothing says how long to wait for it.
subtest "a server that takes connections, but says nothing" => sub {
    my $silent = IO::Socket::INET->new(Listen => 20, LocalAddr => "127.0.0.1");
    my $ask = sub { $_[0]->client(key => $key, timeout => 60)
        ->get("/api/v1/agents")->status };
    my $began = time;
    my $httpd = httpd(database => $database, conf => $CONF, dbd => "DBDMin 0\n",
        expect_log => [$AWAY => 1], conninfo => "host=127.0.0.1 port="
            . $silent->sockport . " dbname=$database user=$ROLE");
    is($ask->($httpd), 503, "the API answers");
    my @told = told($httpd);
    is(scalar @told, 1, "it is said once") or diag(join "\n", @told);
    is_outage($told[0], qr/failed: no answer in time /, "the line");
    $httpd->stop;
    $httpd = httpd(database => $database, conf => $CONF, dbd => "DBDMin 0\n",
        conninfo => "host=127.0.0.1,127.0.0.1 port=" . $silent->sockport
            . ",$port dbname=$database user=$ROLE password=$PASSWORD");
    is($ask->($httpd), 200, "another server is asked");
    $httpd->stop;
    cmp_ok(time - $began, "<", 30 * busy(), "each waits for seconds only");
};

subtest "how long libpq waits for a host: PGCONNECT_TIMEOUT, else five seconds" => sub {
    for my $given (undef, 17) {
        my $httpd = httpd(database => $database, modules => ["headers"],
            env => { $given ? (PGCONNECT_TIMEOUT => $given) : () }, conf => $CONF
                . "Header set X-Wait expr=%{osenv:PGCONNECT_TIMEOUT}\n");
        is($httpd->client(key => $key)->get("/api/v1/agents")->header("X-Wait"),
            $given // 5, $given ? "it is given" : "it is not");
        $httpd->stop;
    }
};

# Ask HTTPD from N clients at once, one request each. Return their statuses, and how
# long each took, in s.
sub ask_timed {
    my ($httpd, $n) = @_;
    my @clients = map { CrmTest::Child->start(sub {
        my $began = time;
        my $status = $httpd->client(key => $key, timeout => 120)
            ->get("/api/v1/agents")->status;
        return [$status, time - $began];
    }) } 1 .. $n;
    my @got = map { $_->result } @clients;
    my %status;
    $status{$_->[0]}++ for @got;
    return (\%status, map { $_->[1] } @got);
}

# mod_dbd makes one connection at a time: who waits for it must not try next.
subtest "many requests to a server that says nothing" => sub {
    my $silent = IO::Socket::INET->new(Listen => 128, LocalAddr => "127.0.0.1");
    my $httpd = httpd(database => $database, conf => $CONF, children => 1,
        dbd => "DBDMin 0\nDBDMax 8\n", expect_log => [$AWAY => 1],
        conninfo => "host=127.0.0.1 port=" . $silent->sockport
            . " dbname=$database user=$ROLE connect_timeout=8");
    # a process of prefork has one request, which waits for its own connection
    for my $late (($ENV{CRM_MPM} || "") eq "prefork" ? 24 : 1, 0) {
        my ($status, @took) = ask_timed($httpd, 24);
        is_deeply($status, { 503 => 24 }, "all are told 503");
        cmp_ok(scalar(grep { $_ > 6 * busy() } @took), "<=", $late,
            "$late of them after connect_timeout: @took");
    }
    $httpd->stop;
};

subtest "new connections get no answer, those that there are serve" => sub {
    plan(skip_all => "prefork has a connection for each process")
        if ($ENV{CRM_MPM} || "") eq "prefork";
    my $proxy = CrmTest::Proxy->new;
    my $httpd = httpd(database => $database, children => 1,
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 4\n",
        conf => "${CONF}CrmApiDatabaseWait 20s\n", may_log => [qr/CRM130[356]/],
        conninfo => $proxy->conninfo($database, $ROLE));
    is_deeply(ask($httpd, $key, 1, 1), { 200 => 1 }, "one is there");
    $proxy->ignore(1);
    ask_timed($httpd, 16) until $httpd->log_lines(qr/CRM130[56]/);
    for my $round (1 .. 5) {
        my ($status, @took) = ask_timed($httpd, 16);
        is_deeply($status, { 200 => 16 }, "all are served");
        is(grep({ $_ > 1.8 * busy() } @took), 0, "and soon: @took");
    }
    $proxy->ignore(0);
    ok(wait_for(sub { ask($httpd, $key, 8, 4); $proxy->sessions > 1 }, 20),
        "then there are more again");
    $httpd->stop;
};

subtest "a database that hangs leaves threads to the rest of the site" => sub {
    plan(skip_all => "prefork has one request a process")
        if ($ENV{CRM_MPM} || "") eq "prefork";
    my $httpd = httpd(database => $database, conf => $CONF, children => 1,
        dbd => "DBDMin 1\nDBDMax 8\n", expect_log => [qr/CRM1303/ => 1]);
    my $let_go = holding($database, "LOCK TABLE crmapi.contact");
    my @clients = map { CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my $client = $httpd->client(key => $key, timeout => 120);
        $client->get("/api/v1/contacts") while $go_on->();
        return;
    }) } 1 .. 20;
    wait_blocked($database, 1);
    my $page = sub {
        my $began = time;
        is($httpd->client(timeout => 60)->get("/nothing")->status, 404, "a page");
        return time - $began;
    };
    ok(wait_for(sub { $httpd->log_text =~ /CRM1303/ && $page->() < 0.3 * busy() }, 30),
        "it is found out");
    my @took = map { $page->() } 1 .. 8;
    is(grep({ $_ > 1 * busy() } @took), 0, "pages are served at once: @took");
    $let_go->();
    $_->stop for @clients;
    $_->result for @clients;
    $httpd->stop;
};

subtest "crmapictl: what is said of several hosts" => sub {
    my $conninfo = "host=nowhere.invalid,127.0.0.1 port=5432,1 dbname=$database"
        . " connect_timeout=2";
    my ($code, $out, $err) = crmapictl(undef, "--database", $conninfo, "status");
    is($code, 1, "it fails");
    my $first = qr/could not translate host name "\.\.\." to address: [^";]+/;
    my $second = qr/connection to server at "127\.0\.0\.1", port 1 failed: /;
    like($err, qr/^[^\n]*: $first; $second\S[^;]+\n\z/, "of each why");
};

subtest "LogLevel dbd: shows what mod_dbd says" => sub {
    $pg->halt;
    my $httpd = httpd(database => $database, conf => $CONF,
        level => "info dbd:error", expect_log => [qr/AH00629: /, $AWAY => 1],
        may_log => [qr/AH00633: /, qr/AH00636: /, qr/AH02655: /]);
    is($httpd->client(key => $key)->get("/api/v1/agents")->status, 503, "503: away");
    $pg->resume;
    $httpd->stop;
};

subtest "DBDParams that libpq cannot read" => sub {
    my $httpd = httpd(database => $database, conf => $CONF,
        expect_log => [qr/CRM1108: DBDParams/ => 1],
        conninfo => "host=127.0.0.1 password=$PASSWORD $PASSWORD");
    is($httpd->client(key => $key)->get("/api/v1/agents")->status, 503, "503: away");
    unlike($httpd->log_text, qr/\Q$PASSWORD\E/, "3.4 no password");
    $httpd->stop;
};

subtest "another module's pool keeps its words" => sub {
    my $httpd = httpd(database => $database, conf => <<"END",
$CONF
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName crm.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName other.example
    CrmApi Off
    DBDParams "host=/nonexistent dbname=other"
    DBDMin 1
</VirtualHost>
END
        expect_log => [qr/AH00629: Can't connect to pgsql: .*nonexistent/]);
    is($httpd->client(host => "crm.example", key => $key)
        ->get("/api/v1/agents")->status, 200, "the API serves");
    $httpd->stop;
};

done_testing;
