# SPDX-License-Identifier: Apache-2.0
# 99-checklist.t: prints what the OpenAPI document has and no test of this run
# used, or docs/api.md does not name. It fails no test
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

plan(skip_all => "only a run of the whole suite touches everything")
    unless $ENV{CRM_TEST_RECORDS} && $ENV{CRM_TEST_WHOLE};
my $httpd = httpd(database => database());
my $openapi = CrmTest::OpenAPI->new($httpd->client
    ->get("/api/v1/openapi.json")->json);
$httpd->stop;
my $statuses = qr/^(?:2..|400|401|403|404|413|415|422|429)$/;
my @untouched = @{$openapi->untouched($statuses)};
cmp_ok(scalar @untouched, "<", scalar $openapi->wanted($statuses),
    "the run has recorded what it touched");
my $guide = read_file("$CrmTest::TOP/docs/api.md");
my @unnamed = grep { !/openapi\.json$/ && $guide !~ /`\Q$_\E[`?]/ }
    map { s{^/api/v1}{}r } sort keys %{$openapi->{document}{paths}};
diag("no test has touched: $_") for @untouched;
diag("docs/api.md does not name: $_") for @unnamed;
done_testing;
