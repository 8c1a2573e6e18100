# SPDX-License-Identifier: Apache-2.0
# 37-merge.t: POST /contacts/{id}/merge (contract 20.5). $CRM_MERGES is the number
# of contacts that are merged beside writers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use JSON::PP ();

my $MERGES = $ENV{CRM_MERGES} || 24;
my $json = JSON::PP->new->utf8->canonical;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);

sub merge {
    my ($w, $into, $from, %more) = @_;
    return $w->client->post("/api/v1/contacts/$into/merge",
        { from => $from }, %more);
}

# All events of W.
sub events {
    my ($w) = @_;
    my ($cursor, @events) = ("*");
    while (1) {
        my $r = $w->client->get("/api/v1/events?page_size=100&cursor=$cursor");
        push @events, @{$r->json->{data}};
        $cursor = $r->json->{pagination}{next_cursor};
        return @events if !$r->json->{pagination}{has_more};
    }
}

# RESPONSE says that a contact is INTO now.
sub gone_is {
    my ($response, $into, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    error_is($response, 410, "gone", $name);
    is($response->header("Location"), "/api/v1/contacts/$into",
        "$name: where it is now");
    is($response->json->{error}{message}, "The contact was merged into $into",
        "$name: and the message says it");
}

# Each path below the contact ID answers that it is INTO now.
sub paths_are_gone {
    my ($w, $id, $into) = @_;
    my $c = $w->client;
    my $path = "/api/v1/contacts/$id";
    gone_is($c->get($path), $into, "GET");
    is($c->head($path)->status, 410, "HEAD");
    is($c->head($path)->header("Location"), "/api/v1/contacts/$into",
        "HEAD: where it is now");
    gone_is($c->patch($path, { notes => "x" }), $into, "PATCH");
    gone_is($c->patch($path, {}), $into, "PATCH of nothing");
    gone_is($c->patch($path, { notes => 1 }), $into, "2 before 422");
    gone_is($c->delete($path), $into, "DELETE");
    gone_is($c->get("$path/$_"), $into, "GET $_")
        for qw(activities conversations activities?cursor=*);
    gone_is(merge($w, $id, $into), $into, "a merge into it");
    my $template = $w->template([{ email_subject => "x", email_body => "y" }]);
    for my $case (["/activities", activity_type => "note"],
        ["/sequences/start", template_id => $template]) {
        my ($at, @members) = @$case;
        my $r = $c->post("/api/v1$at", { contact_id => $id, @members });
        error_is($r, 422, "validation_error", "POST $at", ["contact_id"]);
        is($r->json->{error}{details}[0]{message}, "was merged into $into",
            "POST $at: where it is now");
    }
}

subtest "20.5 lists are united, empty fields filled" => sub {
    my $w = workspace($httpd);
    my ($company, $stage) = ($w->company(name => "C")->{id}, ($w->stages)[0]);
    my %texts = map { $_ => "b $_" } qw(last_name job_title lead_source
        contact_type address_line1 address_line2 city state postal_code country
        linkedin_url notes external_id company);
    my $from = $w->contact(%texts, first_name => "B", deal_value => 12.5,
        company_id => $company, pipeline_stage_id => $stage,
        tags => ["b", "both", "A c"],
        custom_fields => { b => 1, both => 2, none => 3 },
        emails => ["b\@x.org", "Ada\@x.org", "a.c\@x.org"],   # the first is primary
        phone_numbers => ["+4930777777", "+49 30 901820", "+4930111111"]);
    my $into = $w->contact(first_name => "A", city => "a city", notes => "",
        tags => ["both", "a"], custom_fields => { a => 1, both => 1,
            none => undef }, emails => ["a\@x.org", "ada\@X.org"],
        phone_numbers => ["+4930901820"]);
    my $r = merge($w, $into->{id}, $from->{id});
    my $is = { %$into, %texts, city => "a city", deal_value => 12.5,
        company_id => $company, pipeline_stage_id => $stage,
        tags => ["both", "a", "b", "A c"],
        custom_fields => { a => 1, b => 1, both => 1, none => 3 },
        emails => [email("a\@x.org", 1), email("ada\@X.org", 0),
            email("b\@x.org", 0), email("a.c\@x.org", 0)],
        phone_numbers => [phone("+4930901820", 1), phone("+4930777777", 0),
            phone("+4930111111", 0)],
        updated_at => sub { $_[0] gt $into->{updated_at} } };
    record_is($r, $is, "what there is stays, what is new comes behind");
    like($r->header("ETag"), qr/./, "13.2 an ETag");
    my $now = $w->shown("contacts", $into->{id});
    is_deeply($r->data, $now, "as a GET shows it");
    paths_are_gone($w, $from->{id}, $into->{id});
    record_is(merge($w, $into->{id}, $from->{id}), $now, "twice: 200");
    is(total_of($w->client, "/contacts"), 1, "one is counted");
    is($w->client->get("/api/v1/contacts?external_id=b%20external_id")
        ->data->[0]{id}, $into->{id}, "20.3 the external_id finds it");
    is($w->client->get("/api/v1/contacts?email=B\@x.org")->data->[0]{id},
        $into->{id}, "and so does each address");
    list_is($w->client->get("/api/v1/contacts?tags=b"), [$now], "and each tag");
    my $bare = $w->contact;
    my $same = $w->contact(first_name => "S");
    record_is(merge($w, $same->{id}, $bare->{id}), $same,
        "6.6 updated_at stays if nothing is new");
    my $list = $w->contact(emails => ["l\@x.org"]);
    is_deeply(merge($w, $same->{id}, $list->{id})->data->{emails},
        [email("l\@x.org", 1)], "an empty list becomes the other");
    is(scalar(() = sql($database, "SELECT * FROM crmapi.counter_verify()")), 0,
        "the totals are right");
};

subtest "20.5 everything of the other moves" => sub {
    my $w = workspace($httpd, twin => 0);
    my $c = $w->client;
    $w->log_on;
    my ($into, $from) = map { $w->contact(emails => ["p$_\@x.org"]) } 1, 2;
    my @own = (contact_id => $from->{id});
    my $company = $w->company(name => "C")->{id};
    my $card = $c->post("/api/v1/pipeline-cards", { title => "T",
        pipeline_stage_id => ($w->stages)[0], @own })->data;
    my @notes = map { $c->post("/api/v1/activities", { activity_type => "note",
        @own, @$_ })->data } [], [company_id => $company];
    my ($form) = $w->import_objects([{ object => "form", name => "F",
        bot_id => $w->agent }]);
    my ($talk, $filled, $template) = $w->import_objects([
        { object => "conversation", bot_id => $w->agent, type => 1, @own },
        { object => "submission", form_id => $form, @own },
        { object => "sequence_template", name => "T", bot_id => $w->agent,
            allowed_channels => ["email"] }]);
    my %enrollment;
    for my $status (qw(generating approved running completed)) {
        my ($id) = enroll($w, $template, $from->{id});
        my %way = (running => ["approved"], completed => ["approved"]);
        change($w, "enrollment", $id, status => $_)
            for grep { $_ ne "generating" } @{$way{$status} || []}, $status;
        add_step($w, $id, 1, "email", status => "scheduled",
            to_identifier => "p2\@x.org");
        $enrollment{$status} =
            $c->get("/api/v1/sequences/enrollments/$id")->data;
    }
    my ($mine) = enroll($w, $template, $into->{id});
    is(merge($w, $into->{id}, $from->{id})->status, 200, "merged");
    my @moved = (contact_id => $into->{id});
    record_is($c->get("/api/v1/pipeline-cards/$card->{id}"), { %$card, @moved,
        updated_at => $TIME }, "its card");
    record_is($c->get("/api/v1/activities/$_->{id}"), { %$_, @moved,
        updated_at => $TIME }, "its activity") for @notes;
    is($c->get("/api/v1/conversations/$talk")->data->{contact_id},
        $into->{id}, "its conversation");
    is($c->get("/api/v1/submissions/$filled")->data->{contact_id},
        $into->{id}, "its submission");
    for my $status (sort keys %enrollment) {
        my $was = $enrollment{$status};
        record_is($c->get("/api/v1/sequences/enrollments/$was->{id}"),
            { %$was, @moved, updated_at => $TIME },
            "its enrollment goes on ($status)");
    }
    is($c->get("/api/v1/sequences/enrollments?contact_id=$into->{id}")
        ->json->{pagination}{total}, 5,
        "beside its own");
    is($c->get("/api/v1/sequences/enrollments/$mine")->data->{status},
        "generating", "which goes on, too");
    is($w->shown("contacts", $into->{id})->{last_contacted_at},
        $notes[1]{created_at}, "9.4 it was contacted last when the other was");
    my @told = grep { $_->{type} =~ /merged|deleted/
        || ($_->{data}{contact_id} // "") eq $into->{id} } events($w);
    is_deeply([sort map { "$_->{type} $_->{data}{id}" } @told], [sort
        "contact.merged $from->{id}", "pipeline_card.updated $card->{id}",
        "conversation.updated $talk",
        map({ "activity.updated $_->{id}" } @notes),
        map({ "enrollment.updated $_->{id}" } values %enrollment),
        "enrollment.updated $mine"],
        "13.4 its events say contact.merged, and what has moved");
    my ($event) = grep { $_->{type} eq "contact.merged" } @told;
    is_deeply($event->{data}, { id => $from->{id}, merged_into => $into->{id},
        merged_at => $event->{data}{merged_at} }, "with both ids");
    like($event->{data}{merged_at}, qr/^\d{4}-.*\.\d{3}Z\z/, "and the time");
    is(count_rows($w, "activity") + count_rows($w, "pipeline_card"), 3,
        "nothing is there twice");
};

subtest "20.5 for ever: chains, and the end of the other" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @ids = map { $w->contact(first_name => "C$_")->{id} } 0 .. 3;
    is(merge($w, $ids[1], $ids[0])->status, 200, "the first into the second");
    is(merge($w, $ids[2], $ids[1])->status, 200, "that into the third");
    gone_is($c->get("/api/v1/contacts/$ids[$_]"), $ids[2],
        "number $_ is the third") for 0, 1;
    is(merge($w, $ids[2], $ids[0])->status, 200, "it was merged before: 200");
    error_is(merge($w, $ids[3], $ids[0]), 422, "validation_error",
        "but not into another", ["from"]);
    is($c->delete("/api/v1/contacts/$ids[2]")->status, 204, "it is deleted");
    gone_is($c->get("/api/v1/contacts/$ids[$_]"), $ids[2],
        "number $_ is still gone") for 0, 1;
    error_is($c->get("/api/v1/contacts/$ids[2]"), 404, "not_found",
        "what was deleted is not found");
    error_is($c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $ids[0] }), 422, "validation_error",
        "6.8 a reference to one that is gone", ["contact_id"]);
    list_is($c->get("/api/v1/activities?contact_id=$ids[0]"), [],
        "6.8 a filter by it");
};

