/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_texts.c: which of its parts is the text of a mail (contract 18.3) */
#include <string.h>

#include "apr_strings.h"

#include "crm_bare.h"
#include "crm_mail_test.h"

/* ---- parts --------------------------------------------------------------- */

#define ROUND_A_PICTURE "Content-Type: multipart/mixed; boundary=c\n\n" \
    "--c\nContent-Type: text/html\n\n<p>one</p>\n--c\nContent-Type: image/png\n" \
    "\nx\n--c\nContent-Type: text/html\n\n<p>two</p>\n--c--\n"

#define TEN(text) text text text text text text text text text text

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
    {"Content-Transfer-Encoding: quoted-printable\n\n3=\n0 = x", "30 = x"},
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
    {"Content-Type: text/plain; charset=utf-8\n\n„ü“ is =C3=BC=C3=BC",
     "„ü“ is =C3=BC=C3=BC"},
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
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type:"
     " multipart/mixed; boundary=c\n\n--c\n\none\n--c\nContent-Type: text/plain;"
     " name=a.txt\n\ntwo\n--c--\n--b--\n", "one"},
    /* lines without words at both ends, but not the indent of the first line */
    {"\n\n \n  words\n  more\n \n", "  words\n  more"},
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
    {"Content-Type: text/richtext\n\na << b", "a << b"},
    {"Content-Type: text/enriched\n\na <" TEN("longer") ">b <" TEN("longer") "s>c",
     "a b <" TEN("longer") "s>c"},
    /* files that are no texts for people */
    {"Content-Type: text/csv; name=a.csv\n\na;b", ""},
    {"Content-Type: text/vcard\nContent-Disposition: attachment\n\nBEGIN", ""},
    {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/xml"
     "\nContent-Disposition: attachment; filename=a.xml\n\n<a/>\n--b\n"
     "Content-Type: text/plain; name=a.log\nContent-Disposition: attachment\n"
     "\nwords\n--b--\n", "words"},
    {"Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type:"
     " text/rfc822-headers\n\nSubject: x\n--b--\n", ""},
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
    same(typed[_i].mail, "text", text_of(apr_pstrcat(crm_check_pool(), HEAD,
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
    static const crm_mail_options_t own = {.keep_original = 1};
    static const char bytes[] = HEAD "Content-Type: multipart/alternative;"
                                " boundary=b\n\n" ALTERNATIVES;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, sizeof(bytes) - 1, &own, crm_check_pool());
    same("alternatives", "text", mail.text, "plain");
    ck_assert_ptr_nonnull(mail.display);
}
END_TEST

START_TEST(a_file_that_is_shown_is_a_file)
{
    apr_pool_t *pool = crm_check_pool();
    const char *bytes = apr_pstrcat(
        pool, HEAD "Content-Type: multipart/mixed; boundary=b\n\n",
        named[_i].parts, "--b--\n", NULL);
    crm_mail_t mail;

    read_mail(&mail, bytes);
    same(named[_i].parts, "text", mail.text, named[_i].text);
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
    crm_mail_t mail;

    read_mail(&mail, bytes);
    same(forms[_i].header, "text", mail.text, "plain");
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
     "ATTENDEE;CN=\"a: b\";PARTSTAT=ACCEPTED:mailto:ada@example.org\r\n"
     "COMMENT;LANGUAGE=en-US:Five minutes late\\, so\r\n rry\\NAda\r\n"
     "SUMMARY;LANGUAGE=en-US:Accepted: Demo\r\n"
     "DTSTART;TZID=Rome:20261105T100000\r\nLOCATION:Room 5\\; left\r\n"
     "END:VEVENT\r\nEND:VCALENDAR\r\n",
     "Accepted: Demo\naccepted\n2026-11-05 10:00 Rome\nRoom 5; left\n\n"
     "Five minutes late, sorry\nAda"},
    {"begin:vcalendar\nmethod:request\nbegin:vevent\nbegin:valarm\n"
     "summary:Alarm\nend:valarm\nattendee;partstat="
     "needs-action:mailto:b@example.org\nsummary:Demo\n"
     "dtstart:20261105T100000Z\ndescription:Bring \\\\ a map\n"
     "location:\nend:vevent\nbegin:vevent\n"
     "summary:Second\ncomment:Second\nend:vevent\nend:vcalendar\n",
     "Demo\n2026-11-05 10:00 UTC\n\nBring \\ a map"},
    {"BEGIN:VCALENDAR\nBEGIN:VTODO\nDTSTART;VALUE=DATE:20261105\nEND:VTODO\n",
     "2026-11-05"},
    {"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:tomorrow\nSUMMARY:Demo\n",
     "Demo\ntomorrow"},
    {"BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nATTENDEE;ROLE=CHAIR;"
     "PARTSTAT=DECLINED:mailto:a@b\nSUMMARY:Demo\nSUMMARY:Again\nEND:VEVENT\n",
     "Demo\ndeclined"},
    {"BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nATTENDEE;X-PARTSTAT=DECLINED:"
     "mailto:a@b\nSUMMARY:Demo\nEND:VEVENT\n", "Demo"},
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
    /* folded within a character */
    {"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Caf\xc3\r\n \xa9 a\xe2\x82\r\n\t\xac\r\n"
     "END:VEVENT\r\n", "Café a€"},
    {"no calendar", "no calendar"},
};

