# SPDX-License-Identifier: Apache-2.0
# 94-import-checks.t: what is imported is checked to the bottom, JSON columns
# too; each error names line, JSON pointer and rule (contract 14.2)
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Session;
use File::Temp qw(tempdir);
use POSIX ();

my $w = workspace(database(), twin => 0);
my $json = JSON::PP->new->ascii->canonical->allow_nonref;
my $seed = $ENV{CRM_SEED} // time;
srand $seed;

sub pick { return $_[rand @_] }
sub some { my $n = int rand(@_ + 1); return @_[0 .. $n - 1] }
sub word { return join "", map { ("a" .. "z")[rand 26] } 1 .. 3 + rand 9 }

# ---- random documents that are right ----------------------------------------

sub text_with_fields {
    return join " ", word(), some(pick("{{first_name|you}}", "{{custom.plan}}",
        "{{agent.name}}", "{{ company.name | - }}", "{{{{", "{{full_name}}"),
        word());
}

sub step {
    my ($channel) = @_;
    my %texts = (sms => { sms_body => text_with_fields() },
        email => { email_subject => text_with_fields(),
            email_body => text_with_fields() . "\n" . word() },
        voice => { voice_script => text_with_fields(),
            rand() < 0.5 ? (voice_objective => word()) : () });
    return { channel => $channel, %{$texts{$channel}},
        rand() < 0.5 ? (delay => pick("45m", "1d12h", 2, 0.5)) : () };
}

sub template {
    return { object => "sequence_template", name => word(),
        allowed_channels => [some(qw(email sms voice))],
        pacing => { days_between_steps => pick(0, 0.5, 3, 365),
            time_zone => pick("Europe/Berlin", "UTC", "Asia/Tokyo",
                "America/Argentina/Buenos_Aires"),
            window => { from => pick("00:00", "09:00"),
                to => pick("17:30", "24:00"),
                days => [pick("mon", "tue"), pick("sat", "sun")] } },
        steps => [map { step($_) } qw(email sms voice email)] };
}

sub form {
    return { object => "form", name => word(), bot_id => $w->agent,
        standard_fields => { email => { required => JSON::PP::true,
                label => word(), order => 1 }, name => JSON::PP::true,
            last_name => word(), city => JSON::PP::false, state => undef, style => 1,
            _form => { redirect_url => "https://x.example/" . word(),
                thank_you => word(), honeypot => word(),
                lead_source => word(),
                allowed_origins => ["https://x.example",
                    "http://localhost:8080"] } },
        custom_fields => {
            "t/~" . word() => { type => "textarea", max_length => 4000,
                min_length => 2, hint => word() },
            n => { type => "number", min => -1.5, max => "7" },
            d => { type => "date", min => "2026-01-01", max => "2026-12-31" },
            yes => { type => "boolean", required => JSON::PP::true } },
        survey_questions => { s => { type => pick("select", "radio",
                "multiselect"), options => [word(), 7,
                { value => "other", label => word() }] } } };
}

sub agent {
    return { object => "agent", name => word(),
        slug => word() . "-" . $json->encode(int rand 1e9),
        agent_email => word() . int(rand 1e9) . "\@crm.example",
        agent_phone => "+49301" . int(1e7 + rand 8e7),
        email_outbound_email => word() . int(rand 1e9) . "\@b\x{fc}cher.example",
        chat_avatar_image_url => "https://x.example/a.png",
        chat_mail_fallback => 1 + int(rand 10080),
        chat_origins => ["https://x.example", "*"] };
}

my %make = (sequence_template => \&template, form => \&form, agent => \&agent);

# ---- one mistake -------------------------------------------------------------

