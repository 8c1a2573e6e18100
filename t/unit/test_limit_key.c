/* SPDX-License-Identifier: Apache-2.0 */
/* test_limit_key.c: the block, and which keys it knows */
#include "crm_limit_key.h"
#include "crm_limit_ring.h"
#include "crm_limit_test.h"

/* --- the block --- */

/* docs/operations.md has these numbers. */
START_TEST(memory_is_as_computed)
{
    crm_limit_config_t usual = {65536, {READS, WRITES}, 0};
    crm_limit_config_t high = {65536, {6000, 3000}, 0};
    crm_limit_config_t odd = {5, {1000, 7}, 0};

    ck_assert_uint_eq(crm_limit_size(&usual),
                      1280 + 65536 * (64 + 8 + 384) + 655360 * 72);
    ck_assert_uint_eq(crm_limit_size(&high), crm_limit_size(&usual));
    /* 8 buckets; 5 times 8 bytes, rounded up to 64; slots; 64 + 2 pieces for
     * each key, their links rounded up. */
    ck_assert_uint_eq(crm_limit_size(&odd), 1280 + 8 * 64 + 64 + 5 * 384
                      + (5 * 66 * 8 + 63) / 64 * 64 + 5 * 66 * 64);
}
END_TEST

/* What is touched, for docs/operations.md. */
START_TEST(memory_that_is_touched)
{
    apr_uint64_t empty, idle, busy;

    free(block);
    make_block(65536, 6000, 3000);
    empty = stats().touched;
    for (int i = 0; i < 65536; i++) {
        add(i);
        admit(i, CRM_LIMIT_READ, READS);
    }
    idle = stats().touched;
    for (int i = 0; i < 1000; i++) {
        for (int request = 0; request < READS; request++) {
            admit(i, CRM_LIMIT_READ, READS);
        }
    }
    busy = stats().touched;
    printf("# MiB: %.1f at start, %.1f with 65536 keys, %.1f with 1000 of them"
           " at their limit\n", (double)empty / 1048576,
           (double)idle / 1048576, (double)busy / 1048576);
    fflush(stdout);
    ck_assert_uint_eq(idle - empty, 65536 * (384 + 72));
    ck_assert_uint_le(busy - idle, 1000 * 8 * 72);
}
END_TEST

START_TEST(nonsense_has_no_size)
{
    crm_limit_config_t no_keys = {0, {READS, WRITES}, 0};
    crm_limit_config_t many_keys = {CRM_LIMIT_KEYS_MAX + 1, {READS, WRITES}, 0};
    crm_limit_config_t all_keys = {APR_UINT32_MAX, {READS, WRITES}, 0};
    crm_limit_config_t long_ring = {16, {READS, CRM_LIMIT_RING_MAX + 1}, 0};
    crm_limit_config_t wrapping = {16, {APR_UINT32_MAX, APR_UINT32_MAX}, 0};
    crm_limit_config_t largest = {CRM_LIMIT_KEYS_MAX,
                                  {CRM_LIMIT_RING_MAX, CRM_LIMIT_RING_MAX}, 0};

    ck_assert_uint_eq(crm_limit_size(&no_keys), 0);
    ck_assert_uint_eq(crm_limit_size(&many_keys), 0);
    ck_assert_uint_eq(crm_limit_size(&all_keys), 0);
    ck_assert_uint_eq(crm_limit_size(&long_ring), 0);
    ck_assert_uint_eq(crm_limit_size(&wrapping), 0);
    if (sizeof(apr_size_t) == 8) {
        ck_assert_uint_gt(crm_limit_size(&largest),
                          APR_UINT64_C(1) << (24 + 9));
    } else {
        ck_assert_uint_eq(crm_limit_size(&largest), 0);
    }
}
END_TEST

START_TEST(init_refuses_what_does_not_fit)
{
    crm_limit_config_t nothing = {0, {1, 1}, 0};
    apr_pool_t *pool = crm_check_pool();

    ck_assert_ptr_nonnull(crm_limit_init(block, block_size - 1, &config, pool));
    ck_assert_ptr_nonnull(crm_limit_init(block, block_size, &nothing, pool));
    ck_assert_ptr_nonnull(crm_limit_init(
        (crm_limit_t *)(void *)((char *)block + 1), block_size, &config, pool));
    ck_assert_ptr_null(crm_limit_init(block, block_size, &config, pool));
}
END_TEST

