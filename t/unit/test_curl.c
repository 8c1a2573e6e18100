/* SPDX-License-Identifier: Apache-2.0 */
/* test_curl.c: the HTTP client of crmapid, and what ends a request of it */
#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <sys/resource.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_http_script.h"
#include "crmapid_curl.h"

static int nobody(const struct sockaddr *address, socklen_t len, void *baton)
{
    ck_assert_int_eq(address->sa_family, AF_INET);
    ck_assert_uint_ge(len, sizeof(struct sockaddr_in));
    ++*(int *)baton;
    return 0;
}

START_TEST(the_client_asks_before_it_connects)
{
    const char *resolve[] = {"good.example:80:127.0.0.1", NULL};
    int asked = 0;
    crmd_http_request_t request = {
        .url = "http://good.example/", .timeout = apr_time_from_sec(2),
        .allowed = nobody, .baton = &asked, .resolve = resolve
    };
    crmd_http_answer_t answer;

    crmd_http_send(&answer, &request, crm_check_pool());
    ck_assert_int_eq(asked, 1);
    ck_assert_int_eq(answer.status, 0);
    ck_assert_int_eq(answer.sent, 0);
    ck_assert_str_eq(answer.error, "connections to this address are not"
                     " allowed");
}
END_TEST

START_TEST(the_client_keeps_to_its_limits)
{
    static const char *const urls[] = {
        "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "",
        "http://", "smtp://127.0.0.1/"
    };
    static const char *const proxies[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    const char *headers[] = {"X: a\r\nY: b", NULL};
    crmd_http_request_t request = {.timeout = SERVER_LONG};
    crmd_http_answer_t answer;
    server_t server;

    /* of the site's programs: through one, no address would be compared */
    for (size_t i = 0; i < CRM_NELTS(proxies); i++) {
        setenv(proxies[i], "http://127.0.0.1:1/", 1);
    }
    for (size_t i = 0; i < CRM_NELTS(urls); i++) {
        request.url = urls[i];
        crmd_http_send(&answer, &request, crm_check_pool());
        ck_assert_msg(answer.error && !answer.sent && !answer.status, "%s",
                      urls[i]);
    }
    script.answer = SAYS("200", "0123456789");
    script.then = FLOOD;
    server_start(&server, serve, &script);
    request.url = apr_psprintf(crm_check_pool(), "http://127.0.0.1:%d/",
                               server.port);
    request.max_answer = 7;
    crmd_http_send(&answer, &request, crm_check_pool());
    ck_assert_str_eq(answer.body, "0123456");
    ck_assert_uint_eq(answer.len, 7);
    ck_assert(answer.cut && !answer.error && answer.status == 200);
    ck_assert(!strncmp(script.request, "GET / HTTP/1.1\r\n", 16));
    request.headers = headers;
    crmd_http_send(&answer, &request, crm_check_pool());
    ck_assert(answer.error && !answer.sent);
    server_stop(&server);
    ck_assert_int_eq(server.connections, 1);
}
END_TEST

#define SILENT "hook.silent.test"

static sem_t let_go;

/* A name service that says nothing of SILENT until the test lets it go. */
int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict found)
{
    int (*real)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **);
    void *there = dlsym(RTLD_NEXT, "getaddrinfo");

    if (host && !strcmp(host, SILENT)) {
        sem_wait(&let_go);
        return EAI_AGAIN;
    }
    memcpy(&real, &there, sizeof(real));
    return real(host, service, hints, found);
}

START_TEST(a_silent_name_service_is_not_waited_for)
{
    crmd_http_request_t request = {
        .url = "http://u:secret@" SILENT "/secret", .timeout = SERVER_SHORT,
        .max_answer = 7
    };
    crmd_http_answer_t answer;

    sem_init(&let_go, 0, 0);
    crmd_http_send(&answer, &request, crm_check_pool());
    sem_post(&let_go);
    ck_assert(!answer.status && !answer.sent);
    ck_assert_str_eq(answer.error, "the name service gave no answer in time: "
                     SILENT);
}
END_TEST

/* Not the server's fault. */
START_TEST(a_lack_of_descriptors_is_told)
{
    crmd_http_request_t request = {
        .url = "http://127.0.0.1:1/", .timeout = SERVER_LONG, .max_answer = 7
    };
    crmd_http_answer_t answer;
    struct rlimit limit, none;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    crmd_http_send(&answer, &request, crm_check_pool());
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert(!answer.status && !answer.sent);
    ck_assert_ptr_nonnull(answer.error);
    ck_assert_msg(strstr(answer.error, "Too many open files"), "%s",
                  answer.error);
}
END_TEST

/* Return why a server that says ANSWER cannot be understood. */
static const char *fault_of(const char *answer)
{
    crmd_http_request_t request = {.timeout = SERVER_LONG, .max_answer = 7};
    crmd_http_answer_t got;
    server_t server;

    script.answer = answer;
    server_start(&server, serve, &script);
    request.url = apr_psprintf(crm_check_pool(), "http://127.0.0.1:%d/",
                               server.port);
    crmd_http_send(&got, &request, crm_check_pool());
    server_stop(&server);
    ck_assert_ptr_nonnull(got.error);
    return got.error;
}

START_TEST(who_does_not_speak_http_is_told)
{
    ck_assert_str_eq(fault_of("220 mail.example ESMTP\r\n"),
                     "the server does not speak HTTP");
}
END_TEST

/* A server that goes on with headers for ever. */
START_TEST(headers_without_end)
{
    crm_buf_t head;

    crm_buf_init(&head, 131072, crm_check_pool());
    crm_buf_puts(&head, "HTTP/1.1 503 x\r\n");
    for (int i = 0; i < 80; i++) {
        crm_buf_printf(&head, "X: %01000d\r\n", i);
    }
    crm_buf_add(&head, "\r\n", 3);
    ck_assert_str_eq(fault_of(head.data),
                     "the answer's headers are too long");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("curl");
    TCase *client = tcase_create("client");

    tcase_add_test(client, the_client_asks_before_it_connects);
    tcase_add_test(client, the_client_keeps_to_its_limits);
    tcase_add_test(client, a_silent_name_service_is_not_waited_for);
    tcase_add_test(client, a_lack_of_descriptors_is_told);
    tcase_add_test(client, who_does_not_speak_http_is_told);
    tcase_add_test(client, headers_without_end);
    suite_add_tcase(suite, client);
    return crm_check_main(suite);
}
