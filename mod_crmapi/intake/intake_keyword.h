/* SPDX-License-Identifier: Apache-2.0 */
/* intake_keyword.h: texts that ask for no more texts, or for some again (contract
 * 17.4) */
#ifndef CRM_INTAKE_KEYWORD_H
#define CRM_INTAKE_KEYWORD_H

#include "crm_intake.h"

/* Return what TEXT, a complete message, requests (contract 17.4): -1 to
 * unsubscribe, 1 to subscribe again, 2 help, 0 none of these. */
int crm_intake_keyword(const char *text, apr_pool_t *scratch_pool);

/* Let EVENT, a text from a phone, do what EFFECT of crm_intake_keyword() says
 * (contract 17.4). */
void crm_intake_keyword_apply(crm_intake_event_t *event, int effect);

#endif /* CRM_INTAKE_KEYWORD_H */
