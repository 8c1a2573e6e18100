# SPDX-License-Identifier: Apache-2.0
# CrmTest/Citus.pm: with CRM_CITUS each database is distributed over two workers
# by Citus; the server of the run is the coordinator
package CrmTest::Citus;
use strict;
use warnings;
use CrmTest::Process qw(free_port run_program);

my @workers;    # those of this process

# Whether databases are distributed.
sub wanted { !!$ENV{CRM_CITUS} }

# Whether PostgreSQL has the extension.
sub installed {
    my $dir = CrmTest::Postgres::bindir();
    my ($share) = `$dir/pg_config --sharedir` =~ /(.*)/;
    return -e "$share/extension/citus.control";
}

# The folder of PostgreSQL's programs that CRM_CITUS names, or undef.
sub bindir {
    my $dir = $ENV{CRM_CITUS} // "";
    return $dir =~ m{^/} ? $dir : undef;
}

# The settings of a server that is a node.
sub settings {
    return (listen_addresses => "'127.0.0.1'", port => free_port(),
        shared_preload_libraries => "'citus'",
        max_prepared_transactions => 200, wal_level => "logical",
        "citus.shard_count" => 4, "citus.enable_unsafe_triggers" => "on",
        "citus.node_conninfo" => "'sslmode=disable'", "citus.log_min_messages" => "warning",
        "citus.enable_stat_counters" => "on",
        "citus.enable_repartition_joins" => "on");  # of tests
}

# Start one more worker of COORDINATOR and return it. It has no databases yet.
sub start_worker {
    my ($class, $coordinator) = @_;

    push @workers, ref($coordinator)->start(settings());
    open(my $out, ">", "$coordinator->{dir}/workers") or die "CrmTest: $!\n";
    print $out "$_->{dir} $_->{port}\n" for @workers;
    close $out;
    return $workers[-1];
}

# Make WORKER one of those that have the workspaces of DATABASE.
sub add_worker {
    my ($class, $coordinator, $database, $worker) = @_;

    $worker->sql("postgres", "CREATE DATABASE $database OWNER"
        . " $CrmTest::Postgres::OWNER");
    $worker->sql($database, "CREATE EXTENSION citus");
    $coordinator->sql($database, "SELECT citus_add_node('127.0.0.1',"
        . " $worker->{port})");
}

# The workers that this process has started.
sub workers { @workers }

# Make DATABASE of the server COORDINATOR ready for crmapictl distribute.
sub prepare {
    my ($class, $coordinator, $database) = @_;
    my ($port) = $coordinator->sql("postgres", "SHOW port");

    $coordinator->sql($database, "CREATE EXTENSION citus");
    $coordinator->sql($database, "SELECT citus_set_coordinator_host("
        . "'127.0.0.1', $port->[0])");
    $class->add_worker($coordinator, $database, $_)
        for workers_of($coordinator);
}

# Distribute DATABASE, which has the schema, of the server COORDINATOR with CTL,
# the path of crmapictl.
sub distribute {
    my ($class, $coordinator, $database, $ctl) = @_;

    # Citus creates roles on the workers; two sessions at once would fail
    my $lock = $coordinator->take_lock;
    $class->prepare($coordinator, $database);
    my ($code, $out, $err) = run_program(command => [$ctl, "--database",
        $coordinator->conninfo($database), "distribute"],
        env => { CRMAPI_SCHEMA_DIR => "$ENV{CRM_SRCDIR}/schema" });
    die "CrmTest: crmapictl distribute failed: $err$out\n" if $code;
    $class->make_logins($_) for workers_of($coordinator);
}

# Make the logins of httpd and crmapid on WORKER.
sub make_logins {
    my ($class, $node) = @_;
    my %has = map { $_->[0] => 1 } $node->sql("postgres",
        "SELECT rolname FROM pg_roles");
    my %role = ($CrmTest::Postgres::API => "api",
        $CrmTest::Postgres::WORKER => "worker");

    $node->sql("postgres", "CREATE ROLE $_ LOGIN IN ROLE crmapi_$role{$_}")
        for grep { !$has{$_} } sort keys %role;
}

# The workers of COORDINATOR, which another process may have started.
sub workers_of {
    my ($coordinator) = @_;
    open(my $in, "<", "$coordinator->{dir}/workers")
        or die "CrmTest: no workers: $!\n";
    return map { my ($dir, $port) = split;
        bless { dir => $dir, port => $port }, ref $coordinator } <$in>;
}

# Make VALUE lead to WORKSPACE in DATABASE, for a test that inserts the row itself:
# a key's hash in the TABLE key_home, or a slug in slug_home.
sub lead {
    my ($database, $table, $value, $workspace) = @_;
    CrmTest::sql($database, "INSERT INTO crmapi.$table VALUES"
        . " ('$value', '$workspace')") if wanted();
}

# COORDINATOR and its workers.
sub nodes_of {
    my ($coordinator) = @_;
    return ($coordinator, workers_of($coordinator));
}

# Drop DATABASE on the workers of COORDINATOR.
sub drop {
    my ($class, $coordinator, $database) = @_;
    $_->sql("postgres", "DROP DATABASE IF EXISTS $database WITH (FORCE)")
        for workers_of($coordinator);
}

sub END {
    local ($?, $!, $@);
    $_->stop for @workers;
}

1;
