-- SPDX-License-Identifier: Apache-2.0
-- 0002-plans.sql: how functions plan their statements
--
-- Citus 13.2.1 to 14.0.1 keep one more plan whenever a server runs a statement that
-- was planned for all values (citusdata/citus#8824): its sessions would grow by 0.1
-- MB with each write. Functions of SQL keep no plans.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p
        JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
        WHERE p.pronamespace = 'crmapi'::regnamespace
          AND 'plan_cache_mode=force_custom_plan' = ANY (p.proconfig)
              IS NOT TRUE
    LOOP
        EXECUTE format(
            'ALTER FUNCTION %s SET plan_cache_mode = force_custom_plan', f);
    END LOOP;
END
$$;
