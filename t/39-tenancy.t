# SPDX-License-Identifier: Apache-2.0
# 39-tenancy.t: a workspace knows nothing of another one, whatever is asked
# (specification: Authentication 4, Errors; contract 2.1, 3.1, 6.8, 21.2, design 4)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Mcp;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1,
    conf => "CrmApiMcp On\n");

# A workspace with some of everything, and its twin with the same: the
# ids by name are in {ids}.
sub full_workspace {
    my $w = workspace($httpd);
    my %id = map { $_ => uuid() } qw(company contact card activity
        conversation message form submission template);
    my ($stage) = $w->stages;
    $w->import_objects([
        { object => "company", id => $id{company}, bot_id => $w->agent,
            name => "Same", domain => "same.example", tags => ["same"],
            industry => "same" },
        { object => "contact", id => $id{contact}, bot_id => $w->agent,
            first_name => "Same", emails => ["same\@x.org"],
            phone_numbers => ["+493012345"], tags => ["same"],
            lead_source => "same", company_id => $id{company},
            pipeline_stage_id => $stage, deal_value => 5 },
        { object => "pipeline_card", id => $id{card}, title => "Same",
            pipeline_stage_id => $stage, contact_id => $id{contact},
            order_index => 3 },
        { object => "activity", id => $id{activity}, title => "Same",
            activity_type => "note", contact_id => $id{contact} },
        { object => "conversation", id => $id{conversation}, type => 1,
            bot_id => $w->agent, contact_id => $id{contact},
            visitor_id => "same", assigned_to => "same", human => "Same",
            last_message => "same" },
        { object => "message", id => $id{message}, role => "user",
            conversation_id => $id{conversation}, content => "same" },
        { object => "form", id => $id{form}, bot_id => $w->agent,
            name => "Same" },
        { object => "submission", id => $id{submission},
            form_id => $id{form}, contact_id => $id{contact} },
        { object => "sequence_template", id => $id{template}, name => "Same",
            bot_id => $w->agent, allowed_channels => ["email"] },
        { object => "suppression", email => "same\@x.org" },
    ]);
    @id{qw(agent pipeline stage)} = ($w->agent, $w->pipeline, $stage);
    $w->{ids} = \%id;
    # a file of the message here, and of that there
    @id{qw(attachment their_attachment)} = (uuid(), uuid());
    for my $case ([$w->id, $id{message}, $id{attachment}],
            [$w->twin->id, $w->twin_of($id{message}), $id{their_attachment}]) {
        my ($in, $message, $file) = @$case;
        sql($database, "INSERT INTO crmapi.attachment (workspace_id, id,"
            . " message_id, number, size, stored) VALUES ('$in', '$file',"
            . " '$message', 1, 1, true); INSERT INTO crmapi.attachment_piece"
            . " VALUES ('$in', '$file', 1, 'x'); INSERT INTO crmapi.original"
            . " VALUES ('$in', '$message', 1, now(), 'x')");
    }
    # an enrollment in the twin, started with the same idempotency key
    # that a test will use here
    my $twin = $httpd->client(key => $w->twin->make_key("read,write"),
        headers => { "X-Crm-Twin" => 1 });
    my $r = $twin->post("/api/v1/sequences/start", {
        template_id => $w->twin_of($id{template}), idempotency_key => "same",
        contact => { emails => ["only\@there.org"],
            phone_numbers => ["+493099999"] } });
    $r->status == 202 or die $r->text;
    $w->{their_enrollment} = $r->data->{enrollment_id};
    $w->{their_sequence} = $r->data->{sequence_id};
    $w->{their_contact} = $r->data->{contact_id};
    $w->{twin_client} = $twin;
    return $w;
}

