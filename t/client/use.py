# SPDX-License-Identifier: Apache-2.0
"""use.py: a program by the client that openapi-generator makes of the document,
as docs/api.md says. It uses every operation. CRMAPI_URL, CRMAPI_KEY and
CRMAPI_TEMPLATE say where."""
import os
import time
import uuid

import crmapi

configuration = crmapi.Configuration(host=os.environ["CRMAPI_URL"])
configuration.access_token = os.environ["CRMAPI_KEY"]
client = crmapi.ApiClient(configuration)
agents = crmapi.AgentsApi(client)
companies = crmapi.CompaniesApi(client)
contacts = crmapi.ContactsApi(client)
activities = crmapi.ActivitiesApi(client)
conversations = crmapi.ConversationsApi(client)
forms = crmapi.FormsApi(client)
pipelines = crmapi.PipelinesApi(client)
sequences = crmapi.SequencesApi(client)


def check(holds, what):
    if not holds:
        raise SystemExit(f"it does not hold: {what}")


def refused(status, call, *args, **named):
    """What the server says when it refuses a CALL with STATUS."""
    try:
        call(*args, **named)
    except crmapi.ApiException as e:
        check(e.status == status, f"{e.status} is {status}: {e.body}")
        return e.body
    raise SystemExit(f"it was not refused: {call.__name__}")


def tag(answer):
    """The entity tag of an answer with its headers, for If-Match."""
    _, _, headers = answer
    return headers["ETag"]


def about():
    check(crmapi.MetaApi(client).get_openapi()["openapi"] == "3.1.0",
          "the document")
    workspace = crmapi.WorkspaceApi(client).get_workspace().data
    check("write" in workspace.key.scopes, "the key writes")
    check(workspace.limits.read > 0, "there is a limit")


def use_agents():
    page = agents.list_agents(is_agent=True, agent_type="external")
    check(page.pagination.total > 0, "pages have a total")
    agent = agents.get_agent(page.data[0].id).data
    check(agent.enabled is True, "the agent is enabled")
    return agent.id


def use_companies(bot_id):
    made = companies.create_company(crmapi.CompanyCreate(
        bot_id=bot_id, name="Analytical Engines", domain="py.example"),
        idempotency_key=str(uuid.uuid4())).data
    read = companies.get_company_with_http_info(made.id)
    changed = companies.update_company(made.id, {
        "employee_count": 12.5, "tags": ["new"], "website": None},
        if_match=tag(read)).data
    check(changed.employee_count == 12.5 and changed.website is None, "a PATCH")
    check("precondition_failed" in refused(
        412, companies.delete_company, made.id, if_match=tag(read)), "If-Match")
    page = companies.list_companies(ids=made.id, sort="updated_at")
    check(page.data[0].id == made.id, "the list has it")
    done = companies.upsert_companies(crmapi.CompanyUpsertInput(
        bot_id=bot_id, on_match={"tags": "union", "custom_fields": "merge"},
        companies=[crmapi.CompanyItem(external_id="py-1", name="Engines"),
                   {"external_id": "py-1", "tags": ["key"]}]),
        idempotency_key="upsert").data
    check(done.created[0].external_id == "py-1", "one is created")
    check(done.updated[0].tags == ["key"], "and updated")
    return made.id


def use_contacts(bot_id, company_id):
    made = contacts.create_contact(crmapi.ContactCreate(
        bot_id=bot_id, company_id=company_id, first_name="Ada",
        emails=["ada@py.example", crmapi.EmailInput(email="al@py.example")],
        custom_fields={"size": {"eu": 38}})).data
    check(made.emails[0].is_primary is True, "the first is primary")
    check(made.custom_fields == {"size": {"eu": 38}}, "its own fields")
    read = contacts.get_contact_with_http_info(made.id)
    refused(304, contacts.get_contact, made.id, if_none_match=tag(read))
    found = contacts.find_contact_by_email("ADA@py.example").data
    check(found.id == made.id, "found by its address")
    check(found.created_at == made.created_at
          and found.created_at.tzinfo is not None, "times are times")
    changed = contacts.update_contact(
        made.id, crmapi.ContactUpdate(job_title="Analyst")).data
    check(changed.job_title == "Analyst", "a PATCH")
    done = contacts.upsert_contacts(crmapi.UpsertInput(
        bot_id=bot_id, contacts=[
            crmapi.ContactItem(emails=["ada@py.example"], last_name="L"),
            crmapi.ContactItem(phone_numbers=["+49301234568"], tags=["t"]),
            crmapi.ContactItem(company_id=str(uuid.uuid4()))])).data
    check(done.updated[0].last_name == "L", "one is updated")
    check(done.created[0].tags == ["t"], "one is created")
    check(done.errors[0].details[0].field == "contacts[2].company_id",
          "one is refused")
    one, other, third = [contacts.create_contact(
        crmapi.ContactCreate(bot_id=bot_id)).data.id for _ in range(3)]
    check(contacts.merge_contact(one, crmapi.MergeInput(_from=other)).data.id
          == one, "a contact is merged into another one")
    check("gone" in refused(410, contacts.get_contact, other), "its id is gone")
    check(contacts.erase_contact(third).data.status == "erased", "is erased")
    refused(404, contacts.get_contact, third)
    return made.id


def walk():
    """The number of contacts, page by page."""
    cursor, count = "*", 0
    while cursor is not None:
        page = contacts.list_contacts(cursor=cursor, page_size=2)
        count += len(page.data)
        cursor = page.pagination.next_cursor
    return count


