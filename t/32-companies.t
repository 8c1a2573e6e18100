# SPDX-License-Identifier: Apache-2.0
# 32-companies.t: companies (specification: Company, Companies; contract 8, 9)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

my %FULL = (name => "Ácme \"&\" Co", domain => "Acme.example",
    website => "https://acme.example/?a=1&b=2", industry => "Steel",
    company_size => "11-50", company_type => "customer",
    employee_count => 42, annual_revenue => 1000000.25,
    description => "one\ntwo \x{1F3ED}", tags => ["big", "EU"],
    address_line1 => "1 Main", address_line2 => "", city => "Köln",
    state => "NW", postal_code => "50667", country => "DE",
    linkedin_url => "https://li.example/c/acme", notes => "n\\n",
    custom_fields => { a => { b => [1, undef] } });

subtest "spec Company: every field of a create comes back, 9.3" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $r = $c->post("/api/v1/companies", { bot_id => $w->agent, %FULL,
        pipeline_stage_id => ($w->stages)[0],
        emails => ["info\@acme.example", email("ceo\@acme.example", 1)],
        phone_numbers => [{ phone_number => "+49 1" }] });
    my $id = $r->data->{id};
    record_is($r, company_of($w, %FULL, pipeline_stage_id => ($w->stages)[0],
        emails => [email("info\@acme.example"),
            email("ceo\@acme.example", 1)],
        phone_numbers => [phone("+49 1", 1)]), "8: 201 with all of it", 201);
    is($r->header("Location"), "/api/v1/companies/$id", "5.4 Location");
    is($r->data->{created_at}, $r->data->{updated_at}, "never changed");
    record_is($c->get("/api/v1/companies/$id"), $r->data, "GET: the same");
    list_is($c->get("/api/v1/companies"), [$r->data], "the list: the same");
};

subtest "spec: bot_id and name are required" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    record_is($c->post("/api/v1/companies", { bot_id => $w->agent,
        name => "A" }), company_of($w, name => "A"), "these two alone", 201);
    record_is($c->post("/api/v1/companies", { bot_id => $w->agent,
        name => "A", emails => undef, phone_numbers => undef,
        pipeline_stage_id => undef, map { $_ => undef }
        grep { $_ ne "name" } keys %FULL }), company_of($w, name => "A"),
        "6.5 null is absent; two of one name are two", 201);
    for my $case ([{}, "bot_id", "name"], [{ bot_id => $w->agent }, "name"],
            [{ name => "A" }, "bot_id"],
            [{ bot_id => $w->agent, name => "" }, "name"],
            [{ bot_id => $w->agent, name => " \x{3000}" }, "name"],
            [{ bot_id => $w->agent, name => undef }, "name"],
            [{ bot_id => uuid(), name => "A" }, "bot_id"],
            [{ bot_id => $w->twin_of($w->agent), name => "A" }, "bot_id"],
            [{ bot_id => $w->agent, name => "A",
                pipeline_stage_id => $w->twin_of(($w->stages)[0]) },
                "pipeline_stage_id"],
            [{ bot_id => uuid(), name => "A", employee_count => "5",
                pipeline_stage_id => uuid() }, "bot_id", "employee_count",
                "pipeline_stage_id"]) {
        my ($body, @fields) = @$case;
        error_is($c->post("/api/v1/companies", $body), 422,
            "validation_error", "8.2 @fields", \@fields);
    }
    is(total_of($c, "/companies"), 2, "refused ones are not counted");
};

subtest "spec PATCH: only sent fields change" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $whole = $w->company(%FULL, emails => ["a\@x.org"],
        phone_numbers => ["1"]);
    my $path = "/api/v1/companies/$whole->{id}";
    my %new = ((map { $_ => "new $_" } qw(name domain website industry
            company_size company_type description address_line1 address_line2
            city state postal_code country linkedin_url notes)),
        employee_count => 0.5, annual_revenue => -1,
        pipeline_stage_id => ($w->stages)[1], tags => [], custom_fields => {},
        emails => [email("z\@x.org", 1)], phone_numbers => [phone("9", 1)]);
    my $r;
    for my $field (sort keys %new) {
        my $before = $whole->{updated_at};
        $r = $c->patch($path, { $field => $new{$field} });
        record_is($r, { %$whole, $field => $new{$field}, updated_at => sub {
            $_[0] =~ $TIME && $_[0] gt $before } }, "$field, nothing else");
        $whole = $r->data;
    }
    record_is($c->patch($path, {}), $whole, "6.5 {} changes nothing");
    record_is($c->patch($path, $whole), $whole, "6.2 what GET gave, neither");
    $r = $c->patch($path, { map { $_ => undef } grep { $_ ne "name" }
        keys %new });
    record_is($r, company_of($w, id => $whole->{id}, name => "new name",
        created_at => $whole->{created_at}), "6.5 null clears");
    error_is($c->patch($path, { name => undef }), 422, "validation_error",
        "6.5 but not a name", ["name"]);
    error_is($c->patch($path, { name => "" }), 422, "validation_error",
        "6.5 nor empties it", ["name"]);
    error_is($c->patch($path, { bot_id => uuid(), total_deal_value => "x",
        nonsense => 1 }), 422, "validation_error",
        "6.7 another bot_id, 6.2 read-only fields are ignored",
        ["bot_id", "nonsense"]);
    record_is($c->get($path), $r->data, "refused ones change nothing");
};

