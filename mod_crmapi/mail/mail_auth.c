/* SPDX-License-Identifier: Apache-2.0 */
/* mail_auth.c: whether a trusted host has verified the sender (RFC 8601) */
#include "mail_auth.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "mail_address.h"
#include "mail_read.h"

#define BLANKS " \t\r\n"
#define ENDS BLANKS ";("        /* characters that end a value */

/* ---- words --------------------------------------------------------------- */

/* Skip white space and comments at C (RFC 5322, 3.2.2). Return what follows,
 * NULL if a comment is not closed. */
static const char *skip(const char *c)
{
    int depth = 0;

    for (;; c++) {
        c += depth ? 0 : strspn(c, BLANKS);
        if (*c == '(') {
            depth++;
        }
        else if (!depth) {
            return c;
        }
        else if (*c == ')') {
            depth--;
        }
        else if (!*c || (*c == '\\' && !*++c)) {
            return NULL;
        }
    }
}

/* Return the end of the quoted string at C, NULL if it is not closed. */
static const char *quoted_end(const char *c)
{
    for (c++; *c && *c != '"'; c++) {
        if (*c == '\\' && !*++c) {
            return NULL;
        }
    }
    return *c ? c + 1 : NULL;
}

/* Return the word at *C_P, up to one of STOPS, without quotes, in POOL. *C_P is
 * moved behind it, white space and comments. NULL: it is malformed. */
static char *read_word(const char **c_p, const char *stops, apr_pool_t *pool)
{
    const char *c = *c_p, *end = c;
    char *word, *out;
    int inside = 0;

    while (end && *end && !strchr(stops, *end)) {
        end = *end == '"' ? quoted_end(end) : end + 1;
    }
    *c_p = end ? skip(end) : NULL;
    if (!*c_p) {
        return NULL;
    }
    word = out = apr_palloc(pool, (apr_size_t)(end - c) + 1);
    for (; c < end; c++) {
        if (*c == '"') {
            inside = !inside;
            continue;
        }
        c += inside && *c == '\\';
        *out++ = *c;
    }
    *out = '\0';
    return word;
}

/* Read "name=value" at *C_P into *NAME_P, without a version ("dkim/1"), and
 * *VALUE_P. Return 0 if it is malformed. */
static int read_pair(const char **name_p, const char **value_p,
                     const char **c_p, apr_pool_t *pool)
{
    char *name = read_word(c_p, ENDS "=", pool);

    if (!name || !*name || **c_p != '=') {
        return 0;
    }
    name[strcspn(name, "/")] = '\0';
    *name_p = name;
    *c_p = skip(*c_p + 1);
    *value_p = *c_p ? read_word(c_p, ENDS, pool) : NULL;
    return *value_p != NULL;
}

/* ---- a header ------------------------------------------------------------ */

/* A result, with its properties that name a domain. */
typedef struct result_t {
    const char *method, *verdict;
    const char *from, *signer, *identity;
} result_t;

/* Return the part of TEXT (may be NULL) after the last '@'; without one, all of
 * it. */
static const char *domain_of(const char *text)
{
    const char *at = text ? strrchr(text, '@') : NULL;

    return at ? at + 1 : text;
}

/* Return whether SIGNER is DOMAIN or a parent of it, but not a top-level
 * domain. */
static int is_above(const char *signer, const char *domain)
{
    size_t len = signer ? strlen(signer) : 0, whole = strlen(domain);

    return len && len <= whole && strchr(signer, '.')
           && !strcasecmp(domain + whole - len, signer)
           && (len == whole || domain[whole - len - 1] == '.');
}

/* Evaluate RESULT for a mail from DOMAIN. */
static crm_mail_auth_t judge(const result_t *result, const char *domain)
{
    int passed = !strcasecmp(result->verdict, "pass");
    const char *signer = result->signer ? result->signer
                         : domain_of(result->identity);

    if (!strcasecmp(result->method, "dmarc")) {
        const char *from = domain_of(result->from);

        return passed && from && !strcasecmp(from, domain) ? CRM_MAIL_AUTH_PASS
               : !strcasecmp(result->verdict, "none") ? CRM_MAIL_AUTH_NONE
                                                      : CRM_MAIL_AUTH_FAIL;
    }
    return passed && !strcasecmp(result->method, "dkim")
           && is_above(signer, domain) ? CRM_MAIL_AUTH_PASS
                                       : CRM_MAIL_AUTH_NONE;
}

