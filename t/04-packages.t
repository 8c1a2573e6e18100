# SPDX-License-Identifier: Apache-2.0
# 04-packages.t: the Debian packages in a minimal system: installed with apt, the
# documents' lines for a first contact, a first sequence and a first graph, an
# upgrade with data, purge
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Debian;
use CrmTest::Smtpd;
use CrmTest::Upgrade;
use JSON::PP ();

CrmTest::Smtpd::needed();

my $scratch = debian_folder("packages");
my $root = "$scratch/root";
my $debian;

# ---- what the documents say ----------------------------------------------------

# The commands of README's section on Debian, without those that were done before.
sub readme_commands {
    my ($section) = read_file("$CrmTest::TOP/README")
        =~ /^Adding it to a site\n-+\n(.*?)^[A-Z][^\n]*\n---/ms;
    return grep { !/^(?:build\/package|sudo apt|sudo journalctl)\b/ }
        $section =~ /^ {4}(\S[^\n]*)$/mg;
}

# Run LINES as the operator, all times in the same shell, as far as its variables
# tell. Return what they printed.
sub paste {
    my ($name, @lines) = @_;
    write_file("$root/paste", join "\n", "set -euo pipefail",
        "[ ! -e ~/shell ] || . ~/shell", @lines,
        "declare -p CRMAPI_DATABASE W KEY AGENT TEMPLATE >~/shell 2>&- || :", "");
    return $debian->inside($name, "sudo -u op -i bash /paste");
}

# ---- the packages --------------------------------------------------------------

my $debs = "$scratch/debs";
mkdir $debs;
run_ok("build/package makes packages that lintian accepts", 1800,
    "$CrmTest::TOP/build/package", "--lint", $debs);
my @packages = glob "$debs/*.deb";
is_deeply([map { m{([^/_]+)_[^/]*\z} } @packages],
    [qw(crmapi-doc crmapictl crmapid libapache2-mod-crmapi)],
    "four packages");

# What each has besides its programs, as their users look for it.
my %HAS = (
    "libapache2-mod-crmapi" => [qw(usr/lib/apache2/modules/mod_crmapi.so
        etc/apache2/mods-available/crmapi.load
        usr/share/doc/libapache2-mod-crmapi/examples/crmapi.conf)],
    crmapid => [qw(usr/sbin/crmapid usr/lib/sysusers.d/crmapid.conf
        usr/share/man/man8/crmapid.8.gz
        usr/share/doc/crmapid/examples/crmapid.conf)],
    crmapictl => ["usr/bin/crmapictl", "usr/share/man/man1/crmapictl.1.gz",
        "usr/share/bash-completion/completions/crmapictl",
        map { s{.*/schema/}{usr/share/mod_crmapi/schema/}r }
            glob "$CrmTest::TOP/schema/{,repeat/}*.sql"],
    "crmapi-doc" => [map { "usr/share/doc/crmapi-doc/$_" } qw(
        README.gz docs/README docs/operations.md docs/hosting.md
        examples/grafana/crmapi.json examples/prometheus/alerts.yml
        examples/httpd/json-lines)],
);
# the name of the temporary folder may have such characters, too
my ($version) = $packages[0] =~ m{_([^_/]+)_[^_/]*\z};
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
        "$build/mod_crmapi.so"],
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

# ---- apt, a2enmod ---------------------------------------------------------------

$debian = CrmTest::Debian->new($root,
    qw(apache2 ca-certificates curl postgresql prometheus sudo));
# The cluster's port is one that is free on this machine, if not corrected.
my ($postgres) = $debian->inside("PostgreSQL's version", "pg_lsclusters -h")
    =~ /^(\d+) +main /;
$debian->inside("PostgreSQL's port",
    "pg_conftool $postgres main set port 5432");
mkdir "$root/packages";
run_ok("the packages are in it", 60, "bash", "-c",
    'cp -r "$1/debs" "$1/next" "$2/packages/"', "bash", $scratch, $root);
my %clean = map { $_ => 1 } $debian->files;

$debian->inside("apt installs the packages", "apt-get -qy install"
    . " /packages/debs/*.deb", net => 1);
like($debian->inside("a2enmod crmapi", "a2enmod crmapi && apachectl"
    . " configtest"), qr/Syntax OK/,
    "nothing else is needed for a correct configuration");
like($debian->inside("crmapi-doc has the README",
    "zcat /usr/share/doc/crmapi-doc/README.gz"), qr/^Adding it to a site$/m,
    "with these lines");
