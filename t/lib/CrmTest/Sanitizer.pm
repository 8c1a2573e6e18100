# SPDX-License-Identifier: Apache-2.0
# CrmTest/Sanitizer.pm: what programs run with under sanitizers and valgrind
package CrmTest::Sanitizer;
use strict;
use warnings;
use CrmTest::Process qw(run_program);

# A report ends the program.
my %OPTIONS = (
    ASAN_OPTIONS => "detect_leaks=1:abort_on_error=1:handle_segv=2"
        . ":handle_sigbus=2:handle_sigill=2:handle_sigfpe=2",
    UBSAN_OPTIONS => "print_stacktrace=1:halt_on_error=1",
    # races within httpd and APR, which are not built here, are ignored; their
    # locks count
    TSAN_OPTIONS => "halt_on_error=1:second_deadlock_stack=1"
        . ":ignore_noninstrumented_modules=1");
my %LIBRARY = (address => "libasan.so", undefined => "libubsan.so",
    thread => "libtsan.so");

# Return the environment, as pairs. httpd => 1: for httpd, which is not of the
# build itself but loads what is, and has leaks of its own. leaks => 0: do not
# look for them (mod_ssl's cannot be told from those of OpenSSL's other users).
sub environment {
    my (%arg) = @_;
    return () if $CrmTest::BUILD{SANITIZERS} eq "no";
    my %options = %OPTIONS;
    $options{TSAN_OPTIONS} .= ":suppressions=$ENV{CRM_SRCDIR}/t/lib/tsan.txt";
    return %options unless $arg{httpd};
    # a restart unloads modules, whose thread-local storage must not be read
    $options{ASAN_OPTIONS} .= ":intercept_tls_get_addr=0";
    $options{ASAN_OPTIONS} =~ s/detect_leaks=1/detect_leaks=0/
        unless $arg{leaks} // 1;
    my @libraries = map { chomp(my $path = `$CrmTest::BUILD{CC} -print-file-name=$_`);
        $path =~ m{/} ? $path : () }
        @LIBRARY{split /,/, $CrmTest::BUILD{SANITIZERS}};
    push @libraries, made("lsan_httpd") if grep { /libasan/ } @libraries;
    push @libraries, made("tsan_httpd") if grep { /libtsan/ } @libraries;
    return (%options, LD_PRELOAD => join(":", @libraries));
}

# The library of NAME.c, which the first test of a build makes.
sub made {
    my ($name) = @_;
    my $source = "$ENV{CRM_SRCDIR}/t/lib/$name.c";
    my $library = "$CrmTest::BUILD{DIR}/t/$name.so";

    return $library if -e $library && -M $library < -M $source;
    my ($code, $out, $err) = run_program(command => [
        split(/ /, $CrmTest::BUILD{CC}), qw(-O1 -shared -fPIC), $source, "-o",
        "$library.$$", "-ldl"]);
    die "CrmTest: $source: $err\n" if $code;
    rename "$library.$$", $library or die "CrmTest: $library: $!\n";
    return $library;
}

# Return what stands before a command under valgrind, nothing without. What it
# complains of goes to the file LOG; without one to stderr, and the exit code
# is 99 then. With $CRM_CALLGRIND, the instructions of each process are counted
# in a file of that folder instead.
sub valgrind {
    my ($log) = @_;
    return () unless $ENV{CRM_VALGRIND};
    return (qw(valgrind --quiet --vgdb=no --tool=callgrind),
        "--callgrind-out-file=$ENV{CRM_CALLGRIND}/%p", "--log-file=$log")
        if $ENV{CRM_CALLGRIND};
    return (qw(valgrind --quiet --vgdb=no --leak-check=full
        --show-leak-kinds=definite --errors-for-leak-kinds=definite
        --num-callers=30), "--suppressions=$ENV{CRM_SRCDIR}/t/lib/valgrind.txt",
        defined $log ? "--log-file=$log" : "--error-exitcode=99");
}

1;
