# SPDX-License-Identifier: Apache-2.0
# 40-locks.t: two writers of one row. For each lock that the comment of a function
# names ("Locks: ..."), another session changes that row and has not committed:
# the function waits, holds what is named before, and then does what it would have
# done afterwards. The same for pairs of functions; a lost lease; no other
# workspace's rows with the same ids change.
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Citus;
use CrmTest::Functions;
use CrmTest::Psql;
use IO::Select;

plan(skip_all => "the servers of Citus lock rows of their own")
    if CrmTest::Citus::wanted();

my $db = database();
# All rows of all workspaces have these ids.
my $ID = "00000000-0000-8000-8000-00000000000a";
my $ID2 = $ID =~ s/a$/b/r;
my $ID3 = $ID =~ s/a$/c/r;
# The jobs: of the enrollment, leased and ready; of the deliveries ID and ID2,
# likewise; of upkeep.
my ($JOB, $READY, $CALL, $CALL2, $OLD) = map { 1000001 + $_ } 0 .. 4;
my $LEASE = "'W', $JOB, 'me', 2";
my $CALL_LEASE = "'W', $CALL, 'me', 2";

sub session {
    return CrmTest::Psql->new(postgres()->conninfo($db, "postgres"),
        ["-v", "ON_ERROR_STOP=0"], { PGOPTIONS =>
        "-c client_min_messages=error -c crmapi.counter_slot=0" });
}
# Who has changed a row, who calls, and who looks.
my ($holder, $caller, $looker) = map { session() } 1 .. 3;
my ($holder_pid, $caller_pid) = map { $_->run("SELECT pg_backend_pid()") + 0 }
    $holder, $caller;

# ---- rows --------------------------------------------------------------------

# The rows of a workspace W, whose enrollment is "generating".
my $ROWS = <<"END";
INSERT INTO crmapi.plan (name, api, sequences) VALUES ('p-N', true, true),
    ('q-N', true, true);
INSERT INTO crmapi.workspace (id, name, slug, plan)
    VALUES ('W', 'W', 'w-N', 'p-N');
INSERT INTO crmapi.agent (id, workspace_id, name, slug, agent_email)
    VALUES ('$ID', 'W', 'A', 'a', 'aN\@x.example');
INSERT INTO crmapi.api_key (id, workspace_id, name, key_hash, display)
    VALUES ('$ID', 'W', 'K', sha256('W'), 'd');
SELECT crmapi.event_log('W', true);
INSERT INTO crmapi.webhook_endpoint (id, workspace_id, url, events, key)
    VALUES ('$ID', 'W', 'https://x.example', '{form.submitted}',
        convert_to(repeat('k', 24), 'UTF8'));
INSERT INTO crmapi.company (id, workspace_id, bot_id, name)
    VALUES ('$ID', 'W', '$ID', 'C');
INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails, company_id,
    custom_fields) VALUES ('$ID', 'W', '$ID', '[{"email": "a\@x.example"}]', '$ID',
    '{"a": {}}');
INSERT INTO crmapi.activity (id, workspace_id, contact_id, company_id,
    activity_type) VALUES ('$ID', 'W', '$ID', '$ID', 'note');
INSERT INTO crmapi.pipeline (id, workspace_id, bot_id, name)
    VALUES ('$ID', 'W', '$ID', 'P');
INSERT INTO crmapi.pipeline_stage (id, workspace_id, bot_id, pipeline_id, name)
    VALUES ('$ID', 'W', '$ID', '$ID', 'S');
INSERT INTO crmapi.pipeline_card (id, workspace_id, pipeline_stage_id,
    contact_id, title) VALUES ('$ID', 'W', '$ID', '$ID', 'T');
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, type,
    active) VALUES ('$ID', 'W', '$ID', '$ID', 1, true);
INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, status,
    external_id) VALUES ('$ID', 'W', '$ID', 'user', 'sent', 'm');
INSERT INTO crmapi.intake_event (workspace_id, event_id) VALUES ('W', 'e');
INSERT INTO crmapi.send_count (workspace_id, bot_id, day, n)
    VALUES ('W', '$ID', '2027-01-01', 1);
INSERT INTO crmapi.sequence_template (id, workspace_id, bot_id, name)
    VALUES ('$ID', 'W', '$ID', 'T');
INSERT INTO crmapi.sequence (id, workspace_id, name, bot_id, template_id)
    VALUES ('$ID', 'W', 'S', '$ID', '$ID');
INSERT INTO crmapi.enrollment (id, workspace_id, sequence_id, contact_id,
    contact_action) VALUES ('$ID', 'W', '$ID', '$ID', 'created');
INSERT INTO crmapi.job (id, workspace_id, kind, payload, run_at, state,
    leased_by, leased_until, attempts) OVERRIDING SYSTEM VALUE
    SELECT j.id, 'W', kind, payload::jsonb, now() + interval '1 hour', state,
        CASE state WHEN 'leased' THEN 'me' END,
        CASE state WHEN 'leased' THEN now() + interval '1 hour' END, 2
    FROM (VALUES
        ($JOB, 'sequence.step', '{"enrollment_id": "$ID", "step_id": "$ID"}',
            'leased'),
        ($READY, 'sequence.review', '{"enrollment_id": "$ID"}', 'ready'),
        ($CALL, 'webhook.deliver', '{"delivery_id": "$ID"}', 'leased'),
        ($CALL2, 'webhook.deliver', '{"delivery_id": "$ID2"}', 'ready'))
        j(id, kind, payload, state);
INSERT INTO crmapi.event (id, workspace_id, type) VALUES ('$ID', 'W', 't');
INSERT INTO crmapi.webhook_delivery (id, workspace_id, event_id, endpoint_id,
    job_id) VALUES ('$ID', 'W', '$ID', '$ID', $CALL),
        ('$ID2', 'W', '$ID', '$ID', $CALL2);
END

