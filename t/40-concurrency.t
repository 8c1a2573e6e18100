# SPDX-License-Identifier: Apache-2.0
# 40-concurrency.t: many clients at once: totals, pages, changes, deletes
# (contract 6.6, 7.11, 9.4, 9.6)
use strict;
use utf8;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Child;
use CrmTest::Data;
use CrmTest::Session;

my $database = database();
my $httpd = httpd(database => $database, children => 3,
    unlimited => 1);

# Every total that W's lists report is the number of its rows.
sub totals_are_right {
    my ($w, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $c = $w->client;
    my (%told, %there);
    for my $case (["contacts", "contact", "true"],
            ["companies", "company", "true"],
            ["conversations", "conversation", "deleted IS NOT TRUE"],
            ["pipeline-cards", "pipeline_card", "archived_at IS NULL"]) {
        my ($path, $table, $condition) = @$case;
        $told{$path} = total_of($c, "/$path");
        $there{$path} = count_rows($w, $table, $condition);
        next if $table eq "pipeline_card";
        for my $bot ($w->agent, $w->{second} || ()) {
            $told{"$path of $bot"} = total_of($c, "/$path", bot_id => $bot);
            $there{"$path of $bot"} = count_rows($w, $table,
                "$condition AND bot_id = '$bot'");
        }
    }
    is_deeply(\%told, \%there, $name);
    triggers_kept_up($database, "$name: the counters are exact");
}

subtest "7.11 totals with concurrent writers of everything" => sub {
    my $w = workspace($httpd);
    ($w->{second}) = $w->import_objects([{ object => "agent",
        name => "B" }]);
    my @threads = $w->import_objects([map { { object => "conversation",
        type => 1, bot_id => $_ % 2 ? $w->agent : $w->{second} } } 1 .. 24]);
    my @got = in_processes(6, sub {
        my ($n) = @_;
        my $c = $w->client;
        my $bot = $n % 2 ? $w->agent : $w->{second};
        my (@odd, @mine);
        my $is = sub {
            my ($r, $status) = @_;
            push @odd, $r->text if $r->status != $status;
            return $r;
        };
        for my $i (1 .. 10) {
            my $contact = $is->($c->post("/api/v1/contacts",
                { bot_id => $bot }), 201)->data->{id};
            my $company = $is->($c->post("/api/v1/companies",
                { bot_id => $bot, name => "C" }), 201)->data->{id};
            my $card = $is->($c->post("/api/v1/pipeline-cards", {
                title => "T", pipeline_stage_id => ($w->stages)[$i % 3] }),
                201)->data->{id};
            $is->($c->post("/api/v1/contacts/upsert", { bot_id => $bot,
                contacts => [{}, { emails => ["p$i\@x.org"] }] }), 200);
            $is->($c->delete("/api/v1/contacts/$contact"), 204) if $i % 2;
            $is->($c->delete("/api/v1/companies/$company"), 204) if $i % 3;
            $is->($c->patch("/api/v1/pipeline-cards/$card",
                { archived_at => "2026-01-01" }), 200) if $i % 4;
            $is->($c->delete("/api/v1/pipeline-cards/$card"), 204)
                if $i % 5 == 0;
            $is->($c->delete("/api/v1/conversations/$threads[$i]"), 204);
        }
        return \@odd;
    });
    is_deeply(\@got, [([]) x 6], "every request does what it should");
    totals_are_right($w, "7.11 totals");
    is(total_of($w->client, "/contacts"), 6 * 10 * 2 + 10 - 6 * 5,
        "and the contacts are as many as were made");
};

subtest "7.11 total is of the same snapshot as data" => sub {
    my $w = workspace($httpd);
    my $bot = $w->agent;
    my @got = in_processes(4, sub {
        my ($n) = @_;
        my $c = $w->client;
        my ($odd, $lists) = (0, 0);
        for my $i (1 .. 30) {
            if ($n <= 2) {      # writers: add two, take one away
                my $ids = [map { $c->post("/api/v1/contacts", {
                    bot_id => $bot, tags => ["t"] })->data->{id} } 1, 2];
                $c->delete("/api/v1/contacts/$ids->[0]");
                next;
            }
            # what is on one page is all that there is
            for my $query ("page_size=100", "page_size=100&bot_id=$bot",
                    "page_size=100&tags=t") {
                my $r = $c->get("/api/v1/contacts", query => $query);
                my $total = $r->json->{pagination}{total};
                $lists++;
                $odd++ if $total != @{$r->data} && $total <= 100;
            }
        }
        return [$odd, $lists];
    });
    is_deeply([map { $_->[0] } @got], [0, 0, 0, 0],
        "7.11 no list told another number than it showed");
    is_deeply([map { $_->[1] } @got[2, 3]], [90, 90], "of 180 lists");
    totals_are_right($w, "afterwards");
};

subtest "7.10 pages show each row exactly once while others are changed"
        => sub {
    my $w = workspace($httpd);
    my @ids = $w->import_objects([map { { object => "contact",
        bot_id => $w->agent, created_at => "2026-01-01T00:00:00.000Z" } }
        1 .. 90]);
    my @got = in_processes(4, sub {
        my ($n) = @_;
        my $c = $w->client;
        if ($n <= 2) {
            my $bad = 0;
            for my $id (@ids) {
                $bad++ if $c->patch("/api/v1/contacts/$id",
                    { notes => "of $n" })->status != 200;
            }
            return $bad;
        }
        my $bad = 0;
        for (1 .. 6) {
            my %seen;
            for my $page (1 .. 10) {
                $seen{$_}++ for @{$c->get("/api/v1/contacts",
                    query => { page => $page, page_size => 9 })->ids};
            }
            $bad++ if keys %seen != 90 || grep { $_ != 1 } values %seen;
        }
        return $bad;
    });
    is_deeply(\@got, [0, 0, 0, 0], "equal times, rows that are rewritten: "
        . "every walk sees 90 rows, each once");
};

subtest "6.6 many writers of one row: nothing lost, always forward" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $id = $w->contact->{id};
    my @fields = qw(first_name last_name city state country notes);
    my @got = in_processes(6, sub {
        my ($n) = @_;
        my $own = $w->client;
        my ($last, @odd, @times) = ("");
        for my $i (1 .. 15) {
            my $r = $own->patch("/api/v1/contacts/$id",
                { $fields[$n - 1] => "$i" });
            push @odd, $r->text if $r->status != 200;
            push @odd, "$n: $i: not my change: " . $r->body
                if $r->data->{$fields[$n - 1]} ne "$i";
            push @odd, "$n: $i: not forward" if $r->data->{updated_at}
                le $last;
            $last = $r->data->{updated_at};
            push @times, $last;
        }
        return { odd => \@odd, times => \@times };
    });
    is_deeply([map { @{$_->{odd}} } @got], [], "each sees its own change");
    my %times;
    $times{$_}++ for map { @{$_->{times}} } @got;
    is(scalar keys %times, 90, "6.6 strictly forward: 90 different times");
    my $whole = $c->get("/api/v1/contacts/$id")->data;
    is_deeply([@$whole{@fields}], [("15") x 6],
        "what one writes the other does not undo");
    is($whole->{updated_at}, (sort keys %times)[-1], "the last one is shown");
};

