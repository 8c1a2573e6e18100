# SPDX-License-Identifier: Apache-2.0
# 43-senders.t: a workspace sends from its sender domains only (contract 14.8)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use File::Temp qw(tempdir);

my $folder = tempdir("crm-senders-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0);
my %conf = (maildir => "$folder/outbox", mail_domain => "crm.example",
    mail_from => "site\@site.example");
my $worker = worker(database => $database, no_start => 1, conf => { %conf });
my $template = $w->template([{ email_subject => "S", email_body => "B" },
    { sms_body => "M", delay => "0s" }]);

# What becomes of a mail from FROM, and of an SMS: "sent", or the error.
my $people = 0;
sub sends {
    my ($from) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    change($w, "agent", $w->agent, email_outbound_email => $from);
    my $n = ++$people;
    my $id = $w->start($template, auto_approve => true, contact => {
        emails => ["p$n\@x.example"],
        phone_numbers => [sprintf "+49301%06d", $n] })->{enrollment_id};
    my $talk = $w->conversation("email", email => "q$n\@x.example");
    my $answer = $w->answer($talk, "A");
    $worker->may_log(qr/CRM3122/);
    $worker->once;
    my @step = @{$w->enrollment($id)->{steps}};
    my $status = sql($database, "SELECT status || ' ' || coalesce(
        metadata ->> 'error', '') FROM crmapi.message WHERE id = '"
        . $answer->{id} . "'");
    return ($step[0]{status} eq "failed" ? $step[0]{error}
        // $w->enrollment($id)->{generation_error}
        : $step[0]{status}) . ", " . $status =~ s/ $//r;
}

sub domains {
    my ($list) = @_;
    $w->ctl("workspace", "set", $w->id, "--sender-domains", $list);
    return $w->ctl_json("workspace", "show", $w->id)->{sender_domains};
}

is(sends("ada\@any.example"), "sent, sent", "without domains: any");
is_deeply(domains("One.example,köln.example"),
    ["one.example", "xn--kln-sna.example"], "two domains, as they are compared");
is_deeply(domains("One.example,one.example.,köln.example, KÖLN.example,"
    . "xn--kln-sna.example,one.example"), ["one.example", "xn--kln-sna.example"],
    "a domain in several forms is one");
is(sends("ada\@one.example"), "sent, sent", "from one of them");
is(sends("ada\@ONE.example"), "sent, sent", "in capitals");
is(sends("ada\@KÖLN.example"), "sent, sent", "with other letters than ASCII's");
like(sends($_), qr/^.*sender_not_allowed.*, failed.*sender_not_allowed/,
    "not from $_") for "ada\@two.example", "ada\@sub.one.example",
    "ada\@xone.example";
like(sends(undef), qr/sender_not_allowed/, "nor from the site's mail_from");
is(domains("none"), undef, "none again");
is(sends("ada\@two.example"), "sent, sent", "any again");
$worker->configure({ %conf, mail_require_domains => "on" });
like(sends("ada\@two.example"), qr/sender_not_allowed/,
    "with mail_require_domains none sends no mail");
domains("two.example");
is(sends("ada\@two.example"), "sent, sent", "until it has domains");
for my $bad ("x y z\@", "", "a\@b.example", "-", "..", "a_b..c", "NONE",
        "none,a.example", "a.example,None.", "a.example b.example") {
    my ($code, undef, $error) = crmapictl($database, "workspace", "set", $w->id,
        "--sender-domains", $bad);
    is($code, 2, "--sender-domains \"$bad\"");
    like($error, qr/--sender-domains/, "named");
}
is(0 + grep({ -f } glob "$folder/outbox/new/*"), 3 * 6,
    "what was refused was given to no relay") or diag(join "\n",
    glob "$folder/outbox/new/*");

done_testing;
