/* SPDX-License-Identifier: Apache-2.0 */
/* mail_head.c: the header of a mail or part, within limits (contract 18.7)
 *
 * GMime recurses for groups of addresses, reads all fields of a name again when
 * one is added, compares parameters pairwise, and looks for the end of each
 * encoded word up to the end of the field. So a header is cut before GMime sees
 * it. */
#include "mail_head.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"

/* Maximum fields of a header, bytes of a header, bytes of a field, and fields
 * with addresses of the same name. */
#define FIELDS 1000
#define HEAD_BYTES (256 * 1024)
#define FIELD_BYTES (64 * 1024)
#define SAME 10

/* Maximum bytes of a field with parameters, and its semicolons. */
#define CONTENT_BYTES (8 * 1024)
#define SEMICOLONS 100

/* Maximum colons in a field with addresses. Each may begin a group. */
#define COLONS 200

#define BLANKS " \t\r\n"

/* Maximum beginnings of encoded words behind the end of the last one. */
#define WORDS 8

static const char *const addresses[CRM_MAIL_ADDRESS_FIELDS] = {
    "From", "Sender", "To", "Cc", "Bcc", "Reply-To", "Return-Path",
    "Delivered-To", "Envelope-To", "X-Original-To", "X-Envelope-To",
    "X-Delivered-To", "X-Forwarded-To", "Errors-To",
    "X-Failed-Recipients", "Disposition-Notification-To", "Mail-Followup-To",
    "Mail-Reply-To", "Resent-From", "Resent-Sender", "Resent-To", "Resent-Cc",
    "Resent-Bcc", "Resent-Reply-To"
};

apr_size_t crm_mail_head_name(const char *line, apr_size_t len)
{
    apr_size_t name = 0, i;

    while (name < len && line[name] > ' ' && line[name] < 0x7f
           && line[name] != ':') {
        name++;
    }
    for (i = name; i < len && (line[i] == ' ' || line[i] == '\t'); i++) {
    }
    return i < len && line[i] == ':' ? name : 0;
}

static int is_name(const char *line, apr_size_t len, const char *name)
{
    return len == strlen(name) && !strncasecmp(line, name, len);
}

/* Return the kind of the field NAME, LEN bytes, which HEAD gets. */
static crm_mail_field_t kind_of(crm_mail_head_t *head, const char *name,
                                apr_size_t len)
{
    if (head->fields++ >= FIELDS || head->block.len >= HEAD_BYTES) {
        return CRM_MAIL_FIELD_DROPPED;
    }
    if (len > 8 && !strncasecmp(name, "Content-", 8)) {
        head->has_type |= is_name(name, len, "Content-Type");
        return CRM_MAIL_FIELD_CONTENT;
    }
    for (size_t i = 0; i < CRM_NELTS(addresses); i++) {
        if (is_name(name, len, addresses[i])) {
            return ++head->counts[i] > SAME ? CRM_MAIL_FIELD_DROPPED
                                            : CRM_MAIL_FIELD_ADDRESSES;
        }
    }
    return CRM_MAIL_FIELD_OTHER;
}

/* Return the offset in FIELD, LEN bytes, after which COUNT characters C stand;
 * LEN if there are fewer. */
static apr_size_t offset_of(const char *field, apr_size_t len, char c,
                            int count)
{
    for (apr_size_t i = 0; i < len; i++) {
        if (field[i] == c && !count--) {
            return i;
        }
    }
    return len;
}

/* Return the length of FIELD, LEN bytes of its beginning, up to the last of the
 * characters ENDS: without what may be incomplete; 0 if nothing is left. */
static apr_size_t without_end(const char *field, apr_size_t len,
                              const char *ends)
{
    apr_size_t colon = offset_of(field, len, ':', 0);

    while (len > colon && !strchr(ends, field[len - 1])) {
        len--;
    }
    return len > colon + 1 ? len - 1 : 0;
}

