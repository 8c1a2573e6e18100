# SPDX-License-Identifier: Apache-2.0
# 47-batch-writes.t: creates and PATCHes that come at the same time share a
# statement, and nobody can tell (contract 2.3, 5.5, 6.6, 9, 12.1)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Session;
use IO::Select;

my $prefork = ($ENV{CRM_MPM} || "event") eq "prefork";
my $slow = valgrinded() || sanitized() ? 10 : 1;
my $CLIENTS = $prefork ? 16 : 64;
my $ROUNDS = $slow > 1 ? 4 : 12;

# One process, so that requests meet, with a thread for each client.
my $database = database();
my %CONF = (database => $database, children => $prefork ? 36 : 1, threads => 80,
    unlimited => 1, shows => ["server-status"]);
my $CONF = "MaxKeepAliveRequests 0\n";
my $httpd = httpd(%CONF, conf => $CONF);
my $plain = httpd(%CONF, conf => "${CONF}CrmApiBatches Off\n");

sub clients {
    my ($server, $count) = @_;
    return [map { $server->client(timeout => 60) } 1 .. $count];
}

# Have CLIENT send REQUEST: {method, path, json, key}.
sub send_request {
    my ($client, $request) = @_;
    $client->ask($request->{method}, "/api/v1$request->{path}",
        key => $request->{key}, json => $request->{json});
}

# Have CLIENTS send REQUESTS, each its share in turn, all at the same time.
# Returns the answers in the order of REQUESTS.
sub send_all {
    my ($clients, @requests) = @_;
    my @answers;

    while (@requests) {
        my @now = splice @requests, 0, scalar @$clients;
        send_request($clients->[$_], $now[$_]) for 0 .. $#now;
        push @answers, map { $clients->[$_]->read_response($now[$_]{method}) }
            0 .. $#now;
    }
    return @answers;
}

sub post { my ($w, $json) = @_; return { method => "POST",
    path => "/contacts", key => $w->key, json => $json } }
sub patch { my ($w, $id, $json) = @_; return { method => "PATCH",
    path => "/contacts/$id", key => $w->key, json => $json } }

sub pick { $_[rand @_] }

# --- the same writes by one client and by many --------------------------------

my $ROWS = $CLIENTS;

# A workspace with contacts and companies of the same names as any other of
# these, a webhook, a key that is revoked, and one that may only read.
sub make_workspace {
    my $w = workspace($httpd);
    my @companies = $w->import_objects([map { { object => "company",
        bot_id => $w->agent, name => "Company $_" } } 0 .. 2]);
    my @contacts = $w->import_objects([map { { object => "contact",
        bot_id => $w->agent, last_name => "Old $_", job_title => "none" } }
        0 .. $ROWS - 1]);
    my $dead = $w->make_key("read,write", "dead");
    $w->ctl("key", "revoke", ($w->key_ids)[-1]);
    $w->webhook("http://127.0.0.1:9/none", "contact.created");
    return { w => $w, companies => \@companies, contacts => \@contacts,
        dead => $dead, reader => $w->make_key("read", "reader") };
}

