#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 07-twins.t: every command of crmapictl while another workspace has the same
# ids, because an export was imported twice: the command neither changes nor
# shows the other one
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Dump qw(dump_of);
use JSON::PP ();

my $db = database();
my $json = JSON::PP->new->utf8->canonical;

# --- one export, imported twice -----------------------------------------------

my $origin = workspace($db, name => "Origin", twin => 0);
my $agent = $origin->agent;
my ($contact, $conversation, $message, $template) = map { uuid() } 1 .. 4;
$origin->import_objects([
    { object => "contact", id => $contact, bot_id => $agent,
        emails => ["ada\@example.org"] },
    { object => "conversation", id => $conversation, bot_id => $agent,
        type => 4 },
    { object => "message", id => $message, role => "user",
        conversation_id => $conversation },
    { object => "sequence_template", id => $template, bot_id => $agent,
        name => "T", allowed_channels => ["email"], stop_on_reply => true }]);
sql($db, "UPDATE crmapi.agent SET agent_email = 'sales\@crm.example'"
    . " WHERE id = '$agent'");
my $export = $origin->ctl("export", "--workspace", $origin->id);
$origin->ctl("workspace", "hold", $origin->id);     # its addresses are free
my ($mine, $twin) = map {
    my $w = workspace($db, name => $_, twin => 0, seed => 0);
    # but an address is one agent's
    my $rows = $_ eq "Twin" ? $export =~ s/sales\@/twin@/r : $export;
    crmapictl_ok($db, { stdin => $rows }, "import", "--workspace", $w->id);
    $w->{agent} = $agent;
    $w;
} "Mine", "Twin";
$origin->ctl("workspace", "delete", $origin->id, "--yes");

# --- and what no export has, with the same ids in both as well ------------------

