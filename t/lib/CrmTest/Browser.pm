# SPDX-License-Identifier: Apache-2.0
# Browser.pm: a headless Chromium, by mouse and keyboard
package CrmTest::Browser;
use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use IPC::Open2 qw(open2);
use JSON::PP ();
use Test::More;
use CrmTest;

our @EXPORT = qw(no_browser browser browser_end picture keeps_nobody_out);

my $json = JSON::PP->new->utf8->allow_nonref;
my ($pid, $from, $to, $home);

# The first executable of NAMES in PATH, or undef.
sub program {
    my (@names) = @_;
    my ($found) = grep { -x } map { my $dir = $_; map { "$dir/$_" } @names }
        split /:/, $ENV{PATH};
    return $found;
}

sub chromium { program(qw(chromium chromium-browser)) }

# Why there is no browser, or undef.
sub no_browser {
    my $missing = !chromium() ? "chromium" : !program("node") ? "node"
        : return;
    return "no $missing: build/setup --tests installs it";
}

sub start {
    $home = tempdir("crm-browser-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    local $ENV{HOME} = $home;
    $pid = open2($from, $to, program("node"), "$CrmTest::TOP/t/lib/browser.mjs",
        chromium(), $home);
    $to->autoflush(1);
    return;
}

# Have the browser do COMMAND (browser.mjs); its answer. The first call starts
# it.
sub browser {
    my (@command) = @_;
    start() if !$pid;
    print $to $json->encode(\@command) . "\n";
    my $line = <$from>;
    die "CrmTest: the browser has ended\n" unless defined $line;
    my $answer = $json->decode($line);
    die "CrmTest: @command: $answer->{error}\n" if exists $answer->{error};
    return $answer->{ok};
}

# Keep a picture of the page as NAME, in the folder $CRM_PICTURES if that is set.
sub picture {
    my ($name) = @_;
    browser("shot", "$ENV{CRM_PICTURES}/$name.png") if $ENV{CRM_PICTURES};
    return;
}

# The page, or the element SELECTOR of it, keeps nobody out, as far as axe-core
# can tell: names, roles, contrast, order of headings (WCAG 2.2 and its own best
# practices).
sub keeps_nobody_out {
    my ($name, $selector) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $axe = "$CrmTest::TOP/_build/npm/node_modules/axe-core/axe.min.js";
    SKIP: {
        skip("no axe-core: build/setup --tests installs it", 1) if !-e $axe;
        is(join("\n", @{browser("axe", $axe, $selector // "html")}), "",
            "$name: axe-core finds nothing");
    }
    return;
}

# The browser ends.
sub browser_end {
    close $to;
    waitpid $pid, 0;
    undef $pid;
    return is($?, 0, "the browser ended by itself");
}

1;
