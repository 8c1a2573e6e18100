/* SPDX-License-Identifier: Apache-2.0 */
/* mail_charset.c: converting text of any charset to UTF-8 */
#include "mail_charset.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

#include <unicode/ucnv.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_text.h"
#include "mail_detect.h"
#include "mail_jis.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Add the LEN BYTES of UTF-8 to BUF, with U+FFFD for invalid bytes. */
static void repair(crm_buf_t *buf, const char *bytes, apr_size_t len)
{
    while (len) {
        apr_size_t n;

        crm_text_next(&n, bytes, len);
        if (n) {
            crm_buf_add(buf, bytes, n);
        }
        else {
            crm_buf_puts(buf, REPLACEMENT);
            n = 1;
        }
        bytes += n;
        len -= n;
    }
}

/* Add the LEN BYTES to BUF, converted by iconv()'s converter NAME. A system may lack
 * it: then they are taken for UTF-8. */
static void convert_iconv(crm_buf_t *buf, const char *name, const char *bytes,
                          apr_size_t len)
{
    iconv_t converter = iconv_open("UTF-8", name);
    union {
        const char *from;
        char *to;               /* iconv() does not write to it */
    } in = {bytes};
    size_t left = len;

    if (converter == (iconv_t)-1) {
        repair(buf, bytes, len);
        return;
    }
    while (left) {
        char *out = crm_buf_reserve(buf, 64);
        size_t room = buf->size - buf->len;
        size_t done = iconv(converter, &in.to, &left, &out, &room);

        buf->len = (apr_size_t)(out - buf->data);
        if (done == (size_t)-1 && errno == E2BIG) {
            crm_buf_grow(buf, left + 64);
        }
        else if (done == (size_t)-1) {
            crm_buf_puts(buf, REPLACEMENT);
            in.from++;
            left--;
        }
    }
    iconv_close(converter);
}

/* Add the LEN BYTES to BUF, converted by the ICU converters FROM and TO. */
static void convert(crm_buf_t *buf, UConverter *to, UConverter *from,
                    const char *bytes, apr_size_t len)
{
    UChar pivot[1024], *begin = pivot, *end = pivot;
    const char *in = bytes;
    UErrorCode error;

    do {
        char *out = crm_buf_reserve(buf, 1024);

        error = U_ZERO_ERROR;
        ucnv_convertEx(to, from, &out, buf->data + buf->size, &in, bytes + len,
                       pivot, &begin, &end, pivot + CRM_NELTS(pivot),
                       FALSE, TRUE, &error);
        buf->len = (apr_size_t)(out - buf->data);
    } while (error == U_BUFFER_OVERFLOW_ERROR);
}

/* Add the LEN BYTES to BUF, converted by ICU's converter NAME. */
static void convert_icu(crm_buf_t *buf, const char *name, const char *bytes,
                        apr_size_t len)
{
    UErrorCode error = U_ZERO_ERROR;
    UConverter *from = ucnv_open(name, &error);
    UConverter *to = ucnv_open("UTF-8", &error);

    if (U_SUCCESS(error)) {
        convert(buf, to, from, bytes, len);
    }
    else {
        repair(buf, bytes, len);
    }
    ucnv_close(from);
    ucnv_close(to);
}

/* Return whether the LEN BYTES are the beginning of a character of UTF-8. */
static int is_cut(const char *bytes, apr_size_t len)
{
    unsigned char c = (unsigned char)*bytes;
    apr_size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;

    for (apr_size_t i = 1; i < len && i < 4; i++) {
        need = ((unsigned char)bytes[i] & 0xc0) == 0x80 ? need : 0;
    }
    return len < need;
}

/* Return the percentage of invalid UTF-8 characters among those of the LEN
 * BYTES that are not ASCII. An incomplete one at the end does not count. */
static unsigned percent_invalid(const char *bytes, apr_size_t len)
{
    apr_size_t bad = 0, all = 1;

    while (len) {
        apr_size_t n;

        crm_text_next(&n, bytes, len);
        if (!n && is_cut(bytes, len)) {
            break;
        }
        all += n != 1;
        bad += !n;
        n += !n;
        bytes += n;
        len -= n;
    }
    return (unsigned)(bad * 100 / all);
}

/* Add the LEN BYTES of UTF-16 or UTF-32 to BUF. Without a byte order mark: most
 * text has more zeros in the higher bytes. */
