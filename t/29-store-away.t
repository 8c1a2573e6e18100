#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 29-store-away.t: a store of budgets that cannot be used, and the requests that
# are then admitted (contract 16.1)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Redis;
use IO::Socket::INET ();
use CrmTest::Shared qw(host url numbers_agree is_back ask brief admitted $LIMIT
    $PATIENT);
use Time::HiRes qw(time);

# --- without the store ------------------------------------------------------

# What happens to a Redis, how it ends, and what the log says of it. Each is
# called with a Redis and the id of a key.
my @outages = (
    ["killed", sub { $_[0]->kill_it }, sub { $_[0]->start },
        qr/the connection was closed|cannot connect|cannot receive/],
    ["stopped", sub { $_[0]->signal("STOP") }, sub { $_[0]->signal("CONT") },
        qr/no answer in time/],
    ["slow", sub {
            my ($r) = @_;
            $r->{sleeper} = CrmTest::Child->start(
                sub { $r->run("DEBUG", "SLEEP", 3) });
            wait_for(sub { !$r->is_quick }, 5);
        }, sub { $_[0]{sleeper}->result }, qr/no answer in time/],
    ["full", sub { $_[0]->run("CONFIG", "SET", "maxmemory", 1) },
        sub { $_[0]->run("CONFIG", "SET", "maxmemory", 0) },
        qr/OOM command not allowed/],
    ["demands a password", sub {
            $_[0]->run("CONFIG", "SET", "requirepass", "secret");
            $_[0]{password} = "secret";
            $_[0]->run("CLIENT", "KILL", "TYPE", "normal");
        }, sub {
            $_[0]->run("CONFIG", "SET", "requirepass", "");
            $_[0]{password} = undef;
        }, qr/NOAUTH Authentication required/],
    ["has something else there", sub {
            $_[0]->run("DEL", "crmapi:r:$_[1]");
            $_[0]->run("LPUSH", "crmapi:r:$_[1]", 1);
        }, sub { $_[0]->run("DEL", "crmapi:r:$_[1]") },
        qr/WRONGTYPE Operation against/],
);

