# SPDX-License-Identifier: Apache-2.0
# 30-agents.t: agents (specification: Agent, Agents; contract 7, 9)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

# Every field of the table, none of them as it is by itself.
my %FULL = (name => "Ada Lovelace", slug => "ada-l", summary => "Zählt",
    is_agent => false, enabled => false, public => true,
    agent_role => "support", agent_type => "both", agent_status => "ready",
    agent_color => "#123abc", agent_email => "ada\@in.example",
    agent_phone => "+15550100", chat_greeting => "Hi\nthere",
    chat_avatar_intro => "I count", phone_greeting => "Hello?",
    chat_avatar_image_url => "https://x.example/a.png?s=1&t=2",
    phone_voice_id => "voice-7", text_greeting => "txt",
    email_inbound => true, email_outbound_autoreply => false,
    email_outbound_email => "out\@x.example", email_outbound_name => "Ada",
    booking_provider => "calcom", enabled_event_type_ids => ["12", "a\"b"],
    allow_human_takeover => true, escalation_detection_enabled => true,
    sentiment_analysis_enabled => true, knowledge_count => 1250.5,
    number_of_conversations => 7, popular_topics => ["prices", "Öl", ""],
    created_at => "2026-01-02T03:04:05.678Z");

subtest "spec Agent: every field, 9.3" => sub {
    my $w = workspace($httpd, seed => 0);
    my $c = $w->client;
    my ($full, $bare) = $w->import_objects([
        { object => "agent", %FULL },
        { object => "agent", created_at => "2026-01-01T00:00:00.000Z" }]);
    my $first = agent_of($w, %FULL, id => $full);
    my $second = agent_of($w, id => $bare,
        created_at => "2026-01-01T00:00:00.000Z");

    record_is($c->get("/api/v1/agents/$full"), $first, "all of them set");
    record_is($c->get("/api/v1/agents/$bare"), $second,
        "9.3 all of them there where nothing is set");
    list_is($c->get("/api/v1/agents"), [$first, $second],
        "7.10 the list shows the same, the newest first");
    list_is($c->get("/api/v1/agents/"), [$first, $second],
        "5.2 with a slash at the end");
    for my $secret (qw(internal_personality external_personality
            custom_escalation_prompt match_threshold match_count slack_token
            email_api_key)) {
        unlike($c->get("/api/v1/agents/$full")->body, qr/$secret/,
            "spec: no $secret");
    }
};

subtest "spec Agent: values at the edges" => sub {
    my $w = workspace($httpd, seed => 0);
    my $c = $w->client;
    for my $case (
        ["an empty text is not null", name => ""],
        ["an empty list is not null", enabled_event_type_ids => []],
        ["an empty list is not null", popular_topics => []],
        ["false is not null", email_inbound => false],
        ["true is not null", email_outbound_autoreply => true],
        ["a large number", knowledge_count => 999999999999999],
        ["a number with decimals", number_of_conversations => 0.0001],
        ["a list's texts are kept", popular_topics => ["{", "}", ",", "\\",
            "NULL", " a ", "\"", "\x{1F600}", "x\ny"]],
        map({ ["agent_type $_", agent_type => $_] }
            qw(internal external both)),
    ) {
        my ($name, $field, $value) = @$case;
        my ($id) = $w->import_objects([{ object => "agent",
            $field => $value }]);
        record_is($c->get("/api/v1/agents/$id"), agent_of($w, id => $id,
            $field => $value), "$field: $name");
    }
};

