/* SPDX-License-Identifier: Apache-2.0 */
/* crm_redis.c: a store of budgets on Redis: its commands and replies
 *
 * hiredis formats commands and parses replies. It is not used for I/O: its
 * timeouts apply to single system calls, and it has no TLS before version
 * 1.0. */
#include "crm_redis.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis.h>
#include <openssl/evp.h>

#include "apr_escape.h"
#include "apr_strings.h"

#include "crm_time.h"

#define SHA1_LEN 20
#define KEY_MAX (CRM_REDIS_PREFIX_MAX + 64) /* prefix, class, id */

/* Names of classes in keys. */
static const char class_names[CRM_LIMIT_CLASSES] = {
    [CRM_LIMIT_READ] = 'r', [CRM_LIMIT_WRITE] = 'w'
};

typedef struct redis_t {
    crm_redis_config_t config;
    char sha1[2 * SHA1_LEN + 1]; /* of the script */
    crm_wire_t wire;
    redisReader *reader;        /* NULL: not connected */
    char *out;                  /* commands to be sent */
    size_t out_len, out_size;
    char reason[200];
} redis_t;

/* ---- commands ------------------------------------------------------------ */

/* Add the LEN bytes at DATA to the output. */
static const char *add_bytes(redis_t *redis, const char *data, size_t len)
{
    if (redis->out_len + len > redis->out_size) {
        size_t size = 2 * (redis->out_len + len);
        char *out = realloc(redis->out, size);

        if (!out) {
            return "out of memory";
        }
        redis->out = out;
        redis->out_size = size;
    }
    memcpy(redis->out + redis->out_len, data, len);
    redis->out_len += len;
    return NULL;
}

/* Add a command of COUNT words. */
static const char *add_command(redis_t *redis, int count, const char **words)
{
    char *command;
    int len = redisFormatCommandArgv(&command, count, words, NULL);
    const char *problem;

    if (len < 0) {
        return "out of memory";
    }
    problem = add_bytes(redis, command, (size_t)len);
    redisFreeCommand(command);
    return problem;
}

/* Add the command that counts CHECK. It has the script's text if WHOLE,
 * otherwise the script's hash. */
static const char *add_check(redis_t *redis, const crm_store_check_t *check,
                             int whole)
{
    char key[KEY_MAX], limit[16];
    const char *words[] = {
        whole ? "EVAL" : "EVALSHA", whole ? crm_store_script : redis->sha1,
        "1", key, limit
    };

    apr_snprintf(key, sizeof(key), "%s:%c:%s", redis->config.prefix,
                 class_names[check->class], check->key_id);
    apr_snprintf(limit, sizeof(limit), "%u", check->limit);
    return add_command(redis, 5, words);
}

static const char *send_commands(redis_t *redis)
{
    size_t len = redis->out_len;

    redis->out_len = 0;
    return crm_wire_send(&redis->wire, redis->out, len);
}

/* ---- replies ------------------------------------------------------------- */

/* Set *REPLY_P to the next reply, to be freed with freeReplyObject(). */
static const char *get_reply(redis_t *redis, redisReply **reply_p)
{
    void *reply = NULL;
    const char *problem;
    char data[16384];
    size_t len;

    for (;;) {
        if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
            return "the server does not speak the Redis protocol";
        }
        if (reply) {
            *reply_p = reply;
            return NULL;
        }
        problem = crm_wire_receive(&redis->wire, data, sizeof(data), &len);
        if (problem) {
            return problem;
        }
        redisReaderFeed(redis->reader, data, len);
    }
}

/* Return the error REPLY as a reason. SECRET: the command contained a secret,
 * which some errors repeat, so return only the error's code. */
static const char *error_of(redis_t *redis, const redisReply *reply,
                            int secret)
{
    size_t len = strcspn(reply->str, secret ? " \r\n" : "\r\n");

    if (len > sizeof(redis->reason) - 1) {
        len = sizeof(redis->reason) - 1;
    }
    apr_cpystrn(redis->reason, reply->str, len + 1);
    return redis->reason;
}

/* Set the answer to CHECK from REPLY. Return NULL or a reason. */
static const char *take_answer(redis_t *redis, crm_store_check_t *check,
                               const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        return error_of(redis, reply, 0);
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        return "unexpected reply of the script";
    }
    check->admitted = reply->element[0]->integer != 0;
    check->remaining = (apr_uint32_t)reply->element[1]->integer;
    check->reset_us = reply->element[2]->integer;
    check->time_us = reply->element[3]->integer;
    check->answered = 1;
    return NULL;
}

/* ---- the connection ------------------------------------------------------ */

static void disconnect(void *baton)
{
    redis_t *redis = baton;

    crm_wire_close(&redis->wire);
    if (redis->reader) {
        redisReaderFree(redis->reader);
        redis->reader = NULL;
    }
    free(redis->out);
    redis->out = NULL;
    redis->out_len = redis->out_size = 0;
}

/* Send a command of COUNT WORDS, which must succeed. SECRET: as in
 * error_of(). */
