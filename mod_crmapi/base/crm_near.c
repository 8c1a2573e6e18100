/* SPDX-License-Identifier: Apache-2.0 */
/* crm_near.c: names that were mistyped */
#include "crm_near.h"

#include <ctype.h>
#include <string.h>

#include "apr_strings.h"

#define LEN_MAX 32
#define LONG_WORD 8
#define PART_MIN 3              /* letters of what says a part of a name */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Return whether the letters A and B are the same. */
static int same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Return the distance of A and B, at most LEN_MAX bytes each: the least number
 * of letters left out, added, replaced or exchanged (Damerau). */
static int distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int cost[LEN_MAX + 1][LEN_MAX + 1];

    for (size_t i = 0; i <= a_len; i++) {
        for (size_t k = 0; k <= b_len; k++) {
            if (!i || !k) {
                cost[i][k] = (int)(i + k);
                continue;
            }
            cost[i][k] = least(least(cost[i - 1][k], cost[i][k - 1]) + 1,
                               cost[i - 1][k - 1]
                               + !same(a[i - 1], b[k - 1]));
            if (i > 1 && k > 1 && same(a[i - 1], b[k - 2])
                && same(a[i - 2], b[k - 1])) {
                cost[i][k] = least(cost[i][k], cost[i - 2][k - 2] + 1);
            }
        }
    }
    return cost[a_len][b_len];
}

int crm_near(const char *word, const char *tried)
{
    size_t word_len = strlen(word), tried_len = strlen(tried);
    int most = word_len >= LONG_WORD && tried_len >= LONG_WORD ? 2 : 1;

    return word_len <= LEN_MAX && tried_len <= LEN_MAX
           && word_len <= tried_len + (size_t)most
           && tried_len <= word_len + (size_t)most
           && distance(word, word_len, tried, tried_len) <= most;
}

/* Return whether the words at WORD begin with those of TRIED, whatever is between
 * words. */
static int begins(const char *word, const char *tried)
{
    while (*tried) {
        word += *word == '_';
        tried += *tried == '_';
        if (!*tried || !same(*word++, *tried++)) {
            return 0;
        }
    }
    return !*word || *word == '_';
}

int crm_near_part(const char *word, const char *tried)
{
    if (strlen(tried) < PART_MIN) {
        return 0;
    }
    while (word && !begins(word, tried)) {
        word = strchr(word, '_');
        word = word ? word + 1 : NULL;
    }
    return word != NULL;
}

const char *crm_near_of(const char *const *names, const char *tried,
                        crm_near_fn *is_near)
{
    while (names && *names && !is_near(*names, tried)) {
        names++;
    }
    return names ? *names : NULL;
}

const char *crm_near_ask(const char *rule, const char *near, apr_pool_t *pool)
{
    return near ? apr_pstrcat(pool, rule, "; did you mean ", near, "?", NULL)
           : rule;
}