# A list of mistakes of OBJECT: [pointer, value it gets there]. A value that is
# a reference to "delete" is taken away.
my $gone = \"delete";
my %mistakes = (
    sequence_template => [
        ["/pacing/dayz", 3], ["/pacing/days_between_steps", -1],
        ["/pacing/days_between_steps", "3"], ["/pacing/time_zone", "Mars/One"],
        ["/pacing/time_zone", "Europe/Berlln"], ["/pacing/time_zone", 7],
        ["/pacing/window/form", "09:00"], ["/pacing/window/from", "9:00"],
        ["/pacing/window/to", "24:01"], ["/pacing/window/days/1", "Sun"],
        ["/pacing/window/days/0", 1], ["/pacing/window", []],
        ["/allowed_channels/0", "fax"], ["/steps/0/channel", "fax"],
        ["/steps/1", "sms"], ["/steps/2/channel", "email", "/steps/2/voice_"],
        ["/steps/0/email_subject", "Hi {{frist_name}}"],
        ["/steps/3/email_body", "{{company.nme|x}}"],
        ["/steps/1/sms_body", "{{first_name"], ["/steps/1/sms_body", " "],
        ["/steps/1/sms_body", "x" x 1601], ["/steps/0/email_subject", "a\nb"],
        ["/steps/2/voice_script", $gone], ["/steps/0/email_body", 1],
        ["/steps/1/delay", "2w"], ["/steps/1/dealy", "2d"],
        ["/steps/3/emial_body", "x"], ["/pakcing", {}], ["/name", ""],
        ["/name", " \x{200b}"]],
    form => [
        ["/custom_fields/n/type", "colour"], ["/custom_fields/n/max", "many"],
        ["/custom_fields/n/min", 8], ["/custom_fields/d/min", "1.1.2026"],
        ["/custom_fields/d/min", "2027-01-01"],
        ["/custom_fields/yes/requird", JSON::PP::true],
        ["/custom_fields/yes/required", "yes"],
        ["/custom_fields/n/max_length", 0],
        ["/custom_fields/n/max_lenght", 3],
        ["/custom_fields/yes/min", 1],
        ["/survey_questions/s/options", []],
        ["/survey_questions/s/options", $gone],
        ["/survey_questions/s/options/2/value", ""],
        ["/survey_questions/s/options/1", {},
            "/survey_questions/s/options/1/value"],
        ["/survey_questions/s/options/1", "other",
            "/survey_questions/s/options/2"],
        ["/survey_questions/s/options/1", " other ",
            "/survey_questions/s/options/2"],
        ["/survey_questions/s/options/0", "\x{a0}"],
        ["/survey_questions/s/options/0", "a\nb"],
        ["/survey_questions/s/options/2/value", "a\x7fb"],
        ["/survey_questions/s", { type => "select", max_length => 3,
                options => ["abc", "abcd"] },
            "/survey_questions/s/options/1"],
        ["/survey_questions/s", { options => ["abc", { value => 12 }],
                min_length => 3, type => "radio" },
            "/survey_questions/s/options/1"],
        ["/survey_questions/s/type", 3],
        ["/standard_fields/emial", JSON::PP::true],
        (map { ["/standard_fields/email", $_] } 1, 0, 1.5, [], ["required"]),
        ["/standard_fields/phone", 1],
        ["/standard_fields/email/lable", "x"],
        ["/standard_fields/email/label", ""],
        ["/standard_fields/_form/redirect_url", "/thanks"],
        ["/standard_fields/_form/redirect_url", "javascript:alert(1)"],
        ["/standard_fields/_form/thankyou", "x"],
        ["/standard_fields/_form/allowed_origins/1", "x.example"],
        ["/standard_fields/_form/allowed_origins/0", "https://x.example/"],
        ["/standard_fields/_form", JSON::PP::true],
        ["/bot_id", uuid()], ["/custom_fields", []]],
    agent => [
        ["/slug", "a b"], ["/slug", ""], ["/agent_email", "sales"],
        ["/agent_email", "a\@b\@c"], ["/agent_phone", "4930901820"],
        (map { my $address = $_; map { [$_, $address] } "/agent_email",
            "/email_outbound_email" } "gr\x{fc}n\@x.example", '"a b"@x.example',
            "a..b\@x.example", ".a\@x.example"),
        ["/agent_phone", "+49 30 9018 ext. 2"], ["/agent_phone", "+123"],
        ["/email_outbound_email", "x"], ["/chat_origins/0", "x.example"],
        ["/chat_origins/1", "https://x.example/page"],
        (map { ["/chat_mail_fallback", $_] } 0, -5, 10081, 1.5, "5", 1e12),
        ["/chat_avatar_image_url", "a.png"], ["/agnet_email", "a\@x.example"]]);

