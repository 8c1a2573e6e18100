/* SPDX-License-Identifier: Apache-2.0 */
/* mail_enriched.c: the text of text/enriched and text/richtext */
#include "mail_enriched.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"

#include "crm_array.h"
#include "crm_buf.h"

#define NAME_MOST 60            /* characters of a command's name (RFC 1896) */

/* A text that is read. */
typedef struct enriched_t {
    const char *at;
    int rich;                   /* it is text/richtext */
    int unfilled;               /* commands "nofill" that are open */
    int hidden;                 /* commands whose content is not shown, and are open */
    crm_buf_t out;
} enriched_t;

/* Return the length of the command at TEXT, "<bold>" or "</bold>"; 0 if there is
 * none. */
static size_t command_length(const char *text)
{
    size_t len = 1 + (text[1] == '/');
    size_t begin = len;

    while (apr_isalnum(text[len]) || text[len] == '-') {
        len++;
    }
    return len > begin && len - begin <= NAME_MOST && text[len] == '>' ? len + 1 : 0;
}

/* Return whether the command at TEXT, LEN bytes, is NAME, or its end. */
static int is_command(const char *text, size_t len, const char *name)
{
    size_t skip = 1 + (text[1] == '/');

    return len == skip + strlen(name) + 1
           && !strncasecmp(text + skip, name, strlen(name));
}

/* Count in *OPEN that a command begins at TEXT or ends there. */
static void count(int *open, const char *text)
{
    *open += text[1] != '/' ? 1 : *open ? -1 : 0;
}

/* Read the command of LEN bytes. */
static void read_command(enriched_t *read, size_t len)
{
    static const struct {
        const char *name, *shows;
    } shown[] = {{"nl", "\n"}, {"np", "\n\n"}, {"lt", "<"}};
    const char *text = read->at;

    read->at += len;
    if (is_command(text, len, read->rich ? "comment" : "param")) {
        count(&read->hidden, text);
    }
    else if (is_command(text, len, "nofill")) {
        count(&read->unfilled, text);
    }
    for (size_t i = 0; read->rich && !read->hidden && i < CRM_NELTS(shown); i++) {
        if (is_command(text, len, shown[i].name)) {
            crm_buf_puts(&read->out, shown[i].shows);
        }
    }
}

/* Read line ends: one is a space, of several the first is left out. In text/richtext
 * all of them are a space. */
static void read_lines(enriched_t *read)
{
    size_t lines = 0;

    for (; *read->at == '\n' || *read->at == '\r'; read->at++) {
        lines += *read->at == '\n';
    }
    if (!read->hidden && (read->rich || (lines == 1 && !read->unfilled))) {
        crm_buf_putc(&read->out, ' ');
    }
    else if (!read->hidden) {
        for (size_t i = !read->unfilled; i < lines; i++) {
            crm_buf_putc(&read->out, '\n');
        }
    }
}

const char *crm_mail_enriched(const char *text, int rich, apr_pool_t *pool)
{
    enriched_t read = {.at = text, .rich = rich};

    crm_buf_init(&read.out, strlen(text) + 1, pool);
    while (*read.at) {
        size_t len = *read.at == '<' ? command_length(read.at) : 0;

        if (len) {
            read_command(&read, len);
        }
        else if (*read.at == '\n' || *read.at == '\r') {
            read_lines(&read);
        }
        else {
            read.at += !rich && !strncmp(read.at, "<<", 2);
            if (!read.hidden) {
                crm_buf_putc(&read.out, *read.at);
            }
            read.at++;
        }
    }
    crm_buf_putc(&read.out, '\0');
    return read.out.data;
}
