# SPDX-License-Identifier: Apache-2.0
# 26-rules.t: the rules of schema/README for migrations, as far as a program can
# check them
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Upgrade qw(baseline);
use File::Basename qw(basename);
use File::Temp ();

my $BEFORE = baseline();
my $FIRST = $BEFORE + 1;        # the first migration

# Without comments, and without what is in quotes: bodies and texts.
sub bare {
    my ($sql) = @_;
    $sql =~ s/--[^\n]*//g;
    $sql =~ s/(\$\w*\$).*?\1/''/gs;
    $sql =~ s/'[^']*'/''/g;
    $sql =~ s/\bBEGIN\s+ATOMIC\b.*?\bEND\b\s*;/;/gis;
    $sql =~ s/\s+/ /g;
    return $sql;
}

# The steps of TEXT: [kind, object, statements, comments].
sub steps {
    my ($text) = @_;
    my @parts = split /^-- step: ([^\n]*)\n/m, $text;
    my $head = shift @parts;
    @parts = ("transaction", $head) unless @parts;
    my @steps;
    while (my ($title, $sql) = splice @parts, 0, 2) {
        my ($kind, $object) = $title =~ /^(\w+)(?: (?:crmapi\.)?(\w+))?/;
        push @steps, [$kind, $object // "", [grep { /\S/ } map { s/^ +| +$//gr }
            split /;/, bare($sql)], $sql];
    }
    return @steps;
}

# Statements of a transaction on a table that was there before: the rule that
# each breaks.
my $table = qr/(?:IF EXISTS )?(?:ONLY )?crmapi\.(\w+)/i;
my $alter = qr/^ALTER TABLE $table .*/i;
my $added = qr/$alter\bADD (?:CONSTRAINT \w+ )?/i;
my $other = qr/CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY|EXCLUDE/i;
my $column
    = qr/$alter\bADD (?:COLUMN )?(?:IF NOT EXISTS )?(?!(?:$other)\b)\w+ /i;
my @ON_TABLES = (
    [qr/^CREATE (?:UNIQUE )?INDEX .*? ON $table/i, 3, "builds an index"],
    [qr/$column(?!.*\bDEFAULT\b).*\bNOT NULL/i, 2,
        "adds a column NOT NULL without a DEFAULT"],
    [qr/$column.*\bDEFAULT (?!''|[-\d.]|true|false|NULL)/i, 2,
        "adds a column with a computed DEFAULT"],
    [qr/$alter\b(?:GENERATED|SERIAL)\b/i, 5,
        "adds a generated column"],
    [qr/$column.*\b(?:REFERENCES|CHECK|UNIQUE|PRIMARY)\b/i, 4,
        "adds a column with a constraint"],
    [qr/$added(?:CHECK|FOREIGN KEY)\b(?!.*\bNOT VALID\b)/i, 4,
        "adds a constraint that is not NOT VALID"],
    [qr/$added(?:UNIQUE|PRIMARY KEY|EXCLUDE)\b(?!.*\bUSING INDEX\b)/i, 4,
        "adds a key without USING INDEX"],
    [qr/$alter\bVALIDATE CONSTRAINT\b/i, 4,
        "validates in a transaction"],
    [qr/$alter\bALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE\b/i, 5,
        "changes a type"],
    [qr/$alter\bRENAME\b/i, 5, "renames"],
    [qr/$alter\bSET (?:TABLESPACE|LOGGED|UNLOGGED|ACCESS METHOD)\b/i, 5,
        "rewrites the table"],
    [qr/$alter\bSET SCHEMA\b/i, 5, "renames"],
    [qr/^(?:WITH\b.*?\b)?(?:UPDATE|INSERT INTO|DELETE FROM) $table/i, 8,
        "writes rows"],
    [qr/^(?:VACUUM|CLUSTER|REINDEX|TRUNCATE)\b.*?$table/i, 5,
        "rewrites the table"],
);
# Statements that take something away.
my @REMOVES = (
    [qr/^DROP (?:TABLE|FUNCTION|PROCEDURE|VIEW|TYPE|DOMAIN|TRIGGER|SCHEMA)\b/i,
        "drops"],
    [qr/^ALTER TABLE .*\bDROP (?:COLUMN )?(?!CONSTRAINT\b|DEFAULT\b|NOT NULL\b|EXPRESSION\b|IDENTITY\b)\w+/i,
        "drops a column"],
    [qr/^REVOKE (?!.*\bFROM PUBLIC\b)/i, "revokes a right"],
    [qr/^ALTER (?:FUNCTION|TYPE|VIEW|TABLE) .*\bRENAME\b/i, "renames"],
);
# What each kind of step may consist of.
my %MAY = (
    index => qr/^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+) /i,
    alone => qr/^(?:ALTER\ TABLE\ \S+\ VALIDATE\ CONSTRAINT\ \w+$
        |DROP\ INDEX\ CONCURRENTLY\ IF\ EXISTS\ |ANALYZE\b
        |REINDEX\ (?:INDEX|TABLE)\ CONCURRENTLY\ )/ix,
    batches => qr/^(?:UPDATE|INSERT INTO|DELETE FROM) /i,
);

