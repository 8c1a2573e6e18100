# SPDX-License-Identifier: Apache-2.0
# CrmTest/Workspace.pm: a workspace with a twin that no answer may show
package CrmTest::Workspace;
use strict;
use warnings;
use Compress::Raw::Zlib qw(crc32);
use Digest::SHA qw(sha256_hex);
use JSON::PP ();
use Test::More ();
use CrmTest::Citus;
use CrmTest::Client;
use CrmTest::Rows;

my $PREFIX = "svc_live_";
my %forbidden;      # id => what it is, of every twin
my $count = 0;
my $json = JSON::PP->new->utf8->canonical;

# No answer to any request may show an id of a twin. A test that uses the twin's
# own key sends the header X-Crm-Twin.
CrmTest::Client->hook(sub {
    my ($request, $response) = @_;

    return if $request->{headers}{"X-Crm-Twin"};
    my $text = join "\n", $response->{body},
        map { "$_->[0]: $_->[1]" } @{$response->{headers}};
    # An answer may repeat parts of the request (Location, request ids).
    my $asked = join "\n", $request->{path} // "", $request->{query} // "",
        $request->{body} // "", $request->{raw} // "",
        map { ref $_ ? @$_ : $_ } values %{$request->{headers}};
    while ($text =~ /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/g) {
        my $what = $forbidden{$1} or next;
        next if index($asked, $1) >= 0 && $response->status >= 400;
        Test::More::fail("no id of another workspace in an answer");
        Test::More::diag("  $what $1 in the answer to $request->{method} "
            . "$request->{path}:\n" . $response->text);
        last;
    }
});

# Make a workspace in the database of SERVER (a CrmTest::Httpd or a name):
#   plan   => default "pro"
#   scopes => of the key, default "read,write"
#   twin   => 0: without a twin
#   seed   => 0: without an agent, a pipeline and its three stages
sub new {
    my ($class, $server, %arg) = @_;
    my $database = ref $server ? $server->{database} : $server;
    my $n = ++$count;
    my $self = bless { database => $database,
        port => ref $server ? $server->port : undef,
        name => $arg{name} || "Test $$-$n" }, $class;

    $self->create($arg{plan}, $arg{slug});
    $self->{key} = $self->make_key($arg{scopes});
    if ($arg{twin} // 1) {
        $self->{twin} = bless { database => $database,
            port => $self->{port}, name => "Twin $$-$n" }, $class;
        $self->{twin}->create($arg{plan});
        $forbidden{$self->{twin}{id}} = "the twin";
    }
    $self->seed if $arg{seed} // 1;
    return $self;
}

# Insert the workspace, as "crmapictl workspace create" does: a test makes two,
# and the command takes thirty times as long.
sub create {
    my ($self, $plan, $slug) = @_;

    $slug //= lc($self->{name}) =~ s/[^a-z0-9]+/-/gr =~ s/^-|-$//gr;
    $self->{id} = CrmTest::uuid();
    CrmTest::Citus::lead($self->{database}, slug_home => $slug, $self->{id});
    CrmTest::sql($self->{database}, row_of("workspace", id => $self->{id},
        name => $self->{name}, slug => $slug, plan => $plan || "pro"));
}

sub id { $_[0]{id} }
sub key { $_[0]{key} }
sub twin { $_[0]{twin} }
sub agent { $_[0]{agent} }
sub pipeline { $_[0]{pipeline} }
sub stages { @{$_[0]{stages}} }

