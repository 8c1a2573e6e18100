# SPDX-License-Identifier: Apache-2.0
# 29-pool.t: mod_dbd's pools of connections, which other modules use, too
# (contract 5.5)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Session;
use Digest::SHA qw(sha1_base64);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);
use Time::HiRes qw(time);

my $UNLIMITED = "CrmApiReadLimit 0\nCrmApiWriteLimit 0\n";
my $STATUS = "<Location /server-status>\nSetHandler server-status\n</Location>\n";
my $LOCK = 290000 + $$ % 10000;
my $prefork = ($ENV{CRM_MPM} || "event") eq "prefork";
my $slow = valgrinded() || sanitized() ? 5 : 1;
my $database = database();
my $scratch = tempdir("crm-pool-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;

# A virtual host without the API, whose DBD directives are those of the main
# server. /private asks mod_authn_dbd for the password, /lua opens and closes a
# connection of mod_dbd. Both wait at the database while hold() is in force.
write_file("$scratch/open.lua", <<"END");
function handle(r)
    local db, reason = r:dbacquire("mod_dbd")
    if not db then
        r:puts("none: " .. tostring(reason))
        return apache2.OK
    end
    db:query(r, "SELECT pg_advisory_xact_lock_shared($LOCK)")
    db:close()
    r:puts("closed")
    return apache2.OK
end
END
my @MODULES = qw(auth_basic authn_dbd authz_user lua);
my $OTHERS = <<"END";
ServerName api.example
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName api.example
</VirtualHost>
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName other.example
    CrmApi Off
    LuaMapHandler /lua $scratch/open.lua handle
    <Location /private>
        AuthType Basic
        AuthName private
        AuthBasicProvider dbd
        AuthDBDUserPWQuery "SELECT '{SHA}@{[sha1_base64("secret")]}=' FROM pg_advisory_xact_lock_shared($LOCK) WHERE %s = 'iris'"
        Require valid-user
    </Location>
</VirtualHost>
END

# Who else uses the pool: module, path, status of the answer.
my @USERS = (
    ["mod_authn_dbd", "/private", 404],     # let in, but there is no file
    ["mod_lua", "/lua", 200],
);

# Send GET PATH to other.example; returns a code that reads the answer.
sub begin_other {
    my ($httpd, $path) = @_;
    my $c = $httpd->client(timeout => 60);
    $c->send_raw("GET $path HTTP/1.0\r\nHost: other.example\r\n"
        . "Authorization: Basic " . encode_base64("iris:secret", "")
        . "\r\n\r\n");
    return sub { $c->read_response("GET") };
}

sub hold { holding($database, "SELECT pg_advisory_xact_lock($LOCK)") }

# An answer of CODE is the 503 of contract 5.5, after SECONDS and not much
# later.
sub gives_up_after {
    my ($seconds, $code, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $start = time;
    my $r = $code->();
    my $took = time - $start;
    error_is($r, 503, "service_unavailable", $name);
    like($r->header("Retry-After") // "", qr/^[1-9]\d*$/,
        "5.5 $name: with Retry-After");
    cmp_ok($took, ">=", $seconds - 0.1, "$name: not before $seconds s");
    cmp_ok($took, "<", $seconds + 1.5 * $slow * busy(), "$name: nor later");
}

for my $user (@USERS) {
    my ($name, $path, $status) = @$user;
    subtest "$name has the only connection: 503 after CrmApiDatabaseWait" => sub {
        plan(skip_all => "prefork has a connection for each process")
            if $prefork;
        my $httpd = httpd(database => $database, children => 1,
            dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n", modules => \@MODULES,
            conf => "${UNLIMITED}CrmApiDatabaseWait 1s\n$STATUS$OTHERS");
        my $w = workspace($httpd);
        my $c = $w->client(host => "api.example", timeout => 20);
        status_is($c->get("/api/v1/agents"), 200, "before");
        $httpd->expect_log(qr/CRM1303: none of the 1 connections/ => 1);
        my $let_go = hold();
        my $other = begin_other($httpd, $path);
        wait_blocked($database, 1);
        is($httpd->client->counter("ConnectionsUsed"), 1,
            "CrmApiConnectionsUsed counts it");
        gives_up_after(1, sub { $c->get("/api/v1/agents") }, "meanwhile");
        my $queued = begin_other($httpd, $path);
        ok(wait_for(sub { $httpd->client->get("/server-status?auto")->body
            =~ /^BusyWorkers: 3$/m }), "another one queues");
        gives_up_after(1, sub { $c->get("/api/v1/agents") }, "with a queue");
        ok(wait_for(sub { $httpd->client->counter("DatabaseBusy") == 2 }),
            "CrmApiDatabaseBusy counts both");
        $let_go->();
        is($_->()->status, $status, "it is served") for $other, $queued;
        ok(wait_for(sub { $httpd->client->counter("ConnectionsUsed") == 0 }),
            "all are given back");
        status_is($c->get("/api/v1/agents"), 200, "afterwards") for 1 .. 3;
        $httpd->stop;
    };
}

subtest "all use a pool of two at once: each is served, none hangs" => sub {
    my $httpd = httpd(database => $database, children => 1,
        dbd => "DBDMin 1\nDBDKeep 2\nDBDMax 2\n", modules => \@MODULES,
        conf => "${UNLIMITED}CrmApiDatabaseWait 30s\n$STATUS$OTHERS");
    my $w = workspace($httpd);
    my @clients = map { my $n = $_; CrmTest::Child->start(sub {
        my %count;
        for (1 .. 40) {
            my $r = $n % 3 ? begin_other($httpd, $USERS[$n % 3 - 1][1])->()
                : $w->client(host => "api.example")->get("/api/v1/agents");
            $count{$r->status}++;
        }
        return %count;
    }) } 0 .. 5;
    is_deeply([map { +{ $_->result } } @clients],
        [({ 200 => 40 }, { 404 => 40 }, { 200 => 40 }) x 2], "all answers");
    ok(wait_for(sub { $httpd->client->counter("ConnectionsUsed") == 0 }),
        "all are given back");
    $httpd->stop;
};

subtest "a body that comes slowly holds no connection" => sub {
    plan(skip_all => "prefork has a connection for each process") if $prefork;
    my $httpd = httpd(database => $database, children => 1,
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n",
        conf => "${UNLIMITED}CrmApiDatabaseWait 1s\n$STATUS");
    my $w = workspace($httpd);
    my $body = qq({"bot_id":"@{[$w->agent]}"});
    my $slow = $httpd->client(timeout => 60);
    # the key is looked up first
    $slow->send_raw("POST /api/v1/contacts HTTP/1.1\r\nHost: x\r\n"
        . "Authorization: Bearer " . $w->key . "\r\nContent-Length: "
        . length($body) . "\r\n\r\n");
    ok(wait_for(sub { $httpd->client->counter("WritesAdmitted") == 1 }),
        "it is admitted");
    status_is($httpd->client(key => $w->make_key("read"))->get(
        "/api/v1/agents"), 200, "another is served meanwhile");
    $slow->send_raw($body);
    is($slow->read_response("POST")->status, 201, "then it is");
    $httpd->stop;
};

subtest "who gets no connection leaves its place" => sub {
    my $httpd = httpd(database => $database, children => 1,
        dbd => "DBDMin 0\nDBDKeep 1\nDBDMax 1\n", modules => \@MODULES,
        conf => "${UNLIMITED}CrmApiDatabaseWait 1s\n$STATUS$OTHERS");
    my $w = workspace($httpd);
    # of the outage; and of mod_dbd and mod_authn_dbd
    $httpd->may_log(qr/CRM(?:130[45]|2001): /, qr/AH00632: |AH01653: /,
        qr/not currently accepting connections/);
    sql("postgres", "ALTER DATABASE $database ALLOW_CONNECTIONS false");
    for my $user (@USERS, @USERS) {
        my $r = begin_other($httpd, $user->[1])->();
        ok($r->status == 500 || $r->body =~ /^none/, "$user->[0] gets none")
            or diag($r->text);
    }
    sql("postgres", "ALTER DATABASE $database ALLOW_CONNECTIONS true");
    is($httpd->client->counter("ConnectionsUsed"), 0, "no place is taken");
    status_is($w->client(host => "api.example")->get("/api/v1/agents"), 200,
        "the only one is there for the API");
    $httpd->stop;
};

subtest "a virtual host's DBDMax, or what it inherits, is its limit" => sub {
    my $httpd = httpd(database => $database, children => 1,
        dbd => "DBDMin 0\nDBDKeep 1\nDBDMax 7\n", conf => "$STATUS" . <<'END');
<VirtualHost 127.0.0.1:@PORT@>
    ServerName same.example
    DBDMax 7
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName three.example
    DBDMax 3
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName off.example
    CrmApi Off
    DBDMax 100
</VirtualHost>
END
    is($httpd->client->counter("ConnectionsMax"), 10, "7 and 3");
    $httpd->write_conf($STATUS . <<'END');
<VirtualHost 127.0.0.1:@PORT@>
    ServerName keep.example
    DBDKeep 2
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName min.example
    DBDMin 1
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName time.example
    DBDExptime 7
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName unlimited.example
    DBDPersist Off
</VirtualHost>
END
    $httpd->restart;
    ok(wait_for(sub { ($httpd->client->counter("ConnectionsMax") // 0) == 28 }),
        "four pools with the inherited 7; without DBDPersist there is no limit")
        or diag($httpd->client->counter("ConnectionsMax"));
    $httpd->{dbd} = "DBDMin 0\n";
    $httpd->write_conf($STATUS);
    $httpd->restart;
    ok(wait_for(sub { ($httpd->client->counter("ConnectionsMax") // 0) == 10 }),
        "mod_dbd's default is 10");
    $httpd->stop;
};

subtest "a virtual host's DBDMax limits its requests" => sub {
    plan(skip_all => "prefork has a connection for each process")
        if $prefork;
    my $httpd = httpd(database => $database, children => 1,
        dbd => "DBDMin 0\nDBDKeep 1\nDBDMax 4\n", conf => $UNLIMITED . <<'END');
CrmApiDatabaseWait 1s
ServerName many.example
<VirtualHost 127.0.0.1:@PORT@>
    ServerName many.example
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    ServerName one.example
    DBDMax 1
</VirtualHost>
END
    my $w = workspace($httpd);
    my $one = sub { $w->client(host => "one.example", timeout => 60) };
    my $id = $one->()->post("/api/v1/contacts", { bot_id => $w->agent })
        ->data->{id};
    my $let_go = holding($database, "SELECT FROM crmapi.contact"
        . " WHERE id = '$id' FOR UPDATE");
    my $busy = CrmTest::Child->start(sub {
        $one->()->patch("/api/v1/contacts/$id", { notes => "x" })->status });
    wait_blocked($database, 1);
    $httpd->expect_log(qr/CRM1303: none of the 1 connections/ => 1);
    gives_up_after(1, sub { $one->()->get("/api/v1/agents") },
        "the second request of one.example");
    status_is($w->client(host => "many.example")->get("/api/v1/agents"), 200,
        "many.example has a pool of its own");
    $let_go->();
    is_deeply([$busy->result], [200], "the first is served");
    $httpd->stop;
};

subtest "mod_dbd has another limit than its directives say: it counts" => sub {
    write_file("$scratch/mod_skew.c", <<'END');
#include "apr_dbd.h"
#include "apr_optional_hooks.h"
#include "httpd.h"
#include "http_config.h"
#include "mod_dbd.h"
static apr_status_t skew(apr_pool_t *p, dbd_cfg_t *config, ap_dbd_t *dbd)
{
    config->nmax = 3;
    return APR_SUCCESS;
}
static void hooks(apr_pool_t *p)
{
    APR_OPTIONAL_HOOK(dbd, post_connect, skew, NULL, NULL, APR_HOOK_FIRST);
}
module AP_MODULE_DECLARE_DATA skew_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks
};
END
    my ($code, $out, $err) = run_program(command => [$CrmTest::BUILD{APXS},
        "-q", "EXTRA_INCLUDES", "EXTRA_CPPFLAGS"]);
    ($code, $out, $err) = run_program(command => ["cc", "-shared", "-fPIC",
        "-w", (grep { length } split /[\s;]+/, $out), "-o",
        "$scratch/mod_skew.so", "$scratch/mod_skew.c"]);
    is($code, 0, "a module that changes it") or diag($err);
    my $httpd = httpd(database => $database, children => 1,
        conf => "LoadModule skew_module $scratch/mod_skew.so\n$STATUS",
        expect_log => [qr/CRM1105: DBDMax is 3 for mod_dbd, but 10 for mod_crmapi, which uses 3 from now on \(/]);
    is($httpd->client->counter("ConnectionsMax"), 3, "CrmApiConnectionsMax");
    status_is(workspace($httpd)->client->get("/api/v1/agents"), 200,
        "it serves");
    $httpd->stop;
};

subtest "without mod_dbd its directives are unknown, as httpd says it" => sub {
    for my $line ("DBDriver pgsql", "DBDParams x", "DBDPersist On", "DBDMin 1",
        "DBDKeep 1", "DBDMax 1", "DBDExptime 1") {
        my $httpd = httpd(no_start => 1, modules => ["-dbd"],
            conf => "$line\n");
        my ($code, $words) = $httpd->run("-t");
        isnt($code, 0, "$line is refused");
        my ($name) = split " ", $line;
        like($words, qr/^Invalid command '$name', perhaps misspelled or defined by a module not included in the server configuration$/m,
            "with httpd's usual words");
    }
};

subtest "mod_dbd itself checks the values of its directives" => sub {
    for my $case (["DBDMax ten", qr/Argument must be numeric!/],
        ["DBDMin -1", qr/Argument must be numeric!/],
        ["DBDPersist maybe", qr/DBDPersist must be On or Off/],
        ["DBDMax 1 2", qr/DBDMax takes one argument/],
        ["DBDriver none", qr/driver.*none/]) {
        my ($line, $pattern) = @$case;
        my ($code, $words) = httpd(no_start => 1, conf => "$line\n")
            ->run("-t");
        isnt($code, 0, "$line is refused");
        like($words, $pattern, "with mod_dbd's words");
    }
};

subtest "a DBDriver that is not pgsql: CRM1103" => sub {
    # a driver that has a name and nothing else
    write_file("$scratch/other.c",
        "const char *apr_dbd_other_driver[64] = {\"other\"};\n");
    my ($code, $out, $err) = run_program(command => ["cc", "-shared", "-fPIC",
        "-o", "$scratch/apr_dbd_other-1.so", "$scratch/other.c"]);
    is($code, 0, "a driver") or diag($err);
    my $httpd = httpd(env => { LD_LIBRARY_PATH => $scratch },
        conf => "DBDriver other\nDBDMin 0\n",
        expect_log => [qr/CRM1103: DBDriver is other, but must be pgsql/ => 1]);
    error_is($httpd->client(key => "svc_live_" . "k" x 30)
        ->get("/api/v1/agents"), 503, "service_unavailable", "answered 503") for 1 .. 3;
    $httpd->stop;
};

subtest "another DBDParams: keys of the database before are unknown" => sub {
    my $httpd = httpd(database => $database, conf => "CrmApiReadLimit 2\n");
    my $w = workspace($httpd);
    my $get = sub { $w->client->get("/api/v1/agents") };
    status_is($get->(), 200, "the budget is used up") for 1, 2;
    error_is($get->(), 429, "rate_limited", "4 from memory");
    $httpd->restart;
    error_is($get->(), 429, "rate_limited", "4.4 after a restart, too");
    $httpd->{database} = database();
    $httpd->write_conf;
    $httpd->restart;
    ok(wait_for(sub { $get->()->status == 401 }, 10),
        "3.1 not admitted, nor refused, from memory");
    error_is($get->(), 401, "unauthorized", "3.1 by no process");
    $httpd->{database} = $database;
    $httpd->write_conf;
    $httpd->restart;
    ok(wait_for(sub { $get->()->status == 429 }, 10),
        "4.4 with the first one again: its count");
    $httpd->stop;
};

subtest "three graceful restarts with mod_authn_dbd and mod_lua" => sub {
    my $httpd = httpd(database => $database, modules => \@MODULES,
        conf => "$UNLIMITED$STATUS$OTHERS");
    # the processes of two restarts may end at the same time
    $httpd->may_log(qr/AH03490: scoreboard is full/);
    my $w = workspace($httpd);
    my $all = sub {
        my ($name) = @_;
        for my $user (@USERS) {
            is(begin_other($httpd, $user->[1])->()->status, $user->[2],
                "$name: $user->[0]") for 1 .. 3;
        }
        status_is($w->client(host => "api.example")->get("/api/v1/agents"),
            200, "$name: the API");
    };
    $all->("before");
    for my $n (1 .. 3) {
        # one is under way while the processes change
        my $let_go = hold();
        my @others = map { begin_other($httpd, $_->[1]) } @USERS;
        wait_blocked($database, scalar @USERS);
        $httpd->restart;
        $let_go->();
        is($others[$_]->()->status, $USERS[$_][2], "restart $n: "
            . "$USERS[$_][0] goes on") for 0 .. $#USERS;
        $all->("after restart $n");
    }
    # the module goes, its wrappers with it, and comes again
    for my $crmapi (0, 1) {
        $httpd->{crmapi} = $crmapi;
        $httpd->write_conf($crmapi ? "$UNLIMITED$STATUS$OTHERS"
            : "$STATUS$OTHERS" =~ s/^ *CrmApi.*\n//mgr);
        $httpd->restart;
        is(begin_other($httpd, $_->[1])->()->status, $_->[2],
            "mod_crmapi loaded: $crmapi: $_->[0]") for @USERS;
    }
    $all->("at the end");
    $httpd->stop;
};

done_testing;
