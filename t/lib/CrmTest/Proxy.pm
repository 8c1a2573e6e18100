# SPDX-License-Identifier: Apache-2.0
# CrmTest/Proxy.pm: a proxy between a client and PostgreSQL, which behaves like
# a network or a pooler
#
#     my $proxy = CrmTest::Proxy->new;
#     ... $proxy->conninfo($database, $role) ...
#     $proxy->swallow(1);       # connections stay open and nothing comes through
#     $proxy->swallow(0);
#     $proxy->ignore(1);        # new connections get no answer
#     $proxy->ignore(0);
#     $proxy->linger;           # what the server closes stays open for clients
#     $proxy->sessions          # how many sessions the server has not closed
#     $proxy->discard;          # sessions that are idle forget what they had
#
#     my $proxy = CrmTest::Proxy->new(records => 1);
#     my ($trips, @texts) = $proxy->recorded;    # since the last call
package CrmTest::Proxy;
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use CrmTest::Postgres;
use CrmTest::Process qw(end_process read_file wait_for write_file);

# Start one. RECORDS: it records what clients send.
sub new {
    my ($class, %arg) = @_;
    my $listen = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        Listen => 50, ReuseAddr => 1) or die "CrmTest: cannot listen: $!\n";
    my $server = CrmTest::Postgres->get;
    my $self = bless { maker => $$, port => $listen->sockport,
        server => $server->host . "/.s.PGSQL." . ($server->{port} // 5432),
        dir => tempdir("crm-proxy-XXXXXX", TMPDIR => 1, CLEANUP => 1),
        records => $arg{records}, sent => {} }, $class;

    $self->{pid} = fork // die "CrmTest: fork: $!\n";
    if (!$self->{pid}) {
        eval { $self->run($listen) };
        POSIX::_exit(0);
    }
    return $self;
}

# The conninfo of DATABASE for ROLE through it.
sub conninfo {
    my ($self, $database, $role) = @_;
    return "host=127.0.0.1 port=$self->{port} dbname=$database user=$role"
        . " connect_timeout=2 sslmode=disable gssencmode=disable";
}

# Make it do what the file NAME in its folder stands for, or not any more.
sub set {
    my ($self, $name, $on) = @_;
    $on ? write_file("$self->{dir}/$name", "") : unlink "$self->{dir}/$name";
}

# Whether it lets nothing through.
sub swallow { $_[0]->set("swallow", $_[1]) }

# Whether new connections get no answer.
sub ignore { $_[0]->set("ignore", $_[1]) }

# From now on, when the server closes a session, its last messages are
# forwarded, and the client's connection stays open.
sub linger { $_[0]->set("linger", 1) }

# How many sessions the server has not closed; what it sent before it closed the
# others was forwarded. An empty string: it changes at this moment.
sub sessions { read_file("$_[0]{dir}/sessions", 0) }

# Run "DISCARD ALL" in each session; all must be idle. Returns their number.
sub discard {
    my ($self) = @_;
    write_file("$self->{dir}/discard", "");
    wait_for(sub { !-e "$self->{dir}/discard" })
        or die "CrmTest: the proxy's sessions are busy\n";
    return read_file("$self->{dir}/discarded");
}

