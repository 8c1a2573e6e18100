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
use CrmTest::Upgrade;
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

# What each has besides its programs, as their users look for it.
my %HAS = (
    "libapache2-mod-crmapi" => [qw(usr/lib/apache2/modules/mod_crmapi.so
        etc/apache2/mods-available/crmapi.load
        etc/apache2/mods-available/crmapi.conf)],
    crmapid => [qw(usr/sbin/crmapid usr/lib/sysusers.d/crmapid.conf
        usr/share/man/man8/crmapid.8.gz
        usr/share/doc/crmapid/examples/crmapid.conf)],
    crmapictl => ["usr/bin/crmapictl", "usr/share/man/man1/crmapictl.1.gz",
        "usr/share/bash-completion/completions/crmapictl",
        map { s{.*/}{usr/share/mod_crmapi/schema/}r }
            glob "$CrmTest::TOP/schema/*.sql"],
    "crmapi-doc" => [map { "usr/share/doc/crmapi-doc/$_" } qw(
        README.gz docs/README docs/operations.md.gz docs/hosting.md.gz
        examples/grafana/crmapi.json examples/prometheus/alerts.yml
        examples/httpd/json-lines)],
);
my ($version) = $packages[0] =~ /_([^_]+)_/;
for my $deb (@packages) {
    my ($name) = $deb =~ m{([^/_]+)_[^/]*\z};
    my %there = map { s{/\z}{}r => 1 } map { m{ \./(\S*)} } split /\n/,
        run_ok("the files of $name", 60, "dpkg-deb", "--contents", $deb);
    is_deeply([grep { !$there{$_} } @{$HAS{$name}}], [],
        "$name has what its users look for");
}

# The release after this one: its programs, and a schema that goes on.
my $build = next_build("schemadir=/usr/share/mod_crmapi/schema");
my %PROGRAM = (
    "libapache2-mod-crmapi" => ["usr/lib/apache2/modules/mod_crmapi.so",
        "$build/.libs/mod_crmapi.so"],
    crmapid => ["usr/sbin/crmapid", "$build/crmapid"],
    crmapictl => ["usr/bin/crmapictl", "$build/crmapictl"]);
