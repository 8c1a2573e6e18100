#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 01-sources.t: rules for the sources
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $top = $CrmTest::TOP;
chdir $top or die "$top: $!\n";

my $said = `$^X build/sources --check 2>&1`;
is($? >> 8, 0, "Makefile.am lists every file, and no other") or diag($said);

my @files = split /\n/, `$^X build/sources --list`;
cmp_ok(scalar @files, ">", 30, "there are files to look at");

sub first_lines {
    my ($file, $n) = @_;
    open(my $in, "<", $file) or die "$file: $!\n";
    my @lines;
    while (@lines < $n && defined(my $line = <$in>)) {
        next if !@lines && $line =~ /^#!/;
        push @lines, $line;
    }
    return @lines;
}

subtest "every source begins with its licence, its name and its purpose" => sub {
    for my $file (grep { /\.(?:c|h|pm|t|sql|m4|ac|am)$/
            || m{^build/[a-z]+(?:\.sh)?$} || m{^t/(?:run|lib/exec)$} } @files) {
        my ($first, $second) = first_lines($file, 2);
        my $name = $file =~ s{.*/}{}r;
        like($first // "", qr/SPDX-License-Identifier: Apache-2\.0/,
            "$file: licence");
        like($second // "", qr{^\W*(?:\w+/)*\Q$name\E: \S},
            "$file: name and purpose");
    }
};

subtest "only module/ knows httpd" => sub {
    my @others = grep { m{^mod_crmapi/(?!module/)\w+/.*\.[ch]$} } @files;
    cmp_ok(scalar @others, ">", 100, "there are files beside it");
    for my $file (@others) {
        my $text = read_file($file);
        unlike($text,
            qr/#\s*include\s*[<"](?:httpd|http_\w+|ap_\w+|mod_\w+|util_\w+)\.h/,
            "$file includes nothing of httpd's");
    }
    my @libraries = glob "$CrmTest::BUILD{DIR}/libcrm_*.a";
    my @wanted = grep { / U / } `nm @libraries`;
    ok((grep { / U apr_/ } @wanted), "the libraries use symbols of APR");
    is(join("", grep { / U ap_/ } @wanted), "", "and none of httpd's");
};

