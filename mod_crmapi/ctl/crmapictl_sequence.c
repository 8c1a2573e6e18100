/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_sequence.c: admins, enrollments, suppression, replies */
#include "crmapictl_sequence.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db.h"
#include "crm_email.h"
#include "crm_email_wire.h"
#include "crm_phone.h"
#include "crm_resources.h"
#include "crm_sequence.h"
#include "crm_sql_print.h"
#include "crm_text.h"
#include "crm_uuid.h"
#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* ---- admins -------------------------------------------------------------- */

#define ADMIN "id, email, name, created_at"
static const ctl_column_t admin_columns[] = {
    {"id", 's'}, {"email", 's'}, {"name", 's'}, {"created_at", 't'},
    {NULL, 0}
};

/* Return the misuse of --email that RULE tells, NULL if RULE is NULL. */
static crm_error_t *email_misuse(ctl_t *ctl, const char *rule)
{
    return rule ? ctl_misuse(ctl, "--email %s", rule) : NULL;
}

/* Check TEXT, an e-mail address. */
static crm_error_t *check_email(ctl_t *ctl, const char *text)
{
    return email_misuse(ctl, crm_email_check(text, strlen(text), ctl->pool));
}

crm_error_t *ctl_admin_add(ctl_t *ctl)
{
    const char *email = ctl->options[CTL_EMAIL];
    const char *name = ctl->options[CTL_NAME];
    char id[CRM_UUID_LEN + 1];
    const char *values[4];
    PGresult *result;

    CRM_ERR(email_misuse(ctl, crm_email_wire_to(email, ctl->pool)));
    if (name) {
        CRM_ERR(ctl_check_name(ctl, CTL_NAME));
    }
    crm_uuid_v7(id);
    values[0] = id;
    CRM_ERR(ctl_workspace_id(&values[1], ctl, ctl->options[CTL_WORKSPACE]));
    values[2] = email;
    values[3] = name;
    CRM_ERR(ctl_query(&result, ctl, "INSERT INTO crmapi.admin AS a (id,"
                      " workspace_id, email, name) VALUES ($1::uuid,"
                      " $2::uuid, $3::text, $4::text)"
                      " ON CONFLICT (workspace_id, email_key) DO UPDATE"
                      " SET email = excluded.email,"
                      " name = coalesce(excluded.name, a.name)"
                      " RETURNING " ADMIN, 4, values));
    ctl_audit_object(ctl, values[1], PQgetvalue(result, 0, 0));
    ctl_print_one(ctl, PQgetvalue(result, 0, 0), result, admin_columns);
    return NULL;
}

crm_error_t *ctl_admin_list(ctl_t *ctl)
{
    return ctl_workspace_rows(ctl, "SELECT " ADMIN " FROM crmapi.admin"
                              " WHERE workspace_id = $1::uuid"
                              " ORDER BY created_at, id", admin_columns);
}

crm_error_t *ctl_admin_remove(ctl_t *ctl)
{
    const char *values[2];
    PGresult *result;

    CRM_ERR(check_email(ctl, ctl->options[CTL_EMAIL]));
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->options[CTL_WORKSPACE]));
    values[1] = ctl->options[CTL_EMAIL];
    CRM_ERR(ctl_query(&result, ctl, "DELETE FROM crmapi.admin"
                      " WHERE workspace_id = $1::uuid"
                      " AND email_key = crmapi.email_key($2::text)"
                      " RETURNING " ADMIN, 2, values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "%s is not an admin of the workspace",
                         values[1]);
    }
    ctl_audit_object(ctl, values[0], PQgetvalue(result, 0, 0));
    ctl_print_one(ctl, NULL, result, admin_columns);
    return NULL;
}

/* ---- enrollments --------------------------------------------------------- */

static const ctl_column_t enrollment_columns[] = {
    {"id", 's'}, {"status", 's'}, {"sequence", 's'}, {"contact_id", 's'},
    {"generation_error", 's'}, {"stop_reason", 's'}, {"steps", 'n'},
    {"sent", 'n'}, {"created_at", 't'}, {NULL, 0}
};

/* $1 is the workspace. */
#define ENROLLMENT \
    "SELECT e.id, e.status, q.name, e.contact_id, e.generation_error," \
    " e.stop_reason, (SELECT count(*) FROM crmapi.enrollment_step s" \
    " WHERE s.workspace_id = $1::uuid AND s.enrollment_id = e.id)," \
    " (SELECT count(*) FROM crmapi.enrollment_step s" \
    " WHERE s.workspace_id = $1::uuid AND s.enrollment_id = e.id" \
    " AND s.status = 'sent'), e.created_at FROM crmapi.enrollment e" \
    " JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id" \
    " AND q.id = e.sequence_id"

