/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp.h: an LMTP server on a Unix socket, for inbound mails */
#ifndef CRMAPID_LMTP_H
#define CRMAPID_LMTP_H

#include "apr_pools.h"

#include "crm_error.h"

#include "crmapid_config.h"

/* A listening server. */
typedef struct crmd_lmtp_t crmd_lmtp_t;

/* Listen on the socket that CONFIG names, and set *LMTP_P (NULL if it names
 * none). A socket that a dead server left is replaced. Call it before other
 * threads are started: it initialises the libraries that read mails. *LMTP_P is
 * in POOL. Errors: CRM_E_CONFLICT: the socket or a thread cannot be used. */
crm_error_t *crmd_lmtp_start(crmd_lmtp_t **lmtp_p,
                             const crmd_config_t *config, apr_pool_t *pool);

/* Accept no more sessions, let those that have begun a mail finish it, and end
 * all threads. LMTP may be NULL. */
void crmd_lmtp_stop(crmd_lmtp_t *lmtp);

#endif /* CRMAPID_LMTP_H */
