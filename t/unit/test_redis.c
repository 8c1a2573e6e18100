/* SPDX-License-Identifier: Apache-2.0 */
/* test_redis.c: the back end of a store of budgets, with servers that answer
 * as Redis does, or do not */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>

#include "apr_strings.h"

#include "crm_check.h"
#include "crm_redis.h"
#include "crm_redis_url.h"
#include "crm_server.h"

/* Of the checks that ask() sends, two share a window. */
#define TIME "*7\r\n:1700000000000000\r\n"
#define BOTH ":2\r\n:7\r\n:60000000\r\n"
#define ONE ":1\r\n:0\r\n:5\r\n"
#define NONE ":0\r\n:0\r\n:6\r\n"

/* What the server says to each thing it receives; NULL: nothing, it hangs; "":
 * nothing, it closes the connection. */
static const char *const *says;

/* What it has received last. */
static char heard[65536];

static void serve(int fd, void *baton)
{
    ssize_t len;

    (void)baton;
    for (int i = 0; (len = read(fd, heard, sizeof(heard) - 1)) > 0; i++) {
        heard[len] = '\0';
        if (!says[i]) {
            server_hang(fd);
            return;
        }
        server_puts(fd, says[i]);
        if (!*says[i] || (says[i + 1] && !*says[i + 1])) {
            return;
        }
    }
}

static crm_store_backend_t backend;
static crm_store_check_t checks[CRM_STORE_TOGETHER];

/* Two of three checks are about this key, and each other one about another. */
static void make_checks(void)
{
    memset(checks, 0, sizeof(checks));
    for (int i = 0; i < CRM_STORE_TOGETHER; i++) {
        checks[i].key_id = i == 0 || i == 2 ? "key" : i == 1 ? "other"
                           : apr_psprintf(crm_check_pool(), "k%d", i);
        checks[i].limit = 9;
    }
}

/* Ask a server that says TEXTS for COUNT of the checks, with a password if SECRET.
 * Return the reason. */
static const char *ask(const char *const *texts, int count, int secret,
                       apr_int64_t timeout)
{
    static char reason[300];
    crm_store_check_t *all[CRM_STORE_TOGETHER];
    server_t server;
    crm_redis_config_t parts;
    const char *problem;
    char url[40];

    says = texts;
    server_start(&server, serve, NULL);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
    ck_assert_ptr_null(crm_redis_parse(&parts, url, crm_check_pool()));
    parts.prefix = "test";
    parts.password = secret ? "secret" : NULL;
    ck_assert_ptr_null(crm_redis_create(&backend, &parts, crm_check_pool()));
    for (int i = 0; i < count; i++) {
        all[i] = &checks[i];
    }
    problem = backend.send(backend.baton, all, count, timeout);
    if (!problem) {
        problem = backend.receive(backend.baton, timeout);
    }
    snprintf(reason, sizeof(reason), "%s", problem ? problem : "");
    backend.close(backend.baton);
    server_stop(&server);
    return problem ? reason : NULL;
}

START_TEST(a_window_admits_its_first_requests)
{
    const char *const both[] = {TIME BOTH NONE, NULL};
    const char *const one[] = {TIME ONE ONE, NULL};

    ck_assert_ptr_null(ask(both, 3, 0, SERVER_LONG));
    for (int i = 0; i < 3; i++) {
        ck_assert(checks[i].answered);
        ck_assert_int_eq(checks[i].admitted, i != 1);
        ck_assert_int_eq(checks[i].time_us, APR_INT64_C(1700000000000000));
    }
    ck_assert_uint_eq(checks[0].remaining, 8);
    ck_assert_uint_eq(checks[2].remaining, 7);
    ck_assert_int_eq(checks[2].reset_us, 60000000);
    ck_assert_uint_eq(checks[1].remaining, 0);
    ck_assert_int_eq(checks[1].reset_us, 6);

    make_checks();
    ck_assert_ptr_null(ask(one, 3, 0, SERVER_LONG));
    ck_assert(checks[0].admitted && checks[1].admitted);
    ck_assert(checks[2].answered && !checks[2].admitted);
    ck_assert_uint_eq(checks[0].remaining, 0);
    ck_assert_uint_eq(checks[2].remaining, 0);
    ck_assert_int_eq(checks[2].reset_us, 5);
}
END_TEST

