# SPDX-License-Identifier: Apache-2.0
# 18-etags.t: entity tags: ETag, If-None-Match, If-Match (contract 13.2; RFC
# 9110, 8.8.3, 13.1)
use strict;
use warnings;
use Compress::Zlib ();
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Samples;

my $database = database();
my $httpd = httpd(database => $database, children => 2, unlimited => 1);
my $w = workspace($httpd);
my $c = $w->client;
my $samples = CrmTest::Samples->new($w);
my $paths = $samples->openapi->{document}{paths};
my $TAG = qr/^"(?:[\w-]{10}\.)?[\w-]{8}"$/;

my @SHOWN = qw(ETag Vary Content-Type Content-Encoding Content-Length);

# A new contact's path and tag.
sub contact {
    my (%fields) = @_;
    my $r = $c->post("/api/v1/contacts", { bot_id => $w->agent, %fields });
    return ($r->header("Location"), $r->header("ETag"));
}

# Get PATH if it is not what TAGS name; change or delete it if it is.
sub get_if { $c->get($_[0], headers => { "If-None-Match" => $_[1] }) }
sub patch_if {
    my ($path, $tags, $body, $client) = @_;
    return ($client // $c)->patch($path, $body,
        headers => { "If-Match" => $tags });
}
sub delete_if { $c->delete($_[0], headers => { "If-Match" => $_[1] }) }

subtest "13.2 which answers have one, as the document says" => sub {
    for my $path (sort keys %$paths) {
        my $operation = $paths->{$path}{get} or next;
        # a workspace has nothing that tells when it changed
        next if $path =~ m{openapi\.json$|by-email$|/workspace$};
        my $r = $c->get($samples->path($path, $samples->id_for($path)));
        status_is($r, 200, "GET $path");
        my $declared = exists $operation->{responses}{200}{headers}{ETag};
        my $file = $r->header("Content-Disposition");
        is($declared, defined $file || ref $r->data eq "HASH",
            "it has one if it shows one row or a file");
        $declared ? like($r->header("ETag"), $TAG, "a strong one")
            : is($r->header("ETag"), undef, "no list has one");
    }
    my ($contact) = contact(emails => ['a@b.example']);
    is($c->get("/api/v1/contacts/by-email?email=a\@b.example")->header("ETag"),
        $c->get($contact)->header("ETag"), "one resource, one tag");
};

subtest "13.2 POST, PATCH and GET tell the same tag" => sub {
    for my $case (["contacts", { bot_id => $w->agent }, { notes => "new" }],
            ["companies", { bot_id => $w->agent, name => "A" },
                { name => "B" }],
            ["pipeline-cards", { title => "A", pipeline_stage_id =>
                ($samples->ids("PipelineStage"))[0] }, { title => "B" }],
            ["activities", { activity_type => "note", contact_id =>
                ($samples->ids("Contact"))[0] }, { title => "B" }]) {
        my ($name, $body, $change) = @$case;
        my $r = $c->post("/api/v1/$name", $body);
        my $path = $r->header("Location");
        my $tag = $r->header("ETag");
        is($c->get($path)->header("ETag"), $tag, "$name: of POST and GET");
        is($c->patch($path, {})->header("ETag"), $tag,
            "$name: a PATCH that changes nothing");
        $r = $c->patch($path, $change);
        isnt($r->header("ETag"), $tag, "$name: a change changes it");
        is($c->get($path)->header("ETag"), $r->header("ETag"),
            "$name: of PATCH and GET");
    }
};

