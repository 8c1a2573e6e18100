# SPDX-License-Identifier: Apache-2.0
# 79-answers.t: answering in a conversation (contract 19.1 to 19.3)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Process qw(write_file);
use CrmTest::Provider;
use CrmTest::Smtpd qw(header report_on);
use CrmTest::Twilio qw(post_signed);
use File::Temp qw(tempdir);
use JSON::PP ();
use MIME::Base64 qw(decode_base64 encode_base64);
use MIME::QuotedPrint qw(decode_qp);
use Time::HiRes qw(time);

CrmTest::Smtpd::needed();

my $INTAKE = "/crmapi/intake/v1";
my $account = "AC" . "0123456789abcdef" x 2;
my $bound = "AC" . "f" x 32;            # it may reach another workspace only
my $folder = tempdir("crm-answers-XXXXXX", TMPDIR => 1, CLEANUP => 1);
write_file("$folder/token", "secret\n");
chmod 0600, "$folder/token";
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1,
    conf => <<"END");
CrmApiIntakeUrl https://crm.example
CrmApiTwilio $account $folder/token
CrmApiTwilio $bound $folder/token elsewhere
END
my $w = workspace($httpd);
my $c = $w->client;
my ($sales, $phone) = ("sales\@crm.example", "+4930900");
change($w, "agent", $w->agent, agent_email => $sales, name => "Ada Löwe",
    agent_phone => $phone);
$w->{token} = $w->token("backend");

my $smtp = CrmTest::Smtpd->new;
my $provider = CrmTest::Provider->new;
my $worker = worker(database => $database, no_start => 1, conf => {
    $smtp->relay, sms_relay => "http", provider_url => $provider->url,
    mail_domain => "crm.example", public_url => "https://crm.example" });

my $count = 0;
# A conversation on CHANNEL that somebody has begun, EVENT more of it; its id.
sub talk {
    my ($channel, %event) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $count++;
    my $r = $httpd->client(key => $w->{token})->post("$INTAKE/events",
        { event_id => "e-$count", channel => $channel, bot_id => $w->agent,
        message => { content => "Question $count",
            external_id => "<in-$count\@x.example>" }, %event });
    status_is($r, 200, "an event") or return;
    is_deeply($r->data->{errors}, [], "is taken") or return;
    return $r->data->{accepted}[0]{conversation_id};
}
sub mail_talk {
    my ($address, %event) = @_;
    return talk("email", from => { email => $address, name => "Änne" }, %event);
}

sub path { return "/api/v1/conversations/$_[0]/messages" }

# Report PAIRS to the URL with QUERY as Twilio does.
sub twilio_status {
    my ($query, @pairs) = @_;
    return post_signed($httpd->client, "secret", "https://crm.example",
        "$INTAKE/twilio/status$query", %{{ AccountSid => $account, @pairs }});
}

# What the API shows of MESSAGE of TALK, with its metadata.
sub shown {
    my ($talk, $message) = @_;
    my ($one) = grep { $_->{id} eq $message->{id} } @{$c->get(path($talk),
        query => { page_size => 100 })->data};
    return $one;
}

sub fate {
    my ($one) = (shown(@_));
    return join " ", $one->{status}, $one->{metadata}{error} // ();
}

sub mails { $smtp->mails_to($_[0]) }

subtest "19.1 the subject is that of the mail that is answered" => sub {
    my $talk = mail_talk("s\@x.example", conversation => { subject => "Lamps" });
    my $mail = sub {
        my ($subject, %header) = @_;
        my $body = delete $header{body} // "Text\n";
        my $text = join "", map({ "$_\n" } "From: s\@x.example", "To: $sales",
            "Subject: $subject", "Message-ID: <s-" . ++$count . "\@x.example>",
            map({ "$_: $header{$_}" } sort keys %header), ""), $body;
        utf8::encode($text);
        my ($code, $out, $err) = crmapictl($database, { stdin => $text },
            "--json", "deliver");
        is($code, 0, "a mail: $subject") or diag($err);
        like($out, qr/$talk/, "of this conversation");
    };
    my $subject = sub {
        $w->answer($talk, @_);
        $worker->once;
        return header((mails("s\@x.example"))[-1], "Subject");
    };
    is($subject->("A"), "Re: Lamps", "the conversation's");
    $mail->("Chairs");
    is($subject->("B"), "Re: Chairs", "another one");
    for my $marks ("RE: ", "AW: Re: ", "Re[2]: SV:", "Antw: R : ", "回复：RE: ",
            "Ответ: ", "Rif: ", "Re (2): ", "회신: ", "Trả lời: ") {
        $mail->("${marks}Tables");
        is($subject->("C"), "Re: Tables", "one mark: $marks");
    }
    $mail->("Away", "Auto-Submitted" => "auto-replied");
    $mail->("");
    $mail->("Delayed", "Content-Type" => "multipart/report; boundary=b", body =>
        "--b\n\nStill trying\n--b\nContent-Type: message/delivery-status\n\n"
        . "Reporting-MTA: dns; x.example\n\nFinal-Recipient: rfc822; s\@x.example\n"
        . "Action: delayed\nStatus: 4.4.1\n--b--\n");
    is($subject->("D"), "Re: Tables", "not a program's, nor a report's, nor none");
    for my $other ("WG: Tables", "Report: 1", "Re", "[x] AW: y", "Ref: 5",
            "Re (2 pages): x") {
        $mail->($other);
        is($subject->("C"), "Re: $other", "it is no reply: $other");
    }
    $mail->("AW:");
    is($subject->("C"), "AW:", "nothing but marks");
    is($subject->({ content => "E", subject => "Beds" }), "Beds", "its own");
    is($subject->("F"), "Re: Beds", "that of ours");
};

