# SPDX-License-Identifier: Apache-2.0
# 67-mcp-cost.t: a call of a tool takes httpd and PostgreSQL at most 1.15 times the
# instructions of the API's request: a GET, a list, a POST (contract 21)
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../bench/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Mcp;
use Bench::Instructions;
use Bench::Work;
use File::Temp qw(tempdir);
use JSON::PP ();

my ($none) = run_program(command => ["valgrind", "--version"]);
plan(skip_all => "no valgrind: build/setup --tests installs it") if $none;

my $ROWS = 25;          # of the list
my $database = database();
my $w = workspace($database, twin => 0);
my ($contact) = $w->import_objects([map { { object => "contact",
    bot_id => $w->agent, first_name => "Ada $_", last_name => "Lovelace",
    emails => ["ada.$_\@example.com"], phone_numbers => ["+4930123456"],
    tags => ["vip", "math"], notes => "Met at the conference, \"hall\" $_.",
    custom_fields => { plan => "gold", seats => 12 } } } 1 .. $ROWS]);

# What is compared: a request of the client of the API, and the same as a tool.
my %body = (bot_id => $w->agent, first_name => "Ada",
    emails => ["ada\@example.org"], tags => ["vip"],
    custom_fields => { plan => "gold" });
my %list = (page_size => $ROWS, cursor => "*");
my %api = (get => ["GET", "/api/v1/contacts/$contact"],
    list => ["GET", "/api/v1/contacts?page_size=$ROWS&cursor=*"],
    create => ["POST", "/api/v1/contacts", \%body]);
my %tools = (contacts_get => { id => $contact }, contacts_list => \%list,
    contacts_create => \%body);

# Do what NAME says, TIMES times, by CLIENT.
sub repeat {
    my ($client, $name, $times) = @_;
    my ($method, $path, $body) = @{$api{$name} || []};
    my $mcp = CrmTest::Mcp->new($client);
    my $bad = 0;
    for (1 .. $times) {
        my $r = $path ? $client->request($method, $path, $body
                ? (json => $body) : ())
            : $mcp->call("tools/call", { name => $name, arguments =>
                $tools{$name} });
        $bad++ if $r->status !~ /^20[01]$/ || $r->body =~ /"isError":true/;
    }
    is($bad, 0, "$name: $times answers");
}

# Instructions of all processes of an httpd that does each some times, and NAME,
# if there is one, TIMES times more.
sub instructions {
    my ($name, $times) = @_;
    my $dir = tempdir("crm-cost-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    chmod 0777, $dir;
    local $ENV{CRM_VALGRIND} = 1;
    local $ENV{CRM_CALLGRIND} = $dir;
    my $httpd = httpd(database => $database, unlimited => 1,
        conf => "CrmApiMcp On\n");
    my $client = $httpd->client(key => $w->key);
    repeat($client, $_, 10) for sort keys %api, keys %tools;
    repeat($client, $name, $times) if $name;
    $httpd->stop;
    my $all = 0;
    for my $file (glob "$dir/*") {
        $all += $1 if read_file($file) =~ /^totals: (\d+)/m;
    }
    return $all;
}

# Instructions of PostgreSQL for the statement of NAME, a request of the API: a
# tool's is the same (67-mcp-same.t).
sub Log::host { postgres()->host }
sub Log::sql { postgres()->sql("postgres", $_[1]) }
my $json = JSON::PP->new->canonical;
sub statements {
    my ($server, $name) = @_;
    my ($method, $path, $body) = @{$api{$name}};
    my @all = map { $_->[0] } Bench::Work->statements(bless({}, "Log"), $server,
        ([$w->key, $method, $path, $body ? $json->encode($body) : undef]) x 5);
    # all of its rows, as texts
    $_->[0] = "SELECT count(q::text) FROM ($_->[0]) q"
        for $name eq "list" ? @all : ();
    return \@all;
}

my $TIMES = 300;
my $once = instructions();
my %is = map { $_ => (instructions($_, $TIMES) - $once) / $TIMES }
    sort keys %api, keys %tools;
my $httpd = httpd(database => $database, children => 1);
my %statements = map { $_ => statements({ port => $httpd->port }, $_) }
    sort keys %api;
$httpd->stop;
sql($database, "VACUUM ANALYZE");
postgres()->halt;
for my $name (qw(get list create)) {
    my $sql = Bench::Instructions::count(postgres(), $database, "",
        $statements{$name}, 100);
    my ($api, $tool) = @is{$name, "contacts_$name"};
    my $ratio = ($tool + $sql) / ($api + $sql);
    cmp_ok($ratio, "<=", 1.15, sprintf("contacts_%s: %.3f times (httpd: %.0f and"
        . " %.0f; PostgreSQL: %.0f)", $name, $ratio, $tool, $api, $sql));
}
postgres()->resume;

done_testing;
