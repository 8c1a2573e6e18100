# SPDX-License-Identifier: Apache-2.0
# Bench/Work.pm: what is asked of the contestants, and whether they answer it
package Bench::Work;
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP ();
use CrmTest::Process qw(read_file);
use Bench::Cluster;
use Bench::Load;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $http = HTTP::Tiny->new(timeout => 60, keep_alive => 1);
my $serial = 0;

# The works of the comparison, in their order: name, title, the contestants (keys
# of Bench::Run::contest), and by number of connections the least ratios to each
# of the others that are wanted. "write" ones change the data; POST, which makes a
# large workspace of any, comes last. "p99" is the largest ratio of the 99th percentile.
my @ALL = qw(crmapi event bun rust fastify php);
my @FEW = qw(crmapi event bun rust);
our @WORKS = (
    { name => "get", title => "GET /contacts/{id}", contestants => [@ALL],
        targets => {
            1 => { contestants => [@FEW], Bun => 0.97 },
            16 => { Bun => 1.25, Rust => 0.95, Fastify => 3.5, mod_php => 2 },
            64 => { contestants => [@FEW], Bun => 1.4, Rust => 0.95,
                bound => 1.2, p99 => 1 } } },
    { name => "list", title => "GET /contacts",
        contestants => [@ALL, "nocount"],
        targets => {
            16 => { Bun => 1.5, Rust => 1.1, "Fastify without count" => 3.5 },
            64 => { contestants => [@FEW], Bun => 1.5, Rust => 1.1,
                p99 => 1 } } },
    { name => "conversations", title => "GET /conversations, three filters",
        contestants => [@ALL],
        targets => {
            16 => { Bun => 1.5, Rust => 1.1, mod_php => 2 },
            64 => { contestants => [@FEW], Bun => 1.5, Rust => 1.1,
                p99 => 1 } } },
    { name => "search", title => "GET /contacts?search=, a rare word",
        contestants => [@ALL],
        targets => { 16 => { Bun => 1, Fastify => 1, mod_php => 1 } } },
    { name => "patch", title => "PATCH /contacts/{id}", write => 1,
        contestants => [@ALL],
        targets => {
            16 => { Bun => 1.5, Rust => 1.5, Fastify => 2, mod_php => 1.5 },
            64 => { contestants => [@FEW], Bun => 2, Rust => 2, p99 => 1 } } },
    { name => "upsert", title => "POST /contacts/upsert, 200 items", write => 1,
        contestants => [qw(crmapi event fastify php)],
        targets => { 4 => { Fastify => 6, mod_php => 3 } } },
    { name => "post", title => "POST /contacts", write => 1,
        contestants => [@ALL],
        targets => {
            16 => { Bun => 1.5, Rust => 1.5, Fastify => 2, mod_php => 1.5 },
            64 => { contestants => [@FEW], Bun => 2, Rust => 2, p99 => 1 } } },
);

