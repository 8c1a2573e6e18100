/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_maildir.c: the relay "maildir": messages as files in a maildir, for
 * trying out and for tests */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_file_io.h"
#include "apr_strings.h"

#include "crm_file.h"
#include "crmapid_mime.h"
#include "crmapid_relay.h"

/* Return an error about PATH with the text of errno, in POOL. */
static crm_error_t *fault(const char *path, apr_pool_t *pool)
{
    int number = errno;
    char text[256];

    apr_strerror(APR_FROM_OS_ERROR(number), text, sizeof(text));
    return crm_error_createf(CRM_E_UNAVAILABLE, pool, "%s: %s", path, text);
}

/* Create the folders of a maildir at ROOT, and those above it. */
static crm_error_t *make_folders(const char *root, apr_pool_t *pool)
{
    static const char *const names[] = {"/tmp", "/new", "/cur"};

    for (int i = 0; i < 3; i++) {
        const char *path = apr_pstrcat(pool, root, names[i], NULL);
        apr_status_t status = apr_dir_make_recursive(
            path, APR_UREAD | APR_UWRITE | APR_UEXECUTE, pool);

        if (status && !APR_STATUS_IS_EEXIST(status)) {
            errno = APR_TO_OS_ERROR(status);
            return fault(path, pool);
        }
    }
    return NULL;
}

/* Set *FOUND_P to whether a mail reader has moved NAME to ROOT/cur, where ":2," and
 * flags follow its name. */
static crm_error_t *look_in_cur(int *found_p, const char *root,
                                const char *name, apr_pool_t *pool)
{
    const char *folder = apr_pstrcat(pool, root, "/cur", NULL);
    apr_size_t len = strlen(name);
    apr_array_header_t *names;
    apr_status_t status = crm_file_names(&names, folder, pool);

    *found_p = 0;
    if (status) {
        errno = APR_TO_OS_ERROR(status);
        return fault(folder, pool);
    }
    for (int i = 0; i < names->nelts && !*found_p; i++) {
        const char *one = APR_ARRAY_IDX(names, i, const char *);

        *found_p = !strncmp(one, name, len) && (!one[len] || one[len] == ':');
    }
    return NULL;
}

/* Write MAIL to a new file in ROOT/tmp and set *PATH_P to its path. mkostemp()
 * gives it mode 0600. */
static crm_error_t *write_file(char **path_p, const char *root,
                               const char *name, const crmd_mail_t *mail,
                               apr_pool_t *pool)
{
    char *path = apr_pstrcat(pool, root, "/tmp/", name, ".XXXXXX", NULL);
    int fd = mkostemp(path, O_CLOEXEC);
    crm_error_t *error = NULL;

    *path_p = path;
    if (fd < 0) {
        return fault(path, pool);
    }
    if (!crm_file_write(fd, mail->text, mail->len) || fsync(fd)) {
        error = fault(path, pool);
    }
    if (close(fd) && !error) {
        error = fault(path, pool);
    }
    if (error) {
        unlink(path);
    }
    return error;
}

/* Put MAIL into ROOT/new as NAME, unless it was delivered before. link() never
 * replaces a file, even if another process creates it at the same time. */
static crm_error_t *deliver(const char *root, const char *name,
                            const crmd_mail_t *mail, apr_pool_t *pool)
{
    const char *folder = apr_pstrcat(pool, root, "/new", NULL);
    const char *path = apr_pstrcat(pool, folder, "/", name, NULL);
    crm_error_t *error = NULL;
    char *temporary;
    int was_read;

    CRM_ERR(make_folders(root, pool));
    CRM_ERR(look_in_cur(&was_read, root, name, pool));
    if (!was_read) {
        CRM_ERR(write_file(&temporary, root, name, mail, pool));
        if (link(temporary, path) && errno != EEXIST) {
            error = fault(path, pool);
        }
        unlink(temporary);
    }
    if (!error && !crm_file_sync_folder(folder)) {
        error = fault(folder, pool);
    }
    return error;
}

static void send_message(crmd_receipt_t *receipt,
                         const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    crm_error_t *error;
    crmd_mail_t mail;

    error = crmd_mail_make(&mail, message, config, 0, pool);
    if (error || strchr(message->id, '/')) {
        crmd_receipt_fill(receipt, CRMD_REFUSED, error ? error->message
                          : "the message has no usable id");
        return;
    }
    error = deliver(config->maildir, apr_pstrcat(pool, message->id, ".crmapi",
                                                 NULL), &mail, pool);
    if (error) {
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, error->message);
        return;
    }
    crmd_receipt_fill(receipt, CRMD_SENT, NULL);
    receipt->provider_id = mail.message_id;
}

static crm_error_t *check(const crmd_config_t *config,
                          const crm_channel_t *channel, apr_pool_t *pool)
{
    (void)channel;
    return *config->maildir ? NULL
           : crm_error_create(CRM_E_BAD_REQUEST, "maildir is not set", pool);
}

static int repeatable(const crmd_config_t *config)
{
    (void)config;
    return 1;
}

const crmd_relay_t crmd_relay_maildir = {
    "maildir", check, repeatable, send_message
};