def use_pipelines(contact_id):
    stages = pipelines.list_pipeline_stages(
        pipelines.list_pipelines().data[0].id).data
    made = pipelines.create_pipeline_card(crmapi.PipelineCardCreate(
        pipeline_stage_id=stages[0].id, contact_id=contact_id,
        title="An engine")).data
    page = pipelines.list_pipeline_cards(contact_id=contact_id, sort="position")
    check(page.data[0].title == pipelines.get_pipeline_card(made.id).data.title,
          "the list has it")
    moved = pipelines.update_pipeline_card(made.id, crmapi.PipelineCardUpdate(
        archived_at="2026-01-02T00:00:00Z")).data
    check(moved.archived_at.year == 2026, "it is archived")
    check(pipelines.delete_pipeline_card(made.id) is None, "it is deleted")


def use_activities(contact_id, company_id):
    made = activities.create_activity(crmapi.ActivityCreate(
        contact_id=contact_id, activity_type="call", duration_minutes=4)).data
    done = activities.update_activity(made.id, crmapi.ActivityUpdate(
        completed_at="2026-01-01T00:00:00Z")).data
    check(activities.get_activity(made.id).data.updated_at == done.updated_at,
          "it was changed")
    page = activities.list_contact_activities(contact_id, activity_type="call")
    check(page.data[0].duration_minutes == 4, "the list has it")
    page = activities.list_activities(contact_id=contact_id, completed=True,
                                      sort="due_date")
    check(page.data[0].id == made.id, "so has that of the workspace")
    check(activities.list_company_activities(company_id).data == [], "no others")
    activities.delete_activity(made.id)
    check('"contact_id"' in refused(
        422, activities.create_activity, crmapi.ActivityCreate(
            contact_id=str(uuid.uuid4()), activity_type="task")),
        "an error names the field")


def use_conversations():
    page = conversations.list_conversations(type="email", sort="last_message_at")
    talk = conversations.get_conversation(page.data[0].id).data
    check(talk.type == 4, "the code of e-mail is 4")
    conversations.list_contact_conversations(talk.contact_id)
    message = conversations.list_messages(talk.id, include="metadata").data[0]
    check(message.metadata["subject"] == "Hello", "metadata on request")
    page = conversations.list_all_messages(conversation_id=talk.id, order="desc")
    check(page.data[0].conversation_id == talk.id, "the list of all has it")
    mail = conversations.get_message(talk.id, message.id,
                                     include="metadata,html").data
    check("Hello" in mail.html, "its HTML on request")
    original = conversations.get_original(talk.id, message.id,
                                          _preload_content=False)
    check(original.data == b"Subject: Hello", "the mail, unchanged")
    attachment = conversations.get_attachment(
        mail.metadata["attachments"][0]["id"], _preload_content=False)
    check(attachment.data == b"bytes", "an attachment")
    answer = conversations.create_message(talk.id, crmapi.MessageInput(
        content="Yes.", cc=["c@x.example"])).data
    check((answer.role, answer.status) == ("human", "queued"), "it waits")
    conversations.update_conversation(talk.id, crmapi.ConversationUpdate(
        assigned_to="ada", archived=True))
    conversations.delete_conversation(talk.id)


def use_forms():
    form = forms.get_form(forms.list_forms().data[0].id).data
    listed = forms.list_submissions(form.id).data[0]
    shown = forms.get_submission(listed.id).data
    check(shown.custom_field_responses["size"] == "M", "the answers are there")
    check(forms.list_all_submissions(form_id=form.id).data[0].id == shown.id,
          "the list of all has it")


def start(email):
    """Start a sequence for EMAIL and wait until it is to be approved."""
    started = sequences.start_sequence({
        "template_id": os.environ["CRMAPI_TEMPLATE"],
        "contact": {"emails": [email]}}).data
    for _ in range(600):
        enrollment = sequences.get_enrollment(started.enrollment_id).data
        if enrollment.status != "generating":
            check(enrollment.status == "pending_approval", enrollment.status)
            check(enrollment.steps[0].channel == "email", "it has a step")
            return enrollment.id
        time.sleep(0.1)
    raise SystemExit("the sequence was not generated")


def use_sequences():
    one, other = start("a@py.example"), start("b@py.example")
    check(sequences.approve_enrollment(one).data.approved_at is not None,
          "one is approved")
    check(sequences.stop_enrollment(other).data.status == "stopped_user",
          "the other is stopped")
    template = sequences.get_sequence_template(
        sequences.list_sequence_templates().data[0].id).data
    check(template.allowed_channels == ["email"], "the template is shown")
    page = sequences.list_enrollments(template_id=template.id,
                                      status="stopped_user")
    check(page.data[0].id == other, "the list has it")
    stop = sequences.add_suppression(
        crmapi.SuppressionInput(email="never@py.example")).data
    check(sequences.list_suppressions().data[0].id == stop.id, "suppressed")
    check(sequences.get_suppression(stop.id).data.email == "never@py.example",
          "an address")
    sequences.delete_suppression(stop.id, idempotency_key="lift")


def use_events(contact):
    """What has happened to CONTACT so far."""
    types, cursor = [], "*"
    while True:
        page = crmapi.EventsApi(client).list_events(cursor=cursor, page_size=5)
        types += [e.type for e in page.data if e.data["id"] == contact]
        if not page.pagination.has_more:
            break
        cursor = page.pagination.next_cursor
    check(types[0] == "contact.created", "the log has its beginning")
    check("contact.updated" in types, "and its changes")


about()
bot = use_agents()
company = use_companies(bot)
person = use_contacts(bot, company)
check(walk() >= 2, "a walk sees all contacts")
use_pipelines(person)
use_activities(person, company)
use_conversations()
use_forms()
use_sequences()
use_events(person)
contacts.delete_contact(person)
companies.delete_company(company)
print("all is well")
