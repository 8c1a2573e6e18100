/* SPDX-License-Identifier: Apache-2.0 */
/* mail_reference.h: character references in HTML */
#ifndef CRM_MAIL_REFERENCE_H
#define CRM_MAIL_REFERENCE_H

#include "crm_buf.h"

/* Add TEXT, LEN bytes of HTML without tags, to OUT with those character references
 * that libxml2 reads as browsers do. ATTRIBUTE: it is the value of one, where a name
 * needs its semicolon. */
void crm_mail_html_references(crm_buf_t *out, const char *text,
                              apr_size_t len, int attribute);

#endif /* CRM_MAIL_REFERENCE_H */
