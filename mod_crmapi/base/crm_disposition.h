/* SPDX-License-Identifier: Apache-2.0 */
/* crm_disposition.h: the header fields of a response that is a file */
#ifndef CRM_DISPOSITION_H
#define CRM_DISPOSITION_H

#include "apr_pools.h"

/* Return, in POOL, the value of Content-Disposition (RFC 6266) for an attachment
 * with the file name NAME, UTF-8; NULL or one that shows nothing: without a name.
 * Slashes, quotes, control and invisible characters, which could hide what a file
 * is, become "_". A name beyond ASCII is sent twice: so that all clients have one,
 * and whole (RFC 8187). */
const char *crm_disposition(const char *name, apr_pool_t *pool);

/* Return the media type TEXT, "image/png", in lower case in POOL if it is one
 * without parameters (RFC 9110, 8.3.1), else application/octet-stream; also for
 * NULL. */
const char *crm_disposition_type(const char *text, apr_pool_t *pool);

#endif /* CRM_DISPOSITION_H */
