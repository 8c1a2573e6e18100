/* SPDX-License-Identifier: Apache-2.0 */
/* mail_sign.c: signs that a font has in place of letters
 *
 * Outlook and Word write the letter J in the font Wingdings for a smile, and others for
 * arrows and the bullets of lists: as a letter of Windows-1252, or as the character of
 * the private use area that is 0xf000 above it. */
#include "mail_sign.h"

#include <string.h>
#include <strings.h>

#include "crm_array.h"
#include "crm_text.h"

#define PRIVATE 0xf000

/* The signs that editors put in by themselves, or offer for lists and boxes. */
static const struct {
    int letter;
    const char *sign;
} signs[] = {
    {'(', "☎"}, {'*', "✉"}, {'C', "👍"}, {'D', "👎"}, {'F', "☞"}, {'J', "☺"},
    {'K', "😐"}, {'L', "☹"}, {'l', "●"}, {'n', "■"}, {'o', "□"}, {'q', "❑"},
    {'u', "◆"}, {'v', "❖"}, {'x', "☒"}, {0xa7, "▪"}, {0xa8, "◻"}, {0xd8, "➢"},
    {0xdf, "←"}, {0xe0, "→"}, {0xe1, "↑"}, {0xe2, "↓"}, {0xe7, "⇐"}, {0xe8, "⇒"},
    {0xf3, "⇔"}, {0xfb, "✗"}, {0xfc, "✓"}, {0xfd, "☒"}, {0xfe, "☑"},
};

int crm_mail_is_signs(const char *family)
{
    static const char name[] = "wingdings";
    const char *end;

    family += strspn(family, "\"' ");
    end = family + sizeof(name) - 1;
    return !strncasecmp(family, name, sizeof(name) - 1)
           && strchr("\"',", *end);     /* "wingdings 2" has other signs */
}

void crm_mail_signs(crm_buf_t *buf, const char *text, apr_size_t len)
{
    while (len) {
        apr_size_t bytes, i = 0;
        int c = crm_text_next(&bytes, text, len);

        c -= c > PRIVATE && c <= PRIVATE + 0xff ? PRIVATE : 0;
        bytes += !bytes;
        while (i < CRM_NELTS(signs) && signs[i].letter != c) {
            i++;
        }
        if (i < CRM_NELTS(signs)) {
            crm_buf_puts(buf, signs[i].sign);
        }
        else {
            crm_buf_add(buf, text, bytes);
        }
        text += bytes;
        len -= bytes;
    }
}
