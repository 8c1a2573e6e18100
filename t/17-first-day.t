# SPDX-License-Identifier: Apache-2.0
# 17-first-day.t: sessions have planned their statements when a site had five contacts;
# then it gets thousands. Once crmapid has looked, each list reads about as much as in
# sessions that begin then. Autovacuum, which does so later, is off. Nor do lists read
# more of a large workspace beside many small ones, or of a small one beside it
# plain build only
use strict;
use warnings;
use FindBin;
BEGIN { delete $ENV{CRM_TEST_PG} }
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::OpenAPI;

plan(skip_all => "the servers of Citus count") if CrmTest::Citus::wanted();

my $ROWS = 3000;
CrmTest::Postgres->get(CrmTest::Postgres->counting, autovacuum => "off");
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, children => 1,
    threads => 2, dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
my $w = workspace($httpd, twin => 0);
my $c = $w->client;
my ($id, $bot, $stage) = ($w->id, $w->agent, ($w->stages)[0]);
my $template = $w->template;
my ($form) = $w->import_objects([{ object => "form", bot_id => $bot,
    name => "F" }]);

# Add N rows of each table, for every other one what a filter asks for.
sub add {
    my ($n) = @_;
    my $series = "generate_series(1, $n) n";
    my $at = "now() - interval '3 days' + n * interval '1 min'";
    my $half = sub { "CASE WHEN n % 2 = 0 THEN $_[0] ELSE $_[1] END" };
    my $tags = $half->("'{t1}'", "'{}'") . "::text[]";
    my $fields = "jsonb_build_object('a', n % 3)";

    sql($database, <<"END");
CREATE TEMPORARY TABLE co AS SELECT gen_random_uuid() AS id, n FROM $series;
CREATE TEMPORARY TABLE ct AS SELECT gen_random_uuid() AS id, n FROM $series;
CREATE TEMPORARY TABLE cv AS SELECT gen_random_uuid() AS id, n FROM $series;
INSERT INTO crmapi.company (id, workspace_id, bot_id, name, tags, custom_fields,
    created_at)
SELECT id, '$id', '$bot', 'Ann ' || n, $tags, $fields, $at FROM co;
INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, company_id,
    pipeline_stage_id, tags, custom_fields, created_at)
SELECT ct.id, '$id', '$bot', @{[$half->("'Ann'", "'Bob'")]}, co.id, '$stage',
    $tags, $fields, $at FROM ct JOIN co USING (n);
INSERT INTO crmapi.pipeline_card (id, workspace_id, pipeline_stage_id, contact_id,
    title, order_index)
SELECT gen_random_uuid(), '$id', '$stage', id, 'T', n FROM ct;
INSERT INTO crmapi.activity (id, workspace_id, contact_id, company_id,
    activity_type, due_date, completed_at, created_at)
SELECT gen_random_uuid(), '$id', ct.id, co.id, 'task', $at,
    @{[$half->("now()", "NULL")]}, $at FROM ct JOIN co USING (n);
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, type,
    created_at, last_message_at)
SELECT cv.id, '$id', '$bot', ct.id, 1 + n % 2, $at, $at FROM cv JOIN ct USING (n);
INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, created_at)
SELECT gen_random_uuid(), '$id', id, 'user', $at FROM cv;
INSERT INTO crmapi.submission (id, workspace_id, form_id, contact_id,
    submitted_at) SELECT gen_random_uuid(), '$id', '$form', id, $at FROM ct;
INSERT INTO crmapi.sequence (id, workspace_id, name, bot_id, template_id)
SELECT id, '$id', 'S', '$bot', '$template' FROM ct;
INSERT INTO crmapi.enrollment (id, workspace_id, sequence_id, contact_id,
    template_id, contact_action)
SELECT gen_random_uuid(), '$id', id, id, '$template', 'created' FROM ct;
SELECT gin_clean_pending_list(i.indexrelid) FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE m.amname = 'gin' AND c.relnamespace = 'crmapi'::regnamespace
END
}

# Requests for all lists of the workspace, by each sort key and with these filters if
# they have them: a page by number, one far away, one by cursor.
my @filters = ("", "search=ann", "search=ann&tags=t1", "tags=t1",
    "custom_fields.a=1", "bot_id=$bot", "created_after=2020-01-01T00:00:00Z",
    "updated_after=2020-01-01T00:00:00Z", "role=user", "completed=false");
