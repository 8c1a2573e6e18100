# SPDX-License-Identifier: Apache-2.0
# 60-webhooks.t: webhooks from a request to a receiver (contract 12)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Receiver;
use Digest::SHA qw(hmac_sha256_base64);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP ();
use MIME::Base64 qw(decode_base64 encode_base64);

my $json = JSON::PP->new->utf8->canonical;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $openapi = CrmTest::OpenAPI->new($httpd->client
    ->get("/api/v1/openapi.json")->json);
my $receiver = CrmTest::Receiver->new;
my %conf = (webhook_private => "on", webhook_timeout => "10s");
my $worker = worker(database => $database, no_start => 1, conf => \%conf);
my %secret;     # endpoint => its secret

# Make an endpoint of W with URL for EVENTS; its id.
sub endpoint {
    my ($w, $url, $events) = @_;
    my $made = $w->ctl_json("webhook", "add", "--workspace", $w->id, "--url",
        $url, "--events", $events // "contact.created");
    $secret{$made->{id}} = $made->{secret};
    return $made->{id};
}

# The deliveries of W, oldest first, as crmapictl shows them.
sub deliveries {
    my ($w, @more) = @_;
    my @all = reverse @{$w->ctl_json("webhook", "deliveries", "--workspace",
        $w->id, @more)};
    return @all;
}

# The attempts of DELIVERY, as rows.
sub attempts {
    my ($delivery) = @_;
    my @names = qw(number status error answer duration_ms);
    return map { my %row; @row{@names} = @$_; \%row } sql($database,
        "SELECT " . join(", ", @names) . " FROM crmapi.webhook_attempt"
        . " WHERE delivery_id = '$delivery->{id}' ORDER BY number");
}

# Seconds from now to when DELIVERY is due.
sub due_in {
    my ($delivery) = @_;
    return scalar sql($database, "SELECT extract(epoch FROM next_at -"
        . " clock_timestamp()) FROM crmapi.webhook_delivery"
        . " WHERE id = '$delivery->{id}'");
}

# When DELIVERY is due next, for "crmapid --now".
sub due_at {
    my ($delivery) = @_;
    return scalar sql($database, "SELECT to_char(next_at AT TIME ZONE 'UTC'"
        . " + interval '1 ms', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
        . " FROM crmapi.webhook_delivery WHERE id = '$delivery->{id}'");
}

# The signatures that REQUEST should have with SECRET.
sub signature {
    my ($request, $secret) = @_;
    my $mac = hmac_sha256_base64(join(".",
        @{$request->{headers}}{qw(webhook-id webhook-timestamp)},
        $request->{body}), decode_base64($secret =~ s/^whsec_//r));
    return "v1,$mac" . "=" x (-length($mac) % 4);
}

sub is_signed {
    my ($request, $name, @secrets) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is($request->{headers}{"webhook-signature"},
        join(" ", map { signature($request, $_) } @secrets), $name);
}

subtest "12.1 contact.created, from every way a contact comes to be" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = endpoint($w, $receiver->url("ways/200"));
    my %made;       # way => contact
    $made{"POST /contacts"} = $w->contact(first_name => "Zoë \"\\/\x{1F600}",
        emails => [email("zoe\@x.org", 1)], deal_value => 12.5,
        tags => ["a", "ü"], notes => "x\n" x 5000,
        custom_fields => { deep => [1, { n => undef }, 1.50], big => "1e400" })
        ->{id};
    my $r = $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ["up\@x.org"] }] });
    $made{"upsert"} = $r->data->{created}[0]{id};
    my $template = $w->template([{ email_subject => "S", email_body => "B" }]);
    $made{"sequences/start"} = $w->start($template,
        contact => { emails => ["lead\@x.org"] })->{contact_id};
    ($made{"import"}) = $w->import_objects([{ object => "contact",
        bot_id => $w->agent, first_name => "Im", created_at =>
        "2020-02-29T12:00:00.123Z" }]);
    sql($database, "DELETE FROM crmapi.job WHERE kind LIKE 'sequence.%'");
    my $before = time;
    $worker->once;
    my %got = map { $json->decode($_->{body})->{data}{id} => $_ }
        $receiver->requests("ways");
    is(scalar keys %got, 4, "one for each, none twice");
    my %ids;
    for my $way (sort keys %made) {
        my $request = $got{$made{$way}};
        ok($request, "$way: an event") or next;
        my $answer = $c->get("/api/v1/contacts/$made{$way}");
        my $event = $json->decode($request->{body});
        is_deeply([sort keys %$event], [qw(data timestamp type)],
            "$way: 12.2 type, timestamp, data");
        is($event->{type}, "contact.created", "$way: type");
        is_deeply([$openapi->webhook_problems($request)], [],
            "13.6 $way: it is as the OpenAPI document says");
        like($event->{timestamp}, qr/^20\d\d-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/,
            "$way: timestamp");
        is_deeply($event->{data}, $answer->data, "$way: data as GET has it");
        my ($data) = $answer->body =~ /^\{"data":(.*)\}\s*$/s;
        ok(index($request->{body}, "\"data\":$data}") > 0,
            "$way: byte for byte")
            or diag("$request->{body}\n" . $answer->body);
        my $headers = $request->{headers};
        is($request->{method}, "POST", "$way: method");
        is($headers->{"content-type"}, "application/json", "$way: type");
        like($headers->{"user-agent"}, qr{^crmapid/\d}, "$way: User-Agent");
        like($headers->{"webhook-id"}, qr/^msg_[0-9a-f]{32}$/, "$way: id");
        cmp_ok(abs($headers->{"webhook-timestamp"} - $before), "<", 60,
            "$way: the time of the attempt");
        is_signed($request, "$way: 12.2 signature", $secret{$id});
        $ids{$headers->{"webhook-id"}}++;
    }
    is(scalar keys %ids, 4, "each has an id of its own");
    is_deeply([map { "@$_{qw(event status attempts http_status answer)}" }
        deliveries($w)], [("contact.created delivered 1 200 this is 200") x 4],
        "webhook deliveries shows them");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.event"
        . " WHERE workspace_id = '" . $w->twin->id . "'"), 0,
        "a workspace without an endpoint has no events");
};

