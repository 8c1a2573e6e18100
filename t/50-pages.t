# SPDX-License-Identifier: Apache-2.0
# 50-pages.t: the pages that people open from mails: review of a sequence,
# one-click unsubscribe (contract 11.7, 11.12; RFC 8058)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Pages;

my $database = database();
my $httpd = httpd(database => $database, modules => ["rewrite", "alias"],
    unlimited => 1, conf => <<'END');
CrmApiReview On
CrmApiUnsubscribe On
CrmApiAddressLimit 0
CrmApiDatabaseWait 300ms
END
my $web = $httpd->client;
my $FORM = "application/x-www-form-urlencoded";

my @STEPS = ({ channel => "email", to_identifier => "zoe\@x.example",
        email_subject => "Hello <Zoë> & \"co\"",
        email_body => "\nDear Zoë,\n\n<script>alert(1)</script>\n" },
    { channel => "sms", to_identifier => "+15550100", delay_seconds => 86400,
        sms_body => "Hi \x{1F600}" },
    { channel => "voice", to_identifier => "+15550100",
        delay_seconds => 3600, voice_objective => "Book a demo",
        voice_script => "Good morning" });

# Send FIELDS (pairs, of which the last of a name counts) of a form to PATH.
sub send_form {
    my ($path, $fields, %headers) = @_;
    my %field = @$fields;
    my @pairs;
    for my $name (sort keys %field) {
        push @pairs, join "=", map { my $text = $_;
            utf8::encode($text) if utf8::is_utf8($text);
            $text =~ s/([^A-Za-z0-9._-])/sprintf "%%%02X", ord $1/ger
        } $name, $field{$name};
    }
    return $web->request("POST", $path, body => join("&", @pairs),
        headers => { "Content-Type" => $FORM, %headers });
}

sub unescaped {
    my ($text) = @_;
    my %entity = (lt => "<", gt => ">", amp => "&", quot => '"', "#39" => "'",
        "#13" => "\r");
    return $text =~ s/&(#?\w+);/$entity{$1}/ger;
}

sub html {
    my ($response) = @_;
    my $text = $response->body;
    utf8::decode($text);
    return $text;
}

# What a browser would send of the form in RESPONSE: name => value.
sub fields_of {
    my ($response) = @_;
    my $html = html($response);
    my %field;
    for my $tag ($html =~ /<input ([^>]*)>/g) {
        my ($name) = $tag =~ /\bname="([^"]*)"/;
        my ($value) = $tag =~ /\bvalue="([^"]*)"/;
        $field{unescaped($name)} = unescaped($value);
    }
    while ($html =~ m{<textarea [^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>}gs) {
        my ($name, $value) = ($1, $2);
        $field{unescaped($name)} = unescaped($value) =~ s/\n/\r\n/gr;
    }
    return \%field;
}

# Open PATH, change fields by CHANGE, press ACTION.
sub press {
    my ($path, $action, $change, %headers) = @_;
    my $fields = fields_of($web->get($path));
    return send_form($path, [%$fields, action => $action, %{$change || {}}],
        %headers);
}

# RESPONSE is a page of STATUS with all its headers, whose text is LIKE.
sub page_is {
    my ($response, $status, $like, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $html = html($response);
    my @wrong;
    push @wrong, "status " . $response->status
        if $response->status != $status;
    push @wrong, "not like $like" if $like && $html !~ $like;
    my %wanted = ("Content-Type" => qr{^text/html; ?charset=utf-8$}i,
        "Cache-Control" => qr/^no-store$/, "Referrer-Policy" =>
        qr/^no-referrer$/, "X-Content-Type-Options" => qr/^nosniff$/,
        "X-Frame-Options" => qr/^DENY$/, "X-Robots-Tag" => qr/noindex/, "Content-Security-Policy" =>
        qr/^default-src 'none'; style-src 'sha256-[\w+\/]{43}='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/);
    for my $header (sort keys %wanted) {
        my @values = $response->header($header);
        push @wrong, "$header: @values" unless @values == 1
            && $values[0] =~ $wanted{$header};
    }
    push @wrong, "not one h1" unless 1 == (() = $html =~ /<h1>/g);
    push @wrong, "no language" unless $html =~ /<html lang="en">/;
    push @wrong, "a script" if $html =~ /<script|\son\w+=|javascript:/i;
    push @wrong, "a style of its own" if $html =~ /\sstyle=/;
    my %id;
    push @wrong, "an id twice: $_" for grep { $id{$_}++ }
        $html =~ /\sid="([^"]*)"/g;
    for my $ref ($html =~ /\s(?:for|aria-describedby|aria-labelledby|href)="#?([^"]*)"/g) {
        push @wrong, "no id $ref" unless $id{$ref};
    }
    my $ok = ok(!@wrong, $name);
    diag(join "\n", @wrong, $response->text) unless $ok;
    return $ok;
}

