/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_people.c: whom a mail is from (contract 18.2) */
#include <string.h>

#include "apr_strings.h"

#include "crm_mail_test.h"

#define LIST "List-Id: <l.example.org>\nList-Post: <mailto:l@example.org>\n"
#define GRACE "grace@example.org"

/* Headers; the address and the name of the person; Reply-To's address. */
static const struct {
    const char *headers, *address, *name, *reply_to;
} people[] = {
    {"From: Grace <" GRACE ">\n", GRACE, "Grace", NULL},
    {"From: Shop <w@example.org>\nReply-To: Grace <" GRACE ">\n", GRACE,
     "Grace", GRACE},
    {"From: Grace <" GRACE ">\nReply-To: " GRACE "\n", GRACE, "Grace", GRACE},
    {"From: w@example.org\nReply-To: =?utf-8?Q?Grace_=3Cgrace=40example=2Eorg"
     "=3E?=\n", GRACE, "Grace", GRACE},
    {"From: w@example.org\nReply-To: Grace grace@example.org\n", GRACE,
     "Grace", GRACE},
    {"From: w@example.org\nReply-To: " GRACE ", b@example.org\n", GRACE, NULL,
     GRACE},
    {"From: w@example.org\nReply-To: people: Grace <" GRACE ">;\n", GRACE,
     "Grace", GRACE},
    /* a Reply-To that names nobody */
    {"From: " GRACE "\nReply-To:\n", GRACE, NULL, NULL},
    {"From: " GRACE "\nReply-To: no-reply\n", GRACE, NULL, NULL},
    {"From: " GRACE "\nReply-To: c@[10.0.0.1]\n", GRACE, NULL, "c@[10.0.0.1]"},
    {"From: " GRACE "\nReply-To: undisclosed-recipients:;\n", GRACE, NULL,
     NULL},
    /* groups, several addresses */
    {"From: Team: Grace <" GRACE ">, b@example.org;\n", GRACE, "Grace", NULL},
    {"From: undisclosed-senders:;\nSender: " GRACE "\n", GRACE, NULL, NULL},
    {"From: " GRACE "; b@example.org\n", GRACE, NULL, NULL},
    {"From: Grace <" GRACE ">\nFrom: eve@example.org\n", GRACE, "Grace", NULL},
    /* malformed */
    {"From: Grace Hopper " GRACE "\n", GRACE, "Grace Hopper", NULL},
    {"From: \"Grace\" <" GRACE "\n", GRACE, "Grace", NULL},
    {"From: " GRACE " (Grace Hopper)\n", GRACE, "Grace Hopper", NULL},
    {"From: <mailto:" GRACE ">\n", GRACE, NULL, NULL},
    {"From: Grace [mailto:" GRACE "]\n", GRACE, "Grace", NULL},
    {"From: Hopper, Grace <" GRACE ">\n", GRACE, "Hopper, Grace", NULL},
    {"From: Grace <<" GRACE ">>\n", GRACE, "Grace", NULL},
    {"From: [Navy] Grace <" GRACE ">\n", GRACE, "[Navy] Grace", NULL},
    {"From: Grace &amp; Co <" GRACE ">\n", GRACE, "Grace &amp; Co", NULL},
    {"From: Grace\\Hopper <" GRACE ">\n", GRACE, "Grace\\Hopper", NULL},
    {"From: Grace @ Navy <" GRACE ">\n", GRACE, "Grace @ Navy", NULL},
    {"From: 'Grace' <" GRACE ">\n", GRACE, "Grace", NULL},
    {"From: =?utf-8?Q?\"Hopper,_Gr=C3=A4ce\"?= <" GRACE ">\n", GRACE,
     "Hopper, Gr\xc3\xa4" "ce", NULL},
    {"From: =?utf-8?Q?=22Hopper=2C_Grace=22?= <" GRACE ">\n", GRACE,
     "Hopper, Grace", NULL},
    {"From: \"\\\"grace@example.org\\\"\" <" GRACE ">\n", GRACE, NULL, NULL},
    {"From: \"\\\"Amazing\\\" Grace\" <" GRACE ">\n", GRACE,
     "\"Amazing\" Grace", NULL},
    {"From: \"\\\"G\\\" and \\\"H\\\"\" <" GRACE ">\n", GRACE,
     "\"G\" and \"H\"", NULL},
    {"From: 'grace@example.org' <" GRACE ">\n", GRACE, NULL, NULL},
    {"From: \"a@example.net\" <" GRACE ">\n", GRACE, "a@example.net", NULL},
    {"From: \"Grace Hopper (grace@Example.org)\" <" GRACE ">\n", GRACE,
     "Grace Hopper", NULL},
    {"From: =?utf-8?Q?Grace_=3Cgrace=40example=2Eorg=3E?= <" GRACE ">\n", GRACE,
     "Grace", NULL},
    {"From: \"'Grace' [grace@example.org]\" <" GRACE ">\n", GRACE, "Grace",
     NULL},
    {"From: \"<grace@example.org>\" <" GRACE ">\n", GRACE, NULL, NULL},
    {"From: \"Grace (eve@example.org)\" <" GRACE ">\n", GRACE,
     "Grace (eve@example.org)", NULL},
    {"From: \"Grace bgrace@example.org)\" <" GRACE ">\n", GRACE,
     "Grace bgrace@example.org)", NULL},
    {"From: =?utf-8?Q?Grace_=3Cgrace=40example=2Eorg=3E?=\n", GRACE, "Grace",
     NULL},
    {"From: Grace <@r.example,@s.example:" GRACE ">\n", GRACE, "Grace", NULL},
    /* no word within an address, which is another one's if it were decoded */
    {"From: =?utf-8?Q?eve?=@example.org\n", "=?utf-8?Q?eve?=@example.org", NULL,
     NULL},
    {"From: =?utf-8?Q?eve=40x.example=3E?=grace@example.org\n",
     "=?utf-8?Q?eve=40x.example=3E?=grace@example.org", NULL, NULL},
    {"From: =?utf-8?Q?Gr=C3=A4ce?=Hopper <" GRACE ">\n", GRACE,
     "Gr\xc3\xa4" "ceHopper", NULL},
    /* words of two charsets */
    {"From: =?utf-8?Q?Gr=C3=A4ce?= =?iso-8859-15?Q?H=F6pper?= <" GRACE ">\n",
     GRACE, "Gr\xc3\xa4" "ceH\xc3\xb6pper", NULL},
    {"From: =?utf-8?Q?Grace_?= =?iso-8859-1?Q?H=F6pper?= II <" GRACE ">\n",
     GRACE, "Grace H\xc3\xb6pper II", NULL},
    {"From: a@example.net via Shop <" GRACE ">\n", GRACE,
     "a@example.net via Shop", NULL},
    {"From: " GRACE "\nReply-To: \"'b@example.org'\"\n", "b@example.org", NULL,
     "b@example.org"},
    {"From: 'grace@example.org'\n", GRACE, NULL, NULL},
    {"From: Grace <'grace@example.org'>\n", GRACE, "Grace", NULL},
    {"From: o'grace@example.org\n", "o'grace@example.org", NULL, NULL},
    {"From: Grace o'grace@example.org\n", "o'grace@example.org", "Grace",
     NULL},
    {"From: [o'grace@example.org]\n", "o'grace@example.org", NULL, NULL},
    /* more than an address in the brackets: whose it is cannot be known */
    {"From: Grace <ann grace@example.org>\n", NULL, NULL, NULL},
    {"From: <ann,grace@example.org>\n", NULL, NULL, NULL},
    {"From: Grace <ann;grace@example.org>\n", NULL, NULL, NULL},
    {"From: Grace <ann:grace@example.org>\n", NULL, NULL, NULL},
    {"From: Grace <ann\n\tgrace@example.org>\n", NULL, NULL, NULL},
    {"From: Grace <ann (x) grace@example.org\n", NULL, NULL, NULL},
    {"From: Grace <ann grace@example.org\nSender: b@example.org\n", "b@example.org",
     NULL, NULL},
    {"From: =?utf-8?q?Grace?= <ann grace@example.org>\nSender: b@example.org\n",
     "b@example.org", NULL, NULL},
    {"From: <ann grace@example.org>, B <b@example.org>\n", "b@example.org", "B",
     NULL},
    {"From: b@example.org\nReply-To: Grace <ann grace@example.org>\n",
     "b@example.org", NULL, NULL},
    {"From: Grace < grace @example.org>\n", GRACE, "Grace", NULL},
    {"From: Grace <ann . grace@example.org>\n", "ann.grace@example.org", "Grace",
     NULL},
    {"From: Grace <smtp:" GRACE ">\n", GRACE, "Grace", NULL},
    {"From: Grace <smtp: " GRACE ">\n", GRACE, "Grace", NULL},
    {"From: \"Grace\" [SMTP:" GRACE "]\n", GRACE, "Grace", NULL},
    {"From: Grace <3 <" GRACE ">\n", GRACE, "Grace <3", NULL},
    {"From: \"a <b c@d>\" <" GRACE ">\n", GRACE, "a <b c@d>", NULL},
    /* escaped, for HTML or a string of a program */
    {"From: Grace Hopper &lt;" GRACE "&gt;\n", GRACE, "Grace Hopper", NULL},
    {"From: &quot;Hopper, Grace&quot; &lt;" GRACE "&gt;\n", GRACE,
     "Hopper, Grace", NULL},
    {"From: &lt;" GRACE "&gt;\n", GRACE, NULL, NULL},
    /* no mailbox of example.net, and no comment, as they stand */
    {"From: \"&quot; &lt;" GRACE "&gt; &quot;\"@example.net\n", NULL, NULL, NULL},
    {"From: \"&quot;&lt;" GRACE "&gt;\"@example.net\n", NULL, NULL, NULL},
    {"From: eve@example.net (&quot;) (&lt;" GRACE "&gt;)\n", "eve@example.net",
     NULL, NULL},
    {"From: eve@example.net (\\) &lt;" GRACE "&gt;)\n", "eve@example.net",
     ") <" GRACE ">", NULL},
    {"From: \\\"Grace Hopper\\\" <" GRACE ">\n", GRACE, "Grace Hopper", NULL},
    {"From: \\'Grace\\' <" GRACE ">\n", GRACE, "Grace", NULL},
    /* a colon that begins no group */
    {"From: Navy: Grace <" GRACE ">\n", GRACE, "Navy: Grace", NULL},
    {"From: Navy: Grace <" GRACE ">;\n", GRACE, "Grace", NULL},
    {"From: Navy: " GRACE ", b@example.org;\n", GRACE, NULL, NULL},
    {"From: nobody at all\n", NULL, NULL, NULL},
    /* a mailbox of example.net, not of example.org (RFC 5322, 3.4.1) */
    {"From: \"grace@example.org\"@example.net\n", NULL, NULL, NULL},
    {"From: <\"x grace@example.org\"@example.net>\n", NULL, NULL, NULL},
    {"From: \"grace@example.org x\"@example.net\n", NULL, NULL, NULL},
    {"From: \"<grace@example.org> \" @example.net\n", NULL, NULL, NULL},
    {"From: \"\\\"<grace@example.org>\"@example.net\n", NULL, NULL, NULL},
    {"From: (\") \"<grace@example.org> \"@example.net (\")\n", NULL, NULL, NULL},
    {"From: \"x y\"@example.net (grace@example.org)\n", NULL, NULL, NULL},
    {"From: grace@example.org <\"x y\"@example.net>\n", NULL, NULL, NULL},
    /* nor what stands beside an address that is not well-formed */
    {"From: \"<eve@x.example>\" <g..h@example.org>\n", "g..h@example.org",
     "eve@x.example", NULL},
    {"From: =?utf-8?q?=3Ceve=40x.example=3E?= <g..h@example.org>\n",
     "g..h@example.org", "<eve@x.example>", NULL},
    {"From: =?utf-8?q?=22=3Ceve@x.example?= g..h@example.org\n", "g..h@example.org",
     "\"<eve@x.example", NULL},
    {"From: =?utf-8?q?\"<eve@x.example>?= <g..h@example.org>\n", "g..h@example.org",
     "\"<eve@x.example>", NULL},
    {"From: (eve@x.example) g..h@example.org\n", "g..h@example.org",
     "(eve@x.example)", NULL},
    {"From: g..h@example.org (a \\) <eve@x.example>)\n", "g..h@example.org",
     NULL, NULL},
    {"From: =?utf-8?q?x=3A_=3Ceve=40x.example=3E?= " GRACE "\n", GRACE,
     "x: <eve@x.example>", NULL},
    {"From: x \"\"@example.net, Grace <" GRACE ">\n", GRACE, "Grace", NULL},
    /* as it was sent (contract 17.2) */
    {"From: Grace <g@xn--bcher-kva.example>\n", "g@xn--bcher-kva.example",
     "Grace", NULL},
    {"From: g@b\xc3\xbc""cher.example\n", "g@b\xc3\xbc""cher.example", NULL,
     NULL},
    /* lists */
    {LIST "From: Grace via L <l@example.org>\nX-Original-Sender: " GRACE "\n",
     GRACE, NULL, NULL},
    {LIST "From: Grace via L <l@example.org>\nX-Original-From: Grace <" GRACE
     ">\n", GRACE, "Grace", NULL},
    {LIST "From: l@example.org\nX-Original-Sender: " GRACE "\nReply-To: Grace"
     " <" GRACE ">\n", GRACE, "Grace", GRACE},
    {LIST "From: l@example.org\nReply-To: l@example.org, Grace <" GRACE ">\n",
     GRACE, "Grace", "l@example.org"},
    {LIST "From: Grace via L <l@example.org>\nReply-To: l@example.org\nCc: b"
     "@example.org, Grace <" GRACE ">\n", GRACE, "Grace", "l@example.org"},
    {LIST "From: Grace <" GRACE ">\nReply-To: L <l@example.org>\n", GRACE,
     "Grace", "l@example.org"},
    /* only a list says who wrote what it sends */
    {"From: " GRACE "\nX-Original-Sender: bounce@esp.example\n", GRACE, NULL,
     NULL},
};

