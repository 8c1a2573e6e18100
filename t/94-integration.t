# SPDX-License-Identifier: Apache-2.0
# 94-integration.t: docs/integration.md runs as it stands, and its program keeps a
# shop and a workspace alike while both change and it is killed
# plain build only
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Process qw(spawn end_process);
use IPC::Open2 qw(open2);
use JSON::PP ();
use Time::HiRes qw(sleep);

my $httpd = httpd(database => database(), unlimited => 1, intake => 1);
my ($program) = documented("integration.md", "python");
my @blocks = documented("integration.md", "sh");
my $json = JSON::PP->new->utf8->canonical;

# A workspace with a folder for the shop.
sub integrated {
    my $w = workspace($httpd, twin => 0);
    $w->log_on;
    $w->{folder} = $httpd->dir . "/" . $w->id;
    mkdir $w->{folder} or die "$w->{folder}: $!\n";
    write_file("$w->{folder}/mirror.py", $program);
    $w->{env} = { CRMAPI_URL => "http://127.0.0.1:" . $httpd->port,
        CRMAPI_KEY => $w->key, no_proxy => "*", CRMAPI_INTAKE => $w->ctl(
            "intake", "create", "--workspace", $w->id, "--name", "t") };
    return $w;
}

# A Python that runs SQL, a line of folder and statement each, and prints the rows or
# why there are none.
my $python = <<'END';
import json, sqlite3, sys
for line in sys.stdin:
    folder, sql = json.loads(line)
    try:
        db = sqlite3.connect(folder + '/shop.db', isolation_level=None, timeout=60)
        said = {'rows': db.execute(sql).fetchall()}
        db.close()
    except sqlite3.Error as error:
        said = {'error': str(error)}
    print(json.dumps(said), flush=True)
END
my $asker = open2(my $rows, my $statements, "python3", "-c", $python);

# The rows of SQL in the shop of W.
sub shop {
    my ($w, $sql) = @_;

    print $statements $json->encode([$w->{folder}, $sql]), "\n";
    my $said = $json->decode(scalar <$rows>);
    ok(!$said->{error}, "the shop: $sql") or diag($said->{error});
    return @{$said->{rows}};
}

subtest "the page runs when pasted" => sub {
    my $w = integrated();
    $w->client->post("/api/v1/contacts", { bot_id => $w->agent,
        first_name => "Grace" });
    write_file("$w->{folder}/page.sh", join "\necho\n", @blocks);
    my ($code, $out, $err) = run_program(chdir => $w->{folder}, seconds => 120,
        command => ["sh", "-eu", "page.sh"], env => $w->{env});
    is($code, 0, "to its end") or diag("$out$err");
    is($err, "", "without an error");
    like($out, qr/"external_id":"shop-4711"/, "the customer is a contact");
    like($out, qr/^King\|Call back\|2026-12-01T09:30:00\.000Z$/m,
        "what is changed there is in the shop");
    like($out, qr/^4711\|Where are my chairs\?$/m,
        "what the customer writes is in the shop");
    like($out, qr/"content":"They come on Monday\."/, "and is answered");
    is_deeply([map { $_->[0] } shop($w, "SELECT first_name FROM customer"
        . " WHERE id <> 4711")], ["Grace"], "and what was there before");
};

# Bring the shop of W up to date.
sub once {
    my ($w) = @_;
    my ($code, $out, $err) = run_program(chdir => $w->{folder}, seconds => 60,
        command => ["python3", "mirror.py", $w->{env}{CRMAPI_URL}, "shop.db",
            "once"], env => $w->{env});
    is($code, 0, "the program ends well") or diag("$out$err");
}