subtest "the page shows what will be sent" => sub {
    my $w = workspace($httpd);
    sql($database, "UPDATE crmapi.workspace SET time_zone = 'Asia/Tokyo'"
        . " WHERE id = '" . $w->id . "'");
    my $id = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $id, other => admin($w,
        name => "Ann <Min>"));
    my $r = $web->get($path);
    page_is($r, 200, qr/Review before sending/, "there it is");
    my $html = html($r);
    for my $text ("Zoë &lt;b&gt;Q&lt;/b&gt;", "Welcome &amp; &quot;more&quot;",
            "Ada", "Ann &lt;Min&gt;", "zoe\@x.example", "+15550100",
            "Step 1: E-mail", "Step 2: Text message", "Step 3: Phone call",
            "Hello &lt;Zoë&gt; &amp; &quot;co&quot;",
            "&lt;script&gt;alert(1)&lt;/script&gt;", "Hi \x{1F600}",
            "Book a demo", "Good morning", "(Asia/Tokyo)") {
        ok(index($html, $text) >= 0, "it shows $text");
    }
    is_deeply([grep { !/ dir="auto" / } $html =~ m{<(?:textarea|input\ type=
        "text")\ [^>]*>}gx], [], "each text in the direction of its letters");
    my @due = $html =~ m{<dt>When</dt><dd>(\w+, \d+ \w+ \d{4}, \d\d:\d\d) }g;
    my @wanted = map { scalar sql($database, "SELECT to_char((now() + interval "
        . "'$_ s') AT TIME ZONE 'Asia/Tokyo', 'FMDay, FMDD FMMonth YYYY')") }
        0, 86400, 90000;
    is_deeply([map { s/, \d\d:\d\d$//r } @due], \@wanted,
        "each step's day, counted from an approval now");
    my $before = sql($database, "SELECT md5(string_agg(e::text || s::text,"
        . " '' ORDER BY s.id)) FROM crmapi.enrollment e JOIN"
        . " crmapi.enrollment_step s ON s.enrollment_id = e.id"
        . " WHERE e.id = '$id'");
    my $head = $web->head($path);
    is($head->status, 200, "HEAD");
    is($head->body, "", "has no body");
    is(scalar sql($database, "SELECT md5(string_agg(e::text || s::text,"
        . " '' ORDER BY s.id)) FROM crmapi.enrollment e JOIN"
        . " crmapi.enrollment_step s ON s.enrollment_id = e.id"
        . " WHERE e.id = '$id'"), $before, "GET and HEAD change nothing");
    my $put = $web->request("PUT", $path);
    page_is($put, 405, qr/did not work.*takes only GET, HEAD and POST/s, "PUT");
    is($put->header("Allow"), "GET, HEAD, POST", "with Allow");
    my $own = $web->get("$path?done=approved");
    page_is($own, 200, qr/Review before sending/, "a query of one's own");
    unlike(html($own), qr/Thank you/, "is not believed");
};

subtest "11.7, 11.12 approve, as it stands" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $id, other => admin($w));
    my ($one, $two, $three) = map { $_->[0] } steps_of($w, $id, "id");
    my $r = press($path, "approve", { "body.$two" => "Hi\r\nthere ü" },
        Origin => "null", "Sec-Fetch-Site" => "same-origin");
    is($r->status, 303, "a redirect") or diag($r->text);
    is($r->header("Location"), "?done=approved", "to the same page");
    is($r->body, "", "without a body");
    is($w->enrollment($id)->{status}, "approved", "it is approved");
    is_deeply([steps_of($w, $id, "email_subject, email_body, sms_body,"
        . " voice_objective, voice_script")],
        [["Hello <Zoë> & \"co\"", $STEPS[0]{email_body}, undef, undef, undef],
            [undef, undef, "Hi\nthere ü", undef, undef],
            [undef, undef, undef, "Book a demo", "Good morning"]],
        "with the texts of the page, and no others changed");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.job WHERE kind ="
        . " 'sequence.step' AND payload ->> 'step_id' = '$one'"), 1,
        "its first step is due");
    page_is($web->get("$path?done=approved"), 200,
        qr/Thank you\. This sequence is approved/, "which the page says");
    my $again = $web->get($path);
    page_is($again, 200, qr/This sequence is approved/, "later, too");
    unlike(html($again), qr/<form|<button|<textarea/, "to be read only");
    unlike(html($again), qr/<div class="text">/,
        "each text in the direction of its letters");
    like(html($again), qr/Hi\nthere ü/, "with its texts");
};

