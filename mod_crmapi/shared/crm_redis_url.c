/* SPDX-License-Identifier: Apache-2.0 */
/* crm_redis_url.c: the URL of a Redis server */
#include "crm_redis_url.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"

static const struct {
    const char *text;
    int tls, local;
} schemes[] = {
    {"redis://", 0, 0}, {"rediss://", 1, 0}, {"unix:", 0, 1},
};

/* Set *NUMBER_P to the decimal TEXT if it is at most MAX. Return whether it
 * is. */
static int parse_number(int *number_p, const char *text, int max)
{
    char *end;
    apr_int64_t number = apr_strtoi64(text, &end, 10);

    *number_p = (int)number;
    return apr_isdigit(*text) && !*end && number <= max;
}

/* Take "user:password-file@" from the front of *REST_P, if it is there. The
 * name of the file ends at the last '@' and may contain slashes. */
static const char *take_user(crm_redis_config_t *config, char **rest_p)
{
    char *at = strrchr(*rest_p, '@');
    char *colon = strchr(*rest_p, ':');

    if (!at) {
        return NULL;
    }
    if (!colon || colon > at || colon + 1 == at) {
        return "the part before @ must be a user (or nothing), a colon and the "
               "name of the password file";
    }
    *colon = *at = '\0';
    config->user = *rest_p;
    config->password_file = colon + 1;
    *rest_p = at + 1;
    return NULL;
}

/* Take the host from the front of *REST_P, an IPv6 address in brackets. */
static const char *take_host(crm_wire_place_t *place, char **rest_p)
{
    char *host = *rest_p, *end;

    if (*host == '[') {
        host++;
        end = strchr(host, ']');
        if (!end || (end[1] && end[1] != ':')) {
            return "the brackets of the address do not match";
        }
        *end++ = '\0';
    }
    else {
        end = host + strcspn(host, ":");
        if (*end && strchr(end + 1, ':')) {
            return "an IPv6 address must be in brackets";
        }
    }
    place->port = CRM_REDIS_PORT;
    if (*end) {
        place->port = end + 1;
        *end = '\0';
    }
    place->host = host;
    return *host ? NULL : "the host is missing";
}

/* Set the parts of CONFIG that are in REST: host[:port][/database]. */
static const char *parse_server(crm_redis_config_t *config, char *rest)
{
    char *slash = strchr(rest, '/');
    const char *problem;
    int port;

    if (slash) {
        *slash = '\0';
        if (!parse_number(&config->database, slash + 1,
                          CRM_REDIS_DATABASE_MAX)) {
            return "the database must be a number from 0 to 9999";
        }
    }
    problem = take_host(&config->place, &rest);
    if (!problem
        && (!parse_number(&port, config->place.port, 65535) || !port)) {
        problem = "the port must be a number from 1 to 65535";
    }
    return problem;
}

const char *crm_redis_parse(crm_redis_config_t *config, const char *url,
                            apr_pool_t *pool)
{
    const char *problem;
    char *rest;

    memset(config, 0, sizeof(*config));
    for (size_t i = 0; i < CRM_NELTS(schemes); i++) {
        size_t len = strlen(schemes[i].text);

        if (strncmp(url, schemes[i].text, len)) {
            continue;
        }
        rest = apr_pstrdup(pool, url + len);
        config->tls = schemes[i].tls;
        problem = take_user(config, &rest);
        if (problem) {
            return problem;
        }
        config->name = apr_pstrcat(pool, schemes[i].text, rest, NULL);
        if (schemes[i].local) {
            config->place.path = rest;
            return *rest == '/' ? NULL
                   : "the path of the socket must begin with a slash";
        }
        return parse_server(config, rest);
    }
    return "it must begin with redis://, rediss:// or unix:";
}
