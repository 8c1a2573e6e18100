# SPDX-License-Identifier: Apache-2.0
# CrmTest/Samples.pm: a workspace with rows of every resource, made from the
# served OpenAPI document
#
#     my $samples = CrmTest::Samples->new(workspace($httpd));
#     my @ids = $samples->ids("Contact");
#     my $id = $samples->id_for("/api/v1/contacts/{id}/activities");
package CrmTest::Samples;
use strict;
use warnings;
use Digest::MD5 qw(md5);
use CrmTest;
use CrmTest::OpenAPI;
use CrmTest::Spec;
use CrmTest::Values;

# The number of rows of each resource: enough for the rows of one parent to
# differ in every field.
my $ROWS = 60;

# Schemas of members whose ids are not called after them.
my %named = (bot => "Agent", template => "SequenceTemplate");

# Fill workspace W according to its server's document.
sub new {
    my ($class, $w) = @_;
    my $openapi = CrmTest::OpenAPI->new($w->client(key => undef)
        ->get("/api/v1/openapi.json")->json);
    my $self = bless { w => $w, openapi => $openapi, ids => {} }, $class;

    $self->{values} = CrmTest::Values->new($openapi,
        sub { $self->reference(@_) });
    my @schemas = $self->resources;
    $w->log_on;
    # all at once, so that rows may refer to those of any other resource
    $self->{ids}{$_} = [map { uuid() } 1 .. $ROWS] for @schemas;
    $w->import_objects([map { $self->rows($_) } @schemas]);
    my @templates = @{$self->{ids}{SequenceTemplate}};
    $self->{ids}{Enrollment} = [map { $w->start($templates[$_ % 3],
        bot_id => $w->agent, contact => { first_name => "Started $_",
            emails => ["e$_\@e.example"] })->{enrollment_id} } 0 .. 9];
    $self->add_files;
    return $self;
}

# A message with all that a mail leaves: its original, its HTML, an attachment.
sub add_files {
    my ($self) = @_;
    my $w = $self->{w};
    my $in = "'" . $w->id . "'";
    my ($message) = sql($w->{database}, "SELECT conversation_id, id"
        . " FROM crmapi.message WHERE workspace_id = $in ORDER BY id LIMIT 1");
    my ($file) = @{$self->{ids}{Attachment} = [uuid()]};

    $self->{message} = $message;
    sql($w->{database}, "INSERT INTO crmapi.attachment (workspace_id,"
        . " id, message_id, number, filename, content_type, size, stored)"
        . " VALUES ($in, '$file', '$message->[1]', 1, 'a', 'a/b', 1, true);"
        . " INSERT INTO crmapi.attachment_piece VALUES ($in, '$file', 1, 'x');"
        . " INSERT INTO crmapi.original VALUES ($in, '$message->[1]', 1, now(),"
        . " 'x'); INSERT INTO crmapi.message_html VALUES ($in,"
        . " '$message->[1]', '<p>x</p>')");
}

sub openapi { $_[0]{openapi} }
sub values { $_[0]{values} }
sub ids { @{$_[0]{ids}{$_[1]} || []} }

# The schemas of what GET shows. An enrollment is not imported, but started, and
# events and the workspace come by themselves.
sub resources {
    my ($self) = @_;
    my $paths = $self->{openapi}{document}{paths};
    my %shown = map { ($self->shown($_))[0] => 1 }
        grep { $_ } map { $_->{get} } CORE::values %$paths;

    delete @shown{"", "Enrollment", "Event", "Workspace"};
    return sort keys %shown;
}

