/* SPDX-License-Identifier: Apache-2.0 */
/* mail_repair.c: headers that are not where they belong (contract 18.3)
 *
 * The length of a mail stays the same, but for what goes at its beginning: the
 * rest is overwritten. */
#include "mail_repair.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_text.h"

/* Maximum lines of a header that are looked at, headers that blank lines split,
 * and headers with several Content-Types. */
#define LINES 1000
#define SPLITS 5
#define DOUBLES 20

/* Folded lines before a header that has lost the beginning of its first field. */
#define FOLDED 10

#define BOUNDARY_CHARS 70       /* RFC 2046, 5.1.1; many have more */

/* Bytes behind a header in which a boundary is looked for. */
#define USED_BYTES (64 * 1024)

/* The mail. MADE is BYTES once it was changed. */
typedef struct repair_t {
    const char *bytes, *end;
    char *made;
    apr_pool_t *pool;
} repair_t;

/* Fields, as bits. */
enum {
    FROM = 1, DATE = 2, MESSAGE_ID = 4,
    MACHINE = 1024              /* nobody begins a text with it */
};

static const struct {
    const char *name;
    int bits;
} fields[] = {
    {"From", FROM}, {"Date", DATE}, {"Message-ID", MESSAGE_ID | MACHINE},
    {"To", 8}, {"Subject", 16}, {"Cc", 32}, {"Reply-To", 64}, {"Sender", 128},
    {"MIME-Version", 256 | MACHINE}, {"Content-Type", 512 | MACHINE},
    {"Content-Transfer-Encoding", 2048 | MACHINE},
    {"In-Reply-To", 4096 | MACHINE}, {"References", 8192},
    {"Received", MACHINE}, {"Return-Path", 16384 | MACHINE},
    {"Delivered-To", MACHINE}, {"DKIM-Signature", MACHINE},
    {"Authentication-Results", MACHINE}, {"X-Mailer", MACHINE},
    {"User-Agent", MACHINE}, {"List-Id", MACHINE},
};

/* ---- lines --------------------------------------------------------------- */

/* Return the line below LINE; the mail's end if there is none, and for the end
 * itself. */
static const char *next_line(const repair_t *repair, const char *line)
{
    const char *end = line < repair->end
                      ? memchr(line, '\n', (size_t)(repair->end - line)) : NULL;

    return end ? end + 1 : repair->end;
}

/* Return whether the line from LINE to NEXT is empty, or blank if SPACES. */
static int is_blank(const char *line, const char *next, int spaces)
{
    while (line < next && strchr(spaces ? " \t\r\n" : "\r\n", *line)) {
        line++;
    }
    return line == next;
}

/* Return the length of the name of the field that begins at LINE; 0 if none
 * does. */
static apr_size_t name_length(const repair_t *repair, const char *line)
{
    const char *c = line;
    apr_size_t len;

    while (c < repair->end && *c > ' ' && *c < 0x7f && *c != ':') {
        c++;
    }
    len = (apr_size_t)(c - line);
    while (c < repair->end && (*c == ' ' || *c == '\t')) {
        c++;
    }
    return c < repair->end && *c == ':' ? len : 0;
}

/* Return the bits of the field at LINE; 0 if it is none that is known. */
static int field_bits(const repair_t *repair, const char *line)
{
    apr_size_t len = name_length(repair, line);

    for (size_t i = 0; len && i < CRM_NELTS(fields); i++) {
        if (strlen(fields[i].name) == len
            && !strncasecmp(line, fields[i].name, len)) {
            return fields[i].bits;
        }
    }
    return 0;
}

/* Return the byte AT as one that can be changed. */
static char *writable(repair_t *repair, const char *at)
{
    if (!repair->made) {
        repair->made = apr_pmemdup(repair->pool, repair->bytes,
                                   (apr_size_t)(repair->end - repair->bytes));
    }
    return repair->made + (at - repair->bytes);
}

/* Return the end of the header that begins at LINE: the empty line, or what is
 * no field. *BITS_P gets the bits of its fields. */
