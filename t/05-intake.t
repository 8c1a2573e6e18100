#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-intake.t: what an event of intake changes, called as the API and the worker do:
# the status of a message, whom a reply stops, the thread of an answer
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Rows;
use CrmTest::Schema;
use CrmTest::Session;

my $events = 0;
# What crmapi.intake() says of ITEM, an event of S: its row.
sub taken {
    my ($s, %item) = @_;
    my ($row) = sql($db, "SELECT conversation_id, message_id, contact_id, field
        FROM crmapi.intake('$s->{id}', NULL, " . quoted([{ event_id => "e-"
        . ++$events, %item }]) . ")");
    my %row;
    @row{qw(conversation message contact field)} = @$row;
    return \%row;
}

# A conversation of S with MEMBERS; a message in it.
sub talk {
    my ($s, %members) = @_;
    return make("conversation", %{$s->{owned}}, type => 4, %members);
}
sub message {
    my ($s, $talk, %members) = @_;
    return make("message", %{$s->{in}}, conversation_id => $talk, role => "user",
        %members);
}

subtest "the status of a message goes forward only" => sub {
    my ($s, $other) = (space(), space());
    my $talk = talk($s);
    my $elsewhere = message($other, talk($other), external_id => "M", status => "sent");
    # what it is, what is reported, what it is then; of one that crmapid sends
    for (["queued", "sent", "sent"], ["sent", "delivered", "delivered"],
            ["delivered", "read", "read"], ["sent", "failed", "failed"],
            ["delivered", "failed", "failed"], [undef, "accepted", "accepted"],
            ["sent", "queued", "sent"], ["delivered", "sent", "delivered"],
            ["read", "delivered", "read"], ["failed", "delivered", "failed"],
            ["undelivered", "sent", "undelivered"],
            ["failed", "undelivered", "failed"],
            ["accepted", "queued", "queued"], ["queued", "sending", "sending"],
            ["queued", "undelivered", "undelivered"],
            ["queued", "accepted", "queued", 1],
            ["queued", "sending", "queued", 1], ["queued", "sent", "sent", 1],
            ["queued", "undelivered", "failed", 1],
            ["sent", "undelivered", "failed", 1],
            # those of messages that are to be sent later
            ["accepted", "scheduled", "scheduled"], ["scheduled", "queued", "queued"],
            ["scheduled", "sent", "sent"], ["queued", "scheduled", "queued"],
            ["scheduled", "canceled", "canceled"], ["canceled", "sent", "canceled"],
            ["queued", "scheduled", "queued", 1],
            # a word of another provider says that it is on its way
            ["submitted", "delivered", "delivered"], ["submitted", "sent", "sent"],
            ["submitted", "buffered", "buffered"], ["submitted", "failed", "failed"],
            ["submitted", "queued", "submitted"], ["sent", "buffered", "buffered"],
            ["rejected", "sent", "rejected"], ["expired", "delivered", "expired"],
            ["bounced", "sent", "bounced"]) {
        my ($is, $reported, $becomes, $ours) = @$_;
        my $name = "M" . ++$events;
        my ($old, $new) = map { message($s, $talk, external_id => $name,
            status => $is, created_at => "2026-12-0${_}Z", $ours
            ? (handed_over => true) : ()) } 1, 2;
        is(taken($s, external_id => $name, status => $reported)->{message}, $new,
            "the newest of that name");
        is(value("message", $new, "status"), $becomes, ($ours ? "ours, " : "")
            . ($is // "none") . ", then $reported: $becomes");
        is(value("message", $old, "status"), $is, "not an older one");
    }
    is(sql($db, "SELECT string_agg(s, ' ') FROM unnest('{queued,sent,read,buffered}'"
        . "::text[]) s WHERE crmapi.status_follows(s, s)"), undef,
        "a report that repeats what is known changes nothing");
    is(value("message", $elsewhere, "status"), "sent", "of no other workspace");
    # by the id of an answer or a step, as the relay's report names it
    my %new = (status => "queued", step_id => uuid());
    my ($waits, $sent, $step) = map { message($s, $talk, %$_) }
        { %new, step_id => undef }, { %new, step_id => undef, handed_over => true },
        { %new, handed_over => true };
    my %report = (external_id => "unknown", status => "delivered");
    is(taken($s, %report, answer_id => $waits)->{field}, "message.external_id",
        "what no relay has got");
    is(value("message", $waits, "status"), "queued", "is not delivered");
    is(taken($other, %report, answer_id => $sent)->{field},
        "message.external_id", "nor by another workspace");
    is(taken($s, %report, answer_id => $sent)->{message}, $sent, "an answer");
    is(taken($s, %report, answer_id => $new{step_id})->{message}, $step, "a step");
    is(value("message", $_, "status"), "delivered", "is") for $sent, $step;
};

subtest "what opens a conversation again" => sub {
    my $s = space();
    my %over = (active => false, archived => true, archived_at => "2026-12-01Z");
    for (["a message", "t f -", content => "x"],
            ["a message without words", "t f -", content => ""],
            ["a message of a tool", "t f -", role => "tool", tool_used => "x"],
            ["what is found out later", "f t 2026", score => 0.5],
            ["a call that is over", "f t 2026", ended => true],
            ["an absence notice", "f t 2026", content => "x", automatic => true,
                metadata => { automatic => "auto-reply" }],
            ["what a help desk sends", "t f -", content => "x", automatic => true,
                metadata => { automatic => "auto-reply", generated => true }]) {
        my ($what, $becomes, %item) = @$_;
        my $talk = talk($s, %over);
        taken($s, conversation_id => $talk, %item);
        is(value("conversation", $talk, "concat_ws(' ', active, archived,
            coalesce(extract(year FROM archived_at)::text, '-'))"), $becomes, $what);
    }
};

subtest "what a conversation has stays, whatever an event says" => sub {
    my $s = space();
    my %has = (thread => "T", visitor_id => "V", subject => "S",
        contact_id => make("contact", %{$s->{owned}}));
    my $other = make("contact", %{$s->{owned}}, emails => [{
        email => "o\@x.example", is_primary => true }]);
    my %says = (thread => "T2", visitor_id => "V2", subject => "S2",
        email => "o\@x.example", verified => true, content => "new",
        occurred_at => "2026-01-04T10:00Z");
    for my $full (0, 1) {
        my $talk = talk($s, type => 4, active => true, last_message => "old",
            last_message_at => "2026-01-04T10:00Z",
            last_active_at => "2026-01-04T12:00Z", $full ? %has : ());
        taken($s, conversation_id => $talk, %says);
        is(value("conversation", $talk, "concat_ws(' ', thread, visitor_id,
            subject, contact_id)"), $full ? "T V S $has{contact_id}"
            : "T2 V2 S2 $other", $full ? "it has all" : "it had nothing");
        is(value("conversation", $talk, "concat_ws(' ', last_message,
            last_message_at = '2026-01-04T10:00Z',
            last_active_at = '2026-01-04T12:00Z')"), "new t t",
            "of two messages of one time the later one is the last");
        taken($s, conversation_id => $talk, content => "older",
            occurred_at => "2026-01-04T09:00Z");
        is(value("conversation", $talk, "last_message"), "new", "an older one is"
            . " not");
        taken($s, conversation_id => $talk, score => 0.5);
        is(value("conversation", $talk, "active"), "t", "it stays open");
    }
};

subtest "the name that is told last is the participant's" => sub {
    my $s = space();
    my $talk = talk($s, human => "Old");
    taken($s, conversation_id => $talk, content => "x", verified => true, %$_)
        for { name => "New" }, {};
    is(value("conversation", $talk, "human"), "New", "it is kept");
};

subtest "who answers in a conversation, until it is said otherwise" => sub {
    my $s = space();
    my $talk = talk($s);
    for ([{ takeover => true }, "t"], [{}, "t"], [{ takeover => false }, "f"]) {
        taken($s, conversation_id => $talk, content => "x", %{$_->[0]});
        is(value("conversation", $talk, "human_takeover"), $_->[1],
            $_->[1] eq "t" ? "a person" : "the agent");
    }
};

subtest "19 which messages of a channel a chat's visitor has to see" => sub {
    my $s = space();
    sql($db, "UPDATE crmapi.agent SET chat_mail_fallback = 5
        WHERE id = '$s->{bot}'");
    for (["an answer", 1, role => "assistant"], ["a teammate's", 1, role => "human"],
            ["one that goes out", 1, outbound => true], ["the visitor's", 0],
            ["a call of a tool", 0, role => "assistant", tool_used => "t"],
            ["what is noted", 0, role => "system"]) {
        my ($what, $is, %item) = @$_;
        my $talk = talk($s, type => 1, visitor_id => "v");
        taken($s, conversation_id => $talk, content => "x", %item);
        is(sql($db, "SELECT count(*) FROM crmapi.chat_unseen WHERE
            conversation_id = '$talk'"), $is, $what);
    }
};

subtest "what a channel says happens later has happened now" => sub {
    my $s = space();
    my $talk = talk($s);
    my %said = map { $_ => taken($s, conversation_id => $talk, content => "x",
        occurred_at => $_)->{message} } "2100-01-01Z", "2026-01-01T10:00:00Z";
    is(value("message", $said{"2100-01-01Z"}, "created_at <= now()"), "t",
        "not in the future");
    is(value("message", $said{"2026-01-01T10:00:00Z"},
        "created_at = '2026-01-01T10:00:00Z'"), "t", "in the past it is taken");
};

subtest "18.4 a claim says with whom a new conversation is, and changes nothing" => sub {
    my $s = space();
    my $new = taken($s, channel => 1, bot_id => $s->{bot}, visitor_id => "c1",
        email => "claim\@x.example", name => "C", content => "x")->{conversation};
    is(value("conversation", $new, "concat_ws(' ', email, human)"),
        "claim\@x.example C", "a new one");
    my %at = (phone => "+4930123456", email => "s\@x.example");
    my $suppressed = sub { scalar sql($db, "SELECT count(*) FROM crmapi.suppression
        WHERE workspace_id = '$s->{id}'") };
    for my $sort ("phone", "email") {
        my %item = (channel => $sort eq "phone" ? 3 : 4, bot_id => $s->{bot},
            content => "STOP", $sort eq "phone" ? (phone_number => $at{phone})
            : (email => $at{email}));
        my $before = $suppressed->();
        taken($s, %item, suppress => $sort);
        is($suppressed->(), $before, "a claim stops nothing: $sort");
        taken($s, %item, suppress => $sort, verified => true);
        is($suppressed->(), $before + 1, "who is verified does");
    }
    my %start = (channel => 3, bot_id => $s->{bot}, content => "START",
        phone_number => $at{phone}, lift => "phone");
    sql($db, "UPDATE crmapi.conversation SET active = false
        WHERE workspace_id = '$s->{id}'");      # the claim opens another one
    taken($s, %start);
    is($suppressed->(), 2, "nor does a claim start anything");
    taken($s, %start, verified => true);
    is($suppressed->(), 1, "who is verified does");
    sql($db, "DELETE FROM crmapi.suppression");
};

subtest "17.5 whose address a relay refuses: of what we have sent" => sub {
    my $s = space();
    for my $ours (0, 1) {
        message($s, talk($s), external_id => "R$ours", status => "sent",
            to_identifier => "+493012345$ours", $ours ? (handed_over => true) : ());
        taken($s, external_id => "R$ours", status => "failed", reason => "bounced");
        is(sql($db, "SELECT count(*) FROM crmapi.suppression WHERE workspace_id =
            '$s->{id}'"), $ours, $ours ? "its address" : "not what others sent");
    }
    sql($db, "DELETE FROM crmapi.suppression");
};

subtest "whom a new contact's message stops: who has its address as another one" => sub {
    my $s = space();
    my $e = enrolled($s, status => "approved", contact => {
        emails => [map { { email => "$_\@x.example",
            is_primary => $_ eq "own" ? true : false } } qw(own second)],
        phone_numbers => [map { { phone_number => "+49301234$_",
            is_primary => $_ == 1 ? true : false } } 1, 2] });
    my %mail = (channel => 4, bot_id => $s->{bot}, content => "x", verified => true);
    my $is = sub { value("enrollment", $e->{id}, "status") };
    isnt(taken($s, %mail, email => "new\@x.example", phone_number => "+493012342")
        ->{contact}, $e->{contact}, "another contact");
    is($is->(), "approved", "not by a number that a mail gives");
    taken($s, %mail, email => "second\@x.example");
    is($is->(), "stopped_reply", "by the address that it comes from");
};

subtest "a call that nobody has transcribed is a reply" => sub {
    my $s = space();
    my $e = enrolled($s, status => "approved", contact => { phone_numbers =>
        [{ phone_number => "+4930123456", is_primary => true }] });
    my %call = (channel => 2, bot_id => $s->{bot}, phone_number => "+4930123456",
        thread => "T", verified => true);
    taken($s, %call);
    is(value("enrollment", $e->{id}, "status"), "approved", "not while it rings");
    taken($s, %call, minutes => 3);
    is(value("enrollment", $e->{id}, "status"), "stopped_reply", "but afterwards");
};

subtest "what is refused may come again under its id" => sub {
    my $s = space();
    my %event = (event_id => "again", channel => 4, email => "r\@x.example",
        content => "x");
    is(taken($s, %event, bot_id => uuid())->{field}, "bot_id", "it is refused");
    ok(taken($s, %event, bot_id => $s->{bot})->{message}, "then it is taken");
};

subtest "who has written is the conversation's contact, unless it is said" => sub {
    my $s = space();
    my $its = make("contact", %{$s->{owned}});
    my $talk = talk($s, contact_id => $its);
    my $form = make("form", %{$s->{owned}}, name => "F");
    my $is = taken($s, conversation_id => $talk, content => "x", form_id => $form);
    is($is->{contact}, $its, "nobody is named: the conversation's");
    is(sql($db, "SELECT contact_id FROM crmapi.submission
        WHERE form_id = '$form'"), $its, "so is the form");
    is(value("message", $is->{message}, "metadata ->> 'user_id'"), undef,
        "no teammate");
    is(value("message", taken($s, conversation_id => $talk, content => "x",
        role => "human", author => "u-7")->{message}, "metadata ->> 'user_id'"),
        "u-7", "a teammate is named");
};

subtest "10.1 what is automatic makes no contact" => sub {
    my $s = space();
    my %mail = (channel => 4, bot_id => $s->{bot}, email => "new\@x.example",
        content => "x", verified => true);
    is(taken($s, %mail, automatic => true)->{contact}, undef, "no contact");
    ok(taken($s, %mail)->{contact}, "a person makes one");
};

subtest "the use of a token is recorded at most once a minute" => sub {
    my $s = space();
    my $key = make("intake_key", %{$s->{in}}, name => "K", display => "k",
        key_hash => \"sha256('k')");
    for (["NULL", "t"], ["now() - interval '30 s'", "f"],
            ["now() - interval '61 s'", "t"]) {
        my ($before, $is) = @$_;
        sql($db, "UPDATE crmapi.intake_key SET last_used_at = $before
            WHERE id = '$key'; SELECT FROM crmapi.intake('$s->{id}', sha256('k'), "
            . quoted([{ event_id => "e-" . ++$events, channel => 4,
                bot_id => $s->{bot}, email => "k\@x.example", content => "x" }])
            . ")");
        is(value("intake_key", $key, "last_used_at > now() - interval '20 s'"),
            $is, "last used: $before");
    }
    sql($db, "UPDATE crmapi.intake_key SET last_used_at = NULL WHERE id = '$key'");
    my $end = holding($db, "SELECT FROM crmapi.intake_key WHERE id = '$key' FOR UPDATE");
    ok(eval { sql($db, "SET lock_timeout = '10 s';
        SELECT crmapi.intake_use_key('$s->{id}', sha256('k'))"); 1 },
        "nobody waits for another one who records it") or diag($@);
    $end->();
};

subtest "10.5 whoever an event names is locked, all in one order" => sub {
    my $s = space();
    # whether nobody holds the lock of NAME
    my $free = sub { scalar sql($db, "SELECT pg_try_advisory_xact_lock("
        . "hashtextextended('$s->{id}' || '$_[0]', 0))") };
    my $locking = sub { "SELECT crmapi.intake_lock('$s->{id}', ARRAY(SELECT
        jsonb_populate_record(NULL::crmapi.intake_item, i) FROM
        jsonb_array_elements(" . quoted([@_]) . ") i))" };
    my $end = holding($db, $locking->({ email => "Ada\@X.example", visitor_id => "V" },
        { phone_number => "+49 30 901820", thread => "T" }));
    is($free->($_), "f", "as an upsert does: $_")
        for ":e:ada\@x.example", ":p:+4930901820", ":v:V", ":t:T";
    $end->();
    my @order = map { $_->[0] } sql($db, "SELECT ':v:' || n FROM generate_series(1, 9)
        n ORDER BY hashtextextended('$s->{id}:v:' || n, 0)");
    $end = holding($db, "SELECT pg_advisory_xact_lock(hashtextextended("
        . "'$s->{id}$order[4]', 0))");
    my $waits = CrmTest::Child->start(sub {
        sql($db, $locking->(map { { visitor_id => "$_" } } 1 .. 9)) });
    wait_blocked($db, 1);
    is(join(" ", grep { $free->($_) eq "f" } @order), "@order[0 .. 4]",
        "who waits for one holds those before it");
    $end->();
    $waits->result;
    # their agents
    my ($first, $second) = sort $s->{bot}, make("agent", %{$s->{in}}, name => "B");
    $end = holding($db, "SELECT FROM crmapi.agent WHERE id = '$second' FOR UPDATE");
    $waits = CrmTest::Child->start(sub { sql($db,
        "SELECT crmapi.intake_count('$s->{id}', '{$second,$first,$second}')") });
    wait_blocked($db, 1);
    refused("SELECT FROM crmapi.agent WHERE id = '$first' FOR UPDATE NOWAIT",
        qr/could not obtain lock/, "the first agent is locked first");
    $end->();
    $waits->result;
    # the events themselves
    $end = holding($db, row("intake_event", %{$s->{in}}, event_id => "o5"));
    $waits = CrmTest::Child->start(sub {
        sql($db, "SELECT FROM crmapi.intake('$s->{id}', NULL, " . quoted([map {
            { event_id => "o$_", channel => 4, bot_id => $s->{bot}, thread => "T",
                content => "x" } } reverse 1 .. 9]) . ")") });
    wait_blocked($db, 1);
    my $held = sub { !eval { sql($db, "BEGIN; SET LOCAL lock_timeout = '50 ms'; "
        . row("intake_event", %{$s->{in}}, event_id => $_[0]) . "ROLLBACK"); 1 } };
    is(join(" ", grep { $held->($_) } map { "o$_" } 1 .. 4, 6 .. 9), "o1 o2 o3 o4",
        "by their ids");
    $end->();
    $waits->result;
};

subtest "whom a text or a call stops: who was texted at that number" => sub {
    for my $channel (2, 3) {
        my $s = space();
        my $number = "+4930123456";
        my %with = (type => 3, phone_number => "+49 (30) 123456");
        my ($texted, $wrote, $new) = map { enrolled($s, status => "approved") } 1 .. 3;
        message($s, talk($s, %with, contact_id => $texted->{contact}),
            step_id => uuid(), role => "assistant");
        message($s, talk($s, %with, contact_id => $wrote->{contact}));
        message($s, talk($s, %with, phone_number => "+4930123457",
            contact_id => $new->{contact}), step_id => uuid());
        my $is = taken($s, channel => $channel, bot_id => $s->{bot},
            phone_number => $number, content => "Hi", verified => true);
        isnt($is->{contact}, $texted->{contact}, "another contact has it now");
        is(value("enrollment", $_->[0]{id}, "status"), $_->[1],
            "channel $channel: $_->[2]")
            for [$texted, "stopped_reply", "who got a step there"],
                [$wrote, "approved", "not who only wrote from there"],
                [$new, "approved", "nor who was texted elsewhere"];
    }
};

subtest "18.4 whom a reply stops: whose mail it proves to answer" => sub {
    my $s = space();
    # The state of one who got a mail, and of one who answers it by ITEM.
    my $reply = sub {
        my ($of, %item) = @_;
        my ($got, $writes) = map { enrolled($s, status => "approved") } 1, 2;
        my $name = "<" . ++$events . "\@x.example>";
        my $talk = talk($s, contact_id => $got->{contact});
        message($s, $talk, external_id => $name, %$of);
        taken($s, channel => 4, bot_id => $s->{bot}, refs => [$name],
            content => "Yes", email => value("contact", $writes->{contact},
                "email_key"), %item);
        return join " ", map { value("enrollment", $_->{id}, "status") } $got,
            $writes;
    };
    my %ours = (role => "human");
    is($reply->(\%ours, verified => true), "stopped_reply stopped_reply",
        "of another contact, who is verified: both");
    is($reply->(\%ours), "stopped_reply approved", "who is not: its contact's");
    is($reply->({ role => "system", reply_id => "r" }), "stopped_reply approved",
        "a mail about a chat is ours");
    is($reply->({ role => "user" }), "approved approved",
        "a message that came in proves nothing");
    is($reply->({ role => "system" }), "approved approved", "nor does a report");
    is($reply->(\%ours, automatic => true), "approved approved",
        "nor is an automatic one a reply");
    is($reply->(\%ours, role => "system"), "approved approved", "nor a bounce");
    my $e = enrolled($s, status => "approved");
    my %named = (external_id => "<ours\@x.example>", role => "human");
    my %item = (channel => 4, bot_id => $s->{bot}, refs => ["<ours\@x.example>"],
        content => "Yes", email => "nobody\@x.example");
    message($s, talk($s), %named);
    my $talk = talk($s, contact_id => $e->{contact}, email => "p\@x.example");
    taken($s, %item, conversation_id => $talk);
    is(value("enrollment", $e->{id}, "status"), "approved",
        "a mail of ours in another conversation proves nothing in this one");
    message($s, $talk, %named, external_id => "<this\@x.example>");
    my $said = taken($s, %item, refs => ["<this\@x.example>"], verified => true);
    is(value("message", $said->{message}, "metadata ->> 'verified'"), "false",
        "whoever is verified, and no contact, is not the conversation's");
    is(value("conversation", $talk, "email"), "p\@x.example", "which stays so");
};

subtest "18.4 a proof is of who got the mail, from an address that is its own" => sub {
    my $s = space();
    my $address = sub { { email => "$_[0]\@x.example",
        is_primary => $_[1] ? JSON::PP::true : JSON::PP::false } };
    # who got a mail has the address of another one beside its own
    my ($got, $writes) = map { enrolled($s, status => "approved", steps => [{}],
        contact => { emails => $_ }) } [$address->("got", 1), $address->("writes")],
        [$address->("writes", 1)];
    message($s, talk($s, contact_id => $got->{contact}), role => "human",
        external_id => "<proof\@x.example>");
    my %item = (channel => 4, bot_id => $s->{bot}, email => "writes\@x.example",
        content => "Yes");
    my $verified = sub { value("message", taken($s, %item, @_)->{message},
        "metadata ->> 'verified'") };
    is($verified->(refs => ["<proof\@x.example>"]), "false",
        "not of who has that address as the first one");
    is_deeply([map { value("enrollment", $_->{id}, "status") } $got, $writes],
        ["stopped_reply", "approved"], "whose sequence goes on");
    is($verified->(step_id => $got->{steps}[0], email => "other\@x.example",
        verified => true), "false", "nor of a step's contact, from whatever address");
    is($verified->(step_id => $got->{steps}[0]), undef, "from any of its own it is");
};

subtest "which conversation an event goes on with, the latest of its agent" => sub {
    my $s = space();
    my $agent = make("agent", %{$s->{in}}, name => "Other");
    my %chat = (type => 1, active => true, visitor_id => "V");
    my ($latest) = map { talk($s, %chat, created_at => "2026-12-0${_}Z") } 2, 1;
    my %item = (channel => 1, visitor_id => "V", content => "x");
    is(taken($s, %item, bot_id => $s->{bot})->{conversation}, $latest, "a visitor's");
    my $other = taken($s, %item, bot_id => $agent)->{conversation};
    is(value("conversation", $other, "bot_id"), $agent, "with another agent another one");
    ($latest) = map { talk($s, type => 3, thread => "T", created_at =>
        "2026-12-0${_}Z") } 2, 1;
    is(taken($s, channel => 3, bot_id => $s->{bot}, thread => "T",
        content => "x")->{conversation}, $latest, "a thread's");
    my $known = taken($s, %item, visitor_id => "W", bot_id => $s->{bot},
        automatic => true, email => "w\@x.example")->{conversation};
    is(value("conversation", $known, "thread"), undef,
        "who is a visitor needs no other name");
    taken($s, conversation_id => $known, email => "new\@x.example", verified => true,
        content => "x");
    is(value("conversation", $known, "email"), "new\@x.example",
        "and writes from the address that was used last");
};

subtest "what follows a comma of a name is no first name if it is a title" => sub {
    my $first = sub { scalar sql($db, "SELECT crmapi.intake_texts(jsonb_populate_record("
        . "NULL::crmapi.intake_item, " . quoted({ name => $_[0] })
        . ")) ->> 'first_name'") };
    for (qw(jr sr ii iii iv phd md dds rn esq mba cpa cfa inc ltd llc llp plc corp
            gmbh kg ag)) {
        is($first->("Ada Lovelace, $_"), "Ada", $_);
        is($first->("Ada Lovelace, \U$_."), "Ada", uc);
    }
    is($first->("Lovelace, Ada"), "Ada", "as directories write it");
    is($first->("Lovelace, Ada (Example)"), "Ada", "and with a department");
    is($first->("Lovelace, Ada [Example, London]"), "Ada");
};

subtest "a title is no first name" => sub {
    my $names = sub { scalar sql($db, "SELECT concat(t ->> 'first_name', '|',"
        . " t ->> 'last_name') FROM crmapi.intake_texts(jsonb_populate_record("
        . "NULL::crmapi.intake_item, " . quoted({ name => $_[0] }) . ")) t") };
    for my $title (qw(Dr. Dr Mr. Mr MRS Mrs. Ms. Mx. Miss Prof. Professor Sir Herr Frau
                   Mme Mlle. Monsieur Madame Rev. Dott. Sra. Srta. Dipl.-Ing. Ing. Mag.
                   Sr. Sig. Dhr. Mevr.), "Prof. Dr.", "Herr Dr.") {
        is($names->("$title Ada King"), "Ada|King", $title);
    }
    is($names->("Dr. King"), "|King", "one word behind it is the last name");
    is($names->("King, Dr. Ada"), "Ada|King", "a title behind the comma");
    is($names->("Dr. King, Ada"), "Ada|King", "a title before it");
    is($names->("$_ King"), "$_|King", "no title: $_")
        for qw(Mag Sr Drew Mrinal Sirius Ing Missy Frauke);
    is($names->("Dr."), "Dr.|", "a title alone is a name");
};

subtest "what programs add to a name is no part of it" => sub {
    my $names = sub { scalar sql($db, "SELECT concat(t ->> 'first_name', '|',"
        . " t ->> 'last_name') FROM crmapi.intake_texts(jsonb_populate_record("
        . "NULL::crmapi.intake_item, " . quoted({ name => $_[0] }) . ")) t") };
    for ("[EXT] Ada King", "[External] Ada King", "EXTERNAL: Ada King", "(Extern) Ada King",
            "*EXT* Ada King", "***SPAM*** Ada King", "[EXTERNAL]: Ada King",
            "[EXT] [SPAM] Ada King", "Ada King [External]", "Ada King (EXT)",
            "Ada King via Sales", "'Ada King' via Sales", "Ada King (via Google Docs)",
            "'Ada King'", "\"Ada King\"", "\x{201e}Ada King\x{201c}",
            "\x{2018}Ada King\x{2019}", "Ada King <ada\@x.example>",
            "\x{1f31f}Ada King\x{1f31f}", "\x{2728} Ada King \x{2764}\x{fe0f}",
            "Ada King\x{2122}", "[EXT] King, Ada", "KING Ada", "'KING Ada' via Sales",
            "[EXT] Dr. Ada King") {
        my $is = $names->($_);
        is($is =~ s/KING/King/r, "Ada|King", $_);
    }
    is($names->($_), "|", "$_: nobody's name") for "undefined", "null", "None", "N/A",
        "(unknown)", "Anonymous", "undefined undefined", "null null", "[object Object]",
        "ada\@x.example", "'ada\@x.example'", "<ada\@x.example>", "[EXT] ada\@x.example",
        "+49 (30) 90-1820", "030/901820", "NULL", "ada\@x.example via Sales";
    is($names->("Mr & Mrs King"), "|King", "a couple");
    is($names->("Herr und Frau King"), "|King", "a couple in German");
    is($names->("Mr. and Mrs. Charles King"), "Charles|King", "with a first name");
    is($names->("Ada King, $_"), "Ada|King, $_", $_) for "Sales Manager", "CEO",
        "Head of Marketing", "Vertrieb", "Kundenservice", "Geschäftsführer";
    for (["JP Morgan", "JP|Morgan"], ["IKEA Kundenservice", "IKEA|Kundenservice"],
            ["ACME Support", "ACME|Support"], ["ADA KING", "ADA|KING"],
            ["DUPONT-MARTIN Jean-Luc", "Jean-Luc|DUPONT-MARTIN"],
            ["LÉVÊQUE Zoé", "Zoé|LÉVÊQUE"], ["O'BRIEN Ann", "Ann|O'BRIEN"],
            ["Sinéad O'Brien", "Sinéad|O'Brien"], ["Ana de la Cruz", "Ana|de la Cruz"],
            ["Nguyễn Văn An", "Nguyễn|Văn An"], ["李小龍", "李小龍|"],
            ["محمد علي", "محمد|علي"], ["X Æ A-12", "X|Æ A-12"], ["Null", "|"],
            ["Christopher Null", "Christopher|Null"], ["Ada", "Ada|"],
            ["Externa King", "Externa|King"], ["Ada \"Countess\" King",
            "Ada|\"Countess\" King"], ["D'Angelo", "D'Angelo|"], ["Via Rossi", "Via|Rossi"],
            ["\x{1f31f}", "\x{1f31f}|"], ["[EXT]", "[EXT]|"], ["24 Hour Help", "24|Hour Help"],
            ["Ada Spam", "Ada|Spam"], ["Caution", "Caution|"]) {
        is($names->($_->[0]), $_->[1], $_->[0]);
    }
};

subtest "a name that is made of first and last name is not taken apart" => sub {
    my $names = sub { scalar sql($db, "SELECT concat(t ->> 'first_name', '|',"
        . " t ->> 'last_name') FROM crmapi.intake_texts(jsonb_populate_record("
        . "NULL::crmapi.intake_item, " . quoted({ name => shift, contact => {@_} })
        . ")) t") };
    my @first = (first_name => "Ada Augusta");
    my @last = (last_name => "Byron King");
    is($names->("Byron King", @last), "|Byron King", "a last name alone");
    is($names->("Ada Augusta", @first), "Ada Augusta|", "a first name alone");
    is($names->("Ada Augusta Byron King", @first, @last), "Ada Augusta|Byron King",
        "both");
    is($names->("King", last_name => "King"), "|King", "of one word");
    is($names->("Ada King", @last), "Ada|Byron King", "another name has the first one");
    is($names->("Ada King", @first), "Ada Augusta|King", "or the last one");
    is($names->("Ada King", city => "London"), "Ada|King", "or both");
};

subtest "18.6 the conversation of a reply to a step is its contact's" => sub {
    my $s = space();
    my $e = enrolled($s, status => "approved", steps => [{}]);
    my $name = "<step\@x.example>";
    my $own = talk($s, contact_id => $e->{contact}, deleted => true,
        deleted_at => "2026-12-01Z");
    message($s, $own, external_id => $name, role => "assistant",
        step_id => $e->{steps}[0]);
    my $strange = talk($s, email => "mallory\@x.example");
    message($s, $strange, external_id => $name);
    my %item = (channel => 4, bot_id => $s->{bot}, refs => [$name],
        step_id => $e->{steps}[0], content => "Yes", email => "p\@x.example");
    my $got = taken($s, %item);
    isnt($got->{conversation}, $strange, "not a stranger's who used its name");
    isnt($got->{conversation}, $own, "nor one that is deleted");
    is(value("conversation", $got->{conversation}, "contact_id"), $e->{contact},
        "but one of the contact's");
    sql($db, "UPDATE crmapi.conversation SET deleted = false, deleted_at = NULL
        WHERE id = '$own'");
    is(taken($s, %item)->{conversation}, $own, "that of the mail");
    my $agent = make("agent", %{$s->{in}}, name => "Other");
    isnt(taken($s, %item, bot_id => $agent)->{conversation}, $own,
        "another agent has its own");
    isnt(taken($s, %item, channel => 3, phone_number => "+49301", email => undef,
        refs => undef)->{conversation}, $own, "so has another channel");
};

subtest "18.6 of several messages that are answered the last one named counts" => sub {
    my $s = space();
    my @talks = map { talk($s) } 1 .. 4;
    my @name = map { "<$_\@x.example>" } 1 .. 4;
    message($s, $talks[$_], external_id => $name[$_], role => $_ < 2 ? "user"
        : "assistant") for 0 .. 3;
    for (["of what came in", 1, 0, 1], ["of what came in", 0, 1, 0],
            ["of ours", 3, 2, 3], ["of ours", 2, 3, 2], ["ours", 2, 2, 1]) {
        my ($what, $is, @refs) = @$_;
        is(taken($s, channel => 4, bot_id => $s->{bot}, content => "x",
            email => "p\@x.example", refs => [@name[@refs]])->{conversation},
            $talks[$is], "$what: " . join " ", @name[@refs]);
    }
};

subtest "18.4 which of our mails is named" => sub {
    my $s = space();
    my $talk = talk($s);
    my $other = space();        # another workspace has mails of the same names
    my $theirs = talk($other);
    my $e = enrolled($other, status => "approved", steps => [{
        message_id => "<one\@x.example>", reply_id => "two",
        provider_id => "abcdefghijklmnop1" }]);
    message($other, $theirs, role => "human", external_id => "<two\@x.example>",
        reply_id => "one", provider_id => "abcdefghijklmnop1");
    my %of;
    # what a relay told of a mail counts if it cannot be guessed
    for (["one"], ["two"], ["relay", "abcdefghijklmnop1"],
            ["word", "abcdefghijklmnopq"]) {
        my ($name, $provider) = @$_;
        $of{message($s, $talk, role => "human", external_id =>
            "<$name\@x.example>", reply_id => $name, provider_id => $provider)}
            = $name;
    }
    for (["<one\@x.example>,<two\@x.example>", "", "two"],
            ["<two\@x.example>,<one\@x.example>", "", "one"],
            ["", "two,one", "one"], ["<one\@x.example>", "two", "two"],
            ["<abcdefghijklmnop1\@relay.example>", "", "relay"],
            ["<abcdefghijklmnopq\@relay.example>", "", "none"]) {
        my ($refs, $tokens, $is) = @$_;
        is($of{sql($db, "SELECT answer_id FROM crmapi.mail_named('$s->{id}',
            '{$refs}', '{$tokens}')") // ""} // "none", $is,
            "references $refs, tokens $tokens");
        is(sql($db, "SELECT count(*) FROM crmapi.mail_named('" . space()->{id}
            . "', '{$refs}', '{$tokens}')"), 0, "nor by a workspace without any");
    }
};

subtest "18.4 which step's mail is named, and what is no mail of ours" => sub {
    my $s = space();
    my $ses = "0102018c1a2b3c4d-01234567-89ab-cdef-0123-456789abcdef-000000";
    my $e = enrolled($s, status => "approved", steps => [
        { message_id => "<step\@x.example>", reply_id => "token" },
        { message_id => "<ses\@x.example>", provider_id => $ses },
        { message_id => "<short\@x.example>", provider_id => "guess-1" },
        { channel => "sms", sms_body => "S", to_identifier => "+49301",
            message_id => "<sms\@x.example>", reply_id => "sms",
            provider_id => "abcdefghijklmnop1" }]);
    my $talk = talk($s);
    my $ours = message($s, $talk, role => "human", reply_id => "ours",
        external_id => "<ours\@x.example>");
    # what came in, and what a backend brought
    message($s, $talk, role => $_, external_id => "<$_\@x.example>",
        provider_id => "abcdefghijklmnop2") for "user", "human";
    my ($step, $by_ses) = @{$e->{steps}};
    for (["{<step\@x.example>}", "{}", $step], ["{}", "{token}", $step],
            ["{<ours\@x.example>}", "{token}", $step],
            ["{<step\@x.example>}", "{ours}", $ours],
            ["{<$ses\@eu.amazonses.com>}", "{}", $by_ses],
            ["{<$ses\@amazonses.com>}", "{}", $by_ses],
            ["{<guess-1\@x.example>}", "{}"],
            ["{<$ses\@noamazonses.com>}", "{}"], ["{<$ses\@x.example>}", "{}"],
            ["{<sms\@x.example>,<abcdefghijklmnop1\@x.example>}", "{sms}"],
            ["{<user\@x.example>,<human\@x.example>}", "{}"],
            ["{<abcdefghijklmnop2\@x.example>}", "{}"]) {
        my ($refs, $tokens, $is) = @$_;
        is(sql($db, "SELECT coalesce(step_id, answer_id) FROM crmapi.mail_named(
            '$s->{id}', '$refs', '$tokens')"), $is, "references $refs, tokens"
            . " $tokens: " . ($is ? "it is" : "none"));
    }
};

subtest "18.4 the thread of an answer" => sub {
    my $s = space();
    # The References of an answer after MESSAGES, an hour apart.
    my $thread = sub {
        my (@messages) = @_;
        my $talk = talk($s);
        my $hour = 0;
        message($s, $talk, created_at => sprintf("2026-12-04T%02d:00Z", $hour++),
            %$_) for @messages;
        my $answer = message($s, $talk, role => "human", created_at =>
            sprintf "2026-12-04T%02d:00Z", $hour++);
        message($s, $talk, external_id => "<later\@x>", created_at =>
            sprintf "2026-12-04T%02d:00Z", $hour);
        return sql($db, "SELECT (crmapi.answer_names('$s->{id}', '$answer',
            'x.example'))[3]");
    };
    my $refs = sub { my ($name, @refs) = @_; return { external_id => $name,
        metadata => { references => \@refs } } };
    is($thread->(), undef, "none");
    is($thread->({ external_id => "<1\@x>" }, $refs->("<3\@x>", "<2\@x>")),
        "<2\@x> <3\@x>", "what the last one names, and that, nothing later");
    is($thread->({ external_id => "<1\@x>" }, { external_id => "<b\@x>",
        role => "system" }), "<1\@x>", "not a bounce");
    is($thread->({ external_id => "<1\@x>" }, { external_id => "<b\@x>",
        role => "system", reply_id => "r" }), "<b\@x>", "but a mail about a chat");
    is($thread->({ external_id => "<1\@x>" }, { external_id => "SM1" }),
        "<1\@x>", "not what is no Message-ID");
    is($thread->($refs->("<3\@x>", "<a b\@x>", "<2\@x", "<x>\n<2\@x>", "<2\@x>",
        "<" . "a" x 900 . "\@x>", "<>", "<\xfc\@x>")), "<2\@x> <3\@x>",
        "what cannot be in a header is left out");
    is($thread->($refs->("<3>", "<" . "a" x 800 . "\@x>", "<2\@x\@y>")),
        "<" . "a" x 800 . "\@x> <2\@x\@y> <3>", "but not what is only unusual");
    is($thread->($refs->("<21\@x>", map { "<$_\@x>" } 1 .. 20)),
        join(" ", map { "<$_\@x>" } 1 .. 21), "21 are kept");
    is($thread->($refs->("<30\@x>", map { "<$_\@x>" } 1 .. 29)),
        join(" ", map { "<$_\@x>" } 1, 11 .. 30), "of more the first and the last 20");
};

subtest "17.5 why an address is suppressed, and what lifts that" => sub {
    my $s = space();
    my $suppress = sub { sql($db, "SELECT crmapi.suppress('$s->{id}',
        'a\@x.example', NULL, " . quoted($_[0]) . ")") };
    my $reason = sub { scalar sql($db, "SELECT coalesce(max(reason), 'none') ||
        ' ' || count(*) FROM crmapi.suppression") };
    my $lift = sub { sql($db, "SELECT crmapi.suppress_lift('$s->{id}',
        'A\@x.example', NULL, " . quoted($_[0]) . ")") };
    for (["unsubscribed", "bounced", "bounced"],
            ["unsubscribed", "complaint", "complaint"],
            ["unsubscribed", "asked to", "unsubscribed"],
            ["bounced", "unsubscribed", "bounced"],
            ["complaint", "unsubscribed", "complaint"],
            ["bounced", "complaint", "bounced"],
            ["complaint", "bounced", "complaint"],
            ["asked to", "bounced", "asked to"], [undef, "bounced", "none"]) {
        my ($first, $then, $is) = @$_;
        $suppress->($first);
        sql($db, "UPDATE crmapi.suppression SET updated_at = '2100-01-01Z'");
        $suppress->($then);
        is($reason->(), "$is 1", ($first // "no reason") . ", then $then: $is");
        is(sql($db, "SELECT updated_at > '2100-01-01Z' FROM crmapi.suppression"),
            ($first // "none") eq $is || $is eq "none" ? "f" : "t",
            "6.6 updated_at moves forward if that is another one");
        is($lift->("unsubscribed"), $is eq "unsubscribed" ? 1 : 0,
            "START lifts it only if it is an unsubscription");
        is($lift->(), $is eq "unsubscribed" ? 0 : 1, "a user lifts any");
        is($reason->(), "none 0", "it is gone");
    }
};

# An answer in a conversation of S with MEMBERS, as the next parameters.
sub answered {
    my ($s, $type, %members) = @_;
    my $talk = talk($s, type => $type);
    my $id = message($s, $talk, role => "human", content => "x",
        status => "queued", %members);
    my (undef, $job) = leased($s, "answer.send", conversation_id => $talk,
        message_id => $id);
    return ($id, "$job, '$talk', '$id'");
}

subtest "19.2 which suppressions hold an answer back, and of which address" => sub {
    my $s = space();
    my ($mail, $number) = ("no\@x.example", "+4930123456");
    for (["bounced", 1, 1], ["complaint", 1, 1], ["asked to", 1, 1], [undef, 1, 1],
            ["unsubscribed", 0, 1]) {
        my ($reason, $holds_mail, $holds_text) = @$_;
        sql($db, "SELECT crmapi.suppress('$s->{id}', $_, " . quoted($reason) . ")")
            for "'NO\@x.example', NULL", "NULL, '$number'";
        for (["mail to it", $holds_mail, 4, $mail], ["mail with a copy to it",
                $holds_mail, 4, "yes\@x.example", { cc => ["o\@x.example", $mail] }],
                ["mail that goes to it over the wire", $holds_mail, 4,
                    "o\@x.example", {}, "yes\@x.example $mail"],
                ["text to it", $holds_text, 3, $number],
                ["mail to another", 0, 4, "yes\@x.example"]) {
            my ($what, $is, $type, $to, $metadata, $wire) = @$_;
            my ($id, $job) = answered($s, $type, to_identifier => $to,
                metadata => $metadata // {});
            is(sql($db, "SELECT verdict FROM crmapi.answer_take($job, now(), 0, "
                . quoted($wire) . ")"), $is ? "stopped" : "send",
                ($reason // "no reason") . ": a $what");
            is(value("message", $id, "status"), $is ? "failed" : "queued",
                "which it says");
        }
        my $talk = talk($s, type => 4, email => $mail);
        for ([$talk, "NULL"], [talk($s, type => 4, email => "yes\@x.example"),
                "'{$mail}'"]) {
            is(sql($db, "SELECT crmapi.answer_refusal('$s->{id}', '$_->[0]',
                $_->[1]) IS NOT NULL"), $holds_mail ? "t" : "f",
                "nor is another one taken");
        }
        sql($db, "DELETE FROM crmapi.suppression");
    }
};

subtest "19.2 why a conversation cannot be answered" => sub {
    my $s = space();
    sql($db, "SELECT crmapi.suppress('$s->{id}', 'no\@x.example', NULL, NULL)");
    my %deleted = (deleted => true, deleted_at => "2026-12-04Z");
    my %mail = (type => 4, email => "yes\@x.example");
    my %text = (type => 3, phone_number => "+4930123456");
    for ([{ %mail, %deleted }, qr/deleted/], [{ %text, type => 2 }, qr/phone/],
            [{ type => 1 }, undef], [{ type => 4, email => "no\@x.example" },
                qr/participant's address/],
            map({ [{ type => 4, email => $_ }, qr/no address/] } undef, "", "a b"),
            map({ [{ type => 3, phone_number => $_ }, qr/no address/] } undef, "",
                "0301234"),
            map({ [$_, undef], [$_, qr/of cc/, "No\@X.example"] } \%mail, \%text)) {
        my ($members, $like, @copies) = @$_;
        my $talk = talk($s, %$members);
        my $why = sql($db, "SELECT crmapi.answer_refusal('$s->{id}', '$talk',
            '{" . ($copies[0] // "") . "}')");
        my $what = join " ", map { "$_ " . ($members->{$_} // "null") }
            sort keys %$members;
        like($why // "none", $like // qr/^none$/, $what);
    }
};

subtest "19.1 what is reported of an answer while the relay has not said yet" => sub {
    my $s = space();
    sql($db, "SELECT crmapi.event_log('$s->{id}', true)");
    # what it is, what the relay says, what it is then, and how often that is told
    for (["queued", "sent", "sent", 1], ["delivered", "sent", "delivered", 0],
            ["failed", "sent", "failed", 0], ["queued", "failed", "failed", 1],
            ["delivered", "failed", "delivered", 0]) {
        my ($is, $says, $becomes, $told) = @$_;
        for my $name (undef, "<own\@x.example>") {
            my ($id, $job) = answered($s, $name ? 4 : 3, status => $is,
                handed_over => true, external_id => $name);
            sql($db, "SELECT crmapi.answer_$says($job, "
                . ($says eq "sent" ? "now(), 'theirs')" : "'no', NULL)"));
            is(value("message", $id, "status"), $becomes, "$is, $says: $becomes");
            is(sql($db, "SELECT count(*) FROM crmapi.event WHERE fields ->> 'id' =
                '$id' AND type = 'message.updated'"), $told, "told if it is new");
            is(value("message", $id, "coalesce(external_id, '-') || ' ' ||
                coalesce(provider_id, '-')"), ($name // ($says eq "sent" ? "theirs"
                : "-")) . ($says eq "sent" ? " theirs" : " -"), "its names");
        }
    }
};

subtest "19.1 an answer's files have their order; its conversation goes on" => sub {
    my $s = space();
    my $talk = talk($s, email => "v\@x.example", updated_at => "2100-01-03Z",
        last_message_at => "2100-01-01Z", last_active_at => "2100-01-02Z");
    my $answer = uuid();
    sql($db, "SELECT FROM crmapi.message_answer('$s->{id}', '$talk', '$answer',
        'human', 'x', NULL, NULL, '{}', " . quoted([map { { id => uuid(),
            filename => $_, content_type => "text/plain", size => 1,
            data => "eA==" } } qw(c a b)]) . ")");
    is(sql($db, "SELECT string_agg(filename || number, ' ' ORDER BY number)
        FROM crmapi.attachment WHERE message_id = '$answer'"), "c1 a2 b3",
        "the files");
    is(value("conversation", $talk, "concat_ws(' ', last_message,
        last_message_at = '2100-01-01T00:00:00.001Z',
        last_active_at = '2100-01-02Z')"),
        "x t t", "no time goes back, and an answer is later than what it answers");
    is(value("conversation", $talk, "updated_at > '2100-01-03Z'"), "t",
        "6.6 updated_at moves forward");
};

subtest "17.5 of whom a refusal of an answer speaks" => sub {
    my $s = space();
    for ([4, "no\@x.example", {}, "no\@x.example why"], [3, "+49301", {},
            "+49301 why"], [4, "no\@x.example", { cc => ["o\@x.example"] }, undef]) {
        my ($type, $to, $metadata, $suppressed) = @$_;
        my ($id, $job) = answered($s, $type, to_identifier => $to,
            metadata => $metadata, handed_over => true);
        sql($db, "SELECT crmapi.answer_refused($job, 'no', 'why')");
        is(sql($db, "SELECT string_agg(address || ' ' || reason, ',') FROM
            crmapi.suppression"), $suppressed, $suppressed // "of nobody: it has copies");
        is(value("message", $id, "status"), "failed", "it has failed");
        sql($db, "DELETE FROM crmapi.suppression");
    }
};

subtest "19 since when a chat's visitor has not seen an answer, and when a mail comes" => sub {
    my $s = space();
    sql($db, "UPDATE crmapi.agent SET chat_mail_fallback = 5
        WHERE id = '$s->{bot}'");
    my $now = sql($db, "SELECT crmapi.now_ms()");
    # After an answer in TALK, MINUTES from now: the minute that is noted.
    my $since = sub { my ($talk, $minutes) = @_;
        sql($db, "SELECT crmapi.chat_answered('$s->{id}', '$talk',
            '$now'::timestamptz + interval '$minutes m')");
        return scalar sql($db, "SELECT (extract(epoch FROM since - '$now'::timestamptz)
            / 60)::integer FROM crmapi.chat_unseen WHERE conversation_id = '$talk'") };
    is($since->(talk($s, %{$_->[0]}), 0), undef, $_->[1])
        for [{ type => 1 }, "who is no visitor"],
            [{ type => 3, visitor_id => "v" }, "what is no chat"];
    my $talk = talk($s, type => 1, visitor_id => "v");
    for ([0, 0, "the first"], [2, 0, "not a later one"], [-1, -1, "an earlier one"],
            [-11, -1, "not one that was copied from elsewhere"]) {
        is($since->($talk, $_->[0]), $_->[1], $_->[2]);
    }
    is(sql($db, "SELECT string_agg((extract(epoch FROM run_at - '$now'::timestamptz)
        / 60)::integer::text, ' ' ORDER BY id) FROM crmapi.job
        WHERE payload ->> 'conversation_id' = '$talk'"), "5 7 4",
        "the agent's minutes after each");
};

subtest "19 what a mail to a chat's visitor tells: what was said and not seen" => sub {
    my $s = space();
    sql($db, "UPDATE crmapi.agent SET chat_mail_fallback = 5
        WHERE id = '$s->{bot}'");
    my $hour = 0;
    my %chat = (type => 1, visitor_id => "v", email => "v\@x.example");
    # A chat with MEMBERS, whose visitor has not seen MESSAGES; what chat_mail()
    # makes of it: the mail and its address.
    my $mailed = sub {
        my ($members, @messages) = @_;
        my $talk = talk($s, %chat, %$members);
        my @ids;
        for my $one (@messages) {
            my %members = %$one;
            my $files = delete $members{files};
            push @ids, message($s, $talk, role => "human", status => "sent",
                created_at => sprintf("2026-12-04T%02d:00Z", 10 + $hour++ % 12),
                %members);
            make("attachment", %{$s->{in}}, message_id => $ids[-1], %$_)
                for @{$files || []};
        }
        sql($db, row("chat_unseen", %{$s->{in}}, conversation_id => $talk,
            since => "2026-12-04T00:00Z"));
        my (undef, $job) = leased($s, "answer.chat", conversation_id => $talk);
        sql($db, "SELECT crmapi.chat_mail($job, '$talk')");
        my ($mail) = sql($db, "SELECT content, to_identifier, content_type,
            metadata, status FROM crmapi.message WHERE conversation_id = '$talk'
            AND role = 'system' AND status = 'queued'");
        return ($mail ? "$mail->[1]: " . $mail->[0] =~ s/\n+/|/gr : undef, $mail,
            \@ids);
    };
    my $unseen = talk($s, %chat);
    message($s, $unseen, role => "human", status => "sent", content => "x",
        created_at => "2026-12-04T10:00Z");
    sql($db, row("chat_unseen", %{$s->{in}}, conversation_id => $unseen,
        since => "2026-12-04T00:00Z"));
    my (undef, $lease) = leased($s, "answer.chat", conversation_id => $unseen);
    refused("SELECT crmapi.chat_mail(" . ($lease =~ s/1$/2/r) . ", '$unseen')",
        qr/lease of job/, "none by who has lost the job");
    # the journal knows a mail that was sent before a restore by its id
    my @made = map { (sql($db, "BEGIN; CREATE TEMPORARY TABLE made ON COMMIT DROP AS
        SELECT crmapi.chat_mail($lease, '$unseen')::text; SELECT id, 1 FROM
        crmapi.message WHERE conversation_id = '$unseen' AND role = 'system';
        ROLLBACK"))[0][0] } 1, 2;
    ok($made[0], "a mail");
    is($made[1], $made[0], "which has the same id when it is made again");
    $hour = 0;
    my @of = map { { content => $_ } } qw(one two);
    my ($says, $mail, $ids) = $mailed->({}, @of);
    is($says, "v\@x.example: one|two", "answers, in their order");
    is_deeply(JSON::PP->new->decode($mail->[3])->{answers}, $ids,
        "it says which they are");
    for (["of a person", { role => "assistant" }, 1],
            ["of the visitor", { role => "user" }],
            ["of a tool", { role => "tool" }],
            ["of an agent that used a tool", { role => "assistant",
                tool_used => "t" }],
            ["without words", { content => "" }],
            ["that was seen", { status => "delivered" }],
            ["that a backend has brought", { status => undef }, 1],
            ["that another mail has told", { to_identifier => "v\@x.example" }],
            ["of before", { created_at => "2026-12-03Z" }]) {
        my ($what, $members, $is) = @$_;
        $hour = 0;
        is(($mailed->({}, { content => "x", %$members }))[0],
            $is ? "v\@x.example: x" : undef, "what is " . ($is ? "" : "not ")
            . "told: one $what");
    }
    for (["of a teammate", { internal => true }], ["that is deleted",
            { deleted => true, deleted_at => "2026-12-04Z" }],
            ["of nobody", { email => "" }], ["of nobody", { email => undef }]) {
        is(($mailed->($_->[1], @of))[0], undef, "none in a chat $_->[0]");
    }
    my ($known) = map { make("contact", %{$_->{owned}}, emails => [{
        email => "$_->{name}\@x.example", is_primary => true }],
        id => "01900000-0000-7000-8000-0000000000bb") } { %$s, name => "c" },
        { %{space()}, name => "theirs" };
    $hour = 0;
    is(($mailed->({ contact_id => $known, email => $_ }, @of))[0],
        "c\@x.example: one|two", "else to the contact's address") for "", undef;
    sql($db, "UPDATE crmapi.agent SET chat_mail_fallback = NULL
        WHERE id = '$s->{bot}'");
    is(($mailed->({}, @of))[0], undef, "none since the agent has none");
    sql($db, "UPDATE crmapi.agent SET chat_mail_fallback = 5
        WHERE id = '$s->{bot}'");
    for (["text/markdown", "text/markdown", "text/markdown"],
            ["text/plain", "text/markdown", "text/plain"],
            ["text/plain", undef, "text/markdown"]) {
        my ($is, @types) = @$_;
        $hour = 0;
        is(($mailed->({}, map { { content => "x", content_type => $_ } } @types))
            [1][2], $is, "its type: of " . join ", ", map { $_ // "none" } @types);
    }
    my %another = (email => "w\@x.example");   # an address gets ten in an hour
    is(length(($mailed->(\%another, map { { content => $_ x 40_000 } } qw(a b)))[1][0]),
        65_536, "a text that is too long is cut");
    my @many = map { { content => $_, created_at => sprintf(
        "2026-12-04T%02d:%02dZ", 10 + $_ / 60, $_ % 60) } } 1 .. 101;
    ($says, undef, $ids) = $mailed->({}, @many);
    is($says, "v\@x.example: " . join("|", 1 .. 100), "of many the first 100");
    my $talk = value("message", $ids->[0], "conversation_id");
    my (undef, $job) = leased($s, "answer.chat", conversation_id => $talk);
    sql($db, "SELECT crmapi.chat_mail($job, '$talk')");
    is(sql($db, "SELECT content FROM crmapi.message WHERE conversation_id = '$talk'
        AND role = 'system' ORDER BY created_at DESC, id DESC LIMIT 1"), "101",
        "the next mail tells the rest");
    sql($db, row("step_bound", %{$s->{in}}, due_before => "2026-12-04T11:00Z"));
    $hour = 0;
    is(($mailed->(\%another, @of))[0], "w\@x.example: two",
        "nothing of before the time that a release was given");
    sql($db, "DELETE FROM crmapi.step_bound WHERE workspace_id = '$s->{id}'");
    my $n = 0;
    my @files = map { { number => ++$n, size => $_, filename => "f$n",
        stored => $n > 1 ? true : false } } 99, 10485759, 1, 1;
    (undef, $mail) = $mailed->(\%another, { content => "x", files => \@files });
    is(join(" ", map { $_->{filename} } @{JSON::PP->new->decode($mail->[3])
        ->{attachments}}), "f2 f3", "files that are kept, of 10 MiB at most");
};

subtest "19 what a visitor's page has shown is delivered, nothing else" => sub {
    my $s = space();
    my $at = "2026-12-04T12:00Z";
    my ($talk, $other) = map { talk($s, type => 1, visitor_id => "v") } 1, 2;
    my @id = map { sprintf "01900000-0000-7000-8000-%012d", $_ } 1 .. 7, 0, 8;
    # its role, status, conversation, time; what it is when the second is shown
    my @messages = (["human", "sent", $talk, $at, "delivered"],
        ["assistant", "sent", $talk, $at, "delivered"],
        ["assistant", "sent", $talk, $at, "sent"],
        ["human", "read", $talk, $at, "read"], ["human", undef, $talk, $at, undef],
        ["human", "sent", $other, $at, "sent"],
        ["user", "sent", $talk, "2026-12-04T13:00Z", "sent"],
        ["system", "sent", $talk, $at, "sent"],     # a mail about the chat
        # what was copied from elsewhere
        ["human", "sent", $talk, "2026-12-04T11:00Z", "sent"]);
    my @order = (0, 1, 4, 3, 2, 5 .. 8);    # the third is the last of ours
    message($s, $messages[$_][2], id => $id[$order[$_]], content => "x",
        role => $messages[$_][0], status => $messages[$_][1],
        created_at => $messages[$_][3]) for 0 .. $#messages;
    sql($db, row("chat_unseen", %{$s->{in}}, conversation_id => $_, since => $at))
        for $talk, $other;
    my $seen = sub { sql($db, "SELECT crmapi.chat_seen('$s->{id}', '{$talk}',
        '$_[0]', '$_[1]')") };
    my $is = sub { [map { value("message", $id[$order[$_]], "status") }
        0 .. $#messages] };
    my $waits = sub { join " ", map { $_->[0] } sql($db, "SELECT
        (conversation_id = '$other')::text || ' ' || (since = '$at') FROM
        crmapi.chat_unseen WHERE workspace_id = '$s->{id}' ORDER BY 1") };
    $seen->("2026-12-04T11:59Z", $id[6]);
    is_deeply($is->(), [map { $_->[1] } @messages], "a page of before");
    $seen->($at, $id[3]);
    is_deeply($is->(), [map { $_->[4] } @messages], "up to a message of its time");
    is($waits->(), "false true true true", "an answer is behind it");
    $seen->($at, $id[4]);
    $messages[2][4] = "delivered";
    is_deeply($is->(), [map { $_->[4] } @messages], "and that one");
    is($waits->(), "true true", "what the visitor says is nothing to see");
};

subtest "19 a mail about a chat is sent unless all of it was seen" => sub {
    my $s = space();
    for (["11:00", "send"], ["12:00", "send"], ["13:00", "skipped"],
            [undef, "skipped"]) {
        my ($since, $is) = @$_;
        my ($id, $job) = answered($s, 1, role => "system",
            to_identifier => "v\@x.example", created_at => "2026-12-04T12:00Z");
        sql($db, row("chat_unseen", %{$s->{in}}, conversation_id =>
            value("message", $id, "conversation_id"),
            since => "2026-12-04T${since}Z")) if $since;
        is(sql($db, "SELECT verdict FROM crmapi.answer_take($job, now(), 0, NULL)"),
            $is, $since ? "what is unseen is of $since" : "all was seen");
    }
};

subtest "nothing of another workspace is in an answer" => sub {
    my ($s, $other) = (space(), space());
    my $bob = make("admin", %{$other->{in}}, name => "Bob",
        email => "bob\@x.example");
    for my $to ($bob, "bob\@x.example") {
        is(sql($db, "SELECT crmapi.answer_author('$_->[0]', '$to')"), $_->[1],
            "whose name: $to") for [$s->{id}, "{}"],
            [$other->{id}, '{"author": "Bob"}'];
    }
    my ($id, $theirs) = map { message($_, talk($_), role => "human",
        id => "01900000-0000-7000-8000-0000000000aa", content => "x") } $s, $other;
    make("attachment", %{$other->{in}}, message_id => $theirs, number => 1,
        size => 1, stored => true, filename => "theirs");
    sql($db, "SELECT crmapi.chat_mail_add('$s->{id}', (SELECT conversation_id FROM
        crmapi.message WHERE workspace_id = '$s->{id}'), '{$id}', 'v\@x.example')");
    is(sql($db, "SELECT metadata -> 'attachments' FROM crmapi.message
        WHERE workspace_id = '$s->{id}' AND role = 'system'"), undef, "no file");
};

subtest "two events of one source at once" => sub {
    my $s = space();
    my %call = (channel => 2, bot_id => $s->{bot}, thread => "call");
    done_at_once("both are taken", map { "SELECT FROM crmapi.intake('$s->{id}', NULL,
        " . quoted([{ %call, event_id => "at-once-$_" }]) . ")" } 1, 2);
    is(sql($db, "SELECT count(*) FROM crmapi.conversation
        WHERE workspace_id = '$s->{id}'"), 1, "are in one conversation");
    my $known = make("contact", %{$s->{owned}}, emails => [{
        email => "once\@x.example", is_primary => true }]);
    my $commit = holding($db, "UPDATE crmapi.contact SET first_name = 'Own'
        WHERE id = '$known'");
    my $event = CrmTest::Child->start(sub { taken($s, channel => 4,
        bot_id => $s->{bot}, email => "once\@x.example", name => "Given Name",
        phone_number => "+4930123456", verified => true, content => "x")->{contact} });
    wait_blocked($db, 1);
    $commit->("COMMIT");
    my ($got) = $event->result;
    is($got, $known, "an event while its contact is changed");
    is(value("contact", $known, "first_name || ' ' || phone_key"),
        "Own +4930123456", "fills what is still lacking");
};

subtest "10.1 a contact that is found gets what it lacks, and nothing else" => sub {
    my $s = space();
    my %says = (first_name => "F", last_name => "L", company => "C",
        job_title => "J", lead_source => "S", linkedin_url => "https://l.example/",
        address_line1 => "1", address_line2 => "2", city => "T", state => "A",
        postal_code => "P", country => "Y");
    my @address = qw(address_line1 address_line2 city state postal_code country);
    my @name = qw(first_name last_name);
    my $mail = 0;
    # The fields of what the event says that a contact with HAS gets.
    my $gets = sub {
        my (%has) = @_;
        my $address = "fill" . ++$mail . "\@x.example";
        my $id = make("contact", %{$s->{owned}}, %has, emails => [{
            email => $address, is_primary => true }],
            updated_at => "2100-01-01Z");
        is(taken($s, channel => 4, bot_id => $s->{bot}, email => $address,
            content => "x", verified => true, contact => \%says)->{contact}, $id,
            "it is found");
        my ($row) = sql($db, "SELECT " . join(", ", sort(keys %says),
            "updated_at > '2100-01-01Z'") . " FROM crmapi.contact WHERE id = '$id'");
        my %is;
        @is{sort(keys %says), "later"} = @$row;
        is(delete $is{later}, "t", "updated_at moves forward");
        return \%is;
    };
    is_deeply($gets->(), \%says, "all of it");
    for my $field (sort keys %says) {
        my @whole = (grep { my %of = map { $_ => 1 } @$_; $of{$field} } \@address,
            \@name)[0];
        my %is = (%says, map({ $_ => undef } @{$whole[0] || []}), $field => "own");
        is_deeply($gets->($field => "own"), \%is,
            "$field is kept" . ($whole[0] ? ": a name, an address is one thing" : ""));
    }
    my $own = make("contact", %{$s->{owned}}, emails => [{ email => "own\@x.example",
        is_primary => true }], phone_numbers => [{ phone_number => "+4930111",
        is_primary => true }]);
    for (["own\@x.example", "+4930222"], ["second\@x.example", "+4930111"]) {
        is(taken($s, channel => 4, bot_id => $s->{bot}, email => $_->[0],
            phone_number => $_->[1], content => "x", verified => true)->{contact},
            $own, "found by @$_");
        is(value("contact", $own, "email_key || ' ' || phone_key"),
            "own\@x.example +4930111", "its address and its number are kept");
    }
};

done_testing();
