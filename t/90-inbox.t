# SPDX-License-Identifier: Apache-2.0
# 90-inbox.t: the inbox of docs/inbox.md in a browser, as it stands there
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Browser;
use CrmTest::Data;
use CrmTest::Process;

plan(skip_all => no_browser()) if no_browser();

my ($html) = documented("inbox.md", "html");
my ($script) = documented("inbox.md", "js");
cmp_ok(scalar(grep { /\S/ } split /\n/, $script), "<=", 60,
    "60 lines, as it says");

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1);
my $w = workspace($httpd);
$w->log_on;
my $site = httpd(crmapi => 0, modules => [qw(proxy proxy_http headers)],
    conf => sprintf <<'END', $w->key, $httpd->port);
<Location "/api/v1">
    RequestHeader set Authorization "Bearer %s"
    ProxyPass "http://127.0.0.1:%d/api/v1"
</Location>
END
write_file($site->dir . "/mime.types", "text/html html\ntext/javascript js\n");
write_file($site->dir . "/htdocs/inbox.html", $html);
write_file($site->dir . "/htdocs/inbox.js", $script);
write_file($site->dir . "/htdocs/favicon.ico", "");
$site->restart;

my $token = $w->token("backend");
my $bot = uuid();
$w->import_objects([{ object => "agent", id => $bot, name => "Ada",
    is_agent => true, enabled => true, public => true }]);
my $visitor = $httpd->client->post("/crmapi/intake/v1/chat/$bot/start", {})
    ->data->{visitor};
my $count = 0;
# The visitor writes CONTENT.
sub visitor_says {
    my ($content) = @_;
    status_is($httpd->client->post("/crmapi/intake/v1/chat/$bot/messages",
        { id => "m-" . ++$count, content => $content, name => "Änne <b>" },
        key => $visitor), 201, "a visitor writes");
}
sub visitor_sees {
    return join "|", map { "$_->{role}: $_->{content}" } @{$httpd->client->get(
        "/crmapi/intake/v1/chat/$bot/messages", key => $visitor)->data
        ->{messages}};
}

# The texts of the elements SELECTOR become EXPECTED.
sub shows {
    my ($selector, $expected, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = "";
    wait_for(sub { ($got = browser("eval", "[...document.querySelectorAll("
        . "'$selector')].map((it) => it.textContent).join('|')"))
        =~ /^$expected$/ }, 15);
    like($got, qr/^$expected$/, $name);
}

visitor_says("Is it <i>open</i>?");
browser("open", "http://127.0.0.1:" . $site->port . "/inbox.html");

subtest "the list, and what happens meanwhile" => sub {
    shows("#list button", 'Änne <b>: Is it <i>open</i>\?.*', "a conversation");
    is(browser("eval", "document.querySelector('main').hidden"), true,
        "none is shown");
    status_is($httpd->client(key => $token)->post("/crmapi/intake/v1/events",
        { event_id => "e-1", channel => "email", bot_id => $bot,
        from => { email => "bob\@x.example", name => "Bob" },
        message => { content => "A mail" } }), 200, "a mail comes");
    shows("#list button", 'Bob: A mail\|Änne <b>: .*',
        "it is listed first, without a reload");
};

subtest "reading" => sub {
    browser("click", "#list button:nth-of-type(2)");
    shows("#transcript p", 'user: Is it <i>open</i>\? \(-\)', "the messages");
    is(browser("eval", "document.querySelectorAll('i, b').length"), 0,
        "never as HTML");
    visitor_says("Hello?");
    shows("#transcript p", 'user: Is it.*\|user: Hello\? \(-\)',
        "and what comes while it is shown");
    shows("#list button", 'Änne <b>: Hello\?\|Bob: A mail.*',
        "the list has it first");
};

subtest "answering" => sub {
    browser("type", "textarea", "Yes, until six.");
    browser("click", "form button");
    shows("#transcript p", '.*\|human: Yes, until six\. \(sent\)',
        "the answer is shown");
    is(browser("eval", "document.querySelector('textarea').value"), "",
        "the field is empty");
    is(visitor_sees(), "user: Is it <i>open</i>?|user: Hello?|human: Yes, until"
        . " six.", "the visitor has it, once");
};

subtest "an answer that is under way is asked for again" => sub {
    browser("eval", "void (window.real = fetch, window.busy = 1, window.fetch ="
        . " async (url, what) => what.method === 'POST' && busy-- > 0"
        . " ? new Response('{}', { status: 409, headers: { 'Retry-After': '1' } })"
        . " : real(url, what))");
    browser("type", "textarea", "At once.");
    browser("click", "form button");
    shows("#transcript p", '.*\|human: At once\. \(sent\)', "it comes");
    is(visitor_sees() =~ /.*human: (.*)/ && $1, "At once.", "once");
};

subtest "of a long conversation the end is shown" => sub {
    my $talk = $w->client->get("/api/v1/conversations", query =>
        { bot_id => $bot, type => "email" })->data->[0]{id};
    sql($database, "INSERT INTO crmapi.message (id, workspace_id, conversation_id,"
        . " role, content, created_at) SELECT gen_random_uuid(), workspace_id,"
        . " conversation_id, role, 'Part ' || n, created_at - interval '1 day' +"
        . " n * interval '1 s' FROM crmapi.message, generate_series(1, 120) n"
        . " WHERE conversation_id = '$talk'");
    visitor_says("Still there?");       # the page has read these events before it
    shows("#list button", 'Änne <b>: Still there\?\|.*', "the list goes on");
    browser("click", "#list button:nth-of-type(2)");
    shows("#transcript p", 'user: Part 22 .*user: A mail \(-\)', "it is");
    browser("click", "#list button:nth-of-type(1)");
    sql($database, "DELETE FROM crmapi.message WHERE content LIKE 'Part %'");
};

subtest "taking over" => sub {
    my $taken = sub { $w->client->get("/api/v1/conversations", query =>
        { bot_id => $bot, type => "chat" })->data->[0]{human_takeover} };
    is($taken->(), false, "the agent answers");
    browser("click", "#taken");
    ok(wait_for(sub { $taken->() }, 10), "the teammate does");
    ok(wait_for(sub { browser("eval", "document.querySelector('#taken')"
        . ".checked") }, 10), "which is shown");
    browser("click", "#list button:nth-of-type(2)");
    shows("#transcript p", 'user: A mail \(-\)', "another one");
    is(browser("eval", "document.querySelector('#taken').checked"), false,
        "is not taken over");
    keeps_nobody_out("the inbox");
};

is_deeply(browser("complaints"), [], "the console has no complaint");
browser("open", "about:blank");
# ends the request that the proxy has open, and does not know to be unwanted
visitor_says("Bye");
browser_end();
done_testing;
