# SPDX-License-Identifier: Apache-2.0
# 38-sequences.t: sequences/start and enrollments (specification: Sequences,
# Sequence enrollment; contract 8.2, 11)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Spec;
use POSIX qw(strftime);

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $START = "/api/v1/sequences/start";

# A workspace with two templates: one with an agent, one without.
sub with_templates {
    my $w = workspace($httpd, @_);
    @$w{qw(template orphan)} = $w->import_objects([
        { object => "sequence_template", name => "Welcome",
            bot_id => $w->agent, allowed_channels => ["email", "sms"],
            stop_on_reply => true, goal_prompt => "be nice",
            pacing => { days_between_steps => 2 },
            steps => [{ channel => "sms", sms_body => "Hi" }] },
        { object => "sequence_template", name => "Orphan",
            allowed_channels => ["email"] }]);
    return $w;
}

# The answer to a start in W of MEMBERS.
sub start {
    my ($w, %members) = @_;
    my %body = (template_id => $w->{template}, contact => {
        emails => ["lead\@x.org"] }, %members);
    delete @body{grep { !defined $body{$_} } keys %body};
    return $w->client->post($START, \%body);
}

# RESPONSE is a 202 with exactly what the specification's line says.
sub started {
    my ($response, $name, %members) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $ok = record_is($response, { sequence_id => $ID, enrollment_id => $ID,
        contact_id => $ID, contact_action => "created", auto_approve => false,
        status => "generating", status_url => sub { $_[0] eq
            "/api/v1/sequences/enrollments/"
            . $response->data->{enrollment_id} }, %members }, $name, 202);
    return $ok ? $response->data : {};
}

# How many rows a workspace has of all that a start writes.
sub rows {
    my ($w) = @_;
    return { map { $_ => count_rows($w, $_) }
        qw(contact sequence enrollment job) };
}

my %NONE = (contact => 0, sequence => 0, enrollment => 0, job => 0);
my %ONE = (contact => 1, sequence => 1, enrollment => 1, job => 1);

subtest "11.1, 11.3 one sequence, one enrollment, one contact, the work"
        => sub {
    my $w = with_templates();
    my $c = $w->client;
    my $r = start($w);
    my $got = started($r, "8: 202");
    is($r->header("Idempotent-Replayed"), undef, "no replay");
    record_is($c->get($got->{status_url}), enrollment_of(
        id => $got->{enrollment_id}, sequence_id => $got->{sequence_id},
        contact_id => $got->{contact_id}, sequence => {
            id => $got->{sequence_id}, name => "Welcome", status => "active",
            bot_id => $w->agent, template_id => $w->{template} }),
        "spec: the enrollment under status_url, with its sequence");
    record_is($c->get("/api/v1/contacts/$got->{contact_id}"), contact_of($w,
        emails => [email("lead\@x.org", 1)]), "the contact is there");
    is_deeply(rows($w), \%ONE, "11.1 one of each");
    is_deeply([sql($database, "SELECT kind, payload->>'enrollment_id', state"
        . " FROM crmapi.job WHERE workspace_id = '" . $w->id . "'")],
        [["generate.steps", $got->{enrollment_id}, "ready"]],
        "11.1 the work for the worker");
    $got = started(start($w, auto_approve => true, name => "Mine",
        contact => { emails => ["LEAD\@x.org"] }),
        "11.3 an existing contact", contact_action => "updated",
        contact_id => $got->{contact_id}, auto_approve => true);
    is($c->get($got->{status_url})->data->{sequence}{name}, "Mine",
        "11.1 with a name of its own");
    is_deeply(rows($w), { contact => 1, sequence => 2, enrollment => 2,
        job => 2 }, "spec: in another active sequence already: allowed");
    is(total_of($c, "/contacts"), 1, "one contact");
    is($c->get("/api/v1/contacts")->data->[0]{id}, $got->{contact_id},
        "the same");
};

subtest "8.2 what is missing: 400" => sub {
    my $w = with_templates();
    my @contact = (contact => { emails => ["lead\@x.org"] });
    for my $case (
        ["nothing", {}, "contact", "template_id"],
        ["no template_id", { @contact }, "template_id"],
        ["null as template_id", { @contact, template_id => undef },
            "template_id"],
        ["no contact", { template_id => $w->{template} }, "contact"],
        ["null as contact", { template_id => $w->{template},
            contact => undef }, "contact"],
        ["no agent from request and template", { @contact,
            template_id => $w->{orphan} }, "bot_id"],
        ["null as bot_id, and none in the template", { @contact,
            template_id => $w->{orphan}, bot_id => undef }, "bot_id"],
    ) {
        my ($name, $body, @fields) = @$case;
        error_is($w->client->post($START, $body), 400, "bad_request",
            "8.2 $name", \@fields);
    }
    for my $body ("", "{", "[1", "nonsense") {
        error_is($w->client->post($START, undef, body => $body), 400,
            "bad_request", "6.1 broken: $body");
    }
    is_deeply(rows($w), \%NONE, "nothing is written");
};

