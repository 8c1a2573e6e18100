# SPDX-License-Identifier: Apache-2.0
# 10-auth.t: keys, scopes, plans, revocation (contract 1.2, 3; specification:
# Authentication)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Session;
use Digest::SHA qw(sha256_hex);

my $database = database();
# What the server is sent is in its log: no key may be.
sql("postgres", "ALTER DATABASE $database SET log_statement = 'all'");
my $httpd = httpd(database => $database, unlimited => 1,
    conf => "CustomLog \@DIR\@/processes \"%{X-Request-Id}i %P\"\n",
    children => ($ENV{CRM_MPM} || "") eq "prefork" ? 14 : 2,
    level => "info crmapi:debug");
my $anyone = $httpd->client;
my @keys;       # every key this file makes: none may be in a log at the end
my @nobodys;    # keys that were refused: nor these

# A made-up key of LENGTH random characters after PREFIX.
sub made_up {
    my ($length, $prefix) = @_;
    my @set = ("A" .. "Z", "a" .. "z", 0 .. 9);
    my $key = ($prefix // "svc_live_")
        . join "", map { $set[rand @set] } 1 .. $length;
    push @nobodys, $key;
    return $key;
}

# An answer is the 401 of contract 3.1 in every detail.
sub unauthorized_is {
    my ($r, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    subtest $name => sub {
        error_is($r, 401, "unauthorized", "401 unauthorized");
        is($r->message, "API key is missing or invalid",
            "with the fixed phrase");
        is($r->header("WWW-Authenticate"), "Bearer", "WWW-Authenticate");
        is_deeply([grep { /^X-RateLimit/i } map { $_->[0] }
            @{$r->{headers}}], [], "4.2: no rate limit headers on a 401");
    };
}

sub new_workspace {
    my $w = workspace($httpd, @_);
    push @keys, $w->key;
    return $w;
}

subtest "1.2 the shape of generated keys" => sub {
    my $w = new_workspace();
    my %seen;
    for my $n (1 .. 5) {
        my $key = $w->make_key("read");
        push @keys, $key;
        like($key, qr/^svc_live_[0-9A-Za-z]{30}$/,
            "prefix and 30 base62 characters");
        is(length $key, 39, "39 characters");
        ok(!$seen{$key}++, "never the same twice");
    }
};

subtest "1.2 only the hash of a key is stored" => sub {
    my $w = new_workspace();
    my $random = substr $w->key, 9;
    status_is($w->client->get("/api/v1/agents"), 200, "it is used");
    # every row of every table; a bytea is shown in hexadecimal
    my $dump = join "\n", map { $_->[0] } map {
        sql($database, "SELECT t::text FROM crmapi.$_->[0] t") }
        sql($database, "SELECT tablename FROM pg_tables"
            . " WHERE schemaname = 'crmapi'");
    unlike($dump, qr/\Q$random\E|@{[unpack "H*", $random]}/,
        "3.4: the key is not in the database");
    like($dump, qr/\\x@{[sha256_hex($w->key)]}/, "where all was looked at");
    is(sql($database, "SELECT count(*) FROM crmapi.api_key"
        . " WHERE encode(key_hash, 'hex') = '" . sha256_hex($w->key) . "'"),
        1, "its SHA-256 is");
    my $display = sql($database, "SELECT display FROM crmapi.api_key"
        . " WHERE encode(key_hash, 'hex') = '" . sha256_hex($w->key) . "'");
    like($display, qr/\Q@{[substr $random, 0, 4]}\E/,
        "the display has the first four characters");
    like($display, qr/\Q@{[substr $random, -4]}\E/, "and the last four");
    cmp_ok(length($display =~ s/svc_live_//r =~ s/[^0-9A-Za-z]//gr), "<=", 8,
        "and no more");
};

subtest "1.2 keys brought along: 29 or 30 characters, no checksum" => sub {
    my $w = new_workspace();
    for my $length (29, 30) {
        my $key = made_up($length);
        pop @nobodys;
        push @keys, $key;
        crmapictl_ok($database, { stdin => "$key\n" }, "key", "import",
            "--workspace", $w->id, "--name", "brought along",
            "--scopes", "read");
        status_is($w->client(key => $key)->get("/api/v1/agents"), 200,
            length($key) . " characters");
    }
};

subtest "1.2 last_used_at is written, once a minute, not in the way" => sub {
    my $w = new_workspace();
    my $query = "SELECT last_used_at FROM crmapi.api_key"
        . " WHERE workspace_id = '" . $w->id . "'";
    is(sql($database, $query), undef, "null before the first request");
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200);
    my $used = wait_for(sub { sql($database, $query) });
    ok($used, "set soon after the first");
    ok(sql($database, "SELECT abs(extract(epoch FROM clock_timestamp()"
        . " - '$used'::timestamptz)) < 30") eq "t", "to the present time");
    status_is($c->get("/api/v1/agents"), 200) for 1 .. 20;
    is(sql($database, $query), $used, "twenty more do not write it again");
};

subtest "1.2 it is written of all keys that are used at the same time" => sub {
    my $w = new_workspace();
    my @used = ($w->key, map { $w->ctl("key", "create", "--workspace", $w->id,
        "--name", "n$_", "--scopes", "read") } 1 .. 5);
    push @keys, @used;
    my @clients = map { $httpd->client } @used;
    $_->socket for @clients;
    # The keys are locked, so that the first statement lasts until all arrive.
    my $end = holding($database, "SELECT FROM crmapi.api_key"
        . " WHERE workspace_id = '" . $w->id . "' FOR NO KEY UPDATE");
    $clients[$_]->ask("GET", "/api/v1/agents", key => $used[$_]) for 0 .. $#used;
    is_deeply([map { $_->read_response("GET")->status } @clients],
        [(200) x 6], "all are answered");
    $end->();
    my $count = "SELECT count(last_used_at) FROM crmapi.api_key"
        . " WHERE workspace_id = '" . $w->id . "'";
    ok(wait_for(sub { sql($database, $count) == 6 }), "all are written")
        or diag("" . sql($database, $count));
};

subtest "3.1 every malformed header is a 401" => sub {
    my $w = new_workspace();
    my $key = $w->key;
    my $random = substr $key, 9;
    my @cases = (
        ["no header", undef],
        ["an empty header", ""],
        ["the scheme alone", "Bearer"],
        ["the scheme and a space", "Bearer "],
        ["the key alone", $key],
        ["another scheme", "Basic $key"],
        ["another scheme with a longer name", "Bearers $key"],
        ["a cut scheme", "Beare $key"],
        ["no space", "Bearer$key"],
        ["two spaces", "Bearer  $key"],
        ["a tab", "Bearer\t$key"],
        ["a space and a tab", "Bearer \t$key"],
        ["a colon", "Bearer: $key"],
        ["quotes", "Bearer \"$key\""],
        ["two keys", "Bearer $key $key"],
        ["two keys with a comma", "Bearer $key,$key"],
        ["a parameter behind it", "Bearer $key; realm=x"],
        ["a list of challenges", "Bearer $key, Basic eDp5"],
        ["another prefix", "Bearer svc_test_$random"],
        ["no prefix", "Bearer $random"],
        ["the prefix in capitals", "Bearer SVC_LIVE_$random"],
        ["the prefix twice", "Bearer svc_live_$key"],
        ["28 characters", "Bearer svc_live_" . substr $random, 0, 28],
        ["31 characters", "Bearer ${key}a"],
        ["the prefix alone", "Bearer svc_live_"],
        ["1,000 characters", "Bearer svc_live_" . "a" x 1000],
        ["an underscore", "Bearer svc_live_" . "_" x 30],
        ["a dash", "Bearer svc_live_" . substr($random, 0, 29) . "-"],
        ["a percent sign", "Bearer svc_live_" . substr($random, 0, 27) . "%41"],
        ["a slash", "Bearer svc_live_" . substr($random, 0, 29) . "/"],
        ["a letter that is not ASCII",
            "Bearer svc_live_" . substr($random, 0, 28) . "\xc3\xa4"],
        ["U+FF21 for A",
            "Bearer svc_live_" . substr($random, 0, 27) . "\xef\xbc\xa1"],
        ["a byte of 0xff",
            "Bearer svc_live_" . substr($random, 0, 29) . "\xff"],
        ["case changed", "Bearer svc_live_" . ($random =~ tr/A-Za-z/a-zA-Z/r)],
        ["a quote, as for SQL", "Bearer svc_live_" . "a" x 28 . "'"],
        ["29 unknown characters", "Bearer " . made_up(29)],
        ["30 unknown characters", "Bearer " . made_up(30)],
        ["the key without its last character", "Bearer " . substr $key, 0, -1],
    );
    for my $case (@cases) {
        my ($name, $value) = @$case;
        unauthorized_is($anyone->get("/api/v1/agents",
            headers => { Authorization => $value }), "3.1 $name");
    }
    status_is($anyone->get("/api/v1/agents", headers => { Authorization =>
        "$_ $key" }), 200, "3.1 the scheme as $_") for qw(Bearer bearer BEARER
        bEARER);
    # RFC 9110 5.5: blanks around a value are no part of it.
    status_is($anyone->raw("GET /api/v1/agents HTTP/1.1\r\nHost: x\r\n"
        . "Authorization:Bearer $key \t\r\nConnection: close\r\n\r\n"), 200,
        "3.1 blanks around the whole value do not count");
};

subtest "3.1 two Authorization headers are a 401" => sub {
    my $w = new_workspace();
    my $key = $w->key;
    for my $pair (["Bearer $key", "Bearer $key"],
            ["Bearer $key", "Basic eDp5"], ["Basic eDp5", "Bearer $key"],
            ["Bearer $key", ""], ["", "Bearer $key"]) {
        unauthorized_is($anyone->get("/api/v1/agents",
            headers => { Authorization => $pair }),
            "3.1 '" . join("' and '", map { s/ .*/ .../r } @$pair) . "'");
    }
};

subtest "3.1, 3.4 the key is taken from the header only" => sub {
    my $w = new_workspace();
    my $key = $w->key;
    # httpd writes the request line to access_log, so this is a key that
    # nobody looks for there.
    my $shown = $w->make_key("read,write");
    for my $name (qw(key api_key apikey access_token token authorization
            Authorization)) {
        unauthorized_is($anyone->get("/api/v1/agents",
            query => { $name => $shown }), "3.4 not from the query's $name");
        unauthorized_is($anyone->get("/api/v1/agents",
            query => { $name => "Bearer $shown" }),
            "3.4 not from the query's $name with a scheme");
    }
    unauthorized_is($anyone->post("/api/v1/contacts", { bot_id => $w->agent,
        api_key => $key, Authorization => "Bearer $key" }),
        "3.4 not from a body");
    unauthorized_is($anyone->request("POST", "/api/v1/contacts",
        body => "access_token=$key", headers => { "Content-Type" =>
        "application/x-www-form-urlencoded" }), "3.4 not from a form");
    unlike($httpd->log_text, qr/\Q@{[substr $shown, 9]}\E/,
        "3.4 error_log does not show the query's");
    for my $name ("X-Api-Key", "Api-Key", "Proxy-Authorization", "Cookie") {
        unauthorized_is($anyone->get("/api/v1/agents",
            headers => { $name => $key }), "3.4 not from $name");
        unauthorized_is($anyone->get("/api/v1/agents",
            headers => { $name => "Bearer $key" }),
            "3.4 not from $name with a scheme");
    }
    unauthorized_is($anyone->get("/api/v1/agents", headers => { Authorization
        => "Basic " . encode_basic("x:$key") }), "3.4 not from Basic");
};

sub encode_basic {
    require MIME::Base64;
    return MIME::Base64::encode_base64($_[0], "");
}

subtest "3.1 a vhost bound to a workspace takes only its keys" => sub {
    my $w = new_workspace(slug => "bound-$$");
    my $other = new_workspace();
    my $bound = httpd(database => $database,
        unlimited => 1, conf => "CrmApiWorkspace bound-$$\n");
    my $by_id = httpd(database => $database,
        unlimited => 1, conf => "CrmApiWorkspace " . $w->id . "\n");
    for my $server (["slug", $bound], ["id", $by_id]) {
        my ($how, $s) = @$server;
        status_is($s->client(key => $w->key)->get("/api/v1/agents"), 200,
            "3.1 bound by $how: its own key");
        unauthorized_is($s->client(key => $other->key)->get("/api/v1/agents"),
            "3.1 bound by $how: a key of another workspace") for 1 .. 2;
    }
    status_is($other->client->get("/api/v1/agents"), 200,
        "where nothing is bound that key is fine");
    $_->stop for $bound, $by_id;
    my $id = sql($database, "SELECT id FROM crmapi.api_key WHERE workspace_id = '"
        . $other->id . "'");
    for my $server ([$bound, "bound-$$"], [$by_id, $w->id]) {
        my ($s, $name) = @$server;
        my @lines = grep { /CRM1009/ } split /\n/, $s->log_text;
        is(scalar @lines, 2, "the log says why, each time");
        like($lines[0], qr/crmapi:info.*the\ key\ $id\ of\ the\ workspace\ \S+\ is\ refused:
            \ CrmApiWorkspace\ is\ \Q$name\E/x, "which key, and which workspace");
    }
    for my $s ($bound, $by_id) {
        unlike($s->log_text . $s->access_log, qr/\Q@{[substr $_, 9]}\E/,
            "3.4: no key in the logs") for $w->key, $other->key;
    }
};

subtest "3.1 a prefix of one's own" => sub {
    my $key = "acme_key_" . substr made_up(30), 9;
    my $w = new_workspace();
    my $s = httpd(database => $database,
        unlimited => 1, conf => "CrmApiKeyPrefix acme_key_\n");
    sql($database, "INSERT INTO crmapi.api_key (id, workspace_id, name,"
        . " key_hash, display, can_read, can_write) SELECT '" . uuid()
        . "', id, 'own', decode('" . sha256_hex($key) . "', 'hex'),"
        . " 'acme_key_…', true, true FROM crmapi.workspace WHERE id = '"
        . $w->id . "'");
    CrmTest::Citus::lead($database, key_home => "\\x" . sha256_hex($key),
        $w->id);
    status_is($s->client(key => $key)->get("/api/v1/agents"), 200,
        "1.2 CrmApiKeyPrefix");
    unauthorized_is($s->client(key => $w->key)->get("/api/v1/agents"),
        "1.2 the usual prefix is another one there");
    unauthorized_is($anyone->get("/api/v1/agents", key => $key),
        "1.2 and its prefix is another one elsewhere");
};

my $told = 0;
# The process of each of CLIENTS, by its number.
sub processes_of {
    my (@clients) = @_;
    my $round = ++$told;
    for my $n (0 .. $#clients) {
        status_is($clients[$n]->get("/api/v1/agents", headers => {
            "X-Request-Id" => "round-$round-$n" }), 200, "before") for 1 .. 2;
    }
    my %process;
    ok(wait_for(sub {
        %process = read_file($httpd->dir . "/processes")
            =~ /^round-$round-(\d+) (\d+)$/mg;
        return keys %process == @clients;
    }), "each connection has its process");
    return %process;
}

subtest "3.2 revocation is immediate in every process" => sub {
    my $w = new_workspace();
    my $key = $w->make_key("read,write");
    push @keys, $key;
    my $id = ($w->key_ids)[-1];
    my $path;
    # What is asked, and what may be the answer beside 401: that there is no
    # such path or method may be told from memory for a minute (2.3).
    my @ways = (
        [sub { $_[0]->get("/api/v1/agents") }],
        [sub { $_[0]->get($path) }],
        [sub { $_[0]->patch($path, { notes => "never" }) }],
        [sub { $_[0]->delete($path) }],
        [sub { $_[0]->post("/api/v1/contacts", { bot_id => $w->agent }) }],
        [sub { $_[0]->get("/api/v1/none") }, 404],
        [sub { $_[0]->post("/api/v1/contacts", {}) }],
        [sub { $_[0]->head($path) }],
        [sub { $_[0]->post("/api/v1/contacts/upsert",
            { bot_id => $w->agent, contacts => [{}] }) }],
        [sub { $_[0]->get("/api/v1/contacts", query => { page_size => "0" }) }],
        [sub { $_[0]->get("/api/v1/contacts/" . uuid()) }],
        [sub { $_[0]->request("PUT", $path, json => {}) }, 405],
    );
    # The system spreads connections over the processes as it likes.
    my (@clients, @before);
    ok(wait_for(sub {
        push @before, splice @clients;
        @clients = map { $w->client(key => $key) } @ways;
        my %process = processes_of(@clients);
        my %processes = map { $_ => 1 } values %process;
        return valgrinded() || keys %processes > 1;
    }), "more than one process has some of the connections");
    my $contact = $clients[0]->post("/api/v1/contacts",
        { bot_id => $w->agent });
    status_is($contact, 201, "and a write");
    $path = "/api/v1/contacts/" . $contact->data->{id};
    $w->ctl("key", "revoke", $id);
    for my $n (0 .. $#ways) {
        my ($way, @also) = @{$ways[$n]};
        my $c = $clients[$n];
        ok($c->{socket}, "the connection is the old one");
        my $r = $way->($c);
        ok((grep { $r->status == $_ } 401, @also), "3.2 $r->{request}{method} "
            . "$r->{request}{path}: 401 in the very next request")
            or diag($r->text);
        is($c->get("/api/v1/agents")->status, 401, "and in the one after");
    }
    json_is($w->client->get($path), $contact->data,
        "nothing was done; the workspace's other key still works");
    is($w->client->get("/api/v1/contacts")->json->{pagination}{total}, 1,
        "and nothing made");
};

subtest "3.2 a key revoked before its first request" => sub {
    my $w = new_workspace();
    push @keys, my $key = $w->make_key("read");
    $w->ctl("key", "revoke", ($w->key_ids)[-1]);
    unauthorized_is($w->client(key => $key)->get("/api/v1/agents"),
        "3.2 never worked");
};

subtest "spec Authentication 8: revoking is for good" => sub {
    my $w = new_workspace();
    push @keys, my $key = $w->make_key("read");
    my $id = ($w->key_ids)[-1];
    $w->ctl("key", "revoke", $id);
    my $back = eval { sql($database, "UPDATE crmapi.api_key SET revoked_at ="
        . " NULL WHERE id = '$id'"); 1 };
    like($back ? "done" : $@, qr/never changes/,
        "the database does not take it back");
    unauthorized_is($w->client(key => $key)->get("/api/v1/agents"),
        "the key stays dead");
};

subtest "3.2 a revocation that is rolled back revokes nothing" => sub {
    my $w = new_workspace();
    my $id = ($w->key_ids)[-1];
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200, "before");
    sql($database, "BEGIN; UPDATE crmapi.api_key SET revoked_at = now()"
        . " WHERE id = '$id'; ROLLBACK");
    status_is($c->get("/api/v1/agents"), 200, "after");
};

subtest "3.2 a workspace that is deleted takes its keys along" => sub {
    my $w = new_workspace(twin => 0);
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200, "before");
    $w->ctl("workspace", "delete", $w->id, "--yes");
    unauthorized_is($c->get("/api/v1/agents"), "3.2 after") for 1 .. 2;
};