# The tables of a workspace, each with the columns that are stored in it.
my %columns = map { $_->[0] => $_->[1] } sql($db, "SELECT t.table_name,
    string_agg(quote_ident(c.column_name), ',')
    FROM information_schema.tables t
    JOIN information_schema.columns c USING (table_schema, table_name)
    WHERE t.table_schema = 'crmapi' AND t.table_type = 'BASE TABLE'
    AND c.is_generated = 'NEVER' GROUP BY 1
    HAVING bool_or(c.column_name = 'workspace_id')");

# What a command with --json prints.
sub asked { return crmapictl_json($db, @_) }

my @in_mine = ("--workspace", $mine->id);
my ($key) = $mine->key_ids;
my $token = asked("intake", "create", @in_mine, "--name", "t")->{id};
crmapictl_ok($db, "admin", "add", @in_mine, "--email", "boss\@example.org");
my $endpoint = asked("webhook", "add", @in_mine, "--url", "https://h.example/",
    "--events", "contact.created")->{id};
$mine->import_objects([{ object => "contact", bot_id => $agent }]);
my ($delivery) = asked("webhook", "deliveries", @in_mine)->[0]{id};
my ($waits, $other, $runs) = map { (enroll($mine, $template, $contact))[0] }
    1 .. 3;
change($mine, "enrollment", $_, status => "pending_approval")
    for $waits, $other, $runs;
my $file = uuid();
sql($db, "INSERT INTO crmapi.attachment (workspace_id, id, message_id, number,"
    . " filename, size, stored) VALUES ('" . $mine->id . "', '$file',"
    . " '$message', 1, 'mine', 4, true);"
    . " INSERT INTO crmapi.attachment_piece VALUES ('" . $mine->id . "',"
    . " '$file', 1, 'mine')");
my $job = sql($db, "INSERT INTO crmapi.job (workspace_id, kind, state,"
    . " finished_at) VALUES ('" . $mine->id . "', 'review.mail', 'dead',"
    . " now()) RETURNING id");
# Nothing that a trigger does, nor the hashes, which are unique.
sql($db, join ";\n", "SET session_replication_role = replica", map({
        my $values = $columns{$_} =~ s/\bworkspace_id\b/'@{[$twin->id]}'/r
            =~ s/\bkey_hash\b/sha256(key_hash)/r;
        "INSERT INTO crmapi.$_ ($columns{$_}) OVERRIDING SYSTEM VALUE"
            . " SELECT $values FROM crmapi.$_ WHERE workspace_id = '"
            . $mine->id . "' ON CONFLICT DO NOTHING" } sort keys %columns),
    # what would be seen of it
    map { my ($table, $set) = @$_;
        "UPDATE crmapi.$table SET $set WHERE workspace_id = '"
            . $twin->id . "'" }
    ["agent", "name = 'TWIN', chat_origins = '{https://twin.example}'"],
    ["api_key", "name = 'TWIN'"], ["intake_key", "name = 'TWIN'"],
    ["admin", "name = 'TWIN'"], ["sequence", "name = 'TWIN'"],
    ["attachment", "filename = 'TWIN'"],
    ["attachment_piece", "bytes = 'TWIN'"],
    ["webhook_endpoint", "url = 'https://twin.example/'"],
    ["job", "last_error = 'TWIN'"], ["contact", "first_name = 'TWIN'"]);

# All that is in a workspace, each table as a hash.
sub state_of {
    my ($w) = @_;
    return { map { $_->[0] => $_->[1] } sql($db, join " UNION ALL ",
        "SELECT 'workspace', md5(string_agg(w::text, ''))"
        . " FROM crmapi.workspace w WHERE w.id = '" . $w->id . "'",
        map { "SELECT '$_', md5(string_agg(t::text, ' ' ORDER BY t::text))"
            . " FROM crmapi.$_ t WHERE t.workspace_id = '" . $w->id . "'" }
            sort keys %columns) };
}

# --- every command ----------------------------------------------------------------

my $mail = "From: ada\@example.org\nTo: sales\@crm.example\nSubject: x\n\nx\n";
my %said;       # commands that were tried
my $uuid = qr/^[0-9a-f-]{36}$/;

# The number of rows that say who changed what (contract 14.7): by the command of
# WORDS, or by all.
sub audited {
    return 0 + sql($db, "SELECT count(*) FROM crmapi.audit"
        . (@_ ? " WHERE action = '$_[0]'" : ""));
}

# Run the command of WORDS with ARGUMENTS. how => "reads", "writes", or "is
# everybody's": then it shows and does what is no workspace's; changes => 1: and changes it. bare => 1: an
# id alone says what it is done to, unless two have it. What was changed is in its row
# of the audit: the operand, the workspace that is NAMED, or OBJECT.
sub tries {
    my ($words, $arguments, %arg) = @_;
    my @call = (split(/ /, $words), @$arguments);
    my @options = $arg{stdin} ? { stdin => $arg{stdin} } : ();
    my $everybodys = $arg{how} eq "is everybody's";
    my $before = state_of($twin);
    my $name = join " ", $words, $arg{name} // ();
    $said{$words} = 1;

    my $changes = $arg{how} eq "writes" && $words ne "deliver"
        || $arg{changes};
    my $rows = audited($changes ? $words : ());
    subtest "$name $arg{how}" => sub {
        my $had = state_of($mine);
        if ($arg{bare}) {
            my ($code, $out, $err) = crmapictl($db, @options, @call);
            is($code, 1, "an id that two workspaces have: refused");
            is($out, "", "nothing is shown");
            like($err, qr/--workspace/, "and what to do is said");
            unlike($err, qr/twin/i, "nothing of the other");
            is_deeply(state_of($mine), $had, "nothing is done here");
            is_deeply(state_of($twin), $before, "nor there");
        }
        my ($code, $out, $err) = crmapictl($db, @options, @call,
            $everybodys || $arg{named} ? () : @in_mine);
        is($code, 0, "done") or diag($err);
        unlike("$out$err", qr/twin|@{[$twin->id]}/i, "the other is not seen")
            if !$everybodys;
        is_deeply(state_of($twin), $before, "nor touched");
        my $now = state_of($mine);
        $arg{how} eq "writes"
            ? isnt($json->encode($now), $json->encode($had), "it was done")
            : is_deeply($now, $had, "and nothing was done");
        is(audited($changes ? $words : ()) - $rows, $changes ? 1 : 0, $changes
            ? "one row says who did it" : "no row says that");
        names_object($words, exists $arg{object} ? $arg{object}
            : $arg{bare} ? $arguments->[0] : $arg{named} ? $mine->id : undef,
            $everybodys || $words =~ /^workspace (?:hold|release|delete)$/
            ? undef : $mine->id) if $changes;
        $arg{then}->($out) if $arg{then};
    };
}

# The last row of the command of WORDS says that the object ID (a value or a pattern)
# of the workspace WHOSE was changed.
sub names_object {
    my ($words, $id, $whose) = @_;
    my ($row) = grep { $_->{action} eq $words } @{asked("audit", "list")};
    is($row->{workspace_id}, $whose, "and in which workspace");
    ref $id ? like($row->{object_id}, $id, "and on which object")
        : is($row->{object_id}, $id, "and on which object");
}

tries("migrate", [], changes => 1, how => "is everybody's");
tries("status", [], how => "is everybody's");
tries("worker list", [], how => "is everybody's");
tries("role create", ["api", "crm_twins_$$"], object => "crm_twins_$$",
    changes => 1, how => "is everybody's");
sql($db, "DROP ROLE crm_twins_$$");
tries("workspace list", [], how => "is everybody's");
tries("hold", ["--all"], changes => 1, how => "is everybody's");
tries("release", [], changes => 1, how => "is everybody's");
tries("workspace create", ["--name", "Third"], object => $uuid, changes => 1, how => "is everybody's");
tries("plan list", [], how => "is everybody's");
tries("plan create", ["--name", "third", "--api", "on", "--sequences", "on"],
    object => "third", changes => 1, how => "is everybody's");
tries("plan set", ["third", "--api", "off"], object => "third", changes => 1, how => "is everybody's");
tries("job list", [], how => "is everybody's");

tries("job list", [], name => "of one", how => "reads", then => sub {
    like($_[0], qr/^$job\t/m, "its own is shown") });
tries("job retry", [$job], how => "writes", bare => 1);
tries("workspace show", [$mine->id], how => "reads", named => 1);
tries("workspace set", [$mine->id, "--name", "Me"], how => "writes",
    named => 1);
tries("workspace retention", [$mine->id, "--retention-events", 1],
    how => "reads", named => 1);
tries("workspace hold", [$mine->id], how => "writes", named => 1);
tries("workspace release", [$mine->id], how => "writes", named => 1);
tries("workspace dump", [$mine->id], how => "reads", named => 1);
tries("workspace restore", ["--as", "new"], object => $uuid, changes => 1, how => "is everybody's",
    stdin => dump_of($db, $mine->id));
tries("key create", ["--name", "k", "--scopes", "read"], object => $uuid, how => "writes");
tries("key import", ["--name", "k", "--scopes", "read"], object => $uuid, how => "writes",
    stdin => "svc_live_" . "a" x 30);
tries("key list", [], how => "reads");
tries("key set", [$key, "--read-limit", "9"], how => "writes", bare => 1);
tries("key rotate", [$key], how => "writes", bare => 1);
tries("link-key rotate", [$mine->id], how => "writes", named => 1);
tries("link-key drop", [$mine->id], how => "writes", named => 1);
tries("key revoke", [$key], how => "writes", bare => 1);
tries("intake create", ["--name", "k"], object => $uuid, how => "writes");
tries("intake list", [], how => "reads");
tries("intake revoke", [$token], how => "writes", bare => 1);
tries("attachment list", [$message], how => "reads", bare => 1, then => sub {
    like($_[0], qr/^1\t\Q$file\E\tmine\t/m, "its own is shown") });
tries("attachment get", ["$message/1"], how => "reads", bare => 1,
    then => sub { is($_[0], "mine", "its own is written") });
tries("agent list", [], how => "reads");
tries("agent origins", [$agent], name => "asked", how => "reads", bare => 1);
tries("agent origins", [$agent, "--origins", "https://m.example"],
    name => "set", how => "writes", bare => 1);
tries("deliver", [], how => "writes", stdin => $mail);
tries("admin add", ["--email", "new\@example.org"], object => $uuid, how => "writes");
tries("admin list", [], how => "reads");
tries("admin remove", ["--email", "boss\@example.org"], object => $uuid, how => "writes");
tries("enrollment list", [], how => "reads");
tries("enrollment show", [$waits], how => "reads", bare => 1);
tries("enrollment approve", [$waits], how => "writes", bare => 1);
tries("enrollment reject", [$other], how => "writes", bare => 1);
tries("enrollment stop", [$runs], how => "writes", bare => 1);
tries("suppress add", ["--email", "no\@example.org"], how => "writes");
tries("suppress list", [], how => "reads");
tries("suppress remove", ["--email", "no\@example.org"], how => "writes");
tries("reply", ["--contact", $contact], object => $contact, how => "writes");
tries("webhook add", ["--url", "https://n.example/", "--events",
    "form.submitted"], object => $uuid, how => "writes");
tries("webhook list", [], how => "reads");
tries("webhook deliveries", [], how => "reads");
tries("webhook rotate", [$endpoint], how => "writes", bare => 1);
sql($db, "UPDATE crmapi.webhook_endpoint SET disabled_at = now(),"
    . " disabled_reason = 'x'");
tries("webhook enable", [$endpoint], how => "writes", bare => 1);
tries("webhook redrive", [$delivery], name => "of a delivery",
    how => "writes", bare => 1, then => sub { is($_[0], "1\n", "one") });
sql($db, "UPDATE crmapi.webhook_delivery SET status = 'failed',"
    . " next_at = NULL, finished_at = now()");
tries("webhook redrive", [$endpoint], name => "of an endpoint",
    how => "writes", bare => 1, then => sub { is($_[0], "1\n", "one") });
tries("webhook test", [$endpoint], how => "writes", bare => 1);
tries("webhook disable", [$endpoint], how => "writes", bare => 1);
tries("webhook remove", [$endpoint], how => "writes", bare => 1);
tries("import", [], how => "writes", stdin => $json->encode({
    object => "company", bot_id => $agent, name => "I" }));
tries("export", [], how => "reads");
tries("show", [$mine->id], how => "reads", named => 1);
tries("usage", [$mine->id], how => "reads", named => 1);
tries("apply", ["-"], how => "writes", stdin => $json->encode({
    object => "agent", id => $agent, summary => "applied" }));
tries("contact export", [$contact], how => "reads");
tries("contact erase", [$contact], object => $contact, how => "writes");
tries("audit list", [], how => "reads");
tries("erasure list", [], how => "is everybody's");
tries("erasure add", [], changes => 1, how => "is everybody's",
    stdin => crmapictl_ok($db, "erasure", "list"));

subtest "an id is enough where one workspace has it" => sub {
    my $id = asked("key", "create", @in_mine, "--name", "own", "--scopes",
        "read")->{id};
    my ($code, $out, $err) = crmapictl($db, "key", "revoke", $id);
    is($code, 0, "revoked") or diag($err);
    ok((grep { $_->{id} eq $id && $_->{revoked_at} }
        @{asked("key", "list", @in_mine)}), "as its list says");
    ($code, $out, $err) = crmapictl($db, "key", "revoke", $id, "--workspace",
        $twin->id);
    is($code, 1, "where another workspace is named");
    like($err, qr/there is no key $id/, "there is none");
};

tries("workspace delete", [$mine->id, "--yes"], how => "writes", named => 1);

is(sql($db, "SELECT count(*) FROM crmapi.audit WHERE workspace_id = '"
    . $mine->id . "'"), 0, "its rows went with it");

# what concerns no workspace that is there: 06-crmapictl.t, 77-citus.t
$said{$_} = 1 for qw(distribute httpd-conf init);
# a new command has to come here, too
is_deeply([sort keys %said], [sort map {
    /^  ([a-z][a-z-]*(?: [a-z]+)?)(?: |$)/ ? $1 : () }
    split /\n/, crmapictl_ok($db, "--help")], "every command was tried");

done_testing;
