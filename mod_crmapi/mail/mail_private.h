/* SPDX-License-Identifier: Apache-2.0 */
/* mail_private.h: functions that the files of this folder share */
#ifndef CRM_MAIL_PRIVATE_H
#define CRM_MAIL_PRIVATE_H

#include <gmime/gmime.h>

#include "crm_buf.h"
#include "crm_mail.h"

/* mail_charset.c: return the LEN BYTES as UTF-8 in POOL, without NUL and
 * control characters except tab and line feed; all lines end with LF. CHARSET
 * is the declared charset (NULL: none). It is corrected if the bytes are
 * certainly in another one. Invalid bytes become U+FFFD. */
const char *crm_mail_utf8(const char *bytes, apr_size_t len,
                          const char *charset, apr_pool_t *pool);

/* mail_charset.c: return TEXT, which may be invalid UTF-8, as one line of at
 * most MAX characters in POOL, without white space at both ends; NULL if
 * nothing is left. */
const char *crm_mail_line(const char *text, apr_size_t max, apr_pool_t *pool);

/* mail_charset.c: return the first MAX characters of TEXT, in POOL; *CUT_P =
 * the number of characters cut off. */
const char *crm_mail_cut(apr_size_t *cut_p, const char *text, apr_size_t max,
                         apr_pool_t *pool);

/* mail_text.c: return the text of HTML (UTF-8), in POOL. */
const char *crm_mail_text(const char *html, apr_pool_t *pool);

/* mail_flowed.c: return TEXT, which is format=flowed (RFC 3676), in POOL with
 * each paragraph on one line. DELSP: the parameter DelSp of RFC 3676. */
const char *crm_mail_unflow(const char *text, int delsp, apr_pool_t *pool);

/* mail_address.c: set *ADDRESS_P and *NAME_P to the first mailbox with a valid
 * address in the headers NAME of MIME. Return whether there is one. */
int crm_mail_mailbox(const char **address_p, const char **name_p,
                     GMimeMessage *mime, const char *name, apr_pool_t *pool);

/* mail_address.c: add the addresses in all headers NAME of MIME to LIST (of
 * const char *), each once. */
void crm_mail_addresses(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool);

/* mail_address.c: add the Message-IDs in all headers NAME of MIME to LIST. */
void crm_mail_ids(apr_array_header_t *list, GMimeMessage *mime,
                  const char *name, apr_pool_t *pool);

/* mail_address.c: return the step id in ID, a Message-ID, in POOL; NULL if ID
 * does not have the form of crmapid's Message-IDs. */
const char *crm_mail_step(const char *id, apr_pool_t *pool);

/* mail_read.c: return the value of the first header NAME of MIME, decoded, as
 * one line of at most MAX characters in POOL; NULL if it is missing or
 * blank. */
const char *crm_mail_header(GMimeMessage *mime, const char *name,
                            apr_size_t max, apr_pool_t *pool);

/* mail_read.c: return the number of headers NAME in MIME. */
int crm_mail_count(GMimeMessage *mime, const char *name);

/* mail_read.c: return the decoded content of PART, *LEN_P bytes and a NUL, in
 * POOL. */
const char *crm_mail_bytes(apr_size_t *len_p, GMimePart *part,
                           apr_pool_t *pool);

/* mail_read.c: return a mail parsed from the LEN BYTES, which must live as
 * long. The caller unrefs it. Never NULL. */
GMimeMessage *crm_mail_parse(const char *bytes, apr_size_t len,
                             apr_pool_t *pool);

/* mail_body.c: set MAIL's text and attachments from MIME. */
void crm_mail_body(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool);

/* mail_bounce.c: return whether MIME is a bounce. If it is, add the reported
 * addresses and the Message-ID of the returned mail to MAIL. */
int crm_mail_bounced(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool);

/* mail_kind.c: set the members automatic, bounces and steps of MAIL. All others
 * must be set before. */
void crm_mail_kind(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool);

/* The result of a header Authentication-Results for a mail's sender. Of several
 * results the greatest counts. */
typedef enum crm_mail_word_t {
    CRM_MAIL_FOREIGN,           /* its authserv-id is not trusted */
    CRM_MAIL_SILENT,            /* none of the other results */
    CRM_MAIL_PASSED,            /* DMARC passed, or a signature (DKIM) of the
                                   sender's domain or one above it */
    CRM_MAIL_FAILED             /* DMARC failed, or the header is malformed */
} crm_mail_word_t;

/* mail_auth.c: return the result of VALUE, the value of such a header, for a
 * mail from DOMAIN. IDS: the authserv_ids of crm_mail_options_t. */
crm_mail_word_t crm_mail_results(const char *value, const char *ids,
                                 const char *domain, apr_pool_t *pool);

/* mail_auth.c: return whether a host of IDS has verified MAIL's sender in the
 * headers of MIME. The mail must name no other sender. */
int crm_mail_verified(const crm_mail_t *mail, GMimeMessage *mime,
                      const char *ids, apr_pool_t *pool);

/* mail_json.c: return as JSON, in POOL: the metadata of MAIL's message; its
 * references; its attachments with their bodies (NULL if it has none). */
const char *crm_mail_metadata(const crm_mail_t *mail, const char *recipient,
                              const char *automatic, apr_pool_t *pool);
const char *crm_mail_references(const crm_mail_t *mail, apr_pool_t *pool);
const char *crm_mail_attachments(const crm_mail_t *mail, apr_pool_t *pool);

#endif /* CRM_MAIL_PRIVATE_H */
