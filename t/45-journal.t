# SPDX-License-Identifier: Apache-2.0
# 45-journal.t: what must survive a crash is on the disk before what depends on it
# is done: a line of the journal before a message is handed over (contract 11.11),
# a file's bytes before its name, the name before success is told
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Provider;
use CrmTest::Smtpd;
use File::Temp qw(tempdir);
use POSIX qw(WNOHANG);

CrmTest::Smtpd::needed();
plan(skip_all => "plain builds only: valgrind has libraries of its own")
    if valgrinded();

my $scratch = tempdir("crm-journal-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $smtp = CrmTest::Smtpd->new;
my $provider = CrmTest::Provider->new;

# ---- the recorder ---------------------------------------------------------------

my $record = "$scratch/record";
my %recorded = (LD_PRELOAD => library("record_io", $scratch),
    CRM_RECORD_IO => $record);

# What was recorded since the last call: [verb, what, text], in its order.
sub recorded {
    my @lines = map { [split / /, $_, 3] } split /\n/, read_file($record, "");
    unlink $record;
    return @lines;
}

# The first place in LINES, from FROM on, of a line whose verb, what and text are
# like LIKE; -1 if there is none.
sub place {
    my ($lines, $from, @like) = @_;
    for my $i ($from .. $#$lines) {
        return $i if !grep { ($lines->[$i][$_] // "") !~ $like[$_] } 0 .. $#like;
    }
    return -1;
}

# The STEPS, each like the arguments of place(), were done in this order.
sub in_order {
    my ($lines, $name, @steps) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $at = 0;
    for my $step (@steps) {
        my $found = place($lines, $at, map { qr/$_/ } @$step);
        if ($found < 0) {
            fail("$name: @$step comes next");
            diag(join "\n", map { join " ", map { substr $_, 0, 120 } @$_ }
                @$lines);
            return;
        }
        $at = $found + 1;
    }
    pass($name);
}

# In LINES, after each line like AFTER, and before the next one like UNTIL, there is
# one like WANTED. There are such lines.
sub followed {
    my ($lines, $name, $after, $wanted, $until) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @found = grep { place([$lines->[$_]], 0, @$after) == 0 } 0 .. $#$lines;
    my @late = grep {
        my $done = place($lines, $_ + 1, @$wanted);
        my $next = place($lines, $_ + 1, @$until);
        $done < 0 || ($next >= 0 && $next < $done);
    } @found;
    cmp_ok(scalar @found, ">", 0, "$name: it happens");
    is_deeply([map { join " ", @{$lines->[$_]} } @late], [], $name);
}

# ---- the worker ------------------------------------------------------------------

my %step = (email => { channel => "email", email_subject => "Hello",
        email_body => "Hi" },
    sms => { channel => "sms", sms_body => "Hi" });

# A workspace whose template has a step of CHANNEL.
sub space {
    my ($channel) = @_;
    my $w = workspace($httpd, twin => 0);
    $w->{template} = $w->template([$step{$channel}]);
    return $w;
}

# A daemon that is recorded.
sub daemon {
    my (%conf) = @_;
    my $worker = worker(database => $database, no_start => 1,
        env => \%recorded, conf => { $smtp->relay, webhook_threads => 0,
            sms_relay => "http", provider_url => $provider->url, %conf });
    my $token = $worker->dir . "/token";
    write_file($token, "secret\n");
    chmod 0600, $token;
    $worker->configure({ provider_token_file => $token });
    return $worker;
}

# In LINES, each message to PORT, which begins with BEGINS, was sent after its
# line of the journal was written and synced: one more line for each. COUNT were
# sent.
sub journal_first {
    my ($lines, $port, $begins, $count, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($written, $synced, $sent, @early) = (0, 0, 0);
    for my $line (@$lines) {
        my ($verb, $what, $text) = @$line;
        $written++ if $verb eq "write" && $what =~ m{/sent\.}
            && $text =~ /"state":"unknown"/;
        $synced = $written if $verb eq "sync" && $what =~ m{/sent\.};
        next if $verb ne "send" || $what ne $port || $text !~ $begins;
        push @early, $text if ++$sent > $synced;
    }
    is($sent, $count, "$name: $count were sent");
    is_deeply(\@early, [], "$name: the disk had the line of each before");
}

subtest "a message is handed over when the disk has its line" => sub {
    my ($mails, $texts) = (space("email"), space("sms"));
    crmapictl_ok($database, "admin", "add", "--workspace", $mails->id,
        "--email", "boss\@x.example");
    $mails->start_for({ emails => ["$_\@x.example"] }) for qw(a b c);
    $texts->start_for({ phone_numbers => ["+49170123456$_"] }) for 1, 2;
    my $worker = daemon();
    $worker->once for 1 .. 2;
    my @lines = recorded();
    journal_first(\@lines, $smtp->{port}, qr/^MAIL FROM/, 3, "mails");
    journal_first(\@lines, $provider->{port}, qr/^POST /, 2, "texts");

    $mails->start_for({ emails => ["d\@x.example"] }, auto_approve => false);
    $worker->once for 1 .. 2;
    @lines = recorded();
    journal_first(\@lines, $smtp->{port}, qr/^MAIL FROM/, 1,
        "a mail to an admin");
    $worker->stop;
};

subtest "a message whose line the disk does not take is not handed over" => sub {
    for my $fault ([full => "No space left on device"],
            [broken => "Input/output error"]) {
        my ($flag, $cause) = @$fault;
        my $w = space("email");
        my $enrollment = $w->start_for({ emails => ["$flag\@x.example"] });
        my $had = $smtp->received;
        my $worker = daemon();
        $worker->expect_log(qr/\Q$cause\E/ => undef);
        write_file("$record.$flag", "");
        $worker->once for 1 .. 2;
        is($smtp->received, $had, "$flag: nothing is handed over");
        is(scalar sql($database, "SELECT e.status || ' ' || s.status FROM"
            . " crmapi.enrollment e, crmapi.enrollment_step s WHERE"
            . " e.id = '$enrollment' AND s.enrollment_id = e.id"),
            "approved scheduled", "$flag: it waits");
        unlink "$record.$flag";
        $worker->hurry for 1 .. 2;
        is($smtp->received, $had + 1, "$flag: it is sent once the disk is well");
        $worker->stop;
    }
    recorded();
};

subtest "while the mail server has a mail, the journal says so" => sub {
    my $w = space("email");
    my $enrollment = $w->start_for({ emails => ["mute\@x.example"] });
    my $worker = daemon();
    my $had = $smtp->received;
    $worker->start;
    my $line = qr/"state":"unknown".*"enrollment_id":"$enrollment"/;
    ok(wait_for(sub { $smtp->received > $had }, 30),
        "it has all of the mail, and has not answered");
    my @files = glob $worker->dir . "/sent.*";
    is(scalar @files, 1, "the journal has a file of today");
    my $text = read_file($files[0]);
    like($text, $line, "which has the message as unknown");
    unlike($text, qr/"state":"sent".*"$enrollment"/, "and not as sent");
    write_file("$smtp->{folder}/speak", "");
    ok(wait_for(sub { read_file($files[0])
        =~ /"state":"sent".*"enrollment_id":"$enrollment"/ }, 30),
        "when it has answered, as sent");
    $worker->stop;
    recorded();
};

subtest "TERM while the mail server has a mail" => sub {
    unlink "$smtp->{folder}/speak";
    my $w = space("email");
    my $enrollment = $w->start_for({ emails => ["mute-term\@x.example"] });
    my $states = sub { scalar sql($database, "SELECT e.status || ' ' || s.status"
        . " || ' ' || j.state FROM crmapi.enrollment e, crmapi.enrollment_step s,"
        . " crmapi.job j WHERE e.id = '$enrollment' AND s.enrollment_id = e.id"
        . " AND j.payload ->> 'step_id' = s.id::text") };
    my $worker = daemon();
    my $had = $smtp->received;
    $worker->start;
    ok(wait_for(sub { $smtp->received > $had }, 30),
        "it has all of the mail, and has not answered");
    kill TERM => $worker->pid;
    ok(wait_for(sub { sql($database, "SELECT bool_or(stopping) FROM"
        . " crmapi.worker WHERE pid = " . $worker->pid) eq "t" }, 30),
        "crmapid is stopping");
    is(waitpid($worker->pid, WNOHANG), 0, "it does not leave the mail behind");
    is($states->(), "approved sending leased", "which is its own");
    write_file("$smtp->{folder}/speak", "");
    $worker->stop;
    is($states->(), "completed sent done", "the answer is recorded, then it ends");
    like(read_file((glob $worker->dir . "/sent.*")[0]),
        qr/"state":"sent".*"enrollment_id":"$enrollment"/, "the journal has it");
    $worker->once;
    is($smtp->received, $had + 1, "the mail was handed over once");
    recorded();
};

subtest "the mark: bytes, then the name, then the folder" => sub {
    my $w = space("email");
    $w->start_for({ emails => ["e\@x.example"] });
    my $worker = daemon();
    $worker->once for 1 .. 2;
    my $dir = quotemeta $worker->dir;
    my @lines = recorded();
    my ($new) = map { $_->[1] } grep { $_->[0] eq "rename"
        && $_->[2] =~ m{/mark\.[^/]*$} } @lines;
    ok($new, "it is replaced by a rename") or return;
    $new = quotemeta $new;
    in_order(\@lines, "the mark", ["^write", "^$new\$", "\\d"],
        ["^sync", "^$new\$", "^[1-9]"],
        ["^rename", "^$new\$", "^$dir/mark\\."]);
    my @folder = (qr/^sync/, qr/^$dir$/);
    followed(\@lines, "then the folder has its name",
        [qr/^rename/, qr//, qr{^$dir/mark\.}], \@folder, [qr/^(?:write|rename)/]);
    followed(\@lines, "and that of the journal's file, before anything is in it",
        [qr/^create/, qr{^$dir/sent\.}], \@folder,
        [qr/^(?:write|rename)/, qr//, qr/./]);
    $worker->stop;
};

subtest "the relay maildir: bytes, then the name, then the folder" => sub {
    my $w = space("email");
    $w->start_for({ emails => ["f\@x.example"] });
    my $worker = daemon(email_relay => "maildir", maildir => "$scratch/maildir");
    $worker->once for 1 .. 2;
    my @lines = recorded();
    my ($at) = map { $_->[1] } grep { $_->[0] eq "link" } @lines;
    ok($at, "a name is given to a file") or return;
    my $tmp = quotemeta $at;
    in_order(\@lines, "a mail", ["^write", "/sent\\.", "unknown"],
        ["^sync", "/sent\\."], ["^write", "^$tmp\$"],
        ["^sync", "^$tmp\$", "^[1-9]"],
        ["^link", "^$tmp\$", "^\Q$scratch\E/maildir/new/"],
        ["^sync", "^\Q$scratch\E/maildir/new\$"],
        ["^write", "/sent\\.", '"state":"sent"']);
    my ($file) = glob "$scratch/maildir/new/*";
    my ($synced) = map { $_->[2] } grep { $_->[0] eq "sync"
        && $_->[1] eq $at } @lines;
    is($synced, -s $file, "all of its bytes were there");
    $worker->stop;
};

# ---- crmapictl -------------------------------------------------------------------

subtest "a dump: bytes, then the name, then the folder" => sub {
    my $w = space("email");
    my ($code, $out, $err) = crmapictl($database, { env => \%recorded },
        "workspace", "dump", $w->id, "--output", "$scratch/one.dump");
    is($code, 0, "dumped") or diag($err);
    my @lines = recorded();
    my ($part) = map { $_->[1] } grep { $_->[0] eq "rename" } @lines;
    ok($part, "it gets its name by a rename") or return;
    my ($size, $name) = (-s "$scratch/one.dump", quotemeta $part);
    in_order(\@lines, "the dump", ["^sync", "^$name\$", "^$size\$"],
        ["^rename", "^$name\$", "^\Q$scratch\E/one.dump\$"],
        ["^sync", "^\Q$scratch\E\$"]);
};

subtest "a disk that is full when the daemon starts" => sub {
    my $run_dir = "$scratch/disk";
    my $full = "$scratch/full";
    my $late = worker(database => database(), no_start => 1, no_wait => 1,
        conf => { run_dir => $run_dir }, env => { CRM_FULL => $full,
            LD_PRELOAD => library("no_space", $scratch), CRM_DISK => $run_dir });
    $late->expect_log(qr/ error: run_dir: \Q$run_dir\E\/.*No space left/ => 1,
        qr/CRM3007: waiting until run_dir can be written/ => 1);
    write_file($full, "");
    $late->start;
    ok($late->wait_log(qr/CRM3007: /, 20), "it waits, and says for what");
    unlink $full;
    ok($late->wait_log(qr/CRM3001: /, 20), "with room it begins");
    $late->stop;
};

done_testing;
