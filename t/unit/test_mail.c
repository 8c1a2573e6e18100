/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail.c: mails as they come: what is read in them, and that none of them,
 * however broken, does harm */
#include <string.h>
#include <time.h>

#include "apr_file_io.h"
#include "apr_strings.h"

#include "crm_mail_test.h"
#include "crm_text.h"
#include "mail_text.h"

typedef struct expected_t {
    const char *mail;           /* t/mail/MAIL.eml */
    const char *from, *name, *subject;
    const char *text;           /* what its text begins with or is */
    const char *lacks;          /* and does not hold */
    const char *automatic;
    int attachments;
    const char *file;           /* the first's name */
    const char *bounced;
    int hard, references;
} expected_t;

static const expected_t expected[] = {
#include "../mail/expected.h"
};
#define MAILS COUNT(expected)

/* Sanitizers (clang does not say whether they are there) take their time: how
 * much less there is to do with them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
#define LESS 4
#else
#define LESS 1
#endif

/* Return the bytes of the mail NAME, *LEN_P of them, in POOL. */
static char *load(apr_size_t *len_p, const char *name, apr_pool_t *pool)
{
    const char *top = getenv("srcdir");
    const char *path = apr_pstrcat(pool, top ? top : ".", "/t/mail/", name,
                                   ".eml", NULL);
    apr_finfo_t info;
    apr_file_t *file;
    char *bytes;

    ck_assert_msg(!apr_file_open(&file, path, APR_FOPEN_READ, 0, pool),
                  "%s: cannot be opened", path);
    apr_file_info_get(&info, APR_FINFO_SIZE, file);
    bytes = malloc((size_t)info.size + 1);
    *len_p = (apr_size_t)info.size;
    ck_assert(!apr_file_read_full(file, bytes, *len_p, NULL) || !*len_p);
    apr_file_close(file);
    return bytes;
}

static void check_text(const expected_t *want, const char *text)
{
    /* what ends a whole line in the table may be more of a long text */
    ck_assert_msg(!want->text || (*want->text
                                  ? strstr(text, want->text) != NULL
                                  : !*text),
                  "%s: its text is \"%s\", not \"%s\"", want->mail, text,
                  want->text);
    ck_assert_msg(!want->lacks || !strstr(text, want->lacks),
                  "%s: its text has \"%s\"", want->mail, want->lacks);
}

/* Compare MAIL with WANT. */
static void check_mail(const expected_t *want, const crm_mail_t *mail)
{
    const crm_mail_attachment_t *attachment;
    const crm_mail_bounce_t *bounce;

    same(want->mail, "sender", mail->from, want->from);
    if (want->name) {
        same(want->mail, "sender's name", mail->from_name, want->name);
    }
    if (want->subject) {
        same(want->mail, "subject", mail->subject, want->subject);
    }
    check_text(want, mail->text);
    same(want->mail, "kind", mail->automatic, want->automatic);
    ck_assert_msg(mail->attachments->nelts == want->attachments,
                  "%s: it has %d attachments, not %d", want->mail,
                  mail->attachments->nelts, want->attachments);
    if (want->file) {
        attachment = &APR_ARRAY_IDX(mail->attachments, 0,
                                    crm_mail_attachment_t);
        same(want->mail, "first attachment", attachment->name, want->file);
    }
    bounce = mail->bounces->nelts
             ? &APR_ARRAY_IDX(mail->bounces, 0, crm_mail_bounce_t) : NULL;
    same(want->mail, "bounced address", bounce ? bounce->address : NULL,
         want->bounced);
    ck_assert_msg((bounce && bounce->failure == CRM_MAIL_NO_ADDRESS)
                  == want->hard,
                  "%s: whether its bounce is hard", want->mail);
    ck_assert_msg(mail->references->nelts == want->references,
                  "%s: it has %d references, not %d", want->mail,
                  mail->references->nelts, want->references);
}

START_TEST(every_mail_is_read_as_it_is_meant)
{
    const expected_t *want = &expected[_i];
    apr_pool_t *pool = crm_check_pool();
    crm_mail_t mail;
    apr_size_t len;
    char *bytes = load(&len, want->mail, pool);

    crm_mail_read(&mail, bytes, len, &options, pool);
    free(bytes);                /* nothing of it is used any more */
    check_mail(want, &mail);
}
END_TEST

/* ---- what broken mails do ------------------------------------------------ */

