/* SPDX-License-Identifier: Apache-2.0 */
/* mail_keep.h: storing what a mail carries beside its message */
#ifndef CRM_MAIL_KEEP_H
#define CRM_MAIL_KEEP_H

#include "crm_db_conn.h"
#include "crm_error.h"
#include "crm_mail.h"

/* A mail and the row of its message. */
typedef struct crm_mail_kept_t {
    const char *workspace_id;
    const char *message_id;
    const crm_mail_t *mail;
    const apr_array_header_t *ids; /* of const char *: of its attachments */
    const char *bytes;          /* the mail as it came */
    apr_size_t len;
} crm_mail_kept_t;

/* Store the attachments of KEPT, and with OPTIONS' keep_original the mail itself
 * and its HTML, in the transaction that is open on CONN. Bytes go in pieces
 * (schema/0004-inbox.sql), so that no more than one is encoded at a time. */
crm_error_t *crm_mail_keep(crm_conn_t *conn, const crm_mail_kept_t *kept,
                           const crm_mail_options_t *options,
                           apr_pool_t *scratch_pool);

#endif /* CRM_MAIL_KEEP_H */