START_TEST(graceful_restart_reuses_the_block)
{
    crm_limit_config_t other = config;

    ck_assert_pstr_eq(crm_limit_check(block, block_size, &config), NULL);
    ck_assert_pstr_eq(crm_limit_check(block, block_size + 4096, &config), NULL);
    other.ring[CRM_LIMIT_READ] = 10;
    other.ring[CRM_LIMIT_WRITE] = 0;
    ck_assert_pstr_eq(crm_limit_check(block, block_size, &other), NULL);
    other = config;
    other.ring[CRM_LIMIT_WRITE] += CRM_PIECE_TIMES;
    ck_assert_pstr_eq(crm_limit_check(block, block_size, &other),
                      "a limit was raised");
    other = config;
    other.keys++;
    ck_assert_pstr_eq(crm_limit_check(block, block_size, &other),
                      "the number of keys has changed");
    other.keys = config.keys - 1;
    ck_assert_pstr_eq(crm_limit_check(block, block_size, &other),
                      "the number of keys has changed");
    other = config;
    other.evict = 1;
    ck_assert_pstr_eq(crm_limit_check(block, block_size, &other),
                      "eviction of keys was switched on or off");
}
END_TEST

START_TEST(check_refuses_foreign_memory)
{
    crm_limit_t *copy = malloc(block_size);

    ck_assert_pstr_ne(crm_limit_check(block, block_size - 1, &config), NULL);
    ck_assert_pstr_ne(crm_limit_check(block, 8, &config), NULL);
    memset(copy, 0, block_size);
    ck_assert_pstr_ne(crm_limit_check(copy, block_size, &config), NULL);
    memcpy(copy, block, block_size);
    copy->version++;
    ck_assert_pstr_ne(crm_limit_check(copy, block_size, &config), NULL);
    memcpy(copy, block, block_size);
    copy->layout.times += 64;
    ck_assert_pstr_ne(crm_limit_check(copy, block_size, &config), NULL);
    free(copy);
}
END_TEST

/* --- keys --- */

START_TEST(unknown_key_is_unknown_and_charges_nothing)
{
    crm_limit_key_t key = key_of(1, 0), untouched = key_of(2, 7), out;
    crm_limit_verdict_t verdict;

    memcpy(&out, &untouched, sizeof(out));
    ck_assert_int_eq(crm_limit_find(&out, block, key.hash, 0), 0);
    crm_limit_admit(&verdict, &out, block, key.hash, 0, CRM_LIMIT_READ, READS, 0);
    ck_assert_int_eq(verdict.known, 0);
    ck_assert_int_eq(verdict.admitted, 0);
    ck_assert_int_eq(verdict.touch, 0);
    ck_assert_mem_eq(&out, &untouched, sizeof(out));
    ck_assert_uint_eq(stats().admitted[CRM_LIMIT_READ], 0);
    ck_assert_uint_eq(stats().refused[CRM_LIMIT_READ], 0);
    ck_assert_uint_eq(stats().slots, 0);
}
END_TEST

START_TEST(known_key_is_told)
{
    crm_limit_key_t key = key_of(1, 0), out;
    crm_limit_verdict_t verdict;

    ck_assert_int_eq(crm_limit_add(block, &key, NULL), CRM_LIMIT_ADDED);
    memset(&out, 0, sizeof(out));
    ck_assert_int_eq(crm_limit_find(&out, block, key.hash, 0), 1);
    ck_assert_mem_eq(&out, &key, sizeof(key));
    memset(&out, 0, sizeof(out));
    crm_limit_admit(&verdict, &out, block, key.hash, 0, CRM_LIMIT_READ, READS, 0);
    ck_assert_int_eq(verdict.known, 1);
    ck_assert_mem_eq(&out, &key, sizeof(key));
    /* The hash may lie in what is written. */
    crm_limit_admit(&verdict, &out, block, out.hash, 0, CRM_LIMIT_READ, READS, 0);
    ck_assert_uint_eq(verdict.remaining, READS - 2);
    ck_assert_mem_eq(&out, &key, sizeof(key));
}
END_TEST

