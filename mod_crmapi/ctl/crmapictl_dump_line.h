/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_dump_line.h: the lines of a dump that are not rows */
#ifndef CRMAPICTL_DUMP_LINE_H
#define CRMAPICTL_DUMP_LINE_H

#include "crm_buf.h"
#include "crm_uuid.h"
#include "crmapictl_dump.h"

/* Each function reads LINE, which ends with a line feed. It returns NULL, or
 * the rule that LINE breaks, in POOL. */

/* Read the first line. Set WORKSPACE to the id in it, and *SINCE_P to the mark that
 * a dump of changes has, in POOL; else to "". */
const char *ctl_dump_read_head(char workspace[CRM_UUID_LEN + 1],
                               const char **since_p, const crm_buf_t *line,
                               apr_pool_t *pool);

/* Read the line of a table, and set *ROWS_P to the number of its rows; NULL: it has
 * none, as in a dump of changes. Its name and columns must be those of TABLE. */
const char *ctl_dump_read_table(apr_int64_t *rows_p, const crm_buf_t *line,
                                const ctl_table_t *table, apr_pool_t *pool);

/* Read the last line, which must have the checksum SUM. */
const char *ctl_dump_read_end(const crm_buf_t *line, const char *sum,
                              apr_pool_t *pool);

#endif /* CRMAPICTL_DUMP_LINE_H */
