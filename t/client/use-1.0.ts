// SPDX-License-Identifier: Apache-2.0
// use-1.0.ts: a program by openapi-fetch that uses every operation of version
// 1.0, without a cast. CRMAPI_URL, CRMAPI_KEY and CRMAPI_TEMPLATE say where.
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./api.js";

type Contact = components["schemas"]["Contact"];
type List = paths["/api/v1/contacts"]["get"]["responses"]["200"]["content"][
    "application/json"];
type Body<Name extends keyof webhooks> =
    webhooks[Name]["post"]["requestBody"]["content"]["application/json"];

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths>({
    baseUrl: setting("CRMAPI_URL"),
    headers: { Authorization: `Bearer ${setting("CRMAPI_KEY")}` },
});

function setting(name: string): string {
    const value = process.env[name];

    if (value === undefined) {
        throw new Error(`${name} is not set`);
    }
    return value;
}

function check(holds: boolean, what: string): asserts holds {
    if (!holds) {
        throw new Error(`it does not hold: ${what}`);
    }
}

// The answer of RESULT, which must be a success.
function need<Data>(result: {
    data?: Data; error?: unknown; response: Response;
}): Data {
    if (result.data === undefined) {
        throw new Error(`${result.response.url}: ${result.response.status}: `
            + JSON.stringify(result.error));
    }
    return result.data;
}

function first<Item>(list: { data: Item[] }): Item {
    const [item] = list.data;

    check(item !== undefined, "the list has an item");
    return item;
}

// The entity tag of RESPONSE, for If-Match.
function tag(response: Response): string {
    const value = response.headers.get("ETag");

    check(value !== null, "there is an ETag");
    return value;
}

const byId = (id: string) => ({ params: { path: { id } } });

async function document() {
    const { openapi } = need(await client.GET("/api/v1/openapi.json"));

    check(openapi === "3.1.0", "the document is of OpenAPI 3.1");
}

async function workspace(): Promise<void> {
    const { data } = need(await client.GET("/api/v1/workspace"));

    check(data.key.scopes.includes("write"), "the key writes");
    check((data.limits.read ?? 1) > 0, `${data.name} may be read`);
}

async function agents(): Promise<string> {
    const list = need(await client.GET("/api/v1/agents", {
        params: { query: { is_agent: true, agent_type: "external" } },
    }));

    check("total" in list.pagination && list.pagination.total > 0,
        "pages have a total");
    const { id } = first(list);
    const { data: agent } = need(await client.GET("/api/v1/agents/{id}",
        byId(id)));
    check(agent.enabled, `${agent.name ?? "the agent"} is enabled`);
    return id;
}

async function companies(bot_id: string): Promise<string> {
    const { data: company } = need(await client.POST("/api/v1/companies", {
        params: { header: { "Idempotency-Key": crypto.randomUUID() } },
        body: { bot_id, name: "Analytical Engines", domain: "ae.example" },
    }));
    const one = byId(company.id);
    const read = await client.GET("/api/v1/companies/{id}", one);
    const { data: changed } = need(await client.PATCH(
        "/api/v1/companies/{id}", {
            params: {
                ...one.params, header: { "If-Match": tag(read.response) },
            },
            body: { employee_count: 12.5, tags: ["new"], website: null },
        }));
    check(changed.employee_count === 12.5, "it is changed");
    const list = need(await client.GET("/api/v1/companies", {
        params: { query: { ids: company.id, sort: "updated_at" } },
    }));
    check(first(list).id === company.id, "the list has it");
    return company.id;
}

async function contacts(bot_id: string, company_id: string): Promise<Contact> {
    const { data: contact } = need(await client.POST("/api/v1/contacts", {
        body: {
            bot_id, company_id, first_name: "Ada",
            emails: ["ada@ae.example", { email: "al@ae.example" }],
            custom_fields: { size: { eu: 38 } },
        },
    }));
    const one = byId(contact.id);
    const read = await client.GET("/api/v1/contacts/{id}", one);
    const again = await client.GET("/api/v1/contacts/{id}", {
        params: {
            ...one.params, header: { "If-None-Match": tag(read.response) },
        },
    });
    check(again.response.status === 304, "If-None-Match");
    const found = need(await client.GET("/api/v1/contacts/by-email", {
        params: { query: { email: "ADA@ae.example" } },
    }));
    check(found.data.emails[0]?.is_primary === true, "the first is primary");
    const { data: changed } = need(await client.PATCH("/api/v1/contacts/{id}",
        { ...one, body: { job_title: "Analyst", deal_value: null } }));
    check(changed.job_title === "Analyst", "it is changed");
    return changed;
}

