# SPDX-License-Identifier: Apache-2.0
# CrmTest/Statements.pm: whether statements and functions concern one workspace
# (schema/README, One workspace), by PostgreSQL's own parser (statements.py)
#
#     my @faults = judge_statements($database, $sql, ...);
#     my %faults = judge_functions($database);
package CrmTest::Statements;
use strict;
use warnings;
use Exporter qw(import);
use JSON::PP ();
use CrmTest;
use CrmTest::Process qw(python_with run_program);

our @EXPORT = qw(parser judge_statements judge_functions);

my $json = JSON::PP->new->utf8->canonical;

# A Python that has the parser, or undef: build/setup --tests installs it.
sub parser { python_with("pglast") }

# What statements.py is given of DATABASE. A function is told its workspace by
# an argument of that name, or by a row. It goes over workspaces if it is not,
# and reads their tables or calls one that does.
my $GIVEN = <<'SQL';
WITH RECURSIVE keys AS (
    SELECT c.relname, c.reltype, a.attname FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname =
        CASE c.relname WHEN 'workspace' THEN 'id' ELSE 'workspace_id' END
    WHERE c.relnamespace = 'crmapi'::regnamespace
      AND c.relkind IN ('r', 'p', 'v', 'm')),
functions AS (
    SELECT p.*, coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) AS body
    FROM pg_proc p
    WHERE p.pronamespace = 'crmapi'::regnamespace AND p.prokind = 'f'
      AND p.prorettype <> 'trigger'::regtype),
across AS (
    SELECT f.oid, f.proname FROM functions f
    WHERE f.proargnames @> '{workspace}' IS NOT TRUE
      AND NOT EXISTS (SELECT FROM keys k
                      WHERE k.reltype = ANY (f.proargtypes::oid[]))
      AND EXISTS (SELECT FROM keys k
                  WHERE f.body ~ ('crmapi\.' || k.relname || '\M(?!\()'))
    UNION
    SELECT f.oid, f.proname FROM functions f
    JOIN across a ON f.body ~ ('crmapi\.' || a.proname || '\(')
    WHERE f.proargnames @> '{workspace}' IS NOT TRUE)
SELECT json_build_object(
    'keys', (SELECT json_object_agg(relname, attname) FROM keys),
    'volatile', (SELECT json_agg(DISTINCT proname) FROM pg_proc
                 WHERE provolatile = 'v'),
    'across', (SELECT json_agg(DISTINCT proname) FROM across))
SQL

# The faults that statements.py finds in WHAT, by a catalog that is DATABASE's.
sub judge {
    my ($database, %what) = @_;
    my $given = $json->decode(scalar sql($database, $GIVEN));
    my ($code, $out, $err) = run_program(
        command => [parser(), "$ENV{CRM_SRCDIR}/t/lib/statements.py"],
        stdin => $json->encode({ %$given, statements => [], functions => [],
            %what }));
    die "CrmTest: statements.py: $err\n" if $code;
    return @{$json->decode($out)};
}

# The faults of each of STATEMENTS, as references to arrays of texts: see
# statements.py.
sub judge_statements {
    my ($database, @statements) = @_;
    return judge($database, statements => \@statements);
}

# What is wrong in DATABASE's PL/pgSQL functions, by name: {"name": [[statement,
# [faults]]]}, the statements that have faults, in one line. SQL, if given, is done
# before the functions are read, and undone.
sub judge_functions {
    my ($database, $sql) = @_;
    my @functions = postgres()->sql($database, "BEGIN; " . ($sql // "") . ";
        SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
        JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND l.lanname = 'plpgsql' ORDER BY 1; ROLLBACK");
    my @faults = judge($database, functions => [map { $_->[1] } @functions]);
    my %faults;
    push @{$faults{$_->[0]}}, @{shift @faults} for @functions;
    return %faults;
}

1;
