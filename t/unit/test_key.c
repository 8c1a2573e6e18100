/* SPDX-License-Identifier: Apache-2.0 */
/* test_key.c: API keys: form, making, hashing, the header (contract 1.2, 3.1) */
#include "crm_check.h"

#include <string.h>

#include "apr_lib.h"

#include "crm_key.h"

#define KEY "svc_live_abcdefghijklmnopqrstuvwx1WlIYh"
#define KEY_29 "svc_live_abcdefghijklmnopqrstuvwx12345"

/* Return the CRC-32 of ISO 3309 of the LEN bytes at TEXT, by its definition: the
 * remainder of a division of polynomials. */
static apr_uint32_t crc32_of(const char *text, apr_size_t len)
{
    apr_uint32_t crc = 0xffffffffU;

    for (apr_size_t bit = 0; bit < 8 * len; bit++) {
        apr_uint32_t in = (unsigned char)text[bit / 8] >> bit % 8;

        crc = crc >> 1 ^ ((crc ^ in) & 1 ? 0xedb88320U : 0);
    }
    return ~crc;
}

/* Return whether KEY ends with six digits of base 62, the CRC-32 of what is
 * before them. */
static int has_checksum(const char *key)
{
    static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz";
    apr_size_t len = strlen(key) - 6;
    apr_uint64_t sum = 0;

    for (const char *digit = key + len; *digit; digit++) {
        sum = 62 * sum + (apr_uint64_t)(strchr(base62, *digit) - base62);
    }
    return sum == crc32_of(key, len);
}

START_TEST(contract_1_2_a_generated_key_has_39_characters)
{
    char key[CRM_KEY_SIZE], before[CRM_KEY_SIZE] = "";

    for (int i = 0; i < 200; i++) {
        ck_assert_ptr_null(crm_key_generate(key, CRM_KEY_PREFIX,
                                            crm_check_pool()));
        ck_assert_uint_eq(strlen(key), 39);
        ck_assert_msg(!strncmp(key, "svc_live_", 9), "%s", key);
        ck_assert_msg(crm_key_valid(key, 39, CRM_KEY_PREFIX), "%s", key);
        ck_assert_msg(has_checksum(key), "%s", key);
        ck_assert_msg(strcmp(key, before) != 0, "%s twice", key);
        strcpy(before, key);
    }
}
END_TEST

/* All 62 characters come up in all 24 places. */
START_TEST(contract_1_2_all_of_base62_is_used)
{
    static unsigned char seen[24][128];
    char key[CRM_KEY_SIZE];
    int count = 0;

    for (int i = 0; i < 3000; i++) {
        ck_assert_ptr_null(crm_key_generate(key, "", crm_check_pool()));
        for (int j = 0; j < 24; j++) {
            ck_assert(apr_isalnum(key[j]));
            count += !seen[j][(int)key[j]]++;
        }
    }
    ck_assert_int_eq(count, 24 * 62);
}
END_TEST

START_TEST(a_prefix_may_be_long_or_empty)
{
    static const char *const prefixes[] = {
        "", "k", "svc_test_", "abcdefghijklmnopqrstuvwxyz_12345",
    };
    char key[CRM_KEY_SIZE], shown[CRM_KEY_SIZE];

    for (int i = 0; i < 4; i++) {
        apr_size_t len = strlen(prefixes[i]);

        ck_assert_uint_le(len, CRM_KEY_PREFIX_MAX);
        ck_assert_ptr_null(crm_key_generate(key, prefixes[i],
                                            crm_check_pool()));
        ck_assert_uint_eq(strlen(key), len + 30);
        ck_assert(crm_key_valid(key, len + 30, prefixes[i]));
        ck_assert(has_checksum(key));
        crm_key_display(shown, key, prefixes[i]);
        ck_assert_uint_eq(strlen(shown), len + 11);
    }
}
END_TEST