subtest "8.1 one deletes, all others are told so" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my %made = (contacts => [], companies => [], "pipeline-cards" => []);
    for (1 .. 8) {
        push @{$made{contacts}}, $w->contact->{id};
        push @{$made{companies}}, $w->company->{id};
        push @{$made{"pipeline-cards"}}, $c->post("/api/v1/pipeline-cards",
            { title => "T", pipeline_stage_id => ($w->stages)[0] })
            ->data->{id};
    }
    my @got = in_processes(4, sub {
        my $own = $w->client;
        my %count;
        for my $path (sort keys %made) {
            $count{"$path " . $own->delete("/api/v1/$path/$_")->status}++
                for @{$made{$path}};
        }
        return \%count;
    });
    my %sum;
    for my $count (@got) {
        $sum{$_} += $count->{$_} for keys %$count;
    }
    is_deeply(\%sum, { map { ("$_ 204" => 8, "$_ 404" => 24) }
        keys %made }, "8.1 each was deleted once");
    totals_are_right($w, "and counted once");
};

subtest "9.6 a company and its contacts go while others use them" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my @companies = map { $w->company(name => "C$_")->{id} } 1 .. 12;
    my @contacts = map { $w->contact(company_id => $_)->{id} } @companies;
    my @got = in_processes(6, sub {
        my ($n) = @_;
        my $own = $w->client;
        my %count;
        for my $i ($n % 2 ? (0 .. 11) : (reverse 0 .. 11)) {
            my @calls = (
                sub { $own->delete("/api/v1/companies/$companies[$i]") },
                sub { $own->delete("/api/v1/contacts/$contacts[$i]") },
                sub { $own->post("/api/v1/activities", {
                    activity_type => "note", contact_id => $contacts[$i],
                    company_id => $companies[$i] }) },
                sub { $own->patch("/api/v1/contacts/$contacts[$i]",
                    { company_id => $companies[$i - 1], notes => "$n" }) },
                sub { $own->post("/api/v1/contacts", {
                    bot_id => $w->agent, company_id => $companies[$i] }) },
                sub { $own->post("/api/v1/pipeline-cards", { title => "T",
                    pipeline_stage_id => ($w->stages)[0],
                    contact_id => $contacts[$i] }) });
            $count{$calls[$n - 1]->()->status}++;
        }
        return \%count;
    });
    my @allowed = ([204], [204], [201, 422], [200, 404, 422], [201, 422],
        [201, 422]);
    for my $n (0 .. 5) {
        my @odd = grep { my $status = $_;
            !grep { $_ == $status } @{$allowed[$n]} } keys %{$got[$n]};
        is_deeply(\@odd, [], "client $n gets @{$allowed[$n]}: "
            . join ", ", map { "$_ x $got[$n]{$_}" } sort keys %{$got[$n]});
    }
    is(total_of($c, "/companies"), 0, "the companies are gone");
    is(count_rows($w, "activity"), 0, "and so is what had only them");
    is(count_rows($w, "contact", "company_id IS NOT NULL"), 0,
        "no contact refers to one");
    is(count_rows($w, "pipeline_card", "contact_id IS NOT NULL"), 0,
        "no card refers to a contact that is gone");
    totals_are_right($w, "totals");
};

