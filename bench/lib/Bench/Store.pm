# SPDX-License-Identifier: Apache-2.0
# Bench/Store.pm: what one budget for all hosts costs; methods of Bench::Run
package Bench::Store;
use strict;
use warnings;
use CrmTest::Redis;
use Bench::Cluster;
use Bench::Growth;
use Bench::Report;
use Bench::Work;

# A limit that no run reaches, so that each request is counted.
my $LIMITS = "CrmApiReadLimit 1000000\nCrmApiRateLimitKeys 64\n";

# GET of a contact, counted by the host alone and by a Redis beside it.
sub store {
    my ($self) = @_;
    my $redis = CrmTest::Redis->new;
    my @get = Bench::Work->requests("get", $self->{cluster},
        $Bench::Cluster::MAIN, Bench::Cluster::key(0));
    my %url = (TCP => "redis://127.0.0.1:" . $redis->port,
        socket => "unix:" . $redis->socket);

    $self->say("one budget for all hosts");
    my %server = (alone => $self->start_crmapi(conf => $LIMITS),
        map { $_ => $self->start_crmapi(conf => $LIMITS
            . "CrmApiRateLimitStore $url{$_} timeout=2s\n") } keys %url);
    my $result = $self->interleave(map { Bench::Growth::contestant($self, $_,
        $server{$_}, \@get) } qw(alone TCP socket));
    $_->stop for values %server;

    # NAME's rate to that without a store
    my $to_alone = sub {
        my ($name) = @_;
        return Bench::Report::over_rounds($result, sub {
            $_[0]{$name}{rate} / $_[0]{alone}{rate} });
    };
    my @rows = map { [$_, Bench::Report::number(
        Bench::Growth::rate_of($result, $_)), Bench::Report::number(
        $to_alone->($_))] } qw(alone TCP socket);
    $self->{report}->add("\n### One budget for all hosts\n\nGET"
        . " /contacts/{id} with CrmApiRateLimitStore, Redis on the same"
        . " machine.\n");
    $self->{report}->table(["counted by", "requests/s", "to alone"], @rows);
    $self->{report}->verdict("GET with a store to GET without",
        $to_alone->("TCP"), 0.85, 1);
}

1;
