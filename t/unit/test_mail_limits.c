/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_limits.c: what is read of a mail that is too large in some way, and
 * what it costs (contract 18.7) */
#include <string.h>
#include <time.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_mail_test.h"
#include "mail_head.h"
#include "mail_json.h"
#include "mail_text.h"

/* Sanitizers (clang does not say whether they are there) take their time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
#define SECONDS 30
#else
#define SECONDS 3
#endif

/* The part of a hostile mail that is read where its time is not measured. */
#ifdef __SANITIZE_ADDRESS__
#define PART 10
#else
#define PART 1
#endif

#define EIGHT(text) text text text text text text text text

static void read_buf(crm_mail_t *mail, const crm_buf_t *buf)
{
    crm_mail_read(mail, buf->data, buf->len, &options, crm_check_pool());
}

/* Return a new buffer with TEXT. */
static crm_buf_t *begin(const char *text)
{
    crm_buf_t *buf = apr_palloc(crm_check_pool(), sizeof(*buf));

    crm_buf_init(buf, 1024, crm_check_pool());
    crm_buf_puts(buf, text);
    return buf;
}

/* The names in the metadata of MAIL's message of what was left out must be
 * WANT, JSON; NULL: nothing was. */
static void check_truncated(const crm_mail_t *mail, const char *want)
{
    apr_array_header_t *ids = apr_array_make(crm_check_pool(), 8,
                                             sizeof(const char *));
    const char *metadata;

    for (int i = 0; i < mail->attachments->nelts; i++) {
        APR_ARRAY_PUSH(ids, const char *) = "id";
    }
    metadata = crm_mail_metadata(mail, ids, "a@b.example", NULL,
                                 crm_check_pool());
    ck_assert_msg(want ? strstr(metadata, apr_pstrcat(
                              crm_check_pool(), "\"truncated\":[\"", want,
                              "\"]", NULL)) != NULL
                       : !strstr(metadata, "truncated"), "%s", metadata);
}

/* ---- levels and parts ---------------------------------------------------- */

/* Read a mail with a text at LEVEL. */
static void read_level(crm_mail_t *mail, int level)
{
    crm_buf_t *buf = begin("Subject: x\n");

    for (int i = 1; i < level; i++) {
        crm_buf_printf(buf, "Content-Type: multipart/mixed; boundary=b%d\n\n"
                       "--b%d\n", i, i);
    }
    crm_buf_puts(buf, "Content-Type: text/plain\n\nhere\n");
    read_buf(mail, buf);
}

START_TEST(parts_are_read_up_to_100_levels)
{
    crm_mail_t mail;

    read_level(&mail, 100);
    ck_assert_str_eq(mail.text, "here");
    check_truncated(&mail, NULL);
    read_level(&mail, 101);
    ck_assert_str_eq(mail.text, "");
    ck_assert_str_eq(mail.subject, "x");
    check_truncated(&mail, "levels");
}
END_TEST

/* Read a mail of COUNT parts. */
static void read_parts(crm_mail_t *mail, int count)
{
    crm_buf_t *buf = begin("Content-Type: multipart/mixed; boundary=b\n\n");

    for (int i = 2; i <= count; i++) {  /* all of them are the first one */
        crm_buf_printf(buf, "--b\n\npart %d\n", i);
    }
    crm_buf_puts(buf, "--b--\n");
    read_buf(mail, buf);
}

START_TEST(a_thousand_parts_are_read)
{
    crm_mail_t mail;

    read_parts(&mail, 1000);
    ck_assert(strstr(mail.text, "part 1000"));
    check_truncated(&mail, NULL);
    read_parts(&mail, 1001);
    ck_assert(strstr(mail.text, "part 1000"));
    ck_assert(!strstr(mail.text, "part 1001"));
    check_truncated(&mail, "parts");
}
END_TEST

