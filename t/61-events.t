# SPDX-License-Identifier: Apache-2.0
# 61-events.t: GET /events: changes in their order, without gaps (contract 13.4)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Citus;
use CrmTest::Data;
use CrmTest::Process qw(spawn end_process);
use CrmTest::Receiver;
use CrmTest::Session;
use JSON::PP ();

my $json = JSON::PP->new->utf8->canonical;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
my $worker = worker(database => $database, no_start => 1,
    conf => { webhook_private => "on" });

# The whole log of W behind CURSOR: (events, the cursor behind them).
sub events {
    my ($w, $cursor, $size) = @_;
    my @events;
    while (1) {
        my $r = $w->client->get("/api/v1/events?page_size=" . ($size // 100)
            . "&cursor=" . ($cursor // "*"));
        die $r->text if $r->status != 200;
        push @events, @{$r->json->{data}};
        my $page = $r->json->{pagination};
        $cursor = $page->{next_cursor};
        return (\@events, $cursor) if !$page->{has_more};
    }
}

# The same, as it is at this moment.
sub events_now {
    my ($w, $cursor) = @_;
    my $answer = $w->client->get("/api/v1/events?cursor=$cursor")->json;
    return ($answer->{data}, $answer->{pagination}{next_cursor});
}

# The events of W behind CURSOR, "type id" each.
sub told {
    my ($w, $cursor) = @_;
    my ($events) = events($w, $cursor);
    return [map { "$_->{type} $_->{data}{id}" } @$events];
}

sub end_of { return (events($_[0], "end"))[1] }

# A workspace with its log on.
sub logged { return workspace($httpd, @_)->log_on }

sub count_events {
    my ($w) = @_;
    return scalar sql($database, "SELECT count(*) FROM crmapi.event"
        . " WHERE workspace_id = '" . $w->id . "'");
}

# A message of a channel to W, from PHONE; the conversation's id.
my $messages = 0;
sub message {
    my ($w, $phone, %more) = @_;
    $w->{token} //= $w->token("backend");
    my $r = $httpd->client(key => $w->{token})->post(
        "/crmapi/intake/v1/events", [{ event_id => "e" . $messages++,
        channel => "sms", bot_id => $w->agent, from => { phone_number =>
        $phone }, message => { content => "h\x{e9}" }, %more }]);
    return $r->data->{accepted}[0]{conversation_id} // die $r->text;
}

# The event of TYPE shows ID as GET does, byte for byte.
sub shows {
    my ($w, $type, $id, $path) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $answer = $w->client->get("/api/v1/$path");
    my ($data) = $answer->body =~ /^\{"data":(.*)\}\s*$/s;
    my $log = $w->client->get("/api/v1/events?page_size=100&cursor=*");
    my ($last) = grep { $_->{type} eq $type && $_->{data}{id} eq $id }
        reverse @{$log->json->{data}};
    return ok(0, "$type: an event") if !$last;
    is_deeply($last->{data}, $answer->data, "$type: data as GET has it");
    return ok(index($log->body, "\"id\":\"$last->{id}\",\"type\":\"$type\","
        . "\"timestamp\":\"$last->{timestamp}\",\"data\":$data}") > 0,
        "$type: byte for byte") || diag($answer->body);
}

subtest "13.4 every type, with data as the API shows it" => sub {
    my $w = logged(plan => "pro");
    my $c = $w->client;
    my %own = (bot_id => $w->agent);
    my $company = $c->post("/api/v1/companies", { %own, name => "Ünal & Co",
        employee_count => 12, tags => ["a,b", "\"c\""] })->data->{id};
    $c->post("/api/v1/suppressions", $_) for { email => "z\@x.org" },
        { phone_number => "+4930222" };
    my $contact = $c->post("/api/v1/contacts", { %own, company_id => $company,
        phone_numbers => ["+4930222"], first_name => "Zoë \"\\/\x{1F600}", emails => ["z\@x.org"],
        deal_value => 12.5, tags => ["ü"], notes => "x\n\t" x 5,
        custom_fields => { deep => [1, { n => undef }, 1.50],
            big => "1e400" } })->data->{id};
    shows($w, "contact.created", $contact, "contacts/$contact");
    $c->patch("/api/v1/companies/$company", { annual_revenue => 1.25 });
    shows($w, "company.updated", $company, "companies/$company");
    my $activity = $c->post("/api/v1/activities", { contact_id => $contact,
        activity_type => "call", duration_minutes => 1.5,
        due_date => "2026-01-01T00:00:00Z" })->data;
    my $older = insert($w, "activity", contact_id => $contact, activity_type => "note",
        created_at => "2026-01-01T00:00:00Z");
    $c->patch("/api/v1/contacts/$contact", { phone_numbers => ["+49 30 1"] });
    shows($w, "contact.updated", $contact, "contacts/$contact");
    $c->delete("/api/v1/activities/$older");
    $c->patch("/api/v1/companies/$company", { industry => "x" });
    shows($w, "company.updated", $company, "companies/$company");
    my $its = insert($w, "activity", company_id => $company, activity_type => "note",
        created_at => "2100-01-01T00:00:00Z");
    $c->patch("/api/v1/companies/$company", { industry => "y" });
    shows($w, "company.updated", $company, "companies/$company");
    $c->delete("/api/v1/activities/$its");
    my ($pipeline, $stage) = (uuid(), uuid());
    $w->import_objects([{ object => "pipeline", name => "P", %own,
        id => $pipeline }, { object => "pipeline_stage", name => "S", %own,
        id => $stage, pipeline_id => $pipeline }]);
    my $card = $c->post("/api/v1/pipeline-cards", { title => "T",
        pipeline_stage_id => $stage, contact_id => $contact })->data->{id};
    shows($w, "pipeline_card.created", $card, "pipeline-cards/$card");
    $c->patch("/api/v1/pipeline-cards/$card",
        { archived_at => "2026-01-01T00:00:00.001Z" });
    shows($w, "pipeline_card.updated", $card, "pipeline-cards/$card");
    my $talk = message($w, "+49301");
    $c->patch("/api/v1/conversations/$talk", { assigned_to => "me",
        archived => JSON::PP::true });
    shows($w, "conversation.updated", $talk, "conversations/$talk");
    my ($form) = $w->import_objects([{ object => "form", name => "F", %own }]);
    my $submission = insert($w, "submission", form_id => $form,
        contact_id => $contact, custom_field_responses => { c => "grün" });
    shows($w, "form.submitted", $submission, "submissions/$submission");
    my ($events) = events($w);
    my ($told) = grep { $_->{type} eq "activity.created" } @$events;
    is_deeply($told->{data}, $activity, "activity.created: as POST showed it");
    $c->patch("/api/v1/activities/$activity->{id}", { title => "x" });
    shows($w, "activity.updated", $activity->{id},
        "activities/$activity->{id}");
    ($told) = grep { $_->{type} eq "message.created" } @$events;
    is_deeply([$told->{data}],
        $c->get("/api/v1/conversations/$talk/messages")->json->{data},
        "message.created: as the list shows it");
    ($told) = grep { $_->{type} eq "conversation.created" } @$events;
    is($told->{data}{id}, $talk, "conversation.created");
    my $template = $w->template([{ email_subject => "S", email_body => "B" },
        { sms_body => "B" }, { voice_objective => "O", voice_script => "B" }]);
    my $lead = $w->start($template, contact => { emails => ["l\@x.org"],
        phone_numbers => ["+4930200001"] });
    $worker->once;
    my $enrollment = $lead->{enrollment_id};
    shows($w, "enrollment.updated", $enrollment,
        "sequences/enrollments/$enrollment");
    $c->post("/api/v1/sequences/enrollments/$enrollment/stop", {});
    shows($w, "enrollment.updated", $enrollment,
        "sequences/enrollments/$enrollment");
    ($events) = events($w);
    is_deeply([map { $_->{data}{status} } grep { $_->{type} =~ /^enroll/ }
        @$events], [qw(generating pending_approval stopped_user)],
        "enrollment.updated: every state");
    my $note = $c->post("/api/v1/activities", { contact_id => $contact,
        activity_type => "note" })->data->{id};
    my $cursor = end_of($w);
    $c->delete("/api/v1/$_") for "pipeline-cards/$card",
        "activities/$activity->{id}", "contacts/$contact",
        "companies/$company", "conversations/$talk";
    is_deeply([grep { /deleted/ } @{told($w, $cursor)}],
        ["pipeline_card.deleted $card", "activity.deleted $activity->{id}",
        "activity.deleted $note", "contact.deleted $contact",
        "company.deleted $company", "conversation.deleted $talk"],
        "deleted; 9.6 what belonged to the contact alone goes before it");
    ($events) = events($w, $cursor);
    is_deeply([map { keys %{$_->{data}} } grep { $_->{type} =~ /deleted/ }
        @$events], [("id") x 6], "with the id only");
    my %seen = map { $_->{type} => 1 } @{(events($w))[0]};
    is(scalar keys %seen, 18, "all eighteen types")
        or diag(join " ", sort keys %seen);
};

subtest "conversation.created: with whom it is, and about what" => sub {
    my $w = logged();
    my %from = (name => "Ann Bo", email => "ann\@x.org", phone_number => "+49301");
    for (["email", email => $from{email}, { conversation => { subject => "Prices" } }],
            ["sms", phone_number => $from{phone_number}, {}]) {
        my ($channel, $by, $address, $more) = @$_;
        my $talk = message($w, "", channel => $channel, from => { name => $from{name},
            $by => $address }, %$more, message => { content => "c" });
        my ($told) = grep { $_->{type} eq "conversation.created"
            && $_->{data}{id} eq $talk } @{(events($w))[0]};
        my $shown = $w->client->get("/api/v1/conversations/$talk")->data;
        for my $field (qw(bot_id contact_id type email phone_number human subject)) {
            is($told->{data}{$field}, $shown->{$field}, "$channel: $field");
        }
    }
};

subtest "13.4 every way of writing: upsert, import, foreign keys" => sub {
    my $w = logged();
    my $c = $w->client;
    my $cursor = end_of($w);
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [map { { emails => [$_] } } qw(a@x.org b@x.org
        a@x.org)] });
    my ($a, $b) = map { $_->{id} } @{$r->data->{created}};
    my ($im) = $w->import_objects([{ object => "contact", bot_id => $w->agent,
        first_name => "Im" }]);
    is_deeply([sort @{told($w, $cursor)}], [sort "contact.created $a",
        "contact.created $b", "contact.created $im"],
        "three contacts; the third item changed nothing");
    $cursor = end_of($w);
    $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent, contacts =>
        [{ emails => ["a\@x.org"], first_name => "A" }] });
    is_deeply(told($w, $cursor), ["contact.updated $a"], "an upsert");
    my $card = $c->post("/api/v1/pipeline-cards", { title => "T",
        pipeline_stage_id => ($w->stages)[0], contact_id => $a })->data->{id};
    $cursor = end_of($w);
    $c->delete("/api/v1/contacts/$a");
    is_deeply(told($w, $cursor), ["pipeline_card.updated $card",
        "contact.deleted $a"], "9.6 a card loses its contact");
    $cursor = end_of($w);
    $c->patch("/api/v1/contacts/$b", { first_name => undef });
    error_is($c->patch("/api/v1/contacts/$b", { first_name => 5 }), 422,
        "validation_error", "what is refused");
    is_deeply([map { $_->[0] } sql($database, "BEGIN; UPDATE crmapi.contact"
        . " SET notes = 'x' WHERE id = '$b' RETURNING 'done'; ROLLBACK")],
        ["done"], "what is rolled back");
    is_deeply(told($w, $cursor), [],
        "an update that changes nothing is no event, nor is either of these");
    my $talk = message($w, "+49309");
    $cursor = end_of($w);
    status_is($c->delete("/api/v1/conversations/$talk"), 204, "deleted")
        for 1 .. 2;
    $c->patch("/api/v1/conversations/$talk", { internal_notes => "n" });
    is_deeply(told($w, $cursor), ["conversation.deleted $talk"],
        "a conversation is deleted once, and then nothing is told of it");
};

