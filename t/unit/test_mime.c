/* SPDX-License-Identifier: Apache-2.0 */
/* test_mime.c: messages as mails: what goes in comes out, and nothing else */
#include "crm_check.h"

#include <string.h>

#include <gmime/gmime.h>

#include "apr_strings.h"

#include "crmapid_mime.h"

#define MAIL_CHANNEL (&crm_channels[CRM_CHANNEL_EMAIL])
#define SMS_CHANNEL (&crm_channels[CRM_CHANNEL_TEXT])
#define VOICE_CHANNEL (&crm_channels[CRM_CHANNEL_PHONE])

#define ID "0197c0de-0000-7000-8000-000000000001"

static const crmd_config_t config = {
    .mail_from = "crm@example.com", .mail_from_name = "The CRM",
    .mail_domain = "crm.example.com", .sms_from = "+4930123456",
    .voice_from = ""
};

static const crmd_message_t simple = {
    .channel = MAIL_CHANNEL, .id = ID, .from = "eve@example.com",
    .from_name = "Eve", .to = "ada@example.org", .to_name = "Ada",
    .subject = "Hello", .text = "Dear Ada,\n\nbye"
};

static crmd_mail_t make_with(const crmd_message_t *message,
                             const crmd_config_t *with, int crlf)
{
    crmd_mail_t mail;
    crm_error_t *error = crmd_mail_make(&mail, message, with, crlf,
                                        crm_check_pool());

    ck_assert_msg(!error, "%s", error->message);
    ck_assert_uint_eq(strlen(mail.text), mail.len);
    return mail;
}

static crmd_mail_t make(const crmd_message_t *message)
{
    return make_with(message, &config, 0);
}

static apr_status_t drop(void *mime)
{
    g_object_unref(mime);
    return APR_SUCCESS;
}

/* Return MAIL read again; kept until the program ends. */
static GMimeMessage *parse(const crmd_mail_t *mail)
{
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(mail->text,
                                                            mail->len);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);

    g_object_unref(parser);
    g_object_unref(stream);
    ck_assert_ptr_nonnull(message);
    apr_pool_cleanup_register(crm_check_pool(), message, drop,
                              apr_pool_cleanup_null);
    return message;
}

static const char *header(GMimeMessage *mime, const char *name)
{
    return g_mime_object_get_header(GMIME_OBJECT(mime), name);
}

/* Return the text of part INDEX of MIME, with LF. */
static const char *part_of(GMimeMessage *mime, int index)
{
    GMimeObject *object = g_mime_message_get_mime_part(mime);
    char *text, *c, *out;

    if (GMIME_IS_MULTIPART(object)) {
        object = g_mime_multipart_get_part(GMIME_MULTIPART(object), index);
    }
    ck_assert(GMIME_IS_TEXT_PART(object));
    text = g_mime_text_part_get_text(GMIME_TEXT_PART(object));
    out = c = apr_pstrdup(crm_check_pool(), text);
    g_free(text);
    for (char *in = c; *in; in++) {
        if (*in != '\r' || in[1] != '\n') {
            *out++ = *in;
        }
    }
    *out = '\0';
    return c;
}

/* Fail unless LIST is the one address NAME ("": none) and ADDRESS. */
static void is_mailbox(InternetAddressList *list, const char *name,
                       const char *address)
{
    InternetAddress *first;

    ck_assert_int_eq(internet_address_list_length(list), 1);
    first = internet_address_list_get_address(list, 0);
    ck_assert(INTERNET_ADDRESS_IS_MAILBOX(first));
    ck_assert_str_eq(internet_address_mailbox_get_addr(
                         INTERNET_ADDRESS_MAILBOX(first)), address);
    ck_assert_str_eq(internet_address_get_name(first)
                     ? internet_address_get_name(first) : "", name);
}

/* Fail unless the encoded words in the header of MAIL are as short as they must be,
 * and the lines that have some (RFC 2047, 2). */
static void has_short_words(const crmd_mail_t *mail)
{
    const char *body = strstr(mail->text, "\n\n");
    const char *end = body ? body : mail->text + mail->len;

    for (const char *line = mail->text, *next; line < end; line = next + 1) {
        const char *word = strstr(line, "=?"), *stop;

        next = line + strcspn(line, "\n");
        if (!word || word > next) {
            continue;
        }
        stop = strchr(strchr(word + 2, '?') + 3, '?');
        ck_assert_msg(stop + 2 - word <= 75 && next - line <= 77
                      && (next[-1] == '\r' || next - line <= 76), "%.*s",
                      (int)(next - line), line);
    }
}

