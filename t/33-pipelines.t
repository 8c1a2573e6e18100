# SPDX-License-Identifier: Apache-2.0
# 33-pipelines.t: pipelines, stages, cards (specification: Pipelines, stages,
# cards; contract 7.10, 8, 9.8)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

# A second pipeline of two stages for W, of an agent of its own. Returns
# (agent, pipeline, stage, stage).
sub second_pipeline {
    my ($w) = @_;
    my @ids = map { uuid() } 1 .. 4;
    $w->import_objects([
        { object => "agent", id => $ids[0], name => "Second" },
        { object => "pipeline", id => $ids[1], bot_id => $ids[0],
            name => "Second", created_at => "2020-01-01T00:00:00.000Z" },
        map { { object => "pipeline_stage", id => $ids[2 + $_],
            bot_id => $ids[0], pipeline_id => $ids[1], name => "S$_",
            color => "#000000", order_index => $_ } } 0, 1]);
    return @ids;
}

subtest "spec Pipeline: every field, every parameter" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my %times = (created_at => "2026-01-02T03:04:05.006Z",
        updated_at => "2026-01-03T03:04:05.007Z");
    my ($id) = $w->import_objects([{ object => "pipeline", bot_id => $agent,
        name => "Ö\"", is_private => true, is_default => false, %times }]);
    my $first = pipeline_of($w, name => "Sales", is_default => true);
    my $second = pipeline_of($w, id => $id, bot_id => $agent, name => "Ö\"",
        is_private => true, %times);
    list_is($c->get("/api/v1/pipelines"), [$first, $second],
        "7.10 the newest first");
    list_is($c->get("/api/v1/pipelines", query => { bot_id => $agent }),
        [$second], "bot_id");
    list_is($c->get("/api/v1/pipelines", query => { bot_id => $_ }), [],
        "6.8 bot_id=$_") for uuid(), $id, "x", $w->twin_of($agent);
    error_is($c->get("/api/v1/pipelines", query => "bot_id="), 422,
        "validation_error", "7.3 bot_id=", ["bot_id"]);
    my $r = $c->get("/api/v1/pipelines", query => { page => 2,
        page_size => 1 });
    value_is($r->json, { data => [$second], pagination => page_of(2, 2, 1) },
        "page 2");
    for my $method (qw(POST PATCH DELETE)) {
        error_is($c->request($method, "/api/v1/pipelines", body => "{}"), 405,
            "method_not_allowed", "read-only: $method");
    }
    error_is($c->get("/api/v1/pipelines/$id"), 404, "not_found",
        "there is no GET of one");
};

subtest "spec Pipeline stage: sorted by order_index, no pagination" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @names = ("New", "Talking", "Won");
    my @colors = ("#aabbcc", "#ddeeff", "#00aa00");
    my @whole = map { stage_of($w, id => ($w->stages)[$_],
        name => $names[$_], color => $colors[$_], order_index => $_) } 0 .. 2;
    my $path = "/api/v1/pipelines/" . $w->pipeline . "/stages";
    records_are($c->get($path), \@whole, "data and nothing else");
    records_are($c->get($path, query => "page=2&page_size=1"), \@whole,
        "never paged");
    my (undef, $pipeline, @stages) = second_pipeline($w);
    is_deeply($c->get("/api/v1/pipelines/$pipeline/stages")->ids, \@stages,
        "another pipeline's");
    records_are($c->get($path), \@whole, "each pipeline has its own");
    my ($between) = $w->import_objects([{ object => "pipeline_stage",
        bot_id => $w->agent, pipeline_id => $w->pipeline, name => "Between",
        color => "#010203", order_index => 1 }]);
    is_deeply($c->get($path)->ids, [$whole[0]{id}, $whole[1]{id}, $between,
        $whole[2]{id}], "7.10 equal positions have an order, too");
    my ($empty) = $w->import_objects([{ object => "pipeline",
        bot_id => $w->agent, name => "Empty" }]);
    records_are($c->get("/api/v1/pipelines/$empty/stages"), [],
        "a pipeline without stages");
    error_is($c->get("/api/v1/pipelines/$_/stages"), 404, "not_found",
        "7.9 stages of $_") for uuid(), "x", $w->twin_of($w->pipeline),
        ($w->stages)[0];
};

