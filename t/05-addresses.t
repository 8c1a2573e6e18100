#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-addresses.t: which phone numbers and which e-mail addresses are the same
# (contract 17.1, 17.2): one table of cases for the functions in C and in SQL, and
# both on every code point and on generated texts
use strict;
use warnings;
use utf8;
use Unicode::Normalize qw(NFKC);
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Postgres;

my $db = database();

# What the functions NAME make of TEXTS: the database's, and that of base/.
sub both {
    my ($name, @texts) = @_;
    my @lines = map { utf8::encode(my $line = $_); $line } @texts;
    my ($code, $out, $err) = run_program(
        command => ["$CrmTest::BUILD{DIR}/t/unit/text_lines", $name],
        stdin => join("", map { "$_\n" } @lines));
    die "CrmTest: text_lines: $err\n" if $code;
    my $array = join ",", map { qq("$_") =~ s/''/''/gr }
        map { s/(["\\])/\\$1/gr =~ s/'/''/gr } @texts;
    my $hex = sql($db, "SELECT encode(convert_to(string_agg(coalesce("
        . "crmapi.$name(s.t), '(null)'), E'\\n' ORDER BY s.n), 'UTF8'), 'hex')"
        . " FROM unnest('{$array}'::text[]) WITH ORDINALITY s (t, n)");
    my @database = split /\n/, pack("H*", $hex), -1;
    my @module = split /\n/, $out, -1;
    pop @module;
    is(scalar @module, scalar @texts, "$name: the module answers to all");
    is(scalar @database, scalar @texts, "$name: and so does the database");
    return (\@database, \@module);
}

# TEXT as code points where it is not printable ASCII.
sub shown { return $_[0] =~ s/([^ -~])/sprintf "{%X}", ord $1/ger }

# Where the two differ for TEXTS: up to five.
sub agree {
    my ($name, $about, @texts) = @_;
    my ($database, $module) = both($name, @texts);
    my @different = grep { $database->[$_] ne $module->[$_] } 0 .. $#texts;
    is_deeply([map { shown($texts[$_]) . ": "
            . unpack("H*", $database->[$_]) . ", "
            . unpack("H*", $module->[$_]) }
        @different > 5 ? @different[0 .. 4] : @different], [],
        "$name: the same in C and SQL: $about");
}

# --- phone numbers -------------------------------------------------------------

my $german = "+491515550009";
my $american = "+16502530000";
my %phones = (
    # plainly a number
    $german => $german,
    "+49 151 5550009" => $german,
    " +49 151 5550009\t" => $german,
    "+49-151-5550009" => $german,
    "+49.151.555.0009" => $german,
    "+49/151/5550009" => $german,
    "+49 (151) 5550009" => $german,
    "+49(151)5550009" => $german,
    "+(49) 151 5550009" => $german,
    "+ 49 151 5550009" => $german,
    "(+49) 151 5550009" => $german,
    "(+49)1515550009" => $german,
    "tel:+49-151-5550009" => $german,
    "TEL: +49 151 5550009" => $german,
    "+49 (0) 151 5550009" => $german,
    "+49 (0)151 5550009" => $german,
    "+49(0)151 5550009" => $german,
    "+49-(0)151-5550009" => $german,
    "(+49) (0)151 5550009" => $german,
    "tel:+49(0)1515550009" => $german,
    "+44 (0)20 7946 0018" => "+442079460018",
    "+353 (0)1 679 1977" => "+35316791977",
    "+1 (650) 253-0000" => $american,
    "+1 (0) 650 253 0000" => $american,
    # of any script, with what is not seen
    "\x{ff0b}\x{ff14}\x{ff19} \x{ff11}\x{ff15}\x{ff11} \x{ff15}\x{ff15}\x{ff15}"
        . "\x{ff10}\x{ff10}\x{ff10}\x{ff19}" => $german,
    "\x{ff0b}1\x{3000}\x{ff08}650\x{ff09}\x{3000}253\x{ff0d}0000" => $american,
    "\x{202a}+49 151 5550009\x{202c}" => $german,
    "\x{2066}+49 151 5550009\x{2069}" => $german,
    "\x{feff}+49 151 5550009" => $german,
    "+49\x{2060}151\x{200b}5550\x{ad}009" => $german,
    "\x{200e}+49\x{200f} 151\x{61c} 5550009" => $german,
    "+49\x{a0}151\x{202f}5550009" => $german,
    "\x{202d}+1\x{a0}(650)\x{a0}253\x{2011}0000\x{202c}" => $american,
    "+49\x{2010}151\x{2013}555\x{2212}0009" => $german,
    "+\x{664}\x{669} \x{661}\x{665}\x{661} \x{665}\x{665}\x{665}\x{660}\x{660}"
        . "\x{660}\x{669}" => $german,
    "+\x{6f4}\x{6f9} \x{6f1}\x{6f5}\x{6f1} 5550009" => $german,
    "+\x{96a}\x{96f}1515550009" => $german,
    # the length of a number
    "+12345678" => "+12345678",
    "+123456789012345" => "+123456789012345",
    (map { $_ => undef } (
        "+1234567", "+1234567890123456", "+49 151", "+", "+49", "",
        "+49 151 5550009 5550010",
        # no country code
        "0151 5550009", "00491515550009", "00 49 151 5550009", "491515550009",
        "011 1 650 253 0000", "+0151 5550009", "+00491515550009",
        "+ 00 49 151 5550009", "(650) 253-0000", "12345",
        # letters
        "+1-800-FLOWERS", "+1-800-COLLECT", "+1 800 FLOWERS", "x+491515550009",
        # extensions
        "+49.151.555.0009 ext. 7", "+49 151 5550009 x7", "+49 151 555 2671 x12",
        "+49 151 5550009 DW 15", "+49 151 5550009;ext=7",
        "tel:+491515550009;ext=7", "+49 151 5550009#7", "+49 151 5550009,7",
        "+49 151 5550009,,7#", "+49 151 5550009 ext 7", "+1 650 253 0000 p7",
        "+49 151 5550009 \x{445}7", "+49 151 5550009\x{ff0c}7",
        "+49 151 5550009 \x{ff58}7", "+49 151 5550009\x{ff03}",
        # two numbers
        "+49 151 5550009 / +49 151 5550010", "+491515550009+491515550010",
        "+49 151 5550009, +49 151 5550010", "+49 151 5550009 or 0151 5550010",
        "+49 151 5550009;+49 151 5550010", "+49 151 5550009\n+49 151 5550010",
        # a second +, a trunk zero that is not plainly left out
        "++491515550009", "+49 +151 5550009", "(++49) 151 5550009",
        "+49 (0151) 5550009", "+49 (01) 515550009", "(+49) (0151) 5550009",
        "+49 ( 0151) 5550009", "+49 ( 0 ) 151 5550009", "+49 (00) 151 5550009",
        "+49 151 (0) 5550009", "+491 (0) 515550009", "+4 (0) 91515550009",
        "+49 (0)(0)151 5550009", "+49 (0) (0151) 5550009",
        "+49 (0", "+49 (0)", "+1 (0)", "+\x{664}\x{669} (\x{660}151) 5550009",
        # brackets and signs that are something else
        "(+49151) 5550009", "(+49 151) 5550009", "[+49] 151 5550009",
        "(+49 151 5550009)", "+49*151*5550009", "+49_151_5550009",
        "+49~151~5550009", "+49:151:5550009", "+49\x{b7}151\x{b7}5550009",
        "+49\\151\\5550009", "=+491515550009", "'+491515550009", "\"+491515550009",
        "tel:tel:+491515550009", "tel:", "sip:+491515550009", "tel+491515550009",
        "callto:+491515550009", "+49 151 5550009?", "+49 151 555\x{bd}0009",
        "+49\t151\t5550009", "\x{0}" x 0 . "anonymous",
    )),
);
my @texts = sort keys %phones;
# the line is a line: what has a newline is for SQL alone, below
my @lines = grep { !/\n/ } @texts;

my ($database, $module) = both("phone_e164", @lines);
for my $i (0 .. $#lines) {
    my $is = $phones{$lines[$i]} // "(null)";
    is($database->[$i], $is, "17.1 SQL: '" . shown($lines[$i]) . "'");
    is($module->[$i], $is, "17.1 C: '" . shown($lines[$i]) . "'");
}
is(sql($db, "SELECT crmapi.phone_e164(E'+49 151 5550009\\n+49 151 5550010')"),
    undef, "17.1 two lines are two numbers");
agree("phone_key", "the cases", @lines);
agree("phone_plain", "the cases", @lines);
my @none = grep { !defined $phones{$_} } @lines;
my ($keys) = both("phone_key", @none);
is_deeply($keys, [map { utf8::encode(my $bytes = $_); $bytes } @none],
    "17.1 without an E.164 form only an equal text is the same number");

# Characters that Perl's version of Unicode has. PostgreSQL and ICU may know more,
# each of another version.
my @points = grep { $_ > 0x1f && ($_ < 0xd800 || $_ > 0xdfff)
    && chr =~ /\p{Assigned}/ && chr !~ /["\\']/ } 0 .. 0x10ffff;
my @all = map { chr } @points;
agree("phone_plain", "every code point", map { join "x", splice @all, 0, 64 }
    0 .. $#all / 64);
agree("phone_e164", "the first code points in a number",
    map { "+49" . chr() . "1515550009" } grep { $_ < 0x2400
        || $_ > 0xf000 && $_ < 0x10000 } @points);

# Texts of what is found in and beside numbers. The same at each run.
my @pieces = ("+", "+", "(", ")", "(0)", "(0", "(+", "0", 0 .. 9, 49, 1, 353, 44,
    151, 5550009, " ", "-", ".", "/", "tel:", "x", ";ext=7", "\x{2011}", "\x{a0}",
    "\x{202a}", "\x{ff0b}", "\x{ff11}", "\x{664}", "\x{e000}", "\x{301}");
srand 17;
agree("phone_e164", "generated texts", map {
    join "", (rand() < .7 ? "+49" : ()), map { $pieces[rand @pieces] }
        0 .. rand 9 } 1 .. 20_000);

# --- e-mail addresses ------------------------------------------------------------

# Texts of one address in each line; the canonical form comes first.
my $koeln = "y\@xn--kln-sna.test";
my %emails = map { my ($form, @texts) = @$_;
    map { $_ => $form } @texts, $form // () } (
    [$koeln, "y\@k\x{f6}ln.test", "Y\@K\x{d6}LN.TEST", "y\@ko\x{308}ln.test",
        "y\@KO\x{308}LN.test", "y\@XN--KLN-SNA.Test", "y\@k\x{f6}ln.test.",
        "y\@xn--kln-sna.test.", "y\@k\x{f6}\x{ad}ln.test", "y\@k\x{f6}ln\x{ff0e}test",
        "y\@k\x{f6}ln\x{3002}test", "y\@k\x{f6}ln\x{ff61}test",
        "y\@\x{ff4b}\x{f6}\x{ff4c}\x{ff4e}.test", "y\@k\x{f6}ln.test\x{3002}",
        "y\@\x{ff58}\x{ff4e}\x{ff0d}\x{ff0d}kln-sna.test", "y\@k\x{f6}ln.te\x{200b}st",
        "\"y\"\@k\x{f6}ln.test", "\"\\Y\"\@k\x{f6}ln.test"],
    ["ada\@example.org", "ADA\@EXAMPLE.ORG", "Ada\@Example.org.",
        "ada\@ex\x{ad}ample.org", "ada\@example\x{ff0e}org", "ada\@ex\x{2060}ample.org",
        "ada\@\x{ff25}xample.org", "\"ada\"\@example.org", "\"a\\da\"\@example.org",
        "ada\@exam\x{feff}ple.org", "ada\@exampl\x{24d4}.org",
        "ada\@e\x{fe0f}xample.org", "ada\@\x{1d5be}xample.org",
        "ada\@exam\x{200b}ple.org"],
    ["ada+x\@example.org", "ADA+X\@example.org"],
    ["a.b\@example.org", "\"a.b\"\@example.org"],
    ["\"a,b\"\@example.org", "\"A,B\"\@example.org", "\"\\a\\,b\"\@example.org"],
    ["\"a\\\"b\"\@x.test", "\"a\\\"B\"\@x.test"],
    ["\"a\\\\\"\@x.test"],
    ["a..b\@x.test"], [".a\@x.test"], ["o'brien\@x.test"], ["a,b\@x.test"],
    ["a\"b\@x.test"], ["\"\"\@x.test"], ["\"a\"b\"\@x.test"], ["\"a\\\"\@x.test"],
    ["\"a\@x.test"],
    # the local part: case and normal form alone
    ["j\x{f6}rg\@x.test", "J\x{d6}RG\@x.test", "jo\x{308}rg\@x.test",
        "JO\x{308}RG\@X.test."],
    ["\x{3bd}\x{3b9}\x{3ba}\x{3bf}\x{3c3}\@x.test",
        "\x{39d}\x{399}\x{39a}\x{39f}\x{3a3}\@x.test",
        "\x{3bd}\x{3b9}\x{3ba}\x{3bf}\x{3c2}\@x.test"],
    ["stra\x{df}e\@x.test"], ["strasse\@x.test"],
    ["\x{ff41}da\@x.test", "\x{ff21}da\@x.test"],
    ["a\x{ad}da\@x.test"],
    # the domain: not transitionally
    ["a\@xn--strae-oqa.de", "a\@stra\x{df}e.de", "a\@STRA\x{df}E.de",
        "a\@stra\x{1e9e}e.de"],
    ["a\@strasse.de", "a\@STRASSE.de"],
    ["a\@xn--uxachku.gr", "a\@\x{3bd}\x{3b9}\x{3ba}\x{3bf}\x{3c3}.gr",
        "a\@\x{39d}\x{399}\x{39a}\x{39f}\x{3a3}.GR"],
    ["a\@xn--uxachkp.gr", "a\@\x{3bd}\x{3b9}\x{3ba}\x{3bf}\x{3c2}.gr"],
    ["a\@xn--ls8h.la", "a\@\x{1f4a9}.la"],
    ["a\@xn--i-7iq.ws", "a\@i\x{2764}\x{fe0f}.ws", "a\@I\x{2764}.ws"],
    ["a\@xn--r8jz45g.xn--zckzah", "a\@\x{4f8b}\x{3048}\x{3002}\x{30c6}\x{30b9}\x{30c8}",
        "a\@\x{4f8b}\x{3048}.\x{ff83}\x{ff7d}\x{ff84}"],
    ["a\@xn--mgbh0fb.xn--kgbechtv", "a\@\x{645}\x{62b}\x{627}\x{644}.\x{625}\x{62e}"
        . "\x{62a}\x{628}\x{627}\x{631}"],
    ["a\@xn--fdbk5d8ap9b8a8d.xn--deba0ad", "a\@\x{5d1}\x{5f2}\x{5b7}\x{5e9}\x{5e4}"
        . "\x{5bc}\x{5d9}\x{5dc}.\x{5d8}\x{5e2}\x{5e1}\x{5d8}"],
    ["a\@xn--80ak6aa92e.com", "a\@\x{430}\x{440}\x{440}\x{04cf}\x{435}.com"],
    ["a\@1.2.3.4"], ["a\@localhost"], ["a\@a_b.test"], ["a\@r3---sn.test"],
    ["a\@ab--c.test", "a\@AB--C.test"],
    ["a\@" . ("b" x 63) . ".test"],
    ["a\@" . join(".", ("b" x 49) x 5) . ".t", "a\@" . join(".", ("B" x 49) x 5)
        . ".t."],
    (map { my $bad = $_; [undef, $bad] } (
        "\@", "a", "a\@", "\@x.test", "a\@b\@x.test", "a b\@x.test", "a\@x .test",
        "a\@x\x{a0}.test", "a\x{3000}b\@x.test", "a\@x\x{2003}.test",
        "a\x{ff20}x.test", "a\@x\x{ff20}y.test",
        # empty labels, hyphens, lengths
        "a\@.", "a\@..", "a\@.test", "a\@x..test", "a\@x.test..", "a\@\x{3002}",
        "a\@x\x{ff0e}\x{3002}test", "a\@x.\x{ad}.test", "a\@\x{ad}",
        "a\@-x.test", "a\@x-.test", "a\@\x{2d}k\x{f6}ln.test", "a\@k\x{f6}ln-.test",
        "a\@" . ("b" x 64) . ".test", "a\@" . ("\x{f6}" x 62) . ".test",
        "a\@" . join(".", ("b" x 49) x 5) . ".test",
        "a\@" . join(".", ("\x{f6}b" x 10) x 10) . ".test", ("a" x 250) . "\@x.test",
        # characters that no host has
        "a\@[127.0.0.1]", "a\@[IPv6:::1]", "a\@x,y", "a\@x!y", "a\@<x>", "a\@x%y",
        "a\@x:25", "a\@x/y", "a\@\"x\"", "a\@x\\y", "a\@x\x{2024}y", "a\@\x{33c2}.test",
        "a\@x\x{202e}y.test", "a\@x\x{200e}.test", "a\@x\x{e000}.test", "a\@x\x{fffd}",
        "a\@\x{2488}x.test", "a\@x\x{b4}y.test", "a\@\x{fdfa}.test",
        # what UTS 46 takes or leaves out since Unicode 16
        map { "a\@x" . chr() . "y.test" } 0x115f, 0x1160, 0x17b4, 0x17b5, 0x1806,
            0x180e, 0x2061 .. 0x2063, 0x206a .. 0x206f, 0x3164, 0xffa0,
            0x1d173 .. 0x1d17a,
    )),
    # what only the function in C refuses: A-labels that are none, and rules for
    # right-to-left text, joiners and marks
    (map { [undef, $_] } my @refused = (
        "a\@xn--a", "a\@xn--", "a\@xn--\x{f6}.test", "a\@xn--K\x{f6}ln.test",
        "a\@xn--kln-sna\x{f6}.test", "a\@xn--0.test",
        "a\@xn--zzzzzzzzzzz.test", "a\@x\x{200d}y.test", "a\@x\x{200c}y.test",
        "a\@a\x{5d0}.test", "a\@\x{5d0}a.test", "a\@\x{661}\x{5d0}1.test",
        "a\@\x{301}x.test",
    )),
);
my %refused = map { $_ => 1 } @refused;
my @addresses = sort keys %emails;
($database, $module) = both("email_canonical", @addresses);
for my $i (0 .. $#addresses) {
    utf8::encode(my $is = $emails{$addresses[$i]} // "(null)");
    my $shown = shown($addresses[$i]);
    is($module->[$i], $is, "17.2 C: $shown");
    is($database->[$i], $is, "17.2 SQL: $shown")
        if !$refused{$addresses[$i]};
}
my @forms = grep { defined } values %emails;
my @same = map { utf8::encode(my $bytes = $_); $bytes } @forms;
for my $kind (0, 1) {
    is_deeply((both("email_canonical", @forms))[$kind], \@same,
        "17.2 a canonical form is its own");
}
agree("email_key", "the cases", grep { !$refused{$_} } @addresses);
($database) = both("email_key", "A\@[127.0.0.1]", "a\@[127.0.0.1]");
is($database->[0], $database->[1],
    "17.2 without a canonical form texts are compared without case");

# Where SQL has another form than the C function for TEXTS, up to five.
sub same_forms {
    my ($about, @texts) = @_;
    my ($database, $module) = both("email_canonical", @texts);
    my @different = grep { $module->[$_] ne "(null)"
        && $database->[$_] ne $module->[$_] } 0 .. $#texts;
    is_deeply([map { shown($texts[$_]) . ": $database->[$_], $module->[$_]" }
        @different > 5 ? @different[0 .. 4] : @different], [],
        "17.2 SQL has each form of the C function: $about");
    return grep { $module->[$_] eq "(null)" && $database->[$_] ne "(null)" }
        0 .. $#texts;
}

# What SQL lets through: marks, joiners, right-to-left text; and characters that
# versions of UTS 46 treat differently.
# Of the ideographs and syllables, which are thousands, each 61st is enough.
@points = grep { !(($_ > 0x33ff && $_ < 0xa000) || ($_ > 0xabff && $_ < 0xd7a4)
        || ($_ > 0x16fff && $_ < 0x18d00) || ($_ > 0x1ffff && $_ < 0x2f800)
        || $_ > 0x2ffff) || $_ % 61 == 0 } @points;
my @more = map { $points[$_] } same_forms("every code point",
    map { "a\@x" . chr() . "y.test" } @points);
is_deeply([map { sprintf "%X", $_ } grep {
    NFKC(chr()) !~ /[\p{Bidi_Class=R}\p{Bidi_Class=AL}\p{Bidi_Class=AN}\x{200c}\x{200d}]/
    && chr() !~ /[\x{4c0}\x{10a0}-\x{10c5}\x{2132}\x{2183}\x{2ff0}-\x{2fff}\x{31ef}
                   \x{2f868}\x{2f874}\x{2f91f}\x{2f95f}\x{2f9bf}]/x } @more], [],
    "17.2 and no other form");

my @parts = ("a", "B", "xn--", "-", ".", ".", "\x{3002}", "\x{f6}", "o\x{308}",
    "\x{d6}", "\x{df}", "\x{3c2}", "\x{3a3}", "\x{1fb3}", "\x{13a0}", "\x{ab70}",
    "\x{1f4a9}", "\x{4f8b}", "\x{ad}", "\x{ff21}", "\x{ff0e}", "\x{130}", "\x{149}",
    "\x{10ffff}", "\x{2126}", "\x{212b}", "\x{1e9e}", "\x{323}", "\x{345}",
    "kln-sna", "1", "_", "\x{10400}", "\x{ac00}", "\x{1100}", "\x{1161}");
same_forms("generated domains", map { "a\@" . join "", map { $parts[rand @parts] }
    0 .. rand 9 } 1 .. 4_000);
my @locals = ("a", "B", "\"", "\"", "\\", ".", ",", "\x{f6}", "o\x{308}", "\x{3a3}",
    "+", "(", "\x{ad}");
same_forms("generated local parts", map { join("", map { $locals[rand @locals] }
    0 .. rand 9) . "\@x.test" } 1 .. 4_000);

# --- long texts ---------------------------------------------------------------

for my $unit ("x1", "\x{e9}\x{661}2 ", "+49 (0) 30/1-2, ", "1") {
    my $text = $unit x 99;
    is(sql($db, "SELECT crmapi.digits(\$t\$$text\$t\$)"),
        $text =~ s/[^0-9]//gr, "the digits of " . length($text)
        . " characters");
}
my $began = time;
sql($db, "SELECT crmapi.digits(repeat('x1', 40000)),
    crmapi.phone_plain(repeat(chr(233) || '1', 400000))");
cmp_ok(time - $began, "<", 4 * busy(), "a long text takes as much as it is longer");

# --- what the fuzzer found ------------------------------------------------------

my ($code, $out, $err) = run_program(
    command => ["$CrmTest::BUILD{DIR}/t/fuzz/fuzz_address",
        "$ENV{CRM_SRCDIR}/t/fuzz/corpus/address"],
    env => { CRM_FUZZ_DATABASE => postgres()->conninfo($db,
        $CrmTest::Postgres::API) });
is($code, 0, "the fuzz target agrees with the database, too")
    or diag($out, $err);

done_testing();
