/* SPDX-License-Identifier: Apache-2.0 */
/* test_markdown.c: texts and CommonMark as the HTML of mails */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crmapid_mail_html.h"
#include "crmapid_markdown.h"

/* CommonMark, and what its HTML has, or must not have. */
static const struct {
    const char *text;
    const char *has;
    const char *not;
} markdown[] = {
    {"a *b* **c**", "<p>a <em>b</em> <strong>c</strong></p>", NULL},
    {"[x](https://x.example/?a=1&b=2)",
     "<a href=\"https://x.example/?a=1&amp;b=2\">x</a>", NULL},
    {"- a\n- b", "<li>a</li>", NULL},
    {"ש!", "<body dir=\"auto\">\n<p>ש!</p>", NULL},
    {"<script>alert(1)</script>\n\na", NULL, "<script"},
    {"a <img src=x onerror=alert(1)> b", NULL, "<img"},
    {"[x](javascript:alert(1))", ">x</a>", "javascript"},
    {"![x](data:text/html,y)", NULL, "data:text"},
    {"a</body></html>", NULL, "a</body>"},
    {"a\xff" "b", "\xef\xbf\xbd", "\xff"},
    /* without a word, too */
    {"![](https://x.example/y.png)", "<img ", NULL},
    {"***", "<hr />", NULL},
    /* lines stay lines */
    {"Main St. 1\nBerlin", "<p>Main St. 1<br />\nBerlin</p>", NULL},
    {"a<br>b<BR />c<br/>d", "a<br />\nb<br />\nc<br />\nd</p>", NULL},
    /* URLs are links, as in a text */
    {"see https://x.example/a_b_c.", "see <a href=\"https://x.example/a_b_c\">"
     "https://x.example/a_b_c</a>.", NULL},
    {"**(https://x.example/)**", "<strong>(<a href=\"https://x.example/\">"
     "https://x.example/</a>)</strong>", NULL},
    {"[https://x.example/](https://y.example/)",
     "<p><a href=\"https://y.example/\">https://x.example/</a></p>", NULL},
    {"![https://x.example/](https://y.example/)", NULL, "<a"},
    {"`https://x.example/`", NULL, "<a"},
    {"<https://x.example/>", ">https://x.example/</a></p>", NULL},
    {"https://x.example/*b*", NULL, "<a"},
    {"https://x.example/ *b*", "</a> <em>b</em>", NULL},
    {"https://x.example/?a=1&b=2", ">https://x.example/?a=1&amp;b=2</a></p>", NULL},
    {"a\nhttps://x.example/\nb", "a<br />\n<a ", "b</a>"},
    {"http://x.example/?a=<b>&c", ">http://x.example/?a=</a>&amp;c", NULL},
    /* of HTML there is the text */
    {"<p>Hello</p>", "<p>Hello</p>", NULL},
    {"<div>\nHello <b>you</b><br>\nand &lt;you&gt;\n</div>\n\nbye",
     "<p>Hello you<br />\nand &lt;you&gt;</p>\n<p>bye</p>", "omitted"},
    {"<p>https://x.example/</p>", ">https://x.example/</a></p>", NULL},
    {"> <p>a</p>", "<blockquote>\n<p>a</p>\n</blockquote>", NULL},
    {"a <b>b</b> <!-- c --> d", "<p>a b  d</p>", "omitted"},
    /* what is no element is a text */
    {"Hi <name>, a List<String>", "<p>Hi &lt;name&gt;, a List&lt;String&gt;</p>",
     NULL},
    {"a <Mark>b</mark> c", "<p>a b c</p>", NULL},
    {"a <your name=\"x\"> b</NAME><em>c</em>",
     "<p>a &lt;your name=&quot;x&quot;&gt; b&lt;/NAME&gt;c</p>", NULL},
    {"<script>x()</script>\n\na", "<body dir=\"auto\">\n<p>a</p>", "omitted"},
};

START_TEST(markdown_becomes_html)
{
    const char *html = crmd_markdown_html(markdown[_i].text,
                                          crm_check_pool());

    ck_assert_msg(!markdown[_i].has || strstr(html, markdown[_i].has), "%s",
                  html);
    ck_assert_msg(!markdown[_i].not || !strstr(html, markdown[_i].not), "%s",
                  html);
}
END_TEST

/* What shows nothing as HTML is sent as it is. */
START_TEST(markdown_that_shows_nothing)
{
    static const char *const texts[] = {"<!-- a -->", "<script>a</script>",
                                        "<div></div>", "> <!-- a -->", "<name>"};

    ck_assert_msg(!crmd_markdown_html(texts[_i], crm_check_pool()), "%s",
                  texts[_i]);
}
END_TEST

/* Texts of 65,536 characters that take long if time grows with the square. */
static const char *const nested[] = {">", "[", "*a_ ", "![", "- ", "`a ", "<",
                                     "http://a ", "http://a/", "<b>", "<div>\n",
                                     "<div>\n\n", "*http://a", "http://(]"};

