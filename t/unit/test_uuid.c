/* SPDX-License-Identifier: Apache-2.0 */
/* test_uuid.c: ids (contract 9.1, RFC 9562) */
#include "crm_check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_uuid.h"

#define MANY 20000
#define THREADS 4

static char ids[THREADS * MANY][CRM_UUID_LEN + 1];

START_TEST(rfc_9562_form_version_and_variant)
{
    char id[CRM_UUID_LEN + 1], parsed[CRM_UUID_LEN + 1];

    for (int i = 0; i < 1000; i++) {
        memset(id, 'x', sizeof(id));
        crm_uuid_v7(id);
        ck_assert_uint_eq(strlen(id), CRM_UUID_LEN);
        ck_assert_msg(crm_uuid_parse(parsed, id, CRM_UUID_LEN), "%s", id);
        ck_assert_str_eq(parsed, id);
        ck_assert_msg(id[14] == '7', "version of %s", id);
        ck_assert_msg(strchr("89ab", id[19]), "variant of %s", id);
    }
}
END_TEST

/* Return the milliseconds in ID. */
static apr_time_t millis_of(const char *id)
{
    char *hex = apr_pstrcat(crm_check_pool(),
                            apr_pstrmemdup(crm_check_pool(), id, 8),
                            apr_pstrmemdup(crm_check_pool(), id + 9, 4),
                            NULL);

    return (apr_time_t)strtoll(hex, NULL, 16);
}

START_TEST(rfc_9562_begins_with_the_time)
{
    apr_time_t before, after;
    char id[CRM_UUID_LEN + 1];

    before = apr_time_now() / 1000;
    crm_uuid_v7(id);
    after = apr_time_now() / 1000;
    ck_assert_msg(millis_of(id) >= before && millis_of(id) <= after,
                  "%s was made between %" APR_TIME_T_FMT " and %"
                  APR_TIME_T_FMT, id, before, after);
}
END_TEST

START_TEST(ids_of_a_process_grow)
{
    for (int i = 0; i < MANY; i++) {
        crm_uuid_v7(ids[i]);
        ck_assert_msg(!i || strcmp(ids[i - 1], ids[i]) < 0, "%s then %s",
                      ids[i - 1], ids[i]);
    }
    /* the counter may run ahead of the clock, but not far */
    ck_assert_int_lt(millis_of(ids[MANY - 1]) - apr_time_now() / 1000, 1000);
}
END_TEST

static void *make_ids(void *from)
{
    char (*mine)[CRM_UUID_LEN + 1] = from;

    for (int i = 0; i < MANY; i++) {
        crm_uuid_v7(mine[i]);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Fail if two of the COUNT ids are equal. */
static void all_differ(size_t count)
{
    qsort(ids, count, sizeof(*ids), compare);
    for (size_t i = 1; i < count; i++) {
        ck_assert_msg(strcmp(ids[i - 1], ids[i]) != 0, "%s twice", ids[i]);
    }
}

START_TEST(ids_of_threads_differ_and_grow)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_ids,
                                        ids[(size_t)i * MANY]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 1; i < THREADS * MANY; i++) {
        ck_assert_msg(i % MANY == 0 || strcmp(ids[i - 1], ids[i]) < 0,
                      "%s then %s", ids[i - 1], ids[i]);
    }
    all_differ(THREADS * (size_t)MANY);
}
END_TEST

#define EACH 2000

/* Write EACH ids to the pipe's end FD. */
static void write_ids(int fd)
{
    FILE *out = fdopen(fd, "w");

    for (int i = 0; i < EACH; i++) {
        crm_uuid_v7(ids[1]);
        fwrite(ids[1], sizeof(*ids), 1, out);
    }
    fclose(out);
}

START_TEST(ids_of_forked_processes_differ)
{
    FILE *in[THREADS];
    size_t got = 0;

    crm_uuid_v7(ids[0]);                /* what the children inherit */
    for (int i = 0; i < THREADS; i++) {
        int pipes[2];

        ck_assert_int_eq(pipe(pipes), 0);
        if (!fork()) {
            write_ids(pipes[1]);
            _exit(0);
        }
        close(pipes[1]);
        in[i] = fdopen(pipes[0], "r");
    }
    for (int i = 0; i < THREADS; i++) {
        got += fread(ids[got], sizeof(*ids), EACH, in[i]);
        fclose(in[i]);
        wait(NULL);
    }
    ck_assert_uint_eq(got, THREADS * EACH);
    all_differ(got);
}
END_TEST

