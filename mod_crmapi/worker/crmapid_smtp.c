/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_smtp.c: mails by SMTP (RFC 5321), and what became of them (contract
 * 11.11) */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crmapid_curl.h"
#include "crmapid_mime.h"
#include "crmapid_relay.h"

/* More bytes of answers than any server needs to take one mail. */
#define ANSWERS_MAX 65536

/* More sockets than libcurl ever has open for one transfer: one for each
 * family of addresses, until one is connected. */
#define SOCKETS 4

/* What the server answers to. */
typedef enum stage_t {
    STAGE_HELLO,                /* all before the mail: greeting, TLS, login */
    STAGE_MAIL,
    STAGE_RCPT,
    STAGE_DATA,
    STAGE_END                   /* the final dot */
} stage_t;

static const char *const stage_names[] = {
    "the greeting or login", "MAIL", "RCPT", "DATA", "the mail"
};

/* A conversation with the server. */
typedef struct talk_t {
    const crmd_mail_t *mail;
    apr_size_t pos;             /* bytes of the mail that libcurl has */
    stage_t stage;
    int over;                   /* QUIT was sent: nothing counts any more */
    int code;                   /* of the last whole answer in this stage; 0:
                                   none yet */
    const char *answer;         /* its last line */
    apr_size_t answers;         /* bytes of answers so far */
    curl_socket_t sockets[SOCKETS]; /* open ones; CURL_SOCKET_BAD: none */
    apr_pool_t *pool;
    char text[CURL_ERROR_SIZE];
} talk_t;

static void enter(talk_t *talk, stage_t stage)
{
    talk->stage = stage;
    talk->code = 0;
    talk->answer = NULL;
}

/* Give libcurl more of the mail. It asks again only when all it had is with
 * the system: when it hears that there is no more, it sends the dot, and not
 * before. */
static size_t give(char *buffer, size_t size, size_t count, void *baton)
{
    talk_t *talk = baton;
    size_t n = talk->mail->len - talk->pos;

    if (n > size * count) {
        n = size * count;
    }
    if (!n) {
        enter(talk, STAGE_END);
        return 0;
    }
    memcpy(buffer, talk->mail->text + talk->pos, n);
    talk->pos += n;
    return n;
}

static curl_socket_t open_socket(void *baton, curlsocktype purpose,
                                 struct curl_sockaddr *address)
{
    talk_t *talk = baton;
    curl_socket_t fd = socket(address->family,
                              address->socktype | SOCK_CLOEXEC,
                              address->protocol);

    (void)purpose;
    for (int i = 0; i < SOCKETS; i++) {
        if (talk->sockets[i] == CURL_SOCKET_BAD) {
            talk->sockets[i] = fd;
            break;
        }
    }
    return fd;
}

static int close_socket(void *baton, curl_socket_t fd)
{
    talk_t *talk = baton;

    for (int i = 0; i < SOCKETS; i++) {
        if (talk->sockets[i] == fd) {
            talk->sockets[i] = CURL_SOCKET_BAD;
        }
    }
    return close(fd);
}

/* Hear nothing more: libcurl would wait for the answer to QUIT for two minutes,
 * whatever the time-out is, and nothing depends on it. */
static void stop_listening(talk_t *talk)
{
    for (int i = 0; i < SOCKETS; i++) {
        if (talk->sockets[i] != CURL_SOCKET_BAD) {
            shutdown(talk->sockets[i], SHUT_RD);
        }
    }
}

/* Note which command was sent: LEN bytes at TEXT. A login's are not looked
 * at. */
static void note_command(talk_t *talk, const char *text, size_t len)
{
    if (len > 5 && !strncmp(text, "MAIL ", 5)) {
        enter(talk, STAGE_MAIL);
    }
    else if (len > 5 && !strncmp(text, "RCPT ", 5)) {
        enter(talk, STAGE_RCPT);
    }
    else if (len >= 4 && !strncmp(text, "DATA", 4)) {
        enter(talk, STAGE_DATA);
    }
    else if (len >= 4 && !strncmp(text, "QUIT", 4)) {
        talk->over = 1;
        stop_listening(talk);
    }
}

