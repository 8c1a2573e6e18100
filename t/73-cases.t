# SPDX-License-Identifier: Apache-2.0
# 73-cases.t: mails that once went wrong somewhere, each with what it must give
# (contract 18): t/mail/cases. What becomes of a sequence is in 73-replies.t.
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
my $httpd = httpd(database => $database,
    conf => "CrmApiReadLimit 0\nCrmApiWriteLimit 0\n");
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
            query => { page_size => 100, include => "metadata" })->data};
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

# What is not right yet.
my %todo = map { $_ => 1 } qw(base64-is-plain form-1 group-sender lead-empty
    lead-space-header opaque-smime plain-nbsp subject-only
    two-content-types);
my @files = sort map { m{([^/]+)\.eml$} } glob "$folder/*.eml";
is_deeply(\@files, [sort keys %$cases], "each mail has its line");
for my $name (sort keys %$cases) {
    my %want = %{$cases->{$name}};
    next if delete $want{seq};
    my $has = delete $want{has};
    local our $TODO = $todo{$name} ? "not yet" : undef;
    my ($message, $talk) = deliver($name);
    my %got = (content => $message->{content}, %{$message->{metadata} || {}},
        map { $_ => $talk->{$_} } qw(email human last_message));
    fits($got{$_}, $want{$_}, $has && $_ eq "content", "$name: $_")
        for sort keys %want;
}

done_testing();
