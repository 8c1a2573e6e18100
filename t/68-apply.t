# SPDX-License-Identifier: Apache-2.0
# 68-apply.t: crmapictl apply and show (contract 14.1): one document makes a
# workspace what it says, and again changes nothing
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Time::HiRes qw(time);
use CrmTest;
use CrmTest::Child;
use CrmTest::Samples;
use CrmTest::Session;
use File::Temp qw(tempdir);
use utf8;

my $db = database();
my $json = JSON::PP->new->ascii->canonical->allow_nonref;
my $folder = tempdir("crm-apply-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my $files = 0;

# A new file with TEXT.
sub file {
    my ($text) = @_;
    my $path = "$folder/" . ++$files . ".json";
    write_file($path, $text);
    return $path;
}

# A file with OBJECTS as JSON Lines.
sub lines { return file(join "", map { $json->encode($_) . "\n" } @_) }

sub apply { return crmapictl_ok($db, "apply", @_) }
sub show { return crmapictl_ok($db, "show", @_) }

# What apply ARGS says, as JSON.
sub applied { return $json->decode(apply("--json", @_)) }

# The refusal of apply ARGS, which changes nothing.
sub refusal {
    my $before = state();
    my ($code, $out, $err) = crmapictl($db, "apply", @_);
    is($code, $err =~ /^crmapictl: --(?:workspace|move-to) must/ ? 2 : 1, "the exit code");
    is($out, "", "no plan");
    is(state(), $before, "nothing is changed");
    return $err;
}

# All rows of the tables that apply writes, with their versions.
my $state = join " UNION ALL ", map { "SELECT '$_ ' || xmin || ' ' || x AS t"
    . " FROM crmapi.$_ x" } qw(workspace agent pipeline pipeline_stage form
    sequence_template webhook_endpoint admin intake_key event event_feed api_key
    link_key audit);
# Without the separators of sql(), which rows of agents have: it ended there.
sub state { scalar sql($db, "SELECT string_agg(translate(t, chr(30) || chr(31), '  '),"
    . " chr(10) ORDER BY t) FROM ($state) s") }

# The template of the provider: references by slug and name, one variable in
# each kind of place.
my @template = (
    { object => "workspace", slug => '${SLUG}', name => '${NAME} Ltd',
        plan => "pro", time_zone => "Europe/Berlin", currency => "EUR",
        read_limit => '${LIMIT}', events => JSON::PP::true,
        sender_domains => ["MÜNCHEN.example", '${SLUG}.example', "münchen.example."],
        retention_conversations => 90 },
    { object => "agent", slug => "ada", name => "Ada of \${NAME}",
        agent_email => 'ada@${SLUG}.example', public => JSON::PP::true },
    { object => "pipeline", name => "Sales", bot_id => "ada",
        is_default => JSON::PP::true },
    (map { { object => "pipeline_stage", name => ("New", "Won")[$_],
        bot_id => "ada", pipeline_id => "Sales", order_index => $_ } } 0, 1),
    { object => "form", name => "Contact", bot_id => "ada",
        standard_fields => { email => { required => JSON::PP::true } },
        custom_fields => { n => { type => "number", label => '${NAME}?' } } },
    { object => "sequence_template", name => "Welcome", bot_id => "ada",
        allowed_channels => ["email"], pacing => { days_between_steps => 2 },
        steps => [{ channel => "email", email_subject => "Hi",
            email_body => 'from ${NAME}, not $${NAME}' }] },
    { object => "webhook_endpoint", url => 'https://hooks.example/@/${SLUG}',
        events => ["form.submitted", "contact.created"] },
    { object => "admin", email => 'Boss@${SLUG}.example', name => "Boss" },
    { object => "intake_token", name => "site" });
my $template = lines(@template);

sub values_of {
    my ($slug) = @_;
    return ("--set", "SLUG=$slug", "--set", "NAME=\u$slug", "--set", "LIMIT=77");
}

subtest "one document makes a workspace" => sub {
    my $plan = applied("--create", values_of("one"), $template);
    is_deeply([@$plan{qw(created changed deleted unchanged)}], [10, 0, 0, 0],
        "all is made");
    my ($secret) = grep { $_->{object} eq "webhook_endpoint" }
        @{$plan->{changes}};
    like($secret->{secret}, qr{^whsec_[\w+/]{43}=$}, "the secret is printed");
    my ($token) = grep { $_->{object} eq "intake_token" } @{$plan->{changes}};
    like($token->{token}, qr/^svc_in_\w{30}$/, "so is the token");
    my $w = crmapictl_json($db, "workspace", "show", "one");
    is_deeply([@$w{qw(name plan time_zone currency read_limit write_limit
        events retention_conversations)}], ["One Ltd", "pro", "Europe/Berlin",
        "EUR", 77, undef, "on", 90],
        "the settings");
    is_deeply($w->{sender_domains}, ["xn--mnchen-3ya.example", "one.example"],
        "the domains, as A-labels");
    is(sql($db, "SELECT steps->0->>'email_body' FROM"
        . " crmapi.sequence_template"), 'from One, not ${NAME}', "variables");
    unlike(show("one"), qr/whsec_|svc_in_/, "show has no secret");
};

subtest "the second run changes nothing" => sub {
    my $before = state();
    my $plan = applied("--create", values_of("one"), $template);
    is_deeply([@$plan{qw(created changed deleted unchanged)}], [0, 0, 0, 10],
        "it says so");
    is(state(), $before, "no row was written");
    is((crmapictl($db, "apply", "--dry-run", values_of("one"), $template))[0],
        0, "a dry run exits with 0");
};

subtest "a dry run" => sub {
    my $before = state();
    my ($code, $out) = crmapictl($db, "apply", "--create", "--dry-run",
        values_of("two"), $template);
    is($code, 3, "exits with 3 if something would change");
    like($out, qr/^\+ workspace "Two Ltd"/m, "it shows what");
    like($out, qr/^\+ agent "Ada of Two"/m, "objects, too");
    like($out, qr/^10 to create, 0 to change, 0 to delete/m, "and how many");
    unlike($out, qr/whsec_|svc_in_/, "no secret of what is not made");
    unlike((crmapictl($db, "apply", "--create", "--dry-run", "--json",
        values_of("two"), $template))[1], qr/whsec_|svc_in_/, "nor in JSON");
    is(state(), $before, "and changes nothing");
    is((crmapictl($db, "apply", "--dry-run"))[0], 2, "2: no file");
    is((crmapictl($db, "apply", "--dry-run", "--move-to", uuid(),
        $template))[0], 2, "2: --move-to without --prune");
    is((crmapictl($db, "apply", lines({ object => "agent", slug => "ada" })))[0], 2,
        "2: no workspace is named");
};

subtest "a change changes what it names" => sub {
    my $file = lines({ object => "form", name => "Contact",
        description => "Write to us" },
        { object => "admin", email => "boss\@ONE.example", name => undef });
    my $stamps = sql($db, "SELECT json_agg(updated_at) FROM crmapi.pipeline");
    my $out = apply("--workspace", "one", $file);
    like($out, qr/^~ form "Contact" \([\w-]+\): description$/m, "one field");
    like($out, qr/^~ admin "boss\@ONE.example".*: email, name$/m,
        "an address is found in any case");
    like($out, qr/^0 created, 2 changed, 0 deleted, 0 unchanged$/m, "2 rows");
    my ($form) = @{$json->decode(show("one"))->{form}};
    is($form->{description}, "Write to us", "it is there");
    is_deeply($form->{standard_fields}{email}, { required => JSON::PP::true },
        "what is not named stays");
    is(sql($db, "SELECT json_agg(updated_at) FROM crmapi.pipeline"), $stamps,
        "others keep their updated_at");
    is(sql($db, "SELECT updated_at > created_at FROM crmapi.form"), "t",
        "that of the form moves");
};

subtest "show, apply elsewhere, show: the same" => sub {
    my $other = database();
    my $shown = show("one");
    ok($json->decode($shown), "it is one JSON text");
    crmapictl_ok($other, "apply", "--create", file($shown));
    is(crmapictl_ok($other, "show", "one"), $shown, "byte for byte");
    my ($code, $out) = crmapictl($other, "apply", "--dry-run", file($shown));
    is($code, 0, "and nothing is left to do") or diag($out);
    # beside the living one, addresses are taken
    like(refusal("--create", "--workspace", "three", file($shown)),
        qr{line \d+: /agent/0/agent_email: belongs to another workspace},
        "an address belongs to one");
    my $free = $json->decode($shown);
    delete $free->{agent}[0]{agent_email};
    my $here = file($json->encode($free));
    apply("--create", "--workspace", "three", $here);
    my $again = $json->decode(show("three"));
    is($again->{workspace}{slug}, "three", "its slug is its own");
    $again->{workspace}{slug} = "one";
    $free->{agent}[0]{agent_email} = undef;
    is_deeply($again, $free, "all else is the same in another workspace");
};

subtest "objects are matched by id, slug or name" => sub {
    my @ids = map { uuid() } 1 .. 3;
    my ($agent) = @{$json->decode(show("one"))->{agent}};
    apply("--workspace", "one", lines({ object => "agent", id => $agent->{id},
        slug => "ada", name => "Ada II" }));
    is($json->decode(show("one"))->{agent}[0]{name}, "Ada II", "by id");
    apply("--workspace", "one", lines({ object => "agent", slug => "ada",
        id => $ids[0], name => "Ada III" }, { object => "pipeline",
        bot_id => $ids[0], name => "Second" }));
    my $shown = $json->decode(show("one"));
    is($shown->{agent}[0]{name}, "Ada III", "by slug, whatever the id");
    is($shown->{agent}[0]{id}, $agent->{id}, "the id stays");
    my ($second) = grep { $_->{name} eq "Second" } @{$shown->{pipeline}};
    is($second->{bot_id}, $agent->{id}, "the document's id refers to it");
    apply("--workspace", "one", lines({ object => "pipeline_stage",
        name => "New", pipeline_id => "Second", bot_id => "ada" }));
    is(scalar(grep { $_->{name} eq "New" }
        @{$json->decode(show("one"))->{pipeline_stage}}), 2,
        "a stage is one of its pipeline");
    like(refusal("--workspace", "one", lines({ object => "pipeline_stage",
        name => "New", color => "#000000" })), qr{line 1: /name: several},
        "a name of several is refused");
    like(refusal("--workspace", "one", lines({ object => "agent",
        slug => "ada" }, { object => "agent", id => $agent->{id} })),
        qr{line \d: is an object that another one is}, "one row, two objects");
    like(refusal("--workspace", "one", lines({ object => "agent" })),
        qr{line 1: needs an id, a slug or a name}, "no name");
};

subtest "agents of one name differ by their slugs" => sub {
    my @in = ("--create", "--workspace", "names");
    my @agents = map { { object => "agent", slug => $_, name => "Support" } }
        "a" .. "c";
    is(applied(@in, lines(@agents))->{created}, 1 + 3, "three of one name");
    is(applied(@in, lines(@agents))->{unchanged}, 3, "are three");
    my $new = { object => "agent", slug => "d", name => "Support" };
    is(applied(@in, lines($new))->{created}, 1, "another slug is another agent");
    like(refusal(@in, lines({ object => "agent", name => "Support" })),
        qr{line 1: /name: several}, "the name alone does not say which one");
    applied(@in, lines({ object => "agent", name => "Nobody" }));
    is(applied(@in, lines({ object => "agent", slug => "e", name => "Nobody" }))
        ->{changed}, 1, "an agent without a slug gets one");
};

subtest "errors name file, line, pointer and rule" => sub {
    my $bad = file(<<'END');
{
  "workspace": {"slug": "one"},
  "form": [
    {"name": "Contact",
     "custom_fields": {"x":
       {"type": "colour"}}}
  ]
}
END
    like(refusal($bad), qr{\Q$bad\E: line 6: /form/0/custom_fields/x/type: \S},
        "in a document, the line is that of the value");
    for ([{ object => "form", name => "X", bot_id => "nobody" }, "/bot_id"],
        [{ object => "form", name => "X" }, "/bot_id"],
        [{ object => "contact", first_name => "X" }, "/object"],
        [{ object => "agent", slug => "x", nmae => "y" }, "/nmae"],
        [{ object => "workspace", time_zone => "Mars/One" }, "/time_zone"],
        [{ object => "workspace", plan => "gold" }, "/plan"],
        (map { my $field = $_; map { [{ object => "workspace", $field => $_ },
            "/$field", qr/must be an integer from 1 to 1000000$/] } -1, 0,
            1_000_001 } qw(read_limit write_limit)),
        (map { my $field = $_; map { [{ object => "workspace", $field => $_ },
            "/$field", qr/must be an integer from 1 to 36500$/] } -1, 0, 36_501 }
            qw(retention_conversations retention_submissions
            retention_events)),
        [{ object => "workspace", currency => "euro" }, "/currency"],
        [{ object => "workspace", sender_domains => ["a b"] },
            "/sender_domains/0"],
        [{ object => "workspace", sender_domains => ["a.example", "none"] },
            "/sender_domains/1"],
        [{ object => "workspace", sender_domains => [map { "d$_.example" } 0 .. 100]
            }, "/sender_domains/100"],
        (map { [{ object => "webhook_endpoint", url => $_, events =>
            ["form.submitted"] }, "/url"] } "ftp://x", "https:///x",
            "https://u\@x.example", "https://b\x{fc}cher.example"),
        [{ object => "webhook_endpoint", url => "https://x.example", events =>
            ["form.sent"] }, "/events/0"],
        [{ object => "webhook_endpoint", url => "https://x.example",
            secret => "x", events => ["form.submitted"] }, "/secret"],
        [{ object => "admin", email => "boss" }, "/email"],
        [{ object => "intake_token", name => "" }, "/name"],
        [{ object => "agent", slug => '${WHO}' }, "/slug"],
        [{ object => "agent", slug => "x", name => '${' }, "/name"],
        [{ object => "agent", slug => "x", name => "\${WHO}\0y" }, "/name",
            qr/.*U\+0000/],
        [{ object => "webhook_endpoint", url => "https://x.example", events =>
            ["form.submitted", '${WHO}'] }, "/events/1", qr/\$\{WHO\} has no value/],
        [{ object => "webhook_endpoint", url => "https://x.example", events =>
            ["form.submitted"], secret_file => 5 }, "/secret_file",
            qr/must be the name of a file/]) {
        my ($object, $pointer, $rule) = (@$_, qr/\S/);
        my $file = lines({ object => "agent", slug => "ada", name => "New" },
            $object);
        like(refusal("--workspace", "one", $file),
            qr{\Q$file\E: line 2: \Q$pointer\E: $rule},
            $json->encode($object));
    }
    like(refusal("--workspace", "one", file("{\"agent\": [\n{]}")),
        qr/line 2: is not valid JSON/, "broken JSON");
    like(refusal("--workspace", "one", file($_->[0])),
        qr{line 2: $_->[1]: is not a JSON object}, "a list in a list: $_->[1]")
        for ["[\n[{\"object\": \"agent\", \"slug\": \"ada\"}]]", "/0"],
            ["{\"agent\": [{\"slug\": \"ada\"},\n[{\"slug\": \"ada\"}]]}", "/agent/1"];
    like(refusal("--workspace", "one", $CrmTest::TOP),
        qr/cannot read \Q$CrmTest::TOP\E: Is a directory/, "a folder");
    like(refusal(lines({ object => "workspace", slug => "nowhere" })),
        qr/no workspace "nowhere"; --create/, "no such workspace");
};

subtest "a new workspace is checked like one that is there" => sub {
    for ([{ slug => "Bad Slug", name => "x" }, "/slug", qr/must be 1 to 63/],
        [{ slug => 5, name => "x" }, "/slug", qr/must be a string/],
        [{ slug => "fresh", name => " " }, "/name", qr/must not be blank/],
        [{ slug => "fresh", name => "" }, "/name", qr/must not be empty/],
        [{ slug => "fresh", plan => "gold" }, "/plan", qr/is not a plan/],
        [{ slug => "fresh", plan => "x" x 1001 }, "/plan", qr/must have at most/]) {
        my ($settings, $pointer, $rule) = @$_;
        my $file = lines({ object => "workspace", %$settings });
        like(refusal("--create", $file), qr{\Q$file\E: line 1: $pointer: $rule},
            "$pointer: $rule");
    }
    like(refusal("--create", "--workspace", "Bad Slug", file("[]")),
        qr/--workspace must be 1 to 63/, "the slug of the option");
    like(refusal("--workspace", "one", lines({ object => "workspace",
        slug => 5 })), qr{/slug: must be a string}, "one that is there, too");
    like(refusal("--workspace", "one", lines({ %$_, name => " \x{200b}" })),
        qr{/name: must not be blank}, "$_->{object}: a name that shows nothing")
        for { object => "workspace" }, { object => "intake_token" },
            { object => "admin", email => "x\@one.example" };
    is_deeply([@{applied("--create", lines({ object => "workspace",
        slug => "fresh" }))}{qw(created changed unchanged)}], [1, 0, 0],
        "one object counts once");
};

subtest "numbers are the same in each notation, inside of objects, too" => sub {
    my @in = ("--create", "--workspace", "numbers");
    my $with = sub { file(sprintf <<'END', @_) };
[{"object": "agent", "slug": "n", "name": "N", "knowledge_count": %1$s},
{"object": "sequence_template", "name": "N", "pacing": {"days_between_steps": %1$s}},
{"object": "form", "name": "N", "bot_id": "n", "custom_fields": {"x": {"type": "select",
"options": [%2$s]}}}]
END
    apply(@in, $with->("1e1", "1.5E+2"));
    my $before = state();
    for (["1e1", "1.5E+2"], ["10", "150"], ["10.0", "150.00"], ["0.1e2", "1500e-1"]) {
        like(apply(@in, $with->(@$_)), qr/^0 created, 0 changed, .* 3 unchanged$/m,
            "@$_: nothing changes");
        is(state(), $before, "no row is written");
    }
    like(apply(@in, $with->("10", "150.00000000000000001")),
        qr/^0 created, 1 changed/m, "no digit is lost");
    like(show("numbers"), qr/150\.00000000000000001/, "it is there");
};

subtest "the address of an endpoint is checked when it changes, too" => sub {
    my ($hook) = @{$json->decode(show("one"))->{webhook_endpoint}};
    my $to = sub { lines({ object => "webhook_endpoint", id => $hook->{id},
        url => $_[0] }) };
    like(refusal("--workspace", "one", $to->("http://0.0.0.0/")),
        qr{line 1: /url: nothing can be reached at 0\.0\.0\.0$},
        "nothing is there");
    my ($code, $out, $err) = crmapictl($db, "apply", "--dry-run", "--workspace",
        "one", $to->("http://10.0.0.1/"));
    is($code, 3, "a private network may be meant");
    like($err, qr/^crmapictl: warning: 10\.0\.0\.1 is not public/,
        "there is a warning");
    is((crmapictl($db, "apply", "--dry-run", "--workspace", "one",
        $to->($hook->{url})))[2], "", "not of what stays");
};

subtest "what only one may have changes hands in one document" => sub {
    my @agents = map { { object => "agent", slug => "hand-$_", name => "$_",
        agent_email => "hand-$_\@one.example", agent_phone => "+4930555000$_" } }
        1 .. 3;
    apply("--create", "--workspace", "hands", lines(@agents));
    my %id = map { $_->{name} => $_->{id} } @{$json->decode(show("hands"))
        ->{agent}};
    $agents[$_ - 1]{id} = $id{$_} for 1 .. 3;
    my @turned = map { my $to = $_; my $from = $to % 3;
        +{ %{$agents[$to - 1]}, map { $_ => $agents[$from]{$_} } qw(slug
            agent_email agent_phone) } } 1 .. 3;
    is(applied("--workspace", "hands", lines(@turned))->{changed}, 3,
        "three agents, in a circle");
    is(applied("--workspace", "hands", lines(@turned))->{unchanged}, 3,
        "again nothing");
    my @heir = ({ object => "agent", slug => "heir", name => "Heir",
        map { $_ => $turned[0]{$_} } qw(agent_email agent_phone) });
    like(refusal("--workspace", "hands", lines(@heir)),
        qr{/agent_email: belongs to another agent}, "who stays keeps them");
    like(apply("--prune", "--workspace", "hands", lines(@heir)),
        qr/^1 created, 0 changed, 3 deleted/m, "who is pruned does not");
    is(sql($db, "SELECT string_agg(agent_email, ' ') FROM crmapi.agent WHERE"
        . " agent_email LIKE 'hand-%'"), "hand-2\@one.example", "as it says");
};

subtest "two agents with pipelines of one name" => sub {
    my @objects = map { my $agent = $_;
        +{ object => "agent", slug => $agent, name => $agent },
        { object => "pipeline", name => "Sales", bot_id => $agent },
        { object => "pipeline_stage", name => "New", bot_id => $agent,
            pipeline_id => "Sales" } } "north", "south";
    my @in = ("--create", "--workspace", "sides");
    apply(@in, lines(@objects));
    is(sql($db, "SELECT count(*) FROM crmapi.pipeline_stage s JOIN"
        . " crmapi.pipeline p ON p.workspace_id = s.workspace_id AND p.id ="
        . " s.pipeline_id AND p.bot_id = s.bot_id JOIN crmapi.workspace w ON"
        . " w.id = s.workspace_id WHERE w.slug = 'sides'"), 2,
        "a stage is in the one of its agent");
    is(applied(@in, lines(@objects))->{unchanged}, 6, "again nothing");

    my %id = map { ("$_->{bot_id} $_->{name}" => $_->{id}) }
        @{$json->decode(show("sides"))->{pipeline_stage}};
    my ($north, $south) = map { my $name = $_; map { $_->{id} } grep {
        $_->{name} eq $name } @{$json->decode(show("sides"))->{agent}} }
        "north", "south";
    my $card = 0;
    crmapictl_ok($db, { stdin => join "", map { my ($stage, $order) = @$_;
        $json->encode({ object => "pipeline_card", title => "c" . ++$card,
            pipeline_stage_id => $id{"$stage New"}, order_index => $order })
            . "\n" } [$north, 0], [$north, 7], [$south, 1], [$south, 0] },
        "import", "--workspace", "sides");
    my @prune = ("--prune", "--workspace", "sides", "--move-to", $north);
    like(refusal(@prune, "--move-to", uc $north, lines(@objects[0 .. 2])),
        qr/--move-to: $north is the second agent/, "one of each kind");
    apply(@prune, "--move-to", $id{"$north New"}, lines(@objects[0 .. 2]));
    is(sql($db, "SELECT string_agg(c.title || '=' || c.order_index, ' ' ORDER BY"
        . " c.order_index) FROM crmapi.pipeline_card c WHERE"
        . " c.pipeline_stage_id = '" . $id{"$north New"} . "'"),
        "c1=0 c2=7 c4=8 c3=9", "cards go to the end of the stage, in order");
};

subtest "variables in names of members" => sub {
    my %field = (type => "text", label => 'of ${SIZE}');
    my $file = sub { lines({ object => "form", name => "Sizes", bot_id => "ada",
        custom_fields => { @_ } }) };
    my @set = ("--workspace", "three", "--set", "SIZE=eu");
    apply(@set, $file->('size_${SIZE}' => \%field, '$${x}' => \%field));
    is(sql($db, "SELECT string_agg(k, ' ' ORDER BY k) FROM crmapi.form f,"
        . " jsonb_object_keys(f.custom_fields) k WHERE f.name = 'Sizes'"),
        '${x} size_eu', "they are replaced");
    my $other = database();
    my $shown = show("three");
    crmapictl_ok($other, "apply", "--create", file($shown));
    is(crmapictl_ok($other, "show", $json->decode($shown)->{workspace}{slug}),
        $shown, "show, apply elsewhere, show: the same");
    like(refusal(@set, $file->('${NONE}' => \%field)),
        qr/custom_fields\/\$\{NONE\}: \$\{NONE\} has no value/, "no value");
    like(refusal(@set, $file->('${SIZE}' => \%field, eu => \%field)),
        qr/has the name of another member/, "no two of one name");
};

subtest "variables come from files, too" => sub {
    my $set = file("# of four\nSLUG=four\nNAME=Four\nLIMIT=5\n");
    my $name = file("Vier \$\n");
    apply("--create", "--set-file", $set, "--set-file", "NAME=$name",
        $template);
    my $shown = $json->decode(show("four"));
    is($shown->{workspace}{name}, "Vier \$ Ltd", "a file with a value");
    is($shown->{workspace}{read_limit}, 5, "a file of values");
    is((crmapictl($db, "apply", "--set", "1=2", $template))[0], 2,
        "no name: 2");
    write_file($set, "\xef\xbb\xbfSLUG=four\r\nNAME=Four\r\nLIMIT=5\r\n");
    like(apply("--set-file", $set, $template), qr/^~ workspace "Four Ltd"/,
        "a byte order mark is none of the name");
    write_file($_->[1], "LIMIT=6\nSLUG=fo\0ur\nNAME=x\n") , like(refusal(
        "--workspace", "four", "--set-file", $_->[0], file("[]")),
        qr/--set-file: \Q$_->[1]\E must not contain U\+0000/,
        "nothing is cut off") for [$set, $set], ["NAME=$name", $name];
    write_file($name, "\xff");
    like(refusal("--workspace", "four", "--set-file", "NAME=$name", file("[]")),
        qr/--set-file: the value of NAME must be UTF-8/, "what is no text");
};

subtest "long documents" => sub {
    my $text = $json->encode({ object => "agent", slug => "ada" });
    my $long = file($text . " " x 5_000_000);
    like(apply("--dry-run", "--workspace", "one", $long), qr/ 1 unchanged$/,
        "5 MB");
    like(apply("--dry-run", "--workspace", "one", file("\n \t\r\n$text\n\n"
        . $json->encode({ object => "intake_token", name => "site" }) . "\n \n")),
        qr/ 2 unchanged$/, "blank lines between others");
    write_file($long, $text . " " x (16 << 20));
    like(refusal("--workspace", "one", $long), qr/is longer than 16 MiB/,
        "what is too long is refused");
};

subtest "secrets are made once, or come from files" => sub {
    my $secret = "whsec_" . "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    my $token = "svc_in_" . "a" x 30;
    my ($hook, $in) = (file("$secret\n"), file("$token\n"));
    chmod 0600, $hook, $in;
    my @objects = ({ object => "webhook_endpoint", url => "https://f.example/",
        events => ["form.submitted"], secret_file => $hook },
        { object => "intake_token", name => "filed", token_file => $in });
    my $out = apply("--workspace", "four", lines(@objects));
    like($out, qr/^2 created/m, "both are made");
    unlike($out, qr/\Q$secret\E|$token/, "and not printed");
    is(sql($db, "SELECT count(*) FROM crmapi.webhook_endpoint WHERE key ="
        . " decode('" . substr($secret, 6) . "', 'base64')"), 1, "the secret");
    is(sql($db, "SELECT count(*) FROM crmapi.intake_key WHERE key_hash ="
        . " sha256('$token')"), 1, "the token");
    my $before = state();
    like(apply("--workspace", "four", lines(@objects)), qr/2 unchanged/,
        "again nothing");
    is(state(), $before, "no row");
    write_file($hook, "whsec_" . "A" x 40);
    like(my $said = apply("--workspace", "four", lines(@objects)),
        qr/^~ webhook_endpoint .*: secret_file$/m, "another secret is taken");
    like($said, qr/^0 created, 1 changed, 0 deleted, 1 unchanged$/m,
        "each object counts once");
    is(sql($db, "SELECT count(*) FROM crmapi.webhook_endpoint WHERE old_key ="
        . " decode('" . substr($secret, 6) . "', 'base64') AND old_key_until"
        . " BETWEEN now() + interval '23 h' AND now() + interval '24 h'"), 1,
        "12.2 and the one before signs for a day");
    write_file($hook, "whsec_" . "B" x 40);
    $objects[0]{events} = ["contact.created"];
    like($said = apply("--workspace", "four", lines(@objects)),
        qr/^~ webhook_endpoint .*: events, secret_file$/m, "with another field");
    like($said, qr/^0 created, 1 changed, 0 deleted, 1 unchanged$/m,
        "it is one change");
    write_file($in, "svc_in_" . "b" x 30);
    like(refusal("--workspace", "four", lines(@objects)),
        qr{/token_file: is another}, "another token is refused");
};

subtest "prune" => sub {
    my $ids = $json->decode(show("four"));
    my ($new, $won) = map { $_->{id} } @{$ids->{pipeline_stage}};
    my ($agent) = map { $_->{id} } @{$ids->{agent}};
    my $w = sql($db, "SELECT id FROM crmapi.workspace WHERE slug = 'four'");
    my $card = uuid();
    crmapictl_ok($db, { stdin => $json->encode({ object => "pipeline_card",
        id => $card, pipeline_stage_id => $new, title => "Deal" }) . "\n"
        . $json->encode({ object => "contact", bot_id => $agent,
        first_name => "Grace" }) . "\n" }, "import", "--workspace", "four");
    my @kept = grep { ($_->{name} // "") ne "New" && $_->{object} ne "form"
        && $_->{object} !~ /token|hook|admin/ } @template;
    my @prune = ("--set", "SLUG=four", "--set", "NAME=Four", "--set", "LIMIT=5",
        "--prune");
    like(refusal(@prune, lines(@kept)), qr/$new still owns cards/,
        "what owns cards is refused");
    like(refusal(@prune, "--move-to", $new, lines(@kept)),
        qr/--move-to: $new is no/, "they cannot stay");
    my $out = apply(@prune, "--move-to", $won, lines(@kept));
    like($out, qr/^- pipeline_stage "New" \($new\)$/m, "the stage is gone");
    like($out, qr/^- \Q$_\E /m, "so is the $_")
        for qw(form webhook_endpoint admin intake_token);
    is(sql($db, "SELECT pipeline_stage_id FROM crmapi.pipeline_card WHERE id ="
        . " '$card'"), $won, "the card is in the other stage");
    is(sql($db, "SELECT count(*) FROM crmapi.intake_key WHERE workspace_id ="
        . " '$w' AND revoked_at IS NULL"), 0, "tokens are revoked");
    my @none = grep { $_->{object} eq "workspace" } @kept;
    like(refusal(@prune, lines(@none)), qr/still owns/,
        "an agent with contacts is refused");
    my @other = (@none, { object => "agent", slug => "eve", name => "Eve",
        id => my $eve = uuid() }, { object => "pipeline", name => "P",
        bot_id => "eve" }, { object => "pipeline_stage", name => "S",
        pipeline_id => "P", bot_id => "eve", id => my $stage = uuid() });
    apply(@prune, "--move-to", $eve, "--move-to", $stage, lines(@other));
    is(sql($db, "SELECT bot_id FROM crmapi.contact WHERE workspace_id = '$w'"),
        $eve, "the contacts have another agent");
    is(sql($db, "SELECT count(*) FROM crmapi.agent WHERE workspace_id = '$w'"),
        1, "the agent is gone");
    like(apply(@prune, lines(@other)), qr/^0 created, 0 changed, 0 deleted/m,
        "again nothing");
};

# What an object owns: the table, the column and the kind of each foreign key to one
# that --prune deletes.
sub owners {
    my $kinds = join ", ", map { "'crmapi.$_'::regclass" } @_;
    return map { [split /\./] } map { $_->[0] } sql($db, "SELECT c.conrelid::regclass
        || '.' || a.attname || '.' || k.relname, 1 FROM pg_constraint c
        JOIN pg_class k ON k.oid = c.confrelid
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
        WHERE c.contype = 'f' AND c.confrelid IN ($kinds)
          AND a.attname <> 'workspace_id' ORDER BY 1");
}

# The columns of the workspace W that have one of IDS, but for totals.
sub named {
    my ($w, @ids) = @_;
    my @columns = map { [split /\./] } map { $_->[0] } sql($db, "SELECT c.table_name
        || '.' || c.column_name, 1 FROM information_schema.columns c
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE c.table_schema = 'crmapi' AND t.table_type = 'BASE TABLE'
          AND t.table_name <> 'counter' AND c.data_type = 'uuid' AND EXISTS (SELECT FROM
              information_schema.columns w WHERE w.table_schema = 'crmapi'
                AND w.table_name = c.table_name AND w.column_name = 'workspace_id')");
    return [map { $_->[0] } sql($db, join " UNION ALL ", map { "SELECT '$_->[0]."
        . "$_->[1]', count(*) FROM crmapi.$_->[0] WHERE workspace_id = '$w'"
        . " AND $_->[1] = ANY ('{@{[join ',', @ids]}}') HAVING count(*) > 0" }
        @columns)];
}

subtest "prune: all that an object owns is refused, or moves" => sub {
    my $httpd = httpd(database => $db);
    my $w = workspace($httpd, twin => 0);
    my ($id, $c) = ($w->id, $w->client);
    my @kinds = qw(agent pipeline pipeline_stage form sequence_template);
    my @prune = ("--prune", "--workspace", $id);
    CrmTest::Samples->new($w);

    my $shown = $json->decode(show($id));
    my ($stage) = @{$shown->{pipeline_stage}};
    my %kept = ((map { $_ => $shown->{$_}[0]{id} } @kinds),
        pipeline => $stage->{pipeline_id});
    my @gone = grep { my $one = $_; !grep { $_ eq $one } values %kept }
        map { $_->{id} } map { @{$shown->{$_}} } @kinds;
    my @kept = ({ object => "workspace", id => $id },
        map { { object => $_, id => $kept{$_} } } @kinds);
    my @to = map { ("--move-to", $kept{$_}) } grep { $_ ne "pipeline" } @kinds;
    apply(@prune, "--move-to", $kept{pipeline}, @to, lines(@kept));
    is_deeply(named($id, @gone), [], "what was deleted is named nowhere");
    is_deeply([sql($db, "SELECT * FROM crmapi.counter_verify()")], [],
        "totals are right");
    is($c->get("/api/v1/sequences/enrollments?template_id="
        . $kept{sequence_template})->json->{pagination}{total}, 10,
        "enrollments are those of the other template");

    my %scope = (pipeline_stage => [qw(bot_id pipeline_id)], pipeline => ["bot_id"],
        form => ["bot_id"]);
    my %of = (bot_id => $kept{agent}, pipeline_id => $kept{pipeline});
    for my $owner (owners(@kinds)) {
        my ($table, $column, $kind) = @$owner[1 .. 3];
        my $one = uuid();
        my $row = "crmapi.$table WHERE workspace_id = '$id' AND id = (SELECT id"
            . " FROM crmapi.$table WHERE workspace_id = '$id' ORDER BY id LIMIT 1)";
        my $times = sql($db, "SELECT count(*) FROM information_schema.columns WHERE
            table_schema = 'crmapi' AND table_name = '$table'
            AND column_name = 'updated_at'");
        my $at = sub { sql($db, "SELECT " . ($times ? "updated_at" : "1")
            . " FROM $row") };
        my $make = sub { apply("--workspace", $id, lines({ object => $kind,
            id => $one, name => "One",
            map { $_ => $of{$_} } @{$scope{$kind} // []} })) };
        $make->();
        my $give = "UPDATE " . $row =~ s/ WHERE/ SET $column = '$one' WHERE/r;
        # what apply ARGS says that began before the row was given
        my $beside = sub {
            my @command = (@prune, @_, lines(@kept));
            my $let_go = holding($db, $give);
            my $child = CrmTest::Child->start(sub {
                return crmapictl($db, "apply", @command) });
            wait_blocked($db, 1);
            $let_go->("COMMIT");
            return $child->result;
        };
        like(($beside->())[2], qr/the $kind $one still owns/,
            "$table.$column: given at the same time, refused");
        sql($db, $give);
        my $before = $at->();
        like(refusal(@prune, lines(@kept)), qr/the $kind $one still owns/,
            "$table.$column: refused");
        apply(@prune, "--move-to", $kept{$kind}, lines(@kept));
        is(sql($db, "SELECT $column FROM $row"), $kept{$kind}, "and moved");
        $times ? isnt($at->(), $before, "with its updated_at")
            : is($at->(), $before, "it has no updated_at");
        $make->();
        is(($beside->("--move-to", $kept{$kind}))[0], 0,
            "given at the same time");
        is(sql($db, "SELECT $column FROM $row"), $kept{$kind}, "and moved");
    }
};

# What sends and what was sent: all columns of the enrollments of the workspace SLUG
# and of their steps.
sub enrolled {
    my ($slug) = @_;
    return scalar sql($db, "SELECT string_agg(e::text || s::text, chr(10)"
        . " ORDER BY e.id, s.sort_order) FROM crmapi.enrollment e"
        . " JOIN crmapi.workspace w ON w.id = e.workspace_id"
        . " JOIN crmapi.enrollment_step s ON s.workspace_id = e.workspace_id"
        . " AND s.enrollment_id = e.id WHERE w.slug = '$slug'");
}

subtest "running enrollments keep their steps" => sub {
    my $httpd = httpd(database => $db,
        conf => "CrmApiIntake On\nCrmApiIntakeLimit 0\n");
    my $worker = worker(database => $db, no_start => 1);
    my @steps = map { { channel => "email", email_subject => "Part $_",
        email_body => "first text", delay => "1d" } } 1 .. 3;
    my @objects = ({ object => "workspace", slug => "run", plan => "pro",
            name => "Run" },
        { object => "agent", slug => "ada", name => "Ada" },
        { object => "form", name => "Contact", bot_id => "ada" },
        { object => "form", name => "Other", bot_id => "ada" },
        { object => "sequence_template", name => "Other", bot_id => "ada",
            allowed_channels => ["email"], steps => [$steps[0]] });
    my %sequence = (object => "sequence_template", name => "Welcome",
        bot_id => "ada", allowed_channels => ["email"], steps => \@steps);
    apply("--create", lines(@objects, \%sequence));
    my $shown = $json->decode(show("run"));
    my %id = map { my $kind = $_; map { ("$kind $_->{name}" => $_->{id}) }
        @{$shown->{$kind}} } qw(form sequence_template);
    my $key = crmapictl_ok($db, "key", "create", "--workspace", "run", "--name",
        "k", "--scopes", "read,write");
    my $c = $httpd->client(key => $key);
    status_is($c->post("/api/v1/sequences/start", { template_id =>
        $id{"sequence_template Welcome"}, auto_approve => JSON::PP::true,
        contact => { emails => ["grace\@x.example"] } }), 202, "one starts");
    $worker->once;
    my $before = enrolled("run");
    like($before, qr/sent.*scheduled.*scheduled/s, "one step is sent");
    my $texts = sub { [map { /(first|second) text/ ? $1 : () } map {
        read_file($_) } glob $worker->outbox . "/new/*"] };

    @$_{qw(email_subject email_body delay)} = ("New", "second text", "9d")
        for @steps;
    is(applied("--workspace", "run", lines({ %sequence, steps => [@steps[0, 1]],
        pacing => { days_between_steps => 9 } }))->{changed}, 1,
        "the template changes, and has a step less");
    is(enrolled("run"), $before, "the enrollment has the steps that it had");

    status_is($httpd->client->request("POST",
        "/crmapi/intake/v1/forms/$id{'form Contact'}",
        body => "email=ada\@x.example", headers => { "Content-Type" =>
        "application/x-www-form-urlencoded" }), 200, "a form is sent");
    my $other = $id{"sequence_template Other"};
    splice @objects, 2, 1;
    my @prune = ("--prune", "--workspace", "run");
    like(refusal(@prune, lines(@objects)), qr/still owns sequences/,
        "a template of a running enrollment is not pruned");
    like(refusal(@prune, "--move-to", $other, lines(@objects)),
        qr/still owns submissions/, "nor a form with submissions");
    apply(@prune, "--move-to", $other, "--move-to", $id{"form Other"},
        lines(@objects));
    is_deeply([map { @$_ } sql($db, "SELECT q.template_id, s.form_id FROM"
        . " crmapi.workspace w JOIN crmapi.sequence q ON q.workspace_id = w.id"
        . " JOIN crmapi.submission s ON s.workspace_id = w.id"
        . " WHERE w.slug = 'run'")], [$other, $id{"form Other"}],
        "with --move-to they belong to others");
    is(enrolled("run"), $before =~ s/\Q$id{"sequence_template Welcome"}\E/$other/gr,
        "the enrollment has the steps that it had");
    $worker->once("203$_-01-01T00:00:00Z") for 5 .. 7;
    is_deeply($texts->(), [("first") x 3], "and these are sent");
};

subtest "two at once: one waits" => sub {
    my @pids;
    for my $n (1 .. 4) {
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            my ($code) = crmapictl($db, "apply", "--create",
                values_of("five"), $template);
            require POSIX;
            POSIX::_exit($code);
        }
        push @pids, $pid;
    }
    my $failed = grep { waitpid($_, 0); $? } @pids;
    is($failed, 0, "all succeed");
    is(sql($db, "SELECT count(*) FROM crmapi.agent a JOIN crmapi.workspace w"
        . " ON w.id = a.workspace_id WHERE w.slug = 'five'"), 1,
        "each object is made once");
};

# What both write is written by one after the other.
subtest "who applies to a workspace or imports into it waits for the others" => sub {
    my $w = sql($db, "SELECT id FROM crmapi.workspace WHERE slug = 'five'");
    my %does = (apply => ["apply", "--workspace", "five",
            lines({ object => "agent", slug => "ada", name => "Ada" })],
        import => ["import", "--workspace", "five",
            lines({ object => "agent", name => "Bob", slug => "bob" })]);
    for my $what (sort keys %does) {
        my $let_go = postgres()->hold($db, "SELECT pg_advisory_xact_lock("
            . "hashtextextended('import:$w', 0))");
        my $child = CrmTest::Child->start(sub {
            my ($code, undef, $err) = crmapictl($db, @{$does{$what}});
            return "$code $err" });
        ok(eval { postgres()->wait_locked($db, 1); 1 }, "$what waits");
        $let_go->();
        is(join("", $child->result), "0 ", "and is done then");
    }
};

subtest "which workspace a document means" => sub {
    my $named = sub { lines({ object => "workspace", @_ }) };
    apply("--create", $named->(name => "Both", slug => "both-1"));
    like(refusal($named->(name => "Both", slug => "both-2")),
        qr/there is no workspace "both-2"; --create/, "by its slug before its name");
    apply("--create", $named->(name => "Both", slug => "both-2"));
    is(sql($db, "SELECT count(*) FROM crmapi.workspace WHERE name = 'Both'"), 2,
        "so there are two of one name");
    like(refusal($named->(name => "Both", time_zone => "Europe/Paris")),
        qr/several workspaces have the name "Both": say which one by --workspace/,
        "the name alone does not say which one");
    like(apply("--workspace", "both-1", $named->(name => "Both")),
        qr/^0 created, 0 changed/m, "--workspace does");
    like(refusal("--workspace", $_, $named->(name => "Both")),
        qr/there is no workspace/, "one that nobody has") for "both", uuid();
};

# 500 in 60 s (contract 14.1), when $CRM_TENANTS = 500: build/test --all scale.
subtest "workspaces from one template" => sub {
    my $count = $ENV{CRM_TENANTS} // 3;
    my $begin = time;

    apply("--create", values_of("many-$_"), $template) for 1 .. $count;
    my $took = time - $begin;
    diag(sprintf "%d in %.1f s", $count, $took);
    cmp_ok($took / $count, "<", 0.12 * busy(), "500 take less than a minute")
        if $ENV{CRM_TENANTS};
    is(sql($db, "SELECT count(*) FROM crmapi.workspace WHERE slug LIKE 'many-%'"),
        $count, "they are there");
};

done_testing();
