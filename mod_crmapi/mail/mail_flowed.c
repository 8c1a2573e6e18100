/* SPDX-License-Identifier: Apache-2.0 */
/* mail_flowed.c: joining the lines of format=flowed text (RFC 3676) */
#include "mail_flowed.h"

#include <string.h>

#include "crm_buf.h"

/* Return the number of quote marks at the beginning of *LINE_P, *LEN_P bytes,
 * and skip them and a space that was added by space-stuffing. */
static apr_size_t quotes(const char **line_p, apr_size_t *len_p)
{
    const char *line = *line_p;
    apr_size_t depth = 0;

    while (depth < *len_p && line[depth] == '>') {
        depth++;
    }
    *line_p += depth;
    *len_p -= depth;
    if (*len_p && **line_p == ' ') {
        ++*line_p;
        --*len_p;
    }
    return depth;
}

static void begin(crm_buf_t *buf, apr_size_t depth)
{
    for (apr_size_t i = 0; i < depth; i++) {
        crm_buf_putc(buf, '>');
    }
    if (depth) {
        crm_buf_putc(buf, ' ');
    }
}

const char *crm_mail_unflow(const char *text, int delsp, apr_pool_t *pool)
{
    apr_size_t last = 0;
    int flows = 0;              /* the previous line continues in this one */
    crm_buf_t buf;

    crm_buf_init(&buf, strlen(text) + 64, pool);
    while (*text) {
        apr_size_t full = strcspn(text, "\n"), len = full, depth;
        const char *line = text;
        int signature, soft;

        depth = quotes(&line, &len);
        signature = len == 3 && !memcmp(line, "-- ", 3);
        if (flows && (depth != last || signature)) {
            crm_buf_putc(&buf, '\n');
            flows = 0;
        }
        if (!flows) {
            begin(&buf, depth);
        }
        soft = len && line[len - 1] == ' ' && !signature;
        crm_buf_add(&buf, line, len - (soft && delsp));
        flows = soft;
        last = depth;
        text += full;
        text += *text == '\n';
        if (!flows) {
            crm_buf_putc(&buf, '\n');
        }
    }
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
