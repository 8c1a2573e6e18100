-- SPDX-License-Identifier: Apache-2.0
-- 0008-hold.sql: what is held sends nothing (contract 14.2)
--
-- A workspace is held, or the whole database: after a restore, on a clone, or
-- because an operator wants so. Its jobs stay as they are, also those that are
-- due, but job_claim() takes none of them. A job that is claimed already asks
-- once more before it sends, and goes back. A workspace that is held by itself
-- receives nothing either. Everything else works as always.

-- ---- tables ----------------------------------------------------------------

-- The workspaces that are held.
CREATE TABLE crmapi.workspace_hold (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    held_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    reason crmapi.line NOT NULL,
    -- The API answers 503, and so do the pages of links: nothing is written that a
    -- dump would lack. Each key has a copy of it.
    closed boolean NOT NULL DEFAULT false,
    -- The SHA-256 of the dump that it was restored from last: changes since another
    -- one are refused.
    dump text COLLATE "C"
);

-- This database: one row. No workspace owns it. id is its name, which copies
-- and restored dumps of it share. system_id and database_id say where it is:
-- the cluster and the database, as a daemon found them first, or the last
-- release. In a copy they are those of the original.
CREATE TABLE crmapi.instance (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    system_id bigint,
    database_id oid,
    held_at timestamptz(3),             -- null: it is not held
    held_reason crmapi.line,
    -- instance_history() as migrate or a daemon found it last, and the last number of
    -- an event that may be of a state that was lost: see event_lost()
    history text COLLATE "C",
    events_lost bigint NOT NULL DEFAULT 0,
    CHECK ((held_at IS NULL) = (held_reason IS NULL))
);
INSERT INTO crmapi.instance DEFAULT VALUES;

-- Numbers that count what daemons have done here: each message and each
-- heartbeat, in the transaction that permits it. A daemon keeps the highest
-- ones that it has seen outside of the database (its mark). If those here are
-- lower, this is an older state. Rows, because a row is restored as of the same
-- moment as all others: positions of the WAL and transaction ids go on
-- otherwise in another cluster or timeline, and pg_dump reads a sequence at
-- another moment than the tables. A standby that takes over has the rows if it
-- has the messages. A backend adds in the slot "its pid modulo 16".
CREATE TABLE crmapi.send_mark (
    slot integer PRIMARY KEY CHECK (slot BETWEEN 0 AND 15),
    n bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO crmapi.send_mark (slot, n)
SELECT slot, 0 FROM generate_series(0, 15) slot;

-- What daemons handed over to a relay after the state that was restored, from
-- their journals. part is the number of a step, or the id of an admin who was
-- asked for a review: unlike ids of steps, which generation makes, they are the
-- same again. state: sent, free (certainly not sent), or unknown.
CREATE TABLE crmapi.past_send (
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    enrollment_id uuid NOT NULL,
    part crmapi.line NOT NULL,
    state crmapi.line NOT NULL CHECK (state IN ('sent', 'free', 'unknown')),
    sent_at timestamptz(3) NOT NULL,
    provider_id text,
    PRIMARY KEY (workspace_id, enrollment_id, part),
    FOREIGN KEY (workspace_id, enrollment_id) REFERENCES crmapi.enrollment
        ON DELETE CASCADE
);

-- The same of answers: an id is made when the answer is posted, so it is the same
-- again.
CREATE TABLE crmapi.past_answer (
    workspace_id uuid NOT NULL REFERENCES crmapi.workspace ON DELETE CASCADE,
    message_id uuid NOT NULL,
    state crmapi.line NOT NULL CHECK (state IN ('sent', 'free', 'unknown')),
    sent_at timestamptz(3) NOT NULL,
    provider_id text,
    PRIMARY KEY (workspace_id, message_id),
    FOREIGN KEY (workspace_id, message_id) REFERENCES crmapi.message
        ON DELETE CASCADE
);

-- Steps of the workspace that were due before due_before are skipped, not sent.
-- Who releases what was restored may know better than the database: until the
-- time of the failure steps were sent that it knows nothing of. The release then
-- has this bound. It is kept, because such a step may appear later: the next one
-- of a step that was handed over, or the first one of an enrollment that is not
-- generated yet. step_take() reads it with the owner's rights.
CREATE TABLE crmapi.step_bound (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    due_before timestamptz(3) NOT NULL,
    released_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms()
);

-- ---- what is held ----------------------------------------------------------

-- Whether nothing may be sent for WORKSPACE, because it or the database is held.
-- For the worker.
CREATE FUNCTION crmapi.sends_held(workspace uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM crmapi.workspace_hold h
               WHERE h.workspace_id = sends_held.workspace) THEN
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM crmapi.instance i WHERE i.held_at IS NOT NULL);
END
$$;

