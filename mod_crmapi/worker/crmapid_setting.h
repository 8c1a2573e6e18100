/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_setting.h: one table for parsing, defaults, the sample configuration
 * and the manual page */
#ifndef CRMAPID_SETTING_H
#define CRMAPID_SETTING_H

#include <stddef.h>

#include "apr_pools.h"

typedef struct crmd_setting_t crmd_setting_t;

/* The type of a setting. WHAT is its name in the manual. */
typedef struct crmd_setting_type_t {
    const char *what;
    /* Parse TEXT and store the value at TARGET, copied to POOL. Return NULL, or
     * the rule that TEXT breaks. */
    const char *(*parse)(void *target, const crmd_setting_t *setting,
                         const char *text, apr_pool_t *pool);
} crmd_setting_type_t;

struct crmd_setting_t {
    const char *name;           /* NULL: HELP is a heading */
    const crmd_setting_type_t *type;
    size_t offset;              /* in crmd_config_t */
    const char *initial;        /* default, as it is written in a file */
    apr_int64_t min, max;       /* of a number, or of a duration in
                                   milliseconds */
    const char *choices;        /* of a word: "a|b|c" */
    const char *help;
};

/* All settings, in the order of the manual, and their number. */
extern const crmd_setting_t crmd_settings[];
extern const size_t crmd_settings_count;

/* Return the setting NAME, or the one that had this name before, or NULL. */
const crmd_setting_t *crmd_setting_find(const char *name);

#endif /* CRMAPID_SETTING_H */
