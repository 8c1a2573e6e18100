/* SPDX-License-Identifier: Apache-2.0 */
/* crm_media.c: the media types of bodies (RFC 9110, 8.3.1) */
#include "crm_media.h"

#include <string.h>
#include <strings.h>

int crm_media_is(const char *type, const char *name)
{
    size_t len = strlen(name);

    return type && !strncasecmp(type, name, len) && strchr("; \t", type[len]);
}

int crm_media_is_utf8(const char *type, const char *name)
{
    if (!crm_media_is(type, name)) {
        return 0;
    }
    for (type += strlen(name); *type; type += strcspn(type, ";")) {
        type += strspn(type, "; \t");
        if (!strncasecmp(type, "charset=", 8)) {
            const char *value = type + 8 + (type[8] == '"');

            if (strncasecmp(value, "utf-8", 5)
                || !strchr("\"; \t", value[5])) {
                return 0;
            }
        }
    }
    return 1;
}

int crm_media_is_json(const char *type)
{
    return crm_media_is_utf8(type, "application/json");
}