static const char *head_end(const repair_t *repair, const char *line,
                            int *bits_p)
{
    for (int i = 0; line < repair->end && i < LINES; i++) {
        const char *next = next_line(repair, line);

        if (is_blank(line, next, 0)
            || (*line != ' ' && *line != '\t' && !name_length(repair, line))) {
            break;
        }
        if (*line != ' ' && *line != '\t') {
            *bits_p |= field_bits(repair, line);
        }
        line = next;
    }
    return line;
}

/* ---- the beginning ------------------------------------------------------- */

/* Skip the line "From " that a mailbox file has before a mail; not "From :", a
 * field (RFC 5322, 4.5). */
static const char *skip_from(const repair_t *repair, const char *line)
{
    apr_size_t len = (apr_size_t)(repair->end - line);

    return len > 6 && (!memcmp(line, "From ", 5) || !memcmp(line, ">From ", 6))
           && !field_bits(repair, line) ? next_line(repair, line) : line;
}

/* Return whether a header begins at LINE, which is not the first line: with a field of
 * a program, or with From and another field. */
static int begins_head(const repair_t *repair, const char *line)
{
    int bits = 0;

    if (field_bits(repair, line) & MACHINE
        && strncasecmp(line, "Content-", 8)) {
        return 1;
    }
    head_end(repair, line, &bits);
    return name_length(repair, line) && bits & FROM && bits & ~FROM;
}

/* Return LINE, or the header below, if LINE is no field: some write "---- Original
 * message ----" before a mail, and of some the first field has lost its beginning. */
static const char *skip_title(const repair_t *repair, const char *line)
{
    const char *next = next_line(repair, line);

    if (line >= repair->end || name_length(repair, line)) {
        return line;
    }
    for (int i = 0; i < FOLDED && next < repair->end
         && strchr(" \t", *next); i++) {
        next = next_line(repair, next);
    }
    return next < repair->end && begins_head(repair, next) ? next : line;
}

/* Move the beginning of the mail to its first field. */
static void skip_lead(repair_t *repair)
{
    const char *line = repair->bytes;

    line += crm_text_mark(line, (apr_size_t)(repair->end - line));
    while (line < repair->end
           && is_blank(line, next_line(repair, line), 1)) {
        line = next_line(repair, line);
    }
    line = skip_from(repair, line);
    while (line < repair->end && strchr(" \t\r\n", *line)) {
        line++;
    }
    line = skip_title(repair, line);
    if (field_bits(repair, line)
        || (line < repair->end && name_length(repair, line)
            && !strncasecmp(line, "X-", 2))) {
        repair->bytes = line;
    }
}

/* ---- blank lines --------------------------------------------------------- */

/* Put the ':' of each field right behind its name: there may be blanks before it
 * (RFC 5322, 4.5). */
static void close_names(repair_t *repair)
{
    int bits = 0;
    const char *line = repair->bytes, *end = head_end(repair, line, &bits);

    for (; line < end; line = next_line(repair, line)) {
        apr_size_t len = strchr(" \t", *line) ? 0 : name_length(repair, line);

        if (len && line[len] != ':') {
            *writable(repair, memchr(line, ':', (size_t)(end - line))) = ' ';
            *writable(repair, line + len) = ':';
        }
    }
}

/* Return whether the lines at LINE go on the header with the fields HAS: all are
 * fields, and the first is one that it lacks. A text may begin with "Subject:";
 * in a header without the fields that all mails have it is a field. */
static int goes_on(const repair_t *repair, const char *line, int has)
{
    int bits = field_bits(repair, line), all = 0;
    int whole = (has & FROM) && (has & (DATE | MESSAGE_ID));
    const char *end = head_end(repair, line, &all);

    return bits && !(has & bits & ~MACHINE) && (!whole || bits & MACHINE)
           && end > line
           && (end == repair->end
               || is_blank(end, next_line(repair, end), 0));
}

