/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_sequence.c: generating the steps of an enrollment (contract 11.6 to
 * 11.8) */
#include "crmapid_sequence.h"

#include <string.h>

#include "crm_array.h"
#include "crm_channel.h"
#include "crm_db.h"
#include "crm_json.h"
#include "crm_pacing.h"
#include "crm_pointer.h"
#include "crm_resources.h"
#include "crm_text.h"
#include "crmapid_generate.h"
#include "crmapid_log.h"
#include "crmapid_notice.h"

#define FIRST_WAIT apr_time_from_sec(5)
#define LAST_WAIT apr_time_from_sec(600)

/* An enrollment whose steps are being generated. */
typedef struct enrollment_t {
    crmd_work_t *work;
    const char *id;
    const char *email;          /* first address that is not suppressed, or
                                   NULL */
    const char *phone;          /* the same */
    crm_subject_t subject;
    const char *channels[CRM_CHANNELS + 1];
} enrollment_t;

/* The first address of a contact's LIST that is not suppressed, as
 * crmapi.is_suppressed() says; the primary one comes first. ADDRESS is an
 * expression over the entry "a", KEY the form that CHANNEL uses, CONDITION a
 * further condition. */
#define USABLE(list, channel, address, key, condition) \
    "(SELECT " address " FROM jsonb_array_elements(c." list ")" \
    " WITH ORDINALITY x(a, n) WHERE " condition " AND NOT" \
    " crmapi.is_suppressed($1::uuid, '" channel "', " key ")" \
    " ORDER BY coalesce((a ->> 'is_primary') = 'true', false) DESC, n" \
    " LIMIT 1)"

/* The E.164 form of a phone number. Numbers without one are not used (contract
 * 17.1). */
#define PHONE "crmapi.phone_e164(a ->> 'phone_number')"

/* The canonical form of an e-mail address, likewise (17.2). */
#define EMAIL_FORM "crmapi.email_canonical(a ->> 'email')"

static const char enrollment_sql[] =
    "SELECT e.status, c.id, c.company_id, q.bot_id, q.template_id,"
    " w.time_zone, "
    USABLE("emails", CRM_WAY_EMAIL, "a ->> 'email'", EMAIL_FORM, EMAIL_FORM
           " IS NOT NULL") ", "
    USABLE("phone_numbers", CRM_WAY_SMS, PHONE, PHONE, PHONE " IS NOT NULL")
    " FROM crmapi.enrollment e"
    " JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id"
    " AND q.id = e.sequence_id"
    " JOIN crmapi.workspace w ON w.id = e.workspace_id"
    " LEFT JOIN crmapi.contact c ON c.workspace_id = e.workspace_id"
    " AND c.id = e.contact_id"
    " WHERE e.workspace_id = $1::uuid AND e.id = $2::uuid";

enum {
    STATUS, CONTACT, COMPANY, AGENT, TEMPLATE, TIME_ZONE, EMAIL, PHONE_NUMBER
};

/* End WORK's enrollment as failed because of REASON. */
static crm_error_t *fail(crmd_work_t *work, const char *reason)
{
    const char *values[6];
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = crmd_payload(work, "enrollment_id");
    values[5] = reason;
    CRM_ERR(crmd_query(&result, work, "SELECT crmapi.enrollment_failed("
                       "$1::uuid, $2::bigint, $3::text, $4::integer,"
                       " $5::uuid, $6::text)", 6, values));
    crmd_logf(CRM_LOG_INFO, "CRM3111: enrollment %s failed: %s", values[4],
              reason);
    crmd_notice(CRMD_NOTICE_FAILED, work->job->workspace_id);
    work->end = CRMD_ENDED;
    return NULL;
}

crm_error_t *crmd_sequence_give_up(crmd_work_t *work)
{
    crmd_logf(CRM_LOG_ERR, "CRM3112: enrollment %s failed after too many"
              " attempts: %s",
              crmd_payload(work, "enrollment_id"), work->reason);
    return fail(work, "internal_error");
}

/* Read the enrollment of WORK with its contact, company, agent and template
 * into ENROLLMENT; *PENDING_P = whether its steps must still be generated. Its
 * contact is NULL if it was merged into another one meanwhile. */