# All that the twin of W has, as text.
sub state_of_twin {
    my ($w) = @_;
    my $text = $w->ctl("export", "--workspace", $w->twin->id);
    for my $table (qw(sequence enrollment enrollment_step job counter)) {
        $text .= join "\n", map { join "|", map { $_ // "null" } @$_ }
            sql($database, "SELECT t::text FROM crmapi.$table t WHERE"
                . " workspace_id = '" . $w->twin->id . "' ORDER BY 1");
    }
    return $text;
}

my $w = full_workspace();
my $c = $w->client;
my %id = %{$w->{ids}};
my %their = map { $_ => $w->twin_of($id{$_}) }
    grep { !/attachment/ } keys %id;
$their{attachment} = $id{their_attachment};
my $before = state_of_twin($w);
like($before, qr/"first_name":\s*"Same".*\Q$w->{their_enrollment}\E/s,
    "what is compared is what they have");

subtest "the twin is there, and its own key sees it" => sub {
    my $t = $w->{twin_client};
    for my $case (["contacts", "contact"], ["companies", "company"],
            ["agents", "agent"], ["pipeline-cards", "card"],
            ["activities", "activity"],
            ["conversations", "conversation"], ["forms", "form"],
            ["submissions", "submission"]) {
        my ($path, $name) = @$case;
        is($t->get("/api/v1/$path/$their{$name}")->status, 200,
            "$path of the other workspace");
    }
    is($t->get("/api/v1/sequences/enrollments/$w->{their_enrollment}")
        ->status, 200, "and its enrollment");
    is_deeply($t->get("/api/v1/sequences/enrollments")->ids,
        [$w->{their_enrollment}], "which is in its list");
    list_is($c->get("/api/v1/sequences/enrollments"), [], "and not in ours");
    for my $filter ([contact_id => $w->{their_contact}],
            [template_id => $their{template}]) {
        is_deeply($t->get("/api/v1/sequences/enrollments",
            query => { @$filter })->ids, [$w->{their_enrollment}],
            "$filter->[0] finds it there");
        list_is($c->get("/api/v1/sequences/enrollments",
            query => { @$filter }), [], "6.8 and nothing here");
    }
};

# --- the same by tools ------------------------------------------------------------

# What is asked below is also asked by a tool, which answers the same: each read,
# and each write that was refused.
my ($by_tools, %asked) = (1);
my $mcp = CrmTest::Mcp->new($w->client);
my %tools = $mcp->tools;
my $document = $w->client(key => undef)->get("/api/v1/openapi.json")->json;
CrmTest::Client->hook(sub {
    my ($request, $response, $client) = @_;
    return if !$by_tools || $client != $c || ($request->{method} ne "GET"
        && $response->status < 400);
    my ($name, $arguments) = CrmTest::Mcp::call_of($document, $request);
    return if !$name || !$tools{$name};
    # the API's default
    $arguments->{page} = 1 if $response->body =~ /"total":/
        && !exists $arguments->{cursor};
    my ($said) = $mcp->tool($name, $arguments);
    my $json = $response->json;
    my $text = join ", ", map { "$_ $arguments->{$_}" } sort keys %$arguments;
    is_deeply($said->{error}, $json->{error}, "21.2 $name: $text");
    is_deeply($said->{data}, $json->{data}, "21.2 $name: the same data");
    is($said->{pagination}{total}, $json->{pagination}{total},
        "21.2 $name: the same total") if $json->{pagination};
    $asked{$name}++;
});

# --- ids in the path ------------------------------------------------------------

subtest "2.1 their ids in a path are as unknown ones, to the byte" => sub {
    my %body = (contacts => { first_name => "x" }, companies => { name => "x" },
        "pipeline-cards" => { title => "x" },
        activities => { title => "x" }, conversations => { active => false });
    my @paths = (
        map({ [GET => "agents/%s", $_] } "agent"),
        map({ ["$_" => "contacts/%s", "contact"] } qw(GET PATCH DELETE)),
        [GET => "contacts/%s/activities", "contact"],
        [GET => "contacts/%s/conversations", "contact"],
        map({ ["$_" => "companies/%s", "company"] } qw(GET PATCH DELETE)),
        [GET => "pipelines/%s/stages", "pipeline"],
        map({ ["$_" => "pipeline-cards/%s", "card"] } qw(GET PATCH DELETE)),
        map({ ["$_" => "activities/%s", "activity"] } qw(GET PATCH DELETE)),
        map({ ["$_" => "conversations/%s", "conversation"] }
            qw(GET PATCH DELETE)),
        [GET => "conversations/%s/messages", "conversation"],
        [GET => "conversations/$id{conversation}/messages/%s", "message"],
        [GET => "conversations/%s/messages/$id{message}", "conversation"],
        [GET => "conversations/$their{conversation}/messages/%s", "message"],
        [GET => "conversations/%s/messages/$id{message}/original",
            "conversation"],
        [GET => "conversations/$their{conversation}/messages/%s/original",
            "message"],
        [GET => "attachments/%s", "attachment"],
        [POST => "conversations/%s/messages", "conversation"],
        [GET => "forms/%s", "form"],
        [GET => "forms/%s/submissions", "form"],
        [GET => "submissions/%s", "submission"],
        [GET => "sequences/enrollments/%s", "enrollment"],
        [GET => "sequences/templates/%s", "template"],
        [GET => "companies/%s/activities", "company"],
    );
    my %theirs = (%their, enrollment => $w->{their_enrollment});
    for my $case (@paths) {
        my ($method, $format, $name) = @$case;
        my ($resource) = $format =~ m{^([^/]+)};
        my @body = $method eq "POST" ? (json => { content => "x" })
            : $method eq "PATCH" ? (json => $body{$resource}) : ();
        my ($theirs, $unknown, $malformed) = map { $c->request($method,
            "/api/v1/" . sprintf($format, $_), @body) } $theirs{$name},
            uuid(), "x";
        error_is($theirs, 404, "not_found", "$method $format");
        same_answer($theirs, $unknown, "2.1 as an unknown one");
        same_answer($theirs, $malformed, "2.1 and as a malformed one");
        next unless $method eq "GET";
        my ($head, $none) = map { $c->head("/api/v1/"
            . sprintf($format, $_)) } $theirs{$name}, uuid();
        same_answer($head, $none, "2.1 HEAD as well");
    }
    # a body that is refused otherwise, too: 404 comes before 422
    for my $case (["contacts", "contact"], ["companies", "company"],
            ["pipeline-cards", "card"], ["activities", "activity"],
            ["conversations", "conversation"]) {
        my ($path, $name) = @$case;
        my ($theirs, $unknown) = map { $c->patch("/api/v1/$path/$_",
            { nonsense => 1 }) } $their{$name}, uuid();
        error_is($theirs, 404, "not_found", "2 $path: 404 before 422");
        same_answer($theirs, $unknown, "2.1 to the byte");
        ($theirs, $unknown) = map { $c->patch("/api/v1/$path/$_", undef,
            body => "{") } $their{$name}, uuid();
        error_is($theirs, 400, "bad_request", "2 $path: 400 before 404");
        same_answer($theirs, $unknown, "2.1 to the byte");
    }
};

# --- ids in a filter --------------------------------------------------------------

subtest "6.8 their ids in a filter are as unknown ones, to the byte" => sub {
    for my $case (
        ["contacts", "bot_id", "agent"],
        ["contacts", "pipeline_stage_id", "stage"],
        ["companies", "bot_id", "agent"], ["pipelines", "bot_id", "agent"],
        ["pipeline-cards", "pipeline_id", "pipeline"],
        ["pipeline-cards", "pipeline_stage_id", "stage"],
        ["pipeline-cards", "bot_id", "agent"],
        ["pipeline-cards", "contact_id", "contact"],
        ["conversations", "bot_id", "agent"],
        ["conversations", "contact_id", "contact"],
        ["contacts/$id{contact}/conversations", "bot_id", "agent"],
        ["contacts/$id{contact}/conversations", "contact_id", "contact"],
        ["forms", "bot_id", "agent"],
        ["activities", "contact_id", "contact"],
        ["messages", "conversation_id", "conversation"],
        ["submissions", "form_id", "form"],
        ["submissions", "contact_id", "contact"],
        ["sequences/templates", "bot_id", "agent"],
    ) {
        my ($path, $filter, $name) = @$case;
        my ($theirs, $unknown) = map { $c->get("/api/v1/$path",
            query => { $filter => $_ }) } $their{$name}, uuid();
        list_is($theirs, [], "6.8 $path?$filter");
        same_answer($theirs, $unknown, "2.1 as an unknown one");
        is(scalar @{$c->get("/api/v1/$path", query =>
            { $filter => $id{$name} })->data}, 1, "our own id finds ours");
    }
};

subtest "what both have finds only ours" => sub {
    for my $case (
        ["agents", "search=Ada"], ["agents", "slug=ada"], ["agents", ""],
        ["contacts", "search=Same"], ["contacts", "search=493012345"],
        ["contacts", "tags=same"], ["contacts", "lead_source=same"],
        ["contacts", ""], ["companies", "search=same"],
        ["companies", "tags=same"], ["companies", "industry=same"],
        ["companies", "domain=same.example"], ["companies", ""],
        ["pipelines", ""], ["pipeline-cards", ""],
        ["conversations", "search=same"], ["conversations", ""],
        ["conversations", "visitor_id=same"],
        ["conversations", "assigned_to=same"], ["forms", ""],
        ["forms/$id{form}/submissions", "include_internal=true"],
        ["contacts/$id{contact}/activities", ""], ["activities", ""],
        ["activities", "activity_type=note"], ["messages", ""],
        ["messages", "role=user"], ["submissions", ""],
        ["sequences/templates", ""],
        ["contacts/$id{contact}/conversations", ""],
        ["conversations/$id{conversation}/messages", ""],
    ) {
        my ($path, $query) = @$case;
        my $r = $c->get("/api/v1/$path", query => $query);
        value_is([$r->json->{pagination}{total}, scalar @{$r->data}], [1, 1],
            "$path?$query: one, ours");
    }
    is($c->get("/api/v1/contacts/by-email", query =>
        { email => "same\@x.org" })->data->{id}, $id{contact}, "by-email");
    my ($theirs, $nobody) = map { $c->get("/api/v1/contacts/by-email",
        query => { email => $_ }) } "only\@there.org", "nobody\@there.org";
    error_is($theirs, 404, "not_found", "an e-mail that only they have");
    same_answer($theirs, $nobody, "2.1 as one that nobody has");
    is($c->get("/api/v1/companies/$id{company}")->data->{total_deal_value}, 5,
        "9.4 sums are of our contacts alone");
};

# --- ids in a body ----------------------------------------------------------------

subtest "6.8 their ids in a body are as unknown ones, to the byte" => sub {
    my %ok = (
        contacts => { bot_id => $id{agent} },
        companies => { bot_id => $id{agent}, name => "x" },
        "pipeline-cards" => { pipeline_stage_id => $id{stage}, title => "x" },
        activities => { activity_type => "note",
            contact_id => $id{contact} });
    for my $case (
        [POST => "contacts", "bot_id", "agent"],
        [POST => "contacts", "company_id", "company"],
        [POST => "contacts", "pipeline_stage_id", "stage"],
        [PATCH => "contacts/$id{contact}", "bot_id", "agent"],
        [PATCH => "contacts/$id{contact}", "company_id", "company"],
        [PATCH => "contacts/$id{contact}", "pipeline_stage_id", "stage"],
        [POST => "companies", "bot_id", "agent"],
        [POST => "companies", "pipeline_stage_id", "stage"],
        [PATCH => "companies/$id{company}", "bot_id", "agent"],
        [PATCH => "companies/$id{company}", "pipeline_stage_id", "stage"],
        [POST => "pipeline-cards", "pipeline_stage_id", "stage"],
        [POST => "pipeline-cards", "contact_id", "contact"],
        [PATCH => "pipeline-cards/$id{card}", "pipeline_stage_id", "stage"],
        [PATCH => "pipeline-cards/$id{card}", "contact_id", "contact"],
        [POST => "activities", "contact_id", "contact"],
        [POST => "activities", "company_id", "company"],
    ) {
        my ($method, $path, $field, $name) = @$case;
        my ($theirs, $unknown) = map { $c->request($method, "/api/v1/$path",
            json => { %{$ok{$method eq "POST" ? $path : ""} || {}},
                $field => $_ }) } $their{$name}, uuid();
        error_is($theirs, 422, "validation_error",
            "6.8 $method $path: $field", [$field]);
        same_answer($theirs, $unknown, "2.1 as an unknown one");
    }
    for my $case (["bot_id", "agent"], ["company_id", "company"],
            ["pipeline_stage_id", "stage"]) {
        my ($field, $name) = @$case;
        my ($theirs, $unknown) = map { $c->post("/api/v1/contacts/upsert",
            { bot_id => $id{agent}, contacts => [{ $field => $_ }] }) }
            $their{$name}, uuid();
        record_is($theirs, { created => [], updated => [], errors =>
            [{ index => 0, message => qr/\S/, details => [{
                field => "contacts[0].$field", message => qr/\S/ }] }] },
            "upsert: $field of an item");
        same_answer($theirs, $unknown, "2.1 as an unknown one");
    }
    my ($theirs, $unknown) = map { $c->post("/api/v1/contacts/upsert",
        { bot_id => $_, contacts => [{}] }) } $their{agent}, uuid();
    error_is($theirs, 422, "validation_error", "upsert: bot_id", ["bot_id"]);
    same_answer($theirs, $unknown, "2.1 as an unknown one");
    my %start = (template_id => $id{template}, contact => {
        emails => ["same\@x.org"] });
    ($theirs, $unknown) = map { $c->post("/api/v1/sequences/start",
        { %start, template_id => $_ }) } $their{template}, uuid();
    error_is($theirs, 404, "not_found", "start: template_id");
    same_answer($theirs, $unknown, "2.1 as an unknown one");
    ($theirs, $unknown) = map { $c->post("/api/v1/sequences/start",
        { %start, bot_id => $_ }) } $their{agent}, uuid();
    error_is($theirs, 422, "validation_error", "start: bot_id", ["bot_id"]);
    same_answer($theirs, $unknown, "2.1 as an unknown one");
    # ids that are ignored are not looked at either
    record_is($c->patch("/api/v1/contacts/$id{contact}", {
        workspace_id => $w->twin->id, id => $their{contact} }),
        $c->get("/api/v1/contacts/$id{contact}")->data,
        "workspace_id and id of a body are read-only");
    my $made = $c->post("/api/v1/contacts", { bot_id => $id{agent},
        workspace_id => $w->twin->id, id => $their{contact} })->data;
    is($made->{workspace_id}, $w->id, "of a create as well");
    isnt($made->{id}, $their{contact}, "it gets an id of its own");
    $c->delete("/api/v1/contacts/$made->{id}");
};

subtest "13.3 their cursor is as one that was made up" => sub {
    for my $path ("contacts", "conversations", "activities", "events",
            "companies/$id{company}/activities") {
        my $cursor = $w->{twin_client}->get("/api/v1/"
            . $path =~ s/\Q$id{company}\E/$their{company}/r,
            query => { page_size => 1, $path eq "events" ? ()
                : (cursor => "*") })->json->{pagination}{next_cursor} // next;
        my ($theirs, $unknown) = map { $c->get("/api/v1/$path",
            query => { cursor => $_ }) } $cursor, "x" . lc $cursor;
        error_is($theirs, 422, "validation_error", $path, ["cursor"]);
        same_answer($theirs, $unknown, "2.1 $path");
    }
};

$by_tools = 0;
my $asked = 0;
$asked += $_ for values %asked;
cmp_ok($asked, ">=", 107, "21.2 all of this as calls of tools: $asked");
cmp_ok(keys %asked, ">=", 30, "of many tools");

subtest "whom only they know is new here" => sub {
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $id{agent},
        contacts => [{ emails => ["only\@there.org"] },
            { phone_numbers => ["+493099999"] }] });
    is_deeply([map { scalar @{$r->data->{$_}} } qw(created updated errors)],
        [2, 0, 0], "upsert: neither e-mail nor phone match");
    $c->delete("/api/v1/contacts/$_->{id}") for @{$r->data->{created}};
    $r = $c->post("/api/v1/sequences/start", { template_id => $id{template},
        idempotency_key => "same", contact => {
            emails => ["only\@there.org"] } });
    is($r->status, 202, "11.2 their idempotency key is free here");
    is($r->header("Idempotent-Replayed"), undef, "and no replay");
    is($r->data->{contact_action}, "created", "the contact is new");
};

