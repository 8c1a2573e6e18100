# SPDX-License-Identifier: Apache-2.0
# 26-upgrade.t: contract 16.2: the module, the worker and crmapictl use the
# schema of a later release; migrations do not block others for long, and
# continue where they were interrupted
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Session;
use CrmTest::Upgrade;
use Digest::SHA qw(sha256_hex);
use File::Basename qw(basename);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP ();
use List::Util qw(sum);
use Time::HiRes qw(time sleep);

my $ROWS = 1500;
my $json = JSON::PP->new->utf8;
my ($before, $after) = versions();
my @of = later_steps();

# A database with $ROWS contacts in one workspace.
sub filled {
    my $database = database();
    my ($w, $bot) = (uuid(), uuid());
    sql($database, "INSERT INTO crmapi.workspace (id, name, slug, plan)"
        . " VALUES ('$w', 'W', 'w', 'pro');"
        . " INSERT INTO crmapi.agent (workspace_id, id, name, slug)"
        . " VALUES ('$w', '$bot', 'A', 'a');"
        . " INSERT INTO crmapi.contact (workspace_id, id, bot_id, last_name)"
        . " SELECT '$w', gen_random_uuid(), '$bot', 'L' || n FROM"
        . " generate_series(1, $ROWS) n; ANALYZE crmapi.contact");
    return ($database, $w, $bot);
}

# What "crmapictl status" says.
sub status {
    my ($database) = @_;
    my ($code, $out) = crmapictl($database, "--json", "status");
    return $json->decode($out);
}

# No run has the lock any more: its backend has noticed that it is gone.
sub wait_gone {
    my ($database) = @_;
    ok(wait_for(sub { !defined status($database)->{migration_pid} }, 20),
        "the backend of a killed run ends");
}

# Wait until RUN is at STEP, as the status says, and CONDITION holds.
sub wait_step {
    my ($database, $run, $step, $condition) = @_;
    my $seen = wait_for(sub {
        return -1 if ended($run);
        my $status = status($database);
        return ($status->{migration_step} // "") =~ $step
            && (!$condition || $condition->($status));
    }, 30);
    ok($seen && $seen > 0, "the status shows the step $step")
        or diag(explain(status($database)), read_file($run->{log}));
}

sub kill_run {
    my ($run) = @_;
    kill KILL => $run->{pid};
    waitpid $run->{pid}, 0;
}

# DATABASE has all that the migrations do.
sub complete {
    my ($database) = @_;
    my $status = status($database);
    is_deeply([@$status{qw(schema_version schema_oldest migration)}],
        [$after, $before, undef], "the status says so");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
        . " name_length = length(last_name)"), $ROWS, "every row is filled");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.region"),
        scalar sql($database, "SELECT count(*) FROM crmapi.workspace"),
        "the new table has its rows");
    is_deeply([sql($database, "SELECT conname, convalidated FROM pg_constraint"
        . " WHERE conname IN ('contact_name_length', 'company_region')"
        . " ORDER BY 1")], [["company_region", "t"],
        ["contact_name_length", "t"]], "the constraints are valid");
    is(scalar sql($database, "SELECT indisvalid FROM pg_index WHERE indexrelid"
        . " = 'crmapi.contact_name_length_idx'::regclass"), "t",
        "so is the index");
    is(scalar sql($database, "SELECT count(*) FROM pg_proc WHERE proname ="
        . " 'key_look_up'"), 2, "the function has both signatures");
}

subtest "16.2 programs of the release before use the schema of the next" => sub {
    my $database = database();
    my $httpd = httpd(database => $database);
    my $w = workspace($httpd, twin => 0);
    status_is($w->client->post("/api/v1/contacts", { bot_id => $w->agent,
        last_name => "Before" }), 201, "before");
    my $id = sql($database, "SELECT id FROM crmapi.contact");
    is(crmapictl_ok($database, "migrate", "--schema", next_schema()),
        "schema version $after", "migrate prints the version");
    $httpd->restart;
    status_is($w->client->patch("/api/v1/contacts/$id", { last_name => "Now" }),
        200, "httpd writes");
    status_is($w->client->get("/api/v1/contacts?search=Now"), 200, "and reads");
    is(scalar sql($database, "SELECT name_length FROM crmapi.contact"), 3,
        "the trigger fills what it does not know");
    my $worker = worker(database => $database, no_start => 1);
    $worker->once;
    $worker->stop;
    my $status = status($database);
    is_deeply([@$status{qw(schema_version schema_expected schema_oldest
        workspaces)}], [$after, $before, $before, 1], "crmapictl status");
    sql($database, "UPDATE crmapi.migration SET min_module = number"
        . " WHERE number = $after");
    my ($code, $out, $err) = crmapictl($database, "workspace", "list");
    is("$code $out", "1 ", "crmapictl refuses one that is not compatible");
    like($err, qr/version $after, for programs of version $after or later, but crmapictl has version $before: upgrade crmapictl/,
        "and says why");
    ($code, $out, $err) = crmapictl($database, "--json", "status");
    is($code, 1, "status fails, too");
    is_deeply([sort keys %{$json->decode($out)}], [sort qw(schema_version
        schema_expected schema_oldest migration migration_step
        migration_progress migration_pid)], "but shows the schema");
    ($code) = crmapictl($database, { stdin => "To: a\@x.example\n\nx" },
        "deliver", "--workspace", $w->id);
    is($code, 75, "deliver asks the mail server to try again");
    $httpd->stop;
};

