/* SPDX-License-Identifier: Apache-2.0 */
/* test_tnef.c: the text and the files in winmail.dat, and RTF */
#include "crm_check.h"

#include <string.h>
#include <time.h>

#include "apr_base64.h"
#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_mail.h"
#include "mail_rtf.h"
#include "mail_tnef.h"

#define ATTACHMENT 2
#define MESSAGE 1

/* ---- winmail.dat --------------------------------------------------------- */

static void put(crm_buf_t *buf, apr_uint32_t value, int size)
{
    for (int i = 0; i < size; i++) {
        crm_buf_putc(buf, i < 4 ? (char)(value >> (8 * i)) : '\0');
    }
}

static void put_attribute(crm_buf_t *buf, int level, apr_uint32_t id,
                          const char *bytes, apr_size_t len)
{
    put(buf, (apr_uint32_t)level, 1);
    put(buf, id, 4);
    put(buf, (apr_uint32_t)len, 4);
    crm_buf_add(buf, bytes, len);
    put(buf, 0, 2);
}

/* Add the property ID of TYPE with LEN BYTES to BUF. */
static void put_property(crm_buf_t *buf, unsigned type, unsigned id,
                         const char *bytes, apr_size_t len)
{
    put(buf, type, 2);
    put(buf, id, 2);
    if (id & 0x8000) {          /* named "a", in UTF-16 */
        put(buf, 7, 16);
        put(buf, 1, 4);
        put(buf, 4, 4);
        put(buf, 'a', 4);
    }
    put(buf, 1, 4);
    put(buf, (apr_uint32_t)len, 4);
    crm_buf_add(buf, bytes, len);
    put(buf, 0, (int)((4 - len % 4) % 4));
}

/* Add the properties of a file with NAME, in UTF-16, to BUF. */
static void put_properties(crm_buf_t *buf, const char *name, apr_size_t len)
{
    crm_buf_t all;

    crm_buf_init(&all, 256, buf->pool);
    put(&all, 7, 4);
    put(&all, 0x0003, 2);       /* a number */
    put(&all, 0x3705, 2);
    put(&all, 1, 4);
    put(&all, 0x1003, 2);       /* numbers */
    put(&all, 0x3710, 2);
    put(&all, 2, 4);
    put(&all, 5, 8);
    put_property(&all, 0x1e, 0x8001, "x", 2);
    put_property(&all, 0x1e, 0x3704, "SHORT~1.PNG", 12);
    put_property(&all, 0x1f, 0x3707, name, len);
    put_property(&all, 0x1e, 0x370e, "Image/PNG", 10);
    put_property(&all, 0x1f, 0x3712, "i\0d\0\0\0", 6);
    put_attribute(buf, ATTACHMENT, 0x00069005, all.data, all.len);
}

/* Write a winmail.dat with three files to BUF. */
static void write_three(crm_buf_t *buf)
{
    put(buf, 0x223e9f78, 4);
    put(buf, 1, 2);
    put_attribute(buf, MESSAGE, 0x00069007, "\xe4\x04\0\0\0\0\0\0", 8);
    put_attribute(buf, MESSAGE, 0x00069003, "\0\0\0\0", 4);
    put_attribute(buf, ATTACHMENT, 0x00069002, "\1\0", 2);
    put_attribute(buf, ATTACHMENT, 0x0006800f, "abc", 3);
    put_attribute(buf, ATTACHMENT, 0x00018010, "Gr\xfc\xdf""e.txt", 10);
    put_attribute(buf, ATTACHMENT, 0x00069002, "\1\0", 2);
    put_attribute(buf, ATTACHMENT, 0x00018010, "SHORT~1.PNG", 12);
    put_attribute(buf, ATTACHMENT, 0x0006800f, "a\0b\0", 4);
    put_properties(buf, "\x0a\x26 \0.\0p\0n\0g\0\0\0", 14);
    put_attribute(buf, ATTACHMENT, 0x00069002, "\1\0", 2);
    put_attribute(buf, ATTACHMENT, 0x0006800f, "", 0);
}

