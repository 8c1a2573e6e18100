#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 02-harness.t: the test library notices failures
# plain build only
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Log;
use CrmTest::OpenAPI;
use CrmTest::Summary;
use File::Temp qw(tempdir);
use JSON::PP ();
use TAP::Parser;

my $json = JSON::PP->new->allow_nonref;

# --- the OpenAPI checker -----------------------------------------------------
my $document = $json->decode(<<'END');
{"openapi": "3.1.0", "servers": [{"url": "/api/v1"}],
 "paths": {
  "/things/{id}": {"get": {"parameters": [
      {"name": "id", "in": "path", "required": true},
      {"$ref": "#/components/parameters/deep"}],
    "responses": {
      "200": {"headers": {"X-Left": {"required": true,
                 "schema": {"type": "integer", "minimum": 0}}},
        "content": {"application/json": {"schema": {"type": "object",
          "required": ["data"], "additionalProperties": false,
          "properties": {"data": {"$ref": "#/components/schemas/Thing"}}}}}},
      "204": {"description": "nothing"}}}},
  "/things": {"post": {"requestBody": {"content": {"application/json": {
      "schema": {"type": "object", "additionalProperties": false,
        "properties": {"code": {"type": "string", "pattern": "^[a-z]+$"},
          "n": {"type": "integer"}, "x": {"type": "boolean"}}}}}},
    "responses": {"201": {}, "422": {}}}},
  "/things/special": {"get": {"responses": {"204": {}}}}},
 "components": {
  "parameters": {"deep": {"name": "deep", "in": "query"}},
  "schemas": {"Thing": {"type": "object", "required": ["id", "name"],
    "properties": {
      "id": {"type": "string", "format": "uuid"},
      "name": {"type": ["string", "null"], "maxLength": 3},
      "kind": {"enum": ["a", "b", null]},
      "at": {"type": "string", "format": "date-time"},
      "n": {"type": "integer", "minimum": 1, "maximum": 5},
      "x": {"type": "number"},
      "list": {"type": "array", "minItems": 1, "items": {"type": "boolean"}},
      "code": {"type": "string", "pattern": "^[a-z]+$"},
      "one": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
      "any": {"anyOf": [{"const": 1}, {"const": "x"}]}},
    "additionalProperties": false}}}}
END
my $checker = CrmTest::OpenAPI->new($document);

sub answer {
    my ($status, $body, %headers) = @_;
    utf8::encode($body);
    return bless { status => $status, body => $body, headers => [
        map { [$_, $headers{$_}] } sort keys %headers] }, "CrmTest::Response";
}
my %headers = ("Content-Type" => "application/json", "X-Left" => "7");
my $id = "01890a5d-ac96-774b-bcce-b302099a8057";
my $asked = { method => "GET", path => "/api/v1/things/$id", headers => {} };

sub problems_with {
    my ($data, %other) = @_;
    return join "; ", $checker->check($asked, answer(200, "{\"data\":$data}",
        %headers, %other));
}
is(problems_with(qq({"id":"$id","name":null})), "", "a valid answer");
is(problems_with(qq({"id":"$id","name":"äöü","kind":null,"n":5,"x":1.5,)
    . qq("at":"2026-11-21T01:59:27.552Z","list":[true],"code":"a",)
    . qq("one":1,"any":"x"})), "", "a valid answer with every field");
