/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.h: whether the settings are consistent */
#ifndef CRMAPID_CHECK_H
#define CRMAPID_CHECK_H

#include "crm_error.h"

#include "crmapid_config.h"

/* Check that CONFIG has what the database, the selected relays and the selected
 * generator need together. Errors: CRM_E_BAD_REQUEST, in POOL, names the
 * setting. */
crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool);

#endif /* CRMAPID_CHECK_H */
