/* SPDX-License-Identifier: Apache-2.0 */
/* crm_http_script.h: an HTTP server that says what a test has written down */
#ifndef CRM_HTTP_SCRIPT_H
#define CRM_HTTP_SCRIPT_H

#include "crm_check.h"
#include "crm_server.h"

/* What the server does after, or instead of, what it says. */
typedef enum then_t { FINISH, HANG, FLOOD, UNREAD } then_t;

typedef struct script_t {
    const char *answer;
    const char *next;           /* the answers behind the first one, or NULL */
    then_t then;
    char request[65536];        /* the last one */
} script_t;

static script_t script;

static inline void serve(int fd, void *baton)
{
    script_t *s = baton;

    if (s->then == UNREAD) {
        return;
    }
    server_read_http(fd, s->request, sizeof(s->request));
    server_puts(fd, s->answer);
    s->answer = s->next ? s->next : s->answer;
    if (s->then == HANG) {
        server_hang(fd);
    }
    else if (s->then == FLOOD) {
        server_flood(fd, "and so on and on and on and on and on and on\r\n");
    }
}

/* An answer of STATUS with BODY. */
#define SAYS(STATUS, BODY) "HTTP/1.1 " STATUS " x\r\nConnection: close\r\n" \
    "\r\n" BODY

#endif /* CRM_HTTP_SCRIPT_H */