subtest "nothing of it has touched them" => sub {
    is(state_of_twin($w), $before, "all they have is as it was");
};

subtest "changes here do not show there" => sub {
    my $t = $w->{twin_client};
    $c->patch("/api/v1/contacts/$id{contact}", { first_name => "Other" });
    $c->delete("/api/v1/companies/$id{company}");
    $c->delete("/api/v1/conversations/$id{conversation}");
    $c->patch("/api/v1/pipeline-cards/$id{card}",
        { archived_at => "2026-01-01" });
    $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $id{contact} });
    $c->delete("/api/v1/contacts/$id{contact}");
    is(state_of_twin($w), $before, "all they have is as it was");
    is(total_of($t, "/$_->[0]"), $_->[1], "their total of $_->[0]")
        for ["contacts", 2], ["companies", 1], ["conversations", 1],
        ["pipeline-cards", 1];
};

subtest "ids do not tell how many others got" => sub {
    my $third = workspace($httpd, twin => 0)->client;
    # what the id of a new row has after the time, without 32 random bits
    my $mark = sub {
        my $r = $_[0]->post("/api/v1/suppressions",
            { email => uuid() . "\@x.org" });
        status_is($r, 201, "a row that the database numbers") or return;
        my ($high, $variant, $low) = $r->data->{id}
            =~ /^.{8}-.{4}-7(...)-(.)(...)-(....)/ ? ($1, $2, $3 . $4) : ();
        return hex($high) * 2**30 + (hex($variant) & 3) * 2**28 + hex $low;
    };
    for my $others (0, 5) {
        my $from = $mark->($c);
        $mark->($third) for 1 .. $others;
        cmp_ok(abs($mark->($c) - $from), ">", 100, "$others between: time only");
    }
};