# Every operation that writes, as the specification lists them.
sub writes {
    my ($w, $id) = @_;
    return (
        [POST => "/contacts", { bot_id => $w->agent }],
        [PATCH => "/contacts/$id", {}],
        [DELETE => "/contacts/$id"],
        [POST => "/contacts/upsert", { bot_id => $w->agent, contacts => [] }],
        [POST => "/companies", { bot_id => $w->agent, name => "x" }],
        [PATCH => "/companies/$id", {}],
        [DELETE => "/companies/$id"],
        [POST => "/pipeline-cards", { title => "x",
            pipeline_stage_id => ($w->stages)[0] }],
        [PATCH => "/pipeline-cards/$id", {}],
        [DELETE => "/pipeline-cards/$id"],
        [POST => "/activities", { activity_type => "note",
            contact_id => $id }],
        [PATCH => "/conversations/$id", {}],
        [DELETE => "/conversations/$id"],
        [POST => "/sequences/start", { template_id => $id,
            contact => { emails => ["a\@example.com"] } }],
        [POST => "/sequences/enrollments/$id/approve"],
        [POST => "/sequences/enrollments/$id/stop"],
    );
}

# Every operation that reads, with ID where the path names a row.
sub reads {
    my ($id) = @_;
    return map { [GET => $_], [HEAD => $_] } qw(/agents /contacts /companies
        /pipelines /pipeline-cards /conversations /forms),
        "/contacts/by-email?email=x\@example.com", map { s/ID/$id/r }
        qw(/agents/ID /contacts/ID /contacts/ID/activities
        /contacts/ID/conversations /companies/ID /pipelines/ID/stages
        /pipeline-cards/ID /conversations/ID /conversations/ID/messages
        /forms/ID /forms/ID/submissions /submissions/ID
        /sequences/enrollments/ID);
}

