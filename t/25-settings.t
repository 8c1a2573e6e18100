# SPDX-License-Identifier: Apache-2.0
# 25-settings.t: answers are the same bytes with any time zone, locale and
# formats of the database, the roles and httpd (contract 5.4, 6.4, 7.5, 7.8,
# 9.1)
# plain build only
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data qw(same_text);
use CrmTest::Pages ();
use CrmTest::Receiver;
use CrmTest::Twilio qw(post_signed);
use File::Temp qw(tempdir);
use JSON::PP ();
use POSIX ();
use Time::Local qw(timegm);

my $json = JSON::PP->new->utf8->canonical;
my $scratch = tempdir("crm-settings-XXXXXX", TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $ACCOUNT = "AC" . "0123456789abcdef" x 2;
write_file("$scratch/twilio", "twilio-token\n");
chmod 0600, "$scratch/twilio";
my $receiver = CrmTest::Receiver->new;
my ($KEY, $LATE, $STRANGE) = map { "svc_live_" . $_ x 30 } qw(k v x);

# ---- what everybody has --------------------------------------------------------

my %ID = map { $_ => uuid() } qw(workspace agent pipeline new won company
    other call chat form template first second);
my @PEOPLE = (
    ["Iris", "Işık", "INFO\@TITLE.example", "+49 30 1", "1234567.8901"],
    ["ilse", "ınce", "ilse\@x.example", "0301", "0.1"],
    ["İpek", "Ismet", "IPEK\@Wiki.example", "(030) 2", "999999999999999"],
    ["Jörg", "Straße", "joerg\@x.example", undef, "-0.0001"],
    ["ΣΟΦΟΣ", "Zoë", "sofos\@x.example", undef, "100"],
    ["Ærø", "Österreich", undef, "+4930777", undef],
    ["chico", "llama", undef, undef, "10"],
);
my @TIMES = ("1850-01-01T00:00:00Z", "1999-12-31T23:59:59.999Z",
    "2025-04-05T14:15:00+01:00", "2025-04-06T02:45:00+13:45",
    "2025-03-30T02:30:00+01:00", "2024-02-29T12:00:00-09:30",
    "2026-01-02T03:04:05.006Z");
my @people = map { { object => "contact", id => uuid(),
    bot_id => $ID{agent}, first_name => $PEOPLE[$_][0],
    last_name => $PEOPLE[$_][1], created_at => $TIMES[$_],
    updated_at => $TIMES[$_],
    emails => [map { { email => $_, is_primary => true } }
        grep { defined } $PEOPLE[$_][2]],
    phone_numbers => [map { { phone_number => $_, is_primary => true } }
        grep { defined } $PEOPLE[$_][3]],
    company => "TITAN I", tags => [qw(i I ı İ), "t$_"],
    deal_value => defined $PEOPLE[$_][4] ? \$PEOPLE[$_][4] : undef,
    custom_fields => { n => \"0.5", big => \"123456789012.25",
        text => "a\\b'c\"d", at => "2026-01-02" },
    notes => "tab\tquote' back\\slash" } } 0 .. $#PEOPLE;
$_->{company_id} = $ID{company} for @people[0, 1];

my @OBJECTS = (
    { object => "agent", id => $ID{agent}, name => "İda I", slug => "ida",
        agent_email => "INBOX\@Crm.example", agent_phone => "+49301000",
        is_agent => true, enabled => true, public => true,
        enabled_event_type_ids => ["NULL", "a,b", "{}", "back\\slash", ""],
        knowledge_count => \"12.5", created_at => "2020-01-01T00:00:00Z" },
    { object => "pipeline", id => $ID{pipeline}, bot_id => $ID{agent},
        name => "Sales", created_at => "2020-01-01T00:00:00Z",
        updated_at => "2020-01-01T00:00:00Z" },
    (map { { object => "pipeline_stage", id => $ID{$_},
        bot_id => $ID{agent}, pipeline_id => $ID{pipeline}, name => $_,
        color => "#fff", order_index => 1,
        created_at => "2020-01-01T00:00:00Z",
        updated_at => "2020-01-01T00:00:00Z" } } qw(new won)),
    (map { { object => "company", id => $ID{$_->[0]},
        bot_id => $ID{agent}, name => $_->[1], domain => $_->[2],
        industry => $_->[3], annual_revenue => \"0.0001",
        created_at => "2020-06-01T00:00:00Z",
        updated_at => "2020-06-01T00:00:00Z" } }
        [company => "TITAN I", "TITAN.example", "MINING"],
        [other => "ısı", "ısı.example", "mining"]),
    @people,
    { object => "pipeline_card", id => uuid(), title => "Deal",
        pipeline_stage_id => $ID{new}, contact_id => $people[0]{id},
        order_index => 0, archived_at => "2025-04-06T02:45:00+13:45",
        created_at => "2020-06-01T00:00:00Z",
        updated_at => "2020-06-01T00:00:00Z" },
    (map { { object => "activity", id => uuid(), activity_type => "call",
        contact_id => $people[0]{id}, title => "T$_",
        due_date => $TIMES[$_], duration_minutes => \"0.25",
        completed_at => $TIMES[$_], created_at => $TIMES[$_],
        metadata => { at => $TIMES[$_], n => \"1.5" } } } 0 .. $#TIMES),
    (map { { object => "conversation", id => $ID{$_->[0]},
        bot_id => $ID{agent}, type => $_->[1], contact_id => $people[0]{id},
        active => true, minutes => \"1.25", sentiment_score => \"-0.5",
        last_message_at => $_->[2], last_active_at => $_->[2],
        assigned_to => "İlker I", assigned_at => $_->[2],
        created_at => "2020-06-01T00:00:00Z" } }
        [call => 2, "1850-01-01T00:00:00Z"], [chat => 1, $TIMES[3]]),
    (map { { object => "message", id => uuid(),
        conversation_id => $ID{chat}, role => "user", content => "m$_",
        tool_arguments => { n => \"0.1" }, created_at => $TIMES[$_] } }
        0 .. $#TIMES),
    { object => "form", id => $ID{form}, bot_id => $ID{agent},
        name => "Form", standard_fields => { email => true,
            _form => { allowed_origins => ["https://WIKI.example"] } },
        custom_fields => { rate => { type => "number", min => \"0.5",
            max => \"1.5" }, day => { type => "date",
            min => "2026-01-01" } },
        created_at => "2020-06-01T00:00:00Z",
        updated_at => "2020-06-01T00:00:00Z" },
    { object => "submission", id => uuid(), form_id => $ID{form},
        custom_field_responses => { rate => \"0.75" },
        submitted_at => $TIMES[4] },
    { object => "sequence_template", id => $ID{template}, name => "İ I",
        bot_id => $ID{agent}, allowed_channels => [qw(email sms)],
        pacing => { time_zone => "America/New_York", window => {
            from => "09:00", to => "17:00", days => ["mon", "sun"] } },
        steps => [{ channel => "email", email_subject => "TITLE {{first_name}}",
            email_body => "Grüße {{first_name}}" },
            { channel => "sms", sms_body => "Hi", delay => "36h" }] },
    { object => "suppression", email => "NIL\@X.example" },
);

# VALUE as JSON; a reference to a text is a number as it is written.
sub encoded {
    my ($value) = @_;
    return ref $value eq "SCALAR" ? $$value
        : ref $value eq "ARRAY" ? "[" . join(",", map { encoded($_) }
            @$value) . "]"
        : ref $value eq "HASH" ? "{" . join(",", map { "\"$_\":"
            . encoded($value->{$_}) } sort keys %$value) . "}"
        : JSON::PP->new->allow_nonref->encode($value);
}

# ---- a site --------------------------------------------------------------------

# Make a database and the servers on it:
#   database => how CREATE DATABASE is to make it (default: as all)
#   settings => { name => value } of the database, with role => 1 of the roles
#   params   => what DBDParams ends with
#   env      => environment of httpd, crmapid and crmapictl
#   locale   => what a module in httpd calls setlocale() with, as those do
#               that have an interpreter of a language inside
sub site {
    my (%arg) = @_;
    my $self = { %arg, database => database(template => undef) };
    my $name = $self->{database};

    if ($arg{database}) {
        sql("postgres", "DROP DATABASE $name");
        sql("postgres", "CREATE DATABASE $name OWNER"
            . " $CrmTest::Postgres::OWNER TEMPLATE template0 $arg{database}");
    }
    my @who = $arg{role} ? map { "ROLE $_ IN DATABASE $name" }
        $CrmTest::Postgres::OWNER, $CrmTest::Postgres::API,
        $CrmTest::Postgres::WORKER : "DATABASE $name";
    for my $who (@who) {
        sql("postgres", join "", map {
            "ALTER $who SET $_ TO $arg{settings}{$_};" }
            sort keys %{$arg{settings} || {}});
    }
    sql($name, "CREATE SCHEMA odd; GRANT USAGE ON SCHEMA odd TO PUBLIC;"
        . " CREATE TABLE odd.contact (id integer);"
        . " CREATE TABLE odd.agent (id integer);"
        . " CREATE FUNCTION odd.now_ms() RETURNS integer LANGUAGE sql"
        . " RETURN 1;"
        . " CREATE FUNCTION odd.fold(text) RETURNS text LANGUAGE sql"
        . " RETURN 'odd';");
    ctl($self, "migrate");
    ctl($self, qw(workspace create --name Same --slug same --plan pro --id),
        $ID{workspace});
    ctl($self, { stdin => "$_\n" }, qw(key import --name k --scopes),
        "read,write", "--workspace", $ID{workspace}) for $KEY, $LATE;
    ctl($self, { stdin => join "", map { encoded($_) . "\n" } @OBJECTS },
        "import", "--workspace", $ID{workspace});
    ctl($self, qw(admin add --email BOSS@X.example --workspace),
        $ID{workspace});
    my $made = $json->decode(ctl($self, "--json", qw(webhook add --url),
        $receiver->url("$name/200"), "--events",
        "contact.created,form.submitted", "--workspace", $ID{workspace}));
    $self->{token} = ctl($self, qw(intake create --name t --workspace),
        $ID{workspace});
    # the same secrets in all, so that links are the same
    sql($name, "UPDATE crmapi.link_key SET key = sha256('key')");
    start($self);
    return $self;
}

sub start {
    my ($self) = @_;
    my $params = $self->{params} // "";
    my @lua = $self->{locale} ? ("lua") : ();

    write_file("$scratch/locale.lua", <<'END');
function handle(r)
    r.content_type = "text/plain"
    r:puts(tostring(os.setlocale(r.args, "all")), " ",
        string.format("%.1f", 0.5))
    return apache2.OK
end
END
    $self->{httpd} = httpd(database => $self->{database}, on => 0,
        children => 1, env => $self->{env}, modules => \@lua,
        dbd => "DBDMin 0\n", conf => <<"END");
DBDParams "\@CONNINFO\@ $params"
CrmApi On
CrmApiReadLimit 0
CrmApiWriteLimit 0
CrmApiReview On
CrmApiUnsubscribe On
CrmApiIntake On
CrmApiAddressLimit 0
CrmApiUnknownKeyLimit 1
CrmApiTwilio $ACCOUNT $scratch/twilio
CrmApiIntakeUrl https://crm.example
@{[@lua ? "LuaMapHandler /locale $scratch/locale.lua handle" : ""]}
END
    $self->{worker} = worker(database => $self->{database}, no_start => 1,
        env => $self->{env}, conf => { public_url => "https://crm.example",
            webhook_private => "on" });
    is($self->{httpd}->client->get("/locale", query => $self->{locale})->body,
        "$self->{locale} 0,5", "setlocale() was called in httpd")
        if $self->{locale};
}

# Run crmapictl on SITE's database with its environment.
sub ctl {
    my ($self, @arguments) = @_;
    my %option = ref $arguments[0] ? %{shift @arguments} : ();
    $option{env} = $self->{env};
    return crmapictl_ok($self->{database}, \%option, @arguments);
}

# TEXT, in which ids that were made, and times that are now, are written as
# such; all others stay.
my %known = map { $_ => 1 } values %ID, map { $_->{id} // () } @OBJECTS;
sub normal {
    my ($self, $text) = @_;
    my $ids = $self->{ids} ||= {};

    $text =~ s{([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})}
        {$known{$1} ? $1 : $ids->{$1} ||= "id" . keys %$ids}ge;
    $text =~ s{\b(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.\d{3}Z\b}
        {my $t = timegm($6, $5, $4, $3, $2 - 1, $1);
         abs($t - CORE::time) < 600 ? "NOW" : $&}ge;
    my $today = POSIX::strftime("%Y-%m-%d", gmtime);
    $text =~ s/\[$today\]/[TODAY]/g;
    return $text;
}

# ---- what is asked ---------------------------------------------------------------

my @LISTS = (
    ["agents"], ["agents", search => "IDA"], ["agents", search => "i̇da"],
    ["agents/$ID{agent}"],
    ["contacts"], (map { ["contacts", search => $_] } qw(i I ı İ iş IŞ σοφος
        ÖSTERREICH strasse straße TİTAN titan 0301 title), "%", "_", "\\",
        "'"),
    ["contacts", tags => "I"], ["contacts", tags => "ı,İ"],
    (map { ["contacts/by-email", email => $_] } "info\@title.example",
        "INFO\@TITLE.EXAMPLE", "ipek\@wiki.example", "ınfo\@tıtle.example"),
    (map { ["contacts", created_after => $_], ["contacts",
        updated_after => $_], ["contacts", created_before => $_] }
        "2025-04-05", "2025-04-05T13:15:00", "2025-04-06T02:45:00+13:45",
        "1850-01-01T00:00:00Z", "1999-12-31T23:59:59.999Z"),
    (map { ["contacts/$_->{id}"] } @people),
    ["contacts/$people[0]{id}/activities"],
    ["contacts/$people[0]{id}/conversations"],
    ["companies"], ["companies/$ID{company}"], ["companies", search => "ISI"],
    ["companies", search => "mining"], ["companies", domain => "titan.EXAMPLE"],
    ["companies", domain => "ISI.example"], ["companies", industry => "mining"],
    ["pipelines"], ["pipelines/$ID{pipeline}/stages"],
    ["pipeline-cards", include_archived => "true"],
    ["conversations"], ["conversations", sort => "last_message_at"],
    ["conversations", sort => "last_message_at", order => "asc"],
    ["conversations", last_message_after => "2025-04-05"],
    ["conversations", search => "İLKER"], ["conversations", type => "PHONE"],
    ["conversations", type => "voice"], ["conversations/$ID{call}"],
    ["conversations/$ID{chat}/messages"],
    ["conversations/$ID{chat}/messages", created_before => "2000-01-01"],
    ["forms"], ["forms/$ID{form}"], ["forms/$ID{form}/submissions"],
    ["contacts", page => "x"], ["contacts", created_after => "now"],
    ["openapi.json"],
);

# Requests that write: [method, path, body].
sub writes {
    my @named = (bot_id => $ID{agent});
    return (
        ["POST", "/contacts", { @named, first_name => "Iı",
            emails => ["TITLE\@X.example"], deal_value => \"0.1",
            custom_fields => { n => \"1e-2", m => \"123456.789" } }],
        ["POST", "/contacts", { @named, deal_value => \"1,5" }],
        ["POST", "/contacts", { @named, deal_value => \"1.00001" }],
        ["POST", "/contacts/upsert", { @named, contacts => [
            { emails => ["info\@TITLE.example"], job_title => "CIO" },
            { emails => ["ipek\@wiki.example"], deal_value => \"7.25" },
            { phone_numbers => ["+49301"], tags => ["I"] },
            { emails => ["new\@x.example"] }, { deal_value => "x" }] }],
        ["PATCH", "/contacts/$people[1]{id}", { notes => "back\\slash'\n",
            deal_value => \"2.5", tags => ["NULL", "{}", "a,b", "\\"] }],
        ["POST", "/activities", { activity_type => "task",
            contact_id => $people[2]{id}, due_date => "2025-10-26",
            duration_minutes => \"0.75",
            completed_at => "2025-10-26T02:30:00+02:00" }],
        ["POST", "/companies", { @named, name => "I", annual_revenue =>
            \"12345678.9" }],
        ["PATCH", "/conversations/$ID{call}", { assigned_to => "I",
            archived => true }],
        ["POST", "/pipeline-cards", { title => "C",
            pipeline_stage_id => $ID{new} }],
        ["POST", "/sequences/start", { template_id => $ID{template},
            contact => { emails => ["INFO\@title.example"],
                first_name => "Iris", notes => "again" } }],
    );
}

# What SITE answers to everything, in order: [what was asked, the answer].
sub answers {
    my ($self) = @_;
    my $httpd = $self->{httpd};
    my $c = $httpd->client(key => $KEY);
    my @all;
    my $keep = sub {
        my ($name, $r) = @_;
        push @all, [$name, normal($self, ref $r ? join "\n", $r->status,
            (map { "$_: " . ($r->header($_) // "none") } qw(Content-Type
                Location)), $r->body : $r)];
        return $r;
    };
    my $get = sub {
        my ($path, @query) = @_;
        return $keep->("GET /$path" . (@query ? " @query" : ""),
            $c->get("/api/v1/$path", query => { @query }));
    };

    $get->(@$_) for @LISTS;
    my $started;
    for my $write (writes()) {
        my ($method, $path, $body) = @$write;
        my $text = encoded($body);
        $started = $keep->("$method $path $text", $c->request($method,
            "/api/v1$path", body => $text));
    }
    intake($self, $keep);
    my $enrollment = $started->data->{enrollment_id};
    worked($self, $keep, sub {
        $get->("sequences/enrollments/$enrollment") }, $enrollment);
    $get->(@$_) for @LISTS;
    $keep->("crmapictl export", ctl($self, "export", "--workspace",
        $ID{workspace}) =~ s/("(?:created|updated)_at":"NOW")//gr);
    my ($mailed) = sql($self->{database}, "SELECT a.message_id, a.id,"
        . " m.conversation_id FROM crmapi.attachment a JOIN crmapi.message m"
        . " ON m.id = a.message_id");
    $keep->("crmapictl attachment", ctl($self, "attachment", "get",
        "$mailed->[0]/1"));
    $get->("attachments/$mailed->[1]");
    $get->("conversations/$mailed->[2]/messages/$mailed->[0]/original");
    # the one look-up that an address has without a key; then keys are known
    $keep->("a key $_", $httpd->client(key => $_)->get("/api/v1/agents"))
        for $STRANGE, $LATE;
    $keep->("crmapictl key list", ctl($self, "--json", "key", "list",
        "--workspace", $ID{workspace}) =~ s/("last_used_at":)[^,}]*/$1/gr);
    $keep->("totals", join "\n", map { "@$_" } sql($self->{database},
        "SELECT * FROM crmapi.counter_verify()"));
    return \@all;
}

# Events, forms, calls and mails.
sub intake {
    my ($self, $keep) = @_;
    my $base = "/crmapi/intake/v1";
    my $httpd = $self->{httpd};

    $keep->("an event", $httpd->client(key => $self->{token})->request(
        "POST", "$base/events", body => encoded([
            { event_id => "1", channel => "SMS", bot_id => $ID{agent},
                occurred_at => "2025-04-06T02:45:00+13:45",
                from => { phone_number => "+4930777", name => "I" },
                message => { content => "Hi" },
                sentiment => { score => \"0.25", positive => true } },
            { event_id => "2", channel => "phone", bot_id => $ID{agent},
                occurred_at => "2020-01-01",
                from => { email => "TITLE\@x.example" },
                call => { minutes => \"2.75" },
                sentiment => { score => \"1.5" } },
            { event_id => "3", channel => "email", bot_id => $ID{agent},
                from => { email => "title\@X.example" },
                message => { content => "again" } }])));
    for my $rate ("0.4", "0.5", "0.75", "1.5", "1.6", "1,4") {
        $keep->("a form, rate $rate", $httpd->client->request("POST",
            "$base/forms/$ID{form}", body => encoded({ rate => $rate,
                day => "2026-05-01", email => "ilse\@x.example" }),
            headers => { Origin => "https://wiki.example" }));
    }
    my $chat = "$base/chat/$ID{agent}";
    my $started = $httpd->client->post("$chat/start", {});
    my $visitor = $started->data->{visitor} // "none";
    $started->{body} =~ s/"visitor":"\K[\w-]{100,}/TOKEN/;
    $keep->("a chat", $started);
    $keep->("what a visitor says", $httpd->client->post("$chat/messages",
        { id => "m", content => "İ" }, key => $visitor));
    $keep->("a call", twilio($self, "voice", CallSid => "CA" . "1" x 32,
        CallStatus => "completed", Direction => "inbound",
        From => "+4930777", To => "+49301000", CallDuration => 100));
    my $mail = join "\r\n", "From: İlse <ILSE\@x.example>",
        "To: inbox\@crm.EXAMPLE", "Subject: =?UTF-8?Q?TITLE_=C4=B0?=",
        "MESSAGE-ID: <one\@x.example>", "MIME-VERSION: 1.0",
        "Date: Sun, 06 Apr 2025 02:45:00 +1345",
        "CONTENT-TYPE: MULTIPART/MIXED; BOUNDARY=B", "", "--B",
        "CONTENT-TYPE: TEXT/HTML; CHARSET=ISO-8859-9", "",
        "<DIV>I<LI>\xfd</LI><IMG SRC=x></DIV><SCRIPT>no</SCRIPT>", "--B",
        "Content-Type: APPLICATION/PDF; name=I.pdf",
        "Content-Transfer-Encoding: BASE64", "", "AAEC/wo=", "--B--", "";
    utf8::encode($mail);
    $keep->("a mail", ctl($self, { stdin => $mail }, "--json", "deliver"));
}

# Post PAIRS to PATH of SITE as Twilio does.
sub twilio {
    my ($self, $path, @pairs) = @_;
    return post_signed($self->{httpd}->client, "twilio-token",
        "https://crm.example", "/crmapi/intake/v1/twilio/$path",
        AccountSid => $ACCOUNT, @pairs);
}

# What the worker makes of all this, and the pages that its mails lead to.
sub worked {
    my ($self, $keep, $look, $enrollment) = @_;
    my $worker = $self->{worker};
    my $web = $self->{httpd}->client;

    $worker->once("2031-03-29T13:00:00Z");
    $look->();
    my $mails = sub { join "\n", sort map {
        $_->[1] =~ s/^Date: \w{3}, \d\d? \w{3} \d{4} [\d:]{8} [-+]\d{4}$/Date/mr
        =~ s/=\n//gr =~ s{/crmapi/\w+/\K[\w-]{60,}}{TOKEN}gr
        =~ s{^(X-Crmapi-Return: )[0-9a-f]{32}$}{$1R}mr
        =~ s{(boundary="?|^--)[\w=.+/-]{10,}}{$1B}gmr } $worker->mails };
    $keep->("mails for review", $mails->());
    my $w = { id => $ID{workspace}, database => $self->{database} };
    my ($admin) = map { $_->[0] } sql($self->{database},
        "SELECT id FROM crmapi.admin");
    my $link = CrmTest::Pages::link_to(bless($w, "CrmTest::Workspace"),
        "review", $enrollment, other => $admin,
        expires => timegm(0, 0, 0, 1, 0, 2035));
    my $page = $web->get($link);
    # what names steps, whose ids differ
    $page->{body} =~ s/name="(form|seen)" value="\K[\w-]{60,}(?=">)/TOKEN/g;
    # when it would be sent: the minute of the test
    $page->{body} =~ s/, \K\d\d:\d\d(?= \(UTC\)<br>)/HH:MM/;
    $keep->("the review page", $page);
    ctl($self, "enrollment", "approve", $enrollment);
    $worker->once("2031-03-30T13:00:00Z");
    $look->();
    $worker->once("2031-04-02T23:00:00Z");
    $worker->once("2031-04-06T13:30:00Z");
    $look->();
    $keep->("what was sent", $mails->());
    my @hooks = $receiver->requests($self->{database});
    $keep->("webhooks", join "\n", sort map { "$_->{headers}{'content-type'}"
        . " $_->{body}" } @hooks);
    cmp_ok(scalar @hooks, ">=", 5, "webhooks have come");
}

# ---- the odd ones ------------------------------------------------------------------

postgres()->make_template($CrmTest::BUILD{CTL});       # and logins
my $plain = answers(site());
cmp_ok(scalar @$plain, ">", 150, "answers to compare: " . @$plain);
is(scalar(grep { $_->[1] =~ /^5\d\d\n/ } @$plain), 0, "none failed")
    or diag(map { "$_->[0]: $_->[1]\n" } grep { $_->[1] =~ /^5/ } @$plain);

# SITE answers as the plain one.
sub same_as_plain {
    my ($name, %arg) = @_;
    subtest $name => sub {
        my $self = site(%arg);
        my $odd = answers($self);
        is(scalar @$odd, scalar @$plain, "as many answers");
        for my $i (0 .. $#$plain) {
            same_text($odd->[$i][1], $plain->[$i][1],
                "the same to $plain->[$i][0]");
        }
        $self->{worker}->stop;
        $self->{httpd}->stop;
    };
}

my %ODD = (TimeZone => "'Pacific/Chatham'", DateStyle => "'SQL, DMY'",
    IntervalStyle => "'sql_standard'", bytea_output => "'escape'",
    extra_float_digits => -15, standard_conforming_strings => "off",
    escape_string_warning => "off", array_nulls => "off",
    xmloption => "'document'", search_path => "odd, public",
    lc_monetary => "'C'", transform_null_equals => "on",
    quote_all_identifiers => "on", client_encoding => "'LATIN1'",
    default_transaction_deferrable => "on",
    default_transaction_isolation => "'serializable'");

# What runs in the locale NAME, which this test makes, whatever the machine has:
# (env, locale), or nothing.
sub in_locale {
    my ($name) = @_;
    my $path = "$scratch/$name.UTF-8";

    return unless -f "$CrmTest::BUILD{MODULEDIR}/mod_lua.so";
    run_program(command => ["localedef", "--quiet", "-i", $name, "-f",
        "UTF-8", "--no-archive", $path]) unless -d $path;
    return unless -d $path;
    return ({ LOCPATH => $scratch, LC_ALL => "$name.UTF-8" },
        "$name.UTF-8");
}

my ($turkish, $tr) = in_locale("tr_TR");
my ($german, $de) = in_locale("de_DE");
SKIP: {
    skip("no localedef and locales, or no mod_lua (build/setup --tests"
        . " installs them)", 1) unless $tr && $de;
    pass("there are locales");
}

same_as_plain("a database with odd formats, all in Turkish",
    settings => \%ODD, locale => $tr,
    database => "LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LOCALE 'C.UTF-8'",
    env => { %{$turkish || {}}, TZ => "Pacific/Chatham" });
same_as_plain("a database without a locale, odd roles, clients in German",
    role => 1, settings => { %ODD, DateStyle => "'German'",
        search_path => "''", IntervalStyle => "'iso_8601'",
        TimeZone => "'<-09:30>+09:30'" },
    locale => $de, database => "LOCALE 'C'",
    env => { %{$german || {}}, PGTZ => "America/St_Johns", TZ => "Asia/Gaza",
        PGDATESTYLE => "Postgres, MDY", PGCLIENTENCODING => "LATIN5" });
same_as_plain("odd settings of the connection",
    params => "options='-c TimeZone=Asia/Kathmandu -c DateStyle=Postgres,DMY"
        . " -c bytea_output=escape -c IntervalStyle=postgres_verbose'",
    env => { PGOPTIONS => "-c TimeZone=Africa/Monrovia -c DateStyle=SQL,MDY"
        . " -c bytea_output=escape" });

done_testing;
