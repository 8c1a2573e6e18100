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

/* Length of the key of a workspace (crmapi.link_key). */
#define CRM_TOKEN_KEY_LEN 32

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

/* Write TOKEN, signed with KEY (CRM_TOKEN_KEY_LEN bytes, the workspace's), and
 * a NUL to OUT. Return 0 if an id of TOKEN is no UUID, if its workspace or
 * subject is missing, or if EXPIRES is negative. */
int crm_token_write(char out[CRM_TOKEN_LEN + 1], const crm_token_t *token,
                    const unsigned char *key);

/* Set *TOKEN to what the LEN bytes at TEXT say, which nobody has vouched for:
 * for finding the workspace's key. Return 0 if they are no token. */
int crm_token_read(crm_token_t *token, const char *text, apr_size_t len);

/* Return whether TEXT, which crm_token_read() took, was signed with KEY, in a
 * time that does not depend on where the signatures differ. */
int crm_token_verify(const char *text, const unsigned char *key);

/* Return whether TOKEN is worth nothing any more at NOW. */
int crm_token_expired(const crm_token_t *token, apr_time_t now);

/* Write to OUT an id that stands for TEXT, any text, alone: a form's token
 * that has it is good for the page behind that text and no other. */
void crm_token_bind(char out[CRM_UUID_LEN + 1], const char *text);

/* Write to KEY (CRM_TOKEN_KEY_LEN bytes) what HEX says: 64 hexadecimal digits,
 * with or without the "\x" that PostgreSQL writes before a bytea. Return 0 if
 * HEX is NULL or anything else. */
int crm_token_key(unsigned char *key, const char *hex);

/* Return the token with which ADMIN_ID may review ENROLLMENT_ID of
 * WORKSPACE_ID, whose key is KEY, until EXPIRES (seconds since 1970), in
 * RESULT_POOL; NULL if an id is no UUID. */
const char *crm_token_review(const char *workspace_id,
                             const char *enrollment_id, const char *admin_id,
                             apr_int64_t expires, const unsigned char *key,
                             apr_pool_t *result_pool);

/* Return the token that takes the address that STEP_ID of WORKSPACE_ID is sent
 * to off all lists (RFC 8058), for ever, in RESULT_POOL; NULL if an id is no
 * UUID. KEY is the workspace's. */
const char *crm_token_unsubscribe(const char *workspace_id,
                                  const char *step_id,
                                  const unsigned char *key,
                                  apr_pool_t *result_pool);

/* Return the token by which the browser of VISITOR_ID is known to BOT_ID, an
 * agent of WORKSPACE_ID, until EXPIRES (seconds since 1970), in RESULT_POOL;
 * NULL if an id is no UUID. KEY is the workspace's. */
const char *crm_token_visitor(const char *workspace_id,
                              const char *visitor_id, const char *bot_id,
                              apr_int64_t expires, const unsigned char *key,
                              apr_pool_t *result_pool);

#endif /* CRM_TOKEN_H */
