/* SPDX-License-Identifier: Apache-2.0 */
/* test_smtp.c: what became of a mail handed over by SMTP (contract 11.11) */
#include "crm_check.h"
#include "crm_server.h"

#include <stdio.h>

#include "apr_strings.h"

#include "crmapid_ending.h"
#include "crmapid_relay.h"
#include "crmapid_smtp_id.h"

#define MAIL_CHANNEL (&crm_channels[CRM_CHANNEL_EMAIL])
#define SMS_CHANNEL (&crm_channels[CRM_CHANNEL_TEXT])

/* What the server does instead of answering. */
#define HANG "hang"
#define CLOSE "close"
#define FLOOD "flood"
#define STALL "stall"

/* What the server says to each command; NULL: yes. */
typedef struct script_t {
    const char *greeting;
    const char *ehlo;
    const char *helo;
    const char *starttls;       /* set: it is offered */
    const char *auth;           /* set: it is offered, and we have a login */
    const char *mail;
    const char *rcpt;
    const char *data;
    const char *body;           /* while the mail comes, after its first line */
    const char *dot;
    const char *quit;
    int waits;                  /* what it says is no answer to wait for */
    /* What happened: */
    char commands[4096];
    char mails[65536];
} script_t;

static script_t script;
static server_t server;

/* Answer with TEXT, or YES if that is NULL. Return whether to go on. */
static int answer(int fd, const char *text, const char *yes)
{
    text = text ? text : yes;
    if (!strcmp(text, HANG)) {
        server_hang(fd);
        return 0;
    }
    if (!strcmp(text, STALL)) {
        server_stall(&server);
        return 0;
    }
    if (!strcmp(text, CLOSE)) {
        return 0;
    }
    if (!strcmp(text, FLOOD)) {
        server_flood(fd, "250-and so on and on\r\n");
        return 0;
    }
    return server_puts(fd, text);
}

/* Read the mail up to its dot into the script's MAILS. */
static int read_mail(int fd, FILE *in, script_t *s)
{
    char line[2048];

    while (fgets(line, sizeof(line), in)) {
        if (!strcmp(line, ".\r\n")) {
            return answer(fd, s->dot, "250 2.0.0 taken\r\n");
        }
        ck_assert_uint_lt(strlen(s->mails) + strlen(line), sizeof(s->mails));
        strcat(s->mails, line);
        if (s->body && !answer(fd, s->body, "")) {
            return 0;
        }
    }
    return 0;
}

static int obey(int fd, FILE *in, script_t *s, const char *line)
{
    if (!strncmp(line, "EHLO", 4)) {
        return answer(fd, s->ehlo, s->auth
                      ? "250-me\r\n250 AUTH PLAIN\r\n" : s->starttls
                      ? "250-me\r\n250 STARTTLS\r\n" : "250 me\r\n");
    }
    if (!strncmp(line, "HELO", 4)) {
        return answer(fd, s->helo, "250 me\r\n");
    }
    if (!strncmp(line, "STARTTLS", 8)) {
        return answer(fd, s->starttls, NULL);
    }
    if (!strncmp(line, "AUTH", 4)) {
        char login[256];

        return server_puts(fd, "334 \r\n")
            && fgets(login, sizeof(login), in)
            && answer(fd, s->auth, "235 ok\r\n");
    }
    if (!strncmp(line, "MAIL", 4)) {
        return answer(fd, s->mail, "250 ok\r\n");
    }
    if (!strncmp(line, "RCPT", 4)) {
        return answer(fd, s->rcpt, "250 ok\r\n");
    }
    if (!strncmp(line, "DATA", 4)) {
        return answer(fd, s->data, "354 go on\r\n")
            && (s->data || read_mail(fd, in, s));
    }
    if (!strncmp(line, "QUIT", 4)) {
        answer(fd, s->quit, "221 bye\r\n");
        return 0;
    }
    return answer(fd, NULL, "502 what?\r\n");
}

static void serve(int fd, void *baton)
{
    script_t *s = baton;
    FILE *in = fdopen(dup(fd), "r");
    char line[2048];

    if (answer(fd, s->greeting, "220 me\r\n")) {
        while (fgets(line, sizeof(line), in)) {
            strcat(s->commands, line);
            if (!obey(fd, in, s, line)) {
                break;
            }
        }
    }
    fclose(in);
}

