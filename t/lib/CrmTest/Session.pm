# SPDX-License-Identifier: Apache-2.0
# CrmTest/Session.pm: sessions of PostgreSQL that hold locks
package CrmTest::Session;
use strict;
use warnings;
use Exporter qw(import);
use CrmTest;
use CrmTest::Child;
use CrmTest::Citus;
use CrmTest::Process qw(wait_for);

our @EXPORT = qw(holding wait_blocked at_once);

# Wait until CONDITION, an expression of SQL, is true: one session queries it
# repeatedly. Dies with WHAT after 30 s.
sub wait_sql {
    my ($condition, $what) = @_;
    sql("postgres", <<"SQL");
DO \$\$
DECLARE
    late timestamptz := clock_timestamp() + '30 s';
BEGIN
    WHILE NOT ($condition) LOOP
        IF clock_timestamp() > late THEN
            RAISE EXCEPTION '$what';
        END IF;
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
END
\$\$
SQL
}

my $holders = 0;

# SQL for DATABASE, with the workspace beside each id that locks a row: Citus
# locks rows on one server only.
sub with_workspace {
    my ($database, $sql) = @_;
    return $sql if !CrmTest::Citus::wanted();
    $sql =~ s{(FROM\s+(crmapi\.\w+)\s+WHERE )(id = '([^']+)')}{
        my ($before, $condition) = ($1, $3);
        my ($of) = sql($database, "SELECT workspace_id FROM $2 WHERE id = '$4'");
        "${before}workspace_id = '$of->[0]' AND $condition" }ge;
    return $sql;
}

# Run SQL in DATABASE in a transaction of a new session, which holds the locks.
# Returns code that ends it by its argument (default "ROLLBACK").
sub holding {
    my ($database, $sql) = @_;
    my $mark = "held by $$ " . uuid();

    $sql = with_workspace($database, $sql);
    open(my $in, "|-", "psql", "-X", "-q", "-o", "/dev/null", "-v",
        "ON_ERROR_STOP=1", "-d", postgres()->conninfo($database, "postgres"))
        or die "CrmTest: psql: $!\n";
    $in->autoflush(1);
    # long transactions have slots of their own (schema/0005-totals.sql)
    print $in "SET crmapi.counter_slot = " . (100 + $holders++ % 1000) . ";\n"
        . "BEGIN;\n$sql;\nSELECT '$mark';\n";
    wait_sql("EXISTS (SELECT FROM pg_stat_activity WHERE state ="
        . " 'idle in transaction' AND query LIKE '%$mark%')",
        "nothing is held");
    return sub {
        print $in ($_[0] // "ROLLBACK") . ";\n\\q\n";
        close $in or die "CrmTest: the session that held failed\n";
    };
}

# Wait until N sessions of DATABASE, that meet CONDITION if there is one, wait
# for a lock. Returns their process ids.
sub wait_blocked {
    my ($database, $n, $condition) = @_;
    my $blocked = "FROM pg_stat_activity WHERE datname = '$database'"
        . " AND wait_event_type = 'Lock'"
        . ($condition ? " AND ($condition)" : "");

    if (CrmTest::Citus::wanted()) {
        my @pids;
        wait_for(sub { @pids = map { $_->[0] } map {
            $_->sql("postgres", "SELECT pid $blocked")
            } CrmTest::Citus::nodes_of(postgres()); @pids >= $n }, 30)
            or die "CrmTest: fewer than $n wait\n";
        return @pids;
    }
    wait_sql("(SELECT count(*) $blocked) >= $n", "fewer than $n wait");
    return map { $_->[0] } sql("postgres", "SELECT pid $blocked");
}

# Run each of the SQLS in DATABASE in its own session. All start at the same
# time. Returns the errors of those that failed.
sub at_once {
    my ($database, @sqls) = @_;
    my $gate = 471100 + $$;
    my $let_go = holding($database, "SELECT pg_advisory_xact_lock($gate)");
    my @jobs = map { my $sql = $_; CrmTest::Child->start(sub {
        eval { scalar sql($database,
            "SELECT pg_advisory_lock_shared($gate); $sql") };
        return $@;
    }) } @sqls;

    wait_blocked($database, scalar @sqls, "wait_event = 'advisory'");
    $let_go->();
    return grep { length } map { $_->result } @jobs;
}

1;
