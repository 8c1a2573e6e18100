# SPDX-License-Identifier: Apache-2.0
# 34-activities.t: activities (specification: Activity, Activities; contract
# 6, 8, 9)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $httpd = httpd(database => database(),
    unlimited => 1);
my @TYPES = qw(note call meeting video_call task todo reminder);

# A contact and a company of W.
sub both {
    my ($w) = @_;
    my $c = $w->client;
    return ($w->contact->{id}, $w->company->{id});
}

subtest "spec Activity: every field of a create comes back" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact, $company) = both($w);
    my %full = (activity_type => "task", contact_id => $contact,
        company_id => $company, title => "Ö\"", description => "one\ntwo",
        due_date => "2026-12-24T18:00:00.123Z", duration_minutes => 12.5,
        completed_at => "2026-12-25T00:00:00.000Z",
        metadata => { a => { b => [1, undef, true] } });
    my $r = $c->post("/api/v1/activities", \%full);
    record_is($r, activity_of(%full), "8: 201 with all of it", 201);
    my $path = "/api/v1/activities/" . $r->data->{id};
    is($r->header("Location"), $path, "5.4 Location");
    list_is($c->get("/api/v1/contacts/$contact/activities"), [$r->data],
        "the list shows the same");
    record_is($c->get($path), $r->data, "20.2 so does its GET");
    is($c->get($path)->header("ETag"), $r->header("ETag"), "13.2 one ETag");
};

subtest "20.2 PATCH: all but contact, company and type" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact, $company) = both($w);
    my $old = $c->post("/api/v1/activities", { activity_type => "task",
        contact_id => $contact, title => "Call", description => "x",
        due_date => "2026-12-24", metadata => { a => 1 } })->data;
    my $path = "/api/v1/activities/$old->{id}";
    my %change = (title => "Call back", description => undef,
        due_date => "2027-01-01T00:00:00.000Z", duration_minutes => 2.5,
        completed_at => "2026-12-25T00:00:00.000Z", metadata => { b => 2 });
    my $r = $c->patch($path, \%change);
    record_is($r, { %$old, %change, updated_at => $TIME }, "each is changed");
    cmp_ok($r->data->{updated_at}, "gt", $old->{updated_at},
        "6.6 updated_at moves");
    record_is($c->patch($path, $r->data), $r->data,
        "6.2 what GET shows can be sent back, and changes nothing");
    record_is($c->patch($path, { contact_id => $contact, company_id => undef,
        activity_type => "task", title => "Done" }),
        { %{$r->data}, title => "Done", updated_at => $TIME },
        "6.7 an equal value is fine, null too");
    for my $case ([contact_id => (both($w))[0], "another contact"],
            [contact_id => undef, "no contact"], [contact_id => "x", "no id"],
            [contact_id => uuid(), "unknown"],
            [company_id => $company, "a company"],
            [activity_type => "call", "another type"],
            [activity_type => "party", "no type"],
            [activity_type => undef, "null"]) {
        my ($field, $value, $name) = @$case;
        error_is($c->patch($path, { $field => $value, title => "x" }), 422,
            "validation_error", "6.7 $field: $name", [$field]);
    }
    error_is($c->patch($path, { contact_id => undef, company_id => $company,
        activity_type => "call", title => 1 }), 422, "validation_error",
        "5.6 all at once", [qw(activity_type company_id contact_id title)]);
    record_is($c->patch($path, { title => undef, metadata => undef,
        duration_minutes => undef, completed_at => undef, due_date => undef }),
        { %$old, title => undef, description => undef, due_date => undef,
            metadata => {}, updated_at => $TIME }, "6.5 null clears");
    error_is($c->patch("/api/v1/activities/" . uuid(), { title => "x" }), 404,
        "not_found", "an unknown one");
};

