# SPDX-License-Identifier: Apache-2.0
# 43-dispatch.t: a sequence from its start to its end over real servers: httpd,
# PostgreSQL, crmapid, an SMTP server (aiosmtpd), an HTTP provider (contract 11)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Provider;
use CrmTest::Smtpd;
use Encode qw(decode);
use File::Temp qw(tempdir);
use IO::Socket::INET ();
use MIME::QuotedPrint qw(decode_qp);
use Time::HiRes qw(time);

CrmTest::Smtpd::needed();

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, conf => <<"END");
CrmApiReview On
CrmApiUnsubscribe On
END
my $provider = CrmTest::Provider->new(token => "s3cret-token");

my $scratch = tempdir("crm-smtp-XXXXXX", TMPDIR => 1, CLEANUP => 1);

# The messages that SERVER has.
sub received { return $_[0]->received }

my $smtp = CrmTest::Smtpd->new;
my $worker = worker(database => $database, no_start => 1, conf => {
    $smtp->relay, sms_relay => "http", voice_relay => "http",
    provider_url => $provider->url, mail_domain => "crm.example",
    public_url => "http://127.0.0.1:" . $httpd->port . "/" });
my $token = $worker->dir . "/token";
write_file($token, "s3cret-token\n");
chmod 0600, $token;
$worker->configure({ provider_token_file => $token });

my $templates = 0;
sub with_template {
    my ($steps) = @_;
    my $w = workspace($httpd);
    $w->{template} = $w->template($steps, name => "Welcome",
        allowed_channels => [qw(email sms voice)], stop_on_reply => true);
    my $n = ++$templates;
    $w->{phone} = "+493099$n";
    sql($database, "UPDATE crmapi.agent SET agent_email = 'ada$n\@crm.example',"
        . " name = 'Ada Löwe', agent_phone = '$w->{phone}', phone_voice_id = 'alloy'"
        . " WHERE id = '" . $w->agent . "'");
    return $w;
}

my @MAIL = ({ channel => "email", email_subject => "Grüße an {{first_name}}",
    email_body => "Liebe {{first_name}},\n\n"
        . "mehr unter https://crm.example/?a=1&b=2 <gern>.\n" });

# What a mail program does when somebody wants out (RFC 8058).
sub one_click {
    my ($path) = @_;
    return $httpd->client->request("POST", $path,
        body => "List-Unsubscribe=One-Click", headers => {
            "Content-Type" => "application/x-www-form-urlencoded" });
}