subtest "14.4 an erase takes what was merged, too" => sub {
    my $w = workspace($httpd, twin => 0);
    $w->log_on;
    my ($into, $from) = map { $w->contact(first_name => "Secret$_",
        emails => ["erase$_\@x.org"])->{id} } 1, 2;
    is(merge($w, $into, $from)->status, 200, "merged");
    $w->ctl("contact", "erase", $from, "--workspace", $w->id);  # either id
    is(count_rows($w, "contact_merged"), 0, "nothing is noted");
    my @events = events($w);
    unlike($json->encode(\@events), qr/Secret|erase\d\@/,
        "no event names either of them");
    is_deeply([sort map { $_->{type} eq "contact.erased" ? $_->{data}{id} : () }
        @events], [sort $into, $from],
        "13.4 an event for each says that it was erased");
    # one that the events of other contacts lead to, too
    my ($third, $fourth) = map { $w->contact(first_name => "S$_",
        emails => ["s\@x.org"])->{id} } 1, 2;
    is(merge($w, $third, $fourth)->status, 200, "merged with the same address");
    is($w->client->post("/api/v1/contacts/$third/erase", {})->status, 202, "erased");
    is_deeply([grep({ $_ eq $fourth } map { $_->{type} eq "contact.erased"
        ? $_->{data}{id} : () } events($w))], [$fourth], "told once of each");
    error_is($w->client->get("/api/v1/contacts/$_"), 404, "not_found",
        "nothing is found") for $into, $from;
};

