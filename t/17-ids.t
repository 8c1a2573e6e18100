# SPDX-License-Identifier: Apache-2.0
# 17-ids.t: lists of named rows: ids=a,b (contract 13.5)
# with sanitizers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd);
my $other = workspace($httpd);
my $c = $w->client;

# COUNT rows of OBJECT in workspace IN, the newest first.
sub rows {
    my ($in, $object, $count, %fields) = @_;
    return reverse $in->import_objects([map { { object => $object,
        bot_id => $in->agent, %fields,
        created_at => sprintf("2026-01-01T00:%02d:%02dZ", $_ / 60, $_ % 60) } }
        1 .. $count]);
}

for my $case (["contacts", "contact"],
        ["companies", "company", name => "A"],
        ["conversations", "conversation", type => 1]) {
    my ($list, $object, %fields) = @$case;
    my $path = "/api/v1/$list";
    subtest "13.5 GET $path" => sub {
        my @ids = rows($w, $object, 101, %fields);
        my ($foreign) = rows($other, $object, 1, %fields);
        my $ask = sub {
            my ($ids, %query) = @_;
            return $c->get($path, query => { ids => $ids, page_size => 100,
                %query });
        };
        my $r = $ask->("$ids[7],$ids[2],$ids[90]");
        is_deeply($r->ids, [@ids[2, 7, 90]], "in the list's own order");
        is($r->json->{pagination}{total}, 3, "7.11 the total is theirs");
        is_deeply($ask->(uc " $ids[7] ,, $ids[2],$ids[7],")->ids,
            [@ids[2, 7]], "case, blanks, empty ones and repetition are fine");
        is_deeply($ask->(join ",", $ids[3], uuid(), "x", "*", $foreign, "'")
            ->ids, [$ids[3]], "unknown, malformed and foreign: left out");
        for my $none (uuid(), "x", ",", $foreign) {
            $r = $ask->($none);
            is_deeply($r->data, [], "$none: nothing");
            is($r->json->{pagination}{total}, 0, "$none: and no total");
        }
        is_deeply($ask->(join ",", @ids[0 .. 99])->ids, [@ids[0 .. 99]],
            "100 of them");
        error_is($ask->(join ",", @ids), 422, "validation_error", "101 ids",
            ["ids"]);
        error_is($ask->(join ",", ("x") x 101), 422, "validation_error",
            "101 that are none", ["ids"]);
        error_is($ask->(""), 422, "validation_error", "7.3 empty", ["ids"]);
        $r = $ask->(join(",", @ids[0 .. 9]), page_size => 4, page => 3);
        is_deeply($r->ids, [@ids[8, 9]], "pages of them");
        is($r->json->{pagination}{total_pages}, 3, "and how many");
        is_deeply($ask->(join(",", @ids[0 .. 9]), bot_id => uuid())->data, [],
            "beside another filter");
        is_deeply($ask->(join(",", @ids[0 .. 9]), search => "nobody")->data,
            [], "beside a search");
        is_deeply($ask->(join(",", @ids[0 .. 9]), page => 20)->data, [],
            "a page past the end");
    };
}

subtest "13.5 beside filters that some of them meet" => sub {
    my @tagged = rows($w, "contact", 3, tags => ["vip"], first_name => "Ada");
    my @others = rows($w, "contact", 2);
    my $r = $c->get("/api/v1/contacts", query => { tags => "vip",
        search => "ada", ids => join ",", @others, @tagged[0, 2] });
    is_deeply($r->ids, [@tagged[0, 2]], "tags and search");
    is($r->json->{pagination}{total}, 2, "and their total");
    my ($contact) = @others;
    my @talks = rows($w, "conversation", 3, type => 2, contact_id => $contact);
    is_deeply($c->get("/api/v1/contacts/$contact/conversations",
        query => "ids=$talks[1],$talks[0]")->ids, [@talks[0, 1]],
        "the conversations of a contact");
    is_deeply($c->get("/api/v1/contacts/$others[1]/conversations",
        query => "ids=$talks[1]")->data, [], "but not another's");
};

$httpd->stop;
done_testing;
