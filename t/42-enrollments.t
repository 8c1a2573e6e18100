# SPDX-License-Identifier: Apache-2.0
# 42-enrollments.t: an enrollment's life with the worker (specification: States
# and transitions; contract 11)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Provider;
use CrmTest::Session;
use IO::Select;
use IO::Socket::INET;
use MIME::QuotedPrint qw(decode_qp);
use POSIX qw(strftime);

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $worker = worker(database => $database, no_start => 1);

my @STEPS = (
    { channel => "email", email_subject => "Hello {{first_name|there}}",
        email_body => "Dear {{first_name|friend}},\n\nwelcome.\n" },
    { channel => "sms", delay => "1d", sms_body => "Any questions?" },
    { channel => "voice", delay => "36h", voice_objective => "Offer a visit",
        voice_script => "Hello, this is {{agent.name}}." });

# A workspace with a template; MEMBERS are the template's.
sub with_template {
    my (%members) = @_;
    my $w = workspace($httpd);
    $w->{template} = $w->template(\@STEPS, name => "Welcome",
        allowed_channels => [qw(email sms voice)], stop_on_reply => true,
        %members);
    return $w;
}

# The same with columns of the template that no import takes.
sub with_wrong_template {
    my (%columns) = @_;
    my $w = with_template();
    change($w, "sequence_template", $w->{template}, map { $_ =>
        JSON::PP::encode_json($columns{$_}) } keys %columns);
    return $w;
}

# Start a sequence in W for a contact of its own; the enrollment's id.
my $people = 0;
sub start {
    my ($w, %members) = @_;
    my $n = ++$people;
    return $w->start_for({ emails => ["p$n\@x.org"], first_name => "Pat",
        phone_numbers => [sprintf "+49301%06d", $n] }, %members);
}

# The time DAYS from now, as --now wants it.
sub days {
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time + 86400 * $_[0]));
}

# The messages to ADDRESS that are in the outbox.
sub mails_to {
    my ($address) = @_;
    return grep { $_->[1] =~ /^To:.*\Q$address\E/m } $worker->mails;
}

subtest "generating, approved, running, completed" => sub {
    my $w = with_template();
    my $id = start($w);
    my $e = $w->enrollment($id);
    is($e->{status}, "generating", "before the worker has seen it");
    is_deeply($e->{steps}, [], "it has no steps");
    $worker->once;
    $e = $w->enrollment($id);
    is($e->{status}, "approved", "generated, approved, the first step sent");
    is(states_of($e), "email sent, sms scheduled, voice scheduled",
        "the steps");
    like($_->{id}, $ID, "9.1 with ids of version 7") for @{$e->{steps}};
    ok($e->{approved_at}, "approved_at is set");
    is($e->{sequence}{status}, "active", "11.9 the sequence is active");
    my ($email, $sms, $voice) = @{$e->{steps}};
    is($email->{email_subject}, "Hello Pat", "merge fields are filled");
    like($email->{email_body}, qr/^Dear Pat,\n/, "in the body, too");
    like($email->{to_identifier}, qr/^p\d+\@x\.org$/, "to whom");
    like($sms->{to_identifier}, qr/^\+49301/, "to which number");
    is($voice->{voice_objective}, "Offer a visit", "what a call is for");
    is(seconds_between($email->{sent_at}, $sms->{scheduled_for}), 86400,
        "the second is due a day after the first was sent");
    my ($mail) = mails_to($email->{to_identifier});
    ok($mail, "the mail is in the outbox");
    like($mail->[1], qr/^Subject: Hello Pat\r?$/m, "with its subject");
    like($mail->[1], qr/welcome/, "and what it says");

    $worker->once(days(0.9));
    is(states_of($w->enrollment($id)), states_of($e),
        "nothing is sent too early");
    $worker->once(days(1.01));
    $e = $w->enrollment($id);
    is($e->{status}, "running", "11.7 the second step: running");
    is(states_of($e), "email sent, sms sent, voice scheduled", "the steps");
    is(scalar mails_to($sms->{to_identifier}), 1, "one message");
    $worker->once(days(2.6));
    $e = $w->enrollment($id);
    is($e->{status}, "completed", "the last step: completed");
    is($e->{sequence}{status}, "completed", "11.9 and the sequence");
    is(states_of($e), "email sent, sms sent, voice sent", "all sent");
    is(scalar mails_to($sms->{to_identifier}), 2, "the call was made");
    $worker->once(days(100));
    is(scalar mails_to($sms->{to_identifier}), 2, "once");
    error_is($w->client->post("/api/v1/sequences/enrollments/$id/stop"), 409,
        "conflict", "11.12 what has ended cannot be stopped");
};

