/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_repair.c: the text of a mail that is malformed (contract 18.3) */
#include <string.h>

#include "apr_strings.h"

#include "crm_mail_test.h"
#include "mail_repair.h"

/* ---- headers that are not where they belong ------------------------------- */

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
    same(repaired[_i].mail, "text", text_of(repaired[_i].mail),
         repaired[_i].text);
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
    same(joined[_i].mail, "text", text_of(apr_pstrcat(
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
    same(encoded[_i].body, "text", text_of(apr_pstrcat(
        crm_check_pool(), HEAD "Content-Type: text/plain; charset=",
        encoded[_i].charset, "\nContent-Transfer-Encoding: base64\n\n",
        encoded[_i].body, "\n", NULL)), encoded[_i].text);
}
END_TEST

/* Texts whose encoding is not declared, or another one. */
static const struct {
    const char *body, *text;
} undeclared[] = {
    {"SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIGJhY2sgc29vbi4=\n",
     "Hello there, please call me back soon."},
    {"SGVsbG8gdGhlcmUsIHBs\r\nZWFzZSBjYWxsIG1lIGJh\r\nY2sgc29vbi4=\r\n\r\n",
     "Hello there, please call me back soon."},
    {"R3LDvMOfZSBhbiBkaWUgR3LDvMOfZSBkZXIgR3LDvMOfZSE=",
     "Grüße an die Grüße der Grüße!"},
    /* too short, with other words, no text, one word, or without its end */
    {"R3LDvMOfZSBhbiBkaWUgR3LDvMOf", "R3LDvMOfZSBhbiBkaWUgR3LDvMOf"},
    {"Key: SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIGJhY2sgc29vbi4=",
     "Key: SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIGJhY2sgc29vbi4="},
    {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIj",
     "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIj"},
    {"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh",
     "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"},
    {"SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIGJhY2sgc29vbi",
     "SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIGJhY2sgc29vbi"},
    {"SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIG5vA===",
     "SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWxsIG1lIG5vA==="},
    {"SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWw=SGVsbG8gdGhlcmUh",
     "SGVsbG8gdGhlcmUsIHBsZWFzZSBjYWw=SGVsbG8gdGhlcmUh"},
};

START_TEST(base64_is_read_if_another_encoding_is_declared_or_none)
{
    static const char *const headers[] = {
        "", "Content-Transfer-Encoding: 7bit\n", "Content-Transfer-Encoding: 8bit\n",
        "Content-Transfer-Encoding: quoted-printable\n"
    };

    for (size_t i = 0; i < COUNT(headers); i++) {
        /* in quoted-printable the last '=' is none */
        if (i < 3 || strcmp(undeclared[_i].body, undeclared[_i].text)) {
            same(undeclared[_i].body, "text", text_of(apr_pstrcat(
                crm_check_pool(), HEAD "Content-Type: text/plain; charset=utf-8\n",
                headers[i], "\n", undeclared[_i].body, "\n", NULL)),
                 undeclared[_i].text);
        }
    }
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
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, HEAD "Content-Type: application/pdf; name=a.pdf\n"
        "Content-Transfer-Encoding: base64\n\n", files[_i].body, "\n", NULL);
    const crm_mail_attachment_t *file;
    crm_mail_t mail;

    read_mail(&mail, text);
    file = &APR_ARRAY_IDX(mail.attachments, 0, crm_mail_attachment_t);
    same(files[_i].body, "bytes", apr_pstrmemdup(pool, file->body, file->size),
         files[_i].bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_repair");
    TCase *texts = tcase_create("texts");

    mail_init();
    tcase_add_loop_test(texts, a_header_is_read_where_it_stands, 0,
                        COUNT(repaired));
    tcase_add_test(texts, a_mail_that_needs_no_repair_is_not_copied);
    tcase_add_test(texts, repairs_take_bounded_time);
    tcase_add_loop_test(texts, a_text_begins_where_the_header_has_ended, 0,
                        COUNT(joined));
    tcase_add_loop_test(texts, a_text_that_is_no_base64_is_taken_as_it_is, 0,
                        COUNT(encoded));
    tcase_add_loop_test(texts, base64_is_read_if_another_encoding_is_declared_or_none,
                        0, COUNT(undeclared));
    tcase_add_loop_test(texts, a_file_is_whole, 0, COUNT(files));
    suite_add_tcase(suite, texts);
    return crm_check_main(suite);
}
