# SPDX-License-Identifier: Apache-2.0
# CrmTest/OpenAPI.pm: checks answers against an OpenAPI 3.1 document, and
# records which parts of it a run has touched
package CrmTest::OpenAPI;
use strict;
use warnings;
use B ();
use Fcntl qw(:flock);
use Cpanel::JSON::XS ();

# A checker for DOCUMENT, a decoded OpenAPI document.
sub new {
    my ($class, $document) = @_;
    my $self = bless { document => $document, seen => {} }, $class;
    my @templates;

    for my $path (keys %{$document->{paths}}) {
        my $pattern = join "/", map { /^\{/ ? "[^/]+" : quotemeta }
            split m{/}, $path, -1;
        # of two that match, take the one with fewer parameters
        my $parameters = () = $path =~ /\{/g;
        push @templates, [$parameters, qr{^(?:$pattern)/?$}, $path];
    }
    $self->{templates} = [sort { $a->[0] <=> $b->[0]
        || $a->[2] cmp $b->[2] } @templates];
    $self->{base} = ($document->{servers} || [{}])->[0]{url} // "";
    $self->{base} =~ s{^https?://[^/]+}{};
    $self->{base} =~ s{/$}{};
    return $self;
}

# Return (operation, path template) for METHOD and PATH, or nothing.
sub find {
    my ($self, $method, $path) = @_;
    my $base = $self->{base};

    $path =~ s/[?#].*//;
    for my $template (@{$self->{templates}}) {
        for my $below ($path, $path =~ /^\Q$base\E(\/.*)/ ? "$1" : ()) {
            next unless $below =~ $template->[1];
            my $operation
                = $self->{document}{paths}{$template->[2]}{lc $method};
            return ($operation, $template->[2]) if $operation;
        }
    }
    return;
}

# Follow "$ref"s of NODE.
sub resolve {
    my ($self, $node) = @_;
    my $hops = 0;

    while (ref $node eq "HASH" && exists $node->{'$ref'}) {
        my ($pointer) = $node->{'$ref'} =~ m{^#/(.*)};
        die "OpenAPI: cannot follow $node->{'$ref'}\n"
            if !defined $pointer || ++$hops > 20;
        my $to = $self->{document};
        for my $step (split m{/}, $pointer) {
            $step =~ s{~1}{/}g;
            $step =~ s{~0}{~}g;
            die "OpenAPI: $node->{'$ref'} leads nowhere\n"
                unless ref $to eq "HASH" && exists $to->{$step};
            $to = $to->{$step};
        }
        $node = $to;
    }
    return $node;
}

# --- JSON Schema 2020-12, as far as OpenAPI documents of ours use it ---------

# The JSON type of VALUE as it was decoded.
sub type_of {
    my ($value) = @_;

    return "null" unless defined $value;
    return "array" if ref $value eq "ARRAY";
    return "object" if ref $value eq "HASH";
    return "boolean" if Cpanel::JSON::XS::is_bool($value);
    return $value->is_int ? "integer" : "number" if ref $value; # a big one
    my $flags = B::svref_2object(\$value)->FLAGS;
    return "string" if $flags & B::SVf_POK;
    return $value == int $value ? "integer" : "number";
}

# The JSON decoder decides what a number is; a value that was used as a text
# stays what it was, because type_of() looks at a copy.
my %keyword;        # name => sub (self, value, schema, place, argument)

# Compare two decoded values.
sub same {
    my ($one, $two) = @_;
    return $one eq $two if type_of($one) eq "string"
        && type_of($two) eq "string";
    my $json = Cpanel::JSON::XS->new->canonical->allow_nonref->allow_blessed;
    return $json->encode([$one]) eq $json->encode([$two]);
}

%keyword = (
    type => sub {
        my ($self, $value, $schema, $at, $types) = @_;
        my $type = type_of($value);
        my @types = ref $types ? @$types : $types;
        return if grep { $_ eq $type || ($_ eq "number"
            && $type eq "integer") } @types;
        return "$at: is $type, not " . join " or ", @types;
    },
    enum => sub {
        my ($self, $value, $schema, $at, $values) = @_;
        return if grep { same($_, $value) } @$values;
        return "$at: is none of the listed values";
    },
    const => sub {
        my ($self, $value, $schema, $at, $wanted) = @_;
        return same($wanted, $value) ? () : "$at: is not the constant";
    },
    properties => sub {
        my ($self, $value, $schema, $at, $properties) = @_;
        return unless ref $value eq "HASH";
        return map { $self->problems($value->{$_}, $properties->{$_},
            "$at.$_") } grep { exists $value->{$_} } sort keys %$properties;
    },
    required => sub {
        my ($self, $value, $schema, $at, $names) = @_;
        return unless ref $value eq "HASH";
        return map { "$at.$_: is missing" }
            grep { !exists $value->{$_} } @$names;
    },
    additionalProperties => sub {
        my ($self, $value, $schema, $at, $rule) = @_;
        return unless ref $value eq "HASH";
        my $known = $schema->{properties} || {};
        my @others = grep { !exists $known->{$_} } sort keys %$value;
        return map { $self->problems($value->{$_}, $rule, "$at.$_") }
            @others;
    },
    minProperties => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless ref $value eq "HASH" && keys %$value < $n;
        return "$at: has fewer than $n members";
    },
    items => sub {
        my ($self, $value, $schema, $at, $rule) = @_;
        return unless ref $value eq "ARRAY";
        return map { $self->problems($value->[$_], $rule, "$at\[$_]") }
            0 .. $#$value;
    },
    minItems => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless ref $value eq "ARRAY" && @$value < $n;
        return "$at: has fewer than $n items";
    },
    maxItems => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless ref $value eq "ARRAY" && @$value > $n;
        return "$at: has more than $n items";
    },
    minLength => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless type_of($value) eq "string" && length $value < $n;
        return "$at: is shorter than $n characters";
    },
    maxLength => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless type_of($value) eq "string" && length $value > $n;
        return "$at: is longer than $n characters";
    },
    pattern => sub {
        my ($self, $value, $schema, $at, $pattern) = @_;
        my $own = $pattern =~ s/\\u([0-9A-Fa-f]{4})/\\x{$1}/gr;
        return unless type_of($value) eq "string" && $value !~ /$own/u;
        return "$at: does not match $pattern";
    },
    format => sub {
        my ($self, $value, $schema, $at, $format) = @_;
        my %form = (
            "date-time" => qr{^\d{4}-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])T
                (?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?
                (?:Z|[+-]\d\d:\d\d)$}x,
            "uuid" => qr{^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}
                -[0-9a-fA-F]{12}$}x);
        my $form = $form{$format} or return;
        return unless type_of($value) eq "string" && $value !~ $form;
        return "$at: is no $format";
    },
    minimum => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless type_of($value) =~ /^(?:number|integer)$/
            && $value < $n;
        return "$at: is below $n";
    },
    maximum => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless type_of($value) =~ /^(?:number|integer)$/
            && $value > $n;
        return "$at: is above $n";
    },
    exclusiveMinimum => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless type_of($value) =~ /^(?:number|integer)$/
            && $value <= $n;
        return "$at: is not above $n";
    },
    exclusiveMaximum => sub {
        my ($self, $value, $schema, $at, $n) = @_;
        return unless type_of($value) =~ /^(?:number|integer)$/
            && $value >= $n;
        return "$at: is not below $n";
    },
    allOf => sub {
        my ($self, $value, $schema, $at, $rules) = @_;
        return map { $self->problems($value, $_, $at) } @$rules;
    },
    anyOf => sub {
        my ($self, $value, $schema, $at, $rules) = @_;
        return if grep { !$self->problems($value, $_, $at) } @$rules;
        return "$at: matches none of anyOf";
    },
    oneOf => sub {
        my ($self, $value, $schema, $at, $rules) = @_;
        my $matches = grep { !$self->problems($value, $_, $at) } @$rules;
        return if $matches == 1;
        return "$at: matches $matches of oneOf";
    },
    not => sub {
        my ($self, $value, $schema, $at, $rule) = @_;
        return $self->problems($value, $rule, $at) ? ()
            : "$at: matches what it must not";
    },
);
# Keywords without effect on validity. Any other unknown keyword is an error, so
# that no rule of the document is ignored.
my %annotation = map { $_ => 1 } qw(title description default example
    examples deprecated readOnly writeOnly $comment contentMediaType
    contentEncoding externalDocs discriminator xml);

