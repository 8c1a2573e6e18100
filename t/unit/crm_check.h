/* SPDX-License-Identifier: Apache-2.0 */
/* crm_check.h: what every Check program of this suite begins and ends with */
#ifndef CRM_CHECK_H
#define CRM_CHECK_H

#include <stdlib.h>

#include <check.h>
#include <json-c/json.h>

#include "apr_general.h"
#include "apr_pools.h"

#include "crm_array.h"

/* The length of TABLE as Check counts. */
#define COUNT(table) ((int)CRM_NELTS(table))

/* ck_assert_msg() for loops with many rounds. Check marks each of its
   assertions with a system call, this one only a failure. */
#define CRM_CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            ck_abort_msg(__VA_ARGS__); \
        } \
    } while (0)

/* Each test may take two minutes: Check's default of 4 s is too short for
   sanitizers on a busy machine. */
__attribute__((constructor)) static void crm_check_timeout(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "120", 0);
}

/* Return a pool that lives until the test program ends. */
static inline apr_pool_t *crm_check_pool(void)
{
    static apr_pool_t *pool;

    if (!pool) {
        apr_initialize();
        atexit(apr_terminate);
        apr_pool_create(&pool, NULL);
    }
    return pool;
}

/* Return the JSON TEXT, which json_object_put() frees. */
static inline json_object *crm_json(const char *text)
{
    json_object *object = json_tokener_parse(text);

    ck_assert_msg(object != NULL, "%s is no JSON", text);
    return object;
}

/* Run SUITE, printing TAP on stdout; return main()'s exit code. */
static inline int crm_check_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif /* CRM_CHECK_H */