-- Whether WORKSPACE itself is held. A database that is held as a whole goes on
-- receiving. Internal.
CREATE FUNCTION crmapi.is_held(workspace uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.workspace_hold h
                   WHERE h.workspace_id = is_held.workspace);
END
$$;

-- Whether WORKSPACE is held and its API is closed. Internal.
CREATE FUNCTION crmapi.is_closed(workspace uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.workspace_hold h
                   WHERE h.workspace_id = is_closed.workspace AND h.closed);
END
$$;

-- Close the API of WORKSPACE, which is held, or open it again. A key that is being
-- created has locked the workspace. Locks: workspace, key. For the owner.
CREATE FUNCTION crmapi.hold_close(workspace uuid, closed boolean) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM crmapi.workspace w WHERE w.id = hold_close.workspace
    FOR NO KEY UPDATE;
    UPDATE crmapi.workspace_hold h SET closed = hold_close.closed
    WHERE h.workspace_id = hold_close.workspace;
    UPDATE crmapi.api_key k SET closed = hold_close.closed
    WHERE k.workspace_id = hold_close.workspace
      AND k.closed <> hold_close.closed;
END
$$;

-- Where this database is. Internal.
CREATE FUNCTION crmapi.instance_place()
    RETURNS TABLE (system_id bigint, database_id oid)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT c.system_identifier, d.oid
    FROM pg_control_system() c, pg_database d
    WHERE d.datname = current_database();
END
$$;

-- The history that this database is a part of: where it is, and the timeline of the
-- server. It has another one when a standby took over, or after a recovery to an earlier
-- time. Null on a standby. For the API.
CREATE FUNCTION crmapi.instance_history() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN NULL;
    END IF;
    RETURN format('%s %s', crmapi.instance_place(),
                  left(pg_walfile_name(pg_current_wal_lsn()), 8));
END
$$;
UPDATE crmapi.instance i SET history = crmapi.instance_history() WHERE i.one;

-- Hold WORKSPACE, or the database if it is null, because of REASON. One that is
-- held keeps its time and its reason. What is being sent at this moment is
-- finished: returns how many such jobs there are. For the owner.
CREATE FUNCTION crmapi.hold(workspace uuid, reason text) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF workspace IS NULL THEN
        UPDATE crmapi.instance i SET held_at = crmapi.now_ms(),
            held_reason = hold.reason
        WHERE i.held_at IS NULL;
    ELSE
        INSERT INTO crmapi.workspace_hold AS h (workspace_id, reason)
        VALUES (hold.workspace, hold.reason)
        ON CONFLICT ON CONSTRAINT workspace_hold_pkey DO NOTHING;
    END IF;
    RETURN (SELECT count(*) FROM crmapi.job j
            WHERE j.state = 'leased' AND j.kind <> 'generate.steps'
              AND (workspace IS NULL OR j.workspace_id = workspace));
END
$$;

-- ---- an address belongs to one agent that is not held ----------------------
-- Channels find an agent by its mail address, its number or its id, a form by its
-- id, and by that the workspace. A held workspace is not looked up, so a copy has
-- the same addresses beside the living one. Among the others an address is unique.
-- Ids are unique within a workspace only, because one file may be imported into
-- many. If several agents or forms have an id, a channel finds the one that this
-- database knows longest. So no import takes it from another workspace.

-- What OWN, an agent, would share with another one that is not held: FIELD, and
-- TAKEN_BY, the workspace of the other one. A mail address, with or without a "+",
-- belongs to one workspace, an agent_email to one agent. For the owner.
CREATE FUNCTION crmapi.address_taken(own crmapi.agent, OUT field text,
                                     OUT taken_by uuid)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mail text := nullif(crmapi.email_base(own.agent_email), '');
    shown text := nullif(crmapi.email_base(own.email_outbound_email), '');
    phone text := nullif(crmapi.phone_key(own.agent_phone), '');
