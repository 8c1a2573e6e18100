# SPDX-License-Identifier: Apache-2.0
# 66-usage.t: what a workspace has used, by day (contract 14.7)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Dump qw(dump_of);
use CrmTest::Mcp;
use CrmTest::Proxy;
use CrmTest::Receiver;
use CrmTest::Session;

my $EVENTS = "/crmapi/intake/v1/events";
my $json = JSON::PP->new->utf8->canonical;
my $database = database();
# one process or several, whoever counts
my $conf = "CrmApiReadLimit 20\nCrmApiWriteLimit 30\nCrmApiIntake On\n"
    . "CrmApiMcp On\nCrmApiUsageInterval ";
my $httpd = httpd(database => $database, children => 3,
    conf => $conf . "3600\n");
my $w = workspace($httpd, twin => 0);
my $other = workspace($httpd, twin => 0);
my $idle = workspace($httpd, twin => 0);
my @COLUMNS = qw(requests limited messages_in messages_out webhooks);

# The rows of W, as crmapictl shows them, with OPTIONS.
sub rows {
    my ($w, @options) = @_;
    return @{crmapictl_json($database, "usage", $w->id, @options)};
}

# The sums of all days: the test may run at midnight.
sub sums {
    my ($w) = @_;
    my @rows = rows($w);
    my %sum;
    for my $column (@COLUMNS) {
        $sum{$column} += $_->{$column} for @rows;
    }
    return \%sum;
}

# What is in the table for W: requests and limited.
sub stored {
    my ($w) = @_;
    return join " ", map { @$_ } sql($database, "SELECT coalesce(sum(requests),
        0), coalesce(sum(limited), 0) FROM crmapi.usage WHERE workspace_id = '"
        . $w->id . "'");
}

sub token {
    my ($w) = @_;
    return $w->token("t");
}

my $events = 0;
sub event {
    my ($w, %members) = @_;
    $events++;
    return { event_id => "e-$events", channel => "sms", bot_id => $w->agent,
        from => { phone_number => "+49301234$events" },
        message => { content => "Hello" }, %members };
}

# Send requests of W by its key, ASKED reads of them, and two by TOKEN; returns how
# many there were, and how many were answered 429.
sub mix {
    my ($w, $token, $asked) = @_;
    my ($n, $limited) = (0, 0);
    my $count = sub {
        $n++;
        $limited += $_[0]->status == 429;
        return $_[0]->status;
    };
    my $c = $w->client;
    my $intake = $httpd->client(key => $token);

    is($count->($c->get("/api/v1/contacts/" . uuid())), 404, "a 404");
    is($count->($c->get("/api/v1/nothing")), 404, "a path that is none");
    is($count->($c->get("/api/v1/contacts?page=x")), 422, "a 422");
    is($count->($c->request("PUT", "/api/v1/contacts")), 405, "a 405");
    is($count->($c->post("/api/v1/contacts", { bot_id => $w->agent })), 201,
        "a 201");
    is($count->(CrmTest::Mcp->new($c)->call("tools/call", { name =>
        "contacts_list", arguments => {} })), 200, "MCP: one request");
    is($count->($intake->post($EVENTS, [event($w), event($w)])), 200,
        "intake");
    is($count->($intake->post($EVENTS, "nonsense")), 422, "intake refuses");
    $count->($c->get("/api/v1/contacts")) for 1 .. $asked;
    # a request is counted before the next answer of its connection
    is($_->get("/nothing")->status, 404, "not counted") for $c, $intake;
    return ($n, $limited);
}

my ($n, $limited) = mix($w, token($w), 30);
my ($n2, $limited2) = mix($other, token($other), 3);

subtest "nobody's requests are nobody's" => sub {
    is($httpd->client(key => $w->key . "x")->get("/api/v1/contacts")->status,
        401, "an unknown key");
    is($httpd->client->get("/api/v1/openapi.json")->status, 200,
        "the document");
};

subtest "requests are not written while they are served" => sub {
    cmp_ok($limited, ">", 5, "some were refused");
    is($limited2, 0, "none of the other workspace's");
    is(stored($_), "0 0", "nothing yet") for $w, $other;
};