START_TEST(find_charges_nothing)
{
    int i;

    add(1);
    for (i = 0; i < 1000; i++) {
        ck_assert_int_eq(find(1), 1);
    }
    ck_assert_uint_eq(read_1(READS).remaining, READS - 1);
}
END_TEST

START_TEST(adding_twice_keeps_slot_and_budget)
{
    ck_assert_int_eq(add(1), CRM_LIMIT_ADDED);
    ck_assert_uint_eq(read_1(READS).remaining, READS - 1);
    ck_assert_int_eq(add(1), CRM_LIMIT_ADDED);
    ck_assert_uint_eq(read_1(READS).remaining, READS - 2);
    ck_assert_uint_eq(stats().slots, 1);
}
END_TEST

START_TEST(same_hash_in_two_realms_is_two_keys)
{
    crm_limit_key_t a = key_of(1, 10), b = key_of(1, 11), out;
    crm_limit_verdict_t verdict;

    crm_limit_add(block, &a, NULL);
    ck_assert_int_eq(crm_limit_find(NULL, block, b.hash, 11), 0);
    crm_limit_add(block, &b, NULL);
    ck_assert_int_eq(crm_limit_find(&out, block, a.hash, 10), 1);
    ck_assert_str_eq(out.workspace_id, "workspace 10");
    ck_assert_int_eq(crm_limit_find(&out, block, a.hash, 11), 1);
    ck_assert_str_eq(out.workspace_id, "workspace 11");
    crm_limit_admit(&verdict, NULL, block, a.hash, 10, CRM_LIMIT_READ, 1, 0);
    ck_assert_int_eq(verdict.admitted, 1);
    crm_limit_admit(&verdict, NULL, block, a.hash, 11, CRM_LIMIT_READ, 1, 0);
    ck_assert_int_eq(verdict.admitted, 1);
    crm_limit_forget(block, a.hash, 10);
    ck_assert_int_eq(crm_limit_find(NULL, block, a.hash, 10), 0);
    ck_assert_int_eq(crm_limit_find(NULL, block, a.hash, 11), 1);
}
END_TEST

START_TEST(hashes_differ_in_every_byte)
{
    crm_limit_key_t key = key_of(1, 0);
    int i;

    crm_limit_add(block, &key, NULL);
    for (i = 0; i < 32; i++) {
        key.hash[i] ^= 1;
        ck_assert_msg(!crm_limit_find(NULL, block, key.hash, 0),
                      "byte %d does not matter", i);
        key.hash[i] ^= 1;
    }
}
END_TEST

START_TEST(forgotten_key_is_unknown_and_its_slot_free)
{
    int i;

    for (i = 1; i <= 4; i++) {
        ck_assert_int_eq(add(i), CRM_LIMIT_ADDED);
    }
    ck_assert_int_eq(add(5), CRM_LIMIT_FULL);
    forget(3);
    forget(3);
    forget(99);
    ck_assert_int_eq(find(3), 0);
    ck_assert_uint_eq(stats().slots, 3);
    ck_assert_int_eq(add(5), CRM_LIMIT_ADDED);
    ck_assert_int_eq(add(6), CRM_LIMIT_FULL);
    ck_assert_uint_eq(stats().slots, 4);
}
END_TEST

START_TEST(contract_4_5_full_table_reuses_what_is_idle_for_60_s)
{
    int i;

    for (i = 1; i <= 4; i++) {
        add(i);
        now += SECOND;
    }
    /* 1, used at 0 s, is kept by being looked for; 2, used at 1 s, is not. */
    now += 30 * SECOND;
    ck_assert_int_eq(find(1), 1);
    now += 27 * SECOND - 1;     /* 2 was used 60 s - 1 us ago */
    ck_assert_int_eq(add(5), CRM_LIMIT_FULL);
    ck_assert_int_eq(add(5), CRM_LIMIT_FULL);
    ck_assert_uint_eq(stats().full, 2);
    now += 1;
    ck_assert_int_eq(add(5), CRM_LIMIT_ADDED);
    ck_assert_int_eq(find(2), 0);
    ck_assert_int_eq(find(1) + find(3) + find(4) + find(5), 4);
    ck_assert_int_eq(add(2), CRM_LIMIT_FULL);
}
END_TEST

