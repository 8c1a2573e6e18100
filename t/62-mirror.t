# SPDX-License-Identifier: Apache-2.0
# 62-mirror.t: programs copy a workspace by the API alone, while it is written
# and servers are killed; in the end each copy equals the export (contract
# 13.4). $CRM_MIRROR is the number of changes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Process qw(spawn end_process);
use CrmTest::Receiver;
use IO::Select;
use Cpanel::JSON::XS ();
use Time::HiRes qw(sleep);

my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $CHANGES = $ENV{CRM_MIRROR} || 96;
my $WRITERS = 8;
my @KINDS = qw(contact company pipeline_card activity conversation message
    submission);
my $database = database();
sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
sql("postgres", "SELECT pg_reload_conf()");
my $httpd = httpd(database => $database, children => 2,
    unlimited => 1, intake => 1);
# without a database, and of children that were killed
$httpd->may_log(qr/CRM\d+: /, qr/AH\d+: /);
my %conf = (webhook_private => "on", webhook_concurrency => 8,
    webhook_threads => 8);

# ---- the writers -------------------------------------------------------------

# Make COUNT changes of all kinds in W by way of API, upsert and intake. What is
# not answered 2xx does not count.
sub write_changes {
    my ($w, $token, $count, $who) = @_;
    my $c = $w->client(timeout => 20);
    my $intake = $httpd->client(key => $token, timeout => 20);
    my %ids = map { $_ => [] } qw(contacts companies pipeline-cards
        conversations);
    my %own = (bot_id => $w->agent);
    my @activities;
    my $n = 0;
    srand($who);
    my $one = sub { my $all = $ids{$_[0]}; @$all ? $all->[rand @$all] : undef };
    my %create = (contacts => sub { +{ %own, first_name => "F$who-$n",
            emails => ["e$n-$who\@x.example"], company_id =>
            $one->("companies") } },
        companies => sub { +{ %own, name => "C$who-$n" } },
        "pipeline-cards" => sub { +{ title => "T$n", contact_id =>
            $one->("contacts"), pipeline_stage_id =>
            ($w->stages)[rand 3] } });
    my %change = (contacts => sub { +{ notes => "n$n", deal_value => $n } },
        companies => sub { +{ industry => "i$n" } },
        "pipeline-cards" => sub { +{ title => "t$n", pipeline_stage_id =>
            ($w->stages)[rand 3] } },
        conversations => sub { +{ internal_notes => "n$n",
            archived => $n % 2 ? JSON::PP::true : JSON::PP::false } });
    while ($n < $count) {
        my $list = (sort keys %ids)[rand 4];
        my $id = $one->($list);
        my $what = rand;
        my $r = eval {
            if ($list eq "conversations" && (!$id || $what < 0.5)) {
                my $r = $intake->post("/crmapi/intake/v1/events", [{
                    event_id => "$who-$n-" . rand, channel => "sms", %own,
                    from => { phone_number => "+49$who" . int rand 5 },
                    message => { content => "m$n" } }]);
                push @{$ids{conversations}}, map { $_->{conversation_id} }
                    @{$r->data->{accepted}} if $r->status == 200;
                $r;
            }
            elsif ($list eq "contacts" && $what < 0.2) {
                $c->post("/api/v1/contacts/upsert", { %own, contacts => [map {
                    { emails => ["u" . int(rand 30) . "\@x.example"],
                        notes => "u$n" } } 1 .. 3] });
            }
            elsif ($list eq "companies" && $what < 0.2 && ($id
                    || $one->("contacts"))) {
                my $r = $c->post("/api/v1/activities", {
                    activity_type => "note", title => "a$n",
                    map { defined $_->[1] ? @$_ : () } [company_id => $id],
                    [contact_id => $one->("contacts")] });
                push @activities, $r->data->{id} if $r->status == 201;
                $r;
            }
            elsif ($list eq "companies" && $what < 0.3 && @activities) {
                my $path = "/api/v1/activities/" . splice @activities,
                    rand @activities, 1;
                $what < 0.25 ? $c->delete($path)
                    : $c->patch($path, { title => "t$n" });
            }
            elsif ($list ne "conversations" && (!$id || $what < 0.55)) {
                my $r = $c->post("/api/v1/$list", $create{$list}->());
                push @{$ids{$list}}, $r->data->{id} if $r->status == 201;
                $r;
            }
            elsif ($what < 0.88) {
                $c->patch("/api/v1/$list/$id", $change{$list}->());
            }
            else {
                @{$ids{$list}} = grep { $_ ne $id } @{$ids{$list}};
                $c->delete("/api/v1/$list/$id");
            }
        };
        $n++ if $r && $r->status =~ /^2/;
        sleep 0.05 if !$r || $r->status == 503;
    }
    return $n;
}

