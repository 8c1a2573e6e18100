/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_lines.h: reading a file or stdin, line by line, also if it is not
 * text */
#ifndef CRMAPICTL_LINES_H
#define CRMAPICTL_LINES_H

#include "crm_buf.h"
#include "crmapictl.h"

/* Set *FD_P to a descriptor of the file PATH, and *NAME_P to what the file is called
 * in messages. NULL or "-" is stdin. ctl_close() closes it. Errors: ctl_fault(). */
crm_error_t *ctl_open(int *fd_p, const char **name_p, ctl_t *ctl,
                      const char *path);

/* Close FD, which ctl_open() opened. */
void ctl_close(int fd);

/* Lines are read in blocks of this many bytes. */
#define CTL_LINES_BLOCK 65536

/* No line of a table's rows has more MiB: PostgreSQL has no such value. */
#define CTL_LINES_MAX 1024

/* The lines of a file. It needs as much memory as the longest of them. */
typedef struct ctl_lines_t {
    int fd;
    apr_size_t max;             /* bytes of a line */
    const char *too_long;       /* the error that a line has more */
    crm_buf_t line;             /* the current line, with its line feed, which
                                   the last line may lack; empty: the file has
                                   ended */
    apr_int64_t number;         /* its number, from 1 */
    apr_size_t pos;             /* of BLOCK, up to LEN */
    apr_size_t len;
    char block[CTL_LINES_BLOCK];
} ctl_lines_t;

/* Initialise LINES to read from the descriptor FD lines of at most MAX MiB. Its
 * memory is freed with POOL. */
void ctl_lines_init(ctl_lines_t *lines, int fd, int max, apr_pool_t *pool);

/* Read the next line of LINES. Return NULL, or the error: the file cannot be
 * read, or the line is too long. The rest of a line that is too long is not
 * read. */
const char *ctl_lines_next(ctl_lines_t *lines);

/* Return whether the current line of LINES ends with a line feed. */
int ctl_lines_whole(const ctl_lines_t *lines);

#endif /* CRMAPICTL_LINES_H */
