#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-one-node.t: the rules of schema/README that allow keeping all rows of a
# workspace on any one server, as far as the catalogs show them (contract 16.4).
# Statements are judged by 99-statements.t
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Statements;

my $db = database();

# Tables that have no workspace, and why.
my %FREE = (
    workspace => "the workspace itself: its id is the key",
    plan => "a reference table: the same on each server, rarely written",
    migration => "of the database: what migrate has applied",
    worker => "of the database: the daemons that run",
    upkeep => "of the database: when periodic tasks ran",
    instance => "of the database: whether it is held, where it was",
    send_mark => "of the database: numbers by which a restored one is known",
);
my $free = join ", ", map { "'$_'" } sort keys %FREE;

# The tables of workspaces with the column that says which: d.
my $bound = "d AS (
    SELECT c.oid, c.relname, a.attnum FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname =
        CASE c.relname WHEN 'workspace' THEN 'id' ELSE 'workspace_id' END
    WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind IN ('r', 'p')
      AND (c.relname = 'workspace' OR c.relname NOT IN ($free))),
views AS (
    SELECT c.oid, c.relname FROM pg_class c
    WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind IN ('v', 'm'))";
# Names without the schema.
my $constraint = "c.conrelid::regclass::text || '.' || c.conname";
my $functions = "pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'crmapi'::regnamespace AND p.prokind = 'f'";
# A body that reads or writes tables of workspaces, or views of them.
my $over_tables = "(EXISTS (SELECT FROM pg_depend x
        WHERE x.classid = 'pg_proc'::regclass AND x.objid = p.oid
          AND x.refclassid = 'pg_class'::regclass
          AND x.refobjid IN (SELECT oid FROM d UNION SELECT oid FROM views))
    OR (p.prosqlbody IS NULL AND EXISTS (
        SELECT FROM (SELECT relname FROM d UNION SELECT relname FROM views) t
        WHERE p.prosrc ~ ('crmapi\\.' || t.relname || '\\M'))))";

my $worker = "the worker's queue and upkeep go over all workspaces";
my $reference = "PostgreSQL nulls it without a trigger of ours";

