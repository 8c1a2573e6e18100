# SPDX-License-Identifier: Apache-2.0
# 54-trace.t: the header traceparent is copied to the notes for the access log
# and to webhooks (contract 15.4, W3C Trace Context)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Receiver;

my $database = database();
my $httpd = httpd(database => $database, conf => <<'END');
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
# ---- webhooks --------------------------------------------------------------

my $receiver = CrmTest::Receiver->new;
my $worker = worker(database => $database,
    conf => { webhook_private => "on" });
$w->webhook($receiver->url("r/500,200"), "contact.created", "contact.updated",
    "contact.deleted");

# Send a write with the header traceparent TRACE (undef: none).
sub send_write {
    my ($method, $path, $body, $trace, %more) = @_;
    my $client = $more{client} || $w->client;
    return $client->request($method, "/api/v1$path",
        ($body ? (json => $body) : ()), headers => {
        %{$more{headers} || {}}, $trace ? (traceparent => $trace) : () });
}

# Wait for N deliveries in addition to those that there were. Return their
# traceparents.
my $seen = 0;
sub traces_sent {
    my ($n) = @_;
    my @all = $receiver->wait_requests("r", $seen + $n, 20);
    my @new = @all[$seen .. $#all];
    $seen = @all;
    return map { $_ && $_->{headers}{traceparent} } @new[0 .. $n - 1];
}

# VALUE has TRACE_ID and FLAGS, and a parent id of its own.
sub child_ok {
    my ($value, $trace_id, $flags, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    like($value // "none", qr/^00-\Q$trace_id\E-[0-9a-f]{16}-$flags$/, $name);
    unlike($value // "", qr/-(?:$parent|0{16})-/, "$name: a new parent id");
}

subtest "a webhook has the trace of the request that caused it" => sub {
    my $r = send_write("POST", "/contacts", { bot_id => $w->agent }, $good);
    status_is($r, 201, "a contact");
    my $id = $r->data->{id};
    my ($first) = traces_sent(1);
    child_ok($first, $trace, "01", "the first attempt");
    sql($database, "UPDATE crmapi.job SET run_at = now() WHERE state = 'ready'");
    my ($second) = traces_sent(1);
    child_ok($second, $trace, "01", "the second attempt");
    isnt($second, $first, "each attempt has its own parent id");
    for my $case (["PATCH", { first_name => "A" }, "00-$trace-$parent-00",
            "00"], ["DELETE", undef, "cc-$trace-$parent-ff-more", "03"]) {
        my ($method, $body, $sent, $flags) = @$case;
        ok(send_write($method, "/contacts/$id", $body, $sent)->status < 300,
            $method);
        child_ok(traces_sent(1), $trace, $flags, "$method: flags");
    }
};

subtest "every way to write" => sub {
    for my $case (["/contacts/upsert", { bot_id => $w->agent,
            contacts => [{ emails => ["u\@x.org"] }] }, 200],
            ["/contacts", { bot_id => $w->agent }, 201,
                { "Idempotency-Key" => "k" }]) {
        my ($path, $body, $status, $headers) = @$case;
        status_is(send_write("POST", $path, $body, $good,
            headers => $headers), $status, $path);
        child_ok(traces_sent(1), $trace, "01", $path);
    }
    my $template = $w->template([{ email_subject => "S", email_body => "B" }]);
    status_is(send_write("POST", "/sequences/start", {
        template_id => $template, contact => { first_name => "C",
            emails => ["s\@x.org"] } }, $good), 202, "a start");
    child_ok(traces_sent(1), $trace, "01", "a start");
};

subtest "without a valid traceparent there is none" => sub {
    # on the connections that had one
    for my $sent (undef, "$good-more", "00-" . "0" x 32 . "-$parent-01") {
        status_is(send_write("POST", "/contacts", { bot_id => $w->agent },
            $sent), 201, "a contact");
        is_deeply([traces_sent(1)], [undef], $sent // "none");
    }
};

subtest "writes at the same time do not mix" => sub {
    my $n = 12;
    my @children = map { my $i = $_; CrmTest::Child->start(sub {
        my $client = $httpd->client(key => $w->key);
        my $mine = sprintf "%032x", $i;
        join " ", map { send_write("POST", "/contacts", { bot_id => $w->agent,
            first_name => $i % 2 ? $mine : "none" },
            $i % 2 ? "00-$mine-$parent-01" : undef,
            client => $client)->status } 1 .. 4;
    }) } 1 .. $n;
    is_deeply([$_->result], ["201 201 201 201"], "contacts") for @children;
    my $before = $seen;
    traces_sent(4 * $n);
    my @all = $receiver->requests("r");
    my (%bad, %times);
    for my $request (@all[$before .. $#all]) {
        my ($name) = $request->{body} =~ /"first_name":"(\w+)"/;
        my $got = ($request->{headers}{traceparent} // "none")
            =~ s/^00-(\w{32})-.*/$1/r;
        $bad{"$name: $got"}++ if $got ne $name;
        $times{$name}++;
    }
    is_deeply(\%bad, {}, "each has its own");
    is(scalar keys %times, 1 + $n / 2, "and all came");
};

subtest "GET /events does not show it" => sub {
    $w->log_on;
    status_is(send_write("POST", "/contacts", { bot_id => $w->agent }, $good),
        201, "a contact");
    traces_sent(1);
    my $r = $w->client->get("/api/v1/events?cursor=*");
    status_is($r, 200, "the log");
    unlike($r->body, qr/$trace/, "without the trace");
};
done_testing;
