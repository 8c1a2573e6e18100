/* SPDX-License-Identifier: Apache-2.0 */
/* crm_usage.c: a table of counters without locks
 *
 * A slot belongs to a workspace of a realm on a day. It is at one of PROBES places
 * from that of the key's hash on. Its counts and its generation are one word, and
 * whoever changes it read it before it compared the key. So nothing is added to, or
 * taken from, a slot that has become free in between, and perhaps another's: the
 * generation is different then. Two threads may make two slots of one key at the
 * same time; their counts are added up in the database.
 *
 * A process that is killed while it makes or frees a slot, for a few instructions,
 * leaves a slot that nobody uses. */
#include "crm_usage.h"

#include <string.h>

#define PROBES 32
#define SLOTS_MIN 1024u
#define SLOTS_MAX 65536u

/* The parts of a slot's word. */
#define COUNT_BITS 24
#define COUNT_MAX ((APR_UINT64_C(1) << COUNT_BITS) - 1)
#define REQUESTS(word) ((word) & COUNT_MAX)
#define LIMITED(word) ((word) >> COUNT_BITS & COUNT_MAX)
#define COUNTS(word) ((word) & (COUNT_MAX << COUNT_BITS | COUNT_MAX))
#define NEXT_GENERATION (APR_UINT64_C(1) << 2 * COUNT_BITS)

enum { FREE, CHANGING, USED };

#define KEY_WORDS 6

/* Words, so that they can be read while they are written. */
typedef union usage_key_t {
    struct {
        char workspace_id[CRM_UUID_LEN];
        apr_uint32_t realm, day, unused;
    };
    apr_uint64_t words[KEY_WORDS];
} usage_key_t;

typedef struct slot_t {
    apr_uint64_t word;
    apr_uint32_t state;
    apr_uint32_t unused;
    usage_key_t key;
} slot_t;

struct crm_usage_t {
    apr_uint32_t mask;          /* the number of slots - 1; 0: not open yet */
    apr_uint64_t lost;
    apr_int64_t due;            /* when it is to be written */
    char unused[40];
    slot_t slots[];
};

/* Return the number of slots for KEYS keys. */
static apr_uint32_t slots_for(apr_uint32_t keys)
{
    apr_uint32_t slots = SLOTS_MIN;

    while (slots < keys && slots < SLOTS_MAX) {
        slots *= 2;
    }
    return slots;
}

apr_size_t crm_usage_size(apr_uint32_t keys)
{
    return sizeof(crm_usage_t) + slots_for(keys) * sizeof(slot_t);
}

crm_usage_t *crm_usage_open(void *memory, apr_size_t size)
{
    crm_usage_t *usage = memory;

    usage->mask = (apr_uint32_t)((size - sizeof(*usage)) / sizeof(slot_t)) - 1;
    return usage;
}

static void make_key(usage_key_t *key, const crm_use_t *use)
{
    memset(key, 0, sizeof(*key));
    memcpy(key->workspace_id, use->workspace_id, CRM_UUID_LEN);
    key->realm = use->realm;
    key->day = use->day;
}

static apr_uint32_t hash_of(const usage_key_t *key)
{
    apr_uint64_t hash = 0;

    for (int i = 0; i < KEY_WORDS; i++) {
        hash = (hash ^ key->words[i]) * APR_UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (apr_uint32_t)hash;
}

/* Return whether SLOT is used and has KEY. Its word was read before. */
static int has_key(const slot_t *slot, const usage_key_t *key)
{
    apr_uint64_t differ = 0;

    if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != USED) {
        return 0;
    }
    for (int i = 0; i < KEY_WORDS; i++) {
        differ |= __atomic_load_n(&slot->key.words[i], __ATOMIC_RELAXED)
                  ^ key->words[i];
    }
    return !differ;
}

