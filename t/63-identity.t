# SPDX-License-Identifier: Apache-2.0
# 63-identity.t: one person, however the e-mail address is written (contract 17.2,
# 17.3): look-ups, writes, intake, suppression and what is sent
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Smtpd;

CrmTest::Smtpd::needed();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
my $smtp = CrmTest::Smtpd->new;
my $worker = worker(database => $database, no_start => 1, conf => {
    $smtp->relay, mail_domain => "crm.example",
    mail_from => "crm\@crm.example" });
my $w = workspace($httpd);
my $c = $w->client;
my $template = $w->template([{ email_subject => "Hi", email_body => "Hi" }]);

my $people = 0;
# The texts of one new address, the canonical one first.
sub spellings {
    my $name = "y" . ++$people;
    return map { s/y(?="?\@)/$name/ir } "y\@xn--kln-sna.test", "y\@köln.test",
        "Y\@KÖLN.TEST", "y\@ko\x{308}ln.test", "y\@köln.test.",
        "y\@XN--KLN-SNA.test", "y\@kö\x{ad}ln.test", "y\@ｋöｌｎ.test",
        "y\@köln\x{ff0e}test", "y\@köln\x{3002}test", "\"y\"\@köln.test";
}

# TEXT as it can be read.
sub shown { return $_[0] =~ s/([^ -~])/sprintf "{%X}", ord $1/ger }

sub contact {
    my (@emails) = @_;
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        emails => \@emails });
    status_is($r, 201, "a contact") or return {};
    return $r->data;
}

subtest "17.2 look-ups and writes of the API" => sub {
    my ($form, @texts) = spellings();
    my $stored = contact($texts[0]);
    is($stored->{emails}[0]{email}, $texts[0], "it is shown as it was sent");
    for my $text ($form, @texts) {
        is($c->get("/api/v1/contacts/by-email", query => { email => $text })
            ->data->{id}, $stored->{id}, "by-email: " . shown($text));
        my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
            contacts => [{ emails => [$text], tags => ["x"] }] });
        is_deeply([map { $_->{id} } @{$r->data->{updated}}], [$stored->{id}],
            "upsert: " . shown($text));
        is($w->start($template, auto_approve => false, contact => { emails =>
            [$text] })->{contact_id}, $stored->{id}, "start: " . shown($text));
    }
    is(scalar @{$c->get("/api/v1/contacts/$stored->{id}")->data->{emails}}, 1,
        "no other spelling is added");
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [map { { emails => [$_] } } spellings()] });
    is(@{$r->data->{created}} . " " . @{$r->data->{updated}}, "1 10",
        "10.2 one batch makes one contact");
    my @all = spellings();
    is(scalar @{contact(@all)->{emails}}, 1, "9.2 equal ones collapse");
};

subtest "7.8 search" => sub {
    my ($form, @texts) = spellings();
    my $name = $form =~ s/\@.*//r;
    my $stored = contact("$name\@köln.test");
    for my $text ("$name\@köln.test", "$name\@ko\x{308}ln.test",
            "$name\@KÖLN", $form) {
        is_deeply([map { $_->{id} } @{$c->get("/api/v1/contacts",
            query => { search => $text })->data}], [$stored->{id}],
            shown($text));
    }
    $c->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "Zoe\x{308}$$" });
    is(scalar @{$c->get("/api/v1/contacts",
        query => { search => "zoë$$" })->data}, 1, "NFD is found by NFC");
};

subtest "17.2 what has no form is refused" => sub {
    for my $text ("a\@xn--a", "a\@x..test", "a\@.test", "a\@-x.test",
            "a\@" . "b" x 64 . ".test", "a\@[127.0.0.1]", "a\@x,y",
            "a\@x\x{202e}y.test", "a\@x\x{200d}y.test", "a\@\x{e000}.test",
            "a\@" . "öx" x 60 . ".test") {
        my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
            emails => [$text] });
        status_is($r, 422, shown($text)) and is($r->details->[0]{field},
            "emails[0]", "which it is");
        status_is($c->get("/api/v1/contacts/by-email",
            query => { email => $text }), 404, "7.8 by-email");
    }
    my $stored = contact("fine\@x.test");
    status_is($c->patch("/api/v1/contacts/$stored->{id}",
        { emails => ["a\@xn--a"] }), 422, "a PATCH");
    status_is($c->post("/api/v1/sequences/start", { template_id => $template,
        contact => { emails => ["a\@xn--a"] } }), 422, "a start");
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ["a\@xn--a"] }] });
    is(scalar @{$r->data->{errors}}, 1, "an item of an upsert");
    my ($code, undef, $err) = crmapictl($database, qw(suppress add --workspace),
        $w->id, "--email", "a\@xn--a");
    isnt($code, 0, "crmapictl suppress");
    like($err, qr/--email must be an e-mail address/, "says why");
};

