# SPDX-License-Identifier: Apache-2.0
# 31-contacts.t: contacts (specification: Contact, Contacts; contract 8, 9)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

# Every optional member of the create body, but the references.
my %FULL = (first_name => "Ánna", last_name => "O'Brien", company => "A & Co",
    job_title => "CTO", lead_source => "web", contact_type => "lead",
    address_line1 => "1 \"Main\" St", address_line2 => "Back\\door",
    city => "Köln", state => "NW", postal_code => "D-50667", country => "DE",
    linkedin_url => "https://li.example/in/a?b=c&d=e",
    notes => "one\ntwo\tthree \x{1F600}", deal_value => 1250.5,
    tags => ["vip", "a,b", "a b", "Ö"],
    custom_fields => { a => 1, b => [true, undef, "x"], c => { d => -0.5 } });

subtest "spec Contact: every field of a create comes back, 9.1, 9.2, 9.3"
        => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($company) = $w->import_objects([{ object => "company",
        bot_id => $w->agent, name => "A & Co" }]);
    my %references = (company_id => $company,
        pipeline_stage_id => ($w->stages)[1]);
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent, %FULL,
        %references, emails => [{ email => "Anna\@X.example" },
            { email => "b\@x.example", is_primary => true }],
        phone_numbers => [{ phone_number => "+49 (221) 1", is_primary => true },
            { phone_number => "2", is_primary => false }] });
    my $id = $r->data->{id};
    my $whole = contact_of($w, %FULL, %references,
        emails => [email("Anna\@X.example"), email("b\@x.example", 1)],
        phone_numbers => [phone("+49 (221) 1", 1), phone("2")]);
    record_is($r, $whole, "8: 201 with the whole contact", 201);
    is($r->header("Location"), "/api/v1/contacts/$id", "5.4 Location");
    is($r->data->{created_at}, $r->data->{updated_at},
        "a new one was never changed");
    $whole = $r->data;
    record_is($c->get("/api/v1/contacts/$id"), $whole,
        "GET shows the same to the byte of the times");
    list_is($c->get("/api/v1/contacts"), [$whole], "and so does the list");
    record_is($c->get("/api/v1/contacts/by-email",
        query => { email => "B\@X.EXAMPLE" }), $whole, "and by-email");
};

subtest "tags are trimmed when they are stored, empty ones are left out (7.4)"
        => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @sent = (" vip", "b c\x{a0}", "", "\x{3000} \t", "vip ", "VIP",
        " " . "x" x 100 . " ");
    my @kept = ("vip", "b c", "VIP", "x" x 100);
    my $made = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        tags => \@sent, emails => ["t\@x.example"] });
    is_deeply($made->data->{tags}, \@kept, "7.4 in a create");
    is_deeply($c->patch("/api/v1/contacts/" . $made->data->{id},
        { tags => [@sent, " n "] })->data->{tags}, [@kept, "n"],
        "7.4 in a PATCH");
    is_deeply($c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ["t\@x.example"], tags => \@sent }] })
        ->data->{updated}[0]{tags}, \@kept, "7.4 in an upsert");
    is($c->get("/api/v1/contacts", query => { tags => " vip " })
        ->json->{pagination}{total}, 1, "7.4 and they are found");
    my ($id) = $w->import_objects([{ object => "company", name => "T",
        bot_id => $w->agent, tags => \@sent }]);
    is_deeply($c->get("/api/v1/companies/$id")->data->{tags}, \@kept,
        "7.4 in an import");
};

subtest "spec: only bot_id is required; null is absent (6.5)" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    record_is($c->post("/api/v1/contacts", { bot_id => $w->agent }),
        contact_of($w), "bot_id alone", 201);
    record_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
        map { $_ => undef } keys %FULL, qw(company_id pipeline_stage_id
            emails phone_numbers) }),
        contact_of($w), "6.5 null in a create is absent", 201);
    record_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "", notes => "", tags => [], custom_fields => {},
        emails => [], phone_numbers => [], deal_value => 0 }),
        contact_of($w, first_name => "", notes => "", deal_value => 0),
        "6.5 empty texts are kept, 0 is a value", 201);
    for my $body ({}, { bot_id => undef }, { first_name => "x" }) {
        error_is($c->post("/api/v1/contacts", $body), 422,
            "validation_error", "without bot_id", ["bot_id"]);
    }
    for my $case (["", "empty"], ["x", "malformed"], [uuid(), "unknown"],
            [$w->pipeline, "a pipeline's"],
            [$w->twin_of($w->agent), "another workspace's"]) {
        error_is($c->post("/api/v1/contacts", { bot_id => $case->[0] }), 422,
            "validation_error", "6.8 bot_id $case->[1]", ["bot_id"]);
    }
    is(total_of($c, "/contacts"), 3, "7.11 refused ones are not counted");
    is(count_rows($w, "contact"), 3, "and not there");
};