// All contacts, page by page.
async function walk(): Promise<number> {
    let cursor: string | null = "*";
    let count = 0;

    while (cursor !== null) {
        const page: List = need(await client.GET("/api/v1/contacts",
            { params: { query: { cursor, page_size: 2 } } }));
        check("next_cursor" in page.pagination, "it is a page by cursor");
        count += page.data.length;
        cursor = page.pagination.next_cursor;
    }
    return count;
}

async function upsertCompanies(bot_id: string): Promise<void> {
    const { data } = need(await client.POST("/api/v1/companies/upsert", {
        body: {
            bot_id, on_match: { tags: "union", custom_fields: "merge" },
            companies: [
                { external_id: "erp-1", name: "Difference Engines" },
                { external_id: "erp-1", tags: ["key"] },
            ],
        },
    }));

    check(data.created[0]?.external_id === "erp-1", "one is created");
    check(data.updated[0]?.tags[0] === "key", "and updated");
    const found = need(await client.GET("/api/v1/companies", {
        params: { query: { external_id: "erp-1" } },
    }));
    check(found.data.length === 1, "it is found");
}

async function merge(bot_id: string): Promise<void> {
    const made = async () => need(await client.POST("/api/v1/contacts",
        { body: { bot_id } })).data.id;
    const [id, from] = [await made(), await made()];
    const { data } = need(await client.POST("/api/v1/contacts/{id}/merge",
        { ...byId(id), body: { from } }));
    check(data.id === id, "a contact is merged into another one");
    const { error, response } = await client.GET("/api/v1/contacts/{id}",
        byId(from));
    check(response.status === 410 && error?.error.code === "gone",
        "its id is gone");
}

async function erase(bot_id: string): Promise<void> {
    const { data } = need(await client.POST("/api/v1/contacts",
        { body: { bot_id } }));
    const path = byId(data.id);
    const erased = need(await client.POST("/api/v1/contacts/{id}/erase", path));
    check(erased.data.id === data.id && erased.data.status === "erased",
        "a person is erased");
    const { response } = await client.GET("/api/v1/contacts/{id}", path);
    check(response.status === 404, "nothing is left");
}

async function upsert(bot_id: string): Promise<void> {
    const { data } = need(await client.POST("/api/v1/contacts/upsert", {
        body: {
            bot_id, contacts: [
                { emails: ["ada@ae.example"], last_name: "Lovelace" },
                { phone_numbers: ["+49301234567"], tags: ["trial"] },
                { company_id: crypto.randomUUID() },
            ],
        },
    }));

    check(data.updated[0]?.last_name === "Lovelace", "one is updated");
    check(data.created[0]?.tags[0] === "trial", "one is created");
    check(data.errors[0]?.index === 2
        && data.errors[0].details[0]?.field === "contacts[2].company_id",
        "one is refused");
}

async function pipelines(contact_id: string): Promise<void> {
    const pipeline = first(need(await client.GET("/api/v1/pipelines")));
    const stages = need(await client.GET("/api/v1/pipelines/{id}/stages",
        byId(pipeline.id)));
    const pipeline_stage_id = first(stages).id;
    const { data: card } = need(await client.POST("/api/v1/pipeline-cards", {
        body: { pipeline_stage_id, contact_id, title: "An engine" },
    }));
    const one = byId(card.id);
    const read = await client.GET("/api/v1/pipeline-cards/{id}", one);
    const list = need(await client.GET("/api/v1/pipeline-cards", {
        params: { query: { contact_id, sort: "position" } },
    }));

    check(first(list).title === need(read).data.title, "the list has it");
    const { data: moved } = need(await client.PATCH(
        "/api/v1/pipeline-cards/{id}",
        { ...one, body: { archived_at: "2026-01-02T00:00:00Z" } }));
    check(moved.archived_at === "2026-01-02T00:00:00.000Z", "it is archived");
    const late = await client.DELETE("/api/v1/pipeline-cards/{id}", {
        params: { ...one.params, header: { "If-Match": tag(read.response) } },
    });
    check(late.error?.error.code === "precondition_failed", "If-Match");
    const gone = await client.DELETE("/api/v1/pipeline-cards/{id}", one);
    check(gone.response.status === 204, "it is deleted");
}

