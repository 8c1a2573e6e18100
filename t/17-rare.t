# SPDX-License-Identifier: Apache-2.0
# 17-rare.t: a filter that no row matches reads few rows, in each order of the list,
# also where all rows have one value: who asks for what is new or rare, asks often
# (contract 7.4, 13.3)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $ROWS = 8_000;
# For a page by number and one by cursor: the rows among which a page is looked for in
# the list's order, each by its index and, for contacts, by that of the table beside;
# and the rest.
my $MOST = 2 * (2 * 1_000 + 60);
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0, plan => "pro");
my $c = $w->client;
my ($id, $bot) = ($w->id, $w->agent);
my ($contact, $form) = $w->import_objects([
    { object => "contact", bot_id => $bot },
    { object => "form", bot_id => $bot, name => "F" }]);
my $talk = $w->conversation("chat");
my $template = $w->template;
my ($stage) = $w->stages;

my $at = "'2026-01-01'::timestamptz + n * interval '1 ms'";
# what most rows have, and a hundred others one each
my $mostly = "CASE WHEN n % 80 = 0 THEN gen_random_uuid()::text ELSE ";
my $series = "generate_series(1, $ROWS) n";
sql($database, <<"END");
INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, lead_source,
    contact_type, company_id, created_at, updated_at)
SELECT gen_random_uuid(), '$id', '$bot', 'A', 'web', 'lead', NULL, $at, $at
FROM $series;
UPDATE crmapi.conversation SET assigned_to = 'bob';
SET session_replication_role = replica;
INSERT INTO crmapi.company (id, workspace_id, bot_id, name, industry, created_at,
    updated_at)
SELECT gen_random_uuid(), '$id', '$bot', 'A', 'IT', $at, $at FROM $series;
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, visitor_id,
    assigned_to, type, created_at, updated_at, last_message_at)
SELECT gen_random_uuid(), '$id', '$bot', '$contact', ${mostly}'v' END, 'bob', 1,
       $at, $at, $at FROM $series;
INSERT INTO crmapi.activity (id, workspace_id, contact_id, company_id,
    activity_type, due_date, created_at, updated_at)
SELECT gen_random_uuid(), '$id', (${mostly}'$contact' END)::uuid, '$contact', 'task',
       $at, $at, $at
FROM $series;
INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, created_at)
SELECT gen_random_uuid(), '$id', '$talk', 'user', $at FROM $series;
INSERT INTO crmapi.submission (id, workspace_id, form_id, contact_id, submitted_at)
SELECT gen_random_uuid(), '$id', '$form', '$contact', $at FROM $series;
INSERT INTO crmapi.sequence (id, workspace_id, name, bot_id, template_id)
SELECT crmapi.event_bound(n), '$id', 'S', '$bot', '$template' FROM $series;
INSERT INTO crmapi.enrollment (id, workspace_id, sequence_id, contact_id,
    template_id, contact_action, created_at, updated_at)
SELECT gen_random_uuid(), '$id', crmapi.event_bound(n), '$contact', '$template',
       'created', $at, $at FROM $series;
INSERT INTO crmapi.suppression (id, workspace_id, email, created_at, updated_at)
SELECT gen_random_uuid(), '$id', 'a' || n || '\@example.com', $at, $at FROM $series;
INSERT INTO crmapi.pipeline_card (id, workspace_id, pipeline_stage_id, contact_id,
    title, order_index, created_at, updated_at)
SELECT gen_random_uuid(), '$id', '$stage', '$contact', 'C', n, $at, $at FROM $series
END
my %table = (contacts => ["contact", "contact_change"], companies => ["company"],
    conversations => ["conversation"], activities => ["activity"],
    messages => ["message"], submissions => ["submission"],
    "sequences/enrollments" => ["enrollment"], suppressions => ["suppression"],
    "pipeline-cards" => ["pipeline_card"]);
sql($database, "VACUUM ANALYZE crmapi.$_") for map { @$_ } values %table;

