# SPDX-License-Identifier: Apache-2.0
# CrmTest/Data.pm: whole records with all fields of the specification's tables,
# to compare answers with, and functions that several tests of resources share
#
#     record_is($r, contact_of($w, first_name => "Ann"), "a contact is made");
#
# Every field is compared, with its JSON type; a pattern (qr//) or a function
# replaces a value that is unknown.
package CrmTest::Data;
use strict;
use warnings;
use Exporter qw(import);
use JSON::PP ();
use POSIX ();
use Test::More ();
use CrmTest;
use CrmTest::Child;
use CrmTest::Rows;
use CrmTest::Spec;

our @EXPORT = qw($TIME $ID record_is records_are value_is list_is page_of
    agent_of contact_of company_of pipeline_of stage_of card_of activity_of
    conversation_of message_of form_of submission_of enrollment_of step_of
    states_of email phone in_processes insert change enroll add_step total_of
    api_sql count_rows same_answer same_text triggers_kept_up);

# A time as contract 9.1 has it, and an id that the API made.
our $TIME = qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
our $ID = qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

my $json = JSON::PP->new->canonical->allow_nonref;

# --- comparing ----------------------------------------------------------------

# Add to OUT the differences between GOT and WANTED, each with its PATH.
sub differences {
    my ($out, $path, $got, $wanted) = @_;

    if (ref $wanted eq "Regexp" || ref $wanted eq "CODE") {
        my $fits = ref $wanted eq "CODE" ? $wanted->($got)
            : defined $got && !ref $got && "$got" =~ $wanted;
        push @$out, "$path: got " . text_of($got) . ", not as " . (ref $wanted
            eq "CODE" ? "the test asks for" : "$wanted") unless $fits;
    }
    elsif (ref $wanted eq "HASH" && ref $got eq "HASH") {
        for my $name (sort keys %{{ %$wanted, %$got }}) {
            my $at = $path eq "" ? $name : "$path.$name";
            push(@$out, "$at: is missing"), next if !exists $got->{$name};
            push(@$out, "$at: got " . text_of($got->{$name})
                . ", not to be there"), next if !exists $wanted->{$name};
            differences($out, $at, $got->{$name}, $wanted->{$name});
        }
    }
    elsif (ref $wanted eq "ARRAY" && ref $got eq "ARRAY") {
        push @$out, "$path: got " . @$got . " items, expected " . @$wanted
            . ": " . text_of($got) if @$got != @$wanted;
        for my $i (0 .. (@$got < @$wanted ? $#$got : $#$wanted)) {
            differences($out, "${path}[$i]", $got->[$i], $wanted->[$i]);
        }
    }
    elsif (text_of($got) ne text_of($wanted)) {
        push @$out, "$path: got " . text_of($got) . ", expected "
            . text_of($wanted);
    }
}

sub text_of {
    my ($value) = @_;
    return eval { $json->encode($value) } // "$value";
}

# VALUE is WANTED, member by member, type by type.
sub value_is {
    my ($got, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @out;

    differences(\@out, "", $got, $wanted);
    my $ok = Test::More::ok(!@out, $name);
    Test::More::diag("  $_") for @out;
    return $ok;
}

# RESPONSE is STATUS (default 200) and {"data": WANTED}, and nothing else.
sub record_is {
    my ($response, $wanted, $name, $status) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;

    return unless status_is($response, $status || 200, "$name: status");
    return value_is($response->json, { data => $wanted }, $name);
}

# RESPONSE is 200 and {"data": [WANTED ...]} without pagination.
sub records_are {
    my ($response, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return record_is($response, $wanted, $name);
}

# The pagination of a list whose TOTAL rows are PAGE_SIZE (25) on a page.
sub page_of {
    my ($total, $page, $page_size) = @_;
    $page_size ||= 25;
    return { page => $page || 1, page_size => $page_size, total => $total,
        total_pages => POSIX::ceil($total / $page_size) };
}

# RESPONSE is 200 and the whole list WANTED, in this order, on one page.
sub list_is {
    my ($response, $wanted, $name, %pagination) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;

    return unless status_is($response, 200, "$name: status");
    return value_is($response->json, { data => $wanted,
        pagination => { %{page_of(scalar @$wanted)}, %pagination } }, $name);
}

# The total that a list of PATH reports.
sub total_of {
    my ($client, $path, %query) = @_;
    return $client->get("/api/v1$path", query => { %query, page_size => 1 })
        ->json->{pagination}{total};
}

# What triggers keep beside the rows of DATABASE is what the rows say: totals, the
# times of contacts, and what is indexed of their custom fields.
sub triggers_kept_up {
    my ($database, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($kept, $is) = map { "SELECT workspace_id, updated_at, id, $_->[1]"
        . " FROM crmapi.$_->[0]" } ["contact_change", "indexed_fields"],
        ["contact", "crmapi.fields_indexed(workspace_id, custom_fields)"];
    Test::More::is_deeply([sql($database, "SELECT kind, parent, counted, actual"
        . " FROM crmapi.counter_verify()"), sql($database, "($kept EXCEPT $is)"
        . " UNION ALL ($is EXCEPT $kept) LIMIT 10")], [], $name);
}

# Two RESPONSES are the same to the byte, but for their date, their request id,
# what the budget has left (contract 2.1), what their query had that is ignored,
# and the connection's 100th request.
sub same_answer {
    my ($response, $other, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @texts = map { my $r = $_; join "\n", $r->status, $r->{reason},
        (map { "$_->[0]: $_->[1]" } grep { $_->[0] !~
            /^(Date|Connection|X-Request-Id|X-Ignored-Parameters
                |X-RateLimit-(Remaining|Reset))$/xi }
            @{$r->{headers}}), "", $r->body } $response, $other;
    return Test::More::is($texts[0], $texts[1], $name);
}

# The text GOT is WANTED; where it is not, the first line that differs is shown.
sub same_text {
    my ($got, $wanted, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @got = split /\n/, $got, -1;
    my @wanted = split /\n/, $wanted, -1;
    my ($i) = grep { ($got[$_] // "\0") ne ($wanted[$_] // "\0") }
        0 .. ($#got > $#wanted ? $#got : $#wanted);

    return Test::More::ok(1, $name) unless defined $i;
    Test::More::ok(0, $name);
    Test::More::diag("  $_->[0]: ", $_->[1] // "(nothing)")
        for ["got     ", $got[$i]], ["expected", $wanted[$i]];
    return 0;
}

# --- records ------------------------------------------------------------------

sub email { { email => $_[0], is_primary => $_[1] ? true : false } }
sub phone { { phone_number => $_[0], is_primary => $_[1] ? true : false } }

# A record of SCHEMA with its defaults: null if allowed, empty lists and
# objects. MEMBERS override it. A test gives all other values.
sub record_of {
    my ($schema, %members) = @_;
    my %what = @{$CrmTest::Spec::FIELDS{$schema}};
    my %usual = (id => $ID, created_at => $TIME, updated_at => $TIME,
        submitted_at => $TIME);
    my %record;

    for my $name (keys %what) {
        my %is = map { $_ => 1 } CrmTest::Spec::words($what{$name});
        if ($is{null}) { $record{$name} = undef }
        elsif ($is{array} || $is{"string[]"}) { $record{$name} = [] }
        elsif ($is{object}) { $record{$name} = {} }
        elsif ($is{boolean}) { $record{$name} = false }
        elsif ($usual{$name}) { $record{$name} = $usual{$name} }
    }
    return { %record, %members };
}

# The same for what belongs to workspace W, and to its agent.
sub owned_of {
    my ($schema, $w, %members) = @_;
    my %owner = (workspace_id => $w->id, bot_id => $w->agent);
    my %there = map { $_ => 1 } CrmTest::Spec::names($schema);

    return record_of($schema,
        (map { $_ => $owner{$_} } grep { $there{$_} } keys %owner), %members);
}

sub contact_of { owned_of("Contact", @_) }
sub company_of { owned_of("Company", @_) }
sub form_of { owned_of("Form", @_) }
sub conversation_of { owned_of("Conversation", shift, active => true, @_) }
sub card_of { record_of("PipelineCard", order_index => 0, @_) }
sub activity_of { record_of("Activity", @_) }
sub message_of { record_of("Message", content => "", @_) }
sub submission_of { record_of("Submission", @_) }

sub agent_of {
    my ($w, %members) = @_;
    return owned_of("Agent", $w, id => $w->agent, is_agent => true,
        enabled => true, knowledge_count => 0, number_of_conversations => 0,
        %members);
}

sub pipeline_of {
    my ($w, %members) = @_;
    return owned_of("Pipeline", $w, id => $w->pipeline, %members);
}

sub stage_of {
    my ($w, %members) = @_;
    return owned_of("PipelineStage", $w, pipeline_id => $w->pipeline,
        %members);
}

sub enrollment_of {
    return record_of("Enrollment", sequence_id => $ID, contact_id => $ID,
        status => "generating", @_);
}

sub step_of {
    my ($channel, %members) = @_;
    my %own = (voice => ["voice_objective", "voice_script"],
        email => ["email_subject", "email_body"], sms => ["sms_body"]);
    return { channel => $channel, status => "scheduled",
        (map { $_ => undef } qw(scheduled_for sent_at to_identifier),
            @{$own{$channel}}), %members };
}

# "email sent, sms scheduled": the steps of ENROLLMENT.
sub states_of {
    my ($enrollment) = @_;
    return join ", ", map { "$_->{channel} $_->{status}" }
        @{$enrollment->{steps}};
}

# --- what the API cannot make ---------------------------------------------------

# Insert a row of MEMBERS, which no import line can have, into crmapi.TABLE.
sub insert {
    my ($w, $table, %members) = @_;
    my %row = (workspace_id => $w->id, id => uuid(), %members);

    sql($w->{database}, row_of($table, %row));
    return $row{id};
}

# An enrollment of CONTACT in a sequence of TEMPLATE, at "generating". Returns
# its id and the sequence's.
sub enroll {
    my ($w, $template, $contact, %members) = @_;
    my $sequence = insert($w, "sequence", name => "Sequence",
        bot_id => $w->agent, template_id => $template);
    return (insert($w, "enrollment", sequence_id => $sequence,
        contact_id => $contact, contact_action => "created", %members),
        $sequence);
}

# Set COLUMNS of the row ID of crmapi.TABLE, as a worker would.
sub change {
    my ($w, $table, $id, %columns) = @_;
    sql($w->{database}, "UPDATE crmapi.$table SET " . join(", ",
        map { "$_ = " . quoted($columns{$_}) } sort keys %columns)
        . " WHERE workspace_id = '" . $w->id . "' AND id = '$id'");
}

sub add_step {
    my ($w, $enrollment, $order, $channel, %members) = @_;
    return insert($w, "enrollment_step", enrollment_id => $enrollment,
        sort_order => $order, channel => $channel, %members);
}

# How many rows of crmapi.TABLE workspace W has, where CONDITION.
sub count_rows {
    my ($w, $table, $condition) = @_;
    return sql($w->{database}, "SELECT count(*) FROM crmapi.$table"
        . " WHERE workspace_id = '" . $w->id . "'"
        . ($condition ? " AND ($condition)" : "")) + 0;
}

# Run SQL as the role that the API has. Returns (exit code, output, words).
sub api_sql {
    my ($database, $sql) = @_;
    return run_program(command => ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1",
        "-v", "VERBOSITY=verbose", "-c", $sql,
        postgres()->conninfo($database, $CrmTest::Postgres::API)]);
}

# --- several clients at once ------------------------------------------------------

# Run CODE->(n) for n from 1 to COUNT, each in its own process. All start at the
# same time. Returns their values (as JSON) in order. If one fails, the test
# fails.
sub in_processes {
    my ($count, $code) = @_;

    pipe(my $gate, my $release) or die "CrmTest: pipe: $!\n";
    my @children = map { my $n = $_; CrmTest::Child->start(sub {
        close $release;
        sysread $gate, my $byte, 1;
        return $code->($n);
    }) } 1 .. $count;
    close $gate;
    close $release;
    return map { $_->result } @children;
}

1;
