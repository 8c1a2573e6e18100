# SPDX-License-Identifier: Apache-2.0
# 36-forms.t: forms and submissions (specification: Form, Submission)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $httpd = httpd(database => database(),
    unlimited => 1);

subtest "spec Form: every field, every parameter" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my %full = (name => "Kontakt \"1\"", description => "a\nb",
        standard_fields => { email => { required => true, order => 1 },
            empty => {}, list => [] },
        custom_fields => { "schlüssel" => ["a", 1, -0.5, undef] },
        survey_questions => { q1 => { text => "Wie?\x{1F600}",
            scale => [1, 2, 3] } },
        created_at => "2026-01-02T00:00:00.001Z",
        updated_at => "2026-01-03T00:00:00.002Z");
    my %bare = (name => "F", created_at => "2026-01-01T00:00:00.000Z",
        updated_at => "2026-01-01T00:00:00.000Z");
    my ($first, $second) = $w->import_objects([
        { object => "form", bot_id => $w->agent, %full },
        { object => "form", bot_id => $agent, %bare }]);
    my $full = form_of($w, id => $first, %full);
    my $bare = form_of($w, id => $second, bot_id => $agent, %bare);
    record_is($c->get("/api/v1/forms/$first"), $full,
        "with its full configuration");
    record_is($c->get("/api/v1/forms/$second"), $bare,
        "9.3 every field where nothing is set");
    for my $case (["", $full, $bare], ["bot_id=$agent", $bare],
            ["bot_id=" . $w->agent, $full], ["bot_id=" . uuid()],
            ["bot_id=x"], ["bot_id=" . $w->twin_of($agent)]) {
        my ($query, @wanted) = @$case;
        list_is($c->get("/api/v1/forms", query => $query), \@wanted,
            "forms?$query");
    }
    my $r = $c->get("/api/v1/forms", query => "page=2&page_size=1");
    value_is($r->json, { data => [$bare], pagination => page_of(2, 2, 1) },
        "page 2");
    error_is($c->get("/api/v1/forms", query => "bot_id=&page=0"), 422,
        "validation_error", "7 all that is wrong", ["bot_id", "page"]);
    error_is($c->get("/api/v1/forms/$_"), 404, "not_found", "none: $_")
        for uuid(), "x", $agent, $w->twin_of($first);
    for my $path ("/forms", "/forms/$first", "/forms/$first/submissions",
            "/submissions/" . uuid()) {
        error_is($c->request($_, "/api/v1$path", body => "{}"), 405,
            "method_not_allowed", "read-only: $_ $path")
            for qw(POST PATCH DELETE PUT);
    }
};

subtest "spec Submission: every field, every parameter" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($form, $other, $contact) = map { uuid() } 1 .. 3;
    $w->import_objects([
        { object => "form", id => $form, bot_id => $w->agent, name => "F" },
        { object => "form", id => $other, bot_id => $w->agent, name => "G" },
        { object => "contact", id => $contact, bot_id => $w->agent }]);
    my @rows = (
        { form_id => $form, contact_id => $contact,
            custom_field_responses => { "größe" => "L\n", n => 1.5,
                list => [true, undef] },
            submitted_at => "2026-01-01T00:00:00.001Z" },
        { form_id => $form, is_internal => true,
            submitted_at => "2026-01-02T00:00:00.000Z" },
        { form_id => $form, submitted_at => "2026-01-03T00:00:00.000Z" },
        { form_id => $other, submitted_at => "2026-01-04T00:00:00.000Z" });
    my @ids = $w->import_objects([map { { object => "submission", %$_ } }
        @rows]);
    my @whole = map { submission_of(%{$rows[$_]}, id => $ids[$_]) } 0 .. 3;
    record_is($c->get("/api/v1/submissions/$ids[$_]"), $whole[$_],
        "GET $_, internal or not") for 0 .. 3;
    my $path = "/api/v1/forms/$form/submissions";
    for my $case (["", 2, 0], ["include_internal=false", 2, 0],
            ["include_internal=true", 2, 1, 0], ["include_internal=1", 2, 1,
                0], ["include_internal=0", 2, 0]) {
        my ($query, @wanted) = @$case;
        list_is($c->get($path, query => $query), [@whole[@wanted]],
            "submissions?$query, the latest first");
    }
    list_is($c->get("/api/v1/forms/$other/submissions"), [$whole[3]],
        "another form's");
    my $r = $c->get($path, query => "include_internal=true&page=2"
        . "&page_size=2");
    value_is($r->json, { data => [$whole[0]], pagination => page_of(3, 2, 2) },
        "page 2");
    error_is($c->get($path, query => "include_internal=x&page_size=x"), 422,
        "validation_error", "7.3", ["include_internal", "page_size"]);
    error_is($c->get("/api/v1/forms/$_/submissions"), 404, "not_found",
        "7.9 of $_") for uuid(), "x", $ids[0], $w->twin_of($form);
    error_is($c->get("/api/v1/submissions/$_"), 404, "not_found", "none: $_")
        for uuid(), "x", $form, $w->twin_of($ids[0]);
};

$httpd->stop;
done_testing;
