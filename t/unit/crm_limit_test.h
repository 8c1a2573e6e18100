/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_test.h: a block and a clock for the tests of crm_limit.h */
#ifndef CRM_LIMIT_TEST_H
#define CRM_LIMIT_TEST_H

#include <stdio.h>
#include <string.h>

#include "crm_check.h"
#include "crm_limit_block.h"
#include "crm_limit_key.h"
#include "crm_limit_validate.h"

#define SECOND APR_INT64_C(1000000)
#define WINDOW (60 * SECOND)
#define READS 120
#define WRITES 60

static apr_int64_t now;

static inline apr_int64_t fake_clock(void)
{
    return now;
}

static crm_limit_t *block;
static apr_size_t block_size;
static crm_limit_config_t config;

/* Make BLOCK for KEYS keys and rings of READ and WRITE, in memory that is not
 * zero. */
static inline void make_block(apr_uint32_t keys, apr_uint32_t reads,
                              apr_uint32_t writes)
{
    config.keys = keys;
    config.ring[CRM_LIMIT_READ] = reads;
    config.ring[CRM_LIMIT_WRITE] = writes;
    block_size = crm_limit_size(&config);
    ck_assert(block_size != 0);
    block = malloc(block_size);
    ck_assert_ptr_nonnull(block);
    memset(block, 0xa5, block_size);
    ck_assert_ptr_null(crm_limit_init(block, block_size, &config,
                                      crm_check_pool()));
}

static inline void setup(void)
{
    now = 1000 * SECOND;
    crm_limit_set_clock(fake_clock);
    make_block(4, READS, WRITES);
}

static inline void teardown(void)
{
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    free(block);
}

/* Return key number N of REALM. */
static inline crm_limit_key_t key_of(int n, apr_uint32_t realm)
{
    crm_limit_key_t key;

    memset(&key, 0, sizeof(key));
    memset(key.hash, n, sizeof(key.hash));
    key.hash[31] = (unsigned char)(n >> 8);
    key.realm = realm;
    snprintf(key.key_id, sizeof(key.key_id), "id of key %d", n);
    snprintf(key.workspace_id, sizeof(key.workspace_id), "workspace %u", realm);
    snprintf(key.slug, sizeof(key.slug), "slug-%d-%u", n, realm);
    return key;
}

static inline int add(int n)
{
    crm_limit_key_t key = key_of(n, 0);

    return crm_limit_add(block, &key, NULL);
}

static inline int find(int n)
{
    crm_limit_key_t key = key_of(n, 0);

    return crm_limit_find(NULL, block, key.hash, 0);
}

static inline void forget(int n)
{
    crm_limit_key_t key = key_of(n, 0);

    crm_limit_forget(block, key.hash, 0);
}

static inline crm_limit_verdict_t admit(int n, crm_limit_class_t class,
                                        apr_uint32_t limit)
{
    crm_limit_key_t key = key_of(n, 0);
    crm_limit_verdict_t verdict;

    crm_limit_admit(&verdict, NULL, block, key.hash, 0, class, limit, 0);
    return verdict;
}

/* A read of key 1 with the vhost's LIMIT and CEILING. */
static inline crm_limit_verdict_t read_ceiling(apr_uint32_t limit,
                                               apr_uint32_t ceiling)
{
    crm_limit_key_t key = key_of(1, 0);
    crm_limit_verdict_t verdict;

    crm_limit_admit(&verdict, NULL, block, key.hash, 0, CRM_LIMIT_READ, limit,
                    ceiling);
    return verdict;
}

/* A read of key 1. */
static inline crm_limit_verdict_t read_1(apr_uint32_t limit)
{
    return admit(1, CRM_LIMIT_READ, limit);
}

static inline crm_limit_stats_t stats(void)
{
    crm_limit_stats_t result;

    crm_limit_stats(&result, block);
    return result;
}

/* Is key N there? Unlike find(), this does not count as a use. */
static inline int is_there(int n)
{
    crm_limit_key_t key = key_of(n, 0);

    return crm_chain_find(block, crm_bucket_of(block, key.hash, 0), key.hash,
                          0) != 0;
}

static apr_uint32_t random_state = 1;

/* Return a number below BOUND of a sequence that is the same every time. */
static inline apr_uint32_t random_below(apr_uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % bound;
}

/* Return a step of the clock: often none or tiny, sometimes hours. */
static inline apr_int64_t random_step(void)
{
    switch (random_below(8)) {
    case 0: case 1: case 2:
        return 0;
    case 3:
        return 1;
    case 4: case 5:
        return random_below(5 * SECOND);
    case 6:
        return random_below(50) ? random_below(WINDOW)
                                : WINDOW - 1 + random_below(3);
    default:
        return random_below(200) ? 0
               : (APR_INT64_C(1) << 32) - WINDOW + random_below(2 * WINDOW);
    }
}

/* Return the exit code of a program that runs TCASE. */
static inline int run_limit_tests(TCase *tcase)
{
    Suite *suite = suite_create("limit");

    crm_check_pool();
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}

#endif /* CRM_LIMIT_TEST_H */
