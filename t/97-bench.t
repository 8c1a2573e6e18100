# SPDX-License-Identifier: Apache-2.0
# 97-bench.t: build/bench works, and all contestants answer alike
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

plan(skip_all => "build/setup --bench installs what is missing")
    if system("$ENV{CRM_SRCDIR}/build/setup --bench --dry-run >/dev/null 2>&1");

# It dies where a contestant answers otherwise than mod_crmapi, where a request
# fails while it is timed, and where a server complains.
my $file = tempdir(CLEANUP => 1) . "/performance.md";
my ($code, $out, $err) = run_program(seconds => 900, command => [
    "$ENV{CRM_SRCDIR}/build/bench", "--quick", "--builddir",
    $ENV{CRM_BUILDDIR}, "--output", $file], env => { CRM_TEST_PG => undef });
is($code, 0, "it runs to its end") or diag($out, $err);
my ($targets) = read_file($file) =~ /^## Targets\n(.*?)^## /ms;
my @rows = grep { @$_ > 3 && $_->[2] ne "wanted" && $_->[2] !~ /^-/ }
    map { [split /\s*\|\s*/] } split /\n/, $targets // "";
cmp_ok(scalar @rows, ">", 20, "it has measured what its targets are about");
is_deeply([map { $_->[1] } grep { $_->[3] !~ /^\d[\d.]*$/ } @rows], [],
    "each has a number");
done_testing;