subtest "spec Pipeline card: create, get" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $stage = ($w->stages)[1];
    my $contact = $w->contact->{id};
    my $r = $c->post("/api/v1/pipeline-cards", { pipeline_stage_id => $stage,
        title => "Deal", contact_id => $contact, description => "d\n",
        tags => ["hot", "Ö"], order_index => 7 });
    record_is($r, card_of(pipeline_stage_id => $stage, title => "Deal",
        contact_id => $contact, description => "d\n", tags => ["hot", "Ö"],
        order_index => 7), "8: 201 with all of it", 201);
    my $full = $r->data;
    is($r->header("Location"), "/api/v1/pipeline-cards/$full->{id}",
        "5.4 Location");
    record_is($c->get("/api/v1/pipeline-cards/$full->{id}"), $full, "GET");
    $r = $c->post("/api/v1/pipeline-cards", { pipeline_stage_id => $stage,
        title => "Bare" });
    record_is($r, card_of(pipeline_stage_id => $stage, title => "Bare",
        order_index => 8), "9.8 the highest in the stage and 1", 201);
    my $bare = $r->data;
    $r = $c->post("/api/v1/pipeline-cards", { title => "Null",
        pipeline_stage_id => ($w->stages)[0], contact_id => undef,
        description => undef, tags => undef, order_index => undef });
    record_is($r, card_of(pipeline_stage_id => ($w->stages)[0],
        title => "Null"), "6.5 null is absent; 0 in an empty stage", 201);
    list_is($c->get("/api/v1/pipeline-cards"), [$r->data, $full, $bare],
        "7.10 by stage, then by position");
    for my $case ([{}, "pipeline_stage_id", "title"],
            [{ title => "x" }, "pipeline_stage_id"],
            [{ pipeline_stage_id => $stage }, "title"],
            [{ pipeline_stage_id => $stage, title => "" }, "title"],
            [{ pipeline_stage_id => $stage, title => " \t" }, "title"],
            [{ pipeline_stage_id => uuid(), title => "x" },
                "pipeline_stage_id"],
            [{ pipeline_stage_id => $w->pipeline, title => "x" },
                "pipeline_stage_id"],
            [{ pipeline_stage_id => $w->twin_of($stage), title => "x" },
                "pipeline_stage_id"],
            [{ pipeline_stage_id => $stage, title => "x",
                contact_id => uuid() }, "contact_id"],
            [{ pipeline_stage_id => uuid(), title => 1, contact_id => "x",
                order_index => 1.5, tags => "x", archived_at => "x",
                bot_id => $w->agent }, "bot_id", "contact_id",
                "order_index", "pipeline_stage_id", "tags", "title"],
            ) {
        my ($body, @fields) = @$case;
        error_is($c->post("/api/v1/pipeline-cards", $body), 422,
            "validation_error", "refused: @fields", \@fields);
    }
    record_is($c->post("/api/v1/pipeline-cards", undef, body =>
        qq({"title":"x","pipeline_stage_id":"$stage","order_index":3.0,)
        . qq("archived_at":"2026-01-01T00:00:00Z"})),
        card_of(pipeline_stage_id => $stage, title => "x", order_index => 3),
        "6.4 integers accept 3.0; archived_at is no member of a create", 201);
    is(total_of($c, "/pipeline-cards"), 4, "refused ones are not counted");
};

subtest "spec PATCH a card: any of its members" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $contact = $w->contact->{id};
    my $whole = $c->post("/api/v1/pipeline-cards", { title => "Deal",
        pipeline_stage_id => ($w->stages)[0] })->data;
    my $path = "/api/v1/pipeline-cards/$whole->{id}";
    for my $case (["title", "New"], ["description", "d"],
            ["description", undef], ["tags", ["a"]], ["tags", undef, []],
            ["contact_id", $contact], ["contact_id", undef],
            ["order_index", 5], ["order_index", 0],
            ["archived_at", "2026-01-02T03:04:05.678Z"],
            ["archived_at", "2026-01-02T03:04:05+02:00",
                "2026-01-02T01:04:05.000Z"], ["archived_at", undef]) {
        my ($field, $value) = @$case;
        my $before = $whole->{updated_at};
        my $r = $c->patch($path, { $field => $value });
        record_is($r, { %$whole, $field => $case->[-1], updated_at =>
            sub { $_[0] gt $before } }, "$field, and nothing else");
        $whole = $r->data;
    }
    record_is($c->patch($path, {}), $whole, "6.5 {} changes nothing");
    record_is($c->patch($path, $whole), $whole, "6.2 nor what GET gave");
    for my $case ([title => undef], [title => ""], [title => "\x{a0}\x{200b}"],
            [pipeline_stage_id => undef], [pipeline_stage_id => ""],
            [pipeline_stage_id => uuid()], [order_index => undef],
            [order_index => -1], [order_index => "1"],
            [contact_id => uuid()], [contact_id => ""],
            [contact_id => ($w->stages)[0]], [archived_at => "yesterday"],
            [archived_at => true], [pipeline_id => $w->pipeline]) {
        my ($field, $value) = @$case;
        error_is($c->patch($path, { $field => $value }), 422,
            "validation_error", "6.5 refused: $field", [$field]);
    }
    record_is($c->get($path), $whole, "refused ones changed nothing");
};