subtest "12.1 what makes no contact makes no event" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    endpoint($w, $receiver->url("nothing/200"));
    my $id = $w->contact(emails => [email("one\@x.org", 1)])->{id};
    $c->patch("/api/v1/contacts/$id", { first_name => "New" });
    is(scalar @{$c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
        contacts => [{ emails => ["one\@x.org"], last_name => "Same" }] })
        ->data->{updated}}, 1, "an upsert that updates");
    error_is($c->post("/api/v1/contacts", { bot_id => uuid() }), 422,
        "validation_error", "one that is refused");
    is_deeply([map { $_->[0] } sql($database, "BEGIN; INSERT INTO"
        . " crmapi.contact (id, workspace_id, bot_id) VALUES ('" . uuid()
        . "', '" . $w->id . "', '" . $w->agent . "') RETURNING 'made';"
        . " ROLLBACK")], ["made"], "one that is made, and rolled back");
    is(scalar deliveries($w), 1, "one event, of the one that was made");
    $c->delete("/api/v1/contacts/$id");
    $worker->once;
    my ($request) = $receiver->requests("nothing");
    my $data = $json->decode($request->{body})->{data};
    is($data->{id}, $id, "which arrives although the contact has gone");
    is($data->{first_name}, undef, "as it was when it was made");
};

subtest "12.1 form.submitted" => sub {
    my $w = workspace($httpd);
    my $forms = endpoint($w, $receiver->url("forms/200"), "form.submitted");
    my $both = endpoint($w, $receiver->url("both/200"),
        "form.submitted,contact.created");
    my $contact = $w->contact->{id};
    my ($form) = $w->import_objects([{ object => "form", name => "F",
        bot_id => $w->agent }]);
    my $id = insert($w, "submission", form_id => $form,
        contact_id => $contact,
        custom_field_responses => { colour => "grün" });
    $worker->once;
    my ($request) = $receiver->requests("forms");
    my $event = $json->decode($request->{body});
    is($event->{type}, "form.submitted", "type");
    is_deeply([$openapi->webhook_problems($request)], [],
        "13.6 it is as the OpenAPI document says");
    is_deeply($event->{data}, $w->client->get("/api/v1/submissions/$id")->data,
        "data as GET has it");
    is_signed($request, "signed with the endpoint's own secret",
        $secret{$forms});
    is(scalar $receiver->requests("forms"), 1, "only what it wants");
    my @two = $receiver->requests("both");
    is_deeply([sort map { $json->decode($_->{body})->{type} } @two],
        ["contact.created", "form.submitted"], "both, for who wants both");
    my ($same) = grep { $_->{body} eq $request->{body} } @two;
    ok($same, "the same bytes to each endpoint");
    is($same->{headers}{"webhook-id"}, $request->{headers}{"webhook-id"},
        "with the same id");
    is_signed($same, "signed with that one's secret", $secret{$both});
};

subtest "12.3 the schedule: ten attempts, then failed, kept, sent again"
        => sub {
    my $w = workspace($httpd);
    my $id = endpoint($w, $receiver->url("ten/500"));
    my $contact = $w->contact(first_name => "Ada")->{id};
    my @seconds = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400);
    my $now;
    for my $n (1 .. 10) {
        my $was = $now;
        my $said = $worker->once($now);
        my $command = "crmapictl webhook deliveries --workspace " . $w->id;
        like($said, qr/CRM3142: 1 attempt [^:]+ has failed: see $command$/m,
            "it is told, with a command") if $n == 1;
        my $level = $n < 10 ? "info" : "notice";
        like($said, qr/ $level: CRM3141: .* HTTP status 500/, "each, with its cause");
        my ($d) = deliveries($w);
        is("$d->{attempts} $d->{http_status}", "$n 500", "attempt $n");
        last if $n == 10;
        is($d->{status}, "pending", "after $n attempts: pending");
        my $in = scalar sql($database, "SELECT extract(epoch FROM next_at - "
            . ($was ? "'$was'::timestamptz" : "clock_timestamp()") . ")"
            . " FROM crmapi.webhook_delivery WHERE id = '$d->{id}'");
        my $least = $seconds[$n - 1];
        cmp_ok($in, ">=", $was ? $least : $least - 5, "not before $least s");
        cmp_ok($in, "<=", $least * 1.1 + 0.1, "with at most a tenth more");
        $now = due_at($d);
        # a moment before that nothing is sent
        next if $n != 3;
        $worker->once(scalar sql($database, "SELECT to_char(("
            . "'$now'::timestamptz - interval '100 ms') AT TIME ZONE 'UTC',"
            . " 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"));
        is(scalar $receiver->requests("ten"), $n, "no earlier");
    }
    my ($d) = deliveries($w, "--status", "failed");
    is($d->{status}, "failed", "after ten it has failed");
    like($d->{error}, qr/^HTTP status 500/, "and says why");
    is($d->{next_at}, undef, "nothing is planned");
    is(scalar(my @a = attempts($d)), 10, "every attempt is kept");
    my @got = $receiver->requests("ten");
    is(scalar(keys %{{ map { $_->{headers}{"webhook-id"} => 1 } @got }}), 1,
        "one webhook-id for all");
    is(scalar(keys %{{ map { $_->{body} => 1 } @got }}), 1, "the same bytes");
    is($w->ctl("webhook", "redrive", $d->{id}), "1", "redrive");
    $worker->once;
    ($d) = deliveries($w);
    is("$d->{status} $d->{attempts}", "pending 11", "one more attempt");
    cmp_ok(due_in($d), "<", 6, "from the schedule's beginning");
    is($w->ctl("webhook", "redrive", $d->{id}), "1", "redrive of one that waits");
    $worker->once;
    $w->contact for 1 .. 2;
    sql($database, "UPDATE crmapi.webhook_delivery SET status = 'failed',"
        . " next_at = NULL, finished_at = now() WHERE attempts = 0"
        . " AND workspace_id = '" . $w->id . "'");
    sql($database, "UPDATE crmapi.webhook_endpoint SET url = '"
        . $receiver->url("then/200") . "' WHERE id = '$id'");
    is($w->ctl("webhook", "redrive", $id), "3",
        "redrive of an endpoint: two that failed, one that waits");
    is($w->ctl("webhook", "redrive", $id), "0", "a second time: nothing");
    $worker->once;
    is_deeply([map { $_->{status} } deliveries($w)], [("delivered") x 3],
        "all have arrived");
    is(scalar $receiver->requests("then"), 3, "once each");
};

