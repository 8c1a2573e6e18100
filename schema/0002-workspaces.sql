-- SPDX-License-Identifier: Apache-2.0
-- 0002-workspaces.sql: plans, workspaces, API keys, signed links, who changed what,
-- usage
--
-- No program's role reads a secret (contract 9.3): hashes of keys, the keys of
-- links. Functions of the owner compare and sign.

-- ---- plans (contract 3.3) --------------------------------------------------

-- Rows, so that an operator can change them.
CREATE TABLE crmapi.plan (
    name crmapi.title PRIMARY KEY,
    api boolean NOT NULL,
    sequences boolean NOT NULL
);
INSERT INTO crmapi.plan (name, api, sequences) VALUES
    ('free', false, false),
    ('starter', false, false),
    ('standard', true, false),
    ('pro', true, true),
    ('enterprise', true, true);

-- ---- workspaces ------------------------------------------------------------

CREATE TABLE crmapi.workspace (
    id uuid PRIMARY KEY,
    name crmapi.title NOT NULL,
    slug text COLLATE "C" NOT NULL UNIQUE
        CHECK (slug ~ '^[a-z0-9-]{1,63}$'),
    plan crmapi.title NOT NULL DEFAULT 'standard'
        REFERENCES crmapi.plan (name),
    time_zone text NOT NULL DEFAULT 'UTC',
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    read_limit integer,                 -- null: the virtual host's
    write_limit integer,
    currency text COLLATE "C" CHECK (currency ~ '^[A-Z]{3}$'),
    -- that its mails may be from, as A-labels; null: as the site says
    sender_domains text[] COLLATE "C"
        CHECK (cardinality(sender_domains) BETWEEN 1 AND 100),
    -- after how many days upkeep deletes them (contract 14.5); null: it does not
    retention_conversations integer
        CHECK (retention_conversations BETWEEN 1 AND 36500),
    retention_submissions integer
        CHECK (retention_submissions BETWEEN 1 AND 36500),
    retention_events integer CHECK (retention_events BETWEEN 1 AND 36500),
    CONSTRAINT workspace_limits
        CHECK (read_limit BETWEEN 1 AND 1000000
               AND write_limit BETWEEN 1 AND 1000000)
);

-- The module caches both with the workspace's keys.
CREATE TRIGGER id_fixed BEFORE UPDATE OF id ON crmapi.workspace
    FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id)
    EXECUTE FUNCTION crmapi.refuse_change('id');
CREATE TRIGGER slug_fixed BEFORE UPDATE OF slug ON crmapi.workspace
    FOR EACH ROW WHEN (NEW.slug IS DISTINCT FROM OLD.slug)
    EXECUTE FUNCTION crmapi.refuse_change('slug');

-- Check a workspace's time zone. A trigger function.
CREATE FUNCTION crmapi.workspace_time_zone() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM now() AT TIME ZONE NEW.time_zone;   -- fails if it is unknown
    RETURN NEW;
END
$$;
CREATE TRIGGER time_zone BEFORE INSERT OR UPDATE OF time_zone
    ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.workspace_time_zone();

-- ---- API keys (contract 3, 14.5) -------------------------------------------

