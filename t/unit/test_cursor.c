/* SPDX-License-Identifier: Apache-2.0 */
/* test_cursor.c: cursors as text (contract 13.3) */
#include "crm_check.h"

#include <string.h>

#include "apr_encode.h"
#include "apr_strings.h"

#include "crm_cursor.h"
#include "crm_hash.h"

#define ID "0190a6f0-1c2d-7abc-8def-0123456789ab"
#define LIST APR_UINT64_C(0x0123456789abcdef)

static const crm_sort_t by_time = {.keys = {"t.created_at"}};
static const crm_sort_t nulls_last = {.keys = {"t.x"}, .nulls_last = 1};
static const crm_sort_t by_position = {
    .keys = {"p.created_at", "s.n", "t.n", "t.created_at"},
    .integers = {0, 1, 1},
};

static const char *write_time(const char *time)
{
    crm_cursor_t cursor = {{time}, ID, 0};

    return crm_cursor_write(&cursor, time ? &by_time : &nulls_last, LIST,
                            crm_check_pool());
}

static int reads(const char *text, const crm_sort_t *sort, apr_uint64_t list)
{
    crm_cursor_t cursor;

    return crm_cursor_read(&cursor, text, sort, list, crm_check_pool());
}

static const struct {
    const char *pg, *bind;
} times[] = {
    {"2026-11-21 01:59:27.552+00", "2026-11-21T01:59:27.552Z"},
    {"2026-11-21 01:59:27.5+00", "2026-11-21T01:59:27.500Z"},
    {"2026-11-21 01:59:27+00", "2026-11-21T01:59:27.000Z"},
    {"1969-12-31 23:59:59.999+00", "1969-12-31T23:59:59.999Z"},
    {"0001-01-01 00:00:00+00", "0001-01-01T00:00:00.000Z"},
    {"9999-12-31 23:59:59.999+00", "9999-12-31T23:59:59.999Z"},
};

START_TEST(a_time_is_read_back_to_the_millisecond)
{
    crm_cursor_t cursor;

    ck_assert(crm_cursor_read(&cursor, write_time(times[_i].pg), &by_time,
                              LIST, crm_check_pool()));
    ck_assert_str_eq(cursor.keys[0], times[_i].bind);
    ck_assert_str_eq(cursor.id, ID);
}
END_TEST

START_TEST(all_keys_are_read_back)
{
    crm_cursor_t had = {{"2026-11-21 01:59:27.5+00", "0", "2147483647",
                         "2026-11-21 01:59:28+00"}, ID, 1};
    const char *text = crm_cursor_write(&had, &by_position, LIST,
                                        crm_check_pool());
    crm_cursor_t got;

    ck_assert_int_eq(strlen(text), 76);
    ck_assert(crm_cursor_read(&got, text, &by_position, LIST,
                              crm_check_pool()));
    ck_assert_str_eq(got.keys[0], "2026-11-21T01:59:27.500Z");
    ck_assert_str_eq(got.keys[1], "0");
    ck_assert_str_eq(got.keys[2], "2147483647");
    ck_assert_str_eq(got.keys[3], "2026-11-21T01:59:28.000Z");
    ck_assert(got.in_order);
}
END_TEST

START_TEST(a_null_only_where_nulls_are_last)
{
    crm_cursor_t cursor = {{NULL}, ID, 0};

    ck_assert_ptr_null(crm_cursor_write(&cursor, &by_time, LIST,
                                        crm_check_pool()));
    ck_assert(!reads(write_time(NULL), &by_time, LIST));
    ck_assert(crm_cursor_read(&cursor, write_time(NULL), &nulls_last, LIST,
                              crm_check_pool()));
    ck_assert_ptr_null(cursor.keys[0]);
}
END_TEST

START_TEST(an_unknown_format_has_no_cursor)
{
    crm_cursor_t cursor = {{times[0].pg}, "x", 0};

    ck_assert_ptr_null(write_time("infinity"));
    ck_assert_ptr_null(write_time("10000-01-01 00:00:00+00"));
    ck_assert_ptr_null(crm_cursor_write(&cursor, &by_time, LIST,
                                        crm_check_pool()));
}
END_TEST

