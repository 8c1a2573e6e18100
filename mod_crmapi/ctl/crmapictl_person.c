/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_person.c: what is kept about a person, and erasing it (contract
 * 14.4) */
#include "crmapictl_person.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_array.h"
#include "crm_db.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crm_uuid.h"
#include "crmapictl_audit.h"
#include "crmapictl_lines.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* How long an erasure waits for what is being sent, and between two looks. */
#define WAIT_SECONDS 120
#define LOOK_EVERY APR_USEC_PER_SEC / 20

/* A person: a workspace, and its contacts, e-mail addresses and phone numbers as
 * arrays of SQL. */
typedef struct person_t {
    const char *values[4];
} person_t;

/* Set PERSON to the one whom the operand and the options name. */
static crm_error_t *find_person(person_t *person, ctl_t *ctl)
{
    const char *email = ctl->options[CTL_EMAIL];
    const char *phone = ctl->options[CTL_PHONE];
    const char *values[4] = {NULL, ctl->args[0], email, phone};
    char id[CRM_UUID_LEN + 1];
    PGresult *result;

    if ((values[1] != NULL) + (email != NULL) + (phone != NULL) != 1) {
        return ctl_misuse(ctl, "name one contact: by its ID, --email or"
                          " --phone");
    }
    if (values[1]) {
        CRM_ERR(ctl_uuid(id, ctl, "ID", values[1]));
        values[1] = id;
    }
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->options[CTL_WORKSPACE]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT contacts, mails, phones,"
                      " crmapi.email_canonical($3::text) IS NULL,"
                      " crmapi.phone_e164($4::text) IS NULL"
                      " AND crmapi.digits($4::text) = ''"
                      " FROM crmapi.person($1::uuid, $2::uuid, $3::text,"
                      " $4::text)", 4, values));
    person->values[0] = values[0];
    for (int i = 0; i < 3; i++) {
        person->values[i + 1] = PQgetvalue(result, 0, i);
    }
    /* a text such as "unknown" would stand for several people */
    if (email && *PQgetvalue(result, 0, 3) == 't') {
        return ctl_misuse(ctl, "--email must be an e-mail address");
    }
    if (phone && *PQgetvalue(result, 0, 4) == 't') {
        return ctl_misuse(ctl, "--phone must be a phone number");
    }
    return ctl->args[0] && !strcmp(person->values[1], "{}")
           ? ctl_fault(ctl, "there is no contact %s in the workspace",
                       values[1])
           : NULL;
}

/* ---- export ---- */

/* The rows of a person, by table: SQL that returns a JSON object for each, over
 * the ids p of the table's rows. What is computed from other columns is left out,
 * and so are names that only channels and relays use. */
#define ROW(table, without) \
    "SELECT json_build_object('object', '" table "')::jsonb" \
    " || (to_jsonb(t) - 'workspace_id' - 'search' - 'tag_keys'" without ")" \
    " FROM p JOIN crmapi." table " t ON t.id = p.id" \
    " WHERE t.workspace_id = $1::uuid AND p.of = '" table "' ORDER BY t.id"
#define BYTES(table, key) \
    "(SELECT replace(encode(string_agg(b.bytes, '' ORDER BY b.number)," \
    " 'base64'), E'\\n', '') FROM crmapi." table " b" \
    " WHERE b.workspace_id = $1::uuid AND b." key " = t.id)"
static const char *const exports[] = {
    ROW("contact", " - 'email_key' - 'phone_key' - 'phone_digits'"),
    ROW("activity", ""),
    ROW("pipeline_card", ""),
    ROW("conversation", ""),
    "SELECT json_build_object('object', 'message')::jsonb || (to_jsonb(t)"
    " - 'workspace_id' - 'reply_id') || jsonb_strip_nulls(jsonb_build_object("
    "'html', (SELECT translate(h.html, chr(1), '') FROM crmapi.message_html h"
    " WHERE h.workspace_id = $1::uuid AND h.message_id = t.id), 'original', "
    BYTES("original", "message_id") ")) FROM p JOIN crmapi.message t"
    " ON t.id = p.id WHERE t.workspace_id = $1::uuid AND p.of = 'message'"
    " ORDER BY t.created_at, t.id",
    "SELECT json_build_object('object', 'attachment')::jsonb || (to_jsonb(t)"
    " - 'workspace_id') || jsonb_build_object('bytes', "
    BYTES("attachment_piece", "attachment_id") ") FROM p JOIN"
    " crmapi.attachment t ON t.id = p.id WHERE t.workspace_id = $1::uuid"
    " AND p.of = 'attachment' ORDER BY t.id",
    ROW("submission", ""),
    ROW("sequence", ""),
    ROW("enrollment", ""),
    ROW("enrollment_step", " - 'reply_id' - 'counted'"),
    ROW("suppression", " - 'kind' - 'address'"),
};

