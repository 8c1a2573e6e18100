# SPDX-License-Identifier: Apache-2.0
# 73-memory.t: no memory for a mail: it is sent again, and who runs the programs is told
# (docs/mail.md)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use IO::Socket::UNIX;

plan(skip_all => "plain builds only: sanitizers and valgrind need more memory")
    if sanitized() || valgrinded();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $to = "sales-$$\@crm.example";
change($w, "agent", $w->agent, agent_email => $to);

# A large mail with ID.
sub mail {
    my ($id) = @_;
    return "From: ada\@example.org\r\nTo: $to\r\nMessage-ID: <$id\@e.org>\r\n\r\n"
        . ("x" x 78 . "\r\n") x 100_000;
}

sub stored { count_rows($w, "message", "external_id = '<$_[0]\@e.org>'") }

subtest "crmapictl deliver" => sub {
    my (@codes, $limit, $said);
    # from less than its first buffers take to enough, in kB
    for ($limit = 3000; !@codes || ($codes[-1] && $limit < 1e6); $limit *= 1.5) {
        my ($code, $out, $err) = run_program(stdin => mail("d"), command => ["sh",
            "-c", "ulimit -d " . int($limit) . " && exec \"\$@\"", "sh",
            $CrmTest::BUILD{CTL}, "deliver", "--recipient", $to],
            env => { CRMAPI_DATABASE => postgres()->conninfo($database) });
        push @codes, $code;
        $said += $err eq "crmapictl: out of memory\n";
    }
    is_deeply(\@codes, [(75) x $#codes, 0], "EX_TEMPFAIL, until there is memory");
    cmp_ok($said, ">", 3, "it says why");
    is(stored("d"), 1, "the mail is there, once");
};

subtest "crmapictl deliver and a fault" => sub {
    my $at = postgres()->conninfo($database);
    for my $fault (qw(ABRT BUS FPE ILL SEGV TRAP)) {
        local $ENV{CRMAPI_DATABASE} = $at;
        my $pid = open(my $in, "|-", "exec $CrmTest::BUILD{CTL} deliver 2> /dev/null")
            or die "CrmTest: $!\n";
        $in->autoflush;
        print $in mail("f");    # more than a pipe has room for: it reads
        kill $fault => $pid;
        close $in;
        is($?, 75 << 8, "$fault: EX_TEMPFAIL");
    }
    is(stored("f"), 0, "nothing is there");
};

# The last line of what is answered in SESSION to LINE, or at its start; "" if nothing.
sub answer {
    my ($session, $line) = @_;
    local $SIG{PIPE} = "IGNORE";
    print $session "$line\r\n" if $line;
    my $last = "";
    while (defined(my $next = <$session>)) {
        $last = $next;
        last if $next =~ /^\d{3} /;
    }
    return $last;
}

subtest "LMTP" => sub {
    my $worker = worker(database => $database, no_start => 1);
    my $path = $worker->dir . "/lmtp";
    $worker->configure({ lmtp_socket => $path, mail_max_message => 20_000_000 });
    $worker->expect_log(qr/CRM3017: out of memory/ => 1);
    my @said;
    # kB; threads that end give back their stacks
    for my $more (-100_000, 100_000) {
        $worker->start;
        my $pid = $worker->pid;
        my ($data) = read_file("/proc/$pid/status") =~ /^VmData:\s+(\d+)/m;
        my $limit = ($data + $more) * 1024;
        is(system("prlimit", "--pid", $pid, "--data=$limit"), 0, "$more kB more");
        my $session = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
        answer($session, $_) for "", "LHLO mx", "MAIL FROM:<ada\@example.org>",
            "RCPT TO:<$to>", "DATA";
        push @said, answer($session, mail("l") . ".");
        is(stored("l"), $said[-1] =~ /^250/ ? 1 : 0, "it is there if that was said");
        $worker->kill if $said[-1] !~ /^250/;
    }
    is($said[0], "", "without memory there is no answer");
    like($said[1], qr/^250 2.0.0 Accepted\r/, "the mail server tries again");
    $worker->stop;
};

done_testing;