/* Check that TEXT can be kept: UTF-8, and a line if it is to be LINE. */
static void check_kept(const char *what, const char *text, int line)
{
    if (!text) {
        return;
    }
    ck_assert_msg(crm_text_valid_utf8(text, strlen(text)),
                  "%s: not UTF-8: \"%s\"", what, text);
    for (const char *c = text; *c; c++) {
        unsigned char byte = (unsigned char)*c;

        CRM_CHECK(byte >= ' ' || (!line && (byte == '\n' || byte == '\t')),
                  "%s: a control character", what);
    }
}

static void check_all_kept(const crm_mail_t *mail)
{
    check_kept("from", mail->from, 1);
    check_kept("from_name", mail->from_name, 1);
    check_kept("to", mail->to, 1);
    check_kept("subject", mail->subject, 1);
    check_kept("date", mail->date, 1);
    check_kept("message_id", mail->message_id, 1);
    ck_assert_ptr_nonnull(mail->text);
    check_kept("text", mail->text, 0);
    ck_assert_uint_le(crm_text_length(mail->text, strlen(mail->text)),
                      CRM_MAIL_TEXT_MAX);
    ck_assert_int_le(mail->attachments->nelts, CRM_MAIL_LIST_MAX);
    ck_assert_int_le(mail->references->nelts, CRM_MAIL_LIST_MAX);
    ck_assert_int_le(mail->bounces->nelts, CRM_MAIL_LIST_MAX);
    for (int i = 0; i < mail->references->nelts; i++) {
        check_kept("reference", APR_ARRAY_IDX(mail->references, i,
                                              const char *), 1);
    }
    for (int i = 0; i < mail->recipients->nelts; i++) {
        check_kept("recipient", APR_ARRAY_IDX(mail->recipients, i,
                                              const char *), 1);
    }
    for (int i = 0; i < mail->attachments->nelts; i++) {
        const crm_mail_attachment_t *one =
            &APR_ARRAY_IDX(mail->attachments, i, crm_mail_attachment_t);

        check_kept("attachment's name", one->name, 1);
        check_kept("attachment's type", one->type, 1);
        ck_assert(!one->body || one->size <= options.attachment_bytes);
    }
    for (int i = 0; i < mail->bounces->nelts; i++) {
        const crm_mail_bounce_t *one =
            &APR_ARRAY_IDX(mail->bounces, i, crm_mail_bounce_t);

        check_kept("bounced address", one->address, 1);
        check_kept("diagnostic", one->diagnostic, 1);
    }
}

/* Read LEN of the BYTES, copied so that what is read behind them is seen. */
static void try_bytes(const char *bytes, apr_size_t len)
{
    crm_mail_t mail;
    apr_pool_t *pool;
    char *copy = malloc(len ? len : 1);

    memcpy(copy, bytes, len);
    apr_pool_create(&pool, NULL);
    crm_mail_read(&mail, copy, len, &options, pool);
    check_all_kept(&mail);
    apr_pool_destroy(pool);
    free(copy);
}

