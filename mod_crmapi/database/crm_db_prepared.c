/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_prepared.c: the prepared statements of a connection */
#include "crm_db_prepared.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_db_private.h"
#include "crm_hash.h"

/* The length of a shared name: PostgreSQL keeps 63 bytes of a name. */
#define NAME_LEN 63

const char *crm_prepared_name(crm_prepared_name_t name, const crm_conn_t *conn,
                              const crm_prepared_t *prepared)
{
    if (prepared->named) {
        memcpy(name, "crm_", 4);
        crm_key_hash_hex(name + 4, prepared->hash);
        name[NAME_LEN] = '\0';
        return name;
    }
    apr_snprintf(name, sizeof(crm_prepared_name_t), "crm_%x_%u", conn->epoch,
                 prepared->number);
    return name;
}

/* The hash of a text, which costs a tenth of apr_hashfunc_default(). */
static unsigned hash_text(const char *text, apr_ssize_t *len_p)
{
    *len_p = (apr_ssize_t)strlen(text);
    return (unsigned)crm_hash(CRM_HASH_START, text, (apr_size_t)*len_p);
}

apr_hash_t *crm_prepared_table(apr_pool_t *pool)
{
    return apr_hash_make_custom(pool, hash_text);
}

/* Return an entry for a new statement: an unused one, or the least recently
 * used, which becomes OUTDATED because the server still has its statement.
 * Entries used after AFTER belong to this attempt. Return NULL if all do. */
static crm_prepared_t *find_place(crm_conn_t *conn, apr_uint64_t after)
{
    crm_prepared_t *oldest = NULL;

    for (int i = 0; i < CRM_DB_PREPARED_MAX; i++) {
        crm_prepared_t *prepared = &conn->prepared[i];

        if (!prepared->sql) {
            return prepared;
        }
        if (prepared->used <= after
            && (!oldest || prepared->used < oldest->used)) {
            oldest = prepared;
        }
    }
    if (oldest) {
        apr_hash_set(conn->by_sql, oldest->sql, APR_HASH_KEY_STRING, NULL);
        free(oldest->sql);
        oldest->sql = NULL;
        oldest->outdated = 1;
    }
    return oldest;
}

crm_prepared_t *crm_prepared_find(crm_conn_t *conn, const char *sql,
                                  apr_uint64_t after)
{
    crm_prepared_t *prepared = apr_hash_get(conn->by_sql, sql,
                                            APR_HASH_KEY_STRING);

    if (!prepared) {
        prepared = find_place(conn, after);
        if (!prepared || !(prepared->sql = strdup(sql))) {
            return NULL;
        }
        prepared->uses = prepared->named = 0;
        apr_hash_set(conn->by_sql, prepared->sql, APR_HASH_KEY_STRING,
                     prepared);
    }
    prepared->used = ++conn->clock;
    return prepared;
}

crm_prepared_t *crm_prepared_shared(crm_conn_t *conn, const char *sql,
                                    apr_uint64_t after)
{
    crm_prepared_t *prepared = crm_prepared_find(conn, sql, after);

    if (!prepared || prepared->named) {
        return prepared;
    }
    if (++prepared->uses < CRM_DB_SHARED_FROM
        || conn->shared_names >= CRM_DB_SHARED_MAX) {
        return NULL;
    }
    conn->shared_names++;
    crm_key_hash(prepared->hash, sql, strlen(sql));
    prepared->named = 1;
    return prepared;
}

void crm_prepared_note(crm_prepared_t *prepared, int step, int ok)
{
    if (step == CRM_STEP_DEALLOCATE && ok) {
        prepared->old_number = 0;
    }
    if (step == CRM_STEP_PREPARE && !ok) {
        prepared->prepared = prepared->old_number != 0;
        prepared->outdated = prepared->prepared;
        prepared->number = prepared->old_number;
    }
}

void crm_prepared_forget(crm_conn_t *conn)
{
    apr_hash_clear(conn->by_sql);
    conn->shared_names = 0;
    for (int i = 0; i < CRM_DB_PREPARED_MAX; i++) {
        free(conn->prepared[i].sql);
        memset(&conn->prepared[i], 0, sizeof(conn->prepared[i]));
    }
}
