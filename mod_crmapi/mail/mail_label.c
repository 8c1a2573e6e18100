/* SPDX-License-Identifier: Apache-2.0 */
/* mail_label.c: the labels of charsets (contract 18.1) */
#include "mail_label.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <unicode/ucnv.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"

#define LABEL_BYTES 48

/* Converters, and the labels of each: lower case, letters and digits only, with
 * blanks between them. "cp" and a number also stands for a number behind
 * "windows", "ibm" ..., and "iso8859-" and a number for all forms of it. Often
 * the converter is Microsoft's superset of what the label means, as in the
 * Encoding Standard. */
static const struct {
    crm_mail_charset_t charset;
    const char *labels;
} table[] = {
    {{"UTF-8", CRM_MAIL_UTF8},
     " utf8 unicode11utf8 unicode20utf8 utf8mb4 utf8mb3 cp65001 "},
    {{NULL, CRM_MAIL_UNKNOWN},
     " usascii ascii ansix341968 ansix341986 isoir6 us iso646us cp367 cp20127 "
     "iso646irv1991 iso646 csascii unknown8bit unknown xunknown 7bit 8bit "
     "binary default none unspecified charset null iso885912 "},
    {{"windows-1252", CRM_MAIL_SINGLE},
     " iso88591 cp1252 latin1 l1 isolatin1 isoir100 cp819 cp28591 ansi "
     "windowslatin1 "},
    {{"ISO-8859-2", CRM_MAIL_SINGLE},
     " iso88592 latin2 l2 isolatin2 isoir101 cp912 cp28592 "},
    {{"ISO-8859-3", CRM_MAIL_SINGLE},
     " iso88593 latin3 l3 isolatin3 isoir109 cp913 cp28593 "},
    {{"ISO-8859-4", CRM_MAIL_SINGLE},
     " iso88594 latin4 l4 isolatin4 isoir110 cp914 cp28594 "},
    {{"ISO-8859-5", CRM_MAIL_SINGLE},
     " iso88595 cyrillic isolatincyrillic isoir144 cp915 cp28595 "},
    {{"ISO-8859-6", CRM_MAIL_SINGLE},
     " iso88596 arabic isolatinarabic isoir127 asmo708 ecma114 cp1089 cp28596 "
     "cp708 "},
    {{"ISO-8859-7", CRM_MAIL_SINGLE},
     " iso88597 greek greek8 isolatingreek isoir126 ecma118 elot928 suneugreek "
     "cp813 cp28597 "},
    {{"ISO-8859-8", CRM_MAIL_SINGLE},
     " iso88598 hebrew isolatinhebrew isoir138 visual logical cp916 cp28598 "
     "cp38598 "},
    {{"windows-1254", CRM_MAIL_SINGLE},
     " iso88599 latin5 l5 isolatin5 isoir148 turkish cp1254 cp920 cp28599 "},
    {{"iso-8859_10-1998", CRM_MAIL_SINGLE},
     " iso885910 latin6 l6 isolatin6 isoir157 cp28600 "},
    {{"windows-874", CRM_MAIL_SINGLE},
     " iso885911 tis620 thai isoir166 cp874 cp28601 tis62025330 "},
    {{"ISO-8859-13", CRM_MAIL_SINGLE},
     " iso885913 latin7 l7 isoir179 cp921 cp28603 "},
    {{"iso-8859_14-1998", CRM_MAIL_SINGLE},
     " iso885914 latin8 l8 isoceltic isoir199 cp28604 "},
    {{"ISO-8859-15", CRM_MAIL_SINGLE},
     " iso885915 latin9 l9 latin0 isolatin9 isoir203 cp923 cp28605 "},
    {{"ISO-8859-16", CRM_MAIL_ICONV},
     " iso885916 latin10 l10 isoir226 cp28606 "},
    {{"windows-1250", CRM_MAIL_SINGLE}, " cp1250 windowslatin2 msee "},
    {{"windows-1251", CRM_MAIL_SINGLE}, " cp1251 windowscyrillic "},
    {{"windows-1253", CRM_MAIL_SINGLE}, " cp1253 windowsgreek "},
    {{"windows-1255", CRM_MAIL_SINGLE}, " cp1255 windowshebrew mshebr "},
    {{"windows-1256", CRM_MAIL_SINGLE}, " cp1256 windowsarabic msarab "},
    {{"windows-1257", CRM_MAIL_SINGLE}, " cp1257 windowsbaltic winbaltrim "},
    {{"windows-1258", CRM_MAIL_SINGLE}, " cp1258 windowsvietnamese "},
    {{"ibm-866", CRM_MAIL_SINGLE}, " cp866 dosrussian "},
    {{"KOI8-R", CRM_MAIL_SINGLE}, " koi8r koi8 koi cp20866 cp878 "},
    {{"KOI8-U", CRM_MAIL_SINGLE}, " koi8u koi8ru cp21866 cp1168 "},
    {{"macintosh", CRM_MAIL_SINGLE},
     " macintosh mac macroman cp10000 applemac applemacroman "},
    {{"x-mac-cyrillic", CRM_MAIL_SINGLE},
     " maccyrillic macukrainian cp10007 cp10017 "},
    {{"x-mac-greek", CRM_MAIL_SINGLE}, " macgreek cp10006 "},
    {{"x-mac-turkish", CRM_MAIL_SINGLE}, " macturkish cp10081 "},
    {{"x-mac-centraleurroman", CRM_MAIL_SINGLE},
     " macce maccentraleurope maccentraleurroman cp10029 "},
    {{"gb18030", CRM_MAIL_MULTI},
     " gb18030 gbk gb2312 gb231280 gb23121980 gb231280gb231280 isoir58 "
     "iso58gb231280 chinese cngb euccn cp936 cp54936 cp51936 cp20936 "
     "gb180302000 gb180302005 hzgb231280 eucgb2312cn "},
    {{"ibm-1375_P100-2008", CRM_MAIL_MULTI},
     " big5 big5hkscs cnbig5 big5eten bigfive xxbig5 big5tw cp950 cp10002 "
     "big5hkscs2004 big5hkscs1999 big5e "},
    {{"EUC-TW", CRM_MAIL_MULTI}, " euctw cnseuctw "},
    {{"euc-jp-2007", CRM_MAIL_MULTI},
     " eucjp ujis eucpkdfmtjapanese extendedunixcodepackedformatforjapanese "
     "cp51932 cp20932 eucjpms eucjpwin eucjis2004 eucjpopen "},
    {{"ibm-943_P15A-2003", CRM_MAIL_MULTI},
     " shiftjis sjis mskanji ms932 cp932 windows31j cp943 cp942 mssjis "
     "shiftjis2004 shiftjisx0213 sjiswin windowsshiftjis shiftjiscp932 "},
    {{"windows-949", CRM_MAIL_MULTI},
     " euckr ksc56011987 ksc56011989 ksc56011992 ksc5601 ksc56031987 korean "
     "isoir149 uhc ks5601 ksc cp949 cp51949 cp20949 cp970 kscs56011987 "
     "ksc56011987mshanguluhc unifiedhangul "},
    {{"JOHAB", CRM_MAIL_ICONV}, " johab cp1361 "},
    {{"ISO-2022-JP", CRM_MAIL_JIS},
     " iso2022jp iso2022jp1 iso2022jp2 iso2022jp3 iso2022jp2004 iso2022jpext "
     "iso2022jpms iso2022jpwin jis jis7 jis8 cp50220 cp50221 cp50222 cp50220raw "
     "windowsiso2022jp mswindowsiso2022jp junet jisencoding iso2022 "},
    {{"ISO-2022-KR", CRM_MAIL_WIDE}, " iso2022kr cp50225 "},
    {{"ISO-2022-CN-EXT", CRM_MAIL_WIDE}, " iso2022cn iso2022cnext cp50227 "},
    {{"HZ", CRM_MAIL_WIDE}, " hz hzgb2312 hzgb cp52936 "},
    {{"UTF-7", CRM_MAIL_WIDE}, " utf7 unicode11utf7 unicode20utf7 cp65000 "},
    {{"UTF-16", CRM_MAIL_WIDE},
     " utf16 ucs2 iso10646ucs2 unicode csunicode unicodefeff iso10646 "},
    {{"UTF-16LE", CRM_MAIL_WIDE}, " utf16le ucs2le unicodelittle cp1200 "},
    {{"UTF-16BE", CRM_MAIL_WIDE}, " utf16be ucs2be unicodefffe cp1201 "},
    {{"UTF-32", CRM_MAIL_WIDE}, " utf32 ucs4 iso10646ucs4 "},
    {{"UTF-32LE", CRM_MAIL_WIDE}, " utf32le ucs4le cp12000 "},
    {{"UTF-32BE", CRM_MAIL_WIDE}, " utf32be ucs4be cp12001 "},
    {{"VISCII", CRM_MAIL_ICONV}, " viscii viscii111 viscii11 "},
    {{"TCVN", CRM_MAIL_ICONV}, " tcvn tcvn5712 tcvn57121 tcvn571211993 "},
    {{"ARMSCII-8", CRM_MAIL_ICONV}, " armscii8 "},
    {{"GEORGIAN-PS", CRM_MAIL_ICONV}, " georgianps "},
    {{"KOI8-T", CRM_MAIL_ICONV}, " koi8t "},
    {{"RK1048", CRM_MAIL_ICONV}, " kz1048 rk1048 strk10482002 cskz1048 "},
    {{"PT154", CRM_MAIL_ICONV}, " pt154 ptcp154 csptcp154 cp154 "},
};