subtest "a process that is killed loses none" => sub {
    my $c = $other->client;
    is($c->get("/api/v1/contacts")->status, 200, "a request");
    is($c->get("/nothing")->status, 404, "which is counted now");
    $n2++;
    my @before = $httpd->children;
    $httpd->may_log(qr/AH1039[23]: children are killed successively/);
    kill "KILL", @before;       # a signal that leaves no core
    ok(wait_for(sub { my %now = map { $_ => 1 } $httpd->children;
        return %now && !grep { $now{$_} } @before }, 60), "all are replaced");
};

subtest "a graceful stop writes all: the numbers are exact" => sub {
    $httpd->stop("WINCH");
    is(stored($w), "$n $limited", "of a workspace");
    is(stored($other), "$n2 0", "of another one");
    is(stored($idle), "0 0", "of one that did nothing");
    is(sums($w)->{requests}, $n, "crmapictl: requests");
    is(sums($w)->{limited}, $limited, "crmapictl: limited");
};

subtest "written while httpd runs, too, and added" => sub {
    $httpd = httpd(database => $database, children => 3,
        conf => $conf . "1\n");
    $_->{port} = $httpd->port for $w, $other, $idle;
    $other->client->get("/api/v1/contacts") for 1 .. 4;
    ok(wait_for(sub { stored($other) eq $n2 + 4 . " 0" }, 60), "by itself");
    is(stored($w), "$n $limited", "only where something happened");
};

subtest "a graceful restart loses none" => sub {
    $other->client->get("/api/v1/contacts") for 1 .. 2;
    $httpd->restart;
    $other->client->get("/api/v1/contacts") for 1 .. 2;
    ok(wait_for(sub { stored($other) eq $n2 + 8 . " 0" }, 60), "all are there")
        or diag(stored($other));
};

subtest "while the database is away, counts are kept" => sub {
    sql($database, "BEGIN; ALTER FUNCTION crmapi.usage_add(uuid, integer, bigint,
        bigint) RENAME TO usage_away; COMMIT");
    $other->client->get("/api/v1/contacts") for 1 .. 3;
    ok($httpd->wait_log(qr/CRM1109/, 60), "httpd says so");
    is(stored($other), $n2 + 8 . " 0", "nothing was written");
    sql($database, "ALTER FUNCTION crmapi.usage_away(uuid, integer, bigint,
        bigint) RENAME TO usage_add");
    ok(wait_for(sub { stored($other) eq $n2 + 11 . " 0" }, 60), "then all is")
        or diag(stored($other));
};

subtest "what may have been written is not written again" => sub {
    $httpd->stop("WINCH");
    my $proxy = CrmTest::Proxy->new;
    my $before = (split " ", stored($other))[0];
    $httpd = httpd(database => $database, children => 3, conf => $conf . "1\n",
        conninfo => $proxy->conninfo($database, $CrmTest::Postgres::API));
    $_->{port} = $httpd->port for $w, $other, $idle;
    my $let_go = holding($database, "LOCK TABLE crmapi.usage IN EXCLUSIVE MODE");
    $other->client->get("/api/v1/contacts") for 1 .. 3;
    wait_blocked($database, 1, "query LIKE '%usage_add%'");
    $proxy->swallow(1);
    $let_go->();
    ok($httpd->wait_log(qr/CRM1109: .* may be missing in crmapictl usage/, 60),
        "nobody knows");
    $proxy->swallow(0);
    $httpd->stop("WINCH");
    is(stored($other), $before + 3 . " 0", "they were: once");
    $httpd = httpd(database => $database, children => 3, conf => $conf . "1\n");
    $_->{port} = $httpd->port for $w, $other, $idle;
};

subtest "messages in and out, and webhooks" => sub {
    my $receiver = CrmTest::Receiver->new;
    my $worker = worker(database => $database, no_start => 1,
        conf => { webhook_private => "on", webhook_timeout => "10s" });
    for my $path ("taken/200", "refused/500") {
        $w->webhook($receiver->url($path), "message.created");
    }
    my $token = token($w);
    my ($in, $out) = @{sums($w)}{qw(messages_in messages_out)};
    is("$in $out", "2 0", "two came by intake before");
    my $intake = $httpd->client(key => $token);
    my $answer = event($w, message => { role => "assistant",
        content => "We are here" });
    $answer->{to} = delete $answer->{from};
    my $r = $intake->post($EVENTS, [event($w), $answer, event($w)]);
    is_deeply([$r->status, $r->data->{errors}], [200, []], "three messages")
        or diag($r->text);
    $worker->once;
    my $sum = sums($w);
    is($sum->{messages_in}, 4, "in");
    is($sum->{messages_out}, 1, "out");
    is($sum->{webhooks}, 3, "what an endpoint has taken, not what it refused");
    is(sums($other)->{messages_in}, 2, "of another workspace: its own");
    is(sums($idle)->{$_}, 0, "$_ of one that did nothing") for @COLUMNS;
};