-- The module remembers a key with its terms: its limits and networks. The id of
-- the terms is what the statement of a request looks the key up by. Whoever
-- changes terms gives them a new id, so the next statement finds no key and the
-- module reads the terms again. That costs a request nothing.
CREATE TABLE crmapi.api_key (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    name crmapi.title NOT NULL,
    -- SHA-256 of the key. It is unique across workspaces, because a key leads
    -- to its workspace.
    key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    display text COLLATE "C" NOT NULL,
    can_read boolean NOT NULL DEFAULT true,
    can_write boolean NOT NULL DEFAULT false,
    -- What the workspace's plan permits. A copy: each request checks it, and
    -- one look-up takes 3 microseconds where a join takes 21.
    plan_api boolean NOT NULL DEFAULT false,
    plan_sequences boolean NOT NULL DEFAULT false,
    -- The workspace is held and its API is closed: a copy, too (workspace_hold).
    closed boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT crmapi.now_ms(),
    last_used_at timestamptz(3),
    revoked_at timestamptz(3),
    read_limit integer,                 -- null: the workspace's
    write_limit integer,
    expires_at timestamptz(3),
    networks cidr[],                    -- null: any address
    terms uuid,                         -- null: those that it began with
    PRIMARY KEY (workspace_id, id),
    CHECK (can_read),           -- write implies read; every key has a scope
    CONSTRAINT api_key_terms
        CHECK (read_limit BETWEEN 1 AND 1000000
               AND write_limit BETWEEN 1 AND 1000000
               AND cardinality(networks) BETWEEN 1 AND 32
               AND array_position(networks, NULL) IS NULL)
-- last_used_at of a key that is in use changes once a minute. No index has it, so
-- such an UPDATE writes the row only, if its page has room (HOT).
) WITH (fillfactor = 50);
-- how a request finds its key
CREATE UNIQUE INDEX api_key_by_terms
    ON crmapi.api_key (workspace_id, coalesce(terms, id));

CREATE TRIGGER id_fixed
    BEFORE UPDATE OF workspace_id, id, key_hash ON crmapi.api_key
    FOR EACH ROW WHEN ((NEW.workspace_id, NEW.id, NEW.key_hash)
                       IS DISTINCT FROM (OLD.workspace_id, OLD.id, OLD.key_hash))
    EXECUTE FUNCTION crmapi.refuse_change('what a key is and where it belongs');
CREATE TRIGGER revoked_fixed BEFORE UPDATE OF revoked_at ON crmapi.api_key
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL
                       AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION crmapi.refuse_change('the revocation of a key');

-- Give a key whose terms change a new id of them. A trigger function.
CREATE FUNCTION crmapi.api_key_terms() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.terms := gen_random_uuid();
    RETURN NEW;
END
$$;
CREATE TRIGGER terms BEFORE UPDATE OF read_limit, write_limit, networks
    ON crmapi.api_key
    FOR EACH ROW WHEN ((NEW.read_limit, NEW.write_limit, NEW.networks)
                       IS DISTINCT FROM
                       (OLD.read_limit, OLD.write_limit, OLD.networks))
    EXECUTE FUNCTION crmapi.api_key_terms();

-- The same for the keys of a workspace whose limits change. A key that is being
-- created has locked the workspace: api_key_plan(). Locks: workspace, key. A
-- trigger function.
CREATE FUNCTION crmapi.workspace_terms() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key uuid;
    made uuid;
BEGIN
    FOR key IN SELECT k.id FROM crmapi.api_key k
        WHERE k.workspace_id = NEW.id ORDER BY k.id
    LOOP
        made := gen_random_uuid();
        UPDATE crmapi.api_key k SET terms = made
        WHERE k.workspace_id = NEW.id AND k.id = key;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER terms AFTER UPDATE OF read_limit, write_limit
    ON crmapi.workspace
    FOR EACH ROW WHEN ((NEW.read_limit, NEW.write_limit)
                       IS DISTINCT FROM (OLD.read_limit, OLD.write_limit))
    EXECUTE FUNCTION crmapi.workspace_terms();

-- ---- a plan's rights beside its keys ---------------------------------------
-- Triggers update the keys in the transaction that changes a plan or a
-- workspace's plan. Locks: workspace, plan, key.

-- What the plan NAME permits. A transaction that changes it waits for this one, or
-- this one for it. Locks: plan. Internal.
CREATE FUNCTION crmapi.plan_rights(name text, OUT api boolean,
                                   OUT sequences boolean)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.api, p.api AND p.sequences FROM crmapi.plan p
    WHERE p.name = plan_rights.name FOR SHARE
$$;

