/* SPDX-License-Identifier: Apache-2.0 */
/* mail_flowed.h: joining the lines of format=flowed text (RFC 3676) */
#ifndef CRM_MAIL_FLOWED_H
#define CRM_MAIL_FLOWED_H

#include "apr_pools.h"

/* Return TEXT, which is format=flowed (RFC 3676), in POOL with each paragraph
 * on one line. DELSP: the parameter DelSp of RFC 3676. */
const char *crm_mail_unflow(const char *text, int delsp, apr_pool_t *pool);

#endif /* CRM_MAIL_FLOWED_H */
