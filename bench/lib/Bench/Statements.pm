# SPDX-License-Identifier: Apache-2.0
# Bench/Statements.pm: what single writes cost the database, and which part of
# it each trigger, foreign key and index has; a method of Bench::Run
package Bench::Statements;
use strict;
use warnings;
use IPC::Open2 qw(open2);
use CrmTest::Postgres;
use Bench::Cluster;
use Bench::Load qw(median);
use Bench::Report;
use Bench::Work;

# What a database goes without: name, SQL.
my @PIECES = (
    ["computed columns", "DROP TRIGGER compute ON crmapi.contact;
        DROP TRIGGER compute_tags ON crmapi.contact"],
    ["totals", "DROP TRIGGER counter_insert ON crmapi.contact;
        DROP TRIGGER counter_update ON crmapi.contact;
        DROP TRIGGER counter_delete ON crmapi.contact"],
    ["times and events", "DROP TRIGGER event_insert ON crmapi.contact;
        DROP TRIGGER event_update ON crmapi.contact;
        DROP TRIGGER event_delete ON crmapi.contact;
        DROP TRIGGER change_remove ON crmapi.contact"],
    ["foreign keys", "DO \$\$ DECLARE name text; BEGIN
        FOR name IN SELECT conname FROM pg_constraint WHERE contype = 'f'
            AND conrelid = 'crmapi.contact'::regclass LOOP
            EXECUTE format('ALTER TABLE crmapi.contact DROP CONSTRAINT %I',
                name);
        END LOOP; END \$\$"],
    ["index for searches", "DROP INDEX crmapi.contact_find"],
    ["index for tags", "DROP INDEX crmapi.contact_tags"],
    ["all other indexes", "DROP INDEX crmapi.contact_created,
        crmapi.contact_bot, crmapi.contact_lead_source, crmapi.contact_stage,
        crmapi.contact_company, crmapi.contact_type, crmapi.contact_employed,
        crmapi.contact_single, crmapi.contact_email, crmapi.contact_phone"],
);

# A function with the processor time of the own backend in microseconds.
our $CLOCK = "CREATE FUNCTION public.bench_cpu() RETURNS float8
    LANGUAGE sql SECURITY DEFINER RETURN split_part(pg_read_file(
        '/proc/self/schedstat'), ' ', 1)::float8 / 1000";

# A copy of the data named NAME, changed by SQL.
sub copy {
    my ($cluster, $name, $sql) = @_;
    $cluster->sql("CREATE DATABASE $name TEMPLATE $Bench::Cluster::DATABASE
        STRATEGY file_copy", undef, "postgres");
    $cluster->sql("$sql; $CLOCK", undef, $name);
}

# A session of the API's login in DATABASE with STATEMENTS, {work => [sql,
# parameters]}, prepared.
sub session {
    my ($cluster, $database, $statements) = @_;
    local $ENV{PGOPTIONS} = $Bench::Load::SESSION;
    my $pid = open2(my $out, my $in, "psql", "-X", "-q", "-A", "-t", "-v",
        "ON_ERROR_STOP=1", "-d",
        $cluster->conninfo($database, $CrmTest::Postgres::API));
    $in->autoflush(1);
    print $in map { "PREPARE $_ AS $statements->{$_}[0][0];\n" }
        sort keys %$statements;
    return { in => $in, out => $out, pid => $pid, statements => $statements };
}

sub end {
    my ($session) = @_;
    close $session->{in};
    waitpid $session->{pid}, 0;
    die "bench: psql failed\n" if $?;
}

# EXECUTE one of the statements of WORK, with a new id and new values.
sub execute {
    my ($session, $work) = @_;
    my $all = $session->{statements}{$work};
    my ($sql, $values) = @{$all->[rand @$all]};
    my ($last) = sort { $b <=> $a } $sql =~ /\$(\d+)/g;
    return "EXECUTE $work(" . join(", ", map {
        my $value = $values->{$_};
        if ($sql =~ /^INSERT/ && $_ == 3) { "gen_random_uuid()" }
        elsif (!defined $value) { "NULL" }
        else {
            $value =~ s/^Job \d+$/"Job " . int rand 1e9/e;
            "'" . $value =~ s/'/''/gr . "'";
        } } 1 .. $last) . ");\n";
}

# The processor time that SESSION needs for one of N statements of WORK.
sub microseconds {
    my ($session, $work, $n) = @_;
    my ($in, $out) = @$session{qw(in out)};
    # the first after a pause finds its data in no cache
    print $in "\\o /dev/null\n", execute($session, $work),
        "\\o\nSELECT public.bench_cpu() AS before \\gset\n\\o /dev/null\n",
        (map { execute($session, $work) } 1 .. $n),
        "\\o\nSELECT (public.bench_cpu() - :before) / $n;\n";
    my $answer = <$out> // die "bench: psql failed\n";
    return $answer + 0;
}

# Medians of the processor time of POST and PATCH in a copy of the data without
# PIECE, and in one that has all, in turn.
sub measure_without {
    my ($self, $piece, $statements) = @_;
    my ($name, $sql) = @$piece;
    my $cluster = $self->{cluster};
    my @databases = ("bench_all", "bench_without");
    my %time;

    copy($cluster, "bench_without", $sql);
    my @sessions = map { session($cluster, $_, $statements) } @databases;
    for my $round (0 .. ($self->{quick} ? 3 : 40)) {
        for my $work (sort keys %$statements) {
            for my $i (0, 1) {
                my $us = microseconds($sessions[$i], $work, 20);
                push @{$time{$work}[$i]}, $us if $round;
            }
        }
    }
    end($_) for @sessions;
    $cluster->{pg}->drop_database("bench_without");
    return map { my $work = $_; map { median(@$_) } @{$time{$work}} }
        qw(post patch);
}

sub statements {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $server = $self->start_crmapi;
    my (%statements, @rows);

    $self->say("what a write costs");
    for my $work (qw(post patch)) {
        my @requests = Bench::Work->requests($work, $cluster,
            $Bench::Cluster::MAIN, Bench::Cluster::key(0));
        splice @requests, 200 if @requests > 200;
        $statements{$work} = [map { $_->[0] } Bench::Work->statements($cluster,
            $server, @requests)];
    }
    $server->stop;
    copy($cluster, "bench_all", "SELECT");
    for my $piece (@PIECES) {
        my ($post, $post_less, $patch, $patch_less)
            = measure_without($self, $piece, \%statements);
        push @rows, [$piece->[0], map { Bench::Report::number($_) } $post,
            $post_less, $post_less / $post, $patch, $patch_less,
            $patch_less / $patch];
    }
    $cluster->{pg}->drop_database("bench_all");
    $self->{report}->add("\n### What a write costs the database\n\nProcessor"
        . " time of the backend in microseconds for the statements of POST"
        . " /contacts and PATCH /contacts/{id}: with everything, and in a copy"
        . " of the database without one thing.\n");
    $self->{report}->table(["without", "POST", "without", "ratio", "PATCH",
        "without", "ratio"], @rows);
}

1;