subtest "the life of a sequence" => sub {
    my $w = with_template([@MAIL,
        { channel => "sms", delay => "1m", sms_body => "Fragen, {{first_name}}?" },
        { channel => "voice", delay => "1m", voice_objective => "Besuch",
            voice_script => "Hallo {{first_name}}" }]);
    crmapictl_ok($database, qw(admin add --workspace), $w->id, "--email",
        "boss\@crm.example");
    my $id = $w->start_for({
        first_name => "Änne", last_name => "Müller",
        emails => ["aenne\@x.example"], phone_numbers => ["+49301234567"] },
        auto_approve => false);
    $worker->once;
    my ($ask) = grep { /^X-Envelope-To: boss/m } received($smtp);
    ok($ask, "the admin gets a mail by SMTP") or return;
    my $flat = $ask =~ s/=\n//gr =~ s/=3D/=/gr;
    my ($path) = $flat =~ m{http://127\.0\.0\.1:\d+(/crmapi/review/[\w-]+)};
    ok($path, "with a link to the review") or diag($ask), return;
    my $page = $httpd->client->get($path);
    is($page->status, 200, "which opens");
    like($page->body, qr/Liebe \S+nne/, "and shows what will be sent");
    is($w->enrollment($id)->{status}, "pending_approval",
        "opening it has changed nothing");
    status_is($w->client->post("/api/v1/sequences/enrollments/$id/approve"),
        200, "it is approved");
    $worker->once;

    my ($mail) = grep { /^X-Envelope-To: aenne/m } received($smtp);
    ok($mail, "the first step arrives") or return;
    like($mail, qr/^X-Envelope-From: ada1\@crm\.example$/m, "from the agent");
    like($mail, qr/^From: .*<ada1\@crm\.example>$/m, "says the header, too");
    like($mail, qr/^Subject: =\?UTF-8\?/mi, "an encoded subject");
    my ($step) = @{$w->enrollment($id)->{steps}};
    my $name = $w->message_id($step->{id});
    like($mail, qr/^Message-ID: \Q$name\E$/mi, "a Message-ID that is kept");
    like($mail, qr{^Content-Type: multipart/alternative}m, "two forms:");
    like($mail, qr{^Content-Type: text/plain; charset=utf-8}mi, "text");
    like($mail, qr{^Content-Type: text/html; charset=utf-8}mi, "and HTML");
    like($mail, qr/^List-Unsubscribe-Post: List-Unsubscribe=One-Click$/m,
        "RFC 8058");
    my ($leave) = ($mail =~ s/\n[ \t]+/ /gr)
        =~ m{^List-Unsubscribe: <http://127\.0\.0\.1:\d+(/crmapi/\S+)>}m;
    ok($leave, "and where to unsubscribe");
    unlike($ask, qr/^List-/m, "the admin's mail has no such header");

    $worker->once(later(2));
    my ($sms) = $provider->requests;
    is($sms->{headers}{"idempotency-key"},
        $w->enrollment($id)->{steps}[1]{id}, "the provider gets the text,"
        . " with the step's id as its idempotency key");
    is($sms->{headers}{authorization}, "Bearer s3cret-token", "the token");
    is($sms->{json}{text}, "Fragen, Änne?", "and what it says");
    is($sms->{json}{to}, "+49301234567", "to whom");
    is($sms->{json}{from}, $w->{phone}, "from the agent's number");
    is($w->enrollment($id)->{status}, "running", "the second step: running");
    $worker->once(later(4));
    my $call = ($provider->requests)[1];
    is($call->{json}{channel}, "voice", "the call");
    is($call->{json}{objective}, "Besuch", "and what for");
    is($call->{json}{voice_id}, "alloy", "in the agent's voice");
    is($w->enrollment($id)->{status}, "completed", "completed");

    my $out = one_click($leave);
    is($out->status, 200, "one click");
    like(crmapictl_ok($database, qw(suppress list --workspace), $w->id),
        qr/aenne\@x\.example/, "and the address is suppressed");
};

# The time MINUTES from now, as --now wants it.
sub later {
    return POSIX::strftime("%Y-%m-%dT%H:%M:%SZ",
        gmtime(CORE::time + 60 * $_[0]));
}

# What a stranger says the own name is, as a chat takes it, and with an address
# that is somebody else's.
subtest "a value is one line and no link in a mail of ours" => sub {
    my $w = with_template([{ channel => "email",
        email_subject => "For {{full_name}}",
        email_body => "Dear {{first_name}},\n\nyours\n" }]);
    crmapictl_ok($database, qw(admin add --workspace), $w->id, "--email",
        "chief\@crm.example");
    my $nbsp = chr 0xa0;
    my $id = $w->start_for({
        first_name => "Security notice:$nbsp$nbsp\x{2028}confirm \"now\"",
        last_name => "https://evil.example/login www.evil.example",
        emails => ["victim\@x.example"] }, auto_approve => false);
    $worker->once;
    my $text = sub {
        my ($to) = @_;
        my ($mail) = grep { /^X-Envelope-To: $to/m } received($smtp);
        my ($head, $body) = split /\n\n/, decode_qp($mail =~ s/\r//gr), 2;
        return (decode("MIME-Header", $head =~ s/\n[ \t]+/ /gr), $body);
    };
    my ($head, $body) = $text->("chief");
    my ($subject) = $head =~ /^Subject: (.*)/m;
    like($subject, qr{^Please review: Welcome for "Security notice: confirm},
        "the subject of the admin's mail quotes the name");
    my @links = "$head\n$body" =~ m{(?:https?://|www\.)[^\s"<]+}g;
    is_deeply([grep { !m{^http://127\.0\.0\.1:} } @links], [],
        "the mail has the links that are ours only");
    unlike("$head$body", qr/evil\.example/, "and no other domain");
    my ($quoted) = $body =~ /^> (Security notice: confirm 'now' .*)$/m;
    like($quoted, qr/^Security notice: confirm 'now' https: /,
        "the name is one quoted line");
    cmp_ok(index($body, "/crmapi/review/"), "<",
        index($body, "> Security"), "below the link");
    like($body, qr/\((?:1 step|[2-9] steps)\)/, "which says how many steps");

    status_is($w->client->post("/api/v1/sequences/enrollments/$id/approve"),
        200, "it is approved");
    $worker->once;
    ($head, $body) = $text->("victim");
    like($body, qr/^Dear Security notice: confirm "now",$/m,
        "a merge field is one line in the step's mail");
    @links = "$head\n$body" =~ m{(?:https?://|www\.)[^\s"<]+}g;
    is_deeply([grep { !m{^http://127\.0\.0\.1:} } @links], [],
        "which has links of ours only, too");
    unlike("$head$body", qr/evil\.example/, "in no header either");
};

subtest "one click stops what runs" => sub {
    my $w = with_template([@MAIL, { %{$MAIL[0]}, delay => "1d" }]);
    my $id = $w->start_for({ first_name => "U",
        emails => ["leaves\@x.example"] });
    $worker->once;
    my ($mail) = grep { /^X-Envelope-To: leaves/m } received($smtp);
    my ($path) = ($mail =~ s/\n[ \t]+/ /gr)
        =~ m{List-Unsubscribe: <http://127\.0\.0\.1:\d+(/\S+)>};
    is($httpd->client->get($path)->status, 200, "GET shows a page");
    is($w->enrollment($id)->{status}, "approved", "and changes nothing");
    one_click($path);
    my $e = $w->enrollment($id);
    is($e->{status}, "stopped_unsubscribed", "POST stops the sequence");
    is(states_of($e), "email sent, email cancelled",
        "what was left is cancelled");
};

subtest "a mail server that refuses, or not today" => sub {
    my $w = with_template([@MAIL]);
    $worker->expect_log(qr/CRM3122: .* not sent \(will be retried\)/ => 3,
        qr/CRM3122: .* not sent \(for good\)/ => 2);
    my $id = $w->start_for({ first_name => "U",
        emails => ["2.450\@x.example"] });
    $worker->once;
    is(states_of($w->enrollment($id)), "email scheduled", "450: another time");
    my ($made, $step) = @{$w->ctl_json("enrollment", "show", $id)};
    is_deeply([@$made{qw(step job attempts next_at last_error)}],
        [undef, "generate.steps", 1, undef, undef],
        "enrollment show: its steps were made");
    is_deeply([@$step{qw(step channel status sent_at job attempts)}],
        [1, "email", "scheduled", undef, "sequence.step", 1], "the step was tried");
    like($step->{last_error}, qr/answered 450/, "and why it was not sent");
    cmp_ok($step->{next_at}, "gt", $step->{scheduled_for}, "it will be tried again");
    $worker->hurry;
    $worker->hurry;
    my $e = $w->enrollment($id);
    is(states_of($e), "email sent", "the third time it is taken");
    is(sql($database, "SELECT count(*) FROM crmapi.enrollment_step"
        . " WHERE enrollment_id = '$id' AND error IS NOT NULL"), 0,
        "and nothing is said of the other times");
    is(scalar(grep { /^X-Envelope-To: 2\.450/m } received($smtp)), 1, "once");
    is($e->{status}, "completed", "completed");
    $id = $w->start_for({ first_name => "U", emails => ["9.550\@x.example"] });
    $worker->once;
    $e = $w->enrollment($id);
    is(states_of($e), "email failed", "550: never");
    $step = $w->ctl_json("enrollment", "show", $id)->[-1];
    is_deeply([@$step{qw(status next_at)}], ["failed", undef], "it is not tried again");
    like($step->{last_error}, qr/answered 550/, "and why");
    is($e->{status}, "failed", "11.7 dispatch fails: failed");
    like($e->{generation_error}, qr/550/, "with the server's code");
    unlike($worker->log_text, qr/x\.example/,
        "what else it said quotes the recipient: that is in no log");
    is(sql($database, "SELECT (SELECT count(*) FROM crmapi.job j"
        . " WHERE j.last_error ~ 'x\.example') + (SELECT count(*) FROM"
        . " crmapi.enrollment_step s WHERE s.error ~ 'x\.example')"), 0,
        "and in no table that job list shows");
    $worker->configure({ send_attempts => 2 });
    $id = $w->start_for({ first_name => "U", emails => ["9.451\@x.example"] });
    $worker->once;
    $worker->hurry;
    is($w->enrollment($id)->{status}, "failed", "send_attempts bounds it");
    $worker->configure({ send_attempts => undef });
    $worker->expect_log(qr/CRM3122: .* not sent \(will be retried\)/ => 9);
    $id = $w->start_for({ first_name => "U", emails => ["9.452\@x.example"] });
    $worker->once;
    $worker->hurry for 1 .. 9;
    is($w->enrollment($id)->{status}, "completed",
        "one that is away for hours does not end what waits for it");
};

subtest "a step counts once against the agent's limit of a day" => sub {
    my $w = with_template([@MAIL]);
    $worker->configure({ agent_daily_limit => 2 });
    $worker->expect_log(qr/CRM3122: .* not sent \(will be retried\)/ => 3);
    my @ids = map { $w->start_for({ first_name => "L",
        emails => [$_] }) } "3.451\@limit.example", "once\@limit.example";
    $worker->once;
    $worker->hurry for 1 .. 3;
    is(states_of($w->enrollment($_)), "email sent", "attempts use nothing up")
        for @ids;
    my $third = $w->start_for({ first_name => "L",
        emails => ["third\@limit.example"] });
    $worker->once;
    is(states_of($w->enrollment($third)), "email scheduled", "the limit holds");
    $worker->configure({ agent_daily_limit => undef });
};

subtest "a mail server with accounts, one that is away" => sub {
    my $w = with_template([@MAIL]);
    my $certificate = "$scratch/server.pem";
    my ($code, $out, $err) = run_program(command => ["openssl", "req",
        "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
        "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
        $certificate, "-out", "$scratch/ca.pem"]);
    is($code, 0, "a certificate") or diag($err);
    write_file($certificate, read_file($certificate)
        . read_file("$scratch/ca.pem"));
    my $strict = CrmTest::Smtpd->new("crm", "pa55word", $certificate);
    my $secret = $worker->dir . "/password";
    write_file($secret, "wrong-one\n");
    chmod 0600, $secret;
    $worker->configure({ smtp_url => "smtp://127.0.0.1:$strict->{port}",
        smtp_user => "crm", smtp_password_file => $secret });
    for my $tls ("no", "opportunistic") {
        $worker->configure({ smtp_tls => $tls });
        ($code, $err) = $worker->refuses;
        is($code, 2, "smtp_tls $tls: a password would go in the clear");
        like($err, qr/smtp_user needs smtp_tls = starttls/, "it says so");
    }
    $worker->configure({ smtp_tls => "starttls",
        smtp_ca_file => "$scratch/ca.pem" });
    $worker->expect_log(qr/CRM3122: .* not sent \(will be retried\)/ => 2);
    my $id = $w->start_for({ first_name => "U",
        emails => ["auth\@x.example"] });
    $worker->once;
    is(states_of($w->enrollment($id)), "email scheduled",
        "a wrong password: the operator's to mend, tried again");
    unlike($worker->log_text, qr/wrong-one/, "and in no log");
    write_file($secret, "pa55word\n");
    $worker->hurry;
    is(states_of($w->enrollment($id)), "email sent", "the right one, in TLS");
    my $nobody = free_port();
    $worker->configure({ smtp_url => "smtp://127.0.0.1:$nobody",
        smtp_tls => "no", smtp_ca_file => undef, smtp_user => undef,
        smtp_password_file => undef });
    $id = $w->start_for({ first_name => "U", emails => ["away\@x.example"] });
    $w->start_for({ first_name => "U", emails => ["away$_\@x.example"] })
        for 1 .. 4;
    $worker->expect_log(qr/CRM3122: .* not sent \(will be retried\)/ => 4);
    my @told = grep { /CRM3122/ } split /\n/, $worker->once;
    is(scalar(grep { / info: / } @told), 4, "it fails five steps");
    is(scalar(grep { / warning: / } @told), 1, "and is told once");
    is(states_of($w->enrollment($id)), "email scheduled",
        "nobody listens: later");
    $worker->configure({ smtp_url => "smtp://127.0.0.1:$smtp->{port}" });
    $worker->hurry;
    is(states_of($w->enrollment($id)), "email sent", "somebody does");
};

# A text is sent although the server at URL keeps mails to NAME... waiting, which have
# been due for longer. TRIED: returns how many of them the worker has given it.
sub overtakes {
    my ($url, $name, $tried) = @_;
    my $w = with_template([@MAIL, { %{$MAIL[0]}, delay => "1h" }]);
    my @text = (channel => "sms", sms_body => "Hi");
    my $texts = $w->template([{ @text }, { @text, delay => "2h" }]);
    my $busy = worker(database => $database, no_start => 1, conf => {
        %{$worker->{conf}}, run_dir => undef, threads => 2, smtp_timeout => "2s",
        smtp_url => $url, log_level => "info" });
    $busy->configure({ run_dir => $busy->dir });
    $busy->expect_log(qr/CRM3122: .* not sent \(will be retried\)/);
    $w->start_for({ first_name => "U",
        emails => ["$name$_\@x.example"] }) for 1 .. 40;
    my $id = $w->start($texts, auto_approve => true, contact => {
        phone_numbers => ["+4930777001"] })->{enrollment_id};
    $worker->once;
    # the mails have been due for longer than the text
    sql($database, "UPDATE crmapi.job SET run_at = run_at - interval '3 hours'"
        . " WHERE state = 'ready'");
    $busy->start;
    ok(wait_for(sub { $w->enrollment($id)->{status} eq "completed" },
        30 * busy()), "a text is sent");
    my $count = $tried->($busy);
    cmp_ok($count, "<", 20, "though the mails would all be tried before");
    cmp_ok($count, ">=", 2, "and that server is tried again");
    $busy->stop;
    $w->ctl(qw(workspace hold), $w->id);    # others do not wait for what is left
}

subtest "18.7 texts do not wait for a mail server that hangs" => sub {
    # it takes connections and never says a word
    my $mute = IO::Socket::INET->new(Listen => 128, LocalAddr => "127.0.0.1");
    overtakes("smtp://127.0.0.1:" . $mute->sockport, "still", sub {
        my ($count, $set) = (0, "");
        vec($set, $mute->fileno, 1) = 1;
        while (select(my $ready = $set, undef, undef, 0)) {
            close $mute->accept;
            $count++;
        }
        return $count });
};

subtest "18.7 nor for one that falls silent behind its greeting" => sub {
    overtakes("smtp://127.0.0.1:$smtp->{port}", "silent", sub {
        return scalar(() = $_[0]->log_text =~ /CRM3122: .* at the envelope: /g) });
};

subtest "17.1 who is dialled" => sub {
    my $n = 0;
    for my $channel (qw(sms voice)) {
        my $w = with_template([{ channel => $channel, "${channel}_" . ($channel
            eq "sms" ? "body" : "script") => "Hi" }]);
        # of mails only (14.8)
        $w->ctl(qw(workspace set), $w->id, "--sender-domains", "mail.example");
        # What the provider is asked to call for a contact with NUMBERS.
        my $dialled = sub {
            my $mail = "n" . ++$n . "\@x.example";
            my $r = $w->client->post("/api/v1/contacts", { bot_id => $w->agent,
                emails => [$mail], phone_numbers => [@_] });
            status_is($r, 201, "a contact") or return "none";
            my $before = $provider->requests;
            my $id = $w->start_for({ emails => [$mail] });
            $worker->once;
            my @now = $provider->requests;
            return join " ", map({ $_->{json}{to} } @now[$before .. $#now]),
                $w->enrollment($id)->{generation_error} // ();
        };
        my $i = $channel eq "sms" ? 1 : 2;
        for my $text ("+49 (0) 151 55500${i}1", "(+49)151/55500${i}2",
                "tel:+49-151-55500${i}3", "\x{202a}+49 151 55500${i}4\x{202c}",
                "\x{ff0b}49 151 55500${i}5") {
            is($dialled->($text), "+4915155500" . ($text =~ /(..)\x{202c}?$/)[0],
                "$channel: " . $text =~ s/([^ -~])/sprintf "{%X}", ord $1/ger);
        }
        for my $text ("+49.151.555.0009 ext. 7", "+1 650 253 2671 x12",
                "+49 151 5550009 DW 15", "+1-800-FLOWERS", "+49 151",
                "+49 151 5550009 / +49 151 5550010", "+49 (0151) 5550009",
                "0151 5550009", "tel:+49-151-5550009;ext=7", "++491515550009") {
            is($dialled->($text), "no_usable_channels", "$channel: not $text");
        }
        is($dialled->("+1-800-FLOWERS", "+44 (0)20 7946 0018"), "+442079460018",
            "$channel: the first that is a number");
        crmapictl_ok($database, qw(suppress add --workspace), $w->id,
            "--phone", "+44 (0)20 7946 0019");
        is($dialled->("tel:+44-20-7946-0019", "+442079460020"),
            "+442079460020", "$channel: suppressed, however it is written");
    }
    # a step that was imported, or written before
    my $w = with_template([{ channel => "sms", sms_body => "Hi" }]);
    my $id = $w->start_for({ phone_numbers => ["+4915155501"] },
        auto_approve => false);
    $worker->once;
    sql($database, "UPDATE crmapi.enrollment_step SET to_identifier ="
        . " '+49 151 5550009 ext. 7' WHERE enrollment_id = '$id'");
    my $before = $provider->requests;
    status_is($w->client->post("/api/v1/sequences/enrollments/$id/approve"),
        200, "approved");
    $worker->expect_log(qr/CRM3122: .*the recipient's address is not usable/);
    $worker->once;
    is(scalar $provider->requests, $before, "nobody is dialled for it");
    is(states_of($w->enrollment($id)), "sms failed", "and it has failed");
};

subtest "17.5 a number that Twilio refuses is suppressed" => sub {
    my $w = with_template([{ channel => "sms", sms_body => "Hi" }]);
    my $twilio = CrmTest::Provider->new;

    $worker->configure({ sms_relay => "twilio", twilio_account => "AC1",
        twilio_token_file => $token,
        twilio_url => "http://127.0.0.1:$twilio->{port}/" });
    $worker->expect_log(qr/CRM3122: .* not sent \(for good\).*, error 21/);
    for my $case ([21211, "bounced"], [21610, "unsubscribed"], [21614, undef]) {
        my ($error, $reason) = @$case;
        my $id = $w->start_for({ phone_numbers => ["+4930$error"] });
        $twilio->next_answers("400 {\"code\": $error, \"status\": 400}");
        $worker->once;
        is(states_of($w->enrollment($id)), "sms failed", "error $error");
        is(sql($database, "SELECT max(reason) FROM crmapi.suppression WHERE"
            . " address = '+4930$error' AND workspace_id = '" . $w->id . "'"),
            $reason, "$error: " . ($reason // "it speaks of this channel"));
    }
    like(($twilio->requests)[0]{line}, qr{^POST /2010-04-01/Accounts/AC1/Mess},
        "below its URL, however that ends");
    $twilio->stop;
    $worker->configure({ sms_relay => "http", map { ("twilio_$_" => undef) }
        qw(account token_file url) });
};

subtest "a provider that fails in every way" => sub {
    my $w = with_template([{ channel => "sms", sms_body => "Hi" }]);
    $worker->configure({ provider_timeout => valgrinded() ? "7s" : "700ms" });
    $worker->expect_log(qr/CRM3122: .* not sent \(will be retried\)/,
        qr/CRM3122: .* not sent \(for good\)/, qr/CRM3123: .*: it is unknown/);
    my $n = 0;
    for my $case (["500"], ["429"], ["503"], ["hang"], ["close"],
            ["endless"], ["garbage", "sent"]) {
        my ($way, $taken) = @$case;
        my $id = $w->start_for({ phone_numbers => ["+4930777" . ++$n] });
        $provider->next_answers($way);
        $worker->once;
        my $e = $w->enrollment($id);
        if ($taken) {
            is(states_of($e), "sms sent", "$way with 200: it was taken");
            next;
        }
        like(states_of($e), qr/^sms (?:scheduled|sending)$/, "$way: not yet");
        $provider->next_answers();
        $worker->hurry;
        is(states_of($w->enrollment($id)), "sms sent", "and then it is");
        my %keys = map { $_->{headers}{"idempotency-key"} => 1 }
            grep { $_->{json}{to} eq "+4930777$n" } $provider->requests;
        is(scalar keys %keys, 1, "with the same idempotency key");
    }
    my $id = $w->start_for({ phone_numbers => ["+49307799"] });
    $provider->next_answers("400");
    $worker->once;
    is($w->enrollment($id)->{status}, "failed", "400: never");
    $id = $w->start_for({ phone_numbers => ["+49307798"] });
    $provider->next_answers("later");
    $worker->once;
    my $wait = sql($database, "SELECT extract(epoch FROM run_at - now())"
        . " FROM crmapi.job WHERE state = 'ready'"
        . " AND payload ->> 'enrollment_id' = '$id'");
    ok($wait > 100 && $wait <= 121, "429 with Retry-After: 120 is believed")
        or diag($wait);
    $provider->next_answers();
    $worker->hurry;
};

# An enrollment to ADDRESS whose first step is as a worker leaves it that dies
# between hand-over and record.
sub half_sent {
    my ($w, $address) = @_;
    my $id = $w->start_for({ first_name => "U", emails => [$address] },
        auto_approve => false);
    $worker->once;
    crmapictl_ok($database, qw(enrollment approve), $id);
    sql($database, "UPDATE crmapi.enrollment_step SET status = 'sending'"
        . " WHERE enrollment_id = '$id'");
    return $id;
}

subtest "11.11 nobody knows whether it was sent" => sub {
    my $w = with_template([@MAIL]);
    $worker->expect_log(qr/CRM3122: .*\(for good\).*: delivery_unknown/ => 3);
    my $id = half_sent($w, "dies\@x.example");
    $worker->once;
    my $e = $w->enrollment($id);
    is(states_of($e), "email failed", "by SMTP: it is not sent again");
    is($e->{generation_error}, "delivery_unknown", "delivery_unknown");
    is(scalar(grep { /^X-Envelope-To: dies/m } received($smtp)), 0,
        "indeed not");
    $id = half_sent($w, "dies2\@x.example");
    $worker->configure({ smtp_deduplicates => "on" });
    $worker->once;
    $e = $w->enrollment($id);
    is(states_of($e), "email sent", "smtp_deduplicates: it is sent again");
    my @again = grep { /^X-Envelope-To: dies2/m } received($smtp);
    is(scalar @again, 1, "indeed");
    my $name = $w->message_id($e->{steps}[0]{id});
    like($again[0], qr/^Message-ID: \Q$name\E$/mi,
        "with the same Message-ID");
    $id = half_sent($w, "dies3\@x.example");
    $w->client->post("/api/v1/sequences/enrollments/$id/stop");
    $worker->once;
    is(scalar(grep { /^X-Envelope-To: dies3/m } received($smtp)), 0,
        "11.10 but not after a stop");
    $e = $w->enrollment($id);
    is(states_of($e), "email failed", "the step says so");
    is($e->{status}, "stopped_user", "the enrollment stays stopped");
    # one that was the contact's, which has another address now
    $id = half_sent($w, "dies4\@x.example");
    status_is($w->client->patch("/api/v1/contacts/"
        . $w->enrollment($id)->{contact_id}, { emails => ["new\@x.example"] }),
        200);
    crmapictl_ok($database, qw(suppress add --workspace), $w->id, "--email",
        "dies4\@x.example");
    is($w->enrollment($id)->{status}, "approved", "a suppression of what was"
        . " its address stops nothing by itself");
    $worker->once;
    is(scalar(grep { /^X-Envelope-To: dies4/m } received($smtp)), 0,
        "11.10 but nothing goes there again");
    $e = $w->enrollment($id);
    is(states_of($e), "email failed", "the step says so");
    is($e->{status}, "stopped_unsubscribed", "and the enrollment why");
};

subtest "11.11 a server that refuses it again says nothing of the first time" => sub {
    my $w = with_template([@MAIL]);
    my $id = half_sent($w, "7.550\@x.example");
    $worker->configure({ smtp_deduplicates => "on", send_attempts => 1 });
    $worker->expect_log(qr/CRM3123: .* 550/,
        qr/CRM3122: .*\(for good\).*: delivery_unknown/);
    $worker->once;
    is($w->enrollment($id)->{generation_error}, "delivery_unknown",
        "an earlier attempt may have sent it");
    is(join(" ", map { /"state":"(\w+)".*"enrollment_id":"$id"/ }
        map { split /\n/, read_file($_) } glob $worker->dir . "/sent.*"),
        "unknown", "the journal does not say that it was not sent");
    $worker->configure({ send_attempts => undef });
};

subtest "11.11 it stays unknown when the database does not answer" => sub {
    my $w = with_template([@MAIL]);
    my $id = half_sent($w, "dies5\@x.example");
    $worker->configure({ smtp_deduplicates => "off", answer_time => "1s",
        relay_concurrency => 1 });
    $worker->expect_log(qr/CRM3123: .*: the database did not answer/);
    my $let_go = postgres()->hold($database, "SELECT FROM crmapi.enrollment"
        . " WHERE workspace_id = '" . $w->id . "' AND id = '$id' FOR UPDATE");
    $worker->start;
    ok($worker->wait_log(qr/CRM3123: .*: the database did not answer/, 20),
        "step_take() has no answer");
    $let_go->();
    ok(wait_for(sub { states_of($w->enrollment($id)) !~ /sending|scheduled/ }, 20),
        "the step ends");
    $worker->stop;
    is(states_of($w->enrollment($id)), "email failed", "it is not sent again");
    is($w->enrollment($id)->{generation_error}, "delivery_unknown",
        "delivery_unknown");
    is(scalar(grep { /^X-Envelope-To: dies5/m } received($smtp)), 0,
        "indeed not");
};

subtest "an admin's mail that is refused, now or for good" => sub {
    my $w = with_template([@MAIL]);
    my @of = ("--workspace", $w->id, "--email");
    my $job = sub { scalar sql($database, "SELECT state || ' ' || attempts FROM"
        . " crmapi.job WHERE workspace_id = '" . $w->id . "' AND kind ="
        . " 'sequence.review' ORDER BY id DESC LIMIT 1") };
    # The states of the last mail to the admin ID, as the journal has them.
    my $journal = sub { my ($id) = @_; my %last;
        /"state":"(\w+)".*"enrollment_id":"([^"]+)","part":"$id"/
            and push @{$last{$2}}, $1 for map { split /\n/, read_file($_) }
            glob $worker->dir . "/sent.*";
        return join " ", map { @$_ } values %last };
    $worker->configure({ send_attempts => 2, answer_time => undef,
        relay_concurrency => undef });
    $worker->expect_log(qr/CRM3102: .*sequence\.review.* 550/,
        qr/CRM3102: .*sequence\.review.* 450/);
    my $admin = crmapictl_ok($database, qw(admin add), @of, "9.550\@x.example");
    $w->start_for({ first_name => "U", emails => ["r1\@x.example"] },
        auto_approve => false);
    $worker->once;
    is($job->(), "dead 1", "550: never");
    is($journal->($admin), "unknown free", "the journal says that it was not sent");
    crmapictl_ok($database, qw(admin remove), @of, "9.550\@x.example");
    crmapictl_ok($database, qw(admin add), @of, "9.450\@x.example");
    $w->start_for({ first_name => "U", emails => ["r2\@x.example"] },
        auto_approve => false);
    $worker->once;
    is($job->(), "ready 1", "450: another time");
    $worker->hurry;
    is($job->(), "dead 2", "send_attempts bounds it");
    crmapictl_ok($database, qw(admin remove), @of, "9.450\@x.example");

    # the relay's only slot is free again after an error
    crmapictl_ok($database, qw(admin add), @of, "slot\@x.example");
    $w->start_for({ first_name => "U", emails => ["r3\@x.example"] },
        auto_approve => false);
    $worker->configure({ relay_concurrency => 1 });
    $worker->expect_log(qr/CRM3101: .*sequence\.review.*past_send/);
    sql($database, "ALTER TABLE crmapi.past_send RENAME TO away");
    $worker->start;
    ok($worker->wait_log(qr/CRM3101: .*past_send/, 20), "the database refuses");
    sql($database, "ALTER TABLE crmapi.away RENAME TO past_send");
    ok(wait_for(sub { $job->() =~ /done/ }, 20), "then it is sent");
    $worker->stop;
    is(scalar(grep { /^X-Envelope-To: slot/m } received($smtp)), 1, "once");
};

subtest "11.11 an admin is asked again only if the journal has no mail" => sub {
    my $w = with_template([@MAIL]);
    my $admin = crmapictl_ok($database, qw(admin add --workspace), $w->id,
        "--email", "journal\@x.example");
    my $id = $w->start_for({ first_name => "U", emails => ["r4\@x.example"] },
        auto_approve => false);
    $worker->once;
    my $asked = sub { scalar grep { /^X-Envelope-To: journal/m } received($smtp) };
    is($asked->(), 1, "the admin is asked");
    # the same job after a restore, and what the journal says of it
    for my $case (["sent", $admin, 1], ["unknown", $admin, 1], ["free", $admin, 2],
            ["sent", "1", 3]) {
        my ($state, $part, $mails) = @$case;
        sql($database, "DELETE FROM crmapi.past_send WHERE enrollment_id = '$id';
            INSERT INTO crmapi.past_send (workspace_id, enrollment_id, part, state,
                sent_at) VALUES ('" . $w->id . "', '$id', '$part', '$state', now());
            INSERT INTO crmapi.job (workspace_id, kind, payload) SELECT
                workspace_id, kind, payload FROM crmapi.job WHERE kind =
                'sequence.review' AND workspace_id = '" . $w->id . "' LIMIT 1");
        $worker->once;
        is($asked->(), $mails, $part eq "1" ? "a step: that is another message"
            : $state);
    }
};

$provider->stop;
done_testing;