# Return what is wrong with VALUE by SCHEMA, nothing if it is valid. AT says
# where the value is.
sub problems {
    my ($self, $value, $schema, $at) = @_;
    my @problems;

    $at //= '$';
    if (ref $schema ne "HASH") {
        return $schema ? () : "$at: is not allowed";
    }
    if ($self->{closed} && $schema->{properties} && $schema->{oneOf}
        && ref $value eq "HASH") {
        # the alternatives do not know the properties beside them
        my %rest = %$value;
        delete @rest{keys %{$schema->{properties}}};
        my %own = (%$schema, additionalProperties => Cpanel::JSON::XS::true);
        my $others = delete $own{oneOf};
        return ($self->problems($value, \%own, $at),
            $self->problems(\%rest, { oneOf => $others }, $at));
    }
    $schema = { %$schema, additionalProperties => Cpanel::JSON::XS::false }
        if $self->{closed} && $schema->{properties} && $schema->{type}
            && !exists $schema->{additionalProperties};
    if (exists $schema->{'$ref'}) {
        push @problems, $self->problems($value,
            $self->resolve({ '$ref' => $schema->{'$ref'} }), $at);
    }
    for my $word (sort keys %$schema) {
        next if $word eq '$ref' || $annotation{$word} || $word =~ /^x-/;
        my $rule = $keyword{$word}
            or die "OpenAPI: schema keyword $word is not known here\n";
        push @problems, $rule->($self, $value, $schema, $at,
            $schema->{$word});
    }
    return @problems;
}

