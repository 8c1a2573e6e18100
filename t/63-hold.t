# SPDX-License-Identifier: Apache-2.0
# 63-hold.t: while held, nothing is sent; after the release, sending continues
# (contract 14.2)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Receiver;
use JSON::PP ();

my $json = JSON::PP->new->utf8;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $receiver = CrmTest::Receiver->new;
my $worker = worker(database => $database, no_start => 1,
    conf => { webhook_private => "on" });
my $spaces = 0;

# A workspace with an admin, an endpoint, and a template of STEPS mails, each a
# minute after the one before.
sub space {
    my ($steps) = @_;
    my $w = workspace($httpd, twin => 0);
    $w->{name} = "w" . ++$spaces;
    $w->ctl(qw(admin add --workspace), $w->id, "--email",
        "boss\@$w->{name}.example");
    $w->webhook($receiver->url("$w->{name}/200"), "contact.created");
    $w->{template} = $w->template([map { { email_subject => "Step $_",
        email_body => "Hello {{first_name}}", delay => "1m" } }
        1 .. $steps // 1]);
    return $w;
}

my $people = 0;

# Start a sequence of W; its id.
sub start {
    my ($w, %members) = @_;
    return $w->start_for({ first_name => "N",
        emails => ["p" . ++$people . "\@$w->{name}.example"] }, %members);
}

# What W has sent: mails of steps, mails to its admin, webhooks.
sub sent {
    my ($w) = @_;
    my @to = map { $_->[1] =~ /^To:.*?\b(\w+)\@\Q$w->{name}\E\.example/m }
        $worker->mails;
    my $asks = grep { $_ eq "boss" } @to;
    return join " ", @to - $asks, $asks,
        scalar $receiver->requests($w->{name});
}

# The status of the steps of enrollment ID.
sub steps {
    my ($w, $id) = @_;
    return join " ", map { $_->{status} } @{$w->enrollment($id)->{steps}};
}

sub shown {
    my ($w) = @_;
    return $w->ctl_json("workspace", "show", $w->id);
}

sub status {
    return crmapictl_json($database, "status");
}

subtest "a held workspace sends nothing, others do" => sub {
    my ($w, $other) = (space(), space());
    $w->ctl("workspace", "hold", $w->id, "--reason", "they have not paid");
    for ($w, $other) {
        start($_);
        start($_, auto_approve => false);
    }
    $worker->once for 1 .. 2;
    is(sent($other), "1 1 2", "the other: a step, a mail to its admin, two"
        . " webhooks");
    is(sent($w), "0 0 0", "the held one: nothing");

    my $c = $w->client;
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "New" });
    status_is($r, 201, "its API writes");
    status_is($c->get("/api/v1/contacts/" . $r->data->{id}), 200,
        "and reads");

    my $show = shown($w);
    is($show->{held_reason}, "they have not paid", "workspace show says why");
    like($show->{held_at}, qr/^20\d\d-\d\d-\d\dT/, "and since when");
    my %list = map { $_->{id} => $_ } @{crmapictl_json($database, qw(workspace
        list))};
    is($list{$w->id}{held_reason}, "they have not paid", "so does its list");
    is($list{$other->id}{held_at}, undef, "the other is not held");
    my $status = status();
    is($status->{workspaces_held}, 1, "status counts it");
    cmp_ok($status->{jobs_held}, ">=", 3, "and its jobs");
    is($status->{jobs_due}, 0, "which are not due work");
    is($status->{held_at}, undef, "the database is not held");

    $w->ctl("workspace", "hold", $w->id, "--reason", "again");
    is_deeply(shown($w), $show, "a second hold changes nothing");
    is($w->ctl_json("workspace", "release", $w->id)->{released}, 1, "released");
    $worker->once for 1 .. 2;
    is(sent($w), "1 1 3", "all of it is sent");
    $worker->once;
    is(sent($w), "1 1 3", "once");
    is(shown($w)->{held_at}, undef, "and it is not held any more");
};