/* Fail unless MAIL's headers are those it should have, each once, and lines
 * are short ASCII (RFC 5322, 2.1.1; 78 is what should be, 998 what must). */
static void is_proper(const crmd_mail_t *mail)
{
    static const char *const known[] = {
        "From", "To", "Subject", "Date", "Message-Id", "MIME-Version",
        "Reply-To", "In-Reply-To", "References", "X-Crmapi-Return",
        "Content-Type", "Content-Transfer-Encoding", "List-Unsubscribe",
        "List-Unsubscribe-Post", "Auto-Submitted", "X-Crmapi-Channel",
        "Reply-To", "In-Reply-To", "References", "X-Crmapi-Return"
    };
    enum { KNOWN = CRM_NELTS(known) };
    int seen[KNOWN] = {0};
    GMimeMessage *mime = parse(mail);
    GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(mime));
    apr_size_t length = 0;

    for (int i = 0; i < g_mime_header_list_get_count(list); i++) {
        const char *name = g_mime_header_get_name(
            g_mime_header_list_get_header_at(list, i));
        int k = 0;

        while (k < KNOWN && strcasecmp(name, known[k])) {
            k++;
        }
        ck_assert_msg(k < KNOWN, "there is a header %s:\n%s", name,
                      mail->text);
        ck_assert_msg(!seen[k]++, "%s is there twice", name);
    }
    for (const char *c = mail->text; *c; c++) {
        length = *c == '\n' ? 0 : length + 1;
        ck_assert_msg(*c > 0 && length <= 998, "byte %d, length %d", *c,
                      (int)length);
        ck_assert(*c >= ' ' || *c == '\n' || *c == '\r' || *c == '\t');
    }
    has_short_words(mail);
}

START_TEST(a_mail_has_what_it_needs)
{
    crmd_mail_t mail = make(&simple);
    GMimeMessage *mime = parse(&mail);
    GDateTime *now = g_date_time_new_now_utc();

    is_proper(&mail);
    is_mailbox(g_mime_message_get_from(mime), "Eve", "eve@example.com");
    is_mailbox(g_mime_message_get_to(mime), "Ada", "ada@example.org");
    ck_assert_str_eq(g_mime_message_get_subject(mime), "Hello");
    ck_assert_str_eq(g_mime_message_get_message_id(mime),
                     ID "@crm.example.com");
    ck_assert_str_eq(mail.message_id, "<" ID "@crm.example.com>");
    ck_assert_str_eq(mail.from, "eve@example.com");
    ck_assert_str_eq(mail.to, "ada@example.org");
    ck_assert_ptr_nonnull(g_mime_message_get_date(mime));
    ck_assert_int_lt(g_date_time_difference(now, g_mime_message_get_date(mime))
                     / G_TIME_SPAN_SECOND, 10);
    ck_assert_str_eq(header(mime, "MIME-Version"), "1.0");
    ck_assert(g_mime_content_type_is_type(
                  g_mime_object_get_content_type(
                      g_mime_message_get_mime_part(mime)),
                  "multipart", "alternative"));
    ck_assert_str_eq(part_of(mime, 0), simple.text);
    ck_assert_ptr_nonnull(strstr(part_of(mime, 1),
                                 "<p dir=\"auto\">Dear Ada,</p>\n"
                                 "<p dir=\"auto\">bye</p>"));
    ck_assert_ptr_null(header(mime, "Auto-Submitted"));
    ck_assert_ptr_null(header(mime, "List-Unsubscribe"));
    g_date_time_unref(now);
}
END_TEST

#define FIRST "<first.0197c0de-0000-4000-8000-000000000001@crm.example.com>"
#define AGAIN "<0102018f1c2d3e4f-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9-000000" \
    "@eu-west-1.amazonses.com>"

