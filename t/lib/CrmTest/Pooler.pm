# SPDX-License-Identifier: Apache-2.0
# CrmTest/Pooler.pm: a PgBouncer between httpd and the database, if wanted
package CrmTest::Pooler;
use strict;
use warnings;
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use CrmTest::Postgres;
use CrmTest::Process qw(unprivileged demoted spawn end_process wait_for
    read_file write_file);

my $own;        # the one that this process started

# Return the mode of $CRM_POOLER (session, transaction), or undef.
sub mode {
    my $mode = $ENV{CRM_POOLER} or return undef;
    die "CrmTest: CRM_POOLER is session or transaction, not $mode\n"
        unless $mode =~ /^(?:session|transaction)$/;
    return $mode;
}

# Return a conninfo of DATABASE for ROLE through the pooler.
sub conninfo {
    my ($class, $database, $role) = @_;
    $own ||= $class->start;
    return "host=$own->{dir} port=6432 dbname=$database user=$role";
}

# In mode transaction six connections take turns, so that hardly two statements
# of a client meet the same session.
sub start {
    my ($class) = @_;
    my $mode = mode();
    my $dir = tempdir("crm-pooler-XXXXXX", TMPDIR => 1);
    my $self = bless { dir => $dir, maker => $$ }, $class;
    my ($size, $least, $robin) = $mode eq "session" ? (60, 0, 0) : (6, 6, 1);

    if (my $user = unprivileged()) {
        chown((getpwnam $user)[2, 3], $dir) or die "CrmTest: $dir: $!\n";
    }
    write_file("$dir/users", join "", map { qq("$_" ""\n) }
        $CrmTest::Postgres::API, $CrmTest::Postgres::WORKER);
    write_file("$dir/conf", <<"END");
[databases]
* = host=@{[CrmTest::Postgres->get->host]}
[pgbouncer]
listen_port = 6432
unix_socket_dir = $dir
auth_type = trust
auth_file = $dir/users
pool_mode = $mode
default_pool_size = $size
min_pool_size = $least
server_round_robin = $robin
max_client_conn = 1000
pidfile = $dir/pid
END
    $self->{pid} = spawn(chdir => "/", log => "$dir/log", signal => "TERM",
        command => [demoted(), "pgbouncer", "$dir/conf"]);
    wait_for(sub { -S "$dir/.s.PGSQL.6432" }, 20)
        or die "CrmTest: PgBouncer did not start: ", read_file("$dir/log"),
            "\n";
    return $self;
}

sub END {
    local ($?, $!, $@);
    return unless $own && $own->{maker} == $$;
    end_process($own->{pid}, "TERM", 10);
    remove_tree($own->{dir});
}

1;
