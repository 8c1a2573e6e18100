# SPDX-License-Identifier: Apache-2.0
# 73-mail.t: mails come by crmapictl deliver and by LMTP (docs/mail.md)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Data;
use CrmTest::Pages;
use CrmTest::Process qw(read_file wait_for write_file);
use IO::Select;
use IO::Socket::UNIX;
use Socket qw(PF_UNIX SOCK_NONBLOCK SOCK_STREAM pack_sockaddr_un);
use JSON::PP ();

my $json = JSON::PP->new->utf8;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $sales = "sales-$$\@crm.example";
change($w, "agent", $w->agent, agent_email => $sales);

# Deliver MAIL with OPTIONS: (exit code, what is said of each agent, stderr).
sub deliver {
    my ($mail, @options) = @_;
    my ($code, $out, $err) = crmapictl($database, { stdin => $mail }, "--json",
        "deliver", @options);
    return ($code, [map { $json->decode($_) } split /\n/, $out], $err);
}

my $count = 0;
# A mail with TEXT; HEADERS over what it has.
sub mail {
    my ($text, %headers) = @_;
    $count++;
    my %all = (From => "Ada Lovelace <ada\@example.org>", To => $sales,
        Subject => "Offer", "Message-ID" => "<m$count-$$\@example.org>",
        %headers);
    return join("", map { "$_: $all{$_}\n" } grep { defined $all{$_} }
        sort keys %all) . "\n$text\n";
}

# Deliver MAIL, which is taken by one agent; what is said of it.
sub taken {
    my ($mail, @options) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code, $got, $err) = deliver($mail, @options);
    is($code, 0, "it is taken") or diag($err);
    is(scalar @$got, 1, "by one agent");
    return $got->[0] || {};
}

sub conversation { $c->get("/api/v1/conversations/$_[0]")->data }
sub metadata {
    return JSON::PP->new->decode(scalar sql($database, "SELECT metadata FROM"
        . " crmapi.message WHERE id = '$_[0]'"));
}

my $template = $w->template;

# An enrollment of EMAIL whose steps were generated, and have the Message-ID
# <ID@x.org>: (its id, its first step's, its contact's).
sub at_work {
    my ($email) = @_;
    my $started = $w->start($template, contact => { emails => [$email] });
    my $id = $started->{enrollment_id};
    my $steps = JSON::PP->new->encode([{ channel => "email",
        to_identifier => $email, delay_seconds => 0, email_subject => "Hi",
        email_body => "Hi" }]);
    CrmTest::Pages::generated($w, $id, $steps);
    sql($database, "UPDATE crmapi.enrollment_step SET message_id = '<' || id"
        . " || '\@x.org>' WHERE enrollment_id = '$id'");
    my ($row) = sql($database, "SELECT s.id, e.contact_id FROM"
        . " crmapi.enrollment e JOIN crmapi.enrollment_step s"
        . " ON s.enrollment_id = e.id WHERE e.id = '$id'");
    return ($id, @$row);
}
sub is_stopped {
    return scalar sql($database, "SELECT stop_reason IS NOT NULL FROM"
        . " crmapi.enrollment WHERE id = '$_[0]'");
}

my $talk;
subtest "a mail: a contact, a conversation, a message" => sub {
    my $got = taken(mail("Grüße!\n\n> old",
        Subject => "=?utf-8?Q?Gr=C3=BC=C3=9Fe?=",
        "Message-ID" => "<first-$$\@example.org>"));
    $talk = $got->{conversation_id};
    my $one = conversation($talk);
    is_deeply([@$one{qw(type bot_id email human last_message)}],
        [4, $w->agent, "ada\@example.org", "Ada Lovelace",
            "Grüße!\n\n> old"], "the conversation");
    my $contact = $c->get("/api/v1/contacts/$one->{contact_id}")->data;
    is($contact->{last_name}, "Lovelace", "the contact");
    my $metadata = metadata($got->{message_id});
    is($metadata->{subject}, "Grüße", "the subject is in the metadata");
    is($metadata->{automatic}, undef, "a person wrote it");
};

subtest "the same mail again: nothing new" => sub {
    my $mail = mail("Grüße!", "Message-ID" => "<first-$$\@example.org>");
    is(taken($mail)->{conversation_id}, $talk, "the same answer");
    is(scalar($w->messages($talk)), 1, "one message");
    my $without = mail("No id", "Message-ID" => undef);
    is(taken($without)->{message_id}, taken($without)->{message_id},
        "without a Message-ID by its bytes");
};

subtest "threads by In-Reply-To and References, whoever writes" => sub {
    my $got = taken(mail("Me too", From => "Eve <eve\@example.net>",
        "In-Reply-To" => "<first-$$\@example.org>"));
    is($got->{conversation_id}, $talk, "In-Reply-To");
    $got = taken(mail("And me", From => "bob\@example.net",
        References => "<first-$$\@example.org> <unknown\@example.org>"));
    is($got->{conversation_id}, $talk, "References");
    $got = taken(mail("Again", Subject => "Other"));
    is($got->{conversation_id}, $talk, "else by sender and agent");
};

