# SPDX-License-Identifier: Apache-2.0
# Bench/Cluster.pm: the benchmark's PostgreSQL and what is in it
package Bench::Cluster;
use strict;
use warnings;
use Time::HiRes qw(time);
use CrmTest::Postgres;
use CrmTest::Process qw(run_program read_file);

our $DATABASE = "bench";

# The main workspace, the one of 1,000 contacts, and the Nth small one.
our $MAIN = "01900000-0000-7000-8000-000000000000";
our $THOUSAND = "01900000-0000-7000-8000-000000000001";
sub small { sprintf "01900000-0000-7000-8001-%012d", $_[0] }

# The key with NUMBER: the main workspace's is 0, the thousand's 1.
sub key { sprintf "svc_live_%030d", $_[0] }

# Start a server with settings as production would have them, apply the schema
# by CTL, whose migrations are in SCHEMA.
sub new {
    my ($class, %arg) = @_;
    my $self = bless { %arg }, $class;
    my ($kb) = read_file("/proc/meminfo") =~ /MemTotal:\s*(\d+)/;
    my $quarter = int($kb / 4096);
    my $buffers = $quarter < 2048 ? $quarter : 2048;

    $self->{settings} = {
        shared_buffers => "${buffers}MB",
        effective_cache_size => int($kb / 2048) . "MB",
        maintenance_work_mem => "256MB", max_wal_size => "4GB",
        checkpoint_timeout => "'15min'", random_page_cost => "1.1",
        max_connections => 200, jit => "off", timezone => "UTC",
        fsync => "on", synchronous_commit => "on", full_page_writes => "on",
        shared_preload_libraries => "'pg_stat_statements'",
        "pg_stat_statements.track_utility" => "off",
    };
    $self->{pg} = CrmTest::Postgres->start(%{$self->{settings}},
        log_min_messages => "error");
    $self->{pg}->sql("postgres",
        "CREATE DATABASE $DATABASE OWNER $CrmTest::Postgres::OWNER");
    $self->migrate($DATABASE);
    $self->ctl($DATABASE, "role", "create", "api", $CrmTest::Postgres::API);
    # The two others log in as a site's own program would: with the rights
    # that their statements need.
    $self->sql("CREATE ROLE bench_site LOGIN IN ROLE crmapi_api");
    $self->sql("GRANT SELECT ON crmapi.api_key TO bench_site");
    $self->sql("CREATE EXTENSION pg_stat_statements");
    $self->sql("CREATE EXTENSION pg_prewarm");
    return $self;
}

