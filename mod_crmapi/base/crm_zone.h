/* SPDX-License-Identifier: Apache-2.0 */
/* crm_zone.h: names of time zones */
#ifndef CRM_ZONE_H
#define CRM_ZONE_H

/* Return whether NAME is a time zone of the IANA time zone database, such as
 * Europe/Berlin, Etc/GMT+5 or UTC. Case matters. ICU knows them; PostgreSQL has a
 * copy of its own, which may be older or newer. */
int crm_zone_known(const char *name);

/* Its rule, for errors. */
#define CRM_ZONE_RULE "must be the name of a time zone such as Europe/Berlin"

#endif /* CRM_ZONE_H */