subtest "8.2 what is wrong: 422" => sub {
    my $w = with_templates();
    my %ok = (template_id => $w->{template},
        contact => { emails => ["lead\@x.org"] });
    for my $case (
        ["an array", [], ""],
        ["template_id a number", { %ok, template_id => 1 }, "template_id"],
        ["template_id an object", { %ok, template_id => {} },
            "template_id"],
        ["contact a text", { %ok, contact => "x" }, "contact"],
        ["contact an array", { %ok, contact => [] }, "contact"],
        ["contact without e-mail and phone", { %ok, contact => {} },
            "contact"],
        ["contact with a name alone", { %ok, contact => {
            first_name => "x" } }, "contact"],
        ["contact with empty lists", { %ok, contact => { emails => [],
            phone_numbers => [] } }, "contact"],
        ["contact with nulls", { %ok, contact => { emails => undef,
            phone_numbers => undef } }, "contact"],
        ["emails no list", { %ok, contact => { emails => "a\@x.org" } },
            "contact.emails"],
        ["a bad e-mail", { %ok, contact => { emails => ["a\@x.org", "x"] } },
            "contact.emails[1]"],
        ["a bad e-mail alone", { %ok, contact => { emails => ["x"] } },
            "contact.emails[0]"],
        ["an empty e-mail", { %ok, contact => { emails => [""] } },
            "contact.emails[0]"],
        map({ ["11.5 a phone that is not E.164: $_", { %ok, contact => {
            phone_numbers => ["+493012345", $_] } },
            "contact.phone_numbers[1]"] } "030 12345", "493012345",
            "+49 30 12345", "+030123456", "+1234567", "+1234567890123456", "+", "x",
            "", "+49301234x", "++4930123"),
        ["5.6 the same in an object", { %ok, contact => { phone_numbers =>
            ["+493012345", { phone_number => "030 12345" }] } },
            "contact.phone_numbers[1].phone_number"],
        map({ ["$_ a number", { %ok, contact => { emails => ["a\@x.org"],
            $_ => 1 } }, "contact.$_"] } grep { !/^(?:emails|phone_numbers)$/ }
            @CrmTest::Spec::START_CONTACT),
        ["a member too many in contact", { %ok, contact => {
            emails => ["a\@x.org"], deal_value => 1 } },
            "contact.deal_value"],
        ["a read-only member of a contact", { %ok, contact => {
            emails => ["a\@x.org"], company_id => uuid() } },
            "contact.company_id"],
        ["6.2 a member too many in an e-mail", { %ok, contact => {
            emails => ["a\@x.org", { email => "b\@x.org", kind => "work" }],
            phone_numbers => [{ phone_number => "+49301234", x => undef }] } },
            "contact.emails[1].kind", "contact.phone_numbers[0].x"],
        ["a member too many", { %ok, channel => "email" }, "channel"],
        ["auto_approve a text", { %ok, auto_approve => "true" },
            "auto_approve"],
        ["auto_approve a number", { %ok, auto_approve => 1 },
            "auto_approve"],
        ["name a number", { %ok, name => 1 }, "name"],
        ["6.3 a name too long", { %ok, name => "x" x 1001 }, "name"],
        ["11.2 an empty idempotency_key", { %ok, idempotency_key => "" },
            "idempotency_key"],
        ["11.2 256 characters", { %ok, idempotency_key => "x" x 256 },
            "idempotency_key"],
        ["idempotency_key a number", { %ok, idempotency_key => 1 },
            "idempotency_key"],
        ["bot_id a number", { %ok, bot_id => 1 }, "bot_id"],
        ["6.8 an empty bot_id", { %ok, bot_id => "" }, "bot_id"],
        ["6.8 a malformed bot_id", { %ok, bot_id => "x" }, "bot_id"],
        ["6.8 an unknown bot_id", { %ok, bot_id => uuid() }, "bot_id"],
        ["11.4 another workspace's bot_id", { %ok,
            bot_id => $w->twin_of($w->agent) }, "bot_id"],
        ["a pipeline's id", { %ok, bot_id => $w->pipeline }, "bot_id"],
        ["5.6 all at once", { template_id => 1, bot_id => uuid(),
            auto_approve => 1, name => {}, x => 1, contact => {
                emails => ["x"], tags => 1 } }, "auto_approve", "bot_id",
            "contact.emails[0]", "contact.tags", "name", "template_id",
            "x"],
    ) {
        my ($name, $body, @fields) = @$case;
        error_is($w->client->post($START, $body), 422, "validation_error",
            "8.2 $name", \@fields);
    }
    is_deeply(rows($w), \%NONE, "nothing is written");
    started($w->client->post($START, { %ok, channel => "email", contact => {
        emails => [{ email => "lead\@x.org", kind => "work" }],
        deal_value => 1 } },
        headers => { Prefer => "handling=lenient" }),
        "6.2 handling=lenient ignores what is too many");
    started($w->client->post($START, { %ok, map { $_ => undef }
        qw(bot_id auto_approve idempotency_key name) }),
        "null is absent", contact_action => "updated");
    started($w->client->post($START, { %ok, contact => {
        (map { $_ => undef } @CrmTest::Spec::START_CONTACT),
        emails => ["lead\@x.org"] } }), "in the contact, too",
        contact_action => "updated");
};

