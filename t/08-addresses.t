#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 08-addresses.t: which phone numbers are the same (contract 17.1): one table of
# cases for the functions in C and in SQL, and both on every code point and on
# generated texts
use strict;
use warnings;
use utf8;
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

# --- what the fuzzer found ------------------------------------------------------

my ($code, $out, $err) = run_program(
    command => ["$CrmTest::BUILD{DIR}/t/fuzz/fuzz_address",
        "$ENV{CRM_SRCDIR}/t/fuzz/corpus/address"],
    env => { CRM_FUZZ_DATABASE => postgres()->conninfo($db,
        $CrmTest::Postgres::API) });
is($code, 0, "the fuzz target agrees with the database, too")
    or diag($out, $err);

done_testing();
