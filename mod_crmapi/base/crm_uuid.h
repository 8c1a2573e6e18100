/* SPDX-License-Identifier: Apache-2.0 */
/* crm_uuid.h: ids: UUIDs of version 7 (RFC 9562), and reading any UUID */
#ifndef CRM_UUID_H
#define CRM_UUID_H

#include "apr.h"

#define CRM_UUID_LEN 36

/* Write a new UUIDv7 and a NUL to OUT. Ids made by one process grow, whatever
 * thread makes them (RFC 9562, 6.2, method 1). */
void crm_uuid_v7(char out[CRM_UUID_LEN + 1]);

/* Write the UUID TEXT (LEN bytes, any version, any case) in lower case and a
 * NUL to OUT. Return 0 if it is not 8-4-4-4-12 hexadecimal digits. */
int crm_uuid_parse(char out[CRM_UUID_LEN + 1], const char *text,
                   apr_size_t len);

#endif /* CRM_UUID_H */
