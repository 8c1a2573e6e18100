# SPDX-License-Identifier: Apache-2.0
# Bench/Growth.pm: how mod_crmapi does as data, workspaces, keys, writers and
# distance grow; methods of Bench::Run
package Bench::Growth;
use strict;
use warnings;
use JSON::PP ();
use Time::HiRes qw(sleep time);
use CrmTest::Postgres;
use CrmTest::Process qw(read_file run_program);
use Bench::Cluster;
use Bench::Load qw(wrk h2load pgbench median);
use Bench::Report;
use Bench::Server;
use Bench::Work;

my $json = JSON::PP->new->utf8->canonical;
sub number { Bench::Report::number(@_) }

# A contestant for interleave(): SERVER with REQUESTS.
sub contestant {
    my ($self, $name, $server, $requests, %arg) = @_;
    my $file = Bench::Load::request_file(@$requests);
    return [$name, sub { wrk($server, $file, top => $self->{top},
        seconds => $_[0], %arg) }];
}

# Median rate of NAME in RESULT, and how many times as dear as THAN it is.
sub rate_of { median(map { $_->{rate} } @{$_[0]{$_[1]}}) }
sub cost {
    my ($result, $name, $than) = @_;
    return Bench::Report::over_rounds($result, sub {
        $_[0]{$than}{rate} / $_[0]{$name}{rate} });
}

sub growth {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $server = start_crmapi($self);
    my @rows;

    $self->{report}->add("\n### From 1,000 contacts to $self->{contacts}\n\n"
        . "Requests a second in the workspace of 1,000 contacts and in the"
        . " large one.\n");
    for my $name (qw(list by-email get tag)) {
        my @contestants = map { my ($label, $workspace, $key) = @$_;
            contestant($self, $label, $server, [Bench::Work->requests($name,
                $cluster, $workspace, Bench::Cluster::key($key))])
        } ["1,000", $Bench::Cluster::THOUSAND, 1],
            ["large", $Bench::Cluster::MAIN, 0];
        $self->say("growth: $name");
        my $result = $self->interleave(@contestants);
        my $cost = cost($result, "large", "1,000");
        push @rows, [$name, number(rate_of($result, "1,000")),
            number(rate_of($result, "large")), number($cost)];
        $self->{report}->verdict("$name: cost at $self->{contacts} contacts"
            . " to 1,000", $cost, 1.5);
    }
    $self->{report}->table(["", "1,000", "large", "cost"], @rows);
    pages($self, $server);
    cursors($self, $server);
    searches($self, $server);
    $server->stop;
}

# Page 1, the middle and the last, and the plain OFFSET of the middle.
sub pages {
    my ($self, $server) = @_;
    my $last = int(($self->{contacts} + 24) / 25);
    my $middle = int($last / 2);
    my $key = Bench::Cluster::key(0);
    my %page = (first => 1, quarter => int($last / 4) || 1,
        middle => $middle || 1, "three quarters" => int($last * 3 / 4) || 1,
        last => $last);
    my @names = ("first", "quarter", "middle", "three quarters", "last");

    $self->say("growth: pages");
    # contacts of writes may have come: the last page is the last one still
    my ($total) = $self->{cluster}->sql("SELECT sum(n) FROM crmapi.counter
        WHERE workspace_id = '$Bench::Cluster::MAIN' AND kind = 'contact'
          AND parent = '00000000-0000-0000-0000-000000000000'");
    $page{last} = int(($total->[0] + 24) / 25);
    my $plain = "SELECT t.*, (SELECT max(a.created_at) FROM crmapi.activity a
        WHERE a.workspace_id = t.workspace_id AND a.contact_id = t.id) FROM
        (SELECT t.* FROM crmapi.contact t WHERE t.workspace_id =
            '$Bench::Cluster::MAIN' ORDER BY t.created_at DESC, t.id DESC
        LIMIT 25 OFFSET " . ($page{middle} - 1) * 25 . ") t;\n";
    my $result = $self->interleave((map { contestant($self, $_, $server,
        [[$key, "GET", "/api/v1/contacts?page=$page{$_}"]],
        connections => 4) } @names), ["plain", sub {
            pgbench($self->{cluster}, $plain, seconds => $_[0],
                connections => 4) }]);
    my %p50 = map { my $n = $_; $n => median(map { $_->{p50} }
        @{$result->{$n}}) } @names;
    $self->{report}->add("\n### Pages of 25\n\nFour connections. The plain"
        . " OFFSET of the middle page, by pgbench, without HTTP: "
        . number(rate_of($result, "plain")) . "/s.\n");
    $self->{report}->table(["page", "requests/s", "p50 ms",
            "cost to the first"], map { ["$_ ($page{$_})",
            number(rate_of($result, $_)), number($p50{$_}),
            number(cost($result, $_, "first"))] } @names);
    $self->{report}->verdict("last page: cost to page 1",
        cost($result, "last", "first"), 1.5);
    for my $name ("quarter", "three quarters", "last") {
        $self->{report}->verdict("$name page: cost to the middle",
            cost($result, $name, "middle"), 1.1);
    }
    $self->{report}->verdict("middle page: cost to the plain OFFSET",
        cost($result, "middle", "plain"), 0.5);
}

