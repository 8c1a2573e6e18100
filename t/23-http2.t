# SPDX-License-Identifier: Apache-2.0
# 23-http2.t: HTTP/2: concurrent requests on a connection, cancelled requests,
# bodies that are too large (contract 5.3)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Http2;
use JSON::PP ();

plan(skip_all => "prefork: mod_http2 is of no use there")
    if ($ENV{CRM_MPM} || "event") eq "prefork";

# So few connections that one which is not given back is missed at once.
my $CONNECTIONS = 3;
my $MAX_BODY = 100_000;
my $database = database();
my $httpd = httpd(database => $database, modules => ["http2"], children => 1,
    dbd => "DBDMin 1\nDBDKeep $CONNECTIONS\nDBDMax $CONNECTIONS\n",
    # without batches each request that waits has a connection of its own
    unlimited => 1, shows => ["server-status"], conf => <<"END");
Protocols h2c http/1.1
CrmApiBatches Off
CrmApiMaxBody $MAX_BODY
CrmApiIntake On
CrmApiAddressLimit 0
CrmApiChatPolls 2
END
my $w = workspace($httpd);
my ($c, $agent) = ($w->client, $w->agent);
my $json = JSON::PP->new->utf8->canonical;

sub connection {
    return CrmTest::Http2->new(port => $httpd->port, key => $w->key, @_);
}

