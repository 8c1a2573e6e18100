/* SPDX-License-Identifier: Apache-2.0 */
/* test_name.c: looking up names, with a name service that says what the test wants, or
 * nothing (contract 16.1) */
#include "crm_check.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "crm_name.h"
#include "crm_time.h"

#define SHORT 50000             /* microseconds */
#define LONG 60000000

static int asked;               /* questions about names */
static int says;                /* getaddrinfo()'s result for a name */
static int given;               /* answers that were not freed */
static int told;                /* answers that were told */
static int threads;             /* those that nobody has detached */
static int no_threads;          /* there can be no more */
static apr_int64_t passed;      /* added to the clock, in microseconds */
static const char *port;        /* that of the question */
static sem_t let_go;            /* it is said then */

static struct sockaddr_in answers[3];
static struct addrinfo infos[3];

/* Threads read the clock, also those that nobody waits for. */
static void set_passed(apr_int64_t microseconds)
{
    __atomic_store_n(&passed, microseconds, __ATOMIC_RELAXED);
}

apr_time_t __real_crm_time_monotonic(void);
apr_time_t __wrap_crm_time_monotonic(void);
apr_time_t __wrap_crm_time_monotonic(void)
{
    return __real_crm_time_monotonic()
           + __atomic_load_n(&passed, __ATOMIC_RELAXED);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *data)
{
    int error = no_threads ? EAGAIN
                : __real_pthread_create(thread, attributes, run, data);

    threads += !error;
    return error;
}

int __real_pthread_detach(pthread_t thread);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_detach(pthread_t thread)
{
    threads--;
    return __real_pthread_detach(thread);
}

int __real_pthread_cond_broadcast(pthread_cond_t *all);
int __wrap_pthread_cond_broadcast(pthread_cond_t *all);
int __wrap_pthread_cond_broadcast(pthread_cond_t *all)
{
    __atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
    return __real_pthread_cond_broadcast(all);
}

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict found)
{
    /* PORT may be another one already */
    ck_assert(!strcmp(service, "80") || !strcmp(service, "81"));
    /* each address once, of either family */
    ck_assert(hints->ai_family == AF_UNSPEC
              && hints->ai_socktype == SOCK_STREAM);
    if (strcmp(host, "192.0.2.1")) {
        sigset_t blocked;

        if (hints->ai_flags & AI_NUMERICHOST) {
            return EAI_NONAME;
        }
        /* signals are for the threads of the program */
        pthread_sigmask(SIG_BLOCK, NULL, &blocked);
        ck_assert(sigismember(&blocked, SIGTERM)
                  && sigismember(&blocked, SIGUSR1));
        __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
        sem_wait(&let_go);
        if (says) {
            return says;
        }
    }
    __atomic_add_fetch(&given, 1, __ATOMIC_RELAXED);
    *found = infos;
    return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
    ck_assert_ptr_nonnull(found);
    __atomic_sub_fetch(&given, 1, __ATOMIC_RELAXED);
}

static int kept;                /* flags of a library that is not unloaded */

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags)
{
    kept = flags;
    return __real_dlopen(path, flags);
}

static struct sockaddr_storage addresses[5];
static socklen_t lengths[5];

/* Look HOST up within TIME microseconds. */
static const char *find(const char *host, apr_int64_t time)
{
    const char *problem = crm_name_find(addresses, lengths, 5, host, port,
                                        crm_time_monotonic() + time);
    sigset_t blocked;

    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    ck_assert(!sigismember(&blocked, SIGTERM));
    ck_assert_int_eq(threads, 0);
    return problem;
}

/* The three addresses are there. */
static void check_found(void)
{
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in address;

        memcpy(&address, &addresses[i], sizeof(address));
        ck_assert_uint_eq(lengths[i], sizeof(address));
        ck_assert_int_eq(address.sin_port, i);
    }
    ck_assert_uint_eq(lengths[3] + lengths[4], 0);
}

static void setup(void)
{
    asked = says = given = threads = no_threads = 0;
    set_passed(0);
    port = "80";
    sem_init(&let_go, 0, 0);
    for (int i = 0; i < 3; i++) {
        answers[i].sin_family = AF_INET;
        answers[i].sin_port = (in_port_t)i;
        infos[i].ai_addr = (struct sockaddr *)&answers[i];
        infos[i].ai_addrlen = sizeof(answers[i]);
        infos[i].ai_next = i < 2 ? &infos[i + 1] : NULL;
    }
}

START_TEST(an_address_is_not_asked_for)
{
    ck_assert_ptr_null(find("192.0.2.1", 0));
    check_found();
    ck_assert_int_eq(asked, 0);
    ck_assert_int_eq(given, 0);
}
END_TEST