# The cursors behind each of the SHARES, from 0 to 1, of the contacts, in order.
sub cursors_at {
    my ($self, $server, @shares) = @_;
    my $path = "/api/v1/contacts?page_size=100&cursor=";
    my ($cursor, $n, @found) = ("*", 0);

    while (@found < @shares) {
        my ($status, $body) = Bench::Work::send_request($server,
            [Bench::Cluster::key(0), "GET", $path . $cursor], "raw");
        ($cursor) = $body =~ /"next_cursor":"([^"]+)"/
            or die "bench: $status, and no cursor after $n contacts\n";
        $n += 100;
        push @found, $cursor if $n >= $shares[@found] * $self->{contacts};
    }
    return @found;
}

# Pages by cursor (contract 13.3), and a search of a common word by one.
sub cursors {
    my ($self, $server) = @_;
    my %share = (quarter => 0.25, middle => 0.5, "three quarters" => 0.75,
        last => 0.9);
    my @deep = sort { $share{$a} <=> $share{$b} } keys %share;
    my $list = "/api/v1/contacts?cursor=";

    $self->say("growth: cursors");
    my %path = (first => "$list*", search => "/api/v1/contacts?search=an&cursor=*");
    @path{@deep} = map { $list . $_ } cursors_at($self, $server, @share{@deep});
    my $result = $self->interleave(map { contestant($self, $_, $server,
        [[Bench::Cluster::key(0), "GET", $path{$_}]], connections => 4) }
        "first", @deep, "search");
    my %p50 = map { my $n = $_; $n => median(map { $_->{p50} }
        @{$result->{$n}}) } keys %path;
    $self->{report}->add("\n### Pages of 25 by cursor\n\nFour connections."
        . " \"search\" is the first page of `search=an`.\n");
    $self->{report}->table(["page", "requests/s", "p50 ms",
        "cost to the first"], map { [$_, number(rate_of($result, $_)),
            number($p50{$_}), number(cost($result, $_, "first"))] }
        "first", @deep, "search");
    $self->{report}->verdict("$_ page by cursor: cost to the first",
        cost($result, $_, "first"), 1.1) for @deep;
    $self->{report}->verdict("search=an by cursor: p50 ms", $p50{search}, 20);
}

