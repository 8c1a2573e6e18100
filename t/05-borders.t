# SPDX-License-Identifier: Apache-2.0
# 05-borders.t: what functions of the database compute of a number's bits or modulo
# something, at its borders (contract 4.1, 9.1, 13.4)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Session;
use IO::Select;

my $database = database();
my $w = workspace($database, twin => 0);
$w->log_on;
my $id = $w->id;

# Numbers as they are in a database: small ones, those around the borders of what
# is computed of them, and those of the third server that Citus knows.
my $borders = "'{" . join(",", 100, map { my $border = $_; map {
    sprintf "%.0f", $border + $_ } -2 .. 2 } 4096, 2**28, 2**30, 2**31,
    3 * 2**30, 2**32, 2**40, 3 * 2**48 + 2**31) . "}'::bigint[]";
# Differences that 31 bits with a sign tell apart.
my $near = "'{" . join(",", 0, (map { ($_, -$_) } 1, 2, 31, 4095, 2**28,
    2**30 - 1), -2**30) . "}'::bigint[]";

sql($database, <<'END');
-- the number in the id of an event
CREATE FUNCTION public.number_of(id uuid) RETURNS bigint LANGUAGE sql
    RETURN ('x' || left(replace(id::text, '-', ''), 12)
        || substr(id::text, 16, 3))::bit(60)::bigint;
END

# SQL that defines public.held_end(n, low), the number in the id that END, an
# expression of n and workspace, is for W while a session has a lock with the last
# bits LOW of a ticket. FIRST are statements before it.
sub held_end {
    my ($end, $first) = @_;
    return <<"SQL";
CREATE OR REPLACE FUNCTION public.held_end(n bigint, low bigint) RETURNS bigint
LANGUAGE plpgsql AS \$\$
DECLARE
    workspace CONSTANT uuid := '$id';
    key CONSTANT integer := (low & 4294967295)::bit(32)::integer;
    told bigint;
BEGIN
    $first;
    PERFORM pg_advisory_lock_shared(uuid_hash(workspace), key);
    told := public.number_of($end);
    PERFORM pg_advisory_unlock_shared(uuid_hash(workspace), key);
    RETURN told;
END
\$\$
SQL
}

# A ticket D from N, for all borders and differences: the end is the lower.
my $wrong = "SELECT n, n + d, public.held_end(n, n + d & 2147483647)
    FROM unnest($borders) n, unnest($near) d
    WHERE n + d > 0 AND public.held_end(n, n + d & 2147483647)
        <> least(n, n + d) ORDER BY 1, 2";