START_TEST(fields_of_headers_are_read_up_to_a_thousand)
{
    crm_buf_t *buf = begin("");
    crm_mail_t mail;

    for (int i = 1; i < 1000; i++) {
        crm_buf_printf(buf, "X%d: y\n", i);
    }
    crm_buf_puts(buf, "Subject: here\n\nx\n");
    read_buf(&mail, buf);
    ck_assert_str_eq(mail.subject, "here");
    check_truncated(&mail, NULL);
    buf->len -= strlen("Subject: here\n\nx\n");
    crm_buf_puts(buf, "X: y\nSubject: here\n\nx\n");
    read_buf(&mail, buf);
    ck_assert_ptr_null(mail.subject);
    ck_assert_str_eq(mail.text, "x");
    check_truncated(&mail, "headers");
}
END_TEST

/* The bytes of a mail in a mail are what came, whatever they are. */
START_TEST(an_enclosed_mail_is_kept_as_it_came)
{
    static const char inner[] = "Subject:  In =?x?= it\nX :y\nbroken\n\n--b2\n";
    crm_buf_t *buf = begin("Content-Type: multipart/mixed; boundary=b\n\n"
                           "--b\nContent-Type: message/rfc822\n\n");
    const crm_mail_attachment_t *one;
    crm_mail_t mail;

    crm_buf_puts(buf, inner);
    crm_buf_puts(buf, "\n--b\n\nhere\n--b--\n");
    read_buf(&mail, buf);
    ck_assert_str_eq(mail.text, "here");
    ck_assert_int_eq(mail.attachments->nelts, 1);
    one = &APR_ARRAY_IDX(mail.attachments, 0, crm_mail_attachment_t);
    ck_assert_uint_eq(one->size, strlen(inner));
    ck_assert_mem_eq(one->body, inner, one->size);
    check_truncated(&mail, NULL);
}
END_TEST

/* ---- headers ------------------------------------------------------------- */

/* Give the lines of TEXT to HEAD. Return the number of the one that ends it, from
 * 0, or -1. */
static int read_head(crm_mail_head_t *head, const char *text)
{
    int ends = -1;

    crm_mail_head_begin(head, crm_check_pool());
    for (int i = 0; *text && ends < 0; i++) {
        const char *next = strchr(text, '\n') + 1;

        ends = crm_mail_head_add(head, text, (apr_size_t)(next - text)) ? -1
               : i;
        text = next;
    }
    crm_mail_head_end(head);
    crm_buf_putc(&head->block, '\0');
    return ends;
}

/* Return BEFORE, COUNT times UNIT, and AFTER. */
static char *repeated(const char *before, const char *unit, int count,
                      const char *after)
{
    crm_buf_t *buf = begin(before);

    for (int i = 0; i < count; i++) {
        crm_buf_puts(buf, unit);
    }
    crm_buf_puts(buf, after);
    crm_buf_putc(buf, '\0');
    return buf->data;
}

/* A header: BEFORE, COUNT times UNIT, AFTER. What is left of it: BEFORE, KEPT
 * times UNIT, END, or if KEPT is -1 END alone. */
