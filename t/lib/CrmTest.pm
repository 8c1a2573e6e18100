# SPDX-License-Identifier: Apache-2.0
# CrmTest.pm: what a test file needs: servers, databases, workspaces, checks
#
#     use FindBin; use lib "$FindBin::RealBin/lib";
#     use CrmTest;
#
#     my $httpd = httpd(database => database());
#     my $w = workspace($httpd, plan => "pro");
#     my $c = $w->client;
#     my $r = $c->post("/api/v1/contacts", {bot_id => $w->agent});
#     status_is($r, 201, "a contact is made");
#     $httpd->expect_log(qr/CRM1203/);
#     done_testing;
package CrmTest;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use JSON::PP ();
use Test2::IPC;         # checks in a forked process are the test's own
use Test::More ();
BEGIN {
    # servers run to the end, so do not wait for them
    Test2::API::test2_ipc_wait_disable();

    # all but done_testing, which checks the servers' logs first
    Test::More->import(import =>
        [grep { $_ ne "done_testing" } @Test::More::EXPORT]);
}
use Time::HiRes ();

our (%BUILD, $TOP);
BEGIN {
    # Where the sources and the build are. A test started by hand takes the
    # folder it is called in, or the one $CRM_BUILDDIR names.
    $TOP = abs_path(dirname(__FILE__) . "/../..");
    $TOP = $ENV{CRM_SRCDIR} if $ENV{CRM_SRCDIR};
    $ENV{CRM_SRCDIR} = $TOP;
    my ($dir) = grep { -f "$_/t/build.env" } $ENV{CRM_BUILDDIR} || (),
        ".", $TOP, "$TOP/_build/test";
    die "CrmTest: no build found: run make first, or set CRM_BUILDDIR\n"
        unless $dir;
    $dir = abs_path($dir);
    open(my $env, "<", "$dir/t/build.env") or die "CrmTest: $!\n";
    %BUILD = map { chomp; split /=/, $_, 2 } <$env>;
    $BUILD{DIR} = $dir;
    $BUILD{MODULE} = "$dir/mod_crmapi.so";
    $BUILD{CTL} = "$dir/crmapictl";
    $BUILD{WORKER} = "$dir/crmapid";
    $ENV{CRM_BUILDDIR} = $dir;
    $SIG{$_} = sub { exit 130 } for qw(INT TERM HUP);
    $ENV{LC_ALL} = "C.UTF-8";
    $ENV{PATH} = "$ENV{PATH}:/usr/sbin:/sbin";
}
use CrmTest::Client;
use CrmTest::Contract;
use CrmTest::Httpd;
use CrmTest::Postgres;
use CrmTest::Process qw(run_program wait_for read_file write_file busy
    free_port);
use CrmTest::Worker;
use CrmTest::Workspace;

our @EXPORT = (qw(httpd worker database sql workspace crmapictl crmapictl_ok
    crmapictl_json postgres
    status_is json_is error_is unavailable_is wait_for run_program read_file write_file
    uuid library documented fenced free_port sanitized valgrinded limits_files busy
    true false done_testing),
    grep { $_ ne "done_testing" } @Test::More::EXPORT);

binmode $_, ":utf8" for map { Test::More->builder->$_ }
    qw(output failure_output todo_output);

# Compile t/lib/NAME.c to a library in FOLDER, for LD_PRELOAD. Return its path.
sub library {
    my ($name, $folder) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $file = "$folder/$name.so";
    my ($code, $out, $err) = run_program(command => [split(/ /, $BUILD{CC}),
        qw(-shared -fPIC -pthread -o), $file, "$TOP/t/lib/$name.c", "-ldl"]);
    is($code, 0, "the library $name") or diag($err);
    return $file;
}

# The fenced blocks of LANGUAGE in TEXT.
sub fenced {
    my ($text, $language) = @_;
    my @blocks;
    while ($text =~ /^( *)```\Q$language\E\n(.*?)^ *```$/msg) {
        my ($indent, $block) = ($1, $2);
        push @blocks, $block =~ s/^$indent//mgr;
    }
    return @blocks;
}

# The fenced blocks of LANGUAGE in docs/FILE, or in its section HEADING ("## Name")
# alone. Dies when there are none.
sub documented {
    my ($file, $language, $heading) = @_;
    my $text = read_file("$TOP/docs/$file");
    if ($heading) {
        my $levels = $heading =~ /^### / ? "###?" : "##";
        ($text) = $text =~ /^\Q$heading\E\n(.*?)(?=^$levels |\z)/ms
            or die "CrmTest: docs/$file has no $heading\n";
    }
    my @blocks = fenced($text, $language)
        or die "CrmTest: docs/$file has no block of $language\n";
    return @blocks;
}

sub true { JSON::PP::true }
sub false { JSON::PP::false }

# Whether the build has sanitizers, and whether httpd runs under valgrind:
# for tests of speed, and only for them.
sub sanitized { $BUILD{SANITIZERS} ne "no" }
sub valgrinded { !!$ENV{CRM_VALGRIND} }

# Leave out a test that limits the size of files: the sanitizer for threads writes one
# itself when a program begins.
sub limits_files {
    Test::More::plan(skip_all => "the sanitizer for threads needs a file itself")
        if $BUILD{SANITIZERS} eq "thread";
}

# The PostgreSQL of this run.
sub postgres { CrmTest::Postgres->get }

