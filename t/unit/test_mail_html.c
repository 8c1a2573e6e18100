/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_html.c: which text HTML shows (contract 18.3) */
#include <string.h>

#include "apr_strings.h"

#include "crm_mail_test.h"

/* ---- what fills a preview ------------------------------------------------- */

/* What advertisements put behind their first words, so that a preview of the mail shows
 * no more: invisible characters and blanks, over and over. */
#define FILL "\xcd\x8f\xe2\x80\x8c\xc2\xa0"
#define FILLS FILL FILL FILL FILL

static const struct {
    const char *text, *want;
} filled[] = {
    {"a" FILLS "b", "a b"},
    {"a\n" FILLS "\nb", "a\n\nb"},
    {"a\n" FILLS "b", "a\nb"},
    {"a\n\n" FILL "\n" FILL "\n" FILL "\n" FILL "\n\nb", "a\n\nb"},
    {FILLS "a" FILLS, "a"},
    {"a \xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad\xc2\xad b",
     "a b"},
    /* and what people write */
    {"a\xe2\x80\x8c" "b", "a\xe2\x80\x8c" "b"},
    {"a" FILL FILL FILL "b", "a" FILL FILL FILL "b"},
    {"a                    b", "a                    b"},
    {"a\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2"
     "\xa0" "b", "a\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0\xc2\xa0"
     "\xc2\xa0\xc2\xa0" "b"},
};

START_TEST(a_text_is_without_what_fills_its_preview)
{
    const char *plain = apr_pstrcat(crm_check_pool(), HEAD "Content-Type:"
        " text/plain; charset=utf-8\n\n", filled[_i].text, NULL);

    same(filled[_i].text, "text", text_of(plain), filled[_i].want);
}
END_TEST

START_TEST(html_is_without_what_fills_its_preview)
{
    same("HTML", "text",
         text_of_html("<div>a</div><div>&#847;&zwnj;&nbsp;&#847;&zwnj;"
                      "&nbsp;&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;</div>"
                      "<p>b</p>"), "a\n\nb");
}
END_TEST

/* ---- what styles hide ---------------------------------------------------- */

static const struct {
    const char *style;
    int hidden;
} styles[] = {
    {"display:none", 1}, {"DISPLAY : None !important", 1},
    {"color:red; display:none;", 1}, {"/* a */display/**/:/**/none", 1},
    {"display:none!important;display:block", 1},
    {"display:none;display:block", 0}, {"display:block", 0},
    {"background:url('x;display:none')", 0}, {"x-display:none", 0},
    {"visibility:hidden", 1}, {"visibility:collapse", 1},
    {"visibility:visible", 0}, {"mso-hide:all", 1},
    {"max-height:0", 1}, {"max-height:0px;overflow:hidden", 1},
    {"max-height:0;position:relative;opacity:.999", 0},
    {"max-height:100px;overflow:hidden", 0},
    {"height:0;overflow:hidden", 1}, {"width:0px;overflow:hidden", 1},
    {"max-width:0;overflow:hidden", 1},
    {"max-width:0;width:100%;overflow:hidden", 0}, {"height:0", 0},
    {"opacity:0", 1}, {"opacity:0.0", 1}, {"opacity:0%", 1},
    {"opacity:.5", 0}, {"opacity:1", 0},
    {"font-size:0", 1}, {"font-size:0px;line-height:0", 1},
    {"font-size:1px;color:#fff", 1}, {"font-size:1em", 0},
    {"font-size:12px", 0}, {"font:0/0 a", 1}, {"font:bold 12px/1.2 Arial", 0},
    {"font:400 0px Arial", 1},
    {"text-indent:-9999px", 1}, {"text-indent:-1em", 0},
    {"position:absolute;left:-10000px", 1}, {"margin-left:-20px", 0},
    {"clip:rect(0 0 0 0)", 1}, {"clip:rect(1px, 1px, 1px, 1px)", 1},
    {"clip:rect(0, 200px, 100px, 0)", 0}, {"clip-path:inset(50%)", 1},
    {"transform:scale(0)", 1}, {"transform:scale(0.5)", 0},
    {"", 0}, {";;:;", 0}, {"display", 0}, {"display:", 0},
    {"display:none /* ", 1}, {"content:\"", 0}, {"x:url(;display:none", 1},
};