subtest "11.7 reject" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $id, other => admin($w));
    my ($step) = map { $_->[0] } steps_of($w, $id, "id");
    my $r = press($path, "reject", { "subject.$step" => "" });
    is($r->header("Location"), "?done=rejected", "rejected, whatever was typed")
        or diag($r->text);
    is_deeply([sql($database, "SELECT status, stop_reason FROM"
        . " crmapi.enrollment WHERE id = '$id'")],
        [["stopped_user", "rejected"]], "it has ended");
    is_deeply([steps_of($w, $id, "DISTINCT status, sort_order")],
        [map { ["cancelled", $_] } 1 .. 3], "nothing will be sent");
    page_is($web->get("$path?done=rejected"), 200,
        qr/Thank you\. This sequence was rejected/, "the page says so");
};

subtest "save" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $id, other => admin($w));
    my ($one, $two, $three) = map { $_->[0] } steps_of($w, $id, "id");
    my $line = "ü" x 1000;
    my $prose = "x" x 65535 . "\x{1F600}";
    my $r = press($path, "save", { "subject.$one" => $line,
        "body.$one" => $prose, "objective.$three" => "\tTwo\nlines" });
    is($r->header("Location"), "?done=saved", "saved") or diag($r->text);
    is_deeply([steps_of($w, $id, "coalesce(email_subject, voice_objective),"
        . " coalesce(email_body, sms_body, voice_script)")],
        [[$line, $prose], [undef, "Hi \x{1F600}"],
            ["\tTwo\nlines", "Good morning"]], "the longest texts there are");
    sql($database, "UPDATE crmapi.enrollment_step SET voice_script = ''
        WHERE id = '$three'");
    is(press($path, "save", {})->status, 303, "a text that was empty may stay so");
    sql($database, "UPDATE crmapi.enrollment_step SET voice_script = 'Good morning'
        WHERE id = '$three'");
    is(sql($database, "SELECT string_agg(details ->> 'edited', ' ' ORDER BY at, id)
        FROM crmapi.audit WHERE workspace_id = '@{[$w->id]}'
        AND object = 'enrollment'"), "2 0", "the audit has how many were changed");
    is($w->enrollment($id)->{status}, "pending_approval", "it waits still");
    page_is($web->get("$path?done=saved"), 200, qr/Saved\. Nothing is sent/,
        "the page says so");
    # each line: field, value, rule
    for my $case (["subject.$one", "", "must not be empty"],
            ["subject.$one", "  ", "must not be empty"],
            ["subject.$one", "ü" x 1001, "at most 1,000 characters"],
            ["subject.$one", "a\nBcc: b", "must be one line"],
            ["body.$one", " \r\n ", "must not be empty"],
            ["body.$one", "\x{200b}\x{a0}\r\n\x{3000}", "must not be empty"],
            ["body.$one", "y" x 65537, "at most 65,536 characters"],
            ["body.$two", "", "must not be empty"],
            ["body.$two", "ü" x 1601, "at most 1,600 characters"],
            ["body.$three", "z" x 4097, "at most 4,096 characters"],
            ["objective.$three", "z" x 65537, "at most 65,536 characters"],
            ["objective.$three", "", "must not be empty"],
            ["body.$three", "\n", "must not be empty"]) {
        my ($field, $value, $rule) = @$case;
        for my $action ("save", "approve") {
            my $r = press($path, $action, { $field => $value,
                "body.$two" => $field eq "body.$two" ? $value : "kept <&>" });
            my $at = quotemeta $field;
            page_is($r, 422, qr/aria-invalid="true" aria-describedby="error\.$at".*$rule/s,
                "$action: $field $rule: '" . substr($value, 0, 9) . "'");
            my $typed = $value =~ s/\r\n/\n/gr;
            ok(index(html($r), $typed) >= 0, "what was typed is kept");
            like(html($r), qr/kept &lt;&amp;&gt;/, "of other fields, too")
                unless $field eq "body.$two";
        }
    }
    is_deeply([steps_of($w, $id, "sms_body")], [[undef], ["Hi \x{1F600}"],
        [undef]], "nothing was saved of these");
    is($w->enrollment($id)->{status}, "pending_approval", "nor approved");
};

subtest "two admins at once" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my ($ann, $bob) = map { link_to($w, "review", $id, other => admin($w)) }
        1, 2;
    my ($one, $two) = map { $_->[0] } steps_of($w, $id, "id");
    my $seen = fields_of($web->get($bob));
    is(press($ann, "save", { "subject.$one" => "Ann's" })->status, 303,
        "one changes a text");
    my $r = send_form($bob, [%$seen, "body.$two" => "Bob's",
        action => "approve"]);
    page_is($r, 409, qr/Somebody else has changed a text/,
        "the other cannot approve what he has not seen");
    is($w->enrollment($id)->{status}, "pending_approval", "it waits still");
    like(html($r), qr/Ann&#39;s/, "he is shown it");
    like(html($r), qr/Your text<.*Bob&#39;s/s, "beside what he typed");
    is(send_form($bob, [%{fields_of($r)}, action => "approve"])->status, 303,
        "now he can");
    my $late = fields_of($web->get($ann));
    for my $action ("approve", "reject", "save") {
        $r = send_form($ann, [%$seen, form => "x", action => $action]);
        page_is($r, 403, qr/approved/, "with another page's form: no $action");
    }
    my $other = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $other, other => admin($w));
    $seen = fields_of($web->get($path));
    is(press($path, "approve")->status, 303, "approved by one");
    my ($text) = map { $_->[0] } steps_of($w, $other, "id");
    for my $action ("approve", "reject", "save") {
        for my $typed ({}, { "body.$text" => "" }) {
            $r = send_form($path, [%$seen, %$typed, action => $action]);
            page_is($r, 409, qr/Somebody else has already decided.*This sequence is approved/s,
                "the other is told, whatever he typed, and cannot $action");
        }
    }
    is($w->enrollment($other)->{status}, "approved", "it stays approved");
    my $third = enrollment($w, \@STEPS);
    my $page = link_to($w, "review", $third, other => admin($w));
    my $fields = fields_of($web->get($page));
    my @got = in_processes(4, sub {
        my ($n) = @_;
        $web = $httpd->client;
        return send_form($page, [%$fields,
            action => $n % 2 ? "approve" : "reject"])->status;
    });
    is_deeply([sort @got], [303, 409, 409, 409], "of four at once one wins");
};

subtest "other states are shown" => sub {
    my $w = workspace($httpd, twin => 0);
    for my $case (["stopped_reply", "reply", qr/The contact has replied/],
            ["stopped_unsubscribed", "x", qr/has unsubscribed/],
            ["stopped_user", "x", qr/was stopped/],
            ["failed", "because <so>", qr/has failed.*because &lt;so&gt;/s]) {
        my ($status, $reason, $like) = @$case;
        my $id = enrollment($w, \@STEPS);
        sql($database, "SELECT crmapi.enrollment_end('" . $w->id
            . "', '$id', '$status', '$reason')");
        my $path = link_to($w, "review", $id, other => admin($w));
        page_is($web->get($path), 200, $like, $status);
    }
    my $id = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $id, other => admin($w));
    my $contact = sql($database, "SELECT contact_id FROM crmapi.enrollment"
        . " WHERE id = '$id'");
    sql($database, "DELETE FROM crmapi.contact WHERE id = '$contact'");
    page_is($web->get($path), 200, qr{<dd>deleted</dd>}, "without a contact");
};

subtest "links that are worth nothing say nothing" => sub {
    my $w = workspace($httpd);
    my $other = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $admin = admin($w);
    my ($step) = map { $_->[0] } steps_of($w, $id, "id");
    my $good = token($w, "review", $id, other => $admin,
        expires => time + 60);
    my $changed = $good;
    substr($changed, 100, 1) = substr($changed, 100, 1) eq "A" ? "B" : "A";
    my $foreign = enrollment($other, \@STEPS);
    my $gone = admin($w);
    my $late = token($w, "review", $id, other => $gone,
        expires => time + 60);
    is($web->get("/crmapi/review/$late")->status, 200, "an admin's link");
    sql($database, "DELETE FROM crmapi.admin WHERE id = '$gone'");
    my $refused = $web->get("/crmapi/review/x");
    page_is($refused, 403, qr/This link is not valid/, "a page for them all");
    for my $case (["", "nothing"], [$changed, "changed"],
            ["${good}A", "longer"], ["$good/x", "with more behind it"],
            ["$good//", "with two slashes"], [".$good", "with more before it"],
            [substr($good, 0, 110), "cut off"], [lc $good, "lower case"],
            [token($w, "review", $id, other => $admin, key => "k" x 32,
                expires => time + 60), "another key"],
            [token($other, "review", $id, other => $admin,
                expires => time + 60), "another workspace's token"],
            [token($w, "review", $foreign, other => $admin,
                expires => time + 60), "another workspace's enrollment"],
            [token($other, "review", $foreign, other => $admin,
                expires => time + 60), "another workspace's admin"],
            [token($w, "review", uuid(), other => $admin,
                expires => time + 60), "no such enrollment"],
            [token($w, "review", $id, workspace => uuid(), other => $admin),
                "no such workspace"],
            [token($w, "review", $id), "without an admin"],
            [token($w, "review", $id, other => $admin, version => 2),
                "another version"],
            [token($w, "unsubscribe", $step), "another purpose"],
            [token($w, "form", $id, other => $admin), "a form's"],
            [$late, "of who is no admin now"]) {
        my ($token, $name) = @$case;
        my $r = $web->get("/crmapi/review/$token");
        is($r->status, 403, $name);
        is($r->body, $refused->body, "$name: the same page");
        is(send_form("/crmapi/review/$token", [action => "approve"])->body,
            $refused->body, "$name: POST") if $token !~ m{/};
    }
    for my $case ([token($w, "unsubscribe", uuid()), "no such step"],
            [token($other, "unsubscribe", $step), "another workspace's step"],
            [$good, "another purpose"], ["", "nothing"]) {
        my ($token, $name) = @$case;
        is($web->get("/crmapi/unsubscribe/$token")->body, $refused->body,
            "unsubscribe: $name");
    }
    my $old = "/crmapi/review/" . token($w, "review", $id, other => $admin,
        expires => time - 1);
    page_is($web->get($old), 410, qr/has expired/, "an old one");
    page_is(send_form($old, [action => "approve"]), 410, qr/has expired/,
        "an old one, sent");
    is($w->enrollment($id)->{status}, "pending_approval",
        "nothing was done by any of them");
};

subtest "forms from elsewhere" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $admin = admin($w);
    my $path = link_to($w, "review", $id, other => $admin);
    my $fields = fields_of($web->get($path));
    my ($one) = map { $_->[0] } steps_of($w, $id, "id");
    my @whole = (%$fields, action => "approve");
    for my $case (["Sec-Fetch-Site", "cross-site"],
            ["Sec-Fetch-Site", "same-site"], ["Origin", "https://evil.example"],
            ["Origin", "http://127.0.0.1.evil.example"],
            ["Origin", "garbage"]) {
        page_is(send_form($path, \@whole, @$case), 403, qr/Another site/,
            "@$case");
    }
    is(send_form($path, [%$fields, action => "save"],
        "Sec-Fetch-Site" => $_)->status, 303, "one of our own: $_")
        for "same-origin", "none";
    my $second = link_to($w, "review", $id, other => $admin,
        expires => time + 1800);
    my $theirs = fields_of($web->get($second))->{form};
    my $bound = substr Digest::SHA::sha256_hex($path =~ m{([^/]+)$}), 0, 32;
    my %made = (other => $bound, expires => time + 1800);
    for my $case ([undef, "none"], ["x", "garbage"], [$theirs,
            "of another page"], [($path =~ m{([^/]+)$})[0], "the page's own"],
            [token($w, "review", $id, %made), "for something else"],
            [token($w, "form", uuid(), %made), "of another sequence"],
            [token($w, "form", $id, %made, workspace => uuid()),
                "of another workspace"],
            [token($w, "form", $id, %made, key => "x" x 32), "that is forged"],
            [$fields->{form} =~ s/.$/x/r =~ s/^..../AQMA/r, "changed"]) {
        my ($form, $name) = @$case;
        my %sent = (@whole, "body.$one" => "injected");
        delete $sent{form};
        $sent{form} = $form if defined $form;
        my $r = send_form($path, [%sent]);
        page_is($r, 403, qr/was not sent from this page/, "token: $name");
        unlike(html($r), qr/injected/, "what came with it is not shown");
    }
    # the token that the page would have had long ago
    my $old = token($w, "form", $id, %made, expires => time - 1);
    my %sent = (@whole, form => $old, "body.$one" => "typed for hours");
    my $r = send_form($path, [%sent]);
    page_is($r, 403, qr/open for too long/, "an old page");
    like(html($r), qr/typed for hours/, "what was typed is kept");
    is($w->enrollment($id)->{status}, "pending_approval",
        "nothing was done so far");
    is(send_form($path, [%{fields_of($r)}, action => "approve"],
        Origin => "http://127.0.0.1")->status, 303,
        "sent again it is done, from our own origin");
    like((steps_of($w, $id, "email_body"))[0][0], qr/typed for hours/,
        "with what was typed");
};

subtest "two keys for links side by side" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $admin = admin($w);
    my $step = (steps_of($w, $id, "id"))[0][0];
    my $links = sub { return [link_to($w, "review", $id, other => $admin),
        link_to($w, "unsubscribe", $step)] };
    my $are = sub {
        my ($of, $status, $name) = @_;
        is_deeply([map { $web->get($_)->status } @$of], [$status, $status], $name);
    };
    my $before = $links->();
    $are->($before, 200, "links");
    $w->ctl("link-key", "rotate", $w->id);
    my $after = $links->();
    isnt($after->[1], $before->[1], "a new key signs");
    $are->($after, 200, "links of the new key");
    $are->($before, 200, "those in mails of before");
    my ($code, undef, $error) = crmapictl($database, "link-key", "rotate",
        $w->id);
    is($code, 1, "no third key");
    like($error, qr/link-key drop/, "which says what to do");
    $are->($before, 200, "and nothing has changed");
    $w->ctl("link-key", "drop", $w->id);
    $are->($before, 403, "dropped: the old ones are dead");
    $are->($after, 200, "the new ones are not");
    $w->ctl("link-key", "rotate", $w->id, "--keep-days", "1");
    $are->($after, 200, "kept for a day");
    sql($database, "UPDATE crmapi.link_key SET old_key_until = now()"
        . " - interval '1 second' WHERE workspace_id = '" . $w->id . "'");
    $are->($after, 403, "and no longer");
    $w->ctl("link-key", "rotate", $w->id, "--keep-days", "0");
    $are->($links->(), 200, "then there may be another");
};