subtest "18.5 what a program answers opens no conversation again" => sub {
    my $first = taken(mail("A question", From => "kay\@example.org",
        "Message-ID" => "<kay-$$\@example.org>"));
    my $path = "/api/v1/conversations/$first->{conversation_id}";
    for ([0, "Auto-Submitted" => "auto-replied"], [0, "X-Autoreply" => "yes"],
         [0, "Content-Type" => "multipart/report; boundary=b;"
            . " report-type=disposition-notification"],
         [0, "Subject" => "Automatic reply: A question",
            "Auto-Submitted" => "auto-generated"],
         [0, "Auto-Submitted" => "auto-generated", "Return-Path" => "<>"],
         # what a person writes in another help desk
         [1, "Auto-Submitted" => "auto-generated; owner=x"], [1]) {
        my ($opens, %headers) = @$_;
        $c->patch($path, { active => false, archived => true });
        my $closed = conversation($first->{conversation_id});
        my $got = taken(mail("I am away", From => "kay\@example.org",
            "In-Reply-To" => "<kay-$$\@example.org>", %headers));
        my $now = conversation($first->{conversation_id});
        my $name = join(", ", sort %headers) || "a person";
        is($got->{conversation_id}, $first->{conversation_id},
            "$name: in its thread");
        is_deeply([@$now{qw(active archived archived_at)}], $opens
            ? [true, false, undef] : [false, true, $closed->{archived_at}],
            "$name: " . ($opens ? "open" : "closed"));
        ok($now->{last_message_at} gt $closed->{last_message_at},
            "$name: the last message");
    }
};

subtest "plus-addressing, --recipient, several agents" => sub {
    my $got = taken(mail("plus", To => "x\@y.example"), "--recipient",
        $sales =~ s/@/+lead-7@/r);
    is($got->{conversation_id}, $talk, "what follows a plus does not count");
    my $id = insert($w, "agent", name => "Other");
    change($w, "agent", $id, agent_email => "other-$$\@crm.example");
    my ($code, $all) = deliver(mail("both", Cc => "other-$$\@crm.example"));
    is($code, 0, "both take it");
    is_deeply([map { conversation($_->{conversation_id})->{bot_id} } @$all],
        [$w->agent, $id], "in a conversation of each");
    # the longest Message-ID that fits in an event's id, and longer ones
    for my $length (171 .. 174, 190 .. 194, 213, 214, 230, 254, 255, 400) {
        my $long = "<" . "x" x ($length - length "<\@e.org>") . "\@e.org>";
        ($code, $all) = deliver(mail("long $length", "Message-ID" => $long,
            Cc => "other-$$\@crm.example"));
        is($code, 0, "a Message-ID of $length: both take it");
        is_deeply([map { my $talk = $_->{conversation_id};
            conversation($talk)->{bot_id} . " " . ($w->messages($talk))[-1]{content}
            } @$all], [map { "$_ long $length" } $w->agent, $id], "and have it");
    }
    change($w, "agent", $id, email_inbound => "f");
    ($code) = deliver(mail("closed"), "--recipient", "other-$$\@crm.example");
    is($code, 67, "email_inbound false: EX_NOUSER");
};

subtest "exit codes are those of sysexits.h" => sub {
    my ($code, $got, $err) = deliver(mail("x"), "--recipient",
        "nobody\@crm.example");
    is($code, 67, "no such agent: EX_NOUSER");
    like($err, qr/nobody\@crm.example/, "and says who");
    ($code) = deliver(mail("x", To => "nobody\@crm.example"));
    is($code, 67, "none in the headers: EX_NOUSER");
    ($code, $got, $err) = deliver(mail("cc", Cc => "nobody\@crm.example"));
    is("$code $err", "0 ", "one in the headers: who else gets it does not matter");
    ($code, $got) = deliver(mail("some", "Message-ID" => "<s-$$\@e.org>"),
        "--recipient", $sales, "--recipient", "nobody\@crm.example");
    is($code, 67, "one of two: EX_NOUSER, and the other has it");
    is(scalar @$got, 1, "one has it");
    ($code) = deliver(mail("x" x 2000), "--max-message", 1000);
    is($code, 65, "too large: EX_DATAERR");
    ($code) = deliver(mail("x"), "--hourly", "many");
    is($code, 78, "a wrong option: EX_CONFIG");
    ($code) = deliver(mail("x"), "--workspace", "no-such");
    is($code, 78, "no such workspace: EX_CONFIG");
    ($code) = crmapictl(undef, { stdin => mail("x") }, "deliver");
    is($code, 78, "no database named: EX_CONFIG");
    ($code) = crmapictl(undef, { stdin => mail("x"), env => {
            CRMAPI_DATABASE => "host=127.0.0.1 port=1 dbname=x" } },
        "deliver");
    is($code, 75, "the database is away: EX_TEMPFAIL");
    ($code) = deliver("\0\xff broken\r", "--recipient", $sales);
    is($code, 0, "what is no mail is taken as text");
};

