# SPDX-License-Identifier: Apache-2.0
# 20-module.t: directives and their merging, missing configuration, restarts,
# mod_status
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $KEY = "svc_live_" . "k" x 30;
my $database = database();

# The status of GET /api/v1/agents of HOST where the API is off: what answers
# there is not held against the API's description.
sub status_when_off {
    my ($httpd, $host) = @_;
    my $c = $httpd->client;
    $c->send_raw("GET /api/v1/agents HTTP/1.0\r\nHost: $host\r\n\r\n");
    return $c->read_response("GET")->status;
}

# What "httpd -t" says of CONF inside the server: (exit code, words).
sub configtest {
    my ($conf, %arg) = @_;
    my $httpd = httpd(conf => $conf, no_start => 1, on => 0, %arg);
    return $httpd->run("-t");
}

subtest "a good configuration passes configtest without a database" => sub {
    my ($code, $words) = configtest(<<'END');
CrmApi On
CrmApiWorkspace acme-1
CrmApiReadLimit 0
CrmApiWriteLimit 1000
CrmApiRateLimitKeys 100
CrmApiMaxBody 65536
CrmApiKeyPrefix my_key_
CrmApiDatabaseWait 500ms
CrmApiDatabaseTimeout 1500ms
CrmApiNamedStatements Off
CrmApiRequestIdInDatabase On
<VirtualHost *:@PORT@>
    CrmApi Off
    CrmApiWorkspace 0198c1d2-0000-7000-8000-0123456789AB
    CrmApiDatabaseWait 0
    CrmApiDatabaseTimeout 1
</VirtualHost>
# the greatest that there are
<VirtualHost *:@PORT@>
CrmApiWorkspace a123456789-123456789-123456789-123456789-123456789-123456789-12
    CrmApiReadLimit 1000000
    CrmApiMaxBody 1073741824
    CrmApiKeyPrefix a1234567_a1234567_a1234567_a1234
    CrmApiDatabaseWait 600
    CrmApiDatabaseTimeout 10min
    CrmApiNamedStatements shared
    CrmApiUnknownParameters Refuse
</VirtualHost>
END
    is($code, 0, "configtest") or diag($words);
    is($words, "Syntax OK\n", "and nothing else");
};