static crmd_config_t *config_of(int port)
{
    crmd_config_t *config = apr_pcalloc(crm_check_pool(), sizeof(*config));

    config->mail_from = "sales@example.com";
    config->mail_from_name = "";
    config->mail_domain = "crm.example.com";
    config->sms_from = config->voice_from = "";
    config->smtp_url = apr_psprintf(crm_check_pool(), "smtp://127.0.0.1:%d",
                                    port);
    config->smtp_tls = "no";
    config->smtp_ca_file = "";
    config->smtp_user = config->smtp_password = "";
    config->smtp_timeout = SERVER_LONG;
    config->relay_concurrency = 4;
    return config;
}

static const crmd_message_t message = {
    .channel = MAIL_CHANNEL, .id = "0197c0de-0000-7000-8000-000000000001",
    .workspace_id = "0197c0de-0000-7000-8000-00000000000a",
    .to = "ada@example.org", .to_name = "Ada", .subject = "Hello",
    .text = "Dear Ada,\n.\n..dots\nbye"
};

/* Return whether the script lets the client wait until its time is up. */
static int will_hang(void)
{
    const char *const said[] = {script.greeting, script.ehlo, script.mail,
                                script.rcpt, script.data, script.body,
                                script.dot};

    for (size_t i = 0; i < CRM_NELTS(said); i++) {
        if (said[i] && (!strcmp(said[i], HANG) || !strcmp(said[i], STALL))) {
            return 1;
        }
    }
    return script.waits;
}

/* Hand MSG to a server that follows the script, as CONFIG or as usual. */
static crmd_receipt_t hand_over(const crmd_message_t *msg,
                                crmd_config_t *config)
{
    crmd_receipt_t receipt;

    server_start(&server, serve, &script);
    if (!config) {
        config = config_of(server.port);
    }
    config->smtp_url = apr_psprintf(crm_check_pool(), "smtp://127.0.0.1:%d",
                                    server.port);
    if (will_hang()) {
        config->smtp_timeout = SERVER_SHORT;
    }
    crmd_relay_send(&receipt, &crmd_relay_smtp, msg, config,
                    crm_check_pool());
    server_stop_soon(&server, 1);
    return receipt;
}

/* What servers say about a recipient quotes it. */
#define ADA "<ada@example.org>: "
#define HELLO "to the greeting or login"
#define ENVELOPE "to the envelope"
#define END "to the end of the mail"

