# SPDX-License-Identifier: Apache-2.0
# 61-events-end.t: readers at the end of GET /events miss nothing that writers
# write meanwhile (contract 13.4). 05-borders.t has the numbers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Citus;
use CrmTest::Data;
use CrmTest::Session;

my $WRITERS = 4;        # of each kind
my $GATE = 4711;        # a lock: a reader that has the last number waits for it
my $database = database();
# what is read first, and what is read next, with the gate in between
sql($database, <<"SQL") if !CrmTest::Citus::wanted();
ALTER FUNCTION crmapi.event_end_at RENAME TO event_end_after;
CREATE FUNCTION crmapi.event_end_at(workspace uuid, n bigint) RETURNS uuid
LANGUAGE plpgsql AS \$\$
BEGIN
    PERFORM pg_advisory_xact_lock_shared($GATE);
    RETURN crmapi.event_end_after(workspace, n);
END
\$\$;
GRANT EXECUTE ON FUNCTION crmapi.event_end_at TO crmapi_api
SQL
# as a site may have it for programs of its own
sql("postgres", "ALTER DATABASE $database SET default_transaction_isolation ="
    . " 'repeatable read'");
my $httpd = httpd(database => $database, unlimited => 1, intake => 1);

# A workspace with its log on.
sub logged { return workspace($httpd, twin => 0)->log_on }

# A page of the log behind CURSOR, by the client C: (events, the cursor behind
# them).
sub page {
    my ($c, $cursor) = @_;
    my $r = $c->get("/api/v1/events?page_size=100&cursor=$cursor");
    die $r->text if $r->status != 200;
    return ($r->json->{data}, $r->json->{pagination}{next_cursor});
}

# SQL that inserts a company of W with ID.
sub insert_company {
    my ($w, $id) = @_;
    return "INSERT INTO crmapi.company (id, workspace_id, bot_id, name) VALUES"
        . " ('$id', '" . $w->id . "', '" . $w->agent . "', 'L')";
}

sub company {
    my ($w) = @_;
    return $w->company->{id};
}

SKIP: {
    skip "with Citus the function runs elsewhere: 05-borders.t has its numbers"
        if CrmTest::Citus::wanted();

    subtest "13.4 a ticket that is taken while a reader looks" => sub {
        my $w = logged();
        my (undef, $cursor) = page($w->client, "end");
        my $open = holding($database, "SELECT pg_advisory_xact_lock($GATE)");
        my $reader = CrmTest::Child->start(sub { page($w->client, $cursor) });
        wait_blocked($database, 1, "wait_event = 'advisory'");
        my $late = uuid();
        my $end = holding($database, insert_company($w, $late));
        my $early = company($w);
        $open->();
        my ($events, $same) = $reader->result;
        is_deeply($events, [], "what was committed behind an open transaction is"
            . " not shown");
        is($same, $cursor, "the cursor stays");
        $end->("COMMIT");
        ($events) = page($w->client, $same);
        is_deeply([map { $_->{data}{id} } @$events], [$late, $early],
            "then both are there, in their order");
    };

    subtest "13.4 a ticket that is given back while a reader looks" => sub {
        my $w = logged();
        my (undef, $cursor) = page($w->client, "end");
        my $late = uuid();
        my $end = holding($database, insert_company($w, $late));
        my $early = company($w);
        my $open = holding($database, "SELECT pg_advisory_xact_lock($GATE)");
        my $reader = CrmTest::Child->start(sub { page($w->client, $cursor) });
        wait_blocked($database, 1, "wait_event = 'advisory'");
        $end->("COMMIT");
        $open->();
        my ($events) = $reader->result;
        is_deeply([map { $_->{data}{id} } @$events], [$late, $early],
            "what it held back is shown, too, whatever isolation the database"
            . " has by default");
    };
}

# Contacts of W by the API until GO_ON->() says no; their ids, in order.
sub write_contacts {
    my ($w, $go_on) = @_;
    my $c = $w->client;
    my @ids;
    local $CrmTest::Contract::off = 1;
    while ($go_on->()) {
        my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent });
        push @ids, $r->data->{id} if $r->status == 201;
    }
    return @ids;
}

# Messages to W by intake, from PHONE, likewise.
sub write_messages {
    my ($w, $go_on, $phone) = @_;
    my $c = $httpd->client(key => $w->{token});
    my @ids;
    local $CrmTest::Contract::off = 1;
    while ($go_on->()) {
        my $r = $c->post("/crmapi/intake/v1/events", [{ event_id => uuid(),
            channel => "sms", bot_id => $w->agent, from => { phone_number =>
            $phone }, message => { content => "m" } }]);
        push @ids, $r->data->{accepted}[0]{message_id} if $r->status == 200;
    }
    return @ids;
}

# Read the log of W behind CURSOR until GO_ON->() says no and nothing is left. The
# file SEEN grows by a byte with each event. Return (id, id of the data) of each
# event.
sub follow {
    my ($w, $cursor, $go_on, $seen) = @_;
    my $c = $w->client;
    my @all;
    local $CrmTest::Contract::off = 1;
    open(my $out, ">>", $seen) or die "$seen: $!";
    $out->autoflush(1);
    while (1) {
        my $last = !$go_on->();
        (my $events, $cursor) = page($c, $cursor);
        push @all, map { [$_->{id}, $_->{data}{id}] } @$events;
        print $out "." x @$events;
        return @all if $last && !@$events;
    }
}

subtest "13.4 each acknowledged write is seen once, in order" => sub {
    my $w = logged();
    $w->{token} = $w->token("t");
    # numbers pass a border of what a ticket's lock has of them
    sql($database, "SELECT setval('crmapi.event_number', 2147483648 - 500)")
        if !CrmTest::Citus::wanted();
    my (undef, $cursor) = page($w->client, "end");
    my $dir = $httpd->dir;
    my @readers = map { my $n = $_; CrmTest::Child->start(sub {
        follow($w, $cursor, $_[0], "$dir/seen$n") }) } 1, 2;
    my @writers = map { my $n = $_;
        (CrmTest::Child->start(sub { write_contacts($w, $_[0]) }),
         CrmTest::Child->start(sub { write_messages($w, $_[0], "+49300$n") }))
        } 1 .. $WRITERS;
    my $ok = wait_for(sub { (-s "$dir/seen1" // 0) >= 2500 }, 60);
    $_->stop for @writers;
    my @made = map { [$_->result] } @writers;
    $_->stop for @readers;
    my @seen = map { [$_->result] } @readers;
    ok($ok, "they write, and readers see it");
    for my $seen (@seen) {
        is_deeply([map { $_->[0] } @$seen], [sort map { $_->[0] } @$seen],
            "ids ascend");
        my (%place, @lost);
        push @{$place{$seen->[$_][1]}}, $_ for 0 .. $#$seen;
        my $disordered = 0;
        for my $made (@made) {
            my $last = -1;
            for my $id (@$made) {
                my @places = @{$place{$id} // []};
                push @lost, $id if @places != 1;
                $disordered++ if ($places[0] // $last) < $last;
                $last = $places[0] // $last;
            }
        }
        is_deeply(\@lost, [], "each of " . (map { scalar @$_ } @made)
            . " writers' writes once, " . @$seen . " events");
        is($disordered, 0, "those of a writer as it wrote them");
    }
    cmp_ok(scalar(grep { @$_ } @made), "==", 2 * $WRITERS, "all writers wrote");
};

$httpd->stop;
done_testing;
