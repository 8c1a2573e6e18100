/* SPDX-License-Identifier: Apache-2.0 */
/* crm_etag.h: entity tags and the headers that compare them (RFC 9110, 8.8.3,
 * 13.1; contract 13.2) */
#ifndef CRM_ETAG_H
#define CRM_ETAG_H

#include "apr_pools.h"
#include "apr_tables.h"

/* The size of a buffer for an entity tag, with its quotes and the NUL. */
#define CRM_ETAG_SIZE 22

/* The entity tags of an If-Match or If-None-Match. */
typedef struct crm_etags_t {
    int any;                    /* the header is "*" */
    apr_array_header_t *tags;   /* of crm_etag_t */
} crm_etags_t;

/* An entity tag of a header: the LEN bytes at TEXT, without quotes. */
typedef struct crm_etag_t {
    const char *text;
    apr_size_t len;
    int weak;
} crm_etag_t;

/* Write the strong entity tag of a resource to OUT: "TIME.HASH". TIME is
 * UPDATED_AT, PostgreSQL's output of a timestamptz(3) in UTC (at least 19
 * characters). HASH is the hash of the LEN bytes of JSON at BODY: derived
 * fields change without updated_at. A resource without updated_at (NULL) gets
 * "HASH" only. */
void crm_etag_make(char out[CRM_ETAG_SIZE], const char *updated_at,
                   const char *body, apr_size_t len);

/* Read HEADER, the value of an If-Match or If-None-Match, into *TAGS in POOL.
 * Return NULL or the rule that HEADER breaks. */
const char *crm_etags_read(crm_etags_t *tags, const char *header,
                           apr_pool_t *pool);

/* Return whether TAGS has TAG, a strong one with its quotes, or is "*". WEAKLY:
 * weak tags count, too. A suffix that begins with '-' is ignored as
 * well: mod_deflate and mod_brotli add "-gzip" and "-br" to the tags of bodies
 * that they compress. */
int crm_etags_have(const crm_etags_t *tags, const char *tag, int weakly);

/* Return the times of TAGS as a bind for timestamptz[], in POOL; WEAKLY as above. A
 * tag in another format has no time, so it matches no row. */
const char *crm_etags_times(const crm_etags_t *tags, int weakly,
                            apr_pool_t *pool);

#endif /* CRM_ETAG_H */