sub run {
    my ($self, $listen) = @_;
    local $SIG{PIPE} = "IGNORE";
    my $select = IO::Select->new($listen);
    my (%peer, %server);
    my $sessions = 0;

    $self->{server_end} = \%server;
    while (getppid == $self->{maker}) {
        for my $socket ($select->can_read(0.02)) {
            next if -e "$self->{dir}/swallow";
            if ($socket == $listen) {
                next if -e "$self->{dir}/ignore";
                my $client = $listen->accept or next;
                my $server = IO::Socket::UNIX->new(Peer => $self->{server})
                    or next;
                @peer{$client, $server} = ($server, $client);
                $server{$server} = $server;
                $select->add($client, $server);
                next;
            }
            next unless $peer{$socket};     # its other end went first
            next if $self->pass($socket, $peer{$socket});
            if ($server{$socket} && -e "$self->{dir}/linger") {
                $select->remove($socket);
                delete $server{$socket};
                next;
            }
            my $other = delete $peer{$socket};
            delete $peer{$other};
            delete @server{$socket, $other};
            delete @{$self->{sent}}{$socket, $other};
            $select->remove($socket, $other);
            close $_ for $socket, $other;
        }
        if ($sessions != keys %server) {
            $sessions = keys %server;
            write_file("$self->{dir}/sessions", $sessions);
        }
        if (-e "$self->{dir}/discard") {
            ask_discard($_) for values %server;
            write_file("$self->{dir}/discarded", scalar keys %server);
            unlink "$self->{dir}/discard";
        }
    }
}

# Forward what was received FROM one end TO the other. False at the end of the
# connection.
sub pass {
    my ($self, $from, $to) = @_;
    my $n = sysread $from, my $data, 65536 or return 0;
    $self->record($from, $data)
        if $self->{records} && !$self->{server_end}{$from};
    syswrite $to, $data;
    return 1;
}

# Record the messages of DATA, which the client at SOCKET sends: the texts of new
# statements, and those of each round trip. The first message of a session has no
# type.
sub record {
    my ($self, $socket, $data) = @_;
    my $sent = $self->{sent}{$socket}
        //= { text => "", type => 0, named => {}, trip => [] };
    my $lines = "";

    $sent->{text} .= $data;
    while (length $sent->{text} >= 4 + $sent->{type}) {
        my $length = $sent->{type}
            + unpack "N", substr $sent->{text}, $sent->{type}, 4;
        last if length $sent->{text} < $length;
        my $message = substr $sent->{text}, 0, $length, "";
        my ($type, $body) = unpack $sent->{type} ? "a1 x4 a*" : "x4 a0 a*",
            $message;
        my ($first, $second) = split /\0/, $body =~ s/\n/ /gr;
        if ($type eq "P" || $type eq "Q") {
            $second = $first if $type eq "Q";
            $sent->{named}{$first} = $second;
            $lines .= "P $second\n";
        }
        push @{$sent->{trip}}, $sent->{named}{$type eq "B" ? $second : $first}
            if $type eq "B" || $type eq "Q";
        $lines .= "T " . join("\x1f", splice @{$sent->{trip}}) . "\n"
            if $type eq "S" || $type eq "Q";
        $sent->{type} = 1;
    }
    open(my $out, ">>", "$self->{dir}/recorded") or return;
    print $out $lines;
}

# What clients have sent since the last call: how often they waited for an
# answer (round trips; those whose statements are all LIKE the given expression
# do not count), and the texts of the statements that were new to their sessions.
sub recorded {
    my ($self, $like) = @_;
    my @lines = split /\n/, read_file("$self->{dir}/recorded", "");

    write_file("$self->{dir}/recorded", "");
    my @trips = map { /^T (.*)/ ? [split /\x1f/, $1] : () } @lines;
    @trips = grep { grep { !/$like/ } @$_ } @trips if $like;
    $self->{trips} = \@trips;
    return (scalar @trips, map { /^P (.*)/ } @lines);
}

# The statements of each round trip that recorded() counted, for a message.
sub trips {
    return join "", map { "a round trip: @$_\n" } @{$_[0]{trips}};
}

# Ask the server at SOCKET, as its client, and take the answer up to
# ReadyForQuery.
sub ask_discard {
    my ($socket) = @_;
    my $sql = "DISCARD ALL\0";
    my $answer = "";

    syswrite $socket, pack("a N a*", "Q", 4 + length $sql, $sql);
    until ($answer =~ /Z\x00\x00\x00\x05I\z/) {
        sysread $socket, $answer, 65536, length $answer or return;
    }
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid};
    end_process($pid, "KILL") if $pid && $self->{maker} == $$;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop;
}

1;