my @BAD = (
    ["CrmApi Maybe", qr/On or Off/],
    ["CrmApi", qr/On or Off/],
    ["CrmApiReadLimit -1", qr/integer from 0 to \d+/],
    ["CrmApiReadLimit 12x", qr/integer from 0/],
    ["CrmApiReadLimit 99999999999999999999", qr/integer from 0/],
    ["CrmApiWriteLimit +5", qr/integer/],
    ["CrmApiWriteLimit 1.5", qr/integer/],
    ["CrmApiRateLimitKeys 0", qr/integer from 1 to/],
    ["CrmApiRateLimitKeys 16777217", qr/integer from 1 to 16777216/],
    ["CrmApiMaxBody 0", qr/integer from 1 to 1073741824/],
    ["CrmApiMaxBody 2M", qr/integer/],
    ["CrmApiMaxBody 1073741825", qr/integer/],
    ["CrmApiKeyPrefix sk-live", qr/A-Z, a-z, 0-9 and _/],
    ["CrmApiKeyPrefix " . "a" x 33, qr/1 to 32/],
    ["CrmApiDatabaseWait soon", qr/time from 0 to 600 s/],
    ["CrmApiDatabaseWait -1", qr/time from/],
    ["CrmApiDatabaseWait 2x", qr/time from/],
    ["CrmApiDatabaseWait 601", qr/time from/],
    ["CrmApiDatabaseTimeout 0", qr/time from 1 to 600 s/],
    ["CrmApiDatabaseTimeout 999ms", qr/time from 1 to/],
    ["CrmApiDatabaseTimeout 11min", qr/time from 1 to/],
    ["CrmApiWorkspace Acme", qr/id or slug/],
    ["CrmApiWorkspace -acme", qr/id or slug/],
    ["CrmApiWorkspace " . "a" x 64, qr/id or slug/],
    ["CrmApiWorkspace acme-", qr/id or slug/],
    ["CrmApiReadLimit 1000001", qr/integer from 0 to 1000000/],
    ["CrmApiReview /review", qr/ends with a slash/],
    ["CrmApiReview review/", qr/begins and ends with a slash/],
    ["CrmApiReview /", qr/a path that/],
    ["CrmApiReview /a//b/", qr/a path that/],
    ["CrmApiReview /a/../b/", qr/a path that/],
    ["CrmApiReview /.b/", qr/a path that/],
    ["CrmApiReview /api/v1/b/", qr/a path that/],
    ["CrmApiNamedStatements 1", qr/Off, On or Shared/],
    ["CrmApiRequestIdInDatabase yes", qr/On or Off/],
    ["CrmApiUnknownParameters ignore", qr/tell or refuse/],
    ["CrmApiIntakeUrl https://crm.example:99999", qr/a scheme and a host/],
    ["CrmApiIntakeUrl https://crm.example:0443", qr/a scheme and a host/],
    ["CrmApiIntakeUrl https://crm.example:", qr/a scheme and a host/],
    ["CrmApiIntakeUrl https://crm.example/x", qr/without a path/],
    # what no browser sends
    ["CrmApiMcpOrigins https://app.example:", qr/a scheme and a host/],
    ["CrmApiMcpOrigins https://app.example:443", qr/without the scheme's own port/],
    ["CrmApiMcpOrigins https://app.example/", qr/without a path/],
    ["CrmApiMcpOrigins null", qr/a scheme and a host/],
);

subtest "a bad value: configtest names directive, value and range" => sub {
    for my $case (@BAD) {
        my ($line, $pattern) = @$case;
        my ($code, $words) = configtest("$line\n");
        my ($name, $value) = $line =~ /^(\w+) ?"?([^"]*)/;
        isnt($code, 0, "refused: $line");
        like($words, $pattern, "$name says what it must be");
        like($words, qr/^\Q$name\E must .*\Q$value\E|^$name (?:must be On or|takes)/m,
            "and names itself, and what stood there");
    }
};

subtest "two mounts of a server need paths of their own" => sub {
    my $vhost = "<VirtualHost *:\@PORT\@>\nCrmApiMcp /a/\n</VirtualHost>";
    for my $case (
        ["CrmApiReview /p/\nCrmApiUnsubscribe /p/", qr{/p/ of CrmApiUnsubscribe}],
        ["CrmApiReview /p/\nCrmApiUnsubscribe /p/q/", qr{/p/q/ of CrmApiUnsub}],
        ["CrmApiReview /p/q/\nCrmApiUnsubscribe /p/", qr{/p/q/ of CrmApiReview}],
        ["CrmApiReview /crmapi/\nCrmApiIntake On", qr{of CrmApiIntake is that of }],
        ["CrmApi On\nCrmApiMcp /api/", qr{/api/v1 of CrmApi is that of CrmApiMcp}],
        ["CrmApiReview /a/\n$vhost",
            qr{^CRM1111: the virtual host in \S+:\d+: the path /a/ of CrmApiMcp}m],
    ) {
        my ($lines, $pattern) = @$case;
        my ($code, $words) = configtest("$lines\n");
        isnt($code, 0, "refused: $lines");
        like($words, $pattern, "and said what and where");
    }
    for my $lines ("CrmApiReview /p/\nCrmApiUnsubscribe /pq/",
            "CrmApiReview /a/\nCrmApiMcp Off\n<VirtualHost *:\@PORT\@>\n"
                . "CrmApiReview Off\nCrmApiMcp /a/\n</VirtualHost>",
            "CrmApi On\nCrmApiMcp /api/v2/\nCrmApiIntake /API/v1/") {
        my ($code, $words) = configtest("$lines\n");
        is($code, 0, "taken: $lines") or diag($words);
    }
};

