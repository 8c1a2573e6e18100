/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_texts.c: which text a mail has (contract 18.3) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_bare.h"
#include "crm_mail.h"
#include "mail_repair.h"

/* Return the text of MAIL. */
static const char *text_of(const char *bytes)
{
    static const crm_mail_options_t options;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, strlen(bytes), &options, crm_check_pool());
    return mail.text;
}

static void same(const char *what, const char *got, const char *want)
{
    ck_assert_msg(!strcmp(got, want), "%s\n\"%s\", not \"%s\"", what, got,
                  want);
}

/* ---- headers that are not where they belong ------------------------------- */

#define HEAD "From: ada@example.org\nDate: Wed, 25 Nov 2026 12:00:00 +0000\n" \
             "Subject: S\nMessage-ID: <x@example.org>\n"
#define ALTERNATIVES "--b\nContent-Type: text/plain\n\nplain\n--b\n" \
                     "Content-Type: text/html\n\n<p>rich</p>\n--b--\n"

/* Return the text of a mail that is HTML. */
static const char *text_of_html(const char *html)
{
    return text_of(apr_pstrcat(crm_check_pool(), HEAD
                               "Content-Type: text/html\n\n", html, NULL));
}

static const struct {
    const char *mail, *text;
} repaired[] = {
    /* a line before the header */
    {"---- Original email message ----\r\nReturn-Path: <x@y.example>\r\n"
     "Subject: x\r\n\r\nwords", "words"},
    {"Hello\nSubject: is a word\n\nmore", "Hello\nSubject: is a word\n\nmore"},
    {"Received from mx by mail\n" HEAD "\nbody\n", "body"},
    {" of a field that is lost\n\tand more\n" HEAD "\nbody\n", "body"},
    {"Hello\nFrom: is a word\n\nmore", "Hello\nFrom: is a word\n\nmore"},
    {HEAD "\nbody\n", "body"},
    /* before the header */
    {"\n" HEAD "\nbody\n", "body"},
    {"\r\n \n\t\r\n" HEAD "\nbody\n", "body"},
    {" \t" HEAD "\nbody\n", "body"},
    {"\xef\xbb\xbf" HEAD "\nbody\n", "body"},
    {"From ada@example.org Wed Nov 25\n\n" HEAD "\nbody\n", "body"},
    {"\nX-Spam: no\n" HEAD "\nbody\n", "body"},
    {"\nnot: a field\n\nbody\n", "not: a field\n\nbody"},
    {"\nno field\n", "no field"},
    /* within it */
    {"Return-Path: <ada@example.org>\nReceived: by mx\n\n" HEAD "\nbody\n",
     "body"},
    {"Received: by mx\r\n\r\nFrom: a@example.org\r\n\r\nbody\r\n", "body"},
    {HEAD "\nMIME-Version: 1.0\nContent-Type: multipart/alternative;"
     " boundary=b\n\n" ALTERNATIVES, "plain"},
    {HEAD "\n\n\nContent-Type: text/html\n\n<p>rich</p>\n", "rich"},
    {"From: a@example.org\n\nSubject: S\nDate: today\n\nbody\n", "body"},
    {"Received: by a\n\nReceived: by b\n\nFrom: a@example.org\n\nbody\n",
     "body"},
    /* a text that looks like one */
    {HEAD "\nNote: x\n\nbody\n", "Note: x\n\nbody"},
    {HEAD "\nFrom: b@example.org\nTo: c@example.org\n\nforwarded\n",
     "From: b@example.org\nTo: c@example.org\n\nforwarded"},
    {HEAD "\nReply-To: me\nand call\n", "Reply-To: me\nand call"},
    {HEAD "\nMIME-Version: is what?\nno idea\n",
     "MIME-Version: is what?\nno idea"},
    /* several Content-Types */
    {HEAD "Content-Type: multipart/alternative; boundary=b\n"
     "Content-Type: text/plain\n\n" ALTERNATIVES, "plain"},
    {HEAD "Content-Type: text/plain\nContent-Type: multipart/alternative;\n"
     "\tboundary=\"b\"\n\n" ALTERNATIVES, "plain"},
    {HEAD "Content-Type: multipart/alternative; boundary=z\n"
     "Content-Type: multipart/alternative; boundary=b\n\n" ALTERNATIVES,
     "plain"},
    {HEAD "Content-Type: text/html\ncontent-type: text/plain\n\n<p>rich</p>",
     "rich"},
    {HEAD "Content-Type: text/plain\nContent-Type: text/html\n\n<p>", "<p>"},
    {HEAD "Content-Type: multipart/mixed; boundary=a\n\n--a\n"
     "Content-Type: text/html\nContent-Type: text/plain\n\n<p>rich</p>\n"
     "--a--\n", "rich"},
    {HEAD "Content-Type: multipart/mixed; boundary=a\n\n--a\n"
     "Content-Type: multipart/alternative; boundary=b\n"
     "Content-Type: text/plain\n\n" ALTERNATIVES "\n--a--\n", "plain"},
    {"\n" HEAD "\nContent-Type: text/html\nContent-Type: text/plain\n\n<p>x",
     "x"},
};

START_TEST(a_header_is_read_where_it_stands)
{
    same(repaired[_i].mail, text_of(repaired[_i].mail), repaired[_i].text);
}
END_TEST

START_TEST(a_mail_that_needs_no_repair_is_not_copied)
{
    static const char mail[] = HEAD "Content-Type: text/plain\n\nbody\n";
    apr_size_t len = sizeof(mail) - 1;

    ck_assert_ptr_eq(crm_mail_repair(&len, mail, crm_check_pool()), mail);
    ck_assert_uint_eq(len, sizeof(mail) - 1);
}
END_TEST

/* Each part of a hostile mail has two types, whose boundaries nobody uses. */
START_TEST(repairs_take_bounded_time)
{
    apr_pool_t *pool = crm_check_pool();
    static const char one[] = "--b\nContent-Type: multipart/x; boundary=n\n"
                              "Content-Type: text/plain\n\n";
    apr_size_t count = 200000, size = sizeof(one) - 1;
    char *mail = apr_palloc(pool, count * size + 1);
    apr_size_t len = count * size;

    for (apr_size_t i = 0; i < count; i++) {
        memcpy(mail + i * size, one, size);
    }
    crm_mail_repair(&len, mail, pool);
    ck_assert_uint_eq(len, count * size);
}
END_TEST

/* ---- parts --------------------------------------------------------------- */

#define ROUND_A_PICTURE "Content-Type: multipart/mixed; boundary=c\n\n" \
    "--c\nContent-Type: text/html\n\n<p>one</p>\n--c\nContent-Type: image/png\n" \
    "\nx\n--c\nContent-Type: text/html\n\n<p>two</p>\n--c--\n"