/* A crm_db_row_t: print a row's only column as a line. */
static crm_error_t *print_row(void *baton, const PGresult *result)
{
    ctl_t *ctl = baton;

    ctl_write(stdout, PQgetvalue(result, 0, 0),
              (apr_size_t)PQgetlength(result, 0, 0));
    return putchar('\n') != EOF ? NULL
           : ctl_fault(ctl, "cannot write: %s", strerror(errno));
}

crm_error_t *ctl_contact_export(ctl_t *ctl)
{
    crm_error_t *error = NULL;
    person_t person;

    CRM_ERR(crm_db_exec(ctl->conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ"
                        " ONLY", ctl->pool));
    error = find_person(&person, ctl);
    for (size_t i = 0; !error && i < CRM_NELTS(exports); i++) {
        crm_stmt_t stmt = {
            apr_pstrcat(ctl->pool, "WITH p AS MATERIALIZED (SELECT * FROM"
                        " crmapi.person_rows($1::uuid, $2::uuid[],"
                        " $3::text[], $4::text[])) ", exports[i], NULL),
            4, person.values
        };

        error = crm_db_each(ctl->conn, &stmt, print_row, ctl, ctl->pool);
    }
    crm_db_rollback(ctl->conn);
    return error;
}

/* ---- erase ---- */

/* Print COUNTS, a JSON object of numbers by table. */
static crm_error_t *print_counts(ctl_t *ctl, const char *counts)
{
    static const ctl_column_t columns[] = {
        {"object", 's'}, {"rows", 'n'}, {NULL, 0}
    };
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT key, value FROM"
                      " jsonb_each_text($1::jsonb) WHERE value <> '0'"
                      " ORDER BY key", 1, &counts));
    if (!PQntuples(result)) {
        fprintf(stderr, "crmapictl: nothing is kept of this person\n");
    }
    ctl_print(ctl, result, columns, 0);
    return NULL;
}

/* Set *COUNTS_P to what would be erased of PERSON. */
static crm_error_t *count_rows(const char **counts_p, ctl_t *ctl,
                               const person_t *person)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT coalesce(jsonb_object_agg(r.of,"
                      " r.n), '{}') FROM (SELECT of, count(*) AS n FROM"
                      " crmapi.person_rows($1::uuid, $2::uuid[], $3::text[],"
                      " $4::text[]) GROUP BY of) r", 4, person->values));
    *counts_p = PQgetvalue(result, 0, 0);
    return NULL;
}

/* Erase PERSON in a transaction. Set *COUNTS_P to what is gone, NULL: something
 * is being sent. */
static crm_error_t *try_erase(const char **counts_p, ctl_t *ctl,
                              const person_t *person)
{
    PGresult *result;
    crm_error_t *error;

    CRM_ERR(ctl_begin(ctl));
    error = ctl_query(&result, ctl, "SELECT crmapi.erase($1::uuid,"
                      " $2::uuid[], $3::text[], $4::text[], true)", 4,
                      person->values);
    *counts_p = error ? NULL : crm_db_value(result, 0, 0);
    if (*counts_p) {
        error = ctl_audit(ctl);
    }
    return ctl_end(ctl, error);
}