subtest "8.2 an unknown template: 404, after the body" => sub {
    my $w = with_templates();
    my @answers = map { start($w, template_id => $_) } uuid(), $w->agent,
        $w->twin_of($w->{template}), $w->twin_of($w->{orphan});
    error_is($answers[$_], 404, "not_found", "8.2 template $_")
        for 0 .. $#answers;
    same_answer($answers[$_], $answers[0], "2.1 to the byte")
        for 1 .. $#answers;
    for my $malformed ("x", "") {
        my $r = start($w, template_id => $malformed);
        error_is($r, 422, "validation_error", "6.8 malformed: $malformed",
            ["template_id"]);
    }
    error_is(start($w, template_id => uuid(), contact => {}), 422,
        "validation_error", "8.2 the body first: contact", ["contact"]);
    error_is(start($w, template_id => uuid(), bot_id => uuid()), 422,
        "validation_error", "8.2 the body first: bot_id", ["bot_id"]);
    error_is(start($w, template_id => uuid(), contact => undef), 400,
        "bad_request", "8.2 the body first: missing", ["contact"]);
    error_is(start($w, template_id => $w->{orphan}, name => 1), 400,
        "bad_request", "11.2 where both apply, 400", ["bot_id", "name"]);
    for my $none (uuid(), "not-an-id", "", 5, [], { id => 1 },
            $w->twin_of($w->agent), $w->pipeline) {
        error_is(start($w, template_id => $w->{orphan}, bot_id => $none), 422,
            "validation_error", "8.2 an agent that is none is no missing one:"
            . " $none", ["bot_id"]);
        error_is(start($w, template_id => $w->{orphan}, bot_id => $none,
            name => 1), 422, "validation_error",
            "8.2 nor beside what else is wrong", ["bot_id", "name"]);
        error_is(start($w, template_id => $w->{orphan}, bot_id => $none,
            contact => undef), 400, "bad_request",
            "11.2 where both apply, 400: $none", ["bot_id", "contact"])
            if $none !~ /^[0-9a-f]{8}-/;
    }
    my $both = start($w, contact => undef, name => 1);
    is($both->status, 400, "11.2 missing and wrong: 400");
    is_deeply(rows($w), \%NONE, "nothing is written");
};

subtest "11.4 the request's bot_id goes before the template's" => sub {
    my $w = with_templates();
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my $c = $w->client;
    for my $case ([$w->{template}, undef, $w->agent],
            [$w->{template}, $agent, $agent], [$w->{orphan}, $agent, $agent],
            [$w->{template}, $w->agent, $w->agent]) {
        my ($template, $bot, $sender) = @$case;
        my $email = uuid() . "\@x.org";
        my $got = started(start($w, template_id => $template,
            bot_id => $bot, contact => { emails => [$email] }), "started");
        is($c->get($got->{status_url})->data->{sequence}{bot_id}, $sender,
            "the sender");
        is($w->shown("contacts", $got->{contact_id})->{bot_id}, $sender,
            "and the owner of a new contact");
    }
    my $mine = $w->contact(emails => ["mine\@x.org"]);
    my $got = started(start($w, bot_id => $agent, contact => {
        emails => ["mine\@x.org"] }), "of another agent's contact",
        contact_action => "updated", contact_id => $mine->{id});
    record_is($c->get("/api/v1/contacts/$mine->{id}"), $mine,
        "an existing contact keeps its agent, and updated_at (6.6)");
};

subtest "spec: matched by e-mail; by phone when no e-mail is given" => sub {
    my $w = with_templates();
    my $mail = $w->contact(emails => ["M\@x.org"], phone_numbers => ["+491"]);
    my $phone = $w->contact(emails => ["p\@x.org"],
        phone_numbers => ["+49 (30) 12-345"]);
    for my $case (
        ["by e-mail", $mail, emails => ["m\@X.org"]],
        ["by the first e-mail", $mail, emails => ["m\@x.org", "p\@x.org"]],
        ["e-mail before phone", $mail, emails => ["m\@x.org"],
            phone_numbers => ["+493012345"]],
        ["by phone when no e-mail is given", $phone,
            phone_numbers => ["+493012345"]],
    ) {
        my ($name, $whom, %contact) = @$case;
        started(start($w, contact => \%contact), $name,
            contact_action => "updated", contact_id => $whom->{id});
    }
    my $before = $w->shown("contacts", $phone->{id});
    for my $case (
        ["neither matches", "other\@x.org", "+4930123456"],
        ["an e-mail that matches nobody, with the phone of somebody",
            "nobody\@x.org", "+493012345"],
    ) {
        my ($name, $email, $number) = @$case;
        my $got = started(start($w, contact => { emails => [$email],
            phone_numbers => [$number] }), "$name: a new one");
        my $new = $w->shown("contacts", $got->{contact_id});
        is_deeply([@$new{qw(emails phone_numbers)}],
            [[email($email, 1)], [phone($number, 1)]], "$name: as sent");
    }
    is(total_of($w->client, "/contacts"), 4, "two were made");
    record_is($w->client->get("/api/v1/contacts/$phone->{id}"), $before,
        "the contact with that phone is unchanged");
};

