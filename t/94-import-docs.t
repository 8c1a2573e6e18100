# SPDX-License-Identifier: Apache-2.0
# 94-import-docs.t: docs/import.md has the objects and fields of import and
# export, with their types, limits and defaults
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $manual = read_file("$CrmTest::TOP/docs/import.md");
my $json = JSON::PP->new->canonical->allow_nonref;

# object => its fields, as [name, value, default] in the order of its table
my (%fields, @objects);
while ($manual =~ /^## ([a-z_]+)\n(.*?)(?=^## |\z)/msg) {
    my ($object, $text) = ($1, $2);
    push @objects, $object;
    $fields{$object} = [map { [(split /\s*\|\s*/, $_)[1 .. 3]] }
        $text =~ /^(\| `.*)$/mg];
    $_->[0] =~ tr/`//d for @{$fields{$object}};
}

my $w = workspace(database(), twin => 0);

# An id for each object, so that others can refer to it.
my %id = map { $_ => uuid() } @objects;

# What VALUE of the manual describes: (good, bad) values.
sub samples {
    my ($value) = @_;
    return (uuid(), "x") if $value eq "id";
    return ($id{$1}, uuid()) if $value =~ /^id of an? (\w+)$/;
    if ($value =~ /^text(?:, ([\d,]+))?$/) {
        my $max = ($1 // "1000") =~ s/,//gr;
        return ("x" x $max, "x" x ($max + 1)) if $max != 254;
        return ("x" x ($max - 2) . "\@y", "x" x ($max - 1) . "\@y");
    }
    return ($1, "x" . $1) if $value =~ /^`(\w+)`/;
    my %sample = (
        number => [99999999.25, 1e15], integer => [2147483647, -1],
        "integer, 1 to 10080" => [10080, 10081],
        "number, -1 to 1" => [-0.5, -1.0001],
        boolean => [JSON::PP::true, "true"],
        time => ["2026-11-21T01:59:27.552Z", "yesterday"],
        tags => [["x" x 100], ["x" x 101]],
        strings => [["x"], [1]],
        "e-mails" => [["a\@x.example"], [("a\@x.example") x 51]],
        "phone numbers" => [["+4930123"], ["x" x 1001]],
        channel => ["chat", "pigeon"], slug => ["a-1", "a b"],
        "e-mail" => [uuid() . "\@x.example", "x"],
        "E.164 number" => ["+4930" . int(1e7 + rand 8e7), "+none"],
        URL => ["https://x.example/a", "/a"],
        origins => [["*", "https://x.example"], ["x.example"]],
        pacing => [{ days_between_steps => 1 }, { dayz => 1 }],
        steps => [[{ channel => "sms", sms_body => "x" }], [{}]],
        "form fields" => [{ x => { type => "text" } },
            { email => { label => 1 } }],
        "array of channels" => [["email"], ["sms", "fax"]],
        "phone number" => ["+4930123456", "+none"],
        object => [{ a => 1 }, []]);
    return @{$sample{$value} || die "no such value: $value\n"};
}

# An object with the required fields and NAME => VALUE; one that checks across
# fields gets what it needs.
sub object {
    my ($object, %more) = @_;
    my %line = (object => $object, map { $_->[0] => (samples($_->[1]))[0] }
        grep { $_->[2] eq "*required*" } @{$fields{$object}});
    $line{contact_id} = $id{contact} if $object eq "activity";
    $line{email} = uuid() . "\@x.example" if $object eq "suppression"
        && !$more{phone_number};
    return { %line, %more };
}

is(join("", map { $w->refusal(object($_, id => $id{$_})) } @objects), "",
    "each object is taken with its required fields alone")
    or BAIL_OUT("nothing else can be tested");
my %exported;
for my $line (split /\n/, $w->ctl("export", "--workspace", $w->id)) {
    my $names = [$line =~ /(?:^\{|,)"(\w+)":/g];
    my $row = JSON::PP::decode_json($line);
    $exported{$row->{object}} = { row => $row, names => $names }
        if ($id{$row->{object}} // "") eq $row->{id};
}
is_deeply([sort keys %exported], [sort @objects],
    "the manual has every object, and no other");
my ($named) = $w->refusal({ object => "agnt" }) =~ /must be one of (.*)/;
is_deeply([sort split /, /, $named // ""], [sort @objects],
    "and so has the refusal of another one");

for my $object (@objects) {
    subtest $object => sub {
        my $row = $exported{$object}{row};
        my @names = map { $_->[0] } @{$fields{$object}};
        is_deeply([sort @names, "object", grep { exists $row->{$_} }
            "workspace_id"], [sort keys %$row], "its fields");
        my %good = map { $_->[0] => (samples($_->[1]))[0] }
            @{$fields{$object}};
        delete $good{email} if $object eq "suppression";
        is($w->refusal(object($object, %good)), "", "good values are taken");
        for my $field (@{$fields{$object}}) {
            my ($name, $value, $default) = @$field;
            my (undef, $bad) = samples($value);
            if ($default eq "*required*") {
                my $line = object($object);
                delete $line->{$name};
                like($w->refusal($line), qr/line 1: \/$name: is required/,
                    "$name is required");
            }
            elsif ($default =~ /^`(.*)`$/) {
                is($json->encode($row->{$name}), $1, "the default of $name")
                    unless exists object($object)->{$name};
            }
            elsif ($default eq "*now*") {
                like($row->{$name}, qr/^20\d\d-/, "$name is a time");
            }
            else {
                is($default, "*new*", "the default of $name is known");
            }
            my $refusal = $w->refusal(object($object, $name => $bad));
            like($refusal, qr/line 1: \/$name\b/,
                "$name: a bad value is refused");
            my $values = join ", ", $value =~ /`(\w+)`/g;
            like($refusal, qr/: must be one of $values$/,
                "$name: the values are those") if $values;
        }
    };
}

subtest "what only the database refuses has its line, too" => sub {
    my $address = uuid() . "\@x.example";
    my @lines = ({ object => "agent", name => "A" },
        map({ object("suppression", email => $_) } "1$address", $address),
        { object => "agent", name => "B" },
        map({ object("suppression", email => $_) } "2$address", uc $address,
            "3$address"));
    like($w->refusal(@lines), qr/line 6: exists already, or occurs twice$/m,
        "an address that is there twice");
    splice @lines, 5, 1;
    is($w->refusal(@lines), "", "without that line all are taken");
    like($w->refusal($lines[-1]), qr/line 1: exists already/,
        "an address that the workspace has");
};

subtest "the first file can be pasted" => sub {
    my ($script) = documented("import.md", "sh");
    my $other = workspace($w->{database}, twin => 0);
    my $dir = File::Temp::tempdir(CLEANUP => 1);
    my ($code, $out, $err) = run_program(chdir => $dir,
        command => ["sh", "-eu", "-c", $script], env => {
            PATH => "$CrmTest::BUILD{DIR}:$ENV{PATH}",
            CRMAPI_WORKSPACE => $other->id,
            CRMAPI_DATABASE => postgres()->conninfo($w->{database}) });
    is($code, 0, "it runs") or diag("$out$err");
    my $export = $other->ctl("export", "--workspace", $other->id);
    like($export, qr/^\{"object":"pipeline_stage".*"name":"Won"/m,
        "and its stages are there");
};

done_testing;
