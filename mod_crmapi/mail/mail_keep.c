/* SPDX-License-Identifier: Apache-2.0 */
/* mail_keep.c: storing what a mail carries beside its message */
#include "mail_keep.h"

#include <string.h>

#include "apr_base64.h"
#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_db.h"
#include "crm_resource.h"
#include "mail_display.h"

/* A number's place among the values of a statement. */
#define NUMBER 2
#define BYTES 3

/* Run SQL with COUNT VALUES in POOL, and clear the pool. */
static crm_error_t *run(crm_conn_t *conn, const char *sql, int count,
                        const char *const *values, apr_pool_t *pool)
{
    crm_stmt_t stmt = {sql, count, values};
    PGresult *result;

    CRM_ERR(crm_db_query(&result, conn, &stmt, pool));
    apr_pool_clear(pool);
    return NULL;
}

/* Store the LEN BYTES by SQL, an INSERT of a piece. Its binds are the workspace's
 * id, ID, the piece's number, and its bytes in base64. */
static crm_error_t *keep_bytes(crm_conn_t *conn, const char *sql,
                               const crm_mail_kept_t *kept, const char *id,
                               const char *bytes, apr_size_t len,
                               apr_pool_t *pool)
{
    const char *values[BYTES + 1] = {kept->workspace_id, id};
    int number = 0;

    for (apr_size_t at = 0; at < len; at += CRM_FILE_PIECE) {
        int size = (int)(len - at < CRM_FILE_PIECE ? len - at : CRM_FILE_PIECE);
        char *text = apr_palloc(pool,
                                (apr_size_t)apr_base64_encode_len(size));

        apr_base64_encode_binary(text, (const unsigned char *)bytes + at,
                                 size);
        values[NUMBER] = apr_itoa(pool, ++number);
        values[BYTES] = text;
        CRM_ERR(run(conn, sql, BYTES + 1, values, pool));
    }
    return NULL;
}

/* Store the attachment INDEX of KEPT. */
static crm_error_t *keep_attachment(crm_conn_t *conn,
                                    const crm_mail_kept_t *kept, int index,
                                    apr_pool_t *pool)
{
    const crm_mail_attachment_t *one =
        &APR_ARRAY_IDX(kept->mail->attachments, index, crm_mail_attachment_t);
    const char *id = APR_ARRAY_IDX(kept->ids, index, const char *);
    const char *values[] = {
        kept->workspace_id, id, kept->message_id, apr_itoa(pool, index + 1),
        one->name, one->type, one->content_id,
        apr_psprintf(pool, "%" APR_SIZE_T_FMT, one->size),
        one->body ? "t" : "f"
    };

    CRM_ERR(run(conn, "INSERT INTO crmapi.attachment (workspace_id, id,"
                " message_id, number, filename, content_type, content_id,"
                " size, stored) VALUES ($1::uuid, $2::uuid, $3::uuid,"
                " $4::integer, $5::text, $6::text, $7::text, $8::bigint,"
                " $9::boolean)", 9, values, pool));
    return !one->body ? NULL
        : keep_bytes(conn, "INSERT INTO crmapi.attachment_piece (workspace_id,"
                     " attachment_id, number, bytes) VALUES ($1::uuid,"
                     " $2::uuid, $3::integer, decode($4::text, 'base64'))",
                     kept, id, one->body, one->size, pool);
}

/* Add to BUF the attribute of an image that shows the attachment with the LEN
 * bytes of CID, HTML, as its Content-ID; nothing if there is none. */
static void put_image(crm_buf_t *buf, const crm_mail_kept_t *kept,
                      const char *cid, apr_size_t len)
{
    const apr_array_header_t *all = kept->mail->attachments;

    for (int i = 0; i < all->nelts; i++) {
        const char *id = APR_ARRAY_IDX(all, i, crm_mail_attachment_t)
            .content_id;

        if (id && strlen(id) == len && !memcmp(id, cid, len)) {
            crm_buf_printf(buf, " src=\"" CRM_API_BASE "/attachments/%s\"",
                           APR_ARRAY_IDX(kept->ids, i, const char *));
            return;
        }
    }
}

/* Return the HTML of KEPT, in POOL, in which images refer to attachments. */
static const char *html_of(const crm_mail_kept_t *kept, apr_pool_t *pool)
{
    const char *at = kept->mail->display, *cid;
    crm_buf_t buf;

    crm_buf_init(&buf, strlen(at) + 256, pool);
    while ((cid = strchr(at, CRM_MAIL_CID))) {
        const char *end = strchr(cid + 1, CRM_MAIL_CID);

        crm_buf_add(&buf, at, (apr_size_t)(cid - at));
        if (buf.len < 2 * CRM_MAIL_DISPLAY_BYTES) {
            put_image(&buf, kept, cid + 1, (apr_size_t)(end - cid - 1));
        }
        at = end + 1;
    }
    crm_buf_add(&buf, at, strlen(at) + 1);
    return buf.data;
}

static crm_error_t *keep_html(crm_conn_t *conn, const crm_mail_kept_t *kept,
                              apr_pool_t *pool)
{
    const char *values[] = {kept->workspace_id, kept->message_id,
                            html_of(kept, pool)};

    return run(conn, "INSERT INTO crmapi.message_html (workspace_id,"
               " message_id, html) VALUES ($1::uuid, $2::uuid, $3::text)",
               3, values, pool);
}

crm_error_t *crm_mail_keep(crm_conn_t *conn, const crm_mail_kept_t *kept,
                           const crm_mail_options_t *options,
                           apr_pool_t *scratch_pool)
{
    apr_pool_t *pool;
    crm_error_t *error = NULL;

    apr_pool_create(&pool, scratch_pool);
    for (int i = 0; !error && i < kept->mail->attachments->nelts; i++) {
        error = keep_attachment(conn, kept, i, pool);
    }
    if (!error && options->keep_original) {
        error = keep_bytes(conn, "INSERT INTO crmapi.original (workspace_id,"
                           " message_id, number, created_at, bytes) VALUES"
                           " ($1::uuid, $2::uuid, $3::integer, now(),"
                           " decode($4::text, 'base64'))", kept,
                           kept->message_id, kept->bytes, kept->len, pool);
    }
    if (!error && kept->mail->display) {
        error = keep_html(conn, kept, pool);
    }
    if (!error) {
        apr_pool_destroy(pool); /* it has the error, if there is one */
    }
    return error;
}
