/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_kind.c: the kinds of objects that documents of apply and show have
 * (contract 14.1), and what is checked of those that the API does not have */
#include "crmapictl_kind.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_bare.h"
#include "crm_deep.h"
#include "crm_email_wire.h"
#include "crm_resources.h"
#include "crm_type_list.h"
#include "crm_webform.h"
#include "crm_zone.h"
#include "crmapictl_options.h"
#include "crmapictl_workspace.h"
#include "event.h"

/* ---- types of their own --------------------------------------------------- */

/* Read VALUE, an array of strings, into STRINGS. Return 0 if it is none. */
static int read_strings(apr_array_header_t **strings_p, crm_input_t *input,
                        const crm_field_t *field, const char *path,
                        json_object *value)
{
    int before = crm_input_errors(input);
    const char *bind;

    crm_type_strings.parse(&bind, input, field, path, value);
    *strings_p = apr_array_make(input->pool, 4, sizeof(const char *));
    if (crm_input_errors(input) > before) {
        return 0;
    }
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        APR_ARRAY_PUSH(*strings_p, const char *) =
            json_object_get_string(json_object_array_get_idx(value, i));
    }
    return 1;
}

/* The name of the item I of PATH, as in the API's errors. */
static const char *item_path(const char *path, int i, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s[%d]", path, i);
}

/* Sender domains, stored as A-labels and once each; none is null. */
static void domains_parse(const char **bind_p, crm_input_t *input,
                          const crm_field_t *field, const char *path,
                          json_object *value)
{
    apr_array_header_t *given;
    apr_array_header_t *domains = apr_array_make(input->pool, 4,
                                                 sizeof(const char *));

    if (!read_strings(&given, input, field, path, value)) {
        return;
    }
    for (int i = 0; i < given->nelts; i++) {
        const char *rule = ctl_domain_add(domains, APR_ARRAY_IDX(
                                              given, i, const char *));

        if (rule) {
            crm_input_error(input, item_path(path, i, input->pool), rule);
            return;
        }
    }
    *bind_p = domains->nelts ? crm_sql_array(domains, input->pool) : NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Types of events, stored in order and once each. */
static void events_parse(const char **bind_p, crm_input_t *input,
                         const crm_field_t *field, const char *path,
                         json_object *value)
{
    apr_array_header_t *types, *own;

    if (!read_strings(&types, input, field, path, value)) {
        return;
    }
    for (int i = 0; i < types->nelts; i++) {
        if (!crm_event_is_type(APR_ARRAY_IDX(types, i, const char *))) {
            crm_input_error(input, item_path(path, i, input->pool),
                            "is not a type of event");
            return;
        }
    }
    if (!types->nelts) {
        crm_input_error(input, path, "must have a type of event");
        return;
    }
    own = apr_array_make(input->pool, types->nelts, sizeof(const char *));
    qsort(types->elts, (size_t)types->nelts, sizeof(const char *), compare);
    for (int i = 0; i < types->nelts; i++) {
        const char *one = APR_ARRAY_IDX(types, i, const char *);

        if (!i || strcmp(one, APR_ARRAY_IDX(types, i - 1, const char *))) {
            APR_ARRAY_PUSH(own, const char *) = one;
        }
    }
    *bind_p = crm_sql_array(own, input->pool);
}

static void strings_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    crm_type_strings.write(buf, text, len);
}

static void strings_schema(crm_buf_t *buf, const crm_field_t *field,
                           crm_side_t side)
{
    crm_type_strings.schema(buf, field, side);
}

static void events_schema(crm_buf_t *buf, const crm_field_t *field,
                          crm_side_t side)
{
    crm_type_schema(buf, "array", field, side);
    crm_buf_puts(buf, ",\"minItems\":1,\"items\":{\"enum\":[");
    for (const crm_event_type_t *type = crm_event_types; type->type; type++) {
        crm_buf_printf(buf, "%s\"%s\"", type == crm_event_types ? "" : ",",
                       type->type);
    }
    crm_buf_puts(buf, "]}");
}

