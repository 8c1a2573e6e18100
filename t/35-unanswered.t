# SPDX-License-Identifier: Apache-2.0
# 35-unanswered.t: the filters assigned and unanswered of conversations: what waits for
# us, whatever was said by whom
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Mcp;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1,
    conf => "CrmApiMcp On\n");
my $w = workspace($httpd);
my $c = $w->client;
my $path = "/api/v1/conversations";
my $token = $w->token("all");
my $count = 0;

# Bring an event on CHANNEL with MEMBERS; the id of its conversation.
sub bring {
    my ($channel, %members) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $n = ++$count;
    my $r = $httpd->client(key => $token)->post("/crmapi/intake/v1/events",
        { event_id => "e-$n", channel => $channel, bot_id => $w->agent,
        from => { phone_number => sprintf "+4930%06d", $n },
        message => { content => "No. $n" }, %members });
    status_is($r, 200, "an event") or return;
    is_deeply($r->data->{errors}, [], "is taken") or return;
    return $r->data->{accepted}[0]{conversation_id};
}

# The ids that the list has with QUERY, of IDS.
sub listed {
    my ($query, @ids) = @_;
    return $c->get($path, query => { %$query, ids => join ",", @ids })->ids;
}
sub waits { return scalar @{listed({ unanswered => "true" }, @_)} }

# What the participant, or who is named, says in turn, by letters, and whether the
# conversation waits then: w(aits) or n(ot).
my %says = (
    u => {},
    s => { message => { role => "system", content => "joined" } },
    t => { direction => "outbound", message => { role => "tool",
        content => "", tool_used => "search" } },
    l => { direction => "outbound", message => { role => "assistant",
        content => "I look", tool_used => "search" } },
    a => { direction => "outbound", message => { content => "Yes" } },
    h => { direction => "outbound", message => { role => "human",
        content => "Yes" } },
    o => { occurred_at => "2026-01-01T00:00:00Z" },
    p => { direction => "outbound", occurred_at => "2026-01-01T00:00:00Z",
        message => { content => "before" } },
    x => { message => { content => "STOP" } },
    g => { message => { content => "START" } },
    e => { call => { ended => \1 }, message => undef },
);
for my $case (["text", "u", "w"], ["text", "ua", "wn"], ["text", "uh", "wn"],
        ["text", "usth", "wwwn"], ["text", "ulua", "wwwn"], ["text", "up", "ww"],
        ["text", "uao", "wnn"], ["text", "uau", "wnw"], ["text", "x", "n"],
        ["text", "ux", "ww"], ["text", "xg", "nn"], ["text", "xgu", "nnw"],
        ["chat", "uu", "ww"], ["chat", "ue", "ww"], ["form", "u", "w"],
        ["email", "uh", "wn"], ["phone", "u", "n"], ["phone", "uau", "nnn"]) {
    my ($channel, $turns, $want) = @$case;
    my ($talk, $is) = (undef, "");
    my $from = { $channel eq "email" ? (email => "p$count\@x.example")
        : (phone_number => sprintf "+4931%06d", $count) };
    for my $turn (split //, $turns) {
        my %event = (from => $from, %{$says{$turn}});
        delete $event{from} if $event{direction};
        $event{to} = $from if $event{direction};
        delete $event{message} if exists $event{message} && !$event{message};
        $event{conversation} = { id => $talk } if $talk;
        $talk = bring($channel, %event);
        $is .= waits($talk) ? "w" : "n";
    }
    is($is, $want, "$channel: $turns");
}

subtest "an answer of ours, and a step of a sequence" => sub {
    my $talk = bring("chat", from => { visitor_id => "v-1" });
    ok(waits($talk), "it waits");
    $w->answer($talk, "Yes");
    ok(!waits($talk), "it does not");
    bring("chat", from => { visitor_id => "v-1" }, conversation => { id => $talk });
    ok(waits($talk), "it does again");
    status_is($c->patch("$path/$talk", { active => \0, archived => \1 }), 200,
        "is closed");
    ok(waits($talk), "whatever else is done with it");
    is_deeply(listed({ unanswered => "true", active => "true" }, $talk), [],
        "which other filters say");

    my $enrollment = $w->start($w->template([{ email_subject => "S",
        email_body => "B", delay => "1h" }]), auto_approve => \1,
        contact => { emails => ["step\@x.example"] })->{enrollment_id};
    worker(database => $database)->once;        # makes the step, due in an hour
    my $step = sql($database, "SELECT id FROM crmapi.enrollment_step"
        . " WHERE enrollment_id = '$enrollment'");
    my $send = sub { sql($database, "SELECT crmapi.step_message(workspace_id,"
        . " '$talk', id, now() $_[0]) FROM crmapi.enrollment_step"
        . " WHERE id = '$step'") };
    $send->("- interval '1 day'");
    ok(waits($talk), "a step that was sent before is no answer");
    $send->("");
    ok(!waits($talk), "a step is one");
};