subtest "13.2 other answers of POST that show a resource have its tag" => sub {
    my $chat = $w->conversation("chat");
    my $enrollment = "/api/v1/sequences/enrollments/"
        . ($samples->ids("Enrollment"))[0];
    for my $case (["/api/v1/conversations/$chat/messages", { content => "x" }],
            ["/api/v1/suppressions", { email => 'tag@x.example' }],
            ["$enrollment/stop", undef, $enrollment]) {
        my ($path, $body, $shown) = @$case;
        my $r = $c->post($path, $body);
        my $get = $c->get($shown // $r->header("Location"));
        like($r->header("ETag"), $TAG, "POST $path");
        is($r->header("ETag"), $get->header("ETag"), "is what GET tells");
    }
};

subtest "13.2 a derived field changes the tag, not the part before the dot"
    => sub {
    my ($path, $tag) = contact();
    $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $path =~ s{.*/}{}r });
    my $now = $c->get($path)->header("ETag");
    isnt($now, $tag, "last_contacted_at is another");
    is($now =~ s/\..*//r, $tag =~ s/\..*//r, "updated_at is not");
    status_is(get_if($path, $tag), 200, "so GET sends it again");
    status_is(patch_if($path, $tag, { notes => "x" }), 200,
        "and nothing was overwritten");
};

subtest "13.2 If-None-Match: 304" => sub {
    my ($path, $tag) = contact();
    my ($other) = (contact())[1];
    for my $tags ($tag, "W/$tag", "\"x\", $tag", "$other,$tag", "*",
            ["\"x\"", $tag]) {
        my $r = get_if($path, $tags);
        my $name = ref $tags ? "two headers" : $tags;
        status_is($r, 304, $name);
        is($r->header("ETag"), $tag, "$name: with the tag");
        is($r->header("Content-Type"), undef, "$name: and no body");
        is($r->header("Vary"), undef, "$name: nothing compresses");
        my $head = $c->head($path, headers => { "If-None-Match" => $tags });
        status_is($head, 304, "$name: HEAD, too");
        is($head->header("ETag"), $tag, "$name: HEAD tells the tag");
        ok(defined $r->header("X-Request-Id"), "5.4 X-Request-Id");
    }
    for my $tags ($other, "W/$other", '"x"', '""') {
        is(get_if($path, $tags)->body, $c->get($path)->body, "$tags: all of it");
    }
    status_is(get_if($path, $tag), 304, "a connection goes on after it");
    status_is(get_if("/api/v1/contacts/" . uuid(), "*"), 404,
        "404 comes before");
    status_is($c->with_key(undef)->get($path,
        headers => { "If-None-Match" => "*" }), 401, "and 401");
    status_is($c->get("/api/v1/contacts", headers =>
        { "If-None-Match" => "*" }), 200, "a list does not look at it");
    for my $tags ("x", "\"x", "*, $tag", "") {
        error_is(get_if($path, $tags), 422, "validation_error",
            "malformed: $tags", ["If-None-Match"]);
    }
};

subtest "RFC 9110, 13.1: both headers with every method" => sub {
    my ($path, $tag) = contact(notes => "one");
    my $other = (contact())[1];
    my $none = sub {
        my ($method, $tags) = @_;
        return $c->request($method, $path, ($method eq "PATCH"
            ? (json => { notes => "two" }) : ()),
            headers => { "If-None-Match" => $tags });
    };
    for my $tags ($tag, "W/$tag", "\"x\", $tag", "*", ['"x"', $tag]) {
        my $name = ref $tags ? "two headers" : $tags;
        error_is($none->($_, $tags), 412, "precondition_failed",
            "13.1.2 $_ If-None-Match: $name") for "PATCH", "DELETE";
    }
    is($c->get($path)->header("ETag"), $tag, "and it is what it was");
    is($none->("PATCH", "*")->message, "The resource matches If-None-Match",
        "the message names the header");
    error_is($none->($_, "x"), 422, "validation_error", "$_: malformed",
        ["If-None-Match"]) for "PATCH", "DELETE";
    error_is($c->patch("/api/v1/contacts/" . uuid(), {}, headers =>
        { "If-None-Match" => "*" }), 404, "not_found", "404 comes before");
    for my $tags ($tag, "*", "\"x\", $tag") {
        is($c->get($path, headers => { "If-Match" => $tags })->data->{notes},
            "one", "13.1.1 GET If-Match: $tags");
    }
    for my $tags ($other, "W/$tag", '"x"') {
        my $r = $c->get($path, headers => { "If-Match" => $tags });
        error_is($r, 412, "precondition_failed", "GET If-Match: $tags");
        my $head = $c->head($path, headers => { "If-Match" => $tags });
        status_is($head, 412, "HEAD, too");
        is($head->body, "", "and it has no body");
    }
    error_is($c->get($path, headers => { "If-Match" => "x" }), 422,
        "validation_error", "GET: malformed", ["If-Match"]);
    my $both = sub { { "If-Match" => $_[0], "If-None-Match" => $_[1] } };
    status_is($c->get($path, headers => $both->('"x"', "*")), 412,
        "13.2.2 If-Match comes first");
    status_is($c->get($path, headers => $both->($tag, $tag)), 304, "then it");
    error_is($c->patch($path, {}, headers => $both->($tag, $tag)), 412,
        "precondition_failed", "of a write it is 412");
    status_is($c->patch($path, { notes => "two" }, headers =>
        $both->($tag, $other)), 200, "what holds of both is done");
    status_is($none->("PATCH", $tag), 200, "an old tag is not what it has");
    status_is($none->("DELETE", $tag), 204, "DELETE");
    error_is($none->("DELETE", "*"), 404, "not_found", "and it is gone");
};

