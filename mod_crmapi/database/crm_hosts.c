/* SPDX-License-Identifier: Apache-2.0 */
/* crm_hosts.c: connection strings with several hosts */
#include "crm_hosts.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_array.h"
#include "crm_name.h"
#include "crm_text.h"

const char *crm_hosts_value(const PQconninfoOption *options,
                            const char *keyword)
{
    for (; options && options->keyword; options++) {
        if (!strcmp(options->keyword, keyword)) {
            return options->val ? options->val : "";
        }
    }
    return "";
}

/* Return the number of parts of LIST, which commas separate. */
static int count_parts(const char *list)
{
    int count = 1;

    while ((list = strchr(list, ','))) {
        list++;
        count++;
    }
    return count;
}

/* Return part number INDEX of LIST, in POOL. A list of one part applies to all
 * hosts. */
static const char *part_of(const char *list, int index, apr_pool_t *pool)
{
    if (count_parts(list) == 1) {
        return apr_pstrdup(pool, list);
    }
    for (; index && *list; index--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return apr_pstrmemdup(pool, list, strcspn(list, ","));
}

/* Return the number of hosts in OPTIONS. */
static int count_hosts(const PQconninfoOption *options)
{
    const char *addresses = crm_hosts_value(options, "hostaddr");

    return count_parts(*addresses ? addresses
                                  : crm_hosts_value(options, "host"));
}

int crm_hosts_count(const char *conninfo)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    int count = count_hosts(options);

    PQconninfoFree(options);
    return count;
}

int crm_hosts_hang(const char *conninfo)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    const char *timeout = crm_hosts_value(options, "connect_timeout");
    int hang;

    if (!*timeout && getenv("PGCONNECT_TIMEOUT")) {
        timeout = getenv("PGCONNECT_TIMEOUT");
    }
    hang = count_hosts(options) > 1 && atoi(timeout) <= 0;
    PQconninfoFree(options);
    return hang;
}

/* Return TEXT, a message of libpq, without what is between its first and its
 * last quote, which may be a part of a password, in RESULT_POOL. */
static const char *unquoted(const char *text, apr_pool_t *result_pool)
{
    const char *first = strchr(text, '"');
    const char *last = strrchr(text, '"');

    if (!first || first == last) {
        return text;
    }
    return apr_pstrcat(result_pool,
                       apr_pstrmemdup(result_pool, text,
                                      (apr_size_t)(first - text)),
                       "\"...\"", last + 1, NULL);
}

/* With what a message about a server begins, and about a host without address. */
#define SERVER "connection to server "
#define NAME "could not translate host name "

const char crm_hosts_nameless[] = NAME "\"...\" to address: " CRM_NAME_LATE;

/* The most addresses of a host that are tried. */
#define ADDRESSES 16

/* What follows the message of a server in PQERRORS_VERBOSE. */
#define LOCATION "LOCATION: "

/* Return where in TEXT the message about the next host begins, NULL if there is
 * none. */
static const char *next_host(const char *text)
{
    while ((text = strchr(text, '\n'))) {
        text++;
        if (!strncmp(text, SERVER, strlen(SERVER))
            || !strncmp(text, NAME, strlen(NAME))) {
            return text;
        }
    }
    return NULL;
}

const char *crm_hosts_cause(const char *text, apr_pool_t *result_pool)
{
    apr_array_header_t *causes = apr_array_make(result_pool, 2, sizeof(char *));
    const char *next, *cause, *end;

    for (; text; text = next) {
        next = next_host(text);
        cause = next ? apr_pstrmemdup(result_pool, text,
                                      (apr_size_t)(next - text)) : text;
        if (strncmp(cause, SERVER, strlen(SERVER))) {
            cause = unquoted(cause, result_pool);
        }
        end = strstr(cause, LOCATION);
        cause = crm_text_one_line(cause, end ? (apr_size_t)(end - cause)
                                             : strlen(cause), 0, result_pool);
        if (!crm_array_has(causes, cause)) {
            APR_ARRAY_PUSH(causes, const char *) = cause;
        }
    }
    cause = "";
    for (int i = 0; i < causes->nelts; i++) {
        cause = apr_pstrcat(result_pool, cause, i ? "; " : "",
                            APR_ARRAY_IDX(causes, i, const char *), NULL);
    }
    return cause;
}

const char *crm_hosts_fault(const char *conninfo, apr_pool_t *result_pool)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);
    const char *reason = NULL;

    if (!options) {
        reason = message ? unquoted(message, result_pool) : "no memory";
    }
    else if (strchr(crm_hosts_value(options, "host"), '@')) {
        reason = "the host contains '@'; in a password it must be written"
                 " %40";
    }
    if (reason) {
        reason = crm_text_one_line(reason, strlen(reason), 0, result_pool);
    }
    PQconninfoFree(options);
    PQfreemem(message);
    return reason;
}