subtest "a held database sends nothing" => sub {
    my ($w, $held) = (space(), space());
    start($w);
    start($held);
    crmapictl_ok($database, qw(hold --all --reason), "a clone for staging");
    $w->ctl("workspace", "hold", $held->id);
    my $status = status();
    is($status->{held_reason}, "a clone for staging", "status says why");
    like($status->{held_at}, qr/^20\d\d/, "and since when");
    is(shown($w)->{held_reason}, "a clone for staging", "each workspace is");
    is(shown($held)->{held_reason}, "held by an operator", "one that is held by"
        . " itself says its own");
    isnt(shown($held)->{held_at}, $status->{held_at}, "since then");
    crmapictl_ok($database, qw(hold --all --reason again));
    is_deeply([@{status()}{qw(held_at held_reason)}],
        [@$status{qw(held_at held_reason)}], "a second hold changes nothing");
    for my $time ("at first", "when it is started again") {
        $worker->start;
        ok($worker->wait_log(qr/CRM3001/), "crmapid runs");
        $worker->stop;
        $worker->once;
        is(sent($w), "0 0 0", "$time: nothing");
    }
    crmapictl_ok($database, "release");
    $worker->once for 1 .. 2;
    is(sent($w), "1 0 1", "released: it is sent");
    is(sent($held), "0 0 0", "a workspace that is held by itself stays so");
    crmapictl_ok($database, qw(hold --all));
    is(crmapictl_json($database, qw(release --all))->{released}, 2,
        "release --all: both");
    $worker->once for 1 .. 2;
    is(sent($held), "1 0 1", "it is sent, too");
};

subtest "a running daemon goes on at the release" => sub {
    my $w = space();
    $worker->configure({ poll => "2s" });
    $worker->start;
    $w->ctl("workspace", "hold", $w->id);
    my $id = start($w);
    my $other = space();
    start($other);
    ok(wait_for(sub { sent($other) eq "1 0 1" }, 20), "it works");
    is(sent($w), "0 0 0", "not for the held one");
    $w->ctl("workspace", "release", $w->id);
    ok(wait_for(sub { sent($w) eq "1 0 1" }, 20), "released: it is sent");
    $worker->stop;
    $worker->configure({ poll => "200ms" });
};

subtest "a hold counts what is being sent" => sub {
    my ($w, $other) = (space(), space());
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, state, leased_by,"
        . " leased_until) SELECT j.w::uuid, j.kind, 'leased', 'x', now() +"
        . " interval '1 h' FROM (VALUES ('" . $w->id . "', 'webhook.deliver'),"
        . " ('" . $w->id . "', 'generate.steps'), ('" . $other->id
        . "', 'webhook.deliver')) j(w, kind)");
    my $sent = sub { crmapictl_json($database, @_)->{being_sent} };
    is($sent->("workspace", "hold", $w->id), 1, "its own; generation is no"
        . " sending");
    is($sent->(qw(hold --all)), 2, "those of all");
    my $told = join " ", map { ref $_ ? @$_ : $_ } sql($database, "LISTEN crmapi_job;"
        . " SELECT crmapi.release(NULL, true)");
    like($told, qr/"crmapi_job" received/, "the release tells daemons: poll now,"
        . " whatever lanes there are");
    sql($database, "DELETE FROM crmapi.job WHERE leased_by = 'x'");
};

