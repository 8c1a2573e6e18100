/* SPDX-License-Identifier: Apache-2.0 */
/* crm_certificates.c: files of certificates of authorities */
#include "crm_certificates.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509.h>

const char *crm_certificates_fault(const char *file)
{
    X509_STORE *store;
    int good;

    if (access(file, R_OK)) {
        return strerror(errno);
    }
    store = X509_STORE_new();
    good = store && X509_STORE_load_locations(store, file, NULL) == 1;
    X509_STORE_free(store);
    ERR_clear_error();
    return good ? NULL : "the file has no certificates";
}
