#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 29-store-exact.t: 5,000,000 requests at 3 hosts with one store: never more
# than the limit in any 60 s, and never fewer while there is demand (contract
# 4.1, 16.1)
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Redis;
use List::Util qw(min);

my ($KEYS, $LIMIT, $SECONDS, $TRIES) = (20, 120, 200, 5_000_000);

my $redis = CrmTest::Redis->new;
my ($code, $out, $err) = run_program(seconds => 600, command => [
    "$CrmTest::BUILD{DIR}/t/unit/store_driver", "load",
    "redis://127.0.0.1:" . $redis->port, 3, 2, 25, $KEYS, $LIMIT, $SECONDS,
    $TRIES]);
is($code, 0, "3 hosts of 2 processes with 25 threads, clocks 10 minutes apart")
    or diag($err);
my %total = $out =~ s/^totals (.*)\n//m ? split / /, $1 : ();
note(join " ", map { "$_ $total{$_}" } sort keys %total);
my %times;
push @{$times{$1}}, $2 while $out =~ /^(\d+) (\d+)$/mg;

is($total{admitted} + $total{refused}, 4_999_950, "all requests were decided");
cmp_ok($total{admitted}, "<=", $TRIES / 10, "10 times more than fit");
is($total{alone}, 0, "all by the store, or from what it had said");
is($total{elsewhen}, 0, "its clock is this machine's");
is(scalar keys %times, $KEYS, "every key was used");

my ($windows, $more, $least) = (0, 0, 9e9);
for my $key (sort keys %times) {
    my @t = @{$times{$key}};
    for my $i ($LIMIT .. $#t) {
        my $span = $t[$i] - $t[$i - $LIMIT];
        $windows++;
        $more++ if $span < 60_000_000;
        $least = min($least, $span);
    }
}
cmp_ok($windows, ">=", 2 * $KEYS * $LIMIT, "windows: $windows");
is($more, 0, "none with more than the limit; the shortest span of"
    . " one request more: $least us");
is($total{wrong}, 0, "no request was refused while there was room");

done_testing;