/* What stands before the number of a code page, with the longest first. */
static const char *const pages[] = {
    "microsoftcp", "codepage", "windows", "oem", "msdos", "dos", "ibm", "win",
    "ms", "cp", "ccsid", "pc", ""
};

/* Return the charset of the label NAME in the table, or NULL. */
static const crm_mail_charset_t *find(const char *name)
{
    char word[LABEL_BYTES + 3];
    int n = apr_snprintf(word, sizeof(word), " %s ", name);

    for (size_t i = 0; n > 2 && i < CRM_NELTS(table); i++) {
        if (strstr(table[i].labels, word)) {
            return &table[i].charset;
        }
    }
    return NULL;
}

/* Write the letters and digits of LABEL to NAME: up to what ends a label, also
 * at a blank if SHORT. */
static void normalize(char name[LABEL_BYTES], const char *label, int at_blank)
{
    const char *ends = at_blank ? "*;,\"'()<>:{} \t" : "*;,\"'()<>:{}";
    size_t len = 0;

    while (*label && !apr_isalnum(*label)) {
        label++;
    }
    if (!strncasecmp(label, "charset", 7) && label[7]
        && !apr_isalnum(label[7])) {
        for (label += 7; *label && !apr_isalnum(*label); label++) {
        }
    }
    for (; *label && !strchr(ends, *label) && len + 1 < LABEL_BYTES; label++) {
        if (apr_isalnum(*label)) {
            name[len++] = (char)apr_tolower(*label);
        }
    }
    name[len] = '\0';
}

