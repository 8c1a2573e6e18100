# SPDX-License-Identifier: Apache-2.0
# CrmTest/Debian.pm: a minimal Debian in a folder, which runs with processes,
# mounts and a network of its own, and t/lib/systemctl instead of systemd
package CrmTest::Debian;
use strict;
use warnings;
use Exporter qw(import);
use File::Copy qw(copy);
use File::Path qw(remove_tree);
use File::Temp ();
use Sys::Hostname qw(hostname);
use Test::More ();
use CrmTest::Process qw(end_process read_file run_program spawn wait_for
    write_file);

our @EXPORT = qw(debian_folder run_ok);

my $maker = $$;
my (@folders, @systems);

# Return a new folder for a system and what belongs to it, with NAME in its name.
# The test's end ends the systems and removes the folder. The test is skipped
# if no system can be made.
sub debian_folder {
    my ($name) = @_;
    Test::More::plan(skip_all => "not root") if $>;
    Test::More::plan(
        skip_all => "no mmdebstrap: build/setup --packages installs it")
        if system("$ENV{CRM_SRCDIR}/build/setup --packages --dry-run"
        . " >/dev/null 2>&1");
    push @folders, File::Temp::tempdir("crm-$name-XXXXXX", TMPDIR => 1);
    chmod 0755, $folders[-1];
    return $folders[-1];
}

# Run COMMAND, for as long as SECONDS. Return what it printed. Nothing makes
# sense after a failure.
sub run_ok {
    my ($name, $seconds, @command) = @_;
    my ($code, $out, $err) = run_program(command => \@command,
        seconds => $seconds);
    Test::More::is($code, 0, $name)
        or Test::More::BAIL_OUT(substr "$out$err", -3000);
    return $out . $err;
}

# Make a system in the folder ROOT with apt's PACKAGES. It runs.
sub new {
    my ($class, $root, @packages) = @_;
    my $self = bless { root => $root }, $class;
    push @systems, $self;

    run_ok("a minimal system", 900, "bash", "-c", '. /etc/os-release
        mmdebstrap --quiet --variant=apt "$VERSION_CODENAME" "$1"', "bash",
        $root);
    # sudo looks up this machine's name
    write_file("$root/etc/hosts", "127.0.0.1 localhost " . hostname() . "\n");
    # packages start nothing when they are installed
    write_file("$root/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
    chmod 0755, "$root/usr/sbin/policy-rc.d";
    copy("$ENV{CRM_SRCDIR}/t/lib/systemctl", "$root/usr/local/sbin/systemctl")
        or die "CrmTest: systemctl: $!\n";
    chmod 0755, "$root/usr/local/sbin/systemctl";
    $self->boot;
    $self->inside("apt installs what the site has", "apt-get -q update"
        . " && apt-get -qy install --no-install-recommends @packages",
        net => 1);
    return $self;
}

# Start its first process. All its processes end with that one.
sub boot {
    my ($self) = @_;
    my $log = File::Temp->new;

    # unshare ignores SIGTERM
    $self->{holder} = spawn(log => "$log", signal => "KILL", command => [
        "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child",
        "bash", "-c", <<'END',
set -eu
mount -t proc proc "$1/proc"
mount -t devtmpfs dev "$1/dev" 2>/dev/null || mount --rbind /dev "$1/dev"
ip link set lo up
exec chroot "$1" bash -c "echo up; while :; do sleep 1000; done"
END
        "bash", $self->{root}]);
    wait_for(sub { read_file("$log") =~ /^up$/m }, 30)
        or die "CrmTest: the system does not run: " . read_file("$log") . "\n";
    my $path = "/proc/$self->{holder}/task/$self->{holder}/children";
    ($self->{pid}) = read_file($path) =~ /(\d+)/
        or die "CrmTest: $path is empty\n";
}

# Put before a command: it then runs outside of the root, with its network.
sub with_network {
    my ($self) = @_;
    return ("nsenter", "--target", $self->{pid}, "--net");
}

# The command that runs SCRIPT with bash in the system. With NET it has this
# machine's network.
sub command {
    my ($self, $script, %arg) = @_;
    return ("nsenter", "--target", $self->{pid}, "--mount", "--pid",
        $arg{net} ? () : "--net", "chroot", $self->{root}, "bash", "-c",
        "set -eu\nexport LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive"
        . " PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin\n$script");
}

# Run it. Return what it printed.
sub inside {
    my ($self, $name, $script, %arg) = @_;
    return run_ok($name, 900, $self->command($script, %arg));
}

# Its files, without those that change by themselves.
sub files {
    my ($self) = @_;
    return grep { m{^\./(?:etc|usr|lib|var)/} && !m{^\./(?:var/(?:cache|log|
        lib/(?:apt|dpkg|systemd|postgresql|apache2|misc))|usr/share/doc)/}x }
        split /\n/, run_ok("its files", 60, "bash", "-c",
            'cd "$1" && find . -xdev', "bash", $self->{root});
}

END {
    local ($?, $!, $@);
    if ($$ == $maker) {
        end_process($_, "KILL") for grep { $_ } map { $_->{holder} } @systems;
        # nothing in them is mounted for others: see boot()
        remove_tree(@folders);
    }
}

1;
