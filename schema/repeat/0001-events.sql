-- SPDX-License-Identifier: Apache-2.0
-- 0001-events.sql: the fields of a row that an event has
--
-- crmapictl runs the files of this folder at the end of each migrate. It says which
-- fields the API shows of a resource (mod_crmapi/model/), and of this the functions of
-- events are made. So an event has a new field as soon as the table has its column.

-- step: transaction: a function <table>_fields for each resource that has events
-- crmapi.shown is {"contact": {"id": "", "last_contacted_at": "timestamptz", ...},
-- ...}: fields with a type are computed from other rows. A function has the row and
-- those as parameters, and returns {"field": "its text", ...}. It is an expression in
-- SQL, which the planner puts in the place of its call. It is made only if it is not
-- so already. As a text it depends on no column, so that one can be dropped.
DO $do$
DECLARE
    of record;
    made record;
BEGIN
    FOR of IN SELECT s.key AS name, s.value AS fields
        FROM json_each(current_setting('crmapi.shown')::json) s
    LOOP
        SELECT string_agg(f.key, ',' ORDER BY f.n) AS names,
               string_agg(', ' || f.key || ' ' || f.value, '' ORDER BY f.n)
                   FILTER (WHERE f.value <> '') AS parameters,
               string_agg(CASE
                   WHEN 'timestamptz' IN (f.value, t.typname)
                       THEN format('crmapi.event_time(%s)', v.value)
                   WHEN t.typcategory = 'S' THEN v.value
                   ELSE v.value || '::text' END, E',\n    ' ORDER BY f.n) AS texts
        INTO made
        FROM json_each_text(of.fields) WITH ORDINALITY f(key, value, n)
        LEFT JOIN pg_attribute a ON f.value = '' AND a.attname = f.key
            AND a.attrelid = ('crmapi.' || of.name)::regclass
        LEFT JOIN pg_type t ON t.oid = a.atttypid
        CROSS JOIN LATERAL (SELECT CASE f.value WHEN '' THEN 'r.' ELSE '' END
                            || f.key AS value) v;
        made.texts := format(E'SELECT json_object(%L, ARRAY[\n    %s])',
                             '{' || made.names || '}', made.texts);
        CONTINUE WHEN EXISTS (SELECT FROM pg_proc p
            WHERE p.pronamespace = 'crmapi'::regnamespace
              AND p.proname = of.name || '_fields' AND p.prosrc = made.texts);
        EXECUTE format('CREATE OR REPLACE FUNCTION'
            ' crmapi.%s_fields(r anyelement%s) RETURNS json'
            ' LANGUAGE sql STABLE AS %L', of.name, made.parameters, made.texts);
    END LOOP;
END
$do$;