# Return the names of the functions that the header FILE declares.
sub declared {
    my $text = read_file($_[0]);
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s/^[ \t]*#(?:.*\\\n)*.*$//mg;
    1 while $text =~ s/\{[^{}]*\}/;/g;
    return map { /^\s*(?!typedef|static)\w[\w\s*]*?\b(\w+)\s*\(/ ? $1 : () }
        split /;/, $text;
}

subtest "a function is declared in the header of its source" => sub {
    my %source;
    my @objects = split /\n/, `find $CrmTest::BUILD{DIR}/mod_crmapi -name '*.o'`;
    for (`nm -A --defined-only @objects`) {
        my ($folder, $name, $symbol) =
            m{(mod_crmapi/[\w/]+?)/\w+-(\w+)\.o:\w+ T (\w+)$} or next;
        $source{$symbol} = "$folder/$name.c";
    }
    cmp_ok(scalar keys %source, ">", 500, "there are functions");
    # What the sources of one part share, and nobody else includes.
    my $shared = qr{/(?:crm_db_private|crm_batch_private|crm_limit_block
        |crm_operations)\.h$}x;
    my %by_header = map { $_ => [declared($_)] }
        grep { m{^mod_crmapi/.*\.h$} && $_ !~ $shared } @files;
    cmp_ok(scalar(map { @$_ } values %by_header), ">", 300,
        "the headers declare functions");
    for my $header (sort keys %by_header) {
        my $own = $header =~ s/h$/c/r;
        my @others = grep { ($source{$_} // "") ne $own } @{ $by_header{$header} };
        is("@others", "", "$header declares functions of $own only");
    }
};

# The system's clock may be set. What these take from it is stored, shown, signed, or
# goes with what others have stored.
subtest "what waits or is measured goes by a clock that is never set" => sub {
    my %may = map { $_ => 1 } map { "mod_crmapi/$_.c" } qw(
        ctl/crmapictl_key ctl/crmapictl_webhook database/crm_db_conn
        intake/intake_chat module/mod_crmapi_request
        pages/crm_pages shared/crm_store worker/crmapid_log
        worker/jobs/crmapid_journal worker/relays/crmapid_curl
        worker/sequences/crmapid_link worker/webhooks/crmapid_webhook);
    my $clock = qr/\b(?:apr_time_now|apr_thread_cond_timedwait)\b/;
    my @ask = grep { m{^mod_crmapi/.*\.c$} && read_file($_) =~ $clock } @files;
    is_deeply([sort @ask], [sort keys %may], "the others use"
        . " crm_time_monotonic() and crm_cond_wait()");
};

# Whoever links a table of a resource must not link what serves it.
subtest "crmapid and crmapictl have nothing of the engine" => sub {
    my %engine;
    for my $folder (qw(shared serve rest crm)) {
        my @symbols = `nm --defined-only $CrmTest::BUILD{DIR}/libcrm_$folder.a`
            =~ /^[0-9a-f]+ [TDRB] (\w+)$/mg;
        cmp_ok(scalar @symbols, ">", 5, "$folder/ has symbols");
        $engine{$_} = "$folder/" for @symbols;
    }
    for my $program (qw(crmapid crmapictl)) {
        my @has = `nm --defined-only $CrmTest::BUILD{DIR}/$program`
            =~ /^[0-9a-f]+ \w (\w+)$/mg;
        ok((grep { $_ eq "crm_resource_contact" } @has),
            "$program has the table of contacts");
        is(join(" ", map { "$engine{$_}$_" } grep { $engine{$_} } @has), "",
            "$program has nothing of the engine");
    }
};

subtest "mod_crmapi/README has all folders" => sub {
    my ($table) = read_file("mod_crmapi/README")
        =~ /^    folder +uses$(.*?)^$/ms;
    my @rows = ($table // "") =~ m{^    (\w+)/ }mg;
    my %is = map { m{^mod_crmapi/(\w+)/.*\.[ch]$} ? ($1 => 1) : () } @files;
    is("@{[sort @rows]}", "@{[sort keys %is]}", "its table");
};

subtest "t/README has the variables of the environment that tests ask for" => sub {
    # those that tests and their runner tell each other
    my %own = map { ("CRM_$_" => 1) } qw(BUILD_ CALLGRIND METRICS_MANY SRCDIR
        TEST_DATABASE TEST_RECORDS TEST_WHOLE);
    my %asked = map { $_ => 1 } grep { !$own{$_} }
        map { read_file($_) =~ /\$ENV\{"?(CRM_[A-Z_]+)/g }
        grep { m{^t/(?:[^/]+\.t|run|lib/.*)$} } @files;
    my %told = map { $_ => 1 } read_file("t/README") =~ /^    (CRM_[A-Z_]+)=/mg;
    is_deeply([sort keys %told], [sort keys %asked], "its list");
};

subtest "the module exports one symbol" => sub {
    my @symbols = map { (split)[2] } grep { / [TDBR] / }
        `nm -D --defined-only $CrmTest::BUILD{MODULE}`;
    is_deeply(\@symbols, ["crmapi_module"], "its module record");
};

subtest "what the linker was asked for" => sub {
    plan skip_all => "plain builds only: sanitizers replace it" if sanitized();
    for my $file ($CrmTest::BUILD{MODULE}, $CrmTest::BUILD{CTL}) {
        my $said = `readelf -W -l -d -h $file`;
        like($said, qr/GNU_RELRO/, "$file: relro");
        like($said, qr/BIND_NOW|NOW/, "$file: bound at start");
    }
    like(`readelf -h $CrmTest::BUILD{CTL}`, qr/Type:\s+DYN/,
        "crmapictl is position independent");
};

subtest "what the compiler was asked for" => sub {
    plan skip_all => "plain builds only: sanitizers replace it" if sanitized();
    my %makefile = read_file("$CrmTest::BUILD{DIR}/Makefile")
        =~ /^(CC|HARDEN_CFLAGS) = (.*)$/mg;
    for my $flag (qw(-fstack-protector-strong -fstack-clash-protection
            -fcf-protection)) {
        my ($code) = run_program(command => [split(/ /, $makefile{CC}),
            "-Werror", $flag, "-x", "c", "-fsyntax-only", "-"],
            stdin => "int x;\n");
        is($makefile{HARDEN_CFLAGS} =~ /\Q$flag\E/ ? 1 : 0, $code ? 0 : 1,
            "$flag: as the compiler has it");
    }
    my ($object) = glob "$CrmTest::BUILD{DIR}/mod_crmapi/base/*crm_json.o";
    my $notes = `readelf -n $object`;
    SKIP: {
        skip "not a processor with CET", 1
            if $makefile{HARDEN_CFLAGS} !~ /-fcf-protection/;
        like($notes, qr/x86 feature: IBT, SHSTK/, "objects have what CET needs");
        my @programs = ($CrmTest::BUILD{MODULE}, $CrmTest::BUILD{CTL},
            $CrmTest::BUILD{WORKER});
        like(`objdump -d --no-show-raw-insn $_ | head -4000`, qr/\bendbr64\b/,
            "$_: calls land on endbr64") for grep { -e } @programs;
    }
};

subtest "text files are clean" => sub {
    for my $file (grep { !m{^t/(?:fuzz/corpus|unit/json|mail)/} } @files) {
        my $text = read_file($file);
        utf8::decode($text);
        my @wrong = (
            $text =~ /\r/ ? "carriage returns" : (),
            $text =~ /[ \t]$/m ? "blanks at line ends" : (),
            length $text && $text !~ /\n\z/ ? "no end of line at its end" : (),
            $file =~ /\.[ch]$/ && $text =~ /\t/ ? "tabs" : (),
            $file =~ m{^mod_crmapi/.*\.[ch]$} && $text =~ /^.{89}/m
                ? "lines of more than 88 columns" : ());
        is("@wrong", "", $file);
    }
};

# A name with another code, or in another place, is not found or read wrongly.
subtest "HTML's names are those of the standard, in order" => sub {
    my ($table) = read_file("$top/mod_crmapi/mail/mail_reference.c")
        =~ /^static const name_t names\[\] = \{\n(.*?)^\};/ms;
    my @rows = $table =~ /\{"(\w+)", (\d+)\}/g;
    my @names = @rows[grep { $_ % 2 == 0 } 0 .. $#rows];
    cmp_ok(scalar @names, ">", 250, "they are read");
    is_deeply(\@names, [sort @names], "in the order of their bytes");
    my ($code, $out, $err) = run_program(command => ["python3", "-c", <<'END',
import sys, html.entities
rows = sys.argv[1:]
for name, code in zip(rows[::2], rows[1::2]):
    if html.entities.html5.get(name + ";") != chr(int(code)):
        print(name, code)
END
        @rows]);
    is("$code$out", 0, "with their codes") or diag($err);
};

subtest "migrations are numbered without a gap" => sub {
    my $n = 0;
    for my $file (grep { m{^schema/[^/]+\.sql$} } @files) {
        my ($number) = $file =~ m{^schema/(\d{4})-[a-z0-9-]+\.sql$};
        is($number, sprintf("%04d", ++$n), "$file is number $n");
    }
    cmp_ok($n, ">", 0, "there is a schema");
};

# What is said of a file, a function or a directive may keep its old name.
subtest "what documents and comments name is there" => sub {
    # what others have, and what the build makes
    my %there = map { $_ => 1 } qw(apr_dbd.h apr_optional_hooks.h chat_script.c
        http_config.h httpd.h mod_dbd.h syncrep.c sysexits.h ap_check_pipeline
        ap_custom_response http_build_query SSL_set_tlsext_host_name);
    my (%said, $names, @wrong);
    for my $file (grep { m{^(?:mod_crmapi|schema|bench|t)/} || /^[A-Z]+$/ } @files) {
        my $comment = $file =~ /\.[ch]$/ ? qr{/\*.*?\*/}s
            : $file =~ /\.sql$/ ? qr{--.*} : $file =~ /\.(?:t|pm)$/ ? qr{^\s*#.*}m
            : $file =~ m{(?:^|/)(?:README|CONTRIBUTING)$} ? qr{.*}s : next;
        my $text = read_file($file);
        $said{$file} = join "\n", $text =~ /$comment/g;
        $there{$file =~ s{.*/}{}r} = 1;
        $there{$_} = 1 for $text =~ s/$comment//gr =~ /\b([A-Za-z]\w*)/g;
    }
    for my $file (sort keys %said) {
        my @named = $said{$file} =~ m{\b([A-Za-z]\w*)\(\) | \b(CrmApi[A-Z]\w+)
            | (?<![\w/.-])([a-z\d][\w-]*\.(?:c|h|pm|sql|t))\b}gx;
        $names += @named = grep { defined } @named;
        push @wrong, map { "$file: $_" } grep { !$there{$_} } @named;
    }
    cmp_ok($names, ">", 1000, "there are names");
    is(join("\n", @wrong), "", "each is there");
};

# Files of the schema get other numbers when one is put in between.
subtest "what is said of a file of the schema is true" => sub {
    my %sql = map { s{.*/}{}r => read_file($_) } grep { m{^schema/.*\.sql$} } @files;
    my $name = qr/\d{4}-[a-z]+\.sql/;
    my ($names, @wrong) = (0);
    for my $file (grep { m{^(?:mod_crmapi|schema|docs)/} } @files) {
        my $text = read_file($file) =~ s{\n\W*}{ }gr;
        my @named = $text =~ /\b($name)\b/g;
        $names += @named;
        push @wrong, map { "$file: there is no $_" } grep { !$sql{$_} } @named;
        push @wrong, map { "$file: $_ is no name" } $text =~
            m{(\(00\d\d\)|schema/00\d\d\b(?!-)|\b(?:of|in) 00\d\d\b(?!-))}g;
        my %of = $text =~ /\b(\w+)\(\) (?:of |\()($name)/g;
        push @wrong, map { "$file: $of{$_} has no $_()" } grep {
            ($sql{$of{$_}} // "") !~ /FUNCTION crmapi\.$_\(/ } sort keys %of;
    }
    cmp_ok($names, ">", 40, "there are names");
    is(join("\n", @wrong), "", "each is a file, and has that function");
};

SKIP: {
    my $shellcheck = `sh -c "command -v shellcheck"` or skip
        "no shellcheck: build/setup --tests installs it", 1;
    my @scripts = grep { m{^(?:build|t|\.ci)/} && (first_line($_) =~ m{^#!.*sh$}
        || /\.sh$/) } @files;
    my $said = `shellcheck -x @scripts 2>&1`;
    is($said, "", "shellcheck has nothing to say about @scripts");
}

sub first_line {
    my ($file) = @_;
    open(my $in, "<", $file) or die "$file: $!\n";
    return scalar(<$in>) // "";
}

done_testing;