subtest "20.5 what is refused changes nothing" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my ($into, $from) = map { $w->contact(first_name => "N$_") } 1, 2;
    my $path = "/api/v1/contacts/$into->{id}/merge";
    my $foreign = workspace($httpd)->contact->{id};
    for my $case (["none", {}, "from"], ["null", { from => undef }, "from"],
        ["a number", { from => 1 }, "from"], ["malformed", { from => "x" },
        "from"], ["unknown", { from => uuid() }, "from"],
        ["of another workspace", { from => $foreign }, "from"],
        ["of another resource", { from => $w->agent }, "from"],
        ["itself", { from => $into->{id} }, "from"],
        ["a field too many", { from => $from->{id}, to => 1 }, "to"],
        ["two errors", { from => "x", to => 1 }, "from", "to"],
        ["no object", [], ""]) {
        my ($name, $body, @fields) = @$case;
        error_is($c->post($path, $body), 422, "validation_error", $name,
            \@fields);
    }
    error_is($c->post($path, undef, body => "{"), 400, "bad_request",
        "6.1 broken JSON");
    error_is($c->post("/api/v1/contacts/$_/merge", { from => $from->{id} }), 404,
        "not_found", "the path's is unknown") for uuid(), "x", $foreign;
    error_is($c->post("/api/v1/contacts/" . uuid() . "/merge", { from => "x" }),
        404, "not_found", "2 which goes before 422");
    my %much = (emails => sub { "$_[0]\@x.org" },
        phone_numbers => sub { "+4930" . (100000 + $_[0]) },
        tags => sub { "t$_[0]" });
    for my $list (sort keys %much) {
        my $most = $list eq "tags" ? 100 : 50;
        my $some = sub { my @numbers = @_;
            return $w->contact($list => [map { $much{$list}->($_) } @numbers])
                ->{id} };
        my @two = ($some->(1 .. $most - 9), $some->(200 .. 209));
        error_is(merge($w, @two), 422, "validation_error",
            "6.3 both have one too many of $list", ["from"]);
        is($c->get("/api/v1/contacts/$_")->status, 200, "both stay") for @two;
        status_is(merge($w, $two[0], $some->(1, 300 .. 308)), 200,
            "6.3 $most $list: what both have counts once");
    }
    # with a blank behind each comma and colon it is more
    my %many = map { ("k$_", { n => [$_ + 0, 1] }) } 1 .. 9;
    my $left = 65_536 - length $json->encode({ %many, pad => "" });
    for my $size ($left + 1, $left) {
        my @large = map { $w->contact(custom_fields => $_)->{id} } \%many,
            { pad => "x" x $size };
        my $r = merge($w, @large);
        status_is($r, 200, "6.3 custom_fields of exactly 64 KiB"), last
            if $size == $left;
        error_is($r, 422, "validation_error",
            "6.3 custom_fields that would be too large", ["from"]);
    }
    record_is($c->get("/api/v1/contacts/$_->{id}"), $_, "as it was")
        for $into, $from;
    is(count_rows($w, "contact_merged"), 4, "only what was merged is noted");
};

