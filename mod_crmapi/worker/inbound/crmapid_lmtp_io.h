/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp_io.h: the bytes of a session of LMTP, in time */
#ifndef CRMAPID_LMTP_IO_H
#define CRMAPID_LMTP_IO_H

#include "apr_time.h"

#include "crm_buf.h"

/* The most bytes of a command, with its NUL (RFC 5321, 4.5.3.1, with room for
 * what extensions add). */
#define CRMD_LMTP_LINE 2048

/* A client. Those who make one fill the first members, and OUT with
 * crm_buf_init(); all else is 0. */
typedef struct crmd_lmtp_io_t {
    int socket;                 /* does not block */
    int stop;                   /* can be read from when the daemon ends */
    apr_interval_time_t timeout; /* how long the client may be silent */
    crm_buf_t out;              /* what is to be said */
    int busy;                   /* a mail has begun: it may be finished when
                                   the daemon ends */
    int over;                   /* the client has gone, or has been left */
    apr_time_t deadline;        /* 0, or when a session that should end does */
    char in[8192];
    apr_size_t start, end;      /* what of IN was not looked at */
} crmd_lmtp_io_t;

/* Add LINE to what is to be said. It is sent when the client is waited for:
 * answers to what came at once go at once (RFC 2920). */
void crmd_lmtp_say(crmd_lmtp_io_t *io, const char *line);

/* Send what is to be said. */
void crmd_lmtp_flush(crmd_lmtp_io_t *io);

/* Say WHY, and end the session. */
void crmd_lmtp_leave(crmd_lmtp_io_t *io, const char *why);

/* Return the next byte, -1 when the session is over. */
int crmd_lmtp_byte(crmd_lmtp_io_t *io);

/* Read a line without its end into LINE, of CRMD_LMTP_LINE bytes. Return 0 if
 * it is too long, or has a NUL. */
int crmd_lmtp_line(crmd_lmtp_io_t *io, char *line);

/* Return whether the daemon ends. */
int crmd_lmtp_ending(const crmd_lmtp_io_t *io);

#endif /* CRMAPID_LMTP_IO_H */
