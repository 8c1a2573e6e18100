/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail_status.c: what a failure of delivery says of the address (contract
 * 17.5, RFC 3463) */
#include "crm_mail_status.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_text.h"

/* Characters of a text that are read. */
#define TEXT_MAX 65536

/* Status codes that say that the address does not exist (contract 17.5). */
static const char *const no_address[] = {
    "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"
};

/* Words that say that the address does not exist, folded. */
static const char *const says[] = {
    "user unknown", "unknown user", "no such user", "user not found",
    "user does not exist", "user doesn't exist", "user not known",
    "not a known user", "not a valid user", "inactive user", "user disabled",
    "no such recipient", "recipient unknown", "unknown recipient",
    "recipient not found", "recipientnotfound", "recipient does not exist",
    "invalid recipient", "addressee unknown", "no such mailbox",
    "mailbox unknown", "unknown mailbox", "mailbox not found",
    "mailbox does not exist", "mailbox doesn't exist",
    "no mailbox here by that name", "no mailbox by that name",
    "invalid mailbox", "not a valid mailbox", "mailbox unavailable",
    "mailbox is unavailable", "mailbox disabled", "mailbox is disabled",
    "mailbox has been disabled", "mailbox is inactive", "account disabled",
    "account is disabled", "account has been disabled",
    "account that you tried to reach is disabled", "account does not exist",
    "account that you tried to reach does not exist",
    "account that you tried to reach doesn't exist", "no such account",
    "unknown account", "no such address", "unknown address", "address unknown",
    "address not found", "address does not exist", "address doesn't exist",
    "address couldn't be found", "unknown local part", "unknown local-part",
    "unrouteable address", "unroutable address", "bad destination mailbox",
    "not listed in domino directory", "recipient name is not recognized",
    "invalid user address", "user not exist", "this user doesn't have a",
    "invalid final delivery userid", "user is unknown", "account not found",
    "no account by that name", "no such person", "no such local user",
    "bad recipient", "recipient doesn't exist", "not a valid recipient",
    "address you entered", "address was not found", "no mailbox found",
    "mailbox no longer exists", "mailbox has been closed", "account closed",
    "account is closed", "account has been closed",
    "account has been deactivated", "account has expired",
    "unknown or illegal alias", "no longer on server", "user is inactive",
    "inactive account", "address no longer accepts mail",
    "no one at this address", "address is no longer valid",
    "not present in directory", "not an active address",
    "address could not be found", "mailbox invalid", "mailbox not present",
    "no mail box available", "invalid user", "userunknown",
    "invalid-recipient", "recipient not exist", "email name is not found",
    "not in my validrcptto list", "user not active", "deactivated mailbox",
    "user is terminated", "unknown virtual user",
    "does not exist at the organization", "non-existent user",
    "addresses were unknown", "rcpt does not exist", "dosn't exist",
    "recipients not exist", "trying to reach does not exist",
    "trying to reach doesn't exist", "id does not exist",
    "no user here by that name", "does not have an account",
    "doesn't have an account", "mailbox name not allowed",
    "mailbox name invalid", "mailbox is not found", "is no longer in use",
    "no longer in service", "no longer valid", "not a local address",
    "username unknown", "mailbox has been deleted", "mailbox was deleted",
    "account has been deleted", "account was deleted", "account unavailable",
    "account is unavailable", "account not available",
    /* the domain, as 5.1.2 */
    "host unknown", "unknown host", "no such domain", "unknown domain",
    "domain does not exist", "domain doesn't exist", "nullmx", "null mx",
    "domain not found", "domain name not found", "nxdomain",
    "non-existent hosts", "non-existent domain",
    /* Notes */
    "not listed in public name & address book",
    "ディレクトリのリストにありません", "ディレクトリには見つかりません",
    /* German, French, Spanish, Italian, Portuguese, Dutch, Russian */
    "benutzer unbekannt", "unbekannter benutzer", "benutzer nicht gefunden",
    "empfänger unbekannt", "unbekannter empfänger", "empfaenger unbekannt",
    "utilisateur inconnu", "destinataire inconnu", "adresse inconnue",
    "boîte inexistante", "nessun utente simile", "usuario desconocido",
    "destinatario desconocido", "utente sconosciuto",
    "destinatario sconosciuto", "indirizzo inesistente", "casella inesistente",
    "usuário desconhecido", "destinatário desconhecido",
    "gebruiker onbekend", "пользователь не найден", "ящик не найден",
    "получатель не найден", "нет такого пользователя",
    "неизвестный пользователь", "nieznany użytkownik", "neznámý uživatel",
    "okänd användare", "ukendt bruger", "ukjent bruker",
    "tuntematon käyttäjä", "ismeretlen felhasználó", "utilizator necunoscut",
    "bilinmeyen kullanıcı", "άγνωστοσ χρήστησ",
    /* "does not exist", of whatever */
    "n'existe pas", "existiert nicht", "no existe", "non esiste",
    "não existe", "nao existe", "bestaat niet", "nie istnieje", "neexistuje",
    "finns inte", "findes ikke", "eksisterer ikke", "finnes ikke",
    "ei ole olemassa", "ei löydy", "nem létezik", "nu există", "nu exista",
    "не существует", "не існує", "не съществува", "ne postoji", "ne obstaja",
    "δεν υπάρχει", "mevcut değil", "kullanıcı bulunamadı",
    "alıcı bulunamadı", "לא קיים", "غير موجود", "không tồn tại",
    "ไม่พบผู้ใช้", "tidak ditemukan",
    /* what Gmail says in further languages, and in these */
    "adresse nicht gefunden", "adresse konnte nicht gefunden werden",
    "empfänger wurde nicht gefunden", "adresse introuvable",
    "adresse n'a pas été trouvée", "no se ha encontrado la dirección",
    "no se encontró la dirección", "indirizzo non trovato",
    "endereço não encontrado", "adres niet gevonden", "nie znaleziono adresu",
    "адрес не найден", "adressen hittades inte", "adressen blev ikke fundet",
    "adressen ble ikke funnet", "adresa nebyla nalezena", "adres bulunamadı",
    /* Chinese, Japanese, Korean */
    "アドレス不明", "找不到地址", "주소를 찾을 수 없", "用户不存在",
    "收件人不存在", "邮箱不存在", "地址不存在", "宛先不明",
    "存在しません", "アドレスが見つかりません", "宛先が見つかりません",
    "ユーザーが見つかりません", "존재하지 않", "사용자를 찾을 수 없",
    "없는 사용자", "使用者不存在", "帳號不存在", "账号不存在", "帐号不存在",
    "信箱不存在", "郵箱不存在", "查無此人", "查无此人", "無此用戶", "无此用户",
    "無此使用者"
};

