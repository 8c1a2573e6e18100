# SPDX-License-Identifier: Apache-2.0
# 35-conversations.t: conversations and messages (specification:
# Conversations, Conversation flags; contract 6.7, 7, 8.1, 9.7)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

my %FULL = (type => 2, email => "Who\@x.example", phone_number => "+15550100",
    human => "Zoë", human_takeover => true, assigned_to => "user-1",
    assigned_at => "2026-01-01T00:00:01.001Z", active => false,
    archived => true, archived_at => "2026-01-01T00:00:02.002Z",
    deleted => false, deleted_at => undef, internal => true,
    internal_notes => "a\nb", last_message => "Bye \"you\"",
    last_message_at => "2026-01-01T00:00:03.003Z",
    last_active_at => "2026-01-01T00:00:04.004Z",
    sentiment_positive => false, sentiment_score => -0.25,
    sentiment_summary => "meh", audio_url => "calls/1.ogg", minutes => 3.5,
    visitor_id => "v-1", created_at => "2026-01-01T00:00:00.000Z");

# A conversation of MEMBERS in W; its record as it should be.
sub made {
    my ($w, %members) = @_;
    %members = (type => 1, %members);
    my $id = $w->conversation($members{type}, %members);
    delete $members{unanswered};    # it is not shown
    return conversation_of($w, %members, id => $id);
}

subtest "spec Conversation: every field" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact) = $w->import_objects([{ object => "contact",
        bot_id => $w->agent }]);
    my $full = made($w, %FULL, contact_id => $contact);
    my $bare = made($w, created_at => "2025-01-01T00:00:00.000Z");
    record_is($c->get("/api/v1/conversations/$full->{id}"), $full,
        "all of them set");
    record_is($c->get("/api/v1/conversations/$bare->{id}"), $bare,
        "9.3 all of them there where nothing is set");
    list_is($c->get("/api/v1/conversations"), [$full, $bare],
        "7.7, 7.10 the list: internal ones too, the newest first");
    for my $case (["sentiment_score", 1], ["sentiment_score", -1],
            ["sentiment_score", 0], ["sentiment_positive", true],
            ["archived", false], ["deleted", false], ["minutes", 0],
            map { ["type", $_] } 1 .. 5) {
        my $one = made($w, @$case);
        record_is($c->get("/api/v1/conversations/$one->{id}"), $one,
            "$case->[0] $case->[1]");
    }
    error_is($c->post("/api/v1/conversations", { bot_id => $w->agent }), 405,
        "method_not_allowed", "they cannot be created");
    error_is($c->get("/api/v1/conversations/$_"), 404, "not_found", "none: $_")
        for uuid(), "x", $w->agent, $w->twin_of($full->{id});
};

