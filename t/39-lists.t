# SPDX-License-Identifier: Apache-2.0
# 39-lists.t: lists over the workspace: every combination of filters and order, by
# pages and by cursor, against the same computed from the rows (contract 20.1)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Session;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, plan => "pro");
my $c = $w->client;
srand 20;

# ---- the rows ----------------------------------------------------------------

sub some { return $_[rand @_] }
sub day { return sprintf "2026-%02d-%02dT00:00:00.%03dZ", 1 + rand 3,
    1 + rand 9, rand 2 }

my @contacts = $w->import_objects([map { { object => "contact",
    bot_id => $w->agent } } 1 .. 4]);
my @companies = $w->import_objects([map { { object => "company",
    bot_id => $w->agent, name => "N$_", industry => some(undef, qw(a b)),
    created_at => day(), updated_at => day() } } 1 .. 12]);
my @forms = $w->import_objects([map { { object => "form", name => "N$_",
    bot_id => $w->agent } } 1 .. 3]);
my @talks = $w->import_objects([map { { object => "conversation", type => 1,
    bot_id => $w->agent, deleted => $_ == 1 ? true : false } } 1 .. 3]);
my @templates = $w->import_objects([map { { object => "sequence_template",
    name => "N$_", bot_id => $_ % 2 ? $w->agent : undef,
    allowed_channels => ["email"], steps => [{ channel => "email",
        email_subject => "S $_", email_body => "B" }],
    created_at => day(), updated_at => day() } } 1 .. 9]);
$w->import_objects([
    (map { my $company = some(undef, @companies); { object => "activity",
        contact_id => $company ? some(undef, @contacts) : some(@contacts),
        company_id => $company, activity_type => some(qw(note task todo)),
        due_date => some(undef, day()), completed_at => some(undef, day()),
        title => "T$_", created_at => day(), updated_at => day() } } 1 .. 60),
    (map { { object => "pipeline_card", title => "C$_",
        pipeline_stage_id => some($w->stages), archived_at => some(undef, day()),
        contact_id => some(undef, @contacts), created_at => day(),
        updated_at => day() } } 1 .. 30),
    (map { { object => "message", conversation_id => some(@talks),
        role => some(qw(user assistant human)), content => "M$_",
        created_at => day() } } 1 .. 40),
    (map { { object => "submission", form_id => some(@forms),
        contact_id => some(undef, @contacts), submitted_at => day(),
        is_internal => some(true, false, false) } } 1 .. 40)]);
my @stopped = map { "s$_\@x.org" } 10 .. 19;
my @stopped_phones = map { "+49301000$_" } 10 .. 19;
$w->import_objects([map { { object => "suppression", @$_,
    created_at => day(), updated_at => day() } } (map { [email => $_] } @stopped),
    map { [phone_number => $_] } @stopped_phones]);
my @enrolled = map { $w->start($templates[$_ % 3], bot_id => $w->agent,
    contact => { emails => ["e" . $_ % 4 . "\@x.org"] }) } 1 .. 12;
$c->post("/api/v1/sequences/enrollments/$_->{enrollment_id}/stop", {})
    for @enrolled[2, 3, 7];

# ---- the lists ---------------------------------------------------------------

# A filter: name => [field or code, kind, values].
my %created = map { ("created_$_" => ["created_at", $_]) } qw(after before);
my %updated = map { ("updated_$_" => ["updated_at", $_]) } qw(after before);
my %by_both = (created_at => ["created_at", "desc"],
    updated_at => ["updated_at", "asc"]);
my %activities = (%created, %updated,
    activity_type => ["activity_type", "is", qw(note task todo call)],
    completed => ["completed_at", "there"],
    due_after => ["due_date", "after"], due_before => ["due_date", "before"]);
