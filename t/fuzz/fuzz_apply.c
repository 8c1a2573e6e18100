/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_apply.c: the documents of crmapictl apply */
/* libFuzzer: -max_len=8192 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#include "crm_resources.h"
#include "crm_shape.h"
#include "crm_text.h"
#include "crmapictl_document.h"

/* Each item has a kind, and a place that an error can name. */
static void judge(ctl_t *ctl, const apr_array_header_t *items)
{
    for (int i = 0; i < items->nelts; i++) {
        const ctl_item_t *item = APR_ARRAY_IDX(items, i, const ctl_item_t *);

        must(item->kind && json_object_is_type(item->object, json_type_object));
        must(item->line >= 1 && (!*item->base || *item->base == '/'));
        if (i < 4) {
            crm_error_t *error = ctl_item_refuse(ctl, item, "/name", "is wrong");

            must(strstr(error->message, ": line ") != NULL);
        }
    }
}

/* Make the shapes of all resources in POOL. */
static void init(apr_pool_t *pool)
{
    must(!crm_shape_init(crm_resources, pool));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);
    apr_array_header_t *items;
    crm_error_t *error;
    char path[64];
    const char *args[] = {path, NULL};
    ctl_t ctl = {.args = args, .pool = pool};
    ctl_given_t given[] = {{CTL_SET, "A=a"}, {CTL_SET, "NAME=x ${A} y"}};
    int fd = memfd_create("document", MFD_CLOEXEC);

    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ctl.given = apr_array_make(pool, 2, sizeof(ctl_given_t));
    for (int i = 0; i < 2; i++) {
        APR_ARRAY_PUSH(ctl.given, ctl_given_t) = given[i];
    }
    error = ctl_document_read(&items, &ctl);
    if (error) {
        must(!strncmp(error->message, path, strlen(path)));
        must(crm_text_valid_utf8(error->message, strlen(error->message)));
    }
    else {
        judge(&ctl, items);
    }
    close(fd);
    apr_pool_destroy(pool);
    return 0;
}
