/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c: what is JSON (contract 6.1), what can be stored (6.3) */
#include "crm_check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_json.h"
#include "crm_json_check.h"
#include "crm_json_equal.h"
#include "crm_number.h"

/* A file of t/unit/json. */
typedef struct sample_t {
    const char *name;
    const char *text;           /* a block of exactly LEN bytes */
    apr_size_t len;
} sample_t;

static apr_array_header_t *accepted, *rejected;

static apr_status_t free_text(void *text)
{
    free(text);
    return APR_SUCCESS;
}

/* Return the text of the file at PATH, in a block of exactly its size, so
 * that valgrind and the sanitizers see any byte read beyond. It is freed with
 * the pool, in the parent and in every test's process. */
static const char *read_file(apr_size_t *len_p, const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text;
    long size;

    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) {
        printf("Bail out! cannot read %s\n", path);
        exit(EXIT_FAILURE);
    }
    rewind(file);
    text = malloc(size ? (size_t)size : 1);
    *len_p = fread(text, 1, (size_t)size, file);
    fclose(file);
    apr_pool_cleanup_register(crm_check_pool(), text, free_text,
                              apr_pool_cleanup_null);
    return text;
}

/* Return the samples (sample_t) of the folder t/unit/json/NAME. */
static apr_array_header_t *read_samples(const char *name)
{
    apr_pool_t *pool = crm_check_pool();
    apr_array_header_t *samples = apr_array_make(pool, 200, sizeof(sample_t));
    const char *top = getenv("CRM_SRCDIR");
    const char *path;
    struct dirent *entry;
    DIR *dir;

    top = top ? top : getenv("srcdir");
    path = apr_pstrcat(pool, top ? top : ".", "/t/unit/json/", name, NULL);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.') {
            sample_t *sample = apr_array_push(samples);

            sample->name = apr_pstrdup(pool, entry->d_name);
            sample->text = read_file(&sample->len,
                                     apr_pstrcat(pool, path, "/",
                                                 entry->d_name, NULL));
        }
    }
    if (dir) {
        closedir(dir);
    }
    return samples;
}

START_TEST(the_samples_are_found)
{
    ck_assert_int_ge(accepted->nelts, 40);
    ck_assert_int_ge(rejected->nelts, 100);
}
END_TEST

START_TEST(contract_6_1_accepts)
{
    const sample_t *sample = &APR_ARRAY_IDX(accepted, _i, sample_t);
    apr_size_t offset = 99;
    const char *wrong = crm_json_check(&offset, sample->text, sample->len,
                                       crm_check_pool());

    ck_assert_msg(!wrong, "%s: %s at %d", sample->name, wrong, (int)offset);
    ck_assert_uint_eq(offset, 0);
}
END_TEST

START_TEST(what_is_accepted_json_c_can_read)
{
    const sample_t *sample = &APR_ARRAY_IDX(accepted, _i, sample_t);
    json_object *value = NULL;
    apr_size_t offset;
    const char *wrong = crm_json_parse(&value, &offset, sample->text,
                                       sample->len, crm_check_pool());

    ck_assert_msg(!wrong, "%s: %s", sample->name, wrong);
    ck_assert_msg(value || strstr(sample->name, "null"), "%s: no value",
                  sample->name);
}
END_TEST

START_TEST(contract_6_1_rejects)
{
    const sample_t *sample = &APR_ARRAY_IDX(rejected, _i, sample_t);
    apr_size_t offset = 0;
    json_object *value = NULL;

    ck_assert_msg(crm_json_check(&offset, sample->text, sample->len,
                                 crm_check_pool()) != NULL,
                  "%s is accepted", sample->name);
    ck_assert_msg(offset <= sample->len, "%s: offset %d of %d", sample->name,
                  (int)offset, (int)sample->len);
    ck_assert_msg(crm_json_parse(&value, &offset, sample->text, sample->len,
                                 crm_check_pool()) != NULL,
                  "%s is parsed", sample->name);
}
END_TEST

