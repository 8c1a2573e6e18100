# SPDX-License-Identifier: Apache-2.0
# 92-readme.t: the commands of README work, one after the other
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

my $readme = read_file("$CrmTest::TOP/README");
my %section = $readme =~ /^([A-Z][^\n]*)\n-{4,}\n(.*?)(?=^[A-Z][^\n]*\n-{4,}\n|\z)/msg;

# The commands of a section: its indented lines.
sub commands {
    my ($name) = @_;
    ok(defined $section{$name}, "README has the section $name");
    return $section{$name} =~ /^ {4}(\S[^\n]*)$/mg;
}

# Lines that are not run here, by their start.
my @not_here = (
    qr{^build/run$},                    # 04-run.t
    qr{^\. var/env$},                   # 04-run.t
    # 04-packages.t
    qr{^build/package$},
    qr{^(?:sudo (?:apt|a2enmod|a2enconf|apachectl|systemctl|journalctl)) },
);

# The lines of SECTION that are run here.
sub to_run {
    my ($name) = @_;
    return grep { my $line = $_; !grep { $line =~ $_ } @not_here }
        commands($name);
}

my $bin = tempdir("crm-readme-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $bin;
symlink $CrmTest::BUILD{CTL}, "$bin/crmapictl" or die $!;
symlink $CrmTest::BUILD{WORKER}, "$bin/crmapid" or die $!;
my %env = (PATH => "$bin:$ENV{PATH}:" . CrmTest::Postgres::bindir(),
    CRMAPI_SCHEMA_DIR => "$CrmTest::TOP/schema", no_proxy => "*");

# Run LINES as one script with the environment ENV. Return its output.
sub script {
    my ($name, $values, @lines) = @_;
    my ($code, $out, $err) = run_program(command => ["bash", "-c",
        join "\n", "set -eu", "cd '$bin'", @lines],
        env => { %env, %$values });
    is($code, 0, $name) or diag(join("\n", @lines), "\n$out$err");
    return $out;
}

# Run the last of LINES, a curl command, after the others, which set
# variables. Its answer must be JSON and no error.
sub answers {
    my ($values, @lines) = @_;
    my $out = script($lines[-1], $values, @lines);
    my $answer = eval { JSON::PP->new->utf8->decode($out) };
    ok($answer && !$answer->{error}, "and is answered") or diag($out);
    return $answer;
}

subtest "Try it: the curl lines" => sub {
    my $httpd = httpd(database => database(), conf => "CrmApiIntake On\nCrmApiMcp On\n");
    my $w = workspace($httpd);
    my $token = $w->token("t");
    my (@set, $count);
    for my $line (to_run("Try it")) {
        if ($line =~ /^\w+=/) {
            push @set, $line;
            next;
        }
        answers({ CRMAPI_KEY => $w->key, CRMAPI_INTAKE => $token,
            CRMAPI_URL => "http://127.0.0.1:" . $httpd->port }, @set, $line);
        $count++;
    }
    cmp_ok($count, ">", 3, "lines were found");
    my $contacts = $w->client->get("/api/v1/contacts")->json;
    is($contacts->{pagination}{total}, 2,
        "one contact was created, and one by the SMS");
    $httpd->stop;
};

# "sudo -u USER" as peer authentication sees it: the database's user is the
# system's. What README writes below /etc goes to the test's folder.
my $sudo = <<'END';
sudo() {
    if [ "$1" = -u ]; then
        local user=$2
        shift 2
        PGUSER=$user "$@"
    else
        "$@"
    fi
}
END

subtest "Adding it to a site" => sub {
    # a cluster of its own, as it is when nothing was made in it
    my $pg = CrmTest::Postgres->start;
    $pg->sql("postgres", "DROP ROLE $CrmTest::Postgres::OWNER");
    my %values = (PGHOST => $pg->host, USER => "operator",
        PGUSER => "operator");
    my @lines = map { s{/etc/(?:apache2/conf-available/)?|/usr/sbin/}{$bin/}gr }
        to_run("Adding it to a site");
    my ($first_post) = grep { $lines[$_] =~ /^curl / } 0 .. $#lines;
    ok($first_post, "a first POST");

    my @before = @lines[0 .. $first_post - 1];
    my $out = script("steps 2 to 4", \%values, $sudo, @before);
    my ($w, $agent, $key) = $out
        =~ /^workspace (\S+), agent (\S+), key (svc_live_\w{30})$/m;
    ok($key, "a workspace, an agent and a key are shown") or diag($out), return;

    my $conf = read_file("$bin/crmapi.conf");
    like($conf, qr/^CrmApi On$/m, "the API is switched on");
    like($conf, qr/^DBDParams "host=\Q@{[$pg->host]}\E dbname=crmapi user=www-data /m,
        "for this database, with httpd's login");
    my $httpd = httpd(modules => [], on => 0, conf => "$conf\n");
    my ($post) = grep { /^curl/ } @lines;
    is(CrmTest::Client->new(port => $httpd->port, key => $key)
        ->get("/api/v1/contacts")->json->{pagination}{total}, 0,
        "the configuration serves it");
    my $local = "http://localhost";
    my $answer = answers({ %values, CRMAPI_DATABASE => "dbname=crmapi" },
        "AGENT=$agent KEY=$key",
        $post =~ s{\Q$local\E/}{"http://127.0.0.1:" . $httpd->port . "/"}er);
    is($answer->{data}{first_name}, "Grace", "the contact was created");
    $httpd->stop;

    # crmapid waits for a database that it may not use: then this would not end
    script("step 6", { %values, CRMAPI_DATABASE => "dbname=crmapi" }, $sudo,
        grep { /crmapid/ } @lines);
    like(read_file("$bin/crmapid.conf"), qr/^database = dbname=crmapi$/m,
        "the worker's configuration was written");
};

done_testing;
