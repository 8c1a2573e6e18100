# SPDX-License-Identifier: Apache-2.0
# 95-cost.t: what a hostile input costs each parser: the instructions for twice
# the input are at most 1.3 times twice as many (contract 18.7). The fuzz targets
# read inputs that are made of what opens, separates or nests something, once and
# four times as long, with $CRM_COST also twice; callgrind counts. $CRM_COST makes
# them that many times longer; CRM_COST_OF="mail json" counts only these.
# plain build only
# long
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);
use List::Util qw(max);
use MIME::Base64 qw(encode_base64);

my $LONGER = $ENV{CRM_COST} || 1;
my @TIMES = $ENV{CRM_COST} ? (1, 2, 4) : (1, 4);
my $MOST = 1.3;                 # times what the length is more
my $FLOOR = 200_000;            # instructions that are few whatever the input
my ($none) = run_program(command => ["valgrind", "--version"]);
plan(skip_all => "no valgrind: build/setup --tests installs it") if $none;
plan(skip_all => "plain builds only: others have more instructions")
    if sanitized() || valgrinded();

my $B = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
my $HTML = "Content-Type: text/html; charset=utf-8\r\n\r\n<p>Hello</p>";
sub base64 { return encode_base64($_[0], "") }
my $TNEF = "Content-Type: application/ms-tnef\r\nContent-Transfer-Encoding:"
    . " base64\r\n\r\n" . base64("\x78\x9f\x3e\x22\1\0");
