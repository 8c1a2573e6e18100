# SPDX-License-Identifier: Apache-2.0
# 68-provider-day.t: a day of a provider (contract 14): tenants are provisioned, a
# form changes everywhere, who did it is found out, one tenant moves, a person is
# forgotten, a contract ends, and a tenant is restored from yesterday. With
# $CRM_TENANTS there are 50
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use File::Temp qw(tempdir);
use CrmTest;

my $db = database();
my $json = JSON::PP->new->utf8->canonical;
my $folder = tempdir("crm-day-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my @tenants = map { "tenant-$_" } 1 .. ($ENV{CRM_TENANTS} ? 50 : 6);

sub file {
    my ($name, @objects) = @_;
    write_file("$folder/$name", join "", map { $json->encode($_) . "\n" }
        @objects);
    return "$folder/$name";
}
sub ctl { return crmapictl_ok($db, @_) }
sub count { return 0 + sql($db, "SELECT count(*) FROM crmapi.$_[0]") }

my @form = (object => "form", name => "Contact", bot_id => "desk");
my $template = file("template", { object => "workspace", slug => '${SLUG}',
    name => 'Tenant ${SLUG}', plan => "pro" },
    { object => "agent", slug => "desk", name => "Desk" },
    { object => "pipeline", name => "Sales", bot_id => "desk" },
    { object => "pipeline_stage", name => "New", pipeline_id => "Sales",
        bot_id => "desk" },
    { @form, standard_fields => { email => JSON::PP::true } },
    { object => "admin", email => 'admin@${SLUG}.example' });

subtest "morning: tenants are provisioned" => sub {
    for my $slug (@tenants) {
        like(ctl("apply", "--create", "--set", "SLUG=$slug", $template),
            qr/^6 created/m, $slug);
        my ($agent) = @{$json->decode(ctl("show", $slug))->{agent}};
        ctl({ stdin => join "", map { $json->encode({ object => "contact",
            bot_id => $agent->{id}, first_name => $_,
            emails => ["\L$_\E\@$slug.example"] }) . "\n" } "Ada", "Grace" },
            "import", "--workspace", $slug);
    }
    is(count("contact"), 2 * @tenants, "each has its people");
};
my $last = $tenants[-1];
my $yesterday = "$folder/yesterday";
ctl("workspace", "dump", $last, "--output", $yesterday);

subtest "one form changes everywhere" => sub {
    my $change = file("change", { @form, description => "Write to us" });
    for my $slug (@tenants) {
        is((crmapictl($db, "apply", "--dry-run", "--workspace", $slug,
            $change))[0], 3, "$slug has the old one");
        ctl("apply", "--workspace", $slug, $change);
        is((crmapictl($db, "apply", "--dry-run", "--workspace", $slug,
            $change))[0], 0, "$slug has the new one");
    }
    is(sql($db, "SELECT count(*) FROM crmapi.form WHERE description ="
        . " 'Write to us'"), scalar @tenants, "all have it");
};

subtest "who did what is found out" => sub {
    my $rows = $json->decode(ctl("--json", "audit", "list", "--workspace",
        $tenants[0]));
    my @applied = grep { $_->{action} eq "apply" } @$rows;
    is(scalar @applied, 2, "two applies changed it; the dry runs did not");
    my $me = getpwuid $>;
    like($applied[0]{actor}, qr/\b\Q$me\E$/, "and by whom");
};

subtest "one tenant moves to another database" => sub {
    my $other = database();
    my ($slug) = @tenants;
    my $id = $json->decode(ctl("--json", "workspace", "show", $slug))->{id};
    ctl("workspace", "hold", $slug);
    ctl("workspace", "dump", $slug, "--output", "$folder/moved");
    crmapictl_ok($other, "workspace", "restore", "$folder/moved");
    is(crmapictl_ok($other, "show", $slug), ctl("show", $slug),
        "it is there, the same");
    crmapictl_ok($other, "workspace", "release", $slug);
    ctl("workspace", "delete", $slug, "--yes");
    is(sql($other, "SELECT count(*) FROM crmapi.contact WHERE workspace_id ="
        . " '$id'"), 2, "with its people");
    is((crmapictl($db, "show", $slug))[0], 1, "and gone here");
};

subtest "a person is forgotten" => sub {
    ctl("contact", "erase", "--workspace", $last, "--email",
        "ada\@$last.example");
    is(sql($db, "SELECT count(*) FROM crmapi.contact c JOIN crmapi.workspace w"
        . " ON w.id = c.workspace_id WHERE w.slug = '$last'"), 1,
        "the other one stays");
};

subtest "a contract ends with an export" => sub {
    my $slug = $tenants[1];
    my @lines = split /\n/, ctl("export", "--workspace", $slug);
    is(scalar(grep { $json->decode($_)->{object} eq "contact" } @lines), 2,
        "the customer has the data");
    ctl("workspace", "delete", $slug, "--yes");
    is(sql($db, "SELECT count(*) FROM crmapi.workspace WHERE slug = '$slug'"),
        0, "the provider has none");
};

subtest "one tenant is restored from yesterday" => sub {
    ctl("workspace", "delete", $last, "--yes");
    ctl("workspace", "restore", $yesterday);
    ctl("workspace", "release", $last);
    is(sql($db, "SELECT string_agg(first_name, ',') FROM crmapi.contact c JOIN"
        . " crmapi.workspace w ON w.id = c.workspace_id WHERE w.slug ="
        . " '$last'"), "Grace", "who was forgotten since stays forgotten");
    like(ctl("apply", "--workspace", $last, "$folder/change"),
        qr/^0 created, 1 changed/m, "and it gets the new form again");
};

done_testing();
