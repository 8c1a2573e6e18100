# SPDX-License-Identifier: Apache-2.0
# 74-chat.t: the chat of web pages: its protocol (docs/chat.md)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use MIME::Base64 qw(decode_base64url encode_base64url);
use Time::HiRes qw(time);
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;

my $CHAT = "/crmapi/intake/v1/chat";
my $SITE = "https://www.example.com";
my $CONF = <<"END";
CrmApiIntake On
CrmApiIntakeLimit 0
CrmApiAddressLimit 0
CrmApiChatPolls 4
CrmApiMaxBody 1048576
END
my $database = database();
# One connection, so that whoever kept it while waiting would be noticed.
my $httpd = httpd(database => $database, children => 1, unlimited => 1,
    conf => $CONF, dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
my $mpm = $ENV{CRM_MPM} || "event";
my $w = workspace($httpd);
my $token = $w->token("backend");
my $c = $httpd->client;

# Another agent, which has a chat; its id.
sub agent {
    my (%members) = @_;
    my $id = uuid();
    $w->import_objects([{ object => "agent", id => $id, name => "Ada",
        is_agent => true, enabled => true, public => true, %members }]);
    return $id;
}

my $bot = agent(chat_greeting => "Hello!\nHow can I help?",
    agent_color => "#0a7", chat_avatar_image_url => "https://x.example/a.png");

# Begin a chat; the visitor's token. ARG as of request().
sub start {
    my ($agent, %arg) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $r = $c->post("$CHAT/$agent/start", {}, %arg);
    status_is($r, 200, "start") or return {};
    return $r->data;
}

my $count = 0;
sub say_raw {
    my ($visitor, $message, %arg) = @_;
    my $agent = delete $arg{agent} || $bot;
    return $c->post("$CHAT/$agent/messages", { id => "m-" . ++$count,
        content => "Message $count", %$message }, key => $visitor, %arg);
}

sub said {
    my ($visitor, $message, %arg) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $r = say_raw($visitor, $message, %arg);
    status_is($r, 201, "a message") or return {};
    return $r->data;
}

sub poll {
    my ($visitor, %query) = @_;
    my $agent = delete $query{agent} || $bot;
    return $c->get("$CHAT/$agent/messages", key => $visitor,
        query => \%query);
}

sub texts { join "|", map { "$_->{role}: $_->{content}" } @{$_[0]{messages}} }

# What a backend brings to the conversation of MESSAGE.
sub answer {
    my ($message, %event) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $conversation = sql($database, "SELECT conversation_id FROM"
        . " crmapi.message WHERE id = '$message->{id}'");
    my $r = $httpd->client(key => $token)->post(
        "/crmapi/intake/v1/events", { event_id => "a-$$-" . ++$count,
            conversation => { id => $conversation }, %event });
    status_is($r, 200, "an event");
    is_deeply($r->data->{errors}, [], "is taken");
}

# A poll that is asked, and not yet answered: a client.
sub asked {
    my ($visitor, $cursor, $host) = @_;
    return ($host || $httpd)->client->ask("GET",
        "$CHAT/$bot/messages?wait=25&after=$cursor", key => $visitor);
}

sub is_answered {
    my ($client) = @_;
    return IO::Select->new($client->{socket})->can_read(0) ? 1 : 0;
}

# Polls of VISITORS, when all of them wait, which are as many as may; and what
# one more is told. One that comes when a probe has the place is asked again.
sub all_wait {
    my (@visitors) = @_;
    my @polls = map { asked($_, 0) } @visitors;
    my $probe = start($bot)->{visitor};
    my $told;

    wait_for(sub {
        $told = poll($probe, wait => 1)->data->{retry_after};
        for my $i (grep { is_answered($polls[$_]) } 0 .. $#polls) {
            $polls[$i]->close;
            $polls[$i] = asked($visitors[$i], 0);
            $told = 0;
        }
        return $told;
    }, 20);
    return ($told, @polls);
}

subtest "a chat begins" => sub {
    my $before = count_rows($w, "conversation");
    my $data = start($bot);
    like($data->{visitor}, qr/^[A-Za-z0-9_-]{120}$/, "a token");
    is_deeply($data->{agent}, { name => "Ada",
        greeting => "Hello!\nHow can I help?", color => "#0a7",
        avatar => "https://x.example/a.png" }, "what the agent looks like");
    is_deeply($data->{messages}, [], "nothing is said yet");
    is(count_rows($w, "conversation"), $before,
        "who only looks fills no inbox");
    is(start($bot, json => { visitor => $data->{visitor} })->{visitor},
        $data->{visitor}, "a visitor keeps the token");
    for my $bad ("", "x", "A" x 120, scalar reverse $data->{visitor}) {
        my $new = start($bot, json => { visitor => $bad });
        isnt($new->{visitor}, $data->{visitor}, "who has none gets a new one");
    }
    my $message = said($data->{visitor}, { content => "  Hi \x{1F600}\n<b> ",
        id => "first" });
    is_deeply({ %$message, id => 1, created_at => 1 }, { id => 1,
        role => "user", content => "  Hi \x{1F600}\n<b> ", created_at => 1,
        client_id => "first" }, "the message, as it came");
    like($message->{created_at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
        "its time");
    is(count_rows($w, "conversation"), $before + 1, "now there is one");
    my $talk = $w->client->get("/api/v1/conversations",
        query => { bot_id => $bot })->data->[0];
    is($talk->{type}, 1, "of type chat");
    is($talk->{contact_id}, undef, "of nobody who is known");
    answer($message, message => { role => "assistant", content => "Good day" });
    my $again = start($bot, json => { visitor => $data->{visitor} });
    is(texts($again), "user:   Hi \x{1F600}\n<b> |assistant: Good day",
        "who comes back sees the open conversation");
    json_is(poll($data->{visitor}, after => $again->{cursor}),
        { messages => [], cursor => $again->{cursor}, retry_after => 0 },
        "nothing is behind its cursor");
    $w->client->patch("/api/v1/conversations/$talk->{id}",
        { archived => true, assigned_to => "ann" });
    my $later = start($bot, json => { visitor => $data->{visitor} });
    is_deeply($later->{messages}, [], "one that is archived is over");
    is(poll($data->{visitor}, after => $later->{cursor})->data->{cursor},
        $later->{cursor}, "and its messages are old");
    said($data->{visitor}, { content => "New" });
    my $both = $w->client->get("/api/v1/conversations",
        query => { visitor_id => $talk->{visitor_id} })->data;
    is_deeply([map { $_->{assigned_to} } @$both], [undef, "ann"],
        "what the visitor writes then begins a new one, of nobody");
};

subtest "50 messages, and those behind a cursor" => sub {
    my $data = start($bot);
    my @said = map { said($data->{visitor}, { content => "n$_" }) } 1 .. 52;
    my $again = start($bot, json => { visitor => $data->{visitor} });
    is(texts($again), join("|", map { "user: n$_" } 3 .. 52), "the last 50");
    is(texts(poll($data->{visitor})->data),
        join("|", map { "user: n$_" } 1 .. 52), "all, from the beginning");
    said($data->{visitor}, { content => "new" });
    my $news = poll($data->{visitor}, after => $again->{cursor})->data;
    is(texts($news), "user: new", "what is new");
    # a backend's clock is late, or its transaction was slow
    answer($said[0], message => { role => "assistant", content => "late" },
        occurred_at => $said[50]{created_at});
    my $late = poll($data->{visitor}, after => $news->{cursor})->data;
    like(texts($late), qr/^user: n1\b.*\|assistant: late\|.*user: new$/,
        "what comes late is seen, with those around it");
    is(poll($data->{visitor}, after => $late->{cursor})->data->{cursor},
        $late->{cursor}, "once");
};

subtest "the same message again" => sub {
    my $visitor = start($bot)->{visitor};
    my $first = said($visitor, { id => "one", content => "Once" });
    json_is(say_raw($visitor, { id => "one", content => "other words" }),
        $first, "is answered as the first time");
    my @got = in_processes(5, sub {
        return [map { $httpd->client->post("$CHAT/$bot/messages",
            { id => "two", content => "At once" }, key => $visitor)->body }
            1 .. 4];
    });
    my %bodies = map { $_ => 1 } map { @$_ } @got;
    is(scalar keys %bodies, 1, "20 times at once")
        or diag(join "\n", keys %bodies);
    is(texts(poll($visitor)->data), "user: Once|user: At once", "each once");
    my $other = start($bot)->{visitor};
    said($other, { id => "one", content => "Mine" });
    is(texts(poll($other)->data), "user: Mine",
        "another visitor's ids are others");
    sql($database, "DELETE FROM crmapi.message WHERE id = '$first->{id}'");
    error_is(say_raw($visitor, { id => "one", content => "Once" }), 409,
        "conflict", "one that was deleted does not come again");
};

subtest "what a visitor sees" => sub {
    my $visitor = start($bot)->{visitor};
    my $message = said($visitor, {});
    for my $role (qw(tool system note)) {
        answer($message, message => { role => $role, content => "secret" });
    }
    answer($message, message => { role => "assistant", content => "secret",
        tool_used => "lookup" });
    answer($message, message => { role => "human", content => "I am Ben" });
    is(texts(poll($visitor)->data),
        "user: $message->{content}|human: I am Ben",
        "neither tools, nor the system, nor notes");
    is(texts(start($bot, json => { visitor => $visitor })),
        "user: $message->{content}|human: I am Ben", "also at a start");
};

# One thing after the other is another one, and then as it was.
subtest "which messages and files are a visitor's" => sub {
    my $visitor = start($bot)->{visitor};
    my $message = said($visitor, { content => "mine" });
    my $other = agent();
    my ($file, $in) = (uuid(), "workspace_id = '@{[$w->id]}'");
    my $talk = sql($database, "UPDATE crmapi.message SET metadata = metadata
            || '{\"attachments\": []}' WHERE id = '$message->{id}';
        INSERT INTO crmapi.attachment (id, workspace_id, message_id, number,
            filename, content_type, size, stored) VALUES
            ('$file', '@{[$w->id]}', '$message->{id}', 2, 'b', 'text/plain', 0, true),
            (gen_random_uuid(), '@{[$w->id]}', '$message->{id}', 1, 'a',
                'text/plain', 0, true);
        SELECT conversation_id FROM crmapi.message WHERE id = '$message->{id}'");
    my %id = (conversation => $talk, message => $message->{id}, attachment => $file);
    # What the visitor is told: texts, names of files, the status of one.
    my $told = sub {
        my $data = poll($visitor)->data;
        is_deeply(start($bot, json => { visitor => $visitor })->{messages},
            $data->{messages}, "the same at a start") if !$_[0];
        return join " ", texts($data), (map { $_->{filename} } map {
            @{$_->{attachments} || []} } @{$data->{messages}}),
            $c->get("$CHAT/$bot/attachments/$file", key => $visitor)->status;
    };
    is($told->(), "user: mine a b 200", "a message and its files, in their order");
    for (["conversation", "visitor_id", "x"], ["conversation", "bot_id", $other],
            ["conversation", "type", 4], ["conversation", "internal", "true"],
            ["conversation", "deleted", "true"], ["message", "role", "tool"],
            ["message", "role", "note"], ["message", "tool_used", "t"],
            ["message", "content", "", " 200"],
            ["attachment", "stored", "false", "user: mine a 404"]) {
        my ($table, $column, $value, $left) = @$_;
        my $of = "crmapi.$table WHERE $in AND id = '$id{$table}'";
        my $was = sql($database, "SELECT $column FROM $of");
        my $set = sub { sql($database, "UPDATE crmapi.$table SET $column = "
            . (defined $_[0] ? "'$_[0]'" : "NULL") . " WHERE $in AND id = '$id{$table}'") };
        $set->($value);
        is($told->(), $left // " 404", "$table: not with $column '$value'");
        $set->($was);
    }
    is($told->(), "user: mine a b 200", "all is as it was");
    # what is open is written to
    my $started = sub { texts(start($bot, json => { visitor => $visitor })) };
    for (["active", "false"], ["archived", "true"], ["thread", "t"]) {
        my ($column, $value) = @$_;
        sql($database, "UPDATE crmapi.conversation SET $column = '$value'
            WHERE $in AND id = '$talk'");
        like($told->(1), qr/^user: mine/, "$column $value: it is seen");
        is($started->(), "", "but not at a start");
        my $next = sql($database, "SELECT conversation_id FROM crmapi.message WHERE
            id = '" . said($visitor, { content => $column })->{id} . "'");
        isnt($next, $talk, "and over");
        sql($database, "UPDATE crmapi.conversation SET active = true, archived = false,
            thread = NULL WHERE $in AND id = '$talk'");
        is(sql($database, "SELECT conversation_id FROM crmapi.message WHERE id = '"
            . said($visitor, { content => "more" })->{id} . "'"), $next,
            "of several that are open the latest is written to");
        is($started->(), "user: $column|user: more", "and shown at a start");
        sql($database, "UPDATE crmapi.conversation SET active = false
            WHERE $in AND id = '$talk'");
        $talk = $next;
    }
};

subtest "a visitor has the latest eight conversations" => sub {
    my $visitor = start($bot)->{visitor};
    my $message = said($visitor, { content => "0" });
    my $in = "workspace_id = '@{[$w->id]}'";
    for my $n (1 .. 8) {
        sql($database, "UPDATE crmapi.conversation SET active = false,
            created_at = created_at - interval '1 minute' WHERE $in AND id IN (
                SELECT c.id FROM crmapi.conversation c, crmapi.conversation o,
                    crmapi.message m WHERE m.id = '$message->{id}' AND m.$in
                    AND o.id = m.conversation_id AND o.$in AND c.$in
                    AND c.visitor_id = o.visitor_id)");
        said($visitor, { content => "$n" });
    }
    is(texts(poll($visitor)->data), join("|", map { "user: $_" } 1 .. 8),
        "the first of nine is not shown");
};

subtest "an address that a visitor claims" => sub {
    my ($person, $stranger) = map { start($bot)->{visitor} } 1 .. 2;
    said($person, { content => "private", email => "Zoe\@x.example",
        name => "Zoe Quint" });
    is(count_rows($w, "contact", "email_key = 'zoe\@x.example'"), 1,
        "makes a contact");
    said($stranger, { content => "claim", email => "zoe\@X.example" });
    is(count_rows($w, "contact", "email_key = 'zoe\@x.example'"), 1,
        "or finds it");
    is(texts(poll($stranger)->data), "user: claim",
        "and shows nothing of another visitor's");
    is(texts(start($bot, json => { visitor => $stranger })), "user: claim",
        "also at a start");
    # what a field of a page has around an address, or when it is not filled in
    said($stranger, { content => "padded", email => " zoe\@x.example\x{a0}" });
    said($stranger, { content => "none", email => $_ }) for "", " ";
    is(texts(poll($person)->data), "user: private", "nor the other way");
    is(scalar sql($database, "SELECT count(DISTINCT c.id) FROM"
        . " crmapi.conversation c JOIN crmapi.contact p ON p.id ="
        . " c.contact_id WHERE p.email_key = 'zoe\@x.example'"), 2,
        "they are two conversations of one contact");
    is(scalar sql($database, "SELECT first_name || ' ' || last_name FROM"
        . " crmapi.contact WHERE email_key = 'zoe\@x.example'"), "Zoe Quint",
        "with a name");
    said($person, { content => "married", name => "Zoe Quant" });
    is(scalar sql($database, "SELECT human FROM crmapi.conversation WHERE"
        . " email = 'Zoe\@x.example'"), "Zoe Quant",
        "visitors say who they are in their own conversation");
};

subtest "a claim changes no contact and stops nothing" => sub {
    my ($template) = $w->import_objects([{ object => "sequence_template",
        name => "T", bot_id => $bot, stop_on_reply => true,
        allowed_channels => ["email"], steps => [{ channel => "email",
            email_subject => "s", email_body => "x" }] }]);
    my $api = $w->client;
    my $enrollment = $w->start($template,
        contact => { emails => ["joan\@x.example"] });
    my $id = sql($database, "SELECT contact_id FROM crmapi.enrollment WHERE"
        . " id = '$enrollment->{enrollment_id}'");
    my $before = $api->get("/api/v1/contacts/$id")->data;
    my $visitor = start($bot)->{visitor};
    said($visitor, { email => "joan\@x.example", name => "Eve" });
    my $message = said($visitor, { content => "and later without it" });
    is(scalar sql($database, "SELECT c.contact_id FROM crmapi.conversation c"
        . " JOIN crmapi.message m ON m.conversation_id = c.id WHERE m.id ="
        . " '$message->{id}'"), $id, "the conversation is linked");
    is_deeply($api->get("/api/v1/contacts/$id")->data, $before,
        "the contact is as it was");
    is($api->get("/api/v1/sequences/enrollments/$enrollment->{enrollment_id}")
        ->data->{status}, "generating", "and its sequence goes on");
    is(scalar sql($database, "SELECT metadata ->> 'verified' FROM"
        . " crmapi.message WHERE id = '$message->{id}'"), "false",
        "the message says that it is a claim");
};

subtest "tokens" => sub {
    my $visitor = start($bot)->{visitor};
    said($visitor, {});
    my $other = agent();
    my $of_other = start($other)->{visitor};
    my $changed = $visitor =~ s/^(.{30})(.)/$1 . ($2 eq "A" ? "B" : "A")/er;
    my %bad = ("none" => undef, "a forged one" => $changed,
        "one of another agent" => $of_other, "no token" => "x",
        "a longer one" => $visitor . "AAAA", "an intake token" => $token,
        "an API key" => $w->key);
    for my $what (sort keys %bad) {
        error_is($c->get("$CHAT/$bot/messages", key => $bad{$what}), 401,
            "unauthorized", "$what to read");
        error_is(say_raw($bad{$what}, {}), 401, "unauthorized",
            "$what to write");
    }
    status_is(poll($visitor), 200, "the right one");
    status_is($c->get("$CHAT/$bot/messages", headers => { Authorization =>
        "bearer $visitor" }), 200, "the scheme without case (RFC 9110, 11.1)");
    error_is($httpd->client(key => $visitor)->get("/api/v1/contacts"), 401,
        "unauthorized", "it is nothing to the API");
    my $twin = $w->twin_of($bot);
    error_is($c->get("$CHAT/$twin/messages", key => $visitor,
        headers => { "X-Crm-Twin" => 1 }), 401, "unauthorized",
        "nor in another workspace");
    ok(index($httpd->access_log . $httpd->log_text, $visitor) < 0,
        "no log has it");
};

# VISITOR's token as if it had been made so that it is valid for DAYS from now on.
sub aged {
    my ($visitor, $days) = @_;
    my $head = substr(decode_base64url($visitor), 0, 50)
        . pack("Q>", time + 86400 * $days);
    my $mac = sql($database, "SELECT encode(crmapi.token_sign_page('\\x"
        . unpack("H*", $head) . "'), 'hex')");
    return encode_base64url($head . pack("H*", $mac));
}

subtest "a token is valid for a year, and renewed after half of it" => sub {
    my $visitor = start($bot)->{visitor};
    said($visitor, { content => "Mine" });
    is(start($bot, json => { visitor => $visitor })->{visitor}, $visitor,
        "a new one stays");
    my %days = (183 => 1, 181 => 0, 1 => 0);
    for my $days (sort keys %days) {
        my $old = aged($visitor, $days);
        my $again = start($bot, json => { visitor => $old });
        is(texts($again), "user: Mine", "$days days are left: it is the visitor");
        is($again->{visitor} eq $old, !!$days{$days},
            $days{$days} ? "it stays" : "there is another one");
        is(texts(poll($again->{visitor})->data), "user: Mine", "of the same");
    }
    my $old = aged($visitor, -1);
    error_is(say_raw($old, {}), 401, "unauthorized", "a day after its end");
    is_deeply(start($bot, json => { visitor => $old })->{messages}, [],
        "somebody new");
};

subtest "agents without a chat" => sub {
    my $hidden = agent(public => false);
    my $off = agent(enabled => false);
    my $visitor = start($bot)->{visitor};
    for my $id ($hidden, $off, uuid(), "x", "") {
        error_is($c->post("$CHAT/$id/start", {}), 404, "not_found",
            "start of '$id'");
        error_is($c->get("$CHAT/$id/messages", key => $visitor), 404,
            "not_found", "messages of '$id'");
    }
    error_is($c->get("$CHAT/$bot/other"), 404, "not_found", "another path");
    error_is($c->get("$CHAT/$bot/start"), 405, "method_not_allowed",
        "another method");
    error_is($c->delete("$CHAT/$bot/messages"), 405, "method_not_allowed",
        "DELETE");
};

subtest "origins" => sub {
    my $of_site = agent();
    my $visitor = start($of_site)->{visitor};
    $w->ctl("agent", "origins", $of_site, "--origins",
        "$SITE,http://localhost:3000");
    my %ok = ($SITE => 1, "http://localhost:3000" => 1,
        "https://example.com" => 0, "http://www.example.com" => 0,
        "$SITE:444" => 0, "$SITE.evil.example" => 0, "null" => 0);
    for my $origin (sort keys %ok) {
        my %arg = (headers => { Origin => $origin });
        my $preflight = $c->options("$CHAT/$of_site/messages", headers => {
            %{$arg{headers}}, "Access-Control-Request-Method" => "POST" });
        my $r = $c->post("$CHAT/$of_site/start", {}, %arg);
        my $denied = $c->get("$CHAT/$of_site/messages", %arg);
        is($_->header("Vary"), "Origin", "caches know that it matters")
            for $preflight, $r, $denied;
        is($_->header("Access-Control-Allow-Origin"), $ok{$origin} ? $origin
            : undef, "$origin: $_->{status}") for $preflight, $r, $denied;
        is($_->header("Access-Control-Expose-Headers"), $ok{$origin}
            ? "Retry-After" : undef, "it reads when to ask again")
            for $preflight, $r, $denied;
        is($_->header("Access-Control-Allow-Credentials"), undef,
            "never credentials") for $preflight, $r;
        if ($ok{$origin}) {
            is($preflight->status, 204, "it may ask");
            is($preflight->header("Access-Control-Allow-Headers"),
                "authorization, content-type", "with these headers");
            is($preflight->header("Access-Control-Allow-Methods"),
                "GET, POST", "in these ways");
            is($preflight->header("Access-Control-Max-Age"), 7200, "for long");
            is($r->status, 200, "and do");
            is($denied->status, 401, "its failures may be seen");
        }
        else {
            error_is($_, 403, "forbidden", "$origin may not")
                for $preflight, $r, $denied;
            error_is($c->post("$CHAT/$of_site/start", undef, body => "{", %arg),
                403, "forbidden", "and is told no more");
        }
    }
    my $host = "127.0.0.1:" . $httpd->port;
    is($c->post("$CHAT/$of_site/start", {}, headers => { Host => $host,
        Origin => "http://$host" })->status, 200, "our own pages may");
    error_is($c->post("$CHAT/$of_site/start", undef, body => "{}",
        headers => { Origin => $SITE, "Content-Type" => "text/plain" }), 415,
        "unsupported_media_type", "nobody goes without asking");
    my $row = sub { scalar sql($database, "SELECT xmin FROM crmapi.agent
        WHERE id = '$of_site'") };
    my $was = $row->();
    like($w->ctl("agent", "origins", $of_site), qr/\Q$SITE\E/,
        "without a list they are shown");
    is($row->(), $was, "and the row is not written");
    $w->ctl("agent", "origins", $of_site, "--origins", "*");
    is($c->post("$CHAT/$of_site/start", {}, headers => {
        Origin => "https://any.example" })
        ->header("Access-Control-Allow-Origin"), "https://any.example",
        "a star is for all");
};

subtest "hostile bodies and parameters" => sub {
    my $visitor = start($bot)->{visitor};
    my %bad = (content => ["", " \n\t", "\x{3000}\x{a0}", "\x{200b}",
            "\x{feff}\x{2800}", undef, 7, {}, "x" x 4001, "a\x{0}b"],
        id => ["", undef, "a b", "a:b", "ä", "x" x 65, 7, []],
        email => ["x", 7, "a\@b c"], name => [7, "x" x 201],
        page_url => [[], "x" x 2049], role => ["assistant"],
        conversation_id => [uuid()], visitor => ["x"]);
    for my $field (sort keys %bad) {
        for my $value (@{$bad{$field}}) {
            error_is(say_raw($visitor, { $field => $value }), 422,
                "validation_error", "$field: "
                . substr(JSON::PP->new->allow_nonref->encode($value), 0, 20),
                [$field]);
        }
    }
    # contract 5.6: every wrong field at once
    for my $case ([{}, "content", "id"], [{ id => "a b" }, "content", "id"],
            [{ id => "a b", content => " ", email => "x", role => "user" },
                "content", "email", "id", "role"],
            [{ id => undef, content => "", name => 7 }, "content", "id", "name"],
            [{ id => "x" x 65, page_url => [] }, "content", "id", "page_url"]) {
        my ($body, @fields) = @$case;
        error_is($c->post("$CHAT/$bot/messages", $body, key => $visitor), 422,
            "validation_error", "all of @fields", \@fields);
    }
    for my $body ("", "{", "[]", "null", "\"x\"", "{\"id\":1,\"id\":2}",
            "{\"content\":\"\xff\"}", "[" x 60000) {
        my $r = $c->post("$CHAT/$bot/messages", undef, body => $body,
            key => $visitor);
        like($r->status, qr/^4(?:00|22)$/, "no object of JSON: "
            . substr($body, 0, 10)) or diag($r->text);
    }
    error_is($c->post("$CHAT/$bot/start", $_), 422, "validation_error",
        "a start") for { visitor => 7 }, { name => "x" }, [];
    error_is($c->post("$CHAT/$bot/messages", undef, key => $visitor,
        body => "{\"content\":\"" . "x" x 2000000 . "\"}"), 413,
        "payload_too_large", "more than enough");
    error_is(poll($visitor, @$_), 422, "validation_error", "@$_", [$_->[0]])
        for [after => "x"], [after => "1"], [wait => "26"], [wait => "-1"],
            [wait => ""], [wait => "1e1"], [other => 1];
    my $longest = "\x{1F600}" x 4000;
    is(said($visitor, { content => $longest })->{content}, $longest,
        "4,000 characters are not too many");
    is(texts(poll($visitor)->data), "user: $longest", "nothing else came");
};

subtest "the script" => sub {
    my $r = $c->get("$CHAT/widget.js");
    status_is($r, 200);
    is($r->header("Content-Type"), "text/javascript; charset=utf-8", "type");
    is($r->header("Cache-Control"), "public, max-age=3600", "an hour");
    is($r->header("Cross-Origin-Resource-Policy"), "cross-origin",
        "for other sites");
    is($r->header("X-Content-Type-Options"), "nosniff", "a script");
    cmp_ok(length $r->body, "<", 15360, "under 15 KB");
    like($r->body, qr/attachShadow/, "it is there");
    my $etag = $r->header("ETag");
    like($etag, qr/^"[0-9a-f]{32}"$/, "ETag");
    my $compressed = $etag =~ s/"$/-gzip"/r;    # mod_deflate's
    for my $known ($etag, "\"x\", W/$etag", $compressed, "*") {
        my $same = $c->get("$CHAT/widget.js",
            headers => { "If-None-Match" => $known });
        is($same->status, 304, "$known: not modified");
        is($same->header("ETag"), $etag, "with its ETag");
    }
    is($c->get("$CHAT/widget.js", headers => { "If-None-Match" => "\"x\"" })
        ->status, 200, "another one");
    is($c->head("$CHAT/widget.js")->status, 200, "HEAD");
    error_is($c->post("$CHAT/widget.js", {}), 405, "method_not_allowed",
        "POST");
};

subtest "waiting" => sub {
    my $visitor = start($bot)->{visitor};
    my $began = time;
    json_is(poll($visitor, wait => 1), { messages => [],
        cursor => "0.00000000-0000-0000-0000-000000000000.0",
        retry_after => 0 }, "nothing comes");
    cmp_ok(time - $began, ">=", 0.9, "for a second");
    my $first = asked($visitor, 0);
    my $message = said($visitor, { content => "from another window" });
    $began = time;
    my $news = $first->read_response("GET")->data;
    cmp_ok(time - $began, "<", 3 * busy(), "a first message is told at once");
    is(texts($news), "user: from another window", "it");
    my $second = asked($visitor, $news->{cursor});
    answer($message, message => { role => "assistant", content => "Yes" });
    $began = time;
    $news = $second->read_response("GET")->data;
    cmp_ok(time - $began, "<", 3 * busy(), "an answer too");
    is(texts($news), "assistant: Yes", "it alone");
    # another host's bell is not heard here
    my $third = asked($visitor, $news->{cursor});
    insert($w, "message", conversation_id => scalar sql($database,
        "SELECT conversation_id FROM crmapi.message WHERE id ="
        . " '$message->{id}'"), role => "human", content => "From afar");
    $began = time;
    is(texts($third->read_response("GET")->data), "human: From afar",
        "what another host took");
    cmp_ok(time - $began, "<", 10 * busy(), "comes within some seconds");
};

subtest "one poll of a visitor waits" => sub {
    plan(skip_all => "prefork has one request a process")
        if $mpm eq "prefork";
    my $visitor = start($bot)->{visitor};
    my $first = asked($visitor, 0);
    my $second;
    ok(wait_for(sub {
        $second = poll($visitor, wait => 1)->data;
        return 1 if $second->{retry_after} && !is_answered($first);
        # the second one came before the first
        $first->close;
        $first = asked($visitor, 0);
        return 0;
    }, 20), "a second one is answered at once");
    is_deeply($second->{messages}, [], "with what there is");
    ok(!is_answered($first), "the first one waits");
    said($visitor, { content => "news" });
    is(texts($first->read_response("GET")->data), "user: news",
        "and is answered");
};

subtest "many wait, and hold no connection" => sub {
    plan(skip_all => "prefork has one request a process")
        if $mpm eq "prefork";
    my @visitors = map { start($bot)->{visitor} } 1 .. 4;
    my ($full, @polls) = all_wait(@visitors);
    cmp_ok($full, ">", 0, "no more than CrmApiChatPolls wait; the others are "
        . "told when to come again");
    is((grep { is_answered($_) } @polls), 0, "none has been answered");
    status_is($httpd->client(key => $w->key)->get("/api/v1/contacts"), 200,
        "the only connection is free for $_") for 1 .. 10;
    said($visitors[2], { content => "wake" });
    is(texts($polls[2]->read_response("GET")->data), "user: wake",
        "the one that it is for is answered");
    my @others = grep { is_answered($_) } @polls[0, 1, 3];
    is(@others, 0, "it alone") or diag(map { $_->read_response("GET")->text }
        @others);
    $_->close for @polls;
    ok(wait_for(sub {
        !poll($visitors[0], wait => 1)->data->{retry_after} }, 20),
        "who hangs up makes room");
};

subtest "many more wait than there are threads" => sub {
    plan(skip_all => "MPM $mpm: a thread waits") if $mpm ne "event";
    my $many = $ENV{CRM_VALGRIND} ? 20 : 100;
    my $host = httpd(database => $database, children => 1, unlimited => 1,
        conf => $CONF =~ s/ChatPolls 4/ChatPolls 1000/r
            . "AsyncRequestWorkerFactor 100\n");
    local $c->{port} = $host->port;
    $c->close;
    my @talks = map { my $visitor = start($bot)->{visitor};
        my $said = said($visitor, { content => "Hello" });
        { visitor => $visitor, id => $said->{id} } } 1 .. $many;
    my %talk_of = map { @$_ } sql($database, "SELECT id, conversation_id"
        . " FROM crmapi.message WHERE content = 'Hello'");
    for my $talk (@talks) {
        $talk->{cursor} = poll($talk->{visitor})->data->{cursor};
        $talk->{poll} = asked($talk->{visitor}, $talk->{cursor}, $host);
    }
    my $threads = () = glob "/proc/" . ($host->children)[0] . "/task/*";
    cmp_ok($threads, "<", 30, "$threads threads");
    status_is($w->client->get("/api/v1/agents"), 200, "others are served");
    is((grep { is_answered($_->{poll}) } @talks), 0, "all $many wait");
    my @took;
    for my $talk (@talks[3, 50 % $many, $many - 1]) {
        my $began = time;
        status_is($host->client(key => $w->key)->post("/api/v1/conversations/"
            . "$talk_of{$talk->{id}}/messages", { content => "Yes" }), 201,
            "an answer");
        is(texts($talk->{poll}->read_response("GET")->data), "human: Yes",
            "is on the page");
        push @took, time - $began;
    }
    my ($best) = sort { $a <=> $b } @took;
    cmp_ok($best, "<", 0.1 * busy(), sprintf "19.1 in %.0f ms",
        1000 * $best);
    is((grep { is_answered($_->{poll}) } @talks[0 .. 2]), 0,
        "the others wait on");
    $_->{poll}->close for @talks;
    $c->close;
};

subtest "a graceful restart waits for nobody" => sub {
    my $visitor = start($bot)->{visitor};
    my ($full, @polls) = $mpm eq "prefork" ? (1, asked($visitor, 0))
        : all_wait($visitor, map { start($bot)->{visitor} } 1 .. 3);
    ok($full, "they wait");
    my $began = time;
    $httpd->restart;
    for my $poll (@polls) {
        my $r = $poll->read_response("GET");
        status_is($r, 200, "as if nothing had come");
        is_deeply($r->data->{messages}, [], "which is so");
    }
    cmp_ok(time - $began, "<", 12 * busy(), "and soon");
};

subtest "a budget for each address" => sub {
    my $strict = httpd(database => $database, children => 1, unlimited => 1,
        conf => $CONF =~ s/AddressLimit 0/AddressLimit 6/r);
    local $c->{port} = $strict->port;
    $c->close;
    my ($visitor, $other) = map { start($bot)->{visitor} } 1, 2;
    my @statuses = map { say_raw($visitor, {})->status } 1 .. 4;
    is("@statuses", "201 201 201 201", "six posts");
    my $r = say_raw($visitor, {}, headers => { Origin =>
        "http://127.0.0.1", Host => "127.0.0.1" });
    error_is($r, 429, "rate_limited", "no seventh");
    cmp_ok($r->header("Retry-After"), ">", 0, "with a time to wait");
    is($r->header("Access-Control-Allow-Origin"), "*",
        "which a page may see");
    is($r->header("Access-Control-Expose-Headers"), "Retry-After",
        "with the time");
    error_is($c->post("$CHAT/$bot/start", {}), 429, "rate_limited",
        "nor a start");
    # 2.5: three times the budget for a visitor, five times for an address
    my @polls = map { poll($visitor)->status } 1 .. 19;
    is("@polls", join(" ", (200) x 18, 429), "18 polls of a visitor");
    @polls = map { poll($other)->status } 1 .. 12;
    is("@polls", join(" ", (200) x 11, 429), "30 polls of an address");
    $c->close;
};

done_testing;