my $FILE = "\2\2\x90\6\0\0\0\0\0\0\0";
# Parts of inputs, by the parser's fuzz target: what stands first, what stands
# last, bytes at least, then what is repeated between them. [A, B] is A n times,
# then B n times; a function makes the unit of a number.
my @PARSERS = (
    [mail => "headers", "From: a\@example.org\r\n", "\r\nHello\r\n", 2048,
        "X: y\r\n", "Received: from a by b; Mon, 1 Jan 2024 00:00:00 +0000\r\n",
        "To: a\@example.org\r\n", "Subject: x\r\n", " \r\n", "\tx\r\n", "x",
        "X-Y-Z: =?utf-8?q?=C3=A4?=\r\n", ":\r\n", "DKIM-Signature: v=1; a=b\r\n",
        "Authentication-Results: mx.example.org; dkim=pass header.d=a.b\r\n",
        "References: <a\@b>\r\n", "Content-Type: text/plain\r\n",
        "Content-Type: multipart/mixed; boundary=b\r\n", "From: x\r\n",
        "--b\r\n", "--c\r\n"],
    map({ my $name = $_; [mail => $name, "$name: ", "\r\n\r\nHello\r\n", 2048,
        "a\@b.c, ", "(", ["(", ")"], ["(\\(", ")"], "\"", "\"a\" ", "\\", "<",
        ["<", ">"], ",", ";", ";a=b", ":", "\@", "[", ".", "a ", "=?utf-8?q?",
        "=?utf-8?q?a?= ", "=?utf-8?b?w6Q=?=\r\n ", "=?", "?=", "\xc3\xa4",
        "\r\n ", "<a\@b> ", "a:b\@c;", "=?utf-8?q?=C3?= =?utf-8?q?=A4?= ",
        "a\@xn--p1ai, ", ["b\@xn--p1ai, ", "a\@\xc3\xa4.b, "]] }
        "From", "References", "Content-Type", "Authentication-Results",
        # read by the same functions
        $LONGER > 1 ? ("To", "Subject", "Received", "Content-Disposition") : ()),
    [mail => "text", "From: a\@b.c\r\n\r\n", "\r\n", 4096,
        "\r\n", "> ", ">\r\n", "> a\r\n", "On Monday, A wrote:\r\n", "-- \r\n",
        "-----Original Message-----\r\n", "From: a\r\n", " ", "a", "a ",
        "\t\r\n", "________________________________\r\n", "Am 1. schrieb A:\r\n",
        "\xc3", "\xe2\x80\xa8", "wrote:\r\n", "\r", "a\@b ", "http://a "],
    [mail => "the end of a text", "From: a\@b.c\r\n\r\nx", "", 4096,
        "\r\n", " \r\n", "\t", "\xc2\xa0\r\n", ">\r\n", "\xc2\xa0"],
    [mail => "flowed", "From: a\@b.c\r\nContent-Type: text/plain; format=flowed;"
        . " delsp=yes\r\n\r\n", "\r\n", 4096, "a \r\n", ">> a \r\n", " \r\n",
        "-- \r\n", ">"],
    [mail => "HTML", $HTML, "", 2048,
        "<a ", "<a href=x>", "<div>", ["<div>", "</div>"], "</div>", "<p>", "<!",
        "<!--", ["<!--", "-->"], "<![CDATA[", "<style>", "<script>", "&", "&amp;",
        "&copy ", "&ab ", "&ccaron;", "&#146;",
        "&#x", "&#0;", "<", ">", "<br>", "<td>", "<table>", "<table><tr><td>",
        "<b><i>", "<b></i>", "<font>", "<li>", "<blockquote>", "<a b=c ", "a=b ",
        "<x a=\"", "<svg><p>", "<form>", "<option>", "<select>", "<title>",
        "<textarea>", "<body a=b>", "<html c=d>", "<p style=\"display:none\">",
        "<p style=\"", "<span style='a:b;c:d'>x</span>", "\0", "\xc3\xa4 ",
        "<p hidden>a</p>", "<div class=gmail_quote>", "<hr>", "<img alt=x>"],
    [mail => "an element", "$HTML<p ", ">x</p>", 2048, "a=b ",
        "style=\"a:b\" ", "a ", "=", "\"", "'", "a='", "\n", "/"],
    [mail => "a style", "$HTML<p style=\"", "\">x</p>", 2048, "a:b;", ";", ":",
        "(;", "a:(b;", "';';'(;",
        "display:", "/*", "(", "\\", "'", "display:none;", "!important "],
    [mail => "a style sheet", "$HTML<style>", "</style><p class=a>x</p>", 2048,
        ".a{display:none}", "{", "}", ["{", "}"], "/*", ".a,", "\@media x{", ";",
        "\\", "\"", "a b>c+d ", "#a.b"],
    [mail => "parts", "MIME-Version: 1.0\r\n$B", "\r\n--b--\r\n", 512,
        "--b\r\n", "--b\r\n\r\na\r\n", "\r\n--b\r\n", "--", "--b", "-- \r\n",
        "--b\r\nContent-Type: text/html\r\n\r\n<p>\r\n",
        "--b\r\nContent-Type: message/rfc822\r\n\r\n",
        "--b\r\nContent-Disposition: attachment; filename=a\r\n\r\na\r\n",
        "$B", "Content-Type: message/rfc822\r\n\r\n",
        "--b\r\nContent-Type: text/plain\r\n\r\na\r\n"],
    [mail => "quoted-printable", "Content-Transfer-Encoding: quoted-printable"
        . "\r\n\r\n", "\r\n", 4096, "=", "=C3=A4", "=\r\n", "=3D", " \r\n"],
    [mail => "base64", "Content-Transfer-Encoding: base64\r\n\r\n", "\r\n",
        4096, "SGVs", "=", "\r\n", "-", "AA", "A=", "AA==", "A=\r\n", "A \r\n\r\n"],
    [mail => "ISO-2022-JP", "Content-Type: text/plain; charset=iso-2022-jp"
        . "\r\n\r\n", "\r\n", 2048, "\e\$B", "\e(B", "\e", "\e\$B\$\"\e(B"],
    [mail => "a calendar", "Content-Type: text/calendar\r\n\r\nBEGIN:VCALENDAR"
        . "\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\n", "END:VEVENT\r\n", 2048,
        "SUMMARY:a\r\n", "BEGIN:VALARM\r\n", ["BEGIN:A\r\n", "END:A\r\n"], "\r\n ",
        "ATTENDEE;PARTSTAT=A;CN=\"b\":c\r\n", "ATTENDEE;", "a;PARTSTAT=", "\"",
        "\\n", ":", "DTSTART;TZID=A:20261105T100000\r\n", "\r\n"],
    [mail => "winmail.dat", $TNEF, "", 2048, map { base64($_ x 3) } $FILE,
        "\2\x10\x80\1\0\1\0\0\0a\0\0", "\1\7\x90\6\0\4\0\0\0\xe4\4\0\0\0\0",
        "\2\5\x90\6\0\4\0\0\0\1\0\0\0\0\0", "\xff", "\0"],
    [mail => "its properties", $TNEF . base64("$FILE\2\5\x90\6\0\0\x28\0\0"
        . "\xff\xff\xff\x7f"), base64("\0" x 10242), 2048, map { base64($_ x 3) }
        "\3\0\1\x37\0\0\0\0", "\x1e\0\x07\x37\1\0\0\0\1\0\0\0a\0\0\0",
        "\x1e\x10\x07\x37\1\0\0\0\1\0\0\0a\0\0\0",
        "\3\0\1\x80" . "\0" x 28],
    [mail => "RTF", "Content-Type: application/rtf\r\n\r\n{\\rtf1\\ansicpg9999 ",
        "}", 4096, "\\'e4", "\xe4\\~", "{", ["{", "}"], "\\par ", "\\f1\xe4\\f2\xe4",
        "\\u228?", "\\u-10179 ", "\\", "\\bin1 ", "{\\*", "\\ansicpg949 \xe4"],
    [mail => "compressed RTF", $TNEF . base64("\1\3\x90\6\0\0\x28\0\0"
        . "\1\0\0\0\2\1\x09\x10\1\0\0\0\xec\x27\0\0\0\0\0\0\0\0\0\0LZFu\0\0\0\0\0"),
        base64("\0" x 10242), 2048, map { base64($_ x 3) } "\xff\0\x0f\0\x0f",
        "\xff" . "\x0c\x1f" x 8, "\0" . "\\'e4\\~ab"],
    [mail => "UTF-7", "Content-Type: text/plain; charset=utf-7\r\n\r\n", "\r\n",
        2048, "+", "+-", "+AOQ-", "+A"],
    [mail => "a report", "Content-Type: multipart/report; boundary=b;"
        . " report-type=delivery-status\r\n\r\n--b\r\n\r\nx\r\n--b\r\n"
        . "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; a"
        . "\r\n\r\n", "\r\n--b--\r\n", 2048, "Final-Recipient: rfc822; a\@b\r\n",
        "Status: 5.1.1\r\n", "Action: failed\r\n", "\r\n",
        "Final-Recipient: rfc822; a\@b\r\nAction: failed\r\n\r\n",
        "Diagnostic-Code: smtp; 550\r\n "],
    [json => "JSON", "", "", 2048, "[", ["[", "]"], "{\"a\":", ["{\"a\":", "}"],
        "{", "\"", "\\", "\"\\u00e4\",", "[],", "{},", "1", "1e", "-", " ", ",",
        "\"a\",", "\\u", "nul", "\xc3\xa4", "\xff"],
    [json => "a list", "[", "1]", 2048, "1,", "\"a\",", "[],", "{\"a\":1},",
        "1.5e3,", "\"\\u00e4\",", "null,", "\"\\ud83d\\ude00\",", "[[[1]]],"],
    [json => "a string", "\"", "\"", 2048, "a", "\\n", "\\u0041", "\xc3\xa4",
        "\\\\", "\\ud83d\\ude00"],
    [intake => "an event", "{\"event_id\":\"1\",\"channel\":\"sms\",\"message\":{"
        . "\"content\":\"", "\"}}", 2048, "a", "\\n", "\\u00e4", " ", "\xc3\xa4"],
    [intake => "a form", "", "", 2048, "a&", "&", "=", "a=b&", "%", "%41", "+",
        "s=a&", "n=1&", "d=2024-01-01&", "u=http://a&", "t=x&", "email=a\@b.c&",
        "phone=1&", "{\"a\":\"b\",", "[", "s%5B%5D=a&", ";"],
    [intake => "a multipart form", "--x\r\n", "--x--\r\n", 2048, "--x\r\n",
        "Content-Disposition: form-data; name=a\r\n\r\nb\r\n--x\r\n",
        "Content-Disposition: form-data; name=\"", "A: b\r\n", "\r\n a", "\r\n", "\r\n--x",
        "; a=b", "\"", "\\\"", "--", "\r\n\r\n", "-", "\r"],
    [token => "a form", "", "", 2048, "a=b&", "a=%0D%0A&", "%", "&", "=",
        "a=\r\n", "+", "--x\r\n", "A.", "."],
    [query => "a query", "", "", 2000, "a&", "&", "=", "a=b&", "%", "%41", "+",
        "tags=a,b&", "page=1&", "a%", "ids=,", "[]=", ";", "search=a+",
        "%C3%A4", ","],
    [query => "a value", "search=", "", 2000, "a", "+", "%20a", ",", "%2C",
        "\"", "a,", "0190a6f0-1c2d-7abc-8def-0123456789ab,", "-", "1", "%5C"],
    [path => "a path", "", "", 16384, "/", "/contacts", "a", "/..", "%2f", "//",
        "/contacts/0190a6f0-1c2d-7abc-8def-0123456789ab", "?", "?a=b&", "."],
    [cursor => "a cursor", "", "", 16384, "A", "\"a\", ", "W/\"a\",", "\"", ",",
        "*", "-", "\"a\"", " ", "_8"],
    [bearer => "headers", "", "", 16384, "Bearer ", "a", " ", "handling=strict, ",
        ",", ";", "=", "\"", "\\", "a;b=\"c\",", "handling=\"strict\";",
        "svc_live_"],
    [lmtp => "a session", "LHLO x\r\n", "QUIT\r\n", 2000, "NOOP\r\n", "\r\n",
        "RSET\r\n", "LHLO x\r\n", "x", "MAIL FROM:<a\@b>\r\n", "\r", "\0",
        "RCPT TO:<a\@b>\r\n", "VRFY a\r\n"],
    [lmtp => "recipients", "LHLO x\r\nMAIL FROM:<>\r\n", "DATA\r\nA: b\r\n\r\n"
        . ".\r\nQUIT\r\n", 2000, "RCPT TO:<a\@b.c>\r\n", "RCPT TO:<\r\n",
        "RCPT TO:<\"a\"\@b> X=Y\r\n"],
    [lmtp => "a mail", "LHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a\@b>\r\nDATA\r\n",
        "\r\n.\r\nQUIT\r\n", 4096, ".\r\n", "..\r\n", "\r\n", "a", ".", "\r",
        "\n", "A: b\r\n", "\r\n."],
    [address => "a phone number", "", "", 2000, "1", "+", "(", ["(", ")"], " ",
        "tel:", "+49 ", "00", "-", "\xef\xbc\x91", "\xd9\xa1", "x1", "ext. 1",
        "\xe2\x80\xad", "/", "a"],
    [merge => "a template", "", "", 2048, "{{", "}}", ["{{", "}}"],
        "{{contact.first_name}}", "{{ ", "{", "{{a", "{{#", "{{contact.",
        "{{contact.first_name|", "\\", "\n", "<", "{{{", "a ", "\xc3\xa4",
        "http://a ", "{{contact.custom_fields."],
    [pacing => "a plan", "{\"steps\":[", "{}]}", 4096, "{},",
        "{\"channel\":\"email\",\"body\":\"a\"},", "[],", "{\"delay\":\"1d\"},",
        "null,", "{\"delay\":{\"days\":1}},"],
    [pacing => "a pacing", "{\"pacing\":{\"windows\":[", "{}]}}", 4096, "{},",
        "{\"days\":[\"mon\"],\"from\":\"09:00\",\"to\":\"10:00\"},", "[[],",
        "\"mon\","],
    [pacing => "a delay", "\"", "\"", 2000, "1d", "P1D", "1", " ", "1h1m"],
    [import => "lines", "", "", 2048, "\n", "\r\n", " ", "{}\n", "[]\n", "a\n", "{",
        "{\"object\":\"contact\"}\n", "{\"object\":\"form\",\"name\":\"F\"}\n",
        "{\"object\":\"contact\",\"first_name\":\"a\\tb\"}\n", "\0", "\xff"],
    (map { my ($field, $last, @units) = @$_;
        [import => "a field", "{\"object\":\"$field", "$last}\n", 2048, @units] }
        ["contact\",\"first_name\":\"", "\"", "a", "\\n", "\\\\", "\\t", "\xc3\xa4"],
        ["contact\",\"emails\":[", "\"a\@b.example\"]", "\"a\@b.example\",",
            sub { "\"a$_[0]\@b.example\"," }, "{\"email\":\"a\@b.example\"},"],
        ["contact\",\"phone_numbers\":[", "\"1\"]", "\"+4930123456\",",
            sub { sprintf "\"+4930%07d\",", $_[0] }],
        ["contact\",\"tags\":[", "\"a\"]", "\"a\",", sub { "\"t$_[0]\"," }],
        ["contact\",\"custom_fields\":{", "\"a\":1}", sub { "\"a$_[0]\":1," },
            ["\"a\":{", "},"], sub { "\"\\u00e4$_[0]\":[1]," }],
        ["contact\",", "\"first_name\":\"a\"", sub { "\"a$_[0]\":1," }],
        ["sequence_template\",\"name\":\"T\",\"steps\":[", "{}]", "{},",
            "{\"channel\":\"email\",\"email_subject\":\"S\",\"email_body\":\"B\"},"],
        ["form\",\"name\":\"F\",\"fields\":[", "{}]", "{},",
            sub { "{\"name\":\"f$_[0]\",\"type\":\"text\",\"label\":\"L\"}," },
            sub { "{\"id\":\"f$_[0]\",\"type\":\"text\",\"label\":\"L\"}," }]),
    [apply => "a document", "", "", 4096, "[", "{\"agent\":", "\n", " ", "{}\n",
        "{\"object\":\"agent\",\"name\":\"A\"}\n", "\"", "a", "\xef\xbb\xbf", "\0"],
    [apply => "an array", "{\"agent\":[", "{\"name\":\"A\"}]}", 2048, "{},",
        "{\"name\":\"A\"},", "{\"name\":\"\${NAME}\"},", "[],", "1,",
        sub { "{\"name\":\"A$_[0]\",\"slug\":\"\${A}$_[0]\"}," }],
    [apply => "members", "{\"agent\":{", "\"name\":\"A\"}}", 2048,
        sub { "\"a$_[0]\":1," }, sub { "\"a$_[0]\":\"\${NAME}\"," },
        sub { "\"a$_[0]\":[\"\${A}\"]," }, "\"a\":1,", ["\"a\":{", "},"]],
    [apply => "a long name above much", "{\"agent\":{\"", "\"\${A}\"]}}", 2048,
        ["a", "\":[", "1,"], ["/", "\":[", "\"\${NAME}\","]],
    [apply => "a text", "{\"agent\":{\"name\":\"", "\"}}", 2048, "\${A}",
        "\${NAME}", "\$", "\${", "\$\${", "{", "a", "\\u0024{A}", "\xc3\xa4"],
    [setting => "lines", "", "", 2048, "\n", "#\n", "a=b\n", "=\n", "threads=1\n",
        " ", "=", "a", "\r", "\0", "name=a\n", "threads = 1 \n\n"],
    [setting => "a value", "name = ", "\n", 2048, "a", " ", "\xc3\xa4", "="],
    [setting => "a duration", "poll = ", "\n", 2048, "1", "1ms", "d"],
    [setting => "a URL", "public_url = https://", "\n", 2048, "a", "a.", "/", ":",
        "\@", "%41", "?"],
    [redis => "replies", "+OK\r\n+OK\r\n", "", 2048, "*1\r\n", "*7\r\n:1\r\n",
        ":1\r\n", "\$1\r\na\r\n", "\$-1\r\n", "\$0\r\n\r\n", "*0\r\n", "*-1\r\n",
        "+", "-", "a", "1", "\r\n", "\r", "\n", "\0", "-NOSCRIPT\r\n", "+OK\r\n",
        "*385\r\n"],
    [redis => "an answer", "+OK\r\n+OK\r\n*385\r\n", "", 2048, ":1\r\n", "*9\r\n",
        "\$1\r\na\r\n", "+\r\n", "-a\r\n", "*385\r\n"],
    [redis => "a text", "+OK\r\n+OK\r\n\$16000\r\n", "", 2048, "a", "\r\n", "\r"],
    [time => "a time", "", "", 16384, "2024-01-01T00:00:00Z", "1", "0", "-", ":",
        ".", "+", " ", "T"],
);

