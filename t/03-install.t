#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 03-install.t: make install, make dist, and a build from its archive
# plain build only
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

my $build = $CrmTest::BUILD{DIR};
my $scratch = tempdir("crm-install-XXXXXX", TMPDIR => 1, CLEANUP => 1);

# Run make in DIR; the end of its words is shown when it fails.
sub make_ok {
    my ($dir, $name, @arguments) = @_;
    my ($code, $out, $err) = run_program(command => ["make", "-C", $dir,
        "--no-print-directory", @arguments], seconds => 600,
        env => { MAKEFLAGS => undef, MAKELEVEL => undef, DESTDIR => undef });
    is($code, 0, $name) or diag(substr "$out$err", -3000);
    return $code == 0;
}

subtest "make install puts everything in place" => sub {
    make_ok($build, "it installs", "install", "DESTDIR=$scratch/root")
        or return;
    my @files = map { s{^\Q$scratch\E/root}{}r } grep { -f }
        split /\n/, `find $scratch/root -type f`;
    my %have = map { s{.*/}{}r => $_ } @files;
    for my $name (qw(mod_crmapi.so crmapictl crmapid crmapi.conf crmapid.conf
            crmapid.service), map { s{.*/}{}r }
            glob "$CrmTest::TOP/docs/man/*.[1-9]") {
        ok($have{$name}, "$name is installed");
    }
    cmp_ok(scalar(grep { /\.[18]$/ } keys %have), ">=", 2, "manual pages");
    is($have{"mod_crmapi.so"},
        "$CrmTest::BUILD{LIBEXECDIR}/mod_crmapi.so" =~
            s/\$\{prefix\}/$have{crmapictl} =~ s{\/bin\/crmapictl}{}r/er,
        "the module lies in the folder that was asked for");
    my @schema = glob "$CrmTest::TOP/schema/{,repeat/,citus/{,later/,repeat/}}*.sql";
    is(scalar(grep { /\.sql$/ } keys %have), scalar @schema, "the schema");
    for my $sql (@schema) {
        my $name = $sql =~ s{.*/schema/}{}r;
        like($have{$name =~ s{.*/}{}r} // "", qr{/mod_crmapi/schema/\Q$name\E$},
            "schema/$name is installed");
    }
    for my $name (qw(crmapictl crmapid)) {
        my ($code, $out) = run_program(
            command => ["$scratch/root$have{$name}", "--version"]);
        is($code, 0, "the installed $name runs");
    }
    SKIP: {
        my ($none) = run_program(command => ["systemd-analyze", "--version"]);
        skip "no systemd-analyze: build/setup --tests installs it", 1 if $none;
        my ($code, $out, $err) = run_program(command => ["systemd-analyze",
            "security", "--offline=yes", "--threshold=20",
            "$scratch/root$have{'crmapid.service'}"]);
        is($code, 0, "the service's exposure is at most 2.0")
            or diag(substr "$out$err", -200);
    }
    my $conf = read_file("$scratch/root$have{'crmapi.conf'}");
    like($conf, qr{^ *LoadModule crmapi_module \S+/mod_crmapi\.so$}m,
        "the sample configuration loads the module");
    unlike($conf, qr/%\w+%|\@\w+\@/, "and has no gaps");
    # httpd takes the sample as it is, but for the place of installation
    $conf =~ s{(?=\Q$have{"mod_crmapi.so"}\E)}{$scratch/root}g;
    my $httpd = httpd(crmapi => 0, modules => ["-dbd"], conf => $conf,
        no_start => 1);
    my ($rc, $words) = $httpd->run("-t");
    is($rc, 0, "httpd takes the sample configuration") or diag($words);

    make_ok($build, "it uninstalls", "uninstall", "DESTDIR=$scratch/root");
    is(`find $scratch/root -type f`, "", "and leaves nothing");
};

subtest "make dist holds every file, and builds" => sub {
    my $dist = "$scratch/dist";
    mkdir $dist;
    make_ok($build, "it packs", "distdir", "distdir=$dist/src",
        "am__remove_distdir=:") or return;
    my @files = split /\n/, `$^X $CrmTest::TOP/build/sources --list`;
    cmp_ok(scalar @files, ">", 1_000, "the project has files");
    my @missing = grep { !-e "$dist/src/$_" } @files;
    is("@missing", "", "every file of the project is in it");
    mkdir "$dist/build";
    my ($code, $out, $err) = run_program(chdir => "$dist/build",
        seconds => 300, command => ["../src/configure", "--quiet",
            "--with-apxs=$CrmTest::BUILD{APXS}", "--prefix=$dist/inst",
            "--with-apache-libexecdir=$dist/inst/modules", "CFLAGS=-O0"]);
    is($code, 0, "configure in another folder (VPATH)") or diag($out, $err);
    make_ok("$dist/build", "it builds", "-j2", "all") or return;
    make_ok("$dist/build", "it installs below its prefix", "install");
    ok(-f "$dist/inst/modules/mod_crmapi.so",
        "--with-apache-libexecdir is heeded");
    ok(-x "$dist/build/crmapictl", "crmapictl lies at the top of the build");
};

done_testing;
