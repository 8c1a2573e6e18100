# SPDX-License-Identifier: Apache-2.0
# 15-errors.t: the envelope, details, what errors must not reveal (contract 5.5,
# 5.6, 2.1), and errors caused by races
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data qw(enroll);
use CrmTest::Session;

my $database = database();
my $httpd = httpd(database => $database,
    unlimited => 1, conf => "CrmApiMaxBody 200000\n");
my $anyone = $httpd->client;

# What no client may see of the inside (contract 5.5).
my $INSIDE = qr/\b(?:SELECT|INSERT|UPDATE|DELETE\ FROM|WHERE|SQLSTATE|psql
    |crmapi\.|libpq|postgres|relation|constraint|violates
    |syntax\ error\ at\ or|column\s"|plpgsql|json-c|json_tokener|apr_|httpd
    |apache|localhost|127\.0\.0\.1)|_(?:fkey|pkey|check)\b|\.c:\d+
    |\/(?:tmp|usr|var|etc|home|root)\//xi;

# R is an error in the envelope and nothing else, and tells nothing.
sub envelope_is {
    my ($r, $status, $code, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    error_is($r, $status, $code, $name) or return;
    my $json = $r->json;
    my @keys = sort keys %{$json->{error}};
    my $ok = is_deeply([sort keys %$json], ["error"],
        "5.5 $name: error and nothing beside");
    $ok &= is_deeply([grep { $_ ne "details" } @keys], ["code", "message"],
        "5.5 $name: code and message");
    $ok &= is(!!(grep { $_ eq "details" } @keys), !!0,
        "5.6 $name: details only with a 422") if $status != 422;
    $ok &= unlike($r->body, $INSIDE, "5.5 $name: nothing of the inside");
    $ok &= is($r->header("Content-Length"), length $r->body,
        "$name: Content-Length");
    $ok &= like($r->header("Retry-After") // "", qr/^[1-9]\d*$/,
        "5.5 $name: Retry-After") if $status == 503 || $status == 429;
    diag($r->text) unless $ok;
}

subtest "what would be of the inside is seen" => sub {
    like($_, $INSIDE, $_) for "SELECT 1", "select \"id\" from", "SQLSTATE 23503",
        "crmapi.contact", "relation \"contact\" does not exist",
        "violates check constraint", "contact_company_id_fkey", "form_pkey",
        "syntax error at or near", "column \"x\"", "(crm_op.c:12)",
        "/usr/lib/x.so", "at 127.0.0.1";
    unlike($_, $INSIDE, $_) for "The body is not valid JSON: a comma at byte 3",
        "must be one of internal, external, both", "contacts[0].emails";
};

subtest "404 and 405 say what was not found, and what there is" => sub {
    my $w = workspace($httpd, plan => "pro");
    my $c = $w->client;
    my $none = uuid();
    my $document = qr{/api/v1/docs has all};
    for my $case (
        [get => "/none", 404, $document], [get => "/contact", 404, $document],
        [get => "/contacts/$none/none", 404, $document],
        [get => "/contacts/$none", 404, qr/no contact with this id$/],
        [patch => "/contacts/$none", 404, qr/no contact with this id$/],
        [delete => "/pipeline-cards/$none", 404,
            qr/no pipeline card with this id$/],
        [get => "/companies/x/activities", 404, qr/no company with this id$/],
        [get => "/sequences/templates/$none", 404,
            qr/no sequence template with this id$/],
        [post => "/sequences/enrollments/$none/stop", 404,
            qr/no enrollment with this id$/],
        [get => "/contacts/by-email?email=a\@x.org", 404,
            qr/no contact with this email$/],
        [post => "/agents", 405, qr/takes GET, HEAD, OPTIONS$/],
        [get => "/contacts/upsert", 405, qr/takes POST, OPTIONS$/],
        [put => "/contacts/$none", 405, qr/takes GET, HEAD, PATCH, DELETE, OPTIONS$/],
        # a word of another path where an id is expected
        [get => "/agents/upsert", 404, qr{"upsert" is no id.*/(?:contacts|companies)/upsert}],
        [post => "/contacts/by-email", 405, qr/takes GET, HEAD, OPTIONS$/],
        [get => "/sequences/enrollments/stop", 404,
            qr{"stop" is no id.*/sequences/enrollments/\{id\}/stop}],
        [get => "/contacts/merge", 404,
            qr{"merge" is no id.*/contacts/\{id\}/merge}],
        [delete => "/contacts/erase", 404,
            qr{"erase" is no id.*/contacts/\{id\}/erase}],
        [post => "/contacts/$none/merge", 404, qr/no contact with this id$/],
        [get => "/companies/upsert", 405, qr/takes POST, OPTIONS$/],
        [get => "/suppressions/$none", 404, qr/no suppression with this id$/],
        [get => "/conversations/$none/messages", 404,
            qr/no conversation with this id$/],
        [get => "/forms/$none/submissions", 404, qr/no form with this id$/],
        [get => "/attachments/$none", 404, qr/no attachment with this id$/],
        [post => "/conversations/messages", 405,
            qr{"messages" is no id.*/conversations/\{id\}/messages}],
    ) {
        my ($method, $path, $status, $message) = @$case;
        my $r = $c->request(uc $method, "/api/v1$path",
            $method eq "get" || $method eq "delete" ? () : (json => {}));
        envelope_is($r, $status, $status == 404 ? "not_found"
            : "method_not_allowed", "$method $path");
        like($r->json->{error}{message}, $message, "$method $path: says it");
    }
    my $r = $c->post("/api/v1/sequences/start", { template_id => $none,
        contact => { emails => ['a@x.org'] }, bot_id => $w->agent });
    like($r->json->{error}{message}, qr/no sequence template/, "and the template");
    for my $case (["sequences/start", "template_id", "sequence template"],
            ["pipeline-cards", "pipeline_stage_id", "pipeline stage"]) {
        my ($path, $field, $name) = @$case;
        my $r = $c->post("/api/v1/$path", { $field => "x", $path =~ /start/
            ? (contact => { emails => ['a@x.org'] }) : (title => "T") });
        my ($says) = grep { $_->{field} eq $field } @{$r->details};
        like($says->{message}, qr/existing \Q$name\E of/, "$path: $field");
    }
};

subtest "5.5 every code in its envelope" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $ro = $w->client(key => $w->make_key("read"));
    envelope_is($c->request("POST", "/api/v1/contacts", body => "{"), 400,
        "bad_request", "status 400");
    envelope_is($anyone->get("/api/v1/contacts"), 401, "unauthorized",
        "status 401");
    envelope_is($ro->post("/api/v1/contacts", {}), 403, "forbidden",
        "status 403");
    envelope_is($c->get("/api/v1/none"), 404, "not_found", "404 of a route");
    envelope_is($c->get("/api/v1/contacts/" . uuid()), 404, "not_found",
        "404 of a row");
    envelope_is($c->post("/api/v1/agents", {}), 405, "method_not_allowed",
        "status 405");
    my ($contact, $template) = $w->import_objects([
        { object => "contact", bot_id => $w->agent },
        { object => "sequence_template", name => "T", bot_id => $w->agent,
            allowed_channels => ["email"] }]);
    my ($enrollment) = enroll($w, $template, $contact);
    envelope_is($c->post("/api/v1/sequences/enrollments/$enrollment/approve"),
        409, "conflict", "status 409");
    envelope_is($c->request("POST", "/api/v1/contacts", body => " " x 200001),
        413, "payload_too_large", "status 413");
    envelope_is($anyone->get("/api/v1/contacts?x=" . "a" x 9000), 414,
        "uri_too_long", "status 414");
    envelope_is($c->request("POST", "/api/v1/contacts", body => "{}",
        headers => { "Content-Type" => "text/xml" }), 415,
        "unsupported_media_type", "status 415");
    envelope_is($c->post("/api/v1/contacts", {}), 422, "validation_error",
        "status 422");
    envelope_is($c->get("/api/v1/contacts", query => "page=0"), 422,
        "validation_error", "422 of a query");
    my $tight = httpd(database => $database, conf => "CrmApiReadLimit 1\n");
    my $one = $tight->client(key => $w->key);
    status_is($one->get("/api/v1/agents"), 200);
    envelope_is($one->get("/api/v1/agents"), 429, "rate_limited",
        "status 429");
};

