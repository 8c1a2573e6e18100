/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_smtp.c: the relay "smtp": mails by SMTP (RFC 5321), with an exact
 * verdict (contract 11.11), and with reports of delivery where the server has them
 * (RFC 3461)
 *
 * libcurl puts what it is given between < and >, after it has taken one of each away.
 * From 8.16 on it leaves alone what follows the last >. So parameters that end with
 * > are sent as they are by all versions: ENVID and ORCPT are written as <...>, which
 * the RFC's xtext allows. A server that does not like them is asked again without. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_email_wire.h"
#include "crm_mail_status.h"
#include "crm_time.h"

#include "crmapid_curl.h"
#include "crmapid_ending.h"
#include "crmapid_mime.h"
#include "crmapid_relay.h"
#include "crmapid_smtp_id.h"

/* Maximum bytes of the server's replies in a session. */
#define REPLIES_MAX 65536

/* Timeout of the reply to QUIT, which does not matter. */
#define QUIT_TIME apr_time_from_sec(1)

/* Bytes of an enhanced status code (RFC 3463) with its NUL: "5.123.456". */
#define STATUS_SIZE 10

/* The most bytes of ENVID and of an ORCPT without its type (RFC 3461, 4.4, 4.2). */
#define ENVID_MAX 100
#define ORCPT_MAX 480

/* The stage of a session. */
typedef enum stage_t {
    STAGE_HELLO,                /* before the mail: greeting, TLS, login */
    STAGE_ENVELOPE,             /* MAIL, RCPT, DATA */
    STAGE_MAIL,                 /* libcurl reads the mail */
    STAGE_END                   /* libcurl has read the mail: it may have sent
                                   the final dot */
} stage_t;

static const char *const stage_names[] = {
    "the greeting or login", "the envelope", "the mail", "the end of the mail"
};

/* A session with the server. */
typedef struct talk_t {
    CURL *curl;
    const crmd_mail_t *mail;
    const char *url;            /* of the server */
    apr_size_t pos;             /* bytes of the mail that libcurl has read */
    stage_t stage;
    apr_time_t heard;           /* time of the last reply in this stage; 0: none
                                   yet */
    apr_time_t moved;           /* when it began, a reply came, or libcurl read of the
                                   mail */
    apr_time_t until;           /* deadline of the session, including QUIT */
    int code;                   /* of the last reply with a STATUS */
    char status[STATUS_SIZE];
    int accepted;               /* the sender was */
    int offers_dsn;
    int offers_utf8;            /* SMTPUTF8 (RFC 6531) */
    int needs_utf8;             /* a recipient is not ASCII before its @ */
    const char *dsn_from;       /* the sender with parameters of DSN; NULL: no report
                                   is asked for */
    struct curl_slist *dsn_to;
    int asked;                  /* they were sent */
    int says;                   /* a refusal of the recipient or the mail says
                                   that the address does not exist */
    int exists;                 /* or that it does */
    int enough;                 /* a refusal speaks of the sender's limit */
    const char *given;          /* the id in the reply to the final dot, or
                                   NULL */
    apr_size_t replies;         /* bytes of replies so far */
    apr_pool_t *pool;
    char text[CURL_ERROR_SIZE];
} talk_t;

/* ---- callbacks of libcurl ------------------------------------------------ */

static void enter(talk_t *talk, stage_t stage)
{
    talk->stage = stage;
    talk->heard = 0;
}

/* CURLOPT_PREREQFUNCTION: the connection is ready, the envelope is next. */
static int begin_mail(void *baton, char *ip, char *own_ip, int port,
                      int own_port)
{
    talk_t *talk = baton;

    if (talk->offers_dsn && talk->dsn_from) {
        talk->asked = 1;
        curl_easy_setopt(talk->curl, CURLOPT_MAIL_FROM, talk->dsn_from);
        curl_easy_setopt(talk->curl, CURLOPT_MAIL_RCPT, talk->dsn_to);
    }
    (void)ip;
    (void)own_ip;
    (void)port;
    (void)own_port;
    enter(talk, STAGE_ENVELOPE);
    return talk->needs_utf8 && !talk->offers_utf8 ? CURL_PREREQFUNC_ABORT
           : CURL_PREREQFUNC_OK;
}

/* CURLOPT_READFUNCTION: give libcurl more of the mail. It cannot send the final
 * dot before this returns 0. */
static size_t read_mail(char *buffer, size_t size, size_t count, void *baton)
{
    talk_t *talk = baton;
    size_t n = talk->mail->len - talk->pos;

    if (n > size * count) {
        n = size * count;
    }
    if (talk->stage == STAGE_ENVELOPE || !n) {
        enter(talk, n ? STAGE_MAIL : STAGE_END);
    }
    memcpy(buffer, talk->mail->text + talk->pos, n);
    talk->pos += n;
    talk->moved = crm_time_monotonic();
    return n;
}