/* Numbers that are the same each time: a failure can be seen again. */
static unsigned next(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

START_TEST(truncated_mails_are_read)
{
    apr_size_t len;
    char *bytes = load(&len, expected[_i].mail, crm_check_pool());
    apr_size_t step = len * LESS / 24 + 1;

    for (apr_size_t end = 0; end < len; end += step) {
        try_bytes(bytes, end);
    }
    try_bytes(bytes, len);
    free(bytes);
}
END_TEST

START_TEST(damaged_mails_are_read)
{
    static const char bad[] = "\0\r\n:;=<>\"?-\377\200\033@";
    unsigned state = (unsigned)_i + 1;
    apr_size_t len;
    char *bytes = load(&len, expected[_i].mail, crm_check_pool());

    for (int round = 0; len && len < 20000 && round < 24 / LESS; round++) {
        char *copy = malloc(len);

        memcpy(copy, bytes, len);
        for (int i = 0; i <= round % 8; i++) {
            copy[next(&state) % len] = bad[next(&state) % sizeof(bad)];
        }
        try_bytes(copy, len);
        free(copy);
    }
    free(bytes);
}
END_TEST

/* Return COUNT times UNIT behind HEAD, *LEN_P bytes, to be freed. */
static char *many(apr_size_t *len_p, const char *head, const char *unit,
                  apr_size_t count)
{
    apr_size_t size = strlen(unit), start = strlen(head);
    char *made = malloc(start + size * count);

    memcpy(made, head, start);
    for (apr_size_t i = 0; i < count; i++) {
        memcpy(made + start + i * size, unit, size);
    }
    *len_p = start + size * count;
    return made;
}

/* What takes long to read, if it is not bounded. */
static const struct {
    const char *head, *unit;
    apr_size_t bytes;
} hostile[] = {
    {"From: ", "a@b.example, ", 1000000},
    {"From: ", "(", 1000000},
    {"To: ", "g:", 1000000},
    {"From: ", "<a b@", 1000000},
    {"From: ", "<a b@c> ", 1000000},
    {"Subject: ", "=?utf-8?B?", 1000000},
    {"References: ", "<a@b>", 2000000},
    {"", "X: y\n", 1000000},
    {"Content-Type: multipart/mixed; boundary=a\n\n", "--a\n\n", 1000000},
    {"Content-Type: multipart/mixed; boundary=a\n\n",
     "--a\nContent-Type: multipart/mixed; boundary=a\n\n", 200000},
    {"Content-Type: message/rfc822\n\n", "Content-Type: message/rfc822\n\n",
     200000},
    {"Content-Type: text/html\n\n", "<div><b>", 4000000},
    {"Content-Type: text/html\n\n", "<table><tr><td><p>", 2000000},
    {"Content-Type: text/html\n\n", "<b></i>", 2000000},
    {"Content-Type: text/html\n\n", "<a href=", 2000000},
    {"Content-Type: text/html\n\n", "&#x41;<", 2000000},
    {"Content-Type: text/plain; charset=utf-8\n\n", "\377", 4000000},
    {"Content-Type: text/plain; charset=shift_jis\n\n", "\377", 4000000},
    {"Content-Type: text/plain; format=flowed\n\n", "> ", 4000000},
    {"Content-Type: text/plain\n\n", "-----BEGIN PGP SIGNED MESSAGE-----\n\n",
     4000000},
    {"Content-Type: text/plain\n\n", "-----BEGIN PGP SIGNED MESSAGE-----\n\n"
     "-----BEGIN PGP SIGNATURE-----\n-----END PGP SIGNATURE-----\n", 4000000},
    {"Content-Type: text/plain; a=\"", "\\", 1000000},
    {"Content-Type: text/plain", "; a*0*=utf-8''%41", 300000},
    {"Content-Type: multipart/report; boundary=a; "
     "report-type=delivery-status\n\n--a\nContent-Type: "
     "message/delivery-status\n\n", "Final-Recipient: rfc822; a@b\n\n",
     2000000},
};

START_TEST(hostile_mails_take_bounded_time)
{
    apr_size_t len;
    char *bytes = many(&len, hostile[_i].head, hostile[_i].unit,
                       hostile[_i].bytes / LESS / strlen(hostile[_i].unit));
    clock_t before = clock();   /* processor time, whatever else runs */
    double seconds;

    try_bytes(bytes, len);
    seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    ck_assert_msg(seconds < 10, "\"%s\" takes %.1f s", hostile[_i].unit,
                  seconds);
    free(bytes);
}
END_TEST

/* ---- limits -------------------------------------------------------------- */

/* A NUL within base64 without padding is not the end of what is decoded. */
START_TEST(base64_with_nuls_is_read_within_its_bytes)
{
    static const char head[] = "Content-Type: application/x-a\n"
        "Content-Transfer-Encoding: base64\n\nAAEC";
    crm_mail_options_t options_of_all = {.attachment_bytes = 100000};
    const crm_mail_attachment_t *file;
    char text[sizeof(head) + 3000] = "";
    crm_mail_t mail;

    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + sizeof(text) - 4, "AwQ\n", 4);
    crm_mail_read(&mail, text, sizeof(text), &options_of_all, crm_check_pool());
    ck_assert_int_eq(mail.attachments->nelts, 1);
    file = (const crm_mail_attachment_t *)(void *)mail.attachments->elts;
    ck_assert_uint_eq(file->size, 5);
    ck_assert_mem_eq(file->body, "\0\1\2\3\4", 5);
}
END_TEST

