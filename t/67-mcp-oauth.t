# SPDX-License-Identifier: Apache-2.0
# 67-mcp-oauth.t: agents with tokens of an authorization server: mod_auth_openidc
# with the lines of docs/mcp.md
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;
use File::Temp qw(tempdir);
use JSON::PP ();
use MIME::Base64 qw(encode_base64url);

plan(skip_all => "Debian's package libapache2-mod-auth-openidc is not installed")
    unless -f "$CrmTest::BUILD{MODULEDIR}/mod_auth_openidc.so";

my $lines = join "", documented("mcp.md", "apache", "## OAuth");
# The server's keys are a file here: no test asks another host.
my $keys = tempdir("crm-keys-XXXXXX", TMPDIR => 1, CLEANUP => 1);
for my $name ("server", "other") {
    my ($code, $out, $err) = run_program(command => [qw(openssl req -x509 -nodes
        -newkey rsa:2048 -days 2 -subj /CN=login), "-keyout", "$keys/$name.key",
        "-out", "$keys/$name.pem"]);
    is($code, 0, "a key") or BAIL_OUT($err);
}
$lines =~ s/^OIDCOAuthVerifyJwksUri .*$/OIDCOAuthVerifyCertFiles "$keys\/server.pem"/m
    or BAIL_OUT("no line with the keys");
$lines =~ s{ /etc/apache2/(mcp-resource\.json)}{ \@DIR\@/$1};

my $database = database();
my $plain = httpd(database => $database);
my $w = workspace($plain, twin => 0);
my $httpd = httpd(database => $database, modules => ["alias", "authn_core",
    "auth_openidc"], conf => "Define KEY " . $w->key . "\n$lines",
    # a token that is refused
    may_log => [qr/oidc_|AH01631: user sales: authorization failure/]);
write_file("$httpd->{dir}/mcp-resource.json", documented("mcp.md", "json", "## OAuth"));

# A token (RFC 7519) for the audience AUD, with CLAIMS.
sub token {
    my ($aud, %claims) = @_;
    my $part = sub { encode_base64url(JSON::PP->new->canonical->encode($_[0])) };
    my $text = $part->({ alg => "RS256", typ => "JWT" }) . "."
        . $part->({ iss => "https://login.example.com", sub => "sales",
            aud => $aud, iat => time, exp => time + 60, %claims });
    my ($code, $signature, $err) = run_program(command => [qw(openssl dgst -sha256
        -binary -sign), "$keys/" . ($claims{signed_by} // "server") . ".key"],
        stdin => $text);
    die "openssl: $err\n" if $code;
    return "$text." . encode_base64url($signature);
}

my $mcp = CrmTest::Mcp->new($httpd->client(key => undef), "2025-11-25");
sub ask {
    my ($token, %headers) = @_;
    $headers{Authorization} = "Bearer $token" if $token;
    return $mcp->call("tools/call", { name => "contacts_list", arguments => {} },
        headers => \%headers);
}
my $here = "https://crm.example.com/crmapi/mcp";
my $metadata = "https://crm.example.com/.well-known/oauth-protected-resource"
    . "/crmapi/mcp";

my $r = ask(token($here));
is($r->status, 200, "a token of the authorization server is let in");
is_deeply($r->json->{result}{structuredContent}{data}, [],
    "with the key of the agent") or diag($r->text);

my %refused = (
    "no token" => undef,
    "one for another audience" => token("https://other.example"),
    "one that has ended" => token($here, exp => time - 60, iat => time - 120),
    "one of another server" => token($here, signed_by => "other"),
    "one of another agent" => token($here, sub => "other"),
    "an API key" => $w->key,
);
for my $name (sort keys %refused) {
    $r = ask($refused{$name});
    is($r->status, 401, "$name is refused");
    like($r->header("WWW-Authenticate") // "",
        qr/^Bearer resource_metadata="\Q$metadata\E"(?:, Bearer |$)/,
        "$name: the client learns where the metadata are");
    unlike($r->body, qr/contacts|svc_live/, "$name: and nothing else");
}

is(ask(token($here, sub => "other"), OIDC_CLAIM_sub => "sales")->status, 401,
    "a client cannot say itself which agent it is");

$r = $httpd->client(key => undef)->get($metadata =~ s{^https://[^/]+}{}r);
is($r->status, 200, "the metadata");
is($r->json->{resource}, $here, "are of this address");

done_testing;
