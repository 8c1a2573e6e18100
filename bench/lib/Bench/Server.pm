# SPDX-License-Identifier: Apache-2.0
# Bench/Server.pm: the contestants, started on free ports of 127.0.0.1
package Bench::Server;
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use CrmTest::Process qw(demoted unprivileged spawn end_process run_program
    wait_for read_file write_file free_port);

my %running;            # pid => seconds it is given to end

# event and worker as crmapi.conf advises. prefork has as many children as the
# others have connections to the database.
our $THREADS = 512;
my $threads = join "", map { "$_\n" } "ServerLimit 2", "StartServers 2",
    "ThreadLimit 256", "ThreadsPerChild 256", "MaxRequestWorkers $THREADS",
    "MinSpareThreads 1", "MaxSpareThreads $THREADS",
    "ExtendedStatus Off";
my %mpm = (
    event => $threads,
    worker => $threads,
    prefork => "StartServers 16\nMinSpareServers 1\nMaxSpareServers 32\n"
        . "MaxRequestWorkers 32\n",
);
our @MODULES = qw(authn_core authz_core authz_host dir env filter headers
    mime reqtimeout setenvif status unixd);

# Start COMMAND; wait until port PORT answers and, if given, READY->() is true.
sub start {
    my ($class, %arg) = @_;
    my $self = bless { %arg }, $class;

    $self->{pid} = spawn(command => $arg{command}, env => $arg{env} || {},
        log => "$arg{dir}/output", chdir => "/");
    $running{$self->{pid}} = 20;
    my $up = wait_for(sub {
        return -1 if waitpid($self->{pid}, WNOHANG) != 0;
        return 0 if $arg{ready} && !$arg{ready}->();
        return !!IO::Socket::INET->new(PeerAddr => "127.0.0.1",
            PeerPort => $arg{port}, Proto => "tcp", Timeout => 2);
    }, 30);
    if (!$up || $up < 0) {
        die "bench: $arg{name} did not start: "
            . join("", map { read_file("$arg{dir}/$_", "") }
                qw(output error_log)) . "\n";
    }
    return $self;
}

# A folder that servers can write to.
sub folder {
    my $dir = tempdir("crm-bench-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    if (my $user = unprivileged()) {
        chown((getpwnam $user)[2, 3], $dir) or die "bench: $dir: $!\n";
    }
    chmod 0755, $dir;
    return $dir;
}