/* ---- tests --------------------------------------------------------------- */

START_TEST(files_have_their_names_and_bytes)
{
    static const struct {
        const char *name, *type, *id, *bytes;
        apr_size_t len;
    } want[] = {
        {"Grüße.txt", NULL, NULL, "abc", 3},
        {"☊ .png", "Image/PNG", "id", "a\0b\0", 4},
        {NULL, NULL, NULL, "", 0},
    };
    apr_pool_t *pool = crm_check_pool();
    const apr_array_header_t *files;
    crm_mail_tnef_t body;
    crm_buf_t buf;

    crm_buf_init(&buf, 256, pool);
    write_three(&buf);
    files = crm_mail_tnef(&body, buf.data, buf.len, pool);
    ck_assert_int_eq(files->nelts, 3);
    ck_assert_ptr_null(body.bytes);
    for (int i = 0; i < 3; i++) {
        const crm_mail_tnef_t *file = &APR_ARRAY_IDX(files, i,
                                                     crm_mail_tnef_t);

        ck_assert_pstr_eq(file->name, want[i].name);
        ck_assert_pstr_eq(file->type, want[i].type);
        ck_assert_pstr_eq(file->content_id, want[i].id);
        ck_assert_uint_eq(file->len, want[i].len);
        ck_assert(!memcmp(file->bytes, want[i].bytes, want[i].len));
    }
}
END_TEST

START_TEST(an_object_has_its_own_bytes_but_a_mail_is_no_file)
{
    static const char *const bytes[] = {"storage", "\x78\x9f\x3e\x22..."};
    apr_pool_t *pool = crm_check_pool();
    const crm_mail_tnef_t *file;
    crm_mail_tnef_t body;
    crm_buf_t buf, all, object;

    crm_buf_init(&buf, 256, pool);
    crm_buf_init(&all, 256, pool);
    crm_buf_init(&object, 256, pool);
    put(&object, 0, 16);
    crm_buf_add(&object, bytes[_i], 7);
    put(&all, 1, 4);
    put_property(&all, 0x0d, 0x3701, object.data, object.len);
    put(&buf, 0x223e9f78, 4);
    put(&buf, 1, 2);
    put_attribute(&buf, ATTACHMENT, 0x00069005, all.data, all.len);
    file = &APR_ARRAY_IDX(crm_mail_tnef(&body, buf.data, buf.len, pool), 0,
                          crm_mail_tnef_t);
    ck_assert_uint_eq(file->len, _i ? 0 : 7);
    ck_assert(_i ? !file->bytes : !memcmp(file->bytes, bytes[0], 7));
}
END_TEST

/* What is broken is read up to there, within its bytes. */
START_TEST(broken_ones_are_read_as_far_as_they_go)
{
    apr_pool_t *pool = crm_check_pool();
    crm_mail_tnef_t body;
    crm_buf_t buf;

    crm_buf_init(&buf, 256, pool);
    write_three(&buf);
    for (apr_size_t len = 0; len < buf.len; len++) {
        char *copy = malloc(len ? len : 1);

        memcpy(copy, buf.data, len);
        ck_assert_int_le(crm_mail_tnef(&body, copy, len, pool)->nelts, 3);
        free(copy);
    }
    for (apr_size_t i = 0; i < buf.len; i++) {
        char *copy = malloc(buf.len);

        memcpy(copy, buf.data, buf.len);
        copy[i] = (char)0xff;
        crm_mail_tnef(&body, copy, buf.len, pool);
        free(copy);
    }
    ck_assert_int_eq(crm_mail_tnef(&body, "winmail", 7, pool)->nelts, 0);
}
END_TEST

/* Return a mail with DAT, winmail.dat, behind TEXT, read with attachments of at most 3
 * bytes. */
