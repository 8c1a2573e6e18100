# SPDX-License-Identifier: Apache-2.0
# 18-filters.t: the filters of contract 20.3 find what they name however rows are
# written, and nothing of others
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use Time::HiRes qw(time);
use CrmTest::Data;
use JSON::PP ();

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my %table = (contacts => "contact", companies => "company");

my %made_at;        # when made() made the row of an id

# PATH filtered by QUERY has the rows IDS, newest first (those of one
# millisecond by their ids), on pages with numbers and by cursor; with the exact total.
sub is_found {
    my ($path, $query, $ids, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $want = [sort { "$made_at{$b} $b" cmp "$made_at{$a} $a" } @$ids];
    my $r = $c->get("/api/v1/$path", query => { %$query, page_size => 100 });

    status_is($r, 200, $name) or return;
    is_deeply($r->ids, $want, $name);
    is($r->json->{pagination}{total}, scalar @$want, "$name: the total");
    my ($cursor, @ids) = "*";
    while (defined $cursor) {
        $r = $c->get("/api/v1/$path", query => { %$query, page_size => 2,
            cursor => $cursor });
        status_is($r, 200, "$name: by cursor") or return;
        push @ids, @{$r->ids};
        $cursor = $r->json->{pagination}{next_cursor};
    }
    is_deeply(\@ids, $want, "$name: by cursor");
    return;
}

# Make a row of PATH with FIELDS and return its id.
sub made {
    my $row = $w->made(@_);
    $made_at{$row->{id}} = $row->{created_at};
    return $row->{id};
}

# ---- custom fields --------------------------------------------------------------

my @names = ("size", "Size", "a.b", "a b", " ", "ö", "O\x{308}", "\x{1F600}", "",
    "NAME", "x" x 100, "ü" x 100, "a[b]", "a&b=c", "100%", "\"", "\\", "{}",
    "custom_fields.x", "\$1", "?", "'", "null");
# a value, then what finds it in a query, then what does not
my @values = (
    ["38", ["38"], ["38.0", "3", "038", " 38"]],
    [38, ["38", "38.0", "3.8e1"], ["39", "3", "038", "+38", "38."]],
    [-1.5, ["-1.5", "-1.50"], ["1.5", "-1"]],
    [true, ["true"], ["True", "1", "false"]],
    ["true", ["true"], ["TRUE"]],
    [undef, ["null"], ["NULL", "undefined"]],
    ["Ö b", ["Ö b"], ["ö b", "Ö", "O\x{308} b"]],
    ["a,b", ["a,b"], ["a"]],
    ["\"q\"", ["\"q\""], ["q"]],
    ["\\", ["\\"], ["\\\\"]],
    ["a\tb\n\x{1}\x{7f}'\$", ["a\tb\n\x{1}\x{7f}'\$"], ["a\tb"]],
    ["true || true", ["true || true"], ["true"]],
    ["x" x 3000, ["x" x 3000], ["x" x 2999]],
    ["1e999", ["1e999"], ["1e99"]],
    [["38"], [], ["38", "[\"38\"]"]],
    [{ size => 38 }, [], ["38", "{\"size\":38}"]],
);

for my $path (sort keys %table) {
    my @other = map { made($path, custom_fields => $_) } {}, { other => "38" },
        { nested => { map { $_ => "38" } @names } };
    subtest "$path: a name is any text" => sub {
        for my $name (@names) {
            my @ids = map { made($path, custom_fields => { $name => "v$_" }) }
                0, 0, 1;
            is_found($path, { "custom_fields.$name" => "v0" },
                [reverse @ids[0, 1]], "$name: v0");
            is_found($path, { "custom_fields.$name" => "v1" }, [$ids[2]],
                "$name: v1");
            is_found($path, { "custom_fields.$name" => "v" }, [],
                "$name: no other value");
        }
        is_found($path, { "custom_fields.nobody" => "38" }, [],
            "an unknown name is no match");
    };
    subtest "$path: a value is a text, number, boolean or null" => sub {
        for (@values) {
            my ($value, $finds, $not) = @$_;
            my $what = substr $json->encode($value), 0, 20;
            my $id = made($path, custom_fields => { v => $value });
            for my $text (@$finds) {
                is_found($path, { "custom_fields.v" => $text }, [$id],
                    "$what by " . substr $text, 0, 10);
            }
            for my $text (@$not) {
                is_found($path, { "custom_fields.v" => $text }, [],
                    "$what not by " . substr $text, 0, 10);
            }
            status_is($c->delete("/api/v1/$path/$id"), 204, "it goes");
            is_found($path, { "custom_fields.v" => $_ }, [],
                "$what is gone") for $finds->[0] // ();
        }
    };
    subtest "$path: however a row is written" => sub {
        my $found = sub { is_found($path, { "custom_fields.way" => $_[0] },
            $_[1], $_[2]) };
        my $id = made($path, custom_fields => { way => "made" });
        $c->patch("/api/v1/$path/$id", { custom_fields => { way => 7 } });
        $found->("made", [], "a PATCH took it");
        $found->("7", [$id], "and has another");
        $c->patch("/api/v1/$path/$id", { tags => ["x"], notes => "n" });
        $found->("7", [$id], "one of other fields keeps it");
        is_found($path, { "custom_fields.way" => 7, tags => "x" }, [$id],
            "with tags");
        is_found($path, { "custom_fields.way" => 7, tags => "y" }, [],
            "with others' tags");
        is_found($path, { "custom_fields.way" => 7, bot_id => $w->agent },
            [$id], "of the agent");
        is_found($path, { "custom_fields.way" => 7, ids => $_->[0] }, $_->[1],
            "of rows that are named") for [$id, [$id]], [$other[0], []];
        $w->import_objects([{ object => $table{$path}, bot_id => $w->agent,
            name => "N", custom_fields => { way => "import" } }])
            if $path eq "companies";
        my @both = map { made($path, custom_fields => { way => "two",
            n => $_ }) } 1, 1, 2;
        is_found($path, { "custom_fields.way" => "two",
            "custom_fields.n" => 1 }, [reverse @both[0, 1]], "two members");
        is_found($path, { "custom_fields.way" => "two",
            search => "nothing like it" }, [], "with a search");
        # of many or large members the index says only that there are some
        my %large = map { +"m$_" => "x" x 50 } 1 .. 200;
        $c->patch("/api/v1/$path/$id", { custom_fields => { %large, way => 8 } });
        $found->("8", [$id], "beside many others");
        $found->("7", [], "which have no other value");
        $c->patch("/api/v1/$path/$id", { custom_fields => { way => 7 } });
        $found->("7", [$id], "alone again");
        $c->patch("/api/v1/$path/$id", { custom_fields => undef });
        $found->("7", [], "none any more");
    };
    subtest "$path: more than are collected" => sub {
        my ($id, $bot, $name) = ($w->id, $w->agent, $path eq "companies"
            ? "name" : "last_name");
        sql($database, "INSERT INTO crmapi.$table{$path} (id, workspace_id,
                bot_id, $name, custom_fields, created_at)
            SELECT gen_random_uuid(), '$id', '$bot', 'Many', jsonb_build_object(
                'many', n % 2, 'rare', n % 1500), now() - interval '1 day'
                + n * interval '1 ms' FROM generate_series(1, 6000) n");
        for my $query ({ "custom_fields.many" => 1 },
                { "custom_fields.rare" => 7 }) {
            my ($field) = %$query;
            my ($member) = $field =~ /\.(.*)/;
            my @want = map { $_->[0] } sql($database, "SELECT id FROM
                crmapi.$table{$path} WHERE workspace_id = '$id' AND
                custom_fields ->> '$member' = '$query->{$field}'
                ORDER BY created_at DESC, id DESC");
            my $r = $c->get("/api/v1/$path", query => { %$query, page => 2,
                page_size => 3 });
            is_deeply($r->ids, [@want[grep { $_ < @want } 3 .. 5]],
                "$field: the second page");
            is($r->json->{pagination}{total}, scalar @want, "$field: total");
            $r = $c->get("/api/v1/$path", query => { %$query, page => 15,
                page_size => 100 });
            is_deeply($r->ids, [@want[grep { $_ < @want } 1400 .. 1499]],
                "$field: a far page");
            my ($cursor, @ids) = "*";
            while (defined $cursor) {
                $r = $c->get("/api/v1/$path", query => { %$query,
                    page_size => 100, cursor => $cursor });
                push @ids, @{$r->ids};
                $cursor = $r->json->{pagination}{next_cursor};
            }
            is_deeply(\@ids, \@want, "$field: a walk");
        }
        sql($database, "DELETE FROM crmapi.$table{$path} WHERE workspace_id ="
            . " '$id' AND $name = 'Many'");
    };
    subtest "$path: several of them cost about as much as each" => sub {
        my ($id, $bot, $name) = ($w->id, $w->agent, $path eq "companies"
            ? "name" : "last_name");
        my $rows = 12000;
        sql($database, "INSERT INTO crmapi.$table{$path} (id, workspace_id,
                bot_id, $name, tags, custom_fields)
            SELECT gen_random_uuid(), '$id', '$bot', 'All', '{all}',
                jsonb_build_object('third', n % 3, 'same', 'x', 'half', n % 2)
            FROM generate_series(1, $rows) n");
        sql($database, "ANALYZE crmapi.$_") for $table{$path},
            $path eq "contacts" ? "contact_change" : ();
        my $cost = sub {
            my ($query, $want) = @_;
            my @took = sort { $a <=> $b } map {
                my $began = time;
                my $r = $c->get("/api/v1/$path?$query&page_size=1");
                is($r->json->{pagination}{total}, $want, $query);
                time - $began;
            } 1, 2;
            return $took[0];
        };
        my $one = $cost->("custom_fields.same=x", $rows)
            + $cost->("tags=all", $rows);
        for my $case (["custom_fields.third=1&custom_fields.same=x", 3],
                ["custom_fields.third=1&custom_fields.same=x"
                    . "&custom_fields.half=1", 6],
                ["tags=all&custom_fields.third=1", 3],
                ["tags=all&custom_fields.third=1&custom_fields.same=x", 3]) {
            my ($query, $part) = @$case;
            my $took = $cost->($query, $rows / $part);
            cmp_ok($took, "<", 5 * $one + 0.2, "$query: $took s beside $one s");
        }
        sql($database, "DELETE FROM crmapi.$table{$path} WHERE workspace_id ="
            . " '$id' AND $name = 'All'");
    };
    subtest "$path: what is no filter" => sub {
        my $refused = sub {
            my ($query, $field) = @_;
            error_is($c->get("/api/v1/$path", query => $query), 422,
                "validation_error", substr($query, 0, 40), [$field]);
        };
        my $long = "ü" x 101;
        error_is($c->get("/api/v1/$path", query =>
            { "custom_fields.$long" => 1 }), 422, "validation_error",
            "a name of 101 characters", ["custom_fields.$long"]);
        $refused->("custom_fields.a=1&custom_fields.a=1", "custom_fields.a");
        $refused->("custom_fields.a=1&custom_fields.b=2&custom_fields.a=3",
            "custom_fields.a");
        $refused->("custom_fields.a=", "custom_fields.a");
        $refused->("custom_fields.a=%ff", "custom_fields.a");
        $refused->("custom_fields.a=%00", "custom_fields.a");
        $refused->("custom_fields[a]=1", "custom_fields[a]");
        $refused->(join("&", map { "custom_fields.m$_=1" } 0 .. 10),
            "custom_fields.m10");
        is($c->get("/api/v1/$path", query => "custom_fields=1")
            ->header("X-Ignored-Parameters"), "custom_fields",
            "without a name it is unknown");
        my $r = $c->get("/api/v1/$path", query => { cursor => "*",
            page_size => 1, "custom_fields.size" => "v0" });
        my $next = $r->json->{pagination}{next_cursor};
        for my $other ({ "custom_fields.size" => "v1" }, {},
                { "custom_fields.Size" => "v0" }) {
            error_is($c->get("/api/v1/$path", query => { %$other,
                cursor => $next, page_size => 1 }), 422, "validation_error",
                "a cursor is of its members", ["cursor"]);
        }
        my @two = ("custom_fields.size=v0", "custom_fields.nobody=1");
        my $page = $c->get("/api/v1/$path?cursor=*&$two[0]&$two[1]");
        is($page->body, $c->get("/api/v1/$path?cursor=*&$two[1]&$two[0]")
            ->body, "in any order");
    };
}

# ---- addresses ------------------------------------------------------------------

subtest "email and phone: any of a contact's" => sub {
    my @ids = (
        made("contacts", emails => ["One\@X.example"]),
        made("contacts", emails => ["two\@x.example", "one\@x.EXAMPLE",
            "three\@x.example"]),
        made("contacts", emails => ["p+q\@x.example"], phone_numbers =>
            ["+49 30 1234567"]),
        made("contacts", phone_numbers => ["+49 30 7654321",
            "tel:+49-30-1234567", "030 / 99"]));
    for my $case (["one\@x.example", 1, 0], ["ONE\@x.EXAMPLE", 1, 0],
            ["three\@x.example", 1], ["two\@x.example", 1],
            ["p+q\@x.example", 2], ["p q\@x.example", 2],
            ["x.example"], ["one\@x"], ["nobody\@x.example"]) {
        my ($email, @want) = @$case;
        is_found("contacts", { email => $email }, [@ids[@want]], $email);
    }
    for my $case (["+49301234567", 3, 2], ["+49 (0)30 123-4567", 3, 2],
            [" 49301234567", 3, 2], ["+49307654321", 3], ["030 / 99", 3],
            ["030/99"], ["1234567"], ["+493012345"], ["49301234567"]) {
        my ($phone, @want) = @$case;
        is_found("contacts", { phone => $phone }, [@ids[@want]], "phone=$phone");
    }
    is_found("contacts", { email => "one\@x.example",
        phone => "+49301234567" }, [], "both must match");
    is_found("contacts", { phone => "+49301234567",
        email => "p+q\@x.example", bot_id => $w->agent }, [$ids[2]],
        "and others");
    is_found("contacts", { email => "one\@x.example", ids => $ids[0] },
        [$ids[0]], "of those that are named");
    $c->patch("/api/v1/contacts/$ids[1]", { emails => ["two\@x.example"] });
    is_found("contacts", { email => "one\@x.example" }, [$ids[0]],
        "an address that is gone");
    $c->patch("/api/v1/contacts/$ids[0]", { emails => ["new\@x.example",
        "ONE\@x.example"] });
    is_found("contacts", { email => "one\@x.example" }, [$ids[0]],
        "and one that is no longer primary");
    for my $query ("email=", "phone=", "email=" . "x" x 255,
            "phone=" . "1" x 101, "has_company=perhaps") {
        my ($field) = $query =~ /^(\w+)/;
        error_is($c->get("/api/v1/contacts?$query"), 422, "validation_error",
            $query, [$field]);
    }
};

subtest "company_id, has_company, contact_type" => sub {
    $w = workspace($httpd);
    $c = $w->client;
    my @companies = map { made("companies") } 1, 2;
    my @ids = (made("contacts", company_id => $companies[0]),
        made("contacts", contact_type => "lead"),
        made("contacts", company_id => $companies[0], contact_type => "Lead"));
    is_found("contacts", { company_id => $companies[0] }, [@ids[2, 0]],
        "a company's");
    is_found("contacts", { company_id => $_ }, [], "6.8 of $_")
        for $companies[1], uuid(), "x";
    is_found("contacts", { has_company => "true" }, [@ids[2, 0]], "with one");
    is_found("contacts", { has_company => 0 }, [$ids[1]], "without");
    is_found("contacts", { contact_type => "lead" }, [$ids[1]], "exact");
    is_found("contacts", { contact_type => "Lead", has_company => "TRUE",
        company_id => $companies[0] }, [$ids[2]], "all of them");
    $c->delete("/api/v1/companies/$companies[0]");
    is_found("contacts", { has_company => "false" }, [reverse @ids],
        "after the company has gone");
};

subtest "nothing of others" => sub {
    my $twin = $httpd->client(key => $w->twin->make_key("read,write"),
        headers => { "X-Crm-Twin" => 1 });
    my %fields = (emails => ["a\@twin.example", "b\@twin.example"],
        phone_numbers => ["+4930111", "+493022222"], contact_type => "twin",
        custom_fields => { twin => "yes" });
    my ($agent) = @{$twin->get("/api/v1/agents")->ids};
    my $r = $twin->post("/api/v1/contacts", { bot_id => $agent, %fields });
    status_is($r, 201, "the twin has one");
    for my $query ({ email => "a\@twin.example" }, { email =>
            "b\@twin.example" }, { phone => "+493022222" },
            { contact_type => "twin" }, { "custom_fields.twin" => "yes" }) {
        my ($field) = %$query;
        is_found("contacts", $query, [], "$field: none of theirs");
        is_deeply($twin->get("/api/v1/contacts", query => $query)->ids,
            [$r->data->{id}], "$field: they see it");
    }
};

$httpd->stop;
done_testing;
