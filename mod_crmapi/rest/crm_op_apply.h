/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_apply.h: operations that are a function of the database, which is called
 * for the row that the path names; the answer shows the row, or what the
 * function returned */
#ifndef CRM_OP_APPLY_H
#define CRM_OP_APPLY_H

#include "crm_call.h"
#include "crm_sql.h"

/* What an operation applies to its row. BATON is the caller's. */
typedef struct crm_apply_t {
    /* Add to SQL the call of the function. It returns a text, the outcome: NULL or
     * "missing" if there is no such row. */
    void (*add_call)(crm_sql_t *sql, const crm_call_t *call, const void *baton);
    /* Return the error of OUTCOME for CALL, or NULL if it was done. NULL: it was
     * done, whatever OUTCOME is. */
    crm_error_t *(*check)(crm_call_t *call, const char *outcome,
                          const void *baton);
    /* Write the body of CALL's response, which says OUTCOME. NULL: the response
     * shows the row. */
    void (*write)(crm_call_t *call, const char *outcome);
} crm_apply_t;

/* Serve CALL: apply APPLY with BATON to the row that its path names, and respond
 * with the row, or what APPLY writes. With an Idempotency-Key function and answer are
 * one transaction. ERROR (may be NULL) is that of the parameters and the body: nothing
 * is applied then. Errors: also those of crm_rest_refuse() and of APPLY's check. */
crm_error_t *crm_op_apply(crm_call_t *call, const crm_apply_t *apply,
                          const void *baton, crm_error_t *error);

#endif /* CRM_OP_APPLY_H */