static const struct {
    const char *mail, *text;
} typed[] = {
    /* a type that is none is that of a text (RFC 2045, 5.2) */
    {"Content-Type: text\n\nwords", "words"},
    {"Content-Type: TEXT; charset=iso-8859-1\n\nGr\xfc\xdf""e",
     "Grüße"},
    {"Content-Type:\n\nwords", "words"},
    {"Content-Type: utf-8\n\nwords", "words"},
    {"Content-Type: ;\n charset=utf-8\n\nwords", "words"},
    {"Content-Type: text/; charset=utf-8\n\nwords", "words"},
    {"Content-Type : text\n\nwords", "words"},
    {"Content-Type: multipart; boundary=b\n\n" ALTERNATIVES, "plain\nrich"},
    {"Content-Type: \"text/html\"; charset=\"utf-8\"\n\n<p>words", "words"},
    {"Content-Type: text / html\n\n<p>words", "words"},
    {"Content-Type: (x) text/html\n\n<p>words", "words"},
    {"Content-Type: application; name=a.txt\n\nwords", ""},
    {"Content-Type: ; boundary=\"b\"\n\n" ALTERNATIVES, "plain\nrich"},
    {"Content-Type: boundary=b\n\n" ALTERNATIVES, "plain\nrich"},
    {"Content-Type: boundary=\"a/b\"\n\n--a/b\n\nwords\n--a/b--\n", "words"},
    {"Content-Type: ; boundary=b\n\nwords", "words"},
    {"Content-Type: text; boundary=b\n\nwords", "words"},
    /* without a blank line before the parts */
    {"Content-Type: multipart/alternative; boundary=\"b\"\n" ALTERNATIVES,
     "plain"},
    {"Content-Type: multipart/alternative; boundary=b; x=y\r\nX-Y: z\r\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/alternative; boundary=b\n--c\nX-Y: z\n\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type:"
     " multipart/alternative; boundary=b\n" ALTERNATIVES "--c--\n", "plain"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text\n"
     "\nwords\n--b--\n", "words"},
    {"Content-Transfer-Encoding: \"quoted-printable\"\n\nw=6Frds", "words"},
    {"Content-Transfer-Encoding: quoted-printable;\n\nw=6Frds", "words"},
    {"Content-Transfer-Encoding: quoted-printable\n\nw=6Fr= \t\nds=  \r\n"
     ", a =3D b", "words, a = b"},
    /* encodings and types as some write them */
    {"Content-Transfer-Encoding: base-64\n\nd29yZHMgaGVyZQ==", "words here"},
    {"Content-Transfer-Encoding: BASE_64\n\nd29yZHMgaGVyZQ==", "words here"},
    {"Content-Transfer-Encoding: quoted printable\n\nw=6Frds", "words"},
    {"Content-Transfer-Encoding: quotedprintable\n\nw=6Frds", "words"},
    {"Content-Transfer-Encoding: Quoted-Printable (x)\n\nw=6Frds", "words"},
    {"Content-Type: plain/text; charset=iso-8859-1\n\nGr\xfc\xdf""e",
     "Grüße"},
    {"Content-Type: html/text; charset=utf-8\n\n<p>words", "words"},
    {"Content-Type: html; charset=utf-8\n\n<p>words", "words"},
    {"Content-Type: HTML\n\n<p>words", "words"},
    {"Content-Type: plain\n\n<p>words", "<p>words"},
    {"Content-Type: plain/x; name=a.txt\n\nwords", ""},
    /* quoted-printable that is not declared */
    {"Content-Type: text/plain; charset=utf-8\n\nGr=C3=BC=C3=9Fe =3D=\n x",
     "Grüße = x"},
    {"Content-Type: text/plain; charset=iso-8859-1\n\nGr=FC=DFe\n", "Grüße"},
    {"Content-Type: text/plain; charset=iso-8859-1\n\nhttps://example.org/?id=a1"
     "b2c3", "https://example.org/?id=a1b2c3"},
    {"Content-Type: text/plain; charset=iso-8859-1\n\nname=\ncountry=DE",
     "name=\ncountry=DE"},
    {"Content-Type: text/html; charset=utf-8\n\n<p class=3D\"a\">Gr=C3=BC=C3"
     "=9Fe", "Grüße"},
    {"Content-Type: text/html; charset=utf-8\n\n<p class=3D\"a\">words of a ="
     "\nlong line", "words of a long line"},
    {"Content-Type: text/plain; charset=utf-8\n\n=E9 is not =C3=BC",
     "=E9 is not =C3=BC"},
    {"Content-Type: text/plain; charset=utf-8\n\n=C3=BC, but a=b",
     "=C3=BC, but a=b"},
    {"Content-Type: text/plain; charset=utf-8\n\n2=20 and x=3D", "2=20 and x=3D"},
    {"Content-Type: text/plain; charset=utf-8\n"
     "Content-Transfer-Encoding: 7bit\n\n=C3=BC", "=C3=BC"},
    /* parameters that nothing separates, or that are not indented */
    {"Content-Type: text/plain charset=iso-8859-2\n\nZa\xbf\xf3\xb3\xe6",
     "Zażółć"},
    {"Content-Type: text/plain, charset=iso-8859-2\n\nZa\xbf\xf3\xb3\xe6",
     "Zażółć"},
    {"Content-Type: text/plain; charset: iso-8859-2\n\nZa\xbf\xf3\xb3\xe6",
     "Zażółć"},
    {"Content-Type: text/ plain; charset=utf-8\n\nwords", "words"},
    {"Content-Type: multipart/alternative\n\tboundary=\"b\"\n\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/alternative;\nboundary=\"b\"\n\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/alternative; \r\nboundary=\"b\"\r\n\r\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type:"
     " multipart/alternative;\nboundary=b\n\n" ALTERNATIVES "--c--\n", "plain"},
    {"Content-Type: text/plain\nboundary=b\n\nwords", "words"},
    /* boundaries with wrong quotes or dashes */
    {"Content-Type: multipart/alternative; boundary=\"b\n\n" ALTERNATIVES,
     "plain"},
    {"Content-Type: multipart/alternative; boundary='b'\n\n" ALTERNATIVES,
     "plain"},
    {"Content-Type: multipart/alternative; boundary=--b\n\nof several parts\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
     " multipart/mixed; boundary=bc\n\n--b\nContent-Type: text/html\n\n<p>rich"
     "\n--b--\n", "rich"},
    /* boundaries that are not declared, or others than those that are used */
    {"Content-Type: multipart/alternative\n\n" ALTERNATIVES, "plain"},
    {"Content-Type: multipart/alternative; boundary=other\n\nof several parts\n"
     ALTERNATIVES, "plain"},
    {"Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type:"
     " multipart/alternative\n\n" ALTERNATIVES "--c--\n", "plain"},
    {"Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type:"
     " multipart/alternative; boundary=other\n\n" ALTERNATIVES "--c--\n",
     "plain"},
    {"Content-Type: multipart/mixed; boundary=c\n\n--b\nContent-Type: x\n\n"
     "--c\n\nwords\n--c--\n", "words"},
    {"Content-Type: multipart/mixed\n\n--b\nContents: words\n",
     "--b\nContents: words"},
    /* parts of which no header says anything */
    {"\n" ALTERNATIVES, "plain\nrich"},
    {"MIME-Version: 1.0\n\nThis is a message of several parts.\n\n--b\n"
     "content-type: text/html\nContent-Transfer-Encoding: base64\n\n"
     "PHA+cmljaA==\n\n--b--\n", "rich"},
    {"\n--b\nContent-Type: text/plain\n\nhow do I write it?\n",
     "--b\nContent-Type: text/plain\n\nhow do I write it?"},
    {"Content-Type: text/plain\n\n--b\nContent-Type: text/html\n\nx\n--b--\n",
     "--b\nContent-Type: text/html\n\nx\n--b--"},
    /* all texts of an alternative */
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\n"
     ROUND_A_PICTURE "--b--\n", "one\ntwo"},
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\n\n \n--b\n"
     ROUND_A_PICTURE "--b--\n", "one\ntwo"},
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain\n--b\n"
     ROUND_A_PICTURE "--b--\n", "plain"},
    /* the HTML that is attached, and nothing else */
    {"Content-Type: text/html\nContent-Disposition: attachment\n\n<p>words",
     "words"},
    {"Content-Type: text/plain; name=a.log\nContent-Disposition: attachment\n"
     "\nwords", "words"},
    {"Content-Type: text/enriched\n\nwords", "words"},
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type:"
     " text/enriched\n\nwords\n--b--\n", "words"},
    {"Content-Type: text/enriched\n\n<bold>Now</bold> is <color><param>red</param>the"
     "\ntime</color>\n\n<nofill>a\nb</nofill> if x << y <= z>\n\n\nend</bold>\n",
     "Now is the time\na\nb if x < y <= z>\n\nend"},
    {"Content-Type: text/enriched\n\n</param><x-y>a</x-y><param><param>b</param>c"
     "</param>d<", "ad<"},
    {"Content-Type: text/richtext\n\n<bold>Now</bold> is\n\nthe<nl>time<comment>no<nl>"
     "</comment> <lt>b>\n", "Now is the\ntime <b>"},
    /* files that are no texts for people */
    {"Content-Type: text/csv; name=a.csv\n\na;b", ""},
    {"Content-Type: text/vcard\nContent-Disposition: attachment\n\nBEGIN", ""},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/xml"
     "\nContent-Disposition: attachment; filename=a.xml\n\n<a/>\n--b\n"
     "Content-Type: text/plain; name=a.log\nContent-Disposition: attachment\n"
     "\nwords\n--b--\n", "words"},
    /* a document of HTML that is declared as a plain text */
    {"Content-Type: text/plain\n\n\n <!DOCTYPE html PUBLIC \"x\">\n<html><head>"
     "<style>p {}</style></head><body><p>a &amp; b</p></body></html>", "a & b"},
    {"\n<HTML lang=de><body>words</body></HTML>\n-- \nlist\n", "words\n-- list"},
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\n\n<html>"
     "<body>plain</body></html>\n--b\nContent-Type: text/html\n\n<p>rich\n"
     "--b--\n", "plain"},
    /* and what is none */
    {"\n<html> is an element.", "<html> is an element."},
    {"\nSee <html><body></html>", "See <html><body></html>"},
    {"\n<htmlx></html>", "<htmlx></html>"},
    {"\n<html><body></body></html>", "<html><body></body></html>"},
    /* HTML that says UTF-16 in ASCII */
    {"Content-Type: text/html\n\n<meta charset=unicode><p>words", "words"},
    /* the charset that HTML names, one of several alternatives */
    {"Content-Type: text/html\n\n<meta charset=koi8-r><p>\xc4\xc1", "да"},
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain\n--b\n\n"
     "other\n--b--\n", "plain"},
};

