#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 06-crmapictl.t: the operator's tool: commands, options, output, exit codes
# long
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Session;
use Digest::SHA qw(sha256_hex);
use File::Temp qw(tempdir);
use JSON::PP ();

my $uuid = qr/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;
my $time = qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

# ARGUMENTS end with CODE, say nothing on stdout, and one line that is like
# LINE on stderr. OPTION, a hash in front, is that of crmapictl().
sub fails {
    my ($name, $database, $code, $line, @arguments) = @_;
    my ($got, $out, $err) = crmapictl($database, @arguments);

    subtest $name => sub {
        is($got, $code, "exit code");
        is($out, "", "nothing on stdout");
        like($err, qr/\Acrmapictl: [^\n]+\n\z/, "one line on stderr");
        like($err, $line, "which says why");
    };
    return $err;
}

my %help;
# What --help says of the command WORDS: exit code and text. Each is asked once.
sub help_of {
    my (@words) = @_;
    return @{$help{"@words"} //= [crmapictl(undef, @words, "--help")]};
}

# What ARGUMENTS print with --json, read.
sub asked {
    my ($database, @arguments) = @_;
    return crmapictl_json($database, @arguments);
}

# --- before there is a schema ------------------------------------------------
subtest "migrate" => sub {
    my $db = database(template => undef);
    fails("status of a database that is not migrated", $db, 1, qr/migrate/,
        "status");
    my ($code, $out) = crmapictl($db, "migrate");
    is($code, 0, "migrate");
    my ($version) = $out =~ /\Aschema version (\d+)\n\z/;
    ok($version, "tells the version alone") or diag($out);
    is_deeply(asked($db, "migrate"), { version => $version, applied => 0 },
        "a second time there is nothing to do");
    my $status = asked($db, "status");
    is($status->{schema_version}, $version, "status: version");
    is($status->{schema_expected}, $version, "status: expected version");
    is($status->{workspaces}, 0, "status: workspaces");
    is($status->{live_keys}, 0, "status: keys");
    like($status->{server_version}, qr/^\d/, "status: the server's version");
    cmp_ok($status->{database_bytes}, ">", 1_000_000, "status: size");
    cmp_ok($status->{connections}, ">=", 1, "status: connections");
    fails("--schema goes before the environment", $db, 1, qr/nowhere/,
        "migrate", "--schema", "/nowhere");
};

my $db = database();

subtest "distribute refuses a database without Citus, and changes nothing" => sub {
    plan(skip_all => "the database is distributed") if $ENV{CRM_CITUS};
    my ($code, $out, $err) = crmapictl($db, "distribute");
    is($code, 1, "status");
    like($err, qr/has no extension citus/, "the reason");
    is(sql($db, "SELECT to_regclass('crmapi.key_home')"), undef, "as before");
};

subtest "workspaces" => sub {
    my $id = crmapictl_ok($db, "workspace", "create", "--name", "Café Ünal");
    like($id, qr/\A$uuid\z/, "create prints the id alone, a UUIDv7 (9.1)");
    my $shown = asked($db, "workspace", "show", $id);
    like(delete $shown->{created_at}, $time, "created_at as 9.1 has it");
    is_deeply($shown, { id => $id, name => "Café Ünal", slug => "caf-nal",
        plan => "standard", events => "off", currency => undef, time_zone => "UTC",
        sender_domains => undef, held_at => undef,
        held_reason => undef, api => "on", read_limit => undef,
        write_limit => undef, retention_conversations => undef,
        retention_submissions => undef, retention_events => undef },
        "shown by id, with the default plan");
    is(asked($db, "workspace", "show", "caf-nal")->{id}, $id, "by slug");
    is(asked($db, "workspace", "show", uc $id)->{id}, $id,
        "an id is one in capitals, too");

    my $own = uuid();
    my $made = asked($db, "workspace", "create", "--name=Other", "--slug",
        "other-1", "--plan", "pro", "--id", $own);
    like(delete $made->{created_at}, $time, "created_at");
    is_deeply($made, { id => $own, name => "Other", slug => "other-1",
        plan => "pro" }, "create --json prints the whole");

    is(asked($db, "workspace", "create", "--name", "Café Ünal")->{slug},
        "caf-nal-2", "a slug made from a name gets a number");
    is(asked($db, "workspace", "create", "--name", "東京")->{slug},
        "workspace", "a name without a letter of a slug's gives one");
    is(asked($db, "workspace", "create", "--name", uuid())->{slug},
        "workspace-2", "so does an id: a slug is none");
    is(length asked($db, "workspace", "create", "--name", "a" x 1000)
        ->{slug}, 53, "a long name gives a shorter slug");

    is(crmapictl_ok($db, "workspace", "set", $id, "--name", "New"), "",
        "set prints nothing");
    is(crmapictl_ok($db, "workspace", "set", $id, "--plan", "pro"), "",
        "set --plan");
    $shown = asked($db, "workspace", "show", $id);
    is("$shown->{name} $shown->{plan} $shown->{slug}", "New pro caf-nal",
        "both are changed, the slug is not");

    my $list = asked($db, "workspace", "list");
    is_deeply([map { $_->{id} } @$list[0, 1]], [$id, $own],
        "list: the oldest first");
    my @lines = split /\n/, crmapictl_ok($db, "workspace", "list");
    is($lines[0], "id\tname\tslug\tplan\tcreated_at\theld_at\theld_reason",
        "list: a heading");
    like($lines[1], qr/\A$id\tNew\tcaf-nal\tpro\t\S+\t-\t-\z/, "list: tabs");
    is(@lines, 1 + @$list, "list: a line for each");

    my ($copy, $other) = map { crmapictl_ok($db, "workspace", "create",
        "--name", "Doomed") } 1 .. 2;
    crmapictl_ok($db, "key", "create", "--workspace", $_, "--name", "k",
        "--scopes", "read") for $copy, $other;
    fails("delete without --yes", $db, 2, qr/--yes/, "workspace", "delete",
        $copy);
    is(asked($db, "workspace", "show", $copy)->{id}, $copy, "is refused");
    is(crmapictl_ok($db, "workspace", "delete", $copy, "--yes"), "",
        "delete --yes");
    fails("and it is gone", $db, 1, qr/no workspace/, "workspace", "show",
        $copy);
    is(scalar @{asked($db, "key", "list", "--workspace", $other)}, 1,
        "others keep what is theirs");
};

subtest "a deleted workspace leaves nothing, in no table" => sub {
    my $w = workspace($db, name => "Full");
    $w->import_objects([
        { object => "contact", bot_id => $w->agent, first_name => "A",
            emails => [{ email => 'a@example.org', is_primary => true }] },
        { object => "company", bot_id => $w->agent, name => "C" }]);
    crmapictl_ok($db, "workspace", "delete", $w->id, "--yes");
    my @tables = map { $_->[0] } sql($db, "SELECT table_name"
        . " FROM information_schema.columns"
        . " JOIN information_schema.tables USING (table_schema, table_name)"
        . " WHERE table_schema = 'crmapi' AND column_name = 'workspace_id'"
        . " AND table_type = 'BASE TABLE' ORDER BY 1");
    cmp_ok(scalar @tables, ">", 18, "there are tables");
    for my $table (@tables) {
        is(sql($db, "SELECT count(*) FROM crmapi.$table WHERE workspace_id"
            . " = '" . $w->id . "'"), 0, "nothing left in $table");
        cmp_ok(sql($db, "SELECT count(*) FROM crmapi.$table WHERE"
            . " workspace_id = '" . $w->twin->id . "'"), ">", 0,
            "the twin's $table is there")
            if $table =~ /^(?:agent|contact|company|pipeline)$/;
    }
};

subtest "a key on a plan without the API (contract 3.3)" => sub {
    for my $plan (qw(free starter standard pro)) {
        my $w = crmapictl_ok($db, "workspace", "create", "--name", "Plan",
            "--plan", $plan);
        my @of = ("--workspace", $w, "--name", "n", "--scopes", "read");
        my $old = "svc_live_" . substr($w =~ tr/-//dr, 0, 30);
        for my $call ([qr/\Asvc_live_\w{30}\n\z/, "key", "create", @of],
                [qr/\A$uuid\n\z/, { stdin => $old }, "key", "import", @of]) {
            my ($line, @call) = @$call;
            my ($code, $out, $err) = crmapictl($db, @call);
            is($code, 0, "$plan: it is made");
            like($out, $line, "and printed alone");
            $plan =~ /^(?:free|starter)$/
                ? like($err, qr/\Acrmapictl: [^\n]*plan "$plan"[^\n]+\n\z/,
                    "$plan: that it is of no use yet is said")
                : is($err, "", "$plan: nothing is said");
        }
        my $useful = sub { join " ", map { $_->[0] } sql($db, "SELECT plan_api"
            . " FROM crmapi.live_key WHERE workspace_id = '$w'") };
        crmapictl_ok($db, "workspace", "set", $w, "--plan", "standard");
        is($useful->(), "t t", "$plan: they work once the plan allows it");
    }
};

subtest "plans (contract 3.3)" => sub {
    my @plan = qw(plan create --name trial --api on --sequences off);
    is_deeply(asked($db, @plan), { name => "trial", api => JSON::PP::true,
        sequences => JSON::PP::false }, "create");
    my ($code, undef, $err) = crmapictl($db, @plan);
    is($code, 1, "it is there already");
    like($err, qr/there is a plan "trial" already/, "says so");
    is(asked($db, qw(plan set trial --sequences on))->{sequences}, JSON::PP::true,
        "set");
    my %list = map { $_->{name} => $_ } @{asked($db, qw(plan list))};
    is_deeply($list{trial}, { name => "trial", api => JSON::PP::true,
        sequences => JSON::PP::true }, "what was not given stays");
    is_deeply([sort keys %list], [qw(enterprise free pro standard starter
        trial)], "list");
    is(asked($db, qw(plan set trial --api off))->{sequences}, JSON::PP::true,
        "nor is the other one changed");
    ($code, undef, $err) = crmapictl($db, qw(plan set none --api on));
    is($code, 1, "no such plan");
    like($err, qr/there is no plan "none"/, "says so");
    is((crmapictl($db, @$_))[0], 2, "@$_") for [qw(plan set trial)],
        [qw(plan set trial --api yes)], [qw(plan create --name x --api on)];
};

subtest "admins: one for each address, without case" => sub {
    my @of = ("--workspace", crmapictl_ok($db, qw(workspace create --name Admins)));
    my $ann = asked($db, qw(admin add), @of, "--email", 'ann@x.example', "--name",
        "Ann");
    my $bob = asked($db, qw(admin add), @of, "--email", 'bob@x.example');
    is_deeply(asked($db, qw(admin add), @of, "--email", 'Ann@X.example'),
        { %$ann, email => 'Ann@X.example' }, "again: the address as it was sent"
        . " last, and the name stays");
    is_deeply([map { $_->{id} } @{asked($db, qw(admin list), @of)}],
        [$ann->{id}, $bob->{id}], "list: in the order in which they came");
    is(asked($db, qw(admin remove), @of, "--email", 'ANN@x.example')->{id},
        $ann->{id}, "remove");
    fails("again", $db, 1, qr/is not an admin/, qw(admin remove), @of, "--email",
        'ann@x.example');
    fails("$_ gets no mail", $db, 2, qr/--email must (?:have only|be an)/, qw(admin add), @of,
        "--email", $_) for '"a,b"@x.example', '"a b"@x.example';
};

subtest "suppression: its reason" => sub {
    my @of = ("--workspace", crmapictl_ok($db, qw(workspace create --name No)));
    my @add = (qw(suppress add), @of, "--email");
    my @reasons = ("\x{e4}" x 1000, "said so", undef, "");
    my $n = 0;
    for my $reason (@reasons) {
        utf8::encode(my $bytes = $reason // "");
        crmapictl_ok($db, @add, "n" . $n++ . '@x.example',
            defined $reason ? ("--reason", $bytes) : ());
    }
    is_deeply([map { $_->{reason} } @{asked($db, qw(suppress list), @of)}],
        [@reasons[0, 1], "suppressed", "suppressed"], "each, oldest first");
    fails("too long", $db, 2, qr/--reason must/, @add, 'm@x.example', "--reason",
        "x" x 1001);
    for my $number ("+49 30 901820", "030 901820", "+49 30 901820 ext 4") {
        my ($code, $out, $err) = crmapictl($db, qw(suppress add), @of, "--phone",
            $number);
        is("$code $out", "0 stopped\t0\n", "suppressed: $number");
        is($err =~ /^crmapictl: \Q$number\E is no number with its country code/ ? 1 : 0,
            $number eq "+49 30 901820" ? 0 : 1, "who asks for less is told");
    }
};

subtest "status tells what is to be done, what is held, and who is alive" => sub {
    my $db = database();
    my ($open, $held) = map { crmapictl_ok($db, qw(workspace create --name), $_) }
        qw(Open Held);
    crmapictl_ok($db, qw(workspace hold), $held);
    # how many, whose, of which kind and state, due in how many seconds
    my @jobs = ([1, $open, "sequence.step", "ready", -3600],
        [2, $open, "generate.steps", "ready", -60],
        [3, $open, "answer.send", "ready", -60],
        [4, $open, "webhook.deliver", "ready", -60],
        [5, $open, "webhook.deliver", "ready", 600],
        [6, $open, "sequence.step", "leased", -9000],
        [7, $open, "sequence.step", "dead", -9000],
        [8, $open, "sequence.step", "done", -9000],
        [9, $held, "sequence.step", "ready", -7200],
        [10, $held, "sequence.step", "ready", 600]);
    sql($db, join ";", (map { my ($n, $of, $kind, $state, $seconds) = @$_;
        "INSERT INTO crmapi.job (workspace_id, kind, state, run_at, leased_by,
            leased_until)
        SELECT '$of', '$kind', '$state', now() + $seconds * interval '1 second',
            l.who, CASE WHEN l.who IS NOT NULL THEN now() END
        FROM (SELECT CASE WHEN '$state' = 'leased' THEN 'w-0' END) l(who),
            generate_series(1, $n)" } @jobs),
        map { "INSERT INTO crmapi.worker (id, name, host, pid, version, threads,
            started_at, heartbeat_at) VALUES ('w-$_', 'w', 'h', 1, 'v', 1,
            now() + $_ * interval '1 second',
            now() - $_ * interval '50 seconds')" } 0 .. 2);
    my @names = qw(workspaces workers jobs_ready jobs_due jobs_leased
        generate_jobs_due sequence_jobs_due answer_jobs_due webhook_jobs_due
        jobs_dead jobs_held
        workspaces_held);
    my $shown = sub { my $status = asked($db, "status");
        return ({ map { $_ => $status->{$_} } @names }, $status) };
    my %all = (workspaces => 2, workers => 2, jobs_ready => 34, jobs_due => 10,
        jobs_leased => 6, generate_jobs_due => 2, sequence_jobs_due => 1,
        answer_jobs_due => 3, webhook_jobs_due => 4, jobs_dead => 7, jobs_held => 9,
        workspaces_held => 1);
    my ($counts, $status) = $shown->();
    is_deeply($counts, \%all, "a workspace is held");
    my $age = $status->{oldest_job_seconds};
    ok($age >= 3600 && $age < 7200, "how late the oldest one is that is not held")
        or diag($age);
    cmp_ok($status->{heartbeat_seconds}, "<", 50, "the last heartbeat of any");
    is_deeply([map { "$_->{id} $_->{leases}" } @{asked($db, qw(worker list))}],
        ["w-0 6", "w-1 0", "w-2 0"], "worker list: who has the leases");
    crmapictl_ok($db, "hold", "--all");
    ($counts, $status) = $shown->();
    is_deeply($counts, { %all, (map { $_ => 0 } grep { /jobs_due$/ } @names),
        jobs_held => 19 }, "the database is held");
    is($status->{oldest_job_seconds}, 0, "nothing is late");
    crmapictl_ok($db, "release");
    sql($db, "DELETE FROM crmapi.job WHERE run_at < now()");
    is(asked($db, "status")->{oldest_job_seconds}, 0, "what is not due is not late");
};

subtest "keys (contract 1.2, 3.3)" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Keys");
    my @of = ("--workspace", $w, "--name", "näme");
    my $key = crmapictl_ok($db, "key", "create", @of, "--scopes",
        "read,write");
    like($key, qr/\Asvc_live_[A-Za-z0-9]{30}\z/, "create prints the key alone,"
        . " 39 characters");
    my $made = asked($db, "key", "create", "--workspace", "keys", "--name",
        "second", "--scopes", "read");
    my $second = delete $made->{key};
    like($second, qr/\Asvc_live_[A-Za-z0-9]{30}\z/, "--json has it as key");
    isnt($key, $second, "no two are equal");

    my $list = asked($db, "key", "list", "--workspace", $w);
    is_deeply($list->[1], $made, "list shows the rest of what create did");
    is_deeply([sort keys %$made], [sort qw(id name scopes display created_at
        last_used_at revoked_at expires_at read_limit write_limit addresses)],
        "with the keys that were promised");
    like($list->[0]{id}, qr/\A$uuid\z/, "id");
    like($list->[0]{created_at}, $time, "created_at");
    is($list->[0]{name}, "näme", "name");
    is_deeply($list->[0]{scopes}, ["read", "write"], "scopes");
    is_deeply($list->[1]{scopes}, ["read"], "scopes of the second");
    is($list->[0]{$_}, undef, $_) for qw(last_used_at revoked_at);
    my ($first4, $last4) = $key =~ /\Asvc_live_(.{4}).*(.{4})\z/;
    like($list->[0]{display}, qr/\Asvc_live_$first4\W+$last4\z/, "display");
    is(sql($db, "SELECT encode(key_hash, 'hex') FROM crmapi.api_key"
        . " WHERE id = '$list->[0]{id}'"), sha256_hex($key),
        "the SHA-256 is kept");
    is(sql($db, "SELECT count(*) FROM crmapi.api_key k"
        . " WHERE position('" . substr($key, 13, 20) . "' in k::text) > 0"), 0,
        "and the key is not (3.4)");
    is_deeply(asked($db, "key", "create", @of, "--scopes", "write")->{scopes},
        ["read", "write"], "write implies read");
    like(crmapictl_ok($db, "key", "create", @of, "--scopes", "read",
        "--key-prefix", "acme_"), qr/\Aacme_[A-Za-z0-9]{30}\z/,
        "--key-prefix");
    my $table = crmapictl_ok($db, "key", "list", "--workspace", $w);
    utf8::decode($table);
    my @lines = split /\n/, $table;
    is($lines[0], "id\tname\tscopes\tdisplay\tcreated_at\tlast_used_at\t"
        . "revoked_at\texpires_at\tread_limit\twrite_limit\taddresses",
        "list: a heading");
    like($lines[1], qr/\tnäme\tread,write\t\S+\t\S+(?:\t-){6}\z/, "list: tabs")
        or diag(explain(\@lines));

    is(crmapictl_ok($db, "key", "revoke", $made->{id}), "", "revoke");
    my $revoked = asked($db, "key", "list", "--workspace", $w)->[1];
    like($revoked->{revoked_at}, $time, "revoked_at is set");
    is_deeply(asked($db, "key", "revoke", $made->{id}), $revoked,
        "a second time changes nothing (3.2)");
    is(asked($db, "key", "list", "--workspace", $w)->[0]{revoked_at}, undef,
        "the others live");
};

subtest "key import: from stdin only, never shown" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Imported");
    my @import = ("key", "import", "--workspace", $w, "--name", "brought",
        "--scopes", "read");
    my $n = 0;
    for my $length (29, 30) {
        my $key = "svc_live_" . "a1B2c3D4e5" x 2 . "x" x ($length - 20);
        my $id = crmapictl_ok($db,
            { stdin => $key . ("", "\r\n")[$n++] }, @import);
        like($id, qr/\A$uuid\z/, "$length characters: the id is printed");
        is(sql($db, "SELECT encode(key_hash, 'hex') FROM crmapi.api_key"
            . " WHERE id = '$id'"), sha256_hex($key), "the hash is right");
        fails("again", $db, 1, qr/exists already/,
            { stdin => "$key\n" }, @import);
    }
    my $secret = "Secret7890123456789012345";
    for my $bad ("", "\n", "svc_live_$secret", "svc_live_${secret}1234567",
        "other_${secret}1234", "svc_live_${secret}12-4",
        "svc_live_${secret}1234\nsvc_live_${secret}1234",
        " svc_live_${secret}1234", "svc_live_${secret}1234" . "x" x 9000) {
        my $err = fails("refused: " . substr($bad =~ s/\n/\\n/gr, 0, 50), $db,
            1, qr/stdin/, { stdin => $bad }, @import);
        unlike($err, qr/Secret/, "and not shown");
    }
    my $err = fails("a key as an argument", $db, 2, qr/takes no arguments/,
        @import, "svc_live_${secret}1234");
    unlike($err, qr/Secret/, "is not shown");
    $err = fails("a key for an id", $db, 2, qr/KEY_ID/, "key", "revoke",
        "svc_live_${secret}1234");
    unlike($err, qr/Secret/, "is not shown");
    like(crmapictl_ok($db, { stdin => "acme_${secret}1234" }, @import,
        "--key-prefix", "acme_"), qr/\A$uuid\z/, "--key-prefix");
};

subtest "logins of httpd and crmapid" => sub {
    my $db = database();
    my ($api, $worker) = map { "crm_$_" . $$ } qw(site daemon);
    my $as = sub { postgres()->sql($db, $_[1], $_[0]) };
    my $settings = sub { return { map { @$_ } sql($db, "SELECT"
        . " split_part(x, '=', 1), split_part(x, '=', 2) FROM"
        . " pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase,"
        . " unnest(s.setconfig) x WHERE d.datname = current_database() AND"
        . " s.setrole = '$_[0]'::regrole") } };
    is(crmapictl_ok($db, qw(role create api), $api),
        "$api is a login of crmapi_api", "a login for httpd");
    is_deeply(asked($db, qw(role create worker), $worker),
        { name => $worker, role => "crmapi_worker" }, "one for crmapid");
    my $first = $settings->($api);
    is($first->{plan_cache_mode}, "force_generic_plan", "its settings");
    is_deeply($settings->($worker), $first, "they are the same");
    is($as->($api, "SHOW enable_seqscan"), "off", "its sessions have them");
    is($as->($api, "SELECT count(*) FROM crmapi.contact"), 0,
        "and the rights of the API");
    ok(!eval { $as->($worker, "SELECT key_hash FROM crmapi.live_key"); 1 },
        "the worker has others");

    sql($db, "REVOKE crmapi_api FROM $api;"
        . " ALTER ROLE $api IN DATABASE $db RESET ALL");
    my $file = tempdir(CLEANUP => 1) . "/password";
    write_file($file, "s3cret'pass\nsecond line\n");
    fails("others may read it", $db, 1, qr/must not be accessible to other/,
        qw(role create api), $api, "--password-file", $file);
    chmod 0600, $file;
    crmapictl_ok($db, qw(role create api), $api, "--password-file", $file);
    is_deeply($settings->($api), $first, "again: what was missing is there");
    is($as->($api, "SELECT count(*) FROM crmapi.contact"), 0, "the rights too");
    my $stored = postgres()->sql("postgres", "SELECT rolpassword FROM pg_authid"
        . " WHERE rolname = '$api'");
    like($stored, qr/^SCRAM-SHA-256\$/, "a verifier of the password is stored");
    crmapictl_ok($db, qw(role create api), $api);
    is(postgres()->sql("postgres", "SELECT rolpassword FROM pg_authid WHERE"
        . " rolname = '$api'"), $stored, "without the option it stays");

    # what a restore into another database loses
    my $warning = sub { join "\n", grep { /settings/ } split /\n/,
        (crmapictl($db, "status"))[2] };
    is($warning->(), "", "status: nothing is missing");
    sql($db, "ALTER ROLE $api IN DATABASE $db RESET ALL");
    like($warning->(), qr/\Acrmapictl:\ warning:\ no\ login\ of\ crmapi_api\ has
        .* role\ create\ api\ (?:LOGIN|$api)\z/x,
        "status: no login has them");
    crmapictl_ok($db, qw(role create api), $_) for $api,
        my $second = "${api}_2";
    sql($db, "ALTER ROLE $second IN DATABASE $db RESET jit");
    is($warning->(), "", "a login of another database needs none");
    open(my $session, "|-", "psql", "-X", "-q", "-d",
        postgres()->conninfo($db, $second)) or die "psql: $!\n";
    ok(wait_for(sub { sql($db, "SELECT 1 FROM pg_stat_activity WHERE usename ="
        . " '$second'") }), "a session");
    like($warning->(), qr/\Acrmapictl:\ warning:\ the\ login\ "$second"\ lacks
        .*\ role\ create\ api\ $second\z/x, "one with a session here does");
    close $session;
    sql($db, "DROP OWNED BY $second; DROP ROLE $second");

    my $strange = qq(x"'; \\ \$1 ü$$);
    crmapictl_ok($db, qw(role create api), $strange);
    is(postgres()->sql("postgres", "SELECT count(*) FROM pg_roles WHERE rolname"
        . " = \$x\$$strange\$x\$"), 1, "a name is a name");
    fails("another kind", $db, 2, qr/api or worker/, qw(role create site x));
    fails("no name", $db, 2, qr/needs api\|worker NAME/, qw(role create api));
    fails("an empty name", $db, 2, qr/1 to 63 bytes/, qw(role create api), "");
    fails("a long name", $db, 2, qr/1 to 63 bytes/, qw(role create api),
        "x" x 64);
    fails("$_ may do more", $db, 1, qr/may do more/, qw(role create api), $_)
        for $CrmTest::Postgres::OWNER, $CrmTest::Postgres::SUPERUSER;
    fails("no such file", $db, 1, qr/No such file/, qw(role create api), $api,
        "--password-file", "/nowhere");
    write_file($file, "\n");
    fails("no password in it", $db, 1, qr/1 to 1000 bytes/, qw(role create api),
        $api, "--password-file", $file);
    for my $role ($api, $worker, $strange) {
        my $quoted = $role =~ s/"/""/gr;
        sql($db, qq(DROP OWNED BY "$quoted"; DROP ROLE "$quoted"));
    }
};

subtest "httpd-conf prints httpd's configuration for a database" => sub {
    my ($one, $two) = map { "$_-" . substr $db, -6 } "one", "two";
    my $params = sub { ($_[0] =~ /^DBDParams "(.*)"$/m)[0] };
    crmapictl_ok($db, "role", "create", "api", $_) for $one, $two;
    fails("several logins", $db, 1, qr/which login.*: .*$one.*, .*$two/,
        "httpd-conf");
    fails("another login", $db, 1, qr/no login nobody of crmapi_api: role/,
        "httpd-conf", "nobody");
    my $conf = crmapictl_ok($db, "httpd-conf", $one);
    like($conf, qr/\A# crmapi\.conf/, "a configuration with comments");
    is($params->($conf), "host=" . postgres()->host . " dbname=$db user=$one"
        . " connect_timeout=5", "of this database, for that login");

    # what says where the database is, and how it is reached, but not who asks
    my %same = (host => postgres()->host, dbname => $db, port => "5432",
        sslmode => "allow", sslrootcert => "/ca", sslcrl => "/crl",
        sslcrldir => "/crls", ssl_min_protocol_version => "TLSv1.1",
        ssl_max_protocol_version => "TLSv1.3", channel_binding => "disable",
        gssencmode => "disable", krbsrvname => "pg",
        target_session_attrs => "read-write");
    my %own = (application_name => "me", connect_timeout => 9, keepalives => 0,
        options => "-cgeqo=off", passfile => "/none", sslcert => "/cert",
        user => $CrmTest::Postgres::SUPERUSER);
    $conf = crmapictl_ok($db, "--database", join(" ", map { "$_=" . {%same, %own}
        ->{$_} } sort keys %same, keys %own), "httpd-conf", $one);
    delete $same{port};     # the default
    is_deeply({ map { split /=/, $_, 2 } split / /, $params->($conf) }, { %same,
        user => $one, connect_timeout => 5 }, "with all that leads there");

    # a group is no login
    sql($db, "CREATE ROLE \"group-$one\" IN ROLE crmapi_api");
    fails("a group", $db, 1, qr/no login group-$one of crmapi_api/, "httpd-conf",
        "group-$one");

    # What libpq reads is what was given, through the quotes of httpd.conf.
    my $odd = qq{o"d'd \\ \$x %y} . substr $db, -6;
    crmapictl_ok($db, "role", "create", "api", $odd);
    $conf = crmapictl_ok($db, "httpd-conf", $odd);
    my $read = $params->($conf) =~ s/\\(["\\])/$1/gr;
    my ($user) = $read =~ / user='((?:[^'\\]|\\.)*)' /;
    is($user =~ s/\\(.)/$1/gr, $odd, "a login with quotes");
    my $variable = "a\${x}" . substr $db, -6;
    crmapictl_ok($db, "role", "create", "api", $variable);
    fails("httpd would replace it", $db, 1, qr/user has characters that httpd/,
        "httpd-conf", $variable);
    for my $role ($one, $two, $odd, $variable, "group-$one") {
        my $quoted = $role =~ s/"/""/gr;
        sql($db, qq(DROP OWNED BY "$quoted"; DROP ROLE "$quoted"));
    }
};

subtest "webhook add refuses where nothing can be reached" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Hooks");
    my $add = sub { return ("webhook", "add", "--workspace", $w, "--events",
        "contact.created", "--url", $_[0]) };
    fails($_, $db, 2, qr/--url: n/, $add->($_)) for map({ "http://$_/" }
        qw(0.0.0.0 0 [::] 224.0.0.1 [ff02::1] 255.255.255.255 240.0.0.1 0xf0.1
        192.0.2.1 [2001:db8::1] [::ffff:224.0.0.1] x.invalid INVALID x.invalid.
        x.onion [] [::g] [1:2] . x..example .example 256.1.1.1), "a" x 64 . ".example",
        "a." x 127 . "example", "public.example:0", "public.example:00",
        "8.8.8.8:65536", "8.8.8.8:x", "public.example:+80", "public.example:-80");
    fails("$_ is in no host's name", $db, 2, qr/--url: nothing can be reached/,
        $add->("http://public${_}example/")) for split //, "!\$%&'()*+,;<=>^`{|}~";
    fails("an escaped $_", $db, 2, qr/--url: n/, $add->("http://$_/")) for
        "public.example%00.other.example", "0.0.0.0%2e", "%31%30.0.0.1";
    for my $host (qw(10.0.0.1 127.1 2130706433 [::1] [fe80::1%25lo] localhost
            a.localhost 192.168.0.1:8080)) {
        my ($code, $out, $err) = crmapictl($db, $add->("http://$host/"));
        is($code, 0, "$host may be in an intranet");
        like($err, qr/\Acrmapictl:\ warning:\ \S+\ is\ not\ public:\ crmapid
            .*webhook_private\ is\ on\n\z/x, "a warning says what it needs");
    }
    for my $host (qw(8.8.8.8 [2606:4700::1111] hooks.example invalid.example
            onion.example:8443 notlocalhost 1.a), "a" x 63 . ".example.") {
        my ($code, $out, $err) = crmapictl($db, $add->("https://$host/x?y"));
        is("$code $err", "0 ", "$host needs no warning");
    }
};

subtest "values that are refused" => sub {
    my @create = ("workspace", "create", "--name");
    my $w = crmapictl_ok($db, @create, "Taken", "--slug", "taken");
    my $long = "a" x 1001;

    fails("no name", $db, 2, qr/--name/, @create, "");
    fails("a long name", $db, 2, qr/--name/, @create, $long);
    fails("a name that shows nothing", $db, 2, qr/--name must not be blank/,
        @create, $_) for " ", "\t", "\x{a0}\x{200b}";
    fails("a key without a name", $db, 2, qr/--name must not be blank/, "key",
        "create", "--workspace", $w, "--name", " ", "--scopes", "read");
    fails("an agent without one", $db, 2, qr/--agent must not be blank/, "init",
        "--name", "x", "--agent", " ");
    fails("a login without one", $db, 2, qr/not be blank/, "role", "create", "api",
        " ");
    fails("a plan that can be none", $db, 1, qr/there is no plan/, "workspace",
        "set", $w, "--plan", $_) for "", $long;
    fails("a status that is none", $db, 2, qr/--status must be one of generating/,
        "enrollment", "list", "--workspace", $w, "--status", $_) for "", "Failed";
    fails("an export of nothing", $db, 2, qr/--object names no object/, "export",
        "--workspace", $w, "--object", $_) for "", ",";
    fails("what is no UTF-8: @$_", $db, 2, qr/: (?:--\S+|[A-Z]+) is not valid UTF-8;/,
        @$_) for [@create, "\xff"], [@create, "x", "--plan", "\xff"],
            ["httpd-conf", "\xff"], ["workspace", "show", "\xff"],
            ["workspace", "dump", $w, "--since=\xff"],
            ["workspace", "dump", $w, "--output=\xff"],
            ["key", "list", "--workspace", "\xff"];
    for my $slug ("", "A", "a_b", "-a", "a-", "é", "a" x 64, "a b", $w) {
        fails("slug \"$slug\"", $db, 2, qr/--slug/, @create, "x", "--slug",
            $slug);
    }
    ok(crmapictl_ok($db, @create, "x", "--slug", "b" x 63), "63 are fine");
    fails("a slug that is taken", $db, 1, qr/taken/, @create, "x", "--slug",
        "taken");
    fails("an id that is taken", $db, 1, qr/\Q$w/, @create, "x", "--id", $w);
    fails("an id that is none", $db, 2, qr/--id/, @create, "x", "--id", "7");
    fails("no such plan", $db, 1, qr/plan/, @create, "x", "--plan", "gold");
    fails("nor in set", $db, 1, qr/plan/, "workspace", "set", $w, "--plan",
        "gold");
    fails("nothing to set", $db, 2, qr/--name/, "workspace", "set", $w);
    fails("no such workspace: slug", $db, 1, qr/no workspace "nope"/,
        "workspace", "show", "nope");
    fails("no such workspace: id", $db, 1, qr/no workspace/, "workspace",
        "show", uuid());
    fails("a workspace that quotes", $db, 1, qr/no workspace/, "workspace",
        "show", "x' OR 'a' = 'a");
    fails("no such key", $db, 1, qr/no key/, "key", "revoke", uuid());
    my @key = ("key", "create", "--workspace", $w, "--name", "x", "--scopes");
    fails("scopes \"$_\"", $db, 2, qr/--scopes/, @key, $_)
        for "", "admin", "read,", "read,read", "READ";
    fails("prefix \"$_\"", $db, 2, qr/--key-prefix/, @key, "read",
        "--key-prefix", $_) for "", "a-b", "a b", "a" x 33;
    is(sql($db, "SELECT count(*) FROM crmapi.api_key WHERE workspace_id ="
        . " '$w'"), 0, "nothing was made");
};

subtest "command lines that are wrong: exit 2" => sub {
    for my $case (
        [qr/no command/],
        [qr/unknown command "bogus"/, "bogus"],
        [qr/one of create, list, show, set, hold, release, delete/, "workspace"],
        [qr/one of create, import, list, set, rotate, revoke/, "key", "bogus"],
        [qr/unknown option --bogus/, "status", "--bogus"],
        [qr/unknown option --bogus/, "--bogus=secret", "status"],
        [qr/unknown option -x/, "-x"],
        [qr/--name needs a value/, "workspace", "create", "--name"],
        [qr/--name needs a value/, "workspace", "create", "--name", "--json"],
        [qr/--database needs a value/, "--database"],
        [qr/--name is given twice/, "workspace", "create", "--name", "a",
            "--name", "b"],
        [qr/--json has no value/, "--json=1", "status"],
        [qr/workspace create needs --name N/, "workspace", "create"],
        [qr/workspace list has no option --name/, "workspace", "list",
            "--name", "x"],
        [qr/workspace show needs W/, "workspace", "show"],
        [qr/key create needs --scopes/, "key", "create", "--workspace", "w",
            "--name", "n"],
        [qr/status takes no arguments/, "status", "secret"],
        [qr/workspace show takes one W/, "workspace", "show", "a", "secret"],
        [qr/workspace show takes one W/, "workspace", "show", "a", "b", "secret"],
        [qr/apply needs FILE/, "apply"],
        [qr/either --email or --phone/, qw(suppress add --workspace w)],
        [qr/either --email or --phone/, qw(suppress add --workspace w --email
            a@x.example --phone +4930901820)],
        [qr/import needs --workspace W/, "import"],
        [qr/export needs --workspace W/, "export"],
    ) {
        my ($line, @arguments) = @$case;
        my $err = fails("@arguments", $db, 2, $line, @arguments);
        unlike($err, qr/secret/, "a value is not shown");
    }
    is(asked($db, "workspace", "create", "--name=--x")->{name}, "--x",
        "a value that looks like an option, with =");
};

subtest "the database" => sub {
    my %none = (env => { CRMAPI_DATABASE => undef });
    fails("none given", $db, 2, qr/CRMAPI_DATABASE/, \%none, "status");
    fails("an empty one", $db, 2, qr/CRMAPI_DATABASE/,
        { env => { CRMAPI_DATABASE => "" } }, "status");
    my ($code, $out) = crmapictl($db, \%none, "--database",
        postgres()->conninfo($db), "--json", "status");
    is($code, 0, "--database alone");
    ($code) = crmapictl($db, { env => { CRMAPI_DATABASE => "host=/nowhere" } },
        "--database", postgres()->conninfo($db), "status");
    is($code, 0, "--database goes before the environment");
    for my $wrong ("host=/nowhere dbname=x password=sesame",
        "host=/nowhere password=open sesame",
        "postgresql://ada:sesame\@/x?port=sesame",
        "postgresql://ada:open\@sesame\@nowhere.invalid/x") {
        my $err = fails("unreachable", undef, 1, qr/database/, "--database",
            $wrong, "status");
        unlike($err, qr/sesame/, "no password in the error");
    }
    fails("no such database", undef, 1, qr/does not exist/, "--database",
        postgres()->conninfo("no_such"), "status");
};

subtest "import and export go through the tool" => sub {
    my $one = workspace($db, name => "From");
    my $two = crmapictl_ok($db, "workspace", "create", "--name", "To");
    # an export has numbers in another notation than they came in
    crmapictl_ok($db, { stdin => qq({"object":"contact","bot_id":"@{[$one->agent]}",)
        . qq("custom_fields":{"n":[1e300,-1e20,1e-300,0.1e1]}}\n) }, "import",
        "--workspace", $one->id);
    my $lines = crmapictl_ok($db, "export", "--workspace", $one->id);
    my $twin = $one->twin->id;
    like($lines, qr/"object":\s*"agent"/, "an export has what is there");
    unlike($lines, qr/\Q$twin/, "and nothing of another workspace");
    is(crmapictl_ok($db, "export", "--workspace", $one->id, "--object",
        "pipeline, agent"), join("\n", grep { /^\{"object":"(?:agent|pipeline)"/ }
        split /\n/, $lines), "--object: only these");
    is(crmapictl_ok($db, "export", "--workspace", $one->id, "--object",
        "pipeline_stage"), join("\n", grep { /^\{"object":"pipeline_stage"/ }
        split /\n/, $lines), "not one whose name begins so");
    # a row that was written again is elsewhere in its table
    sql($db, "UPDATE crmapi.pipeline_stage SET color = color WHERE id = (SELECT
        min(s.id::text)::uuid FROM crmapi.pipeline_stage s WHERE s.workspace_id =
        '@{[$one->id]}')");
    is(crmapictl_ok($db, { env => { PGOPTIONS => join " ", map { "-c enable_$_=off" }
        qw(indexscan indexonlyscan bitmapscan) } }, "export", "--workspace",
        $one->id), $lines, "wherever the rows are, an export has them in one order");
    fails("no such object", $db, 2, qr/--object:\ "$_"\ must\ be\ one\ of\ agent,\ .*,
        \ suppression,\ audit,\ usage$/x, "export", "--workspace", $one->id,
        "--object", "agent,$_") for "agnet", "event";
    fails("a bad line", $db, 1, qr/stdin: line 2: \/nme: /,
        { stdin => qq({"object":"agent","name":"a"}\n)
            . qq({"object":"agent","nme":"a"}\n) },
        "import", "--workspace", $two);
    is(crmapictl_ok($db, "export", "--workspace", $two), "",
        "and nothing is imported");
    {
        my $three = crmapictl_ok($db, "workspace", "create", "--name", "BOM");
        my $line = qq({"object":"agent","name":"Bo"}\n);
        crmapictl_ok($db, { stdin => "\xef\xbb\xbf$line" }, "import",
            "--workspace", $three);
        crmapictl_ok($db, { stdin => "\xef\xbb\xbf\r\n" . $line =~
            s/Bo/By/r }, "import", "--workspace", $three);
        my $got = crmapictl_ok($db, "export", "--workspace", $three);
        is(() = $got =~ /"name":"B[oy]"/g, 2, "a byte order mark is left out");
        fails("one within", $db, 1, qr/stdin: line 2: is not valid JSON/,
            { stdin => "$line\xef\xbb\xbf$line" }, "import", "--workspace",
            $three);
        fails("UTF-16", $db, 1, qr/stdin: line 1: is UTF-16; .* be UTF-8/,
            { stdin => $_ }, "import", "--workspace", $three)
            for "\xff\xfe{\0}\0\n\0", "\xfe\xff\0{\0}\0\n";
        fails("U+0000, as in a file that was not written whole", $db, 1,
            qr/stdin: line 2: is not valid JSON/, { stdin => "$line$_\n$line" },
            "import", "--workspace", $three) for "\0\0", $line =~ s/\n/\0/r;
    }
    fails("no such file", $db, 1, qr{/nowhere/f}, "import", "--workspace",
        $two, "/nowhere/f");
    my ($code, $out, $err) = crmapictl($db, { stdin => $lines }, "import",
        "--workspace", $two);
    is($code, 0, "import from stdin") or diag($err);
    is($err, "", "no progress where there is no terminal");
    my $again = crmapictl_ok($db, "export", "--workspace", $two);
    my $from = $one->id;
    is($again, $lines =~ s/\Q$from/$two/gr,
        "the same lines but for the workspace's id");
};

subtest "an export and a document are of one moment" => sub {
    my $w = workspace($db, name => "Moment", twin => 0);
    for my $command (["show", $w->id], ["export", "--workspace", $w->id]) {
        my ($agent, $template, $late) = (uuid(), uuid(), "Late for $command->[0]");
        my $commit = holding($db, "LOCK TABLE crmapi.sequence_template;
            INSERT INTO crmapi.agent (id, workspace_id, name) VALUES ('$agent',
                '@{[$w->id]}', '$late');
            INSERT INTO crmapi.sequence_template (id, workspace_id, bot_id, name)
                VALUES ('$template', '@{[$w->id]}', '$agent', '$late')");
        my $child = CrmTest::Child->start(sub { crmapictl($db, @$command) });
        wait_blocked($db, 1);       # it has read the agents
        $commit->("COMMIT");
        my ($code, $out) = $child->result;
        is($code, 0, "$command->[0] goes on");
        unlike($out, qr/$late/, "without what came meanwhile");
        like(crmapictl_ok($db, @$command), qr/$agent.*$template/s, "and then with it");
    }
};

# Without statistics the planner would read whole workspaces afterwards.
subtest "an import leaves statistics of what it filled" => sub {
    plan(skip_all => "the servers of Citus have them") if $ENV{CRM_CITUS};
    my $agents = join("", map { qq({"object":"agent","name":"A$_"}\n) }
        1 .. 50);
    my $known = sub { scalar sql($db, "SELECT reltuples FROM pg_class"
        . " WHERE oid = 'crmapi.agent'::regclass") };
    my $there = sub { scalar sql($db, "SELECT count(*) FROM crmapi.agent") };
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Statistics");

    crmapictl_ok($db, { stdin => $agents }, "import", "--workspace", $w);
    is($known->(), $there->(), "the owner's import");
    sql($db, "CREATE ROLE importer LOGIN; GRANT USAGE ON SCHEMA crmapi TO"
        . " importer; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"
        . " IN SCHEMA crmapi TO importer;"
        . " GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA crmapi TO importer");
    my $before = $known->();
    my ($code, $out, $err) = crmapictl(undef, { stdin => $agents,
        env => { CRMAPI_DATABASE => postgres()->conninfo($db, "importer") } },
        "import", "--workspace", $w);
    is($code, 0, "somebody may import who does not own the tables");
    is($err, "", "and is not told that they cannot be analyzed");
    is($known->(), $before, "statistics are then left as they were");
    is($there->(), $before + 50, "and the rows are there");
    sql($db, "DROP OWNED BY importer; DROP ROLE importer");
};

subtest "a full disk is not a success" => sub {
    plan(skip_all => "no /dev/full here") unless -c "/dev/full";
    crmapictl_ok($db, "workspace", "create", "--name", "Full disk");
    for my $command (map { ("$_ >/dev/full", "$_ >&-") } "workspace list",
            "--help", "--json workspace list", "key create --workspace"
            . " full-disk --name k --scopes read", "apply --workspace full-disk"
            . " --dry-run -") {
        my ($code, $out, $err) = run_program(command => ["sh", "-c",
            "exec $CrmTest::BUILD{CTL} $command"],
            stdin => qq({"object":"agent","name":"a"}),
            env => { CRMAPI_DATABASE => postgres()->conninfo($db) });
        is($code, 1, "$command: exit code");
        like($err, qr/\Acrmapictl: cannot write: [^\n]+\n\z/, "and why");
    }
    # what cannot be shown again, and so would be of no use to anybody
    my $rows = sub { sql($db, "SELECT string_agg(n::text, ' ' ORDER BY of) FROM (
        SELECT 'audit' AS of, count(*) AS n FROM crmapi.audit
        UNION ALL SELECT 'key', count(*) FROM crmapi.api_key
        UNION ALL SELECT 'token', count(*) FROM crmapi.intake_key
        UNION ALL SELECT 'webhook', count(*) FROM crmapi.webhook_endpoint
        UNION ALL SELECT 'workspace', count(*) FROM crmapi.workspace) r") };
    my $before = $rows->();
    for my $command ("key create --workspace full-disk --name k --scopes read",
            "intake create --workspace full-disk --name k", "webhook add"
            . " --workspace full-disk --url https://x.example/ --events"
            . " contact.created", "init --name Unseen --agent A",
            "apply --workspace full-disk -") {
        my ($code, $out, $err) = run_program(command => ["sh", "-c",
            "exec $CrmTest::BUILD{CTL} $command >/dev/full"],
            stdin => qq({"object": "intake_token", "name": "t"}),
            env => { CRMAPI_DATABASE => postgres()->conninfo($db) });
        is($code, 1, "$command: exit code");
        is($rows->(), $before, "nothing was made");
    }
};

subtest "names cannot play with the terminal" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name",
        "a\tb\nc\e[31m", "--slug", "playful");
    like(crmapictl_ok($db, "workspace", "show", $w),
        qr/^name\ta b c \[31m$/m, "control characters are spaces");
    is(asked($db, "workspace", "show", $w)->{name}, "a\tb\nc\e[31m",
        "in JSON they are themselves");

    # strangers choose names of contacts; a terminal obeys U+009B as it does ESC [
    my @marks = map { chr } 0x7f, 0x80, 0x9b, 0x9f, 0x61c, 0x200e, 0x202a, 0x202e,
        0x2066, 0x2069;
    my $bad = join "|", map { utf8::encode(my $bytes = $_); $bytes } @marks;
    my $name = join "é", "A", @marks, "\x{200d}Z";
    my ($agent, $contact) = (uuid(), uuid());
    crmapictl_ok($db, { stdin => join "", map { JSON::PP->new->utf8->encode($_)
        . "\n" } { object => "agent", id => $agent, name => $name },
        { object => "contact", id => $contact, bot_id => $agent,
            first_name => $name } }, "import", "--workspace", $w, "-");
    utf8::encode(my $bytes = $name);
    local $ENV{SUDO_USER} = $bytes;
    crmapictl_ok($db, "workspace", "set", $w, "--name", $bytes);
    for my $command (["contact", "export", $contact, "--workspace", $w],
        (map { ["export", "--object", $_, "--workspace", $w] } "contact", "audit"),
        ["show", $w], ["--json", "audit", "list", "--workspace", $w],
        ["--json", "workspace", "show", $w]) {
        my $out = crmapictl_ok($db, @$command);
        unlike($out, qr/$bad/, "@$command[0, 1] escapes those of strangers");
        utf8::decode($out);
        $out =~ s/\\u(\w{4})/chr hex $1/ge;
        ok(index($out, $name) >= 0, "and has them");
    }
    my $out = crmapictl_ok($db, "workspace", "show", $w);
    unlike($out, qr/$bad/, "in lines they are spaces");
    like($out, qr/^name\tA\xc3\xa9 +\xc3\xa9.*\xe2\x80\x8dZ$/m, "and nothing else is");
};

subtest "init makes a workspace that can be used at once" => sub {
    my $made = crmapictl_ok($db, "init", "--name", "First", "--slug", "first",
        "--agent", "Ada", "--plan", "pro");
    like($made, qr/\AW=$uuid\nAGENT=$uuid\nKEY=svc_live_\w+\z/,
        "lines for a shell");
    my ($w, $agent) = $made =~ /=($uuid)$/mg;
    is(asked($db, "workspace", "show", "first")->{id}, $w, "the workspace");
    like(crmapictl_ok($db, "export", "--workspace", $w),
        qr/"object":"agent","id":"$agent",.*"name":"Ada"/, "the agent");
    is_deeply([@{asked($db, "key", "list", "--workspace", $w)->[0]}{qw(name scopes)}],
        ["backend", ["read", "write"]], "the key");
    fails("a slug that is taken", $db, 1, qr/slug "first" already/, "init",
        "--name", "Second", "--slug", "first", "--agent", "Ada");
    fails("the same once more", $db, 1, qr/a workspace "first" already, .*"first"; give --slug/,
        "init", "--name", "first", "--agent", "Ada");
    my ($code, $out, $err) = crmapictl($db, "init", "--name", "First", "--slug",
        "another", "--agent", "Bob", "--plan", "free");
    is($code, 0, "with --slug there may be a second one");
    isnt(($out =~ /^W=(.*)$/m)[0], $w, "which is another one");
    like($err, qr/the plan "free" does not include the API/, "what a key waits for");
    fails("the first one is named", $db, 1, qr/with the slug "first"/,
        "init", "--name", "FIRST", "--agent", "Ada");
    sql($db, "INSERT INTO crmapi.agent (id, workspace_id, name, slug, agent_email,
        enabled, public, created_at) VALUES
            ('ffffffff-0000-4000-8000-000000000000', '$w', 'Eve', 'eve',
            'eve\@x.example', false, true, now() - interval '1 hour')");
    my $agents = asked($db, "agent", "list", "--workspace", $w);
    is_deeply([map { [@$_{qw(name slug agent_email)}, map { $_ ? 1 : 0 }
        @$_{qw(enabled public)}] } @$agents], [["Eve", "eve", "eve\@x.example", 0, 1],
        ["Ada", undef, undef, 1, 1]], "agent list, the oldest first");
    is($agents->[1]{id}, $agent, "with its id");
    fails("an agent without a name", $db, 2, qr/--agent must have 1/, "init",
        "--name", "Second", "--slug", "second", "--agent", "");
    fails("and nothing was made", $db, 1, qr/no workspace "second"/,
        "workspace", "show", "second");
};

subtest "import says what it did; a revoked key has no terms" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Said");
    like(crmapictl_ok($db, { stdin => qq(\n{"object":"agent","name":"a"}\n \n) },
        "import", "--workspace", $w), qr/^1 line imported$/,
        "the lines that are not blank");
    crmapictl_ok($db, "key", "create", "--workspace", $w, "--name", "k",
        "--scopes", "read");
    my $id = asked($db, "key", "list", "--workspace", $w)->[0]{id};
    crmapictl_ok($db, "key", "revoke", $id);
    fails("key set", $db, 1, qr/is revoked, for good/, "key", "set", $id,
        "--read-limit", "5");
};

subtest "what has ended stays so, and what makes no sense is no success" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Ended");
    my @in = ("--workspace", $w);
    crmapictl_ok($db, "key", "create", @in, "--name", "k", "--scopes", "read");
    my $id = asked($db, "key", "list", @in)->[0]{id};
    my ($code, undef, $said) = crmapictl($db, "key", "rotate", $id);
    is("$code $said", "0 ", "a key is rotated");
    ($code, undef, $said) = crmapictl($db, "key", "rotate", $id);
    is($code, 0, "once more");
    like($said, qr/^crmapictl: the new key expires at 2.*old one would have$/,
        "the successor ends with the key that was rotated, which is said");
    crmapictl_ok($db, "key", "set", $id, "--expires", "2099-01-01");
    sql($db, "UPDATE crmapi.api_key SET expires_at = now() WHERE id = '$id'");
    fails("key set: @$_", $db, 1, qr/has expired, for good/, "key", "set", $id,
        @$_)
        for [qw(--expires never)], [qw(--expires 2099-01-01)],
            [qw(--read-limit 5)], [qw(--address any)];
    fails("key rotate", $db, 1, qr/no valid key/, "key", "rotate", $id);
    for my $verb ("erase", "export") {
        fails("contact $verb: @$_", $db, 2, qr/must be an? (e-mail|phone)/,
            "contact", $verb, @in, @$_)
            for ["--email", "nope"], ["--email", ""], ["--email", "a\@"],
                ["--email", "a\@b c"], ["--phone", ""], ["--phone", " "],
                ["--phone", "unknown"];
    }
    is(sql($db, "SELECT count(*) FROM crmapi.erasure WHERE workspace_id = '$w'"),
        0, "nothing is in the journal");
    ($code, undef, $said) = crmapictl($db, "contact", "erase", @in, "--email",
        "nobody\@example.org");
    is($code, 0, "who is unknown is erased, from older backups too");
    like($said, qr/nothing is kept of this person/, "which is said");
    fails("@$_: a time that ends before it begins", $db, 2, qr/not be after/,
        @$_, "--from", "2027-01-02", "--to", "2027-01-01")
        for ["usage", $w], ["audit", "list"];
    fails("attachment list", $db, 1, qr/no message/, "attachment", "list",
        "0190a6f0-1c2d-7abc-8def-0123456789ab", @$_) for [], \@in;
};

subtest "of two that delete one thing, the second says that it is not there" => sub {
    my $w = crmapictl_ok($db, "workspace", "create", "--name", "Twice");
    my $id = asked($db, "webhook", "add", "--workspace", $w, "--url",
        "https://x.example/", "--events", "contact.created")->{id};
    for my $case (["webhook_endpoint", $id, "webhook", "remove", $id],
            ["workspace", $w, "workspace", "delete", $w, "--yes"]) {
        my ($table, $row, @command) = @$case;
        my $first = holding($db, "DELETE FROM crmapi.$table WHERE id = '$row'");
        my $second = CrmTest::Child->start(sub { crmapictl($db, @command) });
        wait_blocked($db, 1);
        $first->("COMMIT");
        my ($code, $out, $err) = $second->result;
        is($code, 1, "@command[0, 1]");
        like($err, qr/^crmapictl: there is no (?:endpoint|workspace) "?$row"?$/, "says so");
        is(sql($db, "SELECT count(*) FROM crmapi.audit WHERE action ="
            . " '@command[0, 1]' AND object_id = '$row'"), 0, "and has no row of audit");
    }
};

subtest "help helps" => sub {
    my ($code, $help) = crmapictl(undef, "help");
    is($code, 0, "crmapictl help");
    is($help, (crmapictl(undef, "--help"))[1], "is --help");
    is((crmapictl(undef, "help", "key", "create"))[1],
        (crmapictl(undef, "key", "create", "--help"))[1], "of a command");
    ($code, $help) = crmapictl(undef, "key", "--help");
    is($code, 0, "of a group");
    is_deeply([$help =~ /^  (\w+ \w+)/mg], [map { "key $_" }
        qw(create import list set rotate revoke)], "all its commands");
    is((crmapictl(undef, "nothing", "--help"))[0], 2, "not of what is not there");
};

subtest "help, version, manual page" => sub {
    my ($code, $help, $err) = help_of();
    is($code, 0, "--help needs no database");
    is($err, "", "and complains of nothing");
    is((crmapictl(undef, "-h"))[1], $help, "-h");
    like((crmapictl(undef, "--version"))[1], qr/\Acrmapictl \d+\.\d+\.\d+\n\z/,
        "--version");
    my ($commands) = $help =~ /\n\n(.*?)\n\n/s;
    my $page = read_file("$CrmTest::TOP/docs/man/crmapictl.1");
    utf8::decode($page);
    $page =~ s/\\f[BIR]//g;
    $page =~ s/\\-/-/g;
    my %paged = map { s/ +/ /gr => 1 } $page =~ /^\.TP\n\.B (.*)$/mg;
    my (%options, @synopses);

    for my $synopsis ($commands =~ /^  (\S.*)$/mg) {
        push @synopses, $synopsis;
        ok(delete $paged{$synopsis}, "the page has \"$synopsis\"");
        my ($words) = $synopsis =~ /^((?:[a-z-]+)(?: [a-z]+)?)/;
        my ($rc, $out) = help_of(split / /, $words);
        is($rc, 0, "$words --help");
        like($out, qr/\Ausage: crmapictl .*\Q$synopsis\E$/m,
            "shows the command");
        unlike($out, qr/^  --(?!\S+(?: [A-Z=]+)?  +\w)/m,
            "with blanks between each option and what is said of it");
        $options{$_} = 1 for $out =~ /^  (--\S+(?: [A-Z_=]+)?)/mg;
    }
    cmp_ok(scalar @synopses, ">=", 13, "there are commands");
    ok(delete $paged{$_}, "the page has $_") for sort keys %options;
    my @other = grep { !/^(?:CRMAPI_\w+|[0-9])$/ } sort keys %paged;
    is_deeply(\@other, [], "and the page has nothing else");
};

subtest "bash completes commands and options" => sub {
    my $dir = tempdir(CLEANUP => 1);
    # What is offered for the last of each of LINES, arrays of words.
    my $offered = sub {
        my (@lines) = @_;
        my ($code, $out, $err) = run_program(command => ["bash", "-c", <<'END',
set -eu
. "$1"
dir=$2
crmapictl() { cat "$dir/$*"; }          # what it said before
while read -r line; do
    mapfile -t -d : COMP_WORDS < <(printf %s "$line")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _crmapictl
    echo "${COMPREPLY[@]}"
done
END
            "bash", "$CrmTest::TOP/contrib/completion/crmapictl", $dir],
            stdin => join "", map { join("", map { "$_:" } "crmapictl", @$_)
                . "\n" } @lines);
        is("$code$err", "0", "it ends well");
        return map { [sort split / /] } split /\n/, $out;
    };
    my ($commands) = (help_of())[1] =~ /\n\n(.*?)\n\n/s;
    my %second;
    $second{$1}{$2 // ""} = 1
        while $commands =~ /^  ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?\b/mg;
    cmp_ok(scalar keys %second, ">=", 10, "there are commands");
    my @cases = ([[""], [keys %second, qw(--database --json --help --version)]],
        [["work"], [qw(worker workspace)]]);
    for my $first (sort keys %second) {
        my @seconds = grep { $_ ne "" } keys %{$second{$first}};
        push @cases, [[$first, ""], \@seconds]
            if @seconds && !$second{$first}{""};
        for my $second (sort keys %{$second{$first}}) {
            my @command = grep { $_ ne "" } $first, $second;
            my %options = map { $_ => 1 } (help_of(@command))[1]
                =~ /^  (--[a-z-]+)/mg;
            push @cases, [["--database", "dbname=x", @command, "--"],
                [keys %options]];
        }
    }
    write_file("$dir/" . join(" ", $_ || (), "--help"), $help{$_}[1])
        for keys %help;
    my @got = $offered->(map { $_->[0] } @cases);
    is_deeply($got[$_], [sort @{$cases[$_][1]}], "@{$cases[$_][0]}")
        for 0 .. $#cases;
};

done_testing;
