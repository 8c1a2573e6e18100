# SPDX-License-Identifier: Apache-2.0
# CrmTest/Smtpd.pm: an SMTP server for a test (aiosmtpd, t/lib/smtpd.py), ended
# with its object
package CrmTest::Smtpd;
use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use Test::More ();
use CrmTest::Process qw(end_process python_with read_file);

our @EXPORT_OK = qw(header report_on);

# A Python that has aiosmtpd, or undef.
sub python { python_with("aiosmtpd") }

# Skip the whole test without it.
sub needed {
    Test::More::plan(skip_all => "no python3-aiosmtpd: build/setup --tests"
        . " installs it") unless python();
}

# Start one that wants USER and PASSWORD, if given, with the certificate (and
# key) of a file. It may be given first: {port, before => what to put before the
# command, dsn => 1 or "no", utf8 => 1 if it offers SMTPUTF8, program => instead of
# smtpd.py}.
sub new {
    my ($class, @account) = @_;
    my $arg = ref $account[0] ? shift @account : {};
    my $dir = tempdir("crm-smtp-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    my $python = python();
    my $maker = $$;

    mkdir "$dir/mail" or die "CrmTest: $dir: $!\n";
    pipe(my $stdin, my $keep) or die "CrmTest: pipe: $!\n";
    pipe(my $read, my $stdout) or die "CrmTest: pipe: $!\n";
    my $pid = fork // die "CrmTest: fork: $!\n";
    if (!$pid) {
        open(STDIN, "<&", $stdin);
        open(STDOUT, ">&", $stdout);
        close $keep;
        open(STDERR, ">", "$dir/log");
        $ENV{PORT} = $arg->{port} if $arg->{port};
        $ENV{DSN} = $arg->{dsn} if $arg->{dsn};
        $ENV{SMTPUTF8} = 1 if $arg->{utf8};
        { exec @{$arg->{before} || []}, $python, $arg->{program}
            // "$ENV{CRM_SRCDIR}/t/lib/smtpd.py", "$dir/mail", @account }
        POSIX::_exit(127);
    }
    close $stdout;
    my $port = <$read> // die "CrmTest: no SMTP server\n";
    chomp $port;
    # it ends with its standard input, however this process ends
    return bless { maker => $maker, pid => $pid, keep => $keep,
        port => $port, folder => "$dir/mail" }, $class;
}

# Settings of a crmapid that sends its mails to it.
sub relay {
    my ($self) = @_;
    return (email_relay => "smtp", smtp_tls => "no",
        smtp_url => "smtp://127.0.0.1:$self->{port}");
}

# The mails that it has accepted, oldest first, as texts with LF.
sub received {
    my ($self) = @_;
    my @files = sort { $a->[0] <=> $b->[0] }
        map { m{/(\d+)$} ? [$1, $_] : () } glob "$self->{folder}/*";
    return map { read_file($_->[1]) =~ s/\r\n/\n/gr } @files;
}

# Those to ADDRESS.
sub mails_to {
    my ($self, $address) = @_;
    return grep { /^X-Envelope-To: \Q$address\E$/m } $self->received;
}

# The header NAME of MAIL, unfolded; "" if it has none.
sub header {
    my ($mail, $name) = @_;
    my ($head) = split /\r?\n\r?\n/, $mail, 2;
    return $head =~ /^$name: ((?:.*\n[ \t])*.*)$/mi ? $1 =~ s/\r?\n//gr : "";
}

# What a report of a server about MAIL has from its Content-Type on: PART, which is a
# message/TYPE, and MAIL's Message-ID.
sub report_on {
    my ($mail, $type, $part) = @_;
    return "Content-Type: multipart/report; report-type=$type; boundary=b\n\n--b\n\n"
        . "So.\n--b\nContent-Type: message/$type\n\n$part\n--b\nContent-Type:"
        . " text/rfc822-headers\n\nMessage-ID: " . header($mail, "Message-ID")
        . "\n--b--\n";
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    return if $self->{maker} != $$;
    end_process($self->{pid}, "TERM");
}

1;