subtest "bodies" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $path = link_to($w, "review", $id, other => admin($w));
    my $fields = fields_of($web->get($path));
    page_is(send_form($path, [%$fields]), 400, qr/must have an action/,
        "no action");
    page_is(send_form($path, [%$fields, action => "sell"]), 400,
        qr/must have an action/, "another action");
    for my $case (["{}", "application/json", 415], ["a=1", undef, 415],
            ["action=approve&action=reject", $FORM, 400],
            ["action=%zz", $FORM, 400], ["action=%00", $FORM, 400],
            ["action=%ff", $FORM, 400],
            ["a=" . "x" x (1024 * 1024), $FORM, 413]) {
        my ($body, $type, $status) = @$case;
        page_is($web->request("POST", $path, body => $body,
            headers => { "Content-Type" => $type }), $status,
            qr/did not work/, "$status: " . substr $body, 0, 30);
    }
    is($w->enrollment($id)->{status}, "pending_approval", "nothing was done");
};

# The reasons that ADDRESS is suppressed for in W.
sub suppressed {
    my ($w, $address) = @_;
    return [map { $_->[0] } sql($database, "SELECT reason FROM"
        . " crmapi.suppression WHERE workspace_id = '" . $w->id
        . "' AND '$address' IN (email, phone_number)")];
}

