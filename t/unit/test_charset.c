/* SPDX-License-Identifier: Apache-2.0 */
/* test_charset.c: the charsets of mails (contract 18.1): labels, what is decoded
 * by them, text without one, and headers */
#include "crm_check.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "mail_charset.h"
#include "mail_label.h"
#include "mail_word.h"

/* ---- labels -------------------------------------------------------------- */

/* Labels that mean the same, and bytes that show it. */
static const struct {
    const char *labels;         /* separated by '|' */
    const char *bytes, *text;
} labels[] = {
    {"utf-8|UTF8|utf_8|\"utf-8\"|'utf-8'|utf-8;|charset=utf-8|=utf-8|"
     "utf-8 format=flowed|unicode-1-1-utf-8|utf-8mb4|x-utf-8|en_US.UTF-8|"
     "utf-8*en|cp65001|<utf-8>|utf-8/", "\303\244", "ä"},
    {"iso-8859-1|ISO8859-1|iso_8859-1:1987|latin1|l1|latin-1|iso-ir-100|cp819|"
     "windows-1252|cp1252|x-cp1252|cp-1252|win1252|csISOLatin1|8859_1|"
     "iso-8859-1 (latin)|de_DE.ISO-8859-1|windows-28591|"
     "iso-8859-1-windows-3.1-latin-1|iso-8859-1-1987|ansi", "\200 \223\344\224",
     "€ “ä”"},
    {"iso-8859-2|iso8859-2|l2|latin2|iso_8859-2:1987|iso-ir-101|csISOLatin2|"
     "cp28592|912", "\241\306", "ĄĆ"},
    {"iso-8859-3|l3|iso-ir-109", "\246", "Ĥ"},
    {"iso-8859-4|l4|iso-ir-110", "\241", "Ą"},
    {"iso-8859-5|cyrillic|iso-ir-144|csISOLatinCyrillic", "\277", "П"},
    {"iso-8859-6|arabic|ECMA-114|ASMO-708|iso-8859-6-e|iso-8859-6-i|"
     "csISO88596I", "\341", "ف"},
    {"iso-8859-7|greek|greek8|ELOT_928|sun_eu_greek|ECMA-118|iso-ir-126|"
     "iso_8859-7:2003", "\302", "Β"},
    {"iso-8859-8|iso-8859-8-i|iso-8859-8-e|hebrew|visual|logical|csISO88598I|"
     "iso-ir-138", "\371", "ש"},
    {"iso-8859-9|iso-8859-9-e|latin5|l5|windows-1254|cp1254|iso-ir-148",
     "\360\200", "ğ€"},
    {"iso-8859-10|latin6|l6", "\252", "Š"},
    {"iso-8859-11|tis-620|windows-874|cp874|iso8859-11", "\241", "ก"},
    {"iso-8859-13|latin7|windows-28603", "\340", "ą"},
    {"iso-8859-14|latin8", "\241", "Ḃ"},
    {"iso-8859-15|latin9|latin-9|l9|iso8859_15|iso-8859-15-1998|csISOLatin9",
     "\244", "€"},
    {"iso-8859-16|latin10", "\252", "Ș"},
    {"windows-1250|cp1250|x-cp1250|cp-1250|win-1250|ms-ee", "\214", "Ś"},
    {"windows-1251|windows1251|win1251|x-cp1251|cp-1251|WINDOWS_1251|"
     "csWindows1251", "\317", "П"},
    {"windows-1253|cp1253", "\302", "Β"},
    {"windows-1255|cp1255|ms-hebr", "\371", "ש"},
    {"windows-1256|cp1256|x-windows-1256|ms-arab", "\344", "ن"},
    {"windows-1257|cp1257|winbaltrim", "\350", "č"},
    {"windows-1258|cp1258", "\320", "Đ"},
    {"koi8-r|koi8|koi|koi8_r|csKOI8R|cp20866", "\360", "П"},
    {"koi8-u|koi8-ru|cp21866", "\244", "є"},
    {"ibm866|cp866|866|csIBM866|dos-866", "\217", "П"},
    {"cp-850|ibm850|cp850|850|csPC850Multilingual|x-cp850|dos-850|oem850|"
     "codepage-850|pc850|ibm00850", "\201", "ü"},
    {"cp437|ibm437|437|dos-437|x-cp437", "\201", "ü"},
    {"cp852|ibm852|dos-852|x-cp852", "\245", "ą"},
    {"cp720|dos-720|720", "\345", "ف"}, {"cp737|dos-737", "\200", "Α"},
    {"cp775|dos-775", "\240", "Ā"}, {"cp857|dos-857", "\215", "ı"},
    {"cp858|ibm00858|dos-858", "\325", "€"},
    {"cp862|dos-862|pc862|x-cp862", "\200", "א"},
    {"macintosh|mac|x-mac-roman|csMacintosh|macroman", "\212", "ä"},
    {"x-mac-cyrillic|x-mac-ukrainian|mac-cyrillic", "\217", "П"},
    {"x-mac-ce|x-mac-centraleurroman", "\207", "á"},
    {"gb2312|gbk|gb18030|GB_2312-80|x-gbk|cp936|windows-936|ms936|iso-ir-58|"
     "chinese|csGB2312|euc-cn|cn-gb|eucgb2312_cn", "\326\354\351\106", "朱镕"},
    {"hz|hz-gb-2312", "~{VPND~}", "中文"},
    {"big5|big5-eten|x-x-big5|cn-big5|csBig5|cp950|windows-950|big5-hkscs",
     "\244\244\371\326", "中碁"},
    {"euc-jp|x-euc-jp|eucjp|ujis|cp51932|eucJP-ms|csEUCPkdFmtJapanese",
     "\245\242\255\241\216\261", "ア①ｱ"},
    {"shift_jis|shift-jis|sjis|x-sjis|ms_kanji|windows-31j|cp932|csShiftJIS|"
     "ms932", "\203\101\207\100\261\201\140", "ア①ｱ～"},
    {"iso-2022-jp|cp50220|cp50221|iso-2022-jp-1|iso-2022-jp-ms|csISO2022JP|"
     "x-windows-iso2022jp|jis|iso2022jp",
     "\033$B%\"-!\033(I12\033(B \033(Jx\033(B", "ア①ｱｲ x"},
    {"iso-2022-jp-2", "\033$(C0!\033(B \033$AVP\033(B", "가 中"},
    {"euc-kr|ks_c_5601-1987|ks_c_5601|ksc5601|KS_C_5601-1989|korean|uhc|cp949|"
     "windows-949|x-windows-949|csKSC56011987|iso-ir-149|ms949",
     "\260\241\201\101\306\122", "가갂힣"},
    {"iso-2022-kr|csISO2022KR", "\033$)C\0160!\017", "가"},
    {"iso-2022-cn", "\033$)A\016VPND\017", "中文"},
    {"utf-7|unicode-1-1-utf-7|x-unicode-2-0-utf-7", "+APw-b", "üb"},
    {"johab", "\210\141", "가"},
    {"viscii", "\325", "ạ"},
    /* which say nothing: what is valid UTF-8 is UTF-8 */
    {"us-ascii|unknown-8bit|x-unknown|ANSI_X3.4-1968|foo|_|binary|7bit|"
     "../../etc/passwd|/dev/zero|\"\"|default", "\303\244", "ä"},
};

