# SPDX-License-Identifier: Apache-2.0
# 17-cursor-lists.t: a page by cursor of a list over the workspace reads the same
# number of rows anywhere in it, with each filter and order (contract 13.3, 20.1).
# $CRM_LISTS is the number of rows; with it the times are printed, too.
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use Time::HiRes qw(time);

my $ROWS = $ENV{CRM_LISTS} || 2_000;
my $PAGES = $ENV{CRM_LISTS} ? 20 : 2;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0, plan => "pro");
my $c = $w->client;
my ($id, $bot) = ($w->id, $w->agent);
my ($contact) = $w->import_objects([{ object => "contact", bot_id => $bot }]);
my $talk = $w->conversation("chat");
my ($form) = $w->import_objects([{ object => "form", bot_id => $bot,
    name => "F" }]);
my $template = $w->template;

# Half of all rows have what a filter asks for. Of these, none is before the
# middle of what is to be done: it was done long ago. Without triggers the
# rows are written in less time.
my $at = "'2026-01-01'::timestamptz + n / 4 * interval '1 ms'";
my $other = "'2026-01-01'::timestamptz + n::bigint * 7919 % $ROWS / 3 * interval '1 ms'";
for (my $from = 1; $from <= $ROWS; $from += 10_000) {
    my $last = $from + 9_999 < $ROWS ? $from + 9_999 : $ROWS;
    my $series = "generate_series($from, $last) n";
    sql($database, <<"END");
SET session_replication_role = replica;
INSERT INTO crmapi.activity (id, workspace_id, contact_id, activity_type,
    due_date, completed_at, created_at, updated_at)
SELECT gen_random_uuid(), '$id', '$contact', CASE WHEN n % 2 = 0 THEN 'task'
       ELSE 'note' END, CASE WHEN n % 3 > 0 THEN $other END,
       CASE WHEN n % 2 = 0 THEN $at END, $at, $other
FROM $series;
INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, created_at)
SELECT gen_random_uuid(), '$id', '$talk', CASE WHEN n % 2 = 0 THEN 'user' ELSE
       'human' END, $at FROM $series;
INSERT INTO crmapi.submission (id, workspace_id, form_id, contact_id,
    submitted_at)
SELECT gen_random_uuid(), '$id', '$form', CASE WHEN n % 2 = 0 THEN
       '$contact'::uuid END, $at FROM $series;
INSERT INTO crmapi.sequence (id, workspace_id, name, bot_id, template_id)
SELECT crmapi.event_bound(n), '$id', 'S', '$bot', '$template'
FROM $series;
INSERT INTO crmapi.enrollment (id, workspace_id, sequence_id, contact_id,
    template_id, contact_action, created_at, updated_at)
SELECT gen_random_uuid(), '$id', crmapi.event_bound(n), '$contact',
       '$template', 'created', $at, $other FROM $series
END
}
sql($database, "VACUUM ANALYZE crmapi.$_")
    for qw(activity message submission enrollment);

# What was read so far of TABLE.
sub read_so_far { postgres()->rows_read($database, @_) }

# The page of PATH that QUERY, a text, asks for. It is not held against the
# OpenAPI document: 43,000 pages would be, and the times would be the test's.
my $plain = CrmTest::Client->new(port => $httpd->port);
sub page {
    my ($path, $query) = @_;
    $plain->send_raw("GET $path?$query HTTP/1.1\r\nHost: localhost\r\n"
        . "Authorization: Bearer $c->{key}\r\n\r\n");
    return $plain->read_response("GET") // die "$path: no answer\n";
}

# Read COUNT pages of PATH from CURSOR on: (the next cursor, milliseconds).
sub pages {
    my ($path, $query, $cursor, $count) = @_;
    my @times;
    my $filters = join "", map { "$_=$query->{$_}&" } sort keys %$query;
    for (1 .. $count) {
        my $began = time;
        my $r = page($path, "${filters}page_size=100&cursor="
            . CrmTest::Client::escape($cursor));
        push @times, 1000 * (time - $began);
        $r->status == 200 && @{$r->data} == 100 or die "$path: " . $r->text;
        $cursor = $r->json->{pagination}{next_cursor} // die "$path: short\n";
    }
    return ($cursor, (sort { $a <=> $b } @times)[$#times / 2]);
}

my @lists = (
    ["activities", "activity"],
    ["activities", "activity", sort => "updated_at"],
    ["activities", "activity", sort => "due_date"],
    ["activities", "activity", sort => "due_date", order => "desc"],
    ["activities", "activity", activity_type => "task"],
    ["activities", "activity", contact_id => $contact],
    ["activities", "activity", completed => "false"],
    ["activities", "activity", completed => "false", sort => "due_date"],
    ["messages", "message"], ["messages", "message", role => "user"],
    ["messages", "message", conversation_id => $talk],
    ["submissions", "submission"],
    ["submissions", "submission", contact_id => $contact],
    ["sequences/enrollments", "enrollment"],
    ["sequences/enrollments", "enrollment", sort => "updated_at"],
    ["sequences/enrollments", "enrollment", status => "generating"],
    ["sequences/enrollments", "enrollment", template_id => $template],
);
for my $case (@lists) {
    my ($list, $table, %query) = @$case;
    my $path = "/api/v1/$list";
    subtest "GET $path @{[%query]}" => sub {
        my ($cursor, $quick, $deep_time);
        status_is($c->get($path, query => { %query, page_size => 100,
            cursor => "*" }), 200, "it is as the document says");
        my $begin = read_so_far($table);
        ($cursor, $quick) = pages($path, \%query, "*", $PAGES);
        my $first = read_so_far($table) - $begin;
        # past the half of the rows that match, which are half of all at least
        ($cursor) = pages($path, \%query, $cursor, $ROWS / 100 / 4);
        my $between = read_so_far($table);
        ($cursor, $deep_time) = pages($path, \%query, $cursor, $PAGES);
        my $deep = read_so_far($table) - $between;
        cmp_ok($first, ">=", 100 * $PAGES, "what is read is counted: $first");
        cmp_ok($deep, "<=", 1.1 * $first,
            "deep pages read no more than the first: $deep");
        cmp_ok($first, "<=", $PAGES * 102 * 2 * 1.1,
            "and these little more than they show");
        diag(sprintf "GET %s %s: first pages %.2f ms, deep %.2f ms",
            $path, "@{[%query]}", $quick, $deep_time) if $ENV{CRM_LISTS};
    };
}

$httpd->stop;
done_testing;
