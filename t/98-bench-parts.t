# SPDX-License-Identifier: Apache-2.0
# 98-bench-parts.t: the other parts of build/bench work
# plain build only
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Bench;

bench_works(29, qw(http2 growth keys store poolers memory overload statements
    writes distance upsert writers import tenants));
done_testing;
