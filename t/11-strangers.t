# SPDX-License-Identifier: Apache-2.0
# 11-strangers.t: whatever a stranger asks, only so many requests of an address
# are at the database, and an address waits in few places (contract 2.3, 2.5)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Twilio qw(encoded signature);
use CrmTest::Pages;
use File::Temp qw(tempdir);
use IO::Select;

my $LIMIT = 3;
my $ASKED = 12 * $LIMIT;        # more than any budget
my $ACCOUNT = "AC" . "0" x 32;
my $IN = "/crmapi/intake/v1";
my $database = database();
my $folder = tempdir("crm-strangers-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my $file = "$folder/twilio";
write_file($file, "twilio-token\n");
chmod 0600, $file;
my $httpd = httpd(database => $database, modules => ["remoteip"],
    children => 1, shows => ["server-status", "metrics"], conf => <<"END");
CrmApiReadLimit 0
CrmApiIntake On
CrmApiReview On
CrmApiUnsubscribe On
CrmApiTwilio $ACCOUNT $file
CrmApiAddressLimit $LIMIT
CrmApiUnknownKeyLimit $LIMIT
CrmApiChatPolls 8
RemoteIPHeader X-Client
END
my $w = workspace($httpd, twin => 0);
my $client = $httpd->client;
my ($form, $bot) = (uuid(), uuid());
$w->import_objects([
    { object => "agent", id => $bot, name => "Ada", is_agent => true,
        enabled => true, public => true },
    { object => "form", id => $form, bot_id => $bot, name => "Contact",
        standard_fields => {}, custom_fields => {}, survey_questions => {} }]);

my $addresses = 0;
sub address { return "192.0.2." . ++$addresses }

# How many of $ASKED requests of METHOD PATH with ARG, from one address, were at
# the database; and the last answer.
sub asked {
    my ($method, $path, %arg) = @_;
    my $before = $client->counter("DatabaseRequests");
    my $last;
    $arg{headers} = { "X-Client" => address(), %{$arg{headers} || {}} };
    $last = $client->request($method, $path, %arg) for 1 .. $ASKED;
    return ($client->counter("DatabaseRequests") - $before, $last);
}

# The visitor's token of a new chat.
sub visitor {
    my $r = $client->post("$IN/chat/$bot/start", {}, headers => {
        "X-Client" => address() });
    status_is($r, 200, "a chat begins");
    return $r->data->{visitor};
}

# A link of KIND to what nobody has signed.
sub forged { token($w, $_[0], uuid(), key => "x" x 32, expires => time + 60) }

subtest "2.5 no path, by no method, is at the database more often" => sub {
    my @paths = ("/api/v1/openapi.json", "/api/v1/contacts", "/api/v1/none",
        "$IN/events", "$IN/forms/$form", "$IN/forms/" . uuid(),
        "$IN/chat/widget.js", "$IN/chat/$bot/start", "$IN/chat/$bot/messages",
        "$IN/chat/" . uuid() . "/messages", "$IN/none",
        (map { "$IN/twilio/$_" } qw(sms status voice)),
        (map { "/crmapi/$_/" . forged($_) } qw(review unsubscribe)),
        "/crmapi/review/x", "/metrics");
    for my $path (@paths) {
        for my $method (qw(OPTIONS HEAD GET POST PUT)) {
            my ($times) = asked($method, $path, headers => {
                Origin => "https://www.example.com",
                Authorization => "Bearer svc_live_" . "u" x 30,
                "X-Twilio-Signature" => "x",
                "Access-Control-Request-Method" => "POST" },
                $method =~ /^P/ ? (json => {}) : ());
            my $polls = "$method $path" =~ m{^(?:OPTIONS .*/chat/.*/start
                |(?:OPTIONS|HEAD|GET)\ .*/chat/.*/messages)$}x;
            cmp_ok($times, "<=", $polls ? 5 * $LIMIT : $LIMIT,
                "$method $path");
        }
    }
};

subtest "2.5 a webhook has the budget of its address until its signature is proven" => sub {
    my $target = "$IN/twilio/sms";
    my @pairs = (AccountSid => $ACCOUNT, MessageSid => "SM1", From => "+4930901820",
        To => "+4930901821", Body => "x");
    my $bring = sub { asked("POST", $target, body => encoded(@pairs), headers => {
        "Content-Type" => "application/x-www-form-urlencoded",
        "X-Twilio-Signature" => signature($_[0], "http://127.0.0.1$target", @pairs) }) };
    my ($times, $last) = $bring->("twilio-token");
    error_is($last, 404, "not_found", "signed: it is looked for, however often");
    is($times, $ASKED, "at the database");
    ($times, $last) = $bring->("another-token");
    error_is($last, 429, "rate_limited", "else the address has a limit");
    is($times, 0, "which asks no database");
};

subtest "preflight requests have a budget, and a page may try again" => sub {
    my ($times, $last) = asked("OPTIONS", "$IN/chat/$bot/messages",
        headers => { "X-Client" => address(),
            Origin => "https://www.example.com" });
    is($times, 5 * $LIMIT, "five times that of an address, as for polls");
    status_is($last, 429, "then they are refused");
    cmp_ok($last->header("Retry-After"), ">", 0, "for a while");
    status_is($client->options("$IN/chat/$bot/messages", headers => {
        "X-Client" => address(), Host => "x", Origin => "http://x" }), 204,
        "from another address they are not");
};

subtest "2.5 a valid link has a budget, too" => sub {
    my $id = enrollment($w, [map { { channel => "email", email_subject => "s$_",
        email_body => "b", to_identifier => "zoe\@x.example" } } 1, 2]);
    my ($step, $other) = map { $_->[0] } steps_of($w, $id, "id");
    my %links = (unsubscribe => link_to($w, "unsubscribe", $step),
        review => "/crmapi/review/" . token($w, "review", $id,
            expires => time + 60, other => admin($w)));
    for my $kind (sort keys %links) {
        my ($times, $last) = asked("GET", $links{$kind});
        is($times, 3 * $LIMIT, "$kind: three times that of an address");
        status_is($last, 429, "$kind: then it is not opened");
        like($last->body, qr/This did not work/, "$kind: says a page");
        status_is($client->get($links{$kind}, headers => {
            "X-Client" => address() }), 429,
            "$kind: wherever it is asked from");
    }
    status_is($client->get(link_to($w, "unsubscribe", $other), headers => {
        "X-Client" => "192.0.2.$addresses" }), 200,
        "another link is opened, and the address was not charged");
};

subtest "an address waits in a quarter of the places" => sub {
    plan(skip_all => "prefork has one request a process")
        if ($ENV{CRM_MPM} || "") eq "prefork";
    my $from = address();
    my $wait = sub {
        my ($address, $visitor) = @_;
        return $httpd->client->ask("GET", "$IN/chat/$bot/messages?wait=25",
            key => $visitor, headers => { "X-Client" => $address });
    };
    # How many of POLLS have been answered; all others wait.
    my $answered = sub { scalar grep {
        IO::Select->new($_->{socket})->can_read(0) } @_ };
    my @polls = map { $wait->($from, visitor()) } 1 .. 4;
    ok(wait_for(sub { $answered->(@polls) == 2 }), "two of four wait of 8");
    my ($told) = grep { $answered->($_) } @polls;
    cmp_ok($told->read_response("GET")->data->{retry_after}, ">", 0,
        "the others are told when to come again");
    my $other = $wait->(address(), my $visitor = visitor());
    status_is($client->post("$IN/chat/$bot/messages",
        { id => "m", content => "Hi" }, key => $visitor,
        headers => { "X-Client" => address() }), 201, "a message");
    my $r = $other->read_response("GET");
    is_deeply([map { $_->{content} } @{$r->data->{messages}}], ["Hi"],
        "another address has a place, and what it waits for");
    $_->close for @polls;
};

done_testing;
