# SPDX-License-Identifier: Apache-2.0
# CrmTest/Values.pm: values for the schemas of an OpenAPI document: valid ones,
# and values at the limits, which are just valid or just invalid
#
#     my $values = CrmTest::Values->new($openapi, sub { $id_of{$_[0]} });
#     my $body = $values->whole($schema, 3);      # every member
#     for my $case ($values->around($schema, $body)) {
#         # $case->{value} is $body with $case->{what} at $case->{at}
#     }
#
# CrmTest::OpenAPI::refused() decides by the document whether a value of
# around() is valid.
package CrmTest::Values;
use strict;
use warnings;
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use CrmTest::OpenAPI;

# Values by the schemas of OPENAPI, a CrmTest::OpenAPI. ID->(name, n) is the
# n-th id that the member NAME may have.
sub new {
    my ($class, $openapi, $id) = @_;
    return bless { openapi => $openapi, id => $id }, $class;
}

# The types of SCHEMA but null, in its order.
sub types_of {
    my ($schema) = @_;
    my $types = $schema->{type} // [];

    return grep { $_ ne "null" } ref $types ? @$types : $types;
}

# Of the members of which SCHEMA, an object's, may have one only: those that it
# cannot have beside NAME, which is one of them. NAME undefined: all of them.
sub rivals {
    my ($schema, $name) = @_;
    my %null = map { $_ => 1 } map { keys %{$_->{properties}} }
        @{$schema->{oneOf} || []};

    return () if defined $name && !$null{$name};
    return grep { $_ ne ($name // "") } sort keys %null;
}

# The members that SCHEMA, an object's, must have: those of "required", the first
# of those of which it has one, and one of those that must not all be empty: the
# one that an error about it names, which is the last by the alphabet
# (contact_id, not company_id).
sub least_members {
    my ($self, $schema) = @_;
    my @either = sort keys %{($schema->{not} || {})->{properties} || {}};

    return (@{$schema->{required} || []}, (rivals($schema))[0] // (),
        $either[-1] // ());
}

# --- values that fit ----------------------------------------------------------

# Whether SCHEMA is of a time; one that is sent has a pattern, as it may be a date.
sub is_time {
    my ($schema) = @_;
    return ($schema->{format} // "") eq "date-time"
        || ($schema->{pattern} // "") =~ /^\^\[0-9\]\{4\}-\(0/;
}

my %make = (
    boolean => sub { $_[3] % 2 ? JSON::PP::true : JSON::PP::false },
    number => sub { $_[3] % 5 / 4 },
    integer => sub {
        my ($self, $schema, $name, $n) = @_;
        return ($schema->{minimum} // 0) + $n;
    },
    string => sub {
        my ($self, $schema, $name, $n) = @_;
        my $format = $schema->{format} // "";

        return $self->{id}->($name, $n) if $format eq "uuid";
        return sprintf "2026-%02d-%02dT01:02:03.%03dZ", 1 + $n / 28 % 12,
            1 + $n % 28, $n % 1000 if is_time($schema);
        return encode_base64("$name $n", "")
            if ($schema->{contentEncoding} // "") eq "base64";
        return ($schema->{examples}[0] // "$name ") . $n;
    },
    array => sub {
        my ($self, $schema, $name, $n) = @_;
        return [$self->value($schema->{items}, $name, $n)];
    },
    object => sub {
        my ($self, $schema, $name, $n) = @_;
        return { key => "$name $n" } unless $schema->{properties};
        return $self->whole($schema, $n);
    },
);

# The N-th value (0, 1 ...) that SCHEMA allows the member NAME; never null.
sub value {
    my ($self, $schema, $name, $n) = @_;

    $schema = $self->{openapi}->resolve($schema);
    # the last alternative is the richest: an address as an object
    return $self->value($schema->{anyOf}[-1], $name, $n)
        if $schema->{anyOf} && !types_of($schema);
    if ($schema->{enum}) {
        my @values = grep { defined } @{$schema->{enum}};
        return $values[$n % @values];
    }
    my ($type) = types_of($schema);
    my $value = $make{$type || "string"}->($self, $schema, $name, $n);
    my @problems = $self->{openapi}->problems($value, $schema, $name);
    die "Values: @problems\n" if @problems;
    return $value;
}

# An object by SCHEMA with every member that it can have at once, and with those
# only that it must have.
sub whole {
    my ($self, $schema, $n) = @_;
    my $properties = ($schema = $self->{openapi}->resolve($schema))->{properties};
    my %whole = map { $_ => $self->value($properties->{$_}, $_, $n) }
        keys %$properties;

    delete @whole{rivals($schema, (rivals($schema))[0])};
    return \%whole;
}

sub least {
    my ($self, $schema, $n) = @_;

    $schema = $self->{openapi}->resolve($schema);
    return { map { $_ => $self->least_value($schema->{properties}{$_}, $_,
        $n) } $self->least_members($schema) };
}

# A value whose objects have only what they must have.
sub least_value {
    my ($self, $schema, $name, $n) = @_;

    $schema = $self->{openapi}->resolve($schema);
    return $self->least($schema, $n) if $schema->{properties};
    return $self->value($schema, $name, $n) unless $schema->{items};
    return [$self->least_value($schema->{items}, $name, $n)];
}

# --- values around them -------------------------------------------------------

# The name of a case whose id is valid by the schema but does not exist.
our $NOTHING = "an id of nothing";

my %other = (null => undef, boolean => JSON::PP::true, integer => 7,
    number => 1.5, string => "x", array => ["x"], object => { a => 1 });

# A text of LENGTH characters by SCHEMA that is longer than its examples.
sub text_of {
    my ($self, $schema, $length) = @_;
    my $example = $schema->{examples}[0] // "";

    return $length <= length $example ? substr $example, 0, $length
        : ("x" x ($length - length $example)) . $example if $example ne "";
    return "\x{20ac}" x $length;
}

# What EXAMPLE of a pattern becomes by small changes, named.
sub odd_texts {
    my ($example) = @_;
    my $half = length($example) / 2;

    return (["the example twice", $example x 2],
        ["half of it", substr $example, 0, $half],
        ["the other half", substr $example, $half],
        ["a letter before it", "x$example"],
        map { my $odd = $example; substr $odd, $half, 0, chr $_;
            [sprintf("U+%04X in it", $_), $odd] } 0x9, 0x20, 0x7f, 0xa0);
}

# Texts in base64 (RFC 4648, 4), and texts that are nearly so, named.
sub around_base64 {
    return (["one byte", "YQ=="], ["two bytes", "YWI="], ["all characters",
        "ABCDabcd0189+/+/"], ["no padding", "YQ"], ["half a padding", "YQ="],
        ["three paddings", "Y==="], ["padding alone", "===="],
        ["padding before the end", "YQ==YQ=="], ["the alphabet of URLs",
        "-_-_"], ["a space", "YWJj YWJj"], ["lines", "YWJj\r\nYWJj"],
        ["a character before", " YWJj"], ["no ASCII", "YWJ\x{e4}"]);
}

# What stands for VALUE by SCHEMA, of the types that it has: [what, value] each.
my %near = (
    string => sub {
        my ($self, $schema) = @_;
        my ($least, $most) = @$schema{qw(minLength maxLength)};
        my $format = $schema->{format} // "";

        return (["no id", "x"], ["an empty id", ""], [$NOTHING,
            "00000000-0000-4000-8000-000000000000"]) if $format eq "uuid";
        return (["no time", "yesterday"], ["a 13th month",
            "2026-13-01T00:00:00Z"], ["a day in words",
            "2026-01-first"]) if is_time($schema);
        return map { ["the value $_", $_] } (grep { defined }
            @{$schema->{enum}}), "no such value", "" if $schema->{enum};
        return (["an empty text", ""], ["quotes and a backslash", "\"'\\"],
            $schema->{contentEncoding} ? around_base64()
                : $schema->{pattern} ? odd_texts($schema->{examples}[0]) : (),
            map { ["$_ characters", $self->text_of($schema, $_)] }
                defined $most ? ($most, $most + 1) : 100_000);
    },
    integer => sub {
        my ($self, $schema) = @_;
        my ($least, $most) = @$schema{qw(minimum maximum)};

        return (["a half", 0.5], map { ["the number $_", $_ + 0] }
            $least // -1_000_000, ($least // 0) - 1, $most // 1_000_000,
            defined $most ? $most + 1 : ());
    },
    number => sub {
        my ($self, $schema) = @_;
        my ($over, $under) = @$schema{qw(exclusiveMinimum exclusiveMaximum)};

        return map { ["the number $_", $_ + 0] } 0, -0.5, 0.0001,
            defined $over ? ($over, $over + 1) : (),
            defined $under ? ($under, $under - 1) : ();
    },
    array => sub {
        my ($self, $schema, $name) = @_;
        my $items = $self->{openapi}->resolve($schema->{items});
        # many objects could not all be the primary one
        $items = $items->{anyOf}[0] if $items->{anyOf};

        return (["an empty list", []], map { my $n = $_;
            ["$n items", [map { $self->value($items, $name, $_) } 1 .. $n]] }
            defined $schema->{maxItems}
                ? ($schema->{maxItems}, $schema->{maxItems} + 1) : 2000);
    },
    object => sub { $_[1]{properties} ? () : ["an empty object", {}] },
    boolean => sub { map { ["it $_", $_] } JSON::PP::true, JSON::PP::false },
);

# The cases of the members of VALUE, an object by SCHEMA at AT.
sub around_members {
    my ($self, $schema, $value, $at) = @_;
    my $below = $at eq "" ? "" : "$at.";
    my @cases;

    for my $name (sort keys %{$schema->{properties}}) {
        my $member = $schema->{properties}{$name};
        my %beside = %$value;
        delete @beside{rivals($schema, $name)};
        push @cases, map { { %$_, value => { %beside,
            $name => $_->{value} } } } $self->around($member,
                $value->{$name} // $self->least_value($member, $name, 1),
                "$below$name");
        next unless exists $value->{$name};
        my %without = %$value;
        delete $without{$name};
        push @cases, { at => "$below$name", what => "nothing",
            value => \%without };
    }
    return (@cases, { at => "${below}nonsense", what => "an unknown member",
        value => { %$value, nonsense => 1 } });
}

# Cases around VALUE, one by SCHEMA that the client knows as AT: each has one
# thing instead of what is at {at}, {what} in words, and is {value} as a whole.
sub around {
    my ($self, $schema, $value, $at) = @_;
    my ($name) = ($at //= "") =~ /(\w*)(?:\[\d+\])?$/;
    my @cases;

    $schema = $self->{openapi}->resolve($schema);
    if ($schema->{anyOf} && !types_of($schema)) {
        return map { $self->around($_, $self->value($_, $name, 1), $at) }
            @{$schema->{anyOf}};
    }
    my @types = types_of($schema);
    if ($at ne "") {
        my %allowed = map { $_ => 1 } @types;
        $allowed{integer} = 1 if $allowed{number};
        push @cases, map { { at => $at, what => "the type $_",
            value => $other{$_} } } grep { !$allowed{$_} } sort keys %other;
    }
    push @cases, map { { at => $at, what => $_->[0], value => $_->[1] } }
        map { $near{$_}->($self, $schema, $name) } @types;
    push @cases, $self->around_members($schema, $value, $at)
        if $schema->{properties};
    push @cases, map { { %$_, value => [$_->{value}] } }
        $self->around($schema->{items}, $value->[0], "${at}[0]")
        if ref $value eq "ARRAY" && @$value;
    return @cases;
}

1;