static const struct {
    const char *before, *unit;
    int count;
    const char *after;
    int kept;
    const char *end;
    int cut;
} heads[] = {
    /* fields of a name with addresses */
    {"", "To: a\n", 10, "X: y\n", 10, "X: y\n", 0},
    {"", "To: a\n", 11, "X: y\n", 10, "X: y\n", 1},
    /* semicolons, colons, beginnings of words */
    {"Content-Type: text/plain", ";a=b", 100, "\n", 100, "\n", 0},
    {"Content-Type: text/plain", ";a=b", 101, "\n", 100, "\n", 1},
    {"To: ", "x:", 199, "\n", 199, "\n", 0},
    {"To: ", "x:", 201, "\n", 199, "x x \n", 0},
    {"X: ", "x:", 300, "\n", 300, "\n", 0},
    {"X: =?a?q?x?= ", "=?a", 8, "\n", 8, "\n", 0},
    {"X: =?a?q?x?= ", "=?a", 9, "\n", 8, " ?a\n", 1},
    /* bytes: what may be incomplete is left out, and of that field only */
    {"X: ", "yyyyyyyy", 8191, "yyyy\n", 8191, "yyyy\n", 0},
    {"X: a ", "yyyyyyyy", 8192, "\nY: b c\n", -1, "X: a\nY: b c\n", 1},
    {"To: a, b", "yyyyyyyy", 8192, "\nTo: b, c\n", -1, "To: a\nTo: b, c\n", 1},
    {"Content-Type: text/plain; a=b; c=", "yyyyyyyy", 1024,
     "\nContent-Language: de\n", -1,
     "Content-Type: text/plain; a=b\nContent-Language: de\n", 1},
    {"Content-Type: ", "yyyyyyyy", 1024, "\nX: y\n", -1, "X: y\n", 1},
    /* types that are left alone, or are a text's */
    {"Content-Type: ", "", 0, "text/ html\n", 0, "text/ html\n", 0},
    {"Content-Type: ", "", 0, "text; boundary=b\n", 0,
     "text/plain; boundary=b\n", 0},
    {"Content-Type: ", "", 0, "mixed; boundary=b\n", 0,
     "multipart/mixed; boundary=b\n", 0},
    /* lines that are no fields */
    {"", "", 0, "Content-Type: text/plain;\ncharset=utf-8\n", -1,
     "Content-Type: text/plain;\n charset=utf-8\n", 0},
    {"", "", 0, "Content-Type: text/plain\ncharset=utf-8\n", -1,
     "Content-Type: text/plain\n", 0},
    {"", "", 0, "X: a;\ncharset=utf-8\n", -1, "X: a;\n", 0},
    {"", "", 0, "X: a\nbroken\n b\nSubject : x\n", -1,
     "X: a\nSubject : x\n", 0},
};

START_TEST(a_header_has_an_end)
{
    const char *given = repeated(heads[_i].before, heads[_i].unit,
                                 heads[_i].count, heads[_i].after);
    const char *want = heads[_i].kept < 0 ? heads[_i].end
                       : repeated(heads[_i].before, heads[_i].unit,
                                  heads[_i].kept, heads[_i].end);
    crm_mail_head_t head;

    ck_assert_int_eq(read_head(&head, given), -1);
    ck_assert_msg(!strcmp(head.block.data, want), "%.60s: %.60s, not %.60s",
                  given, head.block.data, want);
    ck_assert_int_eq(!head.cut, !heads[_i].cut);
}
END_TEST

START_TEST(a_header_has_256_kib)
{
    const char *field = repeated("X: ", "yyyyyyyy", 8191, "yyyy\n");

    for (int count = 3; count < 5; count++) {
        const char *all = repeated("", field, count, "");
        crm_mail_head_t head;

        read_head(&head, apr_pstrcat(crm_check_pool(), all, "Y: z\n", NULL));
        ck_assert_int_eq(head.cut, count == 4);
        ck_assert_uint_eq(head.block.len, strlen(all) + 1
                                          + (count == 4 ? 0 : 5));
    }
}
END_TEST

#define MULTIPART "Content-Type: multipart/mixed; boundary="

/* Which line is the boundary that a header declares. */
static const struct {
    const char *head;
    int line;
} delimiters[] = {
    {MULTIPART "b\n--b\n", 1}, {MULTIPART "\"b\"\n--b \n", 1},
    {MULTIPART "bc\n--b\n", -1}, {MULTIPART "ab\n--b\n", -1},
    {MULTIPART "b\n--\n", -1}, {MULTIPART "b\n-b\n", -1},
    {MULTIPART "b; x=y\nContent-Language: de\n--b\n", 2},
    {"X: boundary=b\n--b\n", -1},
    {"Content-Disposition: inline; boundary=b\n--b\n", -1},
    {MULTIPART "b\n--1\n--2\n--3\n--4\n--5\n--6\n--7\n--b\n", 8},
    {MULTIPART "b\n" EIGHT("--x\n") "--b\n", -1},
};