# Return the object of DOCUMENT that has the member of POINTER, and its name.
sub place {
    my ($document, $pointer) = @_;
    my @names = map { s/~1/\//gr =~ s/~0/~/gr } split m{/}, $pointer;
    my $last = pop @names;
    shift @names;
    $document = ref $document eq "ARRAY" ? $document->[$_] : $document->{$_}
        for @names;
    return ($document, $last);
}

diag("CRM_SEED=$seed");
for my $object (sort keys %make) {
    is($w->refusal(map { $make{$object}->() } 1 .. 100), "",
        "$object: 100 random ones that are right are taken");
    subtest "$object: a mistake anywhere is found and named" => sub {
        for my $mistake (@{$mistakes{$object}}) {
            my ($pointer, $value, $named) = @$mistake;
            my $line = 1 + int rand 4;
            my @lines = map { $make{$object}->() } 1 .. 4;
            my ($in, $name) = place($lines[$line - 1], $pointer);
            if (ref $in eq "ARRAY") {
                $in->[$name] = $value;
            }
            elsif (ref $value eq "SCALAR" && $value == $gone) {
                delete $in->{$name};
            }
            else {
                $in->{$name} = $value;
            }
            $named = defined $named ? qr/\Q$named\E\w*/ : qr/\Q$pointer\E/;
            like($w->refusal(@lines), qr/: line $line: $named: \S/,
                "$pointer " . (ref $value eq "SCALAR" ? "left out"
                    : $json->encode($value)));
        }
    };
}

subtest "one run names all lines that are refused" => sub {
    my @bad = map { { object => "contact", mobile => $_ } } 1 .. 30;
    my $good = { object => "company", bot_id => $w->agent, name => "Good" };
    my @said = split /\n/, $w->refusal($good, @bad[0, 1], $good,
        { object => "deal" });
    is(join(", ", map { /(line \d: \S+):/ } @said),
        "line 2: /mobile, line 3: /mobile, line 5: /object", "each with its place");
    is(scalar(split /\n/, $w->refusal(@bad)), 20, "at most twenty");
    my ($code, undef, $err) = crmapictl($w->{database}, { stdin => qq({"object":"x"}\n)
        . "Id,Name\n" x 30 }, "import", "--workspace", $w->id);
    is(join(", ", $err =~ /stdin: (line \d+)/g), "line 1, line 2",
        "what is no JSON is another kind of file");
    unlike($w->ctl("export", "--workspace", $w->id), qr/"Good"/, "nothing is stored");
};

subtest "names that pointers escape" => sub {
    my $form = form();
    $form->{custom_fields} = { "a/b~c" => { type => "colour" } };
    like($w->refusal($form), qr{line 1: /custom_fields/a~1b~0c/type: must be text},
        "as RFC 6901 has them");
    like($w->refusal({ object => "contact", mobile => 1 }),
        qr{line 1: /mobile: is not .*; did you mean phone_numbers\?$}, "of others");
    like($w->refusal({ object => "agent", "x.y" => 1 }), qr{line 1: /x\.y: is not},
        "a dot is a dot");
};

subtest "a slug belongs to one agent of a workspace" => sub {
    my $slug = "once-" . int rand 1e9;
    my @two = map { { object => "agent", name => "A$_", slug => $slug } } 1, 2;
    like($w->refusal(@two), qr{line 2: /slug: occurs twice}, "twice in a file");
    is($w->refusal($two[0]), "", "once it is taken");
    like($w->refusal($two[1]), qr{line 1: /slug: exists already}, "and not again");
    my $other = workspace($w->{database}, twin => 0);
    my ($code) = crmapictl($w->{database},
        { stdin => $json->encode($two[1]) . "\n" }, "import", "--workspace",
        $other->id);
    is($code, 0, "another workspace may have it, too");
    ok(!eval { sql($w->{database}, "INSERT INTO crmapi.agent (id,"
        . " workspace_id, slug) VALUES (gen_random_uuid(), '" . $w->id
        . "', '$slug')") }, "no writer goes around it");
    like($@, qr/agent_slug/, "but is refused");
};

subtest "the first line that is wrong is named" => sub {
    my $other = workspace($w->{database}, twin => 0);
    my $taken = sub { "a" . int(rand 1e9) . "\@crm.example" };
    my ($slug, $address) = (word() . int(rand 1e9), $taken->());
    $other->import_objects([{ object => "agent", name => "Theirs",
        agent_email => $address }]);
    my $once = { object => "agent", name => "A", slug => $slug };
    my $of_none = { object => "contact", bot_id => uuid() };
    my $theirs = { object => "agent", name => "B", agent_email => $address };
    my %same = (object => "company", id => uuid(), bot_id => $w->agent, name => "C");
    for (
        [qr{line 2: /slug: occurs}, $once, $once, $of_none],
        [qr{line 1: /bot_id: }, $of_none, $once, $once],
        [qr{line 1: /agent_email: belongs}, $theirs, $once, $once],
        [qr{line 2: /slug: occurs}, $once, $once, $theirs],
        [qr{line 2: /id: occurs}, \%same, \%same, $of_none, $once, $once],
        [qr{line 2: /id: occurs}, \%same, \%same, \%same],
    ) {
        my ($said, @lines) = @$_;
        like($w->refusal(@lines), $said, "$said");
    }
};

subtest "a text keeps each of its characters" => sub {
    my $text = join "x", "a", "\t", "\n", "\r", "\r\n", "\\", "\\N", "\\.", "\\t",
        "\x01", "\x{85}", "\x{2028}", "\x{1f600}", "b";
    my $id = uuid();
    is($w->refusal({ object => "contact", id => $id, bot_id => $w->agent,
        notes => $text, custom_fields => { t => $text } }), "", "taken");
    my $utf8 = JSON::PP->new->utf8;
    my ($line) = grep { $_->{id} eq $id } map { $utf8->decode($_) } split /\n/,
        $w->ctl("export", "--workspace", $w->id, "--object", "contact");
    is($line->{notes}, $text, "in a text");
    is($line->{custom_fields}{t}, $text, "and within JSON");
};

subtest "imports into a workspace take turns" => sub {
    my $other = workspace($w->{database}, twin => 0);
    my $line = $json->encode({ object => "agent", name => "A" }) . "\n";
    pipe(my $read, my $write) or die "$!";
    $write->autoflush(1);
    my $first = fork // die "$!";
    if (!$first) {
        close $write;
        open(STDIN, "<&", $read) or POSIX::_exit(126);
        exec("$CrmTest::BUILD{DIR}/crmapictl", "--database",
            postgres()->conninfo($w->{database}), "import", "--workspace", $w->id)
            or POSIX::_exit(127);
    }
    close $read;
    ok(wait_for(sub { sql($w->{database}, "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'") }, 20),
        "the first begins");
    my $second = CrmTest::Child->start(sub { close $write;
        $w->refusal($json->decode($line)) });
    wait_blocked($w->{database}, 1);
    my ($code) = crmapictl($w->{database}, { stdin => $line }, "import",
        "--workspace", $other->id);
    is($code, 0, "one into another workspace waits for none");
    print $write $line;
    close $write;
    waitpid $first, 0;
    is($?, 0, "the first ends");
    is(($second->result)[0], "", "then the second");
};

subtest "a line without an end is refused as soon as it is too long" => sub {
    my $file = tempdir(CLEANUP => 1) . "/lines";
    write_file($file, "{}");
    truncate($file, 4 << 30) or die "$file: $!";     # of which no block is stored
    my ($code, undef, $err) = run_program(command => ["sh", "-c",
        'ulimit -v 400000; exec "$@"', "sh", "$CrmTest::BUILD{DIR}/crmapictl",
        "--database", postgres()->conninfo($w->{database}), "import",
        "--workspace", $w->id, $file]);
    is($code, 1, "it is refused");
    like($err, qr{\Q$file: line 1: is longer than 4 MiB}, "with the rule");
};

subtest "a line may have 4 MiB; what cannot be read is no empty file" => sub {
    my $id = sub { my $line = $json->encode({ object => "agent", name => "A",
        slug => "long-" . int rand 1e9 });
        $line . " " x ((4 << 20) - 1 + $_[0] - length $line) . "\n" };
    my $import = sub { crmapictl($w->{database}, { stdin => join "", @_ },
        "import", "--workspace", $w->id) };
    my ($code, undef, $err) = $import->($id->(0), $id->(0));
    is("$code$err", "0", "as many as that");
    ($code, undef, $err) = $import->($id->(-9), $id->(1));
    is($code, 1, "not one more");
    like($err, qr/line 2: is longer than 4 MiB/, "which is named");
    ($code, undef, $err) = crmapictl($w->{database}, "import", "--workspace", $w->id,
        $CrmTest::TOP);
    is($code, 1, "a folder is refused");
    like($err, qr/Is a directory/, "with the reason");
};

done_testing;
