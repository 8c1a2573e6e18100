/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake_call.h: what the files of intake over HTTP share */
#ifndef CRM_INTAKE_CALL_H
#define CRM_INTAKE_CALL_H

#include "crm_intake.h"
#include "crm_intake_site.h"

/* A request under way. */
typedef struct crm_intake_call_t {
    const crm_service_t *service;
    const crm_intake_site_t *site;
    const crm_intake_request_t *request;
    crm_response_t *response;   /* status 200 until somebody says otherwise */
    apr_pool_t *pool;
    crm_conn_t *conn;           /* taken at the first statement */
} crm_intake_call_t;

/* A path below the base and what serves it. */
typedef struct crm_intake_route_t {
    const char *path;           /* "events"; with a slash at its end also what
                                   follows: "forms/" */
    const char *methods;        /* "POST, OPTIONS": others are 405 */
    /* Serve CALL; REST is what follows a path with a slash. An error that is
     * returned becomes an answer by ERROR. */
    crm_error_t *(*serve)(crm_intake_call_t *call, const char *rest);
    /* Make CALL's response one that tells of ERROR, which never is NULL, after
     * its body was emptied and its status and Retry-After were set. NULL: the
     * JSON envelope of the API. */
    void (*error)(crm_intake_call_t *call, const crm_error_t *error);
} crm_intake_route_t;

/* The routes of each part, one without a path at the end. */
extern const crm_intake_route_t crm_intake_event_routes[];  /* intake_event.c */
extern const crm_intake_route_t crm_intake_twilio_routes[]; /* intake_twilio.c */
extern const crm_intake_route_t crm_intake_form_routes[];   /* intake_form.c */
extern const crm_intake_route_t crm_intake_chat_routes[];   /* intake_chat.c */

/* Set *DATA_P, *LEN_P to CALL's body. Before any statement: a client that
 * sends slowly holds no connection. */
crm_error_t *crm_intake_body(const char **data_p, apr_size_t *len_p,
                             crm_intake_call_t *call);

/* Take a connection for CALL, if it has none. */
crm_error_t *crm_intake_conn(crm_intake_call_t *call);

/* Run SQL with its COUNT VALUES on CALL's connection, which is taken if it has
 * none; *RESULT_P lives as long as CALL's pool. */
crm_error_t *crm_intake_query(PGresult **result_p, crm_intake_call_t *call,
                              const char *sql, int count,
                              const char *const *values);

/* Give CALL's connection back, as for a long poll; it is done at the end of
 * the request anyway. */
void crm_intake_release(crm_intake_call_t *call);

/* Charge the budget of the address that CALL comes from (an IPv6 one: of its
 * /64) for KIND ("form", "chat"). Errors: CRM_E_RATE_LIMITED with its
 * retry_after, CRM_E_UNAVAILABLE where the table is full. */
crm_error_t *crm_intake_charge(crm_intake_call_t *call, const char *kind);

/* Take EVENT, made by us, for WORKSPACE_ID: crm_intake_tidy(), crm_intake(),
 * and the bell for those who wait for its conversation. An event that is
 * refused is an error, CRM_E_VALIDATION with its field. */
crm_error_t *crm_intake_take(crm_intake_result_t *result,
                             crm_intake_call_t *call,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* Find the agent as crm_intake_agent() does, within WORKSPACE (NULL: the
 * vhost's, if it is bound to one). */
crm_error_t *crm_intake_find_agent(crm_intake_agent_t *agent,
                                   crm_intake_call_t *call,
                                   const char *email, const char *phone,
                                   const char *workspace);

/* Begin a body of TYPE ("text/html; charset=utf-8"); write to
 * CALL->response->body afterwards. */
void crm_intake_type(crm_intake_call_t *call, const char *type);

#endif /* CRM_INTAKE_CALL_H */