subtest "unsubscribe by the page" => sub {
    my $w = workspace($httpd);
    my $id = enrollment($w, \@STEPS);
    my ($mail, $sms) = map { $_->[0] } steps_of($w, $id, "id");
    my $path = link_to($w, "unsubscribe", $mail);
    my $r = $web->get($path);
    page_is($r, 200, qr/z…\@x\.example/, "a page");
    unlike(html($r), qr/zoe\@/, "that does not tell the address");
    is($web->head($path)->status, 200, "HEAD");
    is_deeply(suppressed($w, "zoe\@x.example"), [], "nothing was done yet");
    is($w->enrollment($id)->{status}, "pending_approval", "nor stopped");
    $r = send_form($path, [%{fields_of($r)}]);
    page_is($r, 200, qr/You are unsubscribed.*z…\@x\.example.*will get no more/s,
        "the button");
    is_deeply(suppressed($w, "zoe\@x.example"), ["unsubscribed"],
        "it is suppressed");
    is($w->enrollment($id)->{status}, "stopped_unsubscribed",
        "what was planned has stopped");
    page_is(send_form($path, ["List-Unsubscribe" => "One-Click"]), 200,
        qr/You are unsubscribed/, "twice is no error");
    is_deeply(suppressed($w, "zoe\@x.example"), ["unsubscribed"],
        "and does no more");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.suppression WHERE"
        . " workspace_id = '" . $w->twin->{id} . "'"), 0,
        "another workspace's list is its own");
    for (["élodie\@x.example", "é…\@x.example"], ["12345", "…45"], ["1234", "…"]) {
        my ($address, $shown) = @$_;
        sql($database, "UPDATE crmapi.enrollment_step SET to_identifier =
            '$address' WHERE id = '$mail'");
        page_is($web->get($path), 200, qr/<strong>\Q$shown\E</, "$shown is shown of it");
    }
    my $phone = link_to($w, "unsubscribe", $sms);
    page_is($web->get($phone), 200, qr/<strong>…00</, "a number is masked");
    is(send_form($phone, ["List-Unsubscribe" => "One-Click"])->status, 200,
        "a number");
    is_deeply(suppressed($w, "+15550100"), ["unsubscribed"],
        "it is suppressed, too");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.suppression WHERE"
        . " phone_number = '+15550100' AND email IS NULL"), 1, "as a number");
};