subtest "directives stand where they may" => sub {
    my ($code, $words) = configtest("<VirtualHost *:\@PORT\@>\n"
        . "CrmApiRateLimitKeys 5\n</VirtualHost>\n");
    isnt($code, 0, "CrmApiRateLimitKeys is refused in a vhost");
    like($words, qr/CrmApiRateLimitKeys cannot occur within <VirtualHost/,
        "and it is said why");
    for my $section ("<Location />", "<Directory />") {
        my ($end) = $section =~ /<(\w+)/;
        ($code, $words) = configtest("$section\nCrmApi On\n</$end>\n");
        isnt($code, 0, "CrmApi is refused in $section");
        like($words, qr/CrmApi not allowed (?:here|in)/, "with a reason");
    }
};

subtest "a vhost inherits what it does not set" => sub {
    my $other = database();
    my $params = postgres()->conninfo($other, $CrmTest::Postgres::API);
    my $httpd = httpd(database => $database, on => 0, conf => <<"END");
CrmApi On
CrmApiMaxBody 300
CrmApiReadLimit 7
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName plain.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName off.example
    CrmApi Off
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName own.example
    CrmApiReadLimit 9
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName other.example
    DBDParams "$params"
</VirtualHost>
END
    my $w = workspace($httpd);
    my $o = workspace($other);
    my $limit = sub {
        my ($host, $key) = @_;
        my $r = $httpd->client(host => $host, key => $key)
            ->get("/api/v1/agents");
        return join " ", $r->status, $r->header("X-RateLimit-Limit") // "-";
    };
    is($limit->("plain.example", $w->key), "200 7",
        "CrmApi and CrmApiReadLimit of the main server");
    is($limit->("own.example", $w->key), "200 9", "its own CrmApiReadLimit");
    is(status_when_off($httpd, "off.example"), 404, "CrmApi Off");
    is($limit->("other.example", $o->key), "200 7",
        "a database of its own, nothing else");
    is($limit->("other.example", $w->key), "401 -",
        "keys of the main server's database are none there");
    is($limit->("plain.example", $o->key), "401 -", "nor the other way round");
    my $c = $httpd->client(host => "own.example", key => $w->key);
    error_is($c->request("POST", "/api/v1/contacts", body => " " x 301), 413,
        "payload_too_large", "CrmApiMaxBody of the main server");
    $httpd->stop;
};

subtest "CrmApiKeyPrefix and CrmApiWorkspace" => sub {
    my $httpd = httpd(database => $database, on => 0, conf => <<'END');
<VirtualHost 127.0.0.1:@PORT@>
    ServerName bound.example
    CrmApi On
    CrmApiWorkspace bound-one
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName prefix.example
    CrmApi On
    CrmApiKeyPrefix other_
</VirtualHost>
END
    my $w = workspace($httpd, slug => "bound-one");
    my $v = workspace($httpd);
    my $ask = sub { $httpd->client(host => $_[0], key => $_[1])
        ->get("/api/v1/agents") };
    status_is($ask->("bound.example", $w->key), 200, "its workspace");
    error_is($ask->("bound.example", $v->key), 401, "unauthorized",
        "3.1 a key of another workspace");
    error_is($ask->("prefix.example", $w->key), 401, "unauthorized",
        "3.1 a key with another prefix");
    $httpd->stop;
};

# The lines of LEVEL and above that a server with CONF logs while three
# requests are answered 503.
sub missing_is {
    my ($name, $pattern, %arg) = @_;
    subtest $name => sub {
        my $httpd = httpd(%arg, expect_log => [$pattern => 1]);
        my $c = $httpd->client(key => $KEY);
        for my $n (1 .. 3) {
            unavailable_is($c->get("/api/v1/contacts"), "503, not 500: $n");
        }
        error_is($httpd->client->get("/api/v1/contacts"), 401,
            "unauthorized", "2 without a key it is a 401 all the same");
        status_is($httpd->client->options("/api/v1/contacts"), 204,
            "OPTIONS needs no database");
        my @lines = $httpd->log_lines(qr/CRM\d{4}/);
        is(scalar @lines, 1, "one line of error_log") or diag(@lines);
        like($lines[0], $pattern, "that says what is missing");
        $httpd->stop;
    };
}

