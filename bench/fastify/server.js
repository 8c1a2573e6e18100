// SPDX-License-Identifier: Apache-2.0
// server.js: the part of the API that is measured, as a Node team would write
// it: Fastify, pg, a cluster of two, named prepared statements, serialisation
// compiled from schemas. COUNT=no leaves the totals of lists out.
'use strict';
const cluster = require('node:cluster');
const { createHash, randomBytes } = require('node:crypto');
const fs = require('node:fs');

if (cluster.isPrimary) {
    cluster.fork();
    cluster.fork();
    const end = () => {
        for (const worker of Object.values(cluster.workers)) {
            worker.process.kill('SIGTERM');
        }
        process.exit(0);
    };
    process.on('SIGTERM', end);
    process.on('SIGINT', end);
    cluster.on('exit', () => process.exit(1));
    return;
}

const { Pool } = require('pg');
const counts = process.env.COUNT !== 'no';
const pool = new Pool({
    host: process.env.DATABASE_HOST,
    database: process.env.DATABASE_NAME,
    user: process.env.DATABASE_USER,
    min: 8, max: 8, idleTimeoutMillis: 0,
});

// ---- schemas ----------------------------------------------------------------
const text = { type: 'string', nullable: true };
const uuid = { type: 'string', format: 'uuid' };
const time = { type: 'string', format: 'date-time', nullable: true };
const flag = { type: 'boolean', nullable: true };
const number = { type: 'number', nullable: true };
const object = { type: 'object', additionalProperties: true };
const addresses = (member) => ({
    type: 'array',
    items: {
        type: 'object',
        properties: {
            [member]: { type: 'string' },
            is_primary: { type: 'boolean' },
        },
        required: [member],
        additionalProperties: false,
    },
});
const contactInput = {
    first_name: text, last_name: text,
    emails: addresses('email'), phone_numbers: addresses('phone_number'),
    company: text, company_id: { ...uuid, nullable: true }, job_title: text,
    lead_source: text, tags: { type: 'array', items: { type: 'string' } },
    deal_value: number, pipeline_stage_id: { ...uuid, nullable: true },
    contact_type: text, address_line1: text, address_line2: text, city: text,
    state: text, postal_code: text, country: text, linkedin_url: text,
    notes: text, custom_fields: object, external_id: text,
};
const inputNames = Object.keys(contactInput);
const contact = {
    type: 'object',
    properties: {
        id: { type: 'string' }, workspace_id: { type: 'string' },
        bot_id: { type: 'string' }, ...contactInput, company_id: text,
        pipeline_stage_id: text, last_contacted_at: time, suppressed: object,
        created_at: time, updated_at: time,
    },
};
const conversation = {
    type: 'object',
    properties: {
        id: { type: 'string' }, bot_id: { type: 'string' }, contact_id: text,
        type: { type: 'integer' }, email: text, phone_number: text,
        human: text, human_takeover: flag, assigned_to: text,
        assigned_at: time, active: flag, archived: flag, archived_at: time,
        deleted: flag, deleted_at: time, internal: flag,
        internal_notes: text, last_message: text, last_message_at: time,
        last_active_at: time, sentiment_positive: flag,
        sentiment_score: number, sentiment_summary: text, audio_url: text,
        minutes: number, visitor_id: text, created_at: time,
    },
};
const one = (schema) => ({
    type: 'object', properties: { data: schema },
});
const many = (schema) => ({
    type: 'object',
    properties: {
        data: { type: 'array', items: schema },
        pagination: {
            type: 'object',
            properties: {
                page: { type: 'integer' }, page_size: { type: 'integer' },
                total: { type: 'integer' }, total_pages: { type: 'integer' },
            },
        },
    },
});
const paging = {
    page: { type: 'integer', minimum: 1, default: 1 },
    page_size: { type: 'integer', minimum: 1, maximum: 100, default: 25 },
};

// ---- SQL --------------------------------------------------------------------
const amounts = new Set(['deal_value', 'sentiment_score', 'minutes']);
const columnsOf = (schema) => Object.keys(schema.properties).map((name) => {
    if (name === 'last_contacted_at') {
        return '(SELECT max(a.created_at) FROM crmapi.activity a'
            + ' WHERE a.workspace_id = t.workspace_id AND a.contact_id = t.id)'
            + ' AS last_contacted_at';
    }
    if (name === 'suppressed') {
        return '(SELECT coalesce(jsonb_object_agg(CASE s.kind'
            + " WHEN 'email' THEN 'email' ELSE 'sms' END, coalesce(s.reason,"
            + " 'suppressed')), '{}') FROM crmapi.suppression s"
            + ' WHERE s.workspace_id = t.workspace_id AND (s.kind, s.address)'
            + " IN (('email', t.email_key), ('phone', t.phone_key)))"
            + ' AS suppressed';
    }
    return amounts.has(name) ? `t.${name}::float8` : `t.${name}`;
}).join(', ');
const contactColumns = columnsOf(contact);
const conversationColumns = columnsOf(conversation);
const types = { emails: 'jsonb', phone_numbers: 'jsonb', tags: 'text[]',
    custom_fields: 'jsonb', deal_value: 'numeric', company_id: 'uuid',
    pipeline_stage_id: 'uuid' };
