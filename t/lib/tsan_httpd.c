/* SPDX-License-Identifier: Apache-2.0 */
/* tsan_httpd.c: for LD_PRELOAD: httpd hands the pool of a connection that has ended
   to the thread of another one by a list without a lock, which the sanitizer for
   threads does not see, because httpd and APR are not built with it. */
void __tsan_acquire(void *address);
void __tsan_release(void *address);

void *apr_atomic_casptr(volatile void **at, void *new, const void *old);

void *apr_atomic_casptr(volatile void **at, void *new, const void *old)
{
    volatile void *found = (volatile void *)old;

    __tsan_release((void *)at);
    __atomic_compare_exchange_n(at, &found, new, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    __tsan_acquire((void *)at);
    return (void *)found;
}
