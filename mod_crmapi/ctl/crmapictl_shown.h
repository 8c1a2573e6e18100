/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_shown.h: telling the database which fields events have */
#ifndef CRMAPICTL_SHOWN_H
#define CRMAPICTL_SHOWN_H

#include "crmapictl.h"

/* Set crmapi.shown of CTL's session to the fields of the resources that events
 * show. schema/repeat/0001-events.sql makes functions of it. */
crm_error_t *ctl_shown_tell(ctl_t *ctl);

#endif /* CRMAPICTL_SHOWN_H */
