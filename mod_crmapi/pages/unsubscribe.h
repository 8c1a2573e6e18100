/* SPDX-License-Identifier: Apache-2.0 */
/* unsubscribe.h: one-click unsubscription (RFC 8058) */
#ifndef CRM_UNSUBSCRIBE_H
#define CRM_UNSUBSCRIBE_H

#include "crm_pages.h"

/* Serve the page: fill its response. */
crm_error_t *crm_page_unsubscribe(crm_page_t *page);

#endif /* CRM_UNSUBSCRIBE_H */
