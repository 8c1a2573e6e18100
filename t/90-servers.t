# SPDX-License-Identifier: Apache-2.0
# 90-servers.t: the server in the OpenAPI document is the address that the document
# was asked at (contract 20.7)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $database = database();
my $PATH = "/api/v1/openapi.json";
my $httpd = httpd(database => $database);
our $c = $httpd->client;

# What the document of RESPONSE names as its servers.
sub servers_of {
    my ($r) = @_;
    status_is($r, 200, "the document");
    return [map { $_->{url} } @{$r->json->{servers}}];
}

# The servers of the document that is asked for by a request with HEADERS, lines.
sub asked {
    my ($target, @headers) = @_;
    return servers_of($c->raw(join "", map { "$_\r\n" }
        "GET $target HTTP/1.1", @headers, "Connection: close", ""));
}

subtest "the scheme and host of the request" => sub {
    my $here = "http://127.0.0.1:" . $httpd->port;
    is_deeply(servers_of($c->get($PATH, headers => { Host =>
        "127.0.0.1:" . $httpd->port })), [$here], "with the port");
    for my $host ("crm.example.com", "crm.example.com:8443", "CRM.example.com",
            "[2001:db8::1]:80", "a_b.example") {
        is_deeply(asked($PATH, "Host: $host"), ["http://$host"], $host);
    }
    is_deeply(asked("http://other.example$PATH", "Host: crm.example.com"),
        ["http://other.example"], "the target's host is the request's");
    is_deeply(asked("$PATH?a=b", "Host: crm.example.com"),
        ["http://crm.example.com"], "without path and query");
};

subtest "nothing else is believed" => sub {
    # It lets hosts through that others refuse.
    my $unsafe = httpd(database => $database, conf =>
        "HttpProtocolOptions Unsafe\n");
    local $c = $unsafe->client;
    is_deeply(asked($PATH, "Host: crm.example.com", "X-Forwarded-Proto: https",
        "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example",
        "X-Forwarded-Port: 1", "Origin: https://evil.example"),
        ["http://crm.example.com"], "no header that anybody can send");
    for my $host ('a","x":"b', "a/b", "a?b", "a b", "<script>", "a\\u0022",
            "x\@evil.example", "x:port", "x:99999", "\xc3\xa9.example",
            "a" x 300) {
        my $r = $c->raw("GET $PATH HTTP/1.1\r\nHost: $host\r\n"
            . "Connection: close\r\n\r\n");
        next if $r->status == 400 && ok(1, "'$host' is refused by httpd");
        is_deeply(servers_of($r), ["/"], "'$host' is no host");
    }
    is_deeply(servers_of($c->raw("GET $PATH HTTP/1.0\r\n\r\n")), ["/"],
        "a request without a host");
    $unsafe->stop;
};

subtest "the rest is the same" => sub {
    my $r = $c->get($PATH);
    my $other = $c->get($PATH, headers => { Host => "x.example" });
    my ($here, $there) = map { my $d = $_->json; delete $d->{servers}; $d }
        $r, $other;
    is_deeply($here, $there, "the document");
    is($c->head($PATH, headers => { Host => "x.example" })
        ->header("Content-Length"), length $other->body, "HEAD");
    for my $answer ($r, $other) {
        like($answer->header("Cache-Control"), qr/\bno-store\b/,
            "no cache gives it to those who ask at another address");
        is($answer->header("ETag"), undef, "nor confirms it");
    }
};
$httpd->stop;

subtest "behind a proxy that ends TLS" => sub {
    my $behind = httpd(database => $database,
        conf => "ServerName https://crm.example.com\n");
    is_deeply(servers_of($behind->client->get($PATH, headers =>
        { Host => "crm.example.com" })), ["https://crm.example.com"],
        "ServerName says so");
    $behind->stop;
};
done_testing;
