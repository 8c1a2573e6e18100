/* SPDX-License-Identifier: Apache-2.0 */
/* answer_file.c: the attachments of an answer (contract 19.1) */
#include "answer_file.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_disposition.h"
#include "crm_json.h"
#include "crm_text.h"
#include "crm_uuid.h"

#define FILES_MAX 20
#define BYTES_MAX APR_INT64_C(10485760) /* of all together */
#define NAME_CHARACTERS 255
#define TYPE_DEFAULT "application/octet-stream"

static const char *const members[] = {"filename", "content_type", "data", NULL};
enum { NAME, TYPE, DATA, MEMBERS };

/* One entry of the list. */
typedef struct file_t {
    json_object *values[MEMBERS];
    const char *name, *type, *data;
    apr_int64_t size;           /* of the decoded data */
} file_t;

/* Return the path of MEMBER ("": none) of entry INDEX, in INPUT's pool. */
static const char *path_of(crm_input_t *input, int index, const char *member)
{
    return apr_psprintf(input->pool, "attachments[%d]%s%s", index,
                        *member ? "." : "", member);
}

/* Add an error about MEMBER of entry INDEX to INPUT. */
static void refuse(crm_input_t *input, int index, const char *member,
                   const char *rule)
{
    crm_input_error(input, path_of(input, index, member), rule);
}

/* Return the number of bytes that the LEN characters at TEXT encode in base64
 * (RFC 4648, 4), -1 if they are not base64. */
static apr_int64_t decoded_size(const char *text, apr_size_t len)
{
    apr_size_t pads = 0;

    while (pads < 2 && pads < len && text[len - 1 - pads] == '=') {
        pads++;
    }
    for (apr_size_t i = 0; i < len - pads; i++) {
        if (!apr_isalnum(text[i]) && text[i] != '+' && text[i] != '/') {
            return -1;
        }
    }
    return len % 4 ? -1 : (apr_int64_t)(len / 4 * 3 - pads);
}

/* Return whether VALUE is a name of a file: one line that shows something. */
static int is_name(json_object *value)
{
    const char *text = json_object_get_string(value);
    apr_size_t len = (apr_size_t)json_object_get_string_len(value);

    for (apr_size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return 0;
        }
    }
    return len && strspn(text, " ") < len
           && crm_text_length(text, len) <= NAME_CHARACTERS;
}

/* Return whether VALUE is a media type without parameters. */
static int is_type(json_object *value, apr_pool_t *pool)
{
    const char *text = json_object_get_string(value);

    return strlen(text) == (apr_size_t)json_object_get_string_len(value)
           && strlen(text) <= NAME_CHARACTERS
           && !strcasecmp(crm_disposition_type(text, pool), text);
}

/* Set the values of FILE to those of ENTRY, number INDEX: NULL if there is
 * none, or after an error about it. */
