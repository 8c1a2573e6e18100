/* SPDX-License-Identifier: Apache-2.0 */
/* mail_address.c: addresses in headers */
#include "mail_address.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_email.h"
#include "crm_mail.h"
#include "crm_text.h"
#include "mail_charset.h"
#include "mail_read.h"
#include "mail_word.h"

#define NAME_CHARS 1000

/* A function that is called for each address. Returns 1 to stop. */
typedef int (*visit_fn)(void *baton, const char *address, const char *name);

/* What is left of a header that may have A-labels. */
typedef struct sent_t {
    const char *at;             /* NULL: nothing is looked for */
    int tries;                  /* how often something may be missing in it */
} sent_t;

/* Return ADDRESS as it was sent (contract 17.2): GMime decodes the domain. SENT,
 * which has the addresses in their order, moves behind it. In POOL. */
static const char *as_sent(const char *address, sent_t *sent, apr_pool_t *pool)
{
    const char *at = strchr(address, '@'), *form, *found;

    if (!sent->at || crm_text_is_ascii(at)) {
        return address;
    }
    form = crm_email_canonical(address, pool);
    form = form ? strchr(form, '@') : NULL;
    found = form ? strcasestr(sent->at, form) : NULL;
    if (!found) {
        sent->at = sent->tries-- ? sent->at : NULL;
        return address;
    }
    sent->at = found + strlen(form);
    return apr_pstrcat(pool, apr_pstrmemdup(pool, address,
                                            (apr_size_t)(at - address)),
                       apr_pstrmemdup(pool, found, strlen(form)), NULL);
}

/* Return whether ADDRESS may be one. A quoted string with an '@' is none. */
static int is_address(const char *address)
{
    apr_size_t len = strlen(address);

    return !crm_text_email(address, len) && crm_text_valid_utf8(address, len)
           && address[len - 1] != '"';
}

/* Return ADDRESS without the single quotes that some programs put around it, in
 * POOL if it has them. */
static const char *unquoted(const char *address, apr_pool_t *pool)
{
    apr_size_t len = address ? strlen(address) : 0;

    return len > 2 && address[0] == '\'' && address[len - 1] == '\''
           ? apr_pstrmemdup(pool, address + 1, len - 2) : address;
}

/* Call VISIT for the mailboxes of LIST, those of SENT, and of its groups. Return 1
 * if it stopped. */
static int visit_list(InternetAddressList *list, sent_t *sent, visit_fn visit,
                      void *baton, int depth, apr_pool_t *pool)
{
    int count = list ? internet_address_list_length(list) : 0;

    for (int i = 0; i < count; i++) {
        InternetAddress *one = internet_address_list_get_address(list, i);

        if (INTERNET_ADDRESS_IS_GROUP(one)) {
            InternetAddressGroup *group = INTERNET_ADDRESS_GROUP(one);

            if (depth < 4 && visit_list(internet_address_group_get_members(
                                            group), sent, visit, baton,
                                        depth + 1, pool)) {
                return 1;
            }
        }
        else {
            InternetAddressMailbox *box = INTERNET_ADDRESS_MAILBOX(one);
            const char *address = unquoted(
                internet_address_mailbox_get_addr(box), pool);

            if (address && is_address(address)
                && visit(baton, as_sent(address, sent, pool),
                         internet_address_get_name(one))) {
                return 1;
            }
        }
    }
    return 0;
}

const char *crm_mail_unescape(const char *value, apr_pool_t *pool)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
    char *made, *out;

    if (strpbrk(value, "<\"") || !strstr(value, names[0].name)) {
        return value;
    }
    made = out = apr_palloc(pool, strlen(value) + 1);
    while (*value) {
        size_t i = 0;

        while (i < CRM_NELTS(names)
               && strncmp(value, names[i].name, strlen(names[i].name))) {
            i++;
        }
        *out++ = i < CRM_NELTS(names) ? names[i].c : *value;
        value += i < CRM_NELTS(names) ? strlen(names[i].name) : 1;
    }
    *out = '\0';
    return made;
}

/* Return VALUE, a header with addresses, without what some programs put into it as
 * into a string: "\"Ada\" <ada@example.org>" with a backslash before each quote; in
 * POOL if it is another. */
static const char *as_meant(const char *value, apr_pool_t *pool)
{
    char *made, *out;

    value = crm_mail_unescape(value, pool);
    value += strspn(value, " \t\r\n");
    if (*value != '\\' || !value[1] || !strchr("\"'", value[1])) {
        return value;
    }
    made = out = apr_palloc(pool, strlen(value) + 1);
    for (const char *c = value; *c; c++) {
        if (*c != '\\' || !c[1] || !strchr("\"'", c[1])) {
            *out++ = *c;
        }
    }
    *out = '\0';
    return made;
}