/* Headers of invitations that are files. */
static const char *const invitation_files[] = {
    "Content-Type: application/ics\nContent-Disposition: attachment; filename=a",
    "Content-Type: application/octet-stream; name=\"invite.ICS\"",
    "Content-Type: text/plain; name=a.ics\nContent-Disposition: attachment",
    "Content-Type: text/x-vcalendar; name=a.vcs",
    "Content-Type: text/calendar; name=a.ics\nContent-Disposition: attachment",
};

START_TEST(an_invitation_that_is_a_file_is_a_text)
{
    same(invitation_files[_i], "text", text_of(apr_pstrcat(
        crm_check_pool(), HEAD "Content-Type: multipart/mixed; boundary=b\n\n--b\n",
        invitation_files[_i], "\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:De\n mo\n"
        "END:VEVENT\nEND:VCALENDAR\n--b--\n", NULL)), "Demo");
}
END_TEST

START_TEST(an_invitation_alone_is_a_text)
{
    apr_pool_t *pool = crm_check_pool();
    const char *calendar = invitations[_i].calendar;

    same(calendar, "text", text_of(apr_pstrcat(
        pool, HEAD "Content-Type: text/calendar; method=REPLY\n\n", calendar,
        NULL)), invitations[_i].text);
    same(calendar, "text", text_of(apr_pstrcat(
        pool, HEAD "Content-Type: multipart/alternative; boundary=b\n\n--b\n\n"
        " \n--b\nContent-Type: text/calendar\n\n", calendar, "\n--b--\n", NULL)),
         invitations[_i].text);
    same(calendar, "text", text_of(apr_pstrcat(
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
    {PLAIN("Ada <mailto:a@b.example>, Bob") RICH("<p>Ada, <i>Bob</i>"),
     "Ada <mailto:a@b.example>, Bob", "pre-wrap"},
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
    same(bytes, "text", mail.text, twice[_i].text);
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
    const char *bytes = certified[_i].mail;
    crm_mail_t mail;

    read_mail(&mail, bytes);
    same(bytes, "text", mail.text, certified[_i].text);
    ck_assert_int_eq(mail.references->nelts, certified[_i].references);
    ck_assert_int_eq(mail.attachments->nelts, certified[_i].attachments);
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
    {"This is a multi-part message in MIME format.", "<p>The words", 1},
    {"Can't see this mail? Open it in your web browser:\nhttps://example.org/v?id=1",
     "<p>The words", 1},
    {"Si no ve este mensaje, \xc3\xa1" "bralo en su navegador: https://example.org/v",
     "<p>The words", 1},
    {"It fails in my browser <https://example.org/>.\n\nAda",
     "<p>It fails in my <a href=https://example.org/>browser</a>.<p>Ada<p>More", 0},
    {"How do I send HTML?", "<p>How do I send <b>HTML</b>?", 0},
    {"How do I send *HTML* <https://example.org>?",
     "How do I send <b>HTML</b> <a href=\"https://example.org\">?</a><br>Ada", 0},
    {"I do not see it.", "<p>The words", 0},
    {"Your HTML is wrong:" TEN(TEN(" more")), "<p>The words", 0},
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

    same(text, "text", got, want ? want : apr_pstrmemdup(
        crm_check_pool(), text, strlen(text) - (text[strlen(text) - 1] == '\n')));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_texts");
    TCase *texts = tcase_create("texts");

    mail_init();
    tcase_add_loop_test(texts, a_part_is_of_its_type, 0, COUNT(typed));
    tcase_add_loop_test(texts, a_text_is_without_its_signature, 0,
                        COUNT(armored));
    tcase_add_loop_test(texts, another_form_of_a_text_is_no_file, 0,
                        COUNT(forms));
    tcase_add_loop_test(texts, an_invitation_alone_is_a_text, 0,
                        COUNT(invitations));
    tcase_add_loop_test(texts, an_invitation_that_is_a_file_is_a_text, 0,
                        COUNT(invitation_files));
    tcase_add_test(texts, what_is_kept_changes_no_text);
    tcase_add_loop_test(texts, a_file_that_is_shown_is_a_file, 0,
                        COUNT(named));
    tcase_add_loop_test(texts, what_a_provider_certifies_is_read, 0,
                        COUNT(certified));
    tcase_add_loop_test(texts,
                        a_text_that_comes_in_two_forms_is_shown_once, 0,
                        COUNT(twice));
    tcase_add_test(texts, all_html_of_an_alternative_is_shown);
    tcase_add_loop_test(texts,
                        a_text_that_shows_nothing_does_not_hide_the_html, 0,
                        COUNT(shown));
    tcase_add_loop_test(texts, a_text_that_only_speaks_of_the_html_does_not_hide_it,
                        0, COUNT(stubs));
    suite_add_tcase(suite, texts);
    return crm_check_main(suite);
}
