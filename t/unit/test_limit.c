/* SPDX-License-Identifier: Apache-2.0 */
/* test_limit.c: what is admitted when, with a clock of our own */
#include "crm_limit_ring.h"
#include "crm_limit_test.h"

START_TEST(contract_4_1_window_to_the_microsecond)
{
    apr_int64_t start = now;

    add(1);
    ck_assert_int_eq(read_1(2).admitted, 1);
    now = start + 1;
    ck_assert_int_eq(read_1(2).admitted, 1);
    now = start + 2;
    ck_assert_int_eq(read_1(2).admitted, 0);
    now = start + WINDOW - 1;
    ck_assert_int_eq(read_1(2).admitted, 0);
    now = start + WINDOW;       /* (t - 60 s, t] no longer has the first */
    ck_assert_int_eq(read_1(2).admitted, 1);
    ck_assert_int_eq(read_1(2).admitted, 0);
    now = start + WINDOW + 1;
    ck_assert_int_eq(read_1(2).admitted, 1);
    ck_assert_int_eq(read_1(2).admitted, 0);
}
END_TEST

START_TEST(contract_4_2_remaining_and_reset)
{
    crm_limit_verdict_t verdict;

    add(1);
    verdict = read_1(3);
    ck_assert_uint_eq(verdict.limit, 3);
    ck_assert_uint_eq(verdict.remaining, 2);
    ck_assert_int_eq(verdict.reset_us, WINDOW);
    now += 10 * SECOND;
    verdict = read_1(3);
    ck_assert_uint_eq(verdict.remaining, 1);
    ck_assert_int_eq(verdict.reset_us, 50 * SECOND);
    now += 20 * SECOND;
    verdict = read_1(3);
    ck_assert_uint_eq(verdict.remaining, 0);
    ck_assert_int_eq(verdict.reset_us, 30 * SECOND);
    now += 5;
    verdict = read_1(3);
    ck_assert_int_eq(verdict.admitted, 0);
    ck_assert_uint_eq(verdict.limit, 3);
    ck_assert_uint_eq(verdict.remaining, 0);
    ck_assert_int_eq(verdict.reset_us, 30 * SECOND - 5);
    now += 30 * SECOND - 5;     /* the first leaves */
    verdict = read_1(3);
    ck_assert_uint_eq(verdict.remaining, 0);
    ck_assert_int_eq(verdict.reset_us, 10 * SECOND);
}
END_TEST

START_TEST(contract_2_2_refusal_costs_nothing)
{
    int i;

    add(1);
    for (i = 0; i < 1000; i++) {
        ck_assert_int_eq(read_1(5).admitted, i < 5);
    }
    now += WINDOW;
    ck_assert_int_eq(read_1(5).remaining, 4);
    ck_assert_uint_eq(stats().admitted[CRM_LIMIT_READ], 6);
    ck_assert_uint_eq(stats().refused[CRM_LIMIT_READ], 995);
    ck_assert_uint_eq(stats().refused[CRM_LIMIT_WRITE], 0);
}
END_TEST

START_TEST(contract_4_1_reads_and_writes_apart)
{
    int i;

    add(1);
    for (i = 0; i < READS; i++) {
        ck_assert_int_eq(read_1(READS).admitted, 1);
    }
    ck_assert_int_eq(read_1(READS).admitted, 0);
    for (i = 0; i < WRITES; i++) {
        ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, WRITES).admitted, 1);
    }
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, WRITES).admitted, 0);
    add(2);
    ck_assert_uint_eq(admit(2, CRM_LIMIT_READ, READS).remaining, READS - 1);
}
END_TEST

START_TEST(contract_4_3_who_waits_is_admitted)
{
    int refusals = 0, i;

    add(1);
    random_state = 43;
    for (i = 0; i < 100000; i++) {
        apr_uint32_t limit = 1 + random_below(12);
        crm_limit_verdict_t verdict = read_1(limit);

        now += random_below(4) ? random_below(10 * SECOND) : 0;
        if (!verdict.admitted) {
            apr_int64_t seconds = (verdict.reset_us + SECOND - 1) / SECOND;

            refusals++;
            now += (seconds < 1 ? 1 : seconds) * SECOND;
            if (!read_1(limit).admitted) {
                ck_abort_msg("refused after waiting %d s", (int)seconds);
            }
        }
    }
    ck_assert_int_gt(refusals, 1000);
}
END_TEST

