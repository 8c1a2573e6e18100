# SPDX-License-Identifier: Apache-2.0
# CrmTest/Http2.pm: a client for single HTTP/2 frames (RFC 9113), over one
# socket, without TLS, with prior knowledge
#
#     my $h = CrmTest::Http2->new(port => $httpd->port, key => $w->key);
#     my $stream = $h->begin("POST", "/api/v1/contacts");
#     $h->data($stream, '{"bot_id": ');
#     $h->reset($stream);
#     my $r = $h->answer($h->begin("GET", "/api/v1/agents", end => 1));
#
# What comes back is {status, body}, or {reset => error code}.
package CrmTest::Http2;
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();

my %TYPE = (DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4, PING => 6,
    GOAWAY => 7, WINDOW_UPDATE => 8, CONTINUATION => 9);
my %NAME = reverse %TYPE;
my ($END_STREAM, $END_HEADERS, $PADDED, $PRIORITY) = (1, 4, 8, 32);
my $ACK = 1;
our $CANCEL = 8;
my $MAX_FRAME = 16384;
my $MAX_WINDOW = 2 ** 31 - 1;

# The statuses of HPACK's static table (RFC 7541, appendix A), and Huffman's
# codes of digits (appendix B).
my %STATUS = (8 => 200, 9 => 204, 10 => 206, 11 => 304, 12 => 400, 13 => 404,
    14 => 500);
my %DIGIT = ("00000" => 0, "00001" => 1, "00010" => 2, "011001" => 3,
    "011010" => 4, "011011" => 5, "011100" => 6, "011101" => 7,
    "011110" => 8, "011111" => 9);

# A connection to PORT of 127.0.0.1; KEY as bearer token if given; WINDOW: the
# initial flow-control window (default: unlimited).
sub new {
    my ($class, %arg) = @_;
    my $self = bless { timeout => 30, window => $MAX_WINDOW, next => 1,
        to_send => 65535, first_window => 65535, streams => {}, in => "",
        %arg }, $class;

    $self->{timeout} *= 10 if $ENV{CRM_VALGRIND};
    $self->{socket} = IO::Socket::INET->new(PeerAddr => "127.0.0.1",
        PeerPort => $self->{port}, Proto => "tcp",
        Timeout => $self->{timeout})
        or die "CrmTest: cannot connect to port $self->{port}: $@\n";
    $self->write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    # no dynamic table, no push
    $self->frame("SETTINGS", 0, 0, pack("nN" x 3, 1, 0, 2, 0, 4,
        $self->{window}));
    $self->frame("WINDOW_UPDATE", 0, 0, pack "N", $MAX_WINDOW - 65535);
    return $self;
}

sub close {
    my ($self) = @_;
    my $socket = delete $self->{socket};
    CORE::close($socket) if $socket;
}

sub write {
    my ($self, $bytes) = @_;
    local $SIG{PIPE} = "IGNORE";
    my $sent = 0;

    while ($sent < length $bytes) {
        my $n = syswrite $self->{socket}, $bytes, length($bytes) - $sent,
            $sent;
        return 0 unless defined $n;     # closed: what was said is read
        $sent += $n;
    }
    return 1;
}

sub frame {
    my ($self, $type, $flags, $stream, $payload) = @_;
    $self->write(substr(pack("N", length $payload), 1)
        . pack("CCN", $TYPE{$type}, $flags, $stream) . $payload);
}

# A header as a literal without indexing or Huffman coding (HPACK).
sub plain {
    my $out = "\0";

    for my $text (@_) {
        my ($first, $rest) = (length $text, "");
        if ($first >= 127) {
            my $n = $first - 127;
            for ($first = 127; $n >= 128; $n >>= 7) {
                $rest .= chr($n & 127 | 128);
            }
            $rest .= chr $n;
        }
        $out .= chr($first) . $rest . $text;
    }
    return $out;
}

# Begin a request: METHOD, PATH, headers => [name => value, ...], body => bytes,
# end => 1 when that is all of it. Returns the stream.
sub begin {
    my ($self, $method, $path, %arg) = @_;
    my $id = $self->{next};
    my @headers = (":method" => $method, ":scheme" => "http",
        ":authority" => $self->{host} || "127.0.0.1", ":path" => $path,
        defined $self->{key} ? (authorization => "Bearer $self->{key}") : (),
        $method =~ /^P/ ? ("content-type" => "application/json") : (),
        @{$arg{headers} || []});
    my $block = "";

    $self->{next} += 2;
    while (my ($name, $value) = splice @headers, 0, 2) {
        $block .= plain($name, $value);
    }
    $self->{streams}{$id} = { status => undef, body => "",
        to_send => $self->{first_window} };
    my $ends = $arg{end} && !defined $arg{body};
    $self->frame("HEADERS", $END_HEADERS | ($ends ? $END_STREAM : 0), $id,
        $block);
    $self->data($id, $arg{body}, end => $arg{end}) if defined $arg{body};
    return $id;
}

