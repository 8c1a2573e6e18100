/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_channel.h: the type of a conversation's channel */
#ifndef CRM_TYPE_CHANNEL_H
#define CRM_TYPE_CHANNEL_H

#include "crm_type.h"

/* A channel: stored and returned as a number from 1 to 5, accepted as that
 * number or as a name (contract 7.6). */
extern const crm_type_t crm_type_channel;

#endif /* CRM_TYPE_CHANNEL_H */