/* Every text that ends early is refused, and read no further than it goes. */
START_TEST(every_beginning_of_an_object_is_rejected)
{
    static const char text[] =
        "{\"a\\u00e4\":[1.5e+3,true,\"\\ud83d\\ude00\xc3\xa4\",{}],\"b\":null}";
    apr_size_t offset;

    for (apr_size_t len = 0; len < sizeof(text) - 1; len++) {
        char *copy = malloc(len ? len : 1);

        memcpy(copy, text, len);
        ck_assert_msg(crm_json_check(&offset, copy, len, crm_check_pool())
                      != NULL, "accepted: %.*s", (int)len, text);
        ck_assert_uint_le(offset, len);
        free(copy);
    }
    ck_assert_ptr_null(crm_json_check(&offset, text, sizeof(text) - 1,
                                      crm_check_pool()));
}
END_TEST

/* Where the fault is. */
static const struct {
    const char *text;
    const char *wrong;
    apr_size_t offset;
} faults[] = {
    {"{\"a\":1,\"a\":2}", "duplicate member", 7},
    {"{\"a\":x}", "unexpected character", 5},
    {"[\"\\udc00\\udc00\"]", "lone surrogate", 8},
    {"[1,2", "unexpected end", 4},
    {"[1 2]", "a comma or the end is missing", 3},
    {"{} x", "text after the value", 3},
    {"", "the text is empty", 0},
    {"{\"a\\u0000\":1}", "U+0000 in a member's name", 1},
    {"[\"abc", "unterminated string", 2},
    {"\xef\xbb\xbf{}", "byte order mark", 0},
    {"{\"a\" 1}", "a colon is missing", 5},
    {"{1:1}", "a member's name is missing", 1},
    {"[\"a\tb\"]", "control character in a string", 3},
    {"[01]", "a comma or the end is missing", 2},
    {"[-]", "malformed number", 2},
    {"[nul]", "unknown word", 1},
    {"\xff", "invalid UTF-8", 0},
    {"[\"a\xc3\xa4\xff\"]", "invalid UTF-8", 5},
    {"[\"a\", \"\xc3\"]", "invalid UTF-8", 7},
    {"[\"\xed\xa0\x80\"]", "invalid UTF-8", 2},
    {"[\"\xf0\x9f\x98\x80\xf0\x9f\x98", "invalid UTF-8", 6},
};

START_TEST(a_fault_is_named_with_its_place)
{
    apr_size_t offset = 0;
    const char *wrong = crm_json_check(&offset, faults[_i].text,
                                       strlen(faults[_i].text),
                                       crm_check_pool());

    ck_assert_ptr_nonnull(wrong);
    ck_assert_str_eq(wrong, faults[_i].wrong);
    ck_assert_msg(offset == faults[_i].offset, "%s: at %d, not %d",
                  faults[_i].text, (int)offset, (int)faults[_i].offset);
}
END_TEST

START_TEST(no_name_comes_twice_however_many_there_are)
{
    static const char names[] = "abcdefghijklmnopqrst";
    apr_pool_t *pool = crm_check_pool();
    const char *text = "{";
    apr_size_t offset;

    for (const char *name = names; *name; name++) {
        for (const char *other = names; other < name; other++) {
            const char *twice = apr_psprintf(pool, "%s\"%c\":2}", text, *other);

            ck_assert_msg(crm_json_check(&offset, twice, strlen(twice), pool)
                          != NULL, "accepted: %s", twice);
        }
        text = apr_psprintf(pool, "%s\"%c\":1,", text, *name);
    }
}
END_TEST

/* Numbers that json-c has no type for, alone and in others. */
START_TEST(a_number_stays_as_it_was_written)
{
    static const char *const numbers[] = {
        "9223372036854775806", "9223372036854775807", "9223372036854775808",
        "-9223372036854775809", "12345678901234567890123", "1.50", "0.10",
        "99999999999999999999.5", "123456789012345678901e2"
    };
    apr_pool_t *pool = crm_check_pool();

    for (size_t i = 0; i < COUNT(numbers); i++) {
        const char *texts[] = {
            numbers[i], apr_pstrcat(pool, "[", numbers[i], ",", numbers[i], "]",
                                    NULL)
        };

        for (size_t j = 0; j < COUNT(texts); j++) {
            json_object *value;
            apr_size_t offset;

            ck_assert_ptr_null(crm_json_parse(&value, &offset, texts[j],
                                              strlen(texts[j]), pool));
            ck_assert_str_eq(json_object_to_json_string_ext(
                                 value, JSON_C_TO_STRING_PLAIN), texts[j]);
        }
    }
}
END_TEST

