# SPDX-License-Identifier: Apache-2.0
# 06-exit-codes.t: each command of crmapictl ends with 2 for a command line that can
# never be right, and with 1 for all else that fails (crmapictl(1), EXIT STATUS)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;

my $db = database();
my ($w) = map { s/\s+\z//r } crmapictl_ok($db, "workspace", "create", "--name", "W");
my $id = "01900000-0000-7000-8000-000000000000";

# A value of each placeholder, and one that it can never be; undef: that depends on
# what the database or a file has.
my %VALUE = (
    W => [$w, undef], N => ["n", ""], S => ["some", "A B"], P => ["free", undef],
    UUID => [$id, "7"], ID => [$id, "7"], SWITCH => ["on", "perhaps"],
    SCOPES => ["read", "all"], PREFIX => ["svc_", "a-b"], SECONDS => [1, "x"],
    DAYS => [9, "x"], BYTES => [9, "x"], COUNT => [9, "x"], E => ["a\@x.example", "x"],
    R => ["r", ""], U => ["https://x.example/", "http://[::]/"],
    EVENTS => ["contact.created", "bogus"], LIST => ["x.example", "a..b"],
    TIME => ["2027-01-31T12:00:00Z", "soon"], CODE => ["EUR", "euro"],
    ZONE => ["Europe/Berlin", undef], NAMES => ["agent", "agnet"],
    STATUS => ["x", "bogus"], FILE => ["/nowhere/f", undef], DIR => ["/nowhere", undef],
    MARK => ["x", undef], "NAME=VALUE" => ["A=1", "A"], PLAN => ["free", undef],
    KEY_ID => [$id, "7"], TOKEN_ID => [$id, "7"], AGENT_ID => [$id, "7"],
    MESSAGE_ID => [$id, "7"], "MESSAGE_ID/NUMBER" => ["$id/1", "7"],
    ADDRESS => ["a\@x.example", undef], LOGIN => ["x", undef],
    "api|worker" => ["api", "site"], NAME => ["login", ""],
);
# The same of one command's option or operand.
my %OF = ("key address" => ["203.0.113.0/24", "x"], "status" => [undef, undef],
    "workspace events" => ["on", "perhaps"], "limit" => [9, "x"],
    "key overlap" => ["24h", "soon"], "--origins" => ["https://x.example", "x"],
    "--phone" => ["+4930123456", "x"], "job ID" => [7, "x"], "--as" => [$id, "7"]);
# Those whose STATUS has names of its own.
my %STATUS = (enrollment => "generating", webhook => "dead", job => "dead");

# The values of PLACE, of the option OPTION or of an operand (undef), of COMMAND.
sub values_of {
    my ($command, $option, $place) = @_;
    my ($group) = $command =~ /^(\S+)/;
    return @{$OF{"$group $option"}} if defined $option && $OF{"$group $option"};
    return @{$OF{"--$option"}} if defined $option && $OF{"--$option"};
    return @{$OF{limit}} if defined $option && $option =~ /-limit$/;
    return @{$OF{"$group $place"}} if $OF{"$group $place"};
    return ($STATUS{$group}, "bogus") if $place eq "STATUS";
    die "CrmTest: $command: no values of $place\n" if !$VALUE{$place};
    return @{$VALUE{$place}};
}

sub code_of {
    my (@arguments) = @_;
    my ($code, $out, $err) = crmapictl($db, { stdin => "svc_live_" . "a" x 30
        . "\n" }, @arguments);
    return ($code, "exit $code: $err");
}

my (undef, $help) = crmapictl(undef, "--help");
my @commands = $help =~ /^  ([a-z].*)$/mg;
cmp_ok(scalar @commands, ">", 50, "the commands");
for my $line (@commands) {
    my ($command, $rest) = $line =~ /^([a-z-]+(?: (?!api\|)[a-z][a-z-]*)?)(.*)$/;
    next if $command eq "deliver";      # it has the codes of sysexits.h
    my (@needed, @taken, @operands);
    while ($rest =~ /\G *(\[?)(?:--([a-z-]+)(?: ([A-Z=]+))?|([A-Z_\/]+|api\|worker)(\.\.\.)?)\]?/gc) {
        my ($may, $option, $value, $operand, $more) = ($1, $2, $3, $4, $5);
        if (defined $operand) { push @operands, [$operand, $may, $more] }
        else { push @{$may ? \@taken : \@needed}, [$option, $value] }
    }
    die "CrmTest: $line: '" . substr($rest, pos($rest) // 0) . "'\n"
        if (pos($rest) // 0) < length $rest;
    my @words = split / /, $command;
    my $whole = sub {
        my ($without) = @_;
        return ((map { my ($option, $value) = @$_; $option eq ($without // "") ? ()
            : ("--$option", defined $value
                ? (values_of($command, $option, $value))[0] : ()) } @needed),
            map { $_->[1] ? () : (values_of($command, undef, $_->[0]))[0] }
                @operands);
    };
    subtest $command => sub {
        my @wrong = (["an unknown option", @words, $whole->(), "--bogus"]);
        push @wrong, ["too many operands", @words, $whole->(),
            ("x") x (1 + grep { $_->[1] } @operands)]
            if !grep { $_->[2] } @operands;
        push @wrong, ["without its operands", @words, grep { 1 } map {
            my ($option, $value) = @$_; ("--$option", defined $value
            ? (values_of($command, $option, $value))[0] : ()) } @needed]
            if grep { !$_->[1] } @operands;
        for my $one (@needed, @taken) {
            my ($option, $value) = @$one;
            push @wrong, ["without --$option", @words, $whole->($option)]
                if grep { $_ == $one } @needed;
            next if !defined $value;
            push @wrong, ["--$option without a value", @words, $whole->($option),
                "--$option"];
            my (undef, $bad) = values_of($command, $option, $value);
            push @wrong, ["--$option $bad", @words, $whole->($option),
                "--$option=$bad"] if defined $bad;
        }
        for my $one (grep { !$_->[1] } @operands) {
            my ($good, $bad) = values_of($command, undef, $one->[0]);
            next if !defined $bad;
            push @wrong, ["$one->[0]: $bad", @words, map { $_ eq $good ? $bad : $_ }
                $whole->()];
        }
        for my $case (@wrong) {
            my ($what, @arguments) = @$case;
            my ($code, $said) = code_of(@arguments);
            is($code, 2, $what) or diag("@arguments: $said");
            like($said, qr/; see crmapictl \Q$command\E --help$/m, "$what: the way out")
                if $what =~ /unknown|too many|without/;
        }
        my ($code, $said) = code_of("--database", "host=/nowhere", @words,
            $whole->());
        is($code, 1, "no database") or diag($said);
    };
}

done_testing;