/* Write blanks over the beginnings of encoded words that do not end in FIELD, LEN
 * bytes, except for the first WORDS. Return whether there were more. */
static int limit_words(char *field, apr_size_t len)
{
    char *end = field + len, *last = end - 1, *c;
    int words = 0;

    while (last > field && (last[-1] != '?' || last[0] != '=')) {
        last--;
    }
    for (c = last; c < end - 1; c++) {
        if (c[0] == '=' && c[1] == '?' && ++words > WORDS) {
            c[0] = ' ';
        }
    }
    return words > WORDS;
}

/* Change FIELD, *LEN_P bytes of KIND, to what is read. OVER: its end is
 * missing. */
static void limit_field(char *field, apr_size_t *len_p, crm_mail_field_t kind,
                        int over)
{
    apr_size_t at = *len_p;

    switch (kind) {
    case CRM_MAIL_FIELD_ADDRESSES:
        for (at = offset_of(field, at, ':', COLONS); at < *len_p; at++) {
            field[at] = field[at] == ':' ? ' ' : field[at];
        }
        *len_p = over ? without_end(field, *len_p, ",") : *len_p;
        break;
    case CRM_MAIL_FIELD_CONTENT:
        at = offset_of(field, at, ';', SEMICOLONS);
        *len_p = over && at == *len_p ? without_end(field, at, ";") : at;
        break;
    default:
        *len_p = over ? without_end(field, *len_p, " \t\n") : *len_p;
        break;
    }
}

/* Return whether VALUE begins as "text/plain", or with a comment. */
static int is_type(const char *value)
{
    static const char ends[] = "/;" BLANKS;
    const char *end = value + strcspn(value, ends);
    const char *slash = end + strspn(end, BLANKS);

    return *value == '('
           || (end > value && *slash == '/'
               && strcspn(slash + 1 + strspn(slash + 1, BLANKS), ends));
}

/* Return a copy of the last field of HEAD in its pool. */
static char *copy_field(const crm_mail_head_t *head)
{
    return apr_pstrmemdup(head->block.pool, head->block.data + head->start,
                          head->block.len - head->start);
}

/* Types of texts as some write them; as they are meant they are HTML, or plain. */
static const struct {
    const char *name;
    int html;
} mistaken[] = {{"plain/text", 0}, {"html/text", 1}, {"html", 1}};

/* Let the last field of HEAD, a Content-Type, have a type if it has none: that of
 * several parts if it has their boundary, else that of a text, as without the field
 * (RFC 2045, 5.2). What names a file is left as it is. */
static void repair_type(crm_mail_head_t *head)
{
    char *field = copy_field(head);
    char *value = strchr(field, ':') + 1, *end;
    int bare, parts, html = 0, known = 1;

    value += strspn(value, BLANKS);
    if (*value == '"' && (end = strchr(value + 1, '"'))) {
        *value++ = *end = ' ';
        memcpy(head->block.data + head->start, field, strlen(field));
    }
    end = value + strcspn(value, ";" BLANKS);
    bare = !strncasecmp(value, "boundary=", 9);
    if (bare) {
        end = apr_pstrcat(head->block.pool, "; ", value, NULL);
    }
    parts = !strncasecmp(value, "multipart", 9)
            || (strcasestr(end, "boundary=") && !strchr("tT", *value));
    for (size_t i = 0; i < CRM_NELTS(mistaken); i++) {
        if (is_name(value, (apr_size_t)(end - value), mistaken[i].name)) {
            html = mistaken[i].html;
            known = 0;
        }
    }
    if (known && ((!bare && is_type(value))
                  || (!parts && strcasestr(value, "name")
                      && strncasecmp(value, "text", 4)))) {
        return;
    }
    head->block.len = head->start;
    crm_buf_printf(&head->block, "Content-Type: %s%s",
                   parts ? "multipart/mixed" : html ? "text/html"
                   : "text/plain", *end ? end : "\n");
}

