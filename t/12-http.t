# SPDX-License-Identifier: Apache-2.0
# 12-http.t: the order of checks, methods, bodies, headers, httpd's own errors
# (contract 2, 5)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Session;
use CrmTest::Spec;
use IO::Socket::INET;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $anyone = $httpd->client;
my $BAD_KEY = "svc_live_" . "n" x 30;
my $UUID7 = qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

# Status of the request METHOD PATH with KEY and more.
sub asked {
    my ($w, $method, $path, %arg) = @_;
    return $w->client->request($method, "/api/v1$path", %arg);
}

subtest "2 the order of checks: each before its neighbour" => sub {
    my $tight = httpd(database => $database,
        conf => "CrmApiReadLimit 1\nCrmApiWriteLimit 1\nCrmApiMaxBody 1000\n");
    my $w = workspace($httpd);
    my $ro = $w->make_key("read");
    my $poor = workspace($httpd, plan => "free");
    my %text = (headers => { "Content-Type" => "text/plain" });
    my $c = $w->client;
    my $none = uuid();

    error_is($anyone->get("/api/v1/none", key => $BAD_KEY), 401,
        "unauthorized", "2: 401 before the 404 of the route");
    error_is($anyone->request("PUT", "/api/v1/contacts", key => $BAD_KEY,
        body => "{", %text), 401, "unauthorized", "2: 401 before 405");
    error_is($anyone->post("/api/v1/contacts", {}, key => $BAD_KEY), 401,
        "unauthorized", "2: 401 before 422");

    my $t = $tight->client(key => $w->make_key("read,write"));
    status_is($t->get("/api/v1/agents"), 200);
    status_is($t->delete("/api/v1/contacts/$none"), 404);
    error_is($t->get("/api/v1/none"), 429, "rate_limited",
        "2: 429 before the 404 of the route");
    error_is($t->request("PUT", "/api/v1/contacts", body => "{"), 429,
        "rate_limited", "2: 429 before 405");
    error_is($t->post("/api/v1/contacts", {}, %text), 429, "rate_limited",
        "2: 429 before 415");
    my $exhausted = $w->make_key("read");
    my $e = $tight->client(key => $exhausted);
    status_is($e->post("/api/v1/contacts", {}), 403);
    error_is($e->post("/api/v1/contacts", {}), 429, "rate_limited",
        "2: 429 before 403");

    my $r = $w->client(key => $ro);
    error_is($r->post("/api/v1/none", {}), 404, "not_found",
        "2: the 404 of the route before 403");
    error_is($r->post("/api/v1/agents", {}), 405, "method_not_allowed",
        "2: 405 before 403");
    error_is($poor->client->get("/api/v1/none"), 404, "not_found",
        "2: the 404 of the route before the plan's 403");
    error_is($r->post("/api/v1/contacts", {}, %text), 403, "forbidden",
        "2: 403 before 415");
    error_is($r->request("POST", "/api/v1/contacts", body => "{"), 403,
        "forbidden", "2: 403 before 400");
    error_is($r->request("PATCH", "/api/v1/contacts/$none", json => {}), 403,
        "forbidden", "2: 403 before the 404 of the path");
    error_is($r->post("/api/v1/contacts", {}), 403, "forbidden",
        "2: 403 before 422");
    error_is($poor->client->get("/api/v1/contacts", query => "page=0"), 403,
        "forbidden", "2: the plan's 403 before 422");
    error_is($poor->client->get("/api/v1/contacts/$none"), 403, "forbidden",
        "2: the plan's 403 before the 404 of the path");
    my $big = $tight->client(key => $w->make_key("read"));
    error_is($big->request("POST", "/api/v1/contacts", body => " " x 2000),
        403, "forbidden", "2: 403 before 413");

    error_is($c->request("POST", "/api/v1/contacts", body => "{", %text),
        415, "unsupported_media_type", "2: 415 before 400");
    error_is($tight->client(key => $w->make_key("read,write"))->request("POST",
        "/api/v1/contacts", body => "{" x 2000, %text), 415,
        "unsupported_media_type", "2: 415 before 413");
    my $tight2 = $tight->client(key => $w->make_key("read,write"));
    error_is($tight2->request("PATCH", "/api/v1/contacts/$none",
        body => "{" x 2000), 413, "payload_too_large", "2: 413 before 400");
    error_is($c->request("PATCH", "/api/v1/contacts/$none", body => "{}",
        %text), 415, "unsupported_media_type",
        "2: 415 before the 404 of the path");
    error_is($c->request("PATCH", "/api/v1/contacts/$none", body => "{"),
        400, "bad_request", "2: 400 before the 404 of the path");
    error_is($c->patch("/api/v1/contacts/$none", { deal_value => "x" }), 404,
        "not_found", "2: the 404 of the path before 422");
    error_is($c->patch("/api/v1/contacts/nonsense", { deal_value => "x" }),
        404, "not_found", "2: of a malformed id, too");
    error_is($c->get("/api/v1/contacts/$none/activities",
        query => "page=0"), 404, "not_found",
        "2: the 404 of a list's parent before its 422");
    $tight->stop;
};

