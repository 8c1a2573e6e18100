/* SPDX-License-Identifier: Apache-2.0 */
/* crm_media.h: the media types of bodies (RFC 9110, 8.3.1) */
#ifndef CRM_MEDIA_H
#define CRM_MEDIA_H

/* Return whether the Content-Type TYPE (NULL: none) is NAME, whatever its parameters
 * are. */
int crm_media_is(const char *type, const char *name);

/* The same, and its charset, if it has one, is UTF-8 (contract 5.3). */
int crm_media_is_utf8(const char *type, const char *name);

/* The same for application/json. */
int crm_media_is_json(const char *type);

#endif /* CRM_MEDIA_H */
