# SPDX-License-Identifier: Apache-2.0
# CrmTest/Writers.pm: clients that write without pause while a test disturbs the
# servers, and checks of their answers
#
#     my $writers = CrmTest::Writers->new($httpd, $w, 6);
#     $writers->wait_for_more(3);       # each writes three times more
#     ...
#     $writers->stop;
#     $writers->check;
package CrmTest::Writers;
use strict;
use warnings;
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use Time::HiRes qw(sleep time);

# Start COUNT of them at HTTPD, in the workspace W, which has no others.
sub new {
    my ($class, $httpd, $w, $count) = @_;
    my $self = bless { w => $w, httpd => $httpd, count => $count }, $class;

    ($self->{template}) = $w->import_objects([{ object => "sequence_template",
        name => "T", bot_id => $w->agent, allowed_channels => ["email"] }]);
    $self->{token} = $w->ctl("intake", "create", "--workspace", $w->id,
        "--name", "t");
    $self->{own} = [map { $w->client->post("/api/v1/contacts",
        { bot_id => $w->agent })->data->{id} } 1 .. $count];
    $self->{children} = [map { my $who = $_; CrmTest::Child->start(sub {
        $self->keep_writing($_[0], $who) }) } 1 .. $count];
    return $self;
}

# What a writer does, with names of its own: [kind, method, path, body].
sub requests {
    my ($self, $name, $own, $n) = @_;
    my ($stage) = $self->{w}->stages;
    my @named = (bot_id => $self->{w}->agent);
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
            template_id => $self->{template}, idempotency_key => $name,
            contact => { emails => ["$name\@x.example"] } }],
        [event => "POST", "/crmapi/intake/v1/events", { event_id => $name,
            channel => "sms", @named, from => { phone_number => "+49$own" },
            message => { content => $name } }],
    );
}

# Write until told to stop, as the writer number WHO. Return for each request
# its kind, name, number and status, and when it began and ended.
sub keep_writing {
    my ($self, $go_on, $who) = @_;
    my $own = $self->{own}[$who - 1];
    my $c = $self->{w}->client(timeout => 60);
    my $intake = $self->{httpd}->client(key => $self->{token}, timeout => 60);
    my @all;

    for (my $n = 1; $go_on->(); $n++) {
        for my $request ($self->requests("$who-$n", $own, $n)) {
            my ($kind, $method, $path, $body) = @$request;
            my $begun = time;
            my $r = eval { ($kind eq "event" ? $intake : $c)->request($method,
                $path, json => $body) };
            my $status = $r ? $r->status : "lost: $@";
            push @all, { kind => $kind, name => "$who-$n", n => $n,
                who => $who, begun => $begun, ended => time,
                status => $status };
            sleep 0.01 if $status !~ /^2/;
        }
    }
    return @all;
}

# Wait until each of them has written N times more; whether they have.
sub wait_for_more {
    my ($self, $n) = @_;
    my $made = sub { count_rows($self->{w}, "activity") };
    my $before = $made->();

    return wait_for(sub { $made->() >= $before + $n * $self->{count} }, 60);
}

# Stop them.
sub stop {
    my ($self) = @_;
    my @children = @{delete $self->{children}};

    $_->stop for @children;
    $self->{all} = [map { $_->result } @children];
}

# Their requests.
sub all { @{$_[0]{all}} }

# Their answers are right: only 2xx and 503, some 2xx of each kind, and each
# write that was answered 2xx is stored once.
sub check {
    my ($self) = @_;
    my $in = "workspace_id = '" . $self->{w}->id . "'";
    my $database = $self->{w}{database};
    my %status;

    $status{$_->{status}}++ for $self->all;
    is(join(" ", grep { !/^(?:20[012]|503)$/ } sort keys %status), "",
        "2xx and 503 only: " . join ", ",
        map { "$_ $status{$_} times" } sort keys %status);
    cmp_ok($status{503} // 0, ">", 0, "it was broken amid work");
    my $there = $self->there($in);
    $self->check_kind($_, $there->{$_}) for sort keys %$there;
    $self->check_patches;
    my %twice = map { @$_ } sql($database, "SELECT notes, count(*) FROM"
        . " crmapi.contact WHERE $in AND notes IS NOT NULL GROUP BY 1"
        . " HAVING count(*) > 1");
    is_deeply(\%twice, {}, "nothing is there twice");
    is(scalar(grep { $_ % 3 } values %{$there->{upsert}}), 0,
        "10.5 upserts are there whole or not at all");
    triggers_kept_up($database, "7.11 the totals are right");
}

# The names of each kind that SQL finds IN the workspace.
sub there {
    my ($self, $in) = @_;
    my $found = sub { return { map { $_->[0] => $_->[1] // 1 }
        sql($self->{w}{database}, $_[0]) } };
    return {
        contact => $found->("SELECT notes FROM crmapi.contact WHERE $in"
            . " AND notes IS NOT NULL"),
        company => $found->("SELECT name FROM crmapi.company WHERE $in"),
        card => $found->("SELECT title FROM crmapi.pipeline_card WHERE $in"),
        activity => $found->("SELECT title FROM crmapi.activity WHERE $in"),
        # with its enrollment and its job
        start => $found->("SELECT q.idempotency_key FROM crmapi.sequence q"
            . " JOIN crmapi.enrollment e USING (workspace_id)"
            . " JOIN crmapi.job j USING (workspace_id)"
            . " WHERE q.$in AND e.sequence_id = q.id"
            . " AND j.payload ->> 'enrollment_id' = e.id::text"),
        # with its message
        event => $found->("SELECT v.event_id FROM crmapi.intake_event v"
            . " JOIN crmapi.message m USING (workspace_id)"
            . " WHERE v.$in AND m.content = v.event_id"),
        upsert => $found->("SELECT left(notes, -2) AS name, count(*) FROM"
            . " crmapi.contact WHERE $in AND notes ~ '-.*-' GROUP BY 1"),
    };
}

# The requests of KIND that were answered 2xx are THERE, a hash by their names.
sub check_kind {
    my ($self, $kind, $there) = @_;
    my @good = grep { $_->{kind} eq $kind && $_->{status} =~ /^2/ } $self->all;
    my @lost = grep { ($there->{$_->{name}} // 0)
        != ($kind eq "upsert" ? 3 : 1) } @good;

    cmp_ok(scalar @good, ">", 0, "$kind: some were answered 2xx");
    is(scalar @lost, 0, "$kind: what was answered 2xx is there, all "
        . @good . " of them") or diag(join " ", map { $_->{name} } @lost);
}

# Each writer's contact has the last change that was answered.
sub check_patches {
    my ($self) = @_;

    for my $who (1 .. $self->{count}) {
        my ($last) = reverse grep { $_->{who} == $who && $_->{kind} eq "patch"
            && $_->{status} eq 200 } $self->all;
        my $n = sql($self->{w}{database}, "SELECT custom_fields ->> 'n' FROM"
            . " crmapi.contact WHERE id = '$self->{own}[$who - 1]'");
        cmp_ok($n // 0, ">=", $last->{n}, "the last change that was answered"
            . " is there, or one after it");
    }
}

1;