/* Remove blank lines within the header of the mail. */
static void join_heads(repair_t *repair)
{
    int has = 0;
    const char *end = head_end(repair, repair->bytes, &has);

    for (int i = 0; i < SPLITS && end > repair->bytes; i++) {
        const char *line = end;

        while (line < repair->end
               && is_blank(line, next_line(repair, line), 1)) {
            line = next_line(repair, line);
        }
        if (line == end || line == repair->end
            || !goes_on(repair, line, has)) {
            return;
        }
        /* One line end stays. */
        memset(writable(repair, end - 1), ' ', (size_t)(line - end));
        end = head_end(repair, line, &has);
    }
}

/* ---- Content-Types ------------------------------------------------------- */

/* Return whether the field from LINE to NEXT, a Content-Type, is a multipart
 * whose boundary is used soon. */
static int is_used(const repair_t *repair, const char *line, const char *next)
{
    static const char word[] = "boundary=";
    const char *value = apr_pstrmemdup(repair->pool, line,
                                       (apr_size_t)(next - line));
    const char *at = strcasestr(value, word);
    apr_size_t len, left = (apr_size_t)(repair->end - next);
    char *delimiter;

    if (!at || !strcasestr(value, "multipart/")) {
        return 0;
    }
    at += sizeof(word) - 1;
    len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, "; \t\r\n");
    if (!len || len > 2 * BOUNDARY_CHARS) {
        return 0;
    }
    delimiter = apr_pstrcat(repair->pool, "\n--",
                            apr_pstrmemdup(repair->pool, at, len), NULL);
    return memmem(next, left < USED_BYTES ? left : USED_BYTES, delimiter,
                  len + 3) != NULL;
}

/* Of the Content-Types in the header from LINE to END leave one. Return whether
 * there are several. */
static int choose_type(repair_t *repair, const char *line, const char *end)
{
    const char *starts[8], *best = NULL;
    int count = 0, used = 0;

    while (line < end && count < (int)CRM_NELTS(starts)) {
        const char *next = next_line(repair, line);

        if (name_length(repair, line) == 12
            && !strncasecmp(line, "Content-Type", 12)) {
            while (next < end && (*next == ' ' || *next == '\t')) {
                next = next_line(repair, next);
            }
            starts[count++] = line;
            if (!used) {
                used = is_used(repair, line, next);
                best = used || !best ? line : best;
            }
        }
        line = next;
    }
    for (int i = 0; count > 1 && i < count; i++) {
        if (starts[i] != best) {
            *writable(repair, starts[i]) = 'X';
        }
    }
    return count > 1;
}

/* Return whether the header from LINE to END has several Content-Types. */
static int has_several(const repair_t *repair, const char *line,
                       const char *end)
{
    int count = 0;

    for (; line < end; line = next_line(repair, line)) {
        count += (*line == 'C' || *line == 'c')
                 && name_length(repair, line) == 12
                 && !strncasecmp(line, "Content-Type", 12);
    }
    return count > 1;
}

/* Leave one Content-Type in each header: that of the mail, and those behind
 * lines that may be boundaries. */
static void choose_types(repair_t *repair)
{
    const char *line = repair->bytes;
    int doubles = 0;

    while (line < repair->end && doubles < DOUBLES) {
        int bits = 0;
        const char *end = head_end(repair, line, &bits);

        if (has_several(repair, line, end)) {
            doubles += choose_type(repair, line, end);
        }
        line = end;
        while (line < repair->end && memcmp(line, "--", repair->end - line > 1
                                            ? 2 : 1)) {
            line = next_line(repair, line);
        }
        line = next_line(repair, line);
    }
}

const char *crm_mail_repair(apr_size_t *len_p, const char *bytes,
                            apr_pool_t *pool)
{
    repair_t repair = {bytes, bytes + *len_p, NULL, pool};

    if (!*len_p) {
        return bytes;
    }
    skip_lead(&repair);
    close_names(&repair);
    join_heads(&repair);
    if (repair.made) {
        *len_p = (apr_size_t)(repair.end - repair.bytes);
        repair = (repair_t){repair.made, repair.made + *len_p, repair.made,
                            pool};
    }
    choose_types(&repair);
    *len_p = (apr_size_t)(repair.end - repair.bytes);
    return repair.made ? repair.made : repair.bytes;
}