missing_is("mod_dbd is not loaded", qr/CRM1101: mod_dbd is not loaded: add/,
    modules => ["-dbd"]);
missing_is("there is no DBDriver", qr/CRM1102: there is no DBDriver: add/);

subtest "a schema that is newer: 503 until the versions agree" => sub {
    my $newer = database();
    my $httpd = httpd(database => $newer);
    my $w = workspace($httpd, twin => 0);
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200, "before");
    sql($newer, "INSERT INTO crmapi.migration (number, name, sha256,"
        . " min_module) SELECT 999, '0999-later.sql', 'x', max(number)"
        . " FROM crmapi.migration");
    $httpd->restart;            # new processes look at the schema
    status_is($c->get("/api/v1/agents"), 200, "16.2 one that says that it is"
        . " compatible with this module is served");
    sql($newer, "UPDATE crmapi.migration SET min_module = NULL,"
        . " steps = 2, steps_done = 0 WHERE number = 999");
    $httpd->restart;
    status_is($c->get("/api/v1/agents"), 200,
        "so is one of which no step is done");
    sql($newer, "UPDATE crmapi.migration SET steps_done = 1"
        . " WHERE number = 999");
    $httpd->expect_log(qr/CRM1302: .*programs of version 999 or later/ => 1);
    ok(wait_for(sub { $c->get("/api/v1/agents")->status == 503 }, 20),
        "503 within seconds");
    error_is($c->get("/api/v1/agents"), 503, "service_unavailable", "as JSON")
        for 1 .. 5;
    my @lines = $httpd->log_lines(qr/CRM1302/);
    is(scalar @lines, 1, "one line, whatever the number of processes")
        or diag(@lines);
    like($lines[0], qr/but mod_crmapi has version \d+: upgrade mod_crmapi/,
        "with both versions, and how to mend it");
    sql($newer, "DELETE FROM crmapi.migration WHERE number = 999");
    status_is($c->get("/api/v1/agents"), 200, "then at once again");
    $httpd->stop;
};

subtest "4.4 counters survive restarts, the memory is made anew at need" => sub {
    my $httpd = httpd(database => $database, conf => "CrmApiReadLimit 50\n");
    my $w = workspace($httpd);
    my $c = $w->client;
    my $left = sub {
        $c->get("/api/v1/agents")->header("X-RateLimit-Remaining");
    };
    is($left->(), 49, "the first");
    $httpd->restart_all("USR1");
    is($left->(), 48, "4.4 after a graceful restart");
    $httpd->restart_all("HUP");
    is($left->(), 47, "4.4 after a restart of the same parent");
    is(scalar($httpd->log_lines(qr/CRM1404/)), 0, "in the same memory");
    $httpd->write_conf("CrmApiReadLimit 60\n");
    $httpd->restart_all;
    is($left->(), 56, "4.4 a raised limit forgives nothing");
    is(scalar($httpd->log_lines(qr/CRM1404/)), 0, "nor needs new memory");
    $httpd->write_conf("CrmApiReadLimit 50\n");
    $httpd->restart_all;
    is($left->(), 45, "4.4 a lowered one neither");
    $httpd->write_conf("CrmApiReadLimit 50\nCrmApiRateLimitKeys 1000\n");
    $httpd->restart_all;
    is($left->(), 44, "4.4 nor another number of keys");
    is(scalar($httpd->log_lines(qr/CRM1404:.*the number of keys has changed/)),
        1, "and it is said that the memory is new");
    $httpd->stop;
};