/* A command's words behind the script: how many keys, the keys, and the limit and the
 * number of requests of each. */
START_TEST(what_has_a_key_a_kind_and_a_limit_has_a_window)
{
    static const struct {
        crm_limit_class_t class;
        apr_uint32_t limit;
        const char *words;
    } third[] = {
        {CRM_LIMIT_READ, 9, "$1\r\n2\r\n$10\r\ntest:r:key\r\n"
         "$12\r\ntest:r:other\r\n$1\r\n9\r\n$1\r\n2\r\n$1\r\n9\r\n"
         "$1\r\n1\r\n"},
        {CRM_LIMIT_WRITE, 9, "$1\r\n3\r\n$10\r\ntest:r:key\r\n"
         "$12\r\ntest:r:other\r\n$10\r\ntest:w:key\r\n$1\r\n9\r\n"
         "$1\r\n1\r\n$1\r\n9\r\n$1\r\n1\r\n$1\r\n9\r\n$1\r\n1\r\n"},
        {CRM_LIMIT_READ, 8, "$1\r\n3\r\n$10\r\ntest:r:key\r\n"
         "$12\r\ntest:r:other\r\n$10\r\ntest:r:key\r\n$1\r\n9\r\n"
         "$1\r\n1\r\n$1\r\n9\r\n$1\r\n1\r\n$1\r\n8\r\n$1\r\n1\r\n"},
    };
    const char *const texts[] = {"+OK\r\n", NULL};
    const char *words = third[_i].words;

    checks[2].class = third[_i].class;
    checks[2].limit = third[_i].limit;
    ck_assert_str_eq(ask(texts, 3, 0, SERVER_LONG),
                     "unexpected reply of the script");
    ck_assert_uint_gt(strlen(heard), strlen(words));
    ck_assert_str_eq(heard + strlen(heard) - strlen(words), words);
}
END_TEST

START_TEST(as_many_as_there_is_room_for_are_answered)
{
    static char text[16384] = "*385\r\n:1700000000000000\r\n";
    const char *const texts[] = {text, NULL};

    for (int i = 0; i < CRM_STORE_TOGETHER; i++) {
        strcat(text, ONE);
    }
    checks[2].limit = 8;        /* it has a window, too */
    ck_assert_ptr_null(ask(texts, CRM_STORE_TOGETHER, 0, SERVER_LONG));
    for (int i = 0; i < CRM_STORE_TOGETHER; i++) {
        ck_assert(checks[i].answered && checks[i].admitted);
    }
}
END_TEST

START_TEST(the_script_is_sent_to_a_server_that_forgot_it)
{
    const char *const texts[] = {"-NOSCRIPT No matching script.\r\n",
                                 TIME BOTH ONE, NULL};

    ck_assert_ptr_null(ask(texts, 3, 0, SERVER_LONG));
    ck_assert(checks[0].admitted && checks[1].admitted && checks[2].admitted);
}
END_TEST

START_TEST(an_error_answers_nothing)
{
    const char *const texts[] = {"-LOADING Redis is loading\r\n", NULL};

    ck_assert_str_eq(ask(texts, 3, 0, SERVER_LONG), "LOADING Redis is loading");
    for (int i = 0; i < 3; i++) {
        ck_assert(!checks[i].answered);
    }
}
END_TEST

