#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-sequences.t: the states of sequences and enrollments, what stops them, what is
# sent when and where, their jobs, and channels
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Rows;
use CrmTest::Schema;
use CrmTest::Session;

my ($w, $x) = (space(), space());

# ---- sequences ----------------------------------------------------------------

my @live = qw(generating pending_approval approved running);
my @ended = qw(stopped_reply stopped_user stopped_unsubscribed completed
    failed);
my @stops = qw(stopped_reply stopped_user stopped_unsubscribed failed);
my %moves = (
    generating => [qw(pending_approval approved), @stops],
    pending_approval => ["approved", @stops],
    approved => [qw(running completed), @stops],
    running => ["completed", @stops],
);

subtest "transitions (contract 11.7, 11.9)" => sub {
    my $s = space();
    my $template = make("sequence_template", %{$s->{in}}, name => "T");
    my $contact = make("contact", %{$s->{owned}});
    my $move = "UPDATE crmapi.enrollment SET generation_error = 'x', status = ";
    for my $from (@live, @ended) {
        my %may = map { $_ => 1 } @{$moves{$from} || []};
        for my $to (@live, @ended) {
            next if $to eq $from;
            my $sequence = make("sequence", %{$s->{owned}}, name => "S",
                template_id => $template);
            my $id = make("enrollment", %{$s->{in}}, contact_id => $contact,
                sequence_id => $sequence, %start,
                updated_at => "2100-01-01T00:00:00Z");
            sql($db, "$move'$_' WHERE id = '$id'") for @{$WAY{$from}};
            my $before = value("enrollment", $id, "updated_at");
            if (!$may{$to}) {
                refused("$move'$to' WHERE id = '$id'",
                    qr/does not go from $from to $to/, "not $from to $to");
                next;
            }
            sql($db, "$move'$to' WHERE id = '$id'");
            is(value("sequence", $sequence, "status"), $to eq "completed"
                || $to eq "failed" ? $to : $to =~ /^stopped/ ? "stopped"
                : "active", "$from to $to");
            is(value("enrollment", $id, "updated_at > '$before'"), "t",
                "$from to $to: updated_at moves forward (6.6)");
        }
    }
    refused(row("enrollment", id => uuid(), %{$s->{in}}, status => "approved",
        contact_id => $contact, contact_action => "created",
        sequence_id => make("sequence", %{$s->{owned}}, name => "S",
            template_id => $template)), qr/begins as generating/,
        "none begins elsewhere");
};

subtest "one sequence for an idempotency key (contract 11.2)" => sub {
    my $s = space();
    my $template = make("sequence_template", %{$s->{in}}, name => "T");
    my %row = (%{$s->{owned}}, name => "S", template_id => $template);
    make("sequence", %row, idempotency_key => "K");
    refused(row("sequence", id => uuid(), %row, idempotency_key => "K"),
        qr/unique/, "not a second");
    ok(make("sequence", %row, idempotency_key => "k"), "case counts");
    ok(make("sequence", %row) && make("sequence", %row), "none: as many as you like");
    make("sequence_template", %{$x->{in}}, id => $template, name => "T");
    ok(make("sequence", %{$x->{owned}}, name => "S", template_id => $template,
        idempotency_key => "K"), "another workspace has its own");
    refused(row("sequence", id => uuid(), %row, idempotency_key => $_),
        qr/check constraint/, length($_) . " characters") for "", "x" x 256;
};

# ---- what stops an enrollment, and what is sent -----------------------------------