static crm_error_t *read_enrollment(int *pending_p, enrollment_t *enrollment,
                                    crmd_work_t *work)
{
    crm_subject_t *subject = &enrollment->subject;
    const char *values[2];
    PGresult *result;

    memset(enrollment, 0, sizeof(*enrollment));
    enrollment->work = work;
    enrollment->id = crmd_payload(work, "enrollment_id");
    values[0] = work->job->workspace_id;
    values[1] = enrollment->id;
    CRM_ERR(crmd_query(&result, work, enrollment_sql, 2, values));
    *pending_p = PQntuples(result)
                 && !strcmp(PQgetvalue(result, 0, STATUS), "generating")
                 && crm_db_value(result, 0, CONTACT);
    if (!*pending_p) {
        return NULL;
    }
    enrollment->email = crm_db_value(result, 0, EMAIL);
    enrollment->phone = crm_db_value(result, 0, PHONE_NUMBER);
    subject->time_zone = PQgetvalue(result, 0, TIME_ZONE);
    subject->channels = enrollment->channels;
    CRM_ERR(crmd_object(&subject->contact, work, &crm_resource_contact,
                        crm_db_value(result, 0, CONTACT)));
    CRM_ERR(crmd_object(&subject->company, work, &crm_resource_company,
                        crm_db_value(result, 0, COMPANY)));
    CRM_ERR(crmd_object(&subject->agent, work, &crm_resource_agent,
                        crm_db_value(result, 0, AGENT)));
    return crmd_object(&subject->plan, work, &crm_resource_sequence_template,
                       crm_db_value(result, 0, TEMPLATE));
}

/* Return the address for the channel with the way WAY, NULL if there is none. */
static const char *address_of(const enrollment_t *enrollment, const char *way)
{
    const crm_channel_t *channel = crm_channel_way(way);

    return !channel ? NULL : channel->by == CRM_CHANNEL_BY_EMAIL
           ? enrollment->email : enrollment->phone;
}

/* Set the usable channels of ENROLLMENT: those of the template for which the
 * contact has an address. Return their number. */
static int find_channels(enrollment_t *enrollment)
{
    json_object *allowed = json_object_object_get(enrollment->subject.plan,
                                                  "allowed_channels");
    size_t length = crm_json_count(allowed);
    int count = 0;

    for (size_t i = 0; i < length; i++) {
        const char *channel = json_object_get_string(
            json_object_array_get_idx(allowed, i));

        if (!crm_words_have(enrollment->channels, (apr_size_t)count, channel)
            && count < CRM_CHANNELS && address_of(enrollment, channel)) {
            enrollment->channels[count++] = channel;
        }
    }
    return count;
}

/* Return the steps of OUTLINE in the format of
 * crmapi.enrollment_generated(). */
static const char *steps_json(const enrollment_t *enrollment,
                              const crmd_outline_t *outline)
{
    json_object *steps = json_object_new_array();

    for (int i = 0; i < outline->steps->nelts; i++) {
        const crm_step_t *from = &APR_ARRAY_IDX(outline->steps, i,
                                                crm_step_t);
        json_object *step = json_object_new_object();

        crm_json_add_text(step, "channel", from->channel);
        crm_json_add_text(step, "to_identifier",
                          address_of(enrollment, from->channel));
        json_object_object_add(step, "delay_seconds",
                               json_object_new_int64(from->delay));
        crm_json_add_text(step, "email_subject", from->email_subject);
        crm_json_add_text(step, "email_body", from->email_body);
        crm_json_add_text(step, "sms_body", from->sms_body);
        crm_json_add_text(step, "voice_objective", from->voice_objective);
        crm_json_add_text(step, "voice_script", from->voice_script);
        json_object_array_add(steps, step);
    }
    return crm_json_end(steps, enrollment->work->pool);
}

/* Tell if WORK's enrollment, which waits for approval, waits for nobody. */
static crm_error_t *look_for_admin(crmd_work_t *work)
{
    const char *values[1] = {work->job->workspace_id};
    PGresult *result;

    CRM_ERR(crmd_query(&result, work, "SELECT FROM crmapi.admin a WHERE"
                       " a.workspace_id = $1::uuid LIMIT 1", 1, values));
    if (!PQntuples(result)) {
        crmd_notice(CRMD_NOTICE_NO_ADMIN, work->job->workspace_id);
    }
    return NULL;
}

