// SPDX-License-Identifier: Apache-2.0
// main.rs: the measured part of the API in Rust: hyper, and tokio-postgres, which
// sends concurrent queries over one connection without waiting (a pipeline)
mod rows;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Method, Request, Response, Server, StatusCode};
use rows::{Contact, Conversation, FromRow, INPUTS};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Json, ToSql};
use tokio_postgres::{Client, NoTls, Row, Statement};
use uuid::Uuid;

const CONNECTIONS: usize = 4;
const KEY_SQL: &str = "SELECT k.workspace_id, k.can_write FROM crmapi.api_key k
    JOIN crmapi.workspace w ON w.id = k.workspace_id
    JOIN crmapi.plan p ON p.name = w.plan AND p.api
    WHERE k.key_hash = $1 AND k.revoked_at IS NULL";

type Param = Box<dyn ToSql + Sync + Send>;
type Answer = Result<Response<Body>, Refusal>;

// ---- the database -----------------------------------------------------------

// A connection and the statements it has prepared.
struct Connection {
    client: Client,
    prepared: Mutex<HashMap<String, Statement>>,
}

struct Database {
    connections: Vec<Connection>,
    next: AtomicUsize,
}

impl Database {
    async fn connect(config: &str) -> Result<Database, tokio_postgres::Error> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(config, NoTls).await?;
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    eprintln!("{error}");
                    std::process::exit(1);
                }
            });
            connections.push(Connection { client, prepared: Mutex::default() });
        }
        Ok(Database { connections, next: AtomicUsize::new(0) })
    }

    async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)])
        -> Result<Vec<Row>, tokio_postgres::Error> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = &self.connections[turn % CONNECTIONS];
        let known = connection.prepared.lock().unwrap().get(sql).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => {
                let new = connection.client.prepare(sql).await?;
                connection.prepared.lock().unwrap()
                    .insert(sql.to_owned(), new.clone());
                new
            }
        };
        connection.client.query(&statement, params).await
    }
}

// ---- answers ----------------------------------------------------------------

struct Refusal(StatusCode, &'static str);

impl From<tokio_postgres::Error> for Refusal {
    fn from(error: tokio_postgres::Error) -> Refusal {
        if error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) {
            return INVALID;
        }
        eprintln!("{error}");
        Refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal_error")
    }
}

const INVALID: Refusal = Refusal(StatusCode::UNPROCESSABLE_ENTITY, "validation_error");
const UNAUTHORIZED: Refusal = Refusal(StatusCode::UNAUTHORIZED, "unauthorized");
const NOT_FOUND: Refusal = Refusal(StatusCode::NOT_FOUND, "not_found");

#[derive(Serialize)]
struct One<T> {
    data: T,
}

#[derive(Serialize)]
struct Page<T> {
    data: Vec<T>,
    pagination: Pagination,
}

#[derive(Serialize)]
struct Pagination {
    page: i64,
    page_size: i64,
    total: i64,
    total_pages: i64,
}

fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    Response::builder().status(status).header(CONTENT_TYPE, "application/json")
        .body(Body::from(serde_json::to_vec(value).unwrap())).unwrap()
}

// ---- requests ---------------------------------------------------------------

// The hash of a request's key.
fn key_hash(request: &Request<Body>) -> Result<Vec<u8>, Refusal> {
    let value = request.headers().get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()).unwrap_or("");
    let key = match value.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case("Bearer ") => &value[7..],
        _ => return Err(UNAUTHORIZED),
    };
    let random = key.strip_prefix("svc_live_").ok_or(UNAUTHORIZED)?;
    if !(29..=30).contains(&random.len())
        || !random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(UNAUTHORIZED);
    }
    Ok(Sha256::digest(key.as_bytes()).to_vec())
}

// The workspace of a request's key.
async fn workspace_of(database: &Database, request: &Request<Body>)
    -> Result<Uuid, Refusal> {
    let hash = key_hash(request)?;
    let rows = database.query(KEY_SQL, &[&hash]).await?;
    let key = rows.first().ok_or(UNAUTHORIZED)?;
    if request.method() != Method::GET && !key.get::<_, bool>(1) {
        return Err(Refusal(StatusCode::FORBIDDEN, "forbidden"));
    }
    Ok(key.get(0))
}