/* What each behaviour of a server means. */
static const struct {
    const char *name;
    script_t script;
    crmd_verdict_t verdict;
    const char *reason;         /* a part of it */
} cases[] = {
    {"all is well", {0}, CRMD_SENT, NULL},
    {"the answer has several lines", {.dot = "250-a\r\n250-b\r\n250 c\r\n"},
     CRMD_SENT, NULL},
    {"dot 251", {.dot = "251 elsewhere\r\n"}, CRMD_SENT, NULL},
    {"no answer to QUIT", {.quit = HANG}, CRMD_SENT, NULL},
    {"QUIT is refused", {.quit = "500 never\r\n"}, CRMD_SENT, NULL},
    {"QUIT without end", {.quit = FLOOD}, CRMD_SENT, NULL},
    {"EHLO 502, HELO 250", {.ehlo = "502 what?\r\n"}, CRMD_SENT, NULL},
    {"STARTTLS 454", {.starttls = "454 not now\r\n"}, CRMD_SENT, NULL},

    {"no greeting", {.greeting = HANG}, CRMD_NOT_NOW, "timed out"},
    {"greeting 421", {.greeting = "421 busy\r\n"}, CRMD_NOT_NOW, "421 " HELLO},
    {"greeting 554", {.greeting = "554 5.7.1 no\r\n"}, CRMD_NOT_NOW,
     "554 5.7.1 " HELLO},
    {"greeting 554, then silence", {.greeting = "554 no\r\n", .quit = HANG,
                                    .waits = 1}, CRMD_NOT_NOW, "554 " HELLO},
    {"greeting, closed", {.greeting = CLOSE}, CRMD_NOT_NOW, ""},
    {"greeting without end", {.greeting = FLOOD}, CRMD_NOT_NOW, ""},
    {"EHLO hangs", {.ehlo = HANG}, CRMD_NOT_NOW, "timed out"},
    {"EHLO closes", {.ehlo = CLOSE}, CRMD_NOT_NOW, ""},
    {"EHLO without end", {.ehlo = FLOOD}, CRMD_NOT_NOW, ""},
    {"EHLO and HELO 421", {.ehlo = "421 no\r\n", .helo = "421 no\r\n"},
     CRMD_NOT_NOW, "421 " HELLO},
    {"EHLO and HELO 554", {.ehlo = "554 no\r\n", .helo = "554 no\r\n"},
     CRMD_NOT_NOW, "554 " HELLO},
    {"EHLO 554, HELO closes", {.ehlo = "554 no\r\n", .helo = CLOSE},
     CRMD_NOT_NOW, ""},
    {"AUTH 454", {.auth = "454 later\r\n"}, CRMD_NOT_NOW, "454 " HELLO},
    {"AUTH 504", {.auth = "504 what?\r\n"}, CRMD_NOT_NOW, "504 " HELLO},
    {"AUTH 535", {.auth = "535 5.7.8 geheim is wrong\r\n"}, CRMD_NOT_NOW,
     "535 5.7.8 " HELLO},
    {"AUTH closes", {.auth = CLOSE}, CRMD_NOT_NOW, ""},

    {"MAIL 451", {.mail = "451 later\r\n"}, CRMD_NOT_NOW, "451 " ENVELOPE},
    {"MAIL 550", {.mail = "550 not you\r\n"}, CRMD_REFUSED, "550 " ENVELOPE},
    {"MAIL 530", {.mail = "530 login\r\n"}, CRMD_NOT_NOW, "530 " ENVELOPE},
    {"MAIL 534", {.mail = "534 weak\r\n"}, CRMD_NOT_NOW, "534 " ENVELOPE},
    {"MAIL 535", {.mail = "535 wrong\r\n"}, CRMD_NOT_NOW, "535 " ENVELOPE},
    {"MAIL 538", {.mail = "538 encrypt\r\n"}, CRMD_NOT_NOW, "538 " ENVELOPE},
    {"MAIL closes", {.mail = CLOSE}, CRMD_NOT_NOW,
     "at the envelope: the server closed the connection"},
    {"MAIL hangs", {.mail = HANG}, CRMD_NOT_NOW, "timed out"},
    /* The no that is heard last was to something else. */
    {"STARTTLS 220 and more", {.starttls = "220 go\r\n250 me\r\n"},
     CRMD_NOT_NOW, "login: the server says what does not belong there"},
    {"STARTTLS 502, MAIL closes", {.starttls = "502 no\r\n", .mail = CLOSE},
     CRMD_NOT_NOW, "at the envelope"},
    {"RCPT 450", {.rcpt = "450 4.2.1 " ADA "greylisted\r\n"}, CRMD_NOT_NOW,
     "450 4.2.1 " ENVELOPE},
    {"RCPT 550", {.rcpt = "550-" ADA "no such\r\n550 5.1.1 " ADA "user\r\n"},
     CRMD_REFUSED, "550 5.1.1 " ENVELOPE},
    {"RCPT 550, a number behind it", {.rcpt = "550 5.1.49301234 no\r\n"},
     CRMD_REFUSED, "550 " ENVELOPE},
    {"RCPT 550, a number", {.rcpt = "550 49301234 no\r\n"}, CRMD_REFUSED,
     "550 " ENVELOPE},
    {"RCPT 550, a status of no class", {.rcpt = "550 3.1.1 no\r\n"},
     CRMD_REFUSED, "550 " ENVELOPE},
    {"RCPT 500", {.rcpt = "500 5.5.2 what?\r\n"}, CRMD_REFUSED,
     "500 5.5.2 " ENVELOPE},
    {"RCPT 550, nothing behind it", {.rcpt = "550\r\n"}, CRMD_REFUSED,
     "550 " ENVELOPE},
    {"RCPT 550, then silence", {.rcpt = "550 " ADA "no\r\n", .quit = HANG},
     CRMD_REFUSED, "550 " ENVELOPE},
    {"RCPT 550, QUIT refused", {.rcpt = "550 5.1.1 no\r\n",
                                .quit = "500 5.5.1 " ADA "\r\n"},
     CRMD_REFUSED, "550 5.1.1 " ENVELOPE},
    {"RCPT closes", {.rcpt = CLOSE}, CRMD_NOT_NOW, "at the envelope"},
    {"RCPT hangs", {.rcpt = HANG}, CRMD_NOT_NOW, "timed out"},
    {"RCPT without end", {.rcpt = FLOOD}, CRMD_NOT_NOW, "too long"},
    {"DATA 452", {.data = "452 4.3.1 full\r\n"}, CRMD_NOT_NOW,
     "452 4.3.1 " ENVELOPE},
    {"DATA 554", {.data = "554 " ADA "no\r\n"}, CRMD_REFUSED,
     "554 " ENVELOPE},
    {"DATA hangs", {.data = HANG}, CRMD_NOT_NOW, "timed out"},
    {"DATA closes", {.data = CLOSE}, CRMD_NOT_NOW, "at the envelope"},

    {"dot 451", {.dot = "451 later\r\n"}, CRMD_NOT_NOW, "451 " END},
    {"dot 421, closed", {.dot = "421 bye\r\n", .quit = CLOSE}, CRMD_NOT_NOW,
     "421 " END},
    {"dot 554", {.dot = "554 5.7.1 " ADA "spam\r\n"}, CRMD_REFUSED,
     "554 5.7.1 " END},
    {"dot 554, closed", {.dot = "554 spam\r\n", .quit = CLOSE}, CRMD_REFUSED,
     "554 " END},
    {"dot 554, then silence", {.dot = "554 spam\r\n", .quit = HANG},
     CRMD_REFUSED, "554 " END},
    {"dot hangs", {.dot = HANG}, CRMD_UNKNOWN, "timeout"},
    {"dot closes", {.dot = CLOSE}, CRMD_UNKNOWN, "at the end of the mail"},
    {"dot without end", {.dot = FLOOD}, CRMD_UNKNOWN, "too long"},
    {"dot 354", {.dot = "354 more\r\n"}, CRMD_UNKNOWN, ""},
    {"dot garbage", {.dot = "\x01\xff garbage\r\n", .waits = 1},
     CRMD_UNKNOWN, ""},
    {"dot half a line", {.dot = "250 o", .waits = 1}, CRMD_UNKNOWN, ""},
    {"dot half an answer", {.dot = "250-o\r\n", .waits = 1}, CRMD_UNKNOWN, ""},
};