/* Made with zlib's crc32(): the other tests know a checksum. */
START_TEST(contract_1_2_the_checksum_is_crc32)
{
    ck_assert(has_checksum(KEY));
    ck_assert(has_checksum("svc_live_0000000000000000000000001qipiK"));
    ck_assert(has_checksum("svc_live_00000000000000000000014000j935"));
    ck_assert(has_checksum("x_ABCDEFGHIJKLMNOPQRSTUVWX1BJ6yo"));
    ck_assert(!has_checksum("x_ABCDEFGHIJKLMNOPQRSTUVWX1BJ6yp"));
}
END_TEST

/* Ask about the text with nothing readable behind it. */
static int valid(const char *key)
{
    apr_size_t len = strlen(key);
    char *copy = malloc(len ? len : 1);
    int is;

    memcpy(copy, key, len);
    is = crm_key_valid(copy, len, CRM_KEY_PREFIX);
    free(copy);
    return is;
}

START_TEST(contract_1_2_29_or_30_without_a_checksum)
{
    ck_assert(valid(KEY));
    ck_assert(valid(KEY_29));
    ck_assert(valid("svc_live_000000000000000000000000000000"));
    ck_assert(valid("svc_live_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"));
    ck_assert(valid("svc_live_ABCDEFGHIJKLMNOPQRSTUVWXYZabc"));
}
END_TEST

