/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c: UTF-8, addresses, comparing without case (6.1, 6.3, 7.8, 11.5) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_text.h"

/* Write the code point C as UTF-8 to OUT, valid or not; return its bytes. */
static apr_size_t encode(char *out, unsigned int c)
{
    apr_size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (apr_size_t i = len - 1; i > 0; i--, c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3f));
    }
    out[0] = (char)(lead[len] | c);
    return len;
}

/* Ask about the LEN bytes at TEXT with nothing readable behind them. */
static int valid(const char *text, apr_size_t len)
{
    char *copy = malloc(len ? len : 1);
    int is;

    memcpy(copy, text, len);
    is = crm_text_valid_utf8(copy, len);
    free(copy);
    return is;
}

START_TEST(rfc_3629_every_code_point)
{
    char text[4];

    for (unsigned int c = 0; c < 0x1fffff; c++) {
        apr_size_t len = encode(text, c);
        int good = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        apr_size_t bytes = 9;
        int next = crm_text_next(&bytes, text, len);

        CRM_CHECK(!crm_text_valid_utf8(text, len) == !good
                  && next == (good ? (int)c : -1)
                  && bytes == (good ? len : 0), "U+%04X: %d", c, next);
    }
}
END_TEST

/* Of all pairs of bytes only ASCII's and 30 * 64 of two are valid. */
START_TEST(rfc_3629_every_pair_of_bytes)
{
    for (int i = 0; i < 65536; i++) {
        unsigned char pair[2] = {(unsigned char)(i >> 8), (unsigned char)i};
        int good = (pair[0] < 0x80 && pair[1] < 0x80)
                   || (pair[0] >= 0xc2 && pair[0] <= 0xdf
                       && (pair[1] & 0xc0) == 0x80);

        CRM_CHECK(!crm_text_valid_utf8((char *)pair, 2) == !good,
                  "%02x %02x", pair[0], pair[1]);
    }
}
END_TEST

START_TEST(rfc_3629_cut_short)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    static const int good[] = {1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1};

    for (apr_size_t len = 0; len < sizeof(text); len++) {
        ck_assert_msg(!valid(text, len) == !good[len], "%d bytes", (int)len);
    }
    ck_assert(valid("a\0b", 3));        /* U+0000 is a code point */
}
END_TEST

/* Bytes are looked at in blocks. */
START_TEST(rfc_3629_a_fault_is_found_anywhere)
{
    for (apr_size_t len = 1; len < 50; len++) {
        for (apr_size_t at = 0; at < len; at++) {
            char text[51];

            memset(text, 'a', len);
            text[at] = '\x80';
            CRM_CHECK(crm_text_valid_bytes(text, len) == at && !valid(text, len),
                      "%d of %d", (int)at, (int)len);
            memcpy(text + at, "\xc3\xa4", 2);
            CRM_CHECK(valid(text, at + 1 < len ? len : at + 2)
                      && !valid(text, at + 1), "%d: a letter", (int)at);
        }
    }
}
END_TEST

START_TEST(contract_6_3_characters_not_bytes)
{
    ck_assert_uint_eq(crm_text_length("", 0), 0);
    ck_assert_uint_eq(crm_text_length("abc", 3), 3);
    ck_assert_uint_eq(crm_text_length("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
                                      9), 3);
    ck_assert_uint_eq(crm_text_length("a\0b", 3), 3);
    ck_assert_uint_eq(crm_text_length("a\xcc\x88", 3), 2);
}
END_TEST

