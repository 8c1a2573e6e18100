/* SPDX-License-Identifier: Apache-2.0 */
/* intake_keyword.c: texts that ask for no more texts, or for some again (contract
 * 17.4) */
#include "intake_keyword.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"

/* Keywords of carriers and of Twilio ("Default handling of keywords"), bare. */
static const struct {
    const char *word;
    int effect;                 /* as crm_intake_keyword() */
} keywords[] = {
    {"stop", -1}, {"stopall", -1}, {"unsubscribe", -1}, {"cancel", -1},
    {"end", -1}, {"quit", -1}, {"revoke", -1}, {"optout", -1},
    {"start", 1}, {"unstop", 1}, {"help", 2}, {"info", 2},
};

/* What people add to STOP to be polite, bare. */
static const char *const thanks[] = {
    "thanks", "thankyou", "thanku", "thx", "thnx", "tnx", "tks", "ty",
    "manythanks", "thanksalot", "thankssomuch", "thankyousomuch",
    "thankyouverymuch", "danke", "dankeschön", "vielendank", "merci",
    "mercibeaucoup", "gracias", "muchasgracias", "grazie", "obrigado",
    "obrigada", "bedankt", "dankjewel", "tak", "tack", "takk", "kiitos",
    "dziękuję", "спасибо"
};

/* Return whether TEXT, which is BARE when bare, is "stop", a separator and
 * thanks. */
static int is_polite_stop(const char *text, const char *bare, apr_pool_t *pool)
{
    apr_size_t span;

    if (strncmp(bare, "stop", 4) || !CRM_IS_ONE_OF(bare + 4, thanks)) {
        return 0;
    }
    for (apr_size_t at = 0; text[at]; at += span ? span : 1) {
        span = crm_text_bare_span(text + at);
        if (span && !strcmp(crm_text_bare(apr_pstrmemdup(pool, text, at), pool),
                            "stop")) {
            return 1;
        }
    }
    return 0;
}

int crm_intake_keyword(const char *text, apr_pool_t *scratch_pool)
{
    const char *bare = crm_text_bare(text, scratch_pool);

    for (size_t i = 0; i < CRM_NELTS(keywords); i++) {
        if (!strcmp(bare, keywords[i].word)) {
            return keywords[i].effect;
        }
    }
    return is_polite_stop(text, bare, scratch_pool) ? -1 : 0;
}

void crm_intake_keyword_apply(crm_intake_event_t *event, int effect)
{
    if (effect < 0) {
        event->binds[CRM_INTAKE_SUPPRESS] = "phone";
        event->binds[CRM_INTAKE_REASON] = "unsubscribed";
    }
    else if (effect == 1) {
        event->binds[CRM_INTAKE_LIFT] = "phone";
    }
}