START_TEST(a_part_is_of_its_type)
{
    same(typed[_i].mail, text_of(apr_pstrcat(crm_check_pool(), HEAD,
                                             typed[_i].mail, NULL)),
         typed[_i].text);
}
END_TEST

/* Parts of a mail that are shown, and how many of them are files as well. */
static const struct {
    const char *parts, *text;
    int listed;
} named[] = {
    {"--b\n\n \n--b\nContent-Type: text/plain; name=n.txt\n"
     "Content-Disposition: inline; filename=n.txt\n\nnotes\n", "notes", 1},
    {"--b\nContent-Type: text/html\nContent-Disposition: inline;"
     " filename*=utf-8''r%20.html\n\n<p>report\n--b\n\nwords\n",
     "report\nwords", 1},
    {"--b\nContent-Type: text/plain; name=body.txt\n\nwords\n", "words", 0},
    {"--b\nContent-Disposition: inline\n\nwords\n", "words", 0},
    {"--b\n\nwords\n--b\nContent-Disposition: inline; filename=n.txt\n\n"
     "notes\n", "words", 1},
    {"--b\n\nwords\n--b\nContent-Disposition: attachment\n\nnotes\n", "words", 1},
    {"--b\nContent-Disposition: attachment; filename=n.txt\n\nnotes\n--b\n\n"
     "words\n", "words", 1},
};

START_TEST(what_is_kept_changes_no_text)
{
    static const crm_mail_options_t options = {.keep_original = 1};
    static const char bytes[] = HEAD "Content-Type: multipart/alternative;"
                                " boundary=b\n\n" ALTERNATIVES;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, sizeof(bytes) - 1, &options, crm_check_pool());
    same("alternatives", mail.text, "plain");
    ck_assert_ptr_nonnull(mail.display);
}
END_TEST

START_TEST(a_file_that_is_shown_is_a_file)
{
    apr_pool_t *pool = crm_check_pool();
    const char *bytes = apr_pstrcat(
        pool, HEAD "Content-Type: multipart/mixed; boundary=b\n\n",
        named[_i].parts, "--b--\n", NULL);
    static const crm_mail_options_t options;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, strlen(bytes), &options, pool);
    same(named[_i].parts, mail.text, named[_i].text);
    ck_assert_int_eq(mail.attachments->nelts, named[_i].listed);
}
END_TEST

/* A part of alternatives, and whether it is a file. */
static const struct {
    const char *header;
    int listed;
} forms[] = {
    {"Content-Type: text/x-amp-html\n", 0},
    {"Content-Type: text/watch-html\n", 0},
    {"Content-Type: text/enriched\n", 0},
    {"Content-Type: text/html\n", 0},
    {"Content-Type: text/calendar; method=REQUEST\n", 1},
    {"Content-Type: text/csv; name=a.csv\n", 1},
    {"Content-Type: text/csv\nContent-Disposition: attachment\n", 1},
    {"Content-Type: image/png\n", 1},
};

START_TEST(another_form_of_a_text_is_no_file)
{
    apr_pool_t *pool = crm_check_pool();
    const char *bytes = apr_pstrcat(
        pool, HEAD "Content-Type: multipart/alternative; boundary=b\n\n--b\n"
        "Content-Type: text/plain\n\nplain\n--b\n", forms[_i].header,
        "\nx\n--b--\n", NULL);
    static const crm_mail_options_t options;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, strlen(bytes), &options, pool);
    same(forms[_i].header, mail.text, "plain");
    ck_assert_int_eq(mail.attachments->nelts, forms[_i].listed);
}
END_TEST

START_TEST(all_html_of_an_alternative_is_shown)
{
    static const crm_mail_options_t keeps = {.keep_original = 1};
    static const char bytes[] =
        HEAD "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain\n"
        "--b\n" ROUND_A_PICTURE "--b--\n";
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, sizeof(bytes) - 1, &keeps, crm_check_pool());
    ck_assert_ptr_nonnull(strstr(mail.display, "one"));
    ck_assert_ptr_nonnull(strstr(mail.display, "two"));
    ck_assert_ptr_null(strstr(mail.display, "plain"));
}
END_TEST

/* ---- invitations --------------------------------------------------------- */

#define ZONE "BEGIN:VTIMEZONE\r\nTZID:Rome\r\nBEGIN:STANDARD\r\n" \
    "DTSTART:16010101T030000\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"

static const struct {
    const char *calendar, *text;
} invitations[] = {
    {"BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\n" ZONE "BEGIN:VEVENT\r\n"
     "ATTENDEE;PARTSTAT=ACCEPTED;CN=\"a: b\":mailto:ada@example.org\r\n"
     "COMMENT;LANGUAGE=en-US:Five minutes late\\, so\r\n rry\\nAda\r\n"
     "SUMMARY;LANGUAGE=en-US:Accepted: Demo\r\n"
     "DTSTART;TZID=Rome:20261105T100000\r\nLOCATION:Room 5\\; left\r\n"
     "END:VEVENT\r\nEND:VCALENDAR\r\n",
     "Accepted: Demo\naccepted\n2026-11-05 10:00 Rome\nRoom 5; left\n\n"
     "Five minutes late, sorry\nAda"},
    {"begin:vcalendar\nmethod:request\nbegin:vevent\nattendee;partstat="
     "needs-action:mailto:b@example.org\nsummary:Demo\n"
     "dtstart:20261105T100000Z\ndescription:Bring \\\\ a map\nbegin:valarm\n"
     "summary:Alarm\nend:valarm\nlocation:\nend:vevent\nbegin:vevent\n"
     "summary:Second\nend:vevent\nend:vcalendar\n",
     "Demo\n2026-11-05 10:00 UTC\n\nBring \\ a map"},
    {"BEGIN:VCALENDAR\nBEGIN:VTODO\nDTSTART;VALUE=DATE:20261105\nEND:VTODO\n",
     "2026-11-05"},
    {"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:tomorrow\nSUMMARY:Demo\n",
     "Demo\ntomorrow"},
    {"BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nATTENDEE;ROLE=CHAIR;"
     "PARTSTAT=DECLINED:mailto:a@b\nSUMMARY:Demo\nSUMMARY:Again\nEND:VEVENT\n",
     "Demo\ndeclined"},
    {"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nEND:VEVENT\nEND:VCALENDAR\n", ""},
    /* what is cancelled, or proposed, is told from what is planned */
    {"begin:vcalendar\nmethod:cancel\nbegin:vevent\nsummary:Trial\n"
     "attendee;partstat=accepted:mailto:a@example.org\n"
     "dtstart:20261105T100000Z\nend:vevent\nend:vcalendar\n",
     "Trial\ncancelled\n2026-11-05 10:00 UTC"},
    {"begin:vcalendar\nmethod:request\nbegin:vevent\ndtstart:20261105T100000Z\n"
     "summary:Trial\nstatus:cancelled\nend:vevent\nend:vcalendar\n",
     "Trial\ncancelled\n2026-11-05 10:00 UTC"},
    {"begin:vcalendar\nmethod:request\nbegin:vevent\ndtstart:20261105T100000Z\n"
     "summary:Trial\nstatus:confirmed\nend:vevent\nend:vcalendar\n",
     "Trial\n2026-11-05 10:00 UTC"},
    {"begin:vcalendar\nmethod:counter\nbegin:vevent\nsummary:Trial\n"
     "attendee;partstat=tentative:mailto:a@example.org\n"
     "dtstart:20261105T110000Z\ncomment:Later?\nend:vevent\nend:vcalendar\n",
     "Trial\nproposed\n2026-11-05 11:00 UTC\n\nLater?"},
    {"no calendar", "no calendar"},
};