START_TEST(contract_4_5_refused_requests_are_uses_too)
{
    int i;

    for (i = 1; i <= 4; i++) {
        add(i);
        admit(i, CRM_LIMIT_READ, 1);
    }
    now += WINDOW - 1;
    ck_assert_int_eq(read_1(1).admitted, 0);
    now += 1;
    for (i = 5; i <= 7; i++) {
        ck_assert_int_eq(add(i), CRM_LIMIT_ADDED);
    }
    ck_assert_int_eq(add(8), CRM_LIMIT_FULL);
    ck_assert_int_eq(is_there(1), 1);
}
END_TEST

/* Of four slots, all used within the minute, the one used least recently goes,
 * and whoever comes finds room. */
START_TEST(full_table_that_evicts_has_room_for_everybody)
{
    free(block);
    config.evict = 1;
    make_block(4, READS, WRITES);
    for (int i = 1; i <= 4; i++) {
        ck_assert_int_eq(add(i), CRM_LIMIT_ADDED);
        admit(i, CRM_LIMIT_READ, 2);
        now += 2 * SECOND;
    }
    ck_assert_uint_eq(read_1(2).remaining, 0);
    ck_assert_int_eq(add(5), CRM_LIMIT_ADDED);
    ck_assert_int_eq(is_there(2), 0);
    ck_assert_int_eq(is_there(1) + is_there(3) + is_there(4) + is_there(5), 4);
    ck_assert_uint_eq(read_1(2).admitted, 0);
    for (int i = 6; i <= 1000; i++) {
        now += 2 * SECOND / 100;
        ck_assert_int_eq(add(i), CRM_LIMIT_ADDED);
        now += 2 * SECOND;
        ck_assert_int_eq(find(1), 1);
    }
    ck_assert_uint_eq(stats().slots, 4);
    ck_assert_uint_eq(stats().full, 0);
    /* also if all are used within a moment */
    free(block);
    make_block(4, READS, WRITES);
    for (int i = 1; i <= 4; i++) {
        ck_assert_int_eq(add(i), CRM_LIMIT_ADDED);
        now++;
    }
    ck_assert_int_eq(find(1), 1);
    ck_assert_int_eq(add(5), CRM_LIMIT_ADDED);
    ck_assert_int_eq(is_there(1), 1);
    ck_assert_int_eq(is_there(2), 0);
    config.evict = 0;
}
END_TEST

/* Contract 2.3: what the memory alone refuses is confirmed by the database
 * more often than once in a minute, and by one caller. */
START_TEST(contract_2_3_a_key_is_confirmed_twice_a_minute)
{
    add(1);
    ck_assert_int_eq(read_1(1).confirm, 0);
    now += WINDOW / 2 - 1;
    ck_assert_int_eq(read_1(1).confirm, 0);
    now += 1;
    ck_assert_int_eq(read_1(1).confirm, 1);
    ck_assert_int_eq(read_1(1).confirm, 0);
    now += WINDOW / 2;
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).confirm, 1);
    ck_assert_int_eq(read_1(1).confirm, 0);
}
END_TEST

START_TEST(new_owner_of_a_slot_starts_afresh)
{
    int i;

    for (i = 1; i <= 4; i++) {
        add(i);
        admit(i, CRM_LIMIT_READ, 2);
        admit(i, CRM_LIMIT_READ, 2);
    }
    now += WINDOW;
    for (i = 11; i <= 14; i++) {
        ck_assert_int_eq(add(i), CRM_LIMIT_ADDED);
        ck_assert_uint_eq(admit(i, CRM_LIMIT_READ, 2).remaining, 1);
    }
    ck_assert_int_eq(is_there(1) + is_there(2) + is_there(3) + is_there(4), 0);
}
END_TEST

