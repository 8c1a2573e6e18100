/* SPDX-License-Identifier: Apache-2.0 */
/* mail_auth.c: whether a trusted host has verified the sender (RFC 8601) */
#include "mail_auth.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_email.h"
#include "crm_network.h"
#include "crm_text.h"
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

/* ---- a result ------------------------------------------------------------ */

/* A result, with its properties that name a domain or a signature. */
typedef struct result_t {
    const char *method, *verdict;
    const char *from;           /* header.from */
    const char *signer;         /* header.d */
    const char *identity;       /* header.i */
    const char *selector;       /* header.s */
    const char *signature;      /* header.b */
} result_t;

/* What the results that were read so far say of a mail from DOMAIN. */
typedef struct state_t {
    const char *ids;            /* the authserv_ids of crm_mail_options_t */
    const char *domain;
    crm_mail_auth_t auth;
    apr_array_header_t *signatures; /* of result_t: those for DOMAIN */
    apr_pool_t *pool;
} state_t;

/* Maximum signatures of a mail that are compared; with more it fails. */
#define SIGNATURES 50

/* Return the part of TEXT (may be NULL) after the last '@'; without one, all of
 * it. */
static const char *domain_of(const char *text)
{
    const char *at = text ? strrchr(text, '@') : NULL;

    return at ? at + 1 : text;
}

/* Return DOMAIN (may be NULL) with A-labels, in POOL (contract 17.2): hosts write it
 * in either form. */
static const char *ascii_of(const char *domain, apr_pool_t *pool)
{
    const char *form;

    if (!domain || crm_text_is_ascii(domain)
        || !crm_text_valid_utf8(domain, strlen(domain))) {
        return domain;
    }
    form = crm_email_canonical(apr_pstrcat(pool, "x@", domain, NULL), pool);
    return form ? strchr(form, '@') + 1 : domain;
}

/* Return whether DOMAIN is PARENT or below it. */
static int is_below(const char *domain, const char *parent)
{
    size_t len = strlen(parent), whole = strlen(domain);

    return len && len <= whole && !strcasecmp(domain + whole - len, parent)
           && (len == whole || domain[whole - len - 1] == '.');
}

/* Return whether SIGNER is DOMAIN or a parent of it, but not a top-level
 * domain. */
static int is_above(const char *signer, const char *domain)
{
    return signer && strchr(signer, '.') && is_below(domain, signer);
}

/* Return whether A and B, which may be NULL, are there and differ. */
static int differ(const char *a, const char *b)
{
    return a && b && strcmp(a, b);
}

/* Return whether RESULT and another one in STATE say the opposite of one
 * signature. Results that name no selector and no signature may mean the same
 * one. RESULT is remembered. */
static int is_opposed(state_t *state, const result_t *result)
{
    int failed = !strcasecmp(result->verdict, "fail");

    if (!failed && strcasecmp(result->verdict, "pass")) {
        return 0;               /* it says neither */
    }
    for (int i = 0; i < state->signatures->nelts; i++) {
        const result_t *other = &APR_ARRAY_IDX(state->signatures, i,
                                               result_t);

        if (strcasecmp(other->verdict, result->verdict)
            && !strcasecmp(other->signer, result->signer)
            && !differ(other->selector, result->selector)
            && !differ(other->signature, result->signature)) {
            return 1;
        }
    }
    APR_ARRAY_PUSH(state->signatures, result_t) = *result;
    return state->signatures->nelts > SIGNATURES;
}

/* Evaluate RESULT, of a signature (RFC 6376). The identity must be below the
 * domain that signs. */