/* Words of a paragraph that speaks of something else. */
static const char *const says_not[] = {
    "spam", "blocked", "blacklist", "blocklist", "block list", "policy",
    "reputation", "unsolicited", "invalid dns", "verify sender",
    "sender user", "sender domain", "client host", "helo ", "ehlo ",
    "relay access", "relaying", "quota", "mailbox full",
    "is full", "out of storage", "sender address", "sender rejected",
    "sender verif",
    "from address", "your ip", "dmarc", "spf ", "dkim", "authenticat",
    "too large", "size limit", "rate limit", "too many", "temporarily disabled",
    "disabled temporar", "not found, try again", "reverse dns", "ptr record",
    /* the sender, in other languages */
    "absender", "expéditeur", "remitente", "mittente", "remetente",
    "afzender", "nadawc", "отправител"
};

/* Words that say that the address exists, whatever the status is. */
static const char *const exists[] = {
    "over quota", "overquota", "quota exceeded", "mailbox full", "is full",
    "out of storage", "mail at a rate", "mail too quickly", "receiving limits",
    /* they speak of the sender's host, or of what the person wants */
    "has sent to too many", "spamhaus.org", "recipient preferences"
};

/* Words that say that the sender has sent as much as it may for now. */
static const char *const enough[] = {
    "sending limit", "sending quota", "submission quota", "relay limit",
    "relay quota", "daily limit", "hourly limit", "emails per hour",
    "messages per hour"
};

/* Words of a server that has given up, folded; that a mail was not delivered,
 * which servers also say before they try again; and that they do. */
