# SPDX-License-Identifier: Apache-2.0
# 25-many-databases.t: as many virtual hosts with a database each as there may
# be: what is wrong with each is said, and which one it is
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
done_testing;