START_TEST(a_mail_is_from_whom_its_headers_name)
{
    const char *headers = people[_i].headers;
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, headers, "\nx\n", NULL);
    const crm_mail_person_t *one;
    crm_mail_t mail;

    read_mail(&mail, text);
    one = mail.people->nelts ? &APR_ARRAY_IDX(mail.people, 0,
                                              crm_mail_person_t) : NULL;
    same(headers, "address", one ? one->address : NULL, people[_i].address);
    same(headers, "name", one ? one->name : NULL, people[_i].name);
    same(headers, "Reply-To", mail.reply_to, people[_i].reply_to);
}
END_TEST

/* Where servers write whom a mail was sent to, and where people do. */
START_TEST(a_mail_is_to_whom_its_headers_name)
{
    static const char *const names[] = {
        "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To",
        "X-Delivered-To", "To", "Cc", "Resent-To", "Resent-Cc", "Bcc",
        "X-Forwarded-To"
    };
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: a@example.org\n", names[_i],
                                   ": Sales <" GRACE ">\n\nx\n", NULL);
    crm_mail_t mail;

    read_mail(&mail, text);
    ck_assert_int_eq(mail.recipients->nelts, 1);
    same(names[_i], "address",
         APR_ARRAY_IDX(mail.recipients, 0, const char *), GRACE);
}
END_TEST

