/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_maildir.c: messages as files in a maildir, for those who have
 * nothing better yet, and for tests */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apr_file_info.h"
#include "apr_file_io.h"
#include "apr_strings.h"

#include "crmapid_mime.h"
#include "crmapid_relay.h"

/* Return what went wrong with PATH, as errno says. */
static const char *fault(const char *path, apr_pool_t *pool)
{
    int number = errno;
    char text[256];

    apr_strerror(APR_FROM_OS_ERROR(number), text, sizeof(text));
    return apr_psprintf(pool, "%s: %s", path, text);
}

/* Make the folder PATH, and those above it, if they are missing. */
static const char *make_folder(const char *path, apr_pool_t *pool)
{
    apr_status_t status = apr_dir_make_recursive(
        path, APR_UREAD | APR_UWRITE | APR_UEXECUTE, pool);

    if (status && !APR_STATUS_IS_EEXIST(status)) {
        errno = APR_TO_OS_ERROR(status);
        return fault(path, pool);
    }
    return NULL;
}

/* Make what a maildir has at ROOT. */
static const char *make_folders(const char *root, apr_pool_t *pool)
{
    static const char *const names[] = {"/tmp", "/new", "/cur"};

    for (int i = 0; i < 3; i++) {
        const char *wrong = make_folder(apr_pstrcat(pool, root, names[i],
                                                    NULL), pool);

        if (wrong) {
            return wrong;
        }
    }
    return NULL;
}

/* Return whether a reader has put NAME into ROOT/cur: its name goes on with
 * ":2," and flags there. */
static int was_read(const char *root, const char *name, apr_pool_t *pool)
{
    apr_size_t len = strlen(name);
    apr_finfo_t info;
    apr_dir_t *dir;
    int found = 0;

    if (apr_dir_open(&dir, apr_pstrcat(pool, root, "/cur", NULL), pool)) {
        return 0;
    }
    while (!found && !apr_dir_read(&info, APR_FINFO_NAME, dir)) {
        found = !strncmp(info.name, name, len)
            && (!info.name[len] || info.name[len] == ':');
    }
    apr_dir_close(dir);
    return found;
}

/* Write the LEN bytes at TEXT to FD, down to the disk. Return whether that was
 * possible; errno says why not. */
static int write_all(int fd, const char *text, apr_size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno != EINTR) {
            return 0;
        }
        if (n > 0) {
            text += n;
            len -= (apr_size_t)n;
        }
    }
    return !fsync(fd);
}

/* Make what is in the folder PATH outlast a crash. */
static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int done = fd >= 0 && !fsync(fd);
    int number = errno;

    if (fd >= 0) {
        close(fd);
    }
    errno = number;
    return done;
}

/* Write MAIL to a new file and set *PATH_P to it. mkstemp() makes it 0600. */
static const char *write_file(char **path_p, const char *root,
                              const char *name, const crmd_mail_t *mail,
                              apr_pool_t *pool)
{
    char *path = apr_pstrcat(pool, root, "/tmp/", name, ".XXXXXX", NULL);
    int fd = mkostemp(path, O_CLOEXEC);
    const char *wrong = NULL;

    *path_p = path;
    if (fd < 0) {
        return fault(path, pool);
    }
    if (!write_all(fd, mail->text, mail->len)) {
        wrong = fault(path, pool);
    }
    if (close(fd) && !wrong) {
        wrong = fault(path, pool);
    }
    if (wrong) {
        unlink(path);
    }
    return wrong;
}

/* Put MAIL into ROOT/new as NAME, unless it is there. link() never replaces a
 * file, whoever else does the same at the same time. */
static const char *deliver(const char *root, const char *name,
                           const crmd_mail_t *mail, apr_pool_t *pool)
{
    const char *folder = apr_pstrcat(pool, root, "/new", NULL);
    const char *path = apr_pstrcat(pool, folder, "/", name, NULL);
    const char *wrong = make_folders(root, pool);
    char *temporary;

    if (wrong) {
        return wrong;
    }
    if (!was_read(root, name, pool)) {
        wrong = write_file(&temporary, root, name, mail, pool);
        if (wrong) {
            return wrong;
        }
        if (link(temporary, path) && errno != EEXIST) {
            wrong = fault(path, pool);
        }
        unlink(temporary);
    }
    return wrong ? wrong : sync_folder(folder) ? NULL : fault(folder, pool);
}

static void send_message(crmd_receipt_t *receipt,
                         const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    const char *wrong;
    crmd_mail_t mail;

    wrong = crmd_mail_make(&mail, message, config, 0, pool);
    if (wrong || strchr(message->id, '/')) {
        crmd_receipt_fill(receipt, CRMD_REFUSED,
                          wrong ? wrong : "the message has no usable id");
        return;
    }
    wrong = deliver(config->maildir, apr_pstrcat(pool, message->id, ".crmapi",
                                                 NULL), &mail, pool);
    crmd_receipt_fill(receipt, wrong ? CRMD_NOT_NOW : CRMD_SENT, wrong);
    receipt->provider_id = wrong ? NULL : mail.message_id;
}

static const char *check(const crmd_config_t *config, const char *channel,
                         apr_pool_t *pool)
{
    (void)channel;
    (void)pool;
    return *config->maildir ? NULL : "maildir is not set";
}

static int repeatable(const crmd_config_t *config)
{
    (void)config;
    return 1;
}

const crmd_relay_t crmd_relay_maildir = {
    "maildir", check, repeatable, send_message
};