like($debian->inside("crmapid has no configuration", "crmapid -t -c"
    . " /etc/crmapid.conf || test \$? != 0; id crmapid; systemctl start crmapid;"
    . " systemctl is-active crmapid || test \$? = 3"), qr/uid=\d+\(crmapid\)/,
    "the user of the daemon exists, and it does not start");

# ---- the first contact -----------------------------------------------------------

$debian->inside("the site's servers run", <<"END");
useradd -m -s /bin/bash op
# systemctl is in /usr/local, which Debian 14's sudo does not look in
echo 'op ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/op
echo "Defaults secure_path=\\\"\$PATH\\\"" >>/etc/sudoers.d/op
pg_ctlcluster $postgres main start
apachectl start
for i in {1..100}; do
    curl -s -o /dev/null http://localhost/ && break
    sleep 0.2
done
END
like(paste("README's lines", readme_commands()),
    qr/"first_name":"Grace"/, "the first contact is created");
$debian->inside("crmapid runs", "systemctl is-active crmapid");

# ---- who may do what --------------------------------------------------------------

# What SQL as the login WHO prints, errors too.
sub as_login {
    my ($who, $sql) = @_;
    return $debian->inside("SQL as $who", "cd / && sudo -u $who psql -At crmapi"
        . " 2>&1 <<'END'\n$sql\nEND");
}

# The logins of httpd and crmapid cannot become the owner (t/05-rights.t has all
# ways), and the owner makes no roles.
sub rights_are_few {
    my ($when) = @_;
    for my $login ("www-data", "crmapid") {
        my $said = as_login($login, <<'END');
CREATE TEMPORARY TABLE bait (workspace_id uuid);
CREATE TABLE public.bait (workspace_id uuid);
COPY (SELECT 1) TO PROGRAM 'id';
SELECT 'trigger functions: ' || count(*) FROM pg_proc
WHERE pronamespace = 'crmapi'::regnamespace
  AND prorettype = 'trigger'::regtype AND has_function_privilege(oid, 'EXECUTE');
SELECT 'reads: ' || count(*) >= 0 FROM crmapi.agent;
END
        like($said, qr/permission denied to create temporary tables/,
            "$when: $login: no temporary tables");
        like($said, qr/permission denied for schema public/, "nor others");
        like($said, qr/to or from an external program/, "no shell");
        like($said, qr/^trigger functions: 0$/m, "no trigger of ours");
    }
    is(as_login("op", "SELECT rolcreaterole OR rolsuper FROM pg_roles"
        . " WHERE rolname = 'op'"), "f\n", "$when: the owner makes no roles");
    unlike($debian->inside("crmapictl status", "sudo -u op crmapictl --database"
        . " dbname=crmapi status 2>&1"), qr/warning/,
        "crmapictl status has nothing to say about that");
}
rights_are_few("after README's lines");

# ---- the first sequence ----------------------------------------------------------

# The mail server and the site of the document are at this machine.
my ($certificate, $authority) = ("$scratch/mail.pem",
    "$root/usr/local/share/ca-certificates/mail.crt");
run_ok("a certificate", 60, qw(openssl req -x509 -newkey rsa:2048 -nodes -days 2
    -subj /CN=mail -addext subjectAltName=DNS:mail.example.com -keyout),
    $certificate, "-out", $authority);