# The input of about SIZE bytes.
sub make_input {
    my ($first, $last, $unit, $size) = @_;
    return $first . join("", map { $unit->($_) }
        0 .. int($size / length $unit->(999))) . $last if ref $unit eq "CODE";
    my @units = ref $unit ? @$unit : $unit;
    my $times = int($size / length join "", @units) || 1;

    return $first . join("", map { $_ x $times } @units) . $last;
}

# Inputs of about SIZE bytes that are a random mix of UNITS: the same begins
# each.
sub mix_input {
    my ($first, $last, $units, $size, $seed) = @_;
    my $text = "";

    srand $seed;
    my @flat = map { ref $_ eq "ARRAY" ? @$_ : ref $_ ? $_->(0) : $_ } @$units;
    $text .= $flat[rand @flat] while length $text < $size;
    return $first . $text . $last;
}

my $dir = tempdir("crm-cost-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my %runs;                       # fuzz target => inputs, in their order
my $n = 0;

sub add_run {
    my ($target, $name, $size, $make) = @_;
    my %run = (name => $name, files => []);

    for my $times (@TIMES) {
        my $file = "$dir/" . ++$n;
        my $text = $make->($size * $times * $LONGER);
        write_file($file, $text);
        push @{$run{files}}, $file;
        push @{$run{sizes}}, length $text;
    }
    push @{$runs{$target}}, \%run;
}

sub shown {
    my ($unit) = @_;
    return join(" ... ", ref $unit eq "ARRAY" ? @$unit
        : ref $unit ? ($unit->(0), $unit->(1)) : $unit)
        =~ s/([^ -~])/sprintf "\\x%02x", ord $1/ger;
}

my %wanted = map { $_ => 1 } split / /, $ENV{CRM_COST_OF} // "";
for my $parser (@PARSERS) {
    my ($target, $what, $first, $last, $size, @units) = @$parser;
    next if %wanted && !$wanted{$target};
    add_run($target, "$what: " . shown($_), $size, do { my $unit = $_;
        sub { make_input($first, $last, $unit, $_[0]) } }) for @units;
    add_run($target, "$what: a mix", $size, sub {
        mix_input($first, $last, \@units, $_[0], 20261126) });
}

# Instructions that each of FILES costs TARGET: name => number.
sub count {
    my ($target, @files) = @_;
    my $out = "$dir/callgrind.$target";
    my ($code, $told, $err) = run_program(seconds => 7200, command =>
        ["valgrind", "--tool=callgrind", "--combine-dumps=yes",
        "--callgrind-out-file=$out", "--compress-strings=yes",
        "$CrmTest::BUILD{DIR}/t/fuzz/fuzz_$target", "--cost", @files]);
    die "CrmTest: $target: $err\n" if $code;
    my (%cost, $file);
    for (split /\n/, read_file($out)) {
        $file = $1 if /^desc: Trigger: Client Request: (.*)/;
        if (/^(?:summary|totals): (\d+)/ && defined $file) {
            $cost{$file} //= $1;
        }
    }
    return \%cost;
}

for my $target (sort keys %runs) {
    subtest $target => sub {
        my $cost = count($target, map { @{$_->{files}} } @{$runs{$target}});
        my ($all, $worst) = (0, 0);
        for my $run (@{$runs{$target}}) {
            my @cost = map { $cost->{$_} } @{$run->{files}};
            $all += $_ // 0 for @cost;
            my $told = "$run->{name}: " . join(", ", map {
                "$run->{sizes}[$_] bytes " . ($cost[$_] // "none") } 0 .. $#TIMES);
            ok(!(grep { !defined } @cost), "$told") or next;
            for my $i (1 .. $#TIMES) {
                next if $cost[$i] < $FLOOR;
                # a quote more or less makes another input of it
                my $grown = $cost[$i] / max(@cost[0 .. $i - 1])
                    / ($TIMES[$i] / $TIMES[$i - 1]);
                $worst = $grown if $grown > $worst;
                cmp_ok($grown, "<=", $MOST, $told);
            }
        }
        note(sprintf "%s: %d inputs, %.0f million instructions, %.2f times as many"
            . " as the length at most", $target,
            scalar @{$runs{$target}}, $all / 1e6, $worst);
    };
}

done_testing;
