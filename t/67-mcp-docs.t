# SPDX-License-Identifier: Apache-2.0
# 67-mcp-docs.t: the lines of docs/mcp.md connect clients as they stand: a shell, an
# IDE's file (contract 21). 67-mcp-clients.t has the TypeScript client's
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;
use Cpanel::JSON::XS ();

my $database = database();
my $httpd = httpd(database => $database, conf => "CrmApiMcp On\n");
my $w = workspace($httpd, twin => 0);
my $here = "http://127.0.0.1:" . $httpd->port;
my ($contact) = $w->import_objects([{ object => "contact", bot_id => $w->agent,
    first_name => "Anna" }]);

# The blocks of LANGUAGE, at this server.
sub blocks {
    my ($language) = @_;
    return map { s{https://crm\.example\.com}{$here}gr }
        documented("mcp.md", $language);
}

# That a client which knows URL and HEADERS only finds the tools.
sub connects {
    my ($url, $headers, $who) = @_;
    is($url, "$here/crmapi/mcp", "$who: the address");
    my $client = $httpd->client(key => undef);
    my $r = CrmTest::Mcp->new($client, "2025-11-25")->call("tools/list", {},
        headers => $headers);
    is($r->status, 200, "$who: is let in") or diag($r->text);
    cmp_ok(scalar @{$r->json->{result}{tools} || []}, ">", 10,
        "$who: and finds tools");
}

my ($make, $claude, $curl, @more) = blocks("sh");
is(scalar @more, 0, "there are three commands");

subtest "a key for an agent" => sub {
    my ($options) = $make =~ /^crmapictl (key create .*)$/m;
    my ($code, $out) = run_program(command => ["sh", "-euc",
        "printf '%s\\n' $options"], env => { W => $w->id });
    my $key = $w->ctl(split /\n/, $out);
    my ($only) = $key =~ /(svc_live_\w+)/;
    ok($only, "is made") or return diag($key);
    my %tools = CrmTest::Mcp->new($httpd->client(key => $only))->tools;
    ok($tools{contacts_list}, "it reads");
    ok(!$tools{contacts_create}, "and does not write");
};

subtest "Claude Code" => sub {
    # a shell splits the line as it would for the program
    my ($code, $out, $err) = run_program(env => { KEY => $w->key },
        command => ["sh", "-euc", "claude() { printf '%s\\n' \"\$@\"; }\n"
            . $claude]);
    my @words = split /\n/, $out;
    is_deeply([@words[0 .. 4]], [qw(mcp add --transport http crm)], "the line");
    is($words[6], "--header", "with a header");
    connects($words[5], { split /: /, $words[7], 2 }, "claude");
};

subtest "an IDE" => sub {
    my ($file) = grep { /"servers"/ } blocks("json");
    my $server = Cpanel::JSON::XS->new->decode($file)->{servers}{crm};
    is($server->{type}, "http", "its transport");
    my %headers = %{$server->{headers}};
    $headers{Authorization} =~ s/svc_live_\.\.\.$/$w->key/e;
    connects($server->{url}, \%headers, "the file");
};

subtest "without a client" => sub {
    my ($code, $out, $err) = run_program(command => ["sh", "-euc", $curl],
        env => { KEY => $w->key, CRMAPI_URL => $here, no_proxy => "*" });
    is($code, 0, "curl runs") or diag($err);
    my $found = Cpanel::JSON::XS->new->utf8->decode($out);
    is($found->{result}{structuredContent}{data}[0]{id}, $contact,
        "and finds the contact") or diag($out);
};

$httpd->stop;
done_testing;