/* What stands around addresses and names in headers that are not
 * well-formed. */
#define AROUND " \t\r\n<>()[],;:\"'"

/* What ends a word of such a header: "o'neill@example.org" is one. */
#define ENDS " \t\r\n<>()[],;:\""

/* The schemes of links that have been put before addresses. */
static const char *const schemes[] = {"mailto:", "smtp:"};

/* Return the name in TEXT, LEN bytes beside an address, in POOL; NULL if there is
 * none. */
static const char *name_beside(const char *text, apr_size_t len,
                               apr_pool_t *pool)
{
    while (len && strchr(AROUND, *text) && !memchr("[(", *text, 2)) {
        text++;
        len--;
    }
    while (len && strchr(AROUND, text[len - 1])
           && !memchr("])", text[len - 1], 2)) {
        len--;
    }
    for (apr_size_t i = 0; i < CRM_NELTS(schemes); i++) {
        apr_size_t size = strlen(schemes[i]) - 1;   /* the ':' is gone */

        if (len >= size && !strncasecmp(text + len - size, schemes[i], size)
            && (len == size || strchr(AROUND, text[len - size - 1]))) {
            return name_beside(text, len - size, pool);
        }
    }
    return len > 1 ? apr_pstrmemdup(pool, text, len) : NULL;
}

/* Call VISIT for each word of VALUE that is an address, with what stands before
 * it since the last one, else after it, as its name: for headers that are not
 * well-formed. ANGLED: only for those behind a '<'. OPEN: only for those that stand
 * there, too: VALUE, or outside() of VALUE, whose names are decoded. Return 1 if it
 * stopped. */
static int visit_words(const char *value, const char *open, int angled,
                       visit_fn visit, void *baton, apr_pool_t *pool)
{
    const char *before = value, *begin = value;

    value += strspn(value, AROUND);
    while (*value) {
        apr_size_t len = strcspn(value, ENDS);
        const char *name, *after;

        while (len && value[len - 1] == '\'') {
            len--;
        }
        after = value + len;
        if (len && strncmp(after, "\"@", 2) && memchr(value, '@', len)
            && !crm_text_email(value, len) && crm_text_valid_utf8(value, len)
            && (!angled || (value > before && value[-1] == '<'))
            && open[value - begin] == *value) {
            name = name_beside(before, (apr_size_t)(value - before), pool);
            if (!name && !strchr(after, '@')) {
                name = name_beside(after, strlen(after), pool);
            }
            if (name && open != begin) {
                name = crm_mail_decode(name, NULL, pool);
            }
            if (visit(baton, apr_pstrmemdup(pool, value, len), name)) {
                return 1;
            }
            before = after;
        }
        value = after + strspn(after, AROUND);
    }
    return 0;
}

/* Call VISIT for the addresses in VALUE, a header, by its syntax. Return 1 if it
 * stopped. */
static int visit_value(const char *value, visit_fn visit, void *baton,
                       apr_pool_t *pool)
{
    InternetAddressList *list = internet_address_list_parse(NULL, value);
    sent_t sent = {strcasestr(value, "xn--") ? value : NULL, 4};
    int done = visit_list(list, &sent, visit, baton, 0, pool);

    if (list) {
        g_object_unref(list);
    }
    return done;
}

/* Return whether VALUE is an address in angle brackets behind words that hold
 * another one, "ann@example.net via Shop <shop@example.org>", or a colon that begins
 * no group: "Shop: Ann <ann@example.net>". */
static int is_angled(const char *value)
{
    const char *angle = strchr(value, '<');
    apr_size_t at = strcspn(value, "@:");

    return angle && value + at < angle && !strchr(angle + 1, '<')
           && !value[strcspn(value, ",;\"(")]
           && (value[at] == ':' || !strchr(value, ':'));
}

/* Return the end of the encoded word that begins at C (RFC 2047, 2), NULL if neither it
 * nor one behind it has an end. */
static const char *word_end(const char *c)
{
    const char *encoding = strchr(c + 2, '?');
    const char *text = encoding ? strchr(encoding + 1, '?') : NULL;
    const char *end = text ? strstr(text + 1, "?=") : NULL;

    return end ? end + 2 : NULL;
}

