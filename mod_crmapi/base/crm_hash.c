/* SPDX-License-Identifier: Apache-2.0 */
/* crm_hash.c: a hash by multiplication, like wyhash */
#include "crm_hash.h"

#include <string.h>

/* Odd constants without a pattern: digits of pi. */
#define ONE APR_UINT64_C(0x243f6a8885a308d3)
#define TWO APR_UINT64_C(0x13198a2e03707345)

/* Return the XOR of both halves of the 128-bit product of A and B. */
static inline apr_uint64_t mix(apr_uint64_t a, apr_uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide_t;
    wide_t product = (wide_t)a * b;

    return (apr_uint64_t)product ^ (apr_uint64_t)(product >> 64);
#else
    apr_uint64_t a0 = (apr_uint32_t)a, a1 = a >> 32;
    apr_uint64_t b0 = (apr_uint32_t)b, b1 = b >> 32;
    apr_uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32);
    apr_uint64_t other = a0 * b1 + (apr_uint32_t)middle;

    return ((other << 32) | (apr_uint32_t)low)
           ^ (a1 * b1 + (middle >> 32) + (other >> 32));
#endif
}

static inline apr_uint64_t load(const unsigned char *data)
{
    apr_uint64_t word;

    memcpy(&word, data, sizeof(word));
    return word;
}

apr_uint64_t crm_hash(apr_uint64_t hash, const void *data, apr_size_t len)
{
    const unsigned char *at = data;
    apr_size_t left = len;

    for (; left >= 64; left -= 64, at += 64) {
        hash = mix(hash ^ load(at), ONE ^ load(at + 8));
        hash = mix(hash ^ load(at + 16), ONE ^ load(at + 24));
        hash = mix(hash ^ load(at + 32), ONE ^ load(at + 40));
        hash = mix(hash ^ load(at + 48), ONE ^ load(at + 56));
    }
    for (; left >= 16; left -= 16, at += 16) {
        hash = mix(hash ^ load(at), ONE ^ load(at + 8));
    }
    if (left) {
        unsigned char last[16] = {0};

        memcpy(last, at, left);
        hash = mix(hash ^ load(last), ONE ^ load(last + 8));
    }
    return mix(hash ^ len, TWO);
}
