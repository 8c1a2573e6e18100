# SPDX-License-Identifier: Apache-2.0
# 54-metrics-cost.t: metrics cost at most 1 % of the instructions that httpd
# executes for a request (contract 15)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

my ($none) = run_program(command => ["valgrind", "--version"]);
plan(skip_all => "no valgrind: build/setup --tests installs it") if $none;

my $database = database();
my $w = workspace($database, twin => 0);

# Instructions of all processes that callgrind has written to DIR: in all, and
# in functions named PATTERN with what they call.
sub count {
    my ($dir, $pattern) = @_;
    my ($all, $part) = (0, 0);
    for my $file (glob "$dir/*") {
        my (%name, $called, $calls);
        for (split /\n/, read_file($file)) {
            if (/^cfn=\((\d+)\)(?: (.*))?/) {
                $name{$1} = $2 if defined $2;
                $called = $name{$1};
            }
            elsif (/^fn=\((\d+)\)(?: (.*))?/) {
                $name{$1} = $2 if defined $2;
            }
            elsif (/^calls=/) {
                $calls = 1;     # the next line is what the call cost
            }
            elsif ($calls) {
                $part += (split)[-1] if $called =~ $pattern;
                $calls = 0;
            }
            elsif (/^totals: (\d+)/) {
                $all += $1;
            }
        }
    }
    return ($all, $part);
}

# The instructions of an httpd that answers TIMES requests.
sub instructions {
    my ($times) = @_;
    my $dir = tempdir("crm-cost-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    chmod 0777, $dir;
    local $ENV{CRM_VALGRIND} = 1;
    local $ENV{CRM_CALLGRIND} = $dir;
    my $httpd = httpd(database => $database, conf => "CrmApiReadLimit 1000\n");
    my $client = $httpd->client(key => $w->key);
    my $path = $client->post("/api/v1/contacts", { bot_id => $w->agent })
        ->header("Location");
    my $bad = 0;
    for (1 .. $times) {
        $bad++ if $client->get($path)->status != 200;
    }
    $httpd->stop;
    is($bad, 0, "$times answers of 200");
    return count($dir, qr/^crmapi_metrics_(?:count|wait|waiting|used)$/);
}

# What both have done at their start and their end does not count.
my ($few, $many) = (50, 450);
my ($all_few, $part_few) = instructions($few);
my ($all_many, $part_many) = instructions($many);
my $all = ($all_many - $all_few) / ($many - $few);
my $part = ($part_many - $part_few) / ($many - $few);
my $share = 100 * $part / $all;
cmp_ok($part, ">", 0, "the functions of the metrics are counted");
cmp_ok($share, "<=", 1, sprintf("metrics: %.0f of %.0f instructions a request,"
    . " %.2f %%", $part, $all, $share));

done_testing;
