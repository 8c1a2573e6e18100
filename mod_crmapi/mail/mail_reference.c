/* SPDX-License-Identifier: Apache-2.0 */
/* mail_reference.c: character references in HTML (HTML, 13.2.5.72)
 *
 * Releases of libxml2 differ. Some know the names of HTML 4, with a semicolon, and
 * take numbers as they are; from 2.14 on those of HTML 5, also without one. */
#include "mail_reference.h"

#include <stdlib.h>
#include <string.h>

#include "apr_lib.h"

#include "crm_array.h"

/* Maximum bytes of a name, and digits of a number, that is looked for. */
#define NAME_BYTES 24
#define DIGITS 8

/* Names of HTML 5, in the order of their bytes: ASCII, the letters of Europe, and
 * common signs. */
typedef struct name_t {
    const char *name;
    int code;
} name_t;

static const name_t names[] = {
    {"AMP", 38}, {"Abreve", 258}, {"Acy", 1040}, {"Amacr", 256},
    {"Aogon", 260}, {"Bcy", 1041}, {"CHcy", 1063}, {"COPY", 169},
    {"Cacute", 262}, {"Ccaron", 268}, {"Ccirc", 264}, {"Cdot", 266},
    {"CenterDot", 183}, {"CloseCurlyDoubleQuote", 8221},
    {"CloseCurlyQuote", 8217}, {"DJcy", 1026}, {"DScy", 1029}, {"DZcy", 1039},
    {"Dcaron", 270}, {"Dcy", 1044}, {"DiacriticalGrave", 96}, {"Dot", 168},
    {"Dstrok", 272}, {"ENG", 330}, {"Ecaron", 282}, {"Ecy", 1069},
    {"Edot", 278}, {"Emacr", 274}, {"Eogon", 280}, {"Fcy", 1060},
    {"GJcy", 1027}, {"GT", 62}, {"Gbreve", 286}, {"Gcedil", 290},
    {"Gcirc", 284}, {"Gcy", 1043}, {"Gdot", 288}, {"HARDcy", 1066},
    {"Hat", 94}, {"Hcirc", 292}, {"Hstrok", 294}, {"IEcy", 1045},
    {"IJlig", 306}, {"IOcy", 1025}, {"Icy", 1048}, {"Idot", 304},
    {"Imacr", 298}, {"Iogon", 302}, {"Itilde", 296}, {"Iukcy", 1030},
    {"Jcirc", 308}, {"Jcy", 1049}, {"Jsercy", 1032}, {"Jukcy", 1028},
    {"KHcy", 1061}, {"KJcy", 1036}, {"Kcedil", 310}, {"Kcy", 1050},
    {"LJcy", 1033}, {"LT", 60}, {"Lacute", 313}, {"Lcaron", 317},
    {"Lcedil", 315}, {"Lcy", 1051}, {"Lmidot", 319}, {"Lstrok", 321},
    {"Mcy", 1052}, {"NJcy", 1034}, {"Nacute", 323}, {"Ncaron", 327},
    {"Ncedil", 325}, {"Ncy", 1053}, {"NewLine", 10}, {"NonBreakingSpace", 160},
    {"Ocy", 1054}, {"Odblac", 336}, {"Omacr", 332},
    {"OpenCurlyDoubleQuote", 8220}, {"OpenCurlyQuote", 8216}, {"Pcy", 1055},
    {"PlusMinus", 177}, {"QUOT", 34}, {"REG", 174}, {"Racute", 340},
    {"Rcaron", 344}, {"Rcedil", 342}, {"Rcy", 1056}, {"SHCHcy", 1065},
    {"SHcy", 1064}, {"SOFTcy", 1068}, {"Sacute", 346}, {"Scedil", 350},
    {"Scirc", 348}, {"Scy", 1057}, {"TRADE", 8482}, {"TSHcy", 1035},
    {"TScy", 1062}, {"Tab", 9}, {"Tcaron", 356}, {"Tcedil", 354},
    {"Tcy", 1058}, {"Tstrok", 358}, {"Ubrcy", 1038}, {"Ubreve", 364},
    {"Ucy", 1059}, {"Udblac", 368}, {"Umacr", 362}, {"UnderBar", 95},
    {"Uogon", 370}, {"Uring", 366}, {"Utilde", 360}, {"Vcy", 1042},
    {"VerticalLine", 124}, {"Wcirc", 372}, {"YAcy", 1071}, {"YIcy", 1031},
    {"YUcy", 1070}, {"Ycirc", 374}, {"Ycy", 1067}, {"ZHcy", 1046},
    {"Zacute", 377}, {"Zcaron", 381}, {"Zcy", 1047}, {"Zdot", 379},
    {"abreve", 259}, {"acy", 1072}, {"amacr", 257}, {"angst", 197},
    {"aogon", 261}, {"apos", 39}, {"ast", 42}, {"bcy", 1073},
    {"bigstar", 9733}, {"bsol", 92}, {"bullet", 8226}, {"cacute", 263},
    {"ccaron", 269}, {"ccirc", 265}, {"cdot", 267}, {"centerdot", 183},
    {"chcy", 1095}, {"check", 10003}, {"checkmark", 10003}, {"circledR", 174},
    {"colon", 58}, {"comma", 44}, {"commat", 64}, {"cross", 10007},
    {"dash", 8208}, {"dcaron", 271}, {"dcy", 1076}, {"die", 168}, {"div", 247},
    {"djcy", 1106}, {"dollar", 36}, {"dscy", 1109}, {"dstrok", 273},
    {"dzcy", 1119}, {"ecaron", 283}, {"ecy", 1101}, {"edot", 279},
    {"emacr", 275}, {"eng", 331}, {"eogon", 281}, {"equals", 61}, {"excl", 33},
    {"fcy", 1092}, {"frac13", 8531}, {"frac15", 8533}, {"frac16", 8537},
    {"frac18", 8539}, {"frac23", 8532}, {"frac25", 8534}, {"frac35", 8535},
    {"frac38", 8540}, {"frac45", 8536}, {"frac56", 8538}, {"frac58", 8541},
    {"frac78", 8542}, {"gbreve", 287}, {"gcirc", 285}, {"gcy", 1075},
    {"gdot", 289}, {"gjcy", 1107}, {"grave", 96}, {"half", 189},
    {"hardcy", 1098}, {"hcirc", 293}, {"horbar", 8213}, {"hstrok", 295},
    {"hyphen", 8208}, {"icy", 1080}, {"iecy", 1077}, {"ijlig", 307},
    {"imacr", 299}, {"imath", 305}, {"inodot", 305}, {"iocy", 1105},
    {"iogon", 303}, {"itilde", 297}, {"iukcy", 1110}, {"jcirc", 309},
    {"jcy", 1081}, {"jsercy", 1112}, {"jukcy", 1108}, {"kcedil", 311},
    {"kcy", 1082}, {"kgreen", 312}, {"khcy", 1093}, {"kjcy", 1116},
    {"lacute", 314}, {"lbrace", 123}, {"lbrack", 91}, {"lcaron", 318},
    {"lcedil", 316}, {"lcub", 123}, {"lcy", 1083}, {"ldquor", 8222},
    {"ljcy", 1113}, {"lmidot", 320}, {"lowbar", 95}, {"lpar", 40},
    {"lsqb", 91}, {"lsquor", 8218}, {"lstrok", 322}, {"mcy", 1084},
    {"midast", 42}, {"mldr", 8230}, {"nacute", 324}, {"napos", 329},
    {"ncaron", 328}, {"ncedil", 326}, {"ncy", 1085}, {"njcy", 1114},
    {"nldr", 8229}, {"num", 35}, {"numero", 8470}, {"ocy", 1086},
    {"odblac", 337}, {"omacr", 333}, {"pcy", 1087}, {"percnt", 37},
    {"period", 46}, {"phone", 9742}, {"plus", 43}, {"pm", 177}, {"quest", 63},
    {"racute", 341}, {"rbrace", 125}, {"rbrack", 93}, {"rcaron", 345},
    {"rcedil", 343}, {"rcub", 125}, {"rcy", 1088}, {"rdquor", 8221},
    {"rpar", 41}, {"rsqb", 93}, {"rsquor", 8217}, {"sacute", 347},
    {"scedil", 351}, {"scirc", 349}, {"scy", 1089}, {"semi", 59},
    {"shchcy", 1097}, {"shcy", 1096}, {"softcy", 1100}, {"sol", 47},
    {"star", 9734}, {"starf", 9733}, {"tcaron", 357}, {"tcedil", 355},
    {"tcy", 1090}, {"tscy", 1094}, {"tshcy", 1115}, {"tstrok", 359},
    {"ubrcy", 1118}, {"ubreve", 365}, {"ucy", 1091}, {"udblac", 369},
    {"umacr", 363}, {"uogon", 371}, {"uring", 367}, {"utilde", 361},
    {"vcy", 1074}, {"verbar", 124}, {"vert", 124}, {"wcirc", 373},
    {"yacy", 1103}, {"ycirc", 375}, {"ycy", 1099}, {"yicy", 1111},
    {"yucy", 1102}, {"zacute", 378}, {"zcaron", 382}, {"zcy", 1079},
    {"zdot", 380}, {"zhcy", 1078},
};

