/* SPDX-License-Identifier: Apache-2.0 */
/* mail_head.h: the header of a mail or part, within limits (contract 18.7) */
#ifndef CRM_MAIL_HEAD_H
#define CRM_MAIL_HEAD_H

#include "apr_pools.h"

#include "crm_buf.h"

/* A field of a header, while its lines are read. */
typedef enum crm_mail_field_t {
    CRM_MAIL_FIELD_NONE,        /* before the first one */
    CRM_MAIL_FIELD_OTHER,
    CRM_MAIL_FIELD_ADDRESSES,
    CRM_MAIL_FIELD_CONTENT,     /* Content-Type and the like: with parameters */
    CRM_MAIL_FIELD_DROPPED,     /* beyond the limits */
    CRM_MAIL_FIELD_BROKEN       /* no field */
} crm_mail_field_t;

#define CRM_MAIL_ADDRESS_FIELDS 24

/* The header that is being read. */
typedef struct crm_mail_head_t {
    crm_buf_t block;            /* its fields, each with a line end */
    int fields;                 /* number of its fields */
    int has_type;               /* one is Content-Type */
    int cut;                    /* something was left out */
    crm_mail_field_t field;     /* the last one, at START of BLOCK */
    apr_size_t start;
    int over;                   /* it has more bytes than are read */
    int delimiters;             /* lines that may be boundaries */
    int counts[CRM_MAIL_ADDRESS_FIELDS]; /* of fields with addresses, by name */
} crm_mail_head_t;

/* Return the length of the name of the field that LINE, LEN bytes, begins; 0 if it
 * begins none. Blanks may follow it, before the colon. */
apr_size_t crm_mail_head_name(const char *line, apr_size_t len);

/* Begin HEAD, which is freed with POOL. */
void crm_mail_head_begin(crm_mail_head_t *head, apr_pool_t *pool);

/* Add LINE, LEN bytes with its end, to HEAD. A line that is no field is
 * ignored. Return 0 if it is none and HEAD has no field yet, because the header is
 * missing; or if it is the boundary that HEAD declares. */
int crm_mail_head_add(crm_mail_head_t *head, const char *line, apr_size_t len);

/* End HEAD: BLOCK is a header that a parser reads in time linear in its size. */
void crm_mail_head_end(crm_mail_head_t *head);

#endif /* CRM_MAIL_HEAD_H */
