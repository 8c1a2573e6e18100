/* SPDX-License-Identifier: Apache-2.0 */
/* review.h: the review of a sequence before it is sent */
#ifndef CRM_REVIEW_H
#define CRM_REVIEW_H

#include "crm_pages.h"

/* Serve the page: fill its response. */
crm_error_t *crm_page_review(crm_page_t *page);

#endif /* CRM_REVIEW_H */
