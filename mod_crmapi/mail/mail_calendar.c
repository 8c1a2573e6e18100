/* SPDX-License-Identifier: Apache-2.0 */
/* mail_calendar.c: invitations and their answers as text (RFC 5545, RFC 5546) */
#include "mail_calendar.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_buf.h"

/* What is read of an event, in the order in which it is shown. */
enum {SUMMARY, ANSWER, START, LOCATION, COMMENT, DESCRIPTION, PROPERTIES};

static const char *const names[PROPERTIES] = {
    "SUMMARY", "ATTENDEE", "DTSTART", "LOCATION", "COMMENT", "DESCRIPTION"
};

/* A property: NAME;PARAMETERS:VALUE, a line. */
typedef struct property_t {
    char *name, *parameters, *value;
} property_t;

/* ---- lines --------------------------------------------------------------- */

const char *crm_mail_unfold(apr_size_t *len_p, const char *bytes, apr_size_t len,
                            apr_pool_t *pool)
{
    char *made = apr_palloc(pool, len + 1), *out = made;
    const char *end = bytes + len;

    while (bytes < end) {
        const char *next = bytes + (*bytes == '\r' && bytes + 1 < end);

        if (*next == '\n' && next + 1 < end && (next[1] == ' ' || next[1] == '\t')) {
            bytes = next + 2;
        }
        else {
            *out++ = *bytes++;
        }
    }
    *out = '\0';
    *len_p = (apr_size_t)(out - made);
    return made;
}

/* Set PROPERTY to LINE, which is changed. Return 0 if it is none. */
static int split(property_t *property, char *line)
{
    int quoted = 0;
    char *c = line;

    for (; *c && (*c != ':' || quoted); c++) {
        quoted ^= *c == '"';
    }
    if (!*c) {
        return 0;
    }
    *c = '\0';
    property->value = c + 1;
    property->name = line;
    property->parameters = line + strcspn(line, ";");
    if (*property->parameters) {
        *property->parameters++ = '\0';
    }
    return 1;
}

/* ---- values -------------------------------------------------------------- */

/* Return the text VALUE without its escapes (RFC 5545, 3.3.11). It is changed. */
static const char *plain(char *value)
{
    char *out = value;

    for (const char *c = value; *c; c++) {
        if (*c == '\\' && c[1]) {
            c++;
            *out++ = *c == 'n' || *c == 'N' ? '\n' : *c;
        }
        else {
            *out++ = *c;
        }
    }
    *out = '\0';
    return value;
}

/* Return the value of the parameter NAME, "TZID=", in PARAMETERS, in POOL; "" if it is
 * missing. */
static const char *parameter(const char *parameters, const char *name,
                             apr_pool_t *pool)
{
    const char *at = strcasestr(parameters, name);

    if (!at || (at > parameters && at[-1] != ';')) {
        return "";
    }
    at += strlen(name);
    at += *at == '"';
    return apr_pstrmemdup(pool, at, strcspn(at, "\";"));
}

/* Return the time of PROPERTY, 20261105T100000Z, as people write it, in POOL. */
static const char *time_of(const property_t *property, apr_pool_t *pool)
{
    const char *value = property->value;
    const char *zone = parameter(property->parameters, "TZID=", pool);
    size_t digits = strspn(value, "0123456789");

    if (digits != 8) {
        return value;
    }
    if (value[8] != 'T' || strspn(value + 9, "0123456789") < 4) {
        return apr_psprintf(pool, "%.4s-%.2s-%.2s", value, value + 4,
                            value + 6);
    }
    zone = strchr(value, 'Z') ? "UTC" : zone;
    return apr_psprintf(pool, "%.4s-%.2s-%.2s %.2s:%.2s%s%s", value, value + 4,
                        value + 6, value + 9, value + 11, *zone ? " " : "",
                        zone);
}

/* Return the value of PROPERTY, of KIND, as it is shown, in POOL. */
static const char *shown(const property_t *property, int kind,
                         apr_pool_t *pool)
{
    char *answer;

    switch (kind) {
    case START:
        return time_of(property, pool);
    case ANSWER:
        answer = apr_pstrdup(pool, parameter(property->parameters, "PARTSTAT=",
                                             pool));
        for (char *c = answer; *c; c++) {
            *c = (char)apr_tolower(*c);
        }
        return answer;
    default:
        return plain(property->value);
    }
}

/* ---- the calendar -------------------------------------------------------- */

static int is(const char *text, const char *word)
{
    return !strcasecmp(text, word);
}

/* Return what METHOD (RFC 5546) says of an event; NULL if it is planned. Of a reply
 * the attendee does. */
static const char *state_of(const char *method)
{
    return is(method, "CANCEL") ? "cancelled"
           : is(method, "COUNTER") ? "proposed" : NULL;
}

/* Read the first event in LINES into VALUES. Return 0 if they are no calendar. */
static int read_event(const char **values, char *lines, apr_pool_t *pool)
{
    int inside = 0, found = 0, reply = 0;
    property_t one;
    char *state = NULL, *line = apr_strtok(lines, "\r\n", &state);

    for (; line; line = apr_strtok(NULL, "\r\n", &state)) {
        if (!split(&one, line)) {
            continue;
        }
        if (is(one.name, "BEGIN")) {
            found |= is(one.value, "VCALENDAR");
            inside += inside || is(one.value, "VEVENT")
                      || is(one.value, "VTODO");
        }
        else if (is(one.name, "END") && inside && !--inside) {
            break;
        }
        if (is(one.name, "METHOD")) {
            reply = is(one.value, "REPLY");
            values[ANSWER] = state_of(one.value);
        }
        if (inside == 1 && is(one.name, "STATUS") && is(one.value, "CANCELLED")) {
            values[ANSWER] = "cancelled";
        }
        for (int i = 0; inside == 1 && i < PROPERTIES; i++) {
            if (is(one.name, names[i]) && !values[i]
                && (i != ANSWER || reply)) {
                values[i] = shown(&one, i, pool);
            }
        }
    }
    return found;
}

const char *crm_mail_calendar(const char *text, apr_pool_t *pool)
{
    const char *values[PROPERTIES] = {NULL};
    crm_buf_t buf;

    if (!read_event(values, apr_pstrdup(pool, text), pool)) {
        return text;
    }
    crm_buf_init(&buf, 256, pool);
    for (int i = 0; i < PROPERTIES; i++) {
        if (values[i] && *values[i]) {
            crm_buf_printf(&buf, "%s%s\n", i >= COMMENT && buf.len ? "\n" : "",
                           values[i]);
        }
    }
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
