# SPDX-License-Identifier: Apache-2.0
# 79-receivers.t: a mail server and a mail store that many use, Debian's Postfix and
# dovecot, on the other side: what we send arrives, is one thread there with the
# answers, and what they cannot deliver is known
# second gear
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Debian;
use CrmTest::Httpd;
use CrmTest::Process qw(read_file wait_for write_file);
use CrmTest::Smtpd qw(header);

# ---- the other side --------------------------------------------------------------

my $scratch = debian_folder("receivers");
my $root = "$scratch/root";
my $debian = CrmTest::Debian->new($root,
    qw(ca-certificates curl dovecot-imapd dovecot-lmtpd postfix));
my ($smtp, $lmtp, $imap) = map { free_port() } 1 .. 3;
# both have the network of this machine, where crmapid is
sub run_here { my ($name, $script) = @_;
    return $debian->inside($name, $script, net => 1) }

# dovecot knows two people; whom it does not know, it refuses after Postfix has
# taken the mail
write_file("$root/etc/dovecot/dovecot.conf", <<"END");
protocols = imap lmtp
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:/home/mail/%n
first_valid_uid = 1
passdb {
  driver = passwd-file
  args = username_format=%u /etc/dovecot/people
}
userdb {
  driver = static
  args = uid=mail gid=mail home=/home/mail/%n
}
service imap-login {
  inet_listener imap {
    port = $imap
  }
  inet_listener imaps {
    port = 0
  }
}
service lmtp {
  inet_listener lmtp {
    port = $lmtp
  }
}
protocol lmtp {
  postmaster_address = postmaster\@x.example
}
END
write_file("$root/etc/dovecot/people", join "", map { "$_\@x.example:{PLAIN}x\n" }
    qw(ann bob));
# our mails for x.example to dovecot; theirs for crm.example to crmapid
run_here("Postfix and dovecot start", <<"END");
chmod 0644 /etc/dovecot/people
mkdir -p /home/mail /crm
chown mail:mail /home/mail
chmod 1777 /crm
postconf -e 'inet_interfaces = loopback-only' 'inet_protocols = ipv4' \\
    'myhostname = mx.x.example' 'mydestination =' 'mynetworks = 127.0.0.0/8' \\
    'virtual_mailbox_domains = x.example' 'virtual_mailbox_maps =' \\
    'virtual_transport = lmtp:inet:127.0.0.1:$lmtp' \\
    'transport_maps = inline:{ crm.example=lmtp:unix:/crm/lmtp }' \\
    'maillog_file = /var/log/mail.log' 'alias_maps =' 'alias_database =' \\
    'smtpd_relay_restrictions = permit_mynetworks, reject' \\
    'lmtp_host_lookup = native' 'lmtp_assume_final = yes'
postconf -M 'smtp/inet=127.0.0.1:$smtp inet n - n - - smtpd'
postconf -F '*/*/chroot = n'
postfix start
dovecot
END

# What IMAP says to COMMAND about the INBOX of PERSON.
sub imap {
    my ($person, $command) = @_;
    return run_here("IMAP: $command", "curl -sS -u '$person\@x.example:x'"
        . " -X '$command' 'imap://127.0.0.1:$imap/INBOX'");
}
# Its mails, as they are stored, once there are COUNT.
sub inbox {
    my ($person, $count) = @_;
    my @files;
    ok(wait_for(sub { @files = glob "$root/home/mail/$person/new/*";
        push @files, glob "$root/home/mail/$person/cur/*";
        return @files >= $count }, 60), "$count mails are in the box of $person")
        or diag(read_file("$root/var/log/mail.log"));
    return map { read_file($_) } sort { (stat $a)[9] <=> (stat $b)[9] } @files;
}

# ---- ours --------------------------------------------------------------------------

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $sales = "sales\@crm.example";
change($w, "agent", $w->agent, agent_email => $sales, name => "Ada");
my $worker = worker(database => $database, conf => { email_relay => "smtp",
    smtp_url => "smtp://127.0.0.1:$smtp", smtp_tls => "no",
    poll => "1s",
    mail_domain => "crm.example", mail_from => $sales,
    lmtp_socket => "$root/crm/lmtp", lmtp_mode => "0666" });

# A mail of WHO to us, with HEADERS, by way of Postfix; a copy stays with WHO.
sub send_mail {
    my ($who, $headers) = @_;
    write_file("$root/tmp/mail", "From: $who\@x.example\nTo: $sales\n$headers"
        . "\n\nText of $who\n");
    run_here("$who writes", "curl -sS --mail-from '$who\@x.example' --mail-rcpt"
        . " '$sales' --mail-rcpt '$who\@x.example' -T /tmp/mail"
        . " 'smtp://127.0.0.1:$smtp'");
}

