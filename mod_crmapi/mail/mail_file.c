/* SPDX-License-Identifier: Apache-2.0 */
/* mail_file.c: names of files
 *
 * GMime reads parameters as RFC 2045 and 2231 have them. What programs write instead
 * is changed before. */
#include "mail_file.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_text.h"
#include "mail_label.h"
#include "mail_word.h"

#define BLANKS " \t\r\n"

/* Return VALUE, of a header whose parameters have pieces, with the first piece
 * before the others, in POOL: it has the charset, and GMime takes the charset of
 * the piece that comes first (RFC 2231, 4.1). */
static const char *in_order(const char *value, apr_pool_t *pool)
{
    const char *piece = strstr(value, "*0*=");
    const char *first = strchr(value, ';'), *end;

    if (!piece || !first) {
        return value;
    }
    end = piece + strcspn(piece, ";");
    while (piece > value && *piece != ';') {
        piece--;
    }
    return piece <= first ? value
           : apr_psprintf(pool, "%.*s%.*s%.*s%s", (int)(first - value), value,
                          (int)(end - piece), piece, (int)(piece - first),
                          first, end);
}

/* Return VALUE, of a header, with each backslash of a path such as "C:\a\b.txt" twice,
 * in POOL: some programs write them once, and GMime would leave them out. */
static const char *with_folders(const char *value, apr_pool_t *pool)
{
    const char *path = strstr(value, ":\\"), *c = value;
    char *made, *out;

    if (!path || path < value + 3 || memcmp(path - 3, "=\"", 2)
        || path[2] == '\\') {
        return value;
    }
    out = made = apr_palloc(pool, 2 * strlen(value) + 1);
    for (; *c; c++) {
        *out++ = *c;
        if (*c == '\\' && c > path && c < path + strcspn(path, "\"")) {
            *out++ = *c;
        }
    }
    *out = '\0';
    return made;
}

/* Return where the string that begins at TEXT, behind a quotation mark, ends: at one
 * that a parameter, or nothing, follows; NULL if there is none. */
static const char *end_of_string(const char *text)
{
    for (; *text; text += *text == '\\' && text[1] ? 2 : 1) {
        const char *next = text + 1 + strspn(text + 1, BLANKS);

        if (*text == '"' && (!*next || *next == ';'
                             || next[strcspn(next, "=;\"" BLANKS)] == '=')) {
            return text;
        }
    }
    return NULL;
}

/* Return VALUE, of a header, with a backslash before each quotation mark within a
 * string, in POOL: some programs leave it out, and GMime would end the string. */
static const char *with_quotes(const char *value, apr_pool_t *pool)
{
    const char *c = value, *end = NULL;
    char *out = apr_palloc(pool, 2 * strlen(value) + 1), *made = out;

    for (; *c; *out++ = *c++) {
        if (!end && !memcmp(c, "=\"", 2)) {
            *out++ = *c++;
            end = end_of_string(c + 1);
            if (!end) {
                return value;
            }
        }
        else if (end && *c == '\\' && c[1]) {
            *out++ = *c++;
        }
        else if (end && *c == '"') {
            if (c < end) {
                *out++ = '\\';
            }
            else {
                end = NULL;
            }
        }
    }
    *out = '\0';
    return made;
}

/* Return the raw value of the header NAME of PART, recoded, in POOL; NULL if it
 * is missing. Encoded words may span the pieces of a parameter: then they are
 * decoded when these were joined. */
static const char *recoded(GMimeObject *part, const char *name,
                           const char *hint, apr_pool_t *pool)
{
    GMimeHeader *header = g_mime_header_list_get_header(
        g_mime_object_get_header_list(part), name);
    const char *raw = header ? g_mime_header_get_raw_value(header) : NULL;

    raw = raw ? with_quotes(with_folders(in_order(raw, pool), pool), pool)
              : NULL;
    return raw && !strstr(raw, "*1=") ? crm_mail_recode(raw, hint, pool) : raw;
}

/* Return NAME, of a file, without the quotation marks and the charset that were meant
 * for the header, in POOL: some write "name='a b.pdf'", and "name=utf-8''a%20b.pdf"
 * without the asterisk of RFC 2231. */
static const char *bare(const char *name, apr_pool_t *pool)
{
    apr_size_t len = strlen(name), charset = strcspn(name, "'");
    const char *text = name[charset] ? strchr(name + charset + 1, '\'') : NULL;
    GMimeParamList *list;

    if (len > 2 && *name == '\'' && name[len - 1] == '\'') {
        return apr_pstrmemdup(pool, name + 1, len - 2);
    }
    if (!text || !strchr(text, '%') || name[strcspn(name, "\"();<>@,\\ ")]
        || !crm_mail_label(apr_pstrmemdup(pool, name, charset)).name) {
        return name;
    }
    list = g_mime_param_list_parse(NULL, apr_pstrcat(pool, "n*=", name, NULL));
    if (list && g_mime_param_list_length(list)) {
        name = apr_pstrdup(pool, g_mime_param_get_value(
                               g_mime_param_list_get_parameter_at(list, 0)));
    }
    if (list) {
        g_object_unref(list);
    }
    return name;
}

/* Return how much PARAM says: more than ASCII, or that it has the form of RFC 2231. */
static int weight(GMimeParam *param)
{
    return 2 * !crm_text_is_ascii(g_mime_param_get_value(param))
           + !!g_mime_param_get_charset(param);
}

/* Return the parameter NAME in LIST, in POOL; NULL if it is missing. With
 * "name" and "name*" (RFC 2231) it is the one that has more than ASCII, else the second
 * (RFC 6266, 4.3). */
static const char *parameter(GMimeParamList *list, const char *name,
                             const char *hint, apr_pool_t *pool)
{
    const char *found = NULL;
    int count = g_mime_param_list_length(list), most = -1;

    for (int i = 0; i < count; i++) {
        GMimeParam *param = g_mime_param_list_get_parameter_at(list, i);
        const char *value = g_mime_param_get_value(param);

        if (strcasecmp(g_mime_param_get_name(param), name) || !value
            || !*value) {
            continue;
        }
        if (weight(param) > most) {
            most = weight(param);
            found = value;
        }
    }
    if (found && *found == '"' && !strchr(found + 1, '"')) {
        found++;                /* it has no end */
    }
    return !found ? NULL : strstr(found, "=?")
           ? crm_mail_decode(found, hint, pool)
           : bare(apr_pstrdup(pool, found), pool);
}

/* Return the header FIELD of PART, whose parameters are read; NULL if it is missing. */
static GMimeContentDisposition *parsed(GMimeObject *part, const char *field,
                                       const char *hint, apr_pool_t *pool)
{
    const char *value = recoded(part, field, hint, pool);

    return value ? g_mime_content_disposition_parse(NULL, value) : NULL;
}

const char *crm_mail_file_name(GMimeObject *part, const char *hint,
                               apr_pool_t *pool)
{
    static const char *const fields[] = {"Content-Disposition", "Content-Type"};
    /* of the two in turn; the last two are mistaken */
    static const char *const names[] = {"filename", "name", "name", "filename"};
    GMimeContentDisposition *found[2] = {NULL, NULL};
    const char *name = NULL;

    for (size_t i = 0; i < CRM_NELTS(names) && !name; i++) {
        if (i < 2) {
            found[i] = parsed(part, fields[i], hint, pool);
        }
        if (found[i % 2]) {
            name = parameter(g_mime_content_disposition_get_parameters(found[i % 2]),
                             names[i], hint, pool);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (found[i]) {
            g_object_unref(found[i]);
        }
    }
    return name;
}
