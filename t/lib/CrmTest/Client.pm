# SPDX-License-Identifier: Apache-2.0
# CrmTest/Client.pm: an HTTP/1.1 client that hides nothing, over one socket
package CrmTest::Client;
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Cpanel::JSON::XS ();
use Scalar::Util qw(weaken);
use Time::HiRes qw(time);

# Called with (request, response) for every answer any client gets; see hook().
my @hooks;

# Call CODE with every response from now on: {method, path, query, headers,
# body, route?}, a CrmTest::Response and the client.
sub hook {
    my ($class, $code) = @_;
    push @hooks, $code;
}

# Port of a server => that of a proxy before it: see CrmTest::Prism.
our %VIA;

# Address of a client => it. They may be closed.
my %clients;

# Close the connections of this process to the server at PORT. httpd would wait for
# seconds until they are closed from both sides.
sub close_all {
    my ($class, $port) = @_;
    $_->close for grep { $_ && $_->{port} == $port } values %clients;
}

# A client for PORT of 127.0.0.1. KEY is sent as bearer token if given.
sub new {
    my ($class, %arg) = @_;
    return bless { port => $arg{port}, key => $arg{key},
        host => $arg{host} || "127.0.0.1",
        timeout => ($arg{timeout} || 30) * ($ENV{CRM_VALGRIND} ? 10 : 1),
        headers => $arg{headers} || {} }, $class;
}

# A client for the same server with another KEY (undef: none).
sub with_key {
    my ($self, $key) = @_;
    return ref($self)->new(%$self, key => $key);
}

