/* SPDX-License-Identifier: Apache-2.0 */
/* contact.c: contacts (specification: Contact; contract 9, 10) */
#include "crm_filters.h"
#include "crm_party.h"
#include "crm_resources.h"
#include "crm_sql.h"
#include "crm_type_address.h"
#include "crm_type_list.h"

/* ---- suppressed ---------------------------------------------------------- */

static const crm_type_t type_suppressed = {
    .name = "suppressed", .cast = "jsonb", .write = crm_buf_json_compact,
    .fixed_schema = "\"type\":\"object\",\"properties\":{"
                    "\"email\":{\"type\":\"string\"},"
                    "\"sms\":{\"type\":\"string\"}}",
};

/* The same as crmapi.contact_suppressed(). It is one look-up in one index: most of
 * what it costs is that a statement has one more part. */
#define SUPPRESSED_SQL \
    "jsonb_object(ARRAY(SELECT ARRAY[CASE s.kind WHEN 'email' THEN 'email'" \
    " ELSE 'sms' END, coalesce(s.reason, 'suppressed')]" \
    " FROM crmapi.suppression s WHERE " CRM_SQL_OWN("s") \
    " AND s.address = ANY (ARRAY[t.email_key, t.phone_key]) AND s.address =" \
    " CASE s.kind WHEN 'email' THEN t.email_key ELSE t.phone_key END))"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref,
     .flags = CRM_F_REQUIRED | CRM_F_CREATE | CRM_F_FIXED, .ref = "agent",
     .doc = "owning agent"},
    {.name = "first_name", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "last_name", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "emails", .type = &crm_type_emails, .flags = CRM_F_WRITABLE},
    {.name = "phone_numbers", .type = &crm_type_phones,
     .flags = CRM_F_WRITABLE},
    {.name = "company", .type = &crm_type_text, .flags = CRM_F_OPTIONAL,
     .doc = "free-text company name"},
    {.name = "company_id", .type = &crm_type_ref,
     .flags = CRM_F_OPTIONAL, .ref = "company",
     .doc = "reference to a company"},
    {.name = "job_title", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "lead_source", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "tags", .type = &crm_type_tags, .flags = CRM_F_WRITABLE},
    {.name = "deal_value", .type = &crm_type_number, .flags = CRM_F_OPTIONAL,
     .doc = "what the deal is worth, in the workspace's currency"},
    {.name = "pipeline_stage_id", .type = &crm_type_ref,
     .flags = CRM_F_OPTIONAL, .ref = "pipeline_stage"},
    {.name = "contact_type", .type = &crm_type_text, .flags = CRM_F_OPTIONAL,
     .doc = "free-form, for example lead or customer"},
    CRM_FIELDS_PARTY,
    {.name = "last_contacted_at", .type = &crm_type_time,
     .flags = CRM_F_NULLABLE | CRM_F_DERIVED,
     .sql = "SELECT max(a.created_at) FROM crmapi.activity a WHERE "
            CRM_SQL_OWN("a") " AND a.contact_id = t.id",
     .function = "contact_last_contacted_at",
     .doc = "most recent activity"},
    {.name = "suppressed", .type = &type_suppressed,
     .flags = CRM_F_DERIVED,
     .sql = SUPPRESSED_SQL,
     .new_sql = "crmapi.contact_suppressed(t.workspace_id, t.email_key,"
                " t.phone_key)",
     .function = "contact_suppressed_of",
     .doc = "why sequences do not write to the primary e-mail address (email)"
            " or call the primary phone number or send it messages (sms): the"
            " reason of the suppression. Empty if they do"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

/* ---- filters ------------------------------------------------------------- */

static const crm_filter_t list_filters[] = {
    {.field = {.name = "search", .example = "ada",
               .type = &crm_type_text, .max = 200,
               .doc = "substring of name, e-mail, phone number or company"},
     .by = CRM_BY_SEARCH,
     .sql = "t.search",
     .digits = "phone_digits", .digits_table = "crmapi.contact"},
    CRM_FILTER_TAGS,
    {.field = {.name = "lead_source", .example = "fair",
               .type = &crm_type_text,
               .doc = "exact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.lead_source"), .order = "t.created_at"},
    {.field = {.name = "pipeline_stage_id", .type = &crm_type_ref,
               .doc = "only contacts in this stage"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.pipeline_stage_id"), .order = "t.created_at"},
    CRM_FILTER_AGENT(1),
    CRM_FILTER_CREATED("t.created_at"),
    {.field = {.name = "company_id", .type = &crm_type_ref,
               .doc = "only contacts of this company"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.company_id"), .order = "t.created_at"},
    {.field = {.name = "has_company", .type = &crm_type_boolean,
               .doc = "whether the contact has a company_id"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.company_id IS NOT NULL", .order = "t.created_at",
     .sql_false = "t.company_id IS NULL", .order_false = "t.created_at"},
    {.field = {.name = "contact_type", .example = "customer",
               .type = &crm_type_text,
               .doc = "exact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.contact_type"), .order = "t.created_at"},
    {.field = {.name = "email", .example = "ada@example.com",
               .type = &crm_type_email_asked,
               .doc = "contacts that have this address, without case, whether"
                      " it is the primary one or not"},
     .by = CRM_BY_ADDRESS, .by_key = 1, .sql = "?", .column = "email_key",
     .keys = "crmapi.email_keys(e.emails)"},
    {.field = {.name = "phone", .example = "+4930901820",
               .type = &crm_type_phone_asked, .max = 100,
               .doc = "contacts that have this number, in any spelling that"
                      " has the same E.164 form; without + only the same"
                      " text"},
     .by = CRM_BY_ADDRESS, .by_key = 1, .sql = "crmapi.phone_key(?)",
     .column = "phone_key", .keys = "crmapi.phone_keys(e.phone_numbers)"},
    CRM_FILTER_EXTERNAL_ID,
    CRM_FILTER_MEMBER,
    CRM_FILTER_UPDATED,
    CRM_FILTER_IDS,
    {.field = {.name = NULL}}
};

static const crm_filter_t by_email_filters[] = {
    {.field = {.name = "email", .example = "ada@example.com",
               .type = &crm_type_email,
     .flags = CRM_F_REQUIRED,
               .doc = "matched to the primary e-mail without case; the oldest "
                      "contact that has it"},
     .by = CRM_BY_VALUE,
     .sql = "t.email_key = ?"},
    {.field = {.name = NULL}}
};

static const crm_sort_t orders[] = {
    {.name = "created_at", .keys = {"t.created_at"}},
    {.name = "updated_at", .keys = {"t.updated_at"}, .ascending = 1,
     .by_time = 1},
    {.name = NULL}
};

static const crm_sort_t oldest_first[] = {
    {.name = NULL, .keys = {"t.created_at"}},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listContacts", .method = "GET", .path = "/contacts",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = orders,
     .ordered = 1,
     .counter = "contact",
     .doc = "The newest first. Filters are combined. To copy all, use "
            "cursor=*; to follow changes, GET /events.",
     .summary = "List contacts"},
    {.id = "createContact", .method = "POST", .path = "/contacts",
     .kind = CRM_OP_CREATE,
     .location = 1,
     .example = "{'bot_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64',"
                "'first_name':'Ada','emails':['ada@example.com'],'tags':"
                "['vip'],'external_id':'shop-1001'}",
     .doc = "Of an agent. Addresses may be sent as texts or objects. A known "
            "e-mail makes a second contact: use upsert to avoid that.",
     .summary = "Create a contact"},
    {.id = "findContactByEmail", .method = "GET", .path = "/contacts/by-email",
     .kind = CRM_OP_GET,
     .filters = by_email_filters,
     .sorts = oldest_first,
     .doc = "Without case, by the primary e-mail only. If several have it, "
            "the oldest.",
     .summary = "Find a contact by its primary e-mail"},
    {.id = "upsertContacts", .method = "POST", .path = "/contacts/upsert",
     .kind = CRM_OP_CONTACT_UPSERT,
     .body_schema = "UpsertInput",
     .answer_schema = "UpsertResult",
     .item_schema = "ContactItem",
     .statuses = {400, 413, 415, 422},
     .example = "{'bot_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64','contacts':"
                "[{'external_id':'shop-1001','first_name':'Ada','emails':"
                "['ada@example.com']}],'on_match':{'custom_fields':'merge'}}",
     .doc = "Each item is matched by external_id, or else by primary e-mail, "
            "or else by primary phone number. A match is updated, the others "
            "are created. An item that fails is in errors, and does not fail "
            "the others. It costs one write.",
     .summary = "Create or update up to 200 contacts"},
    {.id = "getContact", .method = "GET", .path = "/contacts/{id}",
     .kind = CRM_OP_GET,
     .doc = "Shows it as it is now, with the time of its latest activity.",
     .summary = "Get a contact"},
    {.id = "updateContact", .method = "PATCH", .path = "/contacts/{id}",
     .kind = CRM_OP_UPDATE,
     .example = "{'job_title':'Engineer','custom_fields':{'plan':'pro'}}",
     .doc = "Changes what is sent; null clears. As "
            "application/merge-patch+json it merges custom_fields instead of "
            "replacing them.",
     .summary = "Change a contact"},
    {.id = "mergeContact", .method = "POST", .path = "/contacts/{id}/merge",
     .kind = CRM_OP_CONTACT_MERGE,
     .body_schema = "MergeInput",
     .example = "{'from':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c65'}",
     .doc = "Everything of the contact named by from moves to this one: lists "
            "are united, empty fields filled. Then from is gone: it answers "
            "410 with the Location of this one.",
     .summary = "Merge another contact into this one"},
    {.id = "eraseContact", .method = "POST", .path = "/contacts/{id}/erase",
     .kind = CRM_OP_CONTACT_ERASE,
     .answer_schema = "ErasureStatus",
     .doc = "For a person who asks to be forgotten: this contact, all with the "
            "same addresses, and what belongs to them. There is no way back. "
            "If the status is pending, crmapid does the rest.",
     .summary = "Erase all that is kept about a person"},
    {.id = "deleteContact", .method = "DELETE", .path = "/contacts/{id}",
     .kind = CRM_OP_DELETE,
     .doc = "There is no way back. Running sequences stop; cards, "
            "conversations and submissions stay without it.",
     .summary = "Delete a contact permanently"},
    {.id = NULL}
};

const crm_resource_t crm_resource_contact = {
    .name = "contact", .title = "Contact", .tag = "Contacts",
    .doc = "A person that agents talk to.",
    .fields = fields,
    .operations = operations,
    .times = "contact_change",
    .merged = "contact_merged",
};
