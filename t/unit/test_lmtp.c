/* SPDX-License-Identifier: Apache-2.0 */
/* test_lmtp.c: what a mail system says to the worker's LMTP socket, and what it
 * is answered (RFC 2033, RFC 5321); no database */
#include "crm_check.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_mail_deliver.h"
#include "crmapid_conn.h"
#include "crmapid_lmtp_session.h"
#include "crmapid_log.h"

#define MAX_MESSAGE 1000
#define ROOM (1 << 20)

/* What the mails are taken with. */
#define MAIL_SETTINGS .mail_attachment_bytes = 7, .mail_hourly = 8, \
    .mail_keep_original = 1, .mail_authserv_id = "mx.example"

/* How much later than now it is; atomic. */
static apr_time_t ahead;

apr_int64_t __real_crm_time_monotonic(void);
apr_int64_t __wrap_crm_time_monotonic(void);
apr_int64_t __wrap_crm_time_monotonic(void)
{
    return __real_crm_time_monotonic()
           + __atomic_load_n(&ahead, __ATOMIC_SEQ_CST);
}

/* --- instead of the database (the linker's --wrap) --- */

/* The compiler compares these with what they stand for. */
__typeof__(crmd_conn_open) __wrap_crmd_conn_open;
__typeof__(crm_mail_expect) __wrap_crm_mail_expect;
__typeof__(crm_mail_deliver) __wrap_crm_mail_deliver;

/* The mails that were handed over: "SENDER>RECIPIENT,RECIPIENT:TEXT|". */
static const char *handed;

/* How many times the database can be reached. */
static int reachable;

crm_error_t *__wrap_crmd_conn_open(crm_conn_t **conn_p,
                                   const crmd_config_t *config,
                                   apr_interval_time_t timeout,
                                   apr_pool_t *conn_pool,
                                   apr_pool_t *scratch_pool)
{
    (void)config;
    (void)timeout;
    *conn_p = apr_pcalloc(conn_pool, 1);
    return reachable-- > 0 ? NULL
           : crm_error_create(CRM_E_UNAVAILABLE, "away", scratch_pool);
}

/* Return what becomes of a mail to ADDRESS: its first letter says so. */
static crm_mail_result_t result_of(const char *address)
{
    return *address == 'x' ? CRM_MAIL_UNKNOWN : *address == 'y'
           ? CRM_MAIL_RETRY : *address == 'z' ? CRM_MAIL_REFUSED
           : CRM_MAIL_STORED;
}

static void fill(crm_mail_outcome_t *outcome, const char *address)
{
    memset(outcome, 0, sizeof(*outcome));
    outcome->recipient = address;
    outcome->reason = "so that it has one";
    outcome->again = *address == 'w';
    outcome->result = result_of(address);
}

/* At RCPT, capitals are known, and their mail becomes what small letters say. */
void __wrap_crm_mail_expect(crm_mail_outcome_t *outcome, crm_conn_t *conn,
                            const char *address, const char *workspace,
                            apr_pool_t *result_pool)
{
    (void)conn;
    (void)workspace;
    (void)result_pool;
    fill(outcome, address);
}

void __wrap_crm_mail_deliver(apr_array_header_t **outcomes_p,
                             crm_conn_t *conn, const char *bytes,
                             apr_size_t len,
                             const apr_array_header_t *recipients,
                             const crm_mail_options_t *options,
                             apr_pool_t *result_pool)
{
    apr_pool_t *pool = crm_check_pool();

    (void)conn;
    ck_assert_uint_eq(options->attachment_bytes, 7);
    ck_assert_int_eq(options->hourly, 8);
    ck_assert_int_eq(options->keep_original, 1);
    ck_assert_str_eq(options->authserv_ids, "mx.example");
    handed = apr_pstrcat(pool, handed, options->sender, ">", NULL);
    *outcomes_p = apr_array_make(result_pool, 1, sizeof(crm_mail_outcome_t));
    for (int i = 0; i < recipients->nelts; i++) {
        const char *address = APR_ARRAY_IDX(recipients, i, const char *);
        char small[] = {(char)(*address | 0x20), '\0'};

        fill(apr_array_push(*outcomes_p), apr_pstrcat(
                 result_pool, small, address + 1, NULL));
        handed = apr_pstrcat(pool, handed, i ? "," : "", address, NULL);
    }
    handed = len < 100
             ? apr_pstrcat(pool, handed, ":", apr_pstrmemdup(pool, bytes, len),
                           "|", NULL)
             : apr_psprintf(pool, "%s:%d bytes|", handed, (int)len);
}