// The key and the row in one statement: without a key there is no row, without a
// contact its columns are null.
async fn get_contact(app: &App, request: Request<Body>, id: &str) -> Answer {
    let hash = key_hash(&request)?;
    let id = Uuid::try_parse(id).unwrap_or(Uuid::nil());
    let rows = app.database.query(&app.contact_sql, &[&hash, &id]).await?;
    let row = rows.first().ok_or(UNAUTHORIZED)?;
    if row.get::<_, Option<Uuid>>(0).is_none() {
        return Err(NOT_FOUND);
    }
    Ok(json(StatusCode::OK, &One { data: Contact::from_row(row) }))
}

fn query_of(request: &Request<Body>) -> HashMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digit = |d: Option<u8>| (d.unwrap_or(0) as char).to_digit(16)
                        .unwrap_or(0) as u8;
                    digit(rest.next()) << 4 | digit(rest.next())
                }
                other => other,
            });
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    request.uri().query().unwrap_or("").split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value))).collect()
}

// Answer a page of T: FILTERS are conditions with "?" and their values. The total
// goes along on another connection.
async fn list<T: FromRow + Serialize>(app: &App, query: &HashMap<String, String>,
    fixed: &str, filters: Vec<(&str, Param)>) -> Answer {
    let number = |name, default| match query.get(name) {
        Some(text) => text.parse::<i64>().map_err(|_| INVALID),
        None => Ok(default),
    };
    let (page, size) = (number("page", 1)?, number("page_size", 25)?);
    if page < 1 || !(1..=100).contains(&size) {
        return Err(INVALID);
    }
    let mut condition = fixed.to_owned();
    for (i, (text, _)) in filters.iter().enumerate() {
        if !condition.is_empty() {
            condition.push_str(" AND ");
        }
        condition.push_str(&text.replace('?', &format!("${}", i + 1)));
    }
    let n = filters.len();
    let rows_sql = format!("SELECT {} FROM {} t WHERE {condition}
        ORDER BY t.created_at DESC, t.id DESC LIMIT ${} OFFSET ${}",
        T::columns(), T::TABLE, n + 1, n + 2);
    let total_sql = format!("SELECT count(*) FROM {} t WHERE {condition}", T::TABLE);
    let offset = (page - 1) * size;
    let values: Vec<&(dyn ToSql + Sync)> = filters.iter()
        .map(|(_, value)| &**value as &(dyn ToSql + Sync)).collect();
    let mut all = values.clone();
    all.extend([&size as &(dyn ToSql + Sync), &offset]);
    let (rows, total) = futures_util::future::try_join(
        app.database.query(&rows_sql, &all),
        app.database.query(&total_sql, &values)).await?;
    let total: i64 = total[0].get(0);
    Ok(json(StatusCode::OK, &Page {
        data: rows.iter().map(T::from_row).collect(),
        pagination: Pagination { page, page_size: size, total,
            total_pages: (total + size - 1) / size },
    }))
}

async fn list_contacts(app: &App, request: Request<Body>) -> Answer {
    let workspace = workspace_of(&app.database, &request).await?;
    let query = query_of(&request);
    let mut filters: Vec<(&str, Param)> =
        vec![("t.workspace_id = ?", Box::new(workspace))];
    if let Some(text) = query.get("search") {
        let escaped = text.replace('\\', "\\\\").replace('%', "\\%")
            .replace('_', "\\_");
        filters.push(("t.search LIKE crmapi.fold(?)",
            Box::new(format!("%{escaped}%"))));
    }
    if let Some(tags) = query.get("tags") {
        let tags: Vec<String> = tags.split(',').map(str::to_owned).collect();
        filters.push(("t.tags && ?::text[]", Box::new(tags)));
    }
    list::<Contact>(app, &query, "", filters).await
}