START_TEST(a_string_is_equal_to_what_it_says_and_to_no_number)
{
    char exact[2 + CRM_NUMBER_EXACT + 3] = "\"";
    apr_size_t len = crm_number_exact(exact + 1, "10", 2);

    memcpy(exact + 1 + len, "\"", 2);
    ck_assert(!crm_json_equal(exact, "10", crm_check_pool()));
    ck_assert(crm_json_equal("\"a/b\"", "\"a\\/b\"", crm_check_pool()));
    ck_assert(crm_json_equal("\"A\"", "\"\\u0041\"", crm_check_pool()));
    ck_assert(!crm_json_equal("\"A\"", "\"\\u0042\"", crm_check_pool()));
}
END_TEST

/* Each line has a number in several notations; no two lines are equal. */
START_TEST(numbers_are_equal_by_their_values)
{
    static const char *const values[][4] = {
        {"10", "1e1", "10.0", "100E-1"}, {"0", "-0", "0.00", "-0.0e5"},
        {"-10", "-1e+1", "-10.00", "-0.1e2"}, {"0.1", "1e-1", "0.10", "10e-2"},
        {"1e400", "10e399", "0.1e401", "1.0e400"},
    };
    apr_pool_t *pool = crm_check_pool();

    for (size_t i = 0; i < COUNT(values); i++) {
        for (size_t j = 0; j < COUNT(values); j++) {
            for (int k = 0; k < 4; k++) {
                ck_assert_msg(crm_json_equal(values[i][0], values[j][k], pool)
                              == (i == j), "%s %s", values[i][0], values[j][k]);
            }
        }
    }
}
END_TEST

START_TEST(parsing_keeps_what_was_said)
{
    static const char text[] =
        "{\"s\":\"a\\u0000\\ud83d\\ude00\",\"n\":123456789012345,\"d\":0.10,"
        "\"t\":true,\"z\":null,\"a\":[1,[2]]}";
    apr_pool_t *pool;
    json_object *value, *member;
    apr_size_t offset;

    apr_pool_create(&pool, crm_check_pool());
    ck_assert_ptr_null(crm_json_parse(&value, &offset, text,
                                      sizeof(text) - 1, pool));
    ck_assert(json_object_object_get_ex(value, "s", &member));
    ck_assert_int_eq(json_object_get_string_len(member), 6);
    ck_assert(!memcmp(json_object_get_string(member), "a\0\xf0\x9f\x98\x80",
                      6));
    ck_assert(json_object_object_get_ex(value, "n", &member));
    ck_assert(json_object_get_int64(member) == 123456789012345);
    ck_assert(json_object_object_get_ex(value, "d", &member));
    ck_assert_str_eq(json_object_to_json_string(member), "0.10");
    ck_assert(json_object_object_get_ex(value, "z", &member));
    ck_assert_ptr_null(member);
    ck_assert(json_object_object_get_ex(value, "a", &member));
    ck_assert_uint_eq(json_object_array_length(member), 2);
    apr_pool_destroy(pool);
}
END_TEST

START_TEST(what_is_written_is_compact)
{
    json_object *object = json_object_new_object();

    crm_json_add_text(object, "url", "https://example.com/a b");
    crm_json_add_text(object, "none", NULL);
    crm_json_add_text(object, "quote", "\"\n");
    ck_assert_str_eq(crm_json_end(object, crm_check_pool()),
                     "{\"url\":\"https://example.com/a b\","
                     "\"quote\":\"\\\"\\n\"}");
}
END_TEST

/* --- hostile size ----------------------------------------------------------- */