# What is claimed already: how it comes to be, the lock that the daemon then
# waits for, what is sent before and in all, and whether the database is held.
my @CLAIMED = (
    ["a step", "sequence.step", sub { start($_[0]) },
        "SELECT FROM crmapi.enrollment WHERE workspace_id = 'W' FOR UPDATE",
        "0 0 1", "1 0 1"],
    ["a mail to an admin", "sequence.review", sub {
        start($_[0], auto_approve => false) }, "LOCK TABLE crmapi.admin",
        "0 0 1", "0 1 1"],
    ["a webhook", "webhook.deliver", sub { start($_[0]) },
        "SELECT FROM crmapi.event WHERE workspace_id = 'W' FOR UPDATE",
        "0 0 1", "0 0 2"],
);
push @CLAIMED, [@{$CLAIMED[0]}, "all"];
for (@CLAIMED) {
    my ($what, $kind, $make, $lock, $before, $after, $all) = @$_;
    subtest "$what that is claimed already" . ($all ? ", of all" : "") => sub {
        my $w = space(2);
        my ($hold, $release) = $all ? (["hold", "--all"], ["release", "--all"])
            : map { ["workspace", $_, $w->id] } "hold", "release";
        my $of = "workspace_id = '" . $w->id . "' AND kind = '$kind'";
        $make->($w);
        $worker->once;
        unlink glob $worker->outbox . "/new/*";
        is(sent($w), $before, "the mails so far are taken away");
        # one more: the second step, or a second job for the same
        $w->client->post("/api/v1/contacts", { bot_id => $w->agent })
            if $kind eq "webhook.deliver";
        sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload,"
            . " run_at) SELECT workspace_id, kind, payload, now() +"
            . " interval '1 h' FROM crmapi.job WHERE $of")
            if $kind eq "sequence.review";
        my $given = sub { scalar(() = $worker->log_lines(
            qr/CRM3105: job \d+ \(\Q$kind\E\)/)) };
        my $had = $given->();
        my $let_go = postgres()->hold($database, $lock
            =~ s/'W'/"'" . $w->id . "'"/er);
        $worker->start;
        sql($database, "UPDATE crmapi.job SET run_at = now() WHERE $of"
            . " AND state = 'ready'");
        postgres()->wait_locked($database, 1);
        my $held = crmapictl_json($database, @$hold);
        is($held->{being_sent}, 1, "the hold says that one is under way");
        $let_go->();
        ok(wait_for(sub { $given->() > $had }, 20), "it is given back");
        is(join("|", @{(sql($database, "SELECT state, attempts, run_at <="
            . " now() FROM crmapi.job WHERE $of ORDER BY id DESC LIMIT 1"
            ))[0]}), "ready|0|t", "as before its claim");
        is(sent($w), $before, "nothing was sent");
        unlike($worker->log_text, qr/CRM3104/, "and nothing is lost");
        crmapictl_ok($database, @$release);
        ok(wait_for(sub { sent($w) eq $after }, 20), "released: it is sent");
        $worker->stop;
    };
}

# ---- releases that leave out what is late --------------------------------------

# The time SECONDS from now.
sub at {
    my ($seconds) = @_;
    my @t = gmtime(time + $seconds);
    return sprintf "%04d-%02d-%02dT%02d:%02d:%02dZ", $t[5] + 1900, $t[4] + 1,
        @t[3, 2, 1, 0];
}

# An enrollment of W, which is held. Its first step was sent; the second was due
# SECONDS ago, and each later one a minute after the one before.
sub late {
    my ($w, $seconds) = @_;
    my $id = start($w);
    $worker->once for 1 .. 2;
    $w->ctl("workspace", "hold", $w->id);
    my $due = "now() - interval '$seconds s'";
    sql($database, "UPDATE crmapi.enrollment_step SET scheduled_for = $due"
        . " WHERE enrollment_id = '$id' AND sort_order = 2; UPDATE crmapi.job"
        . " SET run_at = $due WHERE kind = 'sequence.step' AND state = 'ready'"
        . " AND payload ->> 'enrollment_id' = '$id'");
    return $id;
}

sub release {
    my ($w, $seconds) = @_;
    is($w->ctl_json("workspace", "release", $w->id, "--skip-due-before",
        at($seconds))->{released}, 1, "released");
    $worker->once for 1 .. 3;
}

sub status_of { $_[0]->enrollment($_[1])->{status} }

subtest "release --skip-due-before: what was due before is skipped" => sub {
    my $w = space(3);
    my $id = late($w, 7200);
    release($w, 30 - 7200);
    is(steps($w, $id), "sent skipped sent", "the next one is due its delay"
        . " after the one that is skipped: not before that time");
    is(status_of($w, $id), "completed", "the sequence goes on to its end");
    is((split / /, sent($w))[0], 2, "two mails in all");
    is(sql($database, "SELECT error FROM crmapi.enrollment_step WHERE"
        . " enrollment_id = '$id' AND status = 'skipped'"),
        "due before the time that the release was given", "why");
    ok($worker->wait_log(qr/CRM3126: step \S+ was skipped/), "the log has it");

    $id = late($w, 7200);
    release($w, -3600);
    is(steps($w, $id), "sent skipped skipped", "all that were due before it");
    is(status_of($w, $id), "completed", "and the sequence ends");

    $w = space(3);
    $id = late($w, 7200);
    release($w, -7260);
    is(steps($w, $id), "sent sent scheduled", "not what was due after it");
    $id = start($w);
    $worker->once for 1 .. 2;
    is(steps($w, $id), "sent scheduled scheduled", "nor what is started later");
};

