/* SPDX-License-Identifier: Apache-2.0 */
/* crm_params_unknown.h: parameters that an operation does not have (contract 7.1) */
#ifndef CRM_PARAMS_UNKNOWN_H
#define CRM_PARAMS_UNKNOWN_H

#include "apr_tables.h"

#include "crm_call.h"
#include "crm_type.h"

/* Add to INPUT the rule that the parameter NAME breaks, which CALL's operation does not
 * have, or tell CALL's client that it is ignored. IGNORED (of const char *) has the
 * names that the client has been told. */
void crm_params_unknown(crm_input_t *input, crm_call_t *call,
                        apr_array_header_t *ignored, const char *name);

#endif /* CRM_PARAMS_UNKNOWN_H */