/* Replies to RCPT or to the final dot, and what the address is suppressed for, if
 * they say that it does not exist (contract 17.5). */
static const struct {
    const char *reply;
    const char *suppress;
} refusals[] = {
    {"550 5.1.1 " ADA "no\r\n", "bounced"},
    {"550-5.1.1 a\r\n550 5.1.1 b\r\n", "bounced"},
    {"550 5.2.1 no\r\n", "bounced"},
    {"550 5.1.10 no\r\n", "bounced"},
    {"550-5.2.1 The user is receiving\r\n550 5.2.1 mail at a rate that\r\n",
     NULL},
    {"552 5.1.1 mailbox is over quota\r\n", NULL},
    {"550 No such user\r\n", "bounced"},
    {"550-User unknown\r\n550 bye\r\n", "bounced"},
    {"550 5.0.0 no such mailbox\r\n", "bounced"},
    {"550 no\r\n", NULL},
    {"550 5.7.1 user unknown\r\n", NULL},
    {"554 5.5.0 no\r\n", NULL},
    {"552 5.2.2 full\r\n", NULL},
    {"550 blocked, user unknown\r\n", NULL},
    {"450 4.1.1 user unknown\r\n", NULL},
    {"450 5.1.1 user unknown\r\n", NULL},
    {"535 5.1.1 user unknown\r\n", NULL},
};

/* Replies of servers whose account has sent as much as it may for now, and others
 * with such words. */
static const struct {
    const char *reply;
    crmd_verdict_t verdict;
} limits[] = {
    {"550 5.4.5 Daily user sending quota exceeded. a1-2 - gsmtp\r\n",
     CRMD_NOT_NOW},
    {"550-5.4.5 Daily SMTP relay sending limit exceeded for customer.\r\n"
     "550 5.4.5 See the help. a1-2 - gsmtp\r\n", CRMD_NOT_NOW},
    {"550 5.7.1 Daily SMTP relay limit exceeded for customer\r\n", CRMD_NOT_NOW},
    {"554 5.2.0 SubmissionQuotaExceededException; the sender's submission quota"
     " was exceeded\r\n", CRMD_NOT_NOW},
    {"550 Domain a.example has exceeded the max emails per hour (9/9)\r\n",
     CRMD_NOT_NOW},
    {"550 " ADA " Relay quota will reset in 1.5 hours\r\n", CRMD_NOT_NOW},
    {"550 5.7.1 You have reached your daily sending limit\r\n", CRMD_NOT_NOW},
    {"552 5.2.2 " ADA " mailbox is over quota\r\n", CRMD_REFUSED},
    {"552 5.3.4 message exceeds the size limit\r\n", CRMD_REFUSED},
    {"550 5.4.5 no\r\n", CRMD_REFUSED},
    {"550 5.7.1 this looks like spam\r\n", CRMD_REFUSED},
};

