#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 02-harness.t: the tests' own ground: would it notice?
# plain build only
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::OpenAPI;
use File::Temp qw(tempdir);
use JSON::PP ();

my $json = JSON::PP->new->allow_nonref;

# --- the OpenAPI checker -----------------------------------------------------
my $document = $json->decode(<<'END');
{"openapi": "3.1.0", "servers": [{"url": "/api/v1"}],
 "paths": {
  "/things/{id}": {"get": {"parameters": [
      {"name": "id", "in": "path", "required": true},
      {"$ref": "#/components/parameters/deep"}],
    "responses": {
      "200": {"headers": {"X-Left": {"required": true,
                 "schema": {"type": "integer", "minimum": 0}}},
        "content": {"application/json": {"schema": {"type": "object",
          "required": ["data"], "additionalProperties": false,
          "properties": {"data": {"$ref": "#/components/schemas/Thing"}}}}}},
      "204": {"description": "nothing"}}}},
  "/things/special": {"get": {"responses": {"204": {}}}}},
 "components": {
  "parameters": {"deep": {"name": "deep", "in": "query"}},
  "schemas": {"Thing": {"type": "object", "required": ["id", "name"],
    "properties": {
      "id": {"type": "string", "format": "uuid"},
      "name": {"type": ["string", "null"], "maxLength": 3},
      "kind": {"enum": ["a", "b", null]},
      "at": {"type": "string", "format": "date-time"},
      "n": {"type": "integer", "minimum": 1, "maximum": 5},
      "x": {"type": "number"},
      "list": {"type": "array", "minItems": 1, "items": {"type": "boolean"}},
      "code": {"type": "string", "pattern": "^[a-z]+$"},
      "one": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
      "any": {"anyOf": [{"const": 1}, {"const": "x"}]}},
    "additionalProperties": false}}}}
END
my $checker = CrmTest::OpenAPI->new($document);

sub answer {
    my ($status, $body, %headers) = @_;
    utf8::encode($body);
    return bless { status => $status, body => $body, headers => [
        map { [$_, $headers{$_}] } sort keys %headers] }, "CrmTest::Response";
}
my %headers = ("Content-Type" => "application/json", "X-Left" => "7");
my $id = "01890a5d-ac96-774b-bcce-b302099a8057";
my $asked = { method => "GET", path => "/api/v1/things/$id", headers => {} };

sub problems_with {
    my ($data, %other) = @_;
    return join "; ", $checker->check($asked, answer(200, "{\"data\":$data}",
        %headers, %other));
}
is(problems_with(qq({"id":"$id","name":null})), "", "a valid answer");
is(problems_with(qq({"id":"$id","name":"äöü","kind":null,"n":5,"x":1.5,)
    . qq("at":"2026-11-21T01:59:27.552Z","list":[true],"code":"a",)
    . qq("one":1,"any":"x"})), "", "a valid answer with every field");
for my $case (
    ['{"name":null}', qr/body\.data\.id: is missing/],
    [qq({"id":"$id","name":7}), qr/name: is integer, not string or null/],
    [qq({"id":"$id","name":"abcd"}), qr/longer than 3/],
    [qq({"id":"x","name":"a"}), qr/id: is no uuid/],
    [qq({"id":"$id","name":"a","kind":"c"}), qr/kind: is none/],
    [qq({"id":"$id","name":"a","n":0}), qr/n: is below 1/],
    [qq({"id":"$id","name":"a","n":6}), qr/n: is above 5/],
    [qq({"id":"$id","name":"a","n":1.5}), qr/n: is number, not integer/],
    [qq({"id":"$id","name":"a","n":"1"}), qr/n: is string, not integer/],
    [qq({"id":"$id","name":"a","x":true}), qr/x: is boolean, not number/],
    [qq({"id":"$id","name":"a","list":[]}), qr/fewer than 1/],
    [qq({"id":"$id","name":"a","list":[1]}), qr/list\[0\]: is integer/],
    [qq({"id":"$id","name":"a","code":"A"}), qr/code: does not match/],
    [qq({"id":"$id","name":"a","at":"2026-11-21"}), qr/at: is no date-time/],
    [qq({"id":"$id","name":"a","one":true}), qr/one: matches 0 of oneOf/],
    [qq({"id":"$id","name":"a","any":2}), qr/any: matches none/],
    [qq({"id":"$id","name":"a","extra":1}), qr/extra: is not allowed/],
) {
    like(problems_with($case->[0]), $case->[1], "noticed: $case->[0]");
}
like(problems_with(qq({"id":"$id","name":"a"}), "X-Left" => -1),
    qr/X-Left: is below 0/, "noticed: a header's wrong value");
