/* SPDX-License-Identifier: Apache-2.0 */
/* crm_value.h: a value that somebody else wrote, in a text of ours */
#ifndef CRM_VALUE_H
#define CRM_VALUE_H

#include "apr_pools.h"

/* Return TEXT (UTF-8) as one line in POOL, "" if it shows nothing: each run of
 * controls, line and paragraph breaks and blanks of Unicode is one space, none at
 * the ends; marks that are not seen, or change the direction, are left out. */
const char *crm_value_line(const char *text, apr_pool_t *pool);

/* The same, and nothing in it is a link for programs that make links of text: a
 * space follows the dot of a domain, the colon of a scheme, and the first of two
 * slashes. So "https://a.example" is "https: / /a. example". */
const char *crm_value_show(const char *text, apr_pool_t *pool);

#endif /* CRM_VALUE_H */
