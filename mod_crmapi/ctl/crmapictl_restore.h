/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_restore.h: making a workspace from a dump (contract 14.2) */
#ifndef CRMAPICTL_RESTORE_H
#define CRMAPICTL_RESTORE_H

#include "crm_digest.h"
#include "crm_uuid.h"
#include "crmapictl_dump.h"
#include "crmapictl_lines.h"

/* Bytes of rows that are sent at once. */
#define CTL_RESTORE_BYTES 65536

/* A restore that is being done. */
typedef struct ctl_restore_t {
    ctl_t *ctl;
    const char *path;           /* for messages */
    ctl_lines_t lines;
    crm_digest_t *whole;        /* of the lines that were read */
    crm_digest_t *part;         /* of the rows of a table */
    char sum[CRM_DIGEST_SIZE];  /* of the whole dump, when it was read */
    char from[CRM_UUID_LEN + 1];    /* the workspace of the dump */
    const char *since;          /* its mark, if it has changes; else "" */
    char id[CRM_UUID_LEN + 1];  /* the new one's id */
    const char *slug;           /* NULL: that of the dump */
    const ctl_table_t *tables;
    int count;
    char (*sums)[CRM_DIGEST_SIZE];  /* of the rows of each table */
    apr_int64_t *rows;          /* numbers of rows of each table */
    apr_int64_t left_out;
    crm_buf_t buf;              /* rows that are not sent yet */
} ctl_restore_t;

/* Return the error that the line NUMBER of the dump breaks the rule that is made
 * from FORMAT. */
crm_error_t *ctl_refuse(ctl_restore_t *restore, apr_int64_t number,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Read the next line, which is not the last one. */
crm_error_t *ctl_restore_next(ctl_restore_t *restore);

/* Read the last line, and set SUM. */
crm_error_t *ctl_restore_end(ctl_restore_t *restore);

/* Send the rows in the buffer. */
crm_error_t *ctl_restore_send(ctl_restore_t *restore);

/* End the transaction, when all rows are written. */
crm_error_t *ctl_restore_done(ctl_restore_t *restore);

/* The command workspace restore. The manual page describes it. */
crm_error_t *ctl_workspace_restore(ctl_t *ctl);

#endif /* CRMAPICTL_RESTORE_H */
