/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_channel.c: the type of a conversation's channel */
#include "crm_type_channel.h"

#include "crm_channel.h"
#include "crm_json.h"
#include "crm_number.h"

/* Set *BIND_P to the code of the channel NAME. Return NULL, or the rule that it
 * breaks. */
static const char *channel_code(const char **bind_p, const char *name)
{
    const crm_channel_t *channel = crm_channel_find(name);

    if (!channel) {
        return crm_channel_rule;
    }
    *bind_p = channel->code;
    return NULL;
}

static const char *channel_parse_query(const char **bind_p,
                                       const crm_field_t *field,
                                       const char *text, apr_pool_t *pool)
{
    (void)field;
    (void)pool;
    return channel_code(bind_p, text);
}

static void channel_parse(const char **bind_p, crm_input_t *input,
                          const crm_field_t *field, const char *path,
                          json_object *value)
{
    const char *text = crm_json_text(value);

    (void)field;
    if (json_object_is_type(value, json_type_int)
        || json_object_is_type(value, json_type_double)) {
        /* an integer may be written as 3.0 (contract 6.4) */
        crm_number_parse(&text, json_object_get_string(value), input->pool);
    }
    if (!text || channel_code(bind_p, text)) {
        crm_input_error(input, path, crm_channel_rule);
    }
}

/* Add the codes of all channels to BUF, each between QUOTE, separated by
 * commas. */
static void put_codes(crm_buf_t *buf, const char *quote)
{
    for (int i = 0; i < CRM_CHANNELS; i++) {
        crm_buf_printf(buf, "%s%s%s%s", i ? "," : "", quote,
                       crm_channels[i].code, quote);
    }
}

static void channel_schema(crm_buf_t *buf, const crm_field_t *field,
                           crm_side_t side)
{
    if (side != CRM_SIDE_QUERY) {
        crm_type_schema(buf, "integer", field, side);
        crm_buf_puts(buf, ",\"enum\":[");
        put_codes(buf, "");
    }
    else {
        crm_buf_puts(buf, "\"type\":\"string\",\"enum\":[");
        for (int i = 0; i < CRM_CHANNELS; i++) {
            for (const char *const *name = crm_channels[i].names; *name;
                 name++) {
                crm_buf_printf(buf, "\"%s\",", *name);
            }
        }
        put_codes(buf, "\"");
    }
    crm_buf_puts(buf, "]");
}

const crm_type_t crm_type_channel = {
    .name = "channel", .cast = "smallint", .parse = channel_parse,
    .parse_query = channel_parse_query, .write = crm_buf_add,
    .schema = channel_schema,
};
