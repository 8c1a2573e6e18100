#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-rights.t: who may do what in the database; SQL as a program's login stays
# within that (contract 9.3)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $OWNER = $CrmTest::Postgres::OWNER;
my @ROLES = qw(crmapi_api crmapi_worker);
my %LOGIN = (crmapi_api => $CrmTest::Postgres::API,
    crmapi_worker => $CrmTest::Postgres::WORKER);

# A database as "crmapictl migrate" leaves it. The harness makes others as copies
# of a template, and rights of the database itself are not copied.
sub migrated {
    my ($name) = @_;
    my ($code, $out, $err) = crmapictl($name, {}, "migrate");
    is($code, 0, "migrated") or diag($err);
    return $name;
}

my $db = migrated(database());

# SQL as ROLE in DATABASE: what PostgreSQL says, or "" if it does it.
sub said {
    my ($role, $sql, $database) = @_;
    return eval { postgres()->sql($database // $db, $sql, $role); 1 } ? "" : $@;
}

# ---- becoming the owner -----------------------------------------------------

# A table of the attacker's own, with a trigger of ours. Its column has a type
# of the attacker's, which becomes a uuid by the attacker's function: whoever
# runs the trigger runs that. It notes who that is.
my $ATTACK = q{
    CREATE TABLE %1$s.noted (who name);
    GRANT INSERT ON %1$s.noted TO PUBLIC;
    CREATE TYPE %1$s.evil AS (id uuid);
    CREATE FUNCTION %1$s.turn(%1$s.evil) RETURNS uuid LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO %1$s.noted SELECT current_user;
        RETURN $1.id;
    END $$;
    CREATE CAST (%1$s.evil AS uuid) WITH FUNCTION %1$s.turn(%1$s.evil)
        AS IMPLICIT;
    CREATE TABLE %1$s.bait (workspace_id %1$s.evil, bot_id uuid);
    CREATE TRIGGER t AFTER INSERT ON %1$s.bait REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION crmapi.counter_owned('contact');
    INSERT INTO %1$s.bait SELECT row(id)::%1$s.evil, gen_random_uuid()
        FROM crmapi.workspace;
    SELECT string_agg(DISTINCT who::text, ' ') FROM %1$s.noted;
};

subtest "a trigger of ours on a table of a program's login" => sub {
    sql($db, "INSERT INTO crmapi.workspace (id, name, slug)
        VALUES (gen_random_uuid(), 'W', 'w')");
    for my $role (sort keys %LOGIN) {
        my $login = $LOGIN{$role};
        like(said($login, sprintf $ATTACK, "pg_temp"),
            qr/permission denied to create temporary tables/,
            "$role: no temporary table");
        like(said($login, sprintf $ATTACK, "public"),
            qr/permission denied for schema public/, "$role: no other one");

        # a site may let the login have either
        sql($db, "GRANT TEMPORARY ON DATABASE $db TO $login;
            CREATE SCHEMA playground AUTHORIZATION $login;
            GRANT USAGE ON SCHEMA playground TO PUBLIC");
        like(said($login, sprintf $ATTACK, $_),
            qr/permission denied for function \S*counter_owned/,
            "$role: $_: no trigger of ours") for "pg_temp", "playground";
        sql($db, "REVOKE TEMPORARY ON DATABASE $db FROM $login;
            DROP SCHEMA playground CASCADE");
    }
};

subtest "none of the other ways to the owner, the files or the server" => sub {
    my ($file) = ("/tmp/crmapi-rights-$$");
    my @ways = (
        ["SET ROLE $OWNER", qr/permission denied to set role/],
        ["SET ROLE postgres", qr/permission denied to set role/],
        ["SET SESSION AUTHORIZATION $OWNER", qr/permission denied/],
        ["SET session_replication_role = replica", qr/permission denied/],
        ["GRANT crmapi_api TO $LOGIN{crmapi_worker}",
            qr/must have admin|permission denied/],
        ["GRANT pg_execute_server_program TO CURRENT_USER",
            qr/must have admin|permission denied/],
        ["COPY (SELECT 1) TO PROGRAM 'true'", qr/to or from an external/],
        ["COPY (SELECT 1) TO '$file'", qr/to a file/],
        ["CREATE TEMPORARY TABLE x (x integer) ON COMMIT DROP",
            qr/permission denied/],
        ["COPY crmapi.migration FROM '/etc/passwd'", qr/from a file/],
        ["SELECT pg_read_file('/etc/passwd')", qr/permission denied/],
        ["SELECT pg_ls_dir('.')", qr/permission denied/],
        ["SELECT lo_import('/etc/passwd')", qr/permission denied/],
        ["SELECT lo_export(1, '$file')", qr/permission denied/],
        ["SELECT pg_reload_conf()", qr/permission denied/],
        ["CREATE EXTENSION dblink", qr/permission denied|not available/],
        ["CREATE EXTENSION plperl", qr/permission denied|not available/],
        ["CREATE SCHEMA mine", qr/permission denied/],
        ["CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION"
            . " crmapi.refuse_change()", qr/permission denied/],
        ["CREATE FUNCTION public.f() RETURNS integer RETURN 1",
            qr/permission denied for schema/],
        ["CREATE FUNCTION crmapi.f() RETURNS integer RETURN 1",
            qr/permission denied for schema/],
        ["CREATE DOMAIN public.d AS crmapi.line", qr/permission denied/],
        ["CREATE OPERATOR public.=== (LEFTARG = text, RIGHTARG = text,"
            . " FUNCTION = texteq)", qr/permission denied for schema/],
        ["CREATE CAST (text AS crmapi.object) WITH INOUT AS IMPLICIT",
            qr/must be owner of type/],
        ["CREATE TRIGGER t BEFORE INSERT ON crmapi.contact FOR EACH ROW"
            . " EXECUTE FUNCTION crmapi.refuse_change()",
            qr/permission denied/],
        ["CREATE RULE r AS ON INSERT TO crmapi.plan DO INSTEAD NOTHING",
            qr/must be owner/],
        ["ALTER TABLE crmapi.contact ADD COLUMN x integer", qr/must be owner/],
        ["ALTER FUNCTION crmapi.key_look_up SET search_path = public",
            qr/must be owner/],
        ["DROP FUNCTION crmapi.key_look_up", qr/must be owner/],
        ["CREATE OR REPLACE FUNCTION crmapi.now_ms() RETURNS timestamptz"
            . " LANGUAGE sql RETURN now()", qr/permission denied/],
        ["TRUNCATE crmapi.contact", qr/permission denied/],
        ["SELECT key_hash FROM crmapi.api_key", qr/permission denied/],
        ["SELECT key FROM crmapi.link_key", qr/permission denied/],
        ["SELECT rolpassword FROM pg_authid", qr/permission denied/],
        ["SELECT * FROM pg_hba_file_rules", qr/permission denied/],
    );
    for my $role (sort keys %LOGIN) {
        like(said($LOGIN{$role}, $_->[0]), $_->[1],
            "$role: " . substr $_->[0], 0, 60) for @ways;
        is(scalar postgres()->sql($db, "SELECT count(*) FROM pg_stat_activity
            WHERE usename <> current_user
              AND query NOT LIKE '<insufficient privilege>'
              AND query <> ''", $LOGIN{$role}), 0,
            "$role: others' statements are not shown");
    }
    ok(!-e $file, "no file was written");
};

# What a program could do with a table and never does, so that who has its password
# cannot: keys are not read, messages, jobs and bills are not forged.
subtest "no program may do with a table what it never does" => sub {
    my %never = (
        crmapi_api => ["SELECT crmapi.job", "INSERT crmapi.message",
            "DELETE crmapi.message", "DELETE crmapi.event", "UPDATE crmapi.event",
            "SELECT crmapi.audit", "DELETE crmapi.audit", "SELECT crmapi.upkeep",
            "SELECT crmapi.erasure", "SELECT crmapi.webhook_endpoint",
            "UPDATE crmapi.plan", "UPDATE crmapi.workspace", "INSERT crmapi.api_key",
            "DELETE crmapi.conversation", "INSERT crmapi.conversation",
            "UPDATE bot_id crmapi.conversation", "UPDATE contact_id crmapi.conversation",
            "UPDATE contact_id crmapi.activity", "UPDATE crmapi.enrollment",
            "SELECT key_hash crmapi.api_key", "UPDATE can_write crmapi.api_key",
            "SELECT reason crmapi.workspace_hold", "DELETE crmapi.workspace_hold"],
        crmapi_worker => ["SELECT key crmapi.webhook_endpoint",
            "SELECT old_key crmapi.webhook_endpoint", "SELECT crmapi.api_key",
            "SELECT crmapi.live_key", "SELECT crmapi.audit", "SELECT crmapi.erasure",
            "UPDATE crmapi.contact", "DELETE crmapi.contact", "UPDATE crmapi.message",
            "INSERT crmapi.message", "DELETE crmapi.event", "UPDATE crmapi.enrollment",
            "UPDATE crmapi.plan", "UPDATE crmapi.workspace", "DELETE crmapi.past_send",
            "UPDATE contact_id crmapi.conversation", "DELETE crmapi.workspace_hold"]);
    for my $role (sort keys %never) {
        for (@{$never{$role}}) {
            my ($right, $column, $table) = /^(\w+) (?:(\w+) )?(crmapi\.\w+)$/;
            is(sql($db, $column
                ? "SELECT has_column_privilege('$role', '$table', '$column', '$right')"
                : "SELECT has_table_privilege('$role', '$table', '$right')"), "f",
                "$role: $_");
        }
    }
};

# ---- the list ---------------------------------------------------------------

my $LIST = read_file("$CrmTest::TOP/schema/repeat/0002-rights.sql");

# The text of the VALUES of NAME in the list.
sub listed {
    my ($name) = @_;
    return ($LIST =~ /\b\Q$name\E \([^)]*\) AS \(VALUES(.*?)\)\)(?:,|\s)/s)[0]
        // die "no $name";
}

# Literals of SQL, which are one if white space with a newline is between them.
sub joined { return join "", $_[0] =~ /'([^']*)'/g }

# The rights on tables in the list: {role}{table}{right} is "" or its columns.
sub listed_tables {
    my %right;
    my $text = listed("relation") =~ s/^\s*--.*//mgr . ")";
    while ($text =~ /\('(\w+)',((?:\s*'[^']*')+),((?:\s*'[^']*')+)\)/g) {
        my ($table, %text) = ($1, crmapi_api => $2, crmapi_worker => $3);
        for my $role (@ROLES) {
            my $rights = joined($text{$role});
            while ($rights =~ /([A-Z]+)(?: \(([^)]*)\))?/g) {
                $right{$role}{$table}{$1} = join " ", sort split /,\s*/,
                    $2 // "";
            }
        }
    }
    return \%right;
}

# The functions in the list: {role}{name}.
sub listed_functions {
    my %may;
    my $text = listed("function") =~ s/^\s*--.*//mgr . ")";
    while ($text =~ /\('([\w ]+)',((?:\s*'[^']*')+)\)/g) {
        my ($who, $names) = ($1, joined($2));
        for my $role (split / /, $who) {
            $may{$role}{$_} = 1 for split / /, $names;
        }
    }
    return \%may;
}

# What LOGIN may do with the tables of DATABASE, in the form of listed_tables().
sub table_rights {
    my ($login, $database) = @_;
    my %right;
    $right{$_->[0]}{$_->[1]} = $_->[2] for sql($database, "
        SELECT c.relname, p.name, CASE WHEN c.relkind = 'S' THEN ''
            WHEN has_table_privilege('$login', c.oid, p.name) THEN ''
            ELSE (SELECT string_agg(a.attname, ' ' ORDER BY a.attname
                      COLLATE \"C\")
                  FROM pg_attribute a WHERE a.attrelid = c.oid
                    AND a.attnum > 0 AND NOT a.attisdropped
                    AND p.name IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
                    AND has_column_privilege('$login', c.oid, a.attnum,
                                             p.name)) END
        FROM pg_class c CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE,
            TRUNCATE,REFERENCES,TRIGGER,USAGE}'::text[]) p(name)
        WHERE c.relnamespace = 'crmapi'::regnamespace AND CASE
            WHEN c.relkind = 'S' THEN p.name IN ('SELECT', 'UPDATE', 'USAGE')
                AND has_sequence_privilege('$login', c.oid, p.name)
            WHEN c.relkind IN ('r', 'p', 'v', 'm', 'f') AND p.name <> 'USAGE'
            THEN has_table_privilege('$login', c.oid, p.name)
                 OR p.name IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
                AND has_any_column_privilege('$login', c.oid, p.name)
            ELSE false END");
    return \%right;
}

# Compare DATABASE with the list.
sub rights_are_listed {
    my ($database, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($tables, $functions) = (listed_tables(), listed_functions());
    my @functions = map { $_->[0] } sql($database, "SELECT DISTINCT proname
        FROM pg_proc WHERE pronamespace = 'crmapi'::regnamespace");
    for my $role (@ROLES) {
        is_deeply(table_rights($LOGIN{$role}, $database), $tables->{$role},
            "$name: $role: tables, columns and sequences");
        my %may = map { $_->[0] => 1 } sql($database, "SELECT proname
            FROM pg_proc WHERE pronamespace = 'crmapi'::regnamespace
              AND has_function_privilege('$LOGIN{$role}', oid, 'EXECUTE')");
        is_deeply([sort keys %may], [sort grep { $functions->{$role}{$_} }
            @functions], "$name: $role: functions");
    }
    is_deeply([sql($database, "SELECT catalog, object FROM (
            SELECT 'pg_class' AS catalog, oid::regclass::text AS object,
                relacl AS acl, relnamespace AS space FROM pg_class
            UNION ALL SELECT 'pg_attribute', attrelid::regclass || '.'
                || attname, attacl, c.relnamespace FROM pg_attribute
                JOIN pg_class c ON c.oid = attrelid
            UNION ALL SELECT 'pg_proc', oid::regprocedure::text,
                coalesce(proacl, acldefault('f', proowner)), pronamespace
                FROM pg_proc
            UNION ALL SELECT 'pg_type', oid::regtype::text,
                coalesce(typacl, acldefault('T', typowner)), typnamespace
                FROM pg_type WHERE typtype = 'd'
            UNION ALL SELECT 'pg_namespace', nspname, nspacl, oid
                FROM pg_namespace) o CROSS JOIN LATERAL aclexplode(acl) x
        WHERE space = 'crmapi'::regnamespace
          AND (x.grantee = 0 OR x.is_grantable)")], [],
        "$name: PUBLIC has nothing, and nobody may grant");
    is_deeply([sql($database, "SELECT x.privilege_type FROM pg_database d
        CROSS JOIN LATERAL aclexplode(coalesce(d.datacl,
            acldefault('d', d.datdba))) x
        WHERE d.datname = current_database() AND x.grantee = 0")],
        [["CONNECT"]], "$name: PUBLIC may only connect");
    is(scalar sql($database, "SELECT has_schema_privilege('$LOGIN{$_}',
        'public', 'CREATE') OR has_schema_privilege('$LOGIN{$_}', 'crmapi',
        'CREATE') OR has_database_privilege('$LOGIN{$_}', '$database',
        'CREATE')"), "f", "$name: $_ creates nothing") for @ROLES;
}

subtest "each table and function: who may do what is listed" => sub {
    rights_are_listed($db, "a new database");
    my ($tables, $functions) = (listed_tables(), listed_functions());
    my $citus = join "", map { read_file($_) }
        glob "$CrmTest::TOP/schema/citus/{,repeat/}*.sql";
    my %there = map { $_->[0] => 1 } sql($db, "SELECT proname FROM pg_proc
        WHERE pronamespace = 'crmapi'::regnamespace UNION ALL
        SELECT relname FROM pg_class
        WHERE relnamespace = 'crmapi'::regnamespace");
    for my $name (map { keys %$_ } map { @$_{@ROLES} } $tables, $functions) {
        next if $there{$name}++;
        like($citus, qr/CREATE \S*(?: REPLACE)?.*crmapi\.$name\b/,
            "$name is there, or in a database that Citus distributes");
    }
    my @files = glob "$CrmTest::TOP/schema/[0-9]*.sql";
    is(scalar sql($db, "SELECT count(*) FROM crmapi.migration"), @files,
        "all files are applied");
    is_deeply([grep { read_file($_) =~ /^\s*(?:GRANT|REVOKE)\b/m } @files], [],
        "and no other file grants or revokes");
};

# The folders that the program of each role is linked with (mod_crmapi/README).
my %FOLDERS = (crmapi_worker => [qw(base database model mail worker)],
    crmapi_api => [qw(base database shared model serve rest crm pages intake mcp
        module)]);

# The text of all files below FOLDER that end with END.
sub text_of {
    my ($folder, $end) = @_;
    return join "", map { -d $_ ? text_of($_, $end) : /\Q$end\E$/
        ? read_file($_) : "" } glob "$folder/*";
}

# The names of functions that ROLE's program needs: those that its sources name, or
# tables and views do (defaults, checks, triggers), and those that these call, as far
# as they run with the caller's rights. The sources say some names in two parts. What
# the program MAY not call itself runs with the owner's rights.
sub needed {
    my ($role, $may) = @_;
    my %body;
    $body{$_->[0]} .= $_->[1] for sql($db, "SELECT proname,
        pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = 'crmapi'::regnamespace AND NOT prosecdef");
    my @texts = ((map { text_of("$CrmTest::TOP/mod_crmapi/$_", ".c"),
            text_of("$CrmTest::TOP/mod_crmapi/$_", ".h") } @{$FOLDERS{$role}}),
        text_of("$CrmTest::TOP/schema/citus", ".sql"), map { $_->[0] // "" }
        sql($db, "SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
                  JOIN pg_class c ON c.oid = d.adrelid
                  WHERE c.relnamespace = 'crmapi'::regnamespace
                  UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint
                  WHERE connamespace = 'crmapi'::regnamespace
                  UNION ALL SELECT pg_get_viewdef(oid) FROM pg_class
                  WHERE relnamespace = 'crmapi'::regnamespace AND relkind = 'v'
                  UNION ALL SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i
                  JOIN pg_class c ON c.oid = i.indrelid
                  WHERE c.relnamespace = 'crmapi'::regnamespace
                  UNION ALL SELECT p.prosrc FROM pg_trigger t
                  JOIN pg_proc p ON p.oid = t.tgfoid
                  WHERE NOT p.prosecdef
                    AND p.pronamespace = 'crmapi'::regnamespace"));
    my %needed;
    while (defined(my $text = shift @texts)) {
        for my $name (grep { !$needed{$_}++ } $text =~ /(\w+)/g) {
            push @texts, delete $body{$name}
                if $may->{$name} && defined $body{$name};
        }
    }
    return \%needed;
}

subtest "no program may call a function that it does not need" => sub {
    my $may = listed_functions();
    for my $role (@ROLES) {
        my $needed = needed($role, $may->{$role});
        is_deeply([grep { !$needed->{$_} } sort keys %{$may->{$role}}], [],
            $role);
    }
};

subtest "a function with the owner's rights finds nothing of the caller's" => sub {
    is_deeply([sql($db, "SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'crmapi'::regnamespace AND prosecdef
          AND 'search_path=pg_catalog, pg_temp' <> ALL (
              coalesce(proconfig, '{}'))")], [],
        "pg_catalog is searched, pg_temp last");
    is_deeply([sql($db, "SELECT p.oid::regprocedure FROM pg_proc p
        JOIN pg_type t ON t.oid = ANY (p.proargtypes)
        WHERE p.pronamespace = 'crmapi'::regnamespace AND p.prosecdef
          AND t.typtype = 'p'")], [], "no parameter has any type");
    is_deeply([sql($db, "SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'crmapi'::regnamespace AND p.prosecdef
          AND p.proowner <> '$OWNER'::regrole")], [],
        "nobody else's rights");
    is_deeply([sql($db, "SELECT oid::regclass FROM pg_class
        WHERE relnamespace = 'crmapi'::regnamespace AND relkind = 'v'
          AND EXISTS (SELECT FROM pg_depend d JOIN pg_proc p
              ON d.refobjid = p.oid JOIN pg_rewrite r ON r.oid = d.objid
              WHERE r.ev_class = pg_class.oid AND p.pronamespace
                  <> 'pg_catalog'::regnamespace)")], [],
        "no view calls a function");
};

# ---- later --------------------------------------------------------------------

subtest "what is created later is the owner's" => sub {
    postgres()->sql($db, "CREATE FUNCTION crmapi.later() RETURNS integer
        LANGUAGE sql RETURN 1; CREATE TABLE crmapi.later (x integer)", $OWNER);
    for my $login (values %LOGIN) {
        like(said($login, "SELECT crmapi.later()"), qr/permission denied/,
            "$login: a function");
        like(said($login, "SELECT x FROM crmapi.later"), qr/permission denied/,
            "$login: a table");
    }
    postgres()->sql($db, "DROP FUNCTION crmapi.later; DROP TABLE crmapi.later",
        $OWNER);
};

my $LOOSE = "
    GRANT ALL ON ALL TABLES IN SCHEMA crmapi TO crmapi_api;
    GRANT SELECT (key_hash) ON crmapi.api_key TO crmapi_worker, PUBLIC;
    GRANT SELECT ON crmapi.contact TO PUBLIC;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA crmapi TO PUBLIC;
    GRANT USAGE ON SEQUENCE crmapi.job_id_seq TO crmapi_api WITH GRANT OPTION;
    GRANT USAGE ON DOMAIN crmapi.line TO PUBLIC;
    GRANT CREATE ON SCHEMA crmapi TO crmapi_api;
    GRANT ALL ON SCHEMA public TO PUBLIC;
    REVOKE SELECT ON crmapi.contact FROM crmapi_api;
    REVOKE EXECUTE ON FUNCTION crmapi.key_look_up FROM crmapi_api;
    ALTER DEFAULT PRIVILEGES FOR ROLE $OWNER
        GRANT EXECUTE ON FUNCTIONS TO PUBLIC;";

subtest "migrate makes the rights of an existing database right" => sub {
    my $name = database();
    sql($name, "$LOOSE GRANT ALL ON DATABASE $name TO PUBLIC, crmapi_api;
        CREATE ROLE reports_$$; GRANT USAGE ON SCHEMA crmapi TO reports_$$;
        GRANT SELECT ON crmapi.contact TO reports_$$");
    migrated($name);
    rights_are_listed($name, "after migrate");
    is(scalar sql($name, "SELECT has_table_privilege('reports_$$',
        'crmapi.contact', 'SELECT')"), "t", "another role keeps its own");
    my $state = sub { scalar sql($name, "SELECT string_agg(x, ' ' ORDER BY x)
        FROM (SELECT xmin::text AS x FROM pg_class UNION ALL SELECT xmin::text
        FROM pg_proc UNION ALL SELECT xmin::text FROM pg_namespace
        UNION ALL SELECT xmin::text FROM pg_default_acl) t") };
    my $before = $state->();
    migrated($name);
    is($state->(), $before, "a second time changes nothing");
    sql($name, "DROP OWNED BY reports_$$; DROP ROLE reports_$$");
};

subtest "install.md: only who is named may connect" => sub {
    my $name = migrated(database());
    my ($line) = read_file("$CrmTest::TOP/docs/install.md")
        =~ /^\$ (psql -d crmapi -c 'GRANT CONNECT .*)/m;
    for my $sql ($line =~ /-c '([^']*)'/g) {
        sql($name, $sql =~ s/DATABASE crmapi /DATABASE $name /r);
    }
    sql($name, "CREATE ROLE other_$$ LOGIN");
    migrated($name);
    is(said($_, "SELECT 1", $name), "", "$_ may") for $OWNER, values %LOGIN;
    like(said("other_$$", "SELECT 1", $name), qr/permission denied for database/,
        "no other");
    sql($name, "DROP ROLE other_$$");
};

subtest "a database that was restored" => sub {
    my ($name, $from) = (database(template => undef), postgres());
    my $pipe = sprintf "pg_dump -Fc -d '%s' | pg_restore --exit-on-error"
        . " --no-publications -d '%s'", map { $from->conninfo($_, "postgres") }
        $db, $name;
    is(system($pipe), 0, "by pg_dump and pg_restore");
    migrated($name);
    rights_are_listed($name, "then migrate");
    like(said($CrmTest::Postgres::API, sprintf($ATTACK, "pg_temp"), $name),
        qr/permission denied/, "the way to the owner is closed");
};

# ---- who owns the schema, and who has its logins ------------------------------

subtest "an owner who may create roles is told" => sub {
    my ($name, $owner) = ("owned_$$", "owner_$$");
    my $as = sub { { env => { CRMAPI_DATABASE =>
        postgres()->conninfo($name, $_[0]) } } };
    sql("postgres", "CREATE ROLE $owner LOGIN CREATEROLE");
    sql("postgres", "CREATE DATABASE $name OWNER $owner");
    # since PostgreSQL 16 as if he had made the groups
    sql("postgres", "GRANT crmapi_api, crmapi_worker TO $owner"
        . " WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
        if sql("postgres", "SHOW server_version_num") >= 160000;
    my $told = qr/warning: the role "$owner", .* ALTER ROLE "?$owner"? NOCREATEROLE/;
    for my $call (["migrate"], ["status"], ["role", "create", "api",
            "site_$$"]) {
        my ($code, $out, $err) = crmapictl(undef, $as->($owner), @$call);
        is($code, 0, "@$call") or diag($err);
        like($err, $told, "says so");
    }
    sql($name, "ALTER ROLE $owner NOCREATEROLE");
    my ($code, $out, $err) = crmapictl(undef, $as->($owner), "migrate");
    is("$code$err", 0, "without it, migrate works and has nothing to say");
    rights_are_listed($name, "a database of another owner");
    for my $call (["status"], ["httpd-conf", $owner]) {
        like(join("", (crmapictl(undef, $as->($owner), @$call))[1, 2]),
            $call->[1] ? qr/there is no login $owner of crmapi_api/
                : qr/\A(?!.*"?$owner)/s, "@$call: he is not httpd's login");
    }
    ($code, $out, $err) = crmapictl(undef, $as->($owner), "role", "create",
        "worker", "daemon_$$");
    isnt($code, 0, "he makes no login");
    like($err, qr/permission denied to create role.*as a superuser/s,
        "and hears what to do");
    ($code, $out, $err) = crmapictl(undef, $as->("postgres"), "role",
        "create", "worker", "daemon_$$");
    is("$code$err", 0, "a superuser makes it, with nothing to say");
    sql("postgres", "DROP DATABASE $name WITH (FORCE)");
    sql("postgres", "DROP ROLE site_$$, daemon_$$, $owner");
};

subtest "a login that may do more is refused, or told" => sub {
    my @more = (
        ["LOGIN CREATEROLE", ""], ["LOGIN CREATEDB", ""],
        ["LOGIN SUPERUSER", ""], ["LOGIN BYPASSRLS", ""],
        ["LOGIN REPLICATION", ""],
        ["LOGIN IN ROLE $OWNER", ""], ["LOGIN IN ROLE crmapi_worker", ""],
        ["LOGIN IN ROLE pg_execute_server_program", ""],
        ["LOGIN IN ROLE pg_read_all_data", ""],
        ["LOGIN IN ROLE middle_$$", ""],
        ["LOGIN NOINHERIT IN ROLE middle_$$", ""],
        ["LOGIN", "GRANT TEMPORARY ON DATABASE $db TO more_$$",
            "REVOKE TEMPORARY ON DATABASE $db FROM more_$$"],
        ["LOGIN", "GRANT CREATE ON SCHEMA public TO more_$$",
            "REVOKE CREATE ON SCHEMA public FROM more_$$"],
        ["LOGIN", "GRANT SELECT ON crmapi.link_key TO more_$$",
            "REVOKE SELECT ON crmapi.link_key FROM more_$$"],
    );
    sql($db, "CREATE ROLE middle_$$ CREATEROLE IN ROLE pg_write_all_data");
    for my $case (@more) {
        my ($attributes, $then, $back) = @$case;
        sql($db, "CREATE ROLE more_$$ $attributes; $then");
        my ($code, $out, $err) = crmapictl($db, {}, "role", "create", "api",
            "more_$$");
        isnt($code, 0, "$attributes $then");
        like($err, qr/may do more than crmapi_api/, "is refused");
        sql($db, ($back // "") . "; DROP ROLE more_$$");
    }
    sql($db, "DROP ROLE middle_$$; CREATE ROLE more_$$ LOGIN IN ROLE
        crmapi_api; GRANT TEMPORARY ON DATABASE $db TO more_$$");
    like((crmapictl($db, {}, "status"))[2],
        qr/the login "more_$$" may do more than crmapi_api/,
        "status tells of one that was changed later");
    sql($db, "REVOKE TEMPORARY ON DATABASE $db FROM more_$$; DROP ROLE more_$$");
};

done_testing;
