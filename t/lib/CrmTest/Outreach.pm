# SPDX-License-Identifier: Apache-2.0
# CrmTest/Outreach.pm: sequences that are started for many people, and what an SMTP
# server gets of them
#
#     my $outreach = CrmTest::Outreach->new($workspace);
#     worker(conf => { $outreach->relay });
#     $outreach->start(1 .. 100);
#     $outreach->sent_of(1)
package CrmTest::Outreach;
use strict;
use warnings;
use JSON::PP ();
use Test::More ();
use CrmTest::Process qw(read_file);
use CrmTest::Smtpd;

# Sequences of W, of three mails an hour apart.
sub new {
    my ($class, $w) = @_;
    my $template = $w->template([map { { email_subject => "Step $_",
        email_body => "Hello {{first_name}}", delay => "1h" } } 1 .. 3]);
    return bless { w => $w, template => $template, taken => 0, count => {},
        smtp => CrmTest::Smtpd->new }, $class;
}

# Settings of a worker that sends its mails to the server.
sub relay { $_[0]{smtp}->relay }

# Start sequences for people by their numbers. That of the first is to be
# approved.
sub start {
    my ($self, @people) = @_;
    for my $n (@people) {
        $self->{w}->start($self->{template}, auto_approve => $n > 1
            ? JSON::PP::true : JSON::PP::false, contact => { first_name => "N",
                emails => [sprintf "slow%03d\@x.example", $n] });
    }
}

# What the server got: "recipient subject" => how often.
sub got {
    my ($self) = @_;
    my $folder = $self->{smtp}{folder};
    while (-e "$folder/" . ($self->{taken} + 1)) {
        my $mail = read_file("$folder/" . ++$self->{taken});
        my ($to) = $mail =~ /^X-Envelope-To: (\S+)\@/m;
        my ($subject) = $mail =~ /^Subject: (?:Re: )?(Step \d|\w+)/m;
        $self->{count}{"$to $subject"}++;
    }
    return { %{$self->{count}} };
}

# How many people got the step number STEP.
sub sent_of {
    my ($self, $step) = @_;
    return scalar grep { / Step $step$/ } keys %{$self->got};
}

# No step and no mail to an admin has come twice.
sub nothing_twice {
    my ($self, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = $self->got;
    Test::More::is(join(", ", grep { $got->{$_} > 1 } sort keys %$got), "",
        $name);
}

# Have DATABASE send the steps number STEP of the first COUNT people now.
sub hurry {
    my ($self, $database, $step, $count) = @_;
    CrmTest::sql($database, "UPDATE crmapi.job j SET run_at = now() FROM"
        . " crmapi.enrollment_step s WHERE j.state = 'ready'"
        . " AND s.workspace_id = j.workspace_id AND s.id ="
        . " (j.payload ->> 'step_id')::uuid AND s.sort_order = $step"
        . " AND substr(s.to_identifier, 5, 3)::int <= $count");
}

# How many enrollments of DATABASE are generating, and how many steps number STEP
# are open: "0 0".
sub open_of {
    my ($self, $database, $step) = @_;
    return scalar CrmTest::sql($database, "SELECT (SELECT count(*)"
        . " FROM crmapi.enrollment WHERE status = 'generating') || ' ' ||"
        . " count(*) FROM crmapi.enrollment_step s JOIN crmapi.enrollment e"
        . " ON e.id = s.enrollment_id WHERE sort_order = $step AND s.status IN"
        . " ('scheduled', 'sending') AND e.status IN ('approved', 'running')");
}

1;
