# SPDX-License-Identifier: Apache-2.0
# Bench/Run.pm: a run of the benchmark from its data to its document
package Bench::Run;
use strict;
use warnings;
use Bench::Cluster;
use Bench::Growth;
use Bench::Load qw(wrk pgbench);
use Bench::Overload;
use Bench::Poolers;
use Bench::Report;
use Bench::Server;
use Bench::Statements;
use Bench::Store;
use Bench::Work;

# The parts and their titles, in this order: what only reads comes first, and
# what adds much comes last.
my @PARTS = (
    [compare => "Reads, compared"],
    [http2 => "HTTP/2"],
    [growth => "Growth of a workspace"],
    [keys => "Many keys"],
    [store => "One budget for several hosts"],
    [poolers => "Poolers"],
    [memory => "Memory"],
    [overload => "Overload"],
    [statements => "What a write costs the database"],
    [writes => "Writes, compared"],
    [distance => "A database far away"],
    [upsert => "Upsert"],
    [writers => "Writers on one workspace"],
    [import => "Import"],
    [tenants => "Many workspaces"],
);
my @MODULES = qw(Bench::Growth Bench::Overload Bench::Poolers Bench::Statements
    Bench::Store);

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
        die "bench: no part $part\n" unless grep { $_->[0] eq $part } @PARTS;
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
    my $file = $self->{output} || (!$self->{quick}
        && "$self->{top}/docs/performance.md");

    $self->say("making the database and $self->{contacts} contacts");
    $self->{cluster} = Bench::Cluster->new(top => $self->{top},
        ctl => "$self->{build}/crmapictl",
        schema => "$self->{env}{SRCDIR}/schema");
    $self->{import} = $self->{cluster}->fill($self->{contacts});
    for (@PARTS) {
        my ($part, $title) = @$_;
        next unless $self->wants($part);
        my ($method) = grep { $_ } $self->can("part_$part"),
            map { $_->can($part) } @MODULES;
        $self->$method;
        $report->end_part($part, $title);
        $report->write($file) if $file;     # what is measured is not lost
    }
    $self->{cluster}->stop;
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
        module => "$self->{build}/mod_crmapi.so",
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

sub start_bun {
    my ($self, %arg) = @_;
    return Bench::Server->bun(top => $self->{top},
        npm => "$self->{top}/_build/bench-npm",
        host => $self->{cluster}->host, database => $Bench::Cluster::DATABASE,
        user => "bench_site", %arg);
}

sub start_rust {
    my ($self, %arg) = @_;
    return Bench::Server->rust(top => $self->{top}, build => $self->{build},
        quick => $self->{quick}, host => $self->{cluster}->host,
        database => $Bench::Cluster::DATABASE, user => "bench_site", %arg);
}

sub start_php {
    my ($self, %arg) = @_;
    return Bench::Server->php($self->httpd_options,
        conninfo => $self->{cluster}->conninfo(undef, "bench_site"), %arg);
}

sub start_static {
    my ($self, %arg) = @_;
    return Bench::Server->httpd($self->httpd_options, name => "httpd",
        mpm => "worker", %arg);
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
            my $r = $self->measure($name, $code,
                $round ? $self->{seconds} : 1);
            push @{$result{$name}}, $r if $round;
        }
    }
    return \%result;
}

# The result of the contestant NAME, whose CODE may take SECONDS. One that
# completes no request in that time gets twice as many, up to a minute.
sub measure {
    my ($self, $name, $code, $seconds) = @_;

    $self->{cluster}->wait_until_idle;
    my $r = $code->($seconds);
    die "bench: $name: $r->{errors} requests failed\n" if $r->{errors};
    return $r if $r->{rate} > 0;
    die "bench: $name: no request completed\n" if $seconds > 60;
    return $self->measure($name, $code, 2 * $seconds);
}

sub part_compare { $_[0]->contest(grep { !$_->{write} } @Bench::Work::WORKS) }
sub part_writes { $_[0]->contest(grep { $_->{write} } @Bench::Work::WORKS) }

