# SPDX-License-Identifier: Apache-2.0
# 66-dump-refused.t: a dump that was cut, changed or forged is refused, and
# changes nothing (contract 14.2)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Dump;

my ($here, $there) = (database(), database());
my $httpd = httpd(database => $here, unlimited => 1);
# Its dump is short.
my $small = workspace($httpd, name => "Small", twin => 0);
$small->log_on;
$small->webhook("http://127.0.0.1:9/", "contact.created");
$small->client->post("/api/v1/contacts", { bot_id => $small->agent });
my $short = dump_of($here, $small->id);

# Restore DUMP, which must be refused because of WHY, into DATABASE.
sub refused {
    my ($dump, $why, $name, @options) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code, $out, $err) = crmapictl($there, { stdin => $dump },
        "workspace", "restore", @options);
    return if is($code, 1, "$name: refused") & like($err, $why,
        "$name: says why");
    diag($out . $err);
}

# Somebody else is there, with a contact.
my $neighbour = workspace($there, twin => 0);
my $taken = $neighbour->id;
my ($theirs) = $neighbour->import_objects([{ object => "contact", bot_id =>
    $neighbour->agent, first_name => "Theirs" }]);
my $unharmed = state_of($there);

subtest "a dump that was cut or changed" => sub {
    my $starts = 0;
    my @lines = split /^/, $short;
    # each line with CRM_LONG; they are guarded by one checksum
    my $step = $ENV{CRM_LONG} ? 1 : 5;
    for my $n (0 .. $#lines) {
        my $line = $n + 1;
        my $middle = $starts + int(length($lines[$n]) / 2);
        my $cut = $n % 2 ? substr($short, 0, $starts)
            : substr($short, 0, $middle);
        refused($cut, qr/^crmapictl: stdin: line $line: /, "cut in line $line")
            if $n % (4 * $step) == 0 || $n > $#lines - 2;
        my $changed = $short;
        substr($changed, $middle, 1) ^= "\x01";
        refused($changed, qr/^crmapictl: stdin/, "changed in line $line")
            if $n % $step == 0 || $n > $#lines - 2;
        $starts += length $lines[$n];
    }
    refused("", qr/line 1: the dump ends here/, "nothing");
    refused("$short\n", qr/line @{[@lines + 1]}: something follows/, "more");
    refused($short . $short, qr/something follows/, "twice");
    refused("\0" x 100 . "\n", qr/line 1: this is not a dump/, "zeros");
    refused(substr($short, 0, -1), qr/the dump ends here/, "no last line feed");
    is(state_of($there), $unharmed, "nothing has changed");
};