static const char *const gives_up[] = {
    "permanent error", "permanent failure", "permanent fatal",
    "permanent delivery", "permanently", "given up", "giving up", "gave up",
    "not going to try", "retry timeout exceeded", "for a long time",
    "envelope expired", "message expired", "returned to sender",
    "returning message to sender"
};
static const char *const fails[] = {
    "not be delivered", "not delivered", "not been delivered to",
    "unable to deliver", "able to be delivered", "able to deliver",
    "cannot deliver", "can't deliver", "cannot be delivered", "undeliver",
    "non-delivered", "delivery failed", "delivery failure",
    "delivery has failed", "(failure)", "delivery problems",
    "error delivering", "error has occurred while attempting to deliver",
    "failure notice", "failure reasons", "failed addresses", "mail failure",
    "returned mail", "failed mail", "was aborted after",
    "not reach the following", "unzustellbar", "nicht zugestellt",
    "nicht ausgeliefert", "n'a pas pu être", "no se pudo entregar",
    "no se ha podido", "non recapitat", "não foi entregue", "niet bezorgd",
    "не достав",
    /* Chinese, Japanese, Korean */
    "无法投递", "无法送达", "投递失败", "传输失败", "退信", "配信できません",
    "送信できません", "配信不能", "전송 실패", "반송"
};
static const char *const goes_on[] = {
    "will be retried", "will retry", "will try", "will be tried",
    "will continue", "will keep", "keep trying", "still trying", "delayed",
    "(delay)", "warning message", "warning only", "not yet been delivered",
    "not been delivered yet", "temporary failure", "need to re",
    "no action is required", "verzögert", "retardé", "retrasad"
};

/* ---- status codes -------------------------------------------------------- */

/* Return the length of the status code at C: class 2, 4 or 5, subject 0 to 7
 * and a detail of up to three digits; 0 if there is none. So versions of
 * software and IP addresses are none. */
static apr_size_t status_length(const char *c)
{
    apr_size_t digits;

    if (!strchr("245", *c) || c[1] != '.' || c[2] < '0' || c[2] > '7'
        || c[3] != '.') {
        return 0;
    }
    digits = strspn(c + 4, "0123456789");
    if (!digits || digits > 3 || apr_isalpha(c[4 + digits])
        || ((c[4 + digits] == '.' || c[4 + digits] == '-')
            && apr_isdigit(c[5 + digits]))) {
        return 0;
    }
    return 4 + digits;
}

/* Return whether the status at TEXT, LEN bytes, says of an address no more than
 * that something is wrong (RFC 3463, 3.1, 3.2). */
static int says_nothing(const char *text, apr_size_t len)
{
    return len == 5 && (!memcmp(text, "5.0.0", 5) || !memcmp(text, "5.1.0", 5));
}

/* Return the status in TEXT (may be NULL) whose class is one of CLASSES, in POOL; NULL
 * if there is none. A permanent one that says something goes before. */
static const char *find(const char *text, const char *classes,
                        apr_pool_t *pool)
{
    const char *found = NULL;
    apr_size_t found_len = 0;

    for (const char *c = text; c && *c; c++) {
        apr_size_t len;

        if ((c > text && (apr_isalnum(c[-1]) || c[-1] == '.'))
            || !strchr(classes, *c) || !(len = status_length(c))) {
            continue;
        }
        if (!found || (*c == '5' && (*found != '5' || !says_nothing(c, len)))) {
            found = c;
            found_len = len;
        }
        if (*found == '5' && !says_nothing(found, found_len)) {
            break;
        }
    }
    return found ? apr_pstrmemdup(pool, found, found_len) : NULL;
}

const char *crm_mail_status_find(const char *text, apr_pool_t *pool)
{
    return find(text, "245", pool);
}

/* Return the class of the first reply code of SMTP (RFC 5321) in TEXT that is a
 * failure: '4' or '5'; 0 if there is none. A permanent one goes before. */
static char code_class(const char *text)
{
    char found = 0;

    for (const char *c = text; c && *c && found != '5'; c++) {
        if ((*c == '4' || *c == '5') && c[1] >= '0' && c[1] <= '5'
            && apr_isdigit(c[2]) && strchr(" -:;,)\r\n'\"", c[3]) && c[3]
            && (c == text || strchr(" \t\n:;('\"<", c[-1]))) {
            found = *c;
        }
    }
    return found;
}

/* ---- words --------------------------------------------------------------- */

/* Return whether TEXT contains one of the COUNT WORDS. */
static int has_one(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(text, words[i])) {
            return 1;
        }
    }
    return 0;
}