/* Return the charset of NAME, "iso88591" and what may follow, or NULL. */
static const crm_mail_charset_t *find_iso(const char *name)
{
    char made[LABEL_BYTES];
    long number;

    name += !strncmp(name, "iso", 3) ? 3 : 0;
    if (strncmp(name, "8859", 4) || !apr_isdigit(name[4])) {
        return NULL;
    }
    /* 1 to 16, before a year ("iso88591" and "1987"), "e", "i" or "windows" */
    number = name[4] - '0';
    if (number == 1 && name[5] >= '0' && name[5] <= '6'
        && strspn(name + 4, "0123456789") != 5) {
        number = 10 + name[5] - '0';
    }
    apr_snprintf(made, sizeof(made), "iso8859%ld", number);
    return find(made);
}

/* Return the number of the code page NAME, which stands behind its maker; 0 if
 * NAME is none. */
static long page_number(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(pages); i++) {
        size_t len = strlen(pages[i]);
        char *end;
        long number;

        if (strncmp(name, pages[i], len) || !apr_isdigit(name[len])) {
            continue;
        }
        number = strtol(name + len, &end, 10);
        return *end || number > 99999 ? 0 : number;
    }
    return 0;
}

/* Return the charset of the code page NAME in the table, or NULL. */
static const crm_mail_charset_t *find_page(const char *name)
{
    char made[LABEL_BYTES];
    long number = page_number(name);

    apr_snprintf(made, sizeof(made), "cp%ld", number);
    return number ? find(made) : NULL;
}

