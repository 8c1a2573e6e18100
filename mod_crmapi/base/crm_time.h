/* SPDX-License-Identifier: Apache-2.0 */
/* crm_time.h: times as clients and the database write them (contract 7.5, 9.1) */
#ifndef CRM_TIME_H
#define CRM_TIME_H

#include "apr_time.h"

/* Room for any text made here, with its NUL. */
#define CRM_TIME_SIZE 32

/* Set *TIME_P (microseconds since 1970 UTC) from TEXT, LEN bytes: RFC 3339
 * with an optional offset (then UTC), or a date alone (00:00 UTC). Years 0001
 * to 9999; :60 is the next second; digits beyond microseconds are cut off.
 * Return NULL or the rule that it breaks. */
const char *crm_time_parse(apr_time_t *time_p, const char *text,
                           apr_size_t len);

/* The same for a query's value, in which the '+' of an offset may have become
 * a space. */
const char *crm_time_parse_query(apr_time_t *time_p, const char *text,
                                 apr_size_t len);

/* Write TIME as "2026-11-21T01:59:27.552Z" and a NUL to OUT (CRM_TIME_SIZE
 * bytes); what is below a millisecond is cut off. */
void crm_time_format_ms(char *out, apr_time_t time);

/* The same with six digits. */
void crm_time_format_us(char *out, apr_time_t time);

/* Write PG_TEXT, PostgreSQL's ISO text of a timestamptz in UTC, in the form of
 * crm_time_format_ms() to OUT. Return 0 if it is not of that form. */
int crm_time_from_pg(char *out, const char *pg_text);

#endif /* CRM_TIME_H */