START_TEST(a_boundary_ends_a_header)
{
    crm_mail_head_t head;
    int line = read_head(&head, delimiters[_i].head);

    ck_assert_msg(line == delimiters[_i].line, "%s: %d", delimiters[_i].head,
                  line);
}
END_TEST

/* ---- HTML ---------------------------------------------------------------- */

#define HTML "Content-Type: text/html\n\n"
#define MIB (1024 * 1024)

/* Read a mail with LEN bytes of HTML before "here". */
static void read_html(crm_mail_t *mail, apr_size_t len)
{
    crm_buf_t *buf = begin(HTML "first<!--");

    while (buf->len < sizeof(HTML) - 1 + len - 3) {
        crm_buf_putc(buf, 'x');
    }
    crm_buf_puts(buf, "-->here");
    read_buf(mail, buf);
}

START_TEST(a_mib_of_html_is_read)
{
    crm_mail_t mail;

    read_html(&mail, MIB - 4);
    ck_assert_str_eq(mail.text, "firsthere");
    check_truncated(&mail, NULL);
    read_html(&mail, MIB);
    ck_assert_str_eq(mail.text, "first");
    check_truncated(&mail, "html");
}
END_TEST

START_TEST(the_limit_of_html_is_that_of_all_parts)
{
    crm_buf_t *buf = begin("Content-Type: multipart/mixed; boundary=b\n\n");
    crm_mail_t mail;

    for (int i = 1; i <= 20; i++) {
        crm_buf_printf(buf, "--b\nContent-Type: text/html\n\n%d<!--%0100000d"
                       "-->", i, 0);
        crm_buf_puts(buf, "\n");
    }
    read_buf(&mail, buf);
    ck_assert(strstr(mail.text, "10"));
    ck_assert(!strstr(mail.text, "12"));
    check_truncated(&mail, "html");
}
END_TEST

/* Read HTML with an element that is hidden by its attribute NUMBER. */
static void read_attributes(crm_mail_t *mail, int number)
{
    crm_buf_t *buf = begin(HTML "<p");

    for (int i = 1; i < number; i++) {
        crm_buf_printf(buf, " a%d=b", i);
    }
    crm_buf_puts(buf, " hidden>here</p><p>there");
    read_buf(mail, buf);
}

START_TEST(attributes_are_read_up_to_256)
{
    crm_mail_t mail;

    read_attributes(&mail, 256);
    ck_assert_str_eq(mail.text, "there");
    check_truncated(&mail, NULL);
    read_attributes(&mail, 257);
    ck_assert_str_eq(mail.text, "here\n\nthere");
    check_truncated(&mail, "attributes");
}
END_TEST

/* Tags are what browsers take for tags (HTML Living Standard, 13.2.5). */
static const struct {
    const char *html, *text;
} tags[] = {
    {"<p title=\"a>b\">x", "x"},
    {"<p title='a>b' >x", "x"},
    {"<p title=a\"b>x", "x"},
    {"<P\nHIDDEN\n>x</P>y", "y"},
    {"<p/hidden/>x</p>y", "y"},
    {"<p title='<hidden' hidden>x</p>y", "y"},
    {"<p =hidden>x", "x"},
    {"<p title= hidden>x", "x"},
    {"a < b, 1<2, <3 and <>", "a < b, 1<2, <3 and <>"},
    {"a</>b", "ab"},
    {"a</ b>c", "ac"},
    {"a<!-- <b> -- > -->b", "ab"},
    {"a<!-->b", "ab"},
    {"a<!--->b", "ab"},
    {"a<!DOCTYPE html>b<?x y?>c<![CDATA[d>e]]>f", "abce]]>f"},
    {"a<script>if (a</b/.c) '<p>'</script>b", "ab"},
    {"a<style>b{c:'<p>'}</style >d", "ad"},
    {"<title>b</titles></title>c", "c"},
    {"<a href=\"http://a.example/?b=1&amp;c=%22\">x</a>",
     "x <http://a.example/?b=1&c=%22>"},
    {"<a href='http://a.example/\"'>x</a>", "x <http://a.example/\">"},
    {"<img alt='a < b & c \"d\"'>", "a < b & c \"d\""},
    {"a&lt;p hidden&gt;b", "a<p hidden>b"},
    {"<o:p>x</o:p>y", "xy"},
    {"a<b", "a"},
    {"a<b c=\"d", "a"},
    {"a<", "a<"},
};

