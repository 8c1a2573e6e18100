/* SPDX-License-Identifier: Apache-2.0 */
/* test_address.c: no connection to an address that is not public
 * (contract 12.4) */
#include "crm_check.h"
#include "crm_server.h"

#include <netdb.h>

#include "apr_strings.h"

#include "crm_address_kind.h"
#include "crmapid_curl.h"

static const char *const public_addresses[] = {
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.216.34",
    "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
    "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255",
    "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
    "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255",
    "203.0.114.0", "223.255.255.255",
    "2000::1", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111",
    "2a00:1450:4001::1", "2003::1", "3ffd::1", "3fff:1000::1",
    "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b::808:808",
};

static const char *const other_addresses[] = {
    "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0",
    "100.100.100.200", "100.127.255.255", "127.0.0.0", "127.0.0.1",
    "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.169.254",
    "169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0",
    "192.0.0.192", "192.0.0.255", "192.0.2.1", "192.88.99.1", "192.168.0.0",
    "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.254", "255.255.255.255",
    "::", "::1", "::2", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0",
    "::ffff:0:8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254", "64:ff9b:1::8.8.8.8", "64:ff9b:0:1::8.8.8.8",
    "100::1", "100:0:0:1::1", "2001::1", "2001:0:808:808::1", "2001:1::1",
    "2001:2::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff::1",
    "2001:db8::1", "2001:db8:ffff::1", "2002::1", "2002:7f00:1::1",
    "2002:808:808::1", "3ffe::1", "3fff::1", "3fff:fff::1", "4000::1",
    "5f00::1", "8000::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe00::1",
    "fe80::1", "fe80::1%lo", "febf::1", "fec0::1", "feff::1", "ff00::1",
    "ff02::1", "ff0e::1", "ffff::1",
};

/* Those of them that nothing can ever have, or that TCP cannot reach. */
static const char *const never_addresses[] = {
    "0.0.0.0", "0.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.254",
    "255.255.255.255", "::", "::ffff:0.0.0.0", "::ffff:224.0.0.1",
    "64:ff9b::240.0.0.1", "100::1", "2001:db8::1", "2001:db8:ffff::1",
    "3fff::1", "3fff:fff::1", "ff00::1", "ff02::1", "ff0e::1", "ffff::1",
};

/* Return what crm_address_kind() says of TEXT. */
static crm_address_kind_t ask(const char *text)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    crm_address_kind_t said;

    ck_assert_msg(!getaddrinfo(text, "80", &hints, &found), "%s", text);
    said = crm_address_kind(found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return said;
}

START_TEST(test_public)
{
    ck_assert_msg(ask(public_addresses[_i]) == CRM_ADDRESS_PUBLIC, "%s is not public",
                  public_addresses[_i]);
}
END_TEST

START_TEST(test_not_public)
{
    crm_address_kind_t kind = CRM_ADDRESS_PRIVATE;

    for (size_t i = 0; i < CRM_NELTS(never_addresses); i++) {
        if (!strcmp(never_addresses[i], other_addresses[_i])) {
            kind = CRM_ADDRESS_NEVER;
        }
    }
    ck_assert_msg(ask(other_addresses[_i]) == kind, "%s",
                  other_addresses[_i]);
}
END_TEST

START_TEST(test_never)
{
    ck_assert_msg(ask(never_addresses[_i]) == CRM_ADDRESS_NEVER, "%s",
                  never_addresses[_i]);
}
END_TEST

static crm_address_kind_t kind_of(const struct sockaddr_storage *address,
                                  size_t len)
{
    return crm_address_kind((const struct sockaddr *)address, (socklen_t)len);
}

