# SPDX-License-Identifier: Apache-2.0
# 11-limits.t: rate limits (contract 4, 2.2; specification: Limits)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Metrics;
use JSON::PP ();
use POSIX qw(ceil);
use Time::HiRes qw(time sleep);

my $READS = 5;
my $WRITES = 3;
my $database = database();
my $httpd = httpd(database => $database, conf => <<"END");
CrmApiReadLimit $READS
CrmApiWriteLimit $WRITES
END

# Ask by CODE and note when: the response with {before} and {after}.
sub timed {
    my ($code) = @_;
    my $before = time;
    my $r = $code->();
    @$r{qw(before after)} = ($before, time);
    return $r;
}

sub read_one {
    my ($c) = @_;
    return timed(sub { $c->get("/api/v1/agents") });
}

# The three headers of R are LIMIT, REMAINING, and a reset of which OLDEST, an
# earlier response, tells the time.
sub headers_are {
    my ($r, $limit, $remaining, $oldest, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @got = map { join ",", $r->header("X-RateLimit-$_") }
        qw(Limit Remaining);
    my $reset = join ",", $r->header("X-RateLimit-Reset");
    my ($from, $to) = (ceil($oldest->{before} + 60),
        ceil($oldest->{after} + 60) + ($ENV{CRM_VALGRIND} ? 1 : 0));

    my $ok = is_deeply(\@got, [$limit, $remaining],
        "$name: limit $limit, remaining $remaining");
    $ok &= ok($reset =~ /^\d+$/ && $reset >= $from && $reset <= $to,
        "$name: reset between $from and $to");
    diag($r->text) unless $ok;
}

# --- what takes a minute goes on beside the rest -----------------------------

# Asks all the time; returns [before, after, status, retry_after] of each.
sub demand {
    my ($c, $seconds) = @_;
    my @all;
    my $until = time + $seconds;

    while (time < $until) {
        my $r = read_one($c);
        push @all, [$r->{before}, $r->{after}, $r->status,
            $r->header("Retry-After")];
        sleep 0.02;
    }
    return \@all;
}

# Three requests, later the other two, then always what Retry-After says.
sub patience {
    my ($c) = @_;
    my @all;
    my $ask = sub {
        my $r = read_one($c);
        push @all, [$r->{before}, $r->{after}, $r->status,
            $r->header("Retry-After")];
        return $r;
    };

    my $until = sub { my $left = $_[0] - time; sleep $left if $left > 0 };

    # a write makes key and connections known, so that three reads take no time
    $c->delete("/api/v1/contacts/" . uuid());
    $ask->() for 1 .. 3;
    sleep 5.5;      # so that rounding Retry-After up leaves half a second
    $ask->() for 1 .. 2;
    for my $last (2, 4) {
        my $r = $ask->();
        $until->($r->{after} + ($r->header("Retry-After") // 60));
        $ask->();
        # who wants more than one waits for each to leave the window
        $until->($all[$last][1] + 60);
        $ask->() for $last == 2 ? (1, 2) : 1;
    }
    $ask->();
    return \@all;
}

my $impatient = workspace($httpd);
my $patient = workspace($httpd);
my $demand_job = CrmTest::Child->start(sub { demand($impatient->client, 64) });
my $patience_job = CrmTest::Child->start(sub { patience($patient->client) });

my $small = httpd(database => $database, shows => [qw(server-status metrics)],
    conf => "CrmApiRateLimitKeys 2\nCrmApiReadLimit 1000\n");
my $tenant = workspace($small);
my @three = ($tenant->key, map { $tenant->make_key("read") } 1, 2);

subtest "4.5 a full table of keys: 503, never let through" => sub {
    my @c = map { $small->client(key => $_) } @three;
    $small->expect_log(qr/CRM1003: the table of keys is full/ => 2);
    status_is($c[$_]->get("/api/v1/agents"), 200, "key $_ has a slot")
        for 0, 1;
    my $r = $c[2]->get("/api/v1/agents");
    unavailable_is($r, "4.5 the third has none");
    ok(scalar($small->log_lines(qr/CRM1003/)), "4.5 logged");
    status_is($c[$_]->get("/api/v1/agents"), 200, "key $_ keeps its slot")
        for 0, 1;
    error_is($c[2]->get("/api/v1/agents"), 503, "service_unavailable",
        "4.5 and the third still has none");
    error_is($small->client(key => "svc_live_" . "x" x 30)
        ->get("/api/v1/agents"), 401, "unauthorized",
        "a key that does not exist needs no slot: 401");
    my %metric = $small->client->get("/server-status", query => "auto")->body
        =~ /^CrmApi(\w+): (\d+)$/mg;
    is_deeply({ map { $_ => $metric{$_} } qw(KeysRefused Keys KeysMax
        ReadsAdmitted) }, { KeysRefused => 2, Keys => 2, KeysMax => 2,
        ReadsAdmitted => 4 }, "4.5 counted by mod_status");
    my $samples = samples($small->client->get("/metrics")->body);
    is_deeply({ map { $_ => $samples->{"crmapi_limit_$_"} } qw(full_total
        locks_recovered_total entries{table="keys"} entries_max{table="keys"}
        admitted_total{table="keys",class="read"}) }, { full_total => 2,
        locks_recovered_total => 0, 'entries{table="keys"}' => 2,
        'entries_max{table="keys"}' => 2,
        'admitted_total{table="keys",class="read"}' => 4 },
        "4.5 and in the metrics");
};
my $small_used = time;

# --- at once ------------------------------------------------------------------

subtest "4.1 exactly the limit, then 429" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @r;
    for my $n (1 .. $READS) {
        push @r, read_one($c);
        status_is($r[-1], 200, "read $n of $READS");
        headers_are($r[-1], $READS, $READS - $n, $r[0], "4.2 read $n");
    }
    for my $n (1 .. 3) {
        my $r = read_one($c);
        error_is($r, 429, "rate_limited", "4.3 one more is refused");
        headers_are($r, $READS, 0, $r[0], "4.2 on a 429");
        my $wait = $r->header("Retry-After");
        my ($from, $to) = (ceil($r[0]{before} + 60 - $r->{after}),
            ceil($r[0]{after} + 60 - $r->{before}));
        ok($wait =~ /^\d+$/ && $wait >= $from && $wait <= $to,
            "4.3 Retry-After: $from to $to seconds, $wait");
    }
    my $first;
    for my $n (1 .. $WRITES) {
        my $r = timed(sub { $c->post("/api/v1/contacts",
            { bot_id => $w->agent }) });
        $first //= $r;
        status_is($r, 201, "4.1 writes have a budget of their own");
        headers_are($r, $WRITES, $WRITES - $n, $first, "4.2 write $n");
    }
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent });
    error_is($r, 429, "rate_limited", "4.1 a write too many");
    is(sql($database, "SELECT count(*) FROM crmapi.contact WHERE"
        . " workspace_id = '" . $w->id . "'"), $WRITES, "it wrote nothing");
    status_is($w->client(key => $w->make_key("read"))->get("/api/v1/agents"),
        200, "4.1 per key: another key of the workspace has its own");
};

