/* SPDX-License-Identifier: Apache-2.0 */
/* crm_near.c: names that were mistyped */
#include "crm_near.h"

#include <ctype.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"

#define LEN_MAX 32
#define LONG_WORD 8
#define PART_MIN 3              /* letters of what says a part of a name */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Return whether the letters A and B are the same. */
static int same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Return the distance of A and B, at most LEN_MAX bytes each: the least number
 * of letters left out, added, replaced or exchanged (Damerau). */
static int distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int cost[LEN_MAX + 1][LEN_MAX + 1];

    for (size_t i = 0; i <= a_len; i++) {
        for (size_t k = 0; k <= b_len; k++) {
            if (!i || !k) {
                cost[i][k] = (int)(i + k);
                continue;
            }
            cost[i][k] = least(least(cost[i - 1][k], cost[i][k - 1]) + 1,
                               cost[i - 1][k - 1]
                               + !same(a[i - 1], b[k - 1]));
            if (i > 1 && k > 1 && same(a[i - 1], b[k - 2])
                && same(a[i - 2], b[k - 1])) {
                cost[i][k] = least(cost[i][k], cost[i - 2][k - 2] + 1);
            }
        }
    }
    return cost[a_len][b_len];
}

int crm_near(const char *word, const char *tried)
{
    size_t word_len = strlen(word), tried_len = strlen(tried);
    int most = word_len >= LONG_WORD && tried_len >= LONG_WORD ? 2 : 1;

    return word_len <= LEN_MAX && tried_len <= LEN_MAX
           && word_len <= tried_len + (size_t)most
           && tried_len <= word_len + (size_t)most
           && distance(word, word_len, tried, tried_len) <= most;
}

/* Return whether the words at WORD begin with those of TRIED, whatever is between
 * words. */
static int begins(const char *word, const char *tried)
{
    while (*tried) {
        word += *word == '_';
        tried += *tried == '_';
        if (!*tried || !same(*word++, *tried++)) {
            return 0;
        }
    }
    return !*word || *word == '_';
}

int crm_near_part(const char *word, const char *tried)
{
    if (strlen(tried) < PART_MIN) {
        return 0;
    }
    while (word && !begins(word, tried)) {
        word = strchr(word, '_');
        word = word ? word + 1 : NULL;
    }
    return word != NULL;
}

/* Names, and what other APIs call the same, in lower case without what is between
 * words. A name is asked for only where it exists, so one word may stand in several
 * rows. */
static const struct {
    const char *word, *others;
} others[] = {
    {"page_size", "limit perpage count max maxresults resultsperpage itemsperpage"
                  " pagelimit rows take top first"},
    {"page", "offset skip p pagenumber pageno pageindex start"},
    {"cursor", "offset skip next nextpage nexttoken pagetoken sinceid startingafter"
               " startafter since after"},
    {"search", "q query s keyword keywords term text find name"},
    {"sort", "sortby orderby ordering sortfield"},
    {"order", "direction dir sortorder sortdir sortdirection"},
    {"include", "expand embed with populate fields"},
    {"updated_after", "since updatedsince modifiedsince modifiedafter changedsince"
                      " updatedfrom lastmodified"},
    {"updated_before", "until updateduntil updatedto modifiedbefore"},
    {"created_after", "since createdsince createdfrom from fromdate datefrom"
                      " startdate"},
    {"created_before", "until createduntil createdto to todate dateto enddate"},
    {"tags", "label labels category categories"},
    {"bot_id", "agent agentid assistant assistantid"},
    {"type", "channel kind"},
    {"activity_type", "kind"},
    {"active", "status state open isopen closed"},
    {"unanswered", "unread isunread unseen read"},
    {"internal_notes", "note comment comments privatenote"},
    {"filename", "name"},
    {"assigned_to", "owner ownerid assignee assigneeid user userid"},
    {"first_name", "givenname forename"},
    {"last_name", "surname familyname"},
    {"emails", "mail mails emailaddress emailaddresses"},
    {"phone_numbers", "mobile mobilephone tel telephone cell cellphone"},
    {"company", "organization organisation employer companyname"},
    {"company_id", "organizationid organisationid accountid"},
    {"contact_id", "person personid lead leadid customer customerid"},
    {"job_title", "position role"},
    {"address_line1", "street streetaddress address1"},
    {"address_line2", "address2"},
    {"postal_code", "zip zipcode postcode"},
    {"state", "region province"},
    {"website", "url homepage"},
    {"deal_value", "amount"},
    {"employee_count", "employees headcount"},
    {"custom_fields", "properties attributes metadata"},
    {"metadata", "customfields properties attributes"},
    {"notes", "comment comments"},
    {"content", "body text message html"},
    {"description", "body text comment content details"},
    {"title", "subject name"},
    {"name", "title companyname"},
    {"due_date", "deadline"},
    {"completed_at", "done isdone status"},
    {"duration_minutes", "length"},
    {"order_index", "position rank"},
    {"pipeline_stage_id", "column columnid status"},
    {"template_id", "sequence sequenceid campaign campaignid"},
};

/* Return whether TRIED is the LEN letters at WORD, whatever is between words. */
static int is_word(const char *word, size_t len, const char *tried)
{
    size_t i = 0;

    for (; *tried; tried++) {
        if (*tried == '_' || *tried == '-') {
            continue;
        }
        if (i == len || !same(word[i++], *tried)) {
            return 0;
        }
    }
    return i == len;
}

/* Return whether TRIED is one of WORDS, which have a space between them. */
static int is_among(const char *words, const char *tried)
{
    size_t len = strcspn(words, " ");

    while (words[len] && !is_word(words, len, tried)) {
        words += len + 1;
        len = strcspn(words, " ");
    }
    return is_word(words, len, tried);
}

int crm_near_other(const char *word, const char *tried)
{
    size_t i = 0;

    while (i < CRM_NELTS(others) && strcmp(others[i].word, word)) {
        i++;
    }
    return i < CRM_NELTS(others) && is_among(others[i].others, tried);
}

crm_near_fn *const crm_near_ways[] = {
    crm_near_part, crm_near_other, crm_near, NULL
};

const char *crm_near_of(const char *const *names, const char *tried,
                        crm_near_fn *is_near)
{
    while (names && *names && !is_near(*names, tried)) {
        names++;
    }
    return names ? *names : NULL;
}

const char *crm_near_ask(const char *rule, const char *near, apr_pool_t *pool)
{
    return near ? apr_pstrcat(pool, rule, "; did you mean ", near, "?", NULL)
           : rule;
}