static crm_mail_t *read_mail(const char *text, const crm_buf_t *dat)
{
    static const crm_mail_options_t options = {.attachment_bytes = 3};
    apr_pool_t *pool = crm_check_pool();
    crm_mail_t *mail = apr_palloc(pool, sizeof(*mail));
    char *encoded = apr_palloc(pool, (apr_size_t)apr_base64_encode_len(
                                   (int)dat->len));
    const char *bytes;

    apr_base64_encode_binary(encoded, (unsigned char *)dat->data,
                             (int)dat->len);
    bytes = apr_pstrcat(
        pool, "From: ada@example.org\nContent-Type: multipart/mixed;"
        " boundary=b\n\n--b\n\n", text, "\n--b\nContent-Type:"
        " application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding:"
        " base64\n\n", encoded, "\n--b--\n", NULL);
    crm_mail_read(mail, bytes, strlen(bytes), &options, pool);
    return mail;
}

START_TEST(a_mail_has_the_files_in_winmail_dat)
{
    const crm_mail_attachment_t *one;
    const crm_mail_t *mail;
    crm_buf_t dat;

    crm_buf_init(&dat, 256, crm_check_pool());
    write_three(&dat);
    mail = read_mail("words", &dat);
    ck_assert_str_eq(mail->text, "words");
    ck_assert_int_eq(mail->attachments->nelts, 4);
    one = &APR_ARRAY_IDX(mail->attachments, 1, crm_mail_attachment_t);
    ck_assert_str_eq(one->type, "application/octet-stream");
    ck_assert_mem_eq(one->body, "abc", 3);
    one = &APR_ARRAY_IDX(mail->attachments, 2, crm_mail_attachment_t);
    ck_assert_str_eq(one->name, "☊ .png");
    ck_assert_str_eq(one->type, "image/png");
    ck_assert_str_eq(one->content_id, "id");
    ck_assert_uint_eq(one->size, 4);
    ck_assert_ptr_null(one->body);      /* too large */
}
END_TEST

START_TEST(a_mail_without_a_text_has_that_of_winmail_dat)
{
    apr_pool_t *pool = crm_check_pool();
    crm_buf_t dat, all;

    crm_buf_init(&dat, 256, pool);
    crm_buf_init(&all, 256, pool);
    put(&dat, 0x223e9f78, 4);
    put(&dat, 1, 2);
    put_attribute(&dat, MESSAGE, 0x0002800c, "plain\r\nwords", 13);
    ck_assert_str_eq(read_mail(" ", &dat)->text, "plain\nwords");
    ck_assert_str_eq(read_mail("others", &dat)->text, "others");
    ck_assert_str_eq(read_mail(" \n--b\nContent-Type: text/calendar\n\n"
                               "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Demo\n"
                               "END:VEVENT\nEND:VCALENDAR", &dat)->text, "Demo");
    put(&all, 1, 4);
    put_property(&all, 0x0102, 0x1013, "<meta charset=iso-8859-1><p>gr\xfc\xdf"
                 "e", 33);
    put_attribute(&dat, MESSAGE, 0x00069003, all.data, all.len);
    ck_assert_str_eq(read_mail(" ", &dat)->text, "grüße");
    ck_assert_int_eq(read_mail(" ", &dat)->attachments->nelts, 1);
}
END_TEST

/* ---- RTF ------------------------------------------------------------------ */

/* The examples of MS-OXRTFCP, 4.1 and 4.2. */
static const char hello[] =
    "\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0\x72\x63\x70\x67\x31"
    "\x32\x35\x42\x32\x0a\xf3\x20\x68\x65\x6c\x09\0\x20\x62\x77\x05\xb0\x6c\x64"
    "\x7d\x0a\x80\x0f\xa0";
static const char again[] =
    "\x1a\0\0\0\x1c\0\0\0LZFu\xe2\xd4\x4b\x51\x41\0\x04\x20\x57\x58\x59\x5a"
    "\x0d\x6e\x7d\x01\x0e\xb0";
static const char stored[] = "\x18\0\0\0\x0c\0\0\0MELA\0\0\0\0{\\rtf1 words}";

static const struct {
    const char *bytes;
    apr_size_t len;
    const char *rtf;
} packed[] = {
    {hello, sizeof(hello) - 1, "{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"},
    {again, sizeof(again) - 1, "{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"},
    {stored, sizeof(stored) - 1, "{\\rtf1 words}"},
    {"\1\0\0\0\1\0\0\0what\0\0\0\0x", 17, ""}, {hello, 15, ""},
};