/* Note a line of an answer; "250-" is not the last one (RFC 5321, 4.2.1).
 * After the final one nothing counts. */
static void note_answer(talk_t *talk, const char *text, size_t len)
{
    int code = 0;

    talk->answers += len;
    if (talk->over || (talk->stage == STAGE_END && talk->code)) {
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        if (i >= len || text[i] < '0' || text[i] > '9') {
            return;
        }
        code = code * 10 + text[i] - '0';
    }
    if (len > 3 && text[3] == '-') {
        return;
    }
    talk->code = code;
    talk->answer = crmd_one_line(text, len, talk->pool);
}

static int watch(CURL *curl, curl_infotype type, char *data, size_t len,
                 void *baton)
{
    (void)curl;
    if (type == CURLINFO_HEADER_OUT) {
        note_command(baton, data, len);
    }
    else if (type == CURLINFO_HEADER_IN) {
        note_answer(baton, data, len);
    }
    return 0;
}

/* The same lines again, where the transfer can be ended. */
static size_t limit(char *data, size_t size, size_t count, void *baton)
{
    talk_t *talk = baton;

    (void)data;
    return talk->answers > ANSWERS_MAX ? 0 : size * count;
}

static int is_smtps(const crmd_config_t *config)
{
    return !strncasecmp(config->smtp_url, "smtps:", 6);
}

static void set_login(CURL *curl, const crmd_config_t *config)
{
    long level = CURLUSESSL_ALL;

    if (!is_smtps(config)) {
        if (!strcmp(config->smtp_tls, "no")) {
            level = CURLUSESSL_NONE;
        }
        else if (!strcmp(config->smtp_tls, "opportunistic")) {
            level = CURLUSESSL_TRY;
        }
    }
    curl_easy_setopt(curl, CURLOPT_USE_SSL, level);
    if (*config->smtp_user) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, config->smtp_user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, config->smtp_password);
    }
}

static void set_talk(CURL *curl, talk_t *talk)
{
    for (int i = 0; i < SOCKETS; i++) {
        talk->sockets[i] = CURL_SOCKET_BAD;
    }
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, talk);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, talk);
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, give);
    curl_easy_setopt(curl, CURLOPT_READDATA, talk);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, limit);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, talk);
    curl_easy_setopt(curl, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, watch);
    curl_easy_setopt(curl, CURLOPT_DEBUGDATA, talk);
}

/* Return whether the server's answer is about us, not about the mail: who we
 * are, or how we talk (RFC 4954, RFC 3207). */
static int is_our_fault(const talk_t *talk)
{
    return talk->stage == STAGE_HELLO || talk->code == 530
        || talk->code == 534 || talk->code == 535 || talk->code == 538;
}

/* Fill RECEIPT with what an answer that says no means, if TALK has one. */
static int take_refusal(crmd_receipt_t *receipt, const talk_t *talk)
{
    const char *reason;

    if (talk->code < 400 || talk->code > 599) {
        return 0;
    }
    /* What is said about a login is not repeated: it might hold the login. */
    reason = is_our_fault(talk)
        ? apr_psprintf(talk->pool, "the mail server answered %d to %s",
                       talk->code, stage_names[talk->stage])
        : apr_pstrcat(talk->pool, "the mail server's answer to ",
                      stage_names[talk->stage], ": ", talk->answer, NULL);
    crmd_receipt_fill(receipt, talk->code < 500 || is_our_fault(talk)
                      ? CRMD_NOT_NOW : CRMD_REFUSED, reason);
    return 1;
}

