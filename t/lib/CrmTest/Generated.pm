# SPDX-License-Identifier: Apache-2.0
# CrmTest/Generated.pm: what the programs of t/client need, which use every
# operation by a client that is generated from the OpenAPI document
#
#     my $world = CrmTest::Generated->new($httpd);
#     my $out = run_program(command => [...], env => { $world->settings });
#     is_deeply([$world->unused], [], "it used every operation");
package CrmTest::Generated;
use strict;
use warnings;
use CrmTest;

# A workspace on HTTPD with rows that only channels and an operator make.
sub new {
    my ($class, $httpd) = @_;
    my $w = workspace($httpd);
    my $id = { map { $_ => uuid() }
        qw(contact conversation message file form template) };

    $w->import_objects([
        { object => "contact", id => $id->{contact}, bot_id => $w->agent },
        { object => "conversation", id => $id->{conversation}, type => 4,
            email => "a\@x.example", bot_id => $w->agent,
            contact_id => $id->{contact} },
        { object => "message", id => $id->{message}, role => "user",
            conversation_id => $id->{conversation}, content => "Hello",
            metadata => { subject => "Hello",
                attachments => [{ id => $id->{file} }] } },
        { object => "form", id => $id->{form}, bot_id => $w->agent,
            name => "Sizes" },
        { object => "submission", form_id => $id->{form},
            contact_id => $id->{contact},
            custom_field_responses => { size => "M" } },
        { object => "sequence_template", id => $id->{template},
            name => "Welcome", bot_id => $w->agent,
            allowed_channels => ["email"], steps => [{ channel => "email",
                email_subject => "Welcome", email_body => "Hello" }] }]);
    $w->log_on;
    sql($httpd->{database}, "INSERT INTO crmapi.attachment (workspace_id, id,"
        . " message_id, number, size, stored) SELECT workspace_id,"
        . " '$id->{file}', id, 1, 5, true FROM crmapi.message WHERE id ="
        . " '$id->{message}'; INSERT INTO crmapi.attachment_piece SELECT"
        . " workspace_id, '$id->{file}', 1, 'bytes' FROM crmapi.message WHERE"
        . " id = '$id->{message}'; INSERT INTO crmapi.original SELECT"
        . " workspace_id, id, 1, now(), 'Subject: Hello' FROM crmapi.message"
        . " WHERE id = '$id->{message}'; INSERT INTO crmapi.message_html SELECT"
        . " workspace_id, id, '<p>Hello</p>' FROM crmapi.message WHERE id ="
        . " '$id->{message}'");
    return bless { httpd => $httpd, w => $w, template => $id->{template},
        document => $httpd->client->get("/api/v1/openapi.json") }, $class;
}

# The served document, a response.
sub document { return $_[0]{document} }

# The environment of a program that uses the API.
sub settings {
    my ($self) = @_;
    my $port = $self->{httpd}->port;

    return (CRMAPI_URL => "http://127.0.0.1:"
            . ($CrmTest::Client::VIA{$port} // $port),
        CRMAPI_KEY => $self->{w}->make_key("read,write"),
        CRMAPI_TEMPLATE => $self->{template}, no_proxy => "*");
}

# The operations that nobody has used with success so far, and those that were used
# and are not in the document. A line of the log may come after the response.
sub unused {
    my ($self) = @_;
    my $paths = $self->document->json->{paths};
    my @wanted = map { my $path = $_; map { uc($_) . " $path" }
        grep { $_ ne "head" } sort keys %{$paths->{$path}} } sort keys %$paths;
    my (@unused, %used);

    wait_for(sub {
        %used = map { m{" 2\d\d .* (\w+) (/\S+) \S+$}
            ? ("$1 /api/v1$2" => 1) : () } split /\n/,
            $self->{httpd}->access_log;
        @unused = grep { !$used{$_} } @wanted;
        return !@unused;
    }, 20);
    delete @used{@wanted};
    return (@unused, map { "not in the document: $_" } sort keys %used);
}

1;