START_TEST(rtf_is_unpacked)
{
    apr_size_t len;
    const char *rtf = crm_mail_rtf_unpack(&len, packed[_i].bytes,
                                          packed[_i].len, crm_check_pool());

    ck_assert_str_eq(rtf, packed[_i].rtf);
    ck_assert_uint_eq(len, strlen(rtf));
}
END_TEST

/* Return RTF of COUNT bytes "x", each of which stands for itself, then what ends it,
 * and "no". */
static crm_buf_t pack(int count)
{
    int at = (207 + count) % 4096;      /* the window's place then */
    crm_buf_t buf;

    crm_buf_init(&buf, 1024, crm_check_pool());
    crm_buf_add(&buf, "\0\0\0\0\0\0\0\0LZFu\0\0\0\0", 16);
    for (int i = 0; i < count; i += 8) {
        crm_buf_add(&buf, "\0xxxxxxxx", 9);
    }
    crm_buf_putc(&buf, 1);
    crm_buf_putc(&buf, (char)(at >> 4));
    crm_buf_putc(&buf, (char)(at << 4));
    crm_buf_puts(&buf, "no");
    return buf;
}

START_TEST(rtf_has_an_end_wherever_the_window_is)
{
    apr_size_t len;

    for (int count = 0; count < 9000; count += 1000) {
        crm_buf_t buf = pack(count);

        crm_mail_rtf_unpack(&len, buf.data, buf.len, crm_check_pool());
        ck_assert_uint_eq(len, (apr_size_t)count);
    }
}
END_TEST

START_TEST(no_more_of_rtf_is_unpacked_than_is_read)
{
    crm_buf_t buf = pack(2 * CRM_MAIL_RTF_BYTES);
    apr_size_t len;

    crm_mail_rtf_unpack(&len, buf.data, buf.len, crm_check_pool());
    ck_assert_uint_eq(len, CRM_MAIL_RTF_BYTES);
    memcpy(buf.data + 8, "MELA", 4);
    crm_mail_rtf_unpack(&len, buf.data, buf.len, crm_check_pool());
    ck_assert_uint_eq(len, CRM_MAIL_RTF_BYTES);
    memset(buf.data, 'x', buf.len);
    memcpy(buf.data, "{\\rtf1 ", 7);
    ck_assert_uint_eq(strlen(crm_mail_rtf(buf.data, buf.len, crm_check_pool())),
                      CRM_MAIL_RTF_BYTES - 7);
}
END_TEST

START_TEST(broken_rtf_is_unpacked_as_far_as_it_goes)
{
    apr_size_t len;

    for (apr_size_t i = 0; i < sizeof(hello) - 1; i++) {
        char *copy = malloc(i ? i : 1);

        memcpy(copy, hello, i);
        crm_mail_rtf_unpack(&len, copy, i, crm_check_pool());
        ck_assert_uint_le(len, 43);
        free(copy);
    }
}
END_TEST

