# SPDX-License-Identifier: Apache-2.0
# 23-exposed.t: what others on the host may see: core files, the memory of
# processes, handlers in .htaccess files
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Process qw(demoted spawn unprivileged);
use File::Temp qw(tempdir);

my $database = database();
my $scratch = tempdir("crm-exposed-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0777, $scratch;

# ---- core files ----------------------------------------------------------------

# The limits for core files of the process PID: soft, hard.
sub core_limits {
    my ($pid) = @_;
    return join " ", (read_file("/proc/$pid/limits")
        =~ /^Max core file size +(\S+) +(\S+)/m);
}

# Whether another process of the user may read the memory of PID: the files in
# /proc of a process that is not dumpable are root's.
sub dumpable {
    my ($pid) = @_;
    my ($uid) = read_file("/proc/$pid/status") =~ /^Uid:\s+(\d+)/m;
    return (stat "/proc/$pid/environ")[4] == $uid ? 1 : 0;
}

# The process PID has these LIMITS and is DUMPABLE, once it has begun.
sub is_soon {
    my ($pid, $limits, $dumpable, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $is = sub { core_limits($pid) . " " . dumpable($pid) };
    wait_for(sub { $is->() eq "$limits $dumpable" }, 30);
    return is($is->(), "$limits $dumpable", $name);
}

SKIP: {
    skip "only Linux has /proc/PID/limits", 2 if !-e "/proc/self/limits";
    skip "nobody but root starts processes of others", 2 if !unprivileged();
    # from here on as after "ulimit -c unlimited", if the hard limit permits it
    system("prlimit", "--pid", $$, "--core=unlimited:") == 0
        or skip "the hard limit for core files is lower", 2;

    subtest "a crash of crmapid leaves no core file" => sub {
        my $worker = worker(database => $database, no_start => 1);
        my $user = unprivileged();
        system("chown", "-R", $user, $worker->dir) == 0 or die;
        system("chmod", "o+rx", $worker->dir) == 0 or die;
        my ($code) = run_program(chdir => $scratch, command => [demoted(),
            "bash", "-c", "kill -ABRT \$\$"]);
        my $pid = spawn(chdir => $scratch, log => $worker->log_file,
            command => [demoted(), $worker->command]);
        ok($worker->wait_log(qr/CRM3001/), "it runs, as $user");
        is(core_limits($pid), "0 unlimited",
            "the limit is 0; programs that it starts may raise theirs");
        is(dumpable($pid), 0, "its memory is nobody's");
        my $other = spawn(chdir => $scratch, log => "/dev/null",
            command => [demoted(), "sleep", 60]);
        # until then it is this program, and would leave its core file here
        ok(wait_for(sub { read_file("/proc/$other/comm", "") eq "sleep\n" }),
            "another process has begun");
        is_soon($other, "unlimited unlimited", 1,
            "another process has what this looks for");
        my @dumped = map { kill ABRT => $_; waitpid $_, 0; $? & 128 ? 1 : 0 }
            $pid, $other;
        is($dumped[0], 0, "it is aborted, and leaves no core file");
        note("another process left one: $dumped[1]");
        $worker->may_log(qr/./);
    };

    subtest "nor one of a child of httpd, unless it is asked for" => sub {
        plan(skip_all => "plain builds only: a sanitizer sets the limit, too")
            if sanitized();
        my $httpd = httpd(database => $database);
        is_soon($_, "0 unlimited", 0, "the limit is 0, its memory is nobody's")
            for $httpd->children;
        $httpd->stop;
        $httpd = httpd(database => $database, conf =>
            "CoreDumpDirectory $scratch\n");
        is_soon($_, "unlimited unlimited", 1, "CoreDumpDirectory asks for one:"
            . " the limit and the memory are as they were")
            for $httpd->children;
        $httpd->stop;
        $httpd = httpd(database => $database, on => 0);
        is(core_limits($_), "unlimited unlimited",
            "a server without our mounts is as it was") for $httpd->children;
        $httpd->stop;
    };
}

# ---- handlers --------------------------------------------------------------------

subtest "a .htaccess file shows no counters of others" => sub {
    my $root = "$scratch/root";
    mkdir "$root$_" or die "$root$_: $!\n" for "", "/site", "/site/live",
        "/site/ready", "/quiet";
    my $metrics = "SetHandler crmapi-metrics\n";
    my $httpd = httpd(database => $database, modules => ["rewrite"],
        conf => <<"END");
DocumentRoot $root
<Directory $root>
    AllowOverride All
    Options FollowSymLinks
    Require all granted
</Directory>
<Location /metrics>
    SetHandler crmapi-metrics
</Location>
<Location /site/metrics>
    SetHandler crmapi-metrics
</Location>
<Location /site/permitted>
    SetHandler crmapi-metrics
    CrmApiHtaccessHandlers On
</Location>
<Location /site/permitted/not>
    CrmApiHtaccessHandlers Off
</Location>
END
    my $c = $httpd->client;
    my $asked = sub { $c->get($_[0])->status };
    is($asked->("/metrics"), 200, "a location of the server shows them");
    my %by = (SetHandler => $metrics,
        Files => "<Files \"*\">\n$metrics</Files>\n",
        If => "<If \"true\">\n$metrics</If>\n",
        AddHandler => "AddHandler crmapi-metrics .txt\n",
        RewriteRule => "RewriteEngine On\nRewriteRule . - [H=crmapi-metrics]\n");
    write_file("$root/site/x.txt", "a file\n");
    $httpd->expect_log(qr/CRM1202: crmapi-metrics/);
    for my $way (sort keys %by) {
        write_file("$root/site/.htaccess", $by{$way});
        my $r = $c->get("/site/x.txt");
        unlike($r->text, qr/^# TYPE/m, "$way: nothing is shown");
        is($r->status, 404, "$way: it is not there");
    }
    write_file("$root/site/.htaccess", "SetHandler crmapi-health\n");
    $httpd->expect_log(qr/CRM1202: crmapi-health/);
    is($asked->("/site/$_"), 404, "health: $_") for "live", "ready";
    write_file("$root/site/.htaccess", "CrmApiHtaccessHandlers On\n$metrics");
    $httpd->may_log(qr/CrmApiHtaccessHandlers not allowed here/);
    is($asked->("/site/x.txt"), 500, "no such file permits it to itself");

    write_file("$root/site/.htaccess", "SetEnv X y\n");
    is($asked->("/site/metrics"), 404, "a location of the server beside one");
    is($asked->("/site/permitted"), 200, "answers if the server permits it");
    is($asked->("/site/permitted/not"), 404, "but not where it is off again");
    unlink "$root/site/.htaccess";
    is($asked->("/site/metrics"), 200, "and without such a file");
};

done_testing;