subtest "13.1 with an Idempotency-Key" => sub {
    my $w = workspace($httpd);
    my @ids = map { $w->contact(tags => ["t$_"])->{id} } 1 .. 3;
    my @key = (headers => { "Idempotency-Key" => "k" });
    error_is(merge($w, $ids[0], uuid(), @key), 422, "validation_error",
        "what is refused does not use it up", ["from"]);
    my $first = merge($w, @ids[0, 1], @key);
    is($first->status, 200, "merged");
    is(merge($w, @ids[0, 2])->status, 200, "and another one");
    my $again = merge($w, @ids[0, 1], @key);
    is($again->header("Idempotent-Replayed"), "true", "a replay");
    is_deeply($again->data, $first->data, "has the stored answer");
    error_is(merge($w, @ids[0, 2], @key), 422, "validation_error",
        "with another body", ["Idempotency-Key"]);
};

# What 16 writers and 4 mergers do to PAIRS of contacts: [into, from] each. Returns
# for each process what was answered 2xx.
sub write_beside_merges {
    my ($w, $template, @pairs) = @_;
    return in_processes(20, sub {
        my ($n) = @_;
        my $c = $w->client;
        my %done = map { $_ => [] } qw(activity card enrollment merged odd);
        my $note = sub {
            my ($kind, $r, $id) = @_;
            push @{$done{$kind}}, $id // $r->data->{id} if $r->status =~ /^2/;
            push @{$done{odd}}, $r->status . " " . $r->text
                if $r->status !~ /^(?:20[0124]|410|422)$/;
        };
        for my $pair ($n % 2 ? @pairs : reverse @pairs) {
            my ($into, $from) = @$pair;
            if ($n > 16) {
                my $r = merge($w, $into, $from);
                $note->("merged", $r, $from);
                next;
            }
            for my $id ($from, $into) {
                $note->("activity", $c->post("/api/v1/activities",
                    { activity_type => "note", contact_id => $id,
                        title => "n$n" })) if $n % 4 == 0;
                $note->("card", $c->post("/api/v1/pipeline-cards", { title =>
                    "n$n", pipeline_stage_id => ($w->stages)[0],
                    contact_id => $id })) if $n % 4 == 1;
                my $r = $n % 4 == 2 ? $c->post("/api/v1/sequences/start",
                    { template_id => $template, contact_id => $id }) : undef;
                $note->("enrollment", $r, eval { $r->data->{enrollment_id} })
                    if $r;
                $c->request("PATCH", "/api/v1/contacts/$id", headers => {
                    "Content-Type" => "application/merge-patch+json" },
                    body => "{\"custom_fields\": {\"n$n\": $n}}")
                    if $n % 4 == 3;
            }
        }
        return \%done;
    });
}