#define HOSTILE_SIZE (2 * 1024 * 1024)  /* the usual CrmApiMaxBody */

static void close_with(crm_buf_t *buf, const char *end)
{
    buf->len -= buf->data[buf->len - 1] == ',';
    crm_buf_puts(buf, end);
}

/* What all others are compared with: nothing to remember. */
static void one_string(crm_buf_t *buf)
{
    crm_buf_putc(buf, '"');
    while (buf->len < HOSTILE_SIZE) {
        crm_buf_puts(buf, "abcdefgh");
    }
    crm_buf_putc(buf, '"');
}

static void keys_of_one_object(crm_buf_t *buf)
{
    crm_buf_putc(buf, '{');
    for (int i = 0; buf->len < HOSTILE_SIZE; i++) {
        crm_buf_printf(buf, "\"%x\":1,", (unsigned int)i);
    }
    close_with(buf, "}");
}

/* "Ez" and "FY" are one to a hash that multiplies by 33 and adds, whatever
 * it starts with; so are all strings made of them. */
static void keys_that_collide(crm_buf_t *buf)
{
    crm_buf_putc(buf, '{');
    for (int i = 0; buf->len < HOSTILE_SIZE; i++) {
        crm_buf_putc(buf, '"');
        for (int bit = 0; bit < 16; bit++) {
            crm_buf_puts(buf, i >> bit & 1 ? "Ez" : "FY");
        }
        crm_buf_puts(buf, "\":1,");
        ck_assert_int_lt(i, 1 << 16);
    }
    close_with(buf, "}");
}

static void escaped_keys(crm_buf_t *buf)
{
    crm_buf_putc(buf, '{');
    for (int i = 0; buf->len < HOSTILE_SIZE; i++) {
        crm_buf_printf(buf, "\"\\u%04x\\u%04x\":1,",
                       0x1000U + ((unsigned int)i & 0xfff),
                       0x1000U + ((unsigned int)i >> 12));
    }
    close_with(buf, "}");
}

static void nested_arrays(crm_buf_t *buf)
{
    crm_buf_putc(buf, '[');
    while (buf->len < HOSTILE_SIZE) {
        for (int i = 1; i < CRM_JSON_DEPTH; i++) {
            crm_buf_putc(buf, '[');
        }
        for (int i = 1; i < CRM_JSON_DEPTH; i++) {
            crm_buf_putc(buf, ']');
        }
        crm_buf_putc(buf, ',');
    }
    close_with(buf, "]");
}

static void nested_objects(crm_buf_t *buf)
{
    crm_buf_putc(buf, '[');
    while (buf->len < HOSTILE_SIZE) {
        for (int i = 2; i < CRM_JSON_DEPTH; i++) {
            crm_buf_puts(buf, "{\"a\":");
        }
        crm_buf_puts(buf, "{}");
        for (int i = 2; i < CRM_JSON_DEPTH; i++) {
            crm_buf_putc(buf, '}');
        }
        crm_buf_putc(buf, ',');
    }
    close_with(buf, "]");
}

static void small_objects(crm_buf_t *buf)
{
    crm_buf_putc(buf, '[');
    while (buf->len < HOSTILE_SIZE) {
        crm_buf_puts(buf, "{\"a\":1},");
    }
    close_with(buf, "]");
}

/* Sets of names that grew must not cost every small object after them. */
static void small_objects_after_a_large(crm_buf_t *buf)
{
    crm_buf_puts(buf, "[{");
    for (int i = 0; buf->len < HOSTILE_SIZE / 2; i++) {
        crm_buf_printf(buf, "\"%x\":1,", (unsigned int)i);
    }
    close_with(buf, "},");
    while (buf->len < HOSTILE_SIZE) {
        crm_buf_puts(buf, "{\"a\":1},");
    }
    close_with(buf, "]");
}

static void objects_of_65_keys(crm_buf_t *buf)
{
    crm_buf_putc(buf, '[');
    while (buf->len < HOSTILE_SIZE) {
        crm_buf_putc(buf, '{');
        for (unsigned int i = 0; i < 65; i++) {
            crm_buf_printf(buf, "\"%x\":1,", i);
        }
        close_with(buf, "},");
    }
    close_with(buf, "]");
}