START_TEST(contract_4_3_not_a_microsecond_too_long)
{
    crm_limit_verdict_t verdict;

    add(1);
    read_1(1);
    now += 17;
    verdict = read_1(1);
    now += verdict.reset_us - 1;
    ck_assert_int_eq(read_1(1).admitted, 0);
    now += 1;
    ck_assert_int_eq(read_1(1).admitted, 1);
}
END_TEST

START_TEST(limits_of_two_vhosts_share_the_window)
{
    crm_limit_verdict_t verdict;
    int i;

    add(1);
    for (i = 0; i < 10; i++) {
        ck_assert_int_eq(read_1(10).admitted, 1);
        now += SECOND;
    }
    /* Ten are counted, at 0 to 9 s; under 4 the seventh, of 6 s, has to go. */
    verdict = read_1(4);
    ck_assert_int_eq(verdict.admitted, 0);
    ck_assert_uint_eq(verdict.limit, 4);
    ck_assert_uint_eq(verdict.remaining, 0);
    ck_assert_int_eq(verdict.reset_us, 56 * SECOND);
    verdict = read_1(11);
    ck_assert_int_eq(verdict.admitted, 1);
    ck_assert_uint_eq(verdict.remaining, 0);
    ck_assert_int_eq(verdict.reset_us, 50 * SECOND);
    /* That one, of 10 s, counts too: now the eighth, of 7 s. */
    now += 57 * SECOND - 1;
    ck_assert_int_eq(read_1(4).admitted, 0);
    now += 1;
    ck_assert_int_eq(read_1(4).admitted, 1);
}
END_TEST

/* The pieces that LIMIT needs suffice wherever in a piece the oldest request
 * is, and none is left over. */
START_TEST(each_limit_has_the_pieces_that_it_needs)
{
    apr_uint32_t limit = (apr_uint32_t)_i, need = 0, start, i;
    crm_window_t *window;

    for (start = 0; start < CRM_PIECE_TIMES; start++) {
        apr_uint32_t end = (start + limit + CRM_PIECE_TIMES - 1)
                           / CRM_PIECE_TIMES;

        need = end > need ? end : need;
    }
    ck_assert_uint_eq(crm_ring_pieces(limit), need);
    free(block);
    make_block(1, limit, 0);
    add(1);
    window = &crm_slot_at(block, 1)->windows[CRM_LIMIT_READ];
    ck_assert_msg(!window->head, "no request, no piece");
    for (i = 0; i < 20 * CRM_PIECE_TIMES; i++) {
        ck_assert_msg(read_1(limit).admitted, "request %u of %u", i, limit);
        now += WINDOW / limit + 1;
    }
    ck_assert_uint_le(stats().pieces, need);
    ck_assert_uint_eq(stats().full, 0);
}
END_TEST

/* Contract 14.5: a key's own limit goes before that of the vhost, up to the
 * ceiling. */
START_TEST(contract_14_5_a_key_has_its_own_limit)
{
    crm_limit_key_t key = key_of(1, 0);
    crm_limit_verdict_t verdict;

    key.limits[CRM_LIMIT_READ] = 3;
    ck_assert_int_eq(crm_limit_add(block, &key, NULL), CRM_LIMIT_ADDED);
    verdict = read_ceiling(2, 100);
    ck_assert_uint_eq(verdict.limit, 3);
    ck_assert_uint_eq(verdict.remaining, 2);
    ck_assert_uint_eq(read_ceiling(0, 100).limit, 3);
    ck_assert_uint_eq(read_ceiling(100, 2).limit, 2);
    ck_assert_msg(!read_ceiling(100, 2).admitted, "the ceiling");
    ck_assert_uint_eq(admit(1, CRM_LIMIT_WRITE, 7).limit, 7);
    /* A change of the key keeps what is counted. */
    key.limits[CRM_LIMIT_READ] = 4;
    crm_limit_add(block, &key, NULL);
    ck_assert_uint_eq(read_ceiling(1, 100).remaining, 1);
    key.limits[CRM_LIMIT_READ] = 0;
    crm_limit_add(block, &key, NULL);
    ck_assert_uint_eq(read_ceiling(5, 100).remaining, 1);
    ck_assert_uint_eq(stats().slots, 1);
}
END_TEST

/* A key with a high limit takes memory for what it uses; the others take none
 * for it, and what it no longer needs is there for others. */
