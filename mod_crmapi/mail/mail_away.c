/* SPDX-License-Identifier: Apache-2.0 */
/* mail_away.c: subjects of automatic replies (contract 18.5) */
#include "mail_away.h"

#include <string.h>

#include "apr_lib.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_text.h"

/* What mail programs write before a subject, folded. */
static const char *const programs[] = {
    "automatic reply", "auto reply", "autoreply", "auto-reply",
    "automatic response", "auto response", "auto-response", "autoresponse",
    "automated reply", "automated response", "autoresponder",
    "out of office autoreply", "out-of-office autoreply",
    "out of office: automatic reply", "automatische antwort",
    "automatische abwesenheitsnotiz", "r\xc3\xa9ponse automatique",
    "reponse automatique", "respuesta autom\xc3\xa1tica",
    "respuesta automatica", "risposta automatica",
    "risposta non al computer",
    "resposta autom\xc3\xa1tica", "resposta automatica",
    "automatisch antwoord", "automatiskt svar", "automatisk svar", "autosvar",
    "automaattinen vastaus", "odpowied\xc5\xba automatyczna",
    "automatyczna odpowied\xc5\xba",
    "automatick\xc3\xa1 odpov\xc4\x9b\xc4\x8f",
    "\xd0\xb0\xd0\xb2\xd1\x82\xd0\xbe\xd0\xbe\xd1\x82\xd0\xb2\xd0\xb5"
        "\xd1\x82",
    "\xd0\xb0\xd0\xb2\xd1\x82\xd0\xbe\xd0\xbc\xd0\xb0\xd1\x82\xd0\xb8"
        "\xd1\x87\xd0\xb5\xd1\x81\xd0\xba\xd0\xb8\xd0\xb9 \xd0\xbe\xd1\x82"
        "\xd0\xb2\xd0\xb5\xd1\x82",
    "otomatik yan\xc4\xb1t",
    "\xe8\x87\xaa\xe5\x8b\x95\xe5\xbf\x9c\xe7\xad\x94",
    "\xe8\x87\xaa\xe5\x8b\x95\xe8\xbf\x94\xe4\xbf\xa1",
    "\xe8\x87\xaa\xe5\x8a\xa8\xe7\xad\x94\xe5\xa4\x8d",
    "\xe8\x87\xaa\xe5\x8a\xa8\xe5\x9b\x9e\xe5\xa4\x8d",
    "\xe8\x87\xaa\xe5\x8b\x95\xe5\x9b\x9e\xe8\xa6\x86",
    "\xec\x9e\x90\xeb\x8f\x99 \xed\x9a\x8c\xec\x8b\xa0",
    "auto-antwort", "autoantwort", "message automatique",
    "mensaje autom\xc3\xa1tico", "mensagem autom\xc3\xa1tica",
    "\xec\x9e\x90\xeb\x8f\x99\xed\x9a\x8c\xec\x8b\xa0",
    "\xec\x9e\x90\xeb\x8f\x99 \xec\x9d\x91\xeb\x8b\xb5",
    "\xec\x9e\x90\xeb\x8f\x99\xec\x9d\x91\xeb\x8b\xb5",
    "automatische r\xc3\xbc""ckmeldung", "automatische nachricht",
    "vacation reply", "vacation response", "vacation auto-reply",
    "vacation autoreply",
    /* what Outlook writes in other languages */
    "resposta autom\xc3\xa0tica", "sj\xc3\xa1lfvirkt svar",
    "automaatvastus", "autom\xc4\x81tiska atbilde",
    "automatinis atsakymas", "automatikus v\xc3\xa1lasz",
    "r\xc4\x83spuns automat", "samodejni odgovor", "automatski odgovor",
    "automatick\xc3\xa1 odpove\xc4\x8f", "balasan otomatis",
    "\xce\xb1\xcf\x85\xcf\x84\xcf\x8c\xce\xbc\xce\xb1\xcf\x84\xce\xb7"
        " \xce\xb1\xcf\x80\xce\xac\xce\xbd\xcf\x84\xce\xb7\xcf\x83\xce"
        "\xb7",
    "\xd0\xb0\xd0\xb2\xd1\x82\xd0\xbe\xd0\xbc\xd0\xb0\xd1\x82\xd0\xb8"
        "\xd1\x87\xd0\xbd\xd0\xb0 \xd0\xb2\xd1\x96\xd0\xb4\xd0\xbf\xd0"
        "\xbe\xd0\xb2\xd1\x96\xd0\xb4\xd1\x8c",
    "\xd0\xb0\xd0\xb2\xd1\x82\xd0\xbe\xd0\xbc\xd0\xb0\xd1\x82\xd0\xb8"
        "\xd1\x87\xd0\xb5\xd0\xbd \xd0\xbe\xd1\x82\xd0\xb3\xd0\xbe\xd0"
        "\xb2\xd0\xbe\xd1\x80",
    "\xd0\xb0\xd1\x83\xd1\x82\xd0\xbe\xd0\xbc\xd0\xb0\xd1\x82\xd1\x81"
        "\xd0\xba\xd0\xb8 \xd0\xbe\xd0\xb4\xd0\xb3\xd0\xbe\xd0\xb2\xd0"
        "\xbe\xd1\x80",
    "\xd7\xaa\xd7\xa9\xd7\x95\xd7\x91\xd7\x94 \xd7\x90\xd7\x95\xd7\x98"
        "\xd7\x95\xd7\x9e\xd7\x98\xd7\x99\xd7\xaa",
    "\xd8\xb1\xd8\xaf \xd8\xaa\xd9\x84\xd9\x82\xd8\xa7\xd8\xa6\xd9\x8a",
    "\xd8\xa7\xd9\x84\xd8\xb1\xd8\xaf \xd8\xa7\xd9\x84\xd8\xaa\xd9\x84"
        "\xd9\x82\xd8\xa7\xd8\xa6\xd9\x8a",
    "tr\xe1\xba\xa3 l\xe1\xbb\x9di t\xe1\xbb\xb1 \xc4\x91\xe1\xbb\x99ng",
    "\xe0\xb8\x95\xe0\xb8\xad\xe0\xb8\x9a\xe0\xb8\x81\xe0\xb8\xa5\xe0"
        "\xb8\xb1\xe0\xb8\x9a\xe0\xb8\xad\xe0\xb8\xb1\xe0\xb8\x95\xe0"
        "\xb9\x82\xe0\xb8\x99\xe0\xb8\xa1\xe0\xb8\xb1\xe0\xb8\x95\xe0"
        "\xb8\xb4",
    "\xd9\xbe\xd8\xa7\xd8\xb3\xd8\xae \xd8\xae\xd9\x88\xd8\xaf\xda\xa9"
        "\xd8\xa7\xd8\xb1",
    "balasan automatik",
    "erantzun automatikoa",
    "p\xc3\xabrgjigje automatike",
    "\xd0\xb0\xd0\xb2\xd1\x82\xd0\xbe\xd0\xbc\xd0\xb0\xd1\x82\xd1\x81"
        "\xd0\xba\xd0\xb8 \xd0\xbe\xd0\xb4\xd0\xb3\xd0\xbe\xd0\xb2\xd0\xbe"
        "\xd1\x80",
    "\xd0\xb0\xd0\xb2\xd1\x82\xd0\xbe-\xd0\xbe\xd1\x82\xd0\xb2\xd0\xb5"
        "\xd1\x82"
};