START_TEST(markdown_takes_linear_time)
{
    apr_size_t len = strlen(nested[_i]);
    char *text = apr_palloc(crm_check_pool(), 65537);

    for (apr_size_t i = 0; i < 65536; i++) {
        text[i] = nested[_i][i % len];
    }
    strcpy(text + 65533, "\n\na");
    ck_assert_ptr_nonnull(crmd_markdown_html(text, crm_check_pool()));
}
END_TEST

#define P "<p dir=\"auto\">"
#define LINK(url) "<a href=\"" url "\">" url "</a>"

static const struct {
    const char *text;
    const char *html;
} pages[] = {
    {"", ""}, {"\n \n", ""}, {"a", P "a</p>\n"},
    {"a\nb\n\n\nc\n", P "a<br>\nb</p>\n" P "c</p>\n"},
    {"a\r\nb\r\n\r\nc", P "a<br>\nb</p>\n" P "c</p>\n"},
    {"<b>&\"'", P "&lt;b&gt;&amp;&quot;&#39;</p>\n"},
    {"see https://x.org/a?b=1&c=2.", P "see "
     LINK("https://x.org/a?b=1&amp;c=2") ".</p>\n"},
    {"http:// https://", P "http:// https://</p>\n"},
    {"javascript:alert(1)", P "javascript:alert(1)</p>\n"},
    {"http://x\"onclick=", P LINK("http://x") "&quot;onclick=</p>\n"},
    {"HTTPS://X,http://y", P LINK("HTTPS://X,http://y") "</p>\n"},
    {"http://»", P "http://»</p>\n"},
    /* blanks */
    {"  a\n\tb", P "&nbsp;&nbsp;a<br>\n&nbsp;&nbsp;&nbsp;&nbsp;b</p>\n"},
    {"a   b \t c ", P "a&nbsp;&nbsp; b&nbsp;&nbsp;&nbsp;&nbsp;&nbsp; c </p>\n"},
    {"a  http://x  b", P "a&nbsp; " LINK("http://x") "&nbsp; b</p>\n"},
    {" ש!", P "&nbsp;ש!</p>\n"},
};

/* What stands before a URL, the URL, and what stands behind it. */
static const char *const urls[][3] = {
    {"(", "http://x.org/", ")"}, {"", "http://x.org/a_(b)", ""},
    {"(", "http://x.org/a_(b)", ")."}, {"", "http://x.org/a(b", ""},
    {"[", "http://x.org/?a=[1]", "]"}, {"", "http://[::1]/", ""},
    {"*", "http://x.org/", "*"}, {"'", "http://x.org/", "'?!"},
    {"", "https://x.org/Müller/日", ""},
    {"", "https://x.org/L’Été", "’"},
    {"", "https://x.org/\xdb\x8c\xe2\x80\x8c\xd8\xa7", "\xe2\x80\x8c"},
    {"«", "https://x.org/", "»"},
    {"“", "https://x.org/", "”."},
    {"", "https://x.org/", "…"}, {"", "https://x.org/", "\xc2\xa0: oui"},
    {"", "https://x.org/", "\xe2\x80\x8b"}, {"", "https://x.org/", "\xe3\x80\x80x"},
    {"", "https://x.org/", "。次"},
    {"（", "https://x.org/", "）と"},
    {"", "https://x.org/", "؟"}, {"", "https://x.org/", "\xff"},
};

START_TEST(urls_become_links)
{
    const char *const *part = urls[_i];
    apr_pool_t *pool = crm_check_pool();
    crm_buf_t buf;

    crm_buf_init(&buf, 16, pool);
    crmd_mail_html(&buf, apr_pstrcat(pool, part[0], part[1], part[2], NULL));
    crm_buf_putc(&buf, '\0');
    ck_assert_ptr_nonnull(strstr(buf.data, apr_pstrcat(
        pool, "<a href=\"", part[1], "\">", part[1], "</a>", NULL)));
}
END_TEST

START_TEST(texts_become_html)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 16, crm_check_pool());
    crmd_mail_html(&buf, pages[_i].text);
    crm_buf_putc(&buf, '\0');
    ck_assert_str_eq(buf.data, pages[_i].html);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("markdown");
    TCase *html = tcase_create("html");

    tcase_add_loop_test(html, markdown_that_shows_nothing, 0, 5);
    tcase_add_loop_test(html, markdown_becomes_html, 0,
                        COUNT(markdown));
    tcase_add_loop_test(html, markdown_takes_linear_time, 0,
                        COUNT(nested));
    tcase_add_loop_test(html, texts_become_html, 0,
                        COUNT(pages));
    tcase_add_loop_test(html, urls_become_links, 0, COUNT(urls));
    suite_add_tcase(suite, html);
    return crm_check_main(suite);
}