subtest "5.5 errors tell nothing of the inside, whatever is sent" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @texts = ("'", "''", "\\", "\\'", "\";--", "%s%n", "\$1", "?", "\x{0}",
        "\x{ffff}", "1; SELECT pg_sleep(9)", "{}", "{a,b", "NaN", "infinity",
        "-infinity", "epoch", "now", "null", "\x{202e}", "a" x 70000);
    for my $text (@texts) {
        my $what = substr($text =~ s/([^ -~])/sprintf "<%x>", ord $1/egr,
            0, 20);
        for my $field (qw(bot_id company_id emails phone_numbers tags
                deal_value custom_fields first_name linkedin_url)) {
            for my $value ($text, [$text], { $text => $text }) {
                my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
                    $field => $value });
                ok($r->status == 201 || $r->status == 422
                    || ($r->status == 400 && $text eq "\x{0}"),
                    "$field: $what: " . $r->status) or diag($r->text);
                unlike($r->body, $INSIDE, "5.5 $field: $what")
                    if $r->status != 201;
            }
        }
        next if length $text > 1000 || $text eq "\x{ffff}";
        my $encoded = CrmTest::Client::escape($text eq "\x{202e}"
            ? "\xe2\x80\xae" : $text);
        for my $field (qw(search tags lead_source bot_id created_after page
                page_size tags_match pipeline_stage_id)) {
            my $r = $c->get("/api/v1/contacts", query => "$field=$encoded");
            ok($r->status == 200 || $r->status == 422,
                "?$field: $what: " . $r->status) or diag($r->text);
            unlike($r->body, $INSIDE, "5.5 ?$field: $what")
                if $r->status != 200;
        }
        my $r = $c->get("/api/v1/contacts/by-email",
            query => "email=$encoded");
        ok($r->status == 404 || $r->status == 422, "by-email: $what");
    }
};