START_TEST(a_further_mail_is_in_the_thread)
{
    crmd_message_t message = simple;
    crmd_mail_t mail;
    GMimeMessage *mime;

    message.message_id = "<keyed@crm.example.com>";
    message.references = FIRST " " AGAIN;
    message.reply_to = "sales+0123@crm.example.com";
    message.return_to = "eve+0123@example.com";
    message.token = "0123456789abcdef0123456789abcdef";
    mail = make(&message);
    mime = parse(&mail);
    is_proper(&mail);
    ck_assert_str_eq(mail.message_id, "<keyed@crm.example.com>");
    ck_assert_str_eq(g_mime_message_get_message_id(mime),
                     "keyed@crm.example.com");
    ck_assert_str_eq(g_mime_message_get_subject(mime), "Re: Hello");
    ck_assert_str_eq(header(mime, "In-Reply-To"), AGAIN);
    ck_assert_str_eq(header(mime, "References"), FIRST " " AGAIN);
    ck_assert_ptr_nonnull(strstr(mail.text, "\nReferences: " FIRST "\n " AGAIN
                                 "\n"));
    ck_assert_str_eq(header(mime, "X-Crmapi-Return"), message.token);
    is_mailbox(g_mime_message_get_reply_to(mime), "Eve",
               "sales+0123@crm.example.com");
    is_mailbox(g_mime_message_get_from(mime), "Eve", "eve@example.com");
    ck_assert_str_eq(mail.from, "eve+0123@example.com");
    message.subject = "RE: Hello";
    mail = make(&message);
    mime = parse(&mail);
    ck_assert_str_eq(g_mime_message_get_subject(mime), "RE: Hello");
    /* mail programs look for it, not for what it may be encoded as */
    message.subject = "Grüß";
    mail = make(&message);
    ck_assert_ptr_nonnull(strstr(mail.text, "\nSubject: Re: =?utf-8?"));
}
END_TEST

START_TEST(copies_are_in_the_header)
{
    const char *const copies[] = {"bob@example.org", "cy@example.org", NULL};
    const char *const bad[] = {"bob@example.org\nBcc: x@example.org", NULL};
    crmd_message_t message = simple;
    crmd_mail_t mail;

    message.copies = copies;
    mail = make(&message);
    ck_assert_str_eq(header(parse(&mail), "Cc"),
                     "bob@example.org, cy@example.org");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(mail.copies[i], copies[i]);
    }
    ck_assert_ptr_null(mail.copies[2]);
    message.copies = bad;
    ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                         crm_check_pool()));
}
END_TEST

START_TEST(a_whole_subject_stays)
{
    crmd_message_t message = simple;
    crmd_mail_t mail;

    message.references = FIRST;
    message.subject_whole = 1;
    mail = make(&message);
    ck_assert_str_eq(header(parse(&mail), "Subject"), "Hello");
}
END_TEST

/* A mail that is attached, or what says that it is a multipart, is a file: base64
 * does not go with their types (RFC 2045, 6.4). */
START_TEST(a_file_is_no_part_of_the_mail)
{
    static const char *const types[] = {
        "application/pdf", "message/rfc822", "Multipart/mixed",
        "Message/delivery-status"
    };
    crmd_file_t file = {"a.eml", types[_i], "Subject: x\n\nx", 13};
    crmd_message_t message = simple;
    GMimeObject *part;
    GMimeMessage *mime;
    crmd_mail_t mail;

    message.files = &file;
    message.file_count = 1;
    mail = make(&message);
    mime = parse(&mail);
    part = g_mime_multipart_get_part(GMIME_MULTIPART(
        g_mime_message_get_mime_part(mime)), 1);
    ck_assert_msg(GMIME_IS_PART(part), "%s", types[_i]);
    ck_assert_str_eq(g_mime_part_get_filename(GMIME_PART(part)), "a.eml");
    ck_assert_str_eq(g_mime_object_get_disposition(part), "attachment");
    ck_assert_int_eq(g_mime_content_type_is_type(
        g_mime_object_get_content_type(part), "application",
        _i ? "octet-stream" : "pdf"), 1);
}
END_TEST

START_TEST(our_own_mails_are_from_the_configuration)
{
    crmd_message_t message = simple;
    crmd_config_t bare = config;
    crmd_mail_t mail;
    GMimeMessage *mime;

    message.from = message.to_name = NULL;
    message.automatic = 1;
    mail = make(&message);
    mime = parse(&mail);
    is_proper(&mail);
    is_mailbox(g_mime_message_get_from(mime), "The CRM", "crm@example.com");
    is_mailbox(g_mime_message_get_to(mime), "", "ada@example.org");
    ck_assert_str_eq(header(mime, "Auto-Submitted"), "auto-generated");
    bare.mail_from = bare.mail_from_name = "";
    mail = make_with(&message, &bare, 0);
    ck_assert_str_eq(mail.from, "crmapi@crm.example.com");
}
END_TEST

