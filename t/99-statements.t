#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 99-statements.t: each statement that the programs sent while the other tests
# of this run were at work concerns one workspace, but for the exceptions below
# (schema/README, One workspace)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Statements;

plan(skip_all => "only a run of the whole suite has statements to judge")
    unless $ENV{CRM_TEST_RECORDS};
plan(skip_all => "no python3-pglast: build/setup --tests installs it")
    unless parser();

my $key = "a key, a token or a link leads to its workspace";
my $channel = "a channel finds its workspace by an address or an id";
my $shared = "a shared statement has a set of values for each of its requests";
my $upkeep = "upkeep and the queue go over all workspaces";
my $operator = "the operator asks for all workspaces, or by an id alone";
my $migration = "a migration goes over all workspaces";
my $time = "a change has the time at which it got its row";
# Who may send what, and why: the fault, the statement's beginning.
my @EXCEPTIONS = (
    # crm_sql_batch() makes them
    [api => qr/^(?:set|correlated) /, qr/SELECT answer\.\*, batch\.n FROM /,
        $shared],
    [api => qr/^(?:set |correlated |volatile set_config)/,
        qr/WITH batch AS MATERIALIZED /, $shared],
    [api => qr/^volatile set_config$/, qr/UPDATE crmapi\.api_key t SET last_used_at /,
        "its commit does not wait; no distributed database gets it"],
    [api => qr/^volatile clock_timestamp$/, qr/(?:UPDATE|WITH (?:w|batch)) /,
        $time],
    [api => qr/^returning (?:activity|contact|suppression)$/,
        qr/(?:WITH (?:w|batch) .*)?UPDATE crmapi\.(?:contact|company) /s,
        "a PATCH answers with what is computed from other rows"],
    [api => qr/^across (?:key_look_up|intake_key_find|key_roll)$/, qr/SELECT /,
        $key],
    [api => qr/^across token_(?:signed|sign_page)$/, qr/SELECT /, $key],
    [api => qr/^unbound (?:agent|workspace|workspace_hold)$/,
        qr/(?:SELECT a\.workspace_id, a\.|WITH found AS )/,
        $channel],
    [api => qr/^unbound (?:form|workspace|workspace_hold)$/,
        qr/SELECT f\.workspace_id, f\./,
        $channel],
    [api => qr/^unbound (?:conversation|workspace|workspace_hold)$/,
        qr/SELECT w\.id, c\.id FROM crmapi\.workspace w, /, $channel],

    [worker => qr/^across (?:conversation_idle|(?:audit|event|intake|original)_trim)$/,
        qr/SELECT /, $upkeep],
    [worker => qr/^across usage_(?:due|trim)$/, qr/SELECT /, $upkeep],
    [worker => qr/^unbound workspace$/, qr/SELECT w\.id FROM crmapi\.workspace w /,
        $upkeep],
    [worker => qr/^across (?:counter_\w+|idempotency_trim)$/, qr/SELECT /,
        $upkeep],
    [worker => qr/^across (?:job_\w+|worker_beat|past_add)$/, qr/SELECT /,
        $upkeep],
    [worker => qr/^unbound (?:job|send_count)$/, qr/WITH gone AS \(DELETE /,
        $upkeep],
    [worker => qr/^unbound (?:job|workspace_hold)$/, qr/WITH few AS /,
        "metrics of the queue"],
    [worker => qr/^unbound (?:agent|workspace|workspace_hold)$/,
        qr/WITH found AS /, $channel],
    [worker => qr/^across token_sign_link$/, qr/SELECT /, $key],
    [worker => qr/^across erased_sent$/, qr/SELECT /, $upkeep],

    [tool => qr/^unbound /, qr/SELECT (?:DISTINCT )?t\.workspace_id FROM /,
        $operator],
    [tool => qr/^unbound (?:job|live_key|workspace|workspace_hold)$/,
        qr/(?:SELECT (?!t\.)|WITH s AS MATERIALIZED )/, $operator],
    [tool => qr/^unbound erasure$/,
        qr/SELECT (?:json_build_object|w\.id FROM crmapi\.workspace w )/,
        $operator],
    [tool => qr/^unbound audit$/, qr/SELECT a\.at, /, $operator],
    [tool => qr/^set erasure$/, qr/INSERT INTO crmapi\.erasure AS e /,
        "a journal has the erasures of all workspaces"],
    [tool => qr/^across workspace_delete$/, qr/SELECT /, "it is told which"],
    [tool => qr/^volatile webhook_key$/, qr/(?:INSERT INTO|UPDATE) /,
        "a key is made by the server, so that no log has it"],
    [tool => qr/^unbound (?:agent|workspace|workspace_hold)$/,
        qr/WITH found AS /, $channel],
    [tool => qr/^volatile clock_timestamp$/, qr/UPDATE crmapi\.migration /,
        $migration],
    [tool => qr/^unbound /,
        qr/WITH batch AS MATERIALIZED \(SELECT [\w", ]+ FROM crmapi\./,
        $migration],
);

# What functions themselves ask is judged by 05-one-node.t. Of triggers that a
# COPY or a COMMIT runs it is seen here, too, with the names of their variables
# and transition tables. PostgreSQL's checks of foreign keys are seen in the same
# way.
my $nested = qr/\bTG_(?:ARGV|OP)\b|\b(?:NEW|OLD|own|event_add|is_(?:closed|held))\.\w
    |\bFROM\ (?:changed\ n|made\ m)\b|\bFROM\ ONLY\ "crmapi"/x;
my @statements = grep { $_->[1] !~ $nested } postgres()->statements,
    CrmTest::Postgres::recorded_statements();
my %seen;
@statements = grep { !$seen{"@$_"}++ } @statements;
my @faults = judge_statements(database(), map { $_->[1] } @statements);
$_->[1] =~ s/\A(?:\s+|--[^\n]*\n)+// for @statements;
my %used;

for my $who (qw(api worker tool)) {
    my @wrong;
    for my $n (grep { $statements[$_][0] eq $who } 0 .. $#statements) {
        my $sql = $statements[$n][1];
        for my $fault (@{$faults[$n]}) {
            my @for = grep { $EXCEPTIONS[$_][0] eq $who
                && $fault =~ $EXCEPTIONS[$_][1]
                && $sql =~ /\A$EXCEPTIONS[$_][2]/ } 0 .. $#EXCEPTIONS;
            $used{$_} = 1 for @for;
            push @wrong, "$fault: " . substr $sql, 0, 1000 unless @for;
        }
    }
    diag("statements of the $who: ", scalar grep { $_->[0] eq $who }
        @statements);
    is(join("\n", @wrong), "", "$who: a statement concerns one workspace");
}

SKIP: {
    skip "only a run of the whole suite sends every statement"
        unless $ENV{CRM_TEST_WHOLE};
    is_deeply([map { "$_->[0]: $_->[1] $_->[2]" } map { $EXCEPTIONS[$_] }
        grep { !$used{$_} } 0 .. $#EXCEPTIONS], [], "an exception is one");
    cmp_ok(scalar(grep { $_->[0] eq "api" } @statements), ">", 300,
        "the run has sent many statements");
}

done_testing;