sub ask {
    my ($c, $case) = @_;
    my ($method, $path, $json) = @$case;
    return $c->request($method, "/api/v1$path",
        $json ? (json => $json) : ());
}

subtest "3.3 write with a read-only key is a 403" => sub {
    my $w = new_workspace(scopes => "read");
    my $c = $w->client;
    for my $case (writes($w, uuid())) {
        error_is(ask($c, $case), 403, "forbidden",
            "3.3 $case->[0] $case->[1]");
    }
    my $none = uuid();
    for my $case (reads($none)) {
        status_is(ask($c, $case), $case->[1] =~ /\Q$none\E|by-email/ ? 404
            : 200, "spec: read allows $case->[0] $case->[1]");
    }
    is(sql($database, "SELECT count(*) FROM crmapi.contact"
        . " WHERE workspace_id = '" . $w->id . "'"), 0, "nothing was made");
};

subtest "3.3 write implies read" => sub {
    my $w = new_workspace(scopes => "write");
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200, "3.3 it reads");
    status_is($c->post("/api/v1/contacts", { bot_id => $w->agent }), 201,
        "3.3 and writes");
};

subtest "3.3 a plan without API access is a 403" => sub {
    my $w = new_workspace(plan => "standard");
    my $c = $w->client;
    for my $plan (qw(free starter)) {
        $w->ctl("workspace", "set", $w->id, "--plan", $plan);
        for my $case (reads(uuid()), writes($w, uuid())) {
            my $r = ask($c, $case);
            $case->[0] eq "HEAD" ? status_is($r, 403)
                : error_is($r, 403, "forbidden",
                "3.3 $plan: $case->[0] $case->[1]");
        }
        $w->ctl("workspace", "set", $w->id, "--plan", "standard");
        status_is($c->get("/api/v1/agents"), 200,
            "back on standard it works in the very next request");
    }
};