subtest "9.4 total_deal_value, right in the very next read" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($company, $other) = map { $w->company(name => $_) } "A", "B";
    my $sum = sub {
        my ($total, $name) = @_;
        record_is($c->get("/api/v1/companies/$company->{id}"),
            { %$company, total_deal_value => $total }, $name);
        list_is($c->get("/api/v1/companies"), [$other,
            { %$company, total_deal_value => $total }], "$name: the list");
    };
    my $link = sub {
        return $w->contact(company_id => $company->{id}, @_)->{id};
    };
    $sum->(undef, "no contact: null");
    $link->();
    $sum->(undef, "a contact without a value: still null");
    my $zero = $link->(deal_value => 0);
    $sum->(0, "a value of 0 is one");
    my $some = $link->(deal_value => 10.25);
    $sum->(10.25, "one with a value");
    my $more = $link->(deal_value => 0.0005);
    $sum->(10.2505, "exact, not floating");
    $c->patch("/api/v1/contacts/$some", { deal_value => -1 });
    $sum->(-0.9995, "after a PATCH of one's value");
    $c->patch("/api/v1/contacts/$more", { company_id => $other->{id} });
    $other->{total_deal_value} = 0.0005;
    $sum->(-1, "after one moved to another company");
    $c->patch("/api/v1/contacts/$some", { company_id => undef });
    $sum->(0, "after one left");
    $c->delete("/api/v1/contacts/$zero");
    $sum->(undef, "after one was deleted");
    $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ["u\@x.org"], deal_value => 7,
            company_id => $company->{id} }, { deal_value => 8,
            company_id => $company->{id} }] });
    $sum->(15, "after an upsert");
    record_is($c->get("/api/v1/companies/$company->{id}"), { %$company,
        total_deal_value => 15 }, "6.6 none of it moved updated_at");
    my $large = 999999999999999;
    $c->post("/api/v1/contacts", { bot_id => $w->agent,
        company_id => $other->{id}, deal_value => $large }) for 1 .. 3;
    like($c->get("/api/v1/companies/$other->{id}")->body,
        qr/"total_deal_value":2999999999999997\.0005[,}]/,
        "a large sum keeps its decimals, without an exponent (6.4)");
};

subtest "9.4 last_activity_at: of the company and of its contacts" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $company = $w->company(name => "A");
    my $path = "/api/v1/companies/$company->{id}";
    my ($in, $out) = map { $w->contact(company_id => $_)->{id} }
        $company->{id}, undef;
    my $act = sub { $c->post("/api/v1/activities",
        { activity_type => "note", @_ })->data->{created_at} };
    record_is($c->get($path), $company, "none: null");
    $act->(contact_id => $out);
    record_is($c->get($path), $company, "a stranger's does not count");
    my $first = $act->(contact_id => $in);
    record_is($c->get($path), { %$company, last_activity_at => $first },
        "a contact's");
    my $second = $act->(company_id => $company->{id});
    record_is($c->get($path), { %$company, last_activity_at => $second },
        "its own, later");
    my $third = $act->(contact_id => $in);
    record_is($c->get($path), { %$company, last_activity_at => $third },
        "the contact's, later still");
    $c->patch("/api/v1/contacts/$in", { company_id => undef });
    record_is($c->get($path), { %$company, last_activity_at => $second },
        "its own again when the contact has left");
    my $fourth = $act->(contact_id => $out);
    $c->patch("/api/v1/contacts/$out", { company_id => $company->{id} });
    record_is($c->get($path), { %$company, last_activity_at => $fourth },
        "who joins brings the past along");
    $c->delete("/api/v1/contacts/$out");
    record_is($c->get($path), { %$company, last_activity_at => $second },
        "and takes it along when deleted");
    list_is($c->get("/api/v1/companies"), [{ %$company,
        last_activity_at => $second }], "the list says the same");
};

