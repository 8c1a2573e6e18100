# SPDX-License-Identifier: Apache-2.0
# 18-tags.t: the filter tags finds what it names however rows are written; it and
# custom_fields.NAME cost the same in a large workspace as in a small one, whatever
# others have (contract 7.4, 20.3)
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use JSON::PP ();

my $json = JSON::PP->new->utf8;
my $database = database();
# PostgreSQL logs the plan of each statement that the module sends.
postgres()->sql("postgres", "ALTER DATABASE $database SET"
    . " session_preload_libraries = 'auto_explain'");
my $httpd = httpd(database => $database, unlimited => 1);
my ($large, $small, $other) = map { workspace($httpd, twin => 0) } 1 .. 3;
my $rows = 20_000;
my %table = (contacts => "contact", companies => "company");

# ---- what is found ------------------------------------------------------------

my @odd = ("vip", "VIP", "Vip", "Ö", "ö", "O\x{308}", "\x{1F600}", "ẞ", "ß",
    "50%", "a b", "back\\slash", '"', "'", "{", "}", "{}", "NULL", "null", "0",
    "%", "_", "x" x 100, "ü" x 100, "\$1", "vi", "p");

# The lists of $other by TAGS, any and all of them, are the rows that have them.
sub are_found {
    my ($path, $name, @tags) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($id, $w) = ($other->id, $other);
    my $quoted = "ARRAY[" . join(", ", map { "'" . s/'/''/gr . "'" } @tags)
        . "]::text[]";
    for (["any", "&&"], ["all", "@>"]) {
        my ($match, $operator) = @$_;
        my @want = map { $_->[0] } sql($database, "SELECT id
            FROM crmapi.$table{$path} t WHERE t.workspace_id = '$id'
            AND t.tags COLLATE \"default\" $operator $quoted
            ORDER BY t.created_at DESC, t.id DESC");
        for my $more ({}, { bot_id => $w->agent }, { cursor => "*" },
            { search => "Row" }, { search => "w" }) {
            my $r = $w->client->get("/api/v1/$path", query => { %$more,
                tags => join(",", @tags), tags_match => $match,
                page_size => 100 });
            my $what = join " ", $name, $match, %$more;
            status_is($r, 200, $what) or return;
            is_deeply($r->ids, \@want, $what);
            is($r->json->{pagination}{total}, scalar @want, "$what: the total")
                unless exists $more->{cursor};
        }
    }
    return;
}

for my $path (sort keys %table) {
    my $name = $path eq "contacts" ? "last_name" : "name";
    my $client = $other->client;
    my @ids = map { $client->post("/api/v1/$path", { bot_id => $other->agent,
        $name => "Row $_", tags => [@odd[$_, ($_ + 3)
            % @odd]] })->data->{id} } 0 .. $#odd;
    is(scalar(grep { defined } @ids), scalar @odd, "$path: rows of odd tags");
    push @ids, $client->post("/api/v1/$path", { bot_id => $other->agent,
        $name => "Row", tags => [map { "t$_" } 1 .. 100] })->data->{id},
        $client->post("/api/v1/$path", { bot_id => $other->agent,
        $name => "Row" })->data->{id};
    are_found($path, "$path: tag $_", $_) for @odd;
    are_found($path, "$path: two", @odd[0, 3]);
    are_found($path, "$path: many", map { "t$_" } 1 .. 100);
    are_found($path, "$path: one of many", "t57");
    are_found($path, "$path: none", "nobody's");
    my $one = $client->get("/api/v1/$path", query => { tags => "vip,t7",
        ids => "$ids[0],$ids[-1]" });
    is_deeply($one->ids, [$ids[0]], "$path: of rows that are named");

    # each way of writing tags
    $client->patch("/api/v1/$path/$ids[0]", { tags => ["patched"] });
    are_found($path, "$path: a changed row", $_) for "patched", "vip";
    $client->patch("/api/v1/$path/$ids[0]", { $name => "Row once more" });
    are_found($path, "$path: another change", "patched");
    $client->patch("/api/v1/$path/$ids[0]", { tags => [] });
    are_found($path, "$path: no tags any more", "patched");
    $client->delete("/api/v1/$path/$ids[1]");
    are_found($path, "$path: a deleted row", "VIP");
    $other->import_objects([{ object => $table{$path}, bot_id => $other->agent,
        $name => "Row", tags => ["imported", "vip"] }]);
    are_found($path, "$path: an imported row", $_) for "imported", "vip";
}
for my $tags (["upserted"], ["again", "vip"]) {
    $other->client->post("/api/v1/contacts/upsert", { bot_id => $other->agent,
        contacts => [{ last_name => "Row", emails => ['u@x.example'],
            tags => $tags }] });
    are_found("contacts", "an upserted contact", $_) for "upserted", "again";
}

# ---- what it costs ------------------------------------------------------------

# Every thousandth row of the large workspace has the tag "rare", 20 of the small
# one, and all of the third. Rows of the table are that far apart in all of them.
for my $path (sort keys %table) {
    my $name = $path eq "contacts" ? "last_name" : "name";
    for ([$large, $rows, 1000], [$small, 1000, 50], [$other, 5000, 1]) {
        my ($w, $n, $nth) = @$_;
        my ($id, $bot) = ($w->id, $w->agent);
        sql($database, "INSERT INTO crmapi.$table{$path} (id, workspace_id,
                bot_id, $name, tags, custom_fields)
            SELECT gen_random_uuid(), '$id', '$bot', 'N' || n, CASE
                WHEN n % $nth = 0 THEN '{all,rare}'::text[] ELSE '{all}' END,
                jsonb_build_object('all', 1, 'rare', n % $nth = 0)
            FROM generate_series(1, $n) n");
    }
}
sql($database, "VACUUM ANALYZE crmapi.contact, crmapi.company,"
    . " crmapi.contact_change");

# All nodes of a plan.
sub nodes { my ($node) = @_; ($node, map { nodes($_) } @{$node->{Plans}}) }
sub blocks { $_[0]{"Shared Hit Blocks"} + $_[0]{"Shared Read Blocks"} }

# The plan of the list by QUERY that the module sends for W.
sub plan_of {
    my ($w, $path, $query) = @_;
    my $log = postgres()->host . "/log";
    my $before = -s $log;
    my $plan;
    # the second statement of a session: the first one reads the catalogs
    for (1 .. 40) {
        my $r = $w->client->get("/api/v1/$path", query => $query);
        die $r->body if $r->status != 200;
    }
    wait_for(sub {
        my $text = substr read_file($log), $before;
        while ($text =~ / \Q$database\E \w+ LOG:  duration: \S+ ms  plan:\n((?:\t.*\n)+)/g) {
            my $one = $json->decode($1 =~ s/^\t//gmr);
            $plan = $one if $one->{"Query Text"} =~ /^WITH m AS/;
        }
        return $plan;
    }, 20) or die "no plan is logged\n";
    return $plan->{Plan};
}

# Workers for parallel plans cost nothing, as if there were a million rows.
postgres()->sql("postgres", "ALTER DATABASE $database SET $_")
    for "auto_explain.log_min_duration = 0", "auto_explain.log_analyze = on",
    "auto_explain.log_timing = off", "auto_explain.log_buffers = on",
    "auto_explain.log_format = 'json'", "parallel_setup_cost = 0",
    "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0";
$httpd->restart;
for my $path (sort keys %table) {
    for (["large", $large], ["small", $small]) {
        my ($which, $w) = @$_;
        for my $match ("any", "all") {
            my @all = nodes(plan_of($w, $path, { tags => "rare",
                tags_match => $match }));
            my ($m) = grep { ($_->{"Subplan Name"} // "") eq "CTE m" } @all;
            my @scans = grep { $_->{"Index Name"} } nodes($m);
            my $what = "$path with $match tag in the $which workspace";
            is_deeply([map { $_->{"Index Name"} } @scans],
                ["$table{$path}_tags"], "$what: one index is read");
            is($scans[0]{"Actual Rows"}, 20, "$what: it has the matches only");
            cmp_ok(blocks($scans[0]), "<=", 4, "$what: by a few pages");
            cmp_ok(blocks($m), "<=", 4 + 20, "$what: and their rows");
            is_deeply([grep { /Gather/ } map { $_->{"Node Type"} } @all], [],
                "$what: no workers are started");
        }
    }
}

# The filter custom_fields.NAME reads as little. Those of contacts are in a table beside.
my %scans = (contacts => ["contact_fields", "contact_pkey"],
    companies => ["company_fields"]);
for my $path (sort keys %scans) {
    for (["large", $large], ["small", $small]) {
        my ($which, $w) = @$_;
        my @all = nodes(plan_of($w, $path, { "custom_fields.rare" => "true" }));
        my ($m) = grep { ($_->{"Subplan Name"} // "") eq "CTE m" } @all;
        my @scans = grep { $_->{"Index Name"} } nodes($m);
        my $what = "$path with a custom field in the $which workspace";
        is_deeply([map { $_->{"Index Name"} } @scans], $scans{$path},
            "$what: what is read");
        is($scans[0]{"Actual Rows"}, 20, "$what: it has the matches only");
        cmp_ok(blocks($m), "<=", 8 + 20 * (@scans > 1 ? 5 : 1),
            "$what: a few pages and their rows");
        is_deeply([grep { /Gather/ } map { $_->{"Node Type"} } @all], [],
            "$what: no workers are started");
    }
}

# With tags, rows are found by these alone: what both tables find would be read whole.
for (["large", $large], ["small", $small]) {
    my ($which, $w) = @$_;
    my ($m) = grep { ($_->{"Subplan Name"} // "") eq "CTE m" } nodes(plan_of($w,
        "contacts", { tags => "rare", "custom_fields.all" => 1 }));
    is_deeply([grep { $_ } map { $_->{"Index Name"} } nodes($m)], ["contact_tags"],
        "contacts with a tag and a custom field in the $which workspace: what is read");
    cmp_ok(blocks($m), "<=", 4 + 20, "contacts with both: by a few pages and their rows");
}

# What other workspaces have written since is in one short list.
my ($id, $bot) = ($other->id, $other->agent);
for my $n (1 .. 10) {
    sql($database, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, tags)
        SELECT gen_random_uuid(), '$id', '$bot', ARRAY['rare', 'n' || n]
        FROM generate_series(1, 300) n");
}
my ($m) = grep { ($_->{"Subplan Name"} // "") eq "CTE m" }
    nodes(plan_of($large, "contacts", { tags => "rare" }));
cmp_ok(blocks($m), "<=", 4 + 20 + 64 / 8 + 1,
    "new rows of others cost at most their list of 64 kB");

done_testing;
