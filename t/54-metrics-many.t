# SPDX-License-Identifier: Apache-2.0
# 54-metrics-many.t: 54-metrics.t with 10,000 requests of a known mix
# second gear
use strict;
use warnings;
use FindBin;

$ENV{CRM_METRICS_MANY} = 1;
my $done = do "$FindBin::RealBin/54-metrics.t";
die $@ if $@;
die "$!\n" unless defined $done;
