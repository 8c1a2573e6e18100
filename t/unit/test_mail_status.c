/* SPDX-License-Identifier: Apache-2.0 */
/* test_mail_status.c: what a failure says of the address (contract 17.5) */
#include "crm_mail_status.h"
#include "crm_mail_test.h"

/* Explanations, and what they mean (contract 17.5). */
static const struct {
    const char *text, *status;
    crm_mail_failure_t failure;
} explained[] = {
    {"550 5.1.1 no", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"(#5.1.2)", "5.1.2", CRM_MAIL_NO_ADDRESS},
    {"[5.1.3]", "5.1.3", CRM_MAIL_NO_ADDRESS},
    {"said: 550-5.1.6", "5.1.6", CRM_MAIL_NO_ADDRESS},
    {"'550 5.1.10 RESOLVER.ADR.RecipientNotFound'", "5.1.10",
     CRM_MAIL_NO_ADDRESS},
    {"550 5.2.1 disabled", "5.2.1", CRM_MAIL_NO_ADDRESS},
    {"550 5.1.8 user unknown", "5.1.8", CRM_MAIL_FAILED},
    {"552 mailbox ada is over quota (#5.1.1)", "5.1.1", CRM_MAIL_FAILED},
    {"550-5.2.1 The user you are trying to contact is receiving\n550-5.2.1 mail"
     " too quickly", "5.2.1", CRM_MAIL_FAILED},
    {"550-5.2.1 The user is receiving mail at a rate that prevents", "5.2.1",
     CRM_MAIL_FAILED},
    /* of the sender's host, or what the person wants: the address is there */
    {"550 5.1.1 <ada@example.org> - 192.0.2.1 has sent to too many recipients this"
     " hour", "5.1.1", CRM_MAIL_FAILED},
    {"553 5.1.3 http://www.spamhaus.org/query/bl?ip=192.0.2.1", "5.1.3",
     CRM_MAIL_FAILED},
    {"550 5.1.1 Refused due to recipient preferences", "5.1.1", CRM_MAIL_FAILED},
    {"550 5.2.1 account disabled temporarly for exceeding receiving limits",
     "5.2.1", CRM_MAIL_FAILED},
    {"550 account is temporarily disabled", "5.0.0", CRM_MAIL_FAILED},
    {"550 account disabled temporarily", "5.0.0", CRM_MAIL_FAILED},
    {"550 5.1.11", "5.1.11", CRM_MAIL_FAILED},
    /* what another server said, within what says nothing */
    {"5.1.0 - Unknown address error 550-'5.1.1 Mailbox <ada@example.org> does"
     " not exist' (delivery attempts: 0)", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"5.1.0 - Unknown address error 550-'5.7.1 blocked'", "5.7.1",
     CRM_MAIL_FAILED},
    {"554 5.0.0 Service unavailable: 550 5.1.1", "5.1.1",
     CRM_MAIL_NO_ADDRESS},
    {"5.1.0 - Unknown address error 550-'No such user' (delivery attempts: 0)",
     "5.1.0", CRM_MAIL_NO_ADDRESS},
    {"5.1.0 Address rejected", "5.1.0", CRM_MAIL_FAILED},
    {"5.1.0 Domain example.org does not accept mail (nullMX)", "5.1.0",
     CRM_MAIL_NO_ADDRESS},
    {"5.7.0 blocked, not 5.1.1", "5.7.0", CRM_MAIL_FAILED},
    {"5.1.1, not 5.1.0", "5.1.1", CRM_MAIL_NO_ADDRESS},
    /* no such domain, as 5.1.2 */
    {"550 Host unknown (Authoritative answer from name server)", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"ada@example.org ... unknown host", NULL, CRM_MAIL_NO_ADDRESS},
    {"<<< No such domain.", NULL, CRM_MAIL_NO_ADDRESS},
    {"ada@example.org: Domain does not exist", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Domain of sender address ada@example.org does not exist", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 Sender rejected: sender domain does not exist", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 Client host rejected: unknown host", "5.0.0", CRM_MAIL_FAILED},
    {"550 Helo command rejected: no such domain", "5.0.0", CRM_MAIL_FAILED},
    /* Notes */
    {"User ada (ada@example.org) not listed in public Name & Address Book",
     NULL, CRM_MAIL_NO_ADDRESS},
    {"ada (ada@example.org) は Domino ディレクトリには見つかりません", NULL, CRM_MAIL_NO_ADDRESS},
    {"ディレクトリのリストにありません", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* servers without a status, in their words */
    {"550 There is no one at this address", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 This email address is no longer valid", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Address not present in directory", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 is not an active address at this host", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The email address could not be found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox invalid", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox not present", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 No mail box available for this user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Recipient address rejected: invalid user", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 Recipient address rejected: userunknown", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 RCPT rejected: invalid-recipient", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Recipient not exist", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 the user's email name is not found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 sorry, this recipient is not in my validrcptto list", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 user not active", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 ada is a deactivated mailbox", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 is unavailable: user is terminated", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 vdeliver: invalid or unknown virtual user", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 does not exist at the organization", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 non-existent user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 the following destination addresses were unknown", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 nessun utente simile in questo indirizzo", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 no existe dicha persona", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 no existe ese usuario", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Sender rejected: invalid user", "5.0.0", CRM_MAIL_FAILED},
    {"550 mailbox currently suspended", "5.0.0", CRM_MAIL_FAILED},
    {"550 recipient rejected: temporarily inactive", "5.0.0", CRM_MAIL_FAILED},
    {"550 Recipient address rejected: access denied", "5.0.0", CRM_MAIL_FAILED},
    {"552 5.2.2 full", "5.2.2", CRM_MAIL_FAILED},
    {"550 5.3.2", "5.3.2", CRM_MAIL_FAILED},
    {"550 5.4.1 denied", "5.4.1", CRM_MAIL_FAILED},
    {"554 5.5.0", "5.5.0", CRM_MAIL_FAILED},
    {"550 5.7.1", "5.7.1", CRM_MAIL_FAILED},
    {"550-5.7.26 unauthenticated", "5.7.26", CRM_MAIL_FAILED},
    {"5.7.509", "5.7.509", CRM_MAIL_FAILED},
    {"450 4.2.1", "4.2.1", CRM_MAIL_NO_FAILURE},
    {"451 4.7.1, then 550 5.1.1", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"550 No such user here", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"554 5.0.0 Unknown\n user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    /* with the address within the words */
    {"550 User ada@example.org unknown", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox <ada@example.org> does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 user (ada@example.org) not found", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 ada@example.org", "5.0.0", CRM_MAIL_FAILED},
    {"550 No account by that name here", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The address you entered does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 account has been closed", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"553 user is inactive (mta)", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"ada@example.org [Inactive account]", NULL, CRM_MAIL_NO_ADDRESS},
    {"<ada@example.org>: This address no longer accepts mail.", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* blanks as underscores, a version with three numbers */
    {"550 BAD_RECIPIENT", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"(mxl_mta-5.5.0-3) 550 unknown user", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550-5.1.1-mailbox unknown", "5.1.1", CRM_MAIL_NO_ADDRESS},
    {"554 Rcpt <ada@example.org> does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 RCPT (<ada@example.org>) dosn't exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"550 This user does not have an account here", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"553 mailbox name not allowed", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 The email address you are trying to reach does not exist", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"this email address is wrong or no longer valid", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 the mailbox has been deleted", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Account unavailable", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 this mailbox is no longer in use", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Mailbox <ada@example.org> is not found", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    {"DNS type 'mx' lookup responded with code NXDOMAIN", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"all relevant MX records point to non-existent hosts", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"Domain name not found, try again", NULL, CRM_MAIL_NO_FAILURE},
    /* what Gmail and others ask the reader to do */
    {"It wasn't delivered to ada@example.org because the address couldn't be found."
     " Check for typos or unnecessary spaces and try again.", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 No such user. Please check the address and try again.", "5.0.0",
     CRM_MAIL_NO_ADDRESS},
    /* of Google Groups, which do not tell whether there is such a group */
    {"Il se peut que ce groupe n'existe pas ou que vous ne soyez pas autorisé à"
     " lui écrire.\n\nAide : https://groups.google.com/support/.", NULL,
     CRM_MAIL_NO_FAILURE},
    {"550 reverse DNS: domain name not found", "5.0.0", CRM_MAIL_FAILED},
    {"550 PTR record: NXDOMAIN", "5.0.0", CRM_MAIL_FAILED},
    /* that something does not exist, or is not found, in many languages */
    {"L'adresse de messagerie ci-dessus n'existe pas.", NULL,
     CRM_MAIL_NO_ADDRESS},
    {"550 L’utilisateur n’existe pas", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"550 Konto existiert nicht", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"La cuenta de correo no existe", NULL, CRM_MAIL_NO_ADDRESS},
    {"La casella di posta non esiste", NULL, CRM_MAIL_NO_ADDRESS},
    {"O endereço de e-mail não existe", NULL, CRM_MAIL_NO_ADDRESS},
    {"Het e-mailadres bestaat niet", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adres nie istnieje", NULL, CRM_MAIL_NO_ADDRESS},
    {"nieznany użytkownik", NULL, CRM_MAIL_NO_ADDRESS},
    {"Uživatel neexistuje", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen finns inte", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen findes ikke", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adressen finnes ikke", NULL, CRM_MAIL_NO_ADDRESS},
    {"Osoitetta ei löydy", NULL, CRM_MAIL_NO_ADDRESS},
    {"A cím nem létezik", NULL, CRM_MAIL_NO_ADDRESS},
    {"Adresa nu există", NULL, CRM_MAIL_NO_ADDRESS},
    {"Пользователь не существует", NULL, CRM_MAIL_NO_ADDRESS},
    {"Почтовый ящик не найден", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Нет такого пользователя", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"Користувача не існує", NULL, CRM_MAIL_NO_ADDRESS},
    {"Η διεύθυνση δεν υπάρχει", NULL, CRM_MAIL_NO_ADDRESS},
    {"Άγνωστος χρήστης", NULL, CRM_MAIL_NO_ADDRESS},
    {"Kullanıcı bulunamadı", NULL, CRM_MAIL_NO_ADDRESS},
    {"المستخدم غير موجود", NULL, CRM_MAIL_NO_ADDRESS},
    {"Người dùng không tồn tại", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 查無此人", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"使用者不存在", NULL, CRM_MAIL_NO_ADDRESS},
    {"宛先のメールアドレスは存在しません", NULL, CRM_MAIL_NO_ADDRESS},
    {"사용자를 찾을 수 없습니다", NULL, CRM_MAIL_NO_ADDRESS},
    {"550 Die Domain des Absenders existiert nicht", "5.0.0", CRM_MAIL_FAILED},
    {"550 le domaine de l'expéditeur n'existe pas", "5.0.0", CRM_MAIL_FAILED},
    {"550 sender <ada@example.org>: user unknown", "5.0.0", CRM_MAIL_FAILED},
    {"550 Requested action not taken: mailbox unavailable\n550 invalid DNS MX or"
     " A/AAAA resource record", "5.0.0", CRM_MAIL_FAILED},
    /* an apostrophe as typographers set it */
    {"550 User doesn’t exist", "5.0.0", CRM_MAIL_NO_ADDRESS},
    {"because the address couldn’t be found", NULL,
     CRM_MAIL_NO_ADDRESS},
    /* whatever is full, is there */
    {"550 invalid mailbox. Local mailbox ada@example.org is unavailable: account"
     " is full", "5.0.0", CRM_MAIL_FAILED},
    {"550 5.1.1 mailbox unavailable: the inbox is out of storage space",
     "5.1.1", CRM_MAIL_FAILED},
    {"550 mailbox unavailable (mailbox for user is full)", "5.0.0",
     CRM_MAIL_FAILED},
    {"550 unsolicited mail, unknown user", "5.0.0", CRM_MAIL_FAILED},
    {"550 relaying denied, unknown user", "5.0.0", CRM_MAIL_FAILED},
    {"550 spam", "5.0.0", CRM_MAIL_FAILED},
    {"450 user unknown in relay table", "4.0.0", CRM_MAIL_NO_FAILURE},
    {"User unknown", NULL, CRM_MAIL_NO_ADDRESS},
    {"with Exim 4.92.3, 192.5.1.1, 5.1.1.1, 15.5.1, 5.1.1b", NULL,
     CRM_MAIL_NO_FAILURE},
    {"with 4.9.1, 5.8.1, 5.1.1000", NULL, CRM_MAIL_NO_FAILURE},
    {"5.1.0 no (5.0.0)", "5.1.0", CRM_MAIL_FAILED},
    {"451 not now\n550 no", "5.0.0", CRM_MAIL_FAILED},
    {"550 no\n451 not now", "5.0.0", CRM_MAIL_FAILED},
    {"570 pages, item-550 of 460, #551 x550 550m 550", NULL, CRM_MAIL_NO_FAILURE},
    {"nothing", NULL, CRM_MAIL_NO_FAILURE},
    {"", NULL, CRM_MAIL_NO_FAILURE},
    {"5", NULL, CRM_MAIL_NO_FAILURE}, {"5.", NULL, CRM_MAIL_NO_FAILURE},
    {"550", NULL, CRM_MAIL_NO_FAILURE}, {"5.1.", NULL, CRM_MAIL_NO_FAILURE},
};

START_TEST(a_status_says_whether_it_speaks_of_the_address)
{
    const char *status;
    crm_mail_failure_t failure = crm_mail_status_read(
        &status, explained[_i].text, crm_check_pool());

    same(explained[_i].text, "status", status, explained[_i].status);
    ck_assert_msg(failure == explained[_i].failure, "%s: %d",
                  explained[_i].text, failure);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mail_status");
    TCase *failures = tcase_create("failures");

    tcase_add_loop_test(failures, a_status_says_whether_it_speaks_of_the_address,
                        0, CRM_NELTS(explained));
    suite_add_tcase(suite, failures);
    return crm_check_main(suite);
}