# Mail programs make links of plain text, and take along what follows the URL.
subtest "what follows a link in a text is no part of it" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my ($mail) = map { $_->[0] } steps_of($w, $id, "id");
    my $path = link_to($w, "unsubscribe", $mail);
    my $review = link_to($w, "review", $id, other => admin($w));
    for my $end (split(/ /, ". .. , ; : ! / > ) ] } ' * = %22 %3E %29. %E2%80%9D"
            . " %C2%A0 %20"), ".%20Thanks") {
        page_is($web->get("$path$end"), 200, qr/Do you want to unsubscribe/,
            "unsubscribe: '$end'");
        page_is($web->get("$review$end"), 200, qr/Review before sending/,
            "review: '$end'");
    }
    # Thunderbird leaves a hyphen at the end out
    my ($at, $hyphen) = (time + 3600);
    for my $kind (["unsubscribe", $mail], ["review", $id, other => admin($w)]) {
        do { $hyphen = link_to($w, @$kind, expires => $at++) }
            until $hyphen =~ /[^-]-$/;
        is($web->get($hyphen =~ s/-+$/$_/r)->status, 200,
            "$kind->[0]: without the hyphen at its end, '$_'")
            for "", ".", "-.";
        is($web->get($hyphen =~ s/.-$//r)->status, 403, "but no other character");
    }
    my $r = $web->get("$review)");
    is(send_form("$review)", [%{fields_of($r)}, action => "save"])->status, 303,
        "its form is accepted");
    is_deeply(suppressed($w, "zoe\@x.example"), [], "nobody has left");
    page_is(send_form("$path>", ["List-Unsubscribe" => "One-Click"]), 200, qr/You are unsubscribed/, "by one click");
    is_deeply(suppressed($w, "zoe\@x.example"), ["unsubscribed"], "done");
};

subtest "RFC 8058: one click, by a mail program" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my ($mail) = map { $_->[0] } steps_of($w, $id, "id");
    my $path = link_to($w, "unsubscribe", $mail);
    for my $body ("List-Unsubscribe=No", "x=1", "List-Unsubscribe",
            "list-unsubscribe=One-Click", "List-Unsubscribe=One-Click2",
            "\r\n") {
        page_is($web->request("POST", $path, body => $body,
            headers => { "Content-Type" => $_ }), 400,
            qr/List-Unsubscribe=One-Click/, "not with '$body'")
            for $FORM, "text/plain";
    }
    is_deeply(suppressed($w, "zoe\@x.example"), [], "nothing was done");
    my $contact = sql($database, "SELECT contact_id FROM crmapi.enrollment"
        . " WHERE id = '$id'");
    sql($database, "DELETE FROM crmapi.contact WHERE id = '$contact'");
    my $r = $web->request("POST", $path, body => "--b\r\nContent-Disposition: "
        . "form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n",
        headers => { "Content-Type" => "multipart/form-data; boundary=b",
            Origin => "https://mail.example", "Sec-Fetch-Site" => "cross-site" });
    page_is($r, 200, qr/You are unsubscribed/,
        "multipart, from another site, the contact deleted meanwhile");
    is_deeply(suppressed($w, "zoe\@x.example"), ["unsubscribed"], "done");
};