static const crm_type_t type_domains = {
    .name = "domains", .cast = "text[]", .parse = domains_parse,
    .write = strings_write, .schema = strings_schema,
};
static const crm_type_t type_events = {
    .name = "events", .cast = "text[]", .parse = events_parse,
    .write = strings_write, .schema = events_schema,
};

/* ---- the workspace -------------------------------------------------------- */

static const crm_field_t workspace_fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "slug", .type = &crm_type_text, .max = 63,
     .doc = "short name; it cannot be changed"},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_REQUIRED},
    {.name = "plan", .type = &crm_type_text, .flags = CRM_F_REQUIRED,
     .initial = CTL_DEFAULT_PLAN},
    {.name = "time_zone", .type = &crm_type_text, .flags = CRM_F_REQUIRED,
     .initial = "UTC", .doc = "name in the IANA time zone database"},
    {.name = "currency", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "ISO 4217 code of amounts"},
    {.name = "read_limit", .type = &crm_type_integer,
     .max = CTL_LIMIT_MAX, .flags = CRM_F_NULLABLE,
     .doc = "GET and HEAD requests per minute; null: the virtual host's"},
    {.name = "write_limit", .type = &crm_type_integer,
     .max = CTL_LIMIT_MAX, .flags = CRM_F_NULLABLE,
     .doc = "other requests per minute; null: the virtual host's"},
    {.name = "events", .type = &crm_type_boolean,
     .flags = CRM_F_REQUIRED | CRM_F_DERIVED,
     .initial = "f",
     .sql = "EXISTS (SELECT FROM crmapi.event_feed f WHERE f.workspace_id ="
            " $1::uuid AND f.log)",
     .doc = "whether GET /events has what changes"},
    {.name = "sender_domains", .type = &type_domains, .flags = CRM_F_NULLABLE,
     .doc = "domains that mails may be from; null: as the site says"},
    {.name = "retention_conversations", .type = &crm_type_integer,
     .max = CTL_DAYS_MAX, .flags = CRM_F_NULLABLE,
     .doc = "days that conversations are kept; null: for ever"},
    {.name = "retention_submissions", .type = &crm_type_integer,
     .max = CTL_DAYS_MAX, .flags = CRM_F_NULLABLE,
     .doc = "days that submissions are kept; null: for ever"},
    {.name = "retention_events", .type = &crm_type_integer,
     .max = CTL_DAYS_MAX, .flags = CRM_F_NULLABLE,
     .doc = "days that events are kept; null: as the site says"},
    {.name = NULL}
};

static const char *slug_rule(const char *slug, apr_pool_t *pool)
{
    (void)pool;
    return ctl_slug_rule(slug);
}

static const char *currency_rule(const char *code, apr_pool_t *pool)
{
    (void)pool;
    return ctl_currency_ok(code) ? NULL
           : "must be three capital letters (ISO 4217)";
}

static const char *zone_rule(const char *zone, apr_pool_t *pool)
{
    (void)pool;
    return crm_zone_known(zone) ? NULL : CRM_ZONE_RULE;
}

/* As the CHECK of crmapi.webhook_endpoint (0014-webhooks.sql). */
static const char *url_rule(const char *url, apr_pool_t *pool)
{
    const char *host = crm_webform_url_ok(url) ? strstr(url, "://") + 3 : "";
    size_t len = strcspn(host, "/?#");

    (void)pool;
    return len && strcspn(host, "@\\") >= len ? NULL
           : "must be http:// or https:// in ASCII, without user and blanks";
}

static const char *name_rule(const char *name, apr_pool_t *pool)
{
    (void)pool;
    return crm_text_shows(name) ? NULL : "must not be blank";
}

/* Fields, and their rules. */
static const struct {
    const char *field;
    const char *(*rule)(const char *text, apr_pool_t *pool);
} rules[] = {
    {"slug", slug_rule}, {"currency", currency_rule}, {"time_zone", zone_rule},
    {"url", url_rule}, {"email", crm_email_wire_to}, {"name", name_rule},
};

/* Check the fields of a kind of this file. */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    const crm_deep_t deep = {input, resource, binds};

    (void)sent;
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        const char *text = crm_resource_field(resource, rules[i].field)
                           ? crm_deep_text(&deep, rules[i].field) : NULL;

        if (text) {
            crm_deep_error(&deep, rules[i].field, "",
                           rules[i].rule(text, input->pool));
        }
    }
}