START_TEST(attachments_are_kept_up_to_the_limit)
{
    static const char mail_text[] =
        "Content-Type: multipart/mixed; boundary=b\n\n"
        "--b\nContent-Type: application/x-a\n"
        "Content-Transfer-Encoding: base64\n\nAAECAw==\n"
        "--b\nContent-Type: application/x-b\n\n12345\n"
        "--b\nContent-Type: application/x-c\n"
        "Content-Transfer-Encoding: base64\n\nAAE\nCAw\n--b--\n";
    crm_mail_options_t four = {.attachment_bytes = 4}, none = {0};
    const crm_mail_attachment_t *all;
    crm_mail_t mail;

    crm_mail_read(&mail, mail_text, strlen(mail_text), &four,
                  crm_check_pool());
    all = (const crm_mail_attachment_t *)(void *)mail.attachments->elts;
    ck_assert_int_eq(mail.attachments->nelts, 3);
    ck_assert_uint_eq(all[0].size, 4);
    ck_assert_mem_eq(all[0].body, "\0\1\2\3", 4);
    ck_assert_uint_eq(all[1].size, 5);
    ck_assert_ptr_null(all[1].body);
    ck_assert_uint_eq(all[2].size, 4);      /* without padding */
    ck_assert_mem_eq(all[2].body, "\0\1\2\3", 4);
    crm_mail_read(&mail, mail_text, strlen(mail_text), &none,
                  crm_check_pool());
    all = (const crm_mail_attachment_t *)(void *)mail.attachments->elts;
    ck_assert_ptr_null(all[0].body);
}
END_TEST

START_TEST(long_texts_are_cut_and_that_is_said)
{
    apr_size_t len;
    char *bytes = many(&len, "Content-Type: text/plain; charset=utf-8\n\n",
                       "\303\244", 70000);
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, len, &options, crm_check_pool());
    free(bytes);
    ck_assert_uint_eq(strlen(mail.text), 2 * CRM_MAIL_TEXT_MAX);
    ck_assert_uint_eq(mail.text_cut, 70000 - CRM_MAIL_TEXT_MAX);
}
END_TEST

START_TEST(blank_lines_within_quotes_are_bounded)
{
    apr_pool_t *pool = crm_check_pool();
    char *lines = memset(apr_pcalloc(pool, 1000001), '\n', 1000000);
    const char *text, *html, *quotes = "";
    unsigned cut = 0;

    for (int i = 0; i < 32; i++) {
        quotes = apr_pstrcat(pool, quotes, "<blockquote>", NULL);
    }
    html = apr_pstrcat(pool, quotes, "<pre>x", lines, "x", NULL);
    text = crm_mail_text(&cut, html, strlen(html), pool);
    ck_assert_msg(strlen(text) < 1000000, "%" APR_SIZE_T_FMT " bytes",
                  strlen(text));
}
END_TEST

START_TEST(message_ids_are_found)
{
    static const char text[] =
        "Message-ID: <a b@c.example>\n"
        "References: <0197c0de-0000-7000-8000-000000000001@crm.example>\n"
        " <0197C0DE-0000-7000-8000-000000000002@mac.example> <x@y>\n"
        "In-Reply-To: <0197c0de-0000-4000-8000-000000000003@crm.example>\n"
        "Delivered-To: SALES@crm.example\nTo: sales@crm.example,\n"
        " b@crm.example\nDate: Mon, 02 Nov 2026 10:00:00 +0100\n"
        "X-Crmapi-Return: 0123456789abcdef0123456789abcdef\n\nx\n";
    crm_mail_t mail;

    read_mail(&mail, text);
    same("ids", "Message-ID", mail.message_id, "<ab@c.example>");
    same("ids", "date", mail.date, "2026-11-02T09:00:00Z");
    ck_assert_int_eq(mail.references->nelts, 4);
    ck_assert_int_eq(mail.recipients->nelts, 3);
    ck_assert_int_eq(mail.tokens->nelts, 0);    /* it returns no mail */
}
END_TEST

/* Programs that know no name for the mail write the same for each one. */
START_TEST(an_id_without_a_name_is_none)
{
    static const char text[] =
        "Message-ID: <@shop.example>\nIn-Reply-To: <@>\n"
        "References: < @shop.example> <a@b.example> <b>\n\nx\n";
    crm_mail_t mail;

    read_mail(&mail, text);
    ck_assert_ptr_null(mail.message_id);
    ck_assert_ptr_null(mail.in_reply_to);
    ck_assert_int_eq(mail.references->nelts, 2);
}
END_TEST

/* Dates as programs write them, and the time that they mean; themselves if they mean
 * none. */