subtest "spec PATCH: the inbox's members; 9.7" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $whole = made($w);
    my $path = "/api/v1/conversations/$whole->{id}";
    my $moment = $TIME;
    # each line: member, value, what else changes
    for my $case (
        ["internal_notes", "secret\n"], ["internal_notes", ""],
        ["internal_notes", undef],
        ["active", false], ["active", true],
        ["human_takeover", true], ["human_takeover", false],
        ["assigned_to", "user-1", assigned_at => $moment],
        ["assigned_to", undef, assigned_at => undef],
        ["archived", true, archived_at => $moment],
        ["archived", false, archived_at => undef],
        ["archived", true, archived_at => $moment],
    ) {
        my ($field, $value, %also) = @$case;
        my $r = $c->patch($path, { $field => $value });
        record_is($r, { %$whole, $field => $value, %also },
            "$field " . ($value // "null") . ", and nothing else");
        $whole = $r->data;
    }
    record_is($c->get($path), $whole, "it stays");
    record_is($c->patch($path, {}), $whole, "6.5 {} changes nothing");
    record_is($c->patch($path, { archived => true }), $whole,
        "9.7 the same value again: archived_at stays");
    my $r = $c->patch($path, { assigned_to => "u", archived => false,
        active => false, human_takeover => true, internal_notes => "n" });
    record_is($r, { %$whole, assigned_to => "u", assigned_at => $TIME,
        archived => false, archived_at => undef, active => false,
        human_takeover => true, internal_notes => "n" }, "all at once");
    $whole = $r->data;
    record_is($c->patch($path, { assigned_to => "u" }), $whole,
        "9.7 assigned to the same: assigned_at stays");
    $r = $c->patch($path, { assigned_to => "v" });
    cmp_ok($r->data->{assigned_at}, "gt", $whole->{assigned_at},
        "9.7 to another one: assigned_at moves");
    $whole = $r->data;
    record_is($c->patch($path, $whole), $whole,
        "6.2 what GET gave changes nothing");
    record_is($c->patch($path, { %$whole, internal_notes => "m" }),
        { %$whole, internal_notes => "m" }, "6.2 but for what is changed");
    error_is($c->patch($path, { %$whole, deleted => true, assigned_to => 1 }),
        422, "validation_error", "6.2 others are refused as ever",
        ["assigned_to", "deleted"]);
    status_is($c->patch($path, { internal_notes => "n" }), 200);
    my $long = "ü" x 255;
    is($c->patch($path, { assigned_to => $long })->data->{assigned_to},
        $long, "9.7 255 characters");
};

subtest "spec PATCH: what is refused" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $whole = made($w, assigned_to => "u",
        assigned_at => "2026-01-01T00:00:00.000Z");
    my $path = "/api/v1/conversations/$whole->{id}";
    for my $case (["assigned_to", "x" x 256], ["assigned_to", 1],
            ["internal_notes", "x" x 65537], ["internal_notes", []],
            ["archived", "true"], ["archived", 1],
            ["active", undef], ["active", 0], ["human_takeover", undef],
            ["human_takeover", "yes"], ["deleted", true],
            ["deleted", false], ["nonsense", 1]) {
        my ($field, $value) = @$case;
        error_is($c->patch($path, { $field => $value }), 422,
            "validation_error", "6.5, 6.7 $field "
            . (defined $value ? substr $value, 0, 9 : "null"), [$field]);
    }
    error_is($c->patch($path, { archived => 1, active => 2,
        human_takeover => 3, assigned_to => 4, internal_notes => 5 }), 422,
        "validation_error", "5.6", ["active", "archived", "assigned_to",
            "human_takeover", "internal_notes"]);
    record_is($c->get($path), $whole, "nothing was changed");
    record_is($c->patch($path, { human => "x", type => 9, contact_id => 1,
        last_message => [] }), $whole, "6.2 other members are read-only");
    error_is($c->patch("/api/v1/conversations/" . uuid(), { deleted => 1 }),
        404, "not_found", "2: 404 before the fields");
};

subtest "spec DELETE: soft; 8.1" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $stays = made($w, created_at => "2025-01-01T00:00:00.000Z");
    my $whole = made($w, %FULL);
    my ($message) = $w->import_objects([{ object => "message",
        conversation_id => $whole->{id}, role => "user", content => "hi" }]);
    my $path = "/api/v1/conversations/$whole->{id}";
    my $r = $c->delete($path);
    is($r->status, 204, "8: deleted");
    is($r->body, "", "with an empty body");
    $r = $c->get($path);
    record_is($r, { %$whole, deleted => true, deleted_at => $TIME },
        "8.1 GET shows it with deleted, and all else as it was");
    my $gone = $r->data;
    is($c->delete($path)->status, 204, "8.1 a second DELETE is 204 again");
    record_is($c->get($path), $gone, "8.1 deleted_at is unchanged");
    is_deeply($c->get("$path/messages")->ids, [$message],
        "8.1 its messages stay readable");
    list_is($c->get("/api/v1/conversations"), [$stays],
        "by default it is not listed, nor counted");
    list_is($c->get("/api/v1/conversations",
        query => { include_deleted => "true" }), [$gone, $stays],
        "include_deleted=true lists it");
    list_is($c->get("/api/v1/conversations",
        query => { include_deleted => "false" }), [$stays],
        "include_deleted=false does not");
    error_is($c->patch($path, { deleted => false }), 422, "validation_error",
        "6.7 it cannot be restored", ["deleted"]);
    record_is($c->patch($path, { active => true }), { %$gone,
        active => true }, "its inbox state can be changed still");
    is(total_of($c, "/conversations"), 1, "which does not list it again");
    is($c->head($path)->status, 200, "HEAD: 200");
    for my $id (uuid(), "x", $w->twin_of($whole->{id})) {
        error_is($c->delete("/api/v1/conversations/$id"), 404, "not_found",
            "8.1 one that never was: $id");
    }
    is(count_rows($w, "conversation"), 2, "the row is kept");
};

