// SPDX-License-Identifier: Apache-2.0
// server.js: the measured part of the API for Bun: Bun.serve in two processes
// that share the port, and Bun's own PostgreSQL client
import { SQL } from 'bun';

if (!process.env.BENCH_WORKER) {
    const workers = [1, 2].map(() => Bun.spawn([process.execPath,
        import.meta.path], { env: { ...process.env, BENCH_WORKER: '1' },
        stdio: ['ignore', 'inherit', 'inherit'] }));
    const end = () => {
        workers.forEach((worker) => worker.kill('SIGTERM'));
        process.exit(0);
    };
    process.on('SIGTERM', end);
    process.on('SIGINT', end);
    await Promise.race(workers.map((worker) => worker.exited));
    workers.forEach((worker) => worker.kill('SIGTERM'));
    process.exit(1);
}

const sql = new SQL({
    adapter: 'postgres', path: `${process.env.DATABASE_HOST}/.s.PGSQL.5432`,
    database: process.env.DATABASE_NAME, username: process.env.DATABASE_USER,
    max: 8, idleTimeout: 0,
});

// ---- columns ----------------------------------------------------------------
const amounts = new Set(['deal_value', 'sentiment_score', 'minutes']);
const inputTypes = {
    first_name: 'text', last_name: 'text', emails: 'jsonb',
    phone_numbers: 'jsonb', company: 'text', company_id: 'uuid',
    job_title: 'text', lead_source: 'text', tags: 'text[]',
    deal_value: 'numeric', pipeline_stage_id: 'uuid', contact_type: 'text',
    address_line1: 'text', address_line2: 'text', city: 'text', state: 'text',
    postal_code: 'text', country: 'text', linkedin_url: 'text', notes: 'text',
    custom_fields: 'jsonb', external_id: 'text',
};
const inputNames = Object.keys(inputTypes);
const columnsOf = (names) => names.map((name) =>
    (amounts.has(name) ? `t.${name}::float8` : `t.${name}`)).join(', ');
const contactColumns = columnsOf(['id', 'workspace_id', 'bot_id',
    ...inputNames]) + `, (SELECT max(a.created_at) FROM crmapi.activity a
    WHERE a.workspace_id = t.workspace_id AND a.contact_id = t.id)
    AS last_contacted_at, (SELECT coalesce(jsonb_object_agg(CASE s.kind
    WHEN 'email' THEN 'email' ELSE 'sms' END, coalesce(s.reason,
    'suppressed')), '{}') FROM crmapi.suppression s
    WHERE s.workspace_id = t.workspace_id AND (s.kind, s.address) IN
    (('email', t.email_key), ('phone', t.phone_key))) AS suppressed,
    t.created_at, t.updated_at`;
const conversationColumns = columnsOf(['id', 'bot_id', 'contact_id', 'type',
    'email', 'phone_number', 'human', 'human_takeover', 'assigned_to',
    'assigned_at', 'active', 'archived', 'archived_at', 'deleted',
    'deleted_at', 'internal', 'internal_notes', 'last_message',
    'last_message_at', 'last_active_at', 'sentiment_positive',
    'sentiment_score', 'sentiment_summary', 'audio_url', 'minutes',
    'visitor_id', 'created_at']);
const initial = { emails: [], phone_numbers: [], tags: [], custom_fields: {} };
const textArray = (values) => `{${values.map((value) =>
    `"${value.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
const bound = (name, value) => {
    const stored = value ?? initial[name] ?? null;
    return stored !== null && inputTypes[name] === 'text[]'
        ? textArray(stored) : stored;
};

// ---- requests ---------------------------------------------------------------
const refuse = (status, code) => Response.json({ error: { code } }, { status });
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