async fn list_conversations(app: &App, request: Request<Body>) -> Answer {
    let workspace = workspace_of(&app.database, &request).await?;
    let query = query_of(&request);
    let mut filters: Vec<(&str, Param)> =
        vec![("t.workspace_id = ?", Box::new(workspace))];
    if let Some(user) = query.get("assigned_to") {
        filters.push(("t.assigned_to = ?", Box::new(user.clone())));
    }
    if let Some(channel) = query.get("type") {
        let code: i16 = match channel.as_str() {
            "webchat" => 1,
            "call" => 2,
            "sms" => 3,
            "email" => 4,
            "whatsapp" => 5,
            other => other.parse().map_err(|_| INVALID)?,
        };
        filters.push(("t.type = ?", Box::new(code)));
    }
    if let Some(active) = query.get("active") {
        filters.push(("t.active = ?", Box::new(active == "true")));
    }
    list::<Conversation>(app, &query, "t.deleted IS NOT TRUE", filters).await
}

// ---- writing ----------------------------------------------------------------

async fn body_of(request: Request<Body>) -> Result<Map<String, Value>, Refusal> {
    let bytes = hyper::body::to_bytes(request.into_body()).await
        .map_err(|_| INVALID)?;
    let mut body = serde_json::from_slice::<Map<String, Value>>(&bytes)
        .map_err(|_| INVALID)?;
    for name in ["emails", "phone_numbers"] {   // one primary address
        let entries = match body.get_mut(name) {
            Some(Value::Array(entries)) => entries,
            _ => continue,
        };
        let first = entries.iter().position(|entry| entry["is_primary"] == true)
            .unwrap_or(0);
        for (i, entry) in entries.iter_mut().enumerate() {
            entry.as_object_mut().ok_or(INVALID)?
                .insert("is_primary".to_owned(), Value::Bool(i == first));
        }
    }
    Ok(body)
}

// VALUE as what the column of KIND takes; a column that has a default gets it for
// null.
fn bound(kind: &str, value: Option<&Value>) -> Result<Param, Refusal> {
    let text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        _ => Err(INVALID),
    };
    Ok(match kind {
        "uuid" => Box::new(text(value)?.map(|text| Uuid::try_parse(&text))
            .transpose().map_err(|_| INVALID)?),
        "float8" => match value {
            None | Some(Value::Null) => Box::new(None::<f64>),
            Some(number) => Box::new(Some(number.as_f64().ok_or(INVALID)?)),
        },
        "text[]" => Box::new(match value {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or(INVALID))
                .collect::<Result<Vec<String>, _>>()?,
            _ => return Err(INVALID),
        }),
        "list" => Box::new(Json(match value {
            None | Some(Value::Null) => Value::Array(Vec::new()),
            Some(list @ Value::Array(_)) => list.clone(),
            _ => return Err(INVALID),
        })),
        "object" => Box::new(Json(match value {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(object @ Value::Object(_)) => object.clone(),
            _ => return Err(INVALID),
        })),
        _ => Box::new(text(value)?),
    })
}

async fn write(app: &App, sql: &str, params: &[Param])
    -> Result<Option<Contact>, Refusal> {
    let values: Vec<&(dyn ToSql + Sync)> = params.iter()
        .map(|value| &**value as &(dyn ToSql + Sync)).collect();
    let rows = app.database.query(sql, &values).await?;
    Ok(rows.first().map(Contact::from_row))
}

async fn post_contact(app: &App, request: Request<Body>) -> Answer {
    let workspace = workspace_of(&app.database, &request).await?;
    let body = body_of(request).await?;
    let bot = body.get("bot_id").and_then(Value::as_str)
        .and_then(|text| Uuid::try_parse(text).ok()).ok_or(INVALID)?;
    if body.keys().any(|name| name != "bot_id"
        && INPUTS.iter().all(|(input, _)| input != name)) {
        return Err(INVALID);
    }
    let id = rows::new_id();
    let mut params: Vec<Param> = vec![Box::new(id), Box::new(workspace),
        Box::new(bot)];
    for (name, kind) in INPUTS {
        params.push(bound(kind, body.get(*name))?);
    }
    let data = write(app, &app.insert_sql, &params).await?.ok_or(INVALID)?;
    let mut response = json(StatusCode::CREATED, &One { data });
    response.headers_mut().insert(LOCATION,
        format!("/api/v1/contacts/{id}").parse().unwrap());
    Ok(response)
}