#define LONG_WORD "https://crm.example.com/a/path/that/no/blank/is/in"

static const char *const texts[] = {
    "plain", "Zoë € 5", "😀", "a, b; c <d@e>",
    "\"quoted\" \\ back", "=?utf-8?q?a=0D=0ABcc:_x?=", "a=?b", "(comment)", "a:b;",
    "The Society for the Promotion of Long Names and of Those Who Bear Them, Ltd.",
    "Ann, Bob, Carl, Dora, Emil, Fay, Gus, Hal, Ida, Jan, Kim, Lea, Max, Nan, Olaf",
    "trailing=", "  ä", "O'Brien", "a@b.c",
    "你好世界",
    "a very long name that goes on and on and on, beyond what one line may "
    "hold, with äöü in it and then some more words until "
    "it has to be folded twice at least and is read as one all the same",
    "-Константин Константинопольский, ваш заказ готов",
    LONG_WORD LONG_WORD LONG_WORD, LONG_WORD "ä" LONG_WORD "=_?ä x"
};

/* TEXT as a reader shows it: white space at the ends is nobody's. */
static const char *shown(const char *text)
{
    return text + strspn(text, " ");
}

START_TEST(names_and_subjects_come_back)
{
    crmd_message_t message = simple;
    crmd_mail_t mail;
    GMimeMessage *mime;

    message.from_name = message.to_name = message.subject = texts[_i];
    mail = make_with(&message, &config, _i & 1);
    is_proper(&mail);
    mime = parse(&mail);
    ck_assert_str_eq(g_mime_message_get_subject(mime),
                     shown(texts[_i]));
    is_mailbox(g_mime_message_get_from(mime), shown(texts[_i]),
               "eve@example.com");
    is_mailbox(g_mime_message_get_to(mime), shown(texts[_i]),
               "ada@example.org");
}
END_TEST

static const char *const attacks[] = {
    "a\r\nBcc: eve@x.org", "a\nBcc: eve@x.org", "a\rBcc: eve@x.org",
    "a\r\n\r\nbody", "\r\n.\r\nMAIL FROM:<x>", "\n", "\r", "\x01\x02\x1b[2J",
    "x\" <eve@x.org>, \"y", "a>\r\n <b", "\xff\xfe\n\xc3", "\x7f",
    "ä\r\nBcc: ä"
};

/* No header but ours, one recipient, and the body begins where it should. */
START_TEST(nothing_can_be_injected)
{
    crmd_message_t message = simple;
    crmd_mail_t mail;
    GMimeMessage *mime;

    message.from_name = message.to_name = message.subject = attacks[_i];
    mail = make_with(&message, &config, _i & 1);
    is_proper(&mail);
    mime = parse(&mail);
    ck_assert_int_eq(internet_address_list_length(
                         g_mime_message_get_to(mime)), 1);
    ck_assert_int_eq(internet_address_list_length(
                         g_mime_message_get_from(mime)), 1);
    ck_assert_str_eq(part_of(mime, 0), simple.text);
}
END_TEST

START_TEST(what_would_break_the_mail_is_refused)
{
    static const char *const links[] = {
        "https://x/\r\nBcc: eve@x.org", "https://x/>", "https://x/ y", "",
        "https://x/ä"
    };
    crmd_message_t message = simple;
    crmd_mail_t mail;
    char address[256];

    for (size_t i = 0; i < CRM_NELTS(attacks); i++) {
        message.to = attacks[i];
        ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                             crm_check_pool()));
        message = simple;
        message.from = attacks[i];
        ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                             crm_check_pool()));
        message = simple;
        message.id = attacks[i];
        ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                             crm_check_pool()));
    }
    message = simple;
    memset(address, 'a', sizeof(address));
    memcpy(address + 250, "@x.y", 5);
    message.to = address;       /* 254 bytes are the most (RFC 5321, 4.5.3.1.3) */
    ck_assert_ptr_null(crmd_mail_make(&mail, &message, &config, 0,
                                      crm_check_pool()));
    memcpy(address + 250, "a@x.y", 6);
    ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                         crm_check_pool()));
    message = simple;
    for (size_t i = 0; i < CRM_NELTS(links); i++) {
        message.unsubscribe = links[i];
        ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                             crm_check_pool()));
    }
}
END_TEST

