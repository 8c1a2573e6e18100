# SPDX-License-Identifier: Apache-2.0
# 44-chaos.t: workers that are killed, stops that race with sends, a workspace
# that fills faster than its statistics (contract 11.10, 11.11). $CRM_LONG is
# the number of kills.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Provider;
use Time::HiRes qw(time);

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

my $contacts = 10_000;

# A workspace with an agent and a template of STEPS, which a reply stops.
sub with_template {
    my (@steps) = @_;
    my $w = workspace($httpd, twin => 0);
    $w->{template} = $w->template(\@steps, stop_on_reply => true,
        allowed_channels => [qw(email sms voice)]);
    return $w;
}

# Start COUNT sequences in W, each for a contact of its own.
sub start_many {
    my ($w, $count, $auto) = @_;
    my ($first, $last) = ($contacts + 1, $contacts += $count);
    $w->start_many("SELECT gen_random_uuid() AS id,
        jsonb_build_array(jsonb_build_object('email', n || '\@x.example',
            'is_primary', true)) AS emails,
        jsonb_build_array(jsonb_build_object('phone_number',
            '+4930' || 1000000 + n, 'is_primary', true)) AS phone_numbers
        FROM generate_series($first, $last) n", $auto // 1);
}

# How many enrollments of W are in which state.
sub states {
    my ($w) = @_;
    return { map { ($_->[0] => $_->[1]) } sql($database, "SELECT status,"
        . " count(*) FROM crmapi.enrollment WHERE workspace_id = '"
        . $w->id . "' GROUP BY 1") };
}

sub live {
    my ($w) = @_;
    my $states = states($w);
    my $n = 0;
    $n += $states->{$_} || 0 for qw(generating pending_approval approved
        running);
    return $n;
}

# Wait until WORKER, which was started without waiting, takes signals.
sub wait_up {
    my ($worker) = @_;
    my $pid = $worker->pid;
    return wait_for(sub { sql($database, "SELECT count(*) FROM crmapi.worker"
        . " WHERE pid = $pid") }, 60);
}

subtest "SIGKILL at any moment: nothing lost, nothing twice" => sub {
    # Each round brings work of its own, so that the number of kills hangs on
    # no machine's speed.
    my ($rounds, $batch) = $ENV{CRM_LONG} ? ($ENV{CRM_LONG}, 50)
        : (4, 20);
    my $count = $rounds * $batch;
    my $provider = CrmTest::Provider->new;
    my $w = with_template({ channel => "sms", sms_body => "1" },
        { channel => "email", delay => 0, email_subject => "2",
            email_body => "2" }, { channel => "voice", delay => 0,
            voice_script => "3" }, { channel => "sms", delay => 0,
            sms_body => "4" });
    my %conf = (sms_relay => "http", voice_relay => "http",
        provider_url => $provider->url, lease => "2s", log_level => "warning",
        maildir => "$provider->{dir}/outbox", webhook_threads => 0);
    # the list of relays is that of their own messages, whatever a log says
    postgres()->wait_reaping;
    my @workers = map { worker(database => $database, no_start => 1,
        no_wait => 1, conf => { %conf, name => "w$_" }) } 1, 2;
    # what is left to do hangs on the moment of the kill
    $_->may_log(qr/CRM3005: \d+ jobs? of daemons without a heartbeat/)
        for @workers;
    my $midway = 0;
    for my $round (1 .. $rounds) {
        # there is work left at this moment: a third at least
        my $moment = $provider->count + int rand 2 * $batch;
        start_many($w, $batch);
        $_->pid || $_->start for @workers;
        wait_for(sub { $provider->count >= $moment }, 5);
        $midway++ if live($w);
        $workers[$round % 2]->kill;
    }
    $_->pid || $_->start for @workers;
    ok(wait_for(sub { !live($w) }, 120), "all have ended");
    wait_up($_) for @workers;
    $_->stop for @workers;
    my $states = states($w);
    diag("$rounds times killed, $midway of them amid work: ", join ", ",
        map { "$_ $states->{$_}" } sort keys %$states);
    cmp_ok($midway, ">", 0, "it was killed amid work");
    is($states->{completed}, $count, "all are completed: every relay here"
        . " makes one of two");

    my %step = map { $_->[0] => $_->[1] } sql($database, "SELECT id, channel"
        . " FROM crmapi.enrollment_step WHERE status = 'sent'"
        . " AND workspace_id = '" . $w->id . "'");
    is(scalar keys %step, 4 * $count, "every step is there once");
    my (%got, @strange);
    for my $request ($provider->requests) {
        my $key = $request->{headers}{"idempotency-key"};
        push @strange, $key unless $step{$key};
        $got{$key}++;
    }
    is_deeply(\@strange, [], "the provider got no other");
    is(scalar keys %got, 3 * $count, "and each of them");
    my @again = grep { $got{$_} > 1 } keys %got;
    diag(scalar(@again), " were handed over again, with the same key");
    my %mail = map { m{([^/]+)$}; ($1 => 1) }
        glob "$provider->{dir}/outbox/new/*";
    is(scalar keys %mail, $count, "one file for each mail");
    $provider->stop;
};

subtest "SIGKILL where nobody drops a second message" => sub {
    my ($rounds, $batch) = $ENV{CRM_LONG} ? ($ENV{CRM_LONG}, 50) : (3, 30);
    my $count = $rounds * $batch;
    # Twilio's interface takes no idempotency key
    my $provider = CrmTest::Provider->new;
    my $w = with_template({ channel => "sms", sms_body => "1" },
        { channel => "sms", delay => 0, sms_body => "2" });
    my $worker = worker(database => $database, no_start => 1, no_wait => 1,
        conf => { sms_relay => "twilio", twilio_url =>
            "http://127.0.0.1:$provider->{port}", twilio_account => "AC1",
            sms_from => "+4930", lease => "2s", log_level => "warning",
            webhook_threads => 0 });
    local $ENV{CRMAPID_TWILIO_TOKEN} = "t0ken";
    # what is left to do hangs on the moment of the kill
    $worker->may_log(qr/CRM3005: \d+ jobs? of daemons without a heartbeat/,
        qr/CRM3122: .*: delivery_unknown/);
    my $midway = 0;
    for my $round (1 .. $rounds) {
        # there is work left at this moment: half of it
        my $moment = $provider->count + int rand $batch;
        start_many($w, $batch);
        $worker->start;
        wait_for(sub { $provider->count >= $moment }, 5);
        $midway++ if live($w);
        $worker->kill;
    }
    $worker->start;
    ok(wait_for(sub { !live($w) }, 120), "all have ended");
    wait_up($worker);
    $worker->stop;
    cmp_ok($midway, ">", 0, "it was killed amid work");
    my $states = states($w);
    diag(join ", ", map { "$_ $states->{$_}" } sort keys %$states);
    is(($states->{completed} || 0) + ($states->{failed} || 0), $count,
        "completed or failed");
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment WHERE status ="
        . " 'failed' AND generation_error <> 'delivery_unknown'"
        . " AND workspace_id = '" . $w->id . "'"), 0,
        "those that failed: delivery_unknown");
    my %got;
    $got{$_->{body}}++ for $provider->requests;
    my @twice = grep { $got{$_} > 1 } keys %got;
    is_deeply(\@twice, [], "no message was handed over twice");
    my $sent = sql($database, "SELECT count(*) FROM crmapi.enrollment_step"
        . " WHERE status = 'sent' AND workspace_id = '" . $w->id . "'");
    cmp_ok(scalar keys %got, ">=", $sent, "what is sent was handed over");
    $provider->stop;
};