# --- the database itself --------------------------------------------------------------

subtest "design 4: no reference across workspaces, even by SQL" => sub {
    my $w = full_workspace();
    my %id = %{$w->{ids}};
    my %their = map { $_ => $w->twin_of($id{$_}) } keys %id;
    my $own = $w->id;
    my $new = sub { "'$own', '" . uuid() . "'" };
    my @refused = (
        ["contact.bot_id", "INSERT INTO crmapi.contact (workspace_id, id,"
            . " bot_id) VALUES (" . $new->() . ", '$their{agent}')"],
        map({ ["contact.$_->[0]", "UPDATE crmapi.contact SET $_->[0] ="
            . " '$_->[1]' WHERE workspace_id = '$own'"] }
            ["bot_id", $their{agent}], ["company_id", $their{company}],
            ["pipeline_stage_id", $their{stage}]),
        ["company.bot_id", "INSERT INTO crmapi.company (workspace_id, id,"
            . " bot_id, name) VALUES (" . $new->()
            . ", '$their{agent}', 'x')"],
        ["company.pipeline_stage_id", "UPDATE crmapi.company SET"
            . " pipeline_stage_id = '$their{stage}' WHERE workspace_id ="
            . " '$own'"],
        ["card.pipeline_stage_id", "INSERT INTO crmapi.pipeline_card"
            . " (workspace_id, id, pipeline_stage_id, title, order_index)"
            . " VALUES (" . $new->() . ", '$their{stage}', 'x', 1)"],
        map({ ["card.$_->[0]", "UPDATE crmapi.pipeline_card SET $_->[0] ="
            . " '$_->[1]' WHERE workspace_id = '$own'"] }
            ["contact_id", $their{contact}],
            ["pipeline_stage_id", $their{stage}]),
        map({ ["activity.$_->[0]", "INSERT INTO crmapi.activity"
            . " (workspace_id, id, activity_type, $_->[0]) VALUES ("
            . $new->() . ", 'note', '$_->[1]')"] }
            ["contact_id", $their{contact}],
            ["company_id", $their{company}]),
        ["sequence.bot_id", "INSERT INTO crmapi.sequence (workspace_id, id,"
            . " name, bot_id, template_id) VALUES (" . $new->() . ", 'x',"
            . " '$their{agent}', '$id{template}')"],
        ["sequence.template_id", "INSERT INTO crmapi.sequence (workspace_id,"
            . " id, name, bot_id, template_id) VALUES (" . $new->() . ", 'x',"
            . " '$id{agent}', '$their{template}')"],
        ["enrollment.sequence_id", "INSERT INTO crmapi.enrollment"
            . " (workspace_id, id, sequence_id, contact_id, contact_action,"
            . " status) VALUES (" . $new->() . ", '$w->{their_sequence}',"
            . " '$id{contact}', 'created', 'generating')"],
    );
    for my $case (@refused) {
        my ($what, $statement) = @$case;
        my ($code, $out, $words) = api_sql($database, $statement);
        isnt($code, 0, "$what of another workspace is refused");
        like($words, qr/23503/, "by a foreign key") or diag($statement);
    }
    for my $table (qw(contact company pipeline_card)) {
        my ($code, undef, $words) = api_sql($database, "UPDATE crmapi.$table"
            . " SET workspace_id = '" . $w->twin->id . "' WHERE workspace_id"
            . " = '$own'");
        isnt($code, 0, "a row of $table does not change its workspace");
        # or, before that is asked, by Citus
        like($words, qr/permission denied|never changes|modifying the partition value of rows is not allowed/,
            "for that reason");
    }
    # the way to the other side is not longer than one's own: it is the
    # constraint that refuses, and not the statement
    my ($code) = api_sql($database, "INSERT INTO crmapi.activity"
        . " (workspace_id, id, activity_type, contact_id) VALUES ("
        . $new->() . ", 'note', '$id{contact}')");
    is($code, 0, "with an id of one's own the same is done");
};

