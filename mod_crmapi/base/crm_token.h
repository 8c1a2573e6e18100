/* SPDX-License-Identifier: Apache-2.0 */
/* crm_token.h: signed tokens, which are what links in mails consist of */
#ifndef CRM_TOKEN_H
#define CRM_TOKEN_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_uuid.h"

/* Every token has this length, and no other spelling: base64url (RFC 4648, 5)
 * of 90 bytes, so that no bit is left over and there is no padding. */
#define CRM_TOKEN_LEN 120

/* What is signed of a token is its head, by the key of its workspace, which the
 * database alone knows: crmapi.token_sign_link(), _page(), token_signed().
 * Heads and signatures are binds of a bytea ("\\x..."). A query that returns one
 * says '\\x' || encode(..., 'hex'): a database's bytea_output may be escape. */

/* What a token is for. One for a purpose is worth nothing for another. */
typedef enum crm_token_purpose_t {
    CRM_TOKEN_REVIEW = 1,       /* subject: enrollment; other: admin */
    CRM_TOKEN_UNSUBSCRIBE = 2,  /* subject: enrollment's step; no other */
    CRM_TOKEN_FORM = 3,         /* a form of the page of a review: subject:
                                   enrollment; other: see crm_token_bind() */
    CRM_TOKEN_VISITOR = 4       /* a browser that chats: subject: the visitor;
                                   other: the agent */
} crm_token_purpose_t;

/* What a token says. Ids are UUIDs in lower case. */
typedef struct crm_token_t {
    crm_token_purpose_t purpose;
    char workspace_id[CRM_UUID_LEN + 1];
    char subject_id[CRM_UUID_LEN + 1];
    char other_id[CRM_UUID_LEN + 1];    /* "" if there is none */
    apr_int64_t expires;        /* seconds since 1970, the first at which it is
                                   worth nothing; 0: never */
} crm_token_t;

/* Return TOKEN's head, in POOL; NULL if an id of TOKEN is no UUID, if its
 * workspace or subject is missing, or if EXPIRES is negative. */
const char *crm_token_head(const crm_token_t *token, apr_pool_t *pool);

/* Return the token whose head is HEAD and whose signature is MAC, in POOL; NULL
 * if one of them is NULL or has another length. */
const char *crm_token_text(const char *head, const char *mac,
                           apr_pool_t *pool);

/* Set *TOKEN to what the LEN bytes at TEXT say, which nobody has vouched for.
 * Return 0 if they are no token. */
int crm_token_read(crm_token_t *token, const char *text, apr_size_t len);

/* Set *HEAD_P and *MAC_P to the parts of TEXT, which crm_token_read() took, in
 * POOL. */
void crm_token_parts(const char **head_p, const char **mac_p,
                     const char *text, apr_pool_t *pool);

/* Return whether TOKEN is worth nothing any more at NOW. */
int crm_token_expired(const crm_token_t *token, apr_time_t now);

/* Write to OUT an id that stands for TEXT, any text, alone: a form's token
 * that has it is good for the page behind that text and no other. */
void crm_token_bind(char out[CRM_UUID_LEN + 1], const char *text);

/* Return the head of the token with which ADMIN_ID may review ENROLLMENT_ID of
 * WORKSPACE_ID until EXPIRES (seconds since 1970), in POOL; NULL if an id is no
 * UUID. */
const char *crm_token_review(const char *workspace_id,
                             const char *enrollment_id, const char *admin_id,
                             apr_int64_t expires, apr_pool_t *pool);

/* Return the head of the token that takes the address that STEP_ID of
 * WORKSPACE_ID is sent to off all lists (RFC 8058), for ever, in POOL; NULL if
 * an id is no UUID. */
const char *crm_token_unsubscribe(const char *workspace_id,
                                  const char *step_id, apr_pool_t *pool);

/* Return the head of the token by which the browser of VISITOR_ID is known to
 * BOT_ID, an agent of WORKSPACE_ID, until EXPIRES (seconds since 1970), in
 * POOL; NULL if an id is no UUID. */
const char *crm_token_visitor(const char *workspace_id,
                              const char *visitor_id, const char *bot_id,
                              apr_int64_t expires, apr_pool_t *pool);

#endif /* CRM_TOKEN_H */
