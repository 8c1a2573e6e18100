# SPDX-License-Identifier: Apache-2.0
# 97-bench.t: build/bench works, and all contestants give the same answers
# plain build only
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Bench;

bench_works(13, "compare");
done_testing;
