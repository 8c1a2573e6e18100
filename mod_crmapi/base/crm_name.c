/* SPDX-License-Identifier: Apache-2.0 */
/* crm_name.c: the addresses of a host, from a name service that may be silent */
#include "crm_name.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apr_time.h"

#include "crm_cond.h"
#include "crm_thread.h"
#include "crm_time.h"

/* How long an answer that was late is kept for who asks again. */
#define KEPT apr_time_from_sec(5)

/* Who gives up after so long has asked servers that are silent. */
#define SILENCE apr_time_from_sec(1)

const char crm_name_late[] = CRM_NAME_LATE;

/* What the name service was asked. It is on the list until its answer was taken. */
typedef struct question_t {
    struct question_t *next;
    char *host, *port;
    int waiting;                /* threads that wait for the answer */
    apr_int64_t asked;          /* when */
    apr_int64_t answered;       /* when; 0: not yet */
    int error;                  /* getaddrinfo()'s result */
    struct addrinfo *found;
} question_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t answered;
static question_t *questions;

static int look_up(struct addrinfo **found_p, const char *host,
                   const char *port, int flags)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_flags = flags,
                                   .ai_socktype = SOCK_STREAM};

    *found_p = NULL;
    return getaddrinfo(host, port, &hints, found_p);
}

/* A thread: ask the name service QUESTION. */
static void *ask(void *question)
{
    question_t *q = question;
    struct addrinfo *found;
    int error = look_up(&found, q->host, q->port, 0);

    pthread_mutex_lock(&lock);
    q->error = error;
    q->found = found;
    q->answered = crm_time_monotonic();
    pthread_cond_broadcast(&answered);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The threads may go on while the process ends, when httpd unloads its modules. */
static void prepare(void)
{
    Dl_info info;

    crm_cond_init(&answered);
    if (dladdr(crm_name_late, &info)) {
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

static void free_question(question_t *question)
{
    if (question->found) {
        freeaddrinfo(question->found);
    }
    free(question->host);
    free(question->port);
    free(question);
}

/* Take QUESTION from the list. */
static void forget(question_t *question)
{
    question_t **link = &questions;

    while (*link != question) {
        link = &(*link)->next;
    }
    *link = question->next;
    free_question(question);
}

static int is_same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Return the question for HOST and PORT, NULL if there is none. What was answered long
 * ago is forgotten. */
static question_t *find_question(const char *host, const char *port)
{
    question_t *same = NULL, *next;

    for (question_t *q = questions; q; q = next) {
        next = q->next;
        if (q->answered && !q->waiting
            && crm_time_monotonic() - q->answered > KEPT) {
            forget(q);
        }
        else if (is_same(q->host, host) && is_same(q->port, port)) {
            same = q;
        }
    }
    return same;
}

/* Ask for HOST and PORT. Return the question, NULL if that cannot be. */
static question_t *begin(const char *host, const char *port)
{
    question_t *q = calloc(1, sizeof(*q));

    if (!q) {
        return NULL;
    }
    q->asked = crm_time_monotonic();
    q->host = strdup(host);
    q->port = port ? strdup(port) : NULL;
    if (!q->host || (port && !q->port) || !crm_thread_start(ask, q)) {
        free_question(q);
        return NULL;
    }
    q->next = questions;
    questions = q;
    return q;
}

/* Set ADDRESSES and LENGTHS, which have room for MOST, to those of FOUND. */
static void copy(struct sockaddr_storage *addresses, socklen_t *lengths,
                 int most, const struct addrinfo *found)
{
    for (int i = 0; found && i < most; i++, found = found->ai_next) {
        memcpy(&addresses[i], found->ai_addr, found->ai_addrlen);
        lengths[i] = found->ai_addrlen;
    }
}

/* Wait up to UNTIL for the answer to QUESTION. Return NULL or why there is none. */
static const char *await(question_t *question, apr_int64_t until)
{
    apr_int64_t left;

    question->waiting++;
    while (!question->answered
           && (left = until - crm_time_monotonic()) > 0) {
        crm_cond_wait(&answered, &lock, left);
    }
    question->waiting--;
    if (!question->answered) {
        return crm_name_late;
    }
    if (question->error == EAI_AGAIN
        && question->answered - question->asked >= SILENCE) {
        return crm_name_late;
    }
    return question->error ? gai_strerror(question->error) : NULL;
}

const char *crm_name_find(struct sockaddr_storage *addresses,
                          socklen_t *lengths, int most, const char *host,
                          const char *port, apr_int64_t until)
{
    struct addrinfo *found;
    question_t *q;
    const char *problem = "no thread for the name service";

    memset(lengths, 0, (size_t)most * sizeof(*lengths));
    if (!look_up(&found, host, port, AI_NUMERICHOST)) {
        copy(addresses, lengths, most, found);
        freeaddrinfo(found);
        return NULL;
    }
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    q = find_question(host, port);
    q = q ? q : begin(host, port);
    if (q) {
        problem = await(q, until);
        copy(addresses, lengths, most, q->found);
        if (q->answered && !q->waiting) {
            forget(q);
        }
    }
    pthread_mutex_unlock(&lock);
    return problem;
}
