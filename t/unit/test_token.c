/* SPDX-License-Identifier: Apache-2.0 */
/* test_token.c: signed tokens, forms, HTML */
#include "crm_check.h"

#include <string.h>

#include "crm_form.h"
#include "crm_html.h"
#include "crm_token.h"

#define W "01234567-89ab-4cde-8f01-23456789abcd"
#define S "fedcba98-7654-4321-8fed-cba987654321"
#define O "00000000-0000-4000-8000-000000000001"

/* A signature as the database writes it. */
#define MAC "\\x00112233445566778899aabbccddeeff" \
    "ffeeddccbbaa99887766554433221100"

/* Return the token of HEAD. */
static const char *text_of(const char *head)
{
    return crm_token_text(head, MAC, crm_check_pool());
}

/* TEXT has the parts HEAD and MAC. */
static void has_parts(const char *text, const char *head)
{
    const char *parts[2];

    crm_token_parts(&parts[0], &parts[1], text, crm_check_pool());
    ck_assert_str_eq(parts[0], head);
    ck_assert_str_eq(parts[1], MAC);
}

START_TEST(a_token_says_what_it_was_made_of)
{
    const char *head = crm_token_review(W, S, O, 1900000000,
                                        crm_check_pool());
    const char *text = text_of(head);
    crm_token_t token;

    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strlen(text), CRM_TOKEN_LEN);
    ck_assert_uint_eq(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "abcdefghijklmnopqrstuvwxyz0123456789-_"), CRM_TOKEN_LEN);
    ck_assert(crm_token_read(&token, text, strlen(text)));
    ck_assert_int_eq(token.purpose, CRM_TOKEN_REVIEW);
    ck_assert_str_eq(token.workspace_id, W);
    ck_assert_str_eq(token.subject_id, S);
    ck_assert_str_eq(token.other_id, O);
    ck_assert_int_eq(token.expires, 1900000000);
    has_parts(text, head);
}
END_TEST

START_TEST(a_token_to_unsubscribe_never_expires)
{
    const char *head = crm_token_unsubscribe(W, S, crm_check_pool());
    const char *text = text_of(head);
    crm_token_t token;

    ck_assert(crm_token_read(&token, text, strlen(text)));
    ck_assert_int_eq(token.purpose, CRM_TOKEN_UNSUBSCRIBE);
    ck_assert_str_eq(token.subject_id, S);
    ck_assert_str_eq(token.other_id, "");
    ck_assert_int_eq(token.expires, 0);
    ck_assert(!crm_token_expired(&token, APR_INT64_MAX));
    has_parts(text, head);
}
END_TEST

START_TEST(a_visitor_is_one_of_an_agent)
{
    const char *head = crm_token_visitor(W, S, O, 1900000000,
                                         crm_check_pool());
    const char *text = text_of(head);
    crm_token_t token;

    ck_assert(crm_token_read(&token, text, strlen(text)));
    ck_assert_int_eq(token.purpose, CRM_TOKEN_VISITOR);
    ck_assert_str_eq(token.workspace_id, W);
    ck_assert_str_eq(token.subject_id, S);
    ck_assert_str_eq(token.other_id, O);
    ck_assert_int_eq(token.expires, 1900000000);
    has_parts(text, head);
    ck_assert_ptr_null(crm_token_visitor(W, S, "x", 1,
                                         crm_check_pool()));
}
END_TEST

START_TEST(it_expires_at_its_second)
{
    crm_token_t token;

    memset(&token, 0, sizeof(token));
    token.expires = 1000;
    ck_assert(!crm_token_expired(&token, apr_time_from_sec(1000) - 1));
    ck_assert(crm_token_expired(&token, apr_time_from_sec(1000)));
}
END_TEST

/* Any other character at any place: no token, or another one. */
START_TEST(no_character_can_be_changed)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "abcdefghijklmnopqrstuvwxyz0123456789-_+/=.% ";
    const char *head = crm_token_review(W, S, O, 1, crm_check_pool());
    const char *text = text_of(head), *parts[2];
    char other[CRM_TOKEN_LEN + 1];
    crm_token_t token;
    int tried = 0;

    for (int i = 0; i < CRM_TOKEN_LEN; i++) {
        for (const char *c = alphabet; *c; c++) {
            memcpy(other, text, sizeof(other));
            if (other[i] == *c) {
                continue;
            }
            other[i] = *c;
            tried++;
            if (crm_token_read(&token, other, CRM_TOKEN_LEN)) {
                crm_token_parts(&parts[0], &parts[1], other,
                                crm_check_pool());
                ck_assert_msg(strcmp(parts[0], head) || strcmp(parts[1], MAC),
                              "place %d may be '%c'", i, *c);
            }
        }
    }
    ck_assert_int_ge(tried, CRM_TOKEN_LEN * 63);
}
END_TEST