subtest "it is about steps that were handed over before a restore, too" => sub {
    my $w = space(3);
    my $id = late($w, 7200);
    sql($database, "INSERT INTO crmapi.past_send VALUES ('" . $w->id . "',"
        . " '$id', '2', 'sent', now() - interval '7200 s', 'x')");
    release($w, -3600);
    is(steps($w, $id), "sent sent skipped", "that one is recorded as sent, and"
        . " the next one was due before that time");
};

subtest "of what a daemon tells only what lives is taken" => sub {
    my $w = space();
    my ($ended, $lives) = map { start($w) } 1, 2;
    sql($database, "UPDATE crmapi.enrollment SET status = 'stopped_user' WHERE id ="
        . " '$ended'");
    my $lines = $json->encode([map { { workspace_id => $w->id,
        enrollment_id => $_->[0], part => "1", state => $_->[1], at => at(-60) } }
        [$ended, "sent"], [$lives, "unknown"], [$lives, "sent"],
        [CrmTest::uuid(), "sent"]]);
    is(sql($database, "SELECT crmapi.past_add('$lines')"), 1, "one message");
    is(join("|", map { "@$_" } sql($database, "SELECT enrollment_id, state FROM"
        . " crmapi.past_send WHERE workspace_id = '" . $w->id . "'")),
        "$lives sent", "the later line of the sequence that goes on");
    my $line = sub { $json->encode([{ workspace_id => $_[0], part => "1",
        enrollment_id => $lives, state => $_[1], at => at(-30),
        provider_id => "next" }]) };
    is(sql($database, "SELECT crmapi.past_add('" . $line->(space()->id, "free")
        . "')"), 0, "none of another workspace, which has no such sequence");
    is(sql($database, "SELECT crmapi.past_add('" . $line->($w->id, "free") . "');"
        . " SELECT concat_ws(' ', state, provider_id, sent_at > now() -"
        . " interval '50 s') FROM crmapi.past_send WHERE enrollment_id ="
        . " '$lives'"), "1\nfree next t", "what the next daemon tells goes before");
};

subtest "it is about sequences that were started and not generated" => sub {
    my $w = space(2);
    $w->ctl("workspace", "hold", $w->id);
    my $id = start($w);
    my $asks = start($w, auto_approve => false);
    my $new = start($w);
    sql($database, "UPDATE crmapi.enrollment SET created_at = now() -"
        . " interval '7200 s' WHERE id IN ('$id', '$asks')");
    release($w, -3600);
    is(steps($w, $id), "skipped skipped", "its steps were due after its start");
    is(steps($w, $new), "sent scheduled", "not those of a later one");
    $w->ctl("enrollment", "approve", $asks);
    $worker->once;
    is(steps($w, $asks), "sent scheduled", "nor what is approved later");
};

subtest "what is due at that very time, and when a first step was due" => sub {
    my $w = space(2);
    my $id = start($w, auto_approve => JSON::PP::false);
    $worker->once for 1 .. 2;
    is(steps($w, $id), "scheduled scheduled", "it waits");
    # a step that is due, of an enrollment that was made and approved: minutes
    # after the bound; the release comes at 100
    my $skipped = sub {
        my ($number, $auto, $due, $created, $approved) = @_;
        my ($bound, $released, @at) = map { "timestamptz '2026-01-01 12:00Z'"
            . " + interval '1 minute' * $_" } 0, 100, $due, $created, $approved;
        return scalar sql($database, "BEGIN; INSERT INTO crmapi.step_bound"
            . " VALUES ('" . $w->id . "', $bound, $released); UPDATE"
            . " crmapi.sequence SET auto_approve = $auto WHERE id = (SELECT"
            . " sequence_id FROM crmapi.enrollment WHERE id = '$id'); SELECT"
            . " crmapi.step_skip(jsonb_populate_record(e, jsonb_build_object("
            . "'created_at', $at[1], 'approved_at', $at[2])),"
            . " jsonb_populate_record(s, jsonb_build_object('scheduled_for',"
            . " $at[0]))) FROM crmapi.enrollment e, crmapi.enrollment_step s"
            . " WHERE e.id = '$id' AND s.enrollment_id = e.id AND s.sort_order"
            . " = $number; ROLLBACK");
    };
    for my $case (["t", "due before it", 2, "true", -1, -9, 110],
        ["f", "due just then", 2, "true", 0, -9, 110],
        ["t", "the first of a start before it", 1, "true", 110, -1, 110],
        ["t", "approved at the release", 1, "true", 100, -1, 100],
        ["f", "of a start just then", 1, "true", 110, 0, 110],
        ["f", "approved before the release", 1, "true", 99, -1, 99],
        ["f", "approved by a user", 1, "false", 110, -1, 110],
        ["f", "not the first", 2, "true", 110, -1, 110]) {
        my ($is, $name, @row) = @$case;
        is($skipped->(@row), $is, $name);
    }
};