/* Return VALUE, a header that is not decoded yet, with a blank for each character of
 * comments, quoted strings (RFC 5322, 3.2) and encoded words, in POOL. *LOCAL_P: a
 * quoted string is the local part of an address (RFC 5322, 3.4.1). */
static const char *outside(int *local_p, const char *value, apr_pool_t *pool)
{
    char *open = apr_pstrdup(pool, value);
    const char *word = open;    /* where the last encoded word ends; NULL: there is no
                                   other one */
    int comments = 0, quoted = 0;

    *local_p = 0;
    for (char *c = open; *c; c++) {
        int inside = comments || quoted || (word && c < word);

        if (!inside && word && !strncmp(c, "=?", 2)) {
            word = word_end(c);
            inside = word != NULL;
        }
        else if (*c == '\\' && c[1] && (comments || quoted)) {
            *c++ = ' ';
        }
        else if (*c == '"' && !comments && (quoted || !inside)) {
            *local_p |= quoted && c[1 + strspn(c + 1, " \t\r\n")] == '@';
            quoted = !quoted;
        }
        else if ((*c == '(' || *c == ')') && !quoted && (comments || !inside)) {
            comments += *c == '(' ? 1 : comments ? -1 : 0;
        }
        *c = inside ? ' ' : *c;
    }
    return open;
}

/* Return the text at LOCAL, LEN bytes before an '@', without blanks around it and the
 * scheme of a link; set *LEN_P to its length. */
static const char *local_text(apr_size_t *len_p, const char *local, apr_size_t len)
{
    crm_text_trim(&local, &len);
    for (apr_size_t i = 0; i < CRM_NELTS(schemes); i++) {
        apr_size_t size = strlen(schemes[i]);

        if (len > size && !strncasecmp(local, schemes[i], size)) {
            local += size;
            len -= size;
            crm_text_trim(&local, &len);
        }
    }
    *len_p = len;
    return local;
}

/* Return whether the LEN bytes at LOCAL, between '<' and '@', are more than the local
 * part of an address: "ada king" of "<ada king@example.org>". Blanks beside dots belong
 * to it (RFC 5322, 4.4). */
static int is_more(const char *local, apr_size_t len)
{
    const char *text = local_text(&len, local, len);

    for (apr_size_t i = 0; i < len; i++) {
        apr_size_t from = i;

        while (i < len && strchr(" \t\r\n,;:", text[i])) {
            i++;
        }
        if (i > from && (i - from != strspn(text + from, " \t\r\n")
                         || (text[from - 1] != '.' && text[i] != '.'))) {
            return 1;
        }
    }
    return 0;
}

/* Return VALUE, a header in UTF-8, with blanks for addresses in angle brackets that are
 * more than one, in POOL if it is another: king@example.org may be somebody else. */
static const char *without_doubt(const char *value, apr_pool_t *pool)
{
    int local;
    const char *open = outside(&local, value, pool), *c = strchr(open, '<');
    char *made = NULL;

    while (c) {
        apr_size_t len = strcspn(c + 1, "<>@"), size = 1;

        if (c[1 + len] == '@' && is_more(c + 1, len)) {
            size = strcspn(c, ">");
            made = made ? made : apr_pstrdup(pool, value);
            memset(made + (c - open), ' ', size);
        }
        c = strchr(c + size, '<');
    }
    return made ? made : value;
}

/* Call VISIT for the addresses in the header RAW, of a mail whose charset may be HINT.
 * Return 1 if it stopped. Some mails encode the address together with the name. */
static int visit_header(const char *raw, const char *hint, visit_fn visit,
                        void *baton, apr_pool_t *pool)
{
    const char *recoded = crm_mail_recode(raw, hint, pool);
    const char *decoded = crm_mail_decode(raw, hint, pool);
    const char *sure = without_doubt(recoded, pool), *open;
    int local;

    if (sure != recoded) {
        return visit_value(sure, visit, baton, pool);
    }
    if ((is_angled(decoded) && strchr(raw, '<')
         && visit_words(decoded, decoded, 1, visit, baton, pool))
        || visit_value(recoded, visit, baton, pool)) {
        return 1;
    }
    open = outside(&local, recoded, pool);
    return !local
           && (visit_words(recoded, open, 1, visit, baton, pool)
               || visit_words(recoded, open, 0, visit, baton, pool)
               || (strstr(raw, "=?") && visit_value(decoded, visit, baton, pool))
               || visit_words(decoded, decoded, 1, visit, baton, pool)
               || visit_words(decoded, decoded, 0, visit, baton, pool));
}