subtest "2.1 missing and another workspace's: byte for byte the same" => sub {
    my $w = workspace($httpd);
    my $f = uuid();
    my ($contact, $company, $card, $conversation, $form, $submission) =
        $w->import_objects([
        { object => "contact", bot_id => $w->agent, first_name => "A" },
        { object => "company", bot_id => $w->agent, name => "B" },
        { object => "pipeline_card", pipeline_stage_id => ($w->stages)[0],
            title => "C" },
        { object => "conversation", bot_id => $w->agent, type => 1 },
        { object => "form", id => $f, bot_id => $w->agent,
            name => "F" },
        { object => "submission", form_id => $f },
    ]);
    my @cases = (
        ["/agents/", $w->agent, "GET"],
        ["/contacts/", $contact, "GET", "PATCH", "DELETE"],
        ["/companies/", $company, "GET", "PATCH", "DELETE"],
        ["/pipeline-cards/", $card, "GET", "PATCH", "DELETE"],
        ["/conversations/", $conversation, "GET", "PATCH", "DELETE"],
        ["/forms/", $form, "GET"],
        ["/submissions/", $submission, "GET"],
    );
    my $whole = sub {
        my ($r) = @_;
        return join "\n", $r->status, $r->{reason}, (sort map {
            "$_->[0]: $_->[1]" } grep { $_->[0] !~ /^(?:Date|X-Request-Id)$/i }
            @{$r->{headers}}), $r->body;
    };
    for my $case (@cases) {
        my ($path, $id, @methods) = @$case;
        for my $method (@methods) {
            my %arg = $method eq "PATCH" ? (json => {}) : ();
            my ($missing, $alien, $malformed) = map { my $r = asked($w,
                $method, "$path$_", %arg); error_is($r, 404, "not_found",
                "$method $path$_"); $whole->($r) }
                uuid(), $w->twin_of($id), "nonsense";
            is($alien, $missing, "2.1 $method $path: another workspace's");
            is($malformed, $missing, "6.8 $method $path: malformed");
        }
    }
};

subtest "5.1 HEAD works wherever GET does" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $c->post("/api/v1/contacts", { bot_id => $w->agent })
        ->data->{id};
    my $pipeline = $w->pipeline;
    for my $path ("/agents", "/agents/" . $w->agent, "/contacts",
            "/contacts/$id", "/contacts/$id/activities",
            "/contacts/$id/conversations", "/companies", "/pipelines",
            "/pipelines/$pipeline/stages", "/pipeline-cards",
            "/conversations", "/forms", "/contacts/" . uuid(),
            "/contacts/by-email", "/none", "/agents?page=0") {
        my $get = $c->get("/api/v1$path");
        my $head = $c->head("/api/v1$path");
        my ($g, $h) = map { my $r = $_; join "\n", $r->status, sort map {
            "$_->[0]: $_->[1]" } grep { $_->[0] !~ /^(?:Date|X-Request-Id)$/i }
            @{$r->{headers}} } $get, $head;
        is($h, $g, "5.1 HEAD $path: same status, same headers");
        is($head->body, "", "5.1 HEAD $path: no body");
        is($get->header("Content-Length"), length $get->body,
            "Content-Length of $path");
    }
};

# Methods of each path, as the specification's tables have them.
my %METHODS;
for my $operation (keys %CrmTest::Spec::PARAMETERS) {
    my ($method, $path) = split / /, $operation;
    push @{$METHODS{$path =~ s/\{id\}/ID/r}}, $method;
}

subtest "5.1 OPTIONS and 405 with Allow" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    for my $template (sort keys %METHODS) {
        my $path = "/api/v1" . $template =~ s/ID/uuid()/er;
        my @methods = @{$METHODS{$template}};
        my $allow = join " ", sort @methods, "OPTIONS",
            grep { $_ eq "HEAD" } map { $_ eq "GET" ? "HEAD" : () } @methods;
        my $sorted = sub {
            return join " ", sort split /, */, $_[0]->header("Allow") // "";
        };
        my $r = $anyone->options($path);
        status_is($r, 204, "5.1 OPTIONS $template without a key");
        is($sorted->($r), $allow, "5.1 OPTIONS $template: $allow");
        is($r->body, "", "no body");
        for my $method (qw(GET POST PATCH DELETE PUT)) {
            next if grep { $_ eq $method } @methods;
            my $r = $c->request($method, $path,
                $method =~ /^P/ ? (json => {}) : ());
            error_is($r, 405, "method_not_allowed",
                "5.1 $method $template is a 405");
            is($sorted->($r), $allow, "5.1 with Allow");
        }
    }
    my $r = $c->request("BREW", "/api/v1/contacts");
    error_is($r, 405, "method_not_allowed", "5.1 an unknown method, too");
    error_is($anyone->options("/api/v1/none"), 404, "not_found",
        "OPTIONS of no such path");
    is_deeply([grep { /^Access-Control/i } map { $_->[0] }
        @{$c->get("/api/v1/agents", headers => { Origin => "https://x.example"
        })->{headers}}], [], "5.1 no CORS headers");
    is_deeply([grep { /^Access-Control/i } map { $_->[0] }
        @{$anyone->options("/api/v1/agents", headers => { Origin =>
        "https://x.example", "Access-Control-Request-Method" => "GET"
        })->{headers}}], [], "5.1 nor for a preflight");
};