subtest "who asks for it is shown a row's subject, and whether it waits" => sub {
    $w->log_on;
    my $talk = bring("email", from => { email => "ann\@x.org", name => "Ann" },
        conversation => { subject => "A chair" });
    my $there = "$path/$talk";
    my %all = (include => "subject,unanswered");
    my $plain = $c->get($there)->data;
    ok(!(grep { exists $plain->{$_} } qw(subject unanswered)), "nobody else");
    my $row = $c->get($there, query => \%all)->data;
    is_deeply($row, { %$plain, subject => "A chair", unanswered => true },
        "as it came");
    for ($path, "/api/v1/contacts/$row->{contact_id}/conversations") {
        is_deeply($c->get($_, query => { ids => $talk, %all })->data, [$row],
            "the same in $_");
    }
    my ($made, $told) = map { $_->{data} } grep { $_->{data}{id} eq $talk }
        @{$c->get("/api/v1/events",
            query => "type=conversation.created,conversation.updated")->data};
    is_deeply($told, $plain, "an event shows what a GET shows");
    my @who = qw(contact_id email human);
    is_deeply([@{$made}{@who}], [@{$row}{@who}],
        "that of its beginning says who it is with");
    record_is($c->patch($there, { %$row, unanswered => false }), $plain,
        "what was read is taken back, with the mark that it needs no answer");
    is(waits($talk), 0, "it waits no longer");
    error_is($c->patch($there, { unanswered => undef }), 422, "validation_error",
        "6.5 it is never null", ["unanswered"]);
    bring("email", from => { email => "ann\@x.org" }, conversation => { id => $talk });
    is($c->get($there, query => \%all)->data->{unanswered}, true,
        "the next message waits again");
    my $contact = $w->start($w->template([{ email_subject => "Hello",
        email_body => "B" }]), auto_approve => true,
        contact => { emails => ["new\@x.example"] })->{contact_id};
    worker(database => $database)->once;
    my $begun;
    # others of this PostgreSQL may hold the end of the log back
    wait_for(sub { ($begun) = map { $_->{data} }
        grep { ($_->{data}{contact_id} // "") eq $contact } @{$c->get("/api/v1/events",
            query => "type=conversation.created")->data} }, 60);
    is($begun->{email}, "new\@x.example", "one that a sequence begins, too");
    is($c->get("$path/$begun->{id}", query => \%all)->data->{subject}, "Hello",
        "it has the subject of its first mail");
};

subtest "nobody's" => sub {
    my ($mine, $free) = map { bring("text") } 1, 2;
    $c->patch("$path/$mine", { assigned_to => "ann" });
    my @both = ($mine, $free);
    is_deeply(listed({ assigned => "false" }, @both), [$free], "of nobody");
    is_deeply(listed({ assigned => "true" }, @both), [$mine], "of somebody");
    is_deeply(listed({ assigned => "false", unanswered => "true",
        type => "text", active => 1 }, @both), [$free], "beside others");
    $c->patch("$path/$mine", { assigned_to => undef });
    is_deeply(listed({ assigned => "false" }, @both), [$free, $mine],
        "given back");
    my $contact = $c->get("$path/$free")->data->{contact_id};
    is_deeply($c->get("/api/v1/contacts/$contact/conversations",
        query => "assigned=false&unanswered=true")->ids, [$free],
        "a contact's");
    error_is($c->get("$path?assigned=&unanswered=&assigned=1"), 422,
        "validation_error", "empty, twice", [qw(assigned unanswered assigned)]);
};

subtest "nothing of others" => sub {
    my $twin = $httpd->client(key => $w->twin->make_key("read,write"),
        headers => { "X-Crm-Twin" => 1 });
    my %theirs = map { $_ => 1 } @{$twin->get("$path?page_size=100")->ids};
    for my $query ("assigned=false", "unanswered=true") {
        my $ids = $c->get("$path?$query&page_size=100")->ids;
        cmp_ok(scalar @$ids, ">", 0, "$query: some");
        is(scalar(grep { $theirs{$_} } @$ids), 0, "none of theirs");
    }
};

subtest "the tool takes them" => sub {
    my ($said) = CrmTest::Mcp->new($c)->tool("conversations_list",
        { assigned => \0, unanswered => \1 });
    ok(@{$said->{data}}, "rows") or diag(explain($said));
};

$httpd->stop;
done_testing;
