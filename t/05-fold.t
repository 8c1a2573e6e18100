#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 05-fold.t: the module compares texts without case exactly as the database does
# (contract 7.8): crm_text_fold() and crmapi.fold() on every code point and on
# words
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $db = database();

# What the database makes of the texts of SET, a query of (text, number), as
# lines in the order of the numbers.
sub database_folds {
    my ($set) = @_;
    my $hex = sql($db, "SELECT encode(convert_to(string_agg(crmapi.fold(s.t),"
        . " E'\\n' ORDER BY s.n), 'UTF8'), 'hex') FROM ($set) s (t, n)");
    return split /\n/, pack("H*", $hex), -1;
}

# What the module makes of LINES.
sub module_folds {
    my @lines = map { utf8::encode(my $line = $_); $line } @_;
    my ($code, $out, $err) = run_program(
        command => ["$CrmTest::BUILD{DIR}/t/unit/text_lines", "fold"],
        stdin => join("", map { "$_\n" } @lines));
    die "CrmTest: text_lines: $err\n" if $code;
    return split /\n/, $out;
}

# Where the two differ: "text: database, module", up to five.
sub differences {
    my ($texts, $set) = @_;
    my @database = database_folds($set);
    my @module = module_folds(@$texts);
    is(scalar @module, scalar @$texts, "the module folds all");
    is(scalar @database, scalar @$texts, "and so does the database");
    my @different = grep { $database[$_] ne $module[$_] } 0 .. $#$texts;
    return map { sprintf("%s: %s, %s", join(" ",
        map { sprintf "U+%04X", ord } split //, $texts->[$_]),
        unpack("H*", $database[$_]), unpack("H*", $module[$_])) }
        grep { defined } @different[0 .. 4];
}

my $points = "FROM generate_series(1, 1114111) c WHERE c <> 10"
    . " AND c NOT BETWEEN 55296 AND 57343";
my @points = grep { $_ != 10 && ($_ < 0xd800 || $_ > 0xdfff) } 1 .. 0x10ffff;

is_deeply([differences([map { chr } @points], "SELECT chr(c), c $points")], [],
    "every code point");

# Whether a sigma is final depends on what is around it.
my @some = grep { $_ < 0x3000 } @points;
is_deeply([differences([map { "ΑΣ" . chr } @some],
    "SELECT 'ΑΣ' || chr(c), c $points AND c < 12288")], [],
    "each of the first after a sigma");

my @words = ("", "ΟΔΥΣΣΕΥΣ", "Σ", "ΣΣ", "ΑΣ ΒΣ", "ας", "ΑΣ.Β", "Α.Σ", "ΑΣ\x{301}",
    "Straße", "STRASSE", "ẞ", "İstanbul", "ISTANBUL", "ıI", "I\x{307}",
    "Ǆungla", "ǅ", "Åse", "A\x{30a}se", "ŁÓDŹ", "ЖУК", "ՀԱՅ", "ᲐᲑ", "ႠႡ", "Ꭰ",
    "ﬀ", "Ⅷ", "Ⓐ", "Ａｂ", "𐐀𐐨", "\x{1f88}", "ADA\@EXAMPLE.ORG", "日本", "\x{212a}",
    "Ⱥ" x 200);
is_deeply([differences(\@words, join(" UNION ALL ", map {
    "SELECT '$words[$_]', $_" } 0 .. $#words))], [], "words");

done_testing();
