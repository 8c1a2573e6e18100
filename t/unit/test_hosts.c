/* SPDX-License-Identifier: Apache-2.0 */
/* test_hosts.c: connection strings with several hosts, whose names a service knows,
 * does not know, or says nothing about; nothing is connected to */
#include "crm_check.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_hosts.h"
#include "crm_name.h"
#include "crm_time.h"

#define SHORT 50000             /* microseconds */
#define ENOUGH 3000000          /* for an answer, on a busy machine */
#define LONG 60000000

static apr_pool_t *pool;

/* ---- the name service: one.test, two.test, many.test have as many addresses - */

#define MANY 20

/* Two addresses, and then many. */
static struct sockaddr_in answers[2 + MANY];
static struct addrinfo infos[2 + MANY];

/* Whether last.test was asked for. */
static int last_asked;

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict found)
{
    (void)service;
    if (hints->ai_flags & AI_NUMERICHOST || !strcmp(host, "none.test")) {
        return EAI_NONAME;
    }
    while (!strcmp(host, "silent.test")) {
        pause();
    }
    if (!strcmp(host, "last.test")) {
        __atomic_store_n(&last_asked, 1, __ATOMIC_SEQ_CST);
    }
    *found = &infos[!strcmp(host, "many.test") ? 2 : !strcmp(host, "one.test")];
    return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
    (void)found;
}

static void setup(void)
{
    apr_pool_create(&pool, crm_check_pool());
    for (int i = 0; i < 2 + MANY; i++) {
        answers[i].sin_family = AF_INET;
        inet_pton(AF_INET, apr_psprintf(pool, "192.0.2.%d", i + 1),
                  &answers[i].sin_addr);
        infos[i].ai_addr = (struct sockaddr *)&answers[i];
        infos[i].ai_addrlen = sizeof(answers[i]);
        infos[i].ai_next = i == 1 || i == 1 + MANY ? NULL : &infos[i + 1];
    }
}

static void teardown(void)
{
    apr_pool_destroy(pool);
}

/* ---- tests ----------------------------------------------------------------- */

static const struct {
    const char *conninfo;
    int count;
} counted[] = {
    {"host=a", 1},
    {"host=/run/postgresql dbname=x", 1},
    {"host=a,b", 2},
    {"hostaddr=192.0.2.1,192.0.2.2,192.0.2.3", 3},
    {"host=a hostaddr=192.0.2.1,192.0.2.2", 2},
    {"postgresql://a:1,b:2/x?connect_timeout=5", 2},
};

START_TEST(hosts_are_counted)
{
    ck_assert_int_eq(crm_hosts_count(counted[_i].conninfo), counted[_i].count);
}
END_TEST

#define AT_A "connection to server at \"a\" (192.0.2.1), port 1 failed: "
#define AT_B "connection to server at \"b\" (192.0.2.2), port 1 failed: "

static const struct {
    const char *text, *cause;
} causes[] = {
    {"", ""},
    {AT_A "Connection refused\n\tIs it running?\n",
     AT_A "Connection refused  Is it running?"},
    /* with TLS and without */
    {AT_A "FATAL:  no\n" AT_A "FATAL:  no\n", AT_A "FATAL:  no"},
    {AT_A "FATAL:  no\n" AT_B "FATAL:  no\n" AT_A "FATAL:  no\n",
     AT_A "FATAL:  no; " AT_B "FATAL:  no"},
    {AT_A "FATAL:  28P01: no\nLOCATION:  auth_failed, auth.c:1\n"
     AT_B "FATAL:  no\n", AT_A "FATAL:  28P01: no; " AT_B "FATAL:  no"},
    {"could not translate host name \"pass@host\" to address: none\n"
     AT_B "no\n", "could not translate host name \"...\" to address: none; "
     AT_B "no"},
    {"a \"b\" c \"d\" e\n", "a \"...\" e"},
};

START_TEST(the_cause_is_said_once_for_each_host)
{
    ck_assert_str_eq(crm_hosts_cause(causes[_i].text, pool), causes[_i].cause);
}
END_TEST

static const struct {
    const char *conninfo, *label;
} labels[] = {
    {"host=a,b port=1,2 dbname=d password=secret",
     "host=a,b port=1,2 dbname=d user=me"},
    {"hostaddr=192.0.2.1 user=u sslpassword=secret",
     "hostaddr=192.0.2.1 user=u"},
    {"postgresql://u:secret@a/d", "host=a dbname=d user=u"},
    /* the service may name the login */
    {"service=s", "service=s"},
    {"service=s user=u", "service=s user=u"},
};

START_TEST(a_label_says_where_and_who_and_no_password)
{
    ck_assert_str_eq(crm_hosts_label(labels[_i].conninfo, "me", pool),
                     labels[_i].label);
}
END_TEST

