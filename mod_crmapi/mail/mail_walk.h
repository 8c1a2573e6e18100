/* SPDX-License-Identifier: Apache-2.0 */
/* mail_walk.h: the state of a walk through the parts of a mail */
#ifndef CRM_MAIL_WALK_H
#define CRM_MAIL_WALK_H

#include <gmime/gmime.h>

#include "crm_buf.h"
#include "crm_mail.h"

/* A walk through the parts of a mail. */
/* What crm_mail_walk_t.other is. */
typedef enum crm_mail_other_t {
    CRM_MAIL_OTHER_TEXT, CRM_MAIL_OTHER_HTML, CRM_MAIL_OTHER_CALENDAR,
    CRM_MAIL_OTHER_RTF, CRM_MAIL_OTHER_ENRICHED, CRM_MAIL_OTHER_RICHTEXT
} crm_mail_other_t;

typedef struct crm_mail_walk_t {
    crm_mail_t *mail;
    const crm_mail_options_t *options;
    const char *hint;           /* charset of headers that declare none */
    crm_buf_t text;
    crm_buf_t display;          /* crm_mail_t.display */
    int shows_html;             /* there is HTML in it */
    GMimePart *shown;           /* the last part that was added to both */
    apr_size_t shown_at;        /* where it begins in DISPLAY */
    const char *other;          /* bytes of the first attached text, used if
                                   there is no other text */
    apr_size_t other_len;
    const char *other_charset;  /* or NULL */
    crm_mail_other_t other_kind;
    apr_size_t html;            /* bytes of HTML that were read */
    int enclosed;               /* number of signed messages that were read */
    int certified;              /* it encloses what somebody wrote: RFC 6109 */
    apr_pool_t *pool;
} crm_mail_walk_t;

/* Return whether OBJECT has the media type TYPE/SUBTYPE ("*": any). */
static inline int crm_mail_type_is(GMimeObject *object, const char *type,
                                   const char *subtype)
{
    return g_mime_content_type_is_type(g_mime_object_get_content_type(object),
                                       type, subtype);
}

/* Return the parameter NAME of OBJECT's media type, or NULL. */
static inline const char *crm_mail_type_parameter(GMimeObject *object,
                                                  const char *name)
{
    return g_mime_content_type_get_parameter(
        g_mime_object_get_content_type(object), name);
}

#endif /* CRM_MAIL_WALK_H */
