/* SPDX-License-Identifier: Apache-2.0 */
/* mail_base64.c: what is said to be base64
 *
 * Some programs declare base64 and send the text as it is. */
#include "mail_base64.h"

#include <string.h>

#include "apr_base64.h"

#include "crm_text.h"
#include "mail_label.h"

/* Bytes of the first line that are decoded. */
#define SAMPLE 400

/* Least digits of a text that is base64 although nothing says so. */
#define BARE 40

/* Least digits of a line that goes on behind padding. Words may stand there. */
#define PIECE 8

/* Return the value of the digit C; 64 if it is none. */
static unsigned value_of(char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 26
           : c >= '0' && c <= '9' ? (unsigned)(c - '0') + 52
           : c == '+' ? 62 : c == '/' ? 63 : 64;
}

static int is_digit(char c)
{
    return value_of(c) != 64;
}

/* Return whether BYTES, LEN of them, can be a text: without control characters,
 * and UTF-8 if UTF8. CUT: they may end within a character. Or it is UTF-16 with a
 * byte order mark, whatever is said. */
static int is_text(const char *bytes, apr_size_t len, int utf8, int cut)
{
    if (len > 3 && crm_text_has_wide_mark(bytes, len)) {
        return 1;
    }
    for (apr_size_t i = 0; i < len; i++) {
        if ((unsigned char)bytes[i] < ' '
            && !strchr("\t\n\r\f\033", bytes[i])) {
            return 0;
        }
    }
    while (cut && len && (bytes[len - 1] & 0x80)) {
        len--;
    }
    return len && (!utf8 || crm_text_valid_utf8(bytes, len));
}

/* Return whether the digits of base64 in LINE, LEN bytes, are a text. */
static int decodes(const char *line, apr_size_t len, int utf8,
                   apr_pool_t *pool)
{
    char digits[SAMPLE + 1], *made;
    apr_size_t count = 0;

    for (apr_size_t i = 0; i < len && count < SAMPLE; i++) {
        if (is_digit(line[i])) {
            digits[count++] = line[i];
        }
    }
    digits[count - count % 4] = '\0';
    made = apr_palloc(pool, (apr_size_t)apr_base64_decode_len(digits) + 1);
    count = (apr_size_t)apr_base64_decode_binary((unsigned char *)made,
                                                 digits);
    return is_text(made, count, utf8, len > count * 4 / 3 + 4);
}

/* Return the length of the padding at C, if digits go on right behind it, before
 * END; 0 if they do not. */
static apr_size_t inner_padding(const char *c, const char *end)
{
    const char *behind = c;

    while (behind < end && *behind == '=') {
        behind++;
    }
    return behind < end && is_digit(*behind) ? (apr_size_t)(behind - c) : 0;
}

/* Return whether LINE, LEN bytes with DIGITS and nothing else before it, ends with
 * the padding that these need. */
static int is_padded(const char *line, apr_size_t len, apr_size_t digits)
{
    apr_size_t pads = 0;

    for (apr_size_t i = digits; i < len; i++) {
        pads += line[i] == '=';
    }
    return pads && (digits + pads) % 4 == 0;
}

/* Return the length of the first of several pieces of base64 in LINE, LEN bytes, with
 * its padding; 0 if there is anything else. Words and quoted-printable have '=',
 * too. */
static apr_size_t first_piece(const char *line, apr_size_t len)
{
    apr_size_t first = 0, start = 0, digits = 0;

    while (len && strchr(" \t\r", line[len - 1])) {
        len--;
    }
    for (apr_size_t i = 0; i < len; i++) {
        if (!is_digit(line[i])) {
            if (line[i] != '=') {
                return 0;
            }
            continue;
        }
        if (i && line[i - 1] == '=') {
            if (!is_padded(line + start, i - start, digits)) {
                return 0;
            }
            first = first ? first : i;
            start = i;
            digits = 0;
        }
        digits++;
    }
    return first;
}

