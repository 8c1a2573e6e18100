# SPDX-License-Identifier: Apache-2.0
# 18-found.t: searches and filters by content with few and many matches: all
# rows, in the list's order, with the right total (contract 7.4, 7.8, 7.11),
# without reading rows of other workspaces
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
# what sites set that search texts: an index gives some of what it finds
sql("postgres", "ALTER ROLE $CrmTest::Postgres::API IN DATABASE $database"
    . " SET gin_fuzzy_search_limit = 20");
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0);
my $small = workspace($httpd, twin => 0);
my $rows = 4_400;

# Of the large workspace every contact has the tag "all", every second one
# "most" (more than are called few), every 110th "some"; names alike. The small
# workspace has two of the same.
for ([$w, $rows], [$small, 2]) {
    my ($id, $bot, $n) = ($_->[0]->id, $_->[0]->agent, $_->[1]);
    sql($database, <<"END");
INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, phone_numbers,
    tags, created_at)
SELECT gen_random_uuid(), '$id', '$bot',
    'Öçäll' || CASE WHEN n % 2 = 0 THEN ' Most' ELSE '' END
    || CASE WHEN n % 110 = 0 THEN ' Some' ELSE '' END
    || CASE WHEN n % 440 = 0 THEN ' q_x' ELSE '' END,
    jsonb_build_array(jsonb_build_object('phone_number',
        '+49 (30) ' || 10000 + n, 'is_primary', true)),
    array_remove(ARRAY['all', CASE WHEN n % 2 = 0 THEN 'most' END,
        CASE WHEN n % 110 = 0 THEN 'some' END], NULL),
    '2026-01-01'::timestamptz + n / 4 * interval '1 ms'
FROM generate_series(1, $n) n;
END
    sql($database, <<"END");
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type, created_at,
    last_message, last_message_at)
SELECT gen_random_uuid(), '$id', '$bot', 1,
    '2026-01-01'::timestamptz + n / 4 * interval '1 ms',
    'all' || CASE WHEN n % 2 = 0 THEN ' most' ELSE '' END,
    CASE WHEN n % 7 > 0 THEN
        '2026-02-01'::timestamptz + n % 100 * interval '1 ms' END
FROM generate_series(1, $n) n
END
}
sql($database, "ANALYZE");

# Pages of PATH with QUERY, the first ones, one in the middle and the last, are
# those of SQL, a condition and an order.
sub is_found {
    my ($path, $query, $sql, $name) = @_;
    my ($table) = $path =~ /(contact|conversation)/;
    my @want = map { $_->[0] } sql($database, "SELECT id FROM crmapi.$table
        WHERE workspace_id = '" . $w->id . "' AND $sql");
    my $last = int((@want + 69) / 70) || 1;
    my %seen;
    for my $page (grep { !$seen{$_}++ } 1, 2, int($last / 2) || 1, $last,
            $last + 1) {
        my $r = $w->client->get("/api/v1$path", query => { %$query,
            page => $page, page_size => 70 });
        status_is($r, 200, "$name, page $page") or return;
        is($r->json->{pagination}{total}, scalar @want,
            "$name: the total on page $page");
        my $from = ($page - 1) * 70;
        my $to = $from + 69 > $#want ? $#want : $from + 69;
        is_deeply($r->ids, [$from > $#want ? () : @want[$from .. $to]],
            "$name: page $page");
    }
}

my $newest = "ORDER BY created_at DESC, id DESC";
my %contacts = (
    # as many as there are, more than few, few, none
    "a tag of all" => [{ tags => "all" }, "true"],
    "a tag of half" => [{ tags => "most" }, "'most' = ANY (tags)"],
    "a tag of some" => [{ tags => "some" }, "'some' = ANY (tags)"],
    "a tag of nobody" => [{ tags => "none" }, "false"],
    "any of two tags" => [{ tags => "most,some" }, "tags && '{most,some}'"],
    "all of two tags" => [{ tags => "all,some", tags_match => "all" },
        "'some' = ANY (tags)"],
    "a word of all" => [{ search => "ÖÇÄLL" }, "true"],
    "a word of half" => [{ search => "most" }, "first_name LIKE '%Most%'"],
    "a word of some" => [{ search => "some" }, "first_name LIKE '%Some%'"],
    "a word of nobody" => [{ search => "nobody" }, "false"],
    "a letter" => [{ search => "m" }, "first_name ~* 'm'"],
    "two letters, one of them a wildcard" => [{ search => "Q_" },
        "first_name LIKE '%q\\_%'"],
    "two letters of nobody" => [{ search => "zz" }, "false"],
    "three characters that are no word" => [{ search => " q_" },
        "first_name LIKE '% q\\_%'"],
    "digits of all" => [{ search => "49-3" }, "true"],
    "digits of some" => [{ search => "30) 14" },
        "phone_digits LIKE '%3014%'"],
    "two digits" => [{ search => "77" }, "phone_digits LIKE '%77%'"],
    "a word and a tag" => [{ search => "most", tags => "some" },
        "'some' = ANY (tags)"],
    "a word and a bound" => [{ search => "most",
        created_after => "2026-01-01T00:00:00.500Z" },
        "first_name LIKE '%Most%' AND created_at >= '2026-01-01T00:00:00.5Z'"],
);
for my $name (sort keys %contacts) {
    my ($query, $condition) = @{$contacts{$name}};
    is_found("/contacts", $query, "$condition $newest", $name);
}
for my $text ("all", "most", "m") {
    my $condition = "last_message LIKE '%$text%'";
    is_found("/conversations", { search => $text }, "$condition $newest",
        "conversations with $text");
    is_found("/conversations", { search => $text, sort => "last_message_at",
        order => "asc" }, "$condition ORDER BY last_message_at NULLS LAST, id",
        "conversations with $text, earliest message first");
}

# What the API reads of the contacts: sequential scans, rows fetched, entries of
# the indexes for searches and tags.
sub have_read {
    my @row = sql($database, "SELECT s.seq_scan,
            s.seq_tup_read + s.idx_tup_fetch, (SELECT sum(i.idx_tup_read)
            FROM pg_stat_user_indexes i WHERE i.indexrelid IN
                ('crmapi.contact_find'::regclass,
                 'crmapi.contact_tags'::regclass))
        FROM pg_stat_user_tables s
        WHERE s.relid = 'crmapi.contact'::regclass");
    return @{$row[0]};
}

subtest "what is read for few" => sub {
    plan(skip_all => "the servers of Citus count") if CrmTest::Citus::wanted();
    postgres()->end_sessions($database);
    my @before = have_read();
    my @queries = ("search=m", "search=zz", "search=%2B4", "search=%20q_",
        "search=most", "tags=all", "tags=most,some", "search=nobody");
    for my $query (@queries) {
        status_is($small->client->get("/api/v1/contacts", query => $query), 200,
            $query) for 1 .. 10;
    }
    postgres()->end_sessions($database);
    my @after = have_read();
    is($after[0] - $before[0], 0, "no table is read from one end to the other");
    # seven contacts are found in all, and each list is asked for ten times
    cmp_ok($after[1] - $before[1], ">=", 10 * 7, "what is read is counted");
    cmp_ok($after[1] - $before[1], "<=", 10 * @queries * 10,
        "two contacts beside 4,400 others: a few rows are fetched");
    cmp_ok($after[2] - $before[2], "<=", 10 * @queries * 10,
        "and a few found in the index");
};

done_testing;