/* Store the code and the status of a reply's last line, LEN bytes at TEXT. The
 * rest is not stored, since servers quote the recipient. */
static void keep_status(talk_t *talk, const char *text, size_t len)
{
    char line[32], status[STATUS_SIZE];
    int code, end = 0, len_of_status = 0;

    apr_cpystrn(line, text, len < sizeof(line) ? len + 1 : sizeof(line));
    if (sscanf(line, "%3d %9[0-9.]%n", &code, status, &end) == 2
        && strchr(" \r\n", line[end])) {
        sscanf(status, "%*1[245].%*3[0-9].%*3[0-9]%n", &len_of_status);
        if (len_of_status == (int)strlen(status)) {
            talk->code = code;
            memcpy(talk->status, status, sizeof(status));
        }
    }
}

/* Return whether LINE, of the reply to EHLO, offers KEYWORD (RFC 5321, 4.1.1.1). */
static int offers(const char *line, const char *keyword)
{
    size_t len = strlen(keyword);

    return !strncmp(line, "250", 3) && line[3]
           && !strncasecmp(line + 4, keyword, len)
           && strchr(" \r\n", line[4 + len]);
}

/* Read what else matters in a line of a reply, LEN bytes at TEXT. */
static void read_words(talk_t *talk, const char *text, size_t len)
{
    const char *line = apr_pstrmemdup(talk->pool, text, len);

    if (talk->stage == STAGE_HELLO) {
        talk->offers_dsn |= offers(line, "DSN");
        talk->offers_utf8 |= offers(line, "SMTPUTF8");
    }
    else if (talk->stage == STAGE_ENVELOPE && *line == '2') {
        talk->accepted = 1;
    }
    else if (*line == '5') {
        talk->says |= crm_mail_status_says(line, talk->pool);
        talk->exists |= crm_mail_status_exists(line, talk->pool);
        talk->enough |= crm_mail_status_sent_enough(line, talk->pool);
    }
    else if (talk->stage == STAGE_END && *line == '2') {
        talk->given = crmd_smtp_id(line, talk->url, talk->mail->to,
                                   talk->pool);
    }
}

/* Return the code of the reply that decides on the mail: a refusal, or the
 * acceptance of the final dot. 0: none yet. */
static long decision_of(const talk_t *talk)
{
    long code = 0;

    if (talk->heard) {
        curl_easy_getinfo(talk->curl, CURLINFO_RESPONSE_CODE, &code);
    }
    return code >= 400 || (talk->stage == STAGE_END && code / 100 == 2)
           ? code : 0;
}

/* Return whether the verdict is certain and only QUIT is left. A refused login
 * is not a verdict: libcurl may try another mechanism. */
static int is_decided(const talk_t *talk)
{
    return talk->stage != STAGE_HELLO && decision_of(talk);
}

/* CURLOPT_HEADERFUNCTION: receive a line of a reply. */
static size_t read_reply(char *data, size_t size, size_t count, void *baton)
{
    talk_t *talk = baton;

    talk->replies += size * count;
    talk->moved = crm_time_monotonic();
    if (!is_decided(talk)) {
        talk->heard = talk->moved;
        keep_status(talk, data, size * count);
        read_words(talk, data, size * count);
    }
    return talk->replies > REPLIES_MAX ? 0 : size * count;
}

/* CURLOPT_XFERINFOFUNCTION: end the session if QUIT gets no reply. libcurl
 * would wait for two minutes, regardless of the timeout. End it as well if the daemon
 * ends and the server is silent before it can have the mail. */
static int is_over(void *baton, curl_off_t down_total, curl_off_t down,
                   curl_off_t up_total, curl_off_t up)
{
    const talk_t *talk = baton;
    apr_time_t now = crm_time_monotonic();

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    return now > talk->until
        || (is_decided(talk) && now > talk->heard + QUIT_TIME)
        || (talk->stage != STAGE_END && crmd_ending_over(talk->moved));
}

/* ---- settings ------------------------------------------------------------ */

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

static void set_talk(CURL *curl, talk_t *talk, const crmd_config_t *config)
{
    talk->curl = curl;
    talk->moved = crm_time_monotonic();
    talk->until = talk->moved + config->smtp_timeout + QUIT_TIME;
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, begin_mail);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, talk);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_mail);
    curl_easy_setopt(curl, CURLOPT_READDATA, talk);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, read_reply);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, talk);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_over);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, talk);
    /* Close the connection while the callbacks are still set. */
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
}

/* ---- the verdict --------------------------------------------------------- */

