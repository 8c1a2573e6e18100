# SPDX-License-Identifier: Apache-2.0
# 96-instructions.t: how many instructions of our own code a request takes, from
# its parts to its answer: times are noisy, these are not. They are compared
# where the same compiler has made them, and only told elsewhere
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use File::Temp qw(tempdir);

# What is recorded: t/unit/instructions, the compiler, then lines of a sample's
# name and a number. CRM_RENEW=1 writes it anew.
my $record = "$CrmTest::TOP/t/unit/instructions";
my @FLAGS = ("x86_64", "-O2 -g");       # of what is recorded

# The first line that the compiler prints with OPTION.
sub compiler {
    my ($option) = @_;
    my ($code, $out) = run_program(command =>
        [split(/ /, $CrmTest::BUILD{CC}), $option]);
    return $out =~ /^(.*)/ ? $1 : "";
}
my $program = "$CrmTest::BUILD{DIR}/t/unit/count_instructions";
my $dir = tempdir("crm-count-XXXXXX", TMPDIR => 1, CLEANUP => 1);
my ($none) = run_program(command => ["valgrind", "--version"]);
plan(skip_all => "no valgrind: build/setup --tests installs it") if $none;
plan(skip_all => "plain builds only: others have more instructions")
    if sanitized() || valgrinded();

# Instructions that SAMPLE's program executes in FUNCTION and what it calls: in
# all, and in our own code. Returns (own, all, what the program printed).
sub count {
    my ($sample, $function) = @_;
    my $file = "$dir/$sample.$function";
    my ($code, $out, $err) = run_program(seconds => 120, command =>
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=$file",
        "--toggle-collect=$function", $program, $sample]);
    die "CrmTest: $sample: $err\n" if $code;
    my ($object, $called, %name, %cost) = ("");
    for (split /\n/, read_file($file)) {
        if (/^(c?)ob=\((\d+)\)(?: (.*))?/) {
            $name{$2} = $3 if defined $3;
            $object = $name{$2} unless $1;
        }
        elsif (/^calls=/) {
            $called = 1;        # the next line is of what was called
        }
        elsif (/^[+*\-\d]\S* (\d+)$/) {
            $cost{$object} += $1 unless $called;
            $called = 0;
        }
    }
    my $all = 0;
    $all += $_ for values %cost;
    my ($own) = map { $cost{$_} } grep { m{/count_instructions$} } keys %cost;
    return ($own, $all, $out);
}

my @SAMPLES = qw(get list filters create activity answer tool_get tool_list
    tool_create);
my ($recorded_with) = read_file($record) =~ /^# (.*)/m;
my %budget = read_file($record) =~ /^(\w+) (\d+)$/mg;
my $here = join ", ", compiler("--version"),
    compiler("-dumpmachine") =~ s/-.*//r, $CrmTest::BUILD{CFLAGS};
my $there = join ", ", $recorded_with, @FLAGS;
my $same = $here eq $there && !$ENV{CRM_RENEW};
diag("recorded with $there; this is $here: nothing to compare") unless $same;

my %is;
for my $sample (@SAMPLES) {
    my ($own, $all, $out) = count($sample, "serve_requests");
    my ($times) = split / /, $out;
    $is{$sample} = int($own / $times);
    diag(sprintf "%s: %d instructions of ours, %d with libraries", $sample,
        $is{$sample}, $all / $times);
    cmp_ok($own, ">", 0, "$sample: is counted");
    cmp_ok($all, ">", $own, "$sample: with libraries it is more");
    next unless $same;
    cmp_ok($is{$sample}, "<=", 1.03 * ($budget{$sample} // 0), "$sample: at"
        . " most 3 % over what is recorded (t/README says how to renew it)");
    diag("$sample is better than recorded: renew it")
        if $is{$sample} < 0.97 * $budget{$sample};
}

cmp_ok($is{answer}, "<=", 1.3 * $is{activity},
    "an answer takes at most 1.3 times what an activity takes (19)");

for my $sample (qw(list filters)) {
    my ($writes) = (count($sample, "write_rows"))[1];
    my ($least) = (count($sample, "scan_and_copy"))[1];
    my $ratio = $writes / $least;
    diag(sprintf "%s: writing JSON takes %.2f times the instructions of one"
        . " scan and one copy of it", $sample, $ratio);
    cmp_ok($ratio, "<=", 2, "$sample: the serialiser stays within twice")
        if $same;
}

if ($ENV{CRM_RENEW}) {
    write_file($record, join "", "# " . compiler("--version") . "\n",
        map { "$_ $is{$_}\n" } @SAMPLES);
    diag("recorded in $record");
}

done_testing;