START_TEST(each_question_is_a_new_one)
{
    static const struct { int says; int fails; } cases[] = {
        {0, 0}, {EAI_NONAME, 1}, {EAI_AGAIN, 1}, {0, 0}
    };

    for (int i = 0; i < 4; i++) {
        const char *problem;

        says = cases[i].says;
        sem_post(&let_go);
        problem = find("a.test", LONG);
        ck_assert_int_eq(asked, i + 1);
        if (cases[i].fails) {
            ck_assert_str_eq(problem, gai_strerror(says));
            ck_assert_uint_eq(lengths[0], 0);
        }
        else {
            ck_assert_ptr_null(problem);
            check_found();
        }
        ck_assert_int_eq(given, 0);
    }
    /* httpd unloads its modules while a thread may still wait */
    ck_assert(kept & RTLD_NODELETE);
}
END_TEST

START_TEST(a_silent_service_is_not_waited_for)
{
    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    ck_assert_uint_eq(lengths[0], 0);
    /* another name is another question */
    sem_post(&let_go);
    sem_post(&let_go);
    ck_assert_ptr_null(find("b.test", LONG));
    /* what was late is there for who asks again */
    ck_assert_ptr_null(find("a.test", LONG));
    check_found();
    ck_assert_int_eq(asked, 2);
    sem_post(&let_go);
    ck_assert_ptr_null(find("a.test", LONG));
    ck_assert_int_eq(asked, 3);
    ck_assert_int_eq(given, 0);
}
END_TEST

START_TEST(another_port_is_another_question)
{
    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    port = "81";
    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    sem_post(&let_go);
    sem_post(&let_go);
    ck_assert_ptr_null(find("a.test", LONG));
    port = "80";
    ck_assert_ptr_null(find("a.test", LONG));
    ck_assert_int_eq(asked, 2);
    ck_assert_int_eq(given, 0);
}
END_TEST

/* The resolver asks silent servers for as long as it is set to. */
START_TEST(that_it_has_given_up_is_no_answer)
{
    says = EAI_AGAIN;
    ck_assert_ptr_eq(find("a.test", 1000000 + SHORT), crm_name_late);
    sem_post(&let_go);
    ck_assert_ptr_eq(find("a.test", LONG), crm_name_late);
    ck_assert_int_eq(asked, 1);
}
END_TEST

/* "No such host" after a long time is one. */
START_TEST(what_it_says_late_is_an_answer)
{
    says = EAI_NONAME;
    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    set_passed(1500000);
    sem_post(&let_go);
    ck_assert_str_eq(find("a.test", LONG), gai_strerror(EAI_NONAME));
    ck_assert_int_eq(asked, 1);
}
END_TEST

/* Ask for "a.test", and let the answer come when nobody waits for it any more. */
static void answer_late(void)
{
    set_passed(0);              /* waits take that much longer */
    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    told = 0;
    sem_post(&let_go);
    while (!__atomic_load_n(&told, __ATOMIC_RELAXED)) {
        poll(NULL, 0, 1);
    }
}

START_TEST(a_late_answer_is_kept_for_seconds)
{
    answer_late();
    set_passed(4000000);
    ck_assert_ptr_null(find("a.test", LONG));
    ck_assert_int_eq(asked, 1);
    answer_late();
    set_passed(10000000);
    sem_post(&let_go);
    ck_assert_ptr_null(find("a.test", LONG));
    ck_assert_int_eq(asked, 3);
    ck_assert_int_eq(given, 0);
    answer_late();
    set_passed(10000000);
    sem_post(&let_go);
    ck_assert_ptr_null(find("b.test", LONG));
    ck_assert_int_eq(given, 0);     /* whatever else is asked for */
}
END_TEST

START_TEST(without_a_thread_nobody_waits)
{
    no_threads = 1;
    ck_assert_str_eq(find("a.test", LONG), "no thread for the name service");
    ck_assert_uint_eq(lengths[0], 0);
    no_threads = 0;
    sem_post(&let_go);
    ck_assert_ptr_null(find("a.test", LONG));
    ck_assert_int_eq(asked, 1);
}
END_TEST

static void *find_one(void *problem)
{
    struct sockaddr_storage address;
    socklen_t length;

    *(const char **)problem = crm_name_find(&address, &length, 1, "a.test",
                                            "80", crm_time_monotonic() + LONG);
    ck_assert_uint_eq(length, sizeof(struct sockaddr_in));
    return NULL;
}

START_TEST(threads_share_a_question)
{
    enum { THREADS = 8 };
    pthread_t finders[THREADS];
    const char *problems[THREADS];

    ck_assert_ptr_eq(find("a.test", SHORT), crm_name_late);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&finders[i], NULL, find_one,
                                        &problems[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        sem_post(&let_go);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(finders[i], NULL);
        ck_assert_ptr_null(problems[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("name");
    TCase *tcase = tcase_create("name");

    crm_check_pool();
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, an_address_is_not_asked_for);
    tcase_add_test(tcase, each_question_is_a_new_one);
    tcase_add_test(tcase, a_silent_service_is_not_waited_for);
    tcase_add_test(tcase, another_port_is_another_question);
    tcase_add_test(tcase, that_it_has_given_up_is_no_answer);
    tcase_add_test(tcase, what_it_says_late_is_an_answer);
    tcase_add_test(tcase, a_late_answer_is_kept_for_seconds);
    tcase_add_test(tcase, without_a_thread_nobody_waits);
    tcase_add_test(tcase, threads_share_a_question);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
