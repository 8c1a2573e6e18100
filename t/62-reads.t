# SPDX-License-Identifier: Apache-2.0
# 62-reads.t: while PostgreSQL is killed and comes back, each read is answered as
# before or by 503: never by 404, by an empty list or by a part of one (contract
# 5.5). $CRM_READS is the number of kills.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file stops and starts the server, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Samples;

my ($KILLS, $READERS) = ($ENV{CRM_READS} || 1, 4);
my $database = database();
# a kill must not lose what the samples have
sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
sql("postgres", "SELECT pg_reload_conf()");
my $httpd = httpd(database => $database, children => 2,
    unlimited => 1);
my $w = workspace($httpd, plan => "pro", twin => 0);
my $samples = CrmTest::Samples->new($w);
my $paths = $samples->openapi->{document}{paths};
my $c = $w->client(timeout => 30);

# The paths that are read: each GET; lists by pages, in each order, and with each
# filter that has a value to be filtered by.
my @reads;
for my $path (sort keys %$paths) {
    my $get = $paths->{$path}{get} or next;
    my $id = $path =~ /\{id\}/ ? $samples->id_for($path) : "";
    my $at = $path =~ s/\{id\}/$id/r;
    my %takes = map { $_->{name} => $_->{schema} } map {
        $_->{'$ref'} ? $samples->openapi->resolve($_) : $_ }
        @{$get->{parameters} || []};
    my @required = map { "$_->{name}=e%40e.example" } grep { $_->{required}
        && ($_->{in} // "") eq "query" } @{$get->{parameters} || []};
    my @queries = ("");
    push @queries, map { "page_size=7&page=$_" } 1, 2, 3, 9 if $takes{page};
    push @queries, "search=e" if $takes{search};
    push @queries, "page_size=7&cursor=*" if $takes{cursor} && $takes{page};
    for my $name (sort keys %takes) {       # sort, order, role, status ...
        push @queries, map { "$name=$_" } grep { defined }
            @{$takes{$name}{enum} || []};
    }
    push @queries, "bot_id=" . $w->agent if $takes{bot_id};
    push @queries, map { "$_=true" } grep { ref $takes{$_}{type} }
        sort keys %takes;
    push @reads, map { my $query = join "&", grep { length } @required, $_;
        $at . ($query ne "" ? "?$query" : "") } @queries;
}

# What each path is answered at rest.
my %answer;
for my $path (@reads) {
    my $r = $c->get($path);
    $answer{$path} = $r->body if $r->status == 200;
}
cmp_ok(scalar keys %answer, ">=", 100, scalar(keys %answer) . " paths are read");
cmp_ok(scalar(grep { /"data":\[\{/ } values %answer), ">=", 50,
    "most are lists that are not empty");
for my $name (qw(sort order activity_type)) {
    cmp_ok(scalar(grep { /[?&]$name=/ } keys %answer), ">=", 2,
        "some by $name");
}
is_deeply([grep { $c->get($_)->body ne $answer{$_} } sort keys %answer], [],
    "and answered the same again");
# without a database
$httpd->may_log(qr/CRM\d+: /, qr/AH\d+: /);

# Read all paths again and again until the test says stop: how many reads were
# answered as before, how many by 503, and what else came.
sub read_all {
    my ($go_on, $n) = @_;
    my $reader = $w->client(timeout => 30);
    my @paths = sort keys %answer;
    my ($same, $down, @other) = (0, 0);
    for (my $i = $n * @paths / $READERS; $go_on->(); $i++) {
        my $path = $paths[$i % @paths];
        my $r = $reader->get($path);
        if ($r->status == 200 && $r->body eq $answer{$path}) {
            $same++;
        }
        elsif ($r->status == 503) {
            $down++;
        }
        elsif (@other < 5) {
            push @other, "$path: " . $r->status . " " . substr $r->body, 0, 200;
        }
    }
    return ($same, $down, @other);
}

subtest "reads while PostgreSQL is killed" => sub {
    my @readers = map { my $n = $_;
        CrmTest::Child->start(sub { read_all($_[0], $n) }) } 0 .. $READERS - 1;
    my ($path) = sort keys %answer;
    for my $kill (1 .. $KILLS) {
        postgres()->halt("QUIT");
        ok(wait_for(sub { $c->get($path)->status == 503 }, 30),
            "kill $kill: the database is away");
        postgres()->resume;
        ok(wait_for(sub { $c->get($path)->status == 200 }, 30),
            "kill $kill: it is back");
        is_deeply([grep { my ($path, $r) = $_;      # a child may lag behind
            wait_for(sub { ($r = $c->get($path))->status != 503 }, 30);
            $r->body ne $answer{$path} } sort keys %answer], [],
            "kill $kill: each path has its answer");
    }
    $_->stop for @readers;
    my ($same, $down, @other) = (0, 0);
    for my $reader (@readers) {
        my ($s, $d, @o) = $reader->result;
        $same += $s;
        $down += $d;
        push @other, @o;
    }
    is_deeply(\@other, [], "nothing else than the answer or 503 came");
    cmp_ok($same, ">", 100, "$same answers");
    cmp_ok($down, ">", 0, "$down times 503");
};

$httpd->stop;
done_testing;
