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
# PostgreSQL uses emptied pages of an index again when no transaction of the server
# is older, in any database. So this file has a server of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
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
CREATE TABLE public.feeds AS SELECT array_agg(id) AS ids FROM crmapi.workspace;
CREATE PROCEDURE public.trim_until(old timestamptz, INOUT batches bigint)
LANGUAGE plpgsql AS \$\$
BEGIN
    WHILE crmapi.event_trim(old, $BATCH) > 0 LOOP
        batches := batches + 1;
        COMMIT;
    END LOOP;
END \$\$
END

# Write the events of DAY, as large as a contact's, and trim in batches what is too
# old by then; return the number of batches that found something.
sub live {
    my ($day) = @_;
    my $count = int $KEPT / $DAYS;
    return scalar sql($database, <<"END");
INSERT INTO crmapi.event (id, workspace_id, type, created_at, fields)
SELECT crmapi.event_id(nextval('crmapi.event_number')),
       f.ids[1 + n % $WORKSPACES], 'contact.updated',
       '2026-01-01'::timestamptz + interval '$day d' + n * interval '1 d' / $count,
       json_build_object('id', gen_random_uuid(), 'notes', repeat(md5(n::text), 25))
FROM generate_series(0, $count - 1) n, public.feeds f;
CALL public.trim_until('2026-01-01'::timestamptz
    + interval '@{[$day + 1 - $DAYS]} d', 0)
END
}

my (@full, @last);
for my $day (0 .. 3 * $DAYS - 1) {
    my $batches = live($day);
    # autovacuum does so when 2 % of the rows have gone
    sql($database, "VACUUM crmapi.event");
    next if $day != $DAYS && $day != 3 * $DAYS - 1;
    cmp_ok($batches, ">=", $KEPT / $DAYS / $BATCH, "what is too old goes in"
        . " batches: $batches");
    @last = @{(sql($database, "SELECT pg_table_size(t), pg_indexes_size(t),
        (SELECT count(*) FROM crmapi.event)
        FROM (SELECT 'crmapi.event'::regclass) x (t)"))[0]};
    @full = @last if $day == $DAYS;     # the first of which a day has gone
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