-- Fill the rights of a new key. Two statements: after a statement has waited
-- for a lock it sees the new version of the locked row only, not of rows that
-- it joins. Locks: workspace, plan. A trigger function.
CREATE FUNCTION crmapi.api_key_plan() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text;
BEGIN
    SELECT w.plan INTO name FROM crmapi.workspace w
    WHERE w.id = NEW.workspace_id FOR SHARE;
    SELECT coalesce(r.api, false), coalesce(r.sequences, false)
    INTO NEW.plan_api, NEW.plan_sequences FROM crmapi.plan_rights(name) r;
    NEW.closed := crmapi.is_closed(NEW.workspace_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER plan BEFORE INSERT ON crmapi.api_key
    FOR EACH ROW EXECUTE FUNCTION crmapi.api_key_plan();

-- Update the keys of a workspace whose plan changes. Locks: workspace, plan, key.
-- A trigger function.
CREATE FUNCTION crmapi.workspace_plan() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    may record;
BEGIN
    SELECT r.* INTO may FROM crmapi.plan_rights(NEW.plan) r;
    UPDATE crmapi.api_key k
    SET plan_api = may.api, plan_sequences = may.sequences
    WHERE k.workspace_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER plan AFTER UPDATE OF plan ON crmapi.workspace
    FOR EACH ROW WHEN (NEW.plan IS DISTINCT FROM OLD.plan)
    EXECUTE FUNCTION crmapi.workspace_plan();

-- Update the keys of all workspaces with a plan that changes. A trigger
-- function.
CREATE FUNCTION crmapi.plan_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE crmapi.api_key k
    SET plan_api = NEW.api, plan_sequences = NEW.api AND NEW.sequences
    FROM crmapi.workspace w WHERE w.plan = NEW.name AND k.workspace_id = w.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER rights AFTER UPDATE OF api, sequences ON crmapi.plan
    FOR EACH ROW WHEN ((NEW.api, NEW.sequences)
                       IS DISTINCT FROM (OLD.api, OLD.sequences))
    EXECUTE FUNCTION crmapi.plan_change();

-- ---- looking up a key ------------------------------------------------------

-- The keys that are neither revoked nor expired and what they permit. LEFT JOIN:
-- the planner drops it from a query that reads no column of the workspace.
CREATE VIEW crmapi.live_key AS
    SELECT k.workspace_id, k.key_hash, k.id AS key_id, w.slug,
           k.can_read AS read, k.can_write AS write,
           k.plan_api AND NOT k.closed AS plan_api,
           k.plan_sequences AND NOT k.closed AS plan_sequences, k.closed,
           coalesce(k.terms, k.id) AS terms,
           coalesce(k.read_limit, w.read_limit) AS read_limit,
           coalesce(k.write_limit, w.write_limit) AS write_limit,
           k.networks, k.name, k.expires_at
    FROM crmapi.api_key k
    LEFT JOIN crmapi.workspace w ON w.id = k.workspace_id
    WHERE k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now());

