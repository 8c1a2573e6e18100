# SPDX-License-Identifier: Apache-2.0
# CrmTest/Pooler.pm: a PgBouncer in front of the database, configured as in
# docs/scaling.md
package CrmTest::Pooler;
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use CrmTest::Postgres;
use CrmTest::Process qw(unprivileged demoted run_program spawn end_process
    wait_for read_file write_file);

my $own;        # the one of this run that this process started

# Return the mode of $CRM_POOLER (session, transaction), or undef.
sub mode {
    my $mode = $ENV{CRM_POOLER} or return undef;
    die "CrmTest: CRM_POOLER is session or transaction, not $mode\n"
        unless $mode =~ /^(?:session|transaction)$/;
    return $mode;
}

# Return a conninfo of DATABASE for ROLE through the pooler of this run, or
# through the one that it is called for. In mode transaction six connections
# take turns, so that hardly two statements of a client meet the same session.
sub conninfo {
    my ($self, $database, $role) = @_;

    if (!ref $self) {
        $own ||= $self->start(mode(), CrmTest::Postgres->get,
            mode() eq "session" ? () : (default_pool_size => 6,
                min_pool_size => 6, server_round_robin => 1));
        $self = $own;
    }
    return "host=$self->{dir} port=6432 dbname=$database user=$role";
}

# Give the logins their settings in DATABASE of SERVER, as docs/scaling.md asks for:
# what a session sets itself reaches one of the pooler's. One at a time, because roles
# belong to the server.
sub set_roles {
    my ($class, $server, $database) = @_;

    my $lock = $server->take_lock;
    for ([api => $CrmTest::Postgres::API], [worker => $CrmTest::Postgres::WORKER]) {
        my ($code, $out, $err) = run_program(command => [$CrmTest::BUILD{CTL},
            "--database",
            $server->conninfo($database, $CrmTest::Postgres::SUPERUSER),
            "role", "create", @$_]);
        die "CrmTest: role create: $err$out\n" if $code;
    }
}

# Return the pgbouncer.ini of docs/scaling.md for MODE.
sub documented {
    my ($class, $mode) = @_;
    my $top = abs_path(dirname(__FILE__) . "/../../..");
    my ($ini) = grep { /^pool_mode = $mode$/m }
        read_file("$top/docs/scaling.md") =~ /^```ini\n(.*?)^```$/msg;
    return $ini // die "CrmTest: docs/scaling.md has no pgbouncer.ini of"
        . " mode $mode\n";
}

# Start one of MODE in front of SERVER, a CrmTest::Postgres, with the documented
# configuration, adapted to this machine and by CHANGES.
sub start {
    my ($class, $mode, $server, %changes) = @_;
    my $address = $server->address;
    my $dir = tempdir("crm-pooler-XXXXXX", TMPDIR => 1);
    my $self = bless { dir => $dir, maker => $$ }, $class;
    my $ini = $class->documented($mode);
    my %here = (unix_socket_dir => $dir, auth_type => "trust",
        auth_file => "$dir/users");

    if (my $user = unprivileged()) {
        chown((getpwnam $user)[2, 3], $dir) or die "CrmTest: $dir: $!\n";
    }
    my ($minor) = `pgbouncer --version` =~ /^PgBouncer 1\.(\d+)/;
    $ini =~ s/^;(?=max_prepared_statements )//m if ($minor // 0) >= 21;
    write_file("$dir/users", join "", map { qq("$_" ""\n) }
        $CrmTest::Postgres::API, $CrmTest::Postgres::WORKER);
    $ini =~ s/^crmapi = .*/* = $address/m or die "CrmTest: no database\n";
    for my $name (sort keys %here) {
        $ini =~ s/^$name = .*/$name = $here{$name}/m
            or die "CrmTest: docs/scaling.md: no $name\n";
    }
    for my $name (sort keys %changes) {
        $ini =~ s/^$name = .*\n//m;
        $ini .= "$name = $changes{$name}\n";
    }
    write_file("$dir/conf", $ini . "pidfile = $dir/pid\n");
    $self->{pid} = spawn(chdir => "/", log => "$dir/log", signal => "TERM",
        command => [demoted(), "pgbouncer", "$dir/conf"]);
    wait_for(sub { -S "$dir/.s.PGSQL.6432" }, 20)
        or die "CrmTest: PgBouncer did not start: ", read_file("$dir/log"),
            "\n";
    return $self;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid};

    return if !$pid || $self->{maker} != $$;
    end_process($pid, "TERM", 10);
    remove_tree($self->{dir});
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop;
}

sub END {
    local ($?, $!, $@);
    $own->stop if $own;
}

1;
