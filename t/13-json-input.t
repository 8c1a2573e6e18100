# SPDX-License-Identifier: Apache-2.0
# 13-json-input.t: valid and invalid bodies, and how they are stored (contract
# 6)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Spec;
use JSON::PP ();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

# POST BODY, bytes, to PATH (default: contacts).
sub send_body {
    my ($w, $body, $path) = @_;
    return $w->client->request("POST", $path || "/api/v1/contacts",
        body => $body);
}

sub count_contacts {
    my ($w) = @_;
    return sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
        . " workspace_id = '" . $w->id . "'");
}

# In these, BOT stands for the agent's id.
my @BROKEN = (
    ["an empty body", ""],
    ["blanks only", " \t\r\n"],
    ["a cut object", '{"bot_id":"BOT"'],
    ["a cut string", '{"bot_id":"BOT'],
    ["an open brace", "{"],
    ["a closing brace", "}"],
    ["a closing bracket for a brace", '{"bot_id":"BOT"]'],
    ["no quotes", "{bot_id:\"BOT\"}"],
    ["single quotes", "{'bot_id':'BOT'}"],
    ["a comma too many", '{"bot_id":"BOT",}'],
    ["two commas", '{"bot_id":"BOT",,"notes":"x"}'],
    ["a leading comma", '{,"bot_id":"BOT"}'],
    ["no comma", '{"bot_id":"BOT" "notes":"x"}'],
    ["no colon", '{"bot_id" "BOT"}'],
    ["two colons", '{"bot_id"::"BOT"}'],
    ["a key alone", '{"bot_id"}'],
    ["no value", '{"bot_id":}'],
    ["a number as key", '{1:"BOT"}'],
    ["a comment", '{"bot_id":"BOT"/* x */}'],
    ["a comment to the end", "{\"bot_id\":\"BOT\"}// x"],
    ["a hash comment", "{\"bot_id\":\"BOT\"}# x"],
    ["a comma too many in an array", '{"bot_id":"BOT","tags":["a",]}'],
    ["an array of a comma", '{"bot_id":"BOT","tags":[,]}'],
    ["a BOM", "\xef\xbb\xbf{\"bot_id\":\"BOT\"}"],
    ["a UTF-16 body", "\xfe\xff\0{\0}"],
    ["trailing text", '{"bot_id":"BOT"} x'],
    ["a second value", '{"bot_id":"BOT"}{}'],
    ["a second comma", '{"bot_id":"BOT"},'],
    ["a NUL at the end", "{\"bot_id\":\"BOT\"}\0"],
    ["a NUL between", "{\"bot_id\":\0\"BOT\"}"],
    ["a duplicate key", '{"bot_id":"BOT","notes":"a","notes":"b"}'],
    ["the same key twice with the same value",
        '{"bot_id":"BOT","notes":"a","notes":"a"}'],
    ["a duplicate key, one escaped",
        '{"bot_id":"BOT","notes":"a","not\u0065s":"b"}'],
    ["a nested duplicate key",
        '{"bot_id":"BOT","custom_fields":{"a":1,"a":2}}'],
    ["a duplicate key in an array's object",
        '{"bot_id":"BOT","emails":[{"email":"a@x.org","email":"b@x.org"}]}'],
    ["a duplicate key of the empty name",
        '{"bot_id":"BOT","custom_fields":{"":1,"":2}}'],
    ["depth 33", '{"bot_id":"BOT","custom_fields":' . '{"a":' x 32 . "1"
        . "}" x 32 . "}"],
    ["depth 100,000", "[" x 100_000 . "]" x 100_000],
    ["depth 100,000, never closed", "[" x 100_000],
    ["depth 100,000 of objects", '{"a":' x 100_000 . "1" . "}" x 100_000],
    ["NaN", '{"bot_id":"BOT","deal_value":NaN}'],
    ["nan", '{"bot_id":"BOT","deal_value":nan}'],
    ["Infinity", '{"bot_id":"BOT","deal_value":Infinity}'],
    ["-Infinity", '{"bot_id":"BOT","deal_value":-Infinity}'],
    ["a leading zero", '{"bot_id":"BOT","deal_value":01}'],
    ["minus and a leading zero", '{"bot_id":"BOT","deal_value":-01}'],
    ["a plus sign", '{"bot_id":"BOT","deal_value":+1}'],
    ["a point at the start", '{"bot_id":"BOT","deal_value":.5}'],
    ["a point at the end", '{"bot_id":"BOT","deal_value":5.}'],
    ["a point and an exponent", '{"bot_id":"BOT","deal_value":5.e1}'],
    ["an empty exponent", '{"bot_id":"BOT","deal_value":5e}'],
    ["an empty signed exponent", '{"bot_id":"BOT","deal_value":5e+}'],
    ["a minus alone", '{"bot_id":"BOT","deal_value":-}'],
    ["two minus signs", '{"bot_id":"BOT","deal_value":--1}'],
    ["hexadecimal", '{"bot_id":"BOT","deal_value":0x10}'],
    ["a thousands separator", '{"bot_id":"BOT","deal_value":1_000}'],
    ["a suffix", '{"bot_id":"BOT","deal_value":1f}'],
    ["True", '{"bot_id":"BOT","notes":True}'],
    ["TRUE", '{"bot_id":"BOT","notes":TRUE}'],
    ["nul", '{"bot_id":"BOT","notes":nul}'],
    ["Null", '{"bot_id":"BOT","notes":Null}'],
    ["undefined", '{"bot_id":"BOT","notes":undefined}'],
    ["truex", '{"bot_id":"BOT","notes":truex}'],
    ["a raw newline in a string", "{\"bot_id\":\"BOT\",\"notes\":\"a\nb\"}"],
    ["a raw tab in a string", "{\"bot_id\":\"BOT\",\"notes\":\"a\tb\"}"],
    ["a raw U+0001 in a string", "{\"bot_id\":\"BOT\",\"notes\":\"a\x01b\"}"],
    ["a raw U+001F in a key", "{\"bot_id\":\"BOT\",\"no\x1ftes\":\"a\"}"],
    ["a raw NUL in a string", "{\"bot_id\":\"BOT\",\"notes\":\"a\0b\"}"],
    ["a form feed between", "{\f\"bot_id\":\"BOT\"}"],
    ["a no-break space between", "{\xc2\xa0\"bot_id\":\"BOT\"}"],
    ["an unknown escape", '{"bot_id":"BOT","notes":"\x"}'],
    ["an escaped quote mark", '{"bot_id":"BOT","notes":"\\\'"}'],
    ["an octal escape", '{"bot_id":"BOT","notes":"\012"}'],
    ["a short \\u", '{"bot_id":"BOT","notes":"\u12"}'],
    ["a \\u with a letter too far", '{"bot_id":"BOT","notes":"\u12g4"}'],
    ["\\U", '{"bot_id":"BOT","notes":"\U0041"}'],
    ["a backslash at the end", '{"bot_id":"BOT","notes":"\\'],
    ["a lone high surrogate", '{"bot_id":"BOT","notes":"\ud800"}'],
    ["a lone low surrogate", '{"bot_id":"BOT","notes":"\udc00"}'],
    ["a high surrogate and a letter", '{"bot_id":"BOT","notes":"\ud800a"}'],
    ["two high surrogates", '{"bot_id":"BOT","notes":"\ud800\ud800"}'],
    ["surrogates the wrong way round",
        '{"bot_id":"BOT","notes":"\udc00\ud800"}'],
    ["a high surrogate and \\u0041",
        '{"bot_id":"BOT","notes":"\ud800\u0041"}'],
    ["a lone surrogate in a key",
        '{"bot_id":"BOT","custom_fields":{"\ud800":1}}'],
    ["invalid UTF-8: a lone 0x80", "{\"bot_id\":\"BOT\",\"notes\":\"\x80\"}"],
    ["invalid UTF-8: a cut one", "{\"bot_id\":\"BOT\",\"notes\":\"\xc3\"}"],
    ["invalid UTF-8: 0xff", "{\"bot_id\":\"BOT\",\"notes\":\"\xff\"}"],
    ["Latin-1", "{\"bot_id\":\"BOT\",\"notes\":\"M\xfcller\"}"],
    ["overlong /", "{\"bot_id\":\"BOT\",\"notes\":\"\xc0\xaf\"}"],
    ["overlong NUL", "{\"bot_id\":\"BOT\",\"notes\":\"\xc0\x80\"}"],
    ["overlong in three", "{\"bot_id\":\"BOT\",\"notes\":\"\xe0\x80\xaf\"}"],
    ["overlong in four", "{\"bot_id\":\"BOT\",\"notes\":\"\xf0\x80\x80\xaf\"}"],
    ["a surrogate in UTF-8", "{\"bot_id\":\"BOT\",\"notes\":\"\xed\xa0\x80\"}"],
    ["CESU-8", "{\"bot_id\":\"BOT\",\"notes\":\"\xed\xa0\xbd\xed\xb8\x80\"}"],
    ["above U+10FFFF", "{\"bot_id\":\"BOT\",\"notes\":\"\xf4\x90\x80\x80\"}"],
    ["invalid UTF-8 in a key", "{\"bot_id\":\"BOT\",\"n\xff\":1}"],
    ["invalid UTF-8 in free-form JSON",
        "{\"bot_id\":\"BOT\",\"custom_fields\":{\"a\":\"\xff\"}}"],
    ["U+0000 in a key", '{"bot_id":"BOT","not\u0000es":"x"}'],
    ["U+0000 in a nested key",
        '{"bot_id":"BOT","custom_fields":{"a\u0000":1}}'],
    ["a form", "bot_id=BOT&notes=x"],
    ["XML", "<contact/>"],
    ["a word", "contact"],
);

