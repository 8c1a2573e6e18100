/* SPDX-License-Identifier: Apache-2.0 */
/* crm_uuid.h: making UUIDs of version 7 (RFC 9562), parsing any UUID */
#ifndef CRM_UUID_H
#define CRM_UUID_H

#include "apr.h"

#define CRM_UUID_LEN 36
#define CRM_UUID_BYTES 16

/* Write a new UUIDv7 and a NUL to OUT. The ids of a process are ascending over
 * all threads (RFC 9562, 6.2, method 1). */
void crm_uuid_v7(char out[CRM_UUID_LEN + 1]);

/* Write the UUID TEXT (LEN bytes, any version, any case) to OUT in lower case,
 * with a NUL. Return 0 if it is not 8-4-4-4-12 hexadecimal digits. */
int crm_uuid_parse(char out[CRM_UUID_LEN + 1], const char *text,
                   apr_size_t len);

/* Write the 16 bytes of the UUID TEXT to BYTES. Return 0 if TEXT is invalid, as
 * crm_uuid_parse() says. */
int crm_uuid_pack(unsigned char bytes[CRM_UUID_BYTES], const char *text);

/* Write BYTES to OUT as a UUID in lower case, with a NUL. */
void crm_uuid_unpack(char out[CRM_UUID_LEN + 1],
                     const unsigned char bytes[CRM_UUID_BYTES]);

#endif /* CRM_UUID_H */