subtest "20.5 beside 16 writers: nothing is lost, nothing is there twice" => sub {
    my $w = workspace($httpd);
    $w->log_on;
    my $template = $w->template;
    my @pairs = map { my $n = $_; [map { $w->contact(emails =>
        ["$_$n\@x.org"])->{id} } "a", "b"] } 1 .. $MERGES;
    my %all;
    for my $done (write_beside_merges($w, $template, @pairs)) {
        push @{$all{$_}}, @{$done->{$_}} for keys %$done;
    }
    is_deeply($all{odd}, [], "each request is done or refused");
    is(scalar keys %{{ map { $_ => 1 } @{$all{merged}} }}, $MERGES,
        "all are merged");
    my %into = map { reverse @$_ } @pairs;
    my %table = (activity => "activity", card => "pipeline_card",
        enrollment => "enrollment");
    for my $kind (sort keys %table) {
        my %is = map { @$_ } sql($database, "SELECT id, contact_id FROM"
            . " crmapi.$table{$kind} WHERE workspace_id = '" . $w->id . "'");
        is_deeply([sort keys %is], [sort @{$all{$kind}}],
            "$kind: each that was answered is there, once");
        is_deeply([grep { !defined $is{$_} || $into{$is{$_}} } sort keys %is],
            [], "$kind: each is of the contact that is left");
    }
    is(count_rows($w, "enrollment", "status <> 'generating'"), 0,
        "each enrollment goes on");
    is(total_of($w->client, "/contacts"), $MERGES, "half of the contacts");
    is(scalar(() = sql($database, "SELECT * FROM crmapi.counter_verify()")), 0,
        "the totals are right");
    gone_is($w->client->get("/api/v1/contacts/$_->[1]"), $_->[0], "gone")
        for @pairs[0 .. 2];
    is_deeply([map { scalar @{$w->shown("contacts", $_->[0])->{emails}} }
        @pairs], [map { 2 } @pairs], "both addresses are there, once");

    my (%copy, %told);
    for my $event (events($w)) {
        my ($kind, $what) = split /\./, $event->{type};
        my $id = $event->{data}{id};
        $told{$event->{type}}{$id}++;
        if ($what =~ /deleted|merged/) { delete $copy{$kind}{$id} }
        else { $copy{$kind}{$id} = $event->{data} }
    }
    is_deeply($told{"contact.merged"}, { map { $_->[1] => 1 } @pairs },
        "contact.merged once for each");
    my $c = $w->client;
    for my $kind (["contact", "contacts"], ["activity", "activities"],
            ["pipeline_card", "pipeline-cards"],
            ["enrollment", "sequences/enrollments"]) {
        my @differ;
        for my $id (sort keys %{$copy{$kind->[0]}}) {
            my $is = $c->get("/api/v1/$kind->[1]/$id")->data;
            my $mine = $copy{$kind->[0]}{$id};
            delete $_->{last_contacted_at} for $is, $mine;
            push @differ, $id if $json->encode($is) ne $json->encode($mine);
        }
        is_deeply(\@differ, [], "$kind->[0]: the copy by events is the same");
        is(scalar keys %{$copy{$kind->[0]}},
            total_of($c, "/$kind->[1]"), "and as large");
    }
};

