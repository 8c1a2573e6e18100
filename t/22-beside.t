# SPDX-License-Identifier: Apache-2.0
# 22-beside.t: the API behind TLS, over HTTP/2, behind a balancer
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);
use POSIX ();

my $dir = tempdir("crm-tls-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my ($code, $out, $err) = run_program(command => ["openssl", "req", "-x509",
    "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
    "-keyout", "$dir/key.pem", "-out", "$dir/cert.pem"]);
is($code, 0, "a certificate") or diag($err);
chmod 0644, "$dir/key.pem";     # of this test only
chmod 0755, $dir;

# HTTP/2 needs a threaded MPM to be of use.
my $h2 = ($ENV{CRM_MPM} || "event") ne "prefork";
my $database = database();
my $httpd = httpd(database => $database, modules => ["ssl", "socache_shmcb",
    "remoteip", $h2 ? "http2" : ()],
    # what mod_ssl thinks of a certificate like that
    expect_log => [qr/AH01906: .* certificate is a CA certificate/,
        qr/AH01909: .* does NOT include an ID which matches the server name/,
        qr/AH01873: Init: Session Cache is not configured/], conf => <<"END");
SSLEngine On
SSLCertificateFile $dir/cert.pem
SSLCertificateKeyFile $dir/key.pem
Protocols @{[$h2 ? "h2 " : ""]}http/1.1
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1
LogFormat "%a %{crmapi-route}n %{crmapi-workspace}n %>s" beside
CustomLog \@DIR\@/beside_log beside
END
my $log = "$httpd->{dir}/beside_log";
my $url = "https://localhost:" . $httpd->port . "/api/v1";
my $w = workspace($httpd);

sub curl_command {
    return ("curl", "-sS", "--cacert", "$dir/cert.pem", "--resolve",
        "localhost:" . $httpd->port . ":127.0.0.1", "-w",
        "\n%{http_version} %{http_code} %{num_connects}\n", "-H",
        "Authorization: Bearer " . $w->key, @_);
}

# Run curl with ARGUMENTS; returns (version, status, body, connections made) of
# the last answer, the others' before its body.
sub curl {
    my (@arguments) = @_;
    my ($code, $out, $err) = run_program(command => [curl_command(@arguments)]);
    is($code, 0, "curl succeeds") or diag($err);
    my ($body, $version, $status, $made)
        = $out =~ /^(.*)\n(\S+) (\d+) (\d+)\n\z/s;
    return ($version, $status, $body, $made);
}

for my $version ($h2 ? "2" : (), "1.1") {
    subtest "HTTP/$version over TLS" => sub {
        my @how = $version eq "2" ? "--http2" : "--http1.1";
        my ($spoken, $status, $body) = curl(@how, "$url/agents");
        is($spoken, $version, "this version is spoken");
        is($status, 200, "a list");
        is(JSON::PP->new->utf8->decode($body)->{data}[0]{id}, $w->agent,
            "of the workspace's agents");
        ($spoken, $status, $body) = curl(@how, "-H",
            "Content-Type: application/json", "-d",
            '{"bot_id":"' . $w->agent . '"}', "$url/contacts");
        is($status, 201, "a contact is made");
        ($spoken, $status, $body) = curl(@how, "-X", "DELETE", "$url/contacts/"
            . JSON::PP->new->utf8->decode($body)->{data}{id});
        is("$status$body", "204", "and deleted, without a body");
        ($spoken, $status, $body) = curl(@how, "-I", "$url/contacts");
        is($status, 200, "HEAD");
        ($spoken, $status, $body) = curl(@how, "$url/none");
        is($status, 404, "an error");
        like($body, qr/^\{"error":\{"code":"not_found"/, "in JSON");
        ($spoken, $status, $body, my $made) = curl(@how,
            map { "$url/agents" } 1 .. 20);
        is(() = $body =~ /"pagination"/g, 20, "20 answers");
        is_deeply([$body =~ /^\S+ \d+ (\d+)$/mg, $made], [1, (0) x 19],
            "on one connection");
    };
    subtest "HTTP/$version over TLS: a client that goes away" => sub {
        my $let_go = postgres()->hold($database, "LOCK TABLE crmapi.contact");
        my $pid = fork // die "fork: $!\n";
        if (!$pid) {
            open STDOUT, ">", "/dev/null" or POSIX::_exit(1);
            exec(curl_command($version eq "2" ? "--http2" : "--http1.1",
                "$url/contacts")) or POSIX::_exit(1);
        }
        postgres()->wait_locked($database, 1);
        kill TERM => $pid;
        waitpid $pid, 0;
        ok(wait_for(sub { !sql($database, "SELECT count(*) FROM"
            . " pg_stat_activity WHERE datname = current_database()"
            . " AND wait_event_type = 'Lock'") }),
            "its statement is cancelled");
        $let_go->();
    };
}

subtest "mod_remoteip's address is the one logged" => sub {
    curl("-H", "X-Forwarded-For: 192.0.2.7", "$url/companies");
    my $line = "192.0.2.7 GET /companies " . $w->id . " 200";
    ok(wait_for(sub { -e $log && read_file($log) =~ /^\Q$line\E$/m }),
        "with route and workspace") or diag(read_file($log));
};
$httpd->stop;
done_testing;
