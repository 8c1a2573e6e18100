# SPDX-License-Identifier: Apache-2.0
# 67-erase.t: exporting and erasing a person (contract 14.4)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Process qw(spawn end_process);
use CrmTest::Receiver;
use CrmTest::Session;
use File::Find qw(find);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64 decode_base64);

# What every text about the person has.
my $TOKEN = "zq" . $$ . "zqtoken";
my $NUMBER = "77" . sprintf "%06d", $$ % 1_000_000;
my $MAIL = "$TOKEN\@x.example";
my $OTHER = "b$TOKEN\@x.example";

my $folder = tempdir("crm-erase-XXXXXX", TMPDIR => 1, CLEANUP => 1);
our $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
my $w = workspace($httpd, twin => 0);
my $c = $w->client;
my $receiver = CrmTest::Receiver->new;
my $sales = "sales-$$\@crm.example";
change($w, "agent", $w->agent, agent_email => $sales);
my $worker = worker(database => $database, no_start => 1, conf => {
    maildir => "$folder/outbox", webhook_private => "on",
    mail_domain => "crm.example" });
my $json = JSON::PP->new->canonical;

# The columns of the database, as "table.column", in which a token is.
sub found {
    my @columns = sql($database, "SELECT c.relname, a.attname,
            coalesce(b.typname, t.typname) = 'bytea'
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_type b ON b.oid = t.typbasetype
        WHERE c.relnamespace = 'crmapi'::regnamespace AND c.relkind = 'r'
          AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 2");
    my @parts = map {
        my ($table, $column, $is_bytes) = @$_;
        my $text = $is_bytes eq "t" ? "encode(t.$column, 'escape')"
            : "t.$column\::text";
        "SELECT '$table.$column' WHERE EXISTS (SELECT FROM crmapi.$table t"
            . " WHERE lower($text) ~ '$TOKEN|$NUMBER')"
    } @columns;
    return sort map { ref $_ ? $_->[0] : $_ }
        sql($database, join " UNION ALL ", @parts);
}

# The files below FOLDERS in which a token is.
sub files {
    my @found;
    find({ no_chdir => 1, wanted => sub {
        return if !-f $_;
        push @found, $_
            if lc(read_file($_)) =~ /$TOKEN|$NUMBER/;
    } }, grep { -e $_ } @_);
    return @found;
}

# Make a person of whom there is everything.
sub plant {
    my %plant = (texts => { map { $_ => "$TOKEN $_" } qw(first_name last_name
        company job_title lead_source contact_type address_line1 address_line2
        city state postal_code country notes external_id) });
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent,
        %{$plant{texts}}, linkedin_url => "https://x.example/$TOKEN",
        emails => [$MAIL, $OTHER], phone_numbers => ["+4930$NUMBER"],
        tags => ["a", $TOKEN], custom_fields => { $TOKEN => $TOKEN } },
        headers => { "Idempotency-Key" => "k1" });
    status_is($r, 201, "a contact");
    my $id = $plant{contact} = $r->data->{id};
    status_is($c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => [$MAIL] }] },
        headers => { "Idempotency-Key" => "k2" }), 200, "an upsert");
    my ($pipeline) = $w->import_objects([{ object => "pipeline",
        bot_id => $w->agent, name => "P" }]);
    my ($stage) = $w->import_objects([{ object => "pipeline_stage",
        bot_id => $w->agent, pipeline_id => $pipeline, name => "S" }]);
    $r = $c->post("/api/v1/pipeline-cards", { pipeline_stage_id => $stage,
        contact_id => $id, title => "$TOKEN deal", description => $TOKEN,
        tags => [$TOKEN] });
    status_is($r, 201, "a card");
    $plant{card} = $r->data->{id};
    my ($company) = $w->import_objects([{ object => "company",
        bot_id => $w->agent, name => "C" }]);
    $w->import_objects([map { { object => "activity", contact_id => $id,
        activity_type => "note", title => $TOKEN, description => $TOKEN,
        metadata => { a => $TOKEN }, @$_ } } [], [company_id => $company]]);
    my $key = $w->token("g");
    my $event = sub {
        my $r = $httpd->client(key => $key)->post("/crmapi/intake/v1/events",
            { bot_id => $w->agent, event_id => "e-$TOKEN-" . uuid(), @_ });
        is_deeply($r->data->{errors}, [], "an event");
        return $r->data->{accepted}[0]{conversation_id};
    };
    $plant{talk} = $event->(channel => "email",
        conversation => { external_id => "t-$TOKEN", subject => $TOKEN },
        from => { email => $MAIL, name => "N $TOKEN" },
        message => { content => "Hello $TOKEN", content_type => "text/$TOKEN",
            external_id => "<x-$TOKEN\@x>", metadata => { m => $TOKEN },
            tool_used => $TOKEN, tool_arguments => { t => $TOKEN } });
    $event->(channel => "sms", from => { phone_number => "+4930$NUMBER" },
        message => { content => "SMS $TOKEN" });
    $w->conversation("email", email => uc $OTHER, human => $TOKEN,
        internal_notes => $TOKEN, sentiment_summary => $TOKEN,
        audio_url => "https://x.example/$TOKEN", visitor_id => $TOKEN,
        assigned_to => $TOKEN);
    crmapictl_ok($database, { stdin => "From: $MAIL\nTo: $sales\n"
        . "Subject: S $TOKEN\nMessage-ID: <m-$TOKEN\@x>\nMIME-Version: 1.0\n"
        . "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
        . " text/html\n\n<p>Below <b>$TOKEN</b></p>\n--b\nContent-Type:"
        . " image/png; name=$TOKEN.png\nContent-Transfer-Encoding: base64\n\n"
        . encode_base64("PNG $TOKEN") . "--b--\n" }, "deliver");
    my ($form) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "F", custom_fields => { q => { type => "text" } } }]);
    status_is($httpd->client->request("POST",
        "/crmapi/intake/v1/forms/$form", body => "email=$OTHER&q=$TOKEN",
        headers => { "Content-Type" => "application/x-www-form-urlencoded" }),
        200, "a form");
    my $template = $w->template([{ email_subject => "{{first_name}}",
        email_body => "{{last_name}}" }, { sms_body => "{{notes}}",
        delay => "1d" }, { email_subject => "b", email_body => "{{email}}" }]);
    $plant{enrollment} = $w->start($template, auto_approve => true,
        name => "Q $TOKEN", contact => { emails => [$MAIL] })->{enrollment_id};
    $w->answer($plant{talk}, "Answer $TOKEN");
    return \%plant;
}