subtest "3.3 sequences need a plan that has them" => sub {
    my $w = new_workspace(plan => "standard");
    my $c = $w->client;
    my @cases = ([GET => "/sequences/enrollments/" . uuid()],
        [POST => "/sequences/start", { template_id => uuid(),
            contact => { emails => ["a\@example.com"] } }]);
    for my $case (@cases) {
        error_is(ask($c, $case), 403, "forbidden",
            "3.3 standard: $case->[0] $case->[1]");
    }
    for my $plan (qw(pro enterprise)) {
        $w->ctl("workspace", "set", $w->id, "--plan", $plan);
        for my $case (@cases) {
            error_is(ask($c, $case), 404, "not_found",
                "3.3 $plan: $case->[0] $case->[1] is allowed");
        }
    }
    status_is($c->get("/api/v1/agents"), 200, "the API itself, too");
};

subtest "3.3 plans are rows that an operator changes" => sub {
    my $w = new_workspace(plan => "pro");
    my $c = $w->client;
    crmapictl_ok($database, qw(plan create --name trial --api on
        --sequences off));
    $w->ctl("workspace", "set", $w->id, "--plan", "trial");
    status_is($c->get("/api/v1/agents"), 200, "a plan of one's own");
    error_is($c->get("/api/v1/sequences/enrollments/" . uuid()), 403,
        "forbidden", "without sequences");
    crmapictl_ok($database, qw(plan set trial --sequences on));
    error_is($c->get("/api/v1/sequences/enrollments/" . uuid()), 404,
        "not_found", "and with them, from the next request on");
    crmapictl_ok($database, qw(plan set trial --api off));
    error_is($c->get("/api/v1/agents"), 403, "forbidden",
        "and without the API");
};

