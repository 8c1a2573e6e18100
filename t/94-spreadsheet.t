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
sub load {
    my ($w, $text) = @_;
    write_file($file, $text);
    my ($code, $out, $err) = run_program(seconds => 60,
        command => ["python3", $script, "http://127.0.0.1:" . $httpd->port,
            $w->agent, $file],
        env => { CRMAPI_KEY => $w->key, no_proxy => "*" });
    is($err, "", "no warning");
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
    is_deeply([load($w, <<'END')], [0, "2 created, 0 updated, 0 refused\n"], "said");
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
    is_deeply([load($w, <<'END')], [0, "1 created, 1 updated, 0 refused\n"],
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
        ["empty rows", encode("UTF-8", "$line\r\n\r\n")]) {
        my $w = workspace($httpd, twin => 0);
        is_deeply([load($w, $_->[1])], [0, "1 created, 0 updated, 0 refused\n"],
            $_->[0]);
        is_deeply([keys %{contacts($w)}], ["Zo\x{eb}"], "its letters");
    }
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
        '7: deal_value must be', '8: has more cells';
    like($out, qr/^1 created, 0 updated, 5 refused$/m, "counted");
};

subtest "more rows than a request takes, and a key's budget" => sub {
    my $w = workspace($httpd, twin => 0);
    is_deeply([load($w, join "\n", "email,first_name",
        map { "p$_\@x.example,P$_" } 1 .. 401)],
        [0, "401 created, 0 updated, 0 refused\n"], "all are loaded");
    is($w->client->get("/api/v1/contacts?page_size=1")->json->{pagination}{total}, 401,
        "and there once");
    my ($code, $out) = run_program(seconds => 20, command => ["python3", $script,
        "http://127.0.0.1:" . $httpd->port, $w->agent, $file],
        env => { CRMAPI_KEY => $w->key =~ s/.$/_/r, no_proxy => "*" });
    isnt($code, 0, "a key that is none ends it");
};

done_testing;
