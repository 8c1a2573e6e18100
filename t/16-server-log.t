#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 16-server-log.t: PostgreSQL's log has no contact's data of what a login of "role
# create" does (SECURITY, docs/privacy.md)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Process qw(read_file);

my $database = database();
my $login = "quiet_$$";
my $log = postgres()->{dir} . "/log";

# by a superuser, as the documents say
crmapictl_ok(undef, { env => { CRMAPI_DATABASE => postgres()->conninfo($database,
    "postgres") } }, qw(role create api), $login);
# as a site does that looks for slow statements
sql($database, "ALTER ROLE $login IN DATABASE $database
    SET log_min_duration_statement = 0");
my $httpd = httpd(database => $database,
    conninfo => postgres()->conninfo($database, $login));
my $w = workspace($httpd);
my $c = $w->client;
my %contact = (bot_id => $w->agent, first_name => "Ottilie-$$",
    external_id => "mark-$$\@x.example", emails => ["mark-$$\@x.example"]);

my $before = length read_file($log);
is($c->post("/api/v1/contacts", \%contact)->status, 201, "a contact");
is($c->post("/api/v1/contacts", \%contact)->status, 422, "its external_id again");
is($c->post("/api/v1/contacts", { %contact, external_id => "mark-$$-2",
    company_id => uuid() })->status, 422, "an id that is none");
is($c->get("/api/v1/contacts?search=Ottilie-$$")->status, 200, "a search");

my $text = substr read_file($log), $before;
like($text, qr/$login ERROR:  duplicate key value/, "the first failure is logged");
like($text, qr/$login ERROR:  insert .* violates foreign key/, "so is the other");
like($text, qr/$login LOG:  duration: .*SELECT/, "and a slow statement");
unlike($text, qr/$_/, "the log does not have $_")
    for "mark-$$", "Ottilie-$$", substr $w->key, 9, 12;

$httpd->stop;
sql($database, "DROP OWNED BY $login; DROP ROLE $login");
done_testing;