/* Return STYLE as the value of an attribute. */
static const char *quoted(const char *style)
{
    const char *quote = strchr(style, '"');

    return quote ? apr_pstrcat(crm_check_pool(), apr_pstrndup(
                                   crm_check_pool(), style,
                                   (apr_size_t)(quote - style)), "&quot;",
                               quote + 1, NULL) : style;
}

START_TEST(a_style_may_hide)
{
    const char *text = text_of_html(apr_pstrcat(
        crm_check_pool(), "<div style=\"", quoted(styles[_i].style),
        "\">pre</div><p>words</p>", NULL));

    ck_assert_msg((strstr(text, "pre") == NULL) == styles[_i].hidden, "%s\n%s",
                  styles[_i].style, text);
    ck_assert_ptr_nonnull(strstr(text, "words"));
}
END_TEST

static const struct {
    const char *html, *text;
} hidden[] = {
    {"<div style='font-size:0'>no<b style='font-size:14px'>yes</b>no</div>",
     "yes"},
    {"<div style='font-size:0'>no<font size=3>yes</font>no</div>", "yes"},
    {"<div style='font-size:0'>no<b style='font-size:2em'>no</b></div>yes",
     "yes"},
    {"<p style='visibility:hidden'>no<b style='visibility:visible'>yes</b>",
     "yes"},
    {"<div style='display:none'>no<b style='display:block'>no</b></div>yes",
     "yes"},
    {"<div hidden>no</div>yes", "yes"},
    {"<img width=1 height=1 alt=no src=x>yes", "yes"},
    {"<img style='display:none' alt=no src=x>yes", "yes"},
    {"<img width=10 height=11 alt=logo src=x>", "logo"},
    {"<br style='display:none'>yes<iframe>no</iframe>", "yes"},
    /* if all is hidden, it is the text */
    {"<div style='display:none'>all</div>", "all"},
    {"<div style='opacity:0'>all</div>&nbsp;&zwnj;", "all"},
};

START_TEST(what_html_hides_is_not_its_text)
{
    same(hidden[_i].html, "text", text_of_html(hidden[_i].html),
         hidden[_i].text);
}
END_TEST

/* ---- what HTML shows ----------------------------------------------------- */

#define WORDS "a text that is too long for a cell of a table, so that the next cell is" \
              " another paragraph"