BEGIN
    SELECT f.field, f.workspace_id INTO field, taken_by
    FROM (SELECT CASE WHEN crmapi.email_base(a.agent_email) = mail
                 THEN 'agent_email' ELSE 'email_outbound_email' END AS field,
                 a.workspace_id
          FROM crmapi.agent a
          WHERE crmapi.email_base(a.agent_email) IN (mail, shown)
            AND (a.workspace_id <> own.workspace_id OR (a.id <> own.id
                 AND crmapi.email_key(a.agent_email)
                     = crmapi.email_key(own.agent_email)))
          UNION ALL
          SELECT CASE WHEN crmapi.email_base(a.email_outbound_email) = mail
                 THEN 'agent_email' ELSE 'email_outbound_email' END,
                 a.workspace_id
          FROM crmapi.agent a
          WHERE crmapi.email_base(a.email_outbound_email) IN (mail, shown)
            AND a.workspace_id <> own.workspace_id
          UNION ALL
          SELECT 'agent_phone', a.workspace_id FROM crmapi.agent a
          WHERE crmapi.phone_key(a.agent_phone) = phone
            AND (a.workspace_id, a.id) <> (own.workspace_id, own.id)) f
    LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = f.workspace_id
    WHERE h.workspace_id IS NULL ORDER BY f.field LIMIT 1;
END
$$;

-- Take turns with others who write an address of OWN, an agent, until the
-- transaction ends. Locks: advisory ones of its addresses. Internal.
CREATE FUNCTION crmapi.address_lock(own crmapi.agent) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('address:' || a.one, 0))
    FROM (SELECT crmapi.email_base(own.agent_email) AS one
          UNION SELECT crmapi.email_base(own.email_outbound_email)
          UNION SELECT crmapi.phone_key(own.agent_phone) ORDER BY 1) a
    WHERE a.one <> '';
END
$$;

-- Refuse an agent with an address of another one. The message does not say whose
-- it is. Locks: advisory ones of its addresses. A trigger function.
CREATE FUNCTION crmapi.agent_address() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    IF NOT crmapi.is_held(NEW.workspace_id) THEN
        PERFORM crmapi.address_lock(NEW);
        SELECT t.* INTO found FROM crmapi.address_taken(NEW) t;
        IF found.field IS NOT NULL THEN
            RAISE EXCEPTION '% belongs to another agent', found.field
                USING ERRCODE = 'unique_violation', COLUMN = found.field;
        END IF;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER address
    AFTER INSERT OR UPDATE OF agent_email, email_outbound_email, agent_phone
    ON crmapi.agent FOR EACH ROW EXECUTE FUNCTION crmapi.agent_address();

-- ---- release ---------------------------------------------------------------

-- What of WORKSPACE, which is held, belongs to another one that is not: WHAT, and
-- TAKEN_BY, that workspace. Both are null if nothing does. Locks: advisory ones of
-- its addresses. Internal.
CREATE FUNCTION crmapi.release_taken(workspace uuid, OUT what text,
                                     OUT taken_by uuid)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own crmapi.agent;
BEGIN
    FOR own IN SELECT a.* FROM crmapi.agent a
               WHERE a.workspace_id = release_taken.workspace
               ORDER BY a.agent_email, a.agent_phone, a.id LOOP
        PERFORM crmapi.address_lock(own);
        SELECT format('%s "%s" of the agent %s', t.field,
                      to_jsonb(own) ->> t.field, own.id), t.taken_by
        INTO what, taken_by FROM crmapi.address_taken(own) t
        WHERE t.field IS NOT NULL;
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- End the hold of WORKSPACE, or that of the database if it is null, and with
-- WORKSPACES those of all workspaces, too. Daemons are told. A database that is
-- released is at home where it is now. Returns how many holds ended. Fails with
-- unique_violation if an address belongs to another workspace now. Locks: of each
-- workspace advisory ones of its addresses, workspace_hold; instance. For the
-- owner.
CREATE FUNCTION crmapi.release(workspace uuid, workspaces boolean)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held uuid;
    taken record;
    here record;
    n bigint := 0;
    m bigint := 0;
