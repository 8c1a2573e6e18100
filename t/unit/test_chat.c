/* SPDX-License-Identifier: Apache-2.0 */
/* test_chat.c: origins, cursors, ids, tokens of chats; the script as served */
#include "crm_check.h"

#include <string.h>

#include "chat_script.h"
#include "intake_chat_parts.h"

#define W "01234567-89ab-4cde-8f01-23456789abcd"
#define V "fedcba98-7654-4321-8fed-cba987654321"
#define A "00000000-0000-4000-8000-000000000001"
#define NONE "00000000-0000-0000-0000-000000000000"

/* --- cursors -------------------------------------------------------------- */

START_TEST(the_beginning_has_three_spellings)
{
    static const char *const texts[] = {NULL, "", "0"};
    crm_chat_cursor_t cursor;

    for (int i = 0; i < 3; i++) {
        memset(&cursor, 1, sizeof(cursor));
        ck_assert(crm_chat_cursor_read(&cursor, texts[i]));
        ck_assert_int_eq(cursor.ms, 0);
        ck_assert_str_eq(cursor.id, NONE);
        ck_assert_int_eq(cursor.near_count, 0);
    }
}
END_TEST

START_TEST(a_cursor_says_what_it_was_made_of)
{
    crm_chat_cursor_t cursor = {APR_INT64_C(1795226400123), V, 17}, again;
    char text[CRM_CHAT_CURSOR_SIZE];

    crm_chat_cursor_write(text, &cursor);
    ck_assert_str_eq(text, "1795226400123." V ".17");
    ck_assert(crm_chat_cursor_read(&again, text));
    ck_assert_int_eq(again.ms, cursor.ms);
    ck_assert_str_eq(again.id, V);
    ck_assert_int_eq(again.near_count, 17);
    cursor.ms = 0;
    memcpy(cursor.id, NONE, sizeof(NONE));
    cursor.near_count = 0;
    crm_chat_cursor_write(text, &cursor);
    ck_assert(crm_chat_cursor_read(&again, text));
}
END_TEST

static const char *const no_cursors[] = {
    "1", "x", "-1." V ".0", "1." V, "1." V ".", "1." V ".x", "1." V ".1x",
    "1." V ".-1", "1." V "0.1", "1.x.1", "." V ".1", "1." V ".1 ",
    "4102444800001." V ".1", "99999999999999999999999999." V ".1",
    "1." V ".1000001", "1." V ".99999999999999999999", "1.", "00",
};

START_TEST(what_is_no_cursor_is_refused)
{
    crm_chat_cursor_t cursor;

    ck_assert_msg(!crm_chat_cursor_read(&cursor, no_cursors[_i]), "\"%s\"",
                  no_cursors[_i]);
}
END_TEST

/* --- origins -------------------------------------------------------------- */

static const struct {
    const char *origin;
    const char *allowed;        /* one, or NULL: the list is empty */
    int ok;
} origins[] = {
    {NULL, NULL, 1},
    {"https://crm.example.com", NULL, 1},
    {"https://CRM.example.com", NULL, 1},
    {"http://crm.example.com", NULL, 0},
    {"https://crm.example.com:8443", NULL, 0},
    {"https://crm.example.com.evil.example", NULL, 0},
    {"https://evil.example", NULL, 0},
    {"https://front.example", NULL, 1},
    {"https://www.example.com", "https://www.example.com", 1},
    {"https://www.example.com", "https://WWW.example.com", 1},
    {"http://www.example.com", "https://www.example.com", 0},
    {"https://www.example.com:444", "https://www.example.com", 0},
    {"https://xwww.example.com", "https://www.example.com", 0},
    {"https://www.example.co", "https://www.example.com", 0},
    {"https://www.example.com/", "https://www.example.com", 0},
    {"null", NULL, 0},
    {"null", "https://www.example.com", 0},
    {"", "https://www.example.com", 0},
    {"https", NULL, 0},
    {"null", "*", 1},
    {"https://any.example", "*", 1},
    {"https://any.example", "https://*.example", 0},
};

START_TEST(origins_that_may)
{
    apr_array_header_t *allowed = apr_array_make(crm_check_pool(), 2,
                                                 sizeof(const char *));

    if (origins[_i].allowed) {
        APR_ARRAY_PUSH(allowed, const char *) = "https://other.example";
        APR_ARRAY_PUSH(allowed, const char *) = origins[_i].allowed;
    }
    ck_assert_msg(crm_chat_origin_ok(origins[_i].origin, allowed, "https",
                                     "crm.example.com",
                                     "https://front.example")
                  == origins[_i].ok, "%s", origins[_i].origin);
    ck_assert(!crm_chat_origin_ok("https://", allowed, "https", NULL, NULL)
              || (origins[_i].allowed && !strcmp(origins[_i].allowed, "*")));
}
END_TEST

/* --- ids and tokens ------------------------------------------------------- */

START_TEST(ids_of_messages)
{
    char id[66];

    memset(id, 'x', sizeof(id));
    id[65] = '\0';
    ck_assert(!crm_chat_id_ok(id));
    id[64] = '\0';
    ck_assert(crm_chat_id_ok(id));
    ck_assert(crm_chat_id_ok("a-Z_09"));
    ck_assert(!crm_chat_id_ok(""));
    ck_assert(!crm_chat_id_ok("a:b"));
    ck_assert(!crm_chat_id_ok("a b"));
    ck_assert(!crm_chat_id_ok("\xc3\xa4"));
}
END_TEST

START_TEST(a_token_is_for_one_agent)
{
    crm_token_t token;

    memset(&token, 0, sizeof(token));
    token.purpose = CRM_TOKEN_VISITOR;
    strcpy(token.workspace_id, W);
    strcpy(token.subject_id, V);
    strcpy(token.other_id, A);
    token.expires = 1000;
    ck_assert(crm_chat_token_ok(&token, W, A, apr_time_from_sec(999)));
    ck_assert(!crm_chat_token_ok(&token, W, A, apr_time_from_sec(1000)));
    ck_assert(!crm_chat_token_ok(&token, W, V, apr_time_from_sec(999)));
    ck_assert(!crm_chat_token_ok(&token, A, A, apr_time_from_sec(999)));
    token.purpose = CRM_TOKEN_REVIEW;
    ck_assert(!crm_chat_token_ok(&token, W, A, apr_time_from_sec(999)));
}
END_TEST

/* --- the script ----------------------------------------------------------- */

START_TEST(the_script_is_small)
{
    ck_assert_uint_lt(crm_chat_script_len, 15360);
    ck_assert_int_eq(memcmp(crm_chat_script, "// SPDX-License-Identifier: ",
                            28), 0);
    ck_assert_uint_eq(strlen(crm_chat_script_etag), 34);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chat");
    TCase *chat = tcase_create("chat");

    tcase_add_test(chat, the_beginning_has_three_spellings);
    tcase_add_test(chat, a_cursor_says_what_it_was_made_of);
    tcase_add_loop_test(chat, what_is_no_cursor_is_refused, 0,
                        COUNT(no_cursors));
    tcase_add_loop_test(chat, origins_that_may, 0,
                        COUNT(origins));
    tcase_add_test(chat, ids_of_messages);
    tcase_add_test(chat, a_token_is_for_one_agent);
    tcase_add_test(chat, the_script_is_small);
    suite_add_tcase(suite, chat);
    return crm_check_main(suite);
}
