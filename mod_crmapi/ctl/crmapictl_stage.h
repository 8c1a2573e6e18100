/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_stage.h: the lines of an import in temporary tables */
#ifndef CRMAPICTL_STAGE_H
#define CRMAPICTL_STAGE_H

#include "crm_db.h"
#include "crm_resource.h"
#include "crm_sql.h"

/* A resource and its rows: the table stage_NAME. */
typedef struct ctl_stage_t {
    const crm_resource_t *resource;
    crm_buf_t rows;             /* in COPY's text format, not yet sent */
    apr_int64_t count;          /* 0: there is neither buffer nor table */
    int made;                   /* the table */
} ctl_stage_t;

/* The state of an import. */
typedef struct ctl_import_t {
    crm_conn_t *conn;
    const char *workspace_id;
    ctl_stage_t *stages;
    int stage_count;
    ctl_stage_t *copied;            /* to which a COPY is under way, or NULL */
    apr_int64_t line;
    const char *faults;         /* of the lines so far, each a line; or NULL */
    int fault_count;
    int distributed;            /* crm_schema_t */
    apr_pool_t *pool;
    apr_pool_t *line_pool;      /* cleared after each line */
} ctl_import_t;

/* Return the error, in IMPORT's pool, for LINE, where FIELD (NULL: the whole line), a
 * name or a JSON pointer, breaks RULE. */
crm_error_t *ctl_import_refuse(ctl_import_t *import, apr_int64_t line,
                               const char *field, const char *rule);

/* Run SQL and set *RESULT_P, in IMPORT's pool of a line. */
crm_error_t *ctl_import_run(PGresult **result_p, ctl_import_t *import,
                            crm_sql_t *sql);

/* Return whether FIELD is part of a line and stored. */
int ctl_stage_has(const crm_field_t *field);

/* Return the stage of the resource NAME, or NULL. */
ctl_stage_t *ctl_stage_find(ctl_import_t *import, const char *name);

/* Add BINDS, by index in the table of fields, to the rows of STAGE, for IMPORT's
 * line. */
crm_error_t *ctl_stage_add(ctl_import_t *import, ctl_stage_t *stage,
                           const char *const *binds);

/* Send the rows of STAGE. The COPY goes on, so that the database takes them
 * while further lines are read. */
crm_error_t *ctl_stage_send(ctl_import_t *import, ctl_stage_t *stage);

/* End the COPY that is under way, if there is one. */
crm_error_t *ctl_stage_end(ctl_import_t *import);

#endif /* CRMAPICTL_STAGE_H */
