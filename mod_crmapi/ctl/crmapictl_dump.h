/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_dump.h: writing all of a workspace as a stream (contract 14.2) */
#ifndef CRMAPICTL_DUMP_H
#define CRMAPICTL_DUMP_H

#include "crmapictl.h"

/* A dump is text in UTF-8, of lines that end with a line feed: {"dump":"crmapi
 * workspace","format":2,"schema":19,"workspace":"0190..."}
 * {"table":"workspace","columns":["name", "slug", ...],"rows":1} One
 * GmbH<tab>one<tab>... {"table":"event","columns":["id", ...],"rows":0} ...
 * {"sha256":"..."} After the line of a table come its rows, in the text format
 * of COPY, without the id of the workspace. Tables and rows have the order of
 * crmapi.dump_table(). The last line has the SHA-256 of all bytes before it. A
 * dump has no time and no place of origin: the same rows always give the same
 * bytes.
 *
 * A dump of changes has the member "since" in its first line: the mark of the dump
 * that they follow. After the line of a table, which has no "rows", come the primary
 * keys of all its rows, a line CTL_DUMP_PART, the rows that may have changed, and a
 * line CTL_DUMP_PART, which no row looks like. */
#define CTL_DUMP_NAME "crmapi workspace"
#define CTL_DUMP_FORMAT 2
#define CTL_DUMP_PART "\\.\n"

/* A table of a dump: a row of crmapi.dump_table(), whose comment describes its
 * columns. */
typedef struct ctl_table_t {
    const char *name;
    const char *columns;        /* JSON: ["id", "name", ...] */
    const char *copy_out;
    const char *copy_in;
    int shared;
} ctl_table_t;

/* Set what the transaction of CTL's connection needs to read and write rows of
 * the workspace ID in the format of a dump. */
crm_error_t *ctl_dump_settings(ctl_t *ctl, const char *id);

/* Do the same, and set *TABLES_P to the *COUNT_P tables of a dump. */
crm_error_t *ctl_dump_begin(const ctl_table_t **tables_p, int *count_p,
                            ctl_t *ctl, const char *id);

/* Find out which of the tables NAMES (const char *) have rows of the workspace ID, in
 * one statement: most have none, and need no COPY. Ask ctl_dump_has() about
 * *FILLED_P. */
crm_error_t *ctl_dump_filled(PGresult **filled_p, ctl_t *ctl, const char *id,
                             const apr_array_header_t *names);

/* Return whether the table I may have rows, as FILLED says. */
int ctl_dump_has(const PGresult *filled, int i);

/* Return the names of the COUNT tables at TABLES, in POOL. */
apr_array_header_t *ctl_dump_names(const ctl_table_t *tables, int count,
                                   apr_pool_t *pool);

/* The command workspace dump. The manual page describes it. */
crm_error_t *ctl_workspace_dump(ctl_t *ctl);

#endif /* CRMAPICTL_DUMP_H */
