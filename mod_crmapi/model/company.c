/* SPDX-License-Identifier: Apache-2.0 */
/* company.c: companies (specification: Company) */
#include "crm_filters.h"
#include "crm_party.h"
#include "crm_resources.h"
#include "crm_sql.h"
#include "crm_type_address.h"
#include "crm_type_list.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "workspace_id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref,
     .flags = CRM_F_REQUIRED | CRM_F_CREATE | CRM_F_FIXED, .ref = "agent",
     .doc = "owning agent"},
    {.name = "name", .type = &crm_type_text,
     .flags = CRM_F_REQUIRED | CRM_F_SHOWN | CRM_F_WRITABLE},
    {.name = "domain", .type = &crm_type_text, .flags = CRM_F_OPTIONAL,
     .doc = "primary domain"},
    {.name = "website", .type = &crm_type_text,
     .flags = CRM_F_OPTIONAL, .max = 2048},
    {.name = "industry", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "company_size", .type = &crm_type_text, .flags = CRM_F_OPTIONAL,
     .doc = "free-form band"},
    {.name = "company_type", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "employee_count", .type = &crm_type_number,
     .flags = CRM_F_OPTIONAL},
    {.name = "annual_revenue", .type = &crm_type_number,
     .flags = CRM_F_OPTIONAL},
    {.name = "description", .type = &crm_type_text,
     .flags = CRM_F_OPTIONAL, .max = 65536},
    {.name = "emails", .type = &crm_type_emails, .flags = CRM_F_WRITABLE},
    {.name = "phone_numbers", .type = &crm_type_phones,
     .flags = CRM_F_WRITABLE},
    {.name = "tags", .type = &crm_type_tags, .flags = CRM_F_WRITABLE},
    {.name = "total_deal_value", .type = &crm_type_number,
     .flags = CRM_F_NULLABLE | CRM_F_DERIVED,
     .sql = "SELECT sum(c.deal_value) FROM crmapi.contact c WHERE "
            CRM_SQL_OWN("c") " AND c.company_id = t.id",
     .doc = "sum of deal_value over linked contacts"},
    {.name = "pipeline_stage_id", .type = &crm_type_ref,
     .flags = CRM_F_OPTIONAL, .ref = "pipeline_stage"},
    CRM_FIELDS_PARTY,
    {.name = "last_activity_at", .type = &crm_type_time,
     .flags = CRM_F_NULLABLE | CRM_F_DERIVED,
     .sql = "SELECT greatest((SELECT max(a.created_at) FROM crmapi.activity a "
            "WHERE " CRM_SQL_OWN("a") " AND a.company_id = t.id), "
            "(SELECT max(l.latest) FROM crmapi.contact c CROSS JOIN LATERAL "
            "(SELECT max(a.created_at) AS latest FROM crmapi.activity a WHERE "
            CRM_SQL_OWN("a") " AND a.contact_id = c.id) l WHERE "
            CRM_SQL_OWN("c") " AND c.company_id = t.id))",
     .doc = "latest activity of the company or a linked contact"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

static const crm_filter_t list_filters[] = {
    {.field = {.name = "search", .example = "ada",
               .type = &crm_type_text, .max = 200,
               .doc = "substring of name, domain or industry"},
     .by = CRM_BY_SEARCH,
     .sql = "t.search"},
    CRM_FILTER_TAGS,
    {.field = {.name = "industry", .example = "Retail",
               .type = &crm_type_text,
               .doc = "exact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.industry"), .order = "t.created_at"},
    {.field = {.name = "domain", .example = "example.com",
               .type = &crm_type_text,
               .doc = "exact, without case"},
     .by = CRM_BY_VALUE,
     .sql = "t.domain_key = crmapi.fold(?)", .order = "t.created_at"},
    CRM_FILTER_AGENT(1),
    CRM_FILTER_EXTERNAL_ID,
    CRM_FILTER_MEMBER,
    CRM_FILTER_CREATED("t.created_at"),
    CRM_FILTER_UPDATED,
    CRM_FILTER_IDS,
    {.field = {.name = NULL}}
};

static const crm_operation_t operations[] = {
    {.id = "listCompanies", .method = "GET", .path = "/companies",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = crm_list_by_time,
     .ordered = 1,
     .counter = "company",
     .doc = "The newest first. To copy all, use cursor=*.",
     .summary = "List companies"},
    {.id = "createCompany", .method = "POST", .path = "/companies",
     .kind = CRM_OP_CREATE,
     .location = 1,
     .example = "{'bot_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64','name':"
                "'Example Ltd','domain':'example.com','external_id':'shop-7'}",
     .doc = "Of an agent. An external_id that a company of the workspace has "
            "already is refused.",
     .summary = "Create a company"},
    {.id = "upsertCompanies", .method = "POST", .path = "/companies/upsert",
     .kind = CRM_OP_COMPANY_UPSERT,
     .body_schema = "CompanyUpsertInput",
     .answer_schema = "CompanyUpsertResult",
     .item_schema = "CompanyItem",
     .statuses = {400, 413, 415, 422},
     .example = "{'bot_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64',"
                "'companies':[{'external_id':'shop-7','name':'Example Ltd',"
                "'tags':['customer']}],'on_match':{'tags':'union'}}",
     .doc = "Each item is matched by external_id, or else by domain. A match "
            "is updated, the others are created. An item that fails is in "
            "errors, and does not fail the others.",
     .summary = "Create or update up to 200 companies"},
    {.id = "getCompany", .method = "GET", .path = "/companies/{id}",
     .kind = CRM_OP_GET,
     .doc = "With the sum of its contacts' deals and its latest activity.",
     .summary = "Get a company"},
    {.id = "updateCompany", .method = "PATCH", .path = "/companies/{id}",
     .kind = CRM_OP_UPDATE,
     .example = "{'industry':'Retail','custom_fields':{'tier':'gold'}}",
     .doc = "Changes what is sent. As application/merge-patch+json it merges "
            "custom_fields instead of replacing them.",
     .summary = "Change a company"},
    {.id = "deleteCompany", .method = "DELETE", .path = "/companies/{id}",
     .kind = CRM_OP_DELETE,
     .doc = "There is no way back. Its contacts stay, without a company.",
     .summary = "Delete a company permanently"},
    {.id = NULL}
};

const crm_resource_t crm_resource_company = {
    .name = "company", .title = "Company", .tag = "Companies",
    .doc = "An organisation that contacts belong to.",
    .fields = fields,
    .operations = operations,
};
