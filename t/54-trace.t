# SPDX-License-Identifier: Apache-2.0
# 54-trace.t: the header traceparent is taken over into the access log's notes
# (contract 15.4, W3C Trace Context)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $httpd = httpd(database => database(), conf => <<'END');
LogFormat "%L [%{crmapi-trace}n]" trace
CustomLog @DIR@/trace_log trace
END
my $w = workspace($httpd, twin => 0);
my ($trace, $parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
my $good = "00-$trace-$parent-01";

# The note of a request with the header VALUE; "-" if there is none.
sub note_of {
    my ($value) = @_;
    my $r = $w->client->get("/api/v1/agents", headers => {
        defined $value ? (traceparent => $value) : () });
    my $id = $r->header("X-Request-Id");

    status_is($r, 200, "any traceparent is served");
    return wait_for(sub {
        (read_file($httpd->dir . "/trace_log", "") =~ /^\Q$id\E \[(.*)\]$/m)[0]
    });
}

subtest "valid" => sub {
    is(note_of($good), $good, "as it was sent");
    is(note_of("00-$trace-$parent-00"), "00-$trace-$parent-00", "not sampled");
    is(note_of("cc-$trace-$parent-09-more"), "cc-$trace-$parent-09",
        "of a later version: what is known of it");
    is(note_of("cc-$trace-$parent-09"), "cc-$trace-$parent-09",
        "of a later version, without more");
};

subtest "invalid: ignored" => sub {
    my %bad = ("none" => undef, "empty" => "",
        "version ff" => "ff-$trace-$parent-01",
        "version 00 with more" => "$good-more",
        "a later version with more, but no hyphen" => "cc-$trace-$parent-01x",
        "upper case" => "00-" . uc($trace) . "-$parent-01",
        "trace id of zeros" => "00-" . "0" x 32 . "-$parent-01",
        "parent id of zeros" => "00-$trace-" . "0" x 16 . "-01",
        "no flags" => "00-$trace-$parent", "short flags" => "00-$trace-$parent-1",
        "short trace id" => "00-" . substr($trace, 1) . "-$parent-01",
        "long parent id" => "00-$trace-${parent}0-01",
        "other characters" => "00-" . "g" x 32 . "-$parent-01",
        "two of them" => "$good, $good");
    is(note_of($bad{$_}), "-", $_) for sort keys %bad;
};
done_testing;
