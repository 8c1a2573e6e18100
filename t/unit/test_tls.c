/* SPDX-License-Identifier: Apache-2.0 */
/* test_tls.c: relays speak TLS with whom they should, and with nobody else */
#include "crm_check.h"
#include "crm_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "apr_strings.h"

#include "crmapid_relay.h"

/* What a server does. */
typedef struct script_t {
    const char *greeting;       /* in the clear; NULL: TLS at once */
    const char *const *answers; /* in TLS, to one line or request each; NULL
                                   at the end: it closes */
    int no_handshake;           /* it says nothing when TLS should begin */
    int requests;               /* how many it heard in TLS */
    char heard[8192];           /* in the clear */
} script_t;

static script_t script;
static SSL_CTX *context;
static char ca_file[] = "/tmp/crm-tls-XXXXXX";
static int offers_h2;           /* a client has offered HTTP/2 */
static int looks;               /* for an issuer's certificate in a folder */

/* As lstat() of the C library, by which OpenSSL looks for files such as 01234567.0 in
 * the system's folder. There can be none in /dev/null. */
int look_for(const char *path, struct stat *info) __asm__("lstat");
int look_for(const char *path, struct stat *info)
{
    size_t len = strlen(path);

    looks += len > 10 && path[len - 11] == '/'
             && !strcmp(path + len - 2, ".0")
             && strncmp(path, "/dev/null/", 10);
    return fstatat(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}

/* An alpn_select_cb of OpenSSL: note what the client offers. */
static int choose_protocol(SSL *ssl, const unsigned char **out,
                           unsigned char *out_len, const unsigned char *in,
                           unsigned in_len, void *baton)
{
    (void)ssl;
    (void)out;
    (void)out_len;
    (void)baton;
    for (unsigned i = 0; i + 2 < in_len; i += 1u + in[i]) {
        offers_h2 |= in[i] == 2 && !memcmp(in + i + 1, "h2", 2);
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static EVP_PKEY *make_key(void)
{
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    EVP_PKEY *key = NULL;

    EVP_PKEY_keygen_init(maker);
    ck_assert_int_eq(EVP_PKEY_keygen(maker, &key), 1);
    EVP_PKEY_CTX_free(maker);
    return key;
}

/* The subject of a certificate. libcurl quotes it. */
static const unsigned char subject[] = "test\nme";

/* Return a certificate for NAME ("IP:..." or "DNS:..."; NULL: for its subject) that
 * KEY signs. */
static X509 *make_certificate(EVP_PKEY *key, const char *name)
{
    X509 *x509 = X509_new();
    X509_EXTENSION *extension;

    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_version(x509, 2);
    X509_set_pubkey(x509, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                               subject, -1, -1, 0);
    X509_set_issuer_name(x509, X509_get_subject_name(x509));
    if (name) {
        extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, name);
        X509_add_ext(x509, extension, -1);
        X509_EXTENSION_free(extension);
    }
    ck_assert_int_gt(X509_sign(x509, key, NULL), 0);
    return x509;
}

/* Make the servers' certificate, for NAME, and the file that it is in. */
static void make_context(const char *name)
{
    EVP_PKEY *key = make_key();
    X509 *x509 = make_certificate(key, name);
    int fd = mkstemp(ca_file);
    FILE *out = fdopen(fd, "w");

    PEM_write_X509(out, x509);
    fclose(out);
    context = SSL_CTX_new(TLS_server_method());
    ck_assert_int_eq(SSL_CTX_use_certificate(context, x509), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(context, key), 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static void for_this_host(void)
{
    signal(SIGPIPE, SIG_IGN);
    make_context("IP:127.0.0.1");
}

static void for_another_host(void)
{
    signal(SIGPIPE, SIG_IGN);
    make_context("DNS:other.example");
}

static void for_its_subject(void)
{
    signal(SIGPIPE, SIG_IGN);
    make_context(NULL);
}

static void remove_context(void)
{
    SSL_CTX_free(context);
    unlink(ca_file);
    memcpy(ca_file + strlen(ca_file) - 6, "XXXXXX", 6);
}

/* Read from SSL up to the end of a line, a request with JSON, or, if WHOLE, a
 * mail. Return whether it came. */
static int hear(SSL *ssl, int whole)
{
    char text[8192];
    int len = 0;

    while (len < (int)sizeof(text) - 1) {
        int n = SSL_read(ssl, text + len, (int)sizeof(text) - 1 - len);

        if (n <= 0) {
            return 0;
        }
        len += n;
        text[len] = '\0';
        if (whole ? strstr(text, "\r\n.\r\n") != NULL
            : (text[len - 1] == '\n' && strncmp(text, "POST", 4))
            || text[len - 1] == '}') {
            return 1;
        }
    }
    return 0;
}

static void talk_tls(int fd, script_t *s)
{
    SSL *ssl = SSL_new(context);

    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
        const char *last = "";

        for (const char *const *a = s->answers; *a; a++) {
            /* The first of SMTP at once is a greeting, to nothing. */
            if (strncmp(*a, "220", 3) && !hear(ssl, *last == '3')) {
                break;
            }
            s->requests++;
            last = *a;
            SSL_write(ssl, *a, (int)strlen(*a));
        }
        if (*last == '3') {
            hear(ssl, 1);       /* the mail, whole, and then nothing */
        }
    }
    SSL_free(ssl);
}

static void serve(int fd, void *baton)
{
    script_t *s = baton;

    if (s->greeting) {
        server_puts(fd, s->greeting);
        if (read(fd, s->heard, sizeof(s->heard) - 1) <= 0    /* EHLO */
            || !server_puts(fd, "250-me\r\n250 STARTTLS\r\n")
            || read(fd, s->heard, sizeof(s->heard) - 1) <= 0 /* STARTTLS */
            || !server_puts(fd, "220 go on\r\n")) {
            return;
        }
    }
    if (s->no_handshake) {
        server_hang(fd);
    }
    else {
        talk_tls(fd, s);
    }
}

/* Hand a message to RELAY, by SCHEME, trusting CA. */
static crmd_receipt_t hand_over(const crmd_relay_t *relay, const char *scheme,
                                const char *ca, const script_t *says)
{
    static const crmd_message_t message = {
        .channel = &crm_channels[CRM_CHANNEL_EMAIL],
        .id = "0197c0de-0000-7000-8000-000000000001",
        .workspace_id = "0197c0de-0000-7000-8000-00000000000a",
        .to = "ada@example.org", .subject = "Hello", .text = "Hi"
    };
    crmd_config_t config = {
        .mail_from = "a@example.com", .mail_from_name = "",
        .mail_domain = "example.com", .sms_from = "", .voice_from = "",
        .smtp_tls = "starttls", .smtp_ca_file = ca, .smtp_user = "",
        .smtp_password = "", .smtp_timeout = SERVER_LONG,
        .provider_token = "geheim", .provider_ca_file = ca,
        .provider_timeout = SERVER_LONG, .relay_concurrency = 1
    };
    crmd_receipt_t receipt;
    server_t server;

    if (says->no_handshake) {
        config.smtp_timeout = config.provider_timeout = SERVER_SHORT;
    }
    script = *says;
    server_start(&server, serve, &script);
    config.smtp_url = config.provider_url = apr_psprintf(
        crm_check_pool(), "%s://127.0.0.1:%d", scheme, server.port);
    crmd_relay_send(&receipt, relay, &message, &config, crm_check_pool());
    server_stop(&server);
    return receipt;
}

static const char *const accepting[] = {
    "250 me\r\n", "250 ok\r\n", "250 ok\r\n", "354 go on\r\n", "250 taken\r\n",
    "221 bye\r\n", NULL
};
static const char *const greeting_accepting[] = {
    "220 me\r\n", "250 me\r\n", "250 ok\r\n", "250 ok\r\n", "354 go on\r\n",
    "250 taken\r\n", "221 bye\r\n", NULL
};
static const char *const closing[] = {
    "220 me\r\n", "250 me\r\n", "250 ok\r\n", "250 ok\r\n", "354 go on\r\n",
    NULL
};
static const char *const answering[] = {
    "HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n", NULL
};
static const char *const silent[] = {NULL};

static const script_t starttls = {"220 me\r\n", accepting, 0, 0, ""};
static const script_t smtps = {NULL, greeting_accepting, 0, 0, ""};
static const script_t smtps_lost = {NULL, closing, 0, 0, ""};
static const script_t https = {NULL, answering, 0, 0, ""};
static const script_t https_lost = {NULL, silent, 0, 0, ""};
static const script_t stuck = {NULL, silent, 1, 0, ""};
static const script_t starttls_stuck = {"220 me\r\n", silent, 1, 0, ""};

START_TEST(who_is_trusted_is_spoken_to)
{
    crmd_receipt_t receipt;

    receipt = hand_over(&crmd_relay_smtp, "smtp", ca_file, &starttls);
    ck_assert_msg(receipt.verdict == CRMD_SENT, "STARTTLS: %s",
                  receipt.reason);
    ck_assert(!strncmp(script.heard, "STARTTLS\r\n", 10));
    receipt = hand_over(&crmd_relay_smtp, "smtps", ca_file, &smtps);
    ck_assert_msg(receipt.verdict == CRMD_SENT, "smtps: %s", receipt.reason);
    receipt = hand_over(&crmd_relay_http, "https", ca_file, &https);
    ck_assert_msg(receipt.verdict == CRMD_SENT, "https: %s", receipt.reason);
    ck_assert_msg(!offers_h2, "with it a refused request may be sent twice");
}
END_TEST

/* Fail unless nobody was sent anything within TLS, for CA. */
static void is_not_spoken_to(const char *ca)
{
    static const struct {
        const crmd_relay_t *relay;
        const char *scheme;
        const script_t *script;
    } ways[] = {
        {&crmd_relay_smtp, "smtp", &starttls},
        {&crmd_relay_smtp, "smtps", &smtps},
        {&crmd_relay_http, "https", &https},
    };

    for (int i = 0; i < 3; i++) {
        crmd_receipt_t receipt = hand_over(ways[i].relay, ways[i].scheme, ca,
                                           ways[i].script);

        ck_assert_msg(receipt.verdict == CRMD_NOT_NOW, "%s: verdict %d (%s)",
                      ways[i].scheme, receipt.verdict, receipt.reason);
        ck_assert_msg(strstr(receipt.reason, "certificate")
                      || strstr(receipt.reason, "trust anchors")
                      || strstr(receipt.reason, "SSL")
                      || strstr(receipt.reason, "TLS failed: "), "%s",
                      receipt.reason);
        ck_assert_msg(!strchr(receipt.reason, '\n'), "%s", receipt.reason);
        ck_assert_msg(script.requests <= (i == 1), "%d", script.requests);
    }
}

START_TEST(who_is_not_trusted_is_not)
{
    is_not_spoken_to("");
    is_not_spoken_to("/nonexistent/ca.pem");
}
END_TEST

START_TEST(another_host_is_not)
{
    is_not_spoken_to(ca_file);
}
END_TEST

/* Whom the system trusts is not trusted where a file says whom to trust. */
START_TEST(the_file_alone_says_who_is_trusted)
{
    char others[] = "/tmp/crm-tls-XXXXXX";
    EVP_PKEY *key = make_key();
    X509 *x509 = make_certificate(key, NULL);
    FILE *out = fdopen(mkstemp(others), "w");

    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "O", MBSTRING_ASC,
                               (const unsigned char *)"other", -1, -1, 0);
    PEM_write_X509(out, x509);
    fclose(out);
    looks = 0;
    is_not_spoken_to(others);
    ck_assert_int_eq(looks, 0);
    unlink(others);
    X509_free(x509);
    EVP_PKEY_free(key);
}
END_TEST

/* Nothing was sent before TLS was there, all may have been after it. */
START_TEST(what_is_lost_is_known)
{
    static const struct {
        const crmd_relay_t *relay;
        const char *scheme;
        const script_t *script;
        crmd_verdict_t verdict;
    } ways[] = {
        {&crmd_relay_smtp, "smtps", &stuck, CRMD_NOT_NOW},
        {&crmd_relay_smtp, "smtp", &starttls_stuck, CRMD_NOT_NOW},
        {&crmd_relay_smtp, "smtps", &smtps_lost, CRMD_UNKNOWN},
        {&crmd_relay_http, "https", &stuck, CRMD_NOT_NOW},
        {&crmd_relay_http, "https", &https_lost, CRMD_UNKNOWN},
    };

    for (int i = 0; i < 5; i++) {
        crmd_receipt_t receipt = hand_over(ways[i].relay, ways[i].scheme,
                                           ca_file, ways[i].script);

        ck_assert_msg(receipt.verdict == ways[i].verdict, "%d: verdict %d"
                      " (%s)", i, receipt.verdict, receipt.reason);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls");
    TCase *here = tcase_create("here"), *other = tcase_create("other");
    TCase *unnamed = tcase_create("unnamed");

    tcase_add_checked_fixture(here, for_this_host, remove_context);
    tcase_add_test(here, who_is_trusted_is_spoken_to);
    tcase_add_test(here, who_is_not_trusted_is_not);
    tcase_add_test(here, the_file_alone_says_who_is_trusted);
    tcase_add_test(here, what_is_lost_is_known);
    tcase_add_checked_fixture(other, for_another_host, remove_context);
    tcase_add_test(other, another_host_is_not);
    suite_add_tcase(suite, here);
    tcase_add_checked_fixture(unnamed, for_its_subject, remove_context);
    tcase_add_test(unnamed, another_host_is_not);
    suite_add_tcase(suite, other);
    suite_add_tcase(suite, unnamed);
    return crm_check_main(suite);
}
