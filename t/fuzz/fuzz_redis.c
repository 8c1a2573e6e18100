/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_redis.c: what a server answers to the store of budgets */
/* libFuzzer: -max_len=8192 */
#include "fuzz.h"

#include "crm_redis.h"

/* So many bytes come at once. */
#define PIECE 4096

/* --- instead of a server (the linker's --wrap) --- */

/* What it has not said yet. */
static const char *says;
static size_t left;

/* The compiler compares these with what they stand for. */
__typeof__(crm_wire_open) __wrap_crm_wire_open;
__typeof__(crm_wire_is_quiet) __wrap_crm_wire_is_quiet;
__typeof__(crm_wire_send) __wrap_crm_wire_send;
__typeof__(crm_wire_receive) __wrap_crm_wire_receive;
__typeof__(crm_wire_close) __wrap_crm_wire_close;

const char *__wrap_crm_wire_open(crm_wire_t *wire, crm_wire_place_t *place)
{
    (void)place;
    wire->fd = 0;
    return NULL;
}

int __wrap_crm_wire_is_quiet(crm_wire_t *wire)
{
    return wire->fd >= 0 && !left;
}

const char *__wrap_crm_wire_send(crm_wire_t *wire, const char *data, size_t len)
{
    must(wire->fd >= 0 && len > 0 && data[0] == '*');
    return NULL;
}

const char *__wrap_crm_wire_receive(crm_wire_t *wire, char *data, size_t size,
                                    size_t *len_p)
{
    must(wire->fd >= 0);
    if (!left) {
        return "the connection was closed";
    }
    *len_p = left < PIECE ? left : PIECE;
    must(*len_p <= size);
    memcpy(data, says, *len_p);
    says += *len_p;
    left -= *len_p;
    return NULL;
}

void __wrap_crm_wire_close(crm_wire_t *wire)
{
    wire->fd = -1;
}

/* --- the client --- */

/* PROBLEM, NULL or a reason, stands in a line of the log. */
static void judge(const char *problem)
{
    must(!problem || (strlen(problem) < 200 && !strpbrk(problem, "\r\n")));
}

/* Ask for three checks, of which two share a window. Whoever has an answer has all
 * of it. */
static void ask(const crm_store_backend_t *backend)
{
    crm_store_check_t checks[3];
    crm_store_check_t *all[] = {&checks[0], &checks[1], &checks[2]};
    const char *problem;

    memset(checks, 0, sizeof(checks));
    for (int i = 0; i < 3; i++) {
        checks[i].key_id = i == 1 ? "other" : "key";
        checks[i].limit = 9;
    }
    problem = backend->send(backend->baton, all, 3, APR_USEC_PER_SEC);
    judge(problem);
    if (!problem) {
        problem = backend->receive(backend->baton, APR_USEC_PER_SEC);
        judge(problem);
    }
    for (int i = 0; i < 3; i++) {
        must(checks[i].answered == !problem);
    }
}

static crm_store_backend_t backend;

/* Make the backend in POOL. */
static void init(apr_pool_t *pool)
{
    static const crm_redis_config_t config = {.place.path = "socket",
        .name = "redis:", .database = 1, .password = "secret",
        .prefix = "crmapi"};

    must(!crm_redis_create(&backend, &config, pool));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);

    says = (const char *)data;
    left = size;
    ask(&backend);      /* after AUTH and SELECT */
    ask(&backend);      /* on the same connection, or on the next one */
    backend.close(backend.baton);
    apr_pool_destroy(pool);
    return 0;
}
