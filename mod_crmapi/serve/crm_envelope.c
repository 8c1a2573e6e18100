/* SPDX-License-Identifier: Apache-2.0 */
/* crm_envelope.c: errors as JSON */
#include "crm_envelope.h"

static void write_details(crm_buf_t *body, const apr_array_header_t *details)
{
    crm_buf_putc(body, '[');
    for (int i = 0; i < details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(details, i, crm_detail_t);

        crm_buf_puts(body, i ? ",{\"field\":" : "{\"field\":");
        crm_buf_json_text(body, detail->field);
        crm_buf_puts(body, ",\"message\":");
        crm_buf_json_text(body, detail->message);
        crm_buf_putc(body, '}');
    }
    crm_buf_putc(body, ']');
}

void crm_envelope_item(crm_buf_t *body, int index,
                       const apr_array_header_t *details)
{
    crm_buf_t message;

    crm_buf_init(&message, 128, body->pool);
    for (int i = 0; i < details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(details, i, crm_detail_t);

        crm_buf_puts(&message, i ? "; " : "");
        crm_buf_puts(&message, detail->field);
        crm_buf_puts(&message, *detail->field ? " " : "");
        crm_buf_puts(&message, detail->message);
    }
    crm_buf_printf(body, "{\"index\":%d,\"message\":", index);
    crm_buf_json_string(body, message.data, message.len);
    crm_buf_puts(body, ",\"details\":");
    write_details(body, details);
    crm_buf_putc(body, '}');
}

/* Return the details of ERROR, NULL if it has none. A 422 without details is
 * about the whole body, whose name is "" (contract 5.6). */
static const apr_array_header_t *details_of(const crm_error_t *error,
                                            apr_pool_t *pool)
{
    crm_error_t *whole = NULL;

    if (error->details || error->code != CRM_E_VALIDATION) {
        return error->details;
    }
    crm_error_detail(&whole, "", error->message, pool);
    return whole->details;
}

void crm_envelope_error(crm_buf_t *body, const crm_error_t *error)
{
    const apr_array_header_t *details = details_of(error, body->pool);

    crm_buf_puts(body, "{\"error\":{\"code\":\"");
    crm_buf_puts(body, crm_code_info(error->code)->code);
    crm_buf_puts(body, "\",\"message\":");
    crm_buf_json_text(body, error->message);
    if (details) {
        crm_buf_puts(body, ",\"details\":");
        write_details(body, details);
    }
    crm_buf_puts(body, "}}");
}