/* What a server says, and the reason that the log gets. */
static const struct {
    const char *says[3];
    int secret;
    const char *reason;
} faults[] = {
    {{"-MOVED 1234 192.0.2.1:6379\r\n"}, 0, "MOVED 1234 192.0.2.1:6379"},
    {{"-READONLY You can't write\r\n"}, 0, "READONLY You can't write"},
    {{"-NOAUTH Authentication required.\r\n"}, 0,
     "NOAUTH Authentication required."},
    {{"-WRONGPASS invalid username\r\n"}, 1, "WRONGPASS"},
    {{"-ERR unknown command `AUTH`, with args: `secret`\r\n"}, 1, "ERR"},
    {{"+OK\r\n", "-NOPERM no rights\r\n"}, 1, "NOPERM no rights"},
    {{"-NOSCRIPT No script\r\n", "-NOSCRIPT Again\r\n"}, 0, "NOSCRIPT Again"},
    {{"+OK\r\n"}, 0, "unexpected reply of the script"},
    {{"*1\r\n:1\r\n"}, 0, "unexpected reply of the script"},
    {{"*7\r\n:1\r\n:1\r\n:8\r\n:1\r\n:0\r\n:0\r\n:1\r\n"}, 0,
     "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:1\r\n$1\r\n7\r\n:1\r\n"}, 0,
     "unexpected reply of the script"},
    /* more than was asked, more than the limit, longer than a window */
    {{"*4\r\n:1\r\n:2\r\n:1\r\n:1\r\n"}, 0, "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:-1\r\n:1\r\n:1\r\n"}, 0, "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:1\r\n:10\r\n:1\r\n"}, 0, "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:1\r\n:-1\r\n:1\r\n"}, 0, "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:0\r\n:0\r\n:60000001\r\n"}, 0,
     "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:0\r\n:0\r\n:-1\r\n"}, 0, "unexpected reply of the script"},
    {{"*4\r\n:1\r\n:1\r\n:8\r\n:1\r\n*4\r\n:1\r\n:0\r\n:0\r\n:1\r\n"}, 0,
     "the server says more than it was asked"},
    /* no time */
    {{"*4\r\n:-1\r\n:1\r\n:8\r\n:1\r\n"}, 0, "unexpected reply of the script"},
    {{"*4\r\n:-9223372036854775808\r\n:1\r\n:8\r\n:1\r\n"}, 0,
     "unexpected reply of the script"},
    {{"*4\r\n:253402300800000000\r\n:1\r\n:8\r\n:1\r\n"}, 0,
     "unexpected reply of the script"},
    {{"*4\r\n:9223372036854775807\r\n:1\r\n:8\r\n:1\r\n"}, 0,
     "unexpected reply of the script"},
    {{"*2147483647\r\n"}, 0, "the server does not speak the Redis protocol"},
    {{"*4\r\n:1\r\n*1\r\n"}, 0, "the server does not speak the Redis protocol"},
    {{"*386\r\n:1\r\n"}, 0, "the server does not speak the Redis protocol"},
    {{"HTTP/1.1 400 Bad Request\r\n\r\n"}, 0,
     "the server does not speak the Redis protocol"},
    {{"*4\r\n:1\r\n", ""}, 0, "the connection was closed"},
    {{""}, 0, "the connection was closed"},
    {{"*4\r\n:1\r\n"}, 0, "no answer in time"},
    {{NULL}, 0, "no answer in time"},
};

/* A server that never ends what it says costs no memory. */
START_TEST(a_reply_has_a_maximum_length)
{
    static char text[100000];
    const char *const texts[] = {text, NULL};

    memset(text, 'x', sizeof(text) - 1);
    text[0] = '+';
    ck_assert_str_eq(ask(texts, 3, 0, SERVER_LONG),
                     "the server's reply is too long");
}
END_TEST

START_TEST(faults_have_reasons)
{
    const char *reason = faults[_i].reason;
    int hangs = !strcmp(reason, "no answer in time");

    ck_assert_pstr_eq(ask(faults[_i].says, 1, faults[_i].secret,
                          hangs ? SERVER_SHORT : SERVER_LONG), reason);
    ck_assert(!checks[0].answered);
}
END_TEST

START_TEST(a_server_that_is_not_there)
{
    crm_store_check_t *all[] = {&checks[0]};
    crm_redis_config_t parts;
    char url[40];
    int port, fd = server_open(&port, 0);

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    ck_assert_ptr_null(crm_redis_parse(&parts, url, crm_check_pool()));
    parts.prefix = "test";
    ck_assert_ptr_null(crm_redis_create(&backend, &parts, crm_check_pool()));
    ck_assert_str_eq(backend.send(backend.baton, all, 0, SERVER_LONG),
                     "cannot connect: Connection refused");
    backend.close(backend.baton);
    close(fd);
}
END_TEST

/* ---- names -------------------------------------------------------------- */