static const struct {
    const char *rtf, *text;
} shows[] = {
    {"words", ""}, {"{\\rtf1}", ""}, {"{\\rtf1\\ansi words}", "words"},
    {"{\\rtf1 a\\par b\\line\\tab c\r\nd}", "a\nb\n\tcd"},
    {"{\\rtf1 {\\b bold}\\i0  and \\\\ \\{\\}}", "bold and \\ {}"},
    {"{\\rtf1\\ansi Gr\\'fc\\'dfe \\'80}", "Grüße €"},
    {"{\\rtf1\\ansicpg1251 \\'cf\\'f0\\'e8\\'e2\\'e5\\'f2}", "Привет"},
    {"{\\rtf1{\\fonttbl{\\f0\\fcharset0 Arial;}{\\f1\\fcharset204 Arial;}"
     "{\\f2\\fcharset128 Gothic;}}\\f1 \\'cf\\'f0{\\f0 \\'fc}\\'e8 \\f2\\'83A}",
     "Прüи ア"},
    {"{\\rtf1\\deff1{\\fonttbl{\\f1\\fcharset161 X;}}\\'c1{\\f0 \\'c1}\\plain \\'c1}",
     "ΑÁΑ"},
    {"{\\rtf1 \\u8364?\\u-10179?\\u-8704?x}", "€😀x"},
    {"{\\rtf1\\uc2 \\u1055\\'cf\\'cfx\\uc0\\u1055 y}", "ПxПy"},
    {"{\\rtf1 \\u-8704?x}", "\xef\xbf\xbdx"},
    {"{\\rtf1{\\colortbl;\\red0;}{\\stylesheet{\\s1 Normal;}}{\\info{\\title T}}"
     "{\\*\\generator x;}{\\pict 0102}{\\header h}words}", "words"},
    {"{\\rtf1 {\\field{\\*\\fldinst{HYPERLINK \"https://x.example\"}}{\\fldrslt"
     " here}}}", "here"},
    {"{\\rtf1 a{\\v hidden}b\\v c\\v0 d}", "abd"},
    {"{\\rtf1{\\*\\x {\\v0 no}}a}", "a"},
    {"{\\rtf1 a\\~b\\_c\\-d\\endash\\ldblquote e\\rdblquote}",
     "a\xc2\xa0" "b-cd–“e”"},
    {"{\\rtf1 a\\bin3 }}}b}", "ab"},
    {"{\\rtf1\\trowd a\\cell b\\cell\\row c}", "a b \nc"},
    {"{\\rtf1 a\\bin99999999999 b}", "a"}, {"{\\rtf1 a\\'f", "af"},
    {"{\\rtf1 a\\", "a"}, {"{\\rtf1 a}}}}b", "ab"},
    {"{\\rtf1\\f99999999\\u99999999 \\uc99 \\ansicpg-5 a}", NULL},
    {"{\\rtf1\\fromhtml1{\\*\\htmltag64 <p>}\\htmlrtf {\\htmlrtf0 words\\htmlrtf\\par}"
     "\\htmlrtf0}", "words\n"},
    {"{\\rtf1\\ansicpg1251 \\'cf\\~\\'f0\\~\\'e8}", "П\xc2\xa0р\xc2\xa0и"},
    {"{\\rtf1\\f0\\cpg1251 \\'e9}", "é"},
    {"{\\rtf1{\\fonttbl{\\f1\\fcharset204 X;}}\\f1 \\'cf\\plain \\'e9}", "Пé"},
    {"{\\rtf1\\deff1{\\fonttbl{\\f1\\fcharset204 X;}}\\f0 \\'e9\\f \\'cf}", "éП"},
    {"{\\rtf1 a\\v b\\plain c}", "ac"}, {"{\\rtf1 {\\u1055}x}", "Пx"},
    {"{\\rtf1\\uc99 \\u1055 ?ab}", "Пab"}, {"{\\rtf1\\uc-1 \\u1055 ?ab}", "Пab"},
    {"{\\rtf1 \\u1055\\u1056?x}", "ПРx"},
    {"{\\rtf1 \\u-10179?\\u-8704?\\u-8704?x}", "😀\xef\xbf\xbdx"},
    {"{\\rtf1 a\\u1?b\\u9?c\\u0?d}", "ab\tcd"},
    {"{\\rtf1{\\fonttbl{\\f-1\\fcharset204 X;}{\\f256\\fcharset204 X;}}\\f-1 \\'e9"
     "\\f256 \\'e9}", "éé"},
    {"{\\rtf1 a\\bin-5 b}", "ab"},
    {"{\\rtf1 a\\'fgb}", "afgb"},
    {"{\\rtf1 \\abcdefghijklmnopqrstuvwxyzabcdefghij x}", "x"},
};

START_TEST(rtf_is_read_as_it_shows)
{
    const char *text = crm_mail_rtf(shows[_i].rtf, strlen(shows[_i].rtf),
                                    crm_check_pool());

    ck_assert_msg(!shows[_i].text || !strcmp(text, shows[_i].text),
                  "%s: \"%s\", not \"%s\"", shows[_i].rtf, text,
                  shows[_i].text);
}
END_TEST

