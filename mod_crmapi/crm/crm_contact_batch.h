/* SPDX-License-Identifier: Apache-2.0 */
/* crm_contact_batch.h: finding contacts by who they are, and writing them,
 * many at once in one transaction: for upsert and for sequences/start */
#ifndef CRM_CONTACT_BATCH_H
#define CRM_CONTACT_BATCH_H

#include "apr_hash.h"

#include "crm_op.h"

/* A contact in memory: as it is in the database, or as it is going to be. */
typedef struct crm_contact_t {
    const char **binds;         /* of each field, by its index in the table */
    const char *id;
    const char *created_at;     /* 24 characters */
    const char *updated_at;
    const char *email_key;      /* who it is at present, or NULL */
    const char *phone_key;
    int is_new;                 /* not in the database yet */
    int changed;                /* is, and differs */
} crm_contact_t;

/* One that is looked for. */
typedef struct crm_identity_t {
    const char *email;          /* the primary ones of what was sent, NULL if */
    const char *phone;          /* there is none */
    const char *email_key;      /* found: the keys that they are matched by */
    const char *phone_key;
    apr_array_header_t *matches; /* of crm_contact_t *: those in the database
                                   that have one of the keys, oldest first */
} crm_identity_t;

/* A reference that must name a row of the workspace. */
typedef struct crm_ref_t {
    const char *ref;            /* a resource's name */
    const char *id;
} crm_ref_t;

/* Contacts of a call's workspace, with identity locks held. */
typedef struct crm_contact_batch_t {
    crm_call_t *call;
    apr_pool_t *pool;
    const char *now;            /* the database's, 24 characters */
    apr_hash_t *by_id;          /* id -> crm_contact_t */
    apr_array_header_t *touched; /* of crm_contact_t *: whose identity is of
                                   this batch's making */
    apr_hash_t *refs;           /* "company:<id>" -> itself: those that exist */
    apr_array_header_t *contacts; /* of crm_contact_t * */
} crm_contact_batch_t;

/* What goes with the opening of a batch, in its round trip. */
typedef struct crm_contact_more_t {
    const char *lock;           /* another name to lock, or NULL */
    crm_sql_t sql;              /* a statement run after the locks */
    PGresult *result;           /* its rows */
} crm_contact_more_t;

/* Set *IDENTITY to the primary addresses of VALUES, a contact's. */
void crm_identity_init(crm_identity_t *identity, const crm_values_t *values,
                       apr_pool_t *pool);

/* Begin a transaction on CALL's connection; lock the identities of the COUNT
 * IDENTITIES in sorted order (contract 10.5), run MORE (may be NULL), look up
 * REFS (of crm_ref_t), find and lock the contacts that have the identities:
 * all in one round trip. The DEPTH oldest of each identity are loaded: 1, or
 * more where those may lose it on the way. Set *BATCH_P, in CALL's pool. If
 * the key is dead or may not do this, the error is as crm_rest_refuse() gives
 * it. With an error nothing is left open. */
crm_error_t *crm_contact_batch_open(crm_contact_batch_t **batch_p,
                                    crm_call_t *call,
                                    crm_identity_t *identities,
                                    int count, int depth,
                                    const apr_array_header_t *refs,
                                    crm_contact_more_t *more);

/* Add to INPUT those references of VALUES, whose errors begin with PREFIX,
 * that BATCH has not found. Return how many. */
int crm_contact_batch_check_refs(crm_contact_batch_t *batch, crm_input_t *input,
                                 const crm_values_t *values,
                                 const char *prefix);

/* Return whether BATCH has found the row ID of REF. */
int crm_contact_batch_has(const crm_contact_batch_t *batch, const char *ref,
                          const char *id);

/* Add to INPUT, with PREFIX before the names, those fields of VALUES that have
 * become too large by being united with what was there. Return whether all
 * fit. */
int crm_contact_fits(crm_input_t *input, const crm_values_t *values,
                     const char *prefix);

/* Return the contact that IDENTITY names at this point of BATCH: by e-mail,
 * else by phone, the oldest (contract 10.1); NULL if there is none. */
crm_contact_t *crm_contact_batch_match(crm_contact_batch_t *batch,
                                       const crm_identity_t *identity);

/* Return a new contact of BATCH, owned by BOT_ID, with VALUES, a create's. */
crm_contact_t *crm_contact_batch_create(crm_contact_batch_t *batch,
                                        const crm_identity_t *identity,
                                        const crm_values_t *values,
                                        const char *bot_id);

/* Give CONTACT of BATCH, which IDENTITY has matched, the fields SENT in VALUES,
 * which the caller has united with what was there as its rules say. Its
 * updated_at moves if that changes anything. */
void crm_contact_batch_update(crm_contact_batch_t *batch,
                              const crm_identity_t *identity,
                              crm_contact_t *contact,
                              const crm_values_t *values);

/* Write all new and changed contacts of BATCH, run the COUNT statements MORE,
 * and commit: one round trip. An error means that nothing is committed. */
crm_error_t *crm_contact_batch_commit(crm_contact_batch_t *batch,
                                      crm_sql_t *more, int count);

/* Roll BATCH's transaction back. */
void crm_contact_batch_abandon(crm_contact_batch_t *batch);

/* Add to BUF the JSON of CONTACT as the API shows it. */
void crm_contact_write(crm_buf_t *buf, const crm_contact_t *contact);

/* Return the index of the field NAME in a contact's table. */
int crm_contact_index(const char *name);

#endif /* CRM_CONTACT_BATCH_H */