subtest "spec /conversations: query parameters" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent, $contact) = map { uuid() } 1, 2;
    $w->import_objects([{ object => "agent", id => $agent, name => "B" },
        { object => "contact", id => $contact, bot_id => $agent }]);
    my @rows = (
        { type => 1, created_at => "2026-01-01T00:00:00.000Z",
            contact_id => $contact, visitor_id => "v1", email => "Q\@x.org",
            unanswered => true,
            last_message_at => "2026-02-03T00:00:00.000Z" },
        { type => 2, created_at => "2026-01-02T00:00:00.000Z",
            bot_id => $agent, assigned_to => "u1", active => false,
            phone_number => "+15550100",
            last_message_at => "2026-02-02T00:00:00.000Z" },
        { type => 3, created_at => "2026-01-03T00:00:00.000Z",
            archived => true, human => "Zoë",
            archived_at => "2026-02-01T00:00:00.000Z" },
        { type => 4, created_at => "2026-01-04T00:00:00.000Z",
            human_takeover => true, archived => false,
            last_message => "Say Q", assigned_to => "", unanswered => true,
            last_message_at => "2026-02-01T00:00:00.000Z" },
        { type => 5, created_at => "2026-01-05T00:00:00.000Z",
            deleted => true, deleted_at => "2026-02-01T00:00:00.000Z",
            assigned_to => "u1", unanswered => true,
            last_message_at => "2026-02-04T00:00:00.000Z" },
    );
    my @whole = map { made($w, %$_) } @rows;
    for my $case (
        ["", 3, 2, 1, 0], ["order=asc", 0, 1, 2, 3],
        ["include_deleted=true", 4, 3, 2, 1, 0],
        ["sort=last_message_at", 0, 1, 3, 2],
        ["sort=last_message_at&order=asc", 3, 1, 0, 2],
        ["sort=last_message_at&order=asc&include_deleted=1", 3, 1, 0, 4, 2],
        ["sort=created_at&order=desc", 3, 2, 1, 0],
        ["bot_id=$agent", 1], ["contact_id=$contact", 0],
        ["visitor_id=v1", 0], ["visitor_id=V1"], ["assigned_to=u1", 1],
        ["assigned=true", 3, 1], ["assigned=0", 2, 0],
        ["assigned=false&assigned_to=u1"], ["unanswered=true", 3, 0],
        ["unanswered=TRUE&include_deleted=true", 4, 3, 0],
        ["unanswered=0", 2, 1], ["unanswered=1&assigned=0", 0],
        ["unanswered=1&assigned=1&sort=last_message_at&type=email", 3],
        ["unanswered=1&sort=last_message_at&order=asc", 3, 0],
        ["type=chat", 0], ["type=1", 0], ["type=phone", 1],
        ["type=voice", 1], ["type=call", 1], ["type=2", 1], ["type=text", 2],
        ["type=sms", 2], ["type=3", 2], ["type=email", 3], ["type=4", 3],
        ["type=form"], ["type=form&include_deleted=true", 4],
        ["type=5&include_deleted=true", 4],
        ["active=true", 3, 2, 0], ["active=false", 1],
        ["archived=true", 2], ["archived=false", 3, 1, 0],
        ["human_takeover=true", 3], ["human_takeover=0", 2, 1, 0],
        ["created_after=2026-01-03T00:00:00Z", 3, 2],
        ["created_before=2026-01-02T00:00:00.000Z", 1, 0],
        ["last_message_after=2026-02-02", 1, 0],
        ["last_message_before=2026-02-02", 3, 1],
        ["search=q", 3, 0], ["search=5550", 1], ["search=ZOË", 2],
        ["bot_id=$agent&assigned_to=u1&type=phone&active=false"
            . "&archived=false&human_takeover=false"
            . "&created_after=2026-01-02&created_before=2026-01-02"
            . "&last_message_after=2026-02-02"
            . "&last_message_before=2026-02-02&search=5550&sort=created_at"
            . "&order=asc&page=1&page_size=25", 1],
        ["bot_id=" . uuid()], ["contact_id=" . $w->twin_of($contact)],
    ) {
        my ($query, @wanted) = @$case;
        my @records = @whole[@wanted];
        list_is($c->get("/api/v1/conversations", query => $query),
            \@records, "conversations?$query");
    }
    error_is($c->get("/api/v1/conversations", query => "type=fax&active=x"
        . "&archived=&human_takeover=2&assigned=&unanswered=no&include_deleted=x&sort=human&order=up"
        . "&created_after=x&created_before=x&last_message_after=x"
        . "&last_message_before=x&bot_id=&page=0&page_size=101"), 422,
        "validation_error", "7 all that is wrong", [qw(type active archived
            human_takeover assigned unanswered include_deleted sort order created_after
            created_before last_message_after last_message_before bot_id page
            page_size)]);
    error_is($c->get("/api/v1/conversations", query => "type=$_"), 422,
        "validation_error", "7.6 type=$_", ["type"])
        for 0, 6, "1.0", "-1", "Chat", "chat,form";
};

