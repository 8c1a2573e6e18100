/* SPDX-License-Identifier: Apache-2.0 */
/* crm_thread.c: threads that nobody waits for */
#include "crm_thread.h"

#include <pthread.h>
#include <signal.h>

int crm_thread_start(void *(*main)(void *data), void *data)
{
    sigset_t all, before;
    pthread_t thread;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, NULL, main, data);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) {
        pthread_detach(thread);
    }
    return !failed;
}