# Up to N values of column SQL of WORKSPACE's contacts, at random but always
# the same.
sub sample {
    my ($cluster, $workspace, $sql, $n) = @_;
    return map { $_->[0] } $cluster->sql("SELECT $sql FROM crmapi.contact t
        WHERE t.workspace_id = '$workspace' AND $sql IS NOT NULL
        ORDER BY md5(t.id::text) LIMIT $n");
}

my $words = sub {
    my ($cluster, $workspace) = @_;
    return map { $_->[0] } $cluster->sql("SELECT DISTINCT lower(t.last_name)
        FROM crmapi.contact t WHERE t.workspace_id = '$workspace'
          AND t.search LIKE '%quax%' LIMIT 1000");
};

# A contact to be sent, with FIELD.
sub contact_body {
    my (%field) = @_;
    return { first_name => "Nina", last_name => "Neumann",
        phone_numbers => [], company => "Neumann GmbH",
        job_title => "Engineer", lead_source => "website",
        tags => ["newsletter", "trial"], deal_value => 1250.5,
        city => "Berlin", country => "DE", custom_fields => { size => 4 },
        %field };
}

# The requests of work NAME for WORKSPACE with KEY: [key, method, path, body].
sub requests {
    my ($class, $name, $cluster, $workspace, $key) = @_;
    my $get = sub { map { [$key, "GET", "/api/v1$_"] } @_ };
    my ($bot) = map { $_->[0] } $cluster->sql("SELECT id FROM crmapi.agent
        WHERE workspace_id = '$workspace' ORDER BY id LIMIT 1");

    return $get->(map { "/contacts/$_" }
        sample($cluster, $workspace, "t.id", 20000)) if $name eq "get";
    return $get->("/contacts") if $name eq "list";
    return $get->(map { my $u = $_; map { "/conversations?assigned_to=user-$u"
            . "&type=$_&active=true" } qw(call sms email) } 0 .. 199)
        if $name eq "conversations";
    return $get->(map { "/contacts?search=$_" } $words->($cluster, $workspace))
        if $name eq "search";
    return $get->(map { "/contacts/by-email?email=" . $_ }
        sample($cluster, $workspace, "t.email_key", 20000))
        if $name eq "by-email";
    return $get->(map { "/contacts?tags=$_->[0]" } $cluster->sql(
            "SELECT DISTINCT x FROM crmapi.contact t, unnest(t.tags) x
            WHERE t.workspace_id = '$workspace' AND x LIKE 'rare-%'
            LIMIT 1000")) if $name eq "tag";
    return map { [$key, "POST", "/api/v1/contacts", $json->encode(
            contact_body(bot_id => $bot, emails => [{ email =>
                "nina.$_.\@R\@\@new.example", is_primary => \1 }]))] } 1 .. 500
        if $name eq "post";
    return map { [$key, "PATCH", "/api/v1/contacts/$_",
            '{"job_title":"Job @R@"}'] }
        sample($cluster, $workspace, "t.id", 20000) if $name eq "patch";
    if ($name eq "upsert") {
        my @known = sample($cluster, $workspace, "t.email_key", 20000);
        @known = @known[0 .. 99] if @known < 1000;
        my $bodies = @known < 1000 ? 1 : 100;
        return map {
            my $body = $_;
            # any order: known and new ones alternate
            [$key, "POST", "/api/v1/contacts/upsert", $json->encode({
                bot_id => $bot, contacts => [map {
                    contact_body(job_title => "Job \@R\@",
                        emails => [{ email => $_ % 2 ? "nina.\@R\@\@new.example"
                            : $known[($body * 100 + $_ / 2) % @known],
                            is_primary => \1 }])
                } 0 .. 199] })]
        } 0 .. $bodies - 1;
    }
    die "bench: no work $name\n";
}

# Send REQUEST to SERVER. Return the status, the parsed body (the text with
# RAW: parsing takes longer than many an answer) and its length.
sub send_request {
    my ($server, $request, $raw) = @_;
    my ($key, $method, $path, $body) = @$request;
    if (defined $body) {
        $body =~ s/\@R\@/sprintf "999%06d", ++$serial/ge;
    }
    my $r = $http->request($method, "http://127.0.0.1:$server->{port}$path", {
        headers => { Authorization => "Bearer $key",
            defined $body ? ("Content-Type" => "application/json") : () },
        defined $body ? (content => $body) : () });
    return ($r->{status}, $raw ? $r->{content}
        : eval { $json->decode($r->{content}) }, length $r->{content});
}

# A body as canonical text, without what differs rightly: what a write makes
# anew, and the numbers of "@R@".
sub comparable {
    my ($work, $status, $body) = @_;
    if ($work->{write} && $status < 300) {
        my $data = $body->{data};
        for my $row ($data->{created} ? map({ @{$data->{$_}} } qw(created
                updated)) : $data) {
            delete $row->{updated_at};
            delete @$row{qw(id created_at)}
                if ($row->{emails}[0]{email} // "") =~ /\@new\.example/;
        }
    }
    my $text = $json->encode($body);
    $text =~ s/999\d{6}/\@R\@/g;
    return "$status $text";
}

# Die unless all SERVERS give the same right answer to N of REQUESTS. Return
# the mean length of the first one's answers.
sub check {
    my ($class, $work, $servers, $requests, $n) = @_;
    my $bytes = 0;

    for my $i (0 .. $n - 1) {
        my $request = $requests->[$i * int(@$requests / $n) % @$requests];
        my $right;
        for my $server (@$servers) {
            my ($status, $body, $length) = send_request($server, $request);
            my $expected = $work->{name} eq "post" ? 201 : 200;
            die "bench: $server->{name}: $work->{title}: status $status: "
                . join("; ", $server->complaints) . "\n"
                unless $status == $expected;
            my $rows = $work->{name} =~ /^(?:list|search)$/
                ? scalar @{$body->{data}} : 1;
            die "bench: $server->{name}: $work->{title}: empty\n"
                unless $rows;
            if ($work->{name} eq "upsert") {
                my %n = map { $_ => scalar @{$body->{data}{$_}} }
                    qw(created updated errors);
                die "bench: $server->{name}: upsert: $n{created} created,"
                    . " $n{updated} updated, $n{errors} errors\n"
                    unless $n{created} == 100 && $n{updated} == 100;
            }
            my $text = comparable($work, $status, $body);
            if (!defined $right) {
                $right = $text;
                $bytes += $length;
            }
            my $wanted = $right;
            if ($server->{nocount}) {   # does not count by design
                s/"total":[^,}]+,"total_pages":[^,}]+// for $wanted, $text;
            }
            next if $text eq $wanted;
            my $at = 0;
            $at++ while substr($text, $at, 1) eq substr($wanted, $at, 1);
            die "bench: $server->{name}: $work->{title}: another answer than"
                . " $servers->[0]{name}: ..."
                . substr($text, $at > 40 ? $at - 40 : 0, 120) . " instead of"
                . " ..."
                . substr($wanted, $at > 40 ? $at - 40 : 0, 120) . "\n";
        }
    }
    return $bytes / $n;
}

# Die unless SERVERS refuse a key nobody has and hide other workspaces' rows.
sub check_tenancy {
    my ($class, $servers, $own, $other) = @_;
    for my $server (@$servers) {
        my ($status) = send_request($server, ["svc_live_" . "x" x 30,
            @$own[1, 2]]);
        die "bench: $server->{name}: a wrong key is answered $status\n"
            unless $status == 401;
        ($status) = send_request($server, [$own->[0], @$other[1, 2]]);
        die "bench: $server->{name}: another workspace's row is answered"
            . " $status\n" unless $status == 404;
    }
}

# What mod_crmapi sends to the database for REQUESTS: for each of them an array
# of [sql, parameters], from the server's log.
sub statements {
    my ($class, $cluster, $server, @requests) = @_;
    my $log = $cluster->host . "/log";
    my @all;

    # a first one, for what comes once in a session or a minute
    send_request($server, $requests[0]) for 1 .. 20;
    $cluster->sql("ALTER SYSTEM SET log_min_messages = 'warning'");
    $cluster->sql("ALTER SYSTEM SET log_statement = 'all'");
    $cluster->sql("SELECT pg_reload_conf()");
    $cluster->sql("SELECT pg_sleep(0.5)");
    for my $request (@requests) {
        my $before = -s $log;
        send_request($server, $request);
        my $text = substr(read_file($log), $before);
        my @sent;
        # a record goes on in lines that begin with a tab
        $text =~ s/\n\t/ /g;
        for my $line (split /\n/, $text) {
            if ($line =~ /crmapi_site LOG:  execute [^:]+: (.*)/s) {
                push @sent, [$1, {}];
            }
            elsif ($line =~ /crmapi_site DETAIL:  parameters: (.*)/s) {
                my $values = $1;
                while ($values =~ /\$(\d+) = (?:NULL|'((?:[^']|'')*)')/g) {
                    my ($n, $value) = ($1, $2);
                    $value =~ s/''/'/g if defined $value;
                    $sent[-1][1]{$n} = $value;
                }
            }
        }
        # those that do the work ask for the key too; others come once in a
        # connection's life or a minute
        push @all, [grep { $_->[0] =~ /live_key k WHERE k.workspace_id/ }
            @sent];
    }
    $cluster->sql("ALTER SYSTEM RESET log_statement");
    $cluster->sql("ALTER SYSTEM RESET log_min_messages");
    $cluster->sql("SELECT pg_reload_conf()");
    return @all;
}

# The id of a new row, as the module would make it.
our $fresh_id = "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)"
    . "::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8'"
    . " || substr(md5(random()::text), 1, 15))::uuid";

# Two scripts for pgbench: one that fetches a row of parameters, from a table
# made here, and one that does so and sends STATEMENTS (of statements(), one
# each) with it. pgbench itself has numbers only to choose at random, and the
# same parameters again and again would find all they need in the processor's
# caches, which those of requests do not.
sub script {
    my ($class, $cluster, $name, @statements) = @_;
    my ($sql, $first) = @{$statements[0][0]};
    my $insert = $sql =~ /^INSERT/;
    my (@columns, %seen);

    for my $statement (@statements) {
        die "bench: $name: the module sends "
            . (@$statement == 1 ? "different statements" : "several")
            . ": " . join("; ", map { substr $_->[0], 0, 90 } @$statement)
            . "\n" if @$statement != 1 || $statement->[0][0] ne $sql;
    }
    $sql =~ s{\$(\d+)(::[a-z]+(?:\[\])?)?}{
        my ($n, $type, $value) = ($1, $2 // "", $first->{$1});
        if (!defined $value) { "NULL$type" }
        elsif ($insert && $n == 3) { $fresh_id }
        elsif ($value =~ /^Job \d+$/) { ":r$type" }
        else {
            push @columns, $n unless $seen{$n}++;
            ":p$n$type"
        }
    }ge;
    my $quote = sub { my ($t) = @_; $t =~ s/'/''/g; "'$t'" };
    my $i = 0;
    $cluster->sql("CREATE TABLE IF NOT EXISTS public.bench_parameter (name text,
            n integer, value text[], PRIMARY KEY (name, n));
        GRANT SELECT ON public.bench_parameter TO PUBLIC;
        INSERT INTO public.bench_parameter VALUES " . join(", ", map {
            my $values = $_->[0][1];
            "('$name', " . ++$i . ", ARRAY[" . join(", ", map {
                $quote->($values->{$_} // "") } @columns) . "])"
        } @statements) . " ON CONFLICT (name, n) DO UPDATE
            SET value = excluded.value");
    $i = 0;
    my $fetch = "\\set r random(1, 2000000000)\n\\set n random(1, "
        . scalar(@statements) . ")\nSELECT "
        . join(", ", map { "value[" . ++$i . "] AS p$_" } @columns)
        . " FROM public.bench_parameter WHERE name = '$name' AND n = :n "
        . "\\gset\n";
    return ($fetch, "$fetch$sql;\n");
}

1;
