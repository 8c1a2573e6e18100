/* SPDX-License-Identifier: Apache-2.0 */
/* crm_array.h: the length of an array, and texts in one */
#ifndef CRM_ARRAY_H
#define CRM_ARRAY_H

#include "apr_tables.h"

/* The number of elements of ARRAY, which must be an array, not a pointer. */
#define CRM_NELTS(array) (sizeof(array) / sizeof(*(array)))

/* Return whether TEXT is one of the COUNT WORDS. */
int crm_words_have(const char *const *words, apr_size_t count,
                   const char *text);

/* Return whether TEXT is an element of WORDS, an array of texts. */
#define CRM_IS_ONE_OF(text, words) \
    crm_words_have(words, CRM_NELTS(words), text)

/* The same without case of ASCII; TEXT may be NULL, which is none of them. */
int crm_words_equal(const char *const *words, apr_size_t count,
                    const char *text);
#define CRM_EQUALS_ONE_OF(text, words) \
    crm_words_equal(words, CRM_NELTS(words), text)

/* The same of the beginning of TEXT. */
int crm_words_begin(const char *const *words, apr_size_t count,
                    const char *text);
#define CRM_BEGINS_ONE_OF(text, words) \
    crm_words_begin(words, CRM_NELTS(words), text)

/* Return whether TEXT is an element of ARRAY (of const char *). */
int crm_array_has(const apr_array_header_t *array, const char *text);

#endif /* CRM_ARRAY_H */