my $template = $w->template([{ email_subject => "Grüße aus Köln",
    email_body => "Hello — первый" }]);
sub start {
    my ($who) = @_;
    return $w->start($template, auto_approve => true,
        contact => { emails => ["$who\@x.example"] });
}

subtest "a thread of both sides" => sub {
    my $started = start("ann");
    my ($first) = inbox("ann", 1);
    my $talks = "/api/v1/contacts/$started->{contact_id}/conversations";
    # the mail may be there before crmapid knows that it is
    my $talk;
    ok(wait_for(sub { ($talk) = @{$c->get($talks)->ids} }, 30),
        "its conversation");
    my $messages = "/api/v1/conversations/$talk/messages";
    my $count = sub { return scalar @{$c->get($messages)->data} };
    my ($last, $mails) = ($first, 1);
    for my $round (1 .. 3) {
        my $references = join " ", grep { length } header($last, "References"),
            header($last, "Message-ID");
        send_mail("ann", "Message-ID: <r$round\@x.example>\nSubject: Re: it\n"
            . "In-Reply-To: " . header($last, "Message-ID")
            . "\nReferences: $references");
        ok(wait_for(sub { $count->() == $mails + 1 }, 60),
            "reply $round is in the conversation");
        status_is($c->post($messages, { content => "Answer **$round**" }), 201,
            "an answer");
        $mails += 2;
        my @box = inbox("ann", $mails);
        ($last) = grep { /Answer/ && /^In-Reply-To: <r$round\@x\.example>/mi }
            @box;
        ok($last, "it is there, as an answer to the reply") or last;
    }
    ok(wait_for(sub { !grep { $_->{role} ne "user"
        && $_->{status} ne "delivered" } @{$c->get($messages)->data} }, 60),
        "Postfix's reports say that ours are delivered")
        or diag(map { "$_->{role} $_->{status}\n" } @{$c->get($messages)->data});
    send_mail("ann", "Message-ID: <apart\@x.example>\nSubject: Apart");
    inbox("ann", $mails + 1);
    # such as (1 2 3 4 5 6 7)(8)
    my ($thread) = imap("ann", "THREAD REFERENCES UTF-8 ALL")
        =~ /^\* THREAD (.*?)\r?$/m;
    my %together = map { my $n = () = /\d+/g; ($n => 1) }
        ($thread // "") =~ /(\((?:[^()]|(?1))*\))/g;
    is_deeply(\%together, { $mails => 1, 1 => 1 },
        "dovecot shows one thread, and what is no part of it") or diag($thread);
    like(header($first, "Subject"), qr/^=\?UTF-8\?/i, "a subject in UTF-8");
};

subtest "who is not known there" => sub {
    my $started = start("nobody");
    my $contact = "/api/v1/contacts/$started->{contact_id}";
    my $status;
    ok(wait_for(sub {
        my ($talk) = @{$c->get("$contact/conversations")->data} or return;
        my ($message) = @{$c->get("/api/v1/conversations/$talk->{id}/messages")
            ->data} or return;
        $status = $message->{status};
        return $status eq "failed";
    }, 60), "Postfix's report marks the message failed")
        or diag($status // "none", read_file("$root/var/log/mail.log"));
    ok(wait_for(sub { ($c->get($contact)->data->{suppressed} || {})->{email} },
        30), "and the address is suppressed");
    my $again = start("nobody");
    ok(wait_for(sub { $status = $c->get($again->{status_url})->data->{status};
        return $status =~ /^(?:stopped|failed)/ }, 60), "a second one ends")
        or diag($status);
    my $tried = () = read_file("$root/var/log/mail.log")
        =~ /to=<nobody\@x\.example>.*status=bounced/g;
    is($tried, 1, "and sends nothing to it");
};

subtest "while the other side is away" => sub {
    run_here("dovecot stops", "doveadm stop");
    start("bob");
    ok(wait_for(sub { read_file("$root/var/log/mail.log")
        =~ /to=<bob\@x\.example>.*status=deferred/ }, 60), "Postfix keeps it");
    run_here("and comes back", "dovecot; postqueue -f");
    my @box = inbox("bob", 1);
    is(scalar @box, 1, "it arrives once");
};

$worker->stop;
run_here("they stop", "postfix stop; doveadm stop");

done_testing;
