/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_webhook.c: webhook endpoints and deliveries */
#include "crmapictl_webhook.h"

#include <stdio.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_resources.h"
#include "crm_time.h"
#include "crm_type_list.h"
#include "crm_uuid.h"
#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_url.h"
#include "crmapictl_workspace.h"
#include "event.h"

/* The columns of an endpoint, and their SQL. */
#define FIELDS "e.id, e.url, to_json(e.events), e.created_at, e.disabled_at," \
    " e.disabled_reason, e.old_key_until"
#define COLUMNS {"id", 's'}, {"url", 's'}, {"events", 'a'}, \
    {"created_at", 't'}, {"disabled_at", 't'}, {"disabled_reason", 's'}, \
    {"old_secret_until", 't'}
static const ctl_column_t columns[] = {COLUMNS, {NULL, 0}};

/* The same with the secret in the form of Standard Webhooks, for the commands
 * that create it. encode() does not wrap lines as short as this one. */
#define SECRET ", 'whsec_' || encode(e.key, 'base64')"
enum { SECRET_COLUMN = 7 };
static const ctl_column_t new_columns[] = {
    COLUMNS, {"secret", 's'}, {NULL, 0}
};

static const ctl_column_t delivery_columns[] = {
    {"id", 's'}, {"created_at", 't'}, {"event", 's'}, {"webhook_id", 's'},
    {"endpoint_id", 's'}, {"status", 's'}, {"attempts", 'n'},
    {"next_at", 't'}, {"last_attempt_at", 't'}, {"duration_ms", 'n'},
    {"http_status", 'n'}, {"error", 's'}, {"answer", 's'}, {NULL, 0}
};

/* Add the types of events that PART names to TYPES: one, those of a resource
 * ("contact.*"), or all ("*"). Return whether there are any. */
static int add_types(apr_array_header_t *types, const char *part)
{
    size_t len = strlen(part);
    int many = len && part[len - 1] == '*' && (len == 1 || part[len - 2] == '.');
    int before = types->nelts;

    for (const crm_event_type_t *type = crm_event_types; type->type; type++) {
        if (many ? !strncmp(type->type, part, len - 1) : !strcmp(type->type, part)) {
            APR_ARRAY_PUSH(types, const char *) = type->type;
        }
    }
    return types->nelts > before;
}

/* Set *EVENTS_P to the types that --events names, separated by commas. */
static crm_error_t *get_events(const char **events_p, ctl_t *ctl)
{
    apr_array_header_t *parts = crm_type_parts(ctl->options[CTL_EVENTS],
                                               ctl->pool);
    apr_array_header_t *types = apr_array_make(ctl->pool, 8, sizeof(const char *));
    const char *unknown = parts->nelts ? NULL : "nothing";

    for (int i = 0; !unknown && i < parts->nelts; i++) {
        const char *part = APR_ARRAY_IDX(parts, i, const char *);

        unknown = add_types(types, part) ? NULL : part;
    }
    *events_p = apr_array_pstrcat(ctl->pool, types, ',');
    return unknown ? ctl_misuse(ctl, "--events names %s: it %s", unknown,
                                crm_event_types_rule(ctl->pool)) : NULL;
}

/* Return an error about --url if the database refused it with ERROR; otherwise
 * ERROR. */
static crm_error_t *explain(ctl_t *ctl, crm_error_t *error)
{
    if (crm_error_is(error, "23514") || crm_error_is(error, "22P02")) {
        return ctl_misuse(ctl, "--url must be http:// or https:// in ASCII,"
                          " without user and blanks, at most 2,048 characters");
    }
    return error;
}

crm_error_t *ctl_webhook_add(ctl_t *ctl)
{
    char id[CRM_UUID_LEN + 1];
    const char *values[4] = {id, NULL, ctl->options[CTL_URL], NULL};
    const char *private;
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(get_events(&values[3], ctl));
    error = ctl_url_check(&private, ctl, ctl->options[CTL_URL]);
    if (error) {
        return ctl_misuse(ctl, "--url: %s", error->message);
    }
    CRM_ERR(ctl_workspace_id(&values[1], ctl, ctl->options[CTL_WORKSPACE]));
    crm_uuid_v7(id);
    ctl_audit_object(ctl, values[1], apr_pstrdup(ctl->pool, id));
    CRM_ERR(explain(ctl, ctl_query(&result, ctl, "INSERT INTO"
                                   " crmapi.webhook_endpoint AS e (id,"
                                   " workspace_id, url, events, key) SELECT"
                                   " $1::uuid, $2::uuid, $3::text,"
                                   " ARRAY(SELECT DISTINCT n"
                                   " FROM string_to_table($4, ',') n ORDER BY"
                                   " n),"
                                   " crmapi.webhook_key()"
                                   " RETURNING " FIELDS SECRET, 4, values)));
    ctl_print_one(ctl, apr_pstrcat(ctl->pool, id, "\t",
                                   PQgetvalue(result, 0, SECRET_COLUMN),
                                   NULL), result, new_columns);
    ctl_url_tell(private);
    return NULL;
}