START_TEST(tags_are_what_browsers_take_for_tags)
{
    const char *text = crm_mail_text(&(unsigned){0}, tags[_i].html,
                                     strlen(tags[_i].html), crm_check_pool());

    ck_assert_msg(!strcmp(text, tags[_i].text), "%s: %s, not %s",
                  tags[_i].html, text, tags[_i].text);
}
END_TEST

/* ---- processor time ------------------------------------------------------ */

/* Add COUNT of UNIT to BUF, each with its number for each '#'. */
static void add_many(crm_buf_t *buf, const char *unit, int count)
{
    for (int i = 0; i < count; i++) {
        for (const char *c = unit; *c; c++) {
            if (*c == '#') {
                crm_buf_printf(buf, "%d", i);
            }
            else {
                crm_buf_putc(buf, *c);
            }
        }
    }
}

/* A header with several types, and a boundary that is not used. */
#define TYPE "Content-Type: multipart/mixed; boundary=" HYPHENS HYPHENS "\n"
#define HYPHENS "----------------------------------------------------------------"
#define TYPES "--\n" TYPE TYPE TYPE TYPE TYPE TYPE TYPE TYPE "\n"

#define MIXED "Content-Type: multipart/mixed; boundary=b\n\n"

/* Mails that took minutes: BEFORE, COUNT times FIRST, then THEN up to BYTES. */
static const struct {
    const char *name, *before, *first;
    int count;
    const char *then;
    apr_size_t bytes;
} hostile[] = {
    {"160,000 attributes", HTML "<p", " a#=b", 160000, NULL, 0},
    {"600,000 attributes", HTML "<p", " a#=b", 600000, ">", 0},
    {"elements with 256 attributes", HTML, "<p a a#", 1000,
     "<p a b c d e f g h i j k l m n o p q r s t u v w x y z>", 4000000},
    {"1,000 multiparts and lines of hyphens", "",
     "Content-Type: multipart/mixed; boundary=b#\n\n--b#\n", 1000,
     "--\n", 25000000},
    {"1,000 multiparts and lines like boundaries", "",
     "Content-Type: multipart/mixed; boundary=b#\n\n--b#\n", 1000,
     "--b500x\n", 25000000},
    {"parts without end", "Content-Type: multipart/mixed; boundary=b\n\n", "",
     0, "--b\n\nx\n", 25000000},
    {"mails in parts", "Content-Type: multipart/digest; boundary=b\n\n", "",
     0, "--b\n\nSubject: =?a?q? =?a?q? =?a?q?\n\nx\n", 25000000},
    {"fields", "", "X#: y\n", 500000, "Subject: x\n", 25000000},
    {"blank lines at the end", "\nx", "", 0, "\n", 25000000},
    {"lines with blanks at the end", "\nx", "", 0, " \n", 25000000},
    {"lines with blanks in a header", "", "", 0, "X: y\n \n", 25000000},
    {"words in a header", "", "", 0, "X: y\na b\n", 25000000},
    {"an invitation", "Content-Type: text/calendar\n\nBEGIN:VCALENDAR\n"
     "BEGIN:VEVENT\n", "", 0, "BEGIN:X;Y=\"\nATTENDEE;PARTSTAT=z:b\n x\n",
     25000000},
    {"texts in two forms", MIXED, "", 0, "--b\n\n<http<http<http<http\n--b\n"
     "Content-Type: text/html\n\n&lt;http&lt;http&lt;http&lt;http\n", 25000000},
    {"a text in two forms", MIXED "--b\nContent-Type: text/html\n\n<p>x\n--b\n\n",
     "", 0, "<http", 25000000},
    {"several types", "", TYPES, 20,
     "\n------------------------------------------------------------",
     25000000},
    {"words that do not end", "Subject: ", "", 0, "=?utf-8?Q? ", 25000000},
    {"addresses", "To: ", "a#@b.example, ", 500000, NULL, 0},
    {"groups", "To: ", "", 0, "g:", 25000000},
    {"ids", "References: ", "<#@b.example> ", 500000, NULL, 0},
    {"end tags", HTML, "<x#>", 500, "</i>", 2000000},
    {"links within links", HTML, "", 0, "<a href=http://a/><div>x", 2000000},
    {"bytes that are invalid in EUC-TW",
     "Content-Type: text/plain; charset=euc-tw\n\n", "", 0, EIGHT(EIGHT("\216"))
     "\n", 25000000},
    {"the same in HTML", "Content-Type: text/html; charset=ibm-964\n\n", "", 0,
     EIGHT(EIGHT("\216")) "\n", 25000000},
    {"the same in parts", MIXED "--b\n", "", 0,
     "Content-Type: text/plain; charset=euc-tw\n\n"
     EIGHT(EIGHT(EIGHT(EIGHT("\216\216\216\216\216\216")))) "\n--b\n", 25000000},
    {"texts without a charset", MIXED, "", 0,
     "--b\n\n" EIGHT(EIGHT(EIGHT(EIGHT("\244\376\244\376 \244")))) "\n",
     25000000},
    {"texts that a report returns",
     "Return-Path: <>\nSubject: failure\n" MIXED, "", 0,
     "--b\n\n" EIGHT(EIGHT(EIGHT(EIGHT("\244\376\244\376 \244")))) "\n",
     25000000},
    {"statuses of a report", "Return-Path: <>\nContent-Type: multipart/report;"
     " boundary=b; report-type=delivery-status\n\n", "", 0,
     "--b\nContent-Type: message/delivery-status\n\n"
     EIGHT(EIGHT(EIGHT(EIGHT("\244\376\244\376 \244")))) "\n",
     25000000},
    {"names in unknown charsets", MIXED, "", 0,
     "--b\nContent-Type: application/x; name=\""
     EIGHT(EIGHT("=?a?q?=ff?= =?b?q?=ff?= ")) "\"\n\nx\n", 25000000},
    {"names in EUC-TW", MIXED, "", 0,
     "--b\nContent-Type: application/x; name=\""
     EIGHT(EIGHT("=?euc-tw?q?=8e?= =?euc-jp?q?=8f?= ")) "\"\n\nx\n", 25000000},
    {"subjects of enclosed mails", MIXED, "", 0,
     "--b\nContent-Type: message/rfc822\n\nSubject: "
     EIGHT(EIGHT("=?a?q?=ff?= =?b?q?=ff?= ")) "\n\nx\n", 25000000},
    {"words in unknown charsets", "Subject: ", "", 0,
     "=?a?q?=ff?=\n =?b?q?=ff?=\n ", 65000},
};

