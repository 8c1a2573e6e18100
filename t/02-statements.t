#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# 02-statements.t: what CrmTest::Statements finds in statements, and what it
# does not find; 05-one-node.t judges functions by it and 99-statements.t all
# other statements
# plain build only
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use CrmTest;
use CrmTest::Statements;

plan(skip_all => "no python3-pglast: build/setup --tests installs it")
    unless parser();

# [what is found, separated by commas; the statement].
my $contact = "crmapi.contact c";
my @CASES = (
    # a value, a constant and a cast bind; so does a column that is bound
    ["", "SELECT * FROM $contact WHERE c.workspace_id = \$1::uuid"],
    ["", "SELECT * FROM $contact WHERE c.id = \$2 AND 'x'::uuid"
        . " = workspace_id"],
    ["", "SELECT * FROM $contact JOIN crmapi.company o ON o.workspace_id"
        . " = c.workspace_id AND o.id = c.company_id WHERE c.workspace_id"
        . " = \$1"],
    ["", "SELECT * FROM $contact JOIN crmapi.company o USING (workspace_id)"
        . " WHERE (o.workspace_id, o.id) = (\$1, \$2)"],
    ["", "SELECT * FROM crmapi.workspace w LEFT JOIN $contact ON"
        . " c.workspace_id = w.id WHERE w.id = \$1"],
    ["", "SELECT * FROM (SELECT c.* FROM $contact WHERE c.workspace_id = \$1"
        . " OFFSET 0) x JOIN crmapi.company o ON o.workspace_id ="
        . " x.workspace_id"],
    ["", "WITH m AS (SELECT c.workspace_id AS w FROM $contact WHERE"
        . " c.workspace_id = \$1) SELECT * FROM m, crmapi.company o WHERE"
        . " o.workspace_id = m.w"],
    ["", "SELECT 1 WHERE (SELECT k.read FROM crmapi.live_key k WHERE"
        . " k.workspace_id = \$1 AND k.terms = \$2)"],
    ["", "DELETE FROM crmapi.job j WHERE (j.workspace_id, j.id) IN (SELECT"
        . " o.workspace_id, o.id FROM crmapi.job o WHERE o.workspace_id ="
        . " \$1)"],
    ["", "SELECT x.id FROM (SELECT id, workspace_id FROM $contact WHERE"
        . " workspace_id = \$1 UNION ALL SELECT id, workspace_id FROM"
        . " crmapi.company WHERE workspace_id = \$1) x"],
    ["", "SELECT * FROM $contact WHERE (c.workspace_id = \$1) IS TRUE AND c.id"
        . " = \$2"],
    ["", "SELECT * FROM crmapi.migration"],
    ["", "SELECT * FROM crmapi.intake(\$1, \$2, \$3)"],
    ["", "SELECT to_char(now(), \$1) <> clock_timestamp()::text"],
    # no condition, or none that is an equality in each row
    ["unbound contact", "SELECT * FROM $contact"],
    ["unbound contact", "SELECT * FROM $contact WHERE c.id = \$1"],
    ["unbound contact", "SELECT * FROM $contact WHERE c.workspace_id = \$1 OR"
        . " c.id = \$2"],
    ["unbound contact", "SELECT * FROM $contact WHERE NOT c.workspace_id"
        . " = \$1"],
    ["unbound contact", "SELECT * FROM $contact WHERE (c.workspace_id = \$1) IS"
        . " NOT TRUE"],
    ["unbound contact", "SELECT * FROM $contact WHERE c.workspace_id > \$1"],
    ["unbound contact", "SELECT * FROM $contact WHERE c.workspace_id = ANY"
        . " (\$1)"],
    ["unbound contact", "SELECT * FROM $contact WHERE c.workspace_id"
        . " = c.workspace_id"],
    ["unbound company", "SELECT * FROM $contact JOIN crmapi.company o ON o.id"
        . " = c.company_id WHERE c.workspace_id = \$1"],
    ["unbound company,unbound contact", "SELECT * FROM $contact JOIN"
        . " crmapi.company o USING (workspace_id)"],
    ["unbound workspace", "SELECT * FROM crmapi.workspace w LEFT JOIN"
        . " $contact ON c.workspace_id = w.id AND c.workspace_id = \$1"
        . " AND w.id = \$1"],
    ["unbound contact", "SELECT EXISTS (SELECT FROM $contact WHERE c.id ="
        . " \$1)"],
    ["unbound contact", "SELECT 1 FROM crmapi.migration m ORDER BY (SELECT"
        . " count(*) FROM $contact)"],
    ["unbound company", "WITH m AS (SELECT id FROM crmapi.company) SELECT *"
        . " FROM $contact JOIN m ON m.id = c.company_id WHERE"
        . " c.workspace_id = \$1"],
    ["unbound company", "SELECT x.id FROM (SELECT id, workspace_id FROM"
        . " $contact WHERE workspace_id = \$1 UNION ALL SELECT id,"
        . " workspace_id FROM crmapi.company) x"],
    ["unbound live_key", "SELECT * FROM crmapi.live_key WHERE key_hash = \$1"],
    # a subquery says itself which workspace
    ["correlated activity", "SELECT (SELECT max(a.created_at) FROM"
        . " crmapi.activity a WHERE a.workspace_id = c.workspace_id) FROM"
        . " $contact WHERE c.workspace_id = \$1"],
    ["", "SELECT (SELECT max(a.created_at) FROM crmapi.activity a WHERE"
        . " a.workspace_id = \$1) FROM $contact WHERE c.workspace_id = \$1"],
    ["correlated company", "SELECT * FROM $contact CROSS JOIN LATERAL (SELECT"
        . " FROM crmapi.company o WHERE o.workspace_id = c.workspace_id) l"
        . " WHERE c.workspace_id = \$1"],
    # statements for several requests
    ["set contact", "SELECT a.*, b.n FROM unnest(\$1::uuid[]) WITH ORDINALITY"
        . " b (p1, n) CROSS JOIN LATERAL (SELECT c.id FROM $contact WHERE"
        . " c.workspace_id = b.p1::uuid OFFSET 0) a"],
    # writes
    ["", "INSERT INTO $contact (workspace_id, id) VALUES (\$1, \$2)"
        =~ s/ c \(/ AS c (/r],
    ["", "INSERT INTO crmapi.contact (id, workspace_id) SELECT \$2, \$1::uuid"
        . " WHERE (SELECT k.write FROM crmapi.live_key k WHERE k.workspace_id"
        . " = \$1) RETURNING id"],
    ["unbound contact", "INSERT INTO crmapi.contact (id) VALUES (\$1)"],
    ["unbound agent,unbound contact", "INSERT INTO crmapi.contact"
        . " (workspace_id, id) SELECT a.workspace_id, \$1 FROM crmapi.agent a"
        . " WHERE a.id = \$2"],
    ["set contact", "WITH batch AS (SELECT v.* FROM unnest(\$1::uuid[]) v"
        . " (p1)) INSERT INTO crmapi.contact (workspace_id) SELECT"
        . " batch.p1::uuid FROM batch"],
    ["", "UPDATE crmapi.contact t SET notes = \$3 FROM crmapi.company o WHERE"
        . " t.workspace_id = \$1 AND o.workspace_id = t.workspace_id"],
    ["unbound contact", "UPDATE crmapi.contact t SET notes = \$2 WHERE t.id ="
        . " \$1"],
    ["unbound contact", "DELETE FROM crmapi.contact"],
    ["unbound job", "WITH gone AS (DELETE FROM crmapi.job t WHERE t.state ="
        . " \$1 RETURNING 1) SELECT count(*) FROM gone"],
    # what is another value each time
    ["volatile clock_timestamp", "UPDATE crmapi.contact t SET updated_at ="
        . " clock_timestamp() WHERE t.workspace_id = \$1"],
    ["volatile gen_random_uuid", "INSERT INTO crmapi.contact (workspace_id,"
        . " id) VALUES (\$1, gen_random_uuid())"],
    ["volatile nextval", "WITH x AS (INSERT INTO crmapi.job (workspace_id, id)"
        . " SELECT \$1, nextval(\$2)) SELECT 1"],
    ["", "UPDATE crmapi.contact t SET updated_at = now(), notes = (SELECT"
        . " crmapi.fold(\$2)) WHERE t.workspace_id = \$1"],
    ["returning workspace", "INSERT INTO crmapi.api_key AS k (workspace_id, id)"
        . " VALUES (\$1, \$2) RETURNING id, (SELECT w.plan FROM"
        . " crmapi.workspace w WHERE w.id = \$1)"],
    ["returning activity", "WITH w AS (UPDATE crmapi.contact t SET notes = \$3"
        . " WHERE t.workspace_id = \$1 RETURNING t.id, (SELECT"
        . " max(a.created_at) FROM crmapi.activity a WHERE a.workspace_id ="
        . " \$1)) SELECT * FROM w"],
    ["", "WITH b AS (SELECT \$2 AS n) UPDATE crmapi.contact t SET notes = ''"
        . " WHERE t.workspace_id = \$1 RETURNING (NULL), (SELECT count(*) FROM"
        . " b)"],
    ["values job", "INSERT INTO crmapi.job (workspace_id, kind, payload) VALUES"
        . " (\$1, \$2, (SELECT jsonb_agg(x) FROM unnest(\$3::text[]) x))"],
    ["", "INSERT INTO crmapi.job (workspace_id, kind, payload) SELECT \$1, \$2,"
        . " (SELECT jsonb_agg(x) FROM unnest(\$3::text[]) x)"],
    ["", "INSERT INTO crmapi.migration (name) VALUES ((SELECT 'x'))"],
    # within another statement
    ["unbound contact", "PREPARE x (uuid) AS SELECT * FROM $contact WHERE c.id"
        . " = \$1"],
    ["unbound contact", "DECLARE x CURSOR FOR SELECT * FROM $contact"],
    # functions that look everywhere
    ["across key_look_up", "SELECT * FROM crmapi.key_look_up(\$1)"],
    ["across job_claim", "SELECT * FROM crmapi.job_claim(\$1, \$2, \$3, \$4)"],
    # nothing is passed over because it is not understood
    ["unread", "SELECT FROM WHERE"],
);

my $database = database();

subtest "a statement is understood" => sub {
    my @faults = judge_statements($database, map { $_->[1] } @CASES);
    for my $case (@CASES) {
        my ($wanted, $sql) = @$case;
        is(join(",", map { s/^unread: .*/unread/r } @{shift @faults}),
            $wanted, $sql =~ s/crmapi\.//gr);
    }
};

# [what is found, the body of a function of WORKSPACE with the row TAKEN].
my @BODIES = (
    ["", "PERFORM FROM $contact WHERE c.workspace_id = x0.workspace"],
    ["", "PERFORM FROM $contact WHERE c.workspace_id = workspace"],
    ["", "UPDATE $contact SET notes = '' WHERE c.workspace_id ="
        . " taken.workspace_id"],
    ["", "n := (SELECT count(*) FROM $contact WHERE c.workspace_id ="
        . " coalesce(workspace, taken.workspace_id))"],
    ["unbound contact", "n := (SELECT count(*) FROM $contact)"],
    ["unbound contact", "FOR n IN SELECT 1 FROM $contact WHERE c.id ="
        . " workspace LOOP NULL; END LOOP"],
    ["unbound contact", "IF EXISTS (SELECT FROM $contact) THEN RETURN; END IF"],
    ["unbound contact", "RETURN QUERY SELECT c.id FROM $contact"],
    ["correlated company", "PERFORM FROM $contact WHERE c.workspace_id ="
        . " workspace AND EXISTS (SELECT FROM crmapi.company o WHERE"
        . " o.workspace_id = c.workspace_id)"],
    ["across job_reap", "PERFORM crmapi.job_reap()"],
    ["ambiguous NEW", "INSERT INTO crmapi.migration (name) VALUES (new.x)"
        . " RETURNING (SELECT new.x) INTO n"],
    ["ambiguous OLD", "DELETE FROM crmapi.migration m RETURNING old INTO n"],
    ["", "DELETE FROM crmapi.migration m WHERE m.name = old.x RETURNING m.name"
        . " INTO n"],
);

subtest "so are the statements of a function" => sub {
    my $n = 0;
    my %faults = judge_functions($database, join ";", map { "CREATE FUNCTION
        crmapi.x" . $n++ . "(workspace uuid, taken crmapi.job) RETURNS SETOF
        uuid LANGUAGE plpgsql AS \$x\$ DECLARE n bigint; BEGIN $_->[1]; END
        \$x\$" } @BODIES);
    for (0 .. $#BODIES) {
        my ($wanted, $body) = @{$BODIES[$_]};
        is(join(",", map { @{$_->[1]} } @{$faults{"x$_"}}), $wanted, $body);
    }
};

done_testing;
