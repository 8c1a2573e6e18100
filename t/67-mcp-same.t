# SPDX-License-Identifier: Apache-2.0
# 67-mcp-same.t: every operation as a tool gives what the API gives: data, errors,
# events, budget; and nothing of another workspace (contract 21.2, 21.3)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;
use CrmTest::Samples;

my $LIMIT = 100_000;
my $database = database();
my $httpd = httpd(database => $database, conf => "CrmApiMcp On\n"
    . "CrmApiReadLimit $LIMIT\nCrmApiWriteLimit $LIMIT\n");
my $w = workspace($httpd, plan => "pro");
my $c = $w->client;
my $mcp = CrmTest::Mcp->new($c);
my $samples = CrmTest::Samples->new($w);
my $document = $samples->openapi->{document};
my %tools = $mcp->tools;
my @operations;

for my $path (sort keys %{$document->{paths}}) {
    for my $method (grep { $_ ne "head" } sort keys
            %{$document->{paths}{$path}}) {
        my $operation = $document->{paths}{$path}{$method};
        next unless ref $operation eq "HASH" && $operation->{operationId};
        # pages and files are no tools
        next if $path =~ m{/(?:openapi\.json|docs|original|attachments/.*)$};
        my @parameters = map { $_->{'$ref'} ? $document->{components}
            {parameters}{$_->{'$ref'} =~ s{.*/}{}r} : $_ }
            @{$operation->{parameters} || []};
        push @operations, { %$operation, method => uc $method, path => $path,
            tool => CrmTest::Mcp::name_of($method, $path, $operation),
            pages => !!grep({ $_->{name} eq "page" } @parameters),
            log => !!($path =~ m{/events$}),
            required => [map { $_->{name} } grep { $_->{required}
                && $_->{in} eq "query" } @parameters] };
    }
}
cmp_ok(scalar @operations, ">", 50, "there are operations");
ok($tools{$_->{tool}}, "$_->{operationId} is $_->{tool}") for @operations;
is(keys(%tools) - @operations, 3, "and three more combine some");

# What the id of OPERATION's path is called in its tool, and its values.
sub ids_of {
    my ($operation, $id) = @_;
    my @names = $operation->{path} =~ /\{(\w+)\}/g;
    my @values = split m{/}, $samples->path(join("/", map { "{$_}" } @names),
        $id);
    return map { $names[$_] => $values[$_] } 0 .. $#names;
}