BEGIN
    FOR held IN SELECT h.workspace_id FROM crmapi.workspace_hold h
                WHERE h.workspace_id = release.workspace OR workspaces
                ORDER BY h.workspace_id LOOP
        SELECT t.* INTO taken FROM crmapi.release_taken(held) t;
        IF taken.what IS NOT NULL THEN
            RAISE EXCEPTION '% belongs to the workspace "%" (%) now', taken.what,
                (SELECT w.slug FROM crmapi.workspace w
                 WHERE w.id = taken.taken_by), taken.taken_by
                USING ERRCODE = 'unique_violation';
        END IF;
        IF crmapi.is_closed(held) THEN
            PERFORM crmapi.hold_close(held, false);
        END IF;
        DELETE FROM crmapi.workspace_hold h WHERE h.workspace_id = held;
        GET DIAGNOSTICS m = ROW_COUNT;
        n := n + m;
    END LOOP;
    m := 0;
    IF workspace IS NULL THEN
        UPDATE crmapi.instance i SET held_at = NULL, held_reason = NULL
        WHERE i.held_at IS NOT NULL;
        GET DIAGNOSTICS m = ROW_COUNT;
        SELECT p.* INTO here FROM crmapi.instance_place() p;
        UPDATE crmapi.instance i SET system_id = here.system_id,
            database_id = here.database_id
        WHERE i.one;
    END IF;
    PERFORM pg_notify('crmapi_job', '');    -- all lanes: poll now
    RETURN n + m;
END
$$;

-- The same as release() without DUE_BEFORE. In the workspaces that it releases,
-- steps that were due before that time are skipped. A later bound of before
-- stays. For the owner.
CREATE FUNCTION crmapi.release(workspace uuid, workspaces boolean,
                               due_before timestamptz) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO crmapi.step_bound AS b (workspace_id, due_before)
    SELECT w.id, release.due_before FROM crmapi.workspace w
    CROSS JOIN crmapi.instance i
    LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = w.id
    WHERE (release.workspace IS NULL OR w.id = release.workspace)
      AND CASE WHEN h.workspace_id IS NOT NULL
          THEN workspaces OR release.workspace IS NOT NULL
          ELSE release.workspace IS NULL AND i.held_at IS NOT NULL END
    ON CONFLICT ON CONSTRAINT step_bound_pkey DO UPDATE
        SET due_before = greatest(b.due_before, excluded.due_before),
            released_at = excluded.released_at;
    RETURN crmapi.release(workspace, workspaces);
END
$$;

-- ---- older states ----------------------------------------------------------
-- KNOWN is the mark of a daemon: the highest number of each slot that it has
-- seen, from slot 0 on.

-- Whether this database is older than KNOWN. Internal.
CREATE FUNCTION crmapi.mark_behind(known bigint[]) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM crmapi.send_mark m
                   WHERE m.n < known[m.slot + 1]);
END
$$;

-- Whether nothing may be sent from this database before instance_look() has said
-- why: it is older than KNOWN, or it is another copy and not held: a test system
-- is made anew under a running daemon. For the worker.
CREATE FUNCTION crmapi.mark_refuses(known bigint[]) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN crmapi.mark_behind(known)
        OR EXISTS (SELECT FROM crmapi.instance i
                   CROSS JOIN crmapi.instance_place() p
                   WHERE i.held_at IS NULL
                     AND (i.system_id, i.database_id) <>
                         (p.system_id, p.database_id));
END
$$;