/* Call VISIT for the addresses in all headers NAME of MIME. Return 1 if it
 * stopped. */
static int visit_headers(GMimeMessage *mime, const char *name, visit_fn visit,
                         void *baton, apr_pool_t *pool)
{
    GMimeHeaderList *headers =
        g_mime_object_get_header_list(GMIME_OBJECT(mime));
    int count = g_mime_header_list_get_count(headers), done = 0;
    const char *hint = crm_mail_hint(mime);

    for (int i = 0; i < count && !done; i++) {
        GMimeHeader *header = g_mime_header_list_get_header_at(headers, i);
        const char *raw = g_mime_header_get_raw_value(header);

        done = raw && !strcasecmp(g_mime_header_get_name(header), name)
               && visit_header(as_meant(raw, pool), hint, visit, baton, pool);
    }
    return done;
}

/* Return NAME (may be NULL), of ADDRESS, without the address in brackets that some
 * programs put behind it, in POOL; NULL if nothing is left. */
static const char *without_address(const char *name, const char *address,
                                   apr_pool_t *pool)
{
    apr_size_t len = name ? strlen(name) : 0, size = strlen(address);
    const char *at = len >= size + 2 ? name + len - size - 1 : NULL;

    if (!at || !strchr("([<", at[-1]) || !strchr(")]>", at[size])
        || strncasecmp(at, address, size)) {
        return name;
    }
    return crm_mail_line(apr_pstrmemdup(pool, name,
                                        (apr_size_t)(at - 1 - name)),
                         NAME_CHARS, pool);
}

/* Return NAME, of ADDRESS, as a line in POOL, without the quotes that some programs put
 * around it, single ones or such as are part of an encoded word; NULL if it only
 * repeats the address. */
static const char *tidy_name(const char *name, const char *address,
                             apr_pool_t *pool)
{
    const char *line = without_address(crm_mail_line(name, NAME_CHARS, pool),
                                       address, pool);
    apr_size_t len = line ? strlen(line) : 0;

    if (len > 2 && strchr("'\"", *line) && line[len - 1] == *line
        && (*line == '\'' || !memchr(line + 1, '"', len - 2))) {
        line = crm_mail_line(apr_pstrmemdup(pool, line + 1, len - 2),
                             NAME_CHARS, pool);
    }
    return line && strcasecmp(line, address) ? line : NULL;
}

/* A visit_fn: add the mailbox to the list BATON, unless it is there. */
static int add_mailbox(void *baton, const char *address, const char *name)
{
    apr_array_header_t *list = baton;
    crm_mail_person_t *person;

    for (int i = 0; i < list->nelts; i++) {
        if (!strcasecmp(APR_ARRAY_IDX(list, i, crm_mail_person_t).address,
                        address)) {
            return 0;
        }
    }
    person = apr_array_push(list);
    person->address = apr_pstrdup(list->pool, address);
    person->name = tidy_name(name, address, list->pool);
    return list->nelts >= CRM_MAIL_LIST_MAX;
}

/* A visit_fn: keep the first mailbox in the list BATON. */
static int keep_first(void *baton, const char *address, const char *name)
{
    add_mailbox(baton, address, name);
    return 1;
}

int crm_mail_mailbox(const char **address_p, const char **name_p,
                     GMimeMessage *mime, const char *name, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 1,
                                              sizeof(crm_mail_person_t));

    visit_headers(mime, name, keep_first, list, pool);
    if (!list->nelts) {
        return 0;
    }
    *address_p = APR_ARRAY_IDX(list, 0, crm_mail_person_t).address;
    *name_p = APR_ARRAY_IDX(list, 0, crm_mail_person_t).name;
    return 1;
}

void crm_mail_mailboxes(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool)
{
    visit_headers(mime, name, add_mailbox, list, pool);
}

/* A visit_fn: add ADDRESS to the list BATON, unless it is there. */
static int add_address(void *baton, const char *address, const char *name)
{
    apr_array_header_t *list = baton;

    (void)name;
    if (crm_array_has(list, address)) {
        return 0;
    }
    if (list->nelts < CRM_MAIL_LIST_MAX) {
        APR_ARRAY_PUSH(list, const char *) = apr_pstrdup(list->pool, address);
    }
    return list->nelts >= CRM_MAIL_LIST_MAX;
}

void crm_mail_addresses(apr_array_header_t *list, GMimeMessage *mime,
                        const char *name, apr_pool_t *pool)
{
    visit_headers(mime, name, add_address, list, pool);
}
