/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_auth.c: whether a host that is trusted has verified the sender */
#include <string.h>

#include "apr_strings.h"

#include "crm_mail_test.h"
#include "mail_auth.h"

/* RFC 8601: what a header says of a mail from shop.example.org. */
START_TEST(authentication_results_are_read)
{
    static const struct {
        const char *value;
        crm_mail_auth_t auth;
    } cases[] = {
        {"mx.example; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_PASS},
        {" (a (nested \\) one)) MX.Example (x) 1 ;\r\n\tdmarc (y) = (z) pass"
         " (p=none) header.from = Shop.Example.org ; spf=fail",
         CRM_MAIL_AUTH_PASS},
        {"\"mx.example\"; dkim=pass reason=\"good; signature\""
         " header.i=\"a b\"@example.org header.b=ab/=cd", CRM_MAIL_AUTH_PASS},
        {"mx2.example;dkim=fail header.d=shop.example.org;"
         "dkim/1=pass header.d=example.org", CRM_MAIL_AUTH_PASS},
        /* the identity is not below the domain that signs */
        {"mx.example; dkim=pass header.d=evil.example"
         " header.i=@shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass header.d=example.org"
         " header.i=@shop.example.org", CRM_MAIL_AUTH_PASS},
        /* two values of a property */
        {"mx.example; dkim=pass header.d=evil.example"
         " header.d=shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass header.d=shop.example.org"
         " header.d=evil.example", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass header.d=shop.example.org"
         " header.d=SHOP.example.org", CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=pass header.i=@evil.example"
         " header.i=@shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=evil.example"
         " header.from=shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; spf=pass smtp.mailfrom=a smtp.mailfrom=b;"
         " dkim=pass header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        /* a signature that passed and failed; two signatures */
        {"mx.example; dkim=pass header.d=shop.example.org;"
         " dkim=fail header.d=shop.example.org", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=fail header.i=@shop.example.org header.b=ab;"
         " dkim=pass header.d=shop.example.org header.b=ab",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=fail header.d=shop.example.org header.b=ab;"
         " dkim=pass header.d=shop.example.org header.b=cd",
         CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=fail header.d=shop.example.org header.s=old;"
         " dkim=pass header.d=shop.example.org header.s=new",
         CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=policy header.d=shop.example.org;"
         " dkim=pass header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=fail header.d=evil.example;"
         " dkim=pass header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        /* "none" is alone */
        {"mx.example; dmarc=fail header.from=shop.example.org; none",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dkim=pass (header.d=evil.example)"
         " header.d=shop.example.org", CRM_MAIL_AUTH_PASS},
        {"mx.example; dkim=pass header.d=org", CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=pass header.d=op.example.org", CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=pass header.d=x.shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=pass", CRM_MAIL_AUTH_NONE},
        {"mx.example; dkim=none header.d=shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; spf=pass smtp.mailfrom=shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; spf=pass smtp.mailfrom=\"; dmarc=pass"
         " header.from=shop.example.org\"@evil.example", CRM_MAIL_AUTH_NONE},
        {"mx.example; spf=pass (\"; dmarc=pass header.from=shop.example.org)",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; dmarc=none; dkim=pass header.d=shop.example.org",
         CRM_MAIL_AUTH_PASS},
        {"mx.example; dmarc=fail; dkim=pass header.d=shop.example.org",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=fail; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=evil.example", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass", CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=shop.example.org; (",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=shop.example.org \"x",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example; dmarc=pass header.from=shop.example.org; dkim",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_FAIL},
        {"mx.example 1(", CRM_MAIL_AUTH_FAIL},
        {"mx.example 2; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_NONE},
        {"mx.example; none", CRM_MAIL_AUTH_NONE},
        {"mx.example", CRM_MAIL_AUTH_NONE},
        {"mx.example; dmarc=pass header.from=shop.example.org;",
         CRM_MAIL_AUTH_PASS},
        {"mx; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_UNTRUSTED},
        {"mx.example.evil; dmarc=pass header.from=shop.example.org",
         CRM_MAIL_AUTH_UNTRUSTED},
        {"dmarc=pass header.from=shop.example.org", CRM_MAIL_AUTH_UNTRUSTED},
        {"(mx.example; dmarc=pass", CRM_MAIL_AUTH_UNTRUSTED},
        {"", CRM_MAIL_AUTH_UNTRUSTED},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        ck_assert_msg(crm_mail_results(cases[i].value,
                                       " mx.example,\nmx2.example",
                                       "shop.example.org", crm_check_pool())
                      == cases[i].auth, "%s", cases[i].value);
    }
}
END_TEST

#define PASS(id) "Authentication-Results: " id "; dmarc=pass" \
    " header.from=example.org\n"
#define FAIL(id) "Authentication-Results: " id "; dmarc=fail" \
    " header.from=example.org\n"
#define SPF(id) "Authentication-Results: " id "; spf=pass\n"
#define DKIM(id, result) "Authentication-Results: " id "; dkim=" result \
    " header.d=example.org\n"
#define RECEIVED "Received: from x by y; Mon, 02 Nov 2026 10:00:00 +0100\n"
#define RECEIVED_BY(host) "Received: from x (x [192.0.2.1])\n\tby " host \
    " (Postfix) with ESMTPS id 1\n\tfor <a@b>; Mon, 02 Nov 2026\n"
/* Another host had the mail from HOST, whom it saw as in SEEN. */
#define HOP(host, seen) "Received: from " host " " seen " by store" \
    " with LMTP id 1; Mon, 02 Nov 2026\n"
#define BY(what) "Received: " what "; Mon, 02 Nov 2026 10:00:00 +0100\n"
#define FROM "From: Ada <ada@example.org>\n"

/* A domain in U-labels and in A-labels is one (contract 17.2). */
START_TEST(authentication_results_name_a_domain_in_either_form)
{
    static const struct {
        const char *result, *domain;
        crm_mail_auth_t auth;
    } cases[] = {
        {"dmarc=pass header.from=xn--kln-sna.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_PASS},
        {"dmarc=pass header.from=K\303\226ln.example", "xn--kln-sna.example",
         CRM_MAIL_AUTH_PASS},
        {"dkim=pass header.d=xn--kln-sna.example", "a.k\303\266ln.example",
         CRM_MAIL_AUTH_PASS},
        {"dkim=pass header.i=@a.k\303\266ln.example"
         " header.d=xn--kln-sna.example", "a.xn--kln-sna.example",
         CRM_MAIL_AUTH_PASS},
        {"dkim=pass header.d=k\303\266ln.example;"
         " dkim=fail header.d=xn--kln-sna.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dmarc=pass header.from=xn--kln-sna.example", "koln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dmarc=pass header.from=k\303\266.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dmarc=pass header.from=k\366ln.example", "k\303\266ln.example",
         CRM_MAIL_AUTH_FAIL},
        {"dkim=pass header.d=evil@k\303\266ln.example",
         "k\303\266ln.example", CRM_MAIL_AUTH_NONE},
        {"dkim=pass header.d=evil@shop.example", "shop.example",
         CRM_MAIL_AUTH_NONE},
    };

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        apr_pool_t *pool = crm_check_pool();
        const char *value = apr_pstrcat(pool, "mx.example; ", cases[i].result,
                                        NULL);

        ck_assert_msg(crm_mail_results(value, "mx.example", cases[i].domain,
                                       pool) == cases[i].auth, "%s", value);
    }
}
END_TEST

/* Signatures are compared with each other, so there may be 50 of them. */
START_TEST(many_signatures_verify_nobody)
{
    for (int count = 49; count <= 51; count++) {
        apr_pool_t *pool = crm_check_pool();
        const char *value = "mx.example";

        for (int i = 0; i < count; i++) {
            value = apr_psprintf(pool, "%s; dkim=pass header.d=shop.example"
                                 " header.s=s%d", value, i);
        }
        ck_assert_msg(crm_mail_results(value, "mx.example", "shop.example",
                                       pool)
                      == (count <= 50 ? CRM_MAIL_AUTH_PASS
                                      : CRM_MAIL_AUTH_FAIL), "%d", count);
    }
}
END_TEST

START_TEST(only_a_trusted_host_verifies_a_sender)
{
    static const struct {
        const char *head;
        int verified;
    } cases[] = {
        {PASS("a") RECEIVED FROM, 1},
        {PASS("a") RECEIVED_BY("a") FROM, 1},
        {"Return-Path: <x@y>\n" SPF("c") PASS("a") RECEIVED_BY("a") FROM, 1},
        /* below the topmost Received of a trusted host, anybody's word */
        {RECEIVED_BY("a") PASS("a") FROM, 0},
        {RECEIVED_BY("B") PASS("a") RECEIVED_BY("a") FROM, 0},
        {"Received: from evil (evil [192.0.2.1])\n\tby (x (y) z) \"a\" (P)"
         " with\n SMTP; now\n" PASS("a") FROM, 0},
        {RECEIVED PASS("a") FROM, 0},
        {RECEIVED RECEIVED PASS("c") PASS("a") FROM, 0},
        {RECEIVED SPF("b") PASS("a") RECEIVED FROM, 0},
        {RECEIVED PASS("a") RECEIVED_BY("a") FROM, 0},
        /* also if that host had it from a program of its own, or from itself:
         * a web page may send what its visitor writes */
        {"Received: by a (Postfix, from userid 33) id 1; now\n" PASS("a") FROM,
         0},
        {BY("by a with local (Exim 4.96) id 1") PASS("a") FROM, 0},
        {BY("by a with LMTP id 1") PASS("a") FROM, 0},
        {BY("from a by a with LMTP id 1") PASS("a") FROM, 0},
        {BY("from a (a [127.0.0.1]) by b with ESMTP id 1") PASS("a") FROM, 0},
        /* another host had it from a trusted one */
        {HOP("a", "") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("A", "(a [192.0.2.9])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("a", "([127.0.0.1])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("a", "(unknown [10.1.2.3])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {HOP("a", "([IPv6:fd00::1])") PASS("a") RECEIVED_BY("a") FROM, 1},
        {"Received: by y (x, from userid 7) id 1; now\n"
         PASS("a") RECEIVED_BY("a") FROM, 1},
        {"Received: (qmail 1 invoked by uid 7); now\n"
         PASS("a") RECEIVED_BY("a") FROM, 1},
        /* or says so */
        {HOP("a", "(evil [192.0.2.1])") PASS("a") RECEIVED_BY("a") FROM, 0},
        {HOP("a", "(unknown [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a", "([192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a(a", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a(a)", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a\"", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a;", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("\\", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        /* a client's name alone says nothing */
        {BY("from a by store") PASS("a") FROM, 0},
        {BY("from a by store with SMTP id 1") PASS("a") FROM, 0},
        {BY("from a by store with ESMTP id 1") PASS("a") FROM, 0},
        {BY("from a by store with ESMTPS id 1") PASS("a") FROM, 0},
        {BY("from a by store with ESMTPSA id 1") PASS("a") FROM, 0},
        {BY("from a by store with UTF8SMTP id 1") PASS("a") FROM, 0},
        {BY("from a by store with LMTPX id 1") PASS("a") FROM, 0},
        {BY("from a by store with local id 1") PASS("a") FROM, 0},
        {BY("from a by store with HTTP") PASS("a") FROM, 0},
        {BY("from a by store id 1 for <with@LMTP>") PASS("a") FROM, 0},
        {BY("by store with SMTP id 1") PASS("a") FROM, 0},
        {BY("with SMTP id 1") PASS("a") FROM, 0},
        {HOP("a", "()") PASS("a") FROM, 0},
        {HOP("a", "(a)") PASS("a") FROM, 0},
        {HOP("a", "(unverified)") PASS("a") FROM, 0},
        {HOP("a", "(HELO a)") PASS("a") FROM, 0},
        {HOP("a", "(HELO [127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(ehlo [127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(helo=[127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(192.0.2.1 helo=[127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "([192.0.2.1] helo=[127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "(x y [127.0.0.1])") PASS("a") FROM, 0},
        {HOP("a", "([127.0.0.1") PASS("a") FROM, 0},
        {HOP("a", "[127.0.0.1]") PASS("a") FROM, 1},
        {BY("from a [127.0.0.1] by store with SMTP") PASS("a") FROM, 0},
        {BY("from a [127.0.0.1] (x [192.0.2.1]) by store with LMTP") PASS("a")
         FROM, 0},
        /* nor does one that looks like more of the header */
        {HOP("a (a [127.0.0.1]) x", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a (a [127.0.0.1])", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {HOP("a with LMTP", "(evil [192.0.2.1])") PASS("a") FROM, 0},
        {BY("from a with LMTP by store with SMTP") PASS("a") FROM, 0},
        {BY("from a by x with LMTP; (evil [192.0.2.1]) by store with SMTP")
         PASS("a") FROM, 0},
        {BY("from a by x with LMTP ( (evil [192.0.2.1]) by store with SMTP"
            " for <q)@store>") PASS("a") FROM, 0},
        {BY("from a by x with LMTP (y) (evil [192.0.2.1]) by store with SMTP")
         PASS("a") FROM, 0},
        {BY("from a by x with LMTP id \" (evil [192.0.2.1]) by store for"
            " <\"q\\\"q\"@store>") PASS("a") FROM, 0},
        {BY("from a b\"y\" x with LMTP ; by store with SMTP") PASS("a") FROM,
         0},
        {BY("from a BY x with LMTP by store with SMTP") PASS("a") FROM, 0},
        {BY("by x with LMTP from a by store with SMTP") PASS("a") FROM, 0},
        {BY("from a from a by store with LMTP") PASS("a") FROM, 0},
        {BY("from a by store with SMTP for x with LMTP") PASS("a") FROM, 0},
        /* a neighbour, a program of the host, mail that was fetched */
        {BY("from a\n\tby store with LMTPS\n\tid 1 (envelope-from <x@y>)")
         PASS("a") RECEIVED_BY("a") FROM, 1},
        {BY("from a [192.0.2.9] by localhost with POP3 (fetchmail-6.4.37)")
         PASS("a") RECEIVED_BY("a") FROM, 1},
        {BY("from a by localhost with IMAP") PASS("a") FROM, 1},
        {BY("by store with local (Exim 4.96) id 1") PASS("a") FROM, 1},
        /* no host had it before */
        {PASS("a") FROM, 1},
        {FROM PASS("a"), 0},
        {SPF("a") PASS("a") FROM, 0},
        {PASS("c") RECEIVED FROM, 0},
        /* several by the host, then what a stranger wrote */
        {SPF("a") PASS("a") RECEIVED FROM, 1},
        {PASS("b") FAIL("a") RECEIVED FROM, 0},
        {DKIM("a", "pass") DKIM("b", "fail") RECEIVED FROM, 0},
        {DKIM("a", "pass") DKIM("b", "neutral") RECEIVED FROM, 1},
        {FAIL("a") RECEIVED PASS("a") FROM, 0},
        {SPF("a") RECEIVED PASS("a") FROM, 0},
        {RECEIVED SPF("a") PASS("a") FROM, 0},
        /* whoever looks at From sees the same address */
        {PASS("a") RECEIVED FROM FROM, 0},
        {PASS("a") RECEIVED "From: ada@example.org, eve@example.org\n", 0},
        {PASS("a") RECEIVED "From: \"eve@example.org\" <ada@example.org>\n",
         0},
        {PASS("a") RECEIVED "From: ada@example.net\n", 0},
        {PASS("a") RECEIVED "Sender: ada@example.org\n", 0},
        {PASS("a") RECEIVED, 0},
    };
    crm_mail_options_t trusting = {.authserv_ids = "a b"};
    crm_mail_t mail;

    for (size_t i = 0; i < CRM_NELTS(cases); i++) {
        const char *text = apr_pstrcat(crm_check_pool(), cases[i].head,
                                       "\nx\n", NULL);

        crm_mail_read(&mail, text, strlen(text), &trusting,
                      crm_check_pool());
        ck_assert_msg(mail.verified == cases[i].verified, "%s", text);
        read_mail(&mail, text);
        ck_assert_msg(!mail.verified, "nobody is trusted: %s", text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_auth");
    TCase *auth = tcase_create("auth");

    mail_init();
    tcase_add_test(auth, authentication_results_are_read);
    tcase_add_test(auth, authentication_results_name_a_domain_in_either_form);
    tcase_add_test(auth, many_signatures_verify_nobody);
    tcase_add_test(auth, only_a_trusted_host_verifies_a_sender);
    suite_add_tcase(suite, auth);
    return crm_check_main(suite);
}
