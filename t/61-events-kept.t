# SPDX-License-Identifier: Apache-2.0
# 61-events-kept.t: events that are kept for 30 days and trimmed in batches: after
# the first 30 days the table and its indexes grow no further (contract 13.4).
# $CRM_EVENTS is the number of events that are kept.
# plain build only
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $KEPT = $ENV{CRM_EVENTS} || 60_000;
my $DAYS = 30;
my $WORKSPACES = 20;
my $BATCH = 1000;               # as crmapid's upkeep
my $database = database();

sql($database, <<"END");
INSERT INTO crmapi.workspace (id, name, slug, plan)
SELECT gen_random_uuid(), 'W' || n, 'w' || n, 'pro'
FROM generate_series(1, $WORKSPACES) n;
SELECT crmapi.event_log(id, true) FROM crmapi.workspace;
CREATE TABLE public.feeds AS SELECT array_agg(id) AS ids FROM crmapi.workspace
END

# The events of DAY: rows of the size of a contact's event.
sub happen {
    my ($day) = @_;
    my $count = int $KEPT / $DAYS;
    sql($database, <<"END");
INSERT INTO crmapi.event (id, workspace_id, type, created_at, fields)
SELECT crmapi.event_id(nextval('crmapi.event_number')),
       f.ids[1 + n % $WORKSPACES], 'contact.updated',
       '2026-01-01'::timestamptz + interval '$day d' + n * interval '1 d' / $count,
       json_build_object('id', gen_random_uuid(), 'notes', repeat(md5(n::text), 25))
FROM generate_series(0, $count - 1) n, public.feeds f
END
}

# Trim what DAY has made too old, batch by batch; return how many batches it took.
sub trim {
    my ($day) = @_;
    my $batches = 1;
    $batches++ while sql($database, "SELECT crmapi.event_trim('2026-01-01'"
        . "::timestamptz + interval '@{[$day + 1 - $DAYS]} d', $BATCH)");
    return $batches;
}

# Bytes of the table, of its indexes, and the events that are there.
sub sizes {
    return (sql($database, "SELECT pg_table_size(t), pg_indexes_size(t),
        (SELECT count(*) FROM crmapi.event)
        FROM (SELECT 'crmapi.event'::regclass) x (t)"))[0];
}

my (@full, @last);
for my $day (0 .. 3 * $DAYS - 1) {
    happen($day);
    my $batches = trim($day);
    # autovacuum does so when 2 % of the rows have gone
    sql($database, "VACUUM crmapi.event");
    @full = @{sizes()} if $day == $DAYS;        # a day more than is kept
    @last = @{sizes()};
    cmp_ok($batches, ">", 1, "the day after the 30th is trimmed in batches")
        if $day == $DAYS;
}
my $mb = sub { sprintf "%.1f MB", $_[0] / 1e6 };
diag("after a month: table " . $mb->($full[0]) . ", indexes " . $mb->($full[1])
    . "; after three: " . $mb->($last[0]) . ", " . $mb->($last[1])
    . "; $last[2] events");
cmp_ok($last[2], ">=", int($KEPT / $DAYS) * $DAYS, "30 days are kept");
cmp_ok($last[2], "<=", $KEPT * 1.05, "and no more");
cmp_ok($last[0], "<=", 1.1 * $full[0], "two months later the table is as large");
cmp_ok($last[1], "<=", 1.25 * $full[1], "and so are its indexes");
is(sql($database, "SELECT count(*) FROM crmapi.event_feed f WHERE f.since =
    '00000000-0000-0000-0000-000000000000' OR EXISTS (SELECT FROM crmapi.event v
    WHERE v.workspace_id = f.workspace_id AND v.id <= f.since)"), 0,
    "each log begins where it was trimmed");

done_testing;
