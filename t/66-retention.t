# SPDX-License-Identifier: Apache-2.0
# 66-retention.t: what a workspace keeps for some days only (contract 14.5)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use List::Util qw(max);

# Rows of the large workspace; with CRM_LONG=1000000 as many messages as that.
my $MESSAGES = $ENV{CRM_LONG} || 20_000;

# What crmapid deletes at once: at most, first, and at least.
my ($BATCH, $START, $LEAST) = map { read_file("$FindBin::RealBin/../mod_crmapi/"
    . "worker/daemon/crmapid_retention.c") =~ /^#define $_ (\d+)$/m }
    qw(BATCH START LEAST);

my $database = database();
my $httpd = httpd(database => $database);
my $w = workspace($httpd, twin => 0);
my $c = $w->client;
my $worker = worker(database => $database, no_start => 1);
my $in = "'" . $w->id . "'";

# The workspace as workspace show has it.
sub shown { return $w->ctl_json("workspace", "show", $w->id) }

# What would be deleted, with OPTIONS.
sub dry {
    return { map { $_->{object} => $_->{rows} } @{$w->ctl_json("workspace",
        "retention", $w->id, @_)} };
}

# The ids that are left of TABLE in the workspace ID.
sub left {
    my ($table, $id) = @_;
    return [map { $_->[0] } sql($database, "SELECT id, 1 FROM crmapi.$table
        WHERE workspace_id = '@{[$id // $w->id]}' ORDER BY 1")];
}

subtest "off by default, set and shown" => sub {
    is_deeply([@{shown()}{map { "retention_$_" } qw(conversations submissions
        events)}], [undef, undef, undef], "off");
    $w->ctl("workspace", "set", $w->id, "--retention-conversations", 30,
        "--retention-submissions", 20, "--retention-events", 10);
    is_deeply([@{shown()}{map { "retention_$_" } qw(conversations submissions
        events)}], [30, 20, 10], "on");
    $w->ctl("workspace", "set", $w->id, "--retention-events", "never");
    is_deeply([@{shown()}{map { "retention_$_" } qw(conversations submissions
        events)}], [30, 20, undef], "one is off again, the others stay");
    $w->ctl("workspace", "set", $w->id, "--retention-submissions", "never",
        "--retention-conversations", "never");
    for my $wrong (qw(0 -1 1.5 36501 x), "") {
        my ($code, undef, $err) = crmapictl($database, "workspace", "set",
            $w->id, "--retention-events=$wrong");
        is($code, 2, "\"$wrong\" is refused");
        like($err, qr/--retention-events must be 1 to 36500 days, or never/,
            "and why");
    }
};

# A conversation of N days ago, with messages with files.
my $number = 0;
sub talk {
    my ($days, $latest, $workspace) = @_;
    $workspace //= $w;
    my $id = sprintf "00000000-0000-8000-8000-%012d", ++$number;
    my $of = "'" . $workspace->id . "'";
    my $at = sub { "now() - $_[0] * interval '1 day'" };
    sql($database, "BEGIN; INSERT INTO crmapi.conversation (id, workspace_id,
            bot_id, type, created_at, last_message_at, last_active_at)
        VALUES ('$id', $of, '@{[$workspace->agent]}', 4, @{[$at->($days)]},
            @{[$at->($latest)]}, @{[$at->($latest)]});
        INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
            content, created_at)
        SELECT md5('$id' || n)::uuid, $of, '$id', 'user', 'hello',
            @{[$at->($days)]} FROM generate_series(1, 3) n;
        INSERT INTO crmapi.attachment (workspace_id, id, message_id, number,
            size, stored) VALUES ($of, '$id', md5('${id}1')::uuid, 1, 1, true);
        INSERT INTO crmapi.attachment_piece VALUES ($of, '$id', 1, 'x');
        INSERT INTO crmapi.original VALUES ($of, md5('${id}1')::uuid, 1, now(),
            'x');
        INSERT INTO crmapi.message_html VALUES ($of, md5('${id}1')::uuid, 'x');
        COMMIT");
    return $id;
}

subtest "conversations, after their last activity, with all that is theirs" => sub {
    my $old = talk(40, 31);
    my $lives = talk(400, 29);
    my $new = talk(2, 2);
    $worker->once;
    is_deeply(left("conversation"), [$old, $lives, $new], "none without days");
    is_deeply(dry("--retention-conversations", 30), { conversation => 1,
        message => 3, attachment => 1, submission => 0, event => 0 },
        "a dry run says how much");
    is_deeply(left("conversation"), [$old, $lives, $new], "and deletes nothing");
    $w->ctl("workspace", "set", $w->id, "--retention-conversations", 30);
    is(dry()->{conversation}, 1, "so it does of what is set");
    sql($database, "DELETE FROM crmapi.upkeep");
    $worker->once;
    is_deeply(left("conversation"), [$lives, $new], "the old one is gone");
    is_deeply(left("attachment"), [$lives, $new], "with its attachments");
    is(sql($database, "SELECT count(*) FROM crmapi.$_
        WHERE workspace_id = $in"), $_ eq "message" ? 6 : 2, "$_ rows")
        for qw(message attachment_piece original message_html);
    status_is($c->get("/api/v1/conversations/$old"), 404, "the API has it not");
    is($c->get("/api/v1/conversations")->json->{pagination}{total}, 2,
        "its total is right");
    is_deeply([sql($database, "SELECT * FROM crmapi.counter_verify()")], [],
        "all totals are");
};

subtest "a conversation with an answer that waits is still needed" => sub {
    my $talk = $w->conversation("email", email => "late\@x.example");
    $w->ctl("workspace", "hold", $w->id);
    $w->answer($talk, "Soon");
    my $age = sub { sql($database, "UPDATE crmapi.conversation SET created_at =
        now() - interval '40 days', last_message_at = now() - interval '40 days',
        last_active_at = NULL, activated_at = NULL WHERE id = '$talk'");
        sql($database, "DELETE FROM crmapi.upkeep"); $worker->once };
    $age->();
    is(dry()->{conversation}, 0, "a dry run counts it not");
    is(sql($database, "SELECT status FROM crmapi.message
        WHERE conversation_id = '$talk'"), "queued", "it waits");
    $w->ctl("workspace", "release", $w->id);
    $worker->once;
    is(sql($database, "SELECT status FROM crmapi.message
        WHERE conversation_id = '$talk'"), "sent", "and is sent after the hold");
    $age->();
    is_deeply([grep { $_ eq $talk } @{left("conversation")}], [],
        "then it is deleted");
};

subtest "another workspace with the same ids keeps its own" => sub {
    my $twin = workspace($httpd, twin => 0);
    my $there = "'" . $twin->id . "'";
    my $id = talk(40, 40);
    $number--;
    is(talk(40, 40, $twin), $id, "the same id");
    # there, all of it is older, and somebody waits for it
    for ([$w, 30], [$twin, 31]) {
        my ($of, $days) = @$_;
        my ($form) = $of->import_objects([{ object => "form",
            bot_id => $of->agent, name => "F" }]);
        sql($database, "INSERT INTO crmapi.submission (workspace_id, id, form_id,
                submitted_at) VALUES ('@{[$of->id]}', '$id', '$form',
                now() - $days * interval '1 day');
            INSERT INTO crmapi.event (workspace_id, id, type, created_at, body)
            VALUES ('@{[$of->id]}', '$id', 'form.submitted',
                now() - $days * interval '1 day', '{}')");
    }
    sql($database, "INSERT INTO crmapi.event (workspace_id, id, type, created_at,
            body) VALUES ($there, '00000000-0000-8000-8000-000000000000',
            'form.submitted', now() - interval '50 days', '{}');
        INSERT INTO crmapi.webhook_endpoint (workspace_id, id, url, events, key)
        VALUES ($there, '$id', 'https://x.example/', '{form.submitted}',
            crmapi.webhook_key());
        INSERT INTO crmapi.webhook_delivery (workspace_id, id, event_id,
            endpoint_id, job_id) VALUES ($there, '$id', '$id', '$id', 0);
        INSERT INTO crmapi.job (workspace_id, kind, payload, run_at)
        VALUES ($there, 'answer.send', '{\"conversation_id\": \"$id\"}',
            now() + interval '1 h'); DELETE FROM crmapi.upkeep");
    $w->ctl("workspace", "set", $w->id, "--retention-submissions", 20,
        "--retention-events", 10);
    is_deeply(dry(), { conversation => 1, message => 3, attachment => 1,
        submission => 1, event => 1 }, "a dry run counts what is here");
    is(sql($database, "SELECT crmapi.retention_$_($in, NULL, 1)"), 1,
        "$_: the first that is too old here") for qw(submissions events);
    $worker->once;
    for (qw(conversation submission event)) {
        ok(!grep({ $_ eq $id } @{left($_)}), "$_: here it goes");
        ok(grep({ $_ eq $id } @{left($_, $twin->id)}), "there it stays");
    }
    is(sql($database, "SELECT count(*) FROM crmapi.message WHERE workspace_id =
        $there"), 3, "with its messages");
    $w->ctl("workspace", "set", $w->id, map { ("--retention-$_", "never") }
        qw(submissions events));
    sql($database, "INSERT INTO crmapi.event (workspace_id, id, type, created_at,
            body) VALUES ($in, '$id', 'form.submitted', now() - interval '31 days',
            '{}'); DELETE FROM crmapi.upkeep");
    $worker->once;
    is_deeply(left("event"), [], "by the site's keep_deliveries, it goes here");
    ok(grep({ $_ eq $id } @{left("event", $twin->id)}), "and stays there");
};

subtest "a conversation that wakes up after it was found stays" => sub {
    my $talk = talk(40, 1);
    $number--;
    talk(40, 40, workspace($httpd, twin => 0));     # there it sleeps
    is(sql($database, "SELECT crmapi.retention_talk($in, '$talk',
        now() - interval '30 days', 100)"), 0, "nothing is deleted");
    is(sql($database, "SELECT count(*) FROM crmapi.message
        WHERE workspace_id = $in AND conversation_id = '$talk'"), 3,
        "none of its messages");
};

subtest "so does one to which somebody writes at this moment" => sub {
    my $talk = talk(40, 40);
    my $let_go = postgres()->hold($database, "SELECT FROM crmapi.conversation
        WHERE workspace_id = $in AND id = '$talk' FOR UPDATE");
    my $try = "SET lock_timeout = '5s'; SELECT crmapi.retention_talk($in, '$talk',
        now() - interval '30 days', 100)";
    is(eval { scalar sql($database, $try) }, 0, "nothing is deleted, or waits");
    $let_go->();
    is(sql($database, $try), 4, "but later");
};

subtest "so does one whose answer is being sent; a large one goes bit by bit" => sub {
    my $talk = talk(40, 40);
    my $try = sub { scalar sql($database, "SELECT crmapi.retention_talk($in, '$talk',
        now() - interval '30 days', $_[0])") };
    my $rest = sub { join " ", map { scalar sql($database, "SELECT count(*) FROM
        crmapi.$_->[0] WHERE workspace_id = $in AND $_->[1] = '$talk'") }
        ["message", "conversation_id"], ["conversation", "id"] };
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload, state,
            leased_by, leased_until)
        VALUES ($in, 'answer.send', '{\"conversation_id\": \"$talk\"}', 'leased',
            'x', now() + interval '1 h')");
    is($try->(9) . " " . $rest->(), "0 3 1", "nothing is deleted");
    sql($database, "DELETE FROM crmapi.job WHERE leased_by = 'x'");
    is($try->(2) . " " . $rest->(), "2 1 1", "no more than it may");
    is($try->(1) . " " . $rest->(), "1 0 1", "the conversation last");
    is($try->(1) . " " . $rest->(), "1 0 0", "which is a row, too");
};

subtest "several together are no more rows than it may, oldest first" => sub {
    my ($second, $first) = (talk(80, 80), talk(90, 90));
    my $try = sub { join " ", map { $_ // "" } @{(sql($database, "SELECT gone,
        next_id FROM crmapi.retention_conversations($in, NULL, '-infinity',
            '00000000-0000-0000-0000-000000000000', $_[0])"))[0]} };
    is($try->(6), "6 $first", "one and a part of the next");
    is(sql($database, "SELECT count(*) FROM crmapi.message WHERE conversation_id =
        '$second'"), 1, "of which a message is left");
    is($try->(6), "2 ", "then what is left, and that was all");
};

subtest "idle ones are found behind many that are old, and not idle" => sub {
    my $idle = talk(98, 98);
    sql($database, "INSERT INTO crmapi.conversation (id, workspace_id, bot_id,
            type, created_at, last_active_at)
        SELECT md5('b' || n)::uuid, $in, '@{[$w->agent]}', 4,
            now() - interval '99 days', now() FROM generate_series(1, 1001) n;
        DELETE FROM crmapi.upkeep");
    $worker->once;
    is_deeply([grep { $_ eq $idle } @{left("conversation")}], [], "it is gone");
    is(sql($database, "SELECT count(*) FROM crmapi.conversation c
        JOIN generate_series(1, 1001) n ON c.id = md5('b' || n)::uuid"), 1001,
        "they are not");
};

subtest "submissions" => sub {
    my ($form) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "F" }]);
    my @ids = $w->import_objects([map { { object => "submission",
        form_id => $form, submitted_at => scalar sql($database, "SELECT to_char(now()"
            . " - $_ * interval '1 day', 'YYYY-MM-DD') || 'T00:00:00Z'") } }
        50, 5]);
    $w->ctl("workspace", "set", $w->id, "--retention-submissions", 20);
    is(dry()->{submission}, 1, "a dry run");
    my $let_go = postgres()->hold($database, "SELECT FROM crmapi.submission
        WHERE workspace_id = $in AND id = '$ids[0]' FOR UPDATE");
    is(eval { scalar sql($database, "SET lock_timeout = '5s';
        SELECT crmapi.retention_submissions($in, NULL, 9)") }, 0,
        "one that somebody has is left, and not waited for");
    $let_go->();
    sql($database, "DELETE FROM crmapi.upkeep");
    $worker->once;
    is_deeply(left("submission"), [$ids[1]], "the old one is gone");
    is($c->get("/api/v1/forms/$form/submissions")->json->{pagination}{total}, 1,
        "and its total is right");
    $worker->once(scalar sql($database, "SELECT to_char(now() + interval '16 days',
        'YYYY-MM-DD') || 'T00:00:00Z'"));
    is_deeply(left("submission"), [], "the other one, when it is old");
};

subtest "what has exactly that age stays, and goes a microsecond later" => sub {
    my $of = workspace($httpd, twin => 0);
    my ($form) = $of->import_objects([{ object => "form", bot_id => $of->agent,
        name => "F" }]);
    my ($id, $at) = ("'" . $of->id . "'", "'2020-01-01T00:00:00Z'");
    $of->ctl("workspace", "set", $of->id, map { ("--retention-$_", 20) }
        qw(conversations submissions events));
    sql($database, "INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type,
            created_at, last_active_at)
        VALUES (gen_random_uuid(), $id, '@{[$of->agent]}', 4, $at, $at);
        INSERT INTO crmapi.submission (workspace_id, id, form_id, submitted_at)
        VALUES ($id, gen_random_uuid(), '$form', $at);
        INSERT INTO crmapi.event (workspace_id, id, type, created_at, fields)
        VALUES ($id, gen_random_uuid(), 'contact.deleted', $at, '{}')");
    for my $call ("(crmapi.retention_conversations($id, ?, '-infinity',
            '00000000-0000-0000-0000-000000000000', 9)).gone",
            "crmapi.retention_submissions($id, ?, 9)",
            "crmapi.retention_events($id, ?, 9)") {
        my ($name) = $call =~ /retention_(\w+)/;
        is(sql($database, "SELECT " . $call =~ s/\?/'2020-01-21T$_->[0]Z'/r), $_->[1],
            "$name: $_->[0]") for ["00:00:00", 0], ["00:00:00.000001", 1];
    }
};

subtest "events: an older cursor is gone, as after keep_deliveries" => sub {
    my $other = workspace($httpd, twin => 0);
    $_->log_on for $other, $w;
    my $others = $other->client->get("/api/v1/events", query => { cursor => "end" })
        ->json->{pagination}{next_cursor};
    my $id = sub { $w->contact->{id} };
    $id->();
    my $r = $c->get("/api/v1/events", query => { page_size => 1 });
    my $cursor = $r->json->{pagination}{next_cursor};
    $id->();
    $c->get("/api/v1/events", query => { cursor => $cursor });
    sql($database, "UPDATE crmapi.event SET created_at = now() - interval
        '8 days' WHERE workspace_id = $in");
    my $kept = $id->();
    $w->ctl("workspace", "set", $w->id, "--retention-events", 7);
    is(dry()->{event}, 2, "a dry run");
    sql($database, "DELETE FROM crmapi.upkeep");
    $worker->once;
    is_deeply([map { $_->{data}{id} } @{$c->get("/api/v1/events", query =>
        { cursor => "*" })->json->{data}}], [$kept], "the new one is there");
    error_is($c->get("/api/v1/events", query => { cursor => $cursor }), 410,
        "gone", "who has not read the others is told");
    status_is($other->client->get("/api/v1/events", query => { cursor => $others }),
        200, "not who reads those of another workspace");
    $w->ctl("workspace", "set", $w->id, "--events", "off");
};

# By a workspace's retention, and by the site's keep_deliveries.
subtest "an event that a webhook has not got is still needed" => sub {
    my $endpoint = uuid();
    sql($database, "INSERT INTO crmapi.webhook_endpoint (workspace_id, id, url,
        events, key) VALUES ($in, '$endpoint', 'https://x.example/',
        '{form.submitted}', crmapi.webhook_key())");
    $w->log_on;
    my $run = sub { sql($database, "DELETE FROM crmapi.upkeep"); $worker->once };
    my $since = sub { scalar sql($database, "SELECT since FROM crmapi.event_feed
        WHERE workspace_id = $in") };
    for my $case ([8, 7], [31, "never"]) {
        my ($age, $retention) = @$case;
        sql($database, "DELETE FROM crmapi.event WHERE workspace_id = $in");
        $c->post("/api/v1/contacts", { bot_id => $w->agent }) for 1 .. 3;
        my $ids = left("event");
        sql($database, "UPDATE crmapi.event SET created_at = now() - $age
            * interval '1 day' WHERE workspace_id = $in;
            INSERT INTO crmapi.webhook_delivery (workspace_id, id, event_id,
                endpoint_id, job_id) VALUES ($in, gen_random_uuid(), '$ids->[0]',
                '$endpoint', 0)");
        $w->ctl("workspace", "set", $w->id, "--retention-events", $retention);
        is(dry("--retention-events", 7)->{event}, 2, "$age days: a dry run");
        $run->();
        is_deeply(left("event"), [$ids->[0]], "the others are gone");
        is($since->(), $ids->[2], "up to the last of them");
        sql($database, "UPDATE crmapi.webhook_delivery SET status = 'delivered',
            next_at = NULL, finished_at = now() WHERE workspace_id = $in");
        is(dry("--retention-events", 7)->{event}, 1, "a dry run");
        $run->();
        is_deeply(left("event"), [], "once it has got it, this one is, too");
        is($since->(), $ids->[2], "and the log begins where it began");
    }
    sql($database, "DELETE FROM crmapi.webhook_endpoint WHERE workspace_id = $in");
    $w->ctl("workspace", "set", $w->id, "--events", "off");
};

subtest "one run deletes all, in each workspace that wants it" => sub {
    my @of = ($w, workspace($httpd, twin => 0));
    my $rows = 2 * $START + 1;
    my $old = talk(9999, 9999, $of[1]);
    for my $of (@of) {
        my ($form) = $of->import_objects([{ object => "form",
            bot_id => $of->agent, name => "F" }]);
        sql($database, "DELETE FROM crmapi.$_ WHERE workspace_id =
            '@{[$of->id]}'") for qw(submission event);
        sql($database, "INSERT INTO crmapi.submission (workspace_id, id, form_id,
                submitted_at)
            SELECT '@{[$of->id]}', gen_random_uuid(), '$form',
                now() - interval '25 days' FROM generate_series(1, $rows);
            INSERT INTO crmapi.event (workspace_id, id, type, created_at, body)
            SELECT '@{[$of->id]}', gen_random_uuid(), 'form.submitted',
                now() - interval '25 days', '{}' FROM generate_series(1, $rows)");
        $of->ctl("workspace", "set", $of->id, "--retention-submissions", 20,
            "--retention-events", 20);
    }
    my ($submission, $event) = map { "SELECT crmapi.retention_$_($in, NULL, 1)" }
        qw(submissions events);
    is(sql($database, $_), 1, "$_: no more than it may") for $submission, $event;
    sql($database, "DELETE FROM crmapi.upkeep");
    $worker->once;
    is_deeply([map { @{left("submission", $_->id)}, @{left("event", $_->id)} } @of],
        [], "nothing is left");
    is_deeply(left("conversation", $of[1]->id), [$old], "what is kept for ever stays");
    is(sql($database, "SELECT result FROM crmapi.upkeep WHERE task = 'retention'"),
        4 * $rows - 2 . " rows", "and the task says how much it was");
    $_->ctl("workspace", "set", $_->id, map { ("--retention-$_", "never") }
        qw(submissions events)) for @of;
};

subtest "many messages: no statement takes more than a tenth of a second" => sub {
    # half of them in one conversation
    sql($database, "BEGIN;
        INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type,
            created_at, last_active_at)
        SELECT md5('t' || n)::uuid, $in, '@{[$w->agent]}', 4,
            now() - interval '99 days', now() - interval '99 days'
        FROM generate_series(0, $MESSAGES / 20) n;
        INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
            content, created_at)
        SELECT md5('m' || n)::uuid, $in, md5('t' || CASE WHEN n % 2 = 0 THEN 0
            ELSE n / 20 END)::uuid, 'user', repeat('hello ', 20),
            now() - interval '99 days' FROM generate_series(1, $MESSAGES) n;
        COMMIT");
    sql($database, "DELETE FROM crmapi.upkeep");
    sql($database, "CREATE TABLE public.took (ms numeric, gone integer,
        scans bigint)");
    # a session of its own, as crmapid has; each call is a transaction
    sql($database, "DO \$\$
        DECLARE
            r record;
            t timestamptz;
            after timestamptz := '-infinity';
            id uuid := '00000000-0000-0000-0000-000000000000';
        BEGIN
            WHILE after IS NOT NULL LOOP
                t := clock_timestamp();
                SELECT * INTO r FROM crmapi.retention_conversations($in, NULL,
                    after, id, $BATCH);
                INSERT INTO public.took VALUES (extract(epoch FROM
                    clock_timestamp() - t) * 1000, r.gone,
                    pg_stat_get_xact_numscans('crmapi.conversation'::regclass));
                COMMIT;
                after := r.next;
                id := r.next_id;
            END LOOP;
        END
        \$\$");
    my ($took) = sql($database, "SELECT count(*), percentile_cont(0.5)
        WITHIN GROUP (ORDER BY ms), percentile_cont(0.99) WITHIN GROUP (ORDER BY
        ms), max(ms), sum(gone), sum(scans) FROM public.took");
    my ($count, $half, $most, $longest, $gone, $scans) = @$took;
    diag(sprintf "%d statements: median %.0f ms, 99 of 100 %.0f ms, longest"
        . " %.0f ms", $count, $half, $most, $longest);
    cmp_ok($gone, ">=", $MESSAGES, "all are deleted");
    cmp_ok($half, "<", 50 * busy(), "half of them in half of that");
    cmp_ok($most, "<", 100 * busy(), "all but the odd one");
    is($scans, 0, "none reads the whole table, which has no statistics yet");
    is_deeply([sql($database, "SELECT * FROM crmapi.counter_verify()")], [],
        "totals are right");
};

# Delete MESSAGES messages of one conversation by crmapid, a row in SECONDS. Returns
# how many each statement deleted.
sub batches {
    my ($messages, $seconds) = @_;
    my $talk = uuid();
    sql($database, "CREATE OR REPLACE FUNCTION public.slow() RETURNS trigger
            LANGUAGE plpgsql SECURITY DEFINER AS \$\$
        BEGIN
            INSERT INTO public.batch VALUES (pg_current_xact_id(),
                clock_timestamp());
            PERFORM pg_sleep($seconds);
            RETURN OLD;
        END
        \$\$;
        TRUNCATE public.batch;
        INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type,
            created_at, last_active_at)
        VALUES ('$talk', $in, '@{[$w->agent]}', 4, now() - interval '99 days',
            now() - interval '99 days');
        INSERT INTO crmapi.message (id, workspace_id, conversation_id, role,
            content, created_at)
        SELECT gen_random_uuid(), $in, '$talk', 'user', 'hello',
            now() - interval '99 days' FROM generate_series(1, $messages) n;
        DELETE FROM crmapi.upkeep");
    $worker->once;
    is(sql($database, "SELECT count(*) FROM crmapi.message WHERE conversation_id ="
        . " '$talk'"), 0, "all are deleted");
    return map { $_->[0] } sql($database, "SELECT count(*) FROM public.batch"
        . " GROUP BY of ORDER BY of");
}

subtest "a statement deletes as much as there is time for" => sub {
    sql($database, "CREATE TABLE public.batch (of xid8, at timestamptz);
        CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RETURN OLD; END';
        CREATE TRIGGER slow BEFORE DELETE ON crmapi.message FOR EACH ROW
            EXECUTE FUNCTION public.slow()");
    my @rows = batches(10 * $START, 0);
    cmp_ok(max(@rows), ">", $START, "quick rows: more and more");
    cmp_ok(max(@rows), "<=", $BATCH, "up to a limit");
    @rows = batches(100, 0.012);
    is_deeply([@rows[1 .. 5]], [map { max($LEAST, int($_ / 2)) } @rows[0 .. 4]],
        "slow ones: half of it, but not one row only");
    is_deeply([sql($database, "SELECT * FROM (
            SELECT max(at) - min(at) AS took,
                lead(min(at)) OVER (ORDER BY min(at)) - max(at) AS pause
            FROM public.batch GROUP BY of) b
        WHERE pause < least(took, interval '0.5 s')")], [],
        "after each, requests have the database for as long");
    sql($database, "DROP TRIGGER slow ON crmapi.message");
};

done_testing;