START_TEST(another_length_is_no_token)
{
    const char *text = text_of(crm_token_unsubscribe(W, S,
                                                     crm_check_pool()));
    char longer[CRM_TOKEN_LEN + 5];
    crm_token_t token;

    strcpy(longer, text);
    strcat(longer, "AAAA");
    for (apr_size_t len = 0; len <= strlen(longer); len++) {
        ck_assert_int_eq(crm_token_read(&token, longer, len),
                         len == CRM_TOKEN_LEN);
    }
    longer[5] = '\0';
    ck_assert(!crm_token_read(&token, longer, CRM_TOKEN_LEN));
}
END_TEST

/* A token for one thing is none for another: its purpose is signed, too. */
START_TEST(purposes_are_apart)
{
    crm_token_t token;
    const char *heads[4];

    memset(&token, 0, sizeof(token));
    strcpy(token.workspace_id, W);
    strcpy(token.subject_id, S);
    for (int i = 0; i < 4; i++) {
        token.purpose = (crm_token_purpose_t)(CRM_TOKEN_REVIEW + i);
        heads[i] = crm_token_head(&token, crm_check_pool());
        ck_assert_uint_eq(strlen(heads[i]), 2 + 2 * 58);
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(heads[i], heads[j]);
        }
    }
}
END_TEST

START_TEST(without_a_signature_there_is_no_token)
{
    const char *head = crm_token_unsubscribe(W, S, crm_check_pool());
    static const char *const bad[] = {
        NULL, "", "\\x", MAC "00", &MAC[1], "\\x00112233445566778899aabbccddee"
        "ffffeeddccbbaa9988776655443322110g"
    };

    ck_assert_ptr_null(text_of(NULL));
    ck_assert_ptr_null(text_of(MAC));
    for (size_t i = 0; i < CRM_NELTS(bad); i++) {
        ck_assert_ptr_null(crm_token_text(head, bad[i], crm_check_pool()));
    }
}
END_TEST

START_TEST(what_is_no_id_makes_no_token)
{
    static const char *const bad[] = {"", "x", "01234567-89ab-4cde-8f01",
        W "0", "0123456789ab4cde8f0123456789abcd"};
    crm_token_t token;

    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_null(crm_token_unsubscribe(bad[i], S,
                                                 crm_check_pool()));
        ck_assert_ptr_null(crm_token_unsubscribe(W, bad[i],
                                                 crm_check_pool()));
        ck_assert_ptr_null(crm_token_review(W, S, bad[i], 1,
                                            crm_check_pool()));
    }
    ck_assert_ptr_null(crm_token_review(W, S, O, -1, crm_check_pool()));
    memset(&token, 0, sizeof(token));
    ck_assert_ptr_null(crm_token_head(&token, crm_check_pool()));
}
END_TEST

START_TEST(a_form_is_bound_to_its_page)
{
    char a[CRM_UUID_LEN + 1], b[CRM_UUID_LEN + 1], id[CRM_UUID_LEN + 1];

    crm_token_bind(a, "page one");
    crm_token_bind(b, "page two");
    ck_assert_str_ne(a, b);
    ck_assert(crm_uuid_parse(id, a, CRM_UUID_LEN));
    crm_token_bind(b, "page one");
    ck_assert_str_eq(a, b);
}
END_TEST

/* --- forms ---------------------------------------------------------------- */

#define URL "application/x-www-form-urlencoded"
#define PARTS "multipart/form-data; boundary=xYz"
#define PART(name, value) "--xYz\r\nContent-Disposition: form-data; " \
    "name=\"" name "\"\r\n\r\n" value "\r\n"