subtest "6.1 what is not JSON is a 400" => sub {
    my $w = workspace($httpd);
    my $id = $w->contact->{id};
    for my $case (@BROKEN) {
        my ($name, $body) = @$case;
        my $agent = $w->agent;
        $body =~ s/BOT/$agent/g;
        my $r = send_body($w, $body);
        error_is($r, 400, "bad_request", "6.1 $name");
        my $says = $body =~ /\S/ ? qr/^The body is not valid JSON: .* at byte \d/
            : qr/^The body is empty; a JSON object is expected$/;
        like($r->json->{error}{message}, $says, "and what is wrong: $name");
    }
    for my $name ("an empty body", "a cut object", "a duplicate key", "NaN",
            "a BOM", "U+0000 in a key") {
        my ($case) = grep { $_->[0] eq $name } @BROKEN;
        my $agent = $w->agent;
        my $body = $case->[1] =~ s/BOT/$agent/gr;
        for my $path ("/contacts/upsert", "/companies", "/pipeline-cards",
                "/activities", "/sequences/start") {
            error_is(send_body($w, $body, "/api/v1$path"), 400, "bad_request",
                "6.1 $path: $name");
        }
        error_is($w->client->request("PATCH", "/api/v1/contacts/$id",
            body => $body), 400, "bad_request", "6.1 PATCH: $name");
    }
    is(count_contacts($w), 1, "and nothing is written");
};