/* Read a mail of three texts in the CHARSET, each COUNT times LETTER. */
static void read_letters(crm_mail_t *mail, const char *charset, const char *letter,
                         int count)
{
    crm_buf_t *buf = begin("Content-Type: multipart/mixed; boundary=b\n\n");

    for (int i = 0; i < 3; i++) {
        crm_buf_printf(buf, "--b\nContent-Type: text/plain; charset=%s\n\n",
                       charset);
        for (int j = 0; j < count; j++) {
            crm_buf_puts(buf, letter);
        }
        crm_buf_puts(buf, "\n");
    }
    crm_buf_puts(buf, "--b\n\nlast\n--b--\n");
    read_buf(mail, buf);
}

START_TEST(a_mib_of_a_text_is_read)
{
    crm_mail_t mail;

    read_letters(&mail, "utf-8", "a", MIB / 2);
    ck_assert_uint_eq(mail.text_cut, 3 * (MIB / 2 + 1) + 4 - CRM_MAIL_TEXT_MAX);
    check_truncated(&mail, NULL);
    read_letters(&mail, "utf-8", "a", MIB + 1);
    ck_assert_uint_eq(mail.text_cut, 2 * MIB + 1 - CRM_MAIL_TEXT_MAX);
    check_truncated(&mail, "text");
    read_letters(&mail, "iso-2022-kr", "a", MIB + 1);
    check_truncated(&mail, "text");
    /* of three bytes each: one is read or not, and the last text has what is left */
    read_letters(&mail, "utf-8", "…", MIB / 3 + 1);
    ck_assert_uint_eq(mail.text_cut, 2 * (MIB / 3) + 1 + 3 - CRM_MAIL_TEXT_MAX);
    check_truncated(&mail, "text");
}
END_TEST

