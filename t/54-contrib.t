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
use File::Temp ();
use JSON::PP ();

my $contrib = "$CrmTest::TOP/contrib";
my $docs = read_file("$CrmTest::TOP/docs/operations.md");
my $httpd = httpd(database => database(), shows => ["metrics"]);
my $w = workspace($httpd, twin => 0);
status_is($w->client->post("/api/v1/contacts", { bot_id => $w->agent }), 201,
    "a request that uses everything");

# A daemon that has sent a step and delivered a webhook.
my $port = free_port();
my $receiver = CrmTest::Receiver->new;
my $worker = worker(database => $httpd->{database}, conf => {
    status_listen => "127.0.0.1:$port", webhook_private => "on" });
$w->webhook($receiver->url("good/200"), "contact.created");
my $template = $w->template([{ email_subject => "S", email_body => "B" }]);
$w->start($template, auto_approve => true,
    contact => { first_name => "C", emails => ["c\@x.org"] });

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
    is_deeply([sort keys %families], [qw(crmapi_database_usable
        crmapi_limit_full_total crmapi_limit_locks_recovered_total crmapi_store_round_trips_total
        crmapid_log_lines_lost_total)],
        "it shows all but what alerts are better for");
};

subtest "operations.md has all metrics, and no others" => sub {
    my @rows = $docs =~ /^\| (`crmapid?_[^|]+) \|/mg;
    my %shown = map { $_ => 1 } map { /`(crmapid?_\w+)`/g } @rows;
    my %is = map { s/_(?:bucket|sum|count)$//r => 1 } keys %there;
    is_deeply([sort keys %shown], [sort keys %is], "its tables");
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
            =~ m{^          runbook_url: file:///usr/share/doc/crmapi-doc/docs/operations\.md#(\S+)$}m;
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

# What makes each alert fire after MINUTES: [series, values, values that do not],
# a value a minute, as promtool writes them.
my %FIRES = (
    CrmApiDown => [10, ['up{job="crmapi"}', "0x90", "1x90"]],
    CrmApiDatabaseUnusable => [10, ["crmapi_database_usable", "0x90", "1x90"]],
    CrmApiFailures => [20,
        ['crmapi_requests_total{status="5xx"}', "0+20x90", "0+5x90"],
        ['crmapi_requests_total{status="2xx"}', "0+980x90", "0+995x90"]],
    CrmApiSlow => [40, map { ["crmapi_request_duration_seconds_bucket{"
        . "mount=\"api\",le=\"$_->[0]\"}", "0+$_->[1]x90", "0+$_->[2]x90"] }
        ["0.5", 95, 100], ["1.0", 95, 100], ["5.0", 100, 100],
        ["+Inf", 100, 100]],
    CrmApiNoConnection => [20, ["crmapi_database_busy_total", "0+1x90", "7x90"]],
    CrmApiConnectionsShort => [20,
        ["crmapi_connections_used", "19x90", "18x90"],
        ["crmapi_connections_max", "20x90", "20x90"]],
    CrmApiKeysFull => [5, ["crmapi_limit_full_total", "0 0 3x90", "3x90"]],
    CrmApiLookUpsFail => [20,
        ['crmapi_key_look_ups_total{result="failed"}', "0+1x90", "7x90"]],
    CrmApiUnknownKeys => [40,
        ['crmapi_key_look_ups_total{result="unknown"}', "0+360x90", "0+240x90"]],
    CrmApiStoreAway => [5, ["crmapi_store_away", "1x90", "0x90"]],
    CrmApiProcessesKilled => [5,
        ["crmapi_limit_locks_recovered_total", "0 0 1x90", "1x90"]],
    CrmApiVersionsDiffer => [80,
        ['crmapi_build_info{instance="a",schema="18"}', "1x90", "0 stale"],
        ['crmapi_build_info{instance="b",schema="19"}', "1x90", "1x90"]],
    CrmApidDown => [10, ['up{job="crmapid"}', "0x90", "1x90"]],
    CrmApidJobsLate => [20,
        ['crmapid_oldest_due_seconds{lane="webhook"}', "301x90", "299x90"]],
    CrmApidHeld => [80,
        ['crmapid_jobs{lane="sequence",state="held"}', "1x90", "0x90"]],
    CrmApidLeasesLost => [5,
        ['crmapid_leases_lost_total{lane="webhook"}', "0 0 1x90", "1x90"]],
    CrmApidJobsReleased => [5,
        ["crmapid_jobs_released_total", "0 0 1x90", "1x90"]],
    CrmApidJobsDead => [5,
        ['crmapid_jobs_dead_total{lane="webhook"}', "0 0 1x90", "1x90"]],
    CrmApidDatabase => [20, ["crmapid_database_errors_total", "0+60x90",
        "0+6x90"]],
    CrmApidLog => [5, ["crmapid_log_lines_lost_total", "0 0 1x90", "1x90"]],
    CrmApidStepsFail => [60,
        ['crmapid_steps_total{relay="smtp",result="failed"}', "0+3x90", "0+1x90"],
        ['crmapid_steps_total{relay="smtp",result="unknown"}', "0+3x90", "0+1x90"],
        ['crmapid_steps_total{relay="smtp",result="sent"}', "0+94x90", "0+98x90"]],
    CrmApidVersionsDiffer => [80,
        ['crmapid_build_info{instance="a",schema="18"}', "1x90", "0 stale"],
        ['crmapid_build_info{instance="b",schema="19"}', "1x90", "1x90"]],
);

# A test for promtool: after MINUTES with the values number BAD (1) or GOOD (2) of
# SERIES the alerts NAMES fire, and no others.
sub rule_test {
    my ($minutes, $column, $series, @names) = @_;
    return { interval => "1m", name => "@names", input_series => [map {
        { series => $_->[0], values => $_->[$column] } } @$series],
        promql_expr_test => [{ eval_time => "${minutes}m",
            expr => 'count by (alertname) (ALERTS{alertstate="firing"})',
            exp_samples => [map { { labels => "{alertname=\"$_\"}",
                value => 1 } } @names] }] };
}

SKIP: {
    my ($none) = run_program(command => ["promtool", "--version"]);
    skip "no promtool: build/setup --tests installs it", 3 if $none;
    my @alerts = read_file("$contrib/prometheus/alerts.yml")
        =~ /^      - alert: (\w+)$/mg;
    is_deeply([sort @alerts], [sort keys %FIRES], "each alert has a test");
    my @all = map { my ($minutes, @series) = @$_; @series } values %FIRES;
    for my $case (["each alert fires on its reason, and no other does", map {
            my ($minutes, @series) = @{$FIRES{$_}};
            rule_test($minutes, 1, \@series, $_) } sort keys %FIRES],
        ["none fires without a reason", map { rule_test($_, 2, \@all) }
            5, 20, 80]) {
        my ($name, @tests) = @$case;
        my $file = File::Temp->new(SUFFIX => ".yml");
        # JSON is YAML
        write_file("$file", JSON::PP->new->utf8->encode({ rule_files =>
            ["$contrib/prometheus/alerts.yml"], evaluation_interval => "1m",
            tests => \@tests }));
        my ($code, $out, $err) = run_program(command => ["promtool", "test",
            "rules", "$file"]);
        is($code, 0, $name) or diag($out . $err);
    }
}
done_testing;
