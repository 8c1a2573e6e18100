/* SPDX-License-Identifier: Apache-2.0 */
/* mail_away.c: subjects of automatic replies (contract 18.5) */
#include "mail_away.h"

#include <string.h>

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
    "automatische abwesenheitsnotiz", "réponse automatique",
    "reponse automatique", "respuesta automática", "respuesta automatica",
    "risposta automatica", "risposta non al computer", "resposta automática",
    "resposta automatica", "automatisch antwoord", "automatiskt svar",
    "automatisk svar", "autosvar", "automaattinen vastaus",
    "odpowiedź automatyczna", "automatyczna odpowiedź", "automatická odpověď",
    "автоответ", "автоматический ответ", "otomatik yanıt", "自動応答",
    "自動返信", "自动答复", "自动回复", "自動回覆", "자동 회신",
    "auto-antwort", "autoantwort", "message automatique", "mensaje automático",
    "mensagem automática", "자동회신", "자동 응답", "자동응답",
    "automatische rückmeldung", "automatische nachricht", "vacation reply",
    "vacation response", "vacation auto-reply", "vacation autoreply",
    /* what Outlook writes in other languages */
    "resposta automàtica", "sjálfvirkt svar", "automaatvastus",
    "automātiska atbilde", "automatinis atsakymas", "automatikus válasz",
    "răspuns automat", "samodejni odgovor", "automatski odgovor",
    "automatická odpoveď", "balasan otomatis", "αυτόματη απάντηση",
    "автоматична відповідь", "автоматичен отговор", "аутоматски одговор",
    "תשובה אוטומטית", "رد تلقائي", "الرد التلقائي", "trả lời tự động",
    "ตอบกลับอัตโนมัติ", "پاسخ خودکار", "balasan automatik",
    "erantzun automatikoa", "përgjigje automatike", "автоматски одговор",
    "авто-ответ",
    "מענה אוטומטי", "स्वचालित उत्तर",
    "การตอบกลับอัตโนมัติ",
    "automaatne vastus", "automātiskā atbilde", "ymateb awtomatig",
    "avtomatik cavab", "avtomatik javob", "автоматты жауап",
    "outomatiese antwoord", "ავტომატური პასუხი",
    "ավտոմատ պատասխան", "خودکار جواب", "自動回信",
    "자동 답장"
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
    "nicht im büro", "nicht im haus", "im urlaub", "ausser haus", "außer haus",
    "absence du bureau", "absent du bureau", "en congé", "absent",
    "fuera de la oficina", "ausencia de la oficina", "de vacaciones",
    "fuori ufficio", "fuori sede", "assente", "ausente", "fora do escritório",
    "ausência", "afwezig", "niet aanwezig", "frånvarande", "fraværende",
    "poissa toimistosta", "poza biurem", "nieobecność", "mimo kancelář",
    "abwesenheitsagent", "abwesenheitsassistent",
    "abwesenheitsbenachrichtigung", "abwesenheitsmeldung",
    "abwesenheitsnachricht", "nicht am arbeitsplatz", "on holidays",
    "on parental leave", "on maternity leave", "on sick leave",
    "not in the office", "not in office", "away from office", "annual leave",
    "maternity leave", "paternity leave", "parental leave", "sick leave",
    "nie ma mnie w biurze", "nem vagyok az irodában", "nejsem v kanceláři",
    "mimo kancelár", "en déplacement", "olen lomalla", "lomalla",
    "εκτόσ γραφείου", "меня нет на месте", "réponse d'absence",
    "reponse d'absence", "message d'absence", "notification d'absence",
    "avis d'absence", "absence :", "absente", "absent(e)", "en vacances",
    "hors du bureau", "fuera de oficina", "respuesta de ausencia",
    "mensaje de ausencia", "fuori dall'ufficio", "assenza", "in ferie",
    "mensagem de ausência", "de férias", "fora do escritorio",
    "afwezigheidsbericht", "afwezigheidsassistent", "niet op kantoor",
    "buiten kantoor", "met vakantie", "op vakantie", "frånvaro",
    "frånvaromeddelande", "fravær", "fraværsassistent", "fraværsmelding",
    "ikke på kontoret", "på semester", "på ferie", "poissa", "poissaolo",
    "poissaoloviesti", "poissaoloilmoitus", "nieobecny", "nieobecna",
    "nepřítomnost", "neprítomnosť", "mimo kancelárie", "távollét",
    "házon kívül", "szabadságon", "отсутствие на", "отсутствую", "в отпуске",
    "вне офиса", "нет на месте", "ofis dışında", "不在通知", "不在のお知らせ",
    "外出", "부재중", "부재 중", "відсутність на", "у відпустці",
    "поза офісом", "вън от офиса",
    "oof:", "on pto", "holiday notice", "congé maternité",
    "congé de maternité", "congé parental", "absence de bureau",
    "afwezigheidsmelding", "met verlof", "ikke til stede", "na urlopie",
    "na dovolené", "na dovolenke", "irodán kívül", "în afara biroului",
    "în concediu", "извън офиса", "в отпуск съм",
    "izvan ureda", "van kancelarije", "na godišnjem odmoru", "odsoten",
    "odsotna", "na dopustu", "zunaj pisarne", "σε άδεια", "i̇zindeyim",
    "izindeyim", "מחוץ למשרד", "בחופשה", "خارج المكتب",
    "في إجازة", "휴가 중", "休暇中", "不在のため",
    "不在です", "我正在休假", "正在休假", "不在办公室",
    "不在辦公室", "nghỉ phép", "vắng mặt",
    "ไม่อยู่ที่สำนักงาน", "sedang cuti",
    "di luar kantor", "kontorist väljas", "puhkusel", "nav birojā",
    "atvaļinājumā", "atostogose", "ne biure", "utan af skrifstofu",
    "fora de l'oficina", "bulegotik kanpo"
};