subtest "storage" => sub {
    my ($today) = reverse rows($w);
    my $others = (reverse rows($other))[0]{storage};
    ok(defined $today->{storage}, "there is a number today");
    my $message = sql($database, "SELECT id FROM crmapi.message
        WHERE workspace_id = '" . $w->id . "' LIMIT 1");
    sql($database, "INSERT INTO crmapi.attachment (workspace_id, id, message_id,
        number, size, stored) VALUES ('" . $w->id . "', gen_random_uuid(),
        '$message', 1, 5000000, true), ('" . $w->id . "', gen_random_uuid(),
        '$message', 2, 7000000, false)");
    my ($then) = reverse rows($w);
    is($then->{storage} - $today->{storage}, 5_000_000,
        "with the files that are kept");
    # text that PostgreSQL cannot make much shorter
    my $long = join "", map { sprintf "%08x", rand 2 ** 32 } 1 .. 400;
    my ($form) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "F" }]);
    my $in = "WHERE workspace_id = '" . $w->id . "' AND id = '$message'";
    my $into = "VALUES ('" . $w->id . "', '$message'";
    for my $case (
        ["originals", "INSERT INTO crmapi.original $into, 1, now(), '$long')"],
        ["HTML", "INSERT INTO crmapi.message_html $into, '$long')"],
        ["texts", "UPDATE crmapi.message SET content = '$long' $in"],
        ["metadata", "UPDATE crmapi.message SET metadata ="
            . " jsonb_build_object('m', '$long') $in"],
        map { ["rows: $_->{object}", $_] }
            { object => "contact", bot_id => $w->agent, notes => $long },
            { object => "company", bot_id => $w->agent, name => "C",
                notes => $long },
            { object => "submission", form_id => $form,
                custom_field_responses => { x => $long } },
    ) {
        my ($name, $does) = @$case;
        my $before = (reverse rows($w))[0]{storage};
        ref $does ? $w->import_objects([$does]) : sql($database, $does);
        cmp_ok((reverse rows($w))[0]{storage}, ">", $before + 1500,
            "with $name");
    }
    my ($contact) = $w->import_objects([{ object => "contact",
        bot_id => $w->agent }]);
    my $before = (reverse rows($w))[0]{storage};
    $w->import_objects([{ object => "activity", contact_id => $contact,
        activity_type => "note", title => "T", description => $long }]);
    cmp_ok((reverse rows($w))[0]{storage}, ">", $before + 1500,
        "with rows: activity");
    is((reverse rows($other))[0]{storage}, $others, "of another workspace: its own");
};

# A workspace that began DAYS ago, with a conversation, and its id.
sub began {
    my ($days) = @_;
    my $w = workspace($httpd, twin => 0);
    my $talk = $w->conversation("email");
    sql($database, "UPDATE crmapi.workspace SET created_at = now() - $days"
        . " * interval '1 day' WHERE id = '" . $w->id . "'");
    return ($w, $talk);
}

# The time TIME of the day DAYS ago, as SQL.
sub at {
    my ($days, $time) = @_;
    return "(((now() AT TIME ZONE 'UTC')::date - $days) + time '$time')"
        . " AT TIME ZONE 'UTC'";
}

