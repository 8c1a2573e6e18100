# SPDX-License-Identifier: Apache-2.0
# 67-mcp-resources.t: combined tools, resources and prompts (contract 21.3, 21.4)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;

my $database = database();
my $httpd = httpd(database => $database, conf => "CrmApiMcp On\n"
    . "CustomLog route.log \"%{crmapi-route}n\"\n"
    . "CrmApiReadLimit 300\nCrmApiWriteLimit 300\n");
my $w = workspace($httpd);
my $c = $w->client;
my $mcp = CrmTest::Mcp->new($c);
my $earlier = CrmTest::Mcp->new($c, "2025-11-25");
my ($id) = $w->import_objects([{ object => "contact", bot_id => $w->agent,
    first_name => "Ada", last_name => "King", company => "Engines",
    emails => ["ada\@example.com", "lady\@example.org"], external_id => "x-7",
    phone_numbers => ["+4930901820"], notes => "secret" }]);
my $ada = $c->get("/api/v1/contacts/$id")->data;
$c->post("/api/v1/contacts", { bot_id => $w->agent, first_name => "Ada$_" })
    for 1 .. 3;
my $conversation = uuid();
$w->import_objects([{ object => "conversation", id => $conversation,
    bot_id => $w->agent, contact_id => $ada->{id}, type => "email",
    active => true },
    map { { object => "message", conversation_id => $conversation,
        role => $_ % 2 ? "user" : "assistant", content => "m$_ \"ä\"",
        created_at => sprintf "2026-11-20T10:00:%02dZ", $_ } } 1 .. 25]);
$c->post("/api/v1/activities", { contact_id => $ada->{id}, activity_type =>
    "note", title => "a$_" }) for 1 .. 12;

# What the tool NAME gives for ARGUMENTS.
sub given {
    my ($name, $arguments) = @_;
    my ($said, $r) = $mcp->tool($name, $arguments);
    ok(!$r->json->{result}{isError}, "$name: is done") or diag($r->text);
    return $said->{data};
}

