/* SPDX-License-Identifier: Apache-2.0 */
/* crm_value.c: a value that somebody else wrote, in a text of ours */
#include "crm_value.h"

#include <string.h>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_text.h"

/* Blanks that Unicode calls letters or symbols. */
static const crm_chars_t blanks[] = {
    {0x115f, 0x1160}, {0x180e, 0x180e}, {0x2800, 0x2800}, {0x3164, 0x3164},
    {0xffa0, 0xffa0},
};

/* Marks that are not seen: soft hyphen, zero width space, word joiner, invisible
 * operators, byte order mark, tags; and those of direction. */
static const crm_chars_t unseen[] = {
    {0xad, 0xad}, {0x61c, 0x61c}, {0x200b, 0x200b}, {0x200e, 0x200f},
    {0x202a, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
    {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

/* What domains and schemes take for a dot, a colon, a slash: also in their wide
 * forms (UTS 46). */
static const crm_chars_t dots[] = {
    {'.', '.'}, {0x2024, 0x2024}, {0x3002, 0x3002}, {0xfe52, 0xfe52},
    {0xff0e, 0xff0e}, {0xff61, 0xff61},
};
static const crm_chars_t colons[] = {
    {':', ':'}, {0xfe13, 0xfe13}, {0xfe55, 0xfe55}, {0xff1a, 0xff1a},
};
static const crm_chars_t slashes[] = {
    {'/', '/'}, {'\\', '\\'}, {0xfe68, 0xfe68}, {0xff0f, 0xff0f},
    {0xff3c, 0xff3c},
};

#define IS(c, ranges) crm_text_is_in(c, ranges, CRM_NELTS(ranges))

static int is_blank(UChar32 c)
{
    return (U_GET_GC_MASK(c) & (U_GC_CC_MASK | U_GC_Z_MASK))
           || IS(c, blanks);
}

/* Return whether a link could go on with C after LAST, which follows BEFORE. */
static int is_link(UChar32 before, UChar32 last, UChar32 c)
{
    return (IS(last, dots) && u_isUAlphabetic(c))
           || (IS(last, colons) && (u_isalpha(before) || IS(c, slashes)))
           || (IS(last, slashes) && IS(c, slashes));
}

/* Return TEXT as one line in POOL. PART: separate the parts of links. */
static const char *make_line(const char *text, int part, apr_pool_t *pool)
{
    const uint8_t *bytes = (const uint8_t *)text;
    int32_t len = (int32_t)strlen(text), next = 0;
    UChar32 before = 0, last = 0;
    int blank = 0;
    crm_buf_t out;

    crm_buf_init(&out, 64, pool);  /* most of it may be blank */
    while (next < len) {
        int32_t start = next;
        UChar32 c;

        U8_NEXT(bytes, next, len, c);
        if (c < 0 || is_blank(c)) {
            blank = 1;
            continue;
        }
        if (IS(c, unseen)) {
            continue;
        }
        if (out.len && (blank || (part && is_link(before, last, c)))) {
            crm_buf_putc(&out, ' ');
        }
        crm_buf_add(&out, text + start, (apr_size_t)(next - start));
        /* names have joiners, and symbols have variation selectors */
        if (!u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT)) {
            before = blank ? 0 : last;
            last = c;
        }
        blank = 0;
    }
    crm_buf_putc(&out, '\0');
    return out.data;
}

const char *crm_value_line(const char *text, apr_pool_t *pool)
{
    return make_line(text, 0, pool);
}

const char *crm_value_show(const char *text, apr_pool_t *pool)
{
    return make_line(text, 1, pool);
}
