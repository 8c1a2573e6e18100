# SPDX-License-Identifier: Apache-2.0
# 90-openapi-lint.t: a public validator accepts the OpenAPI document
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

my $redocly = (glob "$ENV{CRM_SRCDIR}/_build/npm/node_modules/.bin/redocly")[0]
    // "";
plan(skip_all => "no \@redocly/cli: build/setup --tests installs it")
    unless -x $redocly;
my $httpd = httpd(database => database());
my $dir = tempdir(CLEANUP => 1);
my $r = $httpd->client->get("/api/v1/openapi.json");
status_is($r, 200, "without a key");
write_file("$dir/openapi.json", $r->body);
my ($code, $out, $err) = run_program(command => [$redocly, "lint",
    "--extends", "recommended", "$dir/openapi.json"],
    env => { REDOCLY_TELEMETRY => "off",
        REDOCLY_SUPPRESS_UPDATE_NOTICE => "true" });
is($code, 0, "it is valid") or diag("$out$err");
unlike("$out$err", qr/warning/i, "and there is no warning")
    or diag("$out$err");
$httpd->stop;
done_testing;