# Searches that find much, and whether they read all tables.
sub searches {
    my ($self, $server) = @_;
    my $key = Bench::Cluster::key(0);
    my $scans = sub { scalar $self->{cluster}->sql("SELECT seq_scan
        FROM pg_stat_user_tables WHERE relid = 'crmapi.contact'::regclass") };
    my @rows;

    $self->say("growth: searches");
    $self->{cluster}->sql("SELECT pg_stat_force_next_flush()");
    my $before = $scans->();
    for my $text ($self->{quick} ? ("a", "anna", "zzz") : ("a", "an", "ann",
            "anna", "company", "anna meyer", "+1556", "zzz", "quaxaaaa")) {
        my $uri = $text =~ s/\+/%2B/r =~ s/ /%20/r;
        my $request = [$key, "GET", "/api/v1/contacts?search=$uri"];
        my $begin = time;
        my ($status, $body) = Bench::Work::send_request($server, $request);
        my $once = (time - $begin) * 1000;
        my $file = Bench::Load::request_file($request);
        my $r = wrk($server, $file, top => $self->{top}, connections => 1,
            seconds => $self->{seconds});
        # one that takes longer than wrk runs is timed by itself
        push @rows, ["`$text`", $body->{pagination}{total},
            number($r->{n} ? $r->{p50} : $once),
            number($r->{n} ? $r->{p99} : $once), $status];
        my $file2 = Bench::Load::request_file([Bench::Cluster::key(101),
            @$request[1, 2]]);
        my $small;
        $small = wrk($server, $file2, top => $self->{top},
            connections => 1, seconds => 1) unless $self->{quick};
        push @{$rows[-1]}, number($small->{p50});
    }
    $self->{report}->add("\n### Searches\n\nOne connection; in the last column"
        . " the same search by a workspace of 100 contacts, beside the large"
        . " one.\n");
    $self->{report}->table(["search", "found", "p50 ms", "p99 ms", "status",
        "small p50 ms"], @rows);
    $self->{report}->verdict("sequential scans of contacts by searches",
        $scans->() - $before, 0);
}

# Send each of REQUESTS to SERVER once, spread over a minute: the use of a key is
# recorded once a minute, and as many are then due in any second.
sub use_once {
    my ($self, $server, @requests) = @_;
    my $parts = $self->{quick} ? 1 : 12;
    my $size = int(@requests / $parts) + 1;

    while (my @part = splice @requests, 0, $size) {
        my $end = time + 60 / $parts;
        my $r = wrk($server, Bench::Load::request_file(@part),
            top => $self->{top}, ordered => 1, seconds => 3);
        die "bench: $r->{errors} requests of " . @part . " keys failed\n"
            if $r->{errors};
        die "bench: a part of the keys was not used\n" if $r->{n} < 1.05 * @part;
        sleep($end - time) if @requests && time < $end;
    }
}

# Many keys at once, and the memory of the limiter.
sub keys {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $n = $self->{quick} ? 2000 : 65536;
    my $server = start_crmapi($self);
    my @get = Bench::Work->requests("get", $cluster, $Bench::Cluster::MAIN,
        Bench::Cluster::key(0));
    my @many = map { [Bench::Cluster::key(1_000_000 + $_), "GET",
        $get[$_ % @get][2]] } 0 .. $n - 2;

    $self->say("$n keys");
    $cluster->add_keys($Bench::Cluster::MAIN, 1_000_000, 1_000_000 + $n - 2);
    $cluster->sql("VACUUM ANALYZE crmapi.api_key");
    push @many, $get[0];
    use_once($self, $server, @many);
    my $all = contestant($self, "many", $server, \@many)->[1];
    # uses that became due while one key was used are not measured
    my $result = $self->interleave(
        contestant($self, "one", $server, [map { [$get[0][0], @$_[1, 2]] }
            @many]), ["many", sub { $all->(@_); $all->(@_) }]);
    my $cost = cost($result, "many", "one");
    # what the default limits take
    $server->stop;
    my $limited = start_crmapi($self, conf => "CrmApiReadLimit 120\n"
        . "CrmApiWriteLimit 60\n");
    no warnings "portable";         # addresses have 64 bits
    my ($size) = sort { $b <=> $a } map { /^(\w+)-(\w+) rw-s/
        ? hex($2) - hex($1) : () } split /\n/,
        read_file("/proc/" . ($limited->pids)[-1] . "/maps");
    $limited->stop;
    $self->{report}->add("\n### $n keys\n\n");
    $self->{report}->add(sprintf "GET /contacts/{id} with one key %s/s, with"
        . " %d keys in turn %s/s. The limiter's memory for 65,536 keys with"
        . " the default limits is %.1f MiB (computed: 73.5 MiB).\n",
        number(rate_of($result, "one")), $n, number(rate_of($result, "many")),
        $size / 1048576);
    $self->{report}->verdict("$n keys: cost to one", $cost, 1.2);
    $self->{report}->verdict("the limiter's memory to that computed",
        $size / (65536 * (64 + 8 + 384) + 655360 * 72), 1.01);
}

# Resident memory of SERVER's children in KiB: of all, or the most it ever was.
sub resident {
    my ($server, $what) = @_;
    my ($parent, @children) = $server->pids;
    my $sum = 0;
    for my $pid (@children) {
        my ($kb) = read_file("/proc/$pid/status", "")
            =~ /^\Q@{[$what || "VmRSS"]}\E:\s*(\d+)/m;
        $sum += $kb || 0;
    }
    return $sum;
}

sub memory {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my ($early, $late) = $self->{quick} ? (1000, 4000) : (10000, 1000000);
    my $server = start_crmapi($self);
    my @requests = map { my $name = $_; my @all = Bench::Work->requests($name,
        $cluster, $Bench::Cluster::MAIN, Bench::Cluster::key(0));
        $name eq "list" ? (@all) x 100 : @all > 500 ? @all[0 .. 499] : @all }
        qw(get get list conversations search by-email patch tag);
    my $file = Bench::Load::request_file(@requests);
    my ($n, $first) = (0, undef);

    $self->say("memory over $late requests");
    # Each thread keeps some freed blocks for itself (glibc's tcache), so memory
    # grows until all have served every kind of request. Each new connection
    # gets the thread that has waited for longest.
    wrk($server, $file, top => $self->{top}, connections => 32, seconds => 1)
        for 1 .. ($self->{quick} ? 1 : $Bench::Server::THREADS * 3 / 32);
    while ($n < $late) {
        my $r = wrk($server, $file, top => $self->{top},
            seconds => $self->{quick} ? 1 : $n < $early ? 2 : 30);
        die "bench: $r->{errors} requests failed\n" if $r->{errors};
        $n += $r->{n};
        $first //= [$n, resident($server)] if $n >= $early;
    }
    my $last = resident($server);
    my @pids = $server->pids;
    my $children = @pids - 1;
    $server->stop;
    $self->{report}->add("\n### Memory\n\n");
    $self->{report}->add(sprintf "%d children had %.1f MiB resident after %d"
        . " mixed requests, %.1f MiB after %d.\n", $children,
        $first->[1] / 1024, $first->[0], $last / 1024, $n);
    $self->{report}->verdict("resident memory after $n requests to that after"
        . " $first->[0]", $last / $first->[1], 1.02);
    large_bodies($self);
}

# A list of large rows and an upsert of large items: how much more memory a
# child has afterwards, by the bytes of the body.
sub large_bodies {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $id = Bench::Cluster::small(200);
    my $key = Bench::Cluster::key(300);
    my @rows;
    my ($bot) = map { $_->[0] } $cluster->sql(
        "SELECT id FROM crmapi.agent WHERE workspace_id = '$id'");

    $cluster->sql("UPDATE crmapi.contact t
        SET notes = (SELECT left(string_agg(md5(t.id::text || i), ''), 65536)
            FROM generate_series(1, 2048) i)
        WHERE workspace_id = '$id'");
    for (["GET of 100 contacts with 64 KiB of notes", "GET",
            "/api/v1/contacts?page_size=100", undef],
        ["POST of 200 items with 10,000 bytes of notes", "POST",
            "/api/v1/contacts/upsert", $json->encode({ bot_id => $bot,
                contacts => [map { { emails => [{ email =>
                    "large.$_\@new.example", is_primary => \1 }],
                    notes => "x" x 10000 } } 1 .. 200] })]) {
        my ($title, $method, $path, $body) = @$_;
        # one child, one connection: all of it is this request's
        my $server = start_crmapi($self, dbd => "DBDMin 1\nDBDKeep 1\n"
            . "DBDMax 16\n", conf => "StartServers 1\nServerLimit 1\n"
            . "ThreadsPerChild 25\nMaxRequestWorkers 25\nMinSpareThreads 1\n"
            . "MaxSpareThreads 25\n");
        Bench::Work::send_request($server, [$key, "GET",
            "/api/v1/contacts?page_size=1"], "raw") for 1 .. 50;
        my $before = resident($server, "VmHWM");
        my $resting = resident($server);
        my ($status, undef, $length) = Bench::Work::send_request($server,
            [$key, $method, $path, $body], "raw");
        die "bench: $title: $status\n" unless $status == 200;
        my $once = resident($server, "VmHWM") - $before;
        Bench::Work::send_request($server, [$key, $method, $path, $body],
            "raw") for 1 .. ($self->{quick} ? 20 : 200);
        sleep 1;
        my $often = resident($server) - $resting;
        my $bytes = $length > length($body // "") ? $length : length $body;
        push @rows, [$title, number($bytes / 1048576),
            number($once / 1024), number($once * 1024 / $bytes),
            number($often < 0 ? 0 : $often * 1024 / $bytes)];
        $self->{report}->verdict("$title: memory to the larger body",
            $once * 1024 / $bytes, 8);
        $self->{report}->verdict("$title: resident after many more",
            $often < 0 ? 0 : $often * 1024 / $bytes, 4);
        $server->stop;
    }
    $self->{report}->table(["", "body MiB", "more memory MiB",
        "times the body", "resident after many more"], @rows);
}

# A database far away: requests of one connection, and so round trips.
sub distance {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $socket = $cluster->host . "/.s.PGSQL.5432";
    my (%server, @rows);

    $self->say("a database far away");
    for my $ms (0, 0.5, 5) {
        my $port = Bench::Server::free_port();
        my $proxy = Bench::Server->start(name => "delay-proxy", port => $port,
            dir => Bench::Server::folder(), command => [
                "$self->{top}/bench/delay-proxy", $port, $socket, $ms]);
        my $server = start_crmapi($self, conninfo => "host=127.0.0.1"
            . " port=$port dbname=$Bench::Cluster::DATABASE user="
            . $CrmTest::Postgres::API);
        $server{$ms} = [$proxy, $server];
    }
    for my $name ($self->{quick} ? qw(get post upsert) : qw(get list
            conversations search by-email post patch upsert)) {
        my @requests = Bench::Work->requests($name, $cluster,
            $Bench::Cluster::MAIN, Bench::Cluster::key(0));
        if ($name eq "upsert") {    # what the database needs hides the way
            my $body = $json->decode($requests[0][3]);
            splice @{$body->{contacts}}, 2;
            @requests = [@{$requests[0]}[0 .. 2], $json->encode($body)];
        }
        my $result = $self->interleave(map { contestant($self, $_,
            $server{$_}[1], \@requests, connections => 1) } 0, 0.5, 5);
        my %p50 = map { my $ms = $_; $ms => median(map { $_->{p50} }
            @{$result->{$ms}}) } 0, 0.5, 5;
        my $trips = ($p50{5} - $p50{0}) / 10;
        push @rows, [$name, map({ number($p50{$_}) } 0, 0.5, 5),
            number(rate_of($result, 0.5)), number($trips)];
        $self->{report}->verdict("$name: round trips a request", $trips,
            $name eq "upsert" ? 2.2 : 1.1);
    }
    for (values %server) {
        $_->[1]->stop;
        $_->[0]->stop;
    }
    $self->{report}->add("\n### A database far away\n\nOne connection through"
        . " a proxy that delays by half of the time each way. Round trips: by"
        . " how many times 10 ms the p50 grows at 10 ms.\n");
    $self->{report}->table(["", "p50 at 0 ms", "at 1 ms", "at 10 ms",
        "requests/s at 1 ms", "round trips"], @rows);
}

# An upsert beside one multi-row INSERT ... ON CONFLICT of the same rows.
sub upsert {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $server = start_crmapi($self);
    my $w = $Bench::Cluster::MAIN;
    my @requests = Bench::Work->requests("upsert", $cluster, $w,
        Bench::Cluster::key(0));
    my $file = Bench::Load::request_file(@requests);
    my $body = $json->decode($requests[0][3]);
    my (@ours, @theirs);
    my @names = sort grep { $_ ne "emails" } CORE::keys %{$body->{contacts}[0]};
    my $quote = sub { my ($t) = @_; $t =~ s/'/''/g; "'$t'" };
    my $value = sub { my ($name, $v) = @_;
        $name eq "tags" ? "'{" . join(",", @$v) . "}'"
        : ref $v ? $quote->($json->encode($v)) : $quote->($v) };

    $self->say("an upsert beside an INSERT");
    my $n = 0;
    for my $round (1 .. $self->{rounds} * 2) {
        my $request = $requests[$round % @requests];
        my $body = $json->decode($request->[3]);
        my (@rows, $sql);
        # the same kind of rows: the known by their ids, the new with new ones
        my @ids = Bench::Work::sample($cluster, $w, "t.id", 2000);
        for my $item (@{$body->{contacts}}) {
            my $known = $item->{emails}[0]{email} !~ /\@new/;
            my $serial = sprintf "998%06d", ++$n;
            my $id = $known ? $quote->($ids[($round * 100 + $n) % @ids])
                : $Bench::Work::fresh_id;
            push @rows, "($id, '$w', '$body->{bot_id}', "
                . join(", ", map { $value->($_, $item->{$_}) } @names) . ", "
                . ($known ? "(SELECT emails FROM crmapi.contact WHERE"
                    . " workspace_id = '$w' AND id = $id)"
                    : $quote->($json->encode($item->{emails}))) . ")";
            s/\@R\@/$serial/g for $rows[-1];
        }
        $sql = "\\timing on\nINSERT INTO crmapi.contact AS t (id, workspace_id,"
            . " bot_id, " . join(", ", @names, "emails") . ") VALUES "
            . join(", ", @rows) . " ON CONFLICT (workspace_id, id) DO UPDATE"
            . " SET " . join(", ", map({ "$_ = excluded.$_" } @names),
                "updated_at = crmapi.now_ms()") . ";";
        my ($code, $out, $err) = run_program(stdin => $sql,
            command => ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d",
                $cluster->conninfo(undef, $CrmTest::Postgres::API)]);
        my ($ms) = $out =~ /^Time: ([\d.]+) ms/m or die "bench: $err$out\n";
        push @theirs, $ms;
        my $begin = time;
        my ($status, $text) = Bench::Work::send_request($server, $request,
            "raw");
        push @ours, (time - $begin) * 1000;
        my $answer = $json->decode($text);
        die "bench: upsert: $status\n" unless $status == 200
            && @{$answer->{data}{created}} == 100;
    }
    $server->stop;
    $self->{report}->add("\n### An upsert of 200 items, half known\n\n"
        . "From request to answer " . number(median(@ours)) . " ms ("
        . number((sort { $a <=> $b } @ours)[0]) . " to "
        . number((sort { $a <=> $b } @ours)[-1]) . "), one multi-row `INSERT"
        . " ... ON CONFLICT` of such rows in psql " . number(median(@theirs))
        . " ms (" . number((sort { $a <=> $b } @theirs)[0]) . " to "
        . number((sort { $a <=> $b } @theirs)[-1]) . ").\n");
    $self->{report}->verdict("upsert of 200: time to one INSERT ... ON"
        . " CONFLICT", median(map { $ours[$_] / $theirs[$_] } 0 .. $#ours), 2);
}

# Writers on one workspace.
sub writers {
    my ($self) = @_;
    my $server = start_crmapi($self);
    my @requests = Bench::Work->requests("post", $self->{cluster},
        $Bench::Cluster::MAIN, Bench::Cluster::key(0));
    my @n = (1, 2, 4, 8, 16);

    $self->say("writers");
    my $result = $self->interleave(map { contestant($self, $_, $server,
        \@requests, connections => $_) } @n);
    $server->stop;
    $self->{report}->add("\n### Writers on one workspace\n\n"
        . "POST /contacts by so many connections.\n");
    $self->{report}->table(["connections", "requests/s", "p50 ms", "p99 ms"],
        map { my $n = $_; [$n, number(rate_of($result, $n)), map { my $p = $_;
            number(median(map { $_->{$p} } @{$result->{$n}})) } qw(p50 p99)] }
            @n);
    for my $i (1 .. $#n) {
        $self->{report}->verdict("$n[$i] writers to $n[$i - 1]: throughput",
            1 / cost($result, $n[$i], $n[$i - 1]), 0.95, 1);
    }
}

# Many workspaces.
sub tenants {
    my ($self) = @_;
    my $cluster = $self->{cluster};
    my $many = $self->{quick} ? 400 : 10000;
    my $server = start_crmapi($self);
    my $requests = sub { my ($name, $n) = @_; map { my $key =
        Bench::Cluster::key(100 + $_);
        $name eq "list" ? [$key, "GET", "/api/v1/contacts"]
        : [$key, "GET", "/api/v1/contacts/by-email?email=anna.5\@small-$_"
            . ".example"] } 1 .. $n };
    my (%few, @rows);

    $self->say("from 200 to $many workspaces");
    # each kind before and after; the data is larger then, the rest the same
    my $measure = sub { my ($n) = @_;
        # each once, for what is remembered of its key
        for my $name (qw(list by-email)) {
            my $file = Bench::Load::request_file($requests->($name, $n));
            wrk($server, $file, top => $self->{top}, ordered => 1,
                seconds => $self->{quick} ? 1 : $n > 200 ? 8 : 2);
        }
        return { map { my $name = $_; my $result = $self->interleave(
            contestant($self, "x", $server, [$requests->($name, $n)]));
            $name => rate_of($result, "x") } qw(list by-email) } };
    my $before = $measure->(200);
    $cluster->add_small(201, $many, 25);
    $cluster->settle;
    my $after = $measure->($many);
    my $again = $measure->(200);
    $server->stop;
    $self->{report}->add("\n### From 200 to $many workspaces\n\nRequests a"
        . " second by keys of all of them in turn; in the last column by the"
        . " first 200 when all are there.\n");
    for my $name (qw(list by-email)) {
        push @rows, [$name, number($before->{$name}), number($after->{$name}),
            number($before->{$name} / $after->{$name}),
            number($again->{$name})];
        $self->{report}->verdict("$name: cost with $many workspaces to 200",
            $before->{$name} / $after->{$name}, 1.2);
    }
    $self->{report}->table(["", "200", $many, "cost", "200 of $many"],
        @rows);
}

# crmapictl import beside COPY of the same rows into such a table.
sub import {
    my ($self) = @_;
    return unless ref $self;            # "use Bench::Growth" calls this too
    my $cluster = $self->{cluster};
    my $n = $self->{contacts};
    my $w = $Bench::Cluster::MAIN;
    my $other = "bench_copy";
    my $file = $cluster->host . "/contacts.copy";
    my ($columns) = $cluster->sql("SELECT string_agg(attname, ', '
            ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = 'crmapi.contact'::regclass AND attnum > 0
          AND NOT attisdropped AND attgenerated = ''
          -- a trigger computes these
          AND attname NOT IN ('email_key', 'phone_key', 'search',
              'phone_digits')");
    my @tables = qw(workspace agent pipeline pipeline_stage company);

    $self->say("import beside COPY");
    $cluster->{pg}->sql("postgres",
        "CREATE DATABASE $other OWNER $CrmTest::Postgres::OWNER");
    $cluster->migrate($other);
    for my $table (@tables) {
        my $where = $table eq "workspace" ? "id" : "workspace_id";
        my ($names) = $cluster->sql("SELECT string_agg(attname, ', '
                ORDER BY attnum) FROM pg_attribute
            WHERE attrelid = 'crmapi.$table'::regclass AND attnum > 0
              AND NOT attisdropped AND attgenerated = ''");
        $cluster->pipe_through(["psql", "-X", "-q", "-d", $cluster->conninfo(
                undef, "postgres"), "-c", "COPY (SELECT $names->[0] FROM"
                . " crmapi.$table WHERE $where = '$w') TO STDOUT"],
            ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d",
                $cluster->conninfo($other, "postgres"), "-c",
                "COPY crmapi.$table ($names->[0]) FROM STDIN"]);
    }
    # the first N: those that were imported
    $cluster->sql("COPY (SELECT $columns->[0] FROM crmapi.contact
        WHERE workspace_id = '$w' AND id::text LIKE '%-0005%'
        ORDER BY created_at, id LIMIT $n) TO '$file'");
    my $begin = time;
    $cluster->sql("COPY crmapi.contact ($columns->[0]) FROM '$file'",
        undef, $other);
    my $copy = time - $begin;
    unlink $file;
    my ($rows) = $cluster->sql("SELECT count(*) FROM crmapi.contact", undef,
        $other);
    $cluster->{pg}->drop_database($other);
    $self->{report}->add("\n### Import\n\n");
    $self->{report}->add(sprintf "`crmapictl import` of %d contacts took %.1f"
        . " s, %s a second; COPY of the same %d rows into the same table of an"
        . " empty database %.1f s, %s a second.\n", $n, $self->{import},
        number($n / $self->{import}), $rows->[0], $copy,
        number($rows->[0] / $copy));
    $self->{report}->verdict("import: contacts a second", $n
        / $self->{import}, 10000, 1);
}

# Over TLS and HTTP/2.
sub http2 {
    my ($self) = @_;
    my $dir = Bench::Server::folder();
    my ($code, $out, $err) = run_program(command => ["openssl", "req", "-x509",
        "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-days", 2, "-subj", "/CN=127.0.0.1", "-addext",
        "basicConstraints=critical,CA:FALSE", "-addext",
        "subjectAltName=DNS:127.0.0.1,IP:127.0.0.1", "-keyout", "$dir/key",
        "-out", "$dir/certificate"]);
    die "bench: openssl: $err\n" if $code;
    chmod 0644, "$dir/key";
    my $tls = ["$dir/certificate", "$dir/key"];
    my $crmapi = start_crmapi($self, tls => $tls);
    my $fastify = $self->start_fastify(tls => $tls);
    my $protocol;

    $self->{report}->add("\n### HTTP/2 over TLS\n\nh2load, 4 connections with"
        . " 4 streams each. mod_http2 does not work with prefork, so mod_php is"
        . " left out.\n");
    my @rows;
    for my $name (qw(get list conversations)) {
        my @requests = Bench::Work->requests($name, $self->{cluster},
            $Bench::Cluster::MAIN, Bench::Cluster::key(0));
        splice @requests, 2000 if @requests > 2000;
        $self->say("HTTP/2: $name");
        my $result = $self->interleave(map { my $server = $_;
            [$server->{name}, sub {
                my $r = h2load($server, \@requests, seconds => $_[0]);
                $protocol = $r->{protocol};
                return $r }] } $crmapi, $fastify);
        push @rows, [$name, map({ number(rate_of($result, $_)) } "mod_crmapi",
            "Fastify"), number(1 / cost($result, "mod_crmapi", "Fastify"))];
    }
    $self->{report}->table(["", "mod_crmapi", "Fastify", "ratio"], @rows);
    $self->{report}->add("Protocol: $protocol.\n");
    $_->stop for $crmapi, $fastify;
}

sub start_crmapi { my $self = shift; return $self->start_crmapi(@_) }

1;
