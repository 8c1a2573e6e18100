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
my $httpd = httpd(database => $database, conf => "CrmApiReadLimit 0\n");
my $w = workspace($httpd, twin => 0);
my $c = $w->client;
my ($id, $bot) = ($w->id, $w->agent);
my $rows = 2_430;

# Several rows to a millisecond: ids decide. Every seventh conversation has no
# message, every ninth is deleted.
sql($database, <<"END");
INSERT INTO crmapi.contact (id, workspace_id, bot_id, tags, created_at)
SELECT gen_random_uuid(), '$id', '$bot',
       CASE WHEN n % 2 = 0 THEN '{even}'::text[] ELSE '{}' END,
       '2026-01-01'::timestamptz + n / 4 * interval '1 ms'
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
pages_are("/conversations", { order => "asc" },
    "$there ORDER BY created_at, id", "conversations, oldest first");
pages_are("/conversations", { sort => "last_message_at" },
    "$there ORDER BY last_message_at DESC NULLS LAST, id DESC",
    "conversations, latest message first");
pages_are("/conversations", { sort => "last_message_at", order => "asc",
    include_deleted => "true" },
    "$talks ORDER BY last_message_at NULLS LAST, id",
    "all conversations, earliest message first");

done_testing;