subtest "a mail is answered in its thread" => sub {
    my $talk = mail_talk("a\@x.example", conversation => { subject => "Öl?" });
    $c->patch("/api/v1/conversations/$talk",
        { active => false, archived => true });
    my $r = $c->post(path($talk), { content => "Liebe Änne,\nja." });
    status_is($r, 201, "an answer");
    my $m = $r->data;
    is($r->header("Location"), path($talk) . "/$m->{id}", "Location");
    is_deeply([@$m{qw(role content content_type status conversation_id)}],
        ["human", "Liebe Änne,\nja.", "text/plain", "queued", $talk],
        "the message waits");
    my $is = $c->get("/api/v1/conversations/$talk")->data;
    is($is->{last_message}, $m->{content}, "last_message");
    is($is->{last_message_at}, $m->{created_at}, "last_message_at");
    ok($is->{active}, "it is open again");
    ok($is->{archived}, "but still archived");
    $worker->once;
    is(fate($talk, $m), "sent", "it is sent");
    my ($mail) = mails("a\@x.example") or return fail("no mail");
    is(header($mail, "X-Envelope-From"), $sales, "from the agent's address");
    like(header($mail, "From"), qr/<$sales>/, "From");
    is(header($mail, "In-Reply-To"), "<in-$count\@x.example>", "In-Reply-To");
    is(header($mail, "References"), "<in-$count\@x.example>", "References");
    like(header($mail, "Subject"), qr/Re:.*=?utf-8\?/i, "Subject: Re:");
    my ($id) = header($mail, "Message-ID") =~ /(<.+\@crm\.example>)/;
    unlike($id, qr/$m->{id}/, "a Message-ID that nothing reveals");
    is(scalar(mails("a\@x.example")), 1, "once");
    is(scalar(() = $mail =~ /Unsubscribe/g), 0, "without a link to unsubscribe");

    $w->answer($talk, { content => "Und?", subject => "Noch etwas" });
    $worker->once;
    my (undef, $second) = mails("a\@x.example");
    is(header($second, "Subject"), "Noch etwas", "a subject is sent as it is");
    is(header($second, "In-Reply-To"), $id, "and answers our last one");
    is(header($second, "References"), "<in-$count\@x.example> $id",
        "in the same thread");
};

subtest "an answer is no mailing" => sub {
    my $talk = mail_talk("ml\@x.example");
    $w->answer($talk, "x");
    $worker->once;
    my ($mail) = mails("ml\@x.example");
    ok($mail, "a mail comes");
    is(header($mail, "List-Unsubscribe(?:-Post)?"), "",
        "there is nothing to unsubscribe");
    unlike($mail, qr/unsubscribe/i, "and no word of it");
};

subtest "who answers it is in the conversation" => sub {
    my $talk = mail_talk("b\@x.example");
    my $m = $w->answer($talk, "Ja?");
    $worker->once;
    my ($id) = header((mails("b\@x.example"))[0], "Message-ID") =~ /<(.+)>/;
    my ($code) = crmapictl($database, { stdin => "From: b\@x.example\nTo:"
        . " $sales\nMessage-ID: <reply-b\@x.example>\nIn-Reply-To: <$id>\n\n"
        . "Nein.\n" }, "deliver");
    is($code, 0, "a reply comes");
    is(join("|", map { $_->{content} } @{$c->get(path($talk))->data}),
        "Question $count|Ja?|Nein.", "below the answer");
};

subtest "markdown becomes HTML with a text" => sub {
    my $talk = mail_talk("md\@x.example");
    $w->answer($talk, { content => "Ja, *gern*: [hier](https://x.example/)\n\n"
        . "<script>alert(1)</script>\n\n[x](javascript:alert(2))",
        content_type => "text/markdown" });
    $worker->once;
    my $mail = decode_qp((mails("md\@x.example"))[0] // "");
    like($mail, qr{<em>gern</em>: <a href="https://x\.example/">hier</a>},
        "HTML");
    unlike(($mail =~ /text\/html(.*)/s)[0] // "", qr/<script|javascript:/i,
        "no HTML of the caller's, no script");
    like($mail, qr/Ja, \*gern\*/, "the text as it is");
};

subtest "copies" => sub {
    my $talk = mail_talk("to\@x.example");
    my $m = $w->answer($talk, { content => "An alle", cc => ["cc1\@x.example",
        { email => "cc2\@x.example" }] });
    $worker->once;
    my ($mail) = mails("to\@x.example");
    is(join(" ", $mail =~ /^X-Envelope-To: (\S+)/mg), "to\@x.example"
        . " cc1\@x.example cc2\@x.example", "one mail for all");
    is(header($mail, "Cc"), "cc1\@x.example, cc2\@x.example", "Cc");
    $w->answer(mail_talk("both\@x.example"), { content => "x", cc =>
        ["Both\@X.example", "cc3\@x.example"] });
    $worker->once;
    ($mail) = mails("both\@x.example");
    is(join(" ", $mail =~ /^X-Envelope-To: (\S+)/mg), "both\@x.example"
        . " cc3\@x.example", "the participant gets no copy of it");
    sql($database, "SELECT crmapi.suppress('" . $w->id . "', 'cc1\@x.example',"
        . " NULL, 'complaint')");
    error_is($c->post(path($talk), { content => "x", cc =>
        ["cc1\@x.example"] }), 409, "conflict", "one that is suppressed");
    my $chat = talk("sms", from => { phone_number => "+4930123451" });
    my $r = $c->post(path($chat), { content => "x", cc => ["a\@b.example"] });
    error_is($r, 422, "validation_error", "in a text");
    is_deeply($r->fields, ["cc"], "cc");
};

subtest "attachments" => sub {
    my $talk = mail_talk("files\@x.example");
    my %bytes = ("Öl & \"Gas\".pdf" => join("", map { chr rand 256 }
        1 .. 300_000), "empty.txt" => "", "line\r\n.bin" =~ s/\r\n/ /r
        => "a\r\nb\n.\n\0");
    my @names = sort keys %bytes;
    my $r = $c->post(path($talk), { content => "Three files", attachments => [
        map { { filename => $_, data => encode_base64($bytes{$_}, ""),
            /pdf$/ ? (content_type => "application/pdf") : () } } @names] });
    status_is($r, 201, "an answer with files");
    my $shown = shown($talk, $r->data)->{metadata}{attachments};
    is_deeply([map { [@$_{qw(filename content_type size stored)}] } @$shown],
        [map { [$_, /pdf$/ ? "application/pdf" : "application/octet-stream",
            length $bytes{$_}, JSON::PP::true] } @names], "metadata");
    for my $one (@$shown) {
        ok($c->get("/api/v1/attachments/$one->{id}")->body
            eq $bytes{$one->{filename}}, "GET $one->{filename}");
    }
    $worker->once;
    is(fate($talk, $r->data), "sent", "it is sent");
    my ($mail) = mails("files\@x.example") or return fail("no mail");
    like(header($mail, "Content-Type"), qr{multipart/mixed}, "of parts");
    my ($boundary) = header($mail, "Content-Type") =~ /boundary="([^"]+)"/;
    my (undef, $text, @parts) = split /\n--\Q$boundary\E(?:--)?\n/, $mail;
    like($text, qr{multipart/alternative}, "the text is the first");
    is(scalar @parts, @names + ($parts[-1] =~ /^\s*$/ ? 1 : 0), "the files");
    for my $i (0 .. $#names) {
        my ($head, $body) = split /\n\n/, $parts[$i], 2;
        like($head, qr/^Content-Disposition: attachment/m, "attachment");
        like($head, qr{^Content-Type: @{[$names[$i] =~ /pdf$/
            ? "application/pdf" : "application/octet-stream"]}}m, "its type");
        ok(decode_base64($body // "") eq $bytes{$names[$i]},
            "$names[$i]: the same bytes");
    }
    my %file = (filename => "a", data => "YQ==");
    for my $case (["attachments", "x"], ["attachments", [(\%file) x 21]],
            ["attachments[0]", ["x"]],
            ["attachments[0].filename", [{ data => "" }]],
            ["attachments[1].data", [\%file, { filename => "a" }]],
            ["attachments[0].data", [{ %file, data => "YQ=" }]],
            ["attachments[0].data", [{ %file, data => "Y Q=" }]],
            ["attachments[0].filename", [{ %file, filename => "a\nb" }]],
            ["attachments[0].filename", [{ %file, filename => "" }]],
            ["attachments[0].content_type", [{ %file, content_type => "x" }]],
            ["attachments[0].content_type", [{ %file,
                content_type => "a/b\r\nX: y" }]],
            ["attachments[0].more", [{ %file, more => 1 }]],
            ["attachments", [{ %file, data =>
                encode_base64("x" x 10_485_761, "") }]]) {
        my $refused = $c->post(path($talk), { content => "x",
            attachments => $case->[1] });
        error_is($refused, 422, "validation_error", $case->[0], [$case->[0]]);
    }
    error_is($c->post(path($talk), { attachments => [{ data => "!" }, "x",
        { filename => 5, content_type => "x", data => "YQ=" },
        { filename => "", data => undef, more => 1 }] }), 422,
        "validation_error", "5.6 every wrong member at once", ["content",
        "attachments[0].data", "attachments[0].filename", "attachments[1]",
        "attachments[2].content_type", "attachments[2].data",
        "attachments[2].filename", "attachments[3].data",
        "attachments[3].filename", "attachments[3].more"]);
    error_is($c->post(path($talk), { content => "x", attachments =>
        [{ %file, data => "YWFh" x 4_000_000 }] }), 413, "payload_too_large",
        "more than a body may have");
    my $sms = talk("sms", from => { phone_number => "+4930777" });
    error_is($c->post(path($sms), { content => "x", attachments => [\%file] }),
        422, "validation_error", "a text has none", ["attachments"]);
};

