# SPDX-License-Identifier: Apache-2.0
# 28-durable.t: PostgreSQL is stopped as by a crash (SIGQUIT) again and again
# while clients write: what was answered 2xx is there (contract 10.5, 11.1)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use Time::HiRes qw(sleep);

# two connections for each writer, and a process of prefork for each connection
my ($CRASHES, $WRITERS) = (4, ($ENV{CRM_MPM} || "") eq "prefork" ? 2 : 6);
my $database = database();
# as PostgreSQL has it where nobody changes that, unlike servers for tests
sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
sql("postgres", "SELECT pg_reload_conf()");

my $httpd = httpd(database => $database, conf => <<"END");
CrmApiReadLimit 0
CrmApiWriteLimit 0
CrmApiIntake On
CrmApiIntakeLimit 0
END
# What mod_dbd, the module and libpq say when there is no database, and httpd
# of so many clients.
$httpd->may_log(qr/CRM(?:130[34]|200[146]): /,
    qr/AH0(?:0629|0632|0639|2653|2655): /, qr/AH00(?:484|161): /);
my $w = workspace($httpd, twin => 0);
my ($template) = $w->import_objects([{ object => "sequence_template",
    name => "T", bot_id => $w->agent, allowed_channels => ["email"] }]);
my $token = $w->ctl("intake", "create", "--workspace", $w->id, "--name", "t");
my @named = (bot_id => $w->agent);

# What a writer does, with names of its own: [kind, method, path, body].
sub requests {
    my ($name, $own, $n) = @_;
    my $stage = ($w->stages)[0];
    return (
        [contact => "POST", "/api/v1/contacts", { @named, notes => $name }],
        [company => "POST", "/api/v1/companies", { @named, name => $name }],
        [card => "POST", "/api/v1/pipeline-cards", { title => $name,
            pipeline_stage_id => $stage }],
        [activity => "POST", "/api/v1/activities", { title => $name,
            activity_type => "note", contact_id => $own }],
        [patch => "PATCH", "/api/v1/contacts/$own",
            { custom_fields => { n => $n } }],
        [upsert => "POST", "/api/v1/contacts/upsert", { @named,
            contacts => [map { { notes => "$name-$_" } } 1 .. 3] }],
        [start => "POST", "/api/v1/sequences/start", {
            template_id => $template, idempotency_key => $name,
            contact => { emails => ["$name\@x.example"] } }],
        [event => "POST", "/crmapi/intake/v1/events", { event_id => $name,
            channel => "sms", @named, from => { phone_number => "+49$own" },
            message => { content => $name } }],
    );
}

# Write without pause until told to stop; returns [kind, name, n, status] of
# each request.
sub busy {
    my ($go_on, $who, $own) = @_;
    my $c = $w->client(timeout => 60);
    my $intake = $httpd->client(key => $token, timeout => 60);
    my @all;

    for (my $n = 1; $go_on->(); $n++) {
        for my $request (requests("$who-$n", $own, $n)) {
            my ($kind, $method, $path, $body) = @$request;
            my $r = eval { ($kind eq "event" ? $intake : $c)->request($method,
                $path, json => $body) };
            push @all, [$kind, "$who-$n", $n, $r ? $r->status : "lost: $@"];
            sleep 0.01 if !$r || $r->status == 503;
        }
    }
    return [$own, \@all];
}

my @own = map { $w->client->post("/api/v1/contacts", { @named })->data->{id} }
    1 .. $WRITERS;
my @writers = map { my $who = $_; CrmTest::Child->start(sub {
    busy($_[0], $who, $own[$who - 1]) }) } 1 .. $WRITERS;
sub made { return count_rows($w, "activity") }
for my $crash (1 .. $CRASHES) {
    my $before = made();
    wait_for(sub { made() >= $before + 3 * $WRITERS }, 60)
        or fail("they write before crash $crash");
    postgres()->halt("QUIT");
    postgres()->resume;
}
my $before = made();
ok(wait_for(sub { made() >= $before + $WRITERS }, 60),
    "they write after the last crash");
$_->stop for @writers;
my @results = map { $_->result } @writers;
my @all = map { @{$_->[1]} } @results;

my %status;
$status{$_->[3]}++ for @all;
is(join(" ", grep { !/^(?:20[012]|503)$/ } sort keys %status), "",
    "2xx and 503 only: " . join ", ",
    map { "$_ $status{$_} times" } sort keys %status);
cmp_ok($status{503} // 0, ">", 0, "the crashes were amid work");

# The names that SQL finds.
sub found { return { map { $_->[0] => $_->[1] // 1 } sql($database, $_[0]) } }
my $in = "workspace_id = '" . $w->id . "'";
my %there = (
    contact => found("SELECT notes FROM crmapi.contact WHERE $in"
        . " AND notes IS NOT NULL"),
    company => found("SELECT name FROM crmapi.company WHERE $in"),
    card => found("SELECT title FROM crmapi.pipeline_card WHERE $in"),
    activity => found("SELECT title FROM crmapi.activity WHERE $in"),
    # with its enrollment and its job
    start => found("SELECT q.idempotency_key FROM crmapi.sequence q"
        . " JOIN crmapi.enrollment e ON e.sequence_id = q.id"
        . " JOIN crmapi.job j ON j.payload ->> 'enrollment_id' = e.id::text"
        . " WHERE q.$in"),
    # with its message
    event => found("SELECT v.event_id FROM crmapi.intake_event v"
        . " JOIN crmapi.message m ON m.content = v.event_id WHERE v.$in"),
    upsert => found("SELECT left(notes, -2) AS name, count(*) FROM"
        . " crmapi.contact WHERE $in AND notes ~ '-.*-' GROUP BY 1"),
);
for my $kind (sort keys %there) {
    my @good = grep { $_->[0] eq $kind && $_->[3] != 503 } @all;
    cmp_ok(scalar @good, ">", 0, "$kind: some were answered 2xx");
    my @lost = grep { ($there{$kind}{$_->[1]} // 0)
        != ($kind eq "upsert" ? 3 : 1) } @good;
    is(scalar @lost, 0, "$kind: what was answered 2xx is there, all "
        . @good . " of them") or diag(join " ", map { $_->[1] } @lost);
}
for my $result (@results) {
    my ($own, $all) = @$result;
    my ($last) = reverse grep { $_->[0] eq "patch" && $_->[3] == 200 } @$all;
    my $n = sql($database, "SELECT custom_fields ->> 'n' FROM crmapi.contact"
        . " WHERE id = '$own'");
    cmp_ok($n // 0, ">=", $last->[2], "the last change that was answered is"
        . " there, or one after it");
}
my %twice = map { $_->[0] => $_->[1] } sql($database, "SELECT notes, count(*)"
    . " FROM crmapi.contact WHERE $in AND notes IS NOT NULL GROUP BY 1"
    . " HAVING count(*) > 1");
is_deeply(\%twice, {}, "nothing is there twice");
is(scalar(grep { $_ % 3 } values %{$there{upsert}}), 0,
    "10.5 upserts are there whole or not at all");
is_deeply([sql($database, "SELECT * FROM crmapi.counter_verify()")], [],
    "7.11 the totals are right");
$httpd->stop;
done_testing;