# Do OPERATION on ID with BODY by the API and as a tool: two results, as [data or
# error, pagination].
sub both {
    my ($operation, $id, $body, $api, $tools) = @_;
    my %query = map { $_ => 'a@b.example' } @{$operation->{required}};
    my %arguments = (ids_of($operation, $id), %query, %{$body || {}});

    $query{page_size} = 10 if $operation->{pages} || $operation->{log};
    $query{cursor} = "*" if $operation->{pages};
    my $r = ($api // $c)->request($operation->{method},
        $samples->path($operation->{path}, $id), query => \%query,
        headers => { Prefer => "handling=strict" },
        $operation->{requestBody} ? (json => $body || {}) : ());
    my ($said, $answer) = ($tools // $mcp)->tool($operation->{tool},
        \%arguments);
    my $json = $r->body eq "" ? {} : $r->json;
    $json = { data => { id => $arguments{id} } } if $r->status == 204;
    return ([$json->{data} // $json->{error}, $json->{pagination}],
        [$said->{data} // $said->{error}, $said->{pagination}], $r, $answer);
}

my $none = uuid();

subtest "data: every reading tool" => sub {
    for my $operation (grep { $_->{method} eq "GET" } @operations) {
        my $id = $samples->id_for($operation->{path}) // $none;
        my ($api, $tool, $r, $answer) = both($operation, $id);
        # the limits are those of the moment
        is_deeply($tool, $api, $operation->{tool}) or diag($answer->text);
        is($answer->header("X-RateLimit-Limit"), $LIMIT, "a read");
        is($answer->header("X-RateLimit-Remaining"),
            $r->header("X-RateLimit-Remaining") - 1, "of one budget");
    }
};

subtest "errors: unknown ids, another's, malformed ones" => sub {
    for my $operation (grep { $_->{path} =~ /\{id\}/ } @operations) {
        my ($api, $tool) = both($operation, $none);
        is_deeply($tool, $api, "$operation->{tool}: unknown");
        my $there = $samples->id_for($operation->{path});
        for my $id ("x-1", $w->twin_of($there // "") // ()) {
            my ($other, $said) = both($operation, $id);
            is_deeply($said, $other, "$operation->{tool}: $id");
            is_deeply($said, $tool, "2.1 $operation->{tool}: is the same");
        }
    }
};

subtest "errors: scopes and plans" => sub {
    my $key = $w->make_key("read");
    my $starter = workspace($httpd, plan => "starter", seed => 0);
    my $standard = workspace($httpd, plan => "standard", seed => 0);
    for my $client ($c->with_key($key), $starter->client, $standard->client) {
        my $tools = CrmTest::Mcp->new($client);
        for my $operation (@operations) {
            next if $operation->{tool} eq "workspace_get"
                && $client->{key} ne $starter->key;
            my ($api, $tool) = both($operation, $none, undef, $client, $tools);
            is_deeply($tool, $api, $operation->{tool});
        }
    }
};

subtest "errors: what the server fails at has its status" => sub {
    for (["53100", 503], ["XX000", 500]) {
        my ($state, $status) = @$_;
        sql($database, "CREATE FUNCTION crmapi.fail() RETURNS trigger LANGUAGE plpgsql AS
                \$\$ BEGIN RAISE 'failed' USING ERRCODE = '$state'; END \$\$;
            CREATE TRIGGER fail BEFORE INSERT ON crmapi.contact
                FOR EACH ROW EXECUTE FUNCTION crmapi.fail()");
        $httpd->expect_log(qr/CRM2001: database: $state/);
        my ($said, $answer) = $mcp->tool("contacts_create", { bot_id => $w->agent });
        is($said, undef, "21.2 it is no result");
        is($answer->status, $status, "but $status");
        sql($database, "DROP FUNCTION crmapi.fail() CASCADE");
    }
};

subtest "errors: bodies" => sub {
    for my $operation (grep { $_->{requestBody} } @operations) {
        my $id = $samples->id_for($operation->{path}) // $none;
        for my $body ({ nonsense => 1 }, { bot_id => 5, emails => "x",
                contacts => [1, {}], content => "", title => "x" x 2000,
                custom_fields => [] }) {
            my ($api, $tool) = both($operation, $id, $body);
            is_deeply($tool, $api, $operation->{tool});
        }
    }
};

# The two newest events of the workspace: type and fields.
sub events {
    return split /\n/, scalar sql($database, "SELECT string_agg(e.type || ' '"
        . " || coalesce((SELECT string_agg(k, ',' ORDER BY k) FROM"
        . " json_object_keys(e.fields) k), ''), chr(10)) FROM (SELECT * FROM"
        . " crmapi.event WHERE workspace_id = '" . $w->id . "' ORDER BY id"
        . " DESC LIMIT 2) e");
}

subtest "writes: data, events, budget" => sub {
    my ($contact) = $samples->ids("Contact");
    my ($conversation) = $samples->ids("Conversation");
    my %body = (contacts_create => { bot_id => $w->agent, first_name => "A",
            emails => ["a\@same.example"], tags => ["b", "a"],
            custom_fields => { x => [1, { y => undef }] } },
        companies_create => { bot_id => $w->agent, name => "C" },
        activities_create => { contact_id => $contact, activity_type => "note",
            title => "T" },
        contacts_upsert => { bot_id => $w->agent, contacts => [{ first_name =>
            "U" }, { emails => ["x"] }] },
        contacts_update => { notes => "changed" },
        companies_update => { industry => "changed" },
        conversations_update => { assigned_to => "changed" },
        suppressions_add => { email => "no\@same.example" });
    my $plain = sub {
        my $text = Cpanel::JSON::XS->new->canonical->allow_nonref->encode($_[0]);
        $text =~ s/"(?:id|created_at|updated_at|last_contacted_at)":"[^"]*"/0/g;
        return $text;
    };
    for my $operation (grep { $body{$_->{tool}} } @operations) {
        my $id = $samples->id_for($operation->{path}) // $none;
        my ($api, $tool, $r, $answer) = both($operation, $id,
            $body{$operation->{tool}});
        like($r->status, qr/^2/, "$operation->{tool}: is done")
            or diag($r->text);
        is($plain->($tool), $plain->($api), "the same");
        is($answer->header("X-RateLimit-Remaining"),
            $r->header("X-RateLimit-Remaining") - 1, "of the writes' budget");
        next if $operation->{method} eq "PATCH"
            || $operation->{tool} =~ /^suppressions/;
        my ($last, $before) = events();
        is($last, $before, "and the same event");
        like($last, qr/^\w+\.\w+ /, "which is there");
    }
    for my $kind (qw(contacts companies)) {
        my ($api, $tool) = map { $c->post("/api/v1/$kind", { bot_id =>
            $w->agent, $kind eq "companies" ? (name => "D") : () })->data->{id} }
            1, 2;
        $c->delete("/api/v1/$kind/$api");
        my ($said) = $mcp->tool("${kind}_delete", { id => $tool });
        is_deeply($said, { data => { id => $tool } }, "${kind}_delete");
        my ($last, $before) = events();
        is($last, $before, "and the same event");
    }
};

subtest "19.4 wait" => sub {
    my ($end) = $mcp->tool("events_list", { page_size => 100 });
    $end = ($mcp->tool("events_list", { page_size => 100,
        cursor => $end->{pagination}{next_cursor} }))[0]
        while @{$end->{data}};
    my ($said, $r) = $mcp->tool("events_list", { wait => 1,
        cursor => $end->{pagination}{next_cursor} });
    is_deeply($said->{data}, [], "nothing has happened in a second")
        or diag($r->text);
};

subtest "hostile: what is too large, too deep, or a line of a log" => sub {
    my $send = sub { $mcp->call("tools/call", { name => "contacts_create" },
        body => $_[0]) };
    my $call = sub { '{"jsonrpc":"2.0","id":' . $_[0] . ',"method":"tools/call",'
        . '"params":{"name":"contacts_create","arguments":' . $_[1] . ',"_meta":'
        . Cpanel::JSON::XS->new->encode(CrmTest::Mcp::meta()) . "}}" };
    my $code = sub { $_[0]->json->{error}{code} };

    is($code->($send->($call->('"' . "x" x 1_000_000 . '"', "{}"))), -32600,
        "an id of a megabyte");
    is($code->($send->($call->("9" x 1_000_000, "{}"))), -32600,
        "a number of a million digits");
    is($code->($send->($call->("1", "[" x 100_000 . "]" x 100_000))), -32700,
        "deep arguments");
    is($code->($send->($call->("1", '{"custom_fields":' . '{"a":' x 40 . "1"
        . "}" x 40 . "}"))), -32700, "deeper than a body may be");
    my $r = $send->($call->("1", '{"bot_id":"x","notes":"' . "y" x 1_500_000
        . '"}'));
    ok($r->json->{result}{isError}, "a long text: the API's error");
    $r = $send->($call->("1", '{"x":"' . "y" x 3_000_000 . '"}'));
    is($r->status, 413, "more than CrmApiMaxBody");
    is($r->json->{error}{code}, 413, "as JSON-RPC");
    for my $name ("x\nCRM9999: faked", "x\r\nX-Injected: 1", "x" x 5000,
            "../contacts", "\x{1F600}") {
        $r = CrmTest::Mcp->new($c, "2025-11-25")->call("tools/call",
            { name => $name, arguments => {} });
        is($code->($r), -32602, "a tool that nobody has");
        ok(!defined $r->header("X-Injected"), "no header of it");
    }
    for my $header ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name") {
        for my $value ("x" x 7000, "=?base64?" . "A" x 6000 . "?=", "\xff\xfe",
                "tools/call\t") {
            $r = $mcp->call("tools/call", { name => "contacts_list" },
                headers => { $header => $value });
            like($r->status, qr/^(?:200|400)$/, "$header: an odd value");
        }
    }
    is($mcp->call("server/discover")->status, 200, "the server goes on");
};
$httpd->stop;
unlike($httpd->log_text, qr/faked|xxxx/, "no name of a client is in the log");
done_testing;