subtest "11.5 the shortest and longest numbers" => sub {
    my $w = with_templates();
    for my $number ("+12345678", "+123456789012345") {
        my $got = started(start($w, contact => {
            phone_numbers => [$number] }), $number);
        next if !$got->{contact_id};
        is_deeply($w->shown("contacts", $got->{contact_id})->{phone_numbers},
            [phone($number, 1)], "as it was sent");
    }
};

subtest "11.5 a new contact: every member" => sub {
    my $w = with_templates();
    my %contact = (first_name => "F", last_name => "L", company => "C",
        job_title => "J", lead_source => "S", notes => "N\n2",
        custom_fields => { a => { b => 1 } }, tags => ["t", "u"]);
    my $got = started(start($w, contact => { %contact,
        emails => ["a\@x.org", "B\@x.org", "A\@X.org"],
        phone_numbers => ["+4912345678", "+4934567890"] }), "started");
    record_is($w->client->get("/api/v1/contacts/$got->{contact_id}"),
        contact_of($w, %contact, emails => [email("a\@x.org", 1),
            email("B\@x.org")], phone_numbers => [phone("+4912345678", 1),
            phone("+4934567890")]), "as it was sent; the first is primary");
};

subtest "11.5 an existing contact" => sub {
    my $w = with_templates();
    my $c = $w->client;
    # the workspace's day, which is not that of UTC
    my ($zone, $hours) = (gmtime)[2] < 10 ? ("Pacific/Pago_Pago", -11)
        : ("Pacific/Kiritimati", 14);
    $w->ctl("workspace", "set", $w->id, "--time-zone", $zone);
    my $today = sub { strftime("%Y-%m-%d", gmtime(time + $hours * 3600)) };
    my $whole = $w->contact(first_name => "F", last_name => "L",
        company => "C", job_title => "J", lead_source => "S",
        notes => "first", tags => ["a", "b"], deal_value => 5,
        custom_fields => { a => 1, b => { c => 1, d => 2 } },
        emails => ["k\@x.org", "l\@x.org"], phone_numbers => ["030"]);
    my $again = sub {
        my ($name, $sent, %new) = @_;
        my $before = $whole->{updated_at};
        started(start($w, contact => { emails => ["K\@x.org"], %$sent }),
            "$name: started", contact_action => "updated",
            contact_id => $whole->{id});
        my $r = $c->get("/api/v1/contacts/$whole->{id}");
        record_is($r, { %$whole, %new, %new ? (updated_at =>
            sub { $_[0] gt $before }) : () }, "11.5 $name");
        $whole = $r->data;
    };
    $again->("nothing sent, nothing changed", {});
    for my $field (qw(first_name last_name company job_title lead_source)) {
        $again->("$field overwrites", { $field => "new" }, $field => "new");
        $again->("null $field does not", { $field => undef });
    }
    $again->("tags are united, in their order", { tags => ["c", "a", "B"] },
        tags => ["a", "b", "c", "B"]);
    $again->("null tags take nothing away", { tags => undef });
    $again->("custom_fields merge one level", { custom_fields => {
        b => { x => 9 }, n => undef, new => [1] } },
        custom_fields => { a => 1, b => { x => 9 }, n => undef,
            new => [1] });
    $again->("e-mails and phones are united", { emails => ["k\@x.org",
        "new\@x.org", "L\@x.org"], phone_numbers => ["+493012345"] },
        emails => [email("k\@x.org", 1), email("l\@x.org"),
            email("new\@x.org")],
        phone_numbers => [phone("030", 1), phone("+493012345")]);
    # The day may end during the test.
    my $day = $today->();
    my $tag = sub { my $next = $today->(); qr/\[(?:$day|$next)\]/ };
    $again->("notes are appended with the day", { notes => "second\nline" },
        notes => sub { my $is = $tag->();
            $_[0] =~ /^first\n\n$is second\nline\z/ });
    my $notes = $whole->{notes};
    $again->("and again", { notes => "third" }, notes => sub {
        my $is = $tag->(); $_[0] =~ /^\Q$notes\E\n\n$is third\z/ });
    for my $empty (undef, "") {
        my $email = uuid() . "\@x.org";
        my $bare = $w->contact(emails => [$email], notes => $empty);
        $day = $today->();
        started(start($w, contact => { emails => [$email],
            notes => "only" }), "a contact without notes",
            contact_action => "updated", contact_id => $bare->{id});
        like($w->shown("contacts", $bare->{id})->{notes},
            qr/^${\$tag->()} only\z/,
            "11.5 the day is there either way, and no blank lines");
    }
};