async function activities(contact_id: string, company_id: string) {
    const { data: made } = need(await client.POST("/api/v1/activities", {
        body: { contact_id, activity_type: "call", duration_minutes: 4 },
    }));
    const { data: done } = need(await client.PATCH("/api/v1/activities/{id}", {
        ...byId(made.id), body: { completed_at: "2026-01-01T00:00:00Z" },
    }));
    const { data: shown } = need(await client.GET("/api/v1/activities/{id}",
        byId(made.id)));
    check(shown.updated_at === done.updated_at, "it was changed");
    const list = need(await client.GET("/api/v1/contacts/{id}/activities", {
        params: { path: { id: contact_id }, query: { activity_type: "call" } },
    }));
    check(first(list).duration_minutes === 4, "the list has it");
    const tasks = need(await client.GET("/api/v1/activities", { params: {
        query: { contact_id, completed: true, sort: "due_date" } },
    }));
    check(first(tasks).id === made.id, "so has that of the workspace");
    const none = need(await client.GET("/api/v1/companies/{id}/activities",
        byId(company_id)));
    check(none.data.length === 0, "the company's is empty");
    const gone = await client.DELETE("/api/v1/activities/{id}", byId(made.id));
    check(gone.response.status === 204, "it is deleted");
    const refused = await client.POST("/api/v1/activities", {
        body: { contact_id: crypto.randomUUID(), activity_type: "task" },
    });
    check(refused.response.status === 422 && refused.error !== undefined
        && refused.error.error.details?.[0]?.field === "contact_id",
        "an error names the field");
}

async function conversations(): Promise<void> {
    const list = need(await client.GET("/api/v1/conversations", {
        params: { query: { type: "email", sort: "last_message_at" } },
    }));
    const { id, contact_id } = first(list);

    check(contact_id !== null, "it has a contact");
    need(await client.GET("/api/v1/contacts/{id}/conversations",
        byId(contact_id)));
    const { data: read } = need(await client.GET("/api/v1/conversations/{id}",
        byId(id)));
    check(read.type === 4, "the code of e-mail is 4");
    const messages = need(await client.GET(
        "/api/v1/conversations/{id}/messages", byId(id)));
    check(first(messages).metadata !== undefined, "metadata");
    const all = need(await client.GET("/api/v1/messages",
        { params: { query: { conversation_id: id, order: "desc" } } }));
    check(first(all).conversation_id === id, "the list of all has it");
    await mail(id, first(messages).id);
    const { data: answer } = need(await client.POST(
        "/api/v1/conversations/{id}/messages",
        { ...byId(id), body: { content: "Yes.", cc: ["c@x.example"] } }));
    check(answer.role === "human" && answer.status === "queued", "it waits");
    need(await client.PATCH("/api/v1/conversations/{id}",
        { ...byId(id), body: { assigned_to: "ada", archived: true } }));
    const gone = await client.DELETE("/api/v1/conversations/{id}", byId(id));
    check(gone.response.status === 204, "it is deleted");
}

// The message MESSAGE_ID of the conversation ID is a mail.
async function mail(id: string, message_id: string): Promise<void> {
    const path = { id, message_id };
    const { data } = need(await client.GET(
        "/api/v1/conversations/{id}/messages/{message_id}",
        { params: { path, query: { include: "html" } } }));
    const files = data.metadata["attachments"];

    check(data.html?.includes("Hello") === true, "its HTML on request");
    check(Array.isArray(files), "it has attachments");
    const original = await client.GET(
        "/api/v1/conversations/{id}/messages/{message_id}/original",
        { params: { path }, parseAs: "text" });
    check(original.data === "Subject: Hello", "the mail, unchanged");
    const file = await client.GET("/api/v1/attachments/{id}", {
        ...byId(Array.isArray(files) ? files[0].id : ""), parseAs: "text" });
    check(file.data === "bytes", "an attachment");
}

async function forms(): Promise<void> {
    const { id } = first(need(await client.GET("/api/v1/forms")));

    need(await client.GET("/api/v1/forms/{id}", byId(id)));
    const list = need(await client.GET("/api/v1/forms/{id}/submissions",
        byId(id)));
    const { data } = need(await client.GET("/api/v1/submissions/{id}",
        byId(first(list).id)));
    check(data.custom_field_responses["size"] === "M", "the answers are there");
    const all = need(await client.GET("/api/v1/submissions",
        { params: { query: { form_id: id } } }));
    check(first(all).id === data.id, "the list of all has it");
}

