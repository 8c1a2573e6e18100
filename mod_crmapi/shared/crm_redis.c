/* SPDX-License-Identifier: Apache-2.0 */
/* crm_redis.c: a store of budgets on Redis: its commands and replies
 *
 * hiredis formats commands and parses replies. It is not used for I/O: its
 * timeouts apply to single system calls, and it has no TLS before version
 * 1.0. */
#include "crm_redis.h"

#include <string.h>

#include <hiredis.h>
#include <openssl/evp.h>

#include "apr_escape.h"
#include "apr_strings.h"

#include "crm_time.h"

#define SHA1_LEN 20
#define KEY_MAX (CRM_REDIS_PREFIX_MAX + 64) /* prefix, class, id */

/* The script's answer is the longest reply: the time, and three integers for each
 * window, of at most 23 bytes. A longer one is refused, so that whatever speaks at
 * the other end costs neither memory nor time: hiredis searches a line from its
 * start whenever a part of it arrives. */
#define REPLY_ELEMENTS (1 + 3 * CRM_STORE_TOGETHER)
#define REPLY_BYTES 16384

/* The end of the year 9999. */
#define TIME_END APR_INT64_C(253402300800000000)

/* Names of classes in keys. */
static const char class_names[CRM_LIMIT_CLASSES] = {
    [CRM_LIMIT_READ] = 'r', [CRM_LIMIT_WRITE] = 'w'
};

/* Requests of one budget that are counted together. */
typedef struct window_t {
    const crm_store_check_t *check; /* the first of them */
    int count;
    apr_int64_t admitted;       /* how many of them */
    apr_int64_t remaining, reset_us; /* after the last */
    int answered;               /* to how many the answer was given */
} window_t;

typedef struct redis_t {
    crm_redis_config_t config;
    char sha1[2 * SHA1_LEN + 1]; /* of the script */
    crm_wire_t wire;
    redisReader *reader;        /* NULL: not connected */
    redisReplyObjectFunctions functions; /* hiredis's, but with make_array() */
    __typeof__(((redisReplyObjectFunctions *)0)->createArray) create_array;
    /* What was sent and not answered yet: */
    crm_store_check_t *checks[CRM_STORE_TOGETHER];
    int check_count;
    window_t *window_of[CRM_STORE_TOGETHER]; /* of each check */
    window_t windows[CRM_STORE_TOGETHER];
    int window_count;
    char reason[200];
} redis_t;

/* ---- commands ------------------------------------------------------------ */

/* Send a command of COUNT words. Return NULL or a reason. */
static const char *send_command(redis_t *redis, int count, const char **words)
{
    char *command;
    int len = redisFormatCommandArgv(&command, count, words, NULL);
    const char *problem;

    if (len < 0) {
        return "out of memory";
    }
    problem = crm_wire_send(&redis->wire, command, (size_t)len);
    redisFreeCommand(command);
    return problem;
}

/* Return the window of CHECK. If it is a new one, its count is 0. */
static window_t *find_window(redis_t *redis, const crm_store_check_t *check)
{
    window_t *window = redis->windows;

    for (int i = 0; i < redis->window_count; i++, window++) {
        if (window->check->class == check->class
            && window->check->limit == check->limit
            && !strcmp(window->check->key_id, check->key_id)) {
            return window;
        }
    }
    memset(window, 0, sizeof(*window));
    window->check = check;
    redis->window_count++;
    return window;
}

/* Send the command that counts what is in the windows. It has the script's text
 * if WHOLE, otherwise the script's hash. */
