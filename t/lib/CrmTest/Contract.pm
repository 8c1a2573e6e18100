# SPDX-License-Identifier: Apache-2.0
# CrmTest/Contract.pm: every answer in any test is checked against the OpenAPI
# document of its server
package CrmTest::Contract;
use strict;
use warnings;
use JSON::PP ();
use Test::More ();
use CrmTest::Client;
use CrmTest::OpenAPI;

my $checker;        # one build serves one document
our $off;           # true where a client must keep up with others

# The checker, made from the document of CLIENT's server; undef if the server
# has none (the module is off or lacks its database).
sub checker {
    my ($client) = @_;

    return $checker if $checker;
    local $off = 1;
    my $response = eval { ref($client)->new(port => $client->{port})
        ->get("/api/v1/openapi.json") };
    return undef unless $response && $response->status == 200;
    return $checker = CrmTest::OpenAPI->new($response->json);
}

CrmTest::Client->hook(sub {
    my ($request, $response, $client) = @_;

    return if $off || ($request->{path} // "") !~ m{^/api/v1(/|$)};
    my $openapi = checker($client) or return;
    # answers by a site's own ErrorDocument or access control are not checked
    my @problems = $openapi->check($request, $response);
    return unless @problems;
    Test::More::fail("the answer is as the OpenAPI document says");
    Test::More::diag(join "\n", "$request->{method} $request->{path}",
        @problems, $response->text);
});

1;
