# SPDX-License-Identifier: Apache-2.0
# Bench/Report.pm: results as tables, on the terminal and in Markdown
package Bench::Report;
use strict;
use warnings;
use POSIX qw(strftime);
use CrmTest::Postgres;
use CrmTest::Process qw(read_file run_program write_file);
use Bench::Load qw(median);

sub new {
    my ($class, $run) = @_;
    return bless { run => $run, text => "", summary => [], parts => {} },
        $class;
}

# What was added since the last part is that of PART, with TITLE.
sub end_part {
    my ($self, $part, $title) = @_;
    my $run = $self->{run};
    my $results = $self->{text};

    $self->{text} = "";
    $self->table(["target", "wanted", "measured", "met"],
        @{$self->{summary}}) if @{$self->{summary}};
    $self->{parts}{$part} = "\n## $title\n\nMeasured on "
        . strftime("%Y-%m-%d", gmtime) . " with $run->{contacts} contacts, "
        . "$run->{rounds} rounds of $run->{seconds} s each, on " . machine()
        . ".\n$self->{text}$results";
    @$self{qw(text summary)} = ("", []);
}

# Add TEXT to the document and print it.
sub add {
    my ($self, $text) = @_;
    $self->{text} .= $text;
    print $text;
}

# Add a table of rows, arrays; the first is the heading.
sub table {
    my ($self, $heading, @rows) = @_;
    my @width = map { my $i = $_; my $w = 3;
        for (map { length($_->[$i] // "") } $heading, @rows) {
            $w = $_ if $_ > $w;
        } $w } 0 .. $#$heading;
    my $line = sub { my @cells = @_;
        "| " . join(" | ", map { sprintf $_ ? "%*s" : "%-*s", $width[$_],
            $cells[$_] // "" } 0 .. $#width) . " |\n" };
    $self->add("\n" . $line->(@$heading) . "|" . join("|", map {
        "-" x ($width[$_] + 1) . ($_ ? ":" : "-") } 0 .. $#width) . "|\n"
        . join("", map { $line->(@$_) } @rows) . "\n");
}

# A number with as many digits as say something.
sub number {
    my ($x) = @_;
    return "" unless defined $x;
    return sprintf $x < 10 ? "%.2f" : $x < 100 ? "%.1f" : "%.0f", $x;
}

# The median over the rounds of CODE->(results of a round).
sub over_rounds {
    my ($result, $code) = @_;
    my ($first) = values %$result;
    return median(map { my $i = $_;
        $code->({ map { $_ => $result->{$_}[$i] } keys %$result })
    } 0 .. $#$first);
}

my @ORDER = ("mod_crmapi", "mod_crmapi, event", "Bun", "Rust",
    "Fastify", "Fastify without count", "mod_php", "pgbench", "httpd");

# Add the row "bound" of WORK to RESULT: what one round trip a request allows.
sub add_bound {
    my ($work, $result) = @_;
    for my $i (0 .. $#{$result->{pgbench} || []}) {
        my $least = 1 / $result->{pgbench}[$i]{rate};
        $least += 1 / $result->{httpd}[$i]{rate} unless $work->{write};
        $result->{bound}[$i]{rate} = 1 / $least;
    }
}

# WORK with C connections.
sub compared {
    my ($self, $work, $c, $bytes, $result) = @_;
    my $ratio = sub { my ($name, $what) = @_; over_rounds($result, sub {
        $_[0]{mod_crmapi}{$what} / $_[0]{$name}{$what} }) };
    my %target = %{$work->{targets}{$c}};
    my $p99 = delete $target{p99};
    my @rows;

    add_bound($work, $result);
    $self->add("\n### $work->{title}, $c connection" . ($c > 1 ? "s" : "")
        . "\n\n$bytes bytes an answer.\n");
    for my $name (grep { $result->{$_} } @ORDER, "bound") {
        my @r = @{$result->{$name}};
        my @rates = sort { $a <=> $b } map { $_->{rate} } @r;
        push @rows, [$name, number(median(@rates)), number($rates[0]),
            number($rates[-1]), map({ my $p = $_;
                defined $r[0]{$p} ? number(median(map { $_->{$p} } @r)) : "" }
                qw(p50 p99 cpu database)),
            $name eq "mod_crmapi" ? "" : number($ratio->($name, "rate"))];
    }
    $self->table(["", "requests/s", "min", "max", "p50 ms", "p99 ms",
        "server us", "database us", "mod_crmapi is x times"], @rows);
    for my $name (grep { exists $target{$_} } @ORDER, "bound") {
        $self->verdict("$work->{title}, $c: $name", $ratio->($name, "rate"),
            $target{$name}, 1);
    }
    for my $mpm ($p99 ? ("", ", event") : ()) {
        $self->verdict("$work->{title}, $c$mpm: p99 of Bun", over_rounds($result,
            sub { $_[0]{"mod_crmapi$mpm"}{p99} / $_[0]{Bun}{p99} }), $p99);
    }
}

# Something that should be at most, or with LEAST at least, LIMIT.
sub verdict {
    my ($self, $what, $got, $limit, $least) = @_;
    push @{$self->{summary}}, [$what, ($least ? ">= " : "<= ") . $limit,
        number($got), ($least ? $got >= $limit : $got <= $limit) ? "yes"
            : "**no**"];
}

# First lines of what programs say of their version.
sub versions {
    my ($self) = @_;
    my $first = sub { my ($code, $out, $err) = run_program(command => [@_]);
        my ($line) = split /\n/, $out || $err; $line };
    my $npm = "$self->{run}{top}/_build/bench-npm/node_modules";
    my $package = sub { read_file("$npm/$_[0]/package.json", "")
        =~ /"version": "([^"]+)"/ ? "$_[0] $1" : () };
    return ($first->("$self->{run}{build}/crmapictl", "--version"),
        $first->($self->{run}{env}{HTTPD}, "-v") =~ s/^Server version: //r,
        $first->(CrmTest::Postgres::bindir() . "/postgres", "--version"),
        "Node.js " . $first->("node", "--version"), $package->("fastify"),
        $package->("pg"), $package->("bun"), $first->("cargo", "--version")
            =~ s/^cargo/Rust/r, map({ /(\d+\.\d+)/ ? "PHP $1" : () }
            glob "$self->{run}{env}{MODULEDIR}/libphp*.so"),
        $first->("wrk", "-v") =~ s/ Copyright.*//r);
}

sub machine {
    my ($cpu) = read_file("/proc/cpuinfo") =~ /^model name\s*:\s*(.*)/m;
    my $n = () = read_file("/proc/cpuinfo") =~ /^processor\s*:/mg;
    my ($kb) = read_file("/proc/meminfo") =~ /MemTotal:\s*(\d+)/;
    my ($huge) = read_file("/proc/meminfo") =~ /HugePages_Total:\s*(\d+)/;
    my ($kernel) = (POSIX::uname())[2];
    my ($os) = read_file("/etc/os-release", "") =~ /^PRETTY_NAME="([^"]*)"/m;
    my ($groups) = read_file("/proc/sys/kernel/sched_autogroup_enabled", "")
        =~ /(\d)/;
    return sprintf "%d x %s, %.0f GB of memory%s, %s, Linux %s%s", $n,
        $cpu // "a processor", $kb / 1048576,
        $huge ? " with huge pages for PostgreSQL" : "",
        $os // "an unknown system", $kernel,
        $groups ? " with autogroups" : "";
}

# Put the parts that were measured between their markers in FILE, whose other
# text stays; bench/performance.md.in is taken where there is none.
sub write {
    my ($self, $file) = @_;
    my $run = $self->{run};
    my $settings = $run->{cluster}{settings};
    my $text = read_file($file, "")
        || read_file("$run->{top}/bench/performance.md.in");
    my %new = (%{$self->{parts}}, software => "\n- "
        . join("\n- ", $self->versions) . "\n- PostgreSQL's settings: "
        . join(", ", map { "`$_ = $settings->{$_}`" } sort keys %$settings)
        . "\n");

    for my $part (sort keys %new) {
        my ($begin, $end) = ("<!-- $part -->", "<!-- /$part -->");
        $text =~ s/\Q$begin\E.*\Q$end\E/$begin\n$new{$part}\n$end/s
            or die "bench: $file has no place for the part $part\n";
    }
    write_file($file, $text);
}

1;
