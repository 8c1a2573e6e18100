# SPDX-License-Identifier: Apache-2.0
# 94-scaling-docs.t: the examples and sums of docs/scaling.md are right
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Pooler;

my $text = read_file("$CrmTest::TOP/docs/scaling.md");
my $database = database();

subtest "the sums" => sub {
    my @sums = $text =~ /^    ([\d *+()]+) = (\d+)$/mg;
    cmp_ok(scalar @sums, ">=", 6, "there are some");
    while (my ($sum, $result) = splice @sums, 0, 2) {
        is(eval $sum, $result, "$sum = $result");
    }
};

# The most sessions that ROLE has while CODE runs.
sub most_sessions {
    my ($role, $code) = @_;
    my $most = 0;

    wait_for(sub {
        my $now = sql($database, "SELECT count(*) FROM pg_stat_activity WHERE"
            . " datname = '$database' AND usename = '$role'");
        $most = $now if $now > $most;
        return $code->($now);
    }, 20);
    return $most;
}

subtest "httpd = hosts * processes (ServerLimit) * DBDMax" => sub {
    my ($processes, $max) = (2, 3);
    my $httpd = httpd(database => $database, children => $processes,
        dbd => "DBDMin 0\nDBDKeep $max\nDBDMax $max\n",
        conninfo => postgres()->conninfo($database, $CrmTest::Postgres::API),
        conf => "CrmApiDatabaseWait 1s\nCrmApiBatches Off\n");
    $httpd->expect_log(qr/CRM1303: /);
    my $w = workspace($httpd, twin => 0);
    # one row is locked, so each request holds its connection
    my $id = insert($w, "contact", bot_id => $w->agent);
    my $let_go = postgres()->hold($database, "SELECT FROM crmapi.contact"
        . " WHERE id = '$id' FOR UPDATE");
    my @clients = map { my $n = $_; CrmTest::Child->start(sub {
        $w->client(timeout => 60)->patch("/api/v1/contacts/$id",
            { notes => "n$n" })->status }) } 1 .. 20;
    my $want = $processes * $max;
    my $most = most_sessions($CrmTest::Postgres::API, sub {
        (() = $httpd->access_log =~ /" 503 /g) == @clients - $want });
    $let_go->();
    my %count;
    $count{($_->result)[0]}++ for @clients;
    is($most, $want, "no more, and all of them if they are needed");
    is_deeply(\%count, { 200 => $want, 503 => @clients - $want },
        "these are served, the others were told to come again");
    $httpd->stop;
};

subtest "crmapid = threads + generate_threads + answer_threads + webhook_threads + 3" => sub {
    my %conf = (threads => 5, generate_threads => 4, answer_threads => 3,
        webhook_threads => 2);
    my $worker = worker(database => $database, conf => \%conf);
    my $want = 3;

    $want += $_ for values %conf;

    is(most_sessions($CrmTest::Postgres::WORKER, sub { $_[0] >= $want }),
        $want, "each thread has one");
    $worker->stop;
};

subtest "lines of httpd.conf" => sub {
    my @blocks = documented("scaling.md", "apache");
    cmp_ok(scalar @blocks, ">=", 3, "there are some");
    for my $block (@blocks) {
        my $httpd = httpd(no_start => 1);
        $httpd->write_conf("DBDriver pgsql\n$block");
        my ($code, $words) = $httpd->run("-t");
        is($code, 0, "accepted: " . ($block =~ /(\w+)/)[0]) or diag($words);
    }
    my ($params) = grep { /target_session_attrs=read-write/ } @blocks;
    my ($conninfo) = $params =~ /"(.*)"/;
    like($conninfo, qr/host=\w+,\w+ .*\bconnect_timeout=2\b/,
        "failover: several hosts, and a limit for each");
    my $worker = worker(no_start => 1, conninfo => $conninfo);
    is(($worker->run("-t"))[0], 0, "crmapid accepts the same");
};

for my $mode (qw(session transaction)) {
    subtest "pgbouncer.ini of mode $mode" => sub {
        my $pooler = CrmTest::Pooler->start($mode, postgres());
        my $httpd = httpd(database => $database, conninfo =>
            $pooler->conninfo($database, $CrmTest::Postgres::API),
            conf => $mode eq "transaction" ? "CrmApiNamedStatements Shared\n"
                : "");
        my $w = workspace($httpd);
        for my $n (1 .. 5) {
            my $r = $w->client->post("/api/v1/contacts",
                { bot_id => $w->agent, first_name => "P$n" });
            status_is($r, 201, "a write");
            status_is($w->client->get("/api/v1/contacts/" . $r->data->{id}),
                200, "a read");
        }
        my $worker = worker(database => $database, conninfo =>
            $pooler->conninfo($database, $CrmTest::Postgres::WORKER),
            conf => { named_statements => $mode eq "session" ? "on" : "off" });
        $worker->stop;
        $httpd->stop;
        $pooler->stop;
    };
}

done_testing;