# What step_take() says of the step number N of E at MOMENT, if its agent may send
# LIMIT a day: "send", "wait 2026-12-04 15:00:00".
sub take {
    my ($s, $e, $n, $moment, $limit, $wire) = @_;
    my ($id, $job) = leased($s, "sequence.step", enrollment_id => $e->{id},
        step_id => $e->{steps}[$n - 1]);
    return join " ", grep { defined } map { @$_ } sql($db, "SELECT verdict,
        until AT TIME ZONE 'UTC' FROM crmapi.step_take($job, '$e->{id}',
        '$e->{steps}[$n - 1]', '$moment', $limit, " . quoted($wire)
        . ")");
}

# Record that step number N of E was sent at MOMENT, under the relay's id ID.
sub sent {
    my ($s, $e, $n, $moment, $id) = @_;
    my (undef, $job) = leased($s, "sequence.step", enrollment_id => $e->{id},
        step_id => $e->{steps}[$n - 1]);
    sql($db, "UPDATE crmapi.enrollment_step SET status = 'sending' WHERE
        id = '$e->{steps}[$n - 1]'; SELECT crmapi.step_sent($job, '$e->{id}',
        '$e->{steps}[$n - 1]', '$moment', '" . ($id // "given") . "')");
    return;
}

subtest "what stops an enrollment stops it in each state that is live" => sub {
    my $s = space();
    my %stops = (
        "the primary e-mail" => ["stopped_unsubscribed",
            "crmapi.suppress('$s->{id}', 'ONE\@x.example', NULL, 'why')"],
        "another e-mail" => ["stopped_unsubscribed",
            "crmapi.suppress('$s->{id}', 'two\@X.example', NULL, 'why')"],
        "the primary number" => ["stopped_unsubscribed",
            "crmapi.suppress('$s->{id}', NULL, '+49 30 123456', 'why')"],
        "another number" => ["stopped_unsubscribed",
            "crmapi.suppress('$s->{id}', NULL, '+4930123457', 'why')"],
        "a reply" => ["stopped_reply", "crmapi.contact_replied('$s->{id}', c)"],
        "a user" => ["stopped_user",
            "crmapi.enrollment_stop('$s->{id}', e, 'why')"]);
    my %contact = (emails => [map { { email => "$_\@x.example",
            is_primary => $_ eq "one" ? true : false } } "one", "two"],
        phone_numbers => [map { { phone_number => "+49 (30) $_",
            is_primary => $_ == 123456 ? true : false } } 123456, 123457]);
    # whoever has the same addresses elsewhere
    my $elsewhere = space();
    my $stays = enrolled($elsewhere, contact => \%contact);
    for my $state (@live) {
        for my $what (sort keys %stops) {
            my ($becomes, $call) = @{$stops{$what}};
            my $e = enrolled($s, status => $state, contact => \%contact,
                steps => [{}]);
            sql($db, "SELECT " . $call =~ s/, c\)/, '$e->{contact}')/r
                =~ s/, e,/, '$e->{id}',/r);
            is(value("enrollment", $e->{id}, "status"), $becomes,
                "$state: $what");
            is(value("enrollment_step", $e->{steps}[0], "status"), "cancelled",
                "and its step is cancelled");
            sql($db, "DELETE FROM crmapi.suppression");
        }
    }
    is(value("enrollment", $stays->{id}, "status"), "generating",
        "not one of another workspace");
};