/* Of the list of destinations, those whose text is no text of the mail. */
static const char *const unseen[] = {
    "colortbl", "stylesheet", "info", "pict", "fldinst", "header", "headerl",
    "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "objdata",
    "filetbl", "listtable", "listoverridetable", "revtbl", "rsidtbl",
    "generator", "themedata", "xmlnstbl", "nonshppict"
};

START_TEST(rtf_of_other_things_is_not_shown)
{
    const char *rtf = apr_psprintf(crm_check_pool(), "{\\rtf1 a{\\%s no{\\b no}}"
                                   "b}", unseen[_i]);

    ck_assert_str_eq(crm_mail_rtf(rtf, strlen(rtf), crm_check_pool()), "ab");
}
END_TEST

/* Words that are shown, each as a text. */
static const struct {
    const char *word, *text;
} words[] = {
    {"par", "\n"}, {"line", "\n"}, {"row", "\n"}, {"sect", "\n"},
    {"page", "\n"}, {"nestrow", "\n"}, {"tab", "\t"}, {"cell", " "},
    {"nestcell", " "}, {"emspace", " "}, {"enspace", " "}, {"emdash", "—"},
    {"endash", "–"}, {"lquote", "‘"}, {"rquote", "’"}, {"ldblquote", "“"},
    {"rdblquote", "”"}, {"bullet", "•"},
};

START_TEST(some_words_of_rtf_are_shown)
{
    apr_pool_t *pool = crm_check_pool();
    const char *rtf = apr_psprintf(pool, "{\\rtf1 a\\%s b}", words[_i].word);

    ck_assert_str_eq(crm_mail_rtf(rtf, strlen(rtf), pool),
                     apr_pstrcat(pool, "a", words[_i].text, "b", NULL));
}
END_TEST

/* The character sets of fonts (Windows: GDI). */
static const struct {
    int set;
    const char *bytes, *text;
} sets[] = {
    {0, "\\'e9", "é"}, {77, "\\'8e", "é"}, {128, "\\'82\\'a0", "あ"},
    {129, "\\'b0\\'a1", "가"}, {130, "\\'88\\'61", "가"},
    {134, "\\'c4\\'e3", "你"}, {136, "\\'a7\\'41", "你"}, {161, "\\'c1", "Α"},
    {162, "\\'fd", "ı"}, {163, "\\'d0", "Đ"}, {177, "\\'e0", "א"},
    {178, "\\'c7", "ا"}, {186, "\\'e0", "ą"}, {204, "\\'cf", "П"},
    {222, "\\'a1", "ก"}, {238, "\\'b9", "ą"},
};

START_TEST(rtf_has_the_character_sets_of_its_fonts)
{
    const char *rtf = apr_psprintf(crm_check_pool(), "{\\rtf1{\\fonttbl{\\f1"
                                   "\\fcharset%d X;}}\\f1 %s}", sets[_i].set,
                                   sets[_i].bytes);

    ck_assert_str_eq(crm_mail_rtf(rtf, strlen(rtf), crm_check_pool()),
                     sets[_i].text);
}
END_TEST

/* Groups within groups, and texts of Unicode, cost no more than their bytes. */
START_TEST(rtf_of_any_depth_is_read)
{
    apr_pool_t *pool = crm_check_pool();
    crm_buf_t buf;

    crm_buf_init(&buf, 1024, pool);
    crm_buf_puts(&buf, "{\\rtf1 ");
    for (int i = 0; i < 100000; i++) {
        crm_buf_puts(&buf, "{");
    }
    crm_buf_puts(&buf, "\\v ");
    for (int i = 0; i < 100000; i++) {
        crm_buf_puts(&buf, i < 1000 ? "}no" : "}");
    }
    crm_buf_puts(&buf, "words}");
    ck_assert_str_eq(crm_mail_rtf(buf.data, buf.len, pool), "words");
}
END_TEST

