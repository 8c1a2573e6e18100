/* SPDX-License-Identifier: Apache-2.0 */
/* text_lines.c: writes what a function of base/ makes of each line of its input,
 * for 05-fold.t and 05-addresses.t */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"

#include "crm_email.h"
#include "crm_phone.h"
#include "crm_text.h"

typedef struct function_t {
    const char *name;
    const char *(*call)(const char *line, apr_pool_t *pool);
} function_t;

static const function_t functions[] = {
    {"fold", crm_text_fold},
    {"email_canonical", crm_email_canonical},
    {"email_key", crm_email_key},
    {"phone_plain", crm_phone_plain},
    {"phone_e164", crm_phone_e164},
    {"phone_key", crm_phone_key},
    {NULL, NULL}
};

int main(int argc, char **argv)
{
    const function_t *function = functions;
    apr_pool_t *pool;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    apr_initialize();
    atexit(apr_terminate);
    apr_pool_create(&pool, NULL);
    while (argc > 1 && function->name && strcmp(function->name, argv[1])) {
        function++;
    }
    if (argc < 2 || !function->name) {
        fputs("usage: text_lines FUNCTION\n", stderr);
        return EXIT_FAILURE;
    }
    while ((len = getline(&line, &size, stdin)) > 0) {
        const char *made;

        line[len - 1] = '\0';
        made = function->call(line, pool);
        puts(made ? made : "(null)");
        apr_pool_clear(pool);
    }
    free(line);
    return EXIT_SUCCESS;
}
