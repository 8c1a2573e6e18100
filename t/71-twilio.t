# SPDX-License-Identifier: Apache-2.0
# 71-twilio.t: SMS and calls by Twilio's webhooks (docs/twilio.md)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Twilio qw(encoded signature);
use File::Temp qw(tempdir);

my $BASE = "/crmapi/intake/v1/twilio";
my $SITE = "https://crm.example.com";
my ($OWN, $GUEST) = ("AC" . "0123456789abcdef" x 2, "AC" . "f" x 32);
my %TOKEN = ($OWN => "own-token-$$", $GUEST => "guest-token-$$");

my $folder = tempdir("crm-twilio-XXXXXX", TMPDIR => 1, CLEANUP => 1);
for my $sid ($OWN, $GUEST) {
    write_file("$folder/$sid", "$TOKEN{$sid}\n");
    chmod 0600, "$folder/$sid";
}
my $database = database();
my $conf = <<"END";
CrmApiIntake On
CrmApiMaxBody 1048576
CrmApiTwilio $OWN $folder/$OWN
CrmApiTwilio $GUEST $folder/$GUEST guest
END
my $httpd = httpd(database => $database, unlimited => 1,
    conf => $conf . "CrmApiIntakeUrl $SITE\n");

# ---- webhooks ----------------------------------------------------------------

my $numbers = 0;
# A workspace whose agent has a number, {phone}.
sub space {
    my (%arg) = @_;
    my $greeting = delete $arg{greeting};
    my $w = workspace($httpd, %arg);

    $w->{phone} = sprintf "+4930%07d", ++$numbers;
    sql($database, "UPDATE crmapi.agent SET agent_phone = '$w->{phone}'"
        . (defined $greeting ? ", text_greeting = '$greeting'" : "")
        . " WHERE id = '" . $w->agent . "'");
    return $w;
}

my $sids = 0;
sub sid { return sprintf "%s%032x", $_[0], ++$sids * 65536 + $$ }

# Post PAIRS to PATH as Twilio does. Options in a hash before: account, token,
# url (what is signed), signature, headers, server.
sub twilio {
    my ($path, @pairs) = @_;
    my %option = ref $pairs[0] ? %{shift @pairs} : ();
    my $account = $option{account} // $OWN;
    my $target = "$BASE/$path";

    @pairs = (AccountSid => $account, @pairs);
    my $url = $option{url} // $SITE . $target;
    my $signature = exists $option{signature} ? $option{signature}
        : signature($option{token} // $TOKEN{$account}, $url, @pairs);
    return ($option{server} // $httpd)->client->request("POST", $target,
        body => $option{body} // encoded(@pairs), headers => {
            "Content-Type" => "application/x-www-form-urlencoded",
            "X-Twilio-Signature" => $signature,
            %{$option{headers} || {}} });
}