my %due = (%by_both, due_date => ["due_date", "asc"]);
my @lists = (
    { path => "companies", count => 12, sorts => \%by_both,
        filters => { %created, %updated,
            industry => ["industry", "is", qw(a b c)] } },
    { path => "pipeline-cards", count => 30, all => "include_archived=true",
        sorts => { updated_at => $by_both{updated_at} }, filters => {
            %updated,
            contact_id => ["contact_id", "is", @contacts],
            pipeline_stage_id => ["pipeline_stage_id", "is", $w->stages],
            include_archived => [sub { !$_[0]{archived_at} }, "hides"] } },
    { path => "activities", count => 60, sorts => \%due,
        filters => { %activities,
            contact_id => ["contact_id", "is", @contacts],
            company_id => ["company_id", "is", @companies] } },
    { path => "contacts/$contacts[0]/activities", sorts => \%due,
        filters => \%activities, of => ["contact_id", $contacts[0]] },
    { path => "companies/$companies[0]/activities", sorts => \%due,
        filters => \%activities, of => ["company_id", $companies[0]] },
    { path => "messages", count => 40,
        sorts => { "" => ["created_at", "asc"] }, filters => { %created,
            conversation_id => ["conversation_id", "is", @talks],
            role => ["role", "is", qw(user assistant human tool)] } },
    { path => "submissions", count => 40, all => "include_internal=true",
        sorts => { "" => ["submitted_at", "desc"] }, filters => {
            form_id => ["form_id", "is", @forms],
            contact_id => ["contact_id", "is", @contacts],
            created_after => ["submitted_at", "after"],
            created_before => ["submitted_at", "before"],
            include_internal => [sub { !$_[0]{is_internal} }, "hides"] } },
    { path => "sequences/enrollments", count => 12, sorts => \%by_both,
        filters => { %created, %updated,
            status => ["status", "is", qw(generating stopped_user failed)],
            contact_id => ["contact_id", "is",
                map { $_->{contact_id} } @enrolled],
            template_id => [sub { $_[0]{sequence}{template_id} }, "is",
                @templates[0 .. 3]] } },
    { path => "suppressions", count => 20, sorts => \%by_both,
        filters => { %created, %updated, email => ["email", "is", @stopped],
            phone_number => ["phone_number", "is", @stopped_phones] } },
    { path => "sequences/templates", count => 9, sorts => \%by_both,
        filters => { %created, %updated,
            bot_id => ["bot_id", "is", $w->agent] } },
);

# The value that FILTER is about, of ROW.
sub value {
    my ($filter, $row) = @_;
    return ref $filter->[0] ? $filter->[0]->($row) : $row->{$filter->[0]};
}

# A value to ask FILTER for, if the list has ROWS.
sub asked {
    my ($filter, @rows) = @_;
    my (undef, $kind, @values) = @$filter;
    return some(qw(true false)) if $kind eq "there" || $kind eq "hides";
    return some(@values, uuid()) if $kind eq "is" && $values[0] =~ /^[0-9a-f]{8}-/;
    return some(@values) if $kind eq "is";
    return some(grep { defined } map { value($filter, $_) } @rows) // day();
}