static crm_mail_auth_t judge_signature(state_t *state, result_t *result)
{
    const char *identity = ascii_of(domain_of(result->identity), state->pool);

    result->signer = result->signer ? ascii_of(result->signer, state->pool)
                     : identity;
    if (identity && !is_below(identity, result->signer)) {
        return CRM_MAIL_AUTH_FAIL;
    }
    if (!is_above(result->signer, state->domain)) {
        return CRM_MAIL_AUTH_NONE;
    }
    return is_opposed(state, result) ? CRM_MAIL_AUTH_FAIL
           : !strcasecmp(result->verdict, "pass") ? CRM_MAIL_AUTH_PASS
                                                  : CRM_MAIL_AUTH_NONE;
}

static crm_mail_auth_t judge(state_t *state, result_t *result)
{
    const char *from = ascii_of(domain_of(result->from), state->pool);

    if (!strcasecmp(result->method, "dkim")) {
        return judge_signature(state, result);
    }
    if (strcasecmp(result->method, "dmarc")
        || !strcasecmp(result->verdict, "none")) {
        return CRM_MAIL_AUTH_NONE;
    }
    return !strcasecmp(result->verdict, "pass") && from
           && !strcasecmp(from, state->domain) ? CRM_MAIL_AUTH_PASS
                                               : CRM_MAIL_AUTH_FAIL;
}

/* Set the property NAME of RESULT to VALUE. Return 0 if it has another value. */
static int set_property(result_t *result, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **value;
    } places[] = {
        {"header.from", &result->from}, {"header.d", &result->signer},
        {"header.i", &result->identity}, {"header.s", &result->selector},
        {"header.b", &result->signature},
    };

    for (size_t i = 0; i < CRM_NELTS(places); i++) {
        if (!strcasecmp(name, places[i].name)) {
            if (*places[i].value && strcasecmp(*places[i].value, value)) {
                return 0;
            }
            *places[i].value = value;
        }
    }
    return 1;
}

/* Read the result at *C_P into RESULT. Return 0 if it is malformed, or has two
 * values for one property. */
static int read_result(result_t *result, const char **c_p, apr_pool_t *pool)
{
    const char *name, *value;

    memset(result, 0, sizeof(*result));
    if (!read_pair(&result->method, &result->verdict, c_p, pool)) {
        return 0;
    }
    while (**c_p && **c_p != ';') {
        if (!read_pair(&name, &value, c_p, pool)
            || !set_property(result, name, value)) {
            return 0;
        }
    }
    return 1;
}

/* ---- a header ------------------------------------------------------------ */

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

/* Read the results at C, those of a trusted host, into STATE. The word "none"
 * says that there are none, so it is alone. */
static crm_mail_auth_t read_results(state_t *state, const char *c)
{
    crm_mail_auth_t auth = CRM_MAIL_AUTH_NONE;
    int count = 0;

    while (c && *c == ';' && (c = skip(c + 1)) && *c) {
        result_t result;
        crm_mail_auth_t one;
        const char *none;

        if (!strncasecmp(c, "none", 4) && (none = skip(c + 4)) && !*none) {
            return count ? CRM_MAIL_AUTH_FAIL : CRM_MAIL_AUTH_NONE;
        }
        if (!read_result(&result, &c, state->pool)) {
            return CRM_MAIL_AUTH_FAIL;
        }
        one = judge(state, &result);
        auth = one > auth ? one : auth;
        count++;
    }
    return c && !*c ? auth : CRM_MAIL_AUTH_FAIL;
}

/* Read VALUE, that of a header, into STATE. */
static crm_mail_auth_t read_header(state_t *state, const char *value)
{
    const char *c = skip(value);
    const char *id = c ? read_word(&c, ENDS, state->pool) : NULL;

    if (!id || !is_trusted(id, state->ids)) {
        return CRM_MAIL_AUTH_UNTRUSTED;
    }
    if (apr_isdigit(*c)) {
        const char *version = read_word(&c, ENDS, state->pool);

        if (version && strcmp(version, "1")) {
            return CRM_MAIL_AUTH_NONE; /* an unknown version of the header */
        }
    }
    return read_results(state, c);
}

