/* SPDX-License-Identifier: Apache-2.0 */
/* crm_array.h: the length of an array */
#ifndef CRM_ARRAY_H
#define CRM_ARRAY_H

/* The number of elements of ARRAY, which must be an array, not a pointer. */
#define CRM_NELTS(array) (sizeof(array) / sizeof(*(array)))

#endif /* CRM_ARRAY_H */