static void spaces(crm_buf_t *buf)
{
    crm_buf_putc(buf, '[');
    while (buf->len < HOSTILE_SIZE) {
        crm_buf_puts(buf, " \t\r\n");
    }
    crm_buf_putc(buf, ']');
}

static void one_number(crm_buf_t *buf)
{
    while (buf->len < HOSTILE_SIZE) {
        crm_buf_puts(buf, "12345678");
    }
}

static const struct {
    const char *name;
    void (*make)(crm_buf_t *buf);
} hostile[] = {
    {"one string", one_string},
    {"keys of one object", keys_of_one_object},
    {"keys that collide in a weak hash", keys_that_collide},
    {"escaped keys", escaped_keys},
    {"nested arrays", nested_arrays},
    {"nested objects", nested_objects},
    {"small objects", small_objects},
    {"small objects after a large one", small_objects_after_a_large},
    {"objects of 65 keys", objects_of_65_keys},
    {"spaces", spaces},
    {"one number", one_number},
};

/* Return the milliseconds of processor time that the check of BUF takes. */
static double check_ms(const crm_buf_t *buf, const char *name)
{
    apr_size_t offset;
    apr_pool_t *pool;
    const char *wrong;
    clock_t start;
    double ms;

    apr_pool_create(&pool, crm_check_pool());
    start = clock();
    wrong = crm_json_check(&offset, buf->data, buf->len, pool);
    ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC;
    apr_pool_destroy(pool);
    ck_assert_msg(!wrong, "%s: %s at %d", name, wrong, (int)offset);
    return ms;
}

/* 2 MiB should take 100 ms; a time that grows faster than the size would be many
 * seconds. What is asserted is a multiple of what plain text takes, so that it
 * holds on slow and busy machines and under valgrind as well. */
START_TEST(hostile_texts_take_no_more_than_their_size)
{
    crm_buf_t plain, buf;
    double ms, plain_ms;

    crm_buf_init(&plain, HOSTILE_SIZE + 64, crm_check_pool());
    crm_buf_init(&buf, HOSTILE_SIZE + 64, crm_check_pool());
    one_string(&plain);
    hostile[_i].make(&buf);
    plain_ms = check_ms(&plain, "one string");
    ms = check_ms(&buf, hostile[_i].name);
    printf("# 2 MiB, %s: %.1f ms (plain text %.1f ms)\n", hostile[_i].name,
           ms, plain_ms);
    fflush(stdout);
    ck_assert_msg(ms < 500 * (plain_ms + 1), "%s: %.0f ms",
                  hostile[_i].name, ms);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *check = tcase_create("check"), *cost = tcase_create("cost");

    accepted = read_samples("accept");
    rejected = read_samples("reject");
    tcase_add_test(check, the_samples_are_found);
    tcase_add_loop_test(check, contract_6_1_accepts, 0, accepted->nelts);
    tcase_add_loop_test(check, what_is_accepted_json_c_can_read, 0,
                        accepted->nelts);
    tcase_add_loop_test(check, contract_6_1_rejects, 0, rejected->nelts);
    tcase_add_test(check, every_beginning_of_an_object_is_rejected);
    tcase_add_loop_test(check, a_fault_is_named_with_its_place, 0,
                        COUNT(faults));
    tcase_add_test(check, no_name_comes_twice_however_many_there_are);
    tcase_add_test(check, a_number_stays_as_it_was_written);
    tcase_add_test(check, a_string_is_equal_to_what_it_says_and_to_no_number);
    tcase_add_test(check, numbers_are_equal_by_their_values);
    tcase_add_test(check, parsing_keeps_what_was_said);
    tcase_add_loop_test(cost, hostile_texts_take_no_more_than_their_size, 0,
                        COUNT(hostile));
    tcase_add_test(check, what_is_written_is_compact);
    suite_add_tcase(suite, check);
    suite_add_tcase(suite, cost);
    return crm_check_main(suite);
}
