#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 19-database-tcp.t: a database over TCP, with SCRAM and sslmode=verify-full
# (contract 5.5)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file's server has certificates, so it is one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Process qw(unprivileged);
use File::Temp qw(tempdir);

my $PASSWORD = "s3cret-of-the-site";
my $HOST = "db.crm.example";
# What may tell a caller about the database.
my $INSIDE = qr/certificate|ssl|tls|socket|server|connect|postgres|dbd|
    password|127\.0\.0|\Q$HOST\E|\Q$PASSWORD\E/xi;

my $dir = tempdir("crm-tls-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;

sub openssl {
    my ($code, $out, $err) = run_program(command => ["openssl", @_]);
    die "CrmTest: openssl @_: $err\n" if $code;
}

# Make a certificate authority NAME, in files of that name.
sub authority {
    my ($name) = @_;
    openssl(qw(req -x509 -newkey rsa:2048 -nodes -days 2 -subj), "/CN=$name",
        "-keyout", "$dir/$name.key", "-out", "$dir/$name.crt");
}

# Make the server's key and certificate, for $HOST, signed by AUTHORITY.
sub certificate {
    my ($authority) = @_;
    openssl(qw(req -newkey rsa:2048 -nodes -subj /CN=server -keyout),
        "$dir/server.key", "-out", "$dir/server.csr");
    write_file("$dir/server.ext", "subjectAltName=DNS:$HOST\n");
    openssl(qw(x509 -req -days 2 -in), "$dir/server.csr", "-CA",
        "$dir/$authority.crt", "-CAkey", "$dir/$authority.key",
        "-CAcreateserial", "-extfile", "$dir/server.ext", "-out",
        "$dir/server.crt");
    chmod 0600, "$dir/server.key";
    my $user = unprivileged() or return;
    chown((getpwnam $user)[2, 3], "$dir/server.key")
        or die "CrmTest: $dir/server.key: $!\n";
}

authority($_) for qw(ours theirs);
certificate("ours");
my $port = free_port();
my $pg = CrmTest::Postgres->get(port => $port, ssl => "on",
    listen_addresses => "'127.0.0.1'", ssl_cert_file => "'$dir/server.crt'",
    ssl_key_file => "'$dir/server.key'",
    password_encryption => "'scram-sha-256'");
my $database = database();
# Over TCP one gets in with a password and TLS only.
write_file($pg->host . "/data/pg_hba.conf",
    "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n");
sql("postgres", "SELECT pg_reload_conf()");
sql("postgres", "ALTER ROLE $_ PASSWORD '$PASSWORD'") for
    $CrmTest::Postgres::OWNER, $CrmTest::Postgres::API,
    $CrmTest::Postgres::WORKER;

# The conninfo of ROLE, with OPTIONS instead of the good ones. Without sslcert
# libpq looks below $HOME, where httpd's children may not even look.
sub over_tcp {
    my ($role, %options) = @_;
    my %value = (host => $HOST, hostaddr => "127.0.0.1", port => $port,
        dbname => $database, user => $role, password => $PASSWORD,
        sslmode => "verify-full", sslrootcert => "$dir/ours.crt",
        sslcert => "$dir/none",
        channel_binding => "require", connect_timeout => 60, %options);
    return join " ", map { "$_=$value{$_}" } sort keys %value;
}

subtest "the right authority: served, over TLS" => sub {
    my $httpd = httpd(database => $database,
        conninfo => over_tcp($CrmTest::Postgres::API));
    my $w = workspace($httpd);
    my $c = $w->client;

    status_is($c->get("/api/v1/agents"), 200, "a read");
    status_is($c->post("/api/v1/contacts", { bot_id => $w->agent }), 201,
        "a write");
    my @sessions = sql("postgres", "SELECT DISTINCT s.ssl,
            host(a.client_addr)
        FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
        WHERE a.usename = '$CrmTest::Postgres::API'");
    is_deeply(\@sessions, [["t", "127.0.0.1"]], "all of it over TLS and TCP");
    unlike($httpd->log_text, qr/\Q$PASSWORD\E/, "the log has no password");
    $httpd->stop;
};

# What is wrong, instead of what, and libpq's word for it.
my @WRONG = (
    ["an authority that did not sign", qr/certificate verify failed/,
        sslrootcert => "$dir/theirs.crt"],
    ["another host's certificate", qr/does not match host name/,
        host => "other.crm.example"],
    ["another password", qr/password authentication failed/,
        password => "$PASSWORD-not"],
    ["no TLS at all", qr/no pg_hba\.conf entry/,
        sslmode => "disable", channel_binding => "prefer"],
);
for my $case (@WRONG) {
    my ($what, $reason, %options) = @$case;
    subtest "$what: 503, and one line" => sub {
        my $httpd = httpd(database => $database, children => 1,
            dbd => "DBDMin 0\nDBDKeep 1\nDBDMax 4\n",
            conninfo => over_tcp($CrmTest::Postgres::API, %options));
        $httpd->expect_log($reason => 1);
        my $c = $httpd->client(key => "svc_live_" . "a" x 30);
        my $r = $c->get("/api/v1/agents");

        error_is($r, 503, "service_unavailable", "5.5 it is unavailable");
        unlike($r->body, $INSIDE, "5.5 the body has nothing of the reason");
        my @lines = $httpd->log_lines($reason);
        is(scalar @lines, 1, "the reason is logged in one line")
            or diag(join "\n", @lines);
        unlike($httpd->log_text, qr/\Q$PASSWORD\E/, "without the password");
        $httpd->stop;
    };
}

subtest "docs/operations.md: openssl says why a certificate was refused" => sub {
    my ($command) = read_file("$CrmTest::TOP/docs/operations.md")
        =~ /^    (openssl s_client .*)$/m or die "no command\n";
    for my $case (["ours", qr/^Verification: OK$/m],
            ["theirs", qr/^verify error:\S* ?unable to get local issuer/m]) {
        my ($authority, $line) = @$case;
        my $run = $command =~ s/FILE/$dir\/$authority.crt/r
            =~ s/db\.example\.com:5432/127.0.0.1:$port/r;
        my (undef, $out, $err) = run_program(command => ["sh", "-c", $run]);
        like("$out$err", $line, "with the authority $authority");
    }
};

subtest "the worker" => sub {
    my $worker = worker(no_start => 1, conninfo =>
        over_tcp($CrmTest::Postgres::WORKER));
    chmod 0600, $worker->conf_file;     # it holds a password
    $worker->once;
    pass("the right authority: it works");
    for my $case (@WRONG) {
        my ($what, $reason, %options) = @$case;
        $worker->configure({ database =>
            over_tcp($CrmTest::Postgres::WORKER, %options) });
        my ($code, $out, $err) = $worker->run("-1");
        isnt($code, 0, "$what: it fails");
        like($err, $reason, "$what: and says why");
        is(scalar(() = $err =~ /\n/g), 1, "$what: in one line")
            or diag($err);
        unlike("$out$err", qr/\Q$PASSWORD\E/, "$what: without the password");
    }
};

subtest "crmapictl" => sub {
    for my $case (["the right authority", undef], @WRONG) {
        my ($what, $reason, %options) = @$case;
        my ($code, $out, $err) = crmapictl(undef, { env => { CRMAPI_DATABASE =>
            over_tcp($CrmTest::Postgres::OWNER, %options) } }, "status");
        is($code ? 1 : 0, $reason ? 1 : 0, "$what: exit code");
        like($err, $reason, "$what: it says why") if $reason;
        unlike("$out$err", qr/\Q$PASSWORD\E/, "$what: without the password");
    }
};

subtest "what is refused with TLS and without is said once" => sub {
    write_file($pg->host . "/data/pg_hba.conf",
        "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    sql("postgres", "SELECT pg_reload_conf()");
    my $conninfo = over_tcp($CrmTest::Postgres::OWNER, sslmode => "prefer",
        password => "$PASSWORD-not", channel_binding => "prefer");
    my $err;
    ok(wait_for(sub {
        $err = (crmapictl(undef, { env => { CRMAPI_DATABASE => $conninfo } },
            "status"))[2];
        return $err !~ /pg_hba/;
    }), "the server has read its file");
    is(() = $err =~ /password authentication failed/g, 1, "once") or diag($err);
};

done_testing;