subtest "9.8 positions and moves" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($from, $to) = $w->stages;
    my (undef, undef, $far) = second_pipeline($w);
    my $add = sub {
        my ($stage, %more) = @_;
        return $c->post("/api/v1/pipeline-cards", { title => "T",
            pipeline_stage_id => $stage, %more })->data;
    };
    my @cards = map { $add->($from) } 0 .. 4;
    is_deeply([map { $_->{order_index} } @cards], [0 .. 4],
        "each at the end");
    $add->($to, order_index => 41);
    my $path = "/api/v1/pipeline-cards/$cards[1]{id}";
    my $r = $c->patch($path, { pipeline_stage_id => $to });
    record_is($r, { %{$cards[1]}, pipeline_stage_id => $to,
        order_index => 42, updated_at => $TIME },
        "a move without order_index goes to the end: same card, new stage");
    record_is($c->patch($path, { pipeline_stage_id => $to }), $r->data,
        "to where it is: nothing changes");
    list_is($c->get("/api/v1/pipeline-cards",
        query => { pipeline_stage_id => $from }), [@cards[0, 2, 3, 4]],
        "others are not renumbered");
    record_is($c->patch($path, { pipeline_stage_id => $from,
        order_index => 1, title => "Back" }), { %{$cards[1]},
        title => "Back", updated_at => $TIME },
        "a move with order_index goes there");
    record_is($c->patch($path, { pipeline_stage_id => $far }),
        { %{$cards[1]}, title => "Back", pipeline_stage_id => $far,
            order_index => 0, updated_at => $TIME },
        "to an empty stage of another pipeline: 0");
    error_is($c->patch($path, { pipeline_stage_id => $w->twin_of($to) }), 422,
        "validation_error", "not to another workspace's",
        ["pipeline_stage_id"]);
    is($add->($from, order_index => 2)->{order_index}, 2,
        "a position that is taken may be taken again");
    is($add->($from)->{order_index}, 5, "and the end is behind the highest");
    $c->patch("/api/v1/pipeline-cards/$cards[4]{id}",
        { archived_at => "2026-01-01" });
    is($add->($from)->{order_index}, 6, "archived ones keep their place");
    $c->delete("/api/v1/pipeline-cards/$cards[0]{id}");
    is($add->($from)->{order_index}, 7, "holes are not filled");
};

subtest "spec Pipeline card states: archived and back" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @cards = map { $c->post("/api/v1/pipeline-cards", { title => "T$_",
        pipeline_stage_id => ($w->stages)[0] })->data } 0 .. 2;
    my $path = "/api/v1/pipeline-cards/$cards[1]{id}";
    my $gone = $c->patch($path,
        { archived_at => "2026-05-05T00:00:00Z" })->data;
    list_is($c->get("/api/v1/pipeline-cards"), [@cards[0, 2]],
        "by default archived ones are not listed, nor counted");
    list_is($c->get("/api/v1/pipeline-cards",
        query => { include_archived => $_ }), [@cards[0, 2]],
        "include_archived=$_") for "false", "0";
    list_is($c->get("/api/v1/pipeline-cards",
        query => { include_archived => $_ }), [$cards[0], $gone, $cards[2]],
        "include_archived=$_") for "true", "1", "TRUE";
    record_is($c->get($path), $gone, "GET shows it");
    $c->patch($path, { archived_at => "2027-05-05T00:00:00Z" });
    is(total_of($c, "/pipeline-cards"), 2, "another time is no second one");
    $cards[1] = $c->patch($path, { archived_at => undef })->data;
    is($cards[1]{archived_at}, undef, "null: active");
    list_is($c->get("/api/v1/pipeline-cards"), \@cards, "listed again");
    my $r = $c->delete($path);
    is($r->status, 204, "DELETE is for good");
    is($r->body, "", "without a body");
    error_is($c->get($path), 404, "not_found", "then GET");
    error_is($c->patch($path, {}), 404, "not_found", "then PATCH");
    error_is($c->delete($path), 404, "not_found", "8.1 a second DELETE");
    $c->patch("/api/v1/pipeline-cards/$cards[0]{id}",
        { archived_at => "2026-05-05" });
    is($c->delete("/api/v1/pipeline-cards/$cards[0]{id}")->status, 204,
        "an archived one is deleted as well");
    is(total_of($c, "/pipeline-cards"), 1, "the total is right");
    is(total_of($c, "/pipeline-cards", include_archived => "true"), 1,
        "with archived ones, too");
};

