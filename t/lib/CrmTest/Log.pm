# SPDX-License-Identifier: Apache-2.0
# CrmTest/Log.pm: checks that a server's log has exactly the announced lines
package CrmTest::Log;
use strict;
use warnings;
use Exporter qw(import);
use Fcntl qw(:flock);
use JSON::PP ();
use Test::More ();
use CrmTest::Process qw(read_file);

our @EXPORT_OK = qw(objects);

my $strict = JSON::PP->new->utf8;

# A crash, a failed assertion, a report of a sanitizer or of valgrind, a message
# of the C library about a corrupted heap. These cannot be announced.
our @NEVER = (
    qr/\bAH0005[012]\b|exit signal|seg fault or similar|core ?dump/i,
    qr/\bAH0010[02]\b|assertion\b.*\bfailed|\bSIG(?:SEGV|ABRT|BUS|ILL|FPE)\b/i,
    qr/Sanitizer\b|\bruntime error: /,
    qr/^==\d+==/,
    qr/stack smashing|buffer overflow detected|Segmentation fault/,
    qr/\b(?:malloc|free|realloc|munmap_chunk)\(\): |double free or|corrupted /,
);

# libpq itself writes this if a session ends while it is being opened: nobody can
# take its notices before.
our $LIBPQ = qr/^(?:WARNING|FATAL): +terminating connection /;

# Warnings about the host's packages: [pattern, reason]. They do not concern
# mod_crmapi, so they are printed once in a run and fail no test.
our @HOST = (
    [qr/AH01882: /, "httpd runs with an older OpenSSL than mod_ssl was built"
        . " with (build/setup upgrades it)"],
    [qr/^Warning: program compiled against libxml \d+ using older \d+/,
        "a module of httpd runs with an older libxml2 than it was built with"],
);

# The objects in TEXT; each line must be one.
sub objects {
    my ($text) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return map { my $line = $_;
        my $object = eval { $strict->decode($line) };
        Test::More::ok(ref $object eq "HASH", "an object")
            or Test::More::diag("$line: $@");
        $object || () } split /\n/, $text;
}

# A checker of FILES, a function that returns paths. Lines that match QUIET are
# ignored.
sub new {
    my ($class, %arg) = @_;
    return bless { files => $arg{files}, quiet => $arg{quiet},
        announced => [], told => {} }, $class;
}

# For each of PATTERNS a line must appear from now on. A number after a pattern
# is the exact number of lines.
sub expect {
    my ($self, @patterns) = @_;

    while (@patterns) {
        my $pattern = shift @patterns;
        my $times = @patterns && !ref $patterns[0] ? shift @patterns : undef;
        $self->announce($pattern, times => $times, must => 1);
    }
}

# Lines that match one of PATTERNS may appear from now on.
sub may {
    my ($self, @patterns) = @_;
    $self->announce($_) for @patterns;
}

sub announce {
    my ($self, $pattern, %how) = @_;
    my %from = map { $_ => -s $_ // 0 } $self->{files}->();

    push @{$self->{announced}}, { pattern => $pattern, from => \%from, %how };
}

# All lines so far: [path, offset, text].
sub lines {
    my ($self) = @_;
    my @lines;

    for my $path ($self->{files}->()) {
        my $offset = 0;
        for my $text (split /(?<=\n)/, read_file($path)) {
            push @lines, [$path, $offset, $text =~ s/\n\z//r];
            $offset += length $text;
        }
    }
    return @lines;
}

# Check all lines. Return (lines that were not announced, announcements without
# a line), as references to arrays of texts; each is returned once.
sub judge {
    my ($self) = @_;
    my (@bad, @missing);
    my @announced = @{$self->{announced}};

    $_->{count} = 0 for @announced;
    for my $line ($self->lines) {
        my ($path, $offset, $text) = @$line;
        next if $text eq "" || $self->allowed($line);
        push @bad, $text unless $self->{told}{"$path $offset"}++;
    }
    for my $one (grep { $_->{must} } @announced) {
        my $times = $one->{times} // ($one->{count} || "one or more");
        next if $times eq $one->{count} || $self->{told}{$one}++;
        push @missing, "$one->{pattern}: $one->{count} lines, not $times";
    }
    return (\@bad, \@missing);
}

# Fail for what judge() finds in the log called NAME.
sub check {
    my ($self, $name) = @_;
    my ($bad, $missing) = $self->judge;
    splice @$bad, 40, @$bad - 40, "..." if @$bad > 40;
    complain("$name has lines that were not announced", @$bad) if @$bad;
    complain("$name lacks lines that were announced", @$missing) if @$missing;
}

sub complain {
    my ($what, @lines) = @_;
    Test::More::fail($what);
    Test::More::diag("  $_") for @lines;
}

# Whether LINE was announced. It is counted for the announcement that it
# matches.
sub allowed {
    my ($self, $line) = @_;
    my ($path, $offset, $text) = @$line;

    return 0 if grep { $text =~ $_ } @NEVER;
    my @fit = grep { $offset >= ($_->{from}{$path} // 0)
        && $text =~ $_->{pattern}
        && $_->{count} < ($_->{times} // 9**9) } @{$self->{announced}};
    # first the one whose line is still missing
    my ($for) = ((grep { $_->{must} && $_->{count} < ($_->{times} // 1) }
        @fit), @fit);
    if ($for) {
        $for->{count}++;
        return 1;
    }
    return 1 if $text =~ $self->{quiet} || $text =~ $LIBPQ;
    my ($host) = grep { $text =~ $_->[0] } @HOST;
    tell_once("$host->[1]: " . $text =~ s/^(?:\[[^\]]*\] )+//r) if $host;
    return !!$host;
}

my %told;
# Print TEXT at the end of the run, once for all test files (t/run does it), or
# at once if this test was started by hand.
sub tell_once {
    my ($text) = @_;
    my $records = $ENV{CRM_TEST_RECORDS};

    return if $told{$text}++;
    return Test::More::diag("note: $text") unless $records;
    open(my $notes, "+>>:raw", "$records/notes") or die "CrmTest: $records: $!\n";
    flock($notes, LOCK_EX);
    seek $notes, 0, 0;
    print $notes "$text\n" unless grep { $_ eq "$text\n" } <$notes>;
    close $notes;
}

# What servers have that keep such a log: {log}, and log_text(), all of it.
package CrmTest::Logged;

# Each of PATTERNS must (may) appear in the log from now on.
sub expect_log { my $self = shift; $self->{log}->expect(@_) }
sub may_log { my $self = shift; $self->{log}->may(@_) }

# The lines of the log that match PATTERN.
sub log_lines {
    my ($self, $pattern) = @_;
    return grep { $_ =~ $pattern } split /\n/, $self->log_text;
}

# Wait until a line of the log matches PATTERN; return it or undef.
sub wait_log {
    my ($self, $pattern, $seconds) = @_;
    return CrmTest::Process::wait_for(
        sub { ($self->log_lines($pattern))[0] }, $seconds);
}

1;
