#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-access.t: keys, tokens, and what each role may do
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Schema;
use CrmTest::Session;
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex sha256_hex);
use MIME::Base64 qw(encode_base64);

my $api = $CrmTest::Postgres::API;
my $w = space();

# ---- keys ---------------------------------------------------------------------

subtest "keys (contract 1.2, 3.2, 3.3)" => sub {
    my $s = space();
    my $hash = sha256_hex("a key");
    my $id = make("api_key", %{$s->{in}}, name => "K", display => "svc_…",
        can_read => "t", can_write => "f", key_hash => "\\x$hash");
    my $live = sub {
        my @row = sql($db, "SELECT read, write, plan_api, plan_sequences
            FROM crmapi.live_key WHERE workspace_id = '$s->{id}'
            AND key_hash = '\\x$hash'");
        return @row ? join("", @{$row[0]}) : "dead";
    };
    is($live->(), "tftt", "a read-only key of plan pro");
    my %plans = (free => "tfff", starter => "tfff", standard => "tftf",
        pro => "tftt", enterprise => "tftt");
    for my $plan (sort keys %plans) {
        sql($db, "UPDATE crmapi.workspace SET plan = '$plan' "
            . "WHERE id = '$s->{id}'");
        is($live->(), $plans{$plan}, "plan $plan");
    }
    refused("UPDATE crmapi.api_key SET can_read = false, can_write = true
        WHERE id = '$id'", qr/check constraint/, "write implies read");
    refused("UPDATE crmapi.api_key SET workspace_id = '$w->{id}'
        WHERE id = '$id'", qr/never changes/, "a key cannot be moved");
    refused("UPDATE crmapi.api_key SET key_hash = sha256('other')
        WHERE id = '$id'", qr/never changes/, "nor become another");
    refused(row("api_key", id => uuid(), %{$w->{in}}, name => "K",
        display => "x", can_read => "t", can_write => "t",
        key_hash => "\\x$hash"), qr/unique/, "nor have two workspaces");
    refused(row("api_key", id => uuid(), %{$w->{in}}, name => "K",
        display => "x", can_read => "t", can_write => "t",
        key_hash => "\\x00"), qr/check constraint/, "a hash is SHA-256");
    sql($db, "UPDATE crmapi.api_key SET revoked_at = now() WHERE id = '$id'");
    is($live->(), "dead", "a revoked key is not live");
    refused("UPDATE crmapi.api_key SET revoked_at = NULL WHERE id = '$id'",
        qr/never changes/, "and stays revoked");
    refused("UPDATE crmapi.workspace SET slug = 'other' WHERE id = '$s->{id}'",
        qr/never changes/, "a slug stays what it is");
    my $plan = join "\n", map { $_->[0] } sql($db, "SET enable_seqscan = off;
        EXPLAIN (COSTS OFF) SELECT 1 WHERE (SELECT k.read AND k.plan_api
        FROM crmapi.live_key k WHERE k.workspace_id = '$s->{id}'
        AND k.key_id = '$id')");
    is(() = $plan =~ /Index (?:Only )?Scan/g, 1,
        "the check is one look-up in a unique index") or diag($plan);
};

subtest "a key has its plan's rights at every moment (contract 3.3)" => sub {
    my $s = space();
    my $plan = "plan " . uuid();
    my ($free, $pro) = map { [$_, "UPDATE crmapi.workspace SET plan = '$_'
        WHERE id = '$s->{id}'"] } "free", $plan;
    my $wrong = "SELECT count(*) FROM crmapi.api_key k
        JOIN crmapi.workspace w ON w.id = k.workspace_id
        JOIN crmapi.plan p ON p.name = w.plan
        WHERE (k.plan_api, k.plan_sequences)
            IS DISTINCT FROM (p.api, p.api AND p.sequences)";
    my $rights = sub { join "", @{(sql($db, "SELECT DISTINCT plan_api,
        plan_sequences FROM crmapi.live_key
        WHERE workspace_id = '$s->{id}'"))[0]} };
    my $key = sub { row("api_key", id => uuid(), %{$s->{in}}, name => "K",
        display => "x", can_read => "t", can_write => "t",
        key_hash => "\\x" . sha256_hex(uuid())) };

    sql($db, "INSERT INTO crmapi.plan VALUES ('$plan', true, false)");
    sql($db, $_) for $key->(), $key->();
    is($rights->(), "tt", "plan pro");
    sql($db, $pro->[1]);
    is($rights->(), "tf", "a plan without sequences");
    sql($db, "UPDATE crmapi.plan SET sequences = true WHERE name = '$plan'");
    is($rights->(), "tt", "the plan is given sequences");
    sql($db, "UPDATE crmapi.plan SET api = false WHERE name = '$plan'");
    is($rights->(), "ff", "no sequences without the API");
    sql($db, $key->());
    is($rights->(), "ff", "a new key, too");
    # each waits for the other, whichever comes first
    for my $case ([$key->(), $free->[1], "a key, then another plan"],
            [$free->[1], $key->(), "another plan, then a key"],
            [$pro->[1], "UPDATE crmapi.plan SET api = true
                WHERE name = '$plan'", "another plan, then that plan's rights"],
            ["UPDATE crmapi.plan SET api = false WHERE name = '$plan'",
                $key->(), "a plan's rights, then a key"]) {
        my ($first, $second, $name) = @$case;
        my $end = holding($db, $first);
        my $waits = CrmTest::Child->start(sub { sql($db, $second); 1 });
        wait_blocked($db, 1);
        $end->("COMMIT");
        is(($waits->result)[0], 1, "$name: done");
        is(sql($db, $wrong), 0, "$name: right") or last;
    }
    sql($db, $free->[1]);
    sql($db, "DELETE FROM crmapi.plan WHERE name = '$plan'");
};

# ---- rights -------------------------------------------------------------------

subtest "the API's role may do what the API does and no more" => sub {
    my $s = space();
    my $c = "'$s->{id}', gen_random_uuid()";
    my $talk = make("conversation", %{$s->{owned}}, type => 1);
    make("api_key", %{$s->{in}}, name => "K", display => "x",
        can_read => "t", can_write => "t", key_hash => \"sha256('api')");
    my @may = (
        "INSERT INTO crmapi.contact (workspace_id, id, bot_id)
            VALUES ($c, '$s->{bot}')",
        "UPDATE crmapi.contact SET notes = 'x'",
        "INSERT INTO crmapi.pipeline_card (workspace_id, id,
            pipeline_stage_id, title) VALUES ($c, '$s->{stages}[0]', 'T')",
        "DELETE FROM crmapi.contact WHERE workspace_id = '$s->{id}'",
        "UPDATE crmapi.conversation SET deleted = true WHERE id = '$talk'
            RETURNING *",
        "UPDATE crmapi.api_key SET last_used_at = now()
            WHERE workspace_id = '$s->{id}' AND id = '$talk'",
        "SELECT read FROM crmapi.live_key",
        "SELECT max(number) FROM crmapi.migration",
        "SELECT sum(n) FROM crmapi.counter",
        "INSERT INTO crmapi.job (workspace_id, kind) VALUES ('$s->{id}', 'k')",
        "INSERT INTO crmapi.event (workspace_id, id, type, fields)
            VALUES ($c, 't', '{}')",
    );
    for my $sql (@may) {
        ok(eval { scalar as($api, $sql); 1 }, "may: " . substr $sql, 0, 50)
            or diag($@);
    }
    my @may_not = (
        "DELETE FROM crmapi.conversation", "TRUNCATE crmapi.contact",
        "UPDATE crmapi.conversation SET email = 'x'",
        "INSERT INTO crmapi.conversation (workspace_id, id, bot_id, type)
            VALUES ($c, '$s->{bot}', 1)",
        "SELECT key_hash FROM crmapi.api_key",
        "SELECT display FROM crmapi.api_key", "SELECT * FROM crmapi.api_key",
        "UPDATE crmapi.api_key SET revoked_at = NULL",
        "UPDATE crmapi.api_key SET can_write = true",
        "DELETE FROM crmapi.api_key",
        "UPDATE crmapi.workspace SET plan = 'pro'",
        "UPDATE crmapi.plan SET api = true", "UPDATE crmapi.counter SET n = 0",
        "UPDATE crmapi.agent SET name = 'x'",
        "UPDATE crmapi.activity SET contact_id = NULL",
        "UPDATE crmapi.activity SET activity_type = 'call'",
        "UPDATE crmapi.enrollment SET status = 'completed'",
        "DELETE FROM crmapi.migration",
        "INSERT INTO crmapi.migration (number, name, sha256)
            VALUES (99, 'x', 'x')",
        "UPDATE crmapi.suppression SET reason = 'x'",
        "INSERT INTO crmapi.suppression (workspace_id, id, email)
            VALUES ($c, 'x\@x.org')", "SELECT * FROM crmapi.job",
        "CREATE TABLE crmapi.mine ()", "DROP TABLE crmapi.contact",
        "SELECT crmapi.counter_verify()", "DELETE FROM crmapi.event",
        "UPDATE crmapi.event SET fields = '{}'",
        "DELETE FROM crmapi.contact_change",
        "UPDATE crmapi.contact_change SET id = gen_random_uuid()",
        "SELECT setval('crmapi.event_number', 1)",
        "UPDATE crmapi.event_feed SET log = false",
        "INSERT INTO crmapi.webhook_delivery (workspace_id, id, event_id,
            endpoint_id, job_id) VALUES ($c, '$talk', '$talk', 1)",
    );
    for my $sql (@may_not) {
        refused($sql, qr/permission denied|must be owner/,
            "may not: " . substr($sql, 0, 60), $api);
    }
};

# What each role writes: i(nsert), u(pdate) or the columns of it, d(elete).
my %WRITES = (
    crmapi_api => "activity i(completed_at description due_date duration_minutes"
        . " metadata title updated_at)d, api_key (last_used_at), company iud,"
        . " contact iud, contact_change i(indexed_fields updated_at),"
        . " conversation (active archived archived_at assigned_at assigned_to"
        . " deleted deleted_at human_takeover internal_notes unanswered updated_at),"
        . " enrollment i, event i, idempotent_answer iu, job i,"
        . " pipeline_card iud, sequence i, suppression d",
    crmapi_worker => "activity i, attachment i, attachment_piece i, conversation"
        . " (active last_active_at last_message last_message_at), event i, job iud,"
        . " message_html i, original i, send_count d, suppression id, upkeep iud,"
        . " worker iud",
);

subtest "each role writes these tables and no others, but by functions" => sub {
    plan(skip_all => "keys have columns of their own with Citus")
        if CrmTest::Citus::wanted();
    my %is = map { $_->[0] => $_->[1] } sql($db, "SELECT r, string_agg(t || ' '
            || w, ', ' ORDER BY t) FROM (SELECT r, c.relname AS t, concat(
            CASE WHEN has_any_column_privilege(r, c.oid, 'INSERT') THEN 'i' END,
            CASE WHEN has_table_privilege(r, c.oid, 'UPDATE') THEN 'u'
                ELSE (SELECT '(' || string_agg(a.attname, ' ' ORDER BY a.attname)
                    || ')' FROM pg_attribute a WHERE a.attrelid = c.oid
                    AND a.attnum > 0 AND NOT a.attisdropped
                    AND has_column_privilege(r, c.oid, a.attnum, 'UPDATE')) END,
            CASE WHEN has_table_privilege(r, c.oid, 'DELETE') THEN 'd' END) AS w
        FROM pg_class c, unnest(ARRAY['crmapi_api', 'crmapi_worker']) r
        WHERE c.relnamespace = 'crmapi'::regnamespace
          AND c.relkind IN ('r', 'v')) rights WHERE w <> '' GROUP BY r");
    is($is{$_}, $WRITES{$_}, $_) for sort keys %WRITES;
};

# Columns that no role of a daemon selects (contract 9.3), and all others that
# hold bytes: a new one has to be here or there.
my %secret = map { $_ => 1 } qw(api_key.key_hash intake_key.key_hash
    link_key.key link_key.old_key live_intake.key_hash live_key.key_hash
    webhook_endpoint.key webhook_endpoint.old_key erase_key.key
    erased_address.hash erasure.key);
my %open = map { $_ => 1 } qw(attachment_piece.bytes
    idempotent_answer.key idempotent_answer.request original.bytes);
my @logins = ($api, $CrmTest::Postgres::WORKER);

subtest "9.3 no role of a daemon reads a secret" => sub {
    my @bytes = map { $_->[0] } sql($db, "SELECT c.relname || '.' || a.attname
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'crmapi'::regnamespace AND a.attnum > 0
          AND c.relkind IN ('r', 'v', 'm') AND EXISTS (SELECT FROM pg_type t
              WHERE t.oid = a.atttypid AND 'bytea'::regtype IN (t.oid,
                  t.typbasetype))");
    is_deeply([sort @bytes], [sort keys %secret, keys %open],
        "all columns of bytes are known");
    for my $column (sort keys %secret) {
        my ($table, $name) = split /\./, $column;
        for my $role (qw(crmapi_api crmapi_worker), @logins) {
            is(scalar sql($db, "SELECT has_column_privilege('$role',
                'crmapi.$table', '$name', 'SELECT')"), "f",
                "$role has no right to read $column");
        }
        for my $role (@logins) {
            refused("SELECT $name FROM crmapi.$table", qr/permission denied/,
                "$role does not read $column", $role);
            refused("SELECT FROM crmapi.$table WHERE $name = '\\x00'",
                qr/permission denied/, "nor asks for it", $role);
            refused("SELECT * FROM crmapi.$table", qr/permission denied/,
                "nor all of $table", $role);
        }
    }
};

subtest "functions with their owner's rights" => sub {
    my @defined = sql($db, "SELECT p.oid::regprocedure::text,
            p.proowner = n.nspowner,
            'search_path=pg_catalog, pg_temp' = ANY (p.proconfig),
            has_function_privilege('public', p.oid, 'EXECUTE'),
            p.prorettype = 'trigger'::regtype
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.prosecdef AND n.nspname = 'crmapi'");
    cmp_ok(scalar @defined, ">", 30, "there are some");
    for my $one (@defined) {
        my ($name, $owned, $path, $public, $trigger) = @$one;
        is("$owned$path", "tt", "$name: by the owner, with a safe path");
        is($public, "f", "$name: not for everybody") if $trigger eq "f";
    }
    my @allowed = map { "$_->[0] $_->[1]" } sql($db, "SELECT r.rolname,
            p.proname FROM pg_proc p, pg_roles r
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND r.rolname IN ('crmapi_api', 'crmapi_worker')
          AND p.proname IN ('intake_key_find', 'token_mac',
              'token_sign_link', 'token_sign_page', 'token_signed',
              'token_old_mac', 'link_key_rotate', 'link_key_drop',
              'key_look_up', 'key_roll', 'webhook_mac', 'webhook_sign')
          AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
        ORDER BY 1, 2");
    is_deeply(\@allowed, ["crmapi_api intake_key_find",
        "crmapi_api key_look_up", "crmapi_api key_roll",
        "crmapi_api token_sign_page", "crmapi_api token_signed",
        "crmapi_worker token_sign_link", "crmapi_worker webhook_sign"],
        "who may call those that use secrets");
};

subtest "a key and a token are found by their hashes" => sub {
    my $s = space();
    for my $case (["api_key", "key_look_up", can_read => "t",
                can_write => "t"], ["intake_key", "intake_key_find"]) {
        my ($table, $function, @members) = @$case;
        my $id = make($table, %{$s->{in}}, name => "K", display => "x",
            @members, key_hash => \"sha256('$s->{id}')");
        my $found = sub { join " ", map { @$_ } as($api, "SELECT key_id,
            workspace_id, slug FROM crmapi.$function(sha256('$_[0]'))") };
        is($found->($s->{id}), "$id $s->{id} $s->{slug}",
            "$function: whose it is");
        is($found->("x"), "", "nobody's");
        sql($db, "UPDATE crmapi.$table SET revoked_at = now()
            WHERE id = '$id'");
        is($found->($s->{id}), "", "nor when it is revoked");
    }
};

subtest "tokens are signed and compared, each for its purpose" => sub {
    my $s = space();
    my $key = pack "H*", scalar sql($db, "SELECT encode(key, 'hex')
        FROM crmapi.link_key WHERE workspace_id = '$s->{id}'");
    my $daemon = $CrmTest::Postgres::WORKER;
    my $head = sub {
        my ($purpose, $workspace) = @_;
        return unpack "H*", pack "C C (H32)3 Q>", 1, $purpose,
            map({ s/-//gr } $workspace // $s->{id}, uuid(), uuid()), 7;
    };
    my $call = sub { my ($role, $function, @hex) = @_;
        my $value = as($role, "SELECT crmapi.$function("
            . join(", ", map { "'\\x$_'" } @hex) . ")");
        return $value };
    for my $purpose (1 .. 5) {
        my $one = $head->($purpose);
        my $mac = hmac_sha256_hex(pack("H*", $one), $key);
        is($call->($daemon, "token_sign_link", $one),
            $purpose <= 2 ? "\\x$mac" : undef, "$purpose: the worker's");
        is($call->($api, "token_sign_page", $one),
            $purpose == 3 || $purpose == 4 ? "\\x$mac" : undef,
            "$purpose: the API's");
        is($call->($api, "token_signed", $one, $mac), "t",
            "$purpose: the right signature");
        is($call->($api, "token_signed", $one, $_), "f", "a wrong one")
            for $mac =~ s/^(.)/$1 eq "0" ? "1" : "0"/er, $mac . "00",
                substr($mac, 2), "";
        is($call->($api, "token_signed", $head->($purpose), $mac), "f",
            "that of another token");
    }
    is($call->($api, "token_sign_page", $head->(3, uuid())), undef,
        "no such workspace");
    is($call->($api, "token_signed", $head->(3, uuid()), "00" x 32), "f",
        "nor a comparison");
    is($call->($api, "token_sign_page", $_), undef, "no token: $_")
        for "", "01", "0103", $head->(3) . "00", substr($head->(3), 2);
};

subtest "12.2 webhooks are signed as Standard Webhooks has it" => sub {
    my $s = space();
    is(scalar sql($db, "SELECT crmapi.webhook_mac(
        'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}',
        decode('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'))"),
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "the vector of its reference libraries");
    my @keys = ("k" x 24, "o" x 64);
    my $hook = make("webhook_endpoint", %{$s->{in}}, url => "https://x.org",
        events => "{contact.created}", key => $keys[0], old_key => $keys[1],
        old_key_until => "2026-11-01T00:00:00Z");
    my $event = make("event", %{$s->{in}}, type => "t",
        body => "{\"a\":\"\x{fc}\"}");
    my $delivery = make("webhook_delivery", %{$s->{in}}, event_id => $event,
        endpoint_id => $hook, job_id => 1);
    my $signed = sub { join " ", map { @$_ } as($CrmTest::Postgres::WORKER,
        "SELECT * FROM crmapi.webhook_sign('$_[0]', '$_[1]', '1700000000',
        $_[2])") };
    my $id = "msg_" . ($event =~ s/-//gr);
    my $text = "$id.1700000000.{\"a\":\"\xc3\xbc\"}";
    my @right = map { "v1," . encode_base64(hmac_sha256($text, $_), "") }
        @keys;
    is($signed->($s->{id}, $delivery, "'2026-10-31T23:59:59Z'"), "$id @right",
        "by the new and the old key");
    is($signed->($s->{id}, $delivery, "'2026-11-01T00:00:00Z'"), "$id $right[0]",
        "when its time is over by the new one");
    sql($db, "UPDATE crmapi.webhook_endpoint SET old_key_until = now()
        + interval '1 hour' WHERE id = '$hook'");
    is($signed->($s->{id}, $delivery, "NULL"), "$id @right",
        "at this moment");
    is($signed->(uuid(), $delivery, "NULL"), "", "of another workspace");
    sql($db, "UPDATE crmapi.event SET body = NULL, fields = '{}'
        WHERE id = '$event'");
    is($signed->($s->{id}, $delivery, "NULL"), "", "without a body");
};

done_testing();
