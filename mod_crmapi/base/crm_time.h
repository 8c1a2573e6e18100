/* SPDX-License-Identifier: Apache-2.0 */
/* crm_time.h: parsing and formatting times (contract 7.5, 9.1) */
#ifndef CRM_TIME_H
#define CRM_TIME_H

#include "apr_time.h"

/* The size of a buffer for a formatted time, with the NUL. */
#define CRM_TIME_SIZE 32

/* Set *TIME_P (microseconds since 1970 UTC) from the LEN bytes at TEXT: an RFC
 * 3339 time, or a date (00:00 UTC). Seconds and offset (UTC) may be missing, an
 * offset may be +0100 or +01, and ',' may stand before the fraction. Years 0001
 * to 9999. Second 60 is the first second of the next minute. Digits beyond
 * microseconds are ignored. Return NULL, or the rule that is broken. */
const char *crm_time_parse(apr_time_t *time_p, const char *text,
                           apr_size_t len);

/* The same for a query parameter, where the '+' of an offset may have been
 * decoded to a space. */
const char *crm_time_parse_query(apr_time_t *time_p, const char *text,
                                 apr_size_t len);

/* Write TIME to OUT (CRM_TIME_SIZE bytes) as "2026-11-21T01:59:27.552Z" and a
 * NUL. Microseconds are cut off. */
void crm_time_format_ms(char *out, apr_time_t time);

/* The same with microseconds. */
void crm_time_format_us(char *out, apr_time_t time);

/* Write PG_TEXT, PostgreSQL's ISO format of a timestamptz in UTC, to OUT in the
 * format of crm_time_format_ms(). Return 0 if PG_TEXT has another format. */
int crm_time_from_pg(char *out, const char *pg_text);

/* Return the time in microseconds of a clock that is never set
 * (CLOCK_MONOTONIC). */
apr_int64_t crm_time_monotonic(void);

#endif /* CRM_TIME_H */