// Start a sequence for EMAIL and wait until it is to be approved.
async function start(email: string): Promise<string> {
    const { data } = need(await client.POST("/api/v1/sequences/start", {
        body: {
            template_id: setting("CRMAPI_TEMPLATE"),
            contact: { emails: [email] },
        },
    }));
    const path = { params: { path: { id: data.enrollment_id } } };
    const url = "/api/v1/sequences/enrollments/{id}";

    for (let tries = 0; tries < 300; tries++) {
        const { data: enrollment } = need(await client.GET(url, path));
        if (enrollment.status !== "generating") {
            check(enrollment.status === "pending_approval", enrollment.status);
            check(enrollment.steps[0]?.channel === "email", "it has a step");
            return enrollment.id;
        }
        await new Promise(resolve => setTimeout(resolve, 100));
    }
    throw new Error("the sequence was not generated");
}

async function sequences(): Promise<void> {
    const [one, other] = await Promise.all([start("a@s.example"),
        start("b@s.example")]);
    const { data: approved } = need(await client.POST(
        "/api/v1/sequences/enrollments/{id}/approve", byId(one)));
    const { data: stopped } = need(await client.POST(
        "/api/v1/sequences/enrollments/{id}/stop", byId(other)));

    check(approved.approved_at !== null, "one is approved");
    check(stopped.status === "stopped_user", "the other is stopped");
    const template_id = first(need(await client.GET(
        "/api/v1/sequences/templates"))).id;
    const { data: template } = need(await client.GET(
        "/api/v1/sequences/templates/{id}", byId(template_id)));
    check(template.allowed_channels[0] === "email", "the template is shown");
    const list = need(await client.GET("/api/v1/sequences/enrollments",
        { params: { query: { template_id, status: "stopped_user" } } }));
    check(first(list).id === other, "the list has it");
    const { data: suppressed } = need(await client.POST("/api/v1/suppressions",
        { body: { email: "never@s.example" } }));
    const all = need(await client.GET("/api/v1/suppressions"));
    check(first(all).id === suppressed.id, "an address is suppressed");
    need(await client.GET("/api/v1/suppressions/{id}", byId(suppressed.id)));
    const lifted = await client.DELETE("/api/v1/suppressions/{id}",
        byId(suppressed.id));
    check(lifted.response.status === 204, "and lifted");
}

// What has happened to CONTACT so far.
async function events(contact: string): Promise<void> {
    const types: string[] = [];
    const titles: (string | null)[] = [];
    let cursor = "*";

    for (;;) {
        const { data, pagination } = need(await client.GET("/api/v1/events",
            { params: { query: { cursor, page_size: 5 } } }));
        types.push(...data.filter(event => event.data.id === contact)
            .map(event => event.type));
        for (const event of data) {
            if (event.type === "contact.updated" && event.data.id === contact) {
                titles.push(event.data.job_title);
            }
        }
        if (!pagination.has_more || pagination.next_cursor === null) {
            break;
        }
        cursor = pagination.next_cursor;
    }
    check(titles.length > 0, "an event's type says what its data is");
    check(types[0] === "contact.created", "the log has its beginning");
    check(types.includes("contact.updated"), "and its changes");
}

// What a receiver of webhooks does.
function received(event: Body<"contact.created"> | Body<"form.submitted">) {
    switch (event.type) {
    case "contact.created":
        return event.data.first_name;
    case "form.submitted":
        return event.data.form_id;
    }
}

async function remove(contact: Contact, company_id: string): Promise<void> {
    const gone = await client.DELETE("/api/v1/contacts/{id}",
        byId(contact.id));

    check(gone.response.status === 204, "the contact is deleted");
    const company = await client.DELETE("/api/v1/companies/{id}",
        byId(company_id));
    check(company.response.ok, "the company is deleted");
}

await document();
await workspace();
const bot_id = await agents();
const company_id = await companies(bot_id);
const contact = await contacts(bot_id, company_id);
await upsert(bot_id);
await merge(bot_id);
await erase(bot_id);
await upsertCompanies(bot_id);
check(await walk() >= 2, "a walk sees all contacts");
await pipelines(contact.id);
await activities(contact.id, company_id);
await conversations();
await forms();
await sequences();
check(received({ type: "contact.created", timestamp: contact.created_at,
    data: contact }) === "Ada", "an event shows the contact");
await events(contact.id);
await remove(contact, company_id);
console.log("all is well");
