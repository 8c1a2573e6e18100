/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_operation.h: operations with parameters, bodies and responses */
#ifndef CRM_OPENAPI_OPERATION_H
#define CRM_OPENAPI_OPERATION_H

#include "crm_endpoint.h"

/* Add to BUF, the members of a path, the operation of ENDPOINT. */
void crm_openapi_operation(crm_buf_t *buf, const crm_endpoint_t *endpoint);

/* Add HEAD, which works wherever GET does (contract 5.1), for ENDPOINT's operation
 * if that is a GET. Its id is that of the GET after "head". */
void crm_openapi_head(crm_buf_t *buf, const crm_endpoint_t *endpoint);

#endif /* CRM_OPENAPI_OPERATION_H */
