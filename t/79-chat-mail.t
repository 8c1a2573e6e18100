# SPDX-License-Identifier: Apache-2.0
# 79-chat-mail.t: answers in a chat that its visitor has seen, and a mail with those
# that were missed (contract 19: chat_mail_fallback)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Smtpd qw(header report_on);
use MIME::Base64 qw(encode_base64);
use MIME::QuotedPrint qw(decode_qp);

CrmTest::Smtpd::needed();

my $INTAKE = "/crmapi/intake/v1";
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $sales = "sales\@crm.example";
my ($bot, $silent) = (uuid(), uuid());
$w->import_objects([
    { object => "agent", id => $bot, name => "Ada", is_agent => true,
        enabled => true, public => true, agent_email => $sales,
        chat_mail_fallback => 5 },
    { object => "agent", id => $silent, name => "Eve", is_agent => true,
        enabled => true, public => true, agent_email => "eve\@crm.example" }]);
my $token = $w->token("backend");
my $smtp = CrmTest::Smtpd->new;
my %conf = ($smtp->relay, mail_domain => "crm.example");
my $worker = worker(database => $database, no_start => 1, conf => \%conf);

my $count = 0;
# A chat that a visitor has begun, MORE of the message: {agent, visitor, id, cursor}.
sub chat {
    my ($more, $agent) = @_;
    my %chat = (agent => $agent || $bot);
    $chat{visitor} = $httpd->client->post("$INTAKE/chat/$chat{agent}/start", {})
        ->data->{visitor};
    say_in(\%chat, $more);
    $chat{id} = sql($database, "SELECT conversation_id FROM crmapi.message"
        . " WHERE id = '$chat{said}'");
    poll(\%chat);
    return \%chat;
}
sub say_in {
    my ($chat, $more) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $r = $httpd->client->post("$INTAKE/chat/$chat->{agent}/messages",
        { id => "m-" . ++$count, content => "Question $count", %{$more || {}} },
        key => $chat->{visitor});
    status_is($r, 201, "a visitor writes");
    $chat->{said} = $r->data->{id};
}
# The texts of others that the page of CHAT gets.
sub poll {
    my ($chat) = @_;
    my $data = $httpd->client->get("$INTAKE/chat/$chat->{agent}/messages",
        key => $chat->{visitor}, query => { after => $chat->{cursor} // "0" })
        ->data;
    $chat->{cursor} = $data->{cursor};
    return join "|", map { $_->{content} } grep { $_->{role} ne "user" }
        @{$data->{messages}};
}
sub path { return "/api/v1/conversations/$_[0]{id}/messages" }
# The messages of CHAT, as the API shows them.
sub all {
    my ($chat) = @_;
    return @{$c->get(path($chat), query => { page_size => 100 })->data};
}
sub status_of {
    my ($chat, $message) = @_;
    return (grep { $_->{id} eq $message->{id} } all($chat))[0]{status};
}
# The minutes have passed: what waits is done now.
sub later {
    sql($database, "UPDATE crmapi.job SET run_at = now() - interval '1 s'"
        . " WHERE state = 'ready' AND run_at < now() + interval '5 minutes'");
    $worker->once for 1 .. 2;   # the second sends what the first has made
}
sub mails { $smtp->mails_to($_[0]) }
# The text of MAIL.
sub text {
    my ($mail) = @_;
    my ($body) = $mail =~ m{^Content-Type: text/plain.*?\n\n(.*?)(?:\n--|\z)}ms
        or return "";
    $body = decode_qp($body);
    utf8::decode($body);
    return $body =~ s/\s+\z//r;
}

subtest "what the page has shown is delivered" => sub {
    $w->log_on;
    my $chat = chat({ email => "there\@x.example" });
    my @m = map { $w->answer($chat->{id}, $_) } "One", "Two";
    is(status_of($chat, $m[0]), "sent", "an answer is sent");
    is(poll($chat), "One|Two", "the page gets both");
    is(status_of($chat, $m[1]), "sent", "which may have been lost on the way");
    is(poll($chat), "", "it asks for what comes after them");
    is(join(" ", map { status_of($chat, $_) } @m), "delivered delivered",
        "so it has them");
    my $m = $w->answer($chat->{id}, "Three");
    poll($chat) for 1 .. 2;
    is(status_of($chat, $m), "delivered", "and so the next");
    my @events = map { "$_->{type} $_->{data}{status}" } grep {
        ($_->{data}{id} // "") eq $m->{id} } @{$c->get("/api/v1/events",
        query => { cursor => "*", page_size => 100 })->data};
    is("@events", "message.created sent message.updated delivered",
        "an event tells of it");
    later();
    is(scalar(mails("there\@x.example")), 0, "no mail for who was there");
    is(count_rows($w, "chat_unseen"), 0, "nothing is unseen");
};

my ($gone, $mail);
subtest "one mail for all that was missed" => sub {
    $gone = chat({ email => "Gone\@x.example", name => "Änne",
        content => "Buy pills at https://spam.example" });
    $w->answer($gone->{id}, "Seen.");
    poll($gone) for 1 .. 2;
    crmapictl_ok($database, qw(admin add --workspace), $w->id,
        "--email", "bob\@crm.example", "--name", "Bob Löwe");
    $w->answer($gone->{id}, { content => "From the *agent*", role => "assistant" });
    $c->patch("/api/v1/conversations/$gone->{id}", { assigned_to =>
        "bob\@crm.example" });
    $w->answer($gone->{id}, { content => "It is Öl.", attachments => [
        { filename => "list.txt", data => encode_base64("1\n2\n", "") }] });
    $worker->once;
    is(scalar(mails("gone\@x.example")), 0, "not at once");
    later();
    my @mails = mails("gone\@x.example");
    is(scalar @mails, 1, "one mail") or return;
    ($mail) = @mails;
    is(text($mail), "From the *agent*\n\nBob Löwe: It is Öl.",
        "with both, and the teammate's name");
    unlike($mail, qr/Seen\.|pills|spam/, "nothing else: neither what was seen"
        . " nor what the visitor wrote");
    like(header($mail, "From"), qr/<\Q$sales\E>/, "from the agent");
    is(header($mail, "Subject"), "Re: Ada", "a subject");
    like($mail, qr/^Content-Disposition: attachment; filename=list\.txt/m,
        "and the file");
    my ($last) = reverse all($gone);
    is(join(" ", @$last{qw(role status)}), "system sent",
        "the conversation tells of it");
    unlike(poll($gone), qr/Bob Löwe:/, "the visitor does not see that");
    later();
    is(scalar(mails("gone\@x.example")), 1, "it is told once");
    is(scalar $worker->log_lines(qr/CRM3104/), 0, "each job has ended once");
    $w->answer($gone->{id}, "And this.");
    later();
    @mails = mails("gone\@x.example");
    is(scalar @mails, 2, "what is missed later") or return;
    is(text($mails[1]), "Bob Löwe: And this.", "is told alone");
    is(header($mails[1], "In-Reply-To"), header($mail, "Message-ID"),
        "in the same thread");
};

subtest "a reply by mail continues the chat" => sub {
    my $id = header($mail, "Message-ID") or return fail("there is no mail");
    my ($code) = crmapictl($database, { stdin => "From: gone\@x.example\n"
        . "To: $sales\nMessage-ID: <r1\@x.example>\nIn-Reply-To: $id\n"
        . "References: $id\nSubject: Re: Ada\n\nThank you.\n" }, "deliver");
    is($code, 0, "a reply comes");
    my ($last) = reverse all($gone);
    is(join(" ", @$last{qw(role content)}), "user Thank you.",
        "it stands in the chat");
    isnt($last->{metadata}{verified} // 1, false,
        "and is proven, from this address");
    is($c->get("/api/v1/conversations/$gone->{id}")->data->{type}, 1,
        "which is still one");
    my $page = $httpd->client->get("$INTAKE/chat/$bot/messages",
        key => $gone->{visitor}, query => { after => $gone->{cursor} })->data;
    is((map { "$_->{role}: $_->{content}" } reverse @{$page->{messages}})[0],
        "user: Thank you.", "the visitor sees it there");
    $w->answer($gone->{id}, "Welcome.");
    later();
    my ($next) = reverse mails("gone\@x.example");
    is(text($next), "Bob Löwe: Welcome.", "and is answered there, then by mail");
    is(header($next, "In-Reply-To"), "<r1\@x.example>", "to the reply");
    like(header($next, "References"), qr/^\Q$id\E .*<r1\@x.example>$/,
        "in the thread of the first");
};

subtest "a mail that is returned" => sub {
    my ($last) = reverse mails("gone\@x.example");
    my ($code) = crmapictl($database, { stdin => "From: MAILER-DAEMON\@x.example\n"
        . "To: $sales\nMessage-ID: <dsn-chat>\n"
        . report_on($last, "delivery-status", "Reporting-MTA: dns; x.example\n\n"
            . "Final-Recipient: rfc822; gone\@x.example\nAction: failed\n"
            . "Status: 5.1.1") }, "deliver");
    is($code, 0, "a report comes");
    my ($told) = grep { $_->{role} eq "system" && ($_->{status} // "") eq "failed" }
        all($gone);
    like($told->{metadata}{error}, qr/5\.1\.1/, "the mail has failed");
    my $before = () = mails("gone\@x.example");
    status_is($c->post(path($gone), { content => "Hello?" }), 201,
        "the chat can still be answered");
    later();
    is(scalar(mails("gone\@x.example")), $before, "without a mail");
    my ($last_told) = reverse grep { $_->{role} eq "system" } all($gone);
    is($last_told->{metadata}{error}, "suppressed", "which says why");
};

subtest "what a program answers by itself is not for the visitor" => sub {
    my $chat = chat({ email => "away\@x.example" });
    $w->answer($chat->{id}, "Hello");
    later();
    poll($chat);
    my ($mail) = mails("away\@x.example");
    my $id = header($mail // "", "Message-ID") or return fail("there is no mail");
    for my $way (["Auto-Submitted: auto-replied", "I am away"],
            ["Precedence: bulk", "No. 7 of our letter"], ["X-By: a person", "Thanks"]) {
        my ($code) = crmapictl($database, { stdin => "From: away\@x.example\n"
            . "To: $sales\nMessage-ID: <" . ++$count . "\@x.example>\n"
            . "In-Reply-To: $id\n$way->[0]\nSubject: Re: Ada\n\n$way->[1]\n" },
            "deliver");
        is($code, 0, "a mail comes: $way->[0]");
        my ($last) = reverse all($chat);
        is($last->{content}, $way->[1], "it stands in the chat");
        my $page = $httpd->client->get("$INTAKE/chat/$bot/messages",
            key => $chat->{visitor}, query => { after => $chat->{cursor} })->data;
        is(join("|", map { $_->{content} } @{$page->{messages}}),
            $last->{metadata}{automatic} ? "" : $way->[1],
            "the visitor, who may have claimed the address, sees only words of people");
        $chat->{cursor} = $page->{cursor};
    }
    my $start = $httpd->client->post("$INTAKE/chat/$bot/start",
        { visitor => $chat->{visitor} })->data;
    unlike(join("|", map { $_->{content} } @{$start->{messages}}), qr/away/,
        "also not later");
};

subtest "who gets none" => sub {
    my @none = (["an agent that allows none", chat({ email => "n1\@x.example" },
        $silent)], ["nobody knows the address", chat({})],
        ["the conversation is deleted", chat({ email => "n2\@x.example" })],
        ["came back before the minutes passed",
            chat({ email => "n3\@x.example" })]);
    $w->answer($_->[1]{id}, "Hello") for @none;
    $c->delete("/api/v1/conversations/$none[2][1]{id}");
    poll($none[3][1]) for 1 .. 2;
    my $before = () = $smtp->received;
    later();
    is(scalar(() = $smtp->received), $before, join ", ", map { $_->[0] } @none);
    is(count_rows($w, "message", "role = 'system' AND conversation_id IN ("
        . join(",", map { "'$_->[1]{id}'" } @none) . ")"), 0, "nothing is made");
};

subtest "an address that many visitors give" => sub {
    my @chats = map { chat({ email => $_ % 2 ? "Victim\@x.example"
        : "victim\@X.example" }) } 1 .. 13;
    my $other = chat({ email => "other\@x.example" });
    $w->answer($_->{id}, "Hello") for @chats, $other;
    later();
    my $got = sub { scalar grep { /^To:.*victim/mi } $smtp->received };
    is($got->(), 10, "it gets ten mails in an hour");
    is(scalar(mails("other\@x.example")), 1, "another one its own");
    sql($database, "UPDATE crmapi.message SET created_at = created_at"
        . " - interval '1 hour' WHERE role = 'system'");
    $w->answer($_->{id}, "Again") for @chats;
    later();
    is($got->(), 20, "then ten more");
};

subtest "came back while the mail waited" => sub {
    my $chat = chat({ email => "late\@x.example" });
    $w->answer($chat->{id}, "Hello");
    $w->ctl("workspace", "hold", $w->id);
    later();
    is(scalar(mails("late\@x.example")), 0, "a workspace that is held");
    $w->ctl("workspace", "release", $w->id);
    # the mail is made, and not yet handed over
    sql($database, "UPDATE crmapi.job SET run_at = now() - interval '1 s'"
        . " WHERE kind = 'answer.chat' AND state = 'ready'");
    my $job = sql($database, "SELECT id FROM crmapi.job WHERE state = 'ready'"
        . " AND kind = 'answer.chat' AND payload ->> 'conversation_id'"
        . " = '$chat->{id}'");
    sql($database, "UPDATE crmapi.job SET state = 'leased', leased_by = 'me',"
        . " leased_until = now() + interval '1 hour', attempts = 1"
        . " WHERE id = $job; SELECT crmapi.chat_mail('" . $w->id . "', $job,"
        . " 'me', 1, '$chat->{id}')");
    poll($chat) for 1 .. 2;
    $worker->once;
    is(scalar(mails("late\@x.example")), 0, "no mail for who has seen it");
    my ($told) = reverse all($chat);
    is(join(" ", $told->{status}, $told->{metadata}{error}),
        "failed the visitor has seen it in the chat", "which is said");
};

subtest "what a backend brings is an answer, too" => sub {
    my $chat = chat({ email => "event\@x.example" });
    my $bring = sub {
        my ($content, %more) = @_;
        my $r = $httpd->client(key => $token)->post("$INTAKE/events",
            { event_id => "e-" . ++$count, conversation => { id => $chat->{id} },
            message => { role => "assistant", content => $content }, %more });
        is_deeply($r->data->{errors}, [], "an event: $content");
    };
    $bring->("Now");
    $bring->("Long ago", occurred_at => "2024-01-01T00:00:00Z");
    later();
    my @mails = mails("event\@x.example");
    is(scalar @mails, 1, "one mail");
    is(text($mails[0] // ""), "Now", "without what was copied from elsewhere");
};

subtest "exactly once, whoever is killed" => sub {
    my @chats = map { chat({ email => "kill$_\@x.example" }) } 1 .. 12;
    for my $chat (@chats) {
        $w->answer($chat->{id}, "One");
        $w->answer($chat->{id}, "Two");
    }
    my $daemon = worker(database => $database, no_start => 1, conf => { %conf,
        name => "killed", lease => "1s", relay_concurrency => 8,
        answer_threads => 4 });
    $daemon->may_log(qr/CRM31|CRM30/);      # whatever is cut off by a kill
    $daemon->start;
    sql($database, "UPDATE crmapi.job SET run_at = now() - interval '1 s'"
        . " WHERE state = 'ready' AND kind = 'answer.chat'");
    for my $kill (1 .. 4) {
        my $made = () = $smtp->received;
        wait_for(sub { (() = $smtp->received) > $made }, 3);
        $daemon->kill;
        $daemon->start;
    }
    wait_for(sub { sql($database, "SELECT count(*) FROM crmapi.job WHERE state"
        . " IN ('ready', 'leased') AND kind LIKE 'answer.%'"
        . " AND run_at < now() + interval '1 minute'") == 0 }, 60);
    $daemon->stop;
    my %of = map { my @got = mails("kill$_\@x.example");
        ($_ => scalar @got) } 1 .. @chats;
    my %state = map { my ($told) = grep { $_->{role} eq "system" }
        all($chats[$_ - 1]); ($_ => join " ", $told->{status} // "",
        $told->{metadata}{error} // ()) } 1 .. @chats;
    is_deeply([grep { $of{$_} > 1 } sort keys %of], [], "no mail twice");
    is_deeply([grep { $of{$_} != ($state{$_} eq "sent")
        && $state{$_} ne "failed delivery_unknown" } sort keys %of], [],
        "and each in the state that is true") or diag(explain(\%state, \%of));
    is_deeply([grep { $state{$_} eq "" } sort keys %state], [], "none is lost");
};

done_testing;