# What other states need beside that.
my $steps = "INSERT INTO crmapi.enrollment_step (id, workspace_id, enrollment_id,"
    . " sort_order, channel, to_identifier, scheduled_for) VALUES ('$ID', 'W',"
    . " '$ID', 1, 'email', 'a\@x.example', now()), ('$ID2', 'W', '$ID', 2,"
    . " 'email', 'a\@x.example', now());";
my $approved = "$steps UPDATE crmapi.enrollment SET status = 'approved',"
    . " approved_at = now() WHERE workspace_id = 'W';";
my $ago = "now() - interval '40 days'";
my %STATE = (
    generating => "",
    pending_approval => "$steps UPDATE crmapi.enrollment SET status ="
        . " 'pending_approval' WHERE workspace_id = 'W';",
    approved => $approved,
    telling => "DELETE FROM crmapi.webhook_delivery WHERE workspace_id = 'W'"
        . " AND id = '$ID';",
    merging => "$approved INSERT INTO crmapi.contact (id, workspace_id, bot_id)"
        . " VALUES ('$ID2', 'W', '$ID');",
    sending => "$approved UPDATE crmapi.enrollment_step SET status = 'sending'"
        . " WHERE workspace_id = 'W' AND id = '$ID';",
    mailing => "$approved UPDATE crmapi.enrollment_step SET status = 'sending'"
        . " WHERE workspace_id = 'W' AND id = '$ID'; UPDATE crmapi.conversation"
        . " SET type = 4 WHERE workspace_id = 'W';",
    returned => "$approved UPDATE crmapi.enrollment_step SET status = 'sending'"
        . " WHERE workspace_id = 'W' AND id = '$ID'; UPDATE crmapi.message SET"
        . " step_id = '$ID' WHERE workspace_id = 'W';",
    answering => "$approved UPDATE crmapi.conversation SET type = 4, email ="
        . " 'a\@x.example' WHERE workspace_id = 'W'; UPDATE crmapi.message SET"
        . " status = 'queued', to_identifier = 'a\@x.example', role = 'human'"
        . " WHERE workspace_id = 'W';",
    handed => "$approved UPDATE crmapi.message SET status = 'sent', handed_over ="
        . " true, role = 'human' WHERE workspace_id = 'W';",
    refused => "$approved UPDATE crmapi.message SET status = 'sent', handed_over ="
        . " true, to_identifier = 'a\@x.example' WHERE workspace_id = 'W';",
    chatting => "$approved UPDATE crmapi.agent SET chat_mail_fallback = 5 WHERE"
        . " workspace_id = 'W'; UPDATE crmapi.conversation SET visitor_id = 'v',"
        . " email = 'a\@x.example' WHERE workspace_id = 'W'; UPDATE crmapi.message"
        . " SET role = 'human', content = 'c' WHERE workspace_id = 'W';"
        . " INSERT INTO crmapi.chat_unseen VALUES ('W', '$ID', $ago);",
    held => "INSERT INTO crmapi.workspace_hold (workspace_id, reason)"
        . " VALUES ('W', 'r');",
    apart => "DELETE FROM crmapi.activity WHERE workspace_id = 'W';"
        . " INSERT INTO crmapi.activity (id, workspace_id, company_id,"
        . " activity_type) VALUES ('$ID', 'W', '$ID', 'note');",
    alone => "UPDATE crmapi.contact SET company_id = NULL WHERE workspace_id ="
        . " 'W'; UPDATE crmapi.activity SET company_id = NULL WHERE workspace_id"
        . " = 'W'; $approved",
    old => "UPDATE crmapi.workspace SET retention_conversations = 10,"
        . " retention_submissions = 10, retention_events = 10 WHERE id = 'W';"
        . " INSERT INTO crmapi.form (id, workspace_id, bot_id, name) VALUES"
        . " ('$ID', 'W', '$ID', 'F'); INSERT INTO crmapi.submission (id,"
        . " workspace_id, form_id, submitted_at) VALUES ('$ID', 'W', '$ID', $ago);"
        . " UPDATE crmapi.conversation SET created_at = $ago, activated_at ="
        . " $ago, last_active_at = $ago WHERE workspace_id = 'W';"
        . " INSERT INTO crmapi.original VALUES ('W', '$ID', 1, $ago, 'x');"
        . " INSERT INTO crmapi.audit VALUES ('W', '$ID', $ago, 'system', 'a', 'l',"
        . " NULL, 'a', 'o', NULL, '{}');"
        . " INSERT INTO crmapi.usage (workspace_id, day, requests) VALUES"
        . " ('W', current_date, 1), ('W', current_date - 90, 1);"
        . " INSERT INTO crmapi.message_html VALUES ('W', '$ID', 'x');"
        . " UPDATE crmapi.intake_event SET created_at = $ago WHERE workspace_id ="
        . " 'W'; INSERT INTO crmapi.idempotent_answer (workspace_id, key, request,"
        . " status, created_at) VALUES ('W', 'k', 'r', 200, $ago);"
        . " UPDATE crmapi.webhook_delivery SET status = 'delivered', next_at ="
        . " NULL, finished_at = now() WHERE workspace_id = 'W';"
        . " INSERT INTO crmapi.webhook_attempt (workspace_id, delivery_id, number,"
        . " started_at, duration_ms) VALUES ('W', '$ID', 1, now(), 1);"
        . " UPDATE crmapi.event SET created_at = $ago WHERE workspace_id = 'W'"
        . " AND id = '$ID'; UPDATE crmapi.event_feed SET since ="
        . " '00000000-0000-8000-8000-000000000001' WHERE workspace_id = 'W';"
        . " INSERT INTO crmapi.job (id, workspace_id, kind, run_at) OVERRIDING"
        . " SYSTEM VALUE VALUES ($OLD, 'W', 'test.x', now() + interval '30 m');"
        . " UPDATE crmapi.job SET leased_until = $ago WHERE workspace_id = 'W'"
        . " AND id = $JOB;",
    # old, and no job is about its conversation
    quiet => "UPDATE crmapi.workspace SET retention_conversations = 10 WHERE id ="
        . " 'W'; UPDATE crmapi.conversation SET created_at = $ago, activated_at ="
        . " $ago, last_active_at = $ago WHERE workspace_id = 'W';"
        . " DELETE FROM crmapi.job WHERE workspace_id = 'W' AND lane <> 'webhook';",
    due => "INSERT INTO crmapi.job (id, workspace_id, kind) OVERRIDING SYSTEM"
        . " VALUE VALUES ($OLD, 'W', 'test.x');",
);