subtest "attachments" => sub {
    my $mail = mail("--b\n\nSee below\n--b\nContent-Type: image/png;"
        . " name=a.png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n"
        . "--b\nContent-Type: application/pdf; name=b.pdf\n\n" . "x" x 300
        . "\n--b--", "Content-Type" => "multipart/mixed; boundary=b");
    my $got = taken($mail, "--attachment-bytes", 100);
    my @rows = sql($database, "SELECT a.id, a.filename, a.size, a.stored,"
        . " encode(p.bytes, 'hex') FROM crmapi.attachment a LEFT JOIN"
        . " crmapi.attachment_piece p ON p.attachment_id = a.id WHERE"
        . " a.message_id = '$got->{message_id}' ORDER BY a.number");
    is_deeply([map { my ($id, @row) = @$_; [@row] } @rows],
        [["a.png", 8, "t", "89504e470d0a1a0a"], ["b.pdf", 300, "f", undef]],
        "are kept up to a size");
    is_deeply(metadata($got->{message_id})->{attachments}, [
        { id => $rows[0][0], filename => "a.png", content_type => "image/png",
            size => 8, stored => JSON::PP::true },
        { id => $rows[1][0], filename => "b.pdf", size => 300,
            content_type => "application/pdf", stored => JSON::PP::false }],
        "18.3 and listed");
    my $id = $got->{message_id};
    my ($message) = grep { $_->{id} eq $id } @{$c->get(
        "/api/v1/conversations/$got->{conversation_id}/messages",
        query => { page_size => 100 })->data};
    is($message->{metadata}{attachments}[1]{size}, 300,
        "the API shows them to who asks");
    my ($code, $out) = crmapictl($database, "attachment", "get", "$id/1");
    is($out, "\x89PNG\r\n\x1a\n", "crmapictl attachment get");
    ($code, $out, my $err) = crmapictl($database, "attachment", "get",
        "$id/2");
    like($err, qr/too large to be stored/, "that was too large");
    is_deeply([map { "$_->{filename} $_->{stored}" } @{crmapictl_json($database,
        "attachment", "list", $id)}], ["a.png yes", "b.pdf no"],
        "crmapictl attachment list");
};

subtest "a reply stops a sequence, what nobody wrote does not" => sub {
    my ($enrollment, $step) = at_work("grace\@example.org");
    my %reply = (From => "Grace <grace\@example.org>",
        "In-Reply-To" => "<$step\@x.org>");
    my %automatic = ("auto-reply" => { "Auto-Submitted" => "auto-replied" },
        loop => { "Message-ID" =>
            "<$step\@x.org>" });
    for my $kind (sort keys %automatic) {
        my $got = taken(mail("away", %reply, %{$automatic{$kind}}));
        is(metadata($got->{message_id})->{automatic}, $kind, "$kind: is kept");
        is(is_stopped($enrollment), "f", "$kind: nothing stops");
        is_deeply($c->get("/api/v1/conversations",
            query => "unanswered=true&ids=$got->{conversation_id}")->ids, [],
            "$kind: nobody waits") if $kind eq "auto-reply";
    }
    my $null = taken(mail("away", %reply), "--sender", "");
    is(metadata($null->{message_id})->{automatic}, "auto-reply",
        "the null sender");
    is(is_stopped($enrollment), "f", "nothing stops");
    taken(mail("over the group", %reply, "List-Id" => "<g.crm.example>"));
    is(is_stopped($enrollment), "t",
        "an answer to our mail over a list is one");
    ($enrollment, $step, my $contact) = at_work("joan\@example.org");
    my $got = taken(mail("Yes", From => "joan.private\@example.net",
        References => "<$step\@x.org>"));
    is(is_stopped($enrollment), "t",
        "from another address: known by our Message-ID");
    is(conversation($got->{conversation_id})->{contact_id}, $contact,
        "and of that contact");
};

# ---- whose word counts -------------------------------------------------------

# What the host MX says of the mail MAIL.
my $MX = "mx.crm.example";
sub stamped {
    my ($mail, @results) = @_;
    return join("", map { "Authentication-Results: $_\n" } @results) . $mail;
}
my @PASS = ("--authserv-id", $MX);

subtest "a mail that nobody has verified is a claim" => sub {
    my ($enrollment, undef, $contact) = at_work("kay\@example.org");
    my $before = $c->get("/api/v1/contacts/$contact")->data;
    my $got = taken(mail("Stop it", From => "Mallory <kay\@example.org>"));
    is(conversation($got->{conversation_id})->{contact_id}, $contact,
        "it is linked");
    is(metadata($got->{message_id})->{verified}, JSON::PP::false,
        "and says that it is a claim");
    is_deeply($c->get("/api/v1/contacts/$contact")->data, $before,
        "the contact is as it was");
    is(is_stopped($enrollment), "f", "and its sequence goes on");
    $got = taken(mail("Hello", From => "New <new.mail\@example.org>"));
    is($c->get("/api/v1/contacts/" . conversation($got->{conversation_id})
        ->{contact_id})->data->{first_name}, "New", "it makes a contact");
};

