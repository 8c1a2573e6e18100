# SPDX-License-Identifier: Apache-2.0
# 65-dump.t: a workspace is dumped completely and restored in the same or
# another database; then it is held (contract 14.2)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Dump;
use CrmTest::Receiver;
use CrmTest::Samples;
use CrmTest::Session;
use Digest::SHA qw(sha256_hex);
use File::Temp qw(tempdir);
use JSON::PP ();
use POSIX ();

# usage is a table of the dump: it is not written between two dumps
my %SITE = (unlimited => 1, intake => 1, conf => "CrmApiUsageInterval 3600\n");
my $json = JSON::PP->new->utf8->canonical;
my $scratch = tempdir("crm-dump-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my ($here, $there) = (database(), database());
my $httpd = httpd(database => $here, %SITE);
my $receiver = CrmTest::Receiver->new;
my %relay = (conf => { webhook_private => "on" }, no_start => 1);
my $worker = worker(database => $here, %relay);
my $w = workspace($httpd);
my $c = $w->client;
my $samples = CrmTest::Samples->new($w);

# ---- rows of every table ------------------------------------------------------

# Start a sequence for a new person; its enrollment's id.
my $people = 0;
sub start {
    my ($template, %members) = @_;
    return $w->start($template, auto_approve => true, contact => {
        first_name => "Nörd", emails => ["p" . ++$people . '@dump.example'] },
        %members)->{enrollment_id};
}

sub fill {
    my $template = $w->template([map { { email_subject => "Step $_",
        email_body => "Hello", delay => "1h" } } 1, 2]);
    $w->import_objects([{ object => "form", id => my $form = uuid(), bot_id => $w->agent,
            name => "Form" },
        { object => "suppression", email => 'no@dump.example',
            reason => "Tab\there, \\N and a line\nfeed" },
        { object => "agent", id => my $chat = uuid(), name => "Chat",
            is_agent => true, enabled => true, public => true }]);
    $w->ctl(qw(admin add --workspace), $w->id, "--email", 'boss@dump.example');
    $w->ctl(qw(suppress add --workspace), $w->id, "--email",
        'gone@dump.example');
    $w->ctl(qw(contact erase --workspace), $w->id, "--email",
        'gone@dump.example');
    $w->token("gateway");
    $w->ctl(qw(link-key rotate), $w->id, "--keep-days", 9);
    $w->webhook($receiver->url("$_/$_"), "contact.created", "form.submitted")
        for 200, 500;
    my @done = map { start($template) } 1 .. 3;
    start($template, auto_approve => false);
    $worker->once for 1 .. 2;
    $worker->may_log(qr/CRM3\d+/);
    $w->ctl(qw(enrollment stop), $done[0]);
    my $r = $c->request("POST", "/api/v1/contacts", body => $json->encode({
        bot_id => $w->agent, first_name => "Ada", notes => "Mine: " . $w->id }),
        headers => { "Idempotency-Key" => "once",
            "Content-Type" => "application/json" });
    status_is($r, 201, "a contact with a key");
    status_is($c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ['up@dump.example'] }] }, headers =>
        { "Idempotency-Key" => "upsert" }), 200, "an upsert with one");
    status_is($httpd->client->request("POST",
        "/crmapi/intake/v1/forms/$form", body => "email=f\@dump.example",
        headers => { "Content-Type" => "application/x-www-form-urlencoded" }),
        $_->[0], $_->[1]) for [200, "a form"];
    my $visitor = $httpd->client->post("/crmapi/intake/v1/chat/$chat/start",
        {})->data->{visitor};
    status_is($httpd->client->post("/crmapi/intake/v1/chat/$chat/messages",
        { id => "m1", content => "Ahoy" }, key => $visitor), 201, "a chat");
    $w->answer(scalar sql($here, "SELECT conversation_id FROM crmapi.message
        WHERE content = 'Ahoy'"), "Aye");
    my $sales = "sales-$$\@crm.example";
    change($w, "agent", $w->agent, agent_email => $sales);
    crmapictl_ok($here, { stdin => "From: m\@dump.example\nTo: $sales\n"
        . "Subject: S\nMessage-ID: <m\@dump.example>\nContent-Type:"
        . " multipart/mixed; boundary=b\n\n--b\n\nBelow\n--b\nContent-Type:"
        . " image/png; name=a.png\nContent-Transfer-Encoding: base64\n\n"
        . "iVBORw0KGgo=\n--b--\n" }, "deliver");
    sql($here, "INSERT INTO crmapi.send_count VALUES ('@{[$w->id]}',
        '@{[$w->agent]}', current_date, 3) ON CONFLICT DO NOTHING;
        INSERT INTO crmapi.past_send VALUES ('@{[$w->id]}', '$done[1]', '2',
            'free', now(), NULL);
        INSERT INTO crmapi.past_answer SELECT m.workspace_id, m.id, 'free',
            now() FROM crmapi.message m WHERE m.workspace_id =
            '@{[$w->id]}' LIMIT 1;
        INSERT INTO crmapi.contact_merged VALUES (gen_random_uuid(),
            '@{[$w->id]}', gen_random_uuid());
        INSERT INTO crmapi.step_bound VALUES ('@{[$w->id]}', '2026-01-01',
            '2026-01-02')");
    # what comes from now on is due, and not done yet
    start($template);
}
fill();

# Two hours from now.
sub later { my @t = gmtime(time + 7200); return sprintf
    "%04d-%02d-%02dT%02d:%02d:%02dZ", $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0] }