START_TEST(capacity_is_exact)
{
    int i;

    free(block);
    make_block(1000, 2, 2);
    for (i = 0; i < 1000; i++) {
        ck_assert_msg(add(i) == CRM_LIMIT_ADDED, "key %d of 1000", i);
    }
    ck_assert_int_eq(add(1000), CRM_LIMIT_FULL);
    for (i = 0; i < 1000; i++) {
        ck_assert_msg(find(i), "key %d is lost", i);
    }
    ck_assert_uint_eq(stats().slots, 1000);
    ck_assert_uint_eq(stats().capacity, 1000);
    ck_assert_uint_eq(stats().full, 1);
}
END_TEST

/* --- against a model --- */

#define MODEL_KEYS 16

/* The memory of keys as contract 4.5 has it. */
typedef struct table_t {
    int there[MODEL_KEYS];
    apr_int64_t used[MODEL_KEYS];
} table_t;

/* Take out of TABLE the one key that BLOCK has lost; it must be idle. */
static void table_lose_one(table_t *table)
{
    int lost = 0, n;

    for (n = 0; n < MODEL_KEYS; n++) {
        if (table->there[n] && !is_there(n)) {
            lost++;
            ck_assert_msg(now - table->used[n] >= WINDOW,
                          "a key lost its slot after %d us",
                          (int)(now - table->used[n]));
            table->there[n] = 0;
        }
    }
    ck_assert_int_eq(lost, 1);
}

/* Add key N to BLOCK, of CAPACITY slots, and to TABLE, and compare. */
static void table_add(table_t *table, int n, int capacity)
{
    int count = 0, idle = 0, result = add(n), i;

    for (i = 0; i < MODEL_KEYS; i++) {
        count += table->there[i];
        idle += table->there[i] && now - table->used[i] >= WINDOW;
    }
    if (table->there[n] || count < capacity || idle) {
        ck_assert_int_eq(result, CRM_LIMIT_ADDED);
        if (!table->there[n] && count == capacity) {
            table_lose_one(table);
        }
        table->there[n] = 1;
        table->used[n] = now;
    } else {
        ck_assert_int_eq(result, CRM_LIMIT_FULL);
    }
}

START_TEST(random_keys_against_a_model)
{
    table_t table;
    int i, n;

    free(block);
    make_block(8, 3, 3);
    memset(&table, 0, sizeof(table));
    random_state = 2000 + _i;
    for (i = 0; i < 40000; i++) {
        now += random_below(4) ? random_below(4 * SECOND)
                               : random_below(2000) ? 0 : random_step();
        n = (int)random_below(MODEL_KEYS);
        switch (random_below(16)) {
        case 0:
            forget(n);
            table.there[n] = 0;
            break;
        case 1: case 2: case 3: case 4: case 5:
            table_add(&table, n, 8);
            break;
        case 6: case 7:
            ck_assert_int_eq(find(n), table.there[n]);
            table.used[n] = now;
            break;
        case 8:
            ck_assert_int_eq(admit(n, CRM_LIMIT_READ, 2).known,
                             table.there[n]);
            table.used[n] = now;
            break;
        default:
            break;
        }
        if (i % 1000 == 0) {
            ck_assert_pstr_eq(crm_limit_validate(block), NULL);
        }
    }
    for (n = 0; n < MODEL_KEYS; n++) {
        ck_assert_int_eq(is_there(n), table.there[n]);
    }
}
END_TEST

/* --- a change of the configuration --- */

/* Make BLOCK anew with KEYS and rings, inheriting from the one before; return
 * how many keys had no room. */
static int renew_block(apr_uint32_t keys, apr_uint32_t reads,
                       apr_uint32_t writes)
{
    crm_limit_t *old = block;
    int left_out;

    make_block(keys, reads, writes);
    left_out = (int)crm_limit_inherit(block, old);
    free(old);
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    return left_out;
}