/* Return whether the refusal CODE concerns the login or the encryption, not the
 * mail (RFC 4954, RFC 3207). */
static int is_login_refusal(const talk_t *talk, long code)
{
    return talk->stage == STAGE_HELLO || code == 530 || code == 534
        || code == 535 || code == 538;
}

/* Return whether the refusal CODE says that the address does not exist
 * (contract 17.5). */
static int has_no_address(const talk_t *talk, long code)
{
    const char *status = talk->code == code ? talk->status : NULL;

    if (!talk->accepted) {
        return 0;               /* it speaks of the sender */
    }
    return !status || !strcmp(status, "5.0.0") ? talk->says
           : !talk->exists
             && crm_mail_status_failure(status, NULL, talk->pool)
                == CRM_MAIL_NO_ADDRESS;
}

/* Return the reason for a refusal by CODE. */
static const char *refusal(const talk_t *talk, long code)
{
    int has_status = talk->code == code;

    return apr_psprintf(talk->pool, "the mail server answered %ld%s%s to %s",
                        code, has_status ? " " : "",
                        has_status ? talk->status : "",
                        stage_names[talk->stage]);
}

/* Return the reason why TALK, which ended with CODE, has no reply that
 * decides. */
static const char *failure(const talk_t *talk, CURLcode code)
{
    if (talk->replies > REPLIES_MAX) {
        return "the mail server's replies are too long";
    }
    return apr_pstrcat(talk->pool, "the mail server, at ",
                       stage_names[talk->stage], ": ",
                       crmd_curl_reason(talk->curl, code, talk->text,
                                        talk->pool), NULL);
}

/* Fill RECEIPT after TALK has ended with CODE. */
static void judge(crmd_receipt_t *receipt, const talk_t *talk, CURLcode code)
{
    long decision = decision_of(talk);

    if (code == CURLE_ABORTED_BY_CALLBACK && talk->needs_utf8
        && talk->stage == STAGE_ENVELOPE && !talk->offers_utf8) {
        crmd_receipt_fill(receipt, CRMD_REFUSED, "the mail server does not offer"
                          " SMTPUTF8, which an address beyond ASCII needs");
    }
    else if (code == CURLE_OK || decision / 100 == 2) {
        crmd_receipt_fill(receipt, CRMD_SENT, NULL);
        receipt->provider_id = talk->given ? talk->given
                               : talk->mail->message_id;
    }
    else if (decision) {
        crmd_receipt_fill(receipt, decision < 500 || talk->enough
                          || is_login_refusal(talk, decision)
                          ? CRMD_NOT_NOW : CRMD_REFUSED,
                          refusal(talk, decision));
        receipt->suppress = receipt->verdict == CRMD_REFUSED
                            && has_no_address(talk, decision) ? "bounced"
                            : NULL;
    }
    else {
        crmd_receipt_fill(receipt, talk->stage == STAGE_END ? CRMD_UNKNOWN
                          : CRMD_NOT_NOW, failure(talk, code));
    }
    /* one that falls silent later keeps the thread waiting as well; one that ends the
     * connection does not, and may do so to one mail only */
    receipt->away = talk->stage == STAGE_HELLO
                    || (!decision && code == CURLE_OPERATION_TIMEDOUT);
}

/* Return the recipients of TALK: the first as TO with its PARAMETERS. */
static struct curl_slist *recipients(const talk_t *talk,
                                     const char *parameters)
{
    struct curl_slist *to;

    to = curl_slist_append(NULL, apr_pstrcat(talk->pool, "<", talk->mail->to,
                                             ">", parameters, NULL));
    for (const char *const *copy = talk->mail->copies; copy && *copy; copy++) {
        to = curl_slist_append(to, apr_pstrcat(talk->pool, "<", *copy, ">",
                                               NULL));
    }
    return to;
}

/* Return whether MAIL has a recipient that needs SMTPUTF8. */
static int needs_utf8(const crmd_mail_t *mail)
{
    int needs = !crm_email_wire_is_ascii(mail->to);

    for (const char *const *copy = mail->copies; copy && *copy; copy++) {
        needs |= !crm_email_wire_is_ascii(*copy);
    }
    return needs;
}

/* Return TEXT as xtext (RFC 3461, section 4) in POOL; NULL if it cannot be, or is
 * longer than MOST. */
static const char *xtext(const char *text, size_t most, apr_pool_t *pool)
{
    char *made = apr_palloc(pool, 3 * strlen(text) + 1), *out = made;

    for (; *text; text++) {
        if (*text <= ' ' || *text > '~') {
            return NULL;
        }
        if (*text == '+' || *text == '=') {
            out += sprintf(out, "+%02X", (unsigned)*text);
        }
        else {
            *out++ = *text;
        }
    }
    *out = '\0';
    return (size_t)(out - made) <= most ? made : NULL;
}

