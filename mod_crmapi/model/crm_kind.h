/* SPDX-License-Identifier: Apache-2.0 */
/* crm_kind.h: the kinds of operations */
#ifndef CRM_KIND_H
#define CRM_KIND_H

/* A kind of operation. The engine knows how the first ones are done (rest/); the
 * others are the domain's own (crm/). */
typedef enum crm_op_t {
    CRM_OP_NONE,
    CRM_OP_LIST,                /* rows, filtered, ordered and paged */
    CRM_OP_LOG,                 /* a list that only grows, read by cursor */
    CRM_OP_GET,                 /* one row, by path or by parameters */
    CRM_OP_FILE,                /* the bytes of a file */
    CRM_OP_CREATE,              /* one row, inserted from a body */
    CRM_OP_UPDATE,              /* PATCH */
    CRM_OP_DELETE,              /* DELETE, or an update (soft_delete) */
    CRM_OP_WORKSPACE,           /* GET /workspace */
    CRM_OP_CONTACT_UPSERT,      /* contract 10 */
    CRM_OP_CONTACT_ERASE,       /* contract 14.4 */
    CRM_OP_CONTACT_MERGE,       /* contract 20.5 */
    CRM_OP_COMPANY_UPSERT,      /* contract 20.3 */
    CRM_OP_SEQUENCE_START,      /* contract 11.1 to 11.6 */
    CRM_OP_ENROLLMENT_APPROVE,  /* contract 11.12 */
    CRM_OP_ENROLLMENT_STOP,
    CRM_OP_SUPPRESSION_ADD,     /* contract 20.1 */
    CRM_OP_MESSAGE_ANSWER,      /* POST /conversations/{id}/messages */
    CRM_OPS
} crm_op_t;

/* What is said of a kind. */
typedef struct crm_kind_t {
    int status;                 /* of a successful response */
    int has_body;               /* the request has a JSON object as body */
    int tagged;                 /* the response shows a resource and has its
                                   entity tag; that of a create only if it has
                                   a Location (contract 13.2) */
    int conditional;            /* it reads If-Match and If-None-Match */
} crm_kind_t;

/* The kinds, by crm_op_t. */
extern const crm_kind_t crm_kinds[CRM_OPS];

#endif /* CRM_KIND_H */