/* Change the word of SLOT from WORD to CHANGED. Return whether it was WORD. */
static int swap_word(slot_t *slot, apr_uint64_t word, apr_uint64_t changed)
{
    return __atomic_compare_exchange_n(&slot->word, &word, changed, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static int swap_state(slot_t *slot, apr_uint32_t state, apr_uint32_t changed)
{
    return __atomic_compare_exchange_n(&slot->state, &state, changed, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Add USE to SLOT if it has KEY and room. Return whether it was added. */
static int add_to(slot_t *slot, const usage_key_t *key, const crm_use_t *use)
{
    for (;;) {
        apr_uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);

        if (!has_key(slot, key)
            || REQUESTS(word) + use->requests > COUNT_MAX
            || LIMITED(word) + use->limited > COUNT_MAX) {
            return 0;
        }
        if (swap_word(slot, word, word + use->requests
                      + ((apr_uint64_t)use->limited << COUNT_BITS))) {
            return 1;
        }
    }
}

/* Give SLOT to KEY if it is free. Return whether it was. */
static int claim(slot_t *slot, const usage_key_t *key)
{
    if (!swap_state(slot, FREE, CHANGING)) {
        return 0;
    }
    for (int i = 0; i < KEY_WORDS; i++) {
        __atomic_store_n(&slot->key.words[i], key->words[i], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&slot->state, USED, __ATOMIC_RELEASE);
    return 1;
}

/* Free SLOT, whose word is WORD, without counts, unless that has changed. */
static void set_free(slot_t *slot, apr_uint64_t word)
{
    if (swap_state(slot, USED, CHANGING)) {
        __atomic_store_n(&slot->state, swap_word(slot, word, word
                                                 + NEXT_GENERATION)
                         ? FREE : USED, __ATOMIC_RELEASE);
    }
}

int crm_usage_add(crm_usage_t *usage, const crm_use_t *use)
{
    usage_key_t key;
    apr_uint32_t at;

    make_key(&key, use);
    at = hash_of(&key);
    for (apr_uint32_t i = 0; i < PROBES; i++) {
        if (add_to(&usage->slots[(at + i) & usage->mask], &key, use)) {
            return 1;
        }
    }
    for (apr_uint32_t i = 0; i < PROBES; i++) {
        slot_t *slot = &usage->slots[(at + i) & usage->mask];

        if (claim(slot, &key) && add_to(slot, &key, use)) {
            return 1;
        }
    }
    __atomic_fetch_add(&usage->lost, use->requests, __ATOMIC_RELAXED);
    return 0;
}

/* Set *USE to the key of SLOT, whose word was read before. Return 0 if it is not
 * used, or not by REALM. */
static int read_key(crm_use_t *use, const slot_t *slot, apr_uint32_t realm)
{
    usage_key_t key;

    if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != USED) {
        return 0;
    }
    for (int i = 0; i < KEY_WORDS; i++) {
        key.words[i] = __atomic_load_n(&slot->key.words[i], __ATOMIC_RELAXED);
    }
    memcpy(use->workspace_id, key.workspace_id, CRM_UUID_LEN);
    use->workspace_id[CRM_UUID_LEN] = '\0';
    use->realm = key.realm;
    use->day = key.day;
    return key.realm == realm;
}

int crm_usage_has(const crm_usage_t *usage, apr_uint32_t realm)
{
    crm_use_t use;

    for (apr_uint32_t i = 0; i <= usage->mask; i++) {
        const slot_t *slot = &usage->slots[i];
        apr_uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);

        if (COUNTS(word) && read_key(&use, slot, realm)) {
            return 1;
        }
    }
    return 0;
}

/* Take the counts of SLOT if it has some of REALM. */
static int take(crm_use_t *use, slot_t *slot, apr_uint32_t realm)
{
    for (;;) {
        apr_uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);

        if (!read_key(use, slot, realm)) {
            return 0;
        }
        if (!COUNTS(word)) {
            set_free(slot, word);
            return 0;
        }
        if (swap_word(slot, word, word - COUNTS(word))) {
            use->requests = (apr_uint32_t)REQUESTS(word);
            use->limited = (apr_uint32_t)LIMITED(word);
            return 1;
        }
    }
}

int crm_usage_take(crm_use_t *use, crm_usage_t *usage, apr_uint32_t realm,
                   apr_uint32_t *place)
{
    while (*place <= usage->mask) {
        if (take(use, &usage->slots[(*place)++], realm)) {
            return 1;
        }
    }
    return 0;
}

apr_uint64_t crm_usage_lost(crm_usage_t *usage)
{
    return __atomic_exchange_n(&usage->lost, 0, __ATOMIC_RELAXED);
}

int crm_usage_due(crm_usage_t *usage, apr_time_t now,
                  apr_interval_time_t every)
{
    apr_int64_t due = __atomic_load_n(&usage->due, __ATOMIC_RELAXED);

    /* DUE is retained by a restart: a shorter EVERY counts at once */
    return (now >= due || due - now > every)
           && __atomic_compare_exchange_n(&usage->due, &due, now + every, 0,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