subtest "5.6 odd names come back as JSON" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %strict = (headers => { Prefer => "handling=strict" });
    for my $case (["%22", "\""], ["%5c", "\\"], ["%0a", "\n"],
            ["%01", "\x01"], ["%c3%a4", "\x{e4}"], ["a%20b", "a b"],
            ["%3Cb%3E", "<b>"], ["%f0%9f%98%80", "\x{1f600}"]) {
        my ($sent, $name) = @$case;
        my $r = $c->get("/api/v1/contacts", query => "$sent=1", %strict);
        error_is($r, 422, "validation_error", "5.6 ?$sent", [$name]);
    }
    for my $sent ("%ff", "%00", "a%00b", "%c3", "%ed%a0%80", "%zz", "%") {
        my $r = $c->get("/api/v1/contacts", query => "$sent=1", %strict);
        error_is($r, 422, "validation_error",
            "5.6 ?$sent: the answer is valid JSON");
        ok(utf8::decode(my $text = $r->body), "and valid UTF-8");
    }
    my %many = map { sprintf("u%04d", $_) => 1 } 1 .. 2000;
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent, %many });
    error_is($r, 422, "validation_error", "5.6 2,000 unknown fields");
    is(scalar @{$r->details}, 2000, "5.6 every one is named");
    $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        "n" x 50000 => 1 });
    error_is($r, 422, "validation_error", "a name of 50,000 letters");
};

subtest "5.6 paths of nested fields" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $agent = $w->agent;
    error_is($c->post("/api/v1/companies", { bot_id => $agent, name => "x",
        emails => [{ email => "a\@x.org" }, { email => "x" }],
        phone_numbers => [{ phone_number => 1 }, "", {}] }), 422,
        "validation_error", "5.6 a company's lists", ["emails[1].email",
        "phone_numbers[0].phone_number", "phone_numbers[1]",
        "phone_numbers[2].phone_number"]);
    error_is($c->post("/api/v1/contacts", { bot_id => $agent, emails => [
        { email => "a\@x.org", is_primary => true },
        { email => "b\@x.org", is_primary => true }] }), 422,
        "validation_error", "9.2 two primaries");
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $agent,
        contacts => [{}, { deal_value => "x" }, 5, { bot_id => uuid(),
        first_name => 1 }, { emails => [{ email => "x" }] }] });
    status_is($r, 200, "an upsert");
    is_deeply([map { [$_->{index}, sort map { $_->{field} }
        @{$_->{details}}] } @{$r->data->{errors}}], [
        [1, "contacts[1].deal_value"], [2, "contacts[2]"],
        [3, "contacts[3].bot_id", "contacts[3].first_name"],
        [4, "contacts[4].emails[0].email"]], "5.6, 10.2 paths in an upsert")
        or diag($r->text);
    for my $error (@{$r->data->{errors}}) {
        ok(length $error->{message}, "10.2 message of $error->{index}");
        unlike($error->{message}, $INSIDE, "5.5 nothing of the inside");
    }
    error_is($c->post("/api/v1/contacts/upsert", {}), 422,
        "validation_error", "an empty upsert", ["bot_id", "contacts"]);
    error_is($c->post("/api/v1/contacts/upsert", { bot_id => $agent,
        contacts => {} }), 422, "validation_error", "10.4 not an array",
        ["contacts"]);
    error_is($c->post("/api/v1/sequences/start", { template_id => uuid(),
        contact => { emails => ["x", 1], phone_numbers => ["12"],
        first_name => 2, tags => [3], custom_fields => [] },
        auto_approve => "yes", name => 4, idempotency_key => "" }), 422,
        "validation_error", "5.6 a start", ["auto_approve",
        "contact.custom_fields", "contact.emails[0]", "contact.emails[1]",
        "contact.first_name", "contact.phone_numbers[0]", "contact.tags[0]",
        "idempotency_key", "name"]);
    error_is($c->post("/api/v1/activities", { activity_type => "party",
        due_date => "soon", duration_minutes => "1", metadata => [] }), 422,
        "validation_error", "5.6 an activity", ["activity_type",
        "contact_id", "due_date", "duration_minutes", "metadata"]);
    error_is($c->post("/api/v1/pipeline-cards", { order_index => -1,
        tags => "x" }), 422, "validation_error", "5.6 a card",
        ["order_index", "pipeline_stage_id", "tags", "title"]);
};

