# SPDX-License-Identifier: Apache-2.0
# CrmTest/Functions.pm: the functions of the schema as its files have them
#
#     files("$CrmTest::TOP/schema")       # the names of the files, in their order
#     functions()->{job_end}{comment}
#     functions()->{job_end}{locks}       # ["job"]
package CrmTest::Functions;
use strict;
use warnings;
use Exporter qw(import);
use CrmTest;

our @EXPORT = qw(files functions);

sub files { my ($dir) = @_; return sort map { s{.*/}{}r } glob "$dir/*.sql" }

# The locks that COMMENT names: an array, undef without "Locks:". What is in
# brackets, or holds for the whole list, is not among them.
sub locks {
    my ($comment) = @_;
    my ($named) = $comment =~ /\bLocks: (?:of each workspace )?(.*?)\.(?: |$)/
        or return undef;
    return [map { s/^\s+|\s*\(.*|\s+$//gr } split /, |; /, $named];
}

# The functions in the files of schema/, by name: { file, comment, lines, locks,
# body }. The last file that has one counts.
sub functions {
    my (%found, $one, $end, $comment);
    for my $file (files("$CrmTest::TOP/schema")) {
        for (split /\n/, read_file("$CrmTest::TOP/schema/$file")) {
            if (/^CREATE (?:OR REPLACE )?FUNCTION crmapi\.(\w+)/) {
                my $before = $found{$1};    # with other parameters
                $one = $found{$1} = { file => $file, comment => $comment,
                    locks => locks($comment // "") // $before->{locks} };
                $end = qr/;$/;
            }
            delete $found{$1} if /^DROP FUNCTION crmapi\.(\w+);/;
            $end = qr/^\$\$;$/ if /\bAS \$\$/;
            $end = qr/^END;$/ if /^BEGIN ATOMIC/;
            if ($one) {
                $one->{lines}++;
                $one->{body} .= "$_\n";
            }
            $one = undef if $one && /$end/;
            $comment = /^--(.*)/ ? ($comment // "") . $1 : undef;
        }
    }
    return \%found;
}

1;
