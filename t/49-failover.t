# SPDX-License-Identifier: Apache-2.0
# 49-failover.t: under load the primary's host fails, the primary is shut down,
# or its host hangs, and a synchronous standby takes over: every write that was
# answered 2xx is stored, and no message is sent twice (contract 5.5, 11.11)
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file's servers come and go, so it has its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Provider;
use CrmTest::Receiver;
use CrmTest::Standby;
use CrmTest::Writers;
use JSON::PP ();
use Time::HiRes qw(sleep time);

my $slow = sanitized() || valgrinded() ? 5 : 1;
my $WRITERS = 4;
my $primary = CrmTest::Postgres->get(CrmTest::Standby->settings);
my $database = database();
my $standby = CrmTest::Standby->new($primary);
my @hosts = ($primary, $standby);       # only their ports matter

# The conninfo of ROLE, wherever the primary is.
sub conninfo { CrmTest::Standby->conninfo_of(\@hosts, $database, $_[0]) }

my $httpd = httpd(database => $database,
    conninfo => conninfo($CrmTest::Postgres::API), unlimited => 1, intake => 1,
    shows => ["health"], conf => "CrmApiDatabaseTimeout 3s\n");
# What mod_dbd, the module and libpq say when there is no database, and httpd
# of so many clients.
$httpd->may_log(qr/CRM(?:130[345]|200[14567]): /,
    qr/AH00(?:484|161): /);

my $provider = CrmTest::Provider->new;
my $receiver = CrmTest::Receiver->new;
local $ENV{CRMAPID_TWILIO_TOKEN} = "t0ken";
# Twilio's interface takes no idempotency key: nobody drops a second message.
my $worker = worker(database => $database,
    conninfo => conninfo($CrmTest::Postgres::WORKER), conf => {
        sms_relay => "twilio", sms_from => "+4930", twilio_account => "AC1",
        twilio_url => "http://127.0.0.1:$provider->{port}", lease => "2s",
        answer_time => "3s", webhook_private => "on" });
$worker->may_log(qr/CRM(?:2001|2002|2004|2005|2007|3003|3005|3101|3122): /);

# One workspace is written to without pause. The messages and webhooks of the
# other one are looked at.
my ($busy, $w) = map { workspace($httpd, twin => 0) } 1, 2;
my $template = $w->template([{ sms_body => "1" },
    { delay => 0, sms_body => "2" }]);
$w->webhook($receiver->url("hook/200"), "contact.created");

# Start sequences until told to stop. Return their contacts' names.
sub outreach {
    my ($go_on) = @_;
    my $c = $w->client(timeout => 60);
    my @names;

    for (my $n = 1; $go_on->(); $n++) {
        my $r = $c->post("/api/v1/sequences/start", {
            template_id => $template, auto_approve => JSON::PP::true,
            idempotency_key => "k$n", contact => { first_name => "P$n",
                phone_numbers => [sprintf "+4930%06d", $n] } });
        push @names, "P$n" if $r->status == 202;
        sleep 0.1;
    }
    return @names;
}

subtest "a commit that the standby did not confirm is not acknowledged" => sub {
    my $c = $w->client(timeout => 60);
    $standby->freeze;
    error_is($c->post("/api/v1/agents/x", {}), 405, "method_not_allowed",
        "what needs no database is answered");
    status_is($c->get("/api/v1/contacts"), 200, "reads are served");
    for my $path ("/api/v1/contacts", "/api/v1/contacts/upsert") {
        my %body = (bot_id => $w->agent, $path =~ /upsert/
            ? (contacts => [{ first_name => "Up" }]) : ());
        error_is($c->post($path, \%body), 503, "service_unavailable",
            "POST $path");
    }
    $standby->thaw;
    ok($httpd->wait_log(qr/CRM2007: /), "which is logged");
    status_is($c->post("/api/v1/contacts", { bot_id => $w->agent }), 201,
        "the standby is back");
};

subtest "crmapictl export reads a standby" => sub {
    my ($here, $there) = map { crmapictl_ok(undef, { env => {
        CRMAPI_DATABASE => $_->conninfo($database,
            $CrmTest::Postgres::OWNER) } }, "export", "--workspace", $w->id)
    } $primary, $standby;
    like($there, qr/"sequence_template"/, "there is something");
    is($there, $here, "the same as of the primary");
};

my $writers = CrmTest::Writers->new($httpd, $busy, $WRITERS);
my $outreach = CrmTest::Child->start(\&outreach);
my @rounds;