# What the enrollment ID of W waits for, and until when.
sub waiting {
    my ($w, $id) = @_;
    my $r = $w->client->get("/api/v1/sequences/enrollments/$id?include=waiting");
    return map { $_ // "" } @{$r->data->{waiting}}{qw(for until)};
}

subtest "what it waits for (docs/sequences.md)" => sub {
    my $w = with_template();
    my $id = start($w, auto_approve => false);
    ok(!exists $w->enrollment($id)->{waiting}, "is shown to who asks");
    is_deeply([waiting($w, $id)], ["worker", ""], "generation: a worker");
    $worker->once;
    is_deeply([waiting($w, $id)], ["approval", ""], "then approval");
    $w->ctl("workspace", "hold", $w->id, "--reason", "r");
    is_deeply([waiting($w, $id)], ["approval", ""], "also while it is held");
    crmapictl_ok($database, qw(enrollment approve), $id);
    is_deeply([waiting($w, $id)], ["release", ""], "what is due: release");
    $w->ctl("workspace", "release", $w->id);
    is_deeply([waiting($w, $id)], ["worker", ""], "and then a worker");
    $worker->once;
    my ($for, $until) = waiting($w, $id);
    is($for, "time", "the next step: its time");
    is($until, $w->enrollment($id)->{steps}[1]{scheduled_for}, "which is told");
    sql($database, "UPDATE crmapi.job SET last_error = 'x' WHERE workspace_id = '"
        . $w->id . "' AND state = 'ready'");
    is_deeply([waiting($w, $id)], ["retry", $until], "one that has failed: a retry");
    crmapictl_ok($database, "hold", "--all", "--reason", "r");
    is_deeply([waiting($w, $id)], ["release", $until], "the database is held");
    crmapictl_ok($database, "release");
    status_is($w->client->post("/api/v1/sequences/enrollments/$id/stop"), 200, "stop");
    is_deeply([waiting($w, $id)], ["", ""], "what has ended waits for nothing");
    error_is($w->client->get("/api/v1/sequences/enrollments/$id?include=x"), 422,
        "validation_error", "another name");
};

# Whole seconds between two times of the API, to the nearest.
sub seconds_between {
    my ($first, $second) = map { scalar sql($database,
        "SELECT extract(epoch FROM '$_'::timestamptz)") } @_;
    return sprintf "%.0f", $second - $first;
}

subtest "pending_approval, and who is asked" => sub {
    my $w = with_template();
    crmapictl_ok($database, qw(admin add --workspace), $w->id, "--email",
        "boss$$\@x.org", "--name", "Bo Boss");
    crmapictl_ok($database, qw(admin add --workspace), $w->id, "--email",
        "deputy$$\@x.org");
    my $id = start($w, auto_approve => false, contact => {
        emails => ["long\@x.org"], phone_numbers => ["+49302000001"],
        first_name => '"' . "n" x 90 });
    $worker->once;
    my $e = $w->enrollment($id);
    is($e->{status}, "pending_approval", "it waits");
    is($e->{approved_at}, undef, "approved_at is null");
    is(states_of($e), "email scheduled, sms scheduled, voice scheduled",
        "its steps are there");
    for my $who ("boss", "deputy") {
        my @mails = mails_to("$who$$\@x.org");
        is(scalar @mails, 1, "$who is asked once");
        like($mails[0][1], qr/Auto-Submitted: auto-generated/i,
            "by a mail that says it is automatic");
        like($mails[0][1], qr/crmapictl\s+enrollment\s+approve/,
            "without public_url it says how by hand");
        like(decode_qp($mails[0][1] =~ s/\r//gr), qr/^> 'n{79}\.\.\.$/m,
            "80 characters of the contact's name, without quotes");
    }
    $worker->once(days(20));
    is($w->enrollment($id)->{status}, "pending_approval", "for ever");
    is(scalar mails_to($e->{steps}[0]{to_identifier}), 0, "nothing is sent");

    my $path = "/api/v1/sequences/enrollments/$id";
    error_is($w->client(key => $w->make_key("read"))
        ->post("$path/approve"), 403,
        "forbidden", "11.12 approving needs the scope write");
    my $stranger = workspace($httpd)->client;
    error_is($stranger->post("$path/$_"), 404, "not_found",
        "another workspace's key: $_") for qw(approve stop);
    my $r = $w->client->post("$path/approve");
    status_is($r, 200, "11.12 approve");
    is($r->data->{status}, "approved", "answers with the enrollment");
    ok($r->data->{approved_at}, "and when it was");
    error_is($w->client->post("$path/approve"), 409, "conflict",
        "11.12 twice: 409");
    $worker->once;
    is(states_of($w->enrollment($id)),
        "email sent, sms scheduled, voice scheduled",
        "then the first step is sent");

    my $other = start($w, auto_approve => false);
    $worker->once;
    is(crmapictl_ok($database, qw(enrollment approve), $other), "approved",
        "crmapictl enrollment approve");
    my ($code, $out, $err) = crmapictl($database, qw(enrollment approve),
        $other);
    is($code, 1, "twice is refused");
    like($err, qr/approved cannot be approved/, "with the reason");
    $other = start($w, auto_approve => false);
    $worker->once;
    is(crmapictl_ok($database, qw(enrollment reject), $other), "rejected",
        "crmapictl enrollment reject");
    $e = $w->enrollment($other);
    is($e->{status}, "stopped_user", "11.7 rejected: stopped_user");
    is($e->{stop_reason}, "rejected", "and why");
    is($e->{sequence}{status}, "stopped", "11.9 the sequence is stopped");
    is(states_of($e), "email cancelled, sms cancelled, voice cancelled",
        "its steps are cancelled");
    ($code, $out, $err) = crmapictl($database, qw(enrollment reject), $id);
    is($code, 1, "one that was approved cannot be rejected");
    like($err, qr/approved cannot be rejected/, "with the reason");
    is($w->enrollment($id)->{status}, "approved", "and stays as it was");
    like(crmapictl_ok($database, qw(enrollment list --workspace), $w->id),
        qr/^\Q$id\E\tapproved\tWelcome/m, "enrollment list shows them");
};

subtest "11.12 stop, in every state" => sub {
    my $w = with_template();
    my %at = (generating => sub {}, pending_approval => sub { $worker->once },
        approved => sub { $worker->once },
        running => sub { $worker->once; $worker->once(days(1.1)) });
    my %left = (generating => "", pending_approval => "email cancelled,"
        . " sms cancelled, voice cancelled", approved => "email sent,"
        . " sms cancelled, voice cancelled", running => "email sent,"
        . " sms sent, voice cancelled");
    for my $state (qw(generating pending_approval approved running)) {
        my $id = start($w, auto_approve => $state eq "pending_approval"
            ? false : true);
        $at{$state}->();
        my $before = $w->enrollment($id);
        is($before->{status}, $state, "$state");
        my $r = $w->client->post("/api/v1/sequences/enrollments/$id/stop");
        status_is($r, 200, "is stopped");
        is($r->data->{status}, "stopped_user", "by a user");
        is(states_of($r->data), $left{$state}, "no step is left");
        $worker->once(days(30));
        is(states_of($w->enrollment($id)), states_of($r->data),
            "and nothing is sent any more");
        error_is($w->client->post("/api/v1/sequences/enrollments/$id/$_"),
            409, "conflict", "then $_ is a conflict") for qw(stop approve);
    }
    error_is($w->client->post("/api/v1/sequences/enrollments/" . uuid()
        . "/stop"), 404, "not_found", "one that is not there");
    error_is($w->client->post("/api/v1/sequences/enrollments/x/stop"), 404,
        "not_found", "no id");
};

subtest "a reply, a suppression, a contact that goes" => sub {
    my $w = with_template();
    my @ids = map { start($w) } 1 .. 4;
    $worker->once;
    my @e = map { $w->enrollment($_) } @ids;
    is(crmapictl_ok($database, qw(reply --workspace), $w->id, "--contact",
        $e[0]{contact_id}), "stopped\t1", "crmapictl reply");
    my $now = $w->enrollment($ids[0]);
    is($now->{status}, "stopped_reply", "a reply: stopped_reply");
    is(states_of($now), "email sent, sms cancelled, voice cancelled",
        "at once");

    is(crmapictl_ok($database, qw(suppress add --workspace), $w->id,
        "--email", uc $e[1]{steps}[0]{to_identifier}, "--reason", "asked to"),
        "stopped\t1", "crmapictl suppress add, in capitals");
    $now = $w->enrollment($ids[1]);
    is($now->{status}, "stopped_unsubscribed", "stopped_unsubscribed");
    is($now->{stop_reason}, "asked to", "with the reason");

    $w->client->patch("/api/v1/contacts/$e[2]{contact_id}", {
        emails => [{ email => $e[2]{steps}[0]{to_identifier},
            is_primary => true }, { email => "second$$\@x.org" }] });
    is(crmapictl_ok($database, qw(suppress add --workspace), $w->id,
        "--email", "second$$\@x.org"), "stopped\t1",
        "any address of the contact's");
    is($w->enrollment($ids[2])->{status}, "stopped_unsubscribed", "stops it");

    status_is($w->client->delete("/api/v1/contacts/$e[3]{contact_id}"), 204,
        "a contact is deleted");
    $now = $w->enrollment($ids[3]);
    is($now->{status}, "stopped_user", "9.6 its enrollment stops");
    is($now->{stop_reason}, "contact_deleted", "because of that");
    $worker->once(days(30));
    is(states_of($w->enrollment($_)),
        "email sent, sms cancelled, voice cancelled",
        "nothing more is sent") for @ids;

    like(crmapictl_ok($database, qw(suppress list --workspace), $w->id),
        qr/second$$\@x\.org\t-\tsuppressed/, "suppress list");
    is(crmapictl_ok($database, qw(suppress remove --workspace), $w->id,
        "--email", "second$$\@x.org"), "lifted\t1", "suppress remove");
    my ($code, $out, $err) = crmapictl($database, qw(suppress remove
        --workspace), $w->id, "--email", "second$$\@x.org");
    is($code, 1, "what is not suppressed cannot be lifted");
    like($err, qr/not suppressed/, "with the reason");

    my $deaf = with_template(stop_on_reply => false);
    my $id = start($deaf);
    $worker->once;
    is(crmapictl_ok($database, qw(reply --workspace), $deaf->id, "--contact",
        $deaf->enrollment($id)->{contact_id}), "stopped\t0",
        "a template without stop_on_reply: a reply stops nothing");
    is($deaf->enrollment($id)->{status}, "approved", "it goes on");
    ($code, $out, $err) = crmapictl($database, qw(reply --workspace),
        $deaf->id, "--contact", $e[0]{contact_id});
    is($code, 1, "another workspace's contact is none of it");
    like($err, qr/no contact/, "with the reason");
};

subtest "20.5 a contact is merged while its steps are generated" => sub {
    my $w = with_template();
    my $id = start($w);
    my $from = $w->enrollment($id)->{contact_id};
    my $into = $w->contact(first_name => "Kim", emails => ["kim\@x.org"])->{id};
    # the worker has read the enrollment, and waits to read the contact
    my $let_go = holding($database,
        "LOCK TABLE crmapi.activity IN ACCESS EXCLUSIVE MODE");
    my $running = CrmTest::Child->start(sub { $worker->once; 1 });
    wait_blocked($database, 1);
    $let_go->("SELECT crmapi.contact_merge('" . $w->id
        . "', '$into', '$from');\nCOMMIT");
    $running->result;
    my $e = $w->enrollment($id);
    is($e->{contact_id}, $into, "the enrollment moves");
    is($e->{status}, "approved", "and goes on");
    is($e->{steps}[0]{email_subject}, "Hello Kim", "with who is there now");
};

subtest "11.6 channels: what the template allows and the contact has" => sub {
    my $w = with_template();
    crmapictl_ok($database, qw(suppress add --workspace), $w->id, @$_)
        for ["--email", "never\@x.org"], ["--phone", "+49301999999"];
    my @cases = (
        ["both addresses", { emails => ["a1\@x.org"],
            phone_numbers => ["+49302000001"] }, "email sent, sms scheduled,"
            . " voice scheduled"],
        ["an e-mail only", { emails => ["a2\@x.org"] }, "email sent"],
        ["a phone only", { phone_numbers => ["+49302000003"] },
            "sms sent, voice scheduled"],
        ["a suppressed e-mail and a phone", { emails => ["Never\@X.org"],
            phone_numbers => ["+49302000004"] }, "sms sent, voice scheduled"],
        ["a suppressed phone and an e-mail", { emails => ["a5\@x.org"],
            phone_numbers => ["+49301999999"] }, "email sent"]);
    for my $case (@cases) {
        my ($name, $contact, $expected) = @$case;
        my $id = start($w, contact => $contact);
        $worker->once;
        is(states_of($w->enrollment($id)), $expected, $name);
    }
    my $other = with_template();
    crmapictl_ok($database, qw(suppress add --workspace), $other->id, @$_)
        for ["--email", "never\@x.org"], ["--phone", "+49301999999"];
    my $id = start($other, contact => { emails => ["never\@x.org"],
        phone_numbers => ["+49301999999"] });
    $worker->once;
    my $e = $other->enrollment($id);
    is($e->{status}, "failed", "both suppressed: failed");
    is($e->{generation_error}, "no_usable_channels", "no_usable_channels");
    is($e->{sequence}{status}, "failed", "11.9 and the sequence");
    my $mute = with_template(allowed_channels => ["sms"]);
    $id = start($mute, contact => { emails => ["a9\@x.org"] });
    $worker->once;
    is($mute->enrollment($id)->{generation_error}, "no_usable_channels",
        "nothing in common: the same");
    $id = start($w);
    $worker->once;
    sql($database, "INSERT INTO crmapi.suppression (id, workspace_id,"
        . " phone_number) SELECT gen_random_uuid(), workspace_id,"
        . " to_identifier FROM crmapi.enrollment_step WHERE enrollment_id ="
        . " '$id' AND channel = 'sms'");
    $worker->once(days(1.1));
    is($w->enrollment($id)->{status}, "stopped_unsubscribed",
        "11.10 an address that was suppressed behind our back is seen before"
        . " the send");
};

subtest "what a template asks for that is not there" => sub {
    my @cases = (
        [{ email_body => "{{frist_name}}" }, qr/frist_name/],
        [{ email_body => "{{custom.size}}" }, qr/custom\.size/],
        [{ email_body => "{{last_name}}" }, qr/last_name/],
        [{ email_body => undef }, qr/email_body/],
        [{ colour => "red" }, qr/colour/],
        [{ delay => "soon" }, qr/delay/]);
    for my $case (@cases) {
        my ($members, $reason) = @$case;
        my $w = with_wrong_template(steps => [{ channel => "email",
            email_subject => "s", email_body => "b", %$members }]);
        my $id = start($w);
        $worker->once;
        my $e = $w->enrollment($id);
        is($e->{status}, "failed", "failed");
        like($e->{generation_error}, qr/steps\[0\]/, "names the step");
        like($e->{generation_error}, $reason, "and what is wrong");
        is(scalar mails_to("p$people\@x.org"), 0, "no blank mail");
    }
    my $w = with_wrong_template(pacing => { window => { from => "9" } });
    my $id = start($w);
    $worker->once;
    like($w->enrollment($id)->{generation_error}, qr/pacing\.window/,
        "a wrong pacing is told, too");
    $w = with_wrong_template(pacing => { time_zone => "Mars/Phobos" });
    $id = start($w);
    $worker->once;
    like($w->enrollment($id)->{generation_error}, qr/time_zone/,
        "a time zone that is none");
};

subtest "pacing: windows and time zones" => sub {
    my $w = with_template(pacing => { days_between_steps => 1,
        window => { from => "09:00", to => "17:00",
            days => [qw(mon tue wed thu fri)] },
        time_zone => "America/New_York" },
        steps => [map { +{ channel => "sms", sms_body => "n$_" } } 1 .. 3]);
    my $id = start($w);
    # a Friday in winter, 16:30 in New York
    $worker->once("2026-12-04T21:30:00Z");
    my @step = @{$w->enrollment($id)->{steps}};
    is($step[0]{status}, "sent", "within the window: at once");
    is($step[1]{scheduled_for}, "2026-12-07T14:00:00.000Z",
        "a day later is Saturday: Monday at nine");
    is($step[2]{scheduled_for}, "2026-12-08T14:00:00.000Z", "and so on");
    $id = start($w);
    $worker->once("2026-12-04T22:30:00Z");
    @step = @{$w->enrollment($id)->{steps}};
    is($step[0]{status}, "scheduled", "after it has closed: not yet");
    is($step[0]{scheduled_for}, "2026-12-07T14:00:00.000Z", "but then");
    # the last millisecond of the window, and the first after it
    for my $case (["21:59:59.999", "2026-12-04T21:59:59.999Z", "sent"],
            ["22:00:00", "2026-12-07T14:00:00.000Z", "scheduled"]) {
        my ($moment, $due, $status) = @$case;
        $id = start($w);
        $worker->once("2026-12-04T${moment}Z");
        my ($first) = @{$w->enrollment($id)->{steps}};
        is("$first->{status} $first->{scheduled_for}", "$status $due",
            "at $moment");
    }
    for my $case (["04T13:59:59.999", "04T14:00:00"], ["04T14:00:00",
            "04T14:00:00"], ["04T21:59:59.999", "04T21:59:59.999"],
            ["04T22:00:00", "07T14:00:00"], ["06T23:00:00", "07T14:00:00"]) {
        my ($moment, $fits) = map { "2026-12-${_}Z" } @$case;
        is(sql($database, q{SELECT crmapi.pacing_fit('{"time_zone":
            "America/New_York", "from": "09:00", "to": "17:00", "days":
            [1, 2, 3, 4, 5]}', '} . "$moment') = '$fits'"), "t",
            "$moment: $fits");
    }
    # the clocks change on 2026-03-08 in New York
    my $spring = sql($database, q{SELECT crmapi.pacing_fit('{"time_zone":
        "America/New_York", "from": "09:00", "to": "17:00", "days": [7]}',
        '2026-03-02T12:00:00Z') AT TIME ZONE 'UTC'});
    is($spring, "2026-03-08 13:00:00", "summer time begins: nine is nine");
    # what the clock shows is within the window, also where it jumps over a bound
    # or shows it twice; half an hour on Lord Howe Island
    for (["Europe/Berlin", "01:00", "02:30", "2026-03-29T00:30:00", "same"],
            ["Europe/Berlin", "01:00", "02:30", "2026-03-29T01:10:00",
                "2026-03-29T23:00:00"],
            ["Europe/Berlin", "01:00", "02:30", "2026-10-25T00:15:00", "same"],
            ["Europe/Berlin", "01:00", "02:30", "2026-10-25T00:45:00",
                "2026-10-25T01:00:00"],
            ["Europe/Berlin", "01:00", "02:30", "2026-10-25T01:30:00",
                "2026-10-26T00:00:00"],
            ["Asia/Beirut", "22:15", "23:15", "2026-10-24T20:27:00",
                "2026-10-24T21:00:00"],
            ["Europe/Berlin", "02:30", "03:30", "2026-03-28T12:00:00",
                "2026-03-29T01:00:00"],
            ["Europe/Berlin", "02:30", "17:00", "2026-03-29T01:05:00", "same"],
            ["Europe/Berlin", "02:30", "17:00", "2026-10-24T20:00:00",
                "2026-10-25T00:30:00"],
            ["Europe/Berlin", "02:30", "17:00", "2026-10-25T00:35:00", "same"],
            ["Europe/Berlin", "02:30", "17:00", "2026-10-25T01:10:00",
                "2026-10-25T01:30:00"],
            ["Australia/Lord_Howe", "01:45", "02:15", "2026-04-04T06:00:00",
                "2026-04-04T14:45:00"],
            ["Australia/Lord_Howe", "01:45", "02:15", "2026-10-03T15:35:00",
                "2026-10-04T14:45:00"],
            ["Africa/Cairo", "00:00", "24:00", "2026-10-29T21:30:00", "same"],
            ["Asia/Kathmandu", "09:00", "17:00", "2026-10-03T02:00:00",
                "2026-10-03T03:15:00"]) {
        my ($zone, $from, $to, $moment, $fits) = @$_;
        $fits = $moment if $fits eq "same";
        is(sql($database, qq{SELECT crmapi.pacing_fit('{"time_zone": "$zone",
            "from": "$from", "to": "$to", "days": [1, 2, 3, 4, 5, 6, 7]}',
            '${moment}Z') = '${fits}Z'}), "t",
            "$from to $to in $zone, at $moment: $fits");
    }
    is(sql($database, q{SELECT crmapi.pacing_fit('{"time_zone": "Europe/Berlin",
        "from": "02:00", "to": "03:00", "days": [7]}', '2026-03-23T00:00Z')
        = '2026-04-05T00:00Z'}), "t", "the only hour of a week is left out");
};

