# SPDX-License-Identifier: Apache-2.0
# CrmTest/Pages.pm: enrollments as the worker leaves them, and links to them
package CrmTest::Pages;
use strict;
use utf8;
use warnings;
use Digest::SHA qw(hmac_sha256);
use Exporter qw(import);
use JSON::PP ();
use MIME::Base64 qw(encode_base64url);
use CrmTest;
use CrmTest::Rows;

our @EXPORT = qw(admin enrollment steps_of link_to token);

# A new admin of the workspace W; the id.
sub admin {
    my ($w, %arg) = @_;
    my $id = uuid();
    sql($w->{database}, row_of("admin", id => $id, workspace_id => $w->id,
        email => $arg{email} // "$id\@admin.example", name => $arg{name}));
    return $id;
}

# Do what a worker does with the job of the enrollment ID in W: it has STEPS and
# PACING, texts of JSON.
sub generated {
    my ($w, $id, $steps, $pacing) = @_;
    my $job = sql($w->{database}, "UPDATE crmapi.job SET state = 'leased',"
        . " attempts = 1, leased_by = 'test', leased_until = now()"
        . " + interval '1 hour' WHERE payload ->> 'enrollment_id' = '$id'"
        . " RETURNING id");
    sql($w->{database}, "SELECT crmapi.enrollment_generated('" . $w->id
        . "', $job, 'test', 1, '$id', " . quoted($steps) . "::jsonb, "
        . quoted($pacing // "{}") . "::jsonb, now())");
}

# An enrollment in W whose STEPS (hashes) have been generated; the id. Beside
# it: contact => members of the contact, pacing, template (name).
sub enrollment {
    my ($w, $steps, %arg) = @_;
    my $database = $w->{database};
    my ($contact) = $w->import_objects([{ object => "contact",
        bot_id => $w->agent, first_name => "Zoë", last_name => "<b>Q</b>",
        emails => [{ email => "zoe\@x.example", is_primary => true }],
        %{$arg{contact} || {}} }]);
    my ($template) = $w->import_objects([{ object => "sequence_template",
        name => $arg{template} // "Welcome & \"more\"",
        bot_id => $w->agent, allowed_channels => ["email", "sms", "voice"] }]);
    my $id = $w->start($template, contact => { emails => ["zoe\@x.example"] })
        ->{enrollment_id};
    my $json = JSON::PP->new->encode([map { { delay_seconds => 0, %$_ } }
        @$steps]);
    generated($w, $id, $json, $arg{pacing});
    return $id;
}

# The steps of ENROLLMENT as rows of COLUMNS.
sub steps_of {
    my ($w, $enrollment, $columns) = @_;
    return sql($w->{database}, "SELECT $columns FROM crmapi.enrollment_step"
        . " WHERE enrollment_id = '$enrollment' ORDER BY sort_order");
}

my %purpose = (review => 1, unsubscribe => 2, form => 3);

# A token for PURPOSE of W about SUBJECT, made as documented, without the C
# code. expires (seconds), other, key (32 bytes) in ARG.
sub token {
    my ($w, $purpose, $subject, %arg) = @_;
    my $key = $arg{key} // pack "H*", scalar sql($w->{database},
        "SELECT encode(key, 'hex') FROM crmapi.link_key WHERE workspace_id = '"
        . $w->id . "'");
    my $data = pack "C C (H32)3 Q>", $arg{version} // 1,
        $purpose{$purpose} // $purpose, map({ s/-//gr } $arg{workspace}
            // $w->id, $subject, $arg{other} // "0" x 32),
        $arg{expires} // 0;
    return encode_base64url($data . hmac_sha256($data, $key));
}

# The path of the page for that token.
sub link_to {
    my ($w, $purpose, $subject, %arg) = @_;
    $arg{expires} //= time + 3600 if $purpose eq "review";
    return "/crmapi/$purpose/" . token($w, $purpose, $subject, %arg);
}

1;
