/* SPDX-License-Identifier: Apache-2.0 */
/* crm_page.c: the frame, style and headers of HTML pages */
#include "crm_page.h"

/* The style of all pages. Contrasts are above 4.5:1 in both colour schemes. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2330;--dim:#566072;"
    "--paper:#fff;--ground:#f3f5f8;--line:#d5dae2;--field:#8a93a3;"
    "--main:#1a56c4;--main-ink:#fff;"
    "--bad:#b3261e;--bad-ground:#fdecea;--good:#17642f;"
    "--good-ground:#e6f4ea;--news-ground:#e9f0fc}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e7eaf0;--dim:#a5afc0;"
    "--paper:#1d2330;--ground:#12161f;--line:#38415270;--field:#7d889b;"
    "--main:#8ab4ff;--main-ink:#10213f;"
    "--bad:#ff9f97;--bad-ground:#46201e;--good:#8fdba5;"
    "--good-ground:#173824;--news-ground:#1d2f52}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:1rem/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"Liberation Sans\",sans-serif;overflow-wrap:anywhere}\n"
    "main{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 3rem}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0 1rem}\n"
    "h2{font-size:1.1rem;margin:0}\n"
    "section,.card{background:var(--paper);border:1px solid var(--line);"
    "border-radius:.6rem;padding:1rem 1.25rem;margin:0 0 1rem}\n"
    "section>:first-child,.card>:first-child{margin-top:0}\n"
    "ul,ul.card{padding-inline-start:2.25rem}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;"
    "margin:0}\n"
    "section dl{margin:.4rem 0 1rem}\n"
    "dt,.small{color:var(--dim)}\n"
    "dd{margin:0}\n"
    ".small{font-size:.9rem}\n"
    ".text{white-space:pre-wrap;border-inline-start:3px solid var(--line);"
    "padding-inline-start:.8rem;margin:.25rem 0 .75rem}\n"
    "label,.label{display:block;font-weight:600;margin:.6rem 0 .2rem}\n"
    "input[type=text],textarea{width:100%;font:inherit;color:inherit;"
    "background:var(--paper);border:1px solid var(--field);"
    "border-radius:.4rem;padding:.5rem .6rem}\n"
    "textarea{min-height:6.5rem;resize:vertical;field-sizing:content;"
    "max-height:36rem}\n"
    "[aria-invalid=true]{border:2px solid var(--bad)}\n"
    ".error{color:var(--bad);font-weight:600;margin:.3rem 0 0}\n"
    ".note{border-radius:.6rem;padding:.75rem 1rem;margin:0 0 1rem;"
    "background:var(--news-ground)}\n"
    ".good{background:var(--good-ground);color:var(--good)}\n"
    ".bad{background:var(--bad-ground);color:var(--bad)}\n"
    "button{font:inherit;font-weight:600;padding:.55rem 1.2rem;"
    "border-radius:.4rem;border:1px solid var(--field);"
    "background:var(--paper);color:var(--ink);cursor:pointer}\n"
    "button:hover{text-decoration:underline}\n"
    ".main{background:var(--main);border-color:var(--main);"
    "color:var(--main-ink)}\n"
    ".no{color:var(--bad);border-color:var(--bad)}\n"
    ".bar{display:flex;flex-wrap:wrap;gap:.75rem;align-items:center;"
    "margin:.9rem 0 0}\n"
    ":focus-visible{outline:3px solid var(--main);outline-offset:2px}\n"
    "a{color:var(--main)}\n"
    "@media(max-width:30rem){dl{grid-template-columns:1fr;gap:0}"
    "dd{margin-bottom:.4rem}.bar button{flex:1 1 100%}}\n";

/* Return, in POOL, the Content-Security-Policy that allows STYLE and forms sent
 * to this server, and nothing else. */
static const char *policy(apr_pool_t *pool)
{
    return crm_html_policy(style, sizeof(style) - 1,
                           "form-action 'self'", pool);
}

/* Set the headers common to all responses. */
static void set_headers(crm_response_t *response, apr_pool_t *pool)
{
    apr_table_t *headers = response->headers;

    apr_table_setn(headers, "Content-Security-Policy", policy(pool));
    apr_table_setn(headers, "Referrer-Policy", "no-referrer");
    apr_table_setn(headers, "X-Frame-Options", "DENY");
    apr_table_setn(headers, "X-Robots-Tag", "noindex, nofollow");
    apr_table_setn(headers, "Cache-Control", "no-store");
    response->content_type = "text/html; charset=utf-8";
    response->body.len = 0;
}

void crm_page_begin(crm_response_t *response, int status, const char *title,
                    apr_pool_t *pool)
{
    response->status = status;
    set_headers(response, pool);
    crm_html_put(&response->body,
                 "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                 "<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, "
                 "initial-scale=1\">\n"
                 "<meta name=\"robots\" content=\"noindex, nofollow\">\n"
                 "<title>", title, "</title>\n<style>", NULL);
    crm_buf_add(&response->body, style, sizeof(style) - 1);
    crm_html_put(&response->body, "</style>\n</head>\n<body>\n<main>\n<h1>",
                 title, "</h1>\n", NULL);
}

void crm_page_end(crm_response_t *response)
{
    crm_buf_puts(&response->body, "</main>\n</body>\n</html>\n");
}

void crm_page_say(crm_response_t *response, int status, const char *title,
                  const char *text, apr_pool_t *pool)
{
    crm_page_begin(response, status, title, pool);
    crm_html_put(&response->body, "<p class=\"note bad\" role=\"status\">",
                 text, "</p>\n", NULL);
    crm_page_end(response);
}

void crm_page_refuse(crm_response_t *response, apr_pool_t *pool)
{
    crm_page_say(response, 403, "This link is not valid",
                 "It may be incomplete. Open it from the mail again, or ask "
                 "the sender for a new one.", pool);
}

void crm_page_redirect(crm_response_t *response, const char *query,
                       apr_pool_t *pool)
{
    response->status = 303;
    set_headers(response, pool);
    apr_table_setn(response->headers, "Location", query);
}