# SHORT with CHANGE done to it, and a checksum that fits.
sub forged {
    my ($change) = @_;
    local $_ = $short =~ s/^\{"sha256".*\n\z//mr;
    my $was = $_;
    $change->();
    die "nothing was forged" if $_ eq $was;
    return signed($_);
}

# Add ROW to TABLE of $_, behind its rows.
sub add_row {
    my ($table, $row) = @_;
    s/^(\{"table":"$table",.*"rows":)(\d+)\}\n((?:[^{].*\n)*)/$1 . ($2 + 1)
        . "}\n$3$row\n"/me or die "there is no table $table";
}

subtest "a dump of the last version that was not released is taken" => sub {
    my $fresh = database();
    crmapictl_ok($fresh, { stdin => forged(sub {
        s/"format":2,"schema":\d+/"format":1,"schema":27/ }) }, "workspace",
        "restore");
    same_dump(dump_of($fresh, $small->id), $short, "all of it");
};

subtest "a dump that was forged, with a checksum that fits" => sub {
    my $id = $small->id;
    my @cases = (
        "another format" => sub { s/"format":2/"format":3/ },
            qr/line 1: the dump has format 3, and this crmapictl reads format 2/,
        "a version before the last that was not released" => sub {
            s/"format":2,"schema":\d+/"format":1,"schema":26/ },
            qr/line 1: the dump has format 1, and this crmapictl reads format 2/,
        "a later schema" => sub { s/"schema":\d+/"schema":999/ },
            qr/line 1: the dump has schema version 999/,
        "a schema before the first" => sub { s/"schema":\d+/"schema":0/ },
            qr/line 1: the dump has schema version 0,/,
        "a schema that is no number" => sub { s/"schema":(\d+)/"schema":"$1"/ },
            qr/line 1: the dump has schema version -1,/,
        "no id" => sub { s/"workspace":"[^"]*"/"workspace":"x"/ },
            qr/line 1: "workspace" must be a UUID/,
        "another kind" => sub { s/crmapi workspace/crmapi agent/ },
            qr/line 1: this is not a dump/,
        "a table that is none" => sub { s/"table":"admin"/"table":"x; DROP"/ },
            qr/the dump has the table "x; DROP" where this database has admin/,
        "a table of the server" => sub {
            s/"table":"admin"/"table":"pg_authid"/ }, qr/"pg_authid"/,
        "a table less" => sub { s/^\{"table":"admin".*\n//m },
            qr/where this database has admin/,
        "a column more" => sub { s/("table":"admin","columns":\["id",)/$1"x",/ },
            qr/admin of the dump has the column "x", which this database/,
        "a column that is null" => sub {
            s/("table":"admin","columns":\["id",)/$1null,/ },
            qr/admin of the dump has the column "null", which this database/,
        "columns that are no list" => sub {
            s/("table":"admin","columns":)\[.*?\]/$1"id"/ },
            qr/line \d+: "columns" must be a list/,
        "the workspace as a column" => sub {
            s/("table":"admin","columns":\["id",)/$1"workspace_id",/ },
            qr/the column "workspace_id"/,
        "a column less" => sub {
            s/("table":"admin","columns":\["id",) "email",/$1/ },
            qr/admin of this database has the column "email", which the dump/,
        "another order" => sub { s/\["id", "email",/["email", "id",/ },
            qr/columns of the table admin have another order/,
        "fewer rows" => sub { s/("table":"agent",.*"rows":)1/${1}0/ },
            qr/line \d+: the line of a dump is missing here/,
        "more rows" => sub { s/("table":"agent",.*"rows":)1/${1}2/ },
            qr/line \d+: (?:table agent|these are)/,
        "a number of rows that is none" => sub {
            s/("table":"agent",.*"rows":)1/${1}-5/ },
            qr/"rows" must be a number/,
        "two workspaces" => sub {
            s/("table":"workspace",.*"rows":)1\}\n(.*)\n/${1}2}\n$2\n$2\n/ },
            qr/line 2: a dump has one workspace/,
        "a value more in a row" => sub {
            add_row("admin", uuid() . "\ta\@x\t\\N\tnow\t$taken") },
            qr/line \d+: table admin: .*22P04/,
        "a value less" => sub { add_row("admin", uuid()) },
            qr/line \d+: table admin: .*22P04/,
        # PostgreSQL 18 takes no end of a COPY with a row before or behind it
        "the end of a COPY" => sub { add_row("admin", "\\.") },
            qr/line \d+: table admin: .*22P0[24]/,
        "the end of a COPY behind a row" => sub { add_row("admin",
            uuid() . "\ta\@x\t\\N\t2026-01-01 00:00:00+00\\.") },
            qr/rows of the table admin would not be those of the dump|: .*22P04/,
        "the end of a COPY before a row" => sub { add_row("pipeline_stage",
            "\\."); s/^(\{"table":"pipeline_stage".*\n)(.*\n)(.*\n)(.*\n)(.*\n)/$1$5$2$3$4/m }, qr/line \d+: (?:table pipeline_stage|these are not the 4)/,
        "a row of the neighbour's contact" => sub { add_row("activity", uuid()
            . "\t$theirs\t\\N\tnote\tT" . "\t\\N" x 4
            . "\t{}" . "\t2026-01-01" x 2) }, qr/table activity: .*foreign key/,
        "a value that would be written differently" => sub {
            add_row("admin", uc(uuid()) . "\ta\@x\t\\N\t2026-01-01 00:00:00+00")
            }, qr/rows of the table admin would not be those of the dump/,
        "rows in another order" => sub {
            s/^(\{"table":"pipeline_stage".*\n)(.*\n)(.*\n)/$1$3$2/m },
            qr/rows of the table pipeline_stage would not be/,
        "a plan that is none" => sub { s/\tpro\t/\tgold\t/ },
            qr/line 3: this database does not have the plan/,
        "a slug that is none" => sub { s/^(Small\t)[^\t]*/$1A_B/m },
            qr/line 3: a workspace cannot have this slug/,
        (map { my $slug = $_; ("a slug of " . length($slug) => sub {
            s/^(Small\t)[^\t]*/$1$slug/m },
            qr/line 3: a workspace cannot have this slug/) } "", "a" x 64),
        "a job with a number that leaves no others" => sub { add_row("job",
            "9223372036854775807\tx.y\t{}\tdone\t2026-01-01 00:00:00+00\t0\t"
            . "\\N\t2026-01-01 00:00:00+00\t2026-01-01 00:00:00+00") },
            qr/has a number above 2\^40/,
        (map { my $never = $_; ("a job that is due at $never" => sub {
            add_row("job", "9\tx.y\t{}\tready\t$never\t0\t\\N\t2026-01-01"
                . "\t\\N") }, qr/table job: .*23514/) } qw(infinity -infinity)),
        "an event with such a number" => sub {
            s/^(t\t\S*\t)0[0-9a-f-]{17}/${1}ffffffff-ffff-8fff/m },
            qr/has a number above 2\^40/);
    while (my ($name, $change, $why) = splice @cases, 0, 3) {
        my $dump = forged($change);
        refused($dump, $why, $name);
    }
    is(state_of($there), $unharmed, "nothing has changed");
    cmp_ok(sql($there, "SELECT coalesce(max(last_value), 0) FROM pg_sequences
        WHERE schemaname = 'crmapi'"), "<", 1e9, "nor have sequences");
    is(restored($there, $short)->{id}, $id, "the true one is restored");
    same_dump(dump_of($there, $id), $short, "as it was");
    refused(forged(sub { s/\Q$id\E/$taken/ }),
        qr/there is a workspace with the id \Q$taken\E already/,
        "one with the id of another workspace");
    crmapictl_ok($there, qw(workspace delete), $id, "--yes");
    is(state_of($there), $unharmed, "and nothing else was changed");
};

# Rows that PostgreSQL takes and no program writes. Their workspace sees nonsense; the
# processes, which serve others, go on.
subtest "a forged dump that is restored ends no process" => sub {
    my $w = workspace($httpd, twin => 0);
    my $deep = "[" x 40 . "]" x 40;
    my @events = (                  # body and fields
        ["contact.created", "\\N"], ["{,\"data\":", "\\N"], ["\\N", "\\N"],
        ["\\N", "[5]"], ["\\N", '{"id":{},"emails":5,"tags":[]}'],
        ["\\N", "{\"id\":$deep}"]);
    my @payloads = ("{}", map { qq({"contact_ids": $_}) } qw("x" {} [] [null] 5));

    $w->log_on;
    $w->webhook("http://127.0.0.1:9/", "contact.created");
    $w->import_objects([map { { object => "contact", bot_id => $w->agent,
        external_id => "x$_", custom_fields => { a => 1 },
        emails => ["x$_\@x.example"] } } 0 .. $#events]);
    my $template = $w->template([{ email_subject => "S", email_body => "B" }],
        pacing => { days_between_steps => 1 });
    $w->start($template, contact => { emails => ["x0\@x.example"] });
    ($short, my $was) = (dump_of($here, $w->id), $short);
    my $dump = forged(sub {
        my $n = 0;
        my $swap = sub { join "\t", @{$events[$n++]} };
        s/^(\S+\tcontact\.created\t[^\t]+\t)\\N\t[^\t]*/$1 . $swap->()/gme;
        s/\[(?=\{"email")/[5, {"email": null}, {}, /g;
        s/\{"(?:a": 1|days_between_steps": 1)\}/{"a": $deep}/g;
        my $id = 1 << 39;
        my $now = "2026-01-01 00:00:00+00";
        for my $payload (@payloads) {
            add_row("job", join "\t", $id++, "sequence.erase", $payload, "ready",
                $now, 0, "\\N", $now, "\\N");
        }
    });
    ($short, my $copy) = ($was, uuid());
    crmapictl_ok($here, { stdin => $dump }, qw(workspace restore --as), $copy);
    crmapictl_ok($here, qw(workspace release), $copy);

    $w->{id} = $copy;
    my $c = $w->client(key => $w->make_key);
    local $CrmTest::Contract::off = 1;
    is($c->get("/api/v1/events?page_size=100")->status, 200, "events");
    my @items = map { { external_id => "x$_", emails => ["y$_\@x.example"],
        custom_fields => { b => 2 } } } 0 .. 2;
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => \@items, on_match => { custom_fields => "merge" } });
    is($r->status, 200, "what matches its contacts is merged");
    is_deeply([map { $_->{emails}[0]{email} } @{$r->data->{updated}}],
        [map { "x$_\@x.example" } 0 .. 2], "with their addresses");
    my $worker = worker(database => $here, conf => { webhook_private => "on" });
    $worker->may_log(qr/CRM3141/);
    ok(wait_for(sub { !sql($here, "SELECT count(*) FROM crmapi.job WHERE kind =
        'sequence.erase' AND workspace_id = '$copy' AND state <> 'done'") }, 20),
        "its jobs end");
    ok(wait_for(sub { !sql($here, "SELECT count(*) FROM crmapi.job WHERE
        workspace_id = '$copy' AND attempts = 0") }, 20), "webhooks are tried");
    is(sql($here, "SELECT generation_error FROM crmapi.enrollment WHERE
        workspace_id = '$copy'"), "no_usable_channels", "its sequence cannot go on");
    $worker->stop;
};

subtest "a restore that is killed leaves nothing" => sub {
    pipe(my $read, my $write) or die;
    my $pid = fork // die;
    if (!$pid) {
        close $write;
        open(STDIN, "<&", $read);
        exec("$CrmTest::BUILD{DIR}/crmapictl", "--database",
            postgres()->conninfo($there), "workspace", "restore")
            or POSIX::_exit(127);
    }
    close $read;
    # all but the last line: it waits for that one, with all rows written
    syswrite($write, $short =~ s/^\{"sha256".*\n\z//mr);
    my $busy = sub { sql($there, "SELECT count(*) FROM pg_stat_activity WHERE
        datname = current_database() AND state = 'idle in transaction'
        AND query ~ 'event_(feed|home)'") };
    ok(wait_for(sub { $busy->() }, 20), "it is in its transaction")
        or diag(explain([sql($there, "SELECT state, query
            FROM pg_stat_activity WHERE datname = current_database()")]));
    kill "KILL", $pid;
    waitpid $pid, 0;
    close $write;
    ok(wait_for(sub { !sql($there, "SELECT count(*) FROM pg_stat_activity WHERE
        datname = current_database() AND state ~ 'transaction'") }, 20),
        "the server notices");
    is(state_of($there), $unharmed, "nothing is left");
};

done_testing;
