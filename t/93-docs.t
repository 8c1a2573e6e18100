# SPDX-License-Identifier: Apache-2.0
# 93-docs.t: docs/ is complete and correct, and its examples work
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my %text = map { m{([^/]+)$}; ($1 => read_file($_)) }
    glob "$CrmTest::TOP/docs/*.md";
my $sources = join "\n", map { read_file($_) }
    glob "$CrmTest::TOP/mod_crmapi/{*,*/*}/*.[ch]";

# Return the rows of the table in TEXT whose first heading is HEADING, as arrays
# of cells.
sub table {
    my ($text, $heading) = @_;
    my ($rows) = $text =~ /^\| \Q$heading\E \|[^\n]*\n\|-[^\n]*\n((?:\|[^\n]*\n)+)/m
        or return;
    return map { s/^\| //; s/ ?\|$//; [split /\s*\|\s*/, $_, -1] }
        split /\n/, $rows;
}

sub sorted { [sort @_] }

subtest "links lead somewhere" => sub {
    for my $file (sort keys %text) {
        for my $link ($text{$file} =~ /\]\(([^)\s]+)\)/g) {
            my ($target, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
            my $there = $text{$target eq "" ? $file : $target};
            ok(defined $there, "$file: $link: the file") or next;
            next unless defined $anchor;
            my %anchor = map { lc(s/[^\w -]//gr =~ s/ /-/gr) => 1 }
                $there =~ /^#+ (.*)$/mg;
            ok($anchor{$anchor}, "$file: $link: the heading");
        }
    }
};

subtest "docs/README lists every document" => sub {
    my @listed = read_file("$CrmTest::TOP/docs/README") =~ /^    (\w+\.md) /mg;
    is_deeply(sorted(@listed), sorted(keys %text), "once");
};

# --- directives.md ------------------------------------------------------------
# The rows of mod_crmapi_directive.c.
my ($rows) = read_file("$CrmTest::TOP/mod_crmapi/module/mod_crmapi_directive.c")
    =~ /^const command_rec crmapi_commands\[\] = \{\n(.*?)^\};/ms;
my %known = map { $_ => 1 } $rows =~ /^ {4}\w+\((?:\w+, )?"(CrmApi\w*)",/mg;
my %section = $text{"directives.md"} =~ /^## (CrmApi\w*)\n(.*?)(?=^## |\z)/msg;

subtest "directives.md has all directives, and no others" => sub {
    cmp_ok(scalar keys %known, ">=", 10, "the module's table was found");
    is_deeply(sorted(keys %section), sorted(keys %known),
        "each has a section");
    my %listed = map { $_->[0] =~ /\[(\w+)\]/ => $_->[1] }
        table($text{"directives.md"}, "Directive");
    is_deeply(sorted(keys %listed), sorted(keys %known), "and a table of them");
    for my $name (sort keys %section) {
        for my $part ("Description", "Syntax", "Default", "Context") {
            like($section{$name}, qr/^\*\*$part:\*\* \S/m, "$name: $part");
        }
        my ($syntax) = $section{$name} =~ /^\*\*Syntax:\*\* `(\w+) /m;
        is($syntax, $name, "$name: its syntax begins with it");
        my ($default) = $section{$name} =~ /^\*\*Default:\*\* (none|`.*`)/m;
        is($listed{$name}, ($default // "") =~ s/^`\w+ /`/r,
            "$name: the table's default");
    }
};

subtest "directives.md has the defaults of the source" => sub {
    my $compared = 0;
    while ($rows =~ /^ {4}([A-Z_]+)\((?:\w+, )?"(CrmApi\w*)",(.*?)\),\n/msg) {
        my ($kind, $name, $rest) = ($1, $2, $3);
        my ($preset) = $kind =~ /NUMBER|SECONDS/
            ? $rest =~ /^\s*\w+, \w+, \w+, (\d+),/
            : $kind eq "FLAG" ? $rest =~ /^\s*\w+, (On|Off),/
            : $kind eq "PAGE" ? "Off" : $rest =~ /;\s+default (\w+)"/;
        next unless defined $preset;
        $preset .= "s" if $kind eq "SECONDS";
        like($section{$name}, qr/^\*\*Default:\*\* `\w+ \Q$preset\E`/m, $name);
        $compared++;
    }
    cmp_ok($compared, ">=", 20, "those that have one");
};

subtest "directives.md has the values that configtest accepts" => sub {
    my $httpd = httpd(no_start => 1);
    my $token = $httpd->dir . "/token";
    write_file($token, "secret\n");
    chmod 0600, $token;
    my @good;
    my $accepts = sub {
        my ($lines) = @_;
        $httpd->write_conf(join "", map { "$_\n" } @$lines);
        return $httpd->run("-t");
    };
    my $takes = sub {
        my ($lines, $yes, $name) = @_;
        if ($yes) {                     # all at once in the end
            push @good, [$lines, $name];
            return;
        }
        my ($code, $words) = $accepts->([$lines]);
        ok($code, "$name is refused") or diag($words);
        like($words, qr/CrmApi/, "$name: the line names it");
        return $words;
    };
    for my $name (sort keys %section) {
        my $text = $section{$name};
        my ($default) = $text =~ /^\*\*Default:\*\* `(.*)`/m;
        $takes->($default, 1, $default) if $default;
        for my $block (fenced($text, "apache")) {
            $takes->($block, 1, "$name: the example");
        }
        if ($text =~ /^\*\*Syntax:\*\* `\w+ (?:number|bytes|time\S*)`/m) {
            my ($min, $max) = $takes->("$name x", !!0, "$name x")
                =~ /from (\d+) to (\d+)/;
            ok(defined $max, "$name: the line has the range") or next;
            $takes->("$name $max", 1, "$name $max");
            $takes->("$name " . ($max + 1), !!0, "$name " . ($max + 1));
            $takes->("$name $min", 1, "$name $min");
            $takes->("$name " . ($min - 1), !!0, "$name " . ($min - 1));
        }
        elsif ($text =~ /`\w+ On\|Off`/) {
            $takes->("$name Perhaps", !!0, "$name Perhaps");
        }
        my $in_vhost = $text =~ /^\*\*Context:\*\*.*virtual host/m;
        my $value = $default || ($name eq "CrmApiTwilio"
            ? "$name AC" . "0" x 32 . " $token"
            : $name =~ /Url$|Origins$/ ? "$name https://crm.example"
            : "$name slug");
        $takes->("<VirtualHost *:1>\n$value\n</VirtualHost>",
            !!$in_vhost, "$value in a virtual host");
        $takes->("<Location /x>\n$value\n</Location>",
            !!($text =~ /^\*\*Context:\*\*.*directory/m), "$value in a section");
    }
    my $all = !($accepts->([map { $_->[0] } @good]))[0];
    for my $case (@good) {
        my ($lines, $name) = @$case;
        my ($code, $words) = $all ? 0 : $accepts->([$lines]);
        ok(!$code, "$name is accepted") or diag($words);
    }
};

# --- operations.md ------------------------------------------------------------
my $operations = $text{"operations.md"};

subtest "operations.md has all message codes, and no others" => sub {
    my %there = map { $_ => 1 } $sources =~ /"[^"\n]*\b(CRM\d{4}): /g;
    my @documented = map { $_->[0] } table($operations, "Code");
    cmp_ok(scalar keys %there, ">", 10, "codes were found in the sources");
    is_deeply(sorted(@documented), sorted(keys %there), "table and sources");
    my %documented = map { $_ => 1 } @documented;
    for my $file (sort keys %text) {
        my @unknown = grep { !$documented{$_} }
            $text{$file} =~ /\b(CRM\d{4})\b/g;
        is_deeply(\@unknown, [], "$file has no others");
    }
};

# The status of each CRM_E_* code, and its name.
my $errors = read_file("$CrmTest::TOP/mod_crmapi/base/crm_error.c");
my %status = $errors =~ /\[CRM_(E_\w+)\] = \{(\d+),/g;
my %code = $errors =~ /= \{(\d+), "(\w+)"/g;

subtest "operations.md has the SQLSTATEs of crm_db_error.c" => sub {
    my $file = read_file("$CrmTest::TOP/mod_crmapi/database/crm_db_error.c");
    my %there = ("none" => "E_UNAVAILABLE", "any other" => "E_INTERNAL",
        $file =~ /\{"(\w+)", CRM_(E_\w+)\}/g);
    my %documented = map { @$_[0, 2] } table($operations, "SQLSTATE");
    cmp_ok(scalar keys %there, ">", 10, "the table was found");
    is_deeply(\%documented, { map { $_ => $status{$there{$_}} } keys %there },
        "with their statuses");
};

my ($log_format) = grep { /LogFormat/ } fenced($operations, "apache");
$log_format =~ s{^CustomLog \S+}{CustomLog \@DIR\@/crmapi_log}m;
my $httpd = httpd(database => database(), conf => <<"END");
<Location /server-status>
    SetHandler server-status
</Location>
$log_format
END
my $w = workspace($httpd);

subtest "operations.md has the counters of mod_status" => sub {
    my $body = $httpd->client->get("/server-status?auto")->body;
    my @there = $body =~ /^(CrmApi\w+): \d+$/mg;
    my @documented = map { $_->[0] =~ /`(\w+)`/g } table($operations, "`?auto`");
    cmp_ok(scalar @there, ">", 5, "mod_status shows counters");
    is_deeply(sorted(@documented), sorted(@there), "table and page");
    my %is = map { $_ => 1 } @there, keys %known;
    for my $file (sort keys %text) {
        is_deeply([grep { !$is{$_} } $text{$file} =~ /\b(CrmApi[A-Z]\w*)/g], [],
            "$file names directives and counters that there are");
    }
};

subtest "operations.md: the access log's format works" => sub {
    my $r = $w->client->get("/api/v1/agents");
    my $id = $r->header("X-Request-Id");
    my ($key) = $w->key_ids;
    my $line = wait_for(sub {
        (grep { /\Q$id\E/ } split /\n/,
            read_file($httpd->dir . "/crmapi_log"))[0];
    });
    like($line, qr{" 200 \d+ \d+ \Q$id\E \Q$w->{id}\E \Q$key\E "GET /agents" \d+ -$},
        "the notes and %L");
    my @notes = map { $_->[0] =~ /`(.*)`/ } table($operations, "Note");
    is_deeply(sorted($log_format =~ /\{(crmapi-[\w-]+)\}n/g), sorted(@notes),
        "it shows every note of the table");
};

# --- crmapictl ------------------------------------------------------------------
subtest "crmapid(8) has all settings and options" => sub {
    my $page = read_file("$CrmTest::TOP/docs/man/crmapid.8");
    my ($code, $settings) = run_program(
        command => [$CrmTest::BUILD{WORKER}, "--print-manual"]);
    is($code, 0, "--print-manual");
    cmp_ok(length $settings, ">", 2000, "there are settings");
    ok(index($page, $settings) > 0, "the page has what --print-manual prints");
    my ($none, $help) = run_program(
        command => [$CrmTest::BUILD{WORKER}, "--help"]);
    for my $option ($help =~ /--([a-z-]+)/g) {
        my $escaped = $option =~ s/-/\\-/gr;
        like($page, qr/\Q\-\-$escaped\E/, "--$option");
    }
    my ($ok, $sample) = run_program(
        command => [$CrmTest::BUILD{WORKER}, "--print-config"]);
    my $worker = worker(database => "none", no_start => 1);
    write_file($worker->conf_file, $sample =~ s/^#(?=\w+ =)//gmr
        =~ s/^database =.*/database = dbname=x/mr);
    is(($worker->run("-t"))[0], 0,
        "crmapid accepts the defaults of --print-config");
    for my $file (sort keys %text) {
        # blocks of "ini" are of PgBouncer and PostgreSQL
        my $own = $text{$file} =~ s/^```(?:ini|python)\n.*?^```$//msgr;
        for my $setting ($own =~ /^([a-z_]+) = /mg) {
            like($sample, qr/^#$setting =/m, "$file: $setting is a setting");
        }
    }
};

subtest "crmapictl has the commands that the documents show" => sub {
    my ($count, %help) = (0);
    for my $file (sort keys %text) {
        for my $line (map { split /\n/ } fenced($text{$file}, "console")) {
            my ($command) = $line =~ /^\s*[\$#] (crmapictl [^<>]*)/ or next;
            my @words = split / /, $command;
            my @options = grep { /^--/ } @words;
            my @names = splice @words, 1, 2;
            @names = grep { defined && /^[a-z][a-z-]*$/ } @names;
            my ($code, $help) = @{$help{"@names"} //=
                [crmapictl(undef, @names, "--help")]};
            is($code, 0, "$file: crmapictl @names");
            like($help, qr/^  \Q$_\E\b/m, "$file: crmapictl @names $_")
                for @options;
            $count++;
        }
    }
    cmp_ok($count, ">", 4, "commands were found");
};

# --- api.md ---------------------------------------------------------------------
my $guide = $text{"api.md"};

subtest "api.md has all endpoints and errors" => sub {
    my $paths = $httpd->client->get("/api/v1/openapi.json")->json->{paths};
    delete $paths->{"/api/v1/openapi.json"};
    my @there = map { my $path = $_; map { uc($_) . " $path" }
        grep { /^(?:get|post|patch|put|delete)$/ } keys %{$paths->{$path}} }
        keys %$paths;
    my @documented = map { my ($names, $methods) = @$_;
        map { my $path = $_; map { "$_ /api/v1$path" }
            split /, /, $methods } $names =~ m{`([^`?]+)}g }
        table($guide, "Path, after `/api/v1`");
    # the backquote after a query begins another match
    @documented = grep { m{ /api/v1/} } @documented;
    my %there = map { $_ => 1 } @there;
    cmp_ok(scalar @documented, ">", 20, "endpoints were found");
    is_deeply([grep { !$there{$_} } @documented], [], "all of them are served");
    my %documented = map { $_ => 1 } @documented;
    is_deeply([grep { !$documented{$_} } @there], [], "and all that are served");

    # 408 and 431 have the code of 400.
    my @errors = table($guide, "Status");
    is_deeply({ map { $_->[0] => $_->[1] =~ s/`//gr } @errors }, \%code,
        "status and code");
};

# 04-packages.t pastes all of its lines in a Debian system.
subtest "sequences.md: the first sequence runs when pasted" => sub {
    my ($settings, undef, @blocks) = fenced($text{"sequences.md"}, "sh");
    my $site = workspace($httpd, twin => 0);
    my %conf = $settings =~ /^([a-z_]+) = (.*)$/mg;
    my $password = $httpd->dir . "/password";
    write_file($password, "secret\n");
    chmod 0600, $password;
    my $worker = worker(database => $site->{database}, no_start => 1,
        conf => { %conf, smtp_password_file => $password });
    is(($worker->run("-t"))[0], 0, "crmapid accepts the settings");
    $worker->configure({ email_relay => "maildir" });
    my $paste = sub {
        my ($code, $out, $err) = run_program(chdir => $httpd->dir, command =>
            ["sh", "-eu", "-c", $_[0] =~ s/localhost/127.0.0.1:@{[
            $httpd->port]}/r], env => { KEY => $site->key, W => $site->id,
            AGENT => $site->agent, PATH => "$CrmTest::BUILD{DIR}:$ENV{PATH}",
            CRMAPI_DATABASE => postgres()->conninfo($site->{database}),
            no_proxy => "*" });
        is($code, 0, "it runs") or diag("$out$err");
        return $out;
    };
    my ($id) = $paste->($blocks[0]) =~ /"enrollment_id":"([^"]*)"/;
    ok($id, "a sequence is started");
    $worker->once for 1 .. 2;
    my ($mail) = $worker->mails;
    like($mail->[1], qr{^List-Unsubscribe: <\Q$conf{public_url}\E/}m,
        "the mail has a link");
    like($paste->($blocks[1]), qr/^\Q$id\E\s.*\bcompleted\b/m, "the list");
    $worker->stop;
};

subtest "webhooks.md and the OpenAPI document have the same events" => sub {
    my $hooks = $httpd->client->get("/api/v1/openapi.json")->json->{webhooks};
    my @documented = map { $_->[0] =~ /`(.*)`/ }
        table($text{"webhooks.md"}, "type");
    cmp_ok(scalar @documented, ">", 1, "there are some");
    is_deeply(sorted(@documented), sorted(keys %$hooks), "all of them");
};

my @json = fenced($guide, "json");
for my $number (1 .. @json) {
    ok(eval { JSON::PP->new->decode($json[$number - 1]) },
        "api.md: JSON example $number is JSON") or diag($@);
}

subtest "api.md: every example runs when pasted" => sub {
    my ($code, $version) = eval { run_program(command => ["curl", "-V"]) };
    if ($@ || $code) {
        plan(skip_all => "no curl: build/setup installs it");
    }
    my @blocks = fenced($guide, "sh");
    my $script = "";
    for my $number (1 .. @blocks) {
        $script .= "$blocks[$number - 1]\necho; echo '\@\@ done $number'\n";
    }
    $w->template([{ email_subject => "Welcome", email_body => "Hello" }],
        name => "Welcome");
    my $file = $httpd->dir . "/examples.sh";
    write_file($file, $script);
    my ($exit, $out, $err) = run_program(command => ["sh", "-eu", $file],
        env => { CRMAPI_URL => "http://127.0.0.1:" . $httpd->port,
            CRMAPI_KEY => $w->key, CRMAPI_WORKSPACE => $w->id,
            CRMAPI_DATABASE => postgres()->conninfo($w->{database}),
            PATH => "$CrmTest::BUILD{DIR}:$ENV{PATH}", no_proxy => "*" });
    cmp_ok(scalar @blocks, ">", 5, "examples were found");
    for my $number (1 .. @blocks) {
        last unless ok($out =~ /^\@\@ done $number$/m,
            "example $number ran to its end");
    }
    is($exit, 0, "all of them ran") or diag("$err\n$out");
    my %shown = map { $_ => 1 } $out =~ /"(code|created|updated|enrollment_id)":/g;
    ok($shown{$_}, "they showed $_") for qw(created updated enrollment_id);
    is($shown{code}, undef, "none was answered by an error");
};

subtest "intake.md: its examples run when pasted" => sub {
    my $site = httpd(database => $w->{database}, conf => "CrmApiIntake On\n");
    my $token = $w->token("t");
    my @blocks = fenced($text{"intake.md"}, "sh");
    cmp_ok(scalar @blocks, ">", 0, "there are some");
    for my $block (@blocks) {
        my ($exit, $out, $err) = run_program(command => ["sh", "-eu", "-c",
            $block], env => { no_proxy => "*", CRMAPI_INTAKE => $token,
                CRMAPI_KEY => $w->key,
                CRMAPI_URL => "http://127.0.0.1:" . $site->port });
        is($exit, 0, "it runs") or diag($err);
        my $answer = eval { JSON::PP->new->utf8->decode($out) };
        is(scalar @{($answer || {})->{data}{accepted} || []}, 1,
            "and its event is accepted") or diag($out);
    }
    $site->stop;
};

done_testing;
