/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_review.h: the mail that asks for a review */
#ifndef CRMAPID_REVIEW_H
#define CRMAPID_REVIEW_H

#include "crmapid_job.h"

/* Handler of "sequence.review": mail an admin that an enrollment waits for a
 * review. */
crm_error_t *crmd_review_mail(crmd_work_t *work);

#endif /* CRMAPID_REVIEW_H */
