# SPDX-License-Identifier: Apache-2.0
# 95-checklist.t: what is published and no test of this run has touched
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $httpd = httpd(database => database());
my $document = $httpd->client->get("/api/v1/openapi.json")->json;
my $untouched = CrmTest::OpenAPI->new($document)
    ->untouched(qr/^(?:2..|400|401|403|404|413|415|422|429)$/);
$httpd->stop;
if (!$untouched || !$ENV{CRM_TEST_WHOLE}) {
    plan(skip_all => "only a run of the whole suite touches everything");
}
is_deeply($untouched, [], "every operation, parameter and status was seen")
    or diag(join "\n", @$untouched);
done_testing;
