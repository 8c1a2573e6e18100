/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_match.h: the rows that objects of documents mean, and references
 * between them (contract 14.1) */
#ifndef CRMAPICTL_MATCH_H
#define CRMAPICTL_MATCH_H

#include "crmapictl_apply.h"

/* Load the rows of KIND. */
crm_error_t *ctl_match_load(ctl_apply_t *apply, const ctl_kind_t *kind);

/* Find the rows of WORKS (ctl_work_t), objects of KIND: by id, else by slug, else
 * by name. An object without one gets a new row. Errors: an object means several
 * rows, or one that another object means. */
crm_error_t *ctl_match_rows(ctl_apply_t *apply, const ctl_kind_t *kind,
                            apr_array_header_t *works);

/* Return the id of the row of the resource NAME that TEXT means: an id, a slug or
 * a name; NULL: none or several. Of several with one name it is the one of the
 * agent that ITEM, which refers to it, has as bot_id. */
const char *ctl_match_reference(ctl_apply_t *apply, const char *name,
                                const char *text, const ctl_item_t *item);

/* Return the text of the member NAME of ITEM, or NULL. */
const char *ctl_match_text(const ctl_item_t *item, const char *name);

/* Return the row of KIND with ID, its own or the one that its object has; NULL:
 * there is none. */
ctl_row_t *ctl_match_row(const ctl_apply_t *apply, const ctl_kind_t *kind,
                         const char *id);

/* Set *ID_P to the id that ITEM has, in the command's pool; NULL: it has none.
 * Error: it is no UUID. */
crm_error_t *ctl_match_id(const char **id_p, ctl_apply_t *apply,
                          const ctl_item_t *item);

#endif /* CRMAPICTL_MATCH_H */