subtest "13.2 agents and submissions have no updated_at" => sub {
    for my $path ("/api/v1/agents/{id}", "/api/v1/submissions/{id}") {
        my $id = $samples->id_for($path);
        my $at = $path =~ s/\{id\}/$id/r;
        my $tag = $c->get($at)->header("ETag");
        unlike($tag, qr/\./, "$path: its tag is the hash alone");
        status_is(get_if($at, $tag), 304, "$path: 304");
    }
};

subtest "13.2 If-Match: 412 and nothing changed" => sub {
    my ($path, $tag) = contact(notes => "one");
    my $r = patch_if($path, $tag, { notes => "two" });
    status_is($r, 200, "the tag is right");
    my $new = $r->header("ETag");
    for my $tags ($tag, "W/$new", '"x"', '""', "\"x\", $tag") {
        my $before = $c->get($path)->body;
        for my $body ({ notes => "three" }, {}) {
            error_is(patch_if($path, $tags, $body), 412, "precondition_failed",
                "PATCH with $tags");
        }
        error_is(delete_if($path, $tags), 412, "precondition_failed",
            "DELETE with $tags");
        is($c->get($path)->body, $before, "and it is what it was");
    }
    for my $tags ("x", "$new x", "*, $new", "\"") {
        error_is(patch_if($path, $tags, { notes => "x" }), 422,
            "validation_error", "malformed: $tags", ["If-Match"]);
        error_is(delete_if($path, $tags), 422, "validation_error",
            "DELETE, malformed: $tags", ["If-Match"]);
    }
    is_deeply(patch_if($path, "x", { notes => 1, nonsense => 1 })->fields,
        ["If-Match", "nonsense", "notes"], "5.6 every wrong field at once");
    error_is(patch_if($path, $tag, { notes => 1 }), 422, "validation_error",
        "2 fields come before", ["notes"]);
    error_is(patch_if($path, $tag, { company_id => uuid() }), 422,
        "validation_error", "2 and so do references", ["company_id"]);
    my $gone = "/api/v1/contacts/" . uuid();
    error_is(patch_if($gone, $_, {}), 404, "not_found", "2 and so does 404")
        for $tag, "*";
    status_is(patch_if($path, "\"x\", $new", { notes => "four" }), 200,
        "one of two is right");
    status_is(patch_if($path, "*", { notes => "five" }), 200, "*: it exists");
    status_is(delete_if($path, $c->get($path)->header("ETag")), 204, "DELETE");
    error_is(delete_if($path, "*"), 404, "not_found", "* of nothing");
};

