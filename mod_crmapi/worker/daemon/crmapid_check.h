/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.h: whether settings and database can be used */
#ifndef CRMAPID_CHECK_H
#define CRMAPID_CHECK_H

#include "crm_error.h"

#include "crmapid_config.h"

/* Check that CONFIG has all settings that the database, the selected relays and
 * the selected generator need. Errors: CRM_E_BAD_REQUEST, in POOL, names the
 * setting. */
crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool);

/* Check that the database of CONFIG answers and has this version's schema.
 * Hold it if it was restored (crmd_mark_check()). Errors: CRM_E_UNAVAILABLE (may
 * be temporary), CRM_E_CONFLICT (another schema version), CRM_E_BAD_REQUEST
 * (run_dir cannot be used). */
crm_error_t *crmd_daemon_check(const crmd_config_t *config,
                               apr_pool_t *scratch_pool);

#endif /* CRMAPID_CHECK_H */
