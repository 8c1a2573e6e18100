/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_send.h: the way out of steps and answers */
#ifndef CRMAPID_SEND_H
#define CRMAPID_SEND_H

#include "crmapid_job.h"

/* What a job sends: a step of an enrollment, or an answer in a conversation. Its
 * functions in the database have the same parameters: the lease ($1 to $4), the
 * ids of the group ($5), the enrollment or conversation, and of the message
 * ($6). */
typedef struct crmd_source_t {
    const char *word;           /* "step", for the log */
    const char *group_member;   /* "enrollment_id": of the payload, and of a
                                   line of the journal */
    const char *id_member;      /* "step_id", of the payload */
    const char *part_member;    /* "part": what names it in the journal: a
                                   step's number, else its id */
    const char *gone;           /* why it is not sent any more */
    int unsubscribe;            /* a mail has a link to unsubscribe */
    int subject_whole;          /* the subject is sent as it is */
    /* SQL. The one row of $2 in the workspace $1: channel, address, subject,
     * text, objective, the agent's mail address, its agent_email, number and
     * name, the recipient's name, a step's number, whether it was taken already,
     * the text's type, a JSON array of addresses that get a copy, whether there
     * are files, the agent's voice, by what else than SMS the recipient wrote. */
    const char *read;
    /* SQL. The files of $2 in the workspace $1: name, media type, bytes in base64.
     * NULL: there are none. */
    const char *files;
    const char *take;           /* CRMD_TAKE() */
    const char *sent;           /* $7: when; $8: the relay's id */
    const char *failed;         /* $7: the reason; $8: wait, or NULL */
    const char *refused;        /* $7: the reason; $8: why nothing may be sent to
                                   the address from now on */
    const char *wait;           /* $7: until when; NULL: it never waits */
} crmd_source_t;

/* SQL that takes the message by the function TAKE; if it may be sent, the same
 * transaction takes a number for it, signs the link of its mail, and names that
 * mail by the function NAMES. */
#define CRMD_TAKE(take, names) \
    "SELECT s.verdict, s.until, s.number, s.mac, s.names[1]," \
    " s.names[2], s.names[3], s.names[4] FROM (" \
    "SELECT t.verdict, t.until," \
    " CASE WHEN t.verdict IN ('send', 'again')" \
    " THEN crmapi.mark_next($9::bigint[]) END AS number," \
    " CASE WHEN t.verdict IN ('send', 'again') THEN '\\x'" \
    " || encode(crmapi.token_sign_link($10::bytea), 'hex') END AS mac," \
    " CASE WHEN t.verdict IN ('send', 'again')" \
    " THEN crmapi." names "($1::uuid, $6::uuid, $11::text) END AS names" \
    " FROM crmapi." take "($1::uuid, $2::bigint, $3::text, $4::integer," \
    " $5::uuid, $6::uuid, coalesce($7::timestamptz, statement_timestamp())," \
    " $8::integer, $12::text) t OFFSET 0) s"

/* The parameters $1 to $6 of a function. */
#define CRMD_LEASE \
    "$1::uuid, $2::bigint, $3::text, $4::integer, $5::uuid, $6::uuid"

/* Send the message of WORK's job, one of SOURCE, if it may still be sent, and
 * record how that ended (contract 11.10, 11.11). A message whose fate is unknown
 * is sent again only if the relay removes duplicates. */
crm_error_t *crmd_send(crmd_work_t *work, const crmd_source_t *source);

#endif /* CRMAPID_SEND_H */
