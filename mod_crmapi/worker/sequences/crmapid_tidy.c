/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_tidy.c: steps as language models write them, whatever the schema is */
#include "crmapid_tidy.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_steps.h"
#include "crm_text.h"

/* ---- delays -------------------------------------------------------------- */

/* Return how many of the unit *LETTER_P, "s", "m", "h" or "d", the unit WORD, LEN
 * bytes, is; 0 if it is none. */
static int unit_of(const char **letter_p, const char *word, size_t len)
{
    static const struct {
        const char *word, *letter;
        int count;
    } units[] = {
        {"second", "s", 1}, {"sec", "s", 1}, {"s", "s", 1},
        {"minute", "m", 1}, {"min", "m", 1}, {"m", "m", 1},
        {"hour", "h", 1}, {"hr", "h", 1}, {"h", "h", 1},
        {"day", "d", 1}, {"d", "d", 1}, {"week", "d", 7}, {"w", "d", 7},
    };

    len -= len > 1 && word[len - 1] == 's';
    for (size_t i = 0; i < CRM_NELTS(units); i++) {
        if (strlen(units[i].word) == len && !memcmp(units[i].word, word, len)) {
            *letter_p = units[i].letter;
            return units[i].count;
        }
    }
    return 0;
}

/* Return DELAY, numbers with units in words, as templates have it, in POOL: "1 day,
 * 12 hours" is "1d12h", and a number alone is days. Return NULL if it is neither. */
static const char *delay_of(const char *delay, apr_pool_t *pool)
{
    const char *text = crm_text_fold(delay, pool), *letter = "d";
    crm_buf_t buf;

    crm_buf_init(&buf, 32, pool);
    text += strspn(text, " ");
    do {
        size_t digits = strspn(text, "0123456789"), len;
        const char *word = text + digits;
        int count = 1;

        word += strspn(word, " -");
        len = strspn(word, "abcdefghijklmnopqrstuvwxyz");
        if (!digits || digits > 5
            || ((len || buf.len) && !(count = unit_of(&letter, word, len)))) {
            return NULL;
        }
        crm_buf_printf(&buf, "%d%s", atoi(text) * count, letter);
        text = word + len;
        text += strspn(text, ", ");
    } while (*text);
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

/* ---- texts --------------------------------------------------------------- */

/* Return TEXT with the line breaks that it spells, in POOL; NULL if it spells none, or
 * has some. */
static const char *broken(const char *text, apr_pool_t *pool)
{
    char *copy, *out;

    if (strchr(text, '\n') || !strstr(text, "\\n")) {
        return NULL;
    }
    copy = out = apr_pstrdup(pool, text);
    while (*text) {
        size_t len = !strncmp(text, "\\r\\n", 4) ? 4
                     : !strncmp(text, "\\n", 2) ? 2 : 1;

        *out++ = len > 1 ? '\n' : *text;
        text += len;
    }
    *out = '\0';
    return copy;
}

/* Tidy the text VALUE of the member NAME of STEP. */
static void tidy_text(json_object *step, const char *name, const char *value,
                      apr_pool_t *pool)
{
    const char *better;

    if (!*value) {
        json_object_object_del(step, name);
        return;
    }
    better = !strcmp(name, "delay") ? delay_of(value, pool)
             : broken(value, pool);
    if (better) {
        json_object_object_add(step, name, json_object_new_string(better));
    }
}

void crmd_tidy_steps(json_object *list, apr_pool_t *scratch_pool)
{
    static const char *const names[] = {
        "delay", "email_subject", "email_body", "sms_body", "voice_objective",
        "voice_script"
    };
    size_t count = json_object_is_type(list, json_type_array)
                   ? json_object_array_length(list) : 0;

    for (size_t i = 0; i < count; i++) {
        json_object *step = json_object_array_get_idx(list, i);

        for (size_t k = 0; k < CRM_NELTS(names); k++) {
            json_object *value = json_object_object_get(step, names[k]);

            if (json_object_is_type(value, json_type_string)) {
                tidy_text(step, names[k], json_object_get_string(value),
                          scratch_pool);
            }
        }
    }
}

/* ---- placeholders -------------------------------------------------------- */

/* Return whether the LEN bytes at TEXT, which stood in brackets, folded, name what is
 * to be filled in. */
static int is_placeholder(const char *text, size_t len)
{
    static const char *const begins[] = {"your", "my", "insert"};
    static const char *const ends[] = {
        "name", "company", "title", "position", "number", "here", "link", "url",
        "email", "nom", "nombre", "nome", "naam", "firma", "unternehmen"
    };
    static const char *const whole[] = {"date", "time", "phone"};

    for (size_t i = 0; i < CRM_NELTS(begins); i++) {
        size_t begin = strlen(begins[i]);

        if (!strncmp(text, begins[i], begin) && strchr(" -_", text[begin])) {
            return 1;
        }
    }
    for (size_t i = 0; i < CRM_NELTS(ends); i++) {
        size_t end = strlen(ends[i]);

        if (len >= end && !memcmp(text + len - end, ends[i], end)
            && (len == end || !apr_isalnum(text[len - end - 1]))) {
            return 1;
        }
    }
    for (size_t i = 0; i < CRM_NELTS(whole); i++) {
        if (strlen(whole[i]) == len && !memcmp(text, whole[i], len)) {
            return 1;
        }
    }
    return 0;
}

/* Return whether TEXT (may be NULL) has a placeholder: a few words in brackets, and no
 * link in Markdown. */
static int has_placeholder(const char *text, apr_pool_t *pool)
{
    static const char closing[] = "]}>", opening[] = "[{<";
    const char *c = text ? crm_text_fold(text, pool) : "";

    while (*(c += strcspn(c, opening))) {
        char close = closing[strchr(opening, *c) - opening];
        size_t len = strcspn(++c, "[]{}<>\n");

        if (c[len] == close && c[len + 1] != '(' && len < 40
            && is_placeholder(c, len)) {
            return 1;
        }
    }
    return 0;
}

const char *crmd_tidy_placeholder(const apr_array_header_t *steps,
                                  apr_pool_t *pool)
{
    for (int i = 0; i < steps->nelts; i++) {
        const crm_step_t *step = &APR_ARRAY_IDX(steps, i, crm_step_t);
        const char *const texts[] = {
            step->email_subject, step->email_body, step->sms_body,
            step->voice_script
        };

        for (size_t k = 0; k < CRM_NELTS(texts); k++) {
            if (has_placeholder(texts[k], pool)) {
                return apr_psprintf(pool, "steps[%d] has a place to be filled"
                                    " in", i);
            }
        }
    }
    return NULL;
}
