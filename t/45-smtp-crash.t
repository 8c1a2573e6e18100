# SPDX-License-Identifier: Apache-2.0
# 45-smtp-crash.t: crmapid is killed while an SMTP server has its mail: it is
# delivered at most once, or with the same Message-ID (contract 11.11)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Smtpd;

CrmTest::Smtpd::needed();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
postgres()->wait_reaping;

# A workspace whose template sends one mail.
sub space {
    my $w = workspace($httpd, twin => 0);
    $w->{template} = $w->template([{ email_subject => "Hello",
        email_body => "It is {{first_name}}." }]);
    return $w;
}

sub states {
    my ($w, $id) = @_;
    my $e = $w->enrollment($id);
    return join " ", $e->{status}, $e->{generation_error} // "-",
        map { $_->{status} } @{$e->{steps}};
}

# A daemon that sends to SMTP; DEDUPLICATES: whether that drops a second one.
sub daemon {
    my ($smtp, $deduplicates) = @_;
    my $worker = worker(database => $database, no_start => 1, conf => {
        $smtp->relay, lease => "2s", webhook_threads => 0,
        $deduplicates ? (smtp_deduplicates => "on") : () });
    # jobs of one that was killed; steps that nobody knows of
    $worker->may_log(qr/CRM3005|CRM3123|CRM3104/,
        qr/CRM3122: .*delivery_unknown/);
    return $worker;
}

# The Message-IDs of MAILS, each with how often it is there.
sub message_ids {
    my %count;
    $count{(/^Message-ID: (<\S+>)$/mi)[0] // "none"}++ for @_;
    return \%count;
}

# MAIL without what differs from one time that it is made to another.
sub same_mail {
    my ($mail) = @_;
    $mail =~ s/^Date: .*//m;
    my ($boundary) = $mail =~ /boundary="?([^"\s;]+)/;
    $mail =~ s/\Q$boundary\E/B/g if defined $boundary;
    return $mail;
}

my @MOMENTS = (
    ["after the final dot, before its answer", sub { }],
    ["after the server's 250, before the record", sub {
        my ($smtp, $id) = @_;
        my $let_go = postgres()->hold($database, "SELECT FROM"
            . " crmapi.enrollment WHERE id = '$id' FOR UPDATE");
        write_file("$smtp->{folder}/speak", "");
        postgres()->wait_locked($database, 1);
        return $let_go;
    }],
);
for my $deduplicates (0, 1) {
    for my $moment (@MOMENTS) {
        my ($when, $reach) = @$moment;
        my $name = $deduplicates ? "a relay that drops a second one"
            : "a relay that does not";
        subtest "killed $when: $name" => sub {
            my $w = space();
            my $smtp = CrmTest::Smtpd->new;
            my $worker = daemon($smtp, $deduplicates);
            my $id = $w->start_for({ first_name => "N",
                emails => ["mute\@x.example"] });
            $worker->start;
            ok(wait_for(sub { $smtp->received }, 30), "the server has it");
            my $let_go = $reach->($smtp, $id);
            is(states($w, $id), "approved - sending", "nothing is recorded");
            $worker->kill;
            # what it had asked of the database is never done
            sql($database, "SELECT pg_terminate_backend(pid) FROM"
                . " pg_stat_activity WHERE datname = current_database()"
                . " AND usename = '$CrmTest::Postgres::WORKER'");
            $let_go->() if $let_go;
            $worker->start;
            ok(wait_for(sub { states($w, $id) !~ /sending/ }, 40),
                "another takes the job") or diag($worker->log_text);
            $worker->stop;
            my @mails = $smtp->received;
            my $step = $w->enrollment($id)->{steps}[0]{id};
            is_deeply(message_ids(@mails), { $w->message_id($step) =>
                $deduplicates ? 2 : 1 }, $deduplicates ? "it comes twice, with"
                . " the same Message-ID" : "it is there once");
            is(states($w, $id), $deduplicates ? "completed - sent"
                : "failed delivery_unknown failed", "and recorded as such");
            is(same_mail($mails[-1]), same_mail($mails[0]),
                "the second says the same") if $deduplicates;
        };
    }
}

for my $deduplicates (0, 1) {
    subtest "killed at any moment" . ($deduplicates
            ? ", where the relay drops a second one" : "") => sub {
        my ($rounds, $batch) = ($ENV{CRM_LONG} || 1, 10);
        my $w = space();
        my $smtp = CrmTest::Smtpd->new;
        my $worker = daemon($smtp, $deduplicates);
        $worker->{no_wait} = 1;
        my @ids;
        for my $round (1 .. $rounds) {
            my $count = $smtp->received;
            push @ids, map { $w->start_for({ first_name => "N",
                emails => ["p$round-$_\@x.example"] }) } 1 .. $batch;
            my $enough = $count + int rand $batch;
            $worker->start;
            wait_for(sub { $smtp->received >= $enough }, 10);
            $worker->kill;
        }
        $worker->{no_wait} = 0;
        $worker->start;
        my $live = sub { sql($database, "SELECT count(*) FROM"
            . " crmapi.enrollment WHERE workspace_id = '" . $w->id . "'"
            . " AND status NOT IN ('completed', 'failed')") };
        ok(wait_for(sub { !$live->() }, 120), "all have ended");
        $worker->stop;
        my %states;
        my %step;       # Message-ID => how it ended
        for my $id (@ids) {
            $states{states($w, $id)}++;
            my ($step) = @{$w->enrollment($id)->{steps}};
            $step{$w->message_id($step->{id}) // ""} = $step->{status};
        }
        note(join ", ", map { "$_: $states{$_}" } sort keys %states);
        my $got = message_ids($smtp->received);
        is(scalar(grep { !$step{$_} } keys %$got), 0, "every mail is a step's");
        is(scalar(grep { $step{$_} eq "sent" && !$got->{$_} } keys %step), 0,
            "what is called sent was delivered");
        if ($deduplicates) {
            is_deeply(\%states, { "completed - sent" => scalar @ids },
                "all are sent");
        }
        else {
            is(scalar(grep { $_ > 1 } values %$got), 0,
                "none was delivered twice");
            is(join("|", grep { !/^completed - sent$|^failed delivery_unknown/ }
                keys %states), "", "sent, or failed with delivery_unknown");
        }
    };
}

$httpd->stop;
done_testing;
