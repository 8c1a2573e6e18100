#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 03-archive.t: a build from what make dist packs
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Make qw(make_ok);
use File::Temp qw(tempdir);

my $build = $CrmTest::BUILD{DIR};
my $scratch = tempdir("crm-install-XXXXXX", TMPDIR => 1, CLEANUP => 1);

make_ok($build, "make dist packs", "distdir", "distdir=$scratch/src",
    "am__remove_distdir=:") or BAIL_OUT("nothing was packed");
mkdir "$scratch/build";
my ($code, $out, $err) = run_program(chdir => "$scratch/build",
    seconds => 300, command => ["../src/configure", "--quiet",
        "--with-apxs=$CrmTest::BUILD{APXS}", "--prefix=$scratch/inst",
        "--with-apache-libexecdir=$scratch/inst/modules", "CFLAGS=-O0"]);
is($code, 0, "configure in another folder (VPATH)") or diag($out, $err);
if (make_ok("$scratch/build", "it builds", "-j2", "all")) {
    make_ok("$scratch/build", "it installs below its prefix", "install");
    ok(-f "$scratch/inst/modules/mod_crmapi.so",
        "--with-apache-libexecdir is heeded");
    ok(-x "$scratch/build/crmapictl", "crmapictl lies at the top of the build");
}

done_testing;
