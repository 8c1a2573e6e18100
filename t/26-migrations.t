# SPDX-License-Identifier: Apache-2.0
# 26-migrations.t: a database that was filled at an earlier version of the
# schema and then migrated gives the same answers as one that was filled at the
# newest: that of the release after this one (t/upgrade/)
# second gear
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Rows;
use CrmTest::Upgrade;
use Digest::SHA qw(sha256_hex);
use File::Basename qw(basename);
use File::Temp qw(tempdir);
use JSON::PP ();

my $json = JSON::PP->new->utf8->canonical;
my $scratch = tempdir("crm-schema-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my @FILES = sort glob next_schema() . "/[0-9]*.sql";
my $FIRST = baseline();
my $NEWEST = @FILES;
my $pg = postgres();
$pg->make_template($CrmTest::BUILD{CTL});       # and logins

# ---- what is filled in -----------------------------------------------------------

my %ID;
# An id by its name, the same in all databases.
sub id {
    my ($name) = @_;
    return $ID{$name} //= sprintf "0190%04x-0000-7000-8000-%012x", 1 + keys %ID,
        1 + keys %ID;
}
my $then = "2026-01-02T03:04:05.006Z";
my %KEY = map { $_ => "svc_live_" . $_ x 30 } qw(p s f);

sub object { $json->encode($_[0]) }

# [table => { column => value }, ...] in an order that references allow. Rows of
# tables, and columns, that a version does not have are left out.
my @ROWS;
sub row { push @ROWS, [shift, { @_ }] }

for my $space (["p", "pro"], ["s", "standard"], ["f", "free"]) {
    my ($key, $plan) = @$space;
    my %in = (workspace_id => id("w-$key"));
    my %made = (created_at => $then);
    my %kept = (%made, updated_at => $then);
    row(workspace => id => $in{workspace_id}, name => "Space $key",
        slug => "space-$key", plan => $plan, time_zone => "Europe/Berlin",
        %made);
    row(api_key => %in, id => id("key-$key"), name => "k",
        key_hash => "\\x" . sha256_hex($KEY{$key}), display => "$key...",
        can_write => "true", last_used_at => $then, %made);
    row(api_key => %in, id => id("dead-$key"), name => "dead",
        key_hash => "\\x" . sha256_hex("dead $key"), display => "dead",
        revoked_at => $then, %made);
    my %own = (%in, bot_id => id("agent-$key"));
    row(agent => %in, id => $own{bot_id}, name => "Ada", slug => "ada",
        agent_email => "ada-$key\@crm.example", agent_phone => "+4930" . ord $key,
        enabled_event_type_ids => "{a,b}", chat_origins => "{*}",
        chat_mail_fallback => 5, %made);
    row(pipeline => %own, id => id("pipe-$key"), name => "Sales", %kept);
    row(pipeline_stage => %own, id => id("stage-$key"), name => "New",
        pipeline_id => id("pipe-$key"), order_index => 3, %kept);
    row(company => %own, id => id("company-$key"), name => "ACME",
        domain => "ACME.example", annual_revenue => "12.5",
        tags => "{a,B}", custom_fields => '{"a": 1.50}',
        pipeline_stage_id => id("stage-$key"), %kept);
    for my $n (1 .. 5) {
        row(contact => %own, id => id("contact-$key-$n"),
            first_name => "C$n", last_name => "Straße", emails => object([
                { email => "C$n\@X.example", is_primary => JSON::PP::true }]),
            phone_numbers => object([{ phone_number => "+49 30 $n",
                is_primary => JSON::PP::true }]), deal_value => "0.1",
            company_id => $n % 2 ? id("company-$key") : undef,
            tags => "{t$n}", custom_fields => '{"n": 0.10}', %kept);
        row(pipeline_card => %in, id => id("card-$key-$n"), title => "D$n",
            pipeline_stage_id => id("stage-$key"), order_index => $n,
            contact_id => id("contact-$key-$n"),
            archived_at => $n == 1 ? $then : undef, %kept);
        row(activity => %in, id => id("activity-$key-$n"),
            contact_id => id("contact-$key-$n"), activity_type => "call",
            company_id => $n == 2 ? id("company-$key") : undef,
            due_date => $then, duration_minutes => "0.25", %kept);
        row(conversation => %own, id => id("talk-$key-$n"), type => $n,
            contact_id => id("contact-$key-$n"), email => "c$n\@x.example",
            active => $n < 4 ? "true" : "false", last_message => "Hello",
            last_message_at => $n == 3 ? undef : $then,
            last_active_at => $then, deleted => $n == 5 ? "true" : undef,
            deleted_at => $n == 5 ? $then : undef, minutes => "1.5",
            assigned_to => "me", archived => $n == 4 ? "true" : undef,
            activated_at => $then, thread => "th-$n", subject => "S", %made);
        row(message => %in, id => id("message-$key-$n"), role => "user",
            conversation_id => id("talk-$key-$n"), content => "Hello",
            tool_arguments => '{"a": 1}', external_id => "e$n", %made);
        row(chat_unseen => %in, conversation_id => id("talk-$key-$n"),
            since => $then);
        row(form => %own, id => id("form-$key-$n"), name => "F$n", %kept);
        row(submission => %in, id => id("submission-$key-$n"),
            form_id => id("form-$key-$n"), is_internal => "false",
            contact_id => id("contact-$key-$n"), submitted_at => $then,
            custom_field_responses => '{"a": "b"}');
        row(attachment => %in, id => id("attachment-$key-$n"),
            message_id => id("message-$key-$n"), number => 1, filename => "a",
            content_type => "text/plain", content_id => "c\@x", size => 3,
            stored => "true");
        row(attachment_piece => %in, attachment_id => id("attachment-$key-$n"),
            number => 1, bytes => "\\x616263");
        row(original => %in, message_id => id("message-$key-$n"), number => 1,
            created_at => $then, bytes => "\\x0a00ff");
        row(message_html => %in, message_id => id("message-$key-$n"),
            html => "<p>a</p>");
    }
    row(sequence_template => %own, id => id("template-$key"), name => "T",
        allowed_channels => "{email}", steps => object([{ channel =>
            "email", email_subject => "S", email_body => "B" }]), %kept);
    # of every state; what is "generating" has its job
    for my $state (qw(generating pending_approval approved running completed
            failed stopped_user)) {
        row(sequence => %own, id => id("sequence-$key-$state"), name => "S",
            template_id => id("template-$key"), auto_approve => "true",
            idempotency_key => "i-$state", %made);
        row(enrollment => %in, id => id("enrollment-$key-$state"),
            sequence_id => id("sequence-$key-$state"),
            contact_id => id("contact-$key-1"), contact_action => "created",
            %kept);
        next if $state eq "generating";
        row(enrollment_step => %in, id => id("step-$key-$state"),
            enrollment_id => id("enrollment-$key-$state"), sort_order => 1,
            channel => "email", to_identifier => "c1\@x.example",
            email_subject => "S", email_body => "B", scheduled_for => $then,
            status => $state =~ /^(?:running|completed)$/ ? "sent"
                : "scheduled");
    }
    row(job => %in, kind => "generate.steps", payload => object({
        enrollment_id => id("enrollment-$key-generating") }), %made);
    row(job => %in, kind => "sequence.step", state => "dead", attempts => 9,
        finished_at => $then, last_error => "x", %made);
    row(suppression => %in, id => id("suppressed-$key"),
        email => "Never\@X.example", %made);
    row(admin => %in, id => id("admin-$key"), email => "boss\@x.example",
        %made);
    row(send_count => %own, day => "2026-01-02", n => 7);
    row(webhook_endpoint => %in, id => id("hook-$key"),
        url => "https://x.example/h", events => "{form.submitted}",
        key => "\\x" . "61" x 32, %made);
    row(event => %in, id => id("event-$key"), body => "{}",
        type => "form.submitted", %made);
    row(webhook_delivery => %in, id => id("delivery-$key"), job_id => 1,
        event_id => id("event-$key"), endpoint_id => id("hook-$key"),
        status => "failed", attempts => 1, next_at => undef,
        finished_at => $then, %made);
    row(webhook_attempt => %in, delivery_id => id("delivery-$key"),
        number => 1, started_at => $then, duration_ms => 5, status => 500);
    row(intake_key => %in, id => id("intake-$key"), name => "i",
        key_hash => "\\x" . sha256_hex("intake $key"), display => "i", %made);
    row(intake_event => %in, event_id => "e1", result => "{}", %made);
}
row(worker => id => "w1", name => "w", host => "h", pid => 1, version => "0",
    threads => 1);

# How enrollments get to their states, which they cannot begin with.
my @MOVES = map { my ($state, @through) = @$_; map {
    "UPDATE crmapi.enrollment SET status = '$_'"
        . ($_ eq "failed" ? ", generation_error = 'why'" : "")
        . " WHERE id IN (" . join(", ", map { "'" . id("enrollment-$_-$state")
        . "'" } sort keys %KEY) . ");" } @through }
    [pending_approval => "pending_approval"], [approved => "approved"],
    [running => "approved", "running"],
    [completed => "approved", "running", "completed"], [failed => "failed"],
    [stopped_user => "stopped_user"];

# Fill DATABASE with what it can hold; the number of rows of each table.
sub fill {
    my ($database) = @_;
    my (%columns, %count);
    my $sql = "";

    push @{$columns{$_->[0]}}, $_->[1] for sql($database, "SELECT table_name,"
        . " column_name FROM information_schema.columns"
        . " WHERE table_schema = 'crmapi'");
    for my $row (@ROWS) {
        my ($table, $value) = @$row;
        my @names = grep { exists $value->{$_} } @{$columns{$table} || next};
        $sql .= row_of($table, map { $_ => $value->{$_} } @names) . ";\n";
        $count{$table}++;
    }
    # what has moved is as old as all the rest
    sql($database, join "\n", "BEGIN;", $sql, $count{enrollment} ? (@MOVES,
        "UPDATE crmapi.enrollment SET updated_at = '$then';") : (), "COMMIT");
    return \%count;
}

# ---- the databases -----------------------------------------------------------------

# Bring DATABASE to VERSION.
sub migrate {
    my ($database, $version) = @_;
    my $folder = "$scratch/$version";

    if (!-d $folder) {
        mkdir $folder or die "$folder: $!";
        symlink $_, "$folder/" . basename($_) or die "$_: $!"
            for @FILES[0 .. $version - 1], "$CrmTest::TOP/schema/repeat";
    }
    return crmapictl_ok($database, "migrate", "--schema", $folder);
}

# A database for each version, filled at it; then all are migrated.
my (@databases, @counts);
my $plain = database(template => undef);
for my $version ($FIRST .. $NEWEST) {
    migrate($plain, $version);
    $databases[$version] = database(template => $plain);
    $counts[$version] = fill($databases[$version]);
}

my $httpd = httpd(database => $plain, dbd => "DBDMin 0\nDBDKeep 1\n",
    children => 1, unlimited => 1,
    conf => join "", map { my $params = $pg->conninfo($databases[$_],
        $CrmTest::Postgres::API); <<"END" } $FIRST .. $NEWEST);
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName v$_.example
    DBDParams "$params"
</VirtualHost>
END

sub client {
    my ($version, $key) = @_;
    return $httpd->client(host => "v$version.example", key => $KEY{$key});
}

# What is asked, and the table that it needs.
my @ASKED = (
    [agent => "agents"], [contact => "contacts"],
    [contact => "contacts?search=STRASSE"], [contact => "contacts?tags=t1"],
    [contact => "contacts?search=30%202"], [company => "companies"],
    [contact => "contacts/by-email?email=c3\@x.example"],
    [company => "companies?domain=acme.EXAMPLE"], [pipeline => "pipelines"],
    [pipeline_card => "pipeline-cards"],
    [pipeline_card => "pipeline-cards?include_archived=true"],
    [conversation => "conversations"],
    [conversation => "conversations?include_deleted=true&order=asc"],
    [conversation => "conversations?assigned_to=me&active=true"],
    [conversation => "conversations?type=3"], [form => "forms"],
    (map { my $key = $_; ([contact => "contacts/" . id("contact-$key-1")],
        [activity => "contacts/" . id("contact-$key-2") . "/activities"],
        [conversation => "contacts/" . id("contact-$key-1")
            . "/conversations"],
        [company => "companies/" . id("company-$key")],
        [pipeline_stage => "pipelines/" . id("pipe-$key") . "/stages"],
        [message => "conversations/" . id("talk-$key-1") . "/messages"],
        [submission => "forms/" . id("form-$key-1") . "/submissions"],
        [submission => "submissions/" . id("submission-$key-1")],
        map { [enrollment => "sequences/enrollments/"
            . id("enrollment-$key-$_")] } qw(generating pending_approval
            approved running completed failed stopped_user)) } qw(p s)),
);

my %answer;
# What the database of VERSION has answered to KEY's GET of PATH.
sub answer {
    my ($version, $key, $path) = @_;
    return $answer{"$version $key $path"} //= do {
        my $r = client($version, $key)->get("/api/v1/$path");
        "$key $path: " . $r->status . " " . $r->body;
    };
}

