/* SPDX-License-Identifier: Apache-2.0 */
/* crm_range.c: the header Range (RFC 9110, 14.2) */
#include "crm_range.h"

#include <string.h>
#include <strings.h>

#define UNIT "bytes="

/* No file has more bytes. */
#define MOST (APR_INT64_C(1) << 62)

/* Set *NUMBER_P to the number at *TEXT_P, at most MOST, and move *TEXT_P behind
 * its digits. Return 0 if there are none. */
static int read_number(apr_off_t *number_p, const char **text_p)
{
    const char *c = *text_p;

    *number_p = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        *number_p = *number_p < MOST / 10 ? 10 * *number_p + (*c - '0') : MOST;
    }
    if (c == *text_p) {
        return 0;
    }
    *text_p = c;
    return 1;
}

crm_ranged_t crm_range_read(crm_range_t *range, const char *header,
                            apr_off_t size)
{
    const char *c = header;
    int has_first, has_last;

    if (!c || strncasecmp(c, UNIT, sizeof(UNIT) - 1)) {
        return CRM_RANGED_NOT;
    }
    c += sizeof(UNIT) - 1;
    c += strspn(c, " \t");
    has_first = read_number(&range->first, &c);
    if (*c++ != '-') {
        return CRM_RANGED_NOT;
    }
    has_last = read_number(&range->last, &c);
    if (c[strspn(c, " \t")] || !(has_first || has_last)
        || (has_first && has_last && range->last < range->first)) {
        return CRM_RANGED_NOT;
    }
    if (!has_first) {           /* the last bytes */
        if (range->last && !size) {
            return CRM_RANGED_NOT;
        }
        range->first = range->last < size ? size - range->last : 0;
    }
    if (range->first >= size) {
        return CRM_RANGED_NEVER;
    }
    if (!has_first || !has_last || range->last >= size) {
        range->last = size - 1;
    }
    return CRM_RANGED_PART;
}
