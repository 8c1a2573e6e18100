# SPDX-License-Identifier: Apache-2.0
# 46-soak.t: a mixed load beside graceful restarts, restarts and kills of
# PostgreSQL, clients that go away and clients that read slowly: no answer is lost
# or belongs to another request, no write is lost or done twice (contract 2.3, 4.4,
# 5.4, 5.5). $CRM_SOAK is the number of seconds.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use List::Util qw(sum0);
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Time::HiRes qw(sleep time);

my $SECONDS = $ENV{CRM_SOAK} || 6;
my $mpm = $ENV{CRM_MPM} || "event";
my $database = database();
# a kill must not lose what was answered
sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
sql("postgres", "SELECT pg_reload_conf()");
my $httpd = httpd(database => $database, children => 2, mpm => $mpm,
    unlimited => 1, shows => ["metrics"]);
# without a database, and of children that must end
$httpd->may_log(qr/CRM\d+: /, qr/AH\d+: /);
my $w = workspace($httpd, twin => 0);
my %name = map { $_ => 1 } map { "known $_" } 1 .. 30;
my @ids = $w->import_objects([map { { object => "contact",
    bot_id => $w->agent, first_name => $_, notes => $_ x 40 } }
    sort keys %name]);
@name{@ids} = sort keys %name;

my $asked = 0;
# Ask CLIENT for METHOD PATH under an id of its own. Return the response.
sub ask {
    my ($client, $method, $path, %arg) = @_;
    my $id = "soak-$$-" . ++$asked;
    my $r = $client->request($method, "/api/v1$path", %arg,
        headers => { %{$arg{headers} || {}}, "X-Request-Id" => $id });

    die "the answer to $id is that to " . $r->header("X-Request-Id") . "\n"
        if $r->header("X-Request-Id") ne $id;
    return $r;
}

sub is_contact {
    my ($contact, $id) = @_;
    return $contact->{id} eq $id && $contact->{first_name} eq $name{$id};
}

# [method, path of two ids, whether the response R is what they are answered]
my @READS = (
    ["GET", sub { "/contacts/$_[0]" },
        sub { $_[0]->status == 200 && is_contact($_[0]->data, $_[1]) }],
    ["GET", sub { "/contacts?ids=$_[0],$_[1]" },
        sub { $_[0]->status == 200 && 2 == @{$_[0]->data}
            && !grep { !is_contact($_, $_->{id}) } @{$_[0]->data} }],
    ["HEAD", sub { "/contacts/$_[0]" },
        sub { $_[0]->status == 200 && $_[0]->body eq "" }],
    ["GET", sub { "/contacts/" . uuid() }, sub { $_[0]->status == 404 }],
    ["GET", sub { "/contacts/$_[0]/activities" },
        sub { $_[0]->status == 200 && !@{$_[0]->data} }],
);

# Two ids that differ.
sub two {
    my $n = int rand @ids;
    return @ids[$n, ($n + 1 + int rand @ids - 1) % @ids];
}

# Each of these returns {answered => n, down => n, wrong => [what came]}, and what
# it has written.

sub reader {
    my ($go_on) = @_;
    my $client = $w->client(timeout => 60);
    my %seen = (answered => 0, down => 0, wrong => []);
    while ($go_on->()) {
        my ($method, $path, $right) = @{$READS[rand @READS]};
        my @of = two();
        my $r = eval { ask($client, $method, $path->(@of)) };
        if (!$r || $r->status != 503 && !$right->($r, @of)) {
            push @{$seen{wrong}}, "$method " . $path->(@of) . ": "
                . ($r ? $r->text : $@);
            return \%seen;
        }
        $r->status == 503 ? $seen{down}++ : $seen{answered}++;
    }
    return \%seen;
}

# Reads a long list in small pieces, so that httpd must wait for it.
sub slow_reader {
    my ($go_on) = @_;
    my %seen = (answered => 0, down => 0, wrong => []);
    while ($go_on->()) {
        my $client = $w->client(timeout => 60);
        setsockopt($client->socket, SOL_SOCKET, SO_RCVBUF, 2304);
        my $r = eval {
            $client->ask("GET", "/api/v1/contacts?page_size=100&ids="
                . join(",", @ids), headers => { Connection => "close" });
            while (sysread $client->{socket}, $client->{buffer}, 900,
                    length $client->{buffer}) {
                sleep 0.001;
            }
            $client->read_response("GET");
        };
        if (!$r || $r->status != 503 && ($r->status != 200
                || @{$r->data} != @ids
                || grep { !is_contact($_, $_->{id}) } @{$r->data})) {
            push @{$seen{wrong}}, "slowly: " . ($r ? $r->text : $@);
            return \%seen;
        }
        $r->status == 503 ? $seen{down}++ : $seen{answered}++;
    }
    return \%seen;
}

