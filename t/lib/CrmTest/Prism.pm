# SPDX-License-Identifier: Apache-2.0
# CrmTest/Prism.pm: Prism, a public proxy that holds requests and answers
# against the OpenAPI document, between all clients of a test and its servers
#
#     CRM_PRISM=report perl t/31-contacts.t     # see t/91-prism.t
#
# With CRM_PRISM=report Prism forwards everything and reports violations in the
# header sl-violations. A violation in an answer fails the test, and one in a
# request that the server takes: tests send invalid requests, too. With
# CRM_PRISM=errors it answers invalid requests and answers with errors of its own.
package CrmTest::Prism;
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More ();
use CrmTest::Client;
use CrmTest::Process qw(end_process free_port read_file spawn wait_for
    write_file);

# Start one for the server at PORT, if that serves a document, and have all new
# connections to it go there. CHANGE->(document) changes the document before.
sub new {
    my ($class, $port, $change) = @_;
    my $packages = "$ENV{CRM_SRCDIR}/_build/npm/node_modules";
    my $document = CrmTest::Client->new(port => $port)
        ->get("/api/v1/openapi.json");

    return if $document->status != 200;
    my $text = $change ? JSON::PP->new->utf8->encode($change->($document->json))
        : $document->body;
    die "CrmTest: no prism: build/setup --tests installs it\n"
        unless -x "$packages/.bin/prism";
    my $self = bless { maker => $$, of => $port,
        dir => tempdir("crm-prism-XXXXXX", TMPDIR => 1, CLEANUP => 1),
        port => free_port() }, $class;
    write_file("$self->{dir}/openapi.json", $text);
    $self->{pid} = spawn(command => ["$packages/.bin/prism", "proxy",
        "$self->{dir}/openapi.json", "http://127.0.0.1:$port", "--port",
        $self->{port}, "--cors=false",
        $ENV{CRM_PRISM} eq "errors" ? "--errors" : ()],
        env => { NODE_NO_WARNINGS => 1, no_proxy => "*" },
        log => "$self->{dir}/log", chdir => $self->{dir});
    wait_for(sub { read_file("$self->{dir}/log", "") =~ /is listening/ }, 60)
        or die "CrmTest: Prism did not start: "
            . read_file("$self->{dir}/log", "") . "\n";
    $CrmTest::Client::VIA{$port} = $self->{port};
    return $self;
}

# Whether the server has taken what VIOLATION is about, by RESPONSE.
sub is_taken {
    my ($response, $violation) = @_;
    my ($request, $status) = ($response->{request}, $response->status);
    my $query = join "&", $request->{query} // "", $request->{path} =~ /\?(.*)/s;
    my (undef, $in, $name, $index) = @{$violation->{location}};

    return 0 if $status >= 400 || $request->{path} !~ m{^/api/v1/}
        # it was asked to ignore what it does not know
        || ($request->{headers}{Prefer} // "") =~ /handling=lenient/
        # a body that the operation does not read
        || $violation->{code} eq "415" && !defined $in
        # 1e400 becomes null on its way
        || ($request->{body} // "") =~ /\de\+?\d{3}/i
            && $violation->{code} =~ /imum$/;
    # for Prism, Page is page
    return $query =~ /(?:^|&)\Q$name\E=/
        if ($in // "") eq "query" && defined $name;
    # an item of an upsert is taken or refused by itself, and its bot_id is read
    # only if it creates something (10.3)
    return $violation->{location}[-1] ne "bot_id"
        && !grep { $_->{index} == $index } @{$response->data->{errors}}
        if ($index // "") =~ /^\d+$/ && $request->{path} =~ m{/upsert/?$};
    return 1;
}

# The violations that Prism found in RESPONSE, and those of its request that the
# server has taken all the same.
sub objections {
    my ($class, $response) = @_;
    my $header = $response->header("sl-violations") // "[]";

    return map { join(".", @{$_->{location}}) . ": $_->{message}" }
        grep { $_->{location}[0] eq "response" || is_taken($response, $_) }
        @{JSON::PP->new->decode($header)};
}

my $count = 0;      # of answers that it has passed on
CrmTest::Client->hook(sub {
    my ($request, $response, $client) = @_;
    my @objections = CrmTest::Prism->objections($response);

    $count++ if $CrmTest::Client::VIA{$client->{port}};
    # It takes /agents/ for /agents/{id}.
    return if !@objections || $request->{path} =~ m{/$};
    Test::More::fail("Prism does not object to the answer");
    Test::More::diag(join "\n", "$request->{method} $request->{path}"
        . ($request->{query} ? "?$request->{query}" : ""), @objections,
        $request->{body} // "", $response->text);
});

END {
    Test::More::diag("Prism has passed on $count answers") if $count;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid};

    delete $CrmTest::Client::VIA{$self->{of}};
    end_process($pid, "TERM") if $pid && $self->{maker} == $$;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop;
}

1;