subtest "the database's release is for the workspaces that it releases" => sub {
    my ($w, $held) = (space(2), space(2));
    my ($id, $waits) = (late($w, 7200), late($held, 7200));
    crmapictl_ok($database, qw(hold --all));
    $w->ctl("workspace", "release", $w->id);
    crmapictl_ok($database, "release", "--skip-due-before", at(-3600));
    $worker->once for 1 .. 2;
    is(steps($w, $id), "sent skipped", "it is skipped");
    is(steps($held, $waits), "sent scheduled", "one that is held by itself");
    $held->ctl("workspace", "release", $held->id);
    $worker->once;
    is(steps($held, $waits), "sent sent", "is released without it");

    my $other = late($w, 7200);
    crmapictl_ok($database, qw(release --all --skip-due-before), at(-3600));
    $worker->once for 1 .. 2;
    is(steps($w, $other), "sent skipped", "release --all: also that");
    is(crmapictl_json($database, qw(release --skip-due-before),
        at(-1))->{released}, 0, "nothing is held");
    $w->ctl("workspace", "hold", $w->id);
    my $bound = sub { sql($database, "SELECT " . ($_[1] // "due_before") . " FROM"
        . " crmapi.step_bound WHERE workspace_id = '" . ($_[0] // $w)->id . "'") };
    my $was = $bound->();
    $held->ctl("workspace", "hold", $held->id);
    my $others = $bound->($held);
    sql($database, "UPDATE crmapi.step_bound SET released_at = '2001-01-01'");
    release($w, -7200);
    is($bound->(), $was, "an earlier time leaves the later one of before");
    is($bound->($w, "released_at > now() - interval '1 h'"), "t",
        "but it is the last release");
    is($bound->($held), $others, "none of another workspace that is held");
    $held->ctl("workspace", "release", $held->id);
    is(sql($database, "SELECT max(due_before) < now() - interval '1800 s' FROM"
        . " crmapi.step_bound"), "t", "then it changes nothing");
};

subtest "a time that is none, or to come" => sub {
    my $w = space(2);
    my $id = late($w, 7200);
    for (["never", 2, qr/^crmapictl: --skip-due-before must be a time like /],
        [at(3600), 1, qr/^crmapictl: --skip-due-before must not be in the future$/]) {
        my ($time, $status, $rule) = @$_;
        my ($code, $out, $err) = crmapictl($database, "workspace", "release",
            $w->id, "--skip-due-before", $time);
        is("$code $out", "$status ", "$time: refused");
        like($err, $rule, "$time: the rule");
    }
    $worker->once;
    is(steps($w, $id), "sent scheduled", "and the workspace is held");
    $w->ctl("workspace", "release", $w->id);
};

subtest "no more at once than the limits permit" => sub {
    my $w = space();
    $worker->configure({ agent_daily_limit => 2 });
    $w->ctl("workspace", "hold", $w->id);
    my @ids = map { start($w) } 1 .. 5;
    $worker->once;
    $w->ctl("workspace", "release", $w->id);
    $worker->once for 1 .. 3;
    is(join(" ", sort map { steps($w, $_) } @ids),
        "scheduled scheduled scheduled sent sent",
        "as many steps as an agent may send on a day");
    $worker->configure({ agent_daily_limit => 0 });
};

subtest "a claim reads no job of a held workspace" => sub {
    plan(skip_all => "the blocks of other servers are not counted")
        if CrmTest::Citus::wanted();
    my @held = map { space() } 1 .. 3;
    my $w = space();
    for (@held) {
        $_->ctl("workspace", "hold", $_->id);
        sql($database, "INSERT INTO crmapi.job (workspace_id, kind)"
            . " SELECT '" . $_->id . "', 'webhook.deliver'"
            . " FROM generate_series(1, 3000)");
    }
    sql($database, "VACUUM ANALYZE crmapi.job");
    # the second call of a session: the first one reads the catalogs
    my $claim = sub {
        my $call = "crmapi.job_claim('webhook', 'x', '1 s', NULL)";
        my $plan = sql($database, "BEGIN; DO \$\$ BEGIN PERFORM $call; END \$\$;"
            . " UPDATE crmapi.job SET state = 'ready', leased_by = NULL,"
            . " leased_until = NULL WHERE leased_by = 'x'; EXPLAIN (ANALYZE,"
            . " BUFFERS, FORMAT JSON) SELECT * FROM $call; ROLLBACK");
        my $top = $json->decode($plan)->[0]{Plan};
        return ($top->{"Actual Rows"}, $top->{"Shared Hit Blocks"}
            + $top->{"Shared Read Blocks"});
    };
    my ($rows, $blocks) = $claim->();
    is($rows, 0, "there is nothing to claim");
    cmp_ok($blocks, "<", 60, "and few blocks are read for that");
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind) VALUES ('"
        . $w->id . "', 'webhook.deliver')");
    ($rows, $blocks) = $claim->();
    is($rows, 1, "another's job is found");
    cmp_ok($blocks, "<", 90, "with few blocks as well");
    sql($database, "DELETE FROM crmapi.job WHERE payload = '{}'");
    $_->ctl("workspace", "release", $_->id) for @held;
};

subtest "workspaces in any place of the order are found" => sub {
    # each set of held ones among five, and each place to begin at
    sql($database, "DELETE FROM crmapi.job");
    sql($database, "VACUUM crmapi.job");
    my $cases = sql($database, <<'SQL');
CREATE TEMP TABLE five AS SELECT id, (row_number() OVER (ORDER BY id) - 1)::int
    AS n FROM crmapi.workspace ORDER BY id LIMIT 5;
CREATE TEMP TABLE cases (missed bigint);
CREATE FUNCTION pg_temp.missed(held integer, at uuid) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    missed bigint;
BEGIN
    INSERT INTO crmapi.workspace_hold (workspace_id, reason)
        SELECT id, 'x' FROM five WHERE (held >> n) & 1 = 1;
    INSERT INTO crmapi.job (workspace_id, kind)
        SELECT id, 'webhook.deliver' FROM five;
    FOR i IN 1 .. 5 LOOP
        SELECT c.workspace_id INTO at
        FROM crmapi.job_claim('webhook', 'x', '1 h', NULL, at) c;
        EXIT WHEN NOT FOUND;
    END LOOP;
    missed := (SELECT count(*) FROM crmapi.job j JOIN five
        ON five.id = j.workspace_id WHERE (j.state = 'leased')
        IS DISTINCT FROM ((held >> five.n) & 1 = 0));
    RAISE EXCEPTION USING ERRCODE = 'TEST1';    -- undo it
EXCEPTION WHEN SQLSTATE 'TEST1' THEN
    RETURN missed;
END
$$;
SELECT count(*) || ' ' || sum(pg_temp.missed(held, begins.id))
FROM generate_series(0, 31) held,
     (SELECT id FROM five UNION ALL SELECT NULL) begins;
SQL
    is($cases, "192 0", "in no case one too many or too few");
};

subtest "what is not right is refused" => sub {
    my $w = space();
    my ($code, $out, $err) = crmapictl($database, "hold");
    is("$code $err", "2 crmapictl: hold needs --all; see crmapictl hold --help\n", "hold needs --all");
    ($code, $out, $err) = crmapictl($database, qw(workspace hold nobody));
    is("$code $err", "1 crmapictl: there is no workspace \"nobody\"\n",
        "no such workspace");
    for my $reason ("", "x" x 1001) {
        ($code, $out, $err) = crmapictl($database, "workspace", "hold", $w->id,
            "--reason=$reason");
        is($code, 2, "a bad reason");
        like($err, qr/^crmapictl: --reason must have/, "is named");
    }
    is(shown($w)->{held_at}, undef, "nothing is held");
    is($w->ctl_json("workspace", "release", $w->id)->{released}, 0,
        "nothing to release");
};

$httpd->stop;
done_testing;
