/* SPDX-License-Identifier: Apache-2.0 */
/* mail_jis.c: Japanese text with escape sequences (ISO-2022-JP)
 *
 * ICU's converter knows the characters of JIS X 0208 only. Mail programs use
 * those of code page 932, which ICU's EUC-JP has at the same places. */
#include "mail_jis.h"

#include <string.h>

#include "crm_array.h"
#include "crm_buf.h"

#define ESC '\033'
#define SO '\016'
#define SI '\017'
#define SS2 "\216"
#define SS3 "\217"

/* What the bytes after an escape sequence are. */
typedef enum set_t { ASCII, KANA, KANJI, MORE_KANJI, FOREIGN } set_t;

static const struct {
    const char *sequence;       /* without ESC */
    set_t set;
} sequences[] = {
    {"(B", ASCII}, {"(J", ASCII}, {"(H", ASCII}, {"(I", KANA}, {"$@", KANJI},
    {"$B", KANJI}, {"$(@", KANJI}, {"$(B", KANJI}, {"$(O", KANJI},
    {"$(Q", KANJI}, {"$(D", MORE_KANJI}, {"$(P", MORE_KANJI},
    {"&@", FOREIGN},            /* before "$B"; nothing by itself */
    {"$A", FOREIGN}, {"$(C", FOREIGN}, {".A", FOREIGN}, {".F", FOREIGN}
};

/* Return the index of the sequence at the LEN bytes AT, behind ESC; -1: it is
 * none. */
static int find_sequence(const char *at, apr_size_t len)
{
    for (size_t i = 0; i < CRM_NELTS(sequences); i++) {
        apr_size_t n = strlen(sequences[i].sequence);

        if (n <= len && !memcmp(at, sequences[i].sequence, n)) {
            return (int)i;
        }
    }
    return -1;
}

int crm_mail_has_jis(const char *bytes, apr_size_t len)
{
    const char *end = bytes + len;

    while ((bytes = memchr(bytes, ESC, (apr_size_t)(end - bytes)))) {
        bytes++;
        if (bytes < end && strchr("($", *bytes)
            && find_sequence(bytes, (apr_size_t)(end - bytes)) >= 0) {
            return 1;
        }
    }
    return 0;
}

/* Return the number of bytes at AT, of LEN, that belong to one character of SET,
 * and add it to BUF. */
static apr_size_t add_one(crm_buf_t *buf, set_t set, const char *at,
                          apr_size_t len)
{
    int wide = set == KANJI || set == MORE_KANJI;
    char c = *at;

    if (set == ASCII || (c & 0x7f) <= ' ' || (wide && len < 2)) {
        if ((unsigned char)c >= 0xa1 && (unsigned char)c <= 0xdf) {
            crm_buf_puts(buf, SS2);     /* JIS8 */
        }
        crm_buf_putc(buf, c);
        return 1;
    }
    if (set != KANJI) {
        crm_buf_puts(buf, set == KANA ? SS2 : SS3);
    }
    crm_buf_putc(buf, (char)(c | 0x80));
    if (wide) {
        crm_buf_putc(buf, (char)(at[1] | 0x80));
    }
    return wide ? 2 : 1;
}

const char *crm_mail_jis(apr_size_t *len_p, const char *bytes, apr_size_t len,
                         apr_pool_t *pool)
{
    set_t set = ASCII, before = ASCII;
    crm_buf_t buf;

    crm_buf_init(&buf, len + 64, pool);
    for (apr_size_t i = 0; i < len;) {
        int found = bytes[i] == ESC ? find_sequence(bytes + i + 1, len - i - 1)
                                    : -1;

        if (found >= 0) {
            i += 1 + strlen(sequences[found].sequence);
            if (sequences[found].set != FOREIGN) {
                set = sequences[found].set;
            }
            else if (sequences[found].sequence[0] != '&') {
                return NULL;
            }
        }
        else if (bytes[i] == SO || bytes[i] == SI) {
            before = bytes[i] == SO && set != KANA ? set : before;
            set = bytes[i++] == SO ? KANA : before;
        }
        else {
            set = bytes[i] == '\n' ? ASCII : set;
            i += add_one(&buf, set, bytes + i, len - i);
        }
    }
    *len_p = buf.len;
    return buf.data;
}
