/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp_io.h: buffered input and output of an LMTP session, with
 * timeouts */
#ifndef CRMAPID_LMTP_IO_H
#define CRMAPID_LMTP_IO_H

#include "apr_time.h"

#include "crm_buf.h"

/* The longest command in bytes, with its NUL (RFC 5321, 4.5.3.1, plus room for
 * parameters of extensions). */
#define CRMD_LMTP_LINE 2048

/* What sessions look at beside their clients. */
typedef struct crmd_lmtp_door_t {
    int stop;                   /* readable when the daemon ends */
    int listener;               /* readable when a client waits for a thread */
    apr_uint32_t free;          /* threads that wait for a client; atomic */
} crmd_lmtp_door_t;

/* A client. The creator sets the first four members (OUT by crm_buf_init()) and
 * the others to 0, then calls crmd_lmtp_begin(). */
typedef struct crmd_lmtp_io_t {
    int socket;                 /* non-blocking */
    crmd_lmtp_door_t *door;
    apr_interval_time_t timeout; /* how long the client may be silent */
    crm_buf_t out;              /* replies that are not sent yet */
    int busy;                   /* a mail has begun: it may be finished when
                                   the daemon ends */
    int over;                   /* the session has ended */
    int stopping;               /* the daemon ends */
    apr_time_t deadline;        /* end of the session then, or 0 */
    apr_time_t until;           /* when a whole mail must be there */
    apr_interval_time_t waited; /* for the client, since crmd_lmtp_begin() */
    apr_size_t heard;           /* bytes since then */
    char in[8192];
    apr_size_t start, end;      /* unread bytes of IN */
} crmd_lmtp_io_t;

/* Begin to wait for a mail. */
void crmd_lmtp_begin(crmd_lmtp_io_t *io);

/* Add the reply LINE to the output. It is sent before the next wait for input:
 * replies to pipelined commands are sent together (RFC 2920). */
void crmd_lmtp_say(crmd_lmtp_io_t *io, const char *line);

/* Send the output. */
void crmd_lmtp_flush(crmd_lmtp_io_t *io);

/* Send the reply WHY and end the session. */
void crmd_lmtp_leave(crmd_lmtp_io_t *io, const char *why);

/* Return the next byte, -1 if the session is over. */
int crmd_lmtp_byte(crmd_lmtp_io_t *io);

/* Read a line without its end into LINE, of CRMD_LMTP_LINE bytes. Return 0 if
 * it is too long or contains a NUL. */
int crmd_lmtp_line(crmd_lmtp_io_t *io, char *line);

/* Return whether others wait for a thread, and none is free. */
int crmd_lmtp_crowded(const crmd_lmtp_io_t *io);

/* Return whether the daemon is ending. */
int crmd_lmtp_ending(const crmd_lmtp_io_t *io);

#endif /* CRMAPID_LMTP_IO_H */
