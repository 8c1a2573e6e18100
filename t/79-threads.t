# SPDX-License-Identifier: Apache-2.0
# 79-threads.t: our mails, what answers them and our answers are one thread by the
# rules of mail clients: the threading of Jamie Zawinski, which RFC 5256 (REFERENCES)
# describes, without its last step, which joins by subject
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Smtpd qw(header);
use MIME::Base64;

CrmTest::Smtpd::needed();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $sales = "sales\@crm.example";
change($w, "agent", $w->agent, agent_email => $sales, name => "Ada");
my $smtp = CrmTest::Smtpd->new;
my $worker = worker(database => $database, no_start => 1, conf => {
    $smtp->relay, mail_domain => "crm.example" });

sub ids { return $_[0] =~ /(<[^<>\s]+>)/g }

# Each of MAILS by its Message-ID => that of the root of its thread, and the
# Message-ID that it stands below. RFC 5256, REFERENCES, steps 1 and 2.
sub threads {
    my (@mails) = @_;
    my %parent;
    # whether ONE stands below TOP
    my $below = sub {
        my ($one, $top) = @_;
        while (defined $one) {
            return 1 if $one eq $top;
            $one = $parent{$one};
        }
        return 0;
    };
    for my $mail (@mails) {
        my ($id) = ids(header($mail, "Message-ID"));
        my @refs = ids(header($mail, "References"));
        @refs = (ids(header($mail, "In-Reply-To")))[0] // () unless @refs;
        for my $i (1 .. $#refs) {
            $parent{$refs[$i]} //= $refs[$i - 1]
                unless $below->($refs[$i - 1], $refs[$i]);
        }
        # the last reference is the parent, whatever was guessed before
        delete $parent{$id};
        $parent{$id} = $refs[-1] if @refs && !$below->($refs[-1], $id);
    }
    my %root;
    for my $mail (@mails) {
        my ($id) = ids(header($mail, "Message-ID"));
        my $top = $id;
        $top = $parent{$top} while defined $parent{$top};
        $root{$id} = $top;
    }
    return (\%root, \%parent);
}

my @mails;              # of both sides, in their order
# What we have sent since the last call.
my $seen = 0;
sub sent {
    $worker->once;
    my @new = $smtp->received;
    @new = @new[$seen .. $#new];
    $seen += @new;
    push @mails, @new;
    return $new[-1] // "";
}
my $count = 0;
# The person at FROM answers MAIL; HOW are further headers.
sub reply {
    my ($mail, $from, $how, $text) = @_;
    my $name = "<r" . ++$count . "\@client.example>";
    my ($id) = ids(header($mail, "Message-ID"));
    my $bytes = "From: $from\nTo: $sales\nMessage-ID: $name\n"
        . ($how eq "none" ? "" : "In-Reply-To: $id\n")
        . ($how eq "both" ? "References: "
            . join(" ", ids(header($mail, "References")), $id) . "\n" : "")
        . "Subject: " . header($mail, "Subject") . "\n\n$text\n";
    my ($code) = crmapictl($database, { stdin => $bytes }, "deliver");
    is($code, 0, "a reply: $how");
    push @mails, $bytes;
    return $bytes;
}
sub answer {
    $w->answer(@_);
    return sent();
}

my $template = $w->template([{ email_subject => "Hello", email_body => "First" },
    { delay => "1m", email_subject => "Hello again", email_body => "Second" }]);
my $started = $w->start($template, auto_approve => true,
    contact => { emails => ["ann\@x.example"] });
my $hurry = sub { sql($database, "UPDATE crmapi.job SET run_at = now() -"
    . " interval '1 s' WHERE state = 'ready'"); return sent() };
$hurry->() for 1 .. 3;
is(scalar @mails, 2, "two steps are sent") or BAIL_OUT("no mails");
my ($first) = ids(header($mails[0], "Message-ID"));
my ($talk) = @{$c->get("/api/v1/contacts/$started->{contact_id}/conversations")
    ->ids};

# clients write both headers, or only In-Reply-To, as some of Microsoft's
my $answered = $mails[1];
for my $how ("both", "only In-Reply-To", "both") {
    my $reply = reply($answered, "ann\@x.example", $how, "Reply");
    $answered = answer($talk, "Answer");
    is(header($answered, "In-Reply-To"), header($reply, "Message-ID"),
        "what we answer");
}
# two answers in a row, and a mail of the same person about something else
answer($talk, "And another thing") for 1 .. 2;
my $other = reply("Message-ID: <none\@x.example>\nSubject: Other\n\n",
    "ann\@x.example", "none", "Something else");

my ($root, $parent) = threads(@mails);
my ($apart) = ids(header($other, "Message-ID"));
is_deeply([grep { $root->{$_} ne $first } grep { $_ ne $apart } keys %$root], [],
    "all are in the thread of the first mail") or diag(explain($root));
isnt($root->{$apart}, $first, "what is none of it stands alone");
my %at = map { my ($id) = ids(header($mails[$_], "Message-ID"));
    ($id => $_) } 0 .. $#mails;
is_deeply([grep { defined $parent->{$_} && $at{$parent->{$_}} >= $at{$_} }
    grep { exists $at{$_} } sort keys %at], [], "none stands above an earlier");
is(scalar(grep { !exists $at{$parent->{$_} // $first} } keys %at), 0,
    "no mail is missing between them");
like(header($mails[-2], "Subject"), qr/^Re: (?!Re:)/, "Re: once");
# Outlook joins what has one Thread-Index: 22 bytes, and five of each answer
sub place { return decode_base64(header($_[0], "Thread-Index") // "") }
ok(!grep({ place($_) } @mails), "no Thread-Index in answer to mails without one");
my $index = join "", map { chr(($_ * 7) % 256) } 1 .. 27;
my $index_of = sub { return "Thread-Index: " . encode_base64($_[0], "\n ") =~ s/ \z//r };
my $asks = sub {
    my ($header) = @_;
    crmapictl_ok($database, { stdin => "From: olga\@x.example\nTo: $sales\nSubject: Index"
        . "\nMessage-ID: <o" . ++$count . "\@x.example>\n$header\nHello\n" }, "deliver");
    return sql($database, "SELECT conversation_id FROM crmapi.message WHERE external_id ="
        . " '<o$count\@x.example>'");
};
my $olga = $asks->($index_of->($index));
my @places = map { place(answer($olga, "Answer $_")) } 1, 2;
is(substr($places[0], 0, 27), $index, "an answer has the place of the mail");
is(length $places[0], 32, "and one of its own below it");
is(substr($places[1], 0, 32), $places[0], "so has the next answer");
is(length $places[1], 37, "below the first");
unlike($smtp->received ? ($smtp->received)[-1] : "", qr/^Thread-Index: .*\n[ \t]/m,
    "in one line");
for my $bad ("x", encode_base64("x" x 21, ""), encode_base64("x" x 23, ""), "ab=c" x 10,
    encode_base64("x" x 22, "") . "!") {
    $asks->("Thread-Index: $bad\n");
    is(place(answer($olga, "Answer")), "", "no place below what is none: $bad");
}
my $long = "y" x (22 + 500);
$asks->($index_of->($long));
is(place(answer($olga, "Answer")), $long, "one that is too long stays as it is");

is_deeply([grep { my @all = ids(header($mails[$_], "References"));
    my %once = map { $_ => 1 } @all; @all != keys %once } 0 .. $#mails], [],
    "no reference comes twice");

done_testing;