static const struct {
    const char *date, *time;
} dates[] = {
    {"Thu, 14 Aug 2025 14:15:52 +0200", "2025-08-14T12:15:52Z"},
    {"Thu, 14 Aug 2025 14:15:52 +02:00", "2025-08-14T12:15:52Z"},
    {"Thu, 14 Aug 2025 14:15:52 -03:30 (Newfoundland)", "2025-08-14T17:45:52Z"},
    {"Thu, 14 Aug 2025 14:15:52 GMT+0200", "2025-08-14T12:15:52Z"},
    {"Thu, 14 Aug 2025 14:15:52 utc-01:00", "2025-08-14T15:15:52Z"},
    {"Thu, 14 Aug 2025 14:15:52 +0200 (GMT+02:00)", "2025-08-14T12:15:52Z"},
    {"Thu, 14 Aug 2025 14:15:52 +0000 (GMT+02:00)", "2025-08-14T14:15:52Z"},
    {"Thu, 14 Aug 2025 14.15.52 +0200", "2025-08-14T12:15:52Z"},
    {"Thu, 14 Aug 2025 14.15 +0200", "2025-08-14T12:15:00Z"},
    {"Thu, 14 Aug 2025 14:15:52 GMT", "2025-08-14T14:15:52Z"},
    {"14-Aug-2025 14:15:52 -0500", "2025-08-14T19:15:52Z"},
    {"12 May 20 12:08:24 UT", "2020-05-12T12:08:24Z"},
    {"2025-08-14T14:15:52+02:00", "2025-08-14T12:15:52Z"},
    {"2025-08-14T14:15:52.123Z", "2025-08-14T14:15:52Z"},
    {"2025-08-14 14:15:52", "2025-08-14T14:15:52Z"},
    {"6/29/2022 11:57:13 AM", "2022-06-29T11:57:13Z"},
    {"today", "today"},
};

START_TEST(the_date_of_a_mail_is_its_senders)
{
    crm_mail_t mail;
    const char *text = apr_pstrcat(crm_check_pool(), "Date: ", dates[_i].date,
                                   "\n\nx\n", NULL);

    read_mail(&mail, text);
    same("date", dates[_i].date, mail.date, dates[_i].time);
}
END_TEST

/* Headers that name the mail <a@b>. */
static const char *const references[] = {
    "In-Reply-To: <a@b>", "In-Reply-To: a@b", "References: <x@y> <a\n @b>",
    "In-Reply-To: Your message <a@b> of today", "References: <x@y><a@b>",
    /* a name that was written as a text */
    "In-Reply-To: =?utf-8?Q?=3Ca=40b=3E?=",
    "References: =?utf-8?Q?=3Cx=40y=3E_=3Ca?=\n =?utf-8?Q?=40b=3E?=",
    "In-Reply-To: &lt;a@b&gt;", "References: &lt;x@y&gt; &lt;a@b&gt;",
};

START_TEST(a_mail_names_what_it_answers)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, references[_i], "\n\nx\n", NULL);
    crm_mail_t mail;

    read_mail(&mail, text);
    ck_assert_int_gt(mail.references->nelts, 0);
    same(references[_i], "the last", APR_ARRAY_IDX(
             mail.references, mail.references->nelts - 1, const char *),
         "<a@b>");
}
END_TEST