# Return whether the body of a request, VALUE by SCHEMA, is to be refused, and
# where: the paths of what is wrong as details name them.
sub refused {
    my ($self, $value, $schema) = @_;

    return map { /^\$\.?(.*?): / } $self->problems($value, $schema);
}

# --- answers -----------------------------------------------------------------

# Check RESPONSE (a CrmTest::Response) to REQUEST and record what it touched.
# Return the faults, or nothing. A path that is not in the document is ignored,
# unless STRICT.
sub check {
    my ($self, $request, $response, %arg) = @_;
    my $method = $request->{method} // "";
    my $path = $request->{path} // "";
    my ($operation, $template) = $self->find($method, $path);

    if (!$operation) {
        return $arg{strict} ? "$method $path is not in the document" : ();
    }
    my $name = uc($method eq "HEAD" ? "GET" : $method) . " $template";
    my $status = $response->status;
    $self->touch("operation $name");
    $self->touch_parameters($name, $operation, $template, $request);
    my $declared = $operation->{responses}{$status}
        // $operation->{responses}{substr($status, 0, 1) . "XX"}
        // $operation->{responses}{default};
    return "$name: status $status is not declared" unless $declared;
    $self->touch("status $name $status");
    $declared = $self->resolve($declared);
    return map { "$name: $status: $_" }
        $self->header_problems($declared, $response),
        $self->body_problems($declared, $response, $method),
        $self->taken_problems($operation, $request, $response);
}

