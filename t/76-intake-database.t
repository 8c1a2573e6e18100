# SPDX-License-Identifier: Apache-2.0
# 76-intake-database.t: events while the database is stopped and started, and
# how long they take. With $CRM_LONG there are many, measured three times.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use Time::HiRes qw(time sleep);

my $EVENTS = "/crmapi/intake/v1/events";
my $database = database();
my $httpd = httpd(database => $database, children => 2,
    unlimited => 1, intake => 1);
my $w = workspace($httpd, twin => 0);
my $token = $w->token("t");

# Event number N of the stream called NAME.
sub event {
    my ($name, $n) = @_;
    return { event_id => "$name-$n", channel => "chat", bot_id => $w->agent,
        from => { visitor_id => $name }, message => { content => "$n" } };
}

# Bring EVENTS until they are taken; a client as docs/intake.md wants it.
# Returns how often that had to be tried again.
sub persist {
    my ($client, $events) = @_;
    my $again = 0;
    while (1) {
        my $r = eval { $client->post($EVENTS, $events) };
        return $again if $r && $r->status == 200 && !@{$r->data->{errors}};
        die $r->text if $r && $r->status != 503;
        $client->close;
        sleep 0.05;
        die "CrmTest: no end of it\n" if ++$again > 1000;
    }
}

subtest "a stream of events over restarts of the database" => sub {
    my $n = $ENV{CRM_LONG} ? 10_000 : 2000;
    my $batch = 25;
    # what an event met first: a session that ends, or no server
    $httpd->expect_log(qr/CRM2001: database: |CRM1305: the database cannot be used/);
    my $stream = CrmTest::Child->start(sub {
        my $client = $httpd->client(key => $token);
        my $again = 0;
        for (my $i = 0; $i < $n; $i += $batch) {
            $again += persist($client, [map { event("stream", $_) }
                $i .. $i + $batch - 1]);
        }
        return $again;
    });
    for my $share (0.2, 0.5, 0.8) {
        wait_for(sub { count_rows($w, "message") >= $share * $n }, 60)
            or fail("the stream goes on");
        # INT ends sessions in the midst of what they do
        postgres()->halt("INT");
        postgres()->resume;
    }
    cmp_ok(($stream->result)[0] // 0, ">", 0, "it had to try again at times");
    my @said = map { $_->[0] } sql($database, "SELECT content FROM"
        . " crmapi.message WHERE workspace_id = '" . $w->id . "'"
        . " ORDER BY created_at, id");
    is(scalar @said, $n, "every message is there once");
    my ($odd) = grep { $said[$_] != $_ } 0 .. $#said;
    is($odd, undef, "and in order");
    is(count_rows($w, "conversation"), 1, "in one conversation");
    triggers_kept_up($database, "7.11 the totals are right");
};

# How many events a second CODE brings, which gets a name and the number.
sub speed {
    my ($name, $n, $code) = @_;
    my $start = time;
    $code->($name, $n);
    return $n / (time - $start);
}

subtest "throughput, next to bare INSERTs" => sub {
    plan(skip_all => "plain builds only: speed is measured there")
        if sanitized() || valgrinded();
    my $client = $httpd->client(key => $token);
    my ($id, $bot) = ($w->id, $w->agent);
    # what an event writes in any case: a message and its conversation's row
    my $bare = sub {
        my ($name, $n) = @_;
        my $talk = insert($w, "conversation", bot_id => $bot, type => 1,
            visitor_id => $name);
        sql($database, join "", map { "INSERT INTO crmapi.message (id,"
            . " workspace_id, conversation_id, role, content) VALUES"
            . " (gen_random_uuid(), '$id', '$talk', 'user', 'x$_');"
            . " UPDATE crmapi.conversation SET last_message = 'x$_',"
            . " last_message_at = now(), last_active_at = now() WHERE"
            . " workspace_id = '$id' AND id = '$talk';" } 1 .. $n);
    };
    my $few = $ENV{CRM_LONG} ? 500 : 100;
    my %way = (
        "500 in a batch" => [$ENV{CRM_LONG} ? 5000 : 1000, sub {
            my ($name, $n) = @_;
            for (my $i = 0; $i < $n; $i += 500) {
                persist($client, [map { event($name, $_) } $i .. $i + 499]);
            }
        }],
        "one at a time" => [$few, sub {
            my ($name, $n) = @_;
            persist($client, event($name, $_)) for 1 .. $n;
        }],
        "bare INSERT and UPDATE, committed one at a time" => [$few, $bare]);
    my %speed;
    my $rounds = $ENV{CRM_LONG} ? 3 : 1;
    for my $round (1 .. $rounds) {
        push @{$speed{$_}}, speed("$_ $round", @{$way{$_}})
            for sort keys %way;
    }
    for my $name (sort keys %way) {
        my @all = sort { $a <=> $b } @{$speed{$name}};
        diag(sprintf "%s: %.0f events/s (median; %.0f to %.0f)", $name,
            $all[@all / 2], @all[0, -1]);
        is(count_rows($w, "message", "conversation_id IN (SELECT id FROM"
            . " crmapi.conversation WHERE visitor_id ~ '^$name [0-9]+\$')"),
            $rounds * $way{$name}[0], "$name: all are there, once");
        is(count_rows($w, "conversation", "visitor_id ~ '^$name [0-9]+\$'"),
            $rounds, "$name: in a conversation of each round");
    }
};

done_testing;