/* Let what follows the first word of FIELD, a type or a disposition, be a
 * parameter: some write "text/html charset=utf-8" or "text/html, charset=utf-8".
 * Return the end of the word. */
static char *end_word(char *field)
{
    char *at = strchr(field, ':') + 1, *end;

    at += strspn(at, BLANKS);
    end = at + strcspn(at, ";,(" BLANKS);
    at = end + strspn(end, BLANKS);
    if (*at == ',') {
        *at = ';';
    }
    else if (at > end && apr_isalpha(*at) && end[-1] != '/'
             && strchr("=:", at[strcspn(at, "=:;/" BLANKS)])) {
        *end = ';';
    }
    return end;
}

/* Repair the parameters of the last field of HEAD, a Content-Type: some write
 * "text/html; charset: utf-8". */
static void repair_parameters(crm_mail_head_t *head)
{
    static const char *const names[] = {"charset", "boundary"};
    char *field = copy_field(head), *end = end_word(field), *at;

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        at = strcasestr(end, names[i]);
        if (at) {
            at += strlen(names[i]);
            at += strspn(at, " \t");
            *at = *at == ':' ? '=' : *at;
        }
    }
    memcpy(head->block.data + head->start, field, strlen(field));
}

/* Let the last field of HEAD, a Content-Disposition, have a disposition before the
 * name of its file, and a semicolon between them. */
static void repair_disposition(crm_mail_head_t *head)
{
    char *field = copy_field(head);
    const char *value = strchr(field, ':') + 1;

    value += strspn(value, BLANKS);
    if (!strncasecmp(value, "filename=", 9)
        || !strncasecmp(value, "filename*", 9)) {
        head->block.len = head->start;
        crm_buf_printf(&head->block, "Content-Disposition: attachment; %s",
                       value);
        return;
    }
    end_word(field);
    memcpy(head->block.data + head->start, field, strlen(field));
}

/* Let the last field of HEAD, a Content-Transfer-Encoding, have a name that is known,
 * without quotes and a semicolon: some write "base-64". */
static void repair_encoding(crm_mail_head_t *head)
{
    static const char *const names[] = {"base64", "quoted-printable"};
    const char *value = strchr(copy_field(head), ':') + 1;
    char word[24];
    apr_size_t len = 0;

    for (; *value && *value != '(' && len + 1 < sizeof(word); value++) {
        if (apr_isalnum(*value)) {
            word[len++] = *value;
        }
    }
    word[len] = '\0';
    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        const char *at = names[i];
        apr_size_t same = 0;

        for (; *at && (*at == '-' || apr_tolower(word[same]) == *at); at++) {
            same += *at != '-';
        }
        if (!*at && same == len) {
            head->block.len = head->start;
            crm_buf_printf(&head->block, "Content-Transfer-Encoding: %s\n",
                           names[i]);
            return;
        }
    }
}

/* Repair the last field of HEAD, which is complete. */
static void repair_field(crm_mail_head_t *head)
{
    const char *field = head->block.data + head->start;
    apr_size_t len = strcspn(field, ": \t");

    if (is_name(field, len, "Content-Type")) {
        repair_type(head);
        repair_parameters(head);
    }
    else if (is_name(field, len, "Content-Disposition")) {
        repair_disposition(head);
    }
    else if (is_name(field, len, "Content-Transfer-Encoding")) {
        repair_encoding(head);
    }
}

/* End the last field of HEAD, if it is in BLOCK. */
static void end_field(crm_mail_head_t *head)
{
    char *field;
    apr_size_t whole, len;

    if (head->field == CRM_MAIL_FIELD_CONTENT && !head->over) {
        repair_field(head);
    }
    field = head->block.data + head->start;
    whole = len = head->block.len - head->start;
    if (head->field == CRM_MAIL_FIELD_OTHER
        || head->field == CRM_MAIL_FIELD_ADDRESSES
        || head->field == CRM_MAIL_FIELD_CONTENT) {
        limit_field(field, &len, head->field, head->over);
        head->cut |= limit_words(field, len) || head->over || len < whole;
        head->block.len = head->start + len;
        if (len && field[len - 1] != '\n') {
            crm_buf_putc(&head->block, '\n');
        }
    }
    head->over = 0;
}

