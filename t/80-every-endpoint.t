# SPDX-License-Identifier: Apache-2.0
# 80-every-endpoint.t: what holds for every operation, taken from the OpenAPI
# document: keys, scopes, plans, unknown ids, media types, budgets
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Samples;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1,
    conf => "CrmApiMaxBody 4096\n");
my $w = workspace($httpd, plan => "pro");
my $c = $w->client;
my $samples = CrmTest::Samples->new($w);
my $document = $samples->openapi->{document};
my @operations;

for my $path (sort keys %{$document->{paths}}) {
    next if $path eq "/api/v1/openapi.json";
    for my $method (grep { $_ ne "head" } sort keys
            %{$document->{paths}{$path}}) {
        push @operations, { %{$document->{paths}{$path}{$method}},
            method => uc $method, path => $path };
    }
}
cmp_ok(scalar @operations, ">", 30, "there are operations");

# The path of OPERATION with ID in the place of its parameter.
sub path_of {
    my ($operation, $id) = @_;
    return $samples->path($operation->{path}, $id);
}

# Do OPERATION on ID with what ARG says beside.
sub call {
    my ($client, $operation, $id, %arg) = @_;

    $arg{body} //= "{}" if $operation->{requestBody};
    return $client->request($operation->{method}, path_of($operation, $id),
        %arg);
}

my $none = uuid();
# Statuses of what may be done, if there were something and the body were right.
# 409: the events of a workspace are off.
my $ADMITTED = qr/^(?:2..|400|404|409|422)$/;

# The id of what is there for OPERATION.
sub there {
    my ($operation) = @_;
    return $samples->id_for($operation->{path}) // $none;
}

subtest "3.1 without a key: 401" => sub {
    error_is(call($c, $_, $none, key => undef), 401, "unauthorized",
        "$_->{operationId} without") for @operations;
    error_is(call($c, $_, $none, key => "svc_live_" . "x" x 30), 401,
        "unauthorized", "$_->{operationId} with an unknown one")
        for @operations;
};

subtest "3.3 a read-only key does not write" => sub {
    my $reader = $c->with_key($w->make_key("read"));
    for my $operation (@operations) {
        my $r = call($reader, $operation, $none);
        if ($operation->{method} eq "GET") {
            like($r->status, $ADMITTED, "$operation->{operationId} reads");
        }
        else {
            error_is($r, 403, "forbidden", "$operation->{operationId}");
        }
    }
};

subtest "3.3 plans" => sub {
    my $free = workspace($httpd, plan => "starter", seed => 0)->client;
    my $standard = workspace($httpd, plan => "standard", seed => 0)->client;
    for my $operation (@operations) {
        error_is(call($free, $operation, $none), 403, "forbidden",
            "$operation->{operationId} on starter");
        my $status = call($standard, $operation, $none)->status;
        if ($operation->{path} =~ m{^/api/v1/sequences/}) {
            is($status, 403, "$operation->{operationId} on standard");
        }
        else {
            like($status, $ADMITTED, "$operation->{operationId} on standard");
        }
    }
};

subtest "6.8 ids in the path: unknown, malformed, another's: 404" => sub {
    for my $operation (grep { $_->{path} =~ /\{id\}/ } @operations) {
        my $name = $operation->{operationId};
        my $unknown = call($c, $operation, $none);
        error_is($unknown, 404, "not_found", $name);
        for my $id ("x-1", $w->twin_of(there($operation)) // ()) {
            my $other = call($c, $operation, $id);
            is($other->status, 404, "$name: $id");
            is($other->body, $unknown->body, "2.1 $name: is the same");
        }
    }
};

subtest "7.1 Prefer: handling=strict refuses unknown parameters" => sub {
    for my $operation (@operations) {
        my $r = call($c, $operation, there($operation), query =>
            { nonsense => 1, map { $_->{name} => 'a@b.example' }
                grep { $_->{required} && $_->{in} eq "query" }
                @{$operation->{parameters}} },
            headers => { Prefer => "handling=strict" });
        # 8.2 a start without its required fields is a 400, whatever else
        my @error = $operation->{operationId} eq "startSequence"
            ? (400, "bad_request") : (422, "validation_error");
        error_is($r, @error, $operation->{operationId});
        ok((grep { $_ eq "nonsense" } @{$r->fields}), "and names it");
    }
};

# A body that OPERATION does not take: an answer may come with files (19.1).
sub too_large {
    my ($operation) = @_;
    return "x" x ($operation->{operationId} eq "createMessage"
        ? 15 * 1024 * 1024 + 1 : 5000);
}

