# SPDX-License-Identifier: Apache-2.0
# 48-idempotency-lines.t: writes with an Idempotency-Key over connections that
# break at any byte of request and answer, and past killed servers: each write
# has one effect and one answer (contract 13.1)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
# This file kills servers, so it has one of its own.
BEGIN { delete $ENV{CRM_TEST_PG} }
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use Time::HiRes qw(sleep time);

# Writes in all, clients at a time, and how often servers are killed.
my ($WRITES, $CLIENTS) = ($ENV{CRM_LONG} ? 1000 : 120, 4);
my $KILLS = $ENV{CRM_LONG} ? 20 : 4;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
# killed servers: libpq, mod_dbd and httpd say so
$httpd->may_log(qr/CRM(?:130[345]|200[14]): /,
    qr/AH00052: child pid \d+ exit/);
my $w = workspace($httpd, twin => 0);
my @named = (bot_id => $w->agent);
my $template = $w->template;
my $json = JSON::PP->new->utf8->canonical;
my @KINDS = qw(contact company card activity upsert start patch delete);

# The write NAME of KIND: [method, path, body]. OWN is a contact for what needs
# one.
sub write_of {
    my ($kind, $name, $own) = @_;
    my %write = (
        contact => ["POST", "contacts", { @named, notes => $name }],
        company => ["POST", "companies", { @named, name => $name }],
        card => ["POST", "pipeline-cards", { title => $name,
            pipeline_stage_id => ($w->stages)[0] }],
        activity => ["POST", "activities", { title => $name,
            activity_type => "note", contact_id => $own }],
        upsert => ["POST", "contacts/upsert", { @named,
            contacts => [map { { notes => "$name-$_" } } 1 .. 3] }],
        start => ["POST", "sequences/start", { template_id => $template,
            name => $name, contact => { emails => ["$name\@x.example"] } }],
        patch => ["PATCH", "contacts/$own", { notes => $name }],
        delete => ["DELETE", "contacts/$own"]);
    return $write{$kind};
}

# The bytes of WRITE with KEY.
sub bytes_of {
    my ($write, $key) = @_;
    my ($method, $path, $body) = @$write;
    my $text = $body ? $json->encode($body) : "";

    return "$method /api/v1/$path HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
        . $w->key . "\r\nIdempotency-Key: $key\r\nConnection: close\r\n"
        . ($body ? "Content-Type: application/json\r\nContent-Length: "
            . length($text) . "\r\n" : "") . "\r\n$text";
}

# Send BYTES over a connection that breaks at byte CUT of request and answer
# (undef: never). Returns what came of the answer.
sub over_line {
    my ($bytes, $cut) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
        PeerPort => $httpd->port, Proto => "tcp") or return "";
    my $answer = "";
    local $SIG{PIPE} = "IGNORE";

    syswrite $socket, substr $bytes, 0, $cut // length $bytes;
    my $left = defined $cut ? $cut - length $bytes : 1e9;
    while ($left > 0) {
        my $n = sysread($socket, $answer, $left < 65536 ? $left : 65536,
            length $answer) or last;
        $left -= $n;
    }
    return $answer;
}

