/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_deliver.c: delivery of a mail from a mail system */
#include "crmapictl_deliver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_mail_deliver.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* Read stdin into BUF. If it exceeds MAX bytes, set *LARGE_P and discard the
 * rest: the mail system expects all of it to be read. */
static crm_error_t *read_mail(crm_buf_t *buf, int *large_p, ctl_t *ctl,
                              apr_size_t max)
{
    *large_p = 0;
    for (;;) {
        char *room = crm_buf_reserve(buf, 65536);
        ssize_t got = read(STDIN_FILENO, room, 65536);

        if (got < 0 && errno != EINTR) {
            ctl->code = EX_TEMPFAIL;
            return ctl_fault(ctl, "cannot read the mail: %s",
                             strerror(errno));
        }
        if (!got) {
            return NULL;
        }
        if (got > 0) {
            buf->len += (apr_size_t)got;
        }
        if (buf->len > max) {
            *large_p = 1;
            buf->len = 0;
        }
    }
}

/* Return the addresses given by --recipient, or NULL. */
static apr_array_header_t *recipients_of(ctl_t *ctl)
{
    const char *all = ctl->options[CTL_RECIPIENT];
    apr_array_header_t *list;
    char *state, *word;

    if (!all) {
        return NULL;
    }
    list = apr_array_make(ctl->pool, 2, sizeof(const char *));
    word = apr_strtok(apr_pstrdup(ctl->pool, all), "\n", &state);
    for (; word; word = apr_strtok(NULL, "\n", &state)) {
        size_t len = strlen(word);

        if (*word == '<' && word[len - 1] == '>') {
            word[len - 1] = '\0';
            word++;
        }
        APR_ARRAY_PUSH(list, const char *) = word;
    }
    return list;
}

/* Report the outcome ONE and return its exit code. */
static int report(ctl_t *ctl, const crm_mail_outcome_t *one)
{
    static const int codes[] = {
        [CRM_MAIL_STORED] = EX_OK, [CRM_MAIL_UNKNOWN] = EX_NOUSER,
        [CRM_MAIL_REFUSED] = EX_DATAERR, [CRM_MAIL_RETRY] = EX_TEMPFAIL
    };

    if (one->result == CRM_MAIL_STORED && ctl->options[CTL_JSON]) {
        printf("{\"conversation_id\":\"%s\",\"message_id\":\"%s\"}\n",
               one->conversation_id ? one->conversation_id : "",
               one->message_id ? one->message_id : "");
    }
    else if (one->result != CRM_MAIL_STORED) {
        const crm_error_t *error = one->error;

        fprintf(stderr, "crmapictl: %s: %s\n",
                ctl_clean(one->recipient, ctl->pool),
                ctl_clean(error && error->log ? error->log : one->reason,
                          ctl->pool));
    }
    return codes[one->result];
}

/* Report OUTCOMES and return the exit code: a temporary failure takes
 * precedence, then a refusal. */
static int report_all(ctl_t *ctl, const apr_array_header_t *outcomes)
{
    int worst = EX_OK;

    for (int i = 0; i < outcomes->nelts; i++) {
        int code = report(ctl, &APR_ARRAY_IDX(outcomes, i,
                                              crm_mail_outcome_t));

        if (code == EX_TEMPFAIL || worst == EX_OK) {
            worst = code;
        }
    }
    if (!outcomes->nelts) {
        fprintf(stderr, "crmapictl: no agent receives this mail\n");
        return EX_NOUSER;
    }
    return worst;
}

static void end_by_fault(int number)
{
    static const char text[] = "crmapictl: a fault; the mail was not taken\n";

    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(EX_TEMPFAIL);
}

void ctl_deliver_prepare(void)
{
    static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};

    for (size_t i = 0; i < CRM_NELTS(faults); i++) {
        struct sigaction action = {.sa_handler = end_by_fault}, before;

        /* Sanitizers have handlers of their own. */
        if (!sigaction(faults[i], NULL, &before) && before.sa_handler == SIG_DFL) {
            sigaction(faults[i], &action, NULL);
        }
    }
}

crm_error_t *ctl_deliver(ctl_t *ctl)
{
    long max = CRM_MAIL_MAX_MESSAGE, hourly = CRM_MAIL_HOURLY;
    long attachment = CRM_MAIL_ATTACHMENT_BYTES;
    crm_mail_options_t options = {0};
    apr_array_header_t *outcomes;
    crm_buf_t mail;
    int large;

    CRM_ERR(ctl_number(&max, ctl, CTL_MAX_MESSAGE, 100 * 1024 * 1024));
    CRM_ERR(ctl_number(&attachment, ctl, CTL_ATTACHMENT_BYTES,
                       100 * 1024 * 1024));
    CRM_ERR(ctl_number(&hourly, ctl, CTL_HOURLY, 1000000));
    if (ctl->options[CTL_WORKSPACE]) {
        CRM_ERR(ctl_workspace_id(&options.workspace, ctl,
                                 ctl->options[CTL_WORKSPACE]));
    }
    options.attachment_bytes = (apr_size_t)attachment;
    options.keep_original = !ctl->options[CTL_NO_ORIGINAL];
    options.hourly = (int)hourly;
    options.sender = ctl->options[CTL_SENDER];
    options.authserv_ids = ctl->options[CTL_AUTHSERV_ID];
    crm_buf_init(&mail, 65536, ctl->pool);
    CRM_ERR(read_mail(&mail, &large, ctl, (apr_size_t)max));
    if (large) {
        ctl->code = EX_DATAERR;
        return ctl_fault(ctl, "the mail has more than %ld bytes", max);
    }
    crm_mail_deliver(&outcomes, ctl->conn, mail.data, mail.len,
                     recipients_of(ctl), &options, ctl->pool);
    ctl->code = report_all(ctl, outcomes);
    return NULL;
}

int ctl_deliver_code(const ctl_t *ctl, const crm_error_t *error)
{
    if (!error || ctl->code) {
        return ctl->code;
    }
    switch (error->code) {
    case CRM_E_BAD_REQUEST:
    case CRM_E_CONFLICT: return EX_CONFIG;
    default: return EX_TEMPFAIL;
    }
}