# Writes as functions of such a workspace. Each names its row by N, so that the
# order of all makes no difference to the end.
sub random_create {
    my ($n) = @_;
    my %values = (last_name => "New $n");
    my $company = pick(0 .. 2, undef, undef, "unknown");
    my $key = pick(("key") x 20, "dead", "reader");
    my $type = pick("contact", "contact", "contact", "activity");
    my $first = pick("Ann", "", "\x{dc}n{\"\\,}", "NULL", "x" x 5000, "long");

    $values{first_name} = $first eq "long" ? "x" x 100_000 : $first;
    $values{tags} = [pick("a", "b,c", "{d}"), "e"] if rand() < 0.5;
    $values{emails} = [{ email => "New$n\@x.example", is_primary => true }]
        if rand() < 0.5;
    $values{custom_fields} = { n => $n, "q\"" => [1, undef] } if rand() < 0.3;
    $values{deal_value} = pick(1.5, 0, 1e9) if rand() < 0.3;
    return sub {
        my ($s) = @_;
        my $id = !defined $company ? undef : $company eq "unknown"
            ? "01890000-0000-7000-8000-000000000000"
            : $s->{companies}[$company];
        my $of = $key eq "key" ? $s->{w}->key : $s->{$key};
        return { method => "POST", path => "/activities", key => $of,
            json => { activity_type => "note", title => "New $n",
                company_id => $id // $s->{companies}[0] } }
            if $type eq "activity";
        return { method => "POST", path => "/contacts", key => $of,
            json => { %values, bot_id => $s->{w}->agent,
                defined $id ? (company_id => $id) : () } };
    };
}

# The sets of fields of the PATCHes: each is written once in a row.
my @SETS = (
    sub { (job_title => "Job $_[0]") },
    sub { (city => "City $_[0]", state => pick("", undef, "NULL")) },
    sub { (tags => [map { "t$_" } 0 .. rand 3], notes => "Note $_[0]") },
    sub { (first_name => "First $_[0]", phone_numbers => [{
        phone_number => "+49 30 $_[0]", is_primary => true }]) },
);

sub random_patches {
    my ($n) = @_;
    return map { my $set = $_;
        my %values = $set->($n);
        my $what = pick(("row") x 12, "unknown row", "unknown company",
            "other agent", "dead", "reader");
        sub {
            my ($s) = @_;
            my %more = $what eq "unknown company"
                ? (company_id => "01890000-0000-7000-8000-000000000000")
                : $what eq "other agent" ? (bot_id => $s->{w}->id) : ();
            return { method => "PATCH", json => { %values, %more },
                path => "/contacts/" . ($what eq "unknown row"
                    ? "01890000-0000-7000-8000-000000000000"
                    : $s->{contacts}[$n]),
                key => $s->{$what} || $s->{w}->key };
        };
    } @SETS;
}

# The rows of S as text, but for ids and times.
sub state_of {
    my ($s) = @_;
    my $w = $s->{w}->id;
    my @rows = map { join "|", map { $_ // "-" } @$_ } sql($database, <<"SQL");
SELECT 'contact', c.last_name, c.first_name, c.job_title, c.city, c.state,
       c.tags, c.notes, c.emails, c.phone_numbers, c.custom_fields,
       c.deal_value, o.name, c.bot_id = '@{[$s->{w}->agent]}', c.email_key,
       c.phone_key, c.search, c.phone_digits, c.updated_at > c.created_at,
       (SELECT count(*) FROM crmapi.event e
        JOIN crmapi.webhook_delivery d ON d.workspace_id = e.workspace_id
            AND d.event_id = e.id
        JOIN crmapi.job j ON j.id = d.job_id
            AND j.payload->>'delivery_id' = d.id::text
        WHERE e.workspace_id = c.workspace_id
          AND e.fields->>'id' = c.id::text
          AND e.fields->>'last_name' = c.last_name)
FROM crmapi.contact c
LEFT JOIN crmapi.company o ON (o.workspace_id, o.id)
    = (c.workspace_id, c.company_id)
WHERE c.workspace_id = '$w'
UNION ALL
SELECT 'activity', a.title, o.name, a.activity_type, NULL, NULL, NULL, NULL,
       NULL, NULL, a.metadata, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL
FROM crmapi.activity a JOIN crmapi.company o ON (o.workspace_id, o.id)
    = (a.workspace_id, a.company_id)
WHERE a.workspace_id = '$w'
SQL
    return [sort @rows];
}

# What an answer says, but for ids and times.
sub essence {
    my ($s, $answer) = @_;
    my $text = $answer->status . " " . $answer->body;
    my $data = $answer->status < 300 ? $answer->data : {};

    my %name = ((map { $s->{companies}[$_] => "company $_" } 0 .. 2),
        (map { $s->{contacts}[$_] => "contact $_" } 0 .. $ROWS - 1),
        $s->{w}->agent => "agent", $s->{w}->id => "workspace");
    $name{$data->{id}} //= "new" if $data->{id};
    $text =~ s/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/$name{$1} || $1/ge;
    $text =~ s/"\d{4}-\d\d-\d\dT[^"]*"/TIME/g;
    $text =~ s/"request_id":"[^"]*"/REQUEST/g;
    return $text;
}

subtest "the same writes by one client and by $CLIENTS" => sub {
    my ($one, $many) = map { make_workspace() } 1, 2;
    my @writes = ((map { random_create($_) } 1 .. $CLIENTS * $ROUNDS),
        map { random_patches($_) } 0 .. $ROWS - 1);
    # of each kind many at a time, in any order
    my @patches = splice @writes, $CLIENTS * $ROUNDS;
    my @mixed = map { my $set = $_; map { $patches[$_ * @SETS + $set] }
        sort { rand() <=> 0.5 } 0 .. $ROWS - 1 } 0 .. $#SETS;
    push @writes, @mixed;
    my (@expected, @got);

    @expected = send_all(clients($plain, 1), map { $_->($one) } @writes);
    my $count = $httpd->shared_by(sub {
        @got = send_all(clients($httpd, $CLIENTS), map { $_->($many) } @writes);
    });
    my (%status, $wrong);
    for my $i (0 .. $#writes) {
        my ($is, $should) = (essence($many, $got[$i]),
            essence($one, $expected[$i]));
        $status{$writes[$i]->($one)->{method} . " " . $got[$i]->status}++;
        is($is, $should, "answer $i") if $is ne $should && $wrong++ < 5;
    }
    is($wrong, undef, "each answer is that of a statement of its own");
    my @missing = grep { !$status{$_} } map { ("POST $_", "PATCH $_") }
        401, 403, 422;
    is_deeply([@missing, grep { !$status{$_} } "POST 201", "PATCH 200",
        "PATCH 404"], [], "of all kinds") or diag(explain(\%status));
    is_deeply(state_of($many), state_of($one), "the same rows, each with the"
        . " same webhook events, deliveries and jobs");
    is(count_rows($many->{w}, "event"),
        count_rows($one->{w}, "event"), "no event more");
    triggers_kept_up($database, "all totals are right");
    is($plain->client->counter("BatchedRequests"), 0, "CrmApiBatches Off: none shared");
    plan(skip_all => "prefork: a process has one request") if $prefork;
    cmp_ok($count, ">", $CLIENTS, "CrmApiBatches On: $count did");
};

# --- writes of one row --------------------------------------------------------

my $w = workspace($httpd);
my @ids = $w->import_objects([map { { object => "contact",
    bot_id => $w->agent, last_name => "Row $_" } } 1 .. $CLIENTS]);
my $clients = clients($httpd, $CLIENTS);

subtest "PATCHes of one row at the same time are all done" => sub {
    my %seen;
    for my $round (1 .. 3) {
        # two of each of half of the rows, and many of the first
        my @rows = ((0) x ($CLIENTS / 4), map { ($_, $_) }
            1 .. $CLIENTS * 3 / 8);
        my @answers = send_all($clients, map { patch($w, $ids[$rows[$_]],
            { job_title => "$round.$_" }) } 0 .. $#rows);
        is_deeply([map { $_->status == 200 ? $_->data->{job_title} : $_->body }
            @answers], [map { "$round.$_" } 0 .. $#rows],
            "each gets what it wrote");
        $seen{$ids[$rows[$_]]}{$answers[$_]->data->{updated_at}}++
            for 0 .. $#rows;
    }
    is_deeply([grep { $_ > 1 } map { values %$_ } values %seen], [],
        "each has changed updated_at");
    my $last = (sort keys %{$seen{$ids[0]}})[-1];
    is($w->client->get("/api/v1/contacts/$ids[0]")->data->{updated_at}, $last,
        "the last is what remains");
};

subtest "workspaces do not mix" => sub {
    my @w = ($w, map { workspace($httpd) } 1 .. 3);
    my $bad = 0;
    for my $round (1 .. 5) {
        my @answers = send_all($clients, map { post($w[$_ % 4], {
            bot_id => $w[$_ % 4]->agent, last_name => "$round.$_" }) }
            0 .. $CLIENTS - 1);
        for my $i (0 .. $#answers) {
            my $r = $w[$i % 4]->client->get("/api/v1/contacts/"
                . $answers[$i]->data->{id});
            $bad++ if $r->status != 200 || $r->body ne $answers[$i]->body
                || $r->data->{workspace_id} ne $w[$i % 4]->id
                || $r->data->{last_name} ne "$round.$i";
        }
        # another's row with the own key
        $bad++ for grep { $_->status != 404 } send_all($clients,
            map { patch($w[1 + $_ % 3], $ids[$_], { job_title => "stolen" }) }
            0 .. $CLIENTS - 1);
    }
    is($bad, 0, "each row is where its key belongs");
    is(count_rows($w, "contact", "job_title = 'stolen'"), 0, "none is stolen");
};

# --- locks --------------------------------------------------------------------

# Have the clients send REQUESTS while LOCK is held. Only those whose numbers
# are in WAITING wait for it.
sub wait_alone {
    my ($lock, $waiting, @requests) = @_;
    my %waits = map { $_ => 1 } @$waiting;
    my $let_go = holding($database, $lock);
    my @others = grep { !$waits{$_} } 0 .. $#requests;

    send_request($clients->[$_], $requests[$_]) for 0 .. $#requests;
    my @answers = map { $clients->[$_]->read_response("POST") } @others;
    is_deeply([grep { $_->status >= 300 } @answers], [],
        "all others are answered");
    is(scalar(IO::Select->new(map { $clients->[$_]{socket} } @$waiting)
        ->can_read(0)), undef, "who needs it waits") if @$waiting;
    wait_blocked($database, scalar @$waiting);
    $let_go->();
    is_deeply([grep { $_->status >= 300 } map { $clients->[$_]->read_response(
        "POST") } @$waiting], [], "until it is free");
}

subtest "a row that is locked delays only who writes it" => sub {
    for my $round (0 .. 4) {
        my $n = int($round * ($CLIENTS - 1) / 4);
        wait_alone("SELECT FROM crmapi.contact WHERE id = '$ids[$n]'"
            . " FOR UPDATE", [$n], map { patch($w, $ids[$_],
            { city => "$round.$_" }) } 0 .. $CLIENTS - 1);
    }
};

subtest "so does a row that is referred to" => sub {
    my ($company) = $w->import_objects([{ object => "company",
        bot_id => $w->agent, name => "Locked" }]);
    for my $round (0 .. 2) {
        my $n = int($round * ($CLIENTS - 1) / 2);
        wait_alone("SELECT FROM crmapi.company WHERE id = '$company'"
            . " FOR UPDATE", [$n], map { post($w, { bot_id => $w->agent,
            last_name => "$round.$_", $_ == $n ? (company_id => $company)
            : (company_id => undef) }) } 0 .. $CLIENTS - 1);
    }
};

# --- failures -----------------------------------------------------------------

subtest "backends are killed: no write is done twice" => sub {
    # new sessions may take longer than CrmApiDatabaseWait
    $httpd->may_log(qr/CRM200[126]: database: /, qr/CRM1303: /);
    my $killer = CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my $killed = 0;
        while ($go_on->()) {
            $killed += sql("postgres", "SELECT count(pg_terminate_backend(pid))"
                . " FROM (SELECT pid FROM pg_stat_activity WHERE datname ="
                . " '$database' AND state = 'active' AND query LIKE '%batch%'"
                . " AND pid <> pg_backend_pid() LIMIT 1) a");
            select undef, undef, undef, 0.01;
        }
        return $killed;
    });
    my (%status, @names);
    for my $round (1 .. $ROUNDS * 4) {
        my @new = map { "Once $round.$_" } 1 .. $CLIENTS;
        my @answers = send_all($clients, map { post($w, { last_name => $_,
            bot_id => $w->agent }) } @new);
        $status{$answers[$_]->status}{$new[$_]} = 1 for 0 .. $#new;
    }
    $killer->stop;
    my ($killed) = $killer->result;
    my %rows = map { $_->[0] => $_->[1] } sql($database, "SELECT last_name,"
        . " count(*) FROM crmapi.contact WHERE workspace_id = '@{[$w->id]}'"
        . " AND last_name LIKE 'Once %' GROUP BY 1");
    is_deeply([grep { !/^(?:201|503)$/ } keys %status], [], "201 or 503");
    is_deeply([grep { $rows{$_} > 1 } keys %rows], [], "no row twice");
    is_deeply([grep { !$rows{$_} } keys %{$status{201}}], [],
        "each 201 has its row");
    triggers_kept_up($database, "the totals are right");
    plan(skip_all => "prefork: a process has one request") if $prefork;
    cmp_ok($killed, ">", 0, "$killed backends were killed");
    note("503: " . keys %{$status{503} || {}});
};

$_->stop for $httpd, $plain;
done_testing;
