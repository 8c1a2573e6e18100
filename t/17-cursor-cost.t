# SPDX-License-Identifier: Apache-2.0
# 17-cursor-cost.t: a page by cursor reads the same number of rows anywhere in a
# list (contract 13.3)
# plain build only
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0);
my $c = $w->client;
my ($id, $bot) = ($w->id, $w->agent);
my $rows = 6_000;

sql($database, <<"END");
INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, created_at,
    updated_at)
SELECT gen_random_uuid(), '$id', '$bot', CASE WHEN n % 2 = 0 THEN 'Anna' END,
       '2026-01-01'::timestamptz + n / 4 * interval '1 ms',
       '2026-01-01'::timestamptz + n * 7919 % $rows / 3 * interval '1 ms'
FROM generate_series(1, $rows) n;
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, assigned_to,
    unanswered, type, created_at, last_message_at)
SELECT gen_random_uuid(), '$id', '$bot', CASE WHEN n % 2 = 0 THEN 'ann' END,
       n % 3 = 0, 1,
       '2026-01-01'::timestamptz + n / 4 * interval '1 ms',
       CASE WHEN n % 2 > 0 THEN
           '2026-02-01'::timestamptz + n % 1000 * interval '1 ms' END
FROM generate_series(1, $rows) n;
ANALYZE crmapi.contact; ANALYZE crmapi.conversation
END

# The table of the times of each table.
my %beside = (contact => ["contact_change"], conversation => []);

# What was read so far of TABLE and its times.
sub read_so_far {
    my ($table) = @_;
    return postgres()->rows_read($database, $table, @{$beside{$table}});
}

# Read PAGES pages of PATH with QUERY from CURSOR on; return the next one.
sub pages {
    my ($path, $query, $cursor, $pages) = @_;
    for (1 .. $pages) {
        my $r = $c->get($path, query => { %$query, page_size => 100,
            cursor => $cursor });
        is(scalar @{$r->data}, 100, "a page") or diag($r->text);
        $cursor = $r->json->{pagination}{next_cursor};
    }
    return $cursor;
}

for my $case (["contacts", "contact"], ["contacts", "contact", bot_id => $bot],
        ["contacts", "contact", sort => "updated_at"],
        ["contacts", "contact", sort => "updated_at", order => "desc",
            updated_after => "2026-01-01T00:00:00.050Z"],
        ["contacts", "contact", search => "an"],
        ["contacts", "contact", search => "anna"],
        ["conversations", "conversation"],
        ["conversations", "conversation", assigned => "false"],
        ["conversations", "conversation", unanswered => "true"],
        ["conversations", "conversation", sort => "last_message_at"],
        ["conversations", "conversation", sort => "last_message_at",
            order => "asc"]) {
    my ($list, $table, %query) = @$case;
    my $path = "/api/v1/$list";
    subtest "GET $path @{[%query]}" => sub {
        my $begin = read_so_far($table);
        my $cursor = pages($path, \%query, "*", 5);
        my $first = read_so_far($table) - $begin;
        # past the half: where last_message_at is null
        $cursor = pages($path, \%query, $cursor, $query{unanswered} ? 9
            : $query{search} || $query{assigned} ? 20 : 45);
        my $between = read_so_far($table);
        pages($path, \%query, $cursor, 5);
        my $deep = read_so_far($table) - $between;
        cmp_ok($first, ">=", 500, "what is read is counted: $first");
        cmp_ok($deep, "<=", 1.1 * $first,
            "five deep pages read no more than the first five: $deep");
        # of a search, every other row matches; one with an index collects up
        # to 2,000 matches once. A time leads to its row
        cmp_ok($first, "<=", 5 * 102 * ($query{search} ? 3
                : ($query{sort} // "") eq "updated_at" ? 2 : 1)
            + (($query{search} // "") eq "anna" ? $rows : 0),
            "and these little more than they show");
    };
}

$httpd->stop;
done_testing;