subtest "9.3 the API's role reads no secret and deletes no conversation"
        => sub {
    for my $statement ("SELECT key_hash FROM crmapi.api_key",
            # without hashes where Citus distributes it
            $ENV{CRM_CITUS} ? () : ("SELECT key_hash FROM crmapi.live_key",
                "SELECT read FROM crmapi.live_key WHERE key_hash = ''"),
            "SELECT key_hash FROM crmapi.live_intake",
            "SELECT key FROM crmapi.link_key",
            "SELECT crmapi.token_sign_link('')",
            "SELECT * FROM crmapi.api_key", "DELETE FROM crmapi.conversation",
            "UPDATE crmapi.conversation SET contact_id = NULL",
            "UPDATE crmapi.api_key SET revoked_at = NULL",
            "UPDATE crmapi.workspace SET plan = 'enterprise'",
            "UPDATE crmapi.plan SET api = true",
            "UPDATE crmapi.counter SET n = 0", "DELETE FROM crmapi.agent",
            "INSERT INTO crmapi.message SELECT * FROM crmapi.message",
            "UPDATE crmapi.suppression SET reason = 'x'",
            "CREATE TABLE crmapi.mine (a int)", "SET ROLE crmapi_owner") {
        my ($code, undef, $words) = api_sql($database, $statement);
        isnt($code, 0, "not: $statement");
        like($words, qr/42501/, "for want of the right");
    }
};

