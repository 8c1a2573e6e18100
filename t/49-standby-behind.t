# SPDX-License-Identifier: Apache-2.0
# 49-standby-behind.t: a standby takes over that lacks the last writes: no reader of
# /events passes what is written then (contract 13.4)
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file's servers come and go, so it has its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Standby;

my $primary = CrmTest::Postgres->get(CrmTest::Standby->settings);
my $database = database();
my $standby = CrmTest::Standby->new($primary);
my @hosts = ($primary, $standby);
sub conninfo { CrmTest::Standby->conninfo_of(\@hosts, $database, $_[0]) }
# It is not waited for.
$primary->sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = ''");
$primary->sql("postgres", "SELECT pg_reload_conf()");

my $httpd = httpd(database => $database,
    conninfo => conninfo($CrmTest::Postgres::API), unlimited => 1);
$httpd->may_log(qr/CRM(?:130[345]|200[14567]): /);
my $worker = worker(database => $database,
    conninfo => conninfo($CrmTest::Postgres::WORKER), no_start => 1);
$worker->may_log(qr/CRM(?:200\d|3010|3101): /);
my $w = workspace($httpd)->log_on;
my $c = $w->client(timeout => 60);

# The answer to a reader with CURSOR.
sub read_from { $c->get("/api/v1/events?cursor=$_[0]") }

sub end_of_log { read_from("end")->json->{pagination}{next_cursor} }

# Add COUNT companies. Return their ids.
sub add {
    my ($count) = @_;
    return map { my $r; wait_for(sub { $r = $c->post("/api/v1/companies",
        { bot_id => $w->agent, name => "C" }); $r->status == 201 }, 30)
        or die $r->text; $r->data->{id} } 1 .. $count;
}

# The ids of companies that a reader with CURSOR is told of.
sub told { [map { $_->{data}{id} } @{read_from("$_[0]&page_size=100")->json->{data}}] }

$worker->once;
add(3);
my $kept = end_of_log();
ok(wait_for(sub { $primary->sql("postgres", "SELECT replay_lsn ="
    . " pg_current_wal_lsn() FROM pg_stat_replication") eq "t" }, 30),
    "the standby has all of this");
$standby->freeze;
add(40);                # the numbers that a sequence logs at once are 32
my $lost = end_of_log();
CrmTest::Standby::crash($primary);
$standby->cut_off;
$standby->thaw;
$standby->promote;

my @new = add(20);
error_is(read_from($lost), 410, "gone", "a reader that has seen what was lost");
push @new, add(60);
error_is(read_from($lost), 410, "gone", "also when its numbers were given again");
is_deeply(told($kept), \@new, "one that has not misses nothing");
my $end = end_of_log();
$worker->once;
error_is(read_from($lost), 410, "gone", "a worker has noted that");
is_deeply(told($end), [], "a reader of the new log is at its end");
push @new, add(2);
is_deeply(told($end), [@new[-2, -1]], "and goes on");
is_deeply(told($kept), \@new, "as does the one of before");

$httpd->stop;
done_testing;
