#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-sequences.t: the states of sequences and enrollments, their jobs, and channels
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Schema;

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
    my %way = (generating => [], pending_approval => ["pending_approval"],
        approved => ["approved"], running => [qw(approved running)],
        completed => [qw(approved completed)],
        map { $_ => [$_] } @stops);
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
            sql($db, "$move'$_' WHERE id = '$id'") for @{$way{$from}};
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

subtest "a job wakes whoever listens" => sub {
    my ($code, $out, $err) = run_program(command => ["psql", "-X", "-q", "-d",
        postgres()->conninfo($db, "postgres")], stdin => "LISTEN crmapi_job;\n"
        . row("job", %{$w->{in}}, kind => "k") . "SELECT 1;\n");
    like($out, qr/notification "crmapi_job"/, "notified") or diag($err);
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
