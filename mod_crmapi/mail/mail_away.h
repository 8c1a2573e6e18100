/* SPDX-License-Identifier: Apache-2.0 */
/* mail_away.h: subjects of automatic replies */
#ifndef CRM_MAIL_AWAY_H
#define CRM_MAIL_AWAY_H

#include "apr_pools.h"

/* Return whether SUBJECT (may be NULL) is that of an automatic reply. ANSWERS:
 * its mail has an In-Reply-To; without one only what programs write counts, not
 * what people write as well ("Out of office"). */
int crm_mail_away(const char *subject, int answers, apr_pool_t *scratch_pool);

#endif /* CRM_MAIL_AWAY_H */
