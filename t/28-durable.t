# SPDX-License-Identifier: Apache-2.0
# 28-durable.t: PostgreSQL is stopped as by a crash (SIGQUIT) repeatedly while
# clients write: every write that was answered 2xx is stored (contract 10.5,
# 11.1). $CRM_LONG is the number of crashes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Writers;

# two connections for each writer, and a process of prefork for each connection
my ($CRASHES, $WRITERS) = ($ENV{CRM_LONG} || 2, ($ENV{CRM_MPM} || "") eq "prefork" ? 2 : 6);
my $database = database();
# as PostgreSQL has it where nobody changes that, unlike servers for tests
sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
sql("postgres", "SELECT pg_reload_conf()");

my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
# What mod_dbd, the module and libpq say when there is no database, and httpd
# of so many clients.
$httpd->may_log(qr/CRM(?:130[345]|200[146]): /,
    qr/AH00(?:484|161): /);
my $w = workspace($httpd, twin => 0);
my $writers = CrmTest::Writers->new($httpd, $w, $WRITERS);

for my $crash (1 .. $CRASHES) {
    ok($writers->wait_for_more(3), "they write before crash $crash");
    postgres()->halt("QUIT");
    postgres()->resume;
}
ok($writers->wait_for_more(1), "they write after the last crash");
$writers->stop;
$writers->check;
$httpd->stop;

subtest "daemons get ten seconds to reconnect before their jobs go to others" => sub {
    my $id = sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload,
        run_at, state, leased_by, leased_until, attempts) VALUES ('@{[$w->id]}',
        'test.x', '{}', now(), 'leased', 'x', now() - interval '1 hour', 1)
        RETURNING id");
    my ($young, $done);
    ok(wait_for(sub {
        postgres()->halt("INT");
        postgres()->resume;
        ($young, $done) = @{(sql($database, "SELECT statement_timestamp()
            - pg_postmaster_start_time() < '8 s', crmapi.job_reap()"))[0]};
        return $young eq "t";
    }, 120), "the server has just started");
    is($done, 0, "a lease that has expired is waited for");
    is(sql($database, "SELECT leased_by FROM crmapi.job WHERE id = $id"), "x",
        "and stays whose it was");
    postgres()->wait_reaping;
    is(sql($database, "SELECT crmapi.job_reap()"), 1, "then no longer");
};

subtest "an unconfirmed commit is no success, whatever messages a role gets" => sub {
    my $httpd = httpd(database => $database, dbd => "DBDMin 0\n",
        conf => "CrmApiDatabaseTimeout 1s\n");
    my $create = sub { $httpd->client(key => $w->key)->post("/api/v1/contacts",
        { bot_id => $w->agent }) };
    my $standby = sub {
        my ($name) = @_;
        sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '$name'");
        sql("postgres", "SELECT pg_reload_conf()");
        wait_for(sub { sql("postgres", "SELECT true WHERE current_setting("
            . "'synchronous_standby_names') = '$name'") });
    };
    sql("postgres", "ALTER DATABASE $database SET client_min_messages = error");
    $standby->("nobody");
    $httpd->expect_log(qr/CRM2007: /);
    error_is($create->(), 503, "service_unavailable", "no standby has it");
    $standby->("");
    status_is($create->(), 201, "without a standby it is a success");
    $httpd->stop;
};
done_testing;