# Have the writers write to W; meanwhile run DISTURB->() again and again.
sub while_writing {
    my ($w, $disturb) = @_;
    my $token = $w->token("t");
    my @writers = map { my $who = $_; CrmTest::Child->start(sub {
        write_changes($w, $token, $CHANGES / $WRITERS, $who) }) }
        1 .. $WRITERS;
    my $rounds = 0;
    while (grep { !IO::Select->new($_->{out})->can_read(0) } @writers) {
        $disturb->(++$rounds);
    }
    my $made = 0;
    $made += $_ for map { $_->result } @writers;
    cmp_ok($made, ">=", $CHANGES - $WRITERS, "$made changes, $rounds kills");
}

# ---- comparing -----------------------------------------------------------------

# The rows of W that a copy has: what the export has of KINDS, without what the
# API does not show. A conversation that was deleted is not in a copy.
sub exported {
    my ($w) = @_;
    my %rows = map { $_ => {} } @KINDS;
    for (split /\n/, $w->ctl("export", "--workspace", $w->id)) {
        my $row = $json->decode($_);
        my $kind = delete $row->{object};
        next if !$rows{$kind} || $row->{deleted};
        $rows{$kind}{$row->{id}} = $row;
    }
    return \%rows;
}

# The first five of LINES, for a message.
sub first_of { "@_[0 .. ($#_ < 4 ? $#_ : 4)]" }

# COPY, {kind => {id => row}}, has the rows of W, field by field.
sub is_copy {
    my ($copy, $w) = @_;
    my $there = exported($w);
    for my $kind (@KINDS) {
        my ($mine, $real) = ($copy->{$kind} || {}, $there->{$kind});
        is(first_of(grep { !$mine->{$_} } sort keys %$real), "",
            "$kind: none of " . keys(%$real) . " rows is missing")
            or diag(map { $json->encode($real->{$_}) }
                grep { !$mine->{$_} } keys %$real);
        is(first_of(grep { !$real->{$_} } sort keys %$mine), "",
            "$kind: there is no other");
        my @differ;
        for my $id (grep { $real->{$_} } keys %$mine) {
            for my $field (grep { exists $real->{$id}{$_} }
                    keys %{$mine->{$id}}) {
                my ($is, $should) = map { $json->encode([$_->{$field}]) }
                    $mine->{$id}, $real->{$id};
                push @differ, "$id $field: $is, not $should"
                    if $is ne $should;
            }
        }
        is(first_of(@differ), "", "$kind: with the same fields");
    }
}

# ---- the servers that are killed -----------------------------------------------

my $worker;
# Kill a part of the installation.
sub disturb {
    my ($round) = @_;
    sleep 0.5 + rand;
    if ($round % 3 == 1) {
        postgres()->halt("QUIT");
        postgres()->resume;
    }
    elsif ($round % 3 == 2) {
        my @children = $httpd->children;
        kill KILL => $children[rand @children] if @children;
    }
    elsif ($worker) {
        $worker->kill;
        $worker->start;
    }
}

