# SPDX-License-Identifier: Apache-2.0
# 79-delivered.t: a mail is delivered when the report says so that its server was
# asked for (RFC 3461; contract 18.4, 19.1)
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
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $sales = "sales\@crm.example";
change($w, "agent", $w->agent, agent_email => $sales, name => "Ada");
my $count = 0;

# A worker whose relay is SMTP, with CONF.
sub relay {
    my ($smtp, %conf) = @_;
    return worker(database => $database, no_start => 1, conf => {
        $smtp->relay, mail_domain => "crm.example", %conf });
}

# An answer to ADDRESS with MORE that WORKER sends by SMTP; the path of the
# message, and the mail.
sub sent {
    my ($worker, $smtp, $address, %more) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $talk = $w->conversation("email", email => $address);
    my $m = $w->answer($talk, { content => "x", %more });
    $worker->once;
    my ($mail) = grep { /^X-Envelope-To: \Q$address\E$/m } $smtp->received;
    ok($mail, "it is sent") or $mail = "";
    return ("/api/v1/conversations/$talk/messages/$m->{id}", $mail);
}

sub status { return $c->get($_[0])->data->{status} }
sub id_of { return $_[0] =~ /^Message-ID:\s+(<\S+>)$/mi ? $1 : "" }

# A report of ACTION on the mail to ADDRESS comes: it names the mail by ENVELOPE, if
# given, and returns a header with ID, if given.
sub report {
    my ($action, $address, $envelope, $id) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code) = crmapictl($database, { stdin => join "\n",
        "From: MAILER-DAEMON\@mx.example", "To: $sales",
        "Message-ID: <report-" . ++$count . "\@mx.example>",
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
        "", "--b", "", "So.", "--b", "Content-Type: message/delivery-status", "",
        "Reporting-MTA: dns; mx.example",
        ($envelope ? "Original-Envelope-Id: $envelope" : ()), "",
        "Original-Recipient: rfc822;<$address>",
        "Final-Recipient: rfc822; other\@elsewhere.example",
        "Action: $action", "Status: 2.0.0", "",
        ($id ? ("--b", "Content-Type: text/rfc822-headers", "",
            "Message-ID: $id", "") : ()), "--b--", "" }, "deliver");
    is($code, 0, "a report comes");
}

subtest "a server that offers DSN is asked for reports" => sub {
    my $smtp = CrmTest::Smtpd->new({ dsn => 1 });
    my $worker = relay($smtp);
    my ($path, $mail) = sent($worker, $smtp, "ann\@x.example",
        cc => ["copy\@x.example"]);
    my $id = id_of($mail);
    my ($asked) = $mail =~ /^X-Envelope-Dsn: (.*)$/m;
    is($asked =~ s/ SIZE=\d+//r, "RET=HDRS ENVID=" . uc($id)
        . " NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=RFC822;<ANN\@X.EXAMPLE>",
        "for the recipient, not for who gets a copy");
    like($mail, qr/^X-Envelope-From: \Q$sales\E$/m, "the sender is as it was");
    is($c->get($path)->data->{status}, "sent", "it is sent");
    report("relayed", "ann\@x.example", $id, $id);
    is(status($path), "sent", "further than the relay is not there");
    report("delivered", "copy\@x.example", $id, $id);
    is(status($path), "sent", "nor is a copy what counts");
    report("delivered", "ann\@x.example", "<forged\@crm.example>",
        "<forged\@crm.example>");
    report("delivered", "ann\@x.example");
    is(status($path), "sent", "18.7 a stranger's report is not believed");
    report("delivered", "ann\@x.example", $id);
    is(status($path), "delivered", "a report that has the envelope's id is");
    is(scalar @{$c->get($path =~ s{/[^/]+$}{}r)->data}, 1,
        "and no report is a message");
    my ($other) = sent($worker, $smtp, "bob\@x.example");
    my ($to_bob) = grep { /^X-Envelope-To: bob/m } $smtp->received;
    report("delivered", "bob\@x.example", undef, id_of($to_bob));
    is(status($other), "delivered", "and one that returns the header");
    my ($odd, $of_odd) = sent($worker, $smtp, "a+b=c\@x.example");
    like($of_odd, qr/ ORCPT=RFC822;<A\+2BB\+3DC\@X\.EXAMPLE>$/m,
        "an address with characters that xtext encodes");
};

subtest "an address beyond ASCII needs SMTPUTF8 (RFC 6531)" => sub {
    my $able = CrmTest::Smtpd->new({ dsn => 1, utf8 => 1 });
    my $old = CrmTest::Smtpd->new({ dsn => 1 });
    my $to = "gr\x{fc}n\@x.example";
    my $send = sub {
        my ($smtp, $address, @copies) = @_;
        my $worker = relay($smtp);
        my $talk = $w->conversation("email", email => $address);
        my $m = $w->answer($talk, { content => "x", @copies ? (cc => \@copies) : () });
        $worker->expect_log(qr/CRM3122: .*SMTPUTF8/)
            if $smtp == $old && grep { /gr/ } $address, @copies;
        $worker->once;
        my ($mail) = reverse $smtp->received;
        utf8::decode($mail) if $mail;
        return ($c->get("/api/v1/conversations/$talk/messages/$m->{id}?include=metadata")
            ->data, $mail // "");
    };
    my ($message, $mail) = $send->($able, $to);
    is($message->{status}, "sent", "sent by a server that offers it");
    like($mail, qr/^X-Envelope-To: \Q$to\E$/m, "to that address");
    like($mail, qr/^X-Envelope-Dsn: .*\bSMTPUTF8\b/m, "as it wants it");
    like($mail, qr/^To: \Q$to\E\r?$/m, "which the header has as well");
    ($message, $mail) = $send->($able, "ida\@x.example", $to);
    like($mail, qr/^X-Envelope-To: \Q$to\E$/m, "a copy");
    ($message) = $send->($old, $to);
    is($message->{status}, "failed", "another server gets no such address");
    like($message->{metadata}{error}, qr/SMTPUTF8/, "and the message says why");
    ($message) = $send->($old, "ida\@x.example", $to);
    is($message->{status}, "failed", "nor in a copy");
    is(scalar(() = $old->received), 0, "it has got nothing");
    ($message) = $send->($old, "ida\@b\x{fc}cher.example");
    is($message->{status}, "sent", "a domain beyond ASCII needs none");
};

subtest "a server without DSN is asked for nothing" => sub {
    my $smtp = CrmTest::Smtpd->new;
    my ($path, $mail) = sent(relay($smtp), $smtp, "carl\@x.example");
    unlike($mail, qr/X-Envelope-Dsn/, "it would refuse the parameters");
    is(status($path), "sent", "sent");
};

subtest "nor one that does not like what it offers" => sub {
    my $smtp = CrmTest::Smtpd->new({ dsn => "no" });
    my ($path, $mail) = sent(relay($smtp), $smtp, "dora\@x.example");
    is(status($path), "sent", "sent all the same");
    is(scalar(() = $smtp->received), 1, "once");
};

subtest "smtp_dsn = off" => sub {
    my $smtp = CrmTest::Smtpd->new({ dsn => 1 });
    my ($path, $mail) = sent(relay($smtp, smtp_dsn => "off"), $smtp,
        "emil\@x.example");
    is($mail =~ /^X-Envelope-Dsn: (?:SIZE=\d+)?$/m ? 1 : 0, 1,
        "nothing is asked for");
};

done_testing;