START_TEST(test_no_address)
{
    struct sockaddr_storage address;

    memset(&address, 0, sizeof(address));
    address.ss_family = AF_UNIX;
    ck_assert_int_eq(kind_of(&address, sizeof(address)),
                     CRM_ADDRESS_PRIVATE);
    address.ss_family = AF_INET;
    ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(0x08080808);
    ck_assert_int_eq(kind_of(&address, sizeof(struct sockaddr_in)),
                     CRM_ADDRESS_PUBLIC);
    ck_assert_int_eq(kind_of(&address, sizeof(struct sockaddr_in) - 1),
                     CRM_ADDRESS_PRIVATE);
    address.ss_family = AF_INET6;
    ck_assert_int_eq(kind_of(&address, sizeof(struct sockaddr_in6) - 1),
                     CRM_ADDRESS_PRIVATE);
}
END_TEST

/* ---- no connection ------------------------------------------------------- */

/* What the URL of an endpoint may have as its host. Those with "*" lead to
 * this machine: they are reached where nothing forbids it. */
static const char *const hosts[] = {
    "*127.0.0.1", "*127.1", "*127.0.1", "*2130706433", "*0x7f000001",
    "*0x7f.0.0.1", "*0x7f.1", "*0177.0.0.1", "*0177.1", "*017700000001",
    "127.0.0.2", "127.255.255.254", "*0177.0x0.0.1", "*0x7F.0x0.0x1",
    "127.0.0.1.", "127.1.", "*0x7f.0.1", "*0177.0.1", "*127.0.0x1",
    "*127.0.0.01", "*0", "*0.0.0.0", "*0x0", "*00", "*0.0", "*0.0.0",
    "*[::ffff:127.0.0.1]", "*[::ffff:7f00:1]",
    "*[0:0:0:0:0:ffff:127.0.0.1]", "*[::ffff:0.0.0.0]",
    "[::127.0.0.1]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]",
    "[::1%25lo]", "[fe80::1%25lo]", "[fe80::1%251]", "[fe80::1]",
    "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001:0:7f00:1::]",
    "*localhost", "*LOCALHOST", "localhost.", "LocalHost.", "a.localhost",
    "localhost.localdomain", "ip6-localhost",
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
    "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "169.16689662",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]",
    "[fd20:ce::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "10.0.0.1", "10.1", "167772161", "012.0.0.1", "172.16.0.1", "172.31.255.1",
    "192.168.0.1", "0300.0250.0.1", "3232235521", "198.18.0.1",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "4294967295", "[ff02::1]",
    "[fec0::1]", "[100::1]", "[2001:db8::1]", "192.0.2.1",
    "user@127.0.0.1", "8.8.8.8@127.0.0.1", "127.0.0.1#", "127.0.0.1?",
    "127.0.0.1:@127.0.0.1",
    /* names as a resolver answers them, see below */
    "*rebind.example", "mixed.example", "*mapped.example",
    "metadata.example", "six.example", "nat.example", "twin.example",
};

static const char *const answers[] = {
    "rebind.example:%d:127.0.0.1",
    "mixed.example:%d:10.255.255.1,127.0.0.1,[::1]",
    "mapped.example:%d:[::ffff:127.0.0.1]",
    "metadata.example:%d:169.254.169.254",
    "six.example:%d:[fd00:ec2::254]",
    "nat.example:%d:[64:ff9b::a00:1]",
    "twin.example:%d:[::1],127.0.0.1",
};
enum { ANSWERS = CRM_NELTS(answers) };

static void serve(int fd, void *baton)
{
    char buffer[4096];

    (void)baton;
    if (read(fd, buffer, sizeof(buffer)) > 0) {
        server_puts(fd, "HTTP/1.1 204 No Content\r\n"
                    "Connection: close\r\n\r\n");
    }
}

static int only_public(const struct sockaddr *address, socklen_t len,
                       void *baton)
{
    ++*(int *)baton;
    return crm_address_kind(address, len) == CRM_ADDRESS_PUBLIC;
}

/* Post to HOST's PORT; FORBIDDING: as webhooks do. *ASKED_P = how many
 * addresses there were. */
