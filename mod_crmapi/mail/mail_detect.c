/* SPDX-License-Identifier: Apache-2.0 */
/* mail_detect.c: the charset of text that does not say it (contract 18.1) */
#include "mail_detect.h"

#include <string.h>

#include <uchardet/uchardet.h>

#include "apr_lib.h"

#include "crm_array.h"

/* Bytes that are looked at. */
#define BYTES (64 * 1024)

/* ---- short East Asian texts ---------------------------------------------- */

typedef struct range_t {
    unsigned char from, to;
} range_t;

/* The most frequent syllables of Korean, of which each sentence has some: all
 * common characters of GB 2312 are syllables as well. */
static const char syllables[] =
    "\xc0\xcc\xb4\xd9\xb4\xc2\xc0\xbb\xc0\xc7\xbf\xa1\xb0\xa1\xb0\xed"
    "\xc7\xcf\xc1\xf6\xb1\xe2\xb7\xce\xbb\xe7\xc7\xd1\xb4\xeb\xc0\xda"
    "\xbd\xc3\xbe\xc6\xb8\xae\xbe\xee\xb4\xcf\xc0\xba\xb5\xb5\xc0\xce"
    "\xb1\xd7\xc7\xd8\xbc\xad\xb3\xaa\xc0\xcf\xc1\xa4\xb8\xa6\xbc\xf6"
    "\xba\xb8\xb5\xe9\xc0\xd6\xb0\xd4\xbd\xc0\xb0\xa8\xc7\xd5\xb5\xe5"
    "\xbf\xe4\xbc\xbc\xb9\xae\xbe\xc8\xba\xce\xc5\xb9\xb6\xf3\xc1\xd6"
    "\xc1\xa6\xbd\xba\xbf\xa9\xc0\xfc";

/* Charsets of two bytes for a character, and the first bytes of their common
 * characters: those that a short text, of which uchardet says nothing, should
 * consist of. The likelier one is first. */
static const struct {
    const char *label;
    range_t common[3];
    unsigned char second;       /* the least second byte */
    const char *frequent;       /* a fifth should be of these; NULL: of any */
} doubles[] = {
    {"euc-kr", {{0xb0, 0xc8}, {0xa1, 0xa1}, {0xa3, 0xa3}}, 0xa1,
     syllables},
    {"gb18030", {{0xb0, 0xd7}, {0xa1, 0xa1}, {0xa3, 0xa3}}, 0xa1, NULL},
    {"euc-jp", {{0xa4, 0xa5}, {0xb0, 0xcf}, {0xa1, 0xa1}}, 0xa1, NULL},
    {"big5", {{0xa4, 0xc6}, {0xa1, 0xa1}, {0xa1, 0xa1}}, 0x40, NULL},
    {"shift_jis", {{0x81, 0x83}, {0x88, 0x97}, {0x81, 0x81}}, 0x40, NULL},
};

/* Return whether PAIR is in the list LIST. */
static int is_in(const char *list, const unsigned char *pair)
{
    for (; *list; list += 2) {
        if (!memcmp(list, pair, 2)) {
            return 1;
        }
    }
    return 0;
}

/* Return the percentage of common characters of the charset at INDEX of the
 * table in the LEN BYTES, 0 if they cannot be in it. */
static unsigned percent_common(size_t index, const unsigned char *bytes,
                               apr_size_t len)
{
    const range_t *common = doubles[index].common;
    const char *frequent = doubles[index].frequent;
    apr_size_t all = 0, found = 0, often = 0;

    for (apr_size_t i = 0; i < len; i++) {
        if (bytes[i] < 0x80) {
            continue;
        }
        if (i + 1 == len || bytes[i + 1] < doubles[index].second
            || bytes[i + 1] == 0x7f || bytes[i + 1] == 0xff) {
            return 0;
        }
        for (int r = 0; r < 3; r++) {
            if (bytes[i] >= common[r].from && bytes[i] <= common[r].to) {
                found++;
                break;
            }
        }
        often += !frequent || is_in(frequent, bytes + i);
        all++;
        i++;
    }
    return all > 1 && often * 5 >= all ? (unsigned)(found * 100 / all) : 0;
}