subtest "2.2 what costs a unit, and what does not" => sub {
    my $w = workspace($httpd);
    my $key = $w->key;
    my $agent = $w->agent;
    my $id = uuid();
    # each on keys of their own: [name, class, status, code]
    my @cases = (
        ["200", "R", 200, sub { $_[0]->get("/api/v1/agents") }],
        ["HEAD", "R", 200, sub { $_[0]->head("/api/v1/agents") }],
        ["404", "R", 404, sub { $_[0]->get("/api/v1/contacts/$id") }],
        ["404 of the route", "R", 404, sub { $_[0]->get("/api/v1/none") }],
        ["422", "R", 422,
            sub { $_[0]->get("/api/v1/agents", query => "page=0") }],
        ["201", "W", 201,
            sub { $_[0]->post("/api/v1/contacts", { bot_id => $agent }) }],
        ["404 of a PATCH", "W", 404,
            sub { $_[0]->patch("/api/v1/contacts/$id", {}) }],
        ["404 of a DELETE", "W", 404,
            sub { $_[0]->delete("/api/v1/contacts/$id") }],
        ["422 of a body", "W", 422,
            sub { $_[0]->post("/api/v1/contacts", {}) }],
        ["400", "W", 400, sub { $_[0]->request("POST", "/api/v1/contacts",
            body => "{") }],
        ["415", "W", 415, sub { $_[0]->request("POST", "/api/v1/contacts",
            body => "{}", headers => { "Content-Type" => "text/plain" }) }],
        ["405", "W", 405, sub { $_[0]->post("/api/v1/agents", {}) }],
    );
    for my $case (@cases) {
        my ($name, $class, $status, $code) = @$case;
        my $c = $w->client(key => $w->make_key("read,write"));
        my $limit = $class eq "R" ? $READS : $WRITES;
        my $first;
        for my $n (1, 2) {
            my $r = timed(sub { $code->($c) });
            $first //= $r;
            status_is($r, $status, "2.2 $name: the answer");
            headers_are($r, $limit, $limit - $n, $first, "2.2, 4.2 $name");
        }
    }
    my $reader = $w->client(key => $w->make_key("read"));
    for my $n (1 .. $WRITES + 1) {
        my $r = $reader->post("/api/v1/contacts", { bot_id => $agent });
        status_is($r, $n <= $WRITES ? 403 : 429, "2.2 a 403 costs a unit");
    }
    my $c = $w->client(key => $w->make_key("read,write"));
    my $made = $c->post("/api/v1/contacts", { bot_id => $agent });
    my $r = $c->delete("/api/v1/contacts/" . $made->data->{id});
    status_is($r, 204);
    is($r->header("X-RateLimit-Remaining"), $WRITES - 2,
        "4.2 headers on a 204");
    my $free = $w->client(key => $w->make_key("read"));
    for my $n (1 .. 20) {
        my $r = $free->options("/api/v1/contacts");
        status_is($r, 204, "4.4 OPTIONS with a key");
        is_deeply([$r->header("X-RateLimit-Limit")], [], "without headers");
    }
    is($free->get("/api/v1/agents")->header("X-RateLimit-Remaining"),
        $READS - 1, "4.4 OPTIONS is free");
};

