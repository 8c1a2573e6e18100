/* SPDX-License-Identifier: Apache-2.0 */
/* mail_charset.c: converting text of any charset to UTF-8 */
#include "mail_charset.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_text.h"

/* Names of charsets in mails, and the charset of iconv() that decodes them:
 * often Microsoft's superset, as in the WHATWG's Encoding Standard. Names from
 * mails are never passed to iconv_open(). */
static const struct {
    const char *name, *iconv;
} charsets[] = {
    {"ansi_x3.4-1968", "CP1252"}, {"big5", "BIG5-HKSCS"},
    {"big5-hkscs", "BIG5-HKSCS"}, {"cp1250", "CP1250"}, {"cp1251", "CP1251"},
    {"cp1252", "CP1252"}, {"cp437", "CP437"}, {"cp850", "CP850"},
    {"cp866", "CP866"}, {"cp932", "CP932"}, {"cp936", "GB18030"},
    {"cp949", "CP949"}, {"euc-jp", "EUC-JP"}, {"euc-kr", "CP949"},
    {"gb18030", "GB18030"}, {"gb2312", "GB18030"}, {"gbk", "GB18030"},
    {"gb_2312-80", "GB18030"}, {"hz-gb-2312", NULL}, {"ibm437", "CP437"},
    {"ibm850", "CP850"}, {"ibm866", "CP866"}, {"iso-2022-jp", "ISO-2022-JP"},
    {"iso-2022-kr", "ISO-2022-KR"}, {"iso-8859-1", "CP1252"},
    {"iso-8859-10", "ISO-8859-10"}, {"iso-8859-13", "ISO-8859-13"},
    {"iso-8859-14", "ISO-8859-14"}, {"iso-8859-15", "ISO-8859-15"},
    {"iso-8859-16", "ISO-8859-16"}, {"iso-8859-2", "ISO-8859-2"},
    {"iso-8859-3", "ISO-8859-3"}, {"iso-8859-4", "ISO-8859-4"},
    {"iso-8859-5", "ISO-8859-5"}, {"iso-8859-6", "ISO-8859-6"},
    {"iso-8859-7", "ISO-8859-7"}, {"iso-8859-8", "ISO-8859-8"},
    {"iso-8859-8-i", "ISO-8859-8"}, {"iso-8859-9", "CP1254"},
    {"iso8859-1", "CP1252"}, {"iso8859-15", "ISO-8859-15"},
    {"iso8859-2", "ISO-8859-2"}, {"iso_8859-1", "CP1252"},
    {"koi8-r", "KOI8-R"}, {"koi8-u", "KOI8-U"},
    {"ks_c_5601-1987", "CP949"}, {"latin1", "CP1252"},
    {"macintosh", "MACINTOSH"}, {"ms_kanji", "CP932"},
    {"shift-jis", "CP932"}, {"shift_jis", "CP932"}, {"sjis", "CP932"},
    {"tis-620", "CP874"}, {"utf-16", "UTF-16"}, {"utf-16be", "UTF-16BE"},
    {"utf-16le", "UTF-16LE"}, {"utf-32", "UTF-32"}, {"utf-7", "UTF-7"},
    {"windows-1250", "CP1250"}, {"windows-1251", "CP1251"},
    {"windows-1252", "CP1252"}, {"windows-1253", "CP1253"},
    {"windows-1254", "CP1254"}, {"windows-1255", "CP1255"},
    {"windows-1256", "CP1256"}, {"windows-1257", "CP1257"},
    {"windows-1258", "CP1258"}, {"windows-31j", "CP932"},
    {"windows-874", "CP874"}, {"windows-936", "GB18030"},
    {"windows-949", "CP949"}, {"x-gbk", "GB18030"}, {"x-sjis", "CP932"},
};

#define REPLACEMENT "\xef\xbf\xbd"

/* Return iconv()'s name for CHARSET of a mail; NULL if it is unknown, us-ascii
 * or utf-8. */
static const char *iconv_name(const char *charset)
{
    for (size_t i = 0; charset && i < CRM_NELTS(charsets); i++) {
        if (!strcasecmp(charsets[i].name, charset)) {
            return charsets[i].iconv;
        }
    }
    return NULL;
}

/* Add the LEN BYTES to BUF, converted by CONVERTER. */
static void convert(crm_buf_t *buf, iconv_t converter, const char *bytes,
                    apr_size_t len)
{
    union {
        const char *from;
        char *to;               /* iconv() does not write to it */
    } in = {bytes};
    size_t left = len;

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
}

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

/* Return whether the LEN BYTES are valid UTF-8 and not only ASCII. */
static int is_utf8(const char *bytes, apr_size_t len)
{
    apr_size_t i = 0;

    while (i < len && !(bytes[i] & 0x80)) {
        i++;
    }
    return i < len && crm_text_valid_utf8(bytes, len);
}

/* Return the percentage of invalid UTF-8 characters among those of the LEN
 * BYTES that are not ASCII. CUT: ignore an incomplete character at the end. */
static unsigned percent_invalid(const char *bytes, apr_size_t len, int cut)
{
    apr_size_t bad = 0, all = 1;

    while (len) {
        apr_size_t n;

        crm_text_next(&n, bytes, len);
        if (!n && cut && len < 4 && (unsigned char)*bytes >= 0xc2) {
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

/* Return iconv()'s name for the charset of the LEN BYTES, declared as CHARSET;
 * NULL: UTF-8. */
static const char *guess(const char *bytes, apr_size_t len,
                         const char *charset)
{
    const char *name = iconv_name(charset);
    int wide = name && (!strncmp(name, "UTF-", 4)
                        || !strncmp(name, "ISO-2022", 8));

    if (!wide && is_utf8(bytes, len)) {
        /* Longer text in another charset is never valid UTF-8 by chance. A few
         * characters in a double-byte charset can be. */
        return name && (!strcmp(name, "GB18030") || !strcmp(name, "CP932")
                        || !strncmp(name, "BIG5", 4)
                        || !strcmp(name, "CP949")) && len < 24 ? name : NULL;
    }
    if (name) {
        return name;
    }
    if (!charset && memmem(bytes, len, "\033$B", 3)) {
        return "ISO-2022-JP";
    }
    return percent_invalid(bytes, len, charset
                           && !strcasecmp(charset, "utf-8")) > 40
           ? "CP1252" : NULL;
}

/* Return the text of BUF, changed in place: without a byte order mark, NUL and
 * control characters, and with LF as the end of lines. */
static const char *clean(crm_buf_t *buf)
{
    char *out = buf->data, *in = buf->data, *end = buf->data + buf->len;

    if (buf->len >= 3 && !memcmp(in, "\xef\xbb\xbf", 3)) {
        in += 3;
    }
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

const char *crm_mail_utf8(const char *bytes, apr_size_t len,
                          const char *charset, apr_pool_t *pool)
{
    const char *name = guess(bytes, len, charset);
    iconv_t converter = name ? iconv_open("UTF-8", name) : (iconv_t)-1;
    crm_buf_t buf;

    crm_buf_init(&buf, len + 64, pool);
    if (converter != (iconv_t)-1) {
        convert(&buf, converter, bytes, len);
        iconv_close(converter);
    }
    else {
        repair(&buf, bytes, len);
    }
    crm_buf_putc(&buf, '\0');
    buf.len--;
    return clean(&buf);
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
