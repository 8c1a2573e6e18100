/* SPDX-License-Identifier: Apache-2.0 */
/* mail_word.c: encoded words in headers (RFC 2047) */
#include "mail_word.h"

#include <string.h>
#include <strings.h>

#include "apr_base64.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_buf.h"
#include "mail_base64.h"
#include "mail_charset.h"

#define RAW_BYTES (64 * 1024)
#define CHARSET_BYTES 80

/* An encoded word: "=?charset?Q?text?=". */
typedef struct word_t {
    const char *charset;        /* CHARSET_LEN bytes */
    size_t charset_len;
    char encoding;              /* 'q' or 'b' */
    const char *text;           /* LEN bytes */
    size_t len;
    const char *end;            /* behind it */
} word_t;

typedef struct decoder_t {
    const char *hint;
    crm_mail_guess_t guess;     /* of the texts that say nothing */
    int recode;                 /* words are to be written as words */
    int inner;                  /* it reads what words have said */
    apr_pool_t *pool;
    crm_buf_t out;
    crm_buf_t bytes;            /* decoded, of words in CHARSET */
    const char *charset;        /* NULL: there are none */
} decoder_t;

/* ---- one word ------------------------------------------------------------ */

/* Return the end "?=" of the text of a word at TEXT, NULL if there is none. In
 * quoted-printable "?=3D" may be a question mark and an equals sign. */
static const char *word_end(const char *text, char encoding)
{
    const char *end = strstr(text, "?=");

    while (end && encoding == 'q' && apr_isxdigit(end[2])
           && apr_isxdigit(end[3])) {
        const char *more = strstr(end + 2, "?=");

        if (!more || memmem(end + 2, (size_t)(more - end - 2), "=?", 2)) {
            break;
        }
        end = more;
    }
    return end;
}

/* Set *WORD to the encoded word at C. Return whether there is one. */
static int read_word(word_t *word, const char *c)
{
    const char *end;

    if (c[0] != '=' || c[1] != '?') {
        return 0;
    }
    word->charset = c + 2;
    for (end = c + 2; *end && *end != '?' && end - c < CHARSET_BYTES; end++) {
    }
    word->charset_len = (size_t)(end - word->charset);
    if (!word->charset_len || *end != '?' || !end[1] || !strchr("bBqQ", end[1])
        || end[2] != '?') {
        return 0;
    }
    word->encoding = (char)apr_tolower(end[1]);
    word->text = end + 3;
    end = word_end(word->text, word->encoding);
    if (!end) {
        return 0;
    }
    word->len = (size_t)(end - word->text);
    word->end = end + 2;
    return 1;
}

static int hex(char c)
{
    return apr_isdigit(c) ? c - '0' : apr_tolower(c) - 'a' + 10;
}

static void add_quoted(crm_buf_t *buf, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '=' && i + 2 < len && apr_isxdigit(text[i + 1])
            && apr_isxdigit(text[i + 2])) {
            crm_buf_putc(buf, (char)(hex(text[i + 1]) * 16
                                     + hex(text[i + 2])));
            i += 2;
        }
        else if (text[i] != '\r' && text[i] != '\n') {
            crm_buf_putc(buf, text[i] == '_' ? ' ' : text[i]);
        }
    }
}

/* ---- a header ------------------------------------------------------------ */

static const char *decode(const char *raw, const char *hint, int recode, int inner,
                          apr_pool_t *pool);

/* Return TEXT, which words have said, decoded if it is words itself: some programs
 * encode a header twice. */
static const char *decode_again(const decoder_t *decoder, const char *text)
{
    apr_size_t len = strlen(text);

    return !decoder->inner && len > 4 && !memcmp(text, "=?", 2)
           && !memcmp(text + len - 2, "?=", 2)
           ? decode(text, decoder->hint, 0, 1, decoder->pool) : text;
}