# Send METHOD PATH with JSON, wait until it waits for a lock, call THEN, and
# return the response.
sub while_waiting {
    my ($w, $method, $path, $json, $then) = @_;
    my $c = $w->client->ask($method, "/api/v1$path",
        defined $json ? (json => $json) : ());
    wait_blocked($database, 1);
    $then->();
    my $r = $c->read_response($method);
    $r->{request} = { method => $method, path => "/api/v1$path",
        headers => {} };
    return $r;
}

subtest "races: what disappears meanwhile" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $company = sub { $w->company(name => "x")->{id} };
    my $contact = sub { $w->contact->{id} };

    my $id = $company->();
    my $end = holding($database, "DELETE FROM crmapi.company WHERE id = '$id'");
    my $r = while_waiting($w, "POST", "/contacts", { bot_id => $w->agent,
        company_id => $id }, sub { $end->("COMMIT") });
    error_is($r, 422, "validation_error",
        "6.8 a company deleted while it is referred to", ["company_id"]);
    unlike($r->body, $INSIDE, "5.5 without the constraint's name");

    $id = $company->();
    my $other = $contact->();
    $end = holding($database, "DELETE FROM crmapi.company WHERE id = '$id'");
    $r = while_waiting($w, "PATCH", "/contacts/$other",
        { company_id => $id }, sub { $end->("COMMIT") });
    error_is($r, 422, "validation_error", "6.8 in a PATCH, too",
        ["company_id"]);

    $id = $contact->();
    $end = holding($database, "DELETE FROM crmapi.contact WHERE id = '$id'");
    $r = while_waiting($w, "PATCH", "/contacts/$id", { notes => "x" },
        sub { $end->("COMMIT") });
    error_is($r, 404, "not_found", "a contact deleted while it is changed");

    $id = $contact->();
    $end = holding($database, "DELETE FROM crmapi.contact WHERE id = '$id'");
    $r = while_waiting($w, "DELETE", "/contacts/$id", undef,
        sub { $end->("COMMIT") });
    error_is($r, 404, "not_found", "8.1 deleted twice at once: one 404");

    $id = $contact->();
    $end = holding($database, "DELETE FROM crmapi.contact WHERE id = '$id'");
    $r = while_waiting($w, "PATCH", "/contacts/$id", { notes => "x" },
        sub { $end->("ROLLBACK") });
    status_is($r, 200, "rolled back, it is there");
    is($r->data->{notes}, "x", "and changed");

    $id = $contact->();
    $end = holding($database, "DELETE FROM crmapi.contact WHERE id = '$id'");
    $r = while_waiting($w, "POST", "/activities", { activity_type => "note",
        contact_id => $id }, sub { $end->("COMMIT") });
    error_is($r, 422, "validation_error",
        "6.8 a contact deleted while an activity is made", ["contact_id"]);

    $id = $contact->();
    $end = holding($database, "DELETE FROM crmapi.contact WHERE id = '$id'");
    $r = while_waiting($w, "POST", "/pipeline-cards", { title => "x",
        pipeline_stage_id => ($w->stages)[0], contact_id => $id },
        sub { $end->("COMMIT") });
    error_is($r, 422, "validation_error",
        "6.8 a contact deleted while a card is made", ["contact_id"]);

    $id = $contact->();
    my $path = "/contacts/$id";
    $end = holding($database, "UPDATE crmapi.contact SET notes = 'other' WHERE id ="
        . " '$id'");
    $r = while_waiting($w, "PATCH", $path, { first_name => "x" },
        sub { $end->("COMMIT") });
    status_is($r, 200, "a change meanwhile");
    is_deeply([@{$r->data}{qw(first_name notes)}], ["x", "other"],
        "spec: only sent fields change");
};