// The hash of a request's key, or null.
const keyHash = (request) => {
    const match = /^Bearer (svc_live_[A-Za-z0-9]{29,30})$/i
        .exec(request.headers.get('authorization') || '');
    return match && Bun.SHA256.hash(match[1]);
};
const keySql = `SELECT k.workspace_id, k.can_write FROM crmapi.api_key k
    JOIN crmapi.workspace w ON w.id = k.workspace_id
    JOIN crmapi.plan p ON p.name = w.plan AND p.api
    WHERE k.key_hash = $1 AND k.revoked_at IS NULL`;

// Serve a request whose key is valid: HANDLER gets the workspace's id.
const withKey = (handler) => async (request) => {
    const hash = keyHash(request);
    const [key] = hash ? await sql.unsafe(keySql, [hash]) : [];
    if (!key) {
        return refuse(401, 'unauthorized');
    }
    if (request.method !== 'GET' && !key.can_write) {
        return refuse(403, 'forbidden');
    }
    try {
        return await handler(request, key.workspace_id);
    } catch (error) {
        if (error.errno === '23503') {
            return refuse(422, 'validation_error');
        }
        throw error;
    }
};

// The key and the row in one statement: without a key there is no row, without
// a contact its columns are null.
const contactSql = `SELECT c.* FROM (${keySql}) k LEFT JOIN LATERAL (
    SELECT ${contactColumns} FROM crmapi.contact t
    WHERE t.workspace_id = k.workspace_id AND t.id = $2::uuid) c ON true`;
const noId = '00000000-0000-0000-0000-000000000000';

async function getContact(request) {
    const { id } = request.params;
    const hash = keyHash(request);
    const [data] = hash ? await sql.unsafe(contactSql,
        [hash, uuid.test(id) ? id : noId]) : [];
    if (!data) {
        return refuse(401, 'unauthorized');
    }
    return data.id ? Response.json({ data }) : refuse(404, 'not_found');
}

// Serve a page of TABLE: FILTERS has [condition, value] for what was given. The
// total goes along on another connection.
async function list(url, table, columns, conditions, filters) {
    const page = Number(url.searchParams.get('page') ?? 1);
    const size = Number(url.searchParams.get('page_size') ?? 25);
    if (!(Number.isInteger(page) && page >= 1 && Number.isInteger(size)
        && size >= 1 && size <= 100)) {
        return refuse(422, 'validation_error');
    }
    const values = filters.map(([, value]) => value);
    const where = [...conditions, ...filters.map(([condition], i) =>
        condition.replace('?', `$${i + 1}`))].join(' AND ');
    const n = values.length;
    const [data, [{ total }]] = await Promise.all([
        sql.unsafe(`SELECT ${columns} FROM ${table} t WHERE ${where}
            ORDER BY t.created_at DESC, t.id DESC
            LIMIT $${n + 1} OFFSET $${n + 2}`,
        [...values, size, (page - 1) * size]),
        sql.unsafe(`SELECT count(*)::int AS total FROM ${table} t
            WHERE ${where}`, values),
    ]);
    return Response.json({ data, pagination: { page, page_size: size, total,
        total_pages: Math.ceil(total / size) } });
}

const given = (url, workspace, known) => [['t.workspace_id = ?', workspace],
    ...known.filter(([name]) => url.searchParams.has(name))
        .map(([name, condition, value]) => [condition,
            value(url.searchParams.get(name))])];

const likeText = (value) => `%${value.replace(/[\\%_]/g, '\\$&')}%`;
const listContacts = (request, workspace) => {
    const url = new URL(request.url);
    return list(url, 'crmapi.contact', contactColumns, [], given(url, workspace,
        [['search', 't.search LIKE crmapi.fold(?)', likeText],
            ['tags', 't.tags && ?::text[]',
                (value) => textArray(value.split(','))]]));
};

