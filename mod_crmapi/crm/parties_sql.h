/* SPDX-License-Identifier: Apache-2.0 */
/* parties_sql.h: the statements that find and write parties */
#ifndef PARTIES_SQL_H
#define PARTIES_SQL_H

#include "parties.h"

/* Columns of the rows of crm_party_sql_look_up(). The party's begin at
 * CRM_MATCH_FIRST. */
enum {
    CRM_MATCH_IDENTITY,         /* number of the identity, from 1 */
    CRM_MATCH_NOW,              /* the database's time */
    CRM_MATCH_KEYS,             /* the identity's keys */
    CRM_MATCH_SUPPRESSED = CRM_MATCH_KEYS + CRM_IDENTITY_KEYS, /* why they are */
    CRM_MATCH_PARTY_KEYS,
    CRM_MATCH_FIRST = CRM_MATCH_PARTY_KEYS + CRM_IDENTITY_KEYS
};

/* Set SQL to the statement that takes the advisory locks of COUNT identities of KIND:
 * of the TEXTS of their keys (binds of text[], null where there is none) and of the
 * name LOCK (may be NULL). They are taken in the order of their numbers, so that
 * transactions cannot deadlock, behind a turn if they are many. */
void crm_party_sql_locks(crm_sql_t *sql, crm_call_t *call,
                         const crm_party_kind_t *kind,
                         const char *const texts[CRM_IDENTITY_KEYS],
                         int count, const char *lock);

/* Set SQL to the statement that looks up parties of KIND. Identity I has the
 * texts TEXTS[key][I]. For each identity and each of its keys there is a row
 * for each of the DEPTH oldest parties that match the key: two for a party that
 * matches two. An identity without a match has a row without a party. With ID
 * (may be NULL) the only identity matches the party of that id alone. The
 * parties are locked against updates, in the order of their ids. No row is
 * returned if CALL's key does not permit the operation. */
void crm_party_sql_look_up(crm_sql_t *sql, crm_call_t *call,
                           const crm_party_kind_t *kind,
                           const char *const texts[CRM_IDENTITY_KEYS],
                           const char *id, int depth);

/* Set SQL to the statement that returns "ref:id" for each of REFS (of
 * crm_ref_t) that exists. Companies stay until the transaction ends. */
void crm_party_sql_refs(crm_sql_t *sql, crm_call_t *call,
                        const apr_array_header_t *refs);

/* Set SQL, in PARTIES' pool, to the statement that inserts the new parties of
 * PARTIES. Return 0 if there are none; SQL is then undefined. */
int crm_party_sql_insert(crm_sql_t *sql, const crm_parties_t *parties);

/* The same for the parties that PARTIES changes. */
int crm_party_sql_update(crm_sql_t *sql, const crm_parties_t *parties);

#endif /* PARTIES_SQL_H */