for my $case (
    ['{"name":null}', qr/body\.data\.id: is missing/],
    [qq({"id":"$id","name":7}), qr/name: is integer, not string or null/],
    [qq({"id":"$id","name":"abcd"}), qr/longer than 3/],
    [qq({"id":"x","name":"a"}), qr/id: is no uuid/],
    [qq({"id":"$id","name":"a","kind":"c"}), qr/kind: is none/],
    [qq({"id":"$id","name":"a","n":0}), qr/n: is below 1/],
    [qq({"id":"$id","name":"a","n":6}), qr/n: is above 5/],
    [qq({"id":"$id","name":"a","n":1.5}), qr/n: is number, not integer/],
    [qq({"id":"$id","name":"a","n":"1"}), qr/n: is string, not integer/],
    [qq({"id":"$id","name":"a","x":true}), qr/x: is boolean, not number/],
    [qq({"id":"$id","name":"a","list":[]}), qr/fewer than 1/],
    [qq({"id":"$id","name":"a","list":[1]}), qr/list\[0\]: is integer/],
    [qq({"id":"$id","name":"a","code":"A"}), qr/code: does not match/],
    [qq({"id":"$id","name":"a","at":"2026-11-21"}), qr/at: is no date-time/],
    [qq({"id":"$id","name":"a","one":true}), qr/one: matches 0 of oneOf/],
    [qq({"id":"$id","name":"a","any":2}), qr/any: matches none/],
    [qq({"id":"$id","name":"a","extra":1}), qr/extra: is not allowed/],
) {
    like(problems_with($case->[0]), $case->[1], "noticed: $case->[0]");
}
like(problems_with(qq({"id":"$id","name":"a"}), "X-Left" => -1),
    qr/X-Left: is below 0/, "noticed: a header's wrong value");
like(join(";", $checker->check($asked, answer(200,
    qq({"data":{"id":"$id","name":"a"}}),
    "Content-Type" => "application/json"))),
    qr/header X-Left is missing/, "noticed: a missing header");
like(problems_with(qq({"id":"$id","name":"a"}), "Content-Type" =>
    "text/html"), qr{has the type "text/html"}, "noticed: another type");
like(join(";", $checker->check($asked, answer(404, "{}", %headers))),
    qr/status 404 is not declared/, "noticed: an undeclared status");
like(join(";", $checker->check($asked, answer(204, "x"))),
    qr/has a body, and none is declared/, "noticed: a body with a 204");
is(join(";", $checker->check({ %$asked, path => "/api/v1/things/special" },
    answer(204, ""))), "", "a fixed path goes before a parameter");
for my $case (
    [201, '{"code":"a","n":10000000000000000000000}', {}, ""],
    [201, '{"code":"A"}', {}, qr/request\.code: does not match/],
    [201, '{"other":1}', {}, qr/request\.other: is not allowed/],
    [201, '{"other":1}', { Prefer => "handling=lenient" }, ""],
    [201, '{"n":1.5}', {}, qr/request\.n: is number, not integer/],
    [201, '{"x":null}', {}, ""],
    [422, '{"code":"A"}', {}, ""],
) {
    my ($status, $body, $sent, $problem) = @$case;
    my $text = join ";", $checker->check({ method => "POST", headers => $sent,
        path => "/api/v1/things", body => $body }, answer($status, ""));
    ref $problem ? like($text, $problem, "noticed: $body was taken")
        : is($text, "", "$body with $status");
}
{
    local $ENV{CRM_TEST_RECORDS} = tempdir(CLEANUP => 1);
    my $fresh = CrmTest::OpenAPI->new($document);
    $fresh->check({ %$asked, query => "deep=1" }, answer(204, ""));
    is_deeply($fresh->untouched, ["operation POST /things",
        "status POST /things 201", "status POST /things 422",
        "operation GET /things/special", "status GET /things/special 204", "status GET /things/{id} 200"], "untouched parts are known");
}

# --- what servers log --------------------------------------------------------
my $scratch = tempdir("crm-harness-XXXXXX", TMPDIR => 1, CLEANUP => 1);

# What CrmTest::Log says of a log of LINES, of which ANNOUNCE->(log) is called
# after the first: [lines not announced], [announced lines that lack].
sub judged {
    my ($announce, @lines) = @_;
    my $log = CrmTest::Log->new(files => sub { "$scratch/log" },
        quiet => qr/^\[info\]/);
    write_file("$scratch/log", "$lines[0]\n");
    $announce->($log);
    write_file("$scratch/log", join "", map { "$_\n" } @lines);
    return $log->judge;
}