static const struct {
    const char *a, *b;
    int equal;
} folded[] = {
    {"", "", 1}, {"a", "", 0}, {"", "a", 0}, {"a", "a", 1}, {"a", "A", 1},
    {"Ada@Example.COM", "ada@example.com", 1}, {"a", "b", 0},
    {"a", "ab", 0}, {"ab", "a", 0}, {"[", "{", 0}, {"@", "`", 0},
    {"\xc3\x84", "\xc3\xa4", 1},                    /* A, a with diaeresis */
    {"\xc3\x9f", "\xe1\xba\x9e", 1},                /* sharp s, its capital */
    {"\xc3\x9f", "ss", 0},
    {"\xce\xa3", "\xcf\x83", 1}, {"\xce\xa3", "\xcf\x82", 1}, /* sigma */
    {"\xcf\x83", "\xcf\x82", 1},
    {"\xd0\x96", "\xd0\xb6", 1},                    /* Cyrillic zhe */
    {"\xd0\xb6", "\xd0\xb7", 0},
    {"\xd5\xa1", "\xd4\xb1", 1},                    /* Armenian */
    {"\xe2\x84\xaa", "k", 1},                       /* Kelvin */
    {"\xf0\x90\x90\x80", "\xf0\x90\x90\xa8", 1},    /* Deseret, 4 bytes */
    {"\xc3\xa4", "a\xcc\x88", 1},                   /* NFC and NFD */
    {"\xc3\x84", "a\xcc\x88", 1},
    {"J\xcc\x8c", "\xc7\xb0", 1},                   /* J has no such capital */
    {"\xc3\xa4", "a", 0},
    {"x\xc3\x96y", "X\xc3\xb6Y", 1},
    {"\xc3\x97", "\xc3\xb7", 0},                    /* times is no letter */
    {"\xc4\xb0", "i\xcc\x87", 1},                   /* I with a dot */
    {"\xc4\xb0", "i", 0}, {"\xc4\xb1", "I", 0},
    {"\xc8\xba\xc8\xba", "\xe2\xb1\xa5\xe2\xb1\xa5", 1},  /* is longer */
    {"\xc8\xba", "\xe2\xb1\xa5", 1},            /* by one byte */
    {"AZ@[", "az@[", 1}, {"AZ\xc3\x84", "az\xc3\xa4", 1},
    {"\xce\x91\xce\xa3", "\xce\xb1\xcf\x83", 1},    /* a final sigma */
    {"\xe1\x82\xa0", "\xe2\xb4\x80", 1},           /* Georgian */
};

/* Return a pool whose memory is not zero. */
static apr_pool_t *used_pool(void)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, crm_check_pool());
    memset(apr_palloc(pool, 4096), 'x', 4096);
    apr_pool_clear(pool);
    return pool;
}

START_TEST(contract_7_8_without_case_is_unicodes)
{
    const char *a = crm_text_fold(folded[_i].a, used_pool());
    const char *b = crm_text_fold(folded[_i].b, used_pool());

    ck_assert_msg((strcmp(a, b) == 0) == folded[_i].equal,
                  "%s and %s: %s and %s", folded[_i].a, folded[_i].b, a, b);
}
END_TEST

static const struct {
    const char *text;
    apr_size_t max;
    const char *line;
} lines[] = {
    {"", 0, ""}, {"a b", 0, "a b"}, {" \r\n a \n", 0, "a"},
    {"a\r\nb\tc\x01" "d\x7f" "e", 0, "a  b c d e"},
    {"gr\xc3\xbc\xc3\x9f", 0, "gr\xc3\xbc\xc3\x9f"},
    {"gr\xfc\xdf\n!", 0, "gr?? !"},               /* Latin-1 */
    {"\xc3\xa4 \xe4", 0, "?? ?"},
    {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"ab cd", 3, "ab"},
    {"ab\xc3\xa4", 3, "ab"}, {"ab\xc3\xa4", 4, "ab\xc3\xa4"},
    {"\x80\x80\x80", 2, ""},
};

START_TEST(one_line_for_logs_and_headers)
{
    const char *line = crm_text_one_line(lines[_i].text,
                                         strlen(lines[_i].text),
                                         lines[_i].max, crm_check_pool());

    ck_assert_str_eq(line, lines[_i].line);
}
END_TEST

START_TEST(lists_have_commas_between_their_names)
{
    apr_pool_t *pool = crm_check_pool();
    const char *list = crm_text_listed(NULL, "a", pool);

    ck_assert_str_eq(list, "a");
    ck_assert_str_eq(crm_text_listed("", "a", pool), "a");
    ck_assert_str_eq(crm_text_listed(crm_text_listed(list, "b", pool), "c", pool),
                     "a, b, c");
}
END_TEST