subtest "spec DELETE: contacts get company_id cleared, 9.6" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $company = $w->company(name => "A")->{id};
    my @contacts = map { $w->contact(company => "A", company_id => $company,
        first_name => "C$_") }
        1 .. 3;
    my $both = $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contacts[0]{id}, company_id => $company })->data;
    my $alone = $c->post("/api/v1/activities", { activity_type => "note",
        company_id => $company })->data->{id};
    my $r = $c->delete("/api/v1/companies/$company");
    is($r->status, 204, "8: deleted");
    is($r->body, "", "without a body");
    for my $n (0 .. 2) {
        my $was = $contacts[$n];
        record_is($c->get("/api/v1/contacts/$was->{id}"), { %$was,
            company_id => undef, updated_at => $TIME,
            last_contacted_at => $n ? undef : $both->{created_at} },
            "contact $n stays without it, its text stays");
    }
    is(total_of($c, "/contacts"), 3, "contacts are not deleted");
    list_is($c->get("/api/v1/contacts/$contacts[0]{id}/activities"),
        [{ %$both, company_id => undef, updated_at => $TIME }],
        "an activity with a contact loses the company");
    is(count_rows($w, "activity", "id = '$alone'"), 0, "one without goes");
    error_is($c->delete("/api/v1/companies/$company"), 404, "not_found",
        "8.1 a second DELETE");
    error_is($c->get("/api/v1/companies/$company"), 404, "not_found", "GET");
    error_is($c->patch("/api/v1/companies/$company", { name => "B" }), 404,
        "not_found", "PATCH");
    error_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
        company_id => $company }), 422, "validation_error",
        "6.8 its id in a body", ["company_id"]);
};

subtest "spec Companies: query parameters" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my @rows = map { { bot_id => $_->[0], name => $_->[1], domain => $_->[2],
        industry => $_->[3], tags => $_->[4], created_at => $_->[5],
        updated_at => $_->[5] } } (
        [$w->agent, "Acme", "acme.example", "Steel", ["a"],
            "2026-01-01T00:00:00.000Z"],
        [$agent, "Bolt", "BOLT.example", "steel", ["a", "b"],
            "2026-01-02T00:00:00.000Z"],
        [$agent, "Öl & Gas", undef, undef, [], "2026-01-03T00:00:00.000Z"]);
    my @ids = $w->import_objects([map { { object => "company", %$_ } }
        @rows]);
    my @whole = map { company_of($w, %{$rows[$_]}, id => $ids[$_]) } 0 .. 2;
    for my $case (["", 2, 1, 0], ["search=ACME", 0], ["search=öl", 2],
            ["search=.example", 1, 0], ["search=STEEL", 1, 0],
            ["tags=a", 1, 0], ["tags=b,c", 1], ["tags=a,b&tags_match=all", 1],
            ["tags=", 2, 1, 0], ["industry=Steel", 0], ["industry=STEEL"],
            ["domain=bolt.EXAMPLE", 1], ["domain=bolt"],
            ["bot_id=$agent", 2, 1], ["bot_id=" . $w->twin_of($w->agent)],
            ["bot_id=$agent&industry=steel&search=bolt&domain=bolt.example"
                . "&tags=a", 1], ["nonsense=1", 2, 1, 0]) {
        my ($query, @wanted) = @$case;
        list_is($c->get("/api/v1/companies", query => $query),
            [@whole[@wanted]], "companies?$query");
    }
    error_is($c->get("/api/v1/companies", query => "industry=&domain="
        . "&tags_match=some&page_size=1000"), 422, "validation_error",
        "7 all that is wrong", ["domain", "industry", "page_size",
            "tags_match"]);
};

subtest "totals follow inserts and deletes, whole and per agent" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my @ids = map { $c->post("/api/v1/companies", { name => "C$_",
        bot_id => $_ % 2 ? $agent : $w->agent })->data->{id} } 1 .. 11;
    my $totals = sub { [map { total_of($c, "/companies", @$_) } [],
        [bot_id => $w->agent], [bot_id => $agent]] };
    is_deeply($totals->(), [11, 5, 6], "11 created");
    $c->delete("/api/v1/companies/$_") for @ids[0 .. 3];
    is_deeply($totals->(), [7, 3, 4], "4 deleted");
    $c->patch("/api/v1/companies/$ids[5]", { name => "other" });
    is_deeply($totals->(), [7, 3, 4], "a PATCH changes none");
};

subtest "a text of 1,000 characters has more bytes than an index takes" => sub {
    my $w = workspace($httpd, twin => 0);
    # no two are alike: what repeats is compressed
    my $text = join "", map { chr(0x20000 + $_ * 41) } 1 .. 1000;
    $httpd->may_log(qr/CRM2001: database: 54000/);
    for (["companies", name => "C", domain => $text],
            ["companies", name => "C", industry => $text],
            ["contacts", lead_source => $text], ["contacts", contact_type => $text]) {
        my ($list, @fields) = @$_;
        error_is($w->client->post("/api/v1/$list", { bot_id => $w->agent, @fields }),
            422, "validation_error", "$list: $fields[-2]");
    }
    status_is($w->client->post("/api/v1/companies", { bot_id => $w->agent,
        name => $text }), 201, "others may have them");
};

$httpd->stop;
done_testing;
