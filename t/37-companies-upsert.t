# SPDX-License-Identifier: Apache-2.0
# 37-companies-upsert.t: POST /companies/upsert, external_id, on_match and merge
# patches (contract 20.3, 20.4)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Session;
use JSON::PP ();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my %table = (contacts => "contact", companies => "company");
my $MERGE = "application/merge-patch+json";

# Upsert ITEMS of PATH into W; the answer's data.
sub upsert {
    my ($w, $path, $items, %more) = @_;
    my $r = $w->client->post("/api/v1/$path/upsert", { bot_id => $w->agent,
        $path => $items, %more });

    status_is($r, 200, "an upsert") or return;
    return $r->data;
}

# The ids of the lists of an upsert's DATA, and the fields of its errors.
sub lists {
    my ($data) = @_;
    return [map({ [map { $_->{id} } @{$data->{$_}}] } qw(created updated)),
        [map { my $e = $_; map { "$e->{index} $_->{field}" }
            @{$e->{details}} } @{$data->{errors}}]];
}

for my $path (sort keys %table) {
    my $one = $table{$path};
    subtest "20.3 external_id of $path" => sub {
        my $w = workspace($httpd);
        my $c = $w->client;
        my $first = $w->made($path, external_id => "A-1");
        is($first->{external_id}, "A-1", "a create has it");
        is($w->made($path)->{external_id}, undef, "or not");
        my $at = "/api/v1/$path/$first->{id}";
        my $other = $w->made($path, external_id => "a-1");
        for my $case ([POST => "/api/v1/$path"],
                [PATCH => "/api/v1/$path/$other->{id}"]) {
            my ($method, $to) = @$case;
            my $body = { $method eq "POST" ? (bot_id => $w->agent,
                name => "N") : (), external_id => "A-1" };
            delete $body->{name} if $path eq "contacts";
            for my $header ({}, { "Idempotency-Key" => "k$method" }) {
                error_is($c->request($method, $to, json => $body, headers =>
                    $header), 422, "validation_error",
                    "$method: another one's", ["external_id"]);
            }
        }
        is($w->shown($path, $other->{id})->{external_id}, "a-1",
            "nothing has changed");
        status_is($c->patch($at, { external_id => "A-1" }), 200, "its own");
        for my $bad ("", 1, "x" x 256) {
            error_is($c->patch($at, { external_id => $bad }), 422,
                "validation_error", "6.5 not '$bad'", ["external_id"]);
        }
        status_is($c->patch($at, { external_id => "ü" x 255 }), 200,
            "255 characters");
        is_deeply($c->get("/api/v1/$path", query => { external_id =>
            "ü" x 255 })->ids, [$first->{id}], "the filter");
        is_deeply($c->get("/api/v1/$path", query => { external_id => "A-1" })
            ->data, [], "what nobody has");
        status_is($c->patch($at, { external_id => undef }), 200, "null");
        status_is($c->patch("/api/v1/$path/$other->{id}",
            { external_id => "A-1" }), 200, "it is free again");
        my $twin = $httpd->client(key => $w->twin->make_key("read,write"),
            headers => { "X-Crm-Twin" => 1 });
        my ($agent) = @{$twin->get("/api/v1/agents")->ids};
        status_is($twin->post("/api/v1/$path", { bot_id => $agent,
            external_id => "A-1", $path eq "companies" ? (name => "N") : () }),
            201, "another workspace may have the same");
        my $export = $w->ctl("export", "--workspace", $w->id);
        like($export, qr/"object":\s*"$one".*"external_id":\s*"A-1"/,
            "export has it");
    };
    subtest "20.3 import of $path: external_id is one row's" => sub {
        my $w = workspace($httpd);
        my %row = (object => $one, bot_id => $w->agent, name => "N");
        delete $row{name} if $path eq "contacts";
        $w->import_objects([{ %row, external_id => "i1" }, { %row }]);
        for my $case (["exists already", { %row, external_id => "i1" }],
                ["occurs twice", map { { %row, external_id => "i2" } } 1, 2]) {
            my ($rule, @rows) = @$case;
            my $line = @rows;
            eval { $w->import_objects(\@rows) };
            like($@, qr/line $line: external_id: .*$rule|line $line.*external_id.*$rule/,
                "an import that $rule names line and field");
        }
        is($w->client->get("/api/v1/$path")->json->{pagination}{total}, 2,
            "and imports nothing");
    };
    subtest "20.3 $path: upsert matches by external_id first" => sub {
        my $w = workspace($httpd);
        my $key = sub { $path eq "contacts" ? (emails => ["$_[0]\@x.example"])
            : (name => "N", domain => "$_[0].example") };
        my $by_id = $w->made($path, external_id => "1");
        $w->made($path, $key->("a"));
        my $of_two = $w->made($path, external_id => "2", $key->("b"));
        my $data = upsert($w, $path, [
            { external_id => "1", $key->("a"), notes => "by id" },
            { $key->("A"), notes => "by key" },
            { external_id => "3", $key->("b"), notes => "another" },
            { $key->("b"), notes => "the oldest" },
            { external_id => "4", $key->("new") },
            { external_id => "4", notes => "again" },
            { $key->("new"), tags => ["x"] },
            { external_id => 5, $path eq "companies" ? (name => "N") : () },
            "x"]);
        my ($created, $updated, $errors) = @{lists($data)};
        is(scalar @$created, 2, "two are new");
        is($updated->[0], $by_id->{id}, "by external_id before others");
        is($data->{created}[0]{external_id}, "3",
            "what has another external_id is another one");
        is_deeply([map { s/ \w+\[\d\]\./ /r } @$errors],
            ["7 external_id", "8 $path\[8]"], "errors")
            or diag(explain $errors);
        is($w->shown($path, $of_two->{id})->{notes}, "the oldest",
            "without external_id by the other keys");
        is_deeply([@{$w->shown($path, $created->[1])}{qw(external_id notes
            tags)}], ["4", "again", ["x"]], "what is made in it is found");
        my $adopted = upsert($w, $path, [{ external_id => "9",
            $path eq "contacts" ? (emails => ["z\@x.example"]) : (name => "Z",
            domain => "z.example") }]);
        is_deeply(upsert($w, $path, [{ external_id => "9", notes => "n" }])
            ->{updated}[0]{id}, $adopted->{created}[0]{id}, "and later");
        my $plain = $w->made($path, $key->("plain"));
        is_deeply(lists(upsert($w, $path, [{ external_id => "p",
            $key->("plain") }])), [[], [$plain->{id}], []],
            "one without takes it over");
        is($w->shown($path, $plain->{id})->{external_id}, "p", "and has it");
        # more than an upsert looks at of one key
        sql($database, "INSERT INTO crmapi." . ($path eq "contacts"
            ? "contact (emails" : "company (name, domain") . ", id, workspace_id,"
            . " bot_id, external_id, created_at) SELECT " . ($path eq "contacts"
            ? "'[{\"email\": \"many\@x.example\"}]'" : "'N', 'many.example'")
            . ", gen_random_uuid(), '@{[$w->id]}', '@{[$w->agent]}', 'crowd' || n,"
            . " now() - interval '1 day' FROM generate_series(1, 200) n");
        my $last = $w->made($path, $key->("many"))->{id};
        is_deeply(lists(upsert($w, $path, [{ external_id => "crowd",
            $key->("many") }])), [[], [$last], []],
            "behind 200 with another external_id, too");
        my @two = map { $w->made($path, $key->("two"))->{id} } 1, 2;
        my $each = lists(upsert($w, $path, [map { { external_id => "two$_",
            $key->("two") } } 1 .. 3]));
        is_deeply($each->[1], \@two, "of two without, each takes one over");
        is(scalar @{$each->[0]}, 1, "and the third item is a new one");
        my $same = lists(upsert($w, $path, [map({ { external_id => "s$_",
            $key->("s") } } 1 .. 3), { $key->("s"), notes => "n" }]));
        is_deeply($same->[1], [(sort @{$same->[0]})[0]],
            "of three of one time the one with the lowest id is the oldest");
        is_deeply(lists(upsert($w, $path, [{ $key->("s"), notes => "m" }]))->[1],
            $same->[1], "and later");
        # in one request an id does not go from one to another
        my ($from, $to) = ($w->made($path, external_id => "m", $key->("m1")),
            $w->made($path, $key->("m2")));
        is_deeply(lists(upsert($w, $path, [
            { $key->("m1"), external_id => undef },
            { $key->("m2"), external_id => "m" }]))->[1], [$from->{id}],
            "it is given up");
        is_deeply(lists(upsert($w, $path, [{ $key->("m2"),
            external_id => "m" }])), [[], [$to->{id}], []], "then it moves");
    };
    subtest "20.4 $path: on_match" => sub {
        my $w = workspace($httpd);
        my $row = $w->made($path, external_id => "1", tags => ["a", "b"],
            custom_fields => { keep => 1, gone => 2, in => { a => 1, b => 2 },
                list => [1], text => "t", flat => { x => 1 } });
        my $send = sub {
            my ($mode, %item) = @_;
            my $r = upsert($w, $path, [{ external_id => "1", %item }],
                defined $mode ? (on_match => $mode) : ());
            return $r->{updated}[0];
        };
        my %patch = (tags => ["b", "c"], custom_fields => { gone => undef,
            new => "x", in => { b => undef, c => 3 }, list => [2], flat => 7,
            text => { x => undef, y => 1 }, none => { z => undef } });
        my $shown = $send->({ tags => "union", custom_fields => "merge" },
            %patch);
        is_deeply([@$shown{qw(tags custom_fields)}], [["a", "b", "c"],
            { keep => 1, new => "x", in => { a => 1, c => 3 }, flat => 7,
            text => { y => 1 }, none => {}, list => [2] }], "union and merge (RFC 7396)");
        is_deeply($w->shown($path, $row->{id}), $shown, "and it is stored");
        $shown = $send->({ tags => "union" }, %patch);
        is_deeply([@$shown{qw(tags custom_fields)}], [["a", "b", "c"],
            $patch{custom_fields}], "replace where nothing is said");
        $shown = $send->(undef, %patch);
        is_deeply($shown->{tags}, ["b", "c"], "and as before without it");
        $shown = $send->({ custom_fields => "merge" }, custom_fields => undef,
            tags => undef);
        is_deeply([@$shown{qw(tags custom_fields)}], [[], {}], "null clears");
        my $new = upsert($w, $path, [{ name => "N", custom_fields =>
            { a => 1, b => undef } }], on_match => { custom_fields =>
            "merge" })->{created}[0] if $path eq "companies";
        is_deeply($new->{custom_fields}, { a => 1 },
            "a new one is merged with nothing") if $new;
        for my $case ([{ tags => "x" }, "on_match.tags"], [{ tags => undef },
                "on_match.tags"], [{ custom_fields => "union" },
                "on_match.custom_fields"], [{ notes => "x" },
                "on_match.notes"], ["x", "on_match"]) {
            error_is($w->client->post("/api/v1/$path/upsert",
                { bot_id => $w->agent, $path => [], on_match => $case->[0] }),
                422, "validation_error", $case->[1], [$case->[1]]);
        }
        my $large = upsert($w, $path, [map { { external_id => "1",
            custom_fields => { "k$_" => "x" x 40_000 } } } 1, 2],
            on_match => { custom_fields => "merge" });
        is_deeply(lists($large), [[], [$row->{id}],
            ["1 $path\[1].custom_fields"]], "64 KiB after the merge");
    };
    subtest "20.4 PATCH $path with $MERGE" => sub {
        my $w = workspace($httpd);
        my $row = $w->made($path, custom_fields => { keep => 1, gone => 2,
            in => { a => 1, b => { c => 1 } }, list => [1], text => "t" });
        my $at = "/api/v1/$path/$row->{id}";
        my $merge = sub { $w->client->patch($at, { custom_fields => $_[0],
            @_[1 .. $#_] }, headers => { "Content-Type" => $MERGE }) };
        is_deeply($merge->({ gone => undef, new => 1, in => { a => undef,
            b => { d => 2 } }, list => [2, undef], text => { x => undef,
            y => 1 }, none => { z => undef } })->data->{custom_fields},
            { keep => 1, new => 1, in => { b => { c => 1, d => 2 } },
            list => [2, undef], text => { y => 1 }, none => {} }, "RFC 7396");
        my $before = $w->shown($path, $row->{id});
        is_deeply($merge->({ keep => 1, nobody => undef })->data, $before,
            "6.6 what changes nothing leaves updated_at");
        is($merge->({}, notes => "n")->data->{notes}, "n", "beside others");
        is_deeply($merge->({})->data->{custom_fields},
            $before->{custom_fields}, "{} is no change");
        error_is($merge->({ "k" => "x" x 65_530 }), 422, "validation_error",
            "6.3 64 KiB after the merge", ["custom_fields"]);
        # more with a blank behind each comma and colon
        my %many = (none => [], nothing => {}, list => [1 .. 5],
            map { ("k$_", { n => [$_ + 0, {}] }) } 1 .. 5);
        my $left = 65_536 - length JSON::PP->new->encode({ %many, pad => "" });
        my $full = $w->made($path, custom_fields => { %many,
            pad => "x" x ($left - 9) });
        $at = "/api/v1/$path/$full->{id}";
        status_is($merge->({}), 200, "6.2 what it shows is never too much");
        status_is($merge->({ pad => "x" x $left }), 200, "6.3 exactly 64 KiB");
        error_is($merge->({ pad => "x" x ($left + 1) }), 422,
            "validation_error", "6.3 and one more", ["custom_fields"]);
        $at = "/api/v1/$path/$row->{id}";
        my $etag = $w->client->get($at)->header("ETag");
        status_is($w->client->patch($at, { custom_fields => { e => 1 } },
            headers => { "Content-Type" => $MERGE, "If-Match" => $etag }), 200,
            "with If-Match");
        error_is($w->client->patch($at, { custom_fields => { e => 2 } },
            headers => { "Content-Type" => $MERGE, "If-Match" => $etag }), 412,
            "precondition_failed", "that is old");
        is_deeply($merge->(undef)->data->{custom_fields}, {}, "null clears");
        for my $type ("$MERGE; charset=utf-8", "Application/Merge-Patch+JSON") {
            status_is($w->client->patch($at, { notes => "x" }, headers =>
                { "Content-Type" => $type }), 200, $type);
        }
        for my $case ([POST => "/api/v1/$path", $MERGE],
                [POST => "/api/v1/$path/upsert", $MERGE],
                [PATCH => $at, "application/json-patch+json"],
                [PATCH => $at, "$MERGE; charset=latin1"],
                [PATCH => $at, "application/merge-patch"]) {
            my ($method, $to, $type) = @$case;
            error_is($w->client->request($method, $to, json => {}, headers =>
                { "Content-Type" => $type }), 415, "unsupported_media_type",
                "$method with $type");
        }
        # two integrations at once, each with members of its own
        my @done = in_processes(8, sub {
            my ($n) = @_;
            my $c = $w->client;
            for my $turn (1 .. 10) {
                my $r = $c->patch($at, { custom_fields => { "n$n" => $turn } },
                    headers => { "Content-Type" => $MERGE });
                return $r->text if $r->status != 200;
            }
            return "";
        });
        is_deeply($w->shown($path, $row->{id})->{custom_fields},
            { map { ("n$_" => 10) } 1 .. 8 }, "nobody wipes another's")
            or diag("@done");
    };
}

subtest "20.4 metadata of activities" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $contact = $w->made("contacts");
    my $id = $c->post("/api/v1/activities", { contact_id => $contact->{id},
        activity_type => "note", metadata => { a => 1, b => 2 } })->data->{id};
    is_deeply($c->patch("/api/v1/activities/$id", { metadata => { a => undef,
        c => 3 } }, headers => { "Content-Type" => $MERGE })->data->{metadata},
        { b => 2, c => 3 }, "are merged");
};

subtest "13.1 an upsert of companies with an Idempotency-Key" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $send = sub { my ($key, @items) = @_;
        return $c->post("/api/v1/companies/upsert", { bot_id => $w->agent,
            companies => \@items }, headers => { "Idempotency-Key" => $key }) };
    my $total = sub { $c->get("/api/v1/companies")->json->{pagination}{total} };
    my @items = ({ name => "No key of its own" }, { domain => "a b" },
        { external_id => "i-1", name => "I" });

    my ($first, $again) = map { $send->("one", @items) } 1, 2;
    status_is($first, 200, "it is done");
    is(scalar @{$first->data->{created}}, 2, "two are made");
    is($again->body, $first->body, "the first answer again, errors included");
    is($again->header("Idempotent-Replayed"), "true", "it says so");
    is($total->(), 2, "nothing is made twice");
    error_is($send->("one", @items[0, 1]), 422, "validation_error",
        "other companies", ["Idempotency-Key"]);
    is($total->(), 2, "and nothing is done");
    status_is($send->("two", $items[0]), 200, "another key");
    is($total->(), 3, "is another request");
};

subtest "20.3 upserts of the same companies at once" => sub {
    my $w = workspace($httpd);
    my @done = in_processes(16, sub {
        my ($n) = @_;
        my $c = $w->client;
        my $wrong = "";
        for my $turn (1 .. 5) {
            my @items = map { my $i = ($_ * 7 + $n) % 20;
                $i % 2 ? { external_id => "e$i", name => "E$i" }
                : { domain => "D$i.example", name => "D$i" } } 0 .. 19;
            my $r = $c->post("/api/v1/companies/upsert",
                { bot_id => $w->agent, companies => \@items });
            $wrong .= $r->text if $r->status != 200 || @{$r->data->{errors}};
        }
        return $wrong;
    });
    is(scalar(grep { length } @done), 0, "each succeeds") or diag("@done");
    my $list = $w->client->get("/api/v1/companies?page_size=100");
    is($list->json->{pagination}{total}, 20, "each is there once");
    is_deeply([sort map { $_->{name} } @{$list->data}],
        [sort map({ "E$_" } grep { $_ % 2 } 0 .. 19),
            map({ "D$_" } grep { !($_ % 2) } 0 .. 19)], "all of them");
};

subtest "20.3 an external_id that another request takes meanwhile" => sub {
    for my $path (sort keys %table) {
        my $w = workspace($httpd, twin => 0);
        my $end = holding($database, "INSERT INTO crmapi.$table{$path} (id,"
            . " workspace_id, bot_id, external_id" . ($path eq "companies"
            ? ", name" : "") . ") VALUES ('" . uuid() . "', '" . $w->id . "', '"
            . $w->agent . "', 'e'" . ($path eq "companies" ? ", 'N'" : "") . ")");
        my $upsert = CrmTest::Child->start(sub { $w->client->post(
            "/api/v1/$path/upsert", { bot_id => $w->agent, $path => [{
            external_id => "e", $path eq "companies" ? (name => "N") : () }] })
            ->status });
        wait_blocked($database, 1);
        $end->("COMMIT");
        is(($upsert->result)[0], 503, "$path: it may be tried again");
        is(scalar @{upsert($w, $path, [{ external_id => "e" }])->{updated}}, 1,
            "$path: then it is found");
    }
};

$httpd->stop;
done_testing;
