# SPDX-License-Identifier: Apache-2.0
# 94-hosting-docs.t: the commands, configurations and sums of docs/hosting.md
# are right
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);
use JSON::PP ();
use Text::ParseWords qw(shellwords);

my $text = read_file("$CrmTest::TOP/docs/hosting.md");
my ($database, $new) = (database(), database());
my $scratch = tempdir("crm-hosting-XXXXXX", TMPDIR => 1, CLEANUP => 1);

subtest "the sums" => sub {
    my @sums = $text =~ /^ +([\d *+()]+) = (\d+)$/mg;
    cmp_ok(scalar @sums, ">=", 4, "there are some");
    while (my ($sum, $result) = splice @sums, 0, 2) {
        is(eval $sum, $result, "$sum = $result");
    }
};

# In the order of the page, except that what deletes runs last. Names in capitals
# are ids of what is there, and dbname=crm_new is another database.
subtest "the commands" => sub {
    my @commands = map { split /\n/ } documented("hosting.md", "console");
    my %id;
    my $ask = sub { crmapictl_json($database, @_) };
    my @last = grep { /workspace delete/ } @commands;
    my $agents = JSON::PP->new->encode({ object => "agent", name => "Ada" });

    my ($tenant) = grep { /\$\{SLUG\}/ } documented("hosting.md", "json");
    write_file("$scratch/tenant.json", $tenant);
    cmp_ok(scalar @commands, ">=", 15, "there are some");
    for my $line ((grep { !/workspace delete/ } @commands), @last) {
        $line =~ s/^\$ crmapictl // or next;
        my $stdin = "";
        for my $part (split / \| crmapictl /, $line) {
            my @words = shellwords($part);
            for (my $i = 0; $i < @words; $i++) {
                splice @words, $i--, 2 if $words[$i] eq ">";
                next if $i < 0;
                if (($words[$i] // "") eq "agents.jsonl") {
                    $stdin = "$agents\n";
                    splice @words, $i--, 1;
                }
            }
            if (grep { $_ eq "KEY_ID" } @words) {
                $id{KEY_ID} = $ask->("key", "create", "--workspace", "one",
                    "--name", "k", "--scopes", "read")->{id};
            }
            if (grep { $_ eq "WEBHOOK_ID" } @words) {
                $id{WEBHOOK_ID} = $ask->("webhook", "add", "--workspace", "one",
                    "--url", "https://hooks.example/", "--events",
                    "contact.created")->{id};
            }
            my $there = $part =~ / --database dbname=crm_new$/;
            splice @words, -2 if $there;
            my ($code, $out, $error) = crmapictl($there ? $new : $database,
                { stdin => $stdin },
                map { $id{$_} // (/^\w+\.(?:dump|json)$/ ? "$scratch/$_" : $_) }
                    @words);
            is($code, 0, $part) or diag($error);
            is((stat "$scratch/one.dump")[2] & 0777, 0600, "it is private")
                if $part =~ /workspace dump/;
            $id{MARK} = $1 if $out =~ /^mark\t(\S+)$/m;
            like($out, qr/^being_sent\t0$/m, "nothing is being sent")
                if $part =~ /workspace hold/;
            $stdin = $out;
        }
    }
    is_deeply([sql($new, "SELECT slug, (SELECT count(*) FROM
        crmapi.workspace_hold) FROM crmapi.workspace")], [["one", 0]],
        "one is in the other database, and released");
};

# httpd accepts CONF with MODULES. All the ports are the test's.
sub accepted {
    my ($conf, @modules) = @_;
    $conf =~ s/\*:443/127.0.0.1:\@PORT\@/g;
    $conf =~ s{logs/|\$\{APACHE_LOG_DIR\}/}{\@DIR\@/}g;
    my $httpd = httpd(no_start => 1, modules => [@modules], conf => $conf);
    my ($code, $out, $error) = $httpd->run("-t");
    is($code, 0, "configtest: " . (split /\n/, $conf)[0])
        or diag("$out$error");
}

subtest "the configurations" => sub {
    my @blocks = documented("hosting.md", "apache");
    cmp_ok(scalar @blocks, ">=", 4, "there are some");
    for my $block (@blocks) {
        accepted($block, $block =~ /<Macro/ ? "macro" : (),
            $block =~ /^MD/m ? ("ssl", "md") : ());
    }
};

subtest "the macro: a host and a log for each workspace" => sub {
    my ($block) = grep { /<Macro/ } documented("hosting.md", "apache");
    $block =~ s/\*:443/127.0.0.1:\@PORT\@/g;
    $block =~ s{logs/|\$\{APACHE_LOG_DIR\}/}{\@DIR\@/}g;
    $block =~ s/^(?:CrmApi On|DBD.*)\n//mg;
    my $httpd = httpd(database => $database, modules => ["macro"],
        conf => $block);
    my %key;
    for my $slug ("one", "two") {
        crmapictl_ok($database, "workspace", "create", "--name", $slug,
            "--slug", $slug);
        $key{$slug} = crmapictl_ok($database, "key", "create", "--workspace",
            $slug, "--name", "k", "--scopes", "read");
    }
    for my $slug ("one", "two") {
        for my $owner ("one", "two") {
            is($httpd->client(host => "$slug.example.com", key => $key{$owner})
                ->get("/api/v1/agents")->status, $slug eq $owner ? 200 : 401,
                "$slug.example.com with the key of $owner");
        }
        ok(wait_for(sub { read_file($httpd->dir . "/$slug.log", "")
            =~ m{"GET /api/v1/agents HTTP/1.1" 200 } }, 5), "$slug.log");
    }
};

done_testing();
