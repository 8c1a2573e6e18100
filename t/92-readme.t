# SPDX-License-Identifier: Apache-2.0
# 92-readme.t: every command of README works; a new one must be filed here
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

my $readme = read_file("$CrmTest::TOP/README");
my %section = $readme =~ /^([A-Z][^\n]*)\n-{4,}\n(.*?)(?=^[A-Z][^\n]*\n-{4,}\n|\z)/msg;

# The commands of a section: its lines that are indented, but for tables.
sub commands {
    my ($name) = @_;
    ok(defined $section{$name}, "README has the section $name");
    return $section{$name} =~ /^ {4}(\S[^\n]*)$/mg;
}

# Commands that other tests run, by the start of the line.
my @elsewhere = (
    [qr{^build/run\b}, "04-run.t"],
    [qr{^build/test\b}, "this run is one"],
    [qr{^\. var/env$}, "04-run.t"],
    [qr{^autoreconf -fi && \./configure && make && sudo make install$},
        "03-install.t"],
    [qr{^(?:LoadModule|DBDriver|DBDParams|DBDMax|CrmApi) }, "below"],
);

# Lines of SECTION that are left to run here.
sub to_run {
    my ($name) = @_;
    return grep { my $line = $_; !grep { $line =~ $_->[0] } @elsewhere }
        commands($name);
}

my $pg = postgres();
my $bin = tempdir("crm-readme-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $bin;
symlink $CrmTest::BUILD{CTL}, "$bin/crmapictl" or die $!;
symlink $CrmTest::BUILD{WORKER}, "$bin/crmapid" or die $!;
my %env = (PATH => "$bin:$ENV{PATH}:" . CrmTest::Postgres::bindir(),
    PGHOST => $pg->host, PGUSER => $pg->superuser,
    CRMAPI_SCHEMA_DIR => "$CrmTest::TOP/schema");

# Run LINES as one script with values ENV.
sub script {
    my ($name, $values, @lines) = @_;
    my ($code, $out, $err) = run_program(command => ["bash", "-c",
        join "\n", "set -eu", "cd '$bin'", @lines],
        env => { %env, %$values });
    is($code, 0, $name) or diag(join("\n", @lines), "\n$out$err");
    return $out;
}

subtest "Two commands: the curl lines" => sub {
    my $httpd = httpd(database => database(), conf => "CrmApiIntake On\n");
    my $w = workspace($httpd);
    my $token = $w->ctl("intake", "create", "--workspace", $w->id, "--name",
        "t");
    my @set;                # lines that set a variable go before the next one
    for my $line (to_run("Two commands")) {
        if ($line =~ /^\w+=/) {
            push @set, $line;
            next;
        }
        my $out = script($line, { CRMAPI_KEY => $w->key,
            CRMAPI_INTAKE => $token,
            CRMAPI_URL => "http://127.0.0.1:" . $httpd->port }, @set, $line);
        my $answer = eval { JSON::PP->new->utf8->decode($out) };
        ok($answer && !$answer->{error}, "and is answered") or diag($out);
    }
    $httpd->stop;
};

subtest "Adding it to a site" => sub {
    my @lines = to_run("Adding it to a site");
    my ($conf) = grep { /^DBDParams/ } commands("Adding it to a site");

    # a database of this name is nobody else's in this PostgreSQL
    write_file("$bin/data.jsonl", qq({"object":"agent","name":"Ada"}\n));
    @lines = map { s/^apachectl.*//r } @lines;
    my $out = script("step by step", {}, @lines);
    like($out, qr/^svc_live_\w{30}$/m, "the key is shown");
    like(read_file("$bin/data.jsonl"), qr/"name":"Ada"/,
        "and what was imported is exported");
    my ($key) = $out =~ /^(svc_live_\w{30})$/m;
    my $host = $pg->host;
    my $params = $conf =~ s/^DBDParams\s+//r =~ s{host=\S+}{host=$host}r;
    my $httpd = httpd(conf => "DBDriver pgsql\nDBDParams $params\n");
    status_is($httpd->client(key => $key)->get("/api/v1/agents"), 200,
        "the login of README serves it");
    $httpd->stop;
    sql("postgres", "DROP DATABASE crm");
    sql("postgres", "DROP ROLE $_") for qw(site worker);
};

subtest "all directives are there, and no endpoint that is not" => sub {
    my $config = read_file("$CrmTest::TOP/mod_crmapi/module/"
        . "mod_crmapi_config.c");
    my %directive = map { $_ => 1 }
        $config =~ /AP_INIT_\w+\("(\w+)"/g;
    my %listed = map { $_ => 1 } $section{Directives} =~ /^ {4}(CrmApi\w*) /mg;
    is_deeply([sort keys %listed], [sort keys %directive], "directives");
    my $httpd = httpd(database => database());
    my $paths = $httpd->client->get("/api/v1/openapi.json")->json->{paths};
    $httpd->stop;
    my %endpoint;
    for my $line ($section{Endpoints} =~ /^ {4}([A-Z].*)$/mg) {
        my ($methods, $rest) = $line =~ /^((?:[A-Z]+ )+) *(.*)/;
        for my $path ($rest =~ m{(/\S+)}g) {
            $path =~ s/\?.*//;
            $endpoint{"$_ $path"} = 1 for split / /, $methods;
        }
    }
    my %published = map { my $path = $_; map { uc($_) . " "
        . ($path =~ s{^/api/v1}{}r) => 1 } keys %{$paths->{$path}} }
        keys %$paths;
    cmp_ok(scalar keys %endpoint, ">", 20, "endpoints were found");
    is_deeply([grep { !$published{$_} } sort keys %endpoint], [],
        "all of them are served");
};

done_testing;