subtest "a limit for each agent and day" => sub {
    my $limited = worker(database => $database, no_start => 1,
        conf => { agent_daily_limit => 3 });
    my $w = with_template(steps => [$STEPS[0]]);
    my @ids = map { start($w) } 1 .. 5;
    my $sent = sub { scalar grep { $w->enrollment($_)->{status}
        eq "completed" } @ids };
    $limited->once;
    is($sent->(), 3, "three are sent");
    $limited->once(days(0.0001));
    is($sent->(), 3, "and no more on this day");
    my ($late) = grep { $w->enrollment($_)->{status} ne "completed" } @ids;
    like($w->enrollment($late)->{steps}[0]{scheduled_for},
        qr/T00:00:00\.000Z$/, "the others wait for midnight");
    $limited->once(days(1));
    is($sent->(), 5, "of the next");
    $limited->stop;
};

subtest "11.2 100 equal starts: one enrollment, one message" => sub {
    my $w = with_template(steps => [$STEPS[0]]);
    my $live = worker(database => $database);
    my @got = in_processes(10, sub {
        return [map { start($w, idempotency_key => "once",
            contact => { emails => ["once\@x.org"] }) } 1 .. 10];
    });
    my %ids = map { $_ => 1 } map { @$_ } @got;
    is(scalar keys %ids, 1, "one enrollment");
    my ($id) = keys %ids;
    ok(wait_for(sub { $w->enrollment($id)->{status} eq "completed" }),
        "it is completed");
    is(scalar(grep { $_->[1] =~ /^To:.*once\@x\.org/m } $live->mails), 1,
        "by one message");
    $live->stop;
};

