# SPDX-License-Identifier: Apache-2.0
# CrmTest/OpenAPI.pm: checks answers against an OpenAPI 3.1 document, and
# records which parts of it a run has touched
package CrmTest::OpenAPI;
use strict;
use warnings;
use B ();
use Fcntl qw(:flock);
use Scalar::Util qw(refaddr);
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

# Compare two decoded values.
sub same {
    my ($one, $two) = @_;
    return $one eq $two if type_of($one) eq "string"
        && type_of($two) eq "string";
    my $json = Cpanel::JSON::XS->new->canonical->allow_nonref->allow_blessed;
    return $json->encode([$one]) eq $json->encode([$two]);
}

# What is wrong with VALUE's MEMBERS, [its name or number, it, its schema].
sub members {
    my ($self, $at, @members) = @_;
    my @problems;

    for my $member (@members) {
        my ($name, $value, $rule) = @$member;
        push @problems, $self->problems($value, $rule,
            $name =~ /^\[/ ? "$at$name" : "$at.$name");
        last if @problems && $self->{brief};
    }
    return @problems;
}

# Whether VALUE is valid by SCHEMA: the first fault is enough.
sub fits {
    my ($self, $value, $schema, $at) = @_;

    local $self->{brief} = 1;
    return !$self->problems($value, $schema, $at);
}

my %format = (
    "date-time" => qr{^\d{4}-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])T
        (?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?
        (?:Z|[+-]\d\d:\d\d)$}x,
    "uuid" => qr{^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$}x);

