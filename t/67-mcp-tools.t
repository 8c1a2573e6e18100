# SPDX-License-Identifier: Apache-2.0
# 67-mcp-tools.t: the operations of the API as tools (contract 21.3)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Mcp;
use CrmTest::Session;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1,
    conf => "CrmApiMcp On\nCustomLog route.log \"%{crmapi-route}n\"\n");
my $w = workspace($httpd);
my $c = $w->client;
my $mcp = CrmTest::Mcp->new($c);
my $agent = $w->agent;
my $document = $c->get("/api/v1/openapi.json")->json;

# The schemas in SCHEMA, with it.
sub schemas {
    my ($schema) = @_;
    return () unless ref $schema eq "HASH";
    return ($schema, map({ schemas($_) } values %{$schema->{properties} || {}}),
        map({ schemas($_) } $schema->{items} // ()),
        map({ schemas($_) } @{$schema->{anyOf} || []}));
}

# The body of a call of TOOL with ARGUMENTS, which is JSON.
sub body_of {
    my ($tool, $arguments) = @_;
    return "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
        . "\"params\":{\"name\":\"$tool\",\"arguments\":$arguments,\"_meta\":"
        . Cpanel::JSON::XS->new->encode(CrmTest::Mcp::meta()) . "}}";
}

subtest "21.3 tools/list" => sub {
    my $r = $mcp->call("tools/list", {}, id => 1);
    my $result = $r->json->{result};
    my @tools = @{$result->{tools}};
    my $json = Cpanel::JSON::XS->new->utf8->canonical;
    my $operations = 0;

    cmp_ok(length $r->body, "<", 60_000, "is small");
    diag(length($r->body) . " bytes, " . @tools . " tools");
    is($r->body, $mcp->call("tools/list", {}, id => 1)->body,
        "in an order that never changes");
    is_deeply([@$result{qw(resultType ttlMs cacheScope)}],
        ["complete", 300000, "private"], "with how long it holds");
    my %seen;
    for my $tool (@tools) {
        my $name = $tool->{name};
        like($name, qr/^(?=.{5,48}$)[a-z]+(?:_[a-z]+)+$/, "$name: a name");
        ok(!$seen{$name}++, "$name: once");
        ok(length $tool->{description} > 8, "$name: a description");
        is($tool->{inputSchema}{type}, "object", "$name: arguments");
        ok(!$tool->{inputSchema}{additionalProperties}, "$name: no others");
        is($tool->{outputSchema}{type}, "object", "$name: results");
        unlike($json->encode($tool), qr/\$ref/, "$name: stands alone");
        my %has = %{$tool->{inputSchema}{properties}};
        ok($has{$_}, "$name: has what it requires: $_")
            for @{$tool->{inputSchema}{required} || []};
        ok(!grep({ ref $_->{type} && !@{$_->{type}} } schemas(
            $tool->{inputSchema})), "$name: types");
        like($has{include}{description}, qr/html,remote_html|subject,unanswered|waiting/,
            "$name: what include takes") if $has{include};
        is_deeply([grep { !/^(?:fields|bot_id|custom_fields)$/
            && ($has{$_}{description} // "") =~ /^(?:only |default false|free-form J)/
            || exists $has{$_}{example} } sort keys %has], [],
            "$name: nothing that an argument says without words");
        # what programs that call a model of Anthropic, OpenAI or Google refuse,
        # with all other tools
        like($name, qr/^[a-z][a-z_]{0,63}$/, "$name: a name for each model");
        ok(!grep({ $tool->{inputSchema}{$_} } qw(anyOf oneOf allOf)),
            "$name: arguments are not one of several");
        ok(!grep({ !/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/ } keys %has),
            "$name: names of arguments");
        for my $schema (schemas($tool->{inputSchema})) {
            my %types = map { $_ => 1 } ref $schema->{type}
                ? @{$schema->{type}} : $schema->{type} // ();
            ok(!($types{array} || $types{object}) || keys %types == 1,
                "$name: a list or an object is nothing else");
            ok(!$types{array} || ($schema->{items} && %{$schema->{items}}),
                "$name: a list says of what");
            ok(!grep({ !defined } @{$schema->{enum} || []}) || $types{null},
                "$name: null is a word only where it is a type");
        }
    }
    for my $path (sort keys %{$document->{paths}}) {
        for my $method (grep { $_ ne "head" } sort keys
                %{$document->{paths}{$path}}) {
            my $operation = $document->{paths}{$path}{$method};
            my ($ok) = grep { /^2/ } sort keys %{$operation->{responses}};
            my $content = $operation->{responses}{$ok}{content};
            $operations++ if $path !~ /openapi/
                && (!$content || $content->{"application/json"});
        }
    }
    cmp_ok(scalar @tools, ">=", $operations, "every operation is a tool");
};

my %tools = $mcp->tools;

subtest "21.3 names and annotations" => sub {
    ok($tools{$_}, $_) for qw(contacts_list contacts_get contacts_create
        contacts_update contacts_delete contacts_upsert contacts_get_by_email
        contacts_activities_list companies_upsert pipeline_cards_create
        pipelines_stages_list conversations_reply conversations_messages_list
        conversations_messages_get sequences_start workspace_get events_list
        sequences_enrollments_approve sequences_templates_get agents_list);
    my %effects = (contacts_list => [true, undef, undef, false],
        contacts_create => [false, false, false, false],
        contacts_update => [false, true, true, false],
        contacts_delete => [false, true, true, false],
        contacts_upsert => [false, true, false, false],
        contacts_merge => [false, true, true, false],
        conversations_reply => [false, false, false, true],
        sequences_enrollments_approve => [false, false, false, true],
        sequences_start => [false, false, false, true]);
    is_deeply([@{$tools{$_}{annotations}}{qw(readOnlyHint destructiveHint
        idempotentHint openWorldHint)}], $effects{$_}, "$_: what it may do")
        for sort keys %effects;
    for my $tool (grep { $_->{name} =~ /_update$/ } values %tools) {
        my $has = $tool->{inputSchema}{properties};
        next if !grep { ($_->{type} // "") =~ /^(?:array|object)$/ } values %$has;
        like($tool->{description}, qr/replaced as a whole/,
            "$tool->{name}: that lists and objects are replaced");
    }
    my $arguments = $tools{conversations_messages_get}{inputSchema};
    is_deeply([sort @{$arguments->{required}}], ["id", "message_id"],
        "the ids of a path are required");
    is_deeply($tools{contacts_create}{inputSchema}{required}, ["bot_id"],
        "and what a body requires");
    is_deeply($tools{contacts_create}{inputSchema}{properties}{notes},
        { type => "string" }, "without null, where it is as good as nothing");
    is_deeply($tools{contacts_update}{inputSchema}{properties}{notes}{type},
        ["string", "null"], "with null, where it clears");
};

subtest "21.3 what a key may call" => sub {
    my %read = $mcp->with_key($w->make_key("read"))->tools;
    is_deeply([sort keys %read], [sort grep {
        $tools{$_}{annotations}{readOnlyHint} } keys %tools],
        "a reading key: what reads");
    my ($said, $r) = $mcp->with_key($w->make_key("read"))->tool(
        "contacts_create", { bot_id => $agent });
    ok($r->json->{result}{isError}, "another is an error");
    is($said->{error}{message}, "The API key lacks the scope write", "why");
    my $standard = workspace($httpd, plan => "standard", twin => 0);
    my %standard = CrmTest::Mcp->new($standard->client)->tools;
    is_deeply([sort grep { !$standard{$_} } keys %tools],
        [qw(sequences_enrollments_approve sequences_enrollments_get
        sequences_enrollments_list sequences_enrollments_stop sequences_start
        sequences_templates_get sequences_templates_list)],
        "a plan without sequences: all but these");
    my $other = httpd(database => $database,
        conf => "CrmApiMcp On\nCrmApiMcpTools read\n");
    my $limited = CrmTest::Mcp->new($other->client(key => $w->key));
    my %offered = $limited->tools;
    is_deeply([sort keys %offered], [sort keys %read], "CrmApiMcpTools read");
    is($limited->call("tools/call", { name => "contacts_create", arguments =>
        { bot_id => $agent } })->json->{error}{code}, -32602,
        "others are unknown");
    ok($limited->tool("contacts_list"), "and those can be called");
    $other->stop;
};

# The answer R of the tool NAME has no header of the API's.
sub only_own_headers {
    my ($r, $name) = @_;
    is(join(" ", grep { defined $r->header($_) } qw(Location ETag Link)), "",
        "$name: no header of the API's response");
}

# Call the tool NAME with ARGUMENTS, which must be done. Returns its data.
sub done {
    my ($name, $arguments) = @_;
    my ($said, $r) = $mcp->tool($name, $arguments);
    my $result = $r->json->{result};

    ok($result && !$result->{isError}, "$name: is done") or diag($r->text);
    only_own_headers($r, $name);
    return wantarray ? ($said->{data}, $said->{pagination}, $r)
        : $said->{data};
}

# Call the tool NAME with ARGUMENTS, which must fail with CODE. Returns the
# error.
sub refused {
    my ($code, $name, $arguments) = @_;
    my ($said, $r) = $mcp->tool($name, $arguments);

    ok($r->json->{result}{isError}, "$name: is an error") or diag($r->text);
    is($r->status, 200, "$name: that a model reads");
    ok(!exists $r->json->{result}{structuredContent}, "$name: as text");
    is($said->{error}{code}, $code, "$name: $code") or diag($r->text);
    only_own_headers($r, $name);
    return $said->{error};
}

my $ada = done("contacts_create", { bot_id => $agent, first_name => "Ada \"ä\"",
    emails => ["ada\@example.com"], tags => ["vip", "Smith, John"],
    deal_value => 12.5, custom_fields => { plan => "gold", seats => 12 } });

subtest "21.3 a contact" => sub {
    my $shown = $c->get("/api/v1/contacts/$ada->{id}")->data;
    is_deeply($ada, $shown, "created as the API shows it");
    is_deeply(scalar done("contacts_get", { id => $ada->{id} }), $shown,
        "contacts_get");
    is_deeply(scalar done("contacts_get_by_email", { email =>
        "ADA\@example.com" }), $shown, "contacts_get_by_email");
    my $changed = done("contacts_update", { id => $ada->{id}, notes => "x",
        tags => undef });
    is_deeply([@$changed{qw(notes tags)}], ["x", []], "contacts_update");
    is_deeply(scalar done("contacts_update", { id => $ada->{id}, tags =>
        ["vip", "Smith, John"], notes => undef })->{tags},
        ["vip", "Smith, John"], "and back");
    my $gone = done("contacts_create", { bot_id => $agent });
    is_deeply(scalar done("contacts_delete", { id => $gone->{id} }),
        { id => $gone->{id} }, "contacts_delete");
    is_deeply(refused("not_found", "contacts_delete", { id => $gone->{id} }),
        $c->delete("/api/v1/contacts/$gone->{id}")->json->{error}, "twice");
};

subtest "21.3 lists: 10 rows, cursors, pages, filters" => sub {
    done("contacts_create", { bot_id => $agent, first_name => "n$_" })
        for 1 .. 14;
    my ($first, $pages) = done("contacts_list");
    is(scalar @$first, 10, "10 rows");
    is_deeply([@$pages{qw(page_size has_more)}], [10, true], "with a cursor");
    my ($second, $end) = done("contacts_list", { cursor =>
        $pages->{next_cursor} });
    is(scalar @$second, 5, "the rest");
    is_deeply($end, { page_size => 10, has_more => false,
        next_cursor => undef }, "and no more");
    is_deeply([map { $_->{id} } @$first, @$second], $c->get("/api/v1/contacts",
        query => { page_size => 100 })->ids, "in the API's order");
    my ($page, $numbers) = done("contacts_list", { page => 2, page_size => 4 });
    is_deeply($numbers, { page => 2, page_size => 4, total => 15,
        total_pages => 4 }, "by number: with a total");
    is(scalar @{done("contacts_list", { cursor => undef, page => undef,
        page_size => undef, search => undef })}, 10, "null is nothing");
    for my $filter ({ search => "Ada \"ä\"" }, { tags => "vip" },
            { tags => ["Smith, John", "none"] }, { tags => [] , search => "ada" },
            { email => "ada\@example.com" }, { ids => [$ada->{id}, "x"] },
            { ids => $ada->{id} }, { custom_fields => { plan => "gold" } },
            { custom_fields => { plan => "gold", seats => 12 } },
            { tags => "vip", created_after => $ada->{created_at},
                created_before => $ada->{created_at} },
            { custom_fields => '{"plan": "gold"}', fields => '["id"]' },
            { search => "ada", has_company => false }) {
        is_deeply([map { $_->{id} } @{done("contacts_list", $filter)}],
            [$ada->{id}], join ", ", %$filter);
    }
    is_deeply(scalar done("contacts_list", { custom_fields =>
        { plan => undef } }), [], "a member that is null");
    my @odd = ("q\"", "\"all\"", "a\"b, \"c");
    my $odd = done("contacts_create", { bot_id => $agent, tags => \@odd });
    is_deeply([map { $_->{id} } @{done("contacts_list", { tags => $_ })}],
        [$odd->{id}], "7.4 tags with quotes: @$_") for map { [$_] } @odd;
    is(scalar @{done("contacts_list", { tags => \@odd, tags_match => "all" })},
        1, "all of them");
    done("contacts_delete", { id => $odd->{id} });
    is_deeply([map { $_->{id} } @{done("contacts_list", { sort => "created_at",
        order => "asc", page_size => 1 })}], [$ada->{id}], "an order");
    for my $three ("3.0", "3e0", "30.00e-1") {
        my ($said) = $mcp->tool("contacts_list", {}, body => body_of(
            "contacts_list", "{\"page_size\":$three}"));
        is(scalar @{$said->{data} || []}, 3, "6.4 an integer, as $three");
    }
    my ($whole) = done("pipelines_stages_list", { id => $w->pipeline });
    is(scalar @$whole, 3, "a list without pages");
};

subtest "21.3 fields" => sub {
    is_deeply(scalar done("contacts_get", { id => $ada->{id},
        fields => ["emails", "first_name"] }), { id => $ada->{id},
        first_name => "Ada \"ä\"", emails => [{ email => "ada\@example.com",
        is_primary => true }] }, "of one row");
    is_deeply(scalar done("contacts_list", { search => "ada", fields =>
        ["first_name"] }), [{ id => $ada->{id}, first_name => "Ada \"ä\"" }],
        "of a list");
    is_deeply(scalar done("contacts_list", { search => "ada", fields => [] }),
        [{ id => $ada->{id} }], "only ids");
    is_deeply(scalar done("contacts_list", { search => "no such one", fields =>
        ["tags"] }), [], "of nothing");
    is_deeply(refused("validation_error", "contacts_list", { fields =>
        ["tags", "nonsense", 1], page_size => 0 })->{details},
        [{ field => "fields[1]", message => "is not a field of Contact" },
        { field => "fields[2]", message => "is not a field of Contact" }],
        "others");
    is_deeply(scalar done("contacts_list", { search => "ada", fields => $_ }),
        [{ id => $ada->{id}, last_name => $ada->{last_name}, tags => $ada->{tags} }],
        "as a text: '$_'") for "tags,last_name", " last_name, tags , ";
    is_deeply([sort keys %{done("contacts_list", { search => "ada", fields => $_ })
        ->[0]}], [sort keys %$ada], "all: '$_'") for "", " , ";
    is_deeply([sort keys %{done("contacts_find", { search => "ada",
        fields => "notes" })->[0]}], [qw(id notes)], "those of a person who is found");
    is_deeply([map { $_->{message} } @{refused("validation_error", "contacts_list",
        { fields => "name,email,nonsense" })->{details}}],
        ["is not a field of Contact; did you mean first_name?",
        "is not a field of Contact; did you mean emails?",
        "is not a field of Contact"], "what is no field is asked back");
    unlike(refused("validation_error", "contacts_list", { fields => [("nonsense") x 10,
        "name"] })->{details}[10]{message}, qr/did you mean/, "of ten names");
    is(scalar @{done("contacts_list", { search => "ada", fields =>
        [("tags") x 100] })}, 1, "100 names");
    is(refused("validation_error", "contacts_list", { fields =>
        [("tags") x 101] })->{details}[0]{field}, "fields", "101 names");
    my ($said, $r) = $mcp->tool("contacts_create", { bot_id => $agent,
        fields => ["id"] });
    is($said->{error}{details}[0]{field}, "fields", "not of a write");
};

subtest "21.3 errors are those of the API" => sub {
    my @same = (
        ["contacts_get", { id => uuid() }, GET => "/contacts/" . uuid()],
        ["contacts_get", { id => "x-1" }, GET => "/contacts/x-1"],
        ["contacts_create", {}, POST => "/contacts", {}],
        ["contacts_create", { bot_id => "x", emails => [{ email => 1 }],
            nonsense => 1, deal_value => 1e20 }, POST => "/contacts",
            { bot_id => "x", emails => [{ email => 1 }], nonsense => 1,
            deal_value => 1e20 }],
        ["contacts_upsert", { bot_id => $agent, contacts => 1 },
            POST => "/contacts/upsert", { bot_id => $agent, contacts => 1 }],
        ["sequences_start", {}, POST => "/sequences/start", {}],
        ["contacts_list", { page_size => 101, sort => "x" },
            GET => "/contacts?page_size=101&sort=x"],
        ["contacts_list", { page => 1, cursor => "*" },
            GET => "/contacts?page=1&cursor=*"],
        ["contacts_list", { created_after => "yesterday", has_company => "x" },
            GET => "/contacts?created_after=yesterday&has_company=x"],
        ["contacts_get_by_email", {}, GET => "/contacts/by-email"],
        ["contacts_update", { id => $ada->{id}, bot_id => uuid() },
            PATCH => "/contacts/$ada->{id}", { bot_id => uuid() }],
        ["events_list", {}, GET => "/events"],
    );
    my ($into, $merged) = map { done("contacts_create", { bot_id => $agent })
        ->{id} } 1, 2;
    done("contacts_merge", { id => $into, from => $merged });
    push @same, ["contacts_get", { id => $merged }, GET => "/contacts/$merged"];
    like(refused("gone", "contacts_get", { id => $merged })->{message},
        qr/\b$into$/, "where it is now: Location is not to be seen");
    for my $same (@same) {
        my ($tool, $arguments, $method, $path, $body) = @$same;
        my $r = $c->request($method, "/api/v1$path",
            $body ? (json => $body) : ());
        my $error = refused($r->code, $tool, $arguments);
        is_deeply($error, $r->json->{error}, "$tool: $method $path");
    }
    # what a query cannot have: the argument itself is named
    my $scalar = "must be a text, a number or a boolean";
    for my $case (["search", $scalar, {}, [], ["x"], { a => { b => 1 } }],
            ["email", $scalar, ["ada\@example.com"]], ["bot_id", $scalar, {}],
            ["created_after", $scalar, {}, [1]], ["has_company", $scalar, {}],
            ["tags", "must be an array of texts", [{}], [undef], [[1]]],
            ["tags", $scalar, {}], ["ids", $scalar, { a => 1 }],
            ["custom_fields", "must be an object", "gold", [], ["gold"], 1],
            ["page_size", "must be an integer from 1 to 100", {}, [5], "",
                1.5, true],
            ["page", "must be an integer from 1 to 9007199254740991", {}, [1]],
            ["sort", "must be created_at or updated_at", {}, ["updated_at"]],
            ["order", "must be asc or desc", { desc => 1 }],
            ["nonsense", "is not a known parameter", {}, [], [1], "x"]) {
        my ($name, $rule, @values) = @$case;
        for my $value (@values) {
            is_deeply(refused("validation_error", "contacts_list",
                { $name => $value })->{details}, [{ field => $name,
                message => $rule }], "$name: " . JSON::PP->new->canonical
                ->allow_nonref->encode($value));
        }
    }
    is_deeply(refused("validation_error", "contacts_list", { custom_fields =>
        { a => { b => 1 } } })->{details}, [{ field => "custom_fields.a",
        message => "must be a text, a number, a boolean or null" }],
        "a member of custom_fields");
    is_deeply([map { $_->{field} } @{refused("validation_error",
        "contacts_list", { nonsense => 1, "a&b=c" => "d" })->{details}}],
        ["a&b=c", "nonsense"], "what is unknown is not ignored");
    is_deeply(refused("validation_error", "contacts_get", {})->{details},
        [{ field => "id", message => "is required" }], "no id");
    is_deeply([map { "$_->{field} $_->{message}" } @{refused("validation_error",
        "conversations_messages_get", { fields => 5 })->{details}}],
        ["fields must be an array of names", "id is required",
        "message_id is required"], "5.6 no ids: all at once");
    is_deeply(refused("validation_error", "contacts_get", { id => 5 })->{details},
        [{ field => "id", message => "must be a string" }], "an id of a type");
    is_deeply(refused("validation_error", "contacts_list", { search =>
        "x" x 9000 })->{details}, [{ field => "search",
        message => "is too long" }], "what no URI holds");
    is(refused("validation_error", "contacts_list", { map { ("a$_" => "x" x 100)
        } 1 .. 100 })->{details}[0]{field}, "", "in all, too");
    my $reader = $mcp->with_key($w->make_key("read"));
    my ($said) = $reader->tool("contacts_update", {});
    is($said->{error}{code}, "forbidden", "2 a scope comes before arguments");
    ($said) = $reader->tool("contacts_update", { id => "x" });
    is($said->{error}{code}, "forbidden", "2 and before 404");
};

subtest "13.1 idempotency_key" => sub {
    my %arguments = (bot_id => $agent, first_name => "Once",
        idempotency_key => "mcp-1");
    my ($first, undef, $r) = done("contacts_create", \%arguments);
    ok(!defined $r->header("Idempotent-Replayed"), "at first it is done");
    (my $second, undef, $r) = done("contacts_create", \%arguments);
    is_deeply($second, $first, "then answered");
    is($r->header("Idempotent-Replayed"), "true", "and said so");
    is(refused("validation_error", "contacts_create", { %arguments,
        first_name => "Twice" })->{details}[0]{field}, "idempotency_key",
        "for another request");
    my $key = "mcp-2";
    my $id = done("contacts_create", { bot_id => $agent })->{id};
    done("contacts_delete", { id => $id, idempotency_key => $key });
    is_deeply(scalar done("contacts_delete", { id => $id,
        idempotency_key => $key }), { id => $id }, "a delete, again");
    refused("not_found", "contacts_delete", { id => $id });
    is(refused("validation_error", "contacts_create", { bot_id => $agent,
        idempotency_key => $_ })->{details}[0]{field}, "idempotency_key",
        "its characters") for "a b", "unused\x{0}x";
    refused("validation_error", "contacts_create", { bot_id => $agent,
        idempotency_key => 5 });
    my %waits = (id => $ada->{id}, notes => "w", idempotency_key => "mcp-4");
    my $let_go = holding($database, "SELECT FROM crmapi.contact
        WHERE id = '$ada->{id}' FOR UPDATE");
    my $first_of = CrmTest::Mcp->new($w->client);
    my $child = CrmTest::Child->start(sub {
        return ($first_of->tool("contacts_update", \%waits))[0]{data}{notes};
    });
    wait_blocked($database, 1);
    (my $said, $r) = $mcp->tool("contacts_update", \%waits);
    is_deeply([$said->{error}{code}, $r->header("Retry-After")],
        ["conflict", 1], "while the first is under way");
    $let_go->();
    is_deeply([$child->result], ["w"], "which is done");
    # the same bytes by the API are the same request
    my $body = "{\"bot_id\":\"$agent\"}";
    my $by_api = $c->request("POST", "/api/v1/contacts", body => $body,
        headers => { "Idempotency-Key" => "mcp-3" });
    my ($by_tool) = $mcp->tool("contacts_create", {}, body => body_of(
        "contacts_create", "{\"bot_id\":\"$agent\",\"idempotency_key\":"
        . "\"mcp-3\"}"));
    is($by_tool->{data}{id}, $by_api->data->{id}, "by API and by tool");
};

subtest "JSON as it was sent" => sub {
    my $at = sub {
        my ($tool, $arguments) = @_;
        return ($mcp->tool($tool, {}, headers => { "Mcp-Name" => $tool },
            body => "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
            . "\"params\":{\"name\":\"$tool\",\"arguments\":$arguments,"
            . "\"_meta\":" . Cpanel::JSON::XS->new->encode(
            CrmTest::Mcp::meta()) . "}}"))[0];
    };
    my $made = $at->("contacts_create", " { \"bot\\u005fid\" : \"$agent\" ,"
        . " \"custom_fields\" : { \"a\" : 1.50 , \"b\\n\" : [ {} , [ ] ,"
        . " \"\\ud83d\\ude00\" ] } , \"notes\" : \"\\\"}]\\\\\" } ")->{data};
    is_deeply([@$made{qw(bot_id notes)}, $made->{custom_fields}{"b\n"}],
        [$agent, "\"}]\\", [{}, [], "😀"]], "escapes and blanks");
    is($at->("contacts_list", "{\"search\":\"\\u0000\"}")->{error}{details}[0]
        {message}, "must not contain U+0000", "U+0000 in a query");
    is($at->("contacts_create", "{\"bot_id\":\"$agent\",\"notes\":"
        . "\"a\\u0000\"}")->{error}{details}[0]{field}, "notes", "in a body");
    is($at->("contacts_create", "{\"bot_id\":\"$agent\",\"deal_value\":1e400}")
        ->{error}{details}[0]{field}, "deal_value", "numbers out of range");
};

$httpd->stop;
my @routes = split /\n/, read_file($httpd->dir . "/route.log");
ok((grep { $_ eq "mcp contacts_list" } @routes), "21.2 the log names the tool");
ok(!(grep { $_ !~ m{^(?:mcp [a-z_]+|[A-Z]+ (?:mcp)?/.*|-)$} } @routes),
    "and nothing that a client sent");
done_testing;