# Each rule: what breaks it, as a query; the names that do today, each with its
# reason; SQL that breaks it, and the name that is then found.
my @RULES = (
    ["a table has workspace_id NOT NULL, or is on the list above",
        "SELECT c.relname FROM pg_class c LEFT JOIN pg_attribute a
            ON a.attrelid = c.oid AND a.attname = 'workspace_id'
         WHERE c.relnamespace = 'crmapi'::regnamespace
           AND c.relkind IN ('r', 'p') AND a.attnotnull IS NOT TRUE",
        \%FREE,
        "CREATE TABLE crmapi.x (workspace_id uuid)", "x"],
    ["workspace_id leads every primary, unique and foreign key",
        "SELECT $constraint FROM pg_constraint c
         JOIN d ON d.oid = c.conrelid AND d.relname <> 'workspace'
         WHERE c.contype IN ('p', 'u', 'f') AND c.conkey[1] <> d.attnum",
        { "api_key.api_key_key_hash_key" => "a key leads to its workspace",
          "intake_key.intake_key_key_hash_key" => "a token does" },
        "CREATE TABLE crmapi.x (workspace_id uuid, id uuid PRIMARY KEY)",
        "x.x_pkey"],
    ["workspace_id is in every unique index",
        "SELECT i.indexrelid::regclass FROM pg_index i
         JOIN d ON d.oid = i.indrelid
         WHERE (i.indisunique OR i.indisexclusion)
           AND d.attnum <> ALL (i.indkey)",
        { api_key_key_hash_key => "a key leads to its workspace",
          intake_key_key_hash_key => "a token does",
          workspace_slug_key => "a slug names one workspace in the database" },
        "CREATE UNIQUE INDEX x ON crmapi.contact (id)", "x"],
    ["a foreign key joins workspace_id with workspace_id",
        "SELECT $constraint FROM pg_constraint c
         JOIN d ON d.oid = c.conrelid LEFT JOIN d r ON r.oid = c.confrelid
         WHERE c.contype = 'f' AND c.confrelid <> 'crmapi.plan'::regclass
           AND (r.oid IS NULL OR array_position(c.conkey, d.attnum)
                IS DISTINCT FROM array_position(c.confkey, r.attnum))",
        {},
        "ALTER TABLE crmapi.contact ADD CONSTRAINT x FOREIGN KEY (city)
            REFERENCES crmapi.worker", "contact.x"],
    ["a row of a workspace goes with it",
        "SELECT d.relname FROM d WHERE d.relname <> 'workspace'
           AND NOT EXISTS (SELECT FROM pg_constraint f
            WHERE f.conrelid = d.oid AND f.contype = 'f'
              AND f.confrelid = 'crmapi.workspace'::regclass
              AND f.confdeltype = 'c')",
        { idempotent_answer => "its trigger zz_idempotency deletes them",
          event => "its trigger zz_event deletes them",
          contact => "its trigger zz_contact deletes them",
          audit => "its trigger zz_audit deletes them",
          erasure => "it outlives the workspace, for a dump that brings it back",
          contact_change => "its contact's trigger change_remove deletes it" },
        "CREATE TABLE crmapi.x (workspace_id uuid PRIMARY KEY)", "x"],
    ["workspace_id leads every other index",
        "SELECT i.indexrelid::regclass FROM pg_index i
         JOIN d ON d.oid = i.indrelid
         WHERE NOT i.indisunique AND i.indkey[0] <> d.attnum",
        { (map { $_ => $worker } qw(conversation_idle event_old
              intake_event_old idempotent_answer_old original_old job_due job_waiting
              job_leased job_leased_by job_finished job_dead)),
          (map { $_ => "a channel finds its workspace by it" }
              qw(agent_by_email agent_by_base agent_by_outbound_email
              agent_by_outbound_base agent_by_phone agent_by_id form_by_id)),
          (map { $_ => "its keys are hashes of a workspace and a tag" }
              qw(company_tags contact_tags)),
          (map { $_ => "its entries are of a workspace, a name and a value" }
              qw(company_fields contact_fields)),
          attachment_by_message => "crmapictl attachment names the message" },
        "CREATE INDEX x ON crmapi.contact (city)", "x"],
    ["no foreign key sets null",
        "SELECT $constraint FROM pg_constraint c JOIN d ON d.oid = c.conrelid
         WHERE c.contype = 'f' AND c.confdeltype IN ('n', 'd')",
        { map { ("$_->[0].$_->[0]_workspace_id_$_->[1]_fkey" => $reference) }
            [qw(activity company_id)], [qw(activity contact_id)],
            [qw(company pipeline_stage_id)], [qw(contact company_id)],
            [qw(contact pipeline_stage_id)], [qw(conversation contact_id)],
            [qw(pipeline_card contact_id)], [qw(submission contact_id)] },
        "ALTER TABLE crmapi.activity ADD CONSTRAINT x
            FOREIGN KEY (workspace_id, company_id) REFERENCES crmapi.company
            ON DELETE SET NULL (company_id)", "activity.x"],
    ["a function over tables is no SQL function",
        "SELECT p.proname FROM $functions AND l.lanname = 'sql'
           AND $over_tables",
        {},
        "CREATE FUNCTION crmapi.x() RETURNS SETOF uuid LANGUAGE sql
            BEGIN ATOMIC SELECT id FROM crmapi.contact; END", "x"],
    ["a trigger function does not ask for its table's name",
        "SELECT p.proname FROM $functions AND p.prosrc ~ 'TG_(TABLE|REL)'",
        { refuse_change => "in its message only",
          refuse_truncate => "in its message only" },
        "CREATE FUNCTION crmapi.x() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE ''%'', TG_TABLE_NAME; END'", "x"],
    ["a transition table meets no other table in a statement",
        "SELECT t.tgname || ' on ' || t.tgrelid::regclass
         FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
         JOIN d ON d.oid = t.tgrelid
         WHERE coalesce(t.tgnewtable, t.tgoldtable) IS NOT NULL
           AND EXISTS (SELECT FROM regexp_split_to_table(p.prosrc, ';') s(q)
               WHERE s.q ~ ('\\m' || coalesce(t.tgnewtable, t.tgoldtable)
                            || '\\M')
                 AND EXISTS (SELECT FROM d WHERE s.q ~
                     ('crmapi\\.' || d.relname || '\\M')))",
        { (map { my $trigger = $_; map { ("$trigger on $_" =>
            "one statement counts all rows of an import") }
            qw(company contact conversation pipeline_card) }
            qw(counter_insert counter_delete)),
          "event_insert on contact" =>
            "one statement writes the times of all contacts of an import" },
        "CREATE TRIGGER x AFTER INSERT ON crmapi.agent REFERENCING NEW TABLE AS
            changed FOR EACH STATEMENT EXECUTE FUNCTION crmapi.counter_owned()",
        "x on agent"],
    ["a trigger of a table without a workspace writes no workspace's table",
        "SELECT c.relname || '.' || t.tgname FROM pg_trigger t
         JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
         WHERE c.relnamespace = 'crmapi'::regnamespace AND NOT t.tgisinternal
           AND c.oid NOT IN (SELECT oid FROM d)
           AND EXISTS (SELECT FROM d WHERE p.prosrc ~
               ('crmapi\\.' || d.relname || '\\M'))",
        { "plan.rights" => "a plan's rights are beside the keys of all its"
            . " workspaces" },
        "CREATE TRIGGER x AFTER UPDATE ON crmapi.upkeep FOR EACH ROW
            EXECUTE FUNCTION crmapi.plan_change()", "upkeep.x"],
    ["SKIP LOCKED is within a workspace",
        "SELECT p.proname FROM $functions
           AND EXISTS (SELECT FROM regexp_split_to_table(p.prosrc, ';') s(q)
               WHERE s.q ~ 'SKIP LOCKED' AND s.q !~
                   ('workspace_id = (' || p.proname || '\\.)?workspace\\M'))",
        { map { $_ => $worker } qw(job_claim job_poll) },
        "CREATE FUNCTION crmapi.x() RETURNS void LANGUAGE plpgsql AS
            'BEGIN PERFORM FROM crmapi.job FOR UPDATE SKIP LOCKED; END'", "x"],
    ["no trigger notifies",
        "SELECT p.proname FROM $functions
           AND p.prorettype = 'trigger'::regtype
           AND p.prosrc ~* 'pg_notify|\\mNOTIFY\\M'",
        { map { $_ => "a job starts when it is due, not at the next poll" }
            qw(job_notify job_notify_again) },
        "CREATE FUNCTION crmapi.x() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN NOTIFY x; RETURN NULL; END'", "x"],
    ["a sequence belongs to a column",
        "SELECT c.relname FROM pg_class c
         WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'S'
           AND NOT EXISTS (SELECT FROM pg_depend x
               WHERE x.classid = 'pg_class'::regclass AND x.objid = c.oid
                 AND x.deptype IN ('a', 'i'))",
        { event_number => "the order of events: 0013-events.sql explains it" },
        "CREATE SEQUENCE crmapi.x", "x"],
    ["no function forces generic plans",
        "SELECT p.proname FROM $functions
           AND 'plan_cache_mode=force_generic_plan' = ANY (p.proconfig)",
        { intake => "planning takes longer than executing" },
        "ALTER FUNCTION crmapi.now_ms SET plan_cache_mode = force_generic_plan",
        "now_ms"],
);

# The names that SQL returns in a transaction that has done BEFORE.
sub names {
    my ($sql, $before) = @_;
    return sort map { $_->[0] } postgres()->sql($db, "BEGIN;
        SET LOCAL search_path = crmapi, pg_catalog; " . ($before // "")
        . "; WITH $bound $sql; ROLLBACK");
}

subtest "the schema keeps the rules, but for the exceptions" => sub {
    for my $rule (@RULES) {
        my ($name, $sql, $exceptions) = @$rule;
        my @found = names($sql);
        my %found = map { $_ => 1 } @found;
        is_deeply([grep { !$exceptions->{$_} } @found], [], $name);
        is_deeply([grep { !$found{$_} } sort keys %$exceptions], [],
            "an exception is one: $name");
        is_deeply([grep { $exceptions->{$_} !~ /\w/ } keys %$exceptions], [],
            "and has a reason");
    }
};

# Each domain, and what PostgreSQL says of its null, "" if it takes it.
my %null = map { my $domain = $_->[0];
    my $done = eval { sql($db, "SELECT NULL::crmapi.$domain"); 1 };
    ($domain => $done ? "" : $@) } sql($db, "SELECT typname FROM pg_type
    WHERE typnamespace = 'crmapi'::regnamespace AND typtype = 'd'");

subtest "a domain takes null, which is the value where there is no row" => sub {
    is($null{$_}, "", $_) for sort keys %null;
    cmp_ok(scalar keys %null, ">", 5, "all were asked");
};

# What statements of functions do beyond one workspace, why, and which: the
# function and how its statement begins. What else the function does is judged.
my @BEYOND = (
    [qr/^unbound /, $worker,
        "conversation_idle: SELECT f.workspace_id, array_agg(f.id) FROM (",
        "counter_trim: DELETE FROM crmapi.counter c WHERE c.n = 0",
        "event_trim: SELECT f.workspace_id, array_agg(f.id) FROM (",
        "idempotency_trim: SELECT f.workspace_id, array_agg(f.key) FROM (",
        "intake_trim: SELECT f.workspace_id, array_agg(f.event_id) FROM (",
        "audit_trim: SELECT f.workspace_id, array_agg(f.id) FROM (",
        "usage_due: SELECT w.id FROM crmapi.workspace w WHERE NOT EXISTS (",
        "usage_trim: SELECT f.workspace_id, array_agg(f.day) FROM (",
        "original_trim: SELECT f.workspace_id, array_agg(f.message_id) FROM (",
        "job_claim: UPDATE crmapi.job j SET state = 'leased'",
        "job_claim: turn := (SELECT h.workspace_id FROM",
        "job_poll: WITH come AS",
        "job_poll: SELECT l.lane, (SELECT true FROM crmapi.job r",
        "job_reap: SELECT j.workspace_id, array_agg(j.id) FROM crmapi.job j",
        "worker_beat: UPDATE crmapi.job j SET leased_until ="],
    [qr/^(?:unbound|across|set) /, "it compares all totals with all rows",
        "counter_mend: WITH differing AS", "counter_verify: WITH owned AS"],
    [qr/^unbound (?:counter|workspace)$/, "a statement may write rows of several"
        . " workspaces", map { "$_: INSERT INTO crmapi.counter AS c" } qw(
        counter_conversation counter_owned counter_pipeline_card)],
    [qr/^unbound (?:contact_change|event_feed)$/, "a statement may"
        . " write contacts of several workspaces", "contact_created: WITH times AS ("],
    [qr/^unbound live_/, "a key or token leads to its workspace",
        map { "$_: SELECT k.key_id, k.workspace_id, k.slug" } qw(
        intake_key_find key_look_up)],
    [qr/^unbound (?:api_key|intake_key)$/, "which keys exist is not known by"
        . " workspace; on Citus it is asked of a table that each server has",
        "key_roll: (SELECT string_agg(substr(l.key_hash, 1, 8), '')"],
    [qr/^unbound /, "a plan changes for all its workspaces",
        "plan_change: UPDATE crmapi.api_key k"],
    [qr/^unbound /, "without a workspace it is for all of the database",
        "hold: (SELECT count(*) FROM crmapi.job j WHERE j.state = 'leased'",
        "release: SELECT h.workspace_id FROM crmapi.workspace_hold h WHERE",
        "release: INSERT INTO crmapi.step_bound AS b"],
    [qr/^unbound (?:agent|workspace_hold)$/, "an address is unique in the database",
        "address_taken: SELECT f.field, f.workspace_id FROM"],
    [qr/^unbound erasure$/, "an outbox has messages of all workspaces",
        "erased_sent: SELECT i.id FROM unnest(ids) i(id)"],
    [qr/^unbound /, "a daemon's journal has sends of all workspaces",
        "past_add: INSERT INTO crmapi.past_send AS p",
        "past_add: INSERT INTO crmapi.past_answer AS p"],
    [qr/^volatile (?:nextval|gen_random_uuid)$/, "each row of the statement has"
        . " a number or an id of its own",
        "webhook_plan: WITH planned AS", "webhook_redrive: WITH chosen AS"],
    [qr/^volatile (?:event_id|event_next)$/, "a number is taken while the row is"
        . " locked: 0013-events.sql explains it",
        "contact_updated: INSERT INTO crmapi.event AS v"],
    [qr/^returning event_feed$/, "each write of a contact would have a statement"
        . " more", map { "contact_updated: UPDATE crmapi.contact_change c SET"
        . " updated_at = NEW.updated_at$_" } ", indexed_fields", " WHERE"],
);

SKIP: {
    skip "no python3-pglast: build/setup --tests installs it" unless parser();

    # The faults of @BEYOND's functions, in a transaction that has done SQL before,
    # that no exception permits, and the exceptions that nothing needs.
    my $judged = sub {
        my %faults = judge_functions($db, @_);
        my @stale;
        for my $beyond (@BEYOND) {
            my ($fault, $reason, @statements) = @$beyond;
            for my $one (@statements) {
                my ($name, $begin) = split /: /, $one, 2;
                my @found = grep { index($_->[0], $begin) == 0
                    && grep { /$fault/ } @{$_->[1]} } @{$faults{$name}};
                $_->[1] = [grep { !/$fault/ } @{$_->[1]}] for @found;
                push @stale, $one if @found != 1;
            }
        }
        return ([map { my $name = $_; map { "$name: $_->[0]: "
            . join ", ", @{$_->[1]} } grep { @{$_->[1]} } @{$faults{$name}} }
            sort keys %faults], \@stale, scalar keys %faults);
    };

    subtest "the statements of a function concern one workspace" => sub {
        my ($faults, $stale, $functions) = $judged->();
        is_deeply($faults, [], "but for the exceptions");
        is_deeply($stale, [], "an exception is for one statement");
        cmp_ok($functions, ">", 100, "all were judged");
    };

    subtest "an exception does not cover the rest of its function" => sub {
        my ($body) = map { $_->[0] } postgres()->sql($db, "SELECT"
            . " pg_get_functiondef('crmapi.idempotency_trim'::regproc)");
        ok($body =~ s/a\.workspace_id = workspace AND //, "a condition less");
        my ($faults) = $judged->($body);
        is(scalar @$faults, 1, "is a fault");
        like($faults->[0], qr/^idempotency_trim: DELETE .*: unbound idempotent_/,
            "of its statement");
    };
}

subtest "what breaks a rule is found" => sub {
    for my $rule (@RULES) {
        my ($name, $sql, $exceptions, $bad, $found) = @$rule;
        is_deeply([grep { !$exceptions->{$_} } names($sql, $bad)], [$found],
            $name);
    }
};

done_testing;