# The rows of W that have something in COLUMNS: how long ago the day was, and these.
sub days_of {
    my ($w, @columns) = @_;
    my %ago = map { $_->[0] => $_->[1] } sql($database, "SELECT
        (now() AT TIME ZONE 'UTC')::date - n, n FROM generate_series(0, 50) n");
    return [grep { /: .*[1-9]/ } map { my $row = $_; "$ago{$row->{day}}: "
        . join " ", map { $_ // "-" } @$row{@columns} }
        rows($w, "--from", "2001-01-01")];
}

subtest "a day has what happened on it: by everybody, from midnight to midnight" => sub {
    my ($w, $talk) = began(40);
    my ($id, $n) = ($w->id, 0);
    my $endpoint = uuid();
    sql($database, "INSERT INTO crmapi.webhook_endpoint (workspace_id, id, url,
        events, key) VALUES ('$id', '$endpoint', 'https://x.example/',
        '{contact.created}', crmapi.webhook_key())");
    for my $one (map({ [$_, "00:00"] } 32, 31, 5, 3, 2), [3, "12:00"],
            map { [$_, "23:59:59.999"] } 3, 2) {
        for my $role (qw(user assistant human tool)) {
            sql($database, "INSERT INTO crmapi.message (workspace_id, id,
                conversation_id, role, created_at) VALUES ('$id',
                gen_random_uuid(), '$talk', '$role', " . at(@$one) . ")");
        }
        $n++;
        sql($database, "INSERT INTO crmapi.event (workspace_id, id, type)
            SELECT '$id', md5('$n')::uuid, 'contact.created';
            INSERT INTO crmapi.webhook_delivery (workspace_id, id, event_id,
                endpoint_id, job_id, status, next_at, created_at, finished_at)
            SELECT '$id', gen_random_uuid(), md5('$n')::uuid, '$endpoint', 1, s,
                NULL, at - interval '1 day', at
            FROM (SELECT " . at(@$one) . " AS at) t,
                unnest(ARRAY['delivered', 'failed', 'cancelled']) s");
    }
    # requests are counted on a day before all else is
    sql($database, "INSERT INTO crmapi.usage (workspace_id, day, requests)
        VALUES ('$id', (now() AT TIME ZONE 'UTC')::date, 1)");
    my $all = ["31: 1 2 1", "5: 1 2 1", "3: 3 6 3", "2: 2 4 2"];
    my @of = qw(messages_in messages_out webhooks);
    is_deeply(days_of($w, @of), $all, "counted when it is asked for");
    is(sql($database, "SET TimeZone TO 'Pacific/Kiritimati'; SELECT messages_in FROM
        crmapi.usage_count('$id', (now() AT TIME ZONE 'UTC')::date - 2)"), 2,
        "of UTC, whatever the session's zone");
    is_deeply([grep { !defined $_->{requests} || !defined $_->{limited} }
        rows($w, "--from", "2001-01-01")], [], "no request is 0");
    my $measure = sub { sql($database, "SELECT crmapi.usage_measure('$id',
        $_[0])") };
    is($measure->("NULL"), "t", "measured");
    is_deeply(days_of($w, @of), $all, "the same");
    is($measure->("NULL"), "f", "once a day");
    sql($database, "DELETE FROM crmapi.message WHERE workspace_id = '$id';
        DELETE FROM crmapi.event WHERE workspace_id = '$id';
        UPDATE crmapi.usage SET storage = NULL WHERE workspace_id = '$id'");
    is($measure->("NULL"), "t", "again, after all was deleted");
    is_deeply(days_of($w, @of), $all, "it stays counted");
    is($measure->("now() + interval '1 day'"), "t", "and on the next day");
    is(sql($database, "SELECT count(storage) FROM crmapi.usage"
        . " WHERE workspace_id = '$id'"), 2, "what both days kept is there");
    sql($database, "INSERT INTO crmapi.message (workspace_id, id, conversation_id,
        role) VALUES ('$id', gen_random_uuid(), '$talk', 'user')");
    is_deeply(days_of($w, @of), [@$all, "0: 1 0 0"], "of today all is counted, though"
        . " tomorrow was measured");
};

subtest "each workspace is measured: one that has requests today, and behind one that fails" => sub {
    my (undef, $busy) = map { (began(1))[0] } 1 .. 2;
    my $worker = worker(database => $database, no_start => 1,
        expect_log => [qr/CRM3203: upkeep of usage: .*no row of it/]);
    sql($database, "INSERT INTO crmapi.usage (workspace_id, day, requests)
        VALUES ('" . $busy->id . "', (now() AT TIME ZONE 'UTC')::date, 1);
        CREATE FUNCTION public.no_row() RETURNS trigger LANGUAGE plpgsql AS
            \$\$BEGIN RAISE 'no row of it'; END\$\$;
        CREATE TRIGGER no_row BEFORE INSERT ON crmapi.usage FOR EACH ROW
            WHEN (NEW.workspace_id = '" . sql($database, "SELECT id FROM
                crmapi.usage_due(NULL) id ORDER BY id LIMIT 1") . "')
            EXECUTE FUNCTION public.no_row();
        DELETE FROM crmapi.upkeep");
    $worker->once;
    is(scalar(() = sql($database, "SELECT crmapi.usage_due(NULL)")), 1,
        "only that one is still to be measured");
    is(sql($database, "SELECT count(storage) FROM crmapi.usage WHERE requests = 1
        AND workspace_id = '" . $busy->id . "'"), 1, "the busy one was");
    sql($database, "DROP TRIGGER no_row ON crmapi.usage; DELETE FROM crmapi.upkeep");
};

subtest "once a day the worker measures: what is deleted stays counted" => sub {
    my $sum = sums($w);
    my $kept = (reverse rows($w))[0]{storage};
    my $worker = worker(database => $database, no_start => 1);
    my $tomorrow = sql($database, "SELECT to_char((now() + interval '1 day')
        AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
    $worker->once($tomorrow);
    is(sql($database, "SELECT count(*) FROM crmapi.usage WHERE storage IS NOT NULL
        AND day = ('$tomorrow'::timestamptz AT TIME ZONE 'UTC')::date"),
        sql($database, "SELECT count(*) FROM crmapi.workspace"),
        "each workspace has a row of the day");
    sql($database, "DELETE FROM crmapi.message WHERE workspace_id = '" . $w->id
        . "'; DELETE FROM crmapi.event WHERE workspace_id = '" . $w->id . "'");
    is_deeply(sums($w), $sum, "the numbers are what they were");
    cmp_ok((reverse rows($w))[0]{storage}, "<", $kept, "storage is less");
};

subtest "days: from, to, and what is no day" => sub {
    my $id = $w->id;
    sql($database, "INSERT INTO crmapi.usage (workspace_id, day, requests)
        SELECT '$id', (now() AT TIME ZONE 'UTC')::date - n, n
        FROM generate_series(2, 50) n");
    my $day = sub { scalar sql($database,
        "SELECT (now() AT TIME ZONE 'UTC')::date - $_[0]") };
    my ($five, $seven) = ($day->(5), $day->(7));
    is_deeply([map { "$_->{day} $_->{requests}" } rows($w, "--from", $seven,
        "--to", $five)], ["$seven 7", $day->(6) . " 6", "$five 5"],
        "those days, in their order");
    is(scalar(() = rows($w)), 31, "31 days without them");
    is(scalar(() = rows($w, "--from", "2001-01-01")), scalar(() = rows($w,
        "--from", $day->(50))), "none before it began");
    is((rows($other, "--from", "2001-01-01"))[0]{day}, sql($database, "SELECT
        (created_at AT TIME ZONE 'UTC')::date FROM crmapi.workspace
        WHERE id = '" . $other->id . "'"), "nor before another workspace did");
    is(scalar(() = rows($w, "--from", $day->(0), "--to", "2999-01-01")), 1,
        "none after today");
    is((rows($w, "--from", $five, "--to", $five))[0]{storage}, undef,
        "what was not measured is null");
    for my $wrong ("2027-02-30", "yesterday", "2027-01-31T10:00:00Z") {
        my ($code, undef, $err) = crmapictl($database, "usage", $id, "--from",
            $wrong);
        is($code, 2, "$wrong is refused");
        like($err, qr/--from must be a date/, "with a reason");
    }
    like(crmapictl_ok($database, "usage", $id, "--from", $five, "--to", $five),
        qr/^day\trequests\t.*\n\Q$five\E\t5\t0\t-\t-\t-\t-\n?\z/, "as text");
};

subtest "one workspace, which there is" => sub {
    my ($code, undef, $err) = crmapictl($database, "usage", uuid());
    is($code, 1, "another one is an error");
    like($err, qr/workspace/, "that says so");
    ($code) = crmapictl($database, "usage");
    is($code, 2, "it has to be named");
};

subtest "what processes have counted is added" => sub {
    my ($requests, $limited) = split / /, stored($w);
    for my $n (1, 2) {
        sql($database, "SELECT crmapi.usage_add('" . $w->id . "', (now() AT TIME
            ZONE 'UTC')::date - date '1970-01-01', 5, 3)");
        is(stored($w), $requests + 5 * $n . " " . ($limited + 3 * $n), "to both");
    }
};

subtest "what a daemon may do" => sub {
    is_deeply([sql($database, "SELECT w.role, r.of
        FROM (VALUES ('crmapi_api'), ('crmapi_worker')) w(role)
        CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE',
            'TRUNCATE', 'REFERENCES', 'TRIGGER']) r(of)
        WHERE has_table_privilege(w.role, 'crmapi.usage', r.of)")], [],
        "nothing with the table");
    my %may = (usage_add => "crmapi_api", (map { $_ => "crmapi_worker" }
        qw(usage_due usage_measure)),
        usage_trim => "crmapi_worker");
    is_deeply({ map { $_->[0] => $_->[1] } sql($database, "SELECT p.proname,
        string_agg(w.role, ' ') FROM pg_proc p, unnest(ARRAY['crmapi_api',
            'crmapi_worker']) w(role)
        WHERE p.pronamespace = 'crmapi'::regnamespace AND p.proname ~ '^usage_'
          AND has_function_privilege(w.role, p.oid, 'EXECUTE')
        GROUP BY 1") }, \%may, "one function to add, three to measure and trim");
    sql($database, "BEGIN; SET LOCAL ROLE crmapi_worker;
        SELECT crmapi.usage_trim(now() + interval '1 year', 1000); COMMIT");
    is(sql($database, "SELECT count(*) FROM crmapi.usage WHERE workspace_id = '"
        . $w->id . "' AND day >= (now() AT TIME ZONE 'UTC')::date - 40
        AND day < (now() AT TIME ZONE 'UTC')::date - 1"), 39,
        "40 days stay, whatever it says");
};

subtest "old days go after keep_usage" => sub {
    sql($database, "INSERT INTO crmapi.usage (workspace_id, day, requests)
        SELECT '" . $w->id . "', (now() AT TIME ZONE 'UTC')::date - n, 1
        FROM unnest(ARRAY[99, 101, 102]) n");
    is(sql($database, "SELECT crmapi.usage_trim(now() - interval '100 days', 1)"), 1,
        "no more than a batch");
    my $worker = worker(database => $database, no_start => 1,
        conf => { keep_usage => "100d" });
    sql($database, "DELETE FROM crmapi.upkeep");  # it ran tomorrow
    $worker->once;
    is_deeply([map { $_->[0] } sql($database,
        "SELECT (now() AT TIME ZONE 'UTC')::date - day
        FROM crmapi.usage WHERE requests = 1 AND workspace_id = '" . $w->id
        . "'")], [99], "those before, and no others");
};

subtest "dumped, restored, exported and deleted with the workspace" => sub {
    my $rows = sub { join "\n", map { $_ // "" } map { @$_ } sql($database,
        "SELECT u.day, u.requests, u.limited, u.messages_in, u.messages_out,
            u.webhooks, u.storage FROM crmapi.usage u WHERE u.workspace_id =
            '$_[0]' ORDER BY u.day") };
    my $had = $rows->($w->id);
    like($had, qr/\d/, "there are rows");
    my $dump = dump_of($database, $w->id);
    my $copy = crmapictl_json($database, { stdin => $dump }, "workspace",
        "restore", "--as", "new");
    $copy = $copy->[0] if ref $copy eq "ARRAY";
    is($rows->($copy->{id}), $had, "restored");
    my @lines = map { $json->decode($_) } split /\n/, crmapictl_ok($database,
        "export", "--workspace", $w->id, "--object", "usage");
    is(scalar @lines, sql($database, "SELECT count(*) FROM crmapi.usage WHERE
        workspace_id = '" . $w->id . "'"), "exported");
    is_deeply([sort keys %{$lines[0]}], [sort qw(object day storage), @COLUMNS],
        "with its columns");
    crmapictl_ok($database, "workspace", "delete", $copy->{id}, "--yes");
    is($rows->($copy->{id}), "", "deleted");
};

subtest "requests of a workspace that is deleted meanwhile harm nobody's" => sub {
    my $had = stored($other);
    $idle->client->get("/api/v1/contacts");
    $idle->ctl("workspace", "delete", $idle->id, "--yes");
    $other->client->get("/api/v1/contacts");
    my ($n) = $had =~ /(\d+)/;
    ok(wait_for(sub { stored($other) eq $n + 1 . " 0" }, 60),
        "those of another one are written");
};

done_testing();