# Take the primary away by CODE, have the standby take over, and make what was
# the primary the standby of the other one. NAME says what happens.
sub round {
    my ($name, $code) = @_;
    my $old = $primary;

    ok($writers->wait_for_more(3), "$name: they write before it");
    my %round = (name => $name, begun => time);
    $code->($old);
    $standby->promote;
    $round{promoted} = time;
    $primary = $standby;
    push @rounds, \%round;
    ok($writers->wait_for_more(3), "$name: and after it");
    my $sent = $provider->count;
    ok(wait_for(sub { $provider->count > $sent }, 30),
        "$name: messages are sent after it");
    my $health = $httpd->client->get("/health/ready");
    is($health->body, "ready\n", "$name: the health check finds the primary");
    my ($code_, $out, $err) = crmapictl(undef, { env => { CRMAPI_DATABASE =>
        conninfo($CrmTest::Postgres::OWNER) } }, "status");
    is($code_, 0, "$name: crmapictl finds the primary") or diag($err);
    # it must not come back as a primary
    CrmTest::Standby::crash($old);
    return if @rounds == 3;
    $standby = CrmTest::Standby->new($primary, $old->{port});
}

round("the host fails", sub {
    # at a moment when the standby lacks commits
    $standby->freeze;
    wait_for(sub { $primary->sql("postgres", "SELECT count(*) FROM"
        . " pg_stat_activity WHERE wait_event = 'SyncRep'") }, 2);
    CrmTest::Standby::crash($primary);
    $standby->cut_off;
    $standby->thaw;
});
round("a switchover", sub { $_[0]->halt });
round("the host hangs", \&CrmTest::Standby::freeze);

$writers->stop;
$outreach->stop;
my @started = $outreach->result;
subtest "what was answered" => sub { $writers->check };

for my $round (@rounds) {
    # A host that hangs keeps requests until their time is over, and the next
    # connections for connect_timeout.
    my $most = $round->{name} =~ /hangs/ ? 12 : 2;
    my ($first) = sort { $a <=> $b } map { $_->{ended} - $round->{promoted} }
        grep { $_->{status} =~ /^2/ && $_->{ended} > $round->{promoted} }
        $writers->all;
    cmp_ok($first, "<", $most * $slow, "$round->{name}: a write succeeds"
        . " within $most seconds");
    diag(sprintf "%s: promoted after %.2f s, first success %.3f s later",
        $round->{name}, $round->{promoted} - $round->{begun}, $first);
}

subtest "sequences and webhooks go on, and nothing is sent twice" => sub {
    my $in = "workspace_id = '" . $w->id . "'";
    ok(wait_for(sub { !sql($database, "SELECT count(*) FROM"
        . " crmapi.enrollment WHERE $in AND status IN ('generating',"
        . " 'approved', 'running')") }, 90), "all enrollments end");
    my %there = map { $_->[0] => $_->[1] } sql($database, "SELECT"
        . " c.first_name, e.status FROM crmapi.enrollment e JOIN"
        . " crmapi.contact c ON c.workspace_id = e.workspace_id AND c.id ="
        . " e.contact_id WHERE e.$in");
    cmp_ok(scalar @started, ">", 10, "sequences were started");
    is_deeply([grep { !$there{$_} } @started], [],
        "each start that was answered is there: " . @started);
    my %ends;
    $ends{$_}++ for values %there;
    is_deeply([sort keys %ends], ["completed"], "all are completed")
        or diag(explain(\%ends));

    my %got;
    $got{$_->{body}}++ for $provider->requests;
    is_deeply([grep { $got{$_} > 1 } keys %got], [],
        "no message was handed over twice, of " . keys %got);
    is(scalar keys %got, 2 * keys %there, "and each was");

    my @events = map { $_->[0] } sql($database, "SELECT id FROM"
        . " crmapi.event WHERE $in");
    cmp_ok(scalar @events, ">=", scalar keys %there, "events for webhooks");
    ok(wait_for(sub { !sql($database, "SELECT count(*) FROM"
        . " crmapi.webhook_delivery WHERE $in AND status = 'pending'") }, 90),
        "all are delivered");
    my %id;
    $id{$_->{headers}{"webhook-id"}}{$_->{body}}++
        for $receiver->requests("hook");
    is(scalar keys %id, scalar @events, "each event is one for its receiver");
    is_deeply([grep { keys %{$id{$_}} > 1 } keys %id], [],
        "with one body, however often it came");
    my $again = grep { (values %{$id{$_}})[0] > 1 } keys %id;
    diag("$again of " . @events . " webhooks were sent again, by their id");
};

$worker->stop;
$receiver->stop;
$provider->stop;
$httpd->stop;
done_testing;