START_TEST(a_refusal_may_speak_of_the_senders_limit)
{
    const script_t scripts[] = {
        {.mail = limits[_i].reply}, {.rcpt = limits[_i].reply},
        {.data = limits[_i].reply}, {.dot = limits[_i].reply},
    };

    for (size_t i = 0; i < COUNT(scripts); i++) {
        crmd_receipt_t receipt;

        script = scripts[i];
        receipt = hand_over(&message, config_of(0));
        ck_assert_msg(receipt.verdict == limits[_i].verdict, "%d: verdict %d"
                      " after %s", (int)i, receipt.verdict, limits[_i].reply);
        ck_assert(!receipt.suppress);
    }
}
END_TEST

START_TEST(a_refusal_may_speak_of_the_address)
{
    script_t at_rcpt = {.rcpt = refusals[_i].reply};
    script_t at_dot = {.dot = refusals[_i].reply};
    script_t at_mail = {.mail = refusals[_i].reply};

    script = at_rcpt;
    ck_assert_pstr_eq(hand_over(&message, config_of(0)).suppress,
                      refusals[_i].suppress);
    script = at_dot;
    ck_assert_pstr_eq(hand_over(&message, config_of(0)).suppress,
                      refusals[_i].suppress);
    script = at_mail;
    ck_assert_msg(!hand_over(&message, config_of(0)).suppress,
                  "%s speaks of the sender", refusals[_i].reply);
}
END_TEST

/* Replies to the final dot, and the ids in them (contract 18.4). */
#define SES "0102018f1c2d3e4f-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9-000000"

static const struct {
    const char *url, *reply, *id;
} ids[] = {
    {"smtp://127.0.0.1:25", "250 Ok " SES "\r\n", SES},
    {"smtp://email-smtp.eu-west-1.amazonaws.com:587", "250 Ok " SES "\r\n",
     "<" SES "@eu-west-1.amazonses.com>"},
    {"smtps://email-smtp.us-east-1.amazonaws.com", "250 Ok " SES "\r\n",
     "<" SES "@email.amazonses.com>"},
    {"smtp://h", "250 2.0.0 OK <b5ff12@AM0.prod.outlook.com> [Hostname=A]\r\n",
     "<b5ff12@AM0.prod.outlook.com>"},
    {"smtp://h", "250 2.0.0 Ok: 0197c0de00007000800000000001\r\n",
     "0197c0de00007000800000000001"},
    {"smtp://h", "250 OK 20261125.1@mta.example.net\r\n",
     "<20261125.1@mta.example.net>"},
    {"smtp://h", "250 2.0.0 Ok: queued as 4FwX2h5Kz9Fw82h5Kz7zQ\r\n", NULL},
    {"smtp://h", "250 OK id=1abcDE-0005xy-Lq\r\n", NULL},
    {"smtp://h", "250 2.0.0 OK 1700000000 a1-20020ac8.12 - gsmtp\r\n", NULL},
    {"smtp://h", "250 2.0.0 w9ABC123 Message accepted for delivery\r\n", NULL},
    {"smtp://h", "250 2.0.0 <ada@example.org> accepted\r\n", NULL},
    {"smtp://h", "250 Ok\r\n", NULL}, {"smtp://h", "250\r\n", NULL},
    {"smtp://h", "250 Ok TakenForDelivery\r\n", NULL},
    {"smtp://h", "250 Ok " SES " queued\r\n", NULL},
    {"smtp://h", "250 kept\r\n", NULL}, {"smtp://h", "250 Ok 4FwX2h5\r\n", NULL},
    {"smtp://h", "250 OK <a@>\r\n", NULL}, {"smtp://h", "250 OK <>\r\n", NULL},
    {"smtp://h", "", NULL},
};

START_TEST(a_reply_may_have_the_message_id)
{
    const char *id = crmd_smtp_id(ids[_i].reply, ids[_i].url,
                                  "ada@example.org", crm_check_pool());

    if (ids[_i].id) {
        ck_assert_msg(id && !strcmp(id, ids[_i].id), "%s: %s", ids[_i].reply,
                      id);
    }
    else {
        ck_assert_msg(!id, "%s: %s", ids[_i].reply, id);
    }
}
END_TEST

START_TEST(the_id_of_the_reply_is_the_receipts)
{
    script_t given = {.dot = "250 Ok " SES "\r\n"};

    script = given;
    ck_assert_str_eq(hand_over(&message, config_of(0)).provider_id, SES);
}
END_TEST

/* Return whether REASON says that the server is away: it does not greet or let us log
 * in, or is silent later. */
static int is_away(const char *reason)
{
    return reason && (strstr(reason, " the greeting or login")
                      || strstr(reason, "timed out") || strstr(reason, "timeout")
                      || (strstr(reason, "too long") && !script.rcpt
                          && !script.dot));
}

