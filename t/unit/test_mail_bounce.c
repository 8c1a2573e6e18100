/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_bounce.c: what returns a mail, and complaints (contract 17.5) */
#include <string.h>

#include "apr_strings.h"

#include "crm_mail_status.h"
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

/* Explanations, and what they mean (contract 17.5). */
static const struct {
    const char *text, *status;
    crm_mail_failure_t failure;
} explained[] = {
    {"550 5.1.1 no", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"(#5.1.2)", "5.1.2", CRM_MAIL_NO_ADDRESS},
    {"[5.1.3]", "5.1.3", CRM_MAIL_NO_ADDRESS},
    {"said: 550-5.1.6", "5.1.6", CRM_MAIL_NO_ADDRESS},
    {"'550 5.1.10 RESOLVER.ADR.RecipientNotFound'", "5.1.10",
     CRM_MAIL_NO_ADDRESS},
    {"550 5.2.1 disabled", "5.2.1", CRM_MAIL_NO_ADDRESS},
    {"550 5.1.8 user unknown", "5.1.8", CRM_MAIL_FAILED},
    {"552 mailbox ada is over quota (#5.1.1)", "5.1.1", CRM_MAIL_FAILED},
    {"550-5.2.1 The user you are trying to contact is receiving\n550-5.2.1 mail"
     " too quickly", "5.2.1", CRM_MAIL_FAILED},
    {"550-5.2.1 The user is receiving mail at a rate that prevents", "5.2.1",
     CRM_MAIL_FAILED},
    /* of the sender's host, or what the person wants: the address is there */
    {"550 5.1.1 <ada@example.org> - 192.0.2.1 has sent to too many recipients this"
     " hour", "5.1.1", CRM_MAIL_FAILED},
    {"553 5.1.3 http://www.spamhaus.org/query/bl?ip=192.0.2.1", "5.1.3",
     CRM_MAIL_FAILED},
    {"550 5.1.1 Refused due to recipient preferences", "5.1.1", CRM_MAIL_FAILED},
    {"550 5.2.1 account disabled temporarly for exceeding receiving limits",
     "5.2.1", CRM_MAIL_FAILED},
    {"550 account is temporarily disabled", "5.0.0", CRM_MAIL_FAILED},
    {"550 account disabled temporarily", "5.0.0", CRM_MAIL_FAILED},
    {"550 5.1.11", "5.1.11", CRM_MAIL_FAILED},
    /* what another server said, within what says nothing */
    {"5.1.0 - Unknown address error 550-'5.1.1 Mailbox <ada@example.org> does"
     " not exist' (delivery attempts: 0)", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"5.1.0 - Unknown address error 550-'5.7.1 blocked'", "5.7.1",
     CRM_MAIL_FAILED},
    {"554 5.0.0 Service unavailable: 550 5.1.1", "5.1.1",
     CRM_MAIL_NO_ADDRESS},
    {"5.1.0 - Unknown address error 550-'No such user' (delivery attempts: 0)",
     "5.1.0", CRM_MAIL_NO_ADDRESS},
    {"5.1.0 Address rejected", "5.1.0", CRM_MAIL_FAILED},
    {"5.1.0 Domain example.org does not accept mail (nullMX)", "5.1.0",
     CRM_MAIL_NO_ADDRESS},
    {"5.7.0 blocked, not 5.1.1", "5.7.0", CRM_MAIL_FAILED},
    {"5.1.1, not 5.1.0", "5.1.1", CRM_MAIL_NO_ADDRESS},
    /* no such domain, as 5.1.2 */
    {"550 Host unknown (Authoritative answer from name server)", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"ada@example.org ... unknown host", NULL, CRM_MAIL_NO_ADDRESS},
    {"<<< No such domain.", NULL, CRM_MAIL_NO_ADDRESS},
    {"ada@example.org: Domain does not exist", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Domain of sender address ada@example.org does not exist", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 Sender rejected: sender domain does not exist", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 Client host rejected: unknown host", "5.0.0", CRM_MAIL_FAILED},
    {"550 Helo command rejected: no such domain", "5.0.0", CRM_MAIL_FAILED},
    /* Notes */
    {"User ada (ada@example.org) not listed in public Name & Address Book",
     NULL, CRM_MAIL_NO_ADDRESS},
    {"ada (ada@example.org) は Domino ディレクトリには見つかりません", NULL, CRM_MAIL_NO_ADDRESS},
    {"ディレクトリのリストにありません", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* servers without a status, in their words */
    {"550 There is no one at this address", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 This email address is no longer valid", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Address not present in directory", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 is not an active address at this host", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The email address could not be found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox invalid", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox not present", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 No mail box available for this user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Recipient address rejected: invalid user", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 Recipient address rejected: userunknown", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 RCPT rejected: invalid-recipient", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Recipient not exist", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 the user's email name is not found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 sorry, this recipient is not in my validrcptto list", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 user not active", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 ada is a deactivated mailbox", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 is unavailable: user is terminated", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 vdeliver: invalid or unknown virtual user", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 does not exist at the organization", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 non-existent user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 the following destination addresses were unknown", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 nessun utente simile in questo indirizzo", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 no existe dicha persona", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 no existe ese usuario", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Sender rejected: invalid user", "5.0.0", CRM_MAIL_FAILED},
    {"550 mailbox currently suspended", "5.0.0", CRM_MAIL_FAILED},
    {"550 recipient rejected: temporarily inactive", "5.0.0", CRM_MAIL_FAILED},
    {"550 Recipient address rejected: access denied", "5.0.0", CRM_MAIL_FAILED},
    {"552 5.2.2 full", "5.2.2", CRM_MAIL_FAILED},
    {"550 5.3.2", "5.3.2", CRM_MAIL_FAILED},
    {"550 5.4.1 denied", "5.4.1", CRM_MAIL_FAILED},
    {"554 5.5.0", "5.5.0", CRM_MAIL_FAILED},
    {"550 5.7.1", "5.7.1", CRM_MAIL_FAILED},
    {"550-5.7.26 unauthenticated", "5.7.26", CRM_MAIL_FAILED},
    {"5.7.509", "5.7.509", CRM_MAIL_FAILED},
    {"450 4.2.1", "4.2.1", CRM_MAIL_NO_FAILURE},
    {"451 4.7.1, then 550 5.1.1", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"550 No such user here", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"554 5.0.0 Unknown\n user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    /* with the address within the words */
    {"550 User ada@example.org unknown", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox <ada@example.org> does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 user (ada@example.org) not found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 ada@example.org", "5.0.0", CRM_MAIL_FAILED},
    {"550 No account by that name here", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The address you entered does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 account has been closed", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"553 user is inactive (mta)", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"ada@example.org [Inactive account]", NULL, CRM_MAIL_NO_ADDRESS},
    {"<ada@example.org>: This address no longer accepts mail.", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* blanks as underscores, a version with three numbers */
    {"550 BAD_RECIPIENT", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"(mxl_mta-5.5.0-3) 550 unknown user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550-5.1.1-mailbox unknown", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"554 Rcpt <ada@example.org> does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 RCPT (<ada@example.org>) dosn't exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 This user does not have an account here", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"553 mailbox name not allowed", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The email address you are trying to reach does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"this email address is wrong or no longer valid", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 the mailbox has been deleted", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Account unavailable", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 this mailbox is no longer in use", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox <ada@example.org> is not found", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"DNS type 'mx' lookup responded with code NXDOMAIN", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"all relevant MX records point to non-existent hosts", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"Domain name not found, try again", NULL, CRM_MAIL_NO_FAILURE},
    /* what Gmail and others ask the reader to do */
    {"It wasn't delivered to ada@example.org because the address couldn't be found."
     " Check for typos or unnecessary spaces and try again.", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 No such user. Please check the address and try again.", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    /* of Google Groups, which do not tell whether there is such a group */
    {"Il se peut que ce groupe n'existe pas ou que vous ne soyez pas autorisé à"
     " lui écrire.\n\nAide : https://groups.google.com/support/.", NULL,
     CRM_MAIL_NO_FAILURE},
    {"550 reverse DNS: domain name not found", "5.0.0", CRM_MAIL_FAILED},
    {"550 PTR record: NXDOMAIN", "5.0.0", CRM_MAIL_FAILED},
    /* that something does not exist, or is not found, in many languages */
    {"L'adresse de messagerie ci-dessus n'existe pas.", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 L’utilisateur n’existe pas", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Konto existiert nicht", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"La cuenta de correo no existe", NULL, CRM_MAIL_NO_ADDRESS},
    {"La casella di posta non esiste", NULL, CRM_MAIL_NO_ADDRESS},
    {"O endereço de e-mail não existe", NULL, CRM_MAIL_NO_ADDRESS},
    {"Het e-mailadres bestaat niet", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adres nie istnieje", NULL, CRM_MAIL_NO_ADDRESS},
    {"nieznany użytkownik", NULL, CRM_MAIL_NO_ADDRESS},
    {"Uživatel neexistuje", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen finns inte", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen findes ikke", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen finnes ikke", NULL, CRM_MAIL_NO_ADDRESS},
    {"Osoitetta ei löydy", NULL, CRM_MAIL_NO_ADDRESS},
    {"A cím nem létezik", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adresa nu există", NULL, CRM_MAIL_NO_ADDRESS},
    {"Пользователь не существует", NULL, CRM_MAIL_NO_ADDRESS},
    {"Почтовый ящик не найден", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Нет такого пользователя", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"Користувача не існує", NULL, CRM_MAIL_NO_ADDRESS},
    {"Η διεύθυνση δεν υπάρχει", NULL, CRM_MAIL_NO_ADDRESS},
    {"Άγνωστος χρήστης", NULL, CRM_MAIL_NO_ADDRESS},
    {"Kullanıcı bulunamadı", NULL, CRM_MAIL_NO_ADDRESS},
    {"المستخدم غير موجود", NULL, CRM_MAIL_NO_ADDRESS},
    {"Người dùng không tồn tại", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 查無此人", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"使用者不存在", NULL, CRM_MAIL_NO_ADDRESS},
    {"宛先のメールアドレスは存在しません", NULL, CRM_MAIL_NO_ADDRESS},
    {"사용자를 찾을 수 없습니다", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Die Domain des Absenders existiert nicht", "5.0.0", CRM_MAIL_FAILED},
    {"550 le domaine de l'expéditeur n'existe pas", "5.0.0", CRM_MAIL_FAILED},
    {"550 sender <ada@example.org>: user unknown", "5.0.0", CRM_MAIL_FAILED},
    {"550 Requested action not taken: mailbox unavailable\n550 invalid DNS MX or"
     " A/AAAA resource record", "5.0.0", CRM_MAIL_FAILED},
    /* an apostrophe as typographers set it */
    {"550 User doesn’t exist", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"because the address couldn’t be found", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* whatever is full, is there */
    {"550 invalid mailbox. Local mailbox ada@example.org is unavailable: account"
     " is full", "5.0.0", CRM_MAIL_FAILED},
    {"550 5.1.1 mailbox unavailable: the inbox is out of storage space",
     "5.1.1", CRM_MAIL_FAILED},
    {"550 mailbox unavailable (mailbox for user is full)", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 unsolicited mail, unknown user", "5.0.0", CRM_MAIL_FAILED},
    {"550 relaying denied, unknown user", "5.0.0", CRM_MAIL_FAILED},
    {"550 spam", "5.0.0", CRM_MAIL_FAILED},
    {"450 user unknown in relay table", "4.0.0", CRM_MAIL_NO_FAILURE},
    {"User unknown", NULL, CRM_MAIL_NO_ADDRESS},
    {"with Exim 4.92.3, 192.5.1.1, 5.1.1.1, 15.5.1, 5.1.1b", NULL,
     CRM_MAIL_NO_FAILURE},
    {"with 4.9.1, 5.8.1, 5.1.1000", NULL, CRM_MAIL_NO_FAILURE},
    {"5.1.0 no (5.0.0)", "5.1.0", CRM_MAIL_FAILED},
    {"451 not now\n550 no", "5.0.0", CRM_MAIL_FAILED},
    {"550 no\n451 not now", "5.0.0", CRM_MAIL_FAILED},
    {"570 pages, item-550 of 460, #551 x550 550m 550", NULL, CRM_MAIL_NO_FAILURE},
    {"nothing", NULL, CRM_MAIL_NO_FAILURE},
    {"", NULL, CRM_MAIL_NO_FAILURE},
    {"5", NULL, CRM_MAIL_NO_FAILURE}, {"5.", NULL, CRM_MAIL_NO_FAILURE},
    {"550", NULL, CRM_MAIL_NO_FAILURE}, {"5.1.", NULL, CRM_MAIL_NO_FAILURE},
};

START_TEST(a_status_says_whether_it_speaks_of_the_address)
{
    const char *status;
    crm_mail_failure_t failure = crm_mail_status_read(
        &status, explained[_i].text, crm_check_pool());

    same(explained[_i].text, "status", status, explained[_i].status);
    ck_assert_msg(failure == explained[_i].failure, "%s: %d",
                  explained[_i].text, failure);
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
    tcase_add_loop_test(bounces, a_status_says_whether_it_speaks_of_the_address,
                        0, CRM_NELTS(explained));
    tcase_add_loop_test(bounces, a_feedback_report_is_a_complaint, 0,
                        CRM_NELTS(feedback));
    tcase_add_loop_test(bounces, outlook_com_complains_without_a_report, 0,
                        COUNT(outlooks));
    suite_add_tcase(suite, bounces);
    return crm_check_main(suite);
}