# The answers of the database of VERSION to what TABLES allow. The key of a
# plan without the API asks once.
sub answers {
    my ($version, $tables) = @_;
    my @paths = map { $_->[1] } grep { $tables->{$_->[0]} } @ASKED;

    return map { my $path = $_; map { answer($version, $_, $path) }
        $path eq "agents" ? qw(f p s) : qw(p s) } @paths;
}

for my $version ($FIRST .. $NEWEST) {
    subtest "filled at version $version" => sub {
        my ($database, $count) = ($databases[$version],
            $counts[$version]);
        is(migrate($database, $NEWEST), "schema version $NEWEST",
            "it is migrated");
        crmapictl_ok($database, "status");
        my %now = map { ($_ => sql($database, "SELECT count(*) FROM crmapi.$_")
            + 0) } keys %$count;
        is_deeply(\%now, $count, "no row was lost or made");
        triggers_kept_up($database, "7.11 the totals are right");
        is(sql($database, "SELECT count(*) FROM crmapi.workspace w LEFT JOIN"
            . " crmapi.link_key k ON k.workspace_id = w.id"
            . " WHERE k.key IS NULL"), 0, "each workspace can sign links");
        my @got = answers($version, $count);
        same_text(join("\n", @got), join("\n", answers($NEWEST, $count)),
            "it answers as if filled at $NEWEST: " . @got . " answers");
        works($version, $count);
    };
}

