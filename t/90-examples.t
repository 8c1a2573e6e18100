# SPDX-License-Identifier: Apache-2.0
# 90-examples.t: every example of the OpenAPI document is sent to the server, and
# answered as the document says (contract 20.7)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::OpenAPI;
use CrmTest::Pages;

my $httpd = httpd(database => database(),
    unlimited => 1);
my $openapi = CrmTest::OpenAPI->new(
    $httpd->client->get("/api/v1/openapi.json")->json);
my $document = $openapi->{document};
# what all examples refer to
my $ID = $document->{components}{parameters}{id}{example};
my $w = workspace($httpd);
my $c = $w->client;
$w->log_on;
$w->import_objects([
    { object => "agent", id => $ID, name => "Sales", slug => "sales" },
    { object => "company", id => $ID, bot_id => $ID, name => "Example" },
    { object => "contact", id => $ID, bot_id => $ID,
        emails => ["ada\@example.com"] },
    { object => "contact", id => $ID =~ s/4$/5/r, bot_id => $ID },
    { object => "pipeline", id => $ID, bot_id => $ID, name => "Sales" },
    { object => "pipeline_stage", id => $ID, pipeline_id => $ID, bot_id => $ID,
        name => "New", order_index => 0, color => "#123456" },
    { object => "pipeline_card", id => $ID, pipeline_stage_id => $ID,
        title => "Chairs" },
    { object => "activity", id => $ID, contact_id => $ID,
        activity_type => "task" },
    { object => "conversation", id => $ID, type => 4, bot_id => $ID,
        contact_id => $ID, email => "ada\@example.com" },
    { object => "message", id => $ID, conversation_id => $ID, role => "user",
        content => "Are you open?", metadata => { subject => "Open?",
            attachments => [{ id => $ID }] } },
    { object => "form", id => $ID, bot_id => $ID, name => "Sizes" },
    { object => "submission", id => $ID, form_id => $ID, contact_id => $ID,
        custom_field_responses => { size => "M" } },
    { object => "suppression", id => $ID, email => "eve\@example.org" },
    { object => "sequence_template", id => $ID, name => "Welcome",
        bot_id => $ID, allowed_channels => ["email"],
        steps => [{ channel => "email", email_subject => "Welcome",
            email_body => "Hello" }] }]);
my $in = "'" . $w->id . "'";
sql($w->{database}, "INSERT INTO crmapi.attachment (workspace_id, id,"
    . " message_id, number, size, stored) VALUES ($in, '$ID', '$ID', 1, 1,"
    . " true); INSERT INTO crmapi.attachment_piece VALUES ($in, '$ID', 1, 'x');"
    . " INSERT INTO crmapi.original VALUES ($in, '$ID', 1, now(), 'x')");

# An enrollment cannot be made with a given id: one for each operation on it.
sub enrolled { enrollment($w, [{ channel => "email",
    to_identifier => "zoe\@example.com", email_subject => "S",
    email_body => "B" }]) }

# The address of PATH with the examples of its parameters.
sub address {
    my ($path) = @_;
    my $id = $path =~ m{/enrollments/\{id\}} ? enrolled()
        # others need what it erases
        : $path =~ m{/erase$} ? $c->post("/api/v1/contacts",
            { bot_id => $ID })->data->{id} : $ID;
    return $path =~ s/\{\w+\}/$id/gr;
}

# The parameters of OPERATION in WHERE: name => example.
sub examples_of {
    my ($operation, $where) = @_;
    my @all = grep { $_->{in} eq $where } map { $openapi->resolve($_) }
        @{$operation->{parameters} || []};
    my @none = map { $_->{name} } grep { !exists $_->{example} } @all;
    is("@none", "", "each parameter in $where has an example")
        if $where ne "path";
    is(join(" ", map { $_->{name} } grep { !$_->{description} } @all), "",
        "20.7 each parameter in $where says what it means");
    return map { ($_->{name} => ref $_->{example} ? "true" : $_->{example}) }
        @all;
}

# The status of OPERATION's success.
sub success_of { (grep { /^2/ } sort { $b <=> $a } grep { /^\d+$/ }
    keys %{$_[0]{responses}})[0] }

# Of what RESPONSE shows, the texts and numbers that BODY has sent.
sub echoed {
    my ($r, $body) = @_;
    my $data = $r->data;

    return unless ref $data eq "HASH";
    for my $name (sort grep { !ref $body->{$_} && defined $body->{$_} }
            keys %$body) {
        next unless exists $data->{$name};
        my $sent = $body->{$name} =~ s/(:\d\d)Z$/$1.000Z/r;
        is($data->{$name}, $sent, "$name is in the answer");
    }
}

# The properties of SCHEMA, at PLACE, that have no words.
sub silent {
    my ($schema, $place) = @_;
    my $properties = $schema->{properties} || {};

    return (map({ my $one = $properties->{$_};
        ($one->{description} || $one->{'$ref'} ? () : "$place.$_",
            silent($one, "$place.$_")) } sort keys %$properties),
        $schema->{items} ? silent($schema->{items}, "$place\[]") : ());
}
my $schemas = $document->{components}{schemas};
is_deeply([map { silent($schemas->{$_}, $_) } sort keys %$schemas], [],
    "20.7 each field says what it means");

my @operations = map { my $path = $_; map { { %{$document->{paths}{$path}{$_}},
    method => uc $_, path => $path } } grep { $_ ne "head" }
    keys %{$document->{paths}{$path}} } keys %{$document->{paths}};
my %order = (GET => 1, POST => 2, PATCH => 3, DELETE => 4);

for my $operation (sort { $order{$a->{method}} <=> $order{$b->{method}}
        || $a->{path} cmp $b->{path} } @operations) {
    my $name = "$operation->{method} $operation->{path}";
    subtest $name => sub {
        my %query = examples_of($operation, "query");
        my %headers = examples_of($operation, "header");
        examples_of($operation, "path");
        # the same key for another request would be refused
        my $key = delete $headers{"Idempotency-Key"};
        my $need = $operation->{path} =~ /by-email$/
            ? { email => $query{email} } : {};
        ok($operation->{description}, "it is described");
        for my $one ([], map({ [query => { %$need, $_ => $query{$_} }] }
                sort keys %query), map({ [headers => { $_ => $headers{$_} }] }
                sort keys %headers)) {
            last if $operation->{method} ne "GET";
            my %with = (query => $need, @$one);
            # a page has a number or a cursor
            my ($what) = map { %$_ } values %{{@$one}};
            status_is($c->request("GET", address($operation->{path}), %with),
                200, $what // "plain");
        }
        my $content = ($operation->{requestBody} || {})->{content} || {};
        for my $type (sort keys %$content) {
            my $body = $content->{$type}{example};
            ok(ref $body, "$type has an example") or next;
            my $r = $c->request($operation->{method},
                address($operation->{path}), json => $body, headers => {
                    %headers, "Content-Type" => $type,
                    $operation->{method} eq "POST" && $operation->{path}
                        !~ /upsert/ ? ("Idempotency-Key" =>
                        "$operation->{operationId}-$key") : () });
            status_is($r, success_of($operation), "$type: as it says");
            echoed($r, $body);
        }
        return if %$content || $operation->{method} eq "GET";
        status_is($c->request($operation->{method}, address(
            $operation->{path}), headers => \%headers),
            success_of($operation), "without a body");
    };
}

$httpd->stop;
done_testing;
