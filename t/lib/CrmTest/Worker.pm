# SPDX-License-Identifier: Apache-2.0
# CrmTest/Worker.pm: a crmapid for a test, ended with its object
package CrmTest::Worker;
use strict;
use warnings;
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use POSIX qw(WNOHANG);
use Scalar::Util ();
use Test::More ();
use CrmTest::Log;
use parent -norequire, "CrmTest::Logged";
use CrmTest::Pooler;
use CrmTest::Postgres;
use CrmTest::Sanitizer;
use CrmTest::Process qw(spawn end_process run_program wait_for read_file
    write_file);

# Lines that need no announcement, as text and as JSON.
my $QUIET = qr/(?:notice|info|debug)/;
my ($TIME, $LEVEL) = (qr/"time":"[^"]*"/, qr/"level":"$QUIET"/);

my %running;    # address of object => object, weak

# Make a daemon:
#   database  => name of its database
#   conf      => { setting => value } in its configuration
#   conninfo  => instead of the database's own, e.g. through a proxy
#   expect_log, may_log => what it logs as it starts, too: see CrmTest::Log
#   env       => { name => value } of its environment
#   no_start  => 1: only make the folder and the configuration
#   seconds   => time limit of run() and once()
# Settings that make it quick are the defaults; CONF overrides them.
sub new {
    my ($class, %arg) = @_;
    my $self = bless { maker => $$, %arg }, $class;

    my $dir = $self->{dir} = tempdir("crm-worker-XXXXXX", TMPDIR => 1);
    $self->{log} = CrmTest::Log->new(
        files => sub { grep { -e } "$dir/log", glob "$dir/valgrind.*" },
        quiet => qr/^(?:\S+Z \[\d+\] $QUIET: |(?:<\d>)?\{$TIME,$LEVEL)/);
    $self->expect_log(@{$arg{expect_log} || []});
    $self->may_log(@{$arg{may_log} || []});
    # Failures that a test makes are told, at most once a minute:
    # t/42-enrollments.t looks at these lines.
    $self->may_log(qr/CRM(?:3115|3116|3142): \d+ /);
    chmod 0700, $self->{dir};
    write_file($self->log_file, "");
    $self->configure($arg{conf} || {});
    $running{$self + 0} = $self;
    Scalar::Util::weaken($running{$self + 0});
    $self->start unless $arg{no_start};
    return $self;
}

sub dir { $_[0]{dir} }
sub pid { $_[0]{pid} }
sub outbox { "$_[0]{dir}/outbox" }
sub conf_file { "$_[0]{dir}/crmapid.conf" }
sub log_file { "$_[0]{dir}/log" }

# Write the configuration: the previous one, changed by CONF.
sub configure {
    my ($self, $conf) = @_;
    my $pooler = CrmTest::Pooler->mode;
    my $server = $pooler ? "CrmTest::Pooler" : CrmTest::postgres();
    my %conf = (database => $self->{conninfo} // $server->conninfo(
            $self->{database}, $CrmTest::Postgres::WORKER),
        ($pooler // "") eq "transaction" ? (named_statements => "off") : (),
        run_dir => $self->{dir}, log_level => "info", mail_domain => "x.org",
        mail_from => "crm\@x.org", poll => "200ms",
        %{$self->{conf} || {}}, %$conf);

    $self->{conf} = \%conf;
    write_file($self->conf_file, join "",
        map { "$_ = $conf{$_}\n" } grep { defined $conf{$_} } sort keys %conf);
}

sub environment {
    my ($self) = @_;
    return { LC_ALL => "C.UTF-8", CRMAPI_DATABASE => undef,
        %{$self->{env} || {}}, CrmTest::Sanitizer::environment() };
}

# The command, with OPTIONS behind it.
sub command {
    my ($self, @options) = @_;
    return (CrmTest::Sanitizer::valgrind("$self->{dir}/valgrind.%p"),
        $CrmTest::BUILD{WORKER}, "-c", $self->conf_file, @options);
}

# Run it with OPTIONS. Return (exit code, stdout, stderr).
sub run {
    my ($self, @options) = @_;
    return run_program(command => [$self->command(@options)],
        env => $self->environment, seconds => $self->{seconds});
}

# Start it although it must refuse to. Return (exit code, stderr).
sub refuses {
    my ($self) = @_;
    local $self->{seconds} = 20;
    return ($self->run)[0, 2];
}

# Run all due jobs once, at the time NOW if given; it must succeed.
sub once {
    my ($self, $now) = @_;
    my ($code, $out, $err) = $self->run("-1", $now ? ("--now", $now) : ());

    open(my $log, ">>", $self->log_file) or die "CrmTest: $!\n";
    print $log $err;
    close $log;
    die "CrmTest: crmapid -1: exit $code: $err\n" if $code;
    return $err;
}

# Have all that waits be due, and do it.
sub hurry {
    my ($self) = @_;
    CrmTest::postgres()->sql($self->{database}, "UPDATE crmapi.job SET"
        . " run_at = now() - interval '1 s' WHERE state = 'ready'");
    return $self->once;
}

# Start it and wait until it works.
sub start {
    my ($self) = @_;
    my $before = () = $self->log_text =~ /CRM3001/g;

    $self->{pid} = spawn(command => [$self->command], env => $self->environment,
        log => $self->log_file, chdir => "/");
    $self->{status} = undef;
    return if $self->{no_wait};
    my $up = wait_for(sub {
        return -1 if waitpid($self->{pid}, WNOHANG) != 0;
        my $now = () = $self->log_text =~ /CRM3001/g;
        return $now > $before;
    }, 30);
    return if $up && $up > 0;
    $self->kill if $up == 0;
    die "CrmTest: crmapid did not start: " . $self->log_text . "\n";
}

sub log_text { read_file($_[0]->log_file) }

# End it by SIGNAL; it must finish what it does and exit with 0.
sub stop {
    my ($self, $signal) = @_;
    my $pid = delete $self->{pid};

    if ($pid) {
        my ($status, $killed) = end_process($pid, $signal || "TERM",
            $ENV{CRM_VALGRIND} ? 120 : 40);
        Test::More::ok(0, "crmapid ends by itself") if $killed;
        Test::More::is($status, 0, "crmapid exits with 0") if $status;
    }
    $self->{log}->check("crmapid's log");
}

# End it as a crash does.
sub kill {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    CORE::kill KILL => $pid;
    waitpid $pid, 0;
}

# The files of its outbox, as [name, text].
sub mails {
    my ($self) = @_;
    return map { [m{([^/]+)$}, read_file($_)] }
        sort glob $self->outbox . "/new/*";
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    return if $self->{maker} != $$;
    ${^GLOBAL_PHASE} eq "RUN" ? $self->stop : $self->kill;
    delete $running{$self + 0};
    remove_tree($self->{dir});
}

# Stop all running ones, and check their logs.
sub stop_all {
    for my $worker (grep { $_ && $_->{maker} == $$ } values %running) {
        $worker->stop;
    }
}

sub END {
    local ($?, $!, $@);
    for my $worker (grep { $_ && $_->{maker} == $$ } values %running) {
        $worker->DESTROY;
    }
}

1;