subtest "spec /pipeline-cards: query parameters; 7.10, 9.8" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent, $pipeline, @stages) = second_pipeline($w);
    my ($contact) = map { $w->contact->{id} } 1;
    my $add = sub { $c->post("/api/v1/pipeline-cards", { title => "T",
        pipeline_stage_id => $_[0], @_[1 .. $#_] })->data };
    # the second pipeline is older: its cards come first (7.10)
    my $d = $add->(($w->stages)[1], order_index => 3);
    my $c3 = $add->(($w->stages)[1], order_index => 1);
    my $e = $add->(($w->stages)[2], contact_id => $contact);
    my $b = $add->($stages[1]);
    my $a = $add->($stages[0], contact_id => $contact);
    my $c4 = $add->(($w->stages)[1], order_index => 1);
    my $f = $c->patch("/api/v1/pipeline-cards/" . $add->(($w->stages)[2])
        ->{id}, { archived_at => "2026-01-01" })->data;
    for my $case (["", $a, $b, $c3, $c4, $d, $e],
            ["include_archived=true", $a, $b, $c3, $c4, $d, $e, $f],
            ["pipeline_id=$pipeline", $a, $b],
            ["pipeline_id=" . $w->pipeline, $c3, $c4, $d, $e],
            ["pipeline_id=" . $w->pipeline . "&include_archived=1", $c3, $c4,
                $d, $e, $f],
            ["pipeline_stage_id=" . ($w->stages)[1], $c3, $c4, $d],
            ["bot_id=$agent", $a, $b], ["contact_id=$contact", $a, $e],
            ["contact_id=$contact&bot_id=$agent&pipeline_id=$pipeline"
                . "&pipeline_stage_id=$stages[0]&include_archived=true", $a],
            ["pipeline_id=$pipeline&pipeline_stage_id=" . ($w->stages)[0]],
            map({ ["$_=" . uuid()] } qw(pipeline_id pipeline_stage_id bot_id
                contact_id)), ["pipeline_id=x"],
            ["pipeline_id=" . $w->twin_of($pipeline)]) {
        my ($query, @wanted) = @$case;
        list_is($c->get("/api/v1/pipeline-cards", query => $query),
            \@wanted, "pipeline-cards?$query");
    }
    my $r = $c->get("/api/v1/pipeline-cards", query => "page=2&page_size=4");
    value_is($r->json, { data => [$d, $e], pagination => page_of(6, 2, 4) },
        "page 2");
    error_is($c->get("/api/v1/pipeline-cards", query => "include_archived=x"
        . "&contact_id="), 422, "validation_error", "7.3",
        ["contact_id", "include_archived"]);
};

subtest "9.8 20 creates at once: 20 positions" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $stage = ($w->stages)[0];
    my @got = in_processes(20, sub {
        my ($n) = @_;
        my $r = $w->client->post("/api/v1/pipeline-cards",
            { title => "T$n", pipeline_stage_id => $stage });
        return [$r->status, $r->data->{order_index}];
    });
    is_deeply([sort { $a <=> $b } map { $_->[1] } @got], [0 .. 19],
        "each position once, none left out");
    is_deeply([grep { $_->[0] != 201 } @got], [], "all are 201");
    my $r = $c->get("/api/v1/pipeline-cards");
    is($r->json->{pagination}{total}, 20, "the total is right");
    is_deeply([map { $_->{order_index} } @{$r->data}], [0 .. 19],
        "and the order");
};

subtest "9.8 moves and creates at once: nothing lost, no deadlock" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @stages = $w->stages;
    my @cards = map { $c->post("/api/v1/pipeline-cards", { title => "T$_",
        pipeline_stage_id => $stages[$_ % 3] })->data->{id} } 0 .. 11;
    my @got = in_processes(6, sub {
        my ($n) = @_;
        my $own = $w->client;
        my %count;
        for my $i (0 .. 11) {
            my $card = $cards[$n % 2 ? $i : 11 - $i];
            $count{$own->patch("/api/v1/pipeline-cards/$card",
                { pipeline_stage_id => $stages[($i + $n) % 3] })->status}++;
            $count{$own->post("/api/v1/pipeline-cards", { title => "N$n",
                pipeline_stage_id => $stages[$i % 3] })->status}++;
        }
        return \%count;
    });
    is_deeply(\@got, [({ 200 => 12, 201 => 12 }) x 6], "all succeed");
    is(total_of($c, "/pipeline-cards"), 12 + 72, "none is lost or doubled");
    is(sql($database, "SELECT count(*) FROM (SELECT FROM crmapi.pipeline_card"
        . " WHERE workspace_id = '" . $w->id . "' GROUP BY pipeline_stage_id,"
        . " order_index HAVING count(*) > 1) x") + 0, 0,
        "no two at the end of a stage have one position");
};

$httpd->stop;
done_testing;