/* Store the steps of OUTLINE and end the job, in one transaction. */
static crm_error_t *store(const enrollment_t *enrollment,
                          const crmd_outline_t *outline, const char *pacing)
{
    crmd_work_t *work = enrollment->work;
    const char *values[8];
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = enrollment->id;
    values[5] = steps_json(enrollment, outline);
    values[6] = pacing;
    values[7] = work->moment;
    CRM_ERR(crmd_query(&result, work, "SELECT crmapi.enrollment_generated("
                       "$1::uuid, $2::bigint, $3::text, $4::integer,"
                       " $5::uuid, $6::jsonb, $7::jsonb,"
                       " coalesce($8::timestamptz, statement_timestamp()))",
                       8, values));
    crmd_logf(CRM_LOG_INFO, "CRM3113: enrollment %s has %d step%s and is %s",
              enrollment->id, outline->steps->nelts,
              CRM_TEXT_S(outline->steps->nelts), PQgetvalue(result, 0, 0));
    work->end = CRMD_ENDED;
    return strcmp(PQgetvalue(result, 0, 0), "pending_approval") ? NULL
           : look_for_admin(work);
}

/* The generator failed for a temporary reason: retry the job, or fail the
 * enrollment after the last attempt. */
static crm_error_t *set_back(crmd_work_t *work, const crmd_outline_t *outline)
{
    apr_interval_time_t wait = crmd_backoff(work->job->attempts, FIRST_WAIT,
                                            LAST_WAIT);

    static crmd_repeated_t repeated;
    const char *others;
    crm_level_t level = crmd_notice_repeated(&others, &repeated, work->pool);

    crmd_logf(level, "CRM3114: enrollment %s, attempt %d: %s%s",
              crmd_payload(work, "enrollment_id"), work->job->attempts,
              outline->setback, others);
    if (work->job->attempts >= work->config->generate_attempts) {
        /* The log has the details; the API shows this code. */
        return fail(work, "generator_unavailable");
    }
    if (wait < outline->retry_after) {
        wait = outline->retry_after;
    }
    crmd_work_retry(work, wait, outline->setback);
    return NULL;
}

/* Return whether ERROR is a data exception (SQLSTATE class 22): here an unknown
 * time zone. */
static int is_data_exception(const crm_error_t *error)
{
    return error->sqlstate && !strncmp(error->sqlstate, "22", 2);
}

/* Set *PACING_P to the pacing of ENROLLMENT. Return what is wrong with it, or NULL. */
static const char *read_pacing(const char **pacing_p,
                               const enrollment_t *enrollment,
                               apr_pool_t *pool)
{
    const char *where, *fault;
    apr_int64_t between;

    fault = crm_pacing_parse(pacing_p, &between, &where,
                             json_object_object_get(enrollment->subject.plan,
                                                    "pacing"),
                             enrollment->subject.time_zone, pool);
    return fault ? crm_pointer_rule("pacing", where, fault, pool) : NULL;
}

crm_error_t *crmd_sequence_generate(crmd_work_t *work)
{
    crmd_outline_t outline = {NULL, NULL, NULL, 0};
    enrollment_t enrollment;
    const char *pacing, *fault;
    crm_error_t *error;
    int pending;

    CRM_ERR(read_enrollment(&pending, &enrollment, work));
    if (!pending) {
        return NULL;            /* stopped, or the contact was deleted */
    }
    if (!enrollment.subject.contact) {
        crmd_work_retry(work, 0, "the contact was merged meanwhile");
        return NULL;
    }
    if (!find_channels(&enrollment)) {
        return fail(work, "no_usable_channels");
    }
    fault = read_pacing(&pacing, &enrollment, work->pool);
    if (fault) {
        return fail(work, fault);
    }
    crmd_generator_of(work->config)->generate(&outline, &enrollment.subject,
                                              work->config, &work->log,
                                              work->pool);
    if (outline.failure) {
        return fail(work, outline.failure);
    }
    if (outline.setback) {
        return set_back(work, &outline);
    }
    error = store(&enrollment, &outline, pacing);
    if (error && is_data_exception(error)) {
        crmd_log_error(CRM_LOG_WARNING, error);
        return fail(work, "pacing.time_zone is not known");
    }
    return error;
}