/* Begin STATE for a mail from DOMAIN. */
static void begin(state_t *state, const char *ids, const char *domain,
                  apr_pool_t *pool)
{
    state->ids = ids;
    state->domain = ascii_of(domain, pool);
    state->auth = CRM_MAIL_AUTH_UNTRUSTED;
    state->signatures = apr_array_make(pool, 4, sizeof(result_t));
    state->pool = pool;
}

crm_mail_auth_t crm_mail_results(const char *value, const char *ids,
                                 const char *domain, apr_pool_t *pool)
{
    state_t state;

    begin(&state, ids, domain, pool);
    return read_header(&state, value);
}

/* ---- Received ------------------------------------------------------------ */

/* What a Received says: the hosts behind "from" and "by", the protocol behind
 * "with" (RFC 5321, 4.4), and the comment behind "from". NULL: it does not. */
typedef struct trace_t {
    const char *from, *seen, *by, *with;
} trace_t;

/* Return how many words of VALUE are "by", also those in comments, in quotes and
 * behind a semicolon. */
static int count_by(const char *value)
{
    static const char ends[] = BLANKS ";()\"";
    int count = 0;

    for (const char *c = value; *c; c += strcspn(c, ends)) {
        c += strspn(c, ends);
        count += strcspn(c, ends) == 2 && !strncasecmp(c, "by", 2);
    }
    return count;
}

/* Return the word at *C_P as read_word() does; NULL also if it has quotes: no
 * server writes any, but a client's name may hide what follows in them. */
static const char *read_plain(const char **c_p, apr_pool_t *pool)
{
    if (strcspn(*c_p, ENDS "\"") != strcspn(*c_p, ENDS)) {
        return NULL;
    }
    return read_word(c_p, ENDS, pool);
}

/* Set *HOST_P to the host that follows the keyword at *C_P ("from" or "by"), and
 * *NOTE_P to the comment behind it, NULL if there is none. Return 0 if it is
 * malformed, or has several comments: the client chooses its name, and might
 * write the first of them. */
static int read_clause(const char **host_p, const char **note_p,
                       const char **c_p, apr_pool_t *pool)
{
    const char *begin = *c_p, *note, *end;

    *note_p = NULL;
    *host_p = read_plain(c_p, pool);
    if (!*host_p) {
        return 0;
    }
    note = memchr(begin, '(', (size_t)(*c_p - begin));
    if (!note) {
        begin = *c_p;           /* fetchmail: "from HOST [ADDRESS] by" */
        return *begin != '[' || (read_plain(c_p, pool)
                                 && !memchr(begin, '(', (size_t)(*c_p
                                                                 - begin)));
    }
    end = memchr(note, ')', (size_t)(*c_p - note));
    if (!end || memchr(note + 1, '(', (size_t)(*c_p - note - 1))) {
        return 0;
    }
    *note_p = apr_pstrmemdup(pool, note + 1, (apr_size_t)(end - note - 1));
    return 1;
}

/* Read VALUE, a Received, into TRACE. Return 0 if it is malformed, or says
 * something twice: "from" comes first and "by" next, so that no name of a client
 * can stand for what the server has written. */
static int read_trace(trace_t *trace, const char *value, apr_pool_t *pool)
{
    const char *c = skip(value), *note;

    memset(trace, 0, sizeof(*trace));
    for (int i = 0; c && *c && *c != ';'; i++) {
        const char *word = read_plain(&c, pool);
        int is_by = word && !strcasecmp(word, "by");

        if (!word || (i == 1 && trace->from && !is_by)) {
            return 0;
        }
        if (!strcasecmp(word, "from")) {
            if (i || !read_clause(&trace->from, &trace->seen, &c, pool)) {
                return 0;
            }
        }
        else if (is_by) {
            if (trace->by || !read_clause(&trace->by, &note, &c, pool)) {
                return 0;
            }
        }
        else if (!strcasecmp(word, "with")) {
            if (trace->with || !(trace->with = read_plain(&c, pool))) {
                return 0;
            }
        }
    }
    return c && (!trace->from || (trace->by && count_by(value) == 1));
}

