/* SPDX-License-Identifier: Apache-2.0 */
/* mail_armor.c: texts with a signature of OpenPGP around them (RFC 9580, 7) */
#include "mail_armor.h"

#include <string.h>

#include "crm_buf.h"

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Return whether LINE is WORDS, with blanks behind them or without. */
static int is_line(const char *line, const char *words)
{
    apr_size_t len = strlen(words);

    if (strncmp(line, words, len)) {
        return 0;
    }
    line += len;
    line += strspn(line, " \t\r");
    return !*line || *line == '\n';
}

/* Return the first line from LINE on that is WORDS, or NULL. */
static const char *find_line(const char *line, const char *words)
{
    while (*line && !is_line(line, words)) {
        line = next_line(line);
    }
    return *line ? line : NULL;
}

/* Return what is signed behind the line BEGIN: after the headers, which name hashes
 * only, and an empty line. NULL: there is something else. */
static const char *signed_text(const char *begin)
{
    const char *line = next_line(begin);

    while (!strncmp(line, "Hash:", 5)) {
        line = next_line(line);
    }
    return *line && is_line(line, "") ? next_line(line) : NULL;
}

/* Add the lines from TEXT to END to BUF, each without the "- " that hides a dash. */
static void add_signed(crm_buf_t *buf, const char *text, const char *end)
{
    while (text < end) {
        const char *next = next_line(text);

        text += strncmp(text, "- ", 2) ? 0 : 2;
        crm_buf_add(buf, text, (apr_size_t)(next - text));
        text = next;
    }
}

const char *crm_mail_unarmor(const char *text, apr_pool_t *pool)
{
    const char *begin = find_line(text, "-----BEGIN PGP SIGNED MESSAGE-----");
    crm_buf_t buf;

    if (!begin) {
        return text;
    }
    crm_buf_init(&buf, strlen(text) + 1, pool);
    while (begin) {
        const char *words = signed_text(begin);
        const char *armor = words ? find_line(words, "-----BEGIN PGP SIGNATURE-----")
                            : NULL;
        const char *end = armor ? find_line(armor, "-----END PGP SIGNATURE-----")
                          : NULL;

        if (!end) {
            break;
        }
        crm_buf_add(&buf, text, (apr_size_t)(begin - text));
        add_signed(&buf, words, armor);
        text = next_line(end);
        begin = find_line(text, "-----BEGIN PGP SIGNED MESSAGE-----");
    }
    crm_buf_puts(&buf, text);
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