# All sessions share PostgreSQL's room for locks.
subtest "10.5 at most eight upserts of many have locks for each of them" => sub {
    my $w = workspace($httpd);
    my $upsert = sub {
        my ($name, $n) = @_;
        return $httpd->client(key => $w->key)->post("/api/v1/contacts/upsert", {
            bot_id => $w->agent, contacts => [map {
                { emails => ["$name$_\@x.example"] } } 1 .. $n] })->status;
    };
    my $let_go = holding($database, "SELECT pg_advisory_xact_lock("
        . "hashtextextended('parties:' || n, 0)) FROM generate_series(0, 7) n");
    my @many = map { my $name = "many$_";
        CrmTest::Child->start(sub { $upsert->($name, 51) }) } 1 .. 3;
    my $locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        . " AND d.datname = current_database() WHERE l.locktype = 'advisory' AND";
    ok(wait_for(sub { sql($database, "$locks NOT l.granted") == 3 }, 20 * busy()),
        "51 wait for a turn");
    is($upsert->("few", 50), 200, "50 do not");
    is(scalar sql($database, "$locks l.granted"), 8, "who waits has no other lock");
    $let_go->();
    is_deeply([map { $_->result } @many], [(200) x 3], "then they are done");
};

subtest "10.5 a company goes while an upsert names it" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $company = $w->company->{id};
    $c->post("/api/v1/contacts", { bot_id => $w->agent, external_id => $_,
        $_ eq "in" ? (company_id => $company) : () }) for qw(in out);
    # what a DELETE locks first, and what then
    my $let_go = holding($database, "SELECT FROM crmapi.company"
        . " WHERE id = '$company' FOR UPDATE");
    my $child = CrmTest::Child->start(sub {
        my $r = $w->client->post("/api/v1/contacts/upsert", {
            bot_id => $w->agent, contacts => [{ external_id => "in",
                first_name => "I" }, map { { external_id => $_,
                company_id => $company } } qw(out new)] });
        return $r->status, $r->body;
    });
    wait_blocked($database, 1);
    $let_go->("DELETE FROM crmapi.company WHERE id = '$company'; COMMIT");
    my ($status, $body) = $child->result;
    is($status, 200, "the upsert is done") or diag($body);
    my $data = JSON::PP::decode_json($body)->{data};
    is_deeply([map { $_->{external_id}, $_->{company_id} }
        @{$data->{updated}}], ["in", undef], "the company is gone");
    is_deeply([map { $_->{details}[0]{field} } @{$data->{errors}}],
        ["contacts[1].company_id", "contacts[2].company_id"],
        "10.2 and is no company for what names it");
};