/* Return the label of the East Asian charset of the LEN BYTES; NULL if they are
 * rather words with a few accents. */
static const char *detect_double(const unsigned char *bytes, apr_size_t len)
{
    apr_size_t high = 0, letters = 0;
    const char *label = NULL;
    unsigned best = 74;

    for (apr_size_t i = 0; i < len; i++) {
        high += bytes[i] >= 0x80;
        letters += bytes[i] > '@';
    }
    for (size_t i = 0; high * 2 > letters && i < CRM_NELTS(doubles); i++) {
        unsigned percent = percent_common(i, bytes, len);

        if (percent > best) {
            best = percent;
            label = doubles[i].label;
        }
    }
    return label;
}

/* ---- short Cyrillic texts ------------------------------------------------- */

/* Letters of a text that count as few. */
#define FEW 24

/* Charsets of Cyrillic letters: the least capital and small one, further ones, and
 * the vowels. */
static const struct {
    const char *label;
    unsigned char capital, small;
    const char *capitals, *smalls, *vowels;
} cyrillic[] = {
    {"windows-1251", 0xc0, 0xe0, "\xa5\xa8\xaa\xaf\xb2", "\xb3\xb4\xb8\xba\xbf",
     "\xe0\xe5\xe8\xee\xf3\xfb\xfe\xff\xb3\xb8\xba\xbf"
     "\xc0\xc5\xc8\xce\xd3\xdb\xde\xdf"},
    {"koi8-r", 0xe0, 0xc0, "\xb3", "\xa3",
     "\xc1\xc5\xc9\xcf\xd5\xd9\xc0\xd1\xa3"
     "\xe1\xe5\xe9\xef\xf5\xf9\xe0\xf1"},
};

/* The vowels of Greek that have no accent. */
static const char greek_vowels[] = "\xe1\xe5\xe7\xe9\xef\xf5\xf9"
                                   "\xc1\xc5\xc7\xc9\xcf\xd5\xd9";

/* Marks beside Cyrillic letters, in both charsets: quotes, dashes, a numero sign. */
static const char signs[] =
    "\x80\x82\x84\x85\x8b\x91\x92\x93\x94\x96\x97\x9b\xa0\xa7\xab\xb9\xbb";

/* What a text is in a charset of the table. */
typedef struct words_t {
    apr_size_t letters, vowels;
    apr_size_t odd;             /* capitals behind small letters, small ones behind
                                   two capitals, and what is no letter or mark */
    apr_size_t capitals, longest;
} words_t;

/* Return what the LEN BYTES are in the charset at INDEX of the table. */
static words_t words_in(size_t index, const char *bytes, apr_size_t len)
{
    words_t words = {0};
    apr_size_t capitals = 0, smalls = 0;    /* of the word up to here */

    for (apr_size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        int capital = (c & 0xe0) == cyrillic[index].capital
                      || (c >= 0x80 && strchr(cyrillic[index].capitals, c));
        int small = (c & 0xe0) == cyrillic[index].small
                    || (c >= 0x80 && strchr(cyrillic[index].smalls, c));

        words.odd += (capital && smalls) || (small && !smalls && capitals > 1)
                     || (c >= 0x80 && !capital && !small && !strchr(signs, c));
        words.letters += (apr_size_t)(capital || small);
        words.capitals += (apr_size_t)capital;
        words.vowels += c >= 0x80 && strchr(cyrillic[index].vowels, c);
        capitals = capital || small ? capitals + (apr_size_t)capital : 0;
        smalls = capital || small ? smalls + (apr_size_t)small : 0;
        words.longest = capitals + smalls > words.longest ? capitals + smalls
                        : words.longest;
    }
    return words;
}

/* Return the number of the LEN BYTES that are in LIST, of bytes above 0x7f. */
static apr_size_t count_of(const char *list, const char *bytes, apr_size_t len)
{
    apr_size_t count = 0;

    for (apr_size_t i = 0; i < len; i++) {
        count += (bytes[i] & 0x80) && strchr(list, bytes[i]);
    }
    return count;
}