# No step of DATABASE can end that was not interrupted before.
sub hold_steps {
    my ($database) = @_;
    sql($database, <<'END');
CREATE TABLE public.interrupted AS SELECT NULL AS at;
GRANT SELECT ON public.interrupted TO PUBLIC;
CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.interrupted
        WHERE at = OLD.number || '/' || OLD.steps_done) THEN
        PERFORM pg_sleep(60);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE UPDATE OF steps_done ON crmapi.migration
    FOR EACH ROW EXECUTE FUNCTION public.hold();
END
}

subtest "a run that is killed in each step is continued" => sub {
    my ($database) = filled();
    my (%seen, $run);
    hold_steps($database);
    my $steps = sum(@of);
    for (0 .. $steps) {
        $run = migrating($database);
        my $at;
        wait_for(sub { return 1 if ended($run);
            $at = sql($database, "SELECT number || '/' || steps_done"
                . " FROM crmapi.migration WHERE step IS NOT NULL");
            return defined $at && !$seen{$at} }, 60);
        last if ended($run);
        $seen{$at}++;
        kill_run($run);
        sql($database, "INSERT INTO public.interrupted VALUES ('$at')");
    }
    is(scalar keys %seen, $steps, "each of the $steps steps was interrupted")
        or diag(explain(\%seen));
    is($run->{status}, 0, "the last run ends well")
        or diag(read_file($run->{log}));
    complete($database);
    is(crmapictl_ok($database, "--json", "migrate", "--schema", next_schema()),
        "{\"version\":$after,\"applied\":0}", "there is nothing left to do");
};