subtest "memory is bounded over reloads that alternate" => sub {
    my $httpd = httpd(database => $database);
    my $mapped = sub {
        my $maps = read_file("/proc/" . $httpd->pid . "/maps");
        my $sum = 0;
        while ($maps =~ /^([0-9a-f]+)-([0-9a-f]+) rw-s .*(?:zero|SYSV)/mg) {
            no warnings "portable";
            $sum += hex($2) - hex($1);
        }
        return $sum;
    };
    my @sizes;
    for my $n (1 .. 6) {
        $httpd->write_conf("CrmApiRateLimitKeys " . ($n % 2 ? 5000 : 6000)
            . "\n");
        $httpd->restart_all;
        push @sizes, $mapped->();
    }
    cmp_ok($sizes[0], ">", 0, "there is shared memory");
    is($sizes[4], $sizes[0], "as much as in the beginning")
        or diag("@sizes");
    is($sizes[5], $sizes[1], "with the other number, too");
    $httpd->stop;
};

subtest "the module first comes with a graceful restart" => sub {
    my $httpd = httpd(database => $database, crmapi => 0);
    is(status_when_off($httpd, "x"), 404, "before: a file");
    $httpd->{crmapi} = 1;
    $httpd->write_conf("");
    $httpd->restart_all;
    my $w = workspace($httpd);
    status_is($w->client->get("/api/v1/agents"), 200, "then: the API");
    $httpd->{on} = 0;
    $httpd->write_conf("");
    $httpd->restart_all;
    is(status_when_off($httpd, "x"), 404, "CrmApi Off: a file");
    $httpd->stop;
};

subtest "mod_status shows the API, on the page and for machines" => sub {
    my $httpd = httpd(database => $database, children => 1,
        conf => "<Location /status>\nSetHandler server-status\n</Location>\n"
            . "CrmApiIntake On\nCrmApiReview On\nCrmApiWriteLimit 1\n");
    my $w = workspace($httpd);
    my $c = $w->client;
    my $new = sub { $c->post("/api/v1/contacts", { bot_id => $w->agent }) };
    status_is($c->get("/api/v1/agents"), 200) for 1 .. 3;
    status_is($new->(), 201);
    status_is($new->(), 429) for 1, 2;
    status_is($c->get("/api/v1/agents/" . $w->agent,
        headers => { "If-None-Match" => "*" }), 304);
    status_is($c->get("/api/v1/none"), 404);
    my %value;
    ok(wait_for(sub {
        %value = $c->get("/status?auto")->body =~ /^CrmApi(\w+): (\d+)$/mg;
        ($value{Answers4xx} || 0) == 3;
    }), "CrmApi lines in ?auto");
    my %want = (ReadsAdmitted => 5, ReadsRefused => 0, WritesAdmitted => 1,
        WritesRefused => 2, Answers2xx => 4, Answers3xx => 1, Answers4xx => 3,
        Answers5xx => 0, DatabaseBusy => 0, ConnectionsUsed => 0,
        ConnectionsMax => 10);      # DBDMax
    is($value{$_}, $want{$_}, "CrmApi$_") for sort keys %want;
    cmp_ok($value{DatabaseMicroseconds}, ">", 0, "time at the database");
    my $page = $c->get("/status")->body;
    status_is($httpd->client->get("/crmapi/review/x"), 403);
    status_is($httpd->client->get("/crmapi/intake/v1/events"), 405);
    ok(wait_for(sub { $c->get("/status?auto")->body
        =~ /^CrmApiAnswers4xx: 5$/m }), "intake and pages are counted, too");
    my $log = $httpd->access_log;
    like($log, qr{GET review/\{token\} \d+$}m, "crmapi-route of a page");
    like($page, qr/<dt>Reads admitted: 5/, "the page has them, too");
    unlike($page, qr/\Q@{[substr $w->key, 9]}\E/, "3.4 and no key");
    $httpd->stop;
};

