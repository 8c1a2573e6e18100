/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_log.h: logs, read by cursor only (contract 13.4) */
#ifndef CRM_OP_LOG_H
#define CRM_OP_LOG_H

#include "crm_call.h"

/* The value of the parameter "cursor" that names the end of a log. */
#define CRM_LOG_END "end"

/* A crm_handler_t: serve a list that only grows, at its end, in the order of its ids. A
 * row is shown only when no running transaction can add a row before it any more
 * (crmapi.event_end()). The last page has a next_cursor, too. The operation's FEED is
 * the table that says where the workspace's log begins. */
crm_error_t *crm_op_log(crm_call_t *call);

#endif /* CRM_OP_LOG_H */
