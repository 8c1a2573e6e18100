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

PQconninfoOption *crm_hosts_options(const char *conninfo)
{
    /* libpq reads all options, and then refuses one. With a password it does not read
     * the file of passwords. */
    const char *const keywords[] = {"dbname", "password", "sslmode", NULL};
    const char *const values[] = {conninfo, "-", "-", NULL};
    PGconn *pg = PQconnectStartParams(keywords, values, 1);
    PQconninfoOption *options = PQconninfo(pg);

    PQfinish(pg);
    return options;
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
    PQconninfoOption *options = crm_hosts_options(conninfo);
    int count = count_hosts(options);

    PQconninfoFree(options);
    return count;
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
#define CLOSED "server closed the connection unexpectedly"
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

int crm_hosts_tells(const char *text)
{
    return (strstr(text, SERVER) || strstr(text, NAME)) && !strstr(text, CLOSED);
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

void crm_hosts_ask(const PQconninfoOption *options, apr_pool_t *pool)
{
    int count = count_hosts(options);

    for (int i = 0; i < count; i++) {
        const char *host = name_of(options, i, pool);
        struct sockaddr_storage found;
        socklen_t length;

        if (host) {
            crm_name_find(&found, &length, 1, host, NULL, 0);
        }
    }
}

/* Add the addresses of HOST to those of ADDRESSES, which are texts. Return NULL or why
 * there is none, as crm_name_find() does. */
static const char *add_addresses(apr_array_header_t *addresses,
                                 const char *host, apr_time_t until)
{
    struct sockaddr_storage found[ADDRESSES];
    socklen_t lengths[ADDRESSES];
    const char *problem = crm_name_find(found, lengths, ADDRESSES, host, NULL,
                                        until);

    for (int i = 0; i < ADDRESSES && lengths[i]; i++) {
        char text[NI_MAXHOST];

        if (!getnameinfo((struct sockaddr *)&found[i], lengths[i], text,
                         sizeof(text), NULL, 0, NI_NUMERICHOST)) {
            APR_ARRAY_PUSH(addresses, const char *) = apr_pstrdup(
                addresses->pool, text);
        }
    }
    return problem;
}

apr_array_header_t *crm_hosts_addresses(const char **fault_p,
                                        const char *conninfo, int index,
                                        apr_time_t until,
                                        apr_pool_t *result_pool)
{
    apr_array_header_t *addresses = apr_array_make(result_pool, 2,
                                                   sizeof(char *));
    PQconninfoOption *options = crm_hosts_options(conninfo);
    const char *host = name_of(options, index, result_pool);
    const char *problem = host ? add_addresses(addresses, host, until) : NULL;

    *fault_p = problem ? apr_pstrcat(result_pool, NAME "\"...\" to address: ",
                                     problem, NULL) : NULL;
    PQconninfoFree(options);
    if (!host) {
        APR_ARRAY_PUSH(addresses, const char *) = NULL;
    }
    return addresses;
}

/* Add PART to LIST, whose parts commas separate; it has COUNT of them. */
static void add_part(const char **list, int count, const char *part,
                     apr_pool_t *pool)
{
    *list = count ? apr_pstrcat(pool, *list, ",", part, NULL) : part;
}

int crm_hosts_find(crm_hosts_found_t *found_p, const char *conninfo,
                   apr_time_t until, apr_pool_t *result_pool)
{
    apr_array_header_t *addresses = apr_array_make(result_pool, 2,
                                                   sizeof(char *));
    PQconninfoOption *options = crm_hosts_options(conninfo);
    const char *hosts = crm_hosts_value(options, "host");
    const char *ports = crm_hosts_value(options, "port");
    int count = count_hosts(options), names = 0, parts = 0;

    memset(found_p, 0, sizeof(*found_p));
    crm_hosts_ask(options, result_pool);
    for (int i = 0; i < count; i++) {
        const char *name = name_of(options, i, result_pool), *problem = NULL;

        apr_array_clear(addresses);
        if (name) {
            names++;
            problem = add_addresses(addresses, name, until);
        }
        if (!addresses->nelts && problem != crm_name_late) {
            APR_ARRAY_PUSH(addresses, const char *) = "";
        }
        for (int j = 0; j < addresses->nelts; j++, parts++) {
            add_part(&found_p->host, parts, part_of(hosts, i, result_pool),
                     result_pool);
            add_part(&found_p->hostaddr, parts,
                     APR_ARRAY_IDX(addresses, j, const char *), result_pool);
            add_part(&found_p->port, parts, part_of(ports, i, result_pool),
                     result_pool);
        }
    }
    PQconninfoFree(options);
    if (!names) {
        memset(found_p, 0, sizeof(*found_p));
    }
    return parts > 0;
}

int crm_hosts_silent(const PQconninfoOption *options, apr_time_t until,
                     apr_pool_t *pool)
{
    int count = count_hosts(options);

    crm_hosts_ask(options, pool);
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
    PQconninfoOption *given = PQconninfoParse(conninfo, NULL);
    PQconninfoOption *options = crm_hosts_options(conninfo);
    crm_params_t params;

    for (const PQconninfoOption *o = given; o && o->keyword; o++) {
        if (o->val && !is_list(o->keyword)) {
            add_param(keywords, values, apr_pstrdup(result_pool, o->keyword),
                      apr_pstrdup(result_pool, o->val));
        }
    }
    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        if (o->val && is_list(o->keyword)) {
            add_param(keywords, values, apr_pstrdup(result_pool, o->keyword),
                      part_of(o->val, index, result_pool));
        }
    }
    PQconninfoFree(given);
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