subtest "9.2 e-mails and phones" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    for my $case (
        ["strings", ["a\@x.org", "b\@x.org"],
            [email("a\@x.org", 1), email("b\@x.org")]],
        ["objects without is_primary", [{ email => "a\@x.org" },
            { email => "b\@x.org" }],
            [email("a\@x.org", 1), email("b\@x.org")]],
        ["all said not to be primary", [email("a\@x.org"), email("b\@x.org")],
            [email("a\@x.org", 1), email("b\@x.org")]],
        ["strings beside objects", ["a\@x.org", email("b\@x.org", 1)],
            [email("a\@x.org"), email("b\@x.org", 1)]],
        ["equal ones collapse, without case, the first stays",
            ["A\@x.org", "b\@x.org", "a\@X.ORG"],
            [email("A\@x.org", 1), email("b\@x.org")]],
        ["the primary one's mark survives", ["A\@x.org", "b\@x.org",
            email("a\@x.org", 1)], [email("A\@x.org", 1), email("b\@x.org")]],
        ["Unicode's case", ["ä\@x.org", "Ä\@X.org"], [email("ä\@x.org", 1)]],
        ["one of them twice with one mark", [email("b\@x.org"),
            email("a\@x.org", 1), email("A\@X.org")],
            [email("b\@x.org"), email("a\@x.org", 1)]],
        ["none", [], []],
    ) {
        my ($name, $in, $out) = @$case;
        record_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
            emails => $in }), contact_of($w, emails => $out),
            "9.2 e-mails: $name", 201);
    }
    for my $case (
        ["strings", ["+1 2", "3"], [phone("+1 2", 1), phone("3")]],
        ["an object", [{ phone_number => "(0)1-2" }], [phone("(0)1-2", 1)]],
        ["the second is primary", ["1", phone("2", 1)],
            [phone("1"), phone("2", 1)]],
        ["equal ones collapse", ["+12", "+12"], [phone("+12", 1)]],
        ["digits of any script", ["٠٣٠ ١٢٣٤"], [phone("٠٣٠ ١٢٣٤", 1)]],
    ) {
        my ($name, $in, $out) = @$case;
        record_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
            phone_numbers => $in }), contact_of($w, phone_numbers => $out),
            "9.2 phones: $name", 201);
    }
    for my $case (
        [emails => [email("a\@x.org", 1), email("b\@x.org", 1)]],
        [phone_numbers => [phone("1", 1), phone("2", 1)]],
    ) {
        my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
            @$case });
        error_is($r, 422, "validation_error", "9.2 two primary @$case[0]");
        like($r->fields->[0], qr/^$case->[0]/, "named");
    }
};

# What TEXT, JSON, shows as e-mails and phone numbers, to the byte.
sub lists_in {
    my ($text) = @_;
    return $text =~ /"(?:emails|phone_numbers)":\s*
        \[(?:"(?:[^"\\]|\\.)*"|[^\]])*\]/gx;
}