START_TEST(contract_4_4_raised_limit_forgives_nothing)
{
    crm_limit_key_t key = key_of(1, 0), out;
    crm_limit_verdict_t verdict;
    int i;

    add(1);
    add(2);
    for (i = 0; i < 2 * READS + 7; i++) {   /* so that the ring has wrapped */
        now += SECOND;
        read_1(READS);
    }
    for (; read_1(READS).admitted; i++) {
    }
    admit(1, CRM_LIMIT_WRITE, WRITES);
    ck_assert_int_eq(renew_block(9, READS + 3, WRITES + 5), 0);
    verdict = read_1(READS);
    ck_assert_int_eq(verdict.known, 1);
    ck_assert_int_eq(verdict.admitted, 0);
    ck_assert_int_eq(verdict.reset_us, SECOND);
    for (i = 0; i < 3; i++) {
        verdict = read_1(READS + 3);
        ck_assert_int_eq(verdict.admitted, 1);
        ck_assert_int_eq(verdict.touch, 0);
    }
    ck_assert_int_eq(read_1(READS + 3).admitted, 0);
    ck_assert_uint_eq(admit(1, CRM_LIMIT_WRITE, WRITES + 5).remaining,
                      WRITES + 3);
    ck_assert_int_eq(crm_limit_find(&out, block, key.hash, 0), 1);
    ck_assert_str_eq(out.slug, key.slug);
}
END_TEST

START_TEST(smaller_block_inherits_what_is_latest)
{
    int i;

    for (i = 1; i <= 3; i++) {
        add(i);
    }
    now += WINDOW;              /* 2 and 3 have been idle by then */
    for (i = 0; i < 10; i++) {
        read_1(10);
        now += SECOND;
    }
    add(4);
    ck_assert_int_eq(renew_block(2, 4, 1), 0);
    ck_assert_int_eq(find(1) + find(4), 2);
    ck_assert_int_eq(find(2) + find(3), 0);
    ck_assert_int_eq(read_1(4).admitted, 0);
    ck_assert_int_eq(read_1(4).reset_us, 56 * SECOND);
    ck_assert_int_eq(renew_block(1, 4, 1), 1);
}
END_TEST

/* --- the judge of the stress test is not blind --- */

START_TEST(validate_sees_damage)
{
    crm_allocator_t *allocator = &block->allocator;
    crm_limit_key_t key = key_of(1, 0);
    crm_bucket_t *bucket = crm_bucket_of(block, key.hash, 0);
    crm_slot_t *slot;
    crm_window_t *window;

    add(1);
    add(2);
    add(3);
    forget(2);                  /* slots: 1 in use, 2 free, 3 in use */
    now += SECOND;
    read_1(READS);
    now += SECOND;
    read_1(READS);
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    slot = crm_slot_at(block, 1);

    slot->next = 1;
    ck_assert_pstr_eq(crm_limit_validate(block), "the chains are damaged");
    slot->next = 0;
    allocator->slots++;
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "the count of slots is incorrect");
    allocator->slots--;
    allocator->free = 0;
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "slots are neither in use nor free");
    allocator->free = 3;
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "the free list has a slot that is in use");
    allocator->free = 2;
    while (crm_bucket_of(block, slot->key.hash, 0) == bucket) {
        slot->key.hash[0]++;
    }
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "a slot is in the chain of another bucket");
    slot->key = key_of(1, 0);
    window = &slot->windows[CRM_LIMIT_READ];
    window->head += READS;
    ck_assert_pstr_ne(crm_limit_validate(block), NULL);
    window->head -= READS;
    *crm_ring_time(block, window->tail) += 2 * SECOND;
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "the times in a ring are not in order");
    *crm_ring_time(block, window->tail) -= 2 * SECOND;
    crm_link_at(block, 1)->next = 2;
    ck_assert_pstr_eq(crm_limit_validate(block), "the chains are damaged");
    crm_link_at(block, 1)->next = 1;
    allocator->fresh_piece++;
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "pieces are neither in use nor free");
    allocator->free_piece = 1;
    ck_assert_pstr_eq(crm_limit_validate(block),
                      "the free list has a piece that is in use");
    allocator->fresh_piece--;
    allocator->free_piece = 0;
}
END_TEST