subtest "12.3 what counts as delivered, and what does not" => sub {
    my $w = workspace($httpd);
    $worker->configure({ webhook_timeout => "500ms" });
    my $closed = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        LocalPort => 0, Proto => "tcp");
    my %way = (
        "then/500,200" => ["pending", 500, qr/^HTTP status 500$/],
        "no/404" => ["pending", 404, qr/^HTTP status 404$/],
        "yes/204" => ["delivered", 204],
        "case/200" => ["delivered", 200],
        (map { ("away$_/$_" => ["pending", $_,
            qr/^HTTP status $_: redirects are not followed$/]) }
            301, 302, 303, 307, 308),
        (map { ("no$_/$_" => ["pending", $_, qr/^HTTP status $_$/]) }
            300, 304, 305),
        "hang/hang" => ["pending", undef, qr/timed out/],
        "late/late" => ["delivered", 200],
        "closes/close" => ["pending", undef, qr/Empty reply/],
        "switch/101" => ["pending", undef, qr/no final answer/],
        "flood/flood" => ["delivered", 200],
        "bytes/bytes" => ["delivered", 200],
        "busy/503:900" => ["pending", 503, qr/503/, 900],
        "broken/500:900" => ["pending", 500, qr/500/, 5],
        "slow/429:7200" => ["pending", 429, qr/429/, 7200],
        "teapot/418:7200" => ["pending", 418, qr/418/, 5],
        "days/503:1000000" => ["pending", 503, qr/503/, 86400],
        "back/503:1" => ["pending", 503, qr/503/, 5],
        "refused" => ["pending", undef, qr/connect/],
    );
    my %path;
    for my $path (sort keys %way) {
        my $url = $path eq "refused"
            ? "http://127.0.0.1:" . $closed->sockport . "/"
            : $receiver->url($path);
        $url =~ s/^http/HTTP/ if $path eq "case/200";
        $path{endpoint($w, $url)} = $path;
    }
    $w->contact;
    $worker->once;
    for my $d (deliveries($w)) {
        my $path = $path{$d->{endpoint_id}};
        my ($status, $http, $error, $wait) = @{$way{$path}};
        is($d->{status}, $status, "$path: $status");
        is($d->{http_status}, $http, "$path: HTTP status");
        $error ? like($d->{error} // "", $error, "$path: why")
               : is($d->{error}, undef, "$path: no error");
        next if !$wait;
        my $in = due_in($d);
        cmp_ok($in, ">", $wait - 15, "$path: not before $wait s");
        cmp_ok($in, "<", $wait * 1.1 + 1, "$path: but then");
    }
    is(scalar $receiver->requests("redirected"), 0,
        "12.3 nobody went where the redirect leads");
    my %by = map { $path{$_->{endpoint_id}} => $_ } deliveries($w);
    is(length $by{"flood/flood"}{answer}, 5 + 509,
        "an endless answer is kept up to 1,024 bytes");
    is($by{"bytes/bytes"}{answer}, "a?b???[2J\x{e4}",
        "and what is no text is made some");
    my ($attempt) = attempts($by{"hang/hang"});
    cmp_ok($attempt->{duration_ms}, ">=", 450, "a receiver that hangs is left"
        . " after webhook_timeout");
    cmp_ok($attempt->{duration_ms}, "<", 5000 * busy(), "not much later");
    $worker->once(due_at($by{"then/500,200"}));
    my ($then) = grep { $path{$_->{endpoint_id}} eq "then/500,200" }
        deliveries($w);
    is("$then->{status} $then->{attempts} $then->{http_status}",
        "delivered 2 200", "500, then 200: delivered at the second attempt");
    $worker->configure({ %conf });
};

subtest "12.3 410: the endpoint is disabled" => sub {
    my $w = workspace($httpd);
    my $id = endpoint($w, $receiver->url("gone/410,200"));
    my $other = endpoint($w, $receiver->url("stays/200"));
    $w->contact for 1 .. 3;
    # the others are not due yet, so that there is something to cancel
    my (undef, @later) = sort { $a <=> $b } map { $_->[0] } sql($database,
        "SELECT job_id FROM crmapi.webhook_delivery WHERE endpoint_id = '$id'");
    sql($database, "UPDATE crmapi.job SET run_at = now() + interval '1 hour'"
        . " WHERE workspace_id = '" . $w->id . "' AND id IN ("
        . join(", ", @later) . ")");
    like($worker->once, qr/410; it gets no more until crmapictl webhook enable$/m,
        "the log says so");
    my @mine = grep { $_->{endpoint_id} eq $id } deliveries($w);
    is_deeply([sort map { $_->{status} } @mine],
        ["cancelled", "cancelled", "failed"], "its deliveries end");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.job j JOIN"
        . " crmapi.webhook_delivery d ON d.job_id = j.id WHERE"
        . " d.endpoint_id = '$id' AND j.state IN ('ready', 'leased')"), 0,
        "and their jobs");
    my ($shown) = grep { $_->{id} eq $id } @{$w->ctl_json("webhook", "list",
        "--workspace", $w->id)};
    ok($shown->{disabled_at}, "webhook list shows it");
    like($shown->{disabled_reason}, qr/410/, "and why");
    $w->contact;
    is(scalar(grep { $_->{endpoint_id} eq $id } deliveries($w)), 3,
        "it gets no new events");
    my ($code, $out, $err) = crmapictl($database, "webhook", "redrive", $id);
    is($code, 1, "redrive is refused");
    like($err, qr/the endpoint is disabled: webhook enable first/, "and says why");
    $w->ctl("webhook", "enable", $id);
    is($w->ctl("webhook", "redrive", $id), "1", "once enabled, it works");
    is($w->ctl("webhook", "redrive", $mine[1]{id}), "1",
        "for a cancelled one, too");
    $w->contact;
    $worker->once;
    is(scalar $receiver->requests("gone"), 4, "all arrive");
    is(scalar $receiver->requests("stays"), 5, "as everything did next door");
};

subtest "12.3 an endpoint that is disabled or removed while jobs wait" => sub {
    my $w = workspace($httpd);
    my $off = endpoint($w, $receiver->url("off/200"));
    my $removed = endpoint($w, $receiver->url("removed/200"));
    $w->contact;
    sql($database, "UPDATE crmapi.webhook_endpoint SET disabled_at = now()"
        . " WHERE id = '$off'");
    $w->ctl("webhook", "remove", $removed);
    $worker->once;
    is_deeply([map { "$_->{endpoint_id} $_->{status}" } deliveries($w)],
        ["$off cancelled"], "cancelled; the other's went with it");
    is(scalar $receiver->requests($_), 0, "$_: nothing was sent")
        for qw(off removed);
    is(scalar sql($database, "SELECT count(*) FROM crmapi.job WHERE"
        . " workspace_id = '" . $w->id . "' AND state NOT IN ('done',"
        . " 'cancelled')"), 0, "no job is left over");
};

