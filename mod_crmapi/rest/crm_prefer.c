/* SPDX-License-Identifier: Apache-2.0 */
/* crm_prefer.c: the header Prefer (RFC 7240) */
#include "crm_prefer.h"

#include <string.h>
#include <strings.h>

/* Return the end of the token or quoted string at TEXT. */
static const char *end_of_word(const char *text)
{
    if (*text != '"') {
        return text + strcspn(text, ",;= \t");
    }
    for (text++; *text && *text != '"'; text++) {
        text += *text == '\\' && text[1];
    }
    return *text ? text + 1 : text;
}

/* Return whether the text from START to END is WORD, quoted or not. */
static int is_word(const char *start, const char *end, const char *word)
{
    size_t len = strlen(word);

    if (end - start >= 2 && *start == '"') {
        start++;
        end--;
    }
    return (size_t)(end - start) == len && !strncasecmp(start, word, len);
}

/* Return the start of the preference after the one at TEXT. */
static const char *next_preference(const char *text)
{
    while (*text && *text != ',') {
        const char *end = end_of_word(text);

        text = end == text ? text + 1 : end;
    }
    return text + strspn(text, ", \t");
}

int crm_prefer_has(const char *header, const char *name, const char *value)
{
    const char *at = header ? header + strspn(header, ", \t") : "";

    for (; *at; at = next_preference(at)) {
        const char *end = end_of_word(at);
        const char *equals = end + strspn(end, " \t");

        if (!is_word(at, end, name) || *at == '"') {
            continue;
        }
        if (*equals != '=') {
            return 0;
        }
        at = equals + 1 + strspn(equals + 1, " \t");
        return is_word(at, end_of_word(at), value);
    }
    return 0;
}
