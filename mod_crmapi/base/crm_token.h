/* SPDX-License-Identifier: Apache-2.0 */
/* crm_token.h: signed tokens for links and browsers */
#ifndef CRM_TOKEN_H
#define CRM_TOKEN_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_uuid.h"

/* The length of every token: base64url (RFC 4648, 5) of 90 bytes. No bits are
 * left over and there is no padding, so each token has one spelling. */
#define CRM_TOKEN_LEN 120

/* The database signs a token's head with the key of its workspace, which only
 * the database knows: crmapi.token_sign_link(), token_sign_page(),
 * token_signed(). Heads and signatures are binds for a bytea ("\\x...").
 * Queries return them by '\\x' || encode(..., 'hex'), because bytea_output may
 * be escape. */

/* The purpose of a token. A token is valid for its purpose only. */
typedef enum crm_token_purpose_t {
    CRM_TOKEN_REVIEW = 1,       /* subject: enrollment; other: admin */
    CRM_TOKEN_UNSUBSCRIBE = 2,  /* subject: enrollment step */
    CRM_TOKEN_FORM = 3,         /* a form on a review page: subject: enrollment;
                                   other: see crm_token_bind() */
    CRM_TOKEN_VISITOR = 4       /* the browser of a chat visitor: subject:
                                   visitor; other: agent */
} crm_token_purpose_t;

/* The content of a token. Ids are UUIDs in lower case. */
typedef struct crm_token_t {
    crm_token_purpose_t purpose;
    char workspace_id[CRM_UUID_LEN + 1];
    char subject_id[CRM_UUID_LEN + 1];
    char other_id[CRM_UUID_LEN + 1];    /* or "" */
    apr_int64_t expires;        /* expiry, in seconds since 1970; 0: it never
                                   expires */
} crm_token_t;

/* Return the head of TOKEN, in POOL. Return NULL if an id is not a UUID, the
 * workspace or subject is missing, or EXPIRES is negative. */
const char *crm_token_head(const crm_token_t *token, apr_pool_t *pool);

/* Return the token made of HEAD and the signature MAC, in POOL. Return NULL if
 * one of them is NULL or has another length. */
const char *crm_token_text(const char *head, const char *mac,
                           apr_pool_t *pool);

/* Set *TOKEN to the content of the LEN bytes at TEXT. The signature is not
 * checked. Return 0 if they are not a token. */
int crm_token_read(crm_token_t *token, const char *text, apr_size_t len);

/* Set *HEAD_P and *MAC_P to the head and signature of TEXT, which
 * crm_token_read() accepted, in POOL. */
void crm_token_parts(const char **head_p, const char **mac_p,
                     const char *text, apr_pool_t *pool);

/* Return whether TOKEN has expired at NOW. */
int crm_token_expired(const crm_token_t *token, apr_time_t now);

/* Write an id that is derived from TEXT to OUT. A form's token that contains it
 * is valid only for the page with that text. */
void crm_token_bind(char out[CRM_UUID_LEN + 1], const char *text);

/* Return the head of a token that lets ADMIN_ID review ENROLLMENT_ID of
 * WORKSPACE_ID until EXPIRES (seconds since 1970), in POOL. Return NULL if an
 * id is not a UUID. */
const char *crm_token_review(const char *workspace_id,
                             const char *enrollment_id, const char *admin_id,
                             apr_int64_t expires, apr_pool_t *pool);

/* Return the head of a token that unsubscribes the recipient of STEP_ID of
 * WORKSPACE_ID (RFC 8058), in POOL. It never expires. Return NULL if an id is
 * not a UUID. */
const char *crm_token_unsubscribe(const char *workspace_id,
                                  const char *step_id, apr_pool_t *pool);

/* Return the head of a token that identifies VISITOR_ID's browser to the agent
 * BOT_ID of WORKSPACE_ID until EXPIRES (seconds since 1970), in POOL. Return
 * NULL if an id is not a UUID. */
const char *crm_token_visitor(const char *workspace_id,
                              const char *visitor_id, const char *bot_id,
                              apr_int64_t expires, apr_pool_t *pool);

#endif /* CRM_TOKEN_H */
