/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_options.h: parsing the command line, and the help */
#ifndef CRMAPICTL_OPTIONS_H
#define CRMAPICTL_OPTIONS_H

#include "crmapictl.h"

/* Parse the COUNT words of a command line, without the program's name: fill CTL
 * and set *COMMAND_P (NULL: no command is named). "help WORDS" is "WORDS
 * --help". Errors: ctl_misuse(). */
crm_error_t *ctl_parse(const ctl_command_t **command_p, ctl_t *ctl, int count,
                       const char *const *words);

/* Return the help of COMMAND, in POOL. COMMAND is NULL: that of the commands
 * whose first word is GROUP, or if that is NULL, of the tool. */
const char *ctl_help(const ctl_command_t *command, const char *group,
                     apr_pool_t *pool);

/* Set *NUMBER_P to the value of OPTION, 0 to MAX, if the option is given.
 * Errors: ctl_misuse(). */
crm_error_t *ctl_number(long *number_p, ctl_t *ctl, ctl_option_t option,
                        long max);

/* The highest limit of a key or workspace, as in the schema. */
#define CTL_LIMIT_MAX 1000000

/* Set *VALUE_P to the value of OPTION, a limit, as a value of SQL: NULL if it is
 * not given, "0" for "default". Errors: ctl_misuse(). */
crm_error_t *ctl_limit(const char **value_p, ctl_t *ctl, ctl_option_t option);

/* Set *REASON_P to --reason, or to NONE if it is not given. Errors: ctl_fault(). */
crm_error_t *ctl_reason(const char **reason_p, ctl_t *ctl, const char *none);

/* Set *VALUE_P to the value of OPTION, on or off, as a value of SQL: NULL if it
 * is not given. Errors: ctl_misuse(). */
crm_error_t *ctl_switch(const char **value_p, ctl_t *ctl, ctl_option_t option);

/* Check that --status, if it is given, is one of KNOWN, which NULL ends. Errors:
 * ctl_fault(). */
crm_error_t *ctl_known_status(ctl_t *ctl, const char *const *known);

/* Check that --from, a time, is not after --to. Errors: ctl_misuse(). */
crm_error_t *ctl_period(ctl_t *ctl);

/* Set *VALUE_P to the value of OPTION, a time, as a value of SQL with
 * milliseconds, and *TIME_P (may be NULL) to the time. MORE, such as ", or never", is
 * said in the error behind what a time is. Errors: ctl_misuse(). */
crm_error_t *ctl_time(const char **value_p, apr_time_t *time_p, ctl_t *ctl,
                      ctl_option_t option, const char *more);

/* Set ID to GIVEN, the operand WHAT, in lower case. Errors: GIVEN is not a
 * UUID. */
crm_error_t *ctl_uuid(char *id, ctl_t *ctl, const char *what,
                      const char *given);

#endif /* CRMAPICTL_OPTIONS_H */
