# SPDX-License-Identifier: Apache-2.0
# 68-apply-schema.t: the JSON Schema that crmapictl apply --schema prints, held by a
# validator against the verdict of apply (contract 14.1)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use File::Temp qw(tempdir);
use CrmTest;

my $packages = (glob "$ENV{CRM_SRCDIR}/_build/npm/node_modules")[0] // "";
plan(skip_all => "build/setup --tests installs ajv") if !-d "$packages/ajv";
my $db = database();
my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $folder = tempdir("crm-schema-XXXXXX", TMPDIR => 1, CLEANUP => 1);
srand(my $seed = $ENV{CRM_SEED} // time);
diag("CRM_SEED=$seed");

my ($code, $schema) = crmapictl(undef, "apply", "--schema");
is($code, 0, "--schema needs no database");
is(eval { $json->decode($schema)->{'$schema'} },
    "https://json-schema.org/draft/2020-12/schema", "it is a schema");
write_file("$folder/schema.json", $schema);
write_file("$folder/validate.js", <<'END');
const Ajv = require(process.argv[2] + "/ajv/dist/2020").default;
const fs = require("fs"), dir = process.argv[3];
const read = name => JSON.parse(fs.readFileSync(dir + "/" + name));
const ajv = new Ajv({strict: false, validateFormats: false});
const valid = ajv.compile(read("schema.json"));
console.log(JSON.stringify(read("documents.json").map(d => valid(d))));
END

sub pick { return $_[rand @_] }

# A document that is right, in one of its three forms.
sub document {
    my $n = int rand 1e9;
    my @agent = (slug => "a$n", name => "A $n", public => JSON::PP::true);
    my @hook = (url => "https://x.example/$n", events => ["form.submitted"]);
    my @form = (name => "F$n", bot_id => "a$n", custom_fields => {});
    return pick({ agent => { @agent }, form => [{ @form }],
            webhook_endpoint => [{ @hook }] },
        [{ object => "agent", @agent }, { object => "form", @form }],
        { object => "workspace", read_limit => 1 + int rand 99,
            currency => pick("EUR", undef), events => JSON::PP::true },
        { object => "agent", @agent, summary => undef },
        { workspace => { time_zone => "UTC" }, admin => [{
            email => "a$n\@x.example" }], intake_token => { name => "t$n" } });
}

# DOCUMENT with one mistake in its structure.
sub spoil {
    my ($document) = @_;
    my @objects = ref $document eq "ARRAY" ? @$document
        : $document->{object} ? $document
        : map { ref $_ eq "ARRAY" ? @$_ : $_ } values %$document;
    my $object = pick(@objects);
    pick(sub { $object->{nmae} = "x" }, sub { $object->{id} = 7 },
        sub { $object->{name} = { x => 1 } },
        sub { $object->{$object->{url} ? "events" : "name"} = 3 },
        sub { $object->{object} = "robot" })->();
    return $document;
}

my @right = map { document() } 1 .. 40;
my @wrong = map { spoil(document()) } 1 .. 40;
# of the workspace, which is never new, null is refused where it clears nothing
push @wrong, map { { object => "workspace", $_ => undef } } qw(name plan time_zone
    events);
crmapictl_ok($db, "workspace", "create", "--name", "W", "--slug", "w");
my $shown = crmapictl_ok($db, "show", "w");
write_file("$folder/documents.json", $json->encode([@right, @wrong,
    $json->decode($shown)]));
my ($rc, $out, $err) = run_program(command => ["node", "$folder/validate.js",
    $packages, $folder]);
is($rc, 0, "the validator takes the schema") or diag($err);
my @valid = @{$json->decode($out)};
ok($valid[-1], "what show prints is valid");
my $n = 0;
for my $document (@right, @wrong) {
    my $file = "$folder/document.json";
    write_file($file, $json->encode($document));
    my ($exit, undef, $said) = crmapictl($db, "apply", "--dry-run",
        "--workspace", "w", $file);
    my $taken = $exit == 0 || $exit == 3;
    is($valid[$n] ? 1 : 0, $taken ? 1 : 0, "both say the same")
        or diag($json->encode($document), " $said");
    is($taken ? 1 : 0, $n++ < @right ? 1 : 0, "and what is right");
}
done_testing();
