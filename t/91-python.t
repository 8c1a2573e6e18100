# SPDX-License-Identifier: Apache-2.0
# 91-python.t: the commands of docs/api.md make a client in Python, with which a
# program uses every operation (contract 13.6)
# plain build only
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Generated;
use CrmTest::Process qw(python_with);
use File::Copy qw(copy);
use File::Temp qw(tempdir);

my $bin = "$ENV{CRM_SRCDIR}/_build/python-npm/node_modules/.bin";
plan(skip_all => "no openapi-generator: build/setup --tests installs it")
    unless -x "$bin/openapi-generator";
my $python = python_with(qw(certifi dateutil six urllib3));
plan(skip_all => "no python3-urllib3 and its kin: build/setup --tests installs"
    . " them") unless $python;
my $dir = tempdir(CLEANUP => 1);
my $httpd = httpd(database => database(),     # a slow machine polls for long
    conf => "CrmApiReadLimit 10000\nCrmApiWriteLimit 10000\n");
my $world = CrmTest::Generated->new($httpd);
my %settings = $world->settings;
my ($commands, $example) = read_file("$CrmTest::TOP/docs/api.md")
    =~ /^```console\n([^`]*openapi30\.py[^`]*)^```\n.*?^```python\n(.*?)^```$/ms
    or die "no commands";
my ($version) = $commands =~ /npx \@openapitools\/openapi-generator-cli\@(\S+)/;
like(read_file("$CrmTest::TOP/build/setup"), qr/-cli\@\Q$version\E\)/,
    "the generator is the one of the guide");

# Run the Python PROGRAM with the client.
sub python {
    my ($program) = @_;
    return run_program(command => [$python, "-W", "error::SyntaxWarning",
        $program], chdir => $dir, seconds => 300,
        env => { %settings, PYTHONPATH => "$dir/client" });
}

copy("$CrmTest::TOP/contrib/openapi/openapi30.py", $dir) or die "$dir: $!\n";
chmod 0755, "$dir/openapi30.py";
my $script = join "\n", "set -eu", map { s/^\$ //r
    =~ s{npx \@\S+}{'$bin/openapi-generator'}r } split /\n/, $commands;
my ($code, $out, $err) = run_program(command => ["bash", "-c", $script],
    chdir => $dir, seconds => 300,
    env => { %settings, JAVA_OPTS => "-XX:TieredStopAtLevel=1" });
is($code, 0, "the client is made") or diag(substr "$out$err", -2000);

subtest "nothing is left that OpenAPI 3.0 does not know" => sub {
    my @wrong;
    my $look;
    $look = sub {
        my ($schema, $at) = @_;
        if (ref $schema eq "ARRAY") {
            $look->($schema->[$_], "$at/$_") for 0 .. $#$schema;
            return;
        }
        return unless ref $schema eq "HASH";
        push @wrong, "$at: type" if ref $schema->{type} eq "ARRAY"
            || !ref $schema->{type} && ($schema->{type} // "") eq "null";
        push @wrong, map { "$at: $_" } grep { exists $schema->{$_}
            && !ref $schema->{$_} } qw(const contentMediaType);
        push @wrong, "$at: of no type" if $at =~ m{/parameters/\d+/schema$}
            && !grep { exists $schema->{$_} } qw(type $ref allOf);
        push @wrong, "$at: enum" if ref $schema->{enum} eq "ARRAY"
            && grep { !defined } @{$schema->{enum}};
        $look->($schema->{$_}, "$at/$_") for sort keys %$schema;
    };
    my $written = JSON::PP->new->utf8->decode(read_file("$dir/openapi30.json"));
    $look->($written, "");
    is_deeply(\@wrong, [], "no schema of 3.1");
    is($written->{openapi}, "3.0.3", "it says so");
    is_deeply([sort keys %{$written->{paths}}],
        [sort keys %{$world->document->json->{paths}}], "all paths are there");
};

my $worker = worker(database => $httpd->{database});
copy("$CrmTest::TOP/t/client/use.py", $dir) or die "$dir: $!\n";
($code, $out, $err) = python("use.py");
is($code, 0, "the program does all of it") or diag("$out$err");
$worker->stop;
is_deeply([$world->unused], [], "13.6 it has used every operation");
write_file("$dir/example.py", $example);
($code, $out, $err) = python("example.py");
is($code, 0, "the guide's example runs") or diag("$out$err");
$httpd->stop;
done_testing;