subtest "13.2 a conversation's tag: what it shows, and what it does not" => sub {
    my $id = $w->conversation("chat");
    my $path = "/api/v1/conversations/$id";
    my $r = $c->get($path);
    ok(!exists $r->data->{updated_at}, "its updated_at is not shown");
    my $tag = $r->header("ETag");
    $r = patch_if($path, $tag, { internal_notes => "mine" });
    status_is($r, 200, "PATCH");
    is($c->get($path)->header("ETag"), $r->header("ETag"), "of PATCH and GET");
    error_is(patch_if($path, $tag, { internal_notes => "other" }), 412,
        "precondition_failed", "the old tag");
    $tag = $r->header("ETag");
    sql($database, "UPDATE crmapi.conversation SET last_message = 'new'
        WHERE id = '$id'");
    error_is(patch_if($path, $tag, { archived => true }), 412,
        "precondition_failed", "what others than the API change counts");
    $tag = $c->get($path)->header("ETag");
    sql($database, "UPDATE crmapi.conversation SET active = active
        WHERE id = '$id'");
    is($c->get($path)->header("ETag"), $tag, "6.6 a change of nothing does not");
    status_is(delete_if($path, $tag), 204, "DELETE");
    error_is(delete_if($path, $tag), 412, "precondition_failed",
        "it is another now: deleted");
    status_is($c->delete($path), 204, "8.1 without If-Match it is 204 again");
};

# The first of the ids that are there for PATH, and the query that it needs.
sub address {
    my ($path) = @_;
    my $id = $samples->id_for($path);

    return $samples->path($path, $id) if defined $id;
    my ($row) = grep { @{$_->{emails}} } @{$c->get("/api/v1/contacts")->data};
    return "$path?email=$row->{emails}[0]{email}";
}

subtest "13.2 every operation that takes a condition looks at it" => sub {
    for my $template (sort keys %$paths) {
        my $item = $paths->{$template};
        my %takes = map { my $method = $_; map { ("$method $_->{name}" => 1) }
            map { $samples->openapi->resolve($_) }
            @{$item->{$method}{parameters}} } keys %$item;
        if ($takes{"get If-None-Match"}) {
            my ($path, $query) = split /\?/, address($template);
            my $get = sub { $c->get($path, query => $query, headers =>
                { "If-None-Match" => $_[0] }) };
            my $tag = $get->('"x"')->header("ETag");
            status_is($get->($tag), 304, "GET $template: its tag");
            status_is($get->('"x"'), 200, "GET $template: another");
            status_is($c->get($path, query => $query, headers =>
                { "If-Match" => $_->[0] }), $_->[1], "GET $template: $_->[0]")
                for [$tag, 200], ['"x"', 412];
        }
        if ($takes{"patch If-Match"}) {
            my $path = address($template);
            my $tag = $c->get($path)->header("ETag");
            error_is(patch_if($path, '"x"', {}), 412, "precondition_failed",
                "PATCH $template: another tag");
            status_is(patch_if($path, $tag, {}), 200,
                "PATCH $template: its tag");
            error_is($c->patch($path, {}, headers =>
                { "If-None-Match" => $tag }), 412, "precondition_failed",
                "PATCH $template: none of its tag");
        }
        if ($takes{"delete If-Match"}) {
            my $path = address($template);
            my $tag = $c->get($path)->header("ETag");
            error_is(delete_if($path, '"x"'), 412, "precondition_failed",
                "DELETE $template: another tag");
            error_is($c->delete($path, headers => { "If-None-Match" => "*" }),
                412, "precondition_failed", "DELETE $template: none at all");
            status_is($c->get($path), 200, "DELETE $template: it is there");
            next if $template =~ /conversations/;   # others need it: below
            status_is(delete_if($path, $tag), 204,
                "DELETE $template: its tag");
            status_is($c->get($path), 404, "DELETE $template: it is gone");
        }
    }
};

subtest "13.1, 13.2 If-Match with an Idempotency-Key" => sub {
    my ($path, $tag) = contact(notes => "one");
    my $send = sub {
        my ($method, $tag, $key, $body) = @_;
        return $c->request($method, $path, ($body ? (json => $body) : ()),
            headers => { "If-Match" => $tag, "Idempotency-Key" => $key });
    };
    my $first = $send->("PATCH", $tag, "a", { notes => "two" });
    status_is($first, 200, "the tag is right");
    my $again = $send->("PATCH", $tag, "a", { notes => "two" });
    status_is($again, 200, "sent again, it is not refused for its old tag");
    is($again->header("Idempotent-Replayed"), "true", "but answered again");
    is($again->body, $first->body, "with the same body");
    my $new = $c->get($path)->header("ETag");
    error_is($send->("PATCH", $tag, "b", { notes => "three" }), 412,
        "precondition_failed", "another key with the old tag");
    my $r = $send->("PATCH", $new, "b", { notes => "three" });
    status_is($r, 200, "a 412 has not used the key up");
    is($r->header("Idempotent-Replayed"), undef, "it is done");
    is($c->get($path)->data->{notes}, "three", "once");
    error_is($send->("DELETE", $new, "c"), 412, "precondition_failed",
        "DELETE with an old tag");
    $new = $c->get($path)->header("ETag");
    status_is($send->("DELETE", $new, "c"), 204, "DELETE with the tag");
    $r = $send->("DELETE", $new, "c");
    status_is($r, 204, "DELETE again");
    is($r->header("Idempotent-Replayed"), "true", "is answered again");
};

# Send a PATCH of PATH with TAGS by CLIENT, without waiting for its answer.
sub send_patch {
    my ($client, $path, $tags, $notes) = @_;
    $client->ask("PATCH", $path, key => $w->key, json => { notes => $notes },
        headers => { "If-Match" => $tags });
}

subtest "13.2 two PATCHes with one ETag at once, 1,000 times" => sub {
    my ($path, $tag) = contact(notes => "0");
    my @clients = map { $w->client } 1, 2;
    my ($rounds, %seen, %won) = (1000);

    $_->socket for @clients;
    for my $round (1 .. $rounds) {
        send_patch($clients[$_], $path, $tag, "$round $_")
            for $round % 2 ? (0, 1) : (1, 0);
        my @r = map { $_->read_response("PATCH") } @clients;
        $seen{join " ", sort map { $_->status } @r}++;
        my ($winner) = grep { $r[$_]->status == 200 } 0, 1;
        last unless defined $winner;
        $won{($winner + $round) % 2}++;
        $tag = $r[$winner]->header("ETag");
    }
    is_deeply(\%seen, { "200 412" => $rounds }, "always one 200 and one 412");
    is(scalar keys %won, 2, "won by the first and by the second");
    is($c->get($path)->header("ETag"), $tag, "the last 200 is what is there");
};

subtest "13.2 two processes do so" => sub {
    my ($path, $tag) = contact(notes => "0");
    for my $round (1 .. 20) {
        my @statuses = sort(in_processes(2, sub {
            my ($n) = @_;
            return patch_if($path, $tag, { notes => "$round $n" },
                $w->client)->status;
        }));
        is("@statuses", "200 412", "round $round") or last;
        $tag = $c->get($path)->header("ETag");
    }
};

subtest "13.2 reads that share a statement" => sub {
    my @contacts = map { [contact(notes => "shared $_")] } 1 .. 6;
    my @wrong = map { @$_ } in_processes(6, sub {
        my ($n) = @_;
        my $client = $w->client;
        my ($path, $tag) = @{$contacts[$n - 1]};
        my @wrong;
        for (1 .. 40) {
            my $r = $client->get($path,
                headers => { "If-None-Match" => $tag });
            push @wrong, $r->text if $r->status != 304
                || $r->header("ETag") ne $tag;
            $r = $client->get($path, headers =>
                { "If-None-Match" => $contacts[$n % 6][1] });
            push @wrong, $r->text if $r->status != 200
                || $r->data->{notes} ne "shared $n";
        }
        return \@wrong;
    });
    is_deeply(\@wrong, [], "each has its own tag");
};
$httpd->stop;

# METHOD PATH by CLIENT, which accepts CODING, with more HEADERS. Not by
# request(), which would have a compressed body checked as JSON.
sub ask_for {
    my ($client, $method, $path, $coding, %headers) = @_;
    return $client->ask($method, $path, key => $w->key, headers => {
        "Accept-Encoding" => $coding, %headers })->read_response($method);
}

# What the filter of CODING does to answers, and to the tag: SUFFIX is added;
# undef: there is none.
sub compressed {
    my ($httpd, $coding, $suffix) = @_;
    my $client = $httpd->client(key => $w->key);
    my $plain = $httpd->client;
    my ($path, $tag) = contact_with($client);
    my $sent = defined $suffix ? $tag =~ s/"$/$suffix"/r : undef;

    for my $at ($path, "/api/v1/contacts") {
        my $r = ask_for($plain, "GET", $at, $coding);
        my $json = $client->get($at)->body;
        is($r->header("Content-Encoding"), $coding, "$at is compressed");
        is($r->header("Content-Length"), length $r->body, "Content-Length");
        cmp_ok(length $r->body, "<", length $json, "is shorter");
        is(Compress::Zlib::memGunzip($r->body), $json, "it is the same JSON")
            if $coding eq "gzip";
        like($r->header("Vary"), qr/\bAccept-Encoding\b/, "Vary");
        is($r->header("ETag"), $at eq $path ? $sent : undef, "ETag");
        my $head = ask_for($plain, "HEAD", $at, $coding);
        is_deeply([map { scalar $head->header($_) } @SHOWN],
            [map { scalar $r->header($_) } @SHOWN],
            "HEAD has the same headers");
        my $other = ask_for($plain, "GET", $at, "identity");
        is($other->header("Content-Encoding"), undef, "identity: it is not");
        is($other->header("Content-Length"), length $json, "its length");
        like($other->header("Vary"), qr/\bAccept-Encoding\b/, "Vary, too");
        is($other->header("ETag"), $at eq $path ? $tag : undef,
            "and the tag of the API");
    }
    my @tags = ($tag, $sent // ());
    for my $have (@tags) {
        for my $method ("GET", "HEAD") {
            my $r = ask_for($plain, $method, $path, $coding,
                "If-None-Match" => $have);
            is($r->status, 304, "$method If-None-Match: $have");
            is($r->header("Content-Encoding"), undef, "it has no body");
            like($r->header("ETag"), qr/^\Q@{[$tag =~ s{"$}{}r]}\E/, "a tag");
            like($r->header("Vary"), qr/\bAccept-Encoding\b/,
                "Vary, as the 200 would have (RFC 9110, 15.4.5)");
        }
        status_is($client->get($path, headers => { "If-None-Match" => $have }),
            304, "without compression, too");
    }
    my $have = $tags[-1];
    status_is($client->patch($path, { notes => "x" },
        headers => { "If-Match" => $have }), 200, "If-Match: $have");
    error_is($client->patch($path, { notes => "y" },
        headers => { "If-Match" => $have }), 412, "precondition_failed",
        "If-Match with the old one");
}

sub contact_with {
    my ($client) = @_;
    my $r = $client->post("/api/v1/contacts", { bot_id => $w->agent });
    return ($r->header("Location"), $r->header("ETag"));
}

for my $case (["deflate", "DeflateAlterETag AddSuffix", "gzip", "-gzip"],
        ["deflate", "DeflateAlterETag NoChange", "gzip", ""],
        ["deflate", "DeflateAlterETag Remove", "gzip", undef],
        ["brotli", "BrotliAlterETag AddSuffix", "br", "-br"],
        ["brotli", "BrotliAlterETag NoChange", "br", ""],
        ["brotli", "BrotliAlterETag Remove", "br", undef]) {
    my ($module, $option, $coding, $suffix) = @$case;
    subtest "13.2 mod_$module $option" => sub {
        plan(skip_all => "no mod_$module: build/setup --tests installs it")
            unless -f "$CrmTest::BUILD{MODULEDIR}/mod_$module.so";
        my $filter = $module eq "brotli" ? "BROTLI_COMPRESS" : "DEFLATE";
        my $compressing = httpd(database => $database,
            modules => ["filter", $module eq "brotli" ? $module : ()],
            unlimited => 1, conf => "$option\n"
            . "AddOutputFilterByType $filter application/json\n");
        compressed($compressing, $coding, $suffix);
        $compressing->stop;
    };
}

done_testing;
