/* SPDX-License-Identifier: Apache-2.0 */
/* parties_kind.h: what contacts and companies are found by */
#ifndef PARTIES_KIND_H
#define PARTIES_KIND_H

#include "crm_resource.h"

/* What a contact or company is matched by, in this order: its keys. */
#define CRM_IDENTITY_KEYS 3

enum { CRM_IDENTITY_EXTERNAL, CRM_IDENTITY_EMAIL, CRM_IDENTITY_PHONE, /* of a contact */
       CRM_IDENTITY_DOMAIN = 1 };                           /* of a company */

/* A key of a kind. */
typedef struct crm_identity_key_t {
    const char *column;         /* of the table; NULL: the kind has no such
                                   key */
    const char *lock;           /* prefix of the name of its advisory lock */
    const char *fold;           /* the SQL function that makes it of the text
                                   that is sent; "" if the text is the key */
    const struct crm_channel_t *channel; /* whose way is its member of the field
                                   "suppressed", or NULL */
} crm_identity_key_t;

/* What is found and written: contacts or companies. */
typedef struct crm_party_kind_t {
    const crm_resource_t *resource;
    const char *list;           /* "contacts": the member of an upsert's body */
    crm_identity_key_t keys[CRM_IDENTITY_KEYS];
    /* Set TEXTS to those of the keys of a row with BINDS, in POOL. */
    void (*texts)(const char *texts[CRM_IDENTITY_KEYS], const char *const *binds,
                  apr_pool_t *pool);
} crm_party_kind_t;

extern const crm_party_kind_t crm_party_contacts;
extern const crm_party_kind_t crm_party_companies;

/* Return the index of the field NAME in the table of KIND's fields. */
int crm_party_index(const crm_party_kind_t *kind, const char *name);

/* The same for contacts. */
int crm_contact_index(const char *name);

#endif /* PARTIES_KIND_H */