# An httpd: name, mpm, modules (more of them), conf; tls => [certificate, key]
# for a second port with TLS and HTTP/2.
sub httpd {
    my ($class, %arg) = @_;
    my $dir = folder();
    my $port = free_port();
    my $tls_port = $arg{tls} ? free_port() : undef;
    my $modules = $arg{modulesdir};
    my $text = "ServerRoot $dir\nServerName 127.0.0.1\n"
        . "Listen 127.0.0.1:$port\n";

    mkdir "$dir/htdocs";
    for my $name ("mpm_$arg{mpm}", @MODULES, $arg{tls}
            ? qw(socache_shmcb ssl http2) : (), @{$arg{modules} || []}) {
        my $file = $name =~ m{/} ? $name : "$modules/mod_$name.so";
        my ($short) = $name =~ m{([^/]+?)(?:\.so)?\z};
        $short =~ s/^mod_|^lib(?=php)//;
        $short = "php" if $short =~ /^php/;
        $text .= "LoadModule ${short}_module $file\n" if -f $file;
    }
    if (my $user = unprivileged()) {
        $text .= "User $user\nGroup " . getgrgid((getpwnam $user)[3]) . "\n";
    }
    $text .= $mpm{$arg{mpm}} . <<"END";
PidFile $dir/httpd.pid
DefaultRuntimeDir $dir
TypesConfig /dev/null
DocumentRoot @{[$arg{root} || "$dir/htdocs"]}
ErrorLog $dir/error_log
LogLevel warn mpm_$arg{mpm}:notice
Timeout 300
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 5
RequestReadTimeout header=20-40,minrate=500 body=10,minrate=500
<Directory />
    AllowOverride None
    Require all denied
</Directory>
<Directory @{[$arg{root} || "$dir/htdocs"]}>
    Require all granted
</Directory>
END
    $text .= <<"END" if $arg{tls};
Listen 127.0.0.1:$tls_port
SSLSessionCache shmcb:$dir/ssl_cache(512000)
<VirtualHost 127.0.0.1:$tls_port>
    ServerName 127.0.0.1
    Protocols h2 http/1.1
    SSLEngine On
    SSLCertificateFile $arg{tls}[0]
    SSLCertificateKeyFile $arg{tls}[1]
@{[$arg{tls_conf} // ""]}
</VirtualHost>
END
    $text .= $arg{conf} // "";
    write_file("$dir/httpd.conf", $text);
    return $class->start(name => $arg{name}, dir => $dir, port => $port,
        tls_port => $tls_port, base => $arg{base} // "/api/v1",
        command => [$arg{httpd}, "-d", $dir, "-f", "$dir/httpd.conf",
            "-DFOREGROUND"],
        ready => sub { read_file("$dir/error_log", "")
            =~ /resuming normal operations|configured -- / });
}

# mod_crmapi as build/crmapi.conf.in recommends it, without limits; mpm => event
# for that MPM.
sub crmapi {
    my ($class, %arg) = @_;
    my $wait = $arg{dbd} // "DBDMin 2\nDBDKeep 8\nDBDMax 16\n";
    return $class->httpd(name => "mod_crmapi", mpm => "worker", %arg,
        modules => ["dbd", $arg{module}],
        conf => "DBDriver pgsql\nDBDParams \"$arg{conninfo}"
            . " connect_timeout=5\"\n${wait}CrmApi On\nCrmApiReadLimit 0\n"
            . "CrmApiWriteLimit 0\nCrmApiUnknownKeyLimit 0\n"
            . ($arg{conf} // ""),
        tls_conf => "    CrmApi On\n");
}

# PHP in prefork, as Debian's package does it; opcache as PHP's manual advises
# for production.
sub php {
    my ($class, %arg) = @_;
    my ($so) = sort { $b cmp $a } glob "$arg{modulesdir}/libphp*.so";
    die "bench: mod_php is missing: build/setup --bench\n" unless $so;
    my $root = folder();
    my $ini = folder();
    write_file("$ini/php.ini", "opcache.validate_timestamps = 0\n"
        . "expose_php = Off\ndisplay_errors = Off\nlog_errors = On\n"
        . "pgsql.allow_persistent = On\n");
    write_file("$root/index.php", read_file("$arg{top}/bench/php/index.php"));
    return $class->httpd(name => "mod_php", mpm => "prefork", %arg,
        modules => ["rewrite", $so], root => $root,
        conf => <<"END");
SetEnv BENCH_DATABASE "$arg{conninfo}"
PHPIniDir $ini
AcceptPathInfo On
<Directory $root>
    CGIPassAuth On
    Options FollowSymLinks
    RewriteEngine On
    RewriteRule ^api/v1/ index.php [END]
    <FilesMatch "\\.php\\z">
        SetHandler application/x-httpd-php
    </FilesMatch>
</Directory>
END
}

# A server of two processes in JavaScript, run by the program RUN of the folder
# it is copied to.
sub javascript {
    my ($class, %arg) = @_;
    my $dir = folder();
    my $port = free_port();
    my $tls_port = $arg{tls} ? free_port() : undef;
    # what is needed lies where an unprivileged user can read it
    my ($code, $out, $err) = run_program(command => ["cp", "-R",
        (map { "$arg{npm}/$_" } @{$arg{packages}}), "$arg{top}/$arg{server}",
        $dir]);
    die "bench: $err\n" if $code;
    return $class->start(name => $arg{name}, dir => $dir, port => $port,
        tls_port => $tls_port, base => "/api/v1",
        command => [demoted(), $arg{run}->($dir), "$dir/server.js"],
        ready => sub { my $n = () = read_file("$dir/output", "") =~ /^ready$/mg;
            $n >= 2 },
        env => { NODE_ENV => "production", PORT => $port,
            DATABASE_HOST => $arg{host}, DATABASE_NAME => $arg{database},
            DATABASE_USER => $arg{user}, COUNT => $arg{count} // "yes",
            ($arg{tls} ? (TLS_PORT => $tls_port, TLS_CERTIFICATE
                => $arg{tls}[0], TLS_KEY => $arg{tls}[1]) : ()) });
}

# Fastify in a cluster of two.
sub fastify {
    my ($class, %arg) = @_;
    return $class->javascript(name => "Fastify", %arg,
        packages => ["node_modules"], server => "bench/fastify/server.js",
        run => sub { "node" });
}

# Bun in two processes with one port.
sub bun {
    my ($class, %arg) = @_;
    return $class->javascript(name => "Bun", %arg,
        packages => ["node_modules/\@oven/bun-linux-" . ((POSIX::uname())[4]
            eq "aarch64" ? "aarch64" : "x64") . "/bin/bun"],
        server => "bench/bun/server.js", run => sub { "$_[0]/bun" });
}

# Rust: hyper and tokio-postgres, from Debian's packages of their crates, built
# below build folder BUILD. QUICK builds it sooner and slower.
sub rust {
    my ($class, %arg) = @_;
    my $dir = folder();
    my $port = free_port();
    my $target = "$arg{build}/bench-rust";
    my $crates = "/usr/share/cargo/registry";
    my @client = glob("$crates/tokio-postgres-*");

    die "bench: Rust's crates are missing: build/setup --bench\n"
        unless @client;
    # a copy, because cargo writes Cargo.lock beside the sources
    for my $command (["mkdir", "-p", $target],
        ["cp", "-R", "$arg{top}/bench/rust/.", $target],
        ["cargo", "build", "--quiet", "--offline",
            ($arg{quick} ? () : "--release"),
            "--manifest-path", "$target/Cargo.toml",
            "--target-dir", "$target/target",
            "--config", 'source.crates-io.replace-with="debian"',
            "--config", "source.debian.directory=\"$crates\""],
        ["cp", "$target/target/" . ($arg{quick} ? "debug" : "release")
            . "/server", $dir]) {
        my ($code, $out, $err) = run_program(command => $command,
            seconds => 1800);
        die "bench: @$command: $err\n" if $code;
    }
    return $class->start(name => "Rust", dir => $dir, port => $port,
        base => "/api/v1", command => [demoted(), "$dir/server"],
        ready => sub { read_file("$dir/output", "") =~ /^ready$/m },
        env => { PORT => $port, DATABASE_HOST => $arg{host},
            DATABASE_NAME => $arg{database}, DATABASE_USER => $arg{user} });
}

# The processor time in seconds that PID and its descendants have used.
sub processor_time {
    my ($pid) = @_;
    my $children = read_file("/proc/$pid/task/$pid/children", "");
    # utime, stime, cutime, cstime: fields 14 to 17, after "pid (name)"
    my ($rest) = read_file("/proc/$pid/stat", "") =~ /\A.*\) (.*)/s;
    my @field = split " ", $rest // return 0;
    my $ticks = 0;
    $ticks += $_ for @field[11 .. 14];
    my $seconds = $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
    $seconds += processor_time($_) for split " ", $children;
    return $seconds;
}

# The ids of its processes, its own and its children's.
sub pids {
    my ($self) = @_;
    my $pid = $self->{pid};
    return ($pid, split " ", read_file("/proc/$pid/task/$pid/children"));
}

# What error_log and standard error have of level warn or worse.
sub complaints {
    my ($self) = @_;
    return grep { /\S/ && !/:(?:notice|info|debug)\]|^ready$/ }
        map { split /\n/, read_file("$self->{dir}/$_", "") } qw(error_log output);
}

# Die if it complains.
sub must_be_content {
    my ($self) = @_;
    my @bad = $self->complaints;
    die "bench: $self->{name} complains: $bad[0]\n" if @bad;
}

# End it; it must have had nothing to complain of.
sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    $self->must_be_content;
    delete $running{$pid};
    my (undef, $killed) = end_process($pid, "TERM", 20);
    die "bench: $self->{name} had to be killed\n" if $killed;
}

# Whatever way the benchmark ends, no server stays.
my $maker = $$;
sub END {
    local ($?, $!, $@);
    return if $$ != $maker;
    end_process($_, "TERM", 10) for keys %running;
}

1;