# Creates contacts and changes the last one. With AGAIN, a create that was not
# answered is repeated under its Idempotency-Key.
sub writer {
    my ($go_on, $who, $again) = @_;
    my $client = $w->client(timeout => 60);
    my %seen = (answered => 0, down => 0, wrong => [], made => {}, notes => {});
    my $id;
    for (my $n = 0; $go_on->(); $n++) {
        my ($made, $text) = ("$who-$n", "note $who-$n");
        my $r;
        do {
            $r = eval { ask($client, "POST", "/contacts", json => {
                bot_id => $w->agent, last_name => $made }, $again
                ? (headers => { "Idempotency-Key" => $made }) : ()) };
            $seen{down}++ if $r && $r->status == 503;
        } while ($again && $r && $r->status =~ /^(?:503|409)$/
            && (sleep(0.05) || 1) && $go_on->());
        $seen{made}{$made} = $r ? $r->status : 0;
        my $right = $r && ($r->status == 503 || $again && $r->status == 409
            || $r->status == 201 && $r->data->{last_name} eq $made);
        if ($right && $r->status == 201) {
            $id = $r->data->{id};
            $seen{notes}{$id} = [""];
        }
        if ($right && $id) {
            $seen{answered}++;
            $r = eval { ask($client, "PATCH", "/contacts/$id",
                json => { notes => $text }) };
            $right = $r && ($r->status == 503 || $r->status == 200
                && $r->data->{id} eq $id && $r->data->{notes} eq $text);
            # what they may be: the last that was answered, or any since
            $seen{notes}{$id} = [] if $right && $r->status == 200;
            push @{$seen{notes}{$id}}, $text;
        }
        if (!$right) {
            push @{$seen{wrong}}, "$made: " . ($r ? $r->text : $@);
            return \%seen;
        }
    }
    return \%seen;
}

# Goes away: in the middle of a request, before the answer, or in its middle.
sub leaver {
    my ($go_on, $who) = @_;
    my %seen = (answered => 0, down => 0, wrong => [], made => {});
    for (my $n = 0; $go_on->(); $n++) {
        my $client = $w->client(timeout => 60);
        my $made = "$who-$n";
        my $body = qq({"bot_id":") . $w->agent . qq(","last_name":"$made"});
        my $text = "POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\nAuthorization:"
            . " Bearer " . $w->key . "\r\nContent-Type: application/json\r\n"
            . "Content-Length: " . length($body) . "\r\n\r\n$body";
        my $all = rand 2 < 1;
        $client->send_raw($all ? $text
            : substr $text, 0, int rand length $text);
        $seen{made}{$made} = 503 if $all;
        sleep rand 0.02;
        sysread $client->{socket}, my $some, 20 if $all && rand 2 < 1;
        $client->close;
    }
    return \%seen;
}

sub rows { return count_rows($w, "contact") }

# What happens to the servers: [name, code].
my $postgres = postgres();
my @EVENTS = (
    ["graceful restart", sub { $httpd->restart }],
    ["restart of PostgreSQL", sub { $postgres->halt("INT");
        $postgres->resume }],
    ["kill of PostgreSQL", sub { $postgres->halt("QUIT"); $postgres->resume }],
    ["end of all sessions", sub { sql("postgres", "SELECT"
        . " pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
        . " '$database' AND usename <> current_user") }],
);

my $until = time + $SECONDS;
my @children = map { my ($code, @arg) = @$_;
    CrmTest::Child->start(sub { $code->($_[0], @arg) }) }
    ([\&reader]) x 4, ([\&slow_reader]) x 2, (map { [\&writer, "w$_", $_ % 2] }
    1 .. 6), map { [\&leaver, "gone$_"] } 1, 2;
my %happened;
my $quiet = $w->client(timeout => 60);
for (my $n = 0; $n < @EVENTS || time < $until; $n++) {
    my ($name, $code) = @{$EVENTS[$n % @EVENTS]};
    my $before = rows();
    wait_for(sub { rows() >= $before + 20 }, 60)
        or fail("before $name " . ++$happened{$name} . " clients write");
    $code->();
    wait_for(sub { $quiet->get("/api/v1/contacts/$ids[0]")->status == 200 }, 60)
        or fail("after $name " . $happened{$name} . " it serves");
    $happened{$name}++;
}
$_->stop for @children;
my @seen = map { $_->result } @children;
my ($answered, $down) = map { my $of = $_; sum0(map { $_->{$of} } @seen) }
    qw(answered down);
note(join ", ", "$answered answers", "$down times 503", map {
    "$happened{$_} times $_" } sort keys %happened);

is_deeply([map { @{$_->{wrong}} } @seen], [],
    "each request has its own answer, or 503");
cmp_ok($answered, ">", 200, "$answered answers");
cmp_ok($down, ">", 0, "$down times 503");
my $metrics = $httpd->client->get("/metrics")->body;
cmp_ok(sum0($metrics =~ /^crmapi_batched_answers_total\{.*\} (\d+)$/mg), ">", 0,
    "threads have sent the answers of others") if $mpm ne "prefork";

my %rows = map { @$_ } sql($database, "SELECT last_name, count(*) FROM"
    . " crmapi.contact WHERE workspace_id = '" . $w->id . "' AND last_name IS"
    . " NOT NULL GROUP BY 1");
my %made = map { %{$_->{made} || {}} } @seen;
is_deeply([grep { $made{$_} == 201 && ($rows{$_} // 0) != 1 } sort keys %made],
    [], "what was answered by 201 is there once");
is_deeply([grep { $rows{$_} != 1 || !exists $made{$_} } sort keys %rows], [],
    "nothing is there twice, or was not asked for");
my %notes = map { %{$_->{notes} || {}} } @seen;
my %is = map { @$_ } sql($database, "SELECT id, coalesce(notes, '') FROM"
    . " crmapi.contact WHERE workspace_id = '" . $w->id . "'");
is_deeply([grep { my $id = $_; !grep { $_ eq ($is{$id} // "gone") }
    @{$notes{$id}} } sort keys %notes], [], "no change is lost");
triggers_kept_up($database, "7.11 the totals are right");

$httpd->stop;
done_testing;
