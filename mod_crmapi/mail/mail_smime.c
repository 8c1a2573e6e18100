/* SPDX-License-Identifier: Apache-2.0 */
/* mail_smime.c: signed messages that enclose what was signed (RFC 8551) */
#include "mail_smime.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>

#include "apr_strings.h"

#include "mail_file.h"
#include "mail_read.h"

/* Return whether PART is of the type, or has the name of a file that some servers
 * leave alone of it. */
static int is_smime(GMimePart *part, apr_pool_t *pool)
{
    GMimeContentType *type =
        g_mime_object_get_content_type(GMIME_OBJECT(part));
    const char *name;
    size_t len;

    if (g_mime_content_type_is_type(type, "application", "pkcs7-mime")
        || g_mime_content_type_is_type(type, "application", "x-pkcs7-mime")) {
        return 1;
    }
    name = crm_mail_file_name(GMIME_OBJECT(part), NULL, pool);
    len = name ? strlen(name) : 0;
    return len > 4 && !strcasecmp(name + len - 4, ".p7m");
}

/* Return the content of CMS, if it is signed data. */
static const ASN1_OCTET_STRING *content_of(CMS_ContentInfo *cms)
{
    ASN1_OCTET_STRING **content;

    if (OBJ_obj2nid(CMS_get0_type(cms)) != NID_pkcs7_signed) {
        return NULL;
    }
    content = CMS_get0_content(cms);
    return content ? *content : NULL;
}

const char *crm_mail_signed(apr_size_t *len_p, GMimePart *part,
                            apr_pool_t *pool)
{
    const ASN1_OCTET_STRING *content;
    const char *bytes = NULL;
    CMS_ContentInfo *cms = NULL;
    apr_size_t len;
    BIO *bio;

    *len_p = 0;
    if (!is_smime(part, pool)) {
        return NULL;
    }
    bytes = crm_mail_bytes(&len, part, pool);
    bio = len && len < INT_MAX ? BIO_new_mem_buf(bytes, (int)len) : NULL;
    bytes = NULL;
    if (bio) {
        cms = d2i_CMS_bio(bio, NULL);
        BIO_free(bio);
    }
    content = cms ? content_of(cms) : NULL;
    if (content && ASN1_STRING_length(content) > 0) {
        *len_p = (apr_size_t)ASN1_STRING_length(content);
        bytes = apr_pstrmemdup(pool, (const char *)ASN1_STRING_get0_data(
                                   content), *len_p);
    }
    CMS_ContentInfo_free(cms);
    ERR_clear_error();
    return bytes;
}
