/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_document.h: reading the documents of apply (contract 14.1) */
#ifndef CRMAPICTL_DOCUMENT_H
#define CRMAPICTL_DOCUMENT_H

#include "apr_hash.h"

#include "crmapictl.h"
#include "crmapictl_kind.h"

/* No document is longer. */
#define CTL_DOCUMENT_MAX (16 * 1024 * 1024)

/* An object of a document. */
typedef struct ctl_item_t {
    const ctl_kind_t *kind;
    json_object *object;        /* its variables have their values */
    const char *file;           /* as it was named */
    const char *text;           /* the JSON text that the object is in, */
    apr_size_t len;
    apr_int64_t line;           /* the line on which TEXT begins, */
    const char *base;           /* and the pointer to the object in it */
    apr_hash_t *typed;          /* members that were one variable and no more */
} ctl_item_t;

/* Set *ITEMS_P to the objects (ctl_item_t *) in the operands of CTL, files, in
 * their order; "-" is stdin. A file is one JSON text, or one on each line. A text
 * is an object with the member "object", an array of these, or an object with the
 * members "workspace", "agent" and so on, each an object or an array of them.
 * ${NAME} in strings is replaced as --set and --set-file say; $${ is ${. Errors
 * name file, line, pointer and rule. */
crm_error_t *ctl_document_read(apr_array_header_t **items_p, ctl_t *ctl);

/* Return the error that FIELD of ITEM (NULL: all of it), a name or a pointer,
 * breaks RULE. */
crm_error_t *ctl_item_refuse(ctl_t *ctl, const ctl_item_t *item,
                             const char *field, const char *rule);

#endif /* CRMAPICTL_DOCUMENT_H */