subtest "messages belong to whom their conversation belongs, and go with them" => sub {
    my $w = integrated();
    my $c = $w->client;
    once($w);
    my ($ada, $eve) = map { $w->contact(emails => ["$_\@x.example"])
        ->{id} } qw(ada eve);
    # who wrote in the last one has not said who they are
    for (["ada", $ada], ["eve", $eve], ["eve", undef], ["bob", undef]) {
        my $talk = $w->conversation("chat", email => "$_->[0]\@x.example",
            contact_id => $_->[1]);
        $w->import_objects([{ object => "message", role => "user",
            conversation_id => $talk, content => "I am $_->[0]" }]);
    }
    my $messages = sub { [map { [$_->[0], $_->[1]] }
        shop($w, "SELECT text, contact FROM message ORDER BY text, contact")] };
    once($w);
    is_deeply($messages->(), [["I am ada", $ada], ["I am bob", undef],
        ["I am eve", undef], ["I am eve", $eve]], "whoever writes");
    my $other = $w->contact->{id};
    status_is($c->post("/api/v1/contacts/$other/merge", { from => $ada }), 200,
        "one is merged into another");
    once($w);
    is_deeply($messages->()[0], ["I am ada", $other], "and so are messages");
    status_is($c->delete("/api/v1/contacts/$other"), 204, "which is deleted");
    status_is($c->post("/api/v1/contacts/$eve/erase", {}), 202,
        "and one erased");
    once($w);
    is_deeply($messages->(), [["I am ada", undef], ["I am bob", undef]],
        "nothing is left of who was erased");

    my $bob = $w->contact(emails => ["bob\@x.example"])->{id};
    status_is($c->post("/api/v1/contacts/$bob/erase", {}), 202,
        "a third one is erased while it is away");
    sql($w->{database}, "DELETE FROM crmapi.event WHERE workspace_id = '"
        . $w->id . "'");
    $w->ctl("workspace", "set", $w->id, "--events", "off");
    $w->log_on;
    once($w);
    is_deeply($messages->(), [["I am ada", undef]], "which it sees after 410");
};

# What both sides have: [kind and fields as JSON].
sub there {
    my ($w) = @_;
    my $c = $w->client;
    my $all = sub { my ($path) = @_;
        my (@rows, $page);
        for (my $cursor = "*"; $cursor;
                $cursor = $page->{pagination}{next_cursor}) {
            $page = $c->get("/api/v1/$path" . "page_size=100&cursor=$cursor")
                ->json;
            push @rows, @{$page->{data}};
        }
        return @rows };
    return [sort map { $json->encode($_) }
        (map { my $row = $_; ["customer", @$row{qw(id first_name last_name)},
            (map { $_->{email} } grep { $_->{is_primary} }
                @{$row->{emails}})[0]] } $all->("contacts?")),
        (map { ["deal", @$_{qw(id title pipeline_stage_id contact_id)}] }
            $all->("pipeline-cards?include_archived=true&")),
        map { ["task", @$_{qw(id title completed_at contact_id)}] }
            $all->("activities?activity_type=task&")];
}

sub in_shop {
    my ($w) = @_;
    return [sort map { $json->encode($_) }
        shop($w, "SELECT 'customer', crm, first_name, last_name, email"
            . " FROM customer"),
        shop($w, "SELECT 'deal', deal.crm, title, stage, customer.crm FROM deal"
            . " LEFT JOIN customer ON customer.id = customer"),
        shop($w, "SELECT 'task', task.crm, title, done, customer.crm FROM task"
            . " LEFT JOIN customer ON customer.id = customer")];
}

my ($n, $m) = (0, 0);
# Change something in the shop of W.
sub change_shop {
    my ($w) = @_;
    my $any = "(SELECT id FROM customer WHERE NOT gone ORDER BY random()"
        . " LIMIT 1)";
    $n++;
    my @ways = ("INSERT INTO customer (first_name, email) VALUES ('S$n',"
            . " 's$n\@shop.example')",
        "INSERT INTO deal (title, customer) VALUES ('D$n', $any)",
        "INSERT INTO task (title, customer) SELECT 'T$n', id FROM customer"
            . " WHERE id = $any",
        "UPDATE customer SET last_name = 'L$n', changed = 1 WHERE id = $any",
        "UPDATE deal SET title = 'D$n', changed = 1 WHERE id ="
            . " (SELECT id FROM deal ORDER BY random() LIMIT 1)",
        "UPDATE task SET done = '2026-01-02', changed = 1 WHERE id ="
            . " (SELECT id FROM task ORDER BY random() LIMIT 1)",
        "UPDATE deal SET gone = 1 WHERE id ="
            . " (SELECT id FROM deal ORDER BY random() LIMIT 1)");
    shop($w, $ways[$n % @ways]);
}

# Change something in the workspace W.
sub change_there {
    my ($w) = @_;
    my $c = $w->client;
    my @contacts = @{$c->get("/api/v1/contacts?page_size=100")->data};
    my @cards = @{$c->get("/api/v1/pipeline-cards?page_size=100")->data};
    my ($one, $two) = @contacts[int rand @contacts, int rand @contacts];
    my $card = $cards[int rand @cards];
    $m++;
    my @ways = (
        sub { $c->post("/api/v1/contacts", { bot_id => $w->agent,
            first_name => "W$m", emails => ["w$m\@crm.example"] }) },
        sub { $c->patch("/api/v1/contacts/$one->{id}", { last_name => "W$m" }) },
        sub { $c->post("/api/v1/activities", { activity_type => "task",
            contact_id => $one->{id}, title => "W$m" }) },
        sub { $c->patch("/api/v1/pipeline-cards/$card->{id}",
            { pipeline_stage_id => ($w->stages)[$m % 3] }) if $card },
        sub { $c->post("/api/v1/activities", { activity_type => "note",
            contact_id => $one->{id}, title => "no task" }) },
        map { my $way = $_; sub { $way->() if @contacts > 5 } }
            sub { $c->post("/api/v1/contacts/$one->{id}/merge",
                { from => $two->{id} }) if $one->{id} ne $two->{id} },
            sub { $c->delete("/api/v1/contacts/$one->{id}") },
            sub { $c->post("/api/v1/contacts/$one->{id}/erase", {}) });
    $ways[$m % @ways]->();
}