subtest "6.3 what is appended and united must fit" => sub {
    my $w = with_templates();
    my $whole = $w->contact(notes => "x" x 65530, emails => ["k\@x.org"],
        tags => [map { "t$_" } 1 .. 100]);
    my $bare = $w->contact(emails => ["bare\@x.org"]);
    error_is(start($w, contact => { emails => ["bare\@x.org"],
        notes => "x" x 65536 }), 422, "validation_error",
        "6.3 notes that do not fit with the day before them",
        ["contact.notes"]);
    for my $case ([notes => "y"], [tags => ["one more"]],
            [emails => [map { "e$_\@x.org" } 1 .. 50]]) {
        my ($field, $value) = @$case;
        $value = ["k\@x.org", @$value] if $field eq "emails";
        pop @$value if $field eq "emails" && @$value > 51;
        my $r = start($w, contact => { emails => ["k\@x.org"],
            $field => $value });
        error_is($r, 422, "validation_error", "6.3 too much: $field",
            ["contact.$field"]);
    }
    record_is($w->client->get("/api/v1/contacts/$whole->{id}"), $whole,
        "nothing was changed");
    is_deeply(rows($w), { %NONE, contact => 2 }, "nor begun");
    started(start($w, contact => { emails => ["k\@x.org"],
        tags => ["t100", "t1"] }), "what is there already fits",
        contact_action => "updated");
};

subtest "11.6 a suppressed contact, no channel in common: accepted" => sub {
    my $w = with_templates();
    my ($silent) = $w->import_objects([
        { object => "sequence_template", name => "Voice", bot_id => $w->agent,
            allowed_channels => ["voice"] },
        { object => "suppression", email => "Stop\@x.org" },
        { object => "suppression", phone_number => "+493012345" }]);
    started(start($w, contact => { emails => ["stop\@x.org"],
        phone_numbers => ["+493012345"] }),
        "11.6 202 for a suppressed one: the worker says failed");
    started(start($w, template_id => $silent, contact => {
        emails => ["mail\@x.org"] }), "11.6 for no channel in common as well");
    is_deeply(rows($w), { map { $_ => 2 } keys %ONE }, "both are begun");
};

subtest "contact_id beside contact (an extension)" => sub {
    my $w = with_templates();
    my $c = $w->client;
    my $made = $w->contact(first_name => "Ada", emails => ["ada\@x.org"],
        tags => ["a"]);
    my $id = $made->{id};
    my $other = $w->contact(emails => ["lead\@x.org"]);
    my %by_id = (contact_action => "updated", contact_id => $id);
    started(start($w, contact => undef, contact_id => $id),
        "the id alone", %by_id);
    is_deeply($w->shown("contacts", $id), $made, "the contact stays as it was");
    started(start($w, contact_id => $id, contact => { first_name => "B",
        tags => ["b"] }), "with fields: no address is needed", %by_id);
    is_deeply([@{$w->shown("contacts", $id)}{qw(first_name tags)}],
        ["B", ["a", "b"]], "11.5 they are merged");
    started(start($w, contact_id => $id), "the id goes before an address that"
        . " another contact has", %by_id);
    is_deeply([map { $_->{email} } @{$w->shown("contacts", $id)->{emails}}],
        ["ada\@x.org", "lead\@x.org"], "which it gets, too");
    is_deeply($w->shown("contacts", $other->{id}), $other,
        "the other is not touched");
    my $bare = $w->contact;
    started(start($w, contact => undef, contact_id => $bare->{id}),
        "11.6 one without an address: the worker says failed",
        contact_action => "updated", contact_id => $bare->{id});
    is_deeply(rows($w), { contact => 3, sequence => 4, enrollment => 4,
        job => 4 }, "one enrollment each");
    for my $case (["unknown", uuid()], ["malformed", "x"], ["a number", 1],
        ["of another workspace", with_templates()->contact->{id}],
        ["of another resource", $w->agent]) {
        my ($name, $wrong) = @$case;
        error_is(start($w, contact => undef, contact_id => $wrong), 422,
            "validation_error", "6.8 $name", ["contact_id"]);
        error_is(start($w, contact => undef, contact_id => $wrong,
            bot_id => uuid()), 422, "validation_error",
            "5.6 $name, with an unknown agent", ["bot_id", "contact_id"]);
    }
    error_is(start($w, contact_id => $id, contact => { emails => ["x"] }), 422,
        "validation_error", "what contact has is checked",
        ["contact.emails[0]"]);
    error_is(start($w, contact => undef, contact_id => undef), 400,
        "bad_request", "neither: 400", ["contact"]);
    is_deeply(rows($w), { contact => 3, sequence => 4, enrollment => 4,
        job => 4 }, "nothing more is written");
    my $first = started(start($w, contact => undef, contact_id => $id,
        idempotency_key => "k"), "with a key", %by_id);
    is_deeply(start($w, contact => undef, contact_id => $bare->{id},
        idempotency_key => "k")->data, $first, "11.2 a replay");
};

subtest "a start by contact_id beside the contact's end" => sub {
    my $w = with_templates();
    my @ids = map { $w->contact(emails => ["c$_\@x.org"])->{id} } 1 .. 40;
    my @got = in_processes(4, sub {
        my ($n) = @_;
        return [map { ($n % 2 ? start($w, contact => undef, contact_id => $_)
            : $w->client->delete("/api/v1/contacts/$_"))->status } @ids];
    });
    is_deeply([sort { $a <=> $b } keys %{{ map { $_ => 1 }
        grep { !/^(?:202|204|404|422)$/ } map { @$_ } @got }}], [],
        "started or 422, deleted or 404");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.enrollment e WHERE"
        . " e.workspace_id = '" . $w->id . "' AND e.status = 'generating'"), 0,
        "9.6 no enrollment of a contact that is gone lives");
};

