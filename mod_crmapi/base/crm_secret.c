/* SPDX-License-Identifier: Apache-2.0 */
/* crm_secret.c: passwords and tokens in files */
#include "crm_secret.h"

#include <string.h>

#include <openssl/crypto.h>

#include "apr_file_io.h"
#include "apr_strings.h"

#include "crm_text.h"

#define STRINGIFY(x) #x
#define NUMBER(x) STRINGIFY(x)

/* Read the first line of FILE into LINE, of SIZE bytes. Return NULL, or the
 * reason why it cannot be used. */
static const char *read_line(char *line, int size, apr_file_t *file,
                             apr_pool_t *pool)
{
    apr_finfo_t info;
    apr_status_t status = apr_file_info_get(&info, APR_FINFO_PROT, file);

    if (!status && info.protection & (APR_FPROT_WREAD | APR_FPROT_WWRITE
                                      | APR_FPROT_WEXECUTE)) {
        return "it must not be accessible to other users (chmod o= )";
    }
    if (!status) {
        status = apr_file_gets(line, size, file);
    }
    return status && status != APR_EOF ? apr_psprintf(pool, "%pm", &status)
                                       : NULL;
}

const char *crm_secret_read(const char **secret_p, const char *path,
                            apr_pool_t *pool)
{
    /* with white space, the end of the line and a NUL */
    char line[2 * CRM_SECRET_MAX] = "";
    apr_file_t *file;
    apr_status_t status = apr_file_open(&file, path, APR_FOPEN_READ,
                                        APR_FPROT_OS_DEFAULT, pool);
    const char *reason;

    if (status) {
        return apr_psprintf(pool, "%pm", &status);
    }
    reason = read_line(line, sizeof(line), file, pool);
    apr_file_close(file);
    if (!reason) {
        const char *secret = line;
        apr_size_t len = strlen(line);

        crm_text_trim(&secret, &len);
        if (!len || len > CRM_SECRET_MAX) {
            reason = "its first line must have 1 to " NUMBER(CRM_SECRET_MAX)
                     " bytes";
        }
        else {
            *secret_p = apr_pstrmemdup(pool, secret, len);
        }
    }
    OPENSSL_cleanse(line, sizeof(line));
    return reason;
}
