/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_output.c: results as text or JSON */
#include "crmapictl_output.h"

#include <stdio.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_db.h"
#include "crm_text.h"
#include "crm_time.h"

const char *ctl_clean(const char *text, apr_pool_t *pool)
{
    char *clean = apr_pstrdup(pool, text);
    unsigned code;

    for (char *p = clean; *p; p++) {
        size_t len = (unsigned char)*p < ' ' ? 1 : crm_text_steers(&code, p);

        memset(p, ' ', len);
        p += len ? len - 1 : 0;
    }
    return clean;
}

int ctl_write(FILE *out, const char *text, apr_size_t len)
{
    const char *end = text + len, *rest = text;
    unsigned code;

    for (const char *p = text; p < end; p++) {
        size_t one = crm_text_steers(&code, p);

        if (one) {
            fwrite(rest, 1, (size_t)(p - rest), out);
            fprintf(out, "\\u%04x", code);
            p += one - 1;
            rest = p + 1;
        }
    }
    fwrite(rest, 1, (size_t)(end - rest), out);
    return !ferror(out);
}

/* Add the value at ROW, COLUMN of RESULT, which has FORM, to BUF as JSON. */
static void add_json(crm_buf_t *buf, const PGresult *result, int row,
                     int column, char form)
{
    const char *value = crm_db_value(result, row, column);
    char time[CRM_TIME_SIZE];

    if (!value) {
        crm_buf_puts(buf, "null");
    }
    else if (form == 'n' || form == 'a') {
        crm_buf_puts(buf, value);
    }
    else if (form == 't' && crm_time_from_pg(time, value)) {
        crm_buf_json_text(buf, time);
    }
    else {
        crm_buf_json_text(buf, value);
    }
}

static void add_object(crm_buf_t *buf, const PGresult *result, int row,
                       const ctl_column_t *columns)
{
    for (int i = 0; columns[i].name; i++) {
        crm_buf_printf(buf, "%c\"%s\":", i ? ',' : '{', columns[i].name);
        add_json(buf, result, row, i, columns[i].form);
    }
    crm_buf_putc(buf, '}');
}

/* Add the strings of LIST, a JSON array, to BUF, separated by commas. */
static void add_words(crm_buf_t *buf, const char *list)
{
    for (; *list; list++) {
        if (!strchr("[]\" ", *list)) {
            crm_buf_putc(buf, *list);
        }
    }
}

/* Add the value at ROW, COLUMN of RESULT, which has FORM, to BUF as text. */
static void add_text(crm_buf_t *buf, const PGresult *result, int row,
                     int column, char form)
{
    const char *value = crm_db_value(result, row, column);
    char time[CRM_TIME_SIZE];

    if (!value) {
        crm_buf_putc(buf, '-');
    }
    else if (form == 'a') {
        add_words(buf, value);
    }
    else if (form == 't' && crm_time_from_pg(time, value)) {
        crm_buf_puts(buf, time);
    }
    else {
        crm_buf_puts(buf, ctl_clean(value, buf->pool));
    }
}

static void add_lines(crm_buf_t *buf, const PGresult *result,
                      const ctl_column_t *columns)
{
    for (int i = 0; columns[i].name; i++) {
        crm_buf_printf(buf, "%s%s", i ? "\t" : "", columns[i].name);
    }
    crm_buf_putc(buf, '\n');
    for (int row = 0; row < PQntuples(result); row++) {
        for (int i = 0; columns[i].name; i++) {
            crm_buf_puts(buf, i ? "\t" : "");
            add_text(buf, result, row, i, columns[i].form);
        }
        crm_buf_putc(buf, '\n');
    }
}

static void add_objects(crm_buf_t *buf, const PGresult *result,
                        const ctl_column_t *columns)
{
    crm_buf_putc(buf, '[');
    for (int row = 0; row < PQntuples(result); row++) {
        crm_buf_puts(buf, row ? ",\n" : "");
        add_object(buf, result, row, columns);
    }
    crm_buf_puts(buf, "]\n");
}

void ctl_print(ctl_t *ctl, const PGresult *result,
               const ctl_column_t *columns, int single)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 4096, ctl->pool);
    if (!single) {
        (ctl->options[CTL_JSON] ? add_objects : add_lines)(&buf, result,
                                                           columns);
    }
    else if (ctl->options[CTL_JSON]) {
        add_object(&buf, result, 0, columns);
        crm_buf_putc(&buf, '\n');
    }
    else {
        for (int i = 0; columns[i].name; i++) {
            crm_buf_printf(&buf, "%s\t", columns[i].name);
            add_text(&buf, result, 0, i, columns[i].form);
            crm_buf_putc(&buf, '\n');
        }
    }
    /* main() checks for write errors. */
    ctl_write(stdout, buf.data, buf.len);
}

void ctl_print_one(ctl_t *ctl, const char *alone, const PGresult *result,
                   const ctl_column_t *columns)
{
    if (ctl->options[CTL_JSON]) {
        ctl_print(ctl, result, columns, 1);
    }
    else if (alone) {
        puts(alone);
    }
}

void ctl_warn(ctl_t *ctl, const PGresult *result)
{
    for (int i = 0; i < PQntuples(result); i++) {
        fprintf(stderr, "crmapictl: warning: %s\n",
                ctl_clean(PQgetvalue(result, i, 0), ctl->pool));
    }
}
