# SPDX-License-Identifier: Apache-2.0
# 04-packages.t: the Debian packages in a minimal system: installed with apt,
# configured as README says, upgraded with data, purged
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);

plan(skip_all => "not root") if $>;
plan(skip_all => "no mmdebstrap: build/setup --packages installs it")
    if system("$CrmTest::TOP/build/setup --packages --dry-run >/dev/null 2>&1");

my $scratch = tempdir("crm-packages-XXXXXX", TMPDIR => 1);
my $root = "$scratch/root";
my $maker = $$;
END {
    local ($?, $!, $@);
    # nothing in it is mounted for others: see inside()
    remove_tree($scratch) if $$ == $maker;
}

# Run COMMAND, for as long as SECONDS. Return what it printed.
sub run_ok {
    my ($name, $seconds, @command) = @_;
    my ($code, $out, $err) = run_program(command => \@command,
        seconds => $seconds);
    is($code, 0, $name) or BAIL_OUT(substr "$out$err", -3000);
    return $out . $err;
}

# Run SCRIPT with bash in the system of $root, with namespaces of its own, so
# that its servers end with it and use no port of this machine. With NET it has
# this machine's network.
sub inside {
    my ($name, $script, %arg) = @_;
    return run_ok($name, 900, "unshare", "--mount", "--pid", "--fork",
        "--kill-child", $arg{net} ? () : "--net", "bash", "-c", <<'END', "bash",
set -eu
mount -t proc proc "$1/proc"
mount -t devtmpfs dev "$1/dev" 2>/dev/null || mount --rbind /dev "$1/dev"
[ "$3" = net ] || ip link set lo up
exec chroot "$1" bash -c "$2"
END
        $root, "set -eu\nexport LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive"
        . " PATH=/usr/sbin:/usr/bin:/sbin:/bin\n$script",
        $arg{net} ? "net" : "");
}

# The commands of README's section on Debian, without those that need systemd
# or that were done before.
sub readme_commands {
    my ($section) = read_file("$CrmTest::TOP/README")
        =~ /^Adding it to a site\n-+\n(.*?)^[A-Z][^\n]*\n---/ms;
    return grep { !/^(?:build\/package|sudo apt|sudo systemctl|journalctl)\b/ }
        $section =~ /^ {4}(\S[^\n]*)$/mg;
}

my $debs = "$scratch/debs";
mkdir $debs;
my $words = run_ok("build/package makes packages that lintian accepts", 1800,
    "$CrmTest::TOP/build/package", "--lint", $debs);
my @packages = glob "$debs/*.deb";
is_deeply([map { m{([^/_]+)_[^/]*\z} } @packages],
    [qw(crmapi-doc crmapictl crmapid libapache2-mod-crmapi)],
    "four packages");

# The same with an earlier version, to upgrade from.
mkdir "$scratch/before";
for my $deb (@packages) {
    my ($name) = $deb =~ m{([^/_]+)_[^/]*\z};
    run_ok("$name with an earlier version", 120, "bash", "-c",
        'set -eu; dpkg-deb -R "$1" "$2/tree"
        sed -i "s/0\.1\.0/0.1.0~0/" "$2/tree/DEBIAN/control"
        dpkg-deb -b "$2/tree" "$2/before/$3.deb"; rm -r "$2/tree"', "bash",
        $deb, $scratch, $name);
}

run_ok("a minimal system", 900, "bash", "-c", '. /etc/os-release
    mmdebstrap --quiet --variant=apt "$VERSION_CODENAME" "$1"', "bash", $root);
mkdir "$root/packages";
run_ok("the packages are in it", 60, "bash", "-c",
    'cp -r "$1/debs" "$1/before" "$2/packages/"', "bash", $scratch, $root);
write_file("$root/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
chmod 0755, "$root/usr/sbin/policy-rc.d";
inside("apt installs what the site has", "apt-get -q update && apt-get -qy"
    . " install --no-install-recommends apache2 postgresql curl sudo", net => 1);

# The files of the system, without those that change by themselves.
sub files {
    return grep { m{^\./(?:etc|usr|lib|var)/} && !m{^\./(?:var/(?:cache|log|
        lib/(?:apt|dpkg|systemd|postgresql|apache2|misc))|usr/share/doc)/}x }
        split /\n/, run_ok("its files", 60, "bash", "-c",
            'cd "$1" && find . -xdev', "bash", $root);
}
my %clean = map { $_ => 1 } files();

inside("apt installs the packages", "apt-get -qy install"
    . " /packages/before/*.deb", net => 1);
like(inside("a2enmod crmapi", "a2enmod crmapi && apachectl configtest"),
    qr/Syntax OK/, "nothing else is needed for a correct configuration");
like(inside("crmapid has no configuration", "crmapid -t -c /etc/crmapid.conf"
    . " || test \$? != 0; id crmapid"), qr/uid=\d+\(crmapid\)/,
    "the user of the daemon exists");

# What an operator types, with the servers running.
my $servers = "pg_ctlcluster 15 main start\napachectl start\n";
my $until = "for i in \$(seq 100); do curl -s -o /dev/null http://localhost/"
    . " && break; sleep 0.2; done\n";
write_file("$root/readme", join "\n", "set -eu", readme_commands(), "");
my $said = inside("README's lines on Debian", "useradd -m -s /bin/bash op
    echo 'op ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/op
    $servers$until
    sudo -u op -i bash /readme");
like($said, qr/"first_name":"Grace"/, "the first contact is created");

my $get = 'curl -s -o /dev/null -w "%{http_code}\n" http://localhost/api/v1/';
inside("an upgrade", "apt-get -qy install /packages/debs/*.deb", net => 1);
like(inside("after it", "$servers$until$get" . "contacts
    sudo -u op psql -At crmapi -c 'SELECT first_name FROM crmapi.contact'"),
    qr/^401\nGrace$/m, "the API is served and the data are there");

inside("apt purges the packages", "apt-get -qy purge crmapid crmapictl"
    . " libapache2-mod-crmapi crmapi-doc && apt-get -qy autoremove --purge"
    . " && apachectl configtest", net => 1);
# What was installed by README's lines or changed by the operator is not ours.
my @left = grep { !$clean{$_} && !m{^\./(?:etc/(?:sudoers\.d/op|group|passwd|
    subuid|subgid|g?shadow)-?|var/mail/op|readme)\z}x && /crmapi/ } files();
is_deeply(\@left, [], "nothing of them is left");
done_testing;