START_TEST(an_invitation_alone_is_a_text)
{
    apr_pool_t *pool = crm_check_pool();
    const char *calendar = invitations[_i].calendar;

    same(calendar, text_of(apr_pstrcat(
        pool, HEAD "Content-Type: text/calendar; method=REPLY\n\n", calendar,
        NULL)), invitations[_i].text);
    same(calendar, text_of(apr_pstrcat(
        pool, HEAD "Content-Type: multipart/alternative; boundary=b\n\n--b\n\n"
        " \n--b\nContent-Type: text/calendar\n\n", calendar, "\n--b--\n", NULL)),
         invitations[_i].text);
    same(calendar, text_of(apr_pstrcat(
        pool, HEAD "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nwords\n"
        "--b\nContent-Type: text/calendar\n\n", calendar, "\n--b--\n", NULL)),
         "words");
}
END_TEST

/* ---- a text that comes twice ---------------------------------------------- */

#define PLAIN(text) "--b\nContent-Type: text/plain\n\n" text "\n"
#define RICH(html) "--b\nContent-Type: text/html\n\n" html "\n"
#define PICTURE "--b\nContent-Type: image/png; name=a.png\n\nx\n"

/* Parts, the text, and what the HTML that is shown lacks. */
static const struct {
    const char *parts, *text, *lacks;
} twice[] = {
    {PLAIN("Hi Bob,\n\n- see http://a.example/x") RICH("<p>Hi Bob,<ul><li>see"
     " <a href=http://a.example/x>http://a.example/x</a></ul>"),
     "Hi Bob,\n\n- see http://a.example/x", "pre-wrap"},
    {PLAIN("Your mail") PICTURE RICH("<a href=http://a.example/x>Your mail</a>"),
     "Your mail", "pre-wrap"},
    {RICH("<p>one <b>two</b>") PLAIN("One\n two"), "one two", "pre-wrap"},
    {PLAIN("one") RICH("<p>two"), "one\ntwo", NULL},
    {PLAIN("one") RICH("<p>one and two"), "one\none and two", NULL},
    {PLAIN("one") PLAIN("one"), "one\none", NULL},
    {PLAIN("one") RICH("<p>one") PLAIN("footer"), "one\nfooter", NULL},
    {PLAIN("one") PLAIN("two") RICH("<p>one"), "one\ntwo\none", NULL},
    {PLAIN("---") RICH("<p>***"), "---\n***", NULL},
};

START_TEST(a_text_that_comes_in_two_forms_is_shown_once)
{
    static const crm_mail_options_t keeps = {.keep_original = 1};
    apr_pool_t *pool = crm_check_pool();
    const char *bytes = apr_pstrcat(
        pool, HEAD "Content-Type: multipart/mixed; boundary=b\n\n",
        twice[_i].parts, "--b--\n", NULL);
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, strlen(bytes), &keeps, pool);
    same(bytes, mail.text, twice[_i].text);
    ck_assert(!twice[_i].lacks || !strstr(mail.display, twice[_i].lacks));
}
END_TEST

/* ---- Italy's certified mail ---------------------------------------------- */

/* A mail with HEADER that encloses one in FILE. */
#define CERTIFIED(header, file) HEAD header \
    "Content-Type: multipart/signed; boundary=a\n\n--a\n" \
    "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nthe provider\n--b\n" \
    "Content-Type: message/rfc822; name=\"" file "\"\n\n" \
    "From: Ada <ada@pec.example>\nIn-Reply-To: <offer@crm.example>\n" \
    "Content-Type: multipart/mixed; boundary=c\n\n--c\n\nher words\n--c\n" \
    "Content-Type: application/pdf; name=a.pdf\n\nx\n--c--\n\n--b--\n\n--a\n" \
    "Content-Type: application/pkcs7-signature\n\nx\n--a--\n"

static const struct {
    const char *mail, *text;
    int references, attachments;
} certified[] = {
    {CERTIFIED("X-Trasporto: posta-certificata\n", "postacert.eml"),
     "the provider\nher words", 1, 3},
    {CERTIFIED("", "postacert.eml"), "the provider", 0, 2},
    {CERTIFIED("X-Trasporto: errore\n", "postacert.eml"), "the provider", 0,
     2},
    {CERTIFIED("X-Trasporto: posta-certificata\n", "another.eml"),
     "the provider", 0, 2},
    /* a text behind it, which may be another form of one before */
    {"X-Trasporto: posta-certificata\nContent-Type: multipart/mixed; boundary=b"
     "\n\n--b\nContent-Type: message/rfc822; name=postacert.eml\n\n"
     "From: Ada <ada@pec.example>\n\nher words\n--b\nContent-Type: text/html"
     "\n\n<p>her words</p>\n--b--\n", "her words\nher words", 0, 1},
};

START_TEST(what_a_provider_certifies_is_read)
{
    static const crm_mail_options_t options;
    const char *bytes = certified[_i].mail;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, strlen(bytes), &options, crm_check_pool());
    same(bytes, mail.text, certified[_i].text);
    ck_assert_int_eq(mail.references->nelts, certified[_i].references);
    ck_assert_int_eq(mail.attachments->nelts, certified[_i].attachments);
}
END_TEST

/* ---- no line between a header and a text --------------------------------- */

static const struct {
    const char *mail, *text;
} joined[] = {
    {"Subject: x\nthe words\nmore", "the words\nmore"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
     " text/plain\nthe words\n--b\n\nmore\n--b--\n", "the words\nmore"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
     " text/html\n<p>the\n words\n--b--\n", "the words"},
    /* a line that belongs nowhere */
    {"Subject: x\nbroken\nDate: y\n\nthe words", "the words"},
    {"Subject: x\nbroken\n\nthe words", "the words"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
     " text/plain\nbroken\n\nthe words\n--b--\n", "the words"},
    /* a text of several paragraphs */
    {"Subject: x\nDear Ada,\nI agree.\n\nBob", "Dear Ada,\nI agree.\n\nBob"},
    {"Subject: x\r\nthe words\r\n\r\nmore\r\n", "the words\n\nmore"},
    {"Subject: x\nbroken it is\nDate: y\n\nthe words", "the words"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
     " text/plain\nDear Ada,\n\nno\n--b--\n", "Dear Ada,\n\nno"},
    {"Content-Type: text/plain;\nx = \"a b\"\n\nthe words", "the words"},
    /* a line with nothing but blanks */
    {"Subject: x\n \nthe words\nmore", "the words\nmore"},
    {"Subject: x\r\n\t\r\nDear Ada,\r\n\r\nno", "Dear Ada,\n\nno"},
    {"Subject: x\n \nNote: the words\nmore", "Note: the words\nmore"},
    {"Subject: x\n \nDate: y\nX-Y: z\n\nthe words", "the words"},
    {"Subject: x\n \n y\n\nthe words", "the words"},
    {"Subject: x\n \n y\nbroken\nDate: y\n\nthe words", "the words"},
    {"Subject: x\n \nDate: y\n", ""},
    {"Subject: x\n \n\nthe words", "the words"},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type:"
     " text/html\n \n<p>the\n\nwords\n--b--\n", "the words"},
    {"Content-Type: multipart/mixed; boundary=b\n \n--b\n\nthe words\n--b--\n",
     "the words"},
};

