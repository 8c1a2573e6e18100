/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c: the growing buffer, and strings as JSON (RFC 8259, 7) */
#include "crm_check.h"

#include <json-c/json.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_json.h"

/* Fail unless BUF holds the LEN bytes at TEXT. */
static void holds_bytes(const crm_buf_t *buf, const char *text,
                        apr_size_t len)
{
    ck_assert_msg(buf->len == len && !memcmp(buf->data, text, len),
                  "it holds \"%.*s\"", (int)buf->len, buf->data);
    ck_assert_uint_le(buf->len, buf->size);
}

static void holds(const crm_buf_t *buf, const char *text)
{
    holds_bytes(buf, text, strlen(text));
}

START_TEST(what_is_added_is_there)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 0, crm_check_pool());
    ck_assert_uint_eq(buf.len, 0);
    crm_buf_add(&buf, "", 0);
    ck_assert_uint_eq(buf.len, 0);
    crm_buf_puts(&buf, "a");
    crm_buf_putc(&buf, 'b');
    crm_buf_add(&buf, "c\0d", 3);
    crm_buf_puts(&buf, "");
    crm_buf_printf(&buf, "%d-%s", 42, "x");
    crm_buf_printf(&buf, "%s", "");
    holds_bytes(&buf, "abc\0d42-x", 9);
}
END_TEST

START_TEST(it_grows_and_keeps_what_it_has)
{
    enum { COUNT = 200000 };
    crm_buf_t buf;
    int growths = 0;

    crm_buf_init(&buf, 1, crm_check_pool());
    for (int i = 0; i < COUNT; i++) {
        apr_size_t size = buf.size;

        crm_buf_putc(&buf, (char)i);
        growths += buf.size != size;
    }
    ck_assert_uint_eq(buf.len, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(buf.data[i], (char)i);
    }
    ck_assert_msg(growths < 40, "it was moved %d times", growths);
}
END_TEST

START_TEST(room_is_all_that_was_asked_for)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 3, crm_check_pool());
    for (apr_size_t n = 0; n < 5000; n += 7) {
        memset(crm_buf_reserve(&buf, n), 'x', n);
        ck_assert_uint_ge(buf.size - buf.len, n);
        buf.len += n / 3;
    }
}
END_TEST

START_TEST(a_long_text_is_formatted_whole)
{
    crm_buf_t buf;
    char *text = malloc(100001);

    memset(text, 'y', 100000);
    text[100000] = '\0';
    crm_buf_init(&buf, 2, crm_check_pool());
    crm_buf_printf(&buf, "<%s>", text);
    ck_assert_uint_eq(buf.len, 100002);
    ck_assert_int_eq(buf.data[0], '<');
    ck_assert_int_eq(buf.data[100001], '>');
    free(text);
}
END_TEST

/* Room that only just fits what printf makes, without its NUL. */
START_TEST(formatting_fits_whatever_is_left)
{
    for (int left = 0; left < 12; left++) {
        crm_buf_t buf;

        crm_buf_init(&buf, 16, crm_check_pool());
        for (int i = 0; i < 16 - left; i++) {
            crm_buf_putc(&buf, '.');
        }
        crm_buf_printf(&buf, "%06d", 123456);
        ck_assert_uint_eq(buf.len, 22 - (apr_size_t)left);
        ck_assert(!memcmp(buf.data + 16 - left, "123456", 6));
    }
}
END_TEST

/* Its memory goes with the pool: valgrind and the sanitizers would see it. */
START_TEST(its_memory_is_the_pools)
{
    apr_pool_t *pool;
    crm_buf_t buf;

    for (int i = 0; i < 100; i++) {
        apr_pool_create(&pool, crm_check_pool());
        crm_buf_init(&buf, 10, pool);
        for (int j = 0; j < 1000; j++) {
            crm_buf_puts(&buf, "0123456789");
        }
        apr_pool_destroy(pool);
    }
}
END_TEST

static const struct {
    const char *text;
    apr_size_t len;
    const char *json;
} strings[] = {
    {"", 0, "\"\""},
    {"abc", 3, "\"abc\""},
    {"\"", 1, "\"\\\"\""},
    {"\\", 1, "\"\\\\\""},
    {"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
    {"/", 1, "\"/\""},
    {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
    {"\0", 1, "\"\\u0000\""},
    {"\x01\x1f", 2, "\"\\u0001\\u001f\""},
    {"\x0b", 1, "\"\\u000b\""},
    {"\x0e", 1, "\"\\u000e\""},
    {"\x7f", 1, "\"\x7f\""},
    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
     "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {"</script>", 9, "\"</script>\""},
    {"a\0b", 3, "\"a\\u0000b\""},
    {"\"\"\"\"\"\"\"\"", 8, "\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\""},
};

START_TEST(rfc_8259_strings)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 1, crm_check_pool());
    crm_buf_json_string(&buf, strings[_i].text, strings[_i].len);
    holds(&buf, strings[_i].json);
}
END_TEST