for my $outage (@outages) {
    my ($name, $begin, $end, $reason) = @$outage;

    subtest "16.1 a store that $name: hosts count by themselves" => sub {
        my $own = CrmTest::Redis->new;
        # Only one that hangs is to look slow: the machine may be, too.
        my @two = map { host(url($own), "no answer in time" =~ $reason
            ? "timeout=100ms" : $PATIENT) } 1 .. ($name eq "killed" ? 2 : 1);
        my $w = workspace($two[0]);
        my $other = $w->make_key("read,write");
        $_->expect_log(qr/CRM4002: the rate limit store @{[url($own)]} cannot/
            => 1) for @two;
        # It may look slow before the test wants it to.
        wait_for(sub { is_back($_, $other) }, 10) for @two;
        is(admitted($two[0], $w->key, 5), 5, "before: 5 of $LIMIT");
        $begin->($own, $w->key_ids);
        my $began = time;
        is(admitted($two[0], $w->key, $LIMIT), $LIMIT - 5,
            "the host counts on: the 5 are not forgotten");
        my $spent = time - $began;
        cmp_ok($spent, "<", 10 * busy(), "requests do not wait for it: $spent s");
        is(admitted($_, $w->key, $LIMIT + 5), $LIMIT,
            "another host counts by itself") for @two[1 .. $#two];
        is($_->client->counter("StoreAway"), 1, "mod_status says so") for @two;
        cmp_ok($_->client->counter("StoreAlone"), ">=", $LIMIT - 5,
            "and counts the requests") for @two;
        numbers_agree($_) for @two;
        like(join("", $_->log_lines(qr/CRM4002/)), $reason,
            "the log says why") for @two;
        $end->($own, $w->key_ids);
        my $ended = time;
        for my $host (@two) {
            ok(wait_for(sub { is_back($host, $other) }, 20),
                "it is used again");
        }
        my $took = time - $ended;
        cmp_ok($took, "<", 2 * busy(), "within 2 s: $took s")
            unless sanitized() || valgrinded();
        ok(scalar($_->log_lines(qr/CRM4003/)), "the log says so") for @two;
        $_->stop for @two;
    };
}

subtest "16.1 a store that is not there at the start" => sub {
    my $own = CrmTest::Redis->new;
    $own->kill_it;
    my $host = host(url($own), "", children => 4,
        expect_log => [qr/CRM4002: .*: cannot connect: / => 1]);
    my $w = workspace($host);
    is(admitted($host, $w->key, $LIMIT + 5), $LIMIT, "the host counts");
    $own->start;
    my $other = $w->make_key("read,write");
    ok(wait_for(sub { is_back($host, $other) }, 20),
        "the request of another key finds it");
    $host->stop;
};

# --- passwords and TLS ------------------------------------------------------

subtest "16.1 a password from a file, and TLS" => sub {
    my $tls = CrmTest::Redis->new(password => "very-secret", tls => 1);
    my $dir = $tls->dir;
    my $at = "127.0.0.1:" . $tls->port;
    my $host = host("rediss://:$dir/password\@$at/3",
        "ca=$dir/ca.pem prefix=other $PATIENT", level => "debug");
    my $w = workspace($host);
    is(brief(ask($host, $w->key)), "200 " . ($LIMIT - 1), "it counts");
    like($tls->run("-n", 3, "KEYS", "*"), qr/^other:r:[-0-9a-f]{36}$/,
        "in the database and with the prefix of the directive");
    is($host->client->counter("StoreAway"), 0, "it is used");
    unlike($host->log_text, qr/very-secret/, "no password in the log");
    $host->stop;

    $tls->run(qw(ACL SETUSER crm on >own-secret resetkeys ~crmapi:*
        -@all +eval +evalsha +time +getrange +setrange +set +pexpire));
    write_file("$dir/own", "own-secret\n");
    chmod 0600, "$dir/own";
    $host = host("rediss://crm:$dir/own\@$at", "ca=$dir/ca.pem $PATIENT");
    is(brief(ask($host, $w->make_key("read"))), "200 " . ($LIMIT - 1),
        "as a user with the rights that docs/scaling.md names");
    is($host->client->counter("StoreAway"), 0, "it is used");
    $host->stop;

    # A server that answers a TLS handshake as if it were a command.
    my $plain = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1",
        Timeout => 0.2);
    my $speaker = CrmTest::Child->start(sub {
        my ($go_on) = @_;
        while ($go_on->()) {
            my $client = $plain->accept or next;
            sysread $client, my $hello, 1;
            print $client "-ERR unknown command\r\n";
        }
    });
    write_file("$dir/wrong", "wrong-secret\n");
    chmod 0600, "$dir/wrong";
    for my $case (
            ["another authority", "rediss://:$dir/password\@$at", "",
                qr/the server's certificate: self.signed certificate/],
            ["another name", "rediss://:$dir/password\@localhost:" . $tls->port,
                "ca=$dir/ca.pem", qr/the server's certificate: hostname mismatch/],
            ["no TLS there", "rediss://127.0.0.1:" . $plain->sockport,
                "ca=$dir/ca.pem", qr/: TLS failed: wrong version number/],
            ["a wrong password", "rediss://:$dir/wrong\@$at",
                "ca=$dir/ca.pem", qr/: WRONGPASS/]) {
        my ($name, $url, $options, $reason) = @$case;
        my $bad = host($url, "$options $PATIENT", level => "debug",
            expect_log => [qr/CRM4002/ => 1]);
        is(admitted($bad, $w->make_key("read"), $LIMIT + 1), $LIMIT,
            "$name: the host counts by itself");
        like(join("", $bad->log_lines(qr/CRM4002/)), $reason,
            "$name: the log says why");
        unlike($bad->log_text,
            qr/(?:very|wrong)-secret|$dir.(?:password|wrong)/,
            "$name: without a secret");
        $bad->stop;
    }
};

done_testing;
