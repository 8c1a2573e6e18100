/* SPDX-License-Identifier: Apache-2.0 */
/* mail_style.h: what styles of HTML say of an element (contract 18.3) */
#ifndef CRM_MAIL_STYLE_H
#define CRM_MAIL_STYLE_H

/* What a style says of an element. */
#define CRM_MAIL_STYLE_HIDES 1u /* neither it nor what is in it is shown */
#define CRM_MAIL_STYLE_TINY 2u  /* its font has no size; what is in it may have
                                   one of its own */
#define CRM_MAIL_STYLE_SIZED 4u /* its font has a size */
#define CRM_MAIL_STYLE_UNSEEN 8u /* it is invisible; what is in it may be
                                   visible */
#define CRM_MAIL_STYLE_SEEN 16u /* it is visible */
#define CRM_MAIL_STYLE_SPACES 32u /* its white space is kept */
#define CRM_MAIL_STYLE_LINES 64u /* its line ends are kept */
#define CRM_MAIL_STYLE_FLOWS 128u /* its white space is a space */
#define CRM_MAIL_STYLE_BLOCK 256u /* it has lines of its own */
#define CRM_MAIL_STYLE_SIGNS 512u /* its font has signs for letters: mail_sign.h */
#define CRM_MAIL_STYLE_LETTERS 1024u /* its font has letters */

/* Return what STYLE, the declarations of an element (CSS Style Attributes), says,
 * as bits. */
unsigned crm_mail_style(const char *style);

#endif /* CRM_MAIL_STYLE_H */
