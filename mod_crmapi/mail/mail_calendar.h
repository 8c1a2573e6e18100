/* SPDX-License-Identifier: Apache-2.0 */
/* mail_calendar.h: invitations and their answers as text (RFC 5545, RFC 5546) */
#ifndef CRM_MAIL_CALENDAR_H
#define CRM_MAIL_CALENDAR_H

#include "apr_pools.h"

/* Return what people read in the first event of TEXT, a calendar (UTF-8): its title, an
 * answer, when and where it is, comments; "" if it has nothing of that, TEXT if it is
 * no calendar. In POOL. */
const char *crm_mail_calendar(const char *text, apr_pool_t *pool);

#endif /* CRM_MAIL_CALENDAR_H */
