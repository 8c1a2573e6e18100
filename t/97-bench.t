# SPDX-License-Identifier: Apache-2.0
# 97-bench.t: build/bench works, and all contestants give the same answers
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

plan(skip_all => "build/setup --bench installs what is missing")
    if system("$ENV{CRM_SRCDIR}/build/setup --bench --dry-run >/dev/null 2>&1");

# build/bench dies if a contestant's answer differs from mod_crmapi's, if a timed
# request fails, or if a server logs a warning.
my $file = tempdir(CLEANUP => 1) . "/performance.md";
my ($code, $out, $err) = run_program(seconds => 900, command => [
    "$ENV{CRM_SRCDIR}/build/bench", "--quick", "--builddir",
    $ENV{CRM_BUILDDIR}, "--output", $file], env => { CRM_TEST_PG => undef });
is($code, 0, "it runs to its end") or diag($out, $err);
# Lines of a table of targets: the target, what is wanted, measured, met.
my @rows = grep { @$_ > 4 && $_->[2] =~ /^[<>]= / }
    map { [split /\s*\|\s*/] } split /\n/, read_file($file);
cmp_ok(scalar @rows, ">", 20, "it has measured its targets");
is_deeply([map { $_->[1] } grep { $_->[3] !~ /^\d[\d.]*$/ } @rows], [],
    "each has a number");
done_testing;