/* Return the label of the Cyrillic charset of the LEN BYTES: a few words without Latin
 * letters, each with a capital at most at its beginning, or of capitals; NULL if they
 * are something else. SURE: only if it can be nothing East Asian, where a pair begins
 * with what is a capital here. */
static const char *detect_cyrillic(const char *bytes, apr_size_t len, int sure)
{
    words_t windows = words_in(0, bytes, len), koi = words_in(1, bytes, len);
    const words_t *best = &windows;

    for (apr_size_t i = 0; i < len; i++) {
        if (apr_isalpha(bytes[i])) {
            return NULL;
        }
    }
    if (count_of("\xab", bytes, len) != count_of("\xbb", bytes, len)) {
        return NULL;            /* quotation marks are pairs */
    }
    if (koi.odd < windows.odd
        || (koi.odd == windows.odd && koi.vowels > windows.vowels)) {
        best = &koi;
    }
    if (best->longest < 3 || best->letters > FEW || best->odd || !best->vowels
        || (sure && (best == &koi || best->capitals == best->letters))) {
        return NULL;
    }
    return cyrillic[best == &koi].label;
}

/* ---- uchardet ------------------------------------------------------------ */

/* What uchardet says of texts in Latin letters, or Greek. It takes a few accents for
 * those of any language. RARE: few mails are in it, so that a text needs several
 * letters to be. */
typedef struct latin_t {
    const char *label;
    int rare;
} latin_t;

static const latin_t latins[] = {
    {"IBM852", 1}, {"ISO-8859-1", 0}, {"ISO-8859-10", 1}, {"ISO-8859-13", 1},
    {"ISO-8859-15", 0}, {"ISO-8859-16", 1}, {"ISO-8859-2", 0}, {"ISO-8859-3", 1},
    {"ISO-8859-4", 1}, {"ISO-8859-7", 1}, {"ISO-8859-9", 0},
    {"MAC-CENTRALEUROPE", 1}, {"VISCII", 1}, {"WINDOWS-1250", 0},
    {"WINDOWS-1252", 0}, {"WINDOWS-1253", 1}, {"WINDOWS-1257", 1},
    {"WINDOWS-1258", 1},
};

/* Charsets of ISO 8859, and those of Windows that have marks and letters where these
 * have control characters. */
static const struct {
    const char *iso, *windows;
} windows[] = {
    {"ISO-8859-2", "windows-1250"}, {"ISO-8859-3", "windows-1252"},
    {"ISO-8859-4", "windows-1257"}, {"ISO-8859-7", "windows-1253"},
    {"ISO-8859-8", "windows-1255"}, {"ISO-8859-10", "windows-1252"},
    {"ISO-8859-13", "windows-1257"}, {"ISO-8859-15", "windows-1252"},
    {"ISO-8859-16", "windows-1252"},
};

/* Distinct letters of a text in a rare charset. */
#define LETTERS 3

/* Marks and signs that all of Windows' charsets have at the same places. */
static const char marks[] =
    "\x80\x82\x84\x85\x8b\x91\x92\x93\x94\x95\x96\x97\x99\x9b"
    "\xa0\xa7\xa9\xab\xad\xae\xb0\xb1\xb7\xbb";

/* Return whether the LEN BYTES have LETTERS distinct ones above 0x7f beside
 * marks. */
static int has_letters(const char *bytes, apr_size_t len)
{
    char seen[LETTERS + 1] = "";
    apr_size_t count = 0;

    for (apr_size_t i = 0; i < len && count < LETTERS; i++) {
        if ((bytes[i] & 0x80) && !strchr(marks, bytes[i])
            && !strchr(seen, bytes[i])) {
            seen[count++] = bytes[i];
        }
    }
    return count == LETTERS;
}

/* Return whether the LEN BYTES have one of 0x80 to 0x9f, which are control
 * characters in ISO 8859 and capitals in Apple's charsets; beside marks if
 * LETTER. */