subtest "a stop that commits before a send" => sub {
    my $count = $ENV{CRM_LONG} ? 10_000 : 300;
    my $provider = CrmTest::Provider->new;
    my $w = with_template({ channel => "sms", sms_body => "1" });
    my %conf = (sms_relay => "http", provider_url => $provider->url,
        relay_concurrency => 16, webhook_threads => 0,
        log_level => "warning");
    start_many($w, $count, 0);
    my $worker = worker(database => $database, no_start => 1,
        conf => { %conf, threads => 8, log_level => "notice" });
    $worker->once;
    my @ids = map { $_->[0] } sql($database, "SELECT id FROM"
        . " crmapi.enrollment WHERE workspace_id = '" . $w->id . "'"
        . " ORDER BY created_at, id");
    sql($database, join "; ", map { "SELECT crmapi.enrollment_approve('"
        . $w->id . "', '$_')" } @ids);
    $worker->start;
    ok(wait_for(sub { $provider->count }, 60), "the worker sends");
    my $lanes = 4;
    my @stopped = map { @$_ } in_processes($lanes, sub {
        my ($lane) = @_;
        my $client = $w->client;
        my @cancelled;
        for (my $i = $lane - 1; $i < @ids; $i += $lanes) {
            my $r = $client->post("/api/v1/sequences/enrollments/$ids[$i]"
                . "/stop");
            next if $r->status != 200;
            my ($step) = @{$r->data->{steps}};
            push @cancelled, $step ? $step->{id} : "none"
                if !$step || $step->{status} eq "cancelled";
        }
        return \@cancelled;
    });
    ok(wait_for(sub { !live($w) }, 60), "all have ended");
    $worker->stop;
    my $states = states($w);
    diag(join(", ", map { "$_ $states->{$_}" } sort keys %$states), ", ",
        scalar(grep { $_ ne "none" } @stopped), " with a step that was"
        . " cancelled");
    my %got = map { $_->{headers}{"idempotency-key"} => 1 }
        $provider->requests;
    my @sent = grep { $got{$_} } @stopped;
    is_deeply(\@sent, [], "none that a stop has cancelled was sent");
    my $sending = sql($database, "SELECT count(*) FROM crmapi.enrollment_step"
        . " WHERE status NOT IN ('sent', 'cancelled') AND workspace_id = '"
        . $w->id . "'");
    is($sending, 0, "no step is left between the states");
    my $sent = sql($database, "SELECT count(*) FROM crmapi.enrollment_step"
        . " WHERE status = 'sent' AND workspace_id = '" . $w->id . "'");
    is(scalar keys %got, $sent, "what is called sent was sent, and only that");
    cmp_ok(scalar(grep { $_ ne "none" } @stopped), ">", 0,
        "some were stopped in time");
    cmp_ok($sent, ">", 0, "and some were not");
    $provider->stop;
};

