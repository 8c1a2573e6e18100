# SPDX-License-Identifier: Apache-2.0
# 73-originals.t: mails are kept as they came, and given out with their
# attachments (contract 18.3, 19.4)
# with sanitizers
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Process qw(read_file);
use CrmTest::Worker;
use MIME::Base64 qw(encode_base64);
use IO::Socket::INET;
use JSON::PP ();

my $PIECE = 131_072;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $sales = "sales-$$\@crm.example";
change($w, "agent", $w->agent, agent_email => $sales);
my $count = 0;

# Bytes that no compression makes smaller: LENGTH of them.
sub noise {
    my ($length) = @_;
    srand 18;
    return substr join("", map { pack "N", int rand 2**32 }
        0 .. $length / 4), 0, $length;
}

# A mail of PARTS, each [Content-Type, headers, content].
sub mail {
    my (@parts) = @_;
    $count++;
    return join "\n", "From: Ada <ada\@example.org>", "To: $sales",
        "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe_$count?=",
        "Message-ID: <o$count-$$\@example.org>", "MIME-Version: 1.0",
        "Content-Type: multipart/mixed; boundary=b", "",
        (map { my ($type, $headers, $content) = @$_;
            ("--b", "Content-Type: $type", @$headers, "", $content) } @parts),
        "--b--", "";
}

sub text { return ["text/plain; charset=utf-8", [], $_[0]] }

sub file {
    my ($name, $type, $bytes, @headers) = @_;
    return [$type, ["Content-Disposition: attachment; filename=\"$name\"",
        "Content-Transfer-Encoding: base64", @headers], encode_base64($bytes)];
}

# Deliver MAIL with OPTIONS; the path of its message, and the message.
sub taken {
    my ($mail, @options) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code, $out, $err) = crmapictl($database, { stdin => $mail }, "--json",
        "deliver", @options);
    is($code, 0, "it is taken") or diag($err);
    my $got = JSON::PP->new->decode($out);
    my $path = "/api/v1/conversations/$got->{conversation_id}/messages/"
        . $got->{message_id};
    my $r = $c->get($path);
    is($r->status, 200, "19.4 the message can be had by its id");
    return ($path, $r->data);
}

# What a download of BYTES says of itself.
sub is_file {
    my ($r, $bytes, $type, $disposition, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is($r->status, 200, $name) or return;
    ok($r->body eq $bytes, "$name: the same bytes")
        or diag(length $r->body);
    is($r->header("Content-Type"), $type, "$name: its type");
    is($r->header("Content-Disposition"), $disposition,
        "$name: is to be stored");
    is($r->header("Content-Security-Policy"), "sandbox", "$name: sandbox");
    is($r->header("X-Content-Type-Options"), "nosniff", "$name: nosniff");
    is($r->header("Cache-Control"), "private, no-store", "$name: as the API");
    is($r->header("Content-Length"), length $bytes, "$name: its length");
}

subtest "18.3 nothing of a mail is lost" => sub {
    my $long = join "\n", map { "line $_ of a long text" } 1 .. 6000;
    my $big = noise(300 * 1024);
    my $mail = mail(text($long), file("Größe \\\"1\\\".pdf", "application/pdf",
        $big), file("a.png", "image/png", "\x89PNG\r\n\x1a\n\0"));
    utf8::encode($mail);
    my ($path, $message) = taken($mail);
    is(length $message->{content}, 65_536, "the text is cut");
    is_file($c->get("$path/original"), $mail, "message/rfc822",
        "attachment; filename=\"Gr__e 1.eml\"; filename*=UTF-8''"
        . "Gr%C3%BC%C3%9Fe%201.eml", "the original");
    my @files = @{$message->{metadata}{attachments}};
    is_deeply([map { join " ", map { $_ // "none" } @$_{qw(content_type size
        stored)} } @files], ["application/pdf 307200 1", "image/png 9 1"],
        "metadata.attachments");
    is_deeply([sort keys %{$files[0]}], [qw(content_type filename id size
        stored)], "and their members");
    is_file($c->get("/api/v1/attachments/$files[0]{id}"), $big,
        "application/pdf", "attachment; filename=\"Gr__e _1_.pdf\";"
        . " filename*=UTF-8''Gr%C3%B6%C3%9Fe%20_1_.pdf", "a large one");
    is_file($c->get("/api/v1/attachments/$files[1]{id}"),
        "\x89PNG\r\n\x1a\n\0", "image/png",
        "attachment; filename=\"a.png\"", "a small one");
    is_deeply([grep { $_->{id} eq $message->{id} }
        @{$c->get($path =~ s{/[^/]+$}{}r)->data}], [$message],
        "19.4 as the list shows it");
};

