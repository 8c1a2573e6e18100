# SPDX-License-Identifier: Apache-2.0
# CrmTest/Mcp.pm: a client of the Model Context Protocol
#
#     my $mcp = CrmTest::Mcp->new($w->client);
#     my $r = $mcp->call("tools/list");             # the response
#     my $result = $mcp->tool("contacts_get", { id => $id });
package CrmTest::Mcp;
use strict;
use warnings;
use Cpanel::JSON::XS ();
use Encode ();
use MIME::Base64 qw(encode_base64);
use Test::More ();

our $PATH = "/crmapi/mcp";
our $MODERN = "2026-07-28";

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;
my $id = 0;

# A client that sends by CLIENT, of VERSION (default: the newest).
sub new {
    my ($class, $client, $version) = @_;
    return bless { client => $client, version => $version // $MODERN }, $class;
}

# The same with another KEY.
sub with_key {
    my ($self, $key) = @_;
    return ref($self)->new($self->{client}->with_key($key), $self->{version});
}

# What a modern request says about itself.
sub meta {
    return { "io.modelcontextprotocol/protocolVersion" => $MODERN,
        "io.modelcontextprotocol/clientInfo" => { name => "t", version => "1" },
        "io.modelcontextprotocol/clientCapabilities" => {} };
}

# TEXT as the header Mcp-Name has it.
sub header_text {
    my ($text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    return $text =~ /^[!-~](?:[ -~]*[!-~])?$/ && $text !~ /^=\?base64\?/ ? $text
        : "=?base64?" . encode_base64($text, "") . "?=";
}

# The headers of a request of METHOD with PARAMS.
sub headers {
    my ($self, $method, $params) = @_;
    my $name = $params->{name} // $params->{uri};

    return { "MCP-Protocol-Version" => $self->{version},
        Accept => "application/json, text/event-stream",
        $self->{version} eq $MODERN ? ("Mcp-Method" => $method,
            defined $name ? ("Mcp-Name" => header_text($name)) : ()) : () };
}

# Send a request of METHOD with PARAMS, an object or JSON text of one. ARG: id,
# headers that are added (undef: removed), key. Returns the response.
sub call {
    my ($self, $method, $params, %arg) = @_;
    my %params = %{ref $params ? $params : {}};
    my $headers = $self->headers($method, \%params);

    $params{_meta} //= meta() if $self->{version} eq $MODERN;
    %$headers = (%$headers, %{$arg{headers} || {}});
    delete $headers->{$_} for grep { !defined $headers->{$_} } keys %$headers;
    return $self->{client}->request("POST", $PATH, body => $arg{body}
        // $json->encode({
        jsonrpc => "2.0", method => $method, params => \%params,
        exists $arg{id} && !defined $arg{id} ? () : (id => $arg{id} // ++$id),
        }), headers => $headers, exists $arg{key} ? (key => $arg{key}) : ());
}

# The result of a request of METHOD, which must have one.
sub result {
    my ($self, $method, $params, %arg) = @_;
    my $r = $self->call($method, $params, %arg);
    my $answer = $r->json;

    Test::More::ok($r->status == 200 && $answer->{result}, "$method: a result")
        or Test::More::diag($r->text);
    return $answer->{result};
}

# Call the tool NAME with ARGUMENTS. Returns what it gives, and the response: the
# structured content, or the API's envelope in the text of an error.
sub tool {
    my ($self, $name, $arguments, %arg) = @_;
    my $r = $self->call("tools/call", { name => $name,
        arguments => $arguments // {} }, %arg);
    my $result = $r->json->{result};

    return (undef, $r) if !$result;
    my $text = $result->{content}[0]{text};
    my $said = $json->decode(Encode::encode("UTF-8", $text));
    Test::More::is_deeply($said, $result->{structuredContent},
        "$name: text and structured content are the same")
        unless $result->{isError};
    return ($said, $r);
}

my %named = (getWorkspace => "workspace_get", createMessage =>
    "conversations_reply", findContactByEmail => "contacts_get_by_email",
    addSuppression => "suppressions_add");

# The name of the tool of METHOD PATH, which is OPERATION of the document.
sub name_of {
    my ($method, $path, $operation) = @_;
    my $verb = { patch => "update", delete => "delete",
        get => $path =~ /\}$/ ? "get" : "list",
        post => $operation->{operationId} =~ /^create/ ? "create" : "" };
    my @parts = grep { !/\{/ } split m{/}, $path =~ s{^/api/v1/}{}r;

    return $named{$operation->{operationId}}
        // join("_", @parts, $verb->{$method} || ()) =~ s/-/_/gr;
}

# The call of a tool that REQUEST of the API is, according to DOCUMENT: its name
# and arguments. None: its body is no object, or it has no tool.
sub call_of {
    my ($document, $request) = @_;
    my ($method, %arguments) = lc $request->{method};

    if (defined $request->{body}) {
        my $body = eval { $json->decode($request->{body}) };
        return if ref $body ne "HASH";
        %arguments = %$body;
    }
    for (split /&/, $request->{query} // "") {
        my ($name, $value) = map { s/%(..)/chr hex $1/ger } split /=/, $_, 2;
        utf8::decode($value);
        $arguments{$name} = $value;
    }
    # by-email comes before {id}
    for my $path (sort { ($a =~ tr/{//) <=> ($b =~ tr/{//) }
            keys %{$document->{paths}}) {
        my $operation = $document->{paths}{$path}{$method} or next;
        my $pattern = $path =~ s/\{(\w+)\}/([^\/]+)/gr;
        my @values = $request->{path} =~ /^$pattern$/ or next;
        my @names = $path =~ /\{(\w+)\}/g;
        @arguments{@names} = @values if @names;
        return (name_of($method, $path, $operation), \%arguments);
    }
    return;
}

# The tools of tools/list, by name.
sub tools {
    my ($self) = @_;
    return map { $_->{name} => $_ } @{$self->result("tools/list")->{tools}};
}

1;
