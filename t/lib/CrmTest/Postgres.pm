# SPDX-License-Identifier: Apache-2.0
# CrmTest/Postgres.pm: a private PostgreSQL, and databases made in it
package CrmTest::Postgres;
use strict;
use warnings;
use Fcntl qw(:flock);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IO::Handle;
use JSON::PP ();
use CrmTest::Citus;
use CrmTest::Psql;
use CrmTest::Process qw(unprivileged demoted spawn end_process run_program
    wait_for read_file write_file);

# Roles: the superuser, who migrates, and the login the API uses.
our $SUPERUSER = "postgres";
our $OWNER = "crmapi_owner";
our $API = "crmapi_site";
our $WORKER = "crmapi_daemon";
our $TEMPLATE = "crm_template";

sub superuser { $SUPERUSER }

my $own;        # the server this process started, if it did
my $held = 0;

# Return the folder of PostgreSQL's programs, of the newest version there is.
sub bindir {
    return CrmTest::Citus::bindir() if CrmTest::Citus::bindir();
    my ($newest) = sort { $b->[0] <=> $a->[0] }
        map { m{/(\d+)/bin/} ? [$1, $_] : () }
        glob "/usr/lib/postgresql/*/bin/postgres";
    return $newest->[1] =~ s{/postgres$}{}r if $newest;
    my $dir = `pg_config --bindir 2>/dev/null`;
    chomp $dir;
    return $dir if $dir ne "" && -x "$dir/postgres";
    die "CrmTest: no PostgreSQL server programs found\n";
}

# Debian's psql on the PATH is a script that costs five times the program's time.
$ENV{PATH} = bindir() . ":$ENV{PATH}";

# A line for each file that a running server loads: its identity and its path.
sub programs {
    my ($bin) = @_;
    return join "", map { my @stat = stat;
        join(":", @stat[0, 1, 7, 9]) . " $_\n" } "$bin/postgres",
        glob "$bin/../lib/{plpgsql,pg_trgm,btree_gin}.so";
}

# End the whole run when a package upgrade has replaced PostgreSQL under the
# server: later failures (such as 58P01) are not caused by mod_crmapi.
sub check_programs {
    my ($self) = @_;

    for (split /\n/, read_file("$self->{dir}/programs", "")) {
        my ($was, $path) = split / /, $_, 2;
        my @stat = stat $path;
        next if join(":", @stat[0, 1, 7, 9]) eq $was;
        require Test::More;
        Test::More::BAIL_OUT("$path was replaced while the tests ran (was"
            . " PostgreSQL upgraded?): nothing counts, run them again");
    }
}

