# SPDX-License-Identifier: Apache-2.0
# CrmTest/Standby.pm: a synchronous standby of a server, and failures of pairs
#
#     my $primary = CrmTest::Postgres->get(CrmTest::Standby->settings);
#     my $standby = CrmTest::Standby->new($primary);
#     ... CrmTest::Standby->conninfo_of([$primary, $standby], $database, $role)
#     CrmTest::Standby::crash($primary);
#     $standby->promote;
package CrmTest::Standby;
use strict;
use warnings;
use parent -norequire, "CrmTest::Postgres";
use CrmTest::Httpd;
use CrmTest::Postgres;
use CrmTest::Process qw(read_file wait_for free_port);

# The settings of a server on a port of 127.0.0.1 that may have standbys: a
# commit is acknowledged when it is durable, which is PostgreSQL's default.
sub settings {
    return (port => free_port(),
        listen_addresses => "'127.0.0.1'", synchronous_commit => "on",
        wal_level => "replica", hot_standby => "on");
}

# Make a standby of PRIMARY, on PORT of 127.0.0.1 (default: a free one). From
# then on PRIMARY answers no commit that the standby does not have.
sub new {
    my ($class, $primary, $port) = @_;
    $port ||= free_port();
    my $self = $class->in_new_folder(port => $port);
    my $dir = $self->{dir};

    CrmTest::Postgres::run_tool("pg_basebackup", "-D", "$dir/data",
        "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-d",
        "host=127.0.0.1 port=$primary->{port} user=$CrmTest::Postgres::SUPERUSER"
        . " application_name=standby");
    $self->configure(port => $port, unix_socket_directories => "'$dir'");
    $self->launch;
    $primary->sql("postgres",
        "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    $primary->sql("postgres", "SELECT pg_reload_conf()");
    wait_for(sub { ($primary->sql("postgres", "SELECT sync_state FROM"
        . " pg_stat_replication") // "") eq "sync" }, 30)
        or die "CrmTest: the standby does not follow: ",
            read_file("$dir/log"), "\n";
    return $self;
}

# Return the conninfo over TCP of DATABASE for ROLE, wherever of SERVERS the
# primary is. OPTIONS are added.
sub conninfo_of {
    my ($class, $servers, $database, $role, $options) = @_;
    return "host=" . join(",", map { "127.0.0.1" } @$servers)
        . " port=" . join(",", map { $_->{port} } @$servers)
        . " dbname=$database user=$role target_session_attrs=read-write"
        . " connect_timeout=2 sslmode=disable gssencmode=disable"
        . ($options ? " $options" : "");
}

# Make it the primary, and the server of this run.
sub promote {
    my ($self) = @_;
    CrmTest::Postgres::run_tool("pg_ctl", "promote", "-w", "-D",
        "$self->{dir}/data");
    CrmTest::Postgres->becomes($self);
}

# Send SIGNAL to all processes of SERVER. Its first process is stopped
# meanwhile, so that it starts no new one.
sub signal_all {
    my ($signal, $server) = @_;
    my $pid = $server->{pid};

    kill STOP => $pid;
    kill $signal => split(" ", read_file("/proc/$pid/task/$pid/children", "")),
        $pid;
}

# End SERVER as the failure of its host does.
sub crash {
    my ($server) = @_;
    signal_all("KILL", $server);
    waitpid $server->{pid}, 0;
}

# Stop all processes of SERVER, like a host that hangs: it accepts connections
# and answers nothing. thaw() continues them.
sub freeze { signal_all("STOP", @_) }
sub thaw { signal_all("CONT", @_) }

# End the connection to the primary of a standby that stands still, so that it
# never reads what it was sent meanwhile.
sub cut_off {
    my ($self) = @_;
    my $pid = $self->{pid};

    kill TERM => grep { read_file("/proc/$_/cmdline", "") =~ /walreceiver/ }
        split " ", read_file("/proc/$pid/task/$pid/children");
}

1;