START_TEST(a_text_begins_where_the_header_has_ended)
{
    same(joined[_i].mail, text_of(apr_pstrcat(
        crm_check_pool(), HEAD, joined[_i].mail, NULL)), joined[_i].text);
}
END_TEST

/* ---- base64 that is none ------------------------------------------------- */

static const struct {
    const char *charset, *body, *text;
} encoded[] = {
    {"utf-8", "SGVsbG8gdGhlcmUhIQ==", "Hello there!!"},
    {"utf-8", "SGVsbG8gdGhlcmUhISEh", "Hello there!!!!"},
    {"utf-8", "SGVsb\nG8gdGh\nlcmUhIQ==", "Hello there!!"},
    {"utf-8", "SGVs bG8g*dGhlcmUhIQ==", "Hello there!!"},
    {"utf-8", "R3LDvMOfZQ==", "Grüße"},
    /* without padding */
    {"utf-8", "SGVsbG8gdGhlcmUhIQ", "Hello there!!"},
    {"utf-8", "SGVsbG8gdGhl\ncmUhISE", "Hello there!!!"},
    /* UTF-16, whatever is said */
    {"utf-8", "//5HAHIA/ADfAGUA", "Grüße"},
    {"iso-8859-1", "/v8ARwByAPwA3wBl", "Grüße"},
    {"iso-8859-1", "R3L832U=", "Grüße"},
    {"utf-8", "Hello there please call me", "Hello there please call me"},
    {"utf-8", "Hi Bob,\n\ncall me.", "Hi Bob,\n\ncall me."},
    {"iso-8859-1", "Hello there please call me", "Hello there please call me"},
    {"utf-8", "Thanks", "Thanks"}, {"utf-8", "Test", "Test"},
    {"iso-8859-1", "Thanks", "Thanks"}, {"utf-8", "yes", "yes"},
    {"utf-8", "Grüße", "Grüße"},
    {"utf-8", "", ""},
    /* texts that have the padding's character */
    {"utf-8", "id=4711, please call me", "id=4711, please call me"},
    {"utf-8", "Ref=12345\nplease call me", "Ref=12345\nplease call me"},
    {"utf-8", "=C3=9Cber=20uns", "=C3=9Cber=20uns"},
    {"iso-8859-1", "caf=E9=\n=20", "caf=E9=\n=20"},
    {"iso-8859-14", "8P4=", "ŵŷ"},
    {"ascii", "R3L832U=", "Grüße"},
    {"kz-1048", "jeDn4J0=", "Қазақ"},
    /* pieces that were encoded one by one */
    {"utf-8", "SGVsbG8gdGhlcmUh\nISE=\nSGVsbG8gdGhlcmUhIQ==",
     "Hello there!!!Hello there!!"},
    {"utf-8", "SGVsbG8gdGhlcmUhISE=\r\n\r\nSGVsbG8gdGhlcmUhIQ==\r\n",
     "Hello there!!!Hello there!!"},
    {"utf-8", "SGVsbG8gdGhlcmUhIQ==\n\n_____\nList of\nHello", "Hello there!!"},
    {"utf-8", "SGVsbG8gdGhlcmUhIQ==\nRegards", "Hello there!!"},
    {"utf-8", "SGVsbG8=SGVsbG8=", "HelloHello"},
    {"utf-8", "SGVsbG8gdGhlcmU=SGVsbG8gdGhlcmUhIQ==\nSGVsbG8gdGhlcmUhIQ==",
     "Hello thereHello there!!Hello there!!"},
    /* what a server adds */
    {"utf-8", "R3LDvMOfZSEh\n\n--\nNo virus found.", "Grüße!!"},
    {"utf-8", "R3LDvMOfZSEh\r\n\r\nNo virus found.\r\n",
     "Grüße!!"},
    {"utf-8", "SGVsbG8gdGhl\n\ncmUhISE=", "Hello there!!!"},
};

START_TEST(a_text_that_is_no_base64_is_taken_as_it_is)
{
    same(encoded[_i].body, text_of(apr_pstrcat(
        crm_check_pool(), HEAD "Content-Type: text/plain; charset=",
        encoded[_i].charset, "\nContent-Transfer-Encoding: base64\n\n",
        encoded[_i].body, "\n", NULL)), encoded[_i].text);
}
END_TEST

static const struct {
    const char *body, *bytes;
} files[] = {
    {"QUJD", "ABC"}, {"QUJDRA==", "ABCD"}, {"QUJDRA", "ABCD"},
    /* pieces that were encoded one by one */
    {"QUJDRA==\nQUJDQUJD", "ABCDABCABC"},
    {"QUJDRA==QUJD\nQUJDRA==", "ABCDABCABCD"},
    {"QUJDRA==\r\n\r\nQUJDQUJDRA==\r\n", "ABCDABCABCD"},
    /* what a server adds */
    {"QUJDRA==\n\n-- \nNo virus found.", "ABCD"},
    {"QU!JDRA==\nNo virus found.", "ABCD"},
};

START_TEST(a_file_is_whole)
{
    static const crm_mail_options_t options = {.attachment_bytes = 100};
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, HEAD "Content-Type: application/pdf; name=a.pdf\n"
        "Content-Transfer-Encoding: base64\n\n", files[_i].body, "\n", NULL);
    const crm_mail_attachment_t *file;
    crm_mail_t mail;

    crm_mail_read(&mail, text, strlen(text), &options, pool);
    file = &APR_ARRAY_IDX(mail.attachments, 0, crm_mail_attachment_t);
    same(files[_i].body, apr_pstrmemdup(pool, file->body, file->size),
         files[_i].bytes);
}
END_TEST

/* ---- what shows nothing -------------------------------------------------- */

static const struct {
    const char *text;
    int shows;
} shown[] = {
    {"", 0}, {" \t\r\n", 0}, {"\xc2\xa0", 0}, {"\xe2\x80\x8b", 0},
    {"\xef\xbb\xbf", 0}, {"\xe2\x80\x8c\xe2\x80\x8d\xe2\x80\x8e", 0},
    {"\xc2\xad\xcd\x8f", 0}, {"\xe3\x80\x80\xe2\x80\x89", 0},
    {"\xe2\xa0\x80\xe3\x85\xa4", 0}, {"\xe2\x80\xa8\xe2\x81\xa0", 0},
    {".", 1}, {"\xc2\xa0?\xc2\xa0", 1}, {"\xe2\x80\x8b" "a", 1},
    {"👍", 1}, {"你", 1},
};

START_TEST(a_text_that_shows_nothing_does_not_hide_the_html)
{
    const char *text = shown[_i].text;

    ck_assert_int_eq(crm_text_shows(text), shown[_i].shows);
    ck_assert_int_eq(strcmp(text_of(apr_pstrcat(
        crm_check_pool(), HEAD "Content-Type: multipart/alternative;"
        " boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n",
        text, "\n--b\nContent-Type: text/html\n\nwords\n--b--\n", NULL)),
        "words") == 0, !shown[_i].shows);
}
END_TEST

