# SPDX-License-Identifier: Apache-2.0
# 94-proxies.t: Debian's nginx and HAProxy before two hosts, with the lines of
# docs/operations.md
# second gear
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Debian;
use CrmTest::Process qw(read_file run_program wait_for write_file);
use JSON::PP qw(decode_json);
use Time::HiRes qw(time);

sub block { return (documented("operations.md", $_[0], "## Behind a proxy"))[0] }

my $scratch = debian_folder("proxies");
my $root = "$scratch/root";

# ---- two hosts --------------------------------------------------------------------

my $database = database();
my $lines = block("apache") =~ s/192\.0\.2\.10/127.0.0.1/r;
my ($one, $two) = map { httpd(database => $database, modules => ["remoteip"],
    unlimited => 1, shows => ["health"], conf => $lines . <<'END') } 1 .. 2;
LogFormat "%a %>s" who
CustomLog @DIR@/who who
END
my $w = workspace($one);
$w->log_on;
my $near = $w->ctl("key", "create", "--workspace", $w->id, "--name", "near",
    "--scopes", "read", "--address", "127.0.0.2/32");

# ---- the system of the proxies ----------------------------------------------------

my $debian = CrmTest::Debian->new($root, qw(haproxy nginx));
my %port = map { $_ => free_port() } qw(nginx haproxy);

# The lines of PROXY, with the addresses of this test.
sub lines {
    my ($proxy) = @_;
    my %at = (10 => $port{$proxy}, 21 => $one->port, 22 => $two->port);
    return block($proxy) =~ s/192\.0\.2\.(\d+):80/127.0.0.1:$at{$1}/gr;
}
$debian->inside("nginx has no other site", "rm -f /etc/nginx/sites-enabled/*");
write_file("$root/etc/nginx/conf.d/crm.conf", lines("nginx"));
write_file("$root/etc/haproxy/haproxy.cfg", lines("haproxy"));
my %begin = (nginx => "nginx -t && nginx",
    haproxy => "haproxy -c -f /etc/haproxy/haproxy.cfg"
        . " && haproxy -D -f /etc/haproxy/haproxy.cfg");

# GET PATH by PROXY with ARGUMENTS of curl, from the address FROM: (status, body).
sub ask {
    my ($proxy, $path, $from, @arguments) = @_;
    my ($code, $out, $err) = run_program(seconds => 60, command => ["curl",
        "-sS", "--interface", $from, "-H", "Host: crm.example.com", "-w",
        "\n%{http_code}", @arguments, "http://127.0.0.1:$port{$proxy}$path"]);
    is($code, 0, "curl succeeds") or diag($err);
    my ($body, $status) = $out =~ /^(.*)\n(\d+)\z/s;
    return ($status, $body);
}
sub key { return ("-H", "Authorization: Bearer " . ($_[0] // $w->key)) }

# Write by the proxy at PORT until told to stop, as NAME; the statuses.
sub keep_writing {
    my ($go_on, $port, $name) = @_;
    my $c = CrmTest::Client->new(port => $port, key => $w->key, timeout => 60);
    my @all;

    for (my $n = 0; $go_on->(); $n++) {
        my $r = eval { $c->post("/api/v1/companies", { bot_id => $w->agent,
            name => "$name-$n" }) };
        push @all, $r ? $r->status : "lost: $@";
    }
    return @all;
}

for my $proxy ("nginx", "haproxy") {
    subtest $proxy => sub {
        $debian->inside("it takes the lines", $begin{$proxy}, net => 1);
        ok(wait_for(sub {
            return (ask($proxy, "/api/v1/agents", "127.0.0.2", key()))[0] == 200;
        }), "a request is served");

        my @forged = ("-H", "X-Forwarded-For: 127.0.0.3");
        is((ask($proxy, "/api/v1/agents", "127.0.0.2", key($near), @forged))[0],
            200, "a key is used from its network");
        is((ask($proxy, "/api/v1/agents", "127.0.0.3", key($near),
            "-H", "X-Forwarded-For: 127.0.0.2"))[0], 401,
            "and from nowhere else, whatever the client says");

        my (undef, $document) = ask($proxy, "/api/v1/openapi.json",
            "127.0.0.2");
        is(decode_json($document)->{servers}[0]{url},
            "https://crm.example.com", "the document has the public name");

        write_file("$scratch/large", "{\"bot_id\":\"" . "x" x 2_500_000 . "\"}");
        my ($status, $body) = ask($proxy, "/api/v1/contacts", "127.0.0.2", key(),
            "-H", "Content-Type: application/json", "--data-binary",
            "\@$scratch/large");
        is_deeply([$status, eval { decode_json($body)->{error}{code} }],
            [413, "payload_too_large"], "what is too large is answered by httpd");

        my $end = decode_json((ask($proxy, "/api/v1/events?cursor=end",
            "127.0.0.2", key()))[1])->{pagination}{next_cursor};
        my $began = time;
        ($status, $body) = ask($proxy, "/api/v1/events?wait=8&cursor=$end",
            "127.0.0.2", key());
        is_deeply([$status, decode_json($body)->{data}], [200, []],
            "a request waits");
        cmp_ok(time - $began, ">", 6, "as long as it wants");

        my @writers = map { my $who = $_; CrmTest::Child->start(sub {
            keep_writing($_[0], $port{$proxy}, "$proxy-$who") }) } 1 .. 8;
        for my $host (($one, $two) x 4) {
            my $before = count_rows($w, "company");
            wait_for(sub { count_rows($w, "company") >= $before + 100 }, 60)
                or fail("clients write before a restart");
            $host->restart;
        }
        $_->stop for @writers;
        my %status;
        $status{$_}++ for map { $_->result } @writers;
        is_deeply([keys %status], [201], "no write fails at graceful restarts")
            or diag(explain(\%status));

        $one->stop;
        my %count;
        # until the proxy has noticed, a request may fail over by itself
        ok(wait_for(sub {
            return (ask($proxy, "/api/v1/agents", "127.0.0.2", key()))[0] == 200;
        }), "the other host serves when one ends");
        $count{(ask($proxy, "/api/v1/agents", "127.0.0.2", key()))[0]}++
            for 1 .. 20;
        is_deeply(\%count, { 200 => 20 }, "no request fails");
        $one->start;
        ok(wait_for(sub {
            ask($proxy, "/api/v1/agents", "127.0.0.2", key());
            return read_file("$one->{dir}/who") =~ /^127\.0\.0\.2 200\n\z/m;
        }, 60), "and the first again when it is back");
        like(read_file("$two->{dir}/who"), qr/^127\.0\.0\.2 200$/m,
            "the log has the client's address");
    };
}

done_testing;