subtest "4.2 no headers without a valid key" => sub {
    for my $r ($httpd->client->get("/api/v1/agents"),
            $httpd->client(key => "svc_live_" . "a" x 30)
            ->get("/api/v1/agents"),
            $httpd->client->options("/api/v1/agents")) {
        is_deeply([grep { /^X-RateLimit/i } map { $_->[0] }
            @{$r->{headers}}], [], "none on a " . $r->status);
    }
};

subtest "4.4 an upsert of 200 is one write" => sub {
    my $w = workspace($httpd);
    my $r = $w->client->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [map { { emails => ["p$_\@example.com"] } } 1 .. 200] });
    status_is($r, 200);
    is(scalar @{$r->data->{created}}, 200, "200 contacts");
    is($r->header("X-RateLimit-Remaining"), $WRITES - 1, "one unit");
};

subtest "4.1 many clients at once never get more, nor fewer" => sub {
    my $limit = 40;
    my $many = httpd(database => $database, children => 3,
        conf => "CrmApiReadLimit $limit\n");
    my $w = workspace($many);
    my @jobs = map { CrmTest::Child->start(sub {
        my $c = $w->client;
        my %count;
        $count{$c->get("/api/v1/agents")->status}++ for 1 .. 20;
        return \%count;
    }) } 1 .. 8;
    my %sum;
    for my $job (@jobs) {
        my $count = ($job->result)[0];
        $sum{$_} += $count->{$_} for keys %$count;
    }
    is_deeply(\%sum, { 200 => $limit, 429 => 160 - $limit },
        "4.1 of 160 requests on 8 connections exactly $limit are admitted");
    $many->stop;
};

subtest "4.1 a limit of 0 is none" => sub {
    my $free = httpd(database => $database,
        conf => "CrmApiReadLimit 0\nCrmApiWriteLimit 0\n");
    my $w = workspace($free);
    my $c = $w->client;
    my %count;
    $count{$c->get("/api/v1/agents")->status}++ for 1 .. 300;
    is_deeply(\%count, { 200 => 300 }, "300 reads, one after the other");
    $free->stop;
};