/* U+0000 to U+2FFF, each whole, and without its last byte. */
START_TEST(what_steers_a_terminal_or_the_direction)
{
    for (unsigned c = 1; c < 0x3000; c++) {
        int is_one = (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e
                     || c == 0x200f || (c >= 0x202a && c <= 0x202e)
                     || (c >= 0x2066 && c <= 0x2069);
        char text[] = {0, 0, 0, '\x80', 0};
        unsigned code = 0, len = c < 0x80 ? 1 : c < 0x800 ? 2 : 3;

        text[0] = (char)(c < 0x80 ? c : c < 0x800 ? 0xc0 | c >> 6
                         : 0xe0 | c >> 12);
        text[len - 1] = (char)(len > 1 ? 0x80 | (c & 0x3f) : c);
        if (len == 3) {
            text[1] = (char)(0x80 | (c >> 6 & 0x3f));
        }
        ck_assert_msg(crm_text_steers(&code, text) == (is_one ? len : 0)
                      && (!is_one || code == c), "U+%04x", c);
        text[len - 1] = '\0';
        ck_assert_msg(!crm_text_steers(&code, text), "U+%04x cut", c);
    }
}
END_TEST

START_TEST(ascii_white_space_is_trimmed)
{
    static const struct {
        const char *text, *trimmed;
    } texts[] = {
        {"", ""}, {" ", ""}, {" \t\r\n\v\f", ""}, {"a", "a"}, {" a", "a"},
        {"a ", "a"}, {"\t a b \n", "a b"},
        {"\302\240a\302\240", "\302\240a\302\240"},
        {" \xe3\x80\x80 ", "\xe3\x80\x80"},
    };

    for (int i = 0; i < COUNT(texts); i++) {
        const char *text = texts[i].text;
        apr_size_t len = strlen(text);

        crm_text_trim(&text, &len);
        ck_assert_str_eq(apr_pstrmemdup(crm_check_pool(), text, len),
                         texts[i].trimmed);
    }
}
END_TEST

/* What a field with several values has between them. */
START_TEST(white_space_of_unicode_is_trimmed)
{
    static const struct {
        const char *text, *trimmed;
    } texts[] = {
        {"", ""}, {" ", ""}, {"a", "a"}, {" a ", "a"}, {" \t\r\n\xc2\x85", ""},
        {"\302\240a b\302\240", "a b"}, {"\302\240", ""},
        {"\xe3\x80\x80\xe2\x80\x83x\xe2\x80\xa8 ", "x"},
        {" \xc3\xa4 \xc3\xb6 ", "\xc3\xa4 \xc3\xb6"},
        {"\xe2\x80\x8b", "\xe2\x80\x8b"},     /* zero width: no white space */
        {" \xff ", "\xff"}, {"\x80", "\x80"},
    };

    for (int i = 0; i < COUNT(texts); i++) {
        const char *text = texts[i].text;
        apr_size_t len = strlen(text);

        crm_text_trim_blanks(&text, &len);
        ck_assert_str_eq(apr_pstrmemdup(crm_check_pool(), text, len),
                         texts[i].trimmed);
    }
}
END_TEST

START_TEST(byte_order_marks)
{
    static const struct {
        const char *text;
        apr_size_t len, mark;
        int wide;
    } texts[] = {
        {"\xef\xbb\xbf", 3, 3, 0}, {"\xef\xbb\xbf" "a", 4, 3, 0},
        {"\xef\xbb\xbf", 2, 0, 0}, {"\xef\xbb\xbe", 3, 0, 0}, {"", 0, 0, 0},
        {"\xff\xfe", 2, 0, 1}, {"\xfe\xff", 2, 0, 1}, {"\xff\xfe" "a", 3, 0, 1},
        {"\xff\xfe", 1, 0, 0}, {"\xff\xff", 2, 0, 0}, {"\xfe\xfe", 2, 0, 0},
    };

    for (int i = 0; i < COUNT(texts); i++) {
        CRM_CHECK(crm_text_mark(texts[i].text, texts[i].len) == texts[i].mark
                  && !crm_text_has_wide_mark(texts[i].text, texts[i].len)
                     == !texts[i].wide, "text %d", i);
    }
}
END_TEST

/* Return N times C, then TAIL. */
static const char *repeat(char c, int n, const char *tail)
{
    char *text = apr_palloc(crm_check_pool(), (apr_size_t)n + 1);

    memset(text, c, (apr_size_t)n);
    text[n] = '\0';
    return apr_pstrcat(crm_check_pool(), text, tail, NULL);
}

/* Ask RULE about TEXT with nothing readable behind it. */
static const char *ask(const char *(*rule)(const char *, apr_size_t),
                       const char *text)
{
    apr_size_t len = strlen(text);
    char *copy = malloc(len ? len : 1);
    const char *wrong;

    memcpy(copy, text, len);
    wrong = rule(copy, len);
    free(copy);
    return wrong;
}

static const char *const emails[] = {
    "a@b", "ada@example.com", "ada.lovelace+tag@example.co.uk",
    "o'brien@example.com", "\"quoted\"@example.com", "a@[192.0.2.1]",
    "\xc3\xa4@\xc3\xb6.example", "A@B", "!#$%&'*+-/=?^_`{|}~@example.com",
    "e@\xe2\x82\xac", "x@-", ".@.",
};

static const char *const no_emails[] = {
    "", "@", "a@", "@b", "a", "a@@b", "a@b@c", "@a@b", "a@b@", "a b@c",
    " a@b", "a@b ", "a@ b", "a@b\n", "\ta@b", "a\x01@b", "a@b\x7f",
    "a@b\r\nBcc: x@y", "a@b\xc2\x85", "a@b\xc2\x80", "a@b\xc2\x9f",
    "a\xc2\xa0@b", "a\xe2\x80\x83@b", "a@b\xe2\x80\xa8", "a\xe3\x80\x80@b",
    "a@\xe1\x9a\x80.b", "a@b\xe2\x81\x9f", "a\xe2\x80\xaf@b",
};

START_TEST(contract_6_3_what_is_an_email)
{
    const char *wrong = ask(crm_text_email, emails[_i]);

    ck_assert_msg(!wrong, "%s: %s", emails[_i], wrong);
}
END_TEST

START_TEST(contract_6_3_what_is_no_email)
{
    ck_assert_msg(ask(crm_text_email, no_emails[_i]) != NULL,
                  "\"%s\" is accepted", no_emails[_i]);
}
END_TEST

START_TEST(contract_6_3_an_email_has_254_at_most)
{
    char letters[1000];

    ck_assert_ptr_null(ask(crm_text_email, repeat('a', 252, "@b")));
    ck_assert_ptr_nonnull(ask(crm_text_email, repeat('a', 253, "@b")));
    ck_assert_str_eq(ask(crm_text_email, repeat('a', 2000, "@b")),
                     "must have at most 254 characters");
    memset(letters, 0, sizeof(letters));
    for (int i = 0; i < 252; i++) {
        strcat(letters, "\xc3\xa4");
    }
    ck_assert_ptr_null(ask(crm_text_email, strcat(letters, "@b")));
    ck_assert_ptr_nonnull(ask(crm_text_email, strcat(letters, "b")));
    ck_assert_ptr_nonnull(crm_text_email("a\0@b", 4));
    ck_assert_ptr_nonnull(crm_text_email("a@b\0", 4));
}
END_TEST

START_TEST(what_is_a_phone_number)
{
    static const char *const good[] = {
        "1", "+14155550123", "(415) 555-0123", "415.555.0123 ext. 4",
        "tel: 0800 FLOWERS 1", "+49\xc2\xa0(30)\xc2\xa0#1", "#31#",
        "\xd9\xa1\xd9\xa2\xd9\xa3",     /* Arabic digits alone */
    };
    static const char *const bad_phones[] = {
        "", " ", "+", "none", "n/a", "1\n", "\t1", "1\x7f", "1\001/2",
    };

    for (int i = 0; i < COUNT(good); i++) {
        ck_assert_msg(!ask(crm_text_phone, good[i]), "%s", good[i]);
    }
    for (int i = 0; i < COUNT(bad_phones); i++) {
        ck_assert_msg(ask(crm_text_phone, bad_phones[i]) != NULL,
                      "\"%s\" is accepted", bad_phones[i]);
    }
    ck_assert_ptr_null(ask(crm_text_phone, repeat('1', 64, "")));
    ck_assert_ptr_nonnull(ask(crm_text_phone, repeat('1', 65, "")));
    ck_assert_ptr_null(ask(crm_text_phone, repeat('1', 63, "\xd9\xa1")));
    ck_assert_ptr_nonnull(ask(crm_text_phone, repeat('1', 64, "\xd9\xa1")));
    ck_assert_ptr_nonnull(crm_text_phone("1\0" "2", 3));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *utf8 = tcase_create("utf8"), *fold = tcase_create("fold");
    TCase *address = tcase_create("address");

    tcase_add_test(utf8, rfc_3629_every_code_point);
    tcase_add_test(utf8, rfc_3629_every_pair_of_bytes);
    tcase_add_test(utf8, rfc_3629_cut_short);
    tcase_add_test(utf8, rfc_3629_a_fault_is_found_anywhere);
    tcase_add_test(utf8, contract_6_3_characters_not_bytes);
    tcase_add_loop_test(fold, contract_7_8_without_case_is_unicodes, 0,
                        COUNT(folded));
    tcase_add_loop_test(fold, one_line_for_logs_and_headers, 0, COUNT(lines));
    tcase_add_test(fold, lists_have_commas_between_their_names);
    tcase_add_test(fold, ascii_white_space_is_trimmed);
    tcase_add_test(fold, white_space_of_unicode_is_trimmed);
    tcase_add_test(fold, byte_order_marks);
    tcase_add_test(fold, what_steers_a_terminal_or_the_direction);
    tcase_add_loop_test(address, contract_6_3_what_is_an_email, 0,
                        COUNT(emails));
    tcase_add_loop_test(address, contract_6_3_what_is_no_email, 0,
                        COUNT(no_emails));
    tcase_add_test(address, contract_6_3_an_email_has_254_at_most);
    tcase_add_test(address, what_is_a_phone_number);
    suite_add_tcase(suite, utf8);
    suite_add_tcase(suite, fold);
    suite_add_tcase(suite, address);
    return crm_check_main(suite);
}
