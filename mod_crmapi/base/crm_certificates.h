/* SPDX-License-Identifier: Apache-2.0 */
/* crm_certificates.h: files of certificates of authorities */
#ifndef CRM_CERTIFICATES_H
#define CRM_CERTIFICATES_H

/* Return NULL, or why FILE (PEM) cannot be used to verify certificates. */
const char *crm_certificates_fault(const char *file);

#endif /* CRM_CERTIFICATES_H */