# The status, the Location, the body and the mark of ANSWER if it is complete.
sub complete {
    my ($answer) = @_;
    my ($head, $body) = split /\r\n\r\n/, $answer, 2;

    return unless defined $body && $head =~ m{^HTTP/1.1 (\d+)};
    my $status = $1;
    my ($length) = $head =~ /^Content-Length: (\d+)/mi;
    return if $status != 204 && length $body != ($length // -1);
    return { status => $status, body => $body,
        location => $head =~ /^Location: (\S+)/mi ? "$1" : "",
        replayed => scalar $head =~ /^Idempotent-Replayed: true/mi };
}

# Send BYTES until an answer that is final is complete. Returns it, and how
# often 409 and 5xx came before.
sub persist {
    my ($bytes) = @_;
    my $until = time + 60;
    my %before = (busy => 0, failed => 0);

    while (time < $until) {
        my $r = complete(over_line($bytes));
        return ($r, \%before) if $r && $r->{status} !~ /^(?:409|5..)$/;
        $before{$r && $r->{status} == 409 ? "busy" : "failed"}++;
        sleep 0.05;
    }
    die "CrmTest: no answer within 60 s\n";
}

# Do the write NAME of KIND three times over bad lines, then until it is
# answered, twice. Returns what was odd, and whether a broken one was done.
sub over_bad_lines {
    my ($kind, $name, $own) = @_;
    my $bytes = bytes_of(write_of($kind, $name, $own), "key-$name");
    my @got = map { complete(over_line($bytes,
        int rand length($bytes) + ($kind eq "upsert" ? 2500 : 1500))) }
        1 .. 3;
    my ($r) = persist($bytes);
    my ($again) = persist($bytes);
    my @all = (grep({ $_->{status} !~ /^(?:409|5..)$/ } @got), $r, $again);
    my %answers = map { $json->encode([@$_{qw(status location body)}]) => 1 }
        @all;
    my @odd;

    push @odd, "$kind: " . join " / ", sort keys %answers if keys %answers > 1;
    push @odd, "$kind: $r->{status} $r->{body}" if $r->{status} !~ /^2/;
    push @odd, "$kind: the last is no replay" if !$again->{replayed};
    return ($r->{replayed} ? 1 : 0, @odd);
}

# The names of rows of the workspace that SQL finds, with how many there are.
sub found {
    my ($sql) = @_;
    return { map { $_->[0] => $_->[1] } sql($database, "SELECT name, count(*)
        FROM ($sql) t (name) WHERE name IS NOT NULL GROUP BY 1") };
}

# Every write of NAMES (kind => [names]) has exactly one effect.
sub one_effect_each {
    my ($names, $own, $title) = @_;
    my $in = "WHERE workspace_id = '" . $w->id . "'";
    my %there = (
        contact => found("SELECT notes FROM crmapi.contact $in"),
        company => found("SELECT name FROM crmapi.company $in"),
        card => found("SELECT title FROM crmapi.pipeline_card $in"),
        activity => found("SELECT title FROM crmapi.activity $in"),
        start => found("SELECT name FROM crmapi.sequence $in"));
    my %ids = map { $_->[0] => 1 } sql($database,
        "SELECT id FROM crmapi.contact $in");
    my @wrong;

    $there{patch} = $there{contact};
    for my $kind (sort keys %$names) {
        for my $name (@{$names->{$kind}}) {
            my @n = $kind eq "upsert"
                ? map { $there{contact}{"$name-$_"} // 0 } 1 .. 3
                : $kind eq "delete" ? ($ids{$own->{$name}} ? 0 : 1)
                : $there{$kind}{$name} // 0;
            push @wrong, "$name: @n" if grep { $_ != 1 } @n;
        }
    }
    return is_deeply(\@wrong, [], $title);
}

# COUNT writes of all kinds, by CLIENTS; BESIDE runs meanwhile.
sub many {
    my ($title, $count, $beside) = @_;
    my %names;
    my %own = map { $_->[0] => $_->[1] } map { my $n = $_;
        my $kind = $KINDS[$n % @KINDS];
        push @{$names{$kind}}, "$title-$n";
        ["$title-$n", uuid()] } 1 .. $count;
    my @need = map { @$_ } @names{qw(activity patch delete)};

    $w->import_objects([map { { object => "contact", id => $own{$_}, @named,
        notes => "own" } } @need]);
    my @children = map { my $client = $_; CrmTest::Child->start(sub {
        srand $client;
        my ($replayed, @odd) = (0);
        for my $n (grep { $_ % $CLIENTS == $client } 1 .. $count) {
            my $name = "$title-$n";
            my ($was, @more) = over_bad_lines($KINDS[$n % @KINDS], $name,
                $own{$name});
            $replayed += $was;
            push @odd, @more;
        }
        return $replayed, @odd;
    }) } 0 .. $CLIENTS - 1;
    $beside->() if $beside;
    my ($replayed, @odd) = (0);
    for my $child (@children) {
        my ($n, @more) = $child->result;
        $replayed += $n;
        push @odd, @more;
    }
    is_deeply(\@odd, [], "$title: $count writes have one answer each");
    one_effect_each(\%names, \%own, "$title: and one effect each");
    cmp_ok($replayed, ">", $count / 10,
        "$title: $replayed were done over a line that broke");
    is(count_rows($w, "idempotent_answer"), sql($database, "SELECT
        count(DISTINCT key) FROM crmapi.idempotent_answer"),
        "$title: an answer for each key");
}

subtest "connections that break" => sub { many("line", $WRITES) };

subtest "sessions of PostgreSQL and processes of httpd that are killed" => sub {
    my $killed = 0;
    many("kill", int $WRITES / 3, sub {
        for my $n (1 .. $KILLS) {
            sleep 0.2 + rand 0.5;
            if ($n % 2) {
                $killed += sql("postgres", "SELECT count(*) FILTER (WHERE
                    pg_terminate_backend(pid)) FROM pg_stat_activity
                    WHERE datname = '$database' AND usename <> 'postgres'");
                next;
            }
            my ($child) = split " ", qx(pgrep -P @{[$httpd->pid]});
            $killed += kill KILL => $child if $child;
        }
    });
    cmp_ok($killed, ">", 0, "$killed were killed");
};

subtest "PostgreSQL that is stopped as by a crash" => sub {
    sql("postgres", "ALTER SYSTEM SET synchronous_commit = 'on'");
    sql("postgres", "SELECT pg_reload_conf()");
    many("crash", int $WRITES / 3, sub {
        for my $n (1 .. $KILLS / 2) {
            sleep 0.5 + rand 0.5;
            postgres()->halt("QUIT");
            postgres()->resume;
        }
    });
};

$httpd->stop;
done_testing;