# What no row has, by the filter's name. That of an enumeration is the last one.
my $nobody = "01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64";
my %rare = (map({ ($_ => "2030-01-01T00:00:00Z") } qw(created_after updated_after
        last_message_after due_after)),
    map({ ($_ => "2020-01-01T00:00:00Z") } qw(created_before updated_before
        last_message_before due_before)),
    map({ ($_ => $nobody) } qw(bot_id company_id contact_id pipeline_stage_id
        template_id conversation_id form_id)),
    map({ ($_ => "nothing") } qw(lead_source contact_type industry domain visitor_id
        assigned_to external_id)),
    map({ ($_ => "true") } qw(has_company unanswered)), assigned => "false",
    type => "sms", activity_type => "call", role => "human", status => "failed",
    email => "nobody\@example.com", phone => "+4930901820",
    phone_number => "+4930901820");
# These have no index of their own, or t/18-found.t and t/18-tags.t look at them.
my %other = map { ($_ => 1) } qw(page page_size cursor sort order ids include search
    tags tags_match active archived human_takeover include_deleted completed
    include_archived include_internal pipeline_id matched), "custom_fields.NAME";

my $document = $c->get("/api/v1/openapi.json")->json;
for my $list (sort keys %table) {
    my %parameter = parameters($list);
    ok(%parameter, "/$list has filters");
    is_deeply([grep { !$rare{$_} && !$other{$_} } sort keys %parameter], [],
        "each filter of /$list is looked at");
    look($list, %parameter);
}

# The same beside many small workspaces, of which each seems to have as many rows: a
# list of several tables may then begin with any.
sql($database, <<"END");
SET session_replication_role = replica;
INSERT INTO crmapi.pipeline_card (id, workspace_id, pipeline_stage_id, title,
    order_index)
SELECT gen_random_uuid(), w, w, 'C', n
FROM generate_series(1, 6000) n, LATERAL (SELECT md5((n % 3000)::text)::uuid AS w) o
END
sql($database, "VACUUM ANALYZE crmapi.pipeline_card");
look("pipeline-cards", parameters("pipeline-cards"));

# The parameters of LIST by their names.
sub parameters {
    my ($list) = @_;
    return map { ($_->{name} => $_) } grep { $_->{in} eq "query" }
        map { $_->{'$ref'} ? resolve($_->{'$ref'}) : $_ }
        @{$document->{paths}{"/api/v1/$list"}{get}{parameters}};
}

# Look at each filter of LIST, which are among PARAMETER, in each order.
sub look {
    my ($list, %parameter) = @_;
    my $sorts = $parameter{sort} ? $parameter{sort}{schema}{enum} : [undef];
    for my $filter (grep { $rare{$_} } sort keys %parameter) {
        for my $sort (@$sorts) {
            # a stage's cards are in their places, not in the order of a time
            next if $list eq "pipeline-cards" && $filter =~ /^(bot|pipeline_stage)_id/;
            looks_at_few($list, [$filter => $rare{$filter}, $sort
                ? (sort => $sort) : ()]);
        }
    }
}

