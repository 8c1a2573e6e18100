# SPDX-License-Identifier: Apache-2.0
# 67-mcp.t: the Model Context Protocol: messages, revisions, headers (contract
# 21.1, 21.2)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1,
    conf => "CrmApiMcp On\n"
    . "CrmApiMcpOrigins https://app.example.com http://localhost:6274\n");
my $w = workspace($httpd);
my $c = $w->client;
my $mcp = CrmTest::Mcp->new($c);
my %earlier = map { $_ => CrmTest::Mcp->new($c, $_) } "2025-11-25",
    "2025-06-18";
my $VERSION = "io.modelcontextprotocol/protocolVersion";
my $CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

# R is a JSON-RPC error: HTTP's STATUS, CODE, and the request's ID (undef: it has
# none).
sub rpc_error_is {
    my ($r, $status, $code, $id, $what) = @_;
    my $answer = $r->json;

    is($r->status, $status, "$what: $status");
    is($answer->{error}{code}, $code, "$what: $code") or diag($r->text);
    is_deeply([exists $answer->{id} ? $answer->{id} : undef], [$id],
        "$what: its id");
    is($answer->{jsonrpc}, "2.0", "$what: is JSON-RPC");
    ok(length $answer->{error}{message}, "$what: says why");
}

subtest "21.1 server/discover" => sub {
    my $r = $mcp->call("server/discover");
    my $result = $r->json->{result};

    is($r->status, 200, "there it is");
    is($r->header("Content-Type"), "application/json", "as JSON");
    is_deeply($result->{supportedVersions}, ["2026-07-28", "2025-11-25",
        "2025-06-18"], "the versions");
    is($result->{resultType}, "complete", "complete");
    like($result->{ttlMs}, qr/^[1-9]\d+$/, "how long it holds");
    is($result->{cacheScope}, "private", "for this key");
    ok($result->{capabilities}{tools}, "there are tools");
    is($result->{_meta}{"io.modelcontextprotocol/serverInfo"}{name},
        "mod_crmapi", "who answers");
    ok(!grep({ defined } $r->header("Mcp-Session-Id")), "there is no session");
    is($r->body, $mcp->call("server/discover", {},
        id => $r->json->{id})->body, "it is the same again");
};

subtest "21.1 initialize, without a session" => sub {
    my %asked = ("2025-11-25" => "2025-11-25", "2025-06-18" => "2025-06-18",
        "2025-03-26" => "2025-11-25", "2024-11-05" => "2025-11-25",
        "2026-07-28" => "2025-11-25", "nonsense" => "2025-11-25");
    for my $version (sort keys %asked) {
        my $r = $earlier{"2025-11-25"}->call("initialize", {
            protocolVersion => $version, capabilities => {},
            clientInfo => { name => "t", version => "1" } },
            headers => { "MCP-Protocol-Version" => undef });
        my $result = $r->json->{result};
        is($r->status, 200, "$version: is answered");
        is($result->{protocolVersion}, $asked{$version}, "with a version");
        ok($result->{serverInfo}{version}, "serverInfo");
        like($result->{instructions}, qr/strangers.*role.*never do/,
            "the model is told whose texts it reads");
        ok($result->{capabilities}{tools}, "capabilities");
        ok(!exists $result->{resultType}, "as that revision has it");
        ok(!grep({ defined } $r->header("Mcp-Session-Id")), "no session");
    }
    for my $version (sort keys %earlier) {
        my $client = $earlier{$version};
        my $r = $client->call("notifications/initialized", {}, id => undef);
        is($r->status, 202, "$version: notifications/initialized");
        is($r->body, "", "without a body");
        $r = $client->call("ping", {}, id => 7, headers => {
            "MCP-Protocol-Version" => undef });
        rpc_error_is($r, 400, -32020, 7, "$version: no version");
        is_deeply($r->json->{error}{data}, { supported => ["2026-07-28",
            "2025-11-25", "2025-06-18"] }, "and which there are");
        is_deeply($client->result("ping"), {}, "$version: ping");
        ok(@{$client->result("tools/list")->{tools}} > 30, "tools/list");
        rpc_error_is($client->call("logging/setLevel", {}, id => 7), 200,
            -32601, 7, "$version: another method");
        rpc_error_is($client->call("server/discover", {}, id => 7), 200,
            -32601, 7, "$version: discover");
    }
};

