/* SPDX-License-Identifier: Apache-2.0 */
/* crm_zone.c: names of time zones */
#include "crm_zone.h"

#include <stdio.h>
#include <string.h>

#include <unicode/ucal.h>

#include "crm_array.h"

/* IANA's names of three letters. ICU has further ones, such as PST, that
 * PostgreSQL does not know or takes for another zone. */
static const char *const short_names[] = {
    "CET", "EET", "EST", "GMT", "HST", "MET", "MST", "PRC", "ROC", "ROK", "UCT",
    "UTC", "WET",
};

/* Names that IANA has withdrawn: ICU knows them, PostgreSQL does not. */
static const char *const withdrawn[] = {
    "Canada/East-Saskatchewan", "US/Pacific-New",
};

#define NAME_MAX_CHARS 100
#define FOLDER "/usr/share/zoneinfo/"

/* Return whether each part of NAME begins with a capital letter. The parts of IANA's
 * names do. The system has further files: localtime, posixrules, and those of right/,
 * which count leap seconds. A path may have empty parts, a name may not. */
static int is_capital(const char *name)
{
    while (*name >= 'A' && *name <= 'Z') {
        name = strchr(name, '/');
        if (!name) {
            return 1;
        }
        name++;
    }
    return 0;
}

/* Return whether the system has the zone NAME, whose characters are safe in a
 * path: a zone of this year is there before ICU knows it. */
static int is_file(const char *name)
{
    char path[sizeof(FOLDER) + NAME_MAX_CHARS], magic[4];
    FILE *file;
    int is;

    snprintf(path, sizeof(path), FOLDER "%s", name);
    file = fopen(path, "r");
    is = file && fread(magic, 1, 4, file) == 4 && !memcmp(magic, "TZif", 4);
    if (file) {
        fclose(file);
    }
    return is;
}

/* Return whether ICU knows the zone NAME, LEN ASCII characters. */
static int is_in_icu(const char *name, size_t len)
{
    UChar wide[NAME_MAX_CHARS + 1], canonical[NAME_MAX_CHARS + 1];
    UErrorCode status = U_ZERO_ERROR;
    UBool is_system = 0;

    for (size_t i = 0; i <= len; i++) {
        wide[i] = (UChar)name[i];
    }
    ucal_getCanonicalTimeZoneID(wide, (int32_t)len, canonical,
                                (int32_t)CRM_NELTS(canonical), &is_system,
                                &status);
    return !U_FAILURE(status) && is_system && strcmp(name, "Etc/Unknown")
           && strncmp(name, "SystemV/", 8) && !CRM_IS_ONE_OF(name, withdrawn);
}

int crm_zone_known(const char *name)
{
    size_t len = strlen(name);

    if (!len || len > NAME_MAX_CHARS || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVW"
            "XYZabcdefghijklmnopqrstuvwxyz0123456789_+/-") != len) {
        return 0;
    }
    if (len == 3 && !CRM_IS_ONE_OF(name, short_names)) {
        return 0;
    }
    return is_capital(name) && (is_in_icu(name, len) || is_file(name));
}