/* Fill RECEIPT with what TALK, ended with CODE, means. */
static void judge(crmd_receipt_t *receipt, const talk_t *talk, CURLcode code)
{
    const char *reason = crmd_curl_reason(code, talk->text, talk->pool);

    if (talk->stage == STAGE_END && talk->code >= 200 && talk->code < 300) {
        crmd_receipt_fill(receipt, CRMD_SENT, NULL);
        receipt->provider_id = talk->mail->message_id;
        return;
    }
    if (take_refusal(receipt, talk)) {
        return;
    }
    if (talk->answers > ANSWERS_MAX) {
        reason = "the mail server's answers have no end";
    }
    else if (talk->stage == STAGE_HELLO) {
        reason = apr_pstrcat(talk->pool, "the mail server: ", reason, NULL);
    }
    else {
        reason = apr_pstrcat(talk->pool, "the mail server, after ",
                             stage_names[talk->stage], ": ", reason, NULL);
    }
    crmd_receipt_fill(receipt, talk->stage == STAGE_END ? CRMD_UNKNOWN
                      : CRMD_NOT_NOW, reason);
}

/* Hand MAIL over with CURL. */
static void transfer(crmd_receipt_t *receipt, CURL *curl, talk_t *talk,
                     const crmd_config_t *config)
{
    struct curl_slist *to;

    to = curl_slist_append(NULL, apr_pstrcat(talk->pool, "<", talk->mail->to,
                                             ">", NULL));
    set_login(curl, config);
    set_talk(curl, talk);
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, apr_pstrcat(
                         talk->pool, "<", talk->mail->from, ">", NULL));
    curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to);
    judge(receipt, talk, curl_easy_perform(curl));
    stop_listening(talk);
    curl_easy_cleanup(curl);
    curl_slist_free_all(to);
}

/* Return the URL with the name that the server is greeted by. */
static const char *url_of(const crmd_config_t *config, apr_pool_t *pool)
{
    const char *url = config->smtp_url;
    const char *host = strstr(url, "://");

    if (host && !strchr(host + 3, '/')) {
        url = apr_pstrcat(pool, url, "/", config->mail_domain, NULL);
    }
    return url;
}

static void send_message(crmd_receipt_t *receipt,
                         const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    talk_t talk = {.pool = pool};
    const char *wrong;
    crmd_mail_t mail;
    CURL *curl;

    if (!crmd_sender_of(message, config)) {
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, "no sender: mail_from is not"
                          " set");
        return;
    }
    wrong = crmd_mail_make(&mail, message, config, 1, pool);
    if (wrong) {
        crmd_receipt_fill(receipt, CRMD_REFUSED, wrong);
        return;
    }
    talk.mail = &mail;
    curl = crmd_curl_create(url_of(config, pool), "smtp,smtps",
                            config->smtp_timeout, config->smtp_ca_file,
                            talk.text);
    if (!curl) {
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, "there is no memory");
        return;
    }
    transfer(receipt, curl, &talk, config);
}

static const char *check(const crmd_config_t *config, const char *channel,
                         apr_pool_t *pool)
{
    if (strcmp(channel, "email")) {
        return apr_pstrcat(pool, "the relay smtp is for email only, not for ",
                           channel, NULL);
    }
    if (!is_smtps(config) && strncasecmp(config->smtp_url, "smtp:", 5)) {
        return "smtp_url must begin with smtp:// or smtps://";
    }
    if (*config->smtp_user && !strcmp(config->smtp_tls, "opportunistic")
        && !is_smtps(config)) {
        /* Whoever is between could take the password. */
        return "smtp_user needs smtp_tls = starttls (or no)";
    }
    if (!*config->mail_from || !crmd_mail_address(config->mail_from)) {
        return "mail_from must be an address: the relay smtp needs it";
    }
    return NULL;
}

static int repeatable(const crmd_config_t *config)
{
    return config->smtp_deduplicates;
}

const crmd_relay_t crmd_relay_smtp = {
    "smtp", check, repeatable, send_message
};
