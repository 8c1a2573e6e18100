# SPDX-License-Identifier: Apache-2.0
# 73-replies.t: how an answer to our mails, and their return, is known (contract
# 17.5, 18.4 to 18.6)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Process qw(read_file);
use CrmTest::Smtpd;
use JSON::PP ();

my $json = JSON::PP->new->utf8;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my ($sales, $shown) = ("sales\@crm.example.org", "ada\@shown.example.org");
change($w, "agent", $w->agent, agent_email => $sales, name => "Ada");

my $smtp = CrmTest::Smtpd->new;
my $worker = worker(database => $database, no_start => 1, conf => {
    $smtp->relay, public_url => "https://crm.example.org" });

my $template = $w->template([map { { email_subject => "Mail $_",
    email_body => "Dear you", delay => "1h" } } 1, 2]);

# A sequence to EMAIL whose first mail was sent: { enrollment, contact, mail,
# id (the Message-ID without brackets) }.
sub sequence {
    my ($email) = @_;
    my $started = $w->start($template, auto_approve => true,
        contact => { emails => [$email] });
    my $before = $smtp->received;
    $worker->once;
    my $id = $started->{enrollment_id};
    # the first one is due at once
    $worker->hurry if $smtp->received == $before;
    my ($mail) = grep { /^X-Envelope-To: \Q$email\E$/m } $smtp->received;
    my ($name) = ($mail // "") =~ /^Message-ID: <(\S+)>$/mi;
    return { enrollment => $id, mail => $mail, id => $name, email => $email,
        contact => scalar sql($database, "SELECT contact_id FROM"
            . " crmapi.enrollment WHERE id = '$id'") };
}

sub enrollment {
    return $w->enrollment($_[0]{enrollment});
}

# "running", "stopped_reply", "suppressed" (why), "failed: why".
sub fate {
    my ($s) = @_;
    my $e = enrollment($s);
    my $why = sql($database, "SELECT reason FROM crmapi.suppression WHERE"
        . " workspace_id = '" . $w->id . "' AND email = '$s->{email}'");
    return "suppressed $why" if $why;
    return $e->{status} eq "approved" ? "running"
        : $e->{status} eq "failed" ? "failed: $e->{generation_error}"
        : $e->{status};
}

my $count = 0;
# Deliver MAIL with OPTIONS; what was said of it.
sub deliver {
    my ($mail, @options) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code, $out, $err) = crmapictl($database, { stdin => $mail }, "--json",
        "deliver", @options);
    is($code, 0, "it is taken") or diag($err);
    return $json->decode((split /\n/, $out)[0] // "{}");
}

# A mail with HEADERS and TEXT.
sub mail {
    my ($text, %headers) = @_;
    $count++;
    my %all = (To => $sales, Subject => "Re: Mail 1", "Message-ID" =>
        "<m$count-$$\@example.org>", %headers);
    return join("", map { "$_: $all{$_}\n" } grep { defined $all{$_} }
        sort keys %all) . "\n$text\n";
}

sub reply_to {
    my ($s, %headers) = @_;
    return mail("Yes, please call me.", From => $s->{email},
        "In-Reply-To" => "<$s->{id}>", References => "<$s->{id}>", %headers);
}

sub messages { return $w->messages($_[0]) }

# What the relay keeps of S's mail, without the envelope.
sub original {
    my ($s) = @_;
    return $s->{mail} =~ s/^X-(?:Envelope-\w+|Given): .*\n//mgr;
}

subtest "18.4 the Message-ID of our mails is in nothing else" => sub {
    my $s = sequence("first\@p.example.net");
    ok($s->{id}, "it has one") or diag($s->{mail});
    like($s->{id}, qr/\@x\.org$/, "of our domain");
    my ($step) = @{enrollment($s)->{steps}};
    my ($name) = $s->{id} =~ /^([^\@]+)/;
    isnt($name, $step->{id}, "it is not the step's id");
    my $rest = original($s) =~ s/^Message-ID: .*//mir =~ s/=\n//gr;
    unlike($rest, qr/\Q$name\E/, "nothing else of the mail has it");
    my ($token) = $rest =~ m{https://\S+/unsubscribe/([\w-]+)};
    ok($token, "there is a link");
    require MIME::Base64;
    (my $hex = $name) =~ s/-//g;
    unlike(unpack("H*", MIME::Base64::decode_base64url($token // "")),
        qr/$hex/, "which has not it, either");
    unlike($json->encode(enrollment($s)), qr/\Q$name\E/, "nor has the API");
    isnt(sequence("second\@p.example.net")->{id}, $s->{id}, "each has its own");
};

subtest "18.4 a reply is proven by our Message-ID, whole" => sub {
    my $s = sequence("grace\@p.example.net");
    my ($name) = $s->{id} =~ /^([^\@]+)/;
    my $step = enrollment($s)->{steps}[0]{id};
    for my $wrong ("$name\@evil.example", "$name\@x.org.evil.example",
        "x$name\@x.org", "$step\@x.org", "$name\@X.org") {
        deliver(mail("Hi", From => "mallory\@example.net",
            "In-Reply-To" => "<$wrong>"));
        is(fate($s), "running", "not by $wrong");
    }
    my $got = deliver(reply_to($s));
    is(fate($s), "stopped_reply", "it is");
    my ($sent, $message) = messages($got->{conversation_id});
    is($sent->{role}, "assistant", "below what it answers");
    is($message->{metadata}{verified}, undef, "and it is the contact's own");
};

subtest "18.4 whoever answers stops it, but is not the contact" => sub {
    my $s = sequence("joan\@p.example.net");
    my $before = $c->get("/api/v1/contacts/$s->{contact}")->data;
    my $got = deliver(reply_to($s, From => "Jo <jo\@private.example.net>"));
    is(fate($s), "stopped_reply", "it stops");
    my $talk = $c->get("/api/v1/conversations/$got->{conversation_id}")->data;
    is($talk->{contact_id}, $s->{contact}, "in the contact's conversation");
    is((messages($talk->{id}))[-1]{metadata}{verified}, JSON::PP::false,
        "as a claim");
    is_deeply($c->get("/api/v1/contacts/$s->{contact}")->data, $before,
        "which changes no contact");
    $s = sequence("kate\@p.example.net");
    change($w, "contact", $s->{contact}, emails => $json->encode([
        { email => "kate\@p.example.net", is_primary => JSON::PP::true },
        { email => "Kate\@Home.example", is_primary => JSON::PP::false }]));
    $got = deliver(reply_to($s, From => "kate\@home.example"));
    is((messages($got->{conversation_id}))[-1]{metadata}{verified}, undef,
        "any address of the contact is its own");
};

subtest "18.4 a proven reply, whatever its headers" => sub {
    my $n = 0;
    for my $headers ({ "List-Unsubscribe" => "<mailto:u\@p.example.net>" },
        { "X-Auto-Response-Suppress" => "All" }, { "Feedback-ID" => "a:b" },
        { Precedence => "bulk" }, { "List-Id" => "<g.example.net>" },
        { "Auto-Submitted" => "auto-forwarded" }) {
        my $s = sequence("marked" . $n++ . "\@p.example.net");
        my $got = deliver(reply_to($s, %$headers));
        is(fate($s), "stopped_reply", join " ", %$headers);
        is((messages($got->{conversation_id}))[-1]{metadata}{automatic}, undef,
            "a person wrote it");
    }
    my $s = sequence("away\@p.example.net");
    for my $headers ({ "Auto-Submitted" => "auto-replied" },
        { Subject => "Automatic reply: Mail 1" },
        { Subject => "Out of Office: Re: Mail 1" },
        { Subject => "=?utf-8?Q?R=C3=A9ponse?= automatique : Mail 1" }) {
        deliver(reply_to($s, %$headers));
        is(fate($s), "running", "an automatic one stops nothing: "
            . join " ", %$headers);
    }
};

subtest "18.4 by the id that the relay gave" => sub {
    my $s = sequence("given\@p.example.net");
    my ($given) = $s->{mail} =~ /^X-Given: (\S+)$/m;
    deliver(mail("Hi", From => "mallory\@example.net", "In-Reply-To" =>
        "<$given\@evil.example>"));
    is(fate($s), "running", "not with another domain");
    deliver(mail("Yes", From => $s->{email}, References =>
        "<$given\@eu-west-1.amazonses.com>"));
    is(fate($s), "stopped_reply", "it is");
    $s = sequence("given2\@p.example.net");
    deliver(reply_to($s));
    is(fate($s), "stopped_reply", "ours counts as well");
};

subtest "18.4 Reply-To, and email_outbound_email receives" => sub {
    change($w, "agent", $w->agent, email_outbound_email => $shown);
    my $s = sequence("shown\@p.example.net");
    like($s->{mail}, qr/^From: Ada <\Q$shown\E>$/m, "From");
    like($s->{mail}, qr/^Reply-To: Ada <\Q$sales\E>$/m, "Reply-To");
    like($s->{mail}, qr/^X-Envelope-From: \Q$shown\E$/m, "bounces go to From");
    my $got = deliver(reply_to($s, To => "x\@y.example"), "--recipient",
        uc $shown);
    is(fate($s), "stopped_reply", "a reply to From");
    is((messages($got->{conversation_id}))[-1]{metadata}{automatic}, undef,
        "is one");
    $got = deliver(mail("me", From => $shown));
    is((messages($got->{conversation_id}))[0]{metadata}{automatic}, "loop",
        "a mail from there is the agent's own");
    my $other = insert($w, "agent", name => "Other");
    change($w, "agent", $other, agent_email => $shown);
    $got = deliver(mail("hello", From => "n\@p.example.net"), "--recipient",
        $shown);
    is($c->get("/api/v1/conversations/$got->{conversation_id}")
        ->data->{bot_id}, $other, "an agent_email goes before");
    change($w, "agent", $other, agent_email => undef,
        email_outbound_email => $shown);
    $got = deliver(mail("hello", From => "o\@p.example.net"), "--recipient",
        $shown);
    is($c->get("/api/v1/conversations/$got->{conversation_id}")
        ->data->{bot_id}, $w->agent, "of several the oldest");
    change($w, "agent", $_, email_outbound_email => undef)
        for $other, $w->agent;
};

subtest "18.4 mail_reply_token: the address proves it" => sub {
    $worker->configure({ mail_reply_token => "on" });
    my $s = sequence("token\@p.example.net");
    my ($address) = $s->{mail} =~ /^Reply-To: Ada <(\S+)>$/m;
    like($address, qr/^sales\+[0-9a-f]{32}\@crm\.example\.org$/, "Reply-To");
    like($s->{mail}, qr/^X-Envelope-From: \Q$address\E$/m, "and the envelope");
    unlike($s->{id}, qr/${\($address =~ m{\+(\w+)})}/, "not the Message-ID");
    deliver(mail("Yes", From => $s->{email}, To => $address =~
        s/\+..../+0000/r));
    is(fate($s), "running", "another token");
    deliver(mail("Yes", From => "jo\@private.example.net", To => "x\@y"),
        "--recipient", uc $address);
    is(fate($s), "stopped_reply", "a reply without References");
    $s = sequence("token2\@p.example.net");
    ($address) = $s->{mail} =~ /^X-Envelope-From: (\S+)$/m;
    deliver("From: MAILER-DAEMON\@mx.example\nTo: $address\nSubject: failed\n"
        . "\n550 5.1.1 User unknown\n");
    is(fate($s), "suppressed bounced", "a bounce that returns nothing");
    # a local part has 64 bytes (RFC 5321, 4.5.3.1.1), and what follows the first
    # plus does not count
    for my $own ("sales+vip", "s" x 31, "s" x 32) {
        my $token = length $own == 31 ? qr/\+[0-9a-f]{32}/ : qr//;
        change($w, "agent", $w->agent, agent_email => "$own\@crm.example.org");
        $s = sequence("to-" . length($own) . "\@p.example.net");
        like($s->{mail}, qr/^X-Envelope-From: \Q$own\E$token\@crm\.example\.org$/m,
            "$own: a token where there is room, in the envelope");
        like($s->{mail},
            qr/^Reply-To: Ada\s+<\Q$own\E$token\@crm\.example\.org>$/m,
            "and where replies go");
    }
    change($w, "agent", $w->agent, agent_email => $sales);
    $worker->configure({ mail_reply_token => "off" });
};

subtest "18.6 a stranger who is first diverts nothing" => sub {
    my $s = sequence("reach\@p.example.net");
    my $got = deliver(mail("It is mine", From => "mallory\@example.net",
        "Message-ID" => "<$s->{id}>"));
    is(fate($s), "running", "with our Message-ID: nothing stops");
    my $reply = deliver(reply_to($s));
    isnt($reply->{conversation_id}, $got->{conversation_id},
        "the real reply is not in the stranger's conversation");
    is($c->get("/api/v1/conversations/$reply->{conversation_id}")
        ->data->{contact_id}, $s->{contact}, "but in the contact's");
    is(fate($s), "stopped_reply", "and stops");
};

subtest "18.6 one mail is one message: Message-ID, From and recipient" => sub {
    my $id = "<dup-$$\@example.org>";
    my $first = deliver(mail("first", From => "mallory\@example.net",
        "Message-ID" => $id));
    my $real = deliver(mail("real", From => "Grace <grace\@example.org>",
        "Message-ID" => $id));
    isnt($real->{message_id}, $first->{message_id}, "two mails");
    is((messages($real->{conversation_id}))[0]{content}, "real", "each is kept");
    is(deliver(mail("real", From => "GRACE\@example.org", "Message-ID" => $id))
        ->{message_id}, $real->{message_id}, "again: the same");
    for my $from ("grace\@example.org", "mallory\@example.net") {
        my $got = deliver(mail("more", From => $from, "In-Reply-To" => $id));
        is($got->{conversation_id}, ($from =~ /grace/ ? $real : $first)
            ->{conversation_id}, "$from stays in its own thread");
    }
    is(deliver(mail("three", From => "third\@example.com",
        "In-Reply-To" => $id))->{conversation_id}, $first->{conversation_id},
        "others follow the first");
};

subtest "18.4 follow-ups are in the thread" => sub {
    my $s = sequence("follow\@p.example.net");
    $worker->hurry;
    my ($second) = grep { /^Subject: .*Mail 2/m && /^X-Envelope-To: follow\@/m }
        $smtp->received;
    like($second, qr/^Subject: Re: Mail 2$/m, "Re:");
    like($second, qr/^In-Reply-To: <\Q$s->{id}\E>$/m, "In-Reply-To");
    like($second, qr/^References: <\Q$s->{id}\E>$/m, "References");
    unlike($s->{mail}, qr/^(?:References|In-Reply-To|Subject: Re):/m,
        "the first begins one");
    $s->{id} = ($second =~ /^Message-ID: <(\S+)>/mi)[0];
    my $got = deliver(reply_to($s));
    is((messages($got->{conversation_id}))[0]{metadata}{verified}, undef,
        "an answer to it is proven");
};

# ---- bounces (17.5, 18.5) ----------------------------------------------------

# A bounce of S's mail: TEXT and HEADERS, and RETURNED as PART.
sub bounce {
    my ($s, $text, $part, $returned, %headers) = @_;
    return mail("--b\nContent-Type: text/plain; charset=utf-8\n\n$text\n--b\n"
        . "Content-Type: $part\n\n$returned\n--b--",
        From => "MAILER-DAEMON\@mx.example", Subject => "Undelivered",
        "Content-Type" => "multipart/mixed; boundary=b", %headers);
}

my @statuses = (
    (map { [$_, "suppressed bounced"] } qw(5.1.1 5.1.2 5.1.3 5.1.6 5.1.10
        5.2.1)),
    (map { [$_, "failed: the mail was returned: $_"] } qw(5.7.1 5.7.26 5.7.509
        5.1.8 5.3.2 5.4.4 5.5.0 5.2.2)),
    (map { [$_, "running"] } qw(4.2.1 4.4.7)),
);
subtest "17.5 what a returned mail says of the address" => sub {
    my $n = 0;
    for my $case (@statuses) {
        my ($status, $fate) = @$case;
        my $s = sequence("s" . $n++ . "\@p.example.net");
        my $got = deliver(bounce($s, "550 $status no", "message/rfc822",
            original($s)));
        is(fate($s), $fate, $status);
        my $step = enrollment($s)->{steps}[0];
        is($step->{status}, $fate eq "running" ? "sent" : "failed",
            "the step");
        my ($message) = grep { $_->{id} eq $got->{message_id} }
            messages($got->{conversation_id});
        is("$message->{role} $message->{metadata}{automatic}",
            "system bounce", "it is a bounce");
        is($c->get("/api/v1/conversations/$got->{conversation_id}")
            ->data->{contact_id}, $s->{contact}, "of the contact's");
    }
};

subtest "17.5 a server that gives up in words, without a status" => sub {
    my $failed = "failed: the mail was returned: 5.0.0";
    my $n = 0;
    for my $case (["This is a permanent error.\n\nretry timeout exceeded",
            $failed], ["The mailbox is full. Delivery failed.", $failed],
        ["It could not be delivered yet. It will be retried.", "running"],
        ["450 4.2.2 full. I'm not going to try again.",
            "failed: the mail was returned: 4.2.2"]) {
        my ($words, $fate) = @$case;
        my $s = sequence("words" . $n++ . "\@p.example.net");
        deliver(bounce($s, $words, "message/rfc822", original($s),
            Subject => "Mail"));
        is(fate($s), $fate, $words);
    }
};

subtest "17.5 the same when the relay answers at once" => sub {
    $worker->expect_log(qr/CRM3122: .*answered 550 5\.[17]\.1/ => 2);
    my %fate = ("5.1.1" => "suppressed bounced", "5.7.1" => "failed: ");
    for my $status (sort keys %fate) {
        my $email = "1.550-" . ($status =~ tr/./-/r) . "\@p.example.net";
        my $s = sequence($email);
        like(fate($s), qr/^$fate{$status}/, $status);
        my $step = enrollment($s)->{steps}[0];
        is($step->{status}, "failed", "the step");
        like(scalar sql($database, "SELECT error FROM crmapi.enrollment_step"
            . " WHERE id = '$step->{id}'"), qr/550 \Q$status\E/, "with it");
    }
};

subtest "17.3 suppression of the very address that goes over the wire" => sub {
    my $id = $w->start($template, auto_approve => true, contact => {
        emails => ["y\@k\xf6ln.example"] })->{enrollment_id};
    sql($database, "INSERT INTO crmapi.suppression (id, workspace_id, email,"
        . " reason) VALUES (gen_random_uuid(), '" . $w->id
        . "', 'Y\@xn--kln-sna.example', 'unsubscribed')");
    my $before = $smtp->received;
    $worker->hurry for 1 .. 2;
    is(scalar $smtp->received, $before, "nothing is sent");
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment_step WHERE"
        . " status NOT IN ('cancelled', 'skipped') AND enrollment_id = '$id'"), 0,
        "nor will be");
};

subtest "18.4 a bounce of a mail that the relay gave another id" => sub {
    my $s = sequence("other\@p.example.net");
    my $other = original($s) =~ s/^(Message-ID: <)\S+>/$1other\@relay>/mir;
    deliver(bounce($s, "550 5.1.1 User unknown", "message/rfc822",
        $other =~ s/^X-Crmapi-Return: .*\n//mr));
    is(fate($s), "running", "nothing of it is ours");
    my ($token) = original($s) =~ /^X-Crmapi-Return: (\S+)$/m;
    deliver(mail("Hi", From => "mallory\@example.net", "In-Reply-To" =>
        "<$token\@x.org>", "X-Crmapi-Return" => $token));
    is(fate($s), "running", "the header proves no reply");
    deliver(bounce($s, "550 5.1.1 User unknown", "message/rfc822", $other));
    is(fate($s), "suppressed bounced", "but that it is returned");
};

subtest "17.5 complaints suppress" => sub {
    for my $case (["abuse", "suppressed complaint"], ["not-spam", "running"]) {
        my ($kind, $fate) = @$case;
        my $s = sequence("arf-$kind\@p.example.net");
        deliver(mail("--b\n\nAn email abuse report.\n--b\nContent-Type:"
            . " message/feedback-report\n\nFeedback-Type: $kind\nVersion: 1\n"
            . "\n--b\nContent-Type: message/rfc822\n\n" . original($s)
            . "\n--b--", From => "fbl\@isp.example", "Content-Type" =>
            "multipart/report; report-type=feedback-report; boundary=b"));
        is(fate($s), $fate, $kind);
    }
};

subtest "17.5 a complaint says more than an unsubscription" => sub {
    my $s = sequence("both\@p.example.net");
    my $is = sub { fate($s) =~ s/suppressed //r };
    sql($database, "SELECT crmapi.suppress('" . $w->id . "', '$s->{email}', NULL,"
        . " '$_')") for "unsubscribed", "complaint";
    is($is->(), "complaint", "it stays");
    sql($database, "SELECT crmapi.suppress('" . $w->id . "', '$s->{email}', NULL,"
        . " 'unsubscribed')");
    is($is->(), "complaint", "also when the person unsubscribes");
};

# ---- shared cases ------------------------------------------------------------

subtest "what becomes of a sequence: t/mail/cases" => sub {
    my $folder = "$CrmTest::TOP/t/mail/cases";
    my $cases = $json->decode(read_file("$folder/cases.json"));
    for my $case (grep { $cases->{$_}{seq} } sort keys %$cases) {
        my $s = sequence("who-$case\@p.example.net");
        my %put = (WHO => $s->{email}, "MESSAGE-ID" => $s->{id},
            ORIGINAL => original($s), "ORIGINAL-OTHER-ID" => original($s)
                =~ s/^(Message-ID: <)\S+>/$1another-$case\@relay>/mir);
        my $text = read_file("$folder/$case.eml")
            =~ s/\@([A-Z]+(?:-[A-Z]+)*)\@/$put{$1} \/\/ die $1/ger;
        deliver($text =~ s/sales\@crm\.example\.org/$sales/gr);
        like(fate($s), qr/^$cases->{$case}{seq}\b/, $case);
    }
};

done_testing();
