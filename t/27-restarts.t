# SPDX-License-Identifier: Apache-2.0
# 27-restarts.t: twenty graceful restarts while eight clients write: no answer
# is lost, each 201 is one row, budgets stay exact (contract 4.1, 4.4)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use List::Util qw(min);
use Time::HiRes qw(time);

my ($ROUNDS, $WRITERS, $LIMIT) = (20, 8, 150);
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, conf => <<"END");
ServerName free.example
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName free.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName limited.example
    CrmApiReadLimit $LIMIT
</VirtualHost>
END
# what httpd says of so many clients
$httpd->may_log(qr/AH00(?:484|161): /);
my $w = workspace($httpd);
my $limited = $w->make_key("read");

# A client of number WHO: each second one makes a connection for each request,
# which then must be answered; the others keep theirs, which a restart may
# close when nothing is under way, and ask again.
sub client_of {
    my ($who, %arg) = @_;
    return $w->client(host => "free.example", timeout => 60, ($who % 2
        ? (headers => { Connection => "close" }) : ()), %arg);
}

# Write and read without pause until told to stop: {writes => [[name, status]],
# reads => [[before, after, status, remaining]]}.
sub keep_writing {
    my ($go_on, $who) = @_;
    my $writer = client_of($who);
    my $reader = client_of($who, host => "limited.example", key => $limited);
    my (@writes, @reads);

    for (my $n = 0; $go_on->(); $n++) {
        my $name = "$who-$n";
        my $r = eval { $writer->post("/api/v1/contacts",
            { bot_id => $w->agent, last_name => $name }) };
        push @writes, [$name, $r ? $r->status : "lost: $@"];
        my $before = time;
        $r = eval { $reader->get("/api/v1/agents") };
        push @reads, [$before, time, $r ? $r->status : "lost: $@",
            $r ? scalar $r->header("X-RateLimit-Remaining") : undef];
    }
    return { writes => \@writes, reads => \@reads };
}

sub made { return count_rows($w, "contact") }

my @clients = map { my $who = $_; CrmTest::Child->start(sub {
    keep_writing($_[0], $who) }) } 1 .. $WRITERS;
for my $round (1 .. $ROUNDS) {
    my $before = made();
    wait_for(sub { made() >= $before + 2 * $WRITERS }, 60)
        or fail("clients write before restart $round");
    $httpd->restart;
}
my $before = made();
ok(wait_for(sub { made() >= $before + 2 * $WRITERS }, 60),
    "clients write after the last");
$_->stop for @clients;
my @results = map { $_->result } @clients;
my @writes = map { @{$_->{writes}} } @results;
my @reads = map { @{$_->{reads}} } @results;

is($httpd->generation, $ROUNDS + 1, "$ROUNDS restarts");
is(scalar($httpd->log_lines(qr/CRM1404/)), 0, "4.4 in the same memory");

subtest "no answer is lost, each 201 is one row" => sub {
    my %status;
    $status{$_->[1]}++ for @writes;
    is_deeply([keys %status], [201], "all " . @writes . " writes are answered"
        . " with 201") or diag(explain(\%status));
    my %rows = map { @$_ } sql($database, "SELECT last_name, count(*) FROM"
        . " crmapi.contact WHERE workspace_id = '" . $w->id . "' GROUP BY 1");
    is(scalar(grep { ($rows{$_->[0]} // 0) != 1 } @writes), 0,
        "each is there exactly once");
    is(scalar keys %rows, scalar @writes, "and nothing else");
    triggers_kept_up($database, "7.11 the totals are right");
};

# What is known of a request is that it was decided on between its two times.
subtest "4.1 a budget is exact through all of them" => sub {
    my %status;
    $status{$_->[2]}++ for @reads;
    is_deeply([sort keys %status], [200, 429], "200 and 429 only: "
        . join(", ", map { "$_ $status{$_} times" } sort keys %status));
    my @admitted = grep { $_->[2] eq "200" } @reads;
    my $first = min(map { $_->[0] } @admitted);
    my @early = sort { $b->[3] <=> $a->[3] }
        grep { $_->[1] < $first + 60 } @admitted;
    is_deeply([map { $_->[3] } @early], [reverse 0 .. $LIMIT - 1],
        "4.2 in the first minute each number of what remains is told once");
    my @over = grep { my $begin = $_->[0]; $LIMIT < grep { $_->[0] >= $begin
        && $_->[1] < $begin + 60 } @admitted } @admitted;
    is(scalar @over, 0, "never more than $LIMIT in 60 s");
    my @under = grep { my $refused = $_; $LIMIT > grep {
        $_->[1] > $refused->[0] - 60 && $_->[0] < $refused->[1] } @admitted }
        grep { $_->[2] eq "429" } @reads;
    is(scalar @under, 0, "and none was refused before");
};

ok(wait_for(sub { $httpd->children <= 3 }, 20),
    "no process of before is left");
$httpd->stop;
done_testing;