static const struct {
    const char *html, *text;
} laid_out[] = {
    /* a text before all elements is no paragraph */
    {"one<div>two</div>", "one\ntwo"},
    {"&lt;one<div>two</div>", "<one\ntwo"},
    {"< one<div>two</div>", "< one\ntwo"},
    {"<head><title>no</title>one<div>two</div>", "one\ntwo"},
    {"<html>\n<style>x</style> one<div>two</div>", "one\ntwo"},
    {"one<body style='display: none'><div>two</div>", "one\ntwo"},
    {"<body style='display: none'>one</body><p>two", "one\n\ntwo"},
    /* what follows the document (HTML, 13.2.6.4.22) */
    {"<html><body><p>one</p></body></html><p>two</p>", "one\n\ntwo"},
    {"<html><head><title>no</title></head><body>one</body></html>\n"
     "<html><head><title>no</title></head><body bgcolor=x>two</body></html>"
     "three", "one\ntwo\nthree"},
    {"<body>one</body></html><html><body>two</body></html>", "one\ntwo"},
    {"one<br></body>\n</html>\n", "one"},
    /* a link whose text is its URL */
    {"<a href='https://x.example/'>https://x.example</a>", "https://x.example"},
    {"<a href='http://x.example/'>x.example</a>", "x.example"},
    {"<a href='http://x.example/a/'>x.example/a</a>", "x.example/a"},
    {"<a href='http://x.example/a/'>x.example</a>",
     "x.example <http://x.example/a/>"},
    {"<p>one</body><p>two</html>three", "one\n\ntwo\nthree"},
    {"</html>one</body>", "one"},
    /* line ends that are kept (CSS Text, 3) */
    {"<p style='white-space: pre-wrap'>one\n  two\n\nthree</p>",
     "one\n  two\n\nthree"},
    {"<p style='white-space:pre-line'>one\n  two</p>\nthree",
     "one\ntwo\n\nthree"},
    {"<div style='white-space:break-spaces'><b>one\ntwo</b></div>\nx\ny",
     "one\ntwo\nx y"},
    {"<p style='WHITE-SPACE:PRE!important;white-space:normal'>one\ntwo</p>",
     "one\ntwo"},
    {"<div style='white-space:pre'>one\n<i style='white-space:nowrap'>two\n"
     "three</i>\nfour</div>", "one\ntwo three\nfour"},
    {"<pre style='white-space:normal'>one\ntwo</pre>", "one two"},
    {"<pre>one\n<pre>two\nthree</pre>four\nfive</pre>",
     "one\n\ntwo\nthree\n\nfour\nfive"},
    {"<p style='white-space:inherit'>one\ntwo</p>", "one two"},
    {"<div style='display:none;white-space:pre'>no</div>one\ntwo", "one two"},
    {"<div style='display:none'><p style='white-space:pre'>all\nof</p></div>",
     "all\nof"},
    /* signs of a font, as Outlook writes them */
    {"Thanks <span style='font-family:Wingdings'>J</span>", "Thanks ☺"},
    {"A <span style='font-family:\"Wingdings\",serif'>&agrave; <b>L</b></span> J", "A → ☹ J"},
    {"<font face=Wingdings>&#61514;</font>&#61514;", "☺\xef\x81\x8a"},
    {"<font face='WINGDINGS, Symbol'>J <font face='Arial, Wingdings'>J</font></font>", "☺ J"},
    {"<p><span style='font-family:Wingdings'>&sect;<span style='font:7.0pt \"Times New"
     " Roman\"'>&nbsp; J</span></span>one</p>", "▪\xc2\xa0 Jone"},
    {"<p style='font-family:Wingdings'>K<span style='font-family:Arial'>K</span>a &#9;</p>",
     "😐Ka"},
    {"<p style='font-family:Wingdings;font-family:Arial'>J", "J"},
    {"<p style='font-family:\"Wingdings 2\"'>J", "J"},
    {"<p style='font-family:Arial,Wingdings'>J", "J"},
    /* numbers of items */
    {"<ol start=5><li>a<li>b</ol>", "5. a\n6. b"},
    {"<ol><li value=7>a<li>b</ol>", "7. a\n8. b"},
    {"<ol start=x><li>a<li value=''>b</ol>", "1. a\n2. b"},
    {"<ol start=-9223372036854775808><li>a</ol>", "1. a"},
    {"<ol start=-1000000><li>a</ol>", "-1000000. a"},
    {"<ol start=99999999999999999999><li>a</ol><ul><li value=3>b</ul>",
     "1. a\n\n- b"},
    /* elements that are lines */
    {"<details><summary>one</summary>two</details>three", "one\ntwo\nthree"},
    {"a<figure>b<figcaption>c</figcaption></figure>d", "a\nb\nc\nd"},
    {"<menu><li>a<li>b</menu>", "- a\n- b"},
    /* cells as Word and Excel make them, and those of a layout */
    {"x<table><tr><td><p>a</p></td><td><p>b</p></td></tr><tr><td><p>c</p></td>"
     "<td><div>d</div></td></tr></table>y", "x\n\na b\n\nc d\ny"},
    {"<table><tr><td></td><td><p>a</p></td><td></td><td><p>b</p></td><td></td></tr>"
     "<tr><td><p></p></td><td><p>c</p></td></tr></table>", "a b\n\nc"},
    {"<table><tr><td>a<br>b</td><td><p>c</p></td></tr><tr><td>d<td>e</table>",
     "a\nb\n\nc\n\nd e"},
    {"<table><tr><td><p>a</p><p>b</p></td><td><p>c</p><p>d</p></td></tr></table>",
     "a\n\nb\n\nc\n\nd"},
    {"<table><tr><td><p>a</p></td></tr><tr><td><p>b</p></td></tr></table>", "a\n\nb"},
    {"<table><tr><td><table><tr><td><p>a</p></td><td><p>b</p></td></tr></table></td>"
     "<td><p>c</p></td></tr></table>", "a b c"},
    {"<table><tr><td><p>" WORDS "</p></td><td><p>c</p></td></tr></table>",
     WORDS "\n\nc"},
    {"<ul><li><p>a</p></li><li><p>b</p></li></ul>c", "- a\n\n- b\n\nc"},
    {"<ol><li><div></div><div>a</div>b</li><li> <div><p>c</div></ol>",
     "1. a\nb\n2. c"},
    {"<ul><li></li><li><ul><li><p>a</ul><li><blockquote>b</blockquote></ul>",
     "-\n-\n  - a\n\n-\n\n> b"},
    {"<ul><li></ul><p>a", "-\n\na"},
    /* what a style makes a block */
    {"<b style='display:block'>a</b><b style='display: block'>b</b>", "a\nb"},
    {"a<b style='display:block;mso-hide:all'>b</b>c", "ac"},
    {"a<a href='https://x.example/a' style='display:block'>b</a>c",
     "a\nb <https://x.example/a>\nc"},
    {"<b style='display:table'>a</b><b style='display:flex'>b</b><b style="
     "'display:inline-block'>c</b><b style='display:inline'>d</b>", "a\nb\ncd"},
    {"<img alt=a style='display:block'>b", "a\nb"},
    {"<div style='display:block'>a</div><p style='display:block'>b</p>",
     "a\n\nb"},
    {"<table><tr><td><span style='display:block'>a</span></td><td><span style="
     "'display:block'>b</span></td></tr></table>", "a b"},
    {"<ul><li><span style='display:block'>a</span></li></ul>", "- a"},
    {"<span style='display:block'></span>a", "a"},
    /* lines of no-break spaces, as Outlook writes empty ones */
    {"<p>a</p><p>&nbsp;</p><p>b</p>", "a\n\nb"},
    {"<p>a<p><o:p>&nbsp;</o:p></p><p>&nbsp; &nbsp;</p>b", "a\n\nb"},
    {"<div>a</div><div>&nbsp;</div><div>b</div>", "a\n\nb"},
    {"a<br>&nbsp;<br>b", "a\n\nb"},
    {"<blockquote>a<p>&nbsp;</p>b</blockquote>", "> a\n>\n> b"},
    {"<p>a</p><p>&nbsp;&nbsp;b&nbsp;c</p>",
     "a\n\n\xc2\xa0\xc2\xa0" "b\xc2\xa0" "c"},
    {"a<br>&nbsp;<b>b</b>", "a\n\xc2\xa0" "b"},
    {"<table><tr><td>&nbsp;</td><td>a</td></tr><tr><td>b</td><td>&nbsp;</td>"
     "<td>c</td></tr></table>", "a\nb \xc2\xa0 c"},
    {"<pre>a\n&nbsp;\nb</pre>", "a\n\xc2\xa0\nb"},
    /* a URL with white space around it */
    {"<a href=' \n https://x.example/a\t'>b</a>", "b <https://x.example/a>"},
    {"<a href=' '>b</a>", "b"},
    /* a link that writes a mail, one without words, one that is a paragraph */
    {"<a href='mailto:a@x.example'>b</a>", "b <mailto:a@x.example>"},
    {"<a href='mailto:a@x.example'>a@x.example</a>", "a@x.example"},
    {"<a href='mailto:a@x.example?subject=c'>a@x.example</a>", "a@x.example"},
    {"a<a href='https://x.example/'></a>b", "ab"},
    {"<a href='https://x.example/a'><p>b</p></a>c",
     "b <https://x.example/a>\n\nc"},
    /* blank lines */
    {"a<br><br><br><br>b", "a\n\nb"},
    {"<blockquote>a<blockquote>b</blockquote>c</blockquote>d",
     "> a\n>\n> > b\n>\n> c\n\nd"},
    {"<ul><li>a<ul><li>b</ul></li><li>c</ul>d", "- a\n  - b\n- c\n\nd"},
    {"a\tb\r\n\tc", "a b c"},
    /* what is within that which is hidden */
    {"<div style='display:none'><blockquote>a</blockquote></div>"
     "<blockquote>b</blockquote>c", "> b\n\nc"},
    {"<p style='font-size:0'>a<img alt=b></p>c", "c"},
};