/* What out-of-office notices begin with, folded. */
static const char *const people[] = {
    "auto:",                    /* "AUTO: Ada is out of the office": Notes */
    "out of office", "out of the office", "out-of-office",
    "i am out of the office", "i'm out of the office", "away from the office",
    "away from my mail", "away from my desk", "on vacation", "on holiday",
    "on annual leave", "on leave", "ooo", "ooto", "vacation message",
    "vacation:", "away:",       /* procmail, vacation(1) */
    "absence notice", "abwesend", "abwesenheit", "abwesenheitsnotiz",
    "nicht im b\xc3\xbcro", "nicht im haus", "im urlaub", "ausser haus",
    "au\xc3\x9f""er haus", "absence du bureau", "absent du bureau",
    "en cong\xc3\xa9", "absent", "fuera de la oficina",
    "ausencia de la oficina", "de vacaciones", "fuori ufficio", "fuori sede",
    "assente", "ausente", "fora do escrit\xc3\xb3rio", "aus\xc3\xaancia",
    "afwezig", "niet aanwezig", "fr\xc3\xa5nvarande", "frav\xc3\xa6rende",
    "poissa toimistosta", "poza biurem", "nieobecno\xc5\x9b\xc4\x87",
    "mimo kancel\xc3\xa1\xc5\x99",
    "abwesenheitsagent", "abwesenheitsassistent",
    "abwesenheitsbenachrichtigung", "abwesenheitsmeldung",
    "abwesenheitsnachricht", "nicht am arbeitsplatz", "on holidays",
    "on parental leave", "on maternity leave", "on sick leave",
    "not in the office", "not in office", "away from office", "annual leave",
    "maternity leave", "paternity leave", "parental leave", "sick leave",
    "nie ma mnie w biurze", "nem vagyok az irod\xc3\xa1""ban",
    "nejsem v kancel\xc3\xa1\xc5\x99i", "mimo kancel\xc3\xa1r",
    "en d\xc3\xa9placement", "olen lomalla", "lomalla",
    "\xce\xb5\xce\xba\xcf\x84\xcf\x8c\xcf\x83"
        " \xce\xb3\xcf\x81\xce\xb1\xcf\x86\xce\xb5\xce\xaf\xce"
        "\xbf\xcf\x85",
    "\xd0\xbc\xd0\xb5\xd0\xbd\xd1\x8f"
        " \xd0\xbd\xd0\xb5\xd1\x82 \xd0\xbd\xd0\xb0"
        " \xd0\xbc\xd0\xb5\xd1\x81\xd1\x82\xd0\xb5",
    "r\xc3\xa9ponse d'absence", "reponse d'absence", "message d'absence",
    "notification d'absence", "avis d'absence", "absence :", "absente",
    "absent(e)", "en vacances", "hors du bureau", "fuera de oficina",
    "respuesta de ausencia", "mensaje de ausencia", "fuori dall'ufficio",
    "assenza", "in ferie", "mensagem de aus\xc3\xaancia", "de f\xc3\xa9rias",
    "fora do escritorio", "afwezigheidsbericht", "afwezigheidsassistent",
    "niet op kantoor", "buiten kantoor", "met vakantie", "op vakantie",
    "fr\xc3\xa5nvaro", "fr\xc3\xa5nvaromeddelande", "frav\xc3\xa6r",
    "frav\xc3\xa6rsassistent", "frav\xc3\xa6rsmelding",
    "ikke p\xc3\xa5 kontoret", "p\xc3\xa5 semester", "p\xc3\xa5 ferie",
    "poissa", "poissaolo", "poissaoloviesti", "poissaoloilmoitus", "nieobecny",
    "nieobecna", "nep\xc5\x99\xc3\xadtomnost", "nepr\xc3\xadtomnos\xc5\xa5",
    "mimo kancel\xc3\xa1rie", "t\xc3\xa1voll\xc3\xa9t",
    "h\xc3\xa1zon k\xc3\xadv\xc3\xbcl", "szabads\xc3\xa1gon",
    "\xd0\xbe\xd1\x82\xd1\x81\xd1\x83\xd1\x82\xd1\x81\xd1\x82\xd0"
        "\xb2\xd0\xb8\xd0\xb5 \xd0\xbd\xd0\xb0",
    "\xd0\xbe\xd1\x82\xd1\x81\xd1\x83\xd1\x82\xd1\x81\xd1\x82\xd0"
        "\xb2\xd1\x83\xd1\x8e",
    "\xd0\xb2 \xd0\xbe\xd1\x82\xd0\xbf\xd1\x83\xd1\x81\xd0\xba\xd0\xb5",
    "\xd0\xb2\xd0\xbd\xd0\xb5 \xd0\xbe\xd1\x84\xd0\xb8\xd1\x81\xd0\xb0",
    "\xd0\xbd\xd0\xb5\xd1\x82 \xd0\xbd\xd0\xb0 \xd0\xbc\xd0\xb5\xd1\x81"
        "\xd1\x82\xd0\xb5",
    "ofis d\xc4\xb1\xc5\x9f\xc4\xb1nda",
    "\xe4\xb8\x8d\xe5\x9c\xa8\xe9\x80\x9a\xe7\x9f\xa5",
    "\xe4\xb8\x8d\xe5\x9c\xa8\xe3\x81\xae\xe3\x81\x8a\xe7\x9f\xa5\xe3"
        "\x82\x89\xe3\x81\x9b",
    "\xe5\xa4\x96\xe5\x87\xba", "\xeb\xb6\x80\xec\x9e\xac\xec\xa4\x91",
    "\xeb\xb6\x80\xec\x9e\xac \xec\xa4\x91",
    "\xd0\xb2\xd1\x96\xd0\xb4\xd1\x81\xd1\x83\xd1\x82\xd0\xbd\xd1\x96"
        "\xd1\x81\xd1\x82\xd1\x8c \xd0\xbd\xd0\xb0",
    "\xd1\x83 \xd0\xb2\xd1\x96\xd0\xb4\xd0\xbf\xd1\x83\xd1\x81\xd1\x82"
        "\xd1\x86\xd1\x96",
    "\xd0\xbf\xd0\xbe\xd0\xb7\xd0\xb0 \xd0\xbe\xd1\x84\xd1\x96\xd1\x81"
        "\xd0\xbe\xd0\xbc",
    "\xd0\xb2\xd1\x8a\xd0\xbd \xd0\xbe\xd1\x82 \xd0\xbe\xd1\x84\xd0"
        "\xb8\xd1\x81\xd0\xb0"
};