# The rules that a statement of a transaction breaks. NEW: tables of the file.
sub wrong_statement {
    my ($sql, $new, $unused) = @_;
    my @wrong;

    for my $rule (@ON_TABLES) {
        my ($pattern, $number, $what) = @$rule;
        push @wrong, "rule $number: $what: $sql"
            if $sql =~ $pattern && !$new->{lc $1};
    }
    for my $rule (@REMOVES) {
        my ($pattern, $what) = @$rule;
        push @wrong, "rule 6: $what without \"unused since\": $sql"
            if $sql =~ $pattern && !$unused;
    }
    push @wrong, "rule 3: CONCURRENTLY in a transaction: $sql"
        if $sql =~ /\bCONCURRENTLY\b/i;
    return @wrong;
}

# The rules that a step breaks.
sub wrong_step {
    my ($step, $new, $min) = @_;
    my ($kind, $object, $statements, $text) = @$step;
    my ($since) = $text =~ /^-- unused since: (\d+)$/m;
    my @wrong;

    push @wrong, "rule 6: min_module $min is below $since, the first version"
        . " that does without" if defined $since && $since > $min;
    return (@wrong, map { wrong_statement($_, $new, defined $since) }
        @$statements) if $kind eq "transaction";
    push @wrong, "a step \"$kind\" is one statement" if @$statements != 1;
    push @wrong, "not for a step \"$kind\": $statements->[0]"
        if $statements->[0] !~ $MAY{$kind};
    push @wrong, "the step's index is not the statement's"
        if $kind eq "index" && $statements->[0] =~ $MAY{$kind}
            && $1 ne $object;
    push @wrong, "a batch names its rows by \"batch\""
        if $kind eq "batches" && $statements->[0] !~ /\bbatch\b/;
    return @wrong;
}

# The rules that the migration TEXT of NUMBER breaks.
sub wrong {
    my ($number, $text) = @_;
    my ($min) = $text =~ /^-- min_module: (\d+)$/m;
    my @steps = steps($text);
    my %new = map { lc($_) => 1 } map { map {
        /^CREATE TABLE (?:IF NOT EXISTS )?crmapi\.(\w+)/i } @{$_->[2]} } @steps;

    return "rule 1: it does not state min_module" unless defined $min;
    return "rule 1: a min_module above its number" if $min > $number;
    return map { wrong_step($_, \%new, $min) } @steps if $min < $number;
    return $text =~ /^-- incompatible: \S/m ? ()
        : "rule 1: it does not say why it is not compatible";
}