subtest "a line has to be announced, and what is announced has to come" => sub {
    my $first = "[info] started";
    for my $case (
        ["nothing", sub { }, [], [], []],
        ["a warning", sub { }, ["[warn] A1"], ["[warn] A1"], []],
        ["no form at all", sub { }, ["what?"], ["what?"], []],
        ["an announced one", sub { $_[0]->expect(qr/A1/) }, ["[warn] A1"], [],
            []],
        ["two such", sub { $_[0]->expect(qr/A1/) }, [("[warn] A1") x 2], [],
            []],
        ["one that does not come", sub { $_[0]->expect(qr/A1/, qr/A2/) },
            ["[warn] A1"], [], [qr/A2.*: 0 lines, not one or more/]],
        ["a count", sub { $_[0]->expect(qr/A1/ => 2, qr/A2/) },
            ["[warn] A1", "[warn] A2", "[warn] A1"], [], []],
        ["too few", sub { $_[0]->expect(qr/A1/ => 2) }, ["[warn] A1"], [],
            [qr/A1.*: 1 lines, not 2/]],
        ["too many", sub { $_[0]->expect(qr/A1/ => 1) }, [("[warn] A1") x 2],
            ["[warn] A1"], []],
        ["none at all", sub { $_[0]->expect(qr/A1/ => 0) }, ["[warn] A1"],
            ["[warn] A1"], []],
        ["one for each announcement", sub { $_[0]->expect(qr/A/);
            $_[0]->expect(qr/A1/) }, ["[warn] A1"], [],
            [qr/A1.*: 0 lines, not one or more/]],
        ["maybe, and it does not", sub { $_[0]->may(qr/A1/) }, [], [], []],
        ["maybe, and it does", sub { $_[0]->may(qr/A1/) }, ["[warn] A1"], [],
            []],
        ["a harmless one", sub { $_[0]->expect(qr/A1/) }, ["[info] A1"], [],
            []],
    ) {
        my ($name, $announce, $lines, $bad, $missing) = @$case;
        my @got = judged($announce, $first, @$lines);
        is_deeply($got[0], $bad, "$name: not announced");
        is(scalar @{$got[1]}, scalar @$missing, "$name: what lacks");
        like($got[1][$_], $missing->[$_], "$name: is named") for 0 .. $#$missing;
    }
    my @got = judged(sub { $_[0]->may(qr/./) }, "[warn] A1", "[warn] A2");
    is_deeply($got[0], ["[warn] A1"], "what came before was not announced");
};

subtest "nobody can announce a crash" => sub {
    for my $line (
        "[d] [core:notice] [pid 1] AH00051: child pid 7 exit signal Aborted"
            . " (6), possible coredump in /tmp",
        "[d] [core:notice] [pid 1] AH00052: child pid 7 exit signal"
            . " Segmentation fault (11)",
        "[d] [core:notice] [pid 1] AH00060: seg fault or similar nasty error"
            . " detected in the parent process",
        "[d] [core:crit] [pid 1] AH00102: [d] file x.c, line 7, assertion"
            . " \"a\" failed",
        "crmapid: crm_x.c:7: crm_x: Assertion `a' failed.",
        "crm_x.c:7:5: runtime error: signed integer overflow",
        "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x7",
        "SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior crm_x.c:7",
        "WARNING: ThreadSanitizer: data race (pid=7)",
        "==7== Invalid read of size 4",
        "*** stack smashing detected ***: terminated",
        "free(): double free detected in tcache 2",
        "malloc(): corrupted top size",
    ) {
        my ($bad) = judged(sub { $_[0]->expect(qr/./); $_[0]->may(qr/./) },
            "[info] started", "[warn] another", $line);
        is_deeply($bad, [$line], $line);
    }
};

subtest "a warning about the host's packages is a note" => sub {
    my $records = tempdir(CLEANUP => 1);
    local $ENV{CRM_TEST_RECORDS} = $records;
    my $line = "AH01882: Init: this version of mod_ssl was compiled against a"
        . " newer library (OpenSSL 3.0.22, version currently loaded is 0x3) $$";
    for (1, 2) {
        my ($bad) = judged(sub { }, "[d] [ssl:warn] [pid 1] $line");
        is_deeply($bad, [], "no failure");
    }
    my @notes = CrmTest::Summary->new($records)->notes;
    is(scalar @notes, 1, "but noted, once");
    like($notes[0], qr/older OpenSSL than mod_ssl.*\Q$line\E$/,
        "with its reason");
};