START_TEST(a_label_has_many_spellings)
{
    apr_pool_t *pool = crm_check_pool();
    char *last, *all = apr_pstrdup(pool, labels[_i].labels);

    for (char *label = apr_strtok(all, "|", &last); label;
         label = apr_strtok(NULL, "|", &last)) {
        const char *text = crm_mail_utf8(labels[_i].bytes,
                                         strlen(labels[_i].bytes), label,
                                         pool);

        ck_assert_msg(!strcmp(text, labels[_i].text), "%s: \"%s\", not \"%s\"",
                      label, text, labels[_i].text);
        label = apr_pstrdup(pool, label);
        for (char *c = label; *c; c++) {
            *c = (char)apr_toupper(*c);
        }
        text = crm_mail_utf8(labels[_i].bytes, strlen(labels[_i].bytes),
                             label, pool);
        ck_assert_msg(!strcmp(text, labels[_i].text), "%s: \"%s\"", label,
                      text);
    }
}
END_TEST

/* ---- text ---------------------------------------------------------------- */

static const struct {
    const char *name, *bytes;
    apr_size_t len;
    const char *charset, *hint, *text;
} texts[] = {
#define BYTES(bytes) bytes, sizeof(bytes) - 1
    {"UTF-8 declared as Latin-1", BYTES("Gr\303\274\303\237e"), "iso-8859-1",
     NULL, "Grüße"},
    {"Latin-1 declared as UTF-8", BYTES("Gr\374\337e"), "utf-8", NULL,
     "Grüße"},
    {"UTF-8 with one bad byte", BYTES("Gr\303\274\303\237e \377 ok ä"),
     "utf-8", NULL, "Grüße \357\277\275 ok ä"},
    {"EUC-JP declared as ISO-2022-JP", BYTES(
        "\244\252\314\344\244\244\271\347\244\357\244\273\244\316\267\357"),
     "iso-2022-jp", NULL, "お問い合わせの件"},
    {"JIS8 kana", BYTES("\033$B%\"\033(B\261\262"), "iso-2022-jp", NULL,
     "アｱｲ"},
    {"kana by SO and SI", BYTES("a\01612\017b"), "iso-2022-jp", NULL,
     "aｱｲb"},
    {"ISO-2022-JP undeclared", BYTES("\033$B%\"\033(B"), NULL, NULL, "ア"},
    {"ISO-2022-JP as UTF-8", BYTES("\033$B%\"\033(B"), "utf-8", NULL, "ア"},
    {"ISO-2022-JP as Latin-1", BYTES("\033$B%\"\033(B"), "iso-8859-1", NULL,
     "ア"},
    {"an escape sequence that does not end", BYTES("\033$B%"), "iso-2022-jp",
     NULL, "%"},
    {"a line ends the kanji", BYTES("\033$B%\"\nab"), "iso-2022-jp", NULL,
     "ア\nab"},
    {"EUC-JP declared as Shift_JIS", BYTES(
        "\244\263\244\363\244\313\244\301\244\317\241\243\270\253\300\321"
        "\244\342\244\352"), "euc-jp", NULL, "こんにちは。見積もり"},
    {"UTF-16 with a mark", BYTES("\377\376\344\000b\000"), "utf-16", NULL,
     "äb"},
    {"UTF-16 without, big end first", BYTES("\000a\000b"), "utf-16", NULL,
     "ab"},
    {"UTF-16 without, little end first", BYTES("a\000b\000"), "utf-16", NULL,
     "ab"},
    {"UTF-16 with the other mark", BYTES("\377\376\344\000b\000"), "utf-16be",
     NULL, "äb"},
    {"UTF-16 with a mark, declared as another", BYTES(
        "\377\376\344\000b\000"), "utf-8", NULL, "äb"},
    {"UTF-16 without blanks", BYTES("\117\140\131\175"), "utf-16be", NULL,
     "你好"},
    {"UTF-8 declared as UTF-16", BYTES("Grüße, Ada"), "utf-16", NULL,
     "Grüße, Ada"},
    {"ASCII declared as UTF-16", BYTES("Hello"), "unicode", NULL, "Hello"},
    {"ASCII declared as UTF-32", BYTES("Hello, Ada"), "utf-32le", NULL,
     "Hello, Ada"},
    {"UTF-8 declared as UTF-7", BYTES("Grüße +-"), "utf-7", NULL, "Grüße +-"},
    {"GBK declared as HZ", BYTES("\304\372\272\303\243\254\307\353\316\312"
                                 "\274\333\270\361"), "hz-gb-2312", NULL,
     "您好，请问价格"},
    {"UTF-16, cut", BYTES("\000a\000"), "utf-16be", NULL, "a\357\277\275"},
    {"UTF-8 declared as GB 2312, short", BYTES("\344\275\240\345\245\275\344\270\226\347\225\214"), "gb2312", NULL,
     "你好世界"},
    {"UTF-8 declared as Big5, short", BYTES("\344\275\240\345\245\275"), "big5", NULL,
     "你好"},
    {"UTF-8 declared as EUC-KR, short", BYTES("\354\225\210\353\205\225"), "euc-kr", NULL,
     "안녕"},
    {"UTF-8 declared as Shift_JIS, short", BYTES("\343\201\223\343\202\223\343\201\253\343\201\241\343\201\257"), "shift_jis", NULL,
     "こんにちは"},
    {"UTF-8 declared as EUC-JP, one", BYTES("\344\270\255"), "euc-jp", NULL,
     "中"},
    {"GBK that is valid UTF-8", BYTES("\302\274"), "gb2312", NULL,
     "录"},
    {"Windows-1250 declared as Latin-2", BYTES("\204\232lut\375\223 k\371\362"), "iso-8859-2", NULL,
     "„šlutý“ kůň"},
    {"Windows-1253 declared as Greek", BYTES("\223\312\341\353\347\354\335\361\341\224"), "iso-8859-7", NULL,
     "“Καλημέρα”"},
    {"Windows-1255 declared as Hebrew", BYTES("\223\371\354\345\355\224"), "iso-8859-8-i", NULL,
     "“שלום”"},
    {"Windows-1252 declared as Latin-9", BYTES("10 \200 \226 \223gut\224"), "iso-8859-15", NULL,
     "10 € – “gut”"},
    {"Latin-2", BYTES("\271\276"), "iso-8859-2", NULL, "šž"},
    {"the hint", BYTES("\317\360\350\342\345\362"), NULL, "windows-1251",
     "Привет"},
    {"the hint of an unknown charset", BYTES("\246n"), "unknown-8bit", "big5",
     "好"},
    {"a hint does not go before UTF-8", BYTES("\303\244"), NULL,
     "windows-1251", "ä"},
    {"a hint does not go before the charset", BYTES("\344"), "iso-8859-1",
     "windows-1251", "ä"},
};