START_TEST(any_uuid_is_read)
{
    static const char *const good[] = {
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "0193527c-89ab-7def-8123-456789abcdef",
        "550e8400-e29b-41d4-a716-446655440000",
    };
    char out[CRM_UUID_LEN + 1];

    for (int i = 0; i < 4; i++) {
        ck_assert_msg(crm_uuid_parse(out, good[i], CRM_UUID_LEN), "%s",
                      good[i]);
        ck_assert_str_eq(out, good[i]);
    }
    ck_assert(crm_uuid_parse(out, "0193527C-89AB-7DEF-8123-456789aBcDeF",
                             CRM_UUID_LEN));
    ck_assert_str_eq(out, "0193527c-89ab-7def-8123-456789abcdef");
}
END_TEST

static const char *const bad[] = {
    "", "x", "0193527c", "0193527c-89ab-7def-8123-456789abcde",
    "0193527c-89ab-7def-8123-456789abcdef0",
    "0193527c-89ab-7def-8123-456789abcdeg",
    "0193527c-89ab-7def-8123-456789abcde ",
    " 193527c-89ab-7def-8123-456789abcdef",
    "0193527c_89ab_7def_8123_456789abcdef",
    "0193527c-89ab-7def-81234-56789abcdef",
    "0193527-c89ab-7def-8123-456789abcdef",
    "0193527c89ab7def8123456789abcdef",
    "0193527c089ab07def081230456789abcdef",
    "{193527c-89ab-7def-8123-456789abcde}",
    "{0193527c-89ab-7def-8123-456789abcdef}",
    "urn:uuid:0193527c-89ab-7def-8123-456789abcdef",
    "0193527c-89ab-7def-8123-456789abcd\xc3\xa9",
    "0193527c--9ab-7def-8123-456789abcdef",
    "------------------------------------",
    "0193527c-89ab-7def-8123-456789abcde`",
    "0193527c-89ab-7def-8123-456789abcde@",
    "0193527c-89ab-7def-8123-456789abcde/",
    "0193527c-89ab-7def-8123-456789abcde:",
    "0193527c-89ab-7def-8123-456789abcdeG",
    "' or 1=1 --                         ",
};

START_TEST(nothing_else_is)
{
    apr_size_t len = strlen(bad[_i]);
    char *copy = malloc(len ? len : 1), out[CRM_UUID_LEN + 1];

    memcpy(copy, bad[_i], len);
    ck_assert_msg(!crm_uuid_parse(out, copy, len), "\"%s\" is accepted",
                  bad[_i]);
    free(copy);
}
END_TEST

START_TEST(a_nul_is_no_digit)
{
    char out[CRM_UUID_LEN + 1];
    char text[] = "0193527c-89ab-7def-8123-456789abcdef";

    for (int i = 0; i < CRM_UUID_LEN; i++) {
        char c = text[i];

        text[i] = '\0';
        ck_assert_msg(!crm_uuid_parse(out, text, CRM_UUID_LEN), "at %d", i);
        text[i] = c;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uuid");
    TCase *make = tcase_create("make"), *parse = tcase_create("parse");

    tcase_add_test(make, rfc_9562_form_version_and_variant);
    tcase_add_test(make, rfc_9562_begins_with_the_time);
    tcase_add_test(make, ids_of_a_process_grow);
    tcase_add_test(make, ids_of_threads_differ_and_grow);
    tcase_add_test(make, ids_of_forked_processes_differ);
    tcase_add_test(parse, any_uuid_is_read);
    tcase_add_loop_test(parse, nothing_else_is, 0,
                        COUNT(bad));
    tcase_add_test(parse, a_nul_is_no_digit);
    suite_add_tcase(suite, make);
    suite_add_tcase(suite, parse);
    return crm_check_main(suite);
}