subtest "a reader of the log" => sub {
    my $w = workspace($httpd, twin => 0);
    $w->log_on;
    my $dir = $httpd->dir;
    my ($program) = grep { /copy\.py/ } documented("api.md", "python");
    write_file("$dir/copy.py", $program);
    local @ENV{qw(CRMAPI_KEY COPY_SLEEP)} = ($w->key, 0.1);
    my $start = sub { spawn(chdir => $dir, log => "$dir/copy.log", command =>
        ["python3", "copy.py", "http://127.0.0.1:" . $httpd->port,
        "$dir/copy.json"]) };
    my $pid = $start->();
    while_writing($w, sub {
        my ($round) = @_;
        disturb($round);
        # it makes the file when it has listed everything
        wait_for(sub { -e "$dir/copy.json" }, 60) or die "no copy.json\n";
        if ($round % 4 == 0) {          # the program itself, too
            end_process($pid, "KILL");
            $pid = $start->();
        }
    });
    my $last = $w->company(name => "last")->{id};
    my $rows = sub { return (eval { $json->decode(read_file(
        "$dir/copy.json")) } // {})->{rows} };
    # it writes its whole copy for each page
    ok(wait_for(sub { ($rows->() // {})->{company}{$last} },
        120 + $CHANGES / 100), "it comes to the end of the log")
        or diag(read_file("$dir/copy.log", ""));
    end_process($pid, "TERM");
    is_copy($rows->(), $w);
};

# Apply the events in the bodies SENT, {webhook-id => body}, to an empty copy in
# the order of their ids.
sub copy_of {
    my ($sent) = @_;
    my %rows = map { $_ => {} } @KINDS;
    for my $event (map { $json->decode($sent->{$_}) } sort keys %$sent) {
        my ($kind, $change) = split /\./, $event->{type};
        my $id = $event->{data}{id};
        if ($change !~ /^(?:deleted|merged)$/) {
            $rows{$kind eq "form" ? "submission" : $kind}{$id} = $event->{data};
            next;
        }
        delete $rows{$kind}{$id};
    }
    return \%rows;
}

subtest "a receiver of webhooks that is down a third of the time" => sub {
    my $w = workspace($httpd, twin => 0);
    my $receiver = CrmTest::Receiver->new;
    my ($id) = split /\t/, $w->ctl("webhook", "add", "--workspace", $w->id,
        # down until the first disturbance is over
        "--url", $receiver->url("down/500"), "--events", join ",",
        (map { ("$_.created", "$_.updated", "$_.deleted") } qw(contact company
        pipeline_card activity conversation)), "message.created",
        "form.submitted");
    $worker = worker(database => $database, conf => \%conf);
    $worker->may_log(qr/CRM\d+: /);
    my $goes_to = sub { sql($database, "UPDATE crmapi.webhook_endpoint SET"
        . " url = '" . $receiver->url($_[0]) . "' WHERE id = '$id'") };
    while_writing($w, sub {
        my ($round) = @_;
        disturb($round);
        $goes_to->($round % 3 == 1 ? "down/500" : "copy/200");
        wait_for(sub { $receiver->requests("down") }, 30) if $round == 1;
    });
    $goes_to->("copy/200");
    $worker->stop;
    $worker = undef;
    my $later = worker(database => $database, no_start => 1, conf => \%conf,
        seconds => 60 + $CHANGES / 100);
    $later->may_log(qr/CRM\d+: /);
    my $pending = sub { scalar sql($database, "SELECT count(*) FROM"
        . " crmapi.webhook_delivery WHERE endpoint_id = '$id' AND status ="
        . " 'pending'") };
    # as crmapi.job_reap() does when the leases have run out (41-worker.t)
    sql($database, "UPDATE crmapi.job SET state = 'ready', leased_by = NULL,"
        . " leased_until = NULL, run_at = now() WHERE state = 'leased'");
    for my $hours (1 .. 20) {
        last if !$pending->();
        $later->once(scalar sql($database, "SELECT to_char((now() + interval"
            . " '$hours h') AT TIME ZONE 'UTC',"
            . " 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"));
    }
    is($pending->(), 0, "all are delivered in the end");
    cmp_ok(scalar $receiver->requests("down"), ">", 0, "it was down");
    is_copy(copy_of({ map { $_->{headers}{"webhook-id"} => $_->{body} }
        $receiver->requests("copy") }), $w);
    $receiver->stop;
};

$httpd->stop;
done_testing;
