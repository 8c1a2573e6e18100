/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_time.c: times of bodies and queries, and the database's */
/* libFuzzer: -max_len=64 */
#include "fuzz.h"

#include "crm_time.h"

/* What is written is read as the same instant. */
static void write_and_read(apr_time_t time)
{
    char out[CRM_TIME_SIZE], pg[CRM_TIME_SIZE + 3], ms[CRM_TIME_SIZE];
    apr_time_t again = time + 1;

    crm_time_format_us(out, time);
    must(strlen(out) == 27);
    must(!crm_time_parse(&again, out, strlen(out)) && again == time);
    must(!crm_time_parse_query(&again, out, strlen(out)) && again == time);
    /* as PostgreSQL would write it */
    strcpy(pg, out);
    pg[10] = ' ';
    strcpy(pg + 26, "+00");
    crm_time_format_ms(ms, time);
    must(strlen(ms) == 24);
    must(crm_time_from_pg(out, pg) && !strcmp(out, ms));
}

/* What is taken from the database has the API's form. */
static void from_database(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    char out[CRM_TIME_SIZE];

    if (!crm_time_from_pg(out, text)) {
        return;
    }
    must(strlen(out) == sizeof(form) - 1);
    for (int i = 0; form[i]; i++) {
        must(form[i] == '0' ? out[i] >= '0' && out[i] <= '9'
             : out[i] == form[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    apr_time_t time = 0, in_query = 0;
    char *copy = fuzz_text(data, size);

    if (!crm_time_parse(&time, text, size)) {
        must(!crm_time_parse_query(&in_query, text, size)
             && in_query == time);
        write_and_read(time);
    }
    else if (!crm_time_parse_query(&in_query, text, size)) {
        write_and_read(in_query);
    }
    from_database(copy);
    free(copy);
    return 0;
}
