/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi.h: the module record, and headers of httpd */
#ifndef MOD_CRMAPI_H
#define MOD_CRMAPI_H

#include <stddef.h>

#include "httpd.h"
#include "http_config.h"
#include "http_log.h"

/* APR's bucket rings use APR_OFFSETOF, which dereferences a null pointer.
 * Compilers and sanitizers warn about that. */
#undef APR_OFFSETOF
#define APR_OFFSETOF(type, field) ((long)offsetof(type, field))

extern module AP_MODULE_DECLARE_DATA crmapi_module;

#endif /* MOD_CRMAPI_H */