# The error of the tool NAME for ARGUMENTS.
sub refused {
    my ($name, $arguments, $client) = @_;
    my ($said, $r) = ($client // $mcp)->tool($name, $arguments);
    ok($r->json->{result}{isError}, "$name: is an error") or diag($r->text);
    return $said->{error};
}

subtest "21.3 contacts_find" => sub {
    my @shown = sort qw(id first_name last_name emails phone_numbers company
        company_id job_title tags contact_type external_id bot_id
        last_contacted_at);
    for my $whom ({ search => "ada king" }, { search => "engines" },
            { search => "90 18 20" }, { search => "lady\@" },
            { email => "LADY\@example.org" }, { phone => "+49 30 901820" },
            { external_id => "x-7" }, { search => "ada", external_id => "x-7" }) {
        my $found = given("contacts_find", $whom);
        is_deeply([map { $_->{id} } @$found], [$ada->{id}], join ", ", %$whom);
        is_deeply([sort keys %{$found->[0]}], \@shown,
            "with what tells people apart");
    }
    is(scalar @{given("contacts_find", { search => "ada" })}, 4, "several");
    is_deeply(given("contacts_find", { search => "king",
        fields => ["notes"] }), [{ id => $ada->{id}, notes => "secret" }],
        "other fields");
    my ($first) = $mcp->tool("contacts_find", { search => "ada",
        page_size => 3 });
    my ($second) = $mcp->tool("contacts_find", { search => "ada",
        page_size => 3, cursor => $first->{pagination}{next_cursor} });
    is(@{$first->{data}} . @{$second->{data}}, "31", "by cursor");
    is(refused("contacts_find", $_)->{details}[0]{message},
        "search, email, phone or external_id is required", "nobody")
        for {}, { search => "" }, { email => undef },
            { search => " \x{200b}", phone => "\t" };
    is(refused("contacts_find", { search => "ada", %$_ })->{details}[0]{field},
        (keys %$_)[0], "an argument that it does not have: " . (keys %$_)[0])
        for { nonsense => 1 }, { tags => "x" }, { page => 1 },
            { custom_fields => {} };
    is(refused("contacts_find", { search => $_ })->{details}[0]{field},
        "search", "a search of another type") for {}, [], ["ada"];
    my ($null) = $mcp->tool("contacts_find", { search => "ada king",
        map { $_ => undef } qw(fields cursor page_size email) });
    is_deeply([sort keys %{$null->{data}[0]}], \@shown, "null is nothing");
};

subtest "21.3 conversations_read" => sub {
    my $read = given("conversations_read", { id => $conversation });
    is_deeply($read->{conversation},
        $c->get("/api/v1/conversations/$conversation")->data,
        "the conversation");
    is_deeply([map { $_->{content} } @{$read->{messages}}],
        [map { "m$_ \"ä\"" } 16 .. 25], "its last 10 messages, oldest first");
    is_deeply([sort keys %{$read->{messages}[0]}],
        [qw(content created_at id metadata role status)], "what was said");
    is(scalar @{given("conversations_read", { id => $conversation,
        messages => $_ })->{messages}}, $_ > 25 ? 25 : $_, "$_ messages")
        for 1, 20, 100;
    is_deeply(refused("conversations_read", { id => uuid() }),
        $c->get("/api/v1/conversations/" . uuid())->json->{error}, "none");
    for my $bad ([{}, "id"], [{ id => 5 }, "id"],
            [{ id => $conversation, messages => 0 }, "messages"],
            [{ id => $conversation, messages => 101 }, "messages"],
            [{ id => $conversation, messages => 1.5 }, "messages"],
            [{ id => $conversation, messages => "5" }, "messages"],
            [{ id => $conversation, rows => 5 }, "rows"]) {
        is(refused("conversations_read", $bad->[0])->{details}[0]{field},
            $bad->[1], "an error of $bad->[1]");
    }
};

subtest "21.3 contacts_timeline" => sub {
    my $read = given("contacts_timeline", { id => $ada->{id} });
    is_deeply($read->{contact}, $c->get("/api/v1/contacts/$ada->{id}")->data,
        "the contact");
    is_deeply([map { $_->{title} } @{$read->{activities}}],
        [map { "a$_" } reverse 3 .. 12], "its last activities, latest first");
    is_deeply([map { $_->{id} } @{$read->{conversations}}], [$conversation],
        "its conversations");
    is_deeply([sort keys %{$read->{activities}[0]}], [qw(activity_type
        completed_at created_at description due_date id title)],
        "what was done, and what is to be done");
    is_deeply([sort keys %{$read->{conversations}[0]}], [qw(active created_at
        human_takeover id last_message last_message_at subject type unanswered)],
        "what was talked about");
    is_deeply([map { scalar @{given("contacts_timeline", { id => $ada->{id},
        rows => $_ })->{activities}} } 1, 12], [1, 12], "as many as asked");
    my ($first, $second) = map { $c->post("/api/v1/pipeline-cards", { title => $_,
        pipeline_stage_id => ($w->stages)[0], contact_id => $ada->{id} })->data } "A", "B";
    $c->patch("/api/v1/pipeline-cards/$first->{id}", { title => "One" });
    is_deeply([map { $_->{title} } @{given("contacts_timeline",
        { id => $ada->{id} })->{cards}}], ["One", "B"], "its cards, the last changed first");
    $c->patch("/api/v1/pipeline-cards/$second->{id}", { archived_at => "2026-01-01" });
    is_deeply([map { $_->{id} } @{given("contacts_timeline",
        { id => $ada->{id} })->{cards}}], [$first->{id}], "none that is archived");
    my ($old, $new) = map { uuid() } 1, 2;
    my ($bob) = $w->import_objects([{ object => "contact", bot_id => $w->agent,
        emails => ["bob\@example.com"] }]);
    $w->import_objects([map { my ($talk, $began, $said) = @$_;
        ({ object => "conversation", id => $talk, bot_id => $w->agent,
            contact_id => $bob, type => "email", created_at => $began,
            last_message_at => $said },
        { object => "message", conversation_id => $talk, role => "user",
            content => "m", created_at => $said }) }
        [$old, "2026-11-01T10:00:00Z", "2026-11-20T10:00:00Z"],
        [$new, "2026-11-10T10:00:00Z", "2026-11-10T10:00:00Z"]]);
    is_deeply([map { $_->{id} } @{given("contacts_timeline", { id => $bob })
        ->{conversations}}], [$old, $new], "where something was said last is first");
    my $left = sub { $_[0]->header("X-RateLimit-Remaining") };
    my $before = $left->($mcp->call("prompts/list"));
    my ($said, $r) = $mcp->tool("contacts_timeline", { id => $ada->{id} });
    is($left->($r), $before - 1, "a call is one read");
};

subtest "21.4 resources" => sub {
    for my $client ($mcp, $earlier) {
        my $list = $client->result("resources/list");
        is_deeply([map { $_->{uri} } @{$list->{resources}}],
            ["crmapi://workspace", "crmapi://openapi"], "resources/list");
        my $templates = $client->result("resources/templates/list");
        is_deeply([map { $_->{uriTemplate} } @{$templates->{resourceTemplates}}],
            ["crmapi://contacts/{id}/timeline"], "templates");
        my $read = sub {
            my ($content) = @{$client->result("resources/read",
                { uri => $_[0] })->{contents}};
            is_deeply([@$content{qw(uri mimeType)}], [$_[0],
                "application/json"], $_[0]);
            return Cpanel::JSON::XS->new->utf8->decode(
                Encode::encode("UTF-8", $content->{text}));
        };
        is_deeply($read->("crmapi://workspace"),
            $c->get("/api/v1/workspace")->data, "the workspace");
        is_deeply($read->("crmapi://openapi"),
            $c->get("/api/v1/openapi.json")->json, "the document");
        is_deeply($read->("crmapi://contacts/$ada->{id}/timeline"),
            given("contacts_timeline", { id => $ada->{id} }), "the timeline");
        for my $uri ("crmapi://none", "crmapi://contacts/" . uuid()
                . "/timeline", "crmapi://contacts/x\"y/timeline",
                "crmapi://contacts/timeline", "file:///etc/passwd", "") {
            my $r = $client->call("resources/read", { uri => $uri });
            is($r->json->{error}{code}, $client == $mcp ? -32602 : -32002,
                "'$uri': is not there") or diag($r->text);
            is($r->json->{error}{data}{uri}, $uri, "and says which");
        }
    }
    my ($one, $other) = map { $c->post("/api/v1/contacts", { bot_id =>
        $w->agent })->data->{id} } 1, 2;
    status_is($c->post("/api/v1/contacts/$one/merge", { from => $other }), 200,
        "20.5 a merge");
    my $gone = $mcp->call("resources/read", { uri =>
        "crmapi://contacts/$other/timeline" })->json->{error};
    is_deeply([@$gone{qw(code message)}], [-32602, "The contact was merged into $one"],
        "20.5 the timeline of the other says where it is");
    like(refused($_->[0], $_->[1])->{message}, qr/merged into \Q$one\E/,
        "$_->[0], too") for ["contacts_timeline", { id => $other }],
        ["contacts_get", { id => $other }],
        ["contacts_update", { id => $other, first_name => "x" }],
        ["contacts_delete", { id => $other }],
        ["contacts_conversations_list", { id => $other }],
        ["contacts_activities_list", { id => $other }];
    like(refused("contacts_timeline", { id => $one, row => 3 })->{details}[0]
        {message}, qr/did you mean rows/, "an argument that nearly is one");
    is(refused("contacts_find", { search => "x", $_->[0] => 3 })->{details}[0]
        {message}, "unknown argument; did you mean $_->[1]?", "that others have: $_->[0]")
        for [query => "search"], [limit => "page_size"], [e_mail => "email"];
    for my $method ("resources/read", "prompts/get") {
        my $what = $method eq "prompts/get" ? "name" : "uri";
        for my $params ({}, { $what => 7 }) {
            my $r = $earlier->call($method, $params);
            is($r->json->{error}{code}, -32602, "$method without its $what");
            like($r->json->{error}{message}, qr/^The $what of the \w+ must be a string$/,
                "it is named") or diag($r->text);
        }
    }
    my %lifetime = ("resources/list" => {}, "resources/templates/list" => {},
        "prompts/list" => {}, "resources/read" =>
        { uri => "crmapi://workspace" });
    for my $method (sort keys %lifetime) {
        my $result = $mcp->result($method, $lifetime{$method});
        like($result->{ttlMs}, qr/^\d+$/, "$method: ttlMs");
        is($result->{cacheScope}, "private", "$method: cacheScope");
    }
    my $lifetime = sub { $mcp->result("resources/read", { uri => $_[0] })->{ttlMs} };
    is($lifetime->("crmapi://contacts/$ada->{id}/timeline"), 0,
        "a timeline is never kept");
    is($lifetime->("crmapi://workspace"), 60000, "the workspace for a minute");
    my $r = $mcp->call("resources/read", { uri => "crmapi://workspace" },
        headers => { "Mcp-Name" => "crmapi://openapi" });
    is($r->json->{error}{code}, -32020, "the header names what is read");
};

subtest "21.4 prompts" => sub {
    for my $client ($mcp, $earlier) {
        my @prompts = @{$client->result("prompts/list")->{prompts}};
        cmp_ok(scalar @prompts, ">=", 3, "there are some");
        for my $prompt (@prompts) {
            my %arguments = map { $_->{name} => "a \"%s\" ä" }
                @{$prompt->{arguments} || []};
            my $got = $client->result("prompts/get", { name => $prompt->{name},
                arguments => \%arguments });
            my ($message) = @{$got->{messages}};
            is($message->{role}, "user", "$prompt->{name}: by the user");
            like($message->{content}{text}, qr/\Q$_\E/, "with its argument")
                for values %arguments;
            my %tools = map { $_->{name} => 1 }
                @{$client->result("tools/list")->{tools}};
            my @named = $message->{content}{text} =~ /\b([a-z]+_[a-z_]+)\b/g;
            is_deeply([grep { !$tools{$_} } @named], [],
                "$prompt->{name}: names tools that there are");
            next unless %arguments;
            is($client->call("prompts/get", { name => $prompt->{name},
                arguments => $_ })->json->{error}{code}, -32602,
                "$prompt->{name}: without its argument")
                for {}, { map { $_ => "" } keys %arguments },
                    { map { $_ => 5 } keys %arguments };
        }
        is($client->call("prompts/get", { name => "none" })->json->{error}
            {code}, -32602, "another one");
    }
};

subtest "21.2 all of it asks for the key" => sub {
    my @calls = (["resources/list"], ["resources/templates/list"],
        ["prompts/list"], ["prompts/get", { name => "pipeline_review" }],
        map({ ["resources/read", { uri => $_ }] } "crmapi://workspace",
            "crmapi://openapi", "crmapi://none",
            "crmapi://contacts/$ada->{id}/timeline"),
        map({ ["tools/call", { name => $_, arguments => { id => $ada->{id} } }] }
            qw(contacts_timeline conversations_read contacts_find)));
    # a key of its own for each, because one that is refused is forgotten
    my @keys = map { $w->make_key("read") } @calls;
    my @clients = map { $mcp->with_key($_) } @keys;
    is($clients[$_]->call(@{$calls[$_]})->status, 200, $calls[$_][0]) for 0 .. $#calls;
    $w->ctl("key", "revoke", map { scalar sql($database, "SELECT id FROM"
        . " crmapi.api_key WHERE key_hash = sha256('$_')") } $_) for @keys;
    is($clients[$_]->call(@{$calls[$_]})->status, 401, "3.2 $calls[$_][0]: revoked")
        for 0 .. $#calls;
};

$httpd->stop;
my %routes = map { $_ => 1 } split /\n/, read_file($httpd->dir . "/route.log");
ok($routes{"mcp $_"}, "21.2 the log names $_") for "resources/read", "prompts/get";
done_testing;