subtest "there are no drafts; what a message shows besides can be sent back" => sub {
    my $talk = mail_talk("status\@x.example");
    error_is($c->post(path($talk), { content => "Not yet", status => $_ }),
        422, "validation_error", "status $_", ["status"]) for "draft", "Draft";
    error_is($c->post(path($talk), { content => "Not yet", status => "draft" },
        headers => { Prefer => "handling=lenient" }), 422, "validation_error",
        "nor is it leniently", ["status"]);
    is(scalar mails("status\@x.example"), 0, "nothing is sent");
    my $m = $w->answer($talk, { content => "Now" });
    $w->answer($talk, { %$m, content => "Once more" });
};

subtest "a text goes by the relay of SMS" => sub {
    my $talk = talk("sms", from => { phone_number => "+4930123450" });
    my $m = $w->answer($talk, { content => "Ja.", role => "assistant" });
    is($m->{role}, "assistant", "the agent");
    $worker->once;
    my @got = map { $_->{json} } $provider->requests;
    is(scalar @got, 1, "one message");
    is_deeply([@{$got[0]}{qw(channel from to text id)}], ["sms", $phone,
        "+4930123450", "Ja.", $m->{id}], "from the agent's number");
    is(fate($talk, $m), "sent", "sent");
};

subtest "an answer goes the way by which the last message came" => sub {
    my $from = { phone_number => "+4930123460" };
    for my $way (undef, "whatsapp", undef) {
        my $talk = talk("sms", from => $from, message => { content => "Q",
            metadata => { $way ? (via => $way) : () } });
        $w->answer($talk, "A");
        $worker->once;
        is((($provider->requests)[-1]{json})->{via}, $way, $way // "SMS");
    }
};

subtest "19.1 a subject is of a mail only" => sub {
    my %talk = (sms => talk("sms", from => { phone_number => "+4930123452" }),
        chat => talk("chat", from => { visitor_id => "v-subject" }));
    for my $channel (sort keys %talk) {
        my $path = path($talk{$channel});
        error_is($c->post($path, { content => "x", subject => "Lamps" }), 422,
            "validation_error", "$channel: it is not lost", ["subject"]);
        error_is($c->post($path, { content => "x", subject => "Lamps",
            cc => ["a\@x.example"] }), 422, "validation_error",
            "$channel: with copies", [qw(cc subject)]);
        is(scalar @{$c->get($path)->data}, 1, "$channel: nothing was said");
        status_is($c->post($path, { content => "x", subject => $_ }), 201,
            "$channel: none") for undef, "";
    }
};

subtest "what becomes of a text" => sub {
    for my $one (["sent", undef, "sent"], ["delivered", undef, "delivered"],
        ["sending", undef, "queued"], ["undelivered", "30005",
        "failed the number does not exist or is out of service"
            . " (Twilio's error 30005)"],
        (map { [failed => $_, "failed Twilio could not deliver it (error $_)"] }
            qw(3 30001 300050 030005)),
        (map { [failed => $_, "failed Twilio could not deliver it"] }
            "", "3000500", "30005x", "-30005"),
        (map { ["undelivered", $_->[0], "failed $_->[1] (Twilio's error"
            . " $_->[0])"] } ["21211", "the number is not valid"],
            ["21408", "the account may not send to that country"],
            ["21610", "the recipient has opted out"],
            ["21612", "the number cannot be reached from the agent's"],
            ["21614", "the number cannot receive texts"],
            ["30003", "the phone is off or cannot be reached"],
            ["63016", "WhatsApp takes no free text a day after the last message of"
                . " the recipient"],
            ["30004", "the recipient or the carrier blocks it"],
            ["30006", "the number is a landline, or its carrier cannot be"
                . " reached"], ["30007", "the carrier filtered it"],
            ["30008", "the carrier did not say why"])) {
        my ($status, $code, $is) = @$one;
        my $number = "+493012346$count";
        my $talk = talk("sms", from => { phone_number => $number });
        my $m = $w->answer($talk, "x");
        # handed over, and Twilio reports before that is recorded
        sql($database, "UPDATE crmapi.message SET handed_over = true"
            . " WHERE id = '$m->{id}'");
        my $r = twilio_status("?message=$m->{id}", MessageSid => "SM$count",
            MessageStatus => $status, From => $phone, To => $number,
            defined $code ? (ErrorCode => $code) : ());
        status_is($r, 204, "a report: $status");
        is(fate($talk, $m), $is, "$status: $is");
        my %reason = (21211 => "bounced", 21610 => "unsubscribed");
        is(sql($database, "SELECT max(reason) FROM crmapi.suppression WHERE"
            . " workspace_id = '" . $w->id . "' AND address = '$number'"),
            $reason{$code // ""}, "17.5 suppressed or not");
    }
    sql($database, "UPDATE crmapi.job SET state = 'cancelled', finished_at ="
        . " now() WHERE state = 'ready' AND workspace_id = '" . $w->id . "'");
};

subtest "a text by a sender that is no agent's number (sms_from)" => sub {
    my $other = workspace($httpd, twin => 0)->id;
    my $talk = talk("sms", from => { phone_number => "+4930123470" });
    my $m = $w->answer($talk, "x");
    sql($database, "UPDATE crmapi.message SET handed_over = true"
        . " WHERE id = '$m->{id}'");
    for my $one (["", "queued"], ["&workspace=$other", "queued"],
            ["&workspace=" . $w->id, "queued", AccountSid => $bound],
            ["&workspace=" . $w->id, "delivered"]) {
        my ($query, $is, @pairs) = @$one;
        status_is(twilio_status("?message=$m->{id}$query", MessageSid =>
            "SM-sender", MessageStatus => "delivered", From => "ACME",
            To => "+4930123470", @pairs), 204, "a report$query @pairs");
        is(fate($talk, $m), $is, "$is");
    }
    sql($database, "UPDATE crmapi.job SET state = 'cancelled', finished_at ="
        . " now() WHERE state = 'ready' AND workspace_id = '" . $w->id . "'");
};

subtest "a form is answered by mail" => sub {
    my $talk = talk("form", from => { email => "f\@x.example" });
    $w->answer($talk, "Danke.");
    $worker->once;
    is(scalar(mails("f\@x.example")), 1, "a mail");
    my $none = talk("form", from => { phone_number => "+4930123459" });
    error_is($c->post(path($none), { content => "x" }), 409, "conflict",
        "without an address: no");
};

subtest "a chat shows it at once" => sub {
    my $bot = uuid();
    $w->import_objects([{ object => "agent", id => $bot, name => "Ada",
        is_agent => true, enabled => true, public => true }]);
    my $visitor = $httpd->client->post("$INTAKE/chat/$bot/start", {})->data
        ->{visitor};
    my $r = $httpd->client->post("$INTAKE/chat/$bot/messages", { id => "m-1",
        content => "Hallo?" }, key => $visitor);
    status_is($r, 201, "a visitor writes");
    my $talk = sql($database, "SELECT conversation_id FROM crmapi.message"
        . " WHERE id = '" . $r->data->{id} . "'");
    $r = $httpd->client->get("$INTAKE/chat/$bot/messages", key => $visitor);
    my $cursor = $r->data->{cursor};
    my $seen = CrmTest::Child->start(sub {
        my $r = $httpd->client->get("$INTAKE/chat/$bot/messages",
            key => $visitor, query => { after => $cursor, wait => 20 });
        return time, join "|", map { $_->{content} } @{$r->data->{messages}};
    });
    # the poll waits, or comes later and has it as well
    my $m = $w->answer($talk, "Ja!");
    my $at = time;
    is($m->{status}, "sent", "sent");
    my ($when, $what) = $seen->result;
    is($what, "Ja!", "a poll that waits has it");
    crmapictl_ok($database, qw(admin add --workspace), $w->id,
        "--email", "Bob\@crm.example", "--name", "Bob Löwe");
    $c->patch("/api/v1/conversations/$talk", { assigned_to =>
        "bob\@crm.example" });
    $w->answer($talk, "Ich bin es.");
    my ($last) = reverse @{$httpd->client->get("$INTAKE/chat/$bot/messages",
        key => $visitor)->data->{messages}};
    is($last->{author}, "Bob Löwe", "with the teammate's name");
    cmp_ok($when - $at, "<", 5, "at once");

    # the clock of the database's host was an hour ahead, and was set right
    sql($database, "UPDATE crmapi.message SET created_at = created_at"
        . " + interval '1 hour' WHERE conversation_id = '$talk';"
        . " UPDATE crmapi.conversation SET last_message_at = last_message_at"
        . " + interval '1 hour' WHERE id = '$talk'");
    my $poll = sub { $httpd->client->get("$INTAKE/chat/$bot/messages",
        key => $visitor, query => { @_ })->data };
    $cursor = $poll->()->{cursor};
    $w->answer($talk, "Wie spät ist es?");
    is(join("|", map { $_->{content} } @{$poll->(after => $cursor)
        ->{messages}}), "Wie spät ist es?",
        "a poll has it also if the clock was set back since");
    my $after = $c->get(path($talk), query => { cursor => "*", wait => 1,
        page_size => 100 })->json->{pagination}{next_cursor};
    $httpd->client->post("$INTAKE/chat/$bot/messages", { id => "m-2",
        content => "Zu spät." }, key => $visitor);
    is(join("|", map { $_->{content} } @{$c->get(path($talk),
        query => { cursor => $after, wait => 1 })->data}), "Zu spät.",
        "19.4 and who follows the conversation what the visitor says then");
};

subtest "files in a chat" => sub {
    my ($bot, $other) = (uuid(), uuid());
    $w->import_objects([map { { object => "agent", id => $_, name => "Ada",
        is_agent => true, enabled => true, public => true } } $bot, $other]);
    my $visit = sub { $httpd->client->post("$INTAKE/chat/$_[0]/start", {})
        ->data->{visitor} };
    my ($visitor, $stranger) = ($visit->($bot), $visit->($bot));
    my $said = $httpd->client->post("$INTAKE/chat/$bot/messages",
        { id => "m-1", content => "The list?" }, key => $visitor)->data->{id};
    my $talk = sql($database, "SELECT conversation_id FROM crmapi.message"
        . " WHERE id = '$said'");
    my %bytes = ("price \"list\".html" => "<script>alert(1)</script>" x 20_000,
        "Öl.svg" => "");
    my $m = $w->answer($talk, { content => "Here.", attachments => [map {
        { filename => $_, content_type => "text/html",
        data => encode_base64($bytes{$_}, "") } } sort keys %bytes] });
    my $get = sub {
        my ($what, $key, %arg) = @_;
        return $httpd->client->get("$INTAKE/chat/" . ($arg{bot} || $bot)
            . "/$what", key => $key);
    };
    my ($last) = reverse @{$get->("messages", $visitor)->data->{messages}};
    is_deeply([map { [@$_{qw(filename content_type size)}] }
        @{$last->{attachments}}], [map { [$_, "text/html", length $bytes{$_}] }
        sort keys %bytes], "the visitor is told of them");
    is_deeply([map { $_->{id} } @{$last->{attachments}}], [map { $_->{id} }
        @{shown($talk, $m)->{metadata}{attachments}}], "by the same ids");
    for my $file (@{$last->{attachments}}) {
        my $r = $get->("attachments/$file->{id}", $visitor);
        status_is($r, 200, "GET $file->{filename}");
        ok($r->body eq $bytes{$file->{filename}}, "its bytes");
        like($r->header("Content-Disposition"), qr/^attachment/,
            "to be stored, not shown");
        is($r->header("X-Content-Type-Options"), "nosniff", "nor guessed at");
        is($r->header("Content-Security-Policy"), "sandbox", "nor run");
        error_is($get->("attachments/$file->{id}", $stranger), 404,
            "not_found", "another visitor");
        error_is($get->("attachments/$file->{id}", undef), 401,
            "unauthorized", "nobody");
        error_is($get->("attachments/$file->{id}", $visit->($other),
            bot => $other), 404, "not_found", "a visitor of another agent");
        error_is($get->("attachments/$file->{id}", $visitor, bot => $other),
            401, "unauthorized", "this one's token there");
    }
    error_is($get->("attachments/$_", $visitor), 404, "not_found",
        "no file: $_") for uuid(), "x";
    my $mail = mail_talk("secret\@x.example");
    my $secret = $w->answer($mail, { content => "x", attachments =>
        [{ filename => "a", data => "YQ==" }] });
    error_is($get->("attachments/"
        . shown($mail, $secret)->{metadata}{attachments}[0]{id}, $visitor), 404,
        "not_found", "a file of a mail");
    $c->delete("/api/v1/conversations/$talk");
    error_is($get->("attachments/$last->{attachments}[0]{id}", $visitor), 404,
        "not_found", "one of a conversation that was deleted");
    $worker->once;
};

subtest "an answer whose job fails each time is given up" => sub {
    my @given_up;
    for my $handed_over ("false", "true") {
        my $talk = mail_talk("give-up-$handed_over\@x.example");
        my $m = $w->answer($talk, "x");
        sql($database, "UPDATE crmapi.message SET handed_over = $handed_over"
            . " WHERE id = '$m->{id}'; UPDATE crmapi.job SET attempts = 60"
            . " WHERE payload ->> 'message_id' = '$m->{id}'");
        push @given_up, [$talk, $m];
    }
    $worker->expect_log(qr/CRM3101: .*too many attempts: 61/ => 2,
        qr/CRM3127: answer \S+ failed after too many attempts/ => 2);
    $worker->once;
    is_deeply([map { fate(@$_) } @given_up],
        ["failed internal_error", "failed delivery_unknown"],
        "it has failed, as far as that is known");
    is(scalar(mails("give-up-$_\@x.example")), 0, "nothing is sent")
        for "false", "true";
    is(sql($database, "SELECT string_agg(state, ' ') FROM crmapi.job WHERE"
        . " payload ->> 'message_id' IN ('" . join("', '", map { $_->[1]{id} }
        @given_up) . "')"), "done done", "the jobs have ended");
};

subtest "what cannot be answered" => sub {
    my $call = talk("phone", from => { phone_number => "+4930123452" });
    error_is($c->post(path($call), { content => "x" }), 409, "conflict",
        "a call");
    error_is($c->post(path(uuid()), { content => "x" }), 404, "not_found",
        "no conversation");
    crmapictl_ok($database, { stdin => "From: a\@x..example\nTo: $sales\n"
        . "Message-ID: <no-form\@x.example>\n\nHi\n" }, "deliver");
    my ($none) = map { $_->[0] } sql($database, "SELECT id FROM"
        . " crmapi.conversation WHERE email = 'a\@x..example'");
    error_is($c->post(path($none), { content => "x" }), 409, "conflict",
        "17.2 an address without a canonical form");
    my $talk = mail_talk("e\@x.example");
    for my $one ([{}, "content"], [{ content => "" }, "content"],
        [{ content => "x" x 65537 }, "content"],
        [{ content => " \n\t" }, "content"], [{ content => "\x{200b}\x{a0}" }, "content"],
        [{ content => " ", attachments => [] }, "content"],
        [{ content => "x", role => "user" }, "role"],
        [{ content => "x", content_type => "text/html" }, "content_type"],
        [{ content => "x", cc => ["no"] }, "cc[0]"],
        [{ content => "x", cc => ["a\@x.example", "\"a,b\"\@x.example"] }, "cc[1]"],
        [{ content => "x", colour => 1 }, "colour"]) {
        my $r = $c->post(path($talk), $one->[0]);
        error_is($r, 422, "validation_error", $one->[1]);
        is_deeply($r->fields, [$one->[1]], "is named");
    }
    status_is($c->post(path(mail_talk("blank\@x.example")), { content => " ",
        attachments => [{ filename => "a", data => "YQ==" }] }), 201, "files alone");
    error_is($w->client(key => $w->make_key("read"))->post(path($talk),
        { content => "x" }), 403, "forbidden", "a key that reads");
    $c->delete("/api/v1/conversations/$talk");
    error_is($c->post(path($talk), { content => "x" }), 409, "conflict",
        "one that is deleted");
    is(sql($database, "SELECT count(*) FROM crmapi.job WHERE workspace_id = '"
        . $w->id . "' AND kind = 'answer.send' AND state = 'ready'"), 1,
        "nothing waits but the files");
};

subtest "suppressed addresses" => sub {
    my %suppress = (bounced => 409, complaint => 409, unsubscribed => 201);
    for my $why (sort keys %suppress) {
        my $talk = mail_talk("$why\@x.example");
        sql($database, "SELECT crmapi.suppress('" . $w->id
            . "', '$why\@x.example', NULL, '$why')");
        is($c->post(path($talk), { content => "x" })->status, $suppress{$why},
            "$why: $suppress{$why}");
    }
    my $talk = talk("sms", from => { phone_number => "+4930123453" });
    sql($database, "SELECT crmapi.suppress('" . $w->id . "', NULL,"
        . " '+4930123453', 'unsubscribed')");
    error_is($c->post(path($talk), { content => "x" }), 409, "conflict",
        "an opt-out by SMS");
    # what commits before the hand-over
    my $late = talk("sms", from => { phone_number => "+4930123499" });
    my $m = $w->answer($late, "x");
    sql($database, "SELECT crmapi.suppress('" . $w->id . "', NULL,"
        . " '+4930123499', 'unsubscribed')");
    my $sent = () = $provider->requests;
    $worker->once;
    is(fate($late, $m), "failed suppressed", "an opt-out before it is sent");
    is(scalar(() = $provider->requests), $sent, "it is not sent");
    for my $one (["late\@x.example", "bounced"], ["LATE2\@x.example",
        "complaint"]) {
        my $talk = mail_talk($one->[0]);
        my $m = $w->answer($talk, "x");
        sql($database, "SELECT crmapi.suppress('" . $w->id . "', '"
            . lc($one->[0]) . "', NULL, '$one->[1]')");
        $worker->once;
        is(fate($talk, $m), "failed suppressed", "$one->[1] before it is sent");
        is(scalar(mails($one->[0])), 0, "it is not sent");
    }
};

subtest "a server that refuses, and later not" => sub {
    $worker->expect_log(qr/CRM3122: answer .*will be retried.*451/ => 1,
        qr/CRM3122: answer .*for good.*550/ => 2);
    my $talk = mail_talk("1.451\@x.example");
    my $m = $w->answer($talk, "x");
    $worker->once;
    is(fate($talk, $m), "queued", "it waits");
    $worker->hurry;
    is(fate($talk, $m), "sent", "and is sent");
    is(scalar(mails("1.451\@x.example")), 1, "once");
    for my $one (["9.550-5-7-1\@x.example", 0], ["9.550-5-1-1\@x.example", 1]) {
        my $talk = mail_talk($one->[0]);
        my $m = $w->answer($talk, "x");
        $worker->once;
        like(fate($talk, $m), qr/^failed .*550 5\.\d\.1/, "$one->[0]: failed");
        is(scalar sql($database, "SELECT count(*) FROM crmapi.suppression WHERE"
            . " email = '$one->[0]' AND workspace_id = '" . $w->id . "'"),
            $one->[1], "suppressed if there is no such address");
    }
};

subtest "a mail that is returned, a complaint" => sub {
    for my $one (["ret\@x.example", "5.1.1", "bounced"],
        ["pol\@x.example", "5.7.1", undef],
        # given up after days of trying (RFC 3464, 2.3.3)
        ["exp\@x.example", "4.4.7", undef]) {
        my ($address, $status, $why) = @$one;
        my $talk = mail_talk($address);
        my $m = $w->answer($talk, "x");
        $worker->once;
        my ($mail) = mails($address);
        my ($code) = crmapictl($database, { stdin => "From: MAILER-DAEMON"
            . "\@x.example\nTo: $sales\nMessage-ID: <dsn-$address>\n"
            . report_on($mail, "delivery-status", "Reporting-MTA: dns; x.example"
                . "\n\nFinal-Recipient: rfc822; $address\nAction: failed\n"
                . "Status: $status") }, "deliver");
        is($code, 0, "a report comes");
        is(fate($talk, $m), "failed the mail was returned: $status", $status);
        is(scalar sql($database, "SELECT reason FROM crmapi.suppression WHERE"
            . " email = '$address' AND workspace_id = '" . $w->id . "'"), $why,
            "and what it says of the address");
    }
};

subtest "reports of mail servers, and complaints" => sub {
    $w->log_on;
    my $report = sub {
        my ($code) = crmapictl($database, { stdin => "From: x\@x.example\n"
            . "To: $sales\nMessage-ID: <report-" . ++$count . ">\n"
            . report_on(@_) }, "deliver");
        is($code, 0, "a report comes");
    };
    for my $one (["delivered", "2.1.5", "delivered"], ["relayed", "2.0.0",
            "sent"], ["expanded", "2.0.0", "sent"], ["delayed", "4.4.1", "sent"],
            ["failed", "5.2.2", "failed the mail was returned: 5.2.2"]) {
        my ($action, $status, $is) = @$one;
        my $talk = mail_talk("$action\@x.example");
        my $m = $w->answer($talk, "x");
        $worker->once;
        my ($mail) = mails("$action\@x.example");
        $report->($mail, "delivery-status", "Reporting-MTA: dns;"
            . " x.example\n\nFinal-Recipient: rfc822; $_\nAction: $action\n"
            . "Status: $status\n")
            for "other\@x.example", "$action\@x.example";
        is(fate($talk, $m), $is, "$action: $is");
        $report->($mail, "delivery-status", "Reporting-MTA: dns;"
            . " x.example\n\nFinal-Recipient: rfc822; $action\@x.example\n"
            . "Action: delivered\nStatus: 2.1.5\n");
        is(fate($talk, $m), $action eq "failed" ? $is : "delivered",
            "and delivered later, unless it had failed");
    }
    my $talk = mail_talk("angry\@x.example");
    my $m = $w->answer($talk, "x");
    $worker->once;
    # nothing is delivered there: no daemon runs while it exists
    my $hook = $w->webhook("https://hook.example/", "message.updated");
    $report->((mails("angry\@x.example"))[0], "feedback-report",
        "Feedback-Type: abuse\nVersion: 1\nUser-Agent: x/1\n");
    is(fate($talk, $m), "failed the recipient complained", "a complaint");
    error_is($c->post(path($talk), { content => "x" }), 409, "conflict",
        "there is no second");
    is(sql($database, "SELECT string_agg(e.type, ' ') FROM"
        . " crmapi.webhook_delivery d JOIN crmapi.event e ON e.workspace_id ="
        . " d.workspace_id AND e.id = d.event_id WHERE concat(e.body, e.fields)"
        . " LIKE '%$m->{id}%'"), "message.updated", "a webhook tells of it");
    $w->ctl("webhook", "remove", ($hook =~ /([0-9a-f-]{36})/)[0]);
    $w->ctl("workspace", "set", $w->id, "--events", "off");
};

subtest "17.5 a mail with copies that is returned: of whom that speaks" => sub {
    my $failed = "failed the mail was returned: 5.1.1";
    # what comes: what becomes of the answer, and who is suppressed. "other" is none
    # of the recipients: the address behind a forwarding
    my %report = ("cc failed" => ["sent", "cc"],
        "cc failed, to delivered" => ["sent", "cc"],
        "to delivered, cc refused" => ["sent"],
        "to delivered, cc delayed" => ["delivered"],
        "cc failed, to failed" => [$failed, "cc", "to"],
        "to failed, cc delivered" => [$failed, "to"],
        "to failed, cc refused" => [$failed, "to"],
        "to refused, cc failed" =>
            ["failed the mail was returned: 5.7.1", "cc"],
        "cc failed, other failed" => [$failed, "cc"],
        "other failed" => [$failed],
        "other failed, far refused" =>
            ["failed the mail was returned: 5.7.1"],
        "other refused, far failed" =>
            ["failed the mail was returned: 5.7.1"],
        "other failed, far delivered" => ["sent"],
        "other delivered, far failed" => ["sent"],
        "other delivered, far delivered" => ["sent"],
        "other delayed, far delivered" => ["sent"],
        "other delivered, far delayed" => ["sent"],
        "other failed, to delivered" => ["delivered"],
        "cc failed, cc2 failed" => ["sent", "cc", "cc2"],
        "cc2 failed, cc refused" => ["sent", "cc2"],
        "cc in words" => ["sent", "cc"], "to in words" => [$failed, "to"],
        "other in words" => [$failed], "nobody in words" => [$failed],
        "cc complains" => ["sent", "cc"],
        "to complains" => ["failed the recipient complained", "to"],
        "somebody complains" => ["failed the recipient complained", "to"]);
    # reports that say that all is well are no messages
    my %well = map { $_ => 1 } "other delivered, far delivered",
        "other failed, to delivered", "to delivered, cc delayed";
    my %status = (failed => "5.1.1", refused => "5.7.1", delayed => "4.4.1",
        delivered => "2.1.5");
    for my $what (sort keys %report) {
        my $name = "copy" . ++$count;
        my %address = (to => "$name\@x.example", cc => "cc-$name\@x.example",
            cc2 => "cc2-$name\@x.example", other => "other-$name\@x.example",
            far => "far-$name\@x.example");
        my $talk = mail_talk($address{to});
        my $m = $w->answer($talk, { content => "x", cc => [uc $address{cc},
            $address{cc2}] });
        $worker->once;
        my ($mail) = mails($address{to});
        my $id = "Message-ID: " . header($mail, "Message-ID");
        my $body = $what =~ /(\w+) in words/
            ? "\nHi. This is the qmail-send program at x.example.\n\n"
                . ($address{$1} ? "<$address{$1}>:\n" : "")
                . "550 5.1.1 no such user\n\n"
                . "--- Below this line is a copy of the message.\n\n$id\n"
            : $what =~ /(\w+) complains/ ? report_on($mail, "feedback-report",
                "Feedback-Type: abuse\nVersion: 1\nUser-Agent: x/1\n"
                . ($address{$1} ? "Original-Rcpt-To: <$address{$1}>\n" : ""))
            : report_on($mail, "delivery-status", "Reporting-MTA: dns; x.example\n"
                . join("", map { my ($who, $said) = split / /;
                    "\nFinal-Recipient: rfc822; $address{$who}\nAction: "
                    . ($said eq "refused" ? "failed" : $said)
                    . "\nStatus: $status{$said}\n" } split /, /, $what));
        my ($code) = crmapictl($database, { stdin => "From: MAILER-DAEMON"
            . "\@x.example\nTo: $sales\nMessage-ID: <report-$name>\n$body" },
            "deliver");
        is($code, 0, "$what: a report comes");
        my ($fate, @who) = @{$report{$what}};
        is(fate($talk, $m), $fate, "$what: the answer");
        is(count_rows($w, "message", "conversation_id = '$talk'"),
            $well{$what} ? 2 : 3, "$what: whether it is a message");
        is(scalar sql($database, "SELECT string_agg(email || ' ' || reason, ', '"
            . " ORDER BY email) FROM crmapi.suppression WHERE email LIKE"
            . " '%$name\@x.example'"), join(", ", map { "$address{$_} "
            . ($what =~ /complains/ ? "complaint" : "bounced") } sort @who)
            || undef, "$what: who is suppressed");
    }
};

subtest "repeated with an Idempotency-Key" => sub {
    my $talk = mail_talk("i\@x.example");
    my @r = map { $c->post(path($talk), { content => "once" }, headers =>
        { "Idempotency-Key" => "k-$$" }) } 1 .. 3;
    is(join(" ", map { $_->status } @r), "201 201 201", "three times");
    is($r[0]->body, $r[$_]->body, "the same answer") for 1, 2;
    is($r[1]->header("Location"), $r[0]->header("Location"), "and Location");
    $worker->once;
    is(scalar(mails("i\@x.example")), 1, "one mail");
    is(scalar @{$c->get(path($talk))->data}, 2, "one message");
};

subtest "repeated because the line broke" => sub {
    my $talk = mail_talk("line\@x.example");
    my $body = '{"content": "over a line that breaks"}';
    my $request = "POST " . path($talk) . " HTTP/1.1\r\nHost: x\r\n"
        . "Authorization: Bearer " . $w->key . "\r\nIdempotency-Key: line\r\n"
        . "Content-Type: application/json\r\nContent-Length: "
        . length($body) . "\r\n\r\n$body";
    my $is_there = sub { sql($database, "SELECT count(*) FROM crmapi.message"
        . " WHERE content = 'over a line that breaks'") };
    # it breaks within the body, and before the answer was read
    for my $bytes (length($request) - 9, length $request) {
        my $client = $httpd->client;
        $client->send_raw(substr $request, 0, $bytes);
        wait_for(sub { $is_there->() }, 15) if $bytes == length $request;
        $client->close;
    }
    my $r = $c->request("POST", path($talk), body => $body, headers => {
        "Idempotency-Key" => "line", "Content-Type" => "application/json" });
    status_is($r, 201, "the third time it holds");
    is($r->header("Idempotent-Replayed"), "true", "and says that it was done");
    is($is_there->(), 1, "one message");
    $worker->once;
    is(scalar(mails("line\@x.example")), 1, "one mail");
};

subtest "a workspace that is held, and later not" => sub {
    my $talk = mail_talk("h\@x.example");
    my $m = $w->answer($talk, "x");
    $w->ctl("workspace", "hold", $w->id);
    $worker->once;
    is(fate($talk, $m), "queued", "nothing is sent");
    $w->ctl("workspace", "release", $w->id);
    $worker->once;
    is(fate($talk, $m), "sent", "until it is released");
};

subtest "what was posted before the bound of a release" => sub {
    my $talk = mail_talk("bound\@x.example");
    my $m = $w->answer($talk, "x");
    $w->ctl("workspace", "hold", $w->id);
    sql($database, "SELECT crmapi.release('" . $w->id . "', false, now())");
    $worker->once;
    like(fate($talk, $m), qr/^failed posted before/, "is not sent");
    my $later = $w->answer($talk, "y");
    $worker->once;
    is(fate($talk, $later), "sent", "what is posted later is");
    my $just = $w->answer($talk, "z");
    $w->ctl("workspace", "hold", $w->id);
    sql($database, "SELECT crmapi.release('" . $w->id . "', false, created_at)"
        . " FROM crmapi.message WHERE id = '$just->{id}'");
    $worker->once;
    is(fate($talk, $just), "sent", "so is what was posted just then");
};

subtest "of what a daemon tells the last line of what waits is taken" => sub {
    my ($waits, $done) = map { $w->answer(mail_talk("tell-$_\@x.example"), "x") }
        1, 2;
    sql($database, "UPDATE crmapi.message SET status = 'failed' WHERE id ="
        . " '$done->{id}'");
    my $tell = sub {
        my ($day, @lines) = @_;
        my $lines = JSON::PP->new->encode([map { { workspace_id => $_->[2]
            // $w->id, message_id => $_->[0]{id}, state => $_->[1],
            at => "2027-01-${day}T00:00:00Z", provider_id => "on $day" } }
            @lines]);
        return scalar sql($database, "SELECT crmapi.past_add('$lines')");
    };
    my $told = sub { join "|", map { "@$_" } sql($database, "SELECT message_id,"
        . " state, to_char(sent_at AT TIME ZONE 'UTC', 'DD'), provider_id FROM"
        . " crmapi.past_answer WHERE workspace_id = '" . $w->id . "'") };
    is($tell->(30, [$done, "sent"], [$waits, "unknown"], [$waits, "sent"]), 1,
        "one answer");
    is($told->(), "$waits->{id} sent 30 on 30", "what was said last of it");
    is($tell->(31, [$waits, "free", $w->twin->{id}]), 0,
        "none of another workspace, which has no such answer");
    is($tell->(31, [$waits, "free"]), 1, "the next daemon tells of it, too");
    is($told->(), "$waits->{id} free 31 on 31", "which goes before");
    sql($database, "DELETE FROM crmapi.past_answer");
    $worker->once;
};

subtest "what was sent before the database was restored" => sub {
    my %is;
    for my $state (qw(sent unknown free)) {
        my $talk = mail_talk("past-$state\@x.example");
        my $m = $w->answer($talk, "x");
        sql($database, "INSERT INTO crmapi.past_answer VALUES ('" . $w->id
            . "', '$m->{id}', '$state', now())");
        $is{$state} = [$talk, $m];
    }
    $worker->expect_log(qr/CRM3125: answer/ => 2);
    $worker->once;
    is(join("|", map { fate(@{$is{$_}}) } qw(sent unknown free)),
        "sent|failed delivery_unknown|sent", "is known");
    is(scalar(map { mails("past-$_\@x.example") } qw(sent unknown)), 0,
        "and not sent again");
    is(scalar(mails("past-free\@x.example")), 1, "what was not is sent");
};

subtest "events" => sub {
    $w->log_on;
    my $cursor = $c->get("/api/v1/events", query => { cursor => "*",
        page_size => 100 });
    my $talk = mail_talk("ev\@x.example");
    my $m = $w->answer($talk, "x");
    $worker->once;
    my @events = map { "$_->{type} $_->{data}{status}" }
        grep { ($_->{data}{id} // "") eq $m->{id} }
        @{$c->get("/api/v1/events", query => { cursor => "*",
        page_size => 100 })->data};
    is(join("|", @events), "message.created queued|message.updated sent",
        "tell of it");
};

subtest "an answer waits for no steps that are due" => sub {
    my $steps = "FROM crmapi.job WHERE kind = 'sequence.step' AND payload"
        . " ->> 'step_id' = '" . uuid() . "'";
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)"
        . " SELECT '" . $w->id . "', 'sequence.step', jsonb_build_object("
        . "'enrollment_id', gen_random_uuid(), 'step_id', '"
        . ($steps =~ /'([^']{36})'$/)[0] . "'), now() - interval '1 day'"
        . " FROM generate_series(1, 10000)");
    my $talk = mail_talk("quick\@x.example");
    my $m = $w->answer($talk, "x");
    $worker->start;
    ok(wait_for(sub { fate($talk, $m) eq "sent" }, 60), "it is sent");
    cmp_ok(sql($database, "SELECT count(*) $steps AND state = 'ready'"), ">",
        1000, "before thousands of steps that were due long before it");
    $worker->stop;
    sql($database, "DELETE $steps");
};

subtest "a step of a sequence is a message" => sub {
    my $template = $w->template([{ email_subject => "Hello",
        email_body => "First" }, { delay => "1m",
        email_subject => "Hello again", email_body => "Second" },
        { delay => "1m", sms_body => "Third" }]);
    my $contact = $w->start($template, auto_approve => true, contact => {
        emails => ["seq\@x.example"], phone_numbers => ["+4930123460"] })
        ->{contact_id};
    $worker->hurry for 1 .. 4;
    my %talks = map { $_->{type} => $_ }
        @{$c->get("/api/v1/contacts/$contact/conversations")->data};
    is(join(" ", sort keys %talks), "3 4", "a conversation on each channel")
        or return;
    my $mail = $talks{4};
    is(join("|", map { "$_->{role} $_->{status} $_->{content}" }
        @{$c->get(path($mail->{id}))->data}),
        "assistant sent First|assistant sent Second", "both mails in one");
    is($mail->{last_message}, "Second", "last_message");
    is($mail->{email}, "seq\@x.example", "the participant");
    is($talks{3}{last_message}, "Third", "the text");
    my ($text) = @{$c->get(path($talks{3}{id}))->data};
    my $step = shown($talks{3}{id}, $text)->{metadata}{step_id};
    for my $one (["?message=$step", "sent", "sent"], ["?message=$step",
            "delivered", "delivered"], ["", "read", "read"]) {
        my ($query, $status, $is) = @$one;
        # as the relay for Twilio records it
        sql($database, "UPDATE crmapi.message SET external_id = 'SM-step'"
            . " WHERE id = '$text->{id}'") if !$query;
        twilio_status($query, MessageSid => "SM-step", MessageStatus => $status,
            From => $phone, To => "+4930123460");
        is(fate($talks{3}{id}, $text), $is, "a report on it: $status");
    }
    my ($id) = header((mails("seq\@x.example"))[0], "Message-ID") =~ /<(.+)>/;
    crmapictl($database, { stdin => "From: seq\@x.example\nTo: $sales\n"
        . "Message-ID: <reply-s\@x.example>\nIn-Reply-To: <$id>\n\nOh.\n" },
        "deliver");
    is(join("|", map { $_->{content} } @{$c->get(path($mail->{id}))->data}),
        "First|Second|Oh.", "the reply stands below");
    my $m = $w->answer($mail->{id}, "Ah.");
    $worker->once;
    my @all = mails("seq\@x.example");
    is(header($all[2], "In-Reply-To"), "<reply-s\@x.example>",
        "and is answered in the thread");
};

done_testing;
