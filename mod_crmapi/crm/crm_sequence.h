/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sequence.h: what moves enrollments from outside the worker */
#ifndef CRM_SEQUENCE_H
#define CRM_SEQUENCE_H

#include "crm_db.h"

/* Something that a contact, or somebody for it, has done (specification: stop
 * triggers). Whatever learns of it, the API, a page, a tool, channel intake,
 * tells by crm_sequence_event(). */
typedef enum crm_event_t {
    CRM_EVENT_REPLY,            /* the contact has answered */
    CRM_EVENT_SUPPRESS,         /* an address is not to be written to again */
    CRM_EVENT_LIFT              /* it may be again */
} crm_event_t;

typedef struct crm_sequence_event_t {
    crm_event_t event;
    const char *workspace_id;
    const char *contact_id;     /* of a reply */
    const char *email;          /* of the others: one of the two, the other */
    const char *phone_number;   /* is NULL */
    const char *reason;         /* of CRM_EVENT_SUPPRESS: "unsubscribed" */
} crm_sequence_event_t;

/* Tell the database of CONN what EVENT says, in its transaction if one is
 * open. *CHANGED_P = how many enrollments stopped by it; of CRM_EVENT_LIFT
 * whether there was anything to lift. Nothing is sent any more when this
 * returns (contract 11.10). */
crm_error_t *crm_sequence_event(int *changed_p, crm_conn_t *conn,
                                const crm_sequence_event_t *event,
                                apr_pool_t *scratch_pool);

/* What a user may do with an enrollment (contract 11.12). */
typedef struct crm_move_t {
    const char *name;           /* "approve" */
    const char *done;           /* "approved" */
    const char *call;           /* SQL of what does it, with '?' for the
                                   enrollment's id; $1 is the workspace's. Its
                                   value is the status before; NULL: there is
                                   no such enrollment */
    unsigned from;              /* bits of the statuses that allow it */
} crm_move_t;

extern const crm_move_t crm_move_approve;
extern const crm_move_t crm_move_reject;
extern const crm_move_t crm_move_stop;

/* Return whether MOVE was done to an enrollment that had STATUS. */
int crm_move_allowed(const crm_move_t *move, const char *status);

#endif /* CRM_SEQUENCE_H */
