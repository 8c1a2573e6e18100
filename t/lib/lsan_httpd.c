/* SPDX-License-Identifier: Apache-2.0 */
/* lsan_httpd.c: for LD_PRELOAD: what httpd and its modules leave behind is no leak.
   LeakSanitizer could suppress it by name, but to know the names it reads the
   debugging symbols of all libraries, in each process that ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

void __lsan_disable(void);
void __lsan_enable(void);

/* Define the function NAME of another library, whose memory is not looked at. */
#define IGNORED(type, name, parameters, arguments)                             \
    type name parameters;                                                      \
    type name parameters                                                       \
    {                                                                          \
        type(*real) parameters = dlsym(RTLD_NEXT, #name);                      \
        type result;                                                           \
                                                                               \
        __lsan_disable();                                                      \
        result = real arguments;                                               \
        __lsan_enable();                                                       \
        return result;                                                         \
    }

/* mod_crmapi calls none of these. */
IGNORED(void *, pcre2_compile_8,
        (const void *pattern, size_t length, uint32_t options, int *error,
         size_t *offset, void *context),
        (pattern, length, options, error, offset, context))
IGNORED(int, apr_allocator_create, (void **allocator), (allocator))
/* mod_deflate, when a body is not read to its end */
IGNORED(int, inflateInit2_,
        (void *stream, int bits, const char *version, int size),
        (stream, bits, version, size))
