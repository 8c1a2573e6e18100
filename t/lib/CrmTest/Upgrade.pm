# SPDX-License-Identifier: Apache-2.0
# CrmTest/Upgrade.pm: the schema of a later release, and upgrades to it
package CrmTest::Upgrade;
use strict;
use warnings;
use Exporter qw(import);
use File::Basename qw(basename);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use POSIX qw(WNOHANG);
use CrmTest;
use CrmTest::Process qw(spawn);

our @EXPORT = qw(baseline next_schema next_build later_steps versions
    migrating ended);

my $dir;
my @TODAY = sort glob "$CrmTest::TOP/schema/[0-9]*.sql";
my @LATER = sort glob "$CrmTest::TOP/t/upgrade/*.sql";

# Write FILE of t/upgrade/ into the folder TO under the number that follows those
# of today.
sub add_later {
    my ($file, $to) = @_;
    my $text = read_file($file);
    my ($number, $name) = basename($file) =~ /^(\d+)-(.*)/;

    $text =~ s/^-- min_module: \K\@VERSION\@$/scalar @TODAY/me;
    write_file(sprintf("%s/%04d-%s", $to, @TODAY + $number, $name), $text);
}

# A folder with the current migrations, followed by those of t/upgrade/, which
# declare that the current programs can use them.
sub next_schema {
    return $dir if $dir;
    $dir = tempdir("crm-next-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    for my $file (@TODAY) {
        symlink $file, "$dir/" . basename($file) or die "$file: $!\n";
    }
    make_path("$dir/citus/later");
    symlink "$CrmTest::TOP/schema/$_", "$dir/$_" or die "$dir: $!\n"
        for "repeat", "citus/repeat";
    add_later($_, $dir) for @LATER;
    add_later($_, "$dir/citus/later") for glob "$CrmTest::TOP/t/upgrade/citus/*.sql";
    return $dir;
}

# The number of steps of each migration that leads from the current schema to the
# later one.
sub later_steps {
    my $of = CrmTest::Citus::wanted() ? "citus/" : "";
    return map { scalar(() = read_file($_) =~ /^-- step: /mg) }
        sort glob "$CrmTest::TOP/t/upgrade/$of*.sql";
}

# The version of the first release: the files up to it are no migrations.
sub baseline { return 19 }

# The versions of the current schema and of the later one.
sub versions { return (scalar @TODAY, @TODAY + @LATER) }

my $next;
# The folder of a build whose programs need that schema: a copy of the build
# under test, in which the sources that know the version are compiled again. make
# gets VARIABLES, such as "schemadir=/usr/share/mod_crmapi/schema".
sub next_build {
    my (@variables) = @_;
    return $next if $next;
    my $copy = "$CrmTest::BUILD{DIR}-next-$$";
    my ($source) = read_file("$CrmTest::BUILD{DIR}/Makefile")
        =~ /^top_srcdir = (.*)$/m;
    for my $command (["cp", "-a", $CrmTest::BUILD{DIR}, $copy],
        ["make", "-C", $copy, "-W",
            "$source/mod_crmapi/database/crm_schema.h",
            # it has the folder of the schema
            "-W", "$source/mod_crmapi/ctl/crmapictl.c",
            "CPPFLAGS=-DCRM_SCHEMA_VERSION=" . (versions())[1],
            @variables, qw(mod_crmapi.so crmapid crmapictl)]) {
        $next = $copy;          # END removes it
        my ($code, $out, $err) = run_program(command => $command,
            seconds => 600);
        die "CrmTest: @$command: $err\n" if $code;
    }
    return $next;
}

END {
    local $?;
    remove_tree($next) if $next && $next =~ /-next-$$\z/;
}

# Start "crmapictl migrate" of DATABASE to that schema, with OPTIONS. Returns
# {pid, log => a file with what it says}.
sub migrating {
    my ($database, @options) = @_;
    my $log = File::Temp->new;
    my $pid = spawn(log => "$log", env => { CRMAPI_DATABASE =>
        postgres()->conninfo($database) }, command => [$CrmTest::BUILD{CTL},
        "migrate", "--schema", next_schema(), @options]);
    return { pid => $pid, log => $log };
}

# Whether a run of migrating() has ended; then its status is in {status}.
sub ended {
    my ($run) = @_;
    return 1 if defined $run->{status};
    return 0 if waitpid($run->{pid}, WNOHANG) != $run->{pid};
    $run->{status} = $?;
    return 1;
}

1;