subtest "a trusted host's Authentication-Results verify one" => sub {
    my ($enrollment, undef, $contact) = at_work("ida\@example.org");
    my $pass = "$MX;\n\tdkim=pass header.d=example.org header.b=\"a;b\";\n\t"
        . "dmarc=pass (p=none; dis=none) header.from=example.org";
    my $try = sub {
        my ($results, $options, %headers) = @_;
        taken(stamped(mail("Yes", From => "Ida Rhodes <ida\@example.org>",
            %headers), @$results), @$options);
        return is_stopped($enrollment);
    };
    my @not = ("no host is trusted", [[$pass], []],
        "another host is", [[$pass], ["--authserv-id", "crm.example"]],
        "it says no", [["$MX; dmarc=fail header.from=example.org"], [@PASS]],
        "it says nothing", [["$MX; none"], [@PASS]],
        "it speaks of another domain",
        [["$MX; dmarc=pass header.from=evil.example"], [@PASS]],
        "a stranger's header below its own",
        [["$MX; dmarc=fail header.from=example.org", $pass], [@PASS]],
        "below one of another trusted host",
        [["mx2.crm.example; dkim=none", $pass],
            [@PASS, "--authserv-id", "mx2.crm.example"]],
        "two senders", [[$pass], [@PASS],
            From => "ida\@example.org, eve\@example.org"]);
    while (my ($name, $case) = splice @not, 0, 2) {
        is($try->(@$case), "f", "not: $name");
    }
    my $talk = scalar sql($database, "SELECT id FROM crmapi.conversation"
        . " WHERE contact_id = '$contact'");
    is($try->([$pass], [@PASS]), "t", "it does");
    is(metadata(($w->messages($talk))[-1]{id})->{verified}, undef,
        "and the message does not say that it is a claim");
    is($c->get("/api/v1/contacts/$contact")->data->{last_name}, "Rhodes",
        "the contact gets what it lacks");
};

subtest "18.2 a host vouches for From, not for whom a form names" => sub {
    my @pass = ("$MX; dmarc=pass header.from=form.example");
    my $form = "Form <form\@form.example>";
    my ($named) = at_work("named\@example.org");
    my $got = taken(stamped(mail("Stop", From => $form,
        "Reply-To" => "named\@example.org"), @pass), @PASS);
    is(conversation($got->{conversation_id})->{email}, "named\@example.org",
        "it is that person's");
    is(metadata($got->{message_id})->{verified}, JSON::PP::false,
        "but a claim");
    is(is_stopped($named), "f", "and the sequence goes on");
    my ($same) = at_work("form\@form.example");
    $got = taken(stamped(mail("Stop", From => $form,
        "Reply-To" => "FORM\@form.example"), @pass), @PASS);
    is(metadata($got->{message_id})->{verified}, undef,
        "no claim of From in capitals");
    is(is_stopped($same), "t", "it stops");
    my ($answered, $step) = at_work("in-thread\@form.example");
    $got = taken(stamped(mail("Yes", From => "in-thread\@form.example",
        "Reply-To" => "else\@example.org", "In-Reply-To" => "<$step\@x.org>"),
        @pass), @PASS);
    is(metadata($got->{message_id})->{verified}, undef,
        "a reply to a step is From's, whatever Reply-To is");
};

subtest "a thread verifies, if we have begun it" => sub {
    my $token = $w->token("answers");
    my $server = httpd(database => $database, conf => "CrmApiIntake On\n");
    my $ours = "<answer-$$\@crm.example>";
    my ($enrollment, undef, $contact) = at_work("mary\@example.org");
    my ($other) = at_work("jean\@example.org");
    my %mary = (From => "mary\@example.org");
    my $got = taken(mail("Hi", %mary, "Message-ID" => "<begun-$$\@evil>"));
    taken(mail("Hi again", %mary, "In-Reply-To" => "<begun-$$\@evil>"));
    is(is_stopped($enrollment), "f", "a stranger's own Message-ID does not");
    my $r = $server->client(key => $token)->post("/crmapi/intake/v1/events", {
        event_id => "answer-$$", conversation => { id =>
        $got->{conversation_id} }, message => { role => "human",
        content => "Yes?", external_id => $ours } });
    is(scalar @{$r->data->{accepted}}, 1, "we answer");
    my $eve = taken(mail("Hi", From => "eve\@example.com"));
    $server->client(key => $token)->post("/crmapi/intake/v1/events", {
        event_id => "eve-$$", conversation => { id =>
        $eve->{conversation_id} }, message => { role => "human",
        content => "Hm?", external_id => "<eve-$$\@crm.example>" } });
    taken(mail("Me again", %mary, References =>
        "<eve-$$\@crm.example> <begun-$$\@evil>"));
    is(is_stopped($enrollment), "f", "nor what we sent to somebody else");
    taken(mail("I am Jean", From => "jean\@example.org",
        "In-Reply-To" => $ours));
    is(is_stopped($other), "f", "nobody is verified as another contact");
    is(conversation($got->{conversation_id})->{email}, "mary\@example.org",
        "and the conversation stays hers");
    is(is_stopped($enrollment), "t",
        "whoever answers what we sent stops its sequences (contract 18.4)");
    is(metadata(taken(mail("It is me", %mary, "In-Reply-To" => $ours))
        ->{message_id})->{verified}, undef, "she is known by it");
    ($enrollment, undef, $contact) = at_work("lise\@example.org");
    $got = taken(mail("Hi", From => "lise\@example.org"));
    $server->client(key => $token)->post("/crmapi/intake/v1/events", {
        event_id => "answer2-$$", conversation => { id =>
        $got->{conversation_id} }, message => { role => "human",
        content => "Yes?", external_id => "<2-answer-$$\@crm.example>" } });
    taken(stamped(mail("Hello", From => "who\@example.org", "In-Reply-To" =>
        "<m$count-$$\@example.org>"),
        "$MX; dmarc=pass header.from=example.org"), @PASS);
    is(is_stopped($enrollment), "f",
        "an address that is verified is not the contact's");
    taken(mail("From home", From => "lise.home\@example.net",
        "In-Reply-To" => "<2-answer-$$\@crm.example>"));
    is(is_stopped($enrollment), "t", "from an address that nobody knows");
};