# Delete the workspace S if it has what some functions do for all workspaces.
sub forget {
    my ($s) = @_;
    sql($db, "DELETE FROM crmapi.workspace WHERE id = '$s->{id}'")
        if $s->{state} =~ /^(?:old|due|held)$/;
}

my $spaces = 0;
# A new workspace in STATE; its id and what makes SQL one of it.
sub space {
    my ($state) = @_;
    my $n = ++$spaces;
    my $w = sprintf "%08x-0000-8000-8000-000000000000", $n;
    my $of = sub { $_[0] =~ s/\b(?:W|aN(?=@)|[wpq]-N)\b/
        $& eq "W" ? $w : ($& =~ s{N}{$n}r)/ger };
    my $out = $looker->run($of->("BEGIN; $ROWS $STATE{$state} COMMIT;"
        . " SELECT 'made';"));
    $out =~ /made/ or die "no rows: $state: ", $looker->error;
    return { id => $w, n => $n, of => $of, state => $state };
}

# All rows of workspaces: their tables and texts, without those of other sessions.
my @tables = map { $_->[0] } sql($db, "SELECT c.relname FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
    WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r'
      AND c.relname NOT IN ('counter', 'link_key') ORDER BY 1");
$caller->run("SET plan_cache_mode = force_generic_plan;
    PREPARE all_rows (uuid) AS SELECT string_agg(r, E'\\n' ORDER BY r) FROM ("
        . join(" UNION ALL ", map { "SELECT '$_ ' || to_jsonb(t)::text AS r"
            . " FROM crmapi.$_ t WHERE t.workspace_id = \$1" } @tables) . ") x;
    PREPARE changed_rows (uuid) AS SELECT 'beside ' || md5(string_agg(r, ''
        ORDER BY r)) FROM ("
        . join(" UNION ALL ", map { "SELECT t::text AS r FROM crmapi.$_ t"
            . " WHERE t.workspace_id = \$1" } @tables) . ") x");

# A workspace with the same ids, in which nothing is due. Nobody may change it:
# its rows, and the calls that did.
my ($beside, $beside_is, %touched);

# TEXT, what CALL printed, without what is another one each time: times, random
# ids, numbers.
sub plain_text {
    my ($s, $call, $text) = @_;
    $touched{$call} = 1 if $text =~ s/^beside (\w+)\n//m && $1 ne $beside_is;
    for ($text) {
        s/\b$s->{id}\b/W/g;
        s/\b[wpq]-$s->{n}\b/w-N/g;
        s/\ba$s->{n}@/a@/g;
        s/\d{4}-\d\d-\d\d[T ][\d:.]+(?:\+00(?::00)?|Z)?/T/g;
        s/(?!\b(?:$ID|$ID2|$ID3)\b)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/U/g;
        s/\b[0-9a-f]{32}\b/U/g;
        s/"is_due": \w+/"is_due": D/g;
        s/("(?:job_)?id": )(?!100000\d\b)\d+/$1N/g;
        s/"(search|key_hash)": "[^"]*"/"$1": S/g;
    }
    my ($result, $rows) = $text =~ /\A(.*?^\w{5}\n)(.*)\z/ms;
    # after an error the transaction shows nothing
    die "no rows: $text" if $rows !~ /^workspace_|^job /m && $result =~ /^00000$/m;
    return $result . join "\n", sort split /\n/, $rows;
}

$beside = space("sending");
sql($db, "INSERT INTO crmapi.idempotent_answer (workspace_id, key, request, status)
    VALUES ('$beside->{id}', 'k', 'r', 200);
    INSERT INTO crmapi.job (id, workspace_id, kind, run_at) OVERRIDING SYSTEM VALUE
    VALUES ($OLD, '$beside->{id}', 'test.x', now() + interval '10 days')");
($beside_is) = $caller->run("EXECUTE changed_rows"
    . " ('$beside->{id}')") =~ /^beside (\w+)$/m or die;

# ---- calling -----------------------------------------------------------------

# SQL that calls, with what it leaves; the transaction is undone.
sub calling {
    my ($s, $call) = @_;
    return $s->{of}->("BEGIN; $call;\n\\echo :SQLSTATE\n"
        . "SET CONSTRAINTS ALL IMMEDIATE; EXECUTE all_rows ('W');")
        . "EXECUTE changed_rows ('$beside->{id}'); ROLLBACK;";
}

# Begin CALL of the workspace S; whether it waits for the session that holds.
sub waits {
    my ($s, $call) = @_;
    $caller->begin(calling($s, $call));
    my $waits;
    wait_for(sub {
        my ($state, $blocked) = split /\|/, $looker->run("SELECT state,
            $holder_pid = ANY (pg_blocking_pids(pid)) FROM pg_stat_activity
            WHERE pid = $caller_pid");
        chomp $blocked;
        $waits = $blocked eq "t";
        $waits || $state =~ /^idle$/ && IO::Select->new($caller->{out})
            ->can_read(0) }, 30) or die "CrmTest: the call does not end\n";
    return $waits;
}

# What CALL of a new workspace in STATE does after CHANGE is committed.

sub afterwards {
    my ($state, $change, $call) = @_;
    my $s = space($state);
    $holder->run($s->{of}->("BEGIN; $change; COMMIT"));
    my $is = plain_text($s, $call, $caller->run(calling($s, $call)));
    forget($s);
    return $is;
}

# ---- locks -------------------------------------------------------------------

# What a lock of a comment is: the table, the condition for its row, and what
# another session does with it; or SQL that takes an advisory lock.
my $advisory = sub { +{ key => "hashtextextended($_[0], 0)" } };
my $row = sub { my ($table, $change, $where) = @_;
    +{ table => $table, change => $change, where => $where // "id = '$ID'" } };
my %LOCK = (
    enrollment => $row->("enrollment", "status = 'stopped_user'"),
    step => $row->("enrollment_step", "status = 'cancelled'"),
    job => $row->("job", "attempts = attempts + 1", "id = $JOB"),
    "ready job" => $row->("job", "state = 'leased', leased_by = 'other',"
        . " leased_until = now() + interval '1 h'", "id = $READY"),
    sequence => $row->("sequence", "name = 'other'"),
    send_count => $row->("send_count", "n = n + 100", "bot_id = '$ID'"),
    workspace => { table => "workspace", change => "plan = 'free'",
        row => "id = 'W'" },
    plan => { table => "plan", change => "api = false", row => "name = 'p-N'" },
    "new plan" => { table => "plan", change => "api = false", row =>
        "name = 'q-N'" },
    key => $row->("api_key", "name = 'other'"),
    workspace_hold => $row->("workspace_hold", "reason = 'other'", "true"),
    send_mark => { table => "send_mark", change => "n = n + 100", row => "true" },
    instance => { table => "instance", change => "id = id", row => "true" },
    activity => $row->("activity", "title = 'other'"),
    contact => $row->("contact", "first_name = 'Other', city = 'Other',"
        . " phone_numbers = '[{\"phone_number\": \"+4930123456\"}]',"
        . " updated_at = updated_at + interval '1 s'"),
    # as who deletes what it belongs to beside
    "activity that loses its contact" => $row->("activity", "contact_id = NULL"),
    "activity that loses its company" => $row->("activity", "company_id = NULL"),
    card => $row->("pipeline_card", "title = 'other'"),
    company => $row->("company", "name = 'other'"),
    contact_change => $row->("contact_change", "id = id"),
    conversation => $row->("conversation", "archived = true, active = false"),
    "deleted conversation" => $row->("conversation", "deleted = true,"
        . " deleted_at = now()"),
    # which changes of the conversation leave alone
    "key of the conversation" => { table => "conversation", where =>
        "id = '$ID'", alone => "FOR UPDATE" },
    message => $row->("message", "status = 'read'"),
    chat_unseen => $row->("chat_unseen", "since = since - interval '1 s'",
        "true"),
    agent => $row->("agent", "number_of_conversations ="
        . " number_of_conversations + 1"),
    endpoint => $row->("webhook_endpoint", "disabled_at = now()"),
    delivery => $row->("webhook_delivery", "status = 'cancelled', next_at = NULL,"
        . " finished_at = now()"),
    attempt => $row->("webhook_attempt", "error = 'other'", "true"),
    event => $row->("event", "body = 'other'"),
    feed => $row->("event_feed", "types = '{message.created}'", "true"),
    intake_event => $row->("intake_event", "result = '{}'", "event_id = 'e'"),
    submission => $row->("submission", "is_internal = true"),
    audit => $row->("audit", "action = 'other'", "true"),
    usage => $row->("usage", "requests = 9", "true"),
    original => $row->("original", "bytes = 'other'", "true"),
    HTML => $row->("message_html", "html = 'other'", "true"),
    answer => $row->("idempotent_answer", "status = 201", "true"),
    "advisory ones of its addresses" => $advisory->("'address:aN\@x.example'"),
    "a participant" => $advisory->("'W' || ':e:a\@x.example'"),
    "a contact" => $advisory->("'W' || ':c:$ID'"),
    "a stage" => $advisory->("'stage:W:$ID'"),
    "a sequence" => $advisory->("'sequence:crmapi.job_id_seq'"),
);
for my $lock (grep { $_->{table} } values %LOCK) {
    $lock->{row} //= "workspace_id = 'W' AND $lock->{where}";
}

# SQL that changes what the lock NAME is for, and SQL that fails if it is held.
sub changing {
    my ($name) = @_;
    my $lock = $LOCK{$name} // die "what is the lock \"$name\"?\n";
    return $lock->{key} ? "SELECT pg_advisory_xact_lock($lock->{key})"
        : $lock->{alone} ? "SELECT FROM crmapi.$lock->{table}"
            . " WHERE $lock->{row} $lock->{alone}"
        : "UPDATE crmapi.$lock->{table} SET $lock->{change} WHERE $lock->{row}";
}
sub probing {
    my ($name) = @_;
    my $lock = $LOCK{$name};
    return $lock->{key}
        ? "SELECT 1 / pg_try_advisory_xact_lock($lock->{key})::integer"
        : "SELECT FROM crmapi.$lock->{table} WHERE $lock->{row}"
            . " FOR UPDATE NOWAIT";
}

my $ITEM = sub { "jsonb_populate_record(NULL::crmapi.intake_item, '$_[0]')" };
# Each function that locks: the state of the workspace, a call, and the locks of
# the comment that are others than what it calls them in general.
my %CALL = (
    workspace_terms => ["generating", "UPDATE crmapi.workspace SET read_limit = 7"
        . " WHERE id = 'W'"],
    workspace_plan => ["generating", "UPDATE crmapi.workspace SET plan = 'q-N'"
        . " WHERE id = 'W'", { plan => "new plan" }],
    plan_rights => ["generating", "SELECT crmapi.plan_rights('p-N')"],
    api_key_plan => ["generating", "INSERT INTO crmapi.api_key (id, workspace_id,"
        . " name, key_hash, display) VALUES ('$ID2', 'W', 'K', sha256('W2'), 'd')"],
    company_before_delete => ["apart", "DELETE FROM crmapi.company WHERE"
        . " workspace_id = 'W'"],
    "company_before_delete with another's activity" => ["generating", "DELETE FROM"
        . " crmapi.company WHERE workspace_id = 'W'",
        { activity => "activity that loses its contact" }],
    "contact_before_delete with another's activity" => ["approved", "DELETE FROM"
        . " crmapi.contact WHERE workspace_id = 'W'",
        { activity => "activity that loses its company", job => "ready job" }],
    contact_before_delete => ["alone", "DELETE FROM crmapi.contact WHERE"
        . " workspace_id = 'W'", { job => "ready job" }],
    pipeline_card_position => ["generating", "INSERT INTO crmapi.pipeline_card"
        . " (id, workspace_id, pipeline_stage_id, title) VALUES ('$ID2', 'W',"
        . " '$ID', 'T')", { "an advisory one of the stage" => "a stage" }],
    job_hold => ["approved", "SELECT crmapi.job_hold($LEASE)"],
    job_end => ["approved", "SELECT crmapi.job_end($LEASE, 'done', NULL, NULL)"],
    job_return => ["approved", "SELECT crmapi.job_return($LEASE)"],
    enrollment_transition => ["approved", "UPDATE crmapi.enrollment SET status ="
        . " 'stopped_reply' WHERE workspace_id = 'W' AND status = 'approved'"],
    address_lock => ["generating", "SELECT crmapi.address_lock(a) FROM"
        . " crmapi.agent a WHERE a.workspace_id = 'W'"],
    agent_address => ["generating", "UPDATE crmapi.agent SET agent_email ="
        . " agent_email WHERE workspace_id = 'W'"],
    release_taken => ["held", "SELECT crmapi.release_taken('W')"],
    release => ["held", "SELECT crmapi.release(NULL, true)"],
    hold_close => ["held", "SELECT crmapi.hold_close('W', true)"],
    mark_next => ["generating", "SELECT crmapi.mark_next('{}') > 0"],
    instance_hold => ["generating", "SELECT crmapi.instance_hold('r',"
        . " array_fill(1000000000::bigint, '{16}'))"],
    events_leave => ["generating", "SELECT crmapi.events_leave()"],
    restore_numbers => ["generating", "SELECT crmapi.restore_numbers('W')"],
    enrollment_end => ["approved", "SELECT crmapi.enrollment_end('W', '$ID',"
        . " 'stopped_user', 'r')", { job => "ready job" }],
    erase_busy => ["approved", "SELECT crmapi.erase_busy('W', ARRAY['$ID']::uuid[],"
        . " ARRAY['$ID']::uuid[], '{}')", { job => "ready job" }],
    "erase_busy with what an endpoint is told" => ["telling", "SELECT"
        . " crmapi.erase_busy('W', '{}', ARRAY['$ID2']::uuid[],"
        . " ARRAY['$ID']::uuid[])", {}, ["called job"]],
    erase_lock => ["approved", "SELECT crmapi.erase_lock('W',"
        . " jsonb_object_agg(k, jsonb_build_array('$ID'))) FROM"
        . " unnest('{enrollment,activity,pipeline_card,conversation,message,"
        . "contact}'::text[]) k"],
    person_lock => ["approved", "SELECT crmapi.person_lock('W',"
        . " '{a\@x.example}', '{}')",
        { "the participants' advisory ones" => "a participant" }],
    erase => ["approved", "SELECT crmapi.erase('W', ARRAY['$ID']::uuid[],"
        . " '{a\@x.example}', '{}') IS NOT NULL", { job => "ready job",
        "the participants' advisory ones" => "a participant" }],
    contact_erase => ["approved", "SELECT crmapi.contact_erase('W', '$ID',"
        . " '$ID2', '127.0.0.1')"
        . " <> 'missing'", { job => "ready job",
        "the participants' advisory ones" => "a participant" }],
    enrollment_stop => ["approved", "SELECT crmapi.enrollment_stop('W', '$ID',"
        . " 'r')", { job => "ready job" }],
    contact_replied => ["approved", "SELECT crmapi.contact_replied('W', '$ID')",
        { job => "ready job" }],
    contact_merge_lock => ["merging", "SELECT crmapi.contact_merge_lock('W',"
        . " '$ID2', '$ID')", { "the participants' advisory ones" =>
        "a participant", "the contacts' advisory ones" => "a contact" }],
    contact_move => ["merging", "SELECT crmapi.contact_move('W', '$ID2', '$ID')"],
    contact_merge => ["merging", "SELECT crmapi.contact_merge('W', '$ID2', '$ID')",
        { "the participants' advisory ones" => "a participant",
        "the contacts' advisory ones" => "a contact" }],
    suppress => ["approved", "SELECT crmapi.suppress('W', 'a\@x.example', NULL,"
        . " 'bounced')", { job => "ready job" }],
    suppression_add => ["approved", "SELECT s.is_new FROM crmapi.suppression_add("
        . "'W', 'a\@x.example', NULL, 'bounced') s", { job => "ready job" }],
    enrollment_approve => ["pending_approval",
        "SELECT crmapi.enrollment_approve('W', '$ID', now())"],
    enrollment_reject => ["pending_approval",
        "SELECT crmapi.enrollment_reject('W', '$ID')", { job => "ready job" }],
    step_edit => ["pending_approval", "SELECT crmapi.step_edit('W', '$ID', '$ID',"
        . " 's', 'b', NULL)"],
    # what the page has shown, not what is there when it is called
    review_act => ["pending_approval", sub { "SELECT crmapi.review_act('W', '$ID',"
        . " '$_[0]', 'approve', '[{\"step\": \"$ID\", \"subject\": \"s\"}]',"
        . " '$ID', '127.0.0.1')" },
        { job => undef }],
    "review_act, reject" => ["pending_approval", "SELECT crmapi.review_act('W',"
        . " '$ID', NULL, 'reject', '[]', '$ID', NULL)", { job => "ready job" }],
    enrollment_generated => ["generating", "SELECT crmapi.enrollment_generated("
        . "$LEASE, '$ID', '[{\"channel\": \"email\", \"delay_seconds\": 0}]',"
        . " '{}', now())"],
    enrollment_failed => ["sending", "SELECT crmapi.enrollment_failed($LEASE,"
        . " '$ID', 'r')"],
    step_limit => ["approved", "SELECT crmapi.step_limit(e, s, '2027-01-01', 5)"
        . " FROM crmapi.enrollment e, crmapi.enrollment_step s"
        . " WHERE e.workspace_id = 'W' AND s.workspace_id = 'W' AND s.id ="
        . " '$ID'"],
    step_permit => ["approved", "SELECT p.verdict FROM crmapi.enrollment e,"
        . " crmapi.enrollment_step s, crmapi.step_permit(e, s, '2027-01-01', 5) p"
        . " WHERE e.workspace_id = 'W' AND s.workspace_id = 'W' AND s.id ="
        . " '$ID'"],
    step_take => ["approved", "SELECT t.verdict FROM crmapi.step_take($LEASE,"
        . " '$ID', '$ID', '2027-01-01', 5, 'a\@x.example') t"],
    step_wait => ["approved", "SELECT crmapi.step_wait($LEASE, '$ID', '$ID',"
        . " '2027-01-02')"],
    step_sent => ["mailing", "SELECT crmapi.step_sent($LEASE, '$ID', '$ID',"
        . " now(), 'p')", { "a contact's advisory one" => "a contact",
        conversation => "open conversation",
        agent => undef }],      # only with a new conversation
    step_talk => ["mailing", "SELECT crmapi.step_talk('W', '$ID', '$ID')",
        { "a contact's advisory one" => "a contact",
        conversation => "open conversation" }],
    chat_answered => ["chatting", "SELECT crmapi.chat_answered('W', '$ID',"
        . " crmapi.now_ms())"],
    chat_seen => ["chatting", "SELECT crmapi.chat_seen('W', '{$ID}', now(),"
        . " '$ID3')"],
    chat_mail_add => ["chatting", "SELECT crmapi.chat_mail_add('W', '$ID',"
        . " '{$ID}', 'a\@x.example')"],
    chat_mail => ["chatting", "SELECT crmapi.chat_mail($LEASE, '$ID')"],
    message_answer => ["chatting", "SELECT t.status FROM crmapi.message_answer("
        . "'W', '$ID', '$ID2', 'human', 'c', 'text/plain', NULL, '{}',"
        . " NULL) t"],
    "message_answer to what is deleted" => ["chatting", "SELECT t.status FROM"
        . " crmapi.message_answer('W', '$ID', '$ID2', 'human', 'c', 'text/plain',"
        . " NULL, '{}', NULL) t", {}, ["deleted conversation"]],
    answer_take => ["answering", "SELECT t.verdict FROM crmapi.answer_take($LEASE,"
        . " '$ID', '$ID', '2027-01-01', 5, 'a\@x.example') t"],
    answer_sent => ["answering", "SELECT crmapi.answer_sent($LEASE, '$ID', '$ID',"
        . " now(), 'p')"],
    answer_failed => ["answering", "SELECT crmapi.answer_failed($LEASE, '$ID',"
        . " '$ID', 'r', NULL)"],
    answer_refused => ["answering", "SELECT crmapi.answer_refused($LEASE, '$ID',"
        . " '$ID', 'r', 'bounced')", { job => "ready job" }],
    answer_names => ["answering", "SELECT crmapi.answer_names('W', '$ID', 'd')"],
    answer_returned => ["answering", "SELECT crmapi.answer_returned('W', '$ID',"
        . " 'a\@x.example', 'f', 'bounced')", { job => "ready job" }],
    step_failed => ["sending", "SELECT crmapi.step_failed($LEASE, '$ID', '$ID',"
        . " 'r', '1 min')"],
    step_refused => ["sending", "SELECT crmapi.step_refused($LEASE, '$ID', '$ID',"
        . " 'r', 'bounced')"],
    step_names => ["sending", "SELECT crmapi.step_names('W', '$ID', 'd')"],
    step_returned => ["returned", "SELECT crmapi.step_returned('W', '$ID', NULL,"
        . " 'r')", { job => "ready job" }],
    event_feed_make => ["generating", "SELECT crmapi.event_feed_make('W', NULL)"],
    contact_updated => ["generating", "UPDATE crmapi.contact SET first_name = 'B',"
        . " updated_at = updated_at + interval '1 s' WHERE workspace_id = 'W'"],
    webhook_disable => ["generating", "SELECT crmapi.webhook_disable('W', '$ID',"
        . " 'r')", { delivery => "second delivery", job => "called job" }],
    webhook_test => ["generating", "SELECT crmapi.webhook_test('W', '$ID',"
        . " '{}')"],
    webhook_body => ["generating", "SELECT crmapi.webhook_body('W', '$ID',"
        . " 'b')"],
    webhook_attempted => ["generating", "SELECT crmapi.webhook_attempted("
        . "$CALL_LEASE, '$ID', now(), 1, 410, NULL, 'a', 'gone', NULL, NULL)",
        { job => "call" }],
    webhook_cancelled => ["generating", "SELECT crmapi.webhook_cancelled("
        . "$CALL_LEASE, '$ID')", { job => "call" }],
    webhook_wait => ["generating", "SELECT crmapi.webhook_wait($CALL_LEASE,"
        . " '1 min', now())", { job => "call" }],
    webhook_redrive => ["generating", "SELECT crmapi.webhook_redrive('W',"
        . " '$ID2')", { delivery => "second delivery", job => "called job" }],
    intake_lock => ["generating", "SELECT crmapi.intake_lock('W', ARRAY["
        . $ITEM->('{"email": "a@x.example"}') . "])",
        { "the participants' advisory ones" => "a participant" }],
    intake_fill_contact => ["generating", "SELECT crmapi.intake_fill_contact('W',"
        . " '$ID', " . $ITEM->('{"name": "Ann Bo", "phone_number": "+49301",'
            . ' "contact": {"city": "X", "company": "Y"}}') . ")"],
    intake_open => ["generating", "SELECT (crmapi.intake_open('W', '$ID', '$ID',"
        . $ITEM->('{"channel": 1}') . ")).id",
        { "the visitor's or contact's advisory lock" => "a contact" }],
    intake_update_conversation => ["chatting", "SELECT"
        . " crmapi.intake_update_conversation('W', '$ID', '$ID', "
        . $ITEM->('{"content": "c", "role": "human"}')
        . ", true, crmapi.now_ms())"],
    intake_status => ["refused", "SELECT crmapi.intake_status('W', "
        . $ITEM->('{"status": "failed", "external_id": "m", "reason": "bounced"}')
        . ")", { job => "ready job" }],
    intake_replied => ["approved", "SELECT crmapi.intake_replied('W', '$ID',"
        . " false, " . $ITEM->('{}') . ")", { job => "ready job" }],
    intake_effects => ["approved", "SELECT crmapi.intake_effects('W', '$ID',"
        . " false, NULL, " . $ITEM->('{"verified": true}') . ", true)",
        { job => "ready job" }],
    intake_count => ["generating", "SELECT crmapi.intake_count('W', '{$ID}')"],
    intake_store => ["generating", "SELECT crmapi.intake_store('W', '{e}',"
        . " '{\"{}\"}', '{}')", { event => "intake_event" }],
    # Locks: see the top of the file
    intake => ["approved", "SELECT t.again, t.opened, t.field FROM"
        . " crmapi.intake('W', NULL, '[{\"event_id\": \"f\", \"channel\": 1,"
        . " \"bot_id\": \"$ID\", \"email\": \"a\@x.example\", \"verified\": true,"
        . " \"content\": \"c\", \"name\": \"Ann\"}]') t", {}, ["a participant", "contact",
        "a contact", "open conversation", "enrollment", "step", "ready job"]],
    sequence_raise => ["generating", "SELECT crmapi.sequence_raise("
        . "'crmapi.job_id_seq', (SELECT last_value + 200000 FROM"
        . " crmapi.job_id_seq))",
        { "the advisory one of NUMBERS" => "a sequence" }],
    event_trim => ["old", "SELECT crmapi.event_trim(now() - interval '30 days',"
        . " 10)"],
    conversation_idle => ["old", "SELECT crmapi.conversation_idle(now() - interval"
        . " '30 days', 10)"],
    intake_trim => ["old", "SELECT crmapi.intake_trim(now() - interval '30 days',"
        . " 10)", { event => "intake_event" }],
    audit_trim => ["old", "SELECT crmapi.audit_trim(now(), 10)"],
    usage_add => ["old", "SELECT crmapi.usage_add('W', current_date"
        . " - date '1970-01-01', 1, 0)"],
    usage_measure => ["old", "SELECT crmapi.usage_measure('W', NULL)"],
    usage_trim => ["old", "SELECT crmapi.usage_trim(now(), 10)"],
    event_drop => ["old", "SELECT crmapi.event_drop('W', ARRAY['$ID']::uuid[])"],
    retention_talk => ["quiet", "SELECT crmapi.retention_talk('W', '$ID', now()"
        . " - interval '10 days', 10)"],
    retention_conversations => ["quiet", "SELECT r.gone FROM"
        . " crmapi.retention_conversations('W', NULL, '-infinity', '$ID', 10) r"],
    retention_submissions => ["old", "SELECT crmapi.retention_submissions('W',"
        . " NULL, 10)"],
    retention_events => ["old", "SELECT crmapi.retention_events('W', NULL, 10)"],
    original_trim => ["old", "SELECT crmapi.original_trim(now() - interval"
        . " '30 days', 10)"],
    idempotency_trim => ["old", "SELECT crmapi.idempotency_trim(10)"],
    job_poll => ["old", "SELECT t.ready FROM crmapi.job_poll('{test}', now()"
        . " + interval '1 h') t", { job => "old job" }],
    job_claim => ["due", "SELECT t.id FROM crmapi.job_claim('test', 'me', '1 m',"
        . " now() + interval '1 h') t", { job => "old job" }],
    job_reap => ["old", "SELECT crmapi.job_reap()"],
);
$LOCK{"called job"} = $row->("job", "state = 'leased', leased_by = 'other',"
    . " leased_until = now() + interval '1 h'", "id = $CALL2");
$LOCK{"open conversation"} = $row->("conversation", "subject = 'other'");
$LOCK{"old job"} = $row->("job", "run_at = run_at", "id = $OLD");
$LOCK{call} = $row->("job", "attempts = attempts + 1", "id = $CALL");
$LOCK{"second delivery"} = $row->("webhook_delivery", "status = 'failed',"
    . " next_at = NULL, finished_at = now()", "id = '$ID2'");
$_->{row} = "workspace_id = 'W' AND $_->{where}"
    for @LOCK{"open conversation", "called job", "old job", "call", "second delivery"};

my $pending = space("pending_approval");
$CALL{review_act}[1] = $CALL{review_act}[1]->(scalar sql($db, "SELECT"
    . " crmapi.review_digest('$pending->{id}', '$ID')"));

my $functions = functions();

# The locks of the function NAME, as its comment has them: [what %LOCK calls it,
# whether rows that are locked are skipped].
sub locks_of {
    my ($name) = @_;
    my ($function) = $name =~ /^(\w+)/;
    my (undef, undef, $as, $instead) = @{$CALL{$name}};
    my @locks;
    for my $lock (@{$instead || $functions->{$function}{locks}}) {
        $locks[-1][1] = 1 if $lock eq "skipping locked ones";
        next if $lock =~ /^skipping|^in the order|already$/;
        my $is = $as && exists $as->{$lock} ? $as->{$lock} : $lock;
        push @locks, [$is, 0] if defined $is;
    }
    return @locks;
}

subtest "each function that locks says so, and is called here" => sub {
    my %called = map { /^(\w+)/ ? ($1 => 1) : () } keys %CALL;
    my @named = grep { $functions->{$_}{locks} } sort keys %$functions;
    is_deeply([grep { !$called{$_} } @named], [], "all are called");
    is_deeply([grep { !$functions->{$_}{locks} } sort keys %called], [],
        "those that are called have locks");
    is_deeply([grep { !$functions->{$_}{locks} && $functions->{$_}{body} =~
        /\bFOR (?:NO KEY )?(?:UPDATE|SHARE)\b|pg_advisory_xact_lock\(|job_hold\(
        |enrollment_end\(/x } sort keys %$functions], [],
        "who locks has a comment that says what");
    cmp_ok(scalar @named, ">", 40, "they were read");
};

# The texts IS and SHOULD are the same; the lines that differ are shown.
sub same {
    my ($is, $should, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my %in;
    $in{$_}++ for split /\n/, $is;
    $in{$_}-- for split /\n/, $should;
    is_deeply([grep { $in{$_} > 0 } sort keys %in],
        [grep { $in{$_} < 0 } sort keys %in], $name);
}

# Whether somebody holds the lock NAME in the workspace S.
sub is_held {
    my ($s, $name) = @_;
    return $looker->run($s->{of}->("BEGIN; " . probing($name)
        . ";\n\\echo :SQLSTATE\nROLLBACK")) !~ /^00000$/m;
}

# CALL of a workspace in STATE while another transaction has done CHANGE: it waits
# unless it SKIPS what is locked, LOOK is called meanwhile, and in the end it has
# done what it does after the other one, or without the row.
sub beside_another {
    my ($name, $state, $change, $call, $skips, $look) = @_;
    my $should = $skips ? afterwards($state, "SELECT", "SELECT")
        : afterwards($state, $change, $call);
    my $s = space($state);
    $holder->run($s->{of}->("BEGIN; $change"));
    my $before = $look && $look->($s);
    is(!!waits($s, $call), !$skips, "$name: " . ($skips ? "it skips" : "it waits"));
    $look->($s, $before) if $look && !$skips;
    $holder->run($skips ? "ROLLBACK" : "COMMIT");
    my $is = plain_text($s, $call, $caller->result);
    my $all = $is;
    s/\A.*?^(?=00000$)//ms for $skips ? ($is, $should) : ();
    same($is, $should, "$name: it does what it does afterwards");
    forget($s);
    isnt(afterwards($state, "SELECT", $call), $all,
        "$name: it does something if nobody has locked it") if $skips;
}

# NAME waits for each of its locks, in their order.
sub waits_for_locks {
    my ($name) = @_;
    my ($state, $call) = @{$CALL{$name}};
    my @locks = locks_of($name);
    for my $n (0 .. $#locks) {
        my ($lock, $skips) = @{$locks[$n]};
        my $look = sub {
            my ($s, $before) = @_;
            my @held = map { is_held($s, $_->[0]) } @locks;
            return \@held if !$before;
            is_deeply([grep { $held[$_] && !$before->[$_] } 0 .. $#locks],
                [grep { !$before->[$_] } 0 .. $n - 1],
                "$name, $lock: it holds what is named before, and no more");
        };
        beside_another("$name, $lock", $state, changing($lock), $call, $skips,
            $look);
    }
}

postgres()->wait_reaping;
subtest "a function waits for the locks of its comment, in their order" => sub {
    waits_for_locks($_) for sort keys %CALL;
};

# Functions that two do with one enrollment, by its state.
my %PAIRS = (
    pending_approval => [qw(enrollment_approve enrollment_reject enrollment_stop
        suppress review_act)],
    approved => [qw(step_take enrollment_stop suppress contact_replied)],
    sending => [qw(step_sent enrollment_stop step_returned)],
);

subtest "two functions with one enrollment" => sub {
    for my $state (sort keys %PAIRS) {
        for my $first (@{$PAIRS{$state}}) {
            beside_another("$state: $_ beside $first", $state, $CALL{$first}[1],
                $CALL{$_}[1]) for @{$PAIRS{$state}};
        }
    }
};

subtest "an attempt does not wait for its endpoint, which may be going" => sub {
    for my $outcome (qw(delivered retry failed)) {
        my $s = space("generating");
        $holder->run($s->{of}->("BEGIN; SELECT FROM crmapi.webhook_endpoint"
            . " WHERE workspace_id = 'W' FOR UPDATE"));
        ok(!waits($s, "SELECT crmapi.webhook_attempted($CALL_LEASE, '$ID', now(),"
            . " 1, 500, 'e', 'a', '$outcome', '1 min', NULL)"), $outcome);
        $holder->run("ROLLBACK");
        like($caller->result, qr/^00000$/m, "and is recorded");
        forget($s);
    }
};

subtest "a lease that is lost, to another thread of the same daemon, too" => sub {
    my @leased = map { $_->[0] } sql($db, "SELECT proname FROM pg_proc WHERE
        pronamespace = 'crmapi'::regnamespace
        AND proargnames \@> '{job,owner,attempt}' ORDER BY 1");
    is_deeply([grep { !$CALL{$_} } @leased], ["answer_past", "step_past"],
        "all functions with a lease are called, but one, whose caller has it");
    for my $name (grep { $CALL{$_} } @leased) {
        my ($state, $call) = @{$CALL{$name}};
        my $nothing = afterwards($state, "SELECT", "SELECT");
        for my $lost ("'me', 1", "'me', 3", "'other', 2") {
            my $s = space($state);
            my $is = plain_text($s, $call, $caller->run(calling($s,
                $call =~ s/'me', 2\b/$lost/r)));
            if ($name eq "job_end") {
                like($is, qr/^f$/m, "$name by $lost says so");
                s/\A.*?^(?=00000$)//ms for $is, my $same = $nothing;
                same($is, $same, "and does nothing");
            }
            else {
                is($is =~ s/\n\z//r, "CRM01", "$name by $lost fails");
            }
        }
    }
};

is_deeply([sort keys %touched], [],
    "no call has changed the same ids of another workspace");

done_testing;