static void convert_utf16(crm_buf_t *buf, const char *name, const char *bytes,
                          apr_size_t len)
{
    apr_size_t even = 0, odd = 0;

    for (apr_size_t i = 0; i + 1 < len && i < 1000; i += 2) {
        even += !bytes[i];
        odd += !bytes[i + 1];
    }
    if (!strcmp(name, "UTF-16") && odd > even
        && !crm_text_has_wide_mark(bytes, len)) {
        name = "UTF-16LE";
    }
    convert_icu(buf, name, bytes, len);
}

/* Add the LEN BYTES in CHARSET to BUF. */
static void decode(crm_buf_t *buf, const crm_mail_charset_t *charset,
                   const char *bytes, apr_size_t len)
{
    switch (charset->coding) {
    case CRM_MAIL_UNKNOWN:
    case CRM_MAIL_UTF8:
        repair(buf, bytes, len);
        break;
    case CRM_MAIL_JIS: {
        apr_size_t euc_len;
        const char *euc = crm_mail_jis(&euc_len, bytes, len, buf->pool);

        if (euc) {
            convert_icu(buf, "euc-jp-2007", euc, euc_len);
        }
        else {
            convert_icu(buf, "ISO-2022-JP-2", bytes, len);
        }
        break;
    }
    case CRM_MAIL_ICONV:
        convert_iconv(buf, charset->name, bytes, len);
        break;
    case CRM_MAIL_WIDE:
        convert_utf16(buf, charset->name, bytes, len);
        break;
    default:
        convert_icu(buf, charset->name, bytes, len);
        break;
    }
}

/* ---- which charset ------------------------------------------------------- */

/* A few characters of two bytes can be valid UTF-8 of two bytes each by chance.
 * Longer text in another charset is not. */
#define CHANCE 24

/* Percentage of invalid characters from which on text is not in the charset that
 * it says. */
#define INVALID 40

/* Return whether the LEN BYTES have one above 0x7f. */
static int has_high(const char *bytes, apr_size_t len)
{
    apr_size_t i = 0;

    while (i < len && !(bytes[i] & 0x80)) {
        i++;
    }
    return i < len;
}

/* Return whether the LEN BYTES, valid UTF-8, have a character of two bytes. */
static int has_pair(const char *bytes, apr_size_t len)
{
    apr_size_t i = 0;

    while (i < len && ((unsigned char)bytes[i] & 0xe0) != 0xc0) {
        i++;
    }
    return i < len;
}

static const crm_mail_charset_t utf8 = {"UTF-8", CRM_MAIL_UTF8};

/* How often a detector is asked for a value. */
#define GUESSES 8

/* Return what a detector says of the LEN BYTES, or has said of GUESS. */
static crm_mail_charset_t detect(crm_mail_guess_t *guess, const char *bytes,
                                 apr_size_t len)
{
    if (guess->count < GUESSES) {
        guess->charset = crm_mail_detect(bytes, len);
        guess->count++;
    }
    return guess->charset;
}

/* Return whether the LEN BYTES are UTF-16 with a byte order mark, whatever is said
 * of them (Encoding Standard, 6). */
static int has_wide_mark(const char *bytes, apr_size_t len)
{
    return crm_text_has_wide_mark(bytes, len) && memchr(bytes, '\0', len);
}

/* Return whether the LEN BYTES can be in CHARSET, one of CRM_MAIL_WIDE; HIGH: they
 * have one above 0x7f. Each blank and line end of UTF-16 and UTF-32 has a zero. */
static int can_be_wide(const crm_mail_charset_t *charset, const char *bytes,
                       apr_size_t len, int high)
{
    if (strncmp(charset->name, "UTF-16", 6)
        && strncmp(charset->name, "UTF-32", 6)) {
        return !high;
    }
    return memchr(bytes, '\0', len) || !crm_text_valid_utf8(bytes, len)
           || (len < CHANCE && len % 2 == 0 && !memchr(bytes, ' ', len)
               && !memchr(bytes, '\n', len));
}

/* Return whether CHARSET has characters of one byte or more that only it says. */
static int is_coded(const crm_mail_charset_t *charset)
{
    return charset->coding == CRM_MAIL_SINGLE
           || charset->coding == CRM_MAIL_MULTI
           || charset->coding == CRM_MAIL_ICONV;
}

/* Return the charset of the LEN BYTES, declared as CHARSET, with HINT if that
 * says nothing, else by GUESS. CHARSET and HINT may be NULL. */