/* The ports of 127.0.0.1 to which NAME leads, in this order, until a 0. */
#define NAME "store.test"
static int leads_to[3];

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict found)
{
    int (*real)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **);
    struct addrinfo **link = found;
    void *there = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&real, &there, sizeof(real));
    if (strcmp(host, NAME)) {
        return real(host, service, hints, found);
    }
    *found = NULL;
    for (int i = 0; leads_to[i]; i++) {
        char port[12];

        snprintf(port, sizeof(port), "%d", leads_to[i]);
        ck_assert_int_eq(real("127.0.0.1", port, hints, link), 0);
        link = &(*link)->ai_next;
    }
    return *found ? 0 : EAI_NONAME;
}

static void open_by_name(void)
{
    crm_redis_config_t parts;

    ck_assert_ptr_null(crm_redis_parse(&parts, "redis://" NAME ":1",
                                       crm_check_pool()));
    parts.prefix = "test";
    ck_assert_ptr_null(crm_redis_create(&backend, &parts, crm_check_pool()));
}

/* Ask for one request within TIMEOUT. Return the reason. */
static const char *ask_once(apr_int64_t timeout)
{
    crm_store_check_t *all[] = {&checks[0]};
    const char *problem;

    memset(checks, 0, sizeof(checks));
    checks[0].key_id = "key";
    checks[0].limit = 9;
    problem = backend.send(backend.baton, all, 1, timeout);
    return problem ? problem : backend.receive(backend.baton, timeout);
}

/* Its connection is not closed, and it takes new ones. */
START_TEST(a_name_is_looked_up_again_after_a_failure)
{
    const char *const refuses[] = {"-READONLY You can't write\r\n", NULL};
    const char *const answers[] = {"*4\r\n:1\r\n" ONE, NULL};
    server_t old, new;

    server_start(&old, serve, NULL);
    server_start(&new, serve, NULL);
    leads_to[0] = old.port;
    leads_to[1] = 0;
    open_by_name();
    says = refuses;
    ck_assert_str_eq(ask_once(SERVER_LONG), "READONLY You can't write");
    leads_to[0] = new.port;
    says = answers;
    ck_assert_ptr_null(ask_once(SERVER_LONG));
    ck_assert(checks[0].admitted);
    backend.close(backend.baton);
    server_stop(&old);
    server_stop(&new);
    ck_assert_int_eq(old.connections, 1);
    ck_assert_int_eq(new.connections, 1);
}
END_TEST

START_TEST(a_silent_address_does_not_hide_the_next)
{
    const char *const answers[] = {"*4\r\n:1\r\n" ONE, NULL};
    struct sockaddr_in address = {.sin_family = AF_INET};
    int silent = server_open(&leads_to[0], 1);
    int fill = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server_t good;

    /* its queue is full: it answers to no SYN */
    ck_assert_int_eq(listen(silent, 0), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((in_port_t)leads_to[0]);
    ck_assert_int_eq(connect(fill, (struct sockaddr *)&address,
                             sizeof(address)), 0);
    server_start(&good, serve, NULL);
    says = answers;
    leads_to[1] = good.port;
    leads_to[2] = 0;
    open_by_name();
    ck_assert_ptr_null(ask_once(4 * SERVER_SHORT));
    ck_assert(checks[0].admitted);
    backend.close(backend.baton);
    server_stop(&good);
    close(fill);
    close(silent);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("redis");
    TCase *tcase = tcase_create("redis");

    crm_check_pool();
    tcase_add_checked_fixture(tcase, make_checks, NULL);
    tcase_add_test(tcase, a_window_admits_its_first_requests);
    tcase_add_loop_test(tcase, what_has_a_key_a_kind_and_a_limit_has_a_window, 0,
                        3);
    tcase_add_test(tcase, as_many_as_there_is_room_for_are_answered);
    tcase_add_test(tcase, the_script_is_sent_to_a_server_that_forgot_it);
    tcase_add_test(tcase, an_error_answers_nothing);
    tcase_add_test(tcase, a_reply_has_a_maximum_length);
    tcase_add_loop_test(tcase, faults_have_reasons, 0, COUNT(faults));
    tcase_add_test(tcase, a_server_that_is_not_there);
    tcase_add_test(tcase, a_name_is_looked_up_again_after_a_failure);
    tcase_add_test(tcase, a_silent_address_does_not_hide_the_next);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
