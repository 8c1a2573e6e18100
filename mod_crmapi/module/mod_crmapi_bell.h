/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_bell.h: what happens in workspaces, as their databases tell it */
#ifndef MOD_CRMAPI_BELL_H
#define MOD_CRMAPI_BELL_H

#include "mod_crmapi_pool.h"

/* A workspace that somebody of this process waits for. */
typedef struct crmapi_watch_t crmapi_watch_t;

/* Let RING be called when a count has changed. The connections to databases, each
 * with a thread of its own, are opened when somebody waits. They end with
 * PCHILD. */
apr_status_t crmapi_bells_create(void (*ring)(void), apr_pool_t *pchild);

/* Return a watch of WORKSPACE_ID in the database of POOL, for
 * crmapi_bell_leave(). NULL: there is no memory, or no thread. */
crmapi_watch_t *crmapi_bell_enter(crmapi_pool_t *pool,
                                  const char *workspace_id);

void crmapi_bell_leave(crmapi_watch_t *watch);

/* Return the line of all watches that counts messages of VISITOR's chats, or
 * everything (NULL). Visitors may share a line. */
int crmapi_bell_line(const char *visitor);

/* Return the number of times that something of LINE has happened in WATCH's
 * workspace. Read it before a query: if it is another one later, query again. */
apr_uint32_t crmapi_bell_count(const crmapi_watch_t *watch, int line);

#endif /* MOD_CRMAPI_BELL_H */
