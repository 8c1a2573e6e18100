/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_output.h: printing results */
#ifndef CRMAPICTL_OUTPUT_H
#define CRMAPICTL_OUTPUT_H

#include <stdio.h>

#include "crmapictl.h"

/* A column of a result. Tables of columns end with one without a name. */
typedef struct ctl_column_t {
    const char *name;
    char form;                  /* 's' text, 'n' number, 't' timestamptz, 'a'
                                   text[], as JSON */
} ctl_column_t;

/* Print RESULT, whose first columns are COLUMNS. With --json: an array of
 * objects, or the first row as an object if SINGLE. Otherwise: a heading and a
 * line with tabs for each row, or a line for each column of the first row if
 * SINGLE. */
void ctl_print(ctl_t *ctl, const PGresult *result,
               const ctl_column_t *columns, int single);

/* Print the result of a command that creates or changes something: with --json
 * the first row of RESULT, otherwise the line ALONE (NULL: nothing). */
void ctl_print_one(ctl_t *ctl, const char *alone, const PGresult *result,
                   const ctl_column_t *columns);

/* Print the first column of RESULT to stderr, a warning for each row. */
void ctl_warn(ctl_t *ctl, const PGresult *result);

/* Return TEXT in POOL with control characters, and those of direction, replaced by
 * spaces, safe for a terminal. */
const char *ctl_clean(const char *text, apr_pool_t *pool);

/* Write LEN bytes of a result at TEXT, in UTF-8, to OUT. Characters in the strings of
 * JSON that steer a terminal, or the direction of text, are escaped: strangers wrote
 * them. Return whether OUT has no error. */
int ctl_write(FILE *out, const char *text, apr_size_t len);

#endif /* CRMAPICTL_OUTPUT_H */