subtest "a ticket's number, of which a lock has 31 bits" => sub {
    is_deeply([sql($database, "SELECT n, n + d, crmapi.event_ticket(n,
            n + d & 2147483647) FROM unnest($borders) n, unnest($near) d
        WHERE crmapi.event_ticket(n, n + d & 2147483647) <> n + d")], [],
        "2^30 below to 2^30 - 1 above");
    is_deeply([sql($database, "SELECT n, low FROM unnest($borders) n,
            unnest('{0,1,2147483647,2147483648,4294967295}'::bigint[]) low
        WHERE crmapi.event_ticket(n, low) NOT BETWEEN n - 1073741824
            AND n + 1073741823
           OR (crmapi.event_ticket(n, low) - low) & 2147483647 <> 0")], [],
        "none leads further, also if another program has it");
};

subtest "a number in the id of an event" => sub {
    is_deeply([sql($database, "SELECT n FROM (
            SELECT n FROM unnest($borders) n
            UNION VALUES (1), (1152921504606846975)) x
        WHERE crmapi.event_id(n) NOT BETWEEN crmapi.event_bound(n - 1)
            AND crmapi.event_bound(n)
           OR public.number_of(crmapi.event_id(n)) <> n
           OR public.number_of(crmapi.event_bound(n)) <> n")], [],
        "an id is above the bound of the number before, not above its own");
    is_deeply([sql($database, "SELECT n FROM unnest($borders) n
        WHERE crmapi.event_bound(-n) <> crmapi.event_bound(0)")], [],
        "below 0 there is none");
    is(sql($database, "SELECT seqmax FROM pg_sequence WHERE seqrelid =
        'crmapi.event_number'::regclass"), "1152921504606846975",
        "the sequence ends with 60 bits");
};

subtest "13.4 the end of the log is the lowest ticket, or the last number" => sub {
    sql($database, held_end("crmapi.event_end_at(workspace, n)", "NULL"));
    is_deeply([sql($database, $wrong)], [],
        "a ticket above, taken while a reader looks, changes nothing");
    is_deeply([sql($database, "SELECT n, low FROM unnest('{1,3,100}'::bigint[])
            n, unnest('{-1,-5,2147483647,-2147483648}'::bigint[]) low
        WHERE public.held_end(n, low) NOT BETWEEN 0 AND n")], [],
        "nor does a lock of another program");
    sql($database, held_end("crmapi.event_end(workspace)",
        "PERFORM setval('crmapi.event_number', n)"));
    is_deeply([sql($database, $wrong)], [], "asked as GET /events asks");
};

subtest "13.4 what is no ticket of the workspace holds nothing back" => sub {
    my $other = workspace($database, twin => 0)->id;
    my ($hash, $others) = map { scalar sql($database,
        "SELECT uuid_hash('$_')") } $id, $other;
    sql($database, "SELECT setval('crmapi.event_number', 100)");
    for (["one key instead of two", $database, "(${hash}::bigint << 32) + 99"],
            ["in another database", "postgres", "$hash, 99"],
            ["of another workspace", $database, "$others, 99"],
            ["a ticket", $database, "$hash, 99", 99]) {
        my ($name, $where, $key, $end) = @$_;
        my $done = holding($where, "SELECT pg_advisory_xact_lock_shared($key)");
        is(sql($database, "SELECT public.number_of(crmapi.event_end('$id'))"),
            $end || 100, $name);
        $done->();
    }
};

subtest "13.4, 16.4 and that of a server of Citus" => sub {
    my $citus = database();
    sql($citus, "INSERT INTO crmapi.workspace (id, name, slug, plan) VALUES
        ('$id', 'W', 'w', 'pro')");
    # without what only Citus knows
    postgres()->sql($citus, read_file("$CrmTest::TOP/schema/citus/"
        . "0007-events.sql") =~ s/\s+SET citus\.\w+ = on//gr,
        $CrmTest::Postgres::OWNER);
    sql($citus, "CREATE FUNCTION public.number_of(id uuid) RETURNS bigint"
        . " LANGUAGE sql RETURN crmapi.event_number_of(id)");
    my $home = "INSERT INTO crmapi.event_home VALUES (workspace, n >> 48,
        n >> 48 << 48) ON CONFLICT (workspace_id) DO UPDATE SET
        server = excluded.server, base = excluded.base";
    sql($citus, held_end("crmapi.event_end_at(workspace, n)", $home));
    is_deeply([sql($citus, $wrong)], [], "the same, with the server's number");
    sql($citus, held_end("crmapi.event_end(workspace)", "$home;
        PERFORM setval('crmapi.event_number', n)"));
    is_deeply([sql($citus, $wrong)], [], "asked as GET /events asks");
    # a workspace whose numbers were above those of its new server
    sql($citus, "SELECT setval('crmapi.event_number', 5 * (2::bigint ^ 48)::bigint
        + 1, false); INSERT INTO crmapi.event_feed VALUES ('$id', true, '{}',
        crmapi.event_id(4294967296))");
    is(sql($citus, "SELECT public.number_of(crmapi.event_end('$id'))"),
        2**32, "a workspace that has moved ends where it did");
    my ($first) = sql($citus, "SELECT crmapi.event_base('$id')
        + (nextval('crmapi.event_number') & 281474976710655)");
    is($first->[0], 2**32 + 1, "and goes on behind that");
};

subtest "13.4 numbers that are raised stay above what readers know" => sub {
    my $n = 1000;
    sql($database, "SELECT setval('crmapi.event_number', $n)");
    my $end = holding($database, "INSERT INTO crmapi.company (id,"
        . " workspace_id, bot_id, name) VALUES ('" . uuid() . "', '$id', '"
        . $w->agent . "', 'C')");
    my $ticket = $n + 1;
    my $told = sub { scalar sql($database, "SELECT public.number_of("
        . "crmapi.event_end('$id'))") };
    is($told->(), $ticket, "a ticket is open");
    my @raised;
    for my $upto (2**30, 2**31 + 7, 2**31 + 2**30, 2**32 + 5) {
        # each restore of a dump may do so
        push @raised, CrmTest::Child->start(sub {
            sql($database, "SELECT crmapi.sequence_raise("
                . "'crmapi.event_number', $upto)");
            return $upto;
        });
        ok(wait_for(sub {
            my $ended = grep { IO::Select->new($_->{out})->can_read(0) }
                @raised;
            $ended + sql($database, "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND query ~ 'sequence_raise'
                  AND wait_event IN ('PgSleep', 'advisory')") == @raised }, 60),
            "$upto: it waits, or is done");
        is($told->(), $ticket, "the end of the log stays at the ticket");
    }
    $end->("COMMIT");
    is_deeply([map { $_->result } @raised],
        [2**30, 2**31 + 7, 2**31 + 2**30, 2**32 + 5], "then they go on");
    cmp_ok(sql($database, "SELECT last_value FROM crmapi.event_number"), ">=",
        2**32 + 5, "as far as they shall");
};

subtest "9.1, 18.6 the time in an id is the order of messages" => sub {
    my @times = qw(0001-01-01T00:00:00Z 1582-10-15T00:00:00Z
        1969-12-31T23:59:59.999Z 1970-01-01T00:00:00Z
        1970-01-01T00:00:00.001Z 2026-11-25T00:00:00.999Z
        2026-11-25T00:00:01Z 9999-12-31T23:59:59.999Z 10889-08-02T05:31:50Z);
    my $times = join ", ", map { "'$_'::timestamptz" } @times;
    my @ids = sql($database, "SELECT crmapi.uuid_v7(t) FROM"
        . " unnest(ARRAY[$times]) WITH ORDINALITY x (t, n) ORDER BY n");
    is_deeply([map { $_->[0] } @ids], [sort map { $_->[0] } @ids],
        "from the first day of the calendar to the last of 48 bits");
    is(scalar(grep { $_->[0] !~ /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/ }
        @ids), 0, "each is of version 7");
    my @made = map { $_->[0] } sql($database, "SELECT crmapi.uuid_v7("
        . "'2026-01-01Z') FROM generate_series(1, 1000)");
    is_deeply([@made], [sort @made], "in one millisecond, as they were made");
};

subtest "a slot of 16" => sub {
    is_deeply([map { $_->[0] } sql($database, "SELECT setting FROM
        unnest(ARRAY['-1', '-2', '0', '15', '32767', '-32768']) setting
        WHERE set_config('crmapi.counter_slot', setting, true) IS NULL
           OR crmapi.counter_slot() <> setting::smallint")], [],
        "a setting is the slot");
    is(sql($database, "SELECT crmapi.counter_slot() BETWEEN 0 AND 15
        AND crmapi.counter_slot() = pg_backend_pid() % 16"), "t",
        "otherwise the process number says it");
};

# Run STATEMENTS, which change what a daemon knows, and undo them.
sub undone {
    return sql($database, "BEGIN; " . join("; ", @_) . "; ROLLBACK");
}

subtest "14.2 a mark has a number for each of 16 slots" => sub {
    my $known = "(SELECT array_agg(m.n + CASE m.slot WHEN s THEN d ELSE 0 END"
        . " ORDER BY m.slot) FROM crmapi.send_mark m)";
    is_deeply([undone("UPDATE crmapi.send_mark SET n = 100 + slot", "SELECT s, d
        FROM generate_series(0, 15) s, unnest('{-1,0,1}'::bigint[]) d
        WHERE crmapi.mark_behind($known) IS DISTINCT FROM (d > 0)")], [],
        "the database is older if one of them is lower than what is known");
    is(undone("SELECT crmapi.mark_behind(NULL)"), "f", "nothing is known yet");
    my $slots = "UPDATE crmapi.send_mark SET n = 50 + slot";
    is(undone($slots, "SELECT (crmapi.instance_look(NULL)).marks") =~ s/^\s+//r,
        "{" . join(",", 50 .. 65) . "}", "a daemon gets them in this order");
    for (["{50,51}", "f"], ["{50,52}", "t"]) {
        my ($mark, $refuses) = @$_;
        is(undone("SELECT crmapi.instance_look(NULL)", $slots,
            "SELECT crmapi.mark_refuses('$mark')") =~ s/^.*\n//rs, $refuses,
            "$mark is known: whether it may not send");
        is(eval { undone($slots, "SELECT crmapi.mark_next('$mark')"); "" }
            // $@ =~ /another one than what was sent from/, $refuses eq "t",
            "and no number is taken then");
    }
    is(undone("UPDATE crmapi.send_mark SET n = 2^40", "CREATE TEMP TABLE t AS"
        . " SELECT crmapi.mark_next(NULL) AS v", "SELECT string_agg((m.n = v / 16"
        . " AND m.slot = v % 16)::text, ' ') FROM crmapi.send_mark m, t"
        . " WHERE m.n <> 2^40"), "true", "the next one is that of a slot");
    is(undone("UPDATE crmapi.send_mark SET n = 50 + slot",
        "SELECT crmapi.instance_hold('first', '{40,52}')",
        "SELECT crmapi.instance_hold('second', NULL)",
        "SELECT held_reason || ' ' || (SELECT string_agg((n - slot)::text, ' '"
        . " ORDER BY slot) FROM crmapi.send_mark) FROM crmapi.instance")
        =~ s/^\s+//r, "first 50 51" . " 50" x 14, "a hold raises them, lowers none,"
        . " and keeps its reason");
};

subtest "14.2 where the database is: its cluster and its name there" => sub {
    my $look = "SELECT coalesce((crmapi.instance_look(NULL)).why, 'at home')";
    is(undone("$look || 1", "$look || 2") =~ s/\n/ /r, "at home1 at home2",
        "at home, as it was seen first");
    for ("system_id", "database_id") {
        my $other = $_ eq "system_id" ? "system_id + 1" : "(database_id::bigint + 1)::oid";
        like(scalar undone($look, "UPDATE crmapi.instance SET $_ = $other", $look),
            qr/^at home\n.*restored or copied from another/, "another $_");
        my @moved = ($look, "UPDATE crmapi.instance SET $_ = $other");
        my $refuses = "SELECT crmapi.mark_refuses(NULL)";
        like(scalar undone(@moved, $refuses), qr/\nt$/, "it may not send");
        like(scalar undone(@moved, "SELECT crmapi.instance_hold('x', NULL)",
            $refuses), qr/\nf$/, "a hold says so itself");
    }
};

done_testing;