START_TEST(a_foreign_domain_is_put_into_ascii)
{
    crmd_message_t message = simple;
    crmd_mail_t mail;

    message.to = "ada@bücher.example";
    mail = make(&message);
    is_proper(&mail);
    ck_assert_str_eq(mail.to, "ada@xn--bcher-kva.example");
}
END_TEST

/* They need SMTPUTF8, and so does the header (RFC 6532). */
START_TEST(a_recipient_beyond_ascii_is_written_as_it_is)
{
    static const char *const none[] = {
        "a\xc2\x85@x.org", "a\xe2\x80\xae@x.org", "\xff@x.org", "\xc3@x.org"
    };
    crmd_message_t message = simple;
    crmd_mail_t mail;

    message.to = "äda@bücher.example";
    mail = make(&message);
    ck_assert_str_eq(mail.to, "äda@xn--bcher-kva.example");
    ck_assert_ptr_nonnull(strstr(mail.text, "<äda@xn--bcher-kva.example>\n"));
    for (size_t i = 0; i < CRM_NELTS(none); i++) {
        message.to = none[i];
        ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                             crm_check_pool()));
    }
    message.to = simple.to;
    message.from = "äda@example.org";
    ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                         crm_check_pool()));
}
END_TEST

/* Such addresses are no dot-atoms (RFC 5322, 3.2.3), but there are some. */
START_TEST(misplaced_dots_are_quoted)
{
    static const char *const copies[] = {".b@docomo.ne.jp", NULL};
    static const char *const addresses[][2] = {
        {"a..b@docomo.ne.jp", "\"a..b\"@docomo.ne.jp"},
        {"a.@docomo.ne.jp", "\"a.\"@docomo.ne.jp"},
        {"a.b@docomo.ne.jp", "a.b@docomo.ne.jp"}
    };
    crmd_message_t message = simple;

    for (size_t i = 0; i < CRM_NELTS(addresses); i++) {
        crmd_mail_t mail;

        message.to = addresses[i][0];
        message.copies = copies;
        mail = make(&message);
        ck_assert_str_eq(mail.to, addresses[i][1]);
        ck_assert_str_eq(mail.copies[0], "\".b\"@docomo.ne.jp");
        ck_assert_ptr_nonnull(strstr(mail.text, addresses[i][1]));
        ck_assert_ptr_nonnull(strstr(mail.text, "Cc: \".b\"@docomo"));
    }
}
END_TEST

/* Bodies come back byte by byte, whatever encoding was chosen. */
START_TEST(bodies_come_back)
{
    static const char *const bodies[] = {
        "", "\n", "one line", "ends\n", "  spaces  \n\ttabs\t\n \n",
        ".\n..\n.x\nFrom me\n", "a=b=3D\n=\n", "😀\n",
        "Привет\n\nx\n",
        "Grüß aus der Stadt, und mehr davon\n", "\n\n\na"
    };
    crmd_message_t message = simple;

    for (size_t i = 0; i < CRM_NELTS(bodies); i++) {
        message.text = bodies[i];
        for (int crlf = 0; crlf < 2; crlf++) {
            crmd_mail_t mail = make_with(&message, &config, crlf);
            GMimeMessage *mime = parse(&mail);

            is_proper(&mail);
            ck_assert_str_eq(part_of(mime, 0), bodies[i]);
            for (const char *c = mail.text; *c; c++) {
                ck_assert(*c != '\n' || (c[-1] == '\r') == crlf);
                ck_assert(*c != '\r' || c[1] == '\n');
            }
        }
    }
    /* text in base64 has CR LF (RFC 2045, 6.8) */
    message.text = "Привет\n\nx\n";
    ck_assert_ptr_nonnull(strstr(make(&message).text,
                                 "\n0J/RgNC40LLQtdGCDQoNCngNCg==\n"));
}
END_TEST

START_TEST(a_long_line_is_folded)
{
    crmd_message_t message = simple;
    char *text = apr_palloc(crm_check_pool(), 100001);
    crmd_mail_t mail;
    GMimeMessage *mime;

    memset(text, 'x', 100000);
    text[100000] = '\0';
    message.text = text;
    message.subject = message.to_name = text;
    mail = make(&message);
    is_proper(&mail);
    mime = parse(&mail);
    ck_assert_str_eq(part_of(mime, 0), text);
}
END_TEST

