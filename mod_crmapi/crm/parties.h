/* SPDX-License-Identifier: Apache-2.0 */
/* parties.h: finding contacts or companies by their identity and writing
 * them in one transaction, for upsert and sequences/start */
#ifndef CRM_PARTIES_H
#define CRM_PARTIES_H

#include "apr_hash.h"

#include "crm_body.h"
#include "crm_call.h"
#include "parties_kind.h"

/* A contact or company in memory: as stored, or with changes to be written. */
typedef struct crm_party_t {
    const char **binds;         /* by index in the table of fields */
    const char *id;
    const char *created_at;     /* 24 characters */
    const char *updated_at;
    const char *keys[CRM_IDENTITY_KEYS]; /* its current identity; NULL: none */
    const char *stored;         /* its external_id in the database, or NULL */
    int is_new;                 /* not in the database yet */
    int changed;                /* it must be updated */
} crm_party_t;

/* The identity of a party in a request. */
typedef struct crm_identity_t {
    const char *id;             /* of the party that it is; NULL: its keys find
                                   it */
    const char *texts[CRM_IDENTITY_KEYS]; /* what was sent of each key, or NULL */
    const char *keys[CRM_IDENTITY_KEYS]; /* the keys that are matched, set by the
                                   look-up */
    apr_array_header_t *matches; /* of crm_party_t *: parties stored with one
                                    of the keys, oldest first */
} crm_identity_t;

/* A reference to a row of the workspace. */
typedef struct crm_ref_t {
    const char *ref;            /* a resource's name */
    const char *id;
} crm_ref_t;

/* Contacts of a call's workspace. The advisory locks of their identities are
 * held. */
typedef struct crm_parties_t {
    crm_call_t *call;
    const crm_party_kind_t *kind;
    apr_pool_t *pool;
    const char *now;            /* the database's time, 24 characters */
    apr_hash_t *by_id;          /* id -> crm_party_t */
    apr_array_header_t *touched; /* of crm_party_t *: those whose identity was
                                    set in this transaction */
    apr_hash_t *refs;           /* set of "company:<id>": the rows that exist */
    apr_hash_t *reasons;        /* "sms<key>" -> why that address is not written
                                   to */
    apr_array_header_t *rows;   /* of crm_party_t * */
    unsigned char *changed;     /* by index in the table of fields: 1 if the
                                   value of a stored party changes */
} crm_parties_t;

/* A statement run in the round trip that opens parties. */
typedef struct crm_parties_more_t {
    const char *lock;           /* another name to lock, or NULL */
    crm_sql_t sql;              /* run after the locks are taken */
    PGresult *result;           /* its result */
} crm_parties_more_t;

/* Set *IDENTITY to that in VALUES, the values of a row of KIND. */
void crm_identity_init(crm_identity_t *identity, const crm_party_kind_t *kind,
                       const crm_values_t *values, apr_pool_t *pool);

/* Open parties of KIND and set *PARTIES_P, in CALL's pool. In one round trip this
 * begins a transaction on CALL's connection, locks the COUNT IDENTITIES in sorted
 * order (contract 10.5), looks up REFS (of crm_ref_t), finds and locks the parties
 * with these identities, and runs MORE (may be NULL). The DEPTH oldest parties of
 * each identity are loaded: 1, or more if a party may lose the identity in the
 * transaction. If the first of IDENTITIES has an id, it is the only one. Errors:
 * those of crm_rest_refuse() if the key is dead or does not permit the operation,
 * those of crm_idempotency_outcome(). After an error no transaction is open. */
crm_error_t *crm_parties_open(crm_parties_t **parties_p,
                              crm_call_t *call,
                              const crm_party_kind_t *kind,
                              crm_identity_t *identities,
                              int count, int depth,
                              const apr_array_header_t *refs,
                              crm_parties_more_t *more);

/* Add an error to INPUT for each reference in VALUES whose row does not exist.
 * The names of fields begin with PREFIX. Return the number of errors. */
int crm_parties_check_refs(crm_parties_t *parties, crm_input_t *input,
                           const crm_values_t *values,
                           const char *prefix);

/* Return whether the resource REF has a row with the id ID, which was one of
 * the REFS that PARTIES was opened with. */
int crm_parties_has(const crm_parties_t *parties, const char *ref,
                    const char *id);

/* Add an error to INPUT if BIND, what FIELD has after a value was merged with the
 * stored one, is too large. The field's name in the error begins with PREFIX. */
void crm_party_fits(crm_input_t *input, const crm_field_t *field,
                    const char *bind, const char *prefix);

/* Return the party that has IDENTITY at this point of PARTIES: the one with its
 * id, or else with its external_id, or else the oldest with its e-mail or domain,
 * or else the oldest with its phone (contract 10.1, 20.3). What has another external_id
 * is another one, whatever its addresses are. Return NULL if there is none. */
crm_party_t *crm_parties_match(crm_parties_t *parties,
                               const crm_identity_t *identity);

/* Return whether a row of PARTIES that is not PARTY (may be NULL) has the
 * external_id of IDENTITY in the database. That row may lose it in PARTIES, but no
 * other row can have it before the end of the transaction. */
int crm_parties_taken(const crm_parties_t *parties,
                      const crm_identity_t *identity,
                      const crm_party_t *party);

/* Return a new party of PARTIES with VALUES and the agent BOT_ID. */
crm_party_t *crm_parties_create(crm_parties_t *parties,
                                const crm_identity_t *identity,
                                const crm_values_t *values,
                                const char *bot_id);

/* Set the fields of PARTY of PARTIES, which IDENTITY matches, that were sent in
 * VALUES. The caller has merged them with the stored values. updated_at changes
 * only if another field changes. */
void crm_parties_update(crm_parties_t *parties,
                        const crm_identity_t *identity,
                        crm_party_t *party,
                        const crm_values_t *values);

/* Write all new and changed parties of PARTIES, run the COUNT statements at MORE
 * (at most 3), store the response, which is complete, if the request has an
 * Idempotency-Key, and commit, in one round trip. After an error nothing is
 * committed. */
crm_error_t *crm_parties_commit(crm_parties_t *parties,
                                crm_sql_t *more, int count);

/* Roll back the transaction of PARTIES. */
void crm_parties_abandon(crm_parties_t *parties);

/* Add PARTY of KIND to BUF as JSON as the API shows it. */
void crm_party_write(crm_buf_t *buf, const crm_party_kind_t *kind,
                     const crm_party_t *party);

#endif /* CRM_PARTIES_H */
