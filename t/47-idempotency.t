# SPDX-License-Identifier: Apache-2.0
# 47-idempotency.t: Idempotency-Key: a write that is sent again is done once,
# and gets the first answer again (contract 13.1)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Proxy;
use CrmTest::Session;
use Time::HiRes qw(time);

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my @named = (bot_id => $w->agent);
my $template = $w->template;

# The headers of a request with KEY.
sub key { return (headers => { "Idempotency-Key" => $_[0], @_[1 .. $#_] }) }
sub replayed { return $_[0]->header("Idempotent-Replayed") // "no" }
sub kept { return count_rows($w, "idempotent_answer", @_) }

# SECOND is FIRST again: status, headers and body to the byte.
sub replay_is {
    my ($second, $first, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;

    is(replayed($second), "true", "$name: Idempotent-Replayed");
    my $other = bless { %$second, headers => [grep { $_->[0]
        ne "Idempotent-Replayed" } @{$second->{headers}}] }, ref $second;
    return same_answer($other, $first, "$name: the same answer");
}

my $made = 0;
sub contact {
    return $c->post("/api/v1/contacts", { @named, @_ })->data->{id};
}
sub company {
    return $c->post("/api/v1/companies", { @named, name => "C" })->data->{id};
}
sub card {
    return $c->post("/api/v1/pipeline-cards", { title => "T",
        pipeline_stage_id => ($w->stages)[0] })->data->{id};
}
sub activity {
    return $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => contact() })->data->{id};
}
sub suppression {
    return $c->post("/api/v1/suppressions", { email => "s" . ++$made
        . '@x.example' })->data->{id};
}
# An enrollment with STATUS.
sub enrollment {
    my ($status) = @_;
    my $id = $w->start($template, contact => { emails => ["e" . ++$made
        . '@x.example'] })->{enrollment_id};
    change($w, "enrollment", $id, status => $status)
        if $status ne "generating";
    return $id;
}

# Every kind of write: name => sub { method, path, body }, each with rows of its
# own.
my @KINDS = (
    "POST /contacts" => sub { ("POST", "/contacts", { @named,
        first_name => "Ünïcødé \"\\\x{1F600}\n", deal_value => 1250.5,
        emails => ['a@x.example', 'b@x.example'], tags => ["a,b", "{\"}"],
        phone_numbers => ["+4930901820"], notes => "N\t\x{7f}",
        custom_fields => { size => { eu => 38 }, "ä" => [1.5, undef, "\""] },
        pipeline_stage_id => ($w->stages)[0] }) },
    "POST /companies" => sub { ("POST", "/companies", { @named,
        name => "ACME", domain => "acme.example", tags => ["x"] }) },
    "POST /pipeline-cards" => sub { ("POST", "/pipeline-cards", {
        title => "T", pipeline_stage_id => ($w->stages)[1],
        contact_id => contact(), tags => ["x"] }) },
    "POST /activities" => sub { ("POST", "/activities", { title => "T",
        activity_type => "note", contact_id => contact(),
        metadata => { a => true } }) },
    "POST /messages" => sub { ("POST", "/conversations/"
        . $w->conversation("chat") . "/messages", { content => "Yes ö" }) },
    "POST /contacts/upsert" => sub { ("POST", "/contacts/upsert", { @named,
        contacts => [{ first_name => "new" }, 1, { notes => "ö" },
            { emails => ["no address"] }] }) },
    "POST /contacts/upsert of nothing" => sub { ("POST", "/contacts/upsert",
        { @named, contacts => [] }) },
    "POST /sequences/start" => sub { ("POST", "/sequences/start", {
        template_id => $template,
        contact => { emails => ["s" . ++$made . '@x.example'] } }) },
    "POST /approve" => sub { ("POST", "/sequences/enrollments/"
        . enrollment("pending_approval") . "/approve") },
    "POST /stop" => sub { ("POST", "/sequences/enrollments/"
        . enrollment("generating") . "/stop") },
    "PATCH /contacts" => sub { ("PATCH", "/contacts/" . contact(),
        { first_name => "New", custom_fields => { a => 1 } }) },
    "PATCH of nothing" => sub { ("PATCH", "/contacts/" . contact(), {}) },
    "PATCH /companies" => sub { ("PATCH", "/companies/" . company(),
        { name => "New" }) },
    "PATCH /pipeline-cards" => sub { ("PATCH", "/pipeline-cards/" . card(),
        { pipeline_stage_id => ($w->stages)[2] }) },
    "PATCH /conversations" => sub { ("PATCH", "/conversations/"
        . $w->conversation("chat"), { human_takeover => true, assigned_to => "u" }) },
    "DELETE /contacts" => sub { ("DELETE", "/contacts/" . contact()) },
    "DELETE /companies" => sub { ("DELETE", "/companies/" . company()) },
    "DELETE /pipeline-cards" => sub { ("DELETE", "/pipeline-cards/"
        . card()) },
    "DELETE /conversations" => sub { ("DELETE", "/conversations/"
        . $w->conversation("chat")) },
    "POST /companies/upsert" => sub { ("POST", "/companies/upsert", { @named,
        companies => [{ name => "U", external_id => "u" . ++$made },
            { domain => "none.example" }] }) },
    "POST /merge" => sub { ("POST", "/contacts/" . contact() . "/merge",
        { from => contact(last_name => "L") }) },
    "POST /suppressions" => sub { ("POST", "/suppressions",
        { email => "S" . ++$made . '@x.example', reason => "\"\\\n\x{e9}" }) },
    "POST /suppressions of a known one" => sub { suppression();
        ("POST", "/suppressions", { email => "s$made\@X.example" }) },
    "DELETE /suppressions" => sub { ("DELETE", "/suppressions/"
        . suppression()) },
    "PATCH /activities" => sub { ("PATCH", "/activities/" . activity(),
        { completed_at => "2026-01-01", metadata => { a => 1.5 } }) },
    "DELETE /activities" => sub { ("DELETE", "/activities/" . activity()) },
);

# How many rows there are of what POSTs make, and their xmin: what any write
# changes.
sub state {
    return join " ", map { "@$_" } sql($database, join " UNION ALL ",
        map { "SELECT '$_', count(*), coalesce(max(xmin::text::bigint), 0)
            FROM crmapi.$_ WHERE workspace_id = '" . $w->id . "'" }
        qw(contact company pipeline_card activity conversation message sequence
            enrollment suppression job));
}

sub send_again {
    my ($name, $request, $client) = @_;
    my ($method, $path, $body) = $request->();
    my $before = kept();
    my $key = "again $name" =~ tr/ /-/r;
    my $send = sub { ($client || $c)->request($method, "/api/v1$path",
        defined $body ? (json => $body) : (), key($key)) };
    my $first = $send->();

    like($first->status, qr/^2/, "$name: is done") or diag($first->text);
    is(replayed($first), "no", "$name: Idempotent-Replayed is absent");
    is(kept(), $before + 1, "$name: the answer is stored");
    my $state = state();
    replay_is($send->(), $first, "$name, second time") for 1, 2;
    is(state(), $state, "$name: nothing was done then");
    is(kept(), $before + 1, "$name: nor stored");
    return $first;
}

subtest "every write is done once and answered again" => sub {
    my %seen;
    for (my $i = 0; $i < @KINDS; $i += 2) {
        my $r = send_again(@KINDS[$i, $i + 1]);
        $seen{$r->status}++;
        is(!!$r->header("Location"), $r->status == 201,
            "$KINDS[$i]: Location") if $r->{request}{method} eq "POST";
    }
    is(join(" ", sort keys %seen), "200 201 202 204", "of every status");
};

subtest "connections without prepared statements, and with request ids" => sub {
    my $other = httpd(database => $database, unlimited => 1,
        conf => "CrmApiNamedStatements Off\n"
        . "CrmApiRequestIdInDatabase On\n");
    for (my $i = 0; $i < @KINDS; $i += 2) {
        send_again("unnamed $KINDS[$i]", $KINDS[$i + 1],
            $w->client(port => $other->port));
    }
    $other->stop;
};

subtest "what the key stands for: method, path and the bytes of the body" => sub {
    my $id = contact();
    my $patch = sub { $c->request("PATCH", "/api/v1/contacts/$id$_[0]",
        body => $_[1], key("stands")) };
    my $first = $patch->("", '{"notes": "1"}');
    status_is($first, 200);
    replay_is($patch->("/", '{"notes": "1"}'), $first,
        "5.2 a slash at the end of the path");
    replay_is($patch->("?x=1", '{"notes": "1"}'), $first, "a query");
    replay_is($c->request("PATCH", "/api/v1/contacts/$id",
        body => '{"notes": "1"}', key("stands", Prefer => "handling=lenient")),
        $first, "other headers");
    my @different = (
        ["a blank more", "PATCH", "contacts/$id", '{"notes":  "1"}'],
        ["another value", "PATCH", "contacts/$id", '{"notes": "2"}'],
        ["another path", "PATCH", "contacts/" . contact(), '{"notes": "1"}'],
        ["a path without anything", "PATCH", "contacts/" . uuid(),
            '{"notes": "1"}'],
        ["a path that is no id", "PATCH", "contacts/none", '{"notes": "1"}'],
        ["an invalid body", "PATCH", "contacts/$id", '{"first_name": 1}'],
        ["another method", "DELETE", "contacts/$id"],
        ["another method with that body", "DELETE", "contacts/$id",
            '{"notes": "1"}'],
        ["a POST", "POST", "contacts", encode({ @named })],
        ["an upsert", "POST", "contacts/upsert",
            encode({ @named, contacts => [{}] })],
        ["an upsert of no item", "POST", "contacts/upsert",
            encode({ @named, contacts => [] })],
        ["a start", "POST", "sequences/start", encode({
            template_id => $template, contact => { emails => ['q@q'] } })],
        ["an approval", "POST", "sequences/enrollments/"
            . enrollment("pending_approval") . "/approve"]);
    my $state = state();
    for my $case (@different) {
        my ($name, $method, $path, $body) = @$case;
        error_is($c->request($method, "/api/v1/$path",
            defined $body ? (body => $body) : (), key("stands")), 422,
            "validation_error", $name, ["Idempotency-Key"]);
    }
    is(state(), $state, "and nothing is done");
    for my $body ('{"a": 1}', "x") {
        my $path = "/api/v1/contacts/" . contact();
        is($c->request("DELETE", $path, body => $body, key("body $body"
            =~ tr/ /-/r))->status, 204, "DELETE with a body");
        error_is($c->delete($path, key("body $body" =~ tr/ /-/r)), 422,
            "validation_error", "and without it", ["Idempotency-Key"]);
    }
};

sub encode { return JSON::PP->new->utf8->canonical->encode($_[0]) }

subtest "a key is 1 to 255 visible ASCII characters" => sub {
    my $id = contact();
    my $write = sub { $c->patch("/api/v1/contacts/$id", { notes => $_[0] },
        headers => { "Idempotency-Key" => $_[1] }) };
    my @bad = (["nothing", ""], ["256 characters", "k" x 256],
        ["a blank", "a b"], ["a tab", "a\tb"], ["UTF-8", "sch\x{c3}\x{b6}n"],
        ["Latin 1", "sch\x{f6}n"],
        ["two lines", ["a", "b"]], ["the same line twice", ["a", "a"]]);
    my $before = kept();
    for my $case (@bad) {
        error_is($write->($case->[0], $case->[1]), 422, "validation_error",
            $case->[0], ["Idempotency-Key"]);
    }
    error_is($c->patch("/api/v1/contacts/$id", { first_name => 1, x => 2 },
        key("a b")), 422, "validation_error", "with all other errors",
        [qw(Idempotency-Key first_name x)]);
    error_is($c->post("/api/v1/contacts/upsert", {}, key("")), 422,
        "validation_error", "upsert", [qw(Idempotency-Key bot_id contacts)]);
    error_is($c->delete("/api/v1/contacts/$id", key("a b")), 422,
        "validation_error", "DELETE", ["Idempotency-Key"]);
    error_is($c->delete("/api/v1/contacts/" . uuid(), key("a b")), 404,
        "not_found", "2 the resource precedes the fields");
    is(kept(), $before, "nothing is stored");
    is($c->get("/api/v1/contacts/$id")->data->{notes}, undef,
        "and nothing is changed");
    my $visible = join "", map { chr } 0x21 .. 0x7e;
    for my $key ("k", "k" x 255, $visible) {
        is($write->("n", $key)->status, 200, "taken: " . substr $key, 0, 10);
        is(replayed($write->("n", $key)), "true", "and known");
    }
    is(replayed($write->("n", lc $visible)), "no", "case counts");
    for my $method (qw(GET HEAD)) {
        is($c->request($method, "/api/v1/contacts/$id", key("a b"))->status,
            200, "$method ignores the header");
    }
    is($c->options("/api/v1/contacts/$id", key("a b"))->status, 204,
        "so does OPTIONS");
};

subtest "the order of checks" => sub {
    my $id = contact();
    my $delete = sub { ($_[0] || $c)->delete("/api/v1/contacts/$id",
        key("order")) };
    my $first = $delete->();
    status_is($first, 204, "done");
    replay_is($delete->(), $first, "the replay comes before 404");
    error_is($c->delete("/api/v1/contacts/$id", key("order-2")), 404,
        "not_found", "which another key gets");
    error_is($delete->($c->with_key("svc_live_" . "x" x 30)), 401,
        "unauthorized", "and after 401");
    error_is($delete->($c->with_key($w->make_key("read"))), 403,
        "forbidden", "and after 403");
    my $plain = workspace($httpd, twin => 0);
    my $contact = $plain->client->post("/api/v1/contacts", {
        bot_id => $plain->agent }, key("plan"))->data->{id};
    sql($database, "UPDATE crmapi.workspace SET plan = 'free'
        WHERE id = '" . $plain->id . "'");
    error_is($plain->client->post("/api/v1/contacts", {
        bot_id => $plain->agent }, key("plan")), 403, "forbidden",
        "and after the plan's 403");
    my $again = contact();
    status_is($c->patch("/api/v1/contacts/$again", { x => 1 }, key("lenient",
        Prefer => "handling=lenient")), 200);
    is(replayed($c->patch("/api/v1/contacts/$again", { x => 1 },
        key("lenient"))), "true", "and before 422");
    error_is($c->request("PATCH", "/api/v1/contacts/$again", body => "{",
        key("lenient")), 400, "bad_request", "2 and after 400");
    error_is($c->request("PATCH", "/api/v1/contacts/$again", body => "{}",
        key("lenient", "Content-Type" => "text/plain")), 415,
        "unsupported_media_type", "2 and after 415");
    error_is($c->request("DELETE", "/api/v1/contacts/$again",
        body => "x" x 2_200_000, key("long")), 413, "payload_too_large",
        "5.3 413 for a body that does not matter otherwise");
};

subtest "only 2xx are stored" => sub {
    my $before = kept();
    my $id = uuid();
    my $path = "/api/v1/contacts/$id";
    error_is($c->patch($path, { notes => "x" }, key("later")), 404,
        "not_found", "a contact that is not there");
    error_is($c->post("/api/v1/contacts", {}, key("later")), 422,
        "validation_error", "a create without an agent");
    error_is($c->post("/api/v1/contacts", { bot_id => uuid() }, key("later")),
        422, "validation_error", "of an unknown agent", ["bot_id"]);
    error_is($c->post("/api/v1/contacts/upsert", { bot_id => uuid(),
        contacts => [{}] }, key("later")), 422, "validation_error",
        "an upsert of an unknown agent", ["bot_id"]);
    error_is($c->post("/api/v1/sequences/start", { template_id => uuid(),
        contact => { emails => ['q@q'] } }, key("later")), 404, "not_found",
        "a start of an unknown template") ;
    my $done = enrollment("stopped_user");
    error_is($c->post("/api/v1/sequences/enrollments/$done/approve", undef,
        key("later")), 409, "conflict", "an approval that is too late");
    is(sql($database, "SELECT status FROM crmapi.enrollment
        WHERE id = '$done'"), "stopped_user", "which changes nothing");
    is(kept(), $before, "none is stored");
    $w->import_objects([{ object => "contact", id => $id, @named }]);
    is(replayed($c->patch($path, { notes => "x" }, key("later"))), "no",
        "the key is free, and the request is done when it can be");
    is($c->get($path)->data->{notes}, "x", "it is");
};

subtest "a replay repeats the answer, not the resource" => sub {
    my $first = $c->post("/api/v1/contacts", { @named, first_name => "A" },
        key("old"));
    my $path = $first->header("Location");
    $c->patch($path, { first_name => "B" });
    replay_is($c->post("/api/v1/contacts", { @named, first_name => "A" },
        key("old")), $first, "after a PATCH");
    is($c->get($path)->data->{first_name}, "B", "which is kept");
    $c->delete($path);
    replay_is($c->post("/api/v1/contacts", { @named, first_name => "A" },
        key("old")), $first, "after a DELETE");
    my $start = { template_id => $template, idempotency_key => "member",
        contact => { emails => ['member@x.example'] } };
    my $started = $c->post("/api/v1/sequences/start", $start);
    my $second = $c->post("/api/v1/sequences/start", $start, key("header"));
    is($second->header("Idempotent-Replayed"), "true",
        "11.2 the member replays as ever");
    change($w, "enrollment", $started->data->{enrollment_id},
        status => "stopped_user");
    my $third = $c->post("/api/v1/sequences/start", $start, key("header"));
    is($third->body, $second->body, "and the header repeats that answer");
    is($c->post("/api/v1/sequences/start", $start)->data->{status},
        "stopped_user", "11.3 where the member shows the present status");
};

subtest "the key is the workspace's" => sub {
    my $other = workspace($httpd, twin => 0);
    my $mine = $c->post("/api/v1/companies", { @named, name => "K" },
        key("shared"));
    my $second = $w->client->with_key($w->make_key("read,write"));
    replay_is($second->post("/api/v1/companies", { @named, name => "K" },
        key("shared")), $mine, "another API key of it");
    my $theirs = $other->client->post("/api/v1/companies", {
        bot_id => $other->agent, name => "K" }, key("shared"));
    status_is($theirs, 201, "another workspace's key is another");
    is(replayed($theirs), "no", "and free");
    isnt($theirs->data->{id}, $mine->data->{id}, "it makes its own company");
};

subtest "while the first is under way: 409, at once" => sub {
    my $id = contact(emails => ['busy@x.example']);
    my $waiting = enrollment("pending_approval");
    my $stranger = workspace($httpd, twin => 0);
    my @cases = (["PATCH", "contacts/$id", { notes => "busy" }],
        ["DELETE", "contacts/$id"],
        ["POST", "contacts/upsert", { @named, contacts => [
            { emails => ['busy@x.example'], notes => "u" }] }],
        ["POST", "sequences/start", { template_id => $template,
            contact => { emails => ['busy@x.example'] } }],
        ["POST", "sequences/enrollments/$waiting/approve"]);
    for my $case (@cases[0, 2, 3, 4, 1]) {
        my ($method, $path, $body) = @$case;
        my $key = "busy-$method-$path";
        my $send = sub { $w->client->request($method, "/api/v1/$path",
            $body ? (json => $body) : (), key($key)) };
        my $let_go = holding($database, "SELECT FROM crmapi.contact
            WHERE id = '$id' FOR UPDATE; SELECT FROM crmapi.enrollment
            WHERE id = '$waiting' FOR UPDATE");
        my $child = CrmTest::Child->start(sub {
            my $r = $send->();
            return $r->status, $r->body;
        });
        wait_blocked($database, 1);
        my $start = time;
        for my $other ([$method, $path, $body],
                ["POST", "companies", { @named, name => "x" }],
                ["POST", "contacts", { first_name => 1 }],
                ["PATCH", "contacts/" . uuid(), {}]) {
            my $r = $c->request($other->[0], "/api/v1/$other->[1]",
                $other->[2] ? (json => $other->[2]) : (), key($key));
            error_is($r, 409, "conflict", "$method $path: $other->[1]");
            is($r->header("Retry-After"), 1, "with Retry-After: 1");
        }
        cmp_ok(time - $start, "<", 5 * busy(), "without waiting");
        is($c->post("/api/v1/companies", { @named, name => "x" },
            key("free-$key"))->status, 201, "another key is free");
        is($stranger->client->post("/api/v1/companies",
            { bot_id => $stranger->agent, name => "x" }, key($key))->status, 201,
            "and so is another workspace's");
        $let_go->();
        my ($status, $text) = $child->result;
        like($status, qr/^20/, "$method $path: the first is done");
        my $r = $send->();
        is($r->body, $text, "then the second has its answer");
        is(replayed($r), "true", "by a replay");
    }
};

subtest "the first is rolled back: the key is free at once" => sub {
    my $id = contact();
    my $send = sub { $w->client->patch("/api/v1/contacts/$id",
        { notes => "again" }, key("rolled-back")) };
    for my $end ("pg_cancel_backend", "pg_terminate_backend") {
        my $let_go = holding($database,
            "SELECT FROM crmapi.contact WHERE id = '$id' FOR UPDATE");
        my $child = CrmTest::Child->start(sub { $send->()->status });
        my ($pid) = wait_blocked($database, 1);
        is($send->()->status, 409, "$end: under way");
        $httpd->expect_log(qr/CRM2001: database: 57/);
        sql($database, "SELECT $end($pid)");
        is(($child->result)[0], 503, "the first fails");
        $let_go->();
        my $r = $send->();
        is($r->status, 200, "the second is done");
        is($c->get("/api/v1/contacts/$id")->data->{notes}, "again", "it is");
        sql($database, "DELETE FROM crmapi.idempotent_answer
            WHERE workspace_id = '" . $w->id . "'");
    }
};

subtest "100 at once with one key: one effect" => sub {
    for my $case (["contacts", { @named, company => "crowd" }, 201, 1],
            ["contacts/upsert", { @named, contacts => [
                map { { company => "crowd upsert" } } 1 .. 3] }, 200, 3]) {
        my ($path, $body, $status, $rows) = @$case;
        my $company = $path =~ /upsert/ ? "crowd upsert" : "crowd";
        my @got = in_processes(10, sub {
            my $client = $w->client;
            return [map { my $r = $client->post("/api/v1/$path", $body,
                key("crowd-$path")); [$r->status, $r->body,
                scalar $r->header("Retry-After"), replayed($r)] } 1 .. 10];
        });
        my @all = map { @$_ } @got;
        is(scalar @all, 100, "$path: 100 requests");
        is(count_rows($w, "contact", "company = '$company'"), $rows,
            "one effect");
        is(scalar(grep { $_->[0] == $status && $_->[3] eq "no" } @all), 1,
            "one is the first");
        my %other = map { $_->[0] == 409 ? "409 after " . ($_->[2] // "?")
            : "$_->[0] $_->[3]" => 1 }
            grep { $_->[0] != $status || $_->[3] ne "no" } @all;
        is_deeply([grep { !/^(?:409 after 1|$status true)$/ } keys %other],
            [], "the others are replays or 409");
        my %bodies = map { $_->[1] => 1 } grep { $_->[0] == $status } @all;
        is(scalar keys %bodies, 1, "and all answers are equal");
    }
    my $id = contact();
    my @got = in_processes(10, sub {
        my ($n) = @_;
        my $client = $w->client;
        return [map { $client->patch("/api/v1/contacts/$id",
            { notes => "$n-$_" }, key("own-$n-$_"))->status } 1 .. 10];
    });
    is(join(" ", keys %{{ map { $_ => 1 } map { @$_ } @got }}), "200",
        "100 PATCHes of a row with keys of their own: none disturbs another");
};

subtest "for 24 hours" => sub {
    my $body = { @named, name => "aged" };
    my $send = sub { $c->post("/api/v1/companies", $body, key("aged")) };
    my $shift = sub { sql($database, "UPDATE crmapi.idempotent_answer
        SET created_at = now() - interval '$_[0]'
        WHERE workspace_id = '" . $w->id . "'") };
    my $first = $send->();
    $shift->("23 hours 59 minutes 50 seconds");
    replay_is($send->(), $first, "before");
    $shift->("24 hours");
    my $second = $send->();
    is(replayed($second), "no", "then the key is new");
    isnt($second->data->{id}, $first->data->{id}, "and the request is done");
    replay_is($send->(), $second, "and replayed");
    $shift->("24 hours");
    status_is($c->post("/api/v1/companies", { @named, name => "other" },
        key("aged")), 201, "for any other request, too");
    is(kept(), sql($database, "SELECT count(DISTINCT key) FROM
        crmapi.idempotent_answer WHERE workspace_id = '" . $w->id . "'"),
        "a key has one row");
};

subtest "upkeep deletes what is older, in batches" => sub {
    my $other = workspace($httpd, twin => 0);
    sql($database, "INSERT INTO crmapi.idempotent_answer
        (workspace_id, key, request, status, body, created_at)
        SELECT '" . $other->id . "', sha256(i::text::bytea), sha256('r'), 200,
            repeat('x', 3000), now() - i * interval '1 minute'
        FROM generate_series(1, 4000) i");
    my $worker = worker(database => $database);
    ok(wait_for(sub { sql($database, "SELECT count(*) FROM
        crmapi.idempotent_answer WHERE workspace_id = '" . $other->id . "'")
        < 1500 }, 30), "crmapid trims");
    is(sql($database, "SELECT count(*) FROM crmapi.idempotent_answer
        WHERE workspace_id = '" . $other->id . "'
          AND created_at <= now() - interval '24 hours 1 minute'"), 0,
        "all that are older than 24 hours");
    cmp_ok(sql($database, "SELECT count(*) FROM crmapi.idempotent_answer
        WHERE workspace_id = '" . $other->id . "'"), ">=", 1438,
        "and no other");
    $worker->stop;
};

subtest "a large answer" => sub {
    my $notes = "lorem ipsum " x 5000;
    my $upsert = { @named, contacts => [map { { notes => "$notes$_" } }
        1 .. 30] };
    my $first = $c->post("/api/v1/contacts/upsert", $upsert, key("large"));
    cmp_ok(length $first->body, ">", 1_800_000, "has almost 2 MB");
    replay_is($c->post("/api/v1/contacts/upsert", $upsert, key("large")),
        $first, "is repeated");
    cmp_ok(sql($database, "SELECT pg_column_size(body) FROM
        crmapi.idempotent_answer WHERE workspace_id = '" . $w->id . "'
        ORDER BY octet_length(body) DESC NULLS LAST LIMIT 1"), "<", 200_000,
        "and stored compressed");
    # contacts that are matched are shown as a whole: more than was sent
    my @mails = map { "big$_\@x.example" } 1 .. 140;
    $w->import_objects([map { { object => "contact", @named,
        emails => [$_], notes => "\x{1F600}" x 16000 } } @mails]);
    my $before = state();
    my $big = { @named, contacts => [map { { emails => [$_],
        job_title => "J" } } @mails] };
    error_is($c->post("/api/v1/contacts/upsert", $big, key("too-large")), 422,
        "validation_error", "over 8 MiB", ["Idempotency-Key"]);
    is(state(), $before, "changes nothing");
    my $r = $c->post("/api/v1/contacts/upsert", $big);
    status_is($r, 200, "without the header");
    cmp_ok(length $r->body, ">", 8 * 1024 * 1024, "it has more");
};

subtest "rights" => sub {
    my ($code, $out, $err) = api_sql($database,
        "DELETE FROM crmapi.idempotent_answer");
    like($err, qr/permission denied/, "the API deletes no answer");
    ok(!eval { postgres()->sql($database, "SELECT FROM
        crmapi.idempotent_answer", $CrmTest::Postgres::WORKER); 1 },
        "the worker reads none");
    is(sql($database, "SELECT count(*) FROM crmapi.idempotent_answer
        WHERE encode(key, 'escape') LIKE '%again%'"), 0,
        "keys are stored as hashes");
};

subtest "a workspace that is deleted leaves nothing, an export has none" => sub {
    my $other = workspace($httpd, twin => 0);
    my $id = $other->id;
    $other->client->post("/api/v1/contacts", { bot_id => $other->agent,
        notes => "in an answer" }, key("gone"));
    my $export = $other->ctl("export", "--workspace", $id);
    is(() = $export =~ /in an answer/g, 1, "the contact is exported, no answer");
    unlike($export, qr/idempoten/i, "and no key");
    $other->ctl("workspace", "delete", $id, "--yes");
    is(sql($database, "SELECT count(*) FROM crmapi.idempotent_answer
        WHERE workspace_id = '$id'"), 0, "then all are gone");
};

subtest "a replay is charged as a write" => sub {
    my $limited = httpd(database => $database,
        conf => "CrmApiReadLimit 0\nCrmApiWriteLimit 3\n");
    my $client = $w->client(port => $limited->port);
    my @left = map { $client->post("/api/v1/companies", { @named,
        name => "charged" }, key("charged"))
        ->header("X-RateLimit-Remaining") } 1 .. 3;
    is("@left", "2 1 0", "each of three");
    error_is($client->post("/api/v1/companies", { @named, name => "charged" },
        key("charged")), 429, "rate_limited", "the fourth is refused");
    $limited->stop;
};

subtest "one round trip (upsert, start: two)" => sub {
    my $proxy = CrmTest::Proxy->new(records => 1);
    my $behind = httpd(children => 1, unlimited => 1, mpm => "prefork",
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n", database => $database,
        conninfo => $proxy->conninfo($database, $CrmTest::Postgres::API));
    my $client = $w->client(port => $behind->port);
    # What records the key's last use, once a minute; what checks the schema,
    # every five seconds; what a new session begins with: another child serves
    # the next connection.
    my $upkeep = qr/SET last_used_at|crmapi\.migration|\ASET array_nulls/;
    $client->get("/api/v1/agents");
    my %two = map { $_ => 2 } "POST /contacts/upsert",
        "POST /contacts/upsert of nothing", "POST /sequences/start",
        "POST /approve", "POST /stop", "POST /companies/upsert", "POST /merge";
    for (my $i = 0; $i < @KINDS; $i += 2) {
        my ($name, $request) = @KINDS[$i, $i + 1];
        my @requests = map { [$request->()] } 1, 2;
        my $send = sub {
            my ($method, $path, $body) = @{$_[0]};
            $proxy->recorded;
            my $r = $client->request($method, "/api/v1$path",
                defined $body ? (json => $body) : (), @_[1 .. $#_]);
            like($r->status, qr/^2/, "$name: done") or diag($r->text);
            return $proxy->recorded($upkeep);
        };
        my $trips = $two{$name} || 1;
        my ($plain, @texts) = $send->($requests[0]);
        is($plain, $name =~ /nothing$/ && $trips == 2 ? 1 : $trips,
            "$name without a key") or diag($proxy->trips);
        is(join("\n", grep { /crmapi\W+idempoten/ } @texts), "",
            "whose statements know of none");
        cmp_ok(scalar @texts, ">", 0, "and are recorded")
            if $name !~ /known/;        # that statement is prepared already
        my ($with, @more) = $send->($requests[1], key("trip$i"));
        is($with, $trips, "$name with a key");
        ok(scalar(grep { /crmapi\W+idempoten/ } @more), "whose statements do")
            if $i == 0;
        my ($again) = $send->($requests[1], key("trip$i"));
        cmp_ok($again, "<=", $trips, "$name again");
    }
    $behind->stop;
    $proxy->stop;
};

$httpd->stop;
done_testing;