/* A plain text, the HTML beside it, and which of them is the mail's text. */
static const struct {
    const char *plain, *html;
    int is_html;
} stubs[] = {
    {"Your mail program does not support HTML.", "<p>The words", 1},
    {"Ihr E-Mail-Programm kann keine HTML-Mails anzeigen.\n", "<p>Worte", 1},
    {"This message is in HTML format. Please use an HTML capable client.\n"
     "https://example.org/view?id=1", "<p>The words", 1},
    {"How do I send HTML?", "<p>How do I send <b>HTML</b>?", 0},
    {"How do I send *HTML* <https://example.org>?",
     "How do I send <b>HTML</b> <a href=\"https://example.org\">?</a><br>Ada", 0},
    {"I do not see it.", "<p>The words", 0},
    {"Your mail program does not support HTML.", "<p> ", 0},
};

START_TEST(a_text_that_only_speaks_of_the_html_does_not_hide_it)
{
    const char *text = text_of(apr_pstrcat(
        crm_check_pool(), HEAD "Content-Type: multipart/alternative;"
        " boundary=b\n\n--b\n\n", stubs[_i].plain,
        "\n--b\nContent-Type: text/html\n\n", stubs[_i].html, "\n--b--\n",
        NULL));

    ck_assert_msg(!strncmp(text, stubs[_i].plain, 15) == !stubs[_i].is_html,
                  "%s: \"%s\"", stubs[_i].plain, text);
    ck_assert_str_ne(text, "");
}
END_TEST

/* ---- signatures in a text -------------------------------------------------- */

#define SIGNED "-----BEGIN PGP SIGNED MESSAGE-----"
#define SIGNATURE "-----BEGIN PGP SIGNATURE-----"
#define ARMOR SIGNATURE "\n\niQEz=\n=abcd\n-----END PGP SIGNATURE-----\n"

static const struct {
    const char *text, *want;
} armored[] = {
    {SIGNED "\nHash: SHA256\n\nwords\n" ARMOR, "words"},
    {SIGNED "\n\nwords\n\n" ARMOR, "words"},
    {SIGNED " \nHash: SHA1\nHash: MD5\n \nwords\n" ARMOR, "words"},
    {"before\n" SIGNED "\nHash: SHA256\n\nwords\n" ARMOR "after\n",
     "before\nwords\nafter"},
    {SIGNED "\n\none\n" ARMOR SIGNED "\n\ntwo\n" ARMOR, "one\ntwo"},
    {SIGNED "\n\n- -- \nAda\n- - a list\n - b\n" ARMOR,
     "-- \nAda\n- a list\n - b"},
    {SIGNED "\n\n- " SIGNED "\nwords\n" ARMOR, SIGNED "\nwords"},
    /* nothing is hidden that is not well-formed */
    {SIGNED "\nHash: SHA256\nwords\n" ARMOR, NULL},
    {SIGNED "\nComment: words\n\nmore\n" ARMOR, NULL},
    {SIGNED "\n\nwords\n" SIGNATURE "\nmore words", NULL},
    {SIGNED "\n\nwords", NULL},
    {SIGNED, NULL},
    {"> " SIGNED "\n> Hash: SHA256\n>\n> words\n> " ARMOR, NULL},
    {"- words\n" ARMOR, NULL},
    {SIGNED "!\n\nwords\n" ARMOR, NULL},
};

START_TEST(a_text_is_without_its_signature)
{
    const char *text = armored[_i].text, *want = armored[_i].want;
    const char *got = text_of(apr_pstrcat(crm_check_pool(), HEAD "Content-Type:"
        " text/plain; charset=utf-8\n\n", text, NULL));

    same(text, got, want ? want : apr_pstrmemdup(
        crm_check_pool(), text, strlen(text) - (text[strlen(text) - 1] == '\n')));
}
END_TEST

/* ---- what fills a preview ------------------------------------------------- */

/* What advertisements put behind their first words, so that a preview of the mail shows
 * no more: invisible characters and blanks, over and over. */
#define FILL "\xcd\x8f\xe2\x80\x8c\xc2\xa0"
#define FILLS FILL FILL FILL FILL

static const struct {
    const char *text, *want;
} filled[] = {
    {"a" FILLS "b", "a b"},
    {"a\n" FILLS "\nb", "a\n\nb"},
    {"a\n" FILLS "b", "a\nb"},
    {"a\n\n" FILL "\n" FILL "\n" FILL "\n" FILL "\n\nb", "a\n\nb"},
    {FILLS "a" FILLS, "a"},
    {"a \xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad b",
     "a b"},
    /* and what people write */
    {"a\xe2\x80\x8c" "b", "a\xe2\x80\x8c" "b"},
    {"a" FILL FILL FILL "b", "a" FILL FILL FILL "b"},
    {"a                    b", "a                    b"},
    {"a\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2"
     "\xa0" "b", "a\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0"
     "\xc2\xa0\xc2\xa0" "b"},
};

START_TEST(a_text_is_without_what_fills_its_preview)
{
    const char *plain = apr_pstrcat(crm_check_pool(), HEAD "Content-Type:"
        " text/plain; charset=utf-8\n\n", filled[_i].text, NULL);

    same(filled[_i].text, text_of(plain), filled[_i].want);
}
END_TEST

START_TEST(html_is_without_what_fills_its_preview)
{
    same("HTML", text_of_html("<div>a</div><div>&#847;&zwnj;&nbsp;&#847;&zwnj;"
                              "&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;</div>"
                              "<p>b</p>"), "a\n\nb");
}
END_TEST

/* ---- what styles hide ---------------------------------------------------- */

static const struct {
    const char *style;
    int hidden;
} styles[] = {
    {"display:none", 1}, {"DISPLAY : None !important", 1},
    {"color:red; display:none;", 1}, {"/* a */display/**/:/**/none", 1},
    {"display:none!important;display:block", 1},
    {"display:none;display:block", 0}, {"display:block", 0},
    {"background:url('x;display:none')", 0}, {"x-display:none", 0},
    {"visibility:hidden", 1}, {"visibility:collapse", 1},
    {"visibility:visible", 0}, {"mso-hide:all", 1},
    {"max-height:0", 1}, {"max-height:0px;overflow:hidden", 1},
    {"max-height:0;position:relative;opacity:.999", 0},
    {"max-height:100px;overflow:hidden", 0},
    {"height:0;overflow:hidden", 1}, {"width:0px;overflow:hidden", 1},
    {"max-width:0;overflow:hidden", 1},
    {"max-width:0;width:100%;overflow:hidden", 0}, {"height:0", 0},
    {"opacity:0", 1}, {"opacity:0.0", 1}, {"opacity:0%", 1},
    {"opacity:.5", 0}, {"opacity:1", 0},
    {"font-size:0", 1}, {"font-size:0px;line-height:0", 1},
    {"font-size:1px;color:#fff", 1}, {"font-size:1em", 0},
    {"font-size:12px", 0}, {"font:0/0 a", 1}, {"font:bold 12px/1.2 Arial", 0},
    {"font:400 0px Arial", 1},
    {"text-indent:-9999px", 1}, {"text-indent:-1em", 0},
    {"position:absolute;left:-10000px", 1}, {"margin-left:-20px", 0},
    {"clip:rect(0 0 0 0)", 1}, {"clip:rect(1px, 1px, 1px, 1px)", 1},
    {"clip:rect(0, 200px, 100px, 0)", 0}, {"clip-path:inset(50%)", 1},
    {"transform:scale(0)", 1}, {"transform:scale(0.5)", 0},
    {"", 0}, {";;:;", 0}, {"display", 0}, {"display:", 0},
    {"display:none /* ", 1}, {"content:\"", 0}, {"x:url(;display:none", 1},
};

/* Return STYLE as the value of an attribute. */
static const char *quoted(const char *style)
{
    const char *quote = strchr(style, '"');

    return quote ? apr_pstrcat(crm_check_pool(), apr_pstrndup(
                                   crm_check_pool(), style,
                                   (apr_size_t)(quote - style)), "&quot;",
                               quote + 1, NULL) : style;
}

START_TEST(a_style_may_hide)
{
    const char *text = text_of_html(apr_pstrcat(
        crm_check_pool(), "<div style=\"", quoted(styles[_i].style),
        "\">pre</div><p>words</p>", NULL));

    ck_assert_msg((strstr(text, "pre") == NULL) == styles[_i].hidden, "%s\n%s",
                  styles[_i].style, text);
    ck_assert_ptr_nonnull(strstr(text, "words"));
}
END_TEST