/* Return the charset of the normalized NAME, or NULL. */
static const crm_mail_charset_t *find_any(const char *name)
{
    const crm_mail_charset_t *found = find(name);

    found = found ? found : find_iso(name);
    found = found ? found : find_page(name);
    if (!found && !strncmp(name, "utf8", 4)) {
        found = find("utf8");
    }
    if (!found && *name == 'x') {
        return find_any(name + 1);
    }
    return !found && !strncmp(name, "cs", 2) ? find_any(name + 2) : found;
}

/* Return whether ICU has the converter NAME. It has aliases of others, too. */
static int is_available(const char *name)
{
    int32_t count = ucnv_countAvailable(), i;

    for (i = 0; i < count
         && ucnv_compareNames(ucnv_getAvailableName(i), name); i++) {
    }
    return i < count;
}

/* Return the charset of NAME that only ICU knows. Its list of names is read, so
 * that no name opens a file. */
static crm_mail_charset_t find_icu(const char *name)
{
    crm_mail_charset_t charset = {NULL, CRM_MAIL_UNKNOWN};
    UErrorCode error = U_ZERO_ERROR;
    const char *known = *name ? ucnv_getAlias(name, 0, &error) : NULL;

    if (U_SUCCESS(error) && known && !strchr(known, ',')
        && is_available(known)) {
        charset.name = known;
        charset.coding = CRM_MAIL_SINGLE;
    }
    return charset;
}

/* Likewise, of a code page in any of its forms ("DOS-852", "x-cp852"). */
static crm_mail_charset_t find_icu_page(const char *name)
{
    crm_mail_charset_t charset = find_icu(name);
    long number = page_number(name + (*name == 'x'));

    if (!charset.name && number) {
        char made[LABEL_BYTES];

        apr_snprintf(made, sizeof(made), "ibm-%ld", number);
        charset = find_icu(made);
    }
    return charset;
}

crm_mail_charset_t crm_mail_label(const char *label)
{
    const crm_mail_charset_t *found = NULL;
    const char *dot = label ? strchr(label, '.') : NULL;
    char name[LABEL_BYTES] = "", first[LABEL_BYTES] = "";

    if (label) {
        normalize(name, label, 0);
        normalize(first, label, 1);
        found = find_any(name);
        found = found ? found : find_any(first);
    }
    if (!found && dot) {        /* "de_DE.ISO-8859-1" */
        char behind[LABEL_BYTES];

        normalize(behind, dot + 1, 1);
        found = find_any(behind);
    }
    return found ? *found : find_icu_page(first);
}

const char *crm_mail_label_in_html(const char *bytes, apr_size_t len,
                                   apr_pool_t *pool)
{
    static const char word[] = "charset=";
    const char *head = apr_pstrmemdup(pool, bytes, len < 4096 ? len : 4096);
    const char *at = strcasestr(head, word);

    if (!at) {
        return NULL;
    }
    at += sizeof(word) - 1;
    at += strspn(at, "\"' ");
    at = apr_pstrmemdup(pool, at, strcspn(at, "\"'> ;/"));
    /* what says so in ASCII is not UTF-16 (HTML, 13.2.3.2) */
    return crm_mail_label(at).coding == CRM_MAIL_WIDE ? NULL : at;
}