# --- vhosts -------------------------------------------------------------------------

subtest "CrmApiWorkspace: a vhost by id, one by slug, one for all" => sub {
    my $one = workspace($httpd, slug => "one-$$");
    my $two = workspace($httpd, slug => "two-$$");
    my $server = httpd(database => $database, unlimited => 1, conf => <<"END");
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName all.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName one.example
    CrmApiWorkspace @{[uc $one->id]}
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName two.example
    CrmApiWorkspace two-$$
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName none.example
    CrmApiWorkspace no-such-workspace
</VirtualHost>
END
    my $get = sub {
        my ($host, $w) = @_;
        return $server->client(host => "$host.example", key => $w->key)
            ->get("/api/v1/agents");
    };
    my $unknown = $server->client(host => "one.example",
        key => "svc_live_" . "x" x 30)->get("/api/v1/agents");
    for my $round (1, 2) {      # when the key is new, and when it is known
        is_deeply($get->("all", $one)->ids, [$one->agent], "all: one's key");
        is_deeply($get->("all", $two)->ids, [$two->agent], "all: two's key");
        is_deeply($get->("one", $one)->ids, [$one->agent],
            "by id: its own key");
        is_deeply($get->("two", $two)->ids, [$two->agent],
            "by slug: its own key");
        for my $case (["one", $two], ["two", $one], ["none", $one],
                ["none", $two]) {
            my $r = $get->(@$case);
            error_is($r, 401, "unauthorized",
                "3.1 $case->[0]: a key of another workspace");
            same_answer($r, $unknown, "2.1 as an unknown key");
            is($r->header("X-RateLimit-Limit"), undef,
                "4.2 and no budget is told");
        }
    }
    my $r = $server->client(host => "one.example", key => $one->key)
        ->post("/api/v1/contacts", { bot_id => $one->agent });
    is($r->status, 201, "writes work there");
    is($server->client(host => "two.example", key => $one->key)
        ->get("/api/v1/contacts/" . $r->data->{id})->status, 401,
        "and are not seen through the other");
    $server->stop;
};