subtest "5.2 a target with scheme and host (RFC 9112, 3.2.2)" => sub {
    my $short = httpd(database => $database, conf => "CrmApiMcp /m/\n");
    my $w = workspace($short);
    my $ask = sub {
        my ($scheme, $path) = @_;
        return $short->client->raw("GET $scheme://x.example:80$path HTTP/1.1\r\n"
            . "Host: x.example\r\nAuthorization: Bearer " . $w->key . "\r\n\r\n");
    };
    for my $scheme (qw(http https)) {
        status_is($ask->($scheme, "/api/v1/agents"), 200, "$scheme: the API");
        status_is($ask->($scheme, "/api/v1//agents"), 404, "no part is empty");
        status_is($ask->($scheme, "/m/"), 405, "a mount with a short path");
        status_is($ask->($scheme, "/m//"), 404, "nor there");
    }
};

subtest "5.2 paths: one trailing slash, reserved words, nothing else" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        emails => ["a\@example.com"] })->data->{id};
    for my $path ("/agents", "/contacts", "/contacts/$id",
            "/contacts/$id/activities") {
        my $with = $c->get("/api/v1$path/");
        status_is($with, 200, "5.2 $path/");
        is($with->body, $c->get("/api/v1$path")->body, "5.2 is $path");
        error_is($c->get("/api/v1$path//"), 404, "not_found",
            "5.2 $path// is not");
        error_is($c->get("/api/v1/$path"), 404, "not_found",
            "5.2 nor is /$path");
    }
    is($c->get("/api/v1/contacts/by-email/", query => "email=a\@example.com")
        ->data->{id}, $id, "5.2 by-email/");
    status_is($c->post("/api/v1/contacts/upsert/", { bot_id => $w->agent,
        contacts => [] }), 200, "5.2 upsert/");
    error_is($c->get("/api/v1/contacts/by-email"), 422, "validation_error",
        "5.2 by-email is no id", ["email"]);
    error_is($c->delete("/api/v1/contacts/by-email"), 405,
        "method_not_allowed", "5.2 for no method");
    error_is($c->get("/api/v1/contacts/upsert"), 405, "method_not_allowed",
        "5.2 upsert is no id");
    error_is($c->patch("/api/v1/contacts/upsert", {}), 405,
        "method_not_allowed", "5.2 for no method");
    error_is($c->get("/api/v1/sequences/start"), 405, "method_not_allowed",
        "5.2 nor is start");
    for my $path ("", "/", "/Contacts", "/contact", "/contacts/$id/none",
            "/contacts/$id/activities/$id", "/agents/$id/contacts",
            "/contactsx", "/pipelines/$id", "/activities/$id",
            "/contacts.json", "/sequences", "/sequences/start/x",
            "/message", "/a/b/c/d/e/f/g/h", "/contacts;x=1",
            "/" . "x" x 2000) {
        error_is($c->get("/api/v1$path"), 404, "not_found",
            "no such path: " . substr($path, 0, 40));
    }
    status_is($c->get("/api/v1/agents", query => "x=https://a//b"), 200,
        "the query is no path");
    my $hex = join "", map { sprintf "%%%02x", ord } split //, "contacts";
    status_is($c->get("/api/v1/$hex/$id"), 200,
        "percent-encoded letters are the letters");
    $httpd->expect_log(qr/AH10244: invalid URI path/ => 2);
    for my $path ("contacts%2F$id", "contacts%00", "contacts/%00$id",
            "contacts/$id%00", "contacts/%zz", "contacts/%") {
        my $r = $c->raw("GET /api/v1/$path HTTP/1.1\r\nHost: x\r\n"
            . "Authorization: Bearer " . $w->key
            . "\r\nConnection: close\r\n\r\n");
        ok($r->status == 404 || $r->status == 400, "$path is no way around")
            or diag($r->text);
        is($r->header("Content-Type"), "application/json", "and JSON");
    }
    my $upper = uc $id;
    status_is($c->get("/api/v1/contacts/$upper"), 200,
        "ids are UUIDs: case does not matter");
    for my $bad ("{$id}", $id =~ s/-//gr, "urn:uuid:$id", " $id", "$id ",
            substr($id, 0, -1), "${id}0", "0", "-1", "null", "'",
            "%27%20OR%201=1", "g" . substr $id, 1) {
        my $path = "/api/v1/contacts/" . ($bad =~ s/ /%20/gr);
        error_is($c->get($path), 404, "not_found", "6.8 no such id: $bad");
    }
};