START_TEST(a_fault_shows_no_password)
{
    ck_assert_ptr_null(crm_hosts_fault("host=a password=x@y", pool));
    ck_assert_ptr_null(crm_hosts_fault("postgresql://u:x%40y@a/d", pool));
    ck_assert_pstr_eq(crm_hosts_fault("postgresql://u:x@y@a/d", pool),
                      "the host contains '@'; in a password it must be written"
                      " %40");
    ck_assert_pstr_eq(crm_hosts_fault("host=a secret=x", pool),
                      "invalid connection option \"...\"");
    ck_assert_pstr_eq(crm_hosts_label("host=a", NULL, pool), "host=a");
}
END_TEST

/* "host|hostaddr|port" of what crm_hosts_find() finds; NULL: all were left out. */
static const struct {
    const char *conninfo, *found;
} finds[] = {
    {"host=one.test", "one.test|192.0.2.2|5432"},
    {"host=one.test port=7", "one.test|192.0.2.2|7"},
    {"host=two.test,one.test", "two.test,two.test,one.test"
     "|192.0.2.1,192.0.2.2,192.0.2.2|5432,5432,5432"},
    {"host=two.test,/run,one.test port=1,2,3",
     "two.test,two.test,/run,one.test|192.0.2.1,192.0.2.2,,192.0.2.2|1,1,2,3"},
    {"host=@abstract,one.test port=4", "@abstract,one.test|,192.0.2.2|4,4"},
    {"host=none.test,one.test port=1,2", "none.test,one.test|,192.0.2.2|1,2"},
    {"host=none.test", "none.test||5432"},
    {"host=one.test,silent.test port=1,2", "one.test|192.0.2.2|1"},
    {"host=silent.test,one.test port=1,2", "one.test|192.0.2.2|2"},
    {"host=silent.test", NULL},
    /* there is nothing to look up */
    {"host=/run,/tmp", "||"},
    {"host=one.test hostaddr=192.0.2.9", "||"},
    {"dbname=d", "||"},
};

START_TEST(addresses_go_with_the_port_of_their_host)
{
    crm_hosts_found_t found;
    const char *silent = strstr(finds[_i].conninfo, "silent.test");
    apr_time_t time = !silent ? LONG : finds[_i].found ? ENOUGH : SHORT;
    int some = crm_hosts_find(&found, finds[_i].conninfo,
                              crm_time_monotonic() + time, pool);

    ck_assert_int_eq(some, finds[_i].found != NULL);
    if (some) {
        ck_assert_str_eq(apr_pstrcat(pool, found.host ? found.host : "", "|",
                                     found.hostaddr ? found.hostaddr : "", "|",
                                     found.port ? found.port : "", NULL),
                         finds[_i].found);
        ck_assert_int_eq(found.host != NULL, *finds[_i].found != '|');
    }
}
END_TEST

static const struct {
    const char *conninfo;
    int silent;
} silences[] = {
    {"host=one.test", 0},
    {"host=silent.test", 1},
    {"host=silent.test,one.test", 1},
    {"host=one.test,silent.test", 0},
    {"host=none.test,silent.test", 1},
    {"host=none.test", 0},
    {"host=/run,silent.test", 0},
    {"host=silent.test hostaddr=192.0.2.1", 0},
};

START_TEST(a_silent_name_service_matters_before_an_address)
{
    PQconninfoOption *options = crm_hosts_options(silences[_i].conninfo);

    apr_time_t until = crm_time_monotonic()
                       + (silences[_i].silent ? SHORT : LONG);

    ck_assert_int_eq(crm_hosts_silent(options, until, pool),
                     silences[_i].silent);
    PQconninfoFree(options);
}
END_TEST

/* So a silent one leaves time for the others. */
START_TEST(all_names_are_asked_at_once)
{
    PQconninfoOption *options = crm_hosts_options(
        "host=silent.test,last.test");
    apr_time_t end = crm_time_monotonic() + LONG;

    crm_hosts_silent(options, crm_time_monotonic() + SHORT, pool);
    while (!__atomic_load_n(&last_asked, __ATOMIC_SEQ_CST)
           && crm_time_monotonic() < end) {
        usleep(10000);
    }
    ck_assert(last_asked);
    PQconninfoFree(options);
}
END_TEST

START_TEST(a_closed_connection_is_no_reason)
{
    const char *const at = "CRM2001: database: connection to server at \"h\","
                           " port 1 failed: ";
    static const struct {
        const char *text;
        int tells;
    } cases[] = {
        {"Connection refused", 1},
        {"FATAL:  57P03: the database system is shutting down", 1},
        {"server closed the connection unexpectedly", 0},
    };

    for (int i = 0; i < COUNT(cases); i++) {
        ck_assert_int_eq(crm_hosts_tells(apr_pstrcat(pool, at, cases[i].text,
                                                     NULL)), cases[i].tells);
        /* of a statement */
        ck_assert(!crm_hosts_tells(apr_pstrcat(pool, "CRM2001: database: ",
                                               cases[i].text, NULL)));
    }
    ck_assert(crm_hosts_tells(apr_pstrcat(pool, "CRM2001: database: ",
                                          crm_hosts_nameless, NULL)));
}
END_TEST

