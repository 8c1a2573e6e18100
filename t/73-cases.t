# SPDX-License-Identifier: Apache-2.0
# 73-cases.t: mails that once went wrong somewhere, each with what it must give
# (contract 18): t/mail/cases. What becomes of a sequence is in 73-replies.t.
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Process qw(read_file);
use JSON::PP ();

my $json = JSON::PP->new->utf8;
my $folder = "$CrmTest::TOP/t/mail/cases";
my $cases = $json->decode(read_file("$folder/cases.json"));
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
change($w, "agent", $w->agent, agent_email => "sales\@crm.example.org");

# The message and the conversation that the mail NAME becomes.
sub deliver {
    my ($name) = @_;
    my ($code, $out, $err) = crmapictl($database,
        { stdin => read_file("$folder/$name.eml") }, "--json", "deliver");
    if ($code) {
        fail("$name is taken") or diag($err);
        return ({}, {});
    }
    my $ids = $json->decode((split /\n/, $out)[0] // "{}");
    my ($message) = grep { $_->{id} eq $ids->{message_id} }
        @{$c->get("/api/v1/conversations/$ids->{conversation_id}/messages",
            query => { page_size => 100 })->data};
    return ($message, $c->get(
        "/api/v1/conversations/$ids->{conversation_id}")->data);
}

# Whether GOT is WANT, or has it.
sub fits {
    my ($got, $want, $part, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $got =~ s/^\s+|\s+$//g if defined $got;
    return is($got, $want, $name) unless $part;
    like($got, qr/\Q$want\E/, $name);
}

my @files = sort map { m{([^/]+)\.eml$} } glob "$folder/*.eml";
is_deeply(\@files, [sort keys %$cases], "each mail has its line");
for my $name (sort keys %$cases) {
    my %want = %{$cases->{$name}};
    next if delete $want{seq};
    my $has = delete $want{has};
    my ($message, $talk) = deliver($name);
    my %got = (content => $message->{content}, %{$message->{metadata} || {}},
        map { $_ => $talk->{$_} } qw(email human last_message));
    fits($got{$_}, $want{$_}, $has && $_ eq "content", "$name: $_")
        for sort keys %want;
}

# --- whom a mail is from ------------------------------------------------------

my $count = 0;
# A mail with HEADERS, an array, and TEXT.
sub mail {
    my ($headers, $text) = @_;
    $count++;
    return join("", map { "$_\n" } @$headers, "To: sales\@crm.example.org",
        "Message-ID: <n$count\@example.org>", "Subject: S $count")
        . "\n$text\n";
}

# The conversation and the metadata of MAIL.
sub taken {
    my ($mail) = @_;
    my ($code, $out, $err) = crmapictl($database, { stdin => $mail }, "--json",
        "deliver");
    fail("it is taken") or diag($err) if $code;
    my $ids = $json->decode((split /\n/, $out)[0] // "{}");
    my $talk = $c->get("/api/v1/conversations/$ids->{conversation_id}")->data;
    my ($message) = grep { $_->{id} eq $ids->{message_id} }
        @{$c->get("/api/v1/conversations/$talk->{id}/messages",
            query => { page_size => 100 })->data};
    return ($talk, $message->{metadata});
}

subtest "18.2 the person of a web form, not the form" => sub {
    my $form = "From: Shop <wordpress\@shop.example.org>";
    my @talks = map { (taken(mail([$form, "Reply-To: $_"], "an offer?")))[0] }
        "Ann <ann\@example.net>", "bob\@example.net", "ANN\@example.net";
    is_deeply([map { lc $_->{email} } @talks],
        [map { "$_\@example.net" } qw(ann bob ann)], "whom they name");
    is($talks[0]{human}, "Ann", "with the name");
    isnt($talks[1]{id}, $talks[0]{id}, "each has a conversation");
    is($talks[2]{id}, $talks[0]{id}, "one for each person");
    my ($agent) = taken(mail(["From: Shop <sales\@crm.example.org>",
        "Reply-To: cid\@example.net"], "from the agent's own address"));
    is($agent->{email}, "cid\@example.net", "also of a form with our address");
};

subtest "18.2 what a mail says of people is in its metadata" => sub {
    my ($talk, $got) = taken(mail(["From: \"'Jane' via L\" <l\@l.example.org>",
        "Reply-To: l\@l.example.org", "X-Original-Sender: jane\@example.net",
        "List-Id: <l.l.example.org>", "List-Post: <mailto:l\@l.example.org>",
        "Cc: Kim <kim\@example.net>", "In-Reply-To: <b\@example.net>",
        "References: <a\@example.net> <b\@example.net>"], "x"));
    is($talk->{email}, "jane\@example.net", "who wrote to the list");
    is_deeply({ map { $_ => $got->{$_} } qw(from reply_to original_sender
        message_id in_reply_to references cc subject) },
        { from => "l\@l.example.org", reply_to => "l\@l.example.org",
          original_sender => "jane\@example.net",
          message_id => "<n$count\@example.org>",
          in_reply_to => "<b\@example.net>",
          references => ["<a\@example.net>", "<b\@example.net>"],
          cc => "Kim <kim\@example.net>", subject => "S $count" },
        "contract 18.2");
};

done_testing();
