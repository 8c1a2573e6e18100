/* SPDX-License-Identifier: Apache-2.0 */
/* parties_kind.c: what contacts and companies are found by */
#include "parties_kind.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_channel.h"
#include "crm_email.h"
#include "crm_json.h"
#include "crm_phone.h"
#include "crm_resources.h"

int crm_party_index(const crm_party_kind_t *kind, const char *name)
{
    return (int)(crm_resource_field(kind->resource, name)
                 - kind->resource->fields);
}

int crm_contact_index(const char *name)
{
    return crm_party_index(&crm_party_contacts, name);
}

/* Return, in POOL, the primary address of LIST, a bind of crm_type_emails or
 * crm_type_phones, or NULL if LIST is empty. MEMBER is the name of the address
 * in an entry. */
static const char *primary_of(const char *list, const char *member,
                              apr_pool_t *pool)
{
    json_object *array = list && strcmp(list, "[]") ? json_tokener_parse(list)
                         : NULL;
    size_t count = array ? json_object_array_length(array) : 0;
    const char *primary = NULL;

    for (size_t i = 0; i < count; i++) {
        json_object *entry = json_object_array_get_idx(array, i);

        if (json_object_get_boolean(json_object_object_get(entry,
                                                           "is_primary"))) {
            primary = apr_pstrdup(pool, json_object_get_string(
                                      json_object_object_get(entry, member)));
        }
    }
    json_object_put(array);
    return primary;
}

static void contact_texts(const char *texts[CRM_IDENTITY_KEYS],
                          const char *const *binds, apr_pool_t *pool)
{
    const char *email = primary_of(binds[crm_contact_index("emails")],
                                   "email", pool);
    const char *phone = primary_of(binds[crm_contact_index("phone_numbers")],
                                   "phone_number", pool);

    texts[CRM_IDENTITY_EXTERNAL] = binds[crm_contact_index("external_id")];
    texts[CRM_IDENTITY_EMAIL] = email ? crm_email_key(email, pool) : NULL;
    texts[CRM_IDENTITY_PHONE] = phone ? crm_phone_key(phone, pool) : NULL;
}

const crm_party_kind_t crm_party_contacts = {
    .resource = &crm_resource_contact, .list = "contacts",
    .keys = {
        [CRM_IDENTITY_EXTERNAL] = {"external_id", ":i:", "", NULL},
        [CRM_IDENTITY_EMAIL] = {"email_key", ":e:", "",
                           &crm_channels[CRM_CHANNEL_EMAIL]},
        [CRM_IDENTITY_PHONE] = {"phone_key", ":p:", "",
                           &crm_channels[CRM_CHANNEL_TEXT]},
    },
    .texts = contact_texts,
};

static void company_texts(const char *texts[CRM_IDENTITY_KEYS],
                          const char *const *binds, apr_pool_t *pool)
{
    const crm_party_kind_t *kind = &crm_party_companies;

    (void)pool;
    texts[CRM_IDENTITY_EXTERNAL] = binds[crm_party_index(kind, "external_id")];
    texts[CRM_IDENTITY_DOMAIN] = binds[crm_party_index(kind, "domain")];
    texts[CRM_IDENTITY_KEYS - 1] = NULL;
    if (texts[CRM_IDENTITY_DOMAIN] && !*texts[CRM_IDENTITY_DOMAIN]) {
        texts[CRM_IDENTITY_DOMAIN] = NULL;
    }
}

const crm_party_kind_t crm_party_companies = {
    .resource = &crm_resource_company, .list = "companies",
    .keys = {
        [CRM_IDENTITY_EXTERNAL] = {"external_id", ":I:", "", NULL},
        [CRM_IDENTITY_DOMAIN] = {"domain_key", ":d:", "crmapi.fold", NULL},
    },
    .texts = company_texts,
};
