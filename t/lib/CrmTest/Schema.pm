# SPDX-License-Identifier: Apache-2.0
# CrmTest/Schema.pm: rows that are written past the API, and what the database says
package CrmTest::Schema;
use strict;
use warnings;
use CrmTest;
use CrmTest::Rows;
use CrmTest::Session;
use Exporter qw(import);

our @EXPORT = qw($db %start %WAY as counters_right done_at_once enrolled leased
    make refused refused_values row space total value);

# The database of the file that uses this.
our $db = database();

# What every enrollment begins with.
our %start = (status => "generating", contact_action => "created");

# How an enrollment gets into a state: the states after the first.
our %WAY = (generating => [], pending_approval => ["pending_approval"],
    approved => ["approved"], running => [qw(approved running)],
    completed => [qw(approved completed)],
    map { $_ => [$_] } qw(stopped_reply stopped_user stopped_unsubscribed failed));

# The first value, or all rows, of SQL run by ROLE (default: the superuser).
sub as { my ($role, $sql) = @_; return postgres()->sql($db, $sql, $role) }

# A job of S that a worker has leased: its id, and the first parameters of what the
# worker calls.
sub leased {
    my ($s, $kind, %payload) = @_;
    my $id = sql($db, row("job", %{$s->{in}}, kind => $kind, payload => \%payload,
        state => "leased", leased_by => "w", attempts => 1,
        leased_until => \"now() + interval '1 h'") =~ s/;\n$/ RETURNING id/r);
    return ($id, "'$s->{id}', $id, 'w', 1");
}

# SQL fails, and what PostgreSQL says of it is LIKE.
sub refused {
    my ($sql, $like, $name, $role) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $done = eval { scalar postgres()->sql($db, $sql, $role); 1 };
    return like($done ? "done" : $@, $like, $name);
}

# All of the SQLS are done, at the same moment.
sub done_at_once {
    my ($name, @sqls) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is(join("", at_once($db, @sqls)), "", $name);
}

# A row of each of CASES, [table, its other members, column, value, good value],
# is refused, and what PostgreSQL says is LIKE; with the good value it is taken.
sub refused_values {
    my ($like, @cases) = @_;
    for my $case (@cases) {
        my ($table, $with, $column, $value, $good) = @$case;
        my $named = "$table.$column: " . substr $value // "null", 0, 20;
        refused(row($table, id => uuid(), %$with, $column => $value), $like,
            $named);
        ok(eval { sql($db, "BEGIN;" . row($table, id => uuid(), %$with,
            $column => $good) . "ROLLBACK"); 1 }, "$named: it is the value")
            or diag($@);
    }
}

# An INSERT of a row of TABLE; a value that is a reference is SQL.
sub row {
    my ($table, %value) = @_;
    utf8::upgrade($_) for grep { defined && !ref } values %value;
    return row_of($table, %value) . ";\n";
}

# Make a row and return its id.
sub make {
    my ($table, %value) = @_;
    $value{id} //= uuid();
    sql($db, row($table, %value));
    return $value{id};
}

# A workspace with an agent, a pipeline and two stages.
sub space {
    my %s = (id => uuid());
    $s{slug} = "w-" . (substr($s{id}, 14) =~ tr/-//dr);
    sql($db, row("workspace", id => $s{id}, name => "W", plan => "pro",
        slug => $s{slug}));
    my %in = (workspace_id => $s{id});
    $s{bot} = make("agent", %in, name => "Ada");
    $s{pipeline} = make("pipeline", %in, bot_id => $s{bot}, name => "P");
    $s{stages} = [map { make("pipeline_stage", %in, bot_id => $s{bot},
        pipeline_id => $s{pipeline}, name => "S$_", order_index => $_) } 0, 1];
    $s{owned} = { %in, bot_id => $s{bot} };
    $s{in} = \%in;
    return \%s;
}

my $people = 0;
# An enrollment of S, a space, with MEMBERS: contact (members of one), agent,
# pacing, status, steps (members of each). Returns its ids: contact, sequence,
# enrollment, steps.
sub enrolled {
    my ($s, %member) = @_;
    my $n = ++$people;
    my %e = (steps => []);
    $s->{template} //= make("sequence_template", %{$s->{in}}, name => "T");
    my %agent = (%{$s->{in}}, bot_id => $member{agent} // $s->{bot});
    $e{contact} = make("contact", %{$s->{owned}}, %{$member{contact} || {
        emails => [{ email => "p$n\@x.example", is_primary => CrmTest::true }] }});
    $e{sequence} = make("sequence", %agent, name => "S",
        template_id => $s->{template});
    $e{id} = make("enrollment", %{$s->{in}}, %start, contact_id => $e{contact},
        sequence_id => $e{sequence}, pacing => $member{pacing} // {});
    for my $step (@{$member{steps} || []}) {
        push @{$e{steps}}, make("enrollment_step", %{$s->{in}},
            enrollment_id => $e{id}, sort_order => 1 + @{$e{steps}},
            channel => "email", to_identifier => "p$n\@x.example",
            email_subject => "S", email_body => "B", %$step);
    }
    sql($db, "UPDATE crmapi.enrollment SET generation_error = 'x', status = '$_'
        WHERE id = '$e{id}'") for @{$WAY{$member{status} // "generating"}};
    return \%e;
}

sub value {
    my ($table, $id, $column) = @_;
    return scalar sql($db, "SELECT $column FROM crmapi.$table "
        . "WHERE id = '$id'");
}

sub counters_right {
    my ($name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @wrong = sql($db, "SELECT * FROM crmapi.counter_verify()");
    is_deeply(\@wrong, [], $name);
}

sub total {
    my ($s, $kind, $parent) = @_;
    return scalar sql($db, "SELECT coalesce(sum(n), 0) FROM crmapi.counter "
        . "WHERE workspace_id = '$s->{id}' AND kind = '$kind' AND parent = '"
        . ($parent || "00000000-0000-0000-0000-000000000000") . "'");
}

1;
