<?php
// SPDX-License-Identifier: Apache-2.0
// index.php: the part of the API that is measured, as a site on Apache would
// write it: mod_php, a persistent connection, prepared statements that stay
// in its session.
declare(strict_types=1);

const INPUT = ['first_name', 'last_name', 'emails', 'phone_numbers', 'company',
    'company_id', 'job_title', 'lead_source', 'tags', 'deal_value',
    'pipeline_stage_id', 'contact_type', 'address_line1', 'address_line2',
    'city', 'state', 'postal_code', 'country', 'linkedin_url', 'notes',
    'custom_fields', 'external_id'];
const JSON = ['emails' => 1, 'phone_numbers' => 1, 'custom_fields' => 1];
const TYPES = ['emails' => 'jsonb', 'phone_numbers' => 'jsonb',
    'tags' => 'text[]', 'custom_fields' => 'jsonb', 'deal_value' => 'numeric',
    'company_id' => 'uuid', 'pipeline_stage_id' => 'uuid'];
const UUID = '/\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/i';
const TIME = "'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'";
// tags as JSON, times as the API writes them: PHP need not parse either
const CONTACT = 't.id, t.workspace_id, t.bot_id, t.first_name, t.last_name,
    t.emails, t.phone_numbers, t.company, t.company_id, t.job_title,
    t.lead_source, to_json(t.tags::text[]) AS tags, t.deal_value,
    t.pipeline_stage_id, t.contact_type, t.address_line1, t.address_line2,
    t.city, t.state, t.postal_code, t.country, t.linkedin_url, t.notes,
    t.custom_fields, t.external_id, (SELECT to_char(max(a.created_at), ' . TIME . ')
        FROM crmapi.activity a WHERE a.workspace_id = t.workspace_id
        AND a.contact_id = t.id) AS last_contacted_at,
    (SELECT coalesce(jsonb_object_agg(CASE s.kind WHEN \'email\' THEN \'email\'
        ELSE \'sms\' END, coalesce(s.reason, \'suppressed\')), \'{}\')
        FROM crmapi.suppression s WHERE s.workspace_id = t.workspace_id
        AND (s.kind, s.address) IN ((\'email\', t.email_key),
        (\'phone\', t.phone_key))) AS suppressed,
    to_char(t.created_at, ' . TIME . ') AS created_at,
    to_char(t.updated_at, ' . TIME . ') AS updated_at';
const CONVERSATION = 't.id, t.bot_id, t.contact_id, t.type, t.email,
    t.phone_number, t.human, t.human_takeover, t.assigned_to,
    to_char(t.assigned_at, ' . TIME . ') AS assigned_at, t.active, t.archived,
    to_char(t.archived_at, ' . TIME . ') AS archived_at, t.deleted,
    to_char(t.deleted_at, ' . TIME . ') AS deleted_at, t.internal,
    t.internal_notes, t.last_message,
    to_char(t.last_message_at, ' . TIME . ') AS last_message_at,
    to_char(t.last_active_at, ' . TIME . ') AS last_active_at,
    t.sentiment_positive, t.sentiment_score, t.sentiment_summary, t.audio_url,
    t.minutes, t.visitor_id, to_char(t.created_at, ' . TIME . ') AS created_at';
const FLAGS = ['human_takeover', 'active', 'archived', 'deleted', 'internal',
    'sentiment_positive'];
const CHANNELS = ['webchat' => 1, 'call' => 2, 'sms' => 3, 'email' => 4,
    'whatsapp' => 5];

function answer(int $status, $body): never
{
    http_response_code($status);
    header('Content-Type: application/json');
    header('Cache-Control: private, no-store');
    $text = json_encode($body, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE
        | JSON_THROW_ON_ERROR);
    header('Content-Length: ' . strlen($text));
    echo $text;
    exit;
}

function refuse(int $status, string $code): never
{
    answer($status, ['error' => ['code' => $code]]);
}

// Run SQL, prepared under a name of its own once in the session, which outlives
// the request: it is tried first, and prepared when it is not there.
function run(string $sql, array $values): PgSql\Result|false
{
    global $db;
    $name = 's' . hash('xxh64', $sql);
    $result = @pg_execute($db, $name, $values);
    $error = $result ? '' : pg_last_error($db);
    if (!$result && pg_transaction_status($db) === PGSQL_TRANSACTION_INERROR) {
        // inside an item of an upsert
        pg_query($db, 'ROLLBACK TO SAVEPOINT item; SAVEPOINT item');
    }
    if (!$result && str_contains($error, 'prepared statement')
        && @pg_prepare($db, $name, $sql)) {
        $result = @pg_execute($db, $name, $values);
    }
    return $result;
}

function contact(array $row): array
{
    foreach (['emails', 'phone_numbers', 'tags'] as $name) {
        $row[$name] = json_decode($row[$name], true);
    }
    foreach (['custom_fields', 'suppressed'] as $name) {
        $row[$name] = json_decode($row[$name]);
    }
    $row['deal_value'] = $row['deal_value'] === null ? null
        : $row['deal_value'] + 0;
    return $row;
}

function conversation(array $row): array
{
    $row['type'] = (int)$row['type'];
    foreach (FLAGS as $name) {
        $row[$name] = $row[$name] === null ? null : $row[$name] === 't';
    }
    foreach (['sentiment_score', 'minutes'] as $name) {
        $row[$name] = $row[$name] === null ? null : $row[$name] + 0;
    }
    return $row;
}

// A page of a list and the number of all its rows.
function listing(string $table, string $columns, callable $convert,
    array $where, array $values): never
{
    $page = filter_var($_GET['page'] ?? 1, FILTER_VALIDATE_INT,
        ['options' => ['min_range' => 1]]);
    $size = filter_var($_GET['page_size'] ?? 25, FILTER_VALIDATE_INT,
        ['options' => ['min_range' => 1, 'max_range' => 100]]);
    if (!$page || !$size) {
        refuse(422, 'validation_error');
    }
    $where = implode(' AND ', $where);
    $n = count($values);
    $rows = run("SELECT $columns FROM $table t WHERE $where"
        . ' ORDER BY t.created_at DESC, t.id DESC LIMIT $' . ($n + 1)
        . ' OFFSET $' . ($n + 2), [...$values, $size, ($page - 1) * $size]);
    $count = run("SELECT count(*) FROM $table t WHERE $where", $values);
    if (!$rows || !$count) {
        refuse(500, 'internal_error');
    }
    $total = (int)pg_fetch_result($count, 0, 0);
    answer(200, ['data' => array_map($convert, pg_fetch_all($rows)),
        'pagination' => ['page' => $page, 'page_size' => $size,
            'total' => $total, 'total_pages' => (int)ceil($total / $size)]]);
}

function new_id(): string
{
    $ms = (int)(microtime(true) * 1000);
    $hex = sprintf('%012x', $ms) . bin2hex(random_bytes(10));
    $hex[12] = '7';
    $hex[16] = dechex(8 | (hexdec($hex[16]) & 3));
    return substr($hex, 0, 8) . '-' . substr($hex, 8, 4) . '-'
        . substr($hex, 12, 4) . '-' . substr($hex, 16, 4) . '-'
        . substr($hex, 20);
}

// Check the fields of a contact; one primary address in each list. Return
// false where something is wrong.
function checked(array $item): array|false
{
    foreach ($item as $name => $value) {
        if (!in_array($name, INPUT, true)) {
            return false;
        }
        if ($value === null) {
            continue;
        }
        switch ($name) {
        case 'emails':
        case 'phone_numbers':
            $member = $name === 'emails' ? 'email' : 'phone_number';
            if (!is_array($value) || !array_is_list($value)) {
                return false;
            }
            $primary = 0;
            foreach ($value as $i => $entry) {
                if (!is_array($entry) || !is_string($entry[$member] ?? null)) {
                    return false;
                }
                if ($entry['is_primary'] ?? false) {
                    $primary = $i;
                }
            }
            foreach ($value as $i => $entry) {
                $value[$i]['is_primary'] = $i === $primary;
            }
            $item[$name] = $value;
            break;
        case 'tags':
            if (!is_array($value) || array_filter($value,
                fn($tag) => !is_string($tag))) {
                return false;
            }
            break;
        case 'custom_fields':
            if (!is_array($value)) {
                return false;
            }
            break;
        case 'deal_value':
            if (!is_int($value) && !is_float($value)) {
                return false;
            }
            break;
        default:
            if (!is_string($value)
                || (TYPES[$name] ?? '') === 'uuid'
                    && !preg_match(UUID, $value)) {
                return false;
            }
        }
    }
    return $item;
}

function bound(string $name, mixed $value): mixed
{
    if ($value === null) {
        return ['emails' => '[]', 'phone_numbers' => '[]', 'tags' => '{}',
            'custom_fields' => '{}'][$name] ?? null;
    }
    if (isset(JSON[$name])) {
        return $name === 'custom_fields' ? json_encode((object)$value)
            : json_encode($value);
    }
    if ($name === 'tags') {
        return '{' . implode(',', array_map(fn($tag) => '"'
            . addcslashes($tag, '"\\') . '"', $value)) . '}';
    }
    return $value;
}

function insert(string $workspace, string $bot, array $item): array|false
{
    $marks = implode(', ', array_map(fn($i) => '$' . ($i + 4),
        array_keys(INPUT)));
    $result = run('INSERT INTO crmapi.contact AS t (id, workspace_id, bot_id, '
        . implode(', ', INPUT) . ") VALUES (\$1, \$2, \$3, $marks) RETURNING "
        . CONTACT, [new_id(), $workspace, $bot,
            ...array_map(fn($name) => bound($name, $item[$name] ?? null),
                INPUT)]);
    return $result ? contact(pg_fetch_assoc($result)) : false;
}

// Return the contact as it is afterwards, null if there is none, false if the
// database refuses.
function update(string $workspace, string $id, array $item): array|false|null
{
    $sets = $changed = $values = [];
    $n = 2;
    foreach ($item as $name => $value) {
        $n++;
        $type = TYPES[$name] ?? 'text';
        $sets[] = "$name = \$$n::$type";
        $changed[] = "t.$name IS DISTINCT FROM \$$n::$type";
        $values[] = bound($name, $value);
    }
    $result = run('UPDATE crmapi.contact t SET ' . implode(', ', $sets)
        . ', updated_at = CASE WHEN ' . implode(' OR ', $changed)
        . ' THEN greatest(crmapi.now_ms(), t.updated_at'
        . " + interval '1 millisecond') ELSE t.updated_at END"
        . ' WHERE t.workspace_id = $1 AND t.id = $2 RETURNING ' . CONTACT,
        [$workspace, $id, ...$values]);
    if (!$result) {
        return false;
    }
    $row = pg_fetch_assoc($result);
    return $row ? contact($row) : null;
}

function primary(?array $list, string $member): ?string
{
    foreach ($list ?? [] as $entry) {
        if ($entry['is_primary']) {
            return $entry[$member];
        }
    }
    return null;
}

function phone_fold(string $phone): string
{
    return (str_starts_with(ltrim($phone), '+') ? '+' : '')
        . preg_replace('/[^0-9]/', '', $phone);
}

function united(string $old, array $added, string $member,
    callable $key): array
{
    $list = json_decode($old, true);
    $empty = !$list;
    $known = [];
    foreach ($list as $entry) {
        $known[$key($entry[$member])] = true;
    }
    foreach ($added as $entry) {
        if (!isset($known[$key($entry[$member])])) {
            $entry['is_primary'] = $empty && $entry['is_primary'];
            $list[] = $entry;
        }
    }
    return $list;
}

function upsert_item(string $workspace, string $bot, array $item): array
{
    $find = fn($column, $value) => pg_fetch_assoc(run('SELECT t.id, t.emails,
        t.phone_numbers FROM crmapi.contact t WHERE t.workspace_id = $1
        AND t.' . $column . ' = $2 ORDER BY t.created_at, t.id LIMIT 1
        FOR UPDATE', [$workspace, $value]));
    $fold = fn($text) => mb_strtolower($text);
    $email = primary($item['emails'] ?? null, 'email');
    $phone = primary($item['phone_numbers'] ?? null, 'phone_number');
    $known = $email === null ? false : $find('email_key', $fold($email));
    if (!$known && $phone !== null) {
        $known = $find('phone_key', phone_fold($phone));
    }
    if (!$known) {
        return ['created', insert($workspace, $bot, $item)];
    }
    if (isset($item['emails'])) {
        $item['emails'] = united($known['emails'], $item['emails'], 'email',
            $fold);
    }
    if (isset($item['phone_numbers'])) {
        $item['phone_numbers'] = united($known['phone_numbers'],
            $item['phone_numbers'], 'phone_number', phone_fold(...));
    }
    return ['updated', update($workspace, $known['id'], $item)];
}

// Item by item, each in a savepoint of its own, since one that fails must not
// fail the others. Return the results by index, null after a deadlock.
function upsert_all(string $workspace, string $bot, array $items,
    array $order): ?array
{
    global $db;
    $results = [];
    pg_query($db, 'BEGIN');
    foreach ($order as $index) {
        $item = $items[$index];
        $result = [null, false];
        if ($item) {
            pg_query($db, 'SAVEPOINT item');
            try {
                $result = upsert_item($workspace, $bot, $item);
            } catch (TypeError) {
                // a look-up that the database has refused
            }
            if (!$result[1] && str_contains(pg_last_error($db), 'deadlock')) {
                pg_query($db, 'ROLLBACK');
                return null;
            }
            pg_query($db, $result[1] ? 'RELEASE SAVEPOINT item'
                : 'ROLLBACK TO SAVEPOINT item');
        }
        $results[$index] = $result[1] ? $result
            : ['errors', ['index' => $index, 'message' => 'refused']];
    }
    return pg_query($db, 'COMMIT') ? $results : null;
}

function upsert(string $workspace, array $body): never
{
    $items = $body['contacts'] ?? null;
    if (!preg_match(UUID, $body['bot_id'] ?? '') || !is_array($items)
        || count($items) > 200) {
        refuse(422, 'validation_error');
    }
    $items = array_map(fn($item) => is_array($item) ? checked($item) : false,
        $items);
    // in the order of who they are, or two such requests lock each other out;
    // where they do all the same, once more
    $order = array_map(fn($item) => $item ? primary($item['emails'] ?? null,
        'email') ?? primary($item['phone_numbers'] ?? null, 'phone_number')
        ?? '' : '', $items);
    asort($order, SORT_STRING);
    $results = null;
    for ($tries = 0; !$results && $tries < 5; $tries++) {
        $results = upsert_all($workspace, $body['bot_id'], $items,
            array_keys($order));
    }
    if ($results === null) {
        refuse(503, 'service_unavailable');
    }
    ksort($results);
    $data = ['created' => [], 'updated' => [], 'errors' => []];
    foreach ($results as [$kind, $row]) {
        $data[$kind][] = $row;
    }
    answer(200, ['data' => $data]);
}

// ---- a request -------------------------------------------------------------
$db = pg_pconnect($_SERVER['BENCH_DATABASE']);
if (!$db) {
    refuse(503, 'service_unavailable');
}
$method = $_SERVER['REQUEST_METHOD'];
$path = strtok($_SERVER['REQUEST_URI'], '?');
if (!preg_match('/\ABearer (svc_live_[A-Za-z0-9]{29,30})\z/i',
    $_SERVER['HTTP_AUTHORIZATION'] ?? '', $match)) {
    refuse(401, 'unauthorized');
}
$key = run('SELECT k.workspace_id, k.can_write FROM crmapi.api_key k
    JOIN crmapi.workspace w ON w.id = k.workspace_id
    JOIN crmapi.plan p ON p.name = w.plan AND p.api
    WHERE k.key_hash = $1 AND k.revoked_at IS NULL',
    ['\x' . hash('sha256', $match[1])]);
$key = $key ? pg_fetch_row($key) : false;
if (!$key) {
    refuse(401, 'unauthorized');
}
[$workspace, $can_write] = $key;
$body = null;
if ($method !== 'GET') {
    if ($can_write !== 't') {
        refuse(403, 'forbidden');
    }
    $body = json_decode(file_get_contents('php://input'), true);
    if (!is_array($body)) {
        refuse(400, 'bad_request');
    }
}

if ($path === '/api/v1/contacts' && $method === 'GET') {
    $where = ['t.workspace_id = $1'];
    $values = [$workspace];
    if (($_GET['search'] ?? '') !== '') {
        $values[] = '%' . addcslashes($_GET['search'], '\\%_') . '%';
        $where[] = 't.search LIKE crmapi.fold($' . count($values) . ')';
    }
    listing('crmapi.contact', CONTACT, contact(...), $where, $values);
}
if ($path === '/api/v1/conversations' && $method === 'GET') {
    $where = ['t.workspace_id = $1', 't.deleted IS NOT TRUE'];
    $values = [$workspace];
    if (isset($_GET['assigned_to'])) {
        $values[] = $_GET['assigned_to'];
        $where[] = 't.assigned_to = $' . count($values);
    }
    if (isset($_GET['type'])) {
        $values[] = CHANNELS[$_GET['type']] ?? (int)$_GET['type'];
        $where[] = 't.type = $' . count($values);
    }
    if (isset($_GET['active'])) {
        $where[] = $_GET['active'] === 'true' ? 't.active' : 'NOT t.active';
    }
    listing('crmapi.conversation', CONVERSATION, conversation(...), $where,
        $values);
}
if ($path === '/api/v1/contacts' && $method === 'POST') {
    $bot = $body['bot_id'] ?? null;
    unset($body['bot_id']);
    $item = checked($body);
    $row = $item !== false && is_string($bot) && preg_match(UUID, $bot)
        ? insert($workspace, $bot, $item) : false;
    if (!$row) {
        refuse(422, 'validation_error');
    }
    header("Location: /api/v1/contacts/$row[id]");
    answer(201, ['data' => $row]);
}
if ($path === '/api/v1/contacts/upsert' && $method === 'POST') {
    upsert($workspace, $body);
}
if (preg_match('~\A/api/v1/contacts/([0-9a-f-]{36})\z~i', $path, $match)
    && preg_match(UUID, $match[1])) {
    if ($method === 'GET') {
        $row = pg_fetch_assoc(run('SELECT ' . CONTACT . ' FROM crmapi.contact t
            WHERE t.workspace_id = $1 AND t.id = $2', [$workspace,
            $match[1]]));
        $row ? answer(200, ['data' => contact($row)])
            : refuse(404, 'not_found');
    }
    if ($method === 'PATCH') {
        $item = checked($body);
        $row = $item ? update($workspace, $match[1], $item) : false;
        if ($row === false) {
            refuse(422, 'validation_error');
        }
        $row ? answer(200, ['data' => $row]) : refuse(404, 'not_found');
    }
}
refuse(404, 'not_found');