/* Likewise, but nothing may follow them, or a mark. */
static const char *const alone[] = {
    "vacation", "holiday", "absence", "abwesend", "urlaub", "urlaubsvertretung",
    "cong\xc3\xa9s", "ferie", "ferien", "vacaciones", "f\xc3\xa9rias",
    "vakantie", "semester", "loma",
    "\xe4\xbc\x91\xe6\x9a\x87", "\xe4\xbc\x91\xe5\x81\x87",
    "\xed\x9c\xb4\xea\xb0\x80", "\xed\x9c\xb4\xea\xb0\x80\xec\xa4\x91",
    "\xd0\xbe\xd1\x82\xd0\xbf\xd1\x83\xd1\x81\xd0\xba",
    "\xd0\xb2\xd1\x96\xd0\xb4\xd0\xbf\xd1\x83\xd1\x81\xd1\x82\xd0\xba\xd0\xb0",
    "\xd0\xbf\xd0\xbe\xd1\x87\xd0\xb8\xd0\xb2\xd0\xba\xd0\xb0"
};

/* What may stand before them, folded. */
static const char *const before[] = {
    "currently ", "i am ", "i'm ", "i\xe2\x80\x99m ", "ich bin ", "bin ",
    "derzeit ", "zurzeit ", "zur zeit ", "je suis ", "actuellement ", "estoy ",
    "actualmente ", "sono ", "estou ", "jag \xc3\xa4r ", "jeg er ", "ik ben ",
    "momenteel ", "jestem ", "\xd1\x8f "
};