subtest "mod_status shows requests by mount and virtual host" => sub {
    my $COUNT = 500;
    my $httpd = httpd(database => $database, children => 1,
        conf => "CrmApiReadLimit 0\n<Location /status>\n"
            . "SetHandler server-status\n</Location>\n"
            . "CrmApiIntake On\nCrmApiReview On\nCrmApiUnsubscribe On\n"
            . join "", map { <<"END" } 0 .. $COUNT - 1);
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName site$_.example
</VirtualHost>
END
    my $w = workspace($httpd, twin => 0);
    my $port = $httpd->port;
    my $ask = sub { my ($site, $path, $times) = @_;
        my $client = $httpd->client(host => "site$site.example",
            key => $w->key);
        $client->get($path) for 1 .. $times };
    # all of them once, so that none is left out; some more often
    $ask->($_, "/api/v1/none", 1) for 0 .. $COUNT - 1;
    $ask->(7, "/api/v1/agents", 30);
    $ask->(8, "/crmapi/intake/v1/events", 20);
    $ask->(8, "/crmapi/review/x", 10);
    $ask->(9, "/crmapi/unsubscribe/x", 5);
    my %want = (map { ("site$_.example:$port,api,4xx" => 1) } 0 .. $COUNT - 1);
    @want{"site7.example:$port,api,2xx", "site8.example:$port,intake,4xx",
        "site8.example:$port,review,4xx", "site9.example:$port,unsubscribe,4xx"}
        = (30, 20, 10, 5);
    my ($auto, %there);
    ok(wait_for(sub {
        $auto = $httpd->client->get("/status?auto")->body;
        %there = $auto =~ /^CrmApiRequests\{(.*)\}: (\d+)$/mg;
        my $sum = 0;
        $sum += $_ for values %there;
        $sum >= $COUNT + 65 }, 20), "all were counted");
    # the harness reads the OpenAPI document of the first one
    delete $there{"site0.example:$port,api,2xx"};
    is_deeply(\%there, \%want, "by vhost, mount and class");
    my %value = $auto =~ /^CrmApi(\w+): (\d+)$/mg;
    is($value{IntakeRequests}, 20, "the sum of a mount");
    is($value{ReviewRequests}, 10, "of pages");
    is($value{UnsubscribeRequests}, 5, "of the other page");
    is($value{ApiRequests} + 35, $value{Requests}, "and of the API");
    my $page = $httpd->client->get("/status")->body;
    my @rows = $page =~ m{<tr><td>([^<]*)</td><td>(\w+)</td>((?:<td>\d+</td>){4})}g;
    my %row;
    while (my ($name, $mount, $cells) = splice @rows, 0, 3) {
        $row{"$name $mount"} = join " ", $cells =~ /(\d+)/g;
    }
    is($row{"site7.example:$port api"}, "30 0 1 0", "the page: the API");
    is($row{"site8.example:$port intake"}, "0 0 20 0", "the page: intake");
    is($row{"site8.example:$port review"}, "0 0 10 0", "the page: a page");
    # and the main server, which serves nobody
    is($row{($COUNT - 50 + 1) . " others api"}, "0 0 " . ($COUNT - 50) . " 0",
        "the page: the others together");
    cmp_ok(scalar keys %row, "<", 60, "few rows for 500 vhosts");
    $httpd->stop;
};

subtest "notes for the access log, one line for LogLevel debug" => sub {
    my $httpd = httpd(database => $database, level => "info crmapi:debug",
        conf => "ErrorLogFormat \"[%t] [%m:%l] %L %M\"\n");
    my $w = workspace($httpd);
    my $r = $w->client->get("/api/v1/agents/" . $w->agent,
        headers => { "X-Request-Id" => "look-here.1" });
    status_is($r, 200);
    is($r->header("X-Request-Id"), "look-here.1", "5.4 the id is kept");
    my ($key_id) = $w->key_ids;
    ok(wait_for(sub { $httpd->access_log =~ /\Q$key_id\E/ }),
        "crmapi-key in the access log");
    like($httpd->access_log, qr/200 \d+ \Q@{[$w->id]} $key_id\E GET \S+ [1-9]\d*$/m,
        "crmapi-workspace, crmapi-key, crmapi-route, crmapi-db-us");
    my @lines = $httpd->log_lines(qr/CRM1201: GET \S*agents\S*: 200, /);
    is(scalar @lines, 1, "one line for the request") or diag(@lines);
    like($lines[0] // "", qr/look-here\.1/, "with its id");
    like($lines[0] // "", qr/database \d+ us, all \d+ us/, "and times");
    $httpd->stop;
};

done_testing;