# Where the folder of a server with SETTINGS is made, for tempdir(). A database
# is hundreds of files, and ext4 takes long to find inodes for them: it is in
# memory where there is room, unless the server shall write to a disk.
sub place {
    my (%settings) = @_;
    my $memory = "/dev/shm";
    my ($free) = `df -kP $memory 2>/dev/null` =~ /^(?:\S+\s+){3}(\d+)/m;

    return $ENV{TMPDIR} || ($settings{fsync} // "") eq "on" || !-w $memory
        || ($free // 0) < 4_000_000 ? (TMPDIR => 1) : (DIR => $memory);
}

# Return an object for a server in a new folder that SETTINGS may give a port.
sub in_new_folder {
    my ($class, %settings) = @_;
    my $user = unprivileged();
    my $base = tempdir("crm-pg-XXXXXX", place(%settings));

    if ($user) {
        chown((getpwnam $user)[2, 3], $base) or die "CrmTest: $base: $!\n";
    }
    write_file("$base/programs", programs(bindir()));
    return bless { dir => $base, pid_of_maker => $$,
        port => $settings{port} }, $class;
}

# Run PROGRAM of PostgreSQL with ARGUMENTS; it must succeed.
sub run_tool {
    my ($program, @arguments) = @_;
    my ($code, $out, $err) = run_program(chdir => "/",
        command => [demoted(), bindir() . "/$program", @arguments]);

    die "CrmTest: $program failed: $err$out\n" if $code;
}

# Add SETTINGS to its configuration.
sub configure {
    my ($self, %settings) = @_;

    open(my $conf, ">>", "$self->{dir}/data/postgresql.conf")
        or die "CrmTest: $!\n";
    print $conf "$_ = $settings{$_}\n" for sort keys %settings;
    close $conf;
}

# Run the server of its folder, and wait until it takes connections.
sub launch {
    my ($self) = @_;
    my $dir = $self->{dir};

    $self->{pid} = spawn(chdir => "/", log => "$dir/log", signal => "INT",
        command => [demoted(), bindir() . "/postgres", "-D", "$dir/data"]);
    my $ready = wait_for(sub {
        return -1 if waitpid($self->{pid}, POSIX::WNOHANG()) != 0;
        return read_file("$dir/data/postmaster.pid", "") =~ /^ready/m;
    }, 60);
    die "CrmTest: PostgreSQL did not start: ", read_file("$dir/log", ""), "\n"
        if !$ready || $ready < 0;
}

# The settings of a server that counts statements, for statements(). Citus'
# statements are not those of 99-statements.t.
sub counting {
    return () if CrmTest::Citus::wanted();
    return (shared_preload_libraries => "'pg_stat_statements'",
        "pg_stat_statements.max" => 200000,
        "pg_stat_statements.track_utility" => "off");
}

# Start a server in a new folder. SETTINGS are added to its configuration.
sub start {
    my ($class, %settings) = @_;
    my $coordinates = delete $settings{coordinator};
    my $self = $class->in_new_folder(%settings);
    my $base = $self->{dir};

    run_tool("initdb", "-D", "$base/data", "-U", $SUPERUSER, "-A", "trust",
        "-E", "UTF8", "--locale=C.UTF-8", "--no-sync");
    # Only the servers can use this folder, so the socket needs no password.
    $self->configure(
        listen_addresses => "''",
        unix_socket_directories => "'$base'",
        unix_socket_permissions => "0700",
        max_connections => 200,
        shared_buffers => "64MB",
        fsync => "off",
        synchronous_commit => "off",
        full_page_writes => "off",
        autovacuum => "on",
        log_min_messages => "warning",
        log_line_prefix => "'%m [%p] %d %u '",
        %settings);
    $self->launch;
    $self->sql("postgres", "CREATE ROLE $OWNER LOGIN CREATEROLE CREATEDB");
    CrmTest::Citus->start_worker($self) for $coordinates ? (1, 2) : ();
    $self->sql("postgres", "CREATE EXTENSION pg_stat_statements;
        ALTER ROLE $SUPERUSER SET pg_stat_statements.track = none;
        GRANT SET ON PARAMETER pg_stat_statements.track TO PUBLIC")
        if $settings{"pg_stat_statements.max"};
    return $self;
}

# Return the server of this run: the one whose folder is in $CRM_TEST_PG, or
# one of this process's own, which the first call starts with SETTINGS.
sub get {
    my ($class, %settings) = @_;
    my $dir = $ENV{CRM_TEST_PG};

    my ($port) = $dir ? map { /PGSQL\.(\d+)$/ } glob "$dir/.s.PGSQL.*" : ();
    # a child that outlives its run must not start one that nobody ends
    die "CrmTest: the server in $dir has gone\n" if $dir && !$port;
    my $self = $port ? bless({ dir => $dir,
            port => $port == 5432 ? undef : $port }, $class)
        : ($own ||= $class->start($ENV{CRM_TEST_RECORDS} ? counting() : (),
            CrmTest::Citus::wanted() ? (CrmTest::Citus::settings(),
                coordinator => 1) : (),
            %settings));
    $self->check_programs;
    return $self;
}

# From now on SERVER, one of this process's own, is the server of this run.
sub becomes {
    my ($class, $server) = @_;
    $own = $server;
}

# Return the folder of the socket (the "host" of a conninfo).
sub host {
    return $_[0]{dir};
}

# Return the conninfo of DATABASE for ROLE (default: who migrates).
sub conninfo {
    my ($self, $database, $role) = @_;
    return $self->address . " dbname=$database user=" . ($role || $OWNER);
}

# The part of a conninfo that names the server.
sub address {
    my ($self) = @_;
    return "host=$self->{dir}" . ($self->{port} ? " port=$self->{port}" : "");
}

# Run SQL in DATABASE as ROLE (default: the superuser). Return the rows as an
# array of arrays of texts, NULL as undef; in scalar context the first value.
# Dies when it fails.
sub sql {
    my ($self, $database, $sql, $role) = @_;
    my ($null, $field, $row) = map { "\x{1}\x{1f}$_\x{1e}\x{1}" } qw(null field row);
    utf8::encode($sql) if utf8::is_utf8($sql);
    my $out = CrmTest::Psql->answer(
        $self->conninfo($database, $role || $SUPERUSER), $sql,
        ["-F", $field, "-R", $row, "-P", "null=$null"],
        { PGOPTIONS => "-c client_min_messages=warning"
                . " -c pg_stat_statements.track=none",
            PGCLIENTENCODING => "UTF8" });
    utf8::decode($out);
    $out =~ s/\n\z//;
    $out =~ s/\Q$row\E\z//;
    my @rows = map { [map { $_ eq $null ? undef : $_ }
        split /\Q$field/, $_, -1] } split /\Q$row/, $out, -1;
    return @rows if wantarray;
    return @rows ? $rows[0][0] : undef;
}

# The statements that programs sent to this server so far, with parameters for
# constants: [who, text], each once. WHO is "api" or "worker", by the rights of
# the login, or "tool". Statements of sql() are not among them.
sub statements {
    my ($self) = @_;

    my ($lost) = $self->sql("postgres", "SELECT dealloc FROM"
        . " pg_stat_statements_info");
    die "CrmTest: the server forgot statements\n" if $lost->[0];
    return $self->sql("postgres", "SELECT DISTINCT ON (who, query) CASE
            WHEN pg_has_role(r.oid, a.oid, 'USAGE') THEN 'api'
            WHEN pg_has_role(r.oid, w.oid, 'USAGE') THEN 'worker'
            ELSE 'tool' END AS who, s.query
        FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
        JOIN pg_roles a ON a.rolname = 'crmapi_api'
        JOIN pg_roles w ON w.rolname = 'crmapi_worker'
        WHERE NOT r.rolsuper");
}

# Record the statements of this server, which this process started, for
# 99-statements.t. A server that is down is skipped, and one that the test has lost
# track of: it ends when psql, which would ask it, is gone.
sub record_statements {
    my ($self) = @_;

    return if !$ENV{CRM_TEST_RECORDS} || CrmTest::Citus::wanted()
        || ${^GLOBAL_PHASE} eq "DESTRUCT";
    my @statements = eval { $self->statements } or return;
    open(my $out, ">>:raw", "$ENV{CRM_TEST_RECORDS}/statements") or return;
    flock($out, LOCK_EX);
    print $out JSON::PP->new->utf8->encode($_), "\n" for @statements;
    close $out;
}

# The statements that were recorded in this run.
sub recorded_statements {
    return map { JSON::PP->new->utf8->decode($_) } split /\n/,
        read_file("$ENV{CRM_TEST_RECORDS}/statements", "");
}

# Wait for the lock of what tests do to the server itself one at a time. Return it; it
# is released when nothing refers to it.
sub take_lock {
    my ($self) = @_;
    open(my $lock, ">>", "$self->{dir}/lock") or die "CrmTest: $!\n";
    flock($lock, LOCK_EX) or die "CrmTest: $!\n";
    return $lock;
}

# Make the template database once in a run, with the schema applied by
# CTL (the path of crmapictl) and logins for the API and the worker.
sub make_template {
    my ($self, $ctl) = @_;

    return if $self->{has_template};
    my $lock = $self->take_lock;
    if (!$self->sql("postgres",
        "SELECT 1 FROM pg_database WHERE datname = '$TEMPLATE'")) {
        $self->sql("postgres", "CREATE DATABASE ${TEMPLATE}_new OWNER $OWNER");
        my ($code, $out, $err) = run_program(
            command => [$ctl, "--database",
                $self->conninfo("${TEMPLATE}_new"), "migrate"],
            env => { CRMAPI_SCHEMA_DIR => "$ENV{CRM_SRCDIR}/schema" });
        die "CrmTest: crmapictl migrate failed: $err$out\n" if $code;
        $self->sql("postgres", "CREATE ROLE $API LOGIN IN ROLE crmapi_api")
            unless $self->sql("postgres",
                "SELECT 1 FROM pg_roles WHERE rolname = '$API'");
        $self->sql("postgres",
            "CREATE ROLE $WORKER LOGIN IN ROLE crmapi_worker")
            unless $self->sql("postgres",
                "SELECT 1 FROM pg_roles WHERE rolname = '$WORKER'");
        $self->sql("postgres",
            "ALTER DATABASE ${TEMPLATE}_new RENAME TO $TEMPLATE");
    }
    $self->{has_template} = 1;
}

# Hold the locks of SQL in DATABASE, in a new session. The returned code
# releases them.
sub hold {
    my ($self, $database, $sql) = @_;
    my $mark = "held by $$ " . ++$held;

    open(my $in, "|-", "psql", "-X", "-q", "-o", "/dev/null", "-v",
        "ON_ERROR_STOP=1", "-d", $self->conninfo($database, $SUPERUSER))
        or die "CrmTest: psql: $!\n";
    $in->autoflush(1);
    print $in "BEGIN; $sql;\nSELECT '$mark';\n";
    wait_for(sub { $self->sql($database, "SELECT count(*) FROM"
        . " pg_stat_activity WHERE datname = current_database()"
        . " AND state = 'idle in transaction' AND query LIKE '%$mark%'") })
        or die "CrmTest: nothing is held\n";
    return sub { print $in "ROLLBACK;\n"; close $in };
}

# Wait until COUNT sessions of DATABASE wait for a lock; dies when they do not.
sub wait_locked {
    my ($self, $database, $count) = @_;

    my @nodes = CrmTest::Citus::wanted() ? CrmTest::Citus::nodes_of($self)
                                         : $self;

    wait_for(sub {
        my $n = 0;
        $n += $_->sql($database, "SELECT count(*) FROM pg_stat_activity"
            . " WHERE datname = current_database()"
            . " AND wait_event_type = 'Lock'") for @nodes;
        $n >= $count }, 20)
        or die "CrmTest: fewer than $count wait for a lock\n";
}

# End the sessions that the API has in DATABASE: then PostgreSQL has counted what
# they did. Dies when they stay.
sub end_sessions {
    my ($self, $database) = @_;
    $self->sql($database, "SELECT pid FROM (SELECT pid,"
        . " pg_terminate_backend(pid, 20000) AS gone FROM pg_stat_activity WHERE"
        . " datname = '$database' AND usename = '$API') s WHERE NOT gone")
        and die "CrmTest: sessions stay\n";
}

# How many entries of the indexes of TABLES of DATABASE, and rows of them, the API
# has read so far.
sub rows_read {
    my ($self, $database, @tables) = @_;
    my $in = "relid IN (" . join(", ", map { "'crmapi.$_'::regclass" } @tables)
        . ")";

    $self->end_sessions($database);
    return scalar $self->sql($database, "SELECT coalesce(sum(idx_tup_read), 0)
            + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE $in)
        FROM pg_stat_user_indexes WHERE $in");
}

# Wait until leases that have run out are taken from their owners: job_reap()
# leaves them alone in the first ten seconds of a server. Dies when they are not.
sub wait_reaping {
    my ($self) = @_;

    wait_for(sub { $self->sql("postgres", "SELECT statement_timestamp() -"
        . " pg_postmaster_start_time() > '10 s'") eq "t" }, 15)
        or die "CrmTest: the server stays new\n";
}

my $made = 0;
# Make a database: a copy of TEMPLATE (default: empty). Return its name.
sub create_database {
    my ($self, $template, $ctl) = @_;
    my $name = sprintf "t_%d_%d", $$, ++$made;

    $self->sql("postgres", "CREATE DATABASE $name OWNER $OWNER"
        . ($template ? " TEMPLATE $template STRATEGY FILE_COPY" : ""));
    CrmTest::Citus->distribute($self, $name, $ctl)
        if CrmTest::Citus::wanted() && ($template // "") eq $TEMPLATE;
    return $name;
}

# Drop the database NAME, whoever is connected to it.
sub drop_database {
    my ($self, $name) = @_;
    $self->sql("postgres", "DROP DATABASE IF EXISTS $name WITH (FORCE)");
    CrmTest::Citus->drop($self, $name) if CrmTest::Citus::wanted();
}

# Stop a server of this process's own, which resume() starts again ("INT":
# fast, "QUIT": as after a crash).
sub halt {
    my ($self, $signal) = @_;
    end_process($self->{pid}, $signal || "INT", 30);
}

sub resume {
    my ($self) = @_;

    $self->check_programs;
    unlink "$self->{dir}/data/postmaster.pid";
    $self->launch;
}

# End the server and remove its folder, if this process started it.
sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid};

    return if !$pid || $self->{pid_of_maker} != $$;
    $self->record_statements;
    my ($status, $killed) = end_process($pid, "INT", 20);
    warn "CrmTest: PostgreSQL had to be killed\n" if $killed;
    remove_tree($self->{dir});
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop;
}

# Signals end this process through exit, so that what it started ends too.
sub END {
    local ($?, $!, $@);
    $own->stop if $own;
}

1;