subtest "21.1 GET, DELETE and other methods: 405" => sub {
    for my $method (qw(GET DELETE PUT PATCH HEAD)) {
        my $r = $c->request($method, $CrmTest::Mcp::PATH,
            $method eq "PUT" ? (body => "{}") : ());
        is($r->status, 405, $method);
        is($r->header("Allow"), "POST, OPTIONS", "$method: Allow");
    }
    is($c->options($CrmTest::Mcp::PATH, key => undef)->status, 204, "OPTIONS");
    is($c->get("$CrmTest::Mcp::PATH/", key => undef)->status, 401,
        "a key comes first");
    is($c->post("$CrmTest::Mcp::PATH/x", {})->status, 404, "below it: 404");
};

subtest "21.2 keys" => sub {
    for my $key (undef, "svc_live_" . "x" x 30) {
        my $r = $mcp->call("server/discover", {}, key => $key);
        is($r->status, 401, "no key");
        is($r->header("WWW-Authenticate"), "Bearer", "with how");
        is($r->json->{error}{code}, 401, "as JSON-RPC");
        is($r->json->{error}{message}, "API key is missing or invalid", "why");
        ok(!exists $r->json->{id}, "before the message is read");
    }
    my @calls = (["server/discover"], ["tools/list"],
        ["tools/call", { name => "workspace_get" }],
        ["tools/call", { name => "contacts_get", arguments => {} }],
        ["tools/call", { name => "none" }],
        ["notifications/initialized", {}, id => undef]);
    # one that is refused is forgotten: each call has its own
    for my $call (@calls) {
        my $key = $w->make_key("read");
        my $reader = $mcp->with_key($key);
        is($reader->call(@$call)->status, $call == $calls[-1] ? 202 : 200,
            "$call->[0]: a living key");
        $w->ctl("key", "revoke", scalar sql($database, "SELECT id FROM"
            . " crmapi.api_key WHERE key_hash = sha256('$key')"));
        is($reader->call(@$call)->status, 401, "3.2 $call->[0]: once it is revoked");
    }
    my $closed = workspace($httpd, twin => 0);
    sql($database, "UPDATE crmapi.api_key SET closed = true WHERE workspace_id = '"
        . $closed->id . "'");
    my $away = CrmTest::Mcp->new($closed->client)->call("tools/list");
    is_deeply([$away->status, $away->header("Retry-After"),
        @{$away->json->{error}}{qw(code data)}], [503, 10, -32603,
        { code => "service_unavailable", retry_after => 10 }],
        "5.5 what a server cannot do now is an internal error of JSON-RPC");
    my $starter = workspace($httpd, plan => "starter", seed => 0, twin => 0);
    is(CrmTest::Mcp->new($starter->client)->call("notifications/initialized", {},
        id => undef)->status, 403, "3.3 a notification: a plan without the API");
    for my $call (@calls[0, 1]) {
        my $r = CrmTest::Mcp->new($starter->client)->call(@$call);
        is($r->status, 403, "3.3 $call->[0]: a plan without the API");
        is($r->json->{error}{code}, 403, "as JSON-RPC");
    }
};

