# SPDX-License-Identifier: Apache-2.0
# CrmTest/Rows.pm: rows of the schema as SQL
package CrmTest::Rows;
use strict;
use utf8;
use warnings;
use Exporter qw(import);
use JSON::PP ();

our @EXPORT = qw(quoted row_of);

my $json = JSON::PP->new->canonical->allow_nonref;

# The SQL literal of VALUE; a reference to a text is SQL itself.
sub quoted {
    my ($value) = @_;
    return "NULL" unless defined $value;
    return $$value if ref $value eq "SCALAR";
    return $value ? "true" : "false" if JSON::PP::is_bool($value);
    $value = $json->encode($value) if ref $value;
    return "'" . $value =~ s/'/''/gr . "'";
}

# The statement that inserts a row of MEMBERS into crmapi.TABLE.
sub row_of {
    my ($table, %members) = @_;
    my @names = sort keys %members;

    return "INSERT INTO crmapi.$table (" . join(", ", @names) . ") VALUES ("
        . join(", ", map { quoted($members{$_}) } @names) . ")";
}

1;
