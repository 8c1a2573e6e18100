/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi.h: the OpenAPI document, built from the resources' tables */
#ifndef CRM_OPENAPI_H
#define CRM_OPENAPI_H

#include "crm_call.h"
#include "crm_resource.h"

/* JSON that build/embed has converted to C. */
typedef struct crm_json_part_t {
    const unsigned char *text;
    apr_size_t len;
} crm_json_part_t;

/* rest/openapi.json: the constant part of every document. */
extern const crm_json_part_t crm_openapi_frame;

/* Build the document in POOL from the frame, PART (the domain's part: info, and
 * schemas of bodies that no table describes), the registry, the routes of
 * ROUTER, and EVENTS, ended by one without a type. Objects in requests are
 * closed and objects in responses are open (contract 13.6). Errors:
 * CRM_E_INTERNAL if a part is not valid JSON. */
crm_error_t *crm_openapi_init(const crm_router_t *router,
                              const crm_json_part_t *part,
                              const crm_event_type_t *events, apr_pool_t *pool);

/* A crm_route_t.serve: respond to CALL with the document. */
crm_error_t *crm_openapi_serve(crm_call_t *call);

/* Add the document to BUF, for REQUEST: its server is the scheme and host that
 * REQUEST was sent to (contract 20.7), or "/" without a valid Host. */
void crm_openapi_write(crm_buf_t *buf, const crm_request_t *request);

/* Return the document (OpenAPI 3.1, JSON), whose server is "/", and set *LEN_P to
 * its length. */
const char *crm_openapi_document(apr_size_t *len_p);

#endif /* CRM_OPENAPI_H */