subtest "4.1 vhosts with limits of their own share a key's window" => sub {
    my $two = httpd(database => $database, conf => <<'END');
CrmApiReadLimit 4
<VirtualHost 127.0.0.1:@PORT@>
    ServerName small.example
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName large.example
    CrmApiReadLimit 7
</VirtualHost>
END
    my $w = workspace($two);
    my %c = map { $_ => $w->client(host => "$_.example") } qw(small large);
    my $ask = sub {
        my ($vhost) = @_;
        my $r = $c{$vhost}->get("/api/v1/agents");
        return join " ", $r->status, map { $r->header("X-RateLimit-$_") }
            qw(Limit Remaining);
    };
    is($ask->("small"), "200 4 3", "small 1");
    is($ask->("large"), "200 7 5", "large 2");
    is($ask->("small"), "200 4 1", "small 3");
    is($ask->("small"), "200 4 0", "small 4");
    is($ask->("small"), "429 4 0", "small: full");
    is($ask->("large"), "200 7 2", "large 5: more is allowed there");
    is($ask->("large"), "200 7 1", "large 6");
    is($ask->("large"), "200 7 0", "large 7");
    is($ask->("large"), "429 7 0", "large: full");
    $two->stop;
};

subtest "4.4 counters survive restarts of the same parent" => sub {
    my $own = httpd(database => $database, conf => "CrmApiReadLimit 6\n");
    my $w = workspace($own);
    my $ask = sub {
        my $r = $w->client->get("/api/v1/agents");
        return join " ", $r->status, $r->header("X-RateLimit-Remaining");
    };
    is($ask->(), "200 5", "one");
    is($ask->(), "200 4", "two");
    $own->restart("USR1");
    is($ask->(), "200 3", "4.4 three, after a graceful restart");
    $own->restart("HUP");
    is($ask->(), "200 2", "4.4 four, after a restart");
    # children of before go on with what they began with until they end
    my $change = sub {
        $own->write_conf($_[0]);
        $own->restart_all;
    };
    $change->("CrmApiReadLimit 5\n");
    is($ask->(), "200 0", "five is the last under the new limit of 5");
    is($ask->(), "429 0", "and no more");
    $change->("CrmApiReadLimit 50\n");
    is($ask->(), "200 44", "4.4 a larger limit forgets nothing either");
    $own->stop;
};

# --- what took a minute -------------------------------------------------------

subtest "4.1 the window rolls: (t - 60 s, t]" => sub {
    my $all = ($demand_job->result)[0];
    my @admitted = grep { $_->[2] == 200 } @$all;
    my @other = grep { $_->[2] != 200 && $_->[2] != 429 } @$all;
    is_deeply(\@other, [], "only 200 and 429");
    is(scalar(grep { $_->[1] < $admitted[0][0] + 60 } @admitted), $READS,
        "$READS in the first window");
    cmp_ok(scalar @admitted, ">", $READS, "and more in the next");
    for my $i ($READS .. $#admitted) {
        my ($old, $new) = @admitted[$i - $READS, $i];
        cmp_ok($new->[1] - $old->[0], ">=", 60,
            "never more than $READS in 60 s ($i)");
        # the latest refusal before it says that it came as soon as it could
        my ($last) = grep { $_->[2] == 429 && $_->[0] < $new->[0] }
            reverse @$all;
        ok($last && $last->[0] - $old->[1] < 60,
            "never fewer while demand is there ($i)");
    }
};

subtest "4.3 who waits for Retry-After is admitted" => sub {
    my $all = ($patience_job->result)[0];
    is_deeply([map { $_->[2] } @$all],
        [(200) x 3, (200) x 2, 429, (200) x 3, 429, (200) x 2, 429],
        "three and two, then again three and two, and no more")
        or diag(join "\n", map { join " ", map { $_ // "-" } @$_ } @$all);
    cmp_ok($all->[9][3], "<=", 6,
        "4.3 the second wait is for the fourth request only");
};

subtest "4.5 a slot idle for 60 s is reused" => sub {
    my $left = $small_used + 60 - time;
    sleep $left if $left > 0;
    my $c = $small->client(key => $three[2]);
    ok(wait_for(sub { $c->get("/api/v1/agents")->status == 200 }, 10),
        "4.5 the third key has one now");
};

done_testing;