subtest "a shop and a workspace stay alike" => sub {
    my $w = integrated();
    local @ENV{keys %{$w->{env}}} = values %{$w->{env}};
    my $log = "$w->{folder}/log";
    my $start = sub { spawn(chdir => $w->{folder}, log => $log, command =>
        ["python3", "mirror.py", $w->{env}{CRMAPI_URL}, "shop.db"]) };
    my $c = $w->client;
    my $known = $w->contact(first_name => "Known", emails => ["one\@x.example",
        "two\@x.example"])->{id};
    my $pid = $start->();
    ok(wait_for(sub { -e "$w->{folder}/shop.db" && read_file($log, "") eq ""
        && @{[shop($w, "SELECT * FROM sqlite_master WHERE name = 'state'")]}
        && @{[shop($w, "SELECT * FROM state")]} }, 60), "it begins");
    shop($w, "UPDATE customer SET email = 'new\@x.example', changed = 1");
    for my $round (1 .. 20) {
        change_shop($w);
        change_there($w);
        next if $round % 5;
        sleep rand 2;               # anywhere
        end_process($pid, "KILL");
        $pid = $start->();
    }
    my $same;
    ok(wait_for(sub {
        my ($left) = shop($w, "SELECT (SELECT count(*) FROM outbox)"
            . " + (SELECT count(*) FROM customer WHERE changed OR gone)"
            . " + (SELECT count(*) FROM deal WHERE changed OR gone)"
            . " + (SELECT count(*) FROM task WHERE changed OR gone)");
        $same = $left->[0] == 0
            && $json->encode(there($w)) eq $json->encode(in_shop($w));
    }, 60), "both have the same rows") or diag(read_file($log));
    is_deeply(in_shop($w), there($w), "field by field") if !$same;
    cmp_ok(scalar @{there($w)}, ">", 6, "many");
    my $row = $c->get("/api/v1/contacts/$known");
    is_deeply([sort grep { /x\.example/ } map { $_->{email} }
        @{$row->data->{emails}}], ["new\@x.example", "two\@x.example"],
        "an address that the shop does not show stays") if $row->status == 200;
    my ($ids) = shop($w, "SELECT count(crm), count(DISTINCT crm) FROM deal");
    is($ids->[0], $ids->[1], "nothing was made twice");

    shop($w, "INSERT INTO customer (id, email) VALUES (900, 'no address'),"
        . " (901, 'nine\@x.example')");
    ok(wait_for(sub { read_file($log) =~ /"contacts\[0\]\.emails|"emails\[0\]"/ },
        60), "an error of a row is printed");
    # The line is printed before the other row is written.
    ok(wait_for(sub { @{[shop($w, "SELECT 1 FROM customer WHERE id = 901 AND crm"
        . " IS NOT NULL")]} }, 60), "others are not held up");
    shop($w, "UPDATE customer SET email = 'ok\@x.example', changed = 1"
        . " WHERE id = 900");
    ok(wait_for(sub { @{[shop($w, "SELECT 1 FROM customer WHERE id = 900 AND"
        . " crm IS NOT NULL")]} }, 60), "and mended in a later round");

    # 410: it was away for longer than events are kept
    end_process($pid, "KILL");
    sql($w->{database}, "DELETE FROM crmapi.event WHERE workspace_id = '"
        . $w->id . "'");
    $w->ctl("workspace", "set", $w->id, "--events", "off");
    my ($gone) = @{$c->get("/api/v1/contacts?page_size=1")->data};
    $c->delete("/api/v1/contacts/$gone->{id}");
    $w->log_on;
    my ($code, $out, $err) = run_program(chdir => $w->{folder}, seconds => 60,
        command => ["python3", "mirror.py", $w->{env}{CRMAPI_URL}, "shop.db",
            "once"], env => $w->{env});
    is($code, 0, "after 410 it compares everything") or diag("$out$err");
    is_deeply(in_shop($w), there($w), "and both are alike again");
};

$httpd->stop;
done_testing;