START_TEST(each_behaviour_has_its_verdict)
{
    crmd_config_t *config = config_of(0);
    crmd_receipt_t receipt;

    script = cases[_i].script;
    if (script.auth) {
        config->smtp_user = "me";
        config->smtp_password = "geheim";
    }
    if (script.starttls) {
        config->smtp_tls = "opportunistic";
    }
    receipt = hand_over(&message, config);
    ck_assert_msg(receipt.verdict == cases[_i].verdict,
                  "%s: verdict %d instead of %d (%s)", cases[_i].name,
                  receipt.verdict, cases[_i].verdict, receipt.reason);
    if (receipt.verdict == CRMD_SENT) {
        ck_assert_str_eq(receipt.provider_id, "<0197c0de-0000-7000-8000-"
                         "000000000001@crm.example.com>");
        ck_assert_ptr_null(receipt.reason);
    }
    else {
        ck_assert_msg(strstr(receipt.reason, cases[_i].reason),
                      "%s: the reason is \"%s\"", cases[_i].name,
                      receipt.reason);
        ck_assert_ptr_null(strpbrk(receipt.reason, "\r\n"));
        /* It goes to the log and to the tables. */
        ck_assert_msg(!strstr(receipt.reason, "ada")
                      && !strstr(receipt.reason, "4930")
                      && !strstr(receipt.reason, "geheim"),
                      "%s: the reason is \"%s\"", cases[_i].name,
                      receipt.reason);
    }
    ck_assert_msg(receipt.away == is_away(receipt.reason), "%s: away %d",
                  cases[_i].name, receipt.away);
    ck_assert_msg((strstr(script.mails, "Dear Ada,") != NULL)
                  == (receipt.verdict == CRMD_SENT || script.dot),
                  "%s: the server has %s", cases[_i].name, script.mails);
}
END_TEST

START_TEST(the_envelope_and_the_mail_arrive)
{
    crmd_receipt_t receipt = hand_over(&message, NULL);

    ck_assert_int_eq(receipt.verdict, CRMD_SENT);
    ck_assert_msg(strstr(script.commands, "EHLO crm.example.com\r\n"),
                  "%s", script.commands);
    ck_assert_msg(strstr(script.commands, "MAIL FROM:<sales@example.com>"),
                  "%s", script.commands);
    ck_assert_msg(strstr(script.commands, "RCPT TO:<ada@example.org>\r\n"),
                  "%s", script.commands);
    ck_assert_msg(strstr(script.mails, "\r\nTo: Ada <ada@example.org>\r\n")
                  || !strncmp(script.mails, "To: ", 4), "%s", script.mails);
    /* Lines that begin with a dot had one more on the way (RFC 5321, 4.5.2). */
    ck_assert_msg(strstr(script.mails, "Dear Ada,\r\n..\r\n...dots\r\nbye"),
                  "%s", script.mails);
    ck_assert_msg(strstr(script.commands, "DATA\r\nQUIT\r\n"), "%s",
                  script.commands);
    for (const char *c = script.mails; *c; c++) {
        ck_assert(*c != '\n' || c[-1] == '\r');
        ck_assert(*c > 0 && (*c != '\r' || c[1] == '\n'));
    }
}
END_TEST

/* 98 bytes: with < and > as many as ENVID may have (RFC 3461, 4.4). */
#define LONG_ID "0123456789012345678901234567890123456789012345678901234567" \
    "890123456789012345678901234567@x.example"

/* Who offers DSN is asked for a report, and nobody else. */
static const struct {
    script_t script;
    const char *id;
    int asked;
} offers[] = {
    {{.ehlo = "250-me\r\n250-8BITMIME\r\n250 DSN\r\n"}, NULL, 1},
    {{.ehlo = "250-me\r\n250-dsn\r\n250 SIZE\r\n"}, NULL, 1},
    {{.ehlo = NULL}, NULL, 0},
    {{.ehlo = "250-me\r\n250 DSNX\r\n"}, NULL, 0},
    {{.greeting = "220 DSN me\r\n"}, NULL, 0},
    {{.ehlo = "250-me\r\n250 DSN\r\n"}, "<" LONG_ID ">", 1},
    {{.ehlo = "250-me\r\n250 DSN\r\n"}, "<x" LONG_ID ">", 0},
};

