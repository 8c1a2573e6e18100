/* SPDX-License-Identifier: Apache-2.0 */
/* mail_detect.h: the charset of text that does not say it (contract 18.1) */
#ifndef CRM_MAIL_DETECT_H
#define CRM_MAIL_DETECT_H

#include "mail_label.h"

/* Return the charset that the LEN BYTES, which are not valid UTF-8, are most
 * likely in; Windows-1252 if nothing speaks for another one. */
crm_mail_charset_t crm_mail_detect(const char *bytes, apr_size_t len);

/* Return the charset of the LEN BYTES, said to be in CHARSET: that of Windows beside it
 * if they have marks or letters where ISO 8859 has control characters. */
crm_mail_charset_t crm_mail_windows(crm_mail_charset_t charset, const char *bytes,
                                    apr_size_t len);

#endif /* CRM_MAIL_DETECT_H */