sub host { $_[0]{pg}->host }
sub conninfo { $_[0]{pg}->conninfo($_[1] // $DATABASE, $_[2]) }

# Run SQL as ROLE (default: the superuser), for as long as it takes. Return the
# rows as arrays of texts; in scalar context the first value.
sub sql {
    my ($self, $sql, $role, $database) = @_;
    my ($code, $out, $err) = run_program(seconds => 7200, stdin => $sql,
        command => ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
            "-F", "\x1f", "-R", "\x1e", "-d", $self->conninfo($database,
                $role || $CrmTest::Postgres::SUPERUSER)],
        env => { PGOPTIONS => "-c client_min_messages=warning" });
    die "bench: $err(in: $sql)\n" if $code;
    $out =~ s/[\n\x1e]+\z//;
    my @rows = map { [split /\x1f/, $_, -1] } split /\x1e/, $out, -1;
    return wantarray ? @rows : @rows ? $rows[0][0] : undef;
}

# Run crmapictl with WORDS on DATABASE.
sub ctl {
    my ($self, $database, @words) = @_;
    my ($code, $out, $err) = run_program(
        command => [$self->{ctl}, "--database", $self->conninfo($database),
            @words], env => { CRMAPI_SCHEMA_DIR => $self->{schema} });
    die "bench: crmapictl @words failed: $err$out\n" if $code;
}

sub migrate { $_[0]->ctl($_[1], "migrate") }

# Run FIRST | SECOND, two arrays. Return the seconds it took.
sub pipe_through {
    my ($self, $first, $second) = @_;
    my $begin = time;
    my $quoted = join " | ", map {
        join " ", map { my $w = $_; $w =~ s/'/'\\''/g; "'$w'" } @$_
    } $first, $second;
    my ($code, $out, $err) = run_program(seconds => 7200,
        command => ["bash", "-c", "set -o pipefail; $quoted"]);
    die "bench: $quoted: $err$out\n" if $code;
    return time - $begin;
}

# Import PART of a workspace of CONTACTS contacts. Return the seconds.
sub import_part {
    my ($self, $workspace, $part, $contacts) = @_;
    return $self->pipe_through(
        ["$self->{top}/bench/make-data", $part, $contacts],
        [$self->{ctl}, "--database", $self->conninfo, "import",
            "--workspace", $workspace]);
}

# Workspace ID with SLUG and the key of NUMBER.
sub add_workspace {
    my ($self, $id, $slug, $number) = @_;
    $self->sql("INSERT INTO crmapi.workspace (id, name, slug, plan)
        VALUES ('$id', '$slug', '$slug', 'enterprise')");
    $self->add_keys($id, $number, $number);
}

# Keys FROM to TO for workspace ID.
sub add_keys {
    my ($self, $id, $from, $to) = @_;
    $self->sql("INSERT INTO crmapi.api_key (id, workspace_id, name, key_hash,
            display, can_read, can_write)
        SELECT gen_random_uuid(), '$id', 'bench ' || n,
            sha256(convert_to('svc_live_' || lpad(n::text, 30, '0'), 'UTF8')),
            'bench', true, true FROM generate_series($from, $to) n");
}

# Small workspaces FROM to TO: an agent, EACH contacts, the key 100 + n.
sub add_small {
    my ($self, $from, $to, $each) = @_;
    $self->sql(<<"END", $CrmTest::Postgres::OWNER);
SET crmapi.counter_slot = -1;
INSERT INTO crmapi.workspace (id, name, slug, plan)
SELECT ('01900000-0000-7000-8001-' || lpad(n::text, 12, '0'))::uuid,
    'Small ' || n, 'small-' || n, 'enterprise'
FROM generate_series($from, $to) n;
INSERT INTO crmapi.agent (id, workspace_id, name, slug)
SELECT w.id, w.id, 'Agent', 'agent' FROM crmapi.workspace w
WHERE w.slug IN (SELECT 'small-' || n FROM generate_series($from, $to) n);
INSERT INTO crmapi.api_key (id, workspace_id, name, key_hash, display,
    can_read, can_write)
SELECT gen_random_uuid(), w.id, 'bench', sha256(convert_to('svc_live_'
    || lpad((100 + n)::text, 30, '0'), 'UTF8')), 'bench', true, true
FROM generate_series($from, $to) n
JOIN crmapi.workspace w ON w.slug = 'small-' || n;
INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, last_name,
    emails, tags, lead_source, created_at, updated_at)
SELECT ('01900000-0000-7002-8' || lpad(to_hex(n % 4096), 3, '0') || '-'
        || lpad(to_hex(n / 4096 * 1048576 + i), 12, '0'))::uuid,
    w.id, w.id, 'Anna', 'Small ' || i,
    jsonb_build_array(jsonb_build_object('email', 'anna.' || i
        || '\@small-' || n || '.example', 'is_primary', true)),
    '{vip}', 'website', t, t
FROM generate_series($from, $to) n
JOIN crmapi.workspace w ON w.slug = 'small-' || n,
    generate_series(1, $each) i,
    LATERAL (SELECT timestamptz '2026-01-01' + i * interval '1 hour') x(t);
END
}

# All data of a benchmark with CONTACTS contacts in the main workspace. Return
# the seconds that importing its contacts took.
sub fill {
    my ($self, $contacts) = @_;
    my $seconds;

    $self->add_workspace($MAIN, "main", 0);
    $self->add_workspace($THOUSAND, "thousand", 1);
    $self->import_part($MAIN, "base", $contacts);
    $seconds = $self->import_part($MAIN, "contacts", $contacts);
    $self->import_part($MAIN, "talks", $contacts);
    # the same ids there: they are unique in a workspace only
    $self->import_part($THOUSAND, $_, 1000) for qw(base contacts talks);
    $self->add_small(1, 200, 100);
    $self->settle;
    return $seconds;
}

# What autovacuum does within minutes, at once; and all of it in memory.
sub settle {
    my ($self) = @_;
    $self->sql("VACUUM ANALYZE");
    $self->sql("SELECT sum(pg_prewarm(c.oid)) FROM pg_class c
        WHERE c.relnamespace = 'crmapi'::regnamespace
          AND c.relkind IN ('r', 'i')");
    $self->sql("CHECKPOINT");
}

# Wait until nobody works in the database: what a contestant had begun when its
# time was over would cost the next one time, and hold locks.
sub wait_until_idle {
    my ($self) = @_;
    $self->sql("DO \$\$ DECLARE until timestamptz = clock_timestamp()
            + interval '60 seconds';
        BEGIN
            LOOP
                PERFORM pg_stat_clear_snapshot();
                EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
                    WHERE backend_type = 'client backend'
                      AND pid <> pg_backend_pid() AND state <> 'idle');
                IF clock_timestamp() > until THEN
                    RAISE EXCEPTION 'the database does not come to rest';
                END IF;
                PERFORM pg_sleep(0.02);
            END LOOP;
        END \$\$");
}

sub stop { my ($self) = @_; $self->{pg}->stop if $self->{pg} }

1;