START_TEST(memory_follows_the_requests_and_not_the_highest_limit)
{
    apr_uint32_t before, pieces;
    int i;

    free(block);
    make_block(1000, 6000, 3000);
    for (i = 0; i < 1000; i++) {
        add(i);
        admit(i, CRM_LIMIT_READ, 6000);
    }
    ck_assert_uint_eq(stats().pieces, 1000);
    for (i = 0; i < 5999; i++) {
        ck_assert(read_1(6000).admitted);
    }
    ck_assert(!read_1(6000).admitted);
    pieces = stats().pieces - 1000;
    ck_assert_uint_ge(pieces, 6000 / CRM_PIECE_TIMES - 1);
    ck_assert_uint_le(pieces, crm_ring_pieces(6000));
    forget(1);
    before = stats().pieces;
    for (i = 0; i < 5999; i++) {
        admit(2, CRM_LIMIT_READ, 6000);
    }
    ck_assert_uint_eq(stats().pieces, before);
}
END_TEST

/* Pieces that rings need no longer are found when there is no other; without
 * any, requests are refused as the contract says, and not let through. */
START_TEST(contract_4_5_without_memory_nothing_is_let_through)
{
    crm_limit_verdict_t verdict;
    int i, admitted = 0;

    free(block);
    make_block(2, 30, 0);       /* 3 pieces for each key */
    ck_assert_uint_eq(block->layout.pieces, 6);
    add(1);
    add(2);
    for (verdict = read_1(1000); verdict.admitted; verdict = read_1(1000)) {
        admitted++;
    }
    ck_assert_int_eq(admitted, 6 * CRM_PIECE_TIMES);
    ck_assert_int_eq(verdict.known, 1);
    ck_assert_int_eq(verdict.full, 1);
    ck_assert_uint_gt(stats().full, 0);
    ck_assert_uint_eq(stats().refused[CRM_LIMIT_READ], 0);
    ck_assert_int_eq(admit(2, CRM_LIMIT_READ, 5).full, 1);
    now += WINDOW;
    for (i = 0; i < 5 * CRM_PIECE_TIMES; i++) {
        ck_assert_msg(admit(2, CRM_LIMIT_READ, 1000).admitted, "%d", i);
        now += 1;
    }
    ck_assert(read_1(5).admitted);
    ck_assert_pstr_eq(crm_limit_validate(block), NULL);
}
END_TEST

START_TEST(unlimited_is_admitted_and_counted_in_the_statistics)
{
    crm_limit_verdict_t verdict;
    int i;

    add(1);
    for (i = 0; i < 10 * READS; i++) {
        verdict = read_1(0);
        ck_assert_int_eq(verdict.admitted, 1);
        ck_assert_int_eq(verdict.touch, i == 0);
        ck_assert_uint_eq(verdict.limit, 0);
        ck_assert_int_eq(verdict.reset_us, WINDOW);
    }
    ck_assert_uint_eq(stats().admitted[CRM_LIMIT_READ], 10 * READS);
    ck_assert_uint_eq(read_1(READS).remaining, READS - 1);
}
END_TEST

START_TEST(unlimited_everywhere_needs_no_rings)
{
    free(block);
    make_block(4, 0, 0);
    add(1);
    ck_assert_int_eq(read_1(0).admitted, 1);
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 0).admitted, 1);
    /* A limit that the block was not made for is not "unlimited". */
    ck_assert_int_eq(read_1(5).admitted, 0);
    ck_assert_int_eq(read_1(5).full, 1);
}
END_TEST

START_TEST(touch_is_due_once_a_minute)
{
    add(1);
    ck_assert_int_eq(read_1(2).touch, 1);
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).touch, 0);
    now += WINDOW - 1;
    ck_assert_int_eq(read_1(2).touch, 0);
    now += 1;
    ck_assert_int_eq(read_1(2).touch, 1);
    ck_assert_int_eq(read_1(2).touch, 0);
}
END_TEST

START_TEST(the_more_keys_the_rarer_are_touches)
{
    const int keys = 20000;

    free(block);
    make_block((apr_uint32_t)keys, 0, 0);
    for (int i = 1; i <= keys; i++) {
        add(i);
    }
    ck_assert_msg(read_1(0).touch == 1, "a key's first use is due whatever others do");
    now += keys * CRM_LIMIT_TOUCH_US - 1;
    ck_assert_int_eq(read_1(0).touch, 0);
    now += 1;
    ck_assert_int_eq(read_1(0).touch, 1);
}
END_TEST

