/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit.h: rate limits and the memory of keys, in shared memory */
#ifndef CRM_LIMIT_H
#define CRM_LIMIT_H

#include "apr.h"

/* The length of the window, in microseconds (contract 4.1). */
#define CRM_LIMIT_WINDOW_US APR_INT64_C(60000000)

/* How long a key is taken for alive without asking, in microseconds: less than
 * the minute of contract 2.3. */
#define CRM_LIMIT_CONFIRM_US APR_INT64_C(30000000)

/* The most that a configuration may ask for. */
#define CRM_LIMIT_KEYS_MAX (1U << 24)
#define CRM_LIMIT_RING_MAX (1U << 24)

/* One flat block of memory that any number of processes and threads use at
 * once, wherever each has mapped it. It is never destroyed, only unmapped. A
 * process may be killed at any instruction without harm to the others.
 * Every function below but crm_limit_init() may be called by all at once; none
 * waits for more than a few memory accesses of another. */
typedef struct crm_limit_t crm_limit_t;

/* Classes of requests, each with a budget of its own. */
typedef enum crm_limit_class_t {
    CRM_LIMIT_READ,
    CRM_LIMIT_WRITE,
    CRM_LIMIT_CLASSES
} crm_limit_class_t;

/* What a block is made for. */
typedef struct crm_limit_config_t {
    apr_uint32_t keys;          /* active in a minute: 1..CRM_LIMIT_KEYS_MAX */
    /* The highest limit of any vhost, 0..CRM_LIMIT_RING_MAX; 0 where all are
     * unlimited. */
    apr_uint32_t ring[CRM_LIMIT_CLASSES];
    /* When all slots were used in the last 60 s, 0: a new key finds no room;
     * 1: it takes the slot that was used least recently, or nearly so. */
    int evict;
} crm_limit_config_t;

/* What never changes about a key. Texts end with a NUL. */
typedef struct crm_limit_key_t {
    unsigned char hash[32];     /* SHA-256 of the key */
    apr_uint32_t realm;         /* tells databases apart: the same hash in two
                                   realms is two keys */
    char key_id[37];
    char workspace_id[37];
    char slug[64];              /* of the workspace */
} crm_limit_key_t;

/* What became of a request. */
typedef struct crm_limit_verdict_t {
    int known;                  /* 0: no such key here; the rest is 0 then */
    int admitted;
    apr_uint32_t limit;         /* the one that was applied; 0: unlimited */
    apr_uint32_t remaining;     /* requests left after this one */
    /* Microseconds from now, 1..CRM_LIMIT_WINDOW_US, until the oldest counted
     * request leaves the window; after a refusal: until a request under this
     * limit is admitted, if no other one comes before it (contract 4.3). */
    apr_int64_t reset_us;
    int touch;                  /* last_used_at is due: at most once in 60 s
                                   for a key, for one of all callers */
    int confirm;                /* it is time to ask the database whether the
                                   key still lives: once in 30 s for a key, for
                                   one of all callers (contract 2.3) */
} crm_limit_verdict_t;

/* Counts since the block was made. A process that is killed may take the
 * count of its last request with it. */
typedef struct crm_limit_stats_t {
    apr_uint64_t admitted[CRM_LIMIT_CLASSES];
    apr_uint64_t refused[CRM_LIMIT_CLASSES]; /* over the limit (429) */
    apr_uint64_t full;          /* keys that found no slot (503) */
    apr_uint64_t recovered;     /* locks taken over from killed processes */
    apr_uint32_t slots;         /* in use, idle ones included */
    apr_uint32_t capacity;
} crm_limit_stats_t;

/* What crm_limit_add() returns. */
#define CRM_LIMIT_ADDED 0
#define CRM_LIMIT_FULL 1

/* Return the size in bytes of a block for CONFIG, or 0 if CONFIG is out of
 * range or the size does not fit an apr_size_t. */
apr_size_t crm_limit_size(const crm_limit_config_t *config);

/* Make an empty block for CONFIG in the SIZE bytes at BLOCK (any content,
 * aligned for an apr_uint64_t), before any other process uses it. Slots of
 * keys are not touched, so fresh pages stay unused until keys come. Return
 * NULL or, as constant text, what is wrong. */
const char *crm_limit_init(crm_limit_t *block, apr_size_t size,
                           const crm_limit_config_t *config);

/* Can BLOCK, SIZE bytes of an earlier configuration, go on to serve CONFIG
 * (contract 4.4)? It can if crm_limit_init() of this version made it for the
 * same number of keys and rings as large or larger. Return NULL or, as
 * constant text, why not. */
const char *crm_limit_check(const crm_limit_t *block, apr_size_t size,
                            const crm_limit_config_t *config);

/* Add to BLOCK, new and not yet used by others, what OLD knows: keys and their
 * counted requests, so that a change of the configuration forgives nothing
 * (contract 4.4). Where BLOCK is smaller, idle keys and the oldest requests
 * beyond its rings are left out. Who goes on with OLD counts for itself.
 * Return the number of keys that found no room. */
apr_uint32_t crm_limit_inherit(crm_limit_t *block, crm_limit_t *old);

/* Is the key of HASH in REALM known? Then return 1 and, unless KEY_OUT is NULL,
 * copy it there; nothing is charged, but the slot stays the key's for another
 * 60 s. Otherwise return 0 and leave KEY_OUT alone. */
int crm_limit_find(crm_limit_key_t *key_out, crm_limit_t *block,
                   const unsigned char hash[32], apr_uint32_t realm);

/* Set *VERDICT on a request of CLASS under LIMIT (requests in 60 s, at most the
 * ring that the block was made with, or else that; 0: unlimited, then always
 * admitted, counted in the statistics only and no part of any window) by the
 * key of HASH in REALM, and count it if it is admitted (contract 4.1, 2.2). If
 * the key is known and KEY_OUT is not NULL, copy the key there. */
void crm_limit_admit(crm_limit_verdict_t *verdict, crm_limit_key_t *key_out,
                     crm_limit_t *block, const unsigned char hash[32],
                     apr_uint32_t realm, crm_limit_class_t class,
                     apr_uint32_t limit);

/* Take the last admitted request of CLASS by the key of HASH in REALM out of
 * its window, if it has one: it is not to be counted. */
void crm_limit_refund(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm, crm_limit_class_t class);

/* Remember KEY, which must exist in the database. Return CRM_LIMIT_ADDED (also
 * if it is known already), or CRM_LIMIT_FULL if every slot was used in the last
 * 60 s (contract 4.5) and none is evicted. */
int crm_limit_add(crm_limit_t *block, const crm_limit_key_t *key);

/* Forget the key of HASH in REALM, which turned out to be revoked or deleted;
 * its slot is free at once. */
void crm_limit_forget(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm);

/* Set *STATS to the counts of BLOCK. */
void crm_limit_stats(crm_limit_stats_t *stats, crm_limit_t *block);

/* Return NULL, or as constant text what is inconsistent in BLOCK: chains, list
 * of free slots, counts, windows. Slow; for tests. */
const char *crm_limit_validate(crm_limit_t *block);

/* Take the time, in microseconds of a clock that never goes back, from NOW_US
 * in this process; NULL: CLOCK_MONOTONIC again. For tests. */
void crm_limit_set_clock(apr_int64_t (*now_us)(void));

#endif /* CRM_LIMIT_H */
