/* SPDX-License-Identifier: Apache-2.0 */
/* fold_lines.c: writes each line of its input folded, for t/08-fold.t */
#include <stdio.h>
#include <stdlib.h>

#include "apr_general.h"

#include "crm_text.h"

int main(void)
{
    apr_pool_t *pool;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    apr_initialize();
    atexit(apr_terminate);
    apr_pool_create(&pool, NULL);
    while ((len = getline(&line, &size, stdin)) > 0) {
        line[len - 1] = '\0';
        puts(crm_text_fold(line, pool));
        apr_pool_clear(pool);
    }
    free(line);
    return EXIT_SUCCESS;
}
