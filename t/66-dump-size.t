# SPDX-License-Identifier: Apache-2.0
# 66-dump-size.t: a large workspace is dumped and restored without more memory
# than a small one, and nearly as fast as by PostgreSQL's own programs (contract
# 14.3). $CRM_CONTACTS is the number of its contacts
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use File::Temp qw(tempdir);
use JSON::PP ();
use Time::HiRes qw(time);

my $CONTACTS = $ENV{CRM_CONTACTS} // 100_000;
# of address space, for the program, its libraries and what it holds
my $KIB = 96 * 1024;
# How many times longer than pg_dump and pg_restore, at most. A restore runs the
# triggers, checks the foreign keys, reads the rows again and counts for the planner.
my ($DUMP, $RESTORE) = (1.5, 2.5);
my $scratch = tempdir("crm-dump-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my $here = database();
my $w = workspace($here, twin => 0);
$w->log_on;
for (my $n = 0; $n < $CONTACTS; $n += 50_000) {
    sql($here, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name,
        emails, tags, notes, custom_fields) SELECT gen_random_uuid(),
        '@{[$w->id]}', '@{[$w->agent]}', 'Name ' || n, jsonb_build_array(
        jsonb_build_object('email', 'p' || n || '\@x.example', 'is_primary',
        true)), '{a,b}', repeat(n || ' note ', 40), '{}'
        FROM generate_series($n + 1, least($n + 50000, $CONTACTS)) n");
}
sql($here, "VACUUM ANALYZE crmapi.$_") for qw(contact event);

# Run COMMAND; its seconds and output. What was written before is on the disk by
# then: no command waits for another one's pages.
sub timed {
    my ($name, @command) = @_;
    system("sync");
    sql("postgres", "CHECKPOINT");
    my $began = time;
    my ($code, $out, $err) = run_program(seconds => 3600, command => \@command);
    is($code, 0, $name) or diag($err);
    return (time - $began, $out);
}

# Run crmapictl with ARGUMENTS on DATABASE in KIB of memory.
sub limited {
    my ($database, @arguments) = @_;
    return timed("$arguments[1] in $KIB KiB of memory", "sh", "-c",
        "ulimit -v $KIB; exec \"\$\@\"", "sh",
        "$CrmTest::BUILD{DIR}/crmapictl", "--database",
        postgres()->conninfo($database), "--json", @arguments);
}

# Run PostgreSQL's PROGRAM with the data of DATABASE: the rows of W, also those that
# triggers made. No trigger runs.
sub by_postgres {
    my ($database, $program, @options) = @_;
    return timed($program, $program, "--data-only", @options, "-d",
        postgres()->conninfo($database, $CrmTest::Postgres::SUPERUSER));
}

my @tables = map { "--table=crmapi.$_" } qw(workspace agent contact contact_change
    counter event);
my %times;         # as long as PostgreSQL's, in each round
for my $round (1 .. 3) {
    my ($there, $target) = (database(), database());
    my ($said, %took);
    my @arguments = ("workspace", "dump", $w->id, "--output", "$scratch/dump");
    ($took{dump}, $said) = limited($here, @arguments);
    ($took{pg_dump}) = by_postgres($here, "pg_dump", "-Fc", "-Z0", "-f",
        "$scratch/pg", @tables);
    ($took{restore}) = limited($there, "workspace", "restore", "$scratch/dump");
    ($took{pg_restore}) = by_postgres($target, "pg_restore", "--disable-triggers",
        "$scratch/pg");
    for my $database ($there, $target) {
        is(sql($database, "SELECT count(*) FROM crmapi.$_"), $CONTACTS, "all ${_}s")
            for qw(contact event);
    }
    if ($round == 1) {
        cmp_ok(-s "$scratch/dump", ">", $KIB * 1024,
            "the dump is larger than that");
        triggers_kept_up($there, "all totals are right");
        $arguments[-1] .= ".2";
        limited($there, @arguments);
        is(system("cmp", "-s", "$scratch/dump", "$scratch/dump.2"), 0,
            "the dumps are the same bytes");
    }
    postgres()->drop_database($_) for $there, $target;
    push @{$times{$_}}, $took{$_} / $took{"pg_$_"} for qw(dump restore);
    diag(sprintf "%d rows: dumped in %.1f s, restored in %.1f s; pg_dump %.1f s,"
        . " pg_restore %.1f s", JSON::PP->new->decode($said)->{rows},
        @took{qw(dump restore pg_dump pg_restore)});
}
for ([dump => $DUMP], [restore => $RESTORE]) {
    my ($what, $most) = @$_;
    my $median = (sort { $a <=> $b } @{$times{$what}})[1];
    cmp_ok($median, "<", $most, "a $what: $most times pg_$what");
}

done_testing;