static const crm_resource_t workspace = {
    .name = "workspace", .title = "Workspace",
    .doc = "The workspace and its settings.",
    .fields = workspace_fields, .check = check,
};

/* ---- endpoints, admins, tokens -------------------------------------------- */

static const crm_field_t endpoint_fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "url", .type = &crm_type_text, .flags = CRM_F_REQUIRED,
     .max = 2048, .doc = "where events are posted to"},
    {.name = "events", .type = &type_events, .flags = CRM_F_REQUIRED,
     .doc = "types of events"},
    {.name = NULL}
};

static const crm_field_t admin_fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "email", .type = &crm_type_text, .flags = CRM_F_REQUIRED,
     .max = 254, .doc = "address of a person who reviews sequences"},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = NULL}
};

static const crm_field_t token_fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_REQUIRED},
    {.name = NULL}
};

static const crm_resource_t endpoint = {
    .name = "webhook_endpoint", .title = "WebhookEndpoint",
    .doc = "An endpoint that events are posted to. Its secret is made.",
    .fields = endpoint_fields, .check = check,
};
static const crm_resource_t admin = {
    .name = "admin", .title = "Admin", .doc = "A person who reviews sequences.",
    .fields = admin_fields, .check = check,
};
static const crm_resource_t token = {
    .name = "intake_token", .title = "IntakeToken",
    .doc = "An intake token. The token itself is made.",
    .fields = token_fields, .check = check,
};

/* ---- the kinds ------------------------------------------------------------ */

const ctl_kind_t ctl_kinds[] = {
    {&workspace, "workspace", "slug", "name", NULL, "", NULL},
    {&crm_resource_agent, "agent", "slug", "name", NULL, "", NULL},
    {&crm_resource_pipeline, "pipeline", NULL, "name", "bot_id", "", NULL},
    {&crm_resource_pipeline_stage, "pipeline_stage", NULL, "name",
     "pipeline_id", "", NULL},
    {&crm_resource_form, "form", NULL, "name", "bot_id", "", NULL},
    {&crm_resource_sequence_template, "sequence_template", NULL, "name", NULL,
     "", NULL},
    {&endpoint, "webhook_endpoint", NULL, "url", NULL, "", "secret_file"},
    {&admin, "admin", NULL, "email", NULL, "", NULL},
    {&token, "intake_key", NULL, "name", NULL, " AND t.revoked_at IS NULL",
     "token_file"},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL}
};

const ctl_kind_t *ctl_kind_find(const char *name)
{
    const ctl_kind_t *kind = ctl_kinds;

    while (kind->resource && strcmp(kind->resource->name, name)) {
        kind++;
    }
    return kind->resource ? kind : NULL;
}

int ctl_kind_has(const crm_field_t *field)
{
    return strcmp(field->name, "workspace_id") != 0;
}

int ctl_kind_is_stamp(const crm_field_t *field)
{
    return !strcmp(field->name, "created_at")
           || !strcmp(field->name, "updated_at");
}

int ctl_kind_index(const ctl_kind_t *kind, const char *name)
{
    int i = 0;

    while (strcmp(kind->resource->fields[i].name, name)) {
        i++;
    }
    return i;
}

void ctl_kind_select(crm_sql_t *sql, const ctl_kind_t *kind,
                     const char *workspace_id)
{
    const crm_field_t *field = kind->resource->fields;

    for (int first = 1; field->name; field++) {
        if (ctl_kind_has(field)) {
            crm_sql_adds(sql, first ? "SELECT " : ", ",
                         field->sql ? field->sql : "t.",
                         field->sql ? "" : field->name, NULL);
            first = 0;
        }
    }
    crm_sql_adds(sql, " FROM crmapi.", kind->table, " t WHERE t.",
                 kind == ctl_kinds ? "id" : "workspace_id", NULL);
    crm_sql_template(sql, " = ?", workspace_id, "uuid");
    crm_sql_adds(sql, kind->where, " ORDER BY t.id", NULL);
}