# An id for the member NAME, the N-th.
sub reference {
    my ($self, $name, $n) = @_;
    my ($what) = $name =~ /^(\w+)_id$/;

    # what is merged into another contact is gone: one of the last
    return $self->{ids}{Contact}[-1 - $n % 5] if $name eq "from";
    return uuid() if !defined $what;
    return $self->{w}->id if $what eq "workspace";
    my $ids = $self->{ids}{$named{$what}
        // join "", map { ucfirst } split /_/, $what};
    die "Samples: $name refers to nothing\n" unless $ids;
    return $ids->[$n % @$ids];
}

my $addresses = 0;

# One of three values for the member NAME of row N: each mixes them in its own
# way.
sub choice {
    my ($name, $n) = @_;
    return unpack("N", md5("$name $n")) % 3;
}

# The lines of an import of SCHEMA.
sub rows {
    my ($self, $schema) = @_;
    my $properties = $self->{openapi}{document}{components}{schemas}{$schema}
        {properties};
    my @rows;

    for my $n (0 .. $ROWS - 1) {
        my %row = (object => CrmTest::Spec::table_of($schema),
            id => $self->{ids}{$schema}[$n]);
        for my $name (grep { !/^(?:id|workspace_id)$/ } keys %$properties) {
            my $member = $properties->{$name};
            my $null = grep { $_ eq "null" } ref $member->{type}
                ? @{$member->{type}} : ();
            my $pick = choice($name, $n);
            my $value = $self->{values}->value($member, $name, $pick);
            # a list of texts has two, so that one may be among others
            push @$value, "also " . choice("$name, too", $n)
                if ref $value eq "ARRAY" && !ref $value->[0];
            # a reference always has something to refer to
            $row{$name} = $null && $pick == 2 && $name !~ /_id$/ ? undef
                : $value;
        }
        # a suppression is of one address, and the only one
        @row{qw(email phone_number)} = $n % 2 ? ("s$n\@x.example", undef)
            : (undef, "+49301" . (1000 + $n)) if $schema eq "Suppression";
        # names of channels are no free texts
        $row{allowed_channels} = [(qw(email sms voice))[0 .. $n % 3]]
            if exists $row{allowed_channels};
        # nor is what imports look into; an address is one agent's (contract
        # 14.2), and an external_id one row's (contract 20.3)
        my $own = ++$addresses;
        my %checked = (slug => "slug-$own", agent_email => "a$own\@crm.example",
            email_outbound_email => "o$own\@crm.example",
            agent_phone => "+4930" . (1_000_000 + $own),
            chat_avatar_image_url => "https://crm.example/$own.png",
            pacing => { days_between_steps => $own % 300 },
            steps => [{ channel => "sms", sms_body => "Text $own" }]);
        $row{$_} = $checked{$_} for grep { defined $row{$_} } keys %checked;
        $row{external_id} .= $own if defined $row{external_id};
        push @rows, \%row;
    }
    return @rows;
}

# The schema that an answer of OPERATION shows, and whether it is a list.
sub shown {
    my ($self, $operation) = @_;
    my $openapi = $self->{openapi};
    my ($success) = grep { /^2/ } sort keys %{$operation->{responses}};
    my $data = ($openapi->resolve($operation->{responses}{$success})
        ->{content}{"application/json"}{schema} || {})->{properties}{data}
        || {};
    my $name = ($data->{items} || $data)->{'$ref'} // "";

    return ($name =~ s{.*/}{}r, !!$data->{items});
}

# PATH, a template of the document, with ID in place of its id, and the id of a
# message in place of that.
sub path {
    my ($self, $path, $id) = @_;
    return $path =~ s/\{id\}/$id/r =~ s/\{message_id\}/$self->{message}[1]/r;
}

# An id of something that is there for PATH, a template of the document: of
# what GET shows of the part with the parameter, or of the list before it.
sub id_for {
    my ($self, $path) = @_;
    my $paths = $self->{openapi}{document}{paths};
    return $self->{message}[0] if $path =~ /\{message_id\}/;
    return ($self->ids("Attachment"))[0] if $path =~ m{/attachments/};
    my ($list, $one) = $path =~ m{^((.*?)/\{id\})} ? ($2, $1) : return;

    for my $operation (grep { $_ } map { ($paths->{$_} || {})->{get} }
            $one, $list) {
        my ($name) = $self->shown($operation);
        my ($id) = $self->ids($name);
        return $id if $id;
    }
    die "Samples: nothing is there for $path\n";
}

1;
