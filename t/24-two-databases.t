# SPDX-License-Identifier: Apache-2.0
# 24-two-databases.t: two virtual hosts with a database each: if one database is
# away, clients of the other notice nothing (contract 5.5)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use IO::Socket::UNIX;
use Time::HiRes qw(time sleep);

my $THREADS = 10;       # of each of two processes, as CrmTest::Httpd has it
my $WAIT = 4;
my $prefork = ($ENV{CRM_MPM} || "event") eq "prefork";

# The one that stays is that of all tests, the other a server of our own.
my $good = database();
my $server = CrmTest::Postgres->start;
my $bad = at_bad(sub { database() });

# Run CODE with the other server as the one of the tests.
sub at_bad {
    my ($code) = @_;
    local $ENV{CRM_TEST_PG} = $server->host;
    return $code->();
}

my $params = at_bad(sub { postgres()->conninfo($bad,
    $CrmTest::Postgres::API) });
my $httpd = httpd(database => $good, dbd => "DBDMin 0\nDBDKeep 2\nDBDMax 2\n",
    unlimited => 1, conf => <<"END");
CrmApiDatabaseWait ${WAIT}s
ServerName good.example
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName good.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName bad.example
    DBDParams "$params connect_timeout=2"
</VirtualHost>
END
# What mod_dbd, the module and libpq say when there is no database, and httpd
# of so many clients.
$httpd->may_log(qr/CRM(?:130[345]|200[16]): /,
    qr/AH00(?:484|161): /);
my $w = workspace($httpd);
my $x = at_bad(sub { workspace($bad) });

sub good { $w->client(host => "good.example", @_) }
sub bad { CrmTest::Client->new(port => $httpd->port, host => "bad.example",
    key => $x->key, @_) }

# Have N clients at the bad one ask without pause until CODE has returned;
# which statuses they got, and how often.
sub besieged {
    my ($n, $code) = @_;
    my @clients = map { CrmTest::Child->start(sub {
        my ($go_on) = @_;
        my %count;
        while ($go_on->()) {
            $count{bad(timeout => 60)->get("/api/v1/agents")->status}++;
            sleep 0.2;
        }
        return %count;
    }) } 1 .. $n;
    my %sum;

    $code->();
    $_->stop for @clients;
    for my $client (@clients) {
        my %count = $client->result;
        $sum{$_} += $count{$_} for keys %count;
    }
    return \%sum;
}

# Requests of the good one, COUNT reads and writes on connections of their own
# (and more, until so many "seconds" are over), are answered as ever, and none
# waits as if for the other ("worst", in seconds).
my $written = 0;
sub good_is_well {
    my ($name, $count, %arg) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $until = time + ($arg{seconds} || 0);
    my (%status, @took);
    my $n = 0;

    while ($n < $count || time < $until) {
        $n++;
        my $start = time;
        my $r = $n % 2 ? good()->get("/api/v1/agents") : good()->post(
            "/api/v1/contacts", { bot_id => $w->agent });
        push @took, time - $start;
        $status{$r->status}++;
    }
    $written += int($n / 2);
    is_deeply(\%status, { 200 => $n - int($n / 2), 201 => int($n / 2) },
        "$name: the other one serves");
    @took = sort { $a <=> $b } @took;
    cmp_ok($took[-1], "<", ($arg{worst} || 1.5) * busy()
        * (valgrinded() ? 20 : 1),
        "$name: and none waited");
    note(sprintf "%s: median %.1f ms, worst %.1f ms", $name,
        1000 * $took[@took / 2], 1000 * $took[-1]);
}

subtest "both serve, each from its own database" => sub {
    good_is_well("before", 50, worst => 10);    # threads are started
    status_is(bad()->get("/api/v1/agents"), 200, "the other one, too");
    error_is(bad(key => $w->key)->get("/api/v1/agents"), 401, "unauthorized",
        "with keys of its own");
    error_is(good(key => $x->key)->get("/api/v1/agents"), 401,
        "unauthorized", "each");
};

subtest "no statement is for clients of both" => sub {
    my @clients = map { (good(timeout => 60), bad(timeout => 60)) } 1 .. 6;
    my %count;
    for (1 .. 50) {
        $_->ask("GET", "/api/v1/agents") for @clients;
        # httpd closes connections that wait while all its threads are busy
        $count{($_->read_response("GET") // $_->get("/api/v1/agents"))->status}++
            for @clients;
    }
    is_deeply(\%count, { 200 => 50 * @clients },
        "at the same time they are served, too") or diag(explain(\%count));
};

# Lines of error_log since the last call.
my $seen = 0;
sub new_lines {
    my @lines = split /\n/, $httpd->log_text;
    my @new = @lines[$seen .. $#lines];
    $seen = @lines;
    return @new;
}

subtest "one server is down" => sub {
    new_lines();
    $server->halt;
    unavailable_is(bad()->get("/api/v1/agents"), "its host answers 503");
    unavailable_is(bad()->post("/api/v1/contacts", {}), "to writes, too");
    good_is_well("while one is down", 50);
    my $got = besieged(2 * $THREADS + 5, sub {
        good_is_well("while many ask for it", 100);
    });
    is_deeply([keys %$got], [503], "all of them are told 503")
        or diag(explain($got));
    my @lines = grep { /CRM\d{4}|AH006/ } new_lines();
    cmp_ok(scalar(grep { index($_, $server->host) >= 0 } @lines), ">", 0,
        "error_log names the one that is down");
    my @good = grep { /\Q@{[postgres()->host]}\E|\b$good\b/ } @lines;
    is_deeply(\@good, [], "and not the other");
};

subtest "a graceful restart while it is down" => sub {
    $httpd->restart;
    # httpd looks once a second how many processes it needs
    good_is_well("after the restart", 50, worst => 10);
    unavailable_is(bad()->get("/api/v1/agents"), "the one that is down");
};

subtest "it comes back" => sub {
    $server->resume;
    status_is(bad()->get("/api/v1/agents"), 200, "in the next request");
    my $got = besieged(4, sub { good_is_well("when it is back", 50) });
    is_deeply([keys %$got], [200], "all of its clients are served")
        or diag(explain($got));
};

subtest "it takes connections and never answers" => sub {
    plan(skip_all => "prefork: a process waits with its only request")
        if $prefork;
    $server->halt;
    my $path = $server->host . "/.s.PGSQL.5432";
    unlink $path;
    my $silent = IO::Socket::UNIX->new(Local => $path, Listen => 128)
        or die "$path: $!";
    chmod 0777, $path;
    unavailable_is(bad(timeout => 60)->get("/api/v1/agents"),
        "its host answers 503");
    my $got = besieged(2 * $THREADS + 5, sub {
        good_is_well("beside a silent one", 50, seconds => 4);
    });
    is_deeply([keys %$got], [503], "all of its clients are told 503")
        or diag(explain($got));
    close $silent;
    unlink $path;
    $server->resume;
    ok(wait_for(sub { bad(timeout => 60)->get("/api/v1/agents")->status
        == 200 }, 30), "it comes back by itself");
    $got = besieged(4, sub { good_is_well("afterwards", 50) });
    is_deeply([keys %$got], [200], "and serves all")
        or diag(explain($got));
};

is(count_rows($w, "contact"), $written, "everything was written once");
$httpd->stop;
done_testing;