const channels = { webchat: 1, call: 2, sms: 3, email: 4, whatsapp: 5 };
const listConversations = (request, workspace) => {
    const url = new URL(request.url);
    return list(url, 'crmapi.conversation', conversationColumns,
        ['t.deleted IS NOT TRUE'], given(url, workspace, [
            ['assigned_to', 't.assigned_to = ?', String],
            ['type', 't.type = ?', (value) => channels[value] || Number(value)],
            ['active', 't.active = ?', (value) => value === 'true']]));
};

// ---- writing ----------------------------------------------------------------
const isText = (value) => value === null || typeof value === 'string';
const checks = {
    text: isText, uuid: (value) => value === null || uuid.test(value),
    numeric: (value) => value === null || typeof value === 'number',
    'text[]': (value) => value === null
        || (Array.isArray(value) && value.every(isText)),
    jsonb: (value) => typeof value === 'object',
};
const valid = (body, more) => body !== null && typeof body === 'object'
    && Object.keys(body).every((name) => (more.includes(name)
        ? uuid.test(body[name])
        : inputTypes[name] && checks[inputTypes[name]](body[name])));

// One primary address in every list.
const tidy = (body) => {
    for (const name of ['emails', 'phone_numbers']) {
        const at = body[name]?.findIndex((entry) => entry.is_primary);
        body[name]?.forEach((entry, i) => {
            entry.is_primary = i === Math.max(at, 0);
        });
    }
    return body;
};

const insertSql = `INSERT INTO crmapi.contact AS t (id, workspace_id,
    bot_id, ${inputNames.join(', ')}) VALUES ($1::uuid, $2::uuid, $3::uuid,
    ${inputNames.map((name, i) => `$${i + 4}::${inputTypes[name]}`).join(', ')})
    RETURNING ${contactColumns}`;

async function postContact(request, workspace) {
    const body = await request.json();
    if (!valid(body, ['bot_id']) || !body.bot_id) {
        return refuse(422, 'validation_error');
    }
    tidy(body);
    const [data] = await sql.unsafe(insertSql, [Bun.randomUUIDv7(), workspace,
        body.bot_id, ...inputNames.map((name) => bound(name, body[name]))]);
    return Response.json({ data }, { status: 201,
        headers: { Location: `/api/v1/contacts/${data.id}` } });
}

async function patchContact(request, workspace) {
    const body = await request.json();
    if (!uuid.test(request.params.id)) {
        return refuse(404, 'not_found');
    }
    if (!valid(body, []) || !Object.keys(body).length) {
        return refuse(422, 'validation_error');
    }
    tidy(body);
    const names = inputNames.filter((name) => body[name] !== undefined);
    const bind = (name, i) => `${name} = $${i + 3}::${inputTypes[name]}`;
    const changed = (name, i) => `t.${name} IS DISTINCT FROM
        $${i + 3}::${inputTypes[name]}`;
    const [data] = await sql.unsafe(`UPDATE crmapi.contact t
        SET ${names.map(bind).join(', ')}, updated_at = CASE
            WHEN ${names.map(changed).join(' OR ')} THEN
            greatest(crmapi.now_ms(), t.updated_at + interval '1 millisecond')
            ELSE t.updated_at END
        WHERE t.workspace_id = $1 AND t.id = $2 RETURNING ${contactColumns}`,
    [workspace, request.params.id,
        ...names.map((name) => bound(name, body[name]))]);
    return data ? Response.json({ data }) : refuse(404, 'not_found');
}

Bun.serve({
    hostname: '127.0.0.1', port: Number(process.env.PORT), reusePort: true,
    routes: {
        '/api/v1/contacts/:id': { GET: getContact,
            PATCH: withKey(patchContact) },
        '/api/v1/contacts': { GET: withKey(listContacts),
            POST: withKey(postContact) },
        '/api/v1/conversations': { GET: withKey(listConversations) },
    },
    fetch: () => refuse(404, 'not_found'),
    error: (error) => {
        console.error(error);
        return refuse(500, 'internal_error');
    },
});
await sql`SELECT 1`;
console.log('ready');
