/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid.c: the worker daemon: command line, signals, start and stop */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "apr_general.h"
#include "apr_getopt.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_file.h"
#include "crm_process.h"
#include "crm_resources.h"
#include "crm_shape.h"
#include "crm_time.h"
#include "crmapid_check.h"
#include "crmapid_daemon.h"
#include "crmapid_ending.h"
#include "crmapid_journal.h"
#include "crmapid_listen.h"
#include "crmapid_log.h"
#include "crmapid_sample.h"
#include "crmapid_status.h"

/* Options without a short form. */
enum { OPT_HELP = 256, OPT_VERSION, OPT_NOW, OPT_SAMPLE, OPT_MANUAL };

static const apr_getopt_option_t options[] = {
    {"config", 'c', 1, "read the configuration from ARG"},
    {"detach", 'D', 0, "run in the background"},
    {"once", '1', 0, "run all due jobs and exit"},
    {"test", 't', 0, "check the configuration and exit"},
    {"now", OPT_NOW, 1, "with -1: use ARG as the current time (RFC 3339)"},
    {"print-config", OPT_SAMPLE, 0,
     "print all settings with their defaults and exit"},
    {"print-manual", OPT_MANUAL, 0, "print the settings as troff and exit"},
    {"help", OPT_HELP, 0, "print this help and exit"},
    {"version", OPT_VERSION, 0, "print the version and exit"},
    {NULL, 0, 0, NULL}
};

#define NOT_RELOADED "CRM3008: the configuration was not reloaded"

/* The command line. */
typedef struct call_t {
    const char *config;
    const char *now;
    int detach, once, test;
    int print;                  /* one of OPT_*, or 0 */
} call_t;

static void print_help(void)
{
    printf("usage: crmapid [-c FILE] [-D | -1 [--now TIME] | -t]\n"
           "Runs outbound sequences, webhooks and upkeep for mod_crmapi.\n\n");
    for (const apr_getopt_option_t *option = options; option->name; option++) {
        char letter[8] = "   ";

        if (option->optch < OPT_HELP) {
            apr_snprintf(letter, sizeof(letter), "-%c,", option->optch);
        }
        printf("  %s --%-14s %s\n", letter, option->name,
               option->description);
    }
    printf("\nThe database is the setting \"database\", or $CRMAPI_DATABASE."
           "\nSIGTERM: finish running jobs and exit. SIGHUP: reload the"
           "\nconfiguration and reopen the log.\n");
}

static void print_text(void (*write_text)(crm_buf_t *buf), apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 8192, pool);
    write_text(&buf);
    fwrite(buf.data, 1, buf.len, stdout);
}

/* Read the command line into CALL. Return 0, after a message, if it is
 * invalid. */
static int parse_call(call_t *call, int argc, const char *const *argv,
                      apr_pool_t *pool)
{
    apr_status_t status;
    apr_getopt_t *os;
    const char *arg;
    int option;

    memset(call, 0, sizeof(*call));
    apr_getopt_init(&os, pool, argc, argv);
    while ((status = apr_getopt_long(os, options, &option, &arg))
           == APR_SUCCESS) {
        switch (option) {
        case 'c': call->config = arg; break;
        case 'D': call->detach = 1; break;
        case '1': call->once = 1; break;
        case 't': call->test = 1; break;
        case OPT_NOW: call->now = arg; break;
        default: call->print = option; break;
        }
    }
    if (status != APR_EOF) {
        return 0;               /* apr_getopt_long() printed the reason */
    }
    if (os->ind < argc) {
        fprintf(stderr, "crmapid: unexpected argument: %s\n", argv[os->ind]);
        return 0;
    }
    if (call->detach + call->once + call->test > 1
        || (call->now && !call->once)) {
        fprintf(stderr, "crmapid: these options cannot be combined\n");
        return 0;
    }
    return 1;
}

static void print(const call_t *call, apr_pool_t *pool)
{
    switch (call->print) {
    case OPT_HELP: print_help(); break;
    case OPT_VERSION: puts("crmapid " CRM_VERSION); break;
    case OPT_SAMPLE: print_text(crmd_sample_write, pool); break;
    default: print_text(crmd_sample_write_manual, pool); break;
    }
}

/* Report STATE to the service manager (sd_notify(3)). */
static void notify(const char *state)
{
#ifdef HAVE_SYSTEMD
    sd_notify(0, state);
#else
    (void)state;
#endif
}

/* ---- detaching ----------------------------------------------------------- */

/* Fork. The child returns; *READY_P is the end of a pipe. The parent waits and
 * exits: with success when the child writes a byte to *READY_P, with failure if
 * the child exits first. */