subtest "9.2 one form of e-mails and phones, compact, wherever they are" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %lists = (emails => ["odd\",:]\\o\@x.org", email("b\@x.org", 1)],
        phone_numbers => ["+49 (30) 1", phone("2 \", : ]")]);
    my $form = join "\n", '"emails":[{"email":"odd\",:]\\\\o@x.org",'
        . '"is_primary":false},{"email":"b@x.org","is_primary":true}]',
        '"phone_numbers":[{"is_primary":true,"phone_number":"+49 (30) 1"},'
        . '{"is_primary":false,"phone_number":"2 \", : ]"}]';
    my $is = sub {
        my ($text, $name) = @_;
        is(join("\n", lists_in($text)), $form, "9.2 $name");
    };
    my %custom = (custom_fields => { "a : b, c" => [{ x => " \": , " }, 1] });
    my $body = { bot_id => $w->agent, %lists, %custom };
    my $r = $c->post("/api/v1/contacts", $body);
    my $path = "/api/v1/contacts/" . $r->data->{id};
    $is->($r->body, "POST");
    $is->($c->get($path)->body, "GET");
    $is->($c->get("/api/v1/contacts")->body, "the list");
    $is->($c->patch($path, { first_name => "F" })->body, "PATCH of another");
    $is->($c->patch($path, \%lists)->body, "PATCH of these");
    $is->($c->get("/api/v1/contacts/by-email", query =>
        { email => "b\@x.org" })->body, "by-email");
    my $upsert = sub { $c->post("/api/v1/contacts/upsert",
        { bot_id => $w->agent, contacts => [@_] })->body };
    $is->($upsert->({ emails => ["b\@x.org"], last_name => "L" }),
        "an upsert's updated one, read from the database");
    $is->($upsert->(\%lists), "an upsert's updated one, united");
    $is->($c->post("/api/v1/companies", { %$body, name => "C" })->body,
        "a company");
    my $export = $w->ctl("export", "--workspace", $w->id);
    $is->($_, "the export") for grep { lists_in($_) } split /\n/, $export;
    $c->delete($path);
    $is->($upsert->({ %lists, %custom }), "an upsert's created one");
    for my $text ($c->get("/api/v1/contacts")->body, $export) {
        my ($custom) = $text =~ /"custom_fields":(\{"a.*?\]\})/;
        is($custom, '{"a : b, c":[{"x":" \": , "},1]}', "free-form JSON, too")
            or diag($text);
    }
};

subtest "spec PATCH: only sent fields change" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($company) = $w->import_objects([{ object => "company",
        bot_id => $w->agent, name => "A & Co" }]);
    my $whole = $w->contact(%FULL, emails => ["a\@x.org"],
        phone_numbers => ["1"]);
    my $path = "/api/v1/contacts/$whole->{id}";
    my %new = (first_name => "Z", last_name => "Y", company => "X",
        company_id => $company, job_title => "W", lead_source => "V",
        tags => ["u"], deal_value => -3, pipeline_stage_id => ($w->stages)[2],
        contact_type => "T", address_line1 => "S", address_line2 => "R",
        city => "Q", state => "P", postal_code => "O", country => "N",
        linkedin_url => "M", notes => "L", custom_fields => { k => "J" },
        emails => [email("z\@x.org", 1)], phone_numbers => [phone("9", 1)]);
    my $r;

    for my $field (sort keys %new) {
        my $before = $whole->{updated_at};
        $r = $c->patch($path, { $field => $new{$field} });
        $whole = { %$whole, $field => $new{$field}, updated_at => sub {
            $_[0] =~ $TIME && $_[0] gt $before } };
        record_is($r, $whole, "$field, and nothing else");
        $whole = $r->data;
    }
    record_is($c->get($path), $whole, "it stays");
    record_is($c->patch($path, {}), $whole, "6.5 {} changes nothing");
    record_is($c->patch($path, $whole), $whole,
        "6.2, 6.6 what GET gave changes nothing");
    record_is($c->patch($path, { bot_id => $w->agent }), $whole,
        "6.7 an equal bot_id is fine");
    my $earlier = $whole->{updated_at};
    $r = $c->patch($path, { first_name => "One", last_name => $new{last_name} });
    record_is($r, { %$whole, first_name => "One", updated_at => sub {
        $_[0] gt $earlier } }, "6.6 one of two changed");
    $whole = $r->data;
    my $before = $whole->{updated_at};
    $whole = contact_of($w, id => $whole->{id},
        created_at => $whole->{created_at}, updated_at => sub {
            $_[0] =~ $TIME && $_[0] gt $before });
    $r = $c->patch($path, { map { $_ => undef } keys %new });
    record_is($r, $whole, "6.5 null clears: nulls, [] and {}");
    error_is($c->patch($path, { bot_id => $_ }), 422, "validation_error",
        "6.7 another bot_id", ["bot_id"]) for uuid(), 5, undef;
    error_is($c->patch($path, { first_name => 1, company_id => uuid(),
        pipeline_stage_id => "", emails => ["x"], unknown => 1 }), 422,
        "validation_error", "5.6 all that is wrong", ["company_id",
            "emails[0]", "first_name", "pipeline_stage_id", "unknown"]);
    record_is($c->get($path), $r->data, "a refused one changed nothing");
    status_is($c->patch($path, { external_id => "mine" }), 200, "an own id");
    error_is($c->patch($path, { external_id => "mine", company_id => uuid() }),
        422, "validation_error", "6.2 it is no other contact's",
        ["company_id"]);
};

