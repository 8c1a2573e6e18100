# SPDX-License-Identifier: Apache-2.0
# CrmTest/Httpd.pm: an httpd for a test, ended with its object
package CrmTest::Httpd;
use strict;
use warnings;
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use Scalar::Util ();
use Time::HiRes qw(sleep);
use Test::More ();
use CrmTest::Client;
use CrmTest::Log;
use parent -norequire, "CrmTest::Logged";
use CrmTest::Pooler;
use CrmTest::Prism;
use CrmTest::Postgres;
use CrmTest::Sanitizer;
use CrmTest::Process qw(unprivileged spawn end_process run_program wait_for
    busy read_file write_file free_port);

my %running;    # address of object => object, weak

# Modules that a configuration loads by default, besides the MPM and mod_crmapi.
our @MODULES = qw(mime authn_core authz_core authz_host dbd deflate env headers
    log_config mime reqtimeout setenvif status unixd);

# Start an httpd:
#   conf      => configuration inside the server, added last; @PORT@, @DIR@,
#                @CONNINFO@, @MODULEDIR@ are replaced
#   database  => name of the database for DBDParams (undef: no DBD lines)
#   conninfo  => instead of the database's own, e.g. over TCP
#   unlimited => 1: a key may send any number of requests
#   intake    => 1: "CrmApiIntake On", for any number of requests
#   shows     => those of "health", "metrics", "server-status" that it has, at their
#                paths
#   dbd       => more mod_dbd lines (default: DBDMin 1, DBDKeep 4, DBDMax 10)
#   mpm       => event, worker, prefork (default $CRM_MPM or event)
#   modules   => module names added to the usual ones; "-name" takes one away
#   crmapi    => 0: do not load mod_crmapi
#   on        => 0: no "CrmApi On"
#   level     => LogLevel (default "info")
#   children  => processes (default 2; 1 under valgrind)
#   threads   => of each (default 10)
#   expect_log, may_log => what it logs as it starts, too: see CrmTest::Log
#   env       => { name => value } of its environment
#   no_start  => 1: only make the folder and the configuration
sub new {
    my ($class, %arg) = @_;
    my $self = bless { maker => $$, %arg }, $class;

    $self->{mpm} ||= $ENV{CRM_MPM} || "event";
    my $dir = $self->{dir} = tempdir("crm-httpd-XXXXXX", TMPDIR => 1);
    # Lines of level warn and above are checked, and lines that do not have
    # httpd's format. httpd logs a crash at level notice: see CrmTest::Log.
    $self->{log} = CrmTest::Log->new(
        files => sub { grep { -e } "$dir/error_log", "$dir/output" },
        quiet => qr/^\[[^\]]*\] \[\w*:(?:notice|info|debug|trace\d)\] /);
    $self->expect_log(@{$arg{expect_log} || []});
    $self->may_log(@{$arg{may_log} || []});
    # a test may have as many clients as its httpd has threads
    $self->may_log(qr/AH00(?:161|286|484): server reached MaxRequestWorkers/);
    # under valgrind a child may be slow to end
    $self->may_log(qr/AH0004[56]: child process \d+ still did not exit/)
        if $ENV{CRM_VALGRIND} || $CrmTest::BUILD{SANITIZERS} ne "no";
    chmod 0755, $self->{dir};
    mkdir "$self->{dir}/htdocs" or die "CrmTest: $!\n";
    write_file("$self->{dir}/mime.types", "text/plain txt\n");
    $self->{port} = free_port();
    $self->write_conf;
    return $self if $arg{no_start};
    $self->start;
    return $self;
}

sub port { $_[0]{port} }
sub dir { $_[0]{dir} }
sub pid { $_[0]{pid} }
sub conf_file { "$_[0]{dir}/httpd.conf" }

