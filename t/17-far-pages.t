# SPDX-License-Identifier: Apache-2.0
# 17-far-pages.t: pages beyond the first thousand rows: read from the nearer end
# of an index, and still the same rows in the same order (contract 7.2, 7.10,
# 7.11)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0);
my $c = $w->client;
my ($id, $bot) = ($w->id, $w->agent);
my $rows = 2_430;

# Several rows to a millisecond: ids decide. Every seventh conversation has no
# message, every ninth is deleted.
sql($database, <<"END");
INSERT INTO crmapi.contact (id, workspace_id, bot_id, tags, created_at,
    updated_at)
SELECT gen_random_uuid(), '$id', '$bot',
       CASE WHEN n % 2 = 0 THEN '{even}'::text[] ELSE '{}' END,
       '2026-01-01'::timestamptz + n / 4 * interval '1 ms',
       '2026-01-01'::timestamptz + n * 17 % $rows / 3 * interval '1 ms'
FROM generate_series(1, $rows) n;
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type, created_at,
    last_message_at, deleted)
SELECT gen_random_uuid(), '$id', '$bot', 1,
       '2026-01-01'::timestamptz + n / 4 * interval '1 ms',
       CASE WHEN n % 7 > 0 THEN
           '2026-02-01'::timestamptz + n % 100 * interval '1 ms' END,
       CASE WHEN n % 9 = 0 THEN true END
FROM generate_series(1, $rows) n
END

# The ids of all pages of PATH with QUERY are those of SQL, in its order.
sub pages_are {
    my ($path, $query, $sql, $name) = @_;
    my @want = map { $_->[0] } sql($database, $sql);
    my @seen;
    cmp_ok(scalar @want, ">", 1_000, "$name: more than a thousand");
    for (my $page = 1; @seen < @want; $page++) {
        my $r = $c->get("/api/v1$path", query => { %$query, page => $page,
            page_size => 90 });
        status_is($r, 200, "$name, page $page") or return;
        is($r->json->{pagination}{total}, scalar @want,
            "$name: the total on page $page");
        last unless @{$r->data};
        push @seen, @{$r->ids};
    }
    is_deeply(\@seen, \@want, "$name: all rows, in order");
    my $r = $c->get("/api/v1$path", query => { %$query, page_size => 90,
        page => int(@want / 90) + 2 });
    is_deeply($r->data, [], "$name: nothing past the end");
}

my $contacts = "SELECT id FROM crmapi.contact WHERE workspace_id = '$id'";
my $talks = "SELECT id FROM crmapi.conversation WHERE workspace_id = '$id'";
my $there = "$talks AND deleted IS NOT TRUE";
pages_are("/contacts", {}, "$contacts ORDER BY created_at DESC, id DESC",
    "contacts");
pages_are("/contacts", { tags => "even" }, "$contacts AND tags = '{even}'"
    . " ORDER BY created_at DESC, id DESC", "contacts with a tag");
for my $order ("asc", "desc") {
    my %by = (sort => "updated_at", order => $order);
    my $sorted = "ORDER BY updated_at $order, id $order";
    pages_are("/contacts", \%by, "$contacts $sorted", "by their times, $order");
    pages_are("/contacts", { %by, tags => "even" },
        "$contacts AND tags = '{even}' $sorted", "with a tag, $order");
    pages_are("/contacts", { %by, updated_after => "2026-01-01T00:00:00.100Z" },
        "$contacts AND updated_at >= '2026-01-01 00:00:00.1+00' $sorted",
        "since a time, $order");
}
pages_are("/conversations", { order => "asc" },
    "$there ORDER BY created_at, id", "conversations, oldest first");
pages_are("/conversations", { sort => "last_message_at" },
    "$there ORDER BY last_message_at DESC NULLS LAST, id DESC",
    "conversations, latest message first");
pages_are("/conversations", { sort => "last_message_at", order => "asc",
    include_deleted => "true" },
    "$talks ORDER BY last_message_at NULLS LAST, id",
    "all conversations, earliest message first");

# A workspace that grew since the planner last looked: it takes it for one of a
# row or two. What a page reads must not be that times something.
subtest "what far pages of a workspace that grew read" => sub {
    plan(skip_all => "the servers of Citus count") if CrmTest::Citus::wanted();
    my $new = workspace($httpd, twin => 0);
    my ($new_id, $new_bot) = ($new->id, $new->agent);
    my $read = sub {
        postgres()->end_sessions($database);
        return scalar sql($database, "SELECT sum(idx_tup_read)
            FROM pg_stat_user_indexes
            WHERE relid = 'crmapi.contact'::regclass");
    };
    # The primary key keeps the pages of those that are gone: to the planner it
    # is a worse way to a row than an index of the workspace's times.
    sql($database, "ALTER TABLE crmapi.contact SET (autovacuum_enabled = false);
        INSERT INTO crmapi.contact (id, workspace_id, bot_id)
        SELECT gen_random_uuid(), '$id', '$bot' FROM generate_series(1, 6000);
        DELETE FROM crmapi.contact WHERE workspace_id = '$id'");
    # as it was: forty workspaces with a contact each
    sql($database, <<"END");
INSERT INTO crmapi.workspace (id, name, slug)
SELECT gen_random_uuid(), 'one', 'one-' || n FROM generate_series(1, 40) n;
INSERT INTO crmapi.agent (id, workspace_id, name, slug)
SELECT id, id, 'one', 'one' FROM crmapi.workspace WHERE name = 'one';
INSERT INTO crmapi.contact (id, workspace_id, bot_id)
SELECT id, id, id FROM crmapi.workspace WHERE name = 'one'
END
    sql($database, "VACUUM ANALYZE crmapi.contact");
    sql($database, "INSERT INTO crmapi.contact (id, workspace_id, bot_id)
        SELECT gen_random_uuid(), '$new_id', '$new_bot'
        FROM generate_series(1, 3000)");
    my $before = $read->();
    for my $page (11, 16, 30) {
        my $r = $new->client->get("/api/v1/contacts", query =>
            { page => $page, page_size => 100 });
        is(scalar @{$r->data}, 100, "a workspace that grew: page $page");
    }
    my $rows = $read->() - $before;
    cmp_ok($rows, ">=", 3 * 100, "what is read is counted");
    cmp_ok($rows, "<=", 3 * 3000 * 2, "three far pages read each row once or"
        . " twice");
};

done_testing;
