/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit.h: rate limits and known keys in shared memory */
#ifndef CRM_LIMIT_H
#define CRM_LIMIT_H

#include "crm_error.h"
#include "crm_network.h"

/* The length of the window, in microseconds (contract 4.1). */
#define CRM_LIMIT_WINDOW_US APR_INT64_C(60000000)

/* The time that the touches of all keys are apart at least, in microseconds, if each
 * is used all the time: a touch is a write to the database. */
#define CRM_LIMIT_TOUCH_US APR_INT64_C(5000)

/* How long a key is trusted before the database is queried again, in
 * microseconds. Contract 2.3 allows a minute. */
#define CRM_LIMIT_CONFIRM_US APR_INT64_C(30000000)

/* Upper bounds of a crm_limit_config_t, and of a limit. A limit may be 20 times
 * the highest CrmApiAddressLimit: that of a /48 for polls. */
#define CRM_LIMIT_KEYS_MAX (1U << 24)
#define CRM_LIMIT_RING_MAX (1U << 25)

/* A block of shared memory for any number of processes and threads, mapped at
 * any address. It is never destroyed, only unmapped. Killing a process at any
 * instruction does no harm to others. All functions except crm_limit_init() may
 * be called concurrently. Locks are held for a few memory accesses only. */
typedef struct crm_limit_t crm_limit_t;

/* Request classes, each with a budget of its own. */
typedef enum crm_limit_class_t {
    CRM_LIMIT_READ,
    CRM_LIMIT_WRITE,
    CRM_LIMIT_CLASSES
} crm_limit_class_t;

/* The size of a block. */
typedef struct crm_limit_config_t {
    apr_uint32_t keys;          /* keys that are active in one minute:
                                   1..CRM_LIMIT_KEYS_MAX */
    /* The highest limit of all keys, 0..CRM_LIMIT_RING_MAX; 0: all are
     * unlimited. */
    apr_uint32_t ring[CRM_LIMIT_CLASSES];
    /* If all slots were used in the last 60 s, a new key gets none (0), or
     * replaces the least recently used key of a sample (1). */
    int evict;
} crm_limit_config_t;

/* The properties of a key. Texts end with a NUL. The members before TERMS never
 * change. If one of those after it changes, the database changes TERMS. */
typedef struct crm_limit_key_t {
    unsigned char hash[32];     /* SHA-256 of the key */
    apr_uint32_t realm;         /* the database; the same hash in two realms is
                                   two keys */
    char key_id[37];
    char workspace_id[37];
    char slug[64];              /* workspace's slug */
    char terms[37];             /* id of the version of the members below; "":
                                   they are unknown */
    unsigned char networks;     /* number of networks from which the key may be
                                   used; 0: from anywhere */
    apr_uint32_t limits[CRM_LIMIT_CLASSES]; /* the key's own; 0: none */
} crm_limit_key_t;

/* The result of an admission. */
typedef struct crm_limit_verdict_t {
    int known;                  /* 0: unknown key; the rest is 0 */
    int full;                   /* 1: there is no memory to count the request;
                                   the rest is 0 (contract 4.5) */
    int admitted;
    int closed_lately;          /* crm_limit_close() has closed the window
                                   under this limit in the last minute */
    apr_uint32_t limit;         /* the limit that was applied; 0: none */
    apr_uint32_t remaining;     /* requests left in the window */
    /* Microseconds, 1..CRM_LIMIT_WINDOW_US, until the oldest counted request
     * leaves the window. After a refusal: until the next request would be
     * admitted (contract 4.3). */
    apr_int64_t reset_us;
    int touch;                  /* the caller should update last_used_at; set
                                   for one caller per key and 60 s, or
                                   CRM_LIMIT_TOUCH_US for each key in memory,
                                   if that is longer */
    int confirm;                /* the caller should query the database whether
                                   the key still exists; set for one caller per
                                   key and 30 s (contract 2.3) */
} crm_limit_verdict_t;

/* Statistics since the block was created. A killed process may lose the count
 * of its last request. */
