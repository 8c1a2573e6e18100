# SPDX-License-Identifier: Apache-2.0
# 97-bench.t: bench/worker works; build/bench works, and all contestants give the
# same answers
# plain build only
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Bench;

subtest "bench/worker" => sub {
    my ($code, $out, $err) = run_program(seconds => 300, command => ["nice",
        "-n10", "$ENV{CRM_SRCDIR}/bench/worker", qw(--rounds 1 --mails 20
        --threads 2)], env => { CRM_TEST_PG => undef, CRM_TEST_RECORDS => undef });
    is($code, 0, "it runs to its end") or diag($out, $err);
    like($out, qr/^here   2 threads: [1-9]\d* mails\/s; crmapid [1-9]\d* us,/m,
        "it has measured");
};

subtest "build/bench" => sub { bench_works(13, "compare") };

done_testing;
