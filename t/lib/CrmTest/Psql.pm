# SPDX-License-Identifier: Apache-2.0
# CrmTest/Psql.pm: a psql that stays, for the many short statements of tests. To
# start one and to open its session costs a thousand times what a statement
# does.
package CrmTest::Psql;
use strict;
use warnings;
use IO::Select;
use POSIX ();
use Time::HiRes qw(time);
use CrmTest::Process qw(run_program);

# What the sessions of a test must not meet, or only new sessions see; what a
# session holds until it ends; data that psql reads ahead of the mark.
my $ALONE = qr/\b(?:ALTER|CREATE|DROP)\s+(?:DATABASE|ROLE|SYSTEM)\b
    |\bpg_reload_conf\b|\bpg_advisory_lock|\bBEGIN\s*;|\bFROM\s+STDIN\b/xi;
# PostgreSQL's counts, which have what a session did up to ten seconds later.
my $COUNTS = qr/\bpg_stat_(?:database|user)/;
# The longest text that a pipe takes while nobody reads it.
my $MOST = 60_000;
my $SECONDS = 120;
# {conninfo and options, psql}; who was used last is first
my @kept;
my $KEPT = 3;

# Run SQL in a session for CONNINFO that is as a new one, by psql with OPTIONS,
# and the environment ENV added. Return what it prints. Dies when it fails.
sub answer {
    my ($class, $conninfo, $sql, $options, $env) = @_;

    @kept = grep { $_->{psql}{maker} == $$ } @kept;
    if ($sql =~ $COUNTS) {
        $_->{psql}->run("SELECT pg_stat_force_next_flush()") for @kept;
    }
    if ($sql =~ $ALONE) {
        @kept = ();
    }
    elsif (length $sql < $MOST) {
        my $psql = $class->kept($conninfo, $options, $env);
        return $psql->run($sql)
            // die "CrmTest: " . $psql->error . "(in: $sql)\n";
    }
    my ($code, $out, $err) = run_program(seconds => $SECONDS, env => $env,
        command => [command($conninfo, @$options)], stdin => $sql);
    die "CrmTest: $err(in: $sql)\n" if $code;
    return $out;
}

# The psql that is kept for CONNINFO, or a new one.
sub kept {
    my ($class, $conninfo, $options, $env) = @_;
    my $name = join "\0", $conninfo, @$options;
    my ($own) = grep { $_->{name} eq $name } @kept;

    $own = undef if $own && !$own->{psql}->renew;
    $own //= { name => $name,
        psql => $class->new($conninfo, $options, $env) };
    @kept = ($own, grep { $_->{name} ne $name } @kept);
    $#kept = $KEPT - 1 if @kept > $KEPT;
    return $own->{psql};
}

# psql with OPTIONS; it stops at the first error.
sub command {
    my ($conninfo, @options) = @_;
    return ("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", @options,
        "-d", $conninfo);
}

# Start a psql for CONNINFO with OPTIONS, and the environment ENV added.
sub new {
    my ($class, $conninfo, $options, $env) = @_;
    my $self = bless { maker => $$, marks => 0 }, $class;

    pipe(my $in, $self->{in}) or die "CrmTest: pipe: $!\n";
    pipe($self->{out}, my $out) or die "CrmTest: pipe: $!\n";
    open($self->{err}, "+>", undef) or die "CrmTest: $!\n";
    $self->{pid} = fork // die "CrmTest: fork: $!\n";
    if (!$self->{pid}) {
        open(STDIN, "<&", $in);
        open(STDOUT, ">&", $out);
        open(STDERR, ">&", $self->{err});
        %ENV = (%ENV, %$env);
        { exec "setpriv", "--pdeathsig", "TERM", command($conninfo, @$options) }
        POSIX::_exit(127);
    }
    binmode $_ for @$self{qw(in out)};
    $self->{in}->autoflush(1);
    return $self;
}

# Run SQL, of $MOST bytes at most. Return what it prints; undef if psql ended,
# which error() explains. Dies after $SECONDS.
sub run {
    my ($self, $sql) = @_;
    $self->begin($sql);
    return $self->result;
}

# Begin to run SQL, without waiting for it. result() has to follow.
sub begin {
    my ($self, $sql) = @_;
    local $SIG{PIPE} = "IGNORE";

    $self->{running} = $sql;
    print {$self->{in}} "$sql\n;\n\\echo end of " . ++$self->{marks} . "\n";
}

# What the SQL prints that was begun; as run().
sub result {
    my ($self) = @_;
    my $until = time + $SECONDS;
    my $text = "";

    while ($text !~ s/end of $self->{marks}\n\z//) {
        my $ready = IO::Select->new($self->{out})->can_read($until - time);
        if (!$ready) {
            kill KILL => $self->{pid};
            die "CrmTest: psql did not end (in: $self->{running})\n";
        }
        sysread($self->{out}, $text, 65536, length $text) or return undef;
    }
    return $text;
}

# Return whether it runs, with a session that is as a new one: what ran before
# left nothing.
sub renew {
    my ($self) = @_;
    return $self->{pid} && defined $self->run("DISCARD ALL");
}

# What psql, which has ended, wrote to stderr.
sub error {
    my ($self) = @_;
    $self->end;
    seek $self->{err}, 0, 0;
    local $/;
    return readline($self->{err}) // "";
}

# End it.
sub end {
    my ($self) = @_;
    my $pid = delete $self->{pid};

    return if !$pid || $self->{maker} != $$;
    local $?;
    local $SIG{PIPE} = "IGNORE";
    # a child of the test, forked meanwhile, may have the pipe open
    print {$self->{in}} "\\q\n";
    close $self->{in};
    waitpid $pid, 0;
}

sub DESTROY {
    my ($self) = @_;
    local ($@, $!);
    $self->end;
}

sub END {
    @kept = ();
}

1;
