/* SPDX-License-Identifier: Apache-2.0 */
/* mail_json.h: the stored properties of a mail, as JSON */
#ifndef CRM_MAIL_JSON_H
#define CRM_MAIL_JSON_H

#include "crm_mail.h"

/* Return as JSON, in POOL: the metadata of MAIL's message, whose attachments have
 * the ids IDS (of const char *); its references. */
const char *crm_mail_metadata(const crm_mail_t *mail,
                              const apr_array_header_t *ids,
                              const char *recipient, const char *automatic,
                              apr_pool_t *pool);
const char *crm_mail_references(const crm_mail_t *mail, apr_pool_t *pool);

#endif /* CRM_MAIL_JSON_H */