write_file($certificate, read_file($certificate) . read_file($authority));
$debian->inside("the system trusts it", "update-ca-certificates
    echo 127.0.0.1 mail.example.com crm.example.com >>/etc/hosts");
my $smtp = CrmTest::Smtpd->new({ port => 587,
    before => [$debian->with_network] }, "crm", "secret", $certificate);

my @sequence = documented("sequences.md", "sh", "## First sequence");
is(scalar @sequence, 4, "docs/sequences.md has lines for a mail server, pages,"
    . " a start, a list");
my ($start) = $sequence[2] =~ /^(curl .*)$/m;
like(paste("its lines for a first sequence", @sequence[0 .. 2]),
    qr/"enrollment_id":"/, "a sequence is started");

# In a pasted script: wait until COUNT enrollments are completed.
sub completed {
    my ($count) = @_;
    return 'for i in $(seq 300); do [ "$(crmapictl enrollment list --workspace'
        . ' $W | grep -c completed)" = ' . $count . ' ] && break; sleep 0.2; done';
}

# In a pasted script: the document's line starts a sequence for WHO.
sub start_for {
    my ($who) = @_;
    return $start =~ s/grace\@/$who\@/r;
}

like(paste("it is sent", completed(1), $sequence[3]), qr/\bcompleted\b/,
    "docs/sequences.md: the list says that");
my @mails = $smtp->received;
is(scalar @mails, 1, "the mail server got one mail") or BAIL_OUT("no mail");
like($mails[0], qr/^X-Envelope-To: grace\@example\.org$/m, "for Grace");
like($mails[0], qr/^From: .*ada\@example\.com/m, "from the sender");
like($mails[0], qr/^Subject: Hello Grace$/m, "with the template's text");
my ($path) = $mails[0] =~ m{^List-Unsubscribe:\s+<https://crm\.example\.com(/\S+)>}m;
ok($path, "it has an unsubscribe link") or BAIL_OUT($mails[0]);
paste("the link works", "curl -sf http://localhost$path | grep '<form'",
    "curl -sf -d List-Unsubscribe=One-Click http://localhost$path",
    'crmapictl suppress list --workspace $W | grep grace@example.org');

# ---- the first graph --------------------------------------------------------------

my @graph = documented("operations.md", "sh", "## First graph");
is(scalar @graph, 3, "docs/operations.md has lines for the handlers, Prometheus,"
    . " a first look");
$debian->inside("Prometheus need not be waited for", "sed -i 's/\\b15s\\b/1s/'"
    . " /etc/prometheus/prometheus.yml");
paste("its lines for a first graph", map { s/^sudo apt .*//mr } @graph[0, 1]);
$debian->inside("the location /health", "curl -sf http://localhost/health/ready"
    . " | grep -x ready");

# What Prometheus answers to PARAMETERS of curl, each an array: decoded, in order.
sub prometheus {
    my (@asked) = @_;
    my $quoted = sub { join " ", map { "'" . s/'/'\\''/gr . "'" } @_ };
    my ($code, $out) = run_program(command => [$debian->command(join "\n",
        map { "curl -s " . $quoted->(@$_) . "; echo" } @asked)]);
    my @answers = map { eval { JSON::PP->new->utf8->decode($_) } } split /\n/, $out;
    return @answers == @asked ? @answers : ();
}

my $api = "http://localhost:9090/api/v1";
my %up;
ok(wait_for(sub {
    my ($answer) = prometheus(["$api/targets"]);
    %up = map { $_->{labels}{job} => $_->{health} }
        @{($answer || {})->{data}{activeTargets} || []};
    ($up{crmapi} // "") eq "up" && ($up{crmapid} // "") eq "up";
}, 60), "Prometheus scrapes both") or diag(explain(\%up));
my $said = paste("its lines for a first look", $graph[2]);
like($said, qr/^up\{[^}]*job="$_"[^}]*\} => 1 /m, "$_ is up")
    for "crmapi", "crmapid";
like($said, qr/^\{route="POST \/sequences\/start", status="2xx"\} => 1 /m,
    "the first sequence is counted");

# What the dashboard and the alerts ask; an alert's threshold is left out.
my $dashboard = JSON::PP->new->utf8->decode(
    read_file("$CrmTest::TOP/contrib/grafana/crmapi.json"));
my @expressions = map { my $panel = $_;
    map { [$panel->{title}, $_->{expr} =~ s/\$vhost/.*/gr
        =~ s/\$__rate_interval/1m/gr] } @{$panel->{targets}} }
    @{$dashboard->{panels}};
my $alerts = read_file("$CrmTest::TOP/contrib/prometheus/alerts.yml");
while ($alerts =~ /^      - alert: (\w+)\n        expr: >-\n          (.*)$/mg) {
    my ($name, $expression) = ($1, $2);
    push @expressions, [$name, $expression =~ s/ [<>=]+ [\d.]+$//r];
}
cmp_ok(scalar @expressions, ">", 60, "dashboard and alerts ask for much");

# Ask for all of them. Keep those that have no value now: rates of what happens
# once have one for a minute.
sub ask_expressions {
    my @answers = prometheus(map { ["$api/query", "--data-urlencode",
        "query=$_->[1]"] } @expressions);
    my @open;
    for my $i (0 .. $#answers) {
        my ($answer, $expression) = ($answers[$i], $expressions[$i]);
        $answer->{status} eq "success"
            or BAIL_OUT("$expression->[0]: $answer->{error}");
        push @open, $expression if !grep { $_->{value}[1] ne "NaN" }
            @{$answer->{data}{result}};
    }
    @expressions = @open if @answers;
}

# Failures, requests that share a statement, webhooks: there were none.
my @NOT_YET = ("CrmApiFailures", "Failures", ("Shared statements") x 2,
    ("crmapid: time of endpoints") x 2);
paste("a second sequence is sent", start_for("second"), completed(2));
wait_for(sub { ask_expressions(); @expressions <= @NOT_YET }, 60);
is_deeply([sort map { $_->[0] } @expressions], \@NOT_YET,
    "each has a value, if what it is about has happened")
    or diag(explain(\@expressions));

my ($rules) = prometheus(["$api/rules"]);
my @rules = map { @{$_->{rules}} } @{$rules->{data}{groups}};
is(scalar @rules, scalar(() = $alerts =~ /alert:/g), "the alerts are loaded");
is_deeply([map { "$_->{name} $_->{health} $_->{state}" }
    grep { $_->{health} ne "ok" || $_->{state} ne "inactive" } @rules], [],
    "they are evaluated, and none of them is active");
my ($hosts) = prometheus(["$api/label/vhost/values", "-G", "--data-urlencode",
    "match[]=crmapi_limited_total"]);
isnt("@{$hosts->{data}}", "", "the dashboard has virtual hosts to select");

# ---- an upgrade ---------------------------------------------------------------------

# The commands of docs/operations.md. Behind the migration, programs of before
# serve and send with the new schema.
my @upgrade = map { s/^\$ //r } map { split /\n/ }
    documented("operations.md", "console", "### With Debian's packages");
write_file("$root/etc/apt/apt.conf.d/90yes", "APT::Get::Assume-Yes \"true\";\n");
# One client connects a hundred times a second: prints how often with which result.
write_file("$root/knock", <<'END');
use IO::Socket::INET;
$SIG{PIPE} = "IGNORE";
my %count;
while (-e "/busy") {
    my $socket = IO::Socket::INET->new("127.0.0.1:80");
    my $result = $socket ? "no answer" : "$!";
    if ($socket) {
        print $socket "GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
            . "Connection: close\r\n\r\n";
        $result = $1 if (<$socket> // "") =~ m{^HTTP/1\.1 (\d+) };
    }
    $count{$result}++;
    select undef, undef, undef, 0.01;
}
print map { "knock $_: $count{$_}\n" } sort keys %count;
END
# Another one asks once a second, with its key.
$debian->inside("clients ask all the time", <<'END');
touch /busy
. /home/op/shell
perl /knock >/knocks 2>&1 </dev/null &
(while [ -e /busy ]; do
    curl -s -o /dev/null -w "%{http_code} %header{x-ratelimit-remaining}\n" -H "Authorization: Bearer $KEY" http://localhost/api/v1/contacts
    sleep 1
done >/codes; touch /idle) >/dev/null 2>&1 </dev/null &
for i in $(seq 100); do [ -s /codes ] && break; sleep 0.1; done
END
paste("the document's lines for an upgrade", "set -x", "mkdir -p _build",
    "ln -s /packages/next _build/packages", map({ $_ eq "crmapictl migrate"
        ? ("crmapictl workspace list && exit 1 # it is for the next schema",
            $_, start_for("third"), completed(3)) : $_ } @upgrade),
    start_for("fourth"), completed(4));
$said = $debian->inside("what is there now", <<'END');
codes=$(wc -l </codes)
for i in $(seq 100); do [ "$(wc -l </codes)" -gt $((codes + 1)) ] && break; sleep 0.1; done
rm /busy
for i in $(seq 100); do [ -e /idle ] && grep -q knock /knocks && break; sleep 0.1; done
dpkg-query -W -f '${Package} ${Version}\n' libapache2-mod-crmapi crmapid crmapictl
echo "codes: $(cut -d ' ' -f 1 /codes | sort | uniq -c | tr -s ' \n' ' ')"
cat /knocks
echo "left: $(cut -d ' ' -f 2 /codes | tr '\n' ' ')"
sudo -u op psql -At crmapi -c 'SELECT first_name, name_length FROM crmapi.contact'
sudo -u op crmapictl --database dbname=crmapi --json status
END
my ($before, $after) = versions();
like($said, qr/"schema_version":$after,"schema_expected":$after,/,
    "the database has the next schema, which crmapictl expects");
like($said, qr/^Grace\|5$/m, "the data are there, and migrated");
is(scalar(() = $said =~ /^\S+ \Q$version\E\+next$/mg), 3,
    "the three programs were replaced");
like($said, qr/^codes:  ?\d+ 200 ?$/m, "every request of a client was answered")
    or diag($said =~ /^(codes:.*)$/m);
my %knocks = $said =~ /^knock (.*): (\d+)$/mg;
is_deeply([sort keys %knocks], [200], "no connection was refused, or ended without"
    . " an answer") or diag(explain(\%knocks));
cmp_ok($knocks{200} // 0, ">", 100, "of as many as were tried");
# What is left grows by one for each second without a request.
my @rest = split / /, ($said =~ /^left: (.*?) *$/m)[0] // "";
is_deeply([grep { $rest[$_] - $rest[$_ - 1] > 30 } 1 .. $#rest], [],
    "the window of the key was kept") or diag("@rest");

rights_are_few("after the upgrade");

# ---- a copy beside the living workspace ---------------------------------------------

my $mail = 'printf "From: ada@example.org\\nTo: sales@crm.example.com\\n'
    . 'Message-ID: <%s@example.org>\\n\\nHello\\n" NAME'
    . ' | crmapictl deliver --recipient sales@crm.example.com';
my $agent = '{"object": "agent", "name": "Sales", "agent_email":'
    . ' "sales@crm.example.com"}';
$said = paste("a held copy, and another tenant, take nothing",
    "echo '$agent' >sales.jsonl", 'crmapictl import --workspace $W sales.jsonl',
    $mail =~ s/NAME/one/r,
    'crmapictl workspace hold $W',
    'crmapictl workspace dump $W --output one.dump',
    'crmapictl workspace release $W',
    q{COPY=$(crmapictl --json workspace restore one.dump --as new}
        . q{ | sed 's/.*"id":"//; s/".*//')},
    $mail =~ s/NAME/two/r,
    'crmapictl workspace release $COPY 2>&1 || echo "not released: $?"',
    'OTHER=$(crmapictl workspace create --name Other)',
    'crmapictl import --workspace $OTHER sales.jsonl 2>&1 || echo "not taken: $?"',
    $mail =~ s/NAME/three/r,
    q{psql -At crmapi -c "SELECT 'messages: ' || count(*) FROM crmapi.message}
        . q{ WHERE workspace_id = '$W' AND content = 'Hello'"},
    'crmapictl workspace delete $COPY --yes',
    'crmapictl workspace delete $OTHER --yes');
like($said, qr/agent_email "sales\@crm.example.com".*\nnot released: 1$/m,
    "the copy is not released beside it");
like($said, qr/line 1: \/agent_email: belongs to another workspace.*\nnot taken: 1$/m,
    "the address is not another tenant's");
like($said, qr/^messages: 3$/m, "each mail came to the living workspace");

# ---- a hostile mail -------------------------------------------------------------------

$said = paste("an element of 160,000 attributes",
    'printf "From: eve@example.org\\nTo: sales@crm.example.com\\nMessage-ID:'
        . ' <hostile@example.org>\\nContent-Type: text/html\\n\\n<p" >hostile',
    'seq -f " a%g=1" 160000 >>hostile', 'echo ">Hi</p>" >>hostile',
    'timeout 5 crmapictl deliver --recipient sales@crm.example.com <hostile'
        . ' && echo taken');
like($said, qr/^taken$/m, "is read in seconds");

# ---- purge ------------------------------------------------------------------------

unlike($debian->inside("crmapid ends", "systemctl stop crmapid; cat"
    . " /run/systemctl/crmapid.log"), qr/CRM3[^0]|warn|error/i,
    "crmapid's log has no warning");
is_deeply([sort map { /^X-Envelope-To: (\w+)/m } $smtp->received],
    [qw(fourth grace second third)], "each mail came once");
$debian->inside("apt purges the packages", "apt-get -qy purge crmapid crmapictl"
    . " libapache2-mod-crmapi crmapi-doc && apt-get -qy autoremove --purge"
    . " && apachectl configtest", net => 1);
# What was installed by README's lines or changed by the operator is not ours.
my @left = grep { !$clean{$_} && !m{^\./(?:etc/(?:sudoers\.d/op|group|passwd|
    subuid|subgid|g?shadow)-?|etc/prometheus/crmapi\.yml|var/mail/op|
    etc/apache2/conf-(?:available|enabled)/crmapi\.conf|
    paste)\z}x && /crmapi/ } $debian->files;
is_deeply(\@left, [], "nothing of them is left");
done_testing;
