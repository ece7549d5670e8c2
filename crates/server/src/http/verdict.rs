//! The result of a check as a response: JSON and rate-limit headers.

use crate::http::refusal::Refusal;
use crate::resp::Value;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use tidemark_changes::serialize_bytes;

/// Largest integer of a structured field (RFC 9651).
const FIELD_INTEGER_MAX: u64 = 999_999_999_999_999;
/// Longest key shown in headers, in bytes.
const SHOWN_KEY_BYTES: usize = 128;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_STATUS: HeaderName = HeaderName::from_static("x-ratelimit-status");

/// Headers that pages of allowed origins may read.
pub(crate) const EXPOSED: &str = "retry-after, ratelimit, ratelimit-policy, x-ratelimit-limit, x-ratelimit-remaining, \
                                  x-ratelimit-status";

/// Answer of `LIMIT.CHECKALL` or `LIMIT.PEEKALL`.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    allowed: bool,
    /// The deciding key: one that refuses, if any does.
    #[serde(serialize_with = "as_text")]
    key: Vec<u8>,
    /// `None` without a limit.
    limit: Option<u64>,
    remaining: Option<u64>,
    /// `None` if the check passed, or waiting does not help.
    retry_after_ms: Option<u64>,
    /// `None` if only returned units reset it.
    reset_after_ms: Option<u64>,
    /// Granted lease of each key; empty if no key has leases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    leases: Vec<Option<u64>>,
}

fn as_text<S: Serializer>(key: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serialize_bytes(key, serializer)
}

impl Verdict {
    /// Parses the answer of a command.
    pub(crate) fn read(answer: Value) -> Result<Verdict, Refusal> {
        let Value::Array(fields) = answer else { return Err(unreadable()) };
        let [
            Value::Integer(allowed),
            Value::Integer(limit),
            Value::Integer(remaining),
            Value::Integer(retry),
            Value::Integer(reset),
            Value::Bulk(key),
            leases @ ..,
        ] = fields.as_slice()
        else {
            return Err(unreadable());
        };
        let leases = match leases {
            [] => Vec::new(),
            [Value::Array(leases)] => leases.iter().map(lease).collect(),
            _ => return Err(unreadable()),
        };
        // -1 stands for an absent number.
        let some = |number: i64| u64::try_from(number).ok();
        Ok(Verdict {
            allowed: *allowed == 1,
            key: key.clone(),
            limit: some(*limit),
            remaining: some(*remaining),
            retry_after_ms: some(*retry),
            reset_after_ms: some(*reset),
            leases,
        })
    }

    /// Builds the JSON response.
    pub(crate) fn into_response(self) -> Response {
        let json = serde_json::to_string(&self).expect("a verdict has a form in JSON");
        let mut response =
            (self.status(), [(header::CONTENT_TYPE, "application/json")], json).into_response();
        self.add_fields(&mut response);
        response
    }

    /// Builds the plain response that clients of VSA expect.
    pub(crate) fn into_plain_response(self) -> Response {
        let text = if self.allowed { "OK" } else { "Too Many Requests" };
        let mut response = (self.status(), text).into_response();
        self.add_fields(&mut response);
        response
    }

    fn status(&self) -> StatusCode {
        if self.allowed { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS }
    }

    fn add_fields(&self, response: &mut Response) {
        let headers = response.headers_mut();
        let mut add = |name: HeaderName, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        };
        add(header::CACHE_CONTROL, "no-store".to_owned());
        add(X_STATUS, if self.allowed { "OK" } else { "Exceeded" }.to_owned());
        if let Some(wait_ms) = self.retry_after_ms {
            add(header::RETRY_AFTER, wait_ms.div_ceil(1000).to_string());
        }
        let (Some(limit), Some(remaining)) = (self.limit, self.remaining) else { return };
        add(X_LIMIT, limit.to_string());
        add(X_REMAINING, remaining.to_string());
        let name = field_string(&self.key);
        let parameter = |letter: char, number: Option<u64>| {
            number.map_or(String::new(), |number| format!(";{letter}={}", number.min(FIELD_INTEGER_MAX)))
        };
        add(RATE_LIMIT_POLICY, format!("{name}{}", parameter('q', Some(limit))));
        let reset_s = self.reset_after_ms.map(|ms| ms.div_ceil(1000));
        add(RATE_LIMIT, format!("{name}{}{}", parameter('r', Some(remaining)), parameter('t', reset_s)));
    }
}

