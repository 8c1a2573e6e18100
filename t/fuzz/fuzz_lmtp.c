/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lmtp.c: what a mail system says to the worker's LMTP socket */
/* libFuzzer: -max_len=4096 */
#include <ctype.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#include "crm_db_conn.h"
#include "crm_mail_deliver.h"
#include "crm_text.h"
#include "crmapid_conn.h"
#include "crmapid_lmtp_session.h"

#define MAX_MESSAGE 1000

/* --- instead of the database (the linker's --wrap) --- */

/* The compiler compares these with what they stand for. */
__typeof__(crmd_conn_open) __wrap_crmd_conn_open;
__typeof__(crm_mail_expect) __wrap_crm_mail_expect;
__typeof__(crm_mail_deliver) __wrap_crm_mail_deliver;

crm_error_t *__wrap_crmd_conn_open(crm_conn_t **conn_p,
                                   const crmd_config_t *config,
                                   apr_interval_time_t timeout,
                                   apr_pool_t *conn_pool,
                                   apr_pool_t *scratch_pool)
{
    (void)config;
    (void)timeout;
    (void)scratch_pool;
    *conn_p = apr_pcalloc(conn_pool, 1);
    return NULL;
}

/* Nobody is at an address that begins with an x; one with a y is deferred. */
void __wrap_crm_mail_expect(crm_mail_outcome_t *outcome, crm_conn_t *conn,
                            const char *address, const char *workspace,
                            apr_pool_t *result_pool)
{
    (void)conn;
    (void)workspace;
    (void)result_pool;
    must(*address && crm_text_valid_utf8(address, strlen(address)));
    memset(outcome, 0, sizeof(*outcome));
    outcome->recipient = address;
    outcome->reason = "so that it has one";
    outcome->result = *address == 'x' ? CRM_MAIL_UNKNOWN
                      : *address == 'y' ? CRM_MAIL_RETRY : CRM_MAIL_STORED;
}

/* A mail that is handed over is not too large, and has accepted recipients. */
void __wrap_crm_mail_deliver(apr_array_header_t **outcomes_p,
                             crm_conn_t *conn, const char *bytes,
                             apr_size_t len,
                             const apr_array_header_t *recipients,
                             const crm_mail_options_t *options,
                             apr_pool_t *result_pool)
{
    (void)conn;
    (void)bytes;
    must(len <= MAX_MESSAGE && recipients->nelts > 0);
    must(crm_text_valid_utf8(options->sender, strlen(options->sender)));
    *outcomes_p = apr_array_make(result_pool, 1, sizeof(crm_mail_outcome_t));
    for (int i = 0; i < recipients->nelts; i++) {
        crm_mail_outcome_t *one = apr_array_push(*outcomes_p);

        memset(one, 0, sizeof(*one));
        one->recipient = APR_ARRAY_IDX(recipients, i, const char *);
        must(*one->recipient != 'x');
    }
}

/* --- the client --- */

/* All that was said comes in lines of RFC 5321, 4.2: three digits, a blank or
 * a hyphen, a text without controls, of at most 512 bytes. */
static void judge(const char *said, size_t len)
{
    must(len > 4 && !memcmp(said, "220 ", 4));
    while (len) {
        const char *end = memchr(said, '\n', len);
        size_t line = end ? (size_t)(end - said) + 1 : 0;

        must(line > 6 && line <= 512 && said[line - 2] == '\r');
        must(strchr("2345", said[0]) && isdigit((unsigned char)said[1])
             && isdigit((unsigned char)said[2]));
        must(said[3] == ' ' || said[3] == '-');
        for (size_t i = 0; i < line - 2; i++) {
            must(isprint((unsigned char)said[i]));
        }
        said += line;
        len -= line;
    }
}

/* Let a session run over SOCKET and judge what it says at CLIENT. */
static void serve(int socket, int client, apr_pool_t *pool)
{
    static const crmd_config_t config = {.lmtp_timeout = APR_USEC_PER_SEC,
        .mail_max_message = MAX_MESSAGE, .database = ""};
    crmd_lmtp_door_t door = {.stop = -1, .listener = -1};
    crm_conn_t *conn = NULL;
    apr_size_t len = 0, size = 1 << 20;
    char *said = apr_palloc(pool, size);
    apr_pool_t *conn_pool;
    ssize_t got;

    apr_pool_create(&conn_pool, pool);
    crmd_lmtp_serve(&conn, socket, &door, &config, conn_pool, pool);
    close(socket);
    while ((got = recv(client, said + len, size - len, 0)) > 0) {
        len += (apr_size_t)got;
    }
    judge(said, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    int pair[2], room = 1 << 20;

    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    must(!setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
    must(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
    must(send(pair[1], data, size, 0) == (ssize_t)size);
    must(!shutdown(pair[1], SHUT_WR));
    serve(pair[0], pair[1], pool);
    close(pair[1]);
    apr_pool_destroy(pool);
    return 0;
}