START_TEST(refused_requests_touch_nothing)
{
    apr_int64_t start = now;

    add(1);
    ck_assert_int_eq(read_1(1).touch, 1);
    now = start + 50 * SECOND;
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).touch, 0);
    now = start + 61 * SECOND;
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).admitted, 0);
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).touch, 0);
    ck_assert_int_eq(read_1(1).touch, 1);
}
END_TEST

/* Also by requests that are refused: they never ask the database otherwise. */
START_TEST(contract_2_3_a_key_is_confirmed_twice_a_minute)
{
    add(1);
    ck_assert_int_eq(read_1(1).confirm, 0);     /* it was just looked up */
    now += CRM_LIMIT_CONFIRM_US - 1;
    ck_assert_int_eq(read_1(1).confirm, 0);
    now += 1;
    ck_assert_int_eq(read_1(1).confirm, 1);
    ck_assert_int_eq(read_1(1).confirm, 0);
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).confirm, 0);
    now += CRM_LIMIT_CONFIRM_US - 1;
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).confirm, 0);
    now += 1;
    ck_assert_int_eq(admit(1, CRM_LIMIT_WRITE, 1).confirm, 1);
    ck_assert_int_eq(read_1(1).confirm, 0);
}
END_TEST

/* What is left of key 1's reads under LIMIT, and when the next leaves. */
static crm_limit_verdict_t look(apr_uint32_t limit)
{
    crm_limit_key_t key = key_of(1, 0);
    crm_limit_verdict_t verdict;

    crm_limit_look(&verdict, block, key.hash, 0, CRM_LIMIT_READ, limit, 0);
    return verdict;
}

START_TEST(contract_4_2_looking_counts_nothing)
{
    apr_int64_t start = now;

    ck_assert_int_eq(look(3).known, 0);
    add(1);
    ck_assert_uint_eq(look(3).remaining, 3);
    ck_assert_int_eq(look(3).reset_us, WINDOW);
    read_1(3);
    now = start + 10 * SECOND;
    read_1(3);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(look(3).remaining, 1);
        ck_assert_int_eq(look(3).reset_us, 50 * SECOND);
        ck_assert_int_eq(look(3).admitted, 0);
    }
    ck_assert_uint_eq(look(1).remaining, 0);    /* a lower limit */
    now = start + 9 * SECOND;                   /* the clock goes back */
    ck_assert_int_eq(look(3).reset_us, 50 * SECOND);
    now = start + WINDOW;
    ck_assert_uint_eq(look(3).remaining, 2);
    ck_assert_int_eq(look(3).reset_us, 10 * SECOND);
    ck_assert_uint_eq(read_1(3).remaining, 1);
}
END_TEST

START_TEST(contract_4_1_a_refund_is_of_its_class)
{
    crm_limit_key_t key = key_of(1, 0);

    add(1);
    read_1(2);
    admit(1, CRM_LIMIT_WRITE, 2);
    crm_limit_refund(block, key.hash, 0, CRM_LIMIT_WRITE);
    ck_assert_uint_eq(look(2).remaining, 1);
    ck_assert_uint_eq(admit(1, CRM_LIMIT_WRITE, 2).remaining, 1);
    for (int i = 0; i < 3; i++) {       /* of an empty window: nothing */
        crm_limit_refund(block, key.hash, 0, CRM_LIMIT_READ);
    }
    ck_assert_uint_eq(look(2).remaining, 2);
    ck_assert_uint_eq(read_1(2).remaining, 1);
}
END_TEST

/* Idle times around 2^32 us, about 71.6 minutes, when the ring's times come
 * round, and multiples of it. */
START_TEST(ring_times_that_come_round)
{
    static const apr_int64_t turns[] = {1, 2, 3, 1000};
    static const apr_int64_t offsets[] = {-WINDOW, -1, 0, 1, 30 * SECOND,
                                          WINDOW - 1, WINDOW};
    apr_size_t turn, offset;
    int i;

    add(1);
    for (turn = 0; turn < CRM_NELTS(turns); turn++) {
        for (offset = 0; offset < CRM_NELTS(offsets); offset++) {
            for (i = 0; i < READS; i++) {
                ck_assert_int_eq(read_1(READS).admitted, 1);
            }
            ck_assert_int_eq(read_1(READS).admitted, 0);
            now += (turns[turn] << 32) + offsets[offset];
            ck_assert_msg(read_1(READS).remaining == READS - 1,
                          "requests of %d turns and %d us ago still count",
                          (int)turns[turn], (int)offsets[offset]);
            now += WINDOW;
        }
    }
}
END_TEST