static const char *send_windows(redis_t *redis, int whole)
{
    int count = redis->window_count;
    char keys[CRM_STORE_TOGETHER][KEY_MAX], numbers[CRM_STORE_TOGETHER][2][12];
    char key_count[12];
    const char *words[3 + 3 * CRM_STORE_TOGETHER] = {
        whole ? "EVAL" : "EVALSHA", whole ? crm_store_script : redis->sha1,
        key_count
    };

    apr_snprintf(key_count, sizeof(key_count), "%d", count);
    for (int i = 0; i < count; i++) {
        const crm_store_check_t *check = redis->windows[i].check;

        apr_snprintf(keys[i], KEY_MAX, "%s:%c:%s", redis->config.prefix,
                     class_names[check->class], check->key_id);
        apr_snprintf(numbers[i][0], sizeof(numbers[i][0]), "%u", check->limit);
        apr_snprintf(numbers[i][1], sizeof(numbers[i][1]), "%d",
                     redis->windows[i].count);
        words[3 + i] = keys[i];
        words[3 + count + 2 * i] = numbers[i][0];
        words[4 + count + 2 * i] = numbers[i][1];
    }
    return send_command(redis, 3 + 3 * count, words);
}

/* ---- replies ------------------------------------------------------------- */

/* hiredis makes an array as long as its first line says, and looks at each element
 * when it frees it; from version 1.0 on, arrays in arrays as deep as they come. Return
 * NULL, which is an error, if it is too long or in another one, as no answer is. */
#if HIREDIS_MAJOR < 1
static void *make_array(const redisReadTask *task, int count)
#else
static void *make_array(const redisReadTask *task, size_t count)
#endif
{
    const redis_t *redis = task->privdata;

    return count <= REPLY_ELEMENTS && !task->parent
           ? redis->create_array(task, count) : NULL;
}

static redisReader *make_reader(redis_t *redis)
{
    redisReader *reader = redisReaderCreate();

    if (reader) {
        redis->functions = *reader->fn;
        redis->create_array = reader->fn->createArray;
        redis->functions.createArray = make_array;
        reader->fn = &redis->functions;
        reader->privdata = redis;
    }
    return reader;
}

/* Set *REPLY_P to the reply, to be freed with freeReplyObject(). What follows it would
 * be taken for the next one. */
static const char *get_reply(redis_t *redis, redisReply **reply_p)
{
    void *reply = NULL;
    const char *problem;
    char data[REPLY_BYTES];
    size_t len, total = 0;

    for (;;) {
        if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
            return "the server does not speak the Redis protocol";
        }
        if (reply && redis->reader->pos < redis->reader->len) {
            freeReplyObject(reply);
            return "the server says more than it was asked";
        }
        if (reply) {
            *reply_p = reply;
            return NULL;
        }
        problem = crm_wire_receive(&redis->wire, data, sizeof(data), &len);
        if (problem) {
            return problem;
        }
        total += len;
        if (total > REPLY_BYTES) {
            return "the server's reply is too long";
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

/* Return whether REPLY is the script's answer for COUNT windows. */
static int is_answer(const redisReply *reply, int count)
{
    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 1 + 3 * (size_t)count) {
        return 0;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER) {
            return 0;
        }
    }
    return 1;
}

/* Return whether it can be TIME, in microseconds since 1970: clients are told so. */
static int is_time(apr_int64_t time)
{
    return time >= 0 && time < TIME_END;
}

/* Return whether WINDOW can be as the server says. A host that believed anything would
 * refuse a key for as long as that says. */
static int is_possible(const window_t *window)
{
    return window->admitted >= 0 && window->admitted <= window->count
           && window->remaining >= 0
           && window->remaining <= (apr_int64_t)window->check->limit
           && window->reset_us >= 0
           && window->reset_us <= CRM_LIMIT_WINDOW_US;
}

/* Set what REPLY says about the windows, and *TIME_P to when. Return NULL or a
 * reason. */
static const char *take_answer(redis_t *redis, apr_int64_t *time_p,
                               const redisReply *reply)
{
    static const char unexpected[] = "unexpected reply of the script";

    if (reply->type == REDIS_REPLY_ERROR) {
        return error_of(redis, reply, 0);
    }
    if (!is_answer(reply, redis->window_count)) {
        return unexpected;
    }
    *time_p = reply->element[0]->integer;
    if (!is_time(*time_p)) {
        return unexpected;
    }
    for (int i = 0; i < redis->window_count; i++) {
        window_t *window = &redis->windows[i];
        redisReply **numbers = &reply->element[1 + 3 * i];

        window->admitted = numbers[0]->integer;
        window->remaining = numbers[1]->integer;
        window->reset_us = numbers[2]->integer;
        if (!is_possible(window)) {
            return unexpected;
        }
    }
    return NULL;
}