START_TEST(text_is_decoded)
{
    crm_mail_guess_t guess = {{NULL, CRM_MAIL_UNKNOWN}, 0};
    const char *text = crm_mail_utf8_or(texts[_i].bytes, texts[_i].len,
                                        texts[_i].charset, texts[_i].hint,
                                        &guess, crm_check_pool());

    ck_assert_msg(!strcmp(text, texts[_i].text), "%s: \"%s\", not \"%s\"",
                  texts[_i].name, text, texts[_i].text);
}
END_TEST

/* Texts in words as people write them, and the charsets that they come in
 * without a label. */
static const struct {
    const char *label, *bytes, *text;
} undeclared[] = {
    {"windows-1251", "\317\360\350\342\345\362", "Привет"},
    {"windows-1251", "\307\344\360\340\342\361\362\342\363\351\362\345, "
     "\365\357\367\363 \363\347\355\340\362\374 \366\345\355\363.",
     "Здравствуйте, хпчу узнать цену."},
    {"koi8-r", "\342\304\322\301\327\323\324\327\325\312\324\305",
     "Бдравствуйте"},
    {"iso-8859-1", "Gr\374\337e aus K\366ln", "Grüße aus Köln"},
    {"iso-8859-1", "Gr\374\337e", "Grüße"},
    {"windows-1252", "10 \200 \226 \223gut\224", "10 € – “gut”"},
    {"iso-8859-2", "Prosz\352 o ofert\352 i cen\352. Dzi\352kuj\352 za "
     "odpowied\274.", "Proszę o ofertę i cenę. Dziękuję za odpowiedź."},
    {"iso-8859-7", "\312\341\353\347\354\335\361\341", "Καλημέρα"},
    {"iso-8859-9", "T\374rk\347e \375\376\375k", "Türkçe ışık"},
    {"windows-1255", "\371\354\345\355 \370\341, \340\371\356\347 "
     "\354\367\341\354 \344\366\362\372 \356\347\351\370.",
     "שלום רב, אשמח לקבל הצעת מחיר."},
    {"windows-874", "\242\315\272\244\330\263\301\322\241", "ขอบคุณมาก"},
    {"shift_jis", "\202\261\202\361\202\311\202\277\202\315\201B"
     "\214\251\220\317\202\340\202\350", "こんにちは。見積もり"},
    {"euc-jp", "\244\263\244\363\244\313\244\301\244\317\241\243"
     "\270\253\300\321\244\342\244\352", "こんにちは。見積もり"},
    {"gb18030", "\304\372\272\303\243\254\307\353\316\312\274\333\270\361",
     "您好，请问价格"},
    {"gb18030", "\307\353\276\241\277\354\273\330\270\264", "请尽快回复"},
    {"big5", "\261z\246n\275\320\260\335\273\371\256\346",
     "您好請問價格"},
    {"big5", "\275\320\272\311\247\326\246^\302\320", "請盡快回覆"},
    {"cp949", "\276\310\263\347\307\317\274\274\277\344", "안녕하세요"},
    {"cp949", "\271\256\300\307\265\345\270\263\264\317\264\331",
     "문의드립니다"},
    /* a few letters, which a detector takes for those of any language */
    {"iso-8859-1", "Jos\351", "José"},
    {"iso-8859-1", "Juan Mu\361oz", "Juan Muñoz"},
    {"iso-8859-1", "Jo\343o Concei\347\343o", "João Conceição"},
    {"iso-8859-1", "Ant\364nio", "Antônio"},
    {"iso-8859-1", "na\357ve fa\347ade", "naïve façade"},
    {"windows-1252", "It\222s 5 o\222clock \226 \223late\224\205",
     "It’s 5 o’clock – “late”…"},
    {"windows-1250", "Prosz\352 o ofert\352. Dzi\352kuj\352 za odpowied\237. "
     "\243ukasz",
     "Proszę o ofertę. Dziękuję za odpowiedź. Łukasz"},
    {"windows-1257", "Laba diena, nor\353\350iau gauti pasi\373lym\340. A\350i"
     "\373, \320ar\373nas",
     "Laba diena, norėčiau gauti pasiūlymą. Ačiū, Šarūnas"},
    {"windows-1251", "\307\344\360\340\342\361\362\342\363\351\362\345, \223"
     "\365\356\367\363\224 \363\347\355\340\362\374 \366\345"
     "\355\363",
     "Здравствуйте, “хочу” узнать цену"},
    {"x-mac-cyrillic", "\217\360\350\342\345\362", "Привет"},
    {"gb18030", "\304\343\272\303", "你好"},
    /* what only one of the rules for short texts tells apart */
    {"big5", "\265o\262\274", "發票"},
    {"cp949", "\277\271\276\340 \310\256\300\316", "예약 확인"},
    {"shift_jis", "\216R\223c\221\276\230Y", "山田太郎"},
    {"iso-8859-13", "A\350i\373 \320ar\373nas", "Ačiū Šarūnas"},
    {"windows-1252", "Jo\343o\205 \226 Jo\343o", "João… – João"},
    {"windows-1250", "P\370\355li\232 \236lu\235ou\350k\375 k\371\362",
     "Příliš žluťoučký kůň"},
    {"iso-8859-1", "Juan Mu\361oz \321O\321O", "Juan Muñoz ÑOÑO"},
    {"windows-1250", "Ma\263gorzata Ma\263gorzata", "Małgorzata Małgorzata"},
    {"windows-1251", "\253\365\356\367\363\273 \226 \366\345\355\340",
     "«хочу» – цена"},
    /* a few Cyrillic letters, which a detector takes for Greek or accents */
    {"windows-1251", "\315\345\362", "Нет"},
    {"windows-1251", "\326\345\355\340?", "Цена?"},
    {"windows-1251", "\321\367\270\362 \271 5", "Счёт № 5"},
    {"windows-1251", "\326\263\355\340?", "Ціна?"},
    {"koi8-r", "\363\320\301\323\311\302\317!", "Спасибо!"},
    {"koi8-r", "\356\305\324", "Нет"},
    {"koi8-r", "\343\305\316\301?", "Цена?"},
    {"iso-8859-7", "\315\341\351", "Ναι"},
    {"iso-8859-7", "\312\341\351 \364\357 \355\345\361\374",
     "Και το νερό"},
    {"windows-1251", "\321\367\270\362", "Счёт"},
    {"windows-1251", "\253\326\345\355\340\273", "«Цена»"},
    {"gb18030", "\307\353\273\330\270\264", "请回复"},
    {"windows-1252", "\2435 \226 \24310", "£5 – £10"},
    {"iso-8859-1", "\304\326\334 a", "ÄÖÜ a"},
    /* signs beside what a detector takes for Greek or Czech */
    {"windows-1252", "The price is \24350 \226 is that right? \223Yes\224\205",
     "The price is £50 – is that right? “Yes”…"},
    {"windows-1252", "\241Hola! \226 \223ok\224", "¡Hola! – “ok”"},
};

