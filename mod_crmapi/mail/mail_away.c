/* SPDX-License-Identifier: Apache-2.0 */
/* mail_away.c: subjects of automatic replies (contract 18.5) */
#include "mail_away.h"

#include <string.h>

#include "apr_lib.h"

#include "crm_array.h"
#include "crm_text.h"

/* What mail programs write before a subject, folded. */
static const char *const programs[] = {
    "automatic reply", "auto reply", "autoreply", "auto-reply",
    "automatic response", "auto response", "auto-response", "autoresponse",
    "out of office autoreply", "out-of-office autoreply",
    "out of office: automatic reply", "automatische antwort",
    "automatische abwesenheitsnotiz", "r\xc3\xa9ponse automatique",
    "reponse automatique", "respuesta autom\xc3\xa1tica",
    "respuesta automatica", "risposta automatica",
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
    "\xec\x9e\x90\xeb\x8f\x99 \xed\x9a\x8c\xec\x8b\xa0"
};

/* What out-of-office notices begin with, folded. */
static const char *const people[] = {
    "out of office", "out of the office", "out-of-office",
    "i am out of the office", "i'm out of the office", "away from the office",
    "away from my mail", "away from my desk", "on vacation", "on holiday",
    "on annual leave", "on leave", "ooo", "ooto", "vacation message",
    "absence notice", "abwesend", "abwesenheit", "abwesenheitsnotiz",
    "nicht im b\xc3\xbcro", "nicht im haus", "im urlaub", "ausser haus",
    "au\xc3\x9f""er haus", "absence du bureau", "absent du bureau",
    "en cong\xc3\xa9", "absent", "fuera de la oficina",
    "ausencia de la oficina", "de vacaciones", "fuori ufficio", "fuori sede",
    "assente", "ausente", "fora do escrit\xc3\xb3rio", "aus\xc3\xaancia",
    "afwezig", "niet aanwezig", "fr\xc3\xa5nvarande", "frav\xc3\xa6rende",
    "poissa toimistosta", "poza biurem", "nieobecno\xc5\x9b\xc4\x87",
    "mimo kancel\xc3\xa1\xc5\x99",
    "\xd0\xb2\xd0\xbd\xd0\xb5 \xd0\xbe\xd1\x84\xd0\xb8\xd1\x81\xd0\xb0",
    "\xd0\xbd\xd0\xb5\xd1\x82 \xd0\xbd\xd0\xb0 \xd0\xbc\xd0\xb5\xd1\x81"
        "\xd1\x82\xd0\xb5",
    "ofis d\xc4\xb1\xc5\x9f\xc4\xb1nda",
    "\xe4\xb8\x8d\xe5\x9c\xa8\xe9\x80\x9a\xe7\x9f\xa5",
    "\xe4\xb8\x8d\xe5\x9c\xa8\xe3\x81\xae\xe3\x81\x8a\xe7\x9f\xa5\xe3"
        "\x82\x89\xe3\x81\x9b",
    "\xe5\xa4\x96\xe5\x87\xba", "\xeb\xb6\x80\xec\x9e\xac\xec\xa4\x91"
};

/* Return whether TEXT begins with one of the COUNT PHRASES as words. */
static int begins_with(const char *text, const char *const *phrases,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(phrases[i]);
        const char *end = text + len;

        if (!strncmp(text, phrases[i], len)
            && ((phrases[i][len - 1] & 0x80)    /* a language without blanks */
                || (!(*end & 0x80) && !apr_isalnum(*end)))) {
            return 1;
        }
    }
    return 0;
}

int crm_mail_away(const char *subject, int answers, apr_pool_t *scratch_pool)
{
    const char *text = subject ? crm_text_fold(subject, scratch_pool) : "";

    text += strspn(text, " \t[(*\"'");
    return begins_with(text, programs, CRM_NELTS(programs))
           || (answers && begins_with(text, people, CRM_NELTS(people)));
}