/* --- a session --- */

/* Return the replies in the LEN bytes at SAID: the code and the enhanced code of
 * the last line of each, with blanks between them. */
static const char *codes_of(const char *said, apr_size_t len)
{
    const char *codes = "";

    while (len) {
        const char *end = memchr(said, '\n', len);
        int code = 0, used = 0;
        char more[10] = "";

        ck_assert(end && end - said > 4 && end[-1] == '\r');
        sscanf(said, "%3d%n %9[0-9.]", &code, &used, more);
        ck_assert_int_eq(used, 3);
        if (said[3] == ' ') {
            codes = apr_psprintf(crm_check_pool(), "%s%s%d%s%s", codes,
                                 *codes ? " " : "", code, *more ? "/" : "",
                                 more);
        }
        len -= (apr_size_t)(end + 1 - said);
        said = end + 1;
    }
    return codes;
}

/* A client that goes on when the daemon ends, or is slow. */
typedef struct late_t {
    const crmd_lmtp_door_t *door; /* NULL: nobody waits */
    const char *until;          /* the reply after which the daemon ends */
    int stays;                  /* it does not */
    const char *line;           /* NULL: x */
    int dot;                    /* the dot follows LINE, too */
    int max;                    /* the largest mail; 0: MAX_MESSAGE */
    int deaf;                   /* the client reads nothing before the session ends */
    int stop;                   /* closing this ends it */
    int lines;                  /* how many lines follow then, and the dot */
    apr_interval_time_t each;   /* how long each of them takes */
    apr_interval_time_t more;   /* and how much longer than the one before */
    apr_interval_time_t timeout; /* of silence; 0: a minute */
    int fd;
    char said[4096];            /* the replies */
} late_t;

/* Read replies to LATE up to its UNTIL, or all if that is not to come any more. */
static void hear(late_t *late)
{
    size_t got = strlen(late->said);
    ssize_t n;

    while (!strstr(late->said, late->until)
           && (n = recv(late->fd, late->said + got,
                        sizeof(late->said) - 1 - got, 0)) > 0) {
        got += (size_t)n;
    }
}

/* Return whether the session, which is the program's first thread, waits. */
static int session_waits(void)
{
    char stat[64] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    const char *end;

    ck_assert(file && fgets(stat, sizeof(stat), file));
    fclose(file);
    end = strrchr(stat, ')');
    return end && end[2] == 'S';
}

static void *be_late(void *baton)
{
    late_t *late = baton;
    int unread;

    struct pollfd poller = {late->fd, POLLIN, 0};
    const char *line = late->line ? late->line : "x\r\n";

    if (late->deaf) {
        poll(&poller, 1, -1);   /* there is too much to say */
    }
    else {
        hear(late);
    }
    if (!late->stays) {
        close(late->stop);
    }
    for (int i = 0; i < late->lines; i++) {
        __atomic_add_fetch(&ahead, late->each + i * late->more,
                           __ATOMIC_SEQ_CST);
        send(late->fd, line, strlen(line), MSG_NOSIGNAL);
        do {
            sched_yield();
        } while (!ioctl(late->fd, SIOCOUTQ, &unread)
                 && (unread || !session_waits()));
    }
    if (late->lines && (!late->line || late->dot)) {
        send(late->fd, ".\r\n", 3, MSG_NOSIGNAL);
    }
    if (late->stays) {
        shutdown(late->fd, SHUT_WR);
    }
    late->until = "no such reply";
    if (!late->deaf) {
        hear(late);
    }
    return NULL;
}