static crm_mail_charset_t charset_of(crm_mail_guess_t *guess,
                                     const char *bytes, apr_size_t len,
                                     const char *charset, const char *hint)
{
    static const crm_mail_charset_t jis = {"ISO-2022-JP", CRM_MAIL_JIS},
                                    wide = {"UTF-16", CRM_MAIL_WIDE};
    crm_mail_charset_t said = crm_mail_label(charset);
    int high = has_high(bytes, len);

    if (has_wide_mark(bytes, len)) {
        return strncmp(said.name ? said.name : "", "UTF-32", 6) ? wide : said;
    }
    if (said.coding == CRM_MAIL_WIDE) {
        if (can_be_wide(&said, bytes, len, high)) {
            return said;
        }
        said = crm_mail_label(NULL);
    }
    if (!high && (said.coding == CRM_MAIL_JIS || crm_mail_has_jis(bytes, len))) {
        return jis;
    }
    if (said.coding == CRM_MAIL_JIS && crm_mail_has_jis(bytes, len)) {
        return said;
    }
    if (high && crm_text_valid_utf8(bytes, len)
        && (said.coding != CRM_MAIL_MULTI || len >= CHANCE
            || !has_pair(bytes, len))) {
        return utf8;
    }
    if (high && said.coding == CRM_MAIL_SINGLE) {
        return crm_mail_windows(said, bytes, len);
    }
    if (!high || is_coded(&said)
        || (said.coding == CRM_MAIL_UTF8
            && percent_invalid(bytes, len) <= INVALID)) {
        return said;
    }
    said = crm_mail_label(hint);
    return is_coded(&said) ? said : detect(guess, bytes, len);
}

/* Return the percentage of U+FFFD among the characters of BUF that are not
 * ASCII. */
static unsigned percent_replaced(const crm_buf_t *buf)
{
    apr_size_t bad = 0, all = 1;

    for (apr_size_t i = 0; i < buf->len; i++) {
        unsigned char c = (unsigned char)buf->data[i];

        all += c >= 0xc2;
        bad += c == 0xef && i + 2 < buf->len
               && !memcmp(buf->data + i, REPLACEMENT, 3);
    }
    return (unsigned)(bad * 100 / all);
}

/* Return the text of BUF, changed in place: without a byte order mark, NUL and
 * control characters, and with LF as the end of lines. */
static const char *clean(crm_buf_t *buf)
{
    char *out = buf->data, *in = buf->data, *end = buf->data + buf->len;

    in += crm_text_mark(in, buf->len);
    for (; in < end; in++) {
        unsigned char c = (unsigned char)*in;

        if (c == '\r') {
            if (in + 1 == end || in[1] != '\n') {
                *out++ = '\n';
            }
        }
        else if (c == '\t' || c == '\n' || (c >= ' ' && c != 0x7f)) {
            *out++ = *in;
        }
    }
    *out = '\0';
    return buf->data;
}

const char *crm_mail_utf8_or(const char *bytes, apr_size_t len,
                             const char *charset, const char *hint,
                             crm_mail_guess_t *guess, apr_pool_t *pool)
{
    crm_mail_charset_t found = charset_of(guess, bytes, len, charset, hint);
    crm_buf_t buf;

    crm_buf_init(&buf, len + 64, pool);
    decode(&buf, &found, bytes, len);
    if (found.coding == CRM_MAIL_MULTI && percent_replaced(&buf) > INVALID) {
        buf.len = 0;
        found = crm_text_valid_utf8(bytes, len) ? utf8
                : detect(guess, bytes, len);
        decode(&buf, &found, bytes, len);
    }
    crm_buf_putc(&buf, '\0');
    buf.len--;
    return clean(&buf);
}

const char *crm_mail_utf8(const char *bytes, apr_size_t len,
                          const char *charset, apr_pool_t *pool)
{
    crm_mail_guess_t guess = {{NULL, CRM_MAIL_UNKNOWN}, 0};

    return crm_mail_utf8_or(bytes, len, charset, NULL, &guess, pool);
}

const char *crm_mail_cut(apr_size_t *cut_p, const char *text, apr_size_t max,
                         apr_pool_t *pool)
{
    apr_size_t len = strlen(text), end = 0;

    *cut_p = 0;
    if (len <= max) {
        return text;
    }
    while (end < len && max) {
        do {
            end++;
        } while ((text[end] & 0xc0) == 0x80);
        max--;
    }
    *cut_p = crm_text_length(text + end, len - end);
    return *cut_p ? apr_pstrmemdup(pool, text, end) : text;
}

const char *crm_mail_line(const char *text, apr_size_t max, apr_pool_t *pool)
{
    const char *line;
    apr_size_t cut;

    if (!text) {
        return NULL;
    }
    text = crm_mail_utf8(text, strlen(text), NULL, pool);
    line = crm_text_one_line(text, strlen(text), 0, pool);
    return *line ? crm_mail_cut(&cut, line, max, pool) : NULL;
}
