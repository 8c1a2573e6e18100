# SPDX-License-Identifier: Apache-2.0
# 25-hosting.t: 500 workspaces in 500 virtual hosts, and in one. It prints the
# figures of docs/hosting.md
# plain build only
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use POSIX ();
use Time::HiRes qw(time);

my ($COUNT, $ROUNDS, $SECONDS) = (500, 7, 1);
my $CONF = "CrmApiReadLimit 0\nCrmApiUnknownKeyLimit 0\n"
    . "CrmApiKeepAliveWait 0\n"
    # each request is a statement: how many share one depends on chance
    . "CrmApiBatches Off\n";
my $DBD = "DBDMin 0\nDBDKeep 4\nDBDMax 4\n";
plan(skip_all => "wrk is missing: build/setup installs it")
    if !grep { -x "$_/wrk" } split /:/, $ENV{PATH};

my $database = database();
my @keys = map { sprintf "svc_live_%030d", $_ } 1 .. $COUNT;
sql($database, <<"END");
INSERT INTO crmapi.workspace (id, name, slug, plan)
SELECT gen_random_uuid(), 'Tenant ' || n, 'tenant-' || n, 'pro'
FROM generate_series(1, $COUNT) n;
INSERT INTO crmapi.api_key (id, workspace_id, name, key_hash, display)
SELECT gen_random_uuid(), w.id, 'k',
    sha256(('svc_live_' || lpad(substr(w.slug, 8), 30, '0'))::bytea), 'k'
FROM crmapi.workspace w WHERE w.slug LIKE 'tenant-%';
INSERT INTO crmapi.agent (id, workspace_id, name)
SELECT gen_random_uuid(), w.id, 'Ada' FROM crmapi.workspace w;
END
sql($database, "INSERT INTO crmapi.key_home (key_hash, workspace_id)
    SELECT k.key_hash, k.workspace_id FROM crmapi.api_key k")
    if CrmTest::Citus::wanted();
sql($database, "ANALYZE");

# A server with CONF, started, and what that took: seconds, MiB of all its
# processes (shared pages are counted once).
sub server {
    my ($conf) = @_;
    my $start = time;
    my $httpd = httpd(database => $database, children => 2, dbd => $DBD,
        conninfo => postgres()->conninfo($database, $CrmTest::Postgres::API),
        conf => $CONF . $conf);
    my $took = time - $start;
    return ($httpd, $took);
}

sub memory {
    my ($httpd) = @_;
    my $sum = 0;
    for my $pid ($httpd->pid, $httpd->children) {
        $sum += read_file("/proc/$pid/smaps_rollup") =~ /^Pss:\s+(\d+) kB/m
            ? $1 : 0;
    }
    return $sum / 1024;
}

# The processes of PostgreSQL that the servers have a connection to.
sub sessions {
    return map { $_->[0] } sql($database, "SELECT pid FROM pg_stat_activity"
        . " WHERE datname = '$database' AND usename = '$CrmTest::Postgres::API'");
}

# The requests that wrk sends, as a script: those of REQUESTS, [host, key], in
# turn.
sub script {
    my ($httpd, $name, @requests) = @_;
    my $file = $httpd->dir . "/$name.lua";
    write_file($file, "local r, n = {}, 0\n" . join("", map {
        "r[#r + 1] = wrk.format('GET', '/api/v1/agents', {Host = '$_->[0]',"
        . " Authorization = 'Bearer $_->[1]'})\n" } @requests)
        . "function request() n = n % #r + 1 return r[n] end\n");
    return [$httpd, $file];
}

# Seconds that processors have worked for the children of HTTPD, and for its
# connections.
sub worked {
    my ($httpd) = @_;
    my $ticks = 0;
    for my $pid ($httpd->children, sessions()) {
        my @stat = split / /, read_file("/proc/$pid/stat") =~ s/.*\) //sr;
        $ticks += $stat[11] + $stat[12];
    }
    return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Requests of SCRIPT: a second, and a second of work, which does not depend on what
# else the machine does.
sub rate {
    my ($script) = @_;
    my ($httpd, $file) = @$script;
    my $before = worked($httpd);
    my ($code, $out, $err) = run_program(command => ["wrk", "-t1", "-c8",
        "-d${SECONDS}s", "--timeout", "30s", "-s", $file,
        "http://127.0.0.1:" . $httpd->port]);
    die "wrk: $err$out" if $code || $out =~ /Non-2xx/;
    my ($count, $rate) = $out =~ m{^\s*(\d+)\ requests\ in .*^Requests/sec:
        \s+(\S+)}xms or die "wrk: $out";
    return ($rate, $count / (worked($httpd) - $before));
}

sub median { my @s = sort { $a <=> $b } @_; return $s[@s / 2] }

my ($one, $one_took) = server("");
my ($many, $many_took) = server(join "", map { <<"END" } 1 .. $COUNT);
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName site$_.example
    CrmApiWorkspace tenant-$_
</VirtualHost>
END

subtest "each virtual host serves its workspace, and no other" => sub {
    for my $n (1, 250, $COUNT) {
        my $client = sub { $many->client(host => "site$n.example",
            key => $_[0])->get("/api/v1/agents")->status };
        is($client->($keys[$n - 1]), 200, "site$n: its key");
        is($client->($keys[$n - 2]), 401, "site$n: its neighbour's");
        is($one->client(key => $keys[$n - 1])->get("/api/v1/agents")->status,
            200, "one virtual host: the key of workspace $n");
    }
};

my %script = (
    base => script($one, "base", ["x", $keys[0]]),
    keys => script($one, "keys", map { ["x", $_] } @keys),
    one_of_many => script($many, "one", ["site250.example", $keys[249]]),
    all_hosts => script($many, "all", map { ["site$_.example",
        $keys[$_ - 1]] } 1 .. $COUNT),
);
# Each is compared with one virtual host that does the same, in turn; again if it
# differs.
my %against = (one_of_many => "base", all_hosts => "keys");
my (%ratio, @base);
for my $name (sort keys %against) {
    for my $try (1 .. 4) {
        my @ratios;
        for my $round (0 .. $ROUNDS) {
            my %rate;
            for my $side ($round % 2 ? (0, 1) : (1, 0)) {
                $rate{$side} = [rate($script{$side ? $name
                    : $against{$name}})];
            }
            next if !$round;    # the first one warms up
            push @base, $rate{0}[0] if $against{$name} eq "base";
            push @ratios, $rate{1}[1] / $rate{0}[1];
        }
        $ratio{$name} = median(@ratios);
        last if $ratio{$name} >= 0.9;
    }
}
my $sessions = sessions();
diag(sprintf "1 virtual host: started in %.2f s, %.1f MiB; %d virtual hosts:"
    . " %.2f s, %.1f MiB", $one_took, memory($one), $COUNT, $many_took,
    memory($many));
diag(sprintf "%d connections of both; %.0f requests a second to 1 virtual host"
    . " for one workspace; a second of work of one of 500 against it %.2f, of"
    . " 500 in turn against 500 keys %.2f", $sessions, median(@base),
    @ratio{qw(one_of_many all_hosts)});

cmp_ok($many_took, "<", $one_took + 5, "500 virtual hosts start");
cmp_ok(memory($many) - memory($one), "<", 100, "in little more memory");
cmp_ok($sessions, "<=", 2 * 2 * 4, "with the connections of one");
# httpd looks through its virtual hosts for each request
cmp_ok($ratio{$_}, ">=", 0.9, "$_: hardly more work than for one virtual host")
    for qw(one_of_many all_hosts);
$_->stop for $one, $many;
done_testing();