subtest "9.4 derived values in the very next read, from any process" => sub {
    my $w = workspace($httpd);
    my $c = $w->client;
    my $company = $w->company->{id};
    my @got = in_processes(4, sub {
        my @odd;
        for my $i (1 .. 8) {
            # a connection of its own each time: any child may answer
            my $contact = $w->contact(company_id => $company, deal_value => 1)
                ->{id};
            my $at = $w->client->post("/api/v1/activities", {
                activity_type => "call", contact_id => $contact })
                ->data->{created_at};
            my $shown = $w->client->get("/api/v1/contacts/$contact")->data;
            push @odd, "last_contacted_at" if ($shown->{last_contacted_at}
                // "") ne $at;
            my $its = $w->client->get("/api/v1/companies/$company")->data;
            push @odd, "last_activity_at" if ($its->{last_activity_at}
                // "") lt $at;
            push @odd, "total_deal_value" if $its->{total_deal_value} < $i;
        }
        return \@odd;
    });
    is_deeply(\@got, [([]) x 4], "each sees at once what it has done");
    is($c->get("/api/v1/companies/$company")->data->{total_deal_value}, 32,
        "the sum of all");
};

subtest "10.3, 11.5 what is united loses nothing, whoever writes beside"
        => sub {
    my $w = workspace($httpd);
    my $template = $w->template;
    my $c = $w->client;
    my $id = $w->contact(phone_numbers => ["+493012345"],
        emails => ["p\@x.org"])->{id};
    my @got = in_processes(5, sub {
        my ($n) = @_;
        my $own = $w->client;
        my @odd;
        for my $i (1 .. 12) {
            my $r = $n <= 2 ? $own->post("/api/v1/contacts/upsert", {
                bot_id => $w->agent, contacts => [
                    { phone_numbers => ["+493012345"],
                        emails => ["n$n-$i\@x.org"], city => "$i" }] })
                : $n == 3 ? $own->post("/api/v1/sequences/start", {
                    template_id => $template, contact => {
                        phone_numbers => ["+493012345"], notes => "$i",
                        custom_fields => { "k$i" => $i } } })
                : $own->patch("/api/v1/contacts/$id", { $n == 4
                    ? (first_name => "F$i") : (tags => ["t$i"]) });
            push @odd, $r->text if $r->status >= 300;
            push @odd, "another contact" if $n <= 2
                && $r->data->{updated}[0]{id} ne $id;
        }
        return \@odd;
    });
    is_deeply(\@got, [([]) x 5], "all succeed, of one contact");
    my $whole = $c->get("/api/v1/contacts/$id")->data;
    is_deeply([sort map { $_->{email} } @{$whole->{emails}}],
        [sort "p\@x.org", map { ("n1-$_\@x.org", "n2-$_\@x.org") } 1 .. 12],
        "every e-mail is there");
    is_deeply([grep { $_->{is_primary} } @{$whole->{emails}}],
        [email("p\@x.org", 1)], "and the primary one stayed");
    like($whole->{notes}, qr/^${\join "\n\n", map {
        "\\[\\d{4}-\\d\\d-\\d\\d\\] $_" } 1 .. 12}\z/, "every note, with its day");
    is_deeply($whole->{custom_fields}, { map { ("k$_" => $_) } 1 .. 12 },
        "every custom field");
    is_deeply([@$whole{qw(first_name tags city)}], ["F12", ["t12"], "12"],
        "and the last of what was only written by one");
    is(total_of($c, "/contacts"), 1, "one contact");
};

subtest "an import beside writers" => sub {
    my $w = workspace($httpd);
    my @got = in_processes(3, sub {
        my ($n) = @_;
        if ($n == 1) {
            $w->load($w->id, [map { { object => "contact",
                bot_id => $w->agent, emails => ["i$_\@x.org"] } } 1 .. 2000]);
            return "imported";
        }
        my $c = $w->client;
        my $odd = 0;
        for (1 .. 40) {
            $odd++ if $c->post("/api/v1/contacts", { bot_id => $w->agent })
                ->status != 201;
            my $total = total_of($c, "/contacts");
            $odd++ unless $total <= 80 || $total >= 2000;
        }
        return $odd;
    });
    is_deeply(\@got, ["imported", 0, 0],
        "all of the import is seen at once, or nothing of it");
    totals_are_right($w, "2080 contacts");
    is(total_of($w->client, "/contacts"), 2080, "as many as there are");
};

$httpd->stop;
done_testing;
