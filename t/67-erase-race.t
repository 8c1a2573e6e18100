# SPDX-License-Identifier: Apache-2.0
# 67-erase-race.t: people are erased while crmapid sends to them and tells an endpoint
# about them. After the erasure of a person nothing is handed over (contract 14.4).
# $CRM_ERASURES is the number of people.
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use List::Util qw(min shuffle);
use Time::HiRes qw(time);
use CrmTest;
use CrmTest::Data;
use CrmTest::Provider;

my $PEOPLE = $ENV{CRM_ERASURES} || 120;
my $EACH = min(500, $PEOPLE / 2);       # people of a workspace
my $CLIENTS = 4;

my $database = database();
my $httpd = httpd(database => $database, unlimited => 1);
my $provider = CrmTest::Provider->new;
my @workspaces = map { prepared() } 1 .. $PEOPLE / $EACH;
$PEOPLE = @workspaces * $EACH;

# A workspace with a template of three messages and an endpoint.
sub prepared {
    my $w = workspace($httpd, twin => 0);
    $w->{template} = $w->template([map { { delay => 0, sms_body => "Hi $_" } }
        1 .. 3]);
    $w->webhook($provider->url, "contact.created", "enrollment.updated");
    return $w;
}

# The contact of the person N.
sub id_of { return sprintf "00000000-0000-8000-8000-%012d", $_[0] }

# The workspace of the person N.
sub home_of { return $workspaces[($_[0] - 1) / $EACH] }

# Start a sequence for each of all people.
sub start_all {
    for my $i (0 .. $#workspaces) {
        my ($first, $last) = ($i * $EACH + 1, ($i + 1) * $EACH);
        $workspaces[$i]->start_many("SELECT ('00000000-0000-8000-8000-'
            || lpad(n::text, 12, '0'))::uuid AS id, '[]'::jsonb AS emails,
            jsonb_build_array(jsonb_build_object('phone_number',
                '+4930' || 1000000 + n, 'is_primary', true)) AS phone_numbers
            FROM generate_series($first, $last) n", 1);
    }
}

# Erase PEOPLE; the moments at which each was known to be gone, and how many had to
# be waited for, because something was being sent.
sub erase_all {
    my (@people) = @_;
    my (%gone, %client, @waiting);
    my $pending = 0;
    my $client = sub {
        my $home = home_of($_[0]);
        return $client{$home->id} //= $home->client;
    };
    my $look = sub {
        my ($n) = @_;
        my $status = $client->($n)->get("/api/v1/contacts/"
            . id_of($n))->status;
        $gone{$n} = time if $status == 404;
        return $status != 404;
    };
    while (@people) {
        my $n = shift @people;
        my $r = $client->($n)->post("/api/v1/contacts/" . id_of($n) . "/erase");
        die $r->text if $r->status != 202;
        if ($r->data->{status} eq "erased") {
            $gone{$n} = time;
        }
        elsif ($look->($n)) {
            push @waiting, $n;
            $pending++;
        }
        @waiting = grep { $look->($_) } @waiting if @people % 10 == 0;
    }
    wait_for(sub { !(@waiting = grep { $look->($_) } @waiting) }, 300)
        or die "not erased: @waiting\n";
    return { gone => \%gone, pending => $pending };
}

# When the provider got what is about each person, by their numbers.
sub handed_over {
    my %at;
    for my $request ($provider->requests) {
        my $body = $request->{json};
        my ($n) = $body->{data}
            ? ($body->{data}{contact_id} // $body->{data}{id}) =~ /-0*(\d+)$/
            : map { substr($_, 5) - 1_000_000 } $body->{to};
        push @{$at{$n}{$body->{data} ? "told" : "sent"}}, $request->{at};
    }
    return \%at;
}

start_all();
my @workers = map { worker(database => $database, no_start => 1, conf => {
    name => "w$_", sms_relay => "http", provider_url => $provider->url,
    webhook_private => "on", threads => 4, webhook_threads => 4 }) } 1, 2;
$_->start for @workers;
ok(wait_for(sub { $provider->count >= $PEOPLE / 10 }, 120), "sends have begun");
my @order = shuffle(1 .. $PEOPLE);
my @told = in_processes($CLIENTS, sub {
    my ($client) = @_;
    return erase_all(grep { $_ % $CLIENTS == $client % $CLIENTS } @order);
});
my %gone = map { %{$_->{gone}} } @told;
is(scalar keys %gone, $PEOPLE, "all are erased");
is(sql($database, "SELECT count(*) FROM crmapi.contact"), 0, "none is left");
ok(wait_for(sub { sql($database, "SELECT count(*) FROM crmapi.job WHERE state IN"
    . " ('ready', 'leased')") == 0 }, 120), "nothing is left to do");
$_->stop for @workers;
$workers[0]->once("2035-01-01T00:00:00Z");

my $at = handed_over();
my @late;
for my $n (sort keys %$at) {
    for my $what (sort keys %{$at->{$n}}) {
        push @late, map { sprintf "%s %s, %.3f s", $n, $what, $_ - $gone{$n} }
            grep { $_ > $gone{$n} } @{$at->{$n}{$what}};
    }
}
is(join("\n", @late), "", "nothing is handed over after an erasure");
my $sent = grep { $at->{$_}{sent} } keys %$at;
my $some = grep { my $n = @{$at->{$_}{sent} // []}; $n && $n < 3 } keys %$at;
my $pending = 0;
$pending += $_->{pending} for @told;
diag(sprintf "%d erased: %d got nothing, %d a part, %d all; %d were waited for;"
    . " of %d the endpoint was told", $PEOPLE, $PEOPLE - $sent, $some,
    $sent - $some, $pending, scalar grep { $at->{$_}{told} } keys %$at);
cmp_ok($PEOPLE - $sent + $some, ">", 0, "some were erased before all was sent");
cmp_ok($sent, ">", 0, "some after something was");

done_testing();