subtest "spec DELETE: 204, for good; 8.1" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $w->contact(emails => ["gone\@x.org"])->{id};
    my $stays = $w->contact;
    my $r = $c->delete("/api/v1/contacts/$id");
    is($r->status, 204, "8: 204");
    is($r->body, "", "with an empty body");
    for my $again ($c->delete("/api/v1/contacts/$id"),
            $c->get("/api/v1/contacts/$id"),
            $c->patch("/api/v1/contacts/$id", {}),
            $c->get("/api/v1/contacts/$id/activities"),
            $c->get("/api/v1/contacts/$id/conversations"),
            $c->get("/api/v1/contacts/by-email", query =>
                { email => "gone\@x.org" })) {
        error_is($again, 404, "not_found", "8.1 then "
            . "$again->{request}{method} $again->{request}{path}");
    }
    list_is($c->get("/api/v1/contacts"), [$stays], "the other one stays");
};

subtest "9.6 what a deleted contact leaves behind" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact, $other, $company, $conversation, $form, $submission,
        $template) = map { uuid() } 1 .. 7;
    $w->import_objects([
        { object => "contact", id => $contact, bot_id => $w->agent },
        { object => "contact", id => $other, bot_id => $w->agent },
        { object => "company", id => $company, bot_id => $w->agent,
            name => "C" },
        { object => "conversation", id => $conversation, type => 4,
            bot_id => $w->agent, contact_id => $contact },
        { object => "form", id => $form, bot_id => $w->agent, name => "F" },
        { object => "submission", id => $submission, form_id => $form,
            contact_id => $contact },
        { object => "sequence_template", id => $template, name => "T",
            bot_id => $w->agent, allowed_channels => ["email"] },
    ]);
    my $card = $c->post("/api/v1/pipeline-cards", { title => "Deal",
        pipeline_stage_id => ($w->stages)[0], contact_id => $contact })->data;
    my $both = $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contact, company_id => $company })->data;
    my $alone = $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $contact })->data;
    my $others = $c->post("/api/v1/activities", { activity_type => "call",
        contact_id => $other })->data;
    my ($thread) = map { $c->get("/api/v1/conversations/$_")->data }
        $conversation;
    my ($filled) = map { $c->get("/api/v1/submissions/$_")->data }
        $submission;
    my (%sequence, %enrollment, %before);
    for my $status (qw(generating pending_approval approved running
            completed failed stopped_reply)) {
        my ($id, $sequence) = enroll($w, $template, $contact);
        my %way = (running => ["approved"], completed => ["approved"]);
        for my $next (@{$way{$status} || []}, $status) {
            change($w, "enrollment", $id, status => $next,
                $next eq "failed" ? (generation_error => "x") : ())
                if $next ne "generating";
        }
        add_step($w, $id, 1, "email", status => "sent");
        add_step($w, $id, 2, "email", status => "scheduled");
        $enrollment{$status} = $id;
        $before{$status} = $c->get(
            "/api/v1/sequences/enrollments/$id")->data;
    }

    is($c->delete("/api/v1/contacts/$contact")->status, 204, "deleted");
    record_is($c->get("/api/v1/pipeline-cards/$card->{id}"), { %$card,
        contact_id => undef, updated_at => $TIME },
        "its card keeps its row");
    record_is($c->get("/api/v1/conversations/$conversation"),
        { %$thread, contact_id => undef }, "its conversation keeps its row");
    record_is($c->get("/api/v1/submissions/$submission"),
        { %$filled, contact_id => undef }, "its submission keeps its row");
    list_is($c->get("/api/v1/forms/$form/submissions"),
        [{ %$filled, contact_id => undef }], "and is listed");
    is(count_rows($w, "activity", "id = '$both->{id}' AND contact_id IS NULL"
        . " AND company_id = '$company'"), 1,
        "an activity with a company loses the contact");
    is(count_rows($w, "activity", "id = '$alone->{id}'"), 0,
        "one without goes");
    list_is($c->get("/api/v1/contacts/$other/activities"), [$others],
        "another contact's stays");
    is($c->get("/api/v1/companies/$company")->data->{last_activity_at},
        $both->{created_at}, "9.4 the company's last activity is still there");
    for my $status (qw(generating pending_approval approved running)) {
        my $was = $before{$status};
        record_is($c->get("/api/v1/sequences/enrollments/"
            . $enrollment{$status}), { %$was, status => "stopped_user",
            stop_reason => "contact_deleted",
            sequence => { %{$was->{sequence}}, status => "stopped" },
            steps => [$was->{steps}[0], { %{$was->{steps}[1]},
                status => "cancelled" }],
            updated_at => sub { $_[0] gt $was->{updated_at} } },
            "a live enrollment ($status) stops, keeps the contact's id, and "
            . "nothing is left to send");
    }
    for my $status (qw(completed failed stopped_reply)) {
        record_is($c->get("/api/v1/sequences/enrollments/"
            . $enrollment{$status}), $before{$status},
            "an ended enrollment ($status) stays as it was");
    }
    list_is($c->get("/api/v1/conversations",
        query => { contact_id => $contact }), [],
        "6.8 a filter by the deleted one's id is an empty list");
};

