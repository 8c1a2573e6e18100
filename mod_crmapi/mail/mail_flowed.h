/* SPDX-License-Identifier: Apache-2.0 */
/* mail_flowed.h: joining the lines of format=flowed text (RFC 3676) */
#ifndef CRM_MAIL_FLOWED_H
#define CRM_MAIL_FLOWED_H

#include "apr_pools.h"

/* Return TEXT, which is format=flowed (RFC 3676), with each paragraph on one
 * line, in POOL. DELSP: the parameter DelSp, that a space at the end of a line
 * is not part of the text. */
const char *crm_mail_unflow(const char *text, int delsp, apr_pool_t *pool);

#endif /* CRM_MAIL_FLOWED_H */
