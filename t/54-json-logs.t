# SPDX-License-Identifier: Apache-2.0
# 54-json-logs.t: the JSON formats of docs/operations.md for httpd's logs: each
# line is an object, whatever clients send
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Log qw(objects);
use Encode ();
use JSON::PP ();

my ($formats) = documented("operations.md", "apache", "### JSON");
$formats =~ s{/usr/local/bin/json-lines}{$CrmTest::TOP/contrib/httpd/json-lines}g;
$formats =~ s{/var/log/apache2/}{\@DIR\@/}g;
my $strict = JSON::PP->new->utf8;

my $httpd = httpd(database => database(), conf => <<"END");
CrmApiReadLimit 0
<VirtualHost 127.0.0.1:\@PORT\@>
    LogLevel crmapi:debug core:debug
    $formats
</VirtualHost>
END
my $w = workspace($httpd, twin => 0);
my $dir = $httpd->dir;

# What clients may send: paths, headers, user agents.
my $forged = q("}) . "\t" . q({"level":"forged);
utf8::encode(my $umlaut = "ünïcode \x{1F600} 日本");
my @agents = ('plain', 'quote " and \\ back', $forged, $umlaut,
    "\xff\xfe\xc3(", '\\x41\\u0041\\', '","message":"x","a":"', "tab\there",
    '%{crmapi-key}n', "x" x 4000);
my @paths = ('/api/v1/agents', '/api/v1/%22%7D%0a{"a":1}',
    '/api/v1/agents?tags=%00%01"\\x', "/api/v1/\xff\xfe", '/api/v1/%ff%fe%5c%22',
    '/nowhere/"}', '/api/v1/contacts/"\\', '/%2e%2e/%5cx41');
my $n = 0;
# What CLIENT gets until its server closes the connection.
sub rest_of {
    my ($client) = @_;
    my ($socket, $text) = ($client->{socket}, "");
    1 while sysread($socket, $text, 65536, length $text);
    $client->close;
    return $text;
}

sub send_raw {
    my ($path, $agent, $id) = @_;
    my $client = $httpd->client;
    $client->send_raw("GET $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        . "Authorization: Bearer " . $w->key . "\r\nX-Request-Id: $id\r\n"
        . "Referer: $agent\r\nUser-Agent: $agent\r\n\r\n");
    $n++;
    return rest_of($client);
}
my %sent;
for my $path (@paths) {
    for my $agent (@agents) {
        my $id = sprintf "r-%03d", $n;
        $sent{$id} = [$path, $agent];
        like(send_raw($path, $agent, $id), qr{^HTTP/1\.1 \d+ }, "an answer");
    }
}
# requests that httpd itself refuses
send_raw('/api/v1/"bad', "a", "x\"y\\");
for my $bytes ("GET /\" HTTP/9.9\r\n\r\n", "\"}\\ / HTTP/1.1\r\nHost: \"\r\n\r\n",
    "GET /\x01\"\\ HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nBad\"Header\xff\r\n\r\n") {
    my $client = $httpd->client;
    $client->send_raw($bytes);
    rest_of($client);
}

subtest "the access log" => sub {
    ok(wait_for(sub { my $lines = () = read_file("$dir/crmapi.json", "") =~ /\n/g;
        $lines >= $n + 4 }, 20), "all requests are in it");
    my @objects = objects(read_file("$dir/crmapi.json", ""));
    my %there = map { ("$_->{line}|$_->{agent}" => $_) } @objects;
    for my $id (sort keys %sent) {
        my ($path, $agent) = map { Encode::decode("UTF-8", $_) }
            @{$sent{$id}};
        my $is = $there{"GET $path HTTP/1.1|$agent"};
        ok($is, "$id: its first line and its user agent") or next;
        like($is->{status}, qr/^[2-5]\d\d$/, "$id: its status");
        is($is->{request}, $id, "$id: its id") if $path =~ m{^/api/v1/agents};
    }
    my ($good) = grep { $_->{route} eq "GET /agents" } @objects;
    is($good->{workspace}, $w->id, "the workspace");
    like($good->{key}, qr/^[0-9a-f-]{36}$/, "the key's id");
    like($good->{database_us}, qr/^\d+$/, "the database's time");
    like($good->{time}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}$/,
        "the time");
    is($good->{trace}, "-", "no trace");
    is(scalar(grep { exists $_->{level} } @objects), 0, "nothing is forged");
};

subtest "the error log" => sub {
    ok(wait_for(sub { my $lines = () = read_file("$dir/error.json", "")
        =~ /\n/g; $lines > $n }, 20), "there are lines");
    my @whole = objects(read_file("$dir/error.json", ""));
    for my $object (@whole) {
        is(join(" ", sort keys %$object),
            "client level message module pid request thread time",
            "no member more or less") or diag(explain $object);
        like($object->{level}, qr/^(?:emerg|alert|crit|error|warn|notice|info|debug|trace\d)$/,
            "level");
    }
    ok((grep { $_->{message} =~ /"/ } @whole), "quotation marks of clients");
    my ($line) = grep { $_->{module} eq "crmapi"
        && $_->{message} =~ /CRM1201/ } @whole;
    ok($line, "a line of the module");
    like($line->{time}, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}/, "time");
    like($line->{request}, qr/^\S{2,}$/, "with the request's id");
};

subtest "a line of another form" => sub {
    my ($code, $out) = run_program(command =>
        ["$CrmTest::TOP/contrib/httpd/json-lines"],
        stdin => qq(httpd: "could not\\x22 \xff start\n"}{\n));
    is($code, 0, "the filter without a file");
    is_deeply([map { $strict->decode($_)->{message} } split /\n/, $out],
        [qq(httpd: "could not" \x{fffd} start), qq("}{)], "is a message");
};
done_testing;