subtest "9.4 last_contacted_at, right in the very next read" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $contact = $w->contact;
    my $other = $w->contact;
    my $path = "/api/v1/contacts/$contact->{id}";
    for my $n (1 .. 3) {
        my $a = $c->post("/api/v1/activities", { activity_type => "call",
            contact_id => $contact->{id} })->data;
        $contact->{last_contacted_at} = $a->{created_at};
        record_is($c->get($path), $contact,
            "activity $n: the latest one's time; updated_at stays (6.6)");
    }
    insert($w, "activity", activity_type => "note",
        contact_id => $contact->{id},
        created_at => "2020-01-01T00:00:00.000Z");
    record_is($c->get($path), $contact, "an older one does not count");
    record_is($c->get("/api/v1/contacts/$other->{id}"), $other,
        "another contact's is null");
    list_is($c->get("/api/v1/contacts"), [$other, $contact],
        "the list says the same");
    record_is($c->patch($path, { notes => "x" }), { %$contact, notes => "x",
        updated_at => $TIME }, "and so does a PATCH");
};

subtest "suppressed: why the primary addresses are not written to (extension)"
        => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %both = (bot_id => $w->agent, emails => ["Ada\@x.org", "second\@x.org"],
        phone_numbers => ["+49 30 901820"]);
    my $ada = $c->post("/api/v1/contacts", \%both)->data;
    my $path = "/api/v1/contacts/$ada->{id}";
    is_deeply($ada->{suppressed}, {}, "nobody is");
    $w->import_objects([
        { object => "suppression", email => "second\@x.org" },
        { object => "suppression", email => "somebody\@x.org" }]);
    record_is($c->get($path), $ada, "nor because of another address");
    $w->import_objects([{ object => "suppression", email => "ada\@X.org",
        reason => "bounced" }]);
    $ada->{suppressed} = { email => "bounced" };
    record_is($c->get($path), $ada, "an e-mail address; updated_at stays");
    $w->import_objects([
        { object => "suppression", phone_number => "+4930901820" }]);
    $ada->{suppressed}{sms} = "suppressed";
    record_is($c->get($path), $ada, "a phone number, without a reason");
    record_is($c->get("/api/v1/contacts/by-email",
        query => { email => "ada\@x.org" }), $ada, "by-email says the same");
    list_is($c->get("/api/v1/contacts"), [$ada], "and the list");
    list_is($c->get("/api/v1/contacts", query => { sort => "updated_at" }),
        [$ada], "by time");
    record_is($c->patch($path, { suppressed => {} }), $ada,
        "6.2 it is accepted in a PATCH and ignored");
    record_is($c->patch($path, { notes => "x" }), { %$ada, notes => "x",
        updated_at => $TIME }, "a PATCH shows it");
    is_deeply($c->patch($path, { emails => ["free\@x.org"] })->data->{suppressed},
        { sms => "suppressed" }, "a PATCH that changes the address, too");
    is_deeply($c->post("/api/v1/contacts", \%both)->data->{suppressed},
        $ada->{suppressed}, "and a POST");
    is_deeply($c->post("/api/v1/contacts", \%both, headers => {
        "Idempotency-Key" => "k$_" })->data->{suppressed}, $ada->{suppressed},
        "also one with an Idempotency-Key") for 1, 1;
};