/* Return how long it takes to read texts of one byte, behind BEGIN. */
static double read_bytes(const char *begin)
{
    apr_pool_t *pool = crm_check_pool();
    clock_t before;
    crm_buf_t buf;

    crm_buf_init(&buf, CRM_MAIL_RTF_BYTES, pool);
    crm_buf_puts(&buf, begin);
    while (buf.len < CRM_MAIL_RTF_BYTES) {
        crm_buf_puts(&buf, "\xe4\\~");
    }
    before = clock();
    crm_mail_rtf(buf.data, buf.len, pool);
    return (double)(clock() - before) / CLOCKS_PER_SEC;
}

/* What charset they are in is guessed a few times, not for each text. */
START_TEST(rtf_of_no_code_page_costs_little_more)
{
    static const char *const begins[] = {
        "{\\rtf1\\ansicpg9999 ", "{\\rtf1\\ansicpg949 "
    };
    double known = read_bytes("{\\rtf1\\ansicpg1252 ");
    double other = read_bytes(begins[_i]);

    ck_assert_msg(other < 4 * known, "%s: %.2f s, not %.2f s", begins[_i], other,
                  known);
}
END_TEST

START_TEST(a_mail_without_a_text_has_that_of_rtf)
{
    static const crm_mail_options_t options;
    static const char text[] = "From: a@example.org\nContent-Type:"
                               " application/rtf\n\n{\\rtf1 words}\n";
    static const char file[] = "From: a@example.org\nContent-Type:"
                               " application/rtf; name=a.rtf\n\n{\\rtf1 words}\n";
    apr_pool_t *pool = crm_check_pool();
    crm_buf_t dat, all;
    crm_mail_t mail;

    crm_buf_init(&dat, 256, pool);
    crm_buf_init(&all, 256, pool);
    put(&dat, 0x223e9f78, 4);
    put(&dat, 1, 2);
    put(&all, 1, 4);
    put_property(&all, 0x0102, 0x1009, hello, sizeof(hello) - 1);
    put_attribute(&dat, MESSAGE, 0x00069003, all.data, all.len);
    ck_assert_str_eq(read_mail(" ", &dat)->text, "hello world");
    ck_assert_str_eq(read_mail("others", &dat)->text, "others");
    crm_mail_read(&mail, text, sizeof(text) - 1, &options, pool);
    ck_assert_str_eq(mail.text, "words");
    crm_mail_read(&mail, file, sizeof(file) - 1, &options, pool);
    ck_assert_str_eq(mail.text, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tnef");
    TCase *files = tcase_create("files");

    tcase_add_test(files, files_have_their_names_and_bytes);
    tcase_add_loop_test(files,
                        an_object_has_its_own_bytes_but_a_mail_is_no_file, 0,
                        2);
    tcase_add_test(files, broken_ones_are_read_as_far_as_they_go);
    tcase_add_test(files, a_mail_has_the_files_in_winmail_dat);
    tcase_add_test(files, a_mail_without_a_text_has_that_of_winmail_dat);
    tcase_add_loop_test(files, rtf_is_unpacked, 0, COUNT(packed));
    tcase_add_test(files, rtf_has_an_end_wherever_the_window_is);
    tcase_add_test(files, no_more_of_rtf_is_unpacked_than_is_read);
    tcase_add_test(files, broken_rtf_is_unpacked_as_far_as_it_goes);
    tcase_add_loop_test(files, rtf_is_read_as_it_shows, 0, COUNT(shows));
    tcase_add_loop_test(files, rtf_of_other_things_is_not_shown, 0,
                        COUNT(unseen));
    tcase_add_loop_test(files, some_words_of_rtf_are_shown, 0, COUNT(words));
    tcase_add_loop_test(files, rtf_has_the_character_sets_of_its_fonts, 0,
                        COUNT(sets));
    tcase_add_test(files, rtf_of_any_depth_is_read);
    tcase_add_loop_test(files, rtf_of_no_code_page_costs_little_more, 0, 2);
    tcase_add_test(files, a_mail_without_a_text_has_that_of_rtf);
    suite_add_tcase(suite, files);
    return crm_check_main(suite);
}
