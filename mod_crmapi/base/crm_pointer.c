/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pointer.c: JSON pointers (RFC 6901), which name a place in a value */
#include "crm_pointer.h"

#include <string.h>

#include "apr_strings.h"

#define NAME_MAX_BYTES 100

const char *crm_name_shown(const char *name)
{
    size_t len = 0;

    while (len <= NAME_MAX_BYTES && (unsigned char)name[len] >= ' '
           && name[len] != 0x7f) {
        len++;
    }
    return len <= NAME_MAX_BYTES && !name[len] ? name : "...";
}

const char *crm_pointer_member(const char *where, const char *name,
                               apr_pool_t *pool)
{
    size_t len = strlen(where);
    char *made, *out;

    name = crm_name_shown(name);
    made = apr_palloc(pool, len + 2 * strlen(name) + 2);
    memcpy(made, where, len);
    out = made + len;
    *out++ = '/';
    for (; *name; name++) {
        if (*name == '~' || *name == '/') {
            *out++ = '~';
            *out++ = *name == '~' ? '0' : '1';
        }
        else {
            *out++ = *name;
        }
    }
    *out = '\0';
    return made;
}

const char *crm_pointer_item(const char *where, int index, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s/%d", where, index);
}

const char *crm_pointer_path(const char *path, apr_pool_t *pool)
{
    char *made, *out;

    if (!*path || *path == '/') {
        return path;
    }
    made = out = apr_palloc(pool, strlen(path) + 2);
    *out++ = '/';
    for (; *path; path++) {
        if (*path != ']') {
            *out++ = *path == '.' || *path == '[' ? '/' : *path;
        }
    }
    *out = '\0';
    return made;
}

/* Add the reference token at TOKEN, LEN bytes, to *OUT_P: "[3]" or ".name". */
static void add_words(char **out_p, const char *token, size_t len)
{
    int is_index = len && strspn(token, "0123456789") == len;

    *(*out_p)++ = is_index ? '[' : '.';
    for (size_t i = 0; i < len; i++) {
        char c = token[i];

        if (c == '~') {
            c = token[++i] == '1' ? '/' : '~';
        }
        *(*out_p)++ = c;
    }
    if (is_index) {
        *(*out_p)++ = ']';
    }
}

const char *crm_pointer_rule(const char *name, const char *where,
                             const char *rule, apr_pool_t *pool)
{
    char *words, *out;

    if (!rule) {
        return NULL;
    }
    words = out = apr_palloc(pool, 2 * strlen(where) + 1);
    while (*where) {
        size_t len = strcspn(++where, "/");

        add_words(&out, where, len);
        where += len;
    }
    *out = '\0';
    return apr_pstrcat(pool, name, words, ": ", rule, NULL);
}