static crm_error_t *detach(int *ready_p, apr_pool_t *pool)
{
    int ends[2];
    pid_t child;
    char byte;

    if (pipe(ends) || (child = fork()) < 0) {
        return crm_error_createf(CRM_E_INTERNAL, pool, "cannot detach: %s",
                                 strerror(errno));
    }
    if (child) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(ends[0]);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    setsid();
    *ready_p = ends[1];
    return NULL;
}

/* Detach from the terminal and let the parent, which waits at READY, exit with
 * success. */
static void detached(int ready)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close(null);
    }
    if (write(ready, "", 1) < 0) {
        crmd_logf(CRM_LOG_WARNING, "CRM3006: the process that started crmapid"
                  " -D has exited");
    }
    close(ready);
}

/* ---- start and stop ------------------------------------------------------ */

/* Block the signals of the daemon and put them into SET. The daemon waits for
 * them: it has no handlers, which could run at any point. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Return whether a signal of block_signals() has arrived. BATON is not used. */
static int has_signal(void *baton)
{
    sigset_t pending;

    (void)baton;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT)
           || sigismember(&pending, SIGHUP);
}

/* Wait up to SECONDS for a signal of SET. Return it, 0 if none arrived. */
static int wait_signal(const sigset_t *set, int seconds)
{
    struct timespec timeout = {seconds, 0};
    int sig = sigtimedwait(set, NULL, &timeout);

    return sig > 0 ? sig : 0;
}

/* Write the process id to the file of CONFIG, if it names one. The file stays open
 * and locked: a second process would take it away from the first one. */
static crm_error_t *write_pid(const crmd_config_t *config, apr_pool_t *pool)
{
    const char *text = apr_psprintf(pool, "%d\n", (int)getpid());
    int fd;

    if (!*config->pid_file) {
        return NULL;
    }
    fd = open(config->pid_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !ftruncate(fd, 0)
        && crm_file_write(fd, text, strlen(text))) {
        return NULL;
    }
    return crm_error_createf(CRM_E_BAD_REQUEST, pool, "pid_file: %s: %s",
                             config->pid_file, errno == EWOULDBLOCK
                             ? "another process has it" : strerror(errno));
}

/* Read and check the configuration of CALL into *CONFIG_P, in POOL. */
static crm_error_t *read_config(crmd_config_t **config_p, const call_t *call,
                                apr_pool_t *pool)
{
    crm_error_t *error;

    CRM_ERR(crmd_config_read(config_p, call->config, pool));
    error = crmd_config_check(*config_p, pool);
    if (error && call->config) {
        error->message = apr_pstrcat(pool, call->config, ": ", error->message,
                                     NULL);
    }
    return error;
}

/* Open the log that CONFIG names. If that fails, the log stays as it is. */
static void reopen_log(const crmd_config_t *config, apr_pool_t *pool)
{
    crm_error_t *error = crmd_log_open(config->log_level, config->log_format,
                                       config->log_file, pool);

    if (error) {
        crmd_log_error(CRM_LOG_ERR, error);
    }
}

/* A daemon's service, under one configuration after the other. */
typedef struct service_t {
    const call_t *call;
    const sigset_t *set;        /* the signals that it waits for */
    int ready;                  /* see detach(); -1: nobody waits */
    crmd_config_t *config;
    crmd_config_t *next;        /* after a SIGHUP: the new configuration */
    crmd_status_t *status;      /* or NULL */
    int started;                /* a daemon has run */
    int folder;                 /* run_dir, locked; -1: not open */
    apr_pool_t *pool;
    apr_pool_t *run_pool;       /* cleared before the next configuration */
} service_t;

/* Return whether a socket at the place AFTER may need that the one at BEFORE is closed:
 * they are the same, or have one port. */
static int is_taken_by_itself(const char *after, const char *before)
{
    const char *port = strrchr(after, ':'), *old = strrchr(before, ':');

    return !strcmp(after, before) || (port && old && !strcmp(port, old));
}

/* Return an error in POOL if one cannot listen where NEXT says, and CONFIG, which is in
 * use, does not. */
static crm_error_t *check_places(const crmd_config_t *next,
                                 const crmd_config_t *config, apr_pool_t *pool)
{
    const char *const places[][3] = {
        {"status_listen", next->status_listen, config->status_listen},
        {"lmtp_socket", next->lmtp_socket, config->lmtp_socket},
    };

    for (size_t i = 0; i < CRM_NELTS(places); i++) {
        crmd_listener_t listener;

        if (*places[i][1] && !is_taken_by_itself(places[i][1], places[i][2])) {
            crm_error_t *error = crmd_listener_open(
                &listener, places[i][0], places[i][1], 0600, pool);

            crmd_listener_close(&listener);
            CRM_ERR(error);
        }
    }
    return NULL;
}

