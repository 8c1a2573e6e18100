/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_setting_rows.h: the settings, a row each */

/* Each file that includes this one defines what a row is to it: crmapid_config.h a
 * member, crmapid_setting.c an entry of the table. A row has the setting's name,
 * its default (a text, as in the configuration file) and its help; TEXT has its
 * type before the default, WORD its choices behind, NUMBER its minimum and
 * maximum, and DURATION the same in milliseconds. Sizes are in bytes. */

HEADING("Database and daemon")
TEXT(database, text, "", "Connection string for libpq. If it contains a"
     " password, other users must not be able to read this file. Not set:"
     " $CRMAPI_DATABASE.")
TEXT(name, line, "crmapid", "Name of this daemon in crmapictl"
     " worker list.")
NUMBER(threads, "4", 1, 64, "Threads for sequences and for mails that ask"
       " for a review. Each has its own database connection.")
NUMBER(generate_threads, "2", 0, 64, "Threads that generate steps: maximum"
       " concurrent requests of the generator openai. 0: this daemon generates none.")
NUMBER(answer_threads, "2", 0, 64, "Threads for answers in conversations."
       " 0: this daemon sends no answers.")
NUMBER(webhook_threads, "4", 0, 64, "Threads for webhooks. 0: this daemon"
       " delivers no webhooks.")
DURATION(poll, "2s", TENTH, 2 * SECOND,
         "Polling interval when no NOTIFY arrives.")
DURATION(lease, "15s", SECOND, 5 * MINUTE, "Lifetime of the lease on a"
         " job. The daemon extends it every third of this time; when it"
         " expires, another daemon takes the job.")
DURATION(answer_time, "20s", SECOND, 10 * MINUTE, "Timeout of a database"
         " statement. After it the connection is reopened.")
SWITCH(named_statements, "on", "Use named prepared statements. off: behind"
       " a pooler that does not support them, such as PgBouncer 1.18 in"
       " transaction mode.")
WORD(log_level, "notice", "error|warning|notice|info|debug",
     "Least important level that is logged.")
WORD(log_format, "text", "text|json", "Format of log lines. json: one"
     " object per line.")
TEXT(log_file, path, "", "Log file. Not set: standard error.")
TEXT(pid_file, path, "", "File for the process id. Not set: none.")
TEXT(run_dir, path, "/var/lib/crmapi", "Folder for the daemon's files:"
     " what it has sent, so that a restored database does not send it"
     " again. Each daemon needs its own.")
DURATION(keep_sent, "30d", DAY, 10 * YEAR, "How long run_dir keeps the ids"
         " of sent messages: at least the age of a backup that may be"
         " restored.")
TEXT(status_listen, place, "", "Address and port, such as 127.0.0.1:9187,"
     " or Unix socket for GET /live, /ready and /metrics. Anyone who can"
     " connect may use it. Not set: none.")

HEADING("Links in mails")
TEXT(public_url, base, "", "Public URL of the site, such as"
     " https://crm.example.org. Not set: mails contain no links, and"
     " recipients cannot unsubscribe.")
TEXT(review_path, path, "/crmapi/review/",
     "Path of CrmApiReview in httpd.conf.")
TEXT(unsubscribe_path, path, "/crmapi/unsubscribe/",
     "Path of CrmApiUnsubscribe in httpd.conf.")
DURATION(review_ttl, "7d", MINUTE, YEAR, "Lifetime of a link to a"
         " review.")

HEADING("Generation")
WORD(generator, "template", "template|openai", "Source of a sequence's"
     " steps: the template, or a language model.")
NUMBER(generate_attempts, "10", 1, 50, "Maximum attempts to generate the"
       " steps of an enrollment: 10 in half an hour. Then the enrollment"
       " fails.")
NUMBER(max_steps, "20", 1, 100, "Maximum steps of a sequence.")
TEXT(openai_url, base, "", "Base URL of an OpenAI-compatible service,"
     " including the version: https://api.example.org/v1.")
TEXT(openai_model, line, "", "Name of the model.")
TEXT(openai_key_file, path, "", "File with the API key. Not set:"
     " $CRMAPID_OPENAI_KEY.")
DURATION(openai_timeout, "90s", TENTH, 10 * MINUTE,
         "Timeout of a request.")
NUMBER(openai_max_tokens, "4000", 1, 1000000, "Maximum length of an"
       " answer, in tokens.")

HEADING("Sending")
WORD(email_relay, "maildir", "maildir|smtp|http", "Relay for mails.")
WORD(sms_relay, "maildir", "maildir|http|twilio",
     "Relay for text messages.")
WORD(voice_relay, "maildir", "maildir|http|twilio",
     "Relay for calls.")
NUMBER(send_attempts, "30", 1, 50, "Maximum attempts to send a step: 30 in about a"
       " day, because mail servers are away for hours. Then its enrollment fails.")
NUMBER(agent_daily_limit, "0", 0, 1000000, "Maximum steps that an agent"
       " sends per day, in the workspace's time zone. 0: no limit.")
NUMBER(relay_concurrency, "4", 1, 64, "Maximum messages that are sent"
       " concurrently by one relay.")
TEXT(maildir, path, "", "Folder in which the relay maildir puts messages."
     " Not set: outbox in run_dir.")
TEXT(mail_from, mailbox, "", "Sender address of agents that have none, and of"
     " the daemon's own mails.")
TEXT(mail_from_name, line, "", "Display name for mail_from.")
TEXT(mail_domain, domain, "localhost", "Domain of Message-IDs.")
SWITCH(mail_require_domains, "off", "Whether a workspace without sender"
       " domains sends no mail. off: it may send from any address.")
