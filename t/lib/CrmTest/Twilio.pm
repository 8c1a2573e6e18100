# SPDX-License-Identifier: Apache-2.0
# CrmTest/Twilio.pm: requests as Twilio sends them
#
#     post_signed($client, "token", "https://crm.example", "$BASE/twilio/sms",
#         AccountSid => $account, From => "+4930123", ...);
package CrmTest::Twilio;
use strict;
use warnings;
use Digest::SHA qw(hmac_sha1_base64);
use Exporter qw(import);
use CrmTest::Client;

our @EXPORT_OK = qw(encoded signature post_signed);

# PAIRS as a form's body.
sub encoded {
    my (@pairs) = @_;
    my @texts;
    while (my ($name, $value) = splice @pairs, 0, 2) {
        push @texts, join "=", map { CrmTest::Client::escape($_) }
            $name, $value;
    }
    return join "&", @texts;
}

# The signature of PAIRS sent to URL.
sub signature {
    my ($token, $url, @pairs) = @_;
    my %values;
    while (my ($name, $value) = splice @pairs, 0, 2) {
        $values{$name}{$value} = 1;
    }
    my $text = join "", $url, map { my $name = $_;
        map { $name . $_ } sort keys %{$values{$name}} } sort keys %values;
    utf8::encode($text);
    return hmac_sha1_base64($text, $token) . "=";
}

# Have CLIENT post PAIRS to TARGET of SITE, signed with TOKEN.
sub post_signed {
    my ($client, $token, $site, $target, @pairs) = @_;
    return $client->request("POST", $target, body => encoded(@pairs),
        headers => { "Content-Type" => "application/x-www-form-urlencoded",
            "X-Twilio-Signature" => signature($token, "$site$target", @pairs) });
}

1;