# The foreign keys that null a column when the row goes to which it refers.
my @NULLED = sql($database, "SELECT c.conrelid::regclass::text, a.attname,
        c.confrelid::regclass::text
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid
        AND a.attnum = ANY (c.confdelsetcols)
    WHERE c.contype = 'f' AND c.confdeltype = 'n' ORDER BY 1, 2");

subtest "13.4 contacts of several workspaces in one statement" => sub {
    my @some = (logged(), workspace($httpd), logged());
    my %ids;
    sql($database, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name,
        custom_fields) VALUES " . join ", ", map { my $n = $_; map {
            push @{$ids{$_->id}}, my $id = uuid();
            "('$id', '@{[$_->id]}', '@{[$_->agent]}', '$n', '{\"n\": $n}')"
        } @some } 1 .. 3);
    for my $w (@some) {
        my ($first, @others) = @{$ids{$w->id}};
        is(count_events($w), $w == $some[1] ? 0 : 3, "events where they are on");
        is_deeply(told($w), [map { "contact.created $_" } $first, @others],
            "one for each contact, in their order") if $w != $some[1];
        is_deeply([map { $_->{id} } @{$w->client->get(
            "/api/v1/contacts?custom_fields.n=1")->data}], [$first],
            "found by a custom field");
        is(scalar @{$w->client->get("/api/v1/contacts?sort=updated_at")->data}, 3,
            "and by their times");
    }
};

