/* SPDX-License-Identifier: Apache-2.0 */
/* crm_block.h: texts looked at in blocks of sixteen bytes */
#ifndef CRM_BLOCK_H
#define CRM_BLOCK_H

#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CRM_BLOCK 16

/* Return which of the CRM_BLOCK bytes at TEXT a string of JSON cannot have without
 * an escape (RFC 8259, section 7): quotes, backslashes, control characters. Bit I
 * is that of the byte I. */
static inline unsigned crm_block_escapes(const char *text)
{
#ifdef __SSE2__
    const __m128i last_control = _mm_set1_epi8(0x1f);
    __m128i block = _mm_loadu_si128((const void *)text);
    __m128i marks = _mm_cmpeq_epi8(_mm_max_epu8(block, last_control),
                                   last_control);

    marks = _mm_or_si128(marks, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
    marks = _mm_or_si128(marks, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(marks);
#else
    unsigned marks = 0;

    for (unsigned i = 0; i < CRM_BLOCK; i++) {
        unsigned char c = (unsigned char)text[i];

        marks |= (unsigned)(c < 0x20 || c == '"' || c == '\\') << i;
    }
    return marks;
#endif
}

/* Return which of the CRM_BLOCK bytes at TEXT are control characters. */
static inline unsigned crm_block_controls(const char *text)
{
#ifdef __SSE2__
    const __m128i last_control = _mm_set1_epi8(0x1f);
    __m128i block = _mm_loadu_si128((const void *)text);

    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(
        _mm_max_epu8(block, last_control), last_control));
#else
    unsigned marks = 0;

    for (unsigned i = 0; i < CRM_BLOCK; i++) {
        marks |= (unsigned)((unsigned char)text[i] < 0x20) << i;
    }
    return marks;
#endif
}

/* Return which of the CRM_BLOCK bytes at TEXT are not ASCII. */
static inline unsigned crm_block_beyond_ascii(const char *text)
{
#ifdef __SSE2__
    return (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const void *)text));
#else
    unsigned marks = 0;

    for (unsigned i = 0; i < CRM_BLOCK; i++) {
        marks |= (unsigned)((unsigned char)text[i] >> 7) << i;
    }
    return marks;
#endif
}

/* Return the number of the first byte that MARKS, which is not 0, has. */
static inline size_t crm_block_first(unsigned marks)
{
    return (size_t)(unsigned)__builtin_ctz(marks);
}

/* Return the first byte from AT to END that crm_block_escapes() marks, END if there
 * is none. AT may be behind END. */
static inline const char *crm_block_plain_end(const char *at, const char *end)
{
    for (; end - at >= CRM_BLOCK; at += CRM_BLOCK) {
        unsigned marks = crm_block_escapes(at);

        if (marks) {
            return at + crm_block_first(marks);
        }
    }
    while (at < end && (unsigned char)*at >= 0x20 && *at != '"'
           && *at != '\\') {
        at++;
    }
    return at < end ? at : end;
}

#endif /* CRM_BLOCK_H */