# Send BYTES of the body of stream ID, and its end with end => 1, as fast as
# the server takes them. Stops where the stream has ended; returns how many
# were sent.
sub data {
    my ($self, $id, $bytes, %arg) = @_;
    my $stream = $self->{streams}{$id};
    my $sent = 0;

    while ($sent < length $bytes && !$stream->{done}) {
        my ($n) = sort { $a <=> $b } length($bytes) - $sent, $MAX_FRAME,
            $self->{to_send}, $stream->{to_send};
        $self->read_frame, next if $n <= 0;
        my $last = $arg{end} && $sent + $n == length $bytes;
        $self->frame("DATA", $last ? $END_STREAM : 0, $id,
            substr $bytes, $sent, $n);
        $sent += $n;
        $_->{to_send} -= $n for $self, $stream;
        $self->read_frame while $self->has_more;
    }
    return $sent;
}

# Whether something has arrived.
sub has_more {
    my ($self) = @_;
    return length $self->{in}
        || IO::Select->new($self->{socket})->can_read(0);
}

# Reset stream ID with the error CODE.
sub reset {
    my ($self, $id, $code) = @_;
    $self->frame("RST_STREAM", 0, $id, pack "N", $code // $CANCEL);
    $self->{streams}{$id}{done} = 1;
}

# Send PING and wait for its answer: then the server has read every earlier
# frame.
sub ping {
    my ($self) = @_;
    my $count = $self->{pongs} // 0;
    $self->frame("PING", 0, 0, "8 octets");
    $self->read_frame until ($self->{pongs} // 0) > $count;
}

# Wait for the answer of stream ID.
sub answer {
    my ($self, $id) = @_;
    my $stream = $self->{streams}{$id};

    $self->read_frame until $stream->{done};
    return delete $self->{streams}{$id};
}

# METHOD PATH as begin() has it, to its end.
sub request {
    my ($self, $method, $path, %arg) = @_;
    $arg{body} = JSON::PP->new->utf8->canonical->encode(delete $arg{json})
        if exists $arg{json};
    return $self->answer($self->begin($method, $path, %arg, end => 1));
}

# ---- what comes back ---------------------------------------------------------

sub read_bytes {
    my ($self, $length) = @_;

    while (length $self->{in} < $length) {
        IO::Select->new($self->{socket})->can_read($self->{timeout})
            or die "CrmTest: HTTP/2: no frame within $self->{timeout} s\n"
                . CrmTest::Httpd->stuck($self->{port});
        sysread($self->{socket}, $self->{in}, 65536, length $self->{in})
            or die "CrmTest: HTTP/2: the connection was closed, GOAWAY "
                . ($self->{goaway} // "none") . "\n";
    }
    return substr $self->{in}, 0, $length, "";
}

# Read one frame and act on it.
sub read_frame {
    my ($self) = @_;
    my ($high, $low, $type, $flags, $id) = unpack "CnCCN",
        $self->read_bytes(9);
    my $payload = $self->read_bytes($high << 16 | $low);
    my $what = $NAME{$type} or return;
    my $stream = $self->{streams}{$id &= $MAX_WINDOW};

    if ($what eq "SETTINGS" && !($flags & $ACK)) {
        $self->settings($payload);
    }
    elsif ($what eq "PING") {
        $flags & $ACK ? $self->{pongs}++
            : $self->frame("PING", $ACK, 0, $payload);
    }
    elsif ($what eq "GOAWAY") {
        $self->{goaway} = (unpack "NN", $payload)[1];
    }
    elsif ($what eq "WINDOW_UPDATE") {
        ($id ? $stream || {} : $self)->{to_send} += unpack "N", $payload;
    }
    elsif (!$stream) {
        return;             # of one that was given up
    }
    elsif ($what eq "RST_STREAM") {
        # without an error: no more of the body is wanted
        $stream->{reset} = unpack("N", $payload) || undef;
        $stream->{done} = 1;
    }
    elsif ($what eq "DATA") {
        $stream->{body} .= unpadded($payload, $flags);
    }
    elsif ($what eq "HEADERS") {
        my $block = unpadded($payload, $flags);
        substr($block, 0, 5) = "" if $flags & $PRIORITY;
        my $status = status_of($block);
        $stream->{status} = $status if $status >= 200;
    }
    $stream->{done} = 1 if $stream && $flags & $END_STREAM
        && $what =~ /^(?:DATA|HEADERS)$/;
}

sub unpadded {
    my ($payload, $flags) = @_;
    return $payload unless $flags & $PADDED;
    return substr $payload, 1, length($payload) - 1 - ord $payload;
}

sub settings {
    my ($self, $payload) = @_;

    while ($payload =~ /(.{6})/gs) {
        my ($id, $value) = unpack "nN", $1;
        next unless $id == 4;
        $_->{to_send} += $value - $self->{first_window}
            for values %{$self->{streams}};
        $self->{first_window} = $value;
    }
    $self->frame("SETTINGS", $ACK, 0, "");
}

# The :status that BLOCK, headers in HPACK, begins with.
sub status_of {
    my ($block) = @_;

    # changes of the table's size come first
    substr($block, 0, 1) = "" while (ord($block) & 0xe0) == 0x20;
    my $first = ord $block;
    return $STATUS{$first & 127} // die "CrmTest: HTTP/2: no status first\n"
        if $first & 128;
    my $length = ord substr $block, 1, 1;
    my $value = substr $block, 2, $length & 127;
    return $value unless $length & 128;
    my $bits = unpack "B*", $value;
    my $code = join "|", keys %DIGIT;
    my @digits = $bits =~ /\G($code)/g;
    return join "", map { $DIGIT{$_} } @digits[0 .. 2];
}

1;