/* Set the answer to CHECK, which WINDOW counted at TIME. The first checks of a
 * window are those that it admitted. */
static void answer_check(crm_store_check_t *check, window_t *window,
                         apr_int64_t time)
{
    apr_int64_t later = window->admitted - ++window->answered;

    check->admitted = later >= 0;
    check->remaining = (apr_uint32_t)(window->remaining
                                      + (later > 0 ? later : 0));
    check->reset_us = window->reset_us;
    check->time_us = time;
    check->answered = 1;
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
}

/* Send a command of COUNT WORDS, which must succeed. SECRET: as in
 * error_of(). */
static const char *run(redis_t *redis, int count, const char **words,
                       int secret)
{
    const char *problem = send_command(redis, count, words);
    redisReply *reply;

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
    redis->reader = make_reader(redis);
    if (!redis->reader) {
        return "out of memory";
    }
    problem = crm_wire_open(&redis->wire, &redis->config.place);
    return problem ? problem : introduce(redis);
}

/* ---- the back end -------------------------------------------------------- */

/* Note the COUNT CHECKS, and how many are in each window. */
static void note_checks(redis_t *redis, crm_store_check_t *const *checks,
                        int count)
{
    redis->check_count = count;
    redis->window_count = 0;
    for (int i = 0; i < count; i++) {
        redis->checks[i] = checks[i];
        redis->window_of[i] = find_window(redis, checks[i]);
        redis->window_of[i]->count++;
    }
}

/* Return PROBLEM. If it is not NULL, disconnect. Whatever it is, as an old primary's
 * that it is read-only, the name may lead to the right server by now. */
static const char *leave_if(redis_t *redis, const char *problem)
{
    if (problem) {
        disconnect(redis);
        crm_wire_forget(&redis->config.place);
    }
    return problem;
}

static const char *send_checks(void *baton, crm_store_check_t *const *checks,
                               int count, apr_int64_t timeout)
{
    redis_t *redis = baton;
    const char *problem;

    redis->wire.deadline = crm_time_monotonic() + timeout;
    problem = reconnect(redis);
    if (!problem && count) {
        note_checks(redis, checks, count);
        problem = send_windows(redis, 0);
    }
    return leave_if(redis, problem);
}

/* Receive the script's answer about the windows, and set *TIME_P to when it
 * counted. Return NULL or a reason. */
static const char *receive_windows(redis_t *redis, apr_int64_t *time_p)
{
    redisReply *reply;
    const char *problem = get_reply(redis, &reply);

    if (!problem) {
        problem = take_answer(redis, time_p, reply);
        freeReplyObject(reply);
    }
    return problem;
}

static const char *receive_answers(void *baton, apr_int64_t timeout)
{
    redis_t *redis = baton;
    const char *problem;
    apr_int64_t time;

    redis->wire.deadline = crm_time_monotonic() + timeout;
    problem = receive_windows(redis, &time);
    if (problem && !strncmp(problem, "NOSCRIPT", 8)) {
        problem = send_windows(redis, 1);
        if (!problem) {
            problem = receive_windows(redis, &time);
        }
    }
    for (int i = 0; i < redis->check_count && !problem; i++) {
        answer_check(redis->checks[i], redis->window_of[i], time);
    }
    return leave_if(redis, problem);
}

static int is_ready(void *baton)
{
    redis_t *redis = baton;

    return !crm_wire_is_quiet(&redis->wire);
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

const char *crm_redis_check(const crm_redis_config_t *config)
{
    SSL_CTX *tls = NULL;
    const char *problem = config->tls ? crm_wire_tls(&tls, config->ca) : NULL;

    SSL_CTX_free(tls);
    return problem;
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
    backend->name = config->name;
    backend->baton = redis;
    backend->send = send_checks;
    backend->receive = receive_answers;
    backend->ready = is_ready;
    backend->close = end;
    return problem;
}