START_TEST(steady_demand_over_many_turns_of_ring_and_clock)
{
    apr_int64_t admitted = 0;
    int i;

    /* Half a second's tries for five hours: two windows' worth of each. */
    now = (APR_INT64_C(1) << 32) - 5 * SECOND;
    add(1);
    for (i = 0; i < 36000; i++) {
        admitted += read_1(60).admitted;
        now += SECOND / 2;
    }
    ck_assert_int_eq(admitted, 300 * 60);
}
END_TEST

START_TEST(clock_that_goes_back_forgives_nothing)
{
    add(1);
    read_1(2);
    read_1(2);
    now -= 1000 * SECOND;
    ck_assert_int_eq(read_1(2).admitted, 0);
    ck_assert_int_eq(read_1(2).reset_us, WINDOW);
    now += 1000 * SECOND + WINDOW;
    ck_assert_int_eq(read_1(2).admitted, 1);
}
END_TEST

/* A key's window as the contract has it: all times, none forgotten. */
typedef struct model_t {
    apr_int64_t times[40000];
    int count;
} model_t;

static model_t models[CRM_LIMIT_CLASSES];

/* Return how many of MODEL are in (now - 60 s, now]. */
static int model_counted(const model_t *model)
{
    int first = model->count;

    while (first && model->times[first - 1] > now - WINDOW) {
        first--;
    }
    return model->count - first;
}

/* Take back VERDICT, which admitted a read of key 1, until UNTIL. */
static void close_1(crm_limit_verdict_t *verdict, apr_int64_t until)
{
    crm_limit_key_t key = key_of(1, 0);

    crm_limit_close(verdict, block, &key, CRM_LIMIT_READ, until);
}

START_TEST(contract_16_1_closed_windows_refuse_until_they_open)
{
    crm_limit_verdict_t verdict;

    add(1);
    ck_assert(read_1(5).admitted);
    verdict = read_1(5);
    ck_assert(verdict.admitted);
    ck_assert_uint_eq(verdict.remaining, 3);
    close_1(&verdict, now + 10 * SECOND);
    ck_assert(!verdict.admitted);
    ck_assert_uint_eq(verdict.remaining, 0);
    now += 4 * SECOND;
    verdict = read_1(5);
    ck_assert(!verdict.admitted);
    ck_assert_int_eq(verdict.reset_us, 6 * SECOND);
    ck_assert_msg(read_1(6).admitted, "a vhost with another limit");
    ck_assert(admit(1, CRM_LIMIT_WRITE, 5).admitted);
    now += 6 * SECOND;
    verdict = read_1(5);
    ck_assert(verdict.admitted);
    ck_assert_msg(verdict.remaining == 2, "the one taken back left a place");
}
END_TEST

START_TEST(contract_16_1_what_is_taken_back_counts_as_refused)
{
    crm_limit_verdict_t verdict;

    add(1);
    now += WINDOW;
    verdict = read_1(1);
    ck_assert(verdict.touch);
    close_1(&verdict, now + SECOND);
    ck_assert_msg(!verdict.touch, "a refusal writes nothing");
    ck_assert_uint_eq(stats().admitted[CRM_LIMIT_READ], 0);
    ck_assert_uint_eq(stats().refused[CRM_LIMIT_READ], 1);
    now += SECOND;
    verdict = read_1(1);
    ck_assert(verdict.admitted);
    ck_assert_msg(verdict.touch, "the next admission touches the key");
}
END_TEST

/* Take the last request of CLASS of key 1 out of its window, and of MODEL. */
static void undo(model_t *model, crm_limit_class_t class)
{
    crm_limit_key_t key = key_of(1, 0);
    crm_window_t *window = &crm_slot_at(block, 1)->windows[class];

    if (crm_ring_count(window) && model_counted(model)) {
        crm_limit_refund(block, key.hash, 0, class);
        model->count--;
    }
}

