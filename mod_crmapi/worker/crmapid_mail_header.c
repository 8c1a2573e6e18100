/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_header.c: values that may be put into a mail's headers */
#include "crmapid_mail_header.h"

#include <string.h>

#include "apr_base64.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_text.h"

/* Bytes of an encoded word without its text: "=?utf-8?q?" and "?=". */
#define WORD_FRAME 12

/* The most bytes of an encoded word, and of a line that has one (RFC 2047, 2). */
#define WORD_MOST 75
#define LINE_MOST 76

/* A longer run of ASCII is not left to be folded. */
#define RUN_MOST 60

int crmd_mail_number(const char *number)
{
    const char *c = number;

    while (apr_isalnum(*c) || *c == '+' || *c == '-' || *c == '.') {
        c++;
    }
    return *number && !*c;
}

const char *crmd_mail_line(const char *text, apr_size_t max, apr_pool_t *pool)
{
    return crm_text_one_line(text ? text : "", text ? strlen(text) : 0, max,
                             pool);
}

int crmd_mail_needs_words(const char *text)
{
    size_t run = 0;

    if (strstr(text, "=?")) {
        return 1;
    }
    for (; *text && run <= RUN_MOST; text++) {
        run = *text & 0x80 ? RUN_MOST + 1 : *text == ' ' ? 0 : run + 1;
    }
    return run > RUN_MOST;
}

/* Return whether C is itself in an encoded word, also in a phrase (RFC 2047, 5). */
static int is_literal(char c)
{
    return apr_isalnum(c) || (c && strchr("!*+-/", c));
}

/* Return how many bytes at TEXT an encoded word has that may have ROOM bytes: whole
 * characters. Base64 has no padding if it can: some readers stop there. */
static size_t word_length(const char *text, size_t room, int base64)
{
    size_t len = strlen(text), n = 0, even = 0, cost = 0, bytes;

    while (n < len) {
        crm_text_next(&bytes, text + n, len - n);
        bytes = bytes ? bytes : 1;
        cost = base64 ? (n + bytes + 2) / 3 * 4
               : cost + (bytes == 1 && (is_literal(text[n]) || text[n] == ' ')
                         ? 1 : 3 * bytes);
        if (cost > room) {
            break;
        }
        n += bytes;
        even = n % 3 ? even : n;
    }
    return base64 && n < len && even ? even : n;
}

/* Add the N bytes at TEXT as an encoded word to BUF. */
static void put_word(crm_buf_t *buf, const char *text, size_t n, int base64)
{
    char encoded[2 * WORD_MOST];

    crm_buf_printf(buf, "=?utf-8?%c?", base64 ? 'b' : 'q');
    if (base64) {
        apr_base64_encode_binary(encoded, (const unsigned char *)text, (int)n);
        crm_buf_puts(buf, encoded);
    }
    for (size_t i = 0; !base64 && i < n; i++) {
        if (is_literal(text[i]) || text[i] == ' ') {
            crm_buf_putc(buf, text[i] == ' ' ? '_' : text[i]);
        }
        else {
            crm_buf_printf(buf, "=%02X", (unsigned)(unsigned char)text[i]);
        }
    }
    crm_buf_puts(buf, "?=");
}

/* Add TEXT, at COLUMN of its line, as encoded words to BUF. Return the column behind
 * it. */
static size_t put_words(crm_buf_t *buf, const char *text, size_t column)
{
    size_t literal = 0, n, room, begin;
    int base64;

    for (const char *c = text; *c; c++) {
        literal += is_literal(*c) || *c == ' ';
    }
    base64 = 3 * literal < 2 * strlen(text);
    for (; *text; text += n) {
        room = LINE_MOST - column < WORD_MOST ? LINE_MOST - column : WORD_MOST;
        n = word_length(text, room - WORD_FRAME, base64);
        begin = buf->len;
        put_word(buf, text, n, base64);
        column += buf->len - begin;
        if (text[n]) {
            crm_buf_puts(buf, "\n ");
            column = 1;
        }
    }
    return column;
}

const char *crmd_mail_words(const char *name, const char *text,
                            const char *address, apr_pool_t *pool)
{
    size_t column;
    crm_buf_t buf;

    crm_buf_init(&buf, 2 * strlen(text) + WORD_MOST, pool);
    column = put_words(&buf, text, strlen(name) + 2);
    if (address) {
        crm_buf_puts(&buf, column + strlen(address) + 3 > LINE_MOST ? "\n <"
                     : " <");
        crm_buf_puts(&buf, address);
        crm_buf_putc(&buf, '>');
    }
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