# ANSWER as [status, its JSON].
sub told {
    my ($answer) = @_;
    my $value = eval { $json->decode($answer->{body}) };
    return [$answer->{status}, $value // $answer->{body}];
}

sub data_of { told($_[0])->[1]{data} }

# Whatever was given up: no connection to the database is kept, none is in a
# transaction, and as many requests as there are connections go on side by
# side.
sub all_is_well {
    my ($name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;

    ok(wait_for(sub { $c->counter("ConnectionsUsed") == 0 }, 20),
        "$name: no connection is kept")
        or diag($c->counter("ConnectionsUsed"), " are");
    # the keys' last use is written now and then
    my $busy = "FROM pg_stat_activity WHERE datname = current_database()"
        . " AND usename = 'crmapi_site' AND state <> 'idle'";
    ok(wait_for(sub { !sql($database, "SELECT count(*) $busy") }, 20),
        "$name: no session stays amid anything")
        or diag(map { "$_->[0]\n" } sql($database, "SELECT query $busy"));
    my $let_go = postgres()->hold($database, "LOCK TABLE crmapi.company");
    my $h = connection();
    my @streams = map { $h->begin("GET", "/api/v1/companies", end => 1) }
        1 .. $CONNECTIONS;
    postgres()->wait_locked($database, $CONNECTIONS);
    $let_go->();
    is_deeply([map { $h->answer($_)->{status} } @streams],
        [(200) x $CONNECTIONS], "$name: all connections serve");
    status_is($c->get("/api/v1/agents"), 200, "$name: HTTP/1.1, too");
    $h->close;
}

my @ids = map { $_->{contact}{id} // $_->{id} } @{$c->post(
    "/api/v1/contacts/upsert", { bot_id => $agent, contacts =>
        [map { +{ first_name => "C$_" } } 1 .. 90] })->data->{created}};

subtest "streams of one connection get each its own answer" => sub {
    is(scalar @ids, 90, "90 contacts are there");
    my $h = connection();
    my $unknown = uuid();
    my %asked;
    for my $n (1 .. 90) {
        my $id = $ids[$n - 1];
        my ($method, $path, $body, @wanted) = @{(
            ["GET", "/$id", undef, 200, "C$n"],
            ["PATCH", "/$id", qq({"last_name":"L$n"}), 200, "C$n", "L$n"],
            ["GET", "/$unknown", undef, 404, "not_found"],
            ["POST", "", qq({"bot_id":"$agent","first_name":"N$n"}), 201,
                "N$n"],
            ["POST", "", qq({"bot_id":"$n"}), 422, "validation_error"],
            ["POST", "", "{", 400, "bad_request"],
            )[$n % 6]};
        $asked{$h->begin($method, "/api/v1/contacts$path", end => 1,
            body => $body)} = \@wanted;
    }
    my %got;
    for my $stream (keys %asked) {
        my ($status, $value) = @{told($h->answer($stream))};
        $got{$stream} = [$status, $value->{error} ? $value->{error}{code}
            : $value->{data}{first_name},
            $asked{$stream}[2] ? $value->{data}{last_name} : ()];
    }
    is_deeply(\%got, \%asked, "90 at once, of six kinds");
    is(count_rows($w, "contact", "first_name LIKE 'N%'"), 15,
        "what was to be made is there, once");
    $h->close;
};

subtest "connections with many streams each" => sub {
    my @wrong = in_processes(4, sub {
        my ($process) = @_;
        my $h = connection();
        my @wrong;
        for my $round (1 .. 5) {
            my %of = map { ($h->begin("GET", "/api/v1/contacts/$_", end => 1)
                => $_) } @ids[map { ($_ * 7 + $process) % 90 } 1 .. 40];
            for my $stream (sort { $a <=> $b } keys %of) {
                my $answer = $h->answer($stream);
                push @wrong, $answer if $answer->{status} != 200
                    || data_of($answer)->{id} ne $of{$stream};
            }
        }
        return \@wrong;
    });
    is_deeply(\@wrong, [([]) x 4], "800 requests by 160 at a time");
    all_is_well("afterwards");
};

subtest "RST_STREAM while the database works" => sub {
    my $let_go = postgres()->hold($database, "SELECT FROM crmapi.contact"
        . " WHERE workspace_id = '" . $w->id . "' AND id = '$ids[0]'"
        . " FOR UPDATE");
    my $h = connection();
    my @given_up = map { $h->begin("PATCH", "/api/v1/contacts/$ids[0]",
        body => qq({"notes":"given up"}), end => 1) } 1 .. $CONNECTIONS;
    postgres()->wait_locked($database, $CONNECTIONS);
    # these wait for a connection
    push @given_up, map { $h->begin("GET", "/api/v1/agents", end => 1) } 1, 2;
    $h->ping;
    $h->reset($_) for @given_up;
    $h->ping;
    $let_go->();
    is($h->request("GET", "/api/v1/contacts/$ids[1]")->{status}, 200,
        "the next stream of the connection is answered");
    all_is_well("writes that were given up");
    my $r = $h->request("PATCH", "/api/v1/contacts/$ids[0]",
        json => { notes => "later" });
    is($r->{status}, 200, "the row can be written");
    is(data_of($r)->{notes}, "later", "and is");
    $h->close;
};

subtest "10.5 RST_STREAM amid an upsert: all of it or nothing" => sub {
    my $let_go = postgres()->hold($database,
        "LOCK TABLE crmapi.contact IN SHARE MODE");
    my $h = connection();
    my $stream = $h->begin("POST", "/api/v1/contacts/upsert", end => 1,
        body => $json->encode({ bot_id => $agent, contacts =>
            [map { +{ last_name => "half" } } 1 .. 50] }));
    postgres()->wait_locked($database, 1);
    $h->reset($stream);
    $h->ping;
    $let_go->();
    all_is_well("an upsert that was given up");
    my $made = count_rows($w, "contact", "last_name = 'half'");
    ok($made == 0 || $made == 50, "$made of 50 are there");
    $h->close;
};

subtest "RST_STREAM while a body comes" => sub {
    my $before = count_rows($w, "contact");
    my $h = connection();
    for my $n (1 .. 30) {
        my $stream = $h->begin("POST", "/api/v1/contacts");
        $h->data($stream, qq({"bot_id":"$agent","first_name":"torn));
        $h->ping if $n % 3 == 0;    # it is being read
        $h->reset($stream);
    }
    my $whole = $h->request("POST", "/api/v1/contacts",
        json => { bot_id => $agent, first_name => "whole" });
    is($whole->{status}, 201, "one that is not given up is taken");
    all_is_well("bodies that broke off");
    is(count_rows($w, "contact"), $before + 1, "no other was made");
    $h->close;
};

subtest "RST_STREAM while a large answer goes out" => sub {
    my @large = map { $c->post("/api/v1/contacts", { bot_id => $agent,
        tags => ["large"], notes => "n" x 60000 }) } 1 .. 20;
    is(scalar(grep { $_->status == 201 } @large), 20, "1.2 MB are there");
    my $h = connection(window => 100);
    my @streams = map { $h->begin("GET", "/api/v1/contacts?tags=large",
        end => 1) } 1 .. 2 * $CONNECTIONS;
    # the first bytes of each have come, the rest is not asked for
    $h->read_frame while grep { length $h->{streams}{$_}{body} < 100 }
        @streams;
    all_is_well("clients that do not read");
    $h->reset($_) for @streams;
    $h->ping;
    all_is_well("and then give up");
    my $whole = connection();
    is(scalar @{data_of($whole->request("GET",
        "/api/v1/contacts?tags=large"))}, 20, "who reads gets all of it");
    $_->close for $h, $whole;
};

subtest "RST_STREAM at once, again and again" => sub {
    my $given_up = 0;
    for my $round (1 .. 20) {
        last if $given_up >= 300;
        my $h = connection();
        # the server may have enough of it, say so and close the connection
        eval {
            for my $n (1 .. 60) {
                $h->reset($h->begin("GET", "/api/v1/agents", end => 1));
                $given_up++;
            }
            $h->ping;
        };
        $h->close;
    }
    cmp_ok($given_up, ">=", 60, "$given_up requests");
    all_is_well("requests that nobody meant");
};

subtest "a connection that is closed amid its streams" => sub {
    my $before = count_rows($w, "contact", "first_name = 'cut'");
    for my $round (1 .. 5) {
        my $h = connection();
        $h->begin("POST", "/api/v1/contacts", end => 1,
            body => qq({"bot_id":"$agent","first_name":"cut"})) for 1 .. 20;
        $h->ping if $round % 2;
        $h->close;
    }
    all_is_well("a client that went away");
    my $made = count_rows($w, "contact", "first_name = 'cut'");
    cmp_ok($made, "<=", 100, "$made of 100 were made");
    is($c->get("/api/v1/contacts", query => { search => "cut" })
        ->json->{pagination}{total}, $made, "7.11 and are all there");
};

subtest "RST_STREAM while a chat waits: its place is free again" => sub {
    my $chat = "/crmapi/intake/v1/chat/$agent";
    sql($database, "UPDATE crmapi.agent SET public = true"
        . " WHERE id = '$agent'");
    my @visitors = map { my $n = $_;
        my $visitor = $httpd->client->post("$chat/start", {})
            ->data->{visitor};
        my $one = $httpd->client(key => $visitor);
        status_is($one->post("$chat/messages", { id => "m-$n",
            content => "Hello" }), 201, "visitor $n says something");
        [$visitor, "$chat/messages?wait=25&after=" . $one->get(
            "$chat/messages")->data->{cursor}] } 1 .. 3;
    # whether one more is told to come again, since as many wait as may
    my $full = sub { $httpd->client(key => $visitors[2][0])->get(
        $visitors[2][1] =~ s/wait=25/wait=1/r)->data->{retry_after} };
    my @waiting;
    ok(wait_for(sub {
        for my $n (0, 1) {      # again, if a probe had the place
            my ($h, $stream) = @{$waiting[$n] || []};
            $h->ping if $h;
            next if $h && !$h->{streams}{$stream}{done};
            $h ||= connection(key => $visitors[$n][0]);
            $waiting[$n] = [$h, $h->begin("GET", $visitors[$n][1],
                end => 1)];
        }
        return $full->();
    }, 20), "as many wait as may");
    $_->[0]->reset($_->[1]) for @waiting;
    $_->[0]->ping for @waiting;
    my $start = time;
    ok(wait_for(sub { !$full->() }, 20), "who comes next may wait");
    cmp_ok(time - $start, "<", 10 * busy(), "long before 25 s are over");
    $_->[0]->close for @waiting;
};

subtest "5.3 413 while a body comes that is too large" => sub {
    my $h = connection();
    my $beside = $h->begin("POST", "/api/v1/contacts");
    $h->data($beside, qq({"bot_id":"$agent",));
    my $stream = $h->begin("POST", "/api/v1/contacts");
    my $sent = $h->data($stream, " " x ($MAX_BODY * 50));
    my $answer = $h->answer($stream);
    is_deeply([$answer->{status}, told($answer)->[1]{error}{code}],
        [413, "payload_too_large"], "it is told, without an end");
    cmp_ok($sent, ">", $MAX_BODY, "after it had sent so much: $sent bytes");
    cmp_ok($sent, "<", $MAX_BODY * 50, "and before it had sent all");
    is(scalar @{data_of($h->request("GET", "/api/v1/agents"))}, 1,
        "the connection goes on");
    $h->data($beside, '"first_name":"beside"}', end => 1);
    is($h->answer($beside)->{status}, 201, "and what was begun before it");

    my $before = $h->begin("POST", "/api/v1/contacts", headers =>
        ["content-length" => $MAX_BODY + 1]);
    is($h->answer($before)->{status}, 413,
        "Content-Length: told before anything is sent");
    my $exact = '{"bot_id":"' . $agent . '"}';
    is($h->request("POST", "/api/v1/contacts", body => $exact
        . " " x ($MAX_BODY - length $exact))->{status}, 201,
        "as much as may be is taken");
    is($h->request("POST", "/api/v1/contacts", body => $exact
        . " " x ($MAX_BODY - length($exact) + 1))->{status}, 413,
        "a byte more is not");
    my @many = map { my $s = $h->begin("POST", "/api/v1/contacts");
        $h->data($s, " " x ($MAX_BODY + 5000)); $s } 1 .. 5;
    is_deeply([map { $h->answer($_)->{status} } @many], [(413) x 5],
        "several on one connection");
    all_is_well("bodies that were too large");
    $h->close;
};

triggers_kept_up($database, "7.11 the totals are right");
$httpd->stop;
done_testing;