/* Every byte below 0x80 comes back, alone and in a row. */
START_TEST(every_character_comes_back)
{
    char all[0x80];
    json_object *value;
    apr_size_t offset;
    crm_buf_t buf;

    for (int i = 0; i < 0x80; i++) {
        all[i] = (char)i;
        crm_buf_init(&buf, 1, crm_check_pool());
        crm_buf_json_string(&buf, all + i, 1);
        ck_assert_ptr_null(crm_json_parse(&value, &offset, buf.data, buf.len,
                                          crm_check_pool()));
        ck_assert_int_eq(json_object_get_string_len(value), 1);
        ck_assert_int_eq(*json_object_get_string(value), i);
    }
    crm_buf_init(&buf, 1, crm_check_pool());
    crm_buf_json_string(&buf, all, sizeof(all));
    ck_assert_ptr_null(crm_json_parse(&value, &offset, buf.data, buf.len,
                                      crm_check_pool()));
    ck_assert_int_eq(json_object_get_string_len(value), sizeof(all));
    ck_assert(!memcmp(json_object_get_string(value), all, sizeof(all)));
}
END_TEST

/* Add to OUT what the LEN bytes at TEXT are as JSON, byte by byte. */
static void add_plainly(crm_buf_t *out, const char *text, apr_size_t len)
{
    crm_buf_putc(out, '"');
    for (apr_size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            crm_buf_putc(out, '\\');
        }
        if (text[i] == '\n') {
            crm_buf_puts(out, "\\n");
        }
        else if (!(text[i] & ~0x1f)) {
            crm_buf_printf(out, "\\u%04x", text[i]);
        }
        else {
            crm_buf_putc(out, text[i]);
        }
    }
    crm_buf_putc(out, '"');
}

/* Texts are looked at in blocks: any length, and an escape at any place. */
START_TEST(escapes_at_any_place_of_any_length)
{
    enum { MOST = 100 };
    static const char special[] = {'"', '\\', '\n', '\1', '\0', ' ', '\x7f'};
    char *text = malloc(MOST);          /* a sanitizer knows where it ends */
    crm_buf_t is, wanted;

    crm_buf_init(&wanted, 1, crm_check_pool());
    for (int len = 0; len <= MOST; len++) {
        char *start = text + MOST - len;

        for (int i = 0; i <= len; i++) {
            crm_buf_init(&is, 1, crm_check_pool());
            memset(start, 0xe9, (size_t)len);
            for (int at = i; at < len; at += 1 + _i) {
                start[at] = special[(at + len) % (int)sizeof(special)];
            }
            wanted.len = 0;
            add_plainly(&wanted, start, (apr_size_t)len);
            crm_buf_json_string(&is, start, (apr_size_t)len);
            holds_bytes(&is, wanted.data, wanted.len);
        }
    }
    free(text);
}
END_TEST

START_TEST(json_of_a_constant_has_its_quotes)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 1, crm_check_pool());
    crm_buf_json(&buf, "{'a':['b',1]}");
    holds(&buf, "{\"a\":[\"b\",1]}");
}
END_TEST

/* JSON, and the same without blanks. */
static const char *const compacts[][2] = {
    {"", ""},
    {"[]", "[]"},
    {" [ 1 ,\n2\t,\r-3.5e1 ] ", "[1,2,-3.5e1]"},
    {"{\"a\": \"b\", \"c\": [true, null]}",
     "{\"a\":\"b\",\"c\":[true,null]}"},
    {"[\" a , b \", \"\"]", "[\" a , b \",\"\"]"},
    {"[\"\\\" , \", \"\\\\\", \" \\\\\\\" \", 1]",
     "[\"\\\" , \",\"\\\\\",\" \\\\\\\" \",1]"},
    {"[\"never ends , ", "[\"never ends , "},
    {"[\"cut off \\", "[\"cut off \\"},
    {"\"", "\""},
};

START_TEST(compact_json_has_blanks_in_strings_only)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 1, crm_check_pool());
    crm_buf_putc(&buf, '<');
    crm_buf_json_compact(&buf, compacts[_i][0], strlen(compacts[_i][0]));
    crm_buf_putc(&buf, '>');
    holds(&buf, apr_pstrcat(crm_check_pool(), "<", compacts[_i][1], ">",
                            NULL));
}
END_TEST

START_TEST(without_memory_the_process_says_so_and_ends)
{
    char said[200] = "";
    int ends[2], status;
    crm_buf_t buf;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    crm_buf_init(&buf, 0, crm_check_pool());
    child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        crm_buf_grow(&buf, APR_SIZE_MAX);
        _exit(0);
    }
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_int_gt(read(ends[0], said, sizeof(said) - 1), 0);
    ck_assert_str_eq(said, "mod_crmapi: out of memory\n");
    close(ends[0]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("buf");
    TCase *grow = tcase_create("grow"), *json = tcase_create("json");

    tcase_add_test(grow, what_is_added_is_there);
    tcase_add_test(grow, it_grows_and_keeps_what_it_has);
    tcase_add_test(grow, room_is_all_that_was_asked_for);
    tcase_add_test(grow, a_long_text_is_formatted_whole);
    tcase_add_test(grow, formatting_fits_whatever_is_left);
    tcase_add_test(grow, its_memory_is_the_pools);
    tcase_add_test(grow, without_memory_the_process_says_so_and_ends);
    tcase_add_loop_test(json, rfc_8259_strings, 0,
                        COUNT(strings));
    tcase_add_test(json, every_character_comes_back);
    tcase_add_loop_test(json, escapes_at_any_place_of_any_length, 0, 20);
    tcase_add_test(json, json_of_a_constant_has_its_quotes);
    tcase_add_loop_test(json, compact_json_has_blanks_in_strings_only, 0,
                        COUNT(compacts));
    suite_add_tcase(suite, grow);
    suite_add_tcase(suite, json);
    return crm_check_main(suite);
}
