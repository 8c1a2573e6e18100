/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_sample.c: the sample configuration and the manual page's settings */
#include "crmapid_sample.h"

#include <string.h>

#include "crmapid_setting.h"

/* Add WORDS to BUF in lines of at most 77 characters that begin with
 * PREFIX. */
static void wrap(crm_buf_t *buf, const char *prefix, const char *words)
{
    size_t column = 0;

    while (*words) {
        size_t len = strcspn(words, " ");

        if (column && column + 1 + len > 77) {
            crm_buf_putc(buf, '\n');
            column = 0;
        }
        if (!column) {
            crm_buf_puts(buf, prefix);
            column = strlen(prefix);
        }
        else {
            crm_buf_putc(buf, ' ');
            column++;
        }
        crm_buf_add(buf, words, len);
        column += len;
        words += len + strspn(words + len, " ");
    }
    crm_buf_putc(buf, '\n');
}

void crmd_sample_write(crm_buf_t *buf)
{
    crm_buf_puts(buf, "# Configuration of crmapid: all settings with their"
                 " defaults.\n# Lines are: name = value\n");
    for (size_t i = 0; i < crmd_settings_count; i++) {
        const crmd_setting_t *setting = &crmd_settings[i];

        if (!setting->name) {
            crm_buf_printf(buf, "\n# ---- %s ----\n", setting->help);
            continue;
        }
        crm_buf_putc(buf, '\n');
        wrap(buf, "# ", setting->help);
        if (setting->choices) {
            crm_buf_printf(buf, "# One of %s.\n", setting->choices);
        }
        crm_buf_printf(buf, "#%s =%s%s\n", setting->name,
                       *setting->initial ? " " : "", setting->initial);
    }
}

/* Add WORDS to BUF, escaped for troff. */
static void troff(crm_buf_t *buf, const char *words)
{
    for (; *words; words++) {
        if (*words == '\\' || *words == '-') {
            crm_buf_putc(buf, '\\');
        }
        crm_buf_putc(buf, *words);
    }
}

void crmd_sample_write_manual(crm_buf_t *buf)
{
    for (size_t i = 0; i < crmd_settings_count; i++) {
        const crmd_setting_t *setting = &crmd_settings[i];

        if (!setting->name) {
            crm_buf_printf(buf, ".SS %s\n", setting->help);
            continue;
        }
        crm_buf_printf(buf, ".TP\n.BR %s \" (", setting->name);
        troff(buf, setting->choices ? setting->choices : setting->type->what);
        crm_buf_puts(buf, *setting->initial ? "; default " : "");
        troff(buf, setting->initial);
        crm_buf_puts(buf, ")\"\n");
        troff(buf, setting->help);
        crm_buf_putc(buf, '\n');
    }
}