subtest "httpd starts, restarts and stops" => sub {
    my $httpd = httpd(crmapi => 0, modules => ["alias", "cgi"],
        conf => "ErrorDocument 404 /none\n");
    my $r = $httpd->client->get("/nothing");
    status_is($r, 404, "a plain httpd answers");
    my $pid = $httpd->pid;
    my $before = $httpd->generation;
    $httpd->restart;
    is($httpd->generation, $before + 1, "restarted gracefully");
    is($httpd->pid, $pid, "by the same parent");
    $httpd->stop;
    ok(!kill(0, $pid), "stopped by its process id");
};

subtest "keep-alive, HEAD, raw bytes" => sub {
    my $httpd = httpd(crmapi => 0);
    write_file($httpd->dir . "/htdocs/a.txt", "hello");
    my $client = $httpd->client;
    is($client->get("/a.txt")->body, "hello", "GET");
    my $socket = $client->{socket};
    my $head = $client->head("/a.txt");
    is($head->body, "", "HEAD has no body");
    is($head->header("content-length"), 5, "but its length");
    is($client->{socket}, $socket, "on the same connection");
    is($client->raw("GET /a.txt HTTP/1.0\r\n\r\n")->status, 200, "raw bytes");
    is($client->raw("garbage\r\n\r\n")->status, 400, "hostile bytes");
};

subtest "databases" => sub {
    my $one = database(template => undef);
    my $two = database(template => undef);
    isnt($one, $two, "every database is another");
    sql($one, "CREATE TABLE t (a text); INSERT INTO t VALUES (NULL),"
        . " ('ä\n|\x01N\x1e\x1f')");
    is_deeply([sql($one, "SELECT a, 1 FROM t")],
        [[undef, 1], ["ä\n|\x01N\x1e\x1f", 1]],
        "rows come back as they are");
    ok(!defined eval { sql($two, "SELECT a FROM t"); 1 },
        "and nothing of one is in the other");
};

subtest "PostgreSQL's counts have what this test did just before" => sub {
    my $db = database(template => undef);
    sql($db, "CREATE TABLE t AS SELECT generate_series(1, 7)");
    my $read = sub { sql($db, "SELECT seq_tup_read FROM pg_stat_user_tables"
        . " WHERE relname = 't'") };
    is($read->(), 0, "nothing was read");
    for my $times (1 .. 3) {
        sql($db, "SELECT count(*) FROM t");
        is($read->(), 7 * $times, "read $times times");
    }
};

subtest "a session ends while a child of the test runs" => sub {
    my $db = database();
    sql($db, "SELECT 1");
    my $child = CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my $until = time + 30;
        select undef, undef, undef, 0.05 while $go_on->() && time < $until;
        return time < $until;
    });
    sql($db, "BEGIN; ROLLBACK");        # no session is kept beside this
    $child->stop;
    is(($child->result)[0], 1, "it did not wait for the child");
};

subtest "read_file wants a file" => sub {
    ok(!eval { read_file("$scratch/none"); 1 }, "it dies without one");
    like($@, qr{/none: No such file}, "and says which");
    is(read_file("$scratch/none", ""), "", "unless told what to return");
    ok(!eval { read_file($scratch); 1 }, "a folder is none");
};

# A folder of sources with tests of its own, for t/run.
mkdir "$scratch/t";
symlink "$CrmTest::TOP/t/lib", "$scratch/t/lib";

# --- does a test program fail when it should? --------------------------------
# Run the test PROGRAM. Returns (its tests as [name => "passes" or "fails"],
# what it printed, exit code).
sub trial {
    my ($program) = @_;
    my ($code, $out, $err) = run_program(command => [$^X,
        "-I$CrmTest::TOP/t/lib", "-"], stdin => <<"END" . $program,
use strict;
use warnings;
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
END
        env => { CRM_TEST_PG => postgres()->host, CRM_TEST_RECORDS => undef });
    my $parser = TAP::Parser->new({ tap => $out });
    my @tests;
    while (my $result = $parser->next) {
        push @tests, [$result->description =~ s/^- //r
            => $result->is_ok ? "passes" : "fails"] if $result->is_test;
    }
    return (\@tests, "$out$err", $code);
}

