# SPDX-License-Identifier: Apache-2.0
# 62-copy.t: the program of docs/api.md copies a whole workspace with as many
# requests as there are pages, and has what crmapictl export has (contract 20.1).
# $CRM_COPY is the number of contacts.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Cpanel::JSON::XS ();
use CrmTest;
use CrmTest::Process qw(spawn end_process);
use CrmTest::Samples;
use POSIX qw(ceil);

my $CONTACTS = $ENV{CRM_COPY} || 230;
my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $w = workspace($httpd, twin => 0, plan => "pro");
my $samples = CrmTest::Samples->new($w);     # it turns the log on, too
my ($id, $bot) = ($w->id, $w->agent);
my ($form) = $samples->ids("Form");
my ($stage) = $w->stages;

# Per contact an activity, a card, a conversation with two messages, and for
# some a submission. Every tenth activity is a company's alone.
# psql has two minutes for each part.
$w->ctl("workspace", "set", $id, "--events", "off");
for (my $from = 1; $from <= $CONTACTS; $from += 10_000) {
    my $last = $from + 9_999 < $CONTACTS ? $from + 9_999 : $CONTACTS;
    sql($database, <<"END");
SET crmapi.counter_slot = -1;
CREATE TEMPORARY TABLE made AS
SELECT n, gen_random_uuid() AS id, gen_random_uuid() AS company,
       gen_random_uuid() AS talk,
       '2026-01-01'::timestamptz + n / 3 * interval '1 ms' AS at
FROM generate_series($from, $last) n;
INSERT INTO crmapi.company (id, workspace_id, bot_id, name)
SELECT company, '$id', '$bot', 'C' || n FROM made WHERE n % 10 = 0;
INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name, created_at,
    company_id)
SELECT id, '$id', '$bot', 'F' || n, at,
       CASE WHEN n % 10 = 0 THEN company END FROM made;
INSERT INTO crmapi.activity (id, workspace_id, contact_id, company_id,
    activity_type, title, created_at, due_date)
SELECT gen_random_uuid(), '$id', CASE WHEN n % 10 > 0 THEN id END,
       CASE WHEN n % 10 = 0 THEN company END, 'task', 'T' || n, at,
       CASE WHEN n % 2 = 0 THEN at END FROM made;
INSERT INTO crmapi.pipeline_card (id, workspace_id, pipeline_stage_id, title,
    contact_id, order_index, archived_at)
SELECT gen_random_uuid(), '$id', '$stage', 'T' || n, id, n,
       CASE WHEN n % 5 = 0 THEN at END FROM made;
INSERT INTO crmapi.conversation (id, workspace_id, bot_id, contact_id, type,
    created_at)
SELECT talk, '$id', '$bot', id, 1, at FROM made;
INSERT INTO crmapi.message (id, workspace_id, conversation_id, role, content,
    created_at)
SELECT gen_random_uuid(), '$id', talk, 'user', 'M' || n || ' ' || m, at
FROM made, generate_series(1, 2) m;
INSERT INTO crmapi.submission (id, workspace_id, form_id, contact_id,
    is_internal)
SELECT gen_random_uuid(), '$id', '$form', id, n % 7 = 0 FROM made
WHERE n % 3 = 0
END
}
$w->ctl("workspace", "set", $id, "--events", "on");

my $dir = $httpd->dir;
my ($program) = grep { /copy\.py/ } documented("api.md", "python");
write_file("$dir/copy.py", $program);
my $before = () = $httpd->access_log =~ /\n/g;
{
    local @ENV{qw(CRMAPI_KEY COPY_SLEEP)} = ($w->key, 3600);
    my $pid = spawn(chdir => $dir, log => "$dir/copy.log", command =>
        ["python3", "copy.py", "http://127.0.0.1:" . $httpd->port,
        "$dir/copy.json"]);
    ok(wait_for(sub { -e "$dir/copy.json" }, 60 + $CONTACTS / 100),
        "it has read everything") or diag(read_file("$dir/copy.log", ""));
    end_process($pid, "TERM");
}
my $copy = $json->decode(read_file("$dir/copy.json"))->{rows};
my @requests = split /\n/, $httpd->access_log;
splice @requests, 0, $before;

# The rows of the export: {object => {id => row}}.
my %there;
for (split /\n/, $w->ctl("export", "--workspace", $id)) {
    my $row = $json->decode($_);
    my $object = delete $row->{object};
    $there{$object}{$row->{id}} = $row;
}

subtest "20.1 as many requests as pages" => sub {
    my %rows = map { $_ => scalar keys %{$there{$_}} } keys %there;
    my $stages = delete $rows{pipeline_stage};
    my $pages = 0;
    # a list by cursor ends with the page that has no next one
    $pages += ceil($_ / 100) || 1 for values %rows,
        scalar $samples->ids("Enrollment");
    cmp_ok(scalar @requests, "<=", $pages + $rows{pipeline} + 3,
        @requests . " requests: $pages pages, $rows{pipeline} pipelines'"
            . " stages, the workspace, the log's end before and after");
    cmp_ok(scalar @requests, ">", $rows{contact} / 100, "they are counted");
};

subtest "20.1 it has all that the export has" => sub {
    is_deeply([sort grep { !$copy->{$_} } keys %there], [],
        "every kind of object");
    for my $kind (sort keys %there) {
        my ($mine, $real) = ($copy->{$kind} || {}, $there{$kind});
        my @lost = grep { !$mine->{$_} && !$real->{$_}{deleted} } keys %$real;
        my @more = grep { !$real->{$_} } keys %$mine;
        is("@lost[0 .. ($#lost < 3 ? $#lost : 3)]", "",
            "$kind: none of " . keys(%$real) . " is missing");
        is("@more[0 .. ($#more < 3 ? $#more : 3)]", "", "$kind: no other");
        my @differ;
        for my $row (grep { $mine->{$_} } keys %$real) {
            for my $field (grep { exists $real->{$row}{$_} }
                    keys %{$mine->{$row}}) {
                my ($is, $should) = map { $json->encode([$_->{$field}]) }
                    $mine->{$row}, $real->{$row};
                push @differ, "$row $field: $is, not $should"
                    if $is ne $should;
            }
        }
        is($differ[0] // "", "", "$kind: with the same fields");
    }
    is_deeply([sort keys %{$copy->{enrollment}}],
        [sort $samples->ids("Enrollment")], "and the enrollments");
};

$httpd->stop;
done_testing;