/// Returns the granted lease; 0 stands for none.
fn lease(answer: &Value) -> Option<u64> {
    match answer {
        Value::Integer(id) => u64::try_from(*id).ok().filter(|id| *id > 0),
        _ => None,
    }
}

fn unreadable() -> Refusal {
    Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, reason: "ERR the answer cannot be shown".to_owned() }
}

/// Formats a key as a string of a structured field; a key that does not fit becomes `"limit"`.
fn field_string(key: &[u8]) -> String {
    if key.len() > SHOWN_KEY_BYTES || !key.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return "\"limit\"".to_owned();
    }
    let mut text = String::with_capacity(key.len() + 2);
    text.push('"');
    for byte in key {
        if matches!(byte, b'"' | b'\\') {
            text.push('\\');
        }
        text.push(char::from(*byte));
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(integers: [i64; 5], key: &[u8]) -> Verdict {
        let fields = integers.into_iter().map(Value::Integer).chain([Value::Bulk(key.to_vec())]);
        let read = Verdict::read(Value::Array(fields.collect()));
        read.unwrap_or_else(|refusal| panic!("{}", refusal.reason))
    }

    fn fields(response: &Response) -> Vec<String> {
        let interesting = |name: &str| name.contains("ratelimit") || name == "retry-after";
        let shown = response.headers().iter().filter(|(name, _)| interesting(name.as_str()));
        let mut shown: Vec<String> =
            shown.map(|(name, value)| format!("{name}: {}", value.to_str().expect("text"))).collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_refusal_says_when_to_come_again_in_whole_seconds() {
        let response = verdict([0, 20, 3, 1_001, 2_000], b"user:42").into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        let expected = [
            "ratelimit-policy: \"user:42\";q=20",
            "ratelimit: \"user:42\";r=3;t=2",
            "retry-after: 2",
            "x-ratelimit-limit: 20",
            "x-ratelimit-remaining: 3",
            "x-ratelimit-status: Exceeded",
        ];
        let mut expected = expected.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(fields(&response), expected);
    }

    #[test]
    fn where_no_wait_helps_none_is_said() {
        let response = verdict([0, 20, 0, -1, -1], b"seats").into_plain_response();
        let shown = fields(&response).join(", ");
        assert!(!shown.contains("retry-after") && shown.contains("ratelimit: \"seats\";r=0,"), "{shown}");
        let response = verdict([1, -1, -1, -1, -1], b"likes").into_response();
        assert_eq!(
            (response.status(), fields(&response)),
            (StatusCode::OK, vec!["x-ratelimit-status: OK".to_owned()])
        );
    }

    #[test]
    fn keys_are_shown_as_far_as_a_field_has_room_for_them() {
        assert_eq!(field_string(br#"a "b\c"#), r#""a \"b\\c""#);
        assert_eq!(field_string("ü".as_bytes()), "\"limit\"");
        assert_eq!(field_string(b"a\r\nb"), "\"limit\"");
        assert_eq!(field_string(&[b'k'; 129]), "\"limit\"");
        let json = serde_json::to_string(&verdict([1, 1, 0, -1, 5], b"\xff")).expect("JSON");
        assert_eq!(
            json,
            r#"{"allowed":true,"key":{"base64":"/w=="},"limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":5}"#
        );
    }

    #[test]
    fn leases_are_named_where_there_are_any() {
        let integers = [1, 2, 1, -1, 60_000].map(Value::Integer);
        let leases = Value::Array(vec![Value::Integer(0), Value::Integer(7)]);
        let fields = integers.into_iter().chain([Value::Bulk(b"exports".to_vec()), leases]);
        let read = Verdict::read(Value::Array(fields.collect()))
            .unwrap_or_else(|refusal| panic!("{}", refusal.reason));
        let json = serde_json::to_string(&read).expect("JSON");
        assert!(json.ends_with(r#""reset_after_ms":60000,"leases":[null,7]}"#), "{json}");
    }

    #[test]
    fn what_is_no_answer_of_a_check_is_not_taken_for_one() {
        for answer in [Value::Null, Value::Array(Vec::new()), Value::Array(vec![Value::Integer(1); 6])] {
            assert!(Verdict::read(answer).is_err());
        }
    }
}
