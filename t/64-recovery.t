# SPDX-License-Identifier: Apache-2.0
# 64-recovery.t: the commands of docs/backup.md for base backups: the cluster is
# recovered to a moment at which sequences were being sent. crmapid notices it, and
# nothing is sent twice, with its run_dir or without
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file's server goes back in time, so it has its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Data;
use CrmTest::Outreach;
use CrmTest::Process qw(demoted);
use CrmTest::Smtpd;
use File::Path qw(remove_tree);

CrmTest::Smtpd::needed();

my $PEOPLE = 60;
my $server = CrmTest::Postgres->get(full_page_writes => "on");
my $dir = $server->host;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0);
my $outreach = CrmTest::Outreach->new($w);
my %conf = ($outreach->relay, lease => "2s");
my $worker = worker(database => $database, no_start => 1, conf => \%conf);

# The blocks of commands of the document's section, each a list.
my @blocks = map { [grep { /\S/ } split /^\$ /m] }
    documented("backup.md", "console", "## Base backups");
is(scalar @blocks, 3, "the document has commands for archiving, a base backup"
    . " and a recovery") or BAIL_OUT("another document");

# Run the commands of BLOCK as the document's reader does, with the folders and the
# server of this test, and MOMENT for the document's.
sub paste {
    my ($block, $moment) = @_;
    for my $command (@$block) {
        my $mine = $command =~ s{/var/lib/postgresql/15/main}{$dir/data}gr
            =~ s{/var/lib/postgresql/}{$dir/}gr;
        $mine =~ s/^recovery_target_time='\K[^']+/$moment/m;
        if ($mine =~ /^pg_ctlcluster 15 main (\w+)$/m) {
            $server->halt if $1 ne "start";
            $server->resume if $1 ne "stop";
            next;
        }
        my ($code, $out, $err) = run_program(chdir => "/", seconds => 60,
            command => [demoted(), "sh", "-eu", "-c", $mine], env => {
                PGHOST => $dir, PGDATABASE => "postgres",
                PGUSER => CrmTest::Postgres::superuser() });
        is($code, 0, (split /\n/, $command)[0]) or BAIL_OUT("$out$err");
    }
}

# What "crmapictl status" says of the hold.
sub held {
    return crmapictl_json($database, "status")->{held_reason};
}

# How many steps number 1 have STATUS.
sub first_steps {
    my ($status) = @_;
    return scalar sql($database, "SELECT count(*) FROM crmapi.enrollment_step"
        . " WHERE sort_order = 1 AND status = '$status'");
}

# Go back to MOMENT with the document's commands.
sub recover {
    my ($moment) = @_;
    remove_tree("$dir/data.before");
    paste($blocks[2], $moment);
    is(sql($database, "SELECT pg_is_in_recovery()"), "f", "it takes writes");
    cmp_ok(first_steps("sent"), ">=", 5, "first steps were sent at that moment");
    cmp_ok(first_steps("sent"), "<", $PEOPLE - 20, "and many were not");
}

subtest "WAL is archived, and a base backup is made" => sub {
    paste($_) for @blocks[0, 1];
    ok(wait_for(sub { glob("$dir/archive/0*") ? 1 : 0 }, 20),
        "the archive has a file");
};

my ($moment, $got);
subtest "sequences are sent, before the moment and after it" => sub {
    $outreach->start(2 .. $PEOPLE);
    $worker->start;
    ok(wait_for(sub { $outreach->sent_of(1) >= 10 }, 60), "some");
    $moment = sql($database, "SELECT to_char(now() AT TIME ZONE 'UTC',"
        . " 'YYYY-MM-DD HH24:MI:SS.US+00')");
    ok(wait_for(sub { $outreach->sent_of(1) == $PEOPLE - 1 }, 120), "then all");
    $outreach->hurry($database, 2, 20);
    ok(wait_for(sub { $outreach->sent_of(2) == 19 }, 60), "and second steps");
    $worker->stop;
    $got = $outreach->got;
};

subtest "the recovered database is held, and sends nothing" => sub {
    recover($moment);
    $worker->expect_log(qr/CRM3010: an older state of the database was /);
    $worker->may_log(qr/CRM3005/);      # the leases of before
    $worker->start;
    ok($worker->wait_log(qr/CRM3010: .*crmapictl release/), "crmapid says it");
    is(held(), "an older state of the database was restored", "so does status");
    sql($database, "UPDATE crmapi.job SET run_at = now() WHERE state ="
        . " 'ready'");
    $worker->stop;
    $worker->once;
    is_deeply($outreach->got, $got, "nothing is sent");
};

subtest "after the release nothing is sent twice, and nothing is missing" => sub {
    crmapictl_ok($database, "release");
    $worker->may_log(qr/CRM3104|CRM3122|CRM3123/);
    $worker->start;
    for my $step (1 .. 3) {
        $outreach->hurry($database, $step, $PEOPLE);
        ok(wait_for(sub { $outreach->open_of($database, $step) eq "0 0" }, 120),
            "steps $step are done")
            or diag($outreach->open_of($database, $step));
    }
    $worker->stop;
    $outreach->nothing_twice("nothing came twice");
    is($outreach->sent_of($_), $PEOPLE - 1, "each has come: step $_") for 1 .. 3;
    is(held(), undef, "it is not held");
    $got = $outreach->got;
};

subtest "without its run_dir: released without what was due before" => sub {
    recover($moment);
    crmapictl_ok($database, qw(hold --all --reason recovered));
    my $new = worker(database => $database, no_start => 1, conf => \%conf);
    $new->may_log(qr/CRM3005|CRM3104|CRM3122|CRM3123/);
    $new->start;
    ok($new->wait_log(qr/CRM3001/), "a worker that knows nothing");
    is(held(), "recovered", "the hold of the operator");
    my @t = gmtime;
    crmapictl_ok($database, "release", "--skip-due-before", sprintf(
        "%04d-%02d-%02dT%02d:%02d:%02dZ", $t[5] + 1900, $t[4] + 1,
        @t[3, 2, 1, 0]));
    ok(wait_for(sub { $outreach->open_of($database, 1) eq "0 0" }, 60),
        "no first step is open") or diag($outreach->open_of($database, 1));
    $new->stop;
    is_deeply($outreach->got, $got, "nothing was sent");
    cmp_ok(first_steps("skipped"), ">", 10, "those that were due are skipped");
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment_step s WHERE"
        . " sort_order = 2 AND status = 'scheduled' AND scheduled_for > now()"
        . " AND enrollment_id IN (SELECT enrollment_id FROM"
        . " crmapi.enrollment_step WHERE status = 'skipped')"),
        first_steps("skipped"), "and the sequences go on");
};

$httpd->stop;
done_testing;