subtest "11.10 what commits while a step waits for its relay" => sub {
    my $provider = CrmTest::Provider->new;
    my $w = with_template({ channel => "sms", sms_body => "1" });
    my $worker = worker(database => $database, conf => { sms_relay => "http",
        provider_url => $provider->url, relay_concurrency => 1,
        threads => 6, webhook_threads => 0 });
    $provider->next_answers("wait");
    start_many($w, 1);
    ok(wait_for(sub { $provider->count == 1 }, 30), "one has the only place");
    start_many($w, 5);
    # behind a pooler a daemon has no session of its own
    my $waiting = $ENV{CRM_POOLER} ? "crmapi.job WHERE state = 'leased'"
        : "pg_stat_activity WHERE datname = current_database()"
        . " AND usename = 'crmapi_daemon' AND state = 'idle'"
        . " AND query ~ 'step_take|FROM crmapi.enrollment_step s'";
    ok(wait_for(sub { 6 == sql($database, "SELECT count(*) FROM $waiting") },
        30), "five wait for it");
    my ($first, @waiting) = map { { id => $_->[0], contact => $_->[1],
        phone => $_->[2] } } sql($database, "SELECT e.id, c.id, c.phone_key"
        . " FROM crmapi.enrollment e JOIN crmapi.contact c ON c.workspace_id ="
        . " e.workspace_id AND c.id = e.contact_id WHERE e.workspace_id = '"
        . $w->id . "' ORDER BY c.phone_key");
    my ($suppressed, $stopped, $replied, $moved, $deleted) = @waiting;
    my @suppress = ($database, qw(suppress add --workspace), $w->id,
        "--phone");
    my $contacts = "/api/v1/contacts";
    crmapictl_ok(@suppress, $suppressed->{phone});
    status_is($w->client->post("/api/v1/sequences/enrollments/$stopped->{id}"
        . "/stop"), 200);
    sql($database, "SELECT crmapi.contact_replied('" . $w->id
        . "', '$replied->{contact}')");
    status_is($w->client->patch("$contacts/$moved->{contact}",
        { phone_numbers => ["+4939"] }), 200);
    crmapictl_ok(@suppress, $moved->{phone});
    status_is($w->client->delete("$contacts/$deleted->{contact}"), 204);
    $provider->release;
    ok(wait_for(sub { !live($w) && !sql($database, "SELECT count(*) FROM"
        . " crmapi.job WHERE state = 'leased'") }, 30), "all have ended");
    $worker->stop;
    is_deeply([map { $_->{json}{to} } $provider->requests],
        [$first->{phone}], "only the first one was sent");
    is_deeply(states($w), { completed => 1, stopped_unsubscribed => 2,
        stopped_user => 2, stopped_reply => 1 }, "the others were stopped");
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment_step WHERE"
        . " status = 'cancelled' AND workspace_id = '" . $w->id . "'"), 5,
        "and their steps cancelled");
    $provider->stop;
};

subtest "a workspace whose rows the statistics do not know yet" => sub {
    my $provider = CrmTest::Provider->new;
    my @tables = qw(contact sequence enrollment enrollment_step);
    my $worker = worker(database => $database, no_start => 1, conf => {
        sms_relay => "http", provider_url => $provider->url,
        webhook_threads => 0 });
    # a session that a pooler keeps has not told yet what it read
    my $read = sub {
        my $kept = "FROM pg_stat_activity WHERE datname = current_database()"
            . " AND usename = '$CrmTest::Postgres::WORKER'";
        sql($database, "SELECT pg_terminate_backend(pid) $kept");
        wait_for(sub { !sql($database, "SELECT count(*) $kept") }, 20)
            or die "the worker's sessions do not end";
        return sql($database, "SELECT sum(idx_tup_read)::bigint FROM"
            . " pg_stat_user_indexes WHERE schemaname = 'crmapi' AND relname"
            . " IN (" . join(", ", map { "'$_'" } @tables) . ")");
    };
    sql($database, "ALTER TABLE crmapi.$_ SET (autovacuum_enabled = off)")
        for @tables;
    my ($count, $before) = (150);
    for my $known (1, 0) {
        my $w = with_template({ channel => "sms", sms_body => "1" });
        start_many($w, $count);
        $before = $read->();
        $worker->once;
        is_deeply(states($w), { completed => $count }, "$count are completed");
        $known and sql($database, "ANALYZE crmapi.$_") for @tables;
    }
    my $each = ($read->() - $before) / $count;
    diag("$each index entries are read for an enrollment");
    cmp_ok($each, "<", 150, "an enrollment does not read the others");
    sql($database, "ALTER TABLE crmapi.$_ RESET (autovacuum_enabled)")
        for @tables;
    $provider->stop;
};

done_testing;