subtest "3.2 a key revoked while its request waits" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $key = $w->make_key("read,write");
    my $key_id = ($w->key_ids)[-1];
    my $id = $w->contact->{id};
    my $end = holding($database, "SELECT FROM crmapi.contact WHERE id = '$id' FOR UPDATE");
    my $old = $w->{key};
    $w->{key} = $key;
    my $r = while_waiting($w, "PATCH", "/contacts/$id", { notes => "late" },
        sub { $w->ctl("key", "revoke", $key_id); $end->("ROLLBACK") });
    $w->{key} = $old;
    # It was admitted before the revocation committed: either is right, but
    # not something between.
    ok($r->status == 200 || $r->status == 401, "200 or 401: " . $r->status);
    is($c->get("/api/v1/contacts/$id")->data->{notes},
        $r->status == 200 ? "late" : undef, "and what it says is so");
    error_is($c->get("/api/v1/agents", key => $key), 401, "unauthorized",
        "afterwards it is dead");
};

subtest "5.5 what is wrong with the server: 503 or 500, logged once" => sub {
    my $own = database();
    my $broken = httpd(database => $own, unlimited => 1);
    my $w = workspace($broken);
    my $c = $w->client;
    status_is($c->get("/api/v1/companies"), 200);
    $broken->expect_log(qr/CRM2001: database: 42703 / => 2,
        qr/CRM2001: database: 42501 permission denied/ => 1,
        qr/CRM2001: database: 23514 .*odd_secret_rule/ => 1);
    my $lines = 0;
    my $logged = sub {
        my ($r, $what, $name) = @_;
        my @all = $broken->log_lines(qr/\[crmapi:(?:error|warn|crit)\]/);
        is(@all - $lines, 1, "$name: one line in error_log")
            or diag(join "\n", @all[$lines .. $#all]);
        like($all[-1] // "", $what, "$name: it says what it is");
        like($all[-1] // "", qr/\Q@{[$r->header("X-Request-Id")]}\E/,
            "5.4 $name: and which request");
        $lines = @all;
    };
    # tables that are not as the module expects: not migrated
    sql($own, "ALTER TABLE crmapi.company RENAME COLUMN website TO gone");
    my $r = $c->get("/api/v1/companies");
    envelope_is($r, 503, "service_unavailable", "a column is missing");
    $logged->($r, qr/website/, "a read");
    status_is($c->get("/api/v1/companies"), 503, "again") for 1 .. 3;
    my @now = $broken->log_lines(qr/\[crmapi:(?:error|warn|crit)\]/);
    is(scalar @now, $lines, "what lasts is logged once a minute");
    $r = $c->post("/api/v1/companies", { bot_id => $w->agent, name => "x" });
    envelope_is($r, 503, "service_unavailable", "a column is missing");
    $logged->($r, qr/website/, "a write");
    status_is($c->get("/api/v1/contacts"), 200, "the rest works");
    sql($own, "ALTER TABLE crmapi.company RENAME COLUMN gone TO website");
    status_is($c->get("/api/v1/companies"), 200, "and it, once mended");

    sql($own, "REVOKE INSERT ON crmapi.contact FROM crmapi_api");
    $r = $c->post("/api/v1/contacts", { bot_id => $w->agent });
    envelope_is($r, 503, "service_unavailable", "a right is missing");
    $logged->($r, qr/permission/, "a right");
    sql($own, "GRANT INSERT ON crmapi.contact TO crmapi_api");
    status_is($c->post("/api/v1/contacts", { bot_id => $w->agent }), 201,
        "and works when it is there again");

    # a rule of the database that the API does not know
    sql($own, "ALTER TABLE crmapi.contact ADD CONSTRAINT odd_secret_rule"
        . " CHECK (first_name <> 'Odd')");
    $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "Odd", last_name => "Private" });
    envelope_is($r, 500, "internal_error", "a constraint nobody knows");
    $logged->($r, qr/odd_secret_rule/, "a constraint");
    unlike($r->body, qr/odd_secret/, "5.5 its name is not told");
    unlike($broken->log_text, qr/Private/,
        "and what the client sent is not logged");
    is(sql($own, "SELECT count(*) FROM crmapi.contact"), 1,
        "and nothing is written");
    $broken->stop;
};

done_testing;