subtest "6.1 what is JSON, but not what is asked for, is a 422" => sub {
    my $w = workspace($httpd);
    for my $body ("[]", "null", "true", "1", '"x"', "[{}]", " [ ] ",
            '[{"bot_id":"' . $w->agent . '"}]') {
        error_is(send_body($w, $body), 422, "validation_error",
            "6.1 top level: $body");
        error_is(send_body($w, $body, "/api/v1/contacts/upsert"), 422,
            "validation_error", "6.1 of an upsert: $body");
    }
    my $post = sub {
        my ($members) = @_;
        return send_body($w, qq({"bot_id":"@{[$w->agent]}",$members}));
    };
    for my $case (
        ['"notes":"a\u0000b"', "notes"],
        ['"first_name":"\u0000"', "first_name"],
        ['"tags":["a","b\u0000"]', "tags[1]"],
        ['"emails":["a\u0000@example.com"]', "emails[0]"],
        ['"custom_fields":{"a":"\u0000"}', "custom_fields"],
        ['"custom_fields":{"a":[{"b":"x\u0000"}]}', "custom_fields"],
        ['"company_id":"\u0000"', "company_id"],
        ['"deal_value":1e400', "deal_value"],
        ['"deal_value":-1e400', "deal_value"],
        ['"deal_value":99999999999999999999999', "deal_value"],
        ['"deal_value":1e15', "deal_value"],
        ['"deal_value":-1e15', "deal_value"],
        ['"deal_value":1000000000000000', "deal_value"],
        ['"deal_value":0.00001', "deal_value"],
        ['"deal_value":1.23456', "deal_value"],
        ['"deal_value":1e-5', "deal_value"],
        ['"deal_value":"1"', "deal_value"],
        ['"deal_value":""', "deal_value"],
        ['"deal_value":true', "deal_value"],
        ['"deal_value":[]', "deal_value"],
    ) {
        my ($members, $field) = @$case;
        my $r = $post->($members);
        error_is($r, 422, "validation_error", "6.1, 6.4 $members");
        like($r->fields->[0] // "", qr/^\Q$field\E/, "5.6 names $field");
    }
    is(count_contacts($w), 0, "and nothing is written");
};

subtest "6.1 what is JSON is accepted" => sub {
    my $w = workspace($httpd);
    my $agent = $w->agent;
    my $smile = "\xf0\x9f\x98\x80";
    for my $case (
        ["blanks around and between", " \r\n\t{ \"bot_id\" :\n\"BOT\"\t,"
            . " \"notes\" : \"x\" } \n", "x"],
        ["every escape", '{"bot_id":"BOT","notes":"\"\\\\\/\b\f\n\r\t"}',
            "\"\\/\b\f\n\r\t"],
        ["\\u", '{"bot_id":"BOT","notes":"\u00e4\u00E4\u20ac"}',
            "\x{e4}\x{e4}\x{20ac}"],
        ["a surrogate pair", '{"bot_id":"BOT","notes":"\ud83d\ude00"}',
            "\x{1f600}"],
        ["UTF-8 in four bytes", "{\"bot_id\":\"BOT\",\"notes\":\"$smile\"}",
            "\x{1f600}"],
        ["U+007F", "{\"bot_id\":\"BOT\",\"notes\":\"\x7f\"}", "\x7f"],
        ["U+0080", "{\"bot_id\":\"BOT\",\"notes\":\"\xc2\x80\"}", "\x{80}"],
        ["an escaped control character",
            '{"bot_id":"BOT","notes":"a\u0001\u001fb"}', "a\x01\x1fb"],
        ["U+FFFF and U+10FFFF", "{\"bot_id\":\"BOT\",\"notes\":"
            . "\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\"}", "\x{ffff}\x{10ffff}"],
        ["U+2028", "{\"bot_id\":\"BOT\",\"notes\":\"\xe2\x80\xa8\"}",
            "\x{2028}"],
        ["an escaped key", '{"bot_id":"BOT","not\u0065s":"x"}', "x"],
        ["HTML", '{"bot_id":"BOT","notes":"<script>&amp;</script>"}',
            "<script>&amp;</script>"],
        ["what looks like SQL",
            q({"bot_id":"BOT","notes":"'; DROP TABLE contact; --"}),
            "'; DROP TABLE contact; --"],
        ["what looks like a bind", '{"bot_id":"BOT","notes":"%s $1 ? %n"}',
            "%s \$1 ? %n"],
        ["an empty text", '{"bot_id":"BOT","notes":""}', ""],
        ["blanks", '{"bot_id":"BOT","notes":"  "}', "  "],
    ) {
        my ($name, $body, $notes) = @$case;
        $body =~ s/BOT/$agent/g;
        my $r = send_body($w, $body);
        status_is($r, 201, "6.1 $name") or next;
        is($r->data->{notes}, $notes, "6.1 $name: comes back as it was");
        is($w->client->get("/api/v1/contacts/" . $r->data->{id})
            ->data->{notes}, $notes, "6.1 $name: and later");
    }
    my $deep = { a => 1 };
    $deep = { a => $deep } for 1 .. 14;
    my $r = $w->client->post("/api/v1/contacts",
        { bot_id => $agent, custom_fields => $deep });
    status_is($r, 201, "6.3 custom_fields of depth 15");
    is_deeply($r->data->{custom_fields}, $deep, "comes back");
};

# A corpus of whole documents: {"a": DOCUMENT} as custom_fields would be too
# deep for some, so only what the parser says counts here.
for my $kind (qw(accept reject)) {
    my @files = glob "$FindBin::RealBin/unit/json/$kind/*";
    subtest "6.1 the corpus of JSON to $kind" => sub {
        my $w = workspace($httpd);
        cmp_ok(scalar @files, ">", 50, "there is a corpus");
        for my $file (@files) {
            my $name = $file =~ s{.*/}{}r;
            my $r = send_body($w, read_file($file));
            my $good = $kind eq "reject" ? $r->status == 400
                : $r->status == 422 || $r->status == 201;
            ok($good, "6.1 $kind $name: " . $r->status) or diag($r->text);
        }
    };
}

subtest "6.2 unknown fields are a 422 that names them" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $agent = $w->agent;
    my $id = $w->contact->{id};
    error_is($c->post("/api/v1/contacts", { bot_id => $agent, nmae => 1,
        "first-name" => 2 }), 422, "validation_error",
        "6.2 at the top", ["first-name", "nmae"]);
    error_is($c->patch("/api/v1/contacts/$id", { foo => undef }), 422,
        "validation_error", "6.2 in a PATCH, even a null", ["foo"]);
    error_is($c->post("/api/v1/contacts", { bot_id => $agent, emails =>
        [{ email => "a\@example.com" }, { email => "b\@example.com",
        primary => true }] }), 422, "validation_error",
        "6.2 in an e-mail object", ["emails[1].primary"]);
    error_is($c->post("/api/v1/contacts", { bot_id => $agent, phone_numbers =>
        [{ phone_number => "+15550001", type => "cell" }] }), 422,
        "validation_error", "6.2 in a phone object",
        ["phone_numbers[0].type"]);
    error_is($c->post("/api/v1/contacts/upsert", { bot_id => $agent,
        contacts => [], mode => "x" }), 422, "validation_error",
        "6.2 of an upsert", ["mode"]);
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $agent,
        contacts => [{ foo => 1 }] });
    status_is($r, 200, "6.2 in an item of an upsert");
    is_deeply([map { $_->{index}, map { $_->{field} } @{$_->{details}} }
        @{$r->data->{errors}}], [0, "contacts[0].foo"],
        "10.2 it is that item's error") or diag($r->text);
    error_is($c->post("/api/v1/sequences/start", { template_id => uuid(),
        contact => { emails => ["a\@example.com"], foo => 1 }, bar => 2 }),
        422, "validation_error", "6.2 of a start and its contact",
        ["bar", "contact.foo"]);
    my ($batch, $talk) = ("/contacts/upsert",
        $w->conversation("chat"));
    for my $case (["/contacts", "firstName", "first_name"],
            ["/contacts", "frist_name", "first_name"],
            ["/contacts", "e-mails", "emails"], ["/contacts", "nmae", undef],
            ["/contacts", "first_name_of_the_person_who_calls_us", undef],
            ["/contacts", "emails.emial", "email"],
            ["/contacts", "phone", "phone_numbers"], ["/contacts", "numb", undef],
            ["/contacts", "company_type", undef],
            ["/contacts", "emails.primary", "is_primary"],
            ["/contacts", "stage", "pipeline_stage_id"],
            ["/pipeline-cards", "stage_id", "pipeline_stage_id"],
            ["/pipeline-cards", "stageId", "pipeline_stage_id"],
            ["/pipeline-cards", "contact", "contact_id"],
            ["/pipeline-cards", "deal_value", undef],
            ["/activities", "type", "activity_type"], ["/activities", "due", "due_date"],
            ["/activities", "completed", "completed_at"],
            ["/companies", "industri", "industry"],
            ["/contacts", "mobile", "phone_numbers"], ["/contacts", "Sur-Name", "last_name"],
            ["/contacts", "agent_id", "bot_id"], ["/companies", "surname", undef],
            ["/contacts", "limit", undef], ["/conversations/$talk/messages", "body", "content"],
            [$batch, "contact", "contacts"], [$batch, "on-match", "on_match"],
            [$batch, "on_match.tag", "tags"], ["/contacts/$id/merge", "form", "from"],
            ["/conversations/$talk/messages", "attachment", "attachments"],
            ["/conversations/$talk/messages", "attachments.name", "filename"],
            ["/conversations/$talk/messages", "attachments.file_name", "filename"],
            ["/conversations/$talk/messages", "tread", undef],
            ["/sequences/start", "contact_ids", "contact_id"],
            ["/sequences/start", "contact.tag", "tags"],
            ["/sequences/enrollments/" . uuid() . "/stop", "x", undef]) {
        my ($path, $name, $near) = @$case;
        my ($object, $member) = split /\./, $name;
        my $r = $c->post("/api/v1$path", { $object => !defined $member ? 1
            : $object =~ /s\z/ ? [{ $member => 1 }] : { $member => 1 } });
        my ($said) = map { $_->{message} } grep { $_->{message} =~ /known field/
            && $_->{field} =~ /\Q${\($member \/\/ $object)}\E\z/ }
            @{$r->json->{error}{details} || []};
        is($said, defined $near ? "is not a known field; did you mean $near?"
            : $path =~ /stop/ ? undef : "is not a known field",
            "$path: $name") or diag($r->text);
    }
    $r = $c->post("/api/v1/contacts", { bot_id => $agent,
        map { ("frist_name" . "x" x $_ => 1) } 0 .. 99 });
    is(scalar @{$r->fields}, 100, "many: all are named");
    for my $path ("/companies", "/pipeline-cards", "/activities") {
        my $r = $c->post("/api/v1$path", { foo => 1 });
        error_is($r, 422, "validation_error", "6.2 $path");
        ok((grep { $_ eq "foo" } @{$r->fields}), "6.2 $path names it");
    }
    for my $odd ("", " ", "a.b", "emails[0]", "\x{e4}", "a" x 300,
            "Bot_id", "BOT_ID") {
        my $r = $c->post("/api/v1/contacts", { bot_id => $agent,
            $odd => 1 });
        error_is($r, 422, "validation_error", "6.2 odd name: "
            . substr $odd, 0, 20);
        is_deeply($r->fields, [$odd], "named as it was sent")
            if length $odd < 100;
    }
};