subtest "11.2 idempotency" => sub {
    my $w = with_templates();
    my ($agent) = $w->import_objects([{ object => "agent", name => "B" }]);
    my $c = $w->client;
    my $first = started(start($w, idempotency_key => "k1",
        contact => { emails => ["a\@x.org"] }), "the first");
    my $before = $w->shown("contacts", $first->{contact_id});
    for my $case (
        ["the same body", contact => { emails => ["a\@x.org"] }],
        ["another contact", contact => { emails => ["b\@x.org"],
            first_name => "B" }],
        ["the same with a new name", contact => { emails => ["a\@x.org"],
            first_name => "New", notes => "n" }],
        ["another template", template_id => $w->{orphan},
            bot_id => $agent],
        ["another name, another approval", name => "X",
            auto_approve => true],
        ["11.2 a template that is not there", template_id => uuid()],
    ) {
        my ($name, @members) = @$case;
        my $r = start($w, idempotency_key => "k1", @members);
        is($r->header("Idempotent-Replayed"), "true", "8 $name: a replay");
        value_is($r->status == 202 && $r->data, $first,
            "11.2 $name: the original ids, the original answer");
    }
    is_deeply(rows($w), \%ONE, "one of each");
    is_deeply($w->shown("contacts", $first->{contact_id}), $before,
        "the contact was not touched");
    for my $case ([422, "validation_error", contact => {}],
            [422, "validation_error", name => 1],
            [422, "validation_error", bot_id => uuid()],
            [400, "bad_request", contact => undef],
            [400, "bad_request", template_id => undef]) {
        my ($status, $code, @members) = @$case;
        error_is(start($w, idempotency_key => "k1", @members), $status,
            $code, "11.2 a refused body is refused, used key or not");
    }
    change($w, "enrollment", $first->{enrollment_id}, status => "approved");
    value_is(start($w, idempotency_key => "k1")->data, { %$first,
        status => "approved" }, "11.3 a replay gives the present status");
    $c->delete("/api/v1/contacts/$first->{contact_id}");
    value_is(start($w, idempotency_key => "k1")->data, { %$first,
        status => "stopped_user" }, "11.2 for ever: the contact is gone");
    is(total_of($c, "/contacts"), 0, "and is not made again");
    for my $case ([404, template_id => uuid()],
            [400, template_id => $w->{orphan}], [422, contact => {}]) {
        my ($status, @members) = @$case;
        is(start($w, idempotency_key => "k2", @members)->status, $status,
            "a request that is rejected");
    }
    started(start($w, idempotency_key => "k2"),
        "11.2 does not use the key up");
    for my $key ("K1", "k1 ", "\x{e4}" x 255, "'", "null", "x") {
        my $r = start($w, idempotency_key => $key);
        is($r->header("Idempotent-Replayed"), undef,
            "11.2 another key is another one: " . substr $key, 0, 9);
        is($r->status, 202, "which is accepted");
    }
    my $other = with_templates();
    my $there = start($other, idempotency_key => "k1");
    started($there, "11.2 one per workspace: another workspace's own");
    is($there->header("Idempotent-Replayed"), undef, "no replay");
};

subtest "11.2 100 equal requests at once: one enrollment, one contact"
        => sub {
    my $w = with_templates();
    my %body = (template_id => $w->{template}, idempotency_key => "same",
        contact => { emails => ["race\@x.org"], notes => "once" });
    my @got = in_processes(10, sub {
        my $own = $w->client;
        return [map { my $r = $own->post($START, \%body);
            [$r->status, $r->header("Idempotent-Replayed") // "no",
                $r->body] } 1 .. 10];
    });
    my (%status, %body_of, %replayed);
    for my $answer (map { @$_ } @got) {
        $status{$answer->[0]}++;
        $replayed{$answer->[1]}++;
        $body_of{$answer->[2]}++;
    }
    is_deeply(\%status, { 202 => 100 }, "all are 202");
    is_deeply(\%replayed, { true => 99, no => 1 }, "99 of them replays");
    is(scalar keys %body_of, 1, "all say the same to the byte");
    is_deeply(rows($w), \%ONE, "11.2 one of each is there");
    is(total_of($w->client, "/contacts"), 1, "and counted");
};

