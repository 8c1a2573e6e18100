#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 03-install.t: make install and make dist; 03-archive.t builds what it packs
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

subtest "make dist holds every file" => sub {
    my $dist = "$scratch/dist";
    mkdir $dist;
    make_ok($build, "it packs", "distdir", "distdir=$dist/src",
        "am__remove_distdir=:") or return;
    my @files = split /\n/, `$^X $CrmTest::TOP/build/sources --list`;
    cmp_ok(scalar @files, ">", 1_000, "the project has files");
    my @missing = grep { !-e "$dist/src/$_" } @files;
    is("@missing", "", "every file of the project is in it");
};

done_testing;
