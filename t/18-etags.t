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

my $UNLIMITED = "CrmApiReadLimit 0\nCrmApiWriteLimit 0\n";
my $database = database();
my $httpd = httpd(database => $database, children => 2, conf => $UNLIMITED);
my $w = workspace($httpd);
my $c = $w->client;
my $samples = CrmTest::Samples->new($w);
my $paths = $samples->openapi->{document}{paths};
my $TAG = qr/^"(?:[\w-]{10}\.)?[\w-]{8}"$/;

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
        next if $path =~ /openapi\.json$|by-email$/;
        my $id = $samples->id_for($path);
        my $r = $c->get($path =~ s/\{id\}/$id/r);
        status_is($r, 200, "GET $path");
        my $declared = exists $operation->{responses}{200}{headers}{ETag};
        is($declared, ref $r->data eq "HASH", "it has one if it shows one row");
        $declared ? like($r->header("ETag"), $TAG, "a strong one")
            : is($r->header("ETag"), undef, "no list has one");
    }
    my ($contact) = contact(emails => ['a@b.example']);
    is($c->get("/api/v1/contacts/by-email?email=a\@b.example")->header("ETag"),
        $c->get($contact)->header("ETag"), "one resource, one tag");
    my $r = $c->post("/api/v1/activities", { activity_type => "note",
        contact_id => $samples->id_for("/api/v1/contacts/{id}") });
    status_is($r, 201, "an activity");
    is($r->header("ETag"), undef, "has none: it cannot be read by an id");
};

subtest "13.2 POST, PATCH and GET tell the same tag" => sub {
    for my $case (["contacts", { bot_id => $w->agent }, { notes => "new" }],
            ["companies", { bot_id => $w->agent, name => "A" },
                { name => "B" }],
            ["pipeline-cards", { title => "A", pipeline_stage_id =>
                ($samples->ids("PipelineStage"))[0] }, { title => "B" }]) {
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
    my ($id) = $w->import_objects([{ object => "conversation", type => 1,
        bot_id => $w->agent }]);
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

subtest "13.2 two PATCHes with one ETag at once: one 200, one 412" => sub {
    my ($path, $tag) = contact(notes => "0");
    my $rounds = 60;
    for my $round (1 .. $rounds) {
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

# What the filter of CODING does to the tag with the directive's OPTION.
sub compressed {
    my ($httpd, $coding, $suffix) = @_;
    my $client = $httpd->client(key => $w->key);
    my ($path, $tag) = contact_with($client);
    my %accepts = ("Accept-Encoding" => $coding);
    # not by get(), which would have the compressed body checked as JSON
    my $plain = $httpd->client;
    $plain->send_raw("GET $path HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
        . $w->key . "\r\nAccept-Encoding: $coding\r\n\r\n");
    my $r = $plain->read_response("GET");
    is($r->header("Content-Encoding"), $coding, "$coding: it is compressed");
    like($r->header("Vary"), qr/Accept-Encoding/, "$coding: Vary");
    my $sent = $tag =~ s/"$/$suffix"/r;
    is($r->header("ETag"), $sent, "$coding: the tag of the compressed body");
    my $again = $client->get($path, headers =>
        { %accepts, "If-None-Match" => $sent });
    status_is($again, 304, "$coding: with the tag that the client has");
    is($again->body, "", "$coding: and no body");
    like($again->header("ETag"), qr/^\Q@{[$tag =~ s{"$}{}r]}\E/,
        "$coding: 304 has the tag");
    status_is($client->get($path, headers => { "If-None-Match" => $sent }),
        304, "$coding: without compression, too");
    status_is($client->patch($path, { notes => "x" },
        headers => { "If-Match" => $sent }), 200, "$coding: If-Match");
    error_is($client->patch($path, { notes => "y" },
        headers => { "If-Match" => $sent }), 412, "precondition_failed",
        "$coding: If-Match with the old one");
}

sub contact_with {
    my ($client) = @_;
    my $r = $client->post("/api/v1/contacts", { bot_id => $w->agent });
    return ($r->header("Location"), $r->header("ETag"));
}

for my $case (["deflate", "DeflateAlterETag AddSuffix", "gzip", "-gzip"],
        ["deflate", "DeflateAlterETag NoChange", "gzip", ""],
        ["brotli", "", "br", "-br"]) {
    my ($module, $option, $coding, $suffix) = @$case;
    subtest "13.2 mod_$module $option" => sub {
        plan(skip_all => "no mod_$module: build/setup --tests installs it")
            unless -f "$CrmTest::BUILD{MODULEDIR}/mod_$module.so";
        my $filter = $module eq "brotli" ? "BROTLI_COMPRESS" : "DEFLATE";
        my $compressing = httpd(database => $database,
            modules => ["filter", $module eq "brotli" ? $module : ()],
            conf => "$UNLIMITED$option\n"
            . "AddOutputFilterByType $filter application/json\n");
        compressed($compressing, $coding, $suffix);
        $compressing->stop;
    };
}

done_testing;
