# SPDX-License-Identifier: Apache-2.0
# 72-forms.t: web forms, from a browser's request to a submission (docs/forms.md)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $BASE = "/crmapi/intake/v1/forms";
my $URLENCODED = "application/x-www-form-urlencoded";
my $database = database();
my %conf = (base => <<"END");
CrmApiReadLimit 0
CrmApiWriteLimit 0
CrmApiIntake On
CrmApiMaxBody 1048576
END
my $httpd = httpd(database => $database, children => 2,
    conf => "$conf{base}CrmApiAddressLimit 0\n");

# ---- forms -------------------------------------------------------------------

# Make a form of W with the members of its configuration; its id.
sub form {
    my ($w, %members) = @_;
    my ($id) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "Contact us", %members }]);
    return $id;
}

# PAIRS as a browser sends them; with a boundary as multipart.
sub urlencoded {
    my (@pairs) = @_;
    my @texts;
    while (my ($name, $value) = splice @pairs, 0, 2) {
        push @texts, join "=", map { CrmTest::Client::escape($_)
            =~ s/%20/+/gr } $name, $value;
    }
    return join "&", @texts;
}

sub multipart {
    my ($boundary, @pairs) = @_;
    my $text = "";
    while (my ($name, $value) = splice @pairs, 0, 2) {
        $text .= qq(--$boundary\r\nContent-Disposition: form-data; name="$name")
            . (ref $value ? qq(; filename="$value->[0]"\r\n)
                . "Content-Type: application/octet-stream" : "")
            . "\r\n\r\n" . (ref $value ? $value->[1] : $value) . "\r\n";
    }
    utf8::encode($text) if utf8::is_utf8($text);
    return "$text--$boundary--\r\n";
}

# Send BODY to the form ID; options: type, headers, query, server.
sub post {
    my ($id, $body, %arg) = @_;
    return ($arg{server} // $httpd)->client->request("POST", "$BASE/$id",
        body => $body, (defined $arg{query} ? (query => $arg{query}) : ()),
        headers => { "Content-Type" => $arg{type} // $URLENCODED,
            %{$arg{headers} || {}} });
}

# Send PAIRS as a browser does.
sub send_form {
    my ($id, @pairs) = @_;
    my %option = ref $pairs[0] ? %{shift @pairs} : ();
    return post($id, urlencoded(@pairs), %option);
}

