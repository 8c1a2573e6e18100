/* SPDX-License-Identifier: Apache-2.0 */
/* crm_bell.c: waking a thread that sleeps in poll() */
#include "crm_bell.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* A bell. Those of threads that have ended are in a list. */
typedef struct bell_t {
    int fd;
    struct bell_t *next;
} bell_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bell_t *unused;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/* The end of a thread: its bell, DATA, is for another. */
static void leave(void *data)
{
    bell_t *bell = data;

    pthread_mutex_lock(&lock);
    bell->next = unused;
    unused = bell;
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    if (pthread_key_create(&key, leave)) {
        abort();
    }
}

/* Return a new bell, or NULL. */
static bell_t *create(void)
{
    bell_t *bell = malloc(sizeof(*bell));

    if (bell) {
        bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    if (bell && bell->fd < 0) {
        free(bell);
        bell = NULL;
    }
    return bell;
}

/* Return the bell of a thread that has ended, or a new one, or NULL. */
static bell_t *take(void)
{
    bell_t *bell;

    pthread_mutex_lock(&lock);
    bell = unused;
    if (bell) {
        unused = bell->next;
    }
    pthread_mutex_unlock(&lock);
    return bell ? bell : create();
}

int crm_bell(void)
{
    bell_t *bell;

    pthread_once(&once, make_key);
    bell = pthread_getspecific(key);
    if (!bell) {
        bell = take();
        if (bell && pthread_setspecific(key, bell)) {
            leave(bell);
            bell = NULL;
        }
    }
    return bell ? bell->fd : -1;
}

void crm_bell_ring(int bell)
{
    int saved = errno;

    eventfd_write(bell, 1);
    errno = saved;
}

void crm_bell_clear(int bell)
{
    int saved = errno;
    eventfd_t count;

    eventfd_read(bell, &count);
    errno = saved;
}
