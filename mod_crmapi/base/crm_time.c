/* SPDX-License-Identifier: Apache-2.0 */
/* crm_time.c: parsing and formatting times */
#include "crm_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char rule[] =
    "must be an ISO 8601 time or a date, for example 2026-11-21T01:59:27Z";

/* The text that is not read yet. */
typedef struct reader_t {
    const char *at;
    const char *end;
} reader_t;

/* Read COUNT digits into *NUMBER_P. Return 0 if there are fewer. */
static int read_digits(int *number_p, reader_t *reader, int count)
{
    *number_p = 0;
    if (reader->end - reader->at < count) {
        return 0;
    }
    while (count--) {
        if (*reader->at < '0' || *reader->at > '9') {
            return 0;
        }
        *number_p = *number_p * 10 + (*reader->at++ - '0');
    }
    return 1;
}

/* Skip the next character if it is in SET. Return whether it was. */
static int skip(reader_t *reader, const char *set)
{
    if (reader->at == reader->end || !*reader->at
        || !strchr(set, *reader->at)) {
        return 0;
    }
    reader->at++;
    return 1;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

/* Return the days from 1970-01-01 to a date of the proleptic Gregorian
 * calendar. */
static apr_int64_t days_from_date(int year, int month, int day)
{
    apr_int64_t y = year - (month <= 2);
    apr_int64_t era = (y >= 0 ? y : y - 399) / 400;
    apr_int64_t of_era = y - era * 400;
    apr_int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5
                          + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year
           - 719468;
}

/* The inverse of days_from_date(). */
static void date_from_days(int *year_p, int *month_p, int *day_p,
                           apr_int64_t days)
{
    apr_int64_t z = days + 719468;
    apr_int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    apr_int64_t of_era = z - era * 146097;
    apr_int64_t y = (of_era - of_era / 1460 + of_era / 36524
                     - of_era / 146096) / 365;
    apr_int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    apr_int64_t m = (5 * of_year + 2) / 153;

    *day_p = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month_p = (int)(m < 10 ? m + 3 : m - 9);
    *year_p = (int)(y + era * 400 + (*month_p <= 2));
}

/* Read a date into *DAYS_P, days since 1970-01-01. Return 0 if it is
 * invalid. */
static int read_date(apr_int64_t *days_p, reader_t *reader)
{
    int year, month, day;

    if (!read_digits(&year, reader, 4) || !skip(reader, "-")
        || !read_digits(&month, reader, 2) || !skip(reader, "-")
        || !read_digits(&day, reader, 2)) {
        return 0;
    }
    if (year < 1 || month < 1 || month > 12 || day < 1
        || day > days_in_month(year, month)) {
        return 0;
    }
    *days_p = days_from_date(year, month, day);
    return 1;
}

/* Read one or more digits of a fraction into *MICROS_P. Return 0 if there are
 * none. */
static int read_fraction(apr_int64_t *micros_p, reader_t *reader)
{
    apr_int64_t unit = 100000;
    const char *start = reader->at;

    *micros_p = 0;
    while (reader->at < reader->end && *reader->at >= '0'
           && *reader->at <= '9') {
        *micros_p += (*reader->at++ - '0') * unit;
        unit /= 10;
    }
    return reader->at > start;
}

/* Read optional seconds, with ':' before them, into *SECOND_P and *MICROS_P.
 * Return 0 if they are invalid. */
static int read_seconds(int *second_p, apr_int64_t *micros_p,
                        reader_t *reader)
{
    *second_p = 0;
    *micros_p = 0;
    if (!skip(reader, ":")) {
        return 1;
    }
    return read_digits(second_p, reader, 2) && *second_p <= 60
           && (!skip(reader, ".,") || read_fraction(micros_p, reader));
}

/* Read a time of day into *MICROS_P. Return 0 if it is invalid. */
static int read_clock(apr_int64_t *micros_p, reader_t *reader)
{
    apr_int64_t fraction;
    int hour, minute, second;

    if (!read_digits(&hour, reader, 2) || !skip(reader, ":")
        || !read_digits(&minute, reader, 2) || hour > 23 || minute > 59
        || !read_seconds(&second, &fraction, reader)) {
        return 0;
    }
    *micros_p = ((hour * 60 + minute) * 60 + second) * APR_USEC_PER_SEC
                + (second == 60 ? 0 : fraction);
    return 1;
}

/* Read an optional offset (Z, +01:00, +0100, +01) into *MINUTES_P. PLUS: the
 * characters that are accepted as '+'. Return 0 if it is invalid. */
static int read_offset(int *minutes_p, reader_t *reader, const char *plus)
{
    int hour, minute = 0, sign = 1;

    *minutes_p = 0;
    if (reader->at == reader->end || skip(reader, "Zz")) {
        return 1;
    }
    if (skip(reader, "-")) {
        sign = -1;
    }
    else if (!skip(reader, plus)) {
        return 0;
    }
    if (!read_digits(&hour, reader, 2)
        || ((skip(reader, ":") || reader->at < reader->end)
            && !read_digits(&minute, reader, 2))
        || hour > 23 || minute > 59) {
        return 0;
    }
    *minutes_p = sign * (hour * 60 + minute);
    return 1;
}

static const char *parse(apr_time_t *time_p, const char *text,
                         apr_size_t len, const char *plus)
{
    reader_t reader = {text, text + len};
    apr_int64_t days, micros = 0, when;
    int minutes = 0;

    if (!read_date(&days, &reader)) {
        return rule;
    }
    if (reader.at < reader.end
        && (!skip(&reader, "Tt ") || !read_clock(&micros, &reader)
            || !read_offset(&minutes, &reader, plus))) {
        return rule;
    }
    when = days * 86400 * APR_USEC_PER_SEC + micros
           - minutes * 60 * APR_USEC_PER_SEC;
    if (reader.at != reader.end
        || when < days_from_date(1, 1, 1) * 86400 * APR_USEC_PER_SEC
        || when >= days_from_date(10000, 1, 1) * 86400 * APR_USEC_PER_SEC) {
        return rule;
    }
    *time_p = when;
    return NULL;
}

const char *crm_time_parse(apr_time_t *time_p, const char *text,
                           apr_size_t len)
{
    return parse(time_p, text, len, "+");
}

const char *crm_time_parse_query(apr_time_t *time_p, const char *text,
                                 apr_size_t len)
{
    return parse(time_p, text, len, "+ ");
}

/* Write TIME with a fraction of WIDTH digits, in units of UNIT microseconds. */
static void format(char *out, apr_time_t time, apr_int64_t unit, int width)
{
    apr_int64_t seconds = time / APR_USEC_PER_SEC;
    apr_int64_t micros = time % APR_USEC_PER_SEC;
    apr_int64_t days, of_day;
    int year, month, day;

    if (micros < 0) {
        micros += APR_USEC_PER_SEC;
        seconds--;
    }
    days = seconds / 86400;
    of_day = seconds % 86400;
    if (of_day < 0) {
        of_day += 86400;
        days--;
    }
    date_from_days(&year, &month, &day, days);
    snprintf(out, CRM_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%0*uZ",
             (unsigned int)year % 10000, (unsigned int)month % 100,
             (unsigned int)day % 100, (unsigned int)(of_day / 3600) % 100,
             (unsigned int)(of_day / 60 % 60), (unsigned int)(of_day % 60),
             width, (unsigned int)(micros / unit));
}

void crm_time_format_ms(char *out, apr_time_t time)
{
    format(out, time, 1000, 3);
}

void crm_time_format_us(char *out, apr_time_t time)
{
    format(out, time, 1, 6);
}

static inline int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Return whether the eight characters at TEXT have a digit wherever SHAPE has
 * '0'. They are compared all at once, and those that are not digits only
 * roughly. */
static inline int has_shape(const char *text, const char *shape)
{
    apr_uint64_t is, should;

    memcpy(&is, text, 8);
    memcpy(&should, shape, 8);
    /* '0' XOR a digit is 0 to 9, and the sum with 0x76 then has no high bit */
    is ^= should;
    return !(((is + APR_UINT64_C(0x7676767676767676)) | is)
             & APR_UINT64_C(0x8080808080808080));
}

/* Return whether TEXT begins with "2026-11-21 01:59:27". */
static inline int begins_with_time(const char *text)
{
    return strnlen(text, 19) == 19 && has_shape(text, "0000-00-")
           && has_shape(text + 8, "00 00:00")
           && has_shape(text + 11, "00:00:00")
           && text[4] == '-' && text[7] == '-' && text[10] == ' '
           && text[13] == ':' && text[16] == ':';
}

int crm_time_from_pg(char *out, const char *pg_text)
{
    apr_size_t len = 19, digits = 0;

    /* "2026-11-21 01:59:27" [ "." 1 to 6 digits ] "+00" */
    if (!begins_with_time(pg_text)) {
        return 0;
    }
    if (pg_text[len] == '.') {
        for (len++; digits < 6 && is_digit(pg_text[len]); len++) {
            digits++;
        }
        if (!digits) {
            return 0;
        }
    }
    if (strcmp(pg_text + len, "+00")) {
        return 0;
    }
    memcpy(out, pg_text, 19);
    out[10] = 'T';
    memcpy(out + 19, ".000Z", 6);
    for (apr_size_t i = 0; i < digits && i < 3; i++) {
        out[20 + i] = pg_text[20 + i];
    }
    return 1;
}

apr_int64_t crm_time_monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return apr_time_from_sec((apr_int64_t)now.tv_sec) + now.tv_nsec / 1000;
}
