# SPDX-License-Identifier: Apache-2.0
# 66-move.t: a workspace moves to another database while clients write to it: they get
# 503 with Retry-After, and nothing that was acknowledged is lost (contract 14.3)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Dump;
use CrmTest::Mcp;
use CrmTest::Pages;
use File::Temp qw(tempdir);
use Time::HiRes qw(sleep time);

my $WRITERS = 3;
# With $CRM_CONTACTS, such as 50000, the times are compared.
my $CONTACTS = $ENV{CRM_CONTACTS} || 2_000;
my $folder = tempdir("crm-move-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my ($here, $there) = (database(), database());
my %conf = (unlimited => 1, conf => "CrmApiReview On\n"
    . "CrmApiMcp On\nCrmApiIntake On\n");
my $old = httpd(database => $here, %conf);
my $new = httpd(database => $there, %conf);
my $w = workspace($old, twin => 0);
my $other = workspace($old, twin => 0);
my $c = $w->client;

# The file that says which server clients use.
my $switch = "$folder/moved";

# Write until the switch was thrown and a few more were written. Returns the ids that
# were acknowledged, the statuses of the others, and when the first and the last one
# was refused.
sub write_on {
    my %told = (ids => [], gone => [], others => {});
    my $more = 20;
    my ($n, $last) = 0;
    my $until = time + 600;      # the test may have failed
    while ($more && time < $until) {
        my $server = -e $switch ? $new : $old;
        $more-- if $server == $new;
        my $client = $server->client(key => $w->key);
        # one is deleted, others are changed
        my $r = $last && ++$n % 4 == 0 ? $client->request("DELETE",
                "/api/v1/contacts/$last")
            : $client->post("/api/v1/contacts", { bot_id => $w->agent,
                notes => "w$$" });
        if ($r->status == 201) {
            push @{$told{ids}}, $last = $r->data->{id};
            next;
        }
        if ($r->status == 204) {
            push @{$told{gone}}, $last;
            $last = undef;
            next;
        }
        $told{others}{$r->status . " " . ($r->header("Retry-After") // "-")
            . " " . $r->json->{error}{code}}++;
        $told{first} //= time;
        $told{last} = time;
        sleep 0.01;
    }
    return \%told;
}

# Whether a link to a page of workspace W is good here: "t", or it fails.
sub link_of {
    my ($of) = @_;
    my $head = sql($here, "SELECT encode('\\x0102'::bytea || uuid_send('"
        . $of->id . "') || decode(repeat('00', 40), 'hex'), 'hex')");
    return eval { sql($here, "SELECT crmapi.token_signed('\\x$head',"
        . " crmapi.token_mac('\\x$head'))") } // $@;
}

subtest "closed: 503 with Retry-After, for reads, writes, tools and pages" => sub {
    $other->ctl("workspace", "hold", $other->id);
    my $said = $w->ctl_json("workspace", "hold", $w->id, "--api", "off");
    for my $r ($c->get("/api/v1/contacts"), $c->get("/api/v1/workspace"),
            $c->get("/api/v1/contacts/" . uuid()),
            $c->post("/api/v1/contacts", { bot_id => $w->agent }),
            $c->post("/api/v1/contacts", { bot_id => $w->agent },
                headers => { "Idempotency-Key" => "k" }),
            $c->post("/api/v1/contacts/upsert", { bot_id => $w->agent,
                contacts => [{ emails => ["a\@x.example"] }] })) {
        error_is($r, 503, "service_unavailable", "refused");
        cmp_ok($r->header("Retry-After") // 0, ">", 0, "with Retry-After");
    }
    my $mcp = CrmTest::Mcp->new($c, "2025-11-25");
    for (["initialize", { protocolVersion => "2025-11-25", capabilities => {},
            clientInfo => { name => "t", version => "1" } }], ["tools/list", {}],
            ["tools/call", { name => "workspace_get", arguments => {} }]) {
        is($mcp->call(@$_)->status, 503, "$_->[0] of MCP");
    }
    status_is($old->client->get("/api/v1/contacts"), 401, "no key: as always");
    status_is($other->client->get("/api/v1/contacts"), 200,
        "another workspace is served, which is held");
    for ([$w, 503], [$other, 200]) {
        my ($of, $status) = @$_;
        my $made = $of->ctl_json("key", "create", "--workspace", $of->id,
            "--name", "late", "--scopes", "read,write");
        status_is($old->client(key => $made->{key})->get("/api/v1/contacts"),
            $status, "a key that is made meanwhile: $status");
    }
    is_deeply([map { $_->ctl_json("workspace", "show", $_->id)->{api} } $w, $other],
        ["off", "on"], "and workspace show says which is closed");
    is(link_of($other), "t", "and so are its links");
    $other->ctl("workspace", "release", $other->id);
    is(sql($here, "SELECT bool_and(closed) FROM crmapi.api_key
        WHERE workspace_id = '@{[$w->id]}'"), "t", "every key is closed");
    $w->ctl("workspace", "hold", $w->id, "--api", "on");
    status_is($c->get("/api/v1/contacts"), 200, "held, but open");
    $w->ctl("workspace", "hold", $w->id, "--api", "off");
    $w->ctl("workspace", "release", $w->id);
    status_is($c->get("/api/v1/contacts"), 200, "released: open");
    my ($code, undef, $err) = crmapictl($here, "workspace", "hold", $w->id,
        "--api", "maybe");
    is($code, 2, "another word is a wrong command line");
};

subtest "a dump closes the API before it reads, if it is told to" => sub {
    my @dump = ("workspace", "dump", $w->id, "--output", "$folder/closing");
    my ($code, undef, $err) = crmapictl($here, @dump, "--api", "off");
    is($code, 1, "not of a workspace that still sends");
    like($err, qr/hold it first/, "which says what to do");
    status_is($c->get("/api/v1/contacts"), 200, "it stays open");
    is((crmapictl($here, @dump, "--api", "on"))[0], 2, "a dump opens no API");
    $w->ctl("workspace", "hold", $w->id);
    ok($w->ctl(@dump), "of a held one");
    status_is($c->get("/api/v1/contacts"), 200, "which stays open, too");
    $w->ctl(@dump, "--api", "off");
    status_is($c->get("/api/v1/contacts"), 503, "closed");
    is(sql($here, "SELECT count(*) FROM crmapi.audit WHERE action ="
        . " 'workspace dump'"), 1, "who did it is recorded, of that dump only");
    $w->ctl("workspace", "release", $w->id);
    status_is($c->get("/api/v1/contacts"), 200, "released: open");
};

# Dump what has changed since MARK, with the API closed, into a restore there, as
# docs/hosting.md does.
sub dump_into_restore {
    my ($mark) = @_;
    my ($code, undef, $err) = run_program(command => ["sh", "-c",
        '"$1" --database "$2" workspace dump "$3" --since "$4" --api off'
        . ' | "$1" --database "$5" workspace restore', "sh",
        $CrmTest::BUILD{CTL}, postgres()->conninfo($here), $w->id, $mark,
        postgres()->conninfo($there)]);
    is($code, 0, "the last changes") or diag($err);
}

subtest "links of mails answer 503, too" => sub {
    is(link_of($w), "t", "a link is good");
    $w->ctl("workspace", "hold", $w->id, "--api", "off");
    like(link_of($w), qr/closed/, "closed: it fails, and nothing is written");
    $w->ctl("workspace", "release", $w->id);
};

subtest "it moves with writes going on: none that was acknowledged is lost" => sub {
    sql($here, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name,
        emails, tags, notes, custom_fields) SELECT gen_random_uuid(),
        '@{[$w->id]}', '@{[$w->agent]}', 'Name ' || n, jsonb_build_array(
        jsonb_build_object('email', 'p' || n || '\@x.example', 'is_primary',
        true)), '{a,b}', repeat(n || ' note ', 40), '{}' FROM
        generate_series(1, $CONTACTS) n");
    my @writers = map { CrmTest::Child->start(\&write_on) } 1 .. $WRITERS;
    ok(wait_for(sub { sql($here, "SELECT count(*) FROM crmapi.contact")
        > $CONTACTS + 30 }, 60), "clients write");
    $w->ctl("workspace", "hold", $w->id, "--reason", "moving");
    my $began = time;
    my $said = $w->ctl_json("workspace", "dump", $w->id, "--output",
        "$folder/dump");
    my $dumped = time;
    crmapictl_ok($there, "workspace", "restore", "$folder/dump");
    my $restored = time;
    # what has changed while that took, and then what has changed since
    $said = $w->ctl_json("workspace", "dump", $w->id, "--since", $said->{mark},
        "--output", "$folder/changes");
    crmapictl_ok($there, "workspace", "restore", "$folder/changes");
    dump_into_restore($said->{mark});
    write_file($switch, "");
    crmapictl_ok($there, "workspace", "release", $w->id);
    my @told = map { $_->result } @writers;
    my %there = map { $_->[0] => 1 } sql($there,
        "SELECT id, 1 FROM crmapi.contact");
    my @ids = map { @{$_->{ids}} } @told;
    my %gone = map { $_ => 1 } map { @{$_->{gone}} } @told;
    is_deeply([grep { !$there{$_} && !$gone{$_} } @ids], [], "all of " . @ids
        . " acknowledged ones are there");
    is_deeply([grep { !$there{$_} && !$gone{$_} } map { $_->[0] } sql($here,
        "SELECT id, 1 FROM crmapi.contact")], [],
        "nothing was written here that is not there");
    is_deeply([grep { $there{$_} } keys %gone], [], "all of " . keys(%gone)
        . " that were deleted are not");
    my %others;
    $others{$_}++ for map { keys %{$_->{others}} } @told;
    is_deeply([grep { !/^503 [1-9]\d* service_unavailable$/ } keys %others], [],
        "others got 503 with Retry-After");
    cmp_ok(scalar keys %others, ">", 0, "which some did");
    my ($longest) = sort { $b <=> $a } map { ($_->{last} // 0)
        - ($_->{first} // 0) } @told;
    diag(sprintf "dump %.2f s, restore %.2f s; refused for %.2f s",
        $dumped - $began, $restored - $dumped, $longest);
    cmp_ok($longest, "<", $dumped - $began, "they were refused for less than the"
        . " dump took") if $ENV{CRM_CONTACTS};
    cmp_ok(-s "$folder/changes", "<", (-s "$folder/dump") / 2,
        "the changes are less than half of the dump");
};

done_testing;