/* Wait up to SECONDS for a signal of SERVICE. Return it, 0 if none arrived. On
 * SIGHUP set SERVICE's next configuration; if that cannot be used, log it and
 * return 0. */
static int wait_command(service_t *service, int seconds)
{
    int sig = wait_signal(service->set, seconds);
    crm_error_t *error = NULL;

    if (sig == SIGHUP) {
        error = read_config(&service->next, service->call, service->pool);
    }
    if (sig == SIGHUP && !error) {
        error = check_places(service->next, service->config, service->pool);
    }
    if (!error) {
        return sig;
    }
    crmd_log_error(CRM_LOG_ERR, error);
    crmd_logf(CRM_LOG_ERR, NOT_RELOADED);
    return 0;
}

/* Return what the daemon waits for after ERROR. */
static const char *awaited(const crm_error_t *error)
{
    return crm_error_is(error, CRMD_RUN_DIR)
           ? "CRM3007: waiting until run_dir can be written"
           : "CRM3007: waiting for the database";
}

/* Wait until SERVICE's database answers and run_dir has room, or until a signal
 * arrives: *SIGNAL_P, else 0. Errors: they cannot be used. */
static crm_error_t *wait_for_database(int *signal_p, service_t *service)
{
    crm_error_t *error = NULL;
    apr_pool_t *scratch;
    const char *said = NULL;

    *signal_p = 0;
    apr_pool_create(&scratch, service->run_pool);
    while (!*signal_p
           && (error = crmd_check_database(service->config, has_signal, scratch))
           && (error->code == CRM_E_UNAVAILABLE || has_signal(NULL))) {
        if (said != awaited(error) && !has_signal(NULL)) {
            said = awaited(error);
            crmd_log_error(CRM_LOG_ERR, error);
            crmd_logf(CRM_LOG_WARNING, "%s", said);
        }
        apr_pool_clear(scratch);
        *signal_p = wait_command(service, 1);
    }
    return *signal_p ? NULL : error;
}

/* Tell if another daemon has SERVICE's run_dir. That harms neither: both write
 * whole lines, and the higher number of two marks. But together they send twice as
 * much at once as the settings say, and the operator may not know of the other. */
static void claim_folder(service_t *service)
{
    const char *path = service->config->run_dir;

    if (service->folder >= 0) {
        close(service->folder);
    }
    service->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (service->folder >= 0 && flock(service->folder, LOCK_EX | LOCK_NB)
        && errno == EWOULDBLOCK) {
        crmd_logf(CRM_LOG_WARNING, "CRM3015: run_dir: %s: another crmapid has"
                  " it; each needs its own", path);
    }
}

/* Run a daemon for SERVICE until a signal arrives: *SIGNAL_P. */
static crm_error_t *run_daemon(int *signal_p, service_t *service)
{
    const crmd_config_t *config = service->config;
    crmd_daemon_t *daemon;

    claim_folder(service);
    CRM_ERR(crmd_daemon_start(&daemon, config, service->run_pool));
    crmd_logf(CRM_LOG_NOTICE, "CRM3001: crmapid %s is running with %d"
              " threads for sequences, %d that generate them, %d for answers and"
              " %d for webhooks", CRM_VERSION, config->threads,
              config->generate_threads, config->answer_threads,
              config->webhook_threads);
    notify("READY=1");
    service->started = 1;
    if (service->ready >= 0) {
        detached(service->ready);
        service->ready = -1;
    }
    while (!(*signal_p = wait_command(service, 60))) {
        continue;
    }
    notify(*signal_p == SIGHUP ? "RELOADING=1" : "STOPPING=1");
    crmd_status_stopping(service->status);
    crmd_daemon_stop(daemon);
    return NULL;
}

/* Serve with SERVICE's configuration until a signal arrives: *SIGNAL_P. The
 * first daemon waits for the database. */
static crm_error_t *serve_once(int *signal_p, service_t *service)
{
    crm_error_t *error;

    *signal_p = 0;
    CRM_ERR(crmd_status_start(&service->status, service->config,
                              service->run_pool));
    error = service->started ? NULL : wait_for_database(signal_p, service);
    if (!error && !*signal_p) {
        error = run_daemon(signal_p, service);
    }
    crmd_ending(1);
    crmd_status_stop(service->status);
    crmd_ending(0);
    return error;
}

static void use_config(service_t *service, crmd_config_t *config)
{
    service->config = config;
    reopen_log(config, service->pool);
}

