# SPDX-License-Identifier: Apache-2.0
# 54-worker-log.t: crmapid's log_format = json: one object per line, valid UTF-8
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Log qw(objects);
use CrmTest::Process qw(spawn end_process run_program);

my $database = database();
my $workspace = crmapictl_ok($database, qw(workspace create --name W --slug w
    --plan pro));
my $worker = worker(database => $database, no_start => 1,
    conf => { log_format => "json", log_level => "debug", threads => 1 });


# Make a job of KIND.
sub job {
    my ($kind) = @_;
    return scalar sql($database, "INSERT INTO crmapi.job (workspace_id, kind)
        VALUES ('$workspace', '$kind') RETURNING id");
}

$worker->expect_log(qr/CRM3102/);
$worker->start;
# The kind goes into the message.
my @nasty = (q(sequence."quoted" \\back\\), "sequence.tab\tline\nend\x7f",
    "sequence.ünïcode \x{1F600}" . "x" x 900,
    "sequence.\x{9b}31m \x{202e}gnp \x{2066}\x{61c}\x{200d}x");
my @ids = map { s/'/''/gr } @nasty;
@ids = map { utf8::encode(my $kind = $_); job($kind) } @ids;
ok(wait_for(sub { sql($database, "SELECT count(*) FROM crmapi.job
    WHERE state = 'dead'") == @ids }, 20), "jobs that nobody knows are given up");
my @objects = objects($worker->log_text);

subtest "what each line has" => sub {
    my %level;
    for my $object (@objects) {
        like($object->{time}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
            "time: RFC 3339");
        like($object->{level}, qr/^(?:error|warning|notice|info|debug)$/,
            "level");
        is($object->{pid}, $worker->pid, "pid")
            unless $ENV{CRM_VALGRIND};
        like($object->{thread}, qr/^\d+$/, "thread");
        like($object->{code}, qr/^CRM\d{4}$/, "code");
        unlike($object->{message}, qr/^CRM\d|[\x00-\x1f]/, "message");
        $level{$object->{level}}++;
    }
    ok($level{notice} && $level{warning} && $level{debug}, "all levels");
    my %thread = map { $_->{thread} => 1 } @objects;
    cmp_ok(scalar keys %thread, ">", 1, "of several threads");
};

subtest "lines about a job name it" => sub {
    for my $i (0 .. $#ids) {
        my ($dead) = grep { $_->{code} eq "CRM3102"
            && ($_->{job} // "") eq $ids[$i] } @objects;
        ok($dead, "job $ids[$i]") or next;
        is($dead->{lane}, "sequence", "lane");
        is($dead->{workspace}, $workspace, "workspace");
        is($dead->{level}, "warning", "level");
        my $kind = $nasty[$i]
            =~ s/[\x00-\x1f\x7f-\x9f\x{202a}-\x{202e}\x{2066}-\x{2069}\x{61c}]/ /gr;
        is(substr($dead->{message}, 0, length("job $ids[$i] ($kind")),
            "job $ids[$i] ($kind", "the message as it is");
    }
    my ($start) = grep { $_->{code} eq "CRM3001" } @objects;
    ok(!exists $start->{job} && !exists $start->{workspace},
        "other lines name none");
    $worker->expect_log(qr/ 42883 /, qr/CRM3003/);
    sql($database, "ALTER FUNCTION crmapi.job_claim RENAME TO no_claim");
    job("sequence.later");
    ok(wait_for(sub { $worker->log_text =~ / 42883 / }, 20), "no job can be claimed");
    sql($database, "ALTER FUNCTION crmapi.no_claim RENAME TO job_claim");
    is_deeply([grep { $_->{message} =~ / 42883 / && exists $_->{job} }
        objects($worker->log_text)], [],
        "nor does one of the thread that had them");
};

subtest "what is no UTF-8, and what is too long" => sub {
    # an error of the database, with a name of bytes and of many characters
    my ($bad, $long) = ("a\xff\xc3(\xed\xa0\x80b", "é\"\\" x 1500);
    utf8::encode($long);
    for my $name ($bad, $long) {
        $worker->stop;
        my $path = $worker->dir . "/" . substr($name, 0, 200) . "/x";
        $worker->configure({ status_listen => $path . "\\" x 2500 });
        my ($code, $err) = $worker->refuses;
        isnt($code, 0, "it cannot start");
        my ($line) = split /\n/, $err;
        my ($object) = objects($line);
        like($object->{message} // "", qr/^status_listen: /, "what it is");
        cmp_ok(length $line, "<", 4096, "cut so that a pipe takes it at once");
        $worker->configure({ status_listen => undef });
    }
};

subtest "a reload changes the format" => sub {
    $worker->start;
    $worker->configure({ log_format => "text" });
    kill HUP => $worker->pid;
    ok($worker->wait_log(qr/^\S+Z \[\d+\] notice: CRM3001: /), "to text");
    $worker->stop;
};

subtest "the journal gets the level, too" => sub {
    local $worker->{env} = { JOURNAL_STREAM => "1:1" };
    $worker->configure({ log_format => "json" });
    job("sequence.nothing");
    my $err = $worker->once;
    my ($line) = $err =~ /^(.*CRM3102.*)$/m;
    like($line // "", qr/^<4>\{/, "before the object");
    objects(substr $line, 3);
    $worker->configure({ log_format => "text", log_level => "warning" });
    job("sequence.two\n\xc2\x9b\xe2\x80\xaelines");
    $err = $worker->once;
    like($err, qr/\A<4>CRM3102: job \d+ \(sequence\.two   lines\) [^\n]*\n\z/,
        "a line of text has no time: the journal has one; no other level is there");
    $worker->configure({ log_level => "debug" });
};

subtest "files of certificates that cannot be used are told at the start" => sub {
    my $file = $worker->dir . "/ca";
    for my $name (qw(smtp_ca_file provider_ca_file webhook_ca_file)) {
        for my $case ([undef, qr/No such file or directory/],
                ["", qr/the file has no certificates/],
                ["no PEM\n", qr/the file has no certificates/]) {
            my ($text, $reason) = @$case;
            unlink $file;
            write_file($file, $text) if defined $text;
            $worker->configure({ log_format => "text", $name => $file });
            my ($code, $out, $err) = $worker->run("-t");
            is($code, 2, "$name: refused");
            like($err, qr/\Acrmapid: \S+: $name: \Q$file\E: $reason\n\z/, "and why");
        }
        $worker->configure({ log_format => "text", $name => undef });
    }
};

# The numbers of closed streams are given to what is opened next: connections, and
# the journal of what was sent.
subtest "standard streams that are closed" => sub {
    my $beside = worker(database => $database, no_start => 1);
    my @command = ("bash", "-c", 'exec "$@" >&- 2>&-', "x", $beside->command);
    my $pid = spawn(command => \@command, env => $beside->environment,
        log => $beside->log_file);
    ok(wait_for(sub { glob $beside->dir . "/sent.*" }, 20), "it has a journal");
    my ($status) = end_process($pid, "TERM", 40);
    is($status, 0, "it ends");
    for my $file (glob $beside->dir . "/sent.*") {
        unlike(read_file($file), qr/CRM\d/, "which has no lines of the log");
    }
};

subtest "a file that may not become larger is told" => sub {
    limits_files();
    my $beside = worker(database => $database, no_start => 1);
    my ($code, $out) = run_program(command => ["bash", "-c",
        '(ulimit -f 0; exec "$@") 2>&1 | cat; exit ${PIPESTATUS[0]}', "x",
        $beside->command("-1")], env => $beside->environment);
    cmp_ok($code, "<", 126, "no signal ends it");
    like($out, qr/run_dir: \S+: File too large/, "the reason");
};
subtest "a limit of open files that is too low for the threads is told" => sub {
    my $beside = worker(database => $database, no_start => 1);
    for my $case (["-n 90", 2], ["-Sn 90", 0]) {
        my ($limit, $expected) = @$case;
        my ($code, $out, $err) = run_program(command => ["bash", "-c",
            "ulimit $limit; exec \"\$@\"", "x", $beside->command("-t")],
            env => $beside->environment);
        is($code, $expected, "ulimit $limit");
        like($err, $code ? qr/ up to \d+ open files.* allows 90 .*LimitNOFILE/
                         : qr/\A\z/, "what it says");
    }
};
subtest "a log file that cannot be written is told elsewhere" => sub {
    limits_files();
    my $file = $worker->dir . "/own.log";
    my $port = free_port();
    my $beside = worker(database => $database, no_start => 1,
        conf => { log_file => $file, log_level => "debug",
            status_listen => "127.0.0.1:$port" });
    $beside->expect_log(qr/log_file: / => 1);
    write_file($file, "x" x 999 . "\n");   # there is room for a part of a line
    chmod 0666, $file;
    job("sequence.more");
    my $pid = spawn(command => ["bash", "-c", 'ulimit -f 1; exec "$@"', "x",
        $beside->command], env => $beside->environment,
        log => $beside->log_file);
    my $lost = sub { my $r = eval { CrmTest::Client->new(port => $port)->get(
        "/metrics")->body } // ""; $r =~ /^crmapid_log_lines_lost_total (\d+)$/m
        ? $1 : 0 };
    ok(wait_for(sub { $lost->() > 1 }, 20), "lines are lost, and counted");
    isnt(read_file($beside->log_file, ""), "", "it is told");
    truncate $file, 0 or die "$file: $!\n";
    kill HUP => $pid;
    ok(wait_for(sub { read_file($file) =~ /CRM3016/ }, 20),
        "and in the log when it can be written");
    my ($n) = read_file($file) =~ / warning: CRM3016: .*: (\d+) \(File too large\)$/m;
    is($n, $lost->(), "with the number of lines that were lost");
    end_process($pid, "TERM", 40);
    like(read_file($beside->log_file), qr/ error: log_file: \Q$file\E: No space left/,
        "with the reason");
};
done_testing;