subtest "upkeep" => sub {
    my $w = workspace($httpd);
    my $c = $w->conversation("chat", active => true,
        last_active_at => "2026-01-01T00:00:00Z",
        created_at => "2026-01-01T00:00:00Z");
    my $upkeep = worker(database => $database, no_start => 1);
    sql($database, "DELETE FROM crmapi.upkeep");
    $upkeep->once;
    my $show = sub { $w->client->get("/api/v1/conversations/$c")
        ->data->{active} ? "active" : "inactive" };
    is($show->(), "inactive", "a silent conversation is no longer active");
    $w->client->patch("/api/v1/conversations/$c", { active => true });
    sql($database, "DELETE FROM crmapi.upkeep");
    $upkeep->once;
    is($show->(), "active", "one that was opened again stays so");
    $upkeep->once(days(1.1));
    is($show->(), "inactive", "for a day");

    sql($database, "UPDATE crmapi.counter SET n = n + 7 WHERE kind = 'contact'"
        . " AND workspace_id = '" . $w->id . "'; DELETE FROM crmapi.upkeep");
    sql($database, "INSERT INTO crmapi.counter VALUES ('" . $w->id
        . "', 'contact', '00000000-0000-0000-0000-000000000000', 99, 5)");
    $upkeep->expect_log(qr/CRM3201: the total of contact / => 1);
    $upkeep->once;
    my $told = "CRM3201: the total of contact in workspace " . $w->id;
    like($upkeep->log_text, qr/\Q$told\E/, "a total that is wrong is told");
    triggers_kept_up($database, "and mended");
    is($w->client->get("/api/v1/contacts")->json->{pagination}{total},
        count_rows($w, "contact"), "the API says the right one");

    start(with_template());
    $upkeep->once;
    my @ended = map { $_->[0] } sql($database, "SELECT id FROM crmapi.job"
        . " WHERE state IN ('done', 'cancelled')");
    my $kept = sub { scalar sql($database, "SELECT count(*) FROM crmapi.job"
        . " WHERE id IN (" . join(",", @ended) . ")") };
    $upkeep->once(days(6.9));
    cmp_ok(scalar @ended, ">", 0, "jobs have ended");
    is($kept->(), scalar @ended, "they are kept");
    # the sequence that just began goes on, perhaps without a way to send
    $upkeep->may_log(qr/CRM3102|CRM3122/);
    $upkeep->once(days(9));
    is($kept->(), 0, "for a week");
};