# All contestants at WORKS.
sub contest {
    my ($self, @works) = @_;
    my %server = (crmapi => $self->start_crmapi,
        event => $self->start_crmapi(mpm => "event"),
        fastify => $self->start_fastify, bun => $self->start_bun,
        rust => $self->start_rust, php => $self->start_php,
        nocount => $self->start_fastify(count => "no"),
        static => $self->start_static);

    $server{event}{name} = "mod_crmapi, event";
    $server{nocount}{nocount} = 1;
    $server{nocount}{name} = "Fastify without count";
    $self->contest_at($_, \%server) for @works;
    $_->stop for values %server;
}

# The contestants of WORK, with each number of connections in turn.
sub contest_at {
    my ($self, $work, $server) = @_;
    my ($main, $key) = ($Bench::Cluster::MAIN, Bench::Cluster::key(0));
    my @requests = Bench::Work->requests($work->{name}, $self->{cluster}, $main,
        $key);
    my @servers = map { $server->{$_} } @{$work->{contestants}};
    my $bytes = int Bench::Work->check($work, \@servers, \@requests,
        $work->{name} eq "upsert" ? 2 : 20);

    Bench::Work->check_tenancy(\@servers, $requests[0], [
        Bench::Work->requests("get", $self->{cluster},
            Bench::Cluster::small(1), Bench::Cluster::key(101))]->[0])
        if $work->{name} eq "get";
    my $file = Bench::Load::request_file(@requests);
    my @ceilings = $work->{name} eq "upsert" ? () : $self->ceilings($work,
        @$server{qw(crmapi static)}, $bytes, @requests);
    my @connections = sort { $a <=> $b } keys %{$work->{targets}};
    @connections = grep { $_ == 16 || @connections == 1 } @connections
        if $self->{quick};
    for my $c (@connections) {
        $self->say("$work->{title} ($bytes bytes an answer), $c connections");
        # else the first contestants pay for vacuuming what was written before
        $self->{cluster}->settle if $work->{write};
        my @names = @{$work->{targets}{$c}{contestants}
            || $work->{contestants}};
        my @contestants = map {
            my $one = $server->{$_};
            [$one->{name}, sub { $self->measured($one, $file,
                # an upsert may take seconds
                seconds => $_[0] < 4 && $work->{name} eq "upsert" ? 4 : $_[0],
                connections => $c) }]
        } @names;
        push @contestants, map {
            my ($name, $code) = @$_;
            [$name, sub { $code->($_[0], $c) }]
        } @ceilings;
        $self->{report}->compared($work, $c, $bytes,
            $self->interleave(@contestants));
    }
    $_->must_be_content for @servers;
}

# wrk on SERVER, also with the processor time of server and database for each
# request, in microseconds.
sub measured {
    my ($self, $server, $file, %arg) = @_;
    my %pid = (cpu => $server->{pid}, database => $self->{cluster}{pg}{pid});
    my %before = map { $_ => Bench::Server::processor_time($pid{$_}) } keys %pid;
    my $r = wrk($server, $file, top => $self->{top}, %arg);

    $r->{$_} = (Bench::Server::processor_time($pid{$_}) - $before{$_})
        / ($r->{n} || 1) * 1e6 for keys %pid;
    return $r;
}

# pgbench for SECONDS with a script that sends statements with parameters that
# it has fetched, less what pgbench takes with one that FETCHes them only.
sub statements_alone {
    my ($self, $seconds, $connections, $fetch, $script) = @_;
    my ($both, $fetched) = map { pgbench($self->{cluster}, $_,
        seconds => $seconds + ($connections > 16), connections => $connections)
        } $script, $fetch;
    return { rate => 1 / (1 / $both->{rate} - 1 / $fetched->{rate}),
        errors => 0 };
}

# The two ceilings of WORK, each called with seconds and connections: the
# database with the statements that CRMAPI sends for REQUESTS, and httpd with as
# many BYTES from memory; for what writes the first only.
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
    my @all = (["pgbench", sub { $self->statements_alone(@_, @scripts) }],
        ["httpd", sub { wrk($static, $file, top => $self->{top},
            seconds => $_[0], connections => $_[1]) }]);
    return $work->{write} ? $all[0] : @all;
}

1;
