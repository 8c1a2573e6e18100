/* SPDX-License-Identifier: Apache-2.0 */
/* crm_docs.h: the OpenAPI document for people and for language models */
#ifndef CRM_DOCS_H
#define CRM_DOCS_H

#include "crm_call.h"

/* Make the page and the text of crm_openapi_document(), in POOL. Call this once,
 * after crm_openapi_init(). Errors: CRM_E_INTERNAL if it is not valid JSON. */
crm_error_t *crm_docs_init(apr_pool_t *pool);

/* A crm_route_t.serve: respond to CALL with the page (contract 20.7). It has no
 * script, and its policy allows no request. */
crm_error_t *crm_docs_serve(crm_call_t *call);

/* A crm_route_t.serve: respond to CALL with the list of operations as llms.txt
 * (llmstxt.org): Markdown with links to the page. */
crm_error_t *crm_docs_serve_llms(crm_call_t *call);

#endif /* CRM_DOCS_H */
