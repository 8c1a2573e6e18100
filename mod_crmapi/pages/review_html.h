/* SPDX-License-Identifier: Apache-2.0 */
/* review_html.h: a review as HTML */
#ifndef CRM_REVIEW_HTML_H
#define CRM_REVIEW_HTML_H

#include "review_load.h"

/* Make PAGE's response the page of REVIEW, with STATUS. */
void crm_review_show(crm_page_t *page, const crm_review_t *review,
                     int status);

#endif /* CRM_REVIEW_HTML_H */