int crm_mail_is_base64(const char *raw, apr_size_t len, const char *charset,
                       apr_pool_t *pool)
{
    crm_mail_charset_t known = crm_mail_label(charset);
    int utf8 = known.coding == CRM_MAIL_UNKNOWN
               || known.coding == CRM_MAIL_UTF8;
    apr_size_t line, digits = 0, last, piece;

    while (len && strchr(" \t\r\n", *raw)) {
        raw++;
        len--;
    }
    while (len && strchr(" \t\r\n", raw[len - 1])) {
        len--;
    }
    for (line = 0; line < len && raw[line] != '\n'; line++) {
        digits += is_digit(raw[line]);
    }
    piece = first_piece(raw, line);
    if (piece) {
        return decodes(raw, piece, utf8, pool);
    }
    for (last = line; last && strchr(" \t\r=", raw[last - 1]); last--) {
    }
    if (!line || (last == digits
                  && (is_padded(raw, line, digits) || line < len
                      || (!utf8 && (known.coding != CRM_MAIL_SINGLE
                                    || digits % 4 == 0))))) {
        return 1;
    }
    return decodes(raw, line, utf8, pool);
}

int crm_mail_is_bare_base64(const char *raw, apr_size_t len, apr_pool_t *pool)
{
    apr_size_t digits = 0, pads = 0, i;
    crm_buf_t buf;

    for (i = 0; i < len; i++) {
        if (is_digit(raw[i]) && !pads) {
            digits++;
        }
        else if (raw[i] == '=') {
            pads++;
        }
        else if (raw[i] != '\r' && raw[i] != '\n') {
            return 0;
        }
    }
    if (digits < BARE || pads > 2 || (digits + pads) % 4) {
        return 0;
    }
    crm_buf_init(&buf, len, pool);
    crm_mail_base64_add(&buf, raw, len);
    return is_text(buf.data, buf.len, 1, 0) && memchr(buf.data, ' ', buf.len);
}

apr_size_t crm_mail_base64_piece(const char *raw, apr_size_t len)
{
    const char *end = raw + len, *c = memchr(raw, '=', len), *line;
    apr_size_t digits = 0, inner = c ? inner_padding(c, end) : 0;

    if (inner) {
        return (apr_size_t)(c - raw) + inner;
    }
    while (c && c < end && *c == '=') {
        c++;
    }
    for (line = c; line && line < end && strchr(" \t\r\n", *line); line++) {
    }
    if (!c || !memchr(c, '\n', (apr_size_t)(line - c))) {
        return len;
    }
    for (c = line; c < end && is_digit(*c); c++) {
        digits++;
    }
    while (c < end && strchr("= \t\r", *c)) {
        c++;
    }
    return digits >= PIECE && (c == end || *c == '\n')
           ? (apr_size_t)(line - raw) : len;
}

/* Return whether LINE, LEN bytes without white space around it, is words, or a line
 * of other characters: no base64, not even with some that are wrong. */
static int is_words(const char *line, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        if (line[i] == ' ' || line[i] == '\t') {
            return 1;
        }
    }
    for (apr_size_t i = 0; i < len; i++) {
        if (is_digit(line[i])) {
            return 0;
        }
    }
    return len && *line != '=';
}

apr_size_t crm_mail_base64_end(const char *raw, apr_size_t len)
{
    const char *end = raw + len, *blank = NULL, *next;

    for (const char *line = raw; line < end; line = next) {
        const char *to;

        next = memchr(line, '\n', (size_t)(end - line));
        next = to = next ? next + 1 : end;
        while (to > line && strchr(" \t\r\n", to[-1])) {
            to--;
        }
        if (to == line) {
            blank = blank ? blank : line;
        }
        else if (blank && is_words(line, (apr_size_t)(to - line))) {
            return (apr_size_t)(blank - raw);
        }
        else {
            blank = NULL;
        }
    }
    return len;
}

void crm_mail_base64_add(crm_buf_t *buf, const char *text, apr_size_t len)
{
    unsigned bits = 0, count = 0;

    for (apr_size_t i = 0; i < len; i++) {
        unsigned value = value_of(text[i]);

        if (text[i] == '=') {
            count = 0;
        }
        if (value == 64) {
            continue;
        }
        bits = bits << 6 | value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            crm_buf_putc(buf, (char)(bits >> count & 0xff));
        }
    }
}

int crm_mail_base64_digits(apr_size_t *count_p, const char *raw,
                           apr_size_t len)
{
    apr_size_t i = 0;

    while (i < len && (is_digit(raw[i]) || memchr(" \t\r\n", raw[i], 4))) {
        *count_p += is_digit(raw[i++]);
    }
    return i == len;
}
