/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_sample.h: the sample configuration and the manual page's settings */
#ifndef CRMAPID_SAMPLE_H
#define CRMAPID_SAMPLE_H

#include "crm_buf.h"

/* Add to BUF a sample configuration file with all settings, their defaults and
 * their meaning. */
void crmd_sample_write(crm_buf_t *buf);

/* Add to BUF the settings as troff, for the manual page. */
void crmd_sample_write_manual(crm_buf_t *buf);

#endif /* CRMAPID_SAMPLE_H */