START_TEST(an_attached_text_is_no_text_that_is_cut)
{
    static const char *const before[] = {"--b\n\nhere\n", ""};
    static const char *const after[] = {"", "--b\n\nhere\n"};
    crm_mail_t mail;

    for (size_t i = 0; i < CRM_NELTS(before); i++) {
        crm_buf_t *buf = begin("Content-Type: multipart/mixed; boundary=b\n\n");

        crm_buf_puts(buf, before[i]);
        crm_buf_puts(buf, "--b\nContent-Type: text/csv\n"
                     "Content-Disposition: attachment\n\n");
        for (int line = 0; line < 300000; line++) {
            crm_buf_puts(buf, "a,b,c,d,e\n");
        }
        crm_buf_puts(buf, after[i]);
        crm_buf_puts(buf, "--b--\n");
        read_buf(&mail, buf);
        ck_assert_str_eq(mail.text, "here");
        ck_assert_uint_eq(mail.attachments->nelts, 1);
        check_truncated(&mail, NULL);
    }
}
END_TEST

START_TEST(hostile_mails_take_time_by_their_size)
{
    crm_buf_t *buf = begin(hostile[_i].before);
    crm_mail_t mail;
    clock_t before;
    double seconds;

    add_many(buf, hostile[_i].first, hostile[_i].count / PART);
    while (hostile[_i].then && buf->len < hostile[_i].bytes / PART) {
        crm_buf_puts(buf, hostile[_i].then);
    }
    before = clock();           /* processor time, whatever else runs */
    read_buf(&mail, buf);
    seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    ck_assert_msg(seconds < SECONDS, "%s: %.1f s", hostile[_i].name, seconds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_limits");
    TCase *limits = tcase_create("limits"), *header = tcase_create("heads");

    mail_init();
    tcase_add_test(limits, parts_are_read_up_to_100_levels);
    tcase_add_test(limits, a_thousand_parts_are_read);
    tcase_add_test(limits, fields_of_headers_are_read_up_to_a_thousand);
    tcase_add_test(limits, an_enclosed_mail_is_kept_as_it_came);
    tcase_add_test(limits, a_mib_of_html_is_read);
    tcase_add_test(limits, the_limit_of_html_is_that_of_all_parts);
    tcase_add_test(limits, attributes_are_read_up_to_256);
    tcase_add_loop_test(limits, tags_are_what_browsers_take_for_tags, 0,
                        COUNT(tags));
    tcase_add_test(limits, a_mib_of_a_text_is_read);
    tcase_add_test(limits, an_attached_text_is_no_text_that_is_cut);
    tcase_add_loop_test(limits, hostile_mails_take_time_by_their_size, 0,
                        COUNT(hostile));
    suite_add_tcase(suite, limits);
    tcase_add_loop_test(header, a_header_has_an_end, 0, COUNT(heads));
    tcase_add_test(header, a_header_has_256_kib);
    tcase_add_loop_test(header, a_boundary_ends_a_header, 0, COUNT(delimiters));
    suite_add_tcase(suite, header);
    return crm_check_main(suite);
}