$w->log_on;
$w->webhook($receiver->url($_), "contact.created", "message.created",
    "contact.erased", "enrollment.updated")
    for "200/200", "500/500";
my $bystander = $w->contact(first_name => "By", emails => ["by\@x.example"])
    ->{id};
my $plant = plant();
$worker->may_log(qr/CRM3\d+/);
$worker->once for 1 .. 3;
$w->ctl("suppress", "add", "--workspace", $w->id, "--email", $OTHER,
    "--reason", "because of $TOKEN");
$w->ctl("suppress", "add", "--workspace", $w->id, "--phone", "+4930$NUMBER");
sql($database, "UPDATE crmapi.suppression SET reason = 'unsubscribed'
    WHERE workspace_id = '@{[$w->id]}' AND kind = 'phone'");
# Since when addresses are suppressed, of those in TABLE.
sub suppressed_since {
    return scalar sql($database, "SELECT string_agg(created_at::text, ' ' ORDER BY kind)
        FROM crmapi.$_[0] WHERE workspace_id = '@{[$w->id]}'");
}
my $suppressed = suppressed_since("suppression");
my @before = found();

subtest "a person is everywhere before" => sub {
    my %is = map { $_ => 1 } @before;
    ok($is{$_}, $_) for map({ "contact.$_" } sort keys %{$plant->{texts}}),
        qw(contact.emails contact.phone_numbers contact.tags
        contact.custom_fields contact.search activity.title
        activity.description activity.metadata pipeline_card.title
        pipeline_card.description pipeline_card.tags conversation.email
        conversation.phone_number conversation.human conversation.subject
        conversation.thread conversation.internal_notes conversation.search
        conversation.last_message message.content message.metadata
        message.external_id message.tool_arguments message.to_identifier
        attachment.filename attachment_piece.bytes original.bytes
        message_html.html submission.custom_field_responses sequence.name
        enrollment_step.email_subject enrollment_step.email_body
        enrollment_step.sms_body enrollment_step.to_identifier
        suppression.email suppression.phone_number suppression.reason
        event.fields event.body idempotent_answer.fields
        intake_event.event_id);
    ok(scalar files("$folder/outbox"), "and in the outbox");
};

subtest "export gives all that is kept, with attachments" => sub {
    my @lines = map { $json->decode($_) }
        split /\n/, $w->ctl("contact", "export", $plant->{contact},
        "--workspace", $w->id);
    my %of;
    push @{$of{$_->{object}}}, $_ for @lines;
    is_deeply([sort keys %of], [qw(activity attachment contact conversation
        enrollment enrollment_step message pipeline_card sequence submission
        suppression)], "of all kinds");
    is($of{contact}[0]{id}, $plant->{contact}, "the contact");
    is(scalar @{$of{activity}}, 2, "its activities");
    is(decode_base64($of{attachment}[0]{bytes}), "PNG $TOKEN",
        "the bytes of attachments");
    like(decode_base64((grep { $_->{original} } @{$of{message}})[0]{original}),
        qr/Subject: S $TOKEN/, "mails as they came");
    unlike($json->encode(\@lines), qr/by\@x\.example/, "and nobody else");
    is($w->ctl("contact", "export", "--email", uc $OTHER, "--workspace",
        $w->id), $w->ctl("contact", "export", "--phone", "0049 30 $NUMBER"
            =~ s/^00/+/r, "--workspace", $w->id),
        "the same by address and by number");
};

subtest "an export is of one moment" => sub {
    my $id = $w->contact(emails => ["moment\@x.example"])->{id};
    my $let_go = holding($database, "LOCK TABLE crmapi.attachment_piece");
    my $export = CrmTest::Child->start(sub { $w->ctl("contact", "export", $id,
        "--workspace", $w->id) });
    wait_blocked($database, 1);
    status_is($c->post("/api/v1/suppressions", { email => "moment\@x.example" }),
        201, "what comes meanwhile");
    $let_go->();
    my ($lines) = $export->result;
    like($lines, qr/"object": ?"contact"/, "the contact is there");
    unlike($lines, qr/"object": ?"suppression"/, "and not what came later");
    $w->ctl("suppress", "remove", "--workspace", $w->id, "--email",
        "moment\@x.example");
    status_is($c->request("DELETE", "/api/v1/contacts/$id"), 204, "it goes");
};

subtest "a dry run" => sub {
    my %n = map { @$_{qw(object rows)} } map { $json->decode($_) } split /\n/,
        $w->ctl("contact", "erase", "--email", $MAIL, "--workspace", $w->id,
            "--dry-run", "--json") =~ s/\}\s*,?\s*\n?\{/}\n{/gr
        =~ s/^\[|\]$//gr;
    is($n{contact}, 2, "says how much: a form made another contact of the"
        . " address");
    is_deeply([found()], \@before, "and changes nothing");
};

subtest "who is meant must be said, once" => sub {
    my $rule = qr/name one contact: by its ID, --email or --phone/;
    for my $case ([[], $rule], [[$plant->{contact}, "--email", $MAIL], $rule],
            [["--email", $MAIL, "--phone", "+4930"], $rule],
            [["--email", "unknown"], qr/--email must be an e-mail address/],
            [["--phone", "unknown"], qr/--phone must be a phone number/]) {
        my ($who, $why) = @$case;
        for my $command (qw(erase export)) {
            my ($code, undef, $err) = crmapictl($database, "contact", $command,
                @$who, "--workspace", $w->id);
            is($code, 2, "$command @$who: refused");
            like($err, $why, "which says why");
        }
    }
    for my $command (qw(erase export)) {
        my ($code, undef, $err) = crmapictl($database, "contact", $command,
            my $none = uuid(), "--workspace", $w->id);
        is($code, 1, "$command: a contact that is none");
        like($err, qr/there is no contact $none in the workspace/, "is named");
    }
    is_deeply([found()], \@before, "nothing is changed");
};

my $dump = "$folder/dump";
$w->ctl("workspace", "dump", $w->id, "--output", $dump);

subtest "erase" => sub {
    my $said = $w->ctl("contact", "erase", $plant->{contact}, "--workspace",
        $w->id);
    like($said, qr/^contact\s+2$/m, "it says what is gone");
    is_deeply([found()], [], "no token is in the database");
    $worker->once("2035-01-01T00:00:00Z");
    is_deeply([files("$folder/outbox")], [], "none in the outbox");
    is_deeply([files($worker->{dir})], [], "none in run_dir");
    status_is($c->get("/api/v1/contacts/$bystander"), 200, "as before");
    error_is($c->get("/api/v1/contacts/$plant->{contact}"), 404, "not_found",
        "a client finds nothing");
    my $card = $c->get("/api/v1/pipeline-cards/$plant->{card}");
    status_is($card, 200, "the card stays");
    is($card->data->{contact_id}, undef, "without the link");
    my @events = @{$c->get("/api/v1/events")->json->{data}};
    my @erased = grep { $_->{type} eq "contact.erased" } @events;
    is_deeply([map { [keys %{$_->{data}}] } @erased], [["id"], ["id"]],
        "contact.erased has the id alone");
    is(scalar grep({ $_->{data}{id} eq $plant->{contact} } @erased), 1,
        "of each contact");
    ok(scalar grep({ $_->{body} =~ /contact\.erased/ } $receiver->requests),
        "endpoints get it, too") if $receiver->can("requests");
    is_deeply([sql($database, "SELECT * FROM crmapi.counter_verify()")], [],
        "totals are right");
};

subtest "suppression stays, as a hash" => sub {
    is(sql($database, "SELECT crmapi.is_suppressed('@{[$w->id]}', 'email',
        '@{[uc $OTHER]}')"), "t", "the address is suppressed");
    is(sql($database, "SELECT crmapi.is_suppressed('@{[$w->id]}', 'sms',
        '+4930$NUMBER')"), "t", "and the number");
    is(sql($database, "SELECT crmapi.is_suppressed('@{[$w->id]}', 'email',
        '$MAIL')"), "f", "what was not, is not");
    is(suppressed_since("erased_address"), $suppressed, "since when, too");
    is(sql($database, "SELECT count(*) FROM crmapi.suppression
        WHERE workspace_id = '@{[$w->id]}'"), 0, "no list has them");
    my @said = map { $c->post("/api/v1/suppressions",
        { phone_number => "+4930$NUMBER" }) } 1, 2;
    is_deeply([map { $_->status } @said], [201, 200],
        "20.1 what no list has is new to a client");
    status_is($c->delete($said[0]->header("Location")), 204, "and lifted again");
    $w->ctl("suppress", "remove", "--workspace", $w->id, "--email", $OTHER);
    is(sql($database, "SELECT crmapi.is_suppressed('@{[$w->id]}', 'email',
        '$OTHER')"), "f", "it can be lifted");
    my $lift = sub { sql($database, "SELECT crmapi.suppress_lift('@{[$w->id]}', NULL,
        '+4930$NUMBER', 'unsubscribed')") };
    is($lift->(), 1, "START lifts what STOP did, also of who is gone");
    $w->ctl("suppress", "add", "--workspace", $w->id, "--phone", "+4930$NUMBER");
    is($lift->(), 0, "another one stays");
    $w->ctl("suppress", "remove", "--workspace", $w->id, "--phone", "+4930$NUMBER");
};

subtest "a dump from before: the person is erased again" => sub {
    my $copy = $w->ctl_json("workspace", "restore", $dump, "--as", "new");
    $copy = $copy->[0] if ref $copy eq "ARRAY";
    is_deeply([found()], [], "nothing came back");
    is(0 + sql($database, "SELECT count(*) FROM crmapi.contact
        WHERE workspace_id = '$copy->{id}'"), 1, "but the others");
    is(sql($database, "SELECT crmapi.is_suppressed('$copy->{id}', 'email',
        '$OTHER')"), "t", "who was suppressed then, is");
    my $journal = crmapictl_ok($database, "erasure", "list");
    unlike($journal, qr/$TOKEN|$NUMBER/i, "the journal has no address");
    my $elsewhere = database();
    for my $line ("{}", "[]", "x", '{"id": "x"}', "\xef\xbb\xbf",
            ($journal =~ /^(.*)/)[0] . "\0x") {
        my ($code, undef, $err) = crmapictl($elsewhere, { stdin =>
            "$journal\n\n$line\n" }, "erasure", "add", "-");
        my $number = 2 + ($journal =~ tr/\n//) + ($journal !~ /\n\z/);
        isnt($code, 0, "what is no line of a journal is refused: "
            . $line =~ s{[^ -~]}{?}gr);
        like($err, qr/line $number is not one of erasure list/, "it is named");
    }
    is(crmapictl_ok($elsewhere, "erasure", "list"), "", "and nothing is taken");
    my ($code, undef, $err) = crmapictl($elsewhere, "erasure", "add", $folder);
    is($code, 1, "a folder is no empty journal");
    like($err, qr/line 1: Is a directory/, "it is said");
    crmapictl_ok($elsewhere, { stdin => $_ }, "erasure", "add", "-")
        for "$journal\n", "\xef\xbb\xbf$journal\n",
            "\xef\xbb\xbf\r\n" . $journal =~ s/\n|\z/\r\n/gr . "\r\n \t\n";
    is(crmapictl_ok($elsewhere, "erasure", "list"), $journal,
        "each line is there once");
    crmapictl_ok($elsewhere, "workspace", "restore", $dump);
    local $database = $elsewhere;
    is_deeply([found()], [], "nor elsewhere, with the journal");
};

subtest "what is being sent to the person is waited for" => sub {
    my $id = $w->contact(emails => ["wait-$MAIL"])->{id};
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload, state,
            leased_by, leased_until) VALUES ('@{[$w->id]}', 'sequence.step',
            '{\"contact_id\": \"$id\"}', 'leased', 'x', now() + interval '1h'),
        ('@{[$w->id]}', 'sequence.step', '{\"contact_id\": \"$id\"}', 'ready',
            NULL, NULL)");
    my $erase = "crmapi.erase('@{[$w->id]}', '{$id}', '{}', '{}')";
    is(sql($database, "SELECT $erase IS NULL"), "t", "it is told");
    status_is($c->get("/api/v1/contacts/$id"), 200, "nothing is gone");
    is(sql($database, "SELECT string_agg(state, ' ' ORDER BY id)
        FROM crmapi.job WHERE payload ->> 'contact_id' = '$id'"),
        "leased cancelled", "and nothing more is sent");
    # the command ends each attempt by COMMIT, and sleeps
    my $now = sql($database, "SELECT clock_timestamp()");
    my ($said) = in_processes(2, sub {
        return $w->ctl("contact", "erase", $id, "--workspace", $w->id)
            if $_[0] == 1;
        ok(wait_for(sub { sql($database, "SELECT count(*) FROM
            pg_stat_activity WHERE datname = current_database()
            AND query = 'COMMIT' AND state = 'idle'
            AND backend_start > '$now'") > 0 }), "the command waits");
        sql($database, "UPDATE crmapi.job SET state = 'done',
            leased_by = NULL, leased_until = NULL, finished_at = now()
            WHERE payload ->> 'contact_id' = '$id' AND state = 'leased'");
    });
    like($said, qr/^contact\s+1$/m, "then it erases");
    status_is($c->get("/api/v1/contacts/$id"), 404, "all is gone");
};

# The status that POST /contacts/ID/erase answers.
sub erase {
    my ($id, %more) = @_;
    my $r = $c->post("/api/v1/contacts/$id/erase", undef, %more);
    status_is($r, 202, "it is accepted");
    is_deeply([sort keys %{$r->data}], [qw(id status)], "id and status");
    is($r->data->{id}, $id, "of the contact");
    return $r->data->{status};
}

# The jobs of erasures, with their states.
sub jobs {
    return scalar sql($database, "SELECT string_agg(state, ' ' ORDER BY id)
        FROM crmapi.job WHERE kind = 'sequence.erase'");
}

subtest "POST /contacts/{id}/erase" => sub {
    my ($plant) = plant();
    $worker->once for 1 .. 2;
    ok(scalar @{[found()]}, "there is a person");
    ok(scalar @{[files("$folder/outbox")]}, "with mails in the outbox");
    my %key = (headers => { "Idempotency-Key" => "erase-1" });
    is(erase($plant->{contact}, %key), "pending", "mails may be in the outbox");
    is_deeply([found()], [], "the database has nothing of the person");
    is(jobs(), "ready", "the outbox is crmapid's");
    my $again = $c->post("/api/v1/contacts/$plant->{contact}/erase", undef, %key);
    is($again->header("Idempotent-Replayed"), "true", "a replay");
    is($again->data->{status}, "pending", "says the same");
    $worker->once;
    is_deeply([files("$folder/outbox")], [], "which is empty then");
    is(erase($plant->{contact}), "erased", "and told");
    is(jobs(), "done", "by one job");
    error_is($c->post("/api/v1/contacts/" . uuid() . "/erase"), 404,
        "not_found", "an unknown contact");
    is_deeply([sql($database, "SELECT * FROM crmapi.counter_verify()")], [],
        "totals are right");
};

subtest "no address is in a line of a log" => sub {
    for my $query ("email=$MAIL", "email=" . $MAIL =~ s/\@/%40/r,
            "page=1&phone=%2B4930$NUMBER", "search=$TOKEN",
            "page=1&custom_fields.x=$TOKEN", "external_id=$TOKEN") {
        my $path = $query =~ /^email/ ? "/contacts/by-email" : "/contacts";
        $c->get("/api/v1$path?$query");
    }
    $c->get("/api/v1/contacts?page_size=77");
    ok(wait_for(sub { $httpd->access_log =~ /page_size=77/ }),
        "other queries are there");
    like($httpd->access_log, qr{"GET /api/v1/contacts/by-email HTTP/1\.1"},
        "so is the path");
    unlike($httpd->access_log . $httpd->log_text, qr/$TOKEN|$NUMBER/i, "none");
};

subtest "nobody of whom nothing was sent waits for crmapid" => sub {
    my $id = $w->contact(emails => ["first-$MAIL"])->{id};
    my $other = $w->contact(emails => ["first-$MAIL", "second-$MAIL"])->{id};
    is(erase($id), "erased", "at once");
    status_is($c->get("/api/v1/contacts/$_"), 404, "gone") for $id, $other;
    is(erase($other), "erased", "the other contact, too");
};

subtest "what is being sent is waited for by crmapid" => sub {
    my $id = $w->contact(emails => ["wait-$MAIL"])->{id};
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload, state,
        leased_by, leased_until) VALUES ('@{[$w->id]}', 'sequence.step',
        '{\"contact_id\": \"$id\"}', 'leased', 'x', now() + interval '1h')");
    is(erase($id), "pending", "it is told") for 1 .. 2;
    $worker->once;
    status_is($c->get("/api/v1/contacts/$id"), 200, "it is being sent");
    is(jobs(), "done ready", "and tried again");
    sql($database, "UPDATE crmapi.job SET state = 'done', leased_by = NULL,
        leased_until = NULL, finished_at = now() WHERE state = 'leased'");
    sql($database, "UPDATE crmapi.job SET run_at = now(), is_due = true
        WHERE kind = 'sequence.erase' AND state = 'ready'");
    $worker->once;
    status_is($c->get("/api/v1/contacts/$id"), 404, "then it is gone");
    is(erase($id), "erased", "and told");
};

subtest "a daemon that stood still hands nothing over" => sub {
    my $template = $w->template([{ email_subject => "S", email_body => "B" }]);
    my ($id, $enrollment) = @{$w->start($template, auto_approve => false,
        contact => { emails => ["still-$MAIL"] })}{qw(contact_id
        enrollment_id)};
    $worker->once;
    $w->ctl("enrollment", "approve", $enrollment);
    my $let_go = holding($database, "SELECT 1 FROM crmapi.enrollment"
        . " WHERE id = '$enrollment' FOR UPDATE");
    my $still = worker(database => $database, conf => { lease => "1s" },
        may_log => [qr/CRM3101: .* was deleted$/]);     # webhooks of the contact
    wait_blocked($database, 1);
    kill STOP => $still->pid;
    $let_go->();
    # its step is taken, and it does not know that yet
    ok(wait_for(sub { sql($database, "SELECT count(*) FROM crmapi.enrollment_step
        WHERE enrollment_id = '$enrollment' AND status = 'sending'") }), "it may"
        . " send a mail");
    ok(wait_for(sub { sql($database, "SELECT crmapi.job_reap()");
        return !sql($database, "SELECT count(*) FROM crmapi.job
            WHERE state = 'leased'") }), "its leases expire");
    $w->ctl("contact", "erase", $id, "--workspace", $w->id);
    kill CONT => $still->pid;
    ok($still->wait_log(qr/CRM3104: job \d+ \(sequence\.step\)|CRM3121/),
        "it goes on");
    is(scalar $still->mails, 0, "no mail is sent");
    unlike($still->log_text, qr/CRM3121/, "nor said to be");
    my ($journal) = glob $still->dir . "/sent.*";
    like((grep { /$enrollment/ } split /\n/, read_file($journal))[-1],
        qr/"state":"free"/, "nor is it unknown whether it was");
    $still->stop;
};

subtest "in a large workspace crmapid erases" => sub {
    sql($database, "INSERT INTO crmapi.event (id, workspace_id, type, fields)
        SELECT crmapi.event_id(crmapi.event_next('@{[$w->id]}')),
            '@{[$w->id]}', 'contact.deleted', '{\"id\": \"x\"}'
        FROM generate_series(1, 20001)");
    my $soon = $w->contact(emails => ["soon-$MAIL"])->{id};
    is(erase($soon), "erased", "so many events take no time");
    sql($database, "INSERT INTO crmapi.intake_event (workspace_id, event_id)
        SELECT '@{[$w->id]}', 'many-' || n FROM generate_series(1, 20001) n");
    my $id = $w->contact(emails => ["large-$MAIL"])->{id};
    # another contact of the person, to whom a sequence writes
    $w->contact(emails => ["other-$MAIL", "large-$MAIL"]);
    my $template = $w->template([{ email_subject => "S", email_body => "B" }]);
    my $enrollment = $w->start($template, auto_approve => false, contact => {
        emails => ["other-$MAIL"] })->{enrollment_id};
    my $gone = sql($database, "SELECT pg_get_functiondef('crmapi.person_gone'::regproc)");
    sql($database, $gone =~ s/\bBEGIN\b/BEGIN RAISE EXCEPTION 'it takes long';/r);
    is(erase($id), "pending", "it is told");
    sql($database, $gone);
    is(sql($database, "SELECT stop_reason FROM crmapi.enrollment
        WHERE id = '$enrollment'"), "contact_erased", "nothing more is sent");
    status_is($c->get("/api/v1/contacts/$id"), 200, "it is still there");
    $worker->once;
    status_is($c->get("/api/v1/contacts/$id"), 404, "crmapid erases it");
    is(erase($id), "erased", "and tells it");
};

# The ids of rows that EVENTS of the workspace are about.
sub told { return { map { $_->[0] => 1 } sql($database, "SELECT coalesce(fields,
    body::json -> 'data') ->> 'id', 1 FROM crmapi.event
    WHERE workspace_id = '@{[$w->id]}'") } }

subtest "events of what was the person's before, too" => sub {
    my $id = $w->contact(emails => ["late-$MAIL"])->{id};
    my ($other) = map { $_->data->{id} } $c->post("/api/v1/contacts",
        { bot_id => $w->agent, emails => ["else\@x.example"] });
    my $stage = sql($database, "SELECT id FROM crmapi.pipeline_stage LIMIT 1");
    my $card = sub { $c->post("/api/v1/pipeline-cards", { title => "$TOKEN $_[0]",
        pipeline_stage_id => $stage, contact_id => $_[1] })->data->{id} };
    my $taken = $card->("taken", $id);
    my $given = $card->("given", $other);
    my $move = sub { status_is($c->patch("/api/v1/pipeline-cards/$_[0]",
        { contact_id => $_[1], title => "moved" }), 200, "a card moves") };
    $move->($taken, $other);
    $move->($given, $id);
    my $note = $c->post("/api/v1/activities", { contact_id => $id,
        activity_type => "note", title => $TOKEN })->data->{id};
    status_is($c->delete("/api/v1/activities/$note"), 204, "an activity goes");
    my $talk = $w->conversation("email", contact_id => $id, subject => $TOKEN);
    my $kept = $w->conversation("sms", contact_id => $other);
    $w->import_objects([map { { object => "message", role => "user",
        conversation_id => $_, content => "m $TOKEN $_" } } $talk]);
    $w->import_objects([{ object => "message", role => "user",
        conversation_id => $kept, content => "another one's" }]);
    sql($database, "DELETE FROM crmapi.conversation WHERE id = '$talk'");
    my %is = map { $_ => 1 } found();
    ok($is{"event.fields"}, "there are events");
    sql($database, "DELETE FROM crmapi.intake_event WHERE event_id ~ '^many'");
    is(erase($id), "erased", "the person is erased");
    is_deeply([found()], [], "no event has a token");
    is(sql($database, "SELECT string_agg(type, ' ') FROM crmapi.event WHERE row_id ="
        . " '$talk' OR owner_id = '$talk'"), "conversation.deleted",
        "of a conversation that is no more there is just that");
    ok(told()->{$_}, "what is about others is there") for $kept, $other, $taken;
};

subtest "what the contact gets while it is erased" => sub {
    my ($id, $other) = map { $w->contact(emails => [$_])->{id} } "here-$MAIL",
        "there-$MAIL";
    my $talk = $w->conversation("sms", phone_number => "+4930${NUMBER}5");
    my ($said) = in_processes(2, sub {
        return erase($id) if $_[0] == 1 && wait_for(sub { sql($database,
            "SELECT count(*) FROM pg_locks WHERE objid = 4711") > 0 });
        # adds addresses, and commits when the erasure waits for the contact
        sql($database, "DO \$\$ BEGIN
            UPDATE crmapi.contact SET emails = emails || '[{\"email\":
                \"there-$MAIL\"}]', phone_numbers = '[{\"phone_number\":
                \"+4930${NUMBER}5\"}]' WHERE id = '$id';
            PERFORM pg_advisory_xact_lock(4711);
            FOR i IN 1 .. 3000 LOOP
                EXIT WHEN EXISTS (SELECT FROM pg_stat_activity a WHERE
                    pg_backend_pid() = ANY (pg_blocking_pids(a.pid)));
                PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01);
            END LOOP; END \$\$");
        return;
    });
    is($said, "erased", "it waits and is done");
    status_is($c->get("/api/v1/contacts/$_"), 404, "gone") for $id, $other;
    status_is($c->get("/api/v1/conversations/$talk"), 404, "with what has the new"
        . " number alone");
    is_deeply([found()], [], "no token is left");
};

subtest "a mirror by events loses who was known by an address alone" => sub {
    my ($program) = grep { /copy\.py/ } documented("api.md", "python");
    write_file("$folder/copy.py", $program);
    my ($form) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "F" }]);
    my ($submission) = $w->import_objects([{ object => "submission",
        form_id => $form, custom_field_responses => { q => "by $MAIL" } }]);
    my ($talk, $late) = $w->import_objects([map { { object => "conversation",
        type => "email", bot_id => $w->agent, email => $MAIL, subject => $TOKEN } }
        1, 2]);
    $w->import_objects([map { { object => "message", conversation_id => $_,
        role => "user", content => $TOKEN } } $talk, $late]);
    local @ENV{qw(CRMAPI_KEY COPY_SLEEP)} = ($w->key, 0.1);
    my $pid = spawn(chdir => $folder, log => "$folder/copy.log", command =>
        ["python3", "copy.py", "http://127.0.0.1:" . $httpd->port,
        "$folder/copy.json"]);
    my $copy = sub { read_file("$folder/copy.json", "") };
    my $shows = sub { ($json->decode($copy->() || "{}")->{rows}{conversation}
        || {})->{$_[0]} };
    ok(wait_for(sub { $copy->() =~ /$submission/ && $shows->($late) }, 60),
        "it has them") or diag(read_file("$folder/copy.log", ""));
    status_is($c->delete("/api/v1/conversations/$talk"), 204, "a conversation is"
        . " deleted: its messages stay");
    ok(wait_for(sub { !$shows->($talk) }, 60), "in the mirror, too");
    kill "STOP", $pid;
    status_is($c->delete("/api/v1/conversations/$late"), 204, "another one, which"
        . " the mirror does not know yet");
    $w->ctl("contact", "erase", "--email", $MAIL, "--workspace", $w->id);
    kill "CONT", $pid;
    is_deeply([found()], [], "no token is in the database");
    ok(wait_for(sub { $copy->() !~ /$TOKEN/ }, 60), "nor in the mirror");
    unlike($copy->(), qr/$submission|$talk|$late/, "nor what had it");
    end_process($pid, "TERM");
};

# Erase the person that OPTIONS name.
sub forget { $w->ctl("contact", "erase", "--workspace", $w->id, @_) }

# The values of COLUMN of the rows of TABLE in the workspace ID.
sub values_of {
    my ($table, $column, $id) = @_;
    return [sort map { ref $_ ? $_->[0] : $_ } sql($database, "SELECT $column
        FROM crmapi.$table WHERE workspace_id = '$id' AND $column IS NOT NULL")];
}

subtest "an address is found in every notation, and no part of another" => sub {
    my ($form) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "F" }]);
    sql($database, "DELETE FROM crmapi.submission");
    my @others = ("joann\@$TOKEN.example", "ann\@$TOKEN.example.org",
        "ann.\@$TOKEN.example", "call +493012345678 or +4930123456");
    $w->import_objects([map { { object => "submission", form_id => $form,
        custom_field_responses => { q => $_ } } } @others,
        "ann\@$TOKEN.example", "Ann <ANN\@$TOKEN.example>, a customer",
        "see\nann\@$TOKEN.example.", "mailto:ann\@$TOKEN.example?subject=x",
        ["x", { y => "'ann\@$TOKEN.example'" }],
        "+49301234567", "call +49 (0)30 / 123-4567 or write",
        "jo\@b\x{fc}cher-$TOKEN.example", "JO\@B\x{dc}CHER-$TOKEN.example",
        "jo\@xn--bcher-$TOKEN-jsb.example"]);
    my $stored = sub { sql($database, "INSERT INTO crmapi.idempotent_answer
        (workspace_id, key, request, status, body) SELECT '@{[$w->id]}',
            sha256(b::bytea), sha256(b::bytea), 201, b
        FROM unnest(ARRAY['$_[0]', '$_[1]']) b") };
    sql($database, "DELETE FROM crmapi.idempotent_answer");
    $stored->(qq({"a": "ann\@$TOKEN.example"}), qq({"a": "joann\@$TOKEN.example"}));
    my $idn = sql($database, "SELECT crmapi.email_key("
        . "'jo\@b' || chr(252) || 'cher-$TOKEN.example')");
    $w->import_objects([map { { object => "conversation", bot_id => $w->agent,
        type => "email", email => $_ } } "jo\@b\x{fc}cher-$TOKEN.example",
        "Jo\@BU\x{308}CHER-$TOKEN.example", $idn]);
    forget("--email", "ann\@$TOKEN.example");
    forget("--phone", "+49 30 1234567");
    forget("--email", $idn);
    is_deeply(values_of("submission", "custom_field_responses ->> 'q'", $w->id),
        [sort @others, "jo\@xn--bcher-$TOKEN-jsb.example"],
        "submissions of others stay");
    is_deeply(values_of("idempotent_answer", "body", $w->id),
        [qq({"a": "joann\@$TOKEN.example"})], "and stored answers");
    is_deeply(values_of("conversation", "email", $w->id), [], "conversations");
    sql($database, "DELETE FROM crmapi.submission");
    sql($database, "DELETE FROM crmapi.idempotent_answer");
    is_deeply([grep { !/^event/ } found()], [], "nothing else is left");
    sql($database, "DELETE FROM crmapi.event");
};

subtest "a contact that was deleted before" => sub {
    my $template = $w->template([{ email_subject => "{{first_name}}",
        email_body => "{{email}}" }]);
    my ($form) = $w->import_objects([{ object => "form", bot_id => $w->agent,
        name => "F" }]);
    my @gone = map { $w->start($template, auto_approve => true, contact => {
        first_name => $TOKEN, emails => ["$_-$MAIL"] })->{contact_id} }
        "gone", "stays";
    $worker->once for 1 .. 2;
    my $listed = $w->contact(first_name => $TOKEN, emails => ["gone-$MAIL"])
        ->{id};
    status_is($c->delete("/api/v1/contacts/$_"), 204, "it is deleted")
        for @gone, $listed;
    $w->import_objects([{ object => "submission", form_id => $form,
        custom_field_responses => { q => "by gone-$MAIL, $TOKEN" } }]);
    $w->ctl("workspace", "dump", $w->id, "--output", "$folder/gone");
    like($w->ctl("contact", "export", "--workspace", $w->id, "--email",
        "gone-$MAIL"), qr/"enrollment_step"/, "an export has its sequences");
    forget("--email", "gone-$MAIL");
    my @left = map { ref $_ ? $_->[0] : $_ } sql($database, "SELECT contact_id
        FROM crmapi.enrollment e WHERE workspace_id = '@{[$w->id]}'
        AND contact_id IN ('$gone[0]', '$gone[1]')");
    is_deeply(\@left, [$gone[1]], "its sequences are gone, those of others stay");
    my $told = told();
    ok($told->{$gone[1]}, "so are events");
    my @types = map { ref $_ ? $_->[0] : $_ } sql($database, "SELECT DISTINCT type
        FROM crmapi.event WHERE row_id IN ('$gone[0]', '$listed')");
    is_deeply(\@types, ["contact.erased"], "but that it was erased");
    sql($database, "INSERT INTO crmapi.event (id, workspace_id, type, row_id)
            VALUES (gen_random_uuid(), '@{[$w->id]}', 'contact.deleted', '$listed');
        SELECT crmapi.erase_again('@{[$w->id]}', '@{[$w->id]}')");
    is(sql($database, "SELECT count(*) FROM crmapi.event WHERE row_id = '$listed'
        AND type = 'contact.deleted'"), 0, "events that a dump brings back go, too");
    my $copy = $w->ctl_json("workspace", "restore", "$folder/gone", "--as", "new");
    $copy = $copy->[0] if ref $copy eq "ARRAY";
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment
        WHERE workspace_id = '$copy->{id}' AND contact_id = '$gone[0]'"), 0,
        "what an older dump brings back is erased again");
    is(sql($database, "SELECT count(*) FROM crmapi.submission
        WHERE workspace_id = '$copy->{id}'
          AND custom_field_responses::text LIKE '%gone-$MAIL%'"), 0,
        "submissions, too");
    $w->ctl("workspace", "delete", $copy->{id}, "--yes");
    forget("--email", "stays-$MAIL");
    is_deeply([found()], [], "nothing is left");
};

subtest "a stored answer that has an address, and the id of nobody" => sub {
    my $add = sub { $c->post("/api/v1/suppressions", $_[0],
        headers => { "Idempotency-Key" => $_[1] }) };
    status_is($add->({ email => "by\@x.example" }, "other"), 201, "of another one");
    status_is($add->({ email => "key-$MAIL" }, "mail"), 201, "of a mail address");
    my $lifted = $add->({ phone_number => "+4931$NUMBER" }, "phone");
    status_is($c->delete($lifted->header("Location")), 204, "of one that was"
        . " suppressed before");
    forget("--email", "key-$MAIL");
    forget("--phone", "+4931$NUMBER");
    is_deeply([found()], [], "it is gone");
    is($add->({ email => "by\@x.example" }, "other")
        ->header("Idempotent-Replayed"), "true", "that of another one is not");
};

subtest "a person of many contacts: each address is looked up once" => sub {
    my ($many, $length) = (database(), 300);
    my $other = workspace($many, twin => 0);
    my ($id, $agent) = ($other->id, $other->agent);
    sql($many, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails)
        SELECT gen_random_uuid(), '$id', '$agent', jsonb_build_array(
            jsonb_build_object('email', 'p' || n || '\@x.example',
                'is_primary', true),
            jsonb_build_object('email', 'p' || n + 1 || '\@x.example',
                'is_primary', false))
        FROM generate_series(1, $length) n");
    sql($many, "ALTER DATABASE $many SET track_functions = 'all'");
    my $calls = sub { sql($many, "SELECT coalesce(sum(calls), 0)
        FROM pg_stat_user_functions WHERE funcname = 'contacts_with'") };
    my $before = $calls->();
    is(sql($many, "SELECT cardinality(contacts) || ' ' || cardinality(mails)
        FROM crmapi.person('$id', NULL, 'p1\@x.example', NULL)"),
        "$length " . ($length + 1), "each shares an address with the next one");
    ok(wait_for(sub { $calls->() > $before }), "that is counted");
    cmp_ok($calls->() - $before, "<=", 3 * $length, "in few look-ups");
};

# PostgreSQL has room for some 10,000 locks of all sessions.
subtest "a person of very many addresses leaves room for the locks of others" => sub {
    my $all = "ARRAY(SELECT i || '\@x' FROM generate_series(1, 100000) i)";
    is(scalar sql($database, "SELECT (SELECT count(*) FROM pg_locks WHERE locktype ="
        . " 'advisory' AND pid = pg_backend_pid()) FROM crmapi.person_lock('" . $w->id
        . "', $all, $all)"), 2000, "200,000 have 2,000");
};

subtest "many stored answers are looked through within a request's time" => sub {
    my $many = database();
    my $other = workspace($many, twin => 0);
    my ($id, $agent) = ($other->id, $other->agent);
    # half with fields, half as upserts have them; none is the person's
    sql($many, "INSERT INTO crmapi.idempotent_answer (workspace_id, key, request,
            status, fields, body)
        SELECT '$id', sha256(n::text::bytea), sha256('x'), 200,
            CASE WHEN n % 2 = 0 THEN json_build_object('id', n, 'notes', t) END,
            CASE WHEN n % 2 = 1 THEN to_json(t)::text END
        FROM generate_series(1, 16000) n, repeat('Zo' || chr(235) || ' 12, ', 150) t;
        INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails, phone_numbers)
        VALUES ('$id', '$id', '$agent', '[{\"email\": \"z\@x.example\",
            \"is_primary\": true}]', '[{\"phone_number\": \"+4930123456\",
            \"is_primary\": true}]')");
    my $began = time;
    is(sql($many, "SELECT crmapi.contact_erase('$id', '$id', '$id', '::1')"),
        "erased", "at once");
    cmp_ok(time - $began, "<", 20 * busy(), "in time");
};

subtest "a journal of many, and many addresses: each is hashed once" => sub {
    my $many = database();
    my $other = workspace($many, twin => 0);
    sql($many, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails)
        SELECT gen_random_uuid(), '@{[$other->id]}', '@{[$other->agent]}',
            jsonb_build_array(jsonb_build_object('email', 'p' || n
                || '\@x.example', 'is_primary', true))
        FROM generate_series(1, 500) n");
    $other->ctl("workspace", "dump", $other->id, "--output", "$folder/many");
    $other->ctl("contact", "erase", "--workspace", $other->id, "--email",
        "p$_\@x.example") for 7, 8;
    # others by another key, as a journal from elsewhere has
    sql($many, "INSERT INTO crmapi.erasure (workspace_id, id, contact_ids, hashes,
            key, sent_ids)
        SELECT '@{[$other->id]}', gen_random_uuid(), ARRAY[gen_random_uuid()],
            ARRAY[sha256(n::text::bytea)], sha256('x'), '{}'
        FROM generate_series(1, 200) n");
    $other->ctl("workspace", "delete", $other->id, "--yes");
    sql($many, "ALTER DATABASE $many SET track_functions = 'all'");
    my $hashed = sub { sql($many, "SELECT coalesce(sum(calls), 0)
        FROM pg_stat_user_functions WHERE funcname IN ('hmac', 'mac')") };
    my $before = $hashed->();
    $other->ctl("workspace", "restore", "$folder/many");
    is(sql($many, "SELECT count(*) FROM crmapi.contact"), 498, "two are erased");
    ok(wait_for(sub { $hashed->() > $before }), "that is counted");
    cmp_ok($hashed->() - $before, "<", 2100, "by 500 addresses and two keys");
    is(sql($many, "SELECT count(DISTINCT key) FROM crmapi.erasure"), 2,
        "a restored workspace has the key of the journal");
};

subtest "who comes back after the erasure is not erased" => sub {
    my $id = $w->contact(emails => [$MAIL])->{id};
    $w->ctl("workspace", "hold", $w->id);
    $w->ctl("workspace", "release", $w->id);
    status_is($c->get("/api/v1/contacts/$id"), 200, "the contact is there");
    my $now = sql($database, "SELECT clock_timestamp()");
    forget("--email", $MAIL);
    # as a dump from between the two erasures has it
    sql($database, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, emails,
            created_at) VALUES (gen_random_uuid(), '@{[$w->id]}', '@{[$w->agent]}',
            '[{\"email\": \"$MAIL\"}]', '$now');
        SELECT crmapi.erase_again('@{[$w->id]}', '@{[$w->id]}')");
    is_deeply([grep { /^contact/ } found()], [], "who is erased once more is");
};

done_testing;