async fn patch_contact(app: &App, request: Request<Body>, id: &str) -> Answer {
    let workspace = workspace_of(&app.database, &request).await?;
    let id = Uuid::try_parse(id).map_err(|_| NOT_FOUND)?;
    let body = body_of(request).await?;
    let mut params: Vec<Param> = vec![Box::new(workspace), Box::new(id)];
    let (mut set, mut changed) = (Vec::new(), Vec::new());
    for (name, kind) in INPUTS {
        if let Some(value) = body.get(*name) {
            let n = params.len() + 1;
            let cast = rows::cast_of(kind);
            set.push(format!("{name} = ${n}::{cast}"));
            changed.push(format!("t.{name} IS DISTINCT FROM ${n}::{cast}"));
            params.push(bound(kind, Some(value))?);
        }
    }
    if set.is_empty() || set.len() != body.len() {
        return Err(INVALID);
    }
    let sql = format!("UPDATE crmapi.contact t SET {}, updated_at = CASE WHEN {}
            THEN greatest(crmapi.now_ms(), t.updated_at + interval '1 millisecond')
            ELSE t.updated_at END
        WHERE t.workspace_id = $1 AND t.id = $2 RETURNING {}",
        set.join(", "), changed.join(" OR "), Contact::columns());
    let data = write(app, &sql, &params).await?.ok_or(NOT_FOUND)?;
    Ok(json(StatusCode::OK, &One { data }))
}

// ---- the application --------------------------------------------------------

struct App {
    database: Database,
    contact_sql: String,
    insert_sql: String,
}

async fn route(app: &App, request: Request<Body>) -> Answer {
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.strip_prefix("/api/v1/").unwrap_or("")
        .split('/').collect();
    match (request.method().as_str(), parts.as_slice()) {
        ("GET", ["contacts", id]) => get_contact(app, request, id).await,
        ("PATCH", ["contacts", id]) => patch_contact(app, request, id).await,
        ("GET", ["contacts"]) => list_contacts(app, request).await,
        ("POST", ["contacts"]) => post_contact(app, request).await,
        ("GET", ["conversations"]) => list_conversations(app, request).await,
        _ => Err(NOT_FOUND),
    }
}

async fn answer(app: Arc<App>, request: Request<Body>)
    -> Result<Response<Body>, Infallible> {
    Ok(route(&app, request).await.unwrap_or_else(|Refusal(status, code)|
        json(status, &serde_json::json!({ "error": { "code": code } }))))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let variable = |name| std::env::var(name);
    let database = Database::connect(&format!("host={} dbname={} user={}",
        variable("DATABASE_HOST")?, variable("DATABASE_NAME")?,
        variable("DATABASE_USER")?)).await?;
    let columns = Contact::columns();
    let names: Vec<&str> = INPUTS.iter().map(|(name, _)| *name).collect();
    let places: Vec<String> = INPUTS.iter().enumerate()
        .map(|(i, (_, kind))| format!("${}::{}", i + 4, rows::cast_of(kind)))
        .collect();
    let app = Arc::new(App {
        database,
        contact_sql: format!("SELECT c.* FROM ({KEY_SQL}) k LEFT JOIN LATERAL (
            SELECT {columns} FROM crmapi.contact t
            WHERE t.workspace_id = k.workspace_id AND t.id = $2) c ON true"),
        insert_sql: format!("INSERT INTO crmapi.contact AS t (id, workspace_id,
            bot_id, {}) VALUES ($1, $2, $3, {}) RETURNING {columns}",
            names.join(", "), places.join(", ")),
    });
    let service = make_service_fn(move |_| {
        let app = app.clone();
        async move {
            Ok::<_, Infallible>(service_fn(move |request|
                answer(app.clone(), request)))
        }
    });
    let address = ([127, 0, 0, 1], variable("PORT")?.parse()?).into();
    let server = Server::bind(&address).tcp_nodelay(true).serve(service);
    println!("ready");
    let mut end = tokio::signal::unix::signal(
        tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = server => result?,
        _ = end.recv() => (),
    }
    Ok(())
}