crm_error_t *ctl_enrollment_list(ctl_t *ctl)
{
    const char *values[2];
    PGresult *result;

    CRM_ERR(ctl_known_status(ctl, crm_resource_field(&crm_resource_enrollment,
                                                     "status")->values));
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->options[CTL_WORKSPACE]));
    values[1] = ctl->options[CTL_STATUS];
    CRM_ERR(ctl_query(&result, ctl, ENROLLMENT
                      " WHERE e.workspace_id = $1::uuid"
                      " AND ($2::text IS NULL OR e.status = $2::text)"
                      " ORDER BY e.created_at DESC, e.id DESC LIMIT 100", 2,
                      values));
    ctl_print(ctl, result, enrollment_columns, 0);
    return NULL;
}

/* The steps of the enrollment $2 of the workspace $1, each with the last job that was
 * to send it; before them the jobs that are of none: what makes the steps, and asks
 * admins. */
#define STEPS \
    "SELECT s.sort_order, s.channel, s.status, s.scheduled_for, s.sent_at, j.kind," \
    " j.attempts, CASE WHEN j.state IN ('ready', 'leased') THEN j.run_at END," \
    " coalesce(s.error, j.last_error) FROM (SELECT * FROM crmapi.enrollment_step" \
    " WHERE workspace_id = $1::uuid AND enrollment_id = $2::uuid) s" \
    " FULL JOIN (SELECT DISTINCT ON (kind, payload ->> 'step_id') *" \
    " FROM crmapi.job WHERE workspace_id = $1::uuid AND lane <> 'webhook'" \
    " AND crmapi.job_about(payload) = $2::text" \
    " ORDER BY kind, payload ->> 'step_id', id DESC) j" \
    " ON j.payload ->> 'step_id' = s.id::text" \
    " ORDER BY s.sort_order NULLS FIRST, j.id"

crm_error_t *ctl_enrollment_show(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"step", 'n'}, {"channel", 's'}, {"status", 's'}, {"scheduled_for", 't'},
        {"sent_at", 't'}, {"job", 's'}, {"attempts", 'n'}, {"next_at", 't'},
        {"last_error", 's'}, {NULL, 0}
    };
    char id[CRM_UUID_LEN + 1];
    const char *values[2] = {NULL, id};
    PGresult *result;

    CRM_ERR(ctl_uuid(id, ctl, "ID", ctl->args[0]));
    CRM_ERR(ctl_owner(&values[0], ctl, CTL_OWNERS("enrollment"), id));
    CRM_ERR(ctl_query(&result, ctl, STEPS, 2, values));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}

/* Apply MOVE to the enrollment in the operand. */
static crm_error_t *move(ctl_t *ctl, const crm_move_t *what)
{
    char id[CRM_UUID_LEN + 1];
    const char *values[2] = {NULL, id};
    PGresult *result;
    crm_stmt_t stmt;
    crm_sql_t sql;
    const char *had;

    CRM_ERR(ctl_uuid(id, ctl, "ID", ctl->args[0]));
    CRM_ERR(ctl_owner(&values[0], ctl, CTL_OWNERS("enrollment"), id));
    crm_sql_init(&sql, ctl->pool);
    crm_sql_value(&sql, values[0], "uuid");
    crm_sql_add(&sql, "SELECT ");
    crm_sql_template(&sql, what->call, id, "uuid");
    crm_sql_stmt(&stmt, &sql);
    CRM_ERR(ctl_query(&result, ctl, stmt.sql, stmt.count, stmt.values));
    had = crm_db_value(result, 0, 0);
    if (!had) {
        return ctl_fault(ctl, "there is no enrollment %s", id);
    }
    if (!crm_move_allowed(what, had)) {
        return ctl_fault(ctl, "an enrollment that is %s cannot be %s", had,
                         what->done);
    }
    CRM_ERR(ctl_query(&result, ctl, ENROLLMENT " WHERE e.workspace_id ="
                      " $1::uuid AND e.id = $2::uuid", 2, values));
    ctl_print_one(ctl, what->done, result, enrollment_columns);
    return NULL;
}

