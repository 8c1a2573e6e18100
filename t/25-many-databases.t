# SPDX-License-Identifier: Apache-2.0
# 25-many-databases.t: many virtual hosts with a database each: error messages
# name the database and its fault
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $COUNT = 40;
database();             # makes the logins
my ($empty, $other) = map { database(template => undef) } 1, 2;
# Databases by what they are called with: each has connections of its own.
my @params = map { my $name = $_ == $COUNT ? $other : $empty;
    postgres()->conninfo($name, $CrmTest::Postgres::API)
        . " password='secret $_' application_name=site$_" } 1 .. $COUNT;
my $httpd = httpd(database => $empty, children => 1,
    dbd => "DBDMin 0\nDBDKeep 1\nDBDMax 1\nDBDExptime 1\n",
    conf => "CrmApiUnknownKeyLimit 0\n" . join "", map { <<"END" } 0 .. $#params);
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName site$_.example
    DBDParams "$params[$_]"
</VirtualHost>
END
$httpd->expect_log(qr/CRM1301/);

subtest "each database that has no schema is told of, by its name" => sub {
    for my $n (0 .. $#params) {
        my $r = $httpd->client(host => "site$n.example", key => "svc_live_"
            . "x" x 30)->get("/api/v1/agents");
        error_is($r, 503, "service_unavailable", "site$n");
        my $name = $n == $#params ? $other : $empty;
        is(scalar(my @lines = $httpd->log_lines(
            qr/CRM1301: .*\(.*\bdbname=\Q$name\E\b.*\)/)),
            $n == $#params ? 1 : $n + 1, "site$n: a line of its own");
    }
};

unlike($httpd->log_text, qr/secret|password/, "and never by its password");
$httpd->stop;

# What each of 40 sites answers, asked TIMES times: "site: status" => times.
sub ask_all {
    my ($server, $times) = @_;
    my %got;
    for my $n (1 .. $COUNT) {
        my $client = $server->client(host => "site$n.example",
            key => "svc_live_" . "x" x 30);
        $got{"site$n: " . $client->get("/api/v1/agents")->status}++
            for 1 .. $times;
    }
    return \%got;
}

for my $case (["without a schema", undef, "CRM1301"],
        ["with a schema of the future", "UPDATE crmapi.migration
            SET min_module = 9999 WHERE number = 1", "CRM1302"]) {
    my ($what, $change, $code) = @$case;
    subtest "40 databases, one $what: one line, which names it" => sub {
        my $BAD = 23;
        my $good = database();
        my $bad = $change ? database() : database(template => undef);
        sql($bad, $change) if $change;
        my $server = httpd(database => $good, children => 1,
            dbd => "DBDMin 0\nDBDKeep 1\nDBDMax 1\nDBDExptime 1\n",
            conf => "CrmApiUnknownKeyLimit 0\n" . join "", map { <<"END" }
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName site$_.example
    DBDParams "@{[postgres()->conninfo($_ == $BAD ? $bad : $good,
        $CrmTest::Postgres::API)]} application_name=site$_"
</VirtualHost>
END
                1 .. $COUNT);
        $server->expect_log(qr/$code/ => 1);
        is_deeply(ask_all($server, 3), { map { ("site$_: "
            . ($_ == $BAD ? 503 : 401) => 3) } 1 .. $COUNT },
            "the other 39 serve");
        my @lines = grep { !/:(?:info|notice|debug)\]/ } $server->log_lines(
            qr/CRM\d{4}/);
        is(scalar @lines, 1, "one line") or diag(explain \@lines);
        like($lines[0] // "", qr/$code: .*\bdbname=\Q$bad\E\b/,
            "its name");
        $server->stop;
    };
}
done_testing;