# ---- dumps and restores -------------------------------------------------------

sub slug_of { return scalar sql($here, "SELECT slug FROM crmapi.workspace
    WHERE id = '$_[0]'") }

my $first = dump_of($here, $w->id);
my $neighbour = dump_of($here, $w->twin->{id});

# Tables that belong to no workspace.
my %NOBODYS = map { $_ => 1 } qw(
    plan migration worker upkeep
    instance send_mark );           # of the whole database
# What a workspace has that a dump does not.
my %LEFT_OUT = map { $_ => 1 } (
    "contact_change",               # filled from the contacts
    "counter",                      # counted again
    "erasure",                      # what a database knows of erasures
    "workspace_hold",               # what is restored is held anyway
    qw(event_home key_home number_home slug_home)); # where it is, on Citus

subtest "a dump has every table of a workspace" => sub {
    my %has = tables_of($first);
    my @tables = map { $_->[0] } sql($here, "SELECT relname FROM pg_class
        WHERE relnamespace = 'crmapi'::regnamespace AND relkind IN ('r', 'p')
        ORDER BY 1");
    is_deeply([sort keys %has], [grep { !$NOBODYS{$_} && !$LEFT_OUT{$_} }
        @tables], "every table that is nobody's or derived is left out");
    is_deeply([grep { !$has{$_} } sort keys %has], [],
        "this one has rows in each");
    my ($head) = map { $json->decode($_) } $first =~ /^(.*)$/m;
    is($head->{workspace}, $w->id, "its first line has the workspace");
    is($head->{format}, 2, "the format");
    is($head->{schema}, sql($here, "SELECT max(number) FROM crmapi.migration"),
        "and the version of the schema");
    my ($body, $last) = $first =~ /^(.*\n)(.*\n)\z/s;
    is($last, '{"sha256":"' . sha256_hex($body) . "\"}\n",
        "its last line has the SHA-256 of all lines before");
    is($last =~ tr/\n//, 1, "and ends there");
    unlike($first, qr/\Q@{[$w->key]}\E/, "keys are hashes");
    is(index($first, $w->twin->{id}), -1, "nothing of the neighbour's");
    same_dump(dump_of($here, $w->id), $first, "another one is the same");
};

# ---- the same workspace in another database -----------------------------------

# The answers of all GET operations to CLIENT: path => status and body.
sub answers {
    my ($client) = @_;
    my $paths = $samples->openapi->{document}{paths};
    my %answers;

    for my $path (sort keys %$paths) {
        next if !$paths->{$path}{get} || $path =~ /openapi/;
        my $url = $path =~ s/\{id\}/$samples->id_for($path)/er;
        for my $query ("", "?page_size=100", "?cursor=*&page_size=7") {
            next if $path =~ /by-email/ || ($query && $path =~ /\{id\}$/);
            my $r = $client->get("$url$query");
            $answers{"$url$query"} = $r->status . " " . $r->{body};
        }
    }
    $answers{search} = $client->get("/api/v1/contacts?search=ada")->{body};
    $answers{email} = $client->get("/api/v1/contacts/by-email",
        query => { email => 'p1@dump.example' })->{body};
    return \%answers;
}

# The events of CLIENT behind CURSOR, and the cursor behind them.
sub events {
    my ($client, $cursor) = @_;
    my @events;
    while (1) {
        my $r = $client->get("/api/v1/events?page_size=100&cursor=$cursor");
        die $r->text if $r->status != 200;
        push @events, map { "$_->{type} $_->{id}" } @{$r->json->{data}};
        $cursor = $r->json->{pagination}{next_cursor};
        return (\@events, $cursor) if !$r->json->{pagination}{has_more};
    }
}

sub is_counted {
    my ($database) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    triggers_kept_up($database, "all totals are right");
}

my $elsewhere = httpd(database => $there, %SITE);
my $away = $elsewhere->client(key => $w->key);
my $answers = answers($c);
my $middle = $c->get("/api/v1/events?cursor=*&page_size=50")->json
    ->{pagination}{next_cursor};
my ($rest, $end) = events($c, $middle);

my $last_job;       # of the workspace restored there
subtest "restored in another database, it is the same" => sub {
    # on Citus each server has numbers of its own
    cmp_ok(sql($there, "SELECT last_value FROM crmapi.event_number"), "<",
        sql($here, "SELECT last_value FROM crmapi.event_number"),
        "that one has had fewer events") if !CrmTest::Citus::wanted();
    my $said = restored($there, $first);
    my %rows = tables_of($first);
    my $sum = 0;
    $sum += $_ for values %rows;
    is_deeply($said, { id => $w->id, slug => slug_of($w->id), rows => $sum,
        keys_left_out => 0, held_reason => "it was restored from a dump" },
        "what is said about it");
    same_dump(dump_of($there, $w->id), $first, "its dump is the same to the byte");
    $last_job = sql($there, "SELECT max(id) FROM crmapi.job WHERE workspace_id =
        '@{[$w->id]}'");
    is_counted($there);
    is(sql($there, "SELECT reltuples FROM pg_class WHERE oid =
        'crmapi.contact'::regclass"), $rows{contact}, "it has statistics")
        if !CrmTest::Citus::wanted();
    is_deeply(answers($away), $answers, "so is every answer, with its key");
    is(sql($there, $_), sql($here, $_), "computed columns are, too")
        for "SELECT md5(string_agg(md5((c.search, c.email_key, c.phone_key,
                c.phone_digits)::text), '' ORDER BY c.id)) FROM crmapi.contact
                c WHERE workspace_id = '@{[$w->id]}'",
            "SELECT md5(string_agg(md5((c.search, c.domain_key)::text), ''
                ORDER BY c.id)) FROM crmapi.company c
                WHERE workspace_id = '@{[$w->id]}'",
            "SELECT string_agg((k.plan_api, k.plan_sequences)::text, ' '
                ORDER BY k.id) FROM crmapi.api_key k
                WHERE workspace_id = '@{[$w->id]}'";
    is(sql($there, "SELECT count(*) FROM crmapi.event WHERE workspace_id <>
        '@{[$w->id]}'"), 0, "nothing came to others");
};

subtest "nothing is sent until it is released, then once" => sub {
    my $other = worker(database => $there, %relay);
    $other->may_log(qr/CRM3\d+/);       # the receiver that answers 500
    my $before = $receiver->requests;
    my $was = dump_of($there, $w->id);  # its key was used
    sql($there, "CREATE TABLE public.usage_was AS TABLE crmapi.usage");
    $other->once for 1 .. 2;
    is(scalar $other->mails, 0, "no mail");
    is(scalar $receiver->requests, $before, "no webhook");
    $other->once(later());
    is(scalar $other->mails, 0, "nor later");
    # which may be tomorrow: usage is measured each day
    sql($there, "BEGIN; DELETE FROM crmapi.usage;
        INSERT INTO crmapi.usage SELECT * FROM public.usage_was; COMMIT");
    same_dump(dump_of($there, $w->id), $was, "it is as it was");
    is(crmapictl_json($there, qw(workspace release), $w->id)->{released}, 1,
        "released");
    $other->once for 1 .. 3;
    my @mails = map { $_->[1] =~ /^To:.*?([\w.]+\@dump)/m } $other->mails;
    is_deeply(\@mails, ["p$people\@dump"], "the mail that was due is sent");
    my %times;
    $times{$_->{headers}{"webhook-id"}}++
        for grep { $_->{path} =~ m{^/200/} }
            ($receiver->requests)[$before .. $receiver->requests - 1];
    cmp_ok(scalar keys %times, ">", 0, "so are webhooks");
    is_deeply([grep { $_ > 1 } values %times], [], "once");
    $other->once;
    is(scalar $other->mails, 1, "nothing comes twice");
};

subtest "a reader of its events goes on from its last cursor" => sub {
    my ($got, $last) = events($away, $middle);
    is_deeply([@$got[0 .. $#$rest]], $rest, "what it had not read yet");
    ($got) = events($away, $end);
    my $made = $away->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "Later" })->data->{id};
    ($got) = events($away, $end);
    like($got->[-1], qr/^contact\.created /, "a later event is behind it");
    is($away->get("/api/v1/events?page_size=100&cursor=$end")->json
        ->{data}[$#$got]{data}{id}, $made, "that one");
    cmp_ok(sql($there, "SELECT min(id) FROM crmapi.job WHERE kind =
        'webhook.deliver' AND payload->>'delivery_id' = (SELECT d.id::text FROM
        crmapi.webhook_delivery d JOIN crmapi.event v ON v.id = d.event_id
        WHERE v.fields ->> 'id' = '$made' OR v.body LIKE '%$made%' LIMIT 1)"),
        ">", $last_job, "jobs get numbers above those of the dump");
};

# ---- a copy beside the original -----------------------------------------------

subtest "a copy beside the living original" => sub {
    my $was = dump_of($here, $w->id);
    my $said = restored($here, $first, "--as", "new");
    my $id = $said->{id};
    isnt($id, $w->id, "has another id");
    like($said->{slug}, qr/-2$/, "and another slug");
    is($said->{keys_left_out}, sql($here, "SELECT (SELECT count(*) FROM
        crmapi.api_key WHERE workspace_id = '@{[$w->id]}') + count(*) FROM
        crmapi.intake_key WHERE workspace_id = '@{[$w->id]}'"),
        "keys are left out");
    is_counted($here);
    same_dump(dump_of($here, $w->id), $was, "the original is as it was");
    same_dump(dump_of($here, $w->twin->{id}), $neighbour, "so is the neighbour");
    my $copy = dump_of($here, $id);
    my $mine = () = $first =~ /Mine: \Q@{[$w->id]}\E/g;
    my $all = () = $copy =~ /\Q@{[$w->id]}\E/g;
    is($all, $mine, "the copy has the original's id only in a note");
    my $key = crmapictl_ok($here, qw(key create --workspace), $id, "--name",
        "k", "--scopes", "read,write");
    my $got = answers($httpd->client(key => $key));
    # the workspace has another slug and key
    delete $got->{$_} for grep { m{/workspace} } keys %$got;
    # cursors are of one workspace
    s/\Q$id\E/$w->{id}/g, s/"next_cursor":"\K[^"]+// for values %$got;
    my %expected = map { $_ => $answers->{$_} =~ s/"next_cursor":"\K[^"]+//r }
        grep { !m{/workspace} } keys %$answers;
    is_deeply($got, \%expected, "a new key gets the same answers, but for the id");
    my $replay = $httpd->client(key => $key)->request("POST",
        "/api/v1/contacts", body => $json->encode({ bot_id => $w->agent,
        first_name => "Ada", notes => "Mine: " . $w->id }), headers =>
        { "Idempotency-Key" => "once", "Content-Type" => "application/json" });
    is($replay->header("Idempotent-Replayed"), "true", "a write is replayed");
    is($replay->data->{workspace_id}, $id, "with the copy's id");
    sql($here, "UPDATE crmapi.job SET run_at = now() WHERE workspace_id ="
        . " '$id' AND state = 'ready'");
    $worker->once;
    is(sql($here, "SELECT count(*) FROM crmapi.job WHERE workspace_id = '$id'"
        . " AND state = 'ready' AND attempts = 0") > 0, 1, "it has jobs");
    is_deeply([sql($here, "SELECT status, count(*) FROM
        crmapi.enrollment_step WHERE workspace_id = '$id' GROUP BY 1 ORDER BY
        1")], [step_states($first)], "which it does not do");
    crmapictl_ok($here, qw(workspace delete), $id, "--yes");
    is_counted($here);
    same_dump(dump_of($here, $w->twin->{id}), $neighbour,
        "its end changes no neighbour");
};

# The states of the steps in DUMP, with their numbers.
sub step_states {
    my ($dump) = @_;
    my ($columns, $rows) = $dump =~
        /^(\{"table":"enrollment_step"[^\n]*)\n(.*?)^\{/ms;
    my $i = 0;
    my %at = map { $_ => $i++ } @{$json->decode($columns)->{columns}};
    my %count;
    $count{(split /\t/)[$at{status}]}++ for split /\n/, $rows;
    return map { [$_, $count{$_}] } sort keys %count;
}

subtest "what stands in the way of a restore is named" => sub {
    my ($code, $out, $err) = crmapictl($here, { stdin => $first }, "workspace",
        "restore");
    is($code, 1, "the workspace is there");
    like($err, qr/there is a workspace with the id \Q@{[$w->id]}\E already/,
        "says so");
    ($code, $out, $err) = crmapictl($here, { stdin => $first }, "workspace",
        "restore", "--as", uuid(), "--slug", slug_of($w->id));
    like($err, qr/line 3: there is a workspace with the slug ".*" already/,
        "a slug that is taken");
    ($code, $out, $err) = crmapictl($here, { stdin => $first }, "workspace",
        "restore", "--as", "x");
    is($code, 2, "no id");
    my $id = uuid();
    my $long = "s" x 63;
    is(restored($here, $first, "--as", $id, "--slug", $long)->{slug}, $long,
        "a slug of one's own");
    my @copies = map { restored($here, dump_of($here, $id), "--as", "new") } 2, 3;
    is_deeply([map { $_->{slug} } @copies], [map { "s" x 60 . "-$_" } 2, 3],
        "copies of it get numbers");
    crmapictl_ok($here, qw(workspace delete), $_->{id}, "--yes") for @copies;
    my $taken = database();
    crmapictl_ok($taken, qw(workspace create --name Taken --slug), slug_of($w->id));
    ($code, $out, $err) = crmapictl($taken, { stdin => $first }, "workspace",
        "restore");
    is($code, 1, "under its own id it gets no other slug");
    like($err, qr/line 3: there is a workspace with the slug .* by --slug$/m,
        "but one that is given");
    (my $moved = $first) =~ s/\A(.*)\Q@{[$w->id]}\E/$1 . uuid()/e;
    $moved =~ s/^\{"sha256".*\n\z//m;
    ($code, $out, $err) = crmapictl($here, { stdin => signed($moved) },
        "workspace", "restore", "--slug", "more");
    like($err, qr/another workspace of this database has this key/,
        "a key of another workspace");
    like($err, qr/line \d+: .*api_key.*--as/, "with its line and what to do");
    crmapictl_ok($here, qw(workspace delete), $id, "--yes");
    # one that appears after the look: as two restores at once
    for my $taken ([$id, "other"], [uuid(), "meanwhile"]) {
        my $let_go = holding($here, "INSERT INTO crmapi.workspace (id, name, slug)
            VALUES ('$taken->[0]', 'Taken', '$taken->[1]')");
        my $restore = CrmTest::Child->start(sub { (crmapictl($here,
            { stdin => $first }, "workspace", "restore", "--as", $id, "--slug",
            "meanwhile"))[2] });
        wait_blocked($here, 1);
        $let_go->("COMMIT");
        my ($said) = $restore->result;
        like($said, qr/line 3: another workspace with this id or slug was made/,
            "its id or slug is taken meanwhile");
        crmapictl_ok($here, qw(workspace delete), $taken->[0], "--yes");
    }
};

# ---- a living workspace ---------------------------------------------------------

subtest "a dump under writers is of one moment, and stops none of them" => sub {
    my $busy = workspace($httpd, twin => 0);
    $busy->log_on;
    my @writers = map { my $n = $_; CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my $client = $busy->client;
        my $done = 0;
        while ($go_on->()) {
            my $id = $client->post("/api/v1/contacts", { bot_id =>
                $busy->agent, first_name => "W$n" })->data->{id};
            $client->post("/api/v1/pipeline-cards", { title => "C",
                contact_id => $id, pipeline_stage_id => ($busy->stages)[0] });
            $client->request("DELETE", "/api/v1/contacts/$id") if $done % 3 == 0;
            $done++;
        }
        return $done;
    }) } 1 .. 3;
    my $at_least = sub { my ($n) = @_; wait_for(sub { count_rows($busy,
        "contact") >= $n }, 30) };
    ok($at_least->(10), "they write");
    my @dumps;
    for (1 .. 4) {
        my $n = count_rows($busy, "contact");
        push @dumps, dump_of($here, $busy->id);
        ok($at_least->($n + 3), "and go on");
    }
    $_->stop for @writers;
    my @done = map { $_->result } @writers;
    cmp_ok($_, ">", 3, "a writer wrote") for @done;
    for my $dump (@dumps) {
        my $id = restored($there, $dump, "--as", "new")->{id};
        is_counted($there);
        is_deeply([sql($there, "SELECT count(*) FILTER (WHERE type =
            'contact.created') - count(*) FILTER (WHERE type =
            'contact.deleted') FROM crmapi.event WHERE workspace_id = '$id'")],
            [sql($there, "SELECT count(*) FROM crmapi.contact WHERE
            workspace_id = '$id'")], "it has the event of each contact");
        is(sql($there, "SELECT sum(n) FROM crmapi.counter WHERE workspace_id =
            '$id' AND kind = 'contact' AND parent =
            '00000000-0000-0000-0000-000000000000'"), sql($there, "SELECT
            count(*) FROM crmapi.contact WHERE workspace_id = '$id'"),
            "and their total");
        crmapictl_ok($there, qw(workspace delete), $id, "--yes");
    }
};

my $small = workspace($httpd, twin => 0);

subtest "a job that a daemon works at is ready again elsewhere" => sub {
    sql($here, "INSERT INTO crmapi.job (workspace_id, kind, state, leased_by,
        leased_until, attempts) VALUES ('@{[$small->id]}', 'generate.steps',
        'leased', 'daemon', now() + interval '1 hour', 1)");
    my $dump = dump_of($here, $small->id);
    my $id = restored($there, $dump, "--as", "new")->{id};
    is_deeply([sql($there, "SELECT state, leased_by, leased_until, attempts,
        is_due FROM crmapi.job WHERE workspace_id = '$id' AND kind =
        'generate.steps'")], [["ready", undef, undef, 1, "t"]],
        "with the attempts that it had");
    crmapictl_ok($there, qw(workspace delete), $id, "--yes");
};

subtest "a workspace returns to its earlier state" => sub {
    my $c = $small->client;
    my $count = sub { my $r = $c->get("/api/v1/contacts"); $r->status == 200
        ? $r->json->{pagination}{total} : $r->status };
    is($c->post("/api/v1/contacts", { bot_id => $small->agent })->status, 201,
        "a contact");
    my $was = $count->();
    my $dump = dump_of($here, $small->id);
    my $other = dump_of($here, $w->id);
    is($c->post("/api/v1/contacts", { bot_id => $small->agent })->status, 201,
        "one more");
    is($count->(), $was + 1, "it is seen");
    crmapictl_ok($here, qw(workspace delete), $small->id, "--yes");
    is($count->(), 401, "deleted");
    my $said = restored($here, $dump);
    is($said->{id}, $small->id, "restored under its id");
    is($said->{keys_left_out}, 0, "with its keys");
    is($count->(), $was, "its clients see the earlier state, by the same key");
    is_counted($here);
    same_dump(dump_of($here, $w->id), $other, "others are as they were");
    crmapictl_ok($here, qw(workspace release), $small->id);
};

subtest "a dump in a file" => sub {
    my $path = "$scratch/small.dump";
    write_file($path, "before");
    chmod 0644, $path;
    my $said = crmapictl_json($here, "workspace", "dump", slug_of($small->id),
        "--output", $path);
    my $dump = dump_of($here, $small->id);
    same_dump(read_file($path), $dump, "it is the dump");
    is((stat $path)[2] & 07777, 0600, "nobody else may read it");
    is($said->{workspace}, $small->id, "what is said: the workspace");
    is($said->{bytes}, -s $path, "the bytes");
    my %rows = tables_of($dump);
    my $rows = 0;
    $rows += $_ for values %rows;
    is($said->{rows}, $rows, "the rows");
    is($said->{sha256}, ($dump =~ /"sha256":"(.*)"/)[0], "the checksum");
    like($said->{taken_at}, qr/^20\d\d-/, "and when");
    is_deeply([glob "$path.*"], [], "no other file is left");
    my @of_small = ("workspace", "dump", $small->id, "--output", $path);
    my $id = $small->id;
    like((crmapictl($here, @of_small))[2], qr/^crmapictl: the workspace is not held: .*crmapictl workspace hold \Q$id\E$/,
        "that it is not held is said");
    for my $hold (["workspace hold", $small->id], ["hold", "--all"]) {
        my ($words, @rest) = @$hold;
        crmapictl_ok($here, split(/ /, $words), @rest);
        is((crmapictl($here, @of_small))[2], "", "$words: then nothing is said");
        crmapictl_ok($here, split(/ /, $words =~ s/hold/release/r),
            grep { $_ ne "--all" } @rest);
    }
    my ($code, $out, $err) = run_program(command => ["sh", "-c",
        'cd "$1" && shift && exec "$@"', "sh", $scratch, $CrmTest::BUILD{CTL},
        "workspace", "dump", $small->id, "--output", "here.dump"],
        env => { CRMAPI_DATABASE => postgres()->conninfo($here) });
    is($code, 0, "a name without a folder") or diag($err);
    same_dump(read_file("$scratch/here.dump"), $dump, "is one of this folder");
    ($code, $out, $err) = crmapictl($here, "workspace", "dump",
        $small->id, "--output", "$scratch/none/x");
    is($code, 1, "a folder that is none");
    like($err, qr/cannot write \S+none\/x/, "is named");
    POSIX::mkfifo("$scratch/fifo", 0600);
    symlink "/dev/null", "$scratch/link";
    mkdir "$scratch/folder";
    for my $other ("$scratch/fifo", "$scratch/link", "$scratch/folder") {
        my @was = lstat $other;
        ($code, $out, $err) = crmapictl($here, "workspace", "dump", $small->id,
            "--output", $other);
        is("$code $err", "1 crmapictl: cannot write $other: it is not a regular"
            . " file\n", "what is no file is not replaced by one");
        is((lstat $other)[1], $was[1], "but stays as it was");
    }
    ($code, $out, $err) = crmapictl($here, "workspace", "dump", uuid(),
        "--output", $path);
    like($err, qr/there is no workspace/, "a workspace that is none");
    same_dump(read_file($path), $dump, "the file stays as it was");
    like(crmapictl_ok($there, "workspace", "restore", $path),
        qr/^id\t\Q@{[$small->id]}\E\nslug\t/, "it can be restored from there");
    ($code, $out, $err) = crmapictl($there, "workspace", "restore",
        "$scratch/none");
    like($err, qr/cannot read \S+none: No such file/, "no file to restore");
};

subtest "a dump in a file that is not completed leaves nothing" => sub {
    limits_files();
    my @path = ("$scratch/kept.dump", "$scratch/kept.dump.");
    my $kept = sub { is(read_file($path[0]), "before", "the file is as it was");
        is_deeply([glob "$path[1]*"], [], "no part of another is left") };
    my @dump = ($CrmTest::BUILD{CTL}, "workspace", "dump", $small->id,
        "--output", $path[0]);
    my %env = (CRMAPI_DATABASE => postgres()->conninfo($here));
    write_file($path[0], "before");
    my ($code, $out, $err) = run_program(env => \%env, command => ["sh", "-c",
        'ulimit -f 1; exec "$@"', "sh", @dump]);
    is($code, 1, "the file gets too large");
    like($err, qr/^crmapictl: cannot write.*: File too large$/m, "it is said");
    $kept->();
    for my $signal (qw(INT TERM HUP)) {
        my $let_go = holding($here, "LOCK TABLE crmapi.contact");
        my $pid = fork // die "fork: $!\n";
        if (!$pid) {
            $SIG{$_} = "DEFAULT" for qw(INT TERM HUP);
            $ENV{CRMAPI_DATABASE} = $env{CRMAPI_DATABASE};
            open(STDERR, ">", "/dev/null");
            exec(@dump) or POSIX::_exit(127);
        }
        wait_blocked($here, 1);
        kill $signal, $pid;
        waitpid $pid, 0;
        isnt($? & 127, 0, "ended by SIG$signal");
        $kept->();
        $let_go->();
    }
    my $let_go = holding($here, "LOCK TABLE crmapi.contact");
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        $SIG{HUP} = "IGNORE";           # nohup
        $ENV{CRMAPI_DATABASE} = $env{CRMAPI_DATABASE};
        open($_, ">", "/dev/null") for *STDOUT, *STDERR;
        exec(@dump) or POSIX::_exit(127);
    }
    wait_blocked($here, 1);
    kill "HUP", $pid;
    $let_go->();
    waitpid $pid, 0;
    is($?, 0, "a signal that is ignored ends nothing");
    same_dump(read_file($path[0]), dump_of($here, $small->id), "it is the dump");
};

# ---- what has changed since a dump ----------------------------------------------

# Dump the workspace W to the file NAME with OPTIONS; what is said.
sub dumped {
    my ($name, @options) = @_;
    return crmapictl_json($here, "workspace", "dump", $w->id, "--output",
        "$scratch/$name", @options);
}

# Change something of each kind in W.
sub change_much {
    my %one = map { $_->[0] => $_->[1] } map { my $table = $_; [$table,
        scalar sql($here, "SELECT id FROM crmapi.$table WHERE workspace_id = '"
        . $w->id . "' ORDER BY id LIMIT 1")] } qw(contact company conversation
        webhook_endpoint api_key);
    my $patch = sub { my ($path, $id, $body) = @_;
        status_is($c->request("PATCH", "/api/v1/$path/$id", body =>
            $json->encode($body), headers => { "Content-Type" =>
            "application/json" }), 200, "PATCH $path") };
    $worker->once(later());
    $worker->once;
    my ($running) = map { $_->[0] } sql($here, "SELECT contact_id FROM
        crmapi.enrollment WHERE workspace_id = '@{[$w->id]}' AND contact_id IS NOT
        NULL AND status IN ('running', 'approved', 'pending_approval') LIMIT 1");
    my ($gone, $left, $other) = map { $w->contact(first_name => "New $_",
        emails => ["n$_\@dump.example"])->{id} } 1 .. 3;
    $patch->("contacts", $left, { custom_fields => { a => 1 }, notes => "N" });
    $patch->("contacts", $one{contact}, { first_name => "Åse", tags => ["x"] });
    status_is($c->request("DELETE", "/api/v1/contacts/$_"), 204, "DELETE")
        for $gone, $running // ();
    $patch->("companies", $one{company}, { name => "Other" }) if $one{company};
    $patch->("conversations", $one{conversation}, { active => $_ })
        for false, true;
    $w->answer(scalar sql($here, "SELECT conversation_id FROM crmapi.message
        WHERE content = 'Ahoy' AND workspace_id = '@{[$w->id]}'"), "More");
    start(scalar sql($here, "SELECT id FROM crmapi.sequence_template WHERE
        workspace_id = '@{[$w->id]}' LIMIT 1"));
    $w->ctl(qw(enrollment stop), scalar sql($here, "SELECT id FROM
        crmapi.enrollment WHERE workspace_id = '@{[$w->id]}' AND
        crmapi.enrollment_is_live(status) LIMIT 1"));
    $w->ctl(qw(webhook remove), $one{webhook_endpoint});
    $w->ctl(qw(key set), $one{api_key}, "--read-limit", 900);
    $w->ctl(qw(workspace set), $w->id, "--write-limit", 800, "--currency", "SEK");
    $w->ctl(qw(admin remove --workspace), $w->id, "--email", 'boss@dump.example');
    $w->ctl(qw(suppress add --workspace), $w->id, "--email", 'ny@dump.example');
    $w->ctl(qw(contact erase --workspace), $w->id, $other);
    $w->ctl(qw(link-key drop), $w->id);
}

my $third = database();
subtest "what has changed since a dump, restored: the same as a whole dump" => sub {
    # one that is written before the dump, and committed after it
    my $commit = holding($here, "INSERT INTO crmapi.contact (id, workspace_id,
        bot_id, first_name) VALUES ('" . (my $late = uuid()) . "', '"
        . $w->id . "', '" . $w->agent . "', 'Late')");
    $c->post("/api/v1/contacts", { bot_id => $w->agent });  # by then committed
    my $base = dumped("base");
    $commit->("COMMIT");
    crmapictl_ok($third, "workspace", "restore", "$scratch/base");
    my $there_was = dump_of($third, $w->id);
    same_dump($there_was, read_file("$scratch/base"), "a copy");
    change_much();
    my $said = dumped("changes", "--since", $base->{mark});
    cmp_ok($said->{rows}, ">", 0, "rows have changed");
    my $now = dump_of($here, $w->id);
    isnt($now, $there_was, "much is new");
    my $all = dumped("all");
    # one that was cut changes nothing
    write_file("$scratch/cut", substr(read_file("$scratch/changes"), 0, -20));
    my ($code, undef, $err) = crmapictl($third, "workspace", "restore",
        "$scratch/cut");
    is($code, 1, "one that was cut is refused");
    same_dump(dump_of($third, $w->id), $there_was, "and changes nothing");
    # nor does one that has the key of a contact, but not its row
    my $less = read_file("$scratch/changes") =~ s/^\{"sha256".*\n\z//mr;
    my $keys = qr/^\{"table":"contact",.*\n(?:[^\\].*\n)*\\\.\n/m;
    $less =~ s/$keys(?:.*\n)*?\K\Q$late\E\t.*\n// or fail("it has the row");
    ($code, undef, $err) = crmapictl($third, { stdin => signed($less) },
        "workspace", "restore");
    like($err, qr/rows of the table contact would not be those of the dump/,
        "one that lacks a row is refused");
    same_dump(dump_of($third, $w->id), $there_was, "and changes nothing, too");
    # nor does one that was forged
    my $whole = read_file("$scratch/changes") =~ s/^\{"sha256".*\n\z//mr;
    my ($mine, $none) = ($w->agent, uuid());
    for my $forged (
        [$whole =~ s/^(\{"table":"workspace",.*\n)[^\\].*\n/$1/mr,
            qr/stdin: line \d+: a dump has one workspace/],
        [$whole =~ s/^\Q$late\E\t/x\t/mr, qr/stdin: line \d+: .*22P02/],
        [$whole =~ s/^(\Q$late\E\t.*?)\Q$mine\E/$1$none/mr, qr/stdin: .*23503/]) {
        my ($text, $why) = @$forged;
        isnt($text, $whole, "one that was forged");
        ($code, undef, $err) = crmapictl($third, { stdin => signed($text) },
            "workspace", "restore");
        like($err, $why, "is refused, and where is said");
    }
    same_dump(dump_of($third, $w->id), $there_was, "they change nothing either");
    my $done = crmapictl_json($third, "workspace", "restore", "$scratch/changes");
    is($done->{id}, $w->id, "what is said about it");
    cmp_ok($done->{$_}, ">", 0, "rows were $_") for qw(written deleted);
    same_dump(dump_of($third, $w->id), $now, "the copy is the same to the byte");
    is_counted($third);
    is(sql($third, $_), sql($here, $_), "what triggers keep is the same")
        for map { "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM
            crmapi.$_ t WHERE workspace_id = '@{[$w->id]}'" }
            qw(contact_change contact conversation company);
    # again, with nothing new, and once more from the mark of the changes
    my $more = dumped("more", "--since", $said->{mark});
    $done = crmapictl_json($third, "workspace", "restore", "$scratch/more");
    is($done->{deleted}, 0, "nothing has changed since");
    same_dump(dump_of($third, $w->id), $now, "it stays the same");
};

subtest "changes that do not fit are refused" => sub {
    my $base = dumped("base");
    for my $mark ("x", "1.2.3", $base->{mark} =~ s/\.\d+\./.1./r,
            $base->{mark} =~ s/^\d+/99999999999/r) {
        my ($code, $out, $err) = crmapictl($here, "workspace", "dump", $w->id,
            "--since", $mark);
        is($code, 1, "$mark is no mark of here");
        like($err, qr/--since must be a mark/, "says so");
        is($out, "", "no line of a dump");
    }
    crmapictl_ok($here, "workspace", "hold", $w->id);
    my ($closes) = crmapictl($here, "workspace", "dump", $w->id, "--since", "x",
        "--api", "off");
    is($closes, 1, "nor with --api off");
    is(sql($here, "SELECT closed FROM crmapi.workspace_hold"), "f",
        "which closes nothing");
    crmapictl_ok($here, "workspace", "release", $w->id);
    my ($code, undef, $err) = crmapictl($here, "workspace", "dump", uuid(),
        "--since", $base->{mark});
    like($err, qr/there is no workspace/, "a workspace that is none");
    dumped("changes", "--since", $base->{mark});
    my $refused = sub {
        my ($why, $name, @options) = @_;
        my $was = dump_of($third, $w->id);
        my ($code, undef, $err) = crmapictl($third, "workspace", "restore",
            "$scratch/changes", @options);
        is($code, 1, $name);
        like($err, $why, "says why");
        same_dump(dump_of($third, $w->id), $was, "nothing changes");
    };
    $refused->(qr/restore that dump first/, "after another dump");
    $refused->(qr/--as and --slug/, "under another id", "--as", "new");
    crmapictl_ok($third, qw(workspace release), $w->id);
    dumped("changes", "--since", $base->{mark});
    $refused->(qr/no held workspace/, "into one that was released");
};
done_testing;