# An SMS to W; options as twilio() has them, then more parameters.
sub sms {
    my ($w, $from, $body, @more) = @_;
    my %option = ref $more[0] ? %{shift @more} : ();
    my %more = @more;
    return twilio("sms", \%option, From => $from, To => $w->{phone},
        Body => $body, MessageSid => delete $more{MessageSid} // sid("SM"),
        NumMedia => delete $more{NumMedia} // 0, %more);
}

# RESPONSE is TwiML that sends TEXT (undef: nothing).
sub twiml_is {
    my ($r, $text, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    status_is($r, 200, "$name: 200") or return 0;
    is($r->header("Content-Type"), "text/xml; charset=utf-8",
        "$name: as XML");
    my $body = $r->body;
    utf8::decode($body);
    return is($body, qq(<?xml version="1.0" encoding="UTF-8"?>\n<Response>)
        . (defined $text ? "<Message>$text</Message>" : "")
        . "</Response>\n", $name);
}

# The conversations of W with NUMBER, newest first; the messages of one.
sub talks {
    my ($w, $number) = @_;
    return map { $w->client->get("/api/v1/conversations/$_->[0]")->data }
        sql($database, "SELECT id FROM crmapi.conversation WHERE workspace_id"
        . " = '" . $w->id . "' AND crmapi.phone_key(phone_number) ="
        . " crmapi.phone_key('$number') ORDER BY created_at DESC, id DESC");
}

# ---- messages ----------------------------------------------------------------

my $w = space(greeting => "Grüß Gott <you> & \"welcome\"\x{0b}!");
my $GREETED = "Grüß Gott &lt;you&gt; &amp; &quot;welcome&quot; !";
my $guest = space(slug => "guest");

subtest "an SMS: conversation, message, contact, the greeting once" => sub {
    my $r = sms($w, "+4917112345", "Hallo, größte 1+1=2 & mehr \x{1F600}");
    twiml_is($r, $GREETED, "the first one is greeted");
    my ($talk, @more) = talks($w, "+4917112345");
    is(scalar @more, 0, "one conversation") or return;
    is($talk->{type}, 3, "of type text");
    is($talk->{bot_id}, $w->agent, "of the agent with this number");
    my ($said, $greeting, @rest) = $w->messages($talk->{id});
    is(scalar @rest, 0, "two messages");
    is("$said->{role}: $said->{content}",
        "user: Hallo, größte 1+1=2 & mehr \x{1F600}", "the message");
    is($greeting->{role}, "assistant", "and what was answered");
    is_deeply($w->client->get("/api/v1/conversations?unanswered=true")->ids,
        [$talk->{id}], "which is no answer of ours");
    my $contact = $w->client->get("/api/v1/contacts/$talk->{contact_id}")
        ->data;
    is_deeply($contact->{phone_numbers}, [phone("+4917112345", 1)],
        "the contact");
    twiml_is(sms($w, "+49 171 12345", "more"), undef,
        "no greeting for the next one");
    is(scalar(my @all = $w->messages($talk->{id})), 3, "in the same conversation");
};

subtest "no greeting" => sub {
    my $quiet = space(twin => 0);
    twiml_is(sms($quiet, "+4917120", "Hi"), undef, "an agent without one");
    twiml_is(sms($w, "+4917121", "STOP"), undef, "for STOP");
    sql($database, "UPDATE crmapi.conversation SET active = false WHERE"
        . " phone_number = '+4917121'");
    twiml_is(sms($w, "+4917121", "changed my mind?"), undef,
        "nor for who has said STOP, in a new conversation");
    is(scalar(my @talks = talks($w, "+4917121")), 2, "which there is");
};

subtest "each conversation is greeted, by what is not empty" => sub {
    twiml_is(sms(space(twin => 0, greeting => ""), "+4917122", "Hi"), undef,
        "an empty greeting is none");
    for my $time (1, 2) {
        twiml_is(sms($w, "+4917123", "Hi"), $GREETED, "conversation $time");
        my ($talk) = talks($w, "+4917123");
        is_deeply([map { $_->{role} } $w->messages($talk->{id})],
            [qw(user assistant)], "has what was answered");
        sql($database, "UPDATE crmapi.conversation SET active = false WHERE id ="
            . " '$talk->{id}'");
    }
};

# The metadata of the first message from NUMBER.
sub metadata {
    my ($number) = @_;
    my ($talk) = talks($w, $number);
    return JSON::PP->new->decode(scalar sql($database, "SELECT metadata FROM"
        . " crmapi.message WHERE conversation_id = '$talk->{id}'"
        . " ORDER BY created_at, id LIMIT 1"));
}

subtest "as many pictures as are listed, and what a keyword asks for" => sub {
    sms($w, "+4917124", "", NumMedia => 60, map { ("MediaUrl$_" =>
        "https://api.twilio.example/m/$_") } 0 .. 59);
    is(scalar @{metadata("+4917124")->{attachments}}, 50, "50 of 60");
    my $n = 0;
    for my $case ([STOP => "stop"], [START => "start"], [HELP => "help"],
            [Hello => undef]) {
        my $from = "+491712500" . $n++;
        sms($w, $from, $case->[0]);
        is(metadata($from)->{keyword}, $case->[1], $case->[0]);
    }
};

subtest "pictures" => sub {
    twiml_is(sms($w, "+4917113", "", NumMedia => 2,
        MediaUrl0 => "https://api.twilio.example/m/0?a=1&b=2",
        MediaContentType0 => "image/jpeg",
        MediaUrl1 => "https://api.twilio.example/m/1",
        MediaContentType1 => "text/vcard"), $GREETED, "an MMS without words");
    my ($talk) = talks($w, "+4917113");
    my ($said) = $w->messages($talk->{id});
    is($said->{content}, "", "a message without words");
    is_deeply(JSON::PP->new->decode(scalar sql($database, "SELECT metadata FROM"
        . " crmapi.message WHERE id = '$said->{id}'")), { attachments => [
            { url => "https://api.twilio.example/m/0?a=1&b=2",
                type => "image/jpeg" },
            { url => "https://api.twilio.example/m/1",
                type => "text/vcard" }] }, "its pictures are listed");
};

subtest "senders without a number, and WhatsApp" => sub {
    twiml_is(sms($w, "Bank24", "Your code is 1"), undef, "a name");
    twiml_is(sms($w, "Bank24", "Your code is 2"), undef, "again");
    is(count_rows($w, "conversation", "thread = 'twilio:Bank24' AND human ="
        . " 'Bank24' AND contact_id IS NULL"), 1,
        "a name has a conversation, and is no contact");
    my $r = twilio("sms", From => "whatsapp:+4917114",
        To => "whatsapp:$w->{phone}", Body => "Moin", MessageSid => sid("SM"),
        ProfileName => "Käthe Klein");
    twiml_is($r, $GREETED, "WhatsApp");
    my ($talk) = talks($w, "+4917114");
    is($talk->{human}, "Käthe Klein", "with the name there");
    twilio("sms", From => "whatsapp:DE.4711", To => "whatsapp:$w->{phone}",
        Body => "Hi", MessageSid => sid("SM"), ProfileName => "Kim");
    is(sql($database, "SELECT human FROM crmapi.conversation WHERE workspace_id = '"
        . $w->id . "' AND thread = 'twilio:whatsapp:DE.4711'"), "Kim",
        "also of who hides the number");
    sms($w, "+4917114", "And by SMS");
    is_deeply([map { $_->{metadata}{via} } grep { $_->{role} eq "user" }
        @{$w->client->get("/api/v1/conversations/$talk->{id}/messages"
            )->data}], ["whatsapp", undef],
        "the message tells by which way it came");
    my @place = (Latitude => "52.5162", Longitude => "13.3777");
    for my $case ([{ Body => "", @place, Label => "Tor", Address => "Pariser Platz" },
                "Tor, Pariser Platz, 52.5162, 13.3777", { latitude => "52.5162",
                longitude => "13.3777", label => "Tor", address => "Pariser Platz" }],
            [{ @place }, "52.5162, 13.3777",
                { latitude => "52.5162", longitude => "13.3777" }],
            [{ Body => "Here", @place }, "Here",
                { latitude => "52.5162", longitude => "13.3777" }],
            [{ Body => "Where?", Latitude => "52.5162" }, "Where?", undef]) {
        my ($sent, $content, $location) = @$case;
        twilio("sms", From => "whatsapp:+4917114", To => "whatsapp:$w->{phone}",
            MessageSid => sid("SM"), %$sent);
        my $m = $w->client->get("/api/v1/conversations/$talk->{id}/messages"
            . "?order=desc")->data->[0];
        is($m->{content}, $content, "a place: $content");
        is_deeply($m->{metadata}{location}, $location, "where it is");
    }
    my %ad = (ReferralSourceUrl => "https://fb.me/x", ReferralSourceId => "12",
        ReferralSourceType => "ad", ReferralHeadline => "Spring",
        ReferralBody => "Book now", ReferralCtwaClid => "ARAkLkA8",
        ReferralMediaUrl => "https://fb.me/y");
    my $got = sub {
        twilio("sms", From => "whatsapp:+4917114", To => "whatsapp:$w->{phone}",
            MessageSid => sid("SM"), Body => "Hi", @_);
        $w->client->get("/api/v1/conversations/$talk->{id}/messages"
            . "?order=desc")->data->[0]{metadata};
    };
    is_deeply($got->(%ad)->{referral}, { source_url => "https://fb.me/x",
        source_id => "12", source_type => "ad", headline => "Spring",
        body => "Book now", ctwa_clid => "ARAkLkA8",
        media_url => "https://fb.me/y" }, "which ad brought the person");
    is_deeply($got->(ReferralSourceId => "13")->{referral}, { source_id => "13" },
        "as much as is known");
    is_deeply($got->(OriginalRepliedMessageSid => "SM17"),
        { via => "whatsapp", replied_to => "SM17" }, "what it replies to");
    for my $case ([{ Body => "", ButtonText => "Yes", ButtonPayload => "y" }, "Yes"],
            [{ ListTitle => "Monday", ListId => "1" }, "Monday"],
            [{ Body => "Sure", ButtonText => "Yes" }, "Sure"]) {
        my ($sent, $content) = @$case;
        twilio("sms", From => "whatsapp:+4917114", To => "whatsapp:$w->{phone}",
            MessageSid => sid("SM"), %$sent);
        is($w->client->get("/api/v1/conversations/$talk->{id}/messages?order=desc")
            ->data->[0]{content}, $content, "what was chosen: $content");
    }
};

subtest "STOP suppresses and stops, START lifts" => sub {
    my $template = $w->template([{ sms_body => "x" }], stop_on_reply => true);
    my $start = sub { $w->start($template,
        contact => { phone_numbers => [$_[0]] })->{enrollment_id} };
    my $status = sub { $w->enrollment($_[0])->{status} };
    my $suppressed = sub { scalar sql($database, "SELECT coalesce(max(reason),"
        . " 'no') FROM crmapi.suppression WHERE workspace_id = '" . $w->id
        . "' AND address = '$_[0]'") };
    my ($reply, $stop, $other) = map { $start->($_) } "+49172001",
        "+49172002", "+49172003";
    sms($w, "+49172001", "Tell me more, don't stop");
    is($status->($reply), "stopped_reply", "a message stops its sequence");
    is($suppressed->("+49172001"), "no", "and suppresses nobody");
    twiml_is(sms($w, "+49172002", " Stop\n"), undef, "STOP: Twilio answers");
    is($status->($stop), "stopped_unsubscribed", "STOP stops as such");
    is($suppressed->("+49172002"), "unsubscribed", "and suppresses");
    is($status->($other), "generating", "nobody else's");
    my ($talk) = talks($w, "+49172002");
    is(($w->messages($talk->{id}))[0]{content}, " Stop\n",
        "it is a message like others");
    sms($w, "+49172003", "no thanks", OptOutType => "STOP");
    is($suppressed->("+49172003"), "unsubscribed",
        "words of Twilio's Advanced Opt-Out");
    twiml_is(sms($w, "+49172002", "START"), undef, "START");
    is($suppressed->("+49172002"), "no", "lifts");
    is($suppressed->("+49172003"), "unsubscribed", "nobody else");
};

subtest "17.4 an opt-out in any dress; U+0000 is dropped" => sub {
    my $greets = space(greeting => "Hi there");
    my $suppressed = sub { scalar sql($database, "SELECT count(*) FROM"
        . " crmapi.suppression WHERE address = '$_[0]' AND workspace_id = '"
        . $greets->id . "'") };
    my $n = 0;
    for my $text ("Stop.", "\"STOP\"", "opt out", "\x{a0}STOP\x{200b}",
        "STOP, thanks!", "S\x{200d}T\x{200d}OP, thanks!",
        "\x{ff33}\x{ff34}\x{ff2f}\x{ff30} thanks", "S.T.O.P. - thx",
        "\x{201c}stop\x{201d}\x{200b}thank you", "STOP\0", "\0ST\0OP") {
        my $from = sprintf "+4917500%02d", $n++;
        twiml_is(sms($greets, $from, $text), undef, "no greeting");
        is($suppressed->($from), 1, "an opt-out") or diag($text);
    }
    for my $case (["HELP", 0, undef], ["Info?", 0, undef],
        ["stop by", 0, "Hi there"], ["stopthanks", 0, "Hi there"],
        ["st opthanks", 0, "Hi there"], ["STOP", 0, undef, OptOutType => "HELP"],
        ["\x{441}\x{442}\x{43e}\x{43f}", 1, undef, OptOutType => "STOP"],
        ["Dear\0 you", 0, "Hi there"]) {
        my ($text, $out, $answer, @more) = @$case;
        my $from = sprintf "+4917500%02d", $n++;
        twiml_is(sms($greets, $from, $text, @more), $answer, "the answer");
        is($suppressed->($from), $out, "whether it is one") or diag($text);
    }
    my ($talk) = talks($greets, sprintf "+4917500%02d", $n - 1);
    is(($greets->messages($talk->{id}))[0]{content}, "Dear you",
        "without the U+0000");
};

subtest "the same message again" => sub {
    my $sid = sid("SM");
    my @got = in_processes(10, sub {
        return [map { my $r = sms($w, "+49173", "once", { },
            MessageSid => $sid); $r->status . " " . $r->body } 1 .. 5];
    });
    my %texts = map { $_ => 1 } map { @$_ } @got;
    is(scalar(keys %texts), 1, "50 times at once: one answer")
        or diag(join "\n---\n", keys %texts);
    like((keys %texts)[0], qr/^200 .*Gott/s, "the greeting");
    my @talks = talks($w, "+49173");
    is(scalar @talks, 1, "one conversation") or return;
    is(join("|", map { $_->{role} } $w->messages($talks[0]{id})),
        "user|assistant", "one message, one greeting");
    is(count_rows($w, "contact", "phone_key = '+49173'"), 1, "one contact");
};

# ---- who may ----------------------------------------------------------------

subtest "what is not signed" => sub {
    my %said;       # code => lines of it so far
    my $refused = sub {
        my ($r, $name, $code) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        error_is($r, 403, "forbidden", $name);
        is(scalar $httpd->log_lines(qr/$code: /), ++$said{$code},
            "$name: one line more of $code");
    };
    my $before = count_rows($w, "message");
    $refused->(sms($w, "+491", "x", { signature => undef }),
        "no signature", "CRM4101");
    $refused->(sms($w, "+491", "x", { account => "AC" . "1" x 32,
        token => "t" }), "an unknown account", "CRM4102");
    $refused->(sms($w, "+491", "x", { account => substr($OWN, 0, 20),
        token => $TOKEN{$OWN} }), "the beginning of an account", "CRM4102");
    $refused->(twilio("sms?code=S3CRET", { signature => "A" x 27 . "=" }, From =>
        "+491", To => $w->{phone}, Body => "x"), "a wrong signature, with a query",
        "CRM4104");
    unlike($httpd->log_text, qr/S3CRET/, "what is in the query is not logged");
    $refused->(sms($w, "+491", "x", { signature => $_ }),
        "a wrong signature: '" . substr($_, 0, 40) . "'", "CRM4104")
        for "x", "", "A" x 27 . "=", "A" x 7000;
    $refused->(sms($w, "+491", "x", { token => $TOKEN{$GUEST} }),
        "another account's token", "CRM4104");
    $refused->(sms($w, "+491", "x", { url => "$SITE$BASE/status" }),
        "signed for another address", "CRM4104");
    $refused->(sms($w, "+491", "x", { url => "https://127.0.0.1$BASE/sms" }),
        "signed for another host", "CRM4104");
    my @pairs = (AccountSid => $OWN, From => "+491", To => $w->{phone},
        Body => "a", MessageSid => "SMx");
    $refused->(twilio("sms", { signature => signature($TOKEN{$OWN},
        "$SITE$BASE/sms", @pairs), body => encoded(@pairs, More => 1) }),
        "a parameter more", "CRM4104");
    is(count_rows($w, "message"), $before, "nothing was stored");
    unlike($httpd->log_text . $httpd->access_log,
        qr/$TOKEN{$OWN}|$TOKEN{$GUEST}/, "3.4 no token in a log");
};

subtest "other spellings of the address" => sub {
    twiml_is(sms($w, "+491741", "x", { url => "$SITE:443$BASE/sms" }),
        $GREETED, "signed with the port");
    my $plain = httpd(database => $database, unlimited => 1, conf => $conf);
    twiml_is(sms($w, "+491742", "x", { server => $plain,
        url => "http://127.0.0.1$BASE/sms" }), $GREETED,
        "without CrmApiIntakeUrl: scheme and Host of the request");
    twiml_is(sms($w, "+491743", "x", { server => $plain,
        headers => { Host => "127.0.0.1:" . $plain->port },
        url => "http://127.0.0.1:" . $plain->port . "$BASE/sms" }), $GREETED,
        "and its port");
    error_is(sms($w, "+491742", "x", { server => $plain,
        url => "https://127.0.0.1$BASE/sms" }), 403, "forbidden",
        "another scheme");
    my @pairs = (AccountSid => $OWN, From => "+491744", To => $w->{phone},
        Body => "b", Body => "a", Body => "b", MessageSid => sid("SM"),
        "ümlaut[]" => "ß");
    my $r = $httpd->client->request("POST", "$BASE/sms", query => "a=%41&b",
        body => encoded(@pairs), headers => {
            "Content-Type" => "application/x-www-form-urlencoded;"
                . " charset=utf-8",
            "X-Twilio-Signature" => signature($TOKEN{$OWN},
                "$SITE$BASE/sms?a=%41&b", @pairs) });
    twiml_is($r, $GREETED, "a query, and names that come several times");
};

subtest "whose number" => sub {
    error_is(twilio("sms", From => "+491", To => "+19995550000", Body => "x",
        MessageSid => sid("SM")), 404, "not_found", "nobody's");
    like($httpd->log_text, qr/CRM4103: .*\+19995550000/, "CRM4103");
    error_is(sms($w, "+491", "x", { account => $GUEST }), 404, "not_found",
        "of a workspace that the account must not reach");
    twiml_is(sms($guest, "+491751", "x", { account => $GUEST }), undef,
        "of its own");
    twiml_is(sms($guest, "+491752", "x"), undef,
        "an account for all workspaces reaches it, too");
    my $double = space(twin => 0);
    # what no writer can do
    sql($database, "SET session_replication_role = replica;
        INSERT INTO crmapi.agent (id, workspace_id, name, agent_phone)
        VALUES ('@{[uuid()]}', '@{[$double->id]}', 'B', '$double->{phone}')");
    error_is(sms($double, "+491", "x"), 404, "not_found", "two agents'");
};

subtest "requests" => sub {
    my $post = sub {
        my ($type, $body) = @_;
        return $httpd->client->request("POST", "$BASE/sms", body => $body,
            headers => { "Content-Type" => $type,
                "X-Twilio-Signature" => "x" });
    };
    error_is($httpd->client->get("$BASE/$_"), 405, "method_not_allowed", "GET")
        for qw(sms status voice);
    error_is($httpd->client->get("$BASE/"), 404, "not_found", "no webhook");
    my $json = $post->("application/json", "{}");
    error_is($json, 415, "unsupported_media_type",
        "JSON");
    like($json->message, qr/x-www-form-urlencoded/, "which says what it may be");
    error_is($post->("application/x-www-form-urlencoded", $_), 400,
        "bad_request", "malformed: " . s/\0/NUL/r)
        for "a=%", "a%00=b", "a=%ff", "a=b\0c";
    error_is($post->("application/x-www-form-urlencoded", ""), 403,
        "forbidden", "nothing");
    error_is($post->("application/x-www-form-urlencoded",
        "Body=" . "x" x 66_000), 413, "payload_too_large",
        "contract 2.5: more than 64 KiB");
    error_is($post->("application/x-www-form-urlencoded",
        join "&", map { "a$_" } 1 .. 201), 400, "bad_request",
        "contract 2.5: more than 200 fields");
    error_is(twilio("sms", From => "+491", To => $w->{phone}, Body => "x"),
        400, "bad_request", "no MessageSid");
    error_is(twilio("status", MessageSid => "SM1"), 400, "bad_request",
        "no MessageStatus");
    error_is(twilio("voice", CallSid => "CA1"), 400, "bad_request",
        "no CallStatus");
    twiml_is(sms($w, "+491761", "x" x 60_000), $GREETED,
        "a text longer than any message");
    my ($talk) = talks($w, "+491761");
    is(length(($w->messages($talk->{id}))[0]{content}), 60_000, "is stored");
};

# ---- news --------------------------------------------------------------------

subtest "the status of a message" => sub {
    my $token = $w->token("backend");
    my $sid = sid("SM");
    my $r = $httpd->client(key => $token)->post("/crmapi/intake/v1/events",
        { event_id => "out-$$", channel => "sms", bot_id => $w->agent,
            direction => "outbound", to => { phone_number => "+49181" },
            message => { content => "Hi", external_id => $sid,
                status => "queued" } });
    status_is($r, 200, "a message that a backend has sent");
    my ($talk) = talks($w, "+49181");
    my $tell = sub { twilio("status", MessageSid => $_[0], SmsSid => $_[0],
        MessageStatus => $_[1], SmsStatus => $_[1], To => "+49181",
        From => $_[2] // $w->{phone}) };
    my $status = sub { ($w->messages($talk->{id}))[0]{status} };
    status_is($tell->($sid, "sent"), 204, "news");
    is($status->(), "sent", "sent");
    status_is($tell->($sid, "delivered"), 204, "more news");
    status_is($tell->($sid, $_), 204, "news that come late: $_")
        for "sent", "queued", "delivered";
    is($status->(), "delivered", "delivered");
    status_is($tell->(sid("SM"), "delivered"), 204,
        "of a message that nobody knows");
    status_is(twilio("status", SmsSid => $sid, SmsStatus => "read", From =>
        $w->{phone}), 204, "by the old names");
    is($status->(), "read", "read");
    status_is($tell->($sid, "failed", "+19995550000"), 204,
        "of a number that is nobody's");
    is($status->(), "read", "is not about this one");
    is(scalar(my @talks = talks($w, "+49181")), 1,
        "news make no conversation");
};

subtest "why a message was not delivered, and whose it is" => sub {
    my $template = { role => "human", content => "x", status => "sent" };
    my $talk = insert($w, "conversation", bot_id => $w->agent, type => 3);
    # A message of ours to NUMBER; its name at Twilio and its id.
    my $sent = sub { my $sid = sid("SM");
        return ($sid, insert($w, "message", conversation_id => $talk, %$template,
            external_id => $sid, to_identifier => $_[0], handed_over => 1)) };
    my $is = sub { [map { @$_ } sql($database, "SELECT status, metadata ->> 'error'
        FROM crmapi.message WHERE id = '$_[0]'")] };
    my $bare = "Twilio could not deliver it";
    for my $case ([undelivered => "30003", "the phone is off or cannot be reached"
                . " (Twilio's error 30003)"],
            [failed => "30003", "the phone is off or cannot be reached"
                . " (Twilio's error 30003)"],
            [failed => "99999", "$bare (error 99999)"], [failed => "1234567", $bare],
            [failed => "x", $bare], [undelivered => "", $bare],
            [delivered => "30003", undef]) {
        my ($status, $code, $error) = @$case;
        my ($sid, $id) = $sent->("+4918111");
        twilio("status", MessageSid => $sid, MessageStatus => $status,
            ErrorCode => $code, From => $w->{phone});
        is_deeply($is->($id), [$status eq "delivered" ? $status : "failed", $error],
            "$status, '$code'");
    }
    my $suppressed = sub { scalar sql($database, "SELECT count(*) FROM"
        . " crmapi.suppression WHERE address = '$_[0]'") };
    for my $case (["delivered", 0], ["undelivered", 1]) {
        my ($sid) = $sent->("+4918112");
        twilio("status", MessageSid => $sid, MessageStatus => $case->[0],
            ErrorCode => "21610", From => $w->{phone});
        is($suppressed->("+4918112"), $case->[1], "$case->[0]: an opt-out or none");
    }
    # by the address of crmapid's report, if no agent has the sender's number
    my ($sid, $id) = $sent->("+4918113");
    for my $case ([$GUEST, $w->id, "sent"], [$OWN, "x", "sent"],
            [$OWN, $guest->id, "sent"], [$OWN, $w->id, "delivered"]) {
        my ($account, $workspace, $status) = @$case;
        status_is(twilio("status?workspace=$workspace", { account => $account },
            MessageSid => $sid, MessageStatus => "delivered",
            From => "+19995550000"), 204, "news of a workspace");
        is($is->($id)->[0], $status, "by whom: $status");
    }
    # an agent of another workspace has the number, as one of a Messaging Service
    ($sid, $id) = $sent->("+4918114");
    status_is(twilio("status?workspace=" . $w->id, MessageSid => $sid,
        MessageStatus => "undelivered", ErrorCode => "21610",
        From => $guest->{phone}), 204, "news of a number that several send from");
    is($is->($id)->[0], "failed", "are of the workspace that has sent it");
    is($suppressed->("+4918114"), 1, "so is an opt-out");
    # whose id was another one before a restore
    ($sid, $id) = $sent->("+4918115");
    twilio("status?workspace=" . uuid(), MessageSid => $sid,
        MessageStatus => "delivered", From => $w->{phone});
    is($is->($id)->[0], "delivered", "of an unknown one, the sender's number counts");
    $httpd->expect_log(qr/42P01/);
    sql($database, "ALTER TABLE crmapi.intake_event RENAME TO away");
    my $r = twilio("status", MessageSid => $sid, MessageStatus => "read",
        From => $w->{phone});
    sql($database, "ALTER TABLE crmapi.away RENAME TO intake_event");
    cmp_ok($r->status, ">=", 500, "what was not taken shall come again");
};

sub call {
    my ($sid, $status, %members) = @_;
    my $from = delete $members{From} // "+4918200001";
    return twilio("voice", CallSid => $sid, CallStatus => $status,
        Direction => "inbound", From => $from, To => $w->{phone},
        ApiVersion => "2010-04-01", %members);
}

subtest "calls" => sub {
    my $sid = sid("CA");
    twiml_is(call($sid, "ringing", CallerName => "ADA KING"), undef,
        "a call rings");
    my ($talk) = talks($w, "+4918200001");
    is($talk->{type}, 2, "a conversation of type phone");
    is($talk->{active}, true, "that goes on");
    is($talk->{human}, "ADA KING", "with who it is");
    call($sid, "in-progress");
    twiml_is(call($sid, "completed", CallDuration => 100,
        RecordingUrl => "https://api.twilio.example/r/1",
        RecordingSid => "RE1"), undef, "and is over") for 1, 2;
    twiml_is(call($sid, "ringing"), undef, "an old piece of news");
    my ($after, @more) = talks($w, "+4918200001");
    is(scalar @more, 0, "one conversation");
    is($after->{minutes}, 1.6667, "minutes");
    is($after->{audio_url}, "https://api.twilio.example/r/1", "audio_url");
    is($after->{active}, false, "closed");
    call(my $second = sid("CA"), "ringing");
    call($second, "no-answer", CallDuration => 0);
    my @talks = talks($w, "+4918200001");
    is(scalar @talks, 2, "another call is another conversation");
    is($talks[0]{minutes}, undef, "nobody has talked");
    is($talks[0]{active}, false, "no-answer closes it");
    is($talks[0]{contact_id}, $talk->{contact_id}, "of the same contact");
    for my $status (qw(busy failed canceled)) {
        my $from = "+4918200009";
        call(my $id = sid("CA"), "ringing", From => $from);
        call($id, $status, From => $from);
        is((talks($w, $from))[0]{active}, false, "$status closes it, too");
    }
};

subtest "calls that we make, that hide their number, recordings" => sub {
    my $sid = sid("CA");
    twiml_is(twilio("voice", CallSid => $sid, CallStatus => "completed",
        Direction => "outbound-api", From => $w->{phone}, To => "+49183",
        CallDuration => 6, CallerName => "US"), undef, "an outbound call");
    my ($talk) = talks($w, "+49183");
    is($talk->{human}, undef, "our own name is not that of who was called");
    is($talk->{minutes}, 0.1, "minutes");
    twiml_is(twilio("voice", CallSid => $sid, RecordingSid => "RE2",
        RecordingUrl => "https://api.twilio.example/r/2",
        RecordingStatus => "completed"), undef, "its recording comes alone");
    is((talks($w, "+49183"))[0]{audio_url}, "https://api.twilio.example/r/2",
        "audio_url");
    twiml_is(twilio("voice", CallSid => $sid, RecordingSid => "RE3",
        RecordingUrl => "javascript:alert(1)"), undef, "no address");
    # a copy of the workspace has the call as well, until it is deleted there
    my $copy = workspace($httpd, twin => 0);
    sql($database, "INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type,
        thread, deleted, deleted_at) SELECT gen_random_uuid(), '" . $copy->id . "', '"
        . $copy->agent . "', type, thread, true, now() FROM crmapi.conversation
        WHERE workspace_id = '" . $w->id . "' AND thread = '$sid'");
    twiml_is(twilio("voice", CallSid => $sid, RecordingSid => "RE6",
        RecordingUrl => "https://api.twilio.example/r/6"), undef,
        "a further one");
    is((talks($w, "+49183"))[0]{audio_url}, "https://api.twilio.example/r/6",
        "which a deleted conversation takes nothing of");
    twiml_is(twilio("voice", { account => $GUEST }, CallSid => $sid,
        RecordingSid => "RE4", RecordingUrl => "https://evil.example/"), undef,
        "by an account that must not reach it");
    twiml_is(twilio("voice", CallSid => sid("CA"), RecordingSid => "RE5",
        RecordingUrl => "https://x.example/"), undef, "of an unknown call");
    is((talks($w, "+49183"))[0]{audio_url}, "https://api.twilio.example/r/6",
        "change nothing");
    for my $status (qw(in-progress absent failed)) {
        twiml_is(twilio("voice", CallSid => $sid, RecordingSid => "RE7",
            RecordingUrl => "https://api.twilio.example/r/7",
            RecordingStatus => $status), undef, "a recording that is $status");
        is((talks($w, "+49183"))[0]{audio_url}, "https://api.twilio.example/r/6",
            "is nowhere");
    }
    twiml_is(twilio("voice", CallSid => $sid, RecordingSid => "RE7",
        RecordingUrl => "https://api.twilio.example/r/7",
        RecordingStatus => "completed"), undef, "until it is completed");
    is((talks($w, "+49183"))[0]{audio_url}, "https://api.twilio.example/r/7",
        "audio_url");
    # what has the same name and is no call, and a call that two workspaces have
    insert($copy, "conversation", bot_id => $copy->agent, type => 3, thread => $sid);
    my $next = sub { twilio("voice", CallSid => $sid, RecordingSid => "RE$_[0]",
        RecordingUrl => "https://api.twilio.example/r/$_[0]");
        (talks($w, "+49183"))[0]{audio_url} };
    is($next->(8), "https://api.twilio.example/r/8", "beside texts of that name");
    insert($copy, "conversation", bot_id => $copy->agent, type => 2, thread => $sid);
    is($next->(9), "https://api.twilio.example/r/8", "nothing if two have it");
    my $odd = sid("CA");
    call($odd, "ringing", From => "+49184");
    call($odd, "completed", From => "+49184", CallDuration => 123456789,
        RecordingUrl => "javascript:alert(1)");
    is_deeply([@{(talks($w, "+49184"))[0]}{qw(active minutes audio_url)}],
        [false, undef, undef], "a call is over, whatever is said of it");
    my $hidden = sid("CA");
    twiml_is(twilio("voice", CallSid => $hidden, CallStatus => "ringing",
        Direction => "inbound", From => "+266696687", To => $w->{phone}),
        undef, "ANONYMOUS");
    is(count_rows($w, "conversation", "thread = '$hidden' AND contact_id IS"
        . " NULL AND phone_number IS NULL"), 1, "is nobody");
    error_is(twilio("voice", CallSid => sid("CA"), CallStatus => "ringing",
        From => "+49183", To => "+19995550000"), 404, "not_found",
        "a number that is nobody's");
};

subtest "what a caller has said is transcribed" => sub {
    my ($sid, $from) = (sid("CA"), "+4918300017");
    my $template = $w->template([{ sms_body => "x" }], stop_on_reply => true);
    my $enrollment = $w->start($template,
        contact => { phone_numbers => [$from] })->{enrollment_id};
    my $transcribed = sub {
        my ($status, $direction, @more) = @_;
        twiml_is(twilio("voice", CallSid => $sid, CallStatus => "completed",
            Direction => $direction, From => $from, To => $w->{phone},
            RecordingSid => "RE17", TranscriptionStatus => $status,
            RecordingUrl => "https://api.twilio.example/r/17", @more),
            undef, "a transcription: $status");
    };
    my $said = sub {
        my ($talk) = talks($w, $from);
        return [map { "$_->{role}: $_->{content}" } @{$w->client->get(
            "/api/v1/conversations/$talk->{id}/messages")->data}];
    };
    call($sid, "ringing", From => $from);
    call($sid, "completed", From => $from, CallDuration => 9);
    my $before = $w->enrollment($enrollment)->{status};
    $transcribed->("failed", "inbound", TranscriptionSid => "TR16", @$_)
        for [], [TranscriptionText => "Pl"];
    is_deeply($said->(), [], "that failed is nothing");
    is($w->enrollment($enrollment)->{status}, $before, "and no reply");
    $transcribed->("completed", "inbound", TranscriptionSid => "TR17",
        TranscriptionText => "Please call me.") for 1, 2;
    is_deeply($said->(), ["user: Please call me."], "is a message, once");
    my ($talk) = talks($w, $from);
    is($talk->{active}, true, "which somebody must answer");
    is($talk->{audio_url}, "https://api.twilio.example/r/17", "with its recording");
    is($w->enrollment($enrollment)->{status}, "stopped_reply", "it is a reply");
    $transcribed->("completed", "outbound-api", TranscriptionSid => "TR18",
        TranscriptionText => "Hello, hello.");
    is_deeply($said->(), ["user: Please call me.", "system: Hello, hello."],
        "of a call of ours it is what both have said");
    $sid = sid("CA");
    $transcribed->("completed", "inbound", TranscriptionSid => "TR19",
        TranscriptionText => "Who?");
    is(scalar @{$said->()}, 2, "of an unknown call it is nothing");
};

subtest "a recording of what is held or deleted, and of a named workspace" => sub {
    my $named = httpd(database => $database, conf => <<"END");
CrmApiIntake On
CrmApiTwilio $OWN $folder/$OWN
CrmApiTwilio $GUEST $folder/$GUEST @{[uc $guest->id]}
CrmApiIntakeUrl $SITE
END
    my $n = 0;
    my $sid;
    # The audio_url that another recording of $sid, told to SERVER, leaves.
    my $record = sub {
        my (%option) = @_;
        $n++;
        twiml_is(twilio("voice", { account => $GUEST, %option }, CallSid => $sid,
            RecordingSid => "RX$n", RecordingUrl => "https://r.example/$n"),
            undef, "a recording");
        return sql($database, "SELECT coalesce(max(audio_url), '') = 'https://"
            . "r.example/$n' FROM crmapi.conversation WHERE thread = '$sid'");
    };
    for my $case ([guest => $httpd], ["an id in capitals" => $named]) {
        my ($name, $server) = @$case;
        $sid = sid("CA");
        twiml_is(twilio("voice", { account => $GUEST, server => $server },
            CallSid => $sid, CallStatus => "completed", Direction => "inbound",
            From => "+49186", To => $guest->{phone}), undef, "a call");
        is($record->(server => $server), "t", "$name: its recording");
    }
    $guest->ctl("workspace", "hold", $guest->id);
    is($record->(), "f", "not while the workspace is held");
    $guest->ctl("workspace", "release", $guest->id);
    is($record->(), "t", "but later");
    sql($database, "UPDATE crmapi.conversation SET deleted = true WHERE thread"
        . " = '$sid'");
    is($record->(), "f", "not of a conversation that was deleted");
};

subtest "an inbound call stops a sequence when somebody has talked" => sub {
    my $template = $w->template([{ sms_body => "x" }], stop_on_reply => true);
    my $id = $w->start($template,
        contact => { phone_numbers => ["+4918200001"] })->{enrollment_id};
    my $status = sub { $w->enrollment($id)->{status} };
    call(sid("CA"), "busy");
    is($status->(), "generating", "not when it was busy");
    call(sid("CA"), "completed", CallDuration => 30);
    is($status->(), "stopped_reply", "but then");
};

subtest "a reply is of whoever was texted at its number" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my $template = $w->template([map { { sms_body => "x" } } 1, 2],
        stop_on_reply => true);
    my ($shared, $old) = ("+491761000001", "+491761000002");
    $w->client->post("/api/v1/contacts", { bot_id => $w->agent,
        phone_numbers => [$shared] });
    my @started = map { $w->start($template, auto_approve => true, contact => {
        emails => ["t$_\@x.example"], phone_numbers => [$_] }) }
        $shared, $old, "+491761000003";
    $worker->once;
    $w->client->patch("/api/v1/contacts/$started[1]{contact_id}",
        { phone_numbers => ["+491761000004"] });
    sms($w, $shared, "Yes, please");
    call(sid("CA"), "completed", From => $old, CallDuration => 30);
    my @now = map { $w->client->get(
        "/api/v1/sequences/enrollments/$_->{enrollment_id}")->data->{status} }
        @started;
    is($now[0], "stopped_reply", "though an older contact has the number");
    is($now[1], "stopped_reply", "so is a call, though the contact has another"
        . " number now");
    is($now[2], "approved", "nobody else");
};

done_testing;
