// SPDX-License-Identifier: Apache-2.0
// rows.rs: a contact and a conversation, as the database and the API have them
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokio_postgres::types::Json;
use tokio_postgres::Row;
use uuid::Uuid;

// What a client may send of a contact, and its kind.
pub const INPUTS: &[(&str, &str)] = &[
    ("first_name", "text"), ("last_name", "text"), ("emails", "list"),
    ("phone_numbers", "list"), ("company", "text"), ("company_id", "uuid"),
    ("job_title", "text"), ("lead_source", "text"), ("tags", "text[]"),
    ("deal_value", "float8"), ("pipeline_stage_id", "uuid"),
    ("contact_type", "text"), ("address_line1", "text"),
    ("address_line2", "text"), ("city", "text"), ("state", "text"),
    ("postal_code", "text"), ("country", "text"), ("linkedin_url", "text"),
    ("notes", "text"), ("custom_fields", "object"), ("external_id", "text"),
];

pub fn cast_of(kind: &str) -> &str {
    match kind {
        "list" | "object" => "jsonb",
        other => other,
    }
}

// A UUIDv7, so that new rows are neighbours in the index.
pub fn new_id() -> Uuid {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut bytes = *Uuid::new_v4().as_bytes();
    bytes[..6].copy_from_slice(&(now.as_millis() as u64).to_be_bytes()[2..]);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    Uuid::from_bytes(bytes)
}

pub trait FromRow: Sized {
    const TABLE: &'static str;
    fn columns() -> String;
    fn from_row(row: &Row) -> Self;
}

// A time with milliseconds.
struct Time(DateTime<Utc>);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

// JSON goes out as it came from the database.
type Raw = Box<RawValue>;

macro_rules! read {
    ($row:expr, $i:expr, Time) => { Time($row.get($i)) };
    ($row:expr, $i:expr, Option<Time>) => {
        $row.get::<_, Option<DateTime<Utc>>>($i).map(Time)
    };
    ($row:expr, $i:expr, Raw) => { $row.get::<_, Json<Raw>>($i).0 };
    ($row:expr, $i:expr, $($type:tt)+) => { $row.get::<_, $($type)+>($i) };
}

// A struct whose fields are read from columns in their order: an SQL text stands
// for a field that is not a column as it is.
macro_rules! resource {
    ($name:ident, $table:expr,
     $($field:ident: [$($type:tt)+] = $sql:expr,)+) => {
        #[derive(Serialize)]
        pub struct $name { $($field: $($type)+,)+ }

        impl FromRow for $name {
            const TABLE: &'static str = $table;

            fn columns() -> String {
                [$(if $sql.is_empty() { concat!("t.", stringify!($field)) }
                    else { $sql }),+].join(", ")
            }

            fn from_row(row: &Row) -> $name {
                let mut i = 0;
                $(let $field = read!(row, i, $($type)+); i += 1;)+
                let _ = i;
                $name { $($field),+ }
            }
        }
    };
}

resource!(Contact, "crmapi.contact",
    id: [Uuid] = "", workspace_id: [Uuid] = "", bot_id: [Uuid] = "",
    first_name: [Option<String>] = "", last_name: [Option<String>] = "",
    emails: [Raw] = "", phone_numbers: [Raw] = "",
    company: [Option<String>] = "", company_id: [Option<Uuid>] = "",
    job_title: [Option<String>] = "", lead_source: [Option<String>] = "",
    tags: [Vec<String>] = "", deal_value: [Option<f64>] = "t.deal_value::float8",
    pipeline_stage_id: [Option<Uuid>] = "", contact_type: [Option<String>] = "",
    address_line1: [Option<String>] = "", address_line2: [Option<String>] = "",
    city: [Option<String>] = "", state: [Option<String>] = "",
    postal_code: [Option<String>] = "", country: [Option<String>] = "",
    linkedin_url: [Option<String>] = "", notes: [Option<String>] = "",
    custom_fields: [Raw] = "", external_id: [Option<String>] = "",
    last_contacted_at: [Option<Time>] = "(SELECT max(a.created_at)
        FROM crmapi.activity a WHERE a.workspace_id = t.workspace_id
        AND a.contact_id = t.id)",
    suppressed: [Raw] = "(SELECT coalesce(jsonb_object_agg(CASE s.kind
        WHEN 'email' THEN 'email' ELSE 'sms' END, coalesce(s.reason,
        'suppressed')), '{}') FROM crmapi.suppression s
        WHERE s.workspace_id = t.workspace_id AND (s.kind, s.address) IN
        (('email', t.email_key), ('phone', t.phone_key)))",
    created_at: [Time] = "", updated_at: [Time] = "",
);

resource!(Conversation, "crmapi.conversation",
    id: [Uuid] = "", bot_id: [Uuid] = "", contact_id: [Option<Uuid>] = "",
    r#type: [i16] = "t.type", email: [Option<String>] = "",
    phone_number: [Option<String>] = "", human: [Option<String>] = "",
    human_takeover: [bool] = "", assigned_to: [Option<String>] = "",
    assigned_at: [Option<Time>] = "", active: [bool] = "",
    archived: [Option<bool>] = "", archived_at: [Option<Time>] = "",
    deleted: [Option<bool>] = "", deleted_at: [Option<Time>] = "",
    internal: [bool] = "", internal_notes: [Option<String>] = "",
    last_message: [Option<String>] = "", last_message_at: [Option<Time>] = "",
    last_active_at: [Option<Time>] = "", sentiment_positive: [Option<bool>] = "",
    sentiment_score: [Option<f64>] = "t.sentiment_score::float8",
    sentiment_summary: [Option<String>] = "", audio_url: [Option<String>] = "",
    minutes: [Option<f64>] = "t.minutes::float8",
    visitor_id: [Option<String>] = "", created_at: [Time] = "",
);