subtest "what was sent while its contact is deleted is recorded" => sub {
    my $s = space();
    for my $state (qw(stopped_user approved)) {
        my $e = enrolled($s, status => $state, steps => [{}]);
        my $let_go = holding($db, "DELETE FROM crmapi.contact
            WHERE workspace_id = '$s->{id}' AND id = '$e->{contact}'");
        my $job = CrmTest::Child->start(sub {
            eval { sent($s, $e, 1, "2026-12-04 10:00:00Z") };
            return $@;
        });
        wait_blocked($db, 1);
        $let_go->("COMMIT");
        is(join("", $job->result), "", "$state: without an error");
        is(value("enrollment_step", $e->{steps}[0], "status"), "sent", "as sent");
    }
};

subtest "a step's new conversation says from its beginning who it is with" => sub {
    my $s = space();
    sql($db, "SELECT crmapi.event_log('$s->{id}', true)");
    my $e = enrolled($s, status => "approved", steps => [
        { to_identifier => "a\@x.example", email_subject => "S" },
        { channel => "sms", to_identifier => "+49301", sms_body => "M",
            email_subject => undef }]);
    sent($s, $e, $_, "2026-12-04 10:00:00Z") for 1, 2;
    is_deeply([map { ref $_ ? $_->[0] : $_ } sql($db, "SELECT concat_ws('|',
        coalesce(v.fields ->> 'email', ''), coalesce(v.fields ->> 'phone_number', ''),
        coalesce(v.fields ->> 'subject', '')) FROM crmapi.event v WHERE
        v.workspace_id = '$s->{id}' AND v.type = 'conversation.created' ORDER BY v.id")],
        ["a\@x.example||S", "|+49301|"], "of a mail, of an SMS");
};

subtest "an agent's limit is for a day of its workspace's time zone" => sub {
    my $s = space();
    sql($db, "UPDATE crmapi.workspace SET time_zone = 'Asia/Tokyo'
        WHERE id = '$s->{id}'");
    my $one = sub { enrolled($s, status => "approved", steps => [{}], @_) };
    my ($first, $second, $third) = map { $one->() } 1 .. 3;
    my ($before, $after, $next) = ("2026-12-04 14:59:59.999",
        "2026-12-04 15:00:00", "2026-12-05 15:00:00");
    is(take($s, $first, 1, "$before Z", 1), "send", "one is sent");
    is(take($s, $second, 1, "$before Z", 1), "wait $after",
        "the next one waits for the midnight of Tokyo");
    is(take($s, $second, 1, "$after Z", 1), "send", "and is sent then");
    is(take($s, $third, 1, "$after Z", 1), "wait $next",
        "the next one waits for the next one");
    my $other = make("agent", %{$s->{in}}, name => "Other");
    is(take($s, $one->(agent => $other), 1, "$after Z", 1), "send",
        "another agent has its own limit");
    my $shut = { time_zone => "UTC", from => "17:00", to => "18:00",
        days => [1 .. 7] };
    is(take($s, $one->(pacing => $shut), 1, "2026-12-05 17:30:00 Z", 1), "send",
        "within a window");
    is(take($s, $one->(pacing => $shut), 1, "2026-12-05 17:45:00 Z", 1),
        "wait 2026-12-06 17:00:00", "the next one waits for the window, too");
    is(take($s, $one->(pacing => $shut), 1, "2026-12-07 16:00:00 Z", 1),
        "wait 2026-12-07 17:00:00", "a window that is closed");
    is(take($s, $third, 1, "2026-12-07 16:00:00 Z", 1), "send",
        "uses nothing of the limit up");
    # west of Greenwich the date of UTC is a later one
    my $west = space();
    sql($db, "UPDATE crmapi.workspace SET time_zone = 'America/Los_Angeles'
        WHERE id = '$west->{id}'");
    my ($evening, $late) = map { enrolled($west, status => "approved",
        steps => [{}]) } 1, 2;
    is(take($west, $evening, 1, "2026-12-04 20:00 Z", 1), "send", "at noon");
    is(take($west, $late, 1, "2026-12-05 $_ Z", 1), "wait 2026-12-05 08:00:00",
        "at $_ of UTC it is the same day") for "00:00:00", "07:59:59.999";
    is(take($west, $late, 1, "2026-12-05 08:00:00 Z", 1), "send", "at midnight");
    # a step that is tried on two days counts on both
    my ($again, $fourth) = map { $one->() } 1, 2;
    for my $day ("08", "08", "09") {
        is(take($s, $again, 1, "2026-12-$day 16:00:00 Z", 1), "send",
            "an attempt on day $day");
        sql($db, "UPDATE crmapi.enrollment_step SET status = 'scheduled'
            WHERE id = '$again->{steps}[0]'");
    }
    is(take($s, $fourth, 1, "2026-12-09 16:00:00 Z", 1),
        "wait 2026-12-10 15:00:00", "it counts on each day");
};

subtest "a step that was not sent: what becomes of it" => sub {
    my $s = space();
    # status of the enrollment, whether it is tried again: the step, the
    # enrollment, the job
    for (["approved", "'1 min'", "scheduled", "approved", "ready"],
            ["running", "'1 min'", "scheduled", "running", "ready"],
            ["stopped_user", "'1 min'", "cancelled", "stopped_user", "done"],
            ["completed", "'1 min'", "cancelled", "completed", "done"],
            ["approved", "NULL", "failed", "failed", "done"],
            ["stopped_reply", "NULL", "failed", "stopped_reply", "done"]) {
        my ($status, $after, @becomes) = @$_;
        my $e = enrolled($s, status => $status, steps => [{
            status => "sending" }]);
        my ($id, $job) = leased($s, "sequence.step", enrollment_id => $e->{id},
            step_id => $e->{steps}[0]);
        sql($db, "SELECT crmapi.step_failed($job, '$e->{id}', '$e->{steps}[0]',
            'no', $after)");
        is_deeply([value("enrollment_step", $e->{steps}[0], "status"),
            value("enrollment", $e->{id}, "status"), value("job", $id, "state")],
            \@becomes, "$status, after $after");
    }
};

subtest "what the end of an enrollment leaves, and what it says" => sub {
    my $s = space();
    my $other = enrolled($s, status => "approved", steps => [{}]);
    my $job = sub {
        my ($e, $step) = @_;
        return scalar sql($db, row("job", %{$s->{in}}, kind => "sequence.step",
            payload => { enrollment_id => $e->{id}, $step ? (step_id => $step)
                : () }) =~ s/;\n$/ RETURNING id/r);
    };
    my $others = $job->($other, $other->{steps}[0]);
    # how it ends: its step that is being sent, stop_reason, generation_error
    for (["sending - -", "nothing that lives", ""],
            ["sending why -", "enrollment_stop", "'why'"],
            ["sending reply -", "contact_replied", ""],
            ["failed - why", "enrollment_failed", "'why'"]) {
        my ($is, $by, $because) = @$_;
        my $e = enrolled($s, status => "approved", steps => [
            { status => "sending" }, {}]);
        my ($sending, $waits) = @{$e->{steps}};
        my ($sends, $later, $asks) = map { $job->($e, $_) } $sending, $waits, undef;
        my (undef, $lease) = leased($s,
            "sequence.step", enrollment_id => $e->{id});
        my $call = $by eq "enrollment_stop" ? "'$s->{id}', '$e->{id}', $because"
            : $by eq "contact_replied" ? "'$s->{id}', '$e->{contact}'"
            : "$lease, '$e->{id}', $because";
        my $ends = $by =~ /_/;
        sql($db, "SELECT crmapi.$by($call)") if $ends;
        is(join(" ", value("enrollment_step", $sending, "status"),
            value("enrollment", $e->{id}, "coalesce(stop_reason, '-') || ' ' ||
                CASE WHEN status = 'failed' THEN generation_error ELSE '-' END")),
            $is, $by);
        is(value("enrollment_step", $waits, "status"),
            $ends ? "cancelled" : "scheduled", "$by: the next step");
        my @states = map { value("job", $_, "state") } $sends, $later, $asks;
        is("@states", $by eq "enrollment_failed" ? "cancelled cancelled cancelled"
            : $ends ? "ready cancelled cancelled" : "ready ready ready",
            "$by: the job of what is being sent is left to the worker");
    }
    is(value("job", $others, "state"), "ready", "another one's is");
};

subtest "17.5 who cannot or must not be sent to is suppressed, by any channel" => sub {
    my $s = space();
    for (["email", "no\@x.example", "bounced"], ["sms", "+49301", "unsubscribed"],
            ["voice", "+49302", "bounced"], ["sms", undef, "bounced"]) {
        my ($channel, $to, $because) = @$_;
        my $e = enrolled($s, status => "approved", steps => [{ status => "sending",
            channel => $channel, to_identifier => $to }]);
        my (undef, $job) = leased($s,
            "sequence.step", enrollment_id => $e->{id},
            step_id => $e->{steps}[0]);
        sql($db, "SELECT crmapi.step_refused($job, '$e->{id}', '$e->{steps}[0]',
            'no', '$because')");
        is(sql($db, "SELECT string_agg(address || ' ' || reason, ',') FROM
            crmapi.suppression"), $to ? "$to $because" : undef,
            "$channel: " . ($to // "no address"));
        is(value("enrollment_step", $e->{steps}[0], "status"), "failed",
            "$channel: the step has failed");
        sql($db, "DELETE FROM crmapi.suppression");
    }
};

subtest "who is asked to review an enrollment" => sub {
    my ($s, $other) = (space(), space());
    my %admin = map { $_->{id} => make("admin", %{$_->{in}},
        email => "boss\@x.example") } $s, $other;
    my $e = enrolled($s);
    my (undef, $job) = leased($s, "sequence.step", enrollment_id => $e->{id});
    sql($db, "SELECT crmapi.enrollment_generated($job, '$e->{id}',
        '[{\"channel\": \"sms\", \"sms_body\": \"x\", \"delay_seconds\": 0}]', '{}',
        now())");
    is_deeply([sql($db, "SELECT workspace_id, payload ->> 'admin_id' FROM
        crmapi.job WHERE kind = 'sequence.review'")],
        [[$s->{id}, $admin{$s->{id}}]], "the admins of its workspace");
};

subtest "a page approves all that it showed, and nothing else" => sub {
    my $s = space();
    my @steps = ({}, { channel => "sms", sms_body => "M" }, { channel => "voice",
        voice_objective => "O", voice_script => "V" });
    my $e = enrolled($s, status => "pending_approval", steps => \@steps);
    my $other = enrolled($s, status => "pending_approval", steps => [{}]);
    my $act = sub {
        my ($seen, $action, @edits) = @_;
        return sql($db, "SELECT crmapi.review_act('$s->{id}', '$e->{id}',
            '$seen', '$action', " . quoted(\@edits) . ", '$s->{bot}', '::1')");
    };
    my $digest = sub { scalar sql($db, "SELECT crmapi.review_digest('$s->{id}',
        '$e->{id}')") };
    for (["email_subject", 1], ["email_body", 1], ["sms_body", 2],
            ["voice_objective", 3], ["voice_script", 3], ["to_identifier", 1]) {
        my ($column, $n) = @$_;
        my $seen = $digest->();
        sql($db, "UPDATE crmapi.enrollment_step SET $column = 'changed'
            WHERE id = '$e->{steps}[$n - 1]'");
        is($act->($seen, $_), "changed", "$column changed: no $_")
            for "approve", "save";
    }
    is($act->($digest->(), "save", { step => $other->{steps}[0],
        subject => "mine" }), "pending_approval", "what it shows is saved");
    is(value("enrollment_step", $other->{steps}[0], "email_subject"), "S",
        "no step of another enrollment");
    is(value("enrollment", $e->{id}, "status"), "pending_approval",
        "nothing was approved");
};

# The conversation of STEP's message.
sub talk_of {
    my ($step) = @_;
    return scalar sql($db, "SELECT conversation_id FROM crmapi.message
        WHERE step_id = '$step'");
}

subtest "which conversation a step that was sent is a message of" => sub {
    my $s = space();
    my $agent = make("agent", %{$s->{in}}, name => "Other");
    my $now = "2026-12-04 10:00:00Z";
    my %not = ("another channel's" => { type => 3 },
        "another agent's" => { bot_id => $agent },
        "one that is over" => { active => false },
        "an archived one" => { archived => true },
        "a deleted one" => { deleted => true, deleted_at => $now },
        "a teammate's" => { internal => true },
        "a visitor's" => { visitor_id => "v" },
        "one that its source names" => { thread => "t" });
    for my $what (undef, sort keys %not) {
        my $e = enrolled($s, status => "approved", steps => [{}, {}]);
        my $talk = make("conversation", %{$s->{owned}}, type => 4,
            contact_id => $e->{contact}, unanswered => true,
            %{$not{$what // ""} || {}});
        sent($s, $e, 1, $now);
        my $its = talk_of($e->{steps}[0]);
        if (defined $what) {
            isnt($its, $talk, "not $what");
            ok($its, "but a new one");
            next;
        }
        is($its, $talk, "the contact's open one");
        is(value("conversation", $talk, "unanswered"), "f", "which it answers");
        sql($db, "UPDATE crmapi.conversation SET active = false, archived = true,
            last_message = 'Later', last_message_at = '2026-12-06Z',
            unanswered = true WHERE id = '$talk'");
        sent($s, $e, 2, "2026-12-05 10:00:00Z");
        is(talk_of($e->{steps}[1]), $talk, "the next step stays in it");
        is_deeply([map { @$_ } sql($db, "SELECT active, last_message,
            last_message_at = '2026-12-06Z', unanswered FROM crmapi.conversation
            WHERE id = '$talk'")], ["t", "Later", "t", "t"], "which is open again;"
            . " what was said later is still the last, and waits for an answer");
    }
    my $e = enrolled($s, status => "approved", steps => [{}, { channel => "sms",
        to_identifier => "+49301", sms_body => "M" }, {}]);
    sent($s, $e, $_, $now) for 1, 2;
    my ($mail, $text) = map { talk_of($_) } @{$e->{steps}};
    isnt($text, $mail, "each channel has its own");
    sql($db, "UPDATE crmapi.conversation SET deleted = true, deleted_at = now()
        WHERE id = '$mail'");
    sent($s, $e, 3, $now);
    isnt(talk_of($e->{steps}[2]), $mail, "not one that was deleted meanwhile");
    $e = enrolled($s, status => "approved", steps => [{}, {},
        { email_body => "x" x 300 }]);
    my $old = make("conversation", %{$s->{owned}}, type => 4, active => true,
        contact_id => $e->{contact}, email => "own\@x.example", subject => "Own");
    my $state = sub { value("enrollment", $e->{id}, "status") };
    my $number = sub { value("agent", $s->{bot},
        "number_of_conversations") + 0 };
    my $before = $number->();
    sent($s, $e, 1, $now);
    is($number->(), $before, "no conversation more: it was there");
    is(value("conversation", $old, "concat_ws(' ', email, subject)"),
        "own\@x.example Own", "with whom and about what it is stays so");
    is($state->(), "approved", "after the first step");
    sql($db, "UPDATE crmapi.conversation SET deleted = true, deleted_at = now()
        WHERE id = '$old'");
    sent($s, $e, 2, $now);
    is($number->(), $before + 1, "one more: it is new");
    is($state->(), "running", "after the second one");
    sql($db, "UPDATE crmapi.conversation SET deleted = false, deleted_at = NULL
        WHERE id = '$old'");
    sent($s, $e, 3, $now);
    my $last = talk_of($e->{steps}[2]);
    is($state->(), "completed", "after the last one");
    is($last, talk_of($e->{steps}[1]), "it stays in that of the step before");
    is(value("conversation", $last, "length(last_message)"), 255,
        "which has the begin of what it says");
};

subtest "what is generated for an enrollment that is not waiting for it" => sub {
    my $s = space();
    for my $status (qw(stopped_user failed pending_approval approved)) {
        my $e = enrolled($s, status => $status);
        my ($job, $lease) = leased($s, "sequence.generate",
            enrollment_id => $e->{id});
        is(sql($db, "SELECT crmapi.enrollment_generated($lease, '$e->{id}', "
            . quoted([{ channel => "email", to_identifier => "p\@x.example",
                email_subject => "S", email_body => "B" }]) . ", '{}', now())"),
            $status, "$status: it says so");
        is(join(" ", value("enrollment", $e->{id}, "status"), value("job", $job,
            "state")), "$status done", "$status: it stays so");
        is(sql($db, "SELECT count(*) FROM crmapi.enrollment_step
            WHERE enrollment_id = '$e->{id}'"), 0, "$status: no step is added");
    }
};

subtest "a step without a delay is due at once, behind no other job" => sub {
    my $s = space();
    my $now = "statement_timestamp()";
    my @steps = map { { channel => "email", to_identifier => "p\@x.example",
        email_subject => $_, email_body => "B", delay_seconds => 0 } } 1 .. 3;
    my %due;
    # a time has a part of a millisecond, and half of them are rounded up
    for (1 .. 12) {
        my $e = enrolled($s);
        my (undef, $lease) = leased($s, "sequence.generate",
            enrollment_id => $e->{id});
        my $ready = sub { scalar sql($db, "SELECT is_due FROM crmapi.job
            WHERE state = 'ready' AND payload ->> 'enrollment_id' = '$e->{id}'") };
        sql($db, "UPDATE crmapi.sequence SET auto_approve = true
            WHERE id = '$e->{sequence}'");
        sql($db, "SELECT crmapi.enrollment_generated($lease, '$e->{id}', "
            . quoted(\@steps) . ", '{}', $now)");
        $due{generated}{$ready->()}++;
        for my $n (1, 2) {
            my ($job, $step) = map { @$_ } sql($db, "UPDATE crmapi.job SET
                state = 'leased', attempts = 1, leased_by = 'me', leased_until =
                now() + interval '1 h' WHERE state = 'ready' AND
                payload ->> 'enrollment_id' = '$e->{id}'
                RETURNING id, payload ->> 'step_id'");
            sql($db, "UPDATE crmapi.enrollment_step SET status = 'sending'
                WHERE id = '$step'");
            sql($db, "SELECT crmapi.step_sent('$s->{id}', $job, 'me', 1,
                '$e->{id}', '$step', $now, 'given')");
            $due{"sent $n"}{$ready->()}++;
        }
    }
    is_deeply(\%due, { map { $_ => { t => 12 } } "generated", "sent 1", "sent 2" },
        "it need not be marked as due");
};

subtest "a step that was sent while its enrollment ended" => sub {
    my $s = space();
    for my $status (qw(stopped_user failed)) {
        my $e = enrolled($s, status => $status, steps => [{}, {}]);
        sent($s, $e, 1, "2026-12-04 10:00:00Z", "x" x 2000);
        is(value("enrollment_step", $e->{steps}[0], "status || ' '
            || length(provider_id)"), "sent 1000", "$status: it was sent, whatever"
            . " its provider calls it");
        ok(talk_of($e->{steps}[0]), "$status: which a conversation shows");
        is(value("enrollment", $e->{id}, "status"), $status, "$status: it stays so");
        is(sql($db, "SELECT count(*) FROM crmapi.job WHERE state = 'ready'
            AND payload ->> 'enrollment_id' = '$e->{id}'"), 0,
            "$status: nothing follows");
    }
};

subtest "a step that was returned: it and its message say why" => sub {
    my $s = space();
    # status of the step, the address that is meant: the step, the enrollment
    for (["sent", undef, "failed", "failed"],
            ["sent", "no\@x.example", "failed", "running"],
            ["skipped", undef, "skipped", "failed"]) {
        my ($status, $address, @becomes) = @$_;
        my $e = enrolled($s, status => "running", steps => [{ status => $status,
            sent_at => $status eq "sent" ? "2026-12-04Z" : undef }]);
        my $talk = make("conversation", %{$s->{owned}}, type => 4);
        my $said = make("message", %{$s->{in}}, conversation_id => $talk,
            role => "assistant", step_id => $e->{steps}[0], status => "sent",
            metadata => { subject => "S" });
        sql($db, "SELECT crmapi.step_returned('$s->{id}', '$e->{steps}[0]', "
            . quoted($address) . ", 'why')");
        is_deeply([value("enrollment_step", $e->{steps}[0], "status"),
            value("enrollment", $e->{id}, "status")], \@becomes,
            "$status, " . ($address // "no address"));
        is_deeply([map { @$_ } sql($db, "SELECT status, metadata ->> 'subject',
            metadata ->> 'error' FROM crmapi.message WHERE id = '$said'")],
            ["failed", "S", "why"], "its message");
    }
};

subtest "a step is taken and postponed if it is its enrollment's, and waits" => sub {
    my $s = space();
    my ($e, $other) = map { enrolled($s, status => "running", steps => [{},
        { status => "sent", sent_at => "2026-12-04Z" }]) } 1, 2;
    my $now = "2026-12-04 10:00:00Z";
    is(take($s, { %$e, steps => $other->{steps} }, 1, $now, 0), "gone",
        "another one's step");
    is(take($s, $other, 1, $now, 0), "send", "its own");
    for (0, 1) {
        my (undef, $job) = leased($s, "sequence.step", enrollment_id => $e->{id},
            step_id => $e->{steps}[$_]);
        sql($db, "SELECT crmapi.step_wait($job, '$e->{id}', '$e->{steps}[$_]',
            '2027-01-01Z')");
    }
    is_deeply([map { value("enrollment_step", $_, "scheduled_for = '2027-01-01Z'")
        } @{$e->{steps}}], ["t", undef], "what was sent is not postponed");
};

subtest "a step is not taken if its enrollment is not approved, or who is suppressed" => sub {
    my $s = space();
    my $now = "2026-12-04 10:00:00Z";
    for my $status (qw(generating pending_approval approved running)) {
        is(take($s, enrolled($s, status => $status, steps => [{}]), 1, $now, 0),
            $status =~ /^(?:approved|running)$/ ? "send" : "gone", $status);
    }
    # the address as the step has it, and as the relay gets it
    for my $suppressed ("as\@step.example", "as\@wire.example", undef) {
        sql($db, "SELECT crmapi.suppress('$s->{id}', '$suppressed', NULL, 'bounced')")
            if $suppressed;
        my $e = enrolled($s, status => "approved", steps => [{
            to_identifier => "as\@step.example" }]);
        is(take($s, $e, 1, $now, 0, "as\@wire.example"), $suppressed ? "stopped"
            : "send", ($suppressed // "nobody") . " is suppressed");
        is(value("enrollment", $e->{id}, "status"), $suppressed
            ? "stopped_unsubscribed" : "approved", "what becomes of it");
        sql($db, "DELETE FROM crmapi.suppression WHERE workspace_id = '$s->{id}'");
    }
};

subtest "11.11 a step that the journal has was sent, unless it is free" => sub {
    my $s = space();
    my $sent_at = "2026-12-03 09:08:07.006Z";
    for (["sent", "past", "sent", 1], ["unknown", "past", "failed", 0],
            ["free", "send", "sending", 0]) {
        my ($state, $verdict, $status, $when) = @$_;
        my $e = enrolled($s, status => "approved", steps => [{}, {}]);
        sql($db, row("past_send", %{$s->{in}}, enrollment_id => $e->{id}, part => "1",
            state => $state, sent_at => $sent_at, provider_id => "P"));
        is(take($s, $e, 1, "2026-12-04 10:00:00Z", 0), $verdict, $state);
        is(value("enrollment_step", $e->{steps}[0], "status"), $status, "it is $status");
        is(value("enrollment_step", $e->{steps}[0], "sent_at = '$sent_at'
            AND provider_id = 'P'"), $when ? "t" : undef, "when, and as what");
    }
};

subtest "18.4 the thread of a step's mail: those before to the same address" => sub {
    my $s = space();
    my %old = (status => "sent", sent_at => "2026-12-04Z");
    my %a = (to_identifier => "a\@x.example");
    my $e = enrolled($s, status => "running", steps => [
        { %a, %old, message_id => "<1\@x>", provider_id => "<1\@relay>" },
        { %a, %old, message_id => "<2\@x>", status => "failed" },
        { %old, message_id => "<3\@x>", to_identifier => "b\@x.example" },
        { %a, %old, message_id => "<4\@x>", provider_id => "4" },
        { %a }, { %a, %old, message_id => "<6\@x>" }]);
    my $other = enrolled($s, status => "running", steps => [
        { %a, %old, message_id => "<7\@x>" }]);
    my ($name, $token, $thread) = map { @$_ } sql($db, "SELECT n[1], n[2], n[3]
        FROM crmapi.step_names('$s->{id}', '$e->{steps}[4]', 'x.example') n");
    is($thread, "<1\@x> <1\@relay> <4\@x>", "the thread");
    like($name, qr/^<\S+\@x\.example>$/, "its own name");
    my $again = sql($db, "SELECT crmapi.step_names('$s->{id}', '$e->{steps}[4]',
        'y.example') = ARRAY['$name', '$token', '$thread']");
    is($again, "t", "which stays the same");
};

# ---- jobs and channels -------------------------------------------------------------

subtest "a job wakes whoever listens, if it is due within two seconds" => sub {
    my $new = sub { row("job", %{$w->{in}}, kind => "k.x", run_at =>
        \"now() + interval '$_[0]'") =~ s/;\n\z//r };
    my $id = sql($db, $new->("1 h") . " RETURNING id");
    my $mine = "WHERE workspace_id = '$w->{id}' AND id = $id";
    # what is done, what listeners are told, and whether the job may be claimed
    my @does = ([$new->("0 s"), "k"], [$new->("2 s"), ""], [$new->("2.001 s"), "none"],
        map { ["UPDATE crmapi.job SET $_->[0] $mine", @$_[1, 2]] }
        ["run_at = now()", "k", "t"],
        ["run_at = now() + interval '1 h'", "none", "f"],
        ["run_at = now() + interval '2 s'", "", "f"],
        ["state = 'leased', leased_by = 'x', leased_until = now(), run_at = now()",
            "none", "f"],
        ["state = 'ready', leased_by = NULL, leased_until = NULL", "k", "t"],
        ["attempts = 2", "none", "t"], ["state = 'done'", "none", "t"]);
    my ($code, $out, $err) = run_program(command => ["psql", "-XAtq", "-d",
        postgres()->conninfo($db, "postgres")], stdin => "LISTEN crmapi_job;\n"
        . join "", map { "\\echo next\n$_->[0];\n" . ($_->[2]
            ? "SELECT 'due ' || is_due FROM crmapi.job $mine;\n" : "") } @does);
    my (undef, @is) = split /^next\n/m, $out;
    is($err, "", "all is done");
    for my $n (0 .. $#does) {
        my ($told) = $is[$n] =~ /"crmapi_job"( with payload "k")?/
            ? $1 ? "k" : "" : "none";
        my ($due) = $is[$n] =~ /^due (\w)/m;
        is_deeply([$told, $due], [@{$does[$n]}[1, 2]],
            $does[$n][0] =~ s/ (?:$mine|.*VALUES)//r);
    }
};

subtest "19.4 an event tells who waits for one of its workspace, and nobody else" => sub {
    my $other = space();
    sql($db, "SELECT crmapi.event_log('$_->{id}', true)") for $w, $other;
    my $waits = "SELECT pg_advisory_lock_shared(uuid_hash_extended('$w->{id}', 1));\n";
    # a company of a workspace, written while there is somebody who waits, or not
    my $company = sub { "BEGIN; " . row("company", id => uuid(), %{$_[0]{owned}},
        name => "C") . "COMMIT;\n" };
    my $waiting = sub { sql($db, "SELECT count(*) FROM pg_locks l
        JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
        WHERE l.locktype = 'advisory'") };
    my $told = sub {
        my ($before, $s) = @_;
        open(my $waiter, "|-", "psql", "-XAtq", "-o", "/dev/null", "-d",
            postgres()->conninfo($db, "postgres")) or die "psql: $!\n";
        $waiter->autoflush(1);
        print $waiter $before;
        wait_for($waiting) if $before;
        my (undef, $out) = run_program(command => ["psql", "-XAtq", "-d",
            postgres()->conninfo($db, "postgres")], stdin => "LISTEN crmapi_bell;\n"
            . $company->($s) . "SELECT 1;\n");
        close $waiter;
        return $out =~ /"crmapi_bell" with payload "([^"]*)"/ ? $1 : "none";
    };
    is($told->("", $w), "none", "nobody waits: nothing is told");
    is($told->($waits, $other), "none", "not of another workspace");
    is($told->($waits, $w), $w->{id}, "somebody waits: it is told");
    ok(wait_for(sub { !$waiting->() }), "no lock is left");
};

# The table of channels in C and what SQL knows of them.
subtest "channels: C and SQL agree" => sub {
    my $source = read_file("$CrmTest::TOP/mod_crmapi/model/crm_channel.c");
    my $header = read_file("$CrmTest::TOP/mod_crmapi/model/crm_channel.h");
    my %code = $header =~ /^#define CRM_CODE_(\w+) "(\d+)"/mg;
    my %way = $header =~ /^#define CRM_WAY_(\w+) "(\w+)"/mg;
    my %rows = $source =~ /^    \[CRM_CHANNEL_(\w+)\] = \{(.*?)^    \},/msg;
    my %sent;

    is(keys %rows, 5, "five channels");
    is(join(" ", sort map { $rows{$_} =~ /\.code = CRM_CODE_$_,/ ? $code{$_} : () }
        keys %rows), "1 2 3 4 5", "each with its code");
    for my $name (sort keys %rows) {
        my ($by) = $rows{$name} =~ /\.answer = CRM_ANSWER_(SMS|EMAIL)/;
        my ($sends) = $rows{$name} =~ /\.way = CRM_WAY_(\w+)/;

        is(as(undef, "SELECT crmapi.answer_channel('$code{$name}')") || "",
            $by ? lc $by : "", "$name: what sends an answer");
        next unless $sends;
        $sent{$way{$sends}} = 1;
        is(as(undef, "SELECT crmapi.step_type('$way{$sends}')"), $code{$name},
            "$name: the type of a conversation by $way{$sends}");
    }
    for my $check (["enrollment_step", "channel"],
        ["sequence_template", "allowed_channels"]) {
        my $text = as(undef, "SELECT pg_get_constraintdef(oid) FROM pg_constraint
            WHERE conname = '$check->[0]_$check->[1]_check'");

        is_deeply([sort grep { $sent{$_} } $text =~ /(\w+)/g],
            [sort keys %sent], "$check->[0].$check->[1]: $text");
    }
};

done_testing();
