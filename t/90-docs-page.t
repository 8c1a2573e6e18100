# SPDX-License-Identifier: Apache-2.0
# 90-docs-page.t: GET /api/v1/docs, the OpenAPI document as a page (contract
# 20.7), and llms.txt
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Browser;

my $httpd = httpd(database => database());
my $c = $httpd->client;
my $document = $c->get("/api/v1/openapi.json")->json;
my %operations = map { my $path = $_; map { ($document->{paths}{$path}{$_}
    {operationId} => [uc $_, $path]) } grep { $_ ne "head" }
    keys %{$document->{paths}{$path}} } keys %{$document->{paths}};
my $page = $c->get("/api/v1/docs");

subtest "it is served without a key, and asks for nothing else" => sub {
    status_is($page, 200, "a page");
    like($page->header("Content-Type"), qr{^text/html; ?charset=utf-8$}i,
        "of HTML");
    like($page->header("Content-Security-Policy"), qr{^default-src\ 'none';
        \ style-src\ 'sha256-[\w+/]{43}=';\ img-src\ data:;
        \ form-action\ 'none';\ frame-ancestors\ 'none';
        \ base-uri\ 'none'$}x, "whose policy allows none");
    cmp_ok(length $page->body, "<=", 200_000, "of at most 200 kB");
    unlike($page->body, qr/<script|\son\w+=|\ssrc=|url\(|\@import/i,
        "no script, picture or font");
    my @links = $page->body =~ /\shref="([^#"][^"]*)"/g;
    is_deeply([sort @links], ["data:,", "llms.txt", "openapi.json"],
        "the only other addresses");
    is($c->head("/api/v1/docs")->header("Content-Length"),
        length $page->body, "HEAD");
    error_is(workspace($httpd)->client->post("/api/v1/docs", {}), 405,
        "method_not_allowed", "POST");
};

subtest "it has everything that the document has" => sub {
    my $html = $page->body;
    my %id;
    $id{$_}++ for $html =~ /\sid="([^"]+)"/g;
    is_deeply([grep { $id{$_} > 1 } sort keys %id], [], "no id comes twice");
    is_deeply([grep { !$id{$_} } sort keys %operations], [],
        "each operation has a place");
    is_deeply([grep { !$id{$_} } sort keys %{$document->{components}{schemas}}],
        [], "and each schema");
    is_deeply([grep { !$id{$_} } $html =~ /\shref="#([^"]+)"/g], [],
        "no link leads nowhere");
    for my $name (sort keys %{$document->{components}{schemas}}) {
        my ($part) = $html =~ m{<div id="$name">(.*?)</details>}s;
        my @fields = sort keys %{$document->{components}{schemas}{$name}
            {properties} || {}};
        is_deeply([grep { $part !~ m{<dt><code>\Q$_\E</code>} } @fields], [],
            "$name: its fields");
    }
};

subtest "llms.txt lists the operations" => sub {
    my $r = $c->get("/api/v1/llms.txt");
    status_is($r, 200, "without a key");
    is($r->header("Content-Type"), "text/plain; charset=utf-8", "text");
    like($r->body, qr/^# \S.*\n\n> \S.*\n/, "a title and what it is");
    my %there = map { m{^- \[(\S+) (\S+)\]\(/api/v1/docs#(\w+)\): \S}
        ? ($3 => [$1, $2]) : () } split /\n/, $r->body;
    is_deeply(\%there, \%operations, "each with a link to its place");
    like($r->body, qr/`$_`/, "and $_") for "Idempotency-Key", "Retry-After";
    my ($page) = $r->body =~ m{\b(docs/\w+\.md)\b};
    like(read_file("$CrmTest::TOP/$page"), qr/^# Build an integration$/m,
        "and says where the page for integrations is");
    my ($document) = $r->body =~ m{\[OpenAPI\]\((\S+)\)};
    status_is($c->get($document), 200, "and the document");
};

# --- in a browser -------------------------------------------------------------

# JavaScript: the lowest contrast of a text to what is behind it (WCAG 2.1).
my $contrast = <<'END';
(() => {
    const rgb = (text) => text.match(/[\d.]+/g).map(Number);
    const light = (color) => color.slice(0, 3).map((v) => v / 255).map((v) =>
        v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (it) => {
        for (; it; it = it.parentElement) {
            const color = rgb(getComputedStyle(it).backgroundColor);
            if (color.length < 4 || color[3] > 0) { return color; }
        }
    };
    const walk = document.createTreeWalker(document.body, 4);
    let least = 21;
    while (walk.nextNode()) {
        const it = walk.currentNode.parentElement;
        const [a, b] = [rgb(getComputedStyle(it).color), behind(it)].map(light);
        least = Math.min(least, (Math.max(a, b) + 0.05)
            / (Math.min(a, b) + 0.05));
    }
    return least;
})()
END

SKIP: {
    skip no_browser(), 1 if no_browser();
    subtest "it can be read on any screen, by day and night" => sub {
        my %ground;
        for my $screen (["light", 360], ["dark", 1280], $ENV{CRM_LONG}
            ? (["light", 1280], ["dark", 360]) : ()) {
            my ($scheme, $width) = @$screen;
            my $name = "$scheme, $width px";
            browser("scheme", $scheme);
            browser("size", $width, 800);
            browser("open", "http://127.0.0.1:" . $httpd->port
                . "/api/v1/docs");
            picture("docs-$scheme-$width");
            browser("eval", "document.querySelectorAll('details')"
                . ".forEach((it) => { it.open = true; })");
            cmp_ok(browser("eval", "document.documentElement.scrollWidth"),
                "<=", $width, "$name: nothing is wider");
            cmp_ok(browser("eval", $contrast), ">=", 4.5,
                "$name: contrast");
            keeps_nobody_out($name) if $width < 1000;
            is_deeply(browser("complaints"), [], "$name: no complaint");
            is(browser("eval",
                "performance.getEntriesByType('resource').length"), 0,
                "$name: it has loaded nothing");
            $ground{$scheme} = browser("eval",
                "getComputedStyle(document.body).backgroundColor");
        }
        isnt($ground{dark}, $ground{light}, "the night is dark");
        browser("open", "http://127.0.0.1:" . $httpd->port . "/api/v1/docs");
        my $open = "document.querySelector('#listContacts')"
            . ".closest('details').open";
        ok(!browser("eval", $open), "an operation is closed");
        browser("eval", "location.hash = 'listContacts'");
        ok(browser("eval", $open), "a link to it opens it");
        like(browser("eval",
            "document.querySelector('#listContacts').innerText"),
            qr/external_id/, "with its parameters");
        browser("size", 360, 800);
        for my $id (sort keys %operations) {
            browser("eval", "location.hash = '$id'");
            my $top = browser("eval", "document.querySelector('#$id')"
                . ".closest('details').getBoundingClientRect().top");
            cmp_ok($top, ">=", 0, "$id: its path is seen, too, on a telephone");
        }
    };
    browser_end();
}

$httpd->stop;
done_testing;