subtest "two vhosts with two databases" => sub {
    my $other = database();
    my $server = httpd(database => $database, unlimited => 1, conf => <<"END");
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName first.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName second.example
    DBDriver pgsql
    DBDParams "@{[postgres()->conninfo($other, $CrmTest::Postgres::API)]}"
    DBDMin 1
    DBDKeep 4
    DBDMax 10
</VirtualHost>
END
    my $here = workspace($httpd);
    # the same workspace, the same key, in the other database: other data
    my $there = workspace($other, twin => 0, seed => 0);
    $there->ctl("workspace", "create", "--name", "Same", "--id",
        $here->id, "--plan", "pro");
    $there->load($here->id, [{ object => "agent", id => $here->agent,
        name => "There" }]);
    my $client = sub {
        my ($host, $key) = @_;
        return $server->client(host => "$host.example", key => $key);
    };
    error_is($client->("second", $here->key)->get("/api/v1/agents"), 401,
        "unauthorized", "a key of the first database is unknown in the other")
        for 1, 2;
    is($client->("first", $here->key)->get("/api/v1/agents")->data->[0]{name},
        "Ada", "and known in the first");
    error_is($client->("second", $here->key)->get("/api/v1/agents"), 401,
        "unauthorized", "still not in the other");
    CrmTest::crmapictl_ok($other, { stdin => $here->key . "\n" }, "key",
        "import", "--workspace", $here->id, "--name", "same", "--scopes",
        "read,write");
    for my $round (1 .. 3) {
        for my $case (["first", "Ada"], ["second", "There"]) {
            my ($host, $name) = @$case;
            is($client->($host, $here->key)
                ->get("/api/v1/agents/" . $here->agent)->data->{name},
                $name, "the same key and id in both: each its own data");
        }
    }
    my $made = $client->("second", $here->key)->post("/api/v1/contacts",
        { bot_id => $here->agent, first_name => "There" });
    is($made->status, 201, "a write in the second");
    error_is($client->("first", $here->key)
        ->get("/api/v1/contacts/" . $made->data->{id}), 404, "not_found",
        "is not in the first");
    is(total_of($client->("first", $here->key), "/contacts"), 0,
        "nor in its total");
    is(total_of($client->("second", $here->key), "/contacts"), 1,
        "but in the second's");
    # revoked in the one: dead there, alive in the other
    my ($key) = @{CrmTest::crmapictl_json($other, "key", "list", "--workspace",
        $here->id)};
    CrmTest::crmapictl_ok($other, "key", "revoke", $key->{id});
    error_is($client->("second", $here->key)->get("/api/v1/agents"), 401,
        "unauthorized", "3.2 revoked in the second: dead there");
    is($client->("first", $here->key)->get("/api/v1/agents")->status, 200,
        "alive in the first");
    $server->stop;
};

$httpd->stop;
done_testing;
