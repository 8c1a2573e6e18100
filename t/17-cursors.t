# SPDX-License-Identifier: Apache-2.0
# 17-cursors.t: walking lists by cursor (contract 13.3). $CRM_WALK is the number
# of rows that are walked beside writers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Samples;
use List::Util qw(sum);

# Rows that stay, rows of a page, walks, and writers.
my ($ROWS, $PAGE) = $ENV{CRM_WALK} ? ($ENV{CRM_WALK}, 100) : (450, 30);
my ($WALKS, $WRITERS) = ($ENV{CRM_WALK} ? 10 : 4, 8);
my $database = database();
my $httpd = httpd(database => $database, children => 2,
    unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $samples = CrmTest::Samples->new($w);
my $openapi = $samples->openapi;
my $paths = $openapi->{document}{paths};

# Walk PATH with QUERY, by Link if LINK. Returns the ids of all pages.
sub walk {
    my ($path, $query, $link) = @_;
    my ($cursor, @ids) = ("*");
    my $r = $c->get($path, query => { %$query, cursor => $cursor });
    while (1) {
        is($r->status, 200, "$path: a page") or diag($r->text), last;
        my $page = $r->json->{pagination};
        my $next = $page->{next_cursor};
        push @ids, @{$r->ids};
        my $told = $r->header("Link");
        if (!$page->{has_more}) {
            is($next, undef, "the last page has no cursor");
            is($told, undef, "and no Link");
            last;
        }
        is(scalar @{$r->ids}, $query->{page_size} // 25, "a full page");
        my ($address) = $told =~ /^<([^<>\s]+)>; rel="next"$/
            or fail("Link: $told"), last;
        last if @ids > 9000;
        $r = $link ? $c->get($address) : $c->get($path,
            query => { %$query, cursor => $next });
    }
    return \@ids;
}

# The ids of the same list by numbers of pages.
sub numbered {
    my ($path, $query) = @_;
    my ($page, @ids) = (0);
    while (1) {
        my $r = $c->get($path, query => { %$query, page => ++$page,
            page_size => 100 });
        push @ids, @{$r->ids};
        return \@ids if $page >= $r->json->{pagination}{total_pages};
    }
}

# The parameters in the query of the GET of PATH: name => what is described.
sub parameters {
    my ($path) = @_;
    return map { $_->{name} => $_ } grep { $_->{in} eq "query" }
        map { $openapi->resolve($_) } @{$paths->{$path}{get}{parameters}};
}

my @lists = grep { my %has = parameters($_); $has{page} }
    grep { $paths->{$_}{get} } sort keys %$paths;
cmp_ok(scalar @lists, ">=", 11, "there are lists");

sub address_of { $_[0] =~ s/\{id\}/$samples->id_for($_[0])/er }

subtest "13.3 every list, in all its orders" => sub {
    for my $path (@lists) {
        my %has = parameters($path);
        ok($has{cursor}, "$path has cursors");
        my @sorts = $has{sort} ? @{$has{sort}{schema}{enum}} : undef;
        my @orders = $has{order} ? ("asc", "desc") : undef;
        for my $sort (@sorts) {
            for my $order (@orders) {
                my %query = (defined $sort ? (sort => $sort) : (),
                    defined $order ? (order => $order) : ());
                my $at = address_of($path);
                is_deeply(walk($at, { %query, page_size => 4 }, 1),
                    numbered($at, \%query), join " ", $path, %query);
            }
        }
    }
};

subtest "13.3 with filters of every kind" => sub {
    my ($contact) = @{$c->get("/api/v1/contacts?page_size=1")->data};
    my $talks = $c->get("/api/v1/conversations?page_size=100")->data;
    for my $case (["contacts", search => "a"], ["contacts", search => "con"],
            ["contacts", tags => join ",", @{$contact->{tags}}],
            ["contacts", bot_id => $contact->{bot_id}],
            ["contacts", created_before => $contact->{created_at}],
            ["contacts", ids => join ",", @{numbered("/api/v1/contacts", {})}
                [1, 3, 5, 7, 9, 11, 13]],
            ["companies", search => "e"],
            ["conversations", type => $talks->[0]{type}],
            ["conversations", include_deleted => "true",
                sort => "last_message_at"],
            ["conversations", search => "a", sort => "last_message_at",
                order => "asc"],
            ["pipeline-cards", include_archived => "true"],
            ["pipeline-cards", bot_id => $contact->{bot_id}]) {
        my ($list, %query) = @$case;
        is_deeply(walk("/api/v1/$list", { %query, page_size => 3 }),
            numbered("/api/v1/$list", \%query), "$list @{[%query]}");
    }
    is_deeply(walk("/api/v1/contacts", { search => "nobody has this" }), [],
        "an empty list");
};

subtest "13.3 equal keys and nulls, few and many matches" => sub {
    my $bot = $w->agent;
    my $id = $w->id;
    sql($database, <<"END");
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, type, created_at,
    last_message_at, last_message)
SELECT gen_random_uuid(), '$id', '$bot', 3,
    '2025-01-01'::timestamptz + n / 5 * interval '1 ms',
    CASE WHEN n % 3 > 0 THEN '2025-02-01'::timestamptz
        + n / 5 * interval '1 ms' END,
    CASE WHEN n % 26 = 0 THEN 'some rare words' ELSE 'often said' END
FROM generate_series(1, 1300) n
END
    for my $case (["rare words", "created_at", "asc"],
            ["rare words", "last_message_at", "asc"],
            ["rare words", "last_message_at", "desc"],
            ["often", "created_at", "desc"],
            ["often", "last_message_at", "asc"],
            ["of", "last_message_at", "desc"]) {
        my ($search, $sort, $order) = @$case;
        my %query = (search => $search, sort => $sort, order => $order,
            type => 3);
        my $got = walk("/api/v1/conversations", { %query,
            page_size => $search =~ / / ? 9 : 99 });
        is_deeply($got, numbered("/api/v1/conversations", \%query), "@$case");
        cmp_ok(scalar @$got, ">", 40, "there are some");
    }
    for my $order ("asc", "desc") {
        my %query = (sort => "last_message_at", order => $order, type => 3);
        is_deeply(walk("/api/v1/conversations", { %query, page_size => $_ }),
            numbered("/api/v1/conversations", \%query),
            "last_message_at $order, with nulls, by $_") for 83, 100;
    }
};

subtest "13.3 a stage of equal positions" => sub {
    my ($pipeline) = $w->import_objects([{ object => "pipeline",
        name => "P", bot_id => $w->agent, created_at => "2025-01-01" }]);
    my @stages = $w->import_objects([map { { object => "pipeline_stage",
        name => "S", bot_id => $w->agent, pipeline_id => $pipeline,
        order_index => int $_ / 2 } } 0 .. 3]);
    $w->import_objects([map { { object => "pipeline_card", title => "C",
        pipeline_stage_id => $stages[$_ % 4], order_index => int($_ / 40),
        created_at => "2025-01-01T00:00:00.00" . int($_ / 13) . "Z" } }
        1 .. 110]);
    my %query = (pipeline_id => $pipeline);
    my $got = walk("/api/v1/pipeline-cards", { %query, page_size => 7 });
    is(scalar @$got, 110, "all of them");
    is_deeply($got, numbered("/api/v1/pipeline-cards", \%query), "in order");
};

# A page of contacts by cursor with QUERY.
sub page { $c->get("/api/v1/contacts", query => { cursor => "*", @_ }) }

subtest "13.3 what it answers" => sub {
    my $r = page(page_size => 10);
    is_deeply([sort keys %{$r->json->{pagination}}],
        [qw(has_more next_cursor page_size)], "no page and no total");
    my $cursor = $r->json->{pagination}{next_cursor};
    like($cursor, qr/^[\w-]{40,100}$/, "base64url");
    like($r->header("Link"), qr{^</api/v1/contacts\?}, "Link");
    status_is(page(cursor => $cursor, page_size => 3), 200,
        "page_size may change on the way");
    is_deeply([page(cursor => $cursor, page_size => 10)->ids->[0]],
        [$c->get("/api/v1/contacts?page_size=11")->ids->[10]],
        "it begins behind the last row");
    is($c->head("/api/v1/contacts?cursor=*&page_size=10")->header("Link"),
        $r->header("Link"), "HEAD has the Link, too");
    my $link = $c->get("/api/v1/contacts", query =>
        'search=a%26b%3E%22%0A%C3%A4&cursor=*&x=%3Cy%3E')->header("Link");
    is($link, undef, "nothing found, no Link");
    $link = $c->get("/api/v1/contacts", query =>
        'cursor=%2A&page_size=2&x=%3Cy%3E%22%0D%0A%C3%A4')->header("Link");
    like($link, qr{^<[\w/.?=&%*+-]+>; rel="next"$}, "only what a URL may have");
};

subtest "13.3 what is 422" => sub {
    my $cursor = page(page_size => 10)->json->{pagination}{next_cursor};
    my $wrong = sub {
        my ($name, %query) = @_;
        error_is(page(%query), 422, "validation_error", $name, ["cursor"]);
    };
    error_is(page(page => 1), 422, "validation_error", "beside page", ["page"]);
    error_is(page(page => 2, cursor => $cursor), 422, "validation_error",
        "a cursor beside page", ["page"]);
    $wrong->("another filter", cursor => $cursor, search => "a");
    $wrong->("an empty one", cursor => "");
    for my $none ("", "x", "**", "=" x length $cursor, $cursor . "A") {
        error_is(page(cursor => $none, page_size => 0, created_after => "x"),
            422, "validation_error", "5.6 what no list has, beside other"
            . " wrong parameters: '$none'", [qw(created_after cursor page_size)]);
    }
    error_is(page(cursor => $cursor, page_size => 0), 422, "validation_error",
        "one of another list may be one of this list", ["page_size"]);
    error_is(page(cursor => "x", page => 2), 422, "validation_error",
        "none, beside page", [qw(cursor page)]);
    error_is($c->get("/api/v1/events?cursor=&page_size=0"), 422,
        "validation_error", "nor the log", [qw(cursor page_size)]);
    my $searched = page(search => "a", page_size => 3)
        ->json->{pagination}{next_cursor};
    status_is(page(search => "a", cursor => $searched), 200, "a filter's own");
    $wrong->("another value", cursor => $searched, search => "b");
    $wrong->("without the filter", cursor => $searched);
    $wrong->("with one more", cursor => $searched, search => "a",
        created_after => "2020-01-01");
    my $other = $c->get("/api/v1/companies?cursor=*&page_size=2")
        ->json->{pagination}{next_cursor};
    $wrong->("another list's", cursor => $other);
    # lists that differ by their names only
    my @lists = qw(agents forms pipelines);
    my %next;
    for my $list (@lists) {
        my ($object) = $list =~ /(.*)s/;
        $w->import_objects([map { { object => $object, name => "N",
            ($object eq "agent" ? () : (bot_id => $w->agent)) } } 1, 2]);
        $next{$list} = $c->get("/api/v1/$list?cursor=*&page_size=1")
            ->json->{pagination}{next_cursor};
    }
    for my $list (@lists) {
        status_is($c->get("/api/v1/$list", query => { cursor => $next{$_} }),
            $_ eq $list ? 200 : 422, "$list with the cursor of $_") for @lists;
    }
    my $twin = workspace($httpd);
    $twin->import_objects([map { { object => "contact",
        bot_id => $twin->agent } } 1 .. 3]);
    $wrong->("another workspace's", cursor => $twin->client->get(
        "/api/v1/contacts?cursor=*&page_size=1")
        ->json->{pagination}{next_cursor});
    $wrong->("malformed: $_", cursor => $_) for "x", "**", "* ", "$cursor=",
        "${cursor}A", substr($cursor, 1), substr($cursor, 0, -1), "A" x 8000,
        "A" x length $cursor, "' OR 1=1", "\x{e4}";
    my @odd;
    for my $at (0 .. length($cursor) - 1) {
        my $changed = $cursor;
        substr($changed, $at, 1) = substr($cursor, $at, 1) eq "A" ? "B" : "A";
        my $r = page(cursor => $changed);
        push @odd, "$at: " . $r->status unless $r->status == 422;
    }
    is_deeply(\@odd, [], "each character of it counts");
    my $talks = $c->get("/api/v1/conversations?cursor=*&page_size=2")
        ->json->{pagination}{next_cursor};
    for my $query ("order=asc", "sort=last_message_at") {
        error_is($c->get("/api/v1/conversations?$query&cursor=$talks"), 422,
            "validation_error", "another order: $query", ["cursor"]);
    }
    status_is($c->get("/api/v1/conversations?order=desc&cursor=$talks"), 200,
        "the default, said");
    my ($one) = $samples->ids("Contact");
    my $mine = "/api/v1/contacts/$one/conversations";
    error_is($c->get("/api/v1/contacts/" . uuid()
        . "/conversations?cursor=x"), 404, "not_found", "2 404 comes before");
    error_is($c->get("$mine?cursor=$talks"), 422, "validation_error",
        "that of all parents", ["cursor"]);
};

subtest "13.3 filters are the same in any order" => sub {
    my @fields = ("custom_fields.a=1", "custom_fields.b=2");
    $w->import_objects([map { { object => "contact", bot_id => $w->agent,
        custom_fields => { a => 1, b => 2 } } } 1 .. 2]);
    my $place = $c->get("/api/v1/contacts?page_size=1&cursor=*&"
        . join "&", @fields)->json->{pagination}{next_cursor};
    status_is($c->get("/api/v1/contacts?cursor=$place&" . join "&", @$_), 200,
        "@$_") for [reverse @fields], \@fields;
};

subtest "13.3 a filter that says its default is no other one" => sub {
    for my $case ([contacts => "tags_match=any", "tags_match=all"],
        [companies => "tags_match=any", "tags_match=all"],
        [conversations => "include_deleted=false", "include_deleted=1"],
        ["pipeline-cards" => "include_archived=0", "include_archived=true"],
        [submissions => "include_internal=FALSE", "include_internal=true"],
        [messages => "include=metadata", "role=user"]) {
        my ($list, $same, $other) = @$case;
        my $next = sub {
            my ($query) = @_;
            return $c->get("/api/v1/$list?page_size=1&cursor=*&$query")
                ->json->{pagination}{next_cursor} // "none";
        };
        my ($without, $with) = ($next->(""), $next->($same));
        is($with, $without, "$list?$same: the same place");
        status_is($c->get("/api/v1/$list?$same&cursor=$without"), 200,
            "$list?$same: goes on");
        error_is($c->get("/api/v1/$list?$other&cursor=$with"), 422,
            "validation_error", "$list?$other: another list", ["cursor"]);
    }
};

subtest "13.3 a cursor is of its parent" => sub {
    for my $path (grep { /\{id\}/ } @lists) {
        my ($parents, $below) = $path =~ m{^(.*)/\{id\}/(.*)};
        my $one = $samples->id_for($path);
        my ($two) = grep { $_ ne $one } @{$c->get($parents)->ids};
        my $r = $c->get(address_of($path), query => { cursor => "*",
            page_size => 1 });
        my $cursor = $r->json->{pagination}{next_cursor};
        ok($two && $cursor, "$path: there is more, and another parent") or next;
        status_is($c->get("$parents/$one/$below?cursor=$cursor"), 200,
            "$path: its own");
        error_is($c->get("$parents/$two/$below?cursor=$cursor"), 422,
            "validation_error", "$path: another parent's", ["cursor"]);
    }
};

subtest "13.3 rows that do not change are seen exactly once" => sub {
    my $busy = workspace($httpd, twin => 0);
    my $import = sub {
        my ($name, $count) = @_;
        return $busy->import_objects([map { { object => "contact",
            bot_id => $busy->agent, first_name => $name, created_at => sprintf
                "2026-01-01T00:%02d:%02d.%03dZ", $_ / 180_000,
                $_ / 3000 % 60, $_ / 3 % 1000 } } 1 .. $count]);
    };
    my @still = $import->("still", $ROWS);
    my @moving = $import->("moving", $ROWS / 3);
    pipe(my $until, my $done) or die "pipe: $!\n";
    my @writers = map { my $n = $_; CrmTest::Child->start(sub {
        close $done;
        my $client = $busy->client;
        my $select = IO::Select->new($until);
        my %count = (post => 0, patch => 0, delete => 0);
        my @own = @moving[grep { $_ % $WRITERS == $n } 0 .. $#moving];
        until ($select->can_read(0)) {
            my $made = $client->post("/api/v1/contacts",
                { bot_id => $busy->agent, first_name => "new" });
            $count{post}++, push @own, $made->data->{id}
                if $made->status == 201;
            $count{patch}++ if $client->patch("/api/v1/contacts/"
                . $own[rand @own], { first_name => "moved" })->status == 200;
            my $gone = $count{post} % 2 ? shift @own : pop @own;
            $count{delete}++ if $client->delete("/api/v1/contacts/$gone")
                ->status == 204;
        }
        return \%count;
    }) } 0 .. $WRITERS - 1;
    my $reader = $busy->client;
    for my $walk (1 .. $WALKS) {
        my ($cursor, %seen) = ("*");
        while (defined $cursor) {
            my $r = $reader->get("/api/v1/contacts", query =>
                { cursor => $cursor, page_size => $PAGE, order => "desc",
                    sort => $walk % 2 ? "created_at" : "updated_at" });
            $seen{$_}++ for @{$r->ids};
            $cursor = $r->json->{pagination}{next_cursor};
        }
        is_deeply([grep { ($seen{$_} // 0) != 1 } @still], [],
            "walk $walk: each untouched row once");
        is_deeply([grep { $seen{$_} > 1 } keys %seen], [],
            "walk $walk: and no other twice");
    }
    close $done;
    my @counts = map { $_->result } @writers;
    for my $kind (qw(post patch delete)) {
        my $sum = sum(map { $_->{$kind} } @counts);
        note("$sum times $kind");
        cmp_ok($sum, ">", $WRITERS, "they did $kind");
    }
};

$httpd->stop;
done_testing;
