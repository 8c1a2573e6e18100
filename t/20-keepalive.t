# SPDX-License-Identifier: Apache-2.0
# 20-keepalive.t: the recommended numbers of processes and threads keep the
# connections of 200 clients open
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);

my ($CLIENTS, $EACH) = (200, 20);
# Under valgrind there is one process with few threads.
plan(skip_all => "valgrind is too slow for 200 clients") if $ENV{CRM_VALGRIND};

my $workspace = CrmTest::Workspace->new(database(), twin => 0);
my ($recommended) = read_file("$CrmTest::BUILD{DIR}/crmapi.conf")
    =~ /^(# ServerLimit .*?)\n\n/ms;
$recommended =~ s/^# //mg;
like($recommended, qr/^MaxRequestWorkers 512$/m,
    "crmapi.conf recommends numbers of threads");

# Send GET_TEXT $EACH times on each of $CLIENTS connections to PORT, one request
# at a time on each. Return the status codes with their numbers, and the number
# of connections that the server closed before the last answer.
sub load {
    my ($port, $request) = @_;
    my ($closed, %status, %client) = (0);
    my $select = IO::Select->new;
    my $until = time + 120;

    for (1 .. $CLIENTS) {
        my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
            PeerPort => $port, Proto => "tcp", Timeout => 20)
            or die "cannot connect: $@\n";
        $client{$socket} = { left => $EACH, buffer => "" };
        $select->add($socket);
        syswrite $socket, $request;
    }
    while ($select->count && time < $until) {
        for my $socket ($select->can_read(1)) {
            my $client = $client{$socket};
            my $n = sysread $socket, $client->{buffer}, 65536,
                length $client->{buffer};
            if (!$n) {
                $closed++;
                $select->remove($socket);
                next;
            }
            next unless $client->{buffer}
                =~ /\AHTTP\/1\.1 (\d+).*?\r\nContent-Length: (\d+)\r\n.*?\r\n\r\n(.*)\z/si
                && length $3 >= $2;
            $status{$1}++;
            $client->{buffer} = "";
            if (--$client->{left}) {
                syswrite $socket, $request;
            }
            else {
                $select->remove($socket);
                close $socket;
            }
        }
    }
    return (\%status, $closed);
}

for my $mpm (qw(event worker)) {
    my $httpd = CrmTest::Httpd->new(database => $workspace->{database},
        mpm => $mpm, dbd => "DBDMin 1\nDBDKeep 4\nDBDMax 8\n",
        conf => "CrmApiReadLimit 0\n$recommended");
    my $key = $workspace->key;
    my $request = "GET /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        . "Authorization: Bearer $key\r\n\r\n";
    my ($status, $closed) = load($httpd->port, $request);
    is_deeply($status, { 200 => $CLIENTS * $EACH },
        "$mpm: every request of $CLIENTS clients is answered");
    is($closed, 0, "$mpm: no connection is closed");
}

# The threads that served five requests on one connection, at intervals of 50
# milliseconds, with CrmApiKeepAliveWait WAIT; and the seconds they took.
sub threads {
    my ($wait) = @_;
    my $httpd = CrmTest::Httpd->new(database => $workspace->{database},
        mpm => "event", conf => "CrmApiKeepAliveWait $wait\n"
            . "LogFormat \"%{tid}P %U\" thread\nCustomLog \@DIR\@/threads thread\n");
    my $client = $httpd->client(key => $workspace->key);
    my $took = 0;
    for (1 .. 5) {
        my $began = time;
        $client->get("/api/v1/agents");
        $took += time - $began;
        select undef, undef, undef, 0.05;
    }
    my @threads = read_file($httpd->dir . "/threads") =~ /^(\d+) .*agents$/mg;
    is(scalar @threads, 5, "wait $wait: five requests");
    my %count = map { $_ => 1 } @threads;
    return (scalar keys %count, $took);
}
my ($threads, $took) = threads(1_000_000);
is($threads, 1, "a thread that waits for a second serves all of them");
cmp_ok($took, "<", 4 * busy(), "no answer waits for the next request");
($threads) = threads(0);
cmp_ok($threads, ">", 1, "without a wait, other threads do");
done_testing;