const char *crm_hosts_label(const char *conninfo, const char *user,
                            apr_pool_t *result_pool)
{
    static const char *const keywords[] = {
        "service", "host", "hostaddr", "port", "dbname", "user"
    };
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    const char *label = "";

    for (size_t i = 0; i < CRM_NELTS(keywords); i++) {
        const char *value = crm_hosts_value(options, keywords[i]);

        if (!*value && !strcmp(keywords[i], "user")
            && !*crm_hosts_value(options, "service")) {
            value = user;
        }
        if (value && *value) {
            label = apr_pstrcat(result_pool, label, *label ? " " : "",
                                keywords[i], "=", value, NULL);
        }
    }
    PQconninfoFree(options);
    return label;
}

/* Return the host number INDEX of OPTIONS, in POOL, NULL if there is nothing to look
 * up. */
static const char *name_of(const PQconninfoOption *options, int index,
                           apr_pool_t *pool)
{
    const char *host = part_of(crm_hosts_value(options, "host"), index, pool);

    return *crm_hosts_value(options, "hostaddr") || !*host
           || strchr("/@", *host) ? NULL : host;
}

apr_array_header_t *crm_hosts_addresses(const char **fault_p,
                                        const char *conninfo, int index,
                                        apr_time_t until,
                                        apr_pool_t *result_pool)
{
    apr_array_header_t *addresses = apr_array_make(result_pool, 2,
                                                   sizeof(char *));
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    const char *host = name_of(options, index, result_pool), *problem;
    struct sockaddr_storage found[ADDRESSES];
    socklen_t lengths[ADDRESSES] = {0};

    problem = host ? crm_name_find(found, lengths, ADDRESSES, host, NULL, until)
                   : NULL;
    *fault_p = problem ? apr_pstrcat(result_pool, NAME "\"...\" to address: ",
                                     problem, NULL) : NULL;
    PQconninfoFree(options);
    if (!host) {
        APR_ARRAY_PUSH(addresses, const char *) = NULL;
    }
    for (int i = 0; i < ADDRESSES && lengths[i]; i++) {
        char text[NI_MAXHOST];

        if (!getnameinfo((struct sockaddr *)&found[i], lengths[i], text,
                         sizeof(text), NULL, 0, NI_NUMERICHOST)) {
            APR_ARRAY_PUSH(addresses, const char *) = apr_pstrdup(result_pool,
                                                                  text);
        }
    }
    return addresses;
}

int crm_hosts_silent(const PQconninfoOption *options, apr_time_t until,
                     apr_pool_t *pool)
{
    int count = count_hosts(options);

    for (int i = 0; i < count; i++) {
        const char *host = name_of(options, i, pool), *problem;
        struct sockaddr_storage found;
        socklen_t length;

        problem = host ? crm_name_find(&found, &length, 1, host, NULL, until)
                       : NULL;
        if (!problem || problem == crm_name_late) {
            return problem != NULL;
        }
    }
    return 0;
}

/* Return whether the value of KEYWORD has a part for each host. */
static int is_list(const char *keyword)
{
    return !strcmp(keyword, "host") || !strcmp(keyword, "hostaddr")
           || !strcmp(keyword, "port");
}

/* Add KEYWORD and VALUE to those of a crm_params_t. */
static void add_param(apr_array_header_t *keywords, apr_array_header_t *values,
                      const char *keyword, const char *value)
{
    APR_ARRAY_PUSH(keywords, const char *) = keyword;
    APR_ARRAY_PUSH(values, const char *) = value;
}

crm_params_t crm_hosts_one(const char *conninfo, int index,
                           const char *address, const char *name,
                           apr_pool_t *result_pool)
{
    apr_array_header_t *keywords = apr_array_make(result_pool, 16,
                                                  sizeof(char *));
    apr_array_header_t *values = apr_array_make(result_pool, 16,
                                                sizeof(char *));
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    crm_params_t params;

    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        if (o->val) {
            add_param(keywords, values, apr_pstrdup(result_pool, o->keyword),
                      is_list(o->keyword)
                      ? part_of(o->val, index, result_pool)
                      : apr_pstrdup(result_pool, o->val));
        }
    }
    PQconninfoFree(options);
    if (address) {
        add_param(keywords, values, "hostaddr", address);
    }
    add_param(keywords, values, "fallback_application_name", name);
    add_param(keywords, values, NULL, NULL);
    params.keywords = (const char **)keywords->elts;
    params.values = (const char **)values->elts;
    return params;
}