const typeOf = (name) => types[name] || 'text';
const listed = (values) => (Array.isArray(values) || (values !== null
    && typeof values === 'object') ? JSON.stringify(values) : values);
// pg makes a PostgreSQL array of a JavaScript one: right for tags only
const bound = (name, value) => (name === 'tags' ? value : listed(value));
const run = (name, sql, values, client = pool) =>
    client.query({ name, text: sql, values });

// A UUIDv7, so that new rows are neighbours in the index.
function newId() {
    const bytes = randomBytes(16);
    bytes.writeUIntBE(Date.now(), 0, 6);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    const hex = bytes.toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-`
        + `${hex.slice(16, 20)}-${hex.slice(20)}`;
}

// ---- the application --------------------------------------------------------
const fastify = require('fastify');

function build(options) {
    const app = fastify({
        logger: false, ajv: { customOptions: { coerceTypes: true } },
        ...options,
    });

    app.decorateRequest('workspace', null);
    app.addHook('onRequest', async (request, reply) => {
        const match = /^Bearer (svc_live_[A-Za-z0-9]{29,30})$/i
            .exec(request.headers.authorization || '');
        const found = match && (await run('key', `
            SELECT k.workspace_id, k.can_write FROM crmapi.api_key k
            JOIN crmapi.workspace w ON w.id = k.workspace_id
            JOIN crmapi.plan p ON p.name = w.plan AND p.api
            WHERE k.key_hash = $1 AND k.revoked_at IS NULL`,
        [createHash('sha256').update(match[1]).digest()])).rows[0];
        if (!found) {
            return reply.code(401).send({ error: { code: 'unauthorized' } });
        }
        if (request.method !== 'GET' && !found.can_write) {
            return reply.code(403).send({ error: { code: 'forbidden' } });
        }
        request.workspace = found.workspace_id;
    });
    app.setErrorHandler((error, request, reply) => {
        const code = error.validation || error.code === '23503' ? 422
            : error.statusCode || 500;
        if (code >= 500) {
            console.error(error);
        }
        reply.code(code).send({ error: { message: 'refused' } });
    });

    // A page of a list; the number of all rows goes along on another
    // connection.
    async function list(request, reply, name, table, columns, where, order) {
        const { page, page_size: size } = request.query;
        const offset = (page - 1) * size;
        const values = where.values;
        const n = values.length;
        const condition = where.sql.join(' AND ');
        const rows = run(`${name}-page-${where.key}`,
            `SELECT ${columns} FROM ${table} t WHERE ${condition}
            ORDER BY ${order} LIMIT $${n + 1} OFFSET $${n + 2}`,
            [...values, size, offset]);
        if (!counts) {
            return { data: (await rows).rows, pagination: { page,
                page_size: size, total: 0, total_pages: 0 } };
        }
        const [data, count] = await Promise.all([rows,
            run(`${name}-count-${where.key}`,
                `SELECT count(*)::int AS n FROM ${table} t WHERE ${condition}`,
                values)]);
        const total = count.rows[0].n;
        return { data: data.rows, pagination: { page, page_size: size, total,
            total_pages: Math.ceil(total / size) } };
    }
    const filters = (request, conditions) => {
        const where = { key: '', sql: ['t.workspace_id = $1'],
            values: [request.workspace] };
        for (const [name, sql, value] of conditions) {
            const given = request.query[name];
            if (given !== undefined) {
                where.values.push(value ? value(given) : given);
                where.sql.push(sql.replaceAll('?', `$${where.values.length}`));
                where.key += `${name},`;
            }
        }
        return where;
    };

    app.get('/api/v1/contacts/:id', {
        schema: {
            params: { type: 'object', properties: { id: uuid } },
            response: { 200: one(contact) },
        },
    }, async (request, reply) => {
        const { rows } = await run('contact', `SELECT ${contactColumns}
            FROM crmapi.contact t WHERE t.workspace_id = $1 AND t.id = $2`,
        [request.workspace, request.params.id]);
        return rows.length ? { data: rows[0] }
            : reply.code(404).send({ error: { code: 'not_found' } });
    });

    const likeText = (value) => `%${value.replace(/[\\%_]/g, '\\$&')}%`;
    app.get('/api/v1/contacts', {
        schema: {
            querystring: { type: 'object', properties: { ...paging,
                search: { type: 'string' }, tags: { type: 'string' } } },
            response: { 200: many(contact) },
        },
    }, (request, reply) => list(request, reply, 'contacts', 'crmapi.contact',
        contactColumns, filters(request, [
            ['search', 't.search LIKE crmapi.fold(?)', likeText],
            ['tags', 't.tags && ?::text[]', (value) => value.split(',')],
        ]), 't.created_at DESC, t.id DESC'));

    const channels = { webchat: 1, call: 2, sms: 3, email: 4, whatsapp: 5 };
    app.get('/api/v1/conversations', {
        schema: {
            querystring: { type: 'object', properties: { ...paging,
                type: { type: 'string' }, assigned_to: { type: 'string' },
                active: { type: 'boolean' } } },
            response: { 200: many(conversation) },
        },
    }, (request, reply) => list(request, reply, 'conversations',
        'crmapi.conversation', conversationColumns, (() => {
            const where = filters(request, [
                ['assigned_to', 't.assigned_to = ?'],
                ['type', 't.type = ?',
                    (value) => channels[value] || Number(value)],
                ['active', 't.active = ?'],
            ]);
            where.sql.push('t.deleted IS NOT TRUE');
            return where;
        })(), 't.created_at DESC, t.id DESC'));

    // ---- writing ------------------------------------------------------------
    const insertSql = `INSERT INTO crmapi.contact AS t (id, workspace_id,
        bot_id, ${inputNames.join(', ')}) VALUES ($1, $2, $3, ${inputNames
    .map((name, i) => `$${i + 4}`).join(', ')})
        RETURNING ${contactColumns}`;
    const initial = { emails: '[]', phone_numbers: '[]', tags: [],
        custom_fields: '{}' };
    const insertValues = (workspace, bot, body) => [newId(), workspace, bot,
        ...inputNames.map((name) => (body[name] === undefined
            || body[name] === null ? initial[name] ?? null
            : bound(name, body[name])))];
    // One primary address in every list.
    const tidy = (body) => {
        for (const name of ['emails', 'phone_numbers']) {
            if (body[name]) {
                const at = body[name].findIndex((a) => a.is_primary);
                body[name].forEach((a, i) => {
                    a.is_primary = i === Math.max(at, 0);
                });
            }
        }
        return body;
    };

    app.post('/api/v1/contacts', {
        schema: {
            body: { type: 'object', required: ['bot_id'],
                additionalProperties: false,
                properties: { bot_id: uuid, ...contactInput } },
            response: { 201: one(contact) },
        },
    }, async (request, reply) => {
        const { rows } = await run('contact-insert', insertSql,
            insertValues(request.workspace, request.body.bot_id,
                tidy(request.body)));
        reply.code(201).header('Location', `/api/v1/contacts/${rows[0].id}`);
        return { data: rows[0] };
    });

    // PostgreSQL's names have 63 bytes at most.
    const shortNames = new Map();
    const shortName = (names) => {
        const all = names.join(',');
        if (!shortNames.has(all)) {
            shortNames.set(all, shortNames.size);
        }
        return shortNames.get(all);
    };
    const update = async (workspace, id, body, client) => {
        const names = inputNames.filter((name) => body[name] !== undefined);
        const sets = names.map((name, i) =>
            `${name} = $${i + 3}::${typeOf(name)}`);
        const changed = names.map((name, i) =>
            `t.${name} IS DISTINCT FROM $${i + 3}::${typeOf(name)}`);
        const { rows } = await run(`contact-update-${shortName(names)}`,
            `UPDATE crmapi.contact t SET ${sets.join(', ')}, updated_at = CASE
                WHEN ${changed.join(' OR ')} THEN greatest(crmapi.now_ms(),
                t.updated_at + interval '1 millisecond') ELSE t.updated_at END
            WHERE t.workspace_id = $1 AND t.id = $2
            RETURNING ${contactColumns}`,
            [workspace, id, ...names.map((name) => bound(name, body[name]
                ?? initial[name] ?? null))], client);
        return rows[0];
    };
    app.patch('/api/v1/contacts/:id', {
        schema: {
            params: { type: 'object', properties: { id: uuid } },
            body: { type: 'object', additionalProperties: false,
                minProperties: 1, properties: contactInput },
            response: { 200: one(contact) },
        },
    }, async (request, reply) => {
        const row = await update(request.workspace, request.params.id,
            tidy(request.body));
        return row ? { data: row }
            : reply.code(404).send({ error: { code: 'not_found' } });
    });

    // Item by item, each in a savepoint of its own, since one that fails must
    // not fail the others.
    const fold = (value) => value.toLowerCase();
    const phoneFold = (value) => (value.trim().startsWith('+') ? '+' : '')
        + value.replace(/[^0-9]/g, '');
    const primary = (list, member) => {
        const entry = list && (list.find((a) => a.is_primary) || list[0]);
        return entry && entry[member];
    };
    const united = (old, added, member, key) => {
        const known = new Set(old.map((a) => key(a[member])));
        return [...old, ...added.filter((a) => !known.has(key(a[member])))
            .map((a) => ({ ...a, is_primary: old.length === 0
                && a.is_primary }))];
    };
    const find = (client, workspace, column, value) => run(`find-${column}`,
        `SELECT t.id, t.emails, t.phone_numbers FROM crmapi.contact t
        WHERE t.workspace_id = $1 AND t.${column} = $2
        ORDER BY t.created_at, t.id LIMIT 1 FOR UPDATE`, [workspace, value],
        client).then((result) => result.rows[0]);
    async function upsertItem(client, workspace, bot, item) {
        const email = primary(item.emails, 'email');
        const phone = primary(item.phone_numbers, 'phone_number');
        let known;
        if (email) {
            known = await find(client, workspace, 'email_key', fold(email));
        }
        if (!known && phone) {
            known = await find(client, workspace, 'phone_key',
                phoneFold(phone));
        }
        if (!known) {
            const { rows } = await run('contact-insert', insertSql,
                insertValues(workspace, bot, item), client);
            return ['created', rows[0]];
        }
        if (item.emails) {
            item.emails = united(known.emails, item.emails, 'email', fold);
        }
        if (item.phone_numbers) {
            item.phone_numbers = united(known.phone_numbers,
                item.phone_numbers, 'phone_number', phoneFold);
        }
        return ['updated', await update(workspace, known.id, item, client)];
    }
    async function upsertAll(client, workspace, bot, contacts, order) {
        const results = [];
        const data = { created: [], updated: [], errors: [] };
        await client.query('BEGIN');
        for (const [, index] of order) {
            try {
                await client.query('SAVEPOINT item');
                results[index] = await upsertItem(client, workspace, bot,
                    contacts[index]);
                await client.query('RELEASE SAVEPOINT item');
            } catch (error) {
                if (!error.code || error.code === '40P01') {
                    throw error;
                }
                await client.query('ROLLBACK TO SAVEPOINT item');
                results[index] = ['errors', { index, message: 'refused' }];
            }
        }
        await client.query('COMMIT');
        for (const [kind, row] of results) {
            data[kind].push(row);
        }
        return data;
    }
    app.post('/api/v1/contacts/upsert', {
        schema: {
            body: {
                type: 'object', required: ['bot_id', 'contacts'],
                properties: {
                    bot_id: uuid,
                    contacts: {
                        type: 'array', maxItems: 200,
                        items: { type: 'object', additionalProperties: false,
                            properties: contactInput },
                    },
                },
            },
            response: {
                200: one({
                    type: 'object',
                    properties: {
                        created: { type: 'array', items: contact },
                        updated: { type: 'array', items: contact },
                        errors: { type: 'array', items: object },
                    },
                }),
            },
        },
    }, async (request) => {
        const { bot_id: bot, contacts } = request.body;
        contacts.forEach(tidy);
        // in the order of who they are, or two such requests lock each other
        // out; where they do all the same, once more
        const order = contacts.map((item, i) => [primary(item.emails, 'email')
            || primary(item.phone_numbers, 'phone_number') || '', i])
            .sort((a, b) => (a[0] < b[0] ? -1 : Number(a[0] > b[0])));
        for (let tries = 1; ; tries++) {
            const client = await pool.connect();
            try {
                return { data: await upsertAll(client, request.workspace, bot,
                    structuredClone(contacts), order) };
            } catch (error) {
                await client.query('ROLLBACK');
                if (error.code !== '40P01' || tries === 5) {
                    throw error;
                }
            } finally {
                client.release();
            }
        }
    });
    return app;
}

(async () => {
    await build({}).listen({ host: '127.0.0.1',
        port: Number(process.env.PORT) });
    if (process.env.TLS_PORT) {
        await build({
            http2: true,
            https: {
                allowHTTP1: true,
                cert: fs.readFileSync(process.env.TLS_CERTIFICATE),
                key: fs.readFileSync(process.env.TLS_KEY),
            },
        }).listen({ host: '127.0.0.1', port: Number(process.env.TLS_PORT) });
    }
    console.log('ready');
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
