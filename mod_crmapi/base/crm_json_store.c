/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_store.c: checking that free-form JSON can be stored (6.1, 6.3) */
#include "crm_json_store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"

/* The exponents of doubles are smaller than this. A number below 1e-400 is
 * zero. */
#define EXPONENT_MAX 400

/* Decimals of PostgreSQL's numeric, which is what jsonb makes of a number. */
#define DECIMALS_MAX 16383

/* So many faults are told, and so many bytes of their paths: a name may have 64
 * KiB, and thousands of wrong values below it. */
#define FAULTS_MAX 100
#define PATHS_MAX 4096

/* Where a value is: in a member of an object, or an entry of an array. */
typedef struct place_t {
    const struct place_t *above;        /* NULL: the whole value */
    const char *name;                   /* NULL: an entry of an array */
    size_t index;
} place_t;

/* The state of a walk through a value. */
typedef struct walk_t {
    apr_array_header_t *faults; /* NULL: none */
    apr_size_t paths;           /* bytes of their paths */
    apr_size_t extra;           /* bytes added by writing numbers without
                                   exponents */
    int max_depth;
    apr_pool_t *pool;
} walk_t;

static void walk_value(walk_t *walk, json_object *value, int depth,
                       const place_t *place);

static void add_place(crm_buf_t *path, const place_t *place)
{
    if (place->above) {
        add_place(path, place->above);
    }
    if (place->name) {
        crm_buf_putc(path, '.');
        crm_buf_puts(path, place->name);
    }
    else {
        crm_buf_printf(path, "[%" APR_SIZE_T_FMT "]", place->index);
    }
}

/* Add to WALK that the value at PLACE breaks RULE. */
static void fail(walk_t *walk, const place_t *place, const char *rule)
{
    crm_json_fault_t *fault;
    crm_buf_t path;

    crm_buf_init(&path, 64, walk->pool);
    if (place) {
        add_place(&path, place);
    }
    walk->paths += path.len;
    crm_buf_putc(&path, '\0');
    if (!walk->faults) {
        walk->faults = apr_array_make(walk->pool, 1, sizeof(*fault));
    }
    fault = apr_array_push(walk->faults);
    fault->path = path.data;
    fault->rule = rule;
}

/* Return whether WALK has told enough. */
static int is_full(const walk_t *walk)
{
    return walk->faults && (walk->faults->nelts >= FAULTS_MAX
                            || walk->paths >= PATHS_MAX);
}

/* Return how many decimals TEXT, a number with EXPONENT, has when it is written without
 * one: 3 of 1.50e-1. */
static long decimals_of(const char *text, long exponent)
{
    const char *point = strchr(text, '.');

    return (point ? (long)strspn(point + 1, "0123456789") : 0) - exponent;
}

/* jsonb writes 1e300 with 300 zeros: count them. */
static void walk_double(walk_t *walk, json_object *value,
                        const place_t *place)
{
    const char *text = json_object_to_json_string(value);
    const char *e = strpbrk(text, "eE");
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;

    if (!isfinite(json_object_get_double(value)) || exponent > EXPONENT_MAX
        || exponent < -EXPONENT_MAX) {
        fail(walk, place, "must be a number that a double can hold");
        return;
    }
    if (decimals_of(text, exponent) > DECIMALS_MAX) {
        fail(walk, place, "must have at most " APR_STRINGIFY(DECIMALS_MAX)
             " decimals");
        return;
    }
    walk->extra += (apr_size_t)labs(exponent);
}

static void walk_string(walk_t *walk, json_object *value,
                        const place_t *place)
{
    if (strlen(json_object_get_string(value))
        != (apr_size_t)json_object_get_string_len(value)) {
        fail(walk, place, "must not contain U+0000");
    }
}

static void walk_object(walk_t *walk, json_object *value, int depth,
                        const place_t *place)
{
    json_object_object_foreach(value, name, member) {
        place_t here = {place, name, 0};

        if (is_full(walk)) {
            return;
        }
        walk_value(walk, member, depth, &here);
    }
}

static void walk_array(walk_t *walk, json_object *value, int depth,
                       const place_t *place)
{
    size_t count = json_object_array_length(value);

    for (size_t i = 0; i < count && !is_full(walk); i++) {
        place_t here = {place, NULL, i};

        walk_value(walk, json_object_array_get_idx(value, i), depth, &here);
    }
}

/* The recursion is bounded: the parser has checked the depth before. */
static void walk_value(walk_t *walk, json_object *value, int depth,
                       const place_t *place)
{
    switch (json_object_get_type(value)) {
    case json_type_double:
        walk_double(walk, value, place);
        break;
    case json_type_string:
        walk_string(walk, value, place);
        break;
    case json_type_object:
    case json_type_array:
        if (depth >= walk->max_depth) {
            fail(walk, place, apr_psprintf(walk->pool, "is nested more than"
                                           " %d levels deep", walk->max_depth));
        }
        else if (json_object_is_type(value, json_type_object)) {
            walk_object(walk, value, depth + 1, place);
        }
        else {
            walk_array(walk, value, depth + 1, place);
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

apr_array_header_t *crm_json_storable(const char **text_p, json_object *value,
                                      apr_size_t max_bytes, int max_depth,
                                      apr_pool_t *result_pool)
{
    walk_t walk = {NULL, 0, 0, max_depth, result_pool};
    const char *text = json_object_to_json_string_ext(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    apr_size_t len = strlen(text);

    if (len <= max_bytes) {
        walk_value(&walk, value, 0, NULL);
    }
    if (!walk.faults && (len > max_bytes || walk.extra > max_bytes - len)) {
        fail(&walk, NULL, too_large(max_bytes, result_pool));
    }
    if (!walk.faults) {
        *text_p = apr_pstrdup(result_pool, text);
    }
    return walk.faults;
}
