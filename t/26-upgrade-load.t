# SPDX-License-Identifier: Apache-2.0
# 26-upgrade-load.t: contract 16.2: a database of a million contacts is migrated,
# then two hosts and two workers are replaced one by one, under 200 requests a
# second: no 5xx, no statement waits for a lock over a second, nothing is sent
# twice. $CRM_UPGRADE_ROWS is another number of contacts.
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Child;
use CrmTest::Smtpd;
use CrmTest::Upgrade;
use Time::HiRes qw(time sleep);

CrmTest::Smtpd::needed();

my $ROWS = $ENV{CRM_UPGRADE_ROWS} || 1_000_000;
my ($CLIENTS, $RATE, $TAGS) = (8, 200, 2000);
my ($before, $after) = versions();
my $database = database();
# PostgreSQL says which statements wait for a lock longer than a second.
postgres()->sql("postgres", "ALTER DATABASE $database SET log_lock_waits = on;
    ALTER DATABASE $database SET deadlock_timeout = '1s'");
# A server that takes a message as often as it is sent: maildir would not.
my $smtp = CrmTest::Smtpd->new;
my $scratch = File::Temp::tempdir("crm-load-XXXXXX", TMPDIR => 1, CLEANUP => 1);

# ---- two hosts and two workers of the release before

# Programs that a test can replace: links to those of this build.
my %now = (module => $CrmTest::BUILD{MODULE}, worker => $CrmTest::BUILD{WORKER});
my %next = (module => next_build() . "/mod_crmapi.so",
    worker => next_build() . "/crmapid");
sub install {
    my ($what, $which, $from) = @_;
    my $path = "$scratch/$what$which";
    unlink "$path.new";
    symlink $from, "$path.new" or die "$path: $!\n";
    rename "$path.new", $path or die "$path: $!\n";
    return $path;
}

my @httpds = map { local $CrmTest::BUILD{MODULE} = install("module", $_,
    $now{module}); httpd(database => $database, unlimited => 1,
    shows => ["metrics"]) } 0, 1;
my @workers = map { local $CrmTest::BUILD{WORKER} = install("worker", $_,
    $now{worker}); worker(database => $database, conf => {
    $smtp->relay }) } 0, 1;
my $w = workspace($httpds[0], plan => "pro", twin => 0);
my $template = $w->template([map { { delay => 0, email_subject => "S$_",
    email_body => "B" } } 1, 2]);

my $start = time;
my ($id, $bot) = ($w->id, $w->agent);
for (my $n = 0; $n < $ROWS; $n += 20_000) {
    sql($database, "INSERT INTO crmapi.contact (workspace_id, id, bot_id,"
        . " first_name, last_name, tags) SELECT '$id', gen_random_uuid(),"
        . " '$bot', 'C' || n, md5(n::text), ARRAY['t' || n % $TAGS]"
        . " FROM generate_series($n + 1, least($n + 20000, $ROWS)) n");
}
sql($database, "VACUUM ANALYZE crmapi.contact");
my @ids = map { $_->[0] } sql($database, "SELECT id FROM crmapi.contact"
    . " ORDER BY random() LIMIT 2000");
diag(sprintf "%d contacts in %.0f s", $ROWS, time - $start);

# ---- what clients do

# A request of a mix, the Nth of client WHO, to CLIENT.
sub request {
    my ($client, $who, $n) = @_;
    my $path = "/api/v1/contacts/$ids[($n * $CLIENTS + $who) % @ids]";
    my $kind = $n % 10;

    return $client->get($path) if $kind < 4;
    return $client->get("/api/v1/contacts?page_size=10&tags=t" . $n % $TAGS)
        if $kind == 4;
    return $client->get("/api/v1/contacts?page_size=25") if $kind == 5;
    return $client->patch($path, { last_name => "P$n" }) if $kind < 8;
    return $client->post("/api/v1/contacts", { bot_id => $bot,
        last_name => "N$who-$n" }) if $kind == 8;
    return $n % 50 == 9 ? $client->post("/api/v1/sequences/start", {
        template_id => $template, auto_approve => true,
        contact => { emails => ["m$who-$n\@x.example"] } })
        : $client->post("/api/v1/companies", { bot_id => $bot,
        name => "Co $who-$n" });
}

# Send requests at this client's part of the rate until told to stop: by status,
# the bad ones, the slowest.
sub send_requests {
    my ($go_on, $who) = @_;
    my @clients = map { $_->client(key => $w->key, timeout => 60,
        headers => { Connection => "close" }) } @httpds;
    my (%status, @bad);
    my ($begin, $slowest, $n) = (time, 0, 0);

    for (; $go_on->(); $n++) {
        my $wait = $begin + $n * $CLIENTS / $RATE - time;
        sleep $wait if $wait > 0;
        my $sent = time;
        my $r = eval { request($clients[$n % 2], $who, $n) };
        my $took = time - $sent;
        $slowest = $took if $took > $slowest;
        $status{$r ? int($r->status / 100) . "xx" : "lost"}++;
        push @bad, sprintf "%.3f %s", $sent, $r ? $r->status . " " . $r->body
            : $@ if !$r || $r->status >= 400;
    }
    return { status => \%status, bad => [splice @bad, 0, 5], n => $n,
        slowest => $slowest, seconds => time - $begin };
}

# Look at the locks that sessions of the hosts and workers wait for: the longest.
# One session of PostgreSQL looks twenty times a second.
sub watch {
    my ($go_on) = @_;
    my $longest = 0;
    while ($go_on->()) {
        my $now = sql($database, <<'END');
CREATE TEMP TABLE IF NOT EXISTS longest (t interval);
DO $$ BEGIN
    FOR i IN 1 .. 40 LOOP
        INSERT INTO longest SELECT max(clock_timestamp() - l.waitstart)
        FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE NOT l.granted AND a.usename IN ('crmapi_site', 'crmapi_daemon');
        PERFORM pg_sleep(0.05), pg_stat_clear_snapshot();
        COMMIT;
    END LOOP;
END $$;
SELECT coalesce(extract(epoch FROM max(t)), 0) FROM longest
END
        $longest = $now if $now > $longest;
    }
    return $longest;
}

# What PostgreSQL's log has of sessions of the hosts and workers that waited for a
# lock longer than a second.
sub long_waits {
    return grep { / \Q$database\E (?:crmapi_site|crmapi_daemon) LOG:  process \d+ (?:still waiting|acquired)/ }
        split /\n/, read_file(postgres()->host . "/log");
}

# The version of the schema that the module of HTTPD needs.
sub module_of {
    my ($httpd) = @_;
    return ($httpd->client->get("/metrics")->body
        =~ /^crmapi_build_info\{.*schema="(\d+)"/m)[0] // "?";
}

# Host I needs the schema VERSION, as soon as no process of before answers.
sub replaced {
    my ($i, $version, $name) = @_;
    ok(wait_for(sub { module_of($httpds[$i]) eq $version }, 30), $name);
}

# ---- the upgrade

my @clients = map { my $who = $_; CrmTest::Child->start(sub {
    send_requests($_[0], $who) }) } 0 .. $CLIENTS - 1;
my $watch = CrmTest::Child->start(\&watch);
# requests are under way
sub rows { scalar sql($database, "SELECT count(*) FROM crmapi.company") }
sub wait_busy {
    my $rows = rows();
    wait_for(sub { rows() > $rows + 10 }, 60) or fail("clients are at work");
}
wait_busy();
{
    local $CrmTest::BUILD{WORKER} = $next{worker};
    my $early = worker(database => $database, no_start => 1);
    my ($code, $out, $err) = $early->run("-1");
    is($code, 1, "a worker of the next release refuses the schema");
    like($err, qr/CRM3002: .*schema is version $before, but crmapid needs version $after/,
        "and says so");
}

$start = time;
my $run = migrating($database);
ok(wait_for(sub { ended($run) }, 3600), "migrate ends");
is($run->{status}, 0, "well") or diag(read_file($run->{log}));
diag(sprintf "migrated in %.0f s", time - $start);
diag($_) for split /\n/, read_file($run->{log});
wait_busy();
is(module_of($_), $before, "a host is of the release before") for @httpds;
for my $i (0, 1) {
    install("module", $i, $next{module});
    $httpds[$i]->restart;
    replaced($i, $after, "host $i is replaced");
    wait_busy();
    $workers[$i]->stop;
    install("worker", $i, $next{worker});
    local $CrmTest::BUILD{WORKER} = "$scratch/worker$i";
    $workers[$i]->start;
    wait_busy();
}
install("module", 0, $now{module});
$httpds[0]->restart;
replaced(0, $before, "a host goes back to the release before");
wait_busy();
$_->stop for @clients, $watch;

# ---- what was seen

my @results = map { $_->result } @clients;
my (%status, @bad);
my ($n, $seconds, $slowest) = (0, 0, 0);
for my $result (@results) {
    $status{$_} += $result->{status}{$_} for keys %{$result->{status}};
    push @bad, @{$result->{bad}};
    $n += $result->{n};
    $seconds = $result->{seconds};
    $slowest = $result->{slowest} if $result->{slowest} > $slowest;
}
diag(sprintf "%d requests, %.0f a second, the slowest %.0f ms", $n,
    $n / $seconds, 1000 * $slowest);
cmp_ok($n / $seconds, ">", 0.9 * $RATE / busy(), "$RATE requests a second, fewer"
    . " where others use the machine");
is_deeply([keys %status], ["2xx"], "16.2 every request succeeds: $n")
    or diag(explain(\%status), @bad);
my ($longest) = $watch->result;
cmp_ok($longest, "<", 1, sprintf "16.2 no statement waits for a lock over a"
    . " second: %.0f ms", 1000 * $longest);
is_deeply([long_waits()], [], "16.2 PostgreSQL's log has none either");

subtest "nothing is sent twice, nothing is lost" => sub {
    my $live = "SELECT count(*) FROM crmapi.enrollment WHERE status IN"
        . " ('generating', 'pending_approval', 'approved', 'running')";
    ok(wait_for(sub { !sql($database, $live) }, 120), "all sequences end");
    $_->stop for @workers;
    my %mails;
    for my $text ($smtp->received) {
        my ($to) = $text =~ /^To: (?:.*<)?([^>\s]+)/m;
        my ($subject) = $text =~ /^Subject: (\S+)/m;
        $mails{"$to $subject"}++;
    }
    my $sent = sql($database, "SELECT count(*) FROM crmapi.enrollment_step"
        . " WHERE status = 'sent'");
    cmp_ok($sent, ">", 0, "$sent steps were sent");
    is(scalar keys %mails, $sent, "each is a mail");
    is_deeply([grep { $mails{$_} > 1 } keys %mails], [], "and only one");
};
is(scalar sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
    . " name_length IS DISTINCT FROM coalesce(length(first_name), 0)"
    . " + coalesce(length(last_name), 0)"), 0, "every row is filled in");
triggers_kept_up($database, "7.11 the totals are right");
is(scalar sql($database, "SELECT count(*) FROM crmapi.region"), 1,
    "the new table has its rows");

subtest "a statement that waits for a second would have been seen" => sub {
    my $look = CrmTest::Child->start(\&watch);
    my $let_go = postgres()->hold($database,
        "LOCK TABLE crmapi.company IN ACCESS EXCLUSIVE MODE");
    my $client = CrmTest::Child->start(sub { $w->client(timeout => 60)
        ->post("/api/v1/companies", { bot_id => $bot, name => "Last" })
        ->status });
    ok(wait_for(sub { scalar(long_waits()) }, 20), "in the log");
    $let_go->();
    is(($client->result)[0], 201, "it was served then");
    $look->stop;
    cmp_ok(($look->result)[0], ">=", 0.9, "and among the locks");
};
$_->stop for @httpds;
done_testing;