# RESPONSE is a page of STATUS whose text has WORDS; its text.
sub page_is {
    my ($r, $status, $words, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    status_is($r, $status, "$name: $status") or return "";
    is($r->header("Content-Type"), "text/html; charset=utf-8",
        "$name: a page");
    like($r->header("Content-Security-Policy"), qr/default-src 'none'/,
        "$name: with a policy");
    my $body = $r->body;
    utf8::decode($body);
    my ($main) = $body =~ m{<main>(.*)</main>}s;
    like($main, $words, $name);
    return $main // "";
}

sub submissions {
    my ($w, $id, %query) = @_;
    return @{$w->client->get("/api/v1/forms/$id/submissions",
        query => { page_size => 100, %query })->data};
}

# What is wrong with PAIRS sent to the form ID: "name rule; ...".
sub wrong_with {
    my ($id, @pairs) = @_;
    my %body;
    while (my ($name, $value) = splice @pairs, 0, 2) {
        $body{$name} = $value;
    }
    my $r = post($id, JSON::PP->new->utf8->encode(\%body),
        type => "application/json");
    return $r->status == 201 ? "" : join "; ", sort map {
        "$_->{field} $_->{message}" } @{$r->json->{error}{details}};
}

my $w = workspace($httpd);
my $c = $w->client;
my $contact_form = form($w, standard_fields => {
        email => { required => true }, first_name => { label => "Vorname" },
        last_name => true, company => true, phone_number => false,
        _form => { lead_source => "website" } },
    custom_fields => {
        message => { type => "textarea", label => "Ihre Nachricht",
            required => true, max_length => 2000 },
        budget => { type => "number", min => 0, max => 1000000 },
        terms => { type => "boolean", required => true,
            label => "Terms & conditions" } },
    survey_questions => {
        how => { type => "select", label => "How did you find us?",
            options => ["search", { value => "friend",
                label => "A friend" }] },
        what => { type => "multiselect", options => ["a", "b", "c"] } });
my @GOOD = (email => "ada\@x.example", first_name => "Ada",
    last_name => "King", company => "Engines <Ltd>", phone_number => "+491",
    message => "Grüße,\r\nund <b>mehr</b> 1+1", budget => "1250.50",
    terms => "on", how => "friend", what => "c", what => "a",
    website_hp => "", submit => "Send");

subtest "phone is phone_number" => sub {
    my $form = form($w, standard_fields => { email => true, phone => true });
    is(send_form($form, email => "fon\@x.example", phone => "+49 30 901820")->status, 200,
        "sent");
    my $contact = $c->get("/api/v1/contacts/by-email?email=fon\@x.example")->data;
    is($contact->{phone_numbers}[0]{phone_number}, "+49 30 901820", "the contact's number");
    is(send_form($form, email => "fon2\@x.example", phone => "call me")->status, 422,
        "which must be one");
};

subtest "a form that asks for the last name only" => sub {
    my $form = form($w, standard_fields => { email => true, last_name => true });
    is(send_form($form, email => "last\@x.example", last_name => "Byron King")->status,
        200, "sent");
    my $contact = $c->get("/api/v1/contacts/by-email?email=last\@x.example")->data;
    is_deeply([@$contact{qw(first_name last_name)}], [undef, "Byron King"],
        "makes no first name of it");
};

subtest "a form from a browser" => sub {
    $w->webhook("https://hooks.example/", "form.submitted");
    my $total = total_of($c, "/conversations");
    my $main = page_is(send_form($contact_form, @GOOD), 200,
        qr/Thank you.*We have received your answers/s, "a thank-you page");
    my ($one, @more) = submissions($w, $contact_form);
    is(scalar @more, 0, "one submission") or return;
    is_deeply($one->{custom_field_responses}, {
        message => "Grüße,\nund <b>mehr</b> 1+1", budget => 1250.5,
        terms => true, how => "friend", what => ["c", "a"] },
        "with the answers, by their types");
    is($one->{is_internal}, false, "that is not internal");
    my $contact = $c->get("/api/v1/contacts/$one->{contact_id}")->data;
    is(join("|", map { $contact->{$_} // "-" } qw(first_name last_name company
        lead_source)), "Ada|King|Engines <Ltd>|website", "the contact");
    is_deeply($contact->{emails}, [email("ada\@x.example", 1)], "its address");
    is_deeply($contact->{phone_numbers}, [], "no field that the form has not");
    is(total_of($c, "/conversations"), $total + 1, "one conversation more");
    my $id = sql($database, "SELECT id FROM crmapi.conversation WHERE"
        . " contact_id = '$contact->{id}'");
    my $talk = $c->get("/api/v1/conversations/$id")->data;
    is($talk->{type}, 5, "of type form");
    is("$talk->{human} $talk->{email}", "Ada King ada\@x.example",
        "with whom");
    my ($said) = @{$c->get("/api/v1/conversations/$id/messages")->data};
    is($said->{content}, "E-mail: ada\@x.example\nVorname: Ada\n"
        . "Last name: King\nCompany: Engines <Ltd>\n"
        . "Ihre Nachricht: Grüße,\nund <b>mehr</b> 1+1\nbudget: 1250.5\n"
        . "Terms & conditions: true\nHow did you find us?: A friend\n"
        . "what: c, a", "the message can be read");
    is(sql($database, "SELECT count(*) FROM crmapi.event WHERE"
        . " workspace_id = '" . $w->id . "' AND type = 'form.submitted'"
        . " AND fields ->> 'id' = '$one->{id}'"), 1, "12.1 form.submitted");
};

subtest "multipart and JSON" => sub {
    my $form = form($w, custom_fields => { a => { type => "textarea" },
        n => { type => "integer" }, m => { type => "multiselect",
            options => [1, 2, 3] } });
    page_is(post($form, multipart("x1", email => "m\@x.example",
        a => "ü\r\n--x\r\n", n => 7, m => 1, m => 3, file => ["", ""]),
        type => "multipart/form-data; boundary=x1"), 200, qr/Thank you/,
        "multipart");
    is_deeply((submissions($w, $form))[0]{custom_field_responses},
        { a => "ü\n--x", n => 7, m => [1, 3] }, "is read")
        or diag(explain(submissions($w, $form)));
    page_is(post($form, multipart("x1", a => "1", cv => ["cv.pdf",
        "%PDF\0\xff"]), type => "multipart/form-data; boundary=x1"), 422,
        qr{<strong>cv</strong> must not be a file}, "a file");
    # names without quotes, and other headers first: .NET
    for my $name ("n", "n; x=\"y;z\"") {
        page_is(post($form, "--x1\r\nContent-Type: text/plain; charset=utf-8"
            . "\r\nContent-Disposition: form-data; name=$name\r\n\r\n8\r\n"
            . "--x1--\r\n", type => "multipart/form-data; boundary=\"x1\""),
            200, qr/Thank you/, "RFC 2183: $name");
        is_deeply((submissions($w, $form))[0]{custom_field_responses},
            { n => 8 }, "is read");
    }
    # what RFC 2046, 5.1.1 allows around the delimiters
    my $nine = "Content-Disposition: form-data; name=\"n\"\r\n\r\n9\r\n";
    for my $case (["a line before", "\r\n--x1\r\n$nine--x1--", "x1"],
            ["a preamble", "--x\r\nnot read\r\n--x1\r\n$nine--x1--\r\n", "x1"],
            ["padding", "--x1 \t\r\n$nine--x1-- \r\n", "x1"],
            ["an epilogue", "--x1\r\n$nine--x1--\r\nnot read", "x1"],
            ["blanks in the boundary", "--x 1;y\r\n$nine--x 1;y--\r\n",
                "\"x 1;y\""]) {
        my ($name, $body, $boundary) = @$case;
        page_is(post($form, $body, type => "multipart/form-data; boundary="
            . $boundary), 200, qr/Thank you/, "RFC 2046: $name");
        is_deeply((submissions($w, $form))[0]{custom_field_responses},
            { n => 9 }, "is read");
    }
    page_is(post($form, "--x1\r\nContent-Disposition: form-data; name=cv;"
        . " filename=cv.pdf\r\n\r\nx\r\n--x1--\r\n",
        type => "multipart/form-data; boundary=x1"), 422,
        qr{<strong>cv</strong> must not be a file}, "a file without quotes");
    my $r = post($form, '{"email": "j@x.example", "a": "x", "n": 3, "m":'
        . ' ["2", 3], "name": null}', type => "application/json");
    status_is($r, 201, "JSON");
    my ($latest) = submissions($w, $form);
    is_deeply($r->json, { data => { id => $latest->{id}, form_id => $form,
        is_internal => false } },
        "is answered by its id, and not by whom it matched");
    is_deeply($latest->{custom_field_responses},
        { a => "x", n => 3, m => ["2", "3"] }, "is read");
    is($r->header("Access-Control-Allow-Origin"), "*",
        "other sites' scripts may send");
    is(scalar(my @all = submissions($w, $form)), 9, "nine submissions in all");
    $r = $httpd->client->options("$BASE/$form");
    status_is($r, 204, "a preflight");
    is($r->header("Access-Control-Allow-Headers"), "Content-Type",
        "allows JSON");
    error_is(post($form, "{\"a\":\"x\",\"zzz\":1}",
        type => "application/json"), 422, "validation_error",
        "JSON with an unknown name", ["zzz"]);
};

subtest "several answers under a name with []" => sub {
    my $form = form($w, custom_fields => { (map { $_ => { type => "multiselect",
        options => ["x", "y"], required => $_ eq "m" ? true : false } }
        qw(m n n[])), t => {} });
    for my $case (["m%5B%5D=x&m[]=y&t[]=z", { m => ["x", "y"] }],
            ["m=y&m[]=x", { m => ["y", "x"] }],
            ["m[]=x&n[]=y", { m => ["x"], "n[]" => ["y"] }],
            ["m%5B0%5D=x&m[1]=y&t[0]=z", { m => ["x", "y"] }],
            ["m=x&m[][]=y&m[a]=y&m0]=y&m[-1]=y", { m => ["x"] }]) {
        my ($body, $wanted) = @$case;
        page_is(post($form, $body), 200, qr/Thank you/, $body);
        is_deeply((submissions($w, $form))[0]{custom_field_responses}, $wanted,
            "$body: as the field of the form that it is");
    }
    status_is(post($form, '{"m[]": ["x"]}', type => "application/json"), 201,
        "JSON");
};

subtest "what is required, types, lengths" => sub {
    my %types = (number => { type => "number", min => 1, max => 2 },
        integer => { type => "integer" }, date => { type => "date",
            min => "2026-01-01" }, url => { type => "url" },
        email2 => { type => "email" }, tel => { type => "tel" },
        text => { max_length => 5, min_length => 2 },
        pick => { type => "select", options => ["x"] },
        box => { type => "checkbox" });
    my $form = form($w, standard_fields => { email => { required => true } },
        custom_fields => \%types);
    my @mail = (email => "t\@x.example");
    for my $case ([number => 1.5, 0.5, "must be at least 1"],
            [number => 2, "3", "must be at most 2"],
            [integer => -4, 4.5, "must be a whole number"],
            [date => "2026-03-01", "2025-03-01",
                "must not be before 2026-01-01"],
            [url => "https://x.example", "javascript:x",
                "must be an address that begins with https:// or http://"],
            [email2 => "a\@b.example", "a.b", "must be an e-mail address"],
            [email2 => "a\@köln.example.", "a\@xn--a.example",
                "must be an e-mail address with a valid domain"],
            [tel => "+49 30", "zero", "must be a phone number"],
            [text => "äöüßx", "äöüßxy", "must have at most 5 characters"],
            [text => "ab", "a", "must have at least 2 characters"],
            [pick => "x", "y", "must be one of the options"],
            [box => true, "perhaps", "must be true or false"]) {
        my ($name, $good, $bad, $rule) = @$case;
        is(wrong_with($form, @mail, $name => $good), "", "$name: $good");
        is(wrong_with($form, @mail, $name => $bad), "$name $rule",
            "$name: $bad");
    }
    is(wrong_with($form, text => "abc", email => $_), "email is required",
        sprintf "required: U+%vX", $_) for " ", "\x{a0}", "\x{200b}\x{3000}";
    is(wrong_with($form, email => "no address", number => "x", text => "x"),
        "email must be an e-mail address; number must be a number; text must"
        . " have at least 2 characters", "5.6 everything that is wrong");
    is(wrong_with($form, email => { a => 1 }), "email must be a string, a"
        . " number, true or false, or an array of these", "an object");
};

subtest "the page that tells what is wrong" => sub {
    my $count = () = submissions($w, $contact_form);
    my $r = send_form($contact_form, { headers => { Referer =>
        "https://shop.example/contact?a=\"><script>" } }, email => "x",
        how => "<script>alert(1)</script>", message => "");
    my $main = page_is($r, 422, qr{Please check your answers},
        "a page");
    like($main, qr{<strong>E-mail</strong> must be an e-mail address},
        "by the label");
    like($main, qr{<strong>Ihre Nachricht</strong> is required},
        "what is missing");
    like($main, qr{<strong>Terms &amp; conditions</strong> must be ticked},
        "a box that has to be ticked");
    like($main, qr{href="https://shop\.example/contact\?a=&quot;&gt;&lt;script},
        "a way back");
    unlike($main, qr/<script/, "no markup of others");
    unlike(page_is(send_form($contact_form, { headers => { Referer =>
        "javascript:alert(1)" } }, email => "x"), 422, qr/E-mail/,
        "from a script"), qr/javascript:/, "no way back to it");
    page_is(send_form($contact_form, submit => "x"), 422,
        qr{E-mail</strong> is required}, "an empty form");
    is(scalar(my @now = submissions($w, $contact_form)), $count,
        "nothing is stored");
    my $free = form($w);
    page_is(send_form($free, submit => "x"), 422, qr/The form is empty/,
        "a form without rules that is empty");
    page_is(send_form($free, email => "free\@x.example", other => "y"), 200,
        qr/Thank you/, "one that is not");
};

subtest "redirect and thanks" => sub {
    my $text = "Danke & <b>bis bald</b>";
    my $thanks = form($w, standard_fields => { _form =>
        { thank_you => $text } });
    like(page_is(send_form($thanks, email => "d\@x.example"), 200,
        qr/Danke &amp; &lt;b&gt;bis bald/, "own words"), qr/Danke/, "escaped");
    my $form = form($w, standard_fields => { email => true, _form =>
        { redirect_url => "https://shop.example/danke?a=1#b" } });
    my $r = send_form($form, email => "r\@x.example",
        redirect_url => "https://evil.example/");
    status_is($r, 303, "a redirect");
    is($r->header("Location"), "https://shop.example/danke?a=1#b",
        "to the configured page only");
    is($r->body, "", "without a body");
    status_is(post($form, '{"email":"r2@x.example"}',
        type => "application/json"), 201, "programs are not sent about");
    for (["application/json", 201], ["application/json, text/plain, */*", 201],
            ["Application/JSON;q=0.9", 201], ["*/*", 303], ["text/plain", 303],
            ["text/html,application/xhtml+xml,application/json;q=0.1", 303]) {
        my ($accept, $status) = @$_;
        my %accept = (headers => { Accept => $accept });
        $r = send_form($form, { %accept }, email => "s\@x.example");
        status_is($r, $status, "a form by who accepts $accept");
        is($r->json->{data}{form_id}, $form, "is told in JSON") if $status == 201;
        error_is(send_form($form, { %accept }, email => "s"), 422, "validation_error",
            "also what is wrong", ["email"]) if $status == 201;
    }
    my $open = form($w);
    change($w, "form", $open, standard_fields =>
        '{"_form": {"redirect_url": "javascript:alert(1)"}}');
    page_is(send_form($open, email => "o\@x.example"), 200, qr/Thank you/,
        "only to http and https");
};

subtest "honeypot" => sub {
    my $before = count_rows($w, "submission") . count_rows($w, "contact")
        . count_rows($w, "conversation");
    page_is(send_form($contact_form, @GOOD, email => "bot\@x.example",
        website_hp => "https://spam.example"), 200, qr/Thank you/,
        "a robot is thanked");
    page_is(send_form($contact_form, website_hp => "x"), 200, qr/Thank you/,
        "whatever it sends");
    my $r = post($contact_form, '{"website_hp":"x"}',
        type => "application/json");
    status_is($r, 201, "as JSON");
    like($r->data->{id}, $ID, "with an id");
    is(count_rows($w, "submission") . count_rows($w, "contact")
        . count_rows($w, "conversation"), $before, "and nothing is stored");
    my $own = form($w, standard_fields => { _form =>
        { honeypot => "fax" } });
    page_is(send_form($own, email => "h\@x.example", fax => "1"), 200,
        qr/Thank you/, "another name");
    is(scalar(my @none = submissions($w, $own)), 0, "works, too");
    my $asks = form($w, custom_fields => { website_hp => true });
    send_form($asks, email => "h\@x.example", website_hp => "mine");
    is((submissions($w, $asks))[0]{custom_field_responses}{website_hp}, "mine",
        "a field of the form's own with this name is none");
};

subtest "sent twice" => sub {
    my $form = form($w, custom_fields => { a => true });
    my @same = (email => "twice\@x.example", a => "1",
        submission_id => "page-$$");
    my @got = in_processes(5, sub {
        return [map { my $r = send_form($form, @same); $r->status } 1 .. 4];
    });
    is(join(" ", map { @$_ } @got), join(" ", (200) x 20),
        "20 clicks are all thanked");
    is(scalar(my @one = submissions($w, $form)), 1, "one submission");
    send_form($form, @same, a => "2");
    send_form($form, email => "twice\@x.example", a => "3",
        submission_id => "page-$$");
    is(scalar(my @two = submissions($w, $form)), 2,
        "other answers are another one");
    send_form($form, email => "twice\@x.example", a => "1") for 1, 2;
    is(scalar(my @four = submissions($w, $form)), 4,
        "without submission_id each is one");
    send_form($form, email => "twice\@x.example", a => "1", submission_id => "")
        for 1, 2;
    is(scalar(my @six = submissions($w, $form)), 6, "an empty one is none");
    my $other = form($w, custom_fields => { a => true });
    send_form($other, @same);
    is(scalar(my @others = submissions($w, $other)), 1,
        "the same at another form is another one");
    is(count_rows($w, "contact", "email_key = 'twice\@x.example'"), 1,
        "of one contact");
};

subtest "contacts: found or made, and never changed" => sub {
    my $form = form($w, standard_fields => { email => true, name => true,
        phone_number => true, city => true, company => true,
        _form => { lead_source => "web" } });
    my $known = $w->contact(emails => ["Known\@x.example"], company => "Old");
    send_form($form, email => "KNOWN\@x.example", name => "Grace Hopper",
        company => "New", city => "Arlington", phone_number => "+1 703 555 0100");
    my ($one) = submissions($w, $form);
    is($one->{contact_id}, $known->{id}, "found by its address");
    is_deeply($c->get("/api/v1/contacts/$known->{id}")->data, $known,
        "and not changed: anybody may know an address");
    my $talk = sql($database, "SELECT id FROM crmapi.conversation WHERE"
        . " contact_id = '$known->{id}'");
    my ($said) = @{$c->get("/api/v1/conversations/$talk/messages")->data};
    like($said->{content}, qr/^E-mail: KNOWN\@x.example\n.*^Phone: \+1 703 555 0100$/ms,
        "what was said stays in the conversation");
    is($said->{metadata}{verified}, false, "which says that it is a claim");
    send_form($form, phone_number => "+1 (703) 555-0100");
    isnt((submissions($w, $form))[0]{contact_id}, $known->{id},
        "the number that was claimed leads to somebody else");
    my $made = (submissions($w, $form))[0]{contact_id};
    send_form($form, phone_number => "+1 703 555 0100", name => "Eve");
    is((submissions($w, $form))[0]{contact_id}, $made, "found by its number");
    is($c->get("/api/v1/contacts/$made")->data->{first_name}, undef,
        "a contact that a form made is not changed by the next");
    send_form($form, city => "Nowhere");
    is((submissions($w, $form))[0]{contact_id}, undef,
        "who tells no address is nobody");
};

subtest "a claim leaves it alone who others talk to" => sub {
    my $form = form($w, standard_fields => { email => true, name => true,
        phone_number => true });
    send_form($form, email => "mine\@x.example", name => "Mine");
    my ($first) = submissions($w, $form);
    send_form($form, email => "mine\@x.example", name => "Eve",
        phone_number => "+666");
    my @talks = sql($database, "SELECT human, email, phone_number FROM"
        . " crmapi.conversation WHERE contact_id = '$first->{contact_id}'");
    is_deeply(\@talks, [["Mine", "mine\@x.example", undef]],
        "one conversation, with whom it began");
};

subtest "internal submissions" => sub {
    my $form = form($w, custom_fields => { a => true });
    my $token = $w->token("tests");
    my $foreign = $w->twin->token("tests");
    my $try = sub { send_form($form, { query => "internal=true", headers =>
        { Authorization => $_[0] } }, a => "1") };
    page_is($try->($_), 401, qr/token is missing or invalid/, "without a good"
        . " token") for undef, "Bearer " . $w->key, "Bearer $foreign",
        "Bearer svc_in_" . "x" x 30;
    is(count_rows($w, "submission", "form_id = '$form'"), 0, "none");
    page_is($try->("Bearer $token"), 200, qr/Thank you/, "with one");
    send_form($form, internal => "true", a => "2");
    is_deeply([map { "$_->{custom_field_responses}{a} $_->{is_internal}" }
        submissions($w, $form, include_internal => "true")], ["2 0", "1 1"],
        "is internal, and no field of anybody's makes one so");
    for my $word (qw(1 TRUE)) {
        page_is(send_form($form, { query => "internal=$word" }, a => "3"), 401,
            qr/token is missing or invalid/, "7.3 $word is true, too");
    }
    for my $word ("yes", "") {
        page_is(send_form($form, { query => "internal=$word" }, a => "3"), 422,
            qr/internal/, "nor is there one with internal=$word");
    }
    my ($one) = grep { $_->{name} eq "tests" } @{JSON::PP->new->decode($w->ctl(
        "--json", "intake", "list", "--workspace", $w->id))};
    $w->ctl("intake", "revoke", $one->{id});
    page_is($try->("Bearer $token"), 401, qr/token is missing or invalid/,
        "3.2 nor with one that was revoked");
    is(scalar(my @shown = submissions($w, $form)), 1, "hidden by default");
    unlike($httpd->log_text . $httpd->access_log, qr/svc_in_/,
        "3.4 no token in a log");
};

subtest "2.4 look-ups of unknown tokens are charged to the address" => sub {
    my $server = httpd(database => $database, modules => ["status"],
        conf => <<"END");
$conf{base}
CrmApiAddressLimit 0
CrmApiUnknownKeyLimit 3
CrmApiIntakeLimit 6
<Location /server-status>
    SetHandler server-status
    Require all granted
</Location>
END
    my $form = form($w, custom_fields => { a => true });
    my ($token, $fresh) = map { $w->token($_) } qw(known fresh);
    my $n = 0;
    my $try = sub { send_form($form, { server => $server,
        query => "internal=true", headers => { Authorization =>
        "Bearer " . ($_[0] // sprintf "svc_in_%030d", ++$n) } }, a => "1") };
    my $refused = sub { $server->client->counter("LookUpsRefused") };

    page_is($try->($token), 200, qr/Thank you/, "a token that becomes known");
    page_is($try->(), 401, qr/token is missing or invalid/, "look-up $_ of 3")
        for 1 .. 3;
    my $last = $try->();
    page_is($last, 429, qr/Too many forms/, "one more");
    like($last->header("Retry-After") // "", qr/^[1-9]\d?$/,
        "one more: with Retry-After");
    ok(wait_for(sub { $refused->() == 1 }), "mod_status counts it")
        or diag($refused->());      # after the answer
    page_is($try->($fresh), 200, qr/Thank you/,
        "a good token, not yet known, is not refused");
    page_is($try->($token), 200, qr/Thank you/, "nor is one that is known")
        for 2 .. 6;
    my $r = $try->($token);
    status_is($r, 429, "but by its own limit");
    is($r->header("X-RateLimit-Limit"), 6, "which it names");
    is(count_rows($w, "submission", "form_id = '$form'"), 7,
        "and nothing else was stored");
    $server->stop;
};

subtest "internal submissions are not charged to the address" => sub {
    my $server = httpd(database => $database,
        conf => "$conf{base}CrmApiAddressLimit 2\n");
    my $form = form($w, custom_fields => { a => true });
    my $token = $w->token("own");
    my %internal = (query => "internal=true", headers =>
        { Authorization => "Bearer $token" });
    status_is(send_form($form, { server => $server, %internal }, a => "1"),
        200, "with a token: $_") for 1 .. 5;
    status_is(send_form($form, { server => $server }, a => "1"), 200,
        "without one: $_") for 1, 2;
    status_is(send_form($form, { server => $server }, a => "1"), 429,
        "without one: one too many");
    $server->stop;
};

subtest "allowed origins" => sub {
    my $form = form($w, standard_fields => { email => true, _form =>
        { allowed_origins => ["https://shop.example"] } });
    my $from = sub { send_form($form, { headers => { Origin => $_[0] } },
        email => "o\@x.example") };
    page_is($from->($_), 403, qr/must not be sent from this site/, $_)
        for "https://evil.example", "https://shop.example.evil.example",
        "http://shop.example", "null";
    page_is($from->("https://shop.example"), 200, qr/Thank you/,
        "a page that may");
    page_is($from->(undef), 200, qr/Thank you/, "no page at all");
    is(scalar(my @two = submissions($w, $form)), 2, "two are stored");
};

subtest "which form" => sub {
    page_is(send_form($_, email => "a\@x.example"), 404, qr/no such form/,
        "none: $_") for uuid(), "x", $w->agent, "../forms/x";
    error_is(send_form($_, email => "a\@x.example"), 404, "not_found",
        "no route: $_") for "", "$contact_form/x";
    is(count_rows($w, "contact", "email_key = 'a\@x.example'"), 0,
        "nothing is stored");
    page_is(send_form(uc $contact_form, email => "x"), 422, qr/E-mail/,
        "in capitals");
    my $bound = httpd(database => $database,
        conf => "$conf{base}CrmApiWorkspace " . $w->twin->id . "\n");
    page_is(send_form($contact_form, { server => $bound }, @GOOD), 404,
        qr/no such form/, "of another workspace than the host's");
    insert($w->twin, "form", id => $contact_form, name => "same",
        bot_id => scalar sql($database, "SELECT id FROM crmapi.agent WHERE"
            . " workspace_id = '" . $w->twin->id . "' LIMIT 1"));
    page_is(send_form($contact_form, email => "x"), 422, qr/E-mail/,
        "an id that two workspaces have is that of the first one");
    page_is(send_form($contact_form, { server => $bound }, @GOOD), 200,
        qr/Thank you/, "where the host is bound, that of its workspace");
    sql($database, "DELETE FROM crmapi.submission WHERE workspace_id = '"
        . $w->twin->id . "'; DELETE FROM crmapi.form WHERE workspace_id = '"
        . $w->twin->id . "' AND id = '$contact_form'");
};

subtest "a limit for each address" => sub {
    my $form = form($w);
    my $server = httpd(database => $database,
        conf => "$conf{base}CrmApiAddressLimit 3\n");
    my @statuses = map { send_form($form, { server => $server },
        email => "l$_\@x.example")->status } 1 .. 3;
    is("@statuses", "200 200 200", "three");
    my $r = send_form($form, { server => $server }, email => "l4\@x.example");
    page_is($r, 429, qr/Please wait a moment/, "the fourth");
    cmp_ok($r->header("Retry-After"), ">", 0, "Retry-After");
    my $limited = post($form, "{}", type => "application/json",
        server => $server);
    error_is($limited, 429, "rate_limited", "as JSON");
    is($limited->header("Access-Control-Expose-Headers"), "Retry-After",
        "a page's script may read when to come again");
    status_is($server->client->options("$BASE/$form"), 204,
        "a preflight costs nothing");
    is(scalar(my @three = submissions($w, $form)), 3, "three are stored");
};

subtest "hostile requests" => sub {
    my $form = form($w, custom_fields => { a => { type => "textarea" },
        map { ("f$_" => true) } 1 .. 90 });
    like(wrong_with($form, a => [(1) x $_->[0]], f1 => "x"), $_->[1],
        "contract 2.5: JSON with $_->[0] answers and one")
        for [199, qr/^(?!.*must not come after)/],
            [200, qr/must not come after so many answers/];
    my $before = count_rows($w, "submission");
    page_is(post($form, $_), 400, qr/malformed/, "malformed: "
        . s/\0/NUL/r) for "a=%", "a=%00", "a=%ff&b=1", "a=1\0";
    page_is(post($form, join "&", map { "x$_=1" } 1 .. 201), 400,
        qr/malformed/, "contract 2.5: 201 fields");
    page_is(post($form, $_, type => "multipart/form-data; boundary=b"), 400,
        qr/malformed/, "multipart: " . substr($_, 0, 20) =~ s/\s/ /gr)
        for "", "x", "\r\n", "x--b\r\n", "--bc\r\n--b--\r\n", "--b\r\n", "--b\r\nContent-Disposition: form-data;"
        . " name=\"a\"\r\n\r\n1\r\n", "--b--x\r\n" =~ s/--x/x/r;
    page_is(post($form, "a=1", type => $_), 415, qr/must be sent as/,
        "type: $_") for "text/plain", "application/xml";
    error_is(post($form, $_, type => "application/json"), 400, "bad_request",
        "JSON: $_") for "{", "{\"a\":1,\"a\":2}", "";
    error_is(post($form, $_, type => "application/json"), 422,
        "validation_error", "JSON: $_") for "[]", "3", "{\"a\":\"\\u0000\"}",
        "{}";
    page_is(post($form, "a=" . "x" x 65_535), 413, qr/This did not work/,
        "contract 2.5: 64 KiB and a byte");
    page_is(post($form, "a=" . "x" x 16385), 422,
        qr/must have at most 16384 characters/, "a long text");
    status_is($httpd->client->get("$BASE/$form"), 405, "GET");
    is(count_rows($w, "submission"), $before, "nothing is stored");
    page_is(send_form($form, a => "'; DROP TABLE x; --\\", f1 => "\x{202e}\"}"),
        200, qr/Thank you/, "what is text to us");
    is_deeply((submissions($w, $form))[0]{custom_field_responses},
        { a => "'; DROP TABLE x; --\\", f1 => "\x{202e}\"}" },
        "is kept as it is");
};

subtest "a submission stops no sequence" => sub {
    my $template = $w->template([{ email_subject => "s", email_body => "x" }],
        stop_on_reply => true);
    my $token = $w->token("stops");
    my $id = $w->start($template, contact => { emails =>
        ["seq\@x.example", "other\@x.example"] })->{enrollment_id};
    my $form = form($w);
    send_form($form, email => "seq\@x.example", name => "S");
    send_form($form, email => "other\@x.example", name => "S");
    send_form($form, { query => "internal=true", headers => { Authorization =>
        "Bearer $token" } }, email => "seq\@x.example", name => "S");
    is(scalar(my @all = submissions($w, $form, include_internal => "true")),
        3, "by its address, another one of it, and as a test");
    is($c->get("/api/v1/sequences/enrollments/$id")->data->{status},
        "generating", "anybody may have sent them");
};

subtest "the example of docs/forms.md" => sub {
    my ($config) = documented("forms.md", "json");
    my ($html) = documented("forms.md", "html");
    my ($id) = $w->import_objects([{ %{JSON::PP->new->decode($config)},
        bot_id => $w->agent }]);
    my %value = (email => "doc\@x.example", name => "Ada", message => "Hi",
        source => "friend", terms => "on", website_hp => "");
    my @names = $html =~ /name="(\w+)"/g;
    is_deeply([sort @names], [sort keys %value], "the page's fields");
    my $r = send_form($id, map { $_ => $value{$_} } @names);
    status_is($r, 303, "are taken");
    is_deeply((submissions($w, $id))[0]{custom_field_responses},
        { message => "Hi", source => "friend", terms => true }, "and kept");
};

done_testing;