/* Remove the words of TEXT that have an '@': a server may name the address within what
 * it says, "User <ada@example.org> unknown". */
static void drop_addresses(char *text)
{
    char *out = text;

    while (*text) {
        size_t len = strcspn(text, " ");

        len += text[len] == ' ';
        if (!memchr(text, '@', len)) {
            memmove(out, text, len);
            out += len;
        }
        text += len;
    }
    *out = '\0';
}

/* Return the LEN bytes of the paragraph at TEXT, folded, with each run of white space
 * or underscores ("BAD_RECIPIENT") as one blank, with "'" for U+2019 and without
 * addresses, in POOL. */
static const char *flatten(const char *text, apr_size_t len, apr_pool_t *pool)
{
    static const char curly[] = "’";
    char *flat = apr_palloc(pool, len + 1), *out = flat;

    for (apr_size_t i = 0; i < len; i++) {
        if (len - i >= 3 && !memcmp(text + i, curly, 3)) {
            *out++ = '\'';
            i += 2;
        }
        else if (!apr_isspace(text[i]) && text[i] != '_') {
            *out++ = text[i];
        }
        else if (out > flat && out[-1] != ' ') {
            *out++ = ' ';
        }
    }
    *out = '\0';
    drop_addresses(flat);
    return crm_text_valid_utf8(flat, strlen(flat)) ? crm_text_fold(flat, pool)
                                                   : flat;
}

int crm_mail_status_exists(const char *text, apr_pool_t *scratch_pool)
{
    return text && has_one(flatten(text, strnlen(text, TEXT_MAX),
                                   scratch_pool), exists, CRM_NELTS(exists));
}

int crm_mail_status_sent_enough(const char *text, apr_pool_t *scratch_pool)
{
    return has_one(flatten(text, strnlen(text, TEXT_MAX), scratch_pool), enough,
                   CRM_NELTS(enough));
}

int crm_mail_status_says(const char *text, apr_pool_t *scratch_pool)
{
    const char *end = text ? text + strnlen(text, TEXT_MAX) : NULL;

    if (text && strstr(text, "://groups.google.com/support")) {
        return 0;       /* "may not exist, or you may not write to it" */
    }
    while (text && text < end) {
        const char *stop = strstr(text, "\n\n"), *flat;

        stop = stop && stop < end ? stop : end;
        flat = flatten(text, (apr_size_t)(stop - text), scratch_pool);
        if (has_one(flat, says, CRM_NELTS(says))
            && !has_one(flat, says_not, CRM_NELTS(says_not))) {
            return 1;
        }
        text = stop;
        text += strspn(text, "\n");
    }
    return 0;
}

int crm_mail_status_final(const char *status, const char *text,
                          apr_pool_t *scratch_pool)
{
    const char *flat = flatten(text, strnlen(text, TEXT_MAX), scratch_pool);

    return (has_one(flat, gives_up, CRM_NELTS(gives_up))
            || (!status && has_one(flat, fails, CRM_NELTS(fails))))
           && !has_one(flat, goes_on, CRM_NELTS(goes_on));
}

/* ---- the failure --------------------------------------------------------- */

crm_mail_failure_t crm_mail_status_failure(const char *status,
                                           const char *text,
                                           apr_pool_t *scratch_pool)
{
    if (status && *status != '5') {
        return CRM_MAIL_NO_FAILURE;
    }
    if (!status || says_nothing(status, strlen(status))) {
        return crm_mail_status_says(text, scratch_pool) ? CRM_MAIL_NO_ADDRESS
               : status ? CRM_MAIL_FAILED : CRM_MAIL_NO_FAILURE;
    }
    return CRM_IS_ONE_OF(status, no_address)
           && !crm_mail_status_exists(text, scratch_pool)
           ? CRM_MAIL_NO_ADDRESS : CRM_MAIL_FAILED;
}

crm_mail_failure_t crm_mail_status_read(const char **status_p,
                                        const char *text, apr_pool_t *pool)
{
    *status_p = find(text, "45", pool);     /* 2.0.12 is a version */
    if (!*status_p) {
        char class = code_class(text);

        *status_p = class == '5' ? "5.0.0" : class == '4' ? "4.0.0" : NULL;
    }
    return crm_mail_status_failure(*status_p, text, pool);
}