subtest "totals follow deletes, whole and per agent" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my @ids = $w->import_objects([map { { object => "conversation",
        type => 1, bot_id => $_ % 3 ? $w->agent : $agent } } 1 .. 9]);
    my $totals = sub { [map { total_of($c, "/conversations", @$_) } [],
        [bot_id => $w->agent], [bot_id => $agent],
        [include_deleted => "true"]] };
    is_deeply($totals->(), [9, 6, 3, 9], "imported");
    $c->delete("/api/v1/conversations/$_") for @ids[0, 1, 2], $ids[0];
    is_deeply($totals->(), [6, 4, 2, 9], "3 of them deleted, one twice");
    $c->patch("/api/v1/conversations/$ids[3]", { archived => true });
    is_deeply($totals->(), [6, 4, 2, 9], "archiving changes no total");
    my @got = in_processes(4, sub {
        my $own = $w->client;
        return [map { $own->delete("/api/v1/conversations/$_")->status }
            @ids[3 .. 7]];
    });
    is_deeply(\@got, [([(204) x 5]) x 4], "8.1 four delete the same at once");
    is_deeply($totals->(), [1, 0, 1, 9], "each counts once");
};

subtest "spec Message: every field, every parameter" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $thread = made($w);
    my $other = made($w);
    my @rows = (
        { role => "user", content => "Hi\n\"you\" \x{1F600}",
            content_type => "text/plain", status => "delivered",
            created_at => "2026-01-01T00:00:00.000Z" },
        { role => "assistant", content => "", tool_used => "search",
            tool_arguments => { q => ["a", { b => undef }] },
            created_at => "2026-01-01T00:00:00.001Z" },
        { role => "human", content => "here",
            created_at => "2026-01-02T00:00:00.000Z" },
        { role => "my own", content => "x", tool_arguments => {},
            created_at => "2026-01-03T00:00:00.000Z" },
    );
    my @ids = $w->import_objects([map { { object => "message",
        conversation_id => $thread->{id}, %$_ } } @rows]);
    my @whole = map { message_of(%{$rows[$_]}, id => $ids[$_],
        conversation_id => $thread->{id}) } 0 .. 3;
    my $path = "/api/v1/conversations/$thread->{id}/messages";
    for my $case (
        ["", 0 .. 3], ["order=asc", 0 .. 3], ["order=desc", 3, 2, 1, 0],
        ["role=user", 0], ["role=assistant", 1], ["role=my+own", 3],
        ["role=tool"], ["role=USER"],
        ["created_after=2026-01-01T00:00:00.001Z", 1, 2, 3],
        ["created_before=2026-01-01T00:00:00.001Z", 0, 1],
        ["created_after=2026-01-02&created_before=2026-01-02", 2],
        ["role=human&order=desc&created_after=2026-01-01", 2],
    ) {
        my ($query, @wanted) = @$case;
        list_is($c->get($path, query => $query), [@whole[@wanted]],
            "messages?$query");
    }
    list_is($c->get("/api/v1/conversations/$other->{id}/messages"), [],
        "another conversation has none");
    my $r = $c->get($path, query => "page=2&page_size=3");
    value_is($r->json, { data => [$whole[3]], pagination => page_of(4, 2, 3) },
        "page 2");
    error_is($c->get($path, query => "role=&order=up&created_after=x"
        . "&created_before=x"), 422, "validation_error", "7 all that is wrong",
        ["created_after", "created_before", "order", "role"]);
    error_is($c->get("/api/v1/conversations/$_/messages"), 404, "not_found",
        "7.9 of $_") for uuid(), "x", $w->twin_of($thread->{id});
    error_is($c->post($path, { role => "user", content => "x" }), 422,
        "validation_error", "19.1 who writes is no user", ["role"]);
};

subtest "9.7 changes at once: each whole" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $path = "/api/v1/conversations/" . made($w)->{id};
    my @got = in_processes(4, sub {
        my ($n) = @_;
        my $own = $w->client;
        my @odd;
        for (1 .. 10) {
            my $who = $_ % 2 ? "user-$n" : undef;
            my $r = $own->patch($path, { assigned_to => $who });
            push @odd, $r->status . $r->body if $r->status != 200
                || ($r->data->{assigned_to} // "") ne ($who // "")
                || defined $r->data->{assigned_to}
                    != defined $r->data->{assigned_at};
        }
        return \@odd;
    });
    is_deeply(\@got, [([]) x 4],
        "who assigns sees his own change, with the time that belongs to it");
};

$httpd->stop;
done_testing;
