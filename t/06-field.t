# SPDX-License-Identifier: Apache-2.0
# 06-field.t: mod_crmapi/README, Where a change goes: in a copy of the sources a contact
# gets one, in three places; events have it, too, and a place that is left out is
# noticed
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Upgrade qw(versions);
use File::Temp qw(tempdir);

my $copy = tempdir("crm-field-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my ($source) = read_file("$CrmTest::BUILD{DIR}/Makefile")
    =~ /^top_srcdir = (.*)$/m;
$source = "$CrmTest::BUILD{DIR}/$source" if $source !~ m{^/};
my ($version) = versions();
my $next = $version + 1;

sub must {
    my ($code, $out, $err) = run_program(command => [@_], seconds => 600);
    die "@_: $out$err\n" if $code;
}

# Change FILE of the copy by CODE, which changes $_. Returns what it was.
sub change {
    my ($file, $code) = @_;
    my $before = read_file("$copy/src/$file", "");
    local $_ = $before;
    $code->();
    die "$file: there is no such place\n" if $_ eq $before;
    write_file("$copy/src/$file", $_);
    return ($file, $before);
}

# Make the programs of the copy.
sub build {
    must("make", "-C", "$copy/build", (map { "$_=$copy/src" } qw(top_srcdir
        srcdir VPATH)), qw(AUTOCONF=: AUTOMAKE=: ACLOCAL=: AUTOHEADER=:
        mod_crmapi.so crmapid crmapictl));
}

# Run TEST of the copy: (its exit code, what it says).
sub test {
    my ($test) = @_;
    local %ENV = (%ENV, CRM_SRCDIR => "$copy/src", CRM_BUILDDIR => "$copy/build");
    delete @ENV{qw(CRM_TEST_PG CRM_TEST_RECORDS CRM_TEST_WHOLE)};
    my ($code, $out, $err) = run_program(seconds => 600, chdir => "$copy/src",
        command => [$^X, "$copy/src/t/run", "t/$test.t"]);
    return ($code, "$out$err");
}

# Steps of a migration: the functions that merge contacts (contract 20.5), which name
# each field.
sub merging {
    my @functions = read_file((glob "$copy/src/schema/*-contacts.sql")[0])
        =~ /^((?:-- [^\n]*\n)+CREATE FUNCTION crmapi\.contact_fill(?:ed)?\(.*?^\$\$;\n)/msg;
    for (@functions) {
        s/^CREATE/CREATE OR REPLACE/m;
        s/(?=lead_source,deal_value)/nickname,/
            || s/(?=lead_source = filled)/nickname = filled.nickname, /
            or die "no lead_source in $_\n";
    }
    die "no functions that merge contacts\n" if @functions != 2;
    return join "", map { "-- step: transaction: a function\n$_" } @functions;
}

# The places, each with the file's text of before and the test that misses it.
must("cp", "-aL", $source, "$copy/src");
must("cp", "-a", $CrmTest::BUILD{DIR}, "$copy/build");
my $migration = sprintf "schema/%04d-nickname.sql", $next;
my %PLACE = (
    table => ["81-specification", change("mod_crmapi/model/contact.c", sub {
        s/(?=^ +\{\.name = "lead_source")/    {.name = "nickname", .type = &crm_type_text,
     .flags = CRM_F_OPTIONAL},\n/m })],
    column => ["31-contacts", change($migration, sub {
        $_ = "-- min_module: $version\n-- step: transaction: the column\n"
            . "ALTER TABLE crmapi.contact ADD COLUMN nickname crmapi.line;\n"
            . merging() })],
    specification => ["81-specification", change("t/lib/CrmTest/Spec.pm", sub {
        s/^    Contact => \[.*?\K(?=^ +lead_source )/        nickname => "string or null, written",\n/ms })],
);
change("mod_crmapi/database/crm_schema.h", sub {
    s/(?<=CRM_SCHEMA_VERSION )$version$/$next/m });
for my $file (map { glob "$copy/src/mod_crmapi/$_/*.c" } "*", "*/*") {
    utime undef, undef, $file if read_file($file) =~ /"crm_schema\.h"/;
}
build();

subtest "a field is a line of the table, a column and a line of the specification"
        => sub {
    for my $test (qw(05-schema 26-rules 31-contacts 61-events 81-specification)) {
        my ($code, $said) = test($test);
        is($code, 0, "$test passes") or diag($said);
    }
};

for my $place (sort keys %PLACE) {
    my ($test, $file, $before) = @{$PLACE{$place}};
    subtest "without the $place it is noticed" => sub {
        my $with = read_file("$copy/src/$file");
        # the migration remains, and does nothing
        write_file("$copy/src/$file", $before
            || "-- min_module: $version\nSELECT 1;\n");
        build();
        my ($code, $said) = test($test);
        isnt($code, 0, "by $test");
        like($said, qr/nickname/, "which names it") or diag($said);
        write_file("$copy/src/$file", $with);
    };
}

done_testing;