# A DSN about EMAIL with ACTION and STATUS for the step STEP.
sub dsn {
    my ($email, $action, $status, $step) = @_;
    return mail("--b\n\nSorry.\n--b\nContent-Type: message/delivery-status\n\n"
        . "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; $email\nAction:"
        . " $action\nStatus: $status\n\n--b\nContent-Type: text/rfc822-headers"
        . "\n\nMessage-ID: <$step\@x.org>\nTo: $email\n\n--b--",
        From => "MAILER-DAEMON\@mx.example", "Content-Type" =>
        "multipart/report; report-type=delivery-status; boundary=b");
}

subtest "bounces: hard ones suppress" => sub {
    my ($enrollment, $step, $contact) = at_work("dead\@example.org");
    my $got = taken(dsn("dead\@example.org", "delayed", "4.4.1", $step));
    is(is_stopped($enrollment), "f", "a delay stops nothing");
    taken(dsn("dead\@example.org", "failed", "5.1.1", uuid()));
    is(count_rows($w, "suppression"), 0,
        "a report that names no mail of ours is not believed");
    is(conversation($got->{conversation_id})->{contact_id}, $contact,
        "it is in the conversation with who was not reached");
    taken(dsn("dead\@example.org", "failed", "5.1.1", $step));
    is(count_rows($w, "suppression", "email = 'dead\@example.org' AND"
        . " reason = 'bounced'"), 1, "a hard one suppresses");
    is(is_stopped($enrollment), "t", "and stops");
    is($c->get("/api/v1/contacts/$contact")->data->{first_name}, undef,
        "nobody is called MAILER-DAEMON");
};

