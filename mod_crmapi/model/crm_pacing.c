/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pacing.c: the sending windows and delays of a template */
#include "crm_pacing.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_json.h"
#include "crm_pointer.h"
#include "crm_zone.h"

#define DAY 86400
#define DAYS_MAX 365
#define DAYS_BETWEEN 2

static const char *const day_names[] = {
    "mon", "tue", "wed", "thu", "fri", "sat", "sun"
};

/* Set *MINUTES_P to VALUE, a time from "00:00" to "24:00". Return 0 if it is
 * not one. */
static int read_time(int *minutes_p, json_object *value)
{
    const char *text = crm_json_text(value);
    int hours, minutes;

    if (!text || strlen(text) != 5 || strspn(text, "0123456789") != 2
        || text[2] != ':' || strspn(text + 3, "0123456789") != 2) {
        return 0;
    }
    hours = (text[0] - '0') * 10 + text[1] - '0';
    minutes = (text[3] - '0') * 10 + text[4] - '0';
    *minutes_p = hours * 60 + minutes;
    return minutes < 60 && *minutes_p <= 24 * 60;
}

/* Add the days of VALUE (NULL: all) to BUF, as numbers of ISO 8601. Return 0 if
 * it is not an array of days, or empty; *WHERE_P, its place, is then the
 * item's. */
static int write_days(crm_buf_t *buf, const char **where_p,
                      json_object *value, apr_pool_t *pool)
{
    unsigned days = value ? 0 : 127;
    size_t count = crm_json_count(value);
    const char *separator = "";

    for (size_t i = 0; i < count; i++) {
        const char *name = crm_json_text(json_object_array_get_idx(value, i));
        int day = 0;

        while (day < 7 && (!name || strcmp(name, day_names[day]))) {
            day++;
        }
        if (day == 7) {
            *where_p = crm_pointer_item(*where_p, (int)i, pool);
            return 0;
        }
        days |= 1u << day;
    }
    for (int day = 0; day < 7; day++) {
        if (days >> day & 1) {
            crm_buf_printf(buf, "%s%d", separator, day + 1);
            separator = ",";
        }
    }
    return days != 0;
}

/* Add the members of WINDOW to BUF. Return NULL, or the rule that *WHERE_P
 * breaks. */
static const char *write_window(crm_buf_t *buf, const char **where_p,
                                json_object *window, apr_pool_t *pool)
{
    json_object *days = NULL;
    int from = 0, to = 24 * 60;

    *where_p = "/window";
    if (!json_object_is_type(window, json_type_object)) {
        return "must be an object";
    }
    json_object_object_foreach(window, name, value) {
        *where_p = crm_pointer_member("/window", name, pool);
        if (!strcmp(name, "days")) {
            days = value;
            if (!value) {
                return "must be an array";
            }
        }
        else if (strcmp(name, "from") && strcmp(name, "to")) {
            return "is not a known member";
        }
        else if (!read_time(*name == 'f' ? &from : &to, value)) {
            return "must be a time such as 09:00";
        }
    }
    if (from >= to) {
        *where_p = "/window/to";
        return "must be later than from";
    }
    crm_buf_printf(buf, ",\"from\":\"%02d:%02d\",\"to\":\"%02d:%02d\","
                   "\"days\":[", from / 60, from % 60, to / 60, to % 60);
    *where_p = "/window/days";
    if (!write_days(buf, where_p, days, pool)) {
        return "must name at least one of mon, tue, wed, thu, fri, sat, sun";
    }
    crm_buf_putc(buf, ']');
    return NULL;
}

/* Set *SECONDS_P to VALUE, a number of days. Return 0 if it is not one. */
static int read_days(apr_int64_t *seconds_p, json_object *value)
{
    double days;

    if (!json_object_is_type(value, json_type_int)
        && !json_object_is_type(value, json_type_double)) {
        return 0;
    }
    days = json_object_get_double(value);
    if (!(days >= 0 && days <= DAYS_MAX)) {
        return 0;
    }
    *seconds_p = (apr_int64_t)(days * DAY + 0.5);
    return 1;
}

/* What a pacing says. */
typedef struct pacing_t {
    json_object *window;        /* or NULL */
    const char *time_zone;
    apr_int64_t between;
} pacing_t;

/* Read the member NAME with VALUE into PACING. Return NULL, or the rule that it
 * breaks. */
static const char *read_member(pacing_t *pacing, const char *name,
                               json_object *value)
{
    const char *text;

    if (!strcmp(name, "window")) {
        pacing->window = value;
        return NULL;
    }
    if (!strcmp(name, "days_between_steps")) {
        return read_days(&pacing->between, value) ? NULL
               : "must be a number from 0 to 365";
    }
    if (strcmp(name, "time_zone")) {
        return "is not a known member";
    }
    text = crm_json_text(value);
    if (!text || !crm_zone_known(text)) {
        return CRM_ZONE_RULE;
    }
    pacing->time_zone = text;
    return NULL;
}

const char *crm_pacing_parse(const char **pacing_p, apr_int64_t *between_p,
                             const char **where_p, json_object *object,
                             const char *time_zone, apr_pool_t *pool)
{
    pacing_t pacing = {NULL, time_zone, DAYS_BETWEEN * DAY};
    const char *rule;
    crm_buf_t buf;

    *between_p = pacing.between;
    *where_p = "";
    if (object && !json_object_is_type(object, json_type_object)) {
        return "must be an object";
    }
    if (object) {
        json_object_object_foreach(object, name, value) {
            rule = read_member(&pacing, name, value);
            if (rule) {
                *where_p = crm_pointer_member("", name, pool);
                return rule;
            }
        }
    }
    *between_p = pacing.between;
    crm_buf_init(&buf, 256, pool);
    crm_buf_puts(&buf, "{\"time_zone\":");
    crm_buf_json_text(&buf, pacing.time_zone);
    if (pacing.window
        && (rule = write_window(&buf, where_p, pacing.window, pool))) {
        return rule;
    }
    crm_buf_puts(&buf, "}");
    crm_buf_putc(&buf, '\0');
    *pacing_p = buf.data;
    return NULL;
}

/* Read a number with its unit at *TEXT_P, and move *TEXT_P behind it. Return
 * the seconds, -1 if it is malformed or too large. */
static apr_int64_t read_part(const char **text_p)
{
    static const struct {
        char unit;
        apr_int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', DAY}};
    size_t digits = strspn(*text_p, "0123456789");
    apr_int64_t number = digits && digits < 10 ? apr_atoi64(*text_p) : -1;

    for (size_t i = 0; number >= 0 && i < 4; i++) {
        if ((*text_p)[digits] == units[i].unit) {
            *text_p += digits + 1;
            return number * units[i].seconds;
        }
    }
    return -1;
}

const char *crm_delay_parse(apr_int64_t *seconds_p, json_object *delay,
                            apr_pool_t *pool)
{
    static const char rule[] = "must be a time such as 45m, 36h or 1d12h, or a"
                               " number of days, at most 365 days";
    const char *text;

    (void)pool;
    if (read_days(seconds_p, delay)) {
        return NULL;
    }
    text = crm_json_text(delay);
    if (!text) {
        return rule;
    }
    *seconds_p = 0;
    do {
        apr_int64_t part = read_part(&text);

        if (part < 0 || (*seconds_p += part) > (apr_int64_t)DAYS_MAX * DAY) {
            return rule;
        }
    } while (*text);
    return NULL;
}
