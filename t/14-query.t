# SPDX-License-Identifier: Apache-2.0
# 14-query.t: query parameters, pages, orders, totals (contract 7)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data qw(in_processes total_of);

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

# A list is those of ROWS (name => id) that are in WANTED (names), in that
# order unless SORTED, and its total is right.
sub lists {
    my ($c, $path, $query, $rows, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my %name_of = reverse %$rows;
    my $r = $c->get("/api/v1$path", query => $query);
    my $asked = ref $query ? join "&", map { my $n = $_; map { "$n=$_" }
        ref $query->{$n} ? @{$query->{$n}} : $query->{$n} } sort keys %$query
        : $query // "";
    $name = ($name ? "$name: " : "") . "$path?$asked";
    my $ok = status_is($r, 200, $name) or return;
    my @got = map { $name_of{$_->{id}} // "?$_->{id}" } @{$r->data};
    $ok = is_deeply([sort @got], [sort @$wanted], $name);
    $ok &= is($r->json->{pagination}{total}, scalar @$wanted,
        "$name: total") if $r->json->{pagination} && $asked !~ /page/;
    diag($r->text) unless $ok;
    return $r;
}

sub refused {
    my ($c, $path, $query, $field, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $r = $c->get("/api/v1$path", query => $query);
    my $asked = ref $query ? join "&", map { "$_=" . (ref $query->{$_}
        ? "..." : $query->{$_}) } sort keys %$query : $query;
    error_is($r, 422, "validation_error", "$name: $path?$asked",
        ref $field ? $field : [$field]);
}

# --- contacts -----------------------------------------------------------------

my $w = workspace($httpd);
my $c = $w->client;
my ($second) = $w->import_objects([{ object => "agent", name => "Bo",
    agent_type => "internal", slug => "bo", enabled => false,
    is_agent => false, summary => "Second line",
    created_at => "2024-01-01T00:00:00.000Z" },
]);
my $agent = $w->agent;
my %contact;
{
    my @rows = (
        [ann => { first_name => "Ann", last_name => "Äpfel",
            emails => [{ email => "Ann\@Example.com" },
                { email => "second_ann\@x.org" }],
            phone_numbers => [{ phone_number => "+1 (555) 010-1234" }],
            company => "Straße & Co", tags => ["vip", "Berlin", "50%"],
            lead_source => "web", pipeline_stage_id => ($w->stages)[0],
            created_at => "2026-01-01T00:00:00.000Z",
            updated_at => "2026-02-01T00:00:00.000Z" }],
        [bob => { first_name => "Bob", last_name => "O'Neil",
            emails => [{ email => "bob+tag\@example.com" }],
            phone_numbers => [{ phone_number => "030/99 88" },
                { phone_number => "+49301112223" }],
            tags => ["vip", "a b"], lead_source => "Web",
            pipeline_stage_id => ($w->stages)[1], bot_id => $second,
            created_at => "2026-01-02T12:30:00.123Z",
            updated_at => "2026-01-02T12:30:00.123Z" }],
        [cyd => { first_name => "ΣΊΣΥΦΟΣ", last_name => "100%_sure",
            company => "back\\slash", tags => ["berlin", "Smith, John"],
            lead_source => "ads and more",
            created_at => "2026-01-03T00:00:00.500Z",
            updated_at => "2026-01-03T00:00:00.500Z" }],
        [dee => { last_name => "ÉCOLE", tags => ["John", "6\" pipe, long",
                "6\" nail"], notes => "vip Ann",
            created_at => "2026-01-03T00:00:00.500Z",
            updated_at => "2026-03-01T00:00:00.000Z" }],
    );
    my @ids = $w->import_objects([map { { object => "contact",
        bot_id => $agent, %{$_->[1]} } } @rows]);
    @contact{map { $_->[0] } @rows} = @ids;
}
my @ALL = sort keys %contact;

subtest "contacts: search (7.8)" => sub {
    for my $case (
        ["ann", "ann"], ["ANN", "ann"], ["nn", "ann"],
        ["ann äpfel", "ann", "both names together"],
        ["ANN ÄPF", "ann", "without case means Unicode's"],
        ["n Ä", "ann", "across the two names"],
        ["strasse", "", "ß is not ss"], ["STRAßE", "ann", "company"],
        ["σίσυφος", "cyd", "Greek, with its final sigma"],
        ["σίσυφοσ", "cyd", "and with the other one"],
        ["ΣΊΣ", "cyd"], ["école", "dee"], ["École", "dee"],
        ["ann\@example.com", "ann", "e-mail"],
        ["ANN\@EXAMPLE", "ann", "e-mail without case"],
        ["second_ann", "ann", "every e-mail"],
        ["secondXann", "", "_ is itself"],
        ["example.com", "ann bob"],
        ["100%", "cyd", "% is itself"], ["1%0", ""],
        ["%", "cyd", "a lone %"], ["_", "ann cyd", "a lone _"],
        ["\\", "cyd", "a backslash"], ["back\\slash", "cyd"],
        ["o'neil", "bob", "a quote"], ["'", "bob"],
        ["+1 (555)", "ann", "a phone number as it was written"],
        ["5550101234", "ann", "digits to digits"],
        ["555-010-1234", "ann", "digits to digits, written otherwise"],
        ["+15550101234", "ann", "in E.164"],
        ["0301112223", "bob", "digits without a leading 0"],
        ["00301112223", "bob", "or 00"],
        ["0309988", "bob", "that it begins with"],
        ["0309989", "", "other digits"],
        ["0555010", "ann", "a part of them"],
        ["301112223", "bob", "every phone number"],
        ["309988", "bob", "the first one"],
        ["1234 030", "", "not across two numbers"],
        ["& co", "ann"], ["vip", "", "not in tags or notes"],
        ["web", "", "nor in the lead source"],
        ["zzz", ""], ["b", "bob cyd", "one letter"],
        ["an", "ann", "two letters"],
        ["  ann\x{2003}", "ann", "the text is trimmed"],
        ["a\x{308}pfel", "ann", "NFD finds NFC"],
        ["E\x{301}cole", "dee", "without case, too"],
    ) {
        my ($search, $wanted, $name) = @$case;
        lists($c, "/contacts", { search => $search }, \%contact,
            [split / /, $wanted], $name ? "7.8 $name" : "7.8");
    }
    lists($c, "/contacts", { search => "" }, \%contact, \@ALL,
        "7.3 an empty search is no filter");
    lists($c, "/contacts", { search => "x" x 200 }, \%contact, [],
        "7.8 200 characters");
    lists($c, "/contacts", { search => " \t\x{3000}" }, \%contact, \@ALL,
        "7.3, 7.8 nor is one of blanks");
    refused($c, "/contacts", { search => "x" x 201 }, "search", "7.8 201");
    lists($c, "/contacts", { search => "ä" x 200 }, \%contact, [],
        "7.8 200 characters of two bytes");
    refused($c, "/contacts", "search=%00", "search", "U+0000");
    refused($c, "/contacts", "search=a%00b", "search", "U+0000 within");
    refused($c, "/contacts", "search=%ff", "search", "invalid UTF-8");
    refused($c, "/contacts", "search=%zz", "search", "a bad escape");
    lists($c, "/contacts", "search=Ann+%C3%84pfel", \%contact, ["ann"],
        "+ is a space");
    lists($c, "/contacts", "search=Ann%20%C3%84pfel", \%contact, ["ann"],
        "%20, too");
};

subtest "7.5 a '+' in an address that arrived as a space" => sub {
    my $own = workspace($httpd);
    my ($jane, $word) = map { $own->contact(%$_)->{id} }
        { emails => ["jane+shop\@example.com"] },
        { first_name => "Jane Shop", company => "jane shop\@home" };
    my %id = (jane => $jane, word => $word);
    for my $case (["jane%2Bshop\@example.com", "jane"],
            ["jane+shop\@example.com", "jane"], ["E+Shop%40", "jane word"],
            ["jane+shop\@home", "word", "nor is a space lost"],
            ["jane+shop", "word", "what is no address"]) {
        my ($query, $wanted, $name) = @$case;
        lists($own->client, "/contacts", "search=$query", \%id,
            [split / /, $wanted], $name // "7.5 search=$query");
    }
};

subtest "contacts: phone numbers, digits to digits (7.8)" => sub {
    my ($own, $other) = (workspace($httpd), workspace($httpd));
    my %numbers = (
        zero => ["+49 (0) 151 5550009"], wide => ["\x{ff0b}49 171 5550009"],
        arabic => ["+\x{664}\x{669} 1725550009"], words => ["+1-800-FLOWERS 22"],
        domestic => ["0160 5550009", "+49 30 5550009"],
        abroad => ["+43 160 5550009"]);
    my @names = sort keys %numbers;
    my %id;
    @id{@names} = $own->import_objects([map { { object => "contact",
        bot_id => $own->agent, first_name => $_,
        phone_numbers => $numbers{$_} } } @names]);
    # what begins so in another workspace does not matter
    $other->import_objects([{ object => "contact", bot_id => $other->agent,
        phone_numbers => ["0151 5550009", "0305550009"] }]);
    for my $case (
        ["+49 151 5550009", "zero", "a trunk zero is not a part of it"],
        ["0151 5550009", "zero", "as it is dialled there"],
        ["0049 151 555", "zero", "as it is dialled from elsewhere"],
        ["+49 (0) 151 5550009", "zero", "as it was sent"],
        ["49 (0) 151", "zero", "a part of what was sent"],
        ["+491715550009", "wide", "full width"],
        ["491725550009", "arabic", "another script's digits"],
        ["\x{202a}+49 172 5550009\x{202c}", "arabic", "copied from a phone"],
        ["180022", "words", "one that is no number has its digits"],
        ["+1-800-flowers", "words", "and its text"],
        ["01605550009", "domestic", "what begins so goes before"],
        ["1605550009", "abroad domestic", "without the zero: both"],
        ["0305550009", "domestic", "the second number"],
        ["5550009", "abroad arabic domestic wide zero", "the end of all"],
    ) {
        my ($search, $wanted, $name) = @$case;
        lists($own->client, "/contacts", { search => $search }, \%id,
            [split / /, $wanted], "7.8 $name");
    }
};

subtest "contacts: tags (7.4)" => sub {
    for my $case (
        ["vip", "ann bob"], ["VIP", "", "exact case"],
        ["Berlin", "ann"], ["berlin", "cyd"],
        ["Berlin,berlin", "ann cyd", "any of them"],
        ["vip,berlin", "ann bob cyd"], [" vip , berlin ", "ann bob cyd",
            "trimmed"],
        ["a b", "bob", "a blank within"], ["none,vip", "ann bob"],
        ["vi", "", "the whole tag"], ["50%", "ann"], ["%", ""],
        ["{vip}", "", "braces are themselves"],
        ["\"vip\"", "ann bob", "quotes are around a tag"],
        [" \" vip \" , none", "ann bob", "it is trimmed in quotes, too"],
        ["\"Smith, John\"", "cyd", "in quotes a comma is a part of the tag"],
        ["\"Smith, John\",vip", "ann bob cyd", "beside another"],
        ["Berlin,\"Smith, John\"", "ann cyd", "after another"],
        ["Smith, John", "dee", "without quotes it is not"],
        ["\"6\"\" pipe, long\"", "dee", "a quote in quotes is two"],
        ["6\" nail", "dee", "a quote within a tag is itself"],
        ["\"6\"\" nail\"", "dee", "or in quotes"],
        ["\"vip", "", "quotes that do not end are themselves"],
        ["\"vip\"x", "", "as is text after them"],
        ["vip,vip", "ann bob"],
    ) {
        my ($tags, $wanted, $name) = @$case;
        lists($c, "/contacts", { tags => $tags }, \%contact,
            [split / /, $wanted], $name ? "7.4 $name" : "7.4");
    }
    lists($c, "/contacts", { tags => "" }, \%contact, \@ALL,
        "7.3 empty tags are no filter");
    lists($c, "/contacts", { tags => "vip,Berlin", tags_match => "all" },
        \%contact, ["ann"], "7.4 tags_match=all");
    lists($c, "/contacts", { tags => "vip,Berlin", tags_match => "any" },
        \%contact, ["ann", "bob"], "7.4 tags_match=any");
    lists($c, "/contacts", { tags => "vip", tags_match => "all" }, \%contact,
        ["ann", "bob"], "7.4 all of one");
    refused($c, "/contacts", { tags => "vip", tags_match => "none" },
        "tags_match", "7.4");
};

subtest "contacts: the other filters" => sub {
    my ($new, $talking) = ($w->stages)[0, 1];
    lists($c, "/contacts", { lead_source => "web" }, \%contact, ["ann"],
        "7.8 exact");
    lists($c, "/contacts", { lead_source => "we" }, \%contact, []);
    lists($c, "/contacts", { lead_source => "ads and more" }, \%contact,
        ["cyd"]);
    lists($c, "/contacts", { pipeline_stage_id => $new }, \%contact, ["ann"]);
    lists($c, "/contacts", { pipeline_stage_id => uc $talking }, \%contact,
        ["bob"], "an id in capitals");
    lists($c, "/contacts", { bot_id => $agent }, \%contact,
        [qw(ann cyd dee)]);
    lists($c, "/contacts", { bot_id => $second }, \%contact, ["bob"]);
    for my $field (qw(bot_id pipeline_stage_id)) {
        for my $bad (uuid(), "nonsense", $w->twin_of($agent),
                $w->twin_of($new), "'", "0") {
            lists($c, "/contacts", { $field => $bad }, \%contact, [],
                "6.8 in a filter: an empty list");
        }
    }
    lists($c, "/contacts", { bot_id => $agent, tags => "vip",
        search => "ann", lead_source => "web", pipeline_stage_id => $new,
        created_after => "2026-01-01", updated_after => "2026-01-15" },
        \%contact, ["ann"], "all together");
    lists($c, "/contacts", { bot_id => $second, tags => "vip",
        search => "ann" }, \%contact, [], "all must hold");
};

subtest "contacts: times (7.5)" => sub {
    for my $case (
        ["created_after", "2026-01-02T12:30:00.123Z", "bob cyd dee",
            "inclusive"],
        ["created_after", "2026-01-02T12:30:00.124Z", "cyd dee"],
        ["created_after", "2026-01-02T12:30:00.1231Z", "cyd dee",
            "finer than milliseconds"],
        ["created_before", "2026-01-02T12:30:00.123Z", "ann bob",
            "inclusive"],
        ["created_before", "2026-01-02T12:30:00.122Z", "ann"],
        ["created_before", "2026-01-02T12:30:00.1229999Z", "ann"],
        ["created_after", "2026-01-02", "bob cyd dee", "a date is 00:00Z"],
        ["created_before", "2026-01-01", "ann", "a date is 00:00Z"],
        ["created_before", "2026-01-02T00:00:00", "ann",
            "without an offset: UTC"],
        ["created_after", "2026-01-02T13:30:00.123+01:00", "bob cyd dee",
            "an offset"],
        ["created_after", "2026-01-02T13:30:00.124+01:00", "cyd dee"],
        ["created_before", "2026-01-02T07:00:00.123-05:30", "ann bob",
            "a negative offset"],
        ["created_after", "2026-01-03t00:00:00.5z", "cyd dee",
            "small letters"],
        ["updated_after", "2026-02-01T00:00:00Z", "ann dee", "inclusive"],
        ["updated_after", "2026-02-01T00:00:00.001Z", "dee"],
        ["created_after", "1970-01-01", "ann bob cyd dee"],
        ["created_after", "2999-01-01T00:00:00Z", ""],
        ["created_after", "2024-02-29", "ann bob cyd dee", "a leap day"],
    ) {
        my ($field, $value, $wanted, $name) = @$case;
        lists($c, "/contacts", { $field => $value }, \%contact,
            [split / /, $wanted], $name ? "7.5 $name" : "7.5");
    }
    lists($c, "/contacts", "created_after=2026-01-02T13:30:00.123+01:00",
        \%contact, [qw(bob cyd dee)],
        "7.5 a + that arrived as a space is repaired");
    lists($c, "/contacts", "created_after=2026-01-02T13:30:00.124+01:00",
        \%contact, [qw(cyd dee)], "7.5 and counts");
    for my $offset ("+0100", "+01", "%2B0100", "%2B01", "%20+01") {
        my $is = $offset eq "%20+01" ? \&refused : \&lists;
        $is->($c, "/contacts", "created_after=2026-01-02T13:30:00,123$offset",
            $is == \&refused ? "created_after"
            : (\%contact, [qw(bob cyd dee)]), "7.5 as people send it");
    }
    lists($c, "/contacts", "created_before=2026-01-02T12:31Z", \%contact,
        [qw(ann bob)], "7.5 Z without seconds");
    lists($c, "/contacts", "created_before=2026-01-02T12:30", \%contact,
        ["ann"], "7.5 neither seconds nor offset");
    lists($c, "/contacts", { created_after => "2026-01-02",
        created_before => "2026-01-02T23:59:59.999Z" }, \%contact, ["bob"],
        "7.5 both bounds");
    lists($c, "/contacts", { created_after => "2026-01-03",
        created_before => "2026-01-02" }, \%contact, [], "the wrong way");
    for my $bad ("yesterday", "2026", "2026-13-01", "2026-02-30",
            "2025-02-29", "2026-01-01T25:00:00Z", "2026-01-01T00:60:00Z",
            "2026-1-1", "01/02/2026", "1767225600", "2026-01-01T00",
            "2026-W01-1", "2026-001",
            "2026-01-01T00:00:00ZZ", "2026-01-01T00:00:00+1", "now",
            "infinity", "2026-01-01T00:00:00.Z", "20260101", " 2026-01-01",
            "2026-01-01T", "2026-01-01 ", "0000-00-00", "") {
        for my $field (qw(created_after created_before updated_after)) {
            refused($c, "/contacts", { $field => $bad }, $field, "7.5");
        }
    }
};

subtest "9.1 a time that was returned is an inclusive bound" => sub {
    my $made = $c->post("/api/v1/contacts", { bot_id => $agent })->data;
    for my $row ($made, map { $c->get("/api/v1/contacts/$contact{$_}")->data }
            @ALL) {
        my $r = $c->get("/api/v1/contacts", query => {
            created_after => $row->{created_at},
            created_before => $row->{created_at} });
        ok((grep { $_ eq $row->{id} } @{$r->ids}),
            "9.1 $row->{created_at} finds its own row") or diag($r->text);
        $r = $c->get("/api/v1/contacts",
            query => { updated_after => $row->{updated_at} });
        ok((grep { $_ eq $row->{id} } @{$r->ids}), "and as updated_after");
    }
    status_is($c->delete("/api/v1/contacts/$made->{id}"), 204);
};

subtest "contacts: by-email (7.8)" => sub {
    my $by = sub {
        my ($query) = @_;
        return $c->get("/api/v1/contacts/by-email", query => $query);
    };
    is($by->({ email => "Ann\@Example.com" })->data->{id}, $contact{ann},
        "as it is");
    is($by->({ email => "ANN\@EXAMPLE.COM" })->data->{id}, $contact{ann},
        "without case");
    is($by->({ email => "bob+tag\@example.com" })->data->{id}, $contact{bob},
        "with a +, encoded");
    is($by->("email=bob+tag\@example.com")->data->{id}, $contact{bob},
        "7.5 a + that arrived as a space is repaired");
    for my $none ("second_ann\@x.org", "nobody\@example.com", "malformed",
            "a\@b\@c", "\@", "%", "ann\@example.co_", "a" x 300 . "\@x.org") {
        error_is($by->({ email => $none }), 404, "not_found",
            "7.8 404: " . substr $none, 0, 30);
    }
    error_is($by->(undef), 422, "validation_error", "7.8 missing",
        ["email"]);
    error_is($by->({ email => "" }), 422, "validation_error", "7.3 empty",
        ["email"]);
    error_is($by->("email"), 422, "validation_error", "without a value",
        ["email"]);
    error_is($by->({ email => ["a\@x.org", "b\@x.org"] }), 422,
        "validation_error", "7.1 twice", ["email"]);
};

# --- pages --------------------------------------------------------------------

subtest "7.2 pages" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %id;
    my $page = sub {
        my ($query) = @_;
        my $r = $c->get("/api/v1/contacts", query => $query);
        status_is($r, 200, "page " . join "&", %$query);
        return ($r->data, $r->json->{pagination});
    };
    my ($data, $pagination) = $page->({});
    is_deeply([$data, $pagination], [[], { page => 1, page_size => 25,
        total => 0, total_pages => 0 }], "7.2 nothing: total_pages is 0");
    ($data, $pagination) = $page->({ page => 5 });
    is_deeply([$data, $pagination], [[], { page => 5, page_size => 25,
        total => 0, total_pages => 0 }], "7.2 page 5 of nothing");
    my @ids = reverse $w->import_objects([map { { object => "contact",
        bot_id => $w->agent, first_name => "N$_",
        created_at => sprintf "2026-01-01T00:%02d:00.000Z", $_ / 3 }
        } 1 .. 110]);
    for my $size (1, 7, 25, 100) {
        my (@seen, %total);
        my $pages = int((110 + $size - 1) / $size);
        for my $n (1 .. $pages) {
            next if $size == 1 && $n > 5 && $n < 106;
            my $r = $c->get("/api/v1/contacts",
                query => { page => $n, page_size => $size });
            push @seen, map { [$_->{created_at}, $_->{id}] } @{$r->data};
            $total{join ",", map { $r->json->{pagination}{$_} }
                qw(page_size total total_pages)}++;
        }
        is_deeply([keys %total], ["$size,110,$pages"],
            "7.2 pagination with page_size $size");
        is(scalar @seen, $size == 1 ? 10 : 110, "all rows, each once");
        my @sorted = sort { $b->[0] cmp $a->[0] || $b->[1] cmp $a->[1] }
            @seen;
        is_deeply(\@seen, \@sorted,
            "7.10 created_at descending, then id: total over all pages");
        my %once = map { $_->[1] => 1 } @seen;
        is(scalar keys %once, scalar @seen, "no row twice");
    }
    ($data, $pagination) = $page->({ page => 6 });
    is_deeply([$data, $pagination], [[], { page => 6, page_size => 25,
        total => 110, total_pages => 5 }],
        "7.2 past the end: 200, empty data, the true total");
    ($data, $pagination) = $page->({ page => 1_000_000, page_size => 100 });
    is_deeply([$data, $pagination->{total}], [[], 110], "far past the end");
    for my $far (100_000_001, 4_294_967_297, 9_007_199_254_740_991) {
        for my $query ({}, { search => "N1" }, { tags => "none" },
                { bot_id => $w->agent }) {
            ($data, $pagination) = $page->({ %$query, page => $far,
                page_size => 100 });
            is_deeply([$data, $pagination->{page}], [[], $far],
                "7.2 any integer from 1 on: $far @{[%$query]}");
        }
        is_deeply($c->get("/api/v1$_", query => "page=$far&page_size=100")
            ->data, [], "7.2 page $far of $_") for qw(/agents /companies
            /pipelines /pipeline-cards /conversations /forms);
    }
    ($data, $pagination) = $page->({ page => 2, page_size => 100 });
    is(scalar @$data, 10, "the last page is what is left");
    ($data, $pagination) = $page->({ search => "N1", page_size => 5 });
    is_deeply([scalar @$data, $pagination], [5, { page => 1, page_size => 5,
        total => 22, total_pages => 5 }], "7.11 the total of a search");
    ($data, $pagination) = $page->({ search => "N1", page => 9 });
    is_deeply([$data, $pagination->{total}], [[], 22],
        "7.2 past the end of a search");
    for my $path (qw(/agents /contacts /companies /pipelines /pipeline-cards
            /conversations /forms)) {
        for my $bad ("0", "-1", "1.5", "x", "", " 1", "1 ", "0x1", "1e1",
                "99999999999999999999", "%2B1", "null") {
            refused($c, $path, "page=" . $bad =~ s/ /%20/gr, "page", "7.2");
            refused($c, $path, "page_size=" . $bad =~ s/ /%20/gr, "page_size",
                "7.2");
        }
        refused($c, $path, "page_size=101", "page_size", "7.2");
        refused($c, $path, "page=1&page=2", "page", "7.1 twice");
        refused($c, $path, "page=0&page_size=0", ["page", "page_size"],
            "5.6 both");
        is($c->get("/api/v1$path", query => "page_size=100")
            ->json->{pagination}{page_size}, 100, "page_size 100 of $path");
    }
};

subtest "7.1 unknown parameters, the same one twice" => sub {
    my %told = ("foo=bar" => "foo", "foo" => "foo", "=" => undef,
        "&&" => undef, "foo=%zz" => "foo", "%ff=1" => "%25ff",
        "foo=1&foo=2" => "foo", "Page=0" => "Page", "a=b=c" => "a",
        "offset=1&per_page=2" => "offset, per_page",
        "x[]=1&foo[bar]=2" => "x[], foo[bar]",
        "a%2Cb%0d%0aX:=1" => "a%2Cb%0D%0AX%3A", "%c3%a4=1" => "%C3%A4",
        join("&", map { "a$_=secret" } 1 .. 12) =>
            join(", ", map { "a$_" } 1 .. 10), "x" x 70 => "x" x 64);
    for my $path (qw(/agents /contacts /companies /pipelines /pipeline-cards
            /conversations /forms), "/agents/$agent",
            "/contacts/$contact{ann}") {
        my $plain = $c->get("/api/v1$path");
        status_is($plain, 200);
        is($plain->header("X-Ignored-Parameters"), undef, "none to tell");
        for my $odd (sort keys %told) {
            my $r = $c->get("/api/v1$path", query => $odd);
            is($r->body, $plain->body, "7.1 $path?$odd: ignored");
            is($r->header("X-Ignored-Parameters"), $told{$odd},
                "7.1 and told");
        }
        for my $odd ("page[]=1", "page[number]=1", "page[=1") {
            my $r = $c->get("/api/v1$path", query => $odd);
            if ($path =~ m{/.*/}) {
                is($r->header("X-Ignored-Parameters"),
                    $odd =~ s/=.*//r, "7.1 $path has no page: $odd");
                next;
            }
            error_is($r, 422, "validation_error", "7.1 $path?$odd",
                [$odd =~ s/=.*//r]);
        }
        error_is($c->get("/api/v1$path", query => "foo=bar&a=b",
            headers => { Prefer => "handling=strict" }), 422,
            "validation_error", "7.1 Prefer: handling=strict: $path",
            ["a", "foo"]);
    }
    status_is($c->get("/api/v1/contacts", query => "search=a&page=1&tags=b",
        headers => { Prefer => "handling=strict" }), 200,
        "7.1 strict: what is known is known");
    my $r = $c->get("/api/v1/contacts?" . join("&", map { "$_=1" } qw(tag pagesize
        createdAfter custom_field stage x)), headers => { Prefer => "handling=strict" });
    is_deeply({ map { $_->{field} => $_->{message} }
        @{$r->json->{error}{details}} }, { x => "is not a known parameter",
        custom_field => "is not a known parameter",
        map { ($_->[0] => "is not a known parameter; did you mean $_->[1]?") }
        [tag => "tags"], [pagesize => "page_size"], [stage => "pipeline_stage_id"],
        [createdAfter => "created_after"] }, "7.1 strict: the near ones");
    for my $case (["/contacts", limit => "page_size", perPage => "page_size",
                offset => "page", q => "search", order_by => "sort", since => "created_after",
                expand => undef, fields => undef, filter => undef,
                modified_since => "updated_after", mobile => undef],
            ["/conversations", per_page => "page_size", owner => "assigned_to"],
            ["/messages", expand => "include"],
            ["/events", offset => "cursor", limit => "page_size", sort => undef],
            ["/pipelines", sort => undef, fields => undef, expand => undef]) {
        my ($path, %asked) = @$case;
        my %said = map { $_->{field} => $_->{message} } @{$c->get("/api/v1$path?"
            . join("&", map { "$_=1" } sort keys %asked),
            headers => { Prefer => "handling=strict" })->json->{error}{details}};
        my %none = (filter => "; each filter is a parameter of its own",
            sort => "; the list has one order", fields => "; an answer has all fields",
            expand => "; an object names others by their ids");
        is($said{$_}, "is not a known parameter" . (defined $asked{$_}
            ? "; did you mean $asked{$_}?" : $none{$_} // ""), "$path?$_")
            for sort keys %asked;
    }
    for my $name (qw(search lead_source bot_id created_after tags
            pipeline_stage_id ids sort page_size cursor)) {
        refused($c, "/contacts", "$name\[]=vip", "$name\[]",
            "7.1 a known name with brackets");
    }
    refused($c, "/contacts", "created_after[gte]=2026-01-01&tags[0]=a",
        ["created_after[gte]", "tags[0]"], "7.1 brackets with text");
    refused($c, "/contacts/by-email", "email=ann\@example.com&email[]=x",
        "email[]", "7.1 beside the name itself");
    refused($c, "/events", "page=1", "page", "7.1 where there is no page");
    refused($c, "/events", "page[]=1&page_size[]=1", ["page[]",
        "page_size[]"], "7.1 nor with brackets");
    is($c->get("/api/v1/events", query => "order=asc&kind=x&sort[]=a")
        ->header("X-Ignored-Parameters"), "order, kind, sort[]",
        "7.1 others are told");
    {
        my $r = $c->patch("/api/v1/contacts/$contact{dee}?dry_run=1", {});
        status_is($r, 200, "7.1 of a PATCH, too");
        is($r->header("X-Ignored-Parameters"), "dry_run", "7.1 it is told");
        my $from = $c->post("/api/v1/contacts", { bot_id => $agent })->data->{id};
        $r = $c->post("/api/v1/contacts/$contact{dee}/merge?a=1&b=2",
            { from => $from });
        status_is($r, 200, "7.1 of what reads the row afterwards, too");
        is($r->header("X-Ignored-Parameters"), "a, b", "7.1 each is told once");
        $r = $c->get("/api/v1/contacts", query => "page=0&dry_run=1");
        error_is($r, 422, "validation_error", "7.1 beside an error", ["page"]);
        is($r->header("X-Ignored-Parameters"), "dry_run", "7.1 it is told");
        my $site = httpd(database => $database,
            conf => "CrmApiUnknownParameters refuse\n");
        my $of = $w->client(port => $site->{port});
        error_is($of->get("/api/v1/contacts", query => "foo=1&search=a"), 422,
            "validation_error", "7.1 CrmApiUnknownParameters refuse", ["foo"]);
        status_is($of->get("/api/v1/contacts", query => "search=a"), 200,
            "7.1 what is known is known there");
        $site->stop;
    }
    for my $name (qw(search lead_source bot_id created_after tags
            pipeline_stage_id)) {
        refused($c, "/contacts", { $name => ["2026-01-01", "2026-01-01"] },
            $name, "7.1 twice, even the same");
    }
    for my $name (qw(lead_source bot_id pipeline_stage_id created_after
            created_before updated_after tags_match)) {
        refused($c, "/contacts", "$name=", $name, "7.3 empty");
        refused($c, "/contacts", $name, $name, "7.3 without a value");
    }
    error_is($c->get("/api/v1/contacts", query => { page => 0,
        created_after => "x", tags_match => "y", page_size => 1000 }), 422,
        "validation_error", "5.6 every wrong parameter at once",
        ["created_after", "page", "page_size", "tags_match"]);
    lists($c, "/contacts", "se%61rch=an%6e", \%contact, ["ann"],
        "names are decoded, too");
};

subtest "13.3 updated_after and updated_before" => sub {
    my $own = workspace($httpd);
    my $of = $own->client;
    my $stage = ($own->stages)[0];
    my $at = sub { "2026-05-0$_[0]T00:00:00.00$_[0]Z" };
    my %make = (contacts => { object => "contact", bot_id => $own->agent },
        companies => { object => "company", name => "x",
            bot_id => $own->agent },
        "pipeline-cards" => { object => "pipeline_card", title => "x",
            pipeline_stage_id => $stage },
        conversations => { object => "conversation", type => "chat",
            bot_id => $own->agent });
    for my $path (sort keys %make) {
        my %rows;
        @rows{qw(a b c)} = $own->import_objects([map { { %{$make{$path}},
            created_at => "2026-04-0" . (4 - $_), updated_at => $at->($_) } }
            1 .. 3]);
        for my $case ($path eq "pipeline-cards" ? ()    # the others have these, too
            : ([{ created_after => "2026-04-02" }, "a b"],
                [{ created_before => "2026-04-02" }, "b c"]),
            [{ updated_after => $at->(2) }, "b c"],
            [{ updated_before => $at->(2) }, "a b"],
            [{ updated_after => $at->(2), updated_before => $at->(2) }, "b"],
            [{ updated_before => "2026-05-02" }, "a"],
            [{ updated_after => "2026-05-04" }, ""],
            [{ updated_before => $at->(2), sort => "updated_at",
                order => "desc" }, "a b"],
        ) {
            my ($query, $wanted) = @$case;
            lists($of, "/$path", $query, \%rows, [split / /, $wanted],
                "13.3 inclusive");
        }
        my $walk = $of->get("/api/v1/$path", query => { cursor => "*",
            updated_before => $at->(2), page_size => 1,
            sort => "updated_at" });
        is_deeply($walk->ids, [$rows{a}], "13.3 by cursor: $path");
        refused($of, "/$path", { $_ => "soon" }, $_, "7.5")
            for qw(updated_after updated_before);
    }
};

# --- companies ----------------------------------------------------------------

subtest "companies: every filter" => sub {
    my %company;
    my @rows = (
        [acme => { name => "Acme ÄG", domain => "Acme.Example",
            industry => "Steel", tags => ["big"] }],
        [beta => { name => "Beta 50%", domain => "beta.example",
            industry => "steel", tags => ["big", "old"], bot_id => $second }],
        [zeta => { name => "Zeta" }],
    );
    @company{map { $_->[0] } @rows} = $w->import_objects([map { {
        object => "company", bot_id => $agent, %{$_->[1]} } } @rows]);
    for my $case (
        [{}, "acme beta zeta"],
        [{ search => "ACME" }, "acme"], [{ search => "äg" }, "acme"],
        [{ search => "a Ä" }, ""], [{ search => "e ä" }, "acme"],
        [{ search => "50%" }, "beta"], [{ search => "%" }, "beta"],
        [{ search => "example" }, "acme beta"],
        [{ search => "STEEL" }, "acme beta"],
        [{ search => "eta" }, "beta zeta"], [{ search => "big" }, ""],
        [{ search => "" }, "acme beta zeta"],
        [{ tags => "big" }, "acme beta"], [{ tags => "old,x" }, "beta"],
        [{ tags => "big,old", tags_match => "all" }, "beta"],
        [{ industry => "Steel" }, "acme"], [{ industry => "stee" }, ""],
        [{ domain => "acme.example" }, "acme"],
        [{ domain => "ACME.EXAMPLE" }, "acme"], [{ domain => "acme" }, ""],
        [{ bot_id => $second }, "beta"], [{ bot_id => $agent },
            "acme zeta"], [{ bot_id => uuid() }, ""], [{ bot_id => "x" }, ""],
        [{ bot_id => $second, industry => "Steel" }, ""],
    ) {
        my ($query, $wanted) = @$case;
        lists($c, "/companies", $query, \%company, [split / /, $wanted],
            "7.8");
    }
    refused($c, "/companies", "$_=", $_, "7.3 empty")
        for qw(industry domain bot_id);
    refused($c, "/companies", { search => "x" x 201 }, "search", "7.8");
};

# --- agents -------------------------------------------------------------------

subtest "agents: every filter" => sub {
    my ($both) = $w->import_objects([{ object => "agent", name => "Cé",
        slug => "Cee", agent_type => "both" }]);
    my %agent = (ada => $agent, bo => $second, ce => $both);
    for my $case (
        [{}, "ada bo ce"],
        [{ search => "ADA" }, "ada", "name"],
        [{ search => "CÉ" }, "ce", "name"],
        [{ search => "cee" }, "ce", "slug"],
        [{ search => "second" }, "bo", "summary"],
        [{ search => "ada answers" }, "", "not across"],
        [{ search => "%" }, ""], [{ search => "" }, "ada bo ce"],
        [{ slug => "ada" }, "ada"], [{ slug => "ADA" }, "", "exact"],
        [{ slug => "Cee" }, "ce"], [{ slug => "ad" }, ""],
        [{ is_agent => "true" }, "ada ce"], [{ is_agent => "false" }, "bo"],
        [{ is_agent => "TRUE" }, "ada ce"], [{ is_agent => "1" }, "ada ce"],
        [{ is_agent => "0" }, "bo"], [{ is_agent => "False" }, "bo"],
        [{ enabled => "false" }, "bo"], [{ enabled => "1" }, "ada ce"],
        [{ agent_type => "internal" }, "bo", "internal does not list both"],
        [{ agent_type => "external" }, "ada"],
        [{ agent_type => "both" }, "ce"],
        [{ agent_type => "internal", enabled => "true" }, ""],
    ) {
        my ($query, $wanted, $name) = @$case;
        lists($c, "/agents", $query, \%agent, [split / /, $wanted],
            $name ? "7.8 $name" : "7.3");
    }
    for my $bad ("yes", "no", "t", "f", "2", "on", "", " true", "truex",
            "null") {
        refused($c, "/agents", { $_ => $bad }, $_, "7.3")
            for qw(is_agent enabled);
    }
    for my $bad ("Internal", "none", "", "internal,both") {
        refused($c, "/agents", { agent_type => $bad }, "agent_type", "7.6");
    }
    refused($c, "/agents", "slug=", "slug", "7.3");
};

# --- conversations and messages -----------------------------------------------

my %talk;
{
    my @rows = (
        [chat => { type => 1, human => "Zoë", active => true,
            last_message => "Hello 100%", last_message_at =>
            "2026-05-01T00:00:00.000Z", created_at =>
            "2026-04-01T00:00:00.000Z", visitor_id => "v-1",
            assigned_to => "user-1", contact_id => $contact{ann} }],
        [call => { type => 2, phone_number => "+15550001", active => false,
            archived => true, archived_at => "2026-05-02T00:00:00.000Z",
            last_message_at => "2026-05-03T00:00:00.000Z", created_at =>
            "2026-04-02T00:00:00.000Z", human_takeover => true }],
        [sms => { type => 3, archived => false, created_at =>
            "2026-04-03T00:00:00.000Z", bot_id => $second,
            contact_id => $contact{ann} }],
        [mail => { type => 4, email => "Zed\@Example.com", internal => true,
            created_at => "2026-04-04T00:00:00.000Z", last_message_at =>
            "2026-05-01T00:00:00.000Z" }],
        [form => { type => 5, created_at => "2026-04-05T00:00:00.000Z" }],
        [gone => { type => 1, deleted => true, deleted_at =>
            "2026-05-01T00:00:00.000Z", created_at =>
            "2026-04-06T00:00:00.000Z", contact_id => $contact{ann} }],
    );
    @talk{map { $_->[0] } @rows} = $w->import_objects([map { {
        object => "conversation", bot_id => $agent, active => true,
        %{$_->[1]} } } @rows]);
}

subtest "conversations: every filter" => sub {
    my $all = "chat call sms mail form";
    for my $case (
        [{}, $all, "7.7 internal ones are listed, deleted ones are not"],
        [{ include_deleted => "true" }, "$all gone"],
        [{ include_deleted => "false" }, $all],
        [{ include_deleted => "1", type => "chat" }, "chat gone"],
        [{ bot_id => $second }, "sms"],
        [{ bot_id => $agent }, "chat call mail form"],
        [{ bot_id => uuid() }, ""], [{ bot_id => "x" }, ""],
        [{ contact_id => $contact{ann} }, "chat sms"],
        [{ contact_id => $contact{bob} }, ""], [{ contact_id => "x" }, ""],
        [{ visitor_id => "v-1" }, "chat"], [{ visitor_id => "V-1" }, ""],
        [{ assigned_to => "user-1" }, "chat"],
        [{ assigned_to => "user" }, ""],
        (map { [{ type => $_ }, "chat", "7.6"] } qw(1 chat)),
        (map { [{ type => $_ }, "call", "7.6"] } qw(2 phone voice call)),
        (map { [{ type => $_ }, "sms", "7.6"] } qw(3 text sms)),
        (map { [{ type => $_ }, "mail", "7.6"] } qw(4 email)),
        (map { [{ type => $_ }, "form", "7.6"] } qw(5 form)),
        [{ active => "true" }, "chat sms mail form"],
        [{ active => "0" }, "call"],
        [{ archived => "true" }, "call"],
        [{ archived => "false" }, "chat sms mail form",
            "7.7 archived=false also matches null"],
        [{ human_takeover => "true" }, "call"],
        [{ human_takeover => "false" }, "chat sms mail form"],
        [{ created_after => "2026-04-03T00:00:00Z" }, "sms mail form",
            "inclusive"],
        [{ created_before => "2026-04-03T00:00:00Z" }, "chat call sms",
            "inclusive"],
        [{ last_message_after => "2026-05-01T00:00:00Z" },
            "chat call mail", "inclusive"],
        [{ last_message_after => "2026-05-01T00:00:00.001Z" }, "call"],
        [{ last_message_before => "2026-05-01T00:00:00Z" }, "chat mail",
            "inclusive, and null is no time"],
        [{ search => "hello" }, "chat", "the latest message"],
        [{ search => "100%" }, "chat"], [{ search => "%" }, "chat"],
        [{ search => "ZOË" }, "chat", "the human's name"],
        [{ search => "zed\@example" }, "mail", "e-mail"],
        [{ search => "5550001" }, "call", "phone number"],
        [{ search => "v-1" }, "", "nothing else"],
        [{ search => "" }, $all],
        [{ type => "sms", bot_id => $second, contact_id => $contact{ann},
            active => "true", archived => "false" }, "sms", "together"],
    ) {
        my ($query, $wanted, $name) = @$case;
        lists($c, "/conversations", $query, \%talk, [split / /, $wanted],
            $name // "spec");
    }
    for my $bad ("Chat", "6", "0", "-1", "1.0", "fax", "", "chat,sms", "01") {
        refused($c, "/conversations", { type => $bad }, "type", "7.6");
    }
    for my $name (qw(active archived human_takeover include_deleted)) {
        refused($c, "/conversations", { $name => $_ }, $name, "7.3")
            for "yes", "";
    }
    for my $name (qw(created_after created_before last_message_after
            last_message_before)) {
        refused($c, "/conversations", { $name => $_ }, $name, "7.5")
            for "soon", "", "2026-02-30";
    }
    refused($c, "/conversations", { sort => $_ }, "sort", "7.6")
        for "id", "", "created_at,id", "CREATED_AT", "deleted_at";
    refused($c, "/conversations", { order => $_ }, "order", "7.6")
        for "up", "", "ASC", "descending";
    refused($c, "/conversations", "$_=", $_, "7.3")
        for qw(bot_id contact_id visitor_id assigned_to);
};

subtest "conversations: orders (7.10)" => sub {
    my %name_of = reverse %talk;
    for my $case (
        [{}, "form mail sms call chat"],
        [{ sort => "created_at" }, "form mail sms call chat"],
        [{ order => "desc" }, "form mail sms call chat"],
        [{ order => "asc" }, "chat call sms mail form"],
        [{ sort => "created_at", order => "asc" },
            "chat call sms mail form"],
        [{ sort => "last_message_at" }, "call [chat mail] [sms form]"],
        [{ sort => "last_message_at", order => "asc" },
            "[chat mail] call [sms form]", "null comes last in both"],
    ) {
        my ($query, $wanted) = @$case;
        my $down = ($query->{order} // "desc") eq "desc";
        # what ties is ordered by id
        $wanted =~ s{\[(.*?)\]}{join " ", sort { $down
            ? $talk{$b} cmp $talk{$a} : $talk{$a} cmp $talk{$b} }
            split / /, $1}ge;
        my $r = $c->get("/api/v1/conversations", query => $query);
        is(join(" ", map { $name_of{$_} } @{$r->ids}), $wanted,
            "7.10 " . join " ", %$query);
        my @paged = map { @{$c->get("/api/v1/conversations",
            query => { %$query, page => $_, page_size => 2 })->ids} } 1 .. 3;
        is(join(" ", map { $name_of{$_} } @paged), $wanted,
            "7.10 and over pages");
    }
};

subtest "7.9 a contact's conversations take the same" => sub {
    my $path = "/contacts/$contact{ann}/conversations";
    for my $case (
        [{}, "chat sms"], [{ include_deleted => "true" }, "chat sms gone"],
        [{ type => "sms" }, "sms"], [{ bot_id => $second }, "sms"],
        [{ visitor_id => "v-1" }, "chat"], [{ search => "hello" }, "chat"],
        [{ assigned_to => "user-1" }, "chat"], [{ active => "false" }, ""],
        [{ archived => "true" }, ""], [{ human_takeover => "false" },
            "chat sms"],
        [{ created_after => "2026-04-02" }, "sms"],
        [{ created_before => "2026-04-02" }, "chat"],
        [{ last_message_after => "2026-01-01" }, "chat"],
        [{ last_message_before => "2026-01-01" }, ""],
        [{ contact_id => $contact{ann} }, "chat sms"],
        [{ contact_id => $contact{bob} }, ""],
    ) {
        lists($c, $path, $case->[0], \%talk, [split / /, $case->[1]], "7.9");
    }
    is_deeply($c->get("/api/v1$path", query => "order=asc")->ids,
        [@talk{qw(chat sms)}], "7.9 order");
    is_deeply($c->get("/api/v1$path", query =>
        "sort=last_message_at&order=desc")->ids, [@talk{qw(chat sms)}],
        "7.9 sort");
    refused($c, $path, { type => "fax" }, "type", "7.9");
    lists($c, "/contacts/$contact{bob}/conversations", {}, \%talk, [],
        "7.9 none");
};

subtest "messages: role, times, order" => sub {
    my %message;
    my @rows = map { [$_->[0] => { conversation_id => $talk{chat},
        role => $_->[1], content => $_->[0], created_at =>
        "2026-06-0$_->[2]T00:00:00.000Z" }] } [m1 => "user", 1],
        [m2 => "assistant", 2], [m3 => "user", 3], [m4 => "tool", 4],
        [m5 => "Poet", 5];
    @message{map { $_->[0] } @rows} = $w->import_objects([
        (map { { object => "message", %{$_->[1]} } } @rows),
        { object => "message", conversation_id => $talk{call},
            role => "user", content => "elsewhere" }]);
    my $path = "/conversations/$talk{chat}/messages";
    for my $case ([{}, "m1 m2 m3 m4 m5"], [{ role => "user" }, "m1 m3"],
            [{ role => "Poet" }, "m5"], [{ role => "User" }, ""],
            [{ role => "nobody" }, "", "role is open"],
            [{ created_after => "2026-06-03" }, "m3 m4 m5"],
            [{ created_before => "2026-06-03" }, "m1 m2 m3"],
            [{ role => "user", created_after => "2026-06-02" }, "m3"]) {
        lists($c, $path, $case->[0], \%message, [split / /, $case->[1]],
            "7.6");
    }
    my %name_of = reverse %message;
    for my $case (["", "m1 m2 m3 m4 m5"], ["order=asc", "m1 m2 m3 m4 m5"],
            ["order=desc", "m5 m4 m3 m2 m1"],
            ["order=desc&page=2&page_size=2", "m3 m2"]) {
        is(join(" ", map { $name_of{$_} // "?" } @{$c->get("/api/v1$path",
            query => $case->[0])->ids}), $case->[1], "order: $case->[0]");
    }
    refused($c, $path, { order => "x" }, "order", "7.6");
    refused($c, $path, { role => "" }, "role", "7.3");
    refused($c, $path, { created_after => "x" }, "created_after", "7.5");
};

# --- cards, activities, forms, pipelines --------------------------------------

subtest "20.7 a list of names is as the document says it" => sub {
    my $w = workspace($httpd, twin => 0);
    my $c = $w->client;
    my $paths = $c->get("/api/v1/openapi.json")->json->{paths};
    for my $case ([messages => include => qw(metadata html)],
        [events => type => qw(contact.created contact.updated)]) {
        my ($list, $name, $one, $two) = @$case;
        my ($of) = grep { ($_->{name} // "") eq $name }
            @{$paths->{"/api/v1/$list"}{get}{parameters}};
        $w->log_on;
        for my $value ($one, "$one,$two", "$one, $two", " $two ,, $one ,",
            "$one $two", "${one}x", "$one,no") {
            my $r = $c->get("/api/v1/$list", query => { $name => $value });
            is($r->status, $value =~ /$of->{schema}{pattern}/ ? 200 : 422,
                "$list: '$value'");
        }
    }
};

subtest "cards: every filter, their order (7.10)" => sub {
    my $p = uuid();
    my ($p2, $s2) = $w->import_objects([
        { object => "pipeline", id => $p, bot_id => $second,
            name => "Second", created_at => "2020-01-01T00:00:00.000Z" },
        { object => "pipeline_stage", pipeline_id => $p, bot_id => $second,
            name => "Only", order_index => 0 }]);
    my ($new, $talking) = ($w->stages)[0, 1];
    my %card;
    my @rows = (
        [a => $new, 5], [b => $new, 1, { contact_id => $contact{ann} }],
        [c => $talking, 0], [d => $s2, 9],
        [e => $new, 1, { created_at => "2020-01-01T00:00:00.000Z" }],
        [f => $new, 3, { archived_at => "2026-01-01T00:00:00.000Z" }],
    );
    @card{map { $_->[0] } @rows} = $w->import_objects([map { {
        object => "pipeline_card", title => $_->[0], pipeline_stage_id =>
        $_->[1], order_index => $_->[2], %{$_->[3] || {}} } } @rows]);
    my %name_of = reverse %card;
    for my $case (
        [{}, "d e b a c", "by pipeline, stage, order_index, created_at"],
        [{ include_archived => "true" }, "d e b f a c"],
        [{ include_archived => "false" }, "d e b a c"],
        [{ pipeline_id => $w->pipeline }, "e b a c"],
        [{ pipeline_id => $p2 }, "d"],
        [{ pipeline_stage_id => $new }, "e b a"],
        [{ pipeline_stage_id => $new, include_archived => 1 }, "e b f a"],
        [{ bot_id => $agent }, "e b a c", "9.8 through the stage"],
        [{ bot_id => $second }, "d"],
        [{ contact_id => $contact{ann} }, "b"],
        [{ contact_id => uuid() }, ""], [{ contact_id => "x" }, ""],
        [{ pipeline_id => "x" }, ""], [{ bot_id => uuid() }, ""],
        [{ pipeline_stage_id => $w->twin_of($new) }, ""],
        [{ pipeline_id => $p2, bot_id => $agent }, ""],
    ) {
        my ($query, $wanted, $name) = @$case;
        my $r = lists($c, "/pipeline-cards", $query, \%card,
            [split / /, $wanted], $name // "spec") or next;
        is(join(" ", map { $name_of{$_} } @{$r->ids}), $wanted,
            "7.10 in this order");
        my @paged = map { @{$c->get("/api/v1/pipeline-cards",
            query => { %$query, page => $_, page_size => 2 })->ids} } 1 .. 3;
        is(join(" ", map { $name_of{$_} } @paged), $wanted,
            "7.10 and over pages");
    }
    refused($c, "/pipeline-cards", { include_archived => "maybe" },
        "include_archived", "7.3");
    refused($c, "/pipeline-cards", "$_=", $_, "7.3")
        for qw(pipeline_id pipeline_stage_id bot_id contact_id);
    my $only = $c->get("/api/v1/pipelines/$p2/stages");
    is_deeply([[keys %{$only->json}], $only->ids], [["data"], [$s2]],
        "stages: no pagination object");
    is_deeply($c->get("/api/v1/pipelines/" . $w->pipeline . "/stages")->ids,
        [$w->stages], "stages by order_index");
    is_deeply($c->get("/api/v1/pipelines/" . $w->pipeline . "/stages",
        query => "page=0&page_size=x")->ids, [$w->stages],
        "7.1 pages are no parameter of theirs");
    lists($c, "/pipelines", { bot_id => $second }, { p2 => $p2 }, ["p2"]);
    lists($c, "/pipelines", { bot_id => "x" }, {}, []);
    is_deeply($c->get("/api/v1/pipelines")->ids, [$w->pipeline, $p2],
        "7.10 pipelines: created_at descending");
};

subtest "activities of a contact" => sub {
    my %activity;
    my @types = qw(note call meeting video_call task todo reminder);
    @activity{@types} = $w->import_objects([map { { object => "activity",
        contact_id => $contact{bob}, activity_type => $types[$_],
        created_at => "2026-07-0" . ($_ + 1) . "T00:00:00.000Z" } }
        0 .. $#types]);
    my $path = "/contacts/$contact{bob}/activities";
    lists($c, $path, {}, \%activity, \@types);
    is_deeply($c->get("/api/v1$path")->ids, [@activity{reverse @types}],
        "reverse-chronological");
    lists($c, $path, { activity_type => $_ }, \%activity, [$_]) for @types;
    refused($c, $path, { activity_type => $_ }, "activity_type", "7.6")
        for "Note", "party", "", "note,call";
    lists($c, "/contacts/$contact{ann}/activities", {}, \%activity, []);
};

subtest "forms and submissions" => sub {
    my ($form, $other) = $w->import_objects([
        { object => "form", bot_id => $agent, name => "F",
            created_at => "2026-01-02T00:00:00.000Z" },
        { object => "form", bot_id => $second, name => "G",
            created_at => "2026-01-01T00:00:00.000Z" }]);
    my %form = (f => $form, g => $other);
    lists($c, "/forms", {}, \%form, ["f", "g"]);
    is_deeply($c->get("/api/v1/forms")->ids, [$form, $other],
        "7.10 created_at descending");
    lists($c, "/forms", { bot_id => $second }, \%form, ["g"]);
    lists($c, "/forms", { bot_id => "x" }, \%form, []);
    refused($c, "/forms", "bot_id=", "bot_id", "7.3");
    my %submission;
    @submission{qw(s1 s2 s3)} = $w->import_objects([map { { object =>
        "submission", form_id => $form, submitted_at =>
        "2026-01-0${_}T00:00:00.000Z", is_internal => $_ == 2 ? true : false
        } } 1 .. 3]);
    my $path = "/forms/$form/submissions";
    lists($c, $path, {}, \%submission, ["s1", "s3"]);
    lists($c, $path, { include_internal => "false" }, \%submission,
        ["s1", "s3"]);
    lists($c, $path, { include_internal => "TRUE" }, \%submission,
        ["s1", "s2", "s3"]);
    is_deeply($c->get("/api/v1$path", query => "include_internal=1")->ids,
        [@submission{qw(s3 s2 s1)}], "reverse-chronological");
    refused($c, $path, { include_internal => "x" }, "include_internal",
        "7.3");
    lists($c, "/forms/$other/submissions", {}, \%submission, []);
};

subtest "7.9 lists of an unknown parent are a 404" => sub {
    for my $path ("/pipelines/ID/stages", "/forms/ID/submissions",
            "/contacts/ID/activities", "/contacts/ID/conversations",
            "/conversations/ID/messages") {
        for my $id (uuid(), "nonsense", $agent) {
            error_is($c->get("/api/v1" . $path =~ s/ID/$id/r), 404,
                "not_found", "7.9 $path: $id");
        }
    }
    for my $case (["/pipelines/ID/stages", $w->pipeline],
            ["/contacts/ID/activities", $contact{ann}],
            ["/contacts/ID/conversations", $contact{ann}],
            ["/conversations/ID/messages", $talk{chat}]) {
        my ($path, $id) = @$case;
        my $alien = $w->twin_of($id);
        error_is($c->get("/api/v1" . $path =~ s/ID/$alien/r), 404,
            "not_found", "7.9 $path: another workspace's");
    }
};

subtest "7.11 total is of the same snapshot as data" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($id, $agent) = ($w->id, $w->agent);
    my $ten = { bot_id => $agent, contacts => [map { {} } 1 .. 10] };
    # makes and deletes ten at a time, so no true total is odd in tens
    my $delete = <<"END";
DO \$\$ BEGIN FOR n IN 1 .. 10 LOOP
    IF (SELECT count(*) FROM crmapi.contact WHERE workspace_id = '$id') > 150
    THEN
        DELETE FROM crmapi.contact WHERE workspace_id = '$id' AND id IN (
            SELECT id FROM crmapi.contact WHERE workspace_id = '$id' LIMIT 10);
        COMMIT;
    ELSE
        PERFORM pg_sleep(0.01);
    END IF;
END LOOP; END \$\$
END
    my $done = $httpd->dir . "/done";
    my ($maker, $deleter, $read) = in_processes(3, sub {
        my ($n) = @_;
        my $c = $w->client;
        if ($n < 3) {
            until (-e $done) {
                sql($database, $delete), next if $n == 2;
                my $r = $c->post("/api/v1/contacts/upsert", $ten);
                die $r->text if $r->status != 200;
            }
            return "wrote";
        }
        my %seen = (lists => 0, more => 0, fewer => 0);
        my %wrong;
        my $last = total_of($c, "/contacts");
        until ($seen{lists} >= 100 && $seen{more} && $seen{fewer}
                || $seen{lists} >= 5000) {
            my $r = $c->get("/api/v1/contacts", query => { page_size => 100,
                page => int($last / 100) + 1 });
            my $p = $r->json->{pagination};
            my $rest = $p->{total} - 100 * ($p->{page} - 1);
            $rest = $rest > 100 ? 100 : $rest < 0 ? 0 : $rest;
            $wrong{odd}++ if $p->{total} % 10;
            $wrong{count}++ if @{$r->data} != $rest;
            $wrong{pages}++
                if $p->{total_pages} != int(($p->{total} + 99) / 100);
            $seen{$p->{total} > $last ? "more" : "fewer"}++
                if $p->{total} != $last;
            $seen{lists}++;
            $last = $p->{total};
            my $filtered = $c->get("/api/v1/contacts", query => {
                page_size => 1, bot_id => $agent,
                created_after => "2020-01-01" });
            $wrong{filtered}++ if $filtered->json->{pagination}{total} % 10;
        }
        write_file($done, "");
        return { seen => \%seen, wrong => \%wrong };
    });
    is_deeply([$maker, $deleter], [("wrote") x 2], "one made, one deleted");
    is_deeply($read->{wrong}, {}, "7.11 every total fits its data, of "
        . "$read->{seen}{lists} lists");
    cmp_ok($read->{seen}{$_}, ">", 0, "while there were $_ than before")
        for "more", "fewer";
};

done_testing;