/* Names that need no semicolon in a text. Before a '=' they are rather a part of a
 * URL. */
static const char bare[] =
    " AElig Aacute Acirc Agrave Aring Atilde Auml Ccedil ETH Eacute Ecirc "
    "Egrave Euml Iacute Icirc Igrave Iuml Ntilde Oacute Ocirc Ograve Oslash "
    "Otilde Ouml THORN Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute "
    "aelig agrave amp aring atilde auml brvbar ccedil cedil cent copy curren "
    "deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute "
    "icirc iexcl igrave iquest iuml laquo lt macr micro middot nbsp not "
    "ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn "
    "pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute "
    "ucirc ugrave uml uuml yacute yen yuml ";

/* What 0x80 to 0x9f are in windows-1252; 0: nothing. Numbers of references that are
 * meant so are older than Unicode. */
static const unsigned short windows[] = {
    0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030,
    0x0160, 0x2039, 0x0152, 0, 0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d,
    0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e,
    0x0178
};

static int compare(const void *key, const void *row)
{
    return strcmp(key, ((const name_t *)row)->name);
}

/* Write the reference by name at TEXT, LEN bytes that begin with '&', so that any
 * libxml2 reads it; a mere '&' before a word so that none does. Return the length of
 * what was read; 0: nothing was written. */