static void post(crmd_http_answer_t *answer, int *asked_p, const char *host,
                 int port, int forbidding, apr_pool_t *pool)
{
    const char *resolve[ANSWERS + 1];
    crmd_http_request_t request;

    for (int i = 0; i < ANSWERS; i++) {
        const char *mark = strstr(answers[i], "%d");
        apr_size_t len = (apr_size_t)(mark - answers[i]);

        resolve[i] = apr_pstrcat(pool, apr_pstrmemdup(pool, answers[i], len),
                                 apr_itoa(pool, port), mark + 2, NULL);
    }
    resolve[ANSWERS] = NULL;
    memset(&request, 0, sizeof(request));
    request.url = strpbrk(host, "#?")
        ? apr_psprintf(pool, "http://%.*s:%d/%s",
                       (int)strcspn(host, "#?"), host, port,
                       strpbrk(host, "#?"))
        : apr_psprintf(pool, "http://%s:%d/", host, port);
    request.body = "{}";
    request.body_len = 2;
    request.timeout = apr_time_from_sec(3);
    request.max_answer = 1024;
    request.resolve = resolve;
    request.allowed = forbidding ? only_public : NULL;
    request.baton = asked_p;
    *asked_p = 0;
    crmd_http_send(answer, &request, pool);
}

/* However it is spelled: the listening socket sees nobody. */
START_TEST(test_no_connection)
{
    const char *host = hosts[_i] + (*hosts[_i] == '*');
    apr_pool_t *pool = crm_check_pool();
    crmd_http_answer_t answer;
    server_t server;
    int asked;

    server_start(&server, serve, NULL);
    post(&answer, &asked, host, server.port, 1, pool);
    ck_assert_msg(!answer.status, "%s answered %d", host, answer.status);
    ck_assert_msg(answer.error != NULL, "%s", host);
    ck_assert_msg(!answer.sent, "%s got something", host);
    if (*hosts[_i] == '*') {
        /* The socket is there, the address is understood, and it was the
         * check that kept us away. */
        ck_assert_msg(asked > 0, "%s: nobody was asked (%s)", host,
                      answer.error);
        ck_assert_msg(strstr(answer.error, "not allowed") != NULL,
                      "%s: %s", host, answer.error);
        post(&answer, &asked, host, server.port, 0, pool);
        ck_assert_msg(answer.status == 204, "%s is no way to here: %s", host,
                      answer.error);
        server_stop(&server);
        ck_assert_int_eq(server.connections, 1);
        return;
    }
    server_stop(&server);
    ck_assert_msg(!server.connections, "%s connected", host);
}
END_TEST

/* The same on ::1, where a machine has that. */
START_TEST(test_no_connection_six)
{
    static const char *const names[] = {
        "[::1]", "[0:0:0:0:0:0:0:1]", "[::0.0.0.1]", "[::]", "twin.example",
        "localhost", "[::1%25lo]",
    };
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof(address);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len)) {
        return;                 /* no IPv6 here: nothing can be reached */
    }
    ck_assert_int_eq(listen(fd, 16), 0);
    getsockname(fd, (struct sockaddr *)&address, &len);
    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        crmd_http_answer_t answer;
        int asked;

        post(&answer, &asked, names[i], ntohs(address.sin6_port), 1,
             crm_check_pool());
        ck_assert_msg(answer.error && !answer.sent, "%s", names[i]);
    }
    ck_assert_int_lt(accept(fd, NULL, NULL), 0);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("address");
    TCase *tcase = tcase_create("address");

    crm_check_pool();
    tcase_add_loop_test(tcase, test_public, 0, COUNT(public_addresses));
    tcase_add_loop_test(tcase, test_not_public, 0, COUNT(other_addresses));
    tcase_add_loop_test(tcase, test_never, 0, COUNT(never_addresses));
    tcase_add_test(tcase, test_no_address);
    tcase_add_loop_test(tcase, test_no_connection, 0, COUNT(hosts));
    tcase_add_test(tcase, test_no_connection_six);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