subtest "11.2 many keys, one person, at once: one contact, no deadlock"
        => sub {
    my $w = with_templates();
    my @got = in_processes(8, sub {
        my ($n) = @_;
        my $own = $w->client;
        return [map { my $r = $own->post($START, {
            template_id => $w->{template}, idempotency_key => "k$n-" . $_ % 3,
            contact => { $n % 2 ? (emails => ["one\@x.org"],
                phone_numbers => ["+491234567"]) : (phone_numbers => ["+491234567"],
                emails => ["one\@x.org"]), tags => ["n$n"],
                notes => "of $n" } });
            $r->status . ($r->header("Idempotent-Replayed") ? "r" : "") }
            1 .. 6];
    });
    is_deeply(\@got, [([("202") x 3, ("202r") x 3]) x 8], "all answered");
    is_deeply(rows($w), { contact => 1, sequence => 24, enrollment => 24,
        job => 24 }, "one contact, a sequence for each key");
    my $whole = $w->client->get("/api/v1/contacts")->data->[0];
    is_deeply([sort @{$whole->{tags} || []}], [map { "n$_" } 1 .. 8],
        "11.5 no tag is lost");
    my ($first, @notes) = split /\n\n/, $whole->{notes} // "";
    like($first, qr/^of [1-8]\z/, "11.5 the new contact's note as it was sent");
    is(scalar(grep { /^\[\d{4}-\d\d-\d\d\] of [1-8]\z/ } @notes), 23,
        "11.5 the others with the day, none lost") or diag(@notes);
    my %of;
    $of{$_}++ for map { /of (\d)/ } $first, @notes;
    is_deeply(\%of, { map { $_ => 3 } 1 .. 8 }, "each start's note once");
};

subtest "starts beside upserts of the same people: no deadlock" => sub {
    my $w = with_templates();
    my @people = map { "p$_\@x.org" } 1 .. 15;
    my @got = in_processes(6, sub {
        my ($n) = @_;
        my $own = $w->client;
        my %count;
        for my $i (1 .. 4) {
            my @mine = $n % 2 ? @people : reverse @people;
            if ($n <= 3) {
                $count{$own->post("/api/v1/contacts/upsert",
                    { bot_id => $w->agent, contacts => [map { {
                        emails => [$_] } } @mine] })->status}++;
                next;
            }
            $count{$own->post($START, { template_id => $w->{template},
                contact => { emails => [$_] } })->status}++ for @mine;
        }
        return \%count;
    });
    is_deeply(\@got, [({ 200 => 4 }) x 3, ({ 202 => 60 }) x 3], "all done");
    is(total_of($w->client, "/contacts"), 15, "each person once");
};

subtest "spec Sequence enrollment: every field, every step" => sub {
    my $w = with_templates();
    my $c = $w->client;
    my $contact = $w->contact(emails => ["s\@x.org"])->{id};
    my ($id, $sequence) = enroll($w, $w->{template}, $contact,
        created_at => "2026-01-01T00:00:00.001Z",
        updated_at => "2026-01-01T00:00:00.002Z");
    my $path = "/api/v1/sequences/enrollments/$id";
    my $whole = enrollment_of(id => $id, sequence_id => $sequence,
        contact_id => $contact, created_at => "2026-01-01T00:00:00.001Z",
        updated_at => "2026-01-01T00:00:00.002Z", sequence => {
            id => $sequence, name => "Sequence", status => "active",
            bot_id => $w->agent, template_id => $w->{template} });
    record_is($c->get($path), $whole, "before there are steps");
    my %at = (scheduled_for => "2026-01-02T00:00:00.000Z");
    my %email = (%at, status => "sent", to_identifier => "s\@x.org",
        sent_at => "2026-01-02T00:00:01.500Z", email_subject => "Hi \"s\"",
        email_body => "one\ntwo \x{1F600}");
    my %voice = (%at, to_identifier => "+491", voice_objective => "o",
        voice_script => "s");
    my %sms = (%at, to_identifier => "+491", sms_body => "b");
    # written in another order than theirs
    my $third = add_step($w, $id, 3, "sms", %sms);
    my $first = add_step($w, $id, 1, "email", %email);
    my $second = add_step($w, $id, 2, "voice", %voice);
    $whole->{steps} = [
        step_of("email", id => $first, sort_order => 1, %email),
        step_of("voice", id => $second, sort_order => 2, %voice),
        step_of("sms", id => $third, sort_order => 3, %sms)];
    record_is($c->get($path), $whole,
        "steps in their order, each with the members of its channel");
    for my $order (4 .. 6) {
        my $channel = (qw(email voice sms))[$order - 4];
        my $bare = add_step($w, $id, $order, $channel);
        push @{$whole->{steps}}, step_of($channel, id => $bare,
            sort_order => $order);
    }
    record_is($c->get($path), $whole, "9.3 nulls where nothing is set");
    for my $status (qw(sending sent skipped failed cancelled scheduled)) {
        change($w, "enrollment_step", $whole->{steps}[5]{id},
            status => $status);
        $whole->{steps}[5]{status} = $status;
        record_is($c->get($path), $whole, "11.8 step status $status");
    }
    change($w, "enrollment", $id, status => "approved",
        approved_at => "2026-01-03T00:00:00.123Z");
    record_is($c->get($path), { %$whole, status => "approved",
        approved_at => "2026-01-03T00:00:00.123Z",
        updated_at => $TIME }, "approved");
    is($c->head($path)->status, 200, "5.1 HEAD");
    error_is($c->request($_, $path, body => "{}"), 405,
        "method_not_allowed", "5.1 $_") for qw(POST PATCH DELETE);
    error_is($c->get("/api/v1/sequences/enrollments/$_"), 404, "not_found",
        "none: $_") for uuid(), "x", $sequence, $contact, "start";
    error_is($c->get($START), 405, "method_not_allowed",
        "5.2 start is no id");
};