subtest "3.4 keys are in no log, whatever a client does with them" => sub {
    my $w = new_workspace();
    my $key = $w->key;
    my $c = $w->client;
    status_is($c->get("/api/v1/agents"), 200);
    status_is($c->get("/api/v1/none"), 404);
    status_is($c->post("/api/v1/contacts", {}), 422);
    $anyone->raw("GET /api/v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: "
        . "Bearer $key\r\nBad Header: Bearer $key\r\n\r\n");
    $anyone->raw("GET /api/v1/agents HTTP/1.1\r\nHost: x\r\n"
        . "Authorization: Bearer $key\r\nX-Request-Id: $$-grep\r\n"
        . "Content-Length: nonsense\r\n\r\n");
    for my $bad ("Bearer  $key", "Basic $key", "bearer\t$key") {
        $anyone->get("/api/v1/agents", headers => { Authorization => $bad });
    }
    my $id = ($w->key_ids)[-1];
    ok(wait_for(sub { $httpd->access_log =~ /\Q$id\E/ }),
        "the key's id is in access_log");
    ok($httpd->log_lines(qr/CRM1201: GET /), "requests are in error_log");
    my $logs = $httpd->log_text . $httpd->access_log
        . read_file($httpd->dir . "/output");
    my @found = grep { $logs =~ /\Q@{[substr $_, 9]}\E/ } @keys, @nobodys;
    is_deeply(\@found, [], "3.4 of " . (@keys + @nobodys)
        . " keys none is in error_log or access_log");
    my $database_log = read_file(postgres()->host . "/log");
    my $hash = sha256_hex($key);
    like($database_log, qr/\Q$hash\E/, "the database was asked for its hash");
    @found = grep { $database_log =~ /\Q@{[substr $_, 9]}\E/ } @keys;
    is_deeply(\@found, [], "3.4 nor in the database's log");
};

done_testing;