/* Likewise, but nothing may follow them, or a mark. */
static const char *const alone[] = {
    "vacation", "holiday", "absence", "abwesend", "urlaub",
    "urlaubsvertretung", "congés", "ferie", "ferien", "vacaciones", "férias",
    "vakantie", "semester", "loma", "休暇", "休假", "휴가", "휴가중", "отпуск",
    "відпустка", "почивка", "elternzeit", "urlop", "dovolená", "dovolenka",
    "άδεια", "yıllık izin", "不在", "cuti"
};

/* What may stand before them, folded. */
static const char *const before[] = {
    "currently ", "i am ", "i'm ", "i’m ", "ich bin ", "bin ", "derzeit ",
    "zurzeit ", "zur zeit ", "je suis ", "actuellement ", "estoy ",
    "actualmente ", "sono ", "estou ", "jag är ", "jeg er ", "ik ben ",
    "momenteel ", "jestem ", "я ", "jsem ", "som ", "sem ", "sunt ", "είμαι ",
    "אני ", "أنا ", "olen ", "esu ", "đang ", "estic "
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
                || !*end || crm_text_bare_span(end))) {
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
    static const char *const marks[] = {"?", "？", "؟"};
    apr_size_t len = strlen(text);

    for (size_t i = 0; !strchr(text - 1, ':') && i < CRM_NELTS(marks); i++) {
        apr_size_t mark = strlen(marks[i]);

        if (len >= mark && !strcmp(text + len - mark, marks[i])) {
            return 1;
        }
    }
    return 0;
}

/* Return SUBJECT folded, with a blank for each run of white space of any script. */
static const char *plain(const char *subject, apr_pool_t *pool)
{
    const char *text = crm_text_fold(subject, pool);
    char *made = apr_palloc(pool, strlen(text) + 1), *out = made;

    while (*text) {
        apr_size_t blank = crm_text_blank_span(text);

        *out++ = blank ? ' ' : *text;
        text += blank ? blank : 1;
    }
    *out = '\0';
    return made;
}

/* Return whether TEXT ends with what a program writes, in brackets: "Re: Offer
 * (Automatic Response)". */
static int ends_with_program(const char *text)
{
    const char *open = NULL, *end;

    for (const char *c = text; *c; c++) {
        open = strchr("([", *c) ? c : open;
    }
    end = open ? after_phrase(open + 1, programs, CRM_NELTS(programs)) : NULL;
    return end && strchr(")]", *end) && *end && !end[1];
}

int crm_mail_away(const char *subject, int answers, apr_pool_t *scratch_pool)
{
    const char *text = subject ? plain(subject, scratch_pool) : "";
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
    return (end && !asks(end)) || ends_with_program(text);
}
