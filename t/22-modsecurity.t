# SPDX-License-Identifier: Apache-2.0
# 22-modsecurity.t: with contrib/httpd/modsecurity.conf, ModSecurity's core rules
# stop nothing of the API, and stop attacks on all other paths; mod_evasive with
# the lines of docs/operations.md
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $crs = "/usr/share/modsecurity-crs/rules";
# Newer releases have lost the number, and have to be switched on.
my ($evasive) = grep { -f "$CrmTest::BUILD{MODULEDIR}/mod_$_.so" } qw(evasive evasive20);
plan(skip_all => "Debian's packages libapache2-mod-security2, modsecurity-crs and"
    . " libapache2-mod-evasive are not installed")
    if !-d $crs || !$evasive || !-f "$CrmTest::BUILD{MODULEDIR}/mod_security2.so";

# What Debian's package advises, but it refuses, and writes into the test's folder.
my $advised = read_file("/etc/modsecurity/modsecurity.conf-recommended");
$advised =~ s/^SecRuleEngine .*/SecRuleEngine On/m;
$advised =~ s{^Sec(TmpDir|DataDir) .*}{Sec$1 \@DIR\@}mg;
$advised =~ s{^SecAuditLog /.*}{SecAuditLog \@DIR\@/audit_log}m;
$advised =~ s{^SecUnicodeMapFile unicode}{SecUnicodeMapFile /etc/modsecurity/unicode}m;
my $rules = "Include /etc/modsecurity/crs/crs-setup.conf\nInclude $crs/*.conf\n";
my $ours = "Include $CrmTest::TOP/contrib/httpd/modsecurity.conf\n";

my $database = database();
my %common = (database => $database, modules => ["unique_id", "security2"]);
my $limits = "CrmApiReadLimit 0\nCrmApiWriteLimit 0\nCrmApiMcp On\n";
my @log = (may_log => [qr/ModSecurity/, qr/AH00037/]);
my $guarded = httpd(%common, @log, conf => "$limits$advised$ours$rules");
my $strict = httpd(%common, @log, conf => "$limits$advised$rules");
my $w = workspace($guarded);
my $c = $w->client;
my ($id) = $w->import_objects([{ object => "contact", bot_id => $w->agent,
    emails => ["ada\@example.org"] }]);
my ($activity) = $w->import_objects([{ object => "activity", contact_id => $id,
    activity_type => "note", title => "Call" }]);

# What people write.
my @TEXTS = ("SELECT name FROM users WHERE 1=1; --", "' OR 'a'='a", "<script>x</script>",
    "cat ../../etc/passwd; rm -rf /", "\${jndi:ldap://x.example/a}", "<?php system(1);",
    "() { :; }; echo", "http://169.254.169.254/latest", "ORA-00933: SQL command not",
    "https://x.example/?a=file:///etc/passwd", "javascript:alert(1)",
    "union select * from information_schema.tables", "{{7*7}} #{x}");
my @requests = (
    (map { my $text = $_;
        (["a note", PATCH => "/contacts/$id", json => { notes => $text }],
        ["a field", PATCH => "/contacts/$id",
            json => { custom_fields => { text => $text } }],
        ["a search", GET => "/contacts", query => { search => $text }],
        ["a tag", GET => "/contacts", query => { tags => $text }],
        ["a field's filter", GET => "/contacts",
            query => { "custom_fields.text" => $text }],
        ["an address", GET => "/contacts/by-email",
            query => { email => $text }]) } @TEXTS),
    ["what was written", GET => "/contacts/$id"],
    ["an unknown id", GET => "/contacts/..%2f..%2fetc%2fpasswd"],
    ["a merge patch", PATCH => "/contacts/$id",
        body => '{"custom_fields":{"a":"<b>"}}',
        headers => { "Content-Type" => "application/merge-patch+json" }],
    ["a large body", PATCH => "/contacts/$id",
        json => { notes => "x " x 32_000, custom_fields => { a => "x" x 60_000 } }],
    ["a method that is none", PUT => "/contacts/$id", json => {}],
    ["a broken body", PATCH => "/contacts/$id", body => '{"a":',
        headers => { "Content-Type" => "application/json" }],
    ["another type", POST => "/contacts", body => "x",
        headers => { "Content-Type" => "text/plain" }],
    ["an activity", PATCH => "/activities/$activity",
        json => { description => "SELECT 1; DROP TABLE x" }],
    ["deleted", DELETE => "/activities/$activity"],
    ["the document", GET => "/openapi.json"],
    ["options", OPTIONS => "/contacts"],
    ["a tool", POST => "/crmapi/mcp", json => { jsonrpc => "2.0", id => 1,
        method => "tools/call", params => { name => "contacts_update",
            arguments => { id => $id, notes => join " ", @TEXTS } } },
        headers => { "MCP-Protocol-Version" => "2025-11-25" }],
);

# The statuses that the API gives without ModSecurity.
my $bare = httpd(database => $database, conf => $limits);
sub status_of {
    my ($httpd, $what, $method, $path, %arg) = @_;
    return $w->client(port => $httpd->port)->request($method,
        $path =~ m{^/crmapi/} ? $path : "/api/v1$path", %arg)->status;
}

subtest "the API answers as it does without ModSecurity" => sub {
    for my $request (grep { $_->[0] ne "deleted" } @requests) {
        is(status_of($guarded, @$request), status_of($bare, @$request),
            "$request->[0]: $request->[1] $request->[2]");
    }
    is(status_of($guarded, @$_), 204, $_->[0])
        for grep { $_->[0] eq "deleted" } @requests;
    # but that 127.0.0.1 is no name of a host
    is_deeply([grep { /ModSecurity: (?:Access|Warning)/ && !/id "920350"/ }
        split /\n/, read_file("$guarded->{dir}/error_log")], [],
        "and nothing is said about it");
};

subtest "without the file it does not: the rules are in force" => sub {
    my @stopped = grep { status_of($strict, @$_) == 403 } @requests;
    cmp_ok(scalar @stopped, ">", 20, "many requests are refused");
};

subtest "elsewhere the rules are in force" => sub {
    for my $path ("/?x=<script>alert(1)</script>", "/?x=%27%20OR%201=1--%20",
            "/api/v10?x=<script>alert(1)</script>", "/?a=../../etc/passwd",
            "/other/api/v1/?x=<script>alert(1)</script>") {
        my $r = $c->request("GET", $path =~ s/([<> '])/sprintf "%%%02x", ord $1/ger);
        like($r->status, qr/^40[03]$/, $path);
    }
    is($c->request("DELETE", "/other")->status, 403,
        "a method that the site does not have");
};

subtest "mod_evasive lets a client of the API work" => sub {
    my ($advised) = read_file("$CrmTest::TOP/docs/operations.md")
        =~ /^(DOSPageCount .*?)^```/ms or die "no lines of mod_evasive\n";
    my %evasive = (database => $database, modules => [$evasive],
        children => 1, may_log => [qr/mod_evasive|DOS|Blacklisting/, qr/client denied/]);
    my $refused = sub {
        my ($httpd) = @_;
        my $client = $w->client(port => $httpd->port);
        return scalar grep { $client->get("/api/v1/contacts/$id")->status == 403 }
            1 .. 200;
    };
    $limits .= "DOSEnabled true\n" if $evasive eq "evasive";
    is($refused->(httpd(%evasive, conf => "$limits$advised")), 0,
        "200 requests in a row are answered");
    cmp_ok($refused->(httpd(%evasive, conf => $limits)), ">", 100,
        "by default they are not");
};

done_testing;