/* Return TEXT behind the words BEFORE. */
static const char *skip_before(const char *text)
{
    for (size_t i = 0; i < CRM_NELTS(before);) {
        size_t len = strlen(before[i]);
        int found = !strncmp(text, before[i], len);

        text += found ? len : 0;
        i = found ? 0 : i + 1;
    }
    return text;
}

/* Return what follows the longest of the COUNT PHRASES that TEXT begins with, as
 * words; NULL if it begins with none. */
static const char *after_phrase(const char *text, const char *const *phrases,
                                size_t count)
{
    const char *found = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(phrases[i]);
        const char *end = text + len;

        if (!strncmp(text, phrases[i], len)
            && ((phrases[i][len - 1] & 0x80)    /* a language without blanks */
                || (!(*end & 0x80) && !apr_isalnum(*end)))) {
            found = found && found > end ? found : end;
        }
    }
    return found;
}

/* Return whether TEXT, which follows a phrase, ends it: a colon, another mark,
 * nothing. "Automatic reply does not work" is a sentence of a person. */
static int ends_phrase(const char *text)
{
    text += crm_text_blank_span(text);
    return !*text || (crm_text_bare_span(text) && !strchr("?!,('", *text));
}

/* Return whether TEXT, which follows a phrase, asks something; not in the subject of
 * the mail that is answered, behind a colon, which may end the phrase. */
static int asks(const char *text)
{
    static const char *const marks[] = {"?", "\xef\xbc\x9f", "\xd8\x9f"};
    apr_size_t len = strlen(text);

    for (size_t i = 0; !strchr(text - 1, ':') && i < CRM_NELTS(marks); i++) {
        apr_size_t mark = strlen(marks[i]);

        if (len >= mark && !strcmp(text + len - mark, marks[i])) {
            return 1;
        }
    }
    return 0;
}

int crm_mail_away(const char *subject, int answers, apr_pool_t *scratch_pool)
{
    const char *text = subject ? crm_text_fold(subject, scratch_pool) : "";
    const char *end;

    text += crm_text_bare_span(text);
    end = after_phrase(text, programs, CRM_NELTS(programs));
    if (!answers || end) {
        return end && (answers || ends_phrase(end));
    }
    text = skip_before(text);
    end = after_phrase(text, alone, CRM_NELTS(alone));
    if (end && ends_phrase(end)) {
        return 1;
    }
    end = after_phrase(text, people, CRM_NELTS(people));
    return end && !asks(end);
}