static int has_low(const char *bytes, apr_size_t len, int letter)
{
    apr_size_t i = 0;

    while (i < len && (((unsigned char)bytes[i] & 0xe0) != 0x80
                       || (letter && strchr(marks, bytes[i])))) {
        i++;
    }
    return i < len;
}

/* Return the row of LABEL; NULL: it is none of Latin letters. */
static const latin_t *find_latin(const char *label)
{
    for (size_t i = 0; i < CRM_NELTS(latins); i++) {
        if (!strcmp(label, latins[i].label)) {
            return &latins[i];
        }
    }
    return NULL;
}

/* Return whether LATIN is Greek. */
static int is_greek(const latin_t *latin)
{
    return latin && (strstr(latin->label, "-7") || strstr(latin->label, "1253"));
}

/* Return whether the LEN BYTES, Greek as uchardet says, are: words have an accent, or
 * Greek vowels. Its capitals and small letters are where those of Windows' Cyrillic
 * are; no accent stands alone. */
static int has_greek(const char *bytes, apr_size_t len)
{
    words_t words = words_in(0, bytes, len);

    if (memchr(bytes, 0xb5, len)) {
        return 0;
    }
    return count_of("\xdc\xdd\xde\xdf\xfc\xfd\xfe", bytes, len)
           || (!words.odd
               && count_of(greek_vowels, bytes, len) > words.vowels);
}

/* Return the label of Windows' charset beside that of LABEL, if the LEN BYTES have what
 * only that one has, else LABEL. */
static const char *windows_of(const char *label, const char *bytes, apr_size_t len)
{
    for (size_t i = 0; i < CRM_NELTS(windows); i++) {
        if (!strcmp(windows[i].iso, label)) {
            return has_low(bytes, len, 0) ? windows[i].windows : label;
        }
    }
    return label;
}

crm_mail_charset_t crm_mail_windows(crm_mail_charset_t charset, const char *bytes,
                                    apr_size_t len)
{
    const char *label = windows_of(charset.name, bytes, len);

    return label == charset.name ? charset : crm_mail_label(label);
}

/* Return the label of the charset of the LEN BYTES, of which uchardet says LATIN
 * (NULL: nothing). */
static const char *choose_latin(const latin_t *latin, const char *bytes,
                                apr_size_t len)
{
    const char *label = NULL;

    if (!is_greek(latin) || !has_greek(bytes, len)) {
        label = detect_cyrillic(bytes, len, 1);
        label = label ? label
                : detect_double((const unsigned char *)bytes, len);
        label = label ? label : detect_cyrillic(bytes, len, 0);
    }
    if (label) {
        return label;
    }
    if (!latin || (latin->rare && !has_letters(bytes, len))) {
        return "windows-1252";
    }
    label = windows_of(latin->label, bytes, len);
    /* what is the Spanish mark there, nobody writes in Czech */
    return !strcmp(label, "WINDOWS-1250") && memchr(bytes, 0xa1, len)
           ? "windows-1252" : label;
}

crm_mail_charset_t crm_mail_detect(const char *bytes, apr_size_t len)
{
    uchardet_t detector = uchardet_new();
    const char *label = "";
    const latin_t *latin;
    crm_mail_charset_t found;

    len = len < BYTES ? len : BYTES;
    if (detector && !uchardet_handle_data(detector, bytes, len)) {
        uchardet_data_end(detector);
        label = uchardet_get_charset(detector);
    }
    found = crm_mail_label(label);
    latin = find_latin(label);
    if (found.coding == CRM_MAIL_UTF8 || found.coding == CRM_MAIL_UNKNOWN
        || latin) {
        found = crm_mail_label(choose_latin(latin, bytes, len));
    }
    else if (!strcmp(label, "MAC-CYRILLIC") && !has_low(bytes, len, 1)) {
        found = crm_mail_label("windows-1251"); /* with quotes and dashes */
    }
    if (detector) {
        uchardet_delete(detector);
    }
    return found;
}