static const char *const bad[] = {
    "", "s", "svc_live_", "svc_live", "abcdefghijklmnopqrstuvwxyz0123",
    "svc_live_abcdefghijklmnopqrstuvwx1234", KEY "0",
    "SVC_LIVE_abcdefghijklmnopqrstuvwx1WlIYh",
    "Svc_live_abcdefghijklmnopqrstuvwx1WlIYh",
    "svc-live-abcdefghijklmnopqrstuvwx1WlIYh",
    "svc_test_abcdefghijklmnopqrstuvwx1WlIYh",
    "xsvc_live_abcdefghijklmnopqrstuvwx1WlIY",
    " svc_live_abcdefghijklmnopqrstuvwx1WlIY",
    "svc_live_ abcdefghijklmnopqrstuvwx1WlIY",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY ",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY\n",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY\t",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY_",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY-",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY+",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY=",
    "svc_live_abcdefghijklmnopqrstuvwx1WlI\xc3\xa4",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY\xe9",
    "svc_live_abcdefghijklmnopqrstuvwx1WlI%41",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY@",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY[",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY`",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY{",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY/",
    "svc_live_abcdefghijklmnopqrstuvwx1WlIY:",
    "svc_live_' or '1'='1' --aaaaaaaaaaaaaaaa",
};

START_TEST(contract_3_1_other_prefix_length_or_characters)
{
    ck_assert_msg(!valid(bad[_i]), "\"%s\" is accepted", bad[_i]);
}
END_TEST

START_TEST(a_nul_is_no_character_of_a_key)
{
    char key[] = KEY;

    for (apr_size_t i = 0; i < sizeof(key) - 1; i++) {
        char c = key[i];

        key[i] = '\0';
        ck_assert(!crm_key_valid(key, sizeof(key) - 1, CRM_KEY_PREFIX));
        key[i] = c;
    }
}
END_TEST

static const char *const headers[] = {
    "Bearer " KEY, "bearer " KEY, "BEARER " KEY, "bEaReR " KEY,
};

START_TEST(contract_3_1_the_scheme_has_no_case)
{
    const char *key = NULL;
    apr_size_t len = 0;

    ck_assert_msg(crm_key_from_bearer(&key, &len, headers[_i],
                                      CRM_KEY_PREFIX), "%s", headers[_i]);
    ck_assert_ptr_eq(key, headers[_i] + 7);
    ck_assert_uint_eq(len, 39);
}
END_TEST

static const char *const no_headers[] = {
    "", " ", "Bearer", "Bearer ", KEY, "Bearer" KEY, "Bearer  " KEY,
    " Bearer " KEY, "Bearer\t" KEY, "Bearer " KEY " ", "Bearer " KEY "\t",
    "Bearer " KEY " " KEY, "Bearer " KEY "," KEY, "Bearer " KEY ", Bearer "
    KEY, "Bearer: " KEY, "Bearer=" KEY, "Bearer \"" KEY "\"",
    "Basic " KEY, "Token " KEY, "Bearers " KEY, "Beare " KEY, "Digest " KEY,
    "Bearer svc_live_", "Bearer svc_live_short", "Bearer\xc2\xa0" KEY,
    "Bearer token=" KEY, "Bearer\n" KEY, "Bearer " KEY "x",
};

START_TEST(contract_3_1_nothing_else_in_the_header)
{
    const char *key;
    apr_size_t len;

    ck_assert_msg(!crm_key_from_bearer(&key, &len, no_headers[_i],
                                       CRM_KEY_PREFIX),
                  "\"%s\" is accepted", no_headers[_i]);
}
END_TEST

START_TEST(the_hash_is_sha256)
{
    unsigned char hash[CRM_KEY_HASH_LEN];
    char text[2 * CRM_KEY_HASH_LEN + 1];

    crm_key_hash(hash, "abc", 3);       /* FIPS 180-2, B.1 */
    crm_key_hash_hex(text, hash);
    ck_assert_str_eq(text, "ba7816bf8f01cfea414140de5dae2223"
                     "b00361a396177a9cb410ff61f20015ad");
    crm_key_hash(hash, "", 0);
    crm_key_hash_hex(text, hash);
    ck_assert_str_eq(text, "e3b0c44298fc1c149afbf4c8996fb924"
                     "27ae41e4649b934ca495991b7852b855");
    crm_key_hash(hash, KEY, 33);        /* LEN bytes, not up to the NUL */
    crm_key_hash_hex(text, hash);
    ck_assert_str_eq(text, "811a6340b7e11685287a9af367756fa2"
                     "034173dff9b2302167c52bdd442efc27");
}
END_TEST

START_TEST(contract_1_2_first_and_last_four_are_shown)
{
    char shown[CRM_KEY_SIZE];

    crm_key_display(shown, KEY, CRM_KEY_PREFIX);
    ck_assert_str_eq(shown, "svc_live_abcd...lIYh");
    crm_key_display(shown, KEY_29, CRM_KEY_PREFIX);
    ck_assert_str_eq(shown, "svc_live_abcd...2345");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("key");
    TCase *make = tcase_create("make"), *form = tcase_create("form");
    TCase *header = tcase_create("header"), *shown = tcase_create("shown");

    tcase_add_test(make, contract_1_2_a_generated_key_has_39_characters);
    tcase_add_test(make, contract_1_2_all_of_base62_is_used);
    tcase_add_test(make, a_prefix_may_be_long_or_empty);
    tcase_add_test(make, contract_1_2_the_checksum_is_crc32);
    tcase_add_test(form, contract_1_2_29_or_30_without_a_checksum);
    tcase_add_loop_test(form, contract_3_1_other_prefix_length_or_characters,
                        0, COUNT(bad));
    tcase_add_test(form, a_nul_is_no_character_of_a_key);
    tcase_add_loop_test(header, contract_3_1_the_scheme_has_no_case, 0,
                        COUNT(headers));
    tcase_add_loop_test(header, contract_3_1_nothing_else_in_the_header, 0,
                        COUNT(no_headers));
    tcase_add_test(shown, the_hash_is_sha256);
    tcase_add_test(shown, contract_1_2_first_and_last_four_are_shown);
    suite_add_tcase(suite, make);
    suite_add_tcase(suite, form);
    suite_add_tcase(suite, header);
    suite_add_tcase(suite, shown);
    return crm_check_main(suite);
}
