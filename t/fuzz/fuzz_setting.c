/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_setting.c: the worker's configuration file */
/* libFuzzer: -max_len=8192 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#include "crmapid_config.h"
#include "crmapid_setting.h"

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
    apr_pool_t *pool = fuzz_pool(NULL);
    crmd_config_t *config;
    crm_error_t *error;
    char path[64];
    int fd = memfd_create("crmapid.conf", MFD_CLOEXEC);

    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
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