/* Return whether NOTE, what the server saw of its client, is one of IDS or an
 * address of a local network: "(mx.example.org [192.0.2.1])". The name that the
 * client gave may stand there, too: "(HELO [10.0.0.1])". */
static int confirms(const char *note, const char *ids, apr_pool_t *pool)
{
    static const char local[] = "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12"
                                " 192.168.0.0/16 ::1/128 fc00::/7";
    crm_network_t networks[CRM_NETWORKS_MAX];
    const char *name = note + strspn(note, BLANKS);
    const char *address = name + strcspn(name, BLANKS "[");
    const char *seen = apr_pstrmemdup(pool, name, (apr_size_t)(address - name));

    address += strspn(address, BLANKS);
    if (*address++ != '[' || !strcasecmp(seen, "HELO")
        || !strcasecmp(seen, "EHLO") || strchr(seen, '=')) {
        return 0;
    }
    if (is_trusted(seen, ids)) {
        return 1;
    }
    address += strncasecmp(address, "IPv6:", 5) ? 0 : 5;
    return crm_networks_have(networks, crm_networks_parse(networks, local),
                             apr_pstrmemdup(pool, address,
                                            strcspn(address, "]")));
}

/* Return whether a mail that came by PROTOCOL (may be NULL) came from this host
 * or a neighbour, or was fetched: then no stranger has told the host's name
 * (RFC 3848; RFC 2033: LMTP is not used over wide area networks). */
static int is_near(const char *protocol)
{
    static const char *const near[] = {
        "LMTP", "LMTPA", "LMTPS", "LMTPSA", "UTF8LMTP", "UTF8LMTPA",
        "UTF8LMTPS", "UTF8LMTPSA", "POP3", "POP3S", "IMAP", "IMAPS"
    };

    return CRM_EQUALS_ONE_OF(protocol, near);
}

/* Return whether a header below VALUE, a Received, can be the word of a host of
 * IDS: another host has added VALUE, and had the mail from a host of IDS or
 * from no other one. */
static int is_inside(const char *value, const char *ids, apr_pool_t *pool)
{
    trace_t trace;

    if (!read_trace(&trace, value, pool)
        || (trace.by && is_trusted(trace.by, ids))) {
        return 0;
    }
    if (!trace.from) {
        return !trace.with || !strcasecmp(trace.with, "local")
               || is_near(trace.with);
    }
    return is_trusted(trace.from, ids)
           && (trace.seen ? confirms(trace.seen, ids, pool)
                          : is_near(trace.with));
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

/* What stands above the Received that a trusted host has added to a mail from
 * outside was written by that host or behind it. What stands below may be
 * forged. */
int crm_mail_verified(const crm_mail_t *mail, GMimeMessage *mime,
                      const char *ids, apr_pool_t *pool)
{
    GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(mime));
    int count = g_mime_header_list_get_count(list), inside = 1;
    int alone = crm_mail_count(mime, "Received") == 0;
    state_t state;

    if (!ids || !mail->from || !is_only_sender(mime, mail->from, pool)) {
        return 0;
    }
    begin(&state, ids, domain_of(mail->from), pool);
    for (int i = 0; i < count && inside; i++) {
        GMimeHeader *header = g_mime_header_list_get_header_at(list, i);
        const char *name = g_mime_header_get_name(header);
        const char *raw = g_mime_header_get_raw_value(header);

        raw = raw ? raw : "";
        if (!strcasecmp(name, "Received")) {
            inside = is_inside(raw, ids, pool);
        }
        else if (!strcasecmp(name, "Authentication-Results")) {
            crm_mail_auth_t one = read_header(&state, raw);

            state.auth = one > state.auth ? one : state.auth;
            inside = !alone || !one;
        }
        else if (alone && !strcasecmp(name, "From")) {
            inside = 0;
        }
    }
    return state.auth == CRM_MAIL_AUTH_PASS;
}