START_TEST(what_html_shows_is_its_text)
{
    same(laid_out[_i].html, "text", text_of_html(laid_out[_i].html),
         laid_out[_i].text);
}
END_TEST

/* ---- character references ------------------------------------------------ */

static const struct {
    const char *html, *text;
} references[] = {
    {"&uuml;&#252;&#xFC;&#XFC;", "üüüü"},
    /* numbers of windows-1252 */
    {"It&#146;s 10 &#128; &#x96; &#132x", "It’s 10 € – „x"},
    {"a&#129;b", "a\xc2\x81" "b"},
    {"&#128;&#129;&#130;&#131;&#132;&#133;&#134;&#135;&#136;&#137;"
     "&#138;&#139;&#140;&#141;&#142;&#143;&#144;&#145;&#146;&#147;"
     "&#148;&#149;&#150;&#151;&#152;&#153;&#154;&#155;&#156;&#157;"
     "&#158;&#159;",
     "\342\202\254\302\201\342\200\232\306\222\342\200\236\342\200\246"
     "\342\200\240\342\200\241\313\206\342\200\260\305\240\342\200\271"
     "\305\222\302\215\305\275\302\217\302\220\342\200\230\342\200\231"
     "\342\200\234\342\200\235\342\200\242\342\200\223\342\200\224"
     "\313\234\342\204\242\305\241\342\200\272\305\223\302\235\305\276"
     "\305\270"},
    {"a&#0000146;&#X00000092;&#x9C;&#X9f;", "a\342\200\231\342\200\231\305\223"
     "\305\270"},
    /* names of HTML 5 */
    {"Hello&comma; world&period; &ccaron;&Zcaron;&shcy;",
     "Hello, world. čŽш"},
    {"&LT;p&GT; &lbrack;x&rsqb;", "<p> [x]"},
    {"&none; &Ccaronx; &;", "&none; &Ccaronx; &;"},
    {"&CloseCurlyDoubleQuote;&zhcy;&AMP;", "\342\200\235\320\266&"},
    {"&CloseCurlyDoubleQuoteAndMore;", "&CloseCurlyDoubleQuoteAndMore;"},
    /* without a semicolon */
    {"a&nbsp b &amp c &lt d&copy", "a\xc2\xa0 b & c < d\xc2\xa9"},
    {"AT&T x&copyright a&ampb", "AT&T x&copyright a&ampb"},
    {"http://x/?a=1&lang=en&copy=2", "http://x/?a=1&lang=en&copy=2"},
    {"<a href='http://x/?a&copy&comma;&amp;b'>t</a>",
     "t <http://x/?a&copy,&b>"},
    {"<img alt='&#147;x&colon;&#148;'>", "“x:”"},
};

START_TEST(references_are_read_as_browsers_do)
{
    same(references[_i].html, "text", text_of_html(references[_i].html),
         references[_i].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_html");
    TCase *texts = tcase_create("texts");

    mail_init();
    tcase_add_loop_test(texts, a_text_is_without_what_fills_its_preview, 0,
                        COUNT(filled));
    tcase_add_test(texts, html_is_without_what_fills_its_preview);
    tcase_add_loop_test(texts, a_style_may_hide, 0, COUNT(styles));
    tcase_add_loop_test(texts, what_html_hides_is_not_its_text, 0,
                        COUNT(hidden));
    tcase_add_loop_test(texts, what_html_shows_is_its_text, 0,
                        COUNT(laid_out));
    tcase_add_loop_test(texts, references_are_read_as_browsers_do, 0,
                        COUNT(references));
    suite_add_tcase(suite, texts);
    return crm_check_main(suite);
}