/* Headers of a file (RFC 2183, 2231, 2047), and its name. */
static const struct {
    const char *headers, *name;
} names[] = {
    {"Content-Disposition: attachment; filename=a.pdf", "a.pdf"},
    {"Content-Disposition: attachment; filename=\"\"\nContent-Type:"
     " application/pdf; name=a.pdf", "a.pdf"},
    {"Content-Disposition: attachment; filename=ol.pdf;"
     " filename*=utf-8''%C3%B6l.pdf", "öl.pdf"},
    {"Content-Disposition: attachment; filename*=utf-8''%C3%B6l.pdf;"
     " filename=ol.pdf", "öl.pdf"},
    {"Content-Disposition: attachment; filename*=utf-8''a.pdf; filename=b.pdf",
     "a.pdf"},
    {"Content-Disposition: attachment; filename=a_b.pdf; filename*=utf-8''a%20b.pdf",
     "a b.pdf"},
    {"Content-Disposition: attachment; filename*0*=utf-8''%C3;\n"
     " filename*1*=%B6l.pdf", "öl.pdf"},
    /* the pieces in another order (RFC 2231, 3) */
    {"Content-Disposition: attachment; filename*1*=%ACl.pdf;\n"
     " filename*0*=UTF-8''%E2%82", "€l.pdf"},
    {"Content-Type: application/pdf; name*1*=l.pdf; name*0*=iso-8859-1''%F6;"
     " x=y", "öl.pdf"},
    /* what would show "aexe.pdf" */
    {"Content-Disposition: attachment; filename*=utf-8''%E2%80%AAa%E2%80%AEfdp.exe",
     "afdp.exe"},
    {"Content-Disposition: attachment; filename*=utf-8''%E2%81%A6%E2%81%A9a%E2%80%A6b",
     "a…b"},
    /* malformed */
    {"Content-Disposition: filename=\"a.pdf\"", "a.pdf"},
    {"Content-Disposition: filename*=utf-8''%C3%B6l.pdf", "öl.pdf"},
    {"Content-Disposition: attachment filename=\"a b.pdf\"", "a b.pdf"},
    {"Content-Disposition: attachment, filename=a.pdf", "a.pdf"},
    {"Content-Disposition: attachment; filename=\"a.pdf", "a.pdf"},
    /* quotes within quotes */
    {"Content-Disposition: attachment; filename=\"the \"new\" one.pdf\"; size=1",
     "the \"new\" one.pdf"},
    {"Content-Type: image/png;\n name=\"a \\\"b\\\" \"c\".png\"", "a \"b\" \"c\".png"},
    {"Content-Disposition: attachment; filename=\"a\\\"; \"b\".pdf\"",
     "a\"; \"b\".pdf"},
    {"Content-Disposition: attachment; filename=\"a.pdf\" size=1", "a.pdf"},
    {"Content-Disposition: attachment; filename=\"a \"b\".pdf\" size=1", "a \"b\".pdf"},
    {"Content-Disposition: attachment; filename=\"a.pdf\" (b \"c\" d)", "a.pdf"},
    {"Content-Disposition: attachment; filename=\"a\"; filename*=utf-8''%C3%B6%22;"
     " x=\"y\"", "ö\""},
    /* quotes that are none */
    {"Content-Disposition: attachment; filename='a b.pdf'", "a b.pdf"},
    {"Content-Disposition: attachment; filename=\"'a.pdf\"", "'a.pdf"},
    {"Content-Disposition: attachment; filename=\"'\"", "'"},
    /* as RFC 2231 has it, without the asterisk that says so */
    {"Content-Disposition: attachment; filename=\"UTF-8''%C3%B6l%20a.pdf\"", "öl a.pdf"},
    {"Content-Type: image/png; name=\"iso-8859-1'de'%F6l.png\"", "öl.png"},
    {"Content-Disposition: attachment; filename=\"rock'n'roll%20.mp3\"",
     "rock'n'roll%20.mp3"},
    {"Content-Disposition: attachment; filename=\"utf-8''no.pdf\"", "utf-8''no.pdf"},
    {"Content-Disposition: attachment; filename=\"utf-8''a%20b;c.pdf\"",
     "utf-8''a%20b;c.pdf"},
    /* a parameter of the other field */
    {"Content-Disposition: attachment; name=\"a.pdf\"", "a.pdf"},
    {"Content-Disposition: attachment\nContent-Type: image/png; filename=a.png", "a.png"},
    {"Content-Disposition: attachment; name=b\nContent-Type: image/png; name=a.png",
     "a.png"},
    /* paths of Windows, escaped and not */
    {"Content-Disposition: attachment; filename=\"C:\\TEMP\\new\\a b.png\"; size=1",
     "a b.png"},
    {"Content-Disposition: attachment; filename=\"C:\\\\TEMP\\\\a.png\"", "a.png"},
    {"Content-Disposition: attachment; filename=\"C:\\\\TEMP\\\\a \\\"b\\\".png\"",
     "a \"b\".png"},
    {"Content-Disposition: attachment; name=\"C:\\a\\b.png\"; filename=\"a \\\"b\\\"\"",
     "a \"b\""},
    {"Content-Type: image/png; x=\"y\\z\"; name=\"d:\\a\\\"", NULL},
    {"Content-Disposition: attachment; filename=\"a\\b:\\c\"", "ab:c"},
    {"Content-Disposition: attachment; filename*=utf-8''C%3A%5Ca%5Cb.txt", "b.txt"},
    /* an encoded word, in pieces */
    {"Content-Disposition: attachment; filename*0=\"=?utf-8?Q?=C3=B6\";\n"
     " filename*1=\"l.pdf?=\"", "öl.pdf"},
    {"Content-Type: application/pdf; name*0=\"=?utf-8?B?w7Zs\";\n"
     " name*1=\"LnBkZg==?=\"", "öl.pdf"},
};