subtest "20.2 DELETE, If-Match, Idempotency-Key" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact) = both($w);
    my @made = map { $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contact }) } 1 .. 2;
    my $path = $made[0]->header("Location");
    my %old = (headers => { "If-Match" => $made[0]->header("ETag") });
    status_is($c->patch($path, { title => "x" }, %old), 200,
        "13.2 If-Match of what is there");
    error_is($c->patch($path, { title => "y" }, %old), 412,
        "precondition_failed", "13.2 and of what was");
    error_is($c->delete($path, %old), 412, "precondition_failed",
        "13.2 DELETE");
    my %key = (headers => { "Idempotency-Key" => "a" });
    my ($first, $again) = map { $c->patch($path, { title => "z" }, %key) } 1, 2;
    is($again->body, $first->body, "13.1 a PATCH again: the same answer");
    is($again->header("Idempotent-Replayed"), "true", "13.1 replayed");
    %key = (headers => { "Idempotency-Key" => "b" });
    status_is($c->delete($path, %key), 204, "DELETE");
    status_is($c->delete($path, %key), 204, "13.1 the same DELETE again");
    error_is($c->delete($path), 404, "not_found", "8.1 another DELETE");
    error_is($c->get($path), 404, "not_found", "it is gone");
    list_is($c->get("/api/v1/contacts/$contact/activities"),
        [$made[1]->data], "the other one is there");
};

subtest "9.4 the latest activity of contact and company, after each change"
    => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact, $company) = $w->import_objects([
        { object => "contact", bot_id => $w->agent },
        { object => "company", bot_id => $w->agent, name => "C" }]);
    my %of = (contact_id => $contact, company_id => $company);
    my $latest = sub {
        my ($time, $name) = @_;
        is($c->get("/api/v1/contacts/$contact")->data->{last_contacted_at},
            $time, "last_contacted_at $name");
        is($c->get("/api/v1/companies/$company")->data->{last_activity_at},
            $time, "last_activity_at $name");
    };
    my @ids = map { $w->import_objects([{ object => "activity", %of,
        activity_type => "call", created_at => "2026-01-0$_" }]) } 1 .. 3;
    $latest->("2026-01-03T00:00:00.000Z", "is that of the last");
    $c->patch("/api/v1/activities/$ids[2]", { due_date => "2030-01-01",
        completed_at => "2031-01-01" });
    $latest->("2026-01-03T00:00:00.000Z",
        "is when it was, whenever it is due or done");
    $c->delete("/api/v1/activities/$ids[1]");
    $latest->("2026-01-03T00:00:00.000Z", "after an older one has gone");
    $c->delete("/api/v1/activities/$ids[2]");
    $latest->("2026-01-01T00:00:00.000Z", "after the last has gone");
    $c->delete("/api/v1/activities/$ids[0]");
    $latest->(undef, "after all have gone");
};

subtest "9.6 an activity that loses its contact or company has changed" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    for my $case ([contact_id => "contacts"], [company_id => "companies"]) {
        my ($field, $list) = @$case;
        my ($contact, $company) = both($w);
        my $old = $c->post("/api/v1/activities", { activity_type => "note",
            contact_id => $contact, company_id => $company })->data;
        status_is($c->delete("/api/v1/$list/$old->{$field}"), 204, $list);
        my $r = $c->get("/api/v1/activities/$old->{id}");
        record_is($r, { %$old, $field => undef, updated_at => $TIME },
            "it has no $field");
        cmp_ok($r->data->{updated_at}, "gt", $old->{updated_at},
            "and updated_at has moved");
    }
};

subtest "spec: at least one of contact_id and company_id" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact, $company) = both($w);
    record_is($c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contact }), activity_of(activity_type => "note",
        contact_id => $contact), "a contact alone", 201);
    record_is($c->post("/api/v1/activities", { activity_type => "note",
        company_id => $company, contact_id => undef }),
        activity_of(activity_type => "note", company_id => $company),
        "a company alone", 201);
    record_is($c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contact, map { $_ => undef } qw(company_id title
            description due_date duration_minutes completed_at metadata) }),
        activity_of(activity_type => "note", contact_id => $contact),
        "6.5 null is absent", 201);
    for my $body ({ activity_type => "note" }, { activity_type => "note",
            contact_id => undef, company_id => undef }) {
        error_is($c->post("/api/v1/activities", $body), 422,
            "validation_error", "neither", ["contact_id"]);
    }
    for my $case (["contact_id", $company, "a company's id"],
            ["contact_id", uuid(), "unknown"], ["contact_id", "", "empty"],
            ["contact_id", "x", "malformed"], ["contact_id", 1, "a number"],
            ["company_id", $contact, "a contact's id"],
            ["company_id", uuid(), "unknown"]) {
        my ($field, $id, $name) = @$case;
        error_is($c->post("/api/v1/activities", { activity_type => "note",
            contact_id => $contact, company_id => $company,
            $field => $id }), 422, "validation_error", "6.8 $field $name",
            [$field]);
    }
    is(count_rows($w, "activity"), 3, "refused ones are not there");
};