static void find_values(file_t *file, crm_input_t *input, json_object *entry,
                        int index)
{
    json_object_object_foreach(entry, name, value) {
        int i = 0;

        while (i < MEMBERS && strcmp(members[i], name)) {
            i++;
        }
        if (i < MEMBERS) {
            file->values[i] = value;
        }
        else {
            crm_input_unknown(input, path_of(input, index, name), name, NULL,
                              members);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        const char *rule = file->values[i]
            ? json_object_is_type(file->values[i], json_type_string)
              ? NULL : "must be a string"
            : i == TYPE ? NULL : "is required";

        if (rule) {
            refuse(input, index, members[i], rule);
            file->values[i] = NULL;
        }
    }
}

/* Take the values of FILE, number INDEX, that are there, each for itself: all
 * that is wrong is told at once (contract 5.6). */
static void take_values(file_t *file, crm_input_t *input, int index)
{
    json_object *name = file->values[NAME], *type = file->values[TYPE];
    json_object *data = file->values[DATA];

    file->name = json_object_get_string(name);
    file->type = type ? json_object_get_string(type) : TYPE_DEFAULT;
    file->data = json_object_get_string(data);
    file->size = data ? decoded_size(file->data, (apr_size_t)
                                     json_object_get_string_len(data)) : 0;
    if (name && !is_name(name)) {
        refuse(input, index, members[NAME], "must be a line of 1 to 255"
               " characters");
    }
    if (type && !is_type(type, input->pool)) {
        refuse(input, index, members[TYPE], "must be a media type without"
               " parameters, for example application/pdf");
    }
    if (file->size < 0) {
        refuse(input, index, members[DATA], "must be base64 with padding, without"
               " line breaks");
    }
}

/* Read ENTRY, number INDEX, into FILE. Return 0 after an error. */
static int read_file(file_t *file, crm_input_t *input, json_object *entry,
                     int index)
{
    int errors = crm_input_errors(input);

    memset(file, 0, sizeof(*file));
    if (!json_object_is_type(entry, json_type_object)) {
        refuse(input, index, "", "must be an object");
        return 0;
    }
    find_values(file, input, entry, index);
    take_values(file, input, index);
    return crm_input_errors(input) == errors;
}

/* Add FILE to BUF, for the database, and to SHOWN. */
static void add_file(crm_buf_t *buf, json_object *shown, const file_t *file)
{
    json_object *one = json_object_new_object();
    char id[CRM_UUID_LEN + 1];

    crm_uuid_v7(id);
    json_object_object_add(one, "id", json_object_new_string(id));
    json_object_object_add(one, "filename", json_object_new_string(file->name));
    json_object_object_add(one, "content_type",
                           json_object_new_string(file->type));
    json_object_object_add(one, "size", json_object_new_int64(file->size));
    json_object_object_add(one, "stored", json_object_new_boolean(1));
    json_object_array_add(shown, one);
    crm_buf_printf(buf, "%s{\"id\":\"%s\",\"size\":%" APR_INT64_T_FMT
                   ",\"filename\":", buf->len > 1 ? "," : "", id, file->size);
    crm_buf_json_text(buf, file->name);
    crm_buf_puts(buf, ",\"content_type\":");
    crm_buf_json_text(buf, file->type);
    crm_buf_printf(buf, ",\"data\":\"");
    crm_buf_puts(buf, file->data);      /* base64 needs no escapes */
    crm_buf_puts(buf, "\"}");
}

/* Read the COUNT entries of LIST into BUF and SHOWN. */
static void read_files(crm_buf_t *buf, json_object *shown, crm_input_t *input,
                       json_object *list, int count)
{
    apr_int64_t bytes = 0;

    for (int i = 0; i < count; i++) {
        file_t file;

        if (read_file(&file, input, json_object_array_get_idx(list, (size_t)i),
                      i)) {
            bytes += file.size;
            add_file(buf, shown, &file);
        }
    }
    if (bytes > BYTES_MAX) {
        crm_input_error(input, "attachments", "must have at most 10485760"
                        " bytes together");
    }
}

void crm_answer_files(const char **files_p, json_object **shown_p,
                      crm_input_t *input, json_object *list)
{
    size_t count = crm_json_count(list);
    int errors = crm_input_errors(input);
    json_object *shown;
    crm_buf_t buf;

    *files_p = NULL;
    *shown_p = NULL;
    if (list && !json_object_is_type(list, json_type_array)) {
        crm_input_error(input, "attachments", "must be an array");
    }
    else if (count > FILES_MAX) {
        crm_input_error(input, "attachments", "must have at most 20 entries");
    }
    if (!count || crm_input_errors(input) > errors) {
        return;
    }
    shown = json_object_new_array();
    crm_buf_init(&buf, 4096, input->pool);
    crm_buf_putc(&buf, '[');
    read_files(&buf, shown, input, list, (int)count);
    crm_buf_puts(&buf, "]");
    crm_buf_putc(&buf, '\0');
    if (crm_input_errors(input) > errors) {
        json_object_put(shown);
        return;
    }
    *files_p = buf.data;
    *shown_p = shown;
}