/* What is looked up of the host number INDEX of CONNINFO within TIME. */
static const char *looked_up(const char *conninfo, int index, apr_time_t time)
{
    const char *fault, *text = "";
    apr_array_header_t *all = crm_hosts_addresses(&fault, conninfo, index,
                                  crm_time_monotonic() + time, pool);

    for (int i = 0; i < all->nelts; i++) {
        const char *one = APR_ARRAY_IDX(all, i, const char *);

        text = apr_pstrcat(pool, text, i ? " " : "", one ? one : "any", NULL);
    }
    return fault ? apr_pstrcat(pool, text, fault, NULL) : text;
}

START_TEST(the_addresses_of_one_host)
{
    const char *conninfo = "host=two.test,none.test,silent.test,/run";

    ck_assert_str_eq(looked_up(conninfo, 0, LONG), "192.0.2.1 192.0.2.2");
    ck_assert_str_eq(looked_up(conninfo, 1, LONG), apr_pstrcat(pool,
                     "could not translate host name \"...\" to address: ",
                     gai_strerror(EAI_NONAME), NULL));
    ck_assert_str_eq(looked_up(conninfo, 2, SHORT), crm_hosts_nameless);
    ck_assert_str_eq(looked_up(conninfo, 3, LONG), "any");
    ck_assert_str_eq(looked_up("host=a hostaddr=192.0.2.1", 0, LONG), "any");
    ck_assert_str_eq(looked_up("host=many.test", 0, LONG), "192.0.2.3 192.0.2.4"
                     " 192.0.2.5 192.0.2.6 192.0.2.7 192.0.2.8 192.0.2.9"
                     " 192.0.2.10 192.0.2.11 192.0.2.12 192.0.2.13 192.0.2.14"
                     " 192.0.2.15 192.0.2.16 192.0.2.17 192.0.2.18");
}
END_TEST

/* The value of the last KEYWORD of PARAMS, which counts; "": none. */
static const char *last_of(const crm_params_t *params, const char *keyword)
{
    const char *value = "";

    for (int i = 0; params->keywords[i]; i++) {
        if (!strcmp(params->keywords[i], keyword)) {
            value = params->values[i];
        }
    }
    return value;
}

START_TEST(a_connection_to_one_host_of_several)
{
    static const struct {
        const char *conninfo, *address, *host, *port;
    } cases[] = {
        {"host=a,b port=1,2 user=u", "192.0.2.2", "b", "2"},
        {"host=a,b port=5 user=u", NULL, "b", "5"},
        {"host=a,b hostaddr=192.0.2.1,192.0.2.2 port=1,2 user=u", NULL, "b",
         "2"},
    };

    for (int i = 0; i < COUNT(cases); i++) {
        crm_params_t params = crm_hosts_one(cases[i].conninfo, 1,
                                            cases[i].address, "n", pool);

        ck_assert_str_eq(last_of(&params, "host"), cases[i].host);
        ck_assert_str_eq(last_of(&params, "port"), cases[i].port);
        ck_assert_str_eq(last_of(&params, "user"), "u");
        ck_assert_str_eq(last_of(&params, "fallback_application_name"), "n");
        ck_assert_str_eq(last_of(&params, "hostaddr"), i == 1 ? ""
                                                               : "192.0.2.2");
        ck_assert_str_eq(last_of(&params, "password"), "");
        ck_assert_str_eq(last_of(&params, "sslmode"), "");
    }
}
END_TEST

int main(void)
{
    static const char *const variables[] = {
        "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGPASSWORD",
        "PGCONNECT_TIMEOUT", "PGSERVICE", "PGSSLMODE"
    };
    Suite *suite = suite_create("hosts");
    TCase *tcase = tcase_create("hosts");

    for (int i = 0; i < COUNT(variables); i++) {
        unsetenv(variables[i]);
    }
    crm_check_pool();
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase,
                        hosts_are_counted, 0,
                        COUNT(counted));
    tcase_add_loop_test(tcase, the_cause_is_said_once_for_each_host, 0,
                        COUNT(causes));
    tcase_add_loop_test(tcase, a_label_says_where_and_who_and_no_password, 0,
                        COUNT(labels));
    tcase_add_test(tcase, a_fault_shows_no_password);
    tcase_add_loop_test(tcase, addresses_go_with_the_port_of_their_host, 0,
                        COUNT(finds));
    tcase_add_test(tcase, a_closed_connection_is_no_reason);
    tcase_add_test(tcase, all_names_are_asked_at_once);
    tcase_add_loop_test(tcase, a_silent_name_service_matters_before_an_address,
                        0, COUNT(silences));
    tcase_add_test(tcase, the_addresses_of_one_host);
    tcase_add_test(tcase, a_connection_to_one_host_of_several);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
