/* SPDX-License-Identifier: Apache-2.0 */
/* crm_dial.h: connecting to PostgreSQL, unless nobody wants that any more */
#ifndef CRM_DIAL_H
#define CRM_DIAL_H

#include <libpq-fe.h>

/* Connect as PQconnectdbParams() does, which tries each host for its connect_timeout:
 * KEYWORDS and VALUES end with a NULL, and "dbname" may be a connection string.
 * UNWANTED (NULL: not asked) is called with BATON every 50 milliseconds. When it
 * returns nonzero, return NULL, and leave the rest to a thread, which closes what it
 * gets. NULL, too, if there is no memory. */
PGconn *crm_dial(const char *const *keywords, const char *const *values,
                 int (*unwanted)(void *baton), void *baton);

#endif /* CRM_DIAL_H */
