# SPDX-License-Identifier: Apache-2.0
# CrmTest/Dump.pm: dumps of workspaces
package CrmTest::Dump;
use strict;
use warnings;
use CrmTest;
use Digest::SHA qw(sha256_hex);
use Exporter qw(import);
use JSON::PP ();

our @EXPORT = qw(dump_of restored tables_of same_dump signed state_of);

my $json = JSON::PP->new->utf8;

# The dump of the workspace ID of DATABASE, to the byte.
sub dump_of {
    my ($database, $id) = @_;
    my ($code, $out, $err) = crmapictl($database, "workspace", "dump", $id);
    die "crmapictl workspace dump: $err" if $code;
    return $out;
}

# Restore DUMP into DATABASE; returns the output.
sub restored {
    my ($database, $dump, @options) = @_;
    my ($code, $out, $err) = crmapictl($database, { stdin => $dump }, "--json",
        "workspace", "restore", @options);
    die "crmapictl workspace restore: $err" if $code;
    return $json->decode($out);
}

# The tables of DUMP with the numbers of their rows.
sub tables_of {
    my ($dump) = @_;
    return map { $_->{table} => $_->{rows} } map { $json->decode($_) }
        $dump =~ /^(\{"table":.*)$/mg;
}

# The dumps GOT and EXPECTED are the same bytes. If not, the first line that
# differs is shown.
sub same_dump {
    my ($got, $expected, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return pass($name) if $got eq $expected;
    my @got = split /^/, $got;
    my @expected = split /^/, $expected;
    my ($n) = grep { ($got[$_] // "") ne ($expected[$_] // "") } 0 .. @got;
    fail($name);
    diag("line ", $n + 1, ":\n", $got[$n] // "none", $expected[$n] // "none");
}

# TEXT, a dump without its last line, with the right last line.
sub signed {
    my ($text) = @_;
    return qq($text\{"sha256":") . sha256_hex($text) . qq("}\n);
}

# Each table of DATABASE with a hash, which changes with any row. That commands were
# run stays in crmapi.audit, whatever is undone, and up to where readers of events may
# be ahead stays in crmapi.instance.
sub state_of {
    my ($database) = @_;
    my @tables = map { $_->[0] } sql($database, "SELECT relname FROM pg_class
        WHERE relnamespace = 'crmapi'::regnamespace AND relkind IN ('r', 'p')
          AND relname <> 'audit' ORDER BY 1");
    my %row = (instance => "(to_jsonb(t) - 'events_lost')");
    return join " ", map { "$_->[0]:$_->[1]" } sql($database, join(" UNION ALL
        ", map { my $row = ($row{$_} // "t") . "::text"; "SELECT '$_',
        md5(coalesce(string_agg($row, ' ' ORDER BY $row), ''))
        FROM crmapi.$_ t" } @tables) . " ORDER BY 1");
}

1;
