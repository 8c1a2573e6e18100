/* SPDX-License-Identifier: Apache-2.0 */
/* crm_range.h: the header Range (RFC 9110, 14.2) */
#ifndef CRM_RANGE_H
#define CRM_RANGE_H

#include "apr.h"

/* What a Range asks for. */
typedef enum crm_ranged_t {
    CRM_RANGED_NOT,             /* all: there is no Range, or it is ignored */
    CRM_RANGED_PART,
    CRM_RANGED_NEVER            /* what the representation does not have: 416 */
} crm_ranged_t;

/* A part of a representation. */
typedef struct crm_range_t {
    apr_off_t first, last;      /* its first byte and its last one */
} crm_range_t;

/* Return what HEADER, the value of a Range (may be NULL), asks for of a
 * representation of SIZE bytes, and set *RANGE if that is a part. Another unit than
 * bytes, several ranges and what has no valid syntax are ignored, as RFC 9110
 * allows. */
crm_ranged_t crm_range_read(crm_range_t *range, const char *header,
                            apr_off_t size);

#endif /* CRM_RANGE_H */
