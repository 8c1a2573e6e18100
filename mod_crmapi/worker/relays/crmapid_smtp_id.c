/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_smtp_id.c: the Message-ID that a mail server gives a mail */
#include "crmapid_smtp_id.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

/* The least length of an id without a domain. Ids of queues are shorter. */
#define ID_MIN 16

#define ID_MAX 500

#define BLANKS " \t\r\n"

/* ---- the words of the reply ---------------------------------------------- */

/* Return what follows the reply's code and its status (RFC 3463) in LINE. */
static const char *words_of(const char *line)
{
    const char *c = line + strspn(line, "0123456789");
    size_t status;

    c += strspn(c, " -");
    status = strspn(c, "0123456789.");
    if (status && c[status] == ' ' && memchr(c, '.', status)) {
        c += status + 1;
    }
    return c;
}

/* Return whether the LEN bytes at ID have only characters of ids, and a digit:
 * it is no word. */
static int is_id(const char *id, size_t len)
{
    int digits = 0;

    for (size_t i = 0; i < len; i++) {
        if (!apr_isalnum(id[i]) && !strchr("._-", id[i])) {
            return 0;
        }
        digits |= apr_isdigit(id[i]) != 0;
    }
    return digits;
}

/* Return whether the LEN bytes at ID are ID@DOMAIN, and not TO. */
static int is_whole(const char *id, size_t len, const char *to)
{
    const char *at = memchr(id, '@', len);
    size_t left = at ? (size_t)(at - id) : 0;

    return left && len - left > 3 && len <= ID_MAX && is_id(id, left)
           && memchr(at, '.', len - left)
           && strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU"
                     "VWXYZ0123456789.-") >= len - left - 1
           && (strlen(to) != len || strncasecmp(id, to, len));
}

/* Return the only word after "Ok" in WORDS, *LEN_P bytes; NULL if there are
 * more, or none. */
static const char *only_word(size_t *len_p, const char *words)
{
    const char *id = words + 2;

    if (strncasecmp(words, "ok", 2) || !strchr(BLANKS ":", *id)) {
        return NULL;
    }
    id += strspn(id, BLANKS ":");
    *len_p = strcspn(id, BLANKS);
    return id[*len_p + strspn(id + *len_p, BLANKS)] ? NULL : id;
}

/* ---- Amazon SES ---------------------------------------------------------- */

/* Return the domain of the Message-IDs that the server at URL gives, in POOL;
 * NULL if that is not known. */
static const char *domain_of(const char *url, apr_pool_t *pool)
{
    static const char begin[] = "://email-smtp.", end[] = ".amazonaws.com";
    const char *region = strstr(url, begin), *stop;

    region = region ? region + sizeof(begin) - 1 : NULL;
    stop = region ? strstr(region, end) : NULL;
    if (!stop) {
        return NULL;
    }
    region = apr_pstrmemdup(pool, region, (apr_size_t)(stop - region));
    if (!strcmp(region, "us-east-1")) {
        region = "email";
    }
    return apr_pstrcat(pool, region, ".amazonses.com", NULL);
}

const char *crmd_smtp_id(const char *line, const char *url, const char *to,
                         apr_pool_t *pool)
{
    const char *words = words_of(line), *open = strchr(words, '<'), *id;
    const char *domain = domain_of(url, pool);
    size_t len = open ? strcspn(open + 1, ">" BLANKS) : 0;

    if (open && open[1 + len] == '>' && is_whole(open + 1, len, to)) {
        return apr_pstrmemdup(pool, open, len + 2);
    }
    id = only_word(&len, words);
    if (!id || len > ID_MAX) {
        return NULL;
    }
    if (is_whole(id, len, to)) {
        return apr_pstrcat(pool, "<", apr_pstrmemdup(pool, id, len), ">",
                           NULL);
    }
    if (len < ID_MIN || !is_id(id, len)) {
        return NULL;
    }
    id = apr_pstrmemdup(pool, id, len);
    return domain ? apr_pstrcat(pool, "<", id, "@", domain, ">", NULL) : id;
}
