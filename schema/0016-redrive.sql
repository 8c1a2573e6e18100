-- SPDX-License-Identifier: Apache-2.0
-- 0016-redrive.sql: deliveries are sent again in one workspace

-- Ids are unique in a workspace only: where one export was imported twice, two
-- have the same.
DROP FUNCTION crmapi.webhook_redrive(uuid);

-- Send again what TARGET is in WORKSPACE: a delivery, whatever became of it,
-- unless it is being made at this moment; or an endpoint: all its failed ones.
-- Not to those that are disabled. Returns how many there were.
CREATE FUNCTION crmapi.webhook_redrive(workspace uuid, target uuid)
    RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n bigint;
BEGIN
    WITH chosen AS MATERIALIZED (
        SELECT d.workspace_id, d.id, d.job_id AS old_id
        FROM crmapi.webhook_delivery d
        WHERE d.workspace_id = webhook_redrive.workspace
          AND (d.id = target OR (d.endpoint_id = target
                                 AND d.status = 'failed'))
          AND EXISTS (SELECT FROM crmapi.webhook_endpoint e
              WHERE e.workspace_id = d.workspace_id AND e.id = d.endpoint_id
                AND e.disabled_at IS NULL)
          AND NOT EXISTS (SELECT FROM crmapi.job j
              WHERE j.workspace_id = d.workspace_id AND j.id = d.job_id
                AND j.state = 'leased')
        ORDER BY d.id FOR UPDATE OF d),
    planned AS MATERIALIZED (
        SELECT c.*, nextval('crmapi.job_id_seq') AS job_id FROM chosen c),
    moved AS (
        UPDATE crmapi.webhook_delivery d SET status = 'pending',
            base = d.attempts, next_at = crmapi.now_ms(), finished_at = NULL,
            job_id = p.job_id
        FROM planned p
        WHERE d.workspace_id = p.workspace_id AND d.id = p.id),
    ended AS (
        UPDATE crmapi.job j SET state = 'cancelled',
            finished_at = crmapi.now_ms()
        FROM planned p
        WHERE j.workspace_id = p.workspace_id AND j.id = p.old_id
          AND j.state IN ('ready', 'dead'))
    INSERT INTO crmapi.job (id, workspace_id, kind, payload)
    OVERRIDING SYSTEM VALUE
    SELECT p.job_id, p.workspace_id, 'webhook.deliver',
           jsonb_build_object('delivery_id', p.id)
    FROM planned p;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;
REVOKE EXECUTE ON FUNCTION crmapi.webhook_redrive(uuid, uuid) FROM PUBLIC;
