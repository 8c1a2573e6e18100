# SPDX-License-Identifier: Apache-2.0
# 46-answers.t: the thread that has the rows of several requests sends their
# answers, and nobody can tell (contract 2.3, 5.4, 5.5)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Mcp;
use IO::Socket ();
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Time::HiRes qw(time sleep);

plan(skip_all => "prefork: a process has one request")
    if ($ENV{CRM_MPM} || "event") eq "prefork";

my $CLIENTS = 16;
my $ROUNDS = valgrinded() || sanitized() ? 8 : 40;

my $CONF = <<'END';
MaxKeepAliveRequests 0
StartServers 1
ServerLimit 2
MaxRequestWorkers 80
MaxSpareThreads 80
END
my $database = database();

# A server of MPM, with more CONF, a workspace and contacts.
sub server {
    my ($mpm, $conf) = @_;
    my $httpd = httpd(database => $database, mpm => $mpm, unlimited => 1,
        threads => 40, shows => ["metrics"], conf => $CONF . ($conf // ""));
    my $w = workspace($httpd, twin => 0);
    my @ids = $w->import_objects([map { { object => "contact",
        bot_id => $w->agent, first_name => "N$_" } } 1 .. 30]);

    return ($httpd, $w, @ids);
}

# What HTTPD has counted: "batches", "batched_requests", "batched_answers".
sub counted {
    my ($httpd, $name) = @_;
    return sum0($httpd->client->get("/metrics")->body
        =~ /^crmapi_${name}_total\{.*\} (\d+)$/mg);
}

# How many requests of HTTPD another thread has answered.
sub answered { return counted($_[0], "batched_answers") }

# A batch has two requests at least, one of which answers itself; each is counted
# after its answer was sent.
sub counts_fit {
    my ($httpd) = @_;
    ok(wait_for(sub {
        my ($all, $in, $by) = map { counted($httpd, $_) }
            qw(batches batched_requests batched_answers);
        return $all && $in >= 2 * $all && $by <= $in - $all;
    }, 20), "the numbers of batches, their requests and answers fit together");
}

sub clients {
    my ($httpd, $w) = @_;
    return [map { $httpd->client(key => $w->key, timeout => 60) }
        1 .. $CLIENTS];
}

my $sent = 0;

# The text of a request of CLIENT for PATH, METHOD or GET, with more HEADERS.
# Return it and its id.
sub request {
    my ($client, $path, $method, @headers) = @_;
    my $id = "r-" . ++$sent;

    return (join("\r\n", ($method || "GET") . " /api/v1$path HTTP/1.1",
        "Host: x", "Authorization: Bearer $client->{key}",
        "X-Request-Id: $id", @headers, "", ""), $id);
}

# What is asked for in turn, and what must come: [path, method, header] of a
# contact's ID, and a check of the answer.
my @KINDS = (
    [sub { "/contacts/$_[0]" }, "GET", [], sub { $_[0]->status == 200
        && $_[0]->data->{id} eq $_[1] }],
    [sub { "/contacts?ids=$_[0]" }, "GET", [], sub { $_[0]->status == 200
        && @{$_[0]->data} == 1 && $_[0]->data->[0]{id} eq $_[1] }],
    [sub { "/contacts/$_[0]" }, "HEAD", [], sub { $_[0]->status == 200
        && $_[0]->body eq "" }],
    [sub { "/contacts/$_[0]" }, "GET", ["If-None-Match: *"],
        sub { $_[0]->status == 304 }],
    [sub { "/contacts/" . uuid() }, "GET", [], sub { $_[0]->status == 404 }],
    [sub { "/contacts/$_[0]/activities" }, "GET", [],
        sub { $_[0]->status == 200 && !@{$_[0]->data} }],
);

for my $mpm (qw(event worker)) {
    my ($httpd, $w, @ids) = server($mpm);

    subtest "$mpm: each client has its own answers" => sub {
        my $clients = clients($httpd, $w);
        my @wrong;

        for my $round (1 .. $ROUNDS) {
            my @asked;
            for my $i (0 .. $#$clients) {
                my $kind = $KINDS[($round % 4 ? 0 : $round / 4 + $i) % @KINDS];
                my $of = $ids[rand @ids];
                my ($text, $id) = request($clients->[$i], $kind->[0]($of),
                    $kind->[1], @{$kind->[2]});
                $clients->[$i]->send_raw($text);
                push @asked, [$kind, $of, $id];
            }
            for my $i (0 .. $#$clients) {
                my ($kind, $of, $id) = @{$asked[$i]};
                my $got = $clients->[$i]->read_response($kind->[1]);
                push @wrong, "$kind->[1] " . $kind->[0]($of) . ": "
                    . $got->status . " " . $got->body
                    if !$kind->[3]($got, $of)
                    || $got->header("X-Request-Id") ne $id;
            }
        }
        is_deeply(\@wrong, [], "all are right");
        cmp_ok(answered($httpd), ">", 0, "others' threads have sent some");
        counts_fit($httpd);
    };

    subtest "$mpm: each write has its own answer" => sub {
        my $clients = clients($httpd, $w);
        my $before = answered($httpd);
        my (@wrong, %made);

        for my $round (1 .. $ROUNDS) {
            my $create = $round % 2;
            my @names = map { "R$round-$_" } 0 .. $#$clients;
            my @of = map { $create ? "" : "/$ids[($round + $_) % @ids]" }
                0 .. $#$clients;
            for my $i (0 .. $#$clients) {
                $clients->[$i]->ask($create ? "POST" : "PATCH",
                    "/api/v1/contacts$of[$i]", json => { last_name => $names[$i],
                        $create ? (bot_id => $w->agent) : () });
            }
            for my $i (0 .. $#$clients) {
                my $got = $clients->[$i]->read_response("POST");
                my $id = ($got->data // {})->{id} // "";
                push @wrong, $got->status . " " . $got->body
                    if $got->status != ($create ? 201 : 200)
                    || $got->data->{last_name} ne $names[$i]
                    || ($create ? $made{$id}++ : $of[$i] ne "/$id")
                    || $create && $got->header("Location")
                    ne "/api/v1/contacts/$id";
            }
        }
        is_deeply(\@wrong, [], "all are right");
        cmp_ok(answered($httpd), ">", $before,
            "others' threads have sent some");
    };

    subtest "$mpm: requests that come together are answered in order" => sub {
        my $clients = clients($httpd, $w);
        my (@ids_of, @got);

        for my $client (@$clients) {
            my @three = map { [request($client, "/contacts/$ids[$_]")] } 1 .. 3;
            $client->send_raw(join "", map { $_->[0] } @three);
            push @ids_of, [map { $_->[1] } @three];
        }
        for my $client (@$clients) {
            push @got, [map { $client->read_response("GET")
                ->header("X-Request-Id") } 1 .. 3];
        }
        is_deeply(\@got, \@ids_of, "three of each client");
    };

    subtest "$mpm: a connection that ends is closed" => sub {
        my $clients = clients($httpd, $w);

        $_->send_raw((request($_, "/contacts/$ids[0]", "GET",
            "Connection: close"))[0]) for @$clients;
        $_->fill_until(sub { 0 }) for @$clients;    # until it is closed
        is_deeply([map { [$_->read_response("GET")->status, $_->{buffer}] }
            @$clients], [([200, ""]) x $CLIENTS], "after the answer");
    };

    subtest "$mpm: clients that go leave nothing behind" => sub {
        for (1 .. 5) {
            my $clients = clients($httpd, $w);
            $_->ask("GET", "/api/v1/contacts/$ids[0]") for @$clients;
            $_->close for @$clients;
        }
        is($httpd->client(key => $w->key)->get("/api/v1/contacts/$ids[0]")->status,
            200, "the next one is served");
    };

    subtest "$mpm: a client that does not read holds up nobody" => sub {
        my @slow = map { $httpd->client(key => $w->key, timeout => 60) } 1 .. 4;
        my $clients = clients($httpd, $w);

        for (@slow) {
            setsockopt($_->socket, SOL_SOCKET, SO_RCVBUF, 2048);
        }
        # more answers than all buffers take
        for my $n (1 .. 200) {
            $_->socket->blocking(0) for @slow;
            $_->ask("GET", "/api/v1/contacts?page_size=100") for @slow;
            next if $n % 20;
            $_->ask("GET", "/api/v1/contacts/$ids[0]") for @$clients;
            is_deeply([map { $_->read_response("GET")->status } @$clients],
                [(200) x $CLIENTS], "others are answered");
        }
        $_->close for @slow;
    };

    $httpd->stop;
}

subtest "the access log has each answer once, soon, with its own time" => sub {
    my ($httpd, $w, @ids) = server(undef, <<'END');
LogFormat "%{crmapi-route}n %>s %D" times
CustomLog @DIR@/times_log times
END
    my $clients = clients($httpd, $w);
    my @waited;

    for my $round (1 .. 10) {
        my $began = time;
        $_->ask("GET", "/api/v1/contacts/$ids[0]") for @$clients;
        for (@$clients) {
            $_->read_response("GET");
            push @waited, time - $began;
        }
        sleep 0.015;            # shorter than a thread waits for a client
    }
    my $log = sub { [read_file($httpd->dir . "/times_log", "")
        =~ m{^GET /contacts/\{id\} 200 (\d+)$}mg] };
    ok(wait_for(sub { @{$log->()} >= 10 * $CLIENTS }, 30),
        "all are logged while their clients are silent");
    my @us = sort { $a <=> $b } @{$log->()};
    @waited = sort { $a <=> $b } @waited;
    is(scalar @us, 10 * $CLIENTS, "once");
    cmp_ok($us[@us / 2] / 1e6, "<", $waited[@waited / 2] + 0.005,
        "the time until the next request is not in it");
    cmp_ok(answered($httpd), ">", 0, "others' threads have sent some");
    $httpd->stop;
};

subtest "an answer inside a tool's result is never sent by itself" => sub {
    my ($httpd, $w, @ids) = server(undef, "CrmApiMcp On\n");
    my $clients = clients($httpd, $w);
    my $headers = CrmTest::Mcp->new($httpd->client)
        ->headers("tools/call", { name => "contacts_get" });
    my (@got, @want);

    for my $round (1 .. 10) {
        my @asked = map { $ids[rand @ids] } @$clients;
        for my $i (0 .. $#$clients) {
            $clients->[$i]->ask("POST", $CrmTest::Mcp::PATH, headers => $headers,
                json => { jsonrpc => "2.0", id => $i, method => "tools/call",
                    params => { name => "contacts_get",
                        arguments => { id => $asked[$i] },
                        _meta => CrmTest::Mcp::meta() } });
        }
        push @want, map { [$_, $asked[$_]] } 0 .. $#$clients;
        push @got, map { my $r = decode_json($_->read_response("POST")->body);
            [$r->{id}, $r->{result}{structuredContent}{data}{id}] } @$clients;
    }
    is_deeply(\@got, \@want, "each has the whole result");
    is(answered($httpd), 0, "others' threads have sent none");
    $httpd->stop;
};

subtest "a graceful restart loses no answer" => sub {
    # new processes connect, on a busy machine slowly
    my ($httpd, $w, @ids) = server(undef, "CrmApiDatabaseWait 30s\n");
    my $clients = clients($httpd, $w);
    my ($lost, $restarts, $done) = (0, 0, sub { });

    for my $round (1 .. $ROUNDS) {
        if ($round % 10 == 5) {
            $done->();
            $done = $httpd->begin_restart("USR1");
            $restarts++;
        }
        # a connection that was closed while it was idle is opened again
        my @asked = grep { my $client = $_;
            $client->ask("GET", "/api/v1/contacts/$ids[0]") }
            @$clients;
        for (@asked) {
            my $got = eval { $_->read_response("GET") };
            $lost++ if $@ || ($got && $got->status != 200);
            $_->close if !$got || ($got->header("Connection") // "") =~ /close/i;
        }
    }
    is($lost, 0, "in $restarts restarts");
    $done->();
    $httpd->stop;
};

done_testing;