static const char *run(redis_t *redis, int count, const char **words,
                       int secret)
{
    const char *problem = add_command(redis, count, words);
    redisReply *reply;

    if (!problem) {
        problem = send_commands(redis);
    }
    if (!problem) {
        problem = get_reply(redis, &reply);
    }
    if (problem) {
        return problem;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        problem = error_of(redis, reply, secret);
    }
    freeReplyObject(reply);
    return problem;
}

/* Authenticate, and select the database. */
static const char *introduce(redis_t *redis)
{
    const crm_redis_config_t *config = &redis->config;
    const char *named[] = {"AUTH", config->user, config->password};
    const char *unnamed[] = {"AUTH", config->password};
    const char *problem = NULL;
    char number[16];
    const char *select[] = {"SELECT", number};

    if (config->password) {
        problem = config->user && *config->user ? run(redis, 3, named, 1)
                                                : run(redis, 2, unnamed, 1);
    }
    if (!problem && config->database) {
        apr_snprintf(number, sizeof(number), "%d", config->database);
        problem = run(redis, 2, select, 0);
    }
    return problem;
}

/* Connect unless there is a usable connection. */
static const char *reconnect(redis_t *redis)
{
    const char *problem;

    if (redis->reader && crm_wire_is_quiet(&redis->wire)) {
        return NULL;
    }
    disconnect(redis);
    redis->reader = redisReaderCreate();
    if (!redis->reader) {
        return "out of memory";
    }
    problem = crm_wire_open(&redis->wire, &redis->config.place);
    return problem ? problem : introduce(redis);
}

/* ---- the back end -------------------------------------------------------- */

/* Send those of the COUNT CHECKS that have no answer, with the script's text if
 * WHOLE, and take their answers. Set *FORGOTTEN_P if the server does not have
 * the script. Return NULL, or the reason why a check has no answer. */
static const char *exchange(redis_t *redis, crm_store_check_t *const *checks,
                            int count, int whole, int *forgotten_p)
{
    const char *problem = NULL, *first = NULL;

    *forgotten_p = 0;
    for (int i = 0; i < count && !problem; i++) {
        problem = checks[i]->answered ? NULL
                  : add_check(redis, checks[i], whole);
    }
    if (!problem) {
        problem = send_commands(redis);
    }
    for (int i = 0; i < count && !problem; i++) {
        redisReply *reply;
        const char *error;

        if (checks[i]->answered) {
            continue;
        }
        problem = get_reply(redis, &reply);
        if (!problem) {
            error = take_answer(redis, checks[i], reply);
            *forgotten_p |= error && !strncmp(error, "NOSCRIPT", 8);
            first = first ? first : error;
            freeReplyObject(reply);
        }
    }
    return problem ? problem : first;
}

static const char *ask(void *baton, crm_store_check_t *const *checks,
                       int count, apr_int64_t timeout)
{
    redis_t *redis = baton;
    const char *problem;
    int forgotten = 0;

    redis->wire.deadline = crm_time_monotonic() + timeout;
    problem = reconnect(redis);
    if (!problem && count) {
        problem = exchange(redis, checks, count, 0, &forgotten);
        if (forgotten) {
            problem = exchange(redis, checks, count, 1, &forgotten);
        }
    }
    if (problem) {
        disconnect(redis);
    }
    return problem;
}

/* Write the SHA-1 of the script to TEXT in hexadecimal. */
static int hash_script(char text[2 * SHA1_LEN + 1])
{
    unsigned char hash[EVP_MAX_MD_SIZE];

    return EVP_Digest(crm_store_script, strlen(crm_store_script), hash, NULL,
                      EVP_sha1(), NULL)
           && !apr_escape_hex(text, hash, SHA1_LEN, 0, NULL);
}

/* Free the memory that is not in a pool. Children of the process that called
 * crm_redis_create() call this for their copies. */
static void end(void *baton)
{
    redis_t *redis = baton;

    disconnect(redis);
    SSL_CTX_free(redis->config.place.tls);
    redis->config.place.tls = NULL;
}

static apr_status_t end_with_pool(void *redis)
{
    end(redis);
    return APR_SUCCESS;
}

const char *crm_redis_create(crm_store_backend_t *backend,
                             const crm_redis_config_t *config,
                             apr_pool_t *pool)
{
    redis_t *redis = apr_pcalloc(pool, sizeof(*redis));
    const char *problem = NULL;

    redis->config = *config;
    redis->wire.fd = -1;
    apr_pool_cleanup_register(pool, redis, end_with_pool,
                              apr_pool_cleanup_null);
    if (config->tls) {
        problem = crm_wire_tls(&redis->config.place.tls, config->ca);
    }
    if (!problem && !hash_script(redis->sha1)) {
        problem = "SHA-1 cannot be used";
    }
    if (!config->place.path) {
        /* If this fails, the first connection tries again. */
        crm_wire_resolve(&redis->config.place);
    }
    backend->name = config->name;
    backend->baton = redis;
    backend->ask = ask;
    backend->close = end;
    return problem;
}
