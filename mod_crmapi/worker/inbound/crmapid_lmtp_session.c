/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_lmtp_session.c: one session of LMTP (RFC 2033, RFC 5321) */
#include "crmapid_lmtp_session.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_network_io.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_db_conn.h"
#include "crm_mail_deliver.h"
#include "crm_text.h"
#include "crmapid_conn.h"
#include "crmapid_lmtp_io.h"
#include "crmapid_log.h"

#define UNKNOWN_RECIPIENT "550 5.1.1 No agent receives mail at this address"
#define TRY_LATER "451 4.3.0 Try again later"
#define TOO_LARGE "552 5.3.4 The mail is too large"

/* Maximum recipients of a mail, and invalid commands of a session. */
#define RECIPIENTS CRM_MAIL_LIST_MAX
#define FAULTS 20

/* Maximum commands for a mail: a client that says NOOP for ever is never silent. */
#define COMMANDS 1000

typedef struct session_t {
    const crmd_config_t *config;
    crmd_lmtp_io_t *io;
    crm_conn_t **conn_p;
    apr_pool_t *conn_pool;
    apr_pool_t *pool;           /* of the session */
    apr_pool_t *mail_pool;      /* of a mail */
    int greeted, faults;
    int commands;               /* since the last mail */
    const char *sender;         /* NULL: no MAIL yet */
    apr_array_header_t *recipients; /* of const char * */
} session_t;

/* ---- commands ------------------------------------------------------------ */

static void reset(session_t *session)
{
    apr_pool_clear(session->mail_pool);
    session->sender = NULL;
    session->io->busy = 0;
    session->recipients = apr_array_make(session->mail_pool, 4,
                                         sizeof(const char *));
}

static void refuse(session_t *session, const char *line)
{
    crmd_lmtp_say(session->io, line);
    if (++session->faults >= FAULTS) {
        crmd_lmtp_leave(session->io, "421 4.7.0 Too many invalid commands");
    }
}

/* Set *PATH_P to the address in "FROM:<address> parameters" (KEYWORD: "FROM"),
 * and *REST_P to the parameters. Return 0 if it is malformed. Source routes are
 * dropped (RFC 5321, appendix F.2). */
static int read_path(const char **path_p, const char **rest_p,
                     const char *text, const char *keyword, apr_pool_t *pool)
{
    apr_size_t len = strlen(keyword), end;
    const char *colon;
    int quoted = 0;

    if (strncasecmp(text, keyword, len) || text[len] != ':') {
        return 0;
    }
    text += len + 1;
    text += strspn(text, " ");
    if (*text++ != '<') {
        return 0;
    }
    if (*text == '@' && (colon = strchr(text, ':'))
        && colon < strchrnul(text, '>')) {
        text = colon + 1;
    }
    for (end = 0; text[end] && (quoted || text[end] != '>'); end++) {
        quoted ^= text[end] == '"';
    }
    if (text[end] != '>' || !crm_text_valid_utf8(text, end)) {
        return 0;
    }
    *path_p = apr_pstrmemdup(pool, text, end);
    *rest_p = text + end + 1;
    return !**rest_p || **rest_p == ' ';
}

static void do_lhlo(session_t *session, const char *rest)
{
    char host[APRMAXHOSTLEN + 1] = "localhost";

    if (!*rest) {
        refuse(session, "501 5.5.4 LHLO needs a name");
        return;
    }
    reset(session);
    apr_gethostname(host, sizeof(host), session->pool);
    session->greeted = 1;
    crm_buf_printf(&session->io->out, "250-%s\r\n250-PIPELINING\r\n"
                   "250-ENHANCEDSTATUSCODES\r\n250-8BITMIME\r\n"
                   "250-SMTPUTF8\r\n250 SIZE %d\r\n", host,
                   session->config->mail_max_message);
}

/* Check the parameters of MAIL. Return NULL, or the reply that refuses them. */
static const char *check_parameters(const session_t *session,
                                    const char *rest, apr_pool_t *pool)
{
    char *state, *word = apr_strtok(apr_pstrdup(pool, rest), " ", &state);

    for (; word; word = apr_strtok(NULL, " ", &state)) {
        if (!strncasecmp(word, "SIZE=", 5)) {
            if (!apr_isdigit(word[5])) {
                return "501 5.5.4 SIZE must be a number";
            }
            if (apr_strtoi64(word + 5, NULL, 10)
                > session->config->mail_max_message) {
                return TOO_LARGE;
            }
        }
        else if (strcasecmp(word, "BODY=8BITMIME")
                 && strcasecmp(word, "BODY=7BIT")
                 && strcasecmp(word, "SMTPUTF8")) {
            return "555 5.5.4 Unknown parameter";
        }
    }
    return NULL;
}

static void do_mail(session_t *session, const char *rest)
{
    const char *path, *refusal;

    if (!session->greeted || session->sender) {
        refuse(session, session->greeted ? "503 5.5.1 Duplicate MAIL"
                        : "503 5.5.1 LHLO first");
        return;
    }
    if (!read_path(&path, &rest, rest, "FROM", session->mail_pool)) {
        refuse(session, "501 5.5.4 MAIL FROM:<address>");
        return;
    }
    refusal = check_parameters(session, rest, session->mail_pool);
    if (refusal) {
        refuse(session, refusal);
        return;
    }
    session->sender = path;
    session->io->busy = 1;
    crmd_lmtp_say(session->io, "250 2.1.0 Ok");
}

