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
my $configuration = qr/^(?:LoadModule|DBDriver|DBDParams|DBDMax|CrmApi) /;
my @not_here = (
    $configuration,                     # httpd is started with it below
    qr{^build/run$},                    # 04-run.t
    qr{^\. var/env$},                   # 04-run.t
    qr{^sudo apt install },             # compared with build/setup below
    qr{^autoreconf -fi && \./configure && make && sudo make install$},
                                        # 03-install.t
    # these change the machine
    qr{^sudo (?:a2enconf|apachectl|useradd|systemctl) },
    qr{^sudo cp /usr/local/share/mod_crmapi/crmapid\.service },
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
    my $httpd = httpd(database => database(), conf => "CrmApiIntake On\n");
    my $w = workspace($httpd);
    my $token = $w->ctl("intake", "create", "--workspace", $w->id, "--name",
        "t");
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
# system's. What README writes below /usr/local goes to the test's folder.
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
    my @all = commands("Adding it to a site");
    my @lines = map { s{/usr/local/etc/}{$bin/}gr }
        to_run("Adding it to a site");
    my ($first_post) = grep { $lines[$_] =~ /^AGENT=/ } 0 .. $#lines;
    my $conf = join "\n", grep { $_ =~ $configuration } @all;
    ok($first_post && $conf, "a first POST and a configuration");

    my @before = @lines[0 .. $first_post - 1];
    my $out = script("steps 2 to 4", \%values, $sudo, @before,
        'echo "W=$W KEY=$KEY"');
    my ($w, $key) = $out =~ /^W=(\S+) KEY=(svc_live_\w{30})$/m;
    ok($key, "a workspace and a key") or diag($out), return;
    like($out, qr/^\Q$key\E$/m, "the key is shown");

    for my $line (grep { /^LoadModule/ } split /\n/, $conf) {
        like($line, qr{ /usr/lib/apache2/modules/mod_\w+\.so$},
            "Debian's path: $line");
    }
    $conf =~ s{/usr/lib/apache2/modules/mod_crmapi\.so}{$CrmTest::BUILD{MODULE}};
    $conf =~ s{/usr/lib/apache2/modules}{$CrmTest::BUILD{MODULEDIR}}g;
    $conf =~ s{host=\S+}{host=@{[$pg->host]}};
    my $httpd = httpd(crmapi => 0, modules => ["-dbd"], conf => "$conf\n");
    my ($post) = grep { /^curl/ } @lines;
    is(CrmTest::Client->new(port => $httpd->port, key => $key)
        ->get("/api/v1/contacts")->json->{pagination}{total}, 0,
        "the configuration serves it");
    my $local = "http://localhost";
    my $answer = answers({ %values, CRMAPI_DATABASE => "dbname=crmapi" },
        "W=$w KEY=$key", $lines[$first_post],
        $post =~ s{\Q$local\E/}{"http://127.0.0.1:" . $httpd->port . "/"}er);
    is($answer->{data}{first_name}, "Grace", "the contact was created");
    $httpd->stop;

    # crmapid waits for a database that it may not use: then this would not end
    script("step 7", \%values, $sudo, grep { /crmapid/ } @lines);
    like(read_file("$bin/crmapid.conf"), qr/^database = dbname=crmapi$/m,
        "the worker's configuration was written");
};

subtest "the packages are those that build/setup installs" => sub {
    my ($install) = grep { /^sudo apt install / }
        commands("Adding it to a site");
    my %named = map { $_ => 1 } split / /,
        $install =~ s/^sudo apt install //r;
    my ($list) = read_file("$CrmTest::TOP/build/setup")
        =~ /^packages=\(\n(.*?)^\)/ms;
    my %needed = map { $_ => 1 } split " ", $list;
    ok($needed{"libaprutil1-dbd-pgsql"}, "the list was found");
    # apache2 is the site's own: its folders and a2enconf
    is_deeply([sort keys %named], [sort "apache2", keys %needed], "they are");
};

done_testing;