subtest "21.2 Origin" => sub {
    my $with = sub { $mcp->call("server/discover", {},
        headers => { Origin => $_[0] }, @_[1 .. $#_]) };
    is($with->($_)->status, 200, "$_ is allowed")
        for "https://app.example.com", "http://localhost:6274",
            "HTTPS://APP.example.com";
    for my $origin ("https://evil.example", "null", "",
            "https://app.example.com.evil.example", "http://app.example.com",
            "https://app.example.com:444") {
        is($with->($origin)->status, 403, "'$origin' is not");
    }
    is($with->("https://evil.example", key => undef)->status, 403,
        "whatever its key");
};

subtest "JSON-RPC 2.0: what is no request" => sub {
    my $at = sub { $mcp->call("ping", {}, body => $_[0]) };
    rpc_error_is($at->($_), 400, -32700, undef, "broken: $_")
        for "", "{", "{\"id\":1,}", "[1", "{\"id\":1}x",
            '{"id":1,"id":2}', "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}";
    rpc_error_is($at->($_), 400, -32600, undef, "no request: $_")
        for "[]", "1", "null", '"x"', "true",
            '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
            '{"jsonrpc":"2.0","id":null,"method":"ping"}',
            '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
            '{"jsonrpc":"2.0","id":1e3,"method":"ping"}',
            '{"jsonrpc":"2.0","id":{},"method":"ping"}',
            '{"jsonrpc":"2.0","id":[1],"method":"ping"}',
            '{"jsonrpc":"2.0","id":true,"method":"ping"}',
            '{"jsonrpc":"2.0","id":"' . "x" x 300 . '","method":"ping"}',
            '{"method":"ping"}', '{}';
    rpc_error_is($at->("{\"jsonrpc\":\"2.0\",\"id\":7,$_}"), 400, -32600, 7,
        "no request: $_")
        for '"method":1', '"method":null', '"result":{}', '"error":{}',
            '"method":"ping","params":[]', '"method":"ping","params":1',
            '"method":"' . "x" x 2000 . '"', '"method":"a\u0000b"';
    rpc_error_is($at->('{"jsonrpc":"1.0","id":"a","method":"ping"}'), 400,
        -32600, "a", "another JSON-RPC");
    my $r = $mcp->call("ping", {}, headers => { "Content-Type" =>
        "text/plain" });
    rpc_error_is($r, 415, 415, undef, "5.3 another Content-Type");
    is($mcp->call("server/discover", {}, headers => { "Content-Type" =>
        "application/json; charset=utf-8" })->status, 200, "with a charset");
};

subtest "ids come back as they were sent" => sub {
    for my $id ('1', '0', '-7', '"a"', '""', '"ä\\n\\u0041\\/"',
            '123456789012345678901234567890', '"' . "x" x 250 . '"') {
        my $r = $earlier{"2025-11-25"}->call("ping", {},
            body => "{\"jsonrpc\" : \"2.0\", \"id\" :$id, \"method\":\"ping\"}");
        my $want = $id;
        utf8::encode($want);
        is($r->body, "{\"jsonrpc\":\"2.0\",\"id\":$want,\"result\":{}}",
            substr $want, 0, 40);
    }
};

subtest "null is as good as nothing, as in arguments" => sub {
    my $at = sub { my ($method, $params) = @_;
        $earlier{"2025-11-25"}->call($method, {}, body => "{\"jsonrpc\":\"2.0\","
            . "\"id\":1,\"method\":\"$method\",\"params\":$params}") };
    for my $case (["ping", "null"], ["tools/list", "null"],
            ["tools/list", '{"_meta":null,"cursor":null}'],
            ["resources/list", "null"], ["tools/call",
            '{"name":"workspace_get","arguments":null}'], ["tools/call",
            '{"name":"agents_list","arguments":null}']) {
        my ($method, $params) = @$case;
        my $r = $at->($method, $params);
        is($r->status, 200, "$method $params");
        ok($r->json->{result} && !$r->json->{result}{isError}, "has a result")
            or diag($r->body);
    }
    my $r = $at->("tools/call", '{"name":"contacts_get","arguments":null}');
    like($r->json->{result}{content}[0]{text}, qr/is required/,
        "what is required still is");
    my ($prompt) = map { $_->{name} } grep { !$_->{arguments} }
        @{$at->("prompts/list", "null")->json->{result}{prompts}};
    ok($at->("prompts/get", "{\"name\":\"$prompt\",\"arguments\":null}")
        ->json->{result}, "prompts/get $prompt");
};

subtest "2026-07-28: _meta" => sub {
    my $meta = CrmTest::Mcp::meta();
    my $at = sub { $mcp->call("tools/list", { _meta => $_[0] }, id => 5) };
    my $without = sub { my %m = %$meta; delete $m{$_[0]}; \%m };
    is($at->($without->("io.modelcontextprotocol/clientInfo"))->status, 200,
        "clientInfo is optional");
    rpc_error_is($at->($_->[0]), 400, -32602, 5, $_->[1])
        for [{}, "nothing"], [$without->($VERSION), "no version"],
            [$without->($CAPABILITIES), "no capabilities"],
            [{ %$meta, $CAPABILITIES => [] }, "capabilities of another type"],
            [{ %$meta, $VERSION => 1 }, "a version of another type"],
            ["x", "a _meta of another type"];
    rpc_error_is($mcp->call("tools/list", {}, body =>
        '{"jsonrpc":"2.0","id":5,"method":"tools/list"}'), 400, -32602, 5,
        "no params");
};

subtest "2026-07-28: versions" => sub {
    for my $version ("1900-01-01", "v999.0.0", "2025-03-26", "2025-11-25",
            "x\n\"y") {
        my $header = $version =~ /\n/ ? "x" : $version;
        my $r = $mcp->call("tools/list", { _meta => { %{CrmTest::Mcp::meta()},
            $VERSION => $version } }, id => 5, headers => {
            "MCP-Protocol-Version" => $header });
        if ($header ne $version) {
            rpc_error_is($r, 400, -32020, 5, "they differ");
            next;
        }
        rpc_error_is($r, 400, -32022, 5, $version);
        is_deeply($r->json->{error}{data}, { supported => ["2026-07-28",
            "2025-11-25", "2025-06-18"], requested => $version }, "its data");
    }
    rpc_error_is(CrmTest::Mcp->new($c, "2025-03-26")->call("tools/list", {},
        id => 5), 400, -32022, 5, "an earlier one that is not served");
    rpc_error_is($mcp->call("tools/list", {}, id => 5, headers => {
        "MCP-Protocol-Version" => $_ }), 400, -32020, 5,
        "the header says " . ($_ // "nothing"))
        for undef, "2025-11-25", "2026-07-29";
    rpc_error_is($earlier{"2025-11-25"}->call("tools/list", {}, id => 5,
        headers => { "MCP-Protocol-Version" => undef }), 400, -32020, 5,
        "neither header nor _meta");
};

subtest "2026-07-28: headers" => sub {
    my $at = sub {
        my ($method, $params, %headers) = @_;
        return $mcp->call($method, $params, id => 5, headers => \%headers);
    };
    my %get = (name => "workspace_get", arguments => {});
    rpc_error_is($at->("tools/list", {}, "Mcp-Method" => $_), 400, -32020, 5,
        "Mcp-Method is " . ($_ // "missing"))
        for undef, "tools/call", "TOOLS/LIST", "", "tools/list, tools/list";
    is($at->("tools/list", {}, "Mcp-Method" => undef,
        "mcp-METHOD" => "tools/list")->status, 200, "its name without case");
    rpc_error_is($at->("tools/call", \%get, "Mcp-Name" => $_), 400, -32020, 5,
        "Mcp-Name is " . ($_ // "missing"))
        for undef, "contacts_get", "WORKSPACE_GET", "=?base64??=",
            "=?base64?d29ya3NwYWNlX2dldA?=", "=?base64?d29y!!!3NwYWNl?=",
            "=?base64?d29ya3NwYWNlX2dldAA=?=", "=?BASE64?d29ya3NwYWNlX2dldA==?=",
            "=?base64?/w==?=";
    is($at->("tools/call", \%get, "Mcp-Name" => $_)->status, 200, "'$_'")
        for "  workspace_get  ", "=?base64?d29ya3NwYWNlX2dldA==?=";
    my $range = $at->("tools/list", {}, Range => "bytes=0-5");
    is($range->status, 200, "Range is for GET only (RFC 9110, 14.2)");
    is(ref $range->json, "HASH", "the whole answer comes");
    is($at->("tools/list", {}, "Mcp-Name" => "x")->status, 200,
        "a name that nobody asks for");
};

subtest "2026-07-28: methods" => sub {
    rpc_error_is($mcp->call($_, {}, id => 5), 404, -32601, 5, $_)
        for "initialize", "ping", "logging/setLevel", "resources/subscribe",
            "subscriptions/listen", "unknown/method", "tools/List";
    is($mcp->call("notifications/cancelled", { requestId => 1 },
        id => undef)->status, 202, "a notification");
    rpc_error_is($mcp->call("tools/call", { name => $_ }, id => 5), 200,
        -32602, 5, "21.3 an unknown tool") for "none", "contacts list",
        "x\ny CRM9999: faked", "ä";
    rpc_error_is($mcp->call("tools/call", { arguments => {} }, id => 5,
        headers => { "Mcp-Name" => "x" }), 400, -32020, 5, "no name");
    rpc_error_is($mcp->call("tools/call", { name => "workspace_get",
        arguments => [] }, id => 5), 200, -32602, 5, "arguments of a type");
    unlike($httpd->log_text, qr/faked/, "no name of a client is in the log");
    rpc_error_is($mcp->call("tools/list", { cursor => "x" }, id => 5), 200,
        -32602, 5, "a cursor that nobody gave");
};
$httpd->stop;

subtest "21.2 budgets: one for reads, one for writes" => sub {
    my $httpd = httpd(database => $database, conf => "CrmApiMcp On\n"
        . "CrmApiReadLimit 4\nCrmApiWriteLimit 2\n");
    my $agent = $w->agent;
    for my $version ("2026-07-28", "2025-11-25") {
        my $key = $w->make_key;
        my $client = $httpd->client(key => $key);
        my $mcp = CrmTest::Mcp->new($client, $version);
        my $left = sub { $_[0]->header("X-RateLimit-Remaining") };
        is($left->($mcp->call("tools/list")), 3, "$version: a list is a read");
        is($left->($mcp->call("tools/call", { name => "contacts_list" })), 2,
            "and so is a tool that reads");
        is($left->($mcp->call("tools/call", { name => "contacts_create",
            arguments => { bot_id => $agent } })), 1, "one that writes");
        is($left->($mcp->call("unknown")), 1, "2.2 an error costs a unit");
        is($left->($client->get("/api/v1/agents")), 0, "of the API's budget");
        my $r = $mcp->call("tools/call", { name => "contacts_list" });
        is($r->status, 429, "and it is used up");
        is($r->json->{error}{code}, 429, "as JSON-RPC");
        is($r->json->{error}{data}{code}, "rate_limited", "with the code");
        is($r->json->{error}{data}{retry_after}, $r->header("Retry-After"),
            "and when to try again");
        $mcp->call("tools/call", { name => "contacts_update",
            arguments => { id => uuid() } });
        is($mcp->call("tools/call", { name => "contacts_create",
            arguments => {} })->status, 429, "writes, too");
        is($client->post("/api/v1/contacts", {})->status, 429,
            "as for the API");
    }
    my $client = $httpd->client(key => $w->make_key);
    my $mcp = CrmTest::Mcp->new($client, "2025-11-25");
    my $big = { name => "contacts_list", arguments => { x => "y" x 70000 } };
    is($mcp->call("tools/call", $big)->header("X-RateLimit-Limit"), 2,
        "what is too large for a read is charged before it is read");
    my $create = { name => "contacts_create", arguments => {} };
    for (["what an earlier client's headers say", $mcp, "Mcp-Method" => "tools/list"],
            ["a name in base64", CrmTest::Mcp->new($client), "Mcp-Name" =>
                "=?base64?Y29udGFjdHNfY3JlYXRl?="]) {
        my ($name, $by, @headers) = @$_;
        is($by->call("tools/call", $create, headers => { @headers })
            ->header("X-RateLimit-Limit"), 2, "$name: it is a write");
    }
    $httpd->stop;
};

subtest "docs/mcp.md: metadata for clients that know OAuth" => sub {
    my ($lines) = documented("mcp.md", "apache", "## OAuth");
    my ($file) = documented("mcp.md", "json", "## OAuth");
    my $httpd = httpd(database => $database, modules => [qw(alias headers)],
        no_start => 1);
    my $path = $httpd->dir . "/mcp-resource.json";
    $lines =~ s{/etc/apache2/mcp-resource.json}{$path};
    write_file($path, $file);
    chmod 0644, $path;
    $httpd->write_conf($lines);
    $httpd->start;
    my $client = $httpd->client;
    my $r = CrmTest::Mcp->new($client)->call("server/discover");
    is($r->status, 401, "without a token");
    my ($url) = ($r->header("WWW-Authenticate") // "")
        =~ /^Bearer resource_metadata="https:\/\/crm.example.com(.*)"$/;
    ok($url, "the header says where the metadata is")
        or diag($r->text);
    $r = $client->get($url);
    is($r->status, 200, "there it is");
    is($r->header("Content-Type"), "application/json", "as JSON");
    is($r->json->{resource}, "https://crm.example.com/crmapi/mcp",
        "about the endpoint");
    $httpd->stop;
};

subtest "21.1 without the directive there is nothing" => sub {
    my $httpd = httpd(database => $database);
    is($httpd->client(key => $w->key)->post($CrmTest::Mcp::PATH, {})->status,
        404, "not by default");
    $httpd->stop;
};

done_testing;