crm_error_t *ctl_enrollment_approve(ctl_t *ctl)
{
    return move(ctl, &crm_move_approve);
}

crm_error_t *ctl_enrollment_reject(ctl_t *ctl)
{
    return move(ctl, &crm_move_reject);
}

crm_error_t *ctl_enrollment_stop(ctl_t *ctl)
{
    return move(ctl, &crm_move_stop);
}

/* ---- events -------------------------------------------------------------- */

/* Record EVENT, and print the number that the database returns as NAME. */
static crm_error_t *record(ctl_t *ctl, const crm_sequence_event_t *event,
                           const char *name)
{
    ctl_column_t columns[] = {{NULL, 'n'}, {NULL, 0}};
    const char *value;
    PGresult *result;
    int changed;

    CRM_ERR(crm_sequence_event(&changed, ctl->conn, event, ctl->pool));
    if (event->event == CRM_EVENT_LIFT && !changed) {
        return ctl_fault(ctl, "%s is not suppressed", event->email
                         ? event->email : event->phone_number);
    }
    columns[0].name = name;
    value = apr_itoa(ctl->pool, changed);
    CRM_ERR(ctl_query(&result, ctl, "SELECT $1::integer", 1, &value));
    ctl_print(ctl, result, columns, 1);
    return NULL;
}

/* Set EVENT's workspace and address from the options. */
static crm_error_t *read_address(crm_sequence_event_t *event, ctl_t *ctl)
{
    const char *email = ctl->options[CTL_EMAIL];
    const char *phone = ctl->options[CTL_PHONE];
    const char *rule;

    if (!email == !phone) {
        return ctl_misuse(ctl, "give either --email or --phone");
    }
    if (email) {
        CRM_ERR(check_email(ctl, email));
    }
    else if ((rule = crm_text_phone(phone, strlen(phone)))) {
        return ctl_misuse(ctl, "--phone %s", rule);
    }
    event->email = email;
    event->phone_number = phone;
    return ctl_workspace_id(&event->workspace_id, ctl,
                            ctl->options[CTL_WORKSPACE]);
}

crm_error_t *ctl_suppress_add(ctl_t *ctl)
{
    crm_sequence_event_t event = {.event = CRM_EVENT_SUPPRESS};
    const char *reason = ctl->options[CTL_REASON];

    event.reason = "suppressed";
    if (reason && *reason) {
        CRM_ERR(ctl_reason(&event.reason, ctl, NULL));
    }
    CRM_ERR(read_address(&event, ctl));
    if (event.phone_number && !crm_phone_e164(event.phone_number, ctl->pool)) {
        fprintf(stderr, "crmapictl: %s is no number with its country code: it is"
                " suppressed where it is written so, and no other spelling of it\n",
                event.phone_number);
    }
    return record(ctl, &event, "stopped");
}

crm_error_t *ctl_suppress_remove(ctl_t *ctl)
{
    crm_sequence_event_t event = {.event = CRM_EVENT_LIFT};

    CRM_ERR(read_address(&event, ctl));
    return record(ctl, &event, "lifted");
}

crm_error_t *ctl_suppress_list(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"email", 's'}, {"phone_number", 's'}, {"reason", 's'},
        {"created_at", 't'}, {NULL, 0}
    };

    return ctl_workspace_rows(ctl, "SELECT email, phone_number, reason,"
                              " created_at FROM crmapi.suppression"
                              " WHERE workspace_id = $1::uuid"
                              " ORDER BY created_at, id", columns);
}

crm_error_t *ctl_reply(ctl_t *ctl)
{
    crm_sequence_event_t event = {.event = CRM_EVENT_REPLY};
    char id[CRM_UUID_LEN + 1];
    const char *values[2];
    PGresult *result;

    CRM_ERR(ctl_uuid(id, ctl, "--contact", ctl->options[CTL_CONTACT]));
    CRM_ERR(ctl_workspace_id(&event.workspace_id, ctl,
                             ctl->options[CTL_WORKSPACE]));
    values[0] = event.workspace_id;
    values[1] = event.contact_id = id;
    CRM_ERR(ctl_query(&result, ctl, "SELECT 1 FROM crmapi.contact"
                      " WHERE workspace_id = $1::uuid AND id = $2::uuid", 2,
                      values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no contact %s in the workspace", id);
    }
    ctl_audit_object(ctl, values[0], apr_pstrdup(ctl->pool, id));
    return record(ctl, &event, "stopped");
}