START_TEST(a_file_has_its_name)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, "Content-Type: multipart/mixed; boundary=b\n\n--b\n",
        strstr(names[_i].headers, "Content-Type") ? ""
        : "Content-Type: application/pdf\n", names[_i].headers,
        "\n\nx\n--b--\n", NULL);
    crm_mail_t mail;

    read_mail(&mail, text);
    ck_assert_int_eq(mail.attachments->nelts, 1);
    same(names[_i].headers, "name", APR_ARRAY_IDX(
             mail.attachments, 0, crm_mail_attachment_t).name, names[_i].name);
}
END_TEST

/* Programs compare it as it is. */
START_TEST(the_type_of_a_file_is_in_lower_case)
{
    static const char text[] = "Content-Type: Multipart/Mixed; boundary=b\n\n"
        "--b\nContent-Type: IMAGE/Jpeg; name=A.JPG\n\nx\n--b--\n";
    crm_mail_t mail;

    read_mail(&mail, text);
    ck_assert_int_eq(mail.attachments->nelts, 1);
    same(text, "type", APR_ARRAY_IDX(mail.attachments, 0,
                                     crm_mail_attachment_t).type, "image/jpeg");
}
END_TEST

/* "Привет, как дела? Ответь" in KOI8-R */
#define HELLO \
    "\xf0\xd2\xc9\xd7\xc5\xd4, \xcb\xc1\xcb \xc4\xc5\xcc\xc1? \xef\xd4\xd7\xc5\xd4\xd8"

/* KOI8-R in headers. A label of the text that its bytes do not have says
 * nothing; a few letters say less than the text does. */
static const struct {
    const char *head, *body;
} cyrillic[] = {
    {"Content-Type: text/plain; charset=koi8-r\n", "ok"},
    {"Content-Type: text/plain; charset=utf-8\n", HELLO},
    {"Content-Type: text/plain; charset=unknown\n", HELLO},
    {"", HELLO},
};

START_TEST(a_header_without_a_charset_has_that_of_the_text)
{
    crm_mail_t mail;

    read_mail(&mail, apr_pstrcat(
        crm_check_pool(), "From: a@example.org\nSubject: \xe4\xc1\n",
        cyrillic[_i].head, "\n", cyrillic[_i].body, "\n", NULL));
    same(cyrillic[_i].head, "subject", mail.subject, "Да");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail");
    TCase *reads = tcase_create("reading");
    TCase *breaks = tcase_create("broken");

    mail_init();
    tcase_add_loop_test(reads, every_mail_is_read_as_it_is_meant, 0, MAILS);
    tcase_add_test(reads, attachments_are_kept_up_to_the_limit);
    tcase_add_test(reads, base64_with_nuls_is_read_within_its_bytes);
    tcase_add_test(reads, long_texts_are_cut_and_that_is_said);
    tcase_add_test(reads, blank_lines_within_quotes_are_bounded);
    tcase_add_test(reads, message_ids_are_found);
    tcase_add_test(reads, an_id_without_a_name_is_none);
    tcase_add_loop_test(reads, the_date_of_a_mail_is_its_senders, 0,
                        COUNT(dates));
    tcase_add_loop_test(reads, a_mail_names_what_it_answers, 0,
                        COUNT(references));
    tcase_add_loop_test(reads, a_file_has_its_name, 0, COUNT(names));
    tcase_add_test(reads, the_type_of_a_file_is_in_lower_case);
    tcase_add_loop_test(reads, a_header_without_a_charset_has_that_of_the_text, 0,
                        COUNT(cyrillic));
    tcase_add_loop_test(breaks, truncated_mails_are_read, 0, MAILS);
    tcase_add_loop_test(breaks, damaged_mails_are_read, 0, MAILS);
    tcase_add_loop_test(breaks, hostile_mails_take_bounded_time, 0,
                        COUNT(hostile));
    suite_add_tcase(suite, reads);
    suite_add_tcase(suite, breaks);
    return crm_check_main(suite);
}