/* Let TALK ask for a report of the delivery to its first recipient. It names the
 * mail by its Message-ID, which nobody else can know (contract 18.4). */
static void ask_for_report(talk_t *talk)
{
    const crmd_mail_t *mail = talk->mail;
    const char *id = xtext(mail->message_id, ENVID_MAX, talk->pool);
    const char *to = xtext(mail->to, ORCPT_MAX, talk->pool);

    if (id && to && xtext(mail->from, ORCPT_MAX, talk->pool)
        && id[strlen(id) - 1] == '>') {
        talk->dsn_from = apr_pstrcat(talk->pool, "<", mail->from,
                                     "> RET=HDRS ENVID=", id, NULL);
        talk->dsn_to = recipients(talk, apr_pstrcat(
            talk->pool, " NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=rfc822;<", to,
            ">", NULL));
    }
}

/* Return whether TALK's server has refused the envelope in words that it may have
 * for the parameters of DSN. It has accepted nothing. */
static int refuses_parameters(const talk_t *talk)
{
    static const long codes[] = {500, 501, 503, 504, 553, 555};
    long code = talk->asked && talk->stage == STAGE_ENVELOPE
                ? decision_of(talk) : 0;

    for (size_t i = 0; i < CRM_NELTS(codes); i++) {
        if (code == codes[i]) {
            return 1;
        }
    }
    return 0;
}

/* Send the mail of TALK with CURL, and fill RECEIPT. Return 0 if it may be tried
 * again without asking for a report. */
static int transfer(crmd_receipt_t *receipt, CURL *curl, talk_t *talk,
                    const crmd_config_t *config)
{
    struct curl_slist *to = recipients(talk, "");
    int done;

    set_login(curl, config);
    set_talk(curl, talk, config);
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, apr_pstrcat(
                         talk->pool, "<", talk->mail->from, ">", NULL));
    curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to);
    judge(receipt, talk, curl_easy_perform(curl));
    done = !refuses_parameters(talk);
    curl_easy_cleanup(curl);
    curl_slist_free_all(to);
    curl_slist_free_all(talk->dsn_to);
    return done;
}

/* Return the URL with the name for EHLO, in POOL. */
static const char *url_of(const crmd_config_t *config, apr_pool_t *pool)
{
    const char *url = config->smtp_url;
    const char *host = strstr(url, "://");

    if (host && !strchr(host + 3, '/')) {
        url = apr_pstrcat(pool, url, "/", config->mail_domain, NULL);
    }
    return url;
}

/* Send MAIL and fill RECEIPT. ASKS: for a report. Return as transfer() does. */
static int try_to_send(crmd_receipt_t *receipt, const crmd_mail_t *mail,
                       int asks, const crmd_config_t *config, apr_pool_t *pool)
{
    talk_t talk = {.pool = pool, .mail = mail, .url = config->smtp_url,
                   .needs_utf8 = needs_utf8(mail)};
    CURL *curl = crmd_curl_create(url_of(config, pool), "smtp,smtps",
                                  config->smtp_timeout, config->smtp_ca_file,
                                  talk.text);

    if (!curl) {
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, "out of memory");
        return 1;
    }
    if (asks) {
        ask_for_report(&talk);
    }
    return transfer(receipt, curl, &talk, config);
}

static void send_message(crmd_receipt_t *receipt,
                         const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    crm_error_t *error;
    crmd_mail_t mail;

    error = crmd_mail_make(&mail, message, config, 1, pool);
    if (error) {
        crmd_receipt_fill(receipt, CRMD_REFUSED, error->message);
        return;
    }
    if (!try_to_send(receipt, &mail, config->smtp_dsn, config, pool)) {
        try_to_send(receipt, &mail, 0, config, pool);
    }
}

static crm_error_t *check(const crmd_config_t *config,
                          const crm_channel_t *channel, apr_pool_t *pool)
{
    if (!crm_channel_is(channel, CRM_CHANNEL_EMAIL)) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "the relay smtp is"
                                 " for email only, not for %s", channel->way);
    }
    if (*config->smtp_user && !is_smtps(config)
        && strcmp(config->smtp_tls, "starttls")) {
        return crm_error_create(CRM_E_BAD_REQUEST, "smtp_user needs smtp_tls ="
                                " starttls or an smtps:// URL, so that the"
                                " password is encrypted", pool);
    }
    if (!crm_email_wire(config->mail_from)) {
        return crm_error_create(CRM_E_BAD_REQUEST, "mail_from must be an"
                                " address: the relay smtp needs it", pool);
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
