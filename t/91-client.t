# SPDX-License-Identifier: Apache-2.0
# 91-client.t: clients that are generated from the OpenAPI document: a program
# in TypeScript uses every operation without a cast, and clients of earlier
# versions still work (contract 13.6, 13.7). t/client/README says more
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Generated;
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);

my $packages = (glob "$ENV{CRM_SRCDIR}/_build/npm/node_modules")[0] // "";
plan(skip_all => "no openapi-typescript: build/setup --tests installs it")
    unless -x "$packages/.bin/openapi-typescript" && -x "$packages/.bin/tsc"
    && -d "$packages/openapi-fetch";
my $source = "$CrmTest::TOP/t/client";
my $dir = tempdir(CLEANUP => 1);

# Compile FILES, path => text, and return what tsc complains of: path =>
# [lines]. The programs are then in the folder out.
sub compile {
    my (%files) = @_;
    my %complaints;

    symlink $packages, "$dir/node_modules" or die "$dir: $!\n";
    copy("$source/tsconfig.json", $dir) or die "$dir: $!\n";
    write_file("$dir/package.json", '{"type": "module"}');
    for my $path (sort keys %files) {
        make_path(dirname("$dir/$path"));
        write_file("$dir/$path", $files{$path});
    }
    my ($code, $out, $err) = run_program(command => ["$packages/.bin/tsc",
        "--pretty", "false", "-p", $dir], chdir => $dir);
    for my $line (split /\n(?!\s)/, $out . $err) {
        my ($path) = $line =~ /^(.*?)\(\d/;
        push @{$complaints{$path // ""}}, $line;
    }
    return %complaints;
}

my $httpd = httpd(database => database(),     # a slow machine polls for long
    conf => "CrmApiReadLimit 10000\nCrmApiWriteLimit 10000\n");
my $world = CrmTest::Generated->new($httpd);
my $document = $world->document;
write_file("$dir/openapi.json", $document->body);
my ($code, $out, $err) = run_program(command =>
    ["$packages/.bin/openapi-typescript", "$dir/openapi.json", "-o",
        "$dir/new.d.ts"], chdir => $dir);
is($code, 0, "the types are generated") or diag("$out$err");
my $new = "// SPDX-License-Identifier: Apache-2.0\n"
    . read_file("$dir/new.d.ts");
my ($version) = $document->json->{info}{version} =~ /^(\d+\.\d+)/;
my %kept = map { m{([\d.]+)\.d\.ts$}; ($1 => read_file($_)) }
    glob "$source/*.d.ts";
if ($ENV{CRM_RENEW}) {
    write_file("$source/$version.d.ts", $new);
    $kept{$version} = $new;
}
my @versions = sort keys %kept;

# --- what is compiled ---------------------------------------------------------

# The file COMPARE.ts that compares the types of the files OLD.d.ts and
# NEW.d.ts.
sub comparison {
    my ($compare, $old, $new) = @_;
    my %file = (old => $old, new => $new);
    return ("$compare.ts" => read_file("$source/compare.ts")
        =~ s{"\./(old|new)\.js"}{"./$file{$1}.js"}gr);
}

# Changes of the types: what is replaced by what.
my %harmless = (
    "a new field of an answer" =>
        [qr/(\n        Agent: \{)/, "\n            mood: string;"],
    "a new parameter" =>
        [qr/(\n    listAgents: \{\s+parameters: \{\s+query\?: \{)/, "\n mood?: string;"],
    "a new optional field of a body" =>
        [qr/(\n        ContactCreate: \{)/, "\n mood?: string;"],
    "a new operation" => [qr/(\nexport interface paths \{)/,
        "\n \"/moods\": { get: operations[\"listAgents\"] };"],
    "a new event" => [qr/(\nexport interface webhooks \{)/,
        "\n \"mood.changed\": { post: operations[\"onContactCreated\"] };"],
    "a new type of event in the log" => [qr/(\n        Event: \{.*?\} & \()/s,
        '{ type: "mood.changed"; timestamp: string; data: { id: string } } | '],
    "a new field of an event" => [qr/(\n        ContactCreatedEvent: \{)/,
        "\n            mood: string;"],
);
my %harmful = (
    "a field of an answer is gone" =>
        [qr/(\n        Agent: \{.*?)\n            slug: [^\n]*/s, ""],
    "a field of an answer may be null" =>
        [qr/(\n        Company: \{.*?\n            name: string)/s, " | null"],
    "a new value of a field of an answer" =>
        [qr/(\n        Step: \{.*?channel: "email")/s, " | \"fax\""],
    "a parameter is gone" => [qr/(\n    listAgents: .*?)is_agent\?: boolean[^;]*;/s,
        ""],
    "a parameter has fewer values" =>
        [qr/(\n    listAgents: .*?agent_type\?: "internal") \| "external"/s,
        ""],
    "a field of a body is gone" =>
        [qr/(\n        ContactCreate: \{.*?)last_name\?: string \| null;/s, ""],
    "a field of a body is required" =>
        [qr/(\n        ContactCreate: \{.*?last_name)\?/s, ""],
    "an operation is gone" =>
        [qr/()get: operations\["listAgents"\];/, "get?: never;"],
    "a path is gone" => [qr/()"\/api\/v1\/agents": \{/, "\"/v\": {"],
    "an event is gone" => [qr/()"form\.submitted": \{/, "\"form.sent\": {"],
    "a field of an event in the log is gone" =>
        [qr/(\n        Event: \{.*?)\n            id: string;/s, ""],
    "a field of an event is gone" =>
        [qr/(\n        FormSubmittedEvent: \{.*?)timestamp: string;/s, ""],
);

# TYPES with CHANGE.
sub changed {
    my ($types, $change, $name) = @_;
    my ($where, $with) = @$change;
    my $text = $types =~ s/$where/$1$with/r;

    die "$name: there is no such place\n" if $text eq $types;
    return $text;
}

my %change = (%harmless, %harmful);
my @changes = sort keys %change;
my @others = grep { $kept{$_} ne $new } @versions;
my %program = map { ($_ => read_file("$source/use-$_.ts")) } @versions;
my %files = ("now.d.ts" => $new,
    (map { ("$_/api.d.ts" => $kept{$_}, "$_/use.ts" => $program{$_}) }
        @versions),
    (map { ("$_-now/api.d.ts" => $new, "$_-now/use.ts" => $program{$_},
        comparison("since-$_", "$_/api", "now")) } @others),
    (map { ("changed-$_.d.ts" => changed($new, $change{$changes[$_]},
        $changes[$_]), comparison("case-$_", "now", "changed-$_")) }
        0 .. $#changes));
my %complaints = compile(%files);

# --- and what is run ----------------------------------------------------------

# Run the compiled program of VERSION.
sub run {
    my ($version) = @_;
    my ($code, $out, $err) = run_program(
        command => ["node", "$dir/out/$version/use.js"],
        env => { $world->settings });

    is($code, 0, "the program of $version does all of it")
        or diag("$out$err");
}

my $worker = worker(database => $httpd->{database});
for my $old (@versions) {
    unlike($program{$old},
        qr/\bas (?!const\b)|\bany\b|\@ts-|\w!(?:[.,;)\[])|<\w+>\w/,
        "the program of $old has no cast");
    is_deeply($complaints{"$old/use.ts"}, undef,
        "it compiles with the types of $old");
    run($old);
    next unless $files{"$old-now/use.ts"};
    is_deeply($complaints{"$old-now/use.ts"}, undef, "and with those of now");
}
$worker->stop;

is_deeply([$world->unused], [], "13.6 the programs have used every operation");
$httpd->stop;

subtest "13.7 a client of an earlier version can use this one" => sub {
    for my $n (0 .. $#changes) {
        my $lines = delete $complaints{"case-$n.ts"} || [];
        is(!@$lines, !!$harmless{$changes[$n]}, $harmless{$changes[$n]}
            ? "$changes[$n]: a client does not mind"
            : "$changes[$n]: is found") or diag(join "\n", @$lines);
    }
    for my $old (@others) {
        is_deeply(delete $complaints{"since-$old.ts"}, undef,
            "nothing that clients of $old rely on has changed");
    }
    is_deeply(\%complaints, {}, "tsc has no other complaint");
};

ok(exists $kept{$version}, "t/client has the types of version $version");
diag("the API has changed since t/client/$version.d.ts was written. If the"
    . " tests above pass, nothing breaks: CRM_RENEW=1 perl t/91-client.t writes"
    . " it anew, as long as $version is not released") if $kept{$version}
    && $kept{$version} ne $new;
done_testing;
