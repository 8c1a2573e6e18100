# SPDX-License-Identifier: Apache-2.0
# 54-metrics.t: the handler crmapi-metrics: each counter equals what was
# requested, in a format that Prometheus reads (contract 15.1)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Metrics;
use Time::HiRes qw(time);

my $slow = valgrinded() || sanitized() ? 10 : 1;

# How often what is asked. 54-metrics-many.t asks 10,000 times in all.
my $many = $ENV{CRM_METRICS_MANY};
my ($reads, $missing, $writes, $faults, $events) = $many
    ? (7275, 1500, 500, 250, 300) : (1200, 300, 100, 50, 60);
my $EVENTS = "/crmapi/intake/v1/events";
my $LOCATION = <<"END";
<Location "/metrics">
    SetHandler crmapi-metrics
    Require local
</Location>
END
my $conf = <<"END";
CrmApiReadLimit 0
CrmApiWriteLimit 0
CrmApiAddressLimit 100
CrmApiAddresses 64
CrmApiUnknownKeyLimit 1000
CrmApiDatabaseWait 30s
CrmApiIntakeLimit 0
CrmApiUnsubscribe On
CrmApiIntake On
$LOCATION
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName a.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName b.example
    CrmApiReadLimit 20
</VirtualHost>
END
my $database = database();
my $httpd = httpd(database => $database, conf => $conf,
    dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n", children => 2);
my $port = $httpd->port;
my $w = workspace($httpd, twin => 0);
my $token = $w->token("t");

sub client { $httpd->client(host => "$_[0].example", key => $w->key,
    @_[1 .. $#_]) }
sub scrape { $httpd->client->get("/metrics", headers => {
    Accept => "application/openmetrics-text; version=1.0.0,*/*;q=0.1" }) }

# The samples whose name matches PATTERN; without zeros.
sub now_at {
    my ($pattern) = @_;
    my $samples = samples(scrape()->body);
    return { map { $_ => $samples->{$_} }
        grep { /$pattern/ && $samples->{$_} != 0 } keys %$samples };
}

# What was counted since BEFORE, in samples that match PATTERN.
sub since {
    my ($before, $pattern) = @_;
    my $now = now_at($pattern);
    return { map { $_ => $now->{$_} - ($before->{$_} || 0) }
        grep { $now->{$_} != ($before->{$_} || 0) } keys %$now };
}

sub requests_key {
    my ($vhost, $mount, $route, $class) = @_;
    return qq(crmapi_requests_total{vhost="$vhost.example:$port",)
        . qq(mount="$mount",route="$route",status="${class}xx"});
}

# What is asked: vhost, times, status, mount, route, how.
my $none = CrmTest::uuid();
my $n = 0;
my $unknown = sub { sprintf "svc_live_%030d", ++$n };
my @mix = (
    ["a", $reads, 200, "api", "GET /agents", sub { $_[0]->get("/api/v1/agents") }],
    ["a", $missing, 404, "api", "GET /contacts/{id}",
        sub { $_[0]->get("/api/v1/contacts/$none") }],
    ["a", $writes, 201, "api", "POST /contacts", sub {
        $_[0]->post("/api/v1/contacts", { bot_id => $w->agent }) }],
    ["a", $faults, 422, "api", "POST /contacts", sub {
        $_[0]->post("/api/v1/contacts", { email => 1 }) }],
    ["a", 40, 401, "api", "GET /contacts", sub {
        $httpd->client(host => "a.example")->get("/api/v1/contacts") }],
    ["a", 30, 401, "api", "GET /companies", sub {
        client("a", key => $unknown->())->get("/api/v1/companies") }],
    ["a", 25, 404, "api", "none", sub { $_[0]->get("/api/v1/nothing") }],
    ["a", 5, 405, "api", "none", sub { $_[0]->delete("/api/v1/agents") }],
    ["a", 10, 204, "api", "none", sub { $_[0]->options("/api/v1/agents") }],
    ["b", 20, 200, "api", "GET /agents", sub { $_[0]->get("/api/v1/agents") }],
    ["b", 15, 429, "api", "GET /agents", sub { $_[0]->get("/api/v1/agents") }],
    ["a", $events, 200, "intake", "POST intake/events", sub {
        client("a", key => $token)->post($EVENTS, [{ event_id => "e" . ++$n,
            channel => "sms", bot_id => $w->agent,
            from => { phone_number => "+4930$n" },
            message => { content => "Hello" } }]) }],
    ["b", 10, 401, "intake", "POST intake/events", sub {
        client("b", key => "none")->post($EVENTS, []) }],
    ["b", 20, 403, "unsubscribe", "GET unsubscribe/{token}", sub {
        $_[0]->get("/crmapi/unsubscribe/token") }],
);

subtest "after a known mix of requests each counter is equal to it" => sub {
    my %client = map { $_ => client($_) } qw(a b);
    # The first answer lets the harness read the OpenAPI document.
    client("a")->get("/api/v1/agents");
    ok(wait_for(sub { my $sum = 0;
        $sum += $_ for values %{now_at(qr/^crmapi_requests_total/)};
        $sum >= 2 }, 10), "the first requests were counted");
    my $before = now_at(qr/./);
    my (%requests, %by_mount);
    my $sum = 0;
    $sum += $_->[1] for @mix;
    is($sum, 10000, "10,000 requests") if $many;

    for my $part (@mix) {
        my ($vhost, $times, $status, $mount, $route, $ask) = @$part;
        my %got;

        $got{$ask->($client{$vhost})->status}++ for 1 .. $times;
        is_deeply(\%got, { $status => $times }, "$vhost: $route: $status");
        $requests{requests_key($vhost, $mount, $route, int $status / 100)}
            += $times;
        $by_mount{qq({vhost="$vhost.example:$port",mount="$mount"})} += $times;
    }
    # A request is counted after its answer was sent.
    wait_for(sub { my $sum = 0;
        $sum += $_ for values %{since($before, qr/^crmapi_requests_total/)};
        my $want = 0;
        $want += $_ for values %requests;
        $sum >= $want }, 10);
    is_deeply(since($before, qr/^crmapi_requests_total/), \%requests,
        "requests by vhost, route and class");
    is_deeply(since($before, qr/^crmapi_request_duration_seconds_count/),
        { map { ("crmapi_request_duration_seconds_count$_" => $by_mount{$_}) }
            keys %by_mount }, "their times, by vhost and mount");
    is(since($before, qr/^crmapi_route_duration_seconds_count/)
        ->{'crmapi_route_duration_seconds_count{mount="api",route="GET /agents"}'},
        $reads + 35, "their times, by route");
    is_deeply(since($before, qr/^crmapi_limited_total/),
        { qq(crmapi_limited_total{vhost="b.example:$port"}) => 15 },
        "limited");
    is_deeply(since($before, qr/^crmapi_limit_\w+_total.*keys/), {
        'crmapi_limit_admitted_total{table="keys",class="read"}'
            => $reads + $missing + 25 + 20,
        'crmapi_limit_refused_total{table="keys",class="read"}' => 15,
        'crmapi_limit_admitted_total{table="keys",class="write"}'
            => $writes + $faults + 5 + $events }, "admitted and refused");
    is_deeply(since($before, qr/^crmapi_limit_\w+_total.*addresses/), {
        # unknown keys and the token; what is no token, links, OPTIONS
        'crmapi_limit_admitted_total{table="addresses",class="look_up"}' => 30 + 1,
        'crmapi_limit_admitted_total{table="addresses",class="unproven"}'
            => 10 + 20 + 10 }, "and of addresses");
    my $look_ups = since($before, qr/^crmapi_key_look_ups_total.*a\.example/);
    my $label = qq(crmapi_key_look_ups_total{vhost="a.example:$port",result=);
    is($look_ups->{$label . '"unknown"}'}, 30, "unknown keys");
    is($look_ups->{$label . '"known"}'}, 1, "the intake token was looked up "
        . "once");
    my $database = since($before, qr/^crmapi_database_duration_seconds_count/);
    my $used = sub { $database->{"crmapi_database_duration_seconds_count"
        . qq({vhost="$_[0].example:$port",mount="$_[1]"})} };
    is($used->("a", "intake"), $events, "times of the database: intake");
    # Not without key, nor a 405, a 404 of no path, OPTIONS or a 429; but a key
    # is confirmed twice a minute.
    my $least = $reads + $missing + $writes + $faults + 30;
    cmp_ok($used->("a", "api"), ">=", $least, "of those that used it");
    cmp_ok($used->("a", "api"), "<=", $least + 3, "and no others");
    cmp_ok($used->("b", "api"), ">=", 20, "of the other vhost");
    cmp_ok($used->("b", "api"), "<=", 23, "and no others");
    is(keys %$database, 3, "and no other mount");
};

subtest "gauges" => sub {
    my $gauge = sub { samples(scrape()->body)->{"crmapi_$_[0]"} };

    is($gauge->("processes"), scalar(my @pids = $httpd->children),
        "processes") unless ($ENV{CRM_MPM} || "") eq "prefork";
    is($gauge->("connections_used"), 0, "no connection is in use");
    is($gauge->("connections_max"), $gauge->("processes"),
        "each process may open one");
    is($gauge->("store_away"), 0, "there is no store");
    cmp_ok($gauge->('limit_entries{table="keys"}'), ">=", 2, "keys");
    is($gauge->('limit_entries_max{table="keys"}'), 65536, "room for keys");
    is($gauge->('limit_entries_max{table="addresses"}'), 64,
        "room for addresses");
    cmp_ok($gauge->('limit_entries{table="addresses"}'), ">=", 1, "addresses");
};

subtest "connections in use, and requests that wait for one" => sub {
    my $before = now_at(qr/./);
    my $let_go = postgres()->hold($database,
        "LOCK TABLE crmapi.contact IN ACCESS EXCLUSIVE MODE");
    my @children = map { CrmTest::Child->start(sub {
        client("a")->post("/api/v1/contacts", { bot_id => $w->agent })->status
    }) } 1 .. 5;
    # two processes, or one for each request with prefork
    ok(wait_for(sub {
        my $is = samples(scrape()->body);
        $is->{crmapi_connections_used} >= 1 && $is->{crmapi_connections_used}
            + $is->{crmapi_connections_waiting} == 5 }, 20),
        "all five are seen") or diag(scrape()->body);
    # so that it is to be seen: who is first of those that share the next statement
    # waits for a connection a moment later
    my $seconds = 0.3;
    select undef, undef, undef, $seconds * busy();
    $let_go->();
    is_deeply([map { $_->result } @children], [(201) x 5], "all are served");
    ok(wait_for(sub { my $is = samples(scrape()->body);
        !$is->{crmapi_connections_used} && !$is->{crmapi_connections_waiting}
    }, 10), "then none is in use");
    my $waits = since($before, qr/^crmapi_connection_wait_seconds/);
    my $label = qq({vhost="a.example:$port"});
    # those that share a statement wait once
    my $count = $waits->{"crmapi_connection_wait_seconds_count$label"};
    # a process of prefork waits for nobody, and opens a connection of its own
    return if ($ENV{CRM_MPM} || "") eq "prefork";
    ok($count >= 2 && $count <= 5, "their waits") or diag($count);
    cmp_ok($waits->{"crmapi_connection_wait_seconds_sum$label"}, ">=",
        0.9 * $seconds, "of this length");  # two clocks
};

subtest "the text" => sub {
    my $r = scrape();
    status_is($r, 200, "OpenMetrics");
    is($r->header("Content-Type"), "application/openmetrics-text; "
        . "version=1.0.0; charset=utf-8", "its type");
    is($r->header("Cache-Control"), "no-store", "nobody keeps it");
    is($r->header("Vary"), "Accept", "what was asked for matters");
    is_deeply([faults($r->body)], [], "its grammar");
    like($r->body, qr/^crmapi_build_info\{version="\d[\d.]*",schema="\d+"\} 1$/m,
        "versions");
    for my $secret ($w->id, $w->key, $token, $w->agent, $w->{name}) {
        unlike($r->body, qr/\Q$secret\E/, "no key, workspace or contact");
    }
    unlike($r->body, qr/[0-9a-f]{8}-[0-9a-f]{4}-/, "no id");
    for my $accept (undef, "*/*", "text/plain",
        "application/openmetrics-text;q=0.5,text/plain;q=0.9") {
        my $r = $httpd->client->get("/metrics",
            headers => { $accept ? (Accept => $accept) : () });
        my $name = $accept // "nothing";
        is($r->header("Content-Type"), "text/plain; version=0.0.4; "
            . "charset=utf-8", "$name: the older format");
        like($r->body, qr/^# TYPE crmapi_requests_total counter$/m,
            "$name: names");
        unlike($r->body, qr/^# (?:EOF|UNIT)|^# TYPE \S+ info$/m,
            "$name: without what is new");
    }
    for my $q ("1.0", "7", "1e300") {
        my $r = $httpd->client->get("/metrics", headers => {
            Accept => "application/openmetrics-text;q=$q,text/plain;q=0.5" });
        like($r->header("Content-Type"), qr/^application\/openmetrics-text;/,
            "a quality of $q is a high one");
    }
    is($httpd->client->head("/metrics")->status, 200, "HEAD");
    is($httpd->client->post("/metrics", {})->status, 405, "POST");
};

# Debian's package prometheus has it; CrmTest::Metrics checks the same rules.
SKIP: {
    my ($none) = run_program(command => ["promtool", "--version"]);
    skip "no promtool: build/setup --tests installs it", 1 if $none;
    my ($code, $out, $err) = run_program(command => ["promtool", "check",
        "metrics"], stdin => $httpd->client->get("/metrics")->body);
    is("$code$out$err", "0", "promtool finds nothing");
}

subtest "counters survive a graceful restart" => sub {
    my $before = now_at(qr/^crmapi_requests_total/);
    $httpd->write_conf($conf . <<"END");
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName c.example
</VirtualHost>
END
    $httpd->restart;
    is_deeply(since($before, qr/^crmapi_requests_total/), {}, "all of them");
    status_is(client("c")->get("/api/v1/agents"), 200, "a vhost that is new");
    my $key = requests_key("c", "api", "GET /agents", 2);
    # a process of the configuration before may have answered, as another vhost
    ok(wait_for(sub { client("c")->get("/api/v1/agents");
        since($before, qr/./)->{$key} }, 10), "is counted, too");
    $httpd->write_conf($conf);
    $httpd->restart;
    # A process of the configuration before may still answer.
    ok(wait_for(sub { !%{ since($before, qr/^crmapi_requests_total/) } }, 10),
        "a vhost that is gone is not shown");
};
$httpd->stop;

subtest "500 vhosts" => sub {
    my $COUNT = 500;
    my $many = httpd(database => $database, conf => $LOCATION
        . "CrmApiReadLimit 0\n" . join "", map { <<"END" } 1 .. $COUNT);
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName site$_.example
</VirtualHost>
END
    for my $n (1 .. $COUNT) {
        my $client = $many->client(host => "site$n.example", key => $w->key);
        my $status = $client->get("/api/v1/agents")->status
            . $client->get("/api/v1/contacts/$none")->status;
        is($status, "200404", "site$n") if $status ne "200404";
    }
    my (@took, $r);
    for (1 .. 20) {
        my $start = time;
        $r = $many->client->get("/metrics", headers => {
            Accept => "application/openmetrics-text" });
        push @took, time - $start;
    }
    @took = sort { $a <=> $b } @took;
    is_deeply([faults($r->body)], [], "the text");
    is(scalar(() = $r->body =~ /^crmapi_requests_total\{vhost="site/mg),
        2 * $COUNT, "all vhosts are shown");
    note(sprintf "%d bytes, best %.1f ms, median %.1f ms", length $r->body,
        1000 * $took[0], 1000 * $took[10]);
    cmp_ok($took[0], "<", 0.05 * $slow * busy(), "a scrape takes less than 50 ms");
};
done_testing;
