/* SPDX-License-Identifier: Apache-2.0 */
/* test_display.c: HTML of mails is made safe to be shown (contract 18.3) */
#include "crm_check.h"

#include <string.h>
#include <time.h>

#include "apr_strings.h"

#include "crm_display_check.h"
#include "crm_mail.h"
#include "mail_html.h"

/* Return what is shown of HTML, with its marks. */
static char *shown_of(const char *html, apr_size_t len, unsigned *cut_p)
{
    crm_buf_t *buf = apr_palloc(crm_check_pool(), sizeof(*buf));

    *cut_p = 0;
    crm_mail_init();
    crm_buf_init(buf, 64, crm_check_pool());
    crm_mail_display(buf, cut_p, html, len, crm_check_pool());
    crm_buf_putc(buf, '\0');
    return buf->data;
}

static void check_safe(const char *html, const char *shown)
{
    for (int remote = 0; remote < 2; remote++) {
        char *copy = apr_pstrdup(crm_check_pool(), shown);
        const char *fault;

        display_cut(copy, CRM_MAIL_CID, 0);
        display_cut(copy, CRM_MAIL_REMOTE, remote);
        fault = display_fault(copy, remote);
        ck_assert_msg(!fault, "%s\n%s in\n%s", html, fault, copy);
    }
}

/* ---- what is shown -------------------------------------------------------- */

#define LINK " target=\"_blank\" rel=\"noopener noreferrer nofollow\""