subtest "9.5 a known e-mail: a second contact; look-ups take the oldest"
        => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @same = map { $c->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "No $_", emails => ["Same\@x.org"] }) } 1 .. 3;
    is_deeply([map { $_->status } @same], [201, 201, 201], "three of them");
    @same = map { $_->data } @same;
    record_is($c->get("/api/v1/contacts/by-email",
        query => { email => "sAME\@X.ORG" }), $same[0], "the oldest");
    record_is($c->get("/api/v1/contacts/by-email",
        query => "email=Same%40x.org"), $same[0], "percent-encoded");
    $c->patch("/api/v1/contacts/$same[0]{id}",
        { emails => ["new\@x.org", "same\@x.org"] });
    record_is($c->get("/api/v1/contacts/by-email",
        query => { email => "same\@x.org" }), $same[1],
        "only primary e-mails count");
    $c->delete("/api/v1/contacts/$same[1]{id}");
    record_is($c->get("/api/v1/contacts/by-email",
        query => { email => "same\@x.org" }), $same[2], "the next one");
    is($c->head("/api/v1/contacts/by-email?email=same\@x.org")->status, 200,
        "5.1 HEAD");
    error_is($c->get("/api/v1/contacts/by-email"), 422, "validation_error",
        "7.8 without email", ["email"]);
    error_is($c->get("/api/v1/contacts/by-email", query => "email="), 422,
        "validation_error", "7.3 empty", ["email"]);
    error_is($c->get("/api/v1/contacts/by-email", query => "email=a\@b&email=c"
        . "\@d"), 422, "validation_error", "7.1 twice", ["email"]);
    for my $none ("nobody\@x.org", "no-at", "a b\@x.org", "\@") {
        error_is($c->get("/api/v1/contacts/by-email",
            query => { email => $none }), 404, "not_found",
            "7.8 no match: $none");
    }
    my $plus = $w->contact(emails => ["a+b\@x.org"]);
    record_is($c->get("/api/v1/contacts/by-email",
        query => "email=a+b\@x.org"), $plus, "7.5 a + that arrived as a space");
};

subtest "spec Contacts: every filter, together and with what they list"
        => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my @rows = map { { object => "contact", bot_id => $_->[0],
        first_name => $_->[1], tags => $_->[2], lead_source => $_->[3],
        pipeline_stage_id => $_->[4], created_at => $_->[5],
        updated_at => $_->[6] } } (
        [$w->agent, "Ann", ["a", "b"], "web", ($w->stages)[0],
            "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"],
        [$agent, "Bob", ["b"], "ads", ($w->stages)[1],
            "2026-01-02T00:00:00.000Z", "2026-02-02T00:00:00.000Z"],
        [$agent, "Cyd", [], "web", undef,
            "2026-01-03T00:00:00.000Z", "2026-01-03T00:00:00.000Z"]);
    my @ids = $w->import_objects(\@rows);
    my @whole = map { my %row = %{$rows[$_]}; delete $row{object};
        contact_of($w, %row, id => $ids[$_]) } 0 .. 2;
    for my $case (
        ["", 2, 1, 0], ["search=b", 1], ["search=", 2, 1, 0],
        ["tags=a", 0], ["tags=a,b", 1, 0], ["tags=a,b&tags_match=all", 0],
        ["lead_source=web", 2, 0], ["lead_source=WEB"],
        ["pipeline_stage_id=" . ($w->stages)[1], 1],
        ["bot_id=$agent", 2, 1], ["bot_id=" . $w->agent, 0],
        ["bot_id=" . uuid()], ["bot_id=x"],
        ["bot_id=" . $w->twin_of($w->agent)],
        ["created_after=2026-01-02T00:00:00.000Z", 2, 1],
        ["created_before=2026-01-02", 1, 0],
        ["created_after=2026-01-02&created_before=2026-01-02T00:00:00Z", 1],
        ["updated_after=2026-02-01T00:00:00Z", 1, 0],
        ["updated_after=2026-02-02T01:00:00%2B01:00", 1],
        ["bot_id=$agent&lead_source=web&created_after=2026-01-01"
            . "&search=cyd", 2],
        ["bot_id=$agent&tags=a"],
    ) {
        my ($query, @wanted) = @$case;
        list_is($c->get("/api/v1/contacts", query => $query),
            [@whole[@wanted]], "contacts?$query");
    }
};

