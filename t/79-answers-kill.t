# SPDX-License-Identifier: Apache-2.0
# 79-answers-kill.t: answers while crmapid and PostgreSQL are killed and a mail
# server refuses, is slow and does not answer: none twice, none lost, each in the
# state that is true (contract 11.11, 19.2). With $CRM_LONG there are 1,000.
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# a server of its own, which this test kills
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Data;
use CrmTest::Process qw(write_file);
use CrmTest::Smtpd;

CrmTest::Smtpd::needed();

my $count = $ENV{CRM_ANSWERS} // ($ENV{CRM_LONG} ? 1000 : 24);
my $rounds = int($count / 33) + 3;
my $database = database();
# as PostgreSQL has it where nobody changes that, unlike servers for tests
sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
sql("postgres", "SELECT pg_reload_conf()");
my $httpd = httpd(database => $database, unlimited => 1);
# after PostgreSQL was away
$httpd->may_log(qr/CRM(?:130[34]|200[146]): /, qr/AH0(?:0629|0632|0639|2653|2655): /);

# What the server does with those addresses: lib/smtpd.py.
my @NAMES = ("plain", "slow", "1.451", "9.550", "mute");

# Answer in a conversation of W with ADDRESS; the message's id.
sub answer {
    my ($w, $address) = @_;
    my $talk = $w->conversation("email", email => $address);
    my $r;
    # repeated, because PostgreSQL may be away
    wait_for(sub { $r = eval { $w->client->post("/api/v1/conversations/$talk"
        . "/messages", { content => "x" }, headers =>
        { "Idempotency-Key" => $talk }) }; $r && $r->status == 201 }, 60);
    return $r->data->{id};
}

# The status, the error and the Message-ID of all answers of W, by id.
sub fates {
    my ($w) = @_;
    return { map { $_->[0] => [@$_[1 .. 3]] } sql($database, "SELECT id, status,"
        . " coalesce(metadata ->> 'error', ''), external_id FROM crmapi.message"
        . " WHERE workspace_id = '" . $w->id . "'") };
}

for my $deduplicates (0, 1) {
    subtest $deduplicates ? "where the server drops a second mail"
        : "where nobody drops a second mail" => sub {
        my $smtp = CrmTest::Smtpd->new;
        my $w = workspace($httpd, twin => 0);
        change($w, "agent", $w->agent, agent_email => "a$deduplicates\@crm.example");
        my $worker = worker(database => $database, no_start => 1, no_wait => 1,
            conf => { $smtp->relay, smtp_timeout => "2s",
                lease => "2s", log_level => "warning", threads => 4,
                send_attempts => 4, webhook_threads => 0,
                $deduplicates ? (smtp_deduplicates => "on") : () });
        $worker->may_log(qr/CRM\d+/);
        my %address;
        my $n = 0;
        for my $round (1 .. $rounds) {
            for (1 .. int($count / $rounds * $round) - $n) {
                my $name = $NAMES[$n++ % @NAMES];
                my $address = $name =~ /^\d/ ? "$name-5-7-1\@x$n.example"
                    : "$name$n\@x.example";
                $address = "$name\@x$n.example" if $name eq "1.451";
                $address{answer($w, $address)} = $address;
            }
            my $moment = $smtp->received + 1 + int rand 3;
            $worker->start;
            wait_for(sub { $smtp->received >= $moment }, 5);
            $worker->kill;
            next if $round != 2;
            postgres()->halt("QUIT");
            postgres()->resume;
        }
        postgres()->wait_reaping;
        write_file("$smtp->{folder}/speak", "");
        $worker->start;
        my $left = sub { grep { $_->[0] eq "queued" } values %{fates($w)} };
        ok(wait_for(sub {
            sql($database, "UPDATE crmapi.job SET run_at = now() - interval"
                . " '1 s' WHERE state = 'ready' AND run_at > now()");
            !$left->() }, 120), "all have ended");
        $worker->stop;
        my %got;
        for my $mail (grep { /^X-Envelope/ } $smtp->received) {
            $got{(($mail =~ /^Message-ID: (<\S+>)$/mi)[0])}++;
        }
        my ($fates, %wrong, %are) = (fates($w));
        is(scalar keys %$fates, $count, "$count answers");
        for my $id (sort keys %$fates) {
            my ($status, $error, $name) = @{$fates->{$id}};
            my $had = $got{$name // ""} // 0;
            my $refused = $address{$id} =~ /^9\.550/;
            $are{$status . ($error && " " . ($refused ? "refused" : $error))}++;
            push @{$wrong{twice}}, $address{$id}
                if $had > 1 && !$deduplicates;
            push @{$wrong{lost}}, $address{$id} if $status eq "sent" && !$had;
            push @{$wrong{untrue}}, "$address{$id} $status $error $had"
                if $refused ? $status ne "failed" || $had
                : $status eq "failed" && $error ne "delivery_unknown";
            push @{$wrong{unknown}}, $address{$id}
                if $deduplicates && $error eq "delivery_unknown" && !$refused;
        }
        diag(join ", ", map { "$_: $are{$_}" } sort keys %are);
        is_deeply(\%wrong, {}, "none twice, none lost, each in its true state");
        my %known = map { ($_->[2] // "") => 1 } values %$fates;
        is_deeply([grep { !$known{$_} } keys %got], [], "and no other mail");
        cmp_ok($are{sent} // 0, ">", 0, "some were sent");
    };
}

done_testing;
