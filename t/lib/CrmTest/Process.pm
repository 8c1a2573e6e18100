# SPDX-License-Identifier: Apache-2.0
# CrmTest/Process.pm: starts and ends programs by their process id
package CrmTest::Process;
use strict;
use warnings;
use Carp ();
use Exporter qw(import);
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(unprivileged demoted spawn end_process run_program
    wait_for read_file whole_lines write_file busy python_with free_port);

# Return a port of 127.0.0.1 that nobody listens on just now.
sub free_port {
    my $socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        LocalPort => 0, Listen => 1, Proto => "tcp")
        or die "CrmTest: no free port: $!\n";
    return $socket->sockport;
}

# Return the name of the user that servers run as when the tests run as root,
# or undef when they do not.
sub unprivileged {
    return undef if $> != 0;
    for my $name (qw(postgres nobody)) {
        return $name if getpwnam $name;
    }
    die "CrmTest: running as root, and there is no user postgres or nobody\n";
}

# Return what to put before a command so that it runs unprivileged.
sub demoted {
    my $user = unprivileged() or return ();
    my $group = getgrgid((getpwnam $user)[3]);
    return ("setpriv", "--reuid", $user, "--regid", $group,
        "--clear-groups");
}

# Start COMMAND (an array) with stdout and stderr going to the file LOG, in
# the folder CHDIR if given, and the environment ENV added. It is told to end
# should this process die. Return its process id.
sub spawn {
    my (%arg) = @_;
    my $pid = fork // die "CrmTest: fork: $!\n";

    return $pid if $pid;
    # httpd's prefork ends its children by ending its process group
    POSIX::setpgid(0, 0);
    chdir $arg{chdir} if $arg{chdir};
    open(STDIN, "<", "/dev/null");
    open(STDOUT, ">>", $arg{log}) or POSIX::_exit(126);
    open(STDERR, ">&", \*STDOUT);
    %ENV = (%ENV, %{$arg{env} || {}});
    my @command = @{$arg{command}};
    # setpriv drops rights first and asks for the signal then: one process
    # does both when the command begins with it.
    if ($command[0] eq "setpriv") {
        splice @command, 1, 0, "--pdeathsig", $arg{signal} || "TERM";
    }
    else {
        unshift @command, "setpriv", "--pdeathsig", $arg{signal} || "TERM";
    }
    { exec { $command[0] } @command }
    print STDERR "cannot run $command[0]: $!\n";
    POSIX::_exit(127);
}

# How many times longer something may take because others use the processors: for
# the upper limits of times, of which some test whether a wait ends.
sub busy {
    my ($load) = read_file("/proc/loadavg", "") =~ /^([\d.]+)/;
    my $processors = () = read_file("/proc/cpuinfo", "") =~ /^processor\b/mg;
    my $times = ($load // 0) / ($processors || 1);
    return $times > 1 ? $times : 1;
}

# Whether a wait of SECONDS that began at BEGIN is over: it may take longer on a busy
# machine.
sub is_over {
    my ($begin, $seconds) = @_;
    my $took = time - $begin;
    return $took > $seconds && $took > $seconds * busy();
}

# End child PID by SIGNAL, within SECONDS, then by SIGKILL. Return its wait
# status, and in list context whether it had to be killed.
sub end_process {
    my ($pid, $signal, $seconds) = @_;
    my $begin = time;

    kill $signal => $pid;
    until (is_over($begin, $seconds || 20)) {
        my $got = waitpid($pid, WNOHANG);
        return wantarray ? ($?, 0) : $? if $got == $pid;
        return wantarray ? (0, 0) : 0 if $got < 0;
        sleep 0.01;
    }
    kill KILL => $pid;
    waitpid($pid, 0);
    return wantarray ? ($?, 1) : $?;
}

# Run COMMAND with the text STDIN, at most SECONDS (120), longer on a busy machine.
# Return (exit code, stdout, stderr); a signal N is exit code 128 + N.
sub run_program {
    my (%arg) = @_;
    my @command = @{$arg{command}};
    my @files = map { my $f; open($f, "+>", undef) or die "CrmTest: $!\n"; $f }
        1 .. 3;
    my ($in, $out, $err) = @files;

    binmode $_ for @files;
    my $text = $arg{stdin} // "";
    utf8::encode($text) if utf8::is_utf8($text);
    print $in $text;
    $in->flush;
    seek $in, 0, 0;
    my $pid = fork // die "CrmTest: fork: $!\n";
    if (!$pid) {
        chdir $arg{chdir} if $arg{chdir};
        open(STDIN, "<&", $in);
        open(STDOUT, ">&", $out);
        open(STDERR, ">&", $err);
        for my $name (keys %{$arg{env} || {}}) {
            my $value = $arg{env}{$name};
            defined $value ? ($ENV{$name} = $value) : delete $ENV{$name};
        }
        { exec { $command[0] } @command }
        print STDERR "cannot run $command[0]: $!\n";
        POSIX::_exit(127);
    }
    my $begin = time;
    my $got;
    my $nap = 0.001;
    while (($got = waitpid($pid, WNOHANG)) == 0) {
        if (is_over($begin, $arg{seconds} || 120)) {
            kill KILL => $pid;
            waitpid($pid, 0);
            die "CrmTest: @command did not end\n";
        }
        sleep $nap;
        $nap *= 1.5 if $nap < 0.02;
    }
    my $status = $?;
    my $code = $status & 127 ? 128 + ($status & 127) : $status >> 8;
    seek $_, 0, 0 for $out, $err;
    local $/;
    return ($code, scalar(<$out>) // "", scalar(<$err>) // "");
}

# Wait until CONDITION->() is true, at most SECONDS (10), longer on a busy machine.
# Return its value, or a false one after that time. A test never sleeps for a fixed
# time.
sub wait_for {
    my ($condition, $seconds) = @_;
    my $begin = time;
    my $most = ($seconds || 10) * ($ENV{CRM_VALGRIND} ? 10 : 1);
    my $nap = 0.002;
    my $value;

    until ($value = $condition->()) {
        return $value if is_over($begin, $most);
        sleep $nap;
        $nap *= 1.5 if $nap < 0.1;
    }
    return $value;
}

# Return a Python that has MODULES, or undef: packages of Debian are for its own.
sub python_with {
    my $import = join ", ", @_;
    my ($python) = grep { -x && !system("$_ -c 'import $import' 2>/dev/null") }
        "/usr/bin/python3", map { "$_/python3" } split /:/, $ENV{PATH};
    return $python;
}

# Return the bytes of the file PATH. It must exist, unless there is a DEFAULT to
# return instead: read_file($path, "").
sub read_file {
    my ($path, $default) = @_;
    local $/;

    if (open(my $in, "<:raw", $path)) {
        $! = 0;
        my $text = <$in>;
        return $text // "" unless $!;
    }
    return $default if defined $default;
    Carp::croak("CrmTest: $path: $!");
}

# The lines of the file PATH without their ends. One that is being written is none
# yet.
sub whole_lines {
    my ($path) = @_;
    return read_file($path) =~ /^(.*)\n/mg;
}

# Make the file PATH contain TEXT.
sub write_file {
    my ($path, $text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    open(my $out, ">:raw", $path) or die "CrmTest: $path: $!\n";
    print $out $text;
    close $out or die "CrmTest: $path: $!\n";
}

1;
