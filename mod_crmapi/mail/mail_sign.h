/* SPDX-License-Identifier: Apache-2.0 */
/* mail_sign.h: signs that a font has in place of letters */
#ifndef CRM_MAIL_SIGN_H
#define CRM_MAIL_SIGN_H

#include "crm_buf.h"

/* Return whether the list of fonts FAMILY (CSS Fonts 4, 2.1), in any case, begins
 * with Wingdings. */
int crm_mail_is_signs(const char *family);

/* Add TEXT, LEN bytes of UTF-8 in the font Wingdings, to BUF, with Unicode's
 * characters for the signs that people write. What is none of them stays. */
void crm_mail_signs(crm_buf_t *buf, const char *text, apr_size_t len);

#endif /* CRM_MAIL_SIGN_H */