like(join(";", $checker->check($asked, answer(200,
    qq({"data":{"id":"$id","name":"a"}}),
    "Content-Type" => "application/json"))),
    qr/header X-Left is missing/, "noticed: a missing header");
like(problems_with(qq({"id":"$id","name":"a"}), "Content-Type" =>
    "text/html"), qr{has the type "text/html"}, "noticed: another type");
like(join(";", $checker->check($asked, answer(404, "{}", %headers))),
    qr/status 404 is not declared/, "noticed: an undeclared status");
like(join(";", $checker->check($asked, answer(204, "x"))),
    qr/has a body, and none is declared/, "noticed: a body with a 204");
is(join(";", $checker->check({ %$asked, path => "/api/v1/things/special" },
    answer(204, ""))), "", "a fixed path goes before a parameter");
{
    local $ENV{CRM_TEST_RECORDS} = tempdir(CLEANUP => 1);
    my $fresh = CrmTest::OpenAPI->new($document);
    $fresh->check({ %$asked, query => "deep=1" }, answer(204, ""));
    is_deeply($fresh->untouched, ["operation GET /things/special",
        "status GET /things/special 204", "status GET /things/{id} 200"], "untouched parts are known");
}

# --- httpd, its log, its ports ----------------------------------------------
subtest "a line nobody announced is found, an announced one is not" => sub {
    my $httpd = httpd(crmapi => 0, modules => ["alias", "cgi"],
        conf => "ErrorDocument 404 /none\n");
    my $client = $httpd->client;
    my $r = $client->get("/nothing");
    status_is($r, 404, "a plain httpd answers");
    is_deeply([$httpd->unexpected_log], [], "nothing to complain of");
    open(my $log, ">>", $httpd->dir . "/error_log") or die $!;
    print $log "[date] [core:error] [pid 1] made up for the test\n";
    close $log;
    is(scalar(my @bad = $httpd->unexpected_log), 1, "the line is found");
    $httpd->expect_log(qr/made up for the test/);
    is_deeply([$httpd->unexpected_log], [], "it is announced now");
    my $pid = $httpd->pid;
    my $before = $httpd->generation;
    $httpd->restart;
    is($httpd->generation, $before + 1, "restarted gracefully");
    is($httpd->pid, $pid, "by the same parent");
    $httpd->stop;
    ok(!kill(0, $pid), "stopped by its process id");
};

subtest "keep-alive, HEAD, raw bytes" => sub {
    my $httpd = httpd(crmapi => 0);
    write_file($httpd->dir . "/htdocs/a.txt", "hello");
    my $client = $httpd->client;
    is($client->get("/a.txt")->body, "hello", "GET");
    my $socket = $client->{socket};
    my $head = $client->head("/a.txt");
    is($head->body, "", "HEAD has no body");
    is($head->header("content-length"), 5, "but its length");
    is($client->{socket}, $socket, "on the same connection");
    is($client->raw("GET /a.txt HTTP/1.0\r\n\r\n")->status, 200, "raw bytes");
    is($client->raw("garbage\r\n\r\n")->status, 400, "hostile bytes");
};

subtest "databases" => sub {
    my $one = database(template => undef);
    my $two = database(template => undef);
    isnt($one, $two, "every database is another");
    sql($one, "CREATE TABLE t (a text); INSERT INTO t VALUES (NULL), ('ä\n|')");
    is_deeply([sql($one, "SELECT a, 1 FROM t")], [[undef, 1], ["ä\n|", 1]],
        "rows come back as they are");
    ok(!defined eval { sql($two, "SELECT a FROM t"); 1 },
        "and nothing of one is in the other");
};

done_testing;