START_TEST(each_bit_counts_and_the_list)
{
    char *text = apr_pstrdup(crm_check_pool(), write_time(times[0].pg));

    ck_assert(reads(text, &by_time, LIST));
    ck_assert(!reads(text, &by_time, LIST + 1));
    ck_assert(!reads(text, &by_position, LIST));
    for (size_t i = 0; text[i]; i++) {
        for (int c = 1; c < 256; c++) {
            char was = text[i];

            if ((char)c == was) {
                continue;
            }
            text[i] = (char)c;
            ck_assert_msg(!reads(text, &by_time, LIST), "%d at %zu", c, i);
            text[i] = was;
        }
    }
}
END_TEST

/* A cursor that somebody has made: the hash is no secret. */
static const struct {
    unsigned char flags;
    apr_int64_t time, number;
    int ok;
} made[] = {
    {0, 0, 0, 1}, {1, 0, 0, 1}, {2, 0, 0, 0}, {255, 0, 0, 0},
    {0, APR_INT64_C(-62135596800000), 0, 1},
    {0, APR_INT64_C(-62135596800001), 0, 0},
    {0, APR_INT64_C(253402300799999), 0, 1},
    {0, APR_INT64_C(253402300800000), 0, 0},
    {0, 0, 2147483647, 1}, {0, 0, APR_INT64_C(2147483648), 0},
    {0, 0, -2147483647 - 1, 1}, {0, 0, APR_INT64_C(-2147483649), 0},
    {0, APR_INT64_MIN, 0, 0}, {0, 0, APR_INT64_MIN, 0},
};

START_TEST(a_cursor_has_what_a_row_can_have)
{
    static const crm_sort_t sort = {.keys = {"t.at", "t.n"},
                                    .integers = {0, 1}};
    unsigned char data[1 + 8 + 8 + 16 + 8];
    char text[sizeof(data) * 2];

    memset(data, 0, sizeof(data));
    data[0] = made[_i].flags;
    for (int i = 0; i < 8; i++) {
        data[1 + i] = (unsigned char)(made[_i].time >> (56 - 8 * i));
        data[9 + i] = (unsigned char)(made[_i].number >> (56 - 8 * i));
    }
    for (int i = 0; i < 8; i++) {
        data[33 + i] = (unsigned char)(crm_hash(LIST, data, 33) >> (56 - 8 * i));
    }
    apr_encode_base64_binary(text, data, sizeof(data), APR_ENCODE_BASE64URL,
                             NULL);
    ck_assert_int_eq(reads(text, &sort, LIST), made[_i].ok);
}
END_TEST

/* Of any order, and of any list. */
START_TEST(the_form_of_a_cursor)
{
    crm_cursor_t all = {{"2026-11-21 01:59:27.5+00", "0", "1",
                         "2026-11-21 01:59:28+00"}, ID, 1};
    const char *texts[] = {
        write_time(times[0].pg), write_time(NULL),
        crm_cursor_write(&all, &by_position, LIST, crm_check_pool())
    };

    for (int i = 0; i < COUNT(texts); i++) {
        char *text = apr_pstrdup(crm_check_pool(), texts[i]);

        ck_assert(crm_cursor_has_form(text));
        ck_assert(!crm_cursor_has_form(apr_pstrcat(crm_check_pool(), text, "A",
                                                   NULL)));
        ck_assert(!crm_cursor_has_form(text + 1));
        text[i] = '.';
        ck_assert(!crm_cursor_has_form(text));
    }
    ck_assert(!crm_cursor_has_form(""));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cursor");
    TCase *cursor = tcase_create("cursor");

    tcase_add_loop_test(cursor, a_time_is_read_back_to_the_millisecond, 0,
                        COUNT(times));
    tcase_add_test(cursor, all_keys_are_read_back);
    tcase_add_test(cursor, a_null_only_where_nulls_are_last);
    tcase_add_test(cursor, an_unknown_format_has_no_cursor);
    tcase_add_test(cursor, each_bit_counts_and_the_list);
    tcase_add_loop_test(cursor, a_cursor_has_what_a_row_can_have, 0,
                        COUNT(made));
    tcase_add_test(cursor, the_form_of_a_cursor);
    suite_add_tcase(suite, cursor);
    return crm_check_main(suite);
}
