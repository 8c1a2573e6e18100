/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp_io.c: buffered input and output of an LMTP session, with
 * timeouts */
#include "crmapid_lmtp_io.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "apr_atomic.h"

#include "crm_time.h"

/* How long a mail that has begun may take once the daemon ends. */
#define GRACE apr_time_from_sec(10)

/* How many times the timeout a client has for a whole mail: one that sends a byte now
 * and then would have a thread of the few for ever. */
#define TIMEOUTS_OF_MAIL 10

/* How long clients may let us wait in all, for a mail and for each MiB of it, while
 * others wait for a thread: a few that are silent would hold up all mail. */
#define PATIENCE apr_time_from_sec(1)

/* How often it is looked whether others wait, in milliseconds. */
#define LOOK_TIME 250

void crmd_lmtp_begin(crmd_lmtp_io_t *io)
{
    io->until = crm_time_monotonic() + TIMEOUTS_OF_MAIL * io->timeout;
    io->waited = 0;
    io->heard = 0;
}

int crmd_lmtp_crowded(const crmd_lmtp_io_t *io)
{
    struct pollfd poller = {io->door->listener, POLLIN, 0};

    return !apr_atomic_read32(&io->door->free) && poll(&poller, 1, 0) > 0;
}

/* Return whether the client has let others wait for too long: SINCE is when we began to
 * wait for it. */
static int is_unwanted(const crmd_lmtp_io_t *io, apr_time_t since)
{
    return io->waited + crm_time_monotonic() - since
           > PATIENCE * (apr_interval_time_t)(1 + io->heard / 1048576)
           && crmd_lmtp_crowded(io);
}

/* Return the milliseconds to wait for the client, since SINCE; 0: do not wait any
 * longer. When the daemon ends, it waits only for a mail that has begun. */
static int time_to_wait(crmd_lmtp_io_t *io, apr_time_t since)
{
    apr_time_t now = crm_time_monotonic();
    apr_interval_time_t left = io->until - now;

    if (io->stopping && !io->deadline) {
        io->deadline = now + GRACE;
    }
    if (io->stopping && io->deadline - now < left) {
        left = io->deadline - now;
    }
    if (left > io->timeout - (now - since)) {
        left = io->timeout - (now - since);
    }
    return left <= 0 || (io->stopping && !io->busy) ? 0
           : left > LOOK_TIME * 1000 ? LOOK_TIME
           : (int)apr_time_as_msec(left + 999);
}

/* Wait for EVENTS at the client, if there are none yet. Return 0 after the timeout, if
 * the daemon ends, or if others have waited for too long. */
static int await(crmd_lmtp_io_t *io, short events)
{
    apr_time_t since = crm_time_monotonic();
    struct pollfd pollers[2] = {
        {io->socket, events, 0}, {io->door->stop, POLLIN, 0}
    };
    int ready, wait;

    while (!is_unwanted(io, since) && (wait = time_to_wait(io, since))) {
        ready = poll(pollers, io->stopping ? 1 : 2, wait);
        if (ready < 0 && errno != EINTR) {
            return 0;
        }
        if (ready > 0 && pollers[0].revents) {
            io->waited += crm_time_monotonic() - since;
            return 1;
        }
        io->stopping |= ready > 0 && pollers[1].revents;
    }
    return 0;
}

void crmd_lmtp_flush(crmd_lmtp_io_t *io)
{
    apr_size_t sent = 0;

    while (sent < io->out.len && !io->over) {
        ssize_t n = send(io->socket, io->out.data + sent,
                         io->out.len - sent, MSG_NOSIGNAL);

        if (n >= 0) {
            sent += (apr_size_t)n;
        }
        else if (errno == EAGAIN) {
            io->over = !await(io, POLLOUT);
        }
        else if (errno != EINTR) {
            io->over = 1;
        }
    }
    io->out.len = 0;
}

void crmd_lmtp_say(crmd_lmtp_io_t *io, const char *line)
{
    crm_buf_puts(&io->out, line);
    crm_buf_puts(&io->out, "\r\n");
}

void crmd_lmtp_leave(crmd_lmtp_io_t *io, const char *why)
{
    crmd_lmtp_say(io, why);
    crmd_lmtp_flush(io);
    io->over = 1;
}

/* Send the output, then wait for input and read it into IN, which has no unread
 * bytes. */
static void fill(crmd_lmtp_io_t *io)
{
    ssize_t got = -1;

    crmd_lmtp_flush(io);
    io->start = io->end = 0;
    while (!io->over && got < 0) {
        if (!await(io, POLLIN)) {
            crmd_lmtp_leave(io, io->stopping
                            ? "421 4.3.2 The daemon is stopping"
                            : "421 4.4.2 Timeout");
            break;
        }
        got = recv(io->socket, io->in, sizeof(io->in), 0);
        io->over = !got || (got < 0 && errno != EINTR && errno != EAGAIN);
    }
    io->end = got > 0 ? (apr_size_t)got : 0;
    io->heard += io->end;
}

int crmd_lmtp_byte(crmd_lmtp_io_t *io)
{
    if (io->start == io->end) {
        fill(io);
    }
    return io->start < io->end
           ? (unsigned char)io->in[io->start++] : -1;
}

int crmd_lmtp_line(crmd_lmtp_io_t *io, char *line)
{
    apr_size_t len = 0;
    int c, good = 1;

    while ((c = crmd_lmtp_byte(io)) >= 0 && c != '\n') {
        if (len + 1 >= CRMD_LMTP_LINE || !c) {
            good = 0;
        }
        else {
            line[len++] = (char)c;
        }
    }
    if (len && line[len - 1] == '\r') {
        len--;
    }
    line[len] = '\0';
    return good;
}

int crmd_lmtp_ending(const crmd_lmtp_io_t *io)
{
    struct pollfd poller = {io->door->stop, POLLIN, 0};

    return poll(&poller, 1, 0) > 0;
}
