# SPDX-License-Identifier: Apache-2.0
# 66-audit.t: who changed what (contract 14.7). 07-twins.t shows that every command
# of crmapictl that changes something leaves a row, and no other one
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Dump qw(dump_of state_of);
use CrmTest::Pages;

my $database = database();
my $httpd = httpd(database => $database, conf => "CrmApiReview On\n");
my $w = workspace($httpd, twin => 0);
my $other = workspace($httpd, twin => 0);
my $c = $w->client;
my $json = JSON::PP->new->utf8->canonical;
my $me = getpwuid($<);

# The rows of audit list with OPTIONS, newest first.
sub rows { return @{crmapictl_json($database, "audit", "list", @_)} }

# The same of the workspace.
sub mine { return rows("--workspace", $w->id, @_) }

subtest "a row says who, when, from where, what, on which object" => sub {
    my ($key) = $w->key_ids;
    my $before = sql($database, "SELECT crmapi.now_ms()");
    $w->ctl("key", "set", $key, "--read-limit", "77");
    my ($row) = mine();
    is($row->{actor_kind}, "system", "a system user");
    like($row->{actor}, qr/(?:^| as )\Q$me\E$/, "this one");
    is($row->{login}, sql($database, "SELECT pg_get_userbyid(relowner)
        FROM pg_class WHERE oid = 'crmapi.audit'::regclass"), "with its login");
    like($row->{origin}, qr/^\S/, "on a host");
    is($row->{action}, "key set", "what");
    is($row->{object}, "key", "a key");
    is($row->{object_id}, $key, "this one");
    is_deeply($row->{details}, { "read-limit" => "77" }, "how");
    is($row->{workspace_id}, $w->id, "where");
    is(sql($database, "SELECT '$row->{at}'::timestamptz >= '$before'"), "t",
        "when");
};

subtest "keys: create, set, rotate, revoke" => sub {
    my $id = $w->ctl_json("key", "create", "--workspace", $w->id, "--name",
        "secretive", "--scopes", "read");
    my $next = $w->ctl_json("key", "rotate", $id->{id});
    $w->ctl("key", "revoke", $next->{id});
    my @rows = reverse((mine())[0 .. 2]);
    is_deeply([map { $_->{action} } @rows], ["key create", "key rotate",
        "key revoke"], "each is there");
    is_deeply([map { $_->{object_id} } @rows], [$id->{id}, $id->{id},
        $next->{id}], "with its key");
    is_deeply($rows[0]{details}, { name => undef, scopes => "read" },
        "a name is not kept, only that there was one");
    unlike($json->encode([mine()]), qr/$id->{key}|$next->{key}|secretive/,
        "and no secret");
};

# What commands keep of their options: of those here the values, as given, of all
# others that there was one. New options have to come here.
subtest "values of options, if they say nothing about people and are no secrets" => sub {
    my $id = $other->id;
    my @of = ("--workspace", $id);
    my ($endpoint, $endpoint2) = map { $other->ctl_json("webhook", "add", @of,
        "--url", "https://x.example/", "--events", "contact.created")->{id}
    } 1 .. 2;
    for my $case (
        ["workspace create", [], { slug => "kept", plan => "pro" },
            { name => "zq", id => uuid() }],
        ["workspace set", [$id], { plan => "pro", "read-limit" => 7,
            "write-limit" => 8, currency => "EUR", "time-zone" => "Europe/Paris",
            "sender-domains" => "x.example", events => "off",
            "retention-conversations" => 9, "retention-submissions" => 10,
            "retention-events" => 11 }, { name => "zq" }],
        ["key create", \@of, { scopes => "read", "read-limit" => 7,
            "write-limit" => 8, expires => "2099-01-01",
            address => "192.0.2.0/24" }, { name => "zq", "key-prefix" => "zq_" }],
        ["key set", \@of, { "read-limit" => 7, "write-limit" => 8,
            expires => "2099-01-01", address => "192.0.2.0/24" }, {}],
        ["key rotate", \@of, { overlap => "1h" }, { "key-prefix" => "zq_" }],
        ["link-key rotate", [$id], { "keep-days" => 5 }, {}],
        ["plan create", [], { api => "on", sequences => "off" },
            { name => "zq" }],
        ["plan set", ["zq"], { api => "on", sequences => "on" }, {}],
        ["intake create", \@of, {}, { name => "zq" }],
        ["agent origins", [$other->agent, @of],
            { origins => "https://x.example" }, {}],
        ["admin add", \@of, {}, { email => "zq\@x.example", name => "zq" }],
        ["admin remove", \@of, {}, { email => "zq\@x.example" }],
        ["suppress add", \@of, {}, { phone => "+4930123456", reason => "zq" }],
        ["suppress remove", \@of, {}, { phone => "+4930123456" }],
        ["webhook add", \@of, { events => "contact.created" },
            { url => "https://x.example/zq" }],
        ["webhook disable", [@of, $endpoint], {}, { reason => "zq" }],
        ["webhook test", [@of, $endpoint2], {}, {}],
        ["apply", [@of, "-"], {}, { set => "A=zq", "set-file" => "B=/dev/null" }],
        ["workspace hold", [$id], { api => "on" }, { reason => "zq" }],
        ["workspace release", [$id], { "skip-due-before" => "2001-01-01" }, {}],
    ) {
        my ($words, $arguments, $kept, $named) = @$case;
        my %options = (%$kept, %$named);
        my @more = $words =~ /^key (?:set|rotate)$/ ? ($other->key_ids)[0] : ();
        crmapictl_ok($database, { stdin => $json->encode({ object => "agent",
            name => "A" }) }, split(/ /, $words), @$arguments, @more,
            map { ("--$_", $options{$_}) } sort keys %options);
        my ($row) = grep { $_->{action} eq $words } rows();
        is_deeply($row->{details}, { %$kept, map { $_ => undef }
            keys %$named }, $words);
        isnt($row->{object_id} // "", "-", "$words: a file is no object");
        my ($help) = (crmapictl(undef, split(/ /, $words), "--help"))[1];
        my %left = map { $_ => 1 } $help =~ /^  --([a-z-]+) [A-Z]/mg;
        delete @left{keys %options, qw(workspace database timeout email phone
            move-to)};
        is_deeply([sort keys %left], [], "$words: no other option has a value");
    }
    crmapictl_ok($database, "hold", "--all", "--reason", "zq");
    is_deeply((rows())[0]{details}, { all => JSON::PP::true, reason => undef },
        "hold: an option without a value");
    crmapictl_ok($database, "release", "--all");
};

subtest "who came by sudo or SSH is told" => sub {
    local $ENV{SUDO_USER} = "alice";
    local $ENV{SSH_CONNECTION} = "203.0.113.9 50000 192.0.2.1 22";
    $w->ctl("workspace", "set", $w->id, "--currency", "EUR");
    my ($row) = mine();
    is($row->{actor}, "alice as $me", "sudo");
    like($row->{origin}, qr/ from 203\.0\.113\.9$/, "SSH");
    @ENV{qw(SUDO_USER SSH_CONNECTION)} = ("\xff", "\xff");
    $w->ctl("workspace", "set", $w->id, "--currency", "EUR");
    ($row) = mine();
    is($row->{actor}, $me, "what is no UTF-8 is left out");
    unlike($row->{origin}, qr/ from /, "of both");
};

subtest "no contact's data" => sub {
    my $id = $w->contact(emails => ["zq\@x.example"])->{id};
    $w->ctl("suppress", "add", "--workspace", $w->id, "--email",
        "zq\@x.example", "--reason", "zq said so");
    $w->ctl("contact", "erase", "--workspace", $w->id, "--email",
        "zq\@x.example");
    my @rows = (mine())[0, 1];
    is_deeply([map { $_->{action} } @rows], ["contact erase", "suppress add"],
        "they are told");
    is_deeply($rows[1]{details}, { email => undef, reason => undef },
        "with the names of the options");
    unlike($json->encode(\@rows), qr/zq/, "not their values");
};

subtest "a command that fails leaves no row, one that prints neither" => sub {
    my $n = rows();
    my ($code) = crmapictl($database, "key", "revoke", uuid(), "--workspace",
        $w->id);
    is($code, 1, "it fails");
    ($code) = crmapictl($database, { stdin => "{\n" }, "import", "--workspace",
        $w->id);
    is($code, 1, "an import, too");
    $w->ctl("contact", "erase", "--workspace", $w->id, "--email",
        "a\@x.example", "--dry-run");
    $w->ctl("key", "list", "--workspace", $w->id);
    is(scalar(() = rows()), $n, "no row");
};

subtest "a command whose row cannot be written changes nothing" => sub {
    my $id = $other->id;
    my $lines = $json->encode({ object => "agent", name => "Unrecorded" }) . "\n";
    my $dump = dump_of($database, $id);
    $other->ctl("workspace", "hold", $id);
    sql($database, "ALTER TABLE crmapi.audit ADD CONSTRAINT none CHECK (false)
        NOT VALID");
    my $state = sub { state_of($database) . sql($database, "SELECT count(*) FROM
        pg_roles WHERE rolname = 'crm_unrecorded_$$'") };
    my $was = $state->();
    for my $command (["role", "create", "api", "crm_unrecorded_$$"],
        ["workspace", "set", $id, "--currency", "SEK"],
        ["workspace", "hold", $w->id], ["workspace", "dump", $id, "--api", "off"],
        ["workspace", "restore", "--as", "new"], ["import", "--workspace", $id],
        ["apply", "--workspace", $id, "-"],
        ["contact", "erase", "--workspace", $id, "--email", "u\@x.example"],
        ["agent", "origins", $other->agent, "--workspace", $id, "--origins", "*"],
        ["key", "create", "--workspace", $id, "--name", "k", "--scopes", "read"],
        ["workspace", "create", "--name", "Unrecorded"], ["release"],
        ["workspace", "release", $id], ["workspace", "delete", $id, "--yes"]) {
        my ($code, undef, $err) = crmapictl($database, { stdin =>
            "@$command" =~ /restore/ ? $dump : $lines }, @$command);
        is($code, 1, "@$command fails");
        like($err, qr/ 23514 .*"none"/, "because of that");
        ok($state->() eq $was, "and nothing has changed");
    }
    sql($database, "ALTER TABLE crmapi.audit DROP CONSTRAINT none");
    $other->ctl("workspace", "release", $id);
};

subtest "the page of review: an admin, at an address" => sub {
    for my $what (qw(approve reject)) {
        my ($id) = enrollment($w, [{ channel => "email", email_subject => "S",
            email_body => "B", to_identifier => "p\@x.example" }]);
        my $admin = admin($w);
        my $path = link_to($w, "review", $id, other => $admin);
        my $web = $httpd->client;
        my %field = $web->get($path)->body
            =~ /<input [^>]*name="(\w+)" value="([^"]*)"/g;
        ok($field{form}, "a form");
        is($web->request("POST", $path, body => join("&", "action=$what",
            map { "$_=$field{$_}" } sort keys %field), headers => {
                "Content-Type" => "application/x-www-form-urlencoded" })
            ->status, 303, "sent");
        my ($row) = mine();
        is($row->{action}, "enrollment $what", $what);
        is($row->{actor_kind}, "admin", "by an admin");
        is($row->{actor}, $admin, "this one");
        is($row->{origin}, "127.0.0.1", "there");
        is($row->{object_id}, $id, "of this enrollment");
        my $n = mine();
        $web->get($path);
        is(scalar(() = mine()), $n, "to look at it leaves none");
    }
};

subtest "an erasure by the API: a key, at an address" => sub {
    my $id = $w->contact(emails => ["e\@x.example"])->{id};
    $c->post("/api/v1/contacts/$id/erase");
    my ($row) = mine();
    is_deeply([@$row{qw(actor_kind actor origin action object_id)}],
        ["key", ($w->key_ids)[0], "127.0.0.1", "contact erase", $id],
        "who did it");
};

subtest "the rows of a workspace, of a time, and of the database" => sub {
    my $n = () = rows("--workspace", $other->id);
    $w->ctl("workspace", "set", $w->id, "--name", "N");
    is(scalar(() = rows("--workspace", $other->id)), $n, "not another's");
    $w->ctl("plan", "set", "pro", "--api", "on");
    my ($row) = rows();
    is_deeply([@$row{qw(workspace_id action object_id)}], [undef, "plan set",
        "pro"], "what concerns no workspace");
    my $made = crmapictl_ok($database, "workspace", "create", "--name", "Made");
    is_deeply([map { @$_{qw(action object_id)} } rows("--workspace", $made)],
        ["workspace create", $made], "how a workspace began is one of its rows");
    my $at = $row->{at};
    ok((grep { $_->{at} eq $at } rows("--from", $at, "--to", $at)),
        "bounds are inclusive");
    is(scalar(() = rows("--to", "2001-01-01")), 0, "up to a time");
    is(scalar(() = rows("--from", "2099-01-01")), 0, "from a time on");
    ok(scalar(() = rows("--from", "2001-01-01", "--to", "2099-01-01")), "both");
};

# Add a row from AGE ago, a copy of one about a plan.
sub aged {
    my ($age) = @_;
    sql($database, "INSERT INTO crmapi.audit SELECT a.workspace_id,
        gen_random_uuid(), now() - interval '$age', a.actor_kind, a.actor,
        a.login, a.origin, 'old ' || split_part('$age', ' ', 1), a.object,
        a.object_id, a.details FROM crmapi.audit a WHERE a.action = 'plan set'
        AND a.object_id = 'pro'");
}

subtest "no role of a daemon reads, changes or deletes a row" => sub {
    is_deeply([sql($database, "SELECT w.role, r.of
        FROM (VALUES ('crmapi_api'), ('crmapi_worker')) w(role)
        CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE',
            'TRUNCATE', 'REFERENCES', 'TRIGGER']) r(of)
        WHERE has_table_privilege(w.role, 'crmapi.audit', r.of)
           OR r.of IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
              AND has_any_column_privilege(w.role, 'crmapi.audit', r.of)")], [],
        "says the catalog");
    my $n = () = rows();
    for my $role (qw(crmapi_api crmapi_worker)) {
        for my $try ("SELECT * FROM crmapi.audit", "DELETE FROM crmapi.audit",
                "UPDATE crmapi.audit SET actor = 'x'", "TRUNCATE crmapi.audit",
                "INSERT INTO crmapi.audit SELECT * FROM crmapi.audit",
                "SELECT crmapi.audit_add(NULL, 'key', 'x', 'x', 'x', 'x', 'x',
                    '{}')") {
            my $said = eval { sql($database, "BEGIN; SET LOCAL ROLE $role;"
                . " $try; COMMIT"); 1 };
            ok(!$said && $@ =~ /permission denied/, "$role: $try");
        }
    }
    aged($_) for "29 days 23 hours", "30 days 1 hour";
    sql($database, "BEGIN; SET LOCAL ROLE crmapi_worker;
        SELECT crmapi.audit_trim(now() + interval '1 year', 1000); COMMIT");
    is(scalar(() = rows()), $n + 1, "nor by what trims old ones, for 30 days");
};

subtest "old rows are trimmed after keep_audit" => sub {
    my $n = () = rows();
    aged("$_ days") for 99, 101;
    my $worker = worker(database => $database, no_start => 1,
        conf => { keep_audit => "100d" });
    $worker->once;
    is_deeply([map { $_->{action} } grep { $_->{action} =~ /^old/ } rows()],
        ["old 29", "old 99"], "those before, and no others");
    is(scalar(() = rows()), $n + 1, "nothing else");
};

subtest "dumped, restored and exported with the workspace" => sub {
    my @had = grep { $_->{workspace_id} } mine();
    my $dump = dump_of($database, $w->id);
    my $copy = crmapictl_json($database, { stdin => $dump }, "workspace",
        "restore", "--as", "new");
    $copy = $copy->[0] if ref $copy eq "ARRAY";
    my @has = rows("--workspace", $copy->{id});
    my $last = shift @has;
    is_deeply([@$last{qw(workspace_id action object_id)}], [undef,
        "workspace restore", $copy->{id}], "that it was restored, is told");
    for (@has) {
        $_->{workspace_id} = $w->id;
        $_->{object_id} = $w->id if ($_->{object_id} // "") eq $copy->{id};
    }
    is_deeply(\@has, \@had, "and the rows are the same");
    my @lines = map { $json->decode($_) } split /\n/, $w->ctl("export",
        "--workspace", $w->id, "--object", "audit");
    is(scalar @lines, scalar @had, "export has them");
    is_deeply([grep { exists $_->{workspace_id} } @lines], [],
        "without the workspace, whose export it is");
    is_deeply([map { [@$_{qw(at action)}] } reverse @lines],
        [map { [@$_{qw(at action)}] } @had], "in their order, with their times");
    unlike($w->ctl("export", "--workspace", $w->id), qr/"object":"audit"/,
        "if it is asked for them: an import takes none");
};

subtest "a workspace takes its rows with it, and that it went is told" => sub {
    my $kept = sub { sql($database, "SELECT count(*) FROM crmapi.audit"
        . " WHERE workspace_id = '" . $w->id . "'") };
    cmp_ok($kept->(), ">", 0, "it has some");
    $w->ctl("workspace", "delete", $w->id, "--yes");
    my ($row) = rows();
    is_deeply([@$row{qw(workspace_id action object_id)}], [undef,
        "workspace delete", $w->id], "who deleted it");
    is($kept->(), 0, "nothing else is left");
};

done_testing;
