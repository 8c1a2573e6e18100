/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp.h: mails from a mail system, over LMTP on a Unix socket */
#ifndef CRMAPID_LMTP_H
#define CRMAPID_LMTP_H

#include "crmapid.h"

/* A server that listens. */
typedef struct crmd_lmtp_t crmd_lmtp_t;

/* Listen at the socket that CONFIG names, and set *LMTP_P (NULL: it names
 * none). A file that a server left there is replaced, unless one answers at
 * it. To be called before other threads are started: it makes the libraries
 * ready that read mails. The memory is POOL's. Errors: CRM_E_CONFLICT. */
crm_error_t *crmd_lmtp_start(crmd_lmtp_t **lmtp_p,
                             const crmd_config_t *config, apr_pool_t *pool);

/* Take no more sessions, let those that have begun a mail finish it, and end
 * all threads. LMTP may be NULL. */
void crmd_lmtp_stop(crmd_lmtp_t *lmtp);

/* crmapid_lmtp_session.c: serve the client at SOCKET until it leaves, or STOP
 * (a descriptor) can be read from and no mail is being taken. *CONN_P is the
 * connection of this thread, opened in CONN_POOL when it is NULL. */
void crmd_lmtp_serve(crm_conn_t **conn_p, int socket, int stop,
                     const crmd_config_t *config, apr_pool_t *conn_pool,
                     apr_pool_t *scratch_pool);

#endif /* CRMAPID_LMTP_H */