# How the migration TEXT breaks rule 9, which is for a distributed database.
sub wrong_distributed {
    my ($text) = @_;
    return map { my ($kind, undef, $statements) = @$_;
        $kind eq "batches" ? "rule 9: a step \"batches\""
            : @$statements > 1 ? "rule 9: two statements: @$statements[0, 1]"
            : "@$statements" =~ /^SELECT create_distributed_table\((?!.*pg_dist)/
            ? "rule 9: it cannot be repeated: @$statements"
            : () } steps($text);
}

subtest "the files keep the rules" => sub {
    my $from = sprintf "From %04d on.", $FIRST;
    like(read_file("$CrmTest::TOP/schema/README"), qr/^\Q$from\E/m,
        "schema/README says which are migrations");
    my @files = grep { basename($_) =~ /^(\d+)/ && $1 >= $FIRST }
        glob "$CrmTest::TOP/schema/[0-9]*.sql";
    for my $file (@files, glob "$CrmTest::TOP/t/upgrade/*.sql") {
        my ($number) = basename($file) =~ /^(\d{4})-/;
        my $text = read_file($file);
        $text =~ s/\@VERSION\@/$FIRST/g;
        is_deeply([wrong($number // $FIRST + 1, $text)], [],
            basename($file));
        my ($later) = grep { -e } map { $file =~ s{/([^/]+)$}{/$_/$1}r }
            $number ? "citus/later" : "citus";
        is_deeply([wrong_distributed(read_file($later // $file))], [],
            basename($file) . ", distributed");
    }
    my %plain = map { basename($_) => 1 } @files;
    is_deeply([grep { !$plain{$_} } map { basename($_) }
        glob "$CrmTest::TOP/schema/citus/later/*.sql"], [],
        "each in schema/citus/later/ is of one in schema/");
};

# [the rule, the transgression]; what is given without "-- step" is one
# transaction.
my @BAD = (
    ["rule 3", "CREATE INDEX x ON crmapi.contact (id);"],
    ["rule 3", "CREATE UNIQUE INDEX CONCURRENTLY x ON crmapi.contact (id);"],
    ["rule 2", "ALTER TABLE crmapi.contact ADD COLUMN x integer NOT NULL;"],
    ["rule 2", "ALTER TABLE crmapi.contact\n  ADD COLUMN x uuid NOT NULL"
        . " DEFAULT gen_random_uuid();"],
    ["rule 2", "ALTER TABLE crmapi.contact ADD x integer NOT NULL;"],
    ["rule 2", "ALTER TABLE crmapi.contact ADD IF NOT EXISTS x uuid DEFAULT"
        . " gen_random_uuid();"],
    ["rule 4", "ALTER TABLE crmapi.contact ADD x uuid REFERENCES"
        . " crmapi.workspace;"],
    ["rule 5", "ALTER TABLE crmapi.contact ADD COLUMN x text GENERATED ALWAYS"
        . " AS (lower(notes)) STORED;"],
    ["rule 4", "ALTER TABLE crmapi.contact ADD COLUMN x text UNIQUE;"],
    ["rule 4", "ALTER TABLE crmapi.contact ADD CONSTRAINT x CHECK (id > 1);"],
    ["rule 4", "ALTER TABLE crmapi.contact ADD FOREIGN KEY (workspace_id)"
        . " REFERENCES crmapi.workspace;"],
    ["rule 4", "ALTER TABLE crmapi.contact ADD CONSTRAINT x UNIQUE (id);"],
    ["rule 4", "ALTER TABLE crmapi.contact VALIDATE CONSTRAINT x;"],
    ["rule 5", "ALTER TABLE crmapi.contact ALTER COLUMN notes TYPE text;"],
    ["rule 5", "ALTER TABLE crmapi.contact ALTER notes SET DATA TYPE text;"],
    ["rule 5", "ALTER TABLE crmapi.contact RENAME COLUMN notes TO remarks;"],
    ["rule 5", "ALTER TABLE crmapi.contact SET UNLOGGED;"],
    ["rule 6", "ALTER TABLE crmapi.contact DROP COLUMN notes;"],
    ["rule 6", "ALTER TABLE crmapi.contact DROP notes;"],
    ["rule 6", "DROP TABLE crmapi.contact;"],
    ["rule 6", "DROP FUNCTION crmapi.key_look_up(bytea);"],
    ["rule 6", "REVOKE SELECT ON crmapi.contact FROM crmapi_api;"],
    ["rule 6", "-- unused since: $FIRST\nDROP FUNCTION crmapi.key_look_up(bytea);"],
    ["rule 8", "UPDATE crmapi.contact SET notes = 'x; y';"],
    ["rule 8", "INSERT INTO crmapi.plan VALUES ('x');"],
    ["rule 8", "WITH a AS (SELECT 1) DELETE FROM crmapi.contact;"],
    ["one statement", "-- step: index x\nCREATE INDEX CONCURRENTLY x ON"
        . " crmapi.contact (id); SELECT 1;"],
    ["not for a step", "-- step: index x\nCREATE INDEX x ON crmapi.contact"
        . " (id);"],
    ["the statement's", "-- step: index x\nCREATE INDEX CONCURRENTLY y ON"
        . " crmapi.contact (id);"],
    ["not for a step", "-- step: alone\nUPDATE crmapi.contact SET notes = 'x';"],
    ["not for a step", "-- step: batches crmapi.contact\nSELECT 1 FROM batch;"],
    ["names its rows", "-- step: batches crmapi.contact\nUPDATE crmapi.contact"
        . " SET notes = 'x';"],
);
my @GOOD = (
    "CREATE TABLE crmapi.x (id uuid); CREATE INDEX y ON crmapi.x (id);"
        . " INSERT INTO crmapi.x VALUES (NULL);"
        . " ALTER TABLE crmapi.x ADD UNIQUE (id);",
    "ALTER TABLE crmapi.contact ADD COLUMN x boolean NOT NULL DEFAULT false;",
    "ALTER TABLE crmapi.contact ADD x integer DEFAULT 1 NOT NULL;",
    "ALTER TABLE crmapi.contact ADD CONSTRAINT x UNIQUE USING INDEX y;",
    "ALTER TABLE crmapi.contact DROP CONSTRAINT x;",
    "REVOKE EXECUTE ON FUNCTION crmapi.x FROM PUBLIC;",
    "-- unused since: $BEFORE\nDROP FUNCTION crmapi.key_look_up(bytea);",
    "CREATE FUNCTION crmapi.x() RETURNS void LANGUAGE sql AS \$\$ UPDATE"
        . " crmapi.contact SET notes = 'x'; \$\$;",
);

subtest "a file that breaks a rule is found" => sub {
    for (@BAD) {
        my ($rule, $sql) = @$_;
        like(join("\n", wrong($FIRST, "-- min_module: $BEFORE\n$sql")), qr/\Q$rule\E/,
            "$rule: " . $sql =~ s/\n/ /gr);
    }
    is_deeply([wrong($FIRST, "-- min_module: $BEFORE\n$_")], [], "allowed: $_")
        for @GOOD;
    like((wrong($FIRST, "SELECT 1;"))[0], qr/rule 1: .*min_module/,
        "rule 1: min_module is not stated");
    like((wrong($FIRST, "-- min_module: $FIRST\nSELECT 1;"))[0], qr/rule 1: .*why/,
        "rule 1: a file for its own version only says why");
    like((wrong_distributed($_))[0], qr/^rule 9: /, "rule 9: $_") for
        "CREATE TABLE crmapi.x (); CREATE INDEX ON crmapi.x (id);",
        "-- step: batches crmapi.contact\nUPDATE crmapi.contact t SET notes ="
            . " '' FROM batch b WHERE t.id = b.id;",
        "-- step: alone\nSELECT create_distributed_table('crmapi.x', 'y');";
    is_deeply([wrong($FIRST, "-- min_module: $FIRST\n"
        . "-- incompatible: it must be\n"
        . "DROP TABLE crmapi.contact;")], [], "then all is allowed");
};

# What crmapictl itself says of lines that it does not understand.
subtest "crmapictl refuses lines that are not as schema/README says" => sub {
    my @files = glob "$CrmTest::TOP/schema/[0-9]*.sql";
    my $dir = File::Temp::tempdir("crm-rules-XXXXXX", TMPDIR => 1,
        CLEANUP => 1);
    my $database = database();
    my $next = @files + 1;
    symlink $_, "$dir/" . basename($_) for @files;
    for (["-- step: index\nX", qr/line 1: a step is/],
        ["-- step: index crmapi.x y\nX", qr/line 1: a step is/],
        ["-- step: batches contact\nX", qr/line 1: a step is/],
        ["-- step: transactions\nX", qr/line 1: a step is/],
        ["-- Step: alone\nX", qr/line 1: write/],
        ["--step: alone\nX", qr/line 1: write/],
        ["-- min_module: x\nX", qr/line 1: min_module must be/],
        ["-- min_module: @{[$next + 1]}\nX", qr/line 1: min_module must be/],
        ["-- step: alone\nX\n-- min_module: 1", qr/line 3: .*before the steps/],
        ["SELECT 1;\n-- step: alone\nX", qr/line 2: SQL must follow/]) {
        my ($text, $line) = @$_;
        write_file(sprintf("%s/%04d-x.sql", $dir, $next), "$text\n");
        my ($code, $out, $err) = crmapictl($database, "migrate", "--schema",
            $dir);
        like($err, qr/\Acrmapictl: CRM2109: \d+-x.sql, $line/,
            $text =~ s/\n/ /gr);
    }
    write_file(sprintf("%s/%04d-x.sql", $dir, $next),
        "-- step: transaction\nCOMMIT;\n");
    my ($code, $out, $err) = crmapictl($database, "migrate", "--schema", $dir);
    like($err, qr/CRM2107: .*step 1 of 1/, "a step cannot end its transaction");
};

done_testing;