# Keywords: the type of the values that they are about, "" for all, and what is
# wrong with such a VALUE at the place AT by the keyword's ARGUMENT. A third
# function makes the argument from that of a SCHEMA, once.
my %keyword = (
    type => ["", sub {
        my ($self, $value, $types, $at) = @_;
        my $type = type_of($value);
        return if grep { $_ eq $type || ($_ eq "number"
            && $type eq "integer") } @$types;
        return "$at: is $type, not " . join " or ", @$types;
    }, sub { ref $_[0] ? $_[0] : [$_[0]] }],
    enum => ["", sub {
        my ($self, $value, $values, $at) = @_;
        return if grep { same($_, $value) } @$values;
        return "$at: is none of the listed values";
    }],
    const => ["", sub {
        my ($self, $value, $wanted, $at) = @_;
        return same($wanted, $value) ? () : "$at: is not the constant";
    }],
    # what tells alternatives from each other comes first
    properties => ["object", sub {
        my ($self, $value, $properties, $at) = @_;
        return $self->members($at, map { exists $value->{$_->[0]}
            ? [$_->[0], $value->{$_->[0]}, $_->[1]] : () } @$properties);
    }, sub {
        my ($properties) = @_;
        return [map { [$_, $properties->{$_}] } sort {
            exists $properties->{$b}{const} <=> exists $properties->{$a}{const}
                || $a cmp $b } keys %$properties];
    }],
    required => ["object", sub {
        my ($self, $value, $names, $at) = @_;
        return map { "$at.$_: is missing" }
            grep { !exists $value->{$_} } @$names;
    }],
    additionalProperties => ["object", sub {
        my ($self, $value, $argument, $at) = @_;
        my ($known, $rule) = @$argument;
        return $self->members($at, map { [$_, $value->{$_}, $rule] }
            grep { !exists $known->{$_} } sort keys %$value);
    }, sub { my ($rule, $schema) = @_; [$schema->{properties} || {}, $rule] }],
    minProperties => ["object", sub {
        my ($self, $value, $n, $at) = @_;
        return keys %$value < $n ? "$at: has fewer than $n members" : ();
    }],
    items => ["array", sub {
        my ($self, $value, $rule, $at) = @_;
        return $self->members($at, map { ["[$_]", $value->[$_], $rule] }
            0 .. $#$value);
    }],
    minItems => ["array", sub {
        my ($self, $value, $n, $at) = @_;
        return @$value < $n ? "$at: has fewer than $n items" : ();
    }],
    maxItems => ["array", sub {
        my ($self, $value, $n, $at) = @_;
        return @$value > $n ? "$at: has more than $n items" : ();
    }],
    minLength => ["string", sub {
        my ($self, $value, $n, $at) = @_;
        return length $value < $n ? "$at: is shorter than $n characters" : ();
    }],
    maxLength => ["string", sub {
        my ($self, $value, $n, $at) = @_;
        return length $value > $n ? "$at: is longer than $n characters" : ();
    }],
    pattern => ["string", sub {
        my ($self, $value, $pattern, $at) = @_;
        return $value =~ $pattern->[0] ? () : "$at: does not match $pattern->[1]";
    }, sub {
        my ($pattern) = @_;
        my $own = $pattern =~ s/\\u([0-9A-Fa-f]{4})/\\x{$1}/gr;
        return [qr/$own/u, $pattern];
    }],
    format => ["string", sub {
        my ($self, $value, $name, $at) = @_;
        return !$format{$name} || $value =~ $format{$name} ? ()
            : "$at: is no $name";
    }],
    minimum => ["number", sub {
        my ($self, $value, $n, $at) = @_;
        return $value < $n ? "$at: is below $n" : ();
    }],
    maximum => ["number", sub {
        my ($self, $value, $n, $at) = @_;
        return $value > $n ? "$at: is above $n" : ();
    }],
    exclusiveMinimum => ["number", sub {
        my ($self, $value, $n, $at) = @_;
        return $value <= $n ? "$at: is not above $n" : ();
    }],
    exclusiveMaximum => ["number", sub {
        my ($self, $value, $n, $at) = @_;
        return $value >= $n ? "$at: is not below $n" : ();
    }],
    allOf => ["", sub {
        my ($self, $value, $rules, $at) = @_;
        return map { $self->problems($value, $_, $at) } @$rules;
    }],
    anyOf => ["", sub {
        my ($self, $value, $rules, $at) = @_;
        return if grep { $self->fits($value, $_, $at) } @$rules;
        return "$at: matches none of anyOf";
    }],
    oneOf => ["", sub {
        my ($self, $value, $rules, $at) = @_;
        my $matches = grep { $self->fits($value, $_, $at) } @$rules;
        return if $matches == 1;
        return "$at: matches $matches of oneOf";
    }],
    not => ["", sub {
        my ($self, $value, $rule, $at) = @_;
        return $self->fits($value, $rule, $at) ? "$at: matches what it must not"
            : ();
    }],
);
# Keywords without effect on validity. Any other unknown keyword is an error, so
# that no rule of the document is ignored.
my %annotation = map { $_ => 1 } qw(title description default example
    examples deprecated readOnly writeOnly $comment contentMediaType
    contentEncoding externalDocs discriminator xml);

# The rules of SCHEMA, [type, function, argument] as in %keyword.
sub rules {
    my ($self, $schema) = @_;
    my ($properties, @rules) = ($schema->{properties});

    if ($self->{closed} && $properties && $schema->{oneOf}) {
        # the alternatives do not know the properties beside them
        my %own = (%$schema, additionalProperties => Cpanel::JSON::XS::true);
        my %others = (oneOf => delete $own{oneOf});
        return (["", \&problems, \%own], ["", sub {
            my ($self, $value, $argument, $at) = @_;
            my %rest = ref $value eq "HASH" ? %$value : ();
            delete @rest{keys %$properties};
            return $self->problems(ref $value eq "HASH" ? \%rest : $value,
                $argument, $at);
        }, \%others]);
    }
    $schema = { %$schema, additionalProperties => Cpanel::JSON::XS::false }
        if $self->{closed} && $properties && $schema->{type}
            && !exists $schema->{additionalProperties};
    push @rules, ["", \&problems, $self->resolve({ '$ref' => $schema->{'$ref'} })]
        if exists $schema->{'$ref'};
    for my $word (sort keys %$schema) {
        next if $word eq '$ref' || $annotation{$word} || $word =~ /^x-/;
        my ($about, $code, $make) = @{$keyword{$word}
            or die "OpenAPI: schema keyword $word is not known here\n"};
        push @rules, [$about, $code, $make ? $make->($schema->{$word}, $schema)
            : $schema->{$word}];
    }
    return @rules;
}

# Return what is wrong with VALUE by SCHEMA, nothing if it is valid. AT says
# where the value is.
sub problems {
    my ($self, $value, $schema, $at) = @_;
    my ($type, @problems);

    $at //= '$';
    if (ref $schema ne "HASH") {
        return $schema ? () : "$at: is not allowed";
    }
    # the schema is kept beside its rules: no other one gets its address
    my $known = $self->{rules}{$self->{closed} // 0}{refaddr $schema}
        //= [$schema, $self->rules($schema)];
    for my $rule (@$known[1 .. $#$known]) {
        my ($about, $code, $argument) = @$rule;
        if ($about) {
            $type //= type_of($value) =~ s/^integer$/number/r;
            next if $about ne $type;
        }
        push @problems, $code->($self, $value, $argument, $at);
        last if @problems && $self->{brief};
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
    # what the document describes, it declares wherever it is sent
    my @problems = map { "header $_: is not declared" }
        grep { defined $response->header($_) && !$declared->{headers}{$_} }
        sort keys %{$self->{document}{components}{headers} || {}};

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