subtest "6.2 an operation without fields takes none" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %form = ("Content-Type" => "application/x-www-form-urlencoded");
    my $template = $w->template([{ email_subject => "Hello",
        email_body => "Dear you" }]);
    my $enrollment = $w->start($template,
        contact => { emails => ["p\@x.org"] })->{enrollment_id};
    for (["stop", "/api/v1/sequences/enrollments/$enrollment/stop", 200],
            ["erase", "/api/v1/contacts/" . $w->contact->{id} . "/erase",
                202]) {
        my ($name, $path, $done) = @$_;
        for my $more ({}, { "Idempotency-Key" => $name }) {
            my $refused = sub {
                my ($body, $headers, @error) = @_;
                error_is($c->request("POST", $path, body => $body,
                    headers => { %$headers, %$more }), @error[0, 1],
                    "$name: $body", @error[2 .. $#error]);
            };
            $refused->('{"reason":"moved","by":1}', {}, 422,
                "validation_error", ["by", "reason"]);
            $refused->("[]", {}, 422, "validation_error", [""]);
            $refused->("{", {}, 400, "bad_request");
            $refused->("reason=moved", \%form, 415, "unsupported_media_type");
        }
        status_is($c->request("POST", $path, body => "{}"), $done,
            "$name: an empty object");
    }
    my $id = $w->contact->{id};
    status_is($c->request("POST", "/api/v1/contacts/$id/erase", body => "",
        headers => \%form), 202, "as curl -d '' sends it");
};

subtest "6.2 Prefer: handling=lenient ignores unknown fields" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $agent = $w->agent;
    my %lenient = (headers => { Prefer => "handling=lenient" });
    my $r = $c->post("/api/v1/contacts", { bot_id => $agent, foo => 1,
        notes => "x", emails => [{ email => "a\@example.com", foo => 2 }] },
        %lenient);
    status_is($r, 201, "6.2 a create");
    is($r->data->{notes}, "x", "known fields count");
    is_deeply($r->data->{emails}, [{ email => "a\@example.com",
        is_primary => true }], "nested ones are ignored, too");
    my $id = $r->data->{id};
    status_is($c->patch("/api/v1/contacts/$id", { foo => 1 }, %lenient), 200,
        "6.2 a PATCH");
    error_is($c->post("/api/v1/contacts", { bot_id => $agent, foo => 1,
        deal_value => "x" }, %lenient), 422, "validation_error",
        "6.2 known fields are checked all the same", ["deal_value"]);
    for my $prefer ("respond-async, handling=lenient", "Handling=Lenient",
            "handling=\"lenient\"", "handling=lenient; foo=bar",
            "handling = lenient") {
        status_is($c->post("/api/v1/contacts", { bot_id => $agent, foo => 1 },
            headers => { Prefer => $prefer }), 201, "RFC 7240: $prefer");
    }
    for my $prefer ("handling=strict", "lenient", "handling=lenientx",
            "xhandling=lenient", "foo=\"handling=lenient\"") {
        error_is($c->post("/api/v1/contacts", { bot_id => $agent, foo => 1 },
            headers => { Prefer => $prefer }), 422, "validation_error",
            "RFC 7240: not $prefer");
    }
};