# Open the connection, or take the one that is open.
sub socket {
    my ($self) = @_;
    my $socket = $self->{socket};

    if ($socket && ($self->{buffer} // "") eq ""
        && IO::Select->new($socket)->can_read(0)) {
        $self->close;       # it was closed by the server meanwhile
    }
    return $self->{socket} if $self->{socket};
    $self->{buffer} = "";
    $self->{socket} = IO::Socket::INET->new(
        PeerAddr => "127.0.0.1", Proto => "tcp",
        PeerPort => $VIA{$self->{port}} // $self->{port},
        Timeout => $self->{timeout})
        or die "CrmTest: cannot connect to port $self->{port}: $@\n";
    $self->{socket}->autoflush(1);
    weaken($clients{$self + 0} = $self);
    return $self->{socket};
}

sub close {
    my ($self) = @_;
    my $socket = delete $self->{socket};
    $self->{buffer} = "";
    CORE::close($socket) if $socket;
}

# Send BYTES as they are.
sub send_raw {
    my ($self, $bytes) = @_;
    my $socket = $self->socket;
    local $SIG{PIPE} = "IGNORE";
    my $sent = 0;

    while ($sent < length $bytes) {
        my $n = syswrite($socket, $bytes, length($bytes) - $sent, $sent);
        last unless defined $n;     # the server closed: its answer is read
        $sent += $n;
    }
    return $sent == length $bytes;
}

# Read until CONDITION->() is true of the buffer. Return false at the end of
# the connection or after the timeout.
sub fill_until {
    my ($self, $condition) = @_;
    my $until = time + $self->{timeout};

    until ($condition->()) {
        my $left = $until - time;
        if ($left <= 0 || !IO::Select->new($self->{socket})->can_read($left)) {
            my $got = length $self->{buffer};
            die "CrmTest: no answer within $self->{timeout} s, $got bytes"
                . " read\n" . CrmTest::Httpd->stuck($self->{port});
        }
        my $n = sysread($self->{socket}, $self->{buffer}, 65536,
            length $self->{buffer});
        return 0 unless $n;
    }
    return 1;
}

# Read one response. METHOD is that of the request. Returns undef when the
# connection ends before one begins.
sub read_response {
    my ($self, $method) = @_;
    my $buffer = \$self->{buffer};

    RESPONSE:
    if (!$self->fill_until(sub { $$buffer =~ /\r\n\r\n/ })) {
        return undef if $$buffer eq "";
        die "CrmTest: the connection ended in the middle of headers: "
            . substr($$buffer, 0, 200) . "\n";
    }
    $$buffer =~ s/\A(.*?)\r\n\r\n//s;
    my ($line, @lines) = split /\r\n/, $1;
    my ($version, $status, $reason) = $line =~ m{^HTTP/(\d\.\d) (\d{3}) ?(.*)}
        or die "CrmTest: bad status line: $line\n";
    my @headers = map { /^([^:\s]+):\s*(.*?)\s*$/
        or die "CrmTest: bad header line: $_\n"; [$1, $2] } @lines;
    my $response = bless { status => $status + 0, reason => $reason,
        version => $version, headers => \@headers, body => "" },
        "CrmTest::Response";
    if ($status < 200) {
        push @{$self->{interim}}, $response;
        goto RESPONSE;
    }
    my $length = $response->header("Content-Length");
    my $coding = lc($response->header("Transfer-Encoding") // "");
    if (uc $method eq "HEAD" || $status == 204 || $status == 304) {
        # no body
    }
    elsif ($coding eq "chunked") {
        $response->{body} = $self->read_chunks;
    }
    elsif (defined $length) {
        $self->fill_until(sub { length $$buffer >= $length })
            or die "CrmTest: the body broke off\n";
        $response->{body} = substr $$buffer, 0, $length, "";
    }
    else {
        $self->fill_until(sub { 0 });
        $response->{body} = $$buffer;
        $$buffer = "";
    }
    my $connection = lc($response->header("Connection") // "");
    if ($connection eq "close" || ($version < 1.1
            && $connection ne "keep-alive")) {
        $response->{closes} = 1;
        $self->close;
    }
    return $response;
}

sub read_chunks {
    my ($self) = @_;
    my $buffer = \$self->{buffer};
    my $body = "";

    while (1) {
        $self->fill_until(sub { $$buffer =~ /\A[^\n]*\n/ })
            or die "CrmTest: the chunks broke off\n";
        $$buffer =~ s/\A([0-9a-fA-F]+)[^\n]*\n//
            or die "CrmTest: bad chunk\n";
        my $size = hex $1;
        $self->fill_until(sub { length $$buffer >= $size + 2 })
            or die "CrmTest: a chunk broke off\n";
        $body .= substr $$buffer, 0, $size;
        substr($$buffer, 0, $size + 2) = "";
        last if $size == 0;
    }
    return $body;
}

# Percent-encode TEXT for a query.
sub escape {
    my ($text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    return $text =~ s/([^A-Za-z0-9._~-])/sprintf "%%%02X", ord $1/ger;
}

# The bytes of the request METHOD PATH, and what they say. In ARG: query => {name =>
# value or [values]} or text, json => a value or body => bytes, headers => {...}
# (undef takes one away), key => another key or undef.
sub bytes_of {
    my ($self, $method, $path, %arg) = @_;
    my %headers = ("Host" => $self->{host}, %{$self->{headers}});
    my $key = exists $arg{key} ? $arg{key} : $self->{key};
    my $body = $arg{body};
    my $query = $arg{query};

    if (ref $query) {
        $query = join "&", map { my $name = $_;
            map { escape($name) . "=" . escape($_) }
                ref $query->{$name} ? @{$query->{$name}} : $query->{$name};
        } sort keys %$query;
    }
    my $target = $path . (defined $query && $query ne "" ? "?$query" : "");
    utf8::encode($target) if utf8::is_utf8($target);
    $headers{Authorization} = "Bearer $key" if defined $key;
    if (exists $arg{json}) {
        $body = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref
            ->encode($arg{json});
    }
    if (defined $body) {
        utf8::encode($body) if utf8::is_utf8($body);
        $headers{"Content-Type"} = "application/json";
        $headers{"Content-Length"} = length $body;
    }
    for my $name (keys %{$arg{headers} || {}}) {
        my $value = $arg{headers}{$name};
        delete @headers{grep { lc $_ eq lc $name } keys %headers};
        $headers{$name} = $value if defined $value;
    }
    my $head = "$method $target HTTP/1.1\r\n";
    for my $name (sort { ($b eq "Host") <=> ($a eq "Host") || $a cmp $b }
            keys %headers) {
        my $value = $headers{$name};
        $head .= "$name: $_\r\n" for ref $value ? @$value : $value;
    }
    return ("$head\r\n" . ($body // ""), { method => $method, path => $path,
        query => $query, headers => \%headers, body => $body });
}

# Send a request, as bytes_of() has it, whose answer read_response() reads. Returns the
# client.
sub ask {
    my ($self, @request) = @_;
    my ($bytes) = $self->bytes_of(@request);
    $self->send_raw($bytes);
    return $self;
}

# Send a request, as bytes_of() has it. Returns a CrmTest::Response.
sub request {
    my ($self, $method, $path, %arg) = @_;
    my ($bytes, $request) = $self->bytes_of($method, $path, %arg);
    my $response;
    # The server may close a kept connection at the moment of its use.
    for my $try (1, 2) {
        my $kept = !!$self->{socket};
        $self->send_raw($bytes);
        $response = eval { $self->read_response($method) };
        last if $response;
        my $error = $@;
        $self->close;
        die $error || "CrmTest: $method $path: the connection was closed\n"
            if $error || !$kept || $try == 2;
    }
    $response->{request} = $request;
    for my $hook (@hooks) {
        $hook->($response->{request}, $response, $self);
    }
    return $response;
}

# Send any BYTES on a new connection. Return the response, or undef if the
# server closed the connection without one.
sub raw {
    my ($self, $bytes, %arg) = @_;
    my $client = ref($self)->new(%$self, socket => undef);
    my ($method) = $bytes =~ /^(\w+)/;

    $client->send_raw($bytes);
    shutdown($client->{socket}, 1) if $arg{shutdown};
    my $response = $client->read_response($method || "GET");
    $client->close;
    if ($response) {
        my ($path) = $bytes =~ /^\S+ ([^\s?]+)/;
        $response->{request} = { method => $method, path => $path,
            raw => $bytes, headers => {} };
        $_->($response->{request}, $response, $self) for @hooks;
    }
    return $response;
}

# The counter NAME of a server that has /server-status.
sub counter {
    my ($self, $name) = @_;
    my ($value) = $self->get("/server-status?auto")->body
        =~ /^CrmApi$name: (\d+)$/m;
    return $value;
}

sub get { my ($self, $path, %arg) = @_; $self->request("GET", $path, %arg) }
sub head { my ($self, $path, %arg) = @_; $self->request("HEAD", $path, %arg) }
sub options {
    my ($self, $path, %arg) = @_;
    $self->request("OPTIONS", $path, %arg);
}
sub delete {
    my ($self, $path, %arg) = @_;
    $self->request("DELETE", $path, %arg);
}
sub post {
    my ($self, $path, $json, %arg) = @_;
    $self->request("POST", $path, (defined $json ? (json => $json) : ()),
        %arg);
}
sub patch {
    my ($self, $path, $json, %arg) = @_;
    $self->request("PATCH", $path, (defined $json ? (json => $json) : ()),
        %arg);
}

package CrmTest::Response;

sub status { $_[0]{status} }
sub body { $_[0]{body} }

# The value of header NAME, undef without one; all of them in list context.
sub header {
    my ($self, $name) = @_;
    my @values = map { $_->[1] } grep { lc $_->[0] eq lc $name }
        @{$self->{headers}};
    return wantarray ? @values : $values[0];
}

# The body as JSON; dies if it is not JSON.
sub json {
    my ($self) = @_;
    $self->{json} //= do {
        my $value = eval {
            Cpanel::JSON::XS->new->utf8->allow_nonref->decode($self->{body});
        };
        die "CrmTest: not JSON: " . substr($self->{body}, 0, 200) . "\n"
            if $@;
        \$value;
    };
    return ${$self->{json}};
}

# The member "data"; dies if there is none.
sub data {
    my ($self) = @_;
    my $json = $self->json;
    die "CrmTest: an answer without data: " . $self->text . "\n"
        unless ref $json eq "HASH" && exists $json->{data};
    return $json->{data};
}

# The ids of a list, and an error's code, message and details.
sub ids { [map { $_->{id} } @{$_[0]->data}] }
sub code { ($_[0]->json->{error} || {})->{code} }
sub message { ($_[0]->json->{error} || {})->{message} }
sub details { ($_[0]->json->{error} || {})->{details} }

# Names of the fields in the details of a 422, sorted.
sub fields { [sort map { $_->{field} } @{$_[0]->details || []}] }

# The whole response on a few lines, for diag().
sub text {
    my ($self) = @_;
    return join("\n", "HTTP $self->{status} $self->{reason}",
        (map { "$_->[0]: $_->[1]" } @{$self->{headers}}), "",
        substr $self->{body}, 0, 2000);
}

1;
