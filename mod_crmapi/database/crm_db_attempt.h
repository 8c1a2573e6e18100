/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_attempt.h: an attempt to run statements in one round trip */
#ifndef CRM_DB_ATTEMPT_H
#define CRM_DB_ATTEMPT_H

#include "crm_db.h"
#include "crm_db_prepared.h"

/* An attempt to run statements, and its results. */
typedef struct crm_attempt_t {
    crm_conn_t *conn;
    const crm_stmt_t *stmts;
    int count;
    PGresult **results;         /* COUNT results; NULL: not received */
    int *steps;                 /* COUNT sets of CRM_STEP_*; 0: not sent */
    crm_prepared_t **prepared;  /* COUNT; NULL: sent without a name */
    /* For CRM_NAMES_SHARED: */
    int unnamed;                /* use no names, because a transaction is open
                                   or names failed */
    int missing;                /* index of the statement to prepare, or -1 */
    int outdated;               /* deallocate it first */

    PGresult *failure;          /* the first error the server reported */
    int failed;                 /* index of the statement that failed */
    int answered;               /* a statement before it succeeded */
    int committed;              /* a COMMIT before it succeeded */
    int down;                   /* the connection failed */
} crm_attempt_t;

/* Send all statements of ATTEMPT, and receive the answers. */
void crm_attempt_run(crm_attempt_t *attempt);

/* Free the results of ATTEMPT. */
void crm_attempt_clear(crm_attempt_t *attempt);

/* Return whether RESULT is a success. */
int crm_db_succeeded(const PGresult *result);

#endif /* CRM_DB_ATTEMPT_H */