static apr_size_t put_name(crm_buf_t *out, const char *text, apr_size_t len,
                           int attribute)
{
    char word[NAME_BYTES + 3] = " ";
    apr_size_t n = 0;
    const name_t *row;

    while (n < NAME_BYTES && n + 1 < len && apr_isalnum(text[n + 1])) {
        word[n + 1] = text[n + 1];
        n++;
    }
    if (n + 1 < len && text[n + 1] == ';') {
        word[n + 1] = '\0';
        row = bsearch(word + 1, names, CRM_NELTS(names), sizeof(names[0]),
                      compare);
        if (row) {
            crm_buf_printf(out, "&#%d;", row->code);
            return n + 2;
        }
    }
    else if (n) {
        word[n + 1] = ' ';
        word[n + 2] = '\0';
        if (!attribute && strstr(bare, word)
            && (n + 1 == len || (!apr_isalnum(text[n + 1])
                                 && text[n + 1] != '='))) {
            crm_buf_add(out, text, n + 1);
            crm_buf_putc(out, ';');
            return n + 1;
        }
        crm_buf_puts(out, "&amp;");
        return 1;
    }
    return 0;
}

/* The same for a reference by number, which begins with "&#". */
static apr_size_t put_number(crm_buf_t *out, const char *text, apr_size_t len)
{
    int hex = len > 2 && (text[2] == 'x' || text[2] == 'X');
    apr_size_t at = hex ? 3 : 2, n = 0;
    unsigned code = 0;

    while (n < DIGITS && at + n < len && (hex ? apr_isxdigit(text[at + n])
                                              : apr_isdigit(text[at + n]))) {
        char c = text[at + n++];

        code = code * (hex ? 16 : 10)
               + (unsigned)(apr_isdigit(c) ? c - '0'
                            : apr_tolower(c) - 'a' + 10);
    }
    if (code < 0x80 || code > 0x9f || !windows[code - 0x80]) {
        return 0;
    }
    crm_buf_printf(out, "&#%d;", windows[code - 0x80]);
    at += n;
    return at + (at < len && text[at] == ';');
}

void crm_mail_html_references(crm_buf_t *out, const char *text,
                              apr_size_t len, int attribute)
{
    while (len) {
        const char *mark = memchr(text, '&', len);
        apr_size_t n = mark ? (apr_size_t)(mark - text) : len;

        crm_buf_add(out, text, n);
        text += n;
        len -= n;
        if (len) {
            n = len > 1 && text[1] == '#' ? put_number(out, text, len)
                : put_name(out, text, len, attribute);
            if (!n) {
                crm_buf_putc(out, '&');
                n = 1;
            }
            text += n;
            len -= n;
        }
    }
}