# What the JSON in REQUEST's body, which the server has taken by RESPONSE, has that
# OPERATION does not allow: the document would keep clients from it.
sub taken_problems {
    my ($self, $operation, $request, $response) = @_;
    my $content = $self->resolve($operation->{requestBody} // {})->{content};
    my $media = $content && $content->{"application/json"};

    return if !$media || $response->status !~ /^2/
        # it was not read
        || $response->header("Idempotent-Replayed")
        # it was asked to ignore what it does not know
        || ($request->{headers}{Prefer} // "") =~ /handling *= *"?lenient/i;
    my $value = eval {
        Cpanel::JSON::XS->new->utf8->allow_bignum
            ->decode($request->{body} // "");
    };
    return if !defined $value;      # another encoding
    my $answer = $response->body ne "" && $response->json;
    my $data = ref $answer eq "HASH" && ref $answer->{data} eq "HASH"
        ? $answer->{data} : {};
    # An item of an upsert is taken or refused by itself, and its bot_id is read
    # only if it creates something (contract 10.3). A null that is there already
    # may be sent back with the rest (6.2).
    my %refused = map { $_->{index} => 1 } @{$data->{errors} || []};
    return grep { /^request\.\w+\[(\d+)\]/ ? !$refused{$1} && !/\.bot_id: /
            : !/^request\.(\w+): is null/ || defined $data->{$1} }
        $self->problems($value, $media->{schema}, "request");
}

sub header_problems {
    my ($self, $declared, $response) = @_;
    my @problems;

    for my $name (sort keys %{$declared->{headers} || {}}) {
        my $header = $self->resolve($declared->{headers}{$name});
        my @values = $response->header($name);
        if (!@values) {
            push @problems, "header $name is missing" if $header->{required};
            next;
        }
        push @problems, "header $name comes twice" if @values > 1;
        my $schema = $self->resolve($header->{schema} || {});
        my $value = $values[0];
        $value += 0 if ($schema->{type} // "") =~ /^(?:integer|number)$/
            && $value =~ /^-?\d+(?:\.\d+)?$/;
        push @problems, $self->problems($value, $schema, "header $name");
    }
    return @problems;
}

sub body_problems {
    my ($self, $declared, $response, $method) = @_;
    my $content = $declared->{content};
    my $body = $response->body;

    return if $method eq "HEAD" && $body eq "";
    if (!$content) {
        return $body eq "" ? () : "has a body, and none is declared";
    }
    # For clients, objects in answers are open (contract 13.6). Here they are
    # closed, so that additional members are found.
    local $self->{closed} = 1;
    my $type = lc($response->header("Content-Type") // "");
    $type =~ s/\s*;.*//;
    my $media = $content->{$type} // $content->{"*/*"}
        or return "has the type \"$type\"";
    return unless $media->{schema};
    my $value = eval {
        Cpanel::JSON::XS->new->utf8->allow_nonref->decode($body);
    };
    return "is not JSON" if $@;
    return $self->problems($value, $media->{schema}, "body");
}

# What is wrong with REQUEST ({headers => {...}, body}, names of headers in lower
# case), which a webhook has sent.
sub webhook_problems {
    my ($self, $request) = @_;
    my $event = Cpanel::JSON::XS->new->utf8->decode($request->{body});
    my $operation = $self->{document}{webhooks}{$event->{type}}{post}
        or return "the document has no webhook $event->{type}";
    my @problems;

    for my $parameter (map { $self->resolve($_) } @{$operation->{parameters}}) {
        my $value = $request->{headers}{lc $parameter->{name}};
        $value += 0 if defined $value
            && $parameter->{schema}{type} eq "integer" && $value =~ /^\d+$/;
        push @problems, $self->problems($value, $parameter->{schema},
            "header $parameter->{name}");
    }
    local $self->{closed} = 1;
    return (@problems, $self->problems($event, $operation->{requestBody}
        {content}{"application/json"}{schema}, "body"));
}

# --- what was touched ----------------------------------------------------------

sub touch_parameters {
    my ($self, $name, $operation, $template, $request) = @_;
    my $item = $self->{document}{paths}{$template};
    my $query = $request->{query} // "";

    for my $parameter (map { $self->resolve($_) }
            @{$item->{parameters} || []}, @{$operation->{parameters} || []}) {
        my $p = $parameter->{name};
        my $used = $parameter->{in} eq "path" ? 1
            : $parameter->{in} eq "query" ? $query =~ /(?:^|&)\Q$p\E=/
            : grep { lc $_ eq lc $p } keys %{$request->{headers} || {}};
        $self->touch("parameter $name $parameter->{in} $p") if $used;
    }
}

# Record THING for the whole run, once by this process.
sub touch {
    my ($self, $thing) = @_;
    my $dir = $ENV{CRM_TEST_RECORDS} or return;

    return if $self->{seen}{$thing}++;
    open(my $out, ">>", "$dir/openapi") or die "OpenAPI: $dir: $!\n";
    flock($out, LOCK_EX);
    print $out "$thing\n";
    close $out;
}

# Everything that should be used: operations, their parameters, statuses. HEAD
# counts as GET.
# STATUSES is a pattern of the statuses that count.
sub wanted {
    my ($self, $statuses) = @_;
    my @wanted;

    for my $template (sort keys %{$self->{document}{paths}}) {
        my $item = $self->{document}{paths}{$template};
        for my $method (grep { ref $item->{$_} eq "HASH" }
                qw(get post patch put delete options)) {
            my $name = uc($method) . " $template";
            my $operation = $item->{$method};
            push @wanted, "operation $name";
            push @wanted, map { my $p = $self->resolve($_);
                "parameter $name $p->{in} $p->{name}" }
                @{$item->{parameters} || []},
                @{$operation->{parameters} || []};
            push @wanted, map { "status $name $_" }
                grep { /^\d{3}$/ && (!$statuses || /$statuses/) }
                sort keys %{$operation->{responses}};
        }
    }
    return @wanted;
}

# The part of it that no test of this run has used; undef if nothing is recorded
# (a test started by hand).
sub untouched {
    my ($self, $statuses) = @_;
    my $dir = $ENV{CRM_TEST_RECORDS} or return undef;
    my %touched;

    if (open(my $in, "<", "$dir/openapi")) {
        chomp, $touched{$_} = 1 while <$in>;
    }
    return [grep { !$touched{$_} } $self->wanted($statuses)];
}

1;
