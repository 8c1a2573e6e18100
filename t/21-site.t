# SPDX-License-Identifier: Apache-2.0
# 21-site.t: the API together with other parts of a site: ErrorDocuments,
# limits, filters, rewriting, proxies, access control (contract 5)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use Compress::Zlib ();

my $database = database();

# R has all that every answer under /api/v1 has (contract 5.4).
sub headers_are {
    my ($r, $name) = @_;
    is_deeply([map { join "|", $r->header($_) } qw(Content-Type Cache-Control
        X-Content-Type-Options Location ETag Last-Modified)],
        ["application/json", "private, no-store", "nosniff", "", "", ""],
        "5.4 $name: headers, each once");
    like($r->header("X-Request-Id"), qr/^[A-Za-z0-9._-]{1,128}$/,
        "5.4 $name: an id");
    is($r->header("Content-Length"), length $r->body, "$name: its length");
}

# What an ErrorDocument is, how it is written, and how it answers a 404 of the
# site's own: status, body, Location.
my @KINDS = (
    ["a local path", "/error.txt", 404, qr/\Athe site's own\n\z/],
    ["a local path that is not there", "/nowhere.txt", 404,
        qr/<h1>Not Found.*additionally, a 404 Not Found/si],
    ["a text", "\"the site's own\"", 404, qr/\Athe site's own\z/],
    ["a URL", "http://elsewhere.example/error-%{STATUS}", 302, qr/<a href/,
        "http://elsewhere.example/error-404"],
);
for my $kind (@KINDS) {
    my ($what, $document, @elsewhere) = @$kind;
    subtest "5.5 an ErrorDocument that is $what replaces nothing" => sub {
        my $documents = join "", map { my $status = $_; "ErrorDocument $_ "
            . ($document =~ s/%\{STATUS\}/$status/r) . "\n" }
            400 .. 417, 421 .. 424, 426, 428, 429, 431, 500 .. 508, 510, 511;
        my $httpd = httpd(database => $database, modules => ["allowmethods"],
            unlimited => 1, conf => $documents . <<'END');
LimitRequestLine 1000
LimitRequestFieldSize 1000
LimitRequestBody 2000
<Location /api/v1/companies>
    Require all denied
</Location>
<Location /api/v1/forms>
    AllowMethods POST
</Location>
END
        $httpd->expect_log(qr{AH10244: invalid URI path \(/api/v1/%zz\)} => 1,
            qr/AH01630: client denied by server configuration/ => 2,
            qr/AH01623: client method denied by server config.* 'GET'/ => 1);
        write_file($httpd->dir . "/htdocs/error.txt", "the site's own\n");
        my $w = workspace($httpd);
        my $auth = "Authorization: Bearer " . $w->key . "\r\n";
        my $get = "GET /api/v1/agents HTTP/1.1\r\nHost: x\r\n$auth";
        my $post = "POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n$auth"
            . "Content-Type: application/json\r\n";
        my $to = sub { my ($path) = @_; "GET /api/v1$path HTTP/1.1\r\nHost: x"
            . "\r\n$auth\r\n" };
        for my $case (
            ["no key", "GET /api/v1/agents HTTP/1.1\r\nHost: x\r\n\r\n", 401,
                "unauthorized"],
            ["no such route", $to->("/none"), 404, "not_found"],
            ["a parameter", $to->("/agents?page=0"), 422, "validation_error"],
            ["a bad header", "${get}nonsense\r\n\r\n", 400, "bad_request"],
            ["a header too large", "${get}X: " . "a" x 1100 . "\r\n\r\n", 400,
                "bad_request"],
            ["no Host", "GET /api/v1/agents HTTP/1.1\r\n\r\n", 400,
                "bad_request"],
            ["a line too long", $to->("/agents?x=" . "a" x 1100), 414,
                "uri_too_long"],
            ["an expectation", "${post}Expect: more\r\nContent-Length: 2\r\n"
                . "\r\n{}", 417, "bad_request"],
            ["a bad escape", $to->("/%zz"), 400, "bad_request"],
            ["an encoded slash", $to->("/contacts%2fx"), 404, "not_found"],
            ["Require all denied", $to->("/companies"), 403, "forbidden"],
            ["AllowMethods", $to->("/forms"), 405, "method_not_allowed"],
            ["TRACE", "TRACE /api/v1/agents HTTP/1.1\r\nHost: x\r\n$auth\r\n",
                405, "method_not_allowed"],
            ["a body over LimitRequestBody",
                "${post}Content-Length: 2001\r\n\r\n", 413,
                "payload_too_large"],
            ["the same in chunks", "${post}Transfer-Encoding: chunked\r\n\r\n"
                . sprintf("%x\r\n%s\r\n", 1500, " " x 1500) x 2
                . "0\r\n\r\n", 413, "payload_too_large"],
            ["a bad chunk", "${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                400, "bad_request"],
        ) {
            my ($name, $bytes, $status, $code) = @$case;
            my $r = $httpd->client(timeout => 20)->raw($bytes);
            error_is($r, $status, $code, "5.5 $name");
            headers_are($r, $name);
            unlike($r->body, qr/site's own|</, "5.5 $name: nothing else");
            ok($r->header("Allow"), "5.1 $name: with Allow")
                if $status == 405;
            like($r->{reason}, qr/^\w/, "$name: a phrase");
        }
        my $head = $httpd->client->raw("HEAD /api/v1/companies HTTP/1.1\r\n"
            . "Host: x\r\nConnection: close\r\n\r\n");
        is(join(" ", $head->status, $head->header("Content-Type"),
            $head->header("Content-Length") > 50, length $head->body),
            "403 application/json 1 0", "5.1 HEAD of httpd's own error");
        my $other = $httpd->client->raw("GET /none HTTP/1.1\r\nHost: x\r\n"
            . "Connection: close\r\n\r\n");
        is($other->status, $elsewhere[0], "elsewhere it is used: status");
        like($other->body, $elsewhere[1], "its body");
        is($other->header("Location"), $elsewhere[2], "its Location");
        $httpd->stop;
    };
}

subtest "bodies that break off or lie" => sub {
    my $httpd = httpd(database => $database, unlimited => 1);
    my $w = workspace($httpd);
    my $post = "POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n"
        . "Authorization: Bearer " . $w->key . "\r\n"
        . "Content-Type: application/json\r\n";
    for my $case (
        ["Content-Length", "${post}Content-Length: 50\r\n\r\n{\"bot_id\":"],
        ["chunks", "${post}Transfer-Encoding: chunked\r\n\r\n5\r\n{\"bo"],
        ["chunks without an end",
            "${post}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"],
    ) {
        my ($name, $bytes) = @$case;
        my $r = $httpd->client(timeout => 20)->raw($bytes, shutdown => 1);
        error_is($r, 400, "bad_request", "a body cut short: $name");
        headers_are($r, $name);
        ok($r->{closes}, "the connection is closed");
        is($r->header("X-RateLimit-Limit"), undef,
            "4.2 no limit, no headers");
    }
    is(sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
        . " workspace_id = '" . $w->id . "'"), 0, "nothing was made");
    $httpd->stop;
};

subtest "4.2 limits are told with errors of the body, too" => sub {
    my $httpd = httpd(database => $database, conf => "LimitRequestBody 500\n");
    my $w = workspace($httpd);
    my $post = "POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n"
        . "Authorization: Bearer " . $w->key . "\r\n"
        . "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    my $left = 60;
    for my $case (["too large", sprintf("%x\r\n%s\r\n", 600, " " x 600)
            . "0\r\n\r\n", 413], ["malformed", "zz\r\n", 400]) {
        my ($name, $chunks, $status) = @$case;
        my $r = $httpd->client(timeout => 20)->raw("$post$chunks");
        status_is($r, $status, $name);
        is($r->header("X-RateLimit-Remaining"), --$left, "4.2 $name");
    }
    $httpd->stop;
};

subtest "bodies nobody wants: short ones are drained, others end it" => sub {
    my $httpd = httpd(database => $database, unlimited => 1);
    my $c = $httpd->client;
    my $r = $c->request("POST", "/api/v1/contacts", body => "x" x 60000);
    status_is($r, 401);
    ok(!$r->{closes}, "60,000 bytes: the connection is kept");
    error_is($c->get("/api/v1/none"), 401, "unauthorized",
        "and the next request is answered");
    for my $header ("Content-Length: 1000000000000",
            "Transfer-Encoding: chunked") {
        $r = $httpd->client(timeout => 10)->raw("POST /api/v1/contacts "
            . "HTTP/1.1\r\nHost: x\r\n$header\r\n\r\n");
        error_is($r, 401, "unauthorized", "$header: answered at once");
        ok($r->{closes}, "and closed");
    }
    # the answer does not wait for what is drained
    $r = $httpd->client(timeout => 10)->raw("POST /api/v1/contacts HTTP/1.1"
        . "\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf of");
    error_is($r, 401, "unauthorized", "a short one that does not come");
    $httpd->stop;
};

subtest "5.3 a compressed body is measured by what comes out" => sub {
    my $httpd = httpd(database => $database, unlimited => 1,
        conf => "CrmApiMaxBody 100000\n<Location /api>\n"
        . "SetInputFilter DEFLATE\n"
        . "</Location>\n");
    $httpd->expect_log(qr/AH02619: .*end-of-stream .* inflate header/ => 1);
    my $w = workspace($httpd);
    my $c = $w->client;
    my %gzip = (headers => { "Content-Encoding" => "gzip" });
    my $json = qq({"bot_id":"@{[$w->agent]}"});
    my $r = $c->request("POST", "/api/v1/contacts", %gzip,
        body => Compress::Zlib::memGzip($json . " " x 5000));
    status_is($r, 201, "a compressed body");
    SKIP: {
        skip("valgrind sees that mod_deflate frees what it holds only at the"
            . " end of a body", 1) if valgrinded();
        $r = $c->request("POST", "/api/v1/contacts", %gzip,
            body => Compress::Zlib::memGzip(join " ", $json, 1 .. 30000));
        error_is($r, 413, "payload_too_large", "5.3 inflated it is too large");
    }
    $r = $c->request("POST", "/api/v1/contacts", %gzip, body => "not gzip");
    error_is($r, 400, "bad_request", "what is no gzip");
    headers_are($r, "no gzip");
    my $zipped = Compress::Zlib::memGzip($json);
    for my $case (["x-gzip", $zipped], ["identity, gzip", $zipped],
            ["identity", $json]) {
        my ($coding, $body) = @$case;
        status_is($c->request("POST", "/api/v1/contacts", body => $body,
            headers => { "Content-Encoding" => $coding }), 201, "5.3 $coding");
    }
    # mod_deflate takes gzip off the end, and leaves the rest to us
    for my $case (["br", $json], ["gzip, br", $json], ["br, gzip", $zipped],
            ["gzip, gzip", Compress::Zlib::memGzip($zipped)],
            ["gzip", $zipped, "Content-Range" => "bytes 0-9/10"]) {
        my ($coding, $body, @more) = @$case;
        for my $how (["POST", "contacts"], ["PATCH", "contacts/" . uuid()],
                ["POST", "contacts/upsert"]) {
            $r = $c->request($how->[0], "/api/v1/$how->[1]", body => $body,
                headers => { "Content-Encoding" => $coding, @more });
            error_is($r, 415, "unsupported_media_type",
                "5.3 @$how: $coding @more is not decoded");
        }
    }
    is($c->get("/api/v1/contacts")->json->{pagination}{total}, 4,
        "nothing was made of these");
    $httpd->stop;
};

subtest "responses are compressed where the site wants it" => sub {
    my $httpd = httpd(database => $database, modules => ["filter"],
        unlimited => 1,
        conf => "AddOutputFilterByType DEFLATE application/json\n");
    my $w = workspace($httpd);
    my $r = $w->client->ask("GET", "/api/v1/agents", headers => {
        "Accept-Encoding" => "gzip", Connection => "close" })
        ->read_response("GET");
    is($r->header("Content-Encoding"), "gzip", "gzip");
    is(Compress::Zlib::memGunzip($r->body), $w->client->get("/api/v1/agents")
        ->body, "and the same inside");
    $httpd->stop;
};

subtest "5.4 what the site says of its files' age is not for the API" => sub {
    my $own = httpd(database => $database, modules => ["expires"], conf => <<'END');
CrmApiReadLimit 0
CrmApiReview On
ExpiresActive On
ExpiresDefault "access plus 1 hour"
ExpiresByType application/json "access plus 1 day"
END
    my $w = workspace($own);
    write_file($own->dir . "/htdocs/page.txt", "a page");
    my $file = $own->client->get("/page.txt");
    is($file->header("Cache-Control"), "max-age=3600", "a file of the site");
    for my $path ("/api/v1/agents", "/api/v1/agents/" . $w->agent,
            "/api/v1/openapi.json", "/crmapi/review/x") {
        my $r = $w->client->get($path);
        is_deeply([grep { /max-age/ } $r->header("Cache-Control")], [],
            "$path has no age");
        is_deeply([$r->header("Expires")], [], "and no end");
    }
    my $r = $w->client->get("/api/v1/agents/" . $w->agent,
        headers => { "If-None-Match" => "*" });
    status_is($r, 304);
    is_deeply([$r->header("Cache-Control"), $r->header("Expires")],
        ["private, no-store"], "nor has a 304");
    $own->stop;
};

# GET /api/v1/PATH of HTTPD is redirected elsewhere by the site.
sub redirect_is {
    my ($httpd, $path, $name) = @_;
    my $c = $httpd->client;
    $c->send_raw("GET /api/v1/$path HTTP/1.0\r\n\r\n");
    my $r = $c->read_response("GET");
    like($r->status, qr/^30[12]$/, $name) or diag($r->text);
    is($r->header("Location"), "http://elsewhere.example/", "to there");
    like($r->header("X-Request-Id"), qr/^[\w.-]+$/, "5.4 with an id");
}

subtest "rewriting, redirects, proxies, handlers of the site" => sub {
    my $httpd = httpd(database => $database,
        modules => [qw(alias rewrite proxy proxy_http negotiation dir)],
        unlimited => 1, conf => <<'END');
RewriteEngine On
RewriteRule ^/old/(.*) /api/v1/$1 [PT]
RewriteRule ^/api/v1/moved$ http://elsewhere.example/ [R=302,L]
RewriteRule ^/api/v1/page$ /page.txt [PT]
RewriteRule ^/api/v1/gone$ - [G]
RewriteRule ^/api/v1/legacy http://127.0.0.1:9/ [P]
ProxyPass / http://127.0.0.1:9/
Alias /api/v1/aliased @DIR@/htdocs
ErrorDocument 404 "the site's own"
ErrorDocument 503 /page.txt
<Location /api/v1/inner>
    RewriteEngine On
    RewriteRule . http://127.0.0.1:9/ [P]
</Location>
<Location />
    SetHandler server-status
</Location>
<Directory @DIR@>
    AllowOverride None
    Options MultiViews
    FallbackResource /page.txt
</Directory>
END
    $httpd->expect_log(qr/AH00957: http: attempt to connect to 127/,
        qr/AH01114: HTTP: failed to make connection to backend/);
    $httpd->may_log(qr/AH00940: http: disabled connection for/);
    write_file($httpd->dir . "/htdocs/page.txt", "a page\n");
    my $w = workspace($httpd);
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200,
        "ProxyPass / and SetHandler do not take the API away");
    is($c->get("/old/agents")->body, $c->get("/api/v1/agents")->body,
        "a RewriteRule leads to it");
    error_is($c->get("/api/v1/aliased"), 404, "not_found",
        "an Alias below it is none");
    error_is($c->get("/api/v1/gone"), 410, "gone",
        "a RewriteRule's [G] is JSON");
    for my $path ("legacy", "inner/agents") {
        my $r = $c->get("/api/v1/$path");
        error_is($r, 503, "service_unavailable",
            "5.5 $path: a RewriteRule's [P] to a server that is away is JSON");
        like($r->header("Retry-After") // "none", qr/^\d+$/, "with Retry-After");
        is($c->request("HEAD", "/api/v1/$path")->status, 503, "HEAD");
    }
    redirect_is($httpd, "moved", "a RewriteRule's [R] stays one");
    my $p = $httpd->client;
    $p->send_raw("GET /api/v1/page HTTP/1.0\r\n\r\n");
    my $r = $p->read_response("GET");
    isnt($r->header("Content-Type"), "application/json",
        "what a rule leads elsewhere is not the API's: " . $r->status);
    is($r->header("Cache-Control"), undef, "nor has it its headers");
    $httpd->stop;
};

# httpd's statuses, and the code of contract 5.5 for each that has one.
my %CODE = (401 => "unauthorized", 403 => "forbidden", 404 => "not_found",
    405 => "method_not_allowed", 409 => "conflict", 410 => "gone",
    412 => "precondition_failed", 413 => "payload_too_large",
    414 => "uri_too_long", 415 => "unsupported_media_type",
    422 => "validation_error", 429 => "rate_limited",
    503 => "service_unavailable");
my @STATUSES = (400 .. 417, 421 .. 424, 426, 428, 429, 431, 451, 500 .. 508,
    510, 511);

subtest "5.5 whatever status another module makes" => sub {
    my $rules = join "", map {
        "RewriteRule ^/api/v1/made/$_\$ - [R=$_,L]\n" } @STATUSES;
    for my $document ("", "503 \"the site's own\"", "503 /page.txt",
            "503 http://elsewhere.example/down") {
        my $httpd = httpd(database => $database,
            modules => [qw(rewrite alias headers)], conf => <<"END");
RewriteEngine On
$rules
Redirect 503 /api/v1/alias
Redirect gone /api/v1/old
@{[$document && "ErrorDocument $document"]}
<Location /api/v1/later>
    Header always set Retry-After 120
    Redirect 503
</Location>
END
        write_file($httpd->dir . "/htdocs/page.txt", "the site's own\n");
        my $c = $httpd->client;
        my $with = $document || "no ErrorDocument";
        for my $status ($document ? 503 : @STATUSES) {
            my $r = $c->get("/api/v1/made/$status");
            error_is($r, $status, $CODE{$status} // ($status < 500
                ? "bad_request" : "internal_error"), "$status: $with");
            headers_are($r, $status);
            like($r->header("Retry-After") // "none", $status == 503
                ? qr/^[1-9]\d*$/ : qr/^none$/,
                "5.5 $status: Retry-After with 503 only");
            unlike($r->body, qr/site's own|</, "$status: nothing else");
        }
        for my $method (qw(GET HEAD POST PATCH DELETE OPTIONS)) {
            my $r = $c->request($method, "/api/v1/alias");
            is(join(" ", map { $_ // "none" } $r->status,
                $r->header("Content-Type"), $r->header("Retry-After")),
                "503 application/json 1", "$method: Redirect 503: $with");
            is(length $r->body, 0, "HEAD: no body") if $method eq "HEAD";
        }
        error_is($c->get("/api/v1/old"), 410, "gone", "Redirect gone");
        my $r = $c->get("/api/v1/later");
        error_is($r, 503, "service_unavailable", "a site's own Retry-After");
        is(join("|", $r->header("Retry-After")), "120", "it is the only one");
        $httpd->stop;
    }
};

subtest "a site that redirects everything, the API too" => sub {
    my $httpd = httpd(database => $database, modules => ["alias"],
        conf => "RedirectMatch 301 ^ http://elsewhere.example/\n");
    redirect_is($httpd, "agents", "Redirect stays one");
    $httpd->stop;
};

subtest "a forward proxy's requests are none of the API's" => sub {
    my $httpd = httpd(database => $database, modules => [qw(proxy proxy_http)],
        unlimited => 1, conf => "ProxyRequests On\n");
    $httpd->expect_log(qr/AH00957: http: attempt to connect to 127/ => 1,
        qr/AH01114: HTTP: failed to make connection to backend/ => 1);
    my $c = $httpd->client;
    $c->send_raw("GET http://127.0.0.1:9/api/v1/agents HTTP/1.0\r\n\r\n");
    my $r = $c->read_response("GET");
    is($r->status, 503, "they go where they are sent");
    $httpd->stop;
};

subtest "access control of the site" => sub {
    my $httpd = httpd(database => $database,
        modules => [qw(auth_basic authn_file authz_user)],
        unlimited => 1, conf => <<'END');
<Location /api/v1/forms>
    AuthType Basic
    AuthName inner
    AuthUserFile @DIR@/users
    Require valid-user
</Location>
END
    write_file($httpd->dir . "/users", "u:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n");
    my $w = workspace($httpd);
    my $r = $httpd->client->get("/api/v1/forms");
    is($r->status, 401, "httpd's own 401");
    is($r->code, "unauthorized", "is JSON");
    is($r->header("WWW-Authenticate"), 'Basic realm="inner"',
        "with httpd's challenge");
    status_is($w->client->get("/api/v1/agents"), 200, "elsewhere: the API's");
    $httpd->stop;
};

subtest "5.4 request ids" => sub {
    my $httpd = httpd(database => $database, unlimited => 1);
    my $c = $httpd->client;
    for my $id ("a", "A.b_c-9", "x" x 128) {
        is($c->get("/api/v1/none", headers => { "X-Request-Id" => $id })
            ->header("X-Request-Id"), $id, "5.4 kept: " . substr $id, 0, 20);
    }
    for my $id ("", "x" x 129, "a b", "a;b", "<script>", "a\"", "\xc3\xa4",
            ["a", "b"]) {
        like($c->get("/api/v1/none", headers => { "X-Request-Id" => $id })
            ->header("X-Request-Id"),
            qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
            "5.4 replaced by a UUIDv7: " . (ref $id ? "two" : substr $id, 0, 20));
    }
    $httpd->stop;
};

done_testing;
