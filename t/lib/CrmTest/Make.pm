# SPDX-License-Identifier: Apache-2.0
# CrmTest/Make.pm: make in a folder of a test
package CrmTest::Make;
use strict;
use warnings;
use Exporter qw(import);
use Test::More ();
use CrmTest::Process qw(run_program);

our @EXPORT_OK = qw(make_ok);

# Run make with ARGUMENTS in DIR, as the test NAME; the end of its words is shown
# when it fails. Returns whether it succeeded.
sub make_ok {
    my ($dir, $name, @arguments) = @_;
    my ($code, $out, $err) = run_program(command => ["make", "-C", $dir,
        "--no-print-directory", @arguments], seconds => 600,
        env => { MAKEFLAGS => undef, MAKELEVEL => undef, DESTDIR => undef });
    Test::More::is($code, 0, $name)
        or Test::More::diag(substr "$out$err", -3000);
    return $code == 0;
}

1;