subtest "a job that fails each time is given up, and so is its enrollment" => sub {
    my $w = with_template();
    # Attempts that were made of the jobs of the enrollment ID.
    my $tried = sub { my ($id, $n) = @_; sql($database, "UPDATE crmapi.job SET"
        . " attempts = $n, run_at = now() WHERE state = 'ready' AND"
        . " payload ->> 'enrollment_id' = '$id'") };
    my $end = sub { my $e = $w->enrollment($_[0]); return join " ",
        $e->{status}, $e->{generation_error} // () };
    my $id = start($w);
    $tried->($id, 58);
    sql($database, "ALTER TABLE crmapi.sequence_template RENAME TO away");
    $worker->expect_log(qr/CRM3101: .*attempt 59: .*sequence_template/,
        qr/CRM3101: .*attempt 60: .*sequence_template/,
        qr/CRM3112: enrollment $id failed after too many attempts/);
    $worker->once;
    is($end->($id), "generating", "59 have failed: there is another one");
    $tried->($id, 59);
    $worker->once;
    sql($database, "ALTER TABLE crmapi.away RENAME TO sequence_template");
    is($end->($id), "failed internal_error", "60: it has failed");
    is(sql($database, "SELECT state FROM crmapi.job WHERE payload ->>"
        . " 'enrollment_id' = '$id'"), "done", "and its job has ended");

    # as a daemon leaves them that dies each time
    $id = start($w, auto_approve => false);
    $worker->once;
    crmapictl_ok($database, qw(enrollment approve), $id);
    $tried->($id, 60);
    $worker->expect_log(qr/ error: .*CRM3101: .*too many attempts: 61/,
        qr/CRM3112: enrollment $id failed .*: too many attempts/);
    $worker->once;
    my $e = $w->enrollment($id);
    is($end->($id), "failed internal_error", "a step: it is not tried again");
    is(scalar mails_to($e->{steps}[0]{to_identifier}), 0, "and nothing is sent");
    $id = start($w);
    $tried->($id, 59);
    $worker->once;
    is($end->($id), "approved", "the 60th attempt may succeed");
};

subtest "11.6 a model that does not answer is asked again, for a time" => sub {
    my $model = CrmTest::Provider->new;
    my $asks = worker(database => $database, no_start => 1, conf => {
        generator => "openai", openai_model => "m", generate_attempts => 3,
        openai_url => "http://127.0.0.1:$model->{port}/v1//" });
    my $w = with_template();
    my $plan = JSON::PP::encode_json({ steps => [{ channel => "email", delay => undef,
        email_subject => "From the model", email_body => "b", sms_body => undef,
        voice_objective => undef, voice_script => undef }] });
    my $answer = "200 " . JSON::PP::encode_json({ choices => [{ finish_reason =>
        "stop", message => { content => $plan } }] });
    # The enrollment ID and the seconds until its next attempt, after one that the
    # model answers in this WAY.
    my $attempt = sub {
        my ($id, $way) = @_;
        $model->next_answers($way);
        $asks->expect_log(qr/CRM3114: enrollment $id, attempt \d: openai: status/)
            if $way ne $answer;
        $asks->once;
        my $wait = sql($database, "WITH j AS (UPDATE crmapi.job j SET run_at = now()
            FROM crmapi.job was WHERE was.id = j.id AND j.state = 'ready' AND
            j.kind = 'generate.steps' AND j.payload ->> 'enrollment_id' = '$id'
            RETURNING extract(epoch FROM was.run_at - now())) SELECT * FROM j");
        return ($w->enrollment($id), $wait);
    };
    my $id = start($w, auto_approve => false);
    my ($e, $wait) = $attempt->($id, "later");
    is($e->{status}, "generating", "429: it is tried again");
    cmp_ok($wait, ">", 60, "not before the time of Retry-After");
    ($e, $wait) = $attempt->($id, "500");
    is($e->{status}, "generating", "500: it is tried again");
    cmp_ok($wait, "<", 60, "soon");
    ($e) = $attempt->($id, "500");
    is("$e->{status} $e->{generation_error}", "failed generator_unavailable",
        "until generate_attempts were made");
    is($model->count, 3, "no more is asked");
    like(($model->requests)[0]{line}, qr{^POST /v1/chat/completions HTTP},
        "below its URL, however that ends");
    $id = start($w, auto_approve => false);
    $attempt->($id, "500");
    ($e) = $attempt->($id, $answer);
    is($e->{steps}[0]{email_subject}, "From the model", "the next answer counts");
    is(scalar @{$e->{steps}}, 1, "and nothing else");
    # what the enrollment has become meanwhile, counts more than an answer
    sql($database, "UPDATE crmapi.job SET state = 'ready', run_at = now(),
        finished_at = NULL WHERE kind = 'generate.steps'
        AND payload ->> 'enrollment_id' = '$id'");
    $asks->once;
    is($model->count, 5, "a job that was done is not done again");
};

subtest "a start from the dump of an earlier version is generated, too" => sub {
    my $w = with_template();
    my $id = start($w, auto_approve => false);
    sql($database, "UPDATE crmapi.job SET kind = 'sequence.generate'
        WHERE kind = 'generate.steps' AND payload ->> 'enrollment_id' = '$id'");
    $worker->once;
    is($w->enrollment($id)->{status}, "pending_approval", "by the kind that it had");
};

subtest "a generator that hangs delays no step, of whomever" => sub {
    my $silent = IO::Socket::INET->new(Listen => 20, LocalAddr => "127.0.0.1");
    my $asks = worker(database => $database, no_start => 1, conf => {
        generator => "openai", openai_model => "m", openai_timeout => "60s",
        openai_url => "http://127.0.0.1:" . $silent->sockport });
    my ($w, $other) = map { with_template() } 1 .. 2;
    my $id = start($other, auto_approve => false);
    $worker->once;              # with the generator template
    start($w) for 1 .. 8;
    $asks->start;
    ok(wait_for(sub { IO::Select->new($silent)->can_read(0) }, 20), "it is asked");
    status_is($other->client->post(
        "/api/v1/sequences/enrollments/$id/approve", {}), 200);
    ok(wait_for(sub { $other->enrollment($id)->{steps}[0]{status} eq "sent" }, 20),
        "another workspace's step is sent meanwhile");
    # a warning once a minute: what is asked is told that nobody is there
    $asks->may_log(qr/CRM3114: /);
    close $silent;
    $asks->stop;
};

# The sum of the counts in the lines CODE of the log.
sub told {
    my ($code) = @_;
    my $sum = 0;
    $sum += $_ for map { /$code: (\d+) / } $worker->log_lines(qr/$code: /);
    return $sum;
}

subtest "what fails or waits for nobody is told, with counts" => sub {
    my %before = map { $_ => told($_) } qw(CRM3115 CRM3116);
    my $w = with_template();
    start($w, auto_approve => false) for 1 .. 3;
    my $mute = with_template(allowed_channels => ["sms"]);
    start($mute, contact => { emails => ["m$_\@x.org"] }) for 1 .. 2;
    my $said = $worker->once;
    is(told("CRM3115") - $before{CRM3115}, 2, "two have failed");
    is(told("CRM3116") - $before{CRM3116}, 3, "three wait, without an admin");
    cmp_ok(scalar(() = $said =~ /CRM3116: /g), "<=", 2,
        "not a line for each");
    crmapictl_ok($database, qw(admin add --email boss@x.org --workspace),
        $w->id);
    my $admin = told("CRM3116");
    start($w, auto_approve => false);
    $worker->once;
    is(told("CRM3116"), $admin, "with an admin somebody is asked");
    start($mute, contact => { emails => ["m\@x.org"] });
    my ($command) = $worker->once
        =~ /CRM3115: 1 enrollment has failed: see crmapictl (.+)$/m;
    is_deeply([map { (split /\t/)[1] } (split /\n/, crmapictl_ok($database,
        split / /, $command))[1 .. 3]], [("failed") x 3],
        "with the command that shows them");
};

done_testing;
