# SPDX-License-Identifier: Apache-2.0
# CrmTest/Provider.pm: an HTTP server that receives messages or webhooks
package CrmTest::Provider;
use strict;
use warnings;
use Fcntl qw(LOCK_EX);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use Time::HiRes qw(time);
use CrmTest::Process qw(end_process read_file wait_for whole_lines write_file);

# Start one. It answers 200 with an id, 401 without the Bearer TOKEN if one is
# given, or as next_answers() says. An answer may take DELAY seconds.
sub new {
    my ($class, %arg) = @_;
    my $listen = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        Listen => 100, ReuseAddr => 1) or die "CrmTest: $!\n";
    my $self = bless { %arg, port => $listen->sockport, maker => $$,
        dir => tempdir("crm-provider-XXXXXX", TMPDIR => 1, CLEANUP => 1) },
        $class;

    write_file("$self->{dir}/requests", "");
    $self->{pid} = fork // die "CrmTest: fork: $!\n";
    if (!$self->{pid}) {
        $SIG{TERM} = "DEFAULT";
        $SIG{PIPE} = "IGNORE";
        $SIG{CHLD} = "IGNORE";
        while (1) {
            my $client = $listen->accept or next;
            next if fork;
            close $listen;
            eval { $self->serve($client) };
            POSIX::_exit(0);
        }
    }
    return $self;
}

sub url { "http://127.0.0.1:$_[0]{port}/messages" }

# The next requests are answered in these WAYS: a status, a status and a body,
# "later" (429 with Retry-After), "hang", "close", "endless", "garbage", "wait" (for release(),
# then 200); then as usual.
sub next_answers {
    my ($self, @ways) = @_;
    write_file("$self->{dir}/ways", join "\n", @ways);
}

# Answer the requests that wait.
sub release {
    my ($self) = @_;
    write_file("$self->{dir}/released", "");
}

# Take the first of the ways.
sub take_way {
    my ($self) = @_;
    open(my $lock, ">>", "$self->{dir}/lock") or die;
    flock($lock, LOCK_EX);
    my ($first, @rest) = split /\n/, read_file("$self->{dir}/ways", "");
    write_file("$self->{dir}/ways", join "\n", @rest);
    return $first // "200";
}

sub serve {
    my ($self, $client) = @_;
    my $text = "";

    until ($text =~ /\r\n\r\n/) {
        sysread $client, $text, 65536, length $text or return;
    }
    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    my ($line, @headers) = split /\r\n/, $head;
    my %headers = map { my ($n, $v) = split /:\s*/, $_, 2; lc $n => $v }
        @headers;
    while (length $body < ($headers{"content-length"} || 0)) {
        sysread $client, $body, 65536, length $body or return;
    }
    my $way = $self->take_way;
    $way = "401" if defined $self->{token}
        && ($headers{authorization} // "") ne "Bearer $self->{token}";
    $self->keep({ at => time, line => $line, headers => \%headers, body => $body,
        way => $way });
    select undef, undef, undef, $self->{delay} if $self->{delay};
    return if $way eq "close";
    sleep 60, return if $way eq "hang";
    wait_for(sub { -e "$self->{dir}/released" }, 60) if $way eq "wait";
    if ($way eq "endless") {
        print $client "HTTP/1.1 500 No\r\n\r\n";
        1 while print $client "x" x 65536;
        return;
    }
    my ($number, $given) = split / /, $way, 2;
    my $status = $way eq "later" ? 429 : $way =~ /^[gw]/ ? 200 : $number;
    my $answer = $way eq "garbage" ? "\x00\xff<html>{"
        : $given // '{"id": "p-1"}';
    print $client "HTTP/1.1 $status X\r\nContent-Type: application/json\r\n"
        . ($way eq "later" ? "Retry-After: 120\r\n" : "")
        . ($way =~ /^3/ ? "Location: /elsewhere\r\n" : "")
        . "Connection: close\r\nContent-Length: " . length($answer)
        . "\r\n\r\n$answer";
}

# Record REQUEST, in the order of arrival.
sub keep {
    my ($self, $request) = @_;
    open(my $log, ">>", "$self->{dir}/requests") or die;
    flock($log, LOCK_EX);
    print $log JSON::PP->new->latin1->encode($request) . "\n";
    close $log;
}

# All requests so far, with "at", when they came, and "json" where the body is some.
sub requests {
    my ($self) = @_;
    my @all = map { JSON::PP->new->latin1->decode($_) }
        whole_lines("$self->{dir}/requests");
    for my $request (@all) {
        $request->{json} = eval { JSON::PP->new->utf8
            ->decode($request->{body}) };
    }
    return @all;
}

# How many requests there were so far.
sub count {
    my ($self) = @_;
    return read_file("$self->{dir}/requests") =~ tr/\n//;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid};
    end_process($pid, "TERM") if $pid && $self->{maker} == $$;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop;
}

1;
