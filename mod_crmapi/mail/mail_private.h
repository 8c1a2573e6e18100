/* SPDX-License-Identifier: Apache-2.0 */
/* mail_private.h: what the files of this layer share */
#ifndef CRM_MAIL_PRIVATE_H
#define CRM_MAIL_PRIVATE_H

#include <gmime/gmime.h>

#include "crm_buf.h"
#include "crm_mail.h"

/* mail_charset.c: return the LEN BYTES, which say that they are in CHARSET
 * (NULL: they do not), as UTF-8 in POOL: without NUL and control characters
 * but tab and line feed, which ends lines. What is not of the charset is
 * U+FFFD; what is declared wrongly is recognised where that is certain. */
const char *crm_mail_utf8(const char *bytes, apr_size_t len,
                          const char *charset, apr_pool_t *pool);

/* mail_charset.c: return TEXT, of unknown quality, as one line of at most MAX
 * characters in POOL, without blanks at its ends; NULL if nothing is left. */
const char *crm_mail_line(const char *text, apr_size_t max, apr_pool_t *pool);

/* mail_charset.c: cut TEXT to MAX characters; *CUT_P = how many it loses. */
const char *crm_mail_cut(apr_size_t *cut_p, const char *text, apr_size_t max,
                         apr_pool_t *pool);

/* mail_text.c: return the text of HTML (UTF-8), in POOL. */
const char *crm_mail_text(const char *html, apr_pool_t *pool);

/* mail_flowed.c: return TEXT, which is format=flowed (RFC 3676), with its
 * paragraphs in one line each; DELSP as there. In POOL. */
const char *crm_mail_unflow(const char *text, int delsp, apr_pool_t *pool);

/* mail_address.c: set *ADDRESS_P and *NAME_P to the first mailbox of the
 * header NAME that has a usable address. Return whether there is one. */
int crm_mail_mailbox(const char **address_p, const char **name_p,
                     GMimeMessage *mime, const char *name, apr_pool_t *pool);

/* mail_address.c: add the addresses of all headers NAME to LIST (of const
 * char *), each once. */
void crm_mail_addresses(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool);

/* mail_address.c: add the Message-IDs in all headers NAME to LIST. */
void crm_mail_ids(apr_array_header_t *list, GMimeMessage *mime,
                  const char *name, apr_pool_t *pool);

/* mail_address.c: return the id of the step that the Message-ID ID would be
 * of, or NULL if it is none of ours. */
const char *crm_mail_step(const char *id, apr_pool_t *pool);

/* mail_read.c: return the value of the first header NAME, decoded, as a line
 * of at most MAX characters; NULL if there is none. */
const char *crm_mail_header(GMimeMessage *mime, const char *name,
                            apr_size_t max, apr_pool_t *pool);

/* mail_read.c: return how many headers NAME MIME has. */
int crm_mail_count(GMimeMessage *mime, const char *name);

/* mail_read.c: return the bytes of PART, decoded (*LEN_P of them, and a NUL),
 * in POOL. */
const char *crm_mail_bytes(apr_size_t *len_p, GMimePart *part,
                           apr_pool_t *pool);

/* mail_read.c: return a mail parsed from the LEN BYTES, which must live as
 * long; to be unref()ed. Never NULL. */
GMimeMessage *crm_mail_parse(const char *bytes, apr_size_t len,
                             apr_pool_t *pool);

/* mail_body.c: set MAIL's text and attachments from MIME. */
void crm_mail_body(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool);

/* mail_bounce.c: set MAIL's bounces and what they are about, if MIME is a
 * bounce. Return whether it is one. */
int crm_mail_bounced(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool);

/* mail_kind.c: set what MAIL is: automatic, bounces, steps. MAIL has
 * everything else. */
void crm_mail_kind(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool);

/* What a header Authentication-Results says of a mail's sender; what goes
 * before all else comes last. */
typedef enum crm_mail_word_t {
    CRM_MAIL_FOREIGN,           /* whoever wrote it is not trusted */
    CRM_MAIL_SILENT,            /* neither of these */
    CRM_MAIL_PASSED,            /* DMARC passed, or a signature (DKIM) of the
                                   sender's domain or one above it */
    CRM_MAIL_FAILED             /* DMARC did not, or it cannot be read */
} crm_mail_word_t;

/* mail_auth.c: return what VALUE, of such a header, says of a mail from
 * DOMAIN, if its authserv-id is one of IDS, as in crm_mail_options_t. */
crm_mail_word_t crm_mail_results(const char *value, const char *ids,
                                 const char *domain, apr_pool_t *pool);

/* mail_auth.c: return whether MIME's headers say that a host of IDS has
 * verified who MAIL is from: MAIL's from and nobody else. */
int crm_mail_verified(const crm_mail_t *mail, GMimeMessage *mime,
                      const char *ids, apr_pool_t *pool);

/* mail_json.c: return, as JSON in POOL, what is kept with MAIL's message; its
 * references; its attachments with their bodies (NULL: it has none). */
const char *crm_mail_metadata(const crm_mail_t *mail, const char *recipient,
                              const char *automatic, apr_pool_t *pool);
const char *crm_mail_references(const crm_mail_t *mail, apr_pool_t *pool);
const char *crm_mail_attachments(const crm_mail_t *mail, apr_pool_t *pool);

#endif /* CRM_MAIL_PRIVATE_H */
