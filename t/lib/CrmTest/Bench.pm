# SPDX-License-Identifier: Apache-2.0
# Bench.pm: a short run of build/bench, which checks that it works
package CrmTest::Bench;
use strict;
use warnings;
use CrmTest;
use Exporter qw(import);
use File::Temp qw(tempdir);

our @EXPORT = qw(bench_works);

# Run PARTS of build/bench and check that each of their targets has a number,
# and that there are at least ROWS targets. build/bench dies if a contestant's
# answer differs from mod_crmapi's, if a timed request fails, or if a server
# logs a warning. Concurrent tests have priority.
sub bench_works {
    my ($rows, @parts) = @_;
    plan(skip_all => "build/setup --bench installs what is missing")
        if system("$ENV{CRM_SRCDIR}/build/setup --bench --dry-run"
            . " >/dev/null 2>&1");
    my $file = tempdir(CLEANUP => 1) . "/performance.md";
    my ($code, $out, $err) = run_program(seconds => 2400, command => ["nice",
        "-n10", "$ENV{CRM_SRCDIR}/build/bench", "--quick", "--only",
        join(",", @parts), "--builddir", $ENV{CRM_BUILDDIR}, "--output",
        $file], env => { CRM_TEST_PG => undef });
    is($code, 0, "it runs to its end") or diag($out, $err);
    # Lines of a table of targets: the target, what is wanted, measured, met.
    my @rows = grep { @$_ > 4 && $_->[2] =~ /^[<>]= / }
        map { [split /\s*\|\s*/] } split /\n/, read_file($file);
    cmp_ok(scalar @rows, ">=", $rows, "it has measured its targets");
    is_deeply([map { $_->[1] } grep { $_->[3] !~ /^\d[\d.]*$/ } @rows], [],
        "each has a number");
    return;
}

1;
