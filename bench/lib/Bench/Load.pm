# SPDX-License-Identifier: Apache-2.0
# Bench/Load.pm: loads for a time and says how many requests were answered
package Bench::Load;
use strict;
use warnings;
use Exporter qw(import);
use File::Temp ();
use CrmTest::Postgres;
use CrmTest::Process qw(run_program write_file);

our @EXPORT_OK = qw(wrk h2load pgbench median);

my $seed = 0;

# The list of REQUESTS, [key, method, path, body], as a file for wrk.lua.
sub request_file {
    my (@requests) = @_;
    my $file = File::Temp->new(TEMPLATE => "crm-requests-XXXXXX", TMPDIR => 1);
    print $file join("\t", map { $_ // "" } @$_) . "\n" for @requests;
    close $file;
    return $file;
}

# wrk on SERVER with the FILE of requests: top, seconds, connections, keys. Return
# {rate, p50, p99, errors, closed}; times in milliseconds. closed, one part of
# errors: connections that the server has closed.
sub wrk {
    my ($server, $file, %arg) = @_;
    my $c = $arg{connections} || 16;
    my ($code, $out, $err) = run_program(
        seconds => $arg{seconds} + 60,
        command => ["wrk", "-t1", "-c$c", "-d$arg{seconds}s", "--timeout",
            "30s", "-s", "$arg{top}/bench/wrk.lua",
            "http://127.0.0.1:" . ($arg{port} || $server->{port})],
        env => { BENCH_REQUESTS => "$file", BENCH_SEED => ++$seed + time,
            BENCH_ORDER => $arg{ordered}, BENCH_KEYS => $arg{keys} });
    my ($n, $us, $p50, $p99, @errors) = $out
        =~ /^RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)/m
        or die "bench: wrk: $err$out\n";
    my $errors = 0;
    $errors += $_ for @errors;
    return { rate => $n / $us * 1e6, p50 => $p50 / 1000, p99 => $p99 / 1000,
        errors => $errors, closed => $errors[2], n => $n };
}

# h2load on SERVER's TLS port with PATHS of the list: HTTP/2, 4 connections
# with 4 streams each.
sub h2load {
    my ($server, $requests, %arg) = @_;
    my $uris = File::Temp->new(TEMPLATE => "crm-uris-XXXXXX", TMPDIR => 1);
    print $uris map { "https://127.0.0.1:$server->{tls_port}$_->[2]\n" }
        @$requests;
    close $uris;
    my ($code, $out, $err) = run_program(seconds => $arg{seconds} + 60,
        command => ["h2load", "-t1", "-c4", "-m4", "-D", $arg{seconds},
            "--warm-up-time=1", "-i", "$uris", "-H",
            "Authorization: Bearer $requests->[0][0]"]);
    my ($rate) = $out =~ m{finished in [^,]+, ([\d.]+) req/s} or
        die "bench: h2load: $err$out\n";
    my ($bad) = $out =~ /(\d+) failed, (\d+) errored/;
    my ($ok, $redirect, $c4, $c5) = $out
        =~ /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/;
    my ($tls) = $out =~ /^TLS Protocol: (\S+)/m;
    my ($app) = $out =~ /^Application protocol: (\S+)/m;
    my ($mean) = $out =~ /^time for request:\s+\S+\s+\S+\s+(\S+)/m;
    return { rate => $rate, errors => $redirect + $c4 + $c5, protocol =>
        ($app // "?") . " " . ($tls // "?"), mean => $mean };
}

# What mod_crmapi sets in its sessions (crm_db_conn.c), so that pgbench's have the
# same plans.
our $SESSION = "-c jit=off -c plan_cache_mode=force_generic_plan"
    . " -c enable_seqscan=off -c gin_pending_list_limit=256";

# pgbench -M prepared on CLUSTER as the API's login, with SCRIPT, a text. Return
# {rate}.
sub pgbench {
    my ($cluster, $script, %arg) = @_;
    my $dir = File::Temp->newdir("crm-pgbench-XXXXXX", TMPDIR => 1);
    my $c = $arg{connections} || 16;

    write_file("$dir/script.sql", $script);
    my ($code, $out, $err) = run_program(seconds => $arg{seconds} + 60,
        env => { PGOPTIONS => $SESSION },
        command => [CrmTest::Postgres::bindir() . "/pgbench", "-n", "-M",
            "prepared", "-c", $c, "-j", 1, "-T", $arg{seconds}, "-f",
            "$dir/script.sql", "-h", $cluster->host, "-U",
            $CrmTest::Postgres::API, "bench"]);
    # on a machine that is too busy for one transaction
    return pgbench($cluster, $script, %arg, seconds => 2 * $arg{seconds})
        if $out =~ /processed: 0$/m && $arg{seconds} < 30;
    my ($tps) = $out =~ /^tps = ([\d.]+)/m
        or die "bench: pgbench: $err$out\n";
    my ($failed) = $out =~ /failed transactions: (\d+)/;
    die "bench: pgbench: $failed transactions failed: $err\n" if $failed;
    return { rate => $tps, errors => 0 };
}

# The middle of NUMBERS.
sub median {
    my @sorted = sort { $a <=> $b } @_;
    return undef unless @sorted;
    return @sorted % 2 ? $sorted[@sorted / 2]
        : ($sorted[@sorted / 2 - 1] + $sorted[@sorted / 2]) / 2;
}

1;
