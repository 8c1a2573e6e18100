/* SPDX-License-Identifier: Apache-2.0 */
/* crm_array.c: texts in an array */
#include "crm_array.h"

#include <string.h>
#include <strings.h>

int crm_words_have(const char *const *words, apr_size_t count,
                   const char *text)
{
    for (apr_size_t i = 0; i < count; i++) {
        if (!strcmp(words[i], text)) {
            return 1;
        }
    }
    return 0;
}

int crm_words_equal(const char *const *words, apr_size_t count,
                    const char *text)
{
    for (apr_size_t i = 0; text && i < count; i++) {
        if (!strcasecmp(words[i], text)) {
            return 1;
        }
    }
    return 0;
}

int crm_words_begin(const char *const *words, apr_size_t count,
                    const char *text)
{
    for (apr_size_t i = 0; text && i < count; i++) {
        if (!strncasecmp(words[i], text, strlen(words[i]))) {
            return 1;
        }
    }
    return 0;
}

int crm_array_has(const apr_array_header_t *array, const char *text)
{
    return crm_words_have((const char *const *)(const void *)array->elts,
                          (apr_size_t)array->nelts, text);
}
