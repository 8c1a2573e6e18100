# SPDX-License-Identifier: Apache-2.0
# 26-baseline.t: schema/ makes the same database as the migrations before it, which
# were not released: t/baseline.txt is what pg_dump said of theirs
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

# Functions that nothing called any more.
my $dropped = qr/(?:change_add|change_move|contact_event|event_add|key_find)\(/;

# OBJECT, its rights in order.
sub normal {
    my ($object) = @_;
    return $object if $object !~ /; Type: ACL;/;
    return join "; ", sort split /; Owner: - |;(?: |$)/, $object;
}

# What "pg_dump -s" says of the schema of DATABASE: each object on a line, sorted.
sub shape {
    my ($database) = @_;
    my ($code, $out, $err) = run_program(command => [CrmTest::Postgres::bindir()
        . "/pg_dump", "-s", "-n", "crmapi", "--no-owner", "-d",
        postgres()->conninfo($database)]);
    die "pg_dump: $err\n" if $code;
    my (undef, @objects) = split /^(?=-- Name: )/m, $out;
    $objects[-1] =~ s/^-- PostgreSQL database dump complete.*//ms;
    return sort map { normal(s/^--$//mgr =~ s/\s+/ /gr =~ s/ $//r) } @objects;
}

my $database = database(template => undef);
if ($ENV{CRM_BASELINE}) {       # the folder of the schema of before
    crmapictl_ok($database, "migrate", "--schema", $ENV{CRM_BASELINE});
    write_file("$CrmTest::TOP/t/baseline.txt", join "\n", shape($database), "");
    plan(skip_all => "t/baseline.txt is written");
}
crmapictl_ok($database, "migrate");
my @before = grep { !/^-- Name: (?:FUNCTION )?$dropped/ }
    split /\n/, read_file("$CrmTest::TOP/t/baseline.txt");
s/\bwebhook_event_pkey\b/event_pkey/g,
    s/public\.hmac\((convert_to\(text, 'UTF8'::name\), key), 'sha256'::text\)/crmapi.mac($1)/
    for @before;
same_text(join("\n", shape($database)), join("\n", sort @before),
    "the databases are the same");
done_testing;
