/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail.c: mails as they come: what is read in them, and that none of them,
 * however broken, does harm */
#include "crm_check.h"

#include <string.h>

#include <libxml/parser.h>

#include "apr_file_io.h"
#include "apr_strings.h"

#include "crm_mail.h"
#include "crm_text.h"
#include "mail_auth.h"
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

static const crm_mail_options_t options = {.attachment_bytes = 65536};

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

static void same(const char *mail, const char *what, const char *got,
                 const char *want)
{
    ck_assert_msg(want ? got && !strcmp(got, want) : !got,
                  "%s: its %s is \"%s\", not \"%s\"", mail, what,
                  got ? got : "(none)", want ? want : "(none)");
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

    crm_mail_read(&mail, text, strlen(text), &options, crm_check_pool());
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

    crm_mail_read(&mail, text, strlen(text), &options, crm_check_pool());
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

    crm_mail_read(&mail, text, strlen(text), &options, crm_check_pool());
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

    crm_mail_read(&mail, text, strlen(text), &options, pool);
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
    {"Content-Disposition: attachment; filename*0*=utf-8''%C3;\n"
     " filename*1*=%B6l.pdf", "öl.pdf"},
    /* the pieces in another order (RFC 2231, 3) */
    {"Content-Disposition: attachment; filename*1*=%ACl.pdf;\n"
     " filename*0*=UTF-8''%E2%82", "€l.pdf"},
    {"Content-Type: application/pdf; name*1*=l.pdf; name*0*=iso-8859-1''%F6;"
     " x=y", "öl.pdf"},
    /* what would show "aexe.pdf" */
    {"Content-Disposition: attachment; filename*=utf-8''a%E2%80%AEfdp.exe",
     "afdp.exe"},
    {"Content-Disposition: attachment; filename*=utf-8''%E2%81%A7a%E2%80%A6b",
     "a…b"},
    /* malformed */
    {"Content-Disposition: filename=\"a.pdf\"", "a.pdf"},
    {"Content-Disposition: filename*=utf-8''%C3%B6l.pdf", "öl.pdf"},
    {"Content-Disposition: attachment filename=\"a b.pdf\"", "a b.pdf"},
    {"Content-Disposition: attachment, filename=a.pdf", "a.pdf"},
    {"Content-Disposition: attachment; filename=\"a.pdf", "a.pdf"},
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

    crm_mail_read(&mail, text, strlen(text), &options, pool);
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

    crm_mail_read(&mail, text, strlen(text), &options, crm_check_pool());
    ck_assert_int_eq(mail.attachments->nelts, 1);
    same(text, "type", APR_ARRAY_IDX(mail.attachments, 0,
                                     crm_mail_attachment_t).type, "image/jpeg");
}
END_TEST

/* Headers of a mail, and what it is (contract 18.5). */
static const struct {
    const char *headers, *automatic;
} kinds[] = {
    {"Subject: Automatic reply: Offer", "auto-reply"},
    {"Subject: Réponse automatique : Offer", "auto-reply"},
    {"Subject: [Auto-Reply] Offer", "auto-reply"},
    {"Subject: 【自動返信】 Offer", "auto-reply"},
    {"Subject: Autoreply", "auto-reply"},
    {"Subject: Automatikus válasz: Offer", "auto-reply"},
    {"Subject: Αυτόματη απάντηση: x",
     "auto-reply"},
    {"Subject: תשובה אוטומטית: x", "auto-reply"},
    {"Subject: AUTO: Ada is out of the office\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: Automatic reply of Ada\nIn-Reply-To: <a@b>", "auto-reply"},
    /* with other blanks and marks than those of ASCII, and at the end */
    {"Subject: Réponse automatique\302\240: Offer", "auto-reply"},
    {"Subject: Automatic\302\240reply: Offer", "auto-reply"},
    {"Subject: Automatic reply：Offer", "auto-reply"},
    {"Subject: Out of\302\240office – Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Re: Offer (Automatic Response)\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: Re: Offer [auto-reply]\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Re: Offer (Automatic Response)", NULL},
    {"Subject: Re: Offer (automatic reply feature)\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Re: Offer (out of office)\nIn-Reply-To: <a@b>", NULL},
    {"X-Auto-Reply-From: ada@example.org", "auto-reply"},
    {"X-FC-MachineGenerated: true", "auto-reply"},
    {"X-POST-MessageClass: 9; Autoresponder", "auto-reply"},
    {"Preference: auto_reply", "auto-reply"},
    {"X-Apple-Action: VACATION\nIn-Reply-To: <a@b>", "auto-reply"}, /* iCloud */
    {"Delivered-To: sales@crm.example\nDelivered-To: Autoresponder",
     "auto-reply"},
    {"Auto-Submitted: no\nAuto-Submitted: auto-replied (vacation)",
     "auto-reply"},
    {"X-Autogenerated: Reply", "auto-reply"},
    {"Precedence: first-class\nPrecedence: auto_reply", "auto-reply"},
    {"Precedence: auto-reply", "auto-reply"},
    {"X-Amazon-Auto-Reply: true", "auto-reply"},
    {"Subject: Vacation response: Offer", "auto-reply"},
    {"Subject: Abwesenheitsagent: Re: Offer\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: Ich bin derzeit nicht im Büro\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: I'm currently out of office Re: Offer\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: Réponse d'absence : Offer\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: Je suis absent(e)\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Fuera de oficina\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Afwezigheidsbericht\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Frånvaro: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Távollét\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Not in the office\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Annual leave until Monday\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Urlaub\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Vacation\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Absence - Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Nejsem v kanceláři\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: 자동회신: x",
     "auto-reply"},
    {"Subject: Auto-Antwort: Offer", "auto-reply"},
    {"Subject: Risposta Non al computer: Offerta", "auto-reply"},
    {"X-Amazon-Mail-Relay-Type: notification", "auto-reply"},
    /* a rule of Exchange; either header alone may be in what people write */
    {"X-Auto-Response-Suppress: All\nX-MS-Exchange-Inbox-Rules-Loop: a@b",
     "auto-reply"},
    {"X-Auto-Response-Suppress: DR, OOF, AutoReply\n"
     "X-MS-Exchange-Inbox-Rules-Loop: a@b", NULL},
    {"X-MS-Exchange-Inbox-Rules-Loop: a@b", NULL},
    /* Italy's certified mail (RFC 6109) */
    {"X-Ricevuta: avvenuta-consegna\nSubject: CONSEGNA: Offer", "receipt"},
    {"X-Trasporto: posta-certificata\nSubject: POSTA CERTIFICATA: x", NULL},
    {"X-Precedence: bulk", "bulk"}, {"X-Precedence: list", "list"},
    /* what people write */
    {"Subject: Urlaub in Rom\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Absence of Ada\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Urlaub?\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Out of office space to rent?\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Out of office: space to rent?\nIn-Reply-To: <a@b>",
     "auto-reply"},
    {"Subject: Away: space to rent?\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Absent ou en congé ?\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Ausente ？\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Urlaub", NULL},
    {"Subject: I am in the office\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Ich bin dabei\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Re: Fuera de oficina\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Fuera de oficina", NULL},
    {"Precedence: auto", NULL},
    {"Subject: Automatic reply does not work", NULL},
    {"Subject: Autoreply feature?", NULL},
    {"Subject: Automatic reply?", NULL},
    {"Subject: AUTO: an old one for sale", NULL},
    {"Subject: Re: Automatic reply: Offer\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Out of office", NULL},
    {"X-Apple-Action: MOVE_TO_FOLDER/INBOX", NULL},
    {"Delivered-To: autoresponder-team@example.org", NULL},
    {"Delivered-To: autoresponder@example.org", NULL},
    {"Auto-Submitted: no (by hand)", NULL},
    {"Auto-Submitted: notified", "auto-reply"},
    {"X-Auto-Response-Suppress: All", NULL},
    {"X-MS-Exchange-Inbox-Rules-Loop: a@b", NULL},
    {"Auto-Submitted: (by hand) no", NULL},
    {"Auto-Submitted: (by hand) auto-replied", "auto-reply"},
    {"Subject: Vacation: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: Vacation plans\nIn-Reply-To: <a@b>", NULL},
    {"X-Autogenerated: Forward", NULL},
    {"X-Autogenerated: Mirror", NULL},
    {"Precedence: first-class", NULL},
    {"Subject: پاسخ خودکار: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: balasan automatik"
     ": Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: erantzun automatikoa"
     ": Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: përgjigje automatike: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: автоматски одговор: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: авто-ответ: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: 부재 중: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: відсутність на: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: у відпустці: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: поза офісом: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: вън от офиса: Re: Offer\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: отпуск\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: відпустка\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: почивка\nIn-Reply-To: <a@b>", "auto-reply"},
    {"Subject: отпуск 2027\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Autoreplying\nIn-Reply-To: <a@b>", NULL},
    {"Subject: Oooé\nIn-Reply-To: <a@b>", NULL},
};

