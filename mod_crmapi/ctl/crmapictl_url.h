/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_url.h: whether the address of a webhook can be reached */
#ifndef CRMAPICTL_URL_H
#define CRMAPICTL_URL_H

#include "crmapictl.h"

/* Check the URL of a webhook, as far as that needs no name lookup. Errors: nothing
 * can ever be reached there. *PRIVATE_P is set to its host, in the command's pool,
 * if that is an address which is not public, else to NULL. A URL that the database
 * will refuse passes. */
crm_error_t *ctl_url_check(const char **private_p, ctl_t *ctl,
                           const char *url);

/* Warn of PRIVATE, which ctl_url_check() has set; NULL: there is nothing to say. */
void ctl_url_tell(const char *private);

#endif /* CRMAPICTL_URL_H */
