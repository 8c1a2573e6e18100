# SPDX-License-Identifier: Apache-2.0
# Bench/Run.pm: a run of the benchmark from its data to its document
package Bench::Run;
use strict;
use warnings;
use CrmTest::Process qw(read_file run_program);
use Bench::Cluster;
use Bench::Growth;
use Bench::Load qw(wrk pgbench median);
use Bench::Overload;
use Bench::Report;
use Bench::Server;
use Bench::Statements;
use Bench::Store;
use Bench::Work;

# In this order: what only reads comes first, and what adds much comes last.
my @PARTS = qw(compare http2 growth keys store memory overload statements writes
    distance upsert writers import tenants);
my @MODULES = qw(Bench::Growth Bench::Overload Bench::Statements Bench::Store);

sub new {
    my ($class, %opt) = @_;
    my $quick = $opt{quick};
    my $self = bless {
        %opt,
        contacts => $opt{contacts} || ($quick ? 2000 : 1_000_000),
        rounds => $opt{rounds} || ($quick ? 1 : 5),
        seconds => $opt{seconds} || ($quick ? 1 : 4),
        only => { map { $_ => 1 } split /,/, $opt{only} // "" },
    }, $class;
    open(my $env, "<", "$self->{build}/t/build.env")
        or die "bench: $self->{build} is no build: $!\n";
    $self->{env} = { map { chomp; split /=/, $_, 2 } <$env> };
    for my $part (keys %{$self->{only}}) {
        die "bench: no part $part\n" unless grep { $_ eq $part } @PARTS;
    }
    return $self;
}

sub wants {
    my ($self, $part) = @_;
    return !%{$self->{only}} || $self->{only}{$part};
}

sub say {
    my ($self, $text) = @_;
    my @t = localtime;
    printf "bench: %02d:%02d:%02d %s\n", @t[2, 1, 0], $text;
}

sub run {
    my ($self) = @_;
    my $report = $self->{report} = Bench::Report->new($self);

    $self->say("making the database and $self->{contacts} contacts");
    $self->{cluster} = Bench::Cluster->new(top => $self->{top},
        ctl => "$self->{build}/crmapictl",
        schema => "$self->{env}{SRCDIR}/schema");
    $self->{import} = $self->{cluster}->fill($self->{contacts});
    for my $part (@PARTS) {
        my ($method) = grep { $_ } map { $_->can($part) } @MODULES;
        $method ||= $self->can("part_$part");
        $self->$method if $self->wants($part);
    }
    $self->{cluster}->stop;
    my $file = $self->{output} || ($self->{quick} ? undef
        : "$self->{top}/docs/performance.md");
    $report->write($file) if $file;
    $self->say("written to $file") if $file;
    return 0;
}

# ---- servers ----------------------------------------------------------------

# What all httpds share.
sub httpd_options {
    my ($self) = @_;
    return (httpd => $self->{env}{HTTPD},
        modulesdir => $self->{env}{MODULEDIR}, top => $self->{top});
}

sub start_crmapi {
    my ($self, %arg) = @_;
    return Bench::Server->crmapi($self->httpd_options,
        module => "$self->{build}/.libs/mod_crmapi.so",
        conninfo => $self->{cluster}->conninfo(undef,
            $CrmTest::Postgres::API), %arg);
}

sub start_fastify {
    my ($self, %arg) = @_;
    return Bench::Server->fastify(top => $self->{top},
        npm => "$self->{top}/_build/bench-npm",
        host => $self->{cluster}->host, database => $Bench::Cluster::DATABASE,
        user => "bench_site", %arg);
}

sub start_php {
    my ($self, %arg) = @_;
    return Bench::Server->php($self->httpd_options,
        conninfo => $self->{cluster}->conninfo(undef, "bench_site"), %arg);
}

sub start_static {
    my ($self, %arg) = @_;
    return Bench::Server->httpd($self->httpd_options, name => "httpd",
        mpm => "event", %arg);
}

# ---- the comparison ---------------------------------------------------------

# Run CONTESTANTS, [name, code], in turn, ROUNDS times after one that does not
# count (with --quick each counts). Each code is called with the seconds it may
# take and returns {rate, ...}. Return {name => [results]}.
sub interleave {
    my ($self, @contestants) = @_;
    my %result;

    for my $round (($self->{quick} ? 1 : 0) .. $self->{rounds}) {
        for (@contestants) {
            my ($name, $code) = @$_;
            $self->{cluster}->wait_until_idle;
            my $r = $code->($round ? $self->{seconds} : 1);
            die "bench: $name: $r->{errors} requests failed\n"
                if $r->{errors};
            push @{$result{$name}}, $r if $round;
        }
    }
    return \%result;
}

sub part_compare { $_[0]->contest(grep { !$_->{write} } @Bench::Work::WORKS) }
sub part_writes { $_[0]->contest(grep { $_->{write} } @Bench::Work::WORKS) }

# All contestants at WORKS.
sub contest {
    my ($self, @works) = @_;
    my $cluster = $self->{cluster};
    my ($main, $key) = ($Bench::Cluster::MAIN, Bench::Cluster::key(0));
    my $crmapi = $self->start_crmapi;
    my $fastify = $self->start_fastify;
    my $php = $self->start_php;
    my $nocount = $self->start_fastify(count => "no");
    my $static = $self->start_static;

    $nocount->{nocount} = 1;
    $nocount->{name} = "Fastify without count";
    for my $work (@works) {
        my @requests = Bench::Work->requests($work->{name}, $cluster, $main,
            $key);
        my @servers = ($crmapi, $fastify, $php, $work->{nocount} ? $nocount
            : ());
        my $bytes = int Bench::Work->check($work, \@servers, \@requests,
            $work->{name} eq "upsert" ? 2 : 20);
        Bench::Work->check_tenancy(\@servers, $requests[0], [
            Bench::Work->requests("get", $cluster, Bench::Cluster::small(1),
                Bench::Cluster::key(101))]->[0]) if $work->{name} eq "get";
        my $file = Bench::Load::request_file(@requests);
        my @contestants = map {
            my $server = $_;
            [$server->{name}, sub { wrk($server, $file, top => $self->{top},
                # an upsert may take seconds
                seconds => $_[0] < 4 && $work->{name} eq "upsert" ? 4 : $_[0],
                connections => $work->{connections}) }]
        } @servers;
        if ($work->{name} ne "upsert") {
            push @contestants, $self->ceilings($work, $crmapi, $static,
                $bytes, @requests);
        }
        $self->say("$work->{title} ($bytes bytes an answer)");
        my $result = $self->interleave(@contestants);
        $self->{report}->compared($work, $bytes, $result);
        $_->must_be_content for @servers;
    }
    $_->stop for $crmapi, $fastify, $php, $nocount, $static;
}

# pgbench for SECONDS with a script that sends statements with parameters that
# it has fetched, less what pgbench takes with one that FETCHes them only.
sub statements_alone {
    my ($self, $seconds, $fetch, $script) = @_;
    my $both = pgbench($self->{cluster}, $script, seconds => $seconds);
    my $fetched = pgbench($self->{cluster}, $fetch, seconds => $seconds);
    return { rate => 1 / (1 / $both->{rate} - 1 / $fetched->{rate}),
        errors => 0 };
}

# The two ceilings of WORK: the database with the statements that CRMAPI sends
# for REQUESTS, and httpd with as many BYTES from memory; for what writes the
# first only.
sub ceilings {
    my ($self, $work, $crmapi, $static, $bytes, @requests) = @_;
    my $n = 200;
    my @picked = map { $requests[$_ * int(@requests / $n) % @requests] }
        0 .. (@requests < $n ? $#requests : $n - 1);
    my @statements = Bench::Work->statements($self->{cluster}, $crmapi,
        @picked);
    my @scripts = Bench::Work->script($self->{cluster}, $work->{name},
        @statements);
    my $name = "$work->{name}.json";
    my $path = "$static->{dir}/htdocs/$name";

    $self->{statements}{$work->{name}} = $statements[0];
    open(my $out, ">", $path) or die "bench: $path: $!\n";
    print $out "x" x $bytes;
    close $out;
    my $file = Bench::Load::request_file([$requests[0][0], "GET", "/$name"]);
    my @all = (["pgbench", sub { $self->statements_alone($_[0], @scripts) }],
        ["httpd", sub { wrk($static, $file, top => $self->{top},
            seconds => $_[0]) }]);
    return $work->{write} ? $all[0] : @all;
}

1;