subtest "6.2 read-only fields: GET, change, PATCH works" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @made = (
        ["contacts", { bot_id => $w->agent, emails => ["a\@example.com"],
            phone_numbers => ["+15550001"], deal_value => 12.5,
            tags => ["a"], custom_fields => { a => [1] } }, "notes"],
        ["companies", { bot_id => $w->agent, name => "x",
            emails => ["a\@example.com"] }, "description"],
        ["pipeline-cards", { title => "x",
            pipeline_stage_id => ($w->stages)[0] }, "description"],
    );
    for my $case (@made) {
        my ($path, $body, $field) = @$case;
        my $made = $c->post("/api/v1/$path", $body)->data;
        my $sent = { %$made, $field => "changed", id => uuid(),
            created_at => "2001-01-01T00:00:00Z", updated_at => "nonsense" };
        $sent->{workspace_id} = uuid() if exists $made->{workspace_id};
        my $r = $c->patch("/api/v1/$path/$made->{id}", $sent);
        status_is($r, 200, "6.2 $path: the whole resource, changed");
        my $got = $r->data;
        isnt($got->{updated_at}, $made->{updated_at}, "6.6 updated_at moves");
        is_deeply($got, { %$made, $field => "changed",
            updated_at => $got->{updated_at} },
            "6.2 $path: only $field changed") or diag($r->text);
        my $created = $c->post("/api/v1/$path", { %$body, id => uuid(),
            created_at => "2001-01-01T00:00:00Z", updated_at => undef });
        status_is($created, 201, "6.2 $path: in a create, too");
        unlike($created->data->{created_at}, qr/^2001/, "and ignored");
    }
    my $conversation = $w->conversation("chat", email => "a\@example.com");
    my $whole = $c->get("/api/v1/conversations/$conversation")->data;
    is_deeply([@$whole{qw(archived deleted)}], [undef, undef],
        "what 6.5 and 6.7 refuse");
    my $r = $c->patch("/api/v1/conversations/$conversation",
        { %$whole, internal_notes => "x", email => "b\@example.com" });
    status_is($r, 200, "6.2 conversations");
    is_deeply($r->data, { %$whole, internal_notes => "x" },
        "only the notes changed");
    $r = $c->patch("/api/v1/conversations/$conversation",
        { %$whole, archived => true }, headers => {
        "Idempotency-Key" => "whole" });
    is($r->data->{archived}, true, "with an Idempotency-Key");
    error_is($c->patch("/api/v1/conversations/$conversation", $whole), 422,
        "validation_error", "6.5 null is refused where it is not what is",
        ["archived"]);
};

# A field, its most, how to make one of N.
my $text = sub { "x" x $_[0] };
my $wide = sub { "\x{1f600}" x $_[0] };
my @LIMITS = (
    (map { ["contacts", $_, 1000, $text] } grep { !/^(?:notes|linkedin_url)$/
        && !/_id$/ } CrmTest::Spec::names("Contact", "string", "written")),
    ["contacts", "first_name", 1000, $wide],
    ["contacts", "notes", 65536, $text],
    ["contacts", "notes", 65536, sub { "\x{e4}" x $_[0] }],
    ["contacts", "linkedin_url", 2048, $text],
    ["contacts", "tags", 100, sub { [map { "t$_" } 1 .. $_[0]] }],
    ["contacts", "tags", 100, sub { ["x" x $_[0]] }, "tags[0]"],
    ["contacts", "tags", 100, sub { ["\x{20ac}" x $_[0]] }, "tags[0]"],
    ["contacts", "emails", 50, sub { [map { "p$_\@x.org" } 1 .. $_[0]] }],
    ["contacts", "emails", 254, sub { ["a" x ($_[0] - 6) . "\@x.org"] },
        "emails[0]"],
    ["contacts", "phone_numbers", 50,
        sub { [map { sprintf "+1555%04d", $_ } 1 .. $_[0]] }],
    ["contacts", "custom_fields", 65536,
        sub { { a => "x" x ($_[0] - 8) } }],
    ["contacts", "custom_fields", 16, sub { my $v = 1; $v = { a => $v }
        for 1 .. $_[0]; $v }],
    ["contacts", "custom_fields", 16, sub { my $v = 1; $v = [$v]
        for 2 .. $_[0]; { a => $v } }],
    ["companies", "name", 1000, $text],
    ["companies", "website", 2048, $text],
    ["companies", "linkedin_url", 2048, $text],
    ["companies", "description", 65536, $text],
    ["companies", "notes", 65536, $text],
    ["companies", "domain", 1000, $text],
    ["pipeline-cards", "title", 1000, $text],
    ["pipeline-cards", "description", 65536, $text],
    ["activities", "title", 1000, $text],
    ["activities", "description", 65536, $text],
    ["activities", "metadata", 65536, sub { { a => "x" x ($_[0] - 8) } }],
    ["activities", "metadata", 16, sub { my $v = 1; $v = { a => $v }
        for 1 .. $_[0]; $v }],
);

sub base_of {
    my ($w) = @_;
    return (contacts => { bot_id => $w->agent },
        companies => { bot_id => $w->agent, name => "x" },
        "pipeline-cards" => { title => "x",
            pipeline_stage_id => ($w->stages)[0] },
        activities => { activity_type => "note",
            contact_id => $w->contact->{id} });
}

subtest "6.3 limits: exactly as much, and one more" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %base = base_of($w);
    for my $case (@LIMITS) {
        my ($path, $field, $most, $make, $complaint) = @$case;
        my $r = $c->post("/api/v1/$path", { %{$base{$path}},
            $field => $make->($most) });
        status_is($r, 201, "6.3 $path.$field: $most") or next;
        my $got = $r->data->{$field};
        $got = [map { $_->{email} // $_->{phone_number} } @$got]
            if $field =~ /^(?:emails|phone)/;
        is_deeply($got, $make->($most), "and it comes back whole");
        $complaint //= $field;
        my $more = $c->post("/api/v1/$path", { %{$base{$path}},
            $field => $make->($most + 1) });
        error_is($more, 422, "validation_error",
            "6.3 $path.$field: " . ($most + 1));
        # free-form JSON may say where in it
        like(join(" ", @{$more->fields}), qr/^\Q$complaint\E(?:\.[.a]*|
            \.a[[0\]]*)?$/x, "5.6 names $complaint");
        next if $path eq "activities";
        my $patch = $c->patch("/api/v1/$path/" . $r->data->{id},
            { $field => $make->($most + 1) });
        error_is($patch, 422, "validation_error",
            "6.3 $path.$field in a PATCH");
        is($patch->body, $more->body, "with the same words");
    }
};

subtest "6.3 addresses" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    for my $good ("a\@b", "A.B+c\@Example.Com", "\x{fc}\@\x{e4}.example",
            "a'b\@x.org", "\"q\"\@x.org") {
        status_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
            emails => [$good] }), 201, "6.3 $good");
    }
    for my $bad ("", "a", "\@", "a\@", "\@b", "a\@b\@c", "a b\@c", "a\@b c",
            " a\@b", "a\@b ", "a\tb\@c", "a\@b\n", "a\x7f\@b", "a\@\x{85}b") {
        error_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
            emails => ["ok\@x.org", $bad] }), 422, "validation_error",
            "6.3 not an address: " . $bad =~ s/([^ -~])/sprintf "<%x>", ord
            $1/egr, ["emails[1]"]);
        my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
            emails => [{ email => "ok\@x.org" }, { email => $bad }] });
        error_is($r, 422, "validation_error", "5.6 in an object",
            ["emails[1].email"]);
    }
    for my $case (["a number", 1], ["null", undef], ["an array", []],
            ["true", true]) {
        my ($name, $bad) = @$case;
        error_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
            emails => [$bad] }), 422, "validation_error",
            "an e-mail that is $name", ["emails[0]"]);
    }
    error_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
        emails => [{ is_primary => true }] }), 422, "validation_error",
        "an e-mail object without email", ["emails[0].email"]);
    error_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
        emails => [{ email => "a\@x.org", is_primary => "true" }] }), 422,
        "validation_error", "6.4 booleans are booleans",
        ["emails[0].is_primary"]);
    error_is($c->post("/api/v1/contacts", { bot_id => $w->agent,
        emails => "a\@x.org" }), 422, "validation_error", "a list is a list",
        ["emails"]);
};