# The parameter that REF of the document names.
sub resolve {
    my ($ref) = @_;
    my $found = $document;
    $found = $found->{$_} for split m{/}, $ref =~ s{^#/}{}r;
    return $found;
}

# Both kinds of pages of LIST by QUERY have no row, and few are read for them.
sub looks_at_few {
    my ($list, $query) = @_;
    my $before = postgres()->rows_read($database, @{$table{$list}});
    for my $page ([page_size => 25], [cursor => "*"]) {
        my $r = $c->get("/api/v1/$list", query => { @$query, @$page });
        is_deeply($r->json->{data}, [], "$list @$query @$page") or diag($r->text);
    }
    my $read = postgres()->rows_read($database, @{$table{$list}}) - $before;
    cmp_ok($read, "<=", $MOST, "$list @$query: few rows are read");
}

# What most rows have fills a page in the list's order. The planner takes it for as rare
# as the other values.
for (["activities", "contact_id=$contact", "due_date"],
        ["activities", "contact_id=$contact", "updated_at"],
        ["conversations", "visitor_id=v", "last_message_at"]) {
    my ($list, $filter, $sort) = @$_;
    my $before = postgres()->rows_read($database, @{$table{$list}});
    my $r = $c->get("/api/v1/$list?$filter&sort=$sort&cursor=*");
    my $read = postgres()->rows_read($database, @{$table{$list}}) - $before;
    is(scalar @{$r->data}, 25, "$list $filter sort $sort: a page");
    cmp_ok($read, "<=", 4 * 25, "$list $filter sort $sort: little more is read");
}

# ---- all that matches is found -------------------------------------------------

# Of the conversations 30 in the middle are Ann's, a third of all has no message, and
# the oldest 3,000 are of another type: too many to be collected.
sql($database, <<"END");
UPDATE crmapi.conversation c SET
    assigned_to = CASE WHEN n.n % 200 = 100 AND n.n BETWEEN 1000 AND 7000
        THEN 'ann' ELSE 'bob' END,
    last_message_at = CASE WHEN n.n % 3 > 0 THEN '2026-02-01'::timestamptz
        + n.n * 7919 % $ROWS * interval '1 ms' END,
    type = CASE WHEN n.n <= 3000 THEN 3 ELSE 1 END,
    updated_at = '2026-01-01'::timestamptz + n.n * 31 % $ROWS / 2 * interval '1 ms'
FROM (SELECT id, row_number() OVER (ORDER BY created_at, id) AS n
    FROM crmapi.conversation) n WHERE n.id = c.id;
UPDATE crmapi.contact c SET lead_source = 'rare' WHERE id IN (SELECT id FROM
    crmapi.contact ORDER BY md5(id::text) LIMIT 30)
END
my @found = (
    [contact => "lead_source=rare", "lead_source = 'rare'", "updated_at"],
    [conversation => "assigned_to=ann", "assigned_to = 'ann'", "last_message_at"],
    [conversation => "assigned_to=ann", "assigned_to = 'ann'", "updated_at"],
    [conversation => "assigned_to=ann&type=3", "assigned_to = 'ann' AND type = 3",
        "last_message_at"],
    [conversation => "updated_after=2026-01-01T00:00:03.980Z",
        "updated_at >= '2026-01-01 00:00:03.980Z'", "last_message_at"],
    [conversation => "updated_after=2026-01-01T00:00:03.980Z&updated_before="
        . "2026-01-01T00:00:03.990Z", "updated_at BETWEEN '2026-01-01 00:00:03.980Z'"
        . " AND '2026-01-01 00:00:03.990Z'", "created_at"],
    [conversation => "type=3", "type = 3", "last_message_at", 100],
    [conversation => "type=3&assigned_to=ann", "type = 3 AND assigned_to = 'ann'",
        "updated_at"],
);
for my $case (@found) {
    my ($table, $filter, $condition, $sort, $size) = @$case;
    for my $order ("asc", "desc") {
        my @all = map { $_->[0] } sql($database, "SELECT id FROM crmapi.$table
            WHERE workspace_id = '$id' AND $condition
            ORDER BY $sort $order NULLS LAST, id $order");
        my $path = "/api/v1/${table}s?$filter&sort=$sort&order=$order&page_size="
            . ($size || 7);
        cmp_ok(scalar @all, ">", 7, "${table}s $filter: there are some");
        is_deeply([ids_by($path, "page")], \@all, "$path: pages have all");
        is_deeply([ids_by($path, "cursor")], \@all, "$path: cursors lead to all");
    }
}

# The ids of all pages of PATH, BY numbers ("page") or "cursor".
sub ids_by {
    my ($path, $by) = @_;
    my ($next, @ids) = $by eq "page" ? 1 : "*";
    while ($next) {
        my $r = $c->get("$path&$by=" . CrmTest::Client::escape($next));
        my $p = $r->json->{pagination};
        push @ids, map { $_->{id} } @{$r->data};
        $next = $by eq "cursor" ? $p->{next_cursor}
            : $next < $p->{total_pages} ? $next + 1 : undef;
    }
    return @ids;
}

$httpd->stop;
done_testing;