START_TEST(a_mail_that_can_be_unsubscribed)
{
    crmd_message_t message = simple;
    crmd_mail_t mail;
    GMimeMessage *mime;

    message.unsubscribe = apr_pstrcat(
        crm_check_pool(), "https://crm.example.com/crmapi/unsubscribe?a=1&t=",
        "0123456789012345678901234567890123456789012345678901234567890123456",
        "0123456789012345678901234567890123456789012345678901234567890123456",
        NULL);
    mail = make_with(&message, &config, 1);
    is_proper(&mail);
    /* On one line: not every reader unfolds a URL. */
    ck_assert_ptr_nonnull(strstr(mail.text, apr_pstrcat(
        crm_check_pool(), "\r\nList-Unsubscribe: <", message.unsubscribe,
        ">\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n", NULL)));
    mime = parse(&mail);
    ck_assert_ptr_nonnull(strstr(part_of(mime, 0), message.unsubscribe));
    ck_assert_ptr_nonnull(strstr(part_of(mime, 1), "?a=1&amp;t=0123"));
    message.html = "<html><body><p>x</p></BODY></html>";
    mail = make(&message);
    mime = parse(&mail);
    ck_assert_ptr_nonnull(strstr(part_of(mime, 1),
                                 ">Unsubscribe</a></p>\n</BODY></html>"));
    ck_assert(!strncmp(part_of(mime, 1), "<html><body><p>x</p>", 20));
}
END_TEST

START_TEST(other_channels_are_small_mails)
{
    crmd_message_t message = {
        .channel = SMS_CHANNEL, .id = ID, .to = "+491701234567",
        .text = "Hi 😀",
        .unsubscribe = "https://crm.example.com/u"
    };
    crmd_mail_t mail = make(&message);
    GMimeMessage *mime = parse(&mail);

    is_proper(&mail);
    ck_assert_str_eq(header(mime, "X-Crmapi-Channel"), "sms");
    ck_assert_str_eq(header(mime, "To"), "+491701234567");
    ck_assert_str_eq(header(mime, "From"), "+4930123456");
    ck_assert_str_eq(part_of(mime, 0), message.text);
    ck_assert_ptr_null(header(mime, "List-Unsubscribe"));
    ck_assert_ptr_null(header(mime, "List-Unsubscribe-Post"));
    message.channel = VOICE_CHANNEL;
    message.objective = "Ask\nfor a date";
    mail = make(&message);
    mime = parse(&mail);
    is_proper(&mail);
    ck_assert_str_eq(header(mime, "X-Crmapi-Channel"), "voice");
    ck_assert_str_eq(header(mime, "From"), "crmapi");
    ck_assert_str_eq(g_mime_message_get_subject(mime), "Ask for a date");
    message.to = "+1,2";
    ck_assert_ptr_nonnull(crmd_mail_make(&mail, &message, &config, 0,
                                         crm_check_pool()));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mime");
    TCase *mails = tcase_create("mails"), *names = tcase_create("names");

    g_mime_init();
    tcase_add_test(mails, a_mail_has_what_it_needs);
    tcase_add_test(mails, a_further_mail_is_in_the_thread);
    tcase_add_test(mails, copies_are_in_the_header);
    tcase_add_test(mails, a_whole_subject_stays);
    tcase_add_loop_test(mails, a_file_is_no_part_of_the_mail, 0, 4);
    tcase_add_test(mails, our_own_mails_are_from_the_configuration);
    tcase_add_test(mails, bodies_come_back);
    tcase_add_test(mails, a_long_line_is_folded);
    tcase_add_test(mails, a_mail_that_can_be_unsubscribed);
    tcase_add_test(mails, other_channels_are_small_mails);
    tcase_add_loop_test(names, names_and_subjects_come_back, 0,
                        COUNT(texts));
    tcase_add_loop_test(names, nothing_can_be_injected, 0,
                        COUNT(attacks));
    tcase_add_test(names, what_would_break_the_mail_is_refused);
    tcase_add_test(names, a_foreign_domain_is_put_into_ascii);
    tcase_add_test(names, a_recipient_beyond_ascii_is_written_as_it_is);
    tcase_add_test(names, misplaced_dots_are_quoted);
    suite_add_tcase(suite, mails);
    suite_add_tcase(suite, names);
    return crm_check_main(suite);
}