mkdir "$scratch/next";
for my $deb (@packages) {
    my ($name) = $deb =~ m{([^/_]+)_[^/]*\z};
    run_ok("$name of the next release", 120, "bash", "-c",
        'set -eu; dpkg-deb -R "$1" "$2/tree"
        sed -i "s/\b$4\b/$4+next/" "$2/tree/DEBIAN/control"
        [ -z "$5" ] || install -m 755 "$6" "$2/tree/$5"
        [ "$3" != crmapictl ] || cp "$7"/*.sql \
            "$2/tree/usr/share/mod_crmapi/schema"
        dpkg-deb -b "$2/tree" "$2/next/$3_$4+next.deb"; rm -r "$2/tree"',
        "bash", $deb, $scratch, $name, $version,
        @{$PROGRAM{$name} || ["", ""]}, next_schema());
}

run_ok("a minimal system", 900, "bash", "-c", '. /etc/os-release
    mmdebstrap --quiet --variant=apt "$VERSION_CODENAME" "$1"', "bash", $root);
mkdir "$root/packages";
run_ok("the packages are in it", 60, "bash", "-c",
    'cp -r "$1/debs" "$1/next" "$2/packages/"', "bash", $scratch, $root);
write_file("$root/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
chmod 0755, "$root/usr/sbin/policy-rc.d";
# The cluster's port is one that is free on this machine, if not corrected.
inside("apt installs what the site has", "apt-get -q update && apt-get -qy"
    . " install --no-install-recommends apache2 postgresql curl sudo"
    . " && pg_conftool 15 main set port 5432", net => 1);

# The files of the system, without those that change by themselves.
sub files {
    return grep { m{^\./(?:etc|usr|lib|var)/} && !m{^\./(?:var/(?:cache|log|
        lib/(?:apt|dpkg|systemd|postgresql|apache2|misc))|usr/share/doc)/}x }
        split /\n/, run_ok("its files", 60, "bash", "-c",
            'cd "$1" && find . -xdev', "bash", $root);
}
my %clean = map { $_ => 1 } files();

inside("apt installs the packages", "apt-get -qy install"
    . " /packages/debs/*.deb", net => 1);
like(inside("a2enmod crmapi", "a2enmod crmapi && apachectl configtest"),
    qr/Syntax OK/, "nothing else is needed for a correct configuration");
like(inside("crmapid has no configuration", "crmapid -t -c /etc/crmapid.conf"
    . " || test \$? != 0; id crmapid"), qr/uid=\d+\(crmapid\)/,
    "the user of the daemon exists");

# What an operator types, with the servers running.
my $servers = "pg_ctlcluster 15 main start\napachectl start\n";
my $until = "for i in \$(seq 100); do curl -s -o /dev/null http://localhost/"
    . " && break; sleep 0.2; done\n";
write_file("$root/readme", join "\n", "set -euo pipefail", readme_commands(),
    'echo "$KEY" >~/key', "");
my $said = inside("README's lines on Debian", "useradd -m -s /bin/bash op
    echo 'op ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/op
    $servers$until
    sudo -u op -i bash /readme");
like($said, qr/"first_name":"Grace"/, "the first contact is created");

# The commands of docs/operations.md, with a worker that is run by hand instead of
# by systemd: before, it works with the schema of before; when it was restarted,
# with the new one.
my ($section) = read_file("$CrmTest::TOP/docs/operations.md")
    =~ /^### With Debian's packages\n(.*?)(?=^##)/ms;
my @upgrade = map { split /\n/ } ($section // "") =~ /^```console\n(.*?)^```$/msg;
my $once = "sudo -u crmapid crmapid -1 -c /etc/crmapid.conf";
is(scalar(grep { s/^\$ sudo systemctl restart crmapid$/\$ $once/ } @upgrade), 1,
    "the document restarts the worker");
write_file("$root/upgrade", join "\n", "set -eux",
    "export CRMAPI_DATABASE=dbname=crmapi", "mkdir -p _build",
    "ln -s /packages/next _build/packages",
    "sudo install -d -o crmapid /var/lib/crmapi", $once,
    map({ my $line = s/^\$ //r; $line =~ /^crmapictl migrate$/
        ? ("crmapictl workspace list && exit 1 # it is for the next schema",
            $line, $once) : $line } @upgrade),
    "crmapictl --json status", "");
write_file("$root/etc/apt/apt.conf.d/90yes", "APT::Get::Assume-Yes \"true\";\n");
$said = inside("the document's lines for an upgrade", <<"END");
$servers$until
touch /busy
while [ -e /busy ]; do
    curl -s -o /dev/null -w "%{http_code}\\n" -H "Authorization: Bearer \$(cat /home/op/key)" http://localhost/api/v1/contacts
    sleep 1
done >/codes &
sleep 3
sudo -u op -i bash /upgrade
sleep 3
rm /busy
wait \$!
dpkg-query -W -f '\${Package} \${Version}\\n' libapache2-mod-crmapi crmapid crmapictl
echo "codes: \$(sort /codes | uniq -c | tr -s ' \\n' ' ')"
sudo -u op psql -At crmapi -c 'SELECT first_name, name_length FROM crmapi.contact'
END
my ($before, $after) = versions();
like($said, qr/"schema_version":$after,"schema_expected":$after,/,
    "the database has the next schema, which crmapictl expects");
like($said, qr/^Grace\|5$/m, "the data are there, and migrated");
is(scalar(() = $said =~ /^\S+ \Q$version\E\+next$/mg), 3,
    "the three programs were replaced");
like($said, qr/^codes:  ?\d+ 200 ?$/m, "every request of a client was answered")
    or diag($said =~ /^(codes:.*)$/m);

inside("apt purges the packages", "apt-get -qy purge crmapid crmapictl"
    . " libapache2-mod-crmapi crmapi-doc && apt-get -qy autoremove --purge"
    . " && apachectl configtest", net => 1);
# What was installed by README's lines or changed by the operator is not ours.
my @left = grep { !$clean{$_} && !m{^\./(?:etc/(?:sudoers\.d/op|group|passwd|
    subuid|subgid|g?shadow)-?|var/mail/op|readme)\z}x && /crmapi/ } files();
is_deeply(\@left, [], "nothing of them is left");
done_testing;