# It can be written to, and the worker does what was waiting.
sub works {
    my ($version, $count) = @_;
    my $database = $databases[$version];
    my $c = client($version, "p");
    return unless $count->{contact};
    my $made = $c->post("/api/v1/contacts", { bot_id => id("agent-p") });
    status_is($made, 201, "a contact is made");
    status_is($c->patch("/api/v1/contacts/" . id("contact-p-3"),
        { notes => "changed" }), 200, "one is changed");
    status_is($c->delete("/api/v1/contacts/" . id("contact-p-1")), 204,
        "one with all that there is goes");
    status_is($c->delete("/api/v1/companies/" . id("company-p")), 204,
        "so does a company");
    if ($count->{enrollment}) {
        status_is(client($version, "s")->post("/api/v1/sequences/start",
            {}), 403, "3.3 a plan without sequences");
        my $worker = worker(database => $database, no_start => 1);
        $worker->once;
        is(sql($database, "SELECT string_agg(status, ' ' ORDER BY"
            . " workspace_id) FROM crmapi.enrollment WHERE id IN ("
            . join(", ", map { "'" . id("enrollment-$_-generating") . "'" }
                qw(p s f)) . ")"), "stopped_user completed completed",
            "the jobs that waited are done");
        $worker->stop;
    }
    triggers_kept_up($database, "7.11 and the totals stay right");
    my $w = id("w-s");
    crmapictl_ok($database, "workspace", "delete", $w, "--yes");
    is(sql($database, "SELECT count(*) FROM crmapi.contact"
        . " WHERE workspace_id = '$w'"), 0, "a workspace can go");
}

$httpd->stop;
done_testing;