START_TEST(a_report_is_asked_for_where_it_is_offered)
{
    crmd_config_t *config = config_of(0);
    crmd_message_t named = message;
    int asked;

    named.message_id = offers[_i].id;
    config->smtp_dsn = 1;
    script = offers[_i].script;
    ck_assert_int_eq(hand_over(&named, config).verdict, CRMD_SENT);
    asked = strstr(script.commands, " RET=HDRS") && strstr(script.commands,
                                                           " NOTIFY=");
    ck_assert_msg(asked == offers[_i].asked, "%s", script.commands);
}
END_TEST

/* Of a mail that is larger than what sockets hold not all was handed over when
 * time was up or the connection lost: it was certainly not taken. */
START_TEST(what_ends_before_the_mail_does_is_not_now)
{
    crmd_message_t large = message;
    char *text = apr_palloc(crm_check_pool(), 20000001);
    crmd_receipt_t receipt;

    memset(text, 'x', 20000000);
    text[20000000] = '\0';
    large.text = text;
    large.html = "";
    script.body = _i ? STALL : CLOSE;
    receipt = hand_over(&large, NULL);
    ck_assert_msg(receipt.verdict == CRMD_NOT_NOW, "verdict %d: %s",
                  receipt.verdict, receipt.reason);
}
END_TEST

/* The daemon ends while the server is silent: whoever cannot have the mail yet is given
 * up, and whoever may have it is waited for. */
START_TEST(a_daemon_that_ends_waits_only_for_who_may_have_the_mail)
{
    static const struct {
        script_t script;
        crmd_verdict_t verdict;
        int length;             /* of the text; 0: it is short */
    } silences[] = {
        {{.greeting = HANG}, CRMD_NOT_NOW, 0},
        {{.rcpt = HANG}, CRMD_NOT_NOW, 0},
        {{.body = STALL}, CRMD_NOT_NOW, 20000000},
        {{.dot = HANG}, CRMD_UNKNOWN, 0},
    };
    const apr_interval_time_t wait = apr_time_from_sec(4);
    int may_have = silences[_i].verdict == CRMD_UNKNOWN;
    crmd_message_t msg = message;
    crmd_config_t *config;
    crmd_receipt_t receipt;
    apr_time_t took;

    if (silences[_i].length) {
        char *text = apr_pcalloc(crm_check_pool(), silences[_i].length + 1);

        msg.text = memset(text, 'x', silences[_i].length);
        msg.html = "";
    }
    script = silences[_i].script;
    server_start(&server, serve, &script);
    config = config_of(server.port);
    if (may_have) {
        config->smtp_timeout = wait;
    }
    crmd_ending(1);
    took = -apr_time_now();
    crmd_relay_send(&receipt, &crmd_relay_smtp, &msg, config,
                    crm_check_pool());
    took += apr_time_now();
    crmd_ending(0);
    server_stop_soon(&server, 1);
    ck_assert_msg(receipt.verdict == silences[_i].verdict, "verdict %d: %s",
                  receipt.verdict, receipt.reason);
    ck_assert_msg((strstr(receipt.reason, "crmapid ends") == NULL) == may_have,
                  "%s", receipt.reason);
    ck_assert(!may_have || took >= wait);
}
END_TEST

START_TEST(a_refused_connection_is_not_now)
{
    int port, fd = server_open(&port, 0);
    crmd_config_t *config = config_of(port);
    crmd_receipt_t receipt;

    crmd_relay_send(&receipt, &crmd_relay_smtp, &message, config,
                    crm_check_pool());
    ck_assert_int_eq(receipt.verdict, CRMD_NOT_NOW);
    ck_assert_msg(strstr(receipt.reason, ": Connection refused"), "%s",
                  receipt.reason);
    close(fd);
}
END_TEST

START_TEST(without_tls_nothing_is_sent_where_it_must_be)
{
    crmd_config_t *config = config_of(0);
    crmd_receipt_t receipt;

    config->smtp_tls = "starttls";
    config->smtp_user = "me";
    config->smtp_password = "geheim";
    receipt = hand_over(&message, config);
    ck_assert_int_eq(receipt.verdict, CRMD_NOT_NOW);
    ck_assert_msg(strstr(receipt.reason, "which smtp_tls requires"), "%s",
                  receipt.reason);
    ck_assert_ptr_null(strstr(script.commands, "MAIL"));
    ck_assert_ptr_null(strstr(script.commands, "AUTH"));
    memset(script.commands, 0, sizeof(script.commands));
    config->smtp_tls = "opportunistic";
    config->smtp_user = "";
    receipt = hand_over(&message, config);
    ck_assert_int_eq(receipt.verdict, CRMD_SENT);
}
END_TEST