my $document = CrmTest::OpenAPI->new($w->client(key => undef)
    ->get("/api/v1/openapi.json")->json)->{document};

sub requests {
    my ($path) = @_;
    my $get = $document->{paths}{$path}{get} or return;
    my %has = map { $_->{name} => $_->{schema} } map {
        ($_->{'$ref'} // "") =~ m{([^/]+)$}
            ? $document->{components}{parameters}{$1} : $_ }
        @{$get->{parameters}};
    return if !$has{page};
    my @names = map { s/custom_fields\.\K.*/a/r } keys %has;
    my @orders = map { "sort=$_&order=asc" } @{($has{sort} // {})->{enum}};
    my @asked = grep { my $asked = $_;
        !grep { my ($name) = /^([^=]+)/; !grep { $_ eq $name } @names }
            split /&/, $asked } @filters;

    return map { my $query = $_; map { "$path?page_size=20&$query$_" }
        "", "&page=60", $has{cursor} ? "&cursor=*" : () }
        map { my $order = $_; map { "$order&$_" } @asked } @orders, "";
}
my @requests = map { requests($_) } grep { !/\{/ } sort keys
    %{$document->{paths}};
cmp_ok(scalar @requests, ">", 200, "there are lists, orders and filters");

# How many blocks each request reads, by request.
sub blocks {
    return map {
        sql("postgres", "SELECT pg_stat_statements_reset()");
        my $r = $c->get($_);
        $r->status == 200 or die "$_: " . $r->text;
        $_ => scalar sql("postgres", "SELECT sum(shared_blks_hit + shared_blks_read)
            FROM pg_stat_statements")
    } @_;
}

add(5);
sql($database, "ANALYZE");
$c->get($_) for @requests;
my $sessions = "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity"
    . " WHERE usename = '$CrmTest::Postgres::API'";
my $old = sql($database, $sessions);
add($ROWS);
my %early = blocks(grep { /custom_fields/ } @requests);
worker(database => $database, no_start => 1,
    conf => { conversation_idle => "30d" })->once;
my %grown = blocks(@requests);
is(scalar sql($database, $sessions), $old, "the sessions are those of before");
sql($database, "ANALYZE");
$httpd->restart;
my %fresh = blocks(@requests);

# MANY, blocks by request, are no more than in a session that begins when there are as
# many rows, where the statements are planned WHEN. A few hundred may be those of the
# catalog.
sub about_the_same {
    my ($when, %many) = @_;
    for my $path (sort keys %many) {
        my ($is, $was) = ($many{$path}, $fresh{$path});
        cmp_ok($is, "<=", 3 * $was + 500, "$path: $is blocks $when, and $was");
    }
}
about_the_same("before crmapid has looked", %early);
about_the_same("in an old session", %grown);

# Others with five rows each.
my $other = workspace($httpd, twin => 0);
sql($database, <<"END");
INSERT INTO crmapi.workspace (id, name, slug)
SELECT gen_random_uuid(), 'small', 'small-' || n FROM generate_series(1, 400) n
END
for my $table (qw(company contact contact_change pipeline_card activity
        conversation message submission sequence enrollment)) {
    my ($columns, $values) = @{(sql($database, "SELECT
            string_agg(quote_ident(attname), ', '), string_agg(CASE attname
                WHEN 'workspace_id' THEN 'w.id'
                ELSE 's.' || quote_ident(attname) END, ', ')
        FROM pg_attribute WHERE attrelid = 'crmapi.$table'::regclass
        AND attnum > 0 AND attgenerated = '' AND NOT attisdropped"))[0]};
    sql($database, "SET session_replication_role = replica;
        INSERT INTO crmapi.$table ($columns) SELECT $values
        FROM crmapi.workspace w, (SELECT * FROM crmapi.$table
            WHERE workspace_id = '$id' LIMIT 5) s
        WHERE w.slug LIKE 'small-%' OR w.id = '@{[$other->id]}'");
}
sql($database, "ANALYZE");
$httpd->restart;
about_the_same("beside small ones", blocks(@requests));
$c = $other->client;
my %small = blocks(@requests);
cmp_ok($small{$_}, "<=", 500, "$_: $small{$_} blocks of a small one")
    for sort keys %small;

done_testing;