# Write the configuration; CONF replaces the test's part if given.
sub write_conf {
    my ($self, $conf) = @_;
    $self->{conf} = $conf if defined $conf;
    my $dir = $self->{dir};
    my $modules = $CrmTest::BUILD{MODULEDIR};
    my %module = map { $_ => 1 } @MODULES;
    for my $name (@{$self->{modules} || []}) {
        $name =~ /^-(.*)/ ? delete $module{$1} : ($module{$name} = 1);
    }
    my $text = "ServerRoot $dir\nServerName 127.0.0.1\n"
        . "Listen 127.0.0.1:$self->{port}\n"
        . "LoadModule mpm_$self->{mpm}_module"
        . " $modules/mod_mpm_$self->{mpm}.so\n";
    # Some of them are built into the server elsewhere than on Debian.
    for my $name (sort keys %module) {
        $text .= "LoadModule ${name}_module $modules/mod_$name.so\n"
            if -f "$modules/mod_$name.so";
    }
    $text .= "LoadModule crmapi_module $CrmTest::BUILD{MODULE}\n"
        if $self->{crmapi} // 1;
    my ($children, $threads) = ($self->{children} || 2, $self->{threads} || 10);
    # valgrind runs one thread at a time, so use one process
    ($children, $threads) = (1, $threads * $children) if $ENV{CRM_VALGRIND};
    $threads = 0 if $self->{mpm} eq "prefork";
    $text .= "StartServers $children\nServerLimit " . ($children + 4) . "\n";
    $text .= $threads
        ? "ThreadsPerChild $threads\nThreadLimit $threads\n"
        . "MaxRequestWorkers " . $threads * $children . "\n"
        . "MinSpareThreads 1\nMaxSpareThreads " . $threads * $children . "\n"
        : "MinSpareServers 1\nMaxSpareServers $children\n"
        . "MaxRequestWorkers " . ($children + 4) . "\n";
    if (my $user = unprivileged()) {
        my $group = getgrgid((getpwnam $user)[3]);
        $text .= "User $user\nGroup $group\n" if $module{unixd};
    }
    $text .= <<"END";
PidFile $dir/httpd.pid
DefaultRuntimeDir $dir
TypesConfig $dir/mime.types
DocumentRoot $dir/htdocs
ErrorLog $dir/error_log
LogLevel @{[$self->{level} || "info"]}
TraceEnable On
GracefulShutdownTimeout 5
<Directory />
    Require all denied
</Directory>
<Directory $dir/htdocs>
    Require all granted
</Directory>
END
    $text .= "RequestReadTimeout header=20-40,MinRate=500"
        . " body=20,MinRate=500\n" if $module{reqtimeout};
    $text .= <<"END" if $module{log_config};
LogFormat "%h \\"%r\\" %>s %b %{crmapi-workspace}n %{crmapi-key}n %{crmapi-route}n %{crmapi-db-us}n" crm
CustomLog $dir/access_log crm
END
    if (defined $self->{database} && $module{dbd}) {
        $text .= "DBDriver pgsql\nDBDParams \"@{[$self->conninfo]}\"\n"
            . ($self->{dbd} // "DBDMin 1\nDBDKeep 4\nDBDMax 10\n");
    }
    # All clients of a test share an address, and make many keys.
    $text .= "CrmApiUnknownKeyLimit 0\n" if $self->{crmapi} // 1;
    $text .= "CrmApi On\n" if ($self->{crmapi} // 1) && ($self->{on} // 1);
    $text .= "CrmApiNamedStatements Shared\n" if ($self->{crmapi} // 1)
        && (CrmTest::Pooler->mode // "") eq "transaction";
    $text .= "CrmApiReadLimit 0\nCrmApiWriteLimit 0\n" if $self->{unlimited};
    $text .= "CrmApiIntake On\nCrmApiIntakeLimit 0\nCrmApiAddressLimit 0\n"
        if $self->{intake};
    $text .= "<Location /$_>\n    SetHandler " . ($_ eq "server-status" ? $_
        : "crmapi-$_") . "\n</Location>\n" for @{$self->{shows} || []};
    $text .= $self->{conf} // "";
    my %value = (PORT => $self->{port}, DIR => $dir, MODULEDIR => $modules,
        CONNINFO => defined $self->{database} ? $self->conninfo : "");
    $text =~ s/\@(PORT|DIR|MODULEDIR|CONNINFO)\@/$value{$1}/g;
    write_file($self->conf_file, $text);
}

# The conninfo of the server's database, for the role the API has.
sub conninfo {
    my ($self) = @_;
    return $self->{conninfo} if defined $self->{conninfo};
    my $server = CrmTest::Pooler->mode ? "CrmTest::Pooler"
        : CrmTest::postgres();
    return $server->conninfo($self->{database}, $CrmTest::Postgres::API);
}

# The environment httpd is run in, with what the sanitizers want.
sub environment {
    my ($self) = @_;
    my $ssl = grep { $_ eq "ssl" } @{$self->{modules} || []};
    my %env = (LC_ALL => "C.UTF-8", %{$self->{env} || {}},
        CrmTest::Sanitizer::environment(httpd => 1, leaks => !$ssl));

    my $build = $CrmTest::BUILD{DIR};
    if (-d "$build/gcov") {
        # For coverage: the children may not write where the objects are, nor
        # to what their parent, another user, has written.
        $env{GCOV_PREFIX} = "$build/gcov/$$";
        for my $objects (glob "$build/mod_crmapi/*") {
            File::Path::make_path("$env{GCOV_PREFIX}$objects");
            chmod 0777, "$env{GCOV_PREFIX}$objects";
        }
        umask 0;
    }
    return \%env;
}

# Run httpd with OPTIONS (for example "-t"). Return (exit code, output).
sub run {
    my ($self, @options) = @_;
    my ($code, $out, $err) = run_program(
        command => [$CrmTest::BUILD{HTTPD}, "-d", $self->{dir}, "-f",
            $self->conf_file, @options],
        env => $self->environment);
    return ($code, $out . $err);
}

# Start it and wait until it answers. Dies with the reason when it does not.
sub start {
    my ($self) = @_;
    # valgrind follows forks, so the children run under it, too
    my @command = (CrmTest::Sanitizer::valgrind("$self->{dir}/valgrind.%p"),
        $CrmTest::BUILD{HTTPD}, "-d", $self->{dir}, "-f", $self->conf_file,
        "-DFOREGROUND");

    $self->{stopped} = 0;
    for my $try (1 .. 5) {
        $self->{pid} = spawn(command => \@command, env => $self->environment,
            log => "$self->{dir}/output", chdir => "/");
        $running{$self + 0} = $self;
        Scalar::Util::weaken($running{$self + 0});
        my $up = wait_for(sub {
            if (waitpid($self->{pid}, WNOHANG) != 0) {
                $self->{pid} = undef;
                return -1;
            }
            return $self->answers;
        }, 30);
        if ($up && $up > 0) {
            $self->{prism} //= CrmTest::Prism->new($self->{port})
                if $ENV{CRM_PRISM} && !$self->{no_start};
            return;
        }
        my $words = join "", map { read_file("$self->{dir}/$_", "") }
            qw(output error_log);
        if ($words =~ /could not bind|Address already in use/ && $try < 5) {
            $self->{port} = free_port();
            unlink "$self->{dir}/output", "$self->{dir}/error_log";
            $self->write_conf;
            next;
        }
        $self->kill_it;
        die "CrmTest: httpd did not start: $words\n";
    }
}

# Whether it accepts connections and is the one we started.
sub answers {
    my ($self) = @_;
    return 0 unless -s "$self->{dir}/httpd.pid";
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
        PeerPort => $self->{port}, Proto => "tcp", Timeout => 2) or return 0;
    return read_file("$self->{dir}/error_log", "")
        =~ /resuming normal operations|configured -- /;
}

# The number of its starts and restarts.
sub generation {
    my ($self) = @_;
    my $count = () = $self->log_text =~ /resuming normal operations/g;
    return $count;
}

# Begin a restart by SIGNAL and return what waits until it is done. Send no signal
# before: httpd forgets one that comes between its message AH00493 and the end of the
# old configuration. That is a moment; under the sanitizer for threads, which puts
# signals off until the next function that it knows, it is a second.
sub begin_restart {
    my ($self, $signal) = @_;
    my $before = $self->generation;

    kill $signal => $self->{pid};
    return sub {
        wait_for(sub { $self->generation > $before }, 30)
            or die "CrmTest: httpd did not restart: " . $self->log_text . "\n";
    };
}

# Restart it by SIGNAL (default USR1, graceful) and wait until it is done.
sub restart {
    my ($self, $signal) = @_;

    $self->settle if ($signal || "USR1") =~ /^(?:HUP|TERM)$/;
    $self->begin_restart($signal || "USR1")->();
    wait_for(sub { $self->answers }, 30);
}

# The same, without connections of our clients, and wait until no process of before
# is left.
sub restart_all {
    my ($self, $signal) = @_;
    my %old = map { $_ => 1 } $self->children;

    CrmTest::Client->close_all($self->{port});
    $self->restart($signal);
    wait_for(sub { !grep { $old{$_} } $self->children }, 30)
        or die "CrmTest: old processes stay\n";
}

# The process ids of its children.
sub children {
    my ($self) = @_;
    my $pid = $self->{pid};
    return grep { $_ } split /\s+/,
        read_file("/proc/$pid/task/$pid/children", "");
}

# A client for it: client(key => ...).
sub client {
    my ($self, %arg) = @_;
    return CrmTest::Client->new(port => $self->{port}, %arg);
}

# How many requests shared a statement while CODE ran. It has /server-status.
sub shared_by {
    my ($self, $code) = @_;
    my $before = $self->client->counter("BatchedRequests");
    $code->();
    return $self->client->counter("BatchedRequests") - $before;
}

# The stacks of the threads of the httpd at PORT, and the database's activity,
# as text: to find out why an answer is missing.
sub stuck {
    my ($class, $port) = @_;
    my ($self) = grep { $_ && $_->{port} == $port && $_->{pid} }
        values %running;
    return "" unless $self;
    my $text = "";

    for my $pid ($self->{pid}, $self->children) {
        my %count;
        for my $task (glob "/proc/$pid/task/*") {
            my ($call, $fd) = split " ", read_file("$task/syscall", "");
            my $file = defined $fd && $fd =~ /^0x([0-9a-f]{1,7})$/
                && readlink "$task/fd/" . hex $1;
            $count{join " ", "system call", $call // "unknown",
                $file || "", read_file("$task/wchan", "")}++;
        }
        $text .= "  process $pid: $count{$_} in $_\n" for sort keys %count;
    }
    $text .= join "", map { "  database: " . join(" ", map { $_ // "" } @$_)
        . "\n" } eval { CrmTest::Postgres->get->sql("postgres",
        "SELECT pid, datname, state, wait_event_type, wait_event,
            now() - state_change, left(query, 80), right(query, 400)
        FROM pg_stat_activity
        WHERE backend_type = 'client backend'") };
    return $text . "  error_log: " . $self->log_text;
}

sub log_text { read_file("$_[0]{dir}/error_log") }
sub access_log { read_file("$_[0]{dir}/access_log") }

# Wait, not for long, until connections that clients have closed are closed
# here, too. Return whether none is open: mpm_event, told to end at once, closes
# what its workers have, and crashes (close_worker_sockets) over what one of
# them is just freeing.
sub settle {
    my ($self) = @_;
    my $local = sprintf ":%04X", $self->{port};
    my $closed = sub {
        !grep { my @column = split; @column > 3 && $column[1] =~ /$local$/
            && $column[3] =~ /^0[18]$/ } split /\n/, read_file("/proc/net/tcp");
    };

    wait_for($closed, 1) or return 0;
    sleep 0.03;                 # the worker frees what it has closed
    return $closed->();
}

# Stop it by SIGNAL (default: our clients close their connections; TERM when no other
# is open, else WINCH, which takes seconds more), then look at what it logged: lines
# that were not announced fail the test. httpd kills children that have not ended
# after some seconds, which may be too few where others use the processors.
sub stop {
    my ($self, $signal) = @_;

    return if $self->{stopped}++ || $self->{maker} != $$;
    delete $running{$self + 0};
    delete $self->{prism};
    if ($self->{pid}) {
        $self->{log}->may(qr/\bAH0004[5-7]: /) if busy() > 1.5;
        CrmTest::Client->close_all($self->{port}) if !$signal;
        my $settled = ($signal || "TERM") eq "TERM" && $self->settle;
        $signal ||= $settled || $ENV{CRM_VALGRIND} ? "TERM" : "WINCH";
        my ($status, $killed) = end_process($self->{pid}, $signal,
            $ENV{CRM_VALGRIND} ? 120 : 30);
        $self->{pid} = undef;
        CrmTest::Log::complain("httpd had to be killed") if $killed;
        CrmTest::Log::complain("httpd ended with status $status")
            if $status && !$killed && !$self->{may_die};
    }
    $self->{log}->check("error_log");
    for my $file (glob "$self->{dir}/valgrind.*") {
        my $text = read_file($file);
        CrmTest::Log::complain("valgrind complains", split /\n/, $text)
            if $text =~ /\S/;
    }
}

# End it at once, without checking its log.
sub kill_it {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    delete $running{$self + 0};
    end_process($pid, "TERM", 10);
}

# Stop all that run; called by done_testing.
sub stop_all {
    $_->stop for grep { $_ } values %running;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    return if $self->{maker} != $$;
    if (${^GLOBAL_PHASE} eq "DESTRUCT") {
        $self->kill_it;
    }
    else {
        $self->stop unless $self->{no_start} && !$self->{pid};
    }
    if ($ENV{CRM_KEEP}) {
        Test::More::diag("kept $self->{dir}");
    }
    else {
        remove_tree($self->{dir});
    }
}

# No server outlives the test, however it ends; a test that died before
# done_testing has failed already.
sub END {
    local ($?, $!, $@);
    $_->kill_it for grep { $_ && $_->{maker} == $$ } values %running;
}

1;
