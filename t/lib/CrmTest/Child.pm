# SPDX-License-Identifier: Apache-2.0
# CrmTest/Child.pm: code that runs beside the test, in a process of its own
#
#     my $child = CrmTest::Child->start(sub { ...; return @values });
#     my @values = $child->result;          # waits for it
#
#     my $child = CrmTest::Child->start(sub {
#         my ($go_on) = @_;
#         while ($go_on->()) { ... }        # until the test calls stop()
#     });
#     $child->stop;
#     my @values = $child->result;
#
# If a check fails in the child, the test fails (by Test2::IPC). So it does
# after an exception, a signal or an exit.
package CrmTest::Child;
use strict;
use warnings;
use File::Temp qw(tempdir);
use Cpanel::JSON::XS ();
use POSIX ();
use Test::More ();

my $json = Cpanel::JSON::XS->new->utf8->allow_nonref;
my $dir;        # of files that tell children to stop
my $count = 0;

# Run CODE->(GO_ON) in a new process. Its return values are transferred as JSON.
sub start {
    my ($class, $code) = @_;
    my $self = bless { maker => $$ }, $class;

    $dir //= tempdir("crm-child-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    my $stop = $self->{stop} = "$dir/" . ++$count;
    pipe($self->{out}, my $in) or die "CrmTest: pipe: $!\n";
    $self->{pid} = fork // die "CrmTest: fork: $!\n";
    return $self if $self->{pid};
    $SIG{$_} = "DEFAULT" for qw(TERM INT HUP);
    my $go_on = sub { !-e $stop && getppid == $self->{maker} };
    my $answer = eval { { values => [$code->($go_on)] } } // { died => "$@" };
    print $in eval { $json->encode($answer) }
        // $json->encode({ died => "its values are no JSON: $@" });
    close $in;
    POSIX::_exit(0);
}

sub pid { $_[0]{pid} }

# Tell it to stop.
sub stop {
    my ($self) = @_;
    open(my $stop, ">", $self->{stop}) or die "CrmTest: $self->{stop}: $!\n";
}

# Wait for it and return its values; nothing if it failed, which also fails the
# test.
sub result {
    my ($self) = @_;
    my $out = delete $self->{out}
        or die "CrmTest: a child's result is had once\n";
    my $text = do { local $/; readline $out };

    waitpid $self->{pid}, 0;
    my $answer = eval { $json->decode($text) };
    my $wrong = $? & 127 ? "it was ended by signal " . ($? & 127)
        : $? ? "it exited with " . ($? >> 8)
        : !$answer ? "it ended without a result"
        : $answer->{died};
    return @{$answer->{values}} unless defined $wrong;
    Test::More::fail("a process beside the test ends well");
    Test::More::diag("  $wrong");
    return;
}

# A child whose result was not read is told to stop, and must not fail either.
sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);

    return if $self->{maker} != $$ || !$self->{out};
    $self->stop;
    kill KILL => $self->{pid} if ${^GLOBAL_PHASE} ne "RUN";
    ${^GLOBAL_PHASE} eq "RUN" ? $self->result : waitpid $self->{pid}, 0;
}

1;