/* Open the database connection if it is not open. */
static crm_error_t *connect_session(session_t *session)
{
    return crmd_conn_open(session->conn_p, session->config,
                          session->config->answer_time, session->conn_pool,
                          session->mail_pool);
}

/* Say that the recipient of ONE shall be tried later, and log why. */
static void say_later(session_t *session, const crm_mail_outcome_t *one)
{
    crmd_lmtp_say(session->io, TRY_LATER);
    if (one->error) {
        crmd_log_error(CRM_LOG_WARNING, one->error);
    }
    else {
        crmd_logf(CRM_LOG_WARNING, "CRM3052: a mail to %s was deferred: %s",
                  one->recipient, one->reason);
    }
}

/* Take the recipient PATH, or say why not. */
static void add_recipient(session_t *session, const char *path)
{
    crm_mail_outcome_t one = {.recipient = path, .result = CRM_MAIL_RETRY};

    one.error = connect_session(session);
    if (!one.error) {
        crm_mail_expect(&one, *session->conn_p, path, NULL,
                        session->mail_pool);
    }
    if (one.result == CRM_MAIL_STORED) {
        APR_ARRAY_PUSH(session->recipients, const char *) = path;
        crmd_lmtp_say(session->io, "250 2.1.5 Ok");
    }
    else if (one.result == CRM_MAIL_RETRY) {
        say_later(session, &one);
    }
    else {
        crmd_lmtp_say(session->io, UNKNOWN_RECIPIENT);
    }
}

static void do_rcpt(session_t *session, const char *rest)
{
    const char *path;

    if (!session->sender) {
        refuse(session, "503 5.5.1 MAIL first");
    }
    else if (!read_path(&path, &rest, rest, "TO", session->mail_pool)
             || !*path) {
        refuse(session, "501 5.5.4 RCPT TO:<address>");
    }
    else if (rest[strspn(rest, " ")]) {
        refuse(session, "555 5.5.4 Unknown parameter");
    }
    else if (session->recipients->nelts >= RECIPIENTS) {
        crmd_lmtp_say(session->io, "452 4.5.3 Too many recipients");
    }
    else {
        add_recipient(session, path);
    }
}

/* ---- the mail ------------------------------------------------------------ */

/* Read the mail into BUF, up to CR LF . CR LF; no other sequence ends it. Dots
 * that the client added at the beginning of lines are removed. *LARGE_P =
 * whether it is too large; then BUF is incomplete. Return 0 if the session is
 * over. */
static int read_data(session_t *session, crm_buf_t *buf, int *large_p)
{
    /* The part of CR LF . CR that was just read. */
    enum { NOTHING, CR, CRLF, DOT, DOTCR } state = CRLF;
    apr_size_t max = (apr_size_t)session->config->mail_max_message;
    int c;

    *large_p = 0;
    while ((c = crmd_lmtp_byte(session->io)) >= 0) {
        if (state == CRLF && c == '.') {
            state = DOT;
            continue;
        }
        if (state == DOT && c == '\r') {
            state = DOTCR;
            continue;
        }
        if (state == DOTCR) {
            if (c == '\n') {
                return 1;
            }
            crm_buf_putc(buf, '\r');
            state = CR;
        }
        state = c == '\r' ? CR : c == '\n' && state == CR ? CRLF : NOTHING;
        crm_buf_putc(buf, (char)c);
        if (buf->len > max) {
            if (*large_p && crmd_lmtp_crowded(session->io)) {
                crmd_lmtp_leave(session->io, "421 4.3.4 The mail has no end");
                return 0;
            }
            *large_p = 1;
            buf->len = 0;
        }
    }
    return 0;
}

/* Reply with ONE, the outcome for a recipient, and log it. */
static void say_outcome(session_t *session, const crm_mail_outcome_t *one)
{
    switch (one->result) {
    case CRM_MAIL_STORED:
        crmd_lmtp_say(session->io, one->again
                      ? "250 2.0.0 Accepted before" : "250 2.0.0 Accepted");
        crmd_logf(CRM_LOG_INFO, "CRM3050: a mail to %s was accepted%s%s",
                  one->recipient, one->automatic ? ": " : "",
                  one->automatic ? one->automatic : "");
        break;
    case CRM_MAIL_UNKNOWN:
        crmd_lmtp_say(session->io, UNKNOWN_RECIPIENT);
        break;
    case CRM_MAIL_REFUSED:
        crmd_lmtp_say(session->io, "554 5.6.0 The mail was refused");
        crmd_logf(CRM_LOG_ERR, "CRM3051: a mail to %s was refused: %s",
                  one->recipient, one->reason);
        break;
    default:
        say_later(session, one);
        break;
    }
}