static const struct {
    const char *html, *shown;
} cases[] = {
    {"<p>a <b>b</b> &amp; &lt;c&gt;</p>", "<p>a <b>b</b> &amp; &lt;c&gt;</p>"},
    {"<P ALIGN=center>a</P>", "<p align=\"center\">a</p>"},
    {"<div><p>a", "<div><p>a</p></div>"},
    {"a</div></p></b>", "a"},
    {"<html><head><title>t</title></head><body bgcolor=red><i>a</i></body>",
     "<i>a</i>"},
    {"<a href='https://x.example/?a=1&amp;b=2'>x</a>",
     "<a href=\"https://x.example/?a=1&amp;b=2\"" LINK ">x</a>"},
    {"<a href=mailto:a@b.example>x</a><a href=tel:+49>y</a>",
     "<a href=\"mailto:a@b.example\"" LINK ">x</a>"
     "<a href=\"tel:+49\"" LINK ">y</a>"},
    {"<img src=https://x.example/a.png alt=A width=1>",
     "<img\x01 src=\"https://x.example/a.png\"\x01 alt=\"A\" width=\"1\">"},
    {"<img src='cid:a@b'>", "<img\x02" "a@b\x02>"},
    {"<img src='CID: a'>", "<img\x02 a\x02>"},
    {"<td style='color: RED; padding:2px 3px'>a</td>",
     "<td style=\"color: RED; padding: 2px 3px\">a</td>"},
    {"<p style='font-family: \"Segoe UI\", Arial'>a</p>",
     "<p style=\"font-family: Segoe UI, Arial\">a</p>"},
    {"<p style='color: rgba(1, 2, 3, .5) !important'>a</p>",
     "<p style=\"color: rgba(1, 2, 3, .5) !important\">a</p>"},
    /* what is not */
    {"<p style='background: url(//x)'>a</p>", "<p>a</p>"},
    {"<p style='background: u\\72l(//x)'>a</p>", "<p>a</p>"},
    {"<p style='color: red; background-image: url(//x)'>a</p>",
     "<p style=\"color: red\">a</p>"},
    {"<p style='width: expression(alert(1))'>a</p>", "<p>a</p>"},
    {"<p style='color: var(--x)'>a</p>", "<p>a</p>"},
    {"<p style='width: calc(1px + 2px)'>a</p>", "<p>a</p>"},
    {"<p style='color:/**/red'>a</p>", "<p>a</p>"},
    {"<p style='position: fixed; margin-left: -99px'>a</p>", "<p>a</p>"},
    {"<p style='font-family: \"a;color:url(//x)\"'>a</p>",
     "<p style=\"font-family: a\">a</p>"},
    {"<p style='behavior: url(#default#time2)'>a</p>", "<p>a</p>"},
    {"<p style='@import: x; -moz-binding: url(x)'>a</p>", "<p>a</p>"},
    {"<script>alert(1)</script>a", "a"},
    {"<style>@import url(//x);</style>a", "a"},
    {"<p onclick=alert(1) ONMOUSEOVER='x' id=x class=y name=z>a</p>",
     "<p>a</p>"},
    {"<a href='javascript:alert(1)'>x</a>", "<a>x</a>"},
    {"<a href='java&#115;cript:alert(1)'>x</a>", "<a>x</a>"},
    {"<a href='&#1;javascript:alert(1)'>x</a>", "<a>x</a>"},
    {"<a href='jav&#x09;ascript:alert(1)'>x</a>", "<a>x</a>"},
    {"<a href='jav\nascript:alert(1)'>x</a>", "<a>x</a>"},
    {"<a href='vbscript:x'>x</a><a href='data:text/html,x'>y</a>",
     "<a>x</a><a>y</a>"},
    {"<a href='//x.example'>x</a><a href='#a'>y</a><a href='/a'>z</a>",
     "<a>x</a><a>y</a><a>z</a>"},
    {"<img src='data:image/svg+xml,<svg onload=alert(1)>'>", "<img>"},
    {"<img src=x onerror=alert(1)>", "<img>"},
    {"<img srcset='//x 2x' lowsrc=//x dynsrc=//x longdesc=//x>", "<img>"},
    {"<table background=//x><tr><td background=//y>a</td></tr></table>",
     "<table><tr><td>a</td></tr></table>"},
    {"<svg><a xlink:href='javascript:x'>x</a></svg>a", "a"},
    {"<svg><style><img src=x onerror=alert(1)></style></svg>", ""},
    {"<math><mtext><table><mglyph><style><img src=x onerror=x>", ""},
    {"<form action=//x><input name=a><button>Go</button></form>", "Go"},
    {"<base href=//x><meta http-equiv=refresh content='0;url=//x'><link"
     " rel=stylesheet href=//x>a", "a"},
    {"<iframe src=//x>a</iframe><object data=//x>b</object><embed src=//x>",
     ""},
    {"<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">", ""},
    {"<textarea><img title=\"</textarea><img src=x onerror=x>\"></textarea>",
     "<img>&quot;&gt;"},
    {"<select><option><style></option></select><img src=x onerror=x></style>",
     ""},
    {"<!--><img src=x onerror=alert(1)>-->", "<img>--&gt;"},
    {"<!-- a --!><img src=x onerror=alert(1)> -->", ""},
    {"<![CDATA[<img src=x onerror=alert(1)>]]>", "]]&gt;"},
    {"<?xml <img src=x onerror=alert(1)>?>a", "?&gt;a"},
    {"<p title='\"><script>alert(1)</script>'>a</p>",
     "<p title=\"&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\">a</p>"},
    {"<p title='a`b'>a</p>", "<p title=\"a&#96;b\">a</p>"},
    {"&lt;script&gt;alert(1)&lt;/script&gt;",
     "&lt;script&gt;alert(1)&lt;/script&gt;"},
    {"<a href=\"https://x\x01\x02\">a\x01\x02</a>",
     "<a href=\"https://x\"" LINK ">a</a>"},
    {"<o:p>a</o:p><x-y>b</x-y><blink>c</blink>", "abc"},
    {"<video><source src=//x><img src=//y></video>", ""},
    {"<audio src=//x autoplay></audio><bgsound src=//x>", ""},
    {"<template><script>x</script></template>", ""},
    {"<plaintext>a<script>x</script>", ""},
    {"<xmp><script>x</script></xmp>", ""},
    {"<frameset><frame src=//x></frameset>", ""},
};

START_TEST(what_is_shown)
{
    unsigned cut;
    const char *html = cases[_i].html;
    char *shown = shown_of(html, strlen(html), &cut);

    ck_assert_msg(!strcmp(shown, cases[_i].shown), "%s\n%s, not\n%s", html,
                  shown, cases[_i].shown);
    check_safe(html, shown);
}
END_TEST

/* Fragments, of which any sequence must come out safe. */
static const char *const fragments[] = {
    "<script>", "</script>", "<style>", "</style>", "<svg>", "</svg>",
    "<math>", "<mtext>", "<foreignObject>", "<img src=x onerror=alert(1)>",
    "<a href=javascript:alert(1)>", "<a title='", "<p style=\"", "\">", "'>",
    "<!--", "-->", "--!>", "<![CDATA[", "]]>", "<table>", "<td>", "<form>",
    "</form>", "<noscript>", "</noscript>", "<textarea>", "</textarea>",
    "<title>", "</title>", "<template>", "<select>", "<iframe srcdoc='",
    "&lt;", "&#60;", "&#x3c", "&", "<", ">", "/", "=", "url(//x)", "\x01",
    "\x02", " src=\"//x\"", "text", "<b", "<xmp>", "<plaintext>", "<base ",
    "<object>", "</p>", "<img src='cid:a\x02'>", "\xc3\xa4",
};

START_TEST(nothing_bad_comes_of_any_mixture)
{
    unsigned seed = 18, cut;

    for (int round = 0; round < 20000; round++) {
        char html[512] = "";
        char *shown;

        for (int i = 0; i < 12; i++) {
            seed = seed * 1103515245u + 12345u;
            strcat(html, fragments[(seed >> 16) % CRM_NELTS(fragments)]);
        }
        shown = shown_of(html, strlen(html), &cut);
        check_safe(html, shown);
        if (round % 1000 == 0) {
            apr_pool_clear(crm_check_pool());
        }
    }
}
END_TEST

/* ---- limits --------------------------------------------------------------- */

static const struct {
    const char *begin, *part;
    unsigned cut;
} large[] = {
    {"", "<div>", CRM_MAIL_CUT_LEVELS},
    {"", "<p>text</p>", CRM_MAIL_CUT_HTML},
    {"", "''''''''", CRM_MAIL_CUT_HTML},
    {"", "<img src=cid:a>", CRM_MAIL_CUT_HTML},
    {"<p ", "a='b' ", 0},
    {"<p style='", "color:red;", 0},
    {"<p title='", "''''", 0},
    {"<p style='", ";:", 0},
    {"", "<p style='color:red;float:left;font: a,b,c;margin:0'>",
     CRM_MAIL_CUT_HTML},
    {"", "<", CRM_MAIL_CUT_HTML},
    {"", "</p>", 0},
    {"", "<b><i>", CRM_MAIL_CUT_LEVELS},
    {"", "<table><tr><td>", CRM_MAIL_CUT_LEVELS},
    {"", "<p align=a dir=b lang=c title=d>", CRM_MAIL_CUT_HTML},
};

/* A MiB of it costs little, and little comes of it. */
START_TEST(limits)
{
    apr_size_t len = CRM_MAIL_HTML_BYTES, at = strlen(large[_i].begin);
    char *html = apr_palloc(crm_check_pool(), len + 1), *shown;
    clock_t began = clock();
    unsigned cut;

    strcpy(html, large[_i].begin);
    while (at + strlen(large[_i].part) <= len) {
        strcpy(html + at, large[_i].part);
        at += strlen(large[_i].part);
    }
    shown = shown_of(html, at, &cut);
    ck_assert_msg(clock() - began < 20 * CLOCKS_PER_SEC, "it takes long");
    ck_assert_uint_le(strlen(shown), CRM_MAIL_DISPLAY_BYTES + 65536);
    ck_assert_msg((cut & large[_i].cut) == large[_i].cut, "%s: %u",
                  large[_i].part, cut);
    check_safe(large[_i].part, shown);
}
END_TEST

/* ---- mails ---------------------------------------------------------------- */

#define MIXED "From: a@example.org\nMIME-Version: 1.0\n" \
              "Content-Type: multipart/mixed; boundary=m\n\n--m\n"

static const struct {
    const char *mail, *shown;
} mails[] = {
    {"From: a@example.org\n\nplain", NULL},
    {"Content-Type: text/html\n\n<p>rich</p>", "<p>rich</p>"},
    {"Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain\n--b\n"
     "Content-Type: text/html\n\n<i>rich</i>\n--b--", "<i>rich</i>"},
    {MIXED "\na < b\n--m\nContent-Type: text/html\n\n<i>rich</i>\n--m--",
     "<div style=\"white-space: pre-wrap\">a &lt; b</div>"
     "<i>rich</i>"},
    {MIXED "Content-Type: text/html\nContent-Disposition: attachment\n\n"
     "<i>file</i>\n--m--", NULL},
    {"Content-Type: text/html; charset=iso-8859-1\n\n\xe4",
     "\xc3\xa4"},
};

START_TEST(what_a_mail_shows)
{
    crm_mail_options_t options = {.keep_original = 1};
    const char *bytes = mails[_i].mail, *want = mails[_i].shown;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, strlen(bytes), &options, crm_check_pool());
    ck_assert_msg(want ? mail.display && !strcmp(mail.display, want)
                       : !mail.display, "%s\n%s, not\n%s", bytes,
                  mail.display ? mail.display : "nothing",
                  want ? want : "nothing");
    options.keep_original = 0;
    crm_mail_read(&mail, bytes, strlen(bytes), &options, crm_check_pool());
    ck_assert_msg(!mail.display, "it is made for nothing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("display");
    TCase *shows = tcase_create("shows"), *bounds = tcase_create("bounds");
    TCase *reads = tcase_create("reads");

    tcase_add_loop_test(shows, what_is_shown, 0, COUNT(cases));
    tcase_add_test(shows, nothing_bad_comes_of_any_mixture);
    suite_add_tcase(suite, shows);
    tcase_add_loop_test(bounds, limits, 0, COUNT(large));
    suite_add_tcase(suite, bounds);
    tcase_add_loop_test(reads, what_a_mail_shows, 0, COUNT(mails));
    suite_add_tcase(suite, reads);
    return crm_check_main(suite);
}