-- The live key with the hash HASH and its terms: one row or none. NETWORKS are
-- separated by spaces. For the API.
CREATE FUNCTION crmapi.key_look_up(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text, terms uuid,
                   read_limit integer, write_limit integer, networks text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.key_id, k.workspace_id, k.slug, k.terms,
        k.read_limit, k.write_limit, array_to_string(k.networks, ' ')
    FROM crmapi.live_key k WHERE k.key_hash = key_look_up.hash;
END
$$;

-- ---- signed links ----------------------------------------------------------

-- What a workspace's links are signed with: 32 random bytes.
CREATE TABLE crmapi.link_key (
    workspace_id uuid PRIMARY KEY
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    key bytea NOT NULL CHECK (octet_length(key) = 32),
    old_key bytea,                      -- verifies, does not sign
    old_key_until timestamptz(3),       -- until then
    CONSTRAINT link_key_old
        CHECK ((old_key IS NULL) = (old_key_until IS NULL)
               AND octet_length(old_key) = 32)
);

-- Make the key of a new workspace. gen_random_uuid() is PostgreSQL's
-- cryptographically strong source of randomness. A trigger function.
CREATE FUNCTION crmapi.link_key_make() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made bytea := sha256(uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
BEGIN
    INSERT INTO crmapi.link_key (workspace_id, key)
    VALUES (NEW.id, made);
    RETURN NULL;
END
$$;
CREATE TRIGGER link_key AFTER INSERT ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.link_key_make();

-- The signature of HEAD by its workspace's key. HEAD is the first 58 bytes of
-- a token: version, purpose, workspace, two more ids, expiry. NULL if HEAD is
-- no such thing or its workspace does not exist. Internal.
CREATE FUNCTION crmapi.token_mac(head bytea) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace uuid := CASE WHEN octet_length(head) = 58
        THEN encode(substring(head FROM 3 FOR 16), 'hex')::uuid END;
BEGIN
    RETURN (SELECT crmapi.mac(head, k.key) FROM crmapi.link_key k
            WHERE k.workspace_id = workspace);
END
$$;

-- The same as token_mac() by the key before, NULL if it verifies no more.
-- Internal.
CREATE FUNCTION crmapi.token_old_mac(head bytea) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace uuid := CASE WHEN octet_length(head) = 58
        THEN encode(substring(head FROM 3 FOR 16), 'hex')::uuid END;
BEGIN
    RETURN (SELECT crmapi.mac(head, k.old_key) FROM crmapi.link_key k
            WHERE k.workspace_id = workspace AND k.old_key_until > now());
END
$$;

-- Sign the HEAD of a link in a mail: review (1), unsubscribe (2). For the
-- worker.
CREATE FUNCTION crmapi.token_sign_link(head bytea) RETURNS bytea
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN substring(head FROM 2 FOR 1) IN ('\x01', '\x02')
        THEN crmapi.token_mac(head) END;

-- Sign the HEAD of a token that a page gives to a browser: form (3), visitor
-- (4). For the API.
CREATE FUNCTION crmapi.token_sign_page(head bytea) RETURNS bytea
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN substring(head FROM 2 FOR 1) IN ('\x03', '\x04')
        THEN crmapi.token_mac(head) END;

-- True, but fails with CRM03 if the API of the workspace of HEAD is closed. Internal.
CREATE FUNCTION crmapi.token_open(head bytea) RETURNS boolean
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    workspace uuid := encode(substring(head FROM 3 FOR 16), 'hex')::uuid;
BEGIN
    IF crmapi.is_closed(workspace) THEN
        RAISE EXCEPTION 'the workspace is closed' USING ERRCODE = 'CRM03';
    END IF;
    RETURN true;
END
$$;

-- Whether MAC is the signature of HEAD, by the key of its workspace or by the
-- one before. Hashes are compared, so that the time reveals nothing about the
-- signature. For the API.
CREATE FUNCTION crmapi.token_signed(head bytea, mac bytea)
    RETURNS boolean
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN (coalesce(sha256(crmapi.token_mac(head)) = sha256(mac), false)
            OR coalesce(sha256(crmapi.token_old_mac(head)) = sha256(mac), false))
        AND crmapi.token_open(head);

-- Give WORKSPACE a new key for its links. The one before verifies until UNTIL.
-- False if one before still does: links signed with it would die. For the
-- owner.
CREATE FUNCTION crmapi.link_key_rotate(workspace uuid,
                                       until timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made bytea := sha256(uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
BEGIN
    UPDATE crmapi.link_key k
    SET old_key = k.key, old_key_until = link_key_rotate.until, key = made
    WHERE k.workspace_id = link_key_rotate.workspace
      AND (k.old_key_until IS NULL OR k.old_key_until <= now());
    RETURN FOUND;
END
$$;

-- End the old key of WORKSPACE's links. For the owner.
CREATE FUNCTION crmapi.link_key_drop(workspace uuid) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE crmapi.link_key k SET old_key = NULL, old_key_until = NULL
    WHERE k.workspace_id = link_key_drop.workspace;
END
$$;

-- ---- who changed what (contract 14.7) ----------------------------------------

-- What operators, admins and keys have changed. The role of no daemon may change or
-- delete a row, or read one; audit_trim() deletes old ones. A row has no contact's
-- data and no secret. A row of a workspace goes with it (its trigger zz_audit);
-- that it was created, held, released, restored or deleted, and what concerns no
-- workspace, is in rows with a workspace_id of zeros, which no dump has.
CREATE TABLE crmapi.audit (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    at timestamptz(3) NOT NULL,
    actor_kind text COLLATE "C" NOT NULL
        CHECK (actor_kind IN ('system', 'admin', 'key')),
    actor crmapi.line NOT NULL,     -- name of a system user, id of an admin or key
    login crmapi.line NOT NULL,     -- the role of the database
    origin crmapi.line,             -- host of the command, address of the client
    action crmapi.line NOT NULL,    -- "key revoke"
    object crmapi.line NOT NULL,    -- "key"
    object_id crmapi.line,
    details jsonb NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX audit_at ON crmapi.audit (workspace_id, at, id);

-- Add a row about WORKSPACE (null: none). Internal.
CREATE FUNCTION crmapi.audit_add(workspace uuid, actor_kind text, actor text,
        origin text, action text, object text, object_id text, details jsonb)
    RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    whose CONSTANT uuid := coalesce(workspace,
                                    '00000000-0000-0000-0000-000000000000');
    made CONSTANT uuid := gen_random_uuid();
BEGIN
    INSERT INTO crmapi.audit (workspace_id, id, at, actor_kind, actor, login,
                              origin, action, object, object_id, details)
    VALUES (whose, made, crmapi.now_ms(), actor_kind, left(actor, 1000),
            session_user, left(origin, 1000), action, object,
            left(object_id, 1000), details);
END
$$;

-- After a workspace was deleted: its rows in the table of the argument go, which has no
-- foreign key to it. The triggers are named "zz": they run after the cascades, which
-- wait for the workspace's last writes. A trigger function.
CREATE FUNCTION crmapi.workspace_forget() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('DELETE FROM crmapi.%I t WHERE t.workspace_id = $1', TG_ARGV[0])
    USING OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER zz_audit AFTER DELETE ON crmapi.workspace
    FOR EACH ROW EXECUTE FUNCTION crmapi.workspace_forget('audit');

-- What a workspace has used on a day in UTC (contract 14.7). The module adds requests,
-- which it has counted in memory, with those that were answered 429. Messages,
-- deliveries of webhooks and bytes are measured by the worker once a day
-- (0019-upkeep.sql); null: not measured on that day. They stay when what was counted is
-- deleted.
CREATE TABLE crmapi.usage (
    workspace_id uuid NOT NULL
        REFERENCES crmapi.workspace ON DELETE CASCADE,
    day date NOT NULL,
    requests bigint NOT NULL DEFAULT 0 CHECK (requests >= 0),
    limited bigint NOT NULL DEFAULT 0 CHECK (limited BETWEEN 0 AND requests),
    messages_in bigint CHECK (messages_in >= 0),
    messages_out bigint CHECK (messages_out >= 0),
    webhooks bigint CHECK (webhooks >= 0),
    storage bigint CHECK (storage >= 0),
    PRIMARY KEY (workspace_id, day)
);

-- Add REQUESTS, of which LIMITED were answered 429, to those of WORKSPACE on the day
-- DAYS after 1970-01-01, unless the workspace is gone. Locks: usage. For the API.
CREATE FUNCTION crmapi.usage_add(workspace uuid, days integer, requests bigint,
                                 limited bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM crmapi.workspace w WHERE w.id = usage_add.workspace;
    IF FOUND THEN
        INSERT INTO crmapi.usage AS u (workspace_id, day, requests, limited)
        VALUES (workspace, date '1970-01-01' + days, usage_add.requests,
                usage_add.limited)
        ON CONFLICT ON CONSTRAINT usage_pkey DO UPDATE
            SET requests = u.requests + excluded.requests,
                limited = u.limited + excluded.limited;
    END IF;
END
$$;

-- ---- deleting a workspace --------------------------------------------------

-- Delete the workspace TARGET and all its rows, in one cascade: rows first,
-- then the checks of foreign keys. It takes 50 to 60 microseconds per contact.
-- For the owner.
CREATE FUNCTION crmapi.workspace_delete(target uuid) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM crmapi.workspace w WHERE w.id = workspace_delete.target;
END
$$;
