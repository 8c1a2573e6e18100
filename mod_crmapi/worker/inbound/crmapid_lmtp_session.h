/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp_session.h: one session of LMTP (RFC 2033, RFC 5321) */
#ifndef CRMAPID_LMTP_SESSION_H
#define CRMAPID_LMTP_SESSION_H

#include "apr_pools.h"

#include "crm_db_conn.h"

#include "crmapid_config.h"
#include "crmapid_lmtp_io.h"

/* Serve the client at SOCKET until it leaves, or until DOOR says that the daemon ends,
 * and no mail is being received, or that others wait for its thread, and it has been
 * silent. *CONN_P is this thread's connection; if it is NULL it is opened in CONN_POOL
 * when it is needed. */
void crmd_lmtp_serve(crm_conn_t **conn_p, int socket, crmd_lmtp_door_t *door,
                     const crmd_config_t *config, apr_pool_t *conn_pool,
                     apr_pool_t *scratch_pool);

#endif /* CRMAPID_LMTP_SESSION_H */