crm_error_t *ctl_webhook_list(ctl_t *ctl)
{
    return ctl_workspace_rows(ctl, "SELECT " FIELDS
                              " FROM crmapi.webhook_endpoint e"
                              " WHERE e.workspace_id = $1::uuid"
                              " ORDER BY e.created_at, e.id", columns);
}

/* What is sent to an endpoint needs one that is not disabled. */
#define ENABLE_FIRST "the endpoint is disabled: webhook enable first"

/* The end of a statement about an endpoint. */
#define ENDPOINT " WHERE e.workspace_id = $1::uuid AND e.id = $2::uuid"

/* Set VALUES, in the command's pool, to the workspace and the id of the endpoint
 * in the operand, and *RESULT_P to its row with its secret. It stays locked, so that
 * of two that remove it, or rotate its secret, the second sees what the first did. */
static crm_error_t *find(PGresult **result_p, const char *values[2],
                         ctl_t *ctl)
{
    char *id = apr_palloc(ctl->pool, CRM_UUID_LEN + 1);

    CRM_ERR(ctl_uuid(id, ctl, "ID", ctl->args[0]));
    values[1] = id;
    CRM_ERR(ctl_owner(&values[0], ctl, CTL_OWNERS("webhook_endpoint"), id));
    CRM_ERR(ctl_query(result_p, ctl, "SELECT " FIELDS SECRET
                      " FROM crmapi.webhook_endpoint e" ENDPOINT
                      " FOR NO KEY UPDATE", 2, values));
    if (!PQntuples(*result_p)) {
        return ctl_fault(ctl, "there is no endpoint %s", id);
    }
    return NULL;
}

crm_error_t *ctl_webhook_remove(ctl_t *ctl)
{
    PGresult *result, *ignored;
    const char *values[2];

    CRM_ERR(find(&result, values, ctl));
    /* The jobs of its deliveries find no row and end. */
    CRM_ERR(ctl_query(&ignored, ctl, "DELETE FROM crmapi.webhook_endpoint e"
                      ENDPOINT, 2, values));
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

/* Two secrets sign at most (contract 12.2). So a second rotation within the day ends
 * the first secret, which is also how to end one that has leaked. */
crm_error_t *ctl_webhook_rotate(ctl_t *ctl)
{
    const char *values[2];
    PGresult *result, *ended;

    CRM_ERR(find(&result, values, ctl));
    CRM_ERR(ctl_query(&ended, ctl, "SELECT FROM crmapi.webhook_endpoint e"
                      ENDPOINT " AND e.old_key_until > now()", 2, values));
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.webhook_endpoint e"
                      " SET key = crmapi.webhook_key(), old_key = e.key,"
                      " old_key_until = crmapi.now_ms() + interval '24 hours'"
                      ENDPOINT " RETURNING " FIELDS SECRET, 2, values));
    ctl_print_one(ctl, PQgetvalue(result, 0, SECRET_COLUMN), result,
                  new_columns);
    if (PQntuples(ended)) {
        fprintf(stderr, "crmapictl: the secret from before the last rotation"
                " does not sign any more\n");
    }
    return NULL;
}

crm_error_t *ctl_webhook_enable(ctl_t *ctl)
{
    const char *values[2];
    PGresult *result;

    CRM_ERR(find(&result, values, ctl));
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.webhook_endpoint e"
                      " SET disabled_at = NULL, disabled_reason = NULL"
                      ENDPOINT " RETURNING " FIELDS, 2, values));
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

/* An endpoint that is disabled already keeps when and why that was. */
crm_error_t *ctl_webhook_disable(ctl_t *ctl)
{
    const char *values[3];
    PGresult *result;

    CRM_ERR(ctl_reason(&values[2], ctl, "disabled by crmapictl"));
    CRM_ERR(find(&result, values, ctl));
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.webhook_disable($1::uuid,"
                      " $2::uuid, $3::text)", 3, values));
    CRM_ERR(find(&result, values, ctl));
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