# Whether ROW passes FILTER with VALUE.
sub passes {
    my ($filter, $value, $row) = @_;
    my $has = value($filter, $row);
    my $kind = $filter->[1];
    return ($value // "false") eq "true" || !!$has if $kind eq "hides";
    return 1 if !defined $value;
    return defined $has == ($value eq "true") if $kind eq "there";
    return 0 if !defined $has;
    return $kind eq "is" ? $has eq $value : $kind eq "after"
        ? $has ge $value : $has le $value;
}

# ROWS in the order of FIELD, then of the id; what has no value is last.
sub in_order {
    my ($field, $descending, @rows) = @_;
    my $sign = $descending ? -1 : 1;
    return sort { my ($x, $y) = ($a->{$field}, $b->{$field});
        (defined $y) <=> (defined $x)
            || $sign * (($x // "") cmp ($y // "") || $a->{id} cmp $b->{id}) }
        @rows;
}

# The ids of LIST with QUERY, read by cursor.
sub walked {
    my ($path, $query) = @_;
    my ($cursor, @ids) = ("*");
    while (defined $cursor) {
        my $r = $c->get($path, query => { %$query, cursor => $cursor,
            page_size => 1 + int rand 9 });
        return $r->text if $r->status != 200;
        push @ids, @{$r->ids};
        $cursor = $r->json->{pagination}{next_cursor};
    }
    return "@ids";
}

for my $list (@lists) {
    my ($path, $filters) = ("/api/v1/$list->{path}", $list->{filters});
    subtest "GET $path" => sub {
        my @rows = @{$c->get($path, query => "page_size=100"
            . ($list->{all} ? "&$list->{all}" : ""))->data};
        if ($list->{of}) {
            my ($field, $id) = @{$list->{of}};
            is_deeply([map { $_->{id} } @rows], $c->get("/api/v1/activities",
                query => { page_size => 100, $field => $id })->ids,
                "it has what the filter $field finds");
        }
        else {
            is(scalar @rows, $list->{count}, "all are there");
        }
        for my $round (1 .. 30) {
            # the plain list first, then each filter, then several
            my @names = $round == 1 ? () : sort { rand() <=> 0.5 }
                keys %$filters;
            my %query = map { $_ => asked($filters->{$_}, @rows) }
                splice @names, 0, $round < 12 ? 1 : 1 + rand 3;
            my $sort = some(sort keys %{$list->{sorts}});
            my ($field, $order) = @{$list->{sorts}{$sort}};
            my %how = ($sort ne "" ? (sort => $sort) : (),
                rand() < 0.5 ? (order => $order = some(qw(asc desc))) : ());
            my @right = in_order($field, $order eq "desc", grep {
                my $row = $_;
                !grep { !passes($filters->{$_}, $query{$_}, $row) }
                    keys %$filters } @rows);
            my $r = $c->get($path, query => { %query, %how, page_size => 7 });
            my $name = join " ", map { "$_=$query{$_}" } sort keys %query;
            status_is($r, 200, "$name: status") or next;
            value_is([$r->json->{pagination}{total}, $r->data],
                [scalar @right, [@right[0 .. ($#right < 6 ? $#right : 6)]]],
                "$name @{[%how]}: " . @right . " rows, the first page");
            is(walked($path, { %query, %how }),
                join(" ", map { $_->{id} } @right), "13.3 and by cursor");
        }
    };
}

subtest "20.1 templates, with what a start needs to know" => sub {
    my ($first) = @{$c->get("/api/v1/sequences/templates")->data};
    my $r = $c->get("/api/v1/sequences/templates/$first->{id}");
    record_is($r, $first, "one is as in the list");
    is_deeply([@{$first}{qw(allowed_channels stop_on_reply)}], [["email"], true],
        "10 of the specification");
    like($first->{steps}[0]{email_subject}, qr/^S \d$/, "and its steps");
    status_is($c->post("/api/v1/sequences/start", { template_id =>
        $first->{id}, bot_id => $w->agent, contact => {
        emails => ['t@x.org'] } }), 202, "its id starts a sequence");
};

subtest "20.1 what belongs to a deleted conversation is in the list" => sub {
    my @theirs = grep { $_->{conversation_id} eq $talks[0] }
        @{$c->get("/api/v1/messages?page_size=100")->data};
    cmp_ok(scalar @theirs, ">", 0, "8.1 its messages stay readable");
    is(scalar @theirs, total_of($c, "/conversations/$talks[0]/messages"),
        "all of them");
};

subtest "20.1 an address is suppressed once, however it is written" => sub {
    my $there = total_of($c, "/suppressions");
    my $r = $c->post("/api/v1/suppressions", { email => "Ann\@X.org",
        reason => "asked by phone" });
    record_is($r, { id => $ID, email => "Ann\@X.org", phone_number => undef,
        reason => "asked by phone", created_at => $TIME, updated_at => $TIME },
        "a new one", 201);
    my $path = $r->header("Location");
    is($path, "/api/v1/suppressions/" . $r->data->{id}, "5.4 Location");
    my $read = $c->get($path);
    record_is($read, $r->data, "it can be read");
    is($read->header("ETag"), $r->header("ETag"), "13.2 one ETag");
    my $again = $c->post("/api/v1/suppressions", { email => "ANN\@x.ORG" });
    record_is($again, $r->data, "the same again: 200, and it stays as it is");
    is($again->header("Location"), undef, "which made nothing");
    my $phone = $c->post("/api/v1/suppressions",
        { phone_number => "+49 (0)30 / 77-88", email => undef });
    status_is($phone, 201, "a phone number");
    is($phone->data->{reason}, "suppressed", "without a reason");
    is($c->post("/api/v1/suppressions", { phone_number => "+49307788" })
        ->data->{id}, $phone->data->{id}, "17.1 in another spelling");
    is(total_of($c, "/suppressions"), $there + 2, "there are two more");
    for my $case ([email => "aNN\@x.org", $r], [phone_number => "+49307788",
            $phone], [phone_number => " 49 (0)30/7788", $phone],
            [email => "n\@x.org"], [phone_number => "7788"],
            [email => "+49307788"]) {
        my ($name, $value, $of) = @$case;
        my $found = $c->get("/api/v1/suppressions", query => {
            $name => $value });
        is_deeply($found->status == 200 && $found->ids,
            [$of ? $of->data->{id} : ()], "it is found by $name=$value");
    }
    error_is($c->get("/api/v1/suppressions", query => { $_->[0] => $_->[1] }),
        422, "validation_error", "6.3 $_->[0]: a text that is too long",
        [$_->[0]]) for [email => "x" x 250 . "\@x.org"],
        [phone_number => "1" x 101];
    my ($one, $other) = map { $c->post("/api/v1/suppressions",
        { email => "i\@$_" })->data->{id} } "B\x{dc}CHER.example",
        "xn--bcher-kva.example";
    is($other, $one, "17.2 an address in another spelling");
    for my $case ([{}, [""]], [{ email => undef }, [""]],
            [{ email => "a\@x.org", phone_number => "+49301" }, [""]],
            [{ email => "a" }, ["email"]], [{ phone_number => "x" },
            ["phone_number"]], [{ email => "a\@x.org", reason => 1, x => 1 },
            ["reason", "x"]]) {
        error_is($c->post("/api/v1/suppressions", $case->[0]), 422,
            "validation_error", "refused: @{$case->[1]}", $case->[1]);
    }
    my %key = (headers => { "Idempotency-Key" => "s" });
    my @two = map { $c->post("/api/v1/suppressions", { email => "k\@x.org" },
        %key) } 1, 2;
    is($two[1]->status . $two[1]->body, $two[0]->status . $two[0]->body,
        "13.1 a key gives the first answer, and its status");
    is($two[1]->header("Location"), $two[0]->header("Location"), "its Location");
    is($two[1]->header("Idempotent-Replayed"), "true", "again");
    error_is($c->post("/api/v1/suppressions", { email => "l\@x.org" }, %key),
        422, "validation_error", "another body", ["Idempotency-Key"]);
    error_is($c->delete($path, headers => { "If-Match" => '"x"' }), 412,
        "precondition_failed", "If-Match");
    for my $again (0, 1) {
        my $r = $c->delete($path, headers => { "Idempotency-Key" => "lift" });
        status_is($r, 204, $again ? "13.1 and a key remembers it"
            : "it is lifted");
        is($r->header("Idempotent-Replayed"), $again ? "true" : undef, "once");
    }
    error_is($c->delete($path), 404, "not_found", "without the key");
    my $none = "/api/v1/suppressions/" . $two[0]->data->{id};
    error_is($c->delete($none, headers => { "Idempotency-Key" => "lift" }), 422,
        "validation_error", "another one with this key", ["Idempotency-Key"]);
    status_is($c->get($none), 200, "it stays");
    status_is($c->post("/api/v1/suppressions", { email => "ann\@x.org" }), 201,
        "and may be suppressed anew");
};

subtest "20.1 two suppress an address at once: one made it" => sub {
    my $let_go = holding($database, "INSERT INTO crmapi.suppression
        (id, workspace_id, email, reason) VALUES (gen_random_uuid(),
        '@{[$w->id]}', 'two\@x.org', 'first')");
    my $child = CrmTest::Child->start(sub {
        my $r = $w->client->post("/api/v1/suppressions",
            { email => "two\@x.org" });
        return $r->status, scalar $r->header("Location"), $r->data->{reason};
    });
    wait_blocked($database, 1);
    $let_go->("COMMIT");
    is_deeply([$child->result], [200, undef, "first"], "not the second");
};

subtest "20.1, 11.10 what a client suppresses stops" => sub {
    my $started = $w->start($templates[1], bot_id => $w->agent,
        contact => { emails => ['Stop@X.org'] });
    $c->post("/api/v1/suppressions", { email => 'stop@x.org' });
    is($c->get("/api/v1$_")->data->{status}, "stopped_unsubscribed",
        "the enrollment") for "/sequences/enrollments/$started->{enrollment_id}";
    my ($id) = map { $_->{id} } grep { ($_->{email} // "") eq 'stop@x.org' }
        @{$c->get("/api/v1/suppressions?page_size=100")->data};
    my $theirs = $httpd->client(key => $w->twin->make_key("read,write"),
        headers => { "X-Crm-Twin" => 1 });
    error_is($theirs->$_("/api/v1/suppressions/$id"), 404, "not_found",
        "2.1 not by another workspace: $_") for qw(get delete);
    my $reader = $c->with_key($w->make_key("read"));
    status_is($reader->get("/api/v1/suppressions/$id"), 200, "read scope");
    error_is($reader->delete("/api/v1/suppressions/$id"), 403, "forbidden",
        "write scope");
};

$httpd->stop;
done_testing;
