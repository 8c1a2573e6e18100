/* SPDX-License-Identifier: Apache-2.0 */
/* crm_channel.c: the type of a conversation's channel */
#include "crm_channel.h"

#include <string.h>

#include "crm_array.h"

static const struct {
    const char *name;
    const char *code;
} channels[] = {
    {"chat", "1"}, {"phone", "2"}, {"voice", "2"}, {"call", "2"},
    {"text", "3"}, {"sms", "3"}, {"email", "4"}, {"form", "5"},
    {"1", "1"}, {"2", "2"}, {"3", "3"}, {"4", "4"}, {"5", "5"},
};

/* Set *BIND_P to the code of the channel NAME. Return 0 if it is unknown. */
static int channel_code(const char **bind_p, const char *name)
{
    for (apr_size_t i = 0; i < CRM_NELTS(channels); i++) {
        if (!strcmp(channels[i].name, name)) {
            *bind_p = channels[i].code;
            return 1;
        }
    }
    return 0;
}

static const char *const channel_rule =
    "must be chat, phone, voice, call, text, sms, email, form or 1 to 5";

static const char *channel_parse_query(const char **bind_p,
                                       const crm_field_t *field,
                                       const char *text, apr_pool_t *pool)
{
    (void)field;
    (void)pool;
    return channel_code(bind_p, text) ? NULL : channel_rule;
}

static void channel_parse(const char **bind_p, crm_input_t *input,
                          const crm_field_t *field, const char *path,
                          json_object *value)
{
    (void)field;
    if ((!json_object_is_type(value, json_type_int)
         && !json_object_is_type(value, json_type_string))
        || !channel_code(bind_p, json_object_get_string(value))) {
        crm_input_error(input, path, channel_rule);
    }
}

static void channel_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    crm_buf_add(buf, text, len);
}

static void channel_schema(crm_buf_t *buf, const crm_field_t *field,
                           crm_side_t side)
{
    if (side != CRM_SIDE_QUERY) {
        crm_type_schema(buf, "integer", field, side);
        crm_buf_puts(buf, ",\"enum\":[1,2,3,4,5]");
        return;
    }
    crm_buf_puts(buf, "\"type\":\"string\",\"enum\":[");
    for (apr_size_t i = 0; i < CRM_NELTS(channels); i++) {
        crm_buf_printf(buf, "%s\"%s\"", i ? "," : "", channels[i].name);
    }
    crm_buf_puts(buf, "]");
}

const crm_type_t crm_type_channel = {
    .name = "channel", .cast = "smallint", .parse = channel_parse,
    .parse_query = channel_parse_query, .write = channel_write,
    .schema = channel_schema,
};
