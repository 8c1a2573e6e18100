# SPDX-License-Identifier: Apache-2.0
# 94-spreadsheet.t: the program of docs/api.md that loads a CSV file
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use Encode qw(encode);

my $httpd = httpd(database => database());
my ($program) = documented("api.md", "python", "## How to load a spreadsheet");
my ($script, $file) = map { $httpd->dir . "/$_" } qw(load.py rows.csv);
write_file($script, $program);

# Load the TEXT, the bytes of a file, into W. Return the exit code and what is said.
# WARNS is what goes to standard error (nothing).
sub load {
    my ($w, $text, $warns) = @_;
    write_file($file, $text);
    my ($code, $out, $err) = run_program(seconds => 60,
        command => ["python3", $script, "http://127.0.0.1:" . $httpd->port,
            $w->agent, $file],
        env => { CRMAPI_KEY => $w->key, no_proxy => "*" });
    like($err, $warns // qr/^\z/, "no other warning");
    return ($code, $out);
}

# The contacts of W by first name, of each the FIELDS.
sub contacts {
    my ($w, @fields) = @_;
    return { map { my $row = $_; $row->{first_name} => [@$row{@fields}] }
        @{$w->client->get("/api/v1/contacts?page_size=100")->data} };
}

sub emails { [map { { email => $_, is_primary => $_ eq $_[0] ? JSON::PP::true
    : JSON::PP::false } } @_] }

subtest "cells become fields, lists and custom fields" => sub {
    my $w = workspace($httpd, twin => 0);
    is_deeply([load($w, <<'END')], [0, "custom fields: Shoe size\n2 created, 0 updated, 0 refused\n"], "said, and what is no field");
First name,Last_Name,Email,Tags,Deal value,Shoe size,Notes
Grace,Hopper,grace@x.example;g@y.example,vip; sea,1250.50,38,"two
lines, and a ""quote"""
Ada,,ada@x.example,,,,
END
    is_deeply(contacts($w, qw(last_name emails tags deal_value custom_fields notes)),
        { Grace => ["Hopper", emails('grace@x.example', 'g@y.example'),
            ["vip", "sea"], 1250.5, { "Shoe size" => "38" },
            "two\nlines, and a \"quote\""],
        Ada => [undef, emails('ada@x.example'), [], undef, {}, undef] }, "stored");
    is_deeply([load($w, <<'END')], [0, "custom fields: shoe size\n1 created, 1 updated, 0 refused\n"],
first_name,email,tags,shoe size,last_name
Grace,GRACE@x.example,new,,
Ida,ida@x.example,,41,
END
        "a newer file");
    is_deeply(contacts($w, qw(last_name tags custom_fields))->{Grace},
        ["Hopper", ["vip", "sea", "new"], { "Shoe size" => "38" }],
        "adds tags, and leaves what its cells are empty of");
};

subtest "what spreadsheets write" => sub {
    my $line = "First name;Phone;Notes\r\nZo\x{eb};+49 30 123456;a, b\r\n";
    for (["UTF-8 with a mark", encode("UTF-8", "\x{feff}$line")],
        ["UTF-16", encode("UTF-16", $line)],
        ["Windows", encode("cp1252", $line)],
        ["tabs", encode("UTF-8", $line =~ tr/;/\t/r)],
        ["a bar", encode("UTF-8", $line =~ tr/;/|/r)],
        ["empty rows", encode("UTF-8", "$line\r\n\r\n")],
        ["rows of empty cells", encode("UTF-8", ";;\r\n$line;;\r\n ; ;;;\r\n")],
        ["empty cells behind a row", encode("UTF-8", $line =~ s/(?=\r)/;;/gr)],
        ["a column without a name", encode("UTF-8", $line =~ s/\bN/;N/r =~ s/6;/6;;/r)],
        ["the delimiter in quotes", encode("UTF-8", "sep=,\n"
            . $line =~ tr/;/,/r =~ s/a, b/"a; b"/r)],
        ["another one in a title", encode("UTF-8", $line =~ s/\b(?=N)/"a,b,c,d";/r
            =~ s/6;/6;;/r)],
        ["Excel's line", encode("UTF-8", "sep=;\r\n$line")],
        ["a number as text", encode("UTF-8", $line =~ s/\+.*6/"=""$&"""/r)],
        ["a number with an apostrophe", encode("UTF-8", $line =~ s/(?=\+)/'/r)],
        ["blanks around", encode("UTF-8", $line =~ s/;/ ; /gr)],
        ["other titles", encode("UTF-8", $line =~ s/.*?;/FirstName;Mobile /r)]) {
        my $w = workspace($httpd, twin => 0);
        my ($code, $out) = load($w, $_->[1]);
        is_deeply([$code, $out =~ s/^custom fields: a,b,c,d\n//r],
            [0, "1 created, 0 updated, 0 refused\n"], $_->[0]);
        my $row = contacts($w, "phone_numbers")->{"Zo\x{eb}"} || [[{}]];
        is($row->[0][0]{phone_number}, "+49 30 123456", "its letters and number");
    }
};

subtest "several in a cell, as people and other programs write them" => sub {
    my $w = workspace($httpd, twin => 0);
    is_deeply([load($w, <<'END')], [0, "4 created, 0 updated, 0 refused\n"], "loaded");
"First name", "Email", "Phone", "Tags"
Ada,"Ada King <a@x.example>, b@x.example/c@x.example","+49 30 1/+49 30 123456, +1 555 0100",vip
"Bob", "King, Bob <d@x.example>; <e@x.example>", "030/901820", """a"", ""b, c"""
Cleo,"Cleo <f@x.example>, Cleo King <g@x.example>","030 1, 030 2","Smith, John;d/e"
Dora,"h@x.example,i@x.example",030/90 18 20,d
END
    my $got = contacts($w, qw(emails phone_numbers tags));
    my $numbers = sub { [map { $_->{phone_number} } @{$got->{$_[0]}[1]}] };
    my %emails = (Ada => [qw(a b c)], Bob => [qw(d e)], Cleo => [qw(f g)],
        Dora => [qw(h i)]);
    is_deeply($got->{$_}[0], emails(map { "$_\@x.example" } @{$emails{$_}}),
        "addresses: $_") for sort keys %emails;
    is_deeply($numbers->("Ada"), ["+49 30 1", "+49 30 123456", "+1 555 0100"], "numbers");
    is_deeply($numbers->("Cleo"), ["030 1, 030 2"], "which are not guessed");
    is_deeply([map { $got->{$_}[2] } sort keys %$got],
        [["vip"], ["a", "b, c"], ["Smith, John", "d/e"], ["d"]], "tags");
};

subtest "what is refused has its line, and the rest is loaded" => sub {
    my $w = workspace($httpd, twin => 0);
    my ($code, $out) = load($w, <<'END');
first_name,email,contact_type,deal_value
Ada,ada@x.example,lead,1
Bob,bob,lead,1
Cleo,,lead,1
Dora,dora@x.example,lead,"1.000,00"
"Eve
Li",eve@x.example,lead,-
Finn,finn@x.example,lead,1,2
END
    is($code, 1, "the exit code says so");
    like($out, qr/^line $_/m, $_) for '3: emails\[0\]\S* must be',
        '4: needs an external_id, email or phone', '5: deal_value must be',
        '7: deal_value must be', '8: has a cell in a column without a name';
    like($out, qr/^1 created, 0 updated, 5 refused$/m, "counted");
};

subtest "several columns of addresses; what no spreadsheet can have meant" => sub {
    my $w = workspace($httpd, twin => 0);
    is_deeply([load($w, <<'END')], [0, "custom fields: E-mail 1 - Type, Email opt-in\n1 created, 0 updated, 0 refused\n"], "said");
Person - First name,E-mail 1 Address,Person - Email - Home,Additional email addresses,WorkEmail,Phone 1,MobilePhone,Tel. (home),E-mail 1 - Type,Email opt-in,Deal value,LinkedIn URL
Ada,a@x.example,b@x.example ::: c@x.example,d@x.example,,+493012345,+4915112345,+4930777,work,yes,-12345678901.25,https://l.example/a
END
    is_deeply(contacts($w, qw(emails custom_fields deal_value linkedin_url))->{Ada},
        [emails(map { "$_\@x.example" } "a" .. "d"), { "E-mail 1 - Type" => "work",
        "Email opt-in" => "yes" }, -12345678901.25, "https://l.example/a"],
        "all are there");
    is(@{contacts($w, "phone_numbers")->{Ada}[0]}, 3, "the numbers, too");
    my ($code, $out) = load($w, "first_name,First name,email\nA,B,c\@x.example\n",
        qr/^two columns are first_name$/);
    isnt($code, 0, "two columns for one field are refused");
    ($code, $out) = load($w, <<'END');
first_name,email,phone,deal_value,notes
Bob,bob@x.example,4.93012E+11,1,
Cleo,cleo@x.example,4930123456.0,1,
Dora,dora@x.example,,99999999999999.99,
"Eve" Li,eve@x.example,,1,
Finn,finn@x.example,,1,ok
Gil,gil@x.example,,1,"never
closed
END
    like($out, qr/^line $_/m, $_) for '2: has a phone number', '3: has a phone number',
        '4: deal_value must be', '5: .*expected after', '8: unexpected end';
    like($out, qr/^1 created, 0 updated, 5 refused$/m, "counted");
};

subtest "more rows than a request takes, and a key's budget" => sub {
    my $w = workspace($httpd, twin => 0);
    is_deeply([load($w, join "\n", "email,first_name",
        map { "p$_\@x.example,P$_" } 1 .. 401)],
        [0, "401 created, 0 updated, 0 refused\n"], "all are loaded");
    is($w->client->get("/api/v1/contacts?page_size=1")->json->{pagination}{total}, 401,
        "and there once");
    is_deeply([load($w, join "\n", "email,notes", map { "n$_\@x.example," . "x" x 65536 }
        1 .. 40)], [0, "40 created, 0 updated, 0 refused\n"], "nor more bytes");
    is_deeply([(load($w, "email,notes\nm\@x.example,\nn\@x.example," . "x" x 140000))[1]
        =~ /(line.*|\d+ created)/g], ["line 3: notes must have at most 65536 characters",
        "1 created"], "a cell that is too long");
    my ($code, $out) = run_program(seconds => 20, command => ["python3", $script,
        "http://127.0.0.1:" . $httpd->port, $w->agent, $file],
        env => { CRMAPI_KEY => $w->key =~ s/.$/_/r, no_proxy => "*" });
    isnt($code, 0, "a key that is none ends it");
};

done_testing;
