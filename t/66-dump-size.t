# SPDX-License-Identifier: Apache-2.0
# 66-dump-size.t: a large workspace is dumped and restored without more memory
# than a small one (contract 14.2)
# second gear
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Data;
use CrmTest::Dump;
use File::Temp qw(tempdir);
use JSON::PP ();
use Time::HiRes qw(time);

my $CONTACTS = 100_000;
# of address space, for the program, its libraries and what it holds
my $KIB = 96 * 1024;
my $scratch = tempdir("crm-dump-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my ($here, $there) = (database(), database());
my $w = workspace($here, twin => 0);
$w->ctl("workspace", "set", $w->id, "--events", "on");
sql($here, "INSERT INTO crmapi.contact (id, workspace_id, bot_id, first_name,
    emails, tags, notes, custom_fields) SELECT gen_random_uuid(),
    '@{[$w->id]}', '@{[$w->agent]}', 'Name ' || n, jsonb_build_array(
    jsonb_build_object('email', 'p' || n || '\@x.example', 'is_primary', true)),
    '{a,b}', repeat(n || ' note ', 40), '{}' FROM
    generate_series(1, $CONTACTS) n");

# Run crmapictl with ARGUMENTS on DATABASE in KIB of memory; seconds.
sub limited {
    my ($database, @arguments) = @_;
    my $began = time;
    my ($code, $out, $err) = run_program(command => ["sh", "-c",
        "ulimit -v $KIB; exec \"\$\@\"", "sh",
        "$CrmTest::BUILD{DIR}/crmapictl", "--database",
        postgres()->conninfo($database), "--json", @arguments]);
    is($code, 0, "$arguments[1] in $KIB KiB of memory") or diag($err);
    return (time - $began, $out);
}

my $file = "$scratch/dump";
my ($dumped, $said) = limited($here, "workspace", "dump", $w->id, "--output",
    $file);
my $size = -s $file;
cmp_ok($size, ">", $KIB * 1024, "the dump is larger than that");
my ($restored) = limited($there, "workspace", "restore", $file);
is(sql($there, "SELECT count(*) FROM crmapi.contact"), $CONTACTS,
    "all contacts");
triggers_kept_up($there, "all totals are right");
my ($again) = limited($there, "workspace", "dump", $w->id, "--output",
    "$file.2");
is(sql($there, "SELECT count(*) FROM crmapi.event"), $CONTACTS, "all events");
is(system("cmp", "-s", $file, "$file.2"), 0, "the dumps are the same bytes");
note(sprintf "%d rows, %.0f MB: dumped in %.1f s, restored in %.1f s",
    JSON::PP->new->decode($said)->{rows}, $size / 1e6, $dumped, $restored);

done_testing;