subtest "17.5 a step that is neither being sent nor sent stays as it is" => sub {
    for my $status (qw(scheduled sending sent skipped cancelled failed)) {
        my ($enrollment, $step) = at_work("$status\@example.org");
        sql($database, "UPDATE crmapi.enrollment_step SET status = '$status',"
            . " error = " . ($status eq "failed" ? "'before'" : "NULL")
            . " WHERE id = '$step'");
        taken(dsn("$status\@example.org", "failed", "5.1.1", $step));
        is(scalar sql($database, "SELECT status || coalesce(' ' || error, '')"
            . " FROM crmapi.enrollment_step WHERE id = '$step'"),
            { sending => "failed the mail was returned: 5.1.1",
              sent => "failed the mail was returned: 5.1.1",
              scheduled => "cancelled", failed => "failed before" }->{$status}
            // $status, $status);
        is(is_stopped($enrollment), "t", "$status: the sequence stops");
    }
};

subtest "18.6 Message-IDs of any length" => sub {
    my $key = length "ada\@example.org";
    for my $length (190 .. 192, 212 .. 214, 254 .. 256, 900) {
        my $id = sub { "<" . "x" x ($length - $key - 8) . "$_[0]\@long>" };
        my %got = map { $_ => taken(mail("long", "Message-ID" => $id->($_))) }
            1, 2;
        isnt($got{1}{message_id}, $got{2}{message_id},
            "$length: two mails that differ in the end");
        my $again = taken(mail("long", "Message-ID" => $id->(1)));
        is($again->{message_id}, $got{1}{message_id}, "$length: one again");
    }
};

subtest "too many in an hour, and mails from the agent itself" => sub {
    my ($enrollment) = at_work("flood\@example.org");
    my @kinds = map { metadata(taken(mail("n $_", From => "flood\@example.org",
        "Auto-Submitted" => $_ == 3 ? undef : "auto-replied"), "--hourly", 2)
        ->{message_id})->{automatic} } 1 .. 4;
    is_deeply(\@kinds, ["auto-reply", "auto-reply", "flood", "auto-reply"],
        "the third is automatic, and what says so itself keeps its word");
    is(is_stopped($enrollment), "f", "and stops nothing");
    my $got = taken(mail("me", From => uc $sales));
    is(metadata($got->{message_id})->{automatic}, "loop", "from itself");
};

subtest "18.5 which mails count as one sender's of this hour" => sub {
    my $other = insert($w, "agent", name => "Busy");
    change($w, "agent", $other, agent_email => "busy-$$\@crm.example");
    my $kind = sub {
        my (%headers) = @_;
        return metadata(taken(mail("x", From => "many\@example.org", %headers),
            "--hourly", 2)->{message_id})->{automatic};
    };
    $kind->() for 1, 2;
    is($kind->("Reply-To" => "r\@example.org"), undef, "not another Reply-To");
    is($kind->(To => "busy-$$\@crm.example"), undef, "not another agent's");
    is($kind->(), "flood", "but those");
    $kind->("Reply-To" => "r\@example.org");
    is($kind->("Reply-To" => "r\@example.org"), "flood", "of one Reply-To, too");
    sql($database, "UPDATE crmapi.message SET created_at = now() -"
        . " interval '61 minutes' WHERE metadata ->> 'from' ="
        . " 'many\@example.org'");
    is($kind->(), undef, "not the older ones of a conversation that goes on");
};

subtest "18.5 what anybody may have written does not count against who is known"
    => sub {
    my $flood = sub {
        my ($mail, @options) = @_;
        return metadata(taken($mail, "--hourly", 2, @options)->{message_id})
            ->{automatic};
    };
    my $from = sub { return mail("x", From => $_[0], @_[1 .. $#_]) };
    my %proof = (
        "a reply to ours" => sub { $from->($_[0],
            "In-Reply-To" => "<$_[1]\@x.org>") },
        "one of another address of the contact" => sub { $from->("2.$_[0]",
            "In-Reply-To" => "<$_[1]\@x.org>") },
        "what a trusted host verifies" => sub { stamped($from->($_[0]),
            "$MX; dmarc=pass header.from=example.org") });
    my $count = 0;
    for my $name (sort keys %proof) {
        my $who = "crowd" . ++$count . "\@example.org";
        my ($enrollment, $step, $contact) = at_work($who);
        change($w, "contact", $contact, emails => JSON::PP->new->encode([
            { email => $who, is_primary => JSON::PP::true },
            { email => "2.$who", is_primary => JSON::PP::false }]));
        for my $forged ($who, "2.$who") {
            $flood->($from->($forged)) for 1, 2;
            is($flood->($from->($forged)), "flood", "anybody's are too many");
        }
        is($flood->($proof{$name}->($who, $step), @PASS), undef, "$name is not");
        is(is_stopped($enrollment), "t", "and stops the sequence");
        $flood->($proof{$name}->($who, $step), @PASS);
        is($flood->($proof{$name}->($who, $step), @PASS), "flood",
            "but too many of its own are");
    }
    my (undef, $step) = at_work("crowd\@example.net");
    my $reply = sub { $from->("its.colleague\@example.net",
        "In-Reply-To" => "<$step\@x.org>") };
    $flood->($reply->()) for 1, 2;
    is($flood->($reply->()), "flood", "who answers for somebody else may be a"
        . " program, too");
};

# --- LMTP ---------------------------------------------------------------------

my $worker = worker(database => $database, no_start => 1);
my $path = $worker->dir . "/lmtp";
my %conf = (lmtp_socket => $path, lmtp_mode => "0600", lmtp_threads => 2,
    lmtp_timeout => "2s", mail_max_message => 300000,
    mail_authserv_id => "$MX mx2.crm.example");

# A session that was greeted.
sub session {
    my $socket = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
    $socket->autoflush;
    like(reply($socket), qr/^220 /, "a session");
    like(say_to($socket, "LHLO mx"), qr/^250/, "LHLO");
    return $socket;
}

# The next answer, all lines of it.
sub reply {
    my ($socket) = @_;
    my $all = "";
    while (defined(my $line = <$socket>)) {
        $all .= $line;
        last if $line =~ /^\d{3} /;
    }
    return $all;
}

sub say_to {
    my ($socket, @lines) = @_;
    print $socket map { "$_\r\n" } @lines;
    return reply($socket);
}

# TEXT as it goes through DATA.
sub dotted { return ($_[0] =~ s/\r?\n/\r\n/gr =~ s/^\./../mgr) . ".\r\n" }

# One mail by SESSION; what is said of its recipient, then of it.
sub send_mail {
    my ($session, $mail) = @_;
    say_to($session, "MAIL FROM:<a\@b.example>");
    my $recipient = say_to($session, "RCPT TO:<$sales>");
    return $recipient if $recipient !~ /^250/;
    say_to($session, "DATA");
    print $session $mail;
    return reply($session);
}

my ($by_lmtp) = at_work("lmtp\@example.org");  # before the worker runs
$worker->configure(\%conf);
$worker->start;

subtest "LMTP: an answer for each recipient" => sub {
    my $s = session();
    like(say_to($s, "LHLO mx"), qr/^250-PIPELINING\r$/m, "again");
    like(say_to($s, "EHLO mx"), qr/^500 /, "EHLO is SMTP");
    like(say_to($s, "DATA"), qr/^503 /, "DATA too early");
    print $s "MAIL FROM:<ada\@example.org> BODY=8BITMIME SIZE=900\r\n"
        . "RCPT TO:<$sales>\r\nRCPT TO:<nobody\@crm.example>\r\n"
        . "RCPT TO:<" . ($sales =~ s/@/+a@/r) . ">\r\nDATA\r\n";
    like(reply($s), qr/^$_ /, "pipelined: $_") for 250, 250, 550, 250, 354;
    print $s dotted(mail("by LMTP\n.\n..dots"));
    like(reply($s), qr/^250 2.0.0 Accepted\r/, "the first");
    like(reply($s), qr/^250 2.0.0 Accepted before\r/,
        "the second is the same agent");
    is(scalar sql($database, "SELECT content FROM crmapi.message WHERE"
        . " external_id = '<m$count-$$\@example.org>'"),
        "by LMTP\n.\n..dots", "as it was written");
    like(say_to($s, "MAIL FROM:<a\@b> SIZE=300001"), qr/^552 5.3.4/, "SIZE");
    like(say_to($s, "MAIL FROM:<>"), qr/^250/, "the null sender");
    like(say_to($s, "RCPT TO:<$sales>"), qr/^250/, "RCPT");
    like(say_to($s, "DATA"), qr/^354/, "DATA");
    print $s dotted(mail("xxxxxxxxx\n" x 30000));
    like(reply($s), qr/^552 5.3.4/, "too large is refused");
    like(say_to($s, "NOOP"), qr/^250/, "and the session goes on");
    like(say_to($s, "x" x 5000), qr/^500 5.5.2/, "a line that is too long");
    like(say_to($s, "QUIT"), qr/^221/, "QUIT");
    ok(IO::Select->new($s)->can_read(20) && !sysread($s, my $more, 1),
        "ends the connection");
};

subtest "LMTP: after a mail that cannot be stored the session takes the next" => sub {
    sql($database, "ALTER TABLE crmapi.attachment ADD CONSTRAINT no_poison
        CHECK (filename <> 'poison')");
    my $s = session();
    $worker->expect_log(qr/CRM2001: .*no_poison/ => 1);
    for my $case (["poison", 451], ["food", 250]) {
        my ($name, $code) = @$case;
        say_to($s, "MAIL FROM:<ada\@example.org>");
        say_to($s, "RCPT TO:<$sales>");
        like(say_to($s, "DATA"), qr/^354/, "DATA");
        print $s dotted(mail("x", "MIME-Version" => "1.0", "Content-Type" => "a/b",
            "Content-Disposition" => "attachment; filename=$name"));
        like(reply($s), qr/^$code /, $name);
    }
    say_to($s, "QUIT");
    sql($database, "ALTER TABLE crmapi.attachment DROP CONSTRAINT no_poison");
};

subtest "LMTP: mail_authserv_id names trusted hosts" => sub {
    my $s = session();
    for my $id ("mx.other.example", "mx2.crm.example") {
        say_to($s, $_) for "MAIL FROM:<lmtp\@example.org>",
            "RCPT TO:<$sales>", "DATA";
        print $s dotted(stamped(mail("Yes", From => "lmtp\@example.org"),
            "$id; dkim=pass header.i=\@example.org"));
        like(reply($s), qr/^250/, "a mail by $id");
        is(is_stopped($by_lmtp), $id =~ /mx2/ ? "t" : "f",
            "is it verified?");
    }
    say_to($s, "QUIT");
};

subtest "every mail of t/mail is taken" => sub {
    my @files = sort glob "$CrmTest::TOP/t/mail/*.eml";
    cmp_ok(scalar @files, ">", 20, "there are some");
    my $s = session();
    for my $file (@files) {
        my ($name) = $file =~ m{([^/]+)\.eml$};
        print $s "MAIL FROM:<x\@y.example>\r\nRCPT TO:<$sales>\r\nDATA\r\n";
        my $ready = join "", map { reply($s) } 1 .. 3;
        print $s dotted(read_file($file) . "\n");
        like(reply($s), qr/^250 2.0.0/, $name) or diag($ready);
    }
    say_to($s, "QUIT");
};

subtest "LMTP: no end of mail but CR LF . CR LF" => sub {
    my $s = session();
    say_to($s, "MAIL FROM:<a\@b.example>");
    say_to($s, "RCPT TO:<$sales>");
    say_to($s, "DATA");
    print $s "From: smuggler\@example.net\r\nMessage-ID: <sm-$$\@x>\r\n\r\n"
        . "one\n.\nMAIL FROM:<x\@y>\r\n.\nstill\r\n.\r\n";
    like(reply($s), qr/^250/, "one mail");
    is(scalar sql($database, "SELECT content FROM crmapi.message WHERE"
        . " external_id = '<sm-$$\@x>'"), "one\n.\nMAIL FROM:<x\@y>\n\nstill",
        "all of it is the mail's");
    say_to($s, "QUIT");
};

subtest "LMTP: others wait for a thread; a lost one leaves nothing" => sub {
    my @first = (session(), session());
    my $third = IO::Socket::UNIX->new(Peer => $path);
    say_to($first[0], "MAIL FROM:<a\@b.example>");
    say_to($first[0], "RCPT TO:<$sales>");
    say_to($first[0], "DATA");
    print {$first[0]} "Message-ID: <lost-$$\@x>\r\n\r\nhalf";
    ok(!IO::Select->new($third)->can_read(0.2), "two have the threads");
    close $first[0];
    like(reply($third), qr/^220/, "the third's turn");
    is(count_rows($w, "message", "external_id = '<lost-$$\@x>'"), 0,
        "half a mail is none");
    like(reply($first[1]), qr/^421 4.4.2/, "who is silent must leave");
};

# They say who they are, or begin a mail, and no more.
subtest "LMTP: many who are silent do not hold up a mail" => sub {
    $worker->stop;
    $worker->configure({ lmtp_timeout => "10m" });
    $worker->start;
    my @silent = map {
        my $socket = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
        print $socket ("", "LHLO mx\r\n", "LHLO mx\r\nMAIL FROM:<a\@b>\r\n",
            "LHLO mx\r\nMAIL FROM:<a\@b>\r\nRCPT TO:<$sales>\r\nDATA\r\nx")[$_ % 4];
        $socket->flush;
        $socket;
    } 1 .. 8;
    like(send_mail(session(), dotted(mail("x"))), qr/^250 2.0.0/,
        "it is taken beside 8 who have 10 minutes");
    close $_ for @silent;
    $worker->stop;
    $worker->configure(\%conf);
    $worker->start;
};

subtest "LMTP: TERM lets a mail be finished; the socket goes" => sub {
    my $s = session();
    my $idle = session();
    say_to($s, "MAIL FROM:<a\@b.example>");
    say_to($s, "RCPT TO:<$sales>");
    like(say_to($s, "DATA"), qr/^354/, "in the middle");
    kill TERM => $worker->pid;
    like(reply($idle), qr/^421 4.3.2/, "who is idle is told");
    print $s dotted("From: ada\@example.org\nMessage-ID: <term-$$\@x>\n\nx\n");
    like(reply($s), qr/^250/, "the mail is taken");
    like(reply($s), qr/^421/, "then the session ends");
    $worker->stop;
    ok(!-e $path, "no socket is left");
    is(count_rows($w, "message", "external_id = '<term-$$\@x>'"), 1,
        "it is there");
};

subtest "LMTP: files at the socket's place" => sub {
    IO::Socket::UNIX->new(Local => $path, Listen => 1)->close;
    ok(-S $path, "one that nobody answers at");
    $worker->start;
    is((stat $path)[2] & 0777, 0600, "is replaced; its mode");
    my $second = worker(database => $database, no_start => 1,
        conf => { lmtp_socket => $path });
    my ($code, $err) = $second->refuses;
    isnt($code, 0, "a second daemon does not take it");
    like($err, qr/another process is listening/, "and says why");
    like(say_to(session(), "QUIT"), qr/^221/, "the first still serves");
    unlink $path;
    my $other = IO::Socket::UNIX->new(Local => $path, Listen => 1);
    $worker->stop;
    ok(-S $path, "who ends leaves a socket that is another's");
    my @waiting;
    do {
        socket(my $client, PF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0) or die $!;
        push @waiting, $client;
    } while connect($waiting[-1], pack_sockaddr_un($path));
    ($code, $err) = $second->refuses;
    like($err, qr/another process is listening/, "even if that one is too busy");
    ok(-S $path, "to answer");
    close $other;
    unlink $path;
    write_file($path, "precious");
    ($code, $err) = $second->refuses;
    like($err, qr/not a socket/, "what is no socket is left alone");
    is(read_file($path), "precious", "as it was");
    unlink $path;
};

subtest "LMTP: the database goes away: 451, and nothing is lost" => sub {
    # the session waits while the server stops and starts
    $worker->configure({ answer_time => "2s", lmtp_timeout => "2m" });
    $worker->start;
    my $mail = dotted("From: ada\@example.org\n"
        . "Message-ID: <later-$$\@x>\n\nx\n");
    my $there = "external_id = '<later-$$\@x>'";
    my $s = session();
    say_to($s, "MAIL FROM:<a\@b.example>");
    like(say_to($s, "RCPT TO:<$sales>"), qr/^250/, "known");
    like(say_to($s, "DATA"), qr/^354/, "in the middle");
    $worker->expect_log(qr/CRM2001: database: /);
    # whether it looks for jobs just while there is no server
    $worker->may_log(qr/CRM3003: the database is unavailable/);
    postgres()->halt("INT");
    print $s $mail;
    like(reply($s), qr/^451 4.3.0/, "not now");
    like(send_mail($s, $mail), qr/^451 4.3.0/, "whoever is asked for");
    postgres()->resume;
    is(count_rows($w, "message", $there), 0, "nothing of it is there");
    my $last = "";
    wait_for(sub { ($last = send_mail($s, $mail)) =~ /^250/ }, 20);
    like($last, qr/^250 2.0.0 Accepted\r/, "in the same session, when it is back");
    is(count_rows($w, "message", $there), 1, "it is there, once");
    say_to($s, "QUIT");
    $worker->stop;
};

done_testing();
