# SPDX-License-Identifier: Apache-2.0
# 81-specification.t: the published document has every table of the
# specification: fields, types, parameters, bodies
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Spec;

my $httpd = httpd(database => database());
my $document = $httpd->client->get("/api/v1/openapi.json")->json;
my $schemas = $document->{components}{schemas};
my $openapi = CrmTest::OpenAPI->new($document);

my %json_type = ("string[]" => "array");

for my $name (sort keys %CrmTest::Spec::FIELDS) {
    my %what = @{$CrmTest::Spec::FIELDS{$name}};
    my $schema = $schemas->{$name};
    my @fields = CrmTest::Spec::names($name);
    my %values = CrmTest::Spec::values_of($name);

    for my $field (@fields) {
        my $property = $schema->{properties}{$field};
        ok($property, "$name.$field") or next;
        next if $property->{'$ref'};
        my $has = $property->{type};
        my @types = CrmTest::Spec::types($what{$field});
        is_deeply([sort ref $has ? @$has : $has],
            [sort map { $json_type{$_} // $_ } @types],
            "$name.$field is " . join " or ", @types);
        is_deeply([sort grep { defined } @{$property->{enum}}],
            [sort @{$values{$field}}], "$name.$field: its values")
            if $values{$field};
    }
    # extensions that only those see who ask for them (docs/api.md)
    my @asked = keys %{$CrmTest::Spec::ON_REQUEST{$name}};
    is_deeply([sort keys %{$schema->{properties}}], [sort @fields, @asked],
        "$name has these fields and no other");
    is_deeply([sort @{$schema->{required}}], [sort @fields],
        "$name always has all of them");
}

my %extension = (tags_match => "7.4", include => "docs/api.md",
    ids => "13.5", cursor => "13.3");
for my $operation (sort keys %CrmTest::Spec::PARAMETERS) {
    my ($method, $path) = split / /, $operation;
    my $described = $document->{paths}{"/api/v1$path"}{lc $method};
    ok($described, $operation) or next;
    my @names = grep { !$extension{$_} } map { $_->{name} }
        grep { $_->{in} eq "query" } map { $openapi->resolve($_) }
        @{$described->{parameters}};
    is_deeply([sort @names],
        [sort @{$CrmTest::Spec::PARAMETERS{$operation}}],
        "$operation: its parameters");
}
my @paths = map { my $path = $_; map { uc($_) . " $path" }
    keys %{$document->{paths}{$path}} } keys %{$document->{paths}};
is_deeply([sort map { /^HEAD (.*)/ ? $1 : () } @paths],
    [sort map { /^GET (.*)/ ? $1 : () } @paths], "5.1 HEAD wherever GET is");
@paths = grep { !/^HEAD/ } @paths;
is_deeply([sort @paths], [sort "GET /api/v1/openapi.json",
    map { s{ }{ /api/v1}r } keys %CrmTest::Spec::PARAMETERS],
    "there is no other operation");

my %bodies = CrmTest::Spec::bodies();
for my $name (sort keys %bodies) {
    my ($required, $all) = @{$bodies{$name}};
    is_deeply([sort @{$schemas->{$name}{required} || []}], [sort @$required],
        "$name: required");
    my $properties = $schemas->{$name}{properties};
    my ($own, $shown) = ([], []);
    push @{($properties->{$_}{'$ref'} // "") =~ m{/Shown$} ? $shown : $own}, $_
        for sort keys %$properties;
    is_deeply($own, [sort @$all], "$name: all members");
    my ($resource) = $name =~ /^(.*)Update$/ or next;
    my %own = map { $_ => 1 } @$own;
    is_deeply($shown, [grep { !$own{$_} } sort keys %{$schemas->{$resource}{properties}}],
        "6.2 $name: and what a GET shows beside");
}
is_deeply([sort keys %{$schemas->{StartInput}{properties}{contact}
    {properties}}], [sort @CrmTest::Spec::START_CONTACT],
    "StartInput: all members of its contact");
is_deeply([sort grep { /(?:Create|Update|Input)$/ } keys %$schemas],
    [sort keys %bodies, qw(EmailInput PhoneInput)],
    "there is no other body");

# Call CHECK with each object's schema in SCHEMA and its name below NAME.
sub each_object {
    my ($schema, $name, $check) = @_;

    if (exists $schema->{'$ref'}) {
        $name = $schema->{'$ref'} =~ s{.*/}{}r;
        $schema = $openapi->resolve($schema);
    }
    $check->($schema, $name) if $schema->{type} && $schema->{properties};
    each_object($schema->{properties}{$_}, "$name.$_", $check)
        for sort keys %{$schema->{properties} || {}};
    each_object($_, $name, $check) for $schema->{items} // (),
        map { @{$schema->{$_} || []} } qw(allOf anyOf oneOf);
}

# What CONTENT of OPERATION has as schema; nothing if it has none.
sub schema_of {
    my ($content) = @_;
    return (($content || {})->{content}{"application/json"} || {})->{schema}
        // ();
}

my %count;
for my $item (map { values %{$document->{$_}} } qw(paths webhooks)) {
    for my $operation (values %$item) {
        my $name = $operation->{operationId};
        # a webhook's request is what this server sends
        my $asks = $operation->{requestBody};
        my $sent = $name =~ /^on/ ? $asks : undef;
        each_object($_, $name, sub {
            my ($schema, $at) = @_;
            return if $count{"asks $at"}++;
            is($schema->{additionalProperties}, false,
                "13.6 $at: a request's object is closed");
        }) for $sent ? () : schema_of($asks);
        each_object($_, $name, sub {
            my ($schema, $at) = @_;
            return if $count{"answers $at"}++;
            ok($schema->{additionalProperties} // 1,
                "13.6 $at: an answer's object is open");
        }) for map { schema_of($openapi->resolve($_)) } $sent // (),
            values %{$operation->{responses}};
    }
}
cmp_ok(scalar(grep { /^asks/ } keys %count), ">", 10, "there are requests");
cmp_ok(scalar(grep { /^answers/ } keys %count), ">", 20, "and answers");

$httpd->stop;
done_testing;
