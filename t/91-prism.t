# SPDX-License-Identifier: Apache-2.0
# 91-prism.t: Prism, a public proxy, stands between tests and the server and
# finds no answer that is not as the OpenAPI document says, no request that the
# server takes and the document does not, nor an invalid one of a generated client
# (contract 13.6, 20.7)
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

plan(skip_all => "no prism: build/setup --tests installs it")
    unless glob "$ENV{CRM_SRCDIR}/_build/npm/node_modules/.bin/prism";

subtest "Prism would object" => sub {
    local $ENV{CRM_PRISM} = "report";
    my $httpd = httpd(database => database());
    my $c = workspace($httpd)->client;
    my $r = $c->get("/api/v1/agents?page=x");
    like($r->header("sl-violations"), qr/"request"/, "to a request");
    is_deeply([CrmTest::Prism->objections($r)], [],
        "which is the test's affair, as the server refuses it");
    $r->{status} = 200;
    like(join(" ", CrmTest::Prism->objections($r)), qr/page/, "if it does");
    $r = $c->get("/api/v1/agents");
    status_is($r, 200, "a good one");
    is($r->header("sl-violations"), undef, "is passed on");
    delete $httpd->{prism};
    $httpd->{prism} = CrmTest::Prism->new($httpd->port, sub {
        my ($document) = @_;
        my $agent = $document->{components}{schemas}{Agent};
        push @{$agent->{required}}, "mood";
        return $document;
    });
    $r = CrmTest::Client->new(port => $httpd->port, key => $c->{key})
        ->ask("GET", "/api/v1/agents")
        ->read_response("GET");             # without the hook that fails
    like(join(" ", CrmTest::Prism->objections($r)), qr/mood/, "to an answer");
    $httpd->stop;
};

# What the file NAME with CRM_PRISM=MODE prints, and its exit code.
sub run {
    my ($name, $mode) = @_;
    my ($code, $out, $err) = run_program(seconds => 900,
        command => [$^X, "$CrmTest::TOP/t/$name.t"],
        env => { CRM_PRISM => $mode });
    return ("$out$err", $code);
}

my ($text, $code) = run("91-client", "errors");
is($code, 0, "a generated client does not notice that it is there")
    or diag($text);

# A few other checks of these tests fail behind it: it sends numbers and
# addresses on in its own way, and has a HEAD of its own.
for my $name (qw(13-json-input 14-query 17-cursors 17-ids 18-filters 18-found
        18-tags 30-agents 30-workspace 31-contacts 32-companies 33-pipelines
        34-activities 35-conversations 36-forms 37-companies-upsert 37-merge
        37-upsert 38-sequences 39-lists 42-enrollments 46-answers 47-idempotency
        63-addresses 63-identity 67-erase 90-examples)) {
    my ($text) = run($name, "report");
    my ($count) = $text =~ /Prism has passed on (\d+) answers/;
    cmp_ok($count // 0, ">", 10, "$name: answers come through it");
    unlike($text, qr/not ok \d+ - Prism does not object/,
        "and it does not object to any, nor to its request") or diag($text);
}
done_testing;
