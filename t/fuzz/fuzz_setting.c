/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_setting.c: the worker's configuration file */
/* libFuzzer: -max_len=8192 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apr_general.h"

#include "crmapid_config.h"
#include "crmapid_setting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int is)
{
    if (!is) {
        abort();
    }
}

/* No text is missing, and no number is out of its range. */
static void judge(const crmd_config_t *config)
{
    for (size_t i = 0; i < crmd_settings_count; i++) {
        const crmd_setting_t *setting = &crmd_settings[i];
        const void *at = (const char *)config + setting->offset;

        if (!setting->name || !setting->type) {
            continue;
        }
        if (!strcmp(setting->type->what, "number")) {
            must(*(const int *)at >= setting->min
                 && *(const int *)at <= setting->max);
        }
        else if (!strcmp(setting->type->what, "text")) {
            must(*(const char *const *)at != NULL);
        }
    }
    must(config->threads > 0 && config->database && config->maildir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *root;
    crmd_config_t *config;
    crm_error_t *error;
    apr_pool_t *pool;
    char path[64];
    int fd = memfd_create("crmapid.conf", MFD_CLOEXEC);

    if (!root) {
        apr_initialize();
        apr_pool_create(&root, NULL);
    }
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    apr_pool_create(&pool, root);
    error = crmd_config_read(&config, path, pool);
    if (error) {
        must(error->message && *error->message);
    }
    else {
        judge(config);
    }
    close(fd);
    apr_pool_destroy(pool);
    return 0;
}
