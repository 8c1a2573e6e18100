# SPDX-License-Identifier: Apache-2.0
# Bench/Overload.pm: a tenant beside a client far over its limit and an attacker
# who tries random keys; methods of Bench::Run
package Bench::Overload;
use strict;
use warnings;
use JSON::PP ();
use POSIX ();
use Bench::Cluster;
use Bench::Load qw(wrk median);
use Bench::Report;
use Bench::Server;
use Bench::Work;

my $json = JSON::PP->new;
my $LIMIT = 120;                # requests a minute of the client over it
my $UNKNOWN = 60;               # look-ups a minute of an address
my $CONNECTIONS = 64;           # of each of the two

# Start CODE in a process of its own. Return a function that waits for its
# result.
sub in_background {
    my ($code) = @_;
    pipe(my $read, my $write) or die "bench: pipe: $!\n";
    my $pid = fork() // die "bench: fork: $!\n";

    if (!$pid) {
        close $read;
        my $result = eval { $code->() } // { died => $@ };
        print $write $json->encode($result);
        close $write;
        POSIX::_exit(0);
    }
    close $write;
    return sub {
        my $result = $json->decode(do { local $/; <$read> });
        waitpid($pid, 0);
        die $result->{died} if $result->{died};
        return $result;
    };
}

# A mod_crmapi with a second port, that has limits; its port.
sub start_limited {
    my ($self) = @_;
    my $port = Bench::Server::free_port();
    my $server = $self->start_crmapi(conf => <<"END");
CrmApiRateLimitKeys 1024
Listen 127.0.0.1:$port
<VirtualHost 127.0.0.1:$port>
    CrmApi On
    CrmApiReadLimit $LIMIT
    CrmApiUnknownKeyLimit $UNKNOWN
</VirtualHost>
END
    return ($server, $port);
}

# The two who overload a server, as code for in_background().
sub attackers {
    my ($self, $server, $port, $seconds) = @_;
    my $key = Bench::Cluster::key(101);
    my @requests = Bench::Work->requests("get", $self->{cluster},
        Bench::Cluster::small(1), $key);
    my @letters = ("A" .. "Z", "a" .. "z", 0 .. 9);
    my @random = map { ["svc_live_" . join("", map { $letters[rand @letters] }
        1 .. 30), @{$requests[0]}[1 .. 2]] } 1 .. 50_000;

    return map { my $file = Bench::Load::request_file(@$_);
        sub { wrk($server, $file, top => $self->{top}, port => $port,
            seconds => $seconds, connections => $CONNECTIONS) }
    } \@requests, \@random;
}

# The tenant's result while the two are at work on PORT of SERVER.
sub tenant_beside {
    my ($self, $tenant, $file, $server, $port, $seconds) = @_;
    my @work = attackers($self, $server, $port, $seconds + 2);
    my @busy = map { in_background($_) } @work;

    sleep 1;
    my $r = wrk($tenant, $file, top => $self->{top}, seconds => $seconds);
    $r->{others} = [map { $_->() } @busy];
    return $r;
}

sub transactions {
    my ($self) = @_;
    sleep 12;                   # idle backends report their counts after 10 s
    my ($count) = $self->{cluster}->sql("SELECT xact_commit + xact_rollback"
        . " FROM pg_stat_database WHERE datname = current_database()");
    return ref $count ? $count->[0] : $count;
}

# Transactions that the database sees while the two are alone.
sub statements_of_attackers {
    my ($self, $server, $port, $seconds) = @_;
    my $before = transactions($self);
    my $idle = transactions($self) - $before;   # what asking costs

    my @work = attackers($self, $server, $port, $seconds);
    my @busy = map { in_background($_) } @work;
    my @r = map { $_->() } @busy;
    my $seen = transactions($self) - $before - 2 * $idle;
    return ($seen, @r);
}

sub overload {
    my ($self) = @_;
    my $report = $self->{report};
    my ($server, $port) = start_limited($self);
    my ($other, $other_port) = start_limited($self);
    my $file = Bench::Load::request_file(Bench::Work->requests("get",
        $self->{cluster}, $Bench::Cluster::MAIN, Bench::Cluster::key(0)));

    $self->say("overload");
    # so that processes and their connections are there
    tenant_beside($self, $server, $file, $server, $port, 2);
    my ($seen, @refused) = statements_of_attackers($self, $server, $port,
        2 * $self->{seconds});
    my %result;
    for my $round (($self->{quick} ? 1 : 0) .. $self->{rounds}) {
        for (["idle", $other, $other_port], ["overload", $server, $port]) {
            my ($name, @busy) = @$_;
            my $r = tenant_beside($self, $server, $file, @busy,
                $self->{seconds});
            # mpm_event closes kept-alive connections when its threads are busy
            my $failed = $r->{errors} - $r->{closed};
            die "bench: $failed requests of the tenant failed\n" if $failed;
            push @{$result{$name}}, $r if $round;
        }
    }
    $_->stop for $server, $other;
    my $ratio = sub { my ($what, $n, $d) = @_;
        median(map { $result{$n}[$_]{$what} / $result{$d}[$_]{$what} }
            0 .. $#{$result{idle}}) };
    $report->add("\n### Overload\n\nA tenant with 16 connections, beside a"
        . " client far over its limit of $LIMIT requests a minute and an"
        . " attacker with random keys, $CONNECTIONS connections each. \"idle\":"
        . " these two are at work on another httpd of this machine, so that"
        . " the tenant has the same share of the processor.\n");
    $report->table(["tenant's server", "requests/s", "p50 ms", "p99 ms",
        "reconnects/s", "429 to the client/s", "429 to the attacker/s"], map { my $name = $_;
            my @r = @{$result{$name}};
            [$name, map({ my $p = $_; Bench::Report::number(median(
                map { $_->{$p} } @r)) } qw(rate p50 p99)),
                Bench::Report::number(median(map { $_->{closed}
                    / $self->{seconds} } @r)),
                map { my $i = $_; Bench::Report::number(median(map {
                    $_->{others}[$i]{rate} } @r)) } 0, 1]
        } "idle", "overload");
    $report->verdict("overload: tenant's rate to that on an idle server",
        $ratio->("rate", "overload", "idle"), 0.9, 1);
    $report->verdict("overload: tenant's p99 to that on an idle server",
        $ratio->("p99", "overload", "idle"), 2);
    # admitted by the limit, looked up, and last_used_at of the key
    $report->verdict("overload: statements for "
        . int($refused[0]{n} + $refused[1]{n}) . " requests refused", $seen,
        $LIMIT + $UNKNOWN + 5);
}

1;