subtest "a path that is too long for the name of a file" => sub {
    my $own = httpd(database => $database,
        unlimited => 1, conf => "CrmApiIntake On\n"
        . "CrmApiReview On\nCrmApiUnsubscribe On\nCrmApiMcp On\n");
    my $w = workspace($own);
    my $long = "x" x 5000;
    my $ask = sub { $own->client->request($_[0], $_[1] . $long, @_[2 .. $#_]) };
    error_is($ask->("GET", "/api/v1/"), 401, "unauthorized", "no key");
    for my $method (qw(GET POST)) {
        error_is($ask->($method, "/api/v1/", key => $w->key), 404, "not_found",
            "$method: no such path");
        error_is($ask->($method, "/crmapi/intake/v1/"), 404, "not_found",
            "$method: nor one of intake");
    }
    error_is($ask->("GET", "/api/v1/contacts/", key => $w->key), 404,
        "not_found", "no such id");
    for my $page (qw(review unsubscribe)) {
        my $r = $ask->("GET", "/crmapi/$page/");
        is($r->status, 403, "$page: no such link");
        like($r->body, qr/<html lang/, "says the page");
    }
    $own->stop;         # error_log has nothing of it
};

subtest "5.3 media types" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $body = qq({"bot_id":"@{[$w->agent]}"});
    for my $type ("application/json", "Application/JSON",
            "application/json; charset=utf-8", "application/json;charset=UTF-8",
            "application/json; charset=\"utf-8\"",
            "application/json ;charset=utf-8",
            "application/json; boundary=x", undef) {
        status_is($c->request("POST", "/api/v1/contacts", body => $body,
            headers => { "Content-Type" => $type }), 201,
            "5.3 accepted: " . ($type // "none"));
    }
    for my $type ("text/plain", "text/json", "application/xml", "json",
            "application/x-www-form-urlencoded", "multipart/form-data",
            "application/json; charset=iso-8859-1",
            "application/json; charset=utf-16", "application/jsonx",
            "application/merge-patch+json", "application/json, text/plain",
            "application/", "*/*") {
        error_is($c->request("POST", "/api/v1/contacts", body => $body,
            headers => { "Content-Type" => $type }), 415,
            "unsupported_media_type", "5.3 refused: $type");
    }
    my $r = $c->request("PATCH", "/api/v1/contacts/" . uuid(), body => $body,
        headers => { "Content-Type" => "application/json-patch+json" });
    error_is($r, 415, "unsupported_media_type", "5.3 a PATCH of another kind");
    is($r->header("Accept-Patch"),
        "application/json, application/merge-patch+json",
        "what it may be (RFC 5789)");
    like($r->message, qr/merge-patch\+json/, "which the error says, too");
    status_is($c->get("/api/v1/agents", headers => { "Content-Type" =>
        "text/plain" }), 200, "a GET has no body, so no type of it");
    status_is($c->get("/api/v1/agents", headers => { Accept => "text/html" }),
        200, "Accept is nothing");
};

subtest "5.3 a body that is encoded: 415" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $body = qq({"bot_id":"@{[$w->agent]}"});
    require IO::Compress::Gzip;
    IO::Compress::Gzip::gzip(\$body, \my $zipped);
    for my $coding ("gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip",
            "gzip,identity", "x-none") {
        error_is($c->request("POST", "/api/v1/contacts", body => $zipped,
            headers => { "Content-Encoding" => $coding }), 415,
            "unsupported_media_type", "5.3 $coding");
    }
    for my $coding ("identity", "Identity", " identity , identity", "") {
        status_is($c->request("POST", "/api/v1/contacts", body => $body,
            headers => { "Content-Encoding" => $coding }), 201,
            "5.3 '$coding' is none");
    }
    status_is($c->get("/api/v1/agents", headers => {
        "Content-Encoding" => "gzip" }), 200, "a GET has no body");
};

# RESPONSE refuses a body of more than MAX bytes.
sub too_large_is {
    my ($response, $max, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    error_is($response, 413, "payload_too_large", $name);
    like($response->json->{error}{message}, qr/ more than $max bytes$/,
        "$name: how many may be sent");
}

subtest "5.3 413 from Content-Length, and while reading chunks" => sub {
    my $max = 5000;
    my $small = httpd(database => $database,
        unlimited => 1, conf => "CrmApiMaxBody $max\n");
    my $w = workspace($small);
    my $c = $w->client;
    my $auth = "Authorization: Bearer " . $w->key . "\r\n";
    my $json = qq({"bot_id":"@{[$w->agent]}"});
    my $exact = $json . " " x ($max - length $json);
    status_is($c->request("POST", "/api/v1/contacts", body => $exact), 201,
        "5.3 $max bytes are fine");
    too_large_is($c->request("POST", "/api/v1/contacts", body => "$exact "), $max,
        "5.3 one more is not");
    # the body is never sent: the answer comes from the header alone
    my $head = "POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n$auth"
        . "Content-Type: application/json\r\n";
    for my $length ($max + 1, "9" x 12) {
        my $r = $small->client(timeout => 10)->raw("$head"
            . "Content-Length: $length\r\n\r\n");
        too_large_is($r, $max, "5.3 Content-Length: $length, before reading");
    }
    for my $size (1, 7, 100, 4096) {
        my $r = $c->raw("${head}Transfer-Encoding: chunked\r\n"
            . "Connection: close\r\n\r\n"
            . join("", map { sprintf "%x\r\n%s\r\n", length $_, $_ }
            $exact =~ /(.{1,$size})/gs) . "0\r\n\r\n");
        status_is($r, 201, "5.3 $max bytes in chunks of $size");
    }
    my $r = $c->raw("${head}Transfer-Encoding: chunked\r\n\r\n"
        . join("", map { sprintf "%x\r\n%s\r\n", length $_, $_ }
        "$exact " =~ /(.{1,1000})/gs) . "0\r\n\r\n");
    too_large_is($r, $max, "5.3 one more in chunks");
    # a body that never ends: the answer comes when the limit is passed
    $r = $small->client(timeout => 10)->raw("${head}Transfer-Encoding: "
        . "chunked\r\n\r\n" . sprintf("%x\r\n%s\r\n", 3000, " " x 3000) x 2);
    too_large_is($r, $max, "5.3 while reading");
    is(sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
        . " workspace_id = '" . $w->id . "'"), 5, "five were accepted");
    $small->stop;
};

subtest "5.3 the usual limit is 2 MiB" => sub {
    my $w = workspace($httpd);
    my $json = qq({"bot_id":"@{[$w->agent]}"});
    status_is($w->client->request("POST", "/api/v1/contacts",
        body => $json . " " x (2 * 1024 * 1024 - length $json)), 201,
        "5.3 2,097,152 bytes");
    too_large_is($w->client->request("POST", "/api/v1/contacts",
        body => $json . " " x (2 * 1024 * 1024 + 1 - length $json)), 2097152,
        "5.3 2,097,153 bytes");
};

subtest "5.4 headers of every response" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $c->post("/api/v1/contacts", { bot_id => $w->agent })
        ->data->{id};
    my %ids;
    my @responses = (
        $c->get("/api/v1/agents"), $c->get("/api/v1/contacts/$id"),
        $c->post("/api/v1/contacts", { bot_id => $w->agent }),
        $c->patch("/api/v1/contacts/$id", {}),
        $c->get("/api/v1/none"), $c->post("/api/v1/contacts", {}),
        $c->request("POST", "/api/v1/contacts", body => "{"),
        $anyone->get("/api/v1/agents"), $c->request("PUT", "/api/v1/contacts"),
        $c->delete("/api/v1/contacts/$id"),
        $anyone->options("/api/v1/contacts"), $c->head("/api/v1/agents"),
        $anyone->raw("GET /api/v1/agents HTTP/1.1\r\n\r\n"),
        $anyone->raw("TRACE /api/v1/agents HTTP/1.1\r\nHost: x\r\n\r\n"),
    );
    for my $r (@responses) {
        my $what = join " ", $r->{request}{method}, $r->{request}{path},
            $r->status;
        if ($r->status == 204) {
            is_deeply([$r->header("Content-Type")], [], "$what: no type");
        }
        else {
            is_deeply([$r->header("Content-Type")], ["application/json"],
                "5.4 $what: type");
        }
        is_deeply([$r->header("Cache-Control")], ["private, no-store"],
            "5.4 $what: Cache-Control");
        is_deeply([$r->header("X-Content-Type-Options")], ["nosniff"],
            "5.4 $what: nosniff");
        my @request_ids = $r->header("X-Request-Id");
        is(scalar @request_ids, 1, "5.4 $what: one X-Request-Id");
        like($request_ids[0] // "", qr/^[A-Za-z0-9._-]{1,128}$/,
            "5.4 $what: a sane one");
        ok(!$ids{$request_ids[0] // ""}++, "5.4 $what: of its own");
        my $one = $r->status =~ /^2/ && $r->body ne ""
            && ref $r->json->{data} eq "HASH";
        is(scalar(() = $r->header("ETag")), $one ? 1 : 0,
            "13.2 $what: an ETag if it shows one resource");
        is_deeply([$r->header("Last-Modified")], [], "$what: no other");
    }
};

subtest "5.4 JSON is sent whole: only files have parts (Range)" => sub {
    my $w = workspace($httpd);
    my $id = $w->client->post("/api/v1/contacts",
        { bot_id => $w->agent })->data->{id};
    for my $path ("/contacts", "/contacts/$id", "/workspace", "/openapi.json") {
        my $whole = asked($w, "GET", $path);
        for my $range ("bytes=0-3", "bytes=9999999-", "bytes=0-0,2-3") {
            my $r = asked($w, "GET", $path, headers => { Range => $range });
            status_is($r, 200, "$path: Range: $range");
            is($r->body, $whole->body, "is ignored");
            is($r->header("Accept-Ranges"), undef, "and not offered");
        }
    }
};

subtest "5.4 X-Request-Id: a sane one is kept" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    for my $id ("a", "abc.DEF_123-x", "x" x 128, "0", "...") {
        my $r = $c->get("/api/v1/agents", headers => { "X-Request-Id" => $id });
        is($r->header("X-Request-Id"), $id, "5.4 kept: " . substr $id, 0, 20);
        $r = $c->get("/api/v1/none", headers => { "X-Request-Id" => $id });
        is($r->header("X-Request-Id"), $id, "5.4 with errors, too");
    }
    for my $id ("", "x" x 129, "a b", "a,b", "a/b", "a;b", "\xc3\xa4", "a%41",
            "a\"b", "<script>", "a\tb", "a:b", ["one", "two"]) {
        my $r = $c->get("/api/v1/agents", headers => { "X-Request-Id" => $id });
        like($r->header("X-Request-Id") // "", $UUID7, "5.4 replaced: "
            . (ref $id ? "two" : substr $id, 0, 20));
    }
};

subtest "5.4 X-Request-Id in the log and in the database's session" => sub {
    my $own = httpd(database => $database, level => "crmapi:debug",
        unlimited => 1, conf => "CrmApiRequestIdInDatabase On\n");
    my $w = workspace($own);
    my $id = "find-me-$$";
    status_is($w->client->get("/api/v1/agents",
        headers => { "X-Request-Id" => $id }), 200);
    ok($own->wait_log(qr/\Q$id\E/), "5.4 in error_log");
    # a session that waits for a lock shows whose it is
    my $contact = $w->client->post("/api/v1/contacts", { bot_id => $w->agent })
        ->data->{id};
    my $let_go = holding($database, "SELECT FROM crmapi.contact WHERE"
        . " workspace_id = '" . $w->id . "' AND id = '$contact' FOR UPDATE");
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
        PeerPort => $own->port) or die $!;
    my $body = '{"notes":"x"}';
    print $socket "PATCH /api/v1/contacts/$contact HTTP/1.1\r\nHost: x\r\n"
        . "Authorization: Bearer " . $w->key . "\r\nX-Request-Id: wait-$$\r\n"
        . "Content-Type: application/json\r\nContent-Length: "
        . length($body) . "\r\nConnection: close\r\n\r\n$body";
    # with Citus it is another session that waits, on the workspace's server
    my $waits = CrmTest::Citus::wanted() ? "state = 'active'"
        : "wait_event_type = 'Lock'";
    postgres()->wait_locked($database, 1);
    ok(wait_for(sub { sql("postgres", "SELECT count(*) FROM pg_stat_activity"
        . " WHERE datname = '$database' AND application_name LIKE '%wait-$$%'"
        . " AND $waits") }), "5.4 in pg_stat_activity");
    $let_go->();
    my $answer = do { local $/; <$socket> };
    like($answer, qr/^HTTP\/1.1 200 /, "the request itself went on");
    $own->stop;
};

subtest "5.4 Location with every 201 of what can be read by id" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %made = (
        contacts => { bot_id => $w->agent },
        companies => { bot_id => $w->agent, name => "x" },
        "pipeline-cards" => { title => "x",
            pipeline_stage_id => ($w->stages)[0] },
        activities => { activity_type => "note",
            contact_id => $c->post("/api/v1/contacts", {
                bot_id => $w->agent })->data->{id} },
    );
    for my $path (sort keys %made) {
        my $r = $c->post("/api/v1/$path", $made{$path});
        status_is($r, 201);
        my $id = $r->data->{id};
        is($r->header("Location"), "/api/v1/$path/$id", "5.4 $path");
        json_is($c->get($r->header("Location") // "/"), $r->data,
            "5.4 it leads there");
    }
};

# --- errors that httpd makes by itself ---------------------------------------

subtest "5.5 httpd's own errors are JSON" => sub {
    my $strict = httpd(database => $database, level => "warn",
        unlimited => 1, conf => <<"END");
LimitRequestLine 1000
LimitRequestFieldSize 1000
LimitRequestFields 20
ErrorDocument 400 "<html>not this</html>"
ErrorDocument 404 /nowhere.html
ErrorDocument 405 "not this"
ErrorDocument 414 "<html>not this</html>"
ErrorDocument 417 http://elsewhere.example/
END
    my $any = $strict->client(timeout => 10);
    my $w = workspace($strict);
    my $auth = "Authorization: Bearer " . $w->key . "\r\n";
    my $get = "GET /api/v1/agents HTTP/1.1\r\nHost: x\r\n$auth";
    my $post = "POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n$auth"
        . "Content-Type: application/json\r\n";
    my @cases = (
        ["no Host", "GET /api/v1/agents HTTP/1.1\r\n$auth\r\n", 400,
            "bad_request"],
        ["two Hosts", "${get}Host: y\r\n\r\n", 400, "bad_request"],
        ["a header without a colon", "${get}nonsense\r\n\r\n", 400,
            "bad_request"],
        ["a blank before the colon", "${get}X-A : b\r\n\r\n", 400,
            "bad_request"],
        ["a control character in a header", "${get}X-A: b\x01c\r\n\r\n", 400,
            "bad_request"],
        ["a header too large", "${get}X-A: " . "a" x 1100 . "\r\n\r\n", 400,
            "bad_request"],
        ["too many headers", $get . join("", map { "X-$_: a\r\n" } 1 .. 30)
            . "\r\n", 400, "bad_request"],
        ["a URI too long", "GET /api/v1/agents?x=" . "a" x 1100
            . " HTTP/1.1\r\nHost: x\r\n$auth\r\n", 414, "uri_too_long"],
        ["an expectation", "${post}Expect: the-impossible\r\n"
            . "Content-Length: 2\r\n\r\n{}", 417, "bad_request"],
        ["TRACE", "TRACE /api/v1/agents HTTP/1.1\r\nHost: x\r\n$auth\r\n",
            405, "method_not_allowed"],
        ["Content-Length that is no number", "${post}Content-Length: ab\r\n"
            . "\r\n", 400, "bad_request"],
        ["a negative Content-Length", "${post}Content-Length: -1\r\n\r\n",
            400, "bad_request"],
        ["two Content-Lengths", "${post}Content-Length: 2\r\n"
            . "Content-Length: 3\r\n\r\n{}", 400, "bad_request"],
        ["a bad chunk", "${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
            400, "bad_request"],
        ["a chunk with a bad end", "${post}Transfer-Encoding: chunked\r\n\r\n"
            . "2\r\n{}xx0\r\n\r\n", 400, "bad_request"],
        ["an unknown Transfer-Encoding", "${post}Transfer-Encoding: rot13\r\n"
            . "\r\n{}", [400, 501], undef],
        ["an unknown protocol", "GET /api/v1/agents HTTQ/1.1\r\nHost: x\r\n"
            . "$auth\r\n", [400, 505], undef],
        ["a space in the path", "GET /api/v1/age nts HTTP/1.1\r\nHost: x\r\n"
            . "$auth\r\n", 400, "bad_request"],
        ["a control character in the path", "GET /api/v1/\x01 HTTP/1.1\r\n"
            . "Host: x\r\n$auth\r\n", 400, "bad_request"],
        ["a bad escape", "GET /api/v1/%zz HTTP/1.1\r\nHost: x\r\n$auth\r\n",
            400, "bad_request"],
        ["an encoded slash", "GET /api/v1/contacts%2fx HTTP/1.1\r\nHost: x"
            . "\r\n$auth\r\n", 404, "not_found"],
        ["CONNECT", "CONNECT /api/v1/agents HTTP/1.1\r\nHost: x\r\n$auth\r\n",
            [400, 405], undef],
    );
    $strict->expect_log(qr{AH10244: invalid URI path \(/api/v1/%zz\)} => 1);
    for my $case (@cases) {
        my ($name, $bytes, $status, $code) = @$case;
        my $r = eval { $any->raw($bytes) };
        ok($r, "5.5 $name: there is an answer") or diag($@), next;
        my $error = eval { $r->json->{error} } || {};
        ok((grep { $_ == $r->status } ref $status ? @$status : $status),
            "5.5 $name: status " . $r->status) or diag($r->text);
        is($r->header("Content-Type"), "application/json", "5.5 $name: JSON");
        is($error->{code}, $code, "5.5 $name: $code") if $code;
        ok(length($error->{message} // ""), "5.5 $name: with a message")
            or diag($r->text);
        unlike($r->body, qr/<|not this|apache|127\.0\.0\.1/i,
            "5.5 $name: nothing of httpd's");
        is_deeply([map { $r->header($_) } qw(Cache-Control
            X-Content-Type-Options)], ["private, no-store", "nosniff"],
            "5.4 $name: headers");
        is($r->header("Content-Length") // length $r->body, length $r->body,
            "$name: the length is right");
    }
    # Not ours: httpd answers as it always does.
    my $r = $any->raw("GET /other HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n");
    is($r->status, 400, "elsewhere");
    like($r->header("Content-Type"), qr{^text/html}, "httpd's HTML stays");
    $strict->stop;
};

subtest "5.5 a body that comes too slowly: 408 as JSON" => sub {
    my $slow = httpd(database => $database,
        unlimited => 1, conf => "RequestReadTimeout body=1\n");
    my $w = workspace($slow);
    my $r = $slow->client(timeout => 20)->raw("POST /api/v1/contacts"
        . " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " . $w->key
        . "\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
        . '{"bot_id":');
    ok($r, "there is an answer");
    error_is($r, 408, "bad_request", "5.5 408") if $r;
    $r = $slow->client(timeout => 20)->raw("POST /api/v1/contacts"
        . " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " . $w->key
        . "\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
        . '{"bot_id":', shutdown => 1);
    ok($r, "there is an answer, too");
    error_is($r, 400, "bad_request", "5.3 a body that breaks off is a 400")
        if $r;
    is($slow->client(key => $w->key)->get("/api/v1/contacts")
        ->json->{pagination}{total}, 0, "nothing was made");
    $slow->stop;
};

subtest "5.5 access the site refuses is JSON, too" => sub {
    my $closed = httpd(database => $database, unlimited => 1,
        conf => "<Location /api/v1/companies>\nRequire all denied\n"
        . "</Location>\n");
    $closed->expect_log(qr/AH01630: client denied by server config/ => 1);
    my $w = workspace($closed);
    error_is($w->client->get("/api/v1/companies"), 403, "forbidden",
        "Require all denied");
    status_is($w->client->get("/api/v1/agents"), 200, "elsewhere it works");
    $closed->stop;
};

subtest "connections stay usable after errors, pipelining works" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200);
    for my $ask (sub { $c->get("/api/v1/none") },
            sub { $c->post("/api/v1/contacts", {}) },
            sub { $c->request("POST", "/api/v1/agents", body => "x" x 5000) },
            sub { $c->request("POST", "/api/v1/none", body => "x" x 5000,
                key => $BAD_KEY) }) {
        my $r = $ask->();
        ok($r->status >= 400, "an error: " . $r->status);
        ok(!$r->{closes}, "that leaves the connection open");
        my $next = $c->get("/api/v1/agents");
        status_is($next, 200, "and the next request is answered");
        is($next->json->{pagination}{total}, 1, "as what it is");
    }
    my $p = $httpd->client;
    my @sizes = (7, 0, 3, 100, 0);      # none is to be had by 0
    $p->send_raw(join "", map { "GET /api/v1/agents?page_size=$_ HTTP/1.1\r\n"
        . "Host: x\r\nAuthorization: Bearer " . $w->key . "\r\n\r\n" }
        @sizes);
    for my $size (@sizes) {
        my $r = $p->read_response("GET");
        is($r->status . " " . ($r->json->{pagination}{page_size} // "none"),
            $size ? "200 $size" : "422 none", "pipelined, in order: $size");
    }
};

subtest "a body that is not read ends the connection if it may be long" => sub {
    for my $case (["Content-Length: 65536", 0], ["Content-Length: 65537", 1],
            ["Content-Length: 7\r\nExpect: 100-continue", 1],
            ["Transfer-Encoding: chunked", 1]) {
        my ($header, $ends) = @$case;
        my $c = $httpd->client;
        $c->send_raw("POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n"
            . "Authorization: Bearer $BAD_KEY\r\n$header\r\n\r\n");
        my $r = $c->read_response("POST");
        is($r->status, 401, "$header: 401 before the body");
        is(!!$r->{closes}, !!$ends, $ends ? "it ends" : "it goes on");
    }
};

subtest "Expect: 100-continue is answered only when the body is wanted" => sub {
    my $w = workspace($httpd);
    my $body = qq({"bot_id":"@{[$w->agent]}"});
    my $head = sub {
        my ($path, $key) = @_;
        return "POST /api/v1/$path HTTP/1.1\r\nHost: x\r\nAuthorization: "
            . "Bearer $key\r\nContent-Type: application/json\r\nContent-Length: "
            . length($body) . "\r\nExpect: 100-continue\r\n\r\n";
    };
    my $c = $httpd->client;
    $c->send_raw($head->("contacts", $w->key));
    ok($c->fill_until(sub { $c->{buffer} =~ /^HTTP\/1.1 100 .*\r\n\r\n/s }),
        "100 for a good request");
    $c->send_raw($body);
    is($c->read_response("POST")->status, 201, "then 201");
    for my $case (["contacts", $BAD_KEY, 401], ["none", $w->key, 404],
            ["contacts", $w->make_key("read"), 403]) {
        my ($path, $key, $status) = @$case;
        my $c = $httpd->client;
        $c->send_raw($head->($path, $key));
        is($c->read_response("POST")->status, $status, "$status at once");
        is_deeply($c->{interim} || [], [], "and no 100 before");
    }
};

subtest "only /api/v1 is the API's" => sub {
    my $w = workspace($httpd);
    write_file($httpd->dir . "/htdocs/index.txt", "the site's own\n");
    is($anyone->get("/index.txt")->body, "the site's own\n",
        "the site serves its files");
    for my $path ("/api/v1x", "/api", "/api/v2/agents", "/API/v1/agents",
            "/x/api/v1/agents") {
        my $r = $w->client->get($path);
        status_is($r, 404, "$path is not the API's");
        like($r->header("Content-Type"), qr{^text/html}, "but httpd's");
    }
    status_is($w->client->get("/x/../api/v1/agents"), 200,
        "paths are normalised first");
    status_is($w->client->get("/api/v1/./agents"), 200, "dots, too");
};

done_testing;