static const struct {
    const char *html, *text;
} hidden[] = {
    {"<div style='font-size:0'>no<b style='font-size:14px'>yes</b>no</div>",
     "yes"},
    {"<div style='font-size:0'>no<font size=3>yes</font>no</div>", "yes"},
    {"<div style='font-size:0'>no<b style='font-size:2em'>no</b></div>yes",
     "yes"},
    {"<p style='visibility:hidden'>no<b style='visibility:visible'>yes</b>",
     "yes"},
    {"<div style='display:none'>no<b style='display:block'>no</b></div>yes",
     "yes"},
    {"<div hidden>no</div>yes", "yes"},
    {"<img width=1 height=1 alt=no src=x>yes", "yes"},
    {"<img style='display:none' alt=no src=x>yes", "yes"},
    {"<img width=10 height=11 alt=logo src=x>", "logo"},
    {"<br style='display:none'>yes<iframe>no</iframe>", "yes"},
    /* if all is hidden, it is the text */
    {"<div style='display:none'>all</div>", "all"},
    {"<div style='opacity:0'>all</div>&nbsp;&zwnj;", "all"},
};

START_TEST(what_html_hides_is_not_its_text)
{
    same(hidden[_i].html, text_of_html(hidden[_i].html), hidden[_i].text);
}
END_TEST

/* ---- what HTML shows ----------------------------------------------------- */

#define WORDS "a text that is too long for a cell of a table, so that the next cell is" \
              " another paragraph"

static const struct {
    const char *html, *text;
} laid_out[] = {
    /* a text before all elements is no paragraph */
    {"one<div>two</div>", "one\ntwo"},
    {"&lt;one<div>two</div>", "<one\ntwo"},
    {"< one<div>two</div>", "< one\ntwo"},
    {"<head><title>no</title>one<div>two</div>", "one\ntwo"},
    {"<html>\n<style>x</style> one<div>two</div>", "one\ntwo"},
    {"one<body style='display: none'><div>two</div>", "one\ntwo"},
    {"<body style='display: none'>one</body><p>two", "one\n\ntwo"},
    /* what follows the document (HTML, 13.2.6.4.22) */
    {"<html><body><p>one</p></body></html><p>two</p>", "one\n\ntwo"},
    {"<html><head><title>no</title></head><body>one</body></html>\n"
     "<html><head><title>no</title></head><body bgcolor=x>two</body></html>"
     "three", "one\ntwo\nthree"},
    {"<body>one</body></html><html><body>two</body></html>", "one\ntwo"},
    {"one<br></body>\n</html>\n", "one"},
    /* a link whose text is its URL */
    {"<a href='https://x.example/'>https://x.example</a>", "https://x.example"},
    {"<a href='http://x.example/'>x.example</a>", "x.example"},
    {"<a href='http://x.example/a/'>x.example/a</a>", "x.example/a"},
    {"<a href='http://x.example/a/'>x.example</a>",
     "x.example <http://x.example/a/>"},
    {"<p>one</body><p>two</html>three", "one\n\ntwo\nthree"},
    {"</html>one</body>", "one"},
    /* line ends that are kept (CSS Text, 3) */
    {"<p style='white-space: pre-wrap'>one\n  two\n\nthree</p>",
     "one\n  two\n\nthree"},
    {"<p style='white-space:pre-line'>one\n  two</p>\nthree",
     "one\ntwo\n\nthree"},
    {"<div style='white-space:break-spaces'><b>one\ntwo</b></div>\nx\ny",
     "one\ntwo\nx y"},
    {"<p style='WHITE-SPACE:PRE!important;white-space:normal'>one\ntwo</p>",
     "one\ntwo"},
    {"<div style='white-space:pre'>one\n<i style='white-space:nowrap'>two\n"
     "three</i>\nfour</div>", "one\ntwo three\nfour"},
    {"<pre style='white-space:normal'>one\ntwo</pre>", "one two"},
    {"<pre>one\n<pre>two\nthree</pre>four\nfive</pre>",
     "one\n\ntwo\nthree\n\nfour\nfive"},
    {"<p style='white-space:inherit'>one\ntwo</p>", "one two"},
    {"<div style='display:none;white-space:pre'>no</div>one\ntwo", "one two"},
    {"<div style='display:none'><p style='white-space:pre'>all\nof</p></div>",
     "all\nof"},
    /* numbers of items */
    {"<ol start=5><li>a<li>b</ol>", "5. a\n6. b"},
    {"<ol><li value=7>a<li>b</ol>", "7. a\n8. b"},
    {"<ol start=x><li>a<li value=''>b</ol>", "1. a\n2. b"},
    {"<ol start=-9223372036854775808><li>a</ol>", "1. a"},
    {"<ol start=-1000000><li>a</ol>", "-1000000. a"},
    {"<ol start=99999999999999999999><li>a</ol><ul><li value=3>b</ul>",
     "1. a\n\n- b"},
    /* elements that are lines */
    {"<details><summary>one</summary>two</details>three", "one\ntwo\nthree"},
    {"a<figure>b<figcaption>c</figcaption></figure>d", "a\nb\nc\nd"},
    {"<menu><li>a<li>b</menu>", "- a\n- b"},
    /* cells as Word and Excel make them, and those of a layout */
    {"x<table><tr><td><p>a</p></td><td><p>b</p></td></tr><tr><td><p>c</p></td>"
     "<td><div>d</div></td></tr></table>y", "x\n\na b\n\nc d\ny"},
    {"<table><tr><td></td><td><p>a</p></td><td></td><td><p>b</p></td><td></td></tr>"
     "<tr><td><p></p></td><td><p>c</p></td></tr></table>", "a b\n\nc"},
    {"<table><tr><td>a<br>b</td><td><p>c</p></td></tr><tr><td>d<td>e</table>",
     "a\nb\n\nc\n\nd e"},
    {"<table><tr><td><p>a</p><p>b</p></td><td><p>c</p><p>d</p></td></tr></table>",
     "a\n\nb\n\nc\n\nd"},
    {"<table><tr><td><p>a</p></td></tr><tr><td><p>b</p></td></tr></table>", "a\n\nb"},
    {"<table><tr><td><table><tr><td><p>a</p></td><td><p>b</p></td></tr></table></td>"
     "<td><p>c</p></td></tr></table>", "a b c"},
    {"<table><tr><td><p>" WORDS "</p></td><td><p>c</p></td></tr></table>",
     WORDS "\n\nc"},
    {"<ul><li><p>a</p></li><li><p>b</p></li></ul>c", "- a\n\n- b\n\nc"},
    {"<ol><li><div></div><div>a</div>b</li><li> <div><p>c</div></ol>",
     "1. a\nb\n2. c"},
    {"<ul><li></li><li><ul><li><p>a</ul><li><blockquote>b</blockquote></ul>",
     "-\n-\n  - a\n\n-\n\n> b"},
    {"<ul><li></ul><p>a", "-\n\na"},
    /* what a style makes a block */
    {"<b style='display:block'>a</b><b style='display: block'>b</b>", "a\nb"},
    {"a<b style='display:block;mso-hide:all'>b</b>c", "ac"},
    {"a<a href='https://x.example/a' style='display:block'>b</a>c",
     "a\nb <https://x.example/a>\nc"},
    {"<b style='display:table'>a</b><b style='display:flex'>b</b><b style="
     "'display:inline-block'>c</b><b style='display:inline'>d</b>", "a\nb\ncd"},
    {"<img alt=a style='display:block'>b", "a\nb"},
    {"<div style='display:block'>a</div><p style='display:block'>b</p>",
     "a\n\nb"},
    {"<table><tr><td><span style='display:block'>a</span></td><td><span style="
     "'display:block'>b</span></td></tr></table>", "a b"},
    {"<ul><li><span style='display:block'>a</span></li></ul>", "- a"},
    {"<span style='display:block'></span>a", "a"},
    /* lines of no-break spaces, as Outlook writes empty ones */
    {"<p>a</p><p>&nbsp;</p><p>b</p>", "a\n\nb"},
    {"<p>a<p><o:p>&nbsp;</o:p></p><p>&nbsp; &nbsp;</p>b", "a\n\nb"},
    {"<div>a</div><div>&nbsp;</div><div>b</div>", "a\n\nb"},
    {"a<br>&nbsp;<br>b", "a\n\nb"},
    {"<blockquote>a<p>&nbsp;</p>b</blockquote>", "> a\n>\n> b"},
    {"<p>a</p><p>&nbsp;&nbsp;b&nbsp;c</p>",
     "a\n\n\xc2\xa0\xc2\xa0" "b\xc2\xa0" "c"},
    {"a<br>&nbsp;<b>b</b>", "a\n\xc2\xa0" "b"},
    {"<table><tr><td>&nbsp;</td><td>a</td></tr><tr><td>b</td><td>&nbsp;</td>"
     "<td>c</td></tr></table>", "a\nb \xc2\xa0 c"},
    {"<pre>a\n&nbsp;\nb</pre>", "a\n\xc2\xa0\nb"},
    /* a URL with white space around it */
    {"<a href=' \n https://x.example/a\t'>b</a>", "b <https://x.example/a>"},
    {"<a href=' '>b</a>", "b"},
    /* a link that writes a mail, one without words, one that is a paragraph */
    {"<a href='mailto:a@x.example'>b</a>", "b <mailto:a@x.example>"},
    {"<a href='mailto:a@x.example'>a@x.example</a>", "a@x.example"},
    {"<a href='mailto:a@x.example?subject=c'>a@x.example</a>", "a@x.example"},
    {"a<a href='https://x.example/'></a>b", "ab"},
    {"<a href='https://x.example/a'><p>b</p></a>c",
     "b <https://x.example/a>\n\nc"},
    /* blank lines */
    {"a<br><br><br><br>b", "a\n\nb"},
    {"<blockquote>a<blockquote>b</blockquote>c</blockquote>d",
     "> a\n>\n> > b\n>\n> c\n\nd"},
    {"<ul><li>a<ul><li>b</ul></li><li>c</ul>d", "- a\n  - b\n- c\n\nd"},
    {"a\tb\r\n\tc", "a b c"},
    /* what is within that which is hidden */
    {"<div style='display:none'><blockquote>a</blockquote></div>"
     "<blockquote>b</blockquote>c", "> b\n\nc"},
    {"<p style='font-size:0'>a<img alt=b></p>c", "c"},
};