-- Take the next number, as a part of the transaction that permits a message.
-- Returns it times 16, plus its slot. Fails with CRM02 if nothing may be sent; see
-- mark_refuses(). Locks: send_mark. For the worker.
CREATE FUNCTION crmapi.mark_next(known bigint[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mine integer := pg_backend_pid() % 16;
    taken bigint;
BEGIN
    IF crmapi.mark_refuses(known) THEN
        RAISE EXCEPTION 'the database is another one than what was sent from'
            USING ERRCODE = 'CRM02';
    END IF;
    UPDATE crmapi.send_mark m SET n = m.n + 1 WHERE m.slot = mine
    RETURNING m.n INTO taken;
    RETURN taken * 16 + mine;
END
$$;

-- Compare this database with KNOWN, and with where it was. WHY is null if all
-- is well, otherwise the reason to hold it. MARKS are its present numbers. The
-- first call records where it is, and each one that finds another history records
-- that. For the worker.
CREATE FUNCTION crmapi.instance_look(known bigint[], OUT why text,
                                     OUT marks bigint[])
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here record;
    noted record;
BEGIN
    SELECT p.* INTO here FROM crmapi.instance_place() p;
    SELECT i.system_id, i.database_id INTO noted FROM crmapi.instance i;
    IF crmapi.instance_history() IS DISTINCT FROM
        (SELECT i.history FROM crmapi.instance i) THEN
        PERFORM crmapi.events_leave();
    END IF;
    IF noted.system_id IS NULL THEN     -- a write needs all servers
        UPDATE crmapi.instance i SET system_id = here.system_id,
            database_id = here.database_id
        WHERE i.one;
        noted := here;
    END IF;
    IF crmapi.mark_behind(known) THEN
        why := 'an older state of the database was restored';
    ELSIF noted IS DISTINCT FROM here THEN
        why := 'the database was restored or copied from another one';
    END IF;
    marks := (SELECT array_agg(m.n ORDER BY m.slot) FROM crmapi.send_mark m);
END
$$;

-- Hold the database because of WHY, unless it is held. A KNOWN that is not null
-- raises the numbers to it: the daemon has told all that it knows, and after
-- the next release this is no older state any more. Locks: instance,
-- send_mark. For the worker.
CREATE FUNCTION crmapi.instance_hold(why text, known bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.instance i SET held_at = crmapi.now_ms(), held_reason = why
    WHERE i.held_at IS NULL;
    UPDATE crmapi.send_mark m SET n = known[m.slot + 1]
    WHERE m.n < known[m.slot + 1];
    IF FOUND THEN
        PERFORM crmapi.events_leave();
    END IF;
END
$$;

-- Add SENDS, lines of a daemon's journal in its order, to what was sent. A
-- later line goes before an earlier one of the same message. Enrollments that
-- do not exist here, or have ended, are left out, and so are answers that do not
-- wait. Returns how many were taken. For the worker.
CREATE FUNCTION crmapi.past_add(sends jsonb) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
    more bigint;
BEGIN
    INSERT INTO crmapi.past_send AS p (workspace_id, enrollment_id, part,
                                       state, sent_at, provider_id)
    SELECT DISTINCT ON (e.workspace_id, e.id, s.line ->> 'part')
           e.workspace_id, e.id, s.line ->> 'part', s.line ->> 'state',
           (s.line ->> 'at')::timestamptz, s.line ->> 'provider_id'
    FROM jsonb_array_elements(sends) WITH ORDINALITY s(line, place)
    JOIN crmapi.enrollment e
        ON e.workspace_id = (s.line ->> 'workspace_id')::uuid
       AND e.id = (s.line ->> 'enrollment_id')::uuid
       AND crmapi.enrollment_is_live(e.status)
    ORDER BY e.workspace_id, e.id, s.line ->> 'part', s.place DESC
    ON CONFLICT ON CONSTRAINT past_send_pkey DO UPDATE
        SET state = excluded.state, sent_at = excluded.sent_at,
            provider_id = excluded.provider_id;
    GET DIAGNOSTICS n = ROW_COUNT;
    INSERT INTO crmapi.past_answer AS p (workspace_id, message_id, state,
                                         sent_at, provider_id)
    SELECT DISTINCT ON (m.workspace_id, m.id)
           m.workspace_id, m.id, s.line ->> 'state',
           (s.line ->> 'at')::timestamptz, s.line ->> 'provider_id'
    FROM jsonb_array_elements(sends) WITH ORDINALITY s(line, place)
    JOIN crmapi.message m
        ON m.workspace_id = (s.line ->> 'workspace_id')::uuid
       AND m.id = (s.line ->> 'message_id')::uuid AND m.status = 'queued'
    ORDER BY m.workspace_id, m.id, s.place DESC
    ON CONFLICT ON CONSTRAINT past_answer_pkey DO UPDATE
        SET state = excluded.state, sent_at = excluded.sent_at,
            provider_id = excluded.provider_id;
    GET DIAGNOSTICS more = ROW_COUNT;
    RETURN n + more;
END
$$;