subtest "spec: activity_type" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact) = both($w);
    my %made;
    for my $type (@TYPES) {
        my $r = $c->post("/api/v1/activities", { activity_type => $type,
            contact_id => $contact });
        record_is($r, activity_of(activity_type => $type,
            contact_id => $contact), $type, 201);
        $made{$type} = $r->data;
    }
    for my $type ("", "Note", "email", "note ", undef, 1, true, ["note"]) {
        error_is($c->post("/api/v1/activities", { activity_type => $type,
            contact_id => $contact }), 422, "validation_error",
            "not " . (defined $type ? "\"$type\"" : "null"),
            ["activity_type"]);
    }
    error_is($c->post("/api/v1/activities", { contact_id => $contact }), 422,
        "validation_error", "it is required", ["activity_type"]);
    for my $type (@TYPES) {
        list_is($c->get("/api/v1/contacts/$contact/activities",
            query => { activity_type => $type }), [$made{$type}],
            "listed by activity_type=$type");
    }
    list_is($c->get("/api/v1/contacts/$contact/activities"),
        [@made{reverse @TYPES}], "all, the latest first");
    is_deeply($c->get("/api/v1/contacts/$contact/activities",
        query => "page=3&page_size=3")->json->{pagination},
        page_of(7, 3, 3), "page 3");
};

subtest "what is refused, all of it at once" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact) = both($w);
    error_is($c->post("/api/v1/activities", { activity_type => "x",
        contact_id => "x", title => 1, description => false,
        due_date => "soon", completed_at => 0, duration_minutes => "5",
        metadata => [], bot_id => $w->agent }), 422, "validation_error",
        "5.6", ["activity_type", "bot_id", "completed_at", "contact_id",
            "description", "due_date", "duration_minutes", "metadata",
            "title"]);
    record_is($c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contact, id => uuid(), created_at => "x" }),
        activity_of(activity_type => "note", contact_id => $contact),
        "6.2 read-only members are ignored", 201);
    for my $case (["2026-06-01", "2026-06-01T00:00:00.000Z"],
            ["2026-06-01T12:00:00", "2026-06-01T12:00:00.000Z"],
            ["2026-06-01T12:00:00.9999Z", qr/^2026-06-01T12:00:0[01]/],
            ["2026-06-01T01:30:00+05:30", "2026-05-31T20:00:00.000Z"]) {
        record_is($c->post("/api/v1/activities", { activity_type => "todo",
            contact_id => $contact, due_date => $case->[0] }),
            activity_of(activity_type => "todo", contact_id => $contact,
                due_date => $case->[1]), "7.5, 9.1 $case->[0]", 201);
    }
    for my $bad ("2026-02-30", "2026-13-01", "12:00", "",
            "2026-06-01T25:00:00Z", "2026-06-01T00:00:00+99:00") {
        error_is($c->post("/api/v1/activities", { activity_type => "todo",
            contact_id => $contact, due_date => $bad }), 422,
            "validation_error", "no time: $bad", ["due_date"]);
    }
};

subtest "an activity beside a contact that goes at the same time" => sub {
    # whoever is first: either the activity goes along, or it is refused
    my $w = workspace($httpd);
    my $c = $w->client;
    my (%count, %gone);
    my $rounds = 0;
    # how clients start decides who is first: until both have been seen
    while ($rounds < 20 && keys %count < 2) {
        $rounds++;
        my @contacts = map { $w->contact->{id} } 1 .. 12;
        my @got = in_processes(4, sub {
            my ($n) = @_;
            my $own = $w->client;
            # in opposite orders: the first are there, the last are gone
            return [map { $n % 2
                ? $own->delete("/api/v1/contacts/$_")->status
                : $own->post("/api/v1/activities", { activity_type => "note",
                    contact_id => $_ })->status }
                $n % 2 ? @contacts : reverse @contacts];
        });
        $count{$_}++ for map { @$_ } @got[1, 3];
        $gone{$_}++ for map { @$_ } @got[0, 2];
    }
    is_deeply([sort keys %count], [201, 422],
        "201 or 422: " . join ", ", %count);
    is_deeply(\%gone, { 204 => 12 * $rounds, 404 => 12 * $rounds },
        "each is deleted once");
    is(count_rows($w, "activity"), 0, "no activity is left over");
};

$httpd->stop;
done_testing;