subtest "RFC 8058: receivers differ in the body that they send" => sub {
    my $field = "List-Unsubscribe=One-Click";
    for my $case (["", $FORM], ["", undef], ["", "multipart/form-data"],
            ["", "application/json"], ["$field\r\n", $FORM],
            ["$field\n", $FORM], ["$field ", $FORM], [$field, undef],
            ["$field\r\n", "text/plain"], ["$field&x=1", $FORM],
            ["\r\n--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\""
                . "\r\n\r\nOne-Click\r\n--b--", "multipart/form-data; boundary=b"]) {
        my ($body, $type) = @$case;
        my $w = workspace($httpd, twin => 0);
        my $id = enrollment($w, \@STEPS);
        my ($mail) = map { $_->[0] } steps_of($w, $id, "id");
        page_is($web->request("POST", link_to($w, "unsubscribe", $mail),
            body => $body, headers => { $type ? ("Content-Type" => $type)
            : () }), 200, qr/You are unsubscribed/,
            "'$body' as " . ($type // "no type"));
        is_deeply(suppressed($w, "zoe\@x.example"), ["unsubscribed"], "done");
    }
};

subtest "contract 2.5: links that nobody has signed have a budget" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $admin = admin($w);
    my @made = (expires => time + 60, other => $admin);
    my $good = token($w, "review", $id, @made);
    my $strict = httpd(database => $database, children => 1,
        conf => "CrmApiReview On\nCrmApiAddressLimit 3\n");
    my $c = $strict->client;
    is($c->get("/crmapi/review/$good")->status, 200,
        "a good one costs nothing: $_") for 1 .. 5;
    my @statuses = map { $c->get("/crmapi/review/"
        . token($w, "review", $id, @made, key => $_ x 32))->status } 1 .. 4;
    is("@statuses", "403 403 403 429", "others do");
    my $r = $c->get("/crmapi/review/$good");
    page_is($r, 429, qr/This did not work/, "then nobody is served there");
    cmp_ok($r->header("Retry-After"), ">", 0, "for a while");
    $strict->stop;
};

subtest "where pages are, and where not" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $admin = admin($w);
    my $token = token($w, "review", $id, other => $admin,
        expires => time + 60);
    my $off = httpd(database => $database);
    is($off->client->get("/crmapi/review/$token")->status, 404,
        "Off by default");
    is($off->client->get("/crmapi/unsubscribe/$token")->status, 404,
        "both of them");
    $off->stop;
    my $elsewhere = httpd(database => $database, on => 0, modules =>
        ["rewrite", "proxy", "proxy_http"], conf => <<'END');
CrmApiReview /a/b/
ProxyPass / http://127.0.0.1:1/
RewriteEngine On
RewriteRule ^/old/(.*)$ /a/b/$1 [PT]
RewriteRule ^/a/b/elsewhere$ - [F]
END
    my $c = $elsewhere->client;
    page_is($c->get("/a/b/$token"), 200, qr/Review before/,
        "a path of one's own, with the API off, before a proxy");
    page_is($c->get("/old/$token"), 200, qr/Review before/,
        "a rule may lead there");
    is($c->get("/a/b/elsewhere")->status, 403, "or elsewhere");
    unlike($c->get("/a/b/elsewhere")->body, qr/This link/, "not our page");
    $elsewhere->expect_log(qr/AH00957: http: attempt to connect to 127/ => 1,
        qr/AH01114: HTTP: failed to make connection to backend/ => 1);
    cmp_ok($c->get("/crmapi/review/$token")->status, ">=", 500,
        "what is no page is the proxy's");
    $c->close;
    $elsewhere->stop;
    my $slug = sql($database, "SELECT slug FROM crmapi.workspace WHERE id = '"
        . $w->id . "'");
    my %status = (uc $w->id => 200, $slug => 200, uuid() => 403,
        "no-such" => 403);
    my $bound = httpd(database => $database, children => 1, on => 0,
        conf => join "", map { "<VirtualHost *>\nServerName v-$_\n"
            . "CrmApiReview On\nCrmApiWorkspace $_\n</VirtualHost>\n" }
            sort keys %status);
    for my $name (sort keys %status) {
        is($bound->client(host => "v-$name")->get("/crmapi/review/$token")
            ->status, $status{$name}, "CrmApiWorkspace $name");
    }
    $bound->stop;
    my $bad = httpd(no_start => 1);
    for my $value ("x", "/", "//", "/a", "a/", "/a//b/", "/api/v1/",
            "/../", "\"/a b/\"", "/a?/") {
        $bad->write_conf("CrmApiReview $value\n");
        my ($code, $words) = $bad->run("-t");
        ok($code && $words =~ /CrmApiReview must be On, Off or a path/,
            "CrmApiReview $value is refused") or diag($words);
    }
};