START_TEST(a_login_is_used)
{
    crmd_config_t *config = config_of(0);

    config->smtp_user = "me";
    config->smtp_password = "geheim";
    script.auth = "235 ok\r\n";
    ck_assert_int_eq(hand_over(&message, config).verdict, CRMD_SENT);
    ck_assert_ptr_nonnull(strstr(script.commands, "AUTH PLAIN"));
}
END_TEST

START_TEST(wrong_addresses_are_refused_without_a_connection)
{
    static const char *const wrong[] = {
        "", "ada", "a@b@c", "a b@c", "ada@x\r\nRCPT TO:<eve@x>", "a>@x",
        "<a@x>", "a@x>", "a,b@x", "a@", "@x", "a@x y", "\"a\"@x"
    };
    int port, fd = server_open(&port, 0);

    for (size_t i = 0; i < CRM_NELTS(wrong); i++) {
        crmd_message_t other = message;
        crmd_receipt_t receipt;

        other.to = wrong[i];
        crmd_relay_send(&receipt, &crmd_relay_smtp, &other, config_of(port),
                        crm_check_pool());
        ck_assert_msg(receipt.verdict == CRMD_REFUSED, "%s: %d", wrong[i],
                      receipt.verdict);
    }
    close(fd);
}
END_TEST

START_TEST(what_the_configuration_lacks_is_told)
{
    apr_pool_t *pool = crm_check_pool();
    crmd_config_t *config = config_of(25);
    const crmd_relay_t *relay = &crmd_relay_smtp;

    ck_assert_ptr_null(relay->check(config, MAIL_CHANNEL, pool));
    ck_assert_ptr_nonnull(relay->check(config, SMS_CHANNEL, pool));
    config->mail_from = "";
    ck_assert_ptr_nonnull(relay->check(config, MAIL_CHANNEL, pool));
    config->mail_from = "a@b.c";
    config->smtp_url = "smtps://x";
    ck_assert_ptr_null(relay->check(config, MAIL_CHANNEL, pool));
    config->smtp_user = "me";
    ck_assert_ptr_null(relay->check(config, MAIL_CHANNEL, pool));
    /* Nobody on the way is told a password. */
    config->smtp_url = "smtp://x";
    ck_assert_ptr_nonnull(relay->check(config, MAIL_CHANNEL, pool));
    config->smtp_tls = "opportunistic";
    ck_assert_ptr_nonnull(relay->check(config, MAIL_CHANNEL, pool));
    config->smtp_tls = "starttls";
    ck_assert_ptr_null(relay->check(config, MAIL_CHANNEL, pool));
    ck_assert_int_eq(relay->repeatable(config), 0);
    config->smtp_deduplicates = 1;
    ck_assert_int_eq(relay->repeatable(config), 1);
}
END_TEST

/* Each test begins with a server that says yes. */
static void reset_script(void)
{
    memset(&script, 0, sizeof(script));
}

int main(void)
{
    Suite *suite = suite_create("smtp");
    TCase *verdicts = tcase_create("verdicts"), *rest = tcase_create("rest");

    tcase_add_loop_test(verdicts, each_behaviour_has_its_verdict, 0,
                        COUNT(cases));
    tcase_add_loop_test(verdicts, a_refusal_may_speak_of_the_senders_limit, 0,
                        COUNT(limits));
    tcase_add_loop_test(verdicts, a_refusal_may_speak_of_the_address, 0,
                        COUNT(refusals));
    tcase_add_loop_test(verdicts, a_reply_may_have_the_message_id, 0,
                        COUNT(ids));
    tcase_add_test(verdicts, the_id_of_the_reply_is_the_receipts);
    tcase_add_test(rest, the_envelope_and_the_mail_arrive);
    tcase_add_loop_test(rest, a_report_is_asked_for_where_it_is_offered, 0,
                        COUNT(offers));
    tcase_add_loop_test(rest, what_ends_before_the_mail_does_is_not_now, 0, 2);
    tcase_add_loop_test(rest,
                        a_daemon_that_ends_waits_only_for_who_may_have_the_mail,
                        0, 4);
    tcase_add_test(rest, a_refused_connection_is_not_now);
    tcase_add_test(rest, without_tls_nothing_is_sent_where_it_must_be);
    tcase_add_test(rest, a_login_is_used);
    tcase_add_test(rest, wrong_addresses_are_refused_without_a_connection);
    tcase_add_test(rest, what_the_configuration_lacks_is_told);
    tcase_add_checked_fixture(verdicts, reset_script, NULL);
    tcase_add_checked_fixture(rest, reset_script, NULL);
    suite_add_tcase(suite, verdicts);
    suite_add_tcase(suite, rest);
    return crm_check_main(suite);
}
