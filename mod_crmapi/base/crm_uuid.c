/* SPDX-License-Identifier: Apache-2.0 */
/* crm_uuid.c: making UUIDs of version 7 (RFC 9562), parsing any UUID */
#include "crm_uuid.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/rand.h>

#include "apr_escape.h"

/* The milliseconds and 12-bit counter of the last id of this process, and a
 * reserve of random bytes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_ms;
static unsigned int counter;
static unsigned char reserve[32 * 16];
static size_t reserve_left;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* In a child of fork(): make other ids than the parent's. Another thread of the
 * parent may have held LOCK. */
static void forget(void)
{
    pthread_mutex_init(&lock, NULL);
    last_ms = 0;
    reserve_left = 0;
}

static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, forget)) {
        abort();
    }
}

/* Take 16 bytes from the reserve. One call of RAND_bytes() fills it for many
 * ids, because the call costs more than the bytes. The caller holds LOCK. */
static void take_random(unsigned char bytes[16])
{
    if (!reserve_left) {
        if (RAND_bytes(reserve, sizeof(reserve)) != 1) {
            abort();
        }
        reserve_left = sizeof(reserve);
    }
    reserve_left -= 16;
    memcpy(bytes, reserve + reserve_left, 16);
}

/* Set *MS_P and *COUNTER_P to the next pair, greater than all before, and BYTES
 * to random bytes. In each millisecond the counter starts at a random number in
 * its lower half. */
static void next_pair(uint64_t *ms_p, unsigned int *counter_p,
                      unsigned char bytes[16])
{
    struct timespec now;
    unsigned int start;
    uint64_t ms;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    take_random(bytes);
    start = (unsigned int)(bytes[0] << 8 | bytes[1]) & 0x7ff;
    if (ms > last_ms) {
        last_ms = ms;
        counter = start;
    }
    else if (++counter > 0xfff) {
        last_ms++;
        counter = start;
    }
    *ms_p = last_ms;
    *counter_p = counter;
    pthread_mutex_unlock(&lock);
}

void crm_uuid_v7(char out[CRM_UUID_LEN + 1])
{
    unsigned char bytes[CRM_UUID_BYTES];
    unsigned int count;
    uint64_t ms;

    next_pair(&ms, &count, bytes);
    for (int i = 0; i < 6; i++) {
        bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    }
    bytes[6] = (unsigned char)(0x70 | count >> 8);
    bytes[7] = (unsigned char)count;
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
    crm_uuid_unpack(out, bytes);
}

void crm_uuid_unpack(char out[CRM_UUID_LEN + 1],
                     const unsigned char bytes[CRM_UUID_BYTES])
{
    static const char hex[] = "0123456789abcdef";

    for (int i = 0; i < CRM_UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *out++ = '-';
        }
        *out++ = hex[bytes[i] >> 4];
        *out++ = hex[bytes[i] & 15];
    }
    *out = '\0';
}

/* Hexadecimal digits in lower case; 0 for other characters. */
static const char hex_digit[256] = {
    ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4',
    ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9',
    ['a'] = 'a', ['b'] = 'b', ['c'] = 'c', ['d'] = 'd', ['e'] = 'e',
    ['f'] = 'f',
    ['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd', ['E'] = 'e',
    ['F'] = 'f',
};

/* Copy the COUNT digits at TEXT to OUT in lower case. Return 0 if one of them
 * is no digit. */
static inline int copy_digits(char *out, const char *text, int count)
{
    for (int i = 0; i < count; i++) {
        out[i] = hex_digit[(unsigned char)text[i]];
        if (!out[i]) {
            return 0;
        }
    }
    return 1;
}

int crm_uuid_parse(char out[CRM_UUID_LEN + 1], const char *text,
                   apr_size_t len)
{
    if (len != CRM_UUID_LEN || text[8] != '-' || text[13] != '-'
        || text[18] != '-' || text[23] != '-') {
        return 0;
    }
    out[8] = out[13] = out[18] = out[23] = '-';
    out[CRM_UUID_LEN] = '\0';
    return copy_digits(out, text, 8) && copy_digits(out + 9, text + 9, 4)
           && copy_digits(out + 14, text + 14, 4)
           && copy_digits(out + 19, text + 19, 4)
           && copy_digits(out + 24, text + 24, 12);
}

int crm_uuid_pack(unsigned char bytes[CRM_UUID_BYTES], const char *text)
{
    char id[CRM_UUID_LEN + 1], digits[2 * CRM_UUID_BYTES], *out = digits;

    if (!crm_uuid_parse(id, text, strlen(text))) {
        return 0;
    }
    for (const char *c = id; *c; c++) {
        if (*c != '-') {
            *out++ = *c;
        }
    }
    return apr_unescape_hex(bytes, digits, sizeof(digits), 0, NULL)
           == APR_SUCCESS;
}
