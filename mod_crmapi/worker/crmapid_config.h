/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_config.h: the worker's settings */
#ifndef CRMAPID_CONFIG_H
#define CRMAPID_CONFIG_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_error.h"

/* The settings. The table in crmapid_setting.c has the meaning and the default
 * of each. Texts are never NULL; "" means not set. Sizes are in bytes. */
typedef struct crmd_config_t {
    const char *file;           /* the configuration file, or NULL */
    /* database and daemon */
    const char *database;
    const char *name;
    int threads;
    int answer_threads;
    int webhook_threads;
    apr_interval_time_t poll;
    apr_interval_time_t lease;
    apr_interval_time_t answer_time;
    int named_statements;
    const char *log_level;
    const char *log_format;
    const char *log_file;
    const char *pid_file;
    const char *run_dir;
    apr_interval_time_t keep_sent;
    const char *status_listen;
    /* links in mails */
    const char *public_url;
    const char *review_path;
    const char *unsubscribe_path;
    apr_interval_time_t review_ttl;
    /* generation */
    const char *generator;
    int generate_attempts;
    const char *openai_url;
    const char *openai_model;
    const char *openai_key_file;
    apr_interval_time_t openai_timeout;
    int openai_max_tokens;
    int openai_concurrency;
    int max_steps;
    /* sending */
    int send_attempts;
    int agent_daily_limit;
    int relay_concurrency;
    const char *mail_from;
    const char *mail_from_name;
    const char *mail_domain;
    const char *email_relay;
    const char *sms_relay;
    const char *voice_relay;
    const char *maildir;
    const char *smtp_url;
    const char *smtp_tls;
    const char *smtp_ca_file;
    const char *smtp_user;
    const char *smtp_password_file;
    apr_interval_time_t smtp_timeout;
    int smtp_deduplicates;
    int smtp_dsn;
    int mail_reply_token;
    int mail_require_domains;
    const char *provider_url;
    const char *provider_token_file;
    const char *provider_ca_file;
    apr_interval_time_t provider_timeout;
    const char *sms_from;
    const char *voice_from;
    const char *twilio_url;
    const char *twilio_account;
    const char *twilio_token_file;
    const char *twilio_status_url;
    /* inbound mails */
    const char *lmtp_socket;
    const char *lmtp_mode;
    int lmtp_threads;
    apr_interval_time_t lmtp_timeout;
    int mail_max_message;
    int mail_attachment_bytes;
    apr_interval_time_t mail_keep_original;
    int mail_hourly;
    const char *mail_authserv_id;
    /* webhooks */
    apr_interval_time_t webhook_timeout;
    int webhook_concurrency;
    int webhook_private;
    const char *webhook_ca_file;
    /* upkeep */
    apr_interval_time_t conversation_idle;
    apr_interval_time_t keep_jobs;
    apr_interval_time_t keep_deliveries;
    apr_interval_time_t keep_events;
    apr_interval_time_t keep_audit;
    apr_interval_time_t keep_usage;
    apr_interval_time_t verify_totals;
    apr_interval_time_t upkeep;
    /* secrets, read from the files that the settings name */
    const char *openai_key;
    const char *smtp_password;
    const char *provider_token;
    const char *twilio_token;
} crmd_config_t;

/* Set *CONFIG_P to the settings in FILE (NULL: the defaults), in RESULT_POOL.
 * $CRMAPI_DATABASE and the variables of secrets are read, too. Errors name the
 * file, the line and the reason. Files with secrets must not be accessible to
 * other users. */
crm_error_t *crmd_config_read(crmd_config_t **config_p, const char *file,
                              apr_pool_t *result_pool);

#endif /* CRMAPID_CONFIG_H */
