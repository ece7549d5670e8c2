//! `POST /v1/check` and `POST /v1/release`: limiters and quotas over HTTP.
//!
//! ```text
//! request ─► access (may it?) ─► body ─► wish: LIMIT.CHECKALL, PEEKALL … ─► running ─► verdict
//! ```

use crate::http::listener::Visit;
use crate::http::refusal::Refusal;
use crate::http::stream::{preflight, share_with_origin};
use crate::http::verdict::{EXPOSED, Verdict};
use crate::http::wish::Wish;
use crate::http::{access, body, running};
use crate::resp::Value;
use crate::shared::Shared;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tidemark_changes::query_string;

/// `POST /v1/check`
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let checked = async {
        let wish = read(&shared, &visit, request).await?;
        if wish.has_leases() {
            return Err(Refusal::wrong("ERR lease is for /v1/release".to_owned()));
        }
        let answer = running::run(&shared, wish.db, &[wish.check()]).await?;
        Ok(Verdict::read(answer)?.into_response())
    };
    finish(checked.await, &shared, &headers)
}

/// `POST /v1/release`
pub(crate) async fn release(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let released = async {
        let wish = read(&shared, &visit, request).await?;
        if wish.is_peek {
            return Err(Refusal::wrong("ERR peek is for /v1/check".to_owned()));
        }
        let answer = running::run(&shared, wish.db, &wish.release()).await;
        let refunded = match answer {
            Ok(Value::Integer(refunded)) if wish.is_list => serde_json::json!([refunded]),
            // Errors of a list go in its elements, even if it has only one.
            Err(refusal) if wish.is_list && refusal.is_of_key() => {
                serde_json::json!([{ "error": refusal.reason }])
            }
            Err(refusal) => return Err(refusal),
            Ok(Value::Integer(refunded)) => serde_json::json!(refunded),
            Ok(Value::Array(each)) => each.iter().map(refunded_of).collect(),
            Ok(_) => serde_json::Value::Null,
        };
        let json = serde_json::json!({ "refunded": refunded }).to_string();
        Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], json)
            .into_response())
    };
    finish(released.await, &shared, &headers)
}

/// Returns the units refunded for one of several keys, or the error.
fn refunded_of(answer: &Value) -> serde_json::Value {
    match answer {
        Value::Integer(refunded) => serde_json::json!(refunded),
        Value::Error(text) => serde_json::json!({ "error": String::from_utf8_lossy(text) }),
        _ => serde_json::Value::Null,
    }
}

/// `OPTIONS` of both.
pub(crate) async fn options(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    preflight(&shared, &headers, "POST", "authorization, content-type")
}

/// Refuses any other method.
pub(crate) async fn other_method() -> Response {
    let reason = "ERR this is asked by POST, with a body of JSON".to_owned();
    let mut response = Refusal { status: StatusCode::METHOD_NOT_ALLOWED, reason }.into_kept_alive();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, OPTIONS"));
    response
}

/// Checks access and parses the body.
async fn read(shared: &Shared, visit: &Visit, request: Request) -> Result<Wish, Refusal> {
    let config = shared.settings.current();
    let token = token(request.uri().query().unwrap_or_default());
    access::check(&config, &shared.logins, visit.address, request.headers(), token.as_deref())?;
    let body = body::read(request.into_body(), config.http_max_body).await?;
    visit.note_request();
    Wish::parse(&body)
}

/// Returns the password in a target, for clients that cannot set headers.
pub(crate) fn token(query: &str) -> Option<Vec<u8>> {
    query_string::parse(query).into_iter().find(|(name, _)| name == b"token").map(|(_, value)| value)
}

/// Builds the response, readable by the requesting page if its origin is allowed.
pub(crate) fn finish(result: Result<Response, Refusal>, shared: &Shared, headers: &HeaderMap) -> Response {
    let mut response = result.unwrap_or_else(Refusal::into_kept_alive);
    share_with_origin(shared, headers, &mut response);
    let headers = response.headers_mut();
    if headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    response
}
