/* SPDX-License-Identifier: Apache-2.0 */
/* crm_phone.h: which phone numbers are the same (contract 17.1) */
#ifndef CRM_PHONE_H
#define CRM_PHONE_H

#include "apr_pools.h"

/* The results equal those of the database's functions of the same names:
 * crmapi.phone_plain(), phone_e164() and phone_key(). TEXT is valid UTF-8 in any
 * notation. */

/* Return TEXT in Normalization Form KC, without characters of category Cf, with
 * the digits of all scripts (of the Basic Multilingual Plane) as ASCII digits and
 * Unicode's hyphens and dashes as '-'; in RESULT_POOL or TEXT itself. */
const char *crm_phone_plain(const char *text, apr_pool_t *result_pool);

/* Return the E.164 form of TEXT, "+14155550123", in RESULT_POOL; NULL if TEXT is
 * not plainly one number with its country code. A message or a call goes to
 * nothing else. */
const char *crm_phone_e164(const char *text, apr_pool_t *result_pool);

/* Return what the number TEXT is matched by: its E.164 form, else TEXT itself,
 * since only an equal text is the same number. */
const char *crm_phone_key(const char *text, apr_pool_t *result_pool);

#endif /* CRM_PHONE_H */