# Ways to run code, as Perl that calls good() or fault(), which make requests.
my $ways = <<'END';
sub forked {
    my ($code) = @_;
    my $pid = fork // die;
    if (!$pid) {
        $code->();
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
}
my %way = (
    "1 outside" => sub { $_[0]->() },
    "2 in_processes" => sub { in_processes(3, $_[0]) },
    "3 a child" => sub { CrmTest::Child->start($_[0])->result },
    "4 a child nobody asks" => sub { CrmTest::Child->start($_[0]) },
    "5 any fork" => \&forked,
    "6 in a subtest" => sub { my ($code) = @_;
        subtest "one" => sub { pass("alive"); in_processes(2, $code) } },
);
for my $way (sort keys %way) {
    subtest "$way, good" => sub { pass("alive"); $way{$way}->(\&good) };
    subtest "$way, fault" => sub { pass("alive"); $way{$way}->(\&fault) };
}
in_processes(1, \&fault);
done_testing;
END

# Every way of PROGRAM finds the fault, by a check of NAME.
sub finds {
    my ($name, $program) = @_;
    my ($tests, $said, $code) = trial($program . $ways);
    my ($last, @got) = (pop @$tests, @$tests);
    is(scalar @got, 12, "all ways were tried");
    for my $test (@got) {
        is($test->[1], $test->[0] =~ /fault/ ? "fails" : "passes", $test->[0]);
    }
    is_deeply($last, [$name => "fails"], "and beyond all subtests");
    isnt($code, 0, "so the test fails") or return 0;
    return 1;
}

subtest "an id of another workspace is found, in a fork and outside" => sub {
    finds("no id of another workspace in an answer", <<'END');
my $httpd = httpd(database => database());
my $w = workspace($httpd);
my $key = $w->twin->make_key;
sub good { $w->client->get("/api/v1/agents"); 0 }
sub fault { $httpd->client(key => $key)->get("/api/v1/agents"); 0 }
END
};

subtest "a field of no document is found, in a fork and outside" => sub {
    my $text = $json->encode($document);
    finds("the answer is as the OpenAPI document says", <<"END");
my \$httpd = httpd(crmapi => 0, modules => ["headers"], conf => <<'CONF');
<Directory \@DIR\@/htdocs>
    ForceType application/json
    Header set X-Left 1
</Directory>
CONF
my \$root = \$httpd->dir . "/htdocs/api";
mkdir \$_ or die for \$root, "\$root/v1", "\$root/v1/things";
write_file("\$root/v1/openapi.json", <<'JSON');
$text
JSON
write_file("\$root/v1/things/good", '{"data":{"id":"$id","name":"a"}}');
write_file("\$root/v1/things/bad", '{"data":{"id":"$id","name":"a","x2":1}}');
sub good { \$httpd->client->get("/api/v1/things/good"); 0 }
sub fault { \$httpd->client->get("/api/v1/things/bad"); 0 }
END
};

subtest "a process that does not end well fails the test" => sub {
    my ($tests, $said, $code) = trial(<<'END');
my %end = ("dies" => sub { die "for a reason\n" },
    "is killed" => sub { kill KILL => $$ },
    "exits" => sub { POSIX::_exit(3) },
    "returns" => sub { (1, [$_[0]]) });
for my $end (sort keys %end) {
    subtest $end => sub { pass("alive"); in_processes(2, $end{$end}) };
    subtest "$end, nobody asks" => sub { pass("alive");
        CrmTest::Child->start(sub { $end{$end}->(1) }) };
}
subtest "values" => sub {
    is_deeply([in_processes(2, $end{returns})], [1, [1], 1, [2]], "in order");
    my $child = CrmTest::Child->start(sub { my ($go_on) = @_; my $n = 0;
        $n++ while $go_on->(); return $n });
    $child->stop;
    like($child->result, qr/^\d+$/, "after it was told to stop");
};
done_testing;
END
    is_deeply($tests, [map({ [$_ => "fails"], ["$_, nobody asks" => "fails"] }
        "dies", "exits", "is killed"), ["returns" => "passes"],
        ["returns, nobody asks" => "passes"], ["values" => "passes"]],
        "each way to end") or diag($said);
    like($said, qr/#\s+for a reason/, "an exception is shown");
    like($said, qr/ended by signal 9/, "so is a signal");
};

subtest "servers' logs fail the test" => sub {
    my ($tests, $said) = trial(<<'END');
sub plain { return httpd(crmapi => 0, @_) }
sub crashed {
    my ($httpd) = @_;
    kill SEGV => ($httpd->children)[0];
    $httpd->wait_log(qr/AH0005[12]/) or die "no crash";
}
my $database = database();
sub idle { return worker(database => $database, no_start => 1, @_) }
my %log = (
    "1 httpd: as announced" => sub { my $httpd = plain(
        expect_log => [qr/resuming normal operations/]); $httpd->stop },
    "2 httpd: not announced" => sub { my $httpd = plain();
        open(my $log, ">>", $httpd->dir . "/error_log") or die;
        print $log "[date] [core:warn] [pid 1] made up for the test\n" },
    "3 httpd: does not come" => sub { my $httpd = plain();
        $httpd->expect_log(qr/AH7/); $httpd->stop },
    "4 httpd: does not come, nobody stops it" => sub { my $httpd = plain();
        $httpd->expect_log(qr/AH7/) },
    "5 httpd: a crash" => sub { my $httpd = plain();
        $httpd->expect_log(qr/./); crashed($httpd); $httpd->stop },
    "6 crmapid: nothing" => sub { idle()->once },
    "7 crmapid: does not come" => sub { my $worker = idle();
        $worker->expect_log(qr/CRM3999/); $worker->once; $worker->stop },
    "8 crmapid: does not come, nobody stops it" => sub {
        idle(expect_log => [qr/CRM3999/])->once },
    "9 crmapid: not announced" => sub { my $worker = idle(no_wait => 1,
        conninfo => "host=/nowhere dbname=x"); $worker->start;
        $worker->wait_log(qr/CRM3007/) },
);
for my $name (sort keys %log) {
    subtest $name => sub { pass("alive"); $log{$name}->() };
}
my $last = plain(expect_log => [qr/AH7/]);
done_testing;
END
    my $name = "error_log lacks lines that were announced";
    is_deeply([map { [$_->[0] =~ s/:.*//r, $_->[1]] } @$tests],
        [["1 httpd", "passes"], map({ ["$_ httpd", "fails"] } 2 .. 5),
        ["6 crmapid", "passes"], map({ ["$_ crmapid", "fails"] } 7 .. 9),
        [$name, "fails"]], "each") or diag($said);
    like($said, qr/AH0005[12]: child pid \d+ exit signal/,
        "the crash is shown");
};

subtest "PostgreSQL replaced under the tests ends the run in one line" => sub {
    my $other = "$scratch/other";
    mkdir $other;
    symlink postgres()->host . "/.s.PGSQL.5432", "$other/.s.PGSQL.5432";
    write_file("$scratch/postgres", "the old one");
    my @was = (stat "$scratch/postgres")[0, 1, 7, 9];
    write_file("$other/programs", join(":", @was) . " $scratch/postgres\n");
    write_file("$scratch/t/10-upgrade.t", <<"END");
use CrmTest;
is(sql("postgres", "SELECT 1"), 1, "before");
rename "$scratch/new", "$scratch/postgres" or die;
subtest "in here" => sub { sql("postgres", "SELECT 1"); fail("goes on") };
fail("goes on");
END
    write_file("$scratch/t/11-more.t", "use CrmTest; fail('goes on');");
    write_file("$scratch/new", "the new one");
    my ($code, $out, $err) = run_program(command => [$^X,
        "$CrmTest::TOP/t/run", "t/10-upgrade.t", "t/11-more.t"],
        env => { CRM_TEST_PG => $other, CRM_SRCDIR => $scratch });
    isnt($code, 0, "it fails");
    like($out, qr{^FAILED--.*: \Q$scratch\E/postgres was replaced.*again$}m,
        "it says why");
    unlike("$out$err", qr/goes on/, "and stops") or diag($out, $err);
};

subtest "long tests begin first" => sub {
    write_file("$scratch/t/10-short.t", "use CrmTest; pass(); done_testing;\n");
    write_file("$scratch/t/11-long.t",
        "# long\nuse CrmTest; pass(); done_testing;\n");
    my (undef, $out) = run_program(command => [$^X, "$CrmTest::TOP/t/run",
        "t/10-short.t", "plain:t/11-long.t"], env => {
        CRM_TEST_PG => postgres()->host, CRM_SRCDIR => $scratch,
        CRM_BUILD_plain => $CrmTest::BUILD{DIR} });
    is_deeply([$out =~ m{t/(\S+)\.t \.+ ok}g], [qw(11-long 10-short)], "they do")
        or diag($out);
};

subtest "what fails beside others runs once more, alone" => sub {
    my %file = (12 => "pass()", 13 => "ok(-e '$scratch/ran'); write_file("
        . "'$scratch/ran', '')", 14 => "fail()");
    write_file("$scratch/t/$_-again.t",
        "use CrmTest; $file{$_}; done_testing;\n") for keys %file;
    my $run = sub {
        my (@arguments) = @_;
        unlink "$scratch/ran";
        my ($code, $out) = run_program(command => [$^X,
            "$CrmTest::TOP/t/run", @arguments], env => {
            CRM_TEST_PG => postgres()->host, CRM_SRCDIR => $scratch });
        return ($code, $out =~ /^Result: (\w+)/mg,
            $out =~ /^To be mended: (\S+)/mg);
    };
    my @tests = map { "t/$_-again.t" } 12 .. 14;
    is_deeply([$run->("--retry", @tests[0, 1])], [0, "FAIL", "PASS",
        $tests[1]], "if it passes then, the run does, and says so");
    is_deeply([$run->("--retry", @tests)], [1, "FAIL", "FAIL", $tests[1]],
        "if it fails again, the run fails");
    is_deeply([$run->(@tests[0, 1])], [1, "FAIL"], "only with --retry");
};

subtest "what is left out is said at the end" => sub {
    my %file = ("20-all" => "plan(skip_all => 'no chromium: build/setup');",
        "21-some" => "subtest a => sub { pass('b'); subtest c => sub {"
            . " plan(skip_all => 'plain builds only: speed') } };"
            . " SKIP: { skip('no node', 2) } pass('d'); done_testing;",
        "22-none" => "pass('e # not skipped'); done_testing;");
    write_file("$scratch/t/$_.t", "use CrmTest; $file{$_}\n") for keys %file;
    my $run = sub {
        my ($ci, @tests) = @_;
        my ($code, $out, $err) = run_program(command => [$^X,
            "$CrmTest::TOP/t/run", map { "t/$_.t" } @tests], env => {
            CRM_TEST_PG => postgres()->host, CRM_SRCDIR => $scratch,
            CI => $ci });
        return ($code, ($out =~ /^((?:Left out|Nothing was).*)/ms)[0] // $out);
    };
    my $all = <<'END';
Left out:
    no chromium: build/setup
        t/20-all.t
    no node
        t/21-some.t (2 times)
    plain builds only: speed
        t/21-some.t
END
    my ($code, $said) = $run->(undef, sort keys %file);
    is($said, $all, "test files and reasons");
    is($code, 0, "which is no failure");
    ($code, $said) = $run->("true", sort keys %file);
    my $why = " (FAILED: in CI nothing may be missing)";
    is($said, $all =~ s/(no chromium.*|no node)/$1$why/gr, "in CI it is told");
    is($code, 1, "in CI it is one");
    ($code, $said) = $run->("true", "22-none");
    is("$code $said", "0 Nothing was left out.\n", "nothing");
    write_file("$scratch/t/23-plain.t", "# plain build only\n");
    write_file("$scratch/t/24-second.t", "# second gear\n");
    my $summary = CrmTest::Summary->new($scratch);
    $summary->leave_out($scratch, qw(plain:t/22-none.t asan:t/22-none.t
        plain:t/23-plain.t));
    is_deeply([map { $_->[0] . " " . $_->[1] =~ s/:.*//r }
        @{$summary->{left_out}}], ["asan:t/23-plain.t plain builds only",
        "asan:t/24-second.t second gear", "plain:t/24-second.t second gear"],
        "what a whole run does not have by its mark");
};

subtest "build/setup upgrades an OpenSSL that httpd is too new for" => sub {
    plan(skip_all => "no apt here: build/setup upgrades nothing")
        unless -x "/usr/bin/dpkg-query" && -x "/usr/bin/apt-get";
    my $dir = "$scratch/setup";
    mkdir $_ or die for $dir, "$dir/bin", "$dir/build";
    write_file("$dir/build/setup", read_file("$CrmTest::TOP/build/setup"));
    # a system of which apt upgrades to what is in the file "archive"
    my %fake = (
        "dpkg-query" => qq([ "\$1" = -L ] && exec echo "$dir/mod_ssl.so"\n)
            . qq(exec /usr/bin/dpkg-query "\$@"),
        "ldd" => qq(echo "	libcrypto.so.3 => $dir/libcrypto (0x7)"),
        "apt-get" => qq(echo "\$*" >>$dir/asked\n)
            . qq{case \$* in *--only-upgrade*) cp $dir/archive $dir/libcrypto\n}
            . "esac",
        # nothing of the real system is touched
        "install" => "exit 0", "sudo" => 'exec "$@"',
        "rm" => 'case $* in *policy-rc.d*) ;; *) exec /bin/rm "$@";; esac');
    for my $name (keys %fake) {
        write_file("$dir/bin/$name", "#!/bin/sh\n$fake{$name}\n");
        chmod 0755, "$dir/bin/$name";
    }
    my $text = sub { "\0OpenSSL $_[0] 1 Jan 2026\0" };
    my $setup = sub {
        write_file("$dir/asked", "");
        my ($code, $out, $err) = run_program(command => ["bash",
            "$dir/build/setup", @_], env => { PATH => "$dir/bin:$ENV{PATH}" });
        return ($code, "$out$err", read_file("$dir/asked"));
    };
    write_file("$dir/mod_ssl.so", $text->("3.0.22"));
    for my $runs ("3.0.22", "3.0.100", "3.1.0") {
        write_file("$dir/libcrypto", $text->($runs));
        is_deeply([$setup->()], [0, "", ""], "OpenSSL $runs: nothing to do");
    }
    write_file("$dir/$_", $text->("3.0.9")) for qw(libcrypto archive);
    my ($code, $said, $asked) = $setup->("--dry-run");
    is("$code $asked", "1 ", "an older one: --dry-run does nothing");
    like($said, qr/OpenSSL 3\.0\.9 for an httpd .* built with 3\.0\.22/,
        "but says it");
    ($code, $said, $asked) = $setup->();
    is($code, 0, "an archive that has no newer one is no failure");
    like($asked, qr/^.* update\n.* install .*--only-upgrade .*\blibssl3(?:t64)?\b/,
        "apt was asked for it");
    like($said, qr/still OpenSSL 3\.0\.9/, "it is said");
    is_deeply([$setup->()], [0, "", ""], "once");
    write_file("$dir/mod_ssl.so", $text->("3.0.23"));
    write_file("$dir/archive", $text->("3.0.24"));
    ($code, $said, $asked) = $setup->();
    unlike($said, qr/still/, "a newer one is installed");
    is_deeply([$setup->()], [0, "", ""], "and then nothing is to do");
};

# t/README, The second gear: which tests of the first keep the same promise. Nobody
# would see that one cannot be compiled.
subtest "each test of the second gear has a short form in the first" => sub {
    my ($table) = read_file("$CrmTest::TOP/t/README")
        =~ /^    second gear +short form in the first gear\n(.*?)^    full size/ms;
    my %short;
    my $name;
    for (split /\n/, $table // "") {
        ($name) = /^    (\S+\.t) / ? $1 : $name;
        push @{$short{$name}}, (s/^    \S+ //r =~ /([\w\/-]+\.[tc])\b/g);
    }
    my %second;
    for my $file (glob "$CrmTest::TOP/t/[0-9]*.t") {
        my ($base) = $file =~ m{([^/]+)$};
        $second{$base} = 1 if read_file($file) =~ /^# second gear$/m;
    }
    is_deeply([sort keys %short], [sort keys %second], "the table has them");
    for my $base (sort keys %short) {
        for my $other (@{$short{$base}}) {
            ok(-e "$CrmTest::TOP/t/$other" && !$second{$other},
                "$base: $other is in the first");
        }
    }
    for my $base (sort keys %second) {
        my (undef, undef, $said) = run_program(seconds => 120,
            command => [$^X, "-c", "$CrmTest::TOP/t/$base"]);
        is($said, "$CrmTest::TOP/t/$base syntax OK\n", "$base compiles");
    }
};

done_testing;