/* Free what the rings of key N do not need. */
static void trim(int n)
{
    (void)n;
    for (int class = 0; class < CRM_LIMIT_CLASSES; class++) {
        crm_ring_trim(block, &crm_slot_at(block, 1)->windows[class], now);
    }
}

START_TEST(random_requests_against_a_model)
{
    static const apr_uint32_t limits[] = {1, 5, 19, 20, 70, 20};
    apr_int64_t touched = -WINDOW;
    int i;

    free(block);
    make_block(4, 70, 70);
    random_state = 1000 + _i;
    memset(models, 0, sizeof(models));
    add(1);
    for (i = 0; i < 40000; i++) {
        crm_limit_class_t class = random_below(2) ? CRM_LIMIT_READ
                                                  : CRM_LIMIT_WRITE;
        apr_uint32_t limit = limits[random_below(6)];
        model_t *model = &models[class];
        int counted, admitted, touch;
        crm_limit_verdict_t verdict;
        apr_int64_t leaves;

        now += random_step();
        if (random_below(100) == 0) {
            add(1);             /* it may have been idle; changes nothing */
        }
        if (random_below(50) == 0) {
            trim(1);            /* changes nothing either */
        }
        if (random_below(20) == 0) {
            undo(model, class);
        }
        counted = model_counted(model);
        admitted = counted < (int)limit;
        touch = admitted && now - touched >= WINDOW;
        if (admitted) {
            model->times[model->count++] = now;
            leaves = model->times[model->count - 1 - counted];
        } else {
            leaves = model->times[model->count - limit];
        }
        touched = touch ? now : touched;
        verdict = admit(1, class, limit);
        /* An assertion that holds costs more than all of the above. */
        if (verdict.admitted != admitted || verdict.touch != touch
            || verdict.remaining != (admitted ? limit - counted - 1 : 0)
            || verdict.reset_us != leaves + WINDOW - now) {
            ck_abort_msg("step %d, %d counted, limit %u: admitted %d, not %d; "
                         "touch %d, not %d; remaining %u; reset %d, not %d us",
                         i, counted, limit, verdict.admitted, admitted,
                         verdict.touch, touch, verdict.remaining,
                         (int)verdict.reset_us, (int)(leaves + WINDOW - now));
        }
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("limit");

    tcase_add_test(tcase, contract_4_1_window_to_the_microsecond);
    tcase_add_test(tcase, contract_4_2_remaining_and_reset);
    tcase_add_test(tcase, contract_2_2_refusal_costs_nothing);
    tcase_add_test(tcase, contract_4_1_reads_and_writes_apart);
    tcase_add_test(tcase, contract_4_3_who_waits_is_admitted);
    tcase_add_test(tcase, contract_4_3_not_a_microsecond_too_long);
    tcase_add_test(tcase, limits_of_two_vhosts_share_the_window);
    tcase_add_loop_test(tcase, each_limit_has_the_pieces_that_it_needs, 1, 70);
    tcase_add_test(tcase, contract_14_5_a_key_has_its_own_limit);
    tcase_add_test(tcase, memory_follows_the_requests_and_not_the_highest_limit);
    tcase_add_test(tcase, contract_4_5_without_memory_nothing_is_let_through);
    tcase_add_test(tcase, unlimited_is_admitted_and_counted_in_the_statistics);
    tcase_add_test(tcase, unlimited_everywhere_needs_no_rings);
    tcase_add_test(tcase, touch_is_due_once_a_minute);
    tcase_add_test(tcase, the_more_keys_the_rarer_are_touches);
    tcase_add_test(tcase, refused_requests_touch_nothing);
    tcase_add_test(tcase, contract_2_3_a_key_is_confirmed_twice_a_minute);
    tcase_add_test(tcase, contract_4_2_looking_counts_nothing);
    tcase_add_test(tcase, contract_4_1_a_refund_is_of_its_class);
    tcase_add_test(tcase, ring_times_that_come_round);
    tcase_add_test(tcase, steady_demand_over_many_turns_of_ring_and_clock);
    tcase_add_test(tcase, clock_that_goes_back_forgives_nothing);
    tcase_add_test(tcase, contract_16_1_closed_windows_refuse_until_they_open);
    tcase_add_test(tcase, contract_16_1_what_is_taken_back_counts_as_refused);
    tcase_add_loop_test(tcase, random_requests_against_a_model, 0, 5);
    return run_limit_tests(tcase);
}