/* Read the result at *C_P into RESULT. Return 0 if it is malformed. */
static int read_result(result_t *result, const char **c_p, apr_pool_t *pool)
{
    const struct {
        const char *name;
        const char **value;
    } places[] = {
        {"header.from", &result->from}, {"header.d", &result->signer},
        {"header.i", &result->identity},
    };
    const char *name, *value;

    memset(result, 0, sizeof(*result));
    if (!read_pair(&result->method, &result->verdict, c_p, pool)) {
        return 0;
    }
    while (**c_p && **c_p != ';') {
        if (!read_pair(&name, &value, c_p, pool)) {
            return 0;
        }
        for (size_t i = 0; i < CRM_NELTS(places); i++) {
            if (!strcasecmp(name, places[i].name)) {
                *places[i].value = value;
            }
        }
    }
    return 1;
}

/* Return whether ID is one of the words of IDS. */
static int is_trusted(const char *id, const char *ids)
{
    static const char ends[] = BLANKS ",";
    size_t len = strlen(id);

    for (; *ids; ids += strcspn(ids, ends)) {
        ids += strspn(ids, ends);
        if (len && strcspn(ids, ends) == len && !strncasecmp(ids, id, len)) {
            return 1;
        }
    }
    return 0;
}

crm_mail_auth_t crm_mail_results(const char *value, const char *ids,
                                 const char *domain, apr_pool_t *pool)
{
    const char *c = skip(value), *id = c ? read_word(&c, ENDS, pool) : NULL;
    crm_mail_auth_t auth = CRM_MAIL_AUTH_NONE, one;

    if (!id || !is_trusted(id, ids)) {
        return CRM_MAIL_AUTH_UNTRUSTED;
    }
    if (apr_isdigit(*c)) {
        const char *version = read_word(&c, ENDS, pool);

        if (version && strcmp(version, "1")) {
            return CRM_MAIL_AUTH_NONE; /* an unknown version of the header */
        }
    }
    while (c && *c == ';' && (c = skip(c + 1)) && *c) {
        result_t result;
        const char *none = c;

        if (!strncasecmp(c, "none", 4) && (none = skip(c + 4)) && !*none) {
            return CRM_MAIL_AUTH_NONE;
        }
        if (!read_result(&result, &c, pool)) {
            return CRM_MAIL_AUTH_FAIL;
        }
        one = judge(&result, domain);
        auth = one > auth ? one : auth;
    }
    return c && !*c ? auth : CRM_MAIL_AUTH_FAIL;
}

/* ---- the mail ------------------------------------------------------------ */

/* Return whether MIME has one header From with the single address FROM. */
static int is_only_sender(GMimeMessage *mime, const char *from,
                          apr_pool_t *pool)
{
    apr_array_header_t *all = apr_array_make(pool, 2, sizeof(const char *));

    if (crm_mail_count(mime, "From") != 1) {
        return 0;
    }
    crm_mail_addresses(all, mime, "From", pool);
    return all->nelts == 1 && !strcmp(APR_ARRAY_IDX(all, 0, const char *),
                                      from);
}

int crm_mail_verified(const crm_mail_t *mail, GMimeMessage *mime,
                      const char *ids, apr_pool_t *pool)
{
    GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(mime));
    int count = g_mime_header_list_get_count(list);
    int relayed = crm_mail_count(mime, "Received") == 0;
    crm_mail_auth_t auth = CRM_MAIL_AUTH_UNTRUSTED, one;

    if (!ids || !mail->from || !is_only_sender(mime, mail->from, pool)) {
        return 0;
    }
    /* The headers above the first Received were added by local hosts. Below it,
     * only the first header of a trusted host counts: others may be forged. */
    for (int i = 0; i < count && !(relayed && auth); i++) {
        GMimeHeader *header = g_mime_header_list_get_header_at(list, i);
        const char *name = g_mime_header_get_name(header);
        const char *raw = g_mime_header_get_raw_value(header);

        relayed |= !strcasecmp(name, "Received");
        if (raw && !strcasecmp(name, "Authentication-Results")) {
            one = crm_mail_results(raw, ids, domain_of(mail->from), pool);
            auth = one > auth ? one : auth;
        }
    }
    return auth == CRM_MAIL_AUTH_PASS;
}