subtest "13.4 a foreign key that nulls a column" => sub {
    cmp_ok(scalar @NULLED, ">", 5, "there are such keys");
    my $w = logged();
    my ($pipeline) = $w->import_objects([{ object => "pipeline", name => "P",
        bot_id => $w->agent }]);
    my %own = (bot_id => $w->agent);
    my %needs = (contact => \%own, company => { %own, name => "C" },
        pipeline_stage => { %own, name => "S", pipeline_id => $pipeline },
        conversation => { %own, type => 1 },
        pipeline_card => { title => "T", pipeline_stage_id => ($w->stages)[0] },
        activity => { activity_type => "note" },
        form => { %own, name => "F" });
    ($needs{submission}{form_id}) = $w->import_objects([{ object => "form",
        %{$needs{form}} }]);
    # an activity has one of both
    $needs{activity}{$_->[0]} = ($w->import_objects([{ object => $_->[1],
        %{$needs{$_->[1]}} }]))[0] for [contact_id => "contact"],
        [company_id => "company"];
    for my $key (@NULLED) {
        my ($table, $column, $other) = map { s/^crmapi\.//r } @$key;
        my ($gone) = $w->import_objects([{ object => $other,
            %{$needs{$other}} }]);
        my ($row) = $w->import_objects([{ object => $table, %{$needs{$table}},
            $column => $gone }]);
        my $cursor = end_of($w);
        sql($database, "DELETE FROM crmapi.$other WHERE id = '$gone'");
        my ($events) = events($w, $cursor);
        my ($event) = grep { $_->{data}{id} eq $row } @$events;
        # nothing is told of it when it changes
        if ($table eq "submission") {
            is($event, undef, "$table.$column: it has no such event");
            next;
        }
        is($event && $event->{type}, "$table.updated", "$table.$column: an event");
        my $data = $event ? $event->{data} : {};
        ok(exists $data->{$column} && !defined $data->{$column},
            "$table.$column: which has null");
    }
};

subtest "13.4 whatever the settings of the writer's session are" => sub {
    my $w = logged();
    my $id = $w->contact->{id};
    my $year = 2100;    # later than each of its changes
    for my $path ("''", "crmapi, public, pg_catalog") {
        sql($database, "SET search_path = $path; SET TimeZone = 'Asia/Tokyo';"
            . " SET DateStyle = 'German'; UPDATE crmapi.contact SET notes ="
            . " \$\$$path\$\$, updated_at = '" . $year++ . "-01-01Z'"
            . " WHERE id = '$id'");
        shows($w, "contact.updated", $id, "contacts/$id");
    }
};

subtest "13.4 a writer that commits late is not overtaken" => sub {
    my $w = logged();
    my $c = $w->client;
    my $id = $w->contact->{id};
    my $cursor = end_of($w);
    my ($early, $late) = (uuid(), uuid());
    my $end = holding($database, "INSERT INTO crmapi.contact (id,"
        . " workspace_id, bot_id) VALUES ('$late', '" . $w->id . "', '"
        . $w->agent . "')");
    $c->post("/api/v1/companies", { bot_id => $w->agent, name => "C" });
    my $r = $c->get("/api/v1/events?cursor=$cursor");
    is_deeply($r->json->{data}, [],
        "what was written after an open transaction began is not shown");
    is($r->json->{pagination}{has_more}, JSON::PP::false, "no more by now");
    my $same = $r->json->{pagination}{next_cursor};
    is($same, $cursor, "the cursor stays");
    is_deeply([(events_now($w, "end"))[1]], [$cursor], "the end is there, too");
    # it writes a row that was changed and committed since it began
    $c->patch("/api/v1/contacts/$id", { notes => "first" });
    $end->("UPDATE crmapi.contact SET notes = 'second', updated_at ="
        . " '2100-01-01Z' WHERE id = '$id'; COMMIT");
    my ($events) = events($w, $same, 1);
    is_deeply([map { $_->{type} . " " . ($_->{data}{notes} // "") } @$events],
        ["contact.created ", "company.created ", "contact.updated first",
        "contact.updated second"], "afterwards all are there, once, those of a"
        . " row in the order of its changes");
    is(scalar(keys %{{ map { $_->{id} => 1 } @$events }}), 4,
        "each has an id of its own");
    $end = holding($database, "INSERT INTO crmapi.contact (id, workspace_id,"
        . " bot_id) VALUES ('$early', '" . $w->id . "', '" . $w->agent . "')");
    $end->();
    my $again = end_of($w);
    is_deeply(told($w, $again), [], "one that is rolled back leaves nothing");
};

subtest "13.4 nor is one that writes in several workspaces, in turns" => sub {
    my ($one, $two) = my @both = (logged(), logged());
    my @before = map { end_of($_) } @both;
    my $insert = sub { my ($w, $id) = @_;
        return "INSERT INTO crmapi.company (id, workspace_id, bot_id, name)"
            . " VALUES ('$id', '" . $w->id . "', '" . $w->agent . "', 'L')" };
    my @late = map { uuid() } 1 .. 3;
    my $end = holding($database, join "; ", $insert->($one, $late[0]),
        $insert->($two, $late[1]), $insert->($one, $late[2]));
    my @made = map { $_->company->{id} } @both;
    is_deeply((events_now($both[$_], $before[$_]))[0], [],
        "nothing is shown before it ends") for 0, 1;
    $end->("COMMIT");
    is_deeply(told($one, $before[0]), [map { "company.created $_" } $late[0],
        $late[2], $made[0]], "then all of the first, in their order");
    is_deeply(told($two, $before[1]), [map { "company.created $_" } $late[1],
        $made[1]], "and of the second");
};

subtest "13.4 cursors" => sub {
    my $w = logged();
    my $other = logged();
    my $c = $w->client;
    my @made = map { $w->company(name => "C$_")->{id} } 1 .. 7;
    my ($all, $end) = events($w, "*", 3);
    is_deeply([map { $_->{data}{id} } @$all], \@made, "page by page");
    my $r = $c->get("/api/v1/events", query => { page_size => 3 });
    is_deeply([map { $_->{data}{id} } @{$r->json->{data}}], [@made[0 .. 2]],
        "without cursor: from the beginning");
    my ($link) = ($r->header("Link") // "") =~ m{^<(.*)>; rel="next"$};
    is_deeply([map { $_->{data}{id} } @{$c->get($link)->json->{data}}],
        [@made[3 .. 5]], "Link is the next page");
    is($c->head("/api/v1/events?page_size=3")->header("Link"),
        $r->header("Link"), "5.1 HEAD has the Link, too");
    is($c->get("/api/v1/events?cursor=$end")->header("Link"), undef,
        "the last one has none");
    is_deeply(told($w, $end), [], "the end has nothing behind it");
    is(end_of($w), $end, "cursor=end names it");
    my $new = $w->company(name => "N")->{id};
    is_deeply(told($w, $end), ["company.created $new"],
        "who comes back with it misses nothing and sees nothing twice");
    for my $query (["cursor=x"], ["cursor=$end&page=2", "strict"],
            ["cursor=" . end_of($other)]) {
        my $r = $c->get("/api/v1/events?$query->[0]", headers =>
            { Prefer => "handling=" . ($query->[1] // "lenient") });
        error_is($r, 422, "validation_error", $query->[0]);
        like($r->json->{error}{details}[0]{message}, qr/, end or /,
            "with all that it may be") if $query->[0] !~ /page/;
    }
    is_deeply(told($other), [], "tenancy: another workspace sees none of it");
    my $reader = $c->with_key($w->make_key("read"));
    status_is($reader->get("/api/v1/events"), 200, "a key that reads");
};

# The ids of what the events of types TYPE say after CURSOR, in pages of SIZE,
# and the last cursor.
sub of_type {
    my ($c, $type, $size, $cursor) = @_;
    my @ids;

    while (1) {
        my $r = $c->get("/api/v1/events", query => { type => $type,
            page_size => $size, cursor => $cursor });
        status_is($r, 200, "type=$type") or return;
        push @ids, map { $_->{data}{id} } @{$r->json->{data}};
        $cursor = $r->json->{pagination}{next_cursor};
        return (\@ids, $cursor) if !$r->json->{pagination}{has_more};
    }
}

subtest "20.6 events of some types" => sub {
    my $w = logged();
    my $c = $w->client;
    my (@companies, @contacts);
    for (1 .. 5) {
        push @companies, $w->company->{id};
        push @contacts, $w->contact->{id};
    }
    $c->patch("/api/v1/contacts/$contacts[0]", { notes => "x" });
    for my $size (1, 2, 5, 100) {
        is_deeply((of_type($c, "contact.created", $size, "*"))[0], \@contacts,
            "one type, in pages of $size");
        is_deeply((of_type($c, "company.created, contact.updated", $size,
            "*"))[0], [@companies, $contacts[0]], "two");
    }
    my ($none, $end) = of_type($c, "pipeline_card.deleted", 5, "*");
    is_deeply($none, [], "one that there is none of");
    $c->patch("/api/v1/contacts/$contacts[1]", { notes => "x" });
    my ($new) = of_type($c, "contact.updated", 5, "*");
    is_deeply($new, [@contacts[0, 1]], "later ones follow");
    error_is($c->get("/api/v1/events", query => { cursor => $end }), 422,
        "validation_error", "a cursor is of its types", ["cursor"]);
    is_deeply((of_type($c, "pipeline_card.deleted", 5, $end))[0], [],
        "and goes on with them");
    my ($at) = of_type($c, "contact.updated", 5, "end");
    is_deeply($at, [], "cursor=end with a type");
    for my $bad ("contact.create", "contact", "contact.created,x", "", ",",
            "contact.created.x", "Contact.created") {
        error_is($c->get("/api/v1/events", query => { type => $bad }), 422,
            "validation_error", "type=$bad", ["type"]);
    }
    like($c->get("/api/v1/events?type=contact.*")->details->[0]{message},
        qr/^must be of contact\.created,.* message\.updated,/,
        "the message names those that there are");
};

subtest "20.6 a rare type costs no more than its page" => sub {
    my $w = logged();
    my $c = $w->client;
    my $wanted = sub { $w->company->{id} };
    my @made = $wanted->();
    sql($database, "INSERT INTO crmapi.event (id, workspace_id, type, fields)"
        . " SELECT crmapi.event_id(crmapi.event_next('" . $w->id . "')), '"
        . $w->id . "', 'contact.updated', json_build_object('id', n) FROM"
        . " generate_series(1, 25000) n");
    push @made, $wanted->();
    my ($cursor, $pages, @ids) = ("*", 0);
    while (1) {
        my $r = $c->get("/api/v1/events", query => { cursor => $cursor,
            type => "company.created" });
        push @ids, map { $_->{data}{id} } @{$r->json->{data}};
        $cursor = $r->json->{pagination}{next_cursor};
        $pages++;
        is(!!$r->header("Link"), !!$r->json->{pagination}{has_more},
            "Link is there while there is more");
        last if !$r->json->{pagination}{has_more} || $pages > 9;
    }
    is_deeply(\@ids, \@made, "all of it, once");
    is($pages, 3, "a page looks at 10,000 events");
    push @made, $wanted->();
    is_deeply((of_type($c, "company.created", 5, $cursor))[0], [$made[2]],
        "and its last cursor has nothing to look through again");
};

subtest "13.4 off: nothing is written" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $w->contact->{id};
    $c->patch("/api/v1/contacts/$id", { notes => "x" });
    message($w, "+49308");
    is(count_events($w), 0, "no row");
    error_is($c->get("/api/v1/events$_"), 409, "conflict",
        "20.6 GET /events$_: events are off")
        for "", "?cursor=end", "?type=contact.created&cursor=*";
    like($c->get("/api/v1/events")->json->{error}{message}, qr/events are off/i,
        "and says so");
    $w->log_on;
    like($w->ctl("workspace", "show", $w->id), qr/^events\s+on$/m, "show: on");
    is_deeply(told($w), [], "switched on: from now on");
    my $cursor = end_of($w);
    $c->patch("/api/v1/contacts/$id", { notes => "y" });
    is_deeply(told($w), ["contact.updated $id"], "and it is told");
    $w->ctl("workspace", "set", $w->id, "--events", "off");
    error_is($c->get("/api/v1/events?cursor=$cursor"), 409, "conflict",
        "switched off: the same");
    $c->patch("/api/v1/contacts/$id", { notes => "z" });
    is(count_events($w), 1, "nothing more is written");
    is(count_rows($w, "event_feed"), 0, "as if it had never been on");
    $w->log_on;
    error_is($c->get("/api/v1/events?cursor=$cursor"), 410, "gone",
        "and on again: there is a gap");
    is_deeply(told($w), [], "what was before is not in the log");
    for my $bad (["--events", "yes"], []) {
        my ($code) = crmapictl($database, "workspace", "set", $w->id, @$bad);
        is($code, 2, "workspace set @$bad: refused");
    }
};

subtest "13.4 on: when nobody writes any more who has not seen that" => sub {
    plan(skip_all => "Citus looks at the server of the workspace")
        if CrmTest::Citus::wanted();
    my $w = workspace($httpd);
    my $id = uuid();
    my $end = holding($database, "INSERT INTO crmapi.company (id, workspace_id,"
        . " bot_id, name) VALUES ('$id', '@{[$w->id]}', '@{[$w->agent]}', 'L')");
    my $on = CrmTest::Child->start(sub { $w->log_on; 1 });
    ok(wait_for(sub { sql($database, "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'PgSleep'
          AND query ~ 'event_log_wait'") }), "the command waits for a writer");
    is(scalar @{told($w)}, 0, "though the log is on");
    $end->("COMMIT");
    $on->result;
    is_deeply(told($w), [], "what it has written is not in the log");
    is($w->client->get("/api/v1/companies/$id")->data->{name}, "L",
        "but in the lists, which are read next");
};

subtest "13.4 the same table feeds webhooks" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $receiver = CrmTest::Receiver->new;
    $w->webhook($receiver->url("mine/200"), "contact.deleted",
        "contact.updated", "company.created");
    my $id = $w->contact->{id};
    is(count_events($w), 0, "a type that no endpoint wants is not written");
    $c->patch("/api/v1/contacts/$id", { notes => "x" });
    is(count_events($w), 1, "one that one wants is");
    error_is($c->get("/api/v1/events"), 409, "conflict",
        "20.6 GET /events needs events on, whatever endpoints want");
    $w->log_on;
    my $cursor = end_of($w);
    my $shown = $c->patch("/api/v1/contacts/$id", { notes => "y" })->data;
    $c->post("/api/v1/companies", { bot_id => $w->agent, name => "C" });
    $c->delete("/api/v1/contacts/$id");
    my $before = $c->get("/api/v1/events?cursor=$cursor")->body;
    $before = $c->get("/api/v1/events?cursor=$cursor")->body;
    $worker->once;
    is($c->get("/api/v1/events?cursor=$cursor")->body, $before,
        "an attempt changes nothing of it");
    my %sent = map { $_->{headers}{"webhook-id"} => $_->{body} }
        $receiver->requests("mine");
    is(scalar keys %sent, 4, "four webhooks");
    my ($events) = events($w, $cursor);
    is(scalar @$events, 3, "three events");
    for my $event (@$events) {
        my $id = $event->{id};
        my ($item) = $before =~ /\{"id":"$id",(.*?\}\})[,\]]/s;
        is("{$item", $sent{$id}, "$event->{type}: the very body of the webhook"
            . " with its id");
    }
    is_deeply($events->[0]{data}, $shown, "with the row as it was then");
    $receiver->stop;
};

subtest "13.4 what endpoints want is written, and no more; the log is its own" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $receiver = CrmTest::Receiver->new;
    my $written = sub { join " ", map { $_->[0] } sql($database, "SELECT type FROM
        crmapi.event WHERE workspace_id = '" . $w->id . "' ORDER BY id") };
    my $merge = sub { my ($from, $into) = map { $w->contact->{id} } 1, 2;
        status_is($c->post("/api/v1/contacts/$into/merge", { from => $from }),
            200, "merged");
        return $into };
    my ($one) = $w->webhook($receiver->url("one/200"), "contact.deleted");
    my $company = $w->company(name => "C")->{id};
    $c->delete("/api/v1/companies/$company");
    $merge->();
    is($written->(), "", "neither a company nor a contact that is merged is meant");
    my $gone = $w->contact->{id};
    sql($database, "INSERT INTO crmapi.contact_merged (workspace_id, id, merged_into)
        VALUES ('" . workspace($httpd, twin => 0)->id . "', '$gone', '" . uuid() . "')");
    $c->delete("/api/v1/contacts/$gone");
    is($written->(), "contact.deleted", "one that is deleted is, whatever another"
        . " workspace has merged");
    sql($database, "UPDATE crmapi.webhook_endpoint SET disabled_at = now()
        WHERE workspace_id = '" . $w->id . "'");
    $c->delete("/api/v1/contacts/" . $w->contact->{id});
    is($written->(), "contact.deleted", "not if its endpoint is disabled");
    $w->webhook($receiver->url("two/200"), "contact.merged");
    $merge->();
    is($written->(), "contact.deleted contact.merged", "a merge is, for who wants it");
    $w->log_on;
    is_deeply(told($w), [], "the log has nothing of that");
    my $cursor = end_of($w);
    my $into = $merge->();
    is(sql($database, "SELECT owner_id FROM crmapi.event WHERE workspace_id = '"
        . $w->id . "' AND type = 'contact.merged' ORDER BY id DESC LIMIT 1"), $into,
        "a merge is about the contact that is left, too");
    $w->webhook($receiver->url("three/200"), "contact.created");
    status_is($c->get("/api/v1/events?cursor=$cursor"), 200,
        "a new endpoint leaves it as it is");
    $receiver->stop;
};

subtest "13.4 old events are trimmed; a cursor before them is gone" => sub {
    my $w = logged();
    my $c = $w->client;
    my @made = map { $w->company(name => "C$_")->{id} } 1 .. 5;
    my ($first) = events($w);
    my @cursors = map { my $size = $_; $c->get("/api/v1/events",
        query => { page_size => $size })->json->{pagination}{next_cursor} }
        2, 3, 4;
    sql($database, "UPDATE crmapi.event SET created_at = now() - interval"
        . " '30 days 1 s' WHERE id IN (SELECT id FROM crmapi.event WHERE"
        . " workspace_id = '" . $w->id . "' ORDER BY id LIMIT 3)");
    my $end = end_of($w);
    sql($database, "DELETE FROM crmapi.upkeep WHERE task = 'deliveries'");
    $worker->once;
    is(count_events($w), 2, "kept 30 days");
    is_deeply(told($w), [map { "company.created $_" } @made[3, 4]],
        "the others are there");
    error_is($c->get("/api/v1/events?cursor=$cursors[0]"), 410, "gone",
        "a reader that had not read all of them");
    is_deeply(told($w, $cursors[1]), [map { "company.created $_" }
        @made[3, 4]], "one that had read them goes on");
    is_deeply(told($w, $end), [], "so does one at the end");
    $w->ctl("workspace", "delete", $w->id, "--yes");
    is(count_events($w), 0, "they go with their workspace");
};

subtest "13.4 a cursor of a later state than the database has is gone" => sub {
    my $w = logged();
    my $c = $w->client;
    my $add = sub { $w->company->{id} };
    $add->();
    $worker->once;
    my $before = end_of($w);
    my $number = sql($database, "SELECT last_value FROM crmapi.event_number");
    $add->() for 1 .. 3;
    my $cursor = end_of($w);
    is_deeply(told($w, $cursor), [], "a reader at the end");
    # as a backup or a standby without the last writes has it
    sql($database, "DELETE FROM crmapi.event WHERE id >"
        . " crmapi.event_bound($number);
        SELECT setval('crmapi.event_number', $number);
        UPDATE crmapi.instance SET history = 'x'");
    error_is($c->get("/api/v1/events?cursor=$cursor$_"), 410, "gone",
        "the same reader$_") for "", "&wait=5";
    is_deeply(told($w, $before), [], "one who had read less goes on");
    my $new = $add->();
    is_deeply(told($w, $before), ["company.created $new"], "and misses nothing");
    is_deeply(told($w, end_of($w)), [], "nor does one at the new end");
    $add->() for 1 .. 2;
    error_is($c->get("/api/v1/events?cursor=$cursor"), 410, "gone",
        "the first reader, when as many numbers were given again");
    $worker->once;      # it notes the other history
    error_is($c->get("/api/v1/events?cursor=$cursor"), 410, "gone",
        "and when that is forgotten");
    is(scalar @{told($w, $before)}, 3, "the other one goes on");
};

subtest "13.4 an event that was erased is not lost" => sub {
    my $w = logged();
    my $c = $w->client;
    $worker->once;
    my $id = $w->contact(first_name => "Ada")->{id};
    my $cursor = end_of($w);
    status_is($c->post("/api/v1/contacts/$id/erase", {}), 202, "erased");
    is_deeply(told($w, $cursor), [map { "contact.$_ $id" } "deleted", "erased"],
        "the reader that had seen it last goes on");
    my $end = end_of($w);
    sql($database, "UPDATE crmapi.instance SET history = 'x'");
    error_is($c->get("/api/v1/events?cursor=$cursor"), 410, "gone",
        "unless nobody can know, because the database has another history");
    is_deeply(told($w, $end), [], "not one whose event is there");
    sql($database, "UPDATE crmapi.instance SET history = crmapi.instance_history()");
};

subtest "docs/api.md: the program copies a workspace" => sub {
    my $w = logged(twin => 0);
    my $c = $w->client;
    my %own = (bot_id => $w->agent);
    my ($old, $gone) = map { $c->post("/api/v1/contacts", { %own,
        first_name => $_ })->data->{id} } qw(Old Gone);
    $c->post("/api/v1/activities", { contact_id => $gone,
        activity_type => "note" });
    my ($talk, $heard) = map { message($w, $_) } "+49307", "+49308";
    my ($double) = $w->contact->{id};
    my ($form) = $w->import_objects([{ object => "form", name => "F", %own }]);
    my ($filled) = $w->import_objects([{ object => "submission", form_id => $form,
        contact_id => $double }]);
    my $dir = $httpd->dir;
    my ($program) = grep { /copy\.py/ } documented("api.md", "python");
    write_file("$dir/copy.py", $program);
    local @ENV{qw(CRMAPI_KEY COPY_SLEEP)} = ($w->key, 0.1);
    my $pid = spawn(chdir => $dir, log => "$dir/copy.log", command =>
        ["python3", "copy.py", "http://127.0.0.1:" . $httpd->port,
        "$dir/copy.json"]);
    my $rows = sub { return (eval { $json->decode(read_file(
        "$dir/copy.json")) } // {})->{rows} };
    ok(wait_for($rows, 30), "it has read the lists")
        or diag(read_file("$dir/copy.log", ""));
    $c->patch("/api/v1/contacts/$old", { notes => "changed" });
    $c->delete("/api/v1/contacts/$gone");
    status_is($c->post("/api/v1/contacts/$old/merge", { from => $double }), 200,
        "merged");
    my $erased = $c->get("/api/v1/conversations/$heard")->data->{contact_id};
    $c->post("/api/v1/activities", { contact_id => $erased,
        activity_type => "note" });
    $c->post("/api/v1/pipeline-cards", { contact_id => $erased, title => "Ada",
        pipeline_stage_id => ($w->stages)[0] });
    status_is($c->post("/api/v1/contacts/$erased/erase", {}), 202, "erased");
    my $new = $c->post("/api/v1/companies", { %own, name => "N" })
        ->data->{id};
    ok(wait_for(sub { $rows->()->{company}{$new} }, 30), "it follows the log")
        or diag(read_file("$dir/copy.log", ""));
    end_process($pid, "TERM");
    my $copy = $rows->();
    is_deeply([sort map { $_->{id} } values %{$copy->{contact}}],
        [sort map { $_->{id} } @{$c->get("/api/v1/contacts")->data}],
        "the contacts that are there");
    is($copy->{contact}{$old}{notes}, "changed", "as they are");
    is($copy->{submission}{$filled}{contact_id}, $old,
        "20.5 a submission went to whom its contact was merged into");
    is_deeply($copy->{activity}, {}, "9.6 an activity went with its contact");
    is_deeply([values %{$copy->{message}}],
        $c->get("/api/v1/conversations/$talk/messages")->data, "messages");
    is_deeply([keys %{$copy->{conversation}}], [$talk],
        "nothing of who was erased is left");
    is_deeply([map { $_->{title} } values %{$copy->{pipeline_card}}],
        ["(erased)"], "but the card, without texts");
};

$httpd->stop;
done_testing;
