#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-migrate.t: crmapictl migrate
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Functions;
use CrmTest::Process qw(spawn);
use CrmTest::Schema;
use CrmTest::Upgrade qw(next_schema);
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex sha256_hex);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);

my $api = $CrmTest::Postgres::API;
my $w = space();

# ---- migrations ---------------------------------------------------------------

# A copy of schema/ and an empty database.
sub fresh {
    my $dir = tempdir("crm-schema-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    write_file("$dir/$_", read_file("$CrmTest::TOP/schema/$_"))
        for files("$CrmTest::TOP/schema");
    symlink "$CrmTest::TOP/schema/repeat", "$dir/repeat" or die "$dir: $!\n";
    return ($dir, database(template => undef));
}

# Run "crmapictl migrate" with the files in DIR: (exit code, stderr).
sub migrate {
    my ($dir, $name) = @_;
    my ($code, $out, $err) = crmapictl($name,
        { env => { CRMAPI_SCHEMA_DIR => $dir } }, "migrate");
    return ($code, $err);
}

my $expected = (read_file("$CrmTest::TOP/mod_crmapi/database/crm_schema.h")
    =~ /CRM_SCHEMA_VERSION (\d+)/)[0];

subtest "migrations are recorded, each with its checksum" => sub {
    my @files = files("$CrmTest::TOP/schema");
    is($expected, scalar @files, "CRM_SCHEMA_VERSION is the last file's");
    is_deeply([sql($db, "SELECT number, name, sha256 FROM crmapi.migration
        ORDER BY number")],
        [map { [0 + substr($_, 0, 4), $_, sha256_hex(do {
            open(my $in, "<:raw", "$CrmTest::TOP/schema/$_") or die; local $/;
            <$in> })] } @files], "all of them");
};

subtest "migrating" => sub {
    my ($dir, $name) = fresh();
    my ($code, $err) = migrate($dir, $name);
    is($code, 0, "an empty database") or diag($err);
    is((migrate($dir, $name))[0], 0, "a second time");
    is(scalar sql($name, "SELECT count(*) FROM crmapi.migration"), $expected,
        "does nothing");

    my $next = sprintf "%04d-more.sql", $expected + 1;
    write_file("$dir/$next", "CREATE TABLE crmapi.more ();\n"
        . "INSERT INTO crmapi.nowhere VALUES (1);\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a statement that fails");
    like($err, qr/\Q$next\E.*nowhere/, "is told with its file");
    is(scalar sql($name, "SELECT to_regclass('crmapi.more')"), undef,
        "and leaves nothing");

    write_file("$dir/$next", "CREATE TABLE crmapi.more ();\n");
    is((migrate($dir, $name))[0], 0, "mended");
    unlink "$dir/$next";
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a database newer than the files");
    like($err, qr/has migration @{[$expected + 1]}, newer than the last file/,
        "is told");
    like($err, qr/newer crmapictl; .*unreleased version must be created again/,
        "with what to do");

    write_file("$dir/$next", "CREATE TABLE crmapi.other ();\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a file that was changed after it had been applied");
    like($err, qr/\Q$next\E was changed/, "is told");
    like($err, qr/release's files; .*unreleased version must be created again/,
        "with what to do");

    write_file("$dir/$next", "CREATE TABLE crmapi.more ();\n");
    my $gap = sprintf "$dir/%04d-gap.sql", $expected + 3;
    write_file($gap, "SELECT 1;\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a gap");
    like($err, qr/\b@{[sprintf "%04d", $expected + 2]}\b/, "is told");
    unlink $gap;
    is((migrate($dir, $name))[0], 0, "without it all is well");

    my $two = sprintf "%04d-two.sql", $expected + 2;
    write_file("$dir/$two", "-- step: transaction: one\nCREATE TABLE crmapi.one ();"
        . "\n-- step: transaction: two\nINSERT INTO crmapi.nowhere VALUES (1);\n");
    ($code, $err) = migrate($dir, $name);
    like($err, qr/\Q$two\E, step 2 of 2 .*nowhere/, "the second step fails");
    write_file("$dir/$two", read_file("$dir/$two") =~ s/nowhere VALUES \(1\)/one DEFAULT
        VALUES/r);
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a file of which a step had been applied");
    like($err, qr/\Q$two\E was changed/, "is told, too");
    sql($name, "UPDATE crmapi.migration SET sha256 = '"
        . sha256_hex(read_file("$dir/$two")) . "' WHERE number = $expected + 2");
    write_file(sprintf("$dir/%04d-three.sql", $expected + 3), "SELECT 1;\n");
    is(crmapictl_ok($name, { env => { CRMAPI_SCHEMA_DIR => $dir } }, "--json",
        "migrate"), "{\"version\":@{[$expected + 3]},\"applied\":2}",
        "the rest is applied, and counted");
    unlink sprintf("$dir/%04d-three.sql", $expected + 3), "$dir/$two";
    sql($name, "DELETE FROM crmapi.migration WHERE number > $expected + 1");
    write_file(sprintf("$dir/%04d-twin.sql", $expected + 1), "SELECT 1;\n");
    ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "a number twice");
    like($err, qr/\b@{[sprintf "%04d", $expected + 2]} comes next/, "is told");
};

subtest "two that migrate at once" => sub {
    my ($dir, $name) = fresh();
    my (undef, $second) = fresh();
    my @pids = map {
        my $to = $_;
        my $pid = fork // die;
        if (!$pid) {
            my ($code, $err) = migrate($dir, $to);
            warn $err if $code;
            require POSIX;
            POSIX::_exit($code);
        }
        $pid;
    } $name, $name, $name, $second, $second;
    is(scalar(grep { waitpid($_, 0); $? } @pids), 0, "nobody fails");
    is(scalar sql($_, "SELECT count(*) FROM crmapi.migration"), $expected,
        "each is applied once") for $name, $second;
};

# SQL whose transaction, in the end, waits for a row in public.go.
my $WAITS = q{
    CREATE TABLE crmapi.waits (n integer);
    CREATE FUNCTION crmapi.waits() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        WHILE NOT EXISTS (SELECT FROM public.go) LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON crmapi.waits
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION crmapi.waits();
    INSERT INTO crmapi.waits VALUES (1);
};

# Migrate by the files in DIR, of which one has $WAITS. End the session after that
# transaction, before crmapictl goes on. Return its exit code and what it printed.
sub migrate_cut_off {
    my ($dir, $name) = @_;
    my $log = "$dir/log";
    my $session = "FROM pg_stat_activity WHERE datname = '$name'
        AND query LIKE '%TRIGGER waits%' AND pid <> pg_backend_pid()";

    sql($name, "CREATE TABLE public.go ();
        GRANT SELECT ON public.go TO $CrmTest::Postgres::OWNER");
    my $pid = spawn(command => [$CrmTest::BUILD{CTL}, "migrate"], log => $log,
        env => { CRMAPI_SCHEMA_DIR => $dir,
            CRMAPI_DATABASE => postgres()->conninfo($name) });
    ok(wait_for(sub { sql($name, "SELECT 1 $session AND wait_event = 'PgSleep'") }),
        "the end of the transaction waits") or diag(read_file($log, ""));
    kill STOP => $pid;
    sql($name, "INSERT INTO public.go DEFAULT VALUES");
    ok(wait_for(sub { sql($name, "SELECT 1 $session AND state = 'idle'") }),
        "it is over");
    sql($name, "SELECT pg_terminate_backend(pid, 10000) $session");
    kill CONT => $pid;
    waitpid $pid, 0;
    return ($? >> 8, read_file($log));
}

for my $two (["steps", "", $expected], ["files of repeat", "repeat/", 0]) {
    my ($what, $folder, $last) = @$two;
    subtest "a session that is lost between two $what" => sub {
        my ($dir, $name) = fresh();
        is((migrate($dir, $name))[0], 0, "schema $expected");
        unlink "$dir/repeat" and mkdir "$dir/repeat" if $folder;
        write_file(sprintf("$dir/$folder%04d-waits.sql", $last + 1), $WAITS);
        write_file(sprintf("$dir/$folder%04d-more.sql", $last + 2),
            "CREATE TABLE crmapi.more ();\n");
        my ($code, $told) = migrate_cut_off($dir, $name);
        isnt($code, 0, "crmapictl fails");
        like($told, qr/CRM2009: .*connection was lost.*run the command again/,
            "says what to do");
        is(scalar sql($name, "SELECT to_regclass('crmapi.more')"), undef,
            "and runs nothing without the advisory lock");
        sql($name, "DROP TABLE crmapi.waits; DROP FUNCTION crmapi.waits()");
        is((migrate($dir, $name))[0], 0, "again");
        isnt(scalar sql($name, "SELECT to_regclass('crmapi.more')"), undef,
            "the rest is applied");
    };
}

subtest "a database that is filled is migrated" => sub {
    my ($dir, $name) = fresh();
    is((migrate($dir, $name))[0], 0, "schema $expected");
    my ($w, $bot, $hook, $event, $delivery, $talk) = map { uuid() } 1 .. 6;
    my %in = (workspace_id => $w);
    sql($name, join "", row("workspace", id => $w, name => "W", plan => "pro",
            slug => "w"), row("agent", %in, id => $bot, name => "A"),
        row("api_key", %in, id => uuid(), name => "K", display => "x",
            key_hash => \"sha256('k')"),
        row("webhook_endpoint", %in, id => $hook, url => "https://x.org",
            events => "{contact.created}", key => "k" x 24),
        row("event", %in, id => $event, type => "t", body => "b"),
        row("webhook_delivery", %in, id => $delivery, event_id => $event,
            endpoint_id => $hook, job_id => 1),
        row("conversation", %in, id => $talk, bot_id => $bot, type => 4));
    my ($key) = sql($name, "SELECT encode(key, 'hex') FROM crmapi.link_key");
    my $ask = sub { postgres()->sql($name, @_) };
    my $take = sub { $ask->("SELECT message_id FROM crmapi.intake('$w',
        sha256('i'), '[{\"event_id\": \"$_[0]\", \"conversation_id\":
        \"$talk\", \"content\": \"x\"}]')", $api) };
    my ($code, $err) = migrate(next_schema(), $name);
    is($code, 0, "migrated") or diag($err);
    $ask->(row("intake_key", %in, id => uuid(), name => "K", display => "x",
        key_hash => \"sha256('i')"));
    is(scalar(() = $take->("after")), 1,
        "a conversation that existed takes a message");
    is(scalar $ask->("SELECT workspace_id FROM crmapi.key_look_up(sha256('k'))",
        $api), $w, "its keys are found");
    my $head = "0102" . ($w =~ s/-//gr) . "00" x 40;
    is(scalar $ask->("SELECT crmapi.token_signed('\\x$head', '\\x"
        . hmac_sha256_hex(pack("H*", $head), pack "H*", $key->[0]) . "')",
        $api), "t", "links that were sent before are good");
    is(scalar $ask->("SELECT signatures FROM crmapi.webhook_sign('$w',
        '$delivery', '1', NULL)", $CrmTest::Postgres::WORKER), "v1,"
        . encode_base64(hmac_sha256("msg_" . ($event =~ s/-//gr) . ".1.b",
            "k" x 24), ""), "webhooks are signed by the secret that was told");
};

subtest "an UPDATE of a contact writes no index that lacks what it changes"
        => sub {
    my $id = make("contact", %{space()->{owned}});
    my %indexed = map { @$_, 1 } sql($db, "SELECT DISTINCT a.attname
        FROM pg_index i CROSS JOIN LATERAL pg_get_indexdef(i.indexrelid) d
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND d ~ ('\\m'
            || a.attname || '\\M')
        WHERE i.indrelid = 'crmapi.contact'::regclass");
    ok(!$indexed{updated_at}, "none has updated_at, which each UPDATE changes");
    my @plain = grep { !$indexed{$_->[0]} } sql($db, "SELECT attname,
            CASE atttypid::regtype::text WHEN 'crmapi.object' THEN '{\"a\": 1}'
                WHEN 'timestamp(3) with time zone' THEN '2027-01-01'
                ELSE 'text' END
        FROM pg_attribute WHERE attrelid = 'crmapi.contact'::regclass
            AND attnum > 0 AND NOT attisdropped
            AND attname ~ '^(job|address|city|state|postal|country|notes|custom
                |linkedin|contact_type)'");
    cmp_ok(scalar @plain, ">", 5, "there are such columns");
    for my $column (@plain) {
        my ($name, $value) = @$column;
        is_deeply([sql($db, "BEGIN; UPDATE crmapi.contact SET $name = '$value',
            updated_at = crmapi.now_ms() + interval '1 ms' WHERE id = '$id';
            SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
            WHERE relid = 'crmapi.contact'::regclass; COMMIT")], [[1, 1]], $name);
    }
};

subtest "extensions may be elsewhere" => sub {
    my ($dir, $name) = fresh();
    sql($name, "CREATE SCHEMA ext; GRANT USAGE ON SCHEMA ext TO PUBLIC;
        CREATE EXTENSION pg_trgm SCHEMA ext;
        CREATE EXTENSION btree_gin SCHEMA ext;
        CREATE EXTENSION pgcrypto SCHEMA ext");
    my ($code, $err) = migrate($dir, $name);
    is($code, 0, "found") or diag($err);
    is(scalar sql($name, "SELECT crmapi.webhook_mac('x', 'k')"), "v1,"
        . encode_base64(hmac_sha256("x", "k"), ""), "and used");
};

subtest "a database of another encoding is refused" => sub {
    my ($dir) = fresh();
    my $name = "latin1_$$";
    sql("postgres", "CREATE DATABASE $name OWNER $CrmTest::Postgres::OWNER
        ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    my ($code, $err) = migrate($dir, $name);
    isnt($code, 0, "refused");
    like($err, qr/UTF8/, "with the reason");
    sql("postgres", "DROP DATABASE $name WITH (FORCE)");
};

done_testing();
