/* SPDX-License-Identifier: Apache-2.0 */
/* mail_enriched.h: the text of text/enriched and text/richtext */
#ifndef CRM_MAIL_ENRICHED_H
#define CRM_MAIL_ENRICHED_H

#include "apr_pools.h"

/* Return what TEXT shows, in POOL: without commands, and with line ends where they
 * are. RICH: it is text/richtext (RFC 1341, 7.1.3), else text/enriched (RFC 1896). */
const char *crm_mail_enriched(const char *text, int rich, apr_pool_t *pool);

#endif /* CRM_MAIL_ENRICHED_H */
