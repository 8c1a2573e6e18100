# SPDX-License-Identifier: Apache-2.0
# CrmTest/Receiver.pm: a server on 127.0.0.1 that receives webhooks
package CrmTest::Receiver;
use strict;
use warnings;
use Fcntl qw(:flock);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP ();
use Time::HiRes qw(time);
use CrmTest::Process qw(wait_for whole_lines write_file);

my $json = JSON::PP->new->utf8->canonical;

# Start one. The path of a request determines the answer:
#   /NAME/500,503:60,200  the first request of NAME gets 500, the second 503
#                         with "Retry-After: 60", all others 200
#   302                   leads to /redirected/200
#   hang                  nothing, until the client goes
#   late                  200, but the answer's end never comes
#   close                 nothing, and the connection is closed
#   flood                 200 with an answer that has no end
#   bytes                 200 with bytes that are no text
sub new {
    my ($class) = @_;
    my $listen = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        LocalPort => 0, Listen => 64, Proto => "tcp")
        or die "CrmTest: cannot listen: $!\n";
    my $self = bless { maker => $$, port => $listen->sockport,
        dir => tempdir("crm-receiver-XXXXXX", TMPDIR => 1, CLEANUP => 1) },
        $class;

    write_file("$self->{dir}/log", "");
    $self->{pid} = fork // die "CrmTest: fork: $!\n";
    if (!$self->{pid}) {
        POSIX::setpgid(0, 0);
        $SIG{$_} = "DEFAULT" for qw(TERM INT HUP);
        $self->run($listen, getppid);
        POSIX::_exit(0);
    }
    return $self;
}

sub port { $_[0]{port} }
sub url { "http://127.0.0.1:$_[0]{port}/$_[1]" }

# The requests, in the order of arrival: {path, headers => {name in lower case},
# body, at => time, method}. With NAME: only under that.
sub requests {
    my ($self, $name) = @_;
    my @all = map { $json->decode($_) } whole_lines("$self->{dir}/log");
    return grep { !defined $name || $_->{path} =~ m{^/\Q$name\E/} } @all;
}

# Wait until there are N under NAME; return them.
sub wait_requests {
    my ($self, $name, $n, $seconds) = @_;
    wait_for(sub { $self->requests($name) >= $n }, $seconds);
    return $self->requests($name);
}

# Serve each connection in its own process, until PARENT ends.
sub run {
    my ($self, $listen, $parent) = @_;

    $SIG{CHLD} = "IGNORE";
    while (getppid == $parent) {
        my $ready = "";
        vec($ready, fileno $listen, 1) = 1;
        next if select($ready, undef, undef, 0.5) <= 0;
        my $socket = $listen->accept or next;
        my $pid = fork // next;
        if (!$pid) {
            close $listen;
            alarm 60;
            $self->serve($socket);
            POSIX::_exit(0);
        }
        close $socket;
    }
}

# Read a request and keep it; the number it has under its path.
sub take {
    my ($self, $socket) = @_;
    my $text = "";

    while ($text !~ /\r\n\r\n/) {
        sysread($socket, $text, 65536, length $text) or return;
    }
    my ($head, $body) = $text =~ /^(.*?)\r\n\r\n(.*)$/s;
    my ($first, @lines) = split /\r\n/, $head;
    my ($method, $path) = split / /, $first;
    my %headers = map { /^([^:]+): *(.*)$/ ? (lc $1, $2) : () } @lines;
    while (length $body < ($headers{"content-length"} || 0)) {
        sysread($socket, $body, 1 << 20, length $body) or return;
    }
    open(my $log, ">>", "$self->{dir}/log") or return;
    flock $log, LOCK_EX;
    # a file for each path has as many bytes as there were requests
    open(my $count, ">>", "$self->{dir}/n" . $path =~ s/[^\w:,]/_/gr)
        or return;
    my $before = -s $count;
    syswrite $count, ".";
    syswrite $log, $json->encode({ method => $method, path => $path,
        headers => \%headers, body => $body, at => time }) . "\n";
    close $log;
    return ($path, $before);
}

sub serve {
    my ($self, $socket) = @_;
    my ($path, $before) = $self->take($socket) or return;
    my @says = split /,/, ($path =~ m{^/[^/]*/([^?]*)})[0] // "200";
    my ($say, $value) = split /:/, $says[$before] // $says[-1] // "200";
    my $length = $say eq "late" ? "Content-Length: 100\r\n" : "";

    return if $say eq "close";
    if ($say =~ /^\d+$/) {
        my $text = "this is $say";
        syswrite $socket, "HTTP/1.1 $say Text\r\nConnection: close\r\n"
            . ($say == 302 ? "Location: " . $self->url("redirected/200")
                . "\r\n" : "")
            . (defined $value ? "Retry-After: $value\r\n" : "")
            . ($say == 204 ? "\r\n" : "Content-Length: " . length($text)
                . "\r\n\r\n$text");
        return;
    }
    syswrite $socket, "HTTP/1.1 200 OK\r\n$length\r\nbegin"
        if $say ne "hang" && $say ne "bytes";
    if ($say eq "bytes") {
        syswrite $socket, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
            . "a\0b\xff\xfe\x1b[2J\xc3\xa4";
        return;
    }
    $SIG{PIPE} = "IGNORE";
    if ($say eq "flood") {
        1 while syswrite $socket, "\xc3\xa4" x 5000;
        return;
    }
    1 while sysread $socket, my $rest, 65536;
}

# End it.
sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill KILL => -$pid;
    waitpid $pid, 0;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop if $self->{maker} == $$;
}

1;