subtest "2 an unknown parameter comes after 403, 415, 413, 400, 404" => sub {
    my $reader = $c->with_key($w->make_key("read"));
    for my $operation (@operations) {
        my $name = $operation->{operationId};
        my $fails = sub {
            my ($client, $id, $status, $code, %arg) = @_;
            my %headers = (Prefer => "handling=strict",
                %{delete $arg{headers} || {}});
            my $r = call($client, $operation, $id, query => "nonsense=1",
                headers => \%headers, %arg);
            error_is($r, $status, $code, "$name: $status first");
            return $r;
        };
        $fails->($reader, $none, 403, "forbidden")
            if $operation->{method} ne "GET";
        $fails->($c, $none, 404, "not_found")
            if $operation->{path} =~ /\{id\}/;
        next if !$operation->{requestBody};
        $fails->($c, $none, 415, "unsupported_media_type",
            headers => { "Content-Type" => "text/plain" });
        $fails->($c, $none, 413, "payload_too_large",
            body => too_large($operation));
        $fails->($c, $none, 400, "bad_request", body => "{");
        is_deeply($fails->($c, there($operation), 422, "validation_error",
            body => "[]")->fields, ["", "nonsense"],
            "5.6 $name: and beside what the body has wrong");
    }
};

subtest "5.3, 6.1 bodies" => sub {
    for my $operation (grep { $_->{requestBody} } @operations) {
        my $name = $operation->{operationId};
        error_is(call($c, $operation, $none, headers =>
            { "Content-Type" => "text/plain" }), 415,
            "unsupported_media_type", "$name: text/plain");
        error_is(call($c, $operation, $none, body => too_large($operation)),
            413, "payload_too_large", "$name: too large");
        error_is(call($c, $operation, $none, body => "{"), 400,
            "bad_request", "$name: broken");
        error_is(call($c, $operation, $none, body => ""), 400,
            "bad_request", "$name: empty");
        error_is(call($c, $operation, there($operation), body => $_), 422,
            "validation_error", "5.6, 6.1 $name: $_ names the body", [""])
            for "[]", "null", "1", '"text"';
    }
};

subtest "6.2 what GET gave can be sent back as a PATCH, and changes nothing" => sub {
    for my $operation (grep { $_->{method} eq "PATCH" } @operations) {
        my ($schema) = $samples->shown($operation);
        for my $id ($samples->ids($schema)) {
            my $path = path_of($operation, $id);
            my $whole = $c->get($path);
            my $r = $c->request("PATCH", $path, json => $whole->data);
            is($r->status, 200, "$operation->{operationId}: $id")
                or diag($r->body);
            is_deeply($r->json, $whole->json,
                "$operation->{operationId}: $id is as it was");
        }
    }
};

subtest "5.4 X-Request-Id is kept" => sub {
    for my $operation (@operations) {
        my $r = call($c, $operation, $none,
            headers => { "X-Request-Id" => "a-1" });
        is($r->header("X-Request-Id"), "a-1", $operation->{operationId});
    }
};

subtest "5.1 HEAD, OPTIONS, other methods" => sub {
    my %methods;
    push @{$methods{$_->{path}}}, $_->{method} for @operations;
    for my $path (sort keys %methods) {
        my @allowed = @{$methods{$path}};
        my $at = path_of({ path => $path }, $none);
        my $r = $c->options($at, key => undef);
        is($r->status, 204, "OPTIONS $path");
        is_deeply([sort split /, /, $r->header("Allow")],
            [sort @allowed, "OPTIONS", grep({ $_ eq "GET" } @allowed)
                ? "HEAD" : ()], "Allow of $path");
        my ($other) = grep { my $m = $_; !grep { $_ eq $m } @allowed }
            qw(PUT);
        error_is($c->request($other, $at, body => "{}"), 405,
            "method_not_allowed", "$other $path");
        next unless grep { $_ eq "GET" } @allowed;
        my $get = $c->get($at);
        my $head = $c->head($at);
        is($get->header("Content-Length"), length $get->body,
            "GET $path tells its length");
        is($head->status, $get->status, "HEAD $path");
        is($head->header("Content-Length"), $get->header("Content-Length"),
            "with the same length");
        is($head->body, "", "and no body");
    }
};
$httpd->stop;

subtest "4.3 429 on every operation" => sub {
    my $tight = httpd(database => $database,
        conf => "CrmApiReadLimit 1\nCrmApiWriteLimit 1\n");
    for my $operation (@operations) {
        my $client = $tight->client(key => $w->make_key("read,write"));
        call($client, $operation, $none);
        my $r = call($client, $operation, $none);
        error_is($r, 429, "rate_limited", $operation->{operationId});
        cmp_ok($r->header("Retry-After"), ">=", 1, "with Retry-After");
    }
    $tight->stop;
};

done_testing;