subtest "an index that is not complete is built anew; two runs at once" => sub {
    my ($database) = filled();
    my $release = holding($database,
        "LOCK TABLE crmapi.agent, crmapi.contact IN ROW EXCLUSIVE MODE");
    my $first = migrating($database);
    wait_step($database, $first, qr/^1 of $of[0]: transaction: add the column\b/);
    ok(wait_for(sub { read_file($first->{log})
        =~ /CRM2111: .*step 1 of $of[0].*backend \d+, psql, \S.*, has had RowExclusiveLock on crmapi\.(?:agent|contact) .*trying again/ },
        20), "who is in the way is named") or diag(read_file($first->{log}));
    $release->();
    $release = undef;
    # the index waits for writers; nothing else of then does
    ok(wait_for(sub { ended($first) || scalar sql($database,
        "SELECT count(*) FROM crmapi.migration WHERE number = $before + 1"
        . " AND steps_done = $of[0]") }, 60), "then the step is done");
    ok(wait_for(sub { ended($first) }, 60), "and all others");
    complete($database);

    # back to the time before the index
    sql($database, "UPDATE crmapi.migration SET steps_done = 0"
        . " WHERE number = $before + 2; DELETE FROM crmapi.migration"
        . " WHERE number = $after; DROP TABLE crmapi.region CASCADE;"
        . " ALTER TABLE crmapi.company DROP COLUMN region;"
        . " DROP INDEX crmapi.contact_name_length_idx;"
        . " DROP FUNCTION crmapi.key_look_up(bytea, integer)");
    $release = holding($database,
        "LOCK TABLE crmapi.contact IN ROW EXCLUSIVE MODE");
    $first = migrating($database);
    wait_step($database, $first, qr/^1 of $of[1]: index contact_name_length_idx$/,
        sub { ($_[0]{migration_progress} // "")
            =~ /^waiting for writers before build/ });
    my $second = migrating($database);
    ok(wait_for(sub { read_file($second->{log}) =~ /CRM2110: waiting for another crmapictl migrate \(backend \d+\)/ }, 20),
        "a second run waits") or diag(read_file($second->{log}));
    kill_run($first);
    ok(wait_for(sub { read_file($second->{log}) =~ /CRM2112: .*step 1 of $of[1] \(index contact_name_length_idx\): the index was left incomplete/ }, 20),
        "it goes on when the first was killed") or diag(read_file($second->{log}));
    $release->();
    ok(wait_for(sub { ended($second) }, 60), "it ends");
    is($second->{status}, 0, "well") or diag(read_file($second->{log}));
    complete($database);
};

subtest "batches go on after the last one" => sub {
    plan(skip_all => "Citus has no batches") if CrmTest::Citus::wanted();
    my ($database) = filled();
    # the first step is done by hand: a row that is locked would stop it, too
    my $text = read_file((glob next_schema() . "/*-column.sql")[0]);
    my ($first) = $text =~ /-- step: transaction: add[^\n]*\n(.*?)-- step/s;
    sql($database, $first);
    my $sha = sha256_hex($text);
    sql($database, "INSERT INTO crmapi.migration (number, name, sha256,"
        . " min_module, steps, steps_done) VALUES ($before + 1,"
        . " 'column.sql', '$sha', $before, 5, 1)");
    my $release = holding($database, "SELECT FROM crmapi.contact WHERE id ="
        . " (SELECT id FROM crmapi.contact ORDER BY workspace_id, id"
        . " OFFSET 1200 LIMIT 1) FOR UPDATE");
    my $run = migrating($database);
    wait_step($database, $run, qr/^2 of 5: batches crmapi.contact: fill/,
        sub { ($_[0]{migration_progress} // "") =~ /^[1-9]\d* of about $ROWS rows$/
            && $_[0]{migration_pid} });
    ok(wait_for(sub { read_file($run->{log}) =~ /CRM2111: .*step 2 of 5/ }, 20),
        "a locked row stops it") or diag(read_file($run->{log}));
    kill_run($run);
    wait_gone($database);
    my $done = sql($database, "SELECT rows_done FROM crmapi.migration"
        . " WHERE number = $before + 1");
    my $filled = "FROM crmapi.contact WHERE name_length IS NOT NULL";
    is(scalar sql($database, "SELECT count(*) $filled"), $done,
        "$done rows are filled, and counted");
    my $versions = "SELECT md5(string_agg(id || xmin::text, '' ORDER BY id))"
        . " FROM (SELECT id, xmin FROM crmapi.contact ORDER BY workspace_id, id"
        . " LIMIT $done) t";
    my $touched = sql($database, $versions);
    my $worker = worker(database => $database, no_start => 1);
    like($worker->once, qr/CRM3204: migration \S+column.sql, step 2 of 5: batches crmapi.contact: fill the column: $done of about $ROWS rows; nobody is running it: run crmapictl migrate/,
        "crmapid's log tells how far it is");
    $worker->stop;
    $release->();
    crmapictl_ok($database, "migrate", "--schema", next_schema());
    is(scalar sql($database, $versions), $touched,
        "the next run does not touch them again");
    complete($database);
};

subtest "limits are a step's: not what comes behind it, not the database's" => sub {
    my ($database) = filled();
    my $dir = tempdir("crm-limits-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    symlink $_, "$dir/" . basename($_) or die "$_: $!\n"
        for glob("$CrmTest::TOP/schema/[0-9]*.sql"),
        "$CrmTest::TOP/schema/citus";
    write_file(sprintf("%s/%04d-step.sql", $dir, $before + 1),
        "-- min_module: $before\n-- step: transaction: one\nSELECT 1;\n");
    make_path("$dir/repeat");
    write_file("$dir/repeat/0001-slow.sql", "SELECT pg_sleep(1.5);\n");
    sql($database, "ALTER DATABASE $database SET statement_timeout = '500ms'");
    is(crmapictl_ok($database, "migrate", "--schema", $dir),
        "schema version " . ($before + 1), "behind a step");
    is(crmapictl_ok($database, "migrate", "--schema", $dir),
        "schema version " . ($before + 1), "without one");
};

subtest "no statement waits for a migration longer than a second" => sub {
    my ($database, $w, $bot) = filled();
    my $release = holding($database, "SELECT count(*) FROM crmapi.contact");
    my $writer = CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my ($n, @late) = (0);
        while ($go_on->()) {
            eval { sql($database, "SET lock_timeout = '1s';"
                . " INSERT INTO crmapi.contact (workspace_id, id,"
                . " bot_id, last_name) VALUES ('$w', gen_random_uuid(),"
                . " '$bot', 'L')"); 1 } or push @late, $@;
            $n++;
            sleep 0.02;
        }
        return ($n, @late);
    });
    my $oldest = status($database)->{schema_oldest};
    my $start = time;
    my ($code, $out, $err) = crmapictl($database, "migrate", "--schema",
        next_schema(), "--lock-wait", "3");
    my $took = time - $start;
    $writer->stop;
    my ($n, @late) = $writer->result;
    is($code, 1, "a lock that is never free: migrate gives up");
    like($err, qr/CRM2107: .*-column.sql, step 1 of $of[0] \(transaction: add.*backend \d+, psql, \S.*, has had AccessShareLock on crmapi.*: run crmapictl migrate again/,
        "and says who had it, and what to do");
    cmp_ok($took, ">", 1, "after --lock-wait");
    cmp_ok($n, ">", 5, "others wrote all the time");
    is("@late", "", "none of them waited for a lock for a second");
    is(status($database)->{schema_oldest}, $oldest, "nothing is done");
    $release->();
};

done_testing;