subtest "6.4 numbers come back plain" => sub {
    my $w = workspace($httpd);
    my $agent = $w->agent;
    for my $case (["0", "0"], ["-0", "0"], ["0.0", "0"], ["1", "1"],
            ["1.0", "1"], ["1.50", "1.5"], ["12.5000", "12.5"], ["1e3", "1000"],
            ["1E+3", "1000"], ["15e-1", "1.5"], ["1e-4", "0.0001"],
            ["0.0001", "0.0001"], ["-0.0001", "-0.0001"],
            ["999999999999999", "999999999999999"],
            ["999999999999999.9999", "999999999999999.9999"],
            ["-999999999999999.9999", "-999999999999999.9999"],
            ["123456789012345.6789", "123456789012345.6789"],
            ["0.1", "0.1"], ["0.30", "0.3"], ["9.99999e14", "999999000000000"],
            ["100000000000000.00000", "100000000000000"],
            ["0e99", "0"], ["10000000000000000e-4", "1000000000000"]) {
        my ($sent, $got) = @$case;
        my $r = send_body($w, qq({"bot_id":"$agent","deal_value":$sent}));
        status_is($r, 201, "6.4 $sent") or next;
        like($r->body, qr/"deal_value":\Q$got\E[,}]/, "6.4 $sent is $got");
        my $again = $w->client->get("/api/v1/contacts/" . $r->data->{id});
        like($again->body, qr/"deal_value":\Q$got\E[,}]/, "and is read so");
    }
    my $stage = ($w->stages)[0];
    for my $case (["0", 0], ["3.0", 3], ["3e0", 3], ["30e-1", 3],
            ["2147483647", 2147483647]) {
        my ($sent, $got) = @$case;
        my $r = send_body($w, qq({"title":"x","pipeline_stage_id":"$stage",)
            . qq("order_index":$sent}), "/api/v1/pipeline-cards");
        status_is($r, 201, "6.4 integer $sent") or next;
        like($r->body, qr/"order_index":$got[,}]/, "6.4 $sent is $got");
    }
    for my $bad ("1.5", "2147483648", "1e10", "1e400", '"1"', "true", "0.1",
            "99999999999999999999") {
        error_is(send_body($w, qq({"title":"x","pipeline_stage_id":"$stage",)
            . qq("order_index":$bad}), "/api/v1/pipeline-cards"), 422,
            "validation_error", "6.4 no integer: $bad", ["order_index"]);
    }
    # free-form JSON is nobody's number
    my $r = send_body($w, qq({"bot_id":"$agent","custom_fields":)
        . '{"a":1.5,"b":0.1,"c":123456789,"d":-1,"e":true,"f":null}}');
    is_deeply($r->data->{custom_fields}, { a => 1.5, b => 0.1,
        c => 123456789, d => -1, e => true, f => undef },
        "custom_fields come back");
    # as many decimals as PostgreSQL's numeric has
    my $free = sub {
        my ($number) = @_;
        return send_body($w, qq({"bot_id":"$agent","contacts":[{"first_name":"N"},)
            . qq({"custom_fields":{"a":[$number]}}]}), "/api/v1/contacts/upsert");
    };
    for my $most ("0." . "3" x 16383, "1." . "0" x 16383, "-0." . "3" x 16283 . "e-100",
            "1." . "3" x 16393 . "E+10") {
        is_deeply($free->($most)->data->{errors}, [], "6.3 " . substr $most, 0, 8);
    }
    for my $more ("0." . "3" x 16384, "1." . "0" x 16384, "-0." . "3" x 16284 . "e-100",
            "1." . "3" x 16394 . "E+10") {
        my $r = $free->($more);
        status_is($r, 200, "10.2 one more: " . substr $more, 0, 8) or next;
        my $got = $r->data;
        is_deeply([map { $_->{details} } @{$got->{errors}}], [[{
            field => "contacts[1].custom_fields.a[0]",
            message => "must have at most 16383 decimals" }]],
            "6.1 it is told");
        is(scalar @{$got->{created}}, 1, "10.2 and the other item is taken");
    }
};

subtest "6.4 booleans are JSON booleans only" => sub {
    my $w = workspace($httpd);
    my $id = $w->conversation("chat", archived => false);
    for my $field (qw(archived human_takeover active)) {
        for my $bad (0, 1, "true", "false", "", [], {}) {
            error_is($w->client->patch("/api/v1/conversations/$id",
                { $field => $bad }), 422, "validation_error",
                "6.4 $field: " . JSON::PP->new->allow_nonref->encode($bad),
                [$field]);
        }
        error_is($w->client->patch("/api/v1/conversations/$id",
            { $field => undef }), 422, "validation_error",
            "6.5 null for the boolean $field", [$field]);
    }
};

subtest "5.6 every wrong field at once, nested ones by their path" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $r = $c->post("/api/v1/contacts", { first_name => 1, notes => [],
        emails => ["ok\@x.org", { email => "bad" }, 3],
        phone_numbers => [{ phone_number => "" }], tags => ["a", 2],
        deal_value => "x", company_id => uuid(),
        custom_fields => [], unknown => 1 });
    error_is($r, 422, "validation_error", "5.6 all of them",
        ["bot_id", "company_id", "custom_fields", "deal_value",
        "emails[1].email", "emails[2]", "first_name", "notes",
        "phone_numbers[0].phone_number", "tags[1]", "unknown"]);
    for my $detail (@{$r->details || []}) {
        is_deeply([sort keys %$detail], ["field", "message"],
            "5.6 field and message of $detail->{field}");
        ok(length $detail->{message}, "with words");
    }
    is_deeply([sort keys %{$r->json->{error}}],
        ["code", "details", "message"], "5.6 beside code and message");
    my $free = { ok => 1, size => { eu => "\0", us => [1, "x\0"] }, z => "\0" };
    my @inside = ("size.eu", "size.us[1]", "z");
    error_is($c->post("/api/v1/contacts", { custom_fields => $free }), 422,
        "validation_error", "5.6 all within custom_fields",
        ["bot_id", map { "custom_fields.$_" } @inside]);
    error_is($c->post("/api/v1/activities", { activity_type => "note",
        company_id => uuid(), metadata => $free }), 422, "validation_error",
        "5.6 and metadata", ["company_id", map { "metadata.$_" } @inside]);
    my ($item) = @{$c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ custom_fields => $free, notes => 1 }] })->data->{errors}};
    is_deeply([sort map { $_->{field} } @{$item->{details}}],
        [(map { "contacts[0].custom_fields.$_" } @inside),
        "contacts[0].notes"], "10.2 of an item, too");
};