subtest "without a database" => sub {
    my $w = workspace($httpd, twin => 0);
    my $id = enrollment($w, \@STEPS);
    my $token = token($w, "review", $id, other => admin($w),
        expires => time + 60);
    my $empty = httpd(database => database(template => undef),
        conf => "CrmApiReview On\n", children => 1);
    $empty->expect_log(qr/CRM1301: the database has no schema/ => 1);
    my $r = $empty->client->get("/crmapi/review/$token");
    page_is($r, 503, qr/Please try again/, "a page says so");
    ok($r->header("Retry-After"), "with Retry-After");
    is($empty->client->get("/crmapi/review/x")->status, 403,
        "a bad link needs none");
    unlike($empty->log_text, qr/\Q$token\E/, "no token in the log");
    $empty->stop;
};

my $log = $httpd->log_text;
like($log, qr/resuming normal operations/, "there is an error log");
unlike($log, qr/[\w-]{100}/, "no token in the error log");
unlike(join("", map { s/"[^"]*"//r } split /^/, $httpd->access_log),
    qr/[\w-]{100}/, "nor in the access log but for the request's line");
like($httpd->access_log, qr{"GET review/\{token\}"|GET review/\{token\}}, "the access log has the route");
$web->close;
$httpd->stop;
done_testing;