/* Whom a mail is from is each there once, and who sent it is the last. */
START_TEST(quotes_around_an_address_make_no_other_one)
{
    static const char *const headers[] = {
        "Reply-To: '" GRACE "'", "Reply-To:  '" GRACE "', Ada <a@example.org>",
        "Reply-To: <'" GRACE "'>", "Reply-To: (" GRACE ")"
    };
    apr_pool_t *pool = crm_check_pool();
    const char *text = apr_pstrcat(pool, "From: a@example.org\n", headers[_i],
                                   "\n\nx\n", NULL);
    crm_mail_t mail;

    read_mail(&mail, text);
    ck_assert_int_eq(mail.people->nelts, 2);
    same(headers[_i], "first",
         APR_ARRAY_IDX(mail.people, 0, crm_mail_person_t).address, GRACE);
    same(headers[_i], "second",
         APR_ARRAY_IDX(mail.people, 1, crm_mail_person_t).address,
         "a@example.org");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_people");
    TCase *people_case = tcase_create("people");

    mail_init();
    tcase_add_loop_test(people_case, a_mail_is_from_whom_its_headers_name, 0,
                        COUNT(people));
    tcase_add_loop_test(people_case, a_mail_is_to_whom_its_headers_name, 0,
                        11);
    tcase_add_loop_test(people_case, quotes_around_an_address_make_no_other_one,
                        0, 4);
    suite_add_tcase(suite, people_case);
    return crm_check_main(suite);
}
