# SPDX-License-Identifier: Apache-2.0
# 63-addresses.t: an address belongs to one agent that is not held; a copy, or
# another tenant, takes it from nobody (contract 14.2)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Twilio qw(post_signed);
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use JSON::PP ();

my $BASE = "/crmapi/intake/v1";
my $SITE = "https://crm.example.com";
my $ACCOUNT = "AC" . "0123456789abcdef" x 2;
my $scratch = tempdir("crm-addresses-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0711, $scratch;
write_file("$scratch/twilio", "secret-$$\n");
chmod 0600, "$scratch/twilio";

my $json = JSON::PP->new->utf8->canonical;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1, intake => 1,
    conf => <<"END");
CrmApiTwilio $ACCOUNT $scratch/twilio
CrmApiIntakeUrl $SITE
END
my $worker = worker(database => $database, no_start => 1);
my $socket = "$worker->{dir}/lmtp";
$worker->configure({ lmtp_socket => $socket });
$worker->expect_log(qr/CRM3052: .*its workspace is held/);
$worker->start;

# ---- tenants and channels ------------------------------------------------------

my $spaces = 0;
# A workspace with an agent that has all kinds of addresses: {mail}, {phone},
# {chat}, {form}, {agent}.
sub space {
    my $w = workspace($httpd, twin => 0);
    $spaces++;
    $w->{mail} = "sales-$spaces\@crm.example";
    $w->{shown} = "shown-$spaces\@crm.example";
    $w->{phone} = sprintf "+4930%05d%02d", $$ % 100_000, $spaces;
    $w->{at} = uuid();
    $w->{form} = uuid();
    $w->import_objects([{ object => "agent", id => $w->{at}, name => "Ada",
            is_agent => true, enabled => true, public => true,
            agent_email => $w->{mail}, agent_phone => $w->{phone},
            email_outbound_email => $w->{shown} },
        { object => "form", id => $w->{form}, bot_id => $w->{at},
            name => "F", standard_fields => { email => true } }]);
    return $w;
}

my $mails = 0;
# A mail to ADDRESS: the exit code of crmapictl deliver.
sub deliver {
    my ($address, @others) = @_;
    $mails++;
    my ($code, $out, $err) = crmapictl($database, { stdin => "From: ada\@x.org\n"
        . "To: $address\nMessage-ID: <m$mails-$$\@x.org>\n\nHello\n" }, "deliver",
        map { ("--recipient", $_) } $address, @others);
    return $code;
}