SWITCH(mail_reply_token, "off", "Whether replies and bounces go to"
       " addresses that name the mail, such as sales+TOKEN@example.org:"
       " for relays that replace Message-IDs. The mail server must deliver"
       " such addresses.")
TEXT(smtp_url, smtp, "smtp://127.0.0.1:25", "Mail server: smtp:// or"
     " smtps://.")
WORD(smtp_tls, "starttls", "no|opportunistic|starttls",
     "Encryption of smtp://: none, if the server offers it, or"
     " required.")
TEXT(smtp_ca_file, path, "", "CA certificates that the server's"
     " certificate is verified with. Not set: the system's.")
TEXT(smtp_user, text, "", "User name for the server. Not set: no"
     " login.")
TEXT(smtp_password_file, path, "", "File with the password. Not set:"
     " $CRMAPID_SMTP_PASSWORD.")
DURATION(smtp_timeout, "60s", TENTH, 10 * MINUTE, "Timeout for sending a"
         " mail.")
SWITCH(smtp_deduplicates, "off", "Whether the server drops a mail whose"
       " Message-ID it has received before. Then a mail that may or may"
       " not have been sent is sent again; otherwise its enrollment"
       " fails.")
SWITCH(smtp_dsn, "on", "Whether a server that offers DSN (RFC 3461) is asked"
       " for a report of each delivery, which makes a message delivered."
       " Such reports go where bounces go.")
TEXT(provider_url, web, "", "URL to which the relay http posts"
     " messages.")
TEXT(provider_token_file, path, "", "File with its Bearer token. Not set:"
     " $CRMAPID_PROVIDER_TOKEN.")
TEXT(provider_ca_file, path, "", "CA certificates for the relays http and"
     " twilio. Not set: the system's.")
DURATION(provider_timeout, "20s", TENTH, 10 * MINUTE, "Timeout of a"
         " request of the relays http and twilio.")
TEXT(sms_from, text, "", "Sender number of agents that have none, for text"
     " messages. With the relay twilio it may be the SID of a Messaging Service,"
     " MG and 32 digits.")
TEXT(voice_from, text, "", "Caller number of agents that have none.")
TEXT(twilio_url, base, "https://api.twilio.com", "URL of Twilio's API.")
TEXT(twilio_account, text, "", "SID of the Twilio account.")
TEXT(twilio_token_file, path, "", "File with its auth token. Not set:"
     " $CRMAPID_TWILIO_TOKEN.")
TEXT(twilio_status_url, web, "", "URL to which Twilio reports what became"
     " of a text message, such as"
     " https://crm.example.com/crmapi/intake/v1/twilio/status.")

HEADING("Inbound mails")
TEXT(lmtp_socket, path, "", "Unix socket on which crmapid receives mails"
     " to agents by LMTP. Not set: none.")
WORD(lmtp_mode, "0660", "0600|0660|0666", "File mode of the socket.")
NUMBER(lmtp_threads, "4", 1, 64, "Maximum concurrent sessions; others"
       " wait. Each has its own database connection.")
DURATION(lmtp_timeout, "60s", SECOND, 10 * MINUTE, "Idle timeout of a"
         " session. A mail must be there after ten times as long. While others"
         " wait, and all lmtp_threads have a session, one second of silence ends"
         " one.")
NUMBER(mail_max_message, "26214400", 1024, 104857600, "Largest mail that"
       " is accepted, in bytes.")
NUMBER(mail_attachment_bytes, "10485760", 0, 104857600, "Largest"
       " attachment that is stored, in bytes. Larger ones are only"
       " listed.")
DURATION(mail_keep_original, "90d", 0, 10 * YEAR, "How long mails are kept"
         " as they came, with their HTML. 0: they are not.")
NUMBER(mail_hourly, "30", 0, 1000000, "Maximum mails per hour from one"
       " sender to one agent that count as replies. Further mails are"
       " stored, but do not count as replies. 0: no limit.")
TEXT(mail_authserv_id, text, "", "Trusted authserv-ids of"
     " Authentication-Results headers, separated by spaces. The hosts with"
     " these ids must remove such headers from mails that they receive."
     " Not set: none.")

HEADING("Webhooks")
DURATION(webhook_timeout, "15s", TENTH, MINUTE,
         "Timeout of a delivery.")
NUMBER(webhook_concurrency, "2", 1, 64, "Maximum concurrent deliveries to"
       " one endpoint.")
SWITCH(webhook_private, "off", "Whether endpoints may have addresses that"
       " are not public: for an intranet or for tests.")
TEXT(webhook_ca_file, path, "", "CA certificates that endpoints'"
     " certificates are verified with. Not set: the system's.")

HEADING("Upkeep")
DURATION(upkeep, "5m", SECOND, DAY, "Interval of upkeep.")
DURATION(conversation_idle, "24h", MINUTE, YEAR, "Time without a message"
         " after which a conversation is no longer active.")
DURATION(keep_jobs, "7d", 0, 10 * YEAR,
         "How long finished jobs are kept.")
DURATION(keep_deliveries, "30d", 0, 10 * YEAR,
         "How long events and their webhook deliveries are kept.")
DURATION(keep_events, "30d", HOUR, 10 * YEAR,
         "How long ids of intake events are kept. An event that is sent"
         " again after this time is stored again.")
DURATION(keep_audit, "1095d", 30 * DAY, 100 * YEAR,
         "How long is kept who changed what (crmapictl audit list).")
DURATION(keep_usage, "1095d", 40 * DAY, 100 * YEAR,
         "How long is kept what workspaces used (crmapictl usage).")
DURATION(verify_totals, "24h", MINUTE, YEAR, "Interval at which totals are"
         " compared with the rows.")