subtest "12.3 only the job of a delivery that waits sends it" => sub {
    my $w = workspace($httpd);
    my $jobs = "workspace_id = '" . $w->id . "'";
    endpoint($w, $receiver->url("one-job/200"));
    $w->contact;
    my ($own) = map { $_->[0] } sql($database, "SELECT job_id
        FROM crmapi.webhook_delivery WHERE $jobs");
    # an older one whose lease has ended, before a redrive made another
    sql($database, "INSERT INTO crmapi.job (workspace_id, kind, payload) SELECT
        workspace_id, kind, payload FROM crmapi.job WHERE id = $own;
        UPDATE crmapi.job SET run_at = now() + interval '1 h' WHERE id = $own");
    $worker->once;
    is(scalar $receiver->requests("one-job"), 0, "an older job does not");
    for ("the job does", "not again") {
        sql($database, "UPDATE crmapi.job SET state = 'ready', run_at = now(),
            finished_at = NULL WHERE id = $own");
        $worker->once;
        is(scalar $receiver->requests("one-job"), 1, $_);
    }
    is(sql($database, "SELECT count(*) FROM crmapi.job WHERE $jobs
        AND state <> 'done'"), 0, "all are done");
    $w->contact;
    my ($waits) = map { $_->{id} } deliveries($w, "--status", "pending");
    $w->ctl("webhook", "redrive", $waits);
    is(sql($database, "SELECT count(*) FROM crmapi.job WHERE $jobs
        AND state = 'ready'"), 1, "a redrive makes one instead of the one that waits");
    sql($database, "UPDATE crmapi.job SET state = 'leased', leased_by = 'me',
        leased_until = now() + interval '1 h', attempts = 1 WHERE id = $own;
        SELECT crmapi.webhook_cancelled('@{[$w->id]}', $own, 'me', 1, '$waits')");
    is((deliveries($w))[-1]{status}, "pending", "an older job does not cancel it");
};

subtest "12.3 the body is made once: all attempts send the same bytes" => sub {
    my $w = workspace($httpd);
    endpoint($w, $receiver->url("made-once/200"));
    $w->contact;
    my ($event) = map { $_->[0] } sql($database, "SELECT id, 1 FROM crmapi.event
        WHERE workspace_id = '@{[$w->id]}'");
    my $body = sub { scalar sql($database, "SELECT crmapi.webhook_body("
        . "'@{[$w->id]}', '$event', '$_[0]')") };
    is($body->($_), '{"n":1}', "made as $_") for '{"n":1}', '{"n":2}';
    $worker->once;
    is(($receiver->requests("made-once"))[0]{body}, '{"n":1}', "it is sent");
};

subtest "12.3 what is being sent when its endpoint is disabled" => sub {
    my $w = workspace($httpd);
    my $in = "'" . $w->id . "'";
    my $id = endpoint($w, $receiver->url("under-way/200"));
    my %end = (delivered => "delivered", retry => "cancelled",
        failed => "cancelled");
    $w->contact for keys %end;
    my %delivery;
    @delivery{sort keys %end} = map { $_->{id} } deliveries($w);
    sql($database, "UPDATE crmapi.job SET state = 'leased', leased_by = 'me',
        leased_until = now() + interval '1 hour', attempts = 1
        WHERE workspace_id = $in");
    my ($code, undef, $err) = crmapictl($database, "webhook", "redrive",
        $delivery{retry});
    is($code, 1, "it is not sent again");
    like($err, qr/the delivery is in progress/, "meanwhile");
    my $disable = sub {
        $w->ctl("webhook", "disable", $id, "--reason", $_[0]);
        return $json->encode([grep { $_->{id} eq $id } @{$w->ctl_json("webhook",
            "list", "--workspace", $w->id)}]);
    };
    my $shown = $disable->("first");
    is($disable->("second"), $shown, "when and why it was disabled first, stays");
    for my $outcome (sort keys %end) {
        my ($job) = sql($database, "SELECT job_id, 1 FROM crmapi.webhook_delivery
            WHERE id = '$delivery{$outcome}'");
        sql($database, "SELECT crmapi.webhook_attempted($in, $job->[0], 'me', 1,
            '$delivery{$outcome}', now(), 5, 200, NULL, NULL, '$outcome',
            interval '5 s', NULL)");
    }
    is_deeply({ map { my $d = $_; map { $_ => $d->{status} } grep {
        $delivery{$_} eq $d->{id} } keys %end } deliveries($w) }, \%end,
        "what has arrived is delivered, nothing else is sent again");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.job WHERE workspace_id
        = $in AND state <> 'done'"), 0, "its jobs are done");
};

# Its new job may not have begun.
subtest "an older job of a delivery has no effect" => sub {
    my $w = workspace($httpd);
    my $in = "'" . $w->id . "'";
    endpoint($w, $receiver->url("older/200"));
    my $attempted = sub { my ($outcome) = @_; return sub {
        "webhook_attempted($_[0], now(), 5, 500, NULL, NULL, '$outcome',"
            . " interval '5 s', NULL)" } };
    my %does = ((map { $_ => $attempted->($_) } qw(retry failed delivered)),
        cancelled => sub { "webhook_cancelled($_[0])" });
    $w->contact for keys %does;
    sql($database, "UPDATE crmapi.job SET state = 'leased', leased_by = 'me',
            leased_until = now() + interval '1 hour', attempts = 1
        WHERE workspace_id = $in");
    my %delivery;
    @delivery{sort keys %does} = sql($database, "WITH had AS (
            SELECT d.id, d.job_id FROM crmapi.webhook_delivery d
            WHERE d.workspace_id = $in),
        moved AS (UPDATE crmapi.webhook_delivery SET job_id = job_id + 1000000,
            next_at = '2030-01-01' WHERE workspace_id = $in)
        SELECT id, job_id FROM had");
    for my $what (sort keys %does) {
        my ($id, $job) = @{$delivery{$what}};
        sql($database, "SELECT crmapi."
            . $does{$what}->("$in, $job, 'me', 1, '$id'"));
        is_deeply([sql($database, "SELECT d.status, d.job_id - $job,
                d.next_at = '2030-01-01', d.finished_at IS NULL, j.state <> 'ready'
            FROM crmapi.webhook_delivery d, crmapi.job j
            WHERE d.id = '$id' AND j.id = $job")],
            [["pending", 1000000, "t", "t", "t"]], "$what: it stays as it was");
    }
};

subtest "webhook disable: nothing is sent until webhook enable" => sub {
    my $w = workspace($httpd);
    my $id = endpoint($w, $receiver->url("by-hand/200"));
    my $shown = sub { return $w->ctl_json("webhook", @_) };
    $w->contact;
    my $disabled = $shown->("disable", $id);
    like($disabled->{disabled_at}, qr/^20\d\d-/, "it says since when");
    is($disabled->{disabled_reason}, "disabled by crmapictl", "and why");
    is($w->ctl("webhook", "disable", $id, "--reason", "again"), "",
        "once more changes nothing");
    is_deeply($shown->("list", "--workspace", $w->id), [$disabled], "it is listed");
    $w->contact;
    $worker->once;
    is_deeply([map { "$_->{status} $_->{attempts}" } deliveries($w)],
        ["cancelled 0"], "what was pending is cancelled, and nothing is new");
    $w->ctl("webhook", "enable", $id);
    is($w->ctl("webhook", "disable", $id, "--reason", "é" x 1000), "", "for a reason");
    is($shown->("list", "--workspace", $w->id)->[0]{disabled_reason},
        "\xe9" x 1000, "which is listed");
    for my $reason ("", "x" x 1001) {
        my ($code, $out, $err) = crmapictl($database, "webhook", "disable", $id,
            "--reason=$reason");
        is($code, 2, "a reason that is none");
        like($err, qr/--reason must have 1 to 1,000/, "is told");
    }
};

subtest "webhook test: an event that is only a test" => sub {
    my $w = workspace($httpd);
    $w->log_on;
    my $other = endpoint($w, $receiver->url("test-other/200"));
    my $id = endpoint($w, $receiver->url("test/200"), "form.submitted");
    my $contact = $w->contact->{id};
    my $delivery = $w->ctl("webhook", "test", $id);
    my $cursor = $w->client->get("/api/v1/events?cursor=*")->json->{pagination}
        {next_cursor};
    $worker->once;
    my ($request, @more) = $receiver->requests("test");
    is(scalar @more, 0, "one request");
    my $body = $json->decode($request->{body});
    like(delete $body->{timestamp}, qr/^20\d\d-\d\d-\d\dT[\d:]+\.\d{3}Z$/, "its time");
    is_deeply($body, { type => "webhook.test", data => { id => $id } },
        "its type and data");
    is_signed($request, "it is signed as others are", $secret{$id});
    my ($shown) = grep { $_->{id} eq $delivery } deliveries($w);
    is("@$shown{qw(event endpoint_id status http_status)}",
        "webhook.test $id delivered 200", "webhook deliveries shows it");
    is($shown->{webhook_id}, $request->{headers}{"webhook-id"}, "by its id");
    is(scalar(grep { $_->{body} =~ /webhook\.test/ }
        $receiver->requests("test-other")), 0, "no other endpoint gets it");
    $w->contact;
    my $events = sub { return [map { $_->{type} } @{$w->client->get(
        "/api/v1/events?cursor=$_[0]")->json->{data}}] };
    is_deeply($events->("*"), [("contact.created") x 2], "it is not in GET /events");
    is_deeply($events->($cursor), ["contact.created"],
        "whose readers miss nothing because of it");
    sql($database, "UPDATE crmapi.event SET created_at = now() - interval '99 days'"
        . " WHERE workspace_id = '" . $w->id . "' AND type = 'webhook.test'");
    sql($database, "SELECT crmapi.event_trim(now() - interval '98 days', 100)");
    is_deeply([map { $_->{event} } deliveries($w)], [("contact.created") x 2],
        "it is deleted like others");
    is_deeply($events->($cursor), ["contact.created"], "the log begins where it did");
    $w->ctl("webhook", "disable", $id);
    my ($code, $out, $err) = crmapictl($database, "webhook", "test", $id);
    is("$code $err", "1 crmapictl: the endpoint is disabled: webhook enable first\n",
        "not to one that is disabled");
};

subtest "12.2 rotation: both secrets sign for a day" => sub {
    my $w = workspace($httpd);
    my $id = endpoint($w, $receiver->url("rotate/200"));
    my $new = $w->ctl("webhook", "rotate", $id);
    like($new, qr{^whsec_[A-Za-z0-9+/]{43}=$}, "a new secret");
    isnt($new, $secret{$id}, "another one");
    $w->contact;
    $worker->once;
    my ($request) = $receiver->requests("rotate");
    is_signed($request, "signed with the new and the old one", $new,
        $secret{$id});
    sql($database, "UPDATE crmapi.webhook_endpoint SET old_key_until = now()"
        . " WHERE id = '$id'");
    $w->contact;
    $worker->once;
    (undef, $request) = $receiver->requests("rotate");
    is_signed($request, "when its time is over, with the new one", $new);
    sql($database, "UPDATE crmapi.webhook_endpoint SET old_key = NULL,"
        . " old_key_until = NULL WHERE id = '$id'");
    my $rotate = sub { crmapictl($database, "webhook", "rotate", $id, @_) };
    my (undef, $out, $err) = $rotate->("--json");
    my $newer = $json->decode($out);
    is($err, "", "another rotation, a day later");
    cmp_ok(abs(sql($database, "SELECT extract(epoch FROM"
        . " '$newer->{old_secret_until}'::timestamptz - now())") - 86400),
        "<", 60, "for 24 hours");
    my @verify = map { { secret => $_->[1], body => $_->[0]{body},
        headers => $_->[0]{headers} } }
        [($receiver->requests("rotate"))[0], $new],
        [($receiver->requests("rotate"))[0], $secret{$id}],
        [($receiver->requests("rotate"))[0], $newer->{secret}],
        [{ %$request, body => "$request->{body} " }, $new];
    my $node = (glob "$ENV{CRM_SRCDIR}/_build/npm/node_modules")[0];
    SKIP: {
        skip("no standardwebhooks: build/setup --tests installs it", 1)
            unless -d "$node/standardwebhooks";
        my ($code, $out, $err) = run_program(command => ["node",
            "$CrmTest::TOP/t/lib/verify-webhook.mjs", $node],
            stdin => $json->encode(\@verify));
        is_deeply([split /\n/, $out], ["good", "good",
            ("No matching signature found") x 2],
            "the public library says the same") or diag("$out$err");
    }
    my ($shell) = documented("webhooks.md", "sh", "## Receiving");
    is_deeply([map { (run_program(command => ["sh", "-c", "$shell\nverify \"\$@\"",
        "sh", $_->{secret}, @{$_->{headers}}{qw(webhook-id webhook-timestamp
        webhook-signature)}], stdin => $_->{body}))[1] } @verify],
        ["valid\n", "valid\n", "invalid\n", "invalid\n"],
        "and so does the example for a shell");
    (undef, my $newest, $err) = $rotate->();
    like($err, qr/^crmapictl: the secret from before the last rotation does/,
        "a second one within the day says which secret ends");
    chomp $newest;
    $w->contact;
    $worker->once;
    ($request) = reverse $receiver->requests("rotate");
    is_signed($request, "12.2 two sign during a rotation, not three", $newest,
        $newer->{secret});
};

# What the example in Python of docs/webhooks.md says of REQUESTS, as
# verify-webhook.mjs has them: "good", or the name of what it raises.
sub python_says {
    my ($example) = documented("webhooks.md", "python", "## Receiving");
    my ($code, $out, $err) = run_program(command => ["python3", "-c", $example
        . <<'END'], stdin => $json->encode([@_]));
import json, sys
for one in json.load(sys.stdin):
    try:
        verify(one["secret"], one["headers"], one["body"].encode())
        print("good")
    except Exception as error:
        print(type(error).__name__)
END
    is("$code $err", "0 ", "the example runs");
    return split /\n/, $out;
}

subtest "the example in Python takes what is signed, and refuses the rest alike" => sub {
    my $secret = "whsec_" . encode_base64("s" x 32, "");
    my $body = qq({"type":"contact.created"});
    my $signed = sub {
        my ($time, %changed) = @_;
        my $mac = hmac_sha256_base64("msg_1.$time.$body", "s" x 32) . "=";
        return { secret => $secret, body => $body, headers => {
            "webhook-id" => "msg_1", "webhook-timestamp" => "$time",
            "webhook-signature" => "v1,$mac", %changed } };
    };
    my $now = time;
    my $one = $signed->($now);
    my $signature = $one->{headers}{"webhook-signature"};
    is_deeply([python_says($one, $signed->($now - 280), $signed->($now + 280),
        map { $signed->($now, "webhook-signature" => $_) } "v1,x $signature",
        "v1a,\x{e4} $signature", "$signature v2,x")], [("good") x 6],
        "good ones, also beside another signature");
    my @forged = ({ %$one, body => "$body " }, $signed->($now - 320),
        $signed->($now + 320), (map { $signed->($_) } "", "x", "-1", "1e9",
            "$now.0", "9" x 400, "9" x 5000),
        $signed->($now, "webhook-id" => "msg_2"),
        (map { $signed->($now, "webhook-signature" => $_) } "", " ",
            "v1,", substr($signature, 3), "v2$signature", "v1,\x{e4}",
            "v1,\x{1f600}"));
    for my $name (sort keys %{$one->{headers}}) {
        my $less = $signed->($now);
        delete $less->{headers}{$name};
        push @forged, $less;
    }
    is_deeply([python_says(@forged)], [("ValueError") x @forged],
        scalar(@forged) . " that are forged");
};

subtest "12.4 no connection to what is not public" => sub {
    my $w = workspace($httpd);
    $worker->configure({ webhook_private => undef });
    endpoint($w, $receiver->url("private/200"));
    endpoint($w, "http://localhost:" . $receiver->port . "/private/200");
    endpoint($w, "http://2130706433:" . $receiver->port . "/private/200");
    endpoint($w, "http://[::ffff:127.0.0.1]:" . $receiver->port
        . "/private/200");
    endpoint($w, "http://169.254.169.254/latest/meta-data/");
    $w->contact;
    $worker->once;
    my @d = deliveries($w);
    is(scalar @d, 5, "five endpoints");
    is($_->{status}, "pending", "nothing is delivered") for @d;
    like($_->{error}, qr/not allowed/, "and it says why") for @d;
    is(scalar $receiver->requests("private"), 0, "nobody came");
    $worker->configure({ %conf });
};

# A site with TLS whose certificate, FILE, is for ADDRESS: it answers 204.
sub tls_site {
    my ($file, $address) = @_;
    my ($code, $out, $err) = run_program(command => ["openssl", qw(req -x509
        -newkey rsa:2048 -nodes -days 2 -subj /CN=site -addext),
        "subjectAltName=IP:$address", "-keyout", "$file.key", "-out", $file]);
    die $err if $code;
    chmod 0644, $file, "$file.key";
    return httpd(crmapi => 0, modules => [qw(ssl alias)],
        may_log => [qr/AH0(?:1906|1909|1873): /], conf => <<"END");
SSLEngine On
SSLCertificateFile $file
SSLCertificateKeyFile $file.key
RedirectMatch 204 .*
END
}

subtest "webhook_ca_file says which endpoints with TLS are trusted" => sub {
    my $dir = tempdir("crm-tls-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $dir;
    my ($good, $bad) = ("$dir/good.pem", "$dir/bad.pem");
    for my $one ([$good, "127.0.0.1", "", qr/certificate/, "an unknown issuer"],
            [$bad, "127.0.0.2", $bad, qr/ name /, "another's name"],
            [$good, "127.0.0.1", $good, undef, "a known one"]) {
        my ($file, $address, $trusted, $error, $name) = @$one;
        my $site = tls_site($file, $address);
        my $w = workspace($httpd, twin => 0);
        endpoint($w, "https://127.0.0.1:" . $site->port . "/hook");
        $w->contact(first_name => "Tls");
        my $worker = worker(database => $database, no_start => 1,
            conf => { %conf, webhook_ca_file => $trusted });
        $worker->once for 1 .. 2;
        my ($delivery) = deliveries($w);
        is($delivery->{status}, $error ? "pending" : "delivered", $name);
        like((attempts($delivery))[0]{error}, $error, "$name: why") if $error;
        $worker->stop;
    }
};

subtest "one hanging receiver does not hold the others up" => sub {
    my $w = workspace($httpd);
    my $hangs = endpoint($w, $receiver->url("stuck/hang"));
    my $quick = endpoint($w, $receiver->url("quick/200"));
    my $daemon = worker(database => $database, conf => { %conf,
        webhook_threads => 3, webhook_concurrency => 2,
        webhook_timeout => "20s" });
    $w->contact for 1 .. 8;
    is(scalar $receiver->wait_requests("quick", 8, 8), 8,
        "all eight arrive while two hang");
    is(scalar $receiver->wait_requests("stuck", 2), 2,
        "and no more than two of those are under way");
    my $put_off = "SELECT coalesce(sum(j.attempts), 0), count(*) FROM"
        . " crmapi.job j JOIN crmapi.webhook_delivery d ON d.job_id = j.id"
        . " WHERE d.endpoint_id = '$hangs' AND j.state = 'ready' AND"
        . " j.run_at > j.created_at + interval '100 ms'";
    my $row;
    ok(wait_for(sub { ($row) = sql($database, $put_off); $row->[1] == 6 }, 20),
        "the other six are put off");
    is($row->[0], 0, "waiting is no attempt");
    # a daemon that is killed: its work is done again (at least once)
    my ($first) = sort { $a->{at} <=> $b->{at} } $receiver->requests("stuck");
    $daemon->kill;
    sql($database, "UPDATE crmapi.webhook_endpoint SET url = '"
        . $receiver->url("again/200") . "' WHERE id = '$hangs'");
    # as crmapi.job_reap() does when the leases have run out (41-worker.t)
    sql($database, "UPDATE crmapi.job SET state = 'ready', leased_by = NULL,"
        . " leased_until = NULL, run_at = now() WHERE state IN ('leased',"
        . " 'ready') AND workspace_id = '" . $w->id . "'");
    $worker->once;
    my %again = map { $_->{headers}{"webhook-id"} => $_ }
        $receiver->requests("again");
    is(scalar keys %again, 8, "all that hung arrive");
    is($again{$first->{headers}{"webhook-id"}}{body}, $first->{body},
        "with the same id and the same bytes as before");
    is_deeply([map { $_->{status} } deliveries($w)], [("delivered") x 16],
        "12.3 at least once");
};

subtest "nor do several, once it is known that they hang" => sub {
    my $w = workspace($httpd);
    my $daemon = worker(database => $database, conf => { %conf,
        webhook_threads => 4, webhook_concurrency => 4,
        webhook_timeout => "4s" });
    endpoint($w, $receiver->url("stuck$_/hang")) for 1 .. 3;
    endpoint($w, $receiver->url("brisk/200"));
    $w->contact;
    ok(wait_for(sub { 3 == grep { $_->{error} } deliveries($w) }, 30),
        "all three are tried");
    $w->contact for 1 .. 8;
    my @brisk = $receiver->wait_requests("brisk", 9, 60);
    is(scalar @brisk, 9, "all arrive at the fourth");
    # with all threads in deliveries that hang it is one for each three of these
    cmp_ok(scalar(grep { $_->{path} =~ /stuck/ && $_->{at} < $brisk[-1]{at} }
        $receiver->requests), "<", 16, "without waiting for those that hang");
    $daemon->kill;
    sql($database, "UPDATE crmapi.job SET state = 'cancelled', leased_by ="
        . " NULL, leased_until = NULL, finished_at = now() WHERE state IN"
        . " ('leased', 'ready') AND workspace_id = '" . $w->id . "'");
};

subtest "an endpoint's only slot is free again after an error" => sub {
    my $w = workspace($httpd);
    endpoint($w, $receiver->url("only/200"));
    sql($database, "ALTER TABLE crmapi.webhook_attempt RENAME TO away");
    my $daemon = worker(database => $database, conf => { %conf,
        webhook_concurrency => 1 }, expect_log =>
        [qr/CRM3101: .*webhook\.deliver.*webhook_attempt/]);
    $w->contact;
    ok($daemon->wait_log(qr/CRM3101: /, 20), "an attempt cannot be stored");
    sql($database, "ALTER TABLE crmapi.away RENAME TO webhook_attempt");
    ok(wait_for(sub { (deliveries($w))[0]{status} eq "delivered" }, 20),
        "the next one can");
    $daemon->stop;
};

# What is signed late may be another daemon's by then.
subtest "a delivery whose lease is lost before it is sent is not sent" => sub {
    my $w = workspace($httpd);
    endpoint($w, $receiver->url("stolen/200"));
    sql($database, "ALTER FUNCTION crmapi.webhook_mac RENAME TO mac_at_once;
        CREATE FUNCTION crmapi.webhook_mac(text text, key bytea) RETURNS text
            LANGUAGE plpgsql AS \$\$
        BEGIN
            UPDATE crmapi.job j SET leased_by = 'another' WHERE j.state = 'leased'
                AND j.workspace_id = '" . $w->id . "';
            PERFORM pg_sleep(1.1);
            RETURN crmapi.mac_at_once(\$1, \$2);
        END \$\$");
    my $daemon = worker(database => $database, conf => { %conf, lease => "2s" },
        expect_log => [qr/CRM3104: /, qr/CRM3005: 1 job /]);
    $w->contact;
    ok($daemon->wait_log(qr/CRM3104: /, 20), "it is noticed");
    is(scalar $receiver->requests("stolen"), 0, "nothing is sent");
    sql($database, "DROP FUNCTION crmapi.webhook_mac;
        ALTER FUNCTION crmapi.mac_at_once RENAME TO webhook_mac;
        UPDATE crmapi.job SET leased_until = now() WHERE leased_by = 'another'");
    ok(wait_for(sub { (deliveries($w))[0]{status} eq "delivered" }, 20),
        "who has the lease sends it");
    is(scalar $receiver->requests("stolen"), 1, "once");
    $daemon->stop;
};

subtest "events that are trimmed take all with them" => sub {
    my $w = workspace($httpd);
    endpoint($w, $receiver->url("old/500"));
    $w->contact for 1 .. 2;
    $worker->once;
    my ($old, $new) = map { $_->{id} } deliveries($w);
    cmp_ok(scalar(my @some = attempts({ id => $old })), ">", 0, "it was tried");
    sql($database, "UPDATE crmapi.event SET created_at = '2020-01-01'"
        . " WHERE id IN (SELECT event_id FROM crmapi.webhook_delivery WHERE"
        . " id = '$old'); UPDATE crmapi.webhook_delivery SET status ="
        . " 'failed', next_at = NULL, finished_at = now() WHERE id = '$old'");
    is(postgres()->sql($database, "SELECT crmapi.event_trim('2021-01-01',"
        . " 1000)", $CrmTest::Postgres::WORKER), 1, "one is old");
    is_deeply([map { $_->{id} } deliveries($w)], [$new], "and nothing else");
    is(scalar(my @none = attempts({ id => $old })), 0, "its attempts, too");
    $worker->once(scalar sql($database, "SELECT to_char((now() + interval"
        . " '1 minute') AT TIME ZONE 'UTC',"
        . " 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"));
    is(scalar $receiver->requests("old"), 3, "the other is tried again");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.job WHERE"
        . " workspace_id = '" . $w->id . "' AND state = 'done'"), 1,
        "the job of what is gone is done");
};

subtest "crmapictl webhook" => sub {
    my $w = workspace($httpd);
    my $fails = sub {
        my ($like, @arguments) = @_;
        my ($code, $out, $err) = crmapictl($database, "webhook", @arguments);
        is($code, $like =~ /no workspace|there is no/ ? 1 : 2, "@arguments: refused");
        like($err, $like, "and says why");
    };
    my @add = ("add", "--workspace", $w->id, "--events", "contact.created",
        "--url");
    $fails->(qr/--url must be/, @add, $_) for "ftp://x.org/", "x.org", "",
        "http://", "http:///x", "http://u:p\@x.org/", "https://u\@x.org",
        "http://x.org/a b", "http://x.org/\n", "http://x.org/" . "x" x 2048,
        "file:///etc/passwd", "http://x.org\\\@y.org/", "gopher://x.org/",
        "https://b\xc3\xbccher.example/", "https://?x", "https://#x";
    my @events = ("add", "--workspace", $w->id, "--url", "https://x.org/",
        "--events");
    $fails->(qr/--events/, @events, $_) for "", "contact.undone",
        "contact.created,contact.x", "contact.created;form.submitted", ",",
        "contact*", "con.*", "*.created", ".*", "**", "contact.**", "contact.*,deal.*";
    $fails->(qr/^crmapictl: --events names contact\.change: it must be of contact\.created,.* contact\.merged,/,
        @events, "form.submitted,contact.change");
    $fails->(qr/^crmapictl: --url must be(?!.*--events)/, @add, "hook");
    $fails->(qr/no workspace/, "add", "--workspace", "nobody", "--url",
        "https://x.org/", "--events", "contact.created");
    $fails->(qr/must be an id/, $_, "5") for qw(remove rotate enable disable test redrive);
    $fails->(qr/there is no/, $_, uuid())
        for qw(remove rotate enable disable test redrive);
    $fails->(qr/--status must be/, "deliveries", "--workspace", $w->id,
        "--status", "lost");
    my @two = ("HTTPS://x.org/", "Http://X.org");
    like($w->ctl("webhook", @add, $_), qr/\twhsec_/, "$_: a scheme is without case"
        . " (RFC 3986 3.1)") for @two;
    is_deeply([map { $_->{url} } @{$w->ctl_json("webhook", "list", "--workspace",
        $w->id)}], \@two, "list: oldest first");
    my $many = workspace($httpd, twin => 0);
    my %types = map { $_ => [sort @{$many->ctl_json("webhook", @events[0, 1], $many->id,
        @events[3 .. 5], $_)->{events}}] } "*", "company.*", "form.*,company.updated";
    is_deeply($types{"company.*"}, [map { "company.$_" } qw(created deleted updated)],
        "all of a resource");
    is_deeply($types{"form.*,company.updated"}, ["company.updated", "form.submitted"],
        "beside one");
    is_deeply($types{"*"}, [sort keys %{$many->client->get(
        "/api/v1/openapi.json")->json->{webhooks}}], "all that the document has");
    my ($id, $secret) = split /\t/, $w->ctl("webhook", @events,
        "form.submitted,contact.created,form.submitted");
    like($secret, qr{^whsec_[A-Za-z0-9+/]{43}=$}, "add prints the secret");
    my $list = $w->ctl("webhook", "list", "--workspace", $w->id);
    like($list, qr{^$id\thttps://x\.org/\tcontact\.created,form\.submitted\t}m,
        "list shows the endpoint");
    unlike($list, qr/whsec_|\Q@{[substr $secret, 6, 43]}\E/,
        "without its secret");
    unlike($w->ctl("--json", "webhook", "list", "--workspace", $w->id),
        qr/"secret"/, "and not with --json");
    $w->ctl("webhook", "remove", $id);
    unlike($w->ctl("webhook", "list", "--workspace", $w->id), qr/$id/,
        "remove removes it");
};

subtest "webhook deliveries shows the newest 100" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = endpoint($w, $receiver->url("many/200"));
    $w->contact;
    my ($delivery) = deliveries($w);
    sql($database, "INSERT INTO crmapi.webhook_delivery (id, workspace_id, event_id,
        endpoint_id, job_id, created_at) SELECT gen_random_uuid(), d.workspace_id,
        d.event_id, d.endpoint_id, 0, d.created_at - n * interval '1 hour'
        FROM crmapi.webhook_delivery d, generate_series(1, 100) n
        WHERE d.id = '$delivery->{id}'");
    my @shown = deliveries($w);
    is(scalar @shown, 100, "of 101");
    is($shown[-1]{id}, $delivery->{id}, "the newest");
    my ($oldest) = sql($database, "SELECT id, 1 FROM crmapi.webhook_delivery WHERE
        endpoint_id = '$id' ORDER BY created_at LIMIT 1");
    is(scalar(grep { $_->{id} eq $oldest->[0] } @shown), 0, "without the oldest");
    is(scalar deliveries($w, "--status", "delivered"), 0, "or those of a status");
};

subtest "who may see and do what" => sub {
    my $as = sub {
        my ($role, $sql) = @_;
        return eval { postgres()->sql($database, $sql, $role); 1 }
            ? "done" : $@;
    };
    my $api = $CrmTest::Postgres::API;
    my $crmapid = $CrmTest::Postgres::WORKER;
    for my $table (qw(webhook_endpoint webhook_delivery webhook_attempt)) {
        like($as->($api, "SELECT 1 FROM crmapi.$table"),
            qr/permission denied/, "the API reads no $table");
    }
    for my $table (qw(webhook_endpoint webhook_delivery webhook_attempt
            event event_feed)) {
        like($as->($_, "UPDATE crmapi.$table SET workspace_id ="
            . " workspace_id"), qr/permission denied/,
            "$_ changes $table by functions only") for $api, $crmapid;
    }
    like($as->($_, "SELECT crmapi.webhook_redrive('" . uuid()
        . "', '" . uuid() . "')"),
        qr/permission denied/, "redrive is the operator's")
        for $api, $crmapid;
    like($as->($api, "SELECT crmapi.webhook_key()"), qr/permission denied/,
        "the API makes no keys");
};

subtest "secrets stay secret" => sub {
    my $log = join "", map { read_file($_) } $worker->log_file,
        grep { -f } glob $httpd->dir . "/*";
    cmp_ok(scalar keys %secret, ">", 20, "there were some");
    cmp_ok(scalar(grep { index($log, $_) >= 0 } keys %secret), ">", 0,
        "the logs tell of their endpoints");
    my @found = grep { index($log, substr $_, 6) >= 0 } values %secret;
    is("@found", "", "none in the logs");
    my @jobs = map { $_->[0] } sql($database, "SELECT payload::text ||"
        . " coalesce(last_error, '') FROM crmapi.job WHERE kind ~ 'webhook'");
    cmp_ok(scalar @jobs, ">", 0, "there are jobs");
    is_deeply([grep { !defined || m{whsec|http://} } @jobs], [],
        "none with a job, and no URL");
};

$receiver->stop;
done_testing;