# What LMTP says of the recipients ADDRESSES.
sub rcpt {
    my (@addresses) = @_;
    my $lmtp = IO::Socket::UNIX->new(Peer => $socket) or die "$socket: $!\n";
    my $say = sub {
        print $lmtp "$_[0]\r\n" if defined $_[0];
        my $line;
        do { $line = <$lmtp> // die "no answer\n" } while $line =~ /^\d+-/;
        return substr $line, 0, 3;
    };
    $lmtp->autoflush;
    $say->($_) for undef, "LHLO mx", "MAIL FROM:<ada\@x.org>";
    return join " ", map { $say->("RCPT TO:<$_>") } @addresses;
}

my $sids = 0;
sub twilio {
    my ($phone) = @_;
    return post_signed($httpd->client, "secret-$$", $SITE, "$BASE/twilio/sms",
        AccountSid => $ACCOUNT, From => "+491701234567", To => $phone,
        Body => "Hi", NumMedia => 0,
        MessageSid => sprintf("SM%032x", ++$sids * 65536 + $$))->status;
}

# What each channel answers who writes to W: mail, LMTP, SMS, form, chat.
sub reached {
    my ($w) = @_;
    my $c = $httpd->client;
    return join " ", deliver($w->{mail}), rcpt($w->{mail}), twilio($w->{phone}),
        rcpt($w->{shown}),
        $c->request("POST", "$BASE/forms/$w->{form}", body => "email=a\@x.org",
            headers => { "Content-Type" =>
                "application/x-www-form-urlencoded" })->status,
        $c->post("$BASE/chat/$w->{at}/start", {})->status;
}

my $ALL = "0 250 200 250 200 200";
my $NONE = "75 451 404 451 404 404";    # mail comes again, after the release

# Messages and submissions in the workspace ID.
sub taken {
    my ($id) = @_;
    return scalar sql($database, "SELECT (SELECT count(*) FROM crmapi.message m
        WHERE m.workspace_id = '$id') + (SELECT count(*) FROM crmapi.submission s
        WHERE s.workspace_id = '$id')");
}

sub slug { scalar sql($database, "SELECT slug FROM crmapi.workspace
    WHERE id = '$_[0]'") }

# Importing OBJECTS into W fails, and stderr is LIKE.
sub import_refused {
    my ($w, $like, $name, @objects) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($code, $out, $err) = crmapictl($database, { stdin => join "", map {
        $json->encode($_) . "\n" } @objects }, "import", "--workspace",
        $w->id, "-");
    isnt($code, 0, "$name: refused");
    like($err, $like, "$name: says why");
}

sub agent { return { object => "agent", name => "B", @_ } }

# ---- copies --------------------------------------------------------------------

subtest "a copy that is held takes nothing from the living workspace" => sub {
    my $w = space();
    is(reached($w), $ALL, "all channels reach it");
    my $dump = crmapictl_ok($database, "workspace", "dump", $w->id);
    my $copy = crmapictl_json($database, { stdin => "$dump\n" }, "workspace",
        "restore", "-", "--as", "new")->{id};
    my ($mine, $copied) = (taken($w->id), taken($copy));
    is(reached($w), $ALL, "they go on beside a copy");
    cmp_ok(taken($w->id), ">=", $mine + 3, "and lead to the living one");
    is(taken($copy), $copied, "the copy receives nothing");

    my ($code, $out, $err) = crmapictl($database, "workspace", "release", $copy);
    isnt($code, 0, "the copy cannot be released beside it");
    my $slug = slug($w->id);
    like($err, qr/agent_email "\Q$w->{mail}\E".*workspace "\Q$slug\E"/,
        "the address and its workspace are named");
    is(reached($w), $ALL, "nothing has changed");

    $w->ctl("workspace", "hold", $w->id);
    is(reached($w), $NONE, "held both, nothing is received, and mail is deferred");
    is(taken($copy), $copied, "by the copy neither");
    crmapictl_ok($database, "workspace", "release", $copy);
    is(reached($w), $ALL, "the copy is released: it has the addresses");
    cmp_ok(taken($copy), ">", $copied, "and what comes");
    ($code, $out, $err) = crmapictl($database, "workspace", "release", $w->id);
    isnt($code, 0, "now the original cannot be released");
    ($code, $out, $err) = crmapictl($database, "release", "--all");
    isnt($code, 0, "nor by the release of everything");
    crmapictl_ok($database, "workspace", "delete", $copy, "--yes");
    is(reached($w), $NONE, "the copy is gone, the original is held");
    $w->ctl("workspace", "release", $w->id);
    is(reached($w), $ALL, "released, it receives");
};

subtest "a held workspace receives nothing by its tokens either" => sub {
    my $w = space();
    my $token = $w->token("t");
    my $event = sub { $httpd->client(key => $token)->post("$BASE/events",
        { event_id => "e-$_[0]", channel => "sms", bot_id => $w->{at},
            from => { phone_number => "+491" }, message => { content => "x" } }) };
    status_is($event->(1), 200, "an event");
    $w->ctl("workspace", "hold", $w->id);
    my $r = $event->(2);
    error_is($r, 503, "service_unavailable", "not while it is held");
    is($r->header("Retry-After"), 60, "nor soon");
    cmp_ok($r->header("Retry-After"), ">", 0, "and shall come again");
    $w->ctl("workspace", "release", $w->id);
    status_is($event->(2), 200, "it comes again");
    is(taken($w->id), 2, "nothing was lost");
};

# ---- other tenants --------------------------------------------------------------

subtest "another tenant cannot take an address" => sub {
    my ($w, $other) = (space(), space());
    my $slug = slug($w->id);
    my @cases = (
        ["the same mail address", "agent_email", agent(agent_email => $w->{mail})],
        ["in capitals", "agent_email", agent(agent_email => uc $w->{mail})],
        ["with a plus", "agent_email",
            agent(agent_email => $w->{mail} =~ s/@/+vip@/r)],
        ["as what its mails are from", "email_outbound_email",
            agent(email_outbound_email => $w->{mail})],
        ["what its mails are from", "agent_email",
            agent(agent_email => $w->{shown})],
        ["both", "email_outbound_email",
            agent(email_outbound_email => $w->{shown})],
        ["the same number", "agent_phone", agent(agent_phone => $w->{phone})],
        ["spelled otherwise", "agent_phone",
            agent(agent_phone => $w->{phone} =~ s/^(\+49)(..)/$1 ($2) /r)],
    );
    for my $case (@cases) {
        my ($name, $field, $object) = @$case;
        import_refused($other,
            qr/line 2: \/\Q$field\E: belongs to another workspace: "\Q$slug\E"/,
            $name, agent(), $object);
        ok(!eval { insert($other, $object->{object}, map { $_ => $object->{$_} }
            grep { $_ ne "object" } keys %$object); 1 }, "nor by SQL");
        my ($shown) = $@ =~ /ERROR:\s+(.*)/;
        unlike($shown // "", qr/\Q$slug\E|@{[$w->id]}/,
            "which names no workspace");
        ok(!eval { sql($database, "UPDATE crmapi.agent SET $field = '$object->{$field}'"
            . " WHERE workspace_id = '@{[$other->id]}'"); 1 }, "nor by a change");
        like($@, qr/belongs to another agent/, "which is refused likewise");
    }
    is(reached($w), $ALL, "the first one has its addresses");
    is(reached($other), $ALL, "and the other one its own");

    for (["agent_email", $other->{mail}], ["agent_phone", $other->{phone}]) {
        import_refused($other, qr/line 1: \/$_->[0]: .*another agent/,
            "an own one twice: $_->[0]", agent(@$_));
        ok(!eval { insert($other, "agent", name => "B", @$_); 1 }, "nor by SQL");
    }
    import_refused($other, qr/line 2: \/agent_email: .*another agent/,
        "twice in a file", map { agent(agent_email => "twice-$$\@x.org") } 1, 2);
    import_refused($other, qr/line 2: \/agent_phone: .*another agent/,
        "a number twice in a file", map { agent(agent_phone =>
            sprintf "+4917%07d", $$) } 1, 2);
    $other->import_objects([agent(agent_email =>
        $other->{mail} =~ s/@/+vip@/r)]);
    $other->import_objects([agent(email_outbound_email => $other->{shown})]);
    is(rcpt($other->{shown}), "250", "its agents may share what mails are from");
    is(rcpt(map { $other->{mail} =~ s/@/$_@/r } "", "+vip", "+VIP", "+x"),
        "250 250 250 250", "its own agent may have an address with a plus");
    is(reached($other), $ALL, "which takes nothing from the other agent");

    $w->ctl("workspace", "hold", $w->id);
    $other->import_objects([agent(agent_email => $w->{mail})]);
    is(deliver($w->{mail}), 0, "the address of a held workspace is free");
};

subtest "another tenant's agent or form with the same id takes nothing" => sub {
    my @old = (created_at => "2001-01-01T00:00:00Z");
    my ($w, $other);
    for my $age ("older", "newer") {
        my @two = (space(), space());
        ($w, $other) = $age eq "older" ? @two : reverse @two;
        my ($was, $theirs) = map { taken($_->id) } $w, $other;
        $other->import_objects([agent(id => $w->{at}, is_agent => true,
                enabled => true, public => true, @old),
            { object => "form", id => $w->{form}, bot_id => $w->{at},
                name => "F", standard_fields => { email => true }, @old }]);
        is(reached($w), $ALL, "the $age tenant: its form and its chat go on");
        cmp_ok(taken($w->id), ">=", $was + 3, "and lead to it");
        is(taken($other->id), $theirs, "not to the other one");
        is($httpd->client->post("$BASE/chat/$w->{at}/start", {})
            ->data->{agent}{name}, "Ada", "it is its own agent who chats");
    }
    my $theirs = taken($other->id);
    my $bound = httpd(database => $database, conf => "CrmApiIntake On\n"
        . "CrmApiWorkspace " . $other->id . "\n");
    status_is($bound->client->request("POST", "$BASE/forms/$w->{form}",
        body => "email=a\@x.org", headers => { "Content-Type" =>
            "application/x-www-form-urlencoded" }), 200,
        "where the host is bound to it, the form is its own");
    cmp_ok(taken($other->id), ">", $theirs, "and leads to it");
    $bound->stop;
};

subtest "two that take one address at the same time: one gets it" => sub {
    for my $round (1 .. 5) {
        my @w = map { workspace($httpd, twin => 0) } 1, 2;
        my $mail = "race-$round\@crm.example";
        my @children = map { my $w = $_; CrmTest::Child->start(sub {
            (crmapictl($database, { stdin => $json->encode(agent(agent_email =>
                $mail)) . "\n" }, "import", "--workspace", $w->id, "-"))[0] })
            } @w;
        is_deeply([sort map { $_->result } @children], [0, 1], "round $round");
    }
};

subtest "a release and an import at the same time: one wins" => sub {
    my ($held, $other) = (space(), space());
    $held->ctl("workspace", "hold", $held->id);
    my $free = postgres()->hold($database, "INSERT INTO crmapi.agent
        (id, workspace_id, name, agent_email) VALUES ('" . uuid() . "', '"
        . $other->id . "', 'X', '$held->{mail}')");
    my $release = CrmTest::Child->start(sub {
        crmapictl($database, "workspace", "release", $held->id) });
    postgres()->wait_locked($database, 1);
    pass("the release waits for who writes the address");
    $free->();
    my ($code, $out, $err) = $release->result;
    is($code, 0, "which was rolled back") or diag($err);
    is(reached($held), $ALL, "it has its addresses");
};

# ---- what should not be -----------------------------------------------------------

subtest "an ambiguous address defers mail" => sub {
    my ($w, $other) = (space(), space());
    my $double = uuid();
    sql($database, "SET session_replication_role = replica;
        INSERT INTO crmapi.agent (id, workspace_id, name, agent_email,
            agent_phone) VALUES ('$double', '@{[$other->id]}', 'X',
            '$w->{mail}', '$w->{phone}')");
    $httpd->expect_log(qr/CRM4103/);
    $worker->expect_log(qr/CRM3052: .*$w->{mail}.*more than one agent/);
    is(deliver($w->{mail}), 75, "crmapictl deliver: EX_TEMPFAIL");
    is(deliver(@$_), 75, "also beside one that nobody has: it comes again")
        for [$w->{mail}, "nobody\@crm.example"], ["nobody\@crm.example",
            $w->{mail}], [$other->{mail}, $w->{mail}];
    is(rcpt($w->{mail}, "nobody\@crm.example"), "451 550",
        "LMTP: 451; nobody's is 550");
    is(twilio($w->{phone}), 404, "an SMS");
    sql($database, "DELETE FROM crmapi.agent WHERE id = '$double'");
    is(deliver($w->{mail}), 0, "it is delivered when it is one agent's again");
};

done_testing;