START_TEST(a_mail_is_automatic_or_a_persons)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: ada@example.org\n",
                                   kinds[_i].headers, "\n\nx\n", NULL);
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    same(kinds[_i].headers, "kind", mail.automatic, kinds[_i].automatic);
}
END_TEST

/* What returns a mail <id@crm.example> with a token, and what that says of the
 * address. BODY follows "From: FROM" and the type of a mail. */
#define TOKEN "0123456789abcdef0123456789abcdef"
#define OURS "Message-ID: <id@crm.example>\nX-Crmapi-Return: " TOKEN "\n" \
    "To: ada@example.org\nSubject: Offer\n\nDear Ada\n"
#define MIXED "Content-Type: multipart/mixed; boundary=b\n\n"
#define REPORT "Content-Type: multipart/report; boundary=b;" \
    " report-type=delivery-status\n\n"

static const struct {
    const char *name, *from, *bytes;
    const char *automatic, *status;
    crm_mail_failure_t failure;
    int returned;
} returned[] = {
    {"Yahoo", "MAILER-DAEMON@yahoo.example",
     "\nSorry, we were unable to deliver your message to the following"
     " address.\n\n<ada@example.org>:\n550: 5.1.1 <ada@example.org>: User"
     " unknown\n\n--- Below this line is a copy of the message.\n\n" OURS,
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"Postfix in multipart/mixed", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\n<ada@example.org>: host mx said: 550 5.1.1 User unknown\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"headers only, as text", "Postmaster@mx.example",
     "\nUndeliverable: 554 5.7.1 rejected\n\nOriginal message headers:\n\n"
     "Received: from a (Exim 4.92.3)\n by b\n" OURS,
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"quoted, in German", "mailer-daemon@mx.example",
     "\nIhre Nachricht ist nicht zugestellt: 550 Benutzer unbekannt\n\n"
     "> Received: from a by b\n> Message-ID: <id@crm.example>\n"
     "> X-Crmapi-Return: " TOKEN "\n",
     "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"a code, and words that say nothing", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nHost said: 550 nicht angenommen\n"
     "--b\nContent-Type: text/rfc822-headers\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 1},
    {"a code, and words about the sender", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nHost said: 550 sender address: user unknown\n"
     "--b\nContent-Type: text/rfc822-headers\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 1},
    {"a delay", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nStill trying: 451 4.7.1 greylisted\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "4.7.1", CRM_MAIL_NO_FAILURE, 1},
    {"Exim", "Mailer-Daemon@mx.example",
     "X-Failed-Recipients: ada@example.org\n\nThis is a permanent error.\n\n"
     "  ada@example.org\n    Unrouteable address\n\n------ This is a copy of"
     " your message, including all the headers. ------\n\n" OURS,
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"qmail", "MAILER-DAEMON@mx.example",
     "\nHi. This is the qmail-send program at mx.example.\n\n"
     "<ada@example.org>:\nSorry, no mailbox here by that name. (#5.1.1)\n\n"
     "--- Below this line is a copy of the message.\n\nReturn-Path: <x@y>\n"
     OURS, "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a null sender", "\"Antispam\" <x@mx.example>\nReturn-Path: <>",
     MIXED "--b\n\n550 5.7.1 blocked\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"a report without fields", "postmaster@exchange.example",
     REPORT "--b\n\nIl messaggio non è stato recapitato. #5.1.10#\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.10", CRM_MAIL_NO_ADDRESS, 1},
    {"a field that is folded", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822;\n ada@example.org\n"
     "Action: failed\nDiagnostic-Code: smtp; 550\n\t5.1.1\n unknown\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields of RFC 3464", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 5.7.509"
     " denied\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.7.509", CRM_MAIL_FAILED, 1},
    {"a blank Return-Path, no From", "\nReturn-Path: ",
     MIXED "--b\n\nerror: 550 5.1.1\n--b\nContent-Type: text/plain;"
     " name=original.txt\nContent-Disposition: attachment\n\nReceived: from a"
     " by b\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a mail in base64", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\n550 5.2.1 disabled\n--b\nContent-Type: message/rfc822\n"
     "Content-Transfer-Encoding: base64\n\n"
     "TWVzc2FnZS1JRDogPGlkQGNybS5leGFtcGxlPgpYLUNybWFwaS1SZXR1cm46IDAxMjM0NTY3\n"
     "ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmCgp4Cg==\n--b--\n",
     "bounce", "5.2.1", CRM_MAIL_NO_ADDRESS, 1},
    {"no action", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Status: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS
     "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"no status", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nDiagnostic-Code: smtp; 550 no mailbox here by that name"
     "\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"Sendmail", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nThe original message was received\n   ----- Transcript of"
     " session follows -----\n... while talking to mx:\n>>> RCPT To:<ada@"
     "example.org>\n<<< 550 5.1.1 unknown\n\n--b\nContent-Type:"
     " message/delivery-status\n\nReporting-MTA: dns; mx\nArrival-Date: x\n\n"
     "Final-Recipient: RFC822; ada@example.org\nAction: failed\nStatus: 5.1.1\n"
     "Remote-MTA: DNS; mx\nDiagnostic-Code: SMTP; 550 5.1.1 unknown\n\n"
     "--b\nContent-Type: text/rfc822-headers\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a delay that names a permanent code", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: delayed\nStatus: 4.4.1\n\n--b\nContent-Type: message/rfc822\n"
     "\n" OURS "--b--\n", "bounce", "4.4.1", CRM_MAIL_NO_FAILURE, 1},
    {"5.1.1 of a refusal", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.1.1\nDiagnostic-Code: SMTP; 550 5.7.1 IP address"
     " blacklisted\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"the status is in the text", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nada@example.org: 550 5.1.1 User unknown\neve@example.org:"
     " 552 5.2.2 full\n\n--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.0.0\n\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"DragonFly", "MAILER-DAEMON <>",
     "\nThere was an error delivering your mail to <ada@example.org>.\n\n"
     "mx did not like our RCPT:\n550 5.1.1 unknown\n\nMessage headers follow.\n"
     "\n" OURS, "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"Gmail, without the mail", "mailer-daemon@googlemail.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\nX-Original-Message-ID: <id@crm.example>\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\n"
     "Status: 5.1.1\n\n--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 0},
    {"a report without a type", "Mail.Delivery.System@mx.example",
     "Content-Type: multipart/report; boundary=b\n\n--b\n\nSMTP: 553 5.3.0 no\n"
     "\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.3.0", CRM_MAIL_FAILED, 1},
    {"a blank line before the mail", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\n550 5.1.1 User unknown\n"
     "--b\nContent-Type: message/rfc822\n\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields in multipart/mixed", "<>",
     MIXED "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Original-Recipient: <ada@example.org>\nAction: failed\nDiagnostic-Code:"
     " smtp; 550 ada@example.org... No such user\n\n--b\nContent-Type:"
     " message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"words without a status, of 5.0.0", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nada@example.org: Domain does not exist\n--b\nContent-Type:"
     " message/delivery-status\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.0.0\n\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"the header of a part", "\"Mail Deliver System\" <MAILER-DAEMON>",
     MIXED "--b\n\nada@example.org [User unknown]\n\n--b\n" OURS "--b--\n",
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"fields as a file of text", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: text/plain; name=details.txt\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields as another file", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nsorry\n--b\nContent-Type: application/octet-stream;"
     " name=ATT1.dat\nContent-Transfer-Encoding: base64\n\n"
     "UmVwb3J0aW5nLU1UQTogZG5zOyBteAoKRmluYWwtUmVjaXBpZW50OiByZmM4MjI7IGFkYUBl\n"
     "eGFtcGxlLm9yZwpBY3Rpb246IGZhaWxlZApTdGF0dXM6IDUuMS4xCg==\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a receipt", "ada@example.org\nReturn-Path: <>",
     "Content-Type: multipart/report; boundary=b;"
     " report-type=disposition-notification\n\n--b\n\nread\n--b\n"
     "Content-Type: message/disposition-notification\n\nDisposition:"
     " manual-action/MDN-sent-manually; displayed\n\n--b\nContent-Type:"
     " text/rfc822-headers\n\n" OURS "--b--\n",
     "receipt", NULL, CRM_MAIL_NO_FAILURE, 0},
    {"a person who forwards a mail", "ada@example.org",
     MIXED "--b\n\n550 5.1.1 User unknown, they say\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     NULL, NULL, CRM_MAIL_NO_FAILURE, 0},
    {"a person who is postmaster", "Postmaster <postmaster@example.org>",
     "\n550 5.1.1 is what our server says. Can you help?\n",
     NULL, "5.1.1", CRM_MAIL_NO_ADDRESS, 0},
    {"Apache James answers", "post_master@example.org\nSubject: Re:Offer\n"
     "In-Reply-To: <id@crm.example>", "\nError: Invalid user address\n\n"
     "Error message below:\n550 - Requested action not taken: no such user here\n"
     "\nMessage details:\n  Subject: Offer\n", NULL, "5.0.0",
     CRM_MAIL_NO_ADDRESS, 0},
    {"words in a part of their own", "Postmaster@example.org",
     REPORT "--b\nContent-Type: message/delivery-status\n\nUndeliverable: see"
     " below.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA:"
     " dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\nAction: failed\n"
     "Status: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"Domino, without the mail", "Postmaster@example.jp\nSubject: DELIVERY"
     " FAILURE: User ada (ada@example.org) not listed",
     "\nYour message was not delivered to ada@example.org\n", "bounce",
     "5.0.0", CRM_MAIL_FAILED, 0},
    {"the null sender, without the mail", "NDR <sysadmin@mx.example>\n"
     "Return-Path: <>\nSubject: Undeliverable Message", "\nNo such device.\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 0},
    {"a delay, without the mail", "MAILER-DAEMON@y.example\nSubject: Delivery"
     " Status Notification (Delay)", "\nWill be retried.\n", "bounce", NULL,
     CRM_MAIL_NO_FAILURE, 0},
    {"given up, without the mail", "MAILER-DAEMON@y.example\nSubject: Mail"
     " delivery failed", "\nThis is a permanent error: quota exceeded\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 0},
    {"a mail server whose mails are automatic replies", "Mailer-Daemon@y.example"
     "\nAuto-Submitted: auto-replied", "\nLocal mailbox: user not found\n",
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 0},
    {"a version is no status", "MAILER-DAEMON@y.example", "\nYour message\n"
     " Subject: RELEASED Mailman 2.0.12\ndid not reach ada@example.org\n"
     "  The recipient name is not recognized\n\n" OURS,
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"Action: failure", "postmaster@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822;ada@example.org\nAction: failure\n"
     "Status: 553 Exceeded maximum inbound message size\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.0.0",
     CRM_MAIL_FAILED, 1},
    {"in Chinese", "MAILER-DAEMON@y.example", "\n无法投递\n\n" OURS, "bounce", "5.0.0",
     CRM_MAIL_FAILED, 1},
    {"in Swedish: no such address", "MAILER-DAEMON@y.example",
     "\nAdressen hittades inte\n\n" OURS, "bounce", NULL,
     CRM_MAIL_NO_ADDRESS, 1},
    {"in Chinese: no such user", "MAILER-DAEMON@y.example",
     "\n收件人不存在\n\n" OURS, "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"a person who asks about a returned mail", "ada@example.org\nSubject: Fwd:"
     " Returned mail: see transcript", "\nWhy is that?\n", NULL, NULL,
     CRM_MAIL_NO_FAILURE, 0},
    {"a holiday notice", "x@y.example\nReturn-Path: <>",
     "\nCall room 550, please.\n", "auto-reply", "5.0.0",
     CRM_MAIL_NO_FAILURE, 0},
    {"who has left", "x@y.example\nReturn-Path: <>\nAuto-Submitted:"
     " auto-replied", "\nI have left Y. This mailbox is inactive.\n",
     "auto-reply", NULL, CRM_MAIL_NO_FAILURE, 0},
    {"who has left, with a number", "x@y.example\nReturn-Path: <>",
     "\nI have left. My account has been disabled (5.1.1).\n", "auto-reply",
     "5.1.1", CRM_MAIL_NO_FAILURE, 0},
    {"what a mail server says without the mail", "MAILER-DAEMON@y.example\n"
     "Return-Path: <>", "\nThis mailbox is inactive.\n", "bounce", NULL,
     CRM_MAIL_NO_ADDRESS, 0},
    {"the null sender, in words and without the mail", "x@y.example\n"
     "Return-Path: <>\nSubject: Undeliverable", "\nUser unknown.\n",
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 0},
    {"no status and no words", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.0.0",
     CRM_MAIL_FAILED, 1},
    {"given up after days", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\nStatus:"
     " 4.4.7\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "4.4.7", CRM_MAIL_FAILED, 1},
    {"5.1.1 behind a refusal for now", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\nStatus:"
     " 5.1.1\nDiagnostic-Code: smtp; 450 4.2.0 later\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.1.1",
     CRM_MAIL_NO_ADDRESS, 1},
    {"given up, in words", "Mailer-Daemon@mx.example\nX-Failed-Recipients:"
     " ada@example.org\nSubject: Mail delivery failed: returning message to"
     " sender", "\nThis is a permanent error. The following address(es)"
     " failed:\n\n  ada@example.org\n    retry timeout exceeded\n\n"
     "------ This is a copy of the message. ------\n\n" OURS, "bounce",
     "5.0.0", CRM_MAIL_FAILED, 1},
    {"given up, in the subject", "mailer-daemon@googlemail.example\n"
     "X-Failed-Recipients: ada@example.org\nSubject: Delivery Status"
     " Notification (Failure)", "\nグ\n\n----- Original message -----\n\n" OURS, "bounce", "5.0.0", CRM_MAIL_FAILED, 1},
    {"given up, with the status of the last try", "MAILER-DAEMON@y.example",
     "\nHi. This is the qmail-send program at y.example.\n\n"
     "<ada@example.org>:\nno connection. (#4.4.1)\nI'm not going to try"
     " again.\n\n--- Below this line is a copy of the message.\n\n" OURS,
     "bounce", "4.4.1", CRM_MAIL_FAILED, 1},
    {"given up, as only the subject says", "MAILER-DAEMON@y.example\n"
     "Subject: Undelivered Mail Returned to Sender", "\n<ada@example.org>: host"
     " mx.example.org refused to talk to me:\n    421 4.7.0 temporarily"
     " deferred\n\n" OURS, "bounce", "4.7.0", CRM_MAIL_FAILED, 1},
    {"given up, with a status in the text", "MAILER-DAEMON@y.example\n"
     "X-Failed-Recipients: ada@example.org", "\nfailed permanently:\n\n"
     "ada@example.org\n\nTechnical details: 552 5.7.0 no\n\n" OURS,
     "bounce", "5.7.0", CRM_MAIL_FAILED, 1},
    {"a warning, in words", "mailer-daemon@googlemail.example\nSubject:"
     " Delivery Status Notification (Delay)", "\nTHIS IS A WARNING MESSAGE"
     " ONLY.\n\nYour mail could not be delivered to ada@example.org. It will"
     " be retried.\n\n----- Original message -----\n\n" OURS, "bounce",
     NULL, CRM_MAIL_NO_FAILURE, 1},
    {"expired, as SendGrid says it", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: expired\nStatus:"
     " 4.4.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "4.4.1", CRM_MAIL_FAILED, 1},
    {"an address of X.400", "MAILER-DAEMON@y.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: x400; ada@example.org\nAction: failed\nStatus: 5.1.1"
     "\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n", "bounce",
     NULL, CRM_MAIL_NO_FAILURE, 1},
    {"RFC 6533", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/global-delivery-status\n\n"
     "Final-Recipient: utf-8; ada@example.org\nAction: failed\nStatus:"
     " 5.1.1\n\n--b\nContent-Type: message/global-headers\n\n" OURS
     "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields with blanks before the colon", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient : rfc822; ada@example.org\nAction\t: failed\n"
     "Status : 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS
     "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"words of another status than the fields'", "MAILER-DAEMON@y.example",
     REPORT "--b\n\nada@example.org: 550 5.1.1 User unknown\n--b\n"
     "Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822;"
     " ada@example.org\nAction: failed\nStatus: 5.2.2\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.2.2",
     CRM_MAIL_FAILED, 1},
    {"qmail, of two addresses", "MAILER-DAEMON@mx.example",
     "\nHi. This is the qmail-send program at mx.example.\n\n"
     "<ada@example.org>:\nI will try again. (#4.2.2)\n\n<eve@example.org>:\n"
     "Sorry, no mailbox here by that name. (#5.1.1)\n\n"
     "--- Below this line is a copy of the message.\n\n" OURS,
     "bounce", "4.2.2", CRM_MAIL_NO_FAILURE, 1},
    {"a number by a mail server", "MAILER-DAEMON@y.example",
     "\nCall room 550, please.\n", "bounce", "5.0.0", CRM_MAIL_NO_FAILURE, 0},
    {"a mail server in Return-Path", "NDR <ndr@y.example>\n"
     "Return-Path: <MAILER-DAEMON@y.example>",
     MIXED "--b\n\n550 5.7.1 blocked\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"the mail as a file", "MAILER-DAEMON@y.example",
     MIXED "--b\n\n550 5.7.1 blocked\n--b\nContent-Type:"
     " application/octet-stream\n\n" OURS "--b--\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"a header that is folded", "MAILER-DAEMON@y.example",
     "\n550 5.7.1 blocked\n\nReceived: from a by b\nMessage-ID:\n"
     " <id@crm.example>\nX-Crmapi-Return: " TOKEN "\n\nDear Ada\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"words as in a header, before a blank line", "MAILER-DAEMON@y.example",
     "\nReason: 550 5.1.1 no\n\n" OURS, "bounce", "5.1.1",
     CRM_MAIL_NO_ADDRESS, 1},
    {"fields before the header", "MAILER-DAEMON@y.example",
     "\nStatus: 5.1.1\n" OURS, "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
};

START_TEST(whatever_returns_a_mail_is_a_bounce)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: ", returned[_i].from, "\n",
                                   returned[_i].bytes, NULL);
    const char *name = returned[_i].name;
    const crm_mail_bounce_t *one;
    crm_mail_failure_t failure;
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    same(name, "kind", mail.automatic, returned[_i].automatic);
    one = mail.bounces->nelts ? &APR_ARRAY_IDX(mail.bounces, 0,
                                               crm_mail_bounce_t) : NULL;
    failure = one && one->failure > mail.failure ? one->failure
              : mail.failure;
    ck_assert_msg(failure == returned[_i].failure, "%s: failure %d", name,
                  failure);
    same(name, "status", one && one->status ? one->status : mail.status,
         returned[_i].status);
    ck_assert_msg(mail.tokens->nelts == returned[_i].returned,
                  "%s: %d tokens", name, mail.tokens->nelts);
    ck_assert_msg(mail.references->nelts
                  == (returned[_i].returned || strstr(text, "X-Original-M")
                      || strstr(text, "In-Reply-To")),
                  "%s: %d references", name, mail.references->nelts);
}
END_TEST

/* What people write with the words or the names of mail servers. */
static const struct {
    const char *from, *bytes;
} written[] = {
    {"ada@example.org", "\nHi. This is the front desk.\n\n<ada@example.org>:\n"
     "550 user unknown, says my program.\n"},
    {"System Administrator <it@example.org>\nSubject: Re: Offer\n"
     "In-Reply-To: <id@crm.example>", "\nNo, thanks.\n\n> Message-ID: <id@crm"
     ".example>\n> X-Crmapi-Return: " TOKEN "\n> To: it@example.org\n"},
    {"Ada <postmaster@example.org>\nSubject: AW: Not delivered yet\n"
     "In-Reply-To: <id@crm.example>", "\nIt never came: 550 5.1.1\n"},
    {"Mail Administrator <ada@example.org>\nSubject: SV: Offer\n"
     "In-Reply-To: <id@crm.example>", MIXED "--b\n\nOn what terms?\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n"},
};

START_TEST(a_person_may_write_as_a_mail_server)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: ", written[_i].from, "\n",
                                   written[_i].bytes, NULL);
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    same(written[_i].from, "kind", mail.automatic, NULL);
    ck_assert_int_eq(mail.bounces->nelts, 0);
    ck_assert_int_eq(mail.failure, CRM_MAIL_NO_FAILURE);
}
END_TEST

/* Explanations, and what they mean (contract 17.5). */
static const struct {
    const char *text, *status;
    crm_mail_failure_t failure;
} explained[] = {
    {"550 5.1.1 no", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"(#5.1.2)", "5.1.2", CRM_MAIL_NO_ADDRESS},
    {"[5.1.3]", "5.1.3", CRM_MAIL_NO_ADDRESS},
    {"said: 550-5.1.6", "5.1.6", CRM_MAIL_NO_ADDRESS},
    {"'550 5.1.10 RESOLVER.ADR.RecipientNotFound'", "5.1.10",
     CRM_MAIL_NO_ADDRESS},
    {"550 5.2.1 disabled", "5.2.1", CRM_MAIL_NO_ADDRESS},
    {"550 5.1.8 user unknown", "5.1.8", CRM_MAIL_FAILED},
    {"552 mailbox ada is over quota (#5.1.1)", "5.1.1", CRM_MAIL_FAILED},
    {"550-5.2.1 The user you are trying to contact is receiving\n550-5.2.1 mail"
     " too quickly", "5.2.1", CRM_MAIL_FAILED},
    {"550-5.2.1 The user is receiving mail at a rate that prevents", "5.2.1",
     CRM_MAIL_FAILED},
    /* of the sender's host, or what the person wants: the address is there */
    {"550 5.1.1 <ada@example.org> - 192.0.2.1 has sent to too many recipients this"
     " hour", "5.1.1", CRM_MAIL_FAILED},
    {"553 5.1.3 http://www.spamhaus.org/query/bl?ip=192.0.2.1", "5.1.3",
     CRM_MAIL_FAILED},
    {"550 5.1.1 Refused due to recipient preferences", "5.1.1", CRM_MAIL_FAILED},
    {"550 5.2.1 account disabled temporarly for exceeding receiving limits",
     "5.2.1", CRM_MAIL_FAILED},
    {"550 account is temporarily disabled", "5.0.0", CRM_MAIL_FAILED},
    {"550 account disabled temporarily", "5.0.0", CRM_MAIL_FAILED},
    {"550 5.1.11", "5.1.11", CRM_MAIL_FAILED},
    /* what another server said, within what says nothing */
    {"5.1.0 - Unknown address error 550-'5.1.1 Mailbox <ada@example.org> does"
     " not exist' (delivery attempts: 0)", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"5.1.0 - Unknown address error 550-'5.7.1 blocked'", "5.7.1",
     CRM_MAIL_FAILED},
    {"554 5.0.0 Service unavailable: 550 5.1.1", "5.1.1",
     CRM_MAIL_NO_ADDRESS},
    {"5.1.0 - Unknown address error 550-'No such user' (delivery attempts: 0)",
     "5.1.0", CRM_MAIL_NO_ADDRESS},
    {"5.1.0 Address rejected", "5.1.0", CRM_MAIL_FAILED},
    {"5.1.0 Domain example.org does not accept mail (nullMX)", "5.1.0",
     CRM_MAIL_NO_ADDRESS},
    {"5.7.0 blocked, not 5.1.1", "5.7.0", CRM_MAIL_FAILED},
    {"5.1.1, not 5.1.0", "5.1.1", CRM_MAIL_NO_ADDRESS},
    /* no such domain, as 5.1.2 */
    {"550 Host unknown (Authoritative answer from name server)", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"ada@example.org ... unknown host", NULL, CRM_MAIL_NO_ADDRESS},
    {"<<< No such domain.", NULL, CRM_MAIL_NO_ADDRESS},
    {"ada@example.org: Domain does not exist", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Domain of sender address ada@example.org does not exist", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 Sender rejected: sender domain does not exist", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 Client host rejected: unknown host", "5.0.0", CRM_MAIL_FAILED},
    {"550 Helo command rejected: no such domain", "5.0.0", CRM_MAIL_FAILED},
    /* Notes */
    {"User ada (ada@example.org) not listed in public Name & Address Book",
     NULL, CRM_MAIL_NO_ADDRESS},
    {"ada (ada@example.org) は Domino ディレクトリには見つかりません", NULL, CRM_MAIL_NO_ADDRESS},
    {"ディレクトリのリストにありません", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* servers without a status, in their words */
    {"550 There is no one at this address", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 This email address is no longer valid", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Address not present in directory", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 is not an active address at this host", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The email address could not be found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox invalid", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox not present", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 No mail box available for this user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Recipient address rejected: invalid user", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 Recipient address rejected: userunknown", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 RCPT rejected: invalid-recipient", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Recipient not exist", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 the user's email name is not found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 sorry, this recipient is not in my validrcptto list", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 user not active", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 ada is a deactivated mailbox", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 is unavailable: user is terminated", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 vdeliver: invalid or unknown virtual user", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 does not exist at the organization", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 non-existent user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 the following destination addresses were unknown", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 nessun utente simile in questo indirizzo", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 no existe dicha persona", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 no existe ese usuario", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Sender rejected: invalid user", "5.0.0", CRM_MAIL_FAILED},
    {"550 mailbox currently suspended", "5.0.0", CRM_MAIL_FAILED},
    {"550 recipient rejected: temporarily inactive", "5.0.0", CRM_MAIL_FAILED},
    {"550 Recipient address rejected: access denied", "5.0.0", CRM_MAIL_FAILED},
    {"552 5.2.2 full", "5.2.2", CRM_MAIL_FAILED},
    {"550 5.3.2", "5.3.2", CRM_MAIL_FAILED},
    {"550 5.4.1 denied", "5.4.1", CRM_MAIL_FAILED},
    {"554 5.5.0", "5.5.0", CRM_MAIL_FAILED},
    {"550 5.7.1", "5.7.1", CRM_MAIL_FAILED},
    {"550-5.7.26 unauthenticated", "5.7.26", CRM_MAIL_FAILED},
    {"5.7.509", "5.7.509", CRM_MAIL_FAILED},
    {"450 4.2.1", "4.2.1", CRM_MAIL_NO_FAILURE},
    {"451 4.7.1, then 550 5.1.1", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"550 No such user here", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"554 5.0.0 Unknown\n user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    /* with the address within the words */
    {"550 User ada@example.org unknown", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox <ada@example.org> does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 user (ada@example.org) not found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 ada@example.org", "5.0.0", CRM_MAIL_FAILED},
    {"550 No account by that name here", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The address you entered does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 account has been closed", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"553 user is inactive (mta)", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"ada@example.org [Inactive account]", NULL, CRM_MAIL_NO_ADDRESS},
    {"<ada@example.org>: This address no longer accepts mail.", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* blanks as underscores, a version with three numbers */
    {"550 BAD_RECIPIENT", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"(mxl_mta-5.5.0-3) 550 unknown user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550-5.1.1-mailbox unknown", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"554 Rcpt <ada@example.org> does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 RCPT (<ada@example.org>) dosn't exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 This user does not have an account here", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"553 mailbox name not allowed", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The email address you are trying to reach does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"this email address is wrong or no longer valid", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 the mailbox has been deleted", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Account unavailable", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 this mailbox is no longer in use", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox <ada@example.org> is not found", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"DNS type 'mx' lookup responded with code NXDOMAIN", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"all relevant MX records point to non-existent hosts", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"Domain name not found, try again", NULL, CRM_MAIL_NO_FAILURE},
    /* what Gmail and others ask the reader to do */
    {"It wasn't delivered to ada@example.org because the address couldn't be found."
     " Check for typos or unnecessary spaces and try again.", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 No such user. Please check the address and try again.", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    /* of Google Groups, which do not tell whether there is such a group */
    {"Il se peut que ce groupe n'existe pas ou que vous ne soyez pas autorisé à"
     " lui écrire.\n\nAide : https://groups.google.com/support/.", NULL,
     CRM_MAIL_NO_FAILURE},
    {"550 reverse DNS: domain name not found", "5.0.0", CRM_MAIL_FAILED},
    {"550 PTR record: NXDOMAIN", "5.0.0", CRM_MAIL_FAILED},
    /* that something does not exist, or is not found, in many languages */
    {"L'adresse de messagerie ci-dessus n'existe pas.", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 L’utilisateur n’existe pas", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Konto existiert nicht", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"La cuenta de correo no existe", NULL, CRM_MAIL_NO_ADDRESS},
    {"La casella di posta non esiste", NULL, CRM_MAIL_NO_ADDRESS},
    {"O endereço de e-mail não existe", NULL, CRM_MAIL_NO_ADDRESS},
    {"Het e-mailadres bestaat niet", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adres nie istnieje", NULL, CRM_MAIL_NO_ADDRESS},
    {"nieznany użytkownik", NULL, CRM_MAIL_NO_ADDRESS},
    {"Uživatel neexistuje", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen finns inte", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen findes ikke", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen finnes ikke", NULL, CRM_MAIL_NO_ADDRESS},
    {"Osoitetta ei löydy", NULL, CRM_MAIL_NO_ADDRESS},
    {"A cím nem létezik", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adresa nu există", NULL, CRM_MAIL_NO_ADDRESS},
    {"Пользователь не существует", NULL, CRM_MAIL_NO_ADDRESS},
    {"Почтовый ящик не найден", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Нет такого пользователя", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"Користувача не існує", NULL, CRM_MAIL_NO_ADDRESS},
    {"Η διεύθυνση δεν υπάρχει", NULL, CRM_MAIL_NO_ADDRESS},
    {"Άγνωστος χρήστης", NULL, CRM_MAIL_NO_ADDRESS},
    {"Kullanıcı bulunamadı", NULL, CRM_MAIL_NO_ADDRESS},
    {"المستخدم غير موجود", NULL, CRM_MAIL_NO_ADDRESS},
    {"Người dùng không tồn tại", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 查無此人", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"使用者不存在", NULL, CRM_MAIL_NO_ADDRESS},
    {"宛先のメールアドレスは存在しません", NULL, CRM_MAIL_NO_ADDRESS},
    {"사용자를 찾을 수 없습니다", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Die Domain des Absenders existiert nicht", "5.0.0", CRM_MAIL_FAILED},
    {"550 le domaine de l'expéditeur n'existe pas", "5.0.0", CRM_MAIL_FAILED},
    {"550 sender <ada@example.org>: user unknown", "5.0.0", CRM_MAIL_FAILED},
    {"550 Requested action not taken: mailbox unavailable\n550 invalid DNS MX or"
     " A/AAAA resource record", "5.0.0", CRM_MAIL_FAILED},
    /* an apostrophe as typographers set it */
    {"550 User doesn’t exist", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"because the address couldn’t be found", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* whatever is full, is there */
    {"550 invalid mailbox. Local mailbox ada@example.org is unavailable: account"
     " is full", "5.0.0", CRM_MAIL_FAILED},
    {"550 5.1.1 mailbox unavailable: the inbox is out of storage space",
     "5.1.1", CRM_MAIL_FAILED},
    {"550 mailbox unavailable (mailbox for user is full)", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 unsolicited mail, unknown user", "5.0.0", CRM_MAIL_FAILED},
    {"550 relaying denied, unknown user", "5.0.0", CRM_MAIL_FAILED},
    {"550 spam", "5.0.0", CRM_MAIL_FAILED},
    {"450 user unknown in relay table", "4.0.0", CRM_MAIL_NO_FAILURE},
    {"User unknown", NULL, CRM_MAIL_NO_ADDRESS},
    {"with Exim 4.92.3, 192.5.1.1, 5.1.1.1, 15.5.1, 5.1.1b", NULL,
     CRM_MAIL_NO_FAILURE},
    {"with 4.9.1, 5.8.1, 5.1.1000", NULL, CRM_MAIL_NO_FAILURE},
    {"5.1.0 no (5.0.0)", "5.1.0", CRM_MAIL_FAILED},
    {"451 not now\n550 no", "5.0.0", CRM_MAIL_FAILED},
    {"550 no\n451 not now", "5.0.0", CRM_MAIL_FAILED},
    {"570 pages, item-550 of 460, #551 x550 550m 550", NULL, CRM_MAIL_NO_FAILURE},
    {"nothing", NULL, CRM_MAIL_NO_FAILURE},
    {"", NULL, CRM_MAIL_NO_FAILURE},
    {"5", NULL, CRM_MAIL_NO_FAILURE}, {"5.", NULL, CRM_MAIL_NO_FAILURE},
    {"550", NULL, CRM_MAIL_NO_FAILURE}, {"5.1.", NULL, CRM_MAIL_NO_FAILURE},
};

START_TEST(a_status_says_whether_it_speaks_of_the_address)
{
    const char *status;
    crm_mail_failure_t failure = crm_mail_status_read(
        &status, explained[_i].text, crm_check_pool());

    same(explained[_i].text, "status", status, explained[_i].status);
    ck_assert_msg(failure == explained[_i].failure, "%s: %d",
                  explained[_i].text, failure);
}
END_TEST

static const struct {
    const char *kind;
    int complaint;
} feedback[] = {
    {"abuse", 1}, {"fraud", 1}, {"other", 1}, {"opt-out", 1},
    {"not-spam", 0}, {"auth-failure", 0}, {"virus", 0}, {"dmarc", 0},
};

START_TEST(a_feedback_report_is_a_complaint)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, "From: fbl@isp.example\nReturn-Path: <>\nContent-Type:"
        " multipart/report; boundary=b; report-type=feedback-report\n\n--b\n"
        "\nx\n--b\nContent-Type: message/feedback-report\n\n"
        "Version: 1\nOriginal-Rcpt-To: <ada@example.org>\nFeedback-Type: ",
        feedback[_i].kind, "\n\n--b\n"
        "Content-Type: message/rfc822\n\n" OURS "--b--\n", NULL);
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    same(feedback[_i].kind, "kind", mail.automatic, "report");
    ck_assert_int_eq(mail.complaint, feedback[_i].complaint);
    same(feedback[_i].kind, "complainer", mail.complainer, "ada@example.org");
    ck_assert_int_eq(mail.tokens->nelts, 1);
    ck_assert_int_eq(mail.references->nelts, 1);
}
END_TEST

/* Who returns a mail with HEADER, and whether that is a complaint of Outlook.com
 * (JMRP), which has no report. */
static const struct {
    const char *from, *header;
    int complaint;
} outlooks[] = {
    {"staff@hotmail.com", "X-HmXmrOriginalRecipient: ada@example.org\n", 1},
    {"Staff@Hotmail.com", "x-hmxmroriginalrecipient: <ada@example.org>\n", 1},
    {"staff@hotmail.com", "", 0},
    {"eve@hotmail.com", "X-HmXmrOriginalRecipient: ada@example.org\n", 0},
};

START_TEST(outlook_com_complains_without_a_report)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, "From: ", outlooks[_i].from, "\nSubject: complaint about message"
        " from 192.0.2.1\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
        "Content-Type: message/rfc822\n\n", outlooks[_i].header, OURS "--b--\n",
        NULL);
    int complaint = outlooks[_i].complaint;
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    same(text, "kind", mail.automatic, complaint ? "report" : NULL);
    ck_assert_int_eq(mail.complaint, complaint);
    same(text, "complainer", mail.complainer, complaint ? "ada@example.org"
         : NULL);
    ck_assert_int_eq(mail.tokens->nelts, complaint);
}
END_TEST

START_TEST(the_envelopes_sender_counts)
{
    static const char text[] = "From: ada@example.org\n"
                               "Return-Path: <ada@example.org>\n\nx\n";
    crm_mail_options_t null = {.sender = ""};
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, crm_check_pool());
    same("envelope", "kind", mail.automatic, NULL);
    crm_mail_read(&mail, text, strlen(text), &null, crm_check_pool());
    same("envelope", "kind", mail.automatic, "auto-reply");
    null.sender = "eve@example.net";
    crm_mail_read(&mail, "\nx\n", 3, &null, crm_check_pool());
    same("envelope", "sender", mail.from, "eve@example.net");
}
END_TEST

/* RFC 8601: what a header says of a mail from shop.example.org. */
START_TEST(authentication_results_are_read)
{
    static const struct {
        const char *value;
        crm_mail_auth_t auth;
    } cases[] = {
        {"mx.example; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_PASS},
        {" (a (nested \\) one)) MX.Example (x) 1 ;\r\n\tdmarc (y) = (z) pass"
         " (p=none) header.from = Shop.Example.org ; spf=fail",
         CRM_MAIL_AUTH_PASS},
        {"\"mx.example\"; dkim=pass reason=\"good; signature\""
         " header.i=\"a b\"@example.org header.b=ab/=cd", CRM_MAIL_AUTH_PASS},
        {"mx2.example;dkim=fail header.d=shop.example.org;"
         "dkim/1=pass header.d=example.org", CRM_MAIL_AUTH_PASS},
        /* the identity is not below the domain that signs */
        {"mx.example; dkim=pass header.d=evil.example"
         " header.i=@shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass header.d=example.org"
         " header.i=@shop.example.org", CRM_MAIL_AUTH_PASS},
        /* two values of a property */
        {"mx.example; dkim=pass header.d=evil.example"
         " header.d=shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass header.d=shop.example.org"
         " header.d=evil.example", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass header.d=shop.example.org"
         " header.d=SHOP.example.org", CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=pass header.i=@evil.example"
         " header.i=@shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=evil.example"
         " header.from=shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; spf=pass smtp.mailfrom=a smtp.mailfrom=b;"
         " dkim=pass header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        /* a signature that passed and failed; two signatures */
        {"mx.example; dkim=pass header.d=shop.example.org;"
         " dkim=fail header.d=shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=fail header.i=@shop.example.org header.b=ab;"
         " dkim=pass header.d=shop.example.org header.b=ab",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=fail header.d=shop.example.org header.b=ab;"
         " dkim=pass header.d=shop.example.org header.b=cd",
         CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=fail header.d=shop.example.org header.s=old;"
         " dkim=pass header.d=shop.example.org header.s=new",
         CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=policy header.d=shop.example.org;"
         " dkim=pass header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=fail header.d=evil.example;"
         " dkim=pass header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        /* "none" is alone */
        {"mx.example; dmarc=fail header.from=shop.example.org; none",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass (header.d=evil.example)"
         " header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=pass header.d=org", CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=pass header.d=op.example.org", CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=pass header.d=x.shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=pass", CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=none header.d=shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; spf=pass smtp.mailfrom=shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; spf=pass smtp.mailfrom=\"; dmarc=pass"
         " header.from=shop.example.org\"@evil.example", CRM_MAIL_AUTH_NONE},
        {"mx.example; spf=pass (\"; dmarc=pass header.from=shop.example.org)",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; dmarc=none; dkim=pass header.d=shop.example.org",
         CRM_MAIL_AUTH_PASS},
        {"mx.example; dmarc=fail; dkim=pass header.d=shop.example.org",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=fail; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=evil.example", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=shop.example.org; (",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=shop.example.org \"x",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=shop.example.org; dkim",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example 1(", CRM_MAIL_AUTH_FAIL},
        {"mx.example 2; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; none", CRM_MAIL_AUTH_NONE},
        {"mx.example", CRM_MAIL_AUTH_NONE},
        {"mx.example; dmarc=pass header.from=shop.example.org;",
         CRM_MAIL_AUTH_PASS},
        {"mx; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_UNTRUSTED},
        {"mx.example.evil; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_UNTRUSTED},
        {"dmarc=pass header.from=shop.example.org", CRM_MAIL_AUTH_UNTRUSTED},
        {"(mx.example; dmarc=pass", CRM_MAIL_AUTH_UNTRUSTED},
        {"", CRM_MAIL_AUTH_UNTRUSTED},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        ck_assert_msg(crm_mail_results(cases[i].value,
                                       " mx.example,\nmx2.example",
                                       "shop.example.org", crm_check_pool())
                      == cases[i].auth, "%s", cases[i].value);
    }
}
END_TEST

#define PASS(id) "Authentication-Results: " id "; dmarc=pass" \
    " header.from=example.org\n"
#define FAIL(id) "Authentication-Results: " id "; dmarc=fail" \
    " header.from=example.org\n"
#define SPF(id) "Authentication-Results: " id "; spf=pass\n"
#define DKIM(id, result) "Authentication-Results: " id "; dkim=" result \
    " header.d=example.org\n"
#define RECEIVED "Received: from x by y; Mon, 02 Nov 2026 10:00:00 +0100\n"
#define RECEIVED_BY(host) "Received: from x (x [192.0.2.1])\n\tby " host \
    " (Postfix) with ESMTPS id 1\n\tfor <a@b>; Mon, 02 Nov 2026\n"
/* Another host had the mail from HOST, whom it saw as in SEEN. */
#define HOP(host, seen) "Received: from " host " " seen " by store" \
    " with LMTP id 1; Mon, 02 Nov 2026\n"
#define BY(what) "Received: " what "; Mon, 02 Nov 2026 10:00:00 +0100\n"
#define FROM "From: Ada <ada@example.org>\n"

/* A domain in U-labels and in A-labels is one (contract 17.2). */
START_TEST(authentication_results_name_a_domain_in_either_form)
{
    static const struct {
        const char *result, *domain;
        crm_mail_auth_t auth;
    } cases[] = {
        {"dmarc=pass header.from=xn--kln-sna.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_PASS},
        {"dmarc=pass header.from=K\303\226ln.example", "xn--kln-sna.example",
         CRM_MAIL_AUTH_PASS},
        {"dkim=pass header.d=xn--kln-sna.example", "a.k\303\266ln.example",
         CRM_MAIL_AUTH_PASS},
        {"dkim=pass header.i=@a.k\303\266ln.example"
         " header.d=xn--kln-sna.example", "a.xn--kln-sna.example",
         CRM_MAIL_AUTH_PASS},
        {"dkim=pass header.d=k\303\266ln.example;"
         " dkim=fail header.d=xn--kln-sna.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dmarc=pass header.from=xn--kln-sna.example", "koln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dmarc=pass header.from=k\303\266.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dmarc=pass header.from=k\366ln.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dkim=pass header.d=evil@k\303\266ln.example",
         "k\303\266ln.example", CRM_MAIL_AUTH_NONE},
        {"dkim=pass header.d=evil@shop.example", "shop.example",
         CRM_MAIL_AUTH_NONE},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        apr_pool_t *pool = crm_check_pool();
        const char *value = apr_pstrcat(pool, "mx.example; ", cases[i].result,
                                        NULL);

        ck_assert_msg(crm_mail_results(value, "mx.example", cases[i].domain,
                                       pool) == cases[i].auth, "%s", value);
    }
}
END_TEST

/* Signatures are compared with each other, so there may be 50 of them. */
START_TEST(many_signatures_verify_nobody)
{
    for (int count = 49; count <= 51; count++) {
        apr_pool_t *pool = crm_check_pool();
        const char *value = "mx.example";

        for (int i = 0; i < count; i++) {
            value = apr_psprintf(pool, "%s; dkim=pass header.d=shop.example"
                                 " header.s=s%d", value, i);
        }
        ck_assert_msg(crm_mail_results(value, "mx.example", "shop.example",
                                       pool)
                      == (count <= 50 ? CRM_MAIL_AUTH_PASS
                                      : CRM_MAIL_AUTH_FAIL), "%d", count);
    }
}
END_TEST

START_TEST(only_a_trusted_host_verifies_a_sender)
{
    static const struct {
        const char *head;
        int verified;
    } cases[] = {
        {PASS("a") RECEIVED FROM, 1},
        {PASS("a") RECEIVED_BY("a") FROM, 1},
        {"Return-Path: <x@y>\n" SPF("c") PASS("a") RECEIVED_BY("a") FROM, 1},
        /* below the topmost Received of a trusted host, anybody's word */
        {RECEIVED_BY("a") PASS("a") FROM, 0},
        {RECEIVED_BY("B") PASS("a") RECEIVED_BY("a") FROM, 0},
        {"Received: from evil (evil [192.0.2.1])\n\tby (x (y) z) \"a\" (P)"
         " with\n SMTP; now\n" PASS("a") FROM, 0},
        {RECEIVED PASS("a") FROM, 0},
        {RECEIVED RECEIVED PASS("c") PASS("a") FROM, 0},
        {RECEIVED SPF("b") PASS("a") RECEIVED FROM, 0},
        {RECEIVED PASS("a") RECEIVED_BY("a") FROM, 0},
        /* also if that host had it from a program of its own, or from itself:
         * a web page may send what its visitor writes */
        {"Received: by a (Postfix, from userid 33) id 1; now\n" PASS("a") FROM,
         0},
        {BY("by a with local (Exim 4.96) id 1") PASS("a") FROM, 0},
        {BY("by a with LMTP id 1") PASS("a") FROM, 0},
        {BY("from a by a with LMTP id 1") PASS("a") FROM, 0},
        {BY("from a (a [127.0.0.1]) by b with ESMTP id 1") PASS("a") FROM, 0},
        /* another host had it from a trusted one */
        {HOP("a", "") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("A", "(a [192.0.2.9])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("a", "([127.0.0.1])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("a", "(unknown [10.1.2.3])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("a", "([IPv6:fd00::1])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {"Received: by y (x, from userid 7) id 1; now\n"
         PASS("a") RECEIVED_BY("a") FROM, 1},
        {"Received: (qmail 1 invoked by uid 7); now\n"
         PASS("a") RECEIVED_BY("a") FROM, 1},
        /* or says so */
        {HOP("a", "(evil [192.0.2.1])") PASS("a") RECEIVED_BY("a") FROM, 0},
        {HOP("a", "(unknown [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a", "([192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a(a", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a(a)", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a\"", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a;", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("\\", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        /* a client's name alone says nothing */
        {BY("from a by store") PASS("a") FROM, 0},
        {BY("from a by store with SMTP id 1") PASS("a") FROM, 0},
        {BY("from a by store with ESMTP id 1") PASS("a") FROM, 0},
        {BY("from a by store with ESMTPS id 1") PASS("a") FROM, 0},
        {BY("from a by store with ESMTPSA id 1") PASS("a") FROM, 0},
        {BY("from a by store with UTF8SMTP id 1") PASS("a") FROM, 0},
        {BY("from a by store with LMTPX id 1") PASS("a") FROM, 0},
        {BY("from a by store with local id 1") PASS("a") FROM, 0},
        {BY("from a by store with HTTP") PASS("a") FROM, 0},
        {BY("from a by store id 1 for <with@LMTP>") PASS("a") FROM, 0},
        {BY("by store with SMTP id 1") PASS("a") FROM, 0},
        {BY("with SMTP id 1") PASS("a") FROM, 0},
        {HOP("a", "()") PASS("a") FROM, 0},
        {HOP("a", "(a)") PASS("a") FROM, 0},
        {HOP("a", "(unverified)") PASS("a") FROM, 0},
        {HOP("a", "(HELO a)") PASS("a") FROM, 0},
        {HOP("a", "(HELO [127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(ehlo [127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(helo=[127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(192.0.2.1 helo=[127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "([192.0.2.1] helo=[127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(x y [127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "([127.0.0.1") PASS("a") FROM, 0},
        {HOP("a", "[127.0.0.1]") PASS("a") FROM, 1},
        {BY("from a [127.0.0.1] by store with SMTP") PASS("a") FROM, 0},
        {BY("from a [127.0.0.1] (x [192.0.2.1]) by store with LMTP") PASS("a")
         FROM, 0},
        /* nor does one that looks like more of the header */
        {HOP("a (a [127.0.0.1]) x", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a (a [127.0.0.1])", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a with LMTP", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {BY("from a with LMTP by store with SMTP") PASS("a") FROM, 0},
        {BY("from a by x with LMTP; (evil [192.0.2.1]) by store with SMTP")
         PASS("a") FROM, 0},
        {BY("from a by x with LMTP ( (evil [192.0.2.1]) by store with SMTP"
            " for <q)@store>") PASS("a") FROM, 0},
        {BY("from a by x with LMTP (y) (evil [192.0.2.1]) by store with SMTP")
         PASS("a") FROM, 0},
        {BY("from a by x with LMTP id \" (evil [192.0.2.1]) by store for"
            " <\"q\\\"q\"@store>") PASS("a") FROM, 0},
        {BY("from a b\"y\" x with LMTP ; by store with SMTP") PASS("a") FROM,
         0},
        {BY("from a BY x with LMTP by store with SMTP") PASS("a") FROM, 0},
        {BY("by x with LMTP from a by store with SMTP") PASS("a") FROM, 0},
        {BY("from a from a by store with LMTP") PASS("a") FROM, 0},
        {BY("from a by store with SMTP for x with LMTP") PASS("a") FROM, 0},
        /* a neighbour, a program of the host, mail that was fetched */
        {BY("from a\n\tby store with LMTPS\n\tid 1 (envelope-from <x@y>)")
         PASS("a") RECEIVED_BY("a") FROM, 1},
        {BY("from a [192.0.2.9] by localhost with POP3 (fetchmail-6.4.37)")
         PASS("a") RECEIVED_BY("a") FROM, 1},
        {BY("from a by localhost with IMAP") PASS("a") FROM, 1},
        {BY("by store with local (Exim 4.96) id 1") PASS("a") FROM, 1},
        /* no host had it before */
        {PASS("a") FROM, 1},
        {FROM PASS("a"), 0},
        {SPF("a") PASS("a") FROM, 0},
        {PASS("c") RECEIVED FROM, 0},
        /* several by the host, then what a stranger wrote */
        {SPF("a") PASS("a") RECEIVED FROM, 1},
        {PASS("b") FAIL("a") RECEIVED FROM, 0},
        {DKIM("a", "pass") DKIM("b", "fail") RECEIVED FROM, 0},
        {DKIM("a", "pass") DKIM("b", "neutral") RECEIVED FROM, 1},
        {FAIL("a") RECEIVED PASS("a") FROM, 0},
        {SPF("a") RECEIVED PASS("a") FROM, 0},
        {RECEIVED SPF("a") PASS("a") FROM, 0},
        /* whoever looks at From sees the same address */
        {PASS("a") RECEIVED FROM FROM, 0},
        {PASS("a") RECEIVED "From: ada@example.org, eve@example.org\n", 0},
        {PASS("a") RECEIVED "From: \"eve@example.org\" <ada@example.org>\n",
         0},
        {PASS("a") RECEIVED "From: ada@example.net\n", 0},
        {PASS("a") RECEIVED "Sender: ada@example.org\n", 0},
        {PASS("a") RECEIVED, 0},
    };
    crm_mail_options_t trusting = {.authserv_ids = "a b"};
    crm_mail_t mail;

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        const char *text = apr_pstrcat(crm_check_pool(), cases[i].head,
                                       "\nx\n", NULL);

        crm_mail_read(&mail, text, strlen(text), &trusting,
                      crm_check_pool());
        ck_assert_msg(mail.verified == cases[i].verified, "%s", text);
        crm_mail_read(&mail, text, strlen(text), &options, crm_check_pool());
        ck_assert_msg(!mail.verified, "nobody is trusted: %s", text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail");
    TCase *reads = tcase_create("reading");
    TCase *breaks = tcase_create("broken");

    crm_check_pool();           /* APR comes first */
    crm_mail_init();
    atexit(xmlCleanupParser);
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
    tcase_add_loop_test(reads, a_mail_is_automatic_or_a_persons, 0,
                        COUNT(kinds));
    tcase_add_loop_test(reads, whatever_returns_a_mail_is_a_bounce, 0,
                        CRM_NELTS(returned));
    tcase_add_loop_test(reads, a_person_may_write_as_a_mail_server, 0,
                        COUNT(written));
    tcase_add_loop_test(reads, a_status_says_whether_it_speaks_of_the_address,
                        0, CRM_NELTS(explained));
    tcase_add_loop_test(reads, a_feedback_report_is_a_complaint, 0,
                        CRM_NELTS(feedback));
    tcase_add_loop_test(reads, outlook_com_complains_without_a_report, 0,
                        COUNT(outlooks));
    tcase_add_test(reads, the_envelopes_sender_counts);
    tcase_add_test(reads, authentication_results_are_read);
    tcase_add_test(reads, authentication_results_name_a_domain_in_either_form);
    tcase_add_test(reads, many_signatures_verify_nobody);
    tcase_add_test(reads, only_a_trusted_host_verifies_a_sender);
    tcase_add_loop_test(breaks, truncated_mails_are_read, 0, MAILS);
    tcase_add_loop_test(breaks, damaged_mails_are_read, 0, MAILS);
    tcase_add_loop_test(breaks, hostile_mails_take_bounded_time, 0,
                        COUNT(hostile));
    suite_add_tcase(suite, reads);
    suite_add_tcase(suite, breaks);
    return crm_check_main(suite);
}
