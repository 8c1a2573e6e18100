-- SPDX-License-Identifier: Apache-2.0
-- 0015-secrets.sql: no role of a daemon reads a secret (contract 9.3)
--
-- Secrets are hashes of keys and tokens, the keys of links and those of
-- webhooks. Functions compare with them and sign with them; nobody but the
-- owner selects them. t/05-schema.t has the list.

CREATE EXTENSION IF NOT EXISTS pgcrypto SCHEMA public;
-- Wherever it is: the functions below keep what their names mean now.
SELECT set_config('search_path', 'pg_catalog, ' || quote_ident(n.nspname),
                  true)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pgcrypto';

-- ---- keys and tokens --------------------------------------------------------

-- Whose key has the hash HASH, if it is alive: no row or one. From then on it
-- is asked for by its id, which is no secret and never another key's.
CREATE FUNCTION crmapi.key_find(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
BEGIN ATOMIC
    SELECT k.key_id, k.workspace_id, k.slug FROM crmapi.live_key k
    WHERE k.key_hash = key_find.hash;
END;

-- The same of an intake token.
CREATE FUNCTION crmapi.intake_key_find(hash bytea)
    RETURNS TABLE (key_id uuid, workspace_id uuid, slug text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
BEGIN ATOMIC
    SELECT k.key_id, k.workspace_id, k.slug FROM crmapi.live_intake k
    WHERE k.key_hash = intake_key_find.hash;
END;

REVOKE SELECT ON crmapi.live_key, crmapi.live_intake FROM crmapi_api;
GRANT SELECT (workspace_id, key_id, slug, read, write, plan_api,
              plan_sequences) ON crmapi.live_key TO crmapi_api;

-- ---- links ------------------------------------------------------------------

-- The signature of HEAD, the first 58 bytes of a token (core/crm_token.c:
-- version, purpose, workspace, two more ids, the end of its time), by its
-- workspace's key. Null: it is no such thing, or there is no such workspace.
CREATE FUNCTION crmapi.token_mac(head bytea) RETURNS bytea
    LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT hmac(head, k.key, 'sha256') FROM crmapi.link_key k
    WHERE k.workspace_id = CASE WHEN octet_length(head) = 58
        THEN encode(substring(head FROM 3 FOR 16), 'hex')::uuid END;
END;

-- The worker signs links in mails: to review (1), to unsubscribe (2).
CREATE FUNCTION crmapi.token_sign_link(head bytea) RETURNS bytea
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN substring(head FROM 2 FOR 1) IN ('\x01', '\x02')
        THEN crmapi.token_mac(head) END;

-- The API signs what pages give to browsers: forms (3), visitors (4).
CREATE FUNCTION crmapi.token_sign_page(head bytea) RETURNS bytea
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN substring(head FROM 2 FOR 1) IN ('\x03', '\x04')
        THEN crmapi.token_mac(head) END;

-- Whether MAC is the signature of HEAD. Hashes are compared, so that the time
-- it takes tells nothing of the signature.
CREATE FUNCTION crmapi.token_signed(head bytea, mac bytea) RETURNS boolean
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    RETURN coalesce(sha256(crmapi.token_mac(head)) = sha256(mac), false);

REVOKE SELECT ON crmapi.link_key FROM crmapi_api, crmapi_worker;

-- ---- webhooks (contract 12.2) -----------------------------------------------

-- The "v1" signature of TEXT by KEY; null by none.
CREATE FUNCTION crmapi.webhook_mac(text text, key bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
    RETURN 'v1,' || encode(hmac(convert_to(text, 'UTF8'), key, 'sha256'),
                           'base64');

-- What the event of DELIVERY is called where it is sent, the same in all
-- attempts, and the signatures of its body as sent at SENT_AT (seconds since
-- 1970): by its endpoint's key, and by the one before if that is good at MOMENT
-- (null: now), with a space between them. No row: it is gone, or has no body.
CREATE FUNCTION crmapi.webhook_sign(workspace uuid, delivery uuid,
                                    sent_at text, moment timestamptz)
    RETURNS TABLE (id text, signatures text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    ROWS 1
BEGIN ATOMIC
    SELECT m.id, concat_ws(' ', crmapi.webhook_mac(m.text, e.key),
        CASE WHEN e.old_key_until > coalesce(moment, statement_timestamp())
        THEN crmapi.webhook_mac(m.text, e.old_key) END)
    FROM crmapi.webhook_delivery d
    JOIN crmapi.webhook_event v ON v.workspace_id = d.workspace_id
        AND v.id = d.event_id AND v.body IS NOT NULL
    JOIN crmapi.webhook_endpoint e ON e.workspace_id = d.workspace_id
        AND e.id = d.endpoint_id,
    LATERAL (SELECT 'msg_' || replace(v.id::text, '-', '') AS id) n,
    LATERAL (SELECT n.id, n.id || '.' || sent_at || '.' || v.body AS text) m
    WHERE d.workspace_id = webhook_sign.workspace
      AND d.id = webhook_sign.delivery;
END;

REVOKE SELECT ON crmapi.webhook_endpoint FROM crmapi_worker;
GRANT SELECT (id, workspace_id, url, events, disabled_at, disabled_reason,
              created_at) ON crmapi.webhook_endpoint TO crmapi_worker;

-- ---- rights -----------------------------------------------------------------

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT p.oid::regprocedure AS name, r.role
        FROM (VALUES ('key_find', 'crmapi_api'),
            ('intake_key_find', 'crmapi_api'), ('token_mac', NULL),
            ('token_sign_link', 'crmapi_worker'),
            ('token_sign_page', 'crmapi_api'), ('token_signed', 'crmapi_api'),
            ('webhook_mac', NULL), ('webhook_sign', 'crmapi_worker'))
            r(name, role)
        JOIN pg_proc p ON p.proname = r.name
            AND p.pronamespace = 'crmapi'::regnamespace
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one.name);
        IF one.role IS NOT NULL THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', one.name,
                           one.role);
        END IF;
    END LOOP;
END
$$;
