/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_directive.h: the directives, a row each */
#ifndef MOD_CRMAPI_DIRECTIVE_H
#define MOD_CRMAPI_DIRECTIVE_H

#include "mod_crmapi_config.h"

/* The kind of a member of crmapi_config_t. A number or time that is not set is
 * -1, a pointer NULL. */
typedef enum crmapi_kind_t {
    CRMAPI_NUMBER,              /* int */
    CRMAPI_TIME,                /* apr_interval_time_t */
    CRMAPI_POINTER
} crmapi_kind_t;

/* What a directive sets: cmd_data of its row in crmapi_commands. */
typedef struct crmapi_setting_t {
    crmapi_kind_t kind;
    size_t offset;              /* of the member in crmapi_config_t */
    union {
        int number;
        apr_interval_time_t time;
        const void *pointer;
    } initial;                  /* the member without the directive */
    int min, max;               /* of a number; of a time, in seconds */
    int global;                 /* not in a vhost */
    const char *const *words;   /* values of set_word() in the order of their
                                   numbers, and NULL */
    const char *path;           /* of set_page(): what On means */
} crmapi_setting_t;

/* Return the member of CONFIG that SETTING is about. */
static inline void *crmapi_setting_at(const crmapi_setting_t *setting,
                                      crmapi_config_t *config)
{
    return (char *)config + setting->offset;
}

/* The directives. */
extern const command_rec crmapi_commands[];

/* Return NULL, or an error if VALUE of the directive NAME is not the id or slug
 * of a workspace. */
const char *crmapi_check_workspace(const cmd_parms *cmd, const char *name,
                                   const char *value);

#endif /* MOD_CRMAPI_DIRECTIVE_H */
