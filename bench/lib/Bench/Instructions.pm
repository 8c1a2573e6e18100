# SPDX-License-Identifier: Apache-2.0
# Bench/Instructions.pm: how many instructions PostgreSQL executes for one of the
# module's statements and its commit, counted by valgrind in a copy of the data:
# the number does not depend on what else the machine does
package Bench::Instructions;
use strict;
use warnings;
use CrmTest::Postgres;
use CrmTest::Process qw(demoted run_program read_file);
use Bench::Load;

# A function that nothing else calls: valgrind writes its counts at each call.
my $MARK = "pg_postmaster_start_time";

# The SQL that sets the parameter N of the Ith statement, given its values in
# all STATEMENTS, [sql, {n => value}], or "" if it is always the same.
sub assignment {
    my ($n, $statements) = @_;
    my @values = map { $_->[1]{$n} } @$statements;

    return "\$$n := '01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0');"
        if $n == 3 && $statements->[0][0] =~ /^INSERT/;
    return "\$$n := 'Job ' || i;" if ($values[0] // "") =~ /^Job \d+$/;
    my %different = map { $_ // "" => 1 } @values;
    return "" if keys %different == 1;
    return "\$$n := (ARRAY[" . join(", ", map { "'$_'" } @values)
        . "])[1 + i % " . @values . "];";
}

# A procedure that runs STATEMENTS of one kind, each in a transaction, and how
# it is called for FROM to TO.
sub procedure {
    my ($statements) = @_;
    my ($sql, $values) = @{$statements->[0]};
    my ($last) = sort { $b <=> $a } $sql =~ /\$(\d+)/g;

    return ("CREATE PROCEDURE public.bench_run(" . "text, " x $last
        . "first integer, last integer) LANGUAGE plpgsql AS \$run\$"
        . " DECLARE r record; BEGIN FOR i IN first .. last LOOP "
        . join(" ", map { assignment($_, $statements) } 1 .. $last)
        . " $sql INTO STRICT r; COMMIT; END LOOP; END \$run\$", sub {
            return "CALL public.bench_run(" . join(", ", map {
                defined $values->{$_} ? "'" . $values->{$_} =~ s/'/''/gr . "'"
                : "NULL" } 1 .. $last) . ", $_[0], $_[1])" });
}

# Count the instructions of one of STATEMENTS, [sql, {n => value}], in a copy of
# DATABASE changed by SQL. PG, a CrmTest::Postgres, is halted. N are counted,
# after as many as fill the caches.
sub count {
    my ($pg, $database, $sql, $statements, $n) = @_;
    my $dir = "$pg->{dir}/instructions";
    my ($make, $call) = procedure($statements);
    my @sql = ($make, $sql, "SET SESSION AUTHORIZATION $CrmTest::Postgres::API",
        $call->(1, 50), "SELECT $MARK()", $call->(51, 50 + $n),
        "SELECT $MARK()");

    run_program(seconds => 60, command => ["rm", "-rf", $dir]);
    my ($failed, undef, $why) = run_program(seconds => 60, command => [
        demoted(), "cp", "-a", "$pg->{dir}/data", $dir]);
    die "bench: $why\n" if $failed;
    my ($code, $out, $err) = run_program(seconds => 600, chdir => "/",
        stdin => join("", map { "$_;\n\n" } @sql), command => [demoted(),
            "valgrind", "--tool=callgrind", "--dump-before=$MARK",
            "--callgrind-out-file=$dir/counts",
            CrmTest::Postgres::bindir() . "/postgres", "--single", "-j", "-D",
            $dir, split(/ /, $Bench::Load::SESSION), $database]);
    die "bench: valgrind: $err$out\n" if $code || "$err$out" =~ /ERROR: /;
    my ($count) = read_file("$dir/counts.2") =~ /^(?:summary|totals): (\d+)/m
        or die "bench: valgrind counted nothing: $err\n";
    run_program(seconds => 60, command => ["rm", "-rf", $dir]);
    return $count / $n;
}

1;