/* Return whether LINE, LEN bytes and no field, goes on the last field of HEAD: a
 * parameter that is not indented. */
static int is_parameter(const crm_mail_head_t *head, const char *line,
                        apr_size_t len)
{
    static const char *const names[] = {
        "boundary=", "charset=", "name=", "filename=", "report-type=",
        "type=", "format="
    };
    apr_size_t end = head->block.len;

    while (end > head->start && strchr(BLANKS, head->block.data[end - 1])) {
        end--;
    }
    for (size_t i = 0; head->field == CRM_MAIL_FIELD_CONTENT
         && end > head->start && head->block.data[end - 1] == ';'
         && i < CRM_NELTS(names); i++) {
        if (len > strlen(names[i])
            && !strncasecmp(line, names[i], strlen(names[i]))) {
            return 1;
        }
    }
    return 0;
}

/* Lines of a header that may be boundaries which are looked at. */
#define DELIMITERS 8

/* Return whether LINE, LEN bytes and no field, is the boundary that HEAD declares: the
 * blank line before it is missing. */
static int is_delimiter(crm_mail_head_t *head, const char *line,
                        apr_size_t len)
{
    const char *at = head->block.data, *end = at + head->block.len;

    if (!head->has_type || len < 3 || memcmp(line, "--", 2)
        || head->delimiters++ >= DELIMITERS) {
        return 0;
    }
    line += 2;
    for (len -= 2; len && strchr(BLANKS, line[len - 1]); len--) {
    }
    while (len && (at = memmem(at, (size_t)(end - at), line, len))) {
        const char *behind = at + len;

        if (at > head->block.data && strchr("=\"", at[-1])
            && behind < end && strchr("\";" BLANKS, *behind)) {
            return 1;
        }
        at++;
    }
    return 0;
}

/* Add LINE, LEN bytes, to the last field of HEAD, as far as it has room. */
static void add_line(crm_mail_head_t *head, const char *line, apr_size_t len)
{
    apr_size_t max = head->field == CRM_MAIL_FIELD_CONTENT ? CONTENT_BYTES
                                                           : FIELD_BYTES;
    apr_size_t room = head->start + max - head->block.len;

    if (head->field == CRM_MAIL_FIELD_BROKEN) {
        return;
    }
    if (head->field == CRM_MAIL_FIELD_DROPPED) {
        head->cut = 1;
        return;
    }
    head->over |= len > room;
    crm_buf_add(&head->block, line, len > room ? room : len);
}

void crm_mail_head_begin(crm_mail_head_t *head, apr_pool_t *pool)
{
    memset(head, 0, sizeof(*head));
    crm_buf_init(&head->block, 1024, pool);
}

int crm_mail_head_add(crm_mail_head_t *head, const char *line, apr_size_t len)
{
    apr_size_t name = crm_mail_head_name(line, len);
    int folded = len && (*line == ' ' || *line == '\t');

    if ((head->field == CRM_MAIL_FIELD_NONE && (folded || !name))
        || (!folded && !name && is_delimiter(head, line, len))) {
        return 0;
    }
    if (!folded && is_parameter(head, line, len)) {
        add_line(head, " ", 1);
        folded = 1;
    }
    if (!folded) {
        end_field(head);
        head->start = head->block.len;
        head->field = name ? kind_of(head, line, name)
                           : CRM_MAIL_FIELD_BROKEN;
    }
    add_line(head, line, len);
    return 1;
}

void crm_mail_head_end(crm_mail_head_t *head)
{
    end_field(head);
    head->start = head->block.len;
    head->field = CRM_MAIL_FIELD_BROKEN;
}