subtest "spec Agents: query parameters" => sub {
    my $w = workspace($httpd, seed => 0);
    my $c = $w->client;
    my @rows = (
        { name => "Ann", slug => "ann", summary => "sells ÄPFEL",
            agent_type => "internal" },
        { name => "Bob", slug => "bob-ann", summary => undef,
            agent_type => "external", is_agent => false },
        { name => undef, slug => "C-1", summary => "Speaks to Ann",
            agent_type => "both", enabled => false },
        { name => "Dee", agent_type => undef },
    );
    my $day = 10;
    my @ids = $w->import_objects([map { { object => "agent", %$_,
        created_at => "2026-01-" . $day++ . "T00:00:00.000Z" } } @rows]);
    $day = 10;
    my @whole = map { agent_of($w, %{$rows[$_]}, id => $ids[$_],
        created_at => "2026-01-" . $day++ . "T00:00:00.000Z") } 0 .. $#rows;

    for my $case (
        ["search=ann", 2, 1, 0], ["search=ANN", 2, 1, 0],
        ["search=äpfel", 0], ["search=c-1", 2], ["search=nobody"],
        ["search=", 3, 2, 1, 0],
        ["slug=ann", 0], ["slug=bob-ann", 1], ["slug=Ann"], ["slug=C-1", 2],
        ["slug=c-1"], ["slug=bob"],
        ["is_agent=true", 3, 2, 0], ["is_agent=false", 1],
        ["is_agent=1", 3, 2, 0], ["is_agent=FALSE", 1],
        ["enabled=true", 3, 1, 0], ["enabled=0", 2],
        ["agent_type=internal", 0], ["agent_type=external", 1],
        ["agent_type=both", 2],
        ["search=ann&enabled=true", 1, 0],
        ["search=ann&is_agent=true&enabled=true&slug=ann"
            . "&agent_type=internal", 0],
        ["slug=ann&agent_type=both"],
    ) {
        my ($query, @wanted) = @$case;
        list_is($c->get("/api/v1/agents", query => $query),
            [@whole[@wanted]], "agents?$query");
    }
    for my $page (1 .. 4) {
        my $r = $c->get("/api/v1/agents",
            query => { page => $page, page_size => 2 });
        value_is($r->json, { data => [@whole[$page == 1 ? (3, 2)
            : $page == 2 ? (1, 0) : ()]], pagination => page_of(4, $page, 2) },
            "7.2 page $page of two");
    }
    for my $case (["agent_type=INTERNAL", "agent_type"],
            ["agent_type=none", "agent_type"], ["is_agent=yes", "is_agent"],
            ["enabled=", "enabled"], ["slug=", "slug"],
            ["page_size=101", "page_size"], ["page_size=0", "page_size"],
            ["page=0", "page"], ["page=x", "page"],
            ["page=1&page=1", "page"], ["slug=a&slug=b", "slug"],
            ["agent_type=x&enabled=x&page=-1", "agent_type", "enabled",
                "page"]) {
        my ($query, @fields) = @$case;
        error_is($c->get("/api/v1/agents", query => $query), 422,
            "validation_error", "7 agents?$query", \@fields);
    }
};

subtest "read-only: no other method" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    for my $path ("/agents", "/agents/" . $w->agent) {
        for my $method (qw(POST PATCH PUT DELETE)) {
            my $r = $c->request($method, "/api/v1$path", body => "{}");
            error_is($r, 405, "method_not_allowed", "$method $path");
            is($r->header("Allow"), "GET, HEAD, OPTIONS", "5.1 Allow");
        }
    }
    error_is($c->get("/api/v1/agents/" . uuid()), 404, "not_found",
        "an unknown one");
    error_is($c->get("/api/v1/agents/x"), 404, "not_found", "a malformed id");
    record_is($c->get("/api/v1/agents/" . uc $w->agent),
        agent_of($w, name => "Ada", slug => "ada",
            summary => "answers first", agent_type => "external"),
        "an id in capitals is the same id");
};

subtest "totals of agents follow what is there" => sub {
    my $w = workspace($httpd, seed => 0);
    my $c = $w->client;
    list_is($c->get("/api/v1/agents"), [], "7.2 none: total_pages 0");
    $w->import_objects([map { { object => "agent", name => "A$_" } }
        1 .. 130]);
    my %seen;
    for my $page (1 .. 3) {
        my $r = $c->get("/api/v1/agents",
            query => { page => $page, page_size => 50 });
        value_is($r->json->{pagination}, page_of(130, $page, 50),
            "page $page of 130");
        $seen{$_}++ for @{$r->ids};
    }
    is(scalar keys %seen, 130, "7.10 pages show each exactly once");
    is_deeply([grep { $_ != 1 } values %seen], [], "and none twice");
};

$httpd->stop;
done_testing;