subtest "6.5 a create: null is absent" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %plain = %{$w->contact};
    my $r = $c->post("/api/v1/contacts", { (map { $_ => undef }
        CrmTest::Spec::names("Contact", "created")), bot_id => $w->agent });
    status_is($r, 201, "6.5 every field null");
    is_deeply($r->data, { %plain, map { $_ => $r->data->{$_} }
        qw(id created_at updated_at) }, "6.5 is as if none had been sent");
    error_is($c->post("/api/v1/contacts", { bot_id => undef }), 422,
        "validation_error", "6.5 a required one is missing then", ["bot_id"]);
    error_is($c->post("/api/v1/companies", { bot_id => $w->agent,
        name => undef }), 422, "validation_error", "6.5 name", ["name"]);
    $r = $c->post("/api/v1/pipeline-cards", { title => "x",
        pipeline_stage_id => ($w->stages)[0], order_index => undef,
        tags => undef, description => undef, contact_id => undef });
    status_is($r, 201, "6.5 a card");
    is($r->data->{order_index}, 0, "6.5 order_index null is absent");
};

subtest "6.5 a PATCH: absent, null, empty" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $company = $w->company(name => "Co", domain => "x.org",
        emails => ["a\@x.org"], tags => ["a"], employee_count => 3,
        custom_fields => { a => 1 });
    my %full = (first_name => "F", last_name => "L", company => "C",
        company_id => $company->{id}, job_title => "J", lead_source => "S",
        deal_value => 5, pipeline_stage_id => ($w->stages)[1],
        contact_type => "T", address_line1 => "1", address_line2 => "2",
        city => "C", state => "S", postal_code => "P", country => "D",
        linkedin_url => "U", notes => "N");
    my %lists = (emails => [{ email => "a\@x.org", is_primary => true }],
        phone_numbers => [{ phone_number => "+15550001",
            is_primary => true }], tags => ["a"]);
    my $made = $c->post("/api/v1/contacts", { bot_id => $w->agent, %full,
        %lists, custom_fields => { a => 1 } });
    status_is($made, 201);
    my $path = "/api/v1/contacts/" . $made->data->{id};
    my $now = $made->data;
    is_deeply($c->patch($path, {})->data, $now,
        "6.5 an empty PATCH changes nothing, not even updated_at (6.6)");
    for my $field (sort keys %full) {
        my $r = $c->patch($path, { $field => undef });
        status_is($r, 200, "6.5 null clears $field");
        is_deeply($r->data, { %$now, $field => undef,
            updated_at => $r->data->{updated_at} }, "6.5 and nothing else");
        cmp_ok($r->data->{updated_at}, "gt", $now->{updated_at},
            "6.6 updated_at moves forward");
        $now = $r->data;
    }
    for my $field (sort keys %lists) {
        my $r = $c->patch($path, { $field => undef });
        status_is($r, 200, "6.5 null for $field");
        is_deeply($r->data->{$field}, [], "6.5 makes it []");
        $now = $r->data;
    }
    my $r = $c->patch($path, { custom_fields => undef });
    is_deeply($r->data->{custom_fields}, {}, "6.5 null makes an object {}");
    for my $field (qw(first_name notes city linkedin_url)) {
        $r = $c->patch($path, { $field => "" });
        is($r->data->{$field}, "", "6.5 \"\" is kept for $field");
    }
    for my $field (qw(company_id pipeline_stage_id)) {
        error_is($c->patch($path, { $field => "" }), 422, "validation_error",
            "6.5 \"\" is no id", [$field]);
    }
    error_is($c->patch($path, { bot_id => undef }), 422, "validation_error",
        "6.5 null for bot_id", ["bot_id"]);
    error_is($c->patch($path, { emails => [""] }), 422, "validation_error",
        "6.5 \"\" is no e-mail", ["emails[0]"]);
    my $co = "/api/v1/companies/$company->{id}";
    for my $bad (undef, "") {
        error_is($c->patch($co, { name => $bad }), 422, "validation_error",
            "6.5 a required name", ["name"]);
    }
    error_is($c->post("/api/v1/companies", { bot_id => $w->agent,
        name => "" }), 422, "validation_error", "6.5 in a create", ["name"]);
    my $card = $c->post("/api/v1/pipeline-cards", { title => "x",
        pipeline_stage_id => ($w->stages)[0], description => "d" })->data;
    my $card_path = "/api/v1/pipeline-cards/$card->{id}";
    error_is($c->patch($card_path, { title => undef, order_index => undef,
        pipeline_stage_id => undef }), 422, "validation_error",
        "6.5 null for what is required, and for order_index",
        ["order_index", "pipeline_stage_id", "title"]);
    error_is($c->patch($card_path, { title => "", pipeline_stage_id => "" }),
        422, "validation_error", "6.5 \"\" for them",
        ["pipeline_stage_id", "title"]);
    is($c->patch($card_path, { description => undef })->data->{description},
        undef, "6.5 null clears a card's description");
    is($c->patch($co, { employee_count => undef })->data->{employee_count},
        undef, "6.5 null clears a company's number");
};

subtest "6.5 custom_fields and metadata replace" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $w->contact(custom_fields => { a => 1, b => { c => 2 } })->{id};
    is_deeply($c->patch("/api/v1/contacts/$id", { custom_fields =>
        { b => { d => 3 } } })->data->{custom_fields}, { b => { d => 3 } },
        "6.5 nothing is merged");
    is_deeply($c->patch("/api/v1/contacts/$id", { custom_fields => {} })
        ->data->{custom_fields}, {}, "6.5 {} empties");
    is_deeply($c->patch("/api/v1/contacts/$id", { custom_fields =>
        { x => undef } })->data->{custom_fields}, { x => undef },
        "6.5 a null inside stays");
};

