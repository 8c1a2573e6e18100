# SPDX-License-Identifier: Apache-2.0
# 51-review-browser.t: the pages in a browser, by mouse and keyboard
# plain build only
# second gear
use strict;
use utf8;
use warnings;
use FindBin;
use JSON::PP ();
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Browser;
use CrmTest::Pages;

plan(skip_all => no_browser()) if no_browser();

my $database = database();
my $httpd = httpd(database => $database, children => 1,
    conf => "CrmApiReview On\nCrmApiUnsubscribe On\n");
my $base = "http://127.0.0.1:" . $httpd->port;

sub text { browser("eval", "document.body.innerText") }

my $w = workspace($httpd, name => "Example Ltd");
my $admin = admin($w, name => "Ann Miller");
my @steps = ({ channel => "email", to_identifier => "zoe\@x.example",
        email_subject => "Your visit", email_body => "Dear Zoë,\n\n"
        . "thank you for your visit to our stand in Berlin. You asked how "
        . "others keep their pipeline clean: here is the short answer.\n\n"
        . "Would Thursday at ten suit you for a call?\n\nAda" },
    { channel => "sms", to_identifier => "+15550100", delay_seconds => 86400,
        sms_body => "Hi Zoë, did my mail reach you? Ada" },
    { channel => "voice", to_identifier => "+15550100",
        delay_seconds => 172800, voice_objective => "Book a demo",
        voice_script => "Good morning, this is Ada." });

# A new enrollment: its id, the page's address, its steps' ids.
sub waiting {
    my $id = enrollment($w, \@steps, template => "After the fair",
        contact => { last_name => "Quint", company => "Quint & Sons" });
    return ($id, $base . link_to($w, "review", $id, other => $admin),
        map { $_->[0] } steps_of($w, $id, "id"));
}

subtest "a text is changed, then all of it approved" => sub {
    my ($id, $url, @step) = waiting();
    browser("size", 1000, 900);
    browser("open", $url);
    picture("review");
    keeps_nobody_out("review");
    is(browser("eval", "getComputedStyle(document.querySelector('main'))"
        . ".maxWidth"), "736px", "the policy lets the style through");
    is(browser("eval", "document.querySelectorAll('h1').length"), 1,
        "one heading");
    browser("type", "[name='subject.$step[0]']", "Your visit, and a question");
    browser("enter", "[name='subject.$step[0]']");
    like(text(), qr/Saved\. Nothing is sent/, "the Enter key only saves");
    is($w->enrollment($id)->{status}, "pending_approval", "it is not approved");
    is((steps_of($w, $id, "email_subject"))[0][0],
        "Your visit, and a question", "it is saved");
    is((steps_of($w, $id, "email_body"))[0][0], $steps[0]{email_body},
        "another text comes back as it went");
    browser("type", "[name='body.$step[1]']", "Hi Zoë,\n2nd line \x{1F600}");
    browser("press", "button[value=approve]");
    like(text(), qr/Thank you\. This sequence is approved/, "approved");
    picture("approved");
    keeps_nobody_out("approved");
    is($w->enrollment($id)->{status}, "approved", "it is");
    is((steps_of($w, $id, "sms_body"))[1][0], "Hi Zoë,\n2nd line \x{1F600}",
        "what was typed last is what will be sent");
    is(browser("eval", "document.querySelectorAll('form, button').length"), 0,
        "nothing is left to press");
};

subtest "a text that is wrong" => sub {
    my ($id, $url, @step) = waiting();
    browser("open", $url);
    browser("type", "[name='body.$step[2]']", " ");
    browser("type", "[name='body.$step[1]']", "kept");
    browser("press", "button[value=approve]");
    like(text(), qr/Step 3: Script must not be empty/, "it is named");
    picture("wrong");
    keeps_nobody_out("wrong");
    is(browser("eval", "document.getElementById('body.$step[1]').value"),
        "kept", "what was typed is there");
    browser("click", "[role=alert] a");
    is(browser("eval", "location.hash"), "#body.$step[2]",
        "a link leads to it");
    is($w->enrollment($id)->{status}, "pending_approval", "it is not approved");
};

subtest "reject takes a second look" => sub {
    my ($id, $url) = waiting();
    browser("open", $url);
    is(browser("eval", "document.querySelector('button[value=reject]')"
        . ".checkVisibility()"), JSON::PP::false, "the button is not there");
    browser("click", "summary");
    is(browser("eval", "document.querySelector('button[value=reject]')"
        . ".checkVisibility()"), JSON::PP::true, "until it is asked for");
    browser("press", "button[value=reject]");
    like(text(), qr/Thank you\. This sequence was rejected/, "rejected");
    is($w->enrollment($id)->{status}, "stopped_user", "it is");
};

subtest "for those who do not see it, and on a telephone" => sub {
    my ($id, $url) = waiting();
    browser("open", $url);
    my @tree = @{browser("tree")};
    my @unnamed = grep { $_->[0] =~ /^(?:textbox|button|link|region)$/
        && $_->[1] eq "" } @tree;
    is_deeply(\@unnamed, [], "every field and button has a name");
    is_deeply([map { $_->[1] } grep { $_->[0] eq "textbox" } @tree],
        ["Subject", "Text", "Text", "Objective of the call", "Script"],
        "the fields");
    is_deeply([map { $_->[1] } grep { $_->[0] eq "heading" } @tree],
        ["Review before sending", "Step 1: E-mail", "Step 2: Text message",
            "Step 3: Phone call"], "the headings");
    for my $width (320, 1000) {
        browser("size", $width, 700);
        cmp_ok(browser("eval", "document.documentElement.scrollWidth"), "<=",
            $width, "$width pixels are wide enough");
        picture("review-$width");
    }
};

subtest "unsubscribe" => sub {
    my ($id, undef, $step) = waiting();
    browser("open", $base . link_to($w, "unsubscribe", $step));
    picture("unsubscribe");
    keeps_nobody_out("unsubscribe");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.suppression"
        . " WHERE workspace_id = '" . $w->id . "'"), 0, "nothing is done yet");
    browser("press", "button");
    like(text(), qr/You are unsubscribed\s+z…\@x\.example will get no more/,
        "one click");
    picture("unsubscribed");
    keeps_nobody_out("unsubscribed");
    is(scalar sql($database, "SELECT email FROM crmapi.suppression"
        . " WHERE workspace_id = '" . $w->id . "'"), "zoe\@x.example", "done");
    is($w->enrollment($id)->{status}, "stopped_unsubscribed",
        "what was planned has stopped");
};

browser_end();
$httpd->stop;
done_testing;
