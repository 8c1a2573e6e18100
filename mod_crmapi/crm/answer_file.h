/* SPDX-License-Identifier: Apache-2.0 */
/* answer_file.h: the attachments of an answer (contract 19.1) */
#ifndef CRM_ANSWER_FILE_H
#define CRM_ANSWER_FILE_H

#include "crm_type.h"

/* Read LIST, the member "attachments" of a body (NULL: absent or null). Set *FILES_P,
 * in INPUT's pool, to the JSON that crmapi.message_answer() stores, with new ids, and
 * *SHOWN_P to what a message's metadata has, which the caller owns. Both are NULL if
 * there are none, or if INPUT gets an error. */
void crm_answer_files(const char **files_p, json_object **shown_p,
                      crm_input_t *input, json_object *list);

#endif /* CRM_ANSWER_FILE_H */