START_TEST(text_without_a_charset_is_detected)
{
    apr_pool_t *pool = crm_check_pool();
    const char *text = crm_mail_utf8(undeclared[_i].bytes,
                                     strlen(undeclared[_i].bytes), NULL,
                                     pool);

    ck_assert_msg(!strcmp(text, undeclared[_i].text), "%s: \"%s\", not \"%s\"",
                  undeclared[_i].label, text, undeclared[_i].text);
    text = crm_mail_utf8(undeclared[_i].bytes, strlen(undeclared[_i].bytes),
                         undeclared[_i].label, pool);
    ck_assert_msg(!strcmp(text, undeclared[_i].text), "by its label: \"%s\"",
                  text);
}
END_TEST

/* ---- headers ------------------------------------------------------------- */

static const struct {
    const char *raw, *text, *recoded;   /* NULL: as TEXT */
} headers[] = {
    {"plain", "plain", NULL},
    {"=?iso-8859-1?Q?Gr=FC=DFe_x?=", "Grüße x", "=?utf-8?B?R3LDvMOfZSB4?="},
    {"=?ISO-8859-1*de?q?=FC?= a =?utf-8?b?w7w=?=", "ü a ü",
     "=?utf-8?B?w7w=?= a =?utf-8?B?w7w=?="},
    /* blanks between words are no text, characters may be split */
    {"=?utf-8?Q?Gr=C3?=\r\n =?utf-8?Q?=BC=C3=9Fe?=", "Grüße",
     "=?utf-8?B?R3LDvMOfZQ==?="},
    {"=?UTF-8?B?R3LD?= \t =?utf-8?Q?=BC=C3=9Fe?=", "Grüße",
     "=?utf-8?B?R3LDvMOfZQ==?="},
    /* two texts in base64 that were joined */
    {"=?utf-8?B?w7w=w7w=?=", "üü", "=?utf-8?B?w7zDvA==?="},
    {"=?utf-8?B?R3LDvA==?= =?utf-8?B?w59l?=", "Grüße",
     "=?utf-8?B?R3LDvMOfZQ==?="},
    {"=?shift_jis?B?g0E=?= =?iso-2022-jp?B?GyRCJSIbKEI=?=", "アア",
     "=?utf-8?B?44Ki?= =?utf-8?B?44Ki?="},
    {"=?shift_jis?Q?=87=40=8A=94=8E=AE_=95=5C?=", "①株式 表",
     "=?utf-8?B?4pGg5qCq5byPIOihqA==?="},
    {"=?gb2312?B?1uzpRg==?=", "朱镕", "=?utf-8?B?5pyx6ZWV?="},
    {"=?iso-8859-1?Q?=93gut=94_=80?=", "“gut” €",
     "=?utf-8?B?4oCcZ3V04oCdIOKCrA==?="},
    {"=?unknown-8bit?B?w6Q=?=", "ä", "=?utf-8?B?w6Q=?="},
    {"=?x-mac-cyrillic?Q?=8F?=", "П", "=?utf-8?B?0J8=?="},
    /* words that were encoded again, once */
    {"=?utf-8?Q?=3D=3Futf-8=3FQ=3FGr=3DC3=3DBC=3DC3=3D9Fe=3F=3D?=", "Grüße",
     "=?utf-8?B?R3LDvMOfZQ==?="},
    {"a =?utf-8?B?PT91dGYtOD9CP1IzTER2TU9mWlE9PT89?=", "a Grüße",
     "a =?utf-8?B?R3LDvMOfZQ==?="},
    {"=?utf-8?Q?x_=3D=3Futf-8=3FQ=3Fb=3F=3D?=", "x =?utf-8?Q?b?=",
     "=?utf-8?B?eCA9P3V0Zi04P1E/Yj89?="},
    {"=?utf-8?Q?=3D=3Futf-8=3FQ=3Fb=3F=3D_x?=", "=?utf-8?Q?b?= x",
     "=?utf-8?B?PT91dGYtOD9RP2I/PSB4?="},
    /* what is not quite a word */
    {"=?utf-8?Q?a?=3D =?utf-8?Q?b?=", "a3D b",
     "=?utf-8?B?YQ==?=3D =?utf-8?B?Yg==?="},
    {"a=?utf-8?Q?b?=c", "abc", "a=?utf-8?B?Yg==?=c"},
    {"\"=?utf-8?Q?b=2C?=\"", "\"b,\"", "\"=?utf-8?B?Yiw=?=\""},
    {"=?utf-8?Q?two words?=", "two words", "=?utf-8?B?dHdvIHdvcmRz?="},
    {"=?utf-8?Q?fol\r\n ded?=", "fol ded", "=?utf-8?B?Zm9sIGRlZA==?="},
    {"=?utf-8?Q?how?=3F?=", "how?\?", "=?utf-8?B?aG93Pz8=?="},
    {"=?utf-8?Q?100=25=ZZ=?=", "100%=ZZ=", "=?utf-8?B?MTAwJT1aWj0=?="},
    {"=?utf-8?B?R3L Dv\tMOf!ZQ?=", "Grüße", "=?utf-8?B?R3LDvMOfZQ==?="},
    {"=?utf-8?Q?\?= x", " x", NULL},
    {"=?utf-8?X?b?=", "=?utf-8?X?b?=", NULL},
    {"=?utf-8?Q?b", "=?utf-8?Q?b", NULL},
    {"=?=?utf-8?Q?b?=", "=?b", "=?=?utf-8?B?Yg==?="},
    {"=??Q?b?=", "=??Q?b?=", NULL},
    {"=?", "=?", NULL}, {"?=", "?=", NULL}, {"", "", NULL},
    /* bytes that say nothing: UTF-8, else the text's charset */
    {"\303\244 =?utf-8?Q?b?=", "ä b", "ä =?utf-8?B?Yg==?="},
    {"\317\360\350\342\345\362", "Привет", NULL},
};

START_TEST(a_header_is_decoded)
{
    apr_pool_t *pool = crm_check_pool();
    const char *raw = headers[_i].raw;
    const char *text = crm_mail_decode(raw, "windows-1251", pool);
    const char *recoded = crm_mail_recode(raw, "windows-1251", pool);
    const char *want = headers[_i].recoded ? headers[_i].recoded
                       : headers[_i].text;

    ck_assert_msg(!strcmp(text, headers[_i].text), "%s: \"%s\", not \"%s\"",
                  raw, text, headers[_i].text);
    ck_assert_msg(!strcmp(recoded, want), "%s: \"%s\", not \"%s\"", raw,
                  recoded, want);
    ck_assert_str_eq(crm_mail_decode(recoded, NULL, pool), text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("charset");
    TCase *tcase = tcase_create("charset");

    tcase_add_loop_test(tcase, a_label_has_many_spellings, 0, COUNT(labels));
    tcase_add_loop_test(tcase, text_is_decoded, 0, COUNT(texts));
    tcase_add_loop_test(tcase, text_without_a_charset_is_detected, 0,
                        COUNT(undeclared));
    tcase_add_loop_test(tcase, a_header_is_decoded, 0, COUNT(headers));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
