/* SPDX-License-Identifier: Apache-2.0 */
/* crm_token.c: signed tokens for links and browsers */
#include "crm_token.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "apr_encode.h"
#include "apr_escape.h"
#include "apr_strings.h"

#define VERSION 1
#define ID_LEN CRM_UUID_BYTES
#define MAC_LEN 32

/* The offsets of a token's parts. */
enum {
    AT_VERSION, AT_PURPOSE, AT_WORKSPACE,
    AT_SUBJECT = AT_WORKSPACE + ID_LEN,
    AT_OTHER = AT_SUBJECT + ID_LEN,
    AT_EXPIRES = AT_OTHER + ID_LEN,
    AT_MAC = AT_EXPIRES + 8,
    SIZE = AT_MAC + MAC_LEN
};

/* Write the SIZE bytes at DATA to OUT as base64url and a NUL. */
static void encode(char *out, const unsigned char *data)
{
    apr_encode_base64_binary(out, data, SIZE, APR_ENCODE_BASE64URL, NULL);
}

/* Decode TEXT, CRM_TOKEN_LEN characters of base64url, into the SIZE bytes at
 * DATA. Return 0 if it is invalid. APR accepts '+' and '/' as well, which would
 * give a token a second spelling. */
static int decode(unsigned char *data, const char *text)
{
    apr_size_t len = 0;

    return !memchr(text, '+', CRM_TOKEN_LEN)
           && !memchr(text, '/', CRM_TOKEN_LEN)
           && apr_decode_base64_binary(data, text, CRM_TOKEN_LEN,
                                       APR_ENCODE_NONE, &len) == APR_SUCCESS
           && len == SIZE;
}

/* Return the LEN bytes at DATA as a bind for a bytea, in POOL. */
static const char *bind_of(const unsigned char *data, apr_size_t len,
                           apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\\x", apr_pescape_hex(pool, data, len, 0),
                       NULL);
}

/* Write the LEN bytes of BIND, a bytea, to OUT. Return 0 if BIND is NULL or has
 * another length. */
static int bytes_of(unsigned char *out, apr_size_t len, const char *bind)
{
    return bind && strlen(bind) == 2 + 2 * len && !memcmp(bind, "\\x", 2)
           && apr_unescape_hex(out, bind + 2, APR_ESCAPE_STRING, 0, NULL)
              == APR_SUCCESS;
}

const char *crm_token_head(const crm_token_t *token, apr_pool_t *pool)
{
    unsigned char data[AT_MAC];

    memset(data, 0, sizeof(data));
    data[AT_VERSION] = VERSION;
    data[AT_PURPOSE] = (unsigned char)token->purpose;
    if (!crm_uuid_pack(data + AT_WORKSPACE, token->workspace_id)
        || !crm_uuid_pack(data + AT_SUBJECT, token->subject_id)
        || (*token->other_id
            && !crm_uuid_pack(data + AT_OTHER, token->other_id))
        || token->expires < 0) {
        return NULL;
    }
    for (int i = 0; i < 8; i++) {
        data[AT_EXPIRES + i] = (unsigned char)(token->expires >> (56 - 8 * i));
    }
    return bind_of(data, AT_MAC, pool);
}

const char *crm_token_text(const char *head, const char *mac,
                           apr_pool_t *pool)
{
    char *text = apr_palloc(pool, CRM_TOKEN_LEN + 1);
    unsigned char data[SIZE];

    if (!bytes_of(data, AT_MAC, head)
        || !bytes_of(data + AT_MAC, MAC_LEN, mac)) {
        return NULL;
    }
    encode(text, data);
    return text;
}

int crm_token_read(crm_token_t *token, const char *text, apr_size_t len)
{
    static const unsigned char none[ID_LEN];
    unsigned char data[SIZE];
    apr_uint64_t expires = 0;

    if (len != CRM_TOKEN_LEN || !decode(data, text)
        || data[AT_VERSION] != VERSION
        || data[AT_PURPOSE] < CRM_TOKEN_REVIEW
        || data[AT_PURPOSE] > CRM_TOKEN_VISITOR) {
        return 0;
    }
    for (int i = 0; i < 8; i++) {
        expires = expires << 8 | data[AT_EXPIRES + i];
    }
    if (expires > APR_INT64_MAX) {
        return 0;
    }
    token->purpose = (crm_token_purpose_t)data[AT_PURPOSE];
    token->expires = (apr_int64_t)expires;
    crm_uuid_unpack(token->workspace_id, data + AT_WORKSPACE);
    crm_uuid_unpack(token->subject_id, data + AT_SUBJECT);
    crm_uuid_unpack(token->other_id, data + AT_OTHER);
    if (!memcmp(data + AT_OTHER, none, ID_LEN)) {
        *token->other_id = '\0';
    }
    return 1;
}

void crm_token_parts(const char **head_p, const char **mac_p,
                     const char *text, apr_pool_t *pool)
{
    unsigned char data[SIZE];

    if (!decode(data, text)) {
        abort();
    }
    *head_p = bind_of(data, AT_MAC, pool);
    *mac_p = bind_of(data + AT_MAC, MAC_LEN, pool);
}

int crm_token_expired(const crm_token_t *token, apr_time_t now)
{
    return token->expires && apr_time_sec(now) >= token->expires;
}

void crm_token_bind(char out[CRM_UUID_LEN + 1], const char *text)
{
    unsigned char hash[EVP_MAX_MD_SIZE];

    if (!EVP_Digest(text, strlen(text), hash, NULL, EVP_sha256(), NULL)) {
        abort();
    }
    crm_uuid_unpack(out, hash);
}

/* Return the head of a token of PURPOSE with these ids (OTHER may be NULL), in
 * POOL. Return NULL if an id is not a UUID. */
static const char *make(crm_token_purpose_t purpose, const char *workspace,
                        const char *subject, const char *other,
                        apr_int64_t expires, apr_pool_t *pool)
{
    crm_token_t token;

    memset(&token, 0, sizeof(token));
    token.purpose = purpose;
    token.expires = expires;
    if (!crm_uuid_parse(token.workspace_id, workspace, strlen(workspace))
        || !crm_uuid_parse(token.subject_id, subject, strlen(subject))
        || (other && !crm_uuid_parse(token.other_id, other, strlen(other)))) {
        return NULL;
    }
    return crm_token_head(&token, pool);
}

const char *crm_token_review(const char *workspace_id,
                             const char *enrollment_id, const char *admin_id,
                             apr_int64_t expires, apr_pool_t *pool)
{
    return make(CRM_TOKEN_REVIEW, workspace_id, enrollment_id, admin_id,
                expires, pool);
}

const char *crm_token_unsubscribe(const char *workspace_id,
                                  const char *step_id, apr_pool_t *pool)
{
    return make(CRM_TOKEN_UNSUBSCRIBE, workspace_id, step_id, NULL, 0, pool);
}

const char *crm_token_visitor(const char *workspace_id,
                              const char *visitor_id, const char *bot_id,
                              apr_int64_t expires, apr_pool_t *pool)
{
    return make(CRM_TOKEN_VISITOR, workspace_id, visitor_id, bot_id, expires,
                pool);
}
