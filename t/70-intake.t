# SPDX-License-Identifier: Apache-2.0
# 70-intake.t: events by intake tokens: how they are stored (docs/intake.md)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $EVENTS = "/crmapi/intake/v1/events";
my $database = database();
my $httpd = httpd(database => $database, children => 2,
    unlimited => 1, intake => 1, conf => <<"END");
CrmApiMaxBody 4194304
END

# A workspace with an intake token.
sub space {
    my (%arg) = @_;
    my $w = workspace($httpd, %arg);
    $w->{token} = $w->token("backend");
    return $w;
}

sub bring {
    my ($w, $events, %arg) = @_;
    return $httpd->client(key => $arg{token} // $w->{token})
        ->post($EVENTS, $events);
}

# An event from a new person, or as MEMBERS say.
my $count = 0;
sub event {
    my ($w, %members) = @_;
    $count++;
    return { event_id => "e-$$-$count", channel => "sms",
        bot_id => $w->agent, from => { phone_number => "+4930$count" },
        message => { content => "Hello $count" }, %members };
}

# Bring EVENTS that are all taken; returns what is said of each.
sub taken {
    my ($w, @events) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $r = bring($w, \@events);
    status_is($r, 200, "events") or return;
    is_deeply($r->data->{errors}, [], "none is refused");
    return wantarray ? @{$r->data->{accepted}} : $r->data->{accepted}[0];
}

my $w = space();
my $c = $w->client;

subtest "an SMS: a contact, a conversation, a message" => sub {
    my $before = $c->get("/api/v1/agents/" . $w->agent)->data
        ->{number_of_conversations};
    my $total = total_of($c, "/conversations");
    my $e = event($w, from => { phone_number => "+49 30 901820",
        name => "Ada Lovelace King" }, occurred_at => "2026-02-03T04:05:06.7Z");
    my $got = taken($w, $e);
    is($got->{event_id}, $e->{event_id}, "the answer names the event");
    my $talk = $w->shown("conversations", $got->{conversation_id});
    is_deeply({ map { $_ => $talk->{$_} } qw(type bot_id contact_id email
            phone_number human active archived deleted internal last_message
            last_message_at last_active_at created_at human_takeover) },
        { type => 3, bot_id => $w->agent, contact_id => $got->{contact_id},
            email => undef, phone_number => "+49 30 901820",
            human => "Ada Lovelace King", active => true, archived => undef,
            deleted => undef, internal => false,
            last_message => $e->{message}{content},
            map({ $_ => "2026-02-03T04:05:06.700Z" } qw(last_message_at
                last_active_at created_at)), human_takeover => false },
        "the conversation");
    my @messages = $w->messages($got->{conversation_id});
    is(scalar @messages, 1, "one message");
    is($messages[0]{id}, $got->{message_id}, "whose id was told");
    is($messages[0]{role}, "user", "from the user");
    is($messages[0]{content}, $e->{message}{content}, "with its text");
    is($messages[0]{created_at}, "2026-02-03T04:05:06.700Z", "and its time");
    my $contact = $c->get("/api/v1/contacts/$got->{contact_id}")->data;
    is("$contact->{first_name}|$contact->{last_name}", "Ada|Lovelace King",
        "the contact has the name");
    is_deeply($contact->{phone_numbers}, [phone("+49 30 901820", 1)],
        "and the number");
    is($contact->{bot_id}, $w->agent, "it belongs to the agent");
    is(total_of($c, "/conversations"), $total + 1, "7.11 the total");
    is($c->get("/api/v1/agents/" . $w->agent)->data
        ->{number_of_conversations}, $before + 1, "and the agent's number");
    my $again = taken($w, event($w, from => { phone_number => "+4930901820" }));
    is($again->{conversation_id}, $got->{conversation_id},
        "another one from the same number goes on with it");
    is($again->{contact_id}, $got->{contact_id}, "the contact is the same");
};

my $name_count = 40_000;
subtest "the words of a name" => sub {
    for my $one (["Ada", "Ada|-"], ["Lovelace, Ada", "Ada|Lovelace"],
            ["von der Leyen,Ada Maria", "Ada Maria|von der Leyen"],
            ["Smith, Ada, Example GmbH", "Ada|Smith"], ["Ada,", "Ada,|-"],
            [", Ada", ",|Ada"], ["Ada King, Ph.D.", "Ada|King, Ph.D."],
            ["Acme Tools, Inc.", "Acme|Tools, Inc."],
            ["Ada King, Example Ltd", "Ada|King, Example Ltd"],
            ["Ada King, CPA, CFA", "Ada|King, CPA, CFA"],
            ["Ada King, Tools GmbH & Co. KG", "Ada|King, Tools GmbH & Co. KG"],
            ["Sales, Tools & Support", "Sales,|Tools & Support"],
            ["Ada King (Tools, London)", "Ada|King (Tools, London)"],
            ["Ada King [Tools, Sales]", "Ada|King [Tools, Sales]"],
            ["King & Sons, London", "King|& Sons, London"],
            ["King, Ada (Sales)", "Ada|King"],
            ["Ada King, ada\@x.example", "Ada|King, ada\@x.example"],
            ["\x{a0}Ada King\x{3000}\x{a0}", "Ada|King"],
            ["\x{2003}Ada\x{a0}", "Ada|-"]) {
        my ($name, $is) = @$one;
        my $got = taken($w, event($w, from => { name => $name,
            phone_number => sprintf "+4930901%05d", ++$name_count }));
        my $contact = $c->get("/api/v1/contacts/$got->{contact_id}")->data;
        is(join("|", map { $_ // "-" } @{$contact}{qw(first_name last_name)}),
            $is, $name);
    }
    for my $blank ("  ", "\x{200b}", "\x{3164}\x{a0}") {
        my $got = taken($w, event($w, from => { name => $blank,
            phone_number => sprintf "+4930901%05d", ++$name_count }));
        is_deeply([$c->get("/api/v1/conversations/$got->{conversation_id}")
            ->data->{human}, $c->get("/api/v1/contacts/$got->{contact_id}")
            ->data->{first_name}], [undef, undef], "one that shows nothing is none");
    }
};

subtest "17.4 an opt-out by SMS, whatever gateway brings it" => sub {
    my $number = "+49308999";
    my $is = sub { scalar sql($database, "SELECT coalesce(max(reason), 'no') FROM"
        . " crmapi.suppression WHERE workspace_id = '" . $w->id
        . "' AND address = '$number'") };
    my $say = sub { taken($w, event($w, from => { phone_number =>
        "+49 (0)30 8999" }, message => { content => $_[0] }, @_[1 .. $#_])) };
    for my $case (["Please do not stop", "no"], ["Stop.", "unsubscribed"],
        ["START", "no"], ["STOP, thanks!", "unsubscribed"], ["unstop", "no"],
        ["STOP", "no", verified => false],
        ["STOP", "no", channel => "chat"],
        ["STOP", "no", message => { content => "STOP", role => "system" }]) {
        my ($text, $want, @more) = @$case;
        $say->($text, @more);
        is($is->(), $want, "$text " . join " ", map { ref eq "HASH" ? %$_ : $_ } @more);
    }
    taken($w, event($w, direction => "outbound", from => {}, to =>
        { phone_number => $number }, message => { content => "STOP" }));
    is($is->(), "no", "what the agent says is none");
    $w->ctl("suppress", "add", "--workspace", $w->id, "--phone", $number,
        "--reason", "wrong number");
    $say->($_) for qw(STOP START);
    is($is->(), "wrong number", "START lifts what STOP did, and no more");
};

subtest "the same event again" => sub {
    my $e = event($w);
    my $first = taken($w, $e);
    my $again = taken($w, { %$e, message => { content => "other words" } });
    is_deeply($again, $first, "is answered as the first time");
    my @both = taken($w, event($w), $e, $e);
    is_deeply([map { delete $_->{index}; $_ } @both[1, 2]],
        [map { my %one = %$_; delete $one{index}; \%one } $first, $first],
        "also in the midst of others, twice");
    is(scalar($w->messages($first->{conversation_id})), 1, "and stored once");
};

subtest "50 times at once" => sub {
    my $e = event($w, from => { email => "at.once\@x.example" },
        channel => "email");
    my @got = in_processes(10, sub {
        my $one = $httpd->client(key => $w->{token});
        return [map { $one->post($EVENTS, $e)->body } 1 .. 5];
    });
    my %bodies = map { $_ => 1 } map { @$_ } @got;
    is(scalar keys %bodies, 1, "all 50 answers are the same")
        or diag(join "\n", keys %bodies);
    is(count_rows($w, "contact", "email_key = 'at.once\@x.example'"), 1,
        "one contact");
    is(count_rows($w, "conversation", "email = 'at.once\@x.example'"), 1,
        "one conversation");
    is(count_rows($w, "message", "conversation_id IN (SELECT id FROM"
        . " crmapi.conversation WHERE email = 'at.once\@x.example')"), 1,
        "one message");
};

subtest "many events of one participant at once" => sub {
    my $n = sanitized() || valgrinded() ? 40 : 120;
    my @got = in_processes(6, sub {
        my ($who) = @_;
        my $one = $httpd->client(key => $w->{token});
        my @odd;
        for my $i (1 .. $n / 6) {
            my $r = $one->post($EVENTS, { event_id => "p-$$-$who-$i",
                channel => "chat", bot_id => $w->agent,
                from => { email => "many\@x.example", name => "M" },
                message => { content => "$who $i" } });
            push @odd, $r->text if $r->status != 200
                || @{$r->data->{errors}};
        }
        return \@odd;
    });
    is_deeply([map { @$_ } @got], [], "all are taken");
    is(count_rows($w, "contact", "email_key = 'many\@x.example'"), 1,
        "one contact");
    my @talks = sql($database, "SELECT id FROM crmapi.conversation WHERE"
        . " workspace_id = '" . $w->id . "' AND email = 'many\@x.example'");
    is(scalar @talks, 1, "one conversation") or return;
    my @said = map { $_->[0] } sql($database, "SELECT content FROM"
        . " crmapi.message WHERE conversation_id = '$talks[0][0]'"
        . " ORDER BY created_at, id");
    is(scalar @said, int($n / 6) * 6, "all messages");
    for my $who (1 .. 6) {
        my @own = map { (split / /)[1] } grep { /^$who / } @said;
        is_deeply(\@own, [sort { $a <=> $b } @own], "those of $who in order");
    }
};

subtest "a batch: what is wrong with one is its own affair" => sub {
    my @events = (event($w), event($w, channel => "fax"),
        event($w, bot_id => uuid()), event($w, from => {}),
        event($w, nonsense => 1, message => { contents => "x" }),
        event($w, event_id => ""), event($w), "text",
        event($w, from => { email => "no address" }),
        event($w, sentiment => { score => 2 }),
        event($w, message => { content => "x\0y" }),
        event($w, channel => "fax"));
    delete $events[11]{event_id};
    delete $events[2]{from};
    $events[2]{from} = { email => "a\@b.example" };
    my $r = bring($w, \@events);
    status_is($r, 200, "the request") or return;
    is_deeply([map { $_->{index} } @{$r->data->{accepted}}], [0, 6],
        "two are sound");
    my %wrong = map { $_->{index} => [map { $_->{field} }
        @{$_->{details}}] } @{$r->data->{errors}};
    is_deeply(\%wrong, { 1 => ["channel"], 2 => ["bot_id"], 3 => ["from"],
        4 => ["message.contents", "nonsense"], 5 => ["event_id"], 7 => [""],
        8 => ["from.email"], 9 => ["sentiment.score"],
        10 => ["message.content"], 11 => ["channel", "event_id"] },
        "5.6 each error names its fields")
        or diag(explain(\%wrong));
    $r = bring($w, [event($w, message => { contents => "x" }),
        event($w, from => { phone => "+4930" }), event($w, message => { text => "x" }),
        event($w, nonsense => 1)]);
    is_deeply([map { $_->{details}[0]{message} =~ s/is not a known field//r }
        @{$r->data->{errors}}], [(map { "; did you mean $_?" }
        qw(content phone_number content)), ""], "what an unknown field may mean");
    my $no = uuid();
    my %part = (event_id => uuid(), message => { content => "x" });
    my @lacks = ([[qw(bot_id channel event_id from)], {}],
        [[qw(bot_id channel to)], { %part, direction => "outbound" }],
        [[qw(bot_id channel to)], { %part, message => { role => "human",
            content => "x" } }],
        [["bot_id", "channel"], { %part, from => { email => "x\@b.example" } }],
        [[qw(bot_id channel from.email)], { %part, from => { email => "x" } }],
        [[qw(bot_id channel from)], { %part, from => "x" }],
        [[qw(bot_id channel from)], { %part, from => undef, bot_id => undef }],
        [["bot_id", "from"], { %part, bot_id => $no, channel => "sms" }],
        [["bot_id", "conversation.id"], { %part, bot_id => $no,
            conversation => { id => $no } }],
        [["bot_id", "channel"], { %part, conversation =>
            { external_id => $no } }]);
    is_deeply([map { [sort map { $_->{field} } @{$_->{details}}] }
        map { bring($w, $_->[1])->data->{errors}[0] } @lacks],
        [map { $_->[0] } @lacks], "5.6 all that one lacks or that is not there");
    for my $channel (3, '"3"', "3.0", "30e-1") {
        my $body = JSON::PP->new->utf8->encode(event($w))
            =~ s/"channel":\K"sms"/$channel/r;
        my $r = $httpd->client(key => $w->{token})->post($EVENTS, undef,
            body => $body);
        is($w->shown("conversations", $r->data->{accepted}[0]{conversation_id}
            // uuid())->{type}, 3, "6.4 the channel $channel") or diag($r->text);
    }
    # an empty id would join all who have none
    my @empty = (["from", "visitor_id"], ["from", "user_id"],
        ["to", "visitor_id", direction => "outbound"],
        ["to", "user_id", direction => "outbound"],
        ["conversation", "external_id"], ["message", "external_id"]);
    $r = bring($w, [map { my ($object, $name, @more) = @$_;
        event($w, $object => { $name => "" }, @more) } @empty]);
    is_deeply([map { map { $_->{field} } @{$_->{details}} }
        @{$r->data->{errors}}], [map { "$_->[0].$_->[1]" } @empty],
        "6.5 no id is empty") or diag($r->text);
    is(count_rows($w, "contact", "email_key = 'a\@b.example'"), 0,
        "what is refused leaves nothing behind");
    my $mended = { %{$events[2]}, bot_id => $w->agent };
    ok(taken($w, $mended), "and its id is free for the event when mended");
    is_deeply(bring($w, [])->data, { accepted => [], errors => [] },
        "no events, nothing done");
    error_is(bring($w, [map { event($w) } 1 .. 501]), 422, "validation_error",
        "501 events");
    is(scalar @{bring($w, [("text") x 500])->data->{errors}}, 500,
        "500 are looked at");
};

subtest "conversations: which one" => sub {
    my %from = (from => { email => "which\@x.example" }, channel => "email");
    my $first = taken($w, event($w, %from,
        conversation => { subject => "A question" }))->{conversation_id};
    is(taken($w, event($w, %from))->{conversation_id}, $first, "the open one");
    isnt(taken($w, event($w, %from, channel => "chat"))->{conversation_id},
        $first, "another channel has its own");
    my $thread = taken($w, event($w, %from,
        conversation => { external_id => "t-1" }))->{conversation_id};
    isnt($thread, $first, "one that the source names is another");
    is(taken($w, event($w, channel => "email", from => { email =>
        "other\@x.example" }, conversation => { external_id => "t-1" }))
        ->{conversation_id}, $thread, "and the same for whoever writes in it");
    is(taken($w, event($w, %from))->{conversation_id}, $first,
        "who names none is in the open one");
    $c->patch("/api/v1/conversations/$first", { active => false });
    my $second = taken($w, event($w, %from))->{conversation_id};
    isnt($second, $first, "one that is over is not gone on with");
    is(taken($w, event($w, %from, conversation => { id => $first }))
        ->{conversation_id}, $first, "unless it is named");
    ok($w->shown("conversations", $first)->{active}, "then it is open again");
    $c->patch("/api/v1/conversations/$first", { active => false });
    $c->patch("/api/v1/conversations/$second", { archived => true });
    isnt(taken($w, event($w, %from))->{conversation_id}, $second,
        "an archived one is not open");
    taken($w, event($w, %from, conversation => { id => $second }));
    is_deeply([@{$w->shown("conversations", $second)}{qw(archived
        archived_at)}], [false, undef],
        "9.7 but it is no more archived when somebody writes");
    $c->patch("/api/v1/conversations/$second", { active => false });
    $c->delete("/api/v1/conversations/$thread");
    isnt(taken($w, event($w, %from, conversation => { external_id => "t-1" }))
        ->{conversation_id}, $thread, "a deleted one is not there");
    my $r = bring($w, event($w, conversation => { id => $thread }));
    is_deeply([map { $_->{field} } @{$r->data->{errors}[0]{details}}],
        ["conversation.id"], "not even by its id");
    my $agent = ($w->import_objects([{ object => "agent", name => "B" }]))[0];
    isnt(taken($w, event($w, %from, bot_id => $agent))->{conversation_id},
        $second, "another agent has its own");
};

# What a conversation may be that a person's or a visitor's events go past.
my %PASSED = (over => "active = false", archived => "archived = true",
    deleted => "deleted = true, deleted_at = now()",
    "one that its source names" => "thread = 'named'");
my %PASSED_BY_PERSONS = (%PASSED, "a teammate's" => "internal = true",
    "a visitor's" => "visitor_id = 'somebody'");

subtest "conversations: which are not gone on with" => sub {
    my %of = (email => \%PASSED_BY_PERSONS, visitor_id => \%PASSED);
    for my $who (sort keys %of) {
        for my $name (sort keys %{$of{$who}}) {
            my %from = (channel => $who eq "email" ? "email" : "chat",
                from => { $who => "past" . $count . "\@x.example" });
            my ($old, $same) = map { taken($w, event($w, %from))
                ->{conversation_id} } 1, 2;
            is($same, $old, "$who: the open one");
            sql($database, "UPDATE crmapi.conversation SET $of{$who}{$name}
                WHERE id = '$old'");
            isnt(taken($w, event($w, %from))->{conversation_id}, $old,
                "$who: not one that is $name");
        }
    }
    my @at_once = in_processes(6, sub {
        return $httpd->client(key => $w->{token})->post($EVENTS, event($w,
            event_id => "named-$$-$_[0]", channel => "email", from =>
            { email => "at.once.$_[0]\@x.example" }, conversation =>
            { external_id => "at-once" }))->data->{accepted}[0]
            {conversation_id};
    });
    my %one = map { $_ => 1 } @at_once;
    is(scalar keys %one, 1, "one that six write in at once is one");
    my ($agent) = $w->import_objects([{ object => "agent", name => "C" }]);
    my %named = (from => { email => "named\@x.example" }, channel => "email",
        conversation => { external_id => "of-many" });
    my $first = taken($w, event($w, %named))->{conversation_id};
    for my $other ([bot_id => $agent], [channel => "chat"]) {
        isnt(taken($w, event($w, %named, @$other))->{conversation_id}, $first,
            "nor one of the same name, but another $other->[0]");
    }
    is(taken($w, event($w, %named))->{conversation_id}, $first,
        "each goes on with its own");
};

subtest "what events tell of a conversation" => sub {
    my $id = taken($w, event($w, channel => "call",
        from => { phone_number => "+49301" },
        call => { minutes => 3.5, audio_url => "https://x.example/a.mp3" }))
        ->{conversation_id};
    taken($w, { event_id => "s-$$", conversation => { id => $id },
        sentiment => { positive => true, score => 0.75, summary => "glad" },
        human_takeover => true });
    taken($w, { event_id => "a-$$", conversation => { id => $id },
        from => { user_id => "teammate-7" },
        message => { role => "human", content => "Good day",
            content_type => "text/markdown" } });
    taken($w, { event_id => "t-$$", conversation => { id => $id },
        direction => "outbound", message => { role => "tool",
            tool_used => "lookup", tool_arguments => { q => [1, 2] } } });
    my $talk = $w->shown("conversations", $id);
    is($talk->{minutes}, 3.5, "minutes");
    is($talk->{audio_url}, "https://x.example/a.mp3", "audio_url");
    is($talk->{sentiment_positive}, true, "sentiment_positive");
    is($talk->{sentiment_score}, 0.75, "sentiment_score");
    is($talk->{sentiment_summary}, "glad", "sentiment_summary");
    is($talk->{human_takeover}, true, "human_takeover");
    is($talk->{last_message}, "Good day",
        "the snippet: of the last one with words");
    my @said = $w->messages($id);
    is(join(" ", map { $_->{role} } @said), "user human tool", "the roles");
    is_deeply($said[2]{tool_arguments}, { q => [1, 2] }, "tool_arguments");
    is($said[1]{content_type}, "text/markdown", "content_type");
    my $at = sub { taken($w, { event_id => "$_[0]-$$", conversation =>
        { id => $id }, from => { phone_number => "+49301" }, occurred_at => $_[0],
        message => { content => "At $_[0]" } });
        return $w->shown("conversations", $id) };
    my $now = $at->("2020-01-01T00:00:00.000Z");
    is_deeply([@$now{qw(last_message last_message_at)}],
        [@$talk{qw(last_message last_message_at)}],
        "what comes late is not the last message");
    is(($w->messages($id))[0]{created_at}, "2020-01-01T00:00:00.000Z",
        "but has its place");
    cmp_ok($at->("2100-01-01T00:00:00Z")->{last_message_at}, "lt", "2100",
        "nothing was said at a time to come");
    taken($w, { event_id => "end-$$", conversation => { id => $id },
        call => { ended => true } });
    is($w->shown("conversations", $id)->{active}, false, "ended");
};

subtest "the status of a message" => sub {
    my $got = taken($w, event($w, direction => "outbound",
        to => { phone_number => "+49302" }, message => { content => "Hi",
            external_id => "SM-1", status => "queued" }));
    my $status = sub { ($w->messages($got->{conversation_id}))[0]{status} };
    is($status->(), "queued", "as it came");
    my $n = 0;
    my $tell = sub { taken($w, { event_id => "st-$$-" . $n++,
        message => { external_id => "SM-1", status => $_[0] } }) };
    $tell->("delivered");
    is($status->(), "delivered", "delivered");
    $tell->("sent");
    is($status->(), "delivered", "news that come late change nothing");
    my $r = bring($w, { event_id => "st-x", message => { external_id => "?",
        status => "failed" } });
    is($r->data->{errors}[0]{details}[0]{field}, "message.external_id",
        "of no message");
};

subtest "contacts: whose event it is (contract 10.1)" => sub {
    my ($old, $new, $phone) = map { $w->contact(%$_)->{id} }
        { emails => ["Twin\@x.example"] },
        { emails => ["twin\@x.example"], last_name => "Later" },
        { phone_numbers => ["+49 (30) 7800"], first_name => "P" };
    my $got = taken($w, event($w, from => { email => "TWIN\@x.example",
        name => "Given Name", phone_number => "+493077" }));
    is($got->{contact_id}, $old, "by e-mail, the oldest wins");
    my $contact = $c->get("/api/v1/contacts/$old")->data;
    is("$contact->{first_name} $contact->{last_name}", "Given Name",
        "it gets the name that it lacked");
    is_deeply($contact->{phone_numbers}, [phone("+493077", 1)],
        "and the number");
    is(taken($w, event($w, from => { phone_number => "+49307800",
        name => "Q" }))->{contact_id}, $phone, "by phone");
    my ($older) = map { $w->contact(phone_numbers => ["+493079001"])->{id} } 1,
        2;
    is(taken($w, event($w, from => { phone_number => "+493079001" }))
        ->{contact_id}, $older, "the oldest, too");
    is($c->get("/api/v1/contacts/$phone")->data->{first_name}, "P",
        "what is there stays: who writes to us has no key");
    my $visitor = taken($w, event($w, channel => "chat",
        from => { visitor_id => "v-1" }));
    is($visitor->{contact_id}, undef, "a visitor is nobody");
    my $known = taken($w, event($w, channel => "chat",
        from => { visitor_id => "v-1", email => "v\@x.example" }));
    is($known->{conversation_id}, $visitor->{conversation_id},
        "who says who he is stays in his conversation");
    is($w->shown("conversations", $known->{conversation_id})->{contact_id},
        $known->{contact_id}, "which is the contact's from then on");
    is($w->shown("conversations", $known->{conversation_id})->{visitor_id},
        "v-1", "and the visitor's");
};

subtest "a reply stops a sequence, a webhook tells of the contact" => sub {
    my $own = space(twin => 0);
    my $template = $own->template([{ sms_body => "x" }],
        stop_on_reply => true);
    $own->webhook("https://hooks.example/", "contact.created");
    my $status = sub { $own->enrollment($_[0])->{status} };
    my ($one, $two) = map { $own->start($template, contact => {
        phone_numbers => [$_] })->{enrollment_id} } "+49301111", "+49302222";
    taken($own, event($own, direction => "outbound",
        to => { phone_number => "+49301111" }));
    is($status->($one), "generating", "what we write stops nothing");
    taken($own, event($own, from => { phone_number => "+49301111" }));
    is($status->($one), "stopped_reply", "a reply does");
    is($status->($two), "generating", "nobody else's");
    my $id = taken($own, event($own, from => { phone_number => "+49303" }))
        ->{contact_id};
    is(sql($database, "SELECT count(*) FROM crmapi.event WHERE"
        . " workspace_id = '" . $own->id . "' AND fields ->> 'id' = '$id'"),
        1, "12.1 contact.created");
};

subtest "verified: false is a claim" => sub {
    my $own = space(twin => 0);
    my $api = $own->client;
    my $template = $own->template([{ sms_body => "x" }],
        stop_on_reply => true);
    my $enrollment = $own->start($template,
        contact => { phone_numbers => ["+49307771"] })->{enrollment_id};
    my $id = sql($database, "SELECT contact_id FROM crmapi.enrollment WHERE"
        . " id = '$enrollment'");
    my %from = (from => { phone_number => "+49307771", name => "Eve Evil" });
    my $before = $api->get("/api/v1/contacts/$id")->data;
    my $status = sub { $own->enrollment($enrollment)->{status} };
    my $claim = taken($own, event($own, %from, verified => false));
    is($claim->{contact_id}, $id, "it is linked");
    taken($own, event($own, conversation => { id =>
        $claim->{conversation_id} }, from => {}, verified => false));
    is_deeply($api->get("/api/v1/contacts/$id")->data, $before,
        "the contact is as it was");
    is($status->(), "generating", "and its sequence goes on");
    my ($said) = @{$api->get("/api/v1/conversations/$claim->{conversation_id}"
        . "/messages")->data};
    is($said->{metadata}{verified}, false, "the message says so");
    my $new = taken($own, event($own, from => { email => "new\@x.example",
        name => "New Name" }, verified => false))->{contact_id};
    is($api->get("/api/v1/contacts/$new")->data->{first_name}, "New",
        "a claim makes a new contact");
    is(bring($own, event($own, verified => "no"))->data->{errors}[0]{details}
        [0]{field}, "verified", "it is a boolean");
    for my $verified (undef, true) {
        my $r = taken($own, event($own, %from, verified => $verified));
        is($r->{conversation_id}, $claim->{conversation_id},
            "the same conversation");
    }
    is($api->get("/api/v1/contacts/$id")->data->{first_name}, "Eve",
        "who has a token is believed unless it says otherwise");
    is($status->(), "stopped_reply", "a reply");
};

subtest "tokens" => sub {
    my $bad = sub {
        my ($token, $name) = @_;
        my $r = bring($w, event($w), token => $token);
        error_is($r, 401, "unauthorized", $name);
        is($r->header("WWW-Authenticate"), "Bearer", "$name: Bearer");
    };
    $bad->("svc_in_" . "x" x 30, "an unknown token");
    $bad->($w->key, "an API key");
    $bad->("", "none");
    error_is($c->with_key($w->{token})->get("/api/v1/agents"), 401,
        "unauthorized", "a token is no key of the API");
    my $other = space(twin => 0);
    taken($other, event($other));
    my ($id) = map { $_->{id} } @{$other->ctl_json("intake", "list",
        "--workspace", $other->id)};
    my ($first, $second) = map { $other->ctl("--json", "intake", "revoke", $id) }
        1, 2;
    is($second, $first, "to revoke it again changes nothing");
    $bad->($other->{token}, "3.2 a token at once after its revocation");
    is(bring($w, event($other))->data->{errors}[0]{details}[0]{field},
        "bot_id", "a token reaches its own workspace only");
    unlike($httpd->log_text . $httpd->access_log, qr/svc_in_/,
        "3.4 no token in a log");
};

subtest "4 the budget of a token" => sub {
    my $site = httpd(database => $database, conf => "CrmApiIntake On\n"
        . "CrmApiIntakeLimit 3\n");
    my $client = $site->client(key => $w->{token});
    my @r = map { $client->post($EVENTS, event($w)) } 1 .. 4;
    is(join(" ", map { $_->status } @r), "200 200 200 429", "three a minute");
    is(join(" ", map { $_->header("X-RateLimit-Remaining") } @r), "2 1 0 0",
        "4.2 as the headers tell");
    like($r[3]->header("Retry-After"), qr/^[1-9]\d?$/, "4.3 Retry-After");
    error_is($r[3], 429, "rate_limited", "the fourth");
    $site->stop;
};

subtest "an event_id is known for keep_events" => sub {
    my $e = event($w);
    my $first = taken($w, $e);
    sql($database, "UPDATE crmapi.intake_event SET created_at = now() -"
        . " interval '31 days' WHERE event_id = '$e->{event_id}'");
    worker(database => $database, no_start => 1)->once;
    is(sql($database, "SELECT count(*) FROM crmapi.intake_event WHERE"
        . " event_id = '$e->{event_id}'"), 0, "upkeep forgets it");
    isnt(taken($w, $e)->{message_id}, $first->{message_id},
        "so it is taken again");
};

subtest "14.2 a workspace that is held takes nothing; it comes again" => sub {
    my $held = space();
    my $e = event($held);
    $held->ctl("workspace", "hold", $held->id);
    my $r = bring($held, $e);
    error_is($r, 503, "service_unavailable", "an event of a held workspace");
    ok($r->header("Retry-After"), "which may be tried again");
    is(count_rows($held, "message"), 0, "nothing is stored");
    $held->ctl("workspace", "release", $held->id);
    ok(taken($held, $e)->{message_id}, "after its release it is taken");
};

subtest "requests" => sub {
    my $client = $httpd->client(key => $w->{token});
    error_is($client->get($EVENTS), 405, "method_not_allowed", "GET");
    is($client->get($EVENTS)->header("Allow"), "POST", "Allow");
    error_is($client->get("/crmapi/intake/v1/nothing"), 404, "not_found",
        "no such route");
    error_is($client->request("POST", $EVENTS, body => "{", headers =>
        { "Content-Type" => "application/json" }), 400, "bad_request",
        "broken JSON");
    error_is($client->request("POST", $EVENTS, body => "a=b", headers =>
        { "Content-Type" => "application/x-www-form-urlencoded" }), 415,
        "unsupported_media_type", "a form");
    error_is($client->post($EVENTS, "x"), 422, "validation_error", "a text");
    error_is($client->post($EVENTS, { event_id => "x" x 5_000_000 }), 413,
        "payload_too_large", "5 MB");
    status_is($client->post($EVENTS, event($w)), 200, "and the next is served");
};

done_testing;