subtest "20.5 crosswise, in rings, beside upserts and deletes" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @ids = map { $w->contact(emails => ["r$_\@x.org"],
        external_id => "x$_")->{id} } 0 .. 11;
    my @got = in_processes(8, sub {
        my ($n) = @_;
        my %odd;
        for my $i (0 .. $#ids) {
            my ($one, $other) = @ids[$i, ($i + ($n % 3) + 1) % @ids];
            my $r = $n < 6 ? merge($w, $n % 2 ? ($one, $other)
                    : ($other, $one))
                : $n == 6 ? $w->client->post("/api/v1/contacts/upsert", {
                    bot_id => $w->agent, contacts => [map { { emails =>
                        ["r$_\@x.org"], external_id => "x$_" } } $i,
                        ($i + 1) % @ids] })
                : $w->client->delete("/api/v1/contacts/$ids[-1]");
            $odd{$r->status}++ if $r->status !~ /^(?:200|204|404|410|422)$/;
        }
        return \%odd;
    });
    is_deeply(\@got, [map { {} } @got], "each is done or refused");
    my %left = map { $_->{id} => 1 } @{$c->get("/api/v1/contacts?page_size=100")
        ->data};
    my @dangling = grep { !$left{$_->[1]} && $_->[1] ne $ids[-1] }
        sql($database, "SELECT id, merged_into FROM crmapi.contact_merged"
            . " WHERE workspace_id = '" . $w->id . "'");
    is_deeply(\@dangling, [], "each Location leads to one that is there");
    is(scalar(() = sql($database, "SELECT * FROM crmapi.counter_verify()")), 0,
        "the totals are right");
};

done_testing;
