/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_tidy.c: steps as language models write them, whatever the schema is */
#include "crmapid_tidy.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_json.h"
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
    size_t count = crm_json_count(list);

    for (size_t i = 0; i < count; i++) {
        json_object *step = json_object_array_get_idx(list, i);

        for (size_t k = 0; k < CRM_NELTS(names); k++) {
            const char *text = crm_json_text(json_object_object_get(step,
                                                                    names[k]));

            if (text) {
                tidy_text(step, names[k], text, scratch_pool);
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

/* Return whether TEXT, folded, has a placeholder: a few words in brackets, and no link
 * in Markdown. */
static int has_placeholder(const char *text)
{
    static const char closing[] = "]}>", opening[] = "[{<";

    for (const char *c = text; *(c += strcspn(c, opening));) {
        char close = closing[strchr(opening, *c) - opening];
        size_t len = strcspn(++c, "[]{}<>\n");

        if (c[len] == close && c[len + 1] != '(' && len < 40
            && is_placeholder(c, len)) {
            return 1;
        }
    }
    return 0;
}

/* ---- links --------------------------------------------------------------- */

#define WWW "www."
#define WWW_LEN 4

/* Return whether a name of a host goes on with C. */
static int is_host_char(char c)
{
    return apr_isalnum(c) || c == '-' || (c & 0x80);
}

/* Return whether a host begins at C, which is in TEXT, or behind its "www." there. */
static int begins_host(const char *text, const char *c)
{
    c -= c - text >= WWW_LEN && !memcmp(c - WWW_LEN, WWW, WWW_LEN) ? WWW_LEN : 0;
    return c == text || !(is_host_char(c[-1]) || c[-1] == '.');
}

/* Return whether OWN has the host of LEN bytes at HOST, and not a longer one. */
static int has_host(const char *own, const char *host, size_t len)
{
    const char *end = own + strlen(own);

    for (const char *at = own; (at = memmem(at, (size_t)(end - at), host, len));
         at++) {
        const char *behind = at + len;

        if (begins_host(own, at) && !is_host_char(*behind)
            && !(*behind == '.' && is_host_char(behind[1]))) {
            return 1;
        }
    }
    return 0;
}

/* The longest user and host that are read. A host has 253 bytes at most. */
#define AUTHORITY_MAX 512

/* Return the length of the host at URL, behind a scheme, and where it begins in
 * *HOST_P: behind a user and "www.". What is longer than a host can be is returned as
 * it is, and no further: each of many "www." would be read to the end of the text. */
static size_t host_of(const char **host_p, const char *url)
{
    static const char behind[] = "/?#\\ \t\r\n\"'<>()[]{}|,;!*";
    const char *at;
    size_t len = 0;

    *host_p = url;
    while (url[len] && !strchr(behind, url[len])) {
        if (++len > AUTHORITY_MAX) {
            return len;
        }
    }
    at = memrchr(url, '@', len);
    *host_p = at ? at + 1 : url;
    len -= (size_t)(*host_p - url);
    at = memchr(*host_p, ':', len);
    len = at ? (size_t)(at - *host_p) : len;
    while (len && (*host_p)[len - 1] == '.') {
        len--;
    }
    at = *host_p + (len > WWW_LEN && !memcmp(*host_p, WWW, WWW_LEN) ? WWW_LEN : 0);
    len -= (size_t)(at - *host_p);
    *host_p = at;
    return len;
}

/* Return whether TEXT, folded, has a link to a host that OWN does not have. */
static int has_strange_link(const char *text, const char *own)
{
    static const char *const begins[] = {"://", WWW};

    for (size_t i = 0; i < CRM_NELTS(begins); i++) {
        size_t skip = i ? 0 : strlen(begins[i]);

        for (const char *c = text; (c = strstr(c, begins[i]));
             c += strlen(begins[i])) {
            const char *host;
            size_t len = host_of(&host, c + skip);

            if (len && (skip || memchr(host, '.', len))
                && !has_host(own, host, len)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Add the texts of the members of OBJECT to BUF. */
static void add_words(crm_buf_t *buf, json_object *object)
{
    json_object_object_foreach(object, name, value) {
        (void)name;
        if (json_object_is_type(value, json_type_string)) {
            crm_buf_puts(buf, json_object_get_string(value));
            crm_buf_putc(buf, ' ');
        }
    }
}

/* Return the texts of the members of the COUNT OBJECTS, which may be NULL, folded, in
 * POOL. */
static const char *words_of(json_object *const *objects, size_t count,
                            apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 1024, pool);
    for (size_t i = 0; i < count; i++) {
        if (objects[i]) {
            add_words(&buf, objects[i]);
        }
    }
    crm_buf_putc(&buf, '\0');
    return crm_text_fold(buf.data, pool);
}

/* ---- all of it ----------------------------------------------------------- */

const char *crmd_tidy_fault(const apr_array_header_t *steps,
                            const crm_subject_t *subject, apr_pool_t *pool)
{
    json_object *const objects[] = {
        subject->plan, subject->agent, subject->company
    };
    const char *own = words_of(objects, CRM_NELTS(objects), pool);

    for (int i = 0; i < steps->nelts; i++) {
        const crm_step_t *step = &APR_ARRAY_IDX(steps, i, crm_step_t);
        const char *const texts[] = {
            step->email_subject, step->email_body, step->sms_body,
            step->voice_script
        };

        for (size_t k = 0; k < CRM_NELTS(texts); k++) {
            const char *text = texts[k] ? crm_text_fold(texts[k], pool) : "";
            const char *fault = has_placeholder(text)
                ? "place to be filled in" : has_strange_link(text, own)
                ? "link to a host that neither the goal nor the agent nor the"
                  " company has" : NULL;

            if (fault) {
                return apr_psprintf(pool, "steps[%d] has a %s", i, fault);
            }
        }
    }
    return NULL;
}
