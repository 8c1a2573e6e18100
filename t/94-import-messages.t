# SPDX-License-Identifier: Apache-2.0
# 94-import-messages.t: a conversation that is imported without last_message_at
# gets what its inbox shows from its messages in the file (docs/import.md)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use JSON::PP qw(decode_json);

my $httpd = httpd(database => database());
my $w = workspace($httpd, twin => 0);
my ($chat, $phone) = (1, 2);
my $day = "2026-03-01T10";

# The conversations of the workspace OF, by id, as an export has them.
sub exported {
    my ($of) = @_;
    my @lines = map { decode_json($_) } split /\n/,
        $of->ctl("export", "--workspace", $of->id);
    return {map { $_->{id} => $_ } grep { $_->{object} eq "conversation" } @lines};
}

# Import a conversation with MEMBERS and MESSAGES, [role, content, minute, members];
# return what became of it.
sub imported {
    my ($members, @messages) = @_;
    my %talk = (object => "conversation", id => CrmTest::uuid(), bot_id => $w->agent,
        type => $chat, created_at => "$day:00:00.000Z", %$members);
    my @lines = map { {
        object => "message", conversation_id => $talk{id}, role => $_->[0],
        content => $_->[1], created_at => sprintf("$day:%02d:00.000Z", $_->[2]),
        %{$_->[3] // {}} } } @messages;
    $w->import_objects([@lines, \%talk]);
    my $row = exported($w)->{$talk{id}};
    return {map { $_ => $row->{$_} } qw(last_message last_message_at last_active_at
        unanswered)};
}

# What is expected: the text SAID at MINUTE; whether the participant WAITS.
sub shows {
    my ($said, $minute, $waits) = @_;
    my $at = defined $minute ? sprintf("$day:%02d:00.000Z", $minute) : undef;
    return { last_message => $said, last_message_at => $at, last_active_at => $at,
        unanswered => $waits ? JSON::PP::true : JSON::PP::false };
}

my @question = ([user => "Are you open?", 1]);
my @answered = (@question, [assistant => "Yes.", 2]);
for (
    ["the participant has spoken last", {}, \@question,
        shows("Are you open?", 1, 1)],
    ["the agent has", {}, \@answered, shows("Yes.", 2, 0)],
    ["a teammate has", {}, [@question, [human => "Yes!", 3]], shows("Yes!", 3, 0)],
    ["again the participant", {}, [@answered, [user => "Thanks", 4]],
        shows("Thanks", 4, 1)],
    ["a program's call is no answer", {}, [@question,
        [assistant => "", 2, { tool_used => "find" }], [tool => "", 3]],
        shows("Are you open?", 3, 1)],
    ["nobody but a program has spoken", {}, [[system => "Moved", 2]],
        shows("Moved", 2, 0)],
    ["nobody can answer a call", { type => $phone }, \@question,
        shows("Are you open?", 1, 0)],
    ["two of one time: the later line", {},
        [[assistant => "first line", 1], [user => "second line", 1]],
        shows("second line", 1, 1)],
    ["a long text is shown in part", {}, [[user => "\x{e9}" x 300, 1]],
        shows("\x{e9}" x 255, 1, 1)],
    ["no message", {}, [], shows(undef, undef, 0)],
    ["its text is given", { last_message => "Open?" }, \@question,
        shows("Open?", 1, 1)],
    ["when it was active is given", { last_active_at => "$day:09:00.000Z" },
        \@question, { %{shows("Are you open?", 1, 1)},
            last_active_at => "$day:09:00.000Z" }],
    ["that it waits is given", { unanswered => JSON::PP::true }, \@answered,
        shows("Yes.", 2, 1)],
    ["a time is given: all is as the line says",
        { last_message_at => "$day:09:00.000Z" }, \@question,
        { %{shows(undef, 9, 0)}, last_active_at => undef }],
) {
    my ($name, $members, $messages, $expected) = @$_;
    is_deeply(imported($members, @$messages), $expected, $name);
}

# A message without a time is one of now.
my $now = imported({}, [user => "Now?", 1, { created_at => undef }]);
is($now->{unanswered}, JSON::PP::true, "a message without a time: it waits");
cmp_ok($now->{last_message_at} // "", "gt", "$day:59", "since now");
is($now->{last_active_at}, $now->{last_message_at}, "when it was active, too");

# What waits is found, and an export gives the same rows again.
is(@{$w->client->get("/api/v1/conversations?unanswered=true")->ids}, 9,
    "lists find what waits");
my $there = workspace($w->{database}, twin => 0);
$there->ctl({ stdin => join "\n", grep { !/"object": ?"(agent|pipeline)/ }
    split /\n/, $w->ctl("export", "--workspace", $w->id) =~ s/${\$w->agent}/
    $there->agent/gre }, "import", "--workspace", $there->id);
my $again = exported($there);
$_->{bot_id} = $w->agent for values %$again;
is_deeply($again, exported($w), "export, import, export: the same");

done_testing;