subtest "17.2 intake" => sub {
    my $token = $w->token("x");
    my $client = $httpd->client(key => $token);
    my ($form, @texts) = spellings();
    my $stored = contact($form);
    my $n = 0;
    my %talks;
    for my $text (@texts) {
        my $r = $client->post("/crmapi/intake/v1/events", [{
            event_id => "i" . ++$n, channel => "email", bot_id => $w->agent,
            from => { email => $text }, message => { content => "Hi" } }]);
        my $got = $r->data->{accepted}[0];
        is($got->{contact_id}, $stored->{id}, shown($text));
        $talks{$got->{conversation_id}} = 1;
    }
    is(scalar keys %talks, 1, "one conversation");
};

subtest "17.2 the agent's own address" => sub {
    change($w, "agent", $w->agent, agent_email => "hilfe\@bücher.test");
    for my $to ("hilfe\@bücher.test", "Hilfe\@xn--bcher-kva.test",
            "hilfe+x\@XN--BCHER-KVA.test", "hilfe\@bu\x{308}cher.test") {
        utf8::encode(my $bytes = $to);
        my ($code, $out, $err) = crmapictl($database, { stdin =>
            "From: ada\@example.org\nTo: $bytes\nSubject: x\n\nHi\n" },
            "deliver", "--recipient", $bytes);
        is($code, 0, shown($to)) or diag($err);
    }
};

# The recipient to whom EMAIL's sequence is sent, else its state.
sub sent_to {
    my (@emails) = @_;
    my $before = () = $smtp->received;
    my $stored = contact(@emails);
    my $started = $w->start($template, auto_approve => true,
        contact => { emails => [$emails[0]] });
    $worker->once;
    my @mails = $smtp->received;
    my $e = $w->enrollment($started->{enrollment_id});
    my ($to) = $before < @mails
        ? $mails[-1] =~ /^X-Envelope-To: (.*)$/m : ();
    return $to // join " ", $e->{status}, $e->{generation_error} // ();
}

subtest "17.2 the form goes over the wire" => sub {
    for my $i (0 .. 10) {
        my @texts = spellings();
        is(sent_to($texts[$i]), $texts[0], shown($texts[$i]));
    }
};

subtest "17.3 who is suppressed gets nothing" => sub {
    for my $i (0 .. 10) {
        my @texts = spellings();
        utf8::encode(my $bytes = $texts[$i]);
        crmapictl_ok($database, qw(suppress add --workspace), $w->id, "--email",
            $bytes);
        is(sent_to($texts[10 - $i]), "failed no_usable_channels",
            shown("$texts[$i], $texts[10 - $i]"));
        crmapictl_ok($database, qw(suppress remove --workspace), $w->id,
            "--email", do { utf8::encode(my $b = $texts[(3 * $i) % 11]); $b });
        is(scalar sql($database, "SELECT count(*) FROM crmapi.suppression"), 0,
            "17.2 and it can be lifted by another spelling");
    }
    # a step that was planned before; suppressed afterwards
    my @texts = spellings();
    contact($texts[1]);
    my $started = $w->start($template, auto_approve => false,
        contact => { emails => [$texts[1]] });
    $worker->once;
    my $before = () = $smtp->received;
    my ($out) = crmapictl_ok($database, qw(suppress add --workspace), $w->id,
        "--email", $texts[0]);
    is($w->enrollment($started->{enrollment_id})->{status},
        "stopped_unsubscribed",
        "suppressing one spelling stops the sequence to another");
    $worker->once;
    is(scalar(() = $smtp->received), $before, "nothing is sent");
};

subtest "17.2 an address without a form is never written to" => sub {
    my $stored = contact("never\@x.test", "second\@x.test");
    sql($database, "UPDATE crmapi.contact SET emails = '[{\"email\":"
        . " \"never\@[127.0.0.1]\", \"is_primary\": true}, {\"email\":"
        . " \"second\@x.test\", \"is_primary\": false}]' WHERE id ="
        . " '$stored->{id}'");
    my $started = $w->start($template, auto_approve => true,
        contact => { emails => ["other$$\@x.test"] });
    sql($database, "UPDATE crmapi.enrollment SET contact_id = '$stored->{id}'"
        . " WHERE id = '$started->{enrollment_id}'");
    my $before = () = $smtp->received;
    $worker->once;
    my @mails = $smtp->received;
    is(scalar @mails, $before + 1, "one mail");
    like($mails[-1], qr/^X-Envelope-To: second\@x\.test$/m, "to the next address");
};

done_testing();