subtest "totals follow inserts and deletes, whole and per agent" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my (@ids, @of);
    for my $n (1 .. 30) {
        my $bot = $n % 3 ? $w->agent : $agent;
        push @ids, $c->post("/api/v1/contacts", { bot_id => $bot })
            ->data->{id};
    }
    my $totals = sub { map { total_of($c, "/contacts", @$_) } [],
        [bot_id => $w->agent], [bot_id => $agent], [bot_id => uuid()] };
    is_deeply([$totals->()], [30, 20, 10, 0], "30 created");
    $c->delete("/api/v1/contacts/$_") for @ids[0 .. 5];
    is_deeply([$totals->()], [24, 16, 8, 0], "6 deleted");
    $c->post("/api/v1/contacts/upsert", { bot_id => $agent,
        contacts => [map { { first_name => "U$_" } } 1 .. 7] });
    is_deeply([$totals->()], [31, 16, 15, 0], "7 upserted");
    $w->import_objects([map { { object => "contact",
        bot_id => $w->agent } } 1 .. 9]);
    is_deeply([$totals->()], [40, 25, 15, 0], "9 imported");
    my %seen;
    for my $page (1 .. 4) {
        my $r = $c->get("/api/v1/contacts",
            query => { page => $page, page_size => 13 });
        value_is($r->json->{pagination}, page_of(40, $page, 13),
            "7.2 page $page");
        is(scalar @{$r->data}, $page == 4 ? 1 : 13, "and its rows");
        $seen{$_}++ for @{$r->ids};
    }
    is(scalar keys %seen, 40, "7.10 each exactly once");
};

subtest "spec GET /contacts/{id}/activities and /conversations" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($contact, $other) = $w->import_objects([map { { object => "contact",
        bot_id => $w->agent } } 1, 2]);
    my $path = "/api/v1/contacts/$contact";
    list_is($c->get("$path/activities"), [], "no activity");
    list_is($c->get("$path/conversations"), [], "no conversation");
    my @activities = map { $c->post("/api/v1/activities",
        { activity_type => $_, contact_id => $contact })->data }
        qw(note call note task);
    $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $other });
    list_is($c->get("$path/activities"), [reverse @activities],
        "reverse-chronological");
    list_is($c->get("$path/activities", query => { activity_type => "note" }),
        [@activities[2, 0]], "activity_type=note");
    list_is($c->get("$path/activities", query => { activity_type => "todo" }),
        [], "activity_type=todo");
    error_is($c->get("$path/activities", query => { activity_type => "x" }),
        422, "validation_error", "7.6 activity_type=x", ["activity_type"]);
    my $r = $c->get("$path/activities", query => { page => 2,
        page_size => 3 });
    value_is($r->json, { data => [$activities[0]],
        pagination => page_of(4, 2, 3) }, "page 2");
    my @ids = $w->import_objects([map { { object => "conversation",
        bot_id => $w->agent, contact_id => $_->[0], type => $_->[1],
        created_at => $_->[2] } } (
        [$contact, 1, "2026-01-01T00:00:00.000Z"],
        [$contact, 4, "2026-01-02T00:00:00.000Z"],
        [$other, 4, "2026-01-03T00:00:00.000Z"])]);
    my @threads = map { $c->get("/api/v1/conversations/$_")->data } @ids;
    list_is($c->get("$path/conversations"), [@threads[1, 0]],
        "its conversations");
    list_is($c->get("$path/conversations", query => { type => "email",
        order => "asc" }), [$threads[1]], "7.9 with the list's parameters");
    list_is($c->get("$path/conversations", query => { contact_id => $other }),
        [], "7.9 another contact's id beside: both hold");
};

subtest "every change of a contact is to be found" => sub {
    # what search and by-email look at is kept up to date by the database
    my $w = workspace($httpd);
    my $c = $w->client;
    my $contact = $w->contact(first_name => "Old", emails => ["old\@x.org"],
        phone_numbers => ["111"], tags => ["old"]);
    $contact = $c->patch("/api/v1/contacts/$contact->{id}",
        { first_name => "New", emails => ["new\@x.org"],
            phone_numbers => ["(2) 22"], tags => ["new"] })->data;
    for my $query ("search=New", "search=new\@x", "search=222", "tags=new") {
        list_is($c->get("/api/v1/contacts", query => $query), [$contact],
            $query);
    }
    for my $query ("search=old", "search=111", "tags=old") {
        list_is($c->get("/api/v1/contacts", query => $query), [], $query);
    }
};

$httpd->stop;
done_testing;
