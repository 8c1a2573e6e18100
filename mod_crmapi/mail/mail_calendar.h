/* SPDX-License-Identifier: Apache-2.0 */
/* mail_calendar.h: invitations and their answers as text (RFC 5545, RFC 5546) */
#ifndef CRM_MAIL_CALENDAR_H
#define CRM_MAIL_CALENDAR_H

#include "apr_pools.h"

/* Return the LEN BYTES of a calendar with its folded lines joined (RFC 5545, 3.1),
 * *LEN_P bytes and a NUL, in POOL: before the charset, since lines are folded by
 * bytes. */
const char *crm_mail_unfold(apr_size_t *len_p, const char *bytes, apr_size_t len,
                            apr_pool_t *pool);

/* Return what people read in the first event of TEXT, a calendar (UTF-8) whose lines
 * are not folded: its title, an answer, when and where it is, comments; "" if it has
 * nothing of that, TEXT if it is no calendar. In POOL. */
const char *crm_mail_calendar(const char *text, apr_pool_t *pool);

#endif /* CRM_MAIL_CALENDAR_H */