/* Deliver the mail in BUF, and reply for each recipient (RFC 2033, 4.2). */
static void deliver(session_t *session, const crm_buf_t *buf)
{
    const crmd_config_t *config = session->config;
    crm_mail_options_t options = {
        .attachment_bytes = (apr_size_t)config->mail_attachment_bytes,
        .keep_original = config->mail_keep_original > 0,
        .hourly = config->mail_hourly, .sender = session->sender,
        .authserv_ids = config->mail_authserv_id
    };
    apr_array_header_t *outcomes;
    crm_error_t *error = connect_session(session);

    if (error) {
        crmd_log_error(CRM_LOG_WARNING, error);
        for (int i = 0; i < session->recipients->nelts; i++) {
            crmd_lmtp_say(session->io, TRY_LATER);
        }
        return;
    }
    crm_mail_deliver(&outcomes, *session->conn_p, buf->data, buf->len,
                     session->recipients, &options, session->mail_pool);
    for (int i = 0; i < outcomes->nelts; i++) {
        say_outcome(session, &APR_ARRAY_IDX(outcomes, i,
                                            crm_mail_outcome_t));
    }
}

static void do_data(session_t *session, const char *rest)
{
    crm_buf_t buf;
    int large;

    if (*rest) {
        refuse(session, "501 5.5.4 DATA has no parameters");
        return;
    }
    if (!session->recipients->nelts) {
        refuse(session, session->sender ? "503 5.5.1 No valid recipients"
                        : "503 5.5.1 MAIL first");
        return;
    }
    crmd_lmtp_say(session->io, "354 End with CR LF . CR LF");
    crm_buf_init(&buf, 65536, session->mail_pool);
    if (!read_data(session, &buf, &large)) {
        return;                 /* the client sends it again */
    }
    if (large) {
        for (int i = 0; i < session->recipients->nelts; i++) {
            crmd_lmtp_say(session->io, TOO_LARGE);
        }
    }
    else {
        deliver(session, &buf);
    }
    crmd_lmtp_flush(session->io);
    crmd_lmtp_begin(session->io);
    session->commands = 0;
    reset(session);
}

static void do_rset(session_t *session, const char *rest)
{
    (void)rest;
    reset(session);
    crmd_lmtp_say(session->io, "250 2.0.0 Ok");
}

static void do_noop(session_t *session, const char *rest)
{
    (void)rest;
    crmd_lmtp_say(session->io, "250 2.0.0 Ok");
}

static void do_vrfy(session_t *session, const char *rest)
{
    (void)rest;
    crmd_lmtp_say(session->io, "252 2.5.2 Cannot verify; send a mail");
}

static void do_quit(session_t *session, const char *rest)
{
    (void)rest;
    crmd_lmtp_leave(session->io, "221 2.0.0 Bye");
}

static const struct {
    const char *name;
    void (*run)(session_t *session, const char *rest);
} commands[] = {
    {"LHLO", do_lhlo}, {"MAIL", do_mail}, {"RCPT", do_rcpt},
    {"DATA", do_data}, {"RSET", do_rset}, {"NOOP", do_noop},
    {"VRFY", do_vrfy}, {"QUIT", do_quit},
};

/* Run the command in LINE. */
static void run_command(session_t *session, char *line)
{
    char *rest = line + strcspn(line, " ");

    if (*rest) {
        *rest++ = '\0';
        rest += strspn(rest, " ");
    }
    for (size_t i = 0; i < CRM_NELTS(commands); i++) {
        if (!strcasecmp(line, commands[i].name)) {
            commands[i].run(session, rest);
            return;
        }
    }
    /* This includes HELO and EHLO (RFC 2033, 4.1). */
    refuse(session, "500 5.5.1 Unknown command; this is LMTP");
}

void crmd_lmtp_serve(crm_conn_t **conn_p, int client, crmd_lmtp_door_t *door,
                     const crmd_config_t *config, apr_pool_t *conn_pool,
                     apr_pool_t *scratch_pool)
{
    session_t *session = apr_pcalloc(scratch_pool, sizeof(*session));
    char line[CRMD_LMTP_LINE];

    session->config = config;
    session->io = apr_pcalloc(scratch_pool, sizeof(*session->io));
    session->io->socket = client;
    session->io->door = door;
    session->io->timeout = config->lmtp_timeout;
    crmd_lmtp_begin(session->io);
    crm_buf_init(&session->io->out, 1024, scratch_pool);
    session->conn_p = conn_p;
    session->conn_pool = conn_pool;
    session->pool = scratch_pool;
    apr_pool_create(&session->mail_pool, scratch_pool);
    reset(session);
    crmd_lmtp_say(session->io, "220 crmapid LMTP");
    while (!session->io->over) {
        int good = crmd_lmtp_line(session->io, line);

        if (session->io->over) {
            break;
        }
        if (!session->sender && crmd_lmtp_ending(session->io)) {
            crmd_lmtp_leave(session->io, "421 4.3.2 The daemon is stopping");
        }
        else if (++session->commands > COMMANDS) {
            crmd_lmtp_leave(session->io, "421 4.7.0 Too many commands");
        }
        else if (!good) {
            refuse(session, "500 5.5.2 The line is too long");
        }
        else {
            run_command(session, line);
        }
    }
}