# Run crmapictl on the workspace's database; dies when it fails. It prepares a
# test, so that of the plain build does, which starts four times as fast.
sub ctl {
    my ($self, @arguments) = @_;
    my $plain = ($ENV{CRM_BUILD_plain} // "") . "/crmapictl";

    local $CrmTest::BUILD{CTL} = $plain if -x $plain;
    return CrmTest::crmapictl_ok($self->{database}, @arguments);
}

# The same, for what it says with --json.
sub ctl_json {
    my ($self, @arguments) = @_;

    return $json->decode($self->ctl("--json", @arguments));
}

# Turn its log of events on. Return it.
sub log_on {
    my ($self) = @_;
    $self->ctl("workspace", "set", $self->id, "--events", "on");
    return $self;
}

# Make an intake token called NAME; the token.
sub token {
    my ($self, $name) = @_;
    return $self->ctl(qw(intake create --workspace), $self->{id}, "--name",
        $name);
}

# Send EVENTS to the webhook URL; what crmapictl prints of it.
sub webhook {
    my ($self, $url, @events) = @_;
    return $self->ctl(qw(webhook add --workspace), $self->{id}, "--url", $url,
        "--events", join ",", @events);
}

# A key as "crmapictl key create" makes it: random characters, and in base 62
# their CRC-32 (mod_crmapi/base/crm_key.c).
sub new_key {
    my @base62 = ("0" .. "9", "A" .. "Z", "a" .. "z");
    my $key = $PREFIX . join "", map { $base62[rand 62] } 1 .. 24;
    my ($crc, $sum) = (crc32($key), "");

    for (1 .. 6) {
        $sum = $base62[$crc % 62] . $sum;
        $crc = int($crc / 62);
    }
    return $key . $sum;
}

# Make another key and return it.
sub make_key {
    my ($self, $scopes, $name) = @_;
    my $key = new_key();

    CrmTest::Citus::lead($self->{database}, key_home =>
        "\\x" . sha256_hex($key), $self->{id});
    CrmTest::sql($self->{database}, row_of("api_key", id => CrmTest::uuid(),
        workspace_id => $self->{id}, name => $name || "test",
        key_hash => "\\x" . sha256_hex($key),
        display => $key =~ s/^\Q$PREFIX\E.{4}\K.*(?=.{4}$)/.../r,
        can_write => ($scopes // "write") =~ /write/ ? CrmTest::true()
            : CrmTest::false()));
    return $key;
}

# The ids of the workspace's keys, the newest last.
sub key_ids {
    my ($self) = @_;
    my $keys = JSON::PP->new->utf8->decode($self->ctl("--json", "key", "list",
        "--workspace", $self->{id}));
    return map { $_->{id} }
        sort { $a->{created_at} cmp $b->{created_at} || $a->{id} cmp $b->{id} }
        @$keys;
}

# A client with the workspace's key.
sub client {
    my ($self, %arg) = @_;
    return CrmTest::Client->new(port => $self->{port}, key => $self->{key},
        %arg);
}

# Have the API make a contact or a company of the agent, with FIELDS: what it says.
# Dies when it does not.
sub contact { my $self = shift; return $self->made("contacts", @_) }
sub company { my $self = shift; return $self->made("companies", @_) }
sub made {
    my ($self, $path, %fields) = @_;
    my $r = $self->client->post("/api/v1/$path",
        { bot_id => $self->agent, $path eq "companies" ? (name => "N") : (),
            %fields });

    die $r->text if $r->status != 201;
    return $r->data;
}

# Start a sequence of TEMPLATE, with MEMBERS: what the API says. Dies when it does
# not.
sub start {
    my ($self, $template, %members) = @_;
    my $r = $self->client->post("/api/v1/sequences/start",
        { template_id => $template, %members });

    die $r->text if $r->status != 202;
    return $r->data;
}

# Start a sequence of {template} for CONTACT, which nobody has to approve unless
# MEMBERS say so; the enrollment's id.
sub start_for {
    my ($self, $contact, %members) = @_;
    return $self->start($self->{template}, auto_approve => CrmTest::true(),
        contact => $contact, %members)->{enrollment_id};
}

# Insert the contacts that CONTACTS, SQL with the columns id, emails and
# phone_numbers, selects, and start a sequence of {template} for each, as the API
# does, in one statement. Without AUTO it has to be approved.
sub start_many {
    my ($self, $contacts, $auto) = @_;
    my ($id, $bot) = ($self->id, $self->agent);
    my $approve = $auto ? "true" : "false";
    CrmTest::sql($self->{database}, <<"END");
WITH made AS (
    INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, emails,
        phone_numbers)
    SELECT p.id, '$id', '$bot', 'Ada', p.emails, p.phone_numbers
    FROM ($contacts) p RETURNING id),
sequences AS (
    INSERT INTO crmapi.sequence (id, workspace_id, name, bot_id, template_id,
        auto_approve)
    SELECT id, '$id', 'S', '$bot', '$self->{template}', $approve FROM made
    RETURNING id),
enrolled AS (
    INSERT INTO crmapi.enrollment (id, workspace_id, sequence_id, contact_id,
        contact_action)
    SELECT gen_random_uuid(), '$id', s.id, s.id, 'created' FROM sequences s
    RETURNING id)
INSERT INTO crmapi.job (workspace_id, kind, payload)
SELECT '$id', 'generate.steps', jsonb_build_object('enrollment_id', id)
FROM enrolled
END
}

# The data of the object ID of PATH, as the API shows it.
sub shown { $_[0]->client->get("/api/v1/$_[1]/$_[2]")->data }
sub enrollment { $_[0]->shown("sequences/enrollments", $_[1]) }

# The Message-ID of the mail of the step ID, which is random and kept.
sub message_id {
    my ($self, $id) = @_;
    return scalar CrmTest::sql($self->{database},
        "SELECT message_id FROM crmapi.enrollment_step WHERE id = '$id'");
}

# The first hundred messages of the conversation ID, as QUERY asks for them.
sub messages {
    my ($self, $id, %query) = @_;
    return @{$self->client->get("/api/v1/conversations/$id/messages",
        query => { page_size => 100, %query })->data};
}

# Import OBJECTS (hashes as the lines of crmapictl import), and the same with
# other ids into the twin. Objects without an id get one; returns the ids in
# order. load => the method that writes them.
sub import_objects {
    my ($self, $objects, %arg) = @_;
    my $load = $arg{load} || "load";
    my (%map, @ids);

    for my $object (@$objects) {
        $object->{id} //= CrmTest::uuid()
            unless $object->{object} eq "suppression";
        push @ids, $object->{id};
    }
    $self->$load($self->{id}, $objects);
    if ($self->{twin}) {
        my $text = join "\n", map { $json->encode($_) } @$objects;
        $map{$_->{id}} = $self->{map}{$_->{id}} //= CrmTest::uuid()
            for grep { defined $_->{id} } @$objects;
        %map = (%{$self->{map}}, %map, $self->{id} => $self->{twin}{id});
        $text =~ s/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/$map{$1} || $1/ge;
        my @twins = map { $json->decode($_) } split /\n/, $text;
        for my $agent (grep { $_->{object} eq "agent" } @twins) {
            # an address is one agent's (contract 14.2)
            s/^/twin-/ for grep { defined } @$agent{"agent_email",
                "email_outbound_email"};
            s/$/99/ for grep { defined } $agent->{agent_phone};
        }
        for my $twin (grep { defined $_->{id} } @twins) {
            $forbidden{$twin->{id}} = "the twin's $twin->{object}";
        }
        $self->$load($self->{twin}{id}, \@twins);
    }
    return @ids;
}

# Import OBJECTS. Return why that is refused, or "".
sub refusal {
    my ($self, @objects) = @_;
    my ($code, undef, $err) = CrmTest::crmapictl($self->{database},
        { stdin => join "", map { $json->encode($_) . "\n" } @objects },
        "import", "--workspace", $self->id);
    return $code ? $err : "";
}

# Import a conversation of the agent on the channel TYPE, with MEMBERS; its id.
sub conversation {
    my ($self, $type, %members) = @_;
    my ($id) = $self->import_objects([{ object => "conversation", type => $type,
        bot_id => $self->agent, %members }]);
    return $id;
}

# Answer in the conversation TALK with BODY, a text or all that the body has: the
# message. OPTIONS are those of a client's request. Dies when the API refuses it.
sub answer {
    my ($self, $talk, $body, %options) = @_;
    my $r = $self->client->post("/api/v1/conversations/$talk/messages",
        ref $body ? $body : { content => $body }, %options);

    die $r->text if $r->status != 201;
    return $r->data;
}

# Import a sequence template of the agent with STEPS, each for the channel that its
# texts are of, and one in the twin; its id. MEMBERS override what it has.
sub template {
    my ($self, $steps, %members) = @_;
    my @steps = map { { channel => exists $_->{sms_body} ? "sms"
        : exists $_->{voice_script} ? "voice" : "email", %$_ } } @{$steps || []};
    my %channels = map { $_->{channel} => 1 } @steps;

    return ($self->import_objects([{ object => "sequence_template", name => "T",
        bot_id => $self->agent, steps => \@steps,
        allowed_channels => [%channels ? sort keys %channels : "email"],
        %members }]))[0];
}

# The id of OBJECT_ID's copy in the twin.
sub twin_of {
    my ($self, $id) = @_;
    return $self->{map}{$id};
}

sub load {
    my ($self, $id, $objects) = @_;
    $self->ctl({ stdin => join "", map { $json->encode($_) . "\n" } @$objects },
        "import", "--workspace", $id);
}

# The same for OBJECTS whose members are columns: without crmapictl, and its checks.
sub insert {
    my ($self, $id, $objects) = @_;
    my @rows = map { { %$_ } } @$objects;

    CrmTest::sql($self->{database}, join ";\n", map { row_of(
        delete $_->{object}, workspace_id => $id, %$_) } @rows);
}

# An agent, a pipeline, three stages: what most tests refer to.
sub seed {
    my ($self) = @_;
    my ($agent, $pipeline, @stages) = map { CrmTest::uuid() } 1 .. 5;

    $self->import_objects([
        { object => "agent", id => $agent, name => "Ada", slug => "ada",
            summary => "answers first", is_agent => CrmTest::true(),
            enabled => CrmTest::true(), agent_type => "external" },
        { object => "pipeline", id => $pipeline, bot_id => $agent,
            name => "Sales", is_default => CrmTest::true(),
            is_private => CrmTest::false() },
        map { { object => "pipeline_stage", id => $stages[$_],
            bot_id => $agent, pipeline_id => $pipeline,
            name => ("New", "Talking", "Won")[$_],
            color => ("#aabbcc", "#ddeeff", "#00aa00")[$_],
            order_index => $_ } } 0 .. 2
    ], load => "insert");
    @$self{qw(agent pipeline stages)} = ($agent, $pipeline, \@stages);
}

1;