subtest "sizes around a piece" => sub {
    my @sizes = (0, 1, $PIECE - 1, $PIECE, $PIECE + 1, 3 * $PIECE);
    my ($path, $message) = taken(mail(text("x"), map { file("$_.bin",
        "application/octet-stream", "\0" x $_) } @sizes));
    my @files = @{$message->{metadata}{attachments}};
    for my $i (0 .. $#sizes) {
        my $r = $c->get("/api/v1/attachments/$files[$i]{id}");
        is(length $r->body, $sizes[$i], "$sizes[$i] bytes");
        is($r->body =~ tr/\0//c, 0, "the right ones");
        my $head = $c->head("/api/v1/attachments/$files[$i]{id}");
        is($head->status, 200, "HEAD");
        is($head->header("Content-Length") // 0, $sizes[$i],
            "tells the length");
        is($head->body, "", "and sends nothing");
    }
    my $r = $c->get("/api/v1/attachments/$files[-1]{id}");
    my $tag = $r->header("ETag");
    ok($tag, "13.2 it has a tag");
    $r = $c->get("/api/v1/attachments/$files[-1]{id}",
        headers => { "If-None-Match" => $tag });
    is($r->status, 304, "and is not sent again");
    is($r->body, "", "without a body");
    isnt($c->get("/api/v1/attachments/$files[0]{id}")->header("ETag"), $tag,
        "another one has another tag");
};

subtest "RFC 9110, 14: a part of a file" => sub {
    my $bytes = noise(3 * $PIECE + 100);
    my $size = length $bytes;
    my ($path, $message) = taken(mail(text("x"), file("a.bin",
        "application/octet-stream", $bytes), file("0", "x/y", "")));
    my ($file, $empty) = map { "/api/v1/attachments/$_->{id}" }
        @{$message->{metadata}{attachments}};
    my $tag = $c->head($file)->header("ETag");
    for my $case ([0, 0], [0, $PIECE - 1], [0, $PIECE], [1, 99],
        [$PIECE - 1, $PIECE], [$PIECE, $PIECE], [$PIECE, 2 * $PIECE - 1],
        [$PIECE + 5, 3 * $PIECE + 5], [3 * $PIECE, $size - 1],
        [0, $size - 1], [$size - 1, $size - 1]) {
        my ($first, $last) = @$case;
        my $part = substr $bytes, $first, $last + 1 - $first;
        my @ways = ("$first-$last");
        push @ways, "$first-", "$first-" . 10 * $size, "-" . ($size - $first)
            if $last == $size - 1;
        for my $range (@ways) {
            my $r = $c->get($file, headers => { Range => "bytes=$range" });
            is($r->status, 206, $range);
            ok($r->body eq $part, "its bytes") or diag(length $r->body);
            is($r->header("Content-Range"), "bytes $first-$last/$size",
                "which they are");
            is($r->header("Content-Length"), length $part, "their length");
            is($r->header("ETag"), $tag, "of which file");
            is($r->header("Content-Security-Policy"), "sandbox", "sandbox");
        }
    }
    for my $never ("$size-", "$size-" . 2 * $size, "-0", "9" x 30 . "-") {
        my $r = $c->get($file, headers => { Range => "bytes=$never" });
        error_is($r, 416, "bad_request", $never);
        is($r->header("Content-Range"), "bytes */$size", "its size");
    }
    for my $ignored ("bytes=5-4", "bytes=x", "items=0-1", "bytes=0-1,9-10",
        "bytes=") {
        my $r = $c->get($file, headers => { Range => $ignored });
        is($r->status, 200, "$ignored is ignored");
        ok($r->body eq $bytes, "all bytes");
        is($r->header("Accept-Ranges"), "bytes", "ranges are possible");
    }
    for my $case ([$tag, 206], ['"other"', 200], ["W/$tag", 200],
        ["Thu, 26 Nov 2026 00:00:00 GMT", 200]) {
        my $r = $c->get($file, headers => { Range => "bytes=1-2",
            "If-Range" => $case->[0] });
        is($r->status, $case->[1], "If-Range: $case->[0]");
    }
    is($c->get($file, headers => { Range => "bytes=1-2",
        "If-None-Match" => $tag })->status, 304, "If-None-Match comes first");
    my $head = $c->head($file, headers => { Range => "bytes=1-2" });
    is($head->status, 200, "HEAD has no ranges");
    is($head->header("Content-Length"), $size, "and the whole length");
    error_is($c->get($empty, headers => { Range => "bytes=0-" }), 416,
        "bad_request", "nothing has no part");
    is($c->get($empty)->status, 200, "but is there");
    my $r = $c->get("$path/original", headers => { Range => "bytes=6-8" });
    is($r->status . $r->body, "206Ada", "a part of an original");
    error_is($c->get($file, key => undef, headers => { Range => "bytes=0-" }),
        401, "unauthorized", "for nobody else");
};

subtest "hostile names and types" => sub {
    for my $case (
        ["a\r\n b", "text/html", "text/html", "attachment; filename=\"a b\""],
        ["a\x01b", "x", "text/plain",      # what is no type: RFC 2045, 5.2
            "attachment; filename=\"ab\""],
        ["../../etc/passwd", "x/y", "x/y",
            "attachment; filename=\".._.._etc_passwd\""],
        ["100%41.txt", "TEXT/Plain", "text/plain", "attachment;"
            . " filename=\"100%41.txt\"; filename*=UTF-8''100%2541.txt"],
        ["cod\x{202e}gpj.exe", "image/svg+xml", "image/svg+xml", "attachment;"
            . " filename=\"codgpj.exe\""],
    ) {
        my ($name, $type, $shown, $disposition) = @$case;
        utf8::encode($name);
        my ($path, $message) = taken(mail(text("x"), file($name, $type,
            "<script>alert(1)</script>")));
        is_file($c->get("/api/v1/attachments/"
            . $message->{metadata}{attachments}[0]{id}),
            "<script>alert(1)</script>", $shown, $disposition, $type);
    }
};

subtest "who may" => sub {
    my ($path, $message) = taken(mail(text("x"), file("a", "a/b", "secret")));
    my $file = "/api/v1/attachments/$message->{metadata}{attachments}[0]{id}";
    my $twin = $httpd->client(key => $w->twin->make_key("read,write"),
        headers => { "X-Crm-Twin" => 1 });
    for my $at ($path, "$path/original", $file) {
        error_is($c->get($at, key => undef), 401, "unauthorized", "no key");
        is($c->with_key($w->make_key("read"))->get($at)->status, 200,
            "a key that reads");
        my $unknown = $c->get($at =~ s/$message->{id}|[^\/]+$/uuid()/er);
        my $theirs = $twin->get($at);
        error_is($theirs, 404, "not_found", "another workspace's");
        is($theirs->body, $unknown->body, "2.1 as an unknown one");
        error_is($c->get($at =~ s/[^\/]+$/x/r), 404, "not_found", "no id")
            if $at ne "$path/original";
        error_is($c->$_($at), 405, "method_not_allowed", $_)
            for qw(delete);
    }
    my ($other) = taken(mail(text("y")) =~ s/ada\@/eve\@/r);
    my ($talk) = $other =~ m{(.*)/messages/};
    error_is($c->get("$talk/messages/$message->{id}"), 404, "not_found",
        "below another conversation");
    error_is($c->get("$talk/messages/$message->{id}/original"), 404,
        "not_found", "nor its original");
};

subtest "include=html" => sub {
    my $html = '<p onclick="x()">Hi <img src="cid:logo@x"><img src="cid:none">'
        . '<img src="https://t.example/p.gif" width="1"><script>x()</script>'
        . '<a href="javascript:x()">a</a><a href="https://x.example/">b</a>';
    my ($path, $message) = taken(mail(text("plain"), ["text/html", [], $html],
        ["image/png", ["Content-ID: <logo\@x>"], "png"]));
    my ($id) = map { $_->{id} } @{$message->{metadata}{attachments}};
    my $link = 'target="_blank" rel="noopener noreferrer nofollow"';
    my $shown = '<div style="white-space: pre-wrap">plain</div>'
        . "<p>Hi <img src=\"/api/v1/attachments/$id\"><img>%s<a>a</a>"
        . "<a href=\"https://x.example/\" $link>b</a></p>";
    my $local = sprintf $shown, '<img width="1">';
    my $remote = sprintf $shown, '<img src="https://t.example/p.gif" width="1">';
    is($c->get($path, query => { include => "html" })->data->{html}, $local,
        "without remote content");
    is($c->get($path, query => { include => "remote_html" })
        ->data->{remote_html}, $remote, "with it, for who asks");
    my ($list) = $path =~ m{(.*)/};
    my ($listed) = grep { $_->{id} eq $message->{id} } @{$c->get($list,
        query => { include => "html,metadata", page_size => 100 })->data};
    is_deeply($listed, { %$message, html => $local }, "in the list as well");
    ($path) = taken(mail(text("plain")));
    ok(exists $c->get($path, query => { include => "html" })->data->{html},
        "a mail without HTML");
    is($c->get($path, query => { include => "html" })->data->{html}, undef,
        "has none");
    ($path) = taken(mail(["text/html", [], $html]), "--no-original");
    is($c->get($path, query => { include => "html" })->data->{html}, undef,
        "--no-original");
};

subtest "an image is that of its whole Content-ID" => sub {
    my ($path, $message) = taken(mail(["text/html", [], '<img src="cid:ab">'
        . '<img src="cid:a">'], map { my $id = $_; ["image/png",
            ["Content-ID: <$id>"], $id] } qw(abc a ab)));
    my %id;
    @id{qw(abc a ab)} = map { $_->{id} } @{$message->{metadata}{attachments}};
    is($c->get($path, query => { include => "html" })->data->{html}, join("",
        map { "<img src=\"/api/v1/attachments/$id{$_}\">" } qw(ab a)), "each");
};

subtest "a mail is taken with all that it carries, or not at all" => sub {
    sql($database, "ALTER TABLE crmapi.attachment ADD CONSTRAINT no_poison
        CHECK (filename <> 'poison')");
    my $before = count_rows($w, "message");
    my $mail = mail(text("x"), file("poison", "a/b", "12345"));
    my ($code, $out, $err) = crmapictl($database, { stdin => $mail }, "deliver");
    is($code, 75, "it is to be tried again");
    is(count_rows($w, "message"), $before, "no message is there without its file");
    sql($database, "ALTER TABLE crmapi.attachment DROP CONSTRAINT no_poison");
    my (undef, $message) = taken($mail);
    is(scalar @{$message->{metadata}{attachments}}, 1, "then it is taken");
    taken($mail);
    is(sql($database, "SELECT count(*) FROM crmapi.attachment
        WHERE filename = 'poison'"), 1, "and its file once");
};

subtest "what is not kept" => sub {
    my ($path, $message) = taken(mail(text("x"), file("a", "a/b", "12345"),
        file("b", "a/b", "123456")), "--no-original", "--attachment-bytes", 5);
    error_is($c->get("$path/original"), 404, "not_found", "--no-original");
    my @files = @{$message->{metadata}{attachments}};
    is_deeply([map { $_->{stored} ? 1 : 0 } @files], [1, 0],
        "--attachment-bytes");
    is($c->get("/api/v1/attachments/$files[0]{id}")->body, "12345", "stored");
    error_is($c->get("/api/v1/attachments/$files[1]{id}"), 404, "not_found",
        "not stored");
};

subtest "upkeep deletes originals, no attachments" => sub {
    my ($path, $message) = taken(mail(text("x"), ["text/html", [], "<p>x"],
        file("a", "a/b", "kept")));
    my ($path2) = taken(mail(text("y")));
    sql($database, "UPDATE crmapi.original SET created_at = now() - interval"
        . " '91 days' WHERE message_id = '$message->{id}'");
    my $worker = CrmTest::Worker->new(database => $database);
    $worker->once;
    error_is($c->get("$path/original"), 404, "not_found", "90 days are over");
    is(scalar sql($database, "SELECT count(*) FROM crmapi.message_html"
        . " WHERE message_id = '$message->{id}'"), 0, "its HTML goes as well");
    is($c->get("$path2/original")->status, 200, "the others stay");
    is($c->get("/api/v1/attachments/$message->{metadata}{attachments}[0]{id}")
        ->body, "kept", "and attachments");
};

# --- large ones ---------------------------------------------------------------

my $huge = noise(10 * 1024 * 1024);
my ($path, $message) = taken(mail(text("x"), file("huge.bin",
    "application/octet-stream", $huge)), "--max-message", 30_000_000);
my $file = "/api/v1/attachments/$message->{metadata}{attachments}[0]{id}";

# A request for AT, of which nothing is read.
sub asked {
    my ($server, $at) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
        PeerPort => $server->port, Proto => "tcp") or die $@;
    $socket->autoflush(1);
    print $socket "GET $at HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        . "Authorization: Bearer " . $w->key . "\r\n\r\n";
    return $socket;
}

# The memory of SERVER's processes that is theirs alone, in KiB.
sub memory {
    my ($server) = @_;
    my $sum = 0;
    for my $pid ($server->pid, $server->children) {
        my ($own) = read_file("/proc/$pid/smaps_rollup", "")
            =~ /^Pss_Anon:\s+(\d+)/m;
        $sum += $own // 0;
    }
    return $sum;
}

subtest "16 downloads of 10 MiB at once are not held in memory" => sub {
    plan(skip_all => "prefork has one request a process")
        if ($ENV{CRM_MPM} || "") eq "prefork";
    ok($c->get($file)->body eq $huge, "the same bytes");
    my $before = memory($httpd);
    cmp_ok($before, ">", 0, "the memory is known");
    my @sockets = map { asked($httpd, $file) } 1 .. 16;
    my ($most, %got) = (0);
    # all are under way at the same time, and read in turns
    while (@sockets) {
        for my $socket (@sockets) {
            my $n = sysread $socket, my $bytes, 262_144;
            $got{$socket} += $n // 0;
            undef $socket if !$n;
        }
        @sockets = grep { defined } @sockets;
        my $now = memory($httpd);
        $most = $now if $now > $most;
    }
    is(scalar(grep { $_ > length $huge } values %got), 16, "all are whole");
    note("grew by " . ($most - $before) . " KiB");
    # sanitizers keep what was freed
    cmp_ok($most - $before, "<", 32_768, "httpd grows by less than 32 MiB")
        unless CrmTest::sanitized();
};

subtest "slow clients hold no connection to the database" => sub {
    plan(skip_all => "prefork has one request a process")
        if ($ENV{CRM_MPM} || "") eq "prefork";
    my $tight = httpd(database => $database, unlimited => 1,
        dbd => "DBDMin 1\nDBDKeep 1\nDBDMax 1\n");
    my @slow = map { asked($tight, $file) } 1 .. 8;
    for my $socket (@slow) {
        sysread $socket, my $bytes, 1000;
        like($bytes, qr/^HTTP\/1.1 200/, "a download begins");
    }
    is($tight->client(key => $w->key)->get("/api/v1/agents")->status, 200,
        "others are served") for 1 .. 5;
    close $_ for @slow;
    $tight->stop("WINCH");      # threads may still send: see settle()
};

# The first piece waits for the second one, so nothing of it has been sent.
subtest "what cannot be read before it begins is an error" => sub {
    my (undef, $torn) = taken(mail(text("x"), file("torn.html", "text/html",
        noise($PIECE + 1))));
    my $id = $torn->{metadata}{attachments}[0]{id};
    sql($database, "DELETE FROM crmapi.attachment_piece WHERE attachment_id = '$id'"
        . " AND number = 2");
    my $r = $c->get("/api/v1/attachments/$id");
    error_is($r, 404, "not_found", "it was deleted meanwhile");
    is($r->header($_), undef, "which is no file: $_")
        for qw(Content-Disposition Content-Security-Policy ETag Accept-Ranges);
    is($c->get("/api/v1/agents")->status, 200, "the connection goes on");
};

subtest "what is deleted while it is sent breaks off" => sub {
    my $socket = asked($httpd, $file);
    sysread $socket, my $got, 1000;
    like($got, qr/^Content-Length: 10485760\r$/m, "it begins");
    sql($database, "DELETE FROM crmapi.conversation WHERE id = '"
        . $message->{conversation_id} . "'");
    my $length = length $got;
    while (my $n = sysread $socket, my $more, 262_144) {
        $length += $n;
    }
    cmp_ok($length, "<", length $huge, "the client sees that it is not whole");
    error_is($c->get($file), 404, "not_found", "afterwards it is gone");
    is(scalar sql($database, "SELECT (SELECT count(*) FROM crmapi.original o"
        . " WHERE o.message_id = '$message->{id}') + (SELECT count(*) FROM"
        . " crmapi.attachment_piece p WHERE p.attachment_id ="
        . " '$message->{metadata}{attachments}[0]{id}')"), 0,
        "with its conversation");
};

$httpd->stop;
done_testing;