static const struct {
    const char *type;
    const char *body;
    const char *value;          /* of the field "a"; NULL: it is refused */
} forms[] = {
    {URL, "a=1", "1"},
    {URL "; charset=UTF-8", "b=2&a=x+y%21&c", "x y!"},
    {"Application/X-WWW-Form-Urlencoded", "a=%C3%A4", "\xc3\xa4"},
    {URL, "a=", ""},
    {URL, "a=1&a=2", NULL},
    {URL, "a=1&b=%zz", NULL},
    {URL, "a=1&b=%00", NULL},
    {URL, "a=1&b=%ff", NULL},
    {URL, "a=\xff", NULL},
    {NULL, "a=1", NULL},
    {"application/json", "a=1", NULL},
    {URL "x", "a=1", NULL},
    {"text/plain", "a=1", NULL},
    {PARTS, PART("a", "1") "--xYz--\r\n", "1"},
    {PARTS, PART("b", "") PART("a", "x\r\ny=%41&") "--xYz--", "x\r\ny=%41&"},
    {"multipart/form-data; boundary=\"xYz\"", PART("a", "1") "--xYz--", "1"},
    {PARTS, PART("a", "1"), NULL},
    {PARTS, PART("a", "1") PART("a", "2") "--xYz--\r\n", NULL},
    {PARTS, "", NULL},
    {PARTS, "--xYz\r\nContent-Type: text/plain\r\n\r\n1\r\n--xYz--", NULL},
    {PARTS, "--xYz\r\n\r\n--xYz--", NULL},
    {PARTS, "--xYz", NULL},
    {PARTS, "--xYz\r\n--xYz--", NULL},
    {"multipart/form-data", PART("a", "1") "--xYz--\r\n", NULL},
    {"multipart/form-data; boundary=", PART("a", "1") "--xYz--", NULL},
    {PARTS, "--xYz\r\nContent-Disposition: form-data; name=\"a\"; "
     "filename=\"f\"\r\n\r\n1\r\n--xYz--", NULL},
};

#define MAX 1000                /* fields */

START_TEST(forms_are_read_strictly)
{
    apr_array_header_t *fields;
    crm_error_t *error = crm_form_parse(&fields, forms[_i].body,
                                        strlen(forms[_i].body),
                                        forms[_i].type, MAX,
                                        crm_check_pool());

    if (!error) {
        error = crm_form_once(fields, crm_check_pool());
    }
    ck_assert_msg(!error == !!forms[_i].value, "%s", forms[_i].body);
    if (!error) {
        ck_assert_pstr_eq(crm_form_get(fields, "a"), forms[_i].value);
        ck_assert_ptr_null(crm_form_get(fields, "A"));
    }
}
END_TEST

START_TEST(a_form_has_a_number_of_fields)
{
    apr_array_header_t *fields;
    crm_buf_t body;

    crm_buf_init(&body, 1, crm_check_pool());
    for (int i = 0; i < MAX; i++) {
        crm_buf_printf(&body, "n%d=&", i);
    }
    ck_assert_ptr_null(crm_form_parse(&fields, body.data, body.len, URL,
                                      MAX, crm_check_pool()));
    ck_assert_int_eq(fields->nelts, MAX);
    crm_buf_puts(&body, "one+more");
    ck_assert_ptr_nonnull(crm_form_parse(&fields, body.data, body.len, URL,
                                         MAX, crm_check_pool()));
}
END_TEST

START_TEST(a_nul_is_refused)
{
    apr_array_header_t *fields;

    ck_assert_ptr_nonnull(crm_form_parse(&fields, "a=1\0b", 5, URL,
                                         MAX, crm_check_pool()));
}
END_TEST

START_TEST(line_ends_become_one_kind)
{
    ck_assert_str_eq(crm_form_lines("a\r\nb\rc\n\r\n\r", crm_check_pool()),
                     "a\nb\nc\n\n\n");
    ck_assert_str_eq(crm_form_lines("", crm_check_pool()), "");
}
END_TEST

START_TEST(html_is_escaped)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 1, crm_check_pool());
    crm_html_put(&buf, "<p a=\"", "\"'><&\r\n\xc3\xa4", "\">", "", "<br>",
                 NULL);
    crm_html_text(&buf, NULL);
    crm_buf_putc(&buf, '\0');
    ck_assert_str_eq(buf.data, "<p a=\"&quot;&#39;&gt;&lt;&amp;&#13;\n"
                     "\xc3\xa4\"><br>");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("token");
    TCase *token = tcase_create("token"), *form = tcase_create("form");

    tcase_add_test(token, a_token_says_what_it_was_made_of);
    tcase_add_test(token, a_token_to_unsubscribe_never_expires);
    tcase_add_test(token, a_visitor_is_one_of_an_agent);
    tcase_add_test(token, it_expires_at_its_second);
    tcase_add_test(token, no_character_can_be_changed);
    tcase_add_test(token, another_length_is_no_token);
    tcase_add_test(token, purposes_are_apart);
    tcase_add_test(token, what_is_no_id_makes_no_token);
    tcase_add_test(token, without_a_signature_there_is_no_token);
    tcase_add_test(token, a_form_is_bound_to_its_page);
    tcase_add_loop_test(form, forms_are_read_strictly, 0,
                        COUNT(forms));
    tcase_add_test(form, a_form_has_a_number_of_fields);
    tcase_add_test(form, a_nul_is_refused);
    tcase_add_test(form, line_ends_become_one_kind);
    tcase_add_test(form, html_is_escaped);
    suite_add_tcase(suite, token);
    suite_add_tcase(suite, form);
    return crm_check_main(suite);
}
