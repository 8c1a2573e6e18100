# SPDX-License-Identifier: Apache-2.0
# 90-openapi-lint.t: Redocly's and Spectral's recommended rules accept the OpenAPI
# document without a warning
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
my $spectral = $redocly =~ s/redocly$/spectral/r;
plan(skip_all => "no \@stoplight/spectral-cli: build/setup --tests installs it")
    unless -x $spectral;
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
# Spectral's verdict on DOCUMENT.
sub spectral {
    my ($document) = @_;
    write_file("$dir/spectral.json", $document);
    write_file("$dir/rules.yaml", "extends: [\"spectral:oas\"]\n");
    return run_program(command => [$spectral, "lint", "--fail-severity", "hint",
        "-r", "$dir/rules.yaml", "$dir/spectral.json"],
        env => { SCARF_ANALYTICS => "false" });
}
($code, $out, $err) = spectral($r->body);
is($code, 0, "Spectral has no complaint") or diag("$out$err");
($code) = spectral($r->body =~ s/"operationId":"getAgent",//r);
isnt($code, 0, "it has one if an operationId is missing");
$httpd->stop;
done_testing;