/* The body is as those of events are (contract 12.2); its data is the endpoint. */
crm_error_t *ctl_webhook_test(ctl_t *ctl)
{
    static const ctl_column_t planned[] = {{"delivery_id", 's'}, {NULL, 0}};
    char time[CRM_TIME_SIZE];
    const char *values[3];
    PGresult *result;

    CRM_ERR(find(&result, values, ctl));
    crm_time_format_ms(time, apr_time_now());
    values[2] = apr_psprintf(ctl->pool, "{\"type\":\"webhook.test\","
                             "\"timestamp\":\"%s\",\"data\":{\"id\":\"%s\"}}",
                             time, values[1]);
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.webhook_test($1::uuid,"
                      " $2::uuid, $3::text)", 3, values));
    if (PQgetisnull(result, 0, 0)) {
        return ctl_fault(ctl, ENABLE_FIRST);
    }
    ctl_print_one(ctl, PQgetvalue(result, 0, 0), result, planned);
    return NULL;
}

crm_error_t *ctl_webhook_deliveries(ctl_t *ctl)
{
    static const char *const states[] = {
        "pending", "delivered", "failed", "cancelled", NULL
    };
    const char *values[2] = {NULL, ctl->options[CTL_STATUS]};
    PGresult *result;

    CRM_ERR(ctl_known_status(ctl, states));
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->options[CTL_WORKSPACE]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT d.id, d.created_at, v.type,"
                      " 'msg_' || replace(v.id::text, '-', ''),"
                      " d.endpoint_id, d.status, d.attempts, d.next_at,"
                      " a.started_at, a.duration_ms, a.status, a.error,"
                      " a.answer FROM crmapi.webhook_delivery d"
                      " JOIN crmapi.event v"
                      " ON v.workspace_id = d.workspace_id"
                      " AND v.id = d.event_id"
                      " LEFT JOIN crmapi.webhook_attempt a"
                      " ON a.workspace_id = d.workspace_id"
                      " AND a.delivery_id = d.id AND a.number = d.attempts"
                      " WHERE d.workspace_id = $1::uuid"
                      " AND ($2::text IS NULL OR d.status = $2::text)"
                      " ORDER BY d.created_at DESC, d.id DESC LIMIT 100", 2,
                      values));
    ctl_print(ctl, result, delivery_columns, 0);
    return NULL;
}

/* The workspaces with a delivery or an endpoint of that id. */
static const char redrive_owners[] =
    CTL_OWNERS("webhook_delivery") " UNION " CTL_OWNERS("webhook_endpoint");

/* Return the error for a redrive without effect. VALUES: the workspace and the
 * id. */
static crm_error_t *why_not(ctl_t *ctl, const char *const values[2])
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT e.disabled_at IS NOT NULL,"
                      " e.id = $2::uuid FROM crmapi.webhook_endpoint e"
                      " WHERE e.workspace_id = $1::uuid AND (e.id = $2::uuid"
                      " OR e.id IN (SELECT d.endpoint_id"
                      " FROM crmapi.webhook_delivery d"
                      " WHERE d.workspace_id = $1::uuid"
                      " AND d.id = $2::uuid))", 2, values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no delivery and no endpoint %s",
                         values[1]);
    }
    if (*PQgetvalue(result, 0, 0) == 't') {
        return ctl_fault(ctl, ENABLE_FIRST);
    }
    return *PQgetvalue(result, 0, 1) == 't' ? NULL
           : ctl_fault(ctl, "the delivery is in progress");
}

crm_error_t *ctl_webhook_redrive(ctl_t *ctl)
{
    static const ctl_column_t redriven[] = {{"redriven", 'n'}, {NULL, 0}};
    char id[CRM_UUID_LEN + 1];
    const char *values[2] = {NULL, id};
    PGresult *result;

    CRM_ERR(ctl_uuid(id, ctl, "ID", ctl->args[0]));
    CRM_ERR(ctl_owner(&values[0], ctl, redrive_owners, id));
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.webhook_redrive($1::uuid,"
                      " $2::uuid)", 2, values));
    if (!strcmp(PQgetvalue(result, 0, 0), "0")) {
        CRM_ERR(why_not(ctl, values));
    }
    ctl_print_one(ctl, PQgetvalue(result, 0, 0), result, redriven);
    return NULL;
}
