/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_retry.c: the retry schedule of webhooks, and the part of an
 * answer that is kept (contract 12.3) */
#include "crmapid_webhook_retry.h"

#include <string.h>

#include "apr_general.h"

#include "crm_array.h"
#include "crm_text.h"

#define DAY 86400

/* Seconds before the next attempt, by the number of failed attempts. */
static const int delays[] = {
    5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600,
    DAY
};
enum { DELAYS = CRM_NELTS(delays) };

apr_interval_time_t crmd_webhook_delay(int made,
                                       apr_interval_time_t retry_after)
{
    apr_interval_time_t delay;
    apr_uint32_t random = 0;

    if (made > DELAYS) {
        return -1;
    }
    delay = apr_time_from_sec(delays[made - 1]);
    if (retry_after > apr_time_from_sec(DAY)) {
        retry_after = apr_time_from_sec(DAY);
    }
    if (delay < retry_after) {
        delay = retry_after;
    }
    apr_generate_random_bytes((unsigned char *)&random, sizeof(random));
    return delay + delay / 10 * (random % 1001) / 1000;
}

/* Return whether the LEN (1 to 3) bytes at TEXT can be the beginning of a
 * longer UTF-8 character. */
static int begins_character(const char *text, apr_size_t len)
{
    unsigned char first = (unsigned char)*text;
    apr_size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;

    if (first < 0xc2 || first > 0xf4 || len >= whole) {
        return 0;
    }
    for (apr_size_t i = 1; i < len; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return 1;
}

const char *crmd_webhook_text(const char *text, apr_size_t len,
                              apr_pool_t *result_pool)
{
    char *clean = apr_palloc(result_pool, len + 1);
    char *out = clean;

    while (len) {
        apr_size_t n;

        crm_text_next(&n, text, len);
        if (!n && begins_character(text, len)) {
            break;
        }
        if (n <= 1) {
            unsigned char c = (unsigned char)*text;

            *out++ = !n || c == 0x7f || (c < ' ' && c != '\n' && c != '\t')
                     ? '?' : *text;
            n = 1;
        }
        else {
            memcpy(out, text, n);
            out += n;
        }
        text += n;
        len -= n;
    }
    *out = '\0';
    return clean;
}
