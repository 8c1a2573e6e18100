/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sequence.h: changes of enrollments from outside the worker */
#ifndef CRM_SEQUENCE_H
#define CRM_SEQUENCE_H

#include "crm_db_conn.h"

/* An event that may stop enrollments of a contact (specification: stop
 * triggers). The API, pages, tools and channel intake report it by
 * crm_sequence_event(). */
typedef enum crm_event_t {
    CRM_EVENT_REPLY,            /* the contact has replied */
    CRM_EVENT_SUPPRESS,         /* an address is suppressed */
    CRM_EVENT_LIFT              /* the suppression is lifted */
} crm_event_t;

/* An event with its subject: a contact, or one address. Other members are
 * NULL. */
typedef struct crm_sequence_event_t {
    crm_event_t event;
    const char *workspace_id;
    const char *contact_id;     /* for CRM_EVENT_REPLY */
    const char *email;          /* for the others, unless PHONE_NUMBER is set */
    const char *phone_number;
    const char *reason;         /* for CRM_EVENT_SUPPRESS: "unsubscribed" */
} crm_sequence_event_t;

/* Apply EVENT on CONN, in its open transaction if there is one. Set *CHANGED_P
 * to the number of enrollments stopped, or for CRM_EVENT_LIFT to whether a
 * suppression was lifted. Once this is committed, the stopped enrollments send
 * nothing more (contract 11.10). */
crm_error_t *crm_sequence_event(int *changed_p, crm_conn_t *conn,
                                const crm_sequence_event_t *event,
                                apr_pool_t *scratch_pool);

/* An action of a user on an enrollment (contract 11.12). */
typedef struct crm_move_t {
    const char *done;           /* "approved" */
    const char *call;           /* SQL of the function that does it; '?' is the
                                   enrollment's id, CRM_SQL_WORKSPACE the
                                   workspace's. It returns the previous status,
                                   NULL if there is no such enrollment. */
    unsigned from;              /* set of bits: the statuses that allow it */
} crm_move_t;

extern const crm_move_t crm_move_approve;
extern const crm_move_t crm_move_reject;
extern const crm_move_t crm_move_stop;

/* Return whether MOVE is allowed for an enrollment with STATUS. */
int crm_move_allowed(const crm_move_t *move, const char *status);

#endif /* CRM_SEQUENCE_H */
