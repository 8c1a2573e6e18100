# SPDX-License-Identifier: Apache-2.0
# Bench/Poolers.pm: what a pooler before the database costs; methods of Bench::Run
package Bench::Poolers;
use strict;
use warnings;
use CrmTest::Pooler;
use CrmTest::Postgres;
use Bench::Cluster;
use Bench::Growth;
use Bench::Report;
use Bench::Work;

# Contestants: name, mode of PgBouncer, CrmApiNamedStatements.
my @WAYS = (["no pooler"], ["session", "session", "On"],
    ["transaction", "transaction", "Shared"],
    ["transaction, no names", "transaction", "Off"]);
my @NAMES = map { $_->[0] } @WAYS;

# GET of a contact, on the database's socket and on that of a PgBouncer with
# either configuration of docs/scaling.md.
sub poolers {
    my ($self) = @_;
    my @get = Bench::Work->requests("get", $self->{cluster},
        $Bench::Cluster::MAIN, Bench::Cluster::key(0));
    my (@poolers, %server);

    $self->say("poolers");
    for my $way (@WAYS) {
        my ($name, $mode, $names) = @$way;
        my %arg;
        if ($mode) {
            push @poolers, CrmTest::Pooler->start($mode,
                $self->{cluster}{pg});
            $arg{conninfo} = $poolers[-1]->conninfo($Bench::Cluster::DATABASE,
                $CrmTest::Postgres::API);
            $arg{conf} = "CrmApiNamedStatements $names\n";
        }
        $server{$name} = $self->start_crmapi(%arg);
    }
    $self->{report}->add("\n### PgBouncer before the database\n\nGET"
        . " /contacts/{id}. All programs are on one machine and connected by"
        . " sockets. In mode transaction with CrmApiNamedStatements Shared, and"
        . " with Off, when PostgreSQL parses and plans each statement.\n");
    my @rows = map { behind($self, $_, \%server, \@get) } 16, 64;
    $self->{report}->table(["clients", "PgBouncer", "requests/s",
        "to no pooler"], @rows);
    $_->stop for values(%server), @poolers;
}

# Measure SERVER, a hash by @NAMES, with REQUESTS of COUNT clients at a time.
# Return the rows of the table.
sub behind {
    my ($self, $count, $server, $requests) = @_;
    my $result = $self->interleave(map { Bench::Growth::contestant($self, $_,
        $server->{$_}, $requests, connections => $count) } @NAMES);
    my %ratio;

    for my $name (@NAMES) {
        $ratio{$name} = Bench::Report::over_rounds($result, sub {
            $_[0]{$name}{rate} / $_[0]{"no pooler"}{rate} });
        $self->{report}->verdict("GET behind PgBouncer, mode $name, to GET"
            . " without, $count clients", $ratio{$name}, 0.8, 1)
            if $name ne "no pooler";
    }
    return map { [$count, $_, Bench::Report::number(
        Bench::Growth::rate_of($result, $_)),
        Bench::Report::number($ratio{$_})] } @NAMES;
}

1;
