# SPDX-License-Identifier: Apache-2.0
# 54-request-lines.t: logs have no address, name or number of a person and no
# token in a request line, whatever a client sends (contract 14.4, 3.4)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Process qw(read_file wait_for);

# A site logs the line, the path and the query.
my $httpd = httpd(database => database(), shows => ["server-status"],
    conf => <<'END');
CrmApiReview On
CrmApiUnsubscribe On
CrmApiIntake On
CrmApiMcp On
ExtendedStatus On
LogFormat "%{X-Request}i|%r|%U|%q|%>s" lines
CustomLog @DIR@/lines_log lines
END
my $w = workspace($httpd);
my $number = 0;

# What the log has of a request for PATH: line, path, query, status.
sub logged {
    my ($path, %arg) = @_;
    my $id = ++$number;

    $w->client->get($path, headers => { "X-Request" => $id }, %arg);
    my $line = wait_for(sub {
        (read_file($httpd->dir . "/lines_log", "") =~ /^$id\|(.*)$/m)[0]
    }) or die "CrmTest: no line of $path\n";
    return split /\|/, $line, -1;
}

# The parameters of the OpenAPI document that a person can be told by.
my %PERSON = map { $_ => 1 } qw(assigned_to email external_id phone
    phone_number search visitor_id custom_fields.NAME);

subtest "queries: what is known to be harmless" => sub {
    my $document = $w->client->get("/api/v1/openapi.json")->json;
    my %seen;
    for my $path (sort keys %{$document->{paths}}) {
        my $get = $document->{paths}{$path}{get} or next;
        for my $parameter (@{$get->{parameters}}) {
            my $is = $parameter->{'$ref'} ? $document->{components}{parameters}{
                ($parameter->{'$ref'} =~ m{([^/]+)$})[0]} : $parameter;
            next if $is->{in} ne "query" || $seen{$is->{name}}++;
            my ($line, undef, $query) =
                logged("/api/v1/agents?page=1&$is->{name}=Wert");
            my $shown = "?page=1&$is->{name}=Wert";
            is("$line $query", $PERSON{$is->{name}}
                ? "GET /api/v1/agents HTTP/1.1 "
                : "GET /api/v1/agents$shown HTTP/1.1 $shown", $is->{name});
        }
    }
    cmp_ok(scalar keys %seen, ">", 40, "parameters were found");
};

subtest "queries: what is not" => sub {
    for my $query ("email=ann\@x.example", "xemail=1&email=Wert",
            "%65mail=Wert", "Email=Wert", "q=Wert", "Wert", "name=Wert&page=1",
            "page=1&first_name=Wert", "tags=a\@b.Wert", "tags=a%40b.Wert",
            "page=Wert%40b", "&&search=Wert", "page=1&&phone=Wert",
            "myphone=&phone=Wert", "a=b=Wert", "page=1;search=Wert") {
        for my $path ("/api/v1/contacts", "/api/v1/contacts/by-email",
                "/api/v1/none", "/crmapi/intake/v1/events", "/crmapi/mcp") {
            my @line = logged("$path?$query");
            unlike("@line", qr/Wert|ann/, "$path?$query");
            is($line[0], "GET $path HTTP/1.1", "and the path is there");
        }
    }
    my ($line) = logged("/other?search=Wert");
    like($line, qr/search=Wert/, "what is not ours is not touched");
};

subtest "paths" => sub {
    for my $path ("contacts/ann\@x.example", "contacts/ann%40x.example",
            "contacts/ann\@x.example/activities?page=1", "ann\@x.example") {
        my @line = logged("/api/v1/$path");
        unlike("@line", qr/ann|x\.example/, $path);
        like($line[0], qr{^GET /api/v1/(?:contacts/)?- HTTP/1\.1$}, "and why");
    }
    my ($line, $path) = logged("/api/v1/contacts/0x/activities");
    is("$line $path", "GET /api/v1/contacts/0x/activities HTTP/1.1"
        . " /api/v1/contacts/0x/activities", "others are there");
};

subtest "tokens of links" => sub {
    for my $page (qw(review unsubscribe)) {
        for my $path ("Wert", "Wert?done=1", "Wert/x", "a/Wert", "%57ert",
                "./Wert") {
            for my $base ("/crmapi/$page/", "/crmap%69/$page/") {
                my @line = logged("$base$path");
                unlike("@line", qr/[Ww%]ert|57/, "$base$path");
            }
        }
    }
};

subtest "mod_status" => sub {
    # each on a connection of its own, which mod_status shows for a while: until the
    # same thread, or process of prefork, has another one
    for my $path ("contacts?search=Wert", "contacts/ann\@x.example") {
        my $page;
        ok(wait_for(sub {
            my $client = $w->client->with_key($w->key);
            $client->get("/api/v1/$path");
            $client->close;
            $page = $w->client->get("/server-status");
            return $page->body =~ m{/api/v1/contacts};
        }, 20), "shows requests: $path");
        status_is($page, 200);
        unlike($page->body,
            qr{/api/v1/\S*(?:email|search)=|ann@|/crmapi/review/[^-]},
            "but no person");
    }
};

subtest "errors that httpd itself makes" => sub {
    my $long = "Wert" x 3000;
    my %lines = (400 => "GET /api/v1/contacts?email=Wert email= HTTP/1.1",
        "400, too" => "GET /api/v1/contacts/a email=\@x?page=1 email= HTTP/1.1",
        "400 again" => "GET /crmapi/review/a email= HTTP/1.1",
        "400: a fragment" => "GET /api/v1/contacts#email=Wert HTTP/1.1",
        "400: a fragment of an address" => "GET /api/v1/contacts#ann\@x HTTP/1.1",
        "400: a fragment of a query" => "GET /api/v1/contacts?page=1#email= HTTP/1.1",
        414 => "GET /api/v1/contacts?email=$long HTTP/1.1",
        505 => "GET /api/v1/contacts?email=Wert HTTP/7.1",
        501 => "GET /api/v1/contacts?email=Wert HTTP/1.1\r\nTransfer-Encoding: x");
    $httpd->may_log(qr/AH0\d+/);     # httpd's, about such lines
    for my $what (sort keys %lines) {
        my $r = $w->client->raw("$lines{$what}\r\nHost: x\r\n\r\n");
        ok($r && $r->status >= 400, "$what is refused");
    }
    logged("/api/v1/agents");       # the others were logged before it
    unlike(read_file($httpd->dir . "/lines_log"), qr/email=|ann@/,
        "no query is in the log");
};

unlike($httpd->access_log, qr/email=|ann@/, "nor has the site's own log");
done_testing;