START_TEST(what_html_shows_is_its_text)
{
    same(laid_out[_i].html, text_of_html(laid_out[_i].html), laid_out[_i].text);
}
END_TEST

/* ---- character references ------------------------------------------------ */

static const struct {
    const char *html, *text;
} references[] = {
    {"&uuml;&#252;&#xFC;&#XFC;", "üüüü"},
    /* numbers of windows-1252 */
    {"It&#146;s 10 &#128; &#x96; &#132x", "It’s 10 € – „x"},
    {"a&#129;b", "a\xc2\x81" "b"},
    {"&#128;&#129;&#130;&#131;&#132;&#133;&#134;&#135;&#136;&#137;"
     "&#138;&#139;&#140;&#141;&#142;&#143;&#144;&#145;&#146;&#147;"
     "&#148;&#149;&#150;&#151;&#152;&#153;&#154;&#155;&#156;&#157;"
     "&#158;&#159;",
     "\342\202\254\302\201\342\200\232\306\222\342\200\236\342\200\246"
     "\342\200\240\342\200\241\313\206\342\200\260\305\240\342\200\271"
     "\305\222\302\215\305\275\302\217\302\220\342\200\230\342\200\231"
     "\342\200\234\342\200\235\342\200\242\342\200\223\342\200\224"
     "\313\234\342\204\242\305\241\342\200\272\305\223\302\235\305\276"
     "\305\270"},
    {"a&#0000146;&#X00000092;&#x9C;&#X9f;", "a\342\200\231\342\200\231\305\223"
     "\305\270"},
    /* names of HTML 5 */
    {"Hello&comma; world&period; &ccaron;&Zcaron;&shcy;",
     "Hello, world. čŽш"},
    {"&LT;p&GT; &lbrack;x&rsqb;", "<p> [x]"},
    {"&none; &Ccaronx; &;", "&none; &Ccaronx; &;"},
    {"&CloseCurlyDoubleQuote;&zhcy;&AMP;", "\342\200\235\320\266&"},
    {"&CloseCurlyDoubleQuoteAndMore;", "&CloseCurlyDoubleQuoteAndMore;"},
    /* without a semicolon */
    {"a&nbsp b &amp c &lt d&copy", "a\xc2\xa0 b & c < d\xc2\xa9"},
    {"AT&T x&copyright a&ampb", "AT&T x&copyright a&ampb"},
    {"http://x/?a=1&lang=en&copy=2", "http://x/?a=1&lang=en&copy=2"},
    {"<a href='http://x/?a&copy&comma;&amp;b'>t</a>",
     "t <http://x/?a&copy,&b>"},
    {"<img alt='&#147;x&colon;&#148;'>", "“x:”"},
};

START_TEST(references_are_read_as_browsers_do)
{
    same(references[_i].html, text_of_html(references[_i].html), references[_i].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_texts");
    TCase *texts = tcase_create("texts");

    tcase_add_loop_test(texts, a_header_is_read_where_it_stands, 0,
                        COUNT(repaired));
    tcase_add_test(texts, a_mail_that_needs_no_repair_is_not_copied);
    tcase_add_test(texts, repairs_take_bounded_time);
    tcase_add_loop_test(texts, a_part_is_of_its_type, 0, COUNT(typed));
    tcase_add_loop_test(texts, a_text_is_without_its_signature, 0,
                        COUNT(armored));
    tcase_add_loop_test(texts, a_text_is_without_what_fills_its_preview, 0,
                        COUNT(filled));
    tcase_add_test(texts, html_is_without_what_fills_its_preview);
    tcase_add_loop_test(texts, another_form_of_a_text_is_no_file, 0,
                        COUNT(forms));
    tcase_add_loop_test(texts, an_invitation_alone_is_a_text, 0,
                        COUNT(invitations));
    tcase_add_test(texts, what_is_kept_changes_no_text);
    tcase_add_loop_test(texts, a_file_that_is_shown_is_a_file, 0,
                        COUNT(named));
    tcase_add_loop_test(texts, what_a_provider_certifies_is_read, 0,
                        COUNT(certified));
    tcase_add_loop_test(texts,
                        a_text_that_comes_in_two_forms_is_shown_once, 0,
                        COUNT(twice));
    tcase_add_test(texts, all_html_of_an_alternative_is_shown);
    tcase_add_loop_test(texts, a_text_begins_where_the_header_has_ended, 0,
                        COUNT(joined));
    tcase_add_loop_test(texts, a_text_that_is_no_base64_is_taken_as_it_is, 0,
                        COUNT(encoded));
    tcase_add_loop_test(texts, a_file_is_whole, 0, COUNT(files));
    tcase_add_loop_test(texts,
                        a_text_that_shows_nothing_does_not_hide_the_html, 0,
                        COUNT(shown));
    tcase_add_loop_test(texts, a_text_that_only_speaks_of_the_html_does_not_hide_it,
                        0, COUNT(stubs));
    tcase_add_loop_test(texts, a_style_may_hide, 0, COUNT(styles));
    tcase_add_loop_test(texts, what_html_hides_is_not_its_text, 0,
                        COUNT(hidden));
    tcase_add_loop_test(texts, what_html_shows_is_its_text, 0,
                        COUNT(laid_out));
    tcase_add_loop_test(texts, references_are_read_as_browsers_do, 0,
                        COUNT(references));
    suite_add_tcase(suite, texts);
    return crm_check_main(suite);
}