crm_error_t *ctl_contact_erase(ctl_t *ctl)
{
    apr_time_t until = crm_time_monotonic() + apr_time_from_sec(WAIT_SECONDS);
    const char *counts = NULL;
    person_t person;

    CRM_ERR(find_person(&person, ctl));
    if (ctl->options[CTL_DRY_RUN]) {
        CRM_ERR(count_rows(&counts, ctl, &person));
        return print_counts(ctl, counts);
    }
    while (!counts) {
        CRM_ERR(try_erase(&counts, ctl, &person));
        if (!counts && crm_time_monotonic() > until) {
            return ctl_fault(ctl, "something is still being sent to the"
                             " person: nothing was erased; nothing more is"
                             " sent; try again");
        }
        if (!counts) {
            apr_sleep(LOOK_EVERY);
            CRM_ERR(find_person(&person, ctl));
        }
    }
    return print_counts(ctl, counts);
}

/* ---- the journal ---- */

crm_error_t *ctl_erasure_list(ctl_t *ctl)
{
    crm_stmt_t stmt = {
        "SELECT json_build_object('workspace_id', workspace_id, 'id', id,"
        " 'contact_ids', contact_ids, 'hashes', ARRAY(SELECT encode(h, 'hex')"
        " FROM unnest(hashes) h), 'key', encode(key, 'hex'), 'sent_ids',"
        " sent_ids, 'erased_at', erased_at) FROM crmapi.erasure"
        " ORDER BY erased_at, id", 0, NULL
    };

    return crm_db_each(ctl->conn, &stmt, print_row, ctl, ctl->pool);
}

/* Return the error that the current one of LINES is none of a journal. */
static crm_error_t *bad_line(ctl_t *ctl, const ctl_lines_t *lines)
{
    return ctl_fault(ctl, "line %" APR_INT64_T_FMT " is not one of erasure"
                     " list", lines->number);
}

/* Add the current one of LINES, of a journal, unless it is there. A byte order mark
 * at the start of the first one is left out, as import does it. */
static crm_error_t *add_line(ctl_t *ctl, const ctl_lines_t *lines)
{
    const crm_buf_t *line = &lines->line;
    apr_size_t mark = lines->number == 1
                      ? crm_text_mark(line->data, line->len) : 0;
    const char *text = apr_pstrmemdup(ctl->pool, line->data + mark,
                                      line->len - mark);
    crm_error_t *error;
    PGresult *result;

    if (strlen(text) != line->len - mark) {
        return bad_line(ctl, lines);    /* it has U+0000 */
    }
    if (!text[strspn(text, " \t\r\n")]) {
        return NULL;
    }
    error = ctl_query(&result, ctl, "INSERT INTO crmapi.erasure AS e"
                      " (workspace_id, id, contact_ids, hashes, key, sent_ids,"
                      " erased_at) SELECT j.workspace_id, j.id, j.contact_ids, ARRAY("
                      "SELECT decode(h, 'hex') FROM unnest(j.hashes) h),"
                      " decode(j.key, 'hex'), j.sent_ids, j.erased_at FROM"
                      " jsonb_to_record($1::jsonb) j (workspace_id uuid, id uuid,"
                      " contact_ids uuid[], hashes text[], key text, sent_ids"
                      " uuid[], erased_at timestamptz)"
                      " ON CONFLICT ON CONSTRAINT erasure_pkey DO"
                      " NOTHING", 1, &text);
    return error && error->sqlstate && *error->sqlstate == '2'
           ? bad_line(ctl, lines) : error;
}

crm_error_t *ctl_erasure_add(ctl_t *ctl)
{
    ctl_lines_t *lines = apr_palloc(ctl->pool, sizeof(*lines));
    const char *fault = NULL, *name;
    crm_error_t *error = NULL;
    int fd;

    CRM_ERR(ctl_open(&fd, &name, ctl, ctl->args[0]));
    ctl_lines_init(lines, fd, CTL_LINES_MAX, ctl->pool);
    while (!error && !(fault = ctl_lines_next(lines)) && lines->line.len) {
        error = add_line(ctl, lines);
    }
    if (!error && fault) {
        error = ctl_fault(ctl, "line %" APR_INT64_T_FMT ": %s", lines->number,
                          fault);
    }
    ctl_close(fd);
    return error;
}

crm_error_t *ctl_erase_again(apr_int64_t *count_p, ctl_t *ctl,
                             const char *workspace, const char *origin)
{
    const char *values[2] = {workspace, origin};
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.erase_again($1::uuid,"
                      " $2::uuid)", 2, values));
    *count_p = apr_atoi64(PQgetvalue(result, 0, 0));
    return NULL;
}
