/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.h: whether settings go together */
#ifndef CRMAPID_CHECK_H
#define CRMAPID_CHECK_H

#include "crmapid.h"

/* Return NULL or what CONFIG lacks, whatever its single settings say, in
 * POOL: that of a relay that is used, of the generator, of the database. */
const char *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool);

#endif /* CRMAPID_CHECK_H */
