# SPDX-License-Identifier: Apache-2.0
# CrmTest/Redis.pm: a Redis for a test, ended with its object
package CrmTest::Redis;
use strict;
use warnings;
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use CrmTest::Httpd;
use CrmTest::Process qw(unprivileged demoted spawn end_process run_program
    wait_for read_file write_file free_port);

# Start one on a port of 127.0.0.1 and on a socket:
#   address  => another address
#   port     => that port
#   password => that it demands
#   tls      => 1: the port speaks TLS, with a certificate of 127.0.0.1
#   conf     => more lines of redis.conf
sub new {
    my ($class, %arg) = @_;
    my $dir = tempdir("crm-redis-XXXXXX", TMPDIR => 1);
    my $self = bless { maker => $$, address => "127.0.0.1",
        port => free_port(), %arg, dir => $dir }, $class;

    chmod 0755, $dir;
    $self->certify if $arg{tls};
    write_file("$dir/password", "$arg{password}\n") if $arg{password};
    # httpd reads it as root, before it has another user
    chmod 0600, "$dir/password" if $arg{password};
    if (my $user = unprivileged()) {
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        chown($uid, $gid, $dir, glob "$dir/*") or die "CrmTest: $dir: $!\n";
    }
    $self->start;
    return $self;
}

sub port { $_[0]{port} }
sub socket { "$_[0]{dir}/redis.sock" }
sub dir { $_[0]{dir} }
sub pid { $_[0]{pid} }

# Make a certificate authority, and a certificate of 127.0.0.1 by it.
sub certify {
    my ($self) = @_;
    my $dir = $self->{dir};
    my @key = qw(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes);

    write_file("$dir/san", "subjectAltName = IP:127.0.0.1\n");
    for my $command (
            [qw(req -x509 -days 2 -subj /CN=authority), @key,
                "-keyout", "$dir/ca.key", "-out", "$dir/ca.pem"],
            [qw(req -subj /CN=redis), @key,
                "-keyout", "$dir/key.pem", "-out", "$dir/request.pem"],
            [qw(x509 -req -days 2 -CAcreateserial),
                "-CA", "$dir/ca.pem", "-CAkey", "$dir/ca.key",
                "-in", "$dir/request.pem", "-extfile", "$dir/san",
                "-out", "$dir/cert.pem"]) {
        my ($code, $out, $err) = run_program(command => ["openssl",
            @$command]);
        die "CrmTest: openssl: $err\n" if $code;
    }
}

# Start it, on the same port as before.
sub start {
    my ($self) = @_;
    my $dir = $self->{dir};
    my $conf = "unixsocket $dir/redis.sock\nunixsocketperm 777\n"
        . "bind $self->{address}\nsave \"\"\nappendonly no\ndir $dir\n"
        . "enable-debug-command yes\n";

    $conf .= $self->{tls} ? "port 0\ntls-port $self->{port}\n"
        . "tls-cert-file $dir/cert.pem\ntls-key-file $dir/key.pem\n"
        . "tls-ca-cert-file $dir/ca.pem\ntls-auth-clients no\n"
        : "port $self->{port}\n";
    $conf .= "requirepass $self->{password}\n" if $self->{password};
    write_file("$dir/redis.conf", $conf . ($self->{conf} // ""));
    $self->{pid} = spawn(chdir => "/", log => "$dir/log", signal => "KILL",
        command => [demoted(), "redis-server", "$dir/redis.conf"]);
    wait_for(sub { (eval { $self->run("PING") } // "") eq "PONG" }, 20)
        or die "CrmTest: Redis did not start: ", read_file("$dir/log"), "\n";
}

# Run a command of WORDS; return what it printed. Dies at an error.
sub run {
    my ($self, @words) = @_;
    my ($code, $out, $err) = run_program(
        command => ["redis-cli", "-e", "-s", $self->socket, @words],
        env => { REDISCLI_AUTH => $self->{password} });
    die "CrmTest: redis-cli @words: $out$err\n" if $code;
    $out =~ s/\n\z//;
    return $out;
}

# Whether it answers within 200 ms.
sub is_quick {
    my ($self) = @_;
    return !(run_program(command => ["timeout", "0.2", "redis-cli", "-e",
        "-s", $self->socket, "PING"],
        env => { REDISCLI_AUTH => $self->{password} }))[0];
}

# Send SIGNAL; end it with SIGKILL.
sub signal { kill $_[1], $_[0]{pid} }
sub kill_it {
    my ($self) = @_;
    end_process($self->{pid}, "KILL") if $self->{pid};
    $self->{pid} = undef;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    return if $self->{maker} != $$;
    $self->kill_it;
    remove_tree($self->{dir});
}

1;