/* Networks take pieces, too, and come back as they were. */
START_TEST(contract_14_5_a_key_keeps_its_networks)
{
    crm_network_t networks[CRM_NETWORKS_MAX];
    crm_network_t out[CRM_NETWORKS_MAX];
    crm_limit_key_t key = key_of(1, 0);

    for (int i = 0; i < CRM_NETWORKS_MAX; i++) {
        memset(&networks[i], i + 1, sizeof(networks[i]));
    }
    ck_assert_int_eq(crm_limit_networks(out, block, key.hash, 0), -1);
    for (int count = 0; count <= CRM_NETWORKS_MAX; count++) {
        key.networks = (unsigned char)count;
        ck_assert_int_eq(crm_limit_add(block, &key, networks),
                         CRM_LIMIT_ADDED);
        ck_assert_int_eq(crm_limit_networks(out, block, key.hash, 0), count);
        ck_assert_mem_eq(out, networks, (size_t)count * sizeof(*out));
        ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    }
    ck_assert_int_eq(renew_block(4, READS, WRITES), 0);
    ck_assert_int_eq(crm_limit_networks(out, block, key.hash, 0),
                     CRM_NETWORKS_MAX);
    ck_assert_mem_eq(out, networks, sizeof(out));
    forget(1);
}
END_TEST

/* If there is no room for all of a key's networks, it gets none, and what they took
 * is free again. */
START_TEST(contract_14_5_networks_without_room_take_none)
{
    crm_network_t networks[CRM_NETWORKS_MAX];
    crm_network_t out[CRM_NETWORKS_MAX];
    crm_limit_key_t key;
    int n = 0;

    free(block);
    make_block(4, 16, 16);
    memset(networks, 1, sizeof(networks));
    do {
        ck_assert(crm_ring_has_free(block));
        key = key_of(++n, 0);
        key.networks = CRM_NETWORKS_MAX;
    } while (crm_limit_add(block, &key, networks) == CRM_LIMIT_ADDED);
    ck_assert_int_le(n, 4);     /* there are slots for so many */
    ck_assert_int_eq(crm_limit_networks(out, block, key.hash, 0), -1);
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
    ck_assert(crm_ring_has_free(block));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("limit_key");

    tcase_add_test(tcase, memory_is_as_computed);
    tcase_add_test(tcase, nonsense_has_no_size);
    tcase_add_test(tcase, init_refuses_what_does_not_fit);
    tcase_add_test(tcase, graceful_restart_reuses_the_block);
    tcase_add_test(tcase, check_refuses_foreign_memory);
    tcase_add_test(tcase, unknown_key_is_unknown_and_charges_nothing);
    tcase_add_test(tcase, known_key_is_told);
    tcase_add_test(tcase, find_charges_nothing);
    tcase_add_test(tcase, adding_twice_keeps_slot_and_budget);
    tcase_add_test(tcase, same_hash_in_two_realms_is_two_keys);
    tcase_add_test(tcase, hashes_differ_in_every_byte);
    tcase_add_test(tcase, forgotten_key_is_unknown_and_its_slot_free);
    tcase_add_test(tcase, contract_4_5_full_table_reuses_what_is_idle_for_60_s);
    tcase_add_test(tcase, contract_4_5_refused_requests_are_uses_too);
    tcase_add_test(tcase, full_table_that_evicts_has_room_for_everybody);
    tcase_add_test(tcase, contract_2_3_a_key_is_confirmed_twice_a_minute);
    tcase_add_test(tcase, new_owner_of_a_slot_starts_afresh);
    tcase_add_test(tcase, capacity_is_exact);
    tcase_add_loop_test(tcase, random_keys_against_a_model, 0, 5);
    tcase_add_test(tcase, contract_4_4_raised_limit_forgives_nothing);
    tcase_add_test(tcase, smaller_block_inherits_what_is_latest);
    tcase_add_test(tcase, validate_sees_damage);
    tcase_add_test(tcase, memory_that_is_touched);
    tcase_add_test(tcase, contract_14_5_a_key_keeps_its_networks);
    tcase_add_test(tcase, contract_14_5_networks_without_room_take_none);
    return run_limit_tests(tcase);
}
