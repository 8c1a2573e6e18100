/* SPDX-License-Identifier: Apache-2.0 */
/* mail_file.h: names of files (RFC 2183, 2231, 2047) */
#ifndef CRM_MAIL_FILE_H
#define CRM_MAIL_FILE_H

#include <gmime/gmime.h>

#include "apr_pools.h"

/* Return the name of the file that PART is, in POOL: from Content-Disposition, else
 * Content-Type; NULL if it has none. HINT: the charset of what declares none, or
 * NULL. */
const char *crm_mail_file_name(GMimeObject *part, const char *hint,
                               apr_pool_t *pool);

#endif /* CRM_MAIL_FILE_H */