/* Let a client say TEXT, and then be LATE. Return what it is answered. */
static const char *late_session(const char *text, late_t *late)
{
    static crmd_config_t config = {.database = "", MAIL_SETTINGS};
    apr_pool_t *pool;
    crm_conn_t *conn = NULL;
    crmd_lmtp_door_t door = {.listener = -1};
    int pair[2], stop[2], room = 4096;
    pthread_t thread;

    crmd_log_open("error", "text", "/dev/null", crm_check_pool());
    handed = "";
    reachable = 1000;
    apr_pool_create(&pool, crm_check_pool());
    ck_assert(!pipe(stop) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    if (late->deaf) {
        ck_assert(!setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room,
                              sizeof(room)));
    }
    ck_assert(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
    ck_assert(send(pair[1], text, strlen(text), 0) == (ssize_t)strlen(text));
    late->fd = pair[1];
    late->stop = stop[1];
    ck_assert(!pthread_create(&thread, NULL, be_late, late));
    config.lmtp_timeout = late->timeout ? late->timeout : APR_USEC_PER_SEC * 60;
    config.mail_max_message = late->max ? late->max : MAX_MESSAGE;
    if (late->door) {
        door = *late->door;
    }
    door.stop = stop[0];
    crmd_lmtp_serve(&conn, pair[0], &door, &config, pool, pool);
    close(pair[0]);
    pthread_join(thread, NULL);
    close(pair[1]);
    close(stop[0]);
    if (late->stays) {
        close(stop[1]);
    }
    apr_pool_destroy(pool);
    return codes_of(late->said, strlen(late->said));
}

/* Let a client say the LEN bytes at TEXT, and then nothing: ENDS: it closes the
 * connection. STOP: a descriptor that is readable when the daemon ends, or -1.
 * Return what it is answered. */
static const char *session(const char *text, apr_size_t len, int ends, int stop)
{
    static crmd_config_t config = {.lmtp_timeout = 50000,
        .mail_max_message = MAX_MESSAGE, .database = "", MAIL_SETTINGS};
    char *said = apr_palloc(crm_check_pool(), ROOM);
    apr_pool_t *pool, *conn_pool;
    crm_conn_t *conn = NULL;
    apr_size_t got = 0;
    crmd_lmtp_door_t door = {.stop = stop, .listener = -1};
    int pair[2], room = ROOM;
    ssize_t n;

    crmd_log_open("error", "text", "/dev/null", crm_check_pool());
    handed = "";
    apr_pool_create(&pool, crm_check_pool());
    apr_pool_create(&conn_pool, pool);
    ck_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    for (int i = 0; i < 2; i++) {
        ck_assert(!setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &room,
                              sizeof(room)));
    }
    ck_assert(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
    ck_assert(send(pair[1], text, len, 0) == (ssize_t)len);
    if (ends) {
        ck_assert(!shutdown(pair[1], SHUT_WR));
    }
    crmd_lmtp_serve(&conn, pair[0], &door, &config, conn_pool, pool);
    close(pair[0]);
    while ((n = recv(pair[1], said + got, ROOM - got, 0)) > 0) {
        got += (apr_size_t)n;
    }
    close(pair[1]);
    apr_pool_destroy(pool);
    return codes_of(said, got);
}

#define HELLO "LHLO mx\r\n"
#define MAIL HELLO "MAIL FROM:<a@b>\r\n"
#define RCPT MAIL "RCPT TO:<c@d>\r\n"
#define DATA RCPT "DATA\r\n"
#define TO_DATA "220 250 250/2.1.0 250/2.1.5 354"
#define TAKEN TO_DATA " 250/2.0.0"

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LINES HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED \
    HUNDRED                     /* 900 bytes */
#define FIVE "a\r\nb\r\nc\r\nd\r\ne\r\n"
#define TWENTY FIVE FIVE FIVE FIVE
#define FIVE_500 " 500/5.5.1 500/5.5.1 500/5.5.1 500/5.5.1 500/5.5.1"
#define TWENTY_500 FIVE_500 FIVE_500 FIVE_500 FIVE_500

/* A line of 2,001 bytes; one of 2,047 is the longest. */
#define LONG "NOOP " LINES LINES HUNDRED "012345678901234567890123456789" \
    "012345678901234567890123456789012345678901234567890123456789" "012345"

#define NOOP10 "NOOP\r\nNOOP\r\nNOOP\r\nNOOP\r\nNOOP\r\nNOOP\r\nNOOP\r\n" \
    "NOOP\r\nNOOP\r\nNOOP\r\n"
#define NOOPS NOOP10 NOOP10 NOOP10 NOOP10 NOOP10 NOOP10 NOOP10 NOOP10 NOOP10 NOOP10

#define TEXT(text) text, sizeof(text) - 1

static const struct {
    const char *said;
    apr_size_t len;
    const char *answers;
    const char *handed;         /* NULL: nothing */
} cases[] = {
    /* commands */
    {TEXT("lhlo x\r\nNoOp\r\nvrfy a\r\nquit\r\nNOOP\r\n"),
     "220 250 250/2.0.0 252/2.5.2 221/2.0.0", NULL},
    {TEXT("LHLO x\nNOOP\n"), "220 250 250/2.0.0", NULL},
    {TEXT("LHLO\r\nLHLO \r\nHELO x\r\nEHLO x\r\n"),
     "220 501/5.5.4 501/5.5.4 500/5.5.1 500/5.5.1", NULL},
    {TEXT("MAIL FROM:<a@b>\r\n"), "220 503/5.5.1", NULL},
    {TEXT(MAIL "MAIL FROM:<a@b>\r\n"), "220 250 250/2.1.0 503/5.5.1", NULL},
    {TEXT(HELLO "RCPT TO:<c@d>\r\nDATA\r\n"), "220 250 503/5.5.1 503/5.5.1",
     NULL},
    {TEXT(MAIL "DATA\r\n"), "220 250 250/2.1.0 503/5.5.1", NULL},
    {TEXT(RCPT "DATA x\r\n"), "220 250 250/2.1.0 250/2.1.5 501/5.5.4", NULL},
    {TEXT(RCPT "RSET\r\nRCPT TO:<c@d>\r\n"),
     "220 250 250/2.1.0 250/2.1.5 250/2.0.0 503/5.5.1", NULL},
    {TEXT(RCPT HELLO "RCPT TO:<c@d>\r\n"),
     "220 250 250/2.1.0 250/2.1.5 250 503/5.5.1", NULL},
    /* a session of nothing but faults ends */
    {TEXT(TWENTY "NOOP\r\n"), "220" TWENTY_500 " 421/4.7.0", NULL},
    {TEXT("NOOP\r\n" FIVE FIVE FIVE "b\r\nb\r\nb\r\nb\r\nNOOP\r\n"),
     "220 250/2.0.0" FIVE_500 FIVE_500 FIVE_500
     " 500/5.5.1 500/5.5.1 500/5.5.1 500/5.5.1 250/2.0.0", NULL},
    /* lines */
    {TEXT(LONG "0123456789012345678901234567890123456789012345\nNOOP\r\n"),
     "220 250/2.0.0 250/2.0.0", NULL},
    {TEXT(LONG "01234567890123456789012345678901234567890123456\nNOOP\r\n"),
     "220 500/5.5.2 250/2.0.0", NULL},
    {TEXT("NO\0OP\r\nNOOP\0\r\nNOOP\r\n"),
     "220 500/5.5.2 500/5.5.2 250/2.0.0", NULL},
    /* paths */
    {TEXT(HELLO "MAIL FROM:a@b\r\nMAIL FROM <a@b>\r\nMAIL FROM:<a@b\r\n"
          "MAIL FROM:<a@b>x\r\nMAIL TO:<a@b>\r\nMAIL FROM:<\xff@b>\r\nMAIL\r\n"),
     "220 250 501/5.5.4 501/5.5.4 501/5.5.4 501/5.5.4 501/5.5.4 501/5.5.4"
     " 501/5.5.4", NULL},
    {TEXT(MAIL "RCPT TO:<>\r\nRCPT TO:c@d\r\nRCPT TO:<\xc3@d>\r\n"
          "RCPT TO:<c@d> NOTIFY=NEVER\r\nRCPT TO:<c@d> \r\n"),
     "220 250 250/2.1.0 501/5.5.4 501/5.5.4 501/5.5.4 555/5.5.4 250/2.1.5",
     NULL},
    {TEXT(HELLO "mail from: <a@b>\r\nrcpt to: <c@d>\r\ndata\r\nx\r\n.\r\n"),
     TAKEN, "a@b>c@d:x\r\n|"},
    {TEXT(HELLO "MAIL FROM:<>\r\nRCPT TO:<@a,@b:c@d>\r\nDATA\r\n.\r\n"),
     TAKEN, ">c@d:|"},
    {TEXT(HELLO "MAIL FROM:<@a>\r\nRCPT TO:<\"c>:\"@d>\r\nDATA\r\n.\r\n"),
     TAKEN, "@a>\"c>:\"@d:|"},
    {TEXT(HELLO "MAIL FROM:<@a> BODY=7BIT SIZE=1:>\r\n"), "220 250 250/2.1.0",
     NULL},
    {TEXT(HELLO "MAIL FROM:<\xc3\xa9@b> SMTPUTF8 BODY=8BITMIME\r\n"),
     "220 250 250/2.1.0", NULL},
    /* parameters */
    {TEXT(HELLO "MAIL FROM:<a@b> SIZE=\r\nMAIL FROM:<a@b> SIZE=x\r\n"
          "MAIL FROM:<a@b> SIZE=-1\r\nMAIL FROM:<a@b> BODY=BINARYMIME\r\n"
          "MAIL FROM:<a@b> RET=HDRS\r\nMAIL FROM:<a@b> SIZE=1001\r\n"
          "MAIL FROM:<a@b> SIZE=99999999999999999999\r\n"
          "MAIL FROM:<a@b> SIZE=1000\r\n"),
     "220 250 501/5.5.4 501/5.5.4 501/5.5.4 555/5.5.4 555/5.5.4 552/5.3.4"
     " 552/5.3.4 250/2.1.0", NULL},
    /* what becomes of a mail is said for each of its recipients */
    {TEXT(MAIL "RCPT TO:<x@d>\r\nRCPT TO:<y@d>\r\nDATA\r\n"),
     "220 250 250/2.1.0 550/5.1.1 451/4.3.0 503/5.5.1", NULL},
    {TEXT(MAIL "RCPT TO:<W@d>\r\nRCPT TO:<X@d>\r\nRCPT TO:<Y@d>\r\n"
          "RCPT TO:<Z@d>\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n"
          "MAIL FROM:<e@b>\r\n"),
     "220 250 250/2.1.0 250/2.1.5 250/2.1.5 250/2.1.5 250/2.1.5 250/2.1.5 354"
     " 250/2.0.0 550/5.1.1 451/4.3.0 554/5.6.0 250/2.0.0 250/2.1.0",
     "a@b>W@d,X@d,Y@d,Z@d,c@d:x\r\n|"},
    /* the end of a mail */
    {TEXT(DATA ".\r\n"), TAKEN, "a@b>c@d:|"},
    {TEXT(DATA "a\n.\nb\r.\r\nc\r\n..\r\n.d\r\n.\rx\r\r\n.\r\n"), TAKEN,
     "a@b>c@d:a\n.\nb\r.\r\nc\r\n.\r\nd\r\n\rx\r\r\n|"},
    {TEXT(DATA "a\r\n.\r\r\n.\r\n"), TAKEN, "a@b>c@d:a\r\n\r\r\n|"},
    {TEXT(DATA "a\r\n.\n.\r\nb\r\n.\r\n"), TAKEN,
     "a@b>c@d:a\r\n\n.\r\nb\r\n|"},
    {TEXT(DATA "a\0b\r\n.\r\n"), TAKEN, "a@b>c@d:a|"},
    {TEXT(DATA "half a mail\r\n."), TO_DATA, NULL},
    {TEXT(DATA "half a mail\r\n.\r"), TO_DATA, NULL},
    /* its size: 1,000 bytes are taken, one more is not */
    {TEXT(DATA LINES TEN TEN TEN TEN TEN TEN TEN TEN TEN "01234567\r\n.\r\n"),
     TAKEN, "a@b>c@d:1000 bytes|"},
    {TEXT(MAIL "RCPT TO:<c@d>\r\nRCPT TO:<e@d>\r\nDATA\r\n" LINES TEN TEN TEN
          TEN TEN TEN TEN TEN TEN "012345678\r\n.\r\nMAIL FROM:<a@b>\r\n"),
     "220 250 250/2.1.0 250/2.1.5 250/2.1.5 354 552/5.3.4 552/5.3.4 250/2.1.0",
     NULL},
    {TEXT(DATA LINES LINES "\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"
          "x\r\n.\r\n"), TO_DATA " 552/5.3.4 250/2.1.0 250/2.1.5 354 250/2.0.0",
     "a@b>c@d:x\r\n|"},
};

START_TEST(a_session)
{
    const char *answers;

    reachable = 1000;
    answers = session(cases[_i].said, cases[_i].len, 1, -1);
    ck_assert_str_eq(answers, cases[_i].answers);
    ck_assert_str_eq(handed, cases[_i].handed ? cases[_i].handed : "");
}
END_TEST

/* 100 recipients of a mail; the others come with another one (RFC 5321,
 * 4.5.3.1.10). */
START_TEST(many_recipients)
{
    const char *text = MAIL, *answers = "220 250 250/2.1.0";

    reachable = 1000;
    for (int i = 0; i <= CRM_MAIL_LIST_MAX; i++) {
        text = apr_psprintf(crm_check_pool(), "%sRCPT TO:<c%d@d>\r\n", text, i);
        answers = apr_pstrcat(crm_check_pool(), answers, i < CRM_MAIL_LIST_MAX
                              ? " 250/2.1.5" : " 452/4.5.3", NULL);
    }
    ck_assert_str_eq(session(text, strlen(text), 1, -1), answers);
}
END_TEST

/* Nothing is refused for good while the database is away. */
START_TEST(the_database_is_away)
{
    reachable = 0;
    ck_assert_str_eq(session(TEXT(RCPT), 1, -1),
                     "220 250 250/2.1.0 451/4.3.0");
    reachable = 2;
    ck_assert_str_eq(session(TEXT(MAIL "RCPT TO:<c@d>\r\nRCPT TO:<e@d>\r\n"
                                  "DATA\r\nx\r\n.\r\nNOOP\r\n"), 1, -1),
                     "220 250 250/2.1.0 250/2.1.5 250/2.1.5 354 451/4.3.0"
                     " 451/4.3.0 250/2.0.0");
    ck_assert_str_eq(handed, "");
}
END_TEST

/* A client that is silent must leave, wherever it is; when the daemon ends, one
 * that has begun a mail may finish it. */
START_TEST(silence_and_the_end)
{
    int stop[2];

    reachable = 1000;
    ck_assert_str_eq(session(TEXT(HELLO), 0, -1), "220 250 421/4.4.2");
    ck_assert_str_eq(session(TEXT(DATA "x"), 0, -1), TO_DATA " 421/4.4.2");
    ck_assert(!pipe(stop));
    close(stop[1]);
    ck_assert_str_eq(session(TEXT(""), 0, stop[0]), "220 421/4.3.2");
    ck_assert_str_eq(session(TEXT(HELLO "NOOP\r\n"), 0, stop[0]),
                     "220 421/4.3.2");
    close(stop[0]);
}
END_TEST

/* When the daemon ends, a mail that has begun has ten seconds to come, and who is
 * between two mails none. */
START_TEST(a_mail_that_has_begun)
{
    late_t whole = {.until = "354", .lines = 50};
    late_t slow = {.until = "354", .lines = 50, .each = APR_USEC_PER_SEC};
    late_t idle = {.until = "250 2.0.0"};
    apr_int64_t begun;

    ck_assert_str_eq(late_session(DATA, &whole), TAKEN " 421/4.3.2");
    ck_assert_str_eq(handed, "a@b>c@d:150 bytes|");
    ck_assert_str_eq(late_session(DATA, &slow), TO_DATA " 421/4.3.2");
    ck_assert_str_eq(handed, "");
    begun = __real_crm_time_monotonic();
    ck_assert_str_eq(late_session(MAIL "RSET\r\n", &idle),
                     "220 250 250/2.1.0 250/2.0.0 421/4.3.2");
    ck_assert_int_lt(__real_crm_time_monotonic() - begun,
                     APR_USEC_PER_SEC * 8);
}
END_TEST

/* A descriptor with something to read: a client waits for a thread. */
static int waiting(void)
{
    int ends[2];

    ck_assert(!pipe(ends) && write(ends[1], "x", 1) == 1);
    close(ends[1]);
    return ends[0];
}

/* A client that says nothing has the timeout, and a second while others wait. */
START_TEST(a_silent_client)
{
    const crmd_lmtp_door_t crowd = {.listener = waiting()};
    late_t alone = {.until = "421", .stays = 1, .timeout = APR_USEC_PER_SEC};
    late_t crowded = {.door = &crowd, .until = "421", .stays = 1};
    apr_int64_t begun = __real_crm_time_monotonic();

    ck_assert_str_eq(late_session(HELLO, &alone), "220 250 421/4.4.2");
    ck_assert_str_eq(late_session(HELLO, &crowded), "220 250 421/4.4.2");
    ck_assert_int_lt(__real_crm_time_monotonic() - begun,
                     APR_USEC_PER_SEC * 8);
    close(crowd.listener);
}
END_TEST

/* A client that is never silent for long has ten times the timeout for a mail, whatever
 * it says. */
START_TEST(a_slow_client)
{
    late_t in_time = {.until = "354", .stays = 1, .lines = 10,
                      .each = APR_USEC_PER_SEC * 50};
    late_t slow = {.until = "354", .stays = 1, .lines = 50,
                   .each = APR_USEC_PER_SEC * 50};
    late_t talker = {.until = "250", .stays = 1, .lines = 50,
                     .each = APR_USEC_PER_SEC * 50, .line = "NOOP\r\n"};
    late_t typist = {.until = "250", .stays = 1, .lines = 50,
                     .each = APR_USEC_PER_SEC * 50, .line = "N"};
    late_t sender = {.until = "354", .stays = 1, .lines = 50,
                     .each = APR_USEC_PER_SEC * 50,
                     .line = "x\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n"
                             "DATA\r\n"};
    const char *said;

    ck_assert_str_eq(late_session(DATA, &in_time), TAKEN);
    ck_assert_str_eq(late_session(DATA, &slow), TO_DATA " 421/4.4.2");
    ck_assert_str_eq(handed, "");
    said = late_session(HELLO, &talker);
    ck_assert(!strncmp(said, "220 250 250/2.0.0 250/2.0.0", 27));
    ck_assert_int_lt((int)strlen(said), 20 * (int)strlen(" 250/2.0.0"));
    ck_assert_ptr_nonnull(strstr(said, " 421/4.4.2"));
    ck_assert_str_eq(late_session(HELLO, &typist), "220 250 421/4.4.2");
    ck_assert_ptr_null(strstr(late_session(DATA, &sender), "421"));
}
END_TEST

/* While others wait, and no thread is free, a client may let us wait for a second in
 * all, and for another one for each MiB of its mail. Clients that are silent, or say as
 * much as they need not to be, would hold up all mail. */
START_TEST(others_wait)
{
    const crmd_lmtp_door_t crowd = {.listener = waiting()};
    const crmd_lmtp_door_t room = {.listener = crowd.listener, .free = 1};
    const crmd_lmtp_door_t empty = {.listener = -1};
    const crmd_lmtp_door_t *doors[] = {&crowd, &room, &empty};

    for (int i = 0; i < 3; i++) {
        const char *end = i ? "" : " 421/4.4.2", *said;
        late_t silent = {.door = doors[i], .until = "220", .stays = 1, .lines = 50,
                         .each = APR_USEC_PER_SEC * 2, .line = "N"};
        late_t talker = {.door = doors[i], .until = "250", .stays = 1,
                         .lines = 200, .each = APR_USEC_PER_SEC,
                         .line = "NOOP\r\n"};
        late_t slow = {.door = doors[i], .until = "354", .stays = 1,
                       .lines = 200, .each = APR_USEC_PER_SEC};
        late_t quick = {.door = doors[i], .until = "250 2.0.0", .stays = 1};

        ck_assert_str_eq(late_session("", &silent), apr_pstrcat(
                             crm_check_pool(), "220", end, NULL));
        said = late_session(HELLO, &talker);
        ck_assert_int_eq(!i, !!strstr(said, " 421/4.4.2"));
        ck_assert_str_eq(late_session(DATA, &slow), i ? TAKEN
                         : TO_DATA " 421/4.4.2");
        ck_assert_str_eq(late_session(DATA ".\r\n", &quick), TAKEN);
    }
    close(crowd.listener);
}
END_TEST

#define MIB 1048576

/* Large mails take their time. */
START_TEST(others_wait_for_a_large_mail)
{
    const crmd_lmtp_door_t crowd = {.listener = waiting()};
    char *line = apr_palloc(crm_check_pool(), MIB + 1);
    late_t large = {.door = &crowd, .max = 3 * MIB, .until = "354", .stays = 1,
                    .lines = 2, .each = APR_USEC_PER_SEC / 10 * 6, .dot = 1};

    memset(line, 'x', MIB);
    memcpy(line + MIB - 2, "\r\n", 3);
    large.line = line;
    ck_assert_str_eq(late_session(DATA, &large), TAKEN);
    close(crowd.listener);
}
END_TEST

/* What one mail took is not counted for the next one, nor how large it was. */
START_TEST(others_wait_for_several_mails)
{
    const crmd_lmtp_door_t crowd = {.listener = waiting()};
    const char next[] = "\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n";
    char *line = apr_palloc(crm_check_pool(), MIB + sizeof(next));
    late_t several = {.door = &crowd, .max = 3 * MIB, .until = "354", .stays = 1,
                      .lines = 5, .each = APR_USEC_PER_SEC / 10 * 6,
                      .line = apr_pstrcat(crm_check_pool(), "x", next, NULL)};
    late_t slower = {.door = &crowd, .max = 3 * MIB, .until = "354", .stays = 1,
                     .lines = 2, .each = APR_USEC_PER_SEC / 10 * 6,
                     .more = APR_USEC_PER_SEC / 10 * 9, .line = line};

    ck_assert_ptr_null(strstr(late_session(DATA, &several), "421"));
    memset(line, 'x', MIB);
    memcpy(line + MIB, next, sizeof(next));
    ck_assert_str_eq(late_session(DATA, &slower), TAKEN
                     " 250/2.1.0 250/2.1.5 354 421/4.4.2");
    close(crowd.listener);
}
END_TEST

/* A client whose mail never ends is heard to its end only if nobody waits. */
START_TEST(a_mail_without_end)
{
    const crmd_lmtp_door_t crowd = {.listener = waiting()};
    late_t full = {.door = &crowd, .until = "421", .stays = 1};
    late_t alone = {.until = "552", .stays = 1};

    ck_assert_str_eq(late_session(DATA LINES LINES LINES "\r\n.\r\n", &full),
                     TO_DATA " 421/4.3.4");
    ck_assert_str_eq(late_session(DATA LINES LINES LINES "\r\n.\r\n", &alone),
                     TO_DATA " 552/5.3.4");
    full.until = "552";
    *full.said = '\0';
    ck_assert_str_eq(late_session(DATA LINES LINES "\r\n.\r\n", &full),
                     TO_DATA " 552/5.3.4");
    close(crowd.listener);
}
END_TEST

/* 1,000 commands for each mail: who says NOOP for ever has no thread for ever. */
START_TEST(nothing_but_commands)
{
    const char *text = HELLO, *said;

    reachable = 1000;
    for (int i = 0; i < 9; i++) {
        text = apr_pstrcat(crm_check_pool(), text, NOOPS, NULL);
    }
    text = apr_pstrcat(crm_check_pool(), text, "MAIL FROM:<a@b>\r\n"
                       "RCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n", NULL);
    said = session(text, strlen(text), 1, -1);
    ck_assert_str_eq(said + strlen(said) - 13, "354 250/2.0.0");
    for (int i = 0; i < 10; i++) {
        text = apr_pstrcat(crm_check_pool(), text, NOOPS, NULL);
    }
    said = session(text, strlen(text), 1, -1);
    ck_assert_ptr_null(strstr(said, "421"));
    text = apr_pstrcat(crm_check_pool(), text, NOOPS, NULL);
    said = session(text, strlen(text), 1, -1);
    ck_assert_ptr_nonnull(strstr(said, " 250/2.0.0 421/4.7.0"));
}
END_TEST

/* A client that reads no replies does not hold up the end of the daemon. */
START_TEST(a_client_that_does_not_read)
{
    late_t deaf = {.until = "250", .deaf = 1};
    char *text = apr_pstrdup(crm_check_pool(), HELLO);
    apr_int64_t begun = __real_crm_time_monotonic();

    for (int i = 0; i < 7; i++) {
        text = apr_pstrcat(crm_check_pool(), text, NOOPS, NULL);
    }
    late_session(text, &deaf);
    ck_assert_int_lt(__real_crm_time_monotonic() - begun,
                     APR_USEC_PER_SEC * 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmtp");
    TCase *tcase = tcase_create("lmtp");

    tcase_add_loop_test(tcase, a_session, 0, COUNT(cases));
    tcase_add_test(tcase, many_recipients);
    tcase_add_test(tcase, the_database_is_away);
    tcase_add_test(tcase, silence_and_the_end);
    tcase_add_test(tcase, a_mail_that_has_begun);
    tcase_add_test(tcase, a_silent_client);
    tcase_add_test(tcase, a_slow_client);
    tcase_add_test(tcase, others_wait);
    tcase_add_test(tcase, others_wait_for_a_large_mail);
    tcase_add_test(tcase, others_wait_for_several_mails);
    tcase_add_test(tcase, a_mail_without_end);
    tcase_add_test(tcase, nothing_but_commands);
    tcase_add_test(tcase, a_client_that_does_not_read);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