subtest "11.7, 11.9 every transition, and the sequence's status" => sub {
    my $w = with_templates();
    my $c = $w->client;
    my @states = qw(generating pending_approval approved running
        stopped_reply stopped_unsubscribed stopped_user completed failed);
    my @stops = qw(stopped_reply stopped_user stopped_unsubscribed failed);
    my %allowed = (generating => [qw(pending_approval approved), @stops],
        pending_approval => ["approved", @stops],
        approved => ["running", "completed", @stops],
        running => ["completed", @stops]);
    my %way = (running => ["approved"], completed => ["approved"]);
    # all in one go: each enrollment walks to FROM, then tries to go to TO
    my ($statements, @tries) = ("");
    for my $from (@states) {
        for my $to (grep { $_ ne $from } @states) {
            my ($sequence, $id) = (uuid(), uuid());
            my $set = sub { "UPDATE crmapi.enrollment SET status = '$_[0]'"
                . ($_[0] eq "failed" ? ", generation_error = 'e'" : "")
                . " WHERE workspace_id = '" . $w->id . "' AND id = '$id';\n" };
            $statements .= "INSERT INTO crmapi.sequence (workspace_id, id,"
                . " name, bot_id, template_id) VALUES ('" . $w->id
                . "', '$sequence', 'S', '" . $w->agent
                . "', '$w->{template}');\nINSERT INTO crmapi.enrollment"
                . " (workspace_id, id, sequence_id, contact_id,"
                . " contact_action) VALUES ('" . $w->id . "', '$id',"
                . " '$sequence', '" . uuid() . "', 'created');\n"
                . join("", map { $set->($_) } grep { $_ ne "generating" }
                    @{$way{$from} || []}, $from)
                . "DO \$\$ BEGIN " . $set->($to) . "EXCEPTION WHEN"
                . " check_violation THEN NULL; END \$\$;\n";
            push @tries, [$from, $to, $id];
        }
    }
    sql($database, $statements);
    for my $try (@tries) {
        my ($from, $to, $id) = @$try;
        my $ok = grep { $_ eq $to } @{$allowed{$from} || []};
        my $r = $c->get("/api/v1/sequences/enrollments/$id")->data;
        my $state = $ok ? $to : $from;
        is_deeply([$r->{status}, $r->{sequence}{status}], [$state,
            $state =~ /^(completed|failed)$/ ? $1
                : $state =~ /^stopped/ ? "stopped" : "active"],
            "11.7 $from to $to: " . ($ok ? "allowed" : "refused"));
    }
    my $made = eval { insert($w, "enrollment", sequence_id => uuid(),
        contact_id => uuid(), contact_action => "created") };
    like($made // $@, qr/foreign key/,
        "no enrollment without a sequence of the workspace");
};

subtest "3.3 plans and scopes" => sub {
    my $w = with_templates();
    my $id = started(start($w), "started")->{status_url};
    my $reader = $w->client->with_key($w->make_key("read"));
    is($reader->get($id)->status, 200, "read reads");
    error_is($reader->post($START, {}), 403, "forbidden",
        "spec: 403 without write, before the body");
    $w->ctl("workspace", "set", $w->id, "--plan", "standard");
    error_is($w->client->get($id), 403, "forbidden",
        "a plan without sequences: not even reads");
    error_is(start($w), 403, "forbidden", "nor starts");
    is($w->client->get("/api/v1/contacts")->status, 200, "the rest works");
    $w->ctl("workspace", "set", $w->id, "--plan", "enterprise");
    is($w->client->get($id)->status, 200, "a plan with them again");
};

subtest "11.1 all or nothing: the database fails on the last row" => sub {
    my $own = database();
    my $failing = httpd(database => $own);
    my $w = workspace($failing);
    my $template = $w->template;
    sql($own, <<'END');
CREATE FUNCTION crmapi.test_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(pg_backend_pid());
    RETURN NEW;
END $$ SECURITY DEFINER;
CREATE TRIGGER zz_test BEFORE INSERT ON crmapi.job FOR EACH ROW
    EXECUTE FUNCTION crmapi.test_end();
END
    $failing->expect_log(qr/CRM2001: database: 57P01 / => 1);
    my %body = (template_id => $template, idempotency_key => "k",
        contact => { emails => ["a\@x.org"] });
    my $r = $w->client->post($START, \%body);
    error_is($r, 503, "service_unavailable", "a 503");
    is_deeply(rows($w), \%NONE, "nothing is there");
    sql($own, "DROP TRIGGER zz_test ON crmapi.job");
    $r = $w->client->post($START, \%body);
    is($r->status, 202, "the same again is the first");
    is($r->header("Idempotent-Replayed"), undef, "11.2 no replay");
    is_deeply(rows($w), \%ONE, "one of each");
    $failing->stop;
};

$httpd->stop;
done_testing;
