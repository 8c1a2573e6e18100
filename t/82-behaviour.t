# SPDX-License-Identifier: Apache-2.0
# 82-behaviour.t: the served OpenAPI document against what the server does:
# values of its query parameters, bodies around its schemas
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Samples;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $samples = CrmTest::Samples->new($w);
# conversations do not show their updated_at: it is to be what they show; nor whether
# they wait for an answer: of each contact every other one does
sql($database, "UPDATE crmapi.conversation c SET updated_at = created_at,
        unanswered = n.number % 2 = 1
    FROM (SELECT workspace_id, id, row_number() OVER (PARTITION BY workspace_id,
        contact_id ORDER BY id) AS number FROM crmapi.conversation) n
    WHERE n.workspace_id = c.workspace_id AND n.id = c.id");
my $openapi = $samples->openapi;
my $paths = $openapi->{document}{paths};
my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my @operations = map { my $path = $_; map { { %{$paths->{$path}{$_}},
    method => uc $_, path => $path } } grep { $_ ne "head" }
    sort keys %{$paths->{$path}} } sort keys %$paths;

# The address of OPERATION, of something that is there.
sub address {
    my ($operation) = @_;
    return $samples->path($operation->{path},
        $samples->id_for($operation->{path}) // "");
}

# --- query parameters ---------------------------------------------------------

# GET OPERATION with QUERY. What the document declares is never unknown.
sub ask {
    my ($operation, $query) = @_;
    return $c->get(address($operation), query => $query,
        headers => { Prefer => "handling=strict" });
}

# The rows that RESPONSE shows.
sub rows_of {
    my ($r) = @_;
    return $r->status == 200 && ref $r->data eq "ARRAY" ? @{$r->data} : ();
}

sub distinct {
    my %seen;
    return grep { defined && !$seen{$_}++ } map { ref eq "ARRAY" ? @$_ : $_ }
        @_;
}

# Whether the parameter NAME is the id of a row. A filter takes any text.
sub is_id { $_[0] =~ /(?<!^visitor)(?<!^external)_id$/ }

# The field of ROW that the parameter NAME is about.
sub field_of {
    my ($name, $row) = @_;
    my $field = $name =~ s/_(?:after|before)$/_at/r;
    my %other = (due_at => "due_date", completed => "completed_at",
        created_at => "submitted_at");

    return !exists $row->{$field} && exists $row->{$other{$field} // ""}
        ? $other{$field} : $field;
}

# Parameters that name an address => the list of a row that it is in, and the
# member there.
my %addresses = (email => ["emails", "email"],
    phone => ["phone_numbers", "phone_number"]);

# Values of PARAMETER that should make a difference to ROWS.
sub tried {
    my ($parameter, @rows) = @_;
    my ($name, $schema) = @$parameter{qw(name schema)};

    return @{$schema->{enum}} if $schema->{enum};
    return qw(true false) if ref $schema->{type};      # a boolean
    return split /\|/, $1 =~ s/\[\.\]/./gr
        if ($schema->{pattern} // "") =~ /^\^(?:\[\\s,\]\*)?\(\?:([^)]*)/;
    return join ",", map { $_->{id} } @rows[0, 2] if $name eq "ids";
    return distinct(map { my $row = $_; map { $_->{$addresses{$name}[1]} }
        @{$row->{$addresses{$name}[0]}} } @rows)
        if $addresses{$name} && $rows[0]{$addresses{$name}[0]};
    return $schema->{default} ? "end" : "*" if $name eq "cursor";
    return 2 if $schema->{type} eq "integer";
    my @own = distinct(map { $_->{field_of($name, $_)} } @rows);
    # a time that is not shown: it is made equal to one that is, above
    @own = distinct(map { $_->{created_at} } @rows)
        if !@own && CrmTest::Values::is_time($schema);
    return (@own, uuid()) if @own && is_id($name);
    return @own if @own;
    return map { $samples->reference($name, $_) } 0 .. 2 if is_id($name);
    # any text of a row: one of them can be searched
    return grep { length $_ <= $schema->{maxLength} } distinct(map { my $row
        = $_; map { $row->{$_} } grep { !ref $row->{$_} && !/_id$|^id$/ }
        sort keys %$row } @rows[0 .. 3]);
}

# What PARAMETER works with, by its kind: what else a request must say.
sub beside {
    my ($parameter, @rows) = @_;
    my ($of) = $parameter->{name} =~ /^(\w+)_match$/;

    return ($of => join ",", (distinct(map { $_->{$of} } @rows))[0, 1]) if $of;
    return $parameter->{name} eq "page" ? (page_size => 5) : ();
}

# Those of ROWS that have VALUE of the parameter NAME; nothing where no field
# tells.
sub having {
    my ($name, $value, @rows) = @_;
    my $field = field_of($name, $rows[0]);

    return [grep { index($value, $_->{id}) >= 0 } @rows] if $name eq "ids";
    return [grep { grep { lc $_->{email} eq lc $value } @{$_->{emails}} }
        @rows] if $name eq "email" && $rows[0]{emails};
    return undef if !@rows || !exists $rows[0]{$field};
    return [grep { my $has = $_->{$field};
        $name =~ /_after$/ ? defined $has && $has ge $value
        : $name =~ /_before$/ ? defined $has && $has le $value
        : ref $has eq "ARRAY" ? grep { $_ eq $value } @$has
        : $value =~ /^(?:true|false)$/ ? !$has eq ($value eq "false")
        : defined $has && $has eq $value } @rows];
}

# What PARAMETER of OPERATION must not be, as query values.
sub wrong_values {
    my ($parameter) = @_;
    my $schema = $parameter->{schema};

    return ($schema->{enum} || $schema->{pattern}
            || CrmTest::Values::is_time($schema)
            || $schema->{type} eq "integer"
            || $parameter->{name} eq "cursor" ? "perhaps" : (),
        $schema->{maxLength} ? "x" x ($schema->{maxLength} + 1) : (),
        (map { $_ - 1 } grep { defined } $schema->{minimum}),
        (map { $_ + 1 } grep { defined } $schema->{maximum}),
        $parameter->{name} =~ /^(?:search|tags)$/ ? () : "");
}

# The greatest and least values that PARAMETER may have, as query values.
sub bounds {
    my ($parameter) = @_;
    my $schema = $parameter->{schema};

    return ((grep { defined } @$schema{qw(minimum maximum)}),
        $schema->{maxLength} && !$schema->{pattern} && !$schema->{enum}
            && !$schema->{format} ? "x" x $schema->{maxLength} : ());
}

# PARAMETER of OPERATION, a list, makes the difference that its name tells.
sub parameter_works {
    my ($operation, $parameter, @rows) = @_;
    my ($name, $schema) = @$parameter{qw(name schema)};
    my %beside = beside($parameter, @rows);
    my $plain = ask($operation, { page_size => 100, %beside })->body;
    my @tried = tried($parameter, @rows);
    my $other = 0;

    for my $value (@tried) {
        my $r = ask($operation, { page_size => 100, %beside, $name => $value });
        status_is($r, 200, "$name=$value") or next;
        # a channel is named in many ways (7.6), but shown in one
        my $having = $name eq "type" && $value !~ /^\d$/ ? undef
            : having($name, $value, @rows);
        is_deeply($r->ids, [map { $_->{id} } @$having],
            "$name=$value: those that have it, and no other") if $having;
        $other ||= $r->body ne $plain
            && ($having || $value eq "end" || @{$r->data});
    }
    # t/79-wait.t: a page that has something does not wait
    ok($name eq "wait" ? !$other : $other, "$name changes the answer")
        or diag("tried: @tried");
    error_is(ask($operation, { %beside, $name => $_ }), 422,
        "validation_error", "$name=" . substr($_, 0, 10) . ": 422", [$name])
        for wrong_values($parameter);
    status_is(ask($operation, { %beside, $name => $_ }), 200,
        "$name=" . substr($_, 0, 20) . ": as much as it may be")
        for bounds($parameter);
    error_is(ask($operation, { %beside, $name => [@tried[0, 0]] }), 422,
        "validation_error", "7.1 $name twice", [$name]);
    return unless is_id($name);
    is_deeply(ask($operation, { $name => $_ })->data, [],
        "6.8 $name=$_: an empty list") for uuid(), "x";
}

# Those of OPERATION in the query.
sub parameters {
    my ($operation) = @_;
    return grep { $_->{in} eq "query" } map { $openapi->resolve($_) }
        @{$operation->{parameters} || []};
}

# The ids of the first COUNT rows of OPERATION, a list, read in small pages: by
# their numbers, or by cursor if they have none.
sub pages {
    my ($operation, $count) = @_;
    my $numbers = grep { $_->{name} eq "page" } parameters($operation);
    my ($cursor, @ids) = ("*");

    for my $page (1 .. 1 + $count / 7) {
        my $r = ask($operation, { page_size => 7, $numbers ? (page => $page)
            : (cursor => $cursor) });
        $cursor = $r->json->{pagination}{next_cursor};
        push @ids, @{$r->ids};
    }
    return @ids > $count ? @ids[0 .. $count - 1] : @ids;
}

for my $operation (@operations) {
    my @parameters = parameters($operation) or next;
    next if !($samples->shown($operation))[1];
    subtest "GET $operation->{path}: parameters" => sub {
        my @rows = rows_of(ask($operation, { page_size => 100 }));
        cmp_ok(scalar @rows, ">=", 5, "there are rows") or return;
        my @ids = pages($operation, scalar @rows);
        is("@ids", join(" ", map { $_->{id} } @rows),
            "its pages are the whole list");
        # t/18-filters.t asks for members of custom_fields
        parameter_works($operation, $_, @rows)
            for grep { $_->{name} !~ /\.NAME$/ } @parameters;
    };
}

subtest "GET /api/v1/contacts/by-email: its parameter" => sub {
    my ($operation, @others) = grep { parameters($_)
        && !($samples->shown($_))[1] } @operations;
    is($operation->{path}, "/api/v1/contacts/by-email", "it has one");
    is_deeply([sort map { $_->{operationId} } @others],
        ["getConversation", "getEnrollment", "getMessage"], "others only have include");
    error_is(ask($operation, {}), 422, "validation_error", "7.8 it is missing",
        ["email"]);
    my %primary = map { $_->{emails}[0]{email} => 1 } grep { @{$_->{emails}} }
        rows_of(ask({ path => "/api/v1/contacts" }, {}));
    cmp_ok(scalar keys %primary, ">", 1, "there are addresses");
    is(ask($operation, { email => $_ })->data->{emails}[0]{email}, $_,
        "email=$_: who has it") for sort keys %primary;
};

for my $id (qw(getMessage getConversation)) { subtest "$id: include" => sub {
    my ($operation) = grep { $_->{operationId} eq $id } @operations;
    my ($include) = parameters($operation);
    my %plain = %{ask($operation, {})->data};
    my @names = tried($include);
    cmp_ok(scalar @names, ">", 1, "there are names");
    for my $names (@names, join ",", @names) {
        my %more = %{ask($operation, { include => $names })->data};
        is_deeply([sort keys %more], [sort keys %{{ map { $_ => 1 }
            keys %plain, split /,/, $names }}], "include=$names shows these, too");
    }
    error_is(ask($operation, { include => $_ }), 422, "validation_error",
        "include=$_: 422", ["include"]) for wrong_values($include), "$names[0],x", ",", " , ";
} }

# --- bodies, which leave much behind: in a workspace of their own -------------

$w = workspace($httpd);
$c = $w->client;
$samples = CrmTest::Samples->new($w);
my $values = $samples->values;

# The fields that RESPONSE complains of; those of an upsert's item, too, whose
# failure is no failure of the request (contract 10.2).
sub complaints {
    my ($r) = @_;
    my @details = @{$r->details || []};

    push @details, map { @{$_->{details} || []} } @{$r->data->{errors} || []}
        if $r->status == 200 && ref $r->data eq "HASH";
    return map { $_->{field} } @details;
}

# What RESPONSE shows of the resource that was written.
sub written {
    my ($r) = @_;
    my $data = $r->data;

    return $data->{created} ? $data->{created}[0] // $data->{updated}[0]
        : $data;
}

# Whether the member NAME of what RESPONSE shows is what was sent. A null is
# as good as nothing, and clears.
sub is_kept {
    my ($r, $name, $sent, $what) = @_;
    my $row = written($r);

    return if !exists $row->{$name} || ($r->status != 200 && !defined $sent);
    my $kept = $row->{$name};
    if (defined $sent) {
        # addresses may be sent as texts, and what was there stays (10.3)
        return if ref $sent eq "ARRAY" && $name =~ /^(?:emails|phone_numbers)$/;
        $sent += 0 if !ref $sent && !ref $kept
            && CrmTest::OpenAPI::type_of($sent) =~ /^(?:integer|number)$/;
    }
    else {
        $sent = ref $kept eq "ARRAY" ? [] : ref $kept eq "HASH" ? {} : undef;
    }
    is($json->encode([$kept]), $json->encode([$sent]), "$what: is kept");
}

# OPERATION with BODY in which WHAT is at AT does what the document says.
sub body_is_right {
    my ($operation, $schema, $body, $at, $what) = @_;
    my $name = "$at: $what";
    # an external_id is one row's: what earlier cases have left has none
    my ($table) = $operation->{path} =~ m{^/api/v1/(contact|compan)[^/]*(?:/\{id\})?$};
    sql($database, "UPDATE crmapi." . ($table eq "compan" ? "company" : $table)
        . " SET external_id = NULL WHERE external_id IS NOT NULL")
        if $table && defined $body->{external_id};
    # and an address that is suppressed stays as it is
    sql($database, "DELETE FROM crmapi.suppression")
        if $operation->{path} eq "/api/v1/suppressions";
    # a company that is new must have a name: the document cannot say so of an item
    $_->{name} = "N" for grep { ref eq "HASH" && !exists $_->{name}
        && $at !~ /\.name$/ } ref $body->{companies} eq "ARRAY"
        ? @{$body->{companies}} : ();
    my $start = $operation->{path} =~ m{/sequences/start$};
    # what a contact can have is for a new one, to which nothing is added, and
    # which must have an address
    delete $body->{contact_id} if $start && $at =~ /^contact(?!_id)/;
    $body->{contact}{emails} = ["new\@start.example"]
        if $start && $at =~ /^contact\./ && ref $body->{contact} eq "HASH"
        && !grep { exists $body->{contact}{$_} } qw(emails phone_numbers);
    my @refused = $openapi->refused($body, $schema);
    push @refused, $at if $what eq $CrmTest::Values::NOTHING;   # 6.8
    my $r = $c->request($operation->{method}, address($operation),
        json => $body);

    if ($what eq $CrmTest::Values::NOTHING && $at eq "template_id") {
        error_is($r, 404, "not_found", "8.2 $name: is not found");
        return;
    }
    if (!@refused) {
        my $fine = $r->status =~ /^2/ && !complaints($r);
        ok($fine, "$name: is taken") or diag($r->text);
        is_kept($r, $at, $body->{$at}, $name)
            if $fine && exists $body->{$at};
        # so is the next one's
        $c->delete("/api/v1/contacts/" . $r->data->{contact_id})
            if $fine && $start && !defined $body->{contact_id};
        # a long text need not come back with every later answer
        $c->patch(address($operation), $values->whole($schema, 2))
            if $operation->{method} eq "PATCH" && length $r->body > 10_000;
        return;
    }
    # contract 8.2: there, what is missing at all is a 400
    my $none = $start && !grep { defined $body->{$_} } qw(contact contact_id);
    my $missing = $none || $start
        && grep { !defined $body->{$_} } @{$schema->{required}};
    my $item = $r->status == 200 && $r->data->{errors};
    is($r->status, $missing ? 400 : $item ? 200 : 422, "$name: is refused")
        or diag($r->text);
    # that contact has no address, the document says of the whole body
    my %where = map { $_ => 1 } $at, @refused, $start ? "contact" : ();
    my @others = grep { my $field = $_;
        !grep { $field eq $_ || $field =~ /^\Q$_\E[.\[]/ } keys %where }
        complaints($r);
    ok(complaints($r) && !@others, "$name: which is named, and nothing else")
        or diag(join " ", $r->text, "wrong by the document:", sort keys %where);
}

# The cases of OPERATION's body: at, what, the whole body. A body has what it
# must have, and of the rest the member that the case is about.
sub cases_of {
    my ($schema) = @_;
    my $least = $values->least($schema, 1);
    my @cases = (["", "what is required", $least],
        ["", "everything", $values->whole($schema, 2)]);

    for my $case ($values->around_members($schema, $least, "")) {
        push @cases, [@$case{qw(at what value)}];
    }
    return @cases;
}

for my $operation (grep { $_->{requestBody} } @operations) {
    subtest "$operation->{method} $operation->{path}: bodies" => sub {
        my $schema = $openapi->resolve($operation->{requestBody}{content}
            {"application/json"}{schema});
        # what a GET has shown is sent back below
        my $members = $schema->{properties};
        my @shown = grep { ($members->{$_}{'$ref'} // "") =~ m{/Shown$} }
            keys %$members;
        $schema = { %$schema, properties => { %$members } };
        delete @{$schema->{properties}}{@shown};
        # only a mail with an address can have all that an answer may have
        sql($database, "UPDATE crmapi.conversation SET type = 4, email ="
            . " 'p\@example.org'") if $operation->{path} =~ m{/messages$};
        for my $case (cases_of($schema)) {
            my ($at, $what, $body) = @$case;
            body_is_right($operation, $schema, $body, $at, $what);
            next if $what ne "an unknown member";
            my $r = $c->request($operation->{method}, address($operation),
                json => $body, headers => { Prefer => "handling=lenient" });
            ok($r->status =~ /^2/ && !complaints($r),
                "6.2 $at: handling=lenient ignores it") or diag($r->text);
        }
        return if $operation->{method} ne "PATCH";
        my $row = $c->get(address($operation))->data;
        is_deeply([$openapi->refused($row, { %$schema,
            properties => $members })], [], "20.7 the document takes what a GET"
            . " has shown");
        status_is($c->patch(address($operation), $row), 200, "6.2 so does the"
            . " server");
    };
}

# --- numbers ------------------------------------------------------------------

# The places of VALUE, at AT, whose integers have no format, but may be beyond 32 bits:
# code that is made from the document takes them for 32 bits.
sub too_large {
    my ($value, $at) = @_;
    return map { too_large($value->[$_], "$at/$_") } 0 .. $#$value
        if ref $value eq "ARRAY";
    return () if ref $value ne "HASH";
    my $large = ($value->{type} // "") eq "integer" && !$value->{format}
        && (abs($value->{maximum} // 0) > 2**31 - 1
            || ($value->{description} // $at) =~ /Unix time|timestamp|-Reset/);
    return (($large ? $at : ()),
        map { too_large($value->{$_}, "$at/$_") } sort keys %$value);
}

is_deeply([too_large($openapi->{document}, "")], [], "13.6 what may be beyond 32"
    . " bits has the format int64");

$httpd->stop;
done_testing;