subtest "6.3 numbers inside of custom_fields: what is shown can be sent" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $agent = $w->agent;
    my $shown = sub { ($_[0]->text =~ /"custom_fields":\{"n":([^}]*)\}/)[0] };
    for my $n ("1e20", "1e300", "-1e19", "9223372036854775807",
            "-123456789012345678901234567890", "1e-390", "0.10000000000000000001") {
        my $r = send_body($w, qq({"bot_id":"$agent","custom_fields":{"n":$n}}));
        status_is($r, 201, "$n is taken");
        my ($id, $is) = ($r->data->{id}, $shown->($r));
        my $path = "/api/v1/contacts/$id";
        $r = $c->request("PATCH", $path, body => qq({"custom_fields":{"n":$is}}));
        status_is($r, 200, "and what GET shows");
        is($shown->($r), $is, "it is the same");
    }
    my $upsert = sub {
        my $r = send_body($w, qq({"bot_id":"$agent","contacts":[{"emails":)
            . qq(["n\@x.org"],"custom_fields":{"n":$_[0]}}]}),
            "/api/v1/contacts/upsert");
        return ($shown->($r), $r->text =~ /"updated_at":"([^"]*)"/);
    };
    my ($is, $stamp) = $upsert->("1e1");
    is(($upsert->($_))[1], $stamp, "6.6 $_ is what it was") for "1e1", "10", "10.0";
    is(($upsert->($_))[0], $_, "$_ is another number") for "9007199254740993.0",
        "9007199254740992.0", "0.1", "0.10000000000000000001";
};

subtest "6.6 updated_at moves only when something changed" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $made = $w->contact(notes => "n", deal_value => 12.5, tags => ["a", "b"],
        emails => ["A\@x.org"], custom_fields => { a => 1, b => 2 },
        company_id => undef);
    my $path = "/api/v1/contacts/$made->{id}";
    for my $same ({ notes => "n" }, { tags => ["a", "b"] },
            { emails => ["A\@x.org"] }, { emails => $made->{emails} },
            { custom_fields => { b => 2, a => 1 } }, { first_name => undef },
            { notes => "n", tags => ["a", "b"] }, $made,
            { bot_id => $w->agent }) {
        my $r = $c->patch($path, $same);
        is_deeply($r->data, $made, "6.6 unchanged by "
            . substr JSON::PP->new->canonical->encode($same), 0, 60)
            or diag($r->text);
    }
    my $r = $c->request("PATCH", $path, body => '{"deal_value":1.25e1}');
    is_deeply($r->data, $made, "6.6 12.5 is 1.25e1");
    my $last = $made->{updated_at};
    for my $n (1 .. 30) {
        my $r = $c->patch($path, { notes => "n$n" });
        cmp_ok($r->data->{updated_at}, "gt", $last,
            "6.6 strictly forward, however fast ($n)");
        $last = $r->data->{updated_at};
        is($r->data->{created_at}, $made->{created_at},
            "created_at stays") if $n == 1;
    }
    status_is($c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $made->{id} }), 201);
    $r = $c->get($path);
    ok(defined $r->data->{last_contacted_at}, "9.4 a derived field moved");
    is($r->data->{updated_at}, $last, "6.6 but not updated_at");
    my $company = $w->company(name => "x");
    $c->patch($path, { company_id => $company->{id}, deal_value => 7 });
    $r = $c->get("/api/v1/companies/$company->{id}");
    is($r->data->{total_deal_value}, 7, "9.4 the company's sum moved");
    is($r->data->{updated_at}, $company->{updated_at},
        "6.6 but not its updated_at");
};

subtest "6.7 bot_id in a PATCH, deleted in a conversation's" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($other) = $w->import_objects([{ object => "agent", name => "Bo" }]);
    my $contact = $w->contact->{id};
    my $company = $w->company(name => "x")->{id};
    for my $path ("/contacts/$contact", "/companies/$company") {
        status_is($c->patch("/api/v1$path", { bot_id => $w->agent }), 200,
            "6.7 $path: the same");
        status_is($c->patch("/api/v1$path", { bot_id => uc $w->agent }), 200,
            "6.7 $path: the same in capitals");
        for my $bad ($other, uuid(), $w->twin_of($w->agent), "x", 1, "") {
            error_is($c->patch("/api/v1$path", { bot_id => $bad }), 422,
                "validation_error", "6.7 $path: another ($bad)", ["bot_id"]);
        }
        is($c->get("/api/v1$path")->data->{bot_id}, $w->agent,
            "it never changes");
    }
    my $conversation = $w->conversation("chat");
    for my $value (true, false) {
        error_is($c->patch("/api/v1/conversations/$conversation",
            { deleted => $value }), 422, "validation_error",
            "6.7 deleted: $value", ["deleted"]);
    }
    status_is($c->patch("/api/v1/conversations/$conversation",
        { deleted => undef }), 200, "6.2 what it is now");
};

subtest "6.8 ids in a body: 422 on that field" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($company) = $w->import_objects([{ object => "company",
        bot_id => $w->agent, name => "x" }]);
    my $contact = $w->contact->{id};
    my ($twin_contact) = map { $w->twin_of($_) } $w->import_objects([
        { object => "contact", bot_id => $w->agent }]);
    my %base = base_of($w);
    my @cases = (
        ["contacts", "bot_id", $w->twin_of($w->agent)],
        ["contacts", "company_id", $w->twin_of($company)],
        ["contacts", "pipeline_stage_id", $w->twin_of(($w->stages)[0])],
        ["companies", "bot_id", $w->twin_of($w->agent)],
        ["companies", "pipeline_stage_id", $w->twin_of(($w->stages)[0])],
        ["pipeline-cards", "pipeline_stage_id",
            $w->twin_of(($w->stages)[0])],
        ["pipeline-cards", "contact_id", $twin_contact],
        ["activities", "contact_id", $twin_contact],
        ["activities", "company_id", $w->twin_of($company)],
    );
    for my $case (@cases) {
        my ($path, $field, $alien) = @$case;
        my %message;
        for my $bad (["unknown", uuid()], ["another workspace's", $alien],
                ["malformed", "x"], ["of the wrong kind", $w->pipeline],
                ["empty", ""], ["too long", uuid() . "0"]) {
            my $r = $c->post("/api/v1/$path", { %{$base{$path}},
                $field => $bad->[1] });
            error_is($r, 422, "validation_error",
                "6.8 $path.$field: $bad->[0]", [$field]);
            $message{$bad->[0]} = $r->body;
        }
        is($message{"another workspace's"}, $message{unknown},
            "2.1 $path.$field: another workspace's is like an unknown one");
        next if $path eq "activities";
        my $id = $c->post("/api/v1/$path", $base{$path})->data->{id};
        next if $field eq "bot_id";
        for my $bad (uuid(), $alien, "x") {
            error_is($c->patch("/api/v1/$path/$id", { $field => $bad }), 422,
                "validation_error", "6.8 PATCH $path.$field", [$field]);
        }
    }
    my $upper = $c->post("/api/v1/contacts", { bot_id => uc $w->agent });
    status_is($upper, 201, "an id in capitals is that id");
    is($upper->data->{bot_id}, $w->agent, "and is shown as it is");
};

done_testing;