/* Write the words that wait. */
static void flush(decoder_t *decoder)
{
    const char *text;
    apr_size_t len;

    if (!decoder->charset) {
        return;
    }
    text = crm_mail_utf8_or(decoder->bytes.data, decoder->bytes.len,
                            decoder->charset, decoder->hint, &decoder->guess,
                            decoder->pool);
    text = decode_again(decoder, text);
    len = strlen(text);
    if (decoder->recode && len) {
        char *to;

        /* words beside each other need a blank, which does not count */
        if (decoder->out.len > 1
            && !memcmp(decoder->out.data + decoder->out.len - 2, "?=", 2)) {
            crm_buf_putc(&decoder->out, ' ');
        }
        crm_buf_puts(&decoder->out, "=?utf-8?B?");
        to = crm_buf_reserve(&decoder->out,
                             (apr_size_t)apr_base64_encode_len((int)len));
        decoder->out.len += (apr_size_t)apr_base64_encode_binary(
            to, (const unsigned char *)text, (int)len) - 1;
        crm_buf_puts(&decoder->out, "?=");
    }
    else {
        crm_buf_add(&decoder->out, text, len);
    }
    decoder->bytes.len = 0;
    decoder->charset = NULL;
}

static void add_word(decoder_t *decoder, const word_t *word)
{
    if (!decoder->charset
        || strlen(decoder->charset) != word->charset_len
        || strncasecmp(decoder->charset, word->charset, word->charset_len)) {
        flush(decoder);
        decoder->charset = apr_pstrmemdup(decoder->pool, word->charset,
                                          word->charset_len);
    }
    if (word->encoding == 'q') {
        add_quoted(&decoder->bytes, word->text, word->len);
    }
    else {
        crm_mail_base64_add(&decoder->bytes, word->text, word->len);
    }
}

/* Write the LEN bytes at TEXT, which have no words. */
static void add_text(decoder_t *decoder, const char *text, apr_size_t len)
{
    const char *made = crm_mail_utf8_or(text, len, NULL, decoder->hint,
                                        &decoder->guess, decoder->pool);

    flush(decoder);
    for (; *made; made++) {
        if (*made != '\n') {    /* folding leaves the blank that follows */
            crm_buf_putc(&decoder->out, *made);
        }
    }
}

/* Return whether what stands behind a word, at TEXT, makes it a part of an address,
 * where no words are (RFC 2047, 5): "=?utf-8?Q?eve?=@example.org". */
static int is_in_address(const char *text)
{
    return memchr(text, '@', strcspn(text, " \t\r\n<>,;()=\"")) != NULL;
}

static const char *decode(const char *raw, const char *hint, int recode, int inner,
                          apr_pool_t *pool)
{
    decoder_t decoder = {
        .hint = hint, .recode = recode, .inner = inner, .pool = pool
    };
    const char *c = raw, *text = raw;   /* the text before C */
    const char *end = raw;      /* the end of a word, which C has not passed */
    word_t word;

    crm_buf_init(&decoder.out, strlen(raw) + 64, pool);
    crm_buf_init(&decoder.bytes, 64, pool);
    while (end && (c = strstr(c, "=?"))) {
        if (!read_word(&word, c)
            || (recode && is_in_address(word.end))) {
            c += 2;
            end = end < c ? strstr(c, "?=") : end;
            continue;
        }
        /* White space between words does not count. */
        if (!decoder.charset
            || strspn(text, " \t\r\n") < (size_t)(c - text)) {
            add_text(&decoder, text, (apr_size_t)(c - text));
        }
        add_word(&decoder, &word);
        text = c = word.end;
    }
    add_text(&decoder, text, strlen(text));
    crm_buf_putc(&decoder.out, '\0');
    return decoder.out.data;
}

/* Return RAW, cut to what is read, in POOL if it was cut. */
static const char *cut(const char *raw, apr_pool_t *pool)
{
    return strnlen(raw, RAW_BYTES + 1) > RAW_BYTES
           ? apr_pstrmemdup(pool, raw, RAW_BYTES) : raw;
}

const char *crm_mail_decode(const char *raw, const char *hint,
                            apr_pool_t *pool)
{
    return decode(cut(raw, pool), hint, 0, 0, pool);
}

const char *crm_mail_recode(const char *raw, const char *hint,
                            apr_pool_t *pool)
{
    return decode(cut(raw, pool), hint, 1, 0, pool);
}
