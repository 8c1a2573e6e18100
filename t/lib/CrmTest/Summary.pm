# SPDX-License-Identifier: Apache-2.0
# CrmTest/Summary.pm: what a run left out, and its notes, printed at its end
package CrmTest::Summary;
use strict;
use warnings;
use CrmTest::Process qw(read_file);

# Reasons for skips that are accepted on any machine: the test is not for this
# build, MPM, system or run. In CI any other reason fails the run, because
# build/setup installs what is missing.
our @ELSEWHERE = (
    qr/^plain builds? only\b/,
    qr/^prefork\b/,
    qr/^second gear\b/,
    qr/^valgrind\b/,
    qr/^no apt here\b/,
    qr/^only a run of the whole suite\b/,
);

# A summary of a run whose tests keep their records in the folder RECORDS.
sub new {
    my ($class, $records) = @_;
    return bless { records => $records, left_out => [],
        alone => [] }, $class;
}

# Watch PARSER, a TAP::Parser, of TEST.
sub watch {
    my ($self, $parser, $test) = @_;
    my $skip = sub { push @{$self->{left_out}}, [$test, $_[0] || "no reason"] };

    $parser->callback(test => sub {
        $skip->($_[0]->explanation) if $_[0]->has_skip });
    $parser->callback(plan => sub {
        $skip->($_[0]->explanation) if $_[0]->has_skip });
    # what a subtest has left out is indented
    $parser->callback(unknown => sub {
        $skip->($1) if $_[0]->raw =~ /^\s+ok\b[^#]*# skip\b\s*(.*?)\s*$/i });
}

# Print which test files of the folder SOURCES are not in a whole run of TESTS
# (as for t/run), by the marks in their heads.
sub leave_out {
    my ($self, $sources, @tests) = @_;
    my %runs = map { $_ => 1 } @tests;
    my %build = map { /^(\w+):/ ? ($1 => 1) : () } @tests;

    for my $path (glob "$sources/t/[0-9][0-9]-*.t") {
        my ($file) = $path =~ m{(t/[^/]+)$};
        my ($mark) = read_file($path) =~ /^# (second gear|plain build only)/m
            or next;
        push @{$self->{left_out}}, map { [$_ => $mark eq "second gear"
            ? "second gear: build/test --all runs it"
            : "plain builds only: none of our C code is at work in it"] }
            grep { !$runs{$_} } map { "$_:$file" } sort keys %build;
    }
}

# TESTS failed beside others and passed alone.
sub passed_alone {
    my ($self, @tests) = @_;
    push @{$self->{alone}}, @tests;
    return;
}

# Notes of the tests, each once.
sub notes {
    my ($self) = @_;
    open(my $in, "<", "$self->{records}/notes") or return;
    chomp(my @notes = <$in>);
    return @notes;
}

# Print the summary. Return the number of tests with skips that are not
# accepted.
sub print {
    my ($self) = @_;
    my $ci = ($ENV{CI} // "") =~ /^(?:true|1)$/i;
    my %tests;      # reason => [tests]

    push @{$tests{$_->[1]}}, $_->[0] for @{$self->{left_out}};
    print "\n";
    print "Note: $_\n" for $self->notes;
    print "To be mended: $_ failed beside others and passed alone\n"
        for @{$self->{alone}};
    print "Unit tests: only CK_RUN_$_=$ENV{\"CK_RUN_$_\"}\n"
        for grep { $ENV{"CK_RUN_$_"} } qw(CASE SUITE);
    print %tests ? "Left out:\n" : "Nothing was left out.\n";
    my $wrong = 0;
    for my $reason (sort keys %tests) {
        my %count;
        $count{$_}++ for @{$tests{$reason}};
        my $fails = $ci && !grep { $reason =~ $_ } @ELSEWHERE;
        $wrong += keys %count if $fails;
        print "    $reason", $fails ? " (FAILED: in CI nothing may be missing)"
            : "", "\n";
        print "        $_", $count{$_} > 1 ? " ($count{$_} times)" : "", "\n"
            for sort keys %count;
    }
    return $wrong;
}

1;
