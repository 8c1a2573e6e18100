/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_store.c: checking that free-form JSON can be stored (6.1, 6.3) */
#include "crm_json_store.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

/* The exponents of doubles are smaller than this. A number below 1e-400 is
 * zero. */
#define EXPONENT_MAX 400

/* The state of a walk through a value. */
typedef struct walk_t {
    const char *rule;
    const char *path;           /* where the rule is broken; built while
                                   returning, for errors only */
    apr_size_t extra;           /* bytes added by writing numbers without
                                   exponents */
    int max_depth;
    apr_pool_t *pool;
} walk_t;

static void walk_value(walk_t *walk, json_object *value, int depth);

static void fail(walk_t *walk, const char *rule)
{
    walk->rule = rule;
    walk->path = "";
}

static void walk_integer(walk_t *walk, json_object *value)
{
    int64_t number = json_object_get_int64(value);

    /* json-c clamps larger numbers to these */
    if (number == INT64_MAX || number == INT64_MIN) {
        fail(walk, "must be a number of at most 18 digits");
    }
}

/* jsonb writes 1e300 with 300 zeros: count them. */
static void walk_double(walk_t *walk, json_object *value)
{
    const char *text = json_object_to_json_string(value);
    const char *e = strpbrk(text, "eE");
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;

    if (!isfinite(json_object_get_double(value)) || exponent > EXPONENT_MAX
        || exponent < -EXPONENT_MAX) {
        fail(walk, "must be a number that a double can hold");
        return;
    }
    walk->extra += (apr_size_t)labs(exponent);
}

static void walk_string(walk_t *walk, json_object *value)
{
    if (strlen(json_object_get_string(value))
        != (apr_size_t)json_object_get_string_len(value)) {
        fail(walk, "must not contain U+0000");
    }
}

static void walk_object(walk_t *walk, json_object *value, int depth)
{
    json_object_object_foreach(value, name, member) {
        walk_value(walk, member, depth);
        if (walk->rule) {
            walk->path = apr_pstrcat(walk->pool, ".", name, walk->path, NULL);
            return;
        }
    }
}

static void walk_array(walk_t *walk, json_object *value, int depth)
{
    size_t count = json_object_array_length(value);

    for (size_t i = 0; i < count; i++) {
        walk_value(walk, json_object_array_get_idx(value, i), depth);
        if (walk->rule) {
            walk->path = apr_psprintf(walk->pool, "[%" APR_SIZE_T_FMT "]%s",
                                      i, walk->path);
            return;
        }
    }
}

/* The recursion is bounded: the parser has checked the depth before. */
static void walk_value(walk_t *walk, json_object *value, int depth)
{
    switch (json_object_get_type(value)) {
    case json_type_int:
        walk_integer(walk, value);
        break;
    case json_type_double:
        walk_double(walk, value);
        break;
    case json_type_string:
        walk_string(walk, value);
        break;
    case json_type_object:
    case json_type_array:
        if (depth >= walk->max_depth) {
            fail(walk, "is nested too deeply");
        }
        else if (json_object_is_type(value, json_type_object)) {
            walk_object(walk, value, depth + 1);
        }
        else {
            walk_array(walk, value, depth + 1);
        }
        break;
    default:
        break;
    }
}

static const char *too_large(apr_size_t max_bytes, apr_pool_t *pool)
{
    return apr_psprintf(pool, "must have at most %" APR_SIZE_T_FMT
                        " bytes as JSON", max_bytes);
}

const char *crm_json_storable(const char **text_p, const char **path_p,
                              json_object *value, apr_size_t max_bytes,
                              int max_depth, apr_pool_t *result_pool)
{
    walk_t walk = {NULL, "", 0, max_depth, result_pool};
    const char *text = json_object_to_json_string_ext(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    apr_size_t len = strlen(text);

    *path_p = "";
    if (len > max_bytes) {
        return too_large(max_bytes, result_pool);
    }
    walk_value(&walk, value, 0);
    if (walk.rule) {
        *path_p = walk.path;
        return walk.rule;
    }
    if (walk.extra > max_bytes - len) {
        return too_large(max_bytes, result_pool);
    }
    *text_p = apr_pstrdup(result_pool, text);
    return NULL;
}