my @databases;
# A new database; its name. With template => undef an empty one, else with
# the schema applied.
sub database {
    my (%arg) = @_;
    my $pg = postgres();
    my $template = exists $arg{template} ? $arg{template}
        : $CrmTest::Postgres::TEMPLATE;

    $pg->make_template($BUILD{CTL})
        if ($template // "") eq $CrmTest::Postgres::TEMPLATE;
    my $name = $pg->create_database($template, $BUILD{CTL});
    push @databases, [$$, $name];
    CrmTest::Pooler->set_roles($pg, $name) if $template && CrmTest::Pooler->mode;
    return $name;
}

# A failure of the database may be caused by an upgrade of PostgreSQL: see
# get().
CrmTest::Client->hook(sub {
    my ($request, $response) = @_;
    postgres() if $response->status >= 500 && @databases;
});

# Run SQL in DATABASE as superuser: rows as arrays, or the first value.
sub sql {
    my ($database, $sql) = @_;
    return postgres()->sql($database, $sql);
}

# Start an httpd; see CrmTest::Httpd.
sub httpd { CrmTest::Httpd->new(@_) }

# Start a crmapid; see CrmTest::Worker.
sub worker { CrmTest::Worker->new(@_) }

# Run crmapictl on DATABASE (undef: none given) with ARGUMENTS. Options come
# first in a hash: {stdin => text, env => {...}}. Returns (exit code, stdout,
# stderr).
sub crmapictl {
    my ($database, @arguments) = @_;
    my %option = ref $arguments[0] eq "HASH" ? %{shift @arguments} : ();
    my %env = (CRMAPI_SCHEMA_DIR => "$TOP/schema",
        CRMAPI_DATABASE => undef, %{$option{env} || {}});

    $env{CRMAPI_DATABASE} = postgres()->conninfo($database)
        if defined $database && !exists $option{env}{CRMAPI_DATABASE};
    return run_program(command => [$BUILD{CTL}, @arguments],
        stdin => $option{stdin}, env => \%env);
}

# The same for a call that must succeed: returns stdout without the last end
# of line, and dies with stderr otherwise.
sub crmapictl_ok {
    my ($code, $out, $err) = crmapictl(@_);
    die "CrmTest: crmapictl @_[1 .. $#_]: exit $code: $err\n" if $code;
    chomp $out;
    return $out;
}

# The same, for what it says with --json.
sub crmapictl_json {
    my ($database, @arguments) = @_;
    my @option = ref $arguments[0] eq "HASH" ? shift @arguments : ();

    return JSON::PP->new->utf8->decode(
        crmapictl_ok($database, @option, "--json", @arguments));
}

# A new workspace for HTTPD (or a database's name), with a key, and with a twin
# whose ids must never appear; see CrmTest::Workspace.
sub workspace { CrmTest::Workspace->new(@_) }

my $uuids = 0;
# A UUID (version 7) that no other call returns.
sub uuid {
    my $ms = int(Time::HiRes::time() * 1000);
    return sprintf "%08x-%04x-7%03x-%04x-%08x%04x", $ms >> 16, $ms & 0xffff,
        ++$uuids & 0xfff, 0x8000 | int rand 0x4000, $$ , int rand 0x10000;
}

# RESPONSE has STATUS; if not, the whole response is shown.
sub status_is {
    my ($response, $status, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $name //= "$response->{request}{method} $response->{request}{path}"
        . " is $status";
    my $ok = is($response->status, $status, $name);
    diag($response->text) unless $ok;
    return $ok;
}

# RESPONSE is an error of STATUS with CODE in the envelope of contract 5.5,
# and with FIELDS (an array) named in the details if given.
sub error_is {
    my ($response, $status, $code, $name, $fields) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $name //= "$response->{request}{method} $response->{request}{path}"
        . " is $status $code";
    my $json = eval { $response->json };
    my $error = ref $json eq "HASH" ? $json->{error} : undef;
    my $got = {
        status => $response->status,
        type => $response->header("Content-Type"),
        code => ref $error eq "HASH" ? $error->{code} : undef,
        $fields ? (fields => $response->fields) : ()
    };
    my $ok = is_deeply($got, { status => $status,
        type => "application/json", code => $code,
        $fields ? (fields => [sort @$fields]) : () }, $name);
    $ok &&= ok(!ref $error->{message} && length $error->{message},
        "$name: with a message") if $ok && !length($error->{message} // "");
    $ok &&= ok(@{$response->details || []}, "$name: 5.6 with details")
        if $ok && $status == 422 && !@{$response->details || []};
    diag($response->text) unless $ok;
    return $ok;
}

# RESPONSE is the 503 of contract 5.5, and says nothing of the inside.
sub unavailable_is {
    my ($response, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $ok = error_is($response, 503, "service_unavailable", $name);
    $ok &= like($response->header("Retry-After") // "", qr/^[1-9]\d*$/,
        "5.5 $name: with Retry-After");
    $ok &= unlike($response->body,
        qr/socket|server|connect|postgres|\.s\.PGSQL|dbd/i,
        "5.5 $name: and nothing of the inside");
    return $ok;
}

# The data of RESPONSE is EXPECTED.
sub json_is {
    my ($response, $expected, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $ok = is_deeply(eval { $response->data }, $expected, $name);
    diag($response->text) unless $ok;
    return $ok;
}

# Stop the servers, check their logs, then end the test.
sub done_testing {
    CrmTest::Worker::stop_all();
    CrmTest::Httpd::stop_all();
    for my $database (splice @databases) {
        postgres()->drop_database($database->[1]) if $database->[0] == $$;
    }
    Test::More::done_testing(@_);
}

1;
