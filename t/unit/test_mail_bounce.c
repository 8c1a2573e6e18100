/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_bounce.c: what returns a mail, and complaints (contract 17.5) */
#include <string.h>

#include "apr_strings.h"

#include "crm_mail_test.h"

/* What returns a mail <id@crm.example> with a token, and what that says of the
 * address. BODY follows "From: FROM" and the type of a mail. */
#define TOKEN "0123456789abcdef0123456789abcdef"
#define OURS "Message-ID: <id@crm.example>\nX-Crmapi-Return: " TOKEN "\n" \
    "To: ada@example.org\nSubject: Offer\n\nDear Ada\n"
#define MIXED "Content-Type: multipart/mixed; boundary=b\n\n"
#define REPORT "Content-Type: multipart/report; boundary=b;" \
    " report-type=delivery-status\n\n"

static const struct {
    const char *name, *from, *bytes;
    const char *automatic, *status;
    crm_mail_failure_t failure;
    int returned;
} returned[] = {
    {"Yahoo", "MAILER-DAEMON@yahoo.example",
     "\nSorry, we were unable to deliver your message to the following"
     " address.\n\n<ada@example.org>:\n550: 5.1.1 <ada@example.org>: User"
     " unknown\n\n--- Below this line is a copy of the message.\n\n" OURS,
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"Postfix in multipart/mixed", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\n<ada@example.org>: host mx said: 550 5.1.1 User unknown\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"headers only, as text", "Postmaster@mx.example",
     "\nUndeliverable: 554 5.7.1 rejected\n\nOriginal message headers:\n\n"
     "Received: from a (Exim 4.92.3)\n by b\n" OURS,
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"quoted, in German", "mailer-daemon@mx.example",
     "\nIhre Nachricht ist nicht zugestellt: 550 Benutzer unbekannt\n\n"
     "> Received: from a by b\n> Message-ID: <id@crm.example>\n"
     "> X-Crmapi-Return: " TOKEN "\n",
     "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"a code, and words that say nothing", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nHost said: 550 nicht angenommen\n"
     "--b\nContent-Type: text/rfc822-headers\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 1},
    {"a code, and words about the sender", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nHost said: 550 sender address: user unknown\n"
     "--b\nContent-Type: text/rfc822-headers\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 1},
    {"a delay", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nStill trying: 451 4.7.1 greylisted\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "4.7.1", CRM_MAIL_NO_FAILURE, 1},
    {"Exim", "Mailer-Daemon@mx.example",
     "X-Failed-Recipients: ada@example.org\n\nThis is a permanent error.\n\n"
     "  ada@example.org\n    Unrouteable address\n\n------ This is a copy of"
     " your message, including all the headers. ------\n\n" OURS,
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"qmail", "MAILER-DAEMON@mx.example",
     "\nHi. This is the qmail-send program at mx.example.\n\n"
     "<ada@example.org>:\nSorry, no mailbox here by that name. (#5.1.1)\n\n"
     "--- Below this line is a copy of the message.\n\nReturn-Path: <x@y>\n"
     OURS, "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a null sender", "\"Antispam\" <x@mx.example>\nReturn-Path: <>",
     MIXED "--b\n\n550 5.7.1 blocked\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"a report without fields", "postmaster@exchange.example",
     REPORT "--b\n\nIl messaggio non è stato recapitato. #5.1.10#\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.10", CRM_MAIL_NO_ADDRESS, 1},
    {"a field that is folded", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822;\n ada@example.org\n"
     "Action: failed\nDiagnostic-Code: smtp; 550\n\t5.1.1\n unknown\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields of RFC 3464", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 5.7.509"
     " denied\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.7.509", CRM_MAIL_FAILED, 1},
    {"a blank Return-Path, no From", "\nReturn-Path: ",
     MIXED "--b\n\nerror: 550 5.1.1\n--b\nContent-Type: text/plain;"
     " name=original.txt\nContent-Disposition: attachment\n\nReceived: from a"
     " by b\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a mail in base64", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\n550 5.2.1 disabled\n--b\nContent-Type: message/rfc822\n"
     "Content-Transfer-Encoding: base64\n\n"
     "TWVzc2FnZS1JRDogPGlkQGNybS5leGFtcGxlPgpYLUNybWFwaS1SZXR1cm46IDAxMjM0NTY3\n"
     "ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmCgp4Cg==\n--b--\n",
     "bounce", "5.2.1", CRM_MAIL_NO_ADDRESS, 1},
    {"no action", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Status: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS
     "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"no status", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nDiagnostic-Code: smtp; 550 no mailbox here by that name"
     "\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"Sendmail", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nThe original message was received\n   ----- Transcript of"
     " session follows -----\n... while talking to mx:\n>>> RCPT To:<ada@"
     "example.org>\n<<< 550 5.1.1 unknown\n\n--b\nContent-Type:"
     " message/delivery-status\n\nReporting-MTA: dns; mx\nArrival-Date: x\n\n"
     "Final-Recipient: RFC822; ada@example.org\nAction: failed\nStatus: 5.1.1\n"
     "Remote-MTA: DNS; mx\nDiagnostic-Code: SMTP; 550 5.1.1 unknown\n\n"
     "--b\nContent-Type: text/rfc822-headers\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a delay that names a permanent code", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: delayed\nStatus: 4.4.1\n\n--b\nContent-Type: message/rfc822\n"
     "\n" OURS "--b--\n", "bounce", "4.4.1", CRM_MAIL_NO_FAILURE, 1},
    {"5.1.1 of a refusal", "MAILER-DAEMON@mx.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.1.1\nDiagnostic-Code: SMTP; 550 5.7.1 IP address"
     " blacklisted\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"the status is in the text", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nada@example.org: 550 5.1.1 User unknown\neve@example.org:"
     " 552 5.2.2 full\n\n--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.0.0\n\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"DragonFly", "MAILER-DAEMON <>",
     "\nThere was an error delivering your mail to <ada@example.org>.\n\n"
     "mx did not like our RCPT:\n550 5.1.1 unknown\n\nMessage headers follow.\n"
     "\n" OURS, "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"Gmail, without the mail", "mailer-daemon@googlemail.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; mx\nX-Original-Message-ID: <id@crm.example>\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\n"
     "Status: 5.1.1\n\n--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 0},
    {"a report without a type", "Mail.Delivery.System@mx.example",
     "Content-Type: multipart/report; boundary=b\n\n--b\n\nSMTP: 553 5.3.0 no\n"
     "\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.3.0", CRM_MAIL_FAILED, 1},
    {"a blank line before the mail", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\n550 5.1.1 User unknown\n"
     "--b\nContent-Type: message/rfc822\n\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields in multipart/mixed", "<>",
     MIXED "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Original-Recipient: <ada@example.org>\nAction: failed\nDiagnostic-Code:"
     " smtp; 550 ada@example.org... No such user\n\n--b\nContent-Type:"
     " message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"words without a status, of 5.0.0", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nada@example.org: Domain does not exist\n--b\nContent-Type:"
     " message/delivery-status\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.0.0\n\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.0.0", CRM_MAIL_NO_ADDRESS, 1},
    {"the header of a part", "\"Mail Deliver System\" <MAILER-DAEMON>",
     MIXED "--b\n\nada@example.org [User unknown]\n\n--b\n" OURS "--b--\n",
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"fields as a file of text", "MAILER-DAEMON@mx.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: text/plain; name=details.txt\n\n"
     "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\n"
     "Action: failed\nStatus: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields as another file", "MAILER-DAEMON@mx.example",
     MIXED "--b\n\nsorry\n--b\nContent-Type: application/octet-stream;"
     " name=ATT1.dat\nContent-Transfer-Encoding: base64\n\n"
     "UmVwb3J0aW5nLU1UQTogZG5zOyBteAoKRmluYWwtUmVjaXBpZW50OiByZmM4MjI7IGFkYUBl\n"
     "eGFtcGxlLm9yZwpBY3Rpb246IGZhaWxlZApTdGF0dXM6IDUuMS4xCg==\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"a receipt", "ada@example.org\nReturn-Path: <>",
     "Content-Type: multipart/report; boundary=b;"
     " report-type=disposition-notification\n\n--b\n\nread\n--b\n"
     "Content-Type: message/disposition-notification\n\nDisposition:"
     " manual-action/MDN-sent-manually; displayed\n\n--b\nContent-Type:"
     " text/rfc822-headers\n\n" OURS "--b--\n",
     "receipt", NULL, CRM_MAIL_NO_FAILURE, 0},
    {"a person who forwards a mail", "ada@example.org",
     MIXED "--b\n\n550 5.1.1 User unknown, they say\n"
     "--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     NULL, NULL, CRM_MAIL_NO_FAILURE, 0},
    {"a person who is postmaster", "Postmaster <postmaster@example.org>",
     "\n550 5.1.1 is what our server says. Can you help?\n",
     NULL, "5.1.1", CRM_MAIL_NO_ADDRESS, 0},
    {"Apache James answers", "post_master@example.org\nSubject: Re:Offer\n"
     "In-Reply-To: <id@crm.example>", "\nError: Invalid user address\n\n"
     "Error message below:\n550 - Requested action not taken: no such user here\n"
     "\nMessage details:\n  Subject: Offer\n", NULL, "5.0.0",
     CRM_MAIL_NO_ADDRESS, 0},
    {"words in a part of their own", "Postmaster@example.org",
     REPORT "--b\nContent-Type: message/delivery-status\n\nUndeliverable: see"
     " below.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA:"
     " dns; mx\n\nFinal-Recipient: rfc822; ada@example.org\nAction: failed\n"
     "Status: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"Domino, without the mail", "Postmaster@example.jp\nSubject: DELIVERY"
     " FAILURE: User ada (ada@example.org) not listed",
     "\nYour message was not delivered to ada@example.org\n", "bounce",
     "5.0.0", CRM_MAIL_FAILED, 0},
    {"the null sender, without the mail", "NDR <sysadmin@mx.example>\n"
     "Return-Path: <>\nSubject: Undeliverable Message", "\nNo such device.\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 0},
    {"a delay, without the mail", "MAILER-DAEMON@y.example\nSubject: Delivery"
     " Status Notification (Delay)", "\nWill be retried.\n", "bounce", NULL,
     CRM_MAIL_NO_FAILURE, 0},
    {"given up, without the mail", "MAILER-DAEMON@y.example\nSubject: Mail"
     " delivery failed", "\nThis is a permanent error: quota exceeded\n",
     "bounce", "5.0.0", CRM_MAIL_FAILED, 0},
    {"a mail server whose mails are automatic replies", "Mailer-Daemon@y.example"
     "\nAuto-Submitted: auto-replied", "\nLocal mailbox: user not found\n",
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 0},
    {"a version is no status", "MAILER-DAEMON@y.example", "\nYour message\n"
     " Subject: RELEASED Mailman 2.0.12\ndid not reach ada@example.org\n"
     "  The recipient name is not recognized\n\n" OURS,
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"Action: failure", "postmaster@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822;ada@example.org\nAction: failure\n"
     "Status: 553 Exceeded maximum inbound message size\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.0.0",
     CRM_MAIL_FAILED, 1},
    {"in Chinese", "MAILER-DAEMON@y.example", "\n无法投递\n\n" OURS, "bounce", "5.0.0",
     CRM_MAIL_FAILED, 1},
    {"in Swedish: no such address", "MAILER-DAEMON@y.example",
     "\nAdressen hittades inte\n\n" OURS, "bounce", NULL,
     CRM_MAIL_NO_ADDRESS, 1},
    {"in Chinese: no such user", "MAILER-DAEMON@y.example",
     "\n收件人不存在\n\n" OURS, "bounce", NULL, CRM_MAIL_NO_ADDRESS, 1},
    {"a person who asks about a returned mail", "ada@example.org\nSubject: Fwd:"
     " Returned mail: see transcript", "\nWhy is that?\n", NULL, NULL,
     CRM_MAIL_NO_FAILURE, 0},
    {"a holiday notice", "x@y.example\nReturn-Path: <>",
     "\nCall room 550, please.\n", "auto-reply", "5.0.0",
     CRM_MAIL_NO_FAILURE, 0},
    {"who has left", "x@y.example\nReturn-Path: <>\nAuto-Submitted:"
     " auto-replied", "\nI have left Y. This mailbox is inactive.\n",
     "auto-reply", NULL, CRM_MAIL_NO_FAILURE, 0},
    {"who has left, with a number", "x@y.example\nReturn-Path: <>",
     "\nI have left. My account has been disabled (5.1.1).\n", "auto-reply",
     "5.1.1", CRM_MAIL_NO_FAILURE, 0},
    {"what a mail server says without the mail", "MAILER-DAEMON@y.example\n"
     "Return-Path: <>", "\nThis mailbox is inactive.\n", "bounce", NULL,
     CRM_MAIL_NO_ADDRESS, 0},
    {"the null sender, in words and without the mail", "x@y.example\n"
     "Return-Path: <>\nSubject: Undeliverable", "\nUser unknown.\n",
     "bounce", NULL, CRM_MAIL_NO_ADDRESS, 0},
    {"no status and no words", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.0.0",
     CRM_MAIL_FAILED, 1},
    {"given up after days", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\nStatus:"
     " 4.4.7\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "4.4.7", CRM_MAIL_FAILED, 1},
    {"5.1.1 behind a refusal for now", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: failed\nStatus:"
     " 5.1.1\nDiagnostic-Code: smtp; 450 4.2.0 later\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.1.1",
     CRM_MAIL_NO_ADDRESS, 1},
    {"given up, in words", "Mailer-Daemon@mx.example\nX-Failed-Recipients:"
     " ada@example.org\nSubject: Mail delivery failed: returning message to"
     " sender", "\nThis is a permanent error. The following address(es)"
     " failed:\n\n  ada@example.org\n    retry timeout exceeded\n\n"
     "------ This is a copy of the message. ------\n\n" OURS, "bounce",
     "5.0.0", CRM_MAIL_FAILED, 1},
    {"given up, in the subject", "mailer-daemon@googlemail.example\n"
     "X-Failed-Recipients: ada@example.org\nSubject: Delivery Status"
     " Notification (Failure)", "\nグ\n\n----- Original message -----\n\n" OURS, "bounce", "5.0.0", CRM_MAIL_FAILED, 1},
    {"given up, with the status of the last try", "MAILER-DAEMON@y.example",
     "\nHi. This is the qmail-send program at y.example.\n\n"
     "<ada@example.org>:\nno connection. (#4.4.1)\nI'm not going to try"
     " again.\n\n--- Below this line is a copy of the message.\n\n" OURS,
     "bounce", "4.4.1", CRM_MAIL_FAILED, 1},
    {"given up, as only the subject says", "MAILER-DAEMON@y.example\n"
     "Subject: Undelivered Mail Returned to Sender", "\n<ada@example.org>: host"
     " mx.example.org refused to talk to me:\n    421 4.7.0 temporarily"
     " deferred\n\n" OURS, "bounce", "4.7.0", CRM_MAIL_FAILED, 1},
    {"given up, with a status in the text", "MAILER-DAEMON@y.example\n"
     "X-Failed-Recipients: ada@example.org", "\nfailed permanently:\n\n"
     "ada@example.org\n\nTechnical details: 552 5.7.0 no\n\n" OURS,
     "bounce", "5.7.0", CRM_MAIL_FAILED, 1},
    {"a warning, in words", "mailer-daemon@googlemail.example\nSubject:"
     " Delivery Status Notification (Delay)", "\nTHIS IS A WARNING MESSAGE"
     " ONLY.\n\nYour mail could not be delivered to ada@example.org. It will"
     " be retried.\n\n----- Original message -----\n\n" OURS, "bounce",
     NULL, CRM_MAIL_NO_FAILURE, 1},
    {"expired, as SendGrid says it", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: rfc822; ada@example.org\nAction: expired\nStatus:"
     " 4.4.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n",
     "bounce", "4.4.1", CRM_MAIL_FAILED, 1},
    {"an address of X.400", "MAILER-DAEMON@y.example",
     REPORT "--b\n\nsorry\n--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient: x400; ada@example.org\nAction: failed\nStatus: 5.1.1"
     "\n\n--b\nContent-Type: message/rfc822\n\n" OURS "--b--\n", "bounce",
     NULL, CRM_MAIL_NO_FAILURE, 1},
    {"RFC 6533", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/global-delivery-status\n\n"
     "Final-Recipient: utf-8; ada@example.org\nAction: failed\nStatus:"
     " 5.1.1\n\n--b\nContent-Type: message/global-headers\n\n" OURS
     "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"fields with blanks before the colon", "MAILER-DAEMON@y.example",
     REPORT "--b\nContent-Type: message/delivery-status\n\n"
     "Final-Recipient : rfc822; ada@example.org\nAction\t: failed\n"
     "Status : 5.1.1\n\n--b\nContent-Type: message/rfc822\n\n" OURS
     "--b--\n", "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
    {"words of another status than the fields'", "MAILER-DAEMON@y.example",
     REPORT "--b\n\nada@example.org: 550 5.1.1 User unknown\n--b\n"
     "Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822;"
     " ada@example.org\nAction: failed\nStatus: 5.2.2\n\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n", "bounce", "5.2.2",
     CRM_MAIL_FAILED, 1},
    {"qmail, of two addresses", "MAILER-DAEMON@mx.example",
     "\nHi. This is the qmail-send program at mx.example.\n\n"
     "<ada@example.org>:\nI will try again. (#4.2.2)\n\n<eve@example.org>:\n"
     "Sorry, no mailbox here by that name. (#5.1.1)\n\n"
     "--- Below this line is a copy of the message.\n\n" OURS,
     "bounce", "4.2.2", CRM_MAIL_NO_FAILURE, 1},
    {"a number by a mail server", "MAILER-DAEMON@y.example",
     "\nCall room 550, please.\n", "bounce", "5.0.0", CRM_MAIL_NO_FAILURE, 0},
    {"a mail server in Return-Path", "NDR <ndr@y.example>\n"
     "Return-Path: <MAILER-DAEMON@y.example>",
     MIXED "--b\n\n550 5.7.1 blocked\n--b\nContent-Type: message/rfc822\n\n"
     OURS "--b--\n", "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"the mail as a file", "MAILER-DAEMON@y.example",
     MIXED "--b\n\n550 5.7.1 blocked\n--b\nContent-Type:"
     " application/octet-stream\n\n" OURS "--b--\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"a header that is folded", "MAILER-DAEMON@y.example",
     "\n550 5.7.1 blocked\n\nReceived: from a by b\nMessage-ID:\n"
     " <id@crm.example>\nX-Crmapi-Return: " TOKEN "\n\nDear Ada\n",
     "bounce", "5.7.1", CRM_MAIL_FAILED, 1},
    {"words as in a header, before a blank line", "MAILER-DAEMON@y.example",
     "\nReason: 550 5.1.1 no\n\n" OURS, "bounce", "5.1.1",
     CRM_MAIL_NO_ADDRESS, 1},
    {"fields before the header", "MAILER-DAEMON@y.example",
     "\nStatus: 5.1.1\n" OURS, "bounce", "5.1.1", CRM_MAIL_NO_ADDRESS, 1},
};

START_TEST(whatever_returns_a_mail_is_a_bounce)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: ", returned[_i].from, "\n",
                                   returned[_i].bytes, NULL);
    const char *name = returned[_i].name;
    const crm_mail_bounce_t *one;
    crm_mail_failure_t failure;
    crm_mail_t mail;

    read_mail(&mail, text);
    same(name, "kind", mail.automatic, returned[_i].automatic);
    one = mail.bounces->nelts ? &APR_ARRAY_IDX(mail.bounces, 0,
                                               crm_mail_bounce_t) : NULL;
    failure = one && one->failure > mail.failure ? one->failure
              : mail.failure;
    ck_assert_msg(failure == returned[_i].failure, "%s: failure %d", name,
                  failure);
    same(name, "status", one && one->status ? one->status : mail.status,
         returned[_i].status);
    ck_assert_msg(mail.tokens->nelts == returned[_i].returned,
                  "%s: %d tokens", name, mail.tokens->nelts);
    ck_assert_msg(mail.references->nelts
                  == (returned[_i].returned || strstr(text, "X-Original-M")
                      || strstr(text, "In-Reply-To")),
                  "%s: %d references", name, mail.references->nelts);
}
END_TEST

/* What people write with the words or the names of mail servers. */
static const struct {
    const char *from, *bytes;
} written[] = {
    {"ada@example.org", "\nHi. This is the front desk.\n\n<ada@example.org>:\n"
     "550 user unknown, says my program.\n"},
    {"System Administrator <it@example.org>\nSubject: Re: Offer\n"
     "In-Reply-To: <id@crm.example>", "\nNo, thanks.\n\n> Message-ID: <id@crm"
     ".example>\n> X-Crmapi-Return: " TOKEN "\n> To: it@example.org\n"},
    {"Ada <postmaster@example.org>\nSubject: AW: Not delivered yet\n"
     "In-Reply-To: <id@crm.example>", "\nIt never came: 550 5.1.1\n"},
    {"Mail Administrator <ada@example.org>\nSubject: SV: Offer\n"
     "In-Reply-To: <id@crm.example>", MIXED "--b\n\nOn what terms?\n--b\n"
     "Content-Type: message/rfc822\n\n" OURS "--b--\n"},
};

START_TEST(a_person_may_write_as_a_mail_server)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: ", written[_i].from, "\n",
                                   written[_i].bytes, NULL);
    crm_mail_t mail;

    read_mail(&mail, text);
    same(written[_i].from, "kind", mail.automatic, NULL);
    ck_assert_int_eq(mail.bounces->nelts, 0);
    ck_assert_int_eq(mail.failure, CRM_MAIL_NO_FAILURE);
}
END_TEST

static const struct {
    const char *kind;
    int complaint;
} feedback[] = {
    {"abuse", 1}, {"fraud", 1}, {"other", 1}, {"opt-out", 1},
    {"not-spam", 0}, {"auth-failure", 0}, {"virus", 0}, {"dmarc", 0},
};

START_TEST(a_feedback_report_is_a_complaint)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, "From: fbl@isp.example\nReturn-Path: <>\nContent-Type:"
        " multipart/report; boundary=b; report-type=feedback-report\n\n--b\n"
        "\nx\n--b\nContent-Type: message/feedback-report\n\n"
        "Version: 1\nOriginal-Rcpt-To: <ada@example.org>\nFeedback-Type: ",
        feedback[_i].kind, "\n\n--b\n"
        "Content-Type: message/rfc822\n\n" OURS "--b--\n", NULL);
    crm_mail_t mail;

    read_mail(&mail, text);
    same(feedback[_i].kind, "kind", mail.automatic, "report");
    ck_assert_int_eq(mail.complaint, feedback[_i].complaint);
    same(feedback[_i].kind, "complainer", mail.complainer, "ada@example.org");
    ck_assert_int_eq(mail.tokens->nelts, 1);
    ck_assert_int_eq(mail.references->nelts, 1);
}
END_TEST

/* Who returns a mail with HEADER, and whether that is a complaint of Outlook.com
 * (JMRP), which has no report. */
static const struct {
    const char *from, *header;
    int complaint;
} outlooks[] = {
    {"staff@hotmail.com", "X-HmXmrOriginalRecipient: ada@example.org\n", 1},
    {"Staff@Hotmail.com", "x-hmxmroriginalrecipient: <ada@example.org>\n", 1},
    {"staff@hotmail.com", "", 0},
    {"eve@hotmail.com", "X-HmXmrOriginalRecipient: ada@example.org\n", 0},
};

START_TEST(outlook_com_complains_without_a_report)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(
        pool, "From: ", outlooks[_i].from, "\nSubject: complaint about message"
        " from 192.0.2.1\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
        "Content-Type: message/rfc822\n\n", outlooks[_i].header, OURS "--b--\n",
        NULL);
    int complaint = outlooks[_i].complaint;
    crm_mail_t mail;

    read_mail(&mail, text);
    same(text, "kind", mail.automatic, complaint ? "report" : NULL);
    ck_assert_int_eq(mail.complaint, complaint);
    same(text, "complainer", mail.complainer, complaint ? "ada@example.org"
         : NULL);
    ck_assert_int_eq(mail.tokens->nelts, complaint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_bounce");
    TCase *bounces = tcase_create("bounces");

    mail_init();
    tcase_add_loop_test(bounces, whatever_returns_a_mail_is_a_bounce, 0,
                        CRM_NELTS(returned));
    tcase_add_loop_test(bounces, a_person_may_write_as_a_mail_server, 0,
                        COUNT(written));
    tcase_add_loop_test(bounces, a_feedback_report_is_a_complaint, 0,
                        CRM_NELTS(feedback));
    tcase_add_loop_test(bounces, outlook_com_complains_without_a_report, 0,
                        COUNT(outlooks));
    suite_add_tcase(suite, bounces);
    return crm_check_main(suite);
}