typedef struct crm_limit_stats_t {
    apr_uint64_t admitted[CRM_LIMIT_CLASSES];
    apr_uint64_t refused[CRM_LIMIT_CLASSES]; /* refused with 429 */
    apr_uint64_t full;          /* keys without a free slot, and requests
                                   without memory to count them (503) */
    apr_uint64_t recovered;     /* locks recovered from killed processes */
    apr_uint32_t slots;         /* slots in use, including idle keys */
    apr_uint32_t capacity;
    apr_uint32_t pieces;        /* pieces (16 requests) that were ever in use */
    apr_uint64_t touched;       /* bytes of the block that were ever in use */
} crm_limit_stats_t;

/* Return the size of a block for CONFIG in bytes, or 0 if CONFIG is out of
 * range or the size exceeds an apr_size_t. */
apr_size_t crm_limit_size(const crm_limit_config_t *config);

/* Initialise the SIZE bytes at BLOCK (any content, aligned for an apr_uint64_t)
 * as an empty block for CONFIG. No other process may use it yet. Slots are not
 * written, so their pages stay untouched until keys are added. Errors, in
 * RESULT_POOL: CONFIG is out of range, the memory is too small or not aligned,
 * the system has no robust shared locks or no random bytes. */
crm_error_t *crm_limit_init(crm_limit_t *block, apr_size_t size,
                            const crm_limit_config_t *config,
                            apr_pool_t *result_pool);

/* Check whether BLOCK, SIZE bytes from an earlier configuration, can serve
 * CONFIG (contract 4.4): same version, same number of keys, memory for limits
 * as high. Return NULL, or the reason why it cannot as a constant string. */
const char *crm_limit_check(const crm_limit_t *block, apr_size_t size,
                            const crm_limit_config_t *config);

/* Look up the key of HASH in REALM without charging it. If it is known, return
 * 1, copy it to KEY_OUT (NULL: not), and keep its slot for another 60 s.
 * Otherwise return 0. */
int crm_limit_find(crm_limit_key_t *key_out, crm_limit_t *block,
                   const unsigned char hash[32], apr_uint32_t realm);

/* Charge a request of CLASS to the key of HASH in REALM under LIMIT, and set
 * *VERDICT (contract 2.2, 4.1). LIMIT is the number of requests in 60 s, up to
 * CRM_LIMIT_RING_MAX. 0 means no limit: the request is admitted and counted in
 * the statistics only. If the key has a limit of its own for CLASS, that limit
 * applies, or CEILING if it is lower (contract 14.5). A refused request is not
 * counted. If the key is known, it is copied to KEY_OUT (NULL: not). */
void crm_limit_admit(crm_limit_verdict_t *verdict, crm_limit_key_t *key_out,
                     crm_limit_t *block, const unsigned char hash[32],
                     apr_uint32_t realm, crm_limit_class_t class,
                     apr_uint32_t limit, apr_uint32_t ceiling);

/* Set *VERDICT's limit, remaining and reset_us as crm_limit_admit() does, but
 * charge nothing. */
void crm_limit_look(crm_limit_verdict_t *verdict, crm_limit_t *block,
                    const unsigned char hash[32], apr_uint32_t realm,
                    crm_limit_class_t class, apr_uint32_t limit,
                    apr_uint32_t ceiling);

/* Remove the last admitted request of CLASS from the window of the key of HASH
 * in REALM, so that it is not counted. */
void crm_limit_refund(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm, crm_limit_class_t class);

/* Turn the admission VERDICT of a request of CLASS by KEY into a refusal,
 * because the budget of all hosts is used up (contract 16.1). The request
 * leaves the window and is counted as refused. crm_limit_admit() refuses all
 * requests of CLASS by KEY under the same limit until UNTIL, a time of
 * crm_limit_clock(). The caller sets VERDICT's reset_us. */
void crm_limit_close(crm_limit_verdict_t *verdict, crm_limit_t *block,
                     const crm_limit_key_t *key, crm_limit_class_t class,
                     apr_int64_t until);

/* Return the time on the clock of the windows: monotonic, in microseconds. */
apr_int64_t crm_limit_clock(void);

/* Set *STATS to the statistics of BLOCK. */
void crm_limit_stats(crm_limit_stats_t *stats, crm_limit_t *block);

/* For tests: use NOW_US as the clock of this process: monotonic, in
 * microseconds. NULL: CLOCK_MONOTONIC. */
void crm_limit_set_clock(apr_int64_t (*now_us)(void));

#endif /* CRM_LIMIT_H */
