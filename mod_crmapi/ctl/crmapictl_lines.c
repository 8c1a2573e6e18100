/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_lines.c: reading a file or stdin, line by line, also if it is not
 * text */
#include "crmapictl_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"

crm_error_t *ctl_open(int *fd_p, const char **name_p, ctl_t *ctl,
                      const char *path)
{
    int is_file = path && strcmp(path, "-");

    *fd_p = is_file ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    *name_p = is_file ? path : "stdin";
    return *fd_p >= 0 ? NULL
           : ctl_fault(ctl, "cannot read %s: %s", path, strerror(errno));
}

void ctl_close(int fd)
{
    if (fd != STDIN_FILENO) {
        close(fd);
    }
}

void ctl_lines_init(ctl_lines_t *lines, int fd, int max, apr_pool_t *pool)
{
    lines->fd = fd;
    lines->max = (apr_size_t)max << 20;
    lines->too_long = apr_psprintf(pool, "is longer than %d MiB", max);
    lines->number = 0;
    lines->pos = lines->len = 0;
    crm_buf_init(&lines->line, CTL_LINES_BLOCK, pool);
}

int ctl_lines_whole(const ctl_lines_t *lines)
{
    return lines->line.len && lines->line.data[lines->line.len - 1] == '\n';
}

const char *ctl_lines_next(ctl_lines_t *lines)
{
    lines->line.len = 0;
    lines->number++;
    while (!ctl_lines_whole(lines)) {
        const char *start = lines->block + lines->pos, *end;
        apr_size_t part = lines->len - lines->pos;

        if (!part) {
            ssize_t n = read(lines->fd, lines->block, sizeof(lines->block));

            if (!n || (n < 0 && errno != EINTR)) {
                return n ? strerror(errno) : NULL;
            }
            lines->pos = 0;
            lines->len = n < 0 ? 0 : (apr_size_t)n;
            continue;
        }
        end = memchr(start, '\n', part);
        if (end) {
            part = (apr_size_t)(end - start) + 1;
        }
        if (lines->line.len + part > lines->max) {
            return lines->too_long;
        }
        crm_buf_add(&lines->line, start, part);
        lines->pos += part;
    }
    return NULL;
}
