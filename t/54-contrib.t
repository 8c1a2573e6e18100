# SPDX-License-Identifier: Apache-2.0
# 54-contrib.t: the dashboard and the alerts in contrib/ use existing metrics,
# and say what to do
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Metrics;
use CrmTest::Receiver;
use JSON::PP ();

my $contrib = "$CrmTest::TOP/contrib";
my $docs = read_file("$CrmTest::TOP/docs/operations.md");
my $httpd = httpd(database => database(), conf => <<'END');
<Location "/metrics">
    SetHandler crmapi-metrics
    Require local
</Location>
END
my $w = workspace($httpd, twin => 0);
status_is($w->client->post("/api/v1/contacts", { bot_id => $w->agent }), 201,
    "a request that uses everything");

# A daemon that has sent a step and delivered a webhook.
my $port = CrmTest::Httpd::free_port();
my $receiver = CrmTest::Receiver->new;
my $worker = worker(database => $httpd->{database}, conf => {
    status_listen => "127.0.0.1:$port", webhook_private => "on" });
$w->ctl("webhook", "add", "--workspace", $w->id, "--url",
    $receiver->url("good/200"), "--events", "contact.created");
my ($template) = $w->import_objects([{ object => "sequence_template",
    name => "T", bot_id => $w->agent, allowed_channels => ["email"],
    steps => [{ channel => "email", email_subject => "S",
        email_body => "B" }] }]);
status_is($w->client->post("/api/v1/sequences/start", {
    template_id => $template, auto_approve => JSON::PP::true,
    contact => { first_name => "C", emails => ["c\@x.org"] } }), 202,
    "a sequence");

# Names of samples, and labels of each family.
my (%there, %labels);
sub scrape {
    my $text = $httpd->client->get("/metrics", headers => {
        Accept => "application/openmetrics-text" })->body;

    $text .= CrmTest::Client->new(port => $port)->get("/metrics")->body;
    %there = %labels = ();
    for my $sample (keys %{samples($text)}) {
        my ($name, $labels) = $sample =~ /^(\w+)(?:\{(.*)\})?$/;
        $there{$name} = 1;
        $labels{$name}{$_} = 1 for "instance", "job",
            ($labels // "") =~ /(\w+)="/g;
    }
    return $there{crmapi_connection_wait_seconds_count}
        && $there{crmapi_request_duration_seconds_count}
        && $there{crmapid_relay_duration_seconds_count}
        && $there{crmapid_webhook_duration_seconds_count}
        && $there{crmapid_oldest_due_seconds};
}
ok(wait_for(\&scrape, 10), "it was counted");

# The metrics that EXPRESSION names are there, with the labels it asks for.
sub expression_ok {
    my ($expression, $name) = @_;
    my @metrics = $expression =~ /\b(crmapid?_\w+)/g;

    for my $metric (@metrics) {
        ok($there{$metric}, "$name: $metric is there");
    }
    while ($expression =~ /\b(crmapid?_\w+)\{([^}]*)\}/g) {
        my ($metric, $matchers) = ($1, $2);
        ok($labels{$metric}{$_}, "$name: $metric has $_")
            for $matchers =~ /(\w+)=~?"/g;
    }
    my ($first) = @metrics;
    while ($first && $expression =~ /\bby \(([^)]*)\) \(/g) {
        ok($labels{$first}{$_}, "$name: $first has $_") for split /, /, $1;
    }
}

subtest "the dashboard" => sub {
    my $dashboard = JSON::PP->new->utf8->decode(
        read_file("$contrib/grafana/crmapi.json"));
    my (%id, %used);

    for my $panel (@{$dashboard->{panels}}) {
        my $name = $panel->{title};
        ok(!$id{$panel->{id}}++, "$name: its id");
        like($panel->{description}, qr/^\S/, "$name: a description");
        cmp_ok(scalar @{$panel->{targets}}, ">=", 1, "$name: a target");
        for my $target (@{$panel->{targets}}) {
            expression_ok($target->{expr}, $name);
            $used{$_} = 1 for $target->{expr} =~ /\b(crmapid?_\w+)/g;
        }
    }
    my %families = map { s/_(?:bucket|sum|count)$//r => 1 } keys %there;
    delete @families{map { s/_(?:bucket|sum|count)$//r } keys %used};
    is_deeply([sort keys %families], [qw(crmapi_limit_full_total
        crmapi_limit_locks_recovered_total crmapi_store_round_trips_total)],
        "it shows all but what alerts are better for");
};

subtest "the alerts" => sub {
    my $text = read_file("$contrib/prometheus/alerts.yml");
    my @rules = split /^      - alert: /m, $text;
    my %anchor = map { lc(s/[^\w -]//gr =~ s/ /-/gr) => 1 }
        $docs =~ /^#+ (.*)$/mg;

    shift @rules;
    cmp_ok(scalar @rules, ">=", 10, "there are some");
    for my $rule (@rules) {
        my ($name) = $rule =~ /^(CrmApid?\w+)$/m;
        my ($expression) = $rule =~ /^        expr: >-\n          (.*)$/m;
        expression_ok($expression, $name);
        like($rule, qr/^        for: \d+m$/m, "$name: for how long");
        like($rule, qr/^          severity: (?:warning|critical)$/m,
            "$name: severity");
        like($rule, qr/^          summary: "\S/m, "$name: what is wrong");
        like($rule, qr/^          description: "\S.*\."$/m, "$name: what to do");
        my ($link) = $rule
            =~ m{^          runbook_url: docs/operations\.md#(\S+)$}m;
        ok($anchor{$link // ""}, "$name: its link leads to a heading");
    }
};

SKIP: {
    my ($none) = run_program(command => ["promtool", "--version"]);
    skip "no promtool: build/setup --tests installs it", 1 if $none;
    my ($code, $out, $err) = run_program(command => ["promtool", "check",
        "rules", "$contrib/prometheus/alerts.yml"]);
    is($code, 0, "promtool loads the alerts") or diag($out . $err);
}
done_testing;
