/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_store.c: whether free-form JSON can be stored (contract 6.1, 6.3) */
#include "crm_json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

/* What is gathered on the way down. */
typedef struct walk_t {
    const char *path;           /* of the bad place */
    const char *wrong;
    apr_size_t extra;           /* bytes that numbers gain when written out */
    apr_size_t max_bytes;
    int max_depth;
    apr_pool_t *pool;
} walk_t;

static void walk_value(walk_t *walk, json_object *value, const char *path,
                       int depth);

static void fail(walk_t *walk, const char *path, const char *wrong)
{
    if (!walk->wrong) {
        walk->wrong = wrong;
        walk->path = path;
    }
}

static void walk_integer(walk_t *walk, json_object *value, const char *path)
{
    int64_t number = json_object_get_int64(value);

    /* json-c clamps what does not fit */
    if (number == INT64_MAX || number == INT64_MIN) {
        fail(walk, path, "must be a number of at most 18 digits");
    }
}

/* jsonb writes 1e300 with 300 zeros. */
static void walk_double(walk_t *walk, json_object *value, const char *path)
{
    const char *text = json_object_to_json_string(value);
    const char *e = strpbrk(text, "eE");
    long exponent = e ? labs(strtol(e + 1, NULL, 10)) : 0;

    if (!isfinite(json_object_get_double(value)) || exponent > 400) {
        fail(walk, path, "must be a number that a double can hold");
        return;
    }
    walk->extra += (apr_size_t)exponent;
}

static void walk_string(walk_t *walk, json_object *value, const char *path)
{
    if (strlen(json_object_get_string(value))
        != (apr_size_t)json_object_get_string_len(value)) {
        fail(walk, path, "must not contain U+0000");
    }
}

static void walk_object(walk_t *walk, json_object *value, const char *path,
                        int depth)
{
    json_object_object_foreach(value, name, member) {
        if (walk->wrong) {
            return;
        }
        walk_value(walk, member, apr_pstrcat(walk->pool, path, ".", name,
                                             NULL), depth);
    }
}

static void walk_array(walk_t *walk, json_object *value, const char *path,
                       int depth)
{
    size_t count = json_object_array_length(value);

    for (size_t i = 0; i < count && !walk->wrong; i++) {
        walk_value(walk, json_object_array_get_idx(value, i),
                   apr_psprintf(walk->pool, "%s[%" APR_SIZE_T_FMT "]", path,
                                i), depth);
    }
}

/* The depth is bounded by that of the check before, so this may recurse. */
static void walk_value(walk_t *walk, json_object *value, const char *path,
                       int depth)
{
    switch (json_object_get_type(value)) {
    case json_type_int:
        walk_integer(walk, value, path);
        break;
    case json_type_double:
        walk_double(walk, value, path);
        break;
    case json_type_string:
        walk_string(walk, value, path);
        break;
    case json_type_object:
    case json_type_array:
        if (depth >= walk->max_depth) {
            fail(walk, path, "is nested too deeply");
        }
        else if (json_object_is_type(value, json_type_object)) {
            walk_object(walk, value, path, depth + 1);
        }
        else {
            walk_array(walk, value, path, depth + 1);
        }
        break;
    default:
        break;
    }
}

const char *crm_json_storable(const char **text_p, const char **path_p,
                              json_object *value, apr_size_t max_bytes,
                              int max_depth, apr_pool_t *result_pool)
{
    walk_t walk = {"", NULL, 0, max_bytes, max_depth, NULL};
    const char *text = json_object_to_json_string_ext(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

    *path_p = "";
    if (strlen(text) > max_bytes) {
        return apr_psprintf(result_pool, "must have at most %" APR_SIZE_T_FMT
                            " bytes as JSON", max_bytes);
    }
    apr_pool_create(&walk.pool, result_pool);
    walk_value(&walk, value, "", 0);
    if (walk.wrong) {
        *path_p = apr_pstrdup(result_pool, walk.path);
    }
    else if (strlen(text) + walk.extra > max_bytes) {
        walk.wrong = apr_psprintf(result_pool, "must have at most %"
                                  APR_SIZE_T_FMT " bytes as JSON", max_bytes);
    }
    else {
        *text_p = apr_pstrdup(result_pool, text);
    }
    apr_pool_destroy(walk.pool);
    return walk.wrong;
}