/* Serve with SERVICE's next configuration until a signal arrives. If that is not
 * possible, as without room for threads, serve with the one before; if that is not
 * either, try again each second. Return the signal. */
static int serve_again(service_t *service)
{
    crmd_config_t *before = service->config;
    crm_error_t *error;
    int sig = 0, failed = 0;

    use_config(service, service->next);
    while (!sig && (error = serve_once(&sig, service))) {
        if (++failed <= 2) {
            crmd_log_error(CRM_LOG_ERR, error);
        }
        if (failed == 1) {
            crmd_logf(CRM_LOG_ERR, NOT_RELOADED);
            use_config(service, before);
        }
        else if (failed == 2) {
            crmd_logf(CRM_LOG_WARNING, "CRM3007: waiting until that is possible");
        }
        sig = failed == 1 ? 0 : wait_command(service, 1);
        apr_pool_clear(service->run_pool);
    }
    return sig;
}

/* Serve until a signal other than SIGHUP arrives. */
static crm_error_t *serve(service_t *service)
{
    int sig;

    apr_pool_create(&service->run_pool, service->pool);
    CRM_ERR(serve_once(&sig, service));
    while (sig == SIGHUP) {
        apr_pool_clear(service->run_pool);
        sig = serve_again(service);
    }
    crmd_logf(CRM_LOG_NOTICE, "CRM3009: crmapid exits");
    return NULL;
}

/* Return an error in POOL if CALL does not make sense with CONFIG. */
static crm_error_t *check_call(const call_t *call,
                               const crmd_config_t *config, apr_pool_t *pool)
{
    if (call->now && crm_time_parse(&(apr_time_t){0}, call->now,
                                    strlen(call->now))) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "--now must be a"
                                 " time such as 2026-01-31T09:00:00Z");
    }
    return !call->detach || *config->log_file ? NULL
           : crm_error_createf(CRM_E_BAD_REQUEST, pool, "-D needs the setting"
                               " log_file");
}

static crm_error_t *run(const call_t *call, apr_pool_t *pool)
{
    int fault = crm_process_seal() ? errno : 0;     /* before secrets are read */
    crmd_config_t *config;
    crm_error_t *error;
    sigset_t set;
    int ready = -1;

    CRM_ERR(read_config(&config, call, pool));
    if (call->test) {
        puts("the configuration is valid");
        return NULL;
    }
    CRM_ERR(check_call(call, config, pool));
    if (call->detach) {
        CRM_ERR(detach(&ready, pool));
    }
    CRM_ERR(crmd_log_open(config->log_level, config->log_format,
                          config->log_file, pool));
    if (fault) {
        crmd_logf(CRM_LOG_WARNING, "CRM3012: a crash may leave a core file"
                  " with secrets and contacts: %s", strerror(fault));
    }
    CRM_ERR(crm_shape_init(crm_resources, pool));
    if (call->once) {
        return crmd_daemon_once(config, call->now, pool);
    }
    block_signals(&set);
    CRM_ERR(write_pid(config, pool));
    error = serve(&(service_t){.call = call, .set = &set, .ready = ready,
                               .config = config, .folder = -1,
                               .pool = pool});
    if (*config->pid_file) {
        unlink(config->pid_file);
    }
    return error;
}

/* Print ERROR, with which crmapid ends. */
static void print_error(const crm_error_t *error)
{
    if (crmd_log_is_json() || crmd_log_is_file()) {
        crmd_log_error(CRM_LOG_ERR, error);
    }
    if (!crmd_log_is_json()) {
        fprintf(stderr, "crmapid: %s\n",
                error->log ? error->log : error->message);
    }
}

/* See crm_process_memory(). */
static int no_memory(void)
{
    crmd_logf(CRM_LOG_ERR, "CRM3017: out of memory, so crmapid ends");
    return EXIT_FAILURE;
}

int main(int argc, const char *const *argv)
{
    crm_error_t *error = NULL;
    int code = EXIT_SUCCESS;
    apr_pool_t *pool;
    call_t call;

    crm_process_files();
    apr_app_initialize(&argc, &argv, NULL);
    atexit(apr_terminate);
    umask(077);
    apr_pool_create(&pool, NULL);
    crm_process_memory(no_memory, pool);
    if (!parse_call(&call, argc, argv, pool)) {
        fprintf(stderr, "crmapid: see crmapid --help\n");
        code = 2;
    }
    else if (call.print) {
        print(&call, pool);
    }
    else if ((error = run(&call, pool))) {
        print_error(error);
        code = error->code == CRM_E_BAD_REQUEST ? 2 : EXIT_FAILURE;
    }
    apr_pool_destroy(pool);
    return code;
}
